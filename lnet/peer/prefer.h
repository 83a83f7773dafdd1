/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The local NIs, by their NIDs, that a peer NI is best sent to from. Mostly
 * there is one: a peer that is not multi-rail knows this node by the NID that
 * it has seen first.
 *
 * Owner: whoever embeds it. Thread: owner.
 */
#ifndef LNET_PREFER_H
#define LNET_PREFER_H

#include "base/util.h"
#include "ulnet/nid.h"

struct prefer {
	unsigned int n;
	struct ulnet_nid first;	 /* n > 0 */
	struct ulnet_nid *other; /* n - 1 of them; NULL: n < 2 */
};

static inline void prefer_init(struct prefer *p)
{
	p->n = 0;
	p->other = NULL;
}

/* None is preferred any more. */
void prefer_clear(struct prefer *p);

/* From now on @nid, and no other. */
void prefer_only(struct prefer *p, const struct ulnet_nid *nid);

/* @nid as well. 0, also if it is preferred already, or -ENOMEM. */
int prefer_add(struct prefer *p, const struct ulnet_nid *nid) must_check;

/* Not @nid any more, if it was. */
void prefer_del(struct prefer *p, const struct ulnet_nid *nid);

/* The @i-th of p->n. */
static inline const struct ulnet_nid *prefer_nth(const struct prefer *p,
						 unsigned int i)
{
	return i ? &p->other[i - 1] : &p->first;
}

static inline bool prefer_has(const struct prefer *p,
			      const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (lnet_nid_eq(prefer_nth(p, i), nid))
			return true;
	return false;
}

#endif
