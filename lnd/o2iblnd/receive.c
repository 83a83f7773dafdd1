/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives, and the checks that messages must pass. */
#include "lnd/o2iblnd/conn_priv.h"

#include <errno.h>

#define BUF_ALIGN 4096

const struct fsm_state ib_rx_states[IB_RX_STATES] = {
	[IB_RX_IDLE] = { "idle", FSM_TO(IB_RX_POSTED) },
	[IB_RX_POSTED] = { "posted", FSM_TO(IB_RX_IDLE) | FSM_TO(IB_RX_HELD) |
					     FSM_TO(IB_RX_SHOWN) },
	[IB_RX_HELD] = { "held", FSM_TO(IB_RX_IDLE) | FSM_TO(IB_RX_SHOWN) },
	[IB_RX_SHOWN] = { "shown", FSM_TO(IB_RX_IDLE) },
};

/* ---- receives ---- */

int ib_conn_make_receives(struct ib_conn *conn)
{
	unsigned int n = IB_RECEIVES(conn->terms.depth);
	size_t bytes = (size_t)n * IB_MSG_SIZE_MAX;
	int rc;

	conn->rxs = calloc(n, sizeof(*conn->rxs));
	conn->rx_bufs = aligned_alloc(BUF_ALIGN, bytes);
	if (!conn->rxs || !conn->rx_bufs)
		return -ENOMEM;
	rc = ib_regcache_reg(conn->set->regcache, conn->set->port,
			     conn->rx_bufs, bytes, false, &conn->rx_mr);
	if (rc)
		return rc;
	for (unsigned int i = 0; i < n; i++) {
		struct ib_rx *rx = &conn->rxs[i];

		rx->conn = conn;
		list_init(&rx->link);
		list_init(&rx->extra);
		rx->sge.addr = (char *)conn->rx_bufs + i * IB_MSG_SIZE_MAX;
		rx->sge.length = IB_MSG_SIZE_MAX;
		rx->sge.lkey = conn->rx_mr->lkey;
	}
	conn->nrxs = n;
	return 0;
}

void ib_conn_free_receives(struct ib_conn *conn)
{
	struct ib_port *port = conn->set->port;

	if (conn->rx_mr)
		port->verbs->dereg(port, conn->rx_mr);
	conn->rx_mr = NULL;
}

int ib_conn_post_receives(struct ib_conn *conn)
{
	int rc = 0;

	for (unsigned int i = 0; i < conn->nrxs && !rc; i++)
		rc = ib_rx_post(&conn->rxs[i]);
	return rc;
}

void ib_rx_spend(struct ib_rx *rx)
{
	free(rx->bounce);
	rx->bounce = NULL;
	list_add(&rx->conn->spares, &rx->link);
}

/* ---- bounce buffers ---- */

static struct ib_rx *rx_spare(struct ib_conn *conn)
{
	struct ib_rx *rx;

	if (!list_empty(&conn->spares)) {
		rx = list_first(&conn->spares, struct ib_rx, link);
		list_del(&rx->link);
		return rx;
	}
	rx = calloc(1, sizeof(*rx));
	if (!rx)
		return NULL;
	rx->conn = conn;
	list_init(&rx->link);
	list_add(&conn->extras, &rx->extra);
	return rx;
}

/* Makes *@p, a pointer into the receive buffer of @rx, point into the copy.
 * NULL stays. */
static void rebase(const uint8_t **p, const struct ib_rx *rx)
{
	if (*p)
		*p = rx->bounce + (*p - (const uint8_t *)rx->sge.addr);
}

/* Copies the message of @rx to a bounce buffer. Returns 0 or -ENOMEM. */
static int rx_copy(struct ib_rx *rx)
{
	uint8_t *copy = malloc(MAX(rx->length, 1u));

	if (!copy)
		return -ENOMEM;
	memcpy(copy, rx->sge.addr, rx->length);
	rx->bounce = copy;
	rebase(&rx->msg.lnet_hdr, rx);
	rebase(&rx->msg.payload, rx);
	rebase(&rx->msg.rdma.frags, rx);
	return 0;
}

int ib_rx_copy_to_bounce(struct ib_rx *rx)
{
	struct ib_rx *other = rx_spare(rx->conn);

	if (!other)
		return -ENOMEM;
	if (rx_copy(rx)) {
		list_add(&rx->conn->spares, &other->link);
		return -ENOMEM;
	}
	/* The user refers to the message by @rx, so @other takes over the
	 * receive buffer. */
	other->sge = rx->sge;
	other->msg.type = rx->msg.type;
	rx->sge = (struct ib_sge){ 0 };
	ib_rx_return(other, false);
	ib_conn_pump(rx->conn);
	return 0;
}

/* If the user holds the message of @rx, copies it to a bounce buffer. Returns
 * false if there is no memory. */
static bool copy_shown(struct ib_rx *rx)
{
	return rx->fsm.state != IB_RX_SHOWN || rx->bounce || !rx_copy(rx);
}

void ib_conn_free_buffers(struct ib_conn *conn)
{
	struct ib_rx *rx;

	for (unsigned int i = 0; i < conn->nrxs; i++)
		if (!copy_shown(&conn->rxs[i]))
			return;
	list_for_each_entry (rx, &conn->extras, extra)
		if (!copy_shown(rx))
			return;
	free(conn->rx_bufs);
	conn->rx_bufs = NULL;
}

/* ---- messages ---- */

/* Shows the message to the user. Until it is answered or moved to a bounce
 * buffer, the next messages with an LNet header are not shown. */
static in_line void show(struct ib_conn *conn, struct ib_rx *rx)
{
	fsm_move(&rx->fsm, ib_rx_states, IB_RX_SHOWN);
	rx->bounced = false;
	rx->user = NULL;
	conn->shown++;
	conn->blocking++;
	conn->set->user->arrived(conn, rx);
}

static out_of_line void hold(struct list *list, struct ib_rx *rx)
{
	if (rx->fsm.state != IB_RX_HELD)
		fsm_move(&rx->fsm, ib_rx_states, IB_RX_HELD);
	list_add_tail(list, &rx->link);
}

static in_line void receive_arrived(struct ib_conn *conn, struct ib_rx *rx)
{
	if (!conn->blocking && list_empty(&conn->blocked))
		show(conn, rx);
	else
		hold(&conn->blocked, rx);
}

void ib_conn_show_blocked(struct ib_conn *conn)
{
	while (ib_conn_is_open(conn) && !conn->blocking &&
	       !list_empty(&conn->blocked)) {
		struct ib_rx *rx =
			list_first(&conn->blocked, struct ib_rx, link);

		list_del(&rx->link);
		show(conn, rx);
	}
}

/* Decodes and checks the message in @rx. Returns 0; or -errno, and *@why. */
static in_line int rx_decode(struct ib_rx *rx, const char **why)
{
	struct ib_conn *conn = rx->conn;
	struct ib_msg *msg = &rx->msg;
	int rc =
		ib_msg_decode_on(&conn->in, rx->sge.addr, rx->length, msg, why);

	if (rc)
		return rc;
	*why = "more credits than there are";
	return ib_credit_received(&conn->credit, msg->type, msg->credits);
}

static out_of_line void reject_message(struct ib_rx *rx, int rc,
				       const char *why)
{
	fsm_move(&rx->fsm, ib_rx_states, IB_RX_IDLE);
	ib_conn_fail(rx->conn, rc == -ESTALE ? rc : -EPROTO, IB_BLAME_PEER,
		     why);
}

/* Handles a message that has no LNet header, and is not shown to the user. */
static out_of_line void take_own(struct ib_rx *rx)
{
	const char *why = NULL;

	if (rx->msg.type != IB_MSG_NOOP)
		why = ib_exchange_answered(rx->conn, &rx->msg);
	if (why)
		ib_conn_fail(rx->conn, -EPROTO, IB_BLAME_PEER, why);
	ib_rx_repost(rx, false);
	ib_conn_pump(rx->conn);
}

static in_line void receive_look(struct ib_conn *conn, struct ib_rx *rx)
{
	const char *why;
	int rc = rx_decode(rx, &why);

	if (unlikely(rc)) {
		reject_message(rx, rc, why);
		return;
	}
	conn->heard_at = loop_now(conn->set->loop);
	switch (rx->msg.type) {
	case IB_MSG_IMMEDIATE:
	case IB_MSG_PUT_REQ:
	case IB_MSG_GET_REQ:
		receive_arrived(conn, rx);
		/* The message may have returned credits. */
		if (conn->queued)
			ib_conn_send(conn);
		break;
	default:
		take_own(rx);
	}
}

void ib_conn_take_early(struct ib_conn *conn)
{
	while (ib_conn_is_open(conn) && !list_empty(&conn->early)) {
		struct ib_rx *rx = list_first(&conn->early, struct ib_rx, link);

		list_del(&rx->link);
		receive_look(conn, rx);
	}
}

static void drop_list(struct list *list)
{
	struct ib_rx *rx;

	while ((rx = list_pop(list, struct ib_rx, link)))
		fsm_move(&rx->fsm, ib_rx_states, IB_RX_IDLE);
}

void ib_conn_drop_held(struct ib_conn *conn)
{
	drop_list(&conn->early);
	drop_list(&conn->blocked);
}

/* Takes a receive that has failed, or a message when @conn is not open. */
static out_of_line void received_otherwise(struct ib_conn *conn,
					   struct ib_rx *rx,
					   enum ib_wc_status status)
{
	if (status == IB_WC_OK && conn->fsm.state < IB_CONN_OPEN) {
		hold(&conn->early, rx);
		return;
	}
	fsm_move(&rx->fsm, ib_rx_states, IB_RX_IDLE);
	if (status == IB_WC_FLUSHED)
		ib_conn_check_alive(conn);
	else if (status != IB_WC_OK)
		ib_conn_fail(conn, -EPROTO, IB_BLAME_PEER,
			     ib_wc_status_name(status));
}

void ib_conn_on_received(struct ib_qp *qp, void *cookie, uint32_t length,
			 enum ib_wc_status status)
{
	struct ib_conn *conn = qp->user;
	struct ib_rx *rx = cookie;

	BUG_ON(rx->fsm.state != IB_RX_POSTED);
	conn->receives--;
	rx->length = MIN(length, (uint32_t)IB_MSG_SIZE_MAX);
	if (likely(status == IB_WC_OK && ib_conn_is_open(conn))) {
		receive_look(conn, rx);
	} else {
		received_otherwise(conn, rx, status);
	}
	ib_conn_settle(conn);
}
