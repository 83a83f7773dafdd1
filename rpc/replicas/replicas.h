/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of servers of one service: which servers these are, by the name or the
 * NIDs that the user has given, and what is known of each. For each server
 * there is a client, on the CPT of the set, by which calls are made there
 * (call.h).
 *
 * Owner: the CPT of the set, except for what never changes.
 *
 * A set is freed when its user has closed it and all of its calls have ended,
 * or with RPC.
 */
#ifndef RPC_REPLICAS_H
#define RPC_REPLICAS_H

#include "rpc/client/client.h"
#include "rpc/replicas/replica.h"
#include "rpc/replicas/times.h"
#include "rpc/rpc.h"

/* The sets of a CPT. */
struct replicas_shard {
	struct shard *shard;
	struct list sets; /* of ulrpc_replicas.link */
	/* ends calls that wait when RPC ends */
	struct ulnet_work abort_work;
};
extern const struct rpc_part replicas_part;

struct ulrpc_replicas {
	/* immutable after open: */
	struct ulrpc *rpc;
	struct shard *shard;
	/* configuration of the clients of all servers, without NIDs; owner:
	 * replicas_set() changes inflight_max */
	struct ulrpc_client_conf conf;
	/* configuration of streams, without that of a client */
	struct ulrpc_streams_conf streams;
	/* us: streams_patience() of it, which any thread reads that opens a
	 * stream */
	_Atomic uint64_t patience;
	char service[ULRPC_SERVICE_NAME];
	char *target, *server; /* NULL: the user has given none */
	struct call_chain *chain; /* of the user's interceptors */
	/* The retry rule of the clients: the user's, but with tell_overloaded,
	 * so that a call which one server has no room for goes to another one.
	 */
	struct ulrpc_retry retry;
	/* what the user has set as retry.tell_overloaded */
	bool tell_overloaded;
	enum ulrpc_choice choice;
	unsigned int hedge;
	/* array of the NIDs that the user has given instead of a target */
	struct ulnet_nid *nids;
	unsigned int nnids;

	struct list link; /* node in replicas_shard.sets */
	/* NULL: the user has given no target, or the name is closed */
	struct ulnet_name *name;
	char why[LNET_NAME_WHY]; /* why the name has no address */
	bool answered;		 /* has there been an answer about the name? */

	struct replica *all[ULRPC_REPLICAS_MAX]; /* the servers, by priority */
	unsigned int n;
	/* of replica.gone: former servers with calls that have not ended */
	struct list gone;
	/* replica.number of all servers in @all and @gone */
	struct replica_set numbers;
	/* servers of the name for which there was no room, or no memory */
	struct ulnet_address missing[ULRPC_REPLICAS_MAX];
	unsigned int nmissing;
	struct ulnet_timer missing_timer; /* armed if there was no memory */

	/* of ulrpc_replicas_call.link: calls that have not ended at all servers
	 */
	struct list calls;
	/* Calls of which the user has not heard the end. The clients have no
	 * limits of their own. */
	uint32_t ncalls;
	struct backlog backlog;
	/* of ulrpc_replicas_call.parked: calls that wait for a server */
	struct list parked;
	/* of attempt.waiting: attempts that wait for a connection, the oldest
	 * first */
	struct list waiting;
	struct ulnet_timer waiting_timer;
	struct times times;

	struct ulnet_work work; /* looks at servers that have changed */
	bool given;		/* is @work posted? */
	struct ulnet_work close_work;
	bool closed;
	/* how many functions are running during which the set must not be freed
	 */
	unsigned int busy;
};

/* May calls be made? */
static inline bool replicas_are_open(const struct ulrpc_replicas *rs)
{
	return !rs->closed && !rs->shard->closing;
}

/* Called when a call at @r has ended. If it was the last one, and @r is not in
 * the set any more, frees @r. */
void replica_on_idle(struct replica *r);
/* Leaves @r for a while, and logs that. @outlier: it can be connected to. */
void replica_give_up(struct replica *r, bool outlier);
/* Called when a call has ended: frees the set if it is closed, and this was its
 * last call. */
void replicas_on_quiet(struct ulrpc_replicas *rs);

#endif
