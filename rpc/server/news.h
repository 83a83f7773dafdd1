/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notifies clients that accept no connections when an NI of this node goes, or
 * comes back. Discovery does not know such clients: they hear of this node's
 * NIs over the connections that they have made themselves, or not at all. So
 * each of them is told at every NID that it has been heard from (lnet_tell(3)).
 * It then leaves a rail that has gone at once, instead of after a timeout.
 *
 * At most NEWS_SLICE clients are told in a millisecond, so that calls go on
 * meanwhile. A notification that is lost is not repeated: that client has to
 * notice by itself.
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

/* The node's NIs, or their states, have changed. */
void news_begin(struct shard *s);

#endif
