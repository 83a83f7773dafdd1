/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection over one queue pair, from the connect request on: a state
 * machine driven by the backend's events. It knows no other connection. Of LNet
 * it knows only where in a message the LNet header is. It speaks version 2 of
 * the protocol.
 *
 *	resolving -> connecting -.
 *		  passive: waiting -> open -> closing -> draining -> dead
 *				 `-----------^
 *
 *	open		messages pass; those received earlier are handled first
 *	closing		until the end of the turn: no message is sent or
 *			handled, and the peer cannot write to our memory
 *	draining	the user was told; work requests are still posted
 *	dead		the queue pair is destroyed; only received messages that
 *			the user still holds are left
 *
 * The user (peer.c) is called back from events of the backend, from timers and
 * from deferred work, never from inside a function that it calls. Its callbacks
 * may call any function of this file.
 *
 *	refused | (established, closed), then gone	once per connection
 *	arrived		once per message with an LNet header; the user must
 *			answer each, even after "gone"
 *	done		once per transmit, before "gone"
 *	silent		any number of times while the connection is open
 *
 * A peer can make this side hold no more than 2D + 2 receives and D answers,
 * where D is the negotiated queue depth. A protocol violation ends the
 * connection of the peer, and affects no other.
 *
 * A connection frees itself after "gone", as soon as the user holds no received
 * message of it. Thread: its CPT's.
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
	IB_CONN_RESOLVING,  /* active: address or route is being resolved */
	IB_CONN_CONNECTING, /* active: the request is sent */
	IB_CONN_WAITING,    /* passive: accepted, not confirmed yet */
	IB_CONN_OPEN,
	IB_CONN_CLOSING,
	IB_CONN_DRAINING,
	IB_CONN_DEAD,
	IB_CONN_STATES
};
extern const struct fsm_state ib_conn_states[IB_CONN_STATES];

/* A receive buffer, and the message in it. */
enum ib_rx_state {
	IB_RX_IDLE,   /* not posted, and holds no message */
	IB_RX_POSTED, /* posted to the device */
	IB_RX_HELD,   /* holds a message that was not handled yet */
	IB_RX_SHOWN,  /* holds a message that the user must answer */
	IB_RX_STATES
};
extern const struct fsm_state ib_rx_states[IB_RX_STATES];

struct ib_rx {
	struct fsm fsm;
	/* its message is shown, but does not hold up the next ones: it is in a
	 * bounce buffer */
	bool bounced;
	struct ib_conn *conn;
	struct list link; /* in ib_conn.early, .blocked or .spares */
	/* in ib_conn.extras, if it is not one of ib_conn.rxs */
	struct list extra;
	struct ib_sge sge; /* the receive buffer; length 0: there is none */
	/* copy of the message, if there is no receive buffer */
	uint8_t *bounce;
	uint32_t length;   /* number of bytes received */
	struct ib_msg msg; /* the message, decoded; valid once shown */
	void *user;	   /* for the user of the connection */
};

struct ib_conn_user {
	/* The connection is open: conn->terms has what was negotiated, and
	 * transmits may be sent. Messages of the peer follow. */
	void (*established)(struct ib_conn *conn);
	/* The connection was not established. @status is one that verbs.h lists
	 * for failed(), or one of:
	 *	-ECONNREFUSED	nobody listens
	 *	-ECONNRESET	rejected; @refusal may say why
	 *	-EPROTO, -ESTALE	the answer is not valid
	 *	-ENETDOWN	no answer in time
	 *	-ENOMEM, -errno	a local failure
	 *	the status given to ib_conn_close() */
	void (*refused)(struct ib_conn *conn, int status,
			const struct ib_refusal *refusal);
	/* What was sent has not been acknowledged for @ns (silence.h); the
	 * connection stays open. Called once per period of silence, and again
	 * when more is sent during it. */
	void (*silent)(struct ib_conn *conn, uint64_t ns);
	/* The connection, which was established, has ended. @status: 0, the
	 * peer disconnected; -ETIMEDOUT, a message missed its deadline or the
	 * peer is silent; -EPROTO or -ESTALE, the peer's fault; another local
	 * error; or the status given to ib_conn_close(). done() follows for all
	 * unfinished transmits, first for those of which nothing was sent, in
	 * reverse order. */
	void (*closed)(struct ib_conn *conn, int status);
	/* The queue pair and its registered memory are gone. @conn stays until
	 * the last received message is answered. */
	void (*gone)(struct ib_conn *conn);
	/* A message has arrived: rx->msg, an IMMEDIATE, PUT_REQ or GET_REQ. */
	void (*arrived)(struct ib_conn *conn, struct ib_rx *rx);
	/* Reports tx->status, ->cause and ->nob. The transmit goes back to the
	 * pool on return; its memory is neither read nor written any more. */
	void (*done)(struct ib_tx *tx);
};

/* Effective tunables. */
struct ib_conn_conf {
	unsigned int peer_credits; /* 1 to IB_DEPTH_MAX */
	unsigned int peer_credits_hiw;
	/* most calls of post_send() that have not completed, at least 1 */
	unsigned int concurrent_sends;
	/* most scatter/gather entries of a WRITE */
	unsigned int send_sge;
	unsigned int max_inline; /* most bytes that are posted inline */
	/* ns after the last SEND when a NOOP is sent; 0: never */
	uint64_t keepalive;
	/* when the peer counts as silent; its max 0 stands for set->timeout */
	struct silence_law silence;
	bool cksum; /* messages sent have a checksum */
};

/* What the connections of an NI on one CPT share. Owned by the user. */
struct ib_conn_set {
	/* immutable after init */
	struct loop *loop;
	unsigned int cpt;
	struct ib_port *port;
	struct ib_end self;
	const struct ib_conn_conf *conf;
	const struct ib_conn_user *user;

	/* owned by the CPT */
	struct ib_tx_pool *pool;
	/* cache from which registrations are evicted when memory is short;
	 * NULL: none */
	struct ib_regcache *regcache;
	/* ns that a message may take; may change at any time */
	uint64_t timeout;
	unsigned int conns; /* number of connections that are not gone */
	struct log_limit log_limit;
};

/* One call of post_send() that has not completed. */
struct ib_call {
	/* the transmit whose WRITEs, if there are any, were posted */
	struct ib_tx *tx;
	/* the transmit whose SEND was posted behind them: @tx itself, or a NOOP
	 */
	struct ib_tx *send;
	unsigned int slots; /* number of send queue entries that it uses */
};

struct ib_conn {
	struct fsm fsm;
	bool active;	  /* this side has opened the connection */
	bool established; /* established() was called */
	bool created;	  /* the queue pair has its queues */
	bool deferred;	  /* @work is deferred */
	bool keepalive;	  /* a keepalive NOOP is due */
	struct ib_conn_set *set;
	struct ib_qp *qp;
	/* The peer, and the queue depth and number of fragments: as requested,
	 * then as negotiated. */
	struct ib_request terms;
	/* headers of messages to and from the peer; valid once open */
	struct ib_hdr out, in;
	void *user; /* for the user of the connection */

	/* why the connection has ended: 0 or -errno */
	int status;
	uint8_t blame; /* enum ib_blame */
	struct ib_refusal refusal;

	struct work work;
	struct timer timer;
	uint64_t sent_at; /* ns: when the last SEND was posted */
	/* ns: when the last message or acknowledgement of the peer came */
	uint64_t heard_at;
	struct silence silence;
	/* round trips as measured, by which silence is told from delay */
	struct silence_acks acks;
	/* silent() was called for the present silence */
	bool told_silent;

	/* For sending (exchange.c): */
	struct ib_credit credit;
	/* of ib_tx.link: transmits that are still to be sent */
	struct list queues[IB_QUEUES];
	unsigned int queued; /* number of transmits in all queues */
	/* of ib_tx.link: transmits that were sent, and that the peer is to
	 * answer */
	struct list waiting;
	struct list all; /* of ib_tx.all: all transmits */
	/* of ib_tx.link: transmits for which done() must be called */
	struct list finished;
	struct ib_call *calls;
	unsigned int calls_max, first_call, ncalls;
	/* number of NOOPs that are posted, or about to be */
	unsigned int noops;
	/* position, in the ring of calls, of the call that is timed, from 1; 0:
	 * none */
	unsigned int timed;
	uint64_t timed_at;  /* ns: when the timed call was posted */
	unsigned int slots; /* number of free send queue entries */
	unsigned int max_slots;
	unsigned int send_sge;

	/* For receiving (receive.c): */
	struct ib_rx *rxs;
	unsigned int nrxs;
	void *rx_bufs;
	struct ib_mr *rx_mr;
	unsigned int receives; /* number of posted receives */
	/* of ib_rx.link: messages that arrived before the connection was open
	 */
	struct list early;
	/* of ib_rx.link: messages that must wait for a shown one */
	struct list blocked;
	/* of ib_rx.link: unused receives without a receive buffer */
	struct list spares;
	/* of ib_rx.extra: all receives that are not in @rxs */
	struct list extras;
	unsigned int shown;
	/* number of shown messages that hold up the next ones */
	unsigned int blocking;
};

/* Opens a connection to request->peer.nid, whose incarnation is
 * request->peer.stamp (0: unknown), asking for at most request->depth and
 * request->frags. Returns 0: established() or refused() follows. -errno of the
 * backend, or -ENOMEM: neither does. */
int ib_conn_connect(struct ib_conn_set *set, const struct ib_request *request,
		    void *user, struct ib_conn **conn_p) must_check;
/* Accepts the connect request of @qp, which ib_admit() has approved. Returns 0:
 * takes @qp, and established() or refused() follows. -errno: the caller keeps
 * @qp, and must reject and destroy it. */
int ib_conn_accept(struct ib_conn_set *set, struct ib_qp *qp,
		   const struct ib_request *request, void *user,
		   struct ib_conn **conn_p) must_check;
/* Ends the connection, unless it has ended. @status is the reason: -ESHUTDOWN,
 * the NI shuts down; -ENETDOWN, -ENODEV, the port is down or its device gone;
 * -ESTALE, the peer has restarted; -EPROTO, a protocol violation; -ETIMEDOUT;
 * others are local failures. On return the peer cannot write to our memory any
 * more; the user is told at the end of the turn. */
void ib_conn_close(struct ib_conn *conn, int status);

static inline bool ib_conn_is_open(const struct ib_conn *conn)
{
	return conn->fsm.state == IB_CONN_OPEN;
}

/* Handle the events of one connection, as the functions of struct ib_events do.
 */
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

/* ---- messages over an open connection ---- */

/*
 * Messages over an open connection. None of these functions calls the user back
 * before it returns.
 *
 * To send: ib_tx_get(); write the LNet header to ib_tx_header() and, for an
 * IMMEDIATE, the payload to ib_tx_payload(); then ib_send_*(), in the same
 * turn. done() reports the result, once:
 *
 *	sent by			done() with status 0 means
 *	ib_send_immediate()	the peer's device has it
 *	ib_send_put()		tx->nob bytes are in the peer's memory, and the
 *				peer's device has the PUT_DONE; 0: the peer
 *				wanted none
 *	ib_send_get()		tx->nob bytes are in our memory
 *
 * Each message that has arrived must be answered, once, by
 *
 *	ib_rx_end()		any type: it was taken, or is not wanted
 *	ib_rx_accept()		PUT_REQ: into this memory
 *	ib_rx_answer()		GET_REQ: out of this memory
 *
 * The latter two begin a transmit, and done() reports its result. The next
 * message with an LNet header is shown only once this one is answered or moved
 * to a bounce buffer; answers to our own requests are always handled.
 *
 * Payload memory, and the array that lists a source's parts, are borrowed until
 * done(). A sink must be one registration, since a peer gets one key.
 */

/* Returns a new transmit to be filled in. NULL: the connection is not open, or
 * no buffer is free. */
struct ib_tx *ib_tx_get(struct ib_conn *conn);

static inline uint8_t *ib_tx_header(const struct ib_tx *tx)
{
	return ib_tx_buf(tx) + IB_LNET_OFFSET;
}

static inline uint8_t *ib_tx_payload(const struct ib_tx *tx)
{
	return ib_tx_buf(tx) + IB_PAYLOAD_OFFSET;
}

/* When a message takes longer than tx->time (for a PUT, half of that), the
 * connection ends. */
/* Sends an IMMEDIATE with @length bytes of payload, at most IB_IMMEDIATE_MAX.
 */
void ib_send_immediate(struct ib_tx *tx, uint32_t length);
/* Sends a PUT or REPLY of @length bytes at @source. */
void ib_send_put(struct ib_tx *tx, const struct ib_sge *source,
		 uint32_t length);
/* Sends a GET of as many bytes as @sink has room for; @sink is borrowed until
 * return. -EMSGSIZE: too many fragments for this connection. */
int ib_send_get(struct ib_tx *tx, const struct ib_sink *sink) must_check;

/* Abandons an unfinished transmit: done() will report -ECANCELED, unless the
 * transmit already has a result. @memory_stays: its memory stays valid until
 * done(), and the connection goes on. Otherwise the memory is not accessed any
 * more on return; if a device might still have accessed it, the connection
 * ends. Returns whether anything was sent, so that the peer may have got it. */
bool ib_tx_abandon(struct ib_tx *tx, bool memory_stays);

/* Answers a message with @status, 0 or -errno; -ENODATA: nothing matches the
 * GET. The peer is not told if it was an IMMEDIATE. */
void ib_rx_end(struct ib_rx *rx, int status);
/* Lets the peer write its PUT to @sink, which is borrowed until return and is
 * no longer than the PUT. Returns 0: takes @rx, and the transmit *@tx_p, with
 * @user in it, has begun. -errno: the caller keeps @rx; -ENOTCONN, -ENOMEM,
 * -EMSGSIZE (too many fragments, or more bytes than the PUT has). */
int ib_rx_accept(struct ib_rx *rx, const struct ib_sink *sink, void *user,
		 struct ib_tx **tx_p) must_check;
/* Answers a GET with @length bytes at @source. Returns as ib_rx_accept();
 * -EMSGSIZE: the peer has no room for so many. */
int ib_rx_answer(struct ib_rx *rx, const struct ib_sge *source, uint32_t length,
		 void *user, struct ib_tx **tx_p) must_check;
/* Moves the message of @rx, which LNet will not answer soon, to a bounce
 * buffer, so that the next messages may be shown and the peer may send more.
 * rx->msg points there on return. (A PUT_REQ keeps its receive, of which the
 * peer has D at most.) The caller limits what a peer can have in bounce
 * buffers. Returns 0, also if that was done before; -ENOMEM: nothing has
 * changed. */
int ib_rx_bounce(struct ib_rx *rx) must_check;

#endif
