/* SPDX-License-Identifier: BSD-3-Clause */
/* What conn.c, receive.c and exchange.c share. */
#ifndef LND_O2IBLND_CONN_PRIV_H
#define LND_O2IBLND_CONN_PRIV_H

#include "lnd/o2iblnd/conn.h"

/* ---- conn.c ---- */

/* Ends @conn, unless it has ended. @why is constant text for the log, or NULL.
 * On return @conn is not open. */
void ib_conn_fail(struct ib_conn *conn, int status, enum ib_blame blame,
		  const char *why);
/* The two halves of ib_conn_settle(). ib_conn_tell() calls done() for finished
 * transmits. ib_conn_settle_closed(), for a @conn that is not open, also frees
 * what can be freed. */
void ib_conn_tell(struct ib_conn *conn);
void ib_conn_settle_closed(struct ib_conn *conn);
/* Schedules work that shows blocked messages and then calls ib_conn_settle().
 */
void ib_conn_defer(struct ib_conn *conn);
/* Called last in each event: calls done() for finished transmits. @conn may be
 * gone on return. */
static inline void ib_conn_settle(struct ib_conn *conn)
{
	if (unlikely(conn->fsm.state != IB_CONN_OPEN))
		ib_conn_settle_closed(conn);
	else if (!list_empty(&conn->finished))
		ib_conn_tell(conn);
}
/* Arms the timer for the next deadline, keepalive or look for silence. */
void ib_conn_arm(struct ib_conn *conn);
/* Frees @conn, which is dead, and of which the user holds no message. */
void ib_conn_free(struct ib_conn *conn);

/* The user has answered a message. @conn may be gone on return. */
static inline void ib_conn_unshow(struct ib_conn *conn)
{
	if (!--conn->shown && conn->fsm.state == IB_CONN_DEAD)
		ib_conn_free(conn);
}

/* Will the timer of @conn, which is open, fire soon enough for a message that
 * is sent at @now (ns)? */
static inline bool ib_conn_looks_soon(const struct ib_conn *conn, uint64_t now)
{
	const struct ib_conn_set *set = conn->set;
	uint64_t soon = silence_period(&set->conf->silence);

	return timer_armed(&conn->timer) &&
	       conn->timer.at <= now + (soon ? soon : set->timeout / 4);
}

/* ---- exchange.c ---- */

/* Posts queued transmits, and NOOPs, as far as credits and room allow. */
void ib_conn_send(struct ib_conn *conn);

/* Calls ib_conn_send() if something may be sent now, after an event that may
 * have made sending possible. Does not look for a due keepalive: the timer
 * does. */
static inline void ib_conn_pump(struct ib_conn *conn)
{
	if (conn->queued || ib_credit_presses(&conn->credit))
		ib_conn_send(conn);
}

/* Ends @conn after post_send() or post_recv() has returned @rc, a negative
 * errno. */
void ib_conn_fail_post(struct ib_conn *conn, int rc);
/* @conn has ended: gives all its transmits a result. */
void ib_conn_end_txs(struct ib_conn *conn);
/* Handles a PUT_ACK, PUT_NAK, PUT_DONE or GET_DONE. Returns NULL, or what is
 * wrong with the message, as constant text. */
const char *ib_exchange_answered(struct ib_conn *conn,
				 const struct ib_msg *msg);

/* ---- receive.c ---- */

/* Allocates and registers the receives for conn->terms.depth. Returns 0 or
 * -errno, after which none is registered. */
int ib_conn_make_receives(struct ib_conn *conn) must_check;
/* Deregisters the receives, none of which is posted. */
void ib_conn_free_receives(struct ib_conn *conn);
int ib_conn_post_receives(struct ib_conn *conn) must_check;
/* @conn is dead: frees its receive buffers, after copying messages that the
 * user still holds; without memory for that, keeps the buffers. */
void ib_conn_free_buffers(struct ib_conn *conn);
/* Copies the message of @rx, which is shown, to a bounce buffer, and posts the
 * receive again, which returns the peer's credit. Returns 0 or -ENOMEM. */
int ib_rx_copy_to_bounce(struct ib_rx *rx) must_check;
/* Handles the messages that arrived before @conn was open. */
void ib_conn_take_early(struct ib_conn *conn);
void ib_conn_show_blocked(struct ib_conn *conn);
/* Drops messages that were not handled yet. */
void ib_conn_drop_held(struct ib_conn *conn);
/* Ends @conn if it is open but has no work request left: they were flushed.
 * Usually an event has told why, or will; this is for when none does. */
static inline void ib_conn_check_alive(struct ib_conn *conn)
{
	if (!conn->receives && !conn->ncalls && ib_conn_is_open(conn))
		ib_conn_fail(conn, -ECONNRESET, IB_BLAME_PEER,
			     "the queue pair is in error");
}

/* Frees the bounce buffer of @rx, which becomes a spare one. */
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

/* Posts @rx, which is idle. rx->msg.type is the type of the message that it
 * held; for @acked see ib_credit_reposted(). */
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

/* The message in @rx was handled: posts @rx again. */
static in_line void ib_rx_repost(struct ib_rx *rx, bool acked)
{
	fsm_move(&rx->fsm, ib_rx_states, IB_RX_IDLE);
	if (unlikely(rx->bounce))
		ib_rx_spend(rx);
	else
		ib_rx_return(rx, acked);
}

#endif
