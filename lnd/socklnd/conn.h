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
	/* active */
	CONN_CONNECTING, /* TCP is connecting */
	CONN_SECURING,	 /* TLS begins */
	CONN_WAITING,	 /* request and HELLO sent; waits for the answer */
	/* passive */
	CONN_REQUESTED, /* its request is being read */
	CONN_GREETED,	/* its HELLO is being read */
	/* on its way to another CPT: in the handshake to the one that owns the
	 * peer, where the HELLO is answered; later to a new owner of the peer
	 * (socklnd.c) */
	CONN_MOVING,
	/* both */
	CONN_OPEN,
	/* open for reading, but takes no more messages to send (peer.h): */
	CONN_SUSPENDED,
	CONN_FINISHING, /* ends once everything it has is written */
	CONN_FINISHED,	/* has sent a FIN, and still reads */
	CONN_CLOSED,
	CONN_STATES
};
extern const struct fsm_state sock_conn_states[CONN_STATES];

/* The sending side of an open connection (tx.c). */
enum sock_out_state {
	SOCK_OUT_IDLE,	 /* nothing is queued */
	SOCK_OUT_LISTED, /* in sock_cpt.flush: written at the end of the turn */
	SOCK_OUT_WRITING, /* inside out_write() */
	SOCK_OUT_WAITING, /* until the socket is writable, or for the next turn:
			   * ENV_WRITE is watched, in this state only */
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
	CONN_READ_RESUMING, /* LNet has answered; the timer is armed, to read on
			     * in the next turn */
	CONN_READ_EOF,	    /* the peer has finished */
};

/* A passive handshake, as one of its caller's (caller.h, which alone uses
 * this). */
struct sock_conn_caller {
	struct sock_caller *caller;
	struct list of;	       /* sock_caller.handshakes */
	struct list waits;     /* sock_caller.waiting */
	bool begun;	       /* with TLS */
	bool called;	       /* has waited, and may go on */
	enum door_class class; /* valid while begun */
};

struct sock_conn {
	struct env_io io;
	struct fsm fsm;
	bool active;	 /* opened by us */
	bool proven;	 /* the peer was heard before this connection moved */
	bool swap;	 /* the peer's byte order is not ours */
	uint8_t version; /* of the protocol */
	int8_t type;	 /* enum sock_type, as we see it */
	struct loop *loop;
	struct sock_ni *sni;  /* NULL until its request was read */
	struct sock_cpt *cpt; /* NULL until the peer is known */
	struct sock_peer *peer;
	/* the peer's, while it is open, if the peer has opened it; else NULL */
	struct sock_host *host;
	/* its descriptor before it moved (conn.c); or NULL */
	struct sock_old_fd *old_fd;
	struct stream *tls; /* tls.h; NULL: it is without TLS */
	union netif_addr remote;
	/* sock_listener.handshakes; sock_peer.conns or suspended */
	struct list link;
	struct work work; /* moves or frees the connection */
	/* A passive handshake, until the peer is known: its listener, and how
	 * it leaves that when it ends; else NULL */
	struct sock_listener *listener;
	void (*leave)(struct sock_conn *conn);
	struct sock_conn_caller caller;
	struct lobby_guest guest;

	/* time-out of the handshake; later ends CONN_READ_RESUMING */
	struct timer timer;
	/* handshake: */
	struct sock_hello hello; /* the peer's */
	unsigned int hs_step, hs_have, hs_want;

	/* out: */
	struct list queue;  /* sock_tx.link: nothing of these is written yet */
	uint64_t queued;    /* bytes of all in queue */
	struct fsm out;	    /* enum sock_out_state */
	struct list flush;  /* sock_cpt.flush: SOCK_OUT_LISTED */
	struct sock_tx *tx; /* large message whose payload is being written */
	uint32_t tx_done;   /* bytes of its payload that are written */
	uint8_t *rest; /* bytes still to be written before tx: they did not fit
			* into the socket, or end a frame that was given up */
	uint32_t rest_off, rest_len;
	uint32_t copied; /* bytes of rest that end a frame that was given up */
	struct sock_host *copied_of; /* in whose share "copied" counts */
	/* in the queue, with room for a cookie; or NULL */
	struct sock_tx *noop;
	unsigned int noops; /* number of NOOPs in the queue */
	uint64_t flushed;   /* ns: turn in which it was last written to */
	uint64_t written;   /* bytes that the socket has taken so far */
	uint64_t acked;	    /* bytes acknowledged, at the last check */
	/* ns: last check that found progress, or nothing to write */
	uint64_t progress;
	/* ns: last check that found something acknowledged */
	uint64_t acked_at;
	uint64_t used; /* value of sock_peer.uses when last chosen */
	struct silence silence;

	/* in: */
	uint8_t buf[CONN_BUF_SIZE]; /* part of a handshake, or of a header */
	struct sock_hdr hdr;
	unsigned int part_len; /* bytes of a header in buf */
	struct sock_rx *rx;    /* message whose payload is coming in, or NULL */
	/* During lnet_parse(): the bytes that were read together with rx's
	 * header and follow it; else NULL. */
	const uint8_t *buffered;
	size_t buffered_len;
	enum conn_reading reading;
	int events;	    /* to watch for (ENV_READ only with CONN_READ_ON) */
	uint8_t *readahead; /* not CONN_READ_ON: bytes read and not parsed */
	size_t readahead_len;
	uint32_t rx_limit;	/* bytes that one read asks for at most */
	uint32_t readable_from; /* bytes that make the socket readable */
	/* ns: last read; CONN_WAITING: when the HELLO was sent */
	uint64_t heard;
};

/* Open, suspended or not? */
static inline bool sock_conn_is_open(const struct sock_conn *conn)
{
	return conn->fsm.state >= CONN_OPEN && conn->fsm.state < CONN_CLOSED;
}

/* The size of LNet's header on this connection. */
static inline size_t sock_conn_lnet_hdr(const struct sock_conn *conn)
{
	return conn->version < 4 ? LNET_HDR_SIZE : LNET_HDR_LARGE_SIZE;
}

/* Makes a connection of the socket @fd, which is closed on error. @remote: the
 * other end. NULL: no memory. */
struct sock_conn *sock_conn_new(struct loop *loop, int fd,
				const union netif_addr *remote);
/* Watches for @events (but for ENV_READ only with CONN_READ_ON), and calls
 * io.fn. 0 or -ENOMEM. */
int sock_conn_watch(struct sock_conn *conn, int events);

/* Ends a connection that is not open, and takes it off all lists. */
void sock_conn_drop(struct sock_conn *conn);

/* The handshake is over: messages may pass. */
void sock_conn_open(struct sock_conn *conn);

/* @conn, which is suspended, has been replaced: it ends, now or later, once
 * everything it has is written and the peer has finished, too. */
void sock_conn_finish(struct sock_conn *conn);
/* The peer has finished with @conn, which is suspended: so do we. */
void sock_conn_read_eof(struct sock_conn *conn);
/* Everything that @conn has is written. It may be closed on return. */
void sock_conn_all_written(struct sock_conn *conn);

/* Can @conn move to another CPT? Only once, and while nothing is under way on
 * it, except perhaps a part of a header, which moves along. */
bool sock_conn_can_move(const struct sock_conn *conn);
/* Takes @conn off its peer, and gives it a new descriptor, which no loop
 * watches; the old one counts in the NI's passage. 0; -errno (also if the NI
 * goes down): nothing has changed. */
int sock_conn_leave(struct sock_conn *conn) must_check;

/* Closes @conn because of @status, a negative errno, which ends its messages
 * both ways. For peer.c only, which looks after the peer's other
 * connections. */
void sock_conn_close(struct sock_conn *conn, int status);

/* Is anything being written or received, or not acknowledged by the peer's TCP?
 */
bool sock_conn_is_busy(const struct sock_conn *conn);
/* Has @conn made no progress for @timeout, not counting time before @since?
 * All in ns. */
bool sock_conn_is_overdue(struct sock_conn *conn, uint64_t now, uint64_t since,
			  uint64_t timeout);
/* Is @conn silent (silence.h)? Call sock_conn_is_overdue() before, with the
 * same @now. */
bool sock_conn_is_silent(struct sock_conn *conn, const struct silence_law *law,
			 uint64_t now);
/* Bytes that @conn has still to write. */
uint64_t sock_conn_left(const struct sock_conn *conn);

/* "10.0.0.1@tcp, 10.0.0.1:988, CONTROL"; for the log. */
#define CONN_STR_SIZE 160
char *sock_conn_str(const struct sock_conn *conn, char *buf, size_t size);

#endif
