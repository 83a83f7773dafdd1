/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection, from its socket's creation to its end. It belongs to the CPT
 * that owns its peer; one opened by the peer belongs to CPT 0 until its HELLO
 * has said who the peer is. Its memory is freed at the end of the turn in which
 * it was closed.
 */
#ifndef LND_SOCKLND_CONN_H
#define LND_SOCKLND_CONN_H

#include "base/door.h"
#include "base/fsm.h"
#include "base/lobby.h"
#include "lnd/socklnd/proto.h"
#include "lnd/silence.h"
#include "lnd/socklnd/sock.h"
#include "lnd/socklnd/socklnd.h"

struct sock_caller;
struct sock_host;
struct sock_listener;
struct sock_peer;
struct sock_rx;
struct sock_tx;
struct stream;

enum conn_state {
	CONN_NEW,
	/* opened by this node */
	CONN_CONNECTING, /* TCP is connecting */
	CONN_SECURING,	 /* TLS handshake */
	CONN_WAITING,	 /* request and HELLO are sent; the answer is awaited */
	/* opened by the peer */
	CONN_REQUESTED, /* its request is being read */
	CONN_GREETED,	/* its HELLO is being read */
	/* on its way to another CPT. In the handshake: to the CPT that owns the
	 * peer, which answers the HELLO. Later: to a new owner of the peer
	 * (socklnd.c) */
	CONN_MOVING,
	/* opened by either side: */
	CONN_OPEN,
	/* is read like CONN_OPEN, but takes no more messages to send (peer.h):
	 */
	CONN_SUSPENDED,
	CONN_FINISHING, /* ends as soon as everything queued on it is written */
	CONN_FINISHED,	/* has sent a FIN, and still reads */
	CONN_CLOSED,
	CONN_STATES
};
extern const struct fsm_state sock_conn_states[CONN_STATES];

/* The sending side of an open connection (tx.c). */
enum sock_out_state {
	SOCK_OUT_IDLE,	 /* nothing is queued */
	SOCK_OUT_LISTED, /* in sock_cpt.flush: written at the end of the turn */
	SOCK_OUT_WRITING, /* inside write_out() */
	/* waits until the socket is writable, or for the next turn; only in
	 * this state ENV_WRITE is watched */
	SOCK_OUT_WAITING,
	SOCK_OUT_STATES
};
extern const struct fsm_state sock_out_states[SOCK_OUT_STATES];

/* Bytes of the longest part of a handshake; headers are shorter. */
#define CONN_BUF_SIZE (SOCK_HELLO_LARGE_SIZE + SOCK_HELLO_IPS_SIZE)

/* The receiving side of an open connection. Reading is paused while LNet has
 * not answered lnet_parse() for a message: back-pressure (lnd.h). */
enum conn_reading {
	CONN_READ_ON,
	CONN_READ_PAUSED,
	/* LNet has answered; the timer will make it read on in the next turn */
	CONN_READ_RESUMING,
	CONN_READ_EOF, /* the peer has sent a FIN */
};

/* What caller.h keeps in a connection that a peer has opened, while its
 * handshake lasts. For caller.h only. */
struct sock_conn_caller {
	struct sock_caller *caller;
	struct list of;	       /* node in sock_caller.handshakes */
	struct list waits;     /* node in sock_caller.waiting */
	bool begun;	       /* TLS: the handshake has begun */
	bool called;	       /* it has waited, and now has its turn */
	enum door_class class; /* valid while @begun */
};

struct sock_conn {
	struct env_io io;
	struct fsm fsm;
	bool active; /* opened by this node */
	/* of the peer, before the connection moved to this CPT: peer.heard and
	 * .opened_at */
	bool peer_heard;
	bool swap;	 /* the peer's byte order is not this machine's */
	uint8_t version; /* version of the protocol */
	int8_t type;	 /* enum sock_type, from this node's view */
	struct loop *loop;
	struct sock_ni *sni;  /* NULL until its request was read */
	struct sock_cpt *cpt; /* NULL until the peer is known */
	struct sock_peer *peer;
	/* the peer's host, if the peer has opened the connection, while it is
	 * open; else NULL */
	struct sock_host *host;
	/* the descriptor that it had before it moved (conn.c); or NULL */
	struct sock_old_fd *old_fd;
	struct stream *tls; /* tls.h; NULL: without TLS */
	union netif_addr remote;
	/* node in sock_listener.handshakes, sock_peer.conns or
	 * sock_peer.suspended */
	struct list link;
	struct work work; /* moves or frees the connection */
	/* While a passive handshake does not know its peer: the listener, and
	 * the function to call when the handshake ends. Else NULL. */
	struct sock_listener *listener;
	void (*leave)(struct sock_conn *conn);
	struct sock_conn_caller caller;
	struct lobby_guest guest;

	/* ends the handshake when it takes too long; later makes reading go on
	 * (CONN_READ_RESUMING) */
	struct timer timer;
	/* for the handshake: */
	struct sock_hello hello; /* the peer's HELLO */
	unsigned int hs_step, hs_have, hs_want;

	/* for sending: */
	/* sock_tx.link: messages of which nothing is written yet */
	struct list queue;
	uint64_t queued;   /* bytes of all messages in queue */
	struct fsm out;	   /* enum sock_out_state */
	struct list flush; /* node in sock_cpt.flush, while SOCK_OUT_LISTED */
	/* the large message whose payload is being written; NULL: none */
	struct sock_tx *tx;
	uint32_t tx_done; /* bytes of the payload of @tx that are written */
	/* bytes that are to be written before @tx and @queue: what did not fit
	 * into the socket, the end of a frame that was given up, or what was
	 * pushed, which is in sock_cpt.push_buffer. NULL: none */
	uint8_t *rest;
	uint32_t rest_off, rest_len;
	/* how many bytes of @rest are the end of a frame that was given up */
	uint32_t copied;
	/* the host in whose share `copied` counts */
	struct sock_host *copied_of;
	/* a NOOP in the queue that has room for a cookie; or NULL */
	struct sock_tx *noop;
	unsigned int noops; /* how many NOOPs are in @queue */
	/* ns: the turn in which the connection was last written to */
	uint64_t flushed;
	uint64_t written; /* bytes that the socket has taken so far */
	/* how many bytes were acknowledged at the last check */
	uint64_t acked;
	/* ns: when a check last found progress, or nothing to write */
	uint64_t progress;
	/* ns: when a check last found that something was acknowledged */
	uint64_t acked_at;
	/* the value of sock_peer.uses when the connection was last chosen */
	uint64_t used;
	struct silence silence;

	/* for receiving: */
	uint8_t buf[CONN_BUF_SIZE]; /* part of a handshake, or of a header */
	struct sock_hdr hdr;
	unsigned int part_len; /* bytes of an incomplete header in buf */
	struct sock_rx *rx;    /* message whose payload is coming in, or NULL */
	/* During lnet_parse(): the bytes that were read together with rx's
	 * header and follow it; else NULL. */
	const uint8_t *buffered;
	size_t buffered_len;
	enum conn_reading reading;
	/* the events to watch for; ENV_READ among them counts only with
	 * CONN_READ_ON */
	int events;
	/* while not CONN_READ_ON: bytes that are read and not parsed yet */
	uint8_t *readahead;
	size_t readahead_len;
	uint32_t rx_limit; /* bytes that one read asks for, at most */
	/* the socket counts as readable with this many bytes (SO_RCVLOWAT) */
	uint32_t readable_from;
	/* ns: when the peer was last heard; CONN_WAITING: when the HELLO was
	 * sent */
	uint64_t heard;
	uint64_t peer_opened_at; /* see peer_heard */
};

/* Is @conn open (suspended or not)? */
static inline bool sock_conn_is_open(const struct sock_conn *conn)
{
	return conn->fsm.state >= CONN_OPEN && conn->fsm.state < CONN_CLOSED;
}

/* Returns the size of LNet's header on this connection. */
static inline size_t sock_conn_lnet_hdr(const struct sock_conn *conn)
{
	return conn->version < 4 ? LNET_HDR_SIZE : LNET_HDR_LARGE_SIZE;
}

/* Makes a connection of the socket @fd, which is closed on error. @remote: the
 * address of the other end. Returns NULL if there is no memory. */
struct sock_conn *sock_conn_new(struct loop *loop, int fd,
				const union netif_addr *remote);
/* Calls io.fn on @events from now on (on ENV_READ only with CONN_READ_ON).
 * Returns 0 or -ENOMEM. */
int sock_conn_watch(struct sock_conn *conn, int events);

/* Ends a connection that is not open, and takes it off all lists. */
void sock_conn_drop(struct sock_conn *conn);

/* Makes @conn, whose handshake is over, an open connection. */
void sock_conn_open(struct sock_conn *conn);

/* Ends @conn, which is suspended and has been replaced, now or later: when
 * everything that it has is written and the peer has finished, too. */
void sock_conn_finish(struct sock_conn *conn);
/* Called when the peer has finished with @conn, which is suspended: finishes it
 * on this side, too. */
void sock_conn_read_eof(struct sock_conn *conn);
/* Called when everything that @conn has is written. May close @conn. */
void sock_conn_all_written(struct sock_conn *conn);

/* Can @conn move to another CPT? It can do so once, and while nothing is under
 * way on it. A part of a header is allowed: it moves along. */
bool sock_conn_can_move(const struct sock_conn *conn);
/* Takes @conn off its peer, and gives it a new descriptor, which no loop
 * watches; the old one counts in the NI's passage. Returns 0, or a negative
 * errno, also if the NI goes down: then nothing has changed. */
int sock_conn_leave(struct sock_conn *conn) must_check;

/* Closes @conn because of @status, a negative errno, with which its messages in
 * both directions end. For peer.c only, which looks after the peer's other
 * connections. */
void sock_conn_close(struct sock_conn *conn, int status);

/* Is anything being written or received, or not acknowledged by the peer's TCP?
 */
bool sock_conn_is_busy(const struct sock_conn *conn);
/* Has @conn made no progress for @timeout ns? Time before @since does not
 * count. @now and @since: ns. */
bool sock_conn_is_overdue(struct sock_conn *conn, uint64_t now, uint64_t since,
			  uint64_t timeout);
/* Is @conn silent (silence.h)? Call sock_conn_is_overdue() before, with the
 * same @now. */
bool sock_conn_is_silent(struct sock_conn *conn, const struct silence_law *law,
			 uint64_t now);
/* Returns how many bytes @conn has still to write. */
uint64_t sock_conn_left(const struct sock_conn *conn);

/* A text for the log, such as "10.0.0.1@tcp, 10.0.0.1:988, CONTROL". */
#define CONN_STR_SIZE 160
char *sock_conn_str(const struct sock_conn *conn, char *buf, size_t size);

#endif
