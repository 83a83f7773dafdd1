/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/regcache.h"

#include <errno.h>

void ib_regcache_init(struct ib_regcache *c, struct ib_port *port, uint64_t max)
{
	*c = (struct ib_regcache){ .port = port, .max = max };
	list_init(&c->idle);
}

static uint64_t bytes_of(const struct ib_reg *reg)
{
	return reg->end - reg->start;
}

/* The first of those known that ends behind @start. */
static unsigned int first_behind(const struct ib_regcache *c, uintptr_t start)
{
	unsigned int low = 0, high = c->nregs;

	while (low < high) {
		unsigned int mid = (low + high) / 2;

		if (c->regs[mid]->end > start)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static void reg_free(struct ib_regcache *c, struct ib_reg *reg)
{
	BUG_ON(reg->users || reg->known);
	list_del(&reg->link);
	c->bytes -= bytes_of(reg);
	c->port->verbs->dereg(c->port, reg->mr);
	free(reg);
}

/* Not found from now on; gone, if nobody uses it. */
static void hide(struct ib_regcache *c, unsigned int at)
{
	struct ib_reg *reg = c->regs[at];

	memmove(&c->regs[at], &c->regs[at + 1],
		(c->nregs - at - 1) * sizeof(*c->regs));
	c->nregs--;
	reg->known = false;
	if (reg->users)
		c->unknown++;
	else
		reg_free(c, reg);
}

static bool evict(struct ib_regcache *c)
{
	struct ib_reg *reg;

	if (list_empty(&c->idle))
		return false;
	reg = list_first(&c->idle, struct ib_reg, link);
	c->evicted++;
	hide(c, first_behind(c, reg->start));
	return true;
}

void ib_regcache_fini(struct ib_regcache *c)
{
	while (evict(c))
		;
	BUG_ON(c->nregs || c->unknown || c->bytes);
	free(c->regs);
	c->regs = NULL;
	c->room = 0;
}

static void use(struct ib_reg *reg)
{
	if (!reg->users++)
		list_del(&reg->link);
}

void ib_regcache_put(struct ib_regcache *c, struct ib_reg *reg)
{
	BUG_ON(!reg->users);
	if (--reg->users)
		return;
	if (reg->known) {
		list_add_tail(&c->idle, &reg->link);
		return;
	}
	c->unknown--;
	reg_free(c, reg);
}

/* A new one for [@start, @end), which overlaps none that is known. */
static int reg_new(struct ib_regcache *c, uintptr_t start, uintptr_t end,
		   bool remote, struct ib_reg **reg_p)
{
	struct ib_port *port = c->port;
	struct ib_reg *reg;
	int rc;

	while (c->bytes + (end - start) > c->max && evict(c))
		;
	if (c->bytes + (end - start) > c->max)
		return -ENOBUFS;
	reg = calloc(1, sizeof(*reg));
	if (!reg)
		return -ENOMEM;
	/* -ENOMEM may be about how much a process may lock. */
	do
		rc = port->verbs->reg(port, (void *)start, end - start, remote,
				      &reg->mr);
	while (rc == -ENOMEM && evict(c));
	if (rc) {
		free(reg);
		return rc;
	}
	list_init(&reg->link);
	reg->start = start;
	reg->end = end;
	reg->remote = remote;
	reg->users = 1;
	c->bytes += bytes_of(reg);
	*reg_p = reg;
	return 0;
}

static int insert(struct ib_regcache *c, struct ib_reg *reg)
{
	unsigned int at;

	if (c->nregs == c->room) {
		unsigned int room = MAX(2 * c->room, 64u);
		struct ib_reg **regs = realloc(c->regs, room * sizeof(*regs));

		if (!regs)
			return -ENOMEM;
		c->regs = regs;
		c->room = room;
	}
	at = first_behind(c, reg->start);
	memmove(&c->regs[at + 1], &c->regs[at],
		(c->nregs - at) * sizeof(*c->regs));
	c->regs[at] = reg;
	c->nregs++;
	reg->known = true;
	return 0;
}

/* What overlaps with [*@start, *@end) makes that wider, and is not found any
 * more. */
static void absorb(struct ib_regcache *c, uintptr_t *start, uintptr_t *end,
		   bool *remote)
{
	unsigned int at = first_behind(c, *start);

	while (at < c->nregs && c->regs[at]->start < *end) {
		*start = MIN(*start, c->regs[at]->start);
		*end = MAX(*end, c->regs[at]->end);
		*remote = *remote || c->regs[at]->remote;
		hide(c, at);
	}
}

int ib_regcache_get(struct ib_regcache *c, void *addr, size_t length,
		    bool remote, struct ib_reg **reg_p)
{
	uintptr_t start = (uintptr_t)addr, end = start + length;
	unsigned int at = first_behind(c, start);
	struct ib_reg *reg;
	int rc;

	BUG_ON(!length || end < start);
	if (at < c->nregs && c->regs[at]->start <= start &&
	    c->regs[at]->end >= end && (c->regs[at]->remote || !remote)) {
		c->hits++;
		use(c->regs[at]);
		*reg_p = c->regs[at];
		return 0;
	}
	c->misses++;
	absorb(c, &start, &end, &remote);
	rc = reg_new(c, start, end, remote, &reg);
	/* Perhaps what it was to be one with is not there any more. */
	if (rc && end - start != length)
		rc = reg_new(c, (uintptr_t)addr, (uintptr_t)addr + length,
			     remote, &reg);
	if (rc) {
		c->failed++;
		return rc;
	}
	/* Without room to find it again it is for this once. */
	if (insert(c, reg))
		c->unknown++;
	*reg_p = reg;
	return 0;
}

bool ib_regcache_forget(struct ib_regcache *c, void *addr, size_t length)
{
	uintptr_t start = (uintptr_t)addr, end = start + length;
	unsigned int at = first_behind(c, start);
	bool unused = true;

	while (at < c->nregs && c->regs[at]->start < end) {
		unused = unused && !c->regs[at]->users;
		hide(c, at);
	}
	return unused;
}
