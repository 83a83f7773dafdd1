/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An export: the server's side of a connection, for one client process. Made by
 * Connect; known by the server's handle, which every message of the client's
 * names, and by the client's id, for when it connects again. Costs no buffers
 * and no timer: one clock per shard looks for those that have been silent.
 *
 * What makes a client known at Connect is its id, which only the client and its
 * servers know:
 * - same handle of its own, higher epoch: the same export goes on
 *   ("reconnected"), and the NID that it came from is one more of its client;
 *   what was sent with the older epoch is refused from now on;
 * - same handle, same epoch: a repeated question, answered as before;
 * - same handle, lower epoch, or the handle before this one: STALE_EPOCH;
 * - another handle, from another process (peer or pid), while the one that has
 *   the connection is heard: REFUSED, for an id is one process';
 *   (These two do not hold while no message has named the connection yet: it
 *   may have been made by a late copy of a Connect, and the one that comes now
 *   be that of the client.)
 * - another handle: the old connection is given up for a new one, for a process
 *   has one to each server, and this may be the next process.
 *
 * Its keepalive is what the client asks for, but at least 0.1 s, and at most
 * the node's. Once in that time the server checks for how long it has been
 * silent.
 *
 * Each host has its share of ulrpc_conf.exports_max (quota.h), and of the
 * records of calls (record.h).
 *
 * Owner: the CPT that owns the NID which the Connect came from.
 */
#ifndef RPC_EXPORT_H
#define RPC_EXPORT_H

#include "base/hash.h"
#include "base/id.h"
#include "rpc/quota.h"
#include "rpc/rpc.h"
#include "rpc/server/session/suspect.h"
#include "rpc/server/session/rails.h"
#include "rpc/server/session/record.h"
#include "rpc/server/queue/share.h"
#include "rpc/stats/stat.h"

struct wire_control;
struct wire_opened;

/* The id of a client, and on which CPT its connection is. */
struct client_id {
	struct hash_node by_id;
	uint8_t id[RPC_ID_SIZE];
	unsigned int cpt;
};

struct export
{
	uint64_t id;	 /* in exports.table */
	uint64_t handle; /* on the wire: id with a random upper half, so that
			  * who has one handle can guess no other */
	uint64_t client; /* the client's handle */
	uint64_t former; /* and the one before that; 0: none */
	uint64_t opened; /* a bit for each portal whose service it asked for */
	uint64_t heard;	 /* ns: when last */
	uint64_t looked; /* ns: when its silence was last looked at */
	uint32_t epoch;
	uint32_t keepalive;	 /* us; 0: as the node's */
	uint32_t rtt;		 /* us, as the client says; 0: it does not */
	uint32_t refs;		 /* one is the table's */
	struct records records;	 /* of requests that came */
	struct list link;	 /* exports.silent */
	struct list shares;	 /* share.link: of services it has called */
	struct list bulk;	 /* transfers_conf.busy */
	struct list extending;	 /* ulrpc_request.extend_link: to be told */
	struct list extend_link; /* exports.extending */
	/* Who connected, by its primary NID, and the NID it did so from, which
	 * is the host that it is counted for; and its rails: the NIDs that it
	 * has been heard from. Nobody else may speak for it. */
	struct ulnet_id peer;
	struct ulnet_nid source;
	struct ulnet_nid rail; /* the last one */
	struct list rails;     /* export_rail.link; none without memory */
	uint8_t nrails;
	bool known;    /* in the tables */
	bool used;     /* a message has named it */
	bool returned; /* it was known when it connected with this epoch */
	struct quota *quota; /* of the NID that it was made for */
	struct suspect suspect;
	struct stat_peer stats;
	struct client_id id_of; /* in exports.ids */
};

#define EXPORT_CLOCKS 64

/* Services and requests, which are above exports (services.c). */
struct export_users {
	/* Of all records; .noted is export_noted(). */
	struct record_ops record_ops;
	/* Fills what a client that asked for @name is told: status, and the
	 * rest. */
	void (*opened)(struct shard *s, const char *name,
		       struct wire_opened *out);
	/* @client is gone without a Disconnect: conf.gone. It had opened the
	 * services on the portals @opened, a bit for each. */
	void (*gone)(struct shard *s, const struct ulnet_id *client,
		     uint64_t opened);
	/* Nobody waits for what is under way of these: share.link. */
	void (*forget)(const struct list *shares);
	/* ... for @r, which is active. */
	void (*cancel)(struct ulrpc_request *r);
	/* The client has been heard from @source, and may fetch @body from
	 * there, too. */
	void (*reach)(struct record_body *body, const struct ulnet_nid *source);
};

struct exports {
	struct shard *shard;
	const struct export_users *users; /* set before anybody connects */
	struct id_table table;
	struct client_ids *ids; /* of all CPTs: ulrpc.client_ids */
	uint64_t said; /* ns: when the log was told of an id that two have */
	/* by looked, longest ago first; apart by keepalive: clock_of() */
	struct list silent[EXPORT_CLOCKS];
	struct quotas quotas;	  /* exports by NID */
	struct quotas chunks;	  /* and chunks of their records */
	struct hosts hosts;	  /* that hold something of services */
	uint64_t heard;		  /* ns: anybody, when last */
	uint64_t dropped;	  /* ns: the last export, or when it began */
	struct ulnet_timer timer; /* looks for silence */
	struct rails rails;
	struct suspects suspects;
	struct notifier notifier;
	struct list extending; /* export.extend_link: at the end of the turn */
	struct ulnet_work extend_work; /* exports_extend(): set with users */
	bool telling;		       /* that is under way */
	bool closing;
};

extern const struct rpc_part export_part;

/* Connect, Open, Disconnect, Keepalive, Cancel have come. */
void export_on_control(struct shard *s, const struct ulnet_event *ev,
		       const struct wire_control *m);

/* The CPT that @handle belongs to. The handle may be made up, and the CPT not
 * be there. */
static inline unsigned int export_cpt(uint64_t handle)
{
	return id_tag(handle);
}

/* Does a message that has come from @source, another NID than the last one,
 * come from the process that has connected? It does if it has connected from
 * there, too, or if that is a NID of the same peer, which is noted. */
bool export_is_of(struct exports *x, struct export *e,
		  const struct ulnet_id *initiator,
		  const struct ulnet_nid *source);

/* A message of @initiator has come, from @source, and names @handle and
 * @client. Returns the export of that connection, and notes that its client has
 * been heard; NULL: it is not known (any more), or is another client's.
 * Borrowed within this turn. */
static inline struct export *export_find(struct exports *x, uint64_t handle,
					 uint64_t client,
					 const struct ulnet_id *initiator,
					 const struct ulnet_nid *source,
					 uint64_t now)
{
	struct export *e = id_slot_obj(&x->table, (uint32_t)handle);

	if (!e || e->handle != handle || e->client != client)
		return NULL;
	if (unlikely(e->peer.pid != initiator->pid ||
		     !lnet_nid_eq(&e->rail, source)) &&
	    !export_is_of(x, e, initiator, source))
		return NULL;
	e->used = true;
	e->heard = now;
	x->heard = now;
	return e;
}

/* Calls @fn for each export; @fn drops none of them. */
void exports_each(struct exports *x, void (*fn)(struct export *e, void *arg),
		  void *arg);

static inline struct export *export_ref(struct export *e)
{
	e->refs++;
	return e;
}
void export_unref(struct export *e);

/* export_find() has not found @handle. For how many us, at least, has there
 * been no such connection? Since an export was last dropped: what was sent over
 * the connection within that time was executed by nobody. 0: there is such a
 * connection, but it was made from other addresses. */
static inline uint64_t export_unknown_for(const struct exports *x,
					  uint64_t handle, uint64_t now)
{
	const struct export *e = id_slot_obj(&x->table, (uint32_t)handle);

	if (e && e->handle == handle)
		return 0;
	return (now - x->dropped) / NSEC_PER_USEC;
}

/* What the client holds of the service on @portal: borrowed as long as @e, or
 * as it holds anything. NULL: no memory. */
struct share *export_share(struct exports *x, struct export *e,
			   unsigned int portal);

/* The client of @e cannot be reached: @e is dropped, with all that is under
 * way. */
void export_vanished(struct exports *x, struct export *e);

/* record_ops.noted */
void export_noted(struct records *rs, int slots);

/* us of silence after which the client of @e is forgotten. NULL: a client that
 * has not said what keepalive it wants. */
uint64_t export_lease(const struct ulrpc *rpc, const struct export *e);

#endif
