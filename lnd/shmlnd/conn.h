/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection, and the messages on it.
 *
 * Frames (ring.h). SHM_MESSAGE is LNet's header and the payload, or its first
 * part; SHM_LARGE_MESSAGE the same with the header for large NIDs. SHM_MORE is
 * more of the payload. SHM_ABORT ends the payload before its time: its sender
 * has given it up. A message that fits half of the ring is one frame; a longer
 * one is cut, so that one side writes while the other one reads.
 *
 * Frames about loans (loan.h). SHM_LENT_MESSAGE is LNet's header, struct
 * shm_loan_hdr, and a struct shm_segment for each piece of the payload;
 * SHM_LENT_LARGE_MESSAGE the same with the header for large NIDs.
 * SHM_SHARED_MESSAGE and SHM_SHARED_LARGE_MESSAGE are like them, with offsets
 * in the lender's commons (view.h) in the place of addresses. The other two
 * follow a refusal, and begin with the loan's number as a uint64_t: SHM_AGAIN
 * has the first part of the payload behind it, and SHM_MORE the rest;
 * SHM_CALL_BACK is the number only: its sender has given the message up.
 *
 * Outgoing: a message that there is room for is written within send(), and
 * visible to a peer that polls at once; at the end of the turn a peer that
 * sleeps is woken, and LNet told that the messages are sent. Others wait in a
 * queue for room.
 *
 * Incoming: the header is copied, then parsed; the payload is copied straight
 * from the ring to its place. While LNet does not say where that is, nothing
 * more is read, and the ring fills up.
 *
 * What a peer can use up: its own ring; at most one bounce buffer that is being
 * filled, of the length of a payload (full ones count in LNet's shares);
 * SHM_LOANS messages that it has lent and that were refused, without bounce
 * buffers; a turn of the loop for each wake-up that it sends, as with any
 * socket.
 *
 * The end. The memory can be emptied (ring.h) when the peer has closed its end
 * of the socket, or has shut it down: then it reads nothing more. It may be
 * stopped in the middle of a message, and must not find zeros there later. So
 * a connection that this side gives up first is left: all messages on it have
 * ended, and this side reads nothing more, so what the peer writes is lost; but
 * socket and memory stay until the peer has closed its end, too, and count in
 * the share of connections of its process (peer.h). Only where the NI
 * goes down, which nobody can make it do again and again, nothing waits for
 * the peer, and the memory stays as it is.
 */
#ifndef LND_SHMLND_CONN_H
#define LND_SHMLND_CONN_H

#include "lnd/shmlnd/shmlnd.h"
#include "lnd/shmlnd/stall.h"
#include "lnd/shmlnd/view.h"

enum shm_frame_type {
	SHM_MESSAGE = 1,
	SHM_LARGE_MESSAGE,
	SHM_MORE,
	SHM_ABORT,
	/* loans */
	SHM_LENT_MESSAGE,
	SHM_LENT_LARGE_MESSAGE,
	SHM_AGAIN,
	SHM_CALL_BACK,
	SHM_SHARED_MESSAGE,
	SHM_SHARED_LARGE_MESSAGE,
};

enum shm_conn_state {
	SHM_CONN_NEW,
	SHM_CONN_GREETING, /* this side has sent HELLO, or waits for it */
	SHM_CONN_MOVING,   /* accepted, on its way to the CPT of its peer */
	SHM_CONN_OPEN,
	SHM_CONN_LEFT, /* this side has ended it, the peer has not */
	SHM_CONN_CLOSED,
	SHM_CONN_STATES
};
extern const struct fsm_state shm_conn_states[SHM_CONN_STATES];

#define SHM_MAGIC   0x68736c75u
#define SHM_VERSION 2u
/* Room for a sentence about two versions. */
#define SHM_VERSION_TEXT 64

/* What both sides say once, on the socket. That of the side which connects has
 * the memory with it. Both run on one host, so words are as the processor has
 * them. In all versions HELLO has this size, and begins with these two words: a
 * side that speaks another version answers with its own, and -EPROTONOSUPPORT.
 */
struct shm_hello {
	uint32_t magic, version;
	uint32_t net;	   /* LNET_NET_NUM() */
	uint32_t src, dst; /* addresses */
	uint32_t src_pid;
	uint32_t ring_size;
	int32_t status; /* of the answer: 0 or -errno */
	uint64_t incarnation;
	struct shm_token token;
	uint64_t reserved;
};

/* A line of outgoing messages; lnd_msg.priv points to it. */
struct shm_line {
	struct list msgs; /* lnd_msg.link */
	struct shm_conn *conn;
	bool begun; /* some of each, or all, is in the ring */
};

/* An incoming message whose header LNet has seen. */
struct shm_rx {
	struct shm_cpt *cpt;
	struct shm_conn *conn; /* NULL: no more payload is going to come */
	struct lnd_msg *msg;   /* NULL: not known yet, or discarded */
	/* bounce buffer for all of the payload; NULL while it is in
	 * shm_conn.refused */
	uint8_t *bounce;
	uint32_t length, got;  /* of the payload */
	bool answered;	       /* LNet has called recv() */
	bool bounced;	       /* LNet has called eager_recv() */
	int status;	       /* -errno: the rest will not come */
	uint32_t loan;	       /* the payload is lent; 0: it is in the ring */
	bool shared;	       /* it is lent in a commons */
	struct list link;      /* in shm_conn.refused */
};

/* What this side has lent. A slot is free if it is not in shm_conn.lent_slots.
 */
struct shm_loan {
	uint32_t loan;	     /* its number */
	struct lnd_msg *msg; /* NULL: it was called back */
	/* of commons_hold(), the first ones; the rest is 0 */
	uint32_t block[SHM_BLOCKS];
};

struct shm_conn {
	struct fsm fsm;
	struct shm_ni *sni;
	struct shm_cpt *cpt; /* set when the peer is known */
	struct loop *loop;
	struct shm_peer *peer; /* NULL: SHM_CONN_LEFT */
	struct env_io io;
	struct list link; /* in shm_gate.callers, or shm_cpt.left */
	struct lobby_guest guest;
	struct timer timer;
	struct work work;
	struct shm_hello hello; /* the peer's */
	struct shm_who who;
	bool accepted; /* the peer has opened it; counts in shm_cpt */
	/* env_io.rest() was called, and io.fn has not been since: this side is
	 * to be woken for whatever it waits for */
	bool resting;
	bool ended; /* the peer has closed the socket */
	/* the memory is to be emptied: the peer reads nothing more, or finds
	 * nothing in it; and this side has read what it needs, and reads
	 * nothing */
	bool spent;
	struct timer again; /* a wake-up is to be sent again */
	struct shm_ring ring;

	/* outgoing */
	struct shm_line queue, sent;
	struct lnd_msg *tx; /* partly written, in no line; or NULL */
	uint32_t tx_done;   /* bytes of its payload */
	bool abort_due;	    /* a frame SHM_ABORT is to be written first */
	bool unannounced;   /* written since the peer was last looked after */
	int failed;	    /* -errno: to be closed at the end of the turn */
	struct list flush;  /* node in shm_cpt.flush */

	/* outgoing: loans */
	uint32_t copy_min; /* bytes: shorter payloads are not lent */
	struct shm_line lent;
	struct shm_loan loans[SHM_LOANS];
	uint32_t lent_slots; /* bitmap: until they are answered */
	/* bitmap: of these, those that were refused, and about which a frame is
	 * to be written */
	uint32_t owed;
	uint32_t loans_made;
	bool handed; /* the peer was sent the commons */

	/* while timer is armed: is the peer to make room, to send more of a
	 * message, or to answer a loan? */
	struct shm_stall room, more, answers;
	uint64_t look; /* ns: when the next look is due */

	/* incoming */
	struct shm_rx *rx; /* NULL: between messages */
	/* the frame that rx is about, as long as it was not read */
	struct shm_frame held;
	uint32_t held_at; /* where the payload begins in it */
	bool holding;
	bool paused;	    /* LNet has not said where rx goes */
	bool may_copy;	    /* out of the peer's memory: shm_rx_try_copy() */
	bool answered;	    /* the peer is to be woken for answers */
	enum shm_view_state view_state;
	struct commons_view view; /* of the peer's commons; counts in shm_cpt */
	/* of shm_rx.link: the payload is to come by the ring */
	struct list refused;
	unsigned int nrefused;
	struct work resume; /* reads on */
	bool resuming;	    /* resume is scheduled */
};

struct shm_conn *shm_conn_new(struct shm_ni *sni, struct loop *loop, int fd);
/* Ends a connection that is not open. */
void shm_conn_drop(struct shm_conn *conn);
/* Makes @conn an open one of @peer, which watches its socket. Returns 0 or
 * -errno: the caller closes it. */
int shm_conn_open(struct shm_conn *conn, struct shm_peer *peer) must_check;
/* Closes an open connection, or leaves it, and ends its messages. Users'
 * handlers run. */
void shm_conn_close(struct shm_conn *conn, int status);
/* Closes a connection that was left. */
void shm_conn_release(struct shm_conn *conn);
/* Has the peer closed its end of the socket, or shut it down? */
bool shm_conn_hung_up(const struct shm_conn *conn);
/* The peer has ended @conn: nothing is sent over it any more, and what the peer
 * had written is read, now or when LNet says where it goes; then it is closed.
 * Users' handlers run. */
void shm_conn_retire(struct shm_conn *conn);
/* Reads on at the end of the turn. */
void shm_conn_resume(struct shm_conn *conn);
/* Gives the messages that were not begun back to LNet, except those given back
 * before. No user's handler runs. */
void shm_conn_give_back(struct shm_conn *conn);

static inline bool shm_conn_is_open(const struct shm_conn *conn)
{
	return conn->fsm.state == SHM_CONN_OPEN;
}

/* Wakes the peer, which nobody else does. */
void shm_conn_wake(struct shm_conn *conn);

/* ---- what comes in (rx.c) ---- */

/* Reads what had come when it began. Returns 0 or -errno; @conn may be closed
 * on return. Users' handlers run. */
int shm_rx_read(struct shm_conn *conn) must_check;
/* Takes the frame that was held, now that it is known where it goes. Returns 0
 * or -EPROTO. Users' handlers run. */
int shm_rx_take_held(struct shm_conn *conn) must_check;
/* Lets the peer write where frames were read, and tells it of answers. */
void shm_rx_give_room(struct shm_conn *conn);
/* Nothing more is going to come. Users' handlers run. */
void shm_rx_stop(struct shm_conn *conn, int status);
/* Is this side able to copy out of the memory of the peer, and may it? The peer
 * is told, but may lend nevertheless: conn->may_copy decides. */
void shm_rx_try_copy(struct shm_conn *conn);

/* lnd.send() and so on: see lnd.h. */
int shm_tx_send(struct lnd_ni *ni, struct lnd_msg *msg);
bool shm_tx_has_begun(struct lnd_ni *ni, const struct lnd_msg *msg);
void shm_rx_recv(struct lnd_ni *ni, void *rx, struct lnd_msg *msg,
		 uint32_t rlength);
int shm_rx_eager_recv(struct lnd_ni *ni, void *rx);
void shm_cancel(struct lnd_ni *ni, struct lnd_msg *msg, int status);
void shm_rx_cancel(struct lnd_msg *msg, int status);
/* What shm_cpt.flush_work calls. */
void shm_tx_flush(struct work *w);

/* Causes for a connection that has ended with @status. */
enum ulnet_cause shm_loss_unconnected(int status);
enum ulnet_cause shm_loss_begun(int status);
enum ulnet_cause shm_loss_queued(int status);

#endif
