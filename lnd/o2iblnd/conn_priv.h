/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of a connection share: conn.c, receive.c, exchange.c. */
#ifndef LND_O2IBLND_CONN_PRIV_H
#define LND_O2IBLND_CONN_PRIV_H

#include "lnd/o2iblnd/conn.h"

/* ---- conn.c ---- */

/* Ends @conn, if it has not ended; @why, constant text, is for the log. On
 * return @conn is not open. */
void ib_conn_fail(struct ib_conn *conn, int status, enum ib_blame blame,
		  const char *why);
/* The two parts of ib_conn_settle(): tells the user which transmits have ended;
 * and does all of it for a connection that is not open. */
void ib_conn_tell(struct ib_conn *conn);
void ib_conn_settle_closed(struct ib_conn *conn);
/* At the end of the turn, shows the messages that came behind one that was
 * answered, and calls ib_conn_settle(). */
void ib_conn_defer(struct ib_conn *conn);
/* Last of all in an event: tells the user what has ended. @conn may be gone
 * afterwards. */
static inline void ib_conn_settle(struct ib_conn *conn)
{
	if (unlikely(conn->fsm.state != IB_CONN_OPEN))
		ib_conn_settle_closed(conn);
	else if (!list_empty(&conn->ended))
		ib_conn_tell(conn);
}
/* Arms the timer, for what has a deadline now, or is to be acknowledged. */
void ib_conn_arm(struct ib_conn *conn);
/* @conn is dead, and no message of it is shown. */
void ib_conn_free(struct ib_conn *conn);

/* A message that the user held is answered. @conn may be gone afterwards. */
static inline void ib_conn_unshow(struct ib_conn *conn)
{
	if (!--conn->shown && conn->fsm.state == IB_CONN_DEAD)
		ib_conn_free(conn);
}

/* @conn is open. Will the timer go off soon enough after @now for what is being
 * sent? */
static inline bool ib_conn_looks_soon(const struct ib_conn *conn, uint64_t now)
{
	const struct ib_home *home = conn->home;
	uint64_t soon = silence_period(&home->conf->silence);

	return timer_armed(&conn->timer) &&
	       conn->timer.at <= now + (soon ? soon : home->timeout / 4);
}

/* ---- exchange.c ---- */

/* Sends what waits, and what the peer must be told, as far as that goes. */
void ib_conn_send(struct ib_conn *conn);

/* The same, after something that may have made sending possible. A sign of life
 * is not so urgent: the timer looks whether one is due. */
static inline void ib_conn_pump(struct ib_conn *conn)
{
	if (conn->queued || ib_credit_presses(&conn->credit))
		ib_conn_send(conn);
}

/* Posting has failed with @rc. */
void ib_conn_fail_post(struct ib_conn *conn, int rc);
/* @conn has ended: ends all its transmits. */
void ib_conn_end_txs(struct ib_conn *conn);
/* Deals with @msg: a PUT_ACK, PUT_NAK, PUT_DONE or GET_DONE. NULL, or what is
 * wrong with it. */
const char *ib_exchange_answered(struct ib_conn *conn,
				 const struct ib_msg *msg);

/* ---- receive.c ---- */

/* As many as conn->terms.depth needs. 0 or -errno; then none is registered. */
int ib_conn_make_receives(struct ib_conn *conn) must_check;
/* When none of the receives is posted. */
void ib_conn_free_receives(struct ib_conn *conn);
int ib_conn_post_receives(struct ib_conn *conn) must_check;
/* @conn is dead: frees its buffers. Messages that the user still holds are
 * copied first; if there is no memory for that, the buffers stay. */
void ib_conn_free_buffers(struct ib_conn *conn);
/* The message in @rx, which is shown, goes to memory of its own, and the
 * receive is posted again, so that the peer has its credit back. 0 or
 * -ENOMEM. */
int ib_rx_copy_aside(struct ib_rx *rx) must_check;
/* Look at messages that came before @conn was open; or behind one that has been
 * answered. */
void ib_conn_look_early(struct ib_conn *conn);
void ib_conn_look_behind(struct ib_conn *conn);
/* Messages that wait to be looked at are dropped. */
void ib_conn_drop_held(struct ib_conn *conn);
/* Ends @conn, which is open, but of which nothing is posted after a flush. */
void ib_conn_end_flushed(struct ib_conn *conn);

/* The same, if nothing of @conn is posted and it is open. */
static inline void ib_conn_check_alive(struct ib_conn *conn)
{
	if (!conn->receives && !conn->ncalls && ib_conn_is_open(conn))
		ib_conn_end_flushed(conn);
}

/* @rx, whose message was in a copy and not in a receive, becomes a spare. */
void ib_rx_spend(struct ib_rx *rx);

static inline int ib_rx_post(struct ib_rx *rx)
{
	struct ib_conn *conn = rx->conn;
	int rc = conn->qp->port->verbs->post_recv(conn->qp, &rx->sge, rx);

	if (unlikely(rc))
		return rc;
	fsm_move(&rx->fsm, ib_rx_states, IB_RX_POSTED);
	conn->receives++;
	return 0;
}

/* Posts @rx, which is idle, again. rx->msg.type is that of the message that it
 * had; for @acked see ib_credit_reposted(). */
static in_line void ib_rx_return(struct ib_rx *rx, bool acked)
{
	struct ib_conn *conn = rx->conn;
	int rc;

	if (!ib_conn_is_open(conn))
		return;
	rc = ib_rx_post(rx);
	if (unlikely(rc))
		ib_conn_fail_post(conn, rc);
	else
		ib_credit_reposted(&conn->credit, rx->msg.type, acked);
}

/* The message in @rx is done with: posts @rx again. */
static in_line void ib_rx_repost(struct ib_rx *rx, bool acked)
{
	fsm_move(&rx->fsm, ib_rx_states, IB_RX_IDLE);
	if (unlikely(rx->copy))
		ib_rx_spend(rx);
	else
		ib_rx_return(rx, acked);
}

#endif
