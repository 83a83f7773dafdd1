/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that accept no connections hear nothing of this node's NIs but over
 * connections of their own: discovery does not know them. When an NI of this
 * node goes, or comes back, each of them is told by every NID that it has been
 * heard from (lnet_tell(3)), so that it leaves a rail before it has to notice
 * that nothing comes back on it.
 *
 * NEWS_SLICE of them in a millisecond, so that calls go on meanwhile. What gets
 * lost is not repeated: then they have to notice.
 *
 * Owner: the CPT of the exports.
 */
#ifndef RPC_NEWS_H
#define RPC_NEWS_H

#include "ulnet/loop.h"

struct exports;
struct shard;

#define NEWS_SLICE 32

struct news {
	struct exports *exports;
	struct ulnet_timer timer; /* armed while there are some to be told */
	uint32_t pos;		  /* in exports.table */
};

void news_init(struct news *news, struct exports *x);
void news_stop(struct news *news);

/* The node's NIs, or their states, are others than they were. */
void news_begin(struct shard *s);

#endif
