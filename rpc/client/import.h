/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An import: this node's connection, as a client, to another node. There is one
 * for each set of NIDs, shared by all clients of that server. It connects when
 * a client has calls. When the connection is lost it connects again, as long as
 * a call waits, until the last client closes.
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
struct naming;

enum import_state {
	IMPORT_IDLE,	   /* is not connected, and no client wants it to be */
	IMPORT_CONNECTING, /* Connect was sent, and is not answered */
	IMPORT_FULL,	   /* connected */
	IMPORT_SUSPECT,	   /* is connected, but the server may be dead */
	IMPORT_DISCONN,	   /* waits before it connects again */
	IMPORT_CLOSED,
	IMPORT_STATES
};
extern const struct fsm_state import_states[IMPORT_STATES];

struct import {
	struct shard *shard;
	struct hash_node hash; /* node in imports.by_nids */
	/* node in imports.by_nid, with the key @primary */
	struct hash_node by_nid;
	struct list link; /* node in imports.all */
	uint64_t id;	  /* number in imports.handles */
	/* the import's name on the wire: shard_handle(id) */
	uint64_t handle;
	/* The import has no server, and is in no table: it is for a client
	 * whose target is a name that is not known yet. Its state is CLOSED
	 * from the beginning. */
	bool nameless;
	struct import_name name; /* the id by which servers know the import */
	struct stat_peer stats;
	/* of ulrpc_client.link, the oldest first: those that open streams stand
	 * before those that carry them, which loses_streams() relies on */
	struct list clients;

	/* Calls are numbered in the order in which they are first sent, over
	 * all connections. */
	uint64_t xid; /* the last number used */
	/* of ulrpc_call.order: calls that have a number, by xid */
	struct list calls;
	struct slots slots; /* the slots that the calls in @calls hold */

	/* calls that ended in this turn, of which the server is to be told */
	struct cancels cancels;

	struct list batches; /* of batch.of_import: batches that are not over */

	/* Buffers for replies (batch.h). reply_bufs: buffers that no batch
	 * uses. nreply_bufs: how many there are, including those that batches
	 * use. */
	struct list reply_bufs;
	unsigned int nreply_bufs;

	/* nnids: how many NIDs there are. nid: the index of the NID in use, or
	 * being tried */
	unsigned int nnids, nid;
	uint32_t pid;
	struct ulnet_nid nids[ULRPC_NIDS_MAX];
	/* the primary NID of the peer that has the NID in use, as last looked
	 * up */
	struct ulnet_nid primary;
	/* another CPT may own a NID of the server, as last looked up; counted
	 * in shard.far */
	bool far;

	struct fsm fsm;
	uint32_t epoch;
	uint64_t connection; /* the server's handle of the connection */
	bool knows_server;   /* is @server_id set? */
	uint8_t server_id[RPC_ID_SIZE];
	/* the server reads annexes of bodies: rpc/context/annex.h */
	bool annexes;
	/* how many sets of metadata the server remembers for this import, and
	 * which; NULL: none was used yet. For naming.h. */
	uint32_t sets;
	struct naming *naming;
	uint32_t server_clients; /* about how many clients the server has */
	/* ns for which the server wants this node to wait before it connects
	 * again */
	uint64_t retry_after;
	/* why the server has refused connections lately: ULRPC_CAUSE_SHUTDOWN,
	 * _REFUSED or _OVERLOADED; ULRPC_CAUSE_OK: it has not */
	enum ulrpc_cause away;
	/* unreached: since the last connection, an attempt to connect has
	 * failed by all NIDs. error: why the last message of the last attempt
	 * was not delivered, -errno; 0: the server has answered. */
	bool unreached;
	int error;
	/* the last attempt to connect has failed because nobody listens there
	 */
	bool unheard;
	/* How many attempts to connect in a row have failed because nobody
	 * listens there, and when (ns) the first of them has: import_is_gone()
	 */
	unsigned int nobody;
	uint64_t nobody_since;
	/* index of the NID by which the last attempt to connect was made */
	unsigned int tried;
	/* The server has lost what it knew when the connection was lost,
	 * because it has restarted or ended. (A server that only forgets this
	 * client does not set this.) */
	bool restarted;
	/* while a server that ends is forgotten: calls with this xid or a
	 * higher one were not executed there, and will not be; else 0 */
	uint64_t unexecuted;
	/* ns, while clients are told of a new connection: for how long, at
	 * least, the server had not known the one before; 0: not known */
	uint64_t absent;

	/* Both sides prove who they are: a handshake (shake.h) comes before
	 * Connect, and all messages are sealed. */
	bool secure;
	/* the handshake that is under way, in CONNECTING; NULL: none */
	struct shake *shake;
	struct sealed *sealed; /* the keys of this epoch; NULL: none yet */
	/* keys of earlier epochs, which open late messages */
	struct sealed_past past;
	/* the identity of the server when it last connected */
	struct identity *who;
	struct ticket ticket; /* the ticket for the next handshake */
	/* why this node does not believe the server, or the server this node;
	 * "": neither has been said */
	char refusal[ULRPC_TEXT_MAX];

	/* valid in FULL: */
	uint64_t keepalive; /* in ns */
	uint64_t since;	    /* ns: when the connection was made */
	/* ns: when the last message came from the server, and when the last one
	 * was sent to it */
	uint64_t heard, sent;
	/* the value of import_acked() that the server was last told */
	uint64_t acked_sent;
	/* import_acked() is soon compared with acked_sent, and the server is
	 * told if it has changed */
	bool ack_due;
	struct retry_budget budget;
	uint64_t connect_time; /* ns: how long it took to connect */
	/* round trips of first attempts, not counting the time at the server */
	struct mean rtt;
	/* how long GETs of long replies take that succeed */
	struct mean fetched;
	/* Long replies (fetch.h). reply_bytes: bytes of those that are being
	 * fetched. replies_waiting: how many wait for room. replies_looked: the
	 * value of reply_room.looks when there was no room for the first one */
	uint64_t reply_bytes;
	unsigned int replies_waiting, replies_looked;
	/* ns: when the last call ended, or the connection was made */
	uint64_t used;
	uint64_t sequence; /* the number of the last keepalive */
	/* in ns. asked_alive: when the last keepalive was sent. prompt: when
	 * the last one was sent that was answered at once (import_is_prompt())
	 */
	uint64_t asked_alive, prompt;
	unsigned int probes; /* how many probes in a row had no answer */
	/* The rail of the last probe (ANY: not known), and the next hop on it:
	 * a gateway, or the target itself. */
	struct ulnet_nid probe_local, probe_target, probe_hop;
	/* ns: the smallest @within of import_asked() since a probe was
	 * answered; 0: none */
	uint64_t detect_within;
	/* ns: when the last probe was sent, or the connection was made */
	uint64_t probed;
	/* ns: when import_look() last ran, or the connection was made */
	uint64_t looked;

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

	/* Rails over which this node's messages came to the server, which did
	 * not know the connection: import_unknown() */
	struct {
		/* the rail over which the connection was made: this node's NID,
		 * and the server's */
		struct ulnet_nid made, to;
		/* ns: when Connect was sent for a rail; 0: it was answered */
		uint64_t asked;
		/* how many such rails were found since the connection was made
		 */
		unsigned int n;
	} join;

	/* valid in CONNECTING and DISCONN: */
	/* how many NIDs were not tried since the last pause */
	unsigned int untried;
	uint64_t begun;	      /* ns: when this attempt to connect began */
	uint64_t attempt_end; /* ns: when this attempt to connect is given up */
	/* LNet is still sending a Connect of this attempt */
	bool connect_sending;
	/* the next sign of life of the server ends the pause, in DISCONN */
	bool waiting;

	/* Failures in a row since a call was last answered: connections that
	 * were lost or could not be made, and messages that were not delivered.
	 * An event that hits several messages counts once: the failure of a
	 * message counts only if the message was sent after the last failure.
	 */
	unsigned int failures;
	uint64_t failed; /* ns: when a message last failed, and was counted */
	struct import_conn_loss conn_loss;

	/* does the next thing that there is to do in this state */
	struct ulnet_timer timer;
	/* in FULL: no calls are sent before this timer runs out */
	struct ulnet_timer pause;
};

/* Makes an import, which the shard does not know yet. The caller owes
 * import_attach() or import_free(). Returns NULL if there is no memory. Any
 * thread. */
struct import *import_new(struct shard *s, const struct ulnet_nid *nids,
			  unsigned int nnids, uint32_t pid, bool secure);
/* Makes an import without a server. It is in imports.all at once. Returns NULL
 * if there is no memory. Owner. */
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

/* Returns the highest xid such that the calls with it and all lower xids are
 * over. */
uint64_t import_acked(const struct import *imp);
/* Called when calls have ended: the server is told soon, by the next message or
 * by a keepalive. */
void import_ack_soon(struct import *imp);

static inline struct ulnet_id import_target(const struct import *imp)
{
	return (struct ulnet_id){ imp->nids[imp->nid], imp->pid };
}

/* The server is gone when for so long, in ns, all attempts to connect have
 * failed because nobody listens there. */
#define IMPORT_GONE (2 * NSEC_PER_SEC)
/* Has nobody listened at any NID for a while? A server that is only silent may
 * be there still. */
bool import_is_gone(const struct import *imp);
/* Writes to @text, if the server is gone, for how long nobody has listened
 * there. */
void import_gone_for(const struct import *imp, char *text, size_t size);
/* Writes to @text why the server cannot be reached, if anything is known of
 * that. */
void import_no_server(const struct import *imp, char *text, size_t size);
/* Called when all calls of a client have ended. */
void import_used(struct import *imp);
/* Called when a client has something to send: connects if the import is idle.
 */
void import_want(struct import *imp);
/* Called when a message came from the server. */
static inline void import_heard(struct import *imp, uint64_t now)
{
	imp->heard = now;
}
/* Called when a message of @epoch may not have been delivered: probes the
 * server. */
void import_suspect(struct import *imp, uint32_t epoch);
/* Called when a query about calls was sent. The query counts as a probe,
 * because a live server answers it at once. @within: ns in which the attempts
 * of these calls should be answered; a dead server is to be detected in not
 * much more. */
void import_asked(struct import *imp, uint32_t epoch, uint64_t within);
/* Called when a message that was sent at @sent, ns, was not delivered: sends no
 * calls for a pause, and probes the server. */
void import_undelivered(struct import *imp, uint32_t epoch, uint64_t sent);
/* Called when the server has answered a call: ends the pause. */
void import_served(struct import *imp);
/* Returns @ns, multiplied by the back-off, but at most IMPORT_BACKOFF_MAX. */
#define IMPORT_BACKOFF_MAX (5 * NSEC_PER_SEC)
static inline uint64_t import_backed_off(const struct import *imp, uint64_t ns)
{
	if (likely(!imp->backoff) || ns >= IMPORT_BACKOFF_MAX)
		return ns;
	return MIN(ns << imp->backoff, IMPORT_BACKOFF_MAX);
}
/* Can calls be sent now? */
static inline bool import_is_ready(const struct import *imp)
{
	return import_is_up(imp) && !lnet_timer_armed(&imp->pause);
}
/* Called when the server has shown that it is alive. If the import waits for a
 * sign of life, sets its timer so that it connects in this turn. */
void import_on_sign(struct import *imp);
/* Returns how long (ns) nearly all round trips take, without the time at the
 * server. Before the first sample: how long it took to connect, but at least
 * 100 ms. */
uint64_t import_rtt(const struct import *imp);
/* ns that a server takes to answer a query or a keepalive, at most, without the
 * round trip */
#define IMPORT_QUERY_TIME (20 * NSEC_PER_MSEC)
/* Has the server answered at once what was sent at @sent, ns? */
static inline bool import_is_prompt(const struct import *imp, uint64_t sent,
				    uint64_t now)
{
	return now - sent <= import_rtt(imp) + IMPORT_QUERY_TIME;
}
/* Returns what the server is told of import_rtt(): in us, and without the
 * minimum of 100 ms. */
uint64_t import_rtt_us(const struct import *imp);
/* Returns the jitter against a thundering herd: the range, in ns, of the pauses
 * of clients that have lost the server at the same moment; 0 if it has few
 * clients. */
uint64_t import_jitter(const struct import *imp);
/* Returns a pause, ns, before the next attempt at something that needs the
 * server. @n: how many attempts have failed in a row. */
uint64_t import_pause(const struct import *imp, unsigned int n);
/* Called when the server does not know the connection of @epoch: connects
 * again. */
void import_lost(struct import *imp, uint32_t epoch);
/* Called when the server is not believed any more, for the reason @why. If the
 * import is connected or connecting, the server has to prove anew who it is. */
void import_doubted(struct import *imp, const char *why);
/* Called when the server has got a message by the rail from @local to @target
 * (ANY: not known), and does not know the connection that the message named.
 * Perhaps the server only does not know that @local is a NID of this node:
 * sends Connect by that rail, too. */
void import_unknown(struct import *imp, uint32_t epoch,
		    const struct ulnet_nid *local,
		    const struct ulnet_nid *target);
/* Returns the cause with which calls end when the server no longer knows them.
 */
static inline enum ulrpc_cause import_forgotten_cause(const struct import *imp)
{
	return imp->restarted ? ULRPC_CAUSE_RESTARTED : ULRPC_CAUSE_FORGOTTEN;
}
/* Called when a slot has become free and calls wait for one. */
void import_on_slot(struct import *imp);
/* Called when the call that holds @slot ends. */
static inline void import_slot_put(struct import *imp, uint32_t slot)
{
	slots_put(&imp->slots, slot);
	if (unlikely(imp->slots.wanted))
		import_on_slot(imp);
}

#endif
