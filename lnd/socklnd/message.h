/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages: outgoing (tx.c) and incoming (rx.c).
 *
 * Everything that a turn has queued on a connection is written at its end, in
 * as few writes as possible. Small messages are copied into one buffer, and are
 * done at once (the last one when it is written). A large one, from
 * zc_min_payload on, is sent from the user's memory, and is done when the
 * socket has taken all of it. The first small messages of a turn need no place
 * in a queue: they are copied straight into the push buffer, of which the CPT
 * has one, and which a connection uses as its rest (sock_conn.rest) until it
 * has written it.
 *
 * So this node need not know when the peer has received a payload, and asks for
 * no acknowledgement. Kernel nodes do ask, since they send from the user's
 * memory until then (zero copy). An acknowledgement travels with a message that
 * is queued for the peer; if there is none, it is written last, as a NOOP.
 * Keepalives are NOOPs, too.
 *
 * When LNet gives up a message whose frame is partly written, the rest of the
 * frame is copied and still sent, or else the peer could not find the start of
 * the next frame.
 *
 * On the way in, one read takes many small frames, which are parsed in place;
 * the payload of a large one is read straight into the user's memory.
 */
#ifndef LND_SOCKLND_MESSAGE_H
#define LND_SOCKLND_MESSAGE_H

#include "lnd/socklnd/peer.h"

/* ---- outgoing ---- */

struct sock_tx {
	/* node in sock_conn.queue; while this is sock_conn.tx, it is in no list
	 */
	struct list link;
	struct lnd_msg *msg; /* NULL: a NOOP */
	struct sock_conn *conn;
	uint64_t cookie[2]; /* as on the wire */
};

/* lnd.send(): see lnd.h. */
int sock_tx_send(struct lnd_ni *ni, struct lnd_msg *msg);
/* lnd.push(): see lnd.h. */
bool sock_tx_push(struct lnd_ni *ni, struct lnd_msg *msg);
void sock_tx_cancel(struct sock_tx *tx, int status);
bool sock_tx_has_begun(struct lnd_ni *ni, const struct lnd_msg *msg);

/* Acknowledges the payload of the peer's message @cookie. */
void sock_tx_ack(struct sock_conn *conn, uint64_t cookie);
void sock_tx_keepalive(struct sock_conn *conn);

/* Gives the messages that are queued on @conn and not begun back to LNet,
 * except those that were given back once before. @conn is about to be closed,
 * or suspended. No user's handler runs. */
void sock_tx_give_back(struct sock_conn *conn);
/* Takes all messages off @conn, which stays open. The one being written goes to
 * @begun (sock_tx.link), and the rest of its frame is sent from a copy. Those
 * of which nothing was sent go to @queued. NOOPs stay. Returns 0; or -ENOBUFS
 * or -ENOMEM: there is no room for the copy, the message being written stays,
 * and the caller closes @conn. */
int sock_tx_detach(struct sock_conn *conn, struct list *begun,
		   struct list *queued) must_check;
/* Ends the messages that are in @list now. Users' handlers run; messages that
 * they add to @list stay. */
void sock_tx_end(struct list *list, int status, enum ulnet_cause cause);
/* Ends what is left on a connection that is closed: see sock_conn_close(). */
void sock_tx_conn_closed(struct sock_conn *conn, int status);

/* Called when the socket is writable. */
void sock_tx_writable(struct sock_conn *conn);

/* What sock_cpt.flush_work calls. */
void sock_tx_flush(struct work *w);

/* Do what sock_tx_writable() and sock_tx_flush() do, for connections with TLS
 * (tls.h). */
void sock_tx_writable_tls(struct sock_conn *conn);
void sock_tx_flush_tls(struct work *w);
/* Called when TLS itself has something to write. */
void sock_tx_flush_soon(struct sock_conn *conn);

/* ---- incoming ---- */

/* How many bytes a read asks for besides payload that goes straight to its
 * place. RX_LIMIT_SMALL_FRAMES is enough for many frames. RX_LIMIT_PAYLOADS is
 * little more than the next header, because a payload is likely to follow that.
 */
#define RX_LIMIT_SMALL_FRAMES (16u << 10)
#define RX_LIMIT_PAYLOADS     4096u

/* An incoming message whose header LNet has seen. */
struct sock_rx {
	bool answered; /* LNet has called recv() */
	bool bounced;  /* LNet has called eager_recv() */
	/* the peer has sent a checksum, which is to be compared */
	bool summed;
	/* 0, or -errno if the rest of the payload will not come */
	int status;
	struct sock_cpt *cpt;
	/* NULL: no more payload is going to come */
	struct sock_conn *conn;
	/* where the payload goes once LNet has answered; NULL: it is discarded
	 */
	struct lnd_msg *msg;
	uint8_t *bounce; /* bounce buffer for all of the payload, or NULL */
	uint64_t cookie;
	uint32_t csum;
	uint32_t length; /* bytes of the payload, as announced */
	uint32_t got;
};

/* Called when the socket is readable. */
void sock_rx_readable(struct sock_conn *conn);
/* Does what sock_rx_readable() does, for a connection with TLS (tls.h). */
void sock_rx_readable_tls(struct sock_conn *conn);

/* Reads what has come of a payload, however little it is, so that a slow peer
 * is seen to be alive. Called now and then. */
void sock_rx_take_any(struct sock_conn *conn);

/* lnd.recv() and lnd.eager_recv(): see lnd.h. */
void sock_rx_recv(struct lnd_ni *ni, void *priv, struct lnd_msg *msg,
		  uint32_t rlength);
int sock_rx_eager_recv(struct lnd_ni *ni, void *priv);
void sock_rx_cancel(struct sock_rx *rx, int status);

/* Moves the message whose payload is coming in, if any, from @conn to @coming
 * (lnd_msg.link). The rest of the payload is discarded when it comes. */
void sock_rx_detach(struct sock_conn *conn, struct list *coming);
/* Ends all messages of @coming. Users' handlers run. */
void sock_rx_end(struct list *coming, int status);

/* Called when @conn is open: begins to receive. */
void sock_rx_open(struct sock_conn *conn);
/* Called when @conn is closed: ends what it was receiving. */
void sock_rx_conn_closed(struct sock_conn *conn, int status);

#endif
