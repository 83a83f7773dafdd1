/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/peer/prefer.h"

#include <errno.h>
#include <stdlib.h>

void prefer_clear(struct prefer *p)
{
	free(p->other);
	prefer_init(p);
}

void prefer_only(struct prefer *p, const struct ulnet_nid *nid)
{
	const struct ulnet_nid only = *nid; /* may be one of those that go */

	prefer_clear(p);
	p->first = only;
	p->n = 1;
}

int prefer_add(struct prefer *p, const struct ulnet_nid *nid)
{
	struct ulnet_nid *other;

	if (prefer_has(p, nid))
		return 0;
	if (!p->n) {
		prefer_only(p, nid);
		return 0;
	}
	other = realloc(p->other, p->n * sizeof(*other));
	if (!other)
		return -ENOMEM;
	p->other = other;
	other[p->n++ - 1] = *nid;
	return 0;
}

void prefer_del(struct prefer *p, const struct ulnet_nid *nid)
{
	const struct ulnet_nid gone = *nid; /* may be one of the list */

	if (!prefer_has(p, nid))
		return;
	/* The last one takes the place of the one that goes. */
	for (unsigned int i = 1; i < p->n; i++)
		if (lnet_nid_eq(&p->other[i - 1], &gone))
			p->other[i - 1] = p->other[p->n - 2];
	if (lnet_nid_eq(&p->first, &gone) && p->n > 1)
		p->first = p->other[p->n - 2];
	if (--p->n < 2) {
		free(p->other);
		p->other = NULL;
	}
}
