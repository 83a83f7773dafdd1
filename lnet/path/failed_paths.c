/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/path/failed_paths.h"

#include "lnet/core/cpt.h"
#include "lnet/core/directory.h"

void failed_paths_add(struct failed_paths *f, const struct ulnet_nid *ni,
		      const struct ulnet_nid *peer)
{
	unsigned int i = f->n++ % FAILED_PATHS_MAX;

	f->path[i].ni = *ni;
	f->path[i].peer = *peer;
}

unsigned int failed_paths_count(const struct failed_paths *f,
				const struct ulnet_nid *ni,
				const struct ulnet_nid *peer)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < MIN(f->n, FAILED_PATHS_MAX); i++)
		count += (!ni || lnet_nid_eq(ni, &f->path[i].ni)) &&
			 (!peer || lnet_nid_eq(peer, &f->path[i].peer));
	return count;
}

unsigned int failed_paths_by(const struct lnet_cpt *cpt,
			     const struct failed_paths *f,
			     const struct ulnet_nid *gateway)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < MIN(f->n, FAILED_PATHS_MAX); i++)
		count += directory_same(&cpt->node->directory, &f->path[i].peer,
					gateway);
	return count;
}

void failed_paths_last(const struct failed_paths *f, struct ulnet_nid *ni,
		       struct ulnet_nid *peer)
{
	unsigned int i = (f->n - 1) % FAILED_PATHS_MAX;

	*ni = f->path[i].ni;
	*peer = f->path[i].peer;
}
