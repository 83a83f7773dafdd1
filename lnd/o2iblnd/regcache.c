/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/regcache.h"

#include <errno.h>

#include "base/iov.h"
#include "base/log.h"
#include "lnd/o2iblnd/o2iblnd.h"

/* ns: after a failure nothing is registered for this time. Registering is slow,
 * even if it fails, and the limit on locked memory seldom changes. */
#define PAUSE NSEC_PER_SEC

void ib_regcache_init(struct ib_regcache *c, struct ib_port *port, uint64_t max)
{
	*c = (struct ib_regcache){ .port = port, .max = max };
	list_init(&c->idle);
}

static uint64_t regcache_bytes_of(const struct ib_reg *reg)
{
	return reg->end - reg->start;
}

/* Returns the index of the first registration that begins at or after @start.
 */
static unsigned int index_of(const struct ib_regcache *c, uintptr_t start)
{
	unsigned int low = 0, high = c->nregs;

	while (low < high) {
		unsigned int mid = (low + high) / 2;

		if (c->regs[mid]->start >= start)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Deregisters and removes a registration; frees it if it is not in use. */
static void reg_drop(struct ib_regcache *c, unsigned int at)
{
	struct ib_reg *reg = c->regs[at];

	c->nregs--;
	memmove(&c->regs[at], &c->regs[at + 1],
		(c->nregs - at) * sizeof(*c->regs));
	c->bytes -= regcache_bytes_of(reg);
	c->port->verbs->dereg(c->port, reg->mr);
	reg->mr = NULL;
	if (reg->users) {
		c->forgotten++;
		return;
	}
	list_del(&reg->link);
	free(reg);
}

bool ib_regcache_evict(struct ib_regcache *c)
{
	const struct ib_reg *reg;

	if (!c || list_empty(&c->idle))
		return false;
	reg = list_first(&c->idle, struct ib_reg, link);
	c->evicted++;
	reg_drop(c, index_of(c, reg->start));
	return true;
}

void ib_regcache_fini(struct ib_regcache *c)
{
	while (ib_regcache_evict(c))
		;
	BUG_ON(c->nregs || c->forgotten || c->bytes);
	free(c->regs);
	c->regs = NULL;
	c->room = 0;
}

int ib_regcache_reg(struct ib_regcache *c, struct ib_port *port, void *addr,
		    size_t length, bool remote, struct ib_mr **mr_p)
{
	int rc;

	do
		rc = port->verbs->reg(port, addr, length, remote, mr_p);
	while (rc == -ENOMEM && ib_regcache_evict(c));
	return rc;
}

static bool regcache_make_room(struct ib_regcache *c)
{
	unsigned int room = MAX(2 * c->room, 64u);
	struct ib_reg **regs;

	if (c->nregs < c->room)
		return true;
	regs = realloc(c->regs, room * sizeof(*regs));
	if (!regs)
		return false;
	c->regs = regs;
	c->room = room;
	return true;
}

/* Registers @reg, whose bounds are set, and adds it to the cache. Returns 0 or
 * -errno. */
static int reg_add(struct ib_regcache *c, struct ib_reg *reg)
{
	uint64_t bytes = regcache_bytes_of(reg);
	unsigned int at;
	int rc;

	if (!regcache_make_room(c))
		return -ENOMEM;
	while (bytes <= c->max && c->bytes > c->max - bytes &&
	       ib_regcache_evict(c))
		;
	if (bytes > c->max || c->bytes > c->max - bytes)
		return -ENOBUFS;
	rc = ib_regcache_reg(c, c->port, (void *)reg->start, bytes, true,
			     &reg->mr);
	if (rc)
		return rc;
	at = index_of(c, reg->start);
	memmove(&c->regs[at + 1], &c->regs[at],
		(c->nregs - at) * sizeof(*c->regs));
	c->regs[at] = reg;
	c->nregs++;
	c->bytes += bytes;
	return 0;
}

static int reg_new(struct ib_regcache *c, uintptr_t start, uintptr_t end,
		   struct ib_reg **reg_p)
{
	struct ib_reg *reg = calloc(1, sizeof(*reg));
	int rc;

	if (!reg)
		return -ENOMEM;
	list_init(&reg->link);
	reg->start = start;
	reg->end = end;
	rc = reg_add(c, reg);
	if (rc) {
		free(reg);
		return rc;
	}
	*reg_p = reg;
	return 0;
}

/* Notes that registering has failed with @rc; an exhausted register_max is no
 * failure. Returns @rc. */
static int reg_failed(struct ib_regcache *c, size_t length, uint64_t now,
		      int rc)
{
	if (rc == -ENOBUFS)
		return rc;
	c->pause = now + PAUSE;
	if (!c->complained)
		log_warn("o2iblnd",
			 "%zu bytes of the user's memory cannot be "
			 "registered, so they are copied: %s",
			 length, strerror(-rc));
	c->complained = true;
	return rc;
}

int ib_regcache_get(struct ib_regcache *c, const struct span *mem,
		    struct iovec v, uint64_t now, struct ib_reg **reg_p)
{
	uintptr_t first = (uintptr_t)v.iov_base;
	uintptr_t block = first - first % IB_REG_BLOCK;
	uintptr_t start = MAX(block, mem->start), end = mem->end;
	unsigned int at = index_of(c, start);
	struct ib_reg *reg;
	int rc;

	if (end - block > IB_REG_BLOCK + LNET_MTU)
		end = block + IB_REG_BLOCK + LNET_MTU;
	if (v.iov_len > end - first)
		return -EMSGSIZE;
	if (likely(at < c->nregs && c->regs[at]->start == start)) {
		reg = c->regs[at];
		c->hits++;
		if (!reg->users++)
			list_del(&reg->link);
		*reg_p = reg;
		return 0;
	}
	if (now < c->pause)
		return -EAGAIN;
	c->misses++;
	rc = reg_new(c, start, end, &reg);
	if (rc)
		return reg_failed(c, end - start, now, rc);
	c->complained = false;
	reg->users = 1;
	*reg_p = reg;
	return 0;
}

void ib_regcache_put(struct ib_regcache *c, struct ib_reg *reg)
{
	BUG_ON(!reg->users);
	if (--reg->users)
		return;
	if (reg->mr) {
		list_add_tail(&c->idle, &reg->link);
		return;
	}
	c->forgotten--;
	free(reg);
}

void ib_regcache_forget(struct ib_regcache *c, void *addr, size_t length)
{
	uintptr_t start = (uintptr_t)addr, end = start + length;
	unsigned int at = index_of(c, start);

	while (at < c->nregs && c->regs[at]->start < end)
		reg_drop(c, at);
}

/* ---- zero-copy payloads ---- */

/* The page size of kernel nodes. */
#define PAGE 4096u

static bool is_adjacent(const struct iovec *v, const struct iovec *before)
{
	return v->iov_base == (char *)before->iov_base + before->iov_len;
}

/* Joins adjacent parts and removes empty ones. Returns how many are left. */
static unsigned int regcache_join(struct iovec *iov, unsigned int niov)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < niov; i++) {
		if (!iov[i].iov_len)
			continue;
		if (n && is_adjacent(&iov[i], &iov[n - 1]))
			iov[n - 1].iov_len += iov[i].iov_len;
		else
			iov[n++] = iov[i];
	}
	return n;
}

/* Returns the range from the first byte of all parts to the last. */
static struct iovec span_of(const struct iovec *iov, unsigned int niov)
{
	char *start = iov[0].iov_base, *end = start + iov[0].iov_len;

	for (unsigned int i = 1; i < niov; i++) {
		char *first = iov[i].iov_base;

		start = MIN(start, first);
		end = MAX(end, first + iov[i].iov_len);
	}
	return (struct iovec){ start, (size_t)(end - start) };
}

/* Gets the registrations for @niov parts: one for all of them, or one for each.
 */
static bool regs_get(struct ib_cpt *cpt, const struct span *mem,
		     const struct iovec *iov, unsigned int niov, bool sink,
		     struct ib_direct *d)
{
	uint64_t now = loop_now(ib_loop(cpt));
	unsigned int nregs = sink ? 1 : niov;

	for (d->nregs = 0; d->nregs < nregs; d->nregs++) {
		struct iovec v = sink ? span_of(iov, niov) : iov[d->nregs];

		if (ib_regcache_get(&cpt->regs, mem, v, now,
				    &d->regs[d->nregs]))
			return false;
	}
	return true;
}

/* Returns the most fragments to offer a peer for @length bytes. Some kernel
 * nodes write each of their pages separately, with at most as many WRITEs as
 * the connection carries fragments; each boundary between our fragments costs
 * one more. */
static unsigned int frags_max(unsigned int frags, uint32_t length)
{
	uint32_t pages = length / PAGE + 1;

	return frags > pages ? frags - pages : 1;
}

static void regcache_give_up(struct ib_cpt *cpt, struct ib_direct *d)
{
	while (d->nregs)
		ib_regcache_put(&cpt->regs, d->regs[--d->nregs]);
	if (d->sges != &d->own_sge)
		free(d->sges);
}

bool ib_direct_get(struct ib_cpt *cpt, const struct ib_payload *payload,
		   unsigned int frags, struct ib_direct *d)
{
	struct iovec iov[LNET_MAX_IOV];
	unsigned int n = iov_slice(iov, payload->iov, payload->niov,
				   payload->offset, payload->length);

	n = regcache_join(iov, n);
	if (frags && n > frags_max(frags, payload->length))
		return false;
	d->nsges = n;
	d->sges = &d->own_sge;
	d->regs = &d->own_reg;
	if (n > 1)
		d->sges = malloc(n * (sizeof(*d->sges) + sizeof(*d->regs)));
	if (!d->sges)
		return false;
	if (n > 1)
		d->regs = (void *)(d->sges + n);
	if (!regs_get(cpt, payload->mem, iov, n, frags, d)) {
		regcache_give_up(cpt, d);
		return false;
	}
	for (unsigned int i = 0; i < n; i++)
		d->sges[i] = (struct ib_sge){
			iov[i].iov_base, (uint32_t)iov[i].iov_len,
			d->regs[i < d->nregs ? i : 0]->mr->lkey
		};
	return true;
}

void ib_direct_put(struct ib_cpt *cpt, struct ib_direct *d)
{
	if (d->nregs)
		regcache_give_up(cpt, d);
}

struct ib_sink ib_direct_sink(const struct ib_direct *d, struct ib_frag *frags)
{
	for (unsigned int i = 0; i < d->nsges; i++)
		frags[i] = (struct ib_frag){ (uintptr_t)d->sges[i].addr,
					     d->sges[i].length };
	return (struct ib_sink){ d->regs[0]->mr->rkey, d->nsges, frags };
}
