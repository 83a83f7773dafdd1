/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call to one of several servers: one call after another, each to one server
 * (an attempt), until one has answered, and sometimes two at a time.
 *
 * A call goes on to another server if all servers so far certainly have not
 * executed it, or if it may be executed more than once. It leaves a server
 * that cannot be connected to, or that is not connected to after a while,
 * before that server has ended it. When it was at all servers, it begins anew
 * after a pause.
 *
 * Owner: the CPT of the set, except for atomic fields.
 */
#ifndef RPC_REPLICAS_CALL_H
#define RPC_REPLICAS_CALL_H

#include "rpc/replicas/replicas.h"

struct attempt {
	struct ulrpc_replicas_call *of;
	struct replica *at; /* NULL: there is none under way */
	struct ulrpc_call *handle;
	uint64_t began;		/* ns */
	uint64_t waits_since;	/* ns */
	bool trial;		/* the server was left, and is tried */
	struct list of_replica; /* replica.attempts */
	struct list waiting;	/* replicas.waiting, or in no list */
};

/* At first and, as soon as that has ended, next: [0] or [1]; both are under way
 * while the call is hedged. */
#define CALL_ATTEMPTS 2

struct ulrpc_replicas_call {
	struct ulrpc_replicas *all;
	struct shard *shard;
	struct list link;   /* replicas.calls */
	struct list parked; /* replicas.parked, or in no list */
	struct attempt attempts[CALL_ATTEMPTS];
	uint64_t began, deadline; /* ns */
	/* PARKED: ends the pause; else: when to hedge */
	struct ulnet_timer timer;
	struct ulnet_work work; /* brings the call to its CPT */
	struct ulnet_work cancel;
	atomic_bool canceling; /* cancel was posted, or must not be any more */
	atomic_uint refs;      /* its CPT's, the user's, that of cancel */

	ulrpc_replicas_done_fn done;
	void *arg;
	bool ended;    /* done was called */
	bool over;     /* it is to end, by the timer */
	bool canceled; /* the user does not want it any more */
	bool unknown;  /* one of the attempts may have been executed */
	bool hedged;
	bool keyed;
	uint64_t key;
	uint32_t moves;
	unsigned int rounds; /* how often it was at all servers */
	struct replica_set tried;
	struct ulnet_nid server;   /* of last */
	struct ulrpc_outcome last; /* if the call has to end now */

	uint32_t method;
	size_t length;
	struct ulrpc_call_conf conf;
	/* what conf refers to */
	struct ulrpc_bulk *bulks[ULRPC_BULKS_MAX];
	char trace[ULRPC_TRACE_SIZE];
	struct ulrpc_retry retry;
	uint32_t retries; /* rounds, at most */
	bool tell_overloaded;
	uint8_t body[];
};

/* A server has been found: calls that wait go there. */
void calls_on_server(struct ulrpc_replicas *rs);
/* @r cannot be connected to, or goes: its calls go to others, if there are
 * any and as far as they may. */
void calls_leave(struct replica *r);
/* The name has no address: ends calls that are not to wait. */
void calls_on_no_address(struct ulrpc_replicas *rs);
/* Ends all calls as canceled. */
void calls_cancel(struct ulrpc_replicas *rs);
/* A function for the timer replicas.waiting_timer. */
void calls_on_waiting(struct ulnet_timer *timer);
/* Frees calls of a node that has crashed: nobody is told of their ends. */
void calls_drop(struct ulrpc_replicas *rs);

#endif
