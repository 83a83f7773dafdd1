/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between LNet and an LND (requirement A7). An LND is a folder and
 * one line in lnds.h and lnet/open.c; it knows this header, base/ and the
 * public NIDs, and nothing else of LNet. Each side calls the other by a table:
 * struct lnd, and struct lnd_upcalls. tests/lnd/ holds the suite that every LND
 * passes.
 *
 * Threads. A node has N CPTs, each a thread with a loop. Whatever concerns a
 * peer happens on the thread of the CPT that owns the peer: lnet_ni_cpt_of().
 * Calls of both directions for one message are made on that thread. There are
 * no locks.
 *
 * Time. LNet keeps the deadlines: when one passes, or a user gives a message
 * up, LNet calls cancel(). An LND has timers for its own protocol only
 * (handshake, keepalive, pauses between attempts to connect).
 *
 * The life of a message that goes out. LNet calls send(), which
 *	takes it	the LND has it until it calls lnet_finalize(), once, or
 *			gives it back by lnet_send_again();
 *	-EINPROGRESS	LNet keeps it, without credits, until the LND calls
 *			lnet_peer_connected(): then comes another send(), or
 *			the message ends;
 *	-errno		LNet keeps it, and ends it as not delivered, with this
 *			status and the cause that lnd_refusal_cause() finds for
 *			it. The LND has nothing of it.
 *
 * The life of a message that comes in. The LND calls lnet_parse(); LNet answers
 * with recv(), once, at once or later, and may call eager_recv() meanwhile. If
 * that recv() brings an lnd_msg, the LND calls lnet_finalize() for it, once. A
 * GET may be answered by answer() instead.
 *
 * What may be called from within what:
 *	send()		in any upcall, so in the midst of what the LND does just
 *			then. It makes no upcall itself.
 *	recv(), eager_recv(), answer()
 *			in lnet_parse(), or later. recv() may call
 *			lnet_finalize().
 *	cancel()	in no upcall: in turns of their own. It calls
 *			lnet_finalize().
 *	shutdown()	in no upcall.
 *	users' handlers	in lnet_finalize(), lnet_peer_connected() and
 *			lnet_peer_disconnected(), and they send. What an LND
 *			holds must be in order before it calls one of them, and
 *			it must look again afterwards: connections and queues
 *			may have changed.
 *
 * What has become of a message, in the words of lnet_finalize(), or of
 * lnet_peer_connected() if it has waited for a connection. What follows from
 * that, cause.h tells:
 *	it is sent, or received			0, OK
 *	send() refuses it, or there is no connection, and
 *	    the peer refuses, is not there, or
 *	    does not answer			REMOTE_DROPPED
 *	    there is no way to the peer		LOCAL_NO_ROUTE
 *	    this side has run out of something,
 *	    or may not				LOCAL_DROPPED
 *	its connection has ended, and nothing of it has left, because
 *	    the peer has ended the connection,
 *	    or does not answer			REMOTE_DROPPED
 *	    of this side			LOCAL_DROPPED
 *	its connection has ended, and some of it may have left, or come, because
 *	    the peer has ended the connection,
 *	    or breaks the protocol		REMOTE_ERROR
 *	    the peer, or the net, was silent	NETWORK_TIMEOUT
 *	    of this side			LOCAL_ERROR
 *	its bytes are not what was sent		-EIO, REMOTE_ERROR
 *	the NI fails hard (-ENETDOWN), and
 *	    nothing of it has left, or send()
 *	    refuses it				LOCAL_NO_ROUTE
 *	    some of it may have left, or come	LOCAL_ERROR
 *	the NI goes down (-ESHUTDOWN), and
 *	    nothing of it has left		LOCAL_ABORTED
 *	    some may have left, or come		SHUTDOWN
 *	LNet gave it up				see cancel()
 * A pause between attempts to connect is no cause: what comes meanwhile waits
 * for the next attempt, and shares what comes of it.
 */
#ifndef LND_LND_H
#define LND_LND_H

#include <sys/uio.h>
#include "base/buf.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/span.h"
#include "lnd/cause.h"
#include "ulnet/lnet.h"

#define LNET_HDR_SIZE	    72 /* header with 64-bit NIDs */
#define LNET_HDR_LARGE_SIZE 96 /* header with 20-byte NIDs */
/* Both end alike: ..., the source's pid, type, length of the payload, and what
 * depends on the type, of this size. */
#define LNET_HDR_UNION_SIZE 40

struct lnd;

/* A number that users may set for each NI, by the name that the kernel's LND
 * has for it, if it has one. */
struct lnd_tunable {
	const char *name;
	const char *unit; /* "s", "ms", "bytes", or "" */
	const char *help;
	int64_t min, max, def;
};

/* A row of an LND's table, of which tunable.def has one line for each. */
#define LND_TUNABLE(name_, unit_, min_, max_, def_, help_) \
	{                                                  \
#name_, unit_, help_, min_, max_, def_     \
	}

/* A local interface, as its LND sees it. LNet's, except priv. Immutable once
 * startup() has returned. */
struct lnd_ni {
	const struct lnd *lnd;
	const struct lnd_upcalls *upcalls;
	struct ulnet_nid nid;
	uint64_t incarnation; /* differs for each start of the NI */
	unsigned int cpts;
	struct loop *const *loops;	     /* cpts of them */
	char interface[LNET_INTERFACE_SIZE]; /* resolve() fills it */
	int numa_node; /* that the device is at: startup() may set it; else -1,
			* it is not known */
	/* In effect, in the order of lnd->tunables. startup() may write what
	 * a default comes to here. */
	int64_t *tunables;
	const struct ulnet_conf *conf; /* the node's, defaults filled in */
	/* So many messages does LNet have sent at a time, and to one peer. */
	uint32_t credits, peer_credits;
	/* The node's, for what the NIs of this LND share: NULL at first. CPT
	 * 0's thread. NULL: this LND shares nothing. */
	void **shared;
	void *net; /* where the node's LNDs find what they share (the simulated
		     * network); NULL in ordinary nodes */
	void *fabric;	 /* ... and where o2iblnd finds simulated devices */
	void *priv;	 /* the LND's */
	const char *why; /* startup() has failed, and this is missing: constant
			  * text, for users; or NULL */
};

/* A message, as an LND sees it. LNet's; lent to the LND from send(), answer()
 * or recv() until the LND calls lnet_finalize() for it. */
struct lnd_msg {
	struct lnd_ni *ni; /* that it is lent to */
	bool incoming;	   /* lent by recv(), and not by send() */
	bool large;	   /* send: it needs a header of LNET_HDR_LARGE_SIZE */
	struct ulnet_nid next_hop; /* send: whom to give it to, ... */
	uint32_t next_pid;	   /* ... which process there */
	unsigned int cpt;	   /* whose thread handles it */
	/* Payload: length bytes beginning offset bytes into iov. send(): to be
	 * read; recv(): to be written. */
	const struct iovec *iov;
	unsigned int niov;
	/* Registered memory that all of iov lies in: addresses that mean the
	 * same until forget() (lnet_mem_register(3)). NULL: none. */
	const struct span *mem;
	uint32_t offset;
	uint32_t length;
	uint64_t deadline; /* ns, of its loop; LNet enforces it */
	bool again; /* LNet's: it has been given back once (lnet_send_again) */
	/* The LND's own, while it has the message: */
	struct list link;
	void *priv;
	/* The observer's mark on an operation's request (observer.h); what a
	 * router passes on has the number of the try that it came with, else
	 * 0. mark NULL: the number means nothing. */
	void *mark;
	uint32_t mark_number;
};

/* What both ends of a connection have agreed upon. */
struct lnd_terms {
	uint32_t queue_depth; /* messages under way, each way */
	uint32_t max_frags;   /* pieces of memory that a descriptor may have */
};

struct lnd {
	const char *name;
	int type; /* LNET_TYPE_* that it serves; -1: only nodes ask for it */

	const struct lnd_tunable *tunables; /* NULL: none */
	unsigned int ntunables;		    /* <= LNET_TUNABLES_MAX */

	/*
	 * Optional; without it an NI is named by its NID alone. @interface,
	 * name or address, is where @nid's net is to be: fill in the address,
	 * of the size that @nid says, if there is one of that size.
	 * NULL: find out to which interface the address of @nid belongs. Writes
	 * the name to be shown. May take system calls; any thread. -ENODEV: no
	 * such interface; -EADDRNOTAVAIL: it has no address that can be used.
	 */
	int (*resolve)(const char *interface, struct ulnet_nid *nid,
		       char name[LNET_INTERFACE_SIZE]);

	/*
	 * The NI comes up: fill ni->priv, listen. On the thread that adds the
	 * NI, which may be the loop's own, so it must not wait for a peer; no
	 * other call is made for @ni until it has returned. What is to be done
	 * on a loop's thread (to watch a descriptor, to arm a timer), it has
	 * done there by loop_call(ni->loops[i], ...). 0 or a negative errno,
	 * which fails lnet_ni_add(), with nothing left behind.
	 */
	int (*startup)(struct lnd_ni *ni);

	/*
	 * @cpt's part of the NI goes down: no send() comes after this call. All
	 * messages that the LND has on this CPT are to be finalized
	 * (-ESHUTDOWN), messages being received dropped, and after that
	 * lnet_ni_stopped() called, from here or later. After lnet_ni_stopped()
	 * the LND makes no upcall for @ni on this CPT but to answer a recv():
	 * that may still come for what LNet holds. Must not block. CPT's
	 * thread.
	 */
	void (*shutdown)(struct lnd_ni *ni, unsigned int cpt);

	/* All CPTs have stopped and nothing is held: free ni->priv. Thread: of
	 * the last CPT. */
	void (*free)(struct lnd_ni *ni);

	/*
	 * Send @msg to msg->next_hop, to the process msg->next_pid there. One
	 * whose pid has LNET_PID_USERFLAG listens to nobody: only a connection
	 * that it has opened itself leads to it, and -EHOSTUNREACH is the
	 * answer while there is none. 0: the LND has it, and will call
	 * lnet_finalize() for it once it reads the payload no more, though not
	 * before send() has returned. -EINPROGRESS: there is no connection to
	 * next_hop, but the LND is about to have one: LNet keeps the message,
	 * which holds no credit meanwhile, and the LND will say what has come
	 * of it by lnet_peer_connected(), though not before send() has
	 * returned. Another negative errno: refused, LNet keeps it and nothing
	 * was sent. Messages to one peer that go the same way keep their
	 * order, unless the LND has gone over to a new connection: what went
	 * out on the old one may then arrive later than what follows. Must not
	 * block; may be called from within any upcall.
	 */
	int (*send)(struct lnd_ni *ni, struct lnd_msg *msg);

	/*
	 * LNet's answer to lnet_parse(): take the payload of the message that
	 * the LND called @rx. With @msg: store its first msg->length bytes,
	 * discard the rest (@rlength is what was announced), then
	 * lnet_finalize(@msg), from here or later. Without: discard everything.
	 * Comes exactly once for each lnet_parse() that returned 0: from within
	 * it or later. Until then the LND keeps @rx, even when its connection
	 * has died. Must not block.
	 */
	void (*recv)(struct lnd_ni *ni, void *rx, struct lnd_msg *msg,
		     uint32_t rlength);

	/*
	 * Optional, for LNDs whose peers say with a GET where its payload is to
	 * be written. @rx is a GET, and @msg the REPLY to it. 0: it is the
	 * answer to @rx, and so on its way. The LND has both, and will call
	 * lnet_finalize(), but not lnet_send_again(); recv() does not come.
	 * Another: recv() follows, without a message, and
	 *	-EOPNOTSUPP	this is a GET like others: the REPLY is sent;
	 *	-errno		there is no other way for the REPLY, which ends
	 *			as if send() had refused it.
	 * @msg NULL: only says whether there may be such an answer to @rx: 0,
	 * or -EOPNOTSUPP; nothing follows from that.
	 * Takes no credits. Must not block, and makes no upcall.
	 */
	int (*answer)(struct lnd_ni *ni, void *rx, struct lnd_msg *msg);

	/*
	 * LNet does not know yet where the payload of @rx goes, and that may
	 * take long (lazy portal, entry of another CPT). Move the payload
	 * aside, if there is any, so that what comes behind it on the same
	 * connection can be received. 0 or -errno: LNet then drops the message.
	 * Until LNet has called recv() or eager_recv() for @rx, the LND gives
	 * it nothing more from that connection, and reads no more than it must:
	 * this is how LNet keeps those back who send more than their share.
	 * From within lnet_parse() or later, and perhaps again: then there is
	 * nothing to be done. Must not block.
	 */
	int (*eager_recv)(struct lnd_ni *ni, void *rx);

	/*
	 * Give up @msg, lent by send(), answer() or recv(): on return its
	 * payload is neither read nor written any more, and lnet_finalize() has
	 * been called for it, with @status and the cause that tells how far it
	 * had come. The connection goes on: the rest of a half-sent message is
	 * sent from a copy, and what is still to come of an incoming one is
	 * thrown away. Only if there is no memory for the copy, of which each
	 * peer has a share, or if a device has been given the payload's own
	 * memory (mem), connections to the peer end.
	 *	send, nothing of it has left: LNET_CAUSE_LOCAL_TIMEOUT
	 *	send, some of it may have left: LNET_CAUSE_NETWORK_TIMEOUT
	 *	recv: LNET_CAUSE_NETWORK_TIMEOUT
	 */
	void (*cancel)(struct lnd_ni *ni, struct lnd_msg *msg, int status);

	/* Optional, for LNDs that do not copy what is registered: the user
	 * takes [@addr, @addr + @length) back, and what is found at these
	 * addresses later may be other memory. LNet lends nothing of it at
	 * present, and no device touches it on return, whatever it still has of
	 * messages that were given up. CPT's thread. */
	void (*forget)(struct lnd_ni *ni, unsigned int cpt, void *addr,
		       size_t length);

	/* Optional: may something of @msg, lent by send(), have left? LNet asks
	 * before it gives a message up in favour of another path. Without it,
	 * all of them count as begun. */
	bool (*has_begun)(struct lnd_ni *ni, const struct lnd_msg *msg);

	/* Optional; without it the LND knows no connections. Has the LND
	 * connections with @nid on @cpt, whose thread this is, or tries to have
	 * them? If not, LNet may have another CPT own @nid from now on
	 * (lnet_ni_cpt_of()). */
	bool (*is_connected)(struct lnd_ni *ni, unsigned int cpt,
			     const struct ulnet_nid *nid);

	/* Optional; without it a NID that is_connected() stays where it is. Can
	 * those connections all go to another CPT just now? Not while a message
	 * is under way on one of them, as far as the LND has heard of it, nor
	 * while the LND tries to connect. In a turn of @cpt's, out of no other
	 * call. */
	bool (*can_move)(struct lnd_ni *ni, unsigned int cpt,
			 const struct ulnet_nid *nid);
	/* Right after can_move(), and after lnet_ni_cpt_of() has begun to name
	 * the new owner: they go there. Nothing is lost or repeated by that;
	 * if there is no descriptor or no memory for it, or the NI goes down,
	 * they end as if they had failed. What comes in on them is for the new
	 * owner's thread from then on. */
	void (*move)(struct lnd_ni *ni, unsigned int cpt,
		     const struct ulnet_nid *nid);

	/* Optional, for users to see: what was agreed upon with @nid on @cpt,
	 * whose thread this is; of several connections, one for all. false:
	 * there is none. */
	bool (*terms)(struct lnd_ni *ni, unsigned int cpt,
		      const struct ulnet_nid *nid, struct lnd_terms *terms);

	/* Optional, for LNet's own checks: is lnet_peer_connected() still to
	 * come for @nid, whose CPT's thread this is? */
	bool (*is_connecting)(struct lnd_ni *ni, const struct ulnet_nid *nid);
};

/* ---- LNet's side. Thread: as said above. ---- */

/* What LNet does for LNDs, who have it of their NI: each does what the function
 * below says that has its name. */
struct lnd_upcalls {
	int (*parse)(struct lnd_ni *ni, const void *hdr, size_t hdr_len,
		     const struct ulnet_id *from, void *rx);
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
	void (*ni_stopped)(struct lnd_ni *ni, unsigned int cpt);
	unsigned int (*ni_cpt_of)(const struct lnd_ni *ni,
				  const struct ulnet_nid *nid);
};

/*
 * A message has come in from the process @from, which is the one at the other
 * end of the connection, on the net of @ni, and not what the header says. (A
 * NID may have many processes: one that listens, and any number that only call,
 * whose pids have LNET_PID_USERFLAG.) Its header is the first @hdr_len bytes
 * (LNET_HDR_SIZE or LNET_HDR_LARGE_SIZE) at @hdr, borrowed until return. @rx is
 * the LND's name for it. 0: recv() has been or will be called. -EPROTO: the
 * header is not what a sane peer sends: close the connection; recv() is not
 * called.
 */
static inline int lnet_parse(struct lnd_ni *ni, const void *hdr, size_t hdr_len,
			     const struct ulnet_id *from, void *rx)
{
	return ni->upcalls->parse(ni, hdr, hdr_len, from, rx);
}

/*
 * The LND is done with @msg. @status 0 and LNET_CAUSE_OK: sent (its bytes are
 * on their way: in the hands of the LND or of the system, who may lose them
 * with the connection) or received. Otherwise an errno and the cause;
 * LOCAL_INTERRUPT, LOCAL_DROPPED, LOCAL_ABORTED, LOCAL_NO_ROUTE, LOCAL_TIMEOUT
 * and REMOTE_DROPPED promise that the peer has not got the message and will
 * not. Users' handlers run inside this call and may send.
 */
static inline void lnet_finalize(struct lnd_msg *msg, int status,
				 enum ulnet_cause cause)
{
	msg->ni->upcalls->finalize(msg, status, cause);
}

/*
 * The attempt to connect to @peer is over, for which one or more calls of
 * send() were answered -EINPROGRESS: one call, however many they were. It is
 * about what waits for that process; with LNET_PID_ANY, for any of the NID (an
 * LND may have one connection for all). @status 0 and LNET_CAUSE_OK: there is a
 * connection; LNet calls send() for what waits, before this returns and in its
 * order, and nothing may be sent to @peer between the moment that send() would
 * take messages and this call. Otherwise what waits ends with @status and
 * @cause, which must be one that promises that the peer has not got the message
 * (see lnet_finalize()); users' handlers run, and may send, which makes LNet
 * ask for a connection again. Not for an NI that goes down: LNet has ended what
 * waits before shutdown(). Fine when nobody waits any more, or nobody did: LNet
 * likes to know that there is a connection.
 */
static inline void lnet_peer_connected(struct lnd_ni *ni,
				       const struct ulnet_id *peer, int status,
				       enum ulnet_cause cause)
{
	ni->upcalls->peer_connected(ni, peer, status, cause);
}

/*
 * Connections to the process @peer have ended (with LNET_PID_ANY: to any
 * process of the NID), and not in order: messages that lnet_finalize() has said
 * to be sent may be lost with them, and so may messages of the peer. The peer
 * has closed them, or they were reset, have failed, or were given up. Or the
 * NI's link has gone, and the connections may have survived when it is back.
 *
 * One call for all connections to a peer that have ended in one turn: in a
 * turn, out of no other call of either side, and once everything that was under
 * way on them has been finalized or given back. No call for connections that
 * have ended because the NI goes down, or once all that went over them had
 * arrived.
 *
 * A hint: a peer that vanishes without a word is noticed by time-outs only, if
 * it is at all, and an LND without connections never makes this call. How often
 * a peer can cause it is bounded by what connecting takes.
 */
static inline void lnet_peer_disconnected(struct lnd_ni *ni,
					  const struct ulnet_id *peer)
{
	ni->upcalls->peer_disconnected(ni, peer);
}

/*
 * Nothing comes back from the process @peer any more (with LNET_PID_ANY: any of
 * the NID), for longer than it usually takes: what was sent is not acknowledged
 * by the peer's system, or an attempt to connect, for which somebody waits, has
 * heard nothing. The peer is dead, or the net is cut, on this path; both ends
 * are suspect, as after NETWORK_TIMEOUT. Not so if the peer is only slow to
 * read.
 *
 * Nothing ends by that. What the LND had not begun it has given back
 * (lnet_send_again()), or, if it had done so once before, still has. What waits
 * for a connection goes on waiting. What was begun may still arrive, and
 * lnet_peer_connected() says when a connection can be used again. LNet may take
 * what waits over another path, and cancel() what it has lent and was not
 * begun: the connections do not suffer from that.
 *
 * @ns: for so long nothing has come back, as far as it was looked at. If
 * something else was heard on the NI meanwhile, it is the peer that is silent.
 *
 * Once when it begins to be silent, and again for what begins to wait
 * afterwards. In a turn, out of no other call of either side. (An LND that
 * cannot know never makes this call.)
 */
static inline void lnet_peer_silent(struct lnd_ni *ni,
				    const struct ulnet_id *peer, uint64_t ns)
{
	ni->upcalls->peer_silent(ni, peer, ns);
}

/*
 * @msg, lent by send(), was to go out on a connection that has ended before
 * anything of the message had left: the LND gives it back, and LNet treats it
 * as if send() had just been answered -EINPROGRESS, which the LND must keep.
 * Only while msg->again is not set. The message goes in front of all that wait,
 * so of several the last one is given back first. No user's handler runs.
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

/* Bytes that the REPLY to @msg may have, if that is a GET of this node's to
 * next_hop itself, and to nobody behind it; else 0. */
static inline uint32_t lnet_msg_asks(const struct lnd_msg *msg)
{
	return msg->ni->upcalls->msg_asks(msg);
}

/* Of @msg, for which lnet_msg_asks() is not 0: the fragments that its REPLY
 * goes to, from the first byte of the first one on; and the registered memory
 * that they lie in. False: in none. So until lnet_finalize(). */
static inline bool lnet_msg_sink(const struct lnd_msg *msg,
				 const struct iovec **iov, unsigned int *niov,
				 const struct span **mem)
{
	return msg->ni->upcalls->msg_sink(msg, iov, niov, mem);
}

/* Writes the header of the REPLY to @get, whose payload of @length bytes is
 * here already. An LND has such a REPLY come in: lnet_parse(). */
static inline void lnet_msg_reply_header(const struct lnd_msg *get,
					 uint32_t length, void *hdr,
					 size_t hdr_len)
{
	get->ni->upcalls->msg_reply_header(get, length, hdr, hdr_len);
}

/* How long an LND waits for a sign of progress before it gives a connection up,
 * ns (LNet's "lnd_timeout"; may change at any time). Any thread. */
static inline uint64_t lnet_lnd_timeout(const struct lnd_ni *ni)
{
	return ni->upcalls->lnd_timeout(ni);
}

/* Is the setting large_nids on: does this node offer peers a form of the LND's
 * protocol that carries large NIDs, also where theirs are not? Any thread. */
static inline bool lnet_large_nids(const struct lnd_ni *ni)
{
	return ni->upcalls->large_nids(ni);
}

/*
 * Hard failure of the NI (D7): its link is down, its address or its device has
 * gone; @why says so for the log, and is NULL when the NI is back. It is not
 * used for sending meanwhile. The LND says so before anything else follows of
 * it, and then, soon:
 *	- ends all that it has under way on the NI, either way, with -ENETDOWN:
 *	  LOCAL_NO_ROUTE if nothing has left, else LOCAL_ERROR; nothing is given
 *	  back by lnet_send_again();
 *	- answers those who wait for a connection: lnet_peer_connected() with
 *	  -ENETDOWN and LOCAL_NO_ROUTE;
 *	- calls lnet_peer_disconnected() for the peers that it has connections
 *	  with, whether these end or outlive it;
 *	- refuses, by -ENETDOWN, what LNet sends all the same.
 * Fine if nothing has changed. Any CPT's thread.
 */
static inline void lnet_ni_set_up(struct lnd_ni *ni, bool up, const char *why)
{
	ni->upcalls->ni_set_up(ni, up, why);
}

/* See shutdown(). */
static inline void lnet_ni_stopped(struct lnd_ni *ni, unsigned int cpt)
{
	ni->upcalls->ni_stopped(ni, cpt);
}

/* The CPT that owns the peer @nid: another one than before, perhaps, if there
 * were no connections with it (is_connected()), or before they move. Any
 * thread. */
static inline unsigned int lnet_ni_cpt_of(const struct lnd_ni *ni,
					  const struct ulnet_nid *nid)
{
	return ni->upcalls->ni_cpt_of(ni, nid);
}

/* ---- headers ---- */

/* Payload length, bytes, that the header of @hdr_len bytes at @hdr announces;
 * not checked. */
static inline uint32_t lnet_hdr_payload(const void *hdr, size_t hdr_len)
{
	const uint8_t *end = (const uint8_t *)hdr + hdr_len;

	return load_le32(end - LNET_HDR_UNION_SIZE - sizeof(uint32_t));
}

/* The pid that the header of @hdr_len bytes at @hdr says its source has. */
static inline uint32_t lnet_hdr_src_pid(const void *hdr, size_t hdr_len)
{
	const uint8_t *end = (const uint8_t *)hdr + hdr_len;

	return load_le32(end - LNET_HDR_UNION_SIZE - 3 * sizeof(uint32_t));
}

/* ---- lists of LNDs: a NULL ends one ---- */

#define LND_COUNT_MAX 8

/* The LND of @lnds that serves nets of this type, or NULL. */
const struct lnd *lnd_find(const struct lnd *const *lnds, int type);
/* Its place among them, below LND_COUNT_MAX; -1: it is not one of them. */
int lnd_index(const struct lnd *const *lnds, const struct lnd *lnd);

#endif
