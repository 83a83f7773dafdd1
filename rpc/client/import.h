/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An import: this node's connection, as a client, to another node. One for each
 * set of NIDs, shared by all clients of it. Connects when it is wanted, and
 * again when the connection is lost, until the last client closes.
 *
 *	IDLE -> CONNECTING -> FULL <-> SUSPECT -> DISCONN -> CONNECTING ...
 *
 * The LND finds out when the server can be reached, because messages wait in
 * the LND for its connection. So the pauses here are short, and their length
 * depends on how many clients the server has, not on how long it has been away.
 * An import that nobody waits for does not try at all. The server says how many
 * clients it has when a connection is made, and in its answers to keepalives. A
 * keepalive goes half a second after the last message, with the calls that have
 * ended since, so that the server keeps nothing for a client that is silent;
 * and now and then while there is traffic.
 *
 * Owner: the CPT that owns the NIDs.
 */
#ifndef RPC_IMPORT_H
#define RPC_IMPORT_H

#include "base/fsm.h"
#include "base/hash.h"
#include "base/id.h"
#include "rpc/mean.h"
#include "rpc/client/imports.h"
#include "rpc/client/retry.h"
#include "rpc/client/slots.h"
#include "rpc/rpc.h"
#include "rpc/slab.h"
#include "rpc/stats/stat.h"

struct wire_control;

enum import_state {
	IMPORT_IDLE,	   /* not connected, and nobody wants it to be */
	IMPORT_CONNECTING, /* asked; the answer is awaited */
	IMPORT_FULL,
	IMPORT_SUSPECT, /* as FULL, but the server may be dead, and is being
			 * probed */
	IMPORT_DISCONN, /* waits before it connects again */
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

	/* Numbers of calls, in the order in which the calls were first sent,
	 * over all connections. */
	uint64_t xid;	    /* the last one used */
	struct list calls;  /* that have one: ulrpc_call.order, by xid */
	struct slots slots; /* that they have */

	struct cancels cancels; /* calls that ended in this turn */

	struct list batches; /* what waits for replies: batch.of_import */

	/* For replies (reply_buf.h): those that no batch uses, and the number
	 * of all that are kept. */
	struct list reply_bufs;
	unsigned int nreply_bufs;

	unsigned int nnids, nid; /* @nid: the one in use, or being tried */
	uint32_t pid;
	struct ulnet_nid nids[ULRPC_NIDS_MAX];
	struct ulnet_nid primary; /* of that in use, when that was looked up */
	bool far;		  /* counted in shard.far, as of then */

	struct fsm fsm;
	uint32_t epoch;
	uint64_t connection; /* the server's handle */
	bool knows_server;
	uint8_t server_id[RPC_ID_SIZE];
	uint32_t server_clients; /* it has, about */
	uint64_t retry_after;	 /* ns the server wants us to wait */
	bool shutting_down;	 /* it said so at the last attempt */

	/* FULL */
	uint64_t keepalive;   /* ns */
	uint64_t heard, sent; /* ns: when last */
	uint64_t told;	      /* import_acked(), as the server was told last */
	bool tells;	      /* the timer looks soon whether told is old */
	struct retry_budget budget;
	uint64_t made_in;    /* ns: from the first question on */
	struct mean rtt;     /* of first attempts, but for their time at the
				* server */
	struct mean fetched; /* tries to get a long reply, those that did */
	uint64_t used;	     /* ns: when the last call ended or began */
	uint64_t sequence;   /* of keepalives */
	unsigned int probes; /* without an answer */
	struct ulnet_nid asked_from, asked_at; /* the rail of the last one; ANY:
						* not known */
	struct ulnet_nid asked_by; /* its first hop: a gateway, or asked_at */
	uint64_t hurry;		   /* ns: import_asked()'s, the least; or 0 */
	uint64_t probed;	   /* ns: when the last one was sent, or the
			      * connection was made */

	/* Attempts and queries have 2^patience times their usual time. It grows
	 * when a query is not answered in its time, but not before
	 * patient_until, ns, and shrinks when a call is answered that was not
	 * asked about. Calls that are asked about are no samples of how long
	 * calls take. So without it the usual time would stay as short as it
	 * was when the server had less to do, and queries would keep the server
	 * busy. */
	unsigned int patience;
	uint64_t patient_until;

	/* Rails that the server was not known by before: import_unknown(). */
	struct {
		struct ulnet_nid made, to; /* our NID that the connection was
					    * made by, and the server's */
		uint64_t asked;		   /* ns: no answer yet; or 0 */
		unsigned int n;		   /* since it was made */
	} join;

	/* CONNECTING, DISCONN */
	unsigned int untried; /* NIDs not tried since the last pause */
	uint64_t begun;	      /* ns: this attempt */
	uint64_t attempt_end; /* ns: of this attempt */
	bool asking;	      /* LNet has a Connect of this attempt */
	bool waiting;	      /* DISCONN, since it could not be reached: a
				  * sign of life ends the pause */

	/* Failures in a row, without an answered call between: connections that
	 * could not be made, or were lost, and messages that were not
	 * delivered. A message that was sent before the last failure belongs to
	 * that one: one event is one failure, however many messages it hits. */
	unsigned int failures;
	uint64_t failed; /* ns: the last one, of messages */
	struct import_severed severed;

	struct ulnet_timer timer; /* what is next in this state */
	struct ulnet_timer pause; /* FULL: no calls are sent till then */
};

/* Makes an import that the shard does not know yet. Any thread. NULL: no
 * memory; else the caller owes import_attach() or import_free()
 * (rpc/client/imports.h). */
struct import *import_new(struct shard *s, const struct ulnet_nid *nids,
			  unsigned int nnids, uint32_t pid);
/* Calls @fn for each client of @imp; @fn must not remove any from the list. */
void import_tell_all(struct import *imp, void (*fn)(struct ulrpc_client *c));
/* Tells the server that it is not needed any more, and does nothing after
 * that. */
void import_end(struct import *imp);

static inline bool import_is_up(const struct import *imp)
{
	return imp->fsm.state == IMPORT_FULL ||
	       imp->fsm.state == IMPORT_SUSPECT;
}

/* The number up to which all calls are over. */
uint64_t import_acked(const struct import *imp);
/* Calls have ended: the server will soon be told, by the next message, or by
 * one for that alone. */
void import_tell(struct import *imp);

static inline struct ulnet_id import_target(const struct import *imp)
{
	return (struct ulnet_id){ imp->nids[imp->nid], imp->pid };
}

/* The last call of a client has ended. */
void import_used(struct import *imp);
/* A client has something to send. */
void import_want(struct import *imp);
/* Something came from the server. */
static inline void import_heard(struct import *imp, uint64_t now)
{
	imp->heard = now;
}
/* A message of @epoch may not have been delivered: is the server there? */
void import_suspect(struct import *imp, uint32_t epoch);
/* A query about calls goes out. A live server answers it at once, so the query
 * counts as a probe. Attempts of these calls are to be answered @within ns;
 * from now on, it should not take much longer than that to find out that the
 * server is dead. */
void import_asked(struct import *imp, uint32_t epoch, uint64_t within);
/* A message that was sent at @sent, ns, was not delivered. */
void import_undelivered(struct import *imp, uint32_t epoch, uint64_t sent);
/* The server has answered a call. */
void import_served(struct import *imp);
/* @ns, lengthened by patience, but not beyond this. */
#define IMPORT_PATIENCE (5 * NSEC_PER_SEC)
static inline uint64_t import_patiently(const struct import *imp, uint64_t ns)
{
	if (likely(!imp->patience) || ns >= IMPORT_PATIENCE)
		return ns;
	return MIN(ns << imp->patience, IMPORT_PATIENCE);
}
/* May calls be sent? */
static inline bool import_is_ready(const struct import *imp)
{
	return import_is_up(imp) && !lnet_timer_armed(&imp->pause);
}
/* There was a sign of life of this import's server. Only arms a timer. */
void import_on_sign(struct import *imp);
/* The time, ns, over which clients of the server that have failed at the same
 * moment spread what they do next; 0 if the server has few clients. */
uint64_t import_spread(const struct import *imp);
/* Pauses between attempts of anything that has to do with a server. @n:
 * failures in a row before. */
uint64_t import_pause(const struct import *imp, unsigned int n);
/* The server does not know the connection of @epoch (any more). */
void import_lost(struct import *imp, uint32_t epoch);
/* The server got a message by the rail from @local to @target (ANY: not known),
 * and does not know the connection that the message named. Perhaps it knows the
 * connection by other NIDs of ours, and not that @local is ours, too: so the
 * same Connect as before is sent by that rail. */
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
/* The CPT of the import that @m is for, as far as @m says: perhaps there is no
 * such CPT. */
unsigned int import_control_cpt(const struct wire_control *m);
/* Connected, Opened, Disconnected, Alive, Extend, Goodbye have come. */
void import_on_control(struct shard *s, const struct ulnet_event *ev,
		       const struct wire_control *m);

#endif
