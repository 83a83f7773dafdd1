/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The paths over which a message has failed: later attempts prefer other paths.
 * A path is kept as NIDs, because its interfaces may be deleted meanwhile. Only
 * messages that have failed have this structure.
 */
#ifndef LNET_FAILED_PATHS_H
#define LNET_FAILED_PATHS_H

#include "ulnet/lnet.h"

struct lnet_cpt;

#define FAILED_PATHS_MAX 16
struct failed_paths {
	/* number of failures, including those that path[] no longer has */
	uint32_t n;
	struct {
		struct ulnet_nid ni;
		struct ulnet_nid peer;
		/* ring: failure number i is at [i % FAILED_PATHS_MAX] */
	} path[FAILED_PATHS_MAX];
};

/* Adds a failure of the message, over the path from @ni to @peer. */
void failed_paths_add(struct failed_paths *f, const struct ulnet_nid *ni,
		      const struct ulnet_nid *peer);
/* Returns how many of the failures in path[] were on paths from @ni to @peer;
 * NULL stands for any NID. */
unsigned int failed_paths_count(const struct failed_paths *f,
				const struct ulnet_nid *ni,
				const struct ulnet_nid *peer);
/* Returns how many of the failures in path[] were on paths to the peer
 * @gateway, by any of its NIDs. */
unsigned int failed_paths_by(const struct lnet_cpt *cpt,
			     const struct failed_paths *f,
			     const struct ulnet_nid *gateway);
/* Sets the arguments to the path of the last failure. There must have been one.
 */
void failed_paths_last(const struct failed_paths *f, struct ulnet_nid *ni,
		       struct ulnet_nid *peer);

#endif
