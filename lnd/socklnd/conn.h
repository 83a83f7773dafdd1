/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection, from its socket's birth to its end. Belongs to the CPT that
 * owns the peer; a passive one to CPT 0 until its HELLO has said who the peer
 * is. Memory: freed at the end of the turn in which it was closed.
 */
#ifndef LND_SOCKLND_CONN_H
#define LND_SOCKLND_CONN_H

#include "base/fsm.h"
#include "base/lobby.h"
#include "lnd/socklnd/proto.h"
#include "lnd/silence.h"
#include "lnd/socklnd/sock.h"
#include "lnd/socklnd/socklnd.h"

struct sock_host;
struct sock_listener;
struct sock_peer;
struct sock_rx;
struct sock_tx;

enum conn_state {
	CONN_NEW,
	/* active */
	CONN_CONNECTING, /* TCP */
	CONN_WAITING,	 /* request and HELLO sent; for the answer */
	/* passive */
	CONN_REQUESTED, /* its request is being read */
	CONN_GREETED,	/* its HELLO is being read */
	CONN_MOVING,	/* to the CPT of its peer, where it is answered; or
			 * later, to the one that has become that (socklnd.c) */
	/* both */
	CONN_OPEN,
	/* open, but no message is given to it any more (peer.h): */
	CONN_ASIDE,
	CONN_FINISHING, /* is to end when what it has is written */
	CONN_FINISHED,	/* has told the peer so (FIN), and still reads */
	CONN_CLOSED,
	CONN_STATES
};
extern const struct fsm_state sock_conn_states[CONN_STATES];

/* What an open connection does with what it has to send (tx.c). */
enum sock_out_state {
	SOCK_OUT_IDLE,	  /* nothing is queued */
	SOCK_OUT_LISTED,  /* in sock_cpt.flush: written to at the end of the
			   * turn */
	SOCK_OUT_WRITING, /* is being written to just now */
	SOCK_OUT_WAITING, /* for its socket, or for the next turn: ENV_WRITE is
			   * asked for, and in no other state */
	SOCK_OUT_STATES
};
extern const struct fsm_state sock_out_states[SOCK_OUT_STATES];

/* The longest that is read in a handshake; no header is longer. */
#define CONN_BUF_SIZE (SOCK_HELLO_LARGE_SIZE + SOCK_HELLO_IPS_SIZE)

/* An open connection stands still from a header that LNet has not answered till
 * it does (lnd.h). */
enum conn_reading {
	CONN_READS,
	CONN_STANDS,
	CONN_RESUMES,  /* answered; reads in the next turn: timer is armed */
	CONN_HAS_READ, /* all that there is: the peer has finished */
};

struct sock_conn {
	struct env_io io;
	struct fsm fsm;
	bool active;	 /* opened by us */
	bool proven;	 /* moved: its peer was heard before */
	bool swap;	 /* the peer's byte order is not ours */
	uint8_t version; /* of the protocol */
	int8_t type;	 /* enum sock_type, as we see it */
	struct loop *loop;
	struct sock_ni *sni;  /* NULL till its request was read */
	struct sock_cpt *cpt; /* NULL till the peer is known */
	struct sock_peer *peer;
	struct sock_host *host; /* of an open one that the peer has opened */
	struct sock_left *left; /* moved: what is still where it was (conn.c) */
	union netif_addr remote;
	struct list link; /* listener's handshakes; peer's conns */
	struct work work; /* moves it; frees it */
	/* Of its passive handshake, till the peer is known: */
	struct sock_listener *listener;
	struct lobby_guest guest;

	struct timer timer; /* of the handshake; to go on reading */
	/* handshake: */
	struct sock_hello hello; /* the peer's */
	unsigned int hs_step, hs_have, hs_want;

	/* out: */
	struct list queue;  /* sock_tx.link, nothing of them written */
	uint64_t queued;    /* their bytes */
	struct fsm out;	    /* enum sock_out_state */
	struct list flush;  /* sock_cpt.flush: SOCK_OUT_LISTED */
	struct sock_tx *tx; /* large, being written; its header was first */
	uint32_t tx_done;   /* bytes of its payload written */
	uint8_t *rest;	    /* bytes before it that did not fit; or the rest of
			     * a frame that was given up */
	uint32_t rest_off, rest_len;
	uint32_t copied; /* bytes of rest that are payload given up, of ... */
	struct sock_host *copied_of; /* ... this host's share */
	struct sock_tx *noop; /* in the queue; takes more cookies, or NULL */
	unsigned int noops;   /* in the queue */
	uint64_t flushed;     /* ns: turn in which it was last written to */
	uint64_t written;     /* bytes, ever */
	uint64_t acked;	      /* of those, when TCP last made progress */
	uint64_t progress;    /* ns: and when that was, or nothing was sent */
	uint64_t acked_at;    /* ns: last time it made any */
	uint64_t used;	      /* by tx, a sequence number */
	struct silence silence;

	/* in: */
	uint8_t buf[CONN_BUF_SIZE]; /* of a handshake; a part of a header */
	struct sock_hdr hdr;
	unsigned int part_len;
	struct sock_rx *rx; /* payload is coming in */
	const uint8_t
		*at_hand;   /* while LNet is shown the header of rx: what was */
	size_t at_hand_len; /* read behind it; else NULL */
	enum conn_reading reading;
	int events;	 /* to be watched for while it reads */
	uint8_t *behind; /* bytes read behind rx while it stands still */
	size_t behind_len;
	uint32_t rx_limit;	/* bytes asked for at once */
	uint32_t readable_from; /* so many bytes make it readable */
	uint64_t heard;		/* ns; CONN_WAITING: when it was asked */
};

/* Open, be it set aside or not? */
static inline bool sock_conn_is_open(const struct sock_conn *conn)
{
	return conn->fsm.state >= CONN_OPEN && conn->fsm.state < CONN_CLOSED;
}

/* @fd becomes the connection's, on error too. @remote: where it leads. NULL: no
 * memory. */
struct sock_conn *sock_conn_new(struct loop *loop, int fd,
				const union netif_addr *remote);
/* What is waited for, reading only while it does not stand still; io.fn is
 * called. 0 or -ENOMEM. */
int sock_conn_watch(struct sock_conn *conn, int events);

/* Ends a connection that is not open, and takes it off whatever list it is
 * in. */
void sock_conn_drop(struct sock_conn *conn);

/* The handshake is over, and the connection is @peer's: messages may pass. */
void sock_conn_open(struct sock_conn *conn);

/* A connection that is set aside ends once the rest of what it has is written,
 * and the peer has finished, too: this may be now. */
void sock_conn_finish(struct sock_conn *conn);
/* The peer has finished with a connection that is set aside: the same. */
void sock_conn_has_read(struct sock_conn *conn);
/* All that @conn has is written. It may be closed afterwards. */
void sock_conn_has_written(struct sock_conn *conn);

/* Is nothing under way on @conn, so that another CPT can have it, for the first
 * time? The beginning of a header may have come: it goes along. */
bool sock_conn_can_move(const struct sock_conn *conn);
/* @conn is nobody's from now on, and has a new descriptor, which no loop knows;
 * what it leaves behind holds the passage. 0; or -errno, also if the NI goes
 * down, and nothing has changed. */
int sock_conn_leave(struct sock_conn *conn) must_check;

/* Ends @conn because of @status, a negative errno: what it has to send, and is
 * receiving, ends with that (sock.h). For peer.c, which looks after the other
 * connections of the peer. */
void sock_conn_close(struct sock_conn *conn, int status);

/* Has @conn something to send or to receive that must come to an end? */
bool sock_conn_is_busy(const struct sock_conn *conn);
/* Has @conn made no progress for @timeout? It may have been idle before
 * @since. */
bool sock_conn_is_overdue(struct sock_conn *conn, uint64_t now, uint64_t since,
			  uint64_t timeout);
/* Does nothing that @conn sends get through to the peer's system (silence.h)?
 * To be asked after sock_conn_is_overdue(), at the same @now. */
bool sock_conn_is_silent(struct sock_conn *conn, const struct silence_law *law,
			 uint64_t now);
/* Bytes that @conn has still to write. */
uint64_t sock_conn_left(const struct sock_conn *conn);

/* "10.0.0.1@tcp, 10.0.0.1:988, CONTROL"; for the log. */
#define CONN_STR_SIZE 160
char *sock_conn_str(const struct sock_conn *conn, char *buf, size_t size);

#endif
