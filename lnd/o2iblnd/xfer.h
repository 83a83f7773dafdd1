/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LNet's messages on their way: between LNet's operations and what passes over
 * connections (conn.h).
 *
 *	LNet has			it goes as
 *	a message that fits		IMMEDIATE
 *	a PUT or REPLY that does not	PUT_REQ and what follows
 *	a GET, to next_hop itself,
 *	    whose REPLY may not fit	GET_REQ and what follows. When that is
 *					done the GET is sent, and its REPLY
 *					comes in: LNet takes the data as that of
 *					any other message.
 *
 *	a peer's IMMEDIATE		a message
 *	a peer's PUT_REQ		a message whose payload is fetched when
 *					LNet takes it
 *	a peer's GET_REQ		a GET, whose REPLY is its answer
 *
 * A transfer is what the LND has of a message, from send(), recv() or answer()
 * to lnet_finalize(), or for longer, if LNet has given the message up and a
 * device or a peer has not:
 *
 *	new ----> hungry ----> moving ----> done
 *	  `-----------------------^  `-> got ---^
 *
 *	hungry	waits for memory to be copied through (memory.h), unless its
 *		own can be used (regcache.h)
 *	moving	has a transmit
 *	got	of a GET: its data waits for LNet to take it
 *
 * Thread: the CPT's.
 */
#ifndef LND_O2IBLND_XFER_H
#define LND_O2IBLND_XFER_H

#include "lnd/o2iblnd/o2iblnd.h"

enum ib_xfer_state {
	IB_XFER_NEW,
	IB_XFER_HUNGRY,
	IB_XFER_MOVING,
	IB_XFER_GOT,
	IB_XFER_DONE,
	IB_XFER_STATES
};
extern const struct fsm_state ib_xfer_states[IB_XFER_STATES];

enum ib_xfer_kind {
	IB_XFER_IMMEDIATE,
	IB_XFER_PUT,
	IB_XFER_GET,
	IB_XFER_SINK,	/* of a peer's PUT */
	IB_XFER_ANSWER, /* to a peer's GET */
};

struct ib_xfer {
	/* GET: LNet's name for its data. That it is not a message's shows in
	 * its connection: it has none. */
	struct ib_rx data;
	struct fsm fsm;
	enum ib_xfer_kind kind;
	struct ib_cpt *cpt;
	struct ulnet_nid peer;
	struct lnd_msg *msg; /* NULL: LNet has given it up, or has it back */
	struct ib_rx *rx;    /* SINK, ANSWER: not answered yet; or NULL */
	struct ib_tx *tx;    /* moving */
	struct list link;    /* cpt->hungry, cpt->got */
	/* Of its payload, which is in one of the two; 0: in neither. */
	uint32_t length;
	struct ib_direct direct;
	struct ib_memory memory;
	/* got: */
	bool in_place; /* the data is in the user's memory */
	void *copy;    /* the data, when its memory had to go */
};

/* ---- what LNet calls: as lnd.h says of them ---- */

int ib_xfer_send(struct lnd_ni *ni, struct lnd_msg *msg);
void ib_xfer_recv(struct lnd_ni *ni, void *arg, struct lnd_msg *msg,
		  uint32_t rlength);
int ib_xfer_eager_recv(struct lnd_ni *ni, void *arg);
int ib_xfer_answer(struct lnd_ni *ni, void *arg, struct lnd_msg *msg);
void ib_xfer_cancel(struct lnd_ni *ni, struct lnd_msg *msg, int status);
bool ib_xfer_has_begun(struct lnd_ni *ni, const struct lnd_msg *msg);

/* ---- what connections tell: as peer.h says ---- */

/* What it has brought, and waits for memory, ends with it; what waits to be
 * sent to its peer waits for another one. */
void ib_xfer_closed(struct ib_conn *conn);
void ib_xfer_arrived(struct ib_conn *conn, struct ib_rx *rx);
void ib_xfer_done(struct ib_tx *tx);
/* What waits on @conn is LNet's again, which is told of the silence. */
void ib_xfer_stalled(struct ib_conn *conn, uint64_t ns);

/* ---- for port.c ---- */

/* cpt->feed. */
void ib_xfer_feed(struct work *w);
/* Those who wait for memory end: -ENETDOWN, -ESHUTDOWN. */
void ib_xfer_starve(struct ib_cpt *cpt, int status);
/* Data that LNet has not taken yet holds no memory of the port any more. */
void ib_xfer_put_aside(struct ib_cpt *cpt);

#endif
