/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection: from the wish to have one, or a peer's request, to the moment
 * when nothing of it is left. On one queue pair, fed with the backend's events;
 * knows no other connection, and nothing of LNet but where in messages its
 * headers are. What it says, and when: the protocol's version 2.
 *
 *	resolving -> connecting -.
 *		  passive: waiting -> open -> closing -> draining -> dead
 *				 `-----------^
 *
 *	open		messages pass. What has come before is looked at now, in
 *			its order.
 *	closing		for the rest of the turn: no message is sent, none is
 *			looked at, and the peer does not write to our memory.
 *	draining	the user knows. All that was posted is to come back.
 *	dead		the queue pair is gone. What the user still holds of
 *			received messages is all that there is.
 *
 * The user is told in turns of its own: out of the backend's events, of timers
 * and of deferred work, and never inside of a call that the user makes. In what
 * it is told it may call whatever there is here.
 *
 *	refused | (established, closed), then gone	once for each connection
 *	arrived		once for each message with an LNet header; each is to
 *			be answered, even after "gone"
 *	done		once for each transmit that was sent; before "gone"
 *	silent		any number of times, while it is open
 *
 * Whatever a peer does, it gets no more than 2D + 2 receives and D answers at a
 * time of this side, D being what was agreed upon; and what is not allowed ends
 * its connection, nothing else.
 *
 * Memory: the connection's own, freed after "gone" as soon as no received
 * message is held. Thread: its CPT's.
 */
#ifndef LND_O2IBLND_CONN_H
#define LND_O2IBLND_CONN_H

#include "base/log.h"
#include "lnd/o2iblnd/admit.h"
#include "lnd/o2iblnd/regcache.h"
#include "lnd/o2iblnd/tx.h"
#include "lnd/silence.h"

enum ib_conn_state {
	IB_CONN_NEW,
	IB_CONN_RESOLVING,  /* active: looks for the way */
	IB_CONN_CONNECTING, /* active: has asked the peer */
	IB_CONN_WAITING,    /* passive: has accepted */
	IB_CONN_OPEN,
	IB_CONN_CLOSING,
	IB_CONN_DRAINING,
	IB_CONN_DEAD,
	IB_CONN_STATES
};
extern const struct fsm_state ib_conn_states[IB_CONN_STATES];

/* A receive, and the message in it. */
enum ib_rx_state {
	IB_RX_IDLE,   /* not posted, and nobody's */
	IB_RX_POSTED, /* the device's */
	IB_RX_HELD,   /* has come, and waits to be looked at */
	IB_RX_SHOWN,  /* the user's, who has to answer */
	IB_RX_STATES
};
extern const struct fsm_state ib_rx_states[IB_RX_STATES];

struct ib_rx {
	struct fsm fsm;
	bool aside; /* shown: others may be shown meanwhile */
	struct ib_conn *conn;
	struct list link;  /* conn->early, ->behind, ->spares */
	struct list extra; /* conn->extras: it is not one of conn->rxs */
	struct ib_sge sge; /* none: a spare one, or the message is in ... */
	uint8_t *copy;	   /* this: another one has its receive */
	uint32_t length;   /* bytes that came */
	struct ib_msg msg; /* shown: type, LNet header, payload... */
	void *user;	   /* the user's */
};

struct ib_conn_user {
	/* Messages may be sent; those of the peer come next. conn->peer and
	 * the rest of what was agreed upon is known. */
	void (*established)(struct ib_conn *conn);
	/* It has not come about: @status as verbs.h has it for failed(), or
	 *	-EHOSTUNREACH	nobody listens there
	 *	-ECONNREFUSED	rejected; perhaps @refusal says why
	 *	-EPROTO, -ESTALE	answered with something else
	 *	-ENETDOWN	not answered in time
	 *	-ENOMEM, -errno	of this side
	 *	or what ib_conn_close() was given. */
	void (*refused)(struct ib_conn *conn, int status,
			const struct ib_refusal *refusal);
	/* It is open, and what was sent is not acknowledged, for @ns so far
	 * (silence.h). Nothing ends by that. Once when it begins, and again
	 * when more is to be sent then. */
	void (*silent)(struct ib_conn *conn, uint64_t ns);
	/* It has ended. @status: 0, the peer has disconnected; -ETIMEDOUT, a
	 * message was not done in time, or the peer is silent; -EPROTO,
	 * -ESTALE, of the peer; others of this side; or what ib_conn_close()
	 * was given. done() follows, now or later, for all that was not done;
	 * first for that of which nothing has left, what was sent last
	 * first. */
	void (*closed)(struct ib_conn *conn, int status);
	/* Its queue pair and its registered memory are gone, and @conn with
	 * them, but for messages that were not answered. */
	void (*gone)(struct ib_conn *conn);
	/* IMMEDIATE, PUT_REQ or GET_REQ: rx->msg. */
	void (*arrived)(struct ib_conn *conn, struct ib_rx *rx);
	/* tx->status, ->cause, ->nob; tx is the connection's again on return.
	 * Its memory is neither read nor written any more. */
	void (*done)(struct ib_tx *tx);
};

/* Tunables, as they are in effect. */
struct ib_conn_conf {
	unsigned int peer_credits; /* 1 to IB_DEPTH_MAX */
	unsigned int peer_credits_hiw;
	unsigned int concurrent_sends; /* at least 1 */
	unsigned int send_sge;	       /* pieces that a WRITE gathers */
	unsigned int max_inline;       /* bytes */
	uint64_t keepalive;	       /* ns; 0: none */
	struct silence_law silence;    /* a max of 0: home->timeout */
	bool cksum;		       /* of messages that are sent */
	bool cksum_lenient; /* wrong ones of IMMEDIATEs are only logged */
};

/* What the connections of an NI on a CPT have in common. The user's. */
struct ib_home {
	/* immutable after init */
	struct loop *loop;
	unsigned int cpt;
	struct ib_port *port;
	struct ib_end self;
	const struct ib_conn_conf *conf;
	const struct ib_conn_user *user;

	/* owner CPT */
	struct ib_tx_pool *pool;
	struct ib_regcache *spare; /* gives way to connections; or NULL */
	uint64_t timeout;   /* ns, for a message; may change at any time */
	unsigned int conns; /* that are not gone */
	struct log_limit log_limit;
};

/* A post_send() that has not ended. */
struct ib_call {
	struct ib_tx *tx;   /* whose WRITEs they are */
	struct ib_tx *send; /* whose SEND; the same, or a NOOP */
	unsigned int slots; /* of the send queue */
};

struct ib_conn {
	struct fsm fsm;
	bool active;	  /* opened by this side */
	bool established; /* the user was told */
	bool created;	  /* the queue pair has queues */
	bool deferred;	  /* work */
	bool keepalive;	  /* is due */
	struct ib_home *home;
	struct ib_qp *qp;
	struct ib_request terms; /* the peer, and what is asked for; since it is
				  * open, what was agreed upon */
	struct ib_hdr out, in;	 /* of messages, since it is open */
	void *user;		 /* the user's */

	/* why it has ended */
	int status;
	uint8_t blame; /* enum ib_blame */
	struct ib_refusal refusal;

	struct work work;
	struct timer timer;
	uint64_t sent_at;  /* ns: a message left */
	uint64_t heard_at; /* ns: the peer, or its device, was heard */
	struct silence silence;
	struct silence_acks acks; /* as they have been measured */
	bool told_silent;	  /* the user is */

	/* out (exchange.c) */
	struct ib_credit credit;
	struct list queues[IB_QUEUES]; /* ib_tx.link */
	unsigned int queued;	       /* in all of them */
	struct list waiting; /* ib_tx.link: posted, and to be answered */
	struct list all;     /* ib_tx.all */
	struct list ended;   /* ib_tx.link: to be told */
	struct ib_call *calls;
	unsigned int calls_max, first_call, ncalls;
	unsigned int noops; /* among them, or about to be */
	unsigned int timed; /* calls, until one whose time is taken; 0: none */
	uint64_t timed_at;  /* ns: when that was posted */
	unsigned int slots; /* of the send queue, free */
	unsigned int max_slots;
	unsigned int send_sge;

	/* in (receive.c) */
	struct ib_rx *rxs;
	unsigned int nrxs;
	void *rx_bufs;
	struct ib_mr *rx_mr;
	unsigned int receives; /* posted */
	struct list early;     /* ib_rx.link: came before it was open */
	struct list behind;    /* ib_rx.link: came behind one that is shown */
	struct list spares;    /* ib_rx.link: without a receive */
	struct list extras;    /* ib_rx.extra */
	unsigned int shown;
	unsigned int standing; /* of those: not set aside */
};

/* Opens a connection: to want->peer.nid, which is known as want->peer.stamp (0:
 * it is not known), of want->depth and want->frags at most. 0: the user will
 * hear; -errno of the backend, or -ENOMEM. */
int ib_conn_connect(struct ib_home *home, const struct ib_request *want,
		    void *user, struct ib_conn **conn_p) must_check;
/* Accepts the request of @qp, which ib_admit() found good. 0: takes @qp, and
 * the user will hear; -errno: @qp is the caller's still, to be rejected and
 * destroyed. */
int ib_conn_accept(struct ib_home *home, struct ib_qp *qp,
		   const struct ib_request *request, void *user,
		   struct ib_conn **conn_p) must_check;
/* Ends it, if it has not ended: -ESHUTDOWN, the NI goes down; -ENETDOWN,
 * -ENODEV, port or device have gone; -ESTALE, the peer is another one now;
 * -EPROTO, what it says makes no sense; -ETIMEDOUT; others are of this side. On
 * return the peer does not write to our memory any more; all else follows at
 * the end of the turn. */
void ib_conn_close(struct ib_conn *conn, int status);

static inline bool ib_conn_is_open(const struct ib_conn *conn)
{
	return conn->fsm.state == IB_CONN_OPEN;
}

/* struct ib_events, but for what is not of one connection. */
void ib_conn_on_resolved(struct ib_qp *qp);
void ib_conn_on_established(struct ib_qp *qp, const void *private,
			    size_t length);
void ib_conn_on_rejected(struct ib_qp *qp, int reason, const void *private,
			 size_t length);
void ib_conn_on_failed(struct ib_qp *qp, int status);
void ib_conn_on_disconnected(struct ib_qp *qp);
void ib_conn_on_received(struct ib_qp *qp, void *cookie, uint32_t length,
			 enum ib_wc_status status);
void ib_conn_on_sent(struct ib_qp *qp, void *cookie, enum ib_wc_status status);

/* ---- what passes over an open connection ---- */

/*
 * What passes over an open connection: LNet's messages, in the protocol's three
 * ways. None of these calls tells the user anything before it returns.
 *
 * To send: ib_tx_get(), the LNet header to ib_tx_header() (for IMMEDIATE, the
 * payload to ib_tx_payload()), and one of ib_send_*(), all in one go. What has
 * become of it, done() tells, once.
 *
 *	sent by			done() with OK
 *	ib_send_immediate()	the peer's device has it
 *	ib_send_put()		tx->nob bytes are in the peer's memory, and the
 *				peer's device has the PUT_DONE; or the peer
 *				wanted nothing (0)
 *	ib_send_get()		tx->nob bytes are in our memory
 *
 * What has arrived is to be answered, once, by
 *
 *	ib_rx_end()		whatever it is: it was taken, or is not wanted
 *	ib_rx_accept()		PUT_REQ: into this memory
 *	ib_rx_answer()		GET_REQ: out of this memory
 *
 * The latter two begin a transmit, whose done() tells what has come of it.
 * Nothing more with an LNet header is shown until it is answered or set aside;
 * answers of the peer to what this side has asked are looked at all the time.
 *
 * Memory is the user's: borrowed until done(), and so is the array that lists
 * the pieces of a source. A sink is one registration, as peers get one key.
 */

/* A transmit to be filled in. NULL: the connection is not open; or there is no
 * buffer just now. */
struct ib_tx *ib_tx_get(struct ib_conn *conn);
/* It is not sent after all. */
void ib_tx_unget(struct ib_tx *tx);

static inline uint8_t *ib_tx_header(const struct ib_tx *tx)
{
	return ib_tx_buf(tx) + IB_LNET_OFFSET;
}

static inline uint8_t *ib_tx_payload(const struct ib_tx *tx)
{
	return ib_tx_buf(tx) + IB_PAYLOAD_OFFSET;
}

/* Each leg of a message may take tx->time, that of a PUT half of it; whose time
 * has passed, ends its connection. */
/* @length: of the payload, at most IB_IMMEDIATE_MAX. */
void ib_send_immediate(struct ib_tx *tx, uint32_t length);
/* A PUT or REPLY, of @length bytes at @source. */
void ib_send_put(struct ib_tx *tx, const struct ib_sge *source,
		 uint32_t length);
/* A GET, of as many bytes as @sink has, which is borrowed until return.
 * -EMSGSIZE: it has more fragments than this connection carries, and @tx is the
 * caller's still. */
int ib_send_get(struct ib_tx *tx, const struct ib_sink *sink) must_check;

/* The user gives up a transmit that is not done; it will be told -ECANCELED, or
 * what has come of it before that. @memory_stays: its memory is good until
 * done() all the same, and the connection goes on. If not, that is neither read
 * nor written on return, and the connection ends if it was. Was anything of it
 * begun, so that the peer may have got it? */
bool ib_tx_abandon(struct ib_tx *tx, bool memory_stays);

/* What has arrived is done with. @status is for the peer: 0 or -errno; of an
 * IMMEDIATE it does not hear. -ENODATA: nothing matches its GET. */
void ib_rx_end(struct ib_rx *rx, int status);
/* The peer is to write its PUT to @sink, borrowed until return: no more than it
 * has. 0: takes @rx, and *@tx_p, with @user, is under way. -errno: @rx is the
 * caller's still; -ENOTCONN, -ENOMEM, -EMSGSIZE (too many fragments, or bytes
 * that the peer does not have). */
int ib_rx_accept(struct ib_rx *rx, const struct ib_sink *sink, void *user,
		 struct ib_tx **tx_p) must_check;
/* @length bytes at @source are what the peer gets. As ib_rx_accept();
 * -EMSGSIZE: it has no room for so many. */
int ib_rx_answer(struct ib_rx *rx, const struct ib_sge *source, uint32_t length,
		 void *user, struct ib_tx **tx_p) must_check;
/* It will take long: others may be shown meanwhile, and the peer may send more.
 * (Not in place of a PUT_REQ: it has D of these at most.) The message is
 * copied: what rx->msg points to is elsewhere on return. Whoever calls this
 * sees to it that the peer does not get too much of it. -ENOMEM: it stands as
 * before. Nothing happens if it is set aside already. */
int ib_rx_set_aside(struct ib_rx *rx) must_check;

#endif
