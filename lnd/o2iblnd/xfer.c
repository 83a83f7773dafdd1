/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/xfer_priv.h"

#include <errno.h>

#include "base/iov.h"

const struct fsm_state ib_xfer_states[IB_XFER_STATES] = {
	[IB_XFER_NEW] = { "new", FSM_TO(IB_XFER_HUNGRY) |
					 FSM_TO(IB_XFER_MOVING) |
					 FSM_TO(IB_XFER_DONE) },
	[IB_XFER_HUNGRY] = { "hungry",
			     FSM_TO(IB_XFER_MOVING) | FSM_TO(IB_XFER_DONE) },
	[IB_XFER_MOVING] = { "moving",
			     FSM_TO(IB_XFER_GOT) | FSM_TO(IB_XFER_DONE) },
	[IB_XFER_GOT] = { "got", FSM_TO(IB_XFER_DONE) },
	[IB_XFER_DONE] = { "done", 0 },
};

/* ---- life ---- */

static in_line struct ib_xfer *xfer_new(struct ib_cpt *cpt,
					enum ib_xfer_kind kind,
					const struct ulnet_nid *peer,
					struct lnd_msg *msg)
{
	struct ib_xfer *x = pool_get(&cpt->xfers);

	if (!x)
		return NULL;
	x->data.conn = NULL;
	x->fsm.state = IB_XFER_NEW;
	x->kind = kind;
	x->cpt = cpt;
	x->peer = *peer;
	x->msg = msg;
	x->rx = NULL;
	x->tx = NULL;
	list_init(&x->link);
	x->length = 0;
	x->direct.nregs = 0;
	x->memory.block.chunk = NULL;
	x->memory.waits = false;
	x->copy = NULL;
	msg->priv = x;
	return x;
}

void ib_xfer_put_memory(struct ib_xfer *x)
{
	ib_direct_put(x->cpt, &x->direct);
	ib_memory_unwait(x->cpt, &x->memory);
	ib_memory_put(x->cpt, &x->memory);
	free(x->copy);
}

void ib_xfer_finalize(struct ib_xfer *x, int status, enum ulnet_cause cause)
{
	struct lnd_msg *msg = x->msg;

	ib_xfer_end(x);
	if (msg)
		lnet_finalize(msg, status, cause);
}

static void xfer_moves(struct ib_xfer *x, struct ib_tx *tx)
{
	x->tx = tx;
	x->cpt->under_way++;
	ib_xfer_move(x, IB_XFER_MOVING);
}

static void set_timeout(struct ib_cpt *cpt)
{
	cpt->peers.home.timeout = ib_timeout(cpt->ini);
}

/* ---- sending ---- */

static out_of_line void send_get(struct ib_xfer *x, struct ib_tx *tx)
{
	struct ib_frag frags[LNET_MAX_IOV];
	struct ib_sink sink = ib_xfer_sink(x, frags);

	/* Not too many fragments: go_direct(). */
	BUG_ON(ib_send_get(tx, &sink));
}

static in_line int send_on(struct ib_xfer *x, struct ib_conn *conn)
{
	struct lnd_msg *msg = x->msg;
	struct ib_tx *tx = ib_tx_get(conn);

	if (!tx)
		return -ENOBUFS;
	tx->user = x;
	lnet_msg_header(msg, ib_tx_header(tx), LNET_HDR_SIZE);
	xfer_moves(x, tx);
	switch (x->kind) {
	case IB_XFER_IMMEDIATE:
		iov_gather(ib_tx_payload(tx), msg->iov, msg->niov, msg->offset,
			   msg->length);
		ib_send_immediate(tx, msg->length);
		break;
	case IB_XFER_PUT:
		ib_send_put(tx, ib_xfer_source(x), x->length);
		break;
	default:
		send_get(x, tx);
		break;
	}
	return 0;
}

/* Small messages all go by the same connection, and keep their order. */
static in_line int connection(const struct ib_xfer *x, struct ib_conn **conn_p)
{
	return ib_peers_get(&x->cpt->peers, &x->peer,
			    x->kind != IB_XFER_IMMEDIATE, conn_p);
}

int ib_xfer_connection(const struct ib_xfer *x, struct ib_conn **conn_p)
{
	return connection(x, conn_p);
}

int ib_xfer_send_begin(struct ib_xfer *x)
{
	struct ib_conn *conn;
	int rc = connection(x, &conn);

	if (rc == -EINPROGRESS)
		return rc;
	if (!rc)
		rc = send_on(x, conn);
	if (rc)
		ib_xfer_finalize(x, ib_xfer_status(rc),
				 lnd_refusal_cause(ib_xfer_status(rc)));
	return 0;
}

static struct ib_xfer *xfer_for(struct ib_cpt *cpt, struct lnd_msg *msg)
{
	enum ib_xfer_kind kind = IB_XFER_IMMEDIATE;
	uint32_t length = msg->length, asks = lnet_msg_asks(msg);
	struct ib_xfer *x;

	if (asks > IB_IMMEDIATE_MAX) {
		kind = IB_XFER_GET;
		length = asks;
	} else if (length > IB_IMMEDIATE_MAX) {
		kind = IB_XFER_PUT;
	}
	x = xfer_new(cpt, kind, &msg->next_hop, msg);
	if (x && kind != IB_XFER_IMMEDIATE)
		x->length = length;
	return x;
}

int ib_xfer_send(struct ib_cpt *cpt, struct lnd_msg *msg)
{
	struct ib_conn *conn;
	struct ib_xfer *x;
	int rc;

	if (msg->large)
		return -EAFNOSUPPORT;
	/* Who only calls is reached by a connection of its own, or not. */
	if (msg->next_pid & LNET_PID_USERFLAG &&
	    !ib_peers_use(&cpt->peers, &msg->next_hop))
		return -EHOSTUNREACH;
	set_timeout(cpt);
	x = xfer_for(cpt, msg);
	if (!x)
		return -ENOMEM;
	rc = connection(x, &conn);
	if (rc) {
		ib_xfer_end(x);
		return ib_xfer_status(rc);
	}
	rc = x->length ? ib_xfer_find_memory(x, conn) : 0;
	if (rc == -EAGAIN)
		return 0;
	if (!rc)
		rc = send_on(x, conn);
	if (rc)
		ib_xfer_end(x);
	return rc;
}

bool ib_xfer_give_back(struct ib_xfer *x)
{
	struct lnd_msg *msg = x->msg;

	if (msg->again || ib_peers_want(&x->cpt->peers, &x->peer))
		return false;
	ib_xfer_end(x);
	lnet_send_again(msg);
	return true;
}

/* ---- receiving ---- */

static out_of_line void on_refused_header(struct ib_conn *conn,
					  struct ib_rx *rx)
{
	ib_conn_close(conn, -EPROTO);
	ib_rx_end(rx, -EPROTO);
}

void ib_xfer_arrived(struct ib_conn *conn, struct ib_rx *rx)
{
	struct ib_cpt *cpt = ib_cpt_of(ib_peers_of(conn));
	struct ulnet_id from = {
		conn->terms.peer.nid,
		lnet_hdr_src_pid(rx->msg.lnet_hdr, LNET_HDR_SIZE),
	};

	if (lnet_parse(cpt->ini->ni, rx->msg.lnet_hdr, LNET_HDR_SIZE, &from,
		       rx))
		on_refused_header(conn, rx);
}

/* The data of a GET, which LNet takes, or not. */
static out_of_line void take_data(struct ib_rx *rx, struct lnd_msg *msg)
{
	struct ib_xfer *x = container_of(rx, struct ib_xfer, data);
	const void *data = x->copy ? x->copy : x->memory.block.addr;
	int status = msg && !x->in_place && !data ? -ENOMEM : 0;

	if (msg && !x->in_place && data)
		iov_scatter(msg->iov, msg->niov, msg->offset, data,
			    msg->length);
	list_del(&x->link);
	ib_xfer_end(x);
	if (msg)
		lnet_finalize(msg, status,
			      status ? LNET_CAUSE_LOCAL_ERROR : LNET_CAUSE_OK);
}

static void take_immediate(struct ib_rx *rx, struct lnd_msg *msg)
{
	bool all = msg->length <= rx->msg.payload_len;

	if (all)
		iov_scatter(msg->iov, msg->niov, msg->offset, rx->msg.payload,
			    msg->length);
	ib_rx_end(rx, 0);
	/* A header may promise more than comes. */
	lnet_finalize(msg, all ? 0 : -EPROTO,
		      all ? LNET_CAUSE_OK : LNET_CAUSE_REMOTE_ERROR);
}

void ib_xfer_lost_with(const struct ib_rx *rx, int *status,
		       enum ulnet_cause *cause)
{
	const struct ib_conn *conn = rx->conn;
	const struct ib_tx as = { .begun = rx->msg.type == IB_MSG_PUT_REQ };

	*status = conn->status ? ib_xfer_status(conn->status) : -ECONNRESET;
	*cause = ib_tx_cause(&as, conn->blame);
}

void ib_xfer_sink_begin(struct ib_xfer *x)
{
	struct ib_rx *rx = x->rx;
	struct ib_frag frags[LNET_MAX_IOV];
	struct ib_sink sink = ib_xfer_sink(x, frags);
	enum ulnet_cause cause = LNET_CAUSE_LOCAL_ERROR;
	struct ib_tx *tx;
	int rc = ib_rx_accept(rx, &sink, x, &tx);

	if (!rc) {
		x->rx = NULL;
		xfer_moves(x, tx);
		return;
	}
	if (rc == -ENOTCONN)
		ib_xfer_lost_with(rx, &rc, &cause);
	ib_rx_end(rx, rc);
	ib_xfer_finalize(x, rc, cause);
}

/* A PUT of a peer ends before anything of its payload has come. */
static void end_put(struct ib_rx *rx, struct lnd_msg *msg, int status,
		    enum ulnet_cause cause)
{
	ib_rx_end(rx, status);
	lnet_finalize(msg, status, cause);
}

static out_of_line void take_put(struct ib_cpt *cpt, struct ib_rx *rx,
				 struct lnd_msg *msg)
{
	enum ulnet_cause cause;
	struct ib_xfer *x;
	int rc;

	if (!ib_conn_is_open(rx->conn)) {
		ib_xfer_lost_with(rx, &rc, &cause);
		end_put(rx, msg, rc, cause);
		return;
	}
	if (!msg->length) {
		end_put(rx, msg, 0, LNET_CAUSE_OK);
		return;
	}
	set_timeout(cpt);
	x = xfer_new(cpt, IB_XFER_SINK, &rx->conn->terms.peer.nid, msg);
	if (!x) {
		end_put(rx, msg, -ENOMEM, LNET_CAUSE_LOCAL_ERROR);
		return;
	}
	x->rx = rx;
	x->length = msg->length;
	rc = x->length ? ib_xfer_find_memory(x, rx->conn) : 0;
	if (rc == -EAGAIN)
		return;
	if (!rc) {
		ib_xfer_sink_begin(x);
		return;
	}
	ib_rx_end(rx, rc);
	ib_xfer_finalize(x, rc, LNET_CAUSE_LOCAL_ERROR);
}

/* What nobody wants. */
static out_of_line void discard(struct ib_rx *rx)
{
	ib_rx_end(rx, rx->msg.type == IB_MSG_GET_REQ ? -ENODATA : 0);
}

void ib_xfer_recv(struct ib_cpt *cpt, struct ib_rx *rx, struct lnd_msg *msg)
{
	if (!rx->conn)
		take_data(rx, msg);
	else if (!msg)
		discard(rx);
	else if (rx->msg.type == IB_MSG_PUT_REQ)
		take_put(cpt, rx, msg);
	else
		take_immediate(rx, msg);
}

/* ---- answering ---- */

int ib_xfer_answer_begin(struct ib_xfer *x)
{
	const struct ib_sge *source = x->length ? ib_xfer_source(x) : NULL;
	struct ib_tx *tx;
	int rc = ib_rx_answer(x->rx, source, x->length, x, &tx);

	if (rc)
		return rc;
	x->rx = NULL;
	xfer_moves(x, tx);
	return 0;
}

int ib_xfer_answer(struct ib_cpt *cpt, struct ib_rx *rx, struct lnd_msg *msg)
{
	struct ib_xfer *x;
	int rc;

	if (!rx->conn || rx->msg.type != IB_MSG_GET_REQ)
		return -EOPNOTSUPP;
	if (!msg)
		return 0;
	if (!ib_conn_is_open(rx->conn))
		return -ENOTCONN;
	set_timeout(cpt);
	x = xfer_new(cpt, IB_XFER_ANSWER, &rx->conn->terms.peer.nid, msg);
	if (!x)
		return -ENOMEM;
	x->rx = rx;
	x->length = msg->length;
	rc = x->length ? ib_xfer_find_memory(x, rx->conn) : 0;
	if (rc == -EAGAIN)
		return 0;
	if (!rc)
		rc = ib_xfer_answer_begin(x);
	if (rc)
		ib_xfer_end(x);
	return rc;
}

/* ---- the end of transmits ---- */

/* What the peer has written is the REPLY's payload. */
static out_of_line void get_done(struct ib_xfer *x, const struct ib_tx *tx)
{
	struct lnd_ni *ni = x->cpt->ini->ni;
	struct lnd_msg *msg = x->msg;
	struct ulnet_id from = { x->peer, msg->next_pid };
	uint8_t hdr[LNET_HDR_SIZE];
	bool replied = !tx->status;

	if (replied) {
		lnet_msg_reply_header(msg, tx->nob, hdr, sizeof(hdr));
		x->msg = NULL;
		x->in_place = ib_is_direct(&x->direct);
		ib_direct_put(x->cpt, &x->direct);
		ib_xfer_move(x, IB_XFER_GOT);
		list_add_tail(&x->cpt->got, &x->link);
	} else {
		ib_xfer_end(x);
	}
	/* Nobody may have wanted to reply: it is sent all the same. */
	lnet_finalize(msg, 0, LNET_CAUSE_OK);
	if (!replied || !lnet_parse(ni, hdr, sizeof(hdr), &from, &x->data))
		return;
	list_del(&x->link);
	ib_xfer_end(x);
}

static out_of_line void sink_done(struct ib_xfer *x, const struct ib_tx *tx)
{
	if (!tx->status)
		ib_xfer_empty(x);
	ib_xfer_finalize(x, ib_xfer_status(tx->status), tx->cause);
}

/* Was it lost with its connection before anything of it had left, and may go by
 * another one? The answer to a GET goes by none but that of the GET. */
static bool may_go_anew(const struct ib_xfer *x, const struct ib_tx *tx)
{
	return tx->status && !tx->begun && x->kind != IB_XFER_ANSWER &&
	       (tx->cause == LNET_CAUSE_REMOTE_DROPPED ||
		tx->cause == LNET_CAUSE_LOCAL_DROPPED);
}

static void sent(struct ib_xfer *x, const struct ib_tx *tx)
{
	if (!may_go_anew(x, tx) || !ib_xfer_give_back(x))
		ib_xfer_finalize(x, ib_xfer_status(tx->status), tx->cause);
}

/* Others than small messages that were sent. */
static out_of_line void other_done(struct ib_xfer *x, const struct ib_tx *tx)
{
	if (!x->msg)
		ib_xfer_end(x);
	else if (x->kind == IB_XFER_SINK)
		sink_done(x, tx);
	else if (x->kind == IB_XFER_GET &&
		 (!tx->status || tx->status == -ENODATA))
		get_done(x, tx);
	else
		sent(x, tx);
}

void ib_xfer_done(struct ib_tx *tx)
{
	struct ib_xfer *x = tx->user;

	x->tx = NULL;
	x->cpt->under_way--;
	if (x->kind == IB_XFER_IMMEDIATE && x->msg && !tx->status)
		ib_xfer_finalize(x, 0, LNET_CAUSE_OK);
	else
		other_done(x, tx);
}

/* ---- silence ---- */

/* Nothing of @tx has left, and LNet takes its message back once. */
static bool can_go_back(const struct ib_tx *tx)
{
	const struct ib_xfer *x = tx->user;

	return !tx->own && !tx->begun && tx->fsm.state != IB_TX_DONE &&
	       x->msg && !x->msg->again && x->kind <= IB_XFER_GET;
}

void ib_xfer_stalled(struct ib_conn *conn, uint64_t ns)
{
	struct ib_peers *ps = ib_peers_of(conn);
	struct ulnet_id id = { conn->terms.peer.nid, LNET_PID_ANY };
	struct list *l;

	/* The last one first: lnd.h. They wait, as they would without a
	 * connection, until there is one that is not silent; or soon go by this
	 * one, if LNet knows no other path. */
	for (l = conn->all.prev; l != &conn->all; l = l->prev) {
		struct ib_tx *tx = list_entry(l, struct ib_tx, all);
		struct ib_xfer *x = tx->user;
		struct lnd_msg *msg;

		if (!can_go_back(tx) || ib_peers_want(ps, &id.nid))
			continue;
		msg = x->msg;
		x->msg = NULL;
		(void)ib_tx_abandon(tx, true);
		lnet_send_again(msg);
	}
	lnet_peer_silent(ib_cpt_of(ps)->ini->ni, &id, ns);
}

/* ---- giving up ---- */

bool ib_xfer_has_begun(const struct lnd_msg *msg)
{
	const struct ib_xfer *x = msg->priv;

	return x->fsm.state == IB_XFER_MOVING && x->tx->begun;
}

void ib_xfer_cancel(struct lnd_msg *msg, int status)
{
	struct ib_xfer *x = msg->priv;
	bool begun = msg->incoming;

	if (x->fsm.state == IB_XFER_HUNGRY) {
		list_del(&x->link);
		ib_xfer_starved(x, status,
				begun ? LNET_CAUSE_NETWORK_TIMEOUT
				      : LNET_CAUSE_LOCAL_TIMEOUT);
		return;
	}
	x->msg = NULL;
	begun |= ib_tx_abandon(x->tx, !ib_is_direct(&x->direct));
	lnet_finalize(msg, status,
		      begun ? LNET_CAUSE_NETWORK_TIMEOUT
			    : LNET_CAUSE_LOCAL_TIMEOUT);
}
