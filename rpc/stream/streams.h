/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams on a node: a part of RPC. It knows all channels, so that they end
 * when RPC does, and finds the channels of clients.
 */
#ifndef RPC_STREAM_STREAMS_H
#define RPC_STREAM_STREAMS_H

#include "rpc/quota.h"
#include "rpc/stream/channel.h"

struct streams_node {
	atomic_uint refs; /* one reference of RPC, and one of each channel */
	/* Guards what follows. It may be taken while a channel's lock is held,
	 * but not the other way round. */
	pthread_mutex_t lock;
	/* of channel.of_node: all channels that are not freed */
	struct list channels;
	struct list callers; /* of ulrpc_streams.of_node */
	/* of serving.by_key: channels of clients that this node serves */
	struct hash by_key;
	/* bytes of early batches of clients, by their hosts */
	struct quotas early;
	uint64_t seed;
	/* the next channel.making: numbers that were most likely never given
	 * out before, by this process or an earlier one */
	_Atomic uint64_t makings;
	/* held while the carrier's service is being started; guards @carrier */
	pthread_mutex_t starting;
	bool carrier; /* was the carrier's service started? */
};

/* streams_add() makes the node know the channel, until streams_del(), which
 * channel_ops.free calls. */
void streams_add(struct channel *ch);
void streams_del(struct channel *ch);
/* Calls @fn for each channel, with the channel's lock held. */
void streams_each(struct streams_node *n,
		  void (*fn)(struct channel *ch, void *arg), void *arg);

extern const struct rpc_part stream_part;

/* Called when the node's rules have changed: ends streams of clients that may
 * not open them any more (serving.c). */
void streams_on_rules(struct shard *s);

/* Called when RPC is being freed (caller.c). */
void callers_free(struct streams_node *n);

#endif
