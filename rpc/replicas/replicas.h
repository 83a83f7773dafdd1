/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of servers of one service: which ones they are, by the name or the NIDs
 * that the user has given, and what is known of each. Each has a client of its
 * own, on the CPT of the set, and calls are made by these clients (call.h).
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
	struct list sets; /* ulrpc_replicas.link */
	/* ends calls that wait, when RPC does */
	struct ulnet_work abort_work;
};
extern const struct rpc_part replicas_part;

struct ulrpc_replicas {
	/* immutable after open */
	struct ulrpc *rpc;
	struct shard *shard;
	struct ulrpc_client_conf conf; /* of each server, without its NID */
	char service[ULRPC_SERVICE_NAME];
	char *target, *server; /* NULL: conf had none */
	/* Servers refuse at once what they have no room for, as another one may
	 * have some; so conf.retry is this, made of the user's. */
	struct ulrpc_retry retry;
	bool tell_overloaded; /* the user wants it so, too */
	enum ulrpc_choice choice;
	unsigned int hedge;
	/* array: what the user has given instead of a target */
	struct ulnet_nid *nids;
	unsigned int nnids;

	struct list link;	 /* replicas_shard.sets */
	struct ulnet_name *name; /* NULL: conf had none, or it is closed */
	char why[LNET_NAME_WHY]; /* why there is no address */
	bool answered;		 /* there was an answer about the name */

	struct replica *all[ULRPC_REPLICAS_MAX]; /* by priority */
	unsigned int n;
	struct list gone; /* replica.gone: with calls that have not ended */
	struct replica_set numbers; /* of all and gone */

	/* replicas_call.link: calls that have not ended everywhere */
	struct list calls;
	struct list parked;  /* replicas_call.parked: they wait for a server */
	struct list waiting; /* attempt.waiting, the oldest first */
	struct ulnet_timer waiting_timer;
	struct times times;
	/* How many calls may be hedged now, in thousandths. */
	unsigned int hedges;

	struct ulnet_work work; /* looks at what has changed */
	bool given;		/* work has been given */
	struct ulnet_work close_work;
	bool closed;
	unsigned int busy; /* functions that must not free the set */
};

/* May calls be made? */
static inline bool replicas_are_open(const struct ulrpc_replicas *rs)
{
	return !rs->closed && !rs->shard->closing;
}

/* No call of @r is under way any more: frees it if it is not in the set. */
void replica_on_idle(struct replica *r);
/* Leaves @r for a while, which the log says. */
void replica_give_up(struct replica *r, bool outlier);
/* A call has ended: frees the set if it is closed, and this was the last one.
 */
void replicas_on_quiet(struct ulrpc_replicas *rs);

#endif
