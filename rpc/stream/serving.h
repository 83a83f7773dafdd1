/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A channel of a client, as the server has it, and the carrier, by which
 * batches come and go: the calls of all channels.
 *
 * A stream is opened by an ordinary call of its method, so rules, flavours and
 * policies of the service hold for it. The client names its channel by a random
 * number. That is no secret: a channel is only found for the process that has
 * opened its first stream, with the same proof of who it is (rpc/owner.h), and
 * what comes for it must have at least the flavour of the channel's streams. So
 * the carrier itself takes any flavour: who has no stream can do nothing there,
 * and a service for which strangers may open streams is served, too.
 *
 * Whose share: a host may have as many streams of a service as it leaves free
 * (rpc/quota.h); a channel counts as one more, of the service that it was made
 * for. Beyond that, opening a stream is refused as overloaded. A stream counts
 * until its END was sent, even if the client has closed it: so who has opened a
 * stream can make this node keep its window, read or not, as much to be sent,
 * and a few frames. Early batches are charged to the host by their bytes, at
 * the node; beyond its share, they are to be sent again later. If the one that
 * is missing does not come, the channel ends.
 */
#ifndef RPC_STREAM_SERVING_H
#define RPC_STREAM_SERVING_H

#include "rpc/owner.h"
#include "rpc/quota.h"
#include "rpc/stream/stream.h"

struct ulrpc_stream_service {
	/* immutable after start */
	struct ulrpc *rpc;
	struct ulrpc_service *service;
	struct credit grant;
	void (*ended)(void *arg); /* of the user; NULL: none */
	void *ended_arg;

	atomic_uint refs; /* the service, and streams */
	atomic_bool stopping;
	pthread_mutex_t lock; /* of quotas; innermost */
	struct quotas quotas;
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
	uint64_t until; /* ns */
	uint32_t room;	/* bytes of the reply */
	enum ulrpc_flavour flavour;
};

/* A channel, as the server has it. */
struct serving {
	struct channel ch;
	struct hash_node by_key; /* streams_node.by_key; with that lock */
	/* of the process that has opened it; its connection is the one that the
	 * last call came by */
	struct rpc_owner owner;
	struct ulrpc_stream_service *service; /* that it was made for */
	struct quota *quota;
	struct ulnet_nid source;    /* the host that is charged */
	struct quota *early;	    /* of its early batches, if there are any */
	uint64_t gap;		    /* the batch that is missing */
	uint64_t gap_since;	    /* ns; 0: none is missing */
	enum ulrpc_flavour flavour; /* the highest of its streams */
	uint64_t heard;		    /* ns: of the last pull call */
	uint64_t wanted;	    /* the batch that the client waits for */
	unsigned int nheld;	    /* the oldest first */
	struct held held[PULLS_MAX];
};

/* Any thread. */
void rpc_stream_service_put(struct ulrpc_stream_service *svc);
/* Charges @nid with a stream or a channel, which gets a reference to @svc;
 * NULL: the host has its share. Any thread. */
struct quota *rpc_stream_service_take(struct ulrpc_stream_service *svc,
				      const struct ulnet_nid *nid,
				      uint64_t now);

/* Finds the channel @key of who has made @r, or makes it. 0, with a reference;
 * -EBUSY; -ENOENT: it is @known to the client, and was forgotten. */
int serving_get(struct ulrpc_stream_service *svc, uint64_t key, bool known,
		const struct ulrpc_request *r, struct serving **v_p) must_check;
/* @s is in no table any more: whoever was charged is given back. */
void serving_unlinked(struct ulrpc_stream *s);
/* The node ends @s, if the service has not. */
void serving_cut(struct ulrpc_stream *s, int status, enum ulrpc_cause cause,
		 const char *text);
/* Starts the carrier's service, unless it is there. 0 or -errno. */
int serving_carrier_start(struct ulrpc *rpc,
			  struct ulnet_conf_error *err) must_check;
enum ulrpc_flavour request_flavour(const struct ulrpc_request *r);

#endif
