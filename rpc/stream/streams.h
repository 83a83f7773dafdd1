/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams on a node: a part of RPC. It knows all channels, so that they end
 * when RPC does, and finds the channels of clients.
 */
#ifndef RPC_STREAM_STREAMS_H
#define RPC_STREAM_STREAMS_H

#include "rpc/quota.h"
#include "rpc/stream/stream.h"

struct streams_node {
	/* one reference of RPC, one of each channel, and of each service with
	 * streams */
	atomic_uint refs;
	/* Guards what follows. It may be taken while a channel's lock is held,
	 * but not the other way round. */
	pthread_mutex_t lock;
	/* of channel.of_node: all channels that are not freed */
	struct list channels;
	struct list callers; /* of ulrpc_streams.of_node */
	/* of ulrpc_stream_service.of_node: those that have not ended */
	struct list services;
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
/* Drops a reference. Any thread. */
void streams_node_put(struct streams_node *n);
/* Calls @fn for each channel, with the channel's lock held. */
void streams_each(struct streams_node *n,
		  void (*fn)(struct channel *ch, void *arg), void *arg);

extern const struct rpc_part stream_part;

/* Called when the node's rules have changed: ends streams of clients that may
 * not open them any more (serving.c). */
void streams_on_rules(struct shard *s);

struct scope;

/* ---- streams at one of several servers: rpc/replicas/streams.c ---- */

/* Opens clients, all of them on one CPT. */
struct carrier_opener {
	int (*open)(void *arg, const struct ulrpc_client_conf *conf,
		    struct ulrpc_client **client_p);
	void *arg;
};

/* Opens the streams at the server conf->client.nids, on the CPT of the clients
 * that @opener opens, whose turn this is. The caller makes the calls that open
 * streams: there is no client for that. Returns 0 or -errno. */
int streams_open_at(struct ulrpc *rpc, const struct carrier_opener *opener,
		    const struct ulrpc_streams_conf *conf,
		    struct ulrpc_streams **streams_p);
/* Returns the patience that @conf asks for, in us, which is also the longest
 * time in which a stream may be opened; and its window. */
uint64_t streams_patience(const struct ulrpc_streams_conf *conf);
struct credit streams_window(const struct ulrpc_streams_conf *conf);
/* Returns where to read, on any thread, how many of the streams are open; valid
 * until @st is closed. */
const atomic_uint *streams_count(const struct ulrpc_streams *st);
/* Makes a stream, which has @deadline us and is in @scope, unless that is NULL,
 * and writes the first OPEN_HEAD bytes of the call that opens it to @head.
 * *@stream_p is a user's reference; its end is told to nobody before
 * ulrpc_stream_watch(). Returns 0, -ENOMEM, -ECANCELED or -ESHUTDOWN. Called by
 * the CPT, as the next ones are. */
int streams_begin(struct ulrpc_streams *st, uint64_t deadline,
		  struct scope *scope, uint8_t *head,
		  struct ulrpc_stream **stream_p) must_check;
/* Called once when the call that opens @s has ended, or could not be made.
 * Returns whether the service has got the stream. */
bool streams_opened(struct ulrpc_stream *s, const struct ulrpc_outcome *outcome,
		    const void *reply, size_t length);
/* Does @o, with which the call has ended that was to open @s, say that the
 * server has forgotten the channel, and so all of its streams? Then it has not
 * opened @s either. */
bool streams_forgotten(const struct ulrpc_stream *s,
		       const struct ulrpc_outcome *o);
/* Drops the user's reference to @s when the node has crashed. */
void streams_forget(struct ulrpc_stream *s);
/* Closes @streams when its last stream is over; no more can be opened. */
void streams_retire(struct ulrpc_streams *streams);

/* Called when RPC is being freed (caller.c). */
void callers_free(struct streams_node *n);

#endif
