/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/xfer.h"

#include <errno.h>

#include "base/iov.h"

const struct fsm_state ib_xfer_states[IB_XFER_STATES] = {
	[IB_XFER_NEW] = { "new", FSM_TO(IB_XFER_MEMORY_WAIT) |
					 FSM_TO(IB_XFER_MOVING) |
					 FSM_TO(IB_XFER_DONE) },
	[IB_XFER_MEMORY_WAIT] = { "memory-wait", FSM_TO(IB_XFER_MOVING) |
							 FSM_TO(IB_XFER_DONE) },
	[IB_XFER_MOVING] = { "moving",
			     FSM_TO(IB_XFER_FETCHED) | FSM_TO(IB_XFER_DONE) },
	[IB_XFER_FETCHED] = { "fetched", FSM_TO(IB_XFER_DONE) },
	[IB_XFER_DONE] = { "done", 0 },
};

/* ---- transfers ---- */

static inline void xfer_move(struct ib_xfer *x, enum ib_xfer_state to)
{
	fsm_move(&x->fsm, ib_xfer_states, to);
}

/* LNet does not distinguish a removed device from a port that is down. */
static inline int xfer_status(int status)
{
	return status == -ENODEV ? -ENETDOWN : status;
}

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
	x->bounce = NULL;
	msg->priv = x;
	return x;
}

static void xfer_put_memory(struct ib_xfer *x)
{
	ib_direct_put(x->cpt, &x->direct);
	ib_memory_unwait(x->cpt, &x->memory);
	ib_memory_put(x->cpt, &x->memory);
	free(x->bounce);
}

/* Frees the transfer and its memory, but does not finalize its message. */
static inline void xfer_end(struct ib_xfer *x)
{
	xfer_move(x, IB_XFER_DONE);
	/* Without a payload there is neither memory nor a place in its queue.
	 */
	if (x->length)
		xfer_put_memory(x);
	pool_put(&x->cpt->xfers, x);
}

/* Frees the transfer and finalizes its message. */
static void xfer_finalize(struct ib_xfer *x, int status, enum ulnet_cause cause)
{
	struct lnd_msg *msg = x->msg;

	xfer_end(x);
	if (msg)
		lnet_finalize(msg, status, cause);
}

static void xfer_moves(struct ib_xfer *x, struct ib_tx *tx)
{
	x->tx = tx;
	x->cpt->under_way++;
	xfer_move(x, IB_XFER_MOVING);
}

static void set_timeout(struct ib_cpt *cpt)
{
	cpt->peers.set.timeout = ib_timeout(cpt->ini);
}

/* ---- payloads ---- */

static enum ib_use xfer_use(const struct ib_xfer *x)
{
	return x->kind == IB_XFER_SINK || x->kind == IB_XFER_ANSWER
		       ? IB_USE_ANSWERS
		       : IB_USE_REQUESTS;
}

/* Returns the memory from which the device reads the payload. */
static const struct ib_sge *xfer_source(const struct ib_xfer *x)
{
	return ib_is_direct(&x->direct) ? x->direct.sges : &x->memory.sge;
}

/* Returns the memory to which the peer writes the payload. @frags has room for
 * LNET_MAX_IOV. */
static struct ib_sink xfer_sink(const struct ib_xfer *x, struct ib_frag *frags)
{
	const struct ib_block *block = &x->memory.block;

	if (ib_is_direct(&x->direct))
		return ib_direct_sink(&x->direct, frags);
	*frags = (struct ib_frag){ (uintptr_t)block->addr, x->length };
	return (struct ib_sink){ block->rkey, 1, frags };
}

/* Sets @p to the payload. Returns false if the user has not registered its
 * memory. */
static bool payload_of(const struct ib_xfer *x, struct ib_payload *p)
{
	const struct lnd_msg *msg = x->msg;

	*p = (struct ib_payload){ msg->iov, msg->niov, msg->offset, x->length,
				  msg->mem };
	if (x->kind != IB_XFER_GET)
		return msg->mem;
	p->offset = 0;
	return lnet_msg_sink(msg, &p->iov, &p->niov, &p->mem);
}

/* If possible, makes @x use the user's own memory. It does not while transfers
 * with the same peer wait for bounce memory, which would be overtaken. */
static bool use_direct(struct ib_xfer *x, const struct ib_conn *conn)
{
	bool sink = x->kind == IB_XFER_GET || x->kind == IB_XFER_SINK;
	struct ib_payload payload;

	return payload_of(x, &payload) &&
	       !ib_memory_is_awaited(x->cpt, xfer_use(x), &x->peer) &&
	       ib_direct_get(x->cpt, &payload, sink ? conn->terms.frags : 0,
			     &x->direct);
}

/* Copies outgoing payload into the bounce memory. */
static void xfer_fill(struct ib_xfer *x)
{
	const struct lnd_msg *msg = x->msg;

	if (x->kind == IB_XFER_PUT || x->kind == IB_XFER_ANSWER)
		iov_gather(x->memory.block.addr, msg->iov, msg->niov,
			   msg->offset, msg->length);
}

/* Copies incoming payload out of the bounce memory. */
static void xfer_empty(const struct ib_xfer *x)
{
	const struct lnd_msg *msg = x->msg;

	if (!ib_is_direct(&x->direct))
		iov_scatter(msg->iov, msg->niov, msg->offset,
			    x->memory.block.addr, msg->length);
}

/* Puts @x into the queue for memory. Returns -EAGAIN; or -ENOMEM. */
static int xfer_wait_for_memory(struct ib_xfer *x)
{
	int rc = ib_memory_wait(x->cpt, xfer_use(x), &x->peer, &x->memory);

	if (rc)
		return rc;
	xfer_move(x, IB_XFER_MEMORY_WAIT);
	list_add_tail(&x->cpt->memory_waiters, &x->link);
	return -EAGAIN;
}

/* Ends a transfer that was taken off memory_waiters. */
static void xfer_fail_waiting(struct ib_xfer *x, int status,
			      enum ulnet_cause cause)
{
	if (x->rx)
		ib_rx_end(x->rx, status);
	xfer_finalize(x, status, cause);
}

/* Gets memory for a payload that does not fit into an IMMEDIATE and goes over
 * @conn: the user's own, or bounce memory. Returns 0; -EAGAIN: it waits for
 * bounce memory; -ENOMEM. */
static int xfer_find_memory(struct ib_xfer *x, const struct ib_conn *conn)
{
	int rc;

	if (!x->length || use_direct(x, conn))
		return 0;
	rc = ib_memory_get(x->cpt, xfer_use(x), &x->peer, x->length,
			   &x->memory);
	if (!rc)
		xfer_fill(x);
	return rc == -ENOBUFS ? xfer_wait_for_memory(x) : rc;
}

void ib_xfer_bounce(struct ib_cpt *cpt)
{
	struct ib_xfer *x;

	list_for_each_entry (x, &cpt->fetched, link) {
		if (!x->memory.block.chunk)
			continue;
		/* If there is no memory, LNet gets -ENOMEM when it takes the
		 * data. */
		x->bounce = malloc(x->length);
		if (x->bounce)
			memcpy(x->bounce, x->memory.block.addr, x->length);
		ib_memory_put(cpt, &x->memory);
		x->memory.block.addr = NULL;
	}
}

/* ---- sending ---- */

static out_of_line void send_get(struct ib_xfer *x, struct ib_tx *tx)
{
	struct ib_frag frags[LNET_MAX_IOV];
	struct ib_sink sink = xfer_sink(x, frags);

	/* ib_send_get() cannot fail: use_direct() has checked the number of
	 * fragments. */
	BUG_ON(ib_send_get(tx, &sink));
}

/* Returns, in ns, how long the exchange for the message of @x may take: the
 * time that LNet has left for the message (requirement F6), but at least half
 * of the LND's time-out, because a connection whose exchange is late ends, with
 * all that is on it. A message that has less time is canceled by LNet itself.
 */
static in_line uint64_t time_for(const struct ib_xfer *x)
{
	uint64_t now = loop_now(ib_loop(x->cpt));
	uint64_t left = x->msg->deadline - MIN(now, x->msg->deadline);

	return MAX(left, x->cpt->peers.set.timeout / 2);
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
		tx->time = time_for(x);
		ib_send_put(tx, xfer_source(x), x->length);
		break;
	default:
		tx->time = time_for(x);
		send_get(x, tx);
		break;
	}
	return 0;
}

/* Finds a connection for @x. Small messages keep their order, so they always
 * use the same one. */
static in_line int find_connection(const struct ib_xfer *x,
				   struct ib_conn **conn_p)
{
	return ib_peers_get(&x->cpt->peers, &x->peer,
			    x->kind != IB_XFER_IMMEDIATE, conn_p);
}

/* Sends a transfer that has its memory now, or finalizes it with an error.
 * -EINPROGRESS: there is no connection; nothing was done. */
static int xfer_send_begin(struct ib_xfer *x)
{
	struct ib_conn *conn;
	int rc = find_connection(x, &conn);

	if (rc == -EINPROGRESS)
		return rc;
	if (!rc)
		rc = send_on(x, conn);
	if (rc)
		xfer_finalize(x, xfer_status(rc),
			      lnd_refusal_cause(xfer_status(rc)));
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

int ib_xfer_send(struct lnd_ni *ni, struct lnd_msg *msg)
{
	struct ib_cpt *cpt = &ib_ni_of(ni)->cpts[msg->cpt];
	struct ib_conn *conn;
	struct ib_xfer *x;
	int rc;

	if (msg->large)
		return -EAFNOSUPPORT;
	/* A peer that only calls can be reached by the connections that it has
	 * opened, and no others. */
	if (msg->next_pid & LNET_PID_USERFLAG &&
	    !ib_peers_use(&cpt->peers, &msg->next_hop))
		return -EHOSTUNREACH;
	set_timeout(cpt);
	x = xfer_for(cpt, msg);
	if (!x)
		return -ENOMEM;
	rc = find_connection(x, &conn);
	if (rc) {
		xfer_end(x);
		return xfer_status(rc);
	}
	rc = x->length ? xfer_find_memory(x, conn) : 0;
	if (rc == -EAGAIN)
		return 0;
	if (!rc)
		rc = send_on(x, conn);
	if (rc)
		xfer_end(x);
	return rc;
}

/* Gives a message of which nothing was sent back to LNet, which keeps it until
 * there is a connection. Returns false if that is not possible. */
static bool xfer_return(struct ib_xfer *x)
{
	struct lnd_msg *msg = x->msg;

	if (msg->again || ib_peers_connect(&x->cpt->peers, &x->peer))
		return false;
	xfer_end(x);
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

/* Gives LNet a message that has come with its payload by the straight way.
 * Returns whether LNet has taken it. */
static in_line bool xfer_taken(struct lnd_ni *ni, const struct ulnet_id *from,
			       struct ib_rx *rx)
{
	const struct ib_msg *msg = &rx->msg;

	return msg->type == IB_MSG_IMMEDIATE &&
	       lnet_hdr_payload(msg->lnet_hdr, LNET_HDR_SIZE) <=
		       msg->payload_len &&
	       lnet_take(ni, msg->lnet_hdr, LNET_HDR_SIZE, from, rx,
			 msg->payload);
}

void ib_xfer_arrived(struct ib_conn *conn, struct ib_rx *rx)
{
	struct ib_cpt *cpt = ib_cpt_of(ib_peers_of(conn));
	struct ulnet_id from = {
		conn->terms.peer.nid,
		lnet_hdr_src_pid(rx->msg.lnet_hdr, LNET_HDR_SIZE),
	};

	if (likely(xfer_taken(cpt->ini->ni, &from, rx)))
		ib_rx_end(rx, 0);
	else if (lnet_parse(cpt->ini->ni, rx->msg.lnet_hdr, LNET_HDR_SIZE, &from,
		       rx))
		on_refused_header(conn, rx);
}

/* LNet takes the data of a GET. @msg NULL: it does not want them. */
static out_of_line void take_data(struct ib_rx *rx, struct lnd_msg *msg)
{
	struct ib_xfer *x = container_of(rx, struct ib_xfer, data);
	const void *data = x->bounce ? x->bounce : x->memory.block.addr;
	int status = msg && !x->in_place && !data ? -ENOMEM : 0;

	if (msg && !x->in_place && data)
		iov_scatter(msg->iov, msg->niov, msg->offset, data,
			    msg->length);
	list_del(&x->link);
	xfer_end(x);
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
	/* The LNet header may announce more payload than has come. */
	lnet_finalize(msg, all ? 0 : -EPROTO,
		      all ? LNET_CAUSE_OK : LNET_CAUSE_REMOTE_ERROR);
}

/* Sets *@status and *@cause for the PUT or GET in @rx, whose connection has
 * ended: of a PUT some has been received, of a GET's answer nothing was sent.
 */
static void xfer_lost_with(const struct ib_rx *rx, int *status,
			   enum ulnet_cause *cause)
{
	const struct ib_conn *conn = rx->conn;
	const struct ib_tx as = { .begun = rx->msg.type == IB_MSG_PUT_REQ };

	*status = conn->status ? xfer_status(conn->status) : -ECONNRESET;
	*cause = ib_tx_cause(&as, conn->blame);
}

static void xfer_sink_begin(struct ib_xfer *x)
{
	struct ib_rx *rx = x->rx;
	struct ib_frag frags[LNET_MAX_IOV];
	struct ib_sink sink = xfer_sink(x, frags);
	enum ulnet_cause cause = LNET_CAUSE_LOCAL_ERROR;
	struct ib_tx *tx;
	int rc = ib_rx_accept(rx, &sink, x, &tx);

	if (!rc) {
		x->rx = NULL;
		xfer_moves(x, tx);
		return;
	}
	if (rc == -ENOTCONN)
		xfer_lost_with(rx, &rc, &cause);
	ib_rx_end(rx, rc);
	xfer_finalize(x, rc, cause);
}

/* Ends a peer's PUT of which no payload has come. */
static void end_put(struct ib_rx *rx, struct lnd_msg *msg, int status,
		    enum ulnet_cause cause)
{
	ib_rx_end(rx, status);
	lnet_finalize(msg, status, cause);
}

/* Makes a transfer for the payload of the PUT or GET in @rx. NULL: no memory.
 */
static struct ib_xfer *xfer_for_rx(struct ib_rx *rx, enum ib_xfer_kind kind,
				   struct lnd_msg *msg)
{
	struct ib_cpt *cpt = ib_cpt_of(ib_peers_of(rx->conn));
	struct ib_xfer *x = xfer_new(cpt, kind, &rx->conn->terms.peer.nid, msg);

	set_timeout(cpt);
	if (!x)
		return NULL;
	x->rx = rx;
	x->length = msg->length;
	return x;
}

static out_of_line void take_put(struct ib_rx *rx, struct lnd_msg *msg)
{
	enum ulnet_cause cause;
	struct ib_xfer *x;
	int rc;

	if (!ib_conn_is_open(rx->conn)) {
		xfer_lost_with(rx, &rc, &cause);
		end_put(rx, msg, rc, cause);
		return;
	}
	if (!msg->length) {
		end_put(rx, msg, 0, LNET_CAUSE_OK);
		return;
	}
	x = xfer_for_rx(rx, IB_XFER_SINK, msg);
	rc = x ? xfer_find_memory(x, rx->conn) : -ENOMEM;
	if (rc == -EAGAIN)
		return;
	if (!rc) {
		xfer_sink_begin(x);
		return;
	}
	if (x)
		xfer_end(x);
	end_put(rx, msg, rc, LNET_CAUSE_LOCAL_ERROR);
}

/* Answers a message that LNet does not want. */
static out_of_line void discard(struct ib_rx *rx)
{
	ib_rx_end(rx, rx->msg.type == IB_MSG_GET_REQ ? -ENODATA : 0);
}

void ib_xfer_recv(struct lnd_ni *ni, void *arg, struct lnd_msg *msg,
		  uint32_t rlength)
{
	struct ib_rx *rx = arg;

	(void)ni;
	(void)rlength;
	if (!rx->conn)
		take_data(rx, msg);
	else if (!msg)
		discard(rx);
	else if (rx->msg.type == IB_MSG_PUT_REQ)
		take_put(rx, msg);
	else
		take_immediate(rx, msg);
}

int ib_xfer_eager_recv(struct lnd_ni *ni, void *arg)
{
	struct ib_rx *rx = arg;

	(void)ni;
	return rx->conn ? ib_rx_bounce(rx) : 0;
}

/* ---- answering ---- */

/* Begins to answer a GET. Returns 0; or -errno: nothing was sent. */
static int xfer_answer_begin(struct ib_xfer *x)
{
	const struct ib_sge *source = x->length ? xfer_source(x) : NULL;
	struct ib_tx *tx;
	int rc = ib_rx_answer(x->rx, source, x->length, x, &tx);

	if (rc)
		return rc;
	x->rx = NULL;
	xfer_moves(x, tx);
	return 0;
}

int ib_xfer_answer(struct lnd_ni *ni, void *arg, struct lnd_msg *msg)
{
	struct ib_rx *rx = arg;
	struct ib_xfer *x;
	int rc;

	(void)ni;
	if (!rx->conn || rx->msg.type != IB_MSG_GET_REQ)
		return -EOPNOTSUPP;
	if (!msg)
		return 0;
	if (!ib_conn_is_open(rx->conn))
		return -ENOTCONN;
	x = xfer_for_rx(rx, IB_XFER_ANSWER, msg);
	if (!x)
		return -ENOMEM;
	rc = xfer_find_memory(x, rx->conn);
	if (rc == -EAGAIN)
		return 0;
	if (!rc)
		rc = xfer_answer_begin(x);
	if (rc)
		xfer_end(x);
	return rc;
}

/* ---- the end of transmits ---- */

/* A GET is done: gives LNet what the peer has written, as the payload of a
 * REPLY. */
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
		xfer_move(x, IB_XFER_FETCHED);
		list_add_tail(&x->cpt->fetched, &x->link);
	} else {
		xfer_end(x);
	}
	/* The GET counts as sent even if the peer did not reply. */
	lnet_finalize(msg, 0, LNET_CAUSE_OK);
	if (!replied || !lnet_parse(ni, hdr, sizeof(hdr), &from, &x->data))
		return;
	list_del(&x->link);
	xfer_end(x);
}

static out_of_line void sink_done(struct ib_xfer *x, const struct ib_tx *tx)
{
	if (!tx->status)
		xfer_empty(x);
	xfer_finalize(x, xfer_status(tx->status), tx->cause);
}

/* May the message of @x be sent again? Yes if nothing was sent before the
 * connection was lost, and if another one may be used: the answer to a GET must
 * use the GET's connection. */
static bool may_send_again(const struct ib_xfer *x, const struct ib_tx *tx)
{
	return tx->status && !tx->begun && x->kind != IB_XFER_ANSWER &&
	       (tx->cause == LNET_CAUSE_REMOTE_DROPPED ||
		tx->cause == LNET_CAUSE_LOCAL_DROPPED);
}

static void sent(struct ib_xfer *x, const struct ib_tx *tx)
{
	if (!may_send_again(x, tx) || !xfer_return(x))
		xfer_finalize(x, xfer_status(tx->status), tx->cause);
}

/* Ends a transfer, unless it is a small message that was sent, which
 * ib_xfer_done() ends itself. */
static out_of_line void other_done(struct ib_xfer *x, const struct ib_tx *tx)
{
	if (!x->msg)
		xfer_end(x);
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
		xfer_finalize(x, 0, LNET_CAUSE_OK);
	else
		other_done(x, tx);
}

/* ---- silence ---- */

/* Was nothing of @tx sent, and can LNet still take back its message? */
static bool can_return(const struct ib_tx *tx)
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

	/* Gives messages back in reverse order (lnd.h). LNet sends them by
	 * another path or, if it knows none, soon again by this connection. */
	for (l = conn->all.prev; l != &conn->all; l = l->prev) {
		struct ib_tx *tx = list_entry(l, struct ib_tx, all);
		struct ib_xfer *x = tx->user;
		struct lnd_msg *msg;

		if (!can_return(tx) || ib_peers_connect(ps, &id.nid))
			continue;
		msg = x->msg;
		x->msg = NULL;
		(void)ib_tx_abandon(tx, true);
		lnet_send_again(msg);
	}
	lnet_peer_silent(ib_cpt_of(ps)->ini->ni, &id, ns);
}

/* ---- giving up ---- */

bool ib_xfer_has_begun(struct lnd_ni *ni, const struct lnd_msg *msg)
{
	const struct ib_xfer *x = msg->priv;

	(void)ni;
	return x->fsm.state == IB_XFER_MOVING && x->tx->begun;
}

void ib_xfer_cancel(struct lnd_ni *ni, struct lnd_msg *msg, int status)
{
	struct ib_xfer *x = msg->priv;
	bool begun = msg->incoming;

	(void)ni;
	if (x->fsm.state == IB_XFER_MEMORY_WAIT) {
		list_del(&x->link);
		xfer_fail_waiting(x, status,
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

/* ---- waiting for memory ---- */

static void answer_continue(struct ib_xfer *x)
{
	enum ulnet_cause cause = LNET_CAUSE_LOCAL_DROPPED;
	int rc = xfer_answer_begin(x);

	if (!rc)
		return;
	if (rc == -ENOTCONN)
		xfer_lost_with(x->rx, &rc, &cause);
	xfer_fail_waiting(x, rc, cause);
}

/* Sends a transfer that has its memory now. If there is no connection, adds it
 * to @lost, in reverse order. */
static void send_continue(struct ib_xfer *x, struct list *lost)
{
	if (xfer_send_begin(x) != -EINPROGRESS)
		return;
	x->memory.holder->lost = x->cpt->round;
	list_add(lost, &x->link);
}

/* Tries to get memory for all transfers that wait. Moves those that get it to
 * @granted, and those that never will to @refused. Calls nobody back. */
static void retry_all(struct ib_cpt *cpt, struct list *granted,
		      struct list *refused)
{
	struct ib_xfer *x, *tmp;

	cpt->round++;
	list_for_each_entry_safe (x, tmp, &cpt->memory_waiters, link) {
		int rc =
			ib_memory_retry(cpt, cpt->round, x->length, &x->memory);

		if (rc == -ENOBUFS)
			continue;
		list_del(&x->link);
		list_add_tail(rc ? refused : granted, &x->link);
		if (!rc)
			xfer_fill(x);
	}
}

static void continue_all(struct ib_cpt *cpt, struct list *granted,
			 struct list *lost)
{
	struct ib_xfer *x;

	while ((x = list_pop(granted, struct ib_xfer, link))) {
		/* The place in the queue is given up only now, so that a new
		 * transfer cannot overtake this one. */
		ib_memory_unwait(cpt, &x->memory);
		if (x->kind == IB_XFER_SINK)
			xfer_sink_begin(x);
		else if (x->kind == IB_XFER_ANSWER)
			answer_continue(x);
		else
			send_continue(x, lost);
	}
}

/* Adds to @lost all transfers that wait for memory and go to the same peers:
 * LNet must get them back now, since messages that it gets back later are sent
 * first. */
static void add_lost_behind(struct ib_cpt *cpt, struct list *lost)
{
	struct ib_xfer *x, *tmp;

	if (list_empty(lost))
		return;
	list_for_each_entry_safe (x, tmp, &cpt->memory_waiters, link) {
		if (xfer_use(x) != IB_USE_REQUESTS ||
		    x->memory.holder->lost != cpt->round)
			continue;
		list_del(&x->link);
		list_add(lost, &x->link);
	}
}

void ib_xfer_retry(struct work *w)
{
	struct ib_cpt *cpt = container_of(w, struct ib_cpt, retry);
	struct list granted, refused, lost;
	struct ib_xfer *x;

	cpt->retrying = false;
	list_init(&granted);
	list_init(&refused);
	list_init(&lost);
	retry_all(cpt, &granted, &refused);
	continue_all(cpt, &granted, &lost);
	add_lost_behind(cpt, &lost);
	while ((x = list_pop(&lost, struct ib_xfer, link))) {
		/* A message that was given back before cannot be given back
		 * again. */
		if (!xfer_return(x))
			xfer_finalize(x, -ENOBUFS, LNET_CAUSE_LOCAL_DROPPED);
	}
	while ((x = list_pop(&refused, struct ib_xfer, link)))
		xfer_fail_waiting(x, -ENOMEM, LNET_CAUSE_LOCAL_DROPPED);
	ib_cpt_settle(cpt);
}

void ib_xfer_fail_waiters(struct ib_cpt *cpt, int status)
{
	while (!list_empty(&cpt->memory_waiters)) {
		struct ib_xfer *x =
			list_first(&cpt->memory_waiters, struct ib_xfer, link);
		bool down = status == -ENETDOWN;
		enum ulnet_cause none = down ? LNET_CAUSE_LOCAL_NO_ROUTE
					     : LNET_CAUSE_LOCAL_ABORTED;
		enum ulnet_cause some =
			down ? LNET_CAUSE_LOCAL_ERROR : LNET_CAUSE_SHUTDOWN;

		list_del(&x->link);
		xfer_fail_waiting(x, status,
				  x->kind == IB_XFER_SINK ? some : none);
	}
}

/* A connection with @peer is closed. If it was the last one, gives back
 * messages to @peer that wait for memory. They were sent after those that the
 * connection will give back, so LNet must get them first. Calls nobody back. */
static void return_waiters(struct ib_cpt *cpt, const struct ulnet_nid *peer)
{
	struct list *l, *before;

	for (l = cpt->memory_waiters.prev; l != &cpt->memory_waiters;
	     l = before) {
		struct ib_xfer *x = list_entry(l, struct ib_xfer, link);
		struct ib_conn *conn;

		before = l->prev;
		if (xfer_use(x) != IB_USE_REQUESTS ||
		    !lnet_nid_eq(&x->peer, peer) || x->msg->again ||
		    find_connection(x, &conn) != -EINPROGRESS)
			continue;
		list_del(&x->link);
		if (!xfer_return(x))
			list_add(before, &x->link);
	}
}

void ib_xfer_closed(struct ib_conn *conn)
{
	struct ib_cpt *cpt = ib_cpt_of(ib_peers_of(conn));
	struct ib_xfer *x, *tmp;
	struct list lost;

	return_waiters(cpt, &conn->terms.peer.nid);
	list_init(&lost);
	list_for_each_entry_safe (x, tmp, &cpt->memory_waiters, link) {
		if (!x->rx || x->rx->conn != conn)
			continue;
		list_del(&x->link);
		list_add_tail(&lost, &x->link);
	}
	while ((x = list_pop(&lost, struct ib_xfer, link))) {
		enum ulnet_cause cause;
		int status;

		xfer_lost_with(x->rx, &status, &cause);
		xfer_fail_waiting(x, status, cause);
	}
}
