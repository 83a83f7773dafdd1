/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An export: the server's side of a connection, for one client process. A
 * Connect makes it. Messages name it by the server's handle; when the client
 * connects again, it is found by the client's id. It needs no buffers and no
 * timer: one timer per shard looks for clients that are silent.
 *
 * The id of a client is known to the client and its servers only. If there is
 * an export with the id of a Connect, then that Connect has
 * - the client's handle of the export, and a higher epoch: the export goes on
 *   ("reconnected"), the NID that the Connect came from is one more of its
 *   rails, and messages with the older epoch are refused from now on;
 * - that handle and the same epoch: it is repeated, and answered as before;
 * - that handle and a lower epoch, or the client's former handle: STALE_EPOCH;
 * - another handle, from another process (peer or pid), while the client of the
 *   export is heard: REFUSED, because an id belongs to one process;
 * - another handle otherwise: a new export replaces this one, because a process
 *   has one to each server, and the client may have been started again.
 * The checks for a former handle and for another process apply only once a
 * message has named the export: otherwise a late copy of a Connect may have
 * made it, and the client be the one that connects now.
 *
 * The keepalive of an export is what the client asks for, but at least 0.1 s,
 * and at most the node's. Once in that time the server checks for how long the
 * client has been silent.
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
#include "rpc/server/session/rails.h"
#include "rpc/server/session/record.h"
#include "rpc/server/queue/share.h"
#include "rpc/stats/stat.h"

struct wire_control;
struct wire_opened;

/* The id of a client, and on which CPT its export is. */
struct client_id {
	struct hash_node by_id;
	uint8_t id[RPC_ID_SIZE];
	unsigned int cpt;
};

struct export
{
	uint64_t id;	 /* in exports.table */
	uint64_t handle; /* on the wire: shard_handle(id) */
	uint64_t client; /* the client's handle */
	uint64_t former; /* and the one before that; 0: none */
	uint64_t opened; /* a bit for each portal whose service it asked for */
	uint64_t heard;	 /* ns: when last */
	uint64_t looked; /* ns: when its silence was last looked at */
	uint32_t epoch;
	uint32_t keepalive;	 /* us; 0: as the node's */
	uint32_t rtt;  /* us, as the client has measured; 0: unknown */
	uint32_t refs; /* request batches, and one while known */
	struct records records;	 /* of requests that came */
	struct list link;	 /* exports.silent */
	struct list shares;	 /* share.link: of services it has called */
	struct list bulk;	 /* transfers_conf.busy */
	struct list extending;	 /* ulrpc_request.extend_link: to be told */
	struct list extend_link; /* exports.extending */
	/* Messages of others that name this export are ignored. */
	struct ulnet_id peer;	 /* who connected, by its primary NID */
	struct ulnet_nid source; /* from this NID: the host that is charged */
	struct ulnet_nid rail;	 /* heard from last */
	struct list rails;	 /* export_rail.link; none without memory */
	uint8_t nrails;
	bool known;    /* in the tables */
	bool used;     /* a message has named it */
	bool returned; /* it was known when it connected with this epoch */
	struct quota *quota; /* of the NID that it was made for */
	/* suspect.c */
	struct list suspect_link; /* exports.suspects; empty: being probed */
	uint64_t suspect_at; /* ns: when the LND's connection was lost; 0: the
			      * client is no suspect */
	struct stat_peer stats;
	struct client_id id_of; /* in exports.ids */
};

#define EXPORT_CLOCKS 64

/* What exports call of services and requests, which are above (services.c). */
struct export_users {
	/* Of all records; .noted is export_noted(). */
	struct record_ops record_ops;
	/* Fills the answer to a client that asked for the service @name. */
	void (*opened)(struct shard *s, const char *name,
		       struct wire_opened *out);
	/* @client is gone without a Disconnect: calls conf.gone of the services
	 * on the portals @opened, a bit for each, which it had opened. */
	void (*gone)(struct shard *s, const struct ulnet_id *client,
		     uint64_t opened);
	/* Cancels all requests of @shares (share.link). */
	void (*forget)(const struct list *shares);
	/* Cancels @r, which is active. */
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
	uint64_t logged_at;	/* ns: that two processes have one client id */
	/* export.link, by looked, longest ago first; one list for each
	 * clock_of() */
	struct list silent[EXPORT_CLOCKS];
	struct quotas quotas;	  /* exports by NID */
	struct quotas chunks;	  /* and chunks of their records */
	struct hosts hosts;	  /* that use services */
	uint64_t heard;		  /* ns: when anybody was heard last */
	uint64_t dropped; /* ns: when the last export was, or RPC began */
	struct ulnet_timer timer; /* exports_look() */
	struct rails rails;
	struct list suspects; /* export.suspect_link, by time; to be probed */
	struct ulnet_timer suspect_timer; /* suspects_look() */
	struct list extending; /* export.extend_link: to be sent an Extend */
	struct ulnet_work extend_work; /* exports_extend(): set with users */
	bool extend_scheduled;
	bool closing;
};

extern const struct rpc_part export_part;

/* rpc_side: Connect, Open, Disconnect, Keepalive and Cancel. */
unsigned int export_control_cpt(const struct shard *s,
				const struct ulnet_event *ev,
				const struct wire_control *m);
void export_on_control(struct shard *s, const struct ulnet_event *ev,
		       const struct wire_control *m);

/* The CPT that @handle belongs to; there may be no such CPT, if the handle is
 * made up. */
static inline unsigned int export_cpt(uint64_t handle)
{
	return id_tag(handle);
}

/* Does a message from @source, another NID than e->rail, come from the process
 * of @e? It does if that process has connected from @source, too, or if @source
 * is a NID of the same peer. Then @source is noted as a rail. */
bool export_is_of(struct exports *x, struct export *e,
		  const struct ulnet_id *initiator,
		  const struct ulnet_nid *source);

/* A message of @initiator has come from @source, and names @handle and @client.
 * Returns the export of that connection, and notes that its client was heard;
 * NULL: there is none, or it is another client's. Borrowed within this turn. */
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

/* Calls @fn for each export; @fn drops none. */
void exports_each(struct exports *x, void (*fn)(struct export *e, void *arg),
		  void *arg);

static inline struct export *export_ref(struct export *e)
{
	e->refs++;
	return e;
}
void export_unref(struct export *e);

/* export_find() has not found @handle. Returns for how many us, at least, there
 * has been no such connection: since an export was last dropped. Requests that
 * were sent over the connection within that time were not executed. 0: there is
 * such a connection, but another client's. */
static inline uint64_t export_unknown_for(const struct exports *x,
					  uint64_t handle, uint64_t now)
{
	const struct export *e = id_slot_obj(&x->table, (uint32_t)handle);

	if (e && e->handle == handle)
		return 0;
	return (now - x->dropped) / NSEC_PER_USEC;
}

/* Returns the share of the client in the service on @portal: borrowed as long
 * as @e exists, or anything is charged to the share. NULL: no memory. */
struct share *export_share(struct exports *x, struct export *e,
			   unsigned int portal);

/* The client of @e has gone: drops @e and cancels its requests. */
void export_vanished(struct exports *x, struct export *e);

/* record_ops.noted */
void export_noted(struct records *rs, int slots);

/* rpc_side.on_conn_event: begins to suspect clients (suspect.c). */
void suspects_on_conn_event(struct shard *s, const struct conn_event *event);
/* The client of @e is not a suspect, or not any more. */
void suspect_end(struct export *e);
/* Probes the suspects whose time has come. */
void suspects_look(struct ulnet_timer *timer);

/* us of silence after which the client of @e is forgotten. @e NULL: with the
 * node's keepalive. */
uint64_t export_lease(const struct ulrpc *rpc, const struct export *e);

#endif
