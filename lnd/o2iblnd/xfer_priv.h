/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What xfer.c, payload.c and hungry.c share. Thread: the CPT's.
 */
#ifndef LND_O2IBLND_XFER_PRIV_H
#define LND_O2IBLND_XFER_PRIV_H

#include "lnd/o2iblnd/xfer.h"

static inline void ib_xfer_move(struct ib_xfer *x, enum ib_xfer_state to)
{
	fsm_move(&x->fsm, ib_xfer_states, to);
}

/* An NI whose device has gone is down, too. */
static inline int ib_xfer_status(int status)
{
	return status == -ENODEV ? -ENETDOWN : status;
}

/* ---- xfer.c ---- */

void ib_xfer_put_memory(struct ib_xfer *x);
/* What it holds goes back; LNet has the message, or never gave it. */
static inline void ib_xfer_end(struct ib_xfer *x)
{
	ib_xfer_move(x, IB_XFER_DONE);
	/* Others have no memory, and wait for none. */
	if (x->length)
		ib_xfer_put_memory(x);
	pool_put(&x->cpt->xfers, x);
}
/* The message is LNet's again, and the transfer is over. */
void ib_xfer_finalize(struct ib_xfer *x, int status, enum ulnet_cause cause);

/* By which it is to be sent; as ib_peers_get(). */
int ib_xfer_connection(const struct ib_xfer *x, struct ib_conn **conn_p);
/* It has memory now, and begins; or it ends. -EINPROGRESS: neither, as there is
 * no connection. */
int ib_xfer_send_begin(struct ib_xfer *x);
void ib_xfer_sink_begin(struct ib_xfer *x);
/* 0; -errno: it has not begun. */
int ib_xfer_answer_begin(struct ib_xfer *x);
/* Nothing of it has left, and there is no connection for it just now: LNet has
 * it back until there is one. False: it cannot be. */
bool ib_xfer_give_back(struct ib_xfer *x);
/* The connection that a peer's PUT or GET came by has ended. Of the PUT some
 * has come, and nothing has left of the answer to the GET. */
void ib_xfer_lost_with(const struct ib_rx *rx, int *status,
		       enum ulnet_cause *cause);

/* ---- payload.c ---- */

enum ib_use ib_xfer_use(const struct ib_xfer *x);
/* Memory for what is too large for a message (x->length), and goes by @conn:
 * its own, or some that it is copied through. -EAGAIN: it waits for that;
 * -ENOMEM. */
int ib_xfer_find_memory(struct ib_xfer *x, const struct ib_conn *conn);
/* What is to be sent goes to the memory that it is copied through. */
void ib_xfer_fill(struct ib_xfer *x);
/* ... and what has come, from there to where it is wanted. */
void ib_xfer_empty(const struct ib_xfer *x);
/* Where it is read from. */
const struct ib_sge *ib_xfer_source(const struct ib_xfer *x);
/* Where the peer is to write it to, in words of @frags: LNET_MAX_IOV. */
struct ib_sink ib_xfer_sink(const struct ib_xfer *x, struct ib_frag *frags);

/* ---- hungry.c ---- */

/* -EAGAIN: it waits for memory; or -ENOMEM. */
int ib_xfer_hunger(struct ib_xfer *x);
/* It was taken off those who wait, and ends. */
void ib_xfer_starved(struct ib_xfer *x, int status, enum ulnet_cause cause);

#endif
