/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers: LNet's messages, mapped to messages of the protocol (conn.h).
 *
 *	of LNet				sent as
 *	a message that fits		IMMEDIATE
 *	a larger PUT or REPLY		PUT_REQ, and what follows
 *	a GET to next_hop itself
 *	    whose REPLY may not fit	GET_REQ, and what follows. Once that is
 *					done the GET counts as sent, and its
 *					REPLY as received: LNet takes the data
 *					as those of any message.
 *
 *	of a peer			given to LNet as
 *	IMMEDIATE			a message
 *	PUT_REQ				a message, whose payload is requested
 *					when LNet takes it
 *	GET_REQ				a GET, whose REPLY answers the GET_REQ
 *
 * A transfer exists from send(), recv() or answer() to lnet_finalize(), or
 * longer if LNet has given the message up but a device or a peer has not:
 *
 *	new -> memory-wait -> moving ------------> done
 *	  `---------------------^  `-> fetched ------^
 *
 *	memory-wait	waits for bounce memory (memory.h); not needed if the
 *			user's own can be used (regcache.h)
 *	moving		has a transmit
 *	fetched		GET: its data waits for LNet to take it
 *
 * Thread: the CPT's.
 */
#ifndef LND_O2IBLND_XFER_H
#define LND_O2IBLND_XFER_H

#include "lnd/o2iblnd/o2iblnd.h"

enum ib_xfer_state {
	IB_XFER_NEW,
	IB_XFER_MEMORY_WAIT,
	IB_XFER_MOVING,
	IB_XFER_FETCHED,
	IB_XFER_DONE,
	IB_XFER_STATES
};
extern const struct fsm_state ib_xfer_states[IB_XFER_STATES];

enum ib_xfer_kind {
	IB_XFER_IMMEDIATE,
	IB_XFER_PUT,
	IB_XFER_GET,
	IB_XFER_SINK,	/* receives a peer's PUT */
	IB_XFER_ANSWER, /* answers a peer's GET */
};

struct ib_xfer {
	/* GET: what LNet gets as the handle (rx) of the data that has come. Its
	 * conn is NULL, which tells it from a message of a peer. */
	struct ib_rx data;
	struct fsm fsm;
	enum ib_xfer_kind kind;
	struct ib_cpt *cpt;
	struct ulnet_nid peer;
	struct lnd_msg *msg; /* the message of LNet; NULL: already finalized */
	/* SINK, ANSWER: the peer's message, which must be answered; or NULL */
	struct ib_rx *rx;
	struct ib_tx *tx; /* in the state "moving": its transmit */
	struct list link; /* in cpt->memory_waiters or cpt->fetched */
	uint32_t length;  /* bytes of payload in @direct or @memory; 0: none */
	struct ib_direct direct;
	struct ib_memory memory;
	/* In the state "fetched": */
	bool in_place; /* the data is in the user's own memory */
	void *bounce;  /* the data, if the port's memory had to be freed */
};

/* ---- called by LNet: see lnd.h ---- */

int ib_xfer_send(struct lnd_ni *ni, struct lnd_msg *msg);
void ib_xfer_recv(struct lnd_ni *ni, void *arg, struct lnd_msg *msg,
		  uint32_t rlength);
int ib_xfer_eager_recv(struct lnd_ni *ni, void *arg);
int ib_xfer_answer(struct lnd_ni *ni, void *arg, struct lnd_msg *msg);
void ib_xfer_cancel(struct lnd_ni *ni, struct lnd_msg *msg, int status);
bool ib_xfer_has_begun(struct lnd_ni *ni, const struct lnd_msg *msg);

/* ---- called by peers: see peer.h ---- */

/* @conn is closed: ends transfers that answer its messages and wait for memory.
 * Messages to the same peer that wait for memory wait for another connection,
 * too. */
void ib_xfer_closed(struct ib_conn *conn);
void ib_xfer_arrived(struct ib_conn *conn, struct ib_rx *rx);
void ib_xfer_done(struct ib_tx *tx);
/* Returns to LNet all messages on @conn of which nothing was sent, and tells
 * LNet of the silence of @ns. */
void ib_xfer_stalled(struct ib_conn *conn, uint64_t ns);

/* ---- called by port.c ---- */

/* The function of ib_cpt.retry: tries again to get memory for the transfers
 * that wait for it. */
void ib_xfer_retry(struct work *w);
/* Ends the transfers that wait for memory with -ENETDOWN or -ESHUTDOWN. */
void ib_xfer_fail_waiters(struct ib_cpt *cpt, int status);
/* Moves data that LNet has not taken yet to bounce buffers outside of the
 * port's registered memory. */
void ib_xfer_bounce(struct ib_cpt *cpt);

#endif
