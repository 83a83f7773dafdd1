/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages out. All that a turn of the loop has queued on a connection goes out
 * at its end, in as few writes as possible. Small messages are put together in
 * one buffer, and are done when they are in it (the last one when it is
 * written). A large one (from zc_min_payload on) is sent from where it is, and
 * is done when the socket has taken a copy of all of it.
 *
 * So this node need not know when the peer has taken a payload, and does not
 * ask. Kernel nodes do ask, since they send from the user's memory until then
 * (zero copy). The answers to that, and signs of life, are NOOPs, which go
 * last: a message that goes to the peer takes the first one along.
 *
 * When LNet gives up a message whose frame is partly written, the rest of the
 * frame is copied, and sent like any other: what was announced must come, or
 * the peer could make nothing of what follows.
 */
#ifndef LND_SOCKLND_TX_H
#define LND_SOCKLND_TX_H

#include "lnd/socklnd/peer.h"

struct sock_tx {
	struct list link;    /* conn->queue; in none: it is conn->tx */
	struct lnd_msg *msg; /* NULL: a NOOP */
	struct sock_conn *conn;
	uint64_t cookie[2]; /* as on the wire */
};

/* As lnd.h says. */
int sock_tx_send(struct lnd_ni *ni, struct lnd_msg *msg);
void sock_tx_cancel(struct sock_tx *tx, int status);
bool sock_tx_has_begun(const struct sock_tx *tx);

/* Tells the peer that the payload of its message @cookie was taken. */
void sock_tx_ack(struct sock_conn *conn, uint64_t cookie);
/* ... or that we are alive. */
void sock_tx_keepalive(struct sock_conn *conn);

/* @conn is about to be closed, or was set aside: gives back to LNet the
 * messages that were queued on @conn and not begun, but for those that were
 * given back once before. No user's handler runs. */
void sock_tx_give_back(struct sock_conn *conn);
/* Takes all messages off @conn, which goes on: one that is being written goes
 * to @begun, and the rest of its frame is sent from a copy; those of which
 * nothing has left go to @queued. (sock_tx.link.) What peers are told (NOOPs)
 * stays. 0; -ENOBUFS, -ENOMEM: there is no copy, and that message is still
 * @conn's, which is to be closed. */
int sock_tx_detach(struct sock_conn *conn, struct list *begun,
		   struct list *queued) must_check;
/* Ends all of a list. Users' handlers run; what they add stays. */
void sock_tx_end(struct list *list, int status, enum ulnet_cause cause);
/* The rest ends: see sock_conn_close(). */
void sock_tx_conn_closed(struct sock_conn *conn, int status);

/* The socket takes bytes again. */
void sock_tx_writable(struct sock_conn *conn);

/* sock_cpt.flush_work */
void sock_tx_flush(struct work *w);

#endif
