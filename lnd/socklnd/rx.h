/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages in. One read takes many small frames, which are parsed where they
 * are; the payload of a large one is read straight to where it belongs.
 */
#ifndef LND_SOCKLND_RX_H
#define LND_SOCKLND_RX_H

#include "lnd/socklnd/tx.h"

/* What a read asks for, besides a payload's bytes that go where they belong:
 * many frames; or not much more than the header that is likely to be next. */
#define RX_LIMIT_SMALL_FRAMES (16u << 10)
#define RX_LIMIT_PAYLOADS     4096u

/* A message whose header LNet has seen. */
struct sock_rx {
	bool answered; /* LNet has called recv() */
	bool aside;    /* ... or eager_recv() */
	bool summed;   /* with a checksum, to be compared */
	int status;    /* not 0: the rest of it will not come */
	struct sock_cpt *cpt;
	struct sock_conn *conn; /* NULL: all of it is here, or never will be */
	struct lnd_msg *msg; /* where it goes, once answered; NULL: nowhere */
	uint8_t *copy;	     /* where it was put meanwhile */
	uint64_t cookie;
	uint32_t csum;
	uint32_t length; /* of the payload, as announced */
	uint32_t got;
};

/* The socket has something to read. */
void sock_rx_readable(struct sock_conn *conn);

/* What has come of a payload is read, however little it is: so a peer that
 * sends little by little is heard. To be called from time to time. */
void sock_rx_take_any(struct sock_conn *conn);

/* As lnd.h says. */
void sock_rx_recv(struct lnd_ni *ni, void *priv, struct lnd_msg *msg,
		  uint32_t rlength);
int sock_rx_eager_recv(struct lnd_ni *ni, void *priv);
void sock_rx_cancel(struct sock_rx *rx, int status);

/* Takes the message whose payload is coming in on @conn, if there is one, off
 * @conn, to @coming (lnd_msg.link): what is still to come of it is thrown
 * away. */
void sock_rx_detach(struct sock_conn *conn, struct list *coming);
/* Ends all of them. Users' handlers run. */
void sock_rx_end(struct list *coming, int status);

/* Called by sock_conn_open(). */
void sock_rx_open(struct sock_conn *conn);
/* @conn is closed: what it was receiving ends. */
void sock_rx_conn_closed(struct sock_conn *conn, int status);

#endif
