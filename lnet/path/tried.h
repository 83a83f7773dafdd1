/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The paths over which a message was sent in vain: another try takes others
 * first. Named by NIDs, since interfaces may go meanwhile.
 *
 * Only a message that has failed has one of these; most messages never do.
 */
#ifndef LNET_PATH_TRIED_H
#define LNET_PATH_TRIED_H

#include "ulnet/nid.h"

/* Of those tried before, the last so many are known. */
#define PATHS_TRIED_MAX 16

struct paths_tried {
	uint32_t n; /* tries, also those that are not known any more */
	struct {
		struct ulnet_nid ni;
		struct ulnet_nid peer;
	} path[PATHS_TRIED_MAX]; /* the last ones, try i in [i % MAX] */
};

/* A message failed over the path from @ni to @peer. */
void tried_add(struct paths_tried *t, const struct ulnet_nid *ni,
	       const struct ulnet_nid *peer);

/* How many of the tries that are known went from @ni to @peer; NULL stands for
 * any. */
unsigned int tried_count(const struct paths_tried *t,
			 const struct ulnet_nid *ni,
			 const struct ulnet_nid *peer);

/* The path of the last try; there was one. */
void tried_last(const struct paths_tried *t, struct ulnet_nid *ni,
		struct ulnet_nid *peer);

#endif
