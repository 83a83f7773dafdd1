/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An export: the server's side of a connection, for one client process. A
 * Connect makes it. Messages name it by the server's handle; when the client
 * connects again, the server finds the export by the client's id. An export has
 * no buffers and no timer of its own: one timer per shard looks for clients
 * that are silent.
 *
 * The id of a client is known to the client and its servers only. If there is
 * an export with the id of a Connect, then that Connect has
 * - the client's handle of the export, and a higher epoch: the export goes on
 *   ("reconnected"), the NID that the Connect came from is one more of its
 *   rails, and messages with the older epoch are refused from now on;
 * - that handle and the same epoch: the Connect is a repeated one, and answered
 *   as before;
 * - that handle and a lower epoch, or the client's former handle: STALE_EPOCH;
 * - another handle, from another process (peer or pid), while the client of the
 *   export is heard: REFUSED, because an id belongs to one process;
 * - another handle otherwise: a new export replaces this one, because a process
 *   has one connection with each server, and the client may have been started
 *   again.
 * The checks for a former handle and for another process apply only after a
 * message has named the export. Until then a late copy of a Connect may have
 * made the export, and the process that connects now may be the real client.
 *
 * The keepalive of an export is what the client asks for, but at least 0.1 s,
 * and at most the node's. At least once per keepalive the server checks for how
 * long the client has been silent. A server that did not run itself, because it
 * was stopped or its machine was suspended, gives each client a new lease: it
 * has not read yet what clients have sent meanwhile.
 *
 * A client that has keys connects in a session (session.h). Its export belongs
 * to that session, and only messages that are sealed with the session's keys
 * name the export; they may come from any NID. If the client connects again,
 * its next session takes the place of this one. A client with another identity
 * that gives the same id, or one with none, is another client (client_ids.h).
 *
 * Each host has its share of ulrpc_conf.exports_max (quota.h), of the services
 * that its clients open, and of the records of calls (record.h). On a node that
 * has keys, clients that have not proved who they are get an eighth of these,
 * all together, and the others the rest, so strangers keep nobody out who is
 * known.
 *
 * Owner: the CPT that owns the NID which the Connect came from; or another one,
 * if that NID has several clients (export_control.c). The handle tells.
 */
#ifndef RPC_EXPORT_H
#define RPC_EXPORT_H

#include "base/id.h"
#include "rpc/bulk/loss.h"
#include "rpc/log_share.h"
#include "rpc/quota.h"
#include "rpc/rpc.h"
#include "rpc/server/session/client_ids.h"
#include "rpc/server/session/rails.h"
#include "rpc/server/session/record.h"
#include "rpc/server/session/session.h"
#include "rpc/server/queue/share.h"
#include "rpc/stats/stat.h"

struct wire_open;
struct wire_opened;
struct known_sets;

struct export
{
	uint64_t id;	 /* number in exports.table */
	uint64_t handle; /* handle on the wire: shard_handle(id) */
	uint64_t client; /* the client's handle of the connection */
	/* the client's handle of the export that this one replaced; 0: none */
	uint64_t former;
	uint64_t heard; /* ns: when a message last named the export */
	uint64_t since; /* ns: when the client last connected */
	/* ns: when the server last checked for how long the client was silent
	 */
	uint64_t looked;
	uint32_t epoch;
	uint32_t keepalive; /* us: the client's keepalive; 0: the node's */
	/* us: the round trip, as the client has measured it; 0: unknown */
	uint32_t rtt;
	/* one reference for each request batch, and one while @known */
	uint32_t refs;
	struct records records; /* records of the calls that have come */
	/* NULL: the client has no keys */
	struct session *session;
	/* peer.pid. With a session it is EXPORT_NO_PID, so that export_is_of()
	 * checks each message: the seal says whether it is the client's */
	uint64_t pid;
#define EXPORT_NO_PID UINT64_MAX
	/* the identity that the client has proved; NULL: none */
	struct identity *who;
	struct list link; /* node in exports.silent[] */
	/* of share.link: shares of the services that the client has opened; the
	 * one that was used last is first */
	struct list shares;
	struct list bulk; /* what transfers_conf.busy points to */
	/* of ulrpc_request.extend_link: requests to be in the next Extend */
	struct list extending;
	struct list extend_link; /* node in exports.extending */
	/* Messages from other processes that name this export are ignored. The
	 * process is the one with the pid of peer, on the host of peer. */
	/* the process that connected, with its primary NID */
	struct ulnet_id peer;
	/* the NID from which the client was heard last */
	struct ulnet_nid rail;
	/* how many calls of the client were refused by serve/permit.h */
	uint32_t refused;
	/* of export_rail.link; empty if there was no memory */
	struct list rails;
	uint8_t nrails;
	bool used : 1;	/* a message has named the export */
	bool known : 1; /* the export is in the tables of exports */
	/* the export existed already when the Connect with this epoch came */
	bool returned : 1;
	/* the client reads annexes of bodies: rpc/context/annex.h */
	bool annexes : 1;
	/* the highest flavour (enum ulrpc_flavour) that the client has agreed
	 * on with a service; 0: none yet */
	uint8_t agreed : 3;
	/* how many of @shares were charged to @opened: each has another number,
	 * which is less than SERVICE_NUMBERS */
	uint16_t nopened : 10;
	/* bytes of the longest reply that calls take which do not say a limit
	 */
	uint32_t reply_limit;
	struct bulk_pace bulk_pace; /* what transfers_conf.pace points to */
	/* sets of metadata that the client has named; NULL: none (known.h) */
	struct known_sets *known_sets;
	/* what is charged in export_pool_of(e)->exports, and ->opened */
	struct quota *quota, *opened;
	/* for suspect.c: */
	/* node in exports.suspects; not there while the client is being probed
	 */
	struct list suspect_link;
	uint64_t suspect_at; /* ns: when the LND's connection was lost; 0: the
			      * client is no suspect */
	/* statistics of the client; the NID in their id is the one that the
	 * client connected from: export_source() */
	struct stat_peer stats;
	struct client_id id_of; /* node in exports.ids */
};

#define EXPORT_CLOCKS 64

/* Functions of services and requests that exports call; services.c sets them,
 * because services are in a higher layer. */
struct export_users {
	/* the functions for the records of all exports, except `noted`, which
	 * is export_noted() */
	struct record_ops record_ops;
	/* Fills in the answer to the Open @in of the client of @e, and notes
	 * that the client has opened the service. */
	void (*opened)(struct shard *s, const struct wire_open *in,
		       struct export *e, struct wire_opened *out);
	/* Called when the client of @e has gone without a Disconnect: calls
	 * ulrpc_service_conf.gone of each service that the client had opened.
	 */
	void (*gone)(struct shard *s, struct export *e);
	/* Ends all requests of @shares (share.link): the connection has ended.
	 */
	void (*forget)(const struct list *shares);
	/* Cancels @r, which is under way. */
	void (*cancel)(struct ulrpc_request *r);
	/* The client of @body was heard from @source: lets it fetch @body from
	 * there, too. */
	void (*reach)(struct record_body *body, const struct ulnet_nid *source);
};

/* Exports of one class share what exports may take. A node without keys takes
 * all for EXPORT_PROVED. */
enum export_class { EXPORT_PROVED, EXPORT_STRANGER, EXPORT_CLASSES };

struct export_pool {
	struct shard *shard;
	struct quotas exports; /* how many exports there are, by NID */
	/* how many services their clients have opened, by NID */
	struct quotas opened;
	/* how many chunks of records these exports have, by NID */
	struct quotas chunks;
};

struct exports {
	struct shard *shard;
	const struct export_users *users; /* set before anybody connects */
	struct id_table table;
	struct client_ids *ids; /* of all CPTs: ulrpc.client_ids */
	struct sessions sessions;
	/* while a sealed message is handled: the session that it came in */
	struct session *proved;
	/* ns: when it was last logged that two processes have one client id; 0:
	 * never */
	uint64_t logged_at;
	/* Lists of export.link: the export that was looked at longest ago is
	 * first. clock_of() tells which list an export is in. */
	struct list silent[EXPORT_CLOCKS];
	/* ns, for each list: when it was noticed that this node had slept, and
	 * so has not read yet what clients have sent; 0: never */
	uint64_t woke[EXPORT_CLOCKS];
	struct export_pool pools[EXPORT_CLASSES];
	/* bytes of replies that services have left (kept.h) */
	struct quotas left;
	struct quotas sets; /* bytes of sets of metadata (known.h) */
	struct hosts hosts; /* the hosts of clients that use services */
	uint64_t heard;	    /* ns: when any client was heard last */
	/* ns: when an export was last dropped; at first: when RPC was opened */
	uint64_t dropped;
	struct ulnet_timer timer; /* calls exports_look() */
	struct rails rails;
	struct ulrpc_rules *rules; /* the node's rules; NULL: there are none */
	/* limits the log of calls that serve/permit.h refused */
	struct log_share logged;
	/* of export.suspect_link, by suspect_at: clients to be probed */
	struct list suspects;
	struct ulnet_timer suspect_timer; /* calls suspects_look() */
	/* of export.extend_link: clients to be sent an Extend */
	struct list extending;
	/* calls exports_extend(), which is set together with @users */
	struct ulnet_work extend_work;
	bool extend_scheduled;
	bool closing;
};

extern const struct rpc_part export_part;

/* Returns the NID that the client connected from, to which the client's use is
 * charged. */
static inline const struct ulnet_nid *export_source(const struct export *e)
{
	return &e->stats.id.nid;
}

/* Called when the call @c of @e was refused and so is not under way. If @e is a
 * stranger's, frees records that exist for refused calls only. */
void export_spare(struct exports *x, struct export *e,
		  const struct wire_call *c);

/* Returns the pool that @e and its records are charged to. */
static inline struct export_pool *export_pool_of(const struct export *e)
{
	return container_of(e->records.quotas, struct export_pool, chunks);
}

/* Returns the CPT in @handle. If the handle is made up, there may be no such
 * CPT. */
static inline unsigned int export_cpt(uint64_t handle)
{
	return id_tag(handle);
}

/* Has the sealed message that is now being handled come over the connection
 * @handle? */
static inline bool export_is_proved(const struct exports *x, uint64_t handle)
{
	const struct session *se = x->proved;

	return se && se->export && se->export->handle == handle;
}

/* Does a message from @source, which may be another NID than e->rail, come from
 * the process of @e? It does if that process has connected from @source, too,
 * or if @source is a NID of the same peer; or, if @e has a session, if the
 * message was sealed in that session. If so, notes @source as a rail of @e. */
bool export_is_of(struct exports *x, struct export *e,
		  const struct ulnet_id *initiator,
		  const struct ulnet_nid *source);

/* Returns the export of the connection that a message names by the server's
 * handle @handle and the client's handle @client, and notes that its client was
 * heard. The message is from @initiator and came from @source. NULL: there is
 * no such connection, or it is another client's. Borrowed within this turn. */
static inline struct export *export_find(struct exports *x, uint64_t handle,
					 uint64_t client,
					 const struct ulnet_id *initiator,
					 const struct ulnet_nid *source,
					 uint64_t now)
{
	struct export *e = id_slot_obj(&x->table, (uint32_t)handle);

	if (!e || e->handle != handle || e->client != client)
		return NULL;
	if (unlikely(e->pid != initiator->pid ||
		     !lnet_nid_eq(&e->rail, source)) &&
	    !export_is_of(x, e, initiator, source))
		return NULL;
	e->used = true;
	e->heard = now;
	x->heard = now;
	return e;
}

/* Calls @fn(e, @arg) for each export. @fn must not drop any. */
void exports_each(struct exports *x, void (*fn)(struct export *e, void *arg),
		  void *arg);

static inline struct export *export_ref(struct export *e)
{
	e->refs++;
	return e;
}
void export_unref(struct export *e);

/* Returns the keys that messages to the client of @e are sealed with; NULL:
 * they are not sealed. */
static inline struct sealed *export_seal(const struct export *e)
{
	return unlikely(e->session) ? e->session->sealed : NULL;
}

/* Called when export_find() has not found @handle. Returns for how many us, at
 * least, there has been no such connection: the time since an export was last
 * dropped. Requests that were sent over the connection within that time were
 * not executed. 0: there is such a connection, but another client's. */
static inline uint64_t export_unknown_for(const struct exports *x,
					  uint64_t handle, uint64_t now)
{
	const struct export *e = id_slot_obj(&x->table, (uint32_t)handle);

	if (e && e->handle == handle)
		return 0;
	return (now - x->dropped) / NSEC_PER_USEC;
}

/* Returns the share that the client of @e has of the service with @number:
 * borrowed as long as @e exists, or anything is charged to the share. NULL: the
 * client has never opened it. */
static inline struct share *export_share(struct exports *x, struct export *e,
					 unsigned int number)
{
	struct share *share = list_first(&e->shares, struct share, link);

	if (likely(!list_empty(&e->shares) && share->number == number))
		return share;
	return share_find(&x->hosts, &e->shares, e->handle, number);
}

/* Exports of a CPT can have opened so many services; each costs some hundred
 * bytes. Where exports_max is large, four for each. */
#define OPENED_MAX 262144u

/* Does what export_share() does, but makes the share if there is none. NULL:
 * the host of the client has opened its share, or there is no memory. */
struct share *export_share_get(struct exports *x, struct export *e,
			       unsigned int number);

/* Forgets what was found out about which calls the client of @e may make. */
void export_judge_anew(struct export *e);
/* What rpc_side.on_keys calls. */
void exports_on_keys(struct shard *s, const struct keys *keys);
/* What rpc_side.on_rules calls: takes the node's new rules. */
void exports_on_rules(struct shard *s);

/* Drops @e, whose client has gone, and cancels its requests. */
void export_vanished(struct exports *x, struct export *e);

/* What record_ops.noted calls. */
void export_noted(struct records *rs, int slots);

/* What rpc_side.on_conn_event calls: begins to suspect clients (suspect.c). */
void suspects_on_conn_event(struct shard *s, const struct conn_event *event);
/* Takes @e out of the suspects, because its client was heard or has gone. */
void suspect_end(struct export *e);
/* Probes the suspects whose time has come. */
void suspects_look(struct ulnet_timer *timer);

/* Returns after how many us of silence the client of @e is forgotten: three
 * keepalives of @e, or of the node if @e is NULL. */
uint64_t export_lease(const struct ulrpc *rpc, const struct export *e);

#endif
