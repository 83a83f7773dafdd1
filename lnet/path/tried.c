/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/path/tried.h"

#include "base/util.h"

void tried_add(struct paths_tried *t, const struct ulnet_nid *ni,
	       const struct ulnet_nid *peer)
{
	unsigned int i = t->n++ % PATHS_TRIED_MAX;

	t->path[i].ni = *ni;
	t->path[i].peer = *peer;
}

unsigned int tried_count(const struct paths_tried *t,
			 const struct ulnet_nid *ni,
			 const struct ulnet_nid *peer)
{
	unsigned int known = MIN(t->n, PATHS_TRIED_MAX);
	unsigned int count = 0;

	for (unsigned int i = 0; i < known; i++)
		count += (!ni || lnet_nid_eq(ni, &t->path[i].ni)) &&
			 (!peer || lnet_nid_eq(peer, &t->path[i].peer));
	return count;
}

void tried_last(const struct paths_tried *t, struct ulnet_nid *ni,
		struct ulnet_nid *peer)
{
	unsigned int i = (t->n - 1) % PATHS_TRIED_MAX;

	*ni = t->path[i].ni;
	*peer = t->path[i].peer;
}
