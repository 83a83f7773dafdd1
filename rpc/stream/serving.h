/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A channel of a client, as the server has it, and the carrier: the service
 * whose calls carry the batches of all channels.
 *
 * A stream is opened by an ordinary call of its method, so the service's rules,
 * flavours and policies hold for it. The client names its channel by a random
 * number, which is no secret: a channel is found only for the process that has
 * opened its first stream, with the same proof of who it is (rpc/owner.h), and
 * calls for it must have at least the highest flavour of the channel's streams.
 * Therefore the carrier itself accepts any flavour: a client without streams
 * can do nothing there, and a service may let strangers open streams.
 *
 * A host may have as many streams of a service as it leaves free (rpc/quota.h);
 * a channel counts as one more stream of the service for which it was made.
 * Beyond that, opening a stream is refused as overloaded. A stream counts until
 * its END was sent, even if the client has closed it. So for each stream that
 * it opens, a host can make this node keep a window of messages that were not
 * read, as much that waits to be sent, metadata, and a few frames.
 *
 * Early batches are charged to the host by their bytes, on the node. A batch
 * beyond the host's share is refused as overloaded, and sent again later. If
 * the batch that is missing does not come, the channel ends.
 */
#ifndef RPC_STREAM_SERVING_H
#define RPC_STREAM_SERVING_H

#include "rpc/owner.h"
#include "rpc/quota.h"
#include "rpc/stream/stream.h"

struct ulrpc_stream_service {
	/* immutable after start: */
	struct ulrpc *rpc;
	struct ulrpc_service *service;
	struct streams_node *node;
	/* what the user has set as conf.ended; NULL: nothing */
	void (*ended)(void *arg);
	void *ended_arg;

	/* one reference of the service, and one of each stream */
	atomic_uint refs;
	atomic_bool stopping;
	/* node in streams_node.services, guarded by its lock */
	struct list of_node;
	/* guards what follows; no other lock is taken while it is held */
	pthread_mutex_t lock;
	struct quotas quotas;
	struct credit grant;   /* to a stream that is opened */
	unsigned int nstreams; /* streams, which are counted in @quotas, too */

	/* immutable after start: */
	char *name;
	unsigned int nentries;
	struct stream_entry {
		struct ulrpc_stream_service *service;
		ulrpc_stream_fn handler;
		void *arg;
		char *name;
	} entries[];
};

struct held {
	struct ulrpc_request *request;
	/* ns: when the call is answered, even if there is nothing to send */
	uint64_t until;
	uint32_t room; /* bytes that the reply may have */
	enum ulrpc_flavour flavour;
};

/* A channel, as the server has it. */
struct serving {
	struct channel ch;
	/* node in streams_node.by_key, guarded by its lock */
	struct hash_node by_key;
	/* the process that has opened the channel, with the connection by which
	 * its last call came */
	struct rpc_owner owner;
	/* the service for which the channel was made */
	struct ulrpc_stream_service *service;
	struct quota *quota;
	/* the host to which the channel is charged */
	struct ulnet_nid source;
	/* the charge for early batches; valid if there are any */
	struct quota *early;
	uint64_t gap; /* number of the batch that is missing */
	/* ns: since when it is missing; 0: none is */
	uint64_t gap_since;
	/* the highest flavour of the channel's streams */
	enum ulrpc_flavour flavour;
	/* ns: when the last pull call came, or was answered */
	uint64_t heard;
	/* number of the batch that the client waits for */
	uint64_t wanted;
	/* how many calls are in @held; the oldest is first */
	unsigned int nheld;
	struct held held[PULLS_MAX];
};

/* Drops a reference. Any thread. */
void rpc_stream_service_put(struct ulrpc_stream_service *svc);
/* Returns what is granted to a stream that is opened now. Any thread. */
struct credit rpc_stream_service_grant(struct ulrpc_stream_service *svc);
/* Charges @nid with one stream or channel, which gets a reference to @svc.
 * Returns NULL if the host has used up its share, or there is no memory. Any
 * thread. */
struct quota *rpc_stream_service_take(struct ulrpc_stream_service *svc,
				      const struct ulnet_nid *nid, bool stream,
				      uint64_t now);

/* Finds the channel @key of the process that has made @r, or makes it. @known:
 * the client has used the channel before. Returns 0, with a reference; -EBUSY:
 * the host has used up its share, or there is no memory; -ENOENT: the channel
 * is @known to the client, but forgotten here, or the client's connection has
 * ended. */
int serving_get(struct ulrpc_stream_service *svc, uint64_t key, bool known,
		const struct ulrpc_request *r, struct serving **v_p) must_check;
/* Called when @s has left its channel's table: gives back what was charged for
 * it. */
void serving_unlinked(struct ulrpc_stream *s);
/* Ends @s for the service, if the service has not ended it. */
void serving_cut(struct ulrpc_stream *s, int status, enum ulrpc_cause cause,
		 const char *text);
/* Starts the carrier's service, unless it is started. Returns 0 or -errno. */
int serving_carrier_start(struct ulrpc *rpc,
			  struct ulnet_conf_error *err) must_check;

#endif
