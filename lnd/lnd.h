/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between LNet and an LND (requirement A7). An LND is a folder,
 * one line in lnds.h and one in lnet/open.c. It knows nothing of LNet but this
 * header and the public NIDs. LNet calls the LND by struct lnd; the LND calls
 * LNet by struct lnd_upcalls. Every LND passes the suite in tests/lnd/.
 *
 * Threads. A node has N CPTs, each a thread with a loop. Everything about a
 * peer, calls in both directions included, happens on the thread of the CPT
 * that owns the peer: lnet_ni_cpt_of(). There are no locks.
 *
 * Time. LNet keeps the deadlines of messages: when one passes, or a user gives
 * a message up, LNet calls cancel(). An LND has timers for its own protocol
 * only (handshake, keepalive, pauses between attempts to connect).
 *
 * Outgoing messages. LNet calls send(), which returns
 *	0		the LND has the message until it calls lnet_finalize(),
 *			once, or gives it back by lnet_send_again();
 *	-EINPROGRESS	LNet keeps the message, without credits, until the LND
 *			calls lnet_peer_connected(): then LNet calls send()
 *			again, or ends the message;
 *	-errno		LNet ends the message as not delivered, with this status
 *			and the cause that lnd_refusal_cause() finds for it.
 * LNet may offer a small message by push() before, which either takes it
 * altogether, or does nothing.
 *
 * Incoming messages. The LND calls lnet_parse(), perhaps after lnet_take() has
 * returned false; LNet calls recv(), once, from within lnet_parse() or later,
 * and perhaps eager_recv() before. If recv() is given an
 * lnd_msg, the LND calls lnet_finalize() for this, once. LNet may answer a GET
 * by answer() instead of recv().
 *
 * What may be called from within what:
 *	push(), send()	from any upcall, so while the LND is in the midst of
 *			something. It makes no upcall itself.
 *	recv(), eager_recv(), answer()
 *			from lnet_parse(), or later. recv() may call
 *			lnet_finalize().
 *	cancel()	from no upcall. It calls lnet_finalize().
 *	shutdown()	from no upcall.
 *	users' handlers	from lnet_take(), lnet_finalize(),
 *			lnet_peer_connected() and
 *			lnet_peer_disconnected(). Handlers send, so the LND's
 *			state must be consistent before it makes one of these
 *			upcalls, and connections and queues may have changed
 *			when it returns.
 *
 * The causes that the LND gives to lnet_finalize(), or to lnet_peer_connected()
 * if the message has waited for a connection. (cause.h says what follows.)
 *	the message is sent, or received	0, OK
 *	send() refuses it, or there is no connection, because
 *	    the peer refuses, is not there, or
 *	    does not answer			REMOTE_DROPPED
 *	    there is no way to the peer		LOCAL_NO_ROUTE
 *	    this side lacks a resource or a
 *	    permission				LOCAL_DROPPED
 *	the connection ends before any of the message has left, because
 *	    the peer has ended the connection,
 *	    or does not answer			REMOTE_DROPPED
 *	    something has failed on this side	LOCAL_DROPPED
 *	the connection ends after some of the message may have left or come,
 *	because
 *	    the peer has ended the connection,
 *	    or breaks the protocol		REMOTE_ERROR
 *	    the peer, or the net, was silent	NETWORK_TIMEOUT
 *	    something has failed on this side	LOCAL_ERROR
 *	the bytes received are not those sent	-EIO, REMOTE_ERROR
 *	the NI fails hard (-ENETDOWN)
 *	    before any of the message has left,
 *	    or send() refuses the message	LOCAL_NO_ROUTE
 *	    after some may have left or come	LOCAL_ERROR
 *	the NI goes down (-ESHUTDOWN)
 *	    before any of the message has left	LOCAL_ABORTED
 *	    after some may have left or come	SHUTDOWN
 *	LNet has given up the message		see cancel()
 * The status of an attempt to connect is -ECONNREFUSED if the peer's host says
 * that nobody listens there, and only then: whoever wants to reach the peer
 * takes that for a sign that its process has ended. A peer that is there, and
 * refuses, has another one, such as -ECONNRESET.
 * A pause between attempts to connect is no reason to refuse: a message that is
 * sent during a pause waits for the next attempt, and shares its outcome.
 */
#ifndef LND_LND_H
#define LND_LND_H

#include <sys/uio.h>
#include "base/commons.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/iov.h"
#include "lnd/cause.h"
#include "lnd/ports.h"
#include "lnd/tls_rules.h"
#include "ulnet/lnet.h"

#define LNET_HDR_SIZE	    72 /* header with 64-bit NIDs */
#define LNET_HDR_LARGE_SIZE 96 /* header with 20-byte NIDs */
/* Both headers end with the source's pid, the type, the payload length, and a
 * part that depends on the type, which has LNET_HDR_UNION_SIZE bytes. */
#define LNET_HDR_UNION_SIZE 40

struct lnd;

/* A number that users may set for each NI. Its name is that of the kernel's
 * LND, if that has it. */
struct lnd_tunable {
	const char *name;
	const char *unit; /* "s", "ms", "bytes", or "" */
	const char *help;
	int64_t min, max, def;
};

/* A row of an LND's table of tunables, for a line of its tunable.def. */
#define LND_TUNABLE(name_, unit_, min_, max_, def_, help_) \
	{                                                  \
#name_, unit_, help_, min_, max_, def_     \
	}

/* A local interface, as its LND sees it. Owned by LNet, except priv. Immutable
 * once startup() has returned. */
struct lnd_ni {
	const struct lnd *lnd;
	const struct lnd_upcalls *upcalls;
	struct ulnet_nid nid;
	uint64_t incarnation; /* differs for each start of the NI */
	unsigned int cpts;
	struct loop *const *loops; /* array: the loop of each CPT */
	/* the interface's name, for users: from resolve(), later from
	 * lnet_ni_renamed() */
	char interface[LNET_INTERFACE_SIZE];
	/* NUMA node of the device; startup() may set it; -1: not known */
	int numa_node;
	/* Number of leading bits of the NID's address that all hosts of the
	 * NI's IP network share. startup() may set it; 0: not known. */
	unsigned int prefix;
	/* The tunables' values in effect, in the order of lnd->tunables.
	 * startup() may replace a default by what it stands for. */
	int64_t *tunables;
	/* the node's configuration, with defaults filled in */
	const struct ulnet_conf *conf;
	/* the node's: at which ports peers listen; NULL: at conf->port */
	struct lnd_ports *ports;
	/* the node's, for vouches(): beside what certificates say */
	struct lnd_tls_rules *tls_rules;
	/* the node's: memory that peers of this host can be given to read */
	struct commons *commons;
	/* How many messages LNet gives to the LND at a time: in all, and for
	 * one peer. */
	uint32_t credits, peer_credits;
	/* *shared is the LND's: state that all its NIs on this node share. NULL
	 * until an NI sets it. Used on CPT 0's thread only. */
	void **shared;
	void *net;	 /* the simulated network; NULL in ordinary nodes */
	void *fabric;	 /* o2iblnd's simulated devices; NULL likewise */
	void *priv;	 /* the LND's own state of the NI */
	const char *why; /* what startup() lacked when it failed: constant text
			  * for users, or NULL */
	/* Each peer on the net of this NI has proved who it is. startup() may
	 * set this, if the LND has vouches(). */
	bool proven;
	/* The host that the net is on, if it is on one only, as one in shared
	 * memory is: elsewhere its NIDs mean nothing, or are others'. The same
	 * for all nodes that have NIDs of each other on such nets, another one
	 * for all others. startup() may set it; 0: the net is on any host. */
	uint64_t host;
};

/* A message, as an LND sees it. Owned by LNet, and lent to the LND from send(),
 * answer() or recv() until the LND calls lnet_finalize() for it. */
struct lnd_msg {
	struct lnd_ni *ni; /* the NI that sends or receives it */
	bool incoming;	   /* lent by recv(); false: by send() or answer() */
	/* Outgoing: has NIDs that need a header of LNET_HDR_LARGE_SIZE. */
	bool large;
	struct ulnet_nid next_hop; /* outgoing: the NID to send it to */
	uint32_t next_pid;	   /* outgoing: the process there */
	unsigned int cpt;	   /* the CPT whose thread handles it */
	/* Payload: length bytes beginning offset bytes into iov. The LND reads
	 * it when sending, and writes it when receiving. */
	const struct iovec *iov;
	unsigned int niov;
	/* Registered memory that all of iov lies in, valid until forget()
	 * (lnet_mem_register(3)). NULL: none. */
	const struct span *mem;
	uint32_t offset;
	uint32_t length;
	uint64_t deadline; /* ns, by the CPT's loop; LNet enforces it */
	bool again; /* was given back by lnet_send_again(); set by LNet */
	/* For the LND's use, while it has the message: */
	struct list link;
	void *priv;
	/* Set by the simulator's observer (observer.h) on the request of an
	 * operation, and passed on by routers. mark is opaque, NULL: none;
	 * mark_number is the number of the attempt. */
	void *mark;
	uint32_t mark_number;
};

/* What both ends of a connection have agreed upon. */
struct lnd_terms {
	uint32_t queue_depth; /* messages under way, each way */
	uint32_t max_frags;   /* fragments that a descriptor may have */
};

struct lnd {
	const char *name;
	int type; /* LNET_TYPE_* that it serves; -1: not found by type */

	const struct lnd_tunable *tunables; /* NULL: none */
	unsigned int ntunables;		    /* <= LNET_TUNABLES_MAX */

	/*
	 * Optional; without it an NI is named by its NID alone. Fills in the
	 * address of @nid from @interface, which is a name or an address; of
	 * several addresses it prefers one of the size that @nid says.
	 * @interface NULL: looks for the interface that has @nid's address.
	 * Writes the interface's name, as users see it, to @name. May make
	 * system calls; any thread. Returns 0; -ENODEV: no such interface;
	 * -EADDRNOTAVAIL: it has no usable address.
	 */
	int (*resolve)(const char *interface, struct ulnet_nid *nid,
		       char name[LNET_INTERFACE_SIZE]);

	/*
	 * Optional. Sets *@nid to the address of this host from which messages
	 * to @target leave, as far as that is up to the system, on @target's
	 * net. Any thread. Returns 0; -errno: the system knows no way.
	 */
	int (*source)(const struct ulnet_nid *target, struct ulnet_nid *nid);

	/*
	 * The NI comes up: fills ni->priv, and listens. Called on the thread
	 * that adds the NI, which may be the loop's own, so it must not wait
	 * for a peer. No other call is made for @ni until it has returned. Work
	 * for a loop's thread (to watch a descriptor, to arm a timer) is done
	 * there by loop_call(ni->loops[i], ...). Returns 0; or -errno, after
	 * undoing everything: then lnet_ni_add() fails.
	 */
	int (*startup)(struct lnd_ni *ni);

	/*
	 * @cpt's part of the NI goes down: no send() follows. The LND finalizes
	 * all messages that it has on this CPT (-ESHUTDOWN), drops those being
	 * received, and then, from here or later, calls lnet_ni_stopped().
	 * Afterwards it makes no upcall for @ni on this CPT, except to finish a
	 * recv(), which may still come for messages that LNet holds. Must not
	 * block. CPT's thread.
	 */
	void (*shutdown)(struct lnd_ni *ni, unsigned int cpt);

	/* Frees ni->priv: all CPTs have stopped, and no recv() will follow.
	 * Called on the thread of the CPT that was the last to stop. */
	void (*free)(struct lnd_ni *ni);

	/*
	 * Sends @msg to the process msg->next_pid of msg->next_hop. A process
	 * whose pid has LNET_PID_USERFLAG does not listen: it can be reached
	 * only over a connection that it has opened itself; without one send()
	 * returns -EHOSTUNREACH. The return values are explained at the top of
	 * this file. The LND calls lnet_finalize(), lnet_send_again() and
	 * lnet_peer_connected() only after send() has returned.
	 * Messages to one peer keep their order, unless the LND has changed to
	 * a new connection: what was sent on the old one may then arrive later
	 * than what follows. Must not block; may be called from any upcall.
	 */
	int (*send)(struct lnd_ni *ni, struct lnd_msg *msg);

	/*
	 * Optional: the straight way of a small message for a peer to which
	 * nothing waits. Returns true: the LND has copied all of @msg, and
	 * sends it at the end of this turn at the latest. LNet counts it as
	 * sent, as after lnet_finalize() with status 0, which the LND does not
	 * call. Returns false: nothing has happened, and send() follows. Must
	 * not block, and makes no upcall; may be called from any upcall.
	 */
	bool (*push)(struct lnd_ni *ni, struct lnd_msg *msg);

	/*
	 * LNet's answer to lnet_parse(@rx): the LND stores the first
	 * msg->length bytes of the payload, discards the rest of the @rlength
	 * bytes announced, and calls lnet_finalize(@msg), from here or later.
	 * @msg NULL: it discards the whole payload. LNet calls recv() exactly
	 * once for each lnet_parse() that returned 0, from within it or later.
	 * Until then the LND keeps @rx, even if its connection has ended. Must
	 * not block.
	 */
	void (*recv)(struct lnd_ni *ni, void *rx, struct lnd_msg *msg,
		     uint32_t rlength);

	/*
	 * Optional, for LNDs whose peers say with a GET where its payload is to
	 * be written. Sends @msg, the REPLY to the GET @rx, straight there.
	 * Returns 0: the LND has both, and will call lnet_finalize(), but not
	 * lnet_send_again(); recv() does not come. Otherwise recv() follows,
	 * without a message:
	 *	-EOPNOTSUPP	this GET does not say where: the REPLY is given
	 *			to send() instead;
	 *	-errno		the REPLY ends as if send() had refused it.
	 * @msg NULL: only asks whether @rx says where (0, or -EOPNOTSUPP).
	 * Takes no credits. Must not block, and makes no upcall.
	 */
	int (*answer)(struct lnd_ni *ni, void *rx, struct lnd_msg *msg);

	/*
	 * LNet does not know yet where the payload of @rx goes, and may not for
	 * long (lazy portal, entry of another CPT). The LND copies the payload,
	 * if any, to a bounce buffer, so that what follows on the connection
	 * can be received. Returns 0; -errno: LNet drops the message.
	 *
	 * Until LNet has called recv() or eager_recv() for @rx, the LND parses
	 * nothing more from that connection, and reads as little as possible:
	 * this is LNet's back-pressure on peers that send more than their
	 * share.
	 *
	 * Called from within lnet_parse() or later; if it is called again,
	 * there is nothing to do. Must not block.
	 */
	int (*eager_recv)(struct lnd_ni *ni, void *rx);

	/*
	 * Gives up @msg, lent by send(), answer() or recv(): on return its
	 * payload is neither read nor written any more, and lnet_finalize() has
	 * been called for it with @status and
	 *	LNET_CAUSE_LOCAL_TIMEOUT	outgoing, none of it has left
	 *	LNET_CAUSE_NETWORK_TIMEOUT	outgoing, some may have left; or
	 *					incoming
	 * The connection goes on: the rest of a half-sent message is sent from
	 * a copy, and the rest of an incoming one is discarded. The peer's
	 * connections end only if there is no memory for the copy, of which
	 * each peer has a share, or if a device has been given the payload's
	 * own memory (mem).
	 */
	void (*cancel)(struct lnd_ni *ni, struct lnd_msg *msg, int status);

	/* Optional, for LNDs that do not copy registered memory: the user
	 * unregisters [@addr, @addr + @length). No message that the LND has
	 * lies in it. On return no device touches this memory any more, not
	 * even for messages that were given up. CPT's thread. */
	void (*forget)(struct lnd_ni *ni, unsigned int cpt, void *addr,
		       size_t length);

	/* Optional: may some of @msg, lent by send(), have left? LNet asks
	 * before it cancels a message to send it over another path. Without
	 * this function the answer is yes. */
	bool (*has_begun)(struct lnd_ni *ni, const struct lnd_msg *msg);

	/* Optional; without it the answer is no. Has the LND connections with
	 * @nid on @cpt, whose thread this is, or is it trying to connect? If
	 * not, LNet may make another CPT the owner of @nid
	 * (lnet_ni_cpt_of()). */
	bool (*is_connected)(struct lnd_ni *ni, unsigned int cpt,
			     const struct ulnet_nid *nid);

	/* Optional; without it the answer is 0. When does the pause that
	 * follows failed attempts to connect to @peer end, ns by the CPT's
	 * loop? 0: there is no pause. LNet asks before it sends a message again
	 * over its only path. @cpt's thread; from any upcall. */
	uint64_t (*paused_until)(struct lnd_ni *ni, unsigned int cpt,
				 const struct ulnet_id *peer);

	/* Optional; without it the answer is no. Can all connections with @nid
	 * move to another CPT now? They cannot while a message is under way on
	 * one of them, as far as the LND knows, nor while the LND tries to
	 * connect. Called on @cpt's thread, from within no other call. */
	bool (*can_move)(struct lnd_ni *ni, unsigned int cpt,
			 const struct ulnet_nid *nid);
	/* Moves all connections with @nid to the new owner of @nid, which
	 * lnet_ni_cpt_of() names already. Called right after can_move(). No
	 * message is lost or repeated. If a descriptor or memory is lacking, or
	 * the NI goes down, the connections end as if they had failed. */
	void (*move)(struct lnd_ni *ni, unsigned int cpt,
		     const struct ulnet_nid *nid);

	/* Optional, for users to see: what was agreed upon with @nid on @cpt,
	 * whose thread this is; if there are several connections, for one of
	 * them. false: there is none. */
	bool (*terms)(struct lnd_ni *ni, unsigned int cpt,
		      const struct ulnet_nid *nid, struct lnd_terms *terms);

	/* For an LND that sets lnd_ni.proven. @peer is a NID on the net of @ni
	 * with which there is, or just was, a connection. Has the node that has
	 * @peer proved that it may speak for @nid, a NID on any net? 1: yes; 0:
	 * it has proved who it is, and may not; -ENOENT: nobody knows any more
	 * what it has proved. Any thread. */
	int (*vouches)(struct lnd_ni *ni, const struct ulnet_nid *peer,
		       const struct ulnet_nid *nid);

	/* Optional: the node has other keys, ni->conf->keys, or less is in
	 * ni->tls_rules. What begins on @cpt, whose thread this is, begins with
	 * these keys; connections with peers that they do not believe, or that
	 * may not speak for their NIDs any more, end soon, as if they had
	 * failed. Makes no upcall. */
	void (*use_keys)(struct lnd_ni *ni, unsigned int cpt);

	/* Optional, for LNet's own checks: will lnet_peer_connected() be called
	 * for @nid? Called on the thread of the CPT that owns @nid. */
	bool (*is_connecting)(struct lnd_ni *ni, const struct ulnet_nid *nid);
};

/* ---- LNet's side. Thread: as said above. ---- */

/* What a connection meets before its peer is known. */
enum lnd_stranger {
	LND_STRANGER_UNPROVEN, /* refused: the peer has no proof of who it is */
	LND_STRANGER_WAITS,    /* its handshake waits for processor time */
	LND_STRANGER_DROPPED,  /* there are too many, of its host or in all */
};

/* LNet's functions for LNDs. Each is documented at the inline function of the
 * same name below. */
struct lnd_upcalls {
	int (*parse)(struct lnd_ni *ni, const void *hdr, size_t hdr_len,
		     const struct ulnet_id *from, void *rx);
	bool (*take)(struct lnd_ni *ni, const void *hdr, size_t hdr_len,
		     const struct ulnet_id *from, void *rx,
		     const void *payload);
	void (*finalize)(struct lnd_msg *msg, int status,
			 enum ulnet_cause cause);
	void (*peer_connected)(struct lnd_ni *ni, const struct ulnet_id *peer,
			       int status, enum ulnet_cause cause);
	void (*peer_disconnected)(struct lnd_ni *ni,
				  const struct ulnet_id *peer);
	void (*peer_silent)(struct lnd_ni *ni, const struct ulnet_id *peer,
			    uint64_t ns);
	void (*send_again)(struct lnd_msg *msg);
	void (*msg_header)(const struct lnd_msg *msg, void *hdr,
			   size_t hdr_len);
	uint32_t (*msg_asks)(const struct lnd_msg *msg);
	bool (*msg_sink)(const struct lnd_msg *msg, const struct iovec **iov,
			 unsigned int *niov, const struct span **mem);
	void (*msg_reply_header)(const struct lnd_msg *get, uint32_t length,
				 void *hdr, size_t hdr_len);
	uint64_t (*lnd_timeout)(const struct lnd_ni *ni);
	bool (*large_nids)(const struct lnd_ni *ni);
	void (*ni_set_up)(struct lnd_ni *ni, bool up, const char *why);
	void (*ni_renamed)(struct lnd_ni *ni, const char *name);
	void (*ni_stranger)(struct lnd_ni *ni, enum lnd_stranger what);
	void (*ni_stopped)(struct lnd_ni *ni, unsigned int cpt);
	unsigned int (*ni_cpt_of)(const struct lnd_ni *ni,
				  const struct ulnet_nid *nid);
};

/*
 * A message has come in from the process @from: the one at the other end of the
 * connection, on the net of @ni, whatever the header says. (A NID may have many
 * processes: one that listens, and any number of clients, whose pids have
 * LNET_PID_USERFLAG.) Its header is the @hdr_len bytes (LNET_HDR_SIZE or
 * LNET_HDR_LARGE_SIZE) at @hdr, borrowed until return. @rx is the LND's handle
 * for it. Returns 0: recv() has been or will be called. -EPROTO: no sane peer
 * sends such a header: the LND closes the connection, and recv() is not called.
 */
static inline int lnet_parse(struct lnd_ni *ni, const void *hdr, size_t hdr_len,
			     const struct ulnet_id *from, void *rx)
{
	return ni->upcalls->parse(ni, hdr, hdr_len, from, rx);
}

/*
 * The straight way of a small message: to be called before lnet_parse(), if all
 * of the payload is at @payload, and nothing but storing it is left to be done.
 * Returns true: LNet has copied what it wants of the payload, users' handlers
 * have run, and the LND is done with the message, for which recv() does not
 * come. (Connections and queues may have changed.) Returns false: nothing has
 * happened, and the LND calls lnet_parse(). @rx, which may be NULL, is only for
 * the simulator's observer (observer.accepted).
 */
static inline bool lnet_take(struct lnd_ni *ni, const void *hdr, size_t hdr_len,
			     const struct ulnet_id *from, void *rx,
			     const void *payload)
{
	return ni->upcalls->take(ni, hdr, hdr_len, from, rx, payload);
}

/*
 * The LND is done with @msg. @status 0 and LNET_CAUSE_OK: it is received, or
 * sent: its bytes are with the LND or the system, which may still lose them if
 * the connection ends. Otherwise an errno and the cause; LOCAL_INTERRUPT,
 * LOCAL_DROPPED, LOCAL_ABORTED, LOCAL_NO_ROUTE, LOCAL_TIMEOUT and
 * REMOTE_DROPPED promise that the peer has not got the message and never will.
 * Users' handlers run inside this call and may send.
 */
static inline void lnet_finalize(struct lnd_msg *msg, int status,
				 enum ulnet_cause cause)
{
	msg->ni->upcalls->finalize(msg, status, cause);
}

/*
 * An attempt to connect to @peer is over, after one or more calls of send()
 * have returned -EINPROGRESS: one call, however many they were. It is about
 * messages that wait for that process; with LNET_PID_ANY, for any process of
 * the NID (an LND may have one connection for all).
 *
 * @status 0 and LNET_CAUSE_OK: there is a connection. LNet calls send() for
 * what waits, in order, before this returns; the LND must not have sent other
 * messages to @peer on the new connection before. Otherwise what waits ends
 * with @status and @cause, which must be one that promises that the peer has
 * not got the message (see lnet_finalize()); users' handlers run, and what they
 * send asks for a connection again.
 *
 * Not called for an NI that goes down: LNet has ended what waits before
 * shutdown(). It may be called when nothing waits, to tell LNet of a
 * connection.
 */
static inline void lnet_peer_connected(struct lnd_ni *ni,
				       const struct ulnet_id *peer, int status,
				       enum ulnet_cause cause)
{
	ni->upcalls->peer_connected(ni, peer, status, cause);
}

/*
 * Connections to the process @peer are lost (with LNET_PID_ANY: to any process
 * of the NID): messages that were finalized as sent, and messages of the peer,
 * may be lost with them. The peer has closed the connections, or they were
 * reset, have failed or were given up; or the NI's link has gone, in which case
 * they may survive.
 *
 * One call for all connections to a peer that are lost in one turn, from no
 * other call of either side, once everything that was under way on them has
 * been finalized or given back. Not called for connections that end because the
 * NI goes down, or after everything sent over them has arrived.
 *
 * This is a hint: a peer that vanishes silently is noticed by time-outs, if at
 * all, and an LND without connections never makes this call.
 */
static inline void lnet_peer_disconnected(struct lnd_ni *ni,
					  const struct ulnet_id *peer)
{
	ni->upcalls->peer_disconnected(ni, peer);
}

/*
 * Nothing has come back from the process @peer (with LNET_PID_ANY: any of the
 * NID) for longer than usual: its system has not acknowledged what was sent, or
 * an attempt to connect, for which messages wait, has heard nothing. The peer
 * is dead or the net is cut on this path; both ends are suspect, as after
 * NETWORK_TIMEOUT. A peer that is only slow to read is not silent.
 *
 * This call ends no message and no connection. Before it, the LND has given
 * back the messages that it had not begun (lnet_send_again()), except those
 * given back once before. What waits for a connection goes on waiting. What was
 * begun may still arrive, and lnet_peer_connected() tells when a connection can
 * be used again. LNet may send what waits over another path, and cancel()
 * messages that were not begun, which does not harm the connections.
 *
 * @ns: how long nothing has come back, as far as the LND has looked. If
 * something else was heard on the NI meanwhile, it is the peer that is silent.
 *
 * Called once when the silence begins, and again for messages that begin to
 * wait afterwards; from no other call of either side. Optional for LNDs that
 * cannot know.
 */
static inline void lnet_peer_silent(struct lnd_ni *ni,
				    const struct ulnet_id *peer, uint64_t ns)
{
	ni->upcalls->peer_silent(ni, peer, ns);
}

/*
 * Gives @msg, lent by send(), back to LNet, because its connection has ended
 * before any of the message had left. LNet treats it as if send() had just
 * returned -EINPROGRESS, and so must the LND. Only while msg->again is not set.
 * The message goes in front of all others that wait, so of several the last one
 * is given back first. No user's handler runs.
 */
static inline void lnet_send_again(struct lnd_msg *msg)
{
	msg->ni->upcalls->send_again(msg);
}

/* Writes the header of @msg as it goes on the wire: @hdr_len is LNET_HDR_SIZE
 * (all NIDs must have the 64-bit form) or LNET_HDR_LARGE_SIZE. */
static inline void lnet_msg_header(const struct lnd_msg *msg, void *hdr,
				   size_t hdr_len)
{
	msg->ni->upcalls->msg_header(msg, hdr, hdr_len);
}

/* How many bytes the REPLY to @msg may have, if @msg is a GET of this node for
 * next_hop itself, not to be routed on by it; else 0. */
static inline uint32_t lnet_msg_asks(const struct lnd_msg *msg)
{
	return msg->ni->upcalls->msg_asks(msg);
}

/* If lnet_msg_asks(@msg) is not 0: sets *@iov and *@niov to the fragments that
 * the REPLY will be stored in, from the first byte on, and *@mem to the
 * registered memory that they lie in; false: it lies in none. All are valid
 * until lnet_finalize(). */
static inline bool lnet_msg_sink(const struct lnd_msg *msg,
				 const struct iovec **iov, unsigned int *niov,
				 const struct span **mem)
{
	return msg->ni->upcalls->msg_sink(msg, iov, niov, mem);
}

/* Writes the header of the REPLY to @get, for an LND whose peer has written the
 * payload of @length bytes straight to its place: the LND then calls
 * lnet_parse() with this header. */
static inline void lnet_msg_reply_header(const struct lnd_msg *get,
					 uint32_t length, void *hdr,
					 size_t hdr_len)
{
	get->ni->upcalls->msg_reply_header(get, length, hdr, hdr_len);
}

/* How long an LND waits for progress before it gives a connection up, ns (the
 * setting lnd_timeout; may change at any time). Any thread. */
static inline uint64_t lnet_lnd_timeout(const struct lnd_ni *ni)
{
	return ni->upcalls->lnd_timeout(ni);
}

/* Is the setting large_nids on? Then the LND offers every peer the form of its
 * protocol that carries large NIDs. Any thread. */
static inline bool lnet_large_nids(const struct lnd_ni *ni)
{
	return ni->upcalls->large_nids(ni);
}

/*
 * @up false: the NI has failed hard (requirement D7): its link is down, or its
 * address or its device has gone. @why says what, for the log; it is NULL when
 * the NI is back. While the NI is down, LNet does not use it for sending. The
 * LND makes this call before it acts on the failure. Soon afterwards it
 *	- ends everything under way on the NI, both ways, with -ENETDOWN and
 *	  LOCAL_NO_ROUTE if nothing has left, else LOCAL_ERROR; it does not use
 *	  lnet_send_again();
 *	- calls lnet_peer_connected() with -ENETDOWN and LOCAL_NO_ROUTE where
 *	  messages wait for a connection;
 *	- calls lnet_peer_disconnected() for the peers that it has connections
 *	  with, whether these end or survive;
 *	- refuses with -ENETDOWN whatever LNet still sends.
 * No effect if nothing has changed. Any CPT's thread.
 */
static inline void lnet_ni_set_up(struct lnd_ni *ni, bool up, const char *why)
{
	ni->upcalls->ni_set_up(ni, up, why);
}

/* The interface with the NI's address has the name @name now, which is shorter
 * than LNET_INTERFACE_SIZE. One thread at a time: the one that reads
 * ni->interface in the LND. */
static inline void lnet_ni_renamed(struct lnd_ni *ni, const char *name)
{
	ni->upcalls->ni_renamed(ni, name);
}

/* Counts what a connection has met whose peer is not known yet. CPT 0's
 * thread. */
static inline void lnet_ni_stranger(struct lnd_ni *ni, enum lnd_stranger what)
{
	ni->upcalls->ni_stranger(ni, what);
}

/* @cpt's part of the NI has stopped: see lnd.shutdown(). */
static inline void lnet_ni_stopped(struct lnd_ni *ni, unsigned int cpt)
{
	ni->upcalls->ni_stopped(ni, cpt);
}

/* The CPT that owns the peer @nid. It may change while there are no connections
 * with @nid (is_connected()), and right before they move (move()). Any
 * thread. */
static inline unsigned int lnet_ni_cpt_of(const struct lnd_ni *ni,
					  const struct ulnet_nid *nid)
{
	return ni->upcalls->ni_cpt_of(ni, nid);
}

/* ---- headers ---- */

/* The payload length that the header of @hdr_len bytes at @hdr announces;
 * unchecked. */
static inline uint32_t lnet_hdr_payload(const void *hdr, size_t hdr_len)
{
	const uint8_t *end = (const uint8_t *)hdr + hdr_len;

	return load_le32(end - LNET_HDR_UNION_SIZE - sizeof(uint32_t));
}

/* The source's pid, as the header of @hdr_len bytes at @hdr says. */
static inline uint32_t lnet_hdr_src_pid(const void *hdr, size_t hdr_len)
{
	const uint8_t *end = (const uint8_t *)hdr + hdr_len;

	return load_le32(end - LNET_HDR_UNION_SIZE - 3 * sizeof(uint32_t));
}

/* ---- lists of LNDs, which end with NULL ---- */

#define LND_COUNT_MAX 8

/* The LND of @lnds that serves nets of this type, or NULL. */
const struct lnd *lnd_find(const struct lnd *const *lnds, int type);
/* The index of @lnd in @lnds, below LND_COUNT_MAX; -1: not found. */
int lnd_index(const struct lnd *const *lnds, const struct lnd *lnd);

#endif
