/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/direct.h"

#include "base/iov.h"

/* The pieces that the memory of a kernel node may be in. */
#define PAGE 4096u

static bool follows(const struct iovec *v, const struct iovec *before)
{
	return v->iov_base == (char *)before->iov_base + before->iov_len;
}

/* Those next to each other become one, and empty ones none; returns how many
 * are left. */
static unsigned int join(struct iovec *iov, unsigned int niov)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < niov; i++) {
		if (!iov[i].iov_len)
			continue;
		if (n && follows(&iov[i], &iov[n - 1]))
			iov[n - 1].iov_len += iov[i].iov_len;
		else
			iov[n++] = iov[i];
	}
	return n;
}

/* From the first byte of any of them to the last. */
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

/* Registrations for @niov pieces: one for all of them, or one each. */
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

/* Some kernel nodes have a piece for each page that they write from, and no
 * more WRITEs for a message than a connection carries pieces: each piece of
 * ours takes one more of them. */
static unsigned int frags_max(unsigned int frags, uint32_t length)
{
	uint32_t pages = length / PAGE + 1;

	return frags > pages ? frags - pages : 1;
}

static void give_up(struct ib_cpt *cpt, struct ib_direct *d)
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

	n = join(iov, n);
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
		give_up(cpt, d);
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
		give_up(cpt, d);
}

struct ib_sink ib_direct_sink(const struct ib_direct *d, struct ib_frag *frags)
{
	for (unsigned int i = 0; i < d->nsges; i++)
		frags[i] = (struct ib_frag){ (uintptr_t)d->sges[i].addr,
					     d->sges[i].length };
	return (struct ib_sink){ d->regs[0]->mr->rkey, d->nsges, frags };
}
