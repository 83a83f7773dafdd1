/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An import: this node's connection, as a client, to another node. There is one
 * for each set of NIDs, shared by all clients of it. It connects when a client
 * has calls, and again when the connection is lost, until the last client
 * closes. An import without a call that waits does not connect.
 *
 *	IDLE -> CONNECTING -> FULL <-> SUSPECT -> DISCONN -> CONNECTING ...
 *
 * The pauses before an import connects again do not grow with the time that the
 * server is away: messages to a server that cannot be reached wait in the LND,
 * which has its own pauses. The import's pauses depend on how many clients the
 * server has, as the server says when it accepts a connection and when it
 * answers keepalives.
 *
 * A keepalive also tells the server which calls have ended, half a second after
 * the last message, so that the server keeps nothing for a silent client.
 *
 * Owner: the CPT that owns the NIDs.
 */
#ifndef RPC_IMPORT_H
#define RPC_IMPORT_H

#include "base/fsm.h"
#include "base/hash.h"
#include "base/id.h"
#include "rpc/estimate.h"
#include "rpc/client/imports.h"
#include "rpc/client/retry.h"
#include "rpc/client/slots.h"
#include "rpc/rpc.h"
#include "rpc/sealed.h"
#include "rpc/slab.h"
#include "rpc/stats/stat.h"
#include "secure/handshake.h"

struct sealed;
struct shake;

enum import_state {
	IMPORT_IDLE,	   /* not connected, and not wanted */
	IMPORT_CONNECTING, /* Connect was sent, and is not answered */
	IMPORT_FULL,	   /* connected */
	IMPORT_SUSPECT,	   /* as FULL, but the server may be dead */
	IMPORT_DISCONN,	   /* waits before it connects again */
	IMPORT_CLOSED,
	IMPORT_STATES
};
extern const struct fsm_state import_states[IMPORT_STATES];

struct import {
	struct shard *shard;
	struct hash_node hash;	 /* imports.by_nids */
	struct hash_node by_nid; /* imports.by_nid, with the key primary */
	struct list link;	 /* imports.all */
	uint64_t id;		 /* in imports.handles */
	/* names the import on the wire: shard_handle() */
	uint64_t handle;
	/* It has no server, and is in no table: it is for a client whose target
	 * is a name that is not known yet. CLOSED from the beginning. */
	bool nameless;
	struct import_name name; /* by which servers know the import */
	struct stat_peer stats;
	struct list clients; /* ulrpc_client.link */

	/* Calls are numbered in the order in which they are first sent, over
	 * all connections. */
	uint64_t xid;	    /* the last number used */
	struct list calls;  /* that have a number: ulrpc_call.order, by xid */
	struct slots slots; /* of these calls */

	struct cancels cancels; /* calls that ended in this turn */

	struct list batches; /* those that are not over: batch.of_import */

	/* Memory for replies (batch.h): the buffers that no batch uses, and how
	 * many there are with those that batches use. */
	struct list reply_bufs;
	unsigned int nreply_bufs;

	/* nid: index of the NID in use, or being tried */
	unsigned int nnids, nid;
	uint32_t pid;
	struct ulnet_nid nids[ULRPC_NIDS_MAX];
	/* the primary NID for the NID in use, when last looked up */
	struct ulnet_nid primary;
	/* another CPT may own a NID of the server, as last looked up; counted
	 * in shard.far */
	bool far;

	struct fsm fsm;
	uint32_t epoch;
	uint64_t connection; /* the server's handle of the connection */
	bool knows_server;   /* server_id is set */
	uint8_t server_id[RPC_ID_SIZE];
	uint32_t server_clients; /* about how many clients the server has */
	uint64_t retry_after;	 /* ns to wait, as the server wants */
	/* why there is no connection, by the last word of the server:
	 * ULRPC_CAUSE_SHUTDOWN, _REFUSED or _OVERLOADED; ULRPC_CAUSE_OK: it has
	 * not said */
	enum ulrpc_cause away;
	/* what the server knew when the connection was lost is gone, because it
	 * is another one now, or has ended; not because it has forgotten this
	 * client */
	bool restarted;

	/* Both sides prove who they are: a handshake (shake.h) comes before
	 * Connect, and all messages are sealed. */
	bool secure;
	struct shake *shake;   /* CONNECTING: the handshake goes on; or NULL */
	struct sealed *sealed; /* the keys of this epoch; NULL: none yet */
	struct sealed_past past; /* keys of earlier epochs */
	struct identity *who;  /* who the server was, when last connected */
	struct ticket ticket;  /* for the next handshake */
	/* why the server is not believed, or does not believe this node; "":
	 * that is not so, or not known yet */
	char refusal[ULRPC_TEXT_MAX];

	/* FULL */
	uint64_t keepalive;   /* ns */
	uint64_t since;	      /* ns: when the connection was made */
	uint64_t heard, sent; /* ns: the last message from and to the server */
	uint64_t acked_sent;  /* import_acked(), as last told the server */
	/* import_acked() is soon compared with acked_sent, and the server is
	 * told if it has changed */
	bool ack_due;
	struct retry_budget budget;
	uint64_t connect_time; /* ns: what it took to connect */
	/* round trips of first attempts, without the time at the server */
	struct mean rtt;
	struct mean fetched; /* time of successful GETs of long replies */
	/* ns: when the last call ended, or the connection was made */
	uint64_t used;
	uint64_t sequence;   /* of keepalives */
	/* ns: when the last keepalive was sent; when the last one was that has
	 * been answered at once (import_is_prompt()) */
	uint64_t asked_alive, prompt;
	unsigned int probes; /* sent in a row without an answer */
	/* The rail of the last probe (ANY: not known), and the next hop on it,
	 * which is a gateway or the target. */
	struct ulnet_nid probe_local, probe_target, probe_hop;
	/* ns: the smallest @within of import_asked() since a probe was
	 * answered; 0: none */
	uint64_t detect_within;
	/* ns: when the last probe was sent, or the connection was made */
	uint64_t probed;
	uint64_t looked; /* ns: the last import_look(), or the same */

	/* Adaptive back-off: the usual times of attempts and queries are
	 * multiplied by 2^backoff. It grows when a query is not answered in
	 * time, but not before backoff_until, ns. It shrinks when a call is
	 * answered that was not asked about, when a query is answered at once,
	 * and when a query is not answered, but a keepalive that was sent later
	 * was at once: then the query is not late, but lost.
	 *
	 * Without back-off, the usual time would stay too short when a server
	 * becomes slower, as calls that were asked about are no samples of it,
	 * and queries would add to the server's load. */
	unsigned int backoff;
	uint64_t backoff_until;

	/* Rails by which the server did not know this node: import_unknown() */
	struct {
		/* the rail over which the connection was made: this node's NID,
		 * and the server's */
		struct ulnet_nid made, to;
		/* ns: when Connect was sent for a rail; 0: it was answered */
		uint64_t asked;
		unsigned int n; /* such rails, since the connection was made */
	} join;

	/* CONNECTING, DISCONN */
	/* how many NIDs were not tried since the last pause */
	unsigned int untried;
	uint64_t begun;	      /* ns: when this attempt to connect began */
	uint64_t attempt_end; /* ns: when this attempt to connect ends */
	/* LNet is still sending a Connect of this attempt */
	bool connect_sending;
	bool waiting; /* DISCONN: a sign of life of the server ends the pause */

	/* Failures in a row, without an answered call between: connections that
	 * were lost or could not be made, and messages that were not delivered.
	 * If one event hits several messages, it counts once: the failure of a
	 * message counts only if the message was sent after the last failure.
	 */
	unsigned int failures;
	uint64_t failed; /* ns: when a message last failed, and was counted */
	struct import_conn_loss conn_loss;

	struct ulnet_timer timer; /* the next thing to do in this state */
	struct ulnet_timer pause; /* FULL: no calls are sent till then */
};

/* Makes an import, which the shard does not know yet. The caller owes
 * import_attach() or import_free(). NULL: no memory. Any thread. */
struct import *import_new(struct shard *s, const struct ulnet_nid *nids,
			  unsigned int nnids, uint32_t pid, bool secure);
/* Makes an import without a server, which imports.all has. NULL: no memory.
 * Owner. */
struct import *import_new_nameless(struct shard *s, bool secure);
/* Calls @fn for each client of @imp; @fn must not remove any of them. */
void import_each_client(struct import *imp, void (*fn)(struct ulrpc_client *c));
/* Disconnects for good: the import does nothing after that. */
void import_end(struct import *imp);

static inline bool import_is_up(const struct import *imp)
{
	return imp->fsm.state == IMPORT_FULL ||
	       imp->fsm.state == IMPORT_SUSPECT;
}

/* The number up to which all calls are over. */
uint64_t import_acked(const struct import *imp);
/* Calls have ended: the server is told soon, by the next message or by a
 * keepalive. */
void import_ack_soon(struct import *imp);

static inline struct ulnet_id import_target(const struct import *imp)
{
	return (struct ulnet_id){ imp->nids[imp->nid], imp->pid };
}

/* All calls of a client have ended. */
void import_used(struct import *imp);
/* A client has something to send: connects if the import is idle. */
void import_want(struct import *imp);
/* A message came from the server. */
static inline void import_heard(struct import *imp, uint64_t now)
{
	imp->heard = now;
}
/* A message of @epoch may not have been delivered: probes the server. */
void import_suspect(struct import *imp, uint32_t epoch);
/* A query about calls was sent. It counts as a probe, as a live server answers
 * it at once. A dead server is to be detected in not much more than @within ns,
 * in which attempts of such calls should be answered. */
void import_asked(struct import *imp, uint32_t epoch, uint64_t within);
/* A message that was sent at @sent, ns, was not delivered: sends no calls for a
 * pause, and probes the server. */
void import_undelivered(struct import *imp, uint32_t epoch, uint64_t sent);
/* The server has answered a call: ends the pause. */
void import_served(struct import *imp);
/* @ns, lengthened by the back-off, but not beyond IMPORT_BACKOFF_MAX. */
#define IMPORT_BACKOFF_MAX (5 * NSEC_PER_SEC)
static inline uint64_t import_backed_off(const struct import *imp, uint64_t ns)
{
	if (likely(!imp->backoff) || ns >= IMPORT_BACKOFF_MAX)
		return ns;
	return MIN(ns << imp->backoff, IMPORT_BACKOFF_MAX);
}
/* May calls be sent? */
static inline bool import_is_ready(const struct import *imp)
{
	return import_is_up(imp) && !lnet_timer_armed(&imp->pause);
}
/* The server has shown that it is alive: if the import waits for such a sign,
 * arms its timer, to connect in this turn. */
void import_on_sign(struct import *imp);
/* ns that nearly all round trips take, without the time at the server. Before
 * the first sample: what it took to connect, but at least 100 ms. */
uint64_t import_rtt(const struct import *imp);
/* What the server takes at most to answer a query or a keepalive, ns, without
 * the round trip. */
#define IMPORT_QUERY_TIME (20 * NSEC_PER_MSEC)
/* Has the server answered at once what was sent at @sent, ns? */
static inline bool import_is_prompt(const struct import *imp, uint64_t sent,
				    uint64_t now)
{
	return now - sent <= import_rtt(imp) + IMPORT_QUERY_TIME;
}
/* import_rtt() in us, but without the 100 ms: what the server is told. */
uint64_t import_rtt_us(const struct import *imp);
/* Jitter against a thundering herd: the range, ns, of the pauses of clients
 * that have lost the server at the same moment; 0 if it has few clients. */
uint64_t import_jitter(const struct import *imp);
/* A pause, ns, between attempts of anything that needs the server. @n: failures
 * in a row before. */
uint64_t import_pause(const struct import *imp, unsigned int n);
/* The server does not know the connection of @epoch: connects again. */
void import_lost(struct import *imp, uint32_t epoch);
/* The server is not believed any more, as @why says: it has to prove anew who
 * it is, if the import is connected or connecting. */
void import_doubted(struct import *imp, const char *why);
/* The server got a message by the rail from @local to @target (ANY: not known),
 * and does not know the connection that the message named. Perhaps it only does
 * not know that @local is a NID of this node: sends Connect by that rail, too.
 */
void import_unknown(struct import *imp, uint32_t epoch,
		    const struct ulnet_nid *local,
		    const struct ulnet_nid *target);
/* With this cause calls end that the server no longer knows. */
static inline enum ulrpc_cause import_forgotten_cause(const struct import *imp)
{
	return imp->restarted ? ULRPC_CAUSE_RESTARTED : ULRPC_CAUSE_FORGOTTEN;
}
/* A slot has become free, and calls wait for one. */
void import_on_slot(struct import *imp);
/* The call that holds @slot ends. */
static inline void import_slot_put(struct import *imp, uint32_t slot)
{
	slots_put(&imp->slots, slot);
	if (unlikely(imp->slots.wanted))
		import_on_slot(imp);
}

#endif
