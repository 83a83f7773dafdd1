/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An import: this node's connection, as a client, to another node. There is one
 * for each set of NIDs, shared by all clients of it. It connects when it is
 * wanted, and again when the connection is lost, until the last client closes.
 *
 *	IDLE -> CONNECTING -> FULL <-> SUSPECT -> DISCONN -> CONNECTING ...
 *
 * How long a server is away does not make pauses longer: while the server
 * cannot be reached, messages wait in the LND, which tries with its own pauses.
 * Pauses here depend on how many clients the server has, as it says when it
 * accepts a connection and in its answers to keepalives. An import that nobody
 * waits for does not connect.
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
#include "rpc/slab.h"
#include "rpc/stats/stat.h"

struct wire_control;

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
	struct hash_node by_nid; /* imports.by_nid, by primary */
	struct list link;	 /* imports.all */
	uint64_t id;		 /* in imports.handles */
	uint64_t handle;	 /* ours, on the wire: shard_handle() */
	struct import_name name; /* by which servers know us */
	struct stat_peer stats;
	struct list clients; /* ulrpc_client.link */

	/* Calls are numbered in the order in which they are first sent, over
	 * all connections. */
	uint64_t xid;	    /* the last number used */
	struct list calls;  /* that have a number: ulrpc_call.order, by xid */
	struct slots slots; /* of these calls */

	struct cancels cancels; /* calls that ended in this turn */

	struct list batches; /* not over: batch.of_import */

	/* Memory for replies (batch.h): the buffers that no batch uses, and the
	 * number of all that are kept. */
	struct list reply_bufs;
	unsigned int nreply_bufs;

	unsigned int nnids, nid; /* nid: the one in use, or being tried */
	uint32_t pid;
	struct ulnet_nid nids[ULRPC_NIDS_MAX];
	struct ulnet_nid primary; /* of the NID in use, when last looked up */
	bool far; /* counted in shard.far, because of what was found then */

	struct fsm fsm;
	uint32_t epoch;
	uint64_t connection; /* the server's handle */
	bool knows_server;   /* server_id is set */
	uint8_t server_id[RPC_ID_SIZE];
	uint32_t server_clients; /* about how many clients the server has */
	uint64_t retry_after;	 /* ns the server wants us to wait */
	bool shutting_down;	 /* the server is, by its last word about it */

	/* FULL */
	uint64_t keepalive;   /* ns */
	uint64_t heard, sent; /* ns: the last message from and to it */
	uint64_t acked_sent;  /* import_acked(), as last sent */
	bool ack_due; /* the timer soon compares that with import_acked() */
	struct retry_budget budget;
	uint64_t connect_time; /* ns: what it took to connect */
	struct mean rtt;     /* of first attempts, without the server's time */
	struct mean fetched; /* time of successful GETs of long replies */
	uint64_t used;	     /* ns: when the last call ended or began */
	uint64_t sequence;   /* of keepalives */
	unsigned int probes; /* in a row without an answer */
	/* The rail of the last probe (ANY: not known), and its next hop, which
	 * is a gateway or the target. */
	struct ulnet_nid probe_local, probe_target, probe_hop;
	uint64_t detect_within; /* ns: the least of import_asked(); or 0 */
	uint64_t probed; /* ns: the last probe was sent, or the connection was
			  * made */

	/* Adaptive back-off: attempts and queries have 2^backoff times their
	 * usual time. Grows when a query is not answered in time, but not
	 * before backoff_until, ns; shrinks when a call is answered that was
	 * not asked about. Without it, when a server becomes slower, the usual
	 * time would stay too short, as calls that were asked about are no
	 * samples of it, and queries would add to the server's load. */
	unsigned int backoff;
	uint64_t backoff_until;

	/* Rails that the server was not known by before: import_unknown(). */
	struct {
		struct ulnet_nid made, to; /* the connection's rail: our NID,
					    * and the server's */
		uint64_t asked; /* ns: when Connect was sent; 0: answered */
		unsigned int n; /* rails, since the connection was made */
	} join;

	/* CONNECTING, DISCONN */
	unsigned int untried; /* NIDs not tried since the last pause */
	uint64_t begun;	      /* ns: this attempt */
	uint64_t attempt_end; /* ns: of this attempt */
	bool connect_sending; /* LNet has a Connect of this attempt */
	bool waiting; /* DISCONN: a sign of life of the server ends the pause */

	/* Failures in a row, without an answered call between: connections that
	 * were lost or could not be made, and messages that were not delivered.
	 * A message that was sent before the last failure is no failure of its
	 * own: an event counts once, however many messages it hits. */
	unsigned int failures;
	uint64_t failed; /* ns: the last one, of messages */
	struct import_conn_loss conn_loss;

	struct ulnet_timer timer; /* the next thing to do in this state */
	struct ulnet_timer pause; /* FULL: no calls are sent till then */
};

/* Makes an import, which the shard does not know yet. NULL: no memory; else the
 * caller owes import_attach() or import_free(). Any thread. */
struct import *import_new(struct shard *s, const struct ulnet_nid *nids,
			  unsigned int nnids, uint32_t pid);
/* Calls @fn for each client of @imp; @fn must not remove any from the list. */
void import_each_client(struct import *imp, void (*fn)(struct ulrpc_client *c));
/* Disconnects, and does nothing after that. */
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

/* The last call of a client has ended. */
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
 * at once. Attempts of these calls should be answered @within ns: a dead server
 * is to be detected in not much more. */
void import_asked(struct import *imp, uint32_t epoch, uint64_t within);
/* A message that was sent at @sent, ns, was not delivered: sends no calls for a
 * pause, and probes the server. */
void import_undelivered(struct import *imp, uint32_t epoch, uint64_t sent);
/* The server has answered a call: ends the pause. */
void import_served(struct import *imp);
/* @ns, lengthened by the back-off, but not beyond this. */
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
/* A sign of life of the server: connects soon if the import waits for one. Only
 * arms a timer. */
void import_on_sign(struct import *imp);
/* ns that nearly all round trips take, without the time at the server. Before
 * the first sample: what it took to connect, but at least 100 ms. */
uint64_t import_rtt(const struct import *imp);
/* The same in us, as the server is told: without the 100 ms. */
uint64_t import_rtt_us(const struct import *imp);
/* Jitter against a thundering herd: the range, ns, of the pauses of clients
 * that the server has lost at the same moment; 0 if it has few. */
uint64_t import_jitter(const struct import *imp);
/* A pause, ns, between attempts of anything that needs the server. @n: failures
 * in a row before. */
uint64_t import_pause(const struct import *imp, unsigned int n);
/* The server does not know the connection of @epoch: connects again. */
void import_lost(struct import *imp, uint32_t epoch);
/* The server got a message by the rail from @local to @target (ANY: not known),
 * and does not know the connection that the message named. Perhaps it only does
 * not know that @local is ours: so Connect is sent by that rail, too. */
void import_unknown(struct import *imp, uint32_t epoch,
		    const struct ulnet_nid *local,
		    const struct ulnet_nid *target);
/* A slot has become free, and calls wait for one. */
void import_on_slot(struct import *imp);
/* The call that holds @slot ends. */
static inline void import_slot_put(struct import *imp, uint32_t slot)
{
	slots_put(&imp->slots, slot);
	if (unlikely(imp->slots.wanted))
		import_on_slot(imp);
}
/* The CPT of the import that @m names; a wrong @m may name one that does not
 * exist. UINT_MAX: @m is not for an import. */
unsigned int import_control_cpt(const struct shard *s,
				const struct ulnet_event *ev,
				const struct wire_control *m);
/* A control message from a server has come. */
void import_on_control(struct shard *s, const struct ulnet_event *ev,
		       const struct wire_control *m);

#endif
