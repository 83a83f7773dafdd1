/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams on a node: a part of RPC. It knows all channels, so that they end
 * when RPC does, and finds those of clients.
 */
#ifndef RPC_STREAM_STREAMS_H
#define RPC_STREAM_STREAMS_H

#include "rpc/quota.h"
#include "rpc/stream/channel.h"

struct streams_node {
	atomic_uint refs; /* RPC, and each channel */
	/* Guards what follows. It is taken with the lock of a channel held, but
	 * never the other way round. */
	pthread_mutex_t lock;
	struct list channels; /* channel.of_node: all, until they are freed */
	struct list callers;  /* ulrpc_streams.of_node */
	/* of clients that this node serves: serving_channel.by_key */
	struct hash by_key;
	struct quotas early; /* bytes of early batches of clients */
	uint64_t seed;
	/* for channel.making: numbers that no RPC of this process, or of one
	 * before, has given out, most likely */
	_Atomic uint64_t makings;
	/* While the carrier's service is being started; guards carrier. */
	pthread_mutex_t starting;
	bool carrier; /* it is started */
};

/* The node knows the channel until streams_del(), in channel_ops.free. */
void streams_add(struct channel *ch);
void streams_del(struct channel *ch);
/* Calls @fn, with the lock held, for each channel. */
void streams_each(struct streams_node *n,
		  void (*fn)(struct channel *ch, void *arg), void *arg);

extern const struct rpc_part stream_part;

/* serving.c: the node's rules have changed. Streams of clients that may not
 * open them any more end. */
void streams_on_rules(struct shard *s);

/* caller.c: RPC is being freed. */
void callers_free(struct streams_node *n);

#endif
