/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "lnd/o2iblnd/conn_priv.h"

/* A transmit keeps the peer's descriptor (struct ib_rdma) in its own buffer,
 * behind the DONE message that will be sent from there. */
#define RDMA_OFFSET 64

_Static_assert(RDMA_OFFSET >= IB_DONE_SIZE, "room for the message");
_Static_assert(RDMA_OFFSET + IB_PUT_ACK_FRAGS * IB_FRAG_SIZE <= IB_MSG_SIZE_MAX,
	       "room for any descriptor");
_Static_assert(IB_GET_REQ_FRAGS <= IB_PUT_ACK_FRAGS, "of either kind");

/* Most WRITEs posted in one batch. As each batch must end with a SEND, a longer
 * transfer has NOOPs between its batches. */
#define BATCH_MAX 64

/* ---- credits ---- */

const struct ib_credit_rule ib_credit_rules[UINT8_MAX + 1] = {
	[IB_MSG_NOOP] = { IB_QUEUE_FREE, false, IB_GIVES_NOTHING },
	[IB_MSG_IMMEDIATE] = { IB_QUEUE_NORMAL, true, IB_GIVES_CREDIT },
	[IB_MSG_PUT_REQ] = { IB_QUEUE_RESERVED, true, IB_GIVES_CREDIT },
	[IB_MSG_PUT_NAK] = { IB_QUEUE_FREE, false, IB_GIVES_RESERVED },
	[IB_MSG_PUT_ACK] = { IB_QUEUE_FREE, false, IB_GIVES_RESERVED },
	[IB_MSG_PUT_DONE] = { IB_QUEUE_FREE, false, IB_GIVES_CREDIT },
	[IB_MSG_GET_REQ] = { IB_QUEUE_RESERVED, true, IB_GIVES_CREDIT },
	[IB_MSG_GET_DONE] = { IB_QUEUE_FREE, false, IB_GIVES_RESERVED },
};

void ib_credit_init(struct ib_credit *c, unsigned int depth, unsigned int hiw)
{
	BUG_ON(!depth || depth > IB_DEPTH_MAX || !hiw || hiw > depth);
	c->depth = c->have = c->reserved = c->peer = (uint8_t)depth;
	c->hiw = (uint8_t)hiw;
	c->owe = 0;
}

unsigned int ib_credit_hiw(unsigned int depth, unsigned int peer_credits,
			   unsigned int peer_credits_hiw)
{
	unsigned int hiw = depth * peer_credits_hiw / MAX(peer_credits, 1u);

	return MIN(MAX(hiw, 1u), depth);
}

bool ib_credit_reserve(struct ib_credit *c)
{
	if (!c->reserved)
		return false;
	c->reserved--;
	return true;
}

void ib_credit_unreserve(struct ib_credit *c)
{
	BUG_ON(c->reserved >= c->depth);
	c->reserved++;
}

void ib_credit_unsent(struct ib_credit *c, enum ib_msg_type type,
		      uint8_t credits)
{
	BUG_ON(c->peer < credits);
	c->have += ib_credit_rule(type)->costs;
	c->owe += credits;
	c->peer -= credits;
}

/* ---- queues ---- */

static struct ib_tx *queue_head(const struct ib_conn *conn, enum ib_queue q)
{
	if (list_empty(&conn->queues[q]))
		return NULL;
	return list_first(&conn->queues[q], struct ib_tx, link);
}

static bool is_queued(const struct ib_tx *tx)
{
	return tx->fsm.state >= IB_TX_RESERVED &&
	       tx->fsm.state <= IB_TX_WRITING;
}

/* Takes @tx off its queue, or off conn->waiting. */
static void tx_unlist(struct ib_tx *tx)
{
	if (is_queued(tx))
		tx->conn->queued--;
	list_del(&tx->link);
}

static bool is_to_be_answered(enum ib_msg_type type)
{
	return type == IB_MSG_PUT_REQ || type == IB_MSG_GET_REQ ||
	       type == IB_MSG_PUT_ACK;
}

/* ---- the end of transmits ---- */

/* @tx has its result and is in no list: moves on to "done". */
static in_line void conclude(struct ib_tx *tx)
{
	fsm_move(&tx->fsm, ib_tx_states, IB_TX_DONE);
	if (!tx->posts)
		list_add_tail(&tx->conn->finished, &tx->link);
}

/* @tx has its result: takes it off all lists. done() is called once none of its
 * work requests is posted. */
static void tx_finish(struct ib_tx *tx)
{
	BUG_ON(!tx->has_result);
	tx_unlist(tx);
	if (tx->reserved) {
		tx->reserved = false;
		ib_credit_unreserve(&tx->conn->credit);
	}
	conclude(tx);
}

static out_of_line void end_with_conn(struct ib_tx *tx)
{
	struct ib_conn *conn = tx->conn;

	if (tx->fsm.state == IB_TX_DONE)
		return;
	/* The completion of the SEND will tell whether the peer's device has
	 * it. */
	if (tx->fsm.state == IB_TX_POSTED && tx->posts &&
	    !is_to_be_answered(tx->type))
		return;
	ib_tx_result(tx, conn->status ? conn->status : -ECONNRESET,
		     ib_tx_cause(tx, conn->blame));
	tx_finish(tx);
}

void ib_conn_end_txs(struct ib_conn *conn)
{
	struct list *l;
	struct ib_tx *tx;

	/* Unsent transmits end first, in reverse order, as lnd.h wants unsent
	 * messages returned. */
	for (l = conn->all.prev; l != &conn->all; l = l->prev) {
		tx = list_entry(l, struct ib_tx, all);
		if (!tx->begun)
			end_with_conn(tx);
	}
	list_for_each_entry (tx, &conn->all, all)
		end_with_conn(tx);
}

/* ---- posting ---- */

/* Returns the number of WRITEs in the next batch of @tx. */
static unsigned int writes_now(const struct ib_tx *tx)
{
	return MIN(tx->nwrites,
		   MIN(tx->conn->max_slots - 1, (unsigned int)BATCH_MAX));
}

/* Returns the call at index @at of the ring, where @at is below 2 * calls_max.
 */
static struct ib_call *call_at(const struct ib_conn *conn, unsigned int at)
{
	return &conn->calls[at < conn->calls_max ? at : at - conn->calls_max];
}

static in_line void exchange_call_add(struct ib_tx *tx, struct ib_tx *send,
				      unsigned int slots, uint64_t now)
{
	struct ib_conn *conn = tx->conn;

	*call_at(conn, conn->first_call + conn->ncalls++) =
		(struct ib_call){ tx, send, slots };
	conn->slots -= slots;
	if (!conn->timed) {
		conn->timed = conn->ncalls;
		conn->timed_at = now;
	}
	tx->posts++;
	if (send != tx)
		send->posts++;
}

static struct ib_call exchange_call_end(struct ib_conn *conn)
{
	struct ib_call call = conn->calls[conn->first_call];

	BUG_ON(!conn->ncalls);
	if (++conn->first_call == conn->calls_max)
		conn->first_call = 0;
	conn->ncalls--;
	conn->slots += call.slots;
	return call;
}

/* Makes the work request of the SEND. */
static in_line void send_wr(struct ib_tx *tx, struct ib_wr *wr)
{
	const struct ib_conn *conn = tx->conn;

	if (conn->set->conf->cksum)
		ib_msg_set_cksum(ib_tx_buf(tx));
	wr->type = IB_WR_SEND;
	wr->sge = &tx->sge;
	wr->nsge = 1;
	wr->inlined = tx->sge.length <= conn->qp->max_inline;
	wr->cookie = tx;
}

/* Called when the SEND of @tx was posted. */
static in_line void send_posted(struct ib_tx *tx, uint64_t now)
{
	struct ib_conn *conn = tx->conn;

	conn->queued--;
	list_del(&tx->link);
	fsm_move(&tx->fsm, ib_tx_states, IB_TX_POSTED);
	tx->reserved = false;
	conn->sent_at = now;
	conn->keepalive = false;
	if (is_to_be_answered(tx->type))
		list_add_tail(&conn->waiting, &tx->link);
	if (unlikely(!ib_conn_looks_soon(conn, now)))
		ib_conn_arm(conn);
}

/* Posts @n work requests of @tx; the last one will be the SEND of @send. */
static in_line int post_wrs(struct ib_tx *tx, struct ib_tx *send,
			    struct ib_wr *wrs, unsigned int n)
{
	struct ib_conn *conn = tx->conn;
	uint8_t credits = ib_credit_sent(&conn->credit, send->type);
	uint64_t now;
	int rc;

	ib_msg_set_credits(ib_tx_buf(send), credits);
	send_wr(send, &wrs[n - 1]);
	rc = conn->qp->port->verbs->post_send(conn->qp, wrs, n);
	if (rc) {
		ib_credit_unsent(&conn->credit, send->type, credits);
		return rc;
	}
	tx->begun = send->begun = true;
	now = loop_now(conn->set->loop);
	exchange_call_add(tx, send, n, now);
	send_posted(send, now);
	return 0;
}

/* Posts a batch of WRITEs of @tx, and then @send: @tx itself if they were the
 * last ones, else a NOOP. */
static int post_writes(struct ib_tx *tx, struct ib_tx *send)
{
	struct ib_sge sges[BATCH_MAX * IB_WRITE_SGES];
	struct ib_wr wrs[BATCH_MAX + 1];
	struct ib_writes writes = tx->writes;
	unsigned int nwrites = writes_now(tx);
	int rc;

	for (unsigned int i = 0; i < nwrites; i++)
		ib_writes_next(&writes, &wrs[i], &sges[i * IB_WRITE_SGES],
			       tx->conn->send_sge);
	rc = post_wrs(tx, send, wrs, nwrites + 1);
	if (rc)
		return rc;
	tx->writes = writes;
	tx->nwrites -= nwrites;
	return 0;
}

/* ---- choosing the next message ---- */

/* Gives messages in IB_QUEUE_RESERVED their reserved credits. */
static void promote(struct ib_conn *conn)
{
	struct ib_tx *tx;

	while ((tx = queue_head(conn, IB_QUEUE_RESERVED)) &&
	       ib_credit_reserve(&conn->credit)) {
		list_del(&tx->link);
		tx->reserved = true;
		fsm_move(&tx->fsm, ib_tx_states, IB_TX_QUEUED);
		list_add_tail(&conn->queues[IB_QUEUE_NORMAL], &tx->link);
	}
}

/* Queues a NOOP in front of all others, to be posted at once. NULL: two NOOPs
 * are posted already; or there is no memory, and the timer will try again. */
static out_of_line struct ib_tx *add_noop(struct ib_conn *conn)
{
	struct ib_tx *tx;

	if (conn->noops >= IB_NOOPS_MAX)
		return NULL;
	tx = ib_tx_new(conn->set->pool, true);
	if (!tx) {
		conn->keepalive = true;
		return NULL;
	}
	tx->conn = conn;
	tx->own = true;
	tx->type = IB_MSG_NOOP;
	tx->sge.length = (uint32_t)ib_noop_encode(&conn->out, ib_tx_buf(tx));
	tx->deadline = loop_now(conn->set->loop) + conn->set->timeout;
	list_add_tail(&conn->all, &tx->all);
	fsm_move(&tx->fsm, ib_tx_states, IB_TX_QUEUED);
	list_add(&conn->queues[IB_QUEUE_FREE], &tx->link);
	conn->queued++;
	conn->noops++;
	return tx;
}

void ib_conn_fail_post(struct ib_conn *conn, int rc)
{
	/* -ENOTCONN: the connection has ended; the event that says so will
	 * follow. */
	if (rc == -ENOTCONN)
		ib_conn_fail(conn, -ECONNRESET, IB_BLAME_PEER,
			     "the queue pair is in error");
	else
		ib_conn_fail(conn, rc, IB_BLAME_SELF, "nothing can be posted");
}

/* Posts @tx, which has WRITEs, or a batch of it. Returns false if that is not
 * possible now. */
static out_of_line bool send_writes(struct ib_conn *conn, struct ib_tx *tx)
{
	struct ib_tx *end = tx;
	int rc;

	if (conn->slots < writes_now(tx) + 1)
		return false;
	if (writes_now(tx) < tx->nwrites) {
		end = add_noop(conn);
		if (!end)
			return false;
		if (tx->fsm.state == IB_TX_QUEUED)
			fsm_move(&tx->fsm, ib_tx_states, IB_TX_WRITING);
	}
	rc = post_writes(tx, end);
	if (rc)
		ib_conn_fail_post(conn, rc);
	return !rc;
}

/* Posts @tx. Returns false if that is not possible now. */
static in_line bool send(struct ib_conn *conn, struct ib_tx *tx)
{
	struct ib_wr wr;
	int rc;

	if (!ib_credit_may_send(&conn->credit, tx->type))
		return false;
	if (unlikely(tx->nwrites))
		return send_writes(conn, tx);
	if (!conn->slots)
		return false;
	rc = post_wrs(tx, tx, &wr, 1);
	if (unlikely(rc))
		ib_conn_fail_post(conn, rc);
	return !rc;
}

static struct ib_tx *next_tx(struct ib_conn *conn)
{
	struct ib_tx *tx, *free, *normal;

	promote(conn);
	free = queue_head(conn, IB_QUEUE_FREE);
	normal = queue_head(conn, IB_QUEUE_NORMAL);
	if (conn->slots &&
	    ib_credit_noop_due(&conn->credit, conn->keepalive, free, normal)) {
		tx = add_noop(conn);
		if (tx)
			return tx;
	}
	return free ? free : normal;
}

static bool may_post(const struct ib_conn *conn)
{
	return ib_conn_is_open(conn) && conn->ncalls < conn->calls_max;
}

void ib_conn_send(struct ib_conn *conn)
{
	struct ib_tx *tx;

	while (may_post(conn)) {
		tx = next_tx(conn);
		if (!tx || !send(conn, tx))
			return;
	}
}

/* Queues @tx according to tx->type. Its deadline is @time ns from now. */
static void exchange_tx_queue(struct ib_tx *tx, uint64_t time)
{
	struct ib_conn *conn = tx->conn;
	enum ib_queue q = ib_credit_queue(tx->type);

	/* @tx may be in conn->waiting. */
	list_del(&tx->link);
	fsm_move(&tx->fsm, ib_tx_states,
		 q == IB_QUEUE_RESERVED ? IB_TX_RESERVED : IB_TX_QUEUED);
	tx->deadline = loop_now(conn->set->loop) + time;
	conn->told_silent = false;
	/* Usually @tx can be posted at once, without entering its queue. */
	if (!conn->queued++ && tx->fsm.state == IB_TX_QUEUED &&
	    may_post(conn) && send(conn, tx) && !is_queued(tx))
		return;
	BUG_ON(conn->fsm.state > IB_CONN_CLOSING);
	list_add_tail(&conn->queues[q], &tx->link);
	ib_conn_send(conn);
	if (is_queued(tx))
		ib_conn_arm(conn);
}

/* ---- completions ---- */

static const struct {
	int status;
	enum ib_blame blame;
} failures[IB_WC_STATUSES] = {
	/* flushed: another work request has failed, or the peer has
	 * disconnected */
	[IB_WC_FLUSHED] = { -ECONNRESET, IB_BLAME_PEER },
	[IB_WC_SILENT] = { -ETIMEDOUT, IB_BLAME_SILENCE },
	[IB_WC_NOT_READY] = { -ECONNABORTED, IB_BLAME_PEER },
	[IB_WC_REMOTE_ACCESS] = { -EREMOTEIO, IB_BLAME_PEER },
	[IB_WC_REMOTE_ERROR] = { -EREMOTEIO, IB_BLAME_PEER },
	[IB_WC_LOCAL_ERROR] = { -EIO, IB_BLAME_SELF },
};

/* The oldest call has been acknowledged: measures the round trip. */
static void acknowledged(struct ib_conn *conn)
{
	uint64_t now = loop_now(conn->set->loop);

	conn->heard_at = now;
	if (conn->timed && !--conn->timed)
		silence_measure(&conn->acks, now - conn->timed_at);
}

/* completed(), for the rare cases: @tx had its result before, its last work
 * request has failed, or its SEND is still to be posted. */
static out_of_line void completed_otherwise(struct ib_tx *tx,
					    enum ib_wc_status status)
{
	struct ib_conn *conn = tx->conn;

	if (tx->fsm.state == IB_TX_DONE)
		list_add_tail(&conn->finished, &tx->link);
	else if (status != IB_WC_OK && conn->fsm.state == IB_CONN_DRAINING)
		end_with_conn(tx);
}

/* All work requests of @tx that were posted have completed. */
static in_line void completed(struct ib_tx *tx, enum ib_wc_status status)
{
	if (unlikely(status != IB_WC_OK || tx->fsm.state != IB_TX_POSTED)) {
		completed_otherwise(tx, status);
	} else if (is_to_be_answered(tx->type)) {
		fsm_move(&tx->fsm, ib_tx_states, IB_TX_WAITING);
	} else {
		ib_tx_result(tx, 0, LNET_CAUSE_OK);
		conclude(tx);
	}
}

static out_of_line void send_failed(struct ib_tx *tx, enum ib_wc_status status)
{
	struct ib_conn *conn = tx->conn;

	if (!ib_conn_is_open(conn))
		return;
	/* The peer had no receive: the SEND was certainly not delivered. */
	if (status == IB_WC_NOT_READY && tx->fsm.state == IB_TX_POSTED &&
	    ib_credit_queue(tx->type) != IB_QUEUE_FREE)
		ib_tx_result(tx, -ECONNABORTED, LNET_CAUSE_REMOTE_DROPPED);
	ib_conn_fail(conn, failures[status].status, failures[status].blame,
		     ib_wc_status_name(status));
}

/* @tx is a NOOP that was posted behind WRITEs of another transmit. */
static out_of_line void noop_completed(struct ib_tx *tx,
				       enum ib_wc_status status)
{
	tx->posts--;
	completed(tx, status);
}

void ib_conn_on_sent(struct ib_qp *qp, void *cookie, enum ib_wc_status status)
{
	struct ib_conn *conn = qp->user;
	struct ib_call call = exchange_call_end(conn);

	BUG_ON(call.send != cookie);
	if (call.send->type == IB_MSG_NOOP)
		conn->noops--;
	if (likely(status == IB_WC_OK))
		acknowledged(conn);
	else
		send_failed(call.send, status);
	if (!--call.tx->posts)
		completed(call.tx, status);
	if (unlikely(call.send != call.tx))
		noop_completed(call.send, status);
	ib_conn_check_alive(conn);
	ib_conn_pump(conn);
	ib_conn_settle(conn);
}

/* ---- sending ---- */

static in_line struct ib_tx *tx_begin(struct ib_conn *conn, bool answer)
{
	struct ib_tx *tx = ib_tx_new(conn->set->pool, answer);

	if (!tx)
		return NULL;
	tx->conn = conn;
	tx->time = conn->set->timeout;
	tx->deadline = TIME_NEVER;
	list_add_tail(&conn->all, &tx->all);
	return tx;
}

static out_of_line struct ib_tx *answer_begin(struct ib_conn *conn)
{
	return tx_begin(conn, true);
}

struct ib_tx *ib_tx_get(struct ib_conn *conn)
{
	return ib_conn_is_open(conn) ? tx_begin(conn, false) : NULL;
}

void ib_send_immediate(struct ib_tx *tx, uint32_t length)
{
	tx->type = IB_MSG_IMMEDIATE;
	tx->nob = length;
	tx->sge.length = (uint32_t)ib_immediate_encode(&tx->conn->out, length,
						       ib_tx_buf(tx));
	exchange_tx_queue(tx, tx->time);
}

void ib_send_put(struct ib_tx *tx, const struct ib_sge *source, uint32_t length)
{
	tx->type = IB_MSG_PUT_REQ;
	tx->source = source;
	tx->length = length;
	tx->sge.length = (uint32_t)ib_put_req_encode(
		&tx->conn->out, ib_tx_name(tx), ib_tx_buf(tx));
	exchange_tx_queue(tx, tx->time / 2);
}

static bool sink_fits(const struct ib_conn *conn, const struct ib_sink *sink,
		      uint64_t *nob)
{
	*nob = 0;
	for (unsigned int i = 0; i < sink->nfrags; i++)
		*nob += sink->frags[i].nob;
	return sink->nfrags && sink->nfrags <= conn->terms.frags &&
	       sink->nfrags <= IB_GET_REQ_FRAGS && *nob <= INT32_MAX;
}

int ib_send_get(struct ib_tx *tx, const struct ib_sink *sink)
{
	uint64_t nob;

	if (!sink_fits(tx->conn, sink, &nob))
		return -EMSGSIZE;
	tx->type = IB_MSG_GET_REQ;
	tx->length = (uint32_t)nob;
	tx->sge.length = (uint32_t)ib_get_req_encode(
		&tx->conn->out, ib_tx_name(tx), sink, ib_tx_buf(tx));
	exchange_tx_queue(tx, tx->time);
	return 0;
}

/* Queues a PUT_NAK, PUT_DONE or GET_DONE, to follow the WRITEs of @tx. */
static void send_done(struct ib_tx *tx, enum ib_msg_type type, uint64_t cookie,
		      int32_t status, uint64_t time)
{
	tx->type = (uint8_t)type;
	tx->sge.length = (uint32_t)ib_done_encode(&tx->conn->out, type, cookie,
						  status, ib_tx_buf(tx));
	exchange_tx_queue(tx, time);
}

/* Plans the WRITEs of @length bytes to the memory that @rdma describes. @rdma
 * points into a receive, so it is copied. */
static void plan_writes(struct ib_tx *tx, const struct ib_rdma *rdma,
			uint32_t length)
{
	uint8_t *copy = ib_tx_buf(tx) + RDMA_OFFSET;

	memcpy(copy, rdma->frags, (size_t)rdma->nfrags * IB_FRAG_SIZE);
	tx->rdma = *rdma;
	tx->rdma.frags = copy;
	ib_writes_init(&tx->writes, &tx->rdma, tx->source, length);
	tx->nwrites = ib_writes_count(&tx->writes, tx->conn->send_sge);
	tx->nob = length;
}

/* ---- answering ---- */

/* @rx was answered: posts it again, and lets blocked messages follow. */
static in_line void exchange_ended(struct ib_rx *rx, bool acked)
{
	struct ib_conn *conn = rx->conn;

	BUG_ON(rx->fsm.state != IB_RX_SHOWN);
	if (!rx->bounced)
		conn->blocking--;
	ib_rx_repost(rx, acked);
	if (!conn->blocking && !list_empty(&conn->blocked))
		ib_conn_defer(conn);
	ib_conn_pump(conn);
	ib_conn_unshow(conn);
}

/* exchange_ended(), out of line, for answers by a transmit. */
static out_of_line void exchange_answered(struct ib_rx *rx, bool acked)
{
	exchange_ended(rx, acked);
}

int ib_rx_bounce(struct ib_rx *rx)
{
	struct ib_conn *conn = rx->conn;
	int rc;

	BUG_ON(rx->fsm.state != IB_RX_SHOWN);
	/* LNet may call eager_recv() more than once. */
	if (rx->bounced)
		return 0;
	/* The receive of a PUT_REQ, and its credit, are kept for the PUT_DONE.
	 */
	if (rx->msg.type != IB_MSG_PUT_REQ && ib_conn_is_open(conn)) {
		rc = ib_rx_copy_to_bounce(rx);
		if (rc)
			return rc;
	}
	rx->bounced = true;
	conn->blocking--;
	if (!conn->blocking && !list_empty(&conn->blocked))
		ib_conn_defer(conn);
	return 0;
}

/* Tells the peer that no data will follow. */
static out_of_line void exchange_refuse(struct ib_rx *rx, int status)
{
	struct ib_conn *conn = rx->conn;
	struct ib_tx *tx = answer_begin(conn);
	bool put = rx->msg.type == IB_MSG_PUT_REQ;

	if (!tx) {
		ib_conn_fail(conn, -ENOMEM, IB_BLAME_SELF,
			     "no memory for an answer");
		return;
	}
	tx->own = true;
	send_done(tx, put ? IB_MSG_PUT_NAK : IB_MSG_GET_DONE, rx->msg.cookie,
		  status, tx->time);
}

void ib_rx_end(struct ib_rx *rx, int status)
{
	if (rx->msg.type != IB_MSG_IMMEDIATE && ib_conn_is_open(rx->conn))
		exchange_refuse(rx, status);
	exchange_ended(rx, false);
}

int ib_rx_accept(struct ib_rx *rx, const struct ib_sink *sink, void *user,
		 struct ib_tx **tx_p)
{
	struct ib_conn *conn = rx->conn;
	struct ib_tx *tx;
	uint64_t nob;

	BUG_ON(rx->msg.type != IB_MSG_PUT_REQ);
	if (!ib_conn_is_open(conn))
		return -ENOTCONN;
	if (!sink_fits(conn, sink, &nob) ||
	    nob > lnet_hdr_payload(rx->msg.lnet_hdr, LNET_HDR_SIZE))
		return -EMSGSIZE;
	tx = answer_begin(conn);
	if (!tx)
		return -ENOMEM;
	tx->user = user;
	tx->type = IB_MSG_PUT_ACK;
	/* The peer's PUT counts as received in part. */
	tx->begun = true;
	tx->length = (uint32_t)nob;
	tx->sge.length = (uint32_t)ib_put_ack_encode(&conn->out, rx->msg.cookie,
						     ib_tx_name(tx), sink,
						     ib_tx_buf(tx));
	*tx_p = tx;
	exchange_tx_queue(tx, tx->time);
	exchange_answered(rx, true);
	return 0;
}

int ib_rx_answer(struct ib_rx *rx, const struct ib_sge *source, uint32_t length,
		 void *user, struct ib_tx **tx_p)
{
	struct ib_conn *conn = rx->conn;
	struct ib_tx *tx;

	BUG_ON(rx->msg.type != IB_MSG_GET_REQ);
	if (!ib_conn_is_open(conn))
		return -ENOTCONN;
	if (length > ib_rdma_nob(&rx->msg.rdma) || length > INT32_MAX)
		return -EMSGSIZE;
	tx = answer_begin(conn);
	if (!tx)
		return -ENOMEM;
	tx->user = user;
	tx->source = source;
	tx->length = length;
	plan_writes(tx, &rx->msg.rdma, length);
	*tx_p = tx;
	send_done(tx, IB_MSG_GET_DONE, rx->msg.cookie, (int32_t)length,
		  tx->time);
	exchange_answered(rx, false);
	return 0;
}

/* ---- answers of the peer ---- */

/* Returns the transmit of @type and @cookie that waits for an answer, or NULL.
 */
static struct ib_tx *find_waiting(struct ib_conn *conn, enum ib_msg_type type,
				  uint64_t cookie)
{
	struct ib_tx *tx;

	list_for_each_entry (tx, &conn->waiting, link)
		if (tx->type == type && tx->cookie == cookie)
			return tx;
	return NULL;
}

static const char *on_put_ack(struct ib_conn *conn, const struct ib_msg *msg)
{
	struct ib_tx *tx = find_waiting(conn, IB_MSG_PUT_REQ, msg->cookie);
	uint64_t nob = ib_rdma_nob(&msg->rdma);
	int32_t status = -ECANCELED;

	if (!tx)
		return "no such PUT";
	if (nob > tx->length || nob > INT32_MAX)
		return "it has room for more than there is";
	if (!tx->abandoned) {
		plan_writes(tx, &msg->rdma, (uint32_t)nob);
		status = (int32_t)nob;
	}
	send_done(tx, IB_MSG_PUT_DONE, msg->dst_cookie, status, tx->time / 2);
	return NULL;
}

/* A PUT_NAK, PUT_DONE or GET_DONE ends the transmit of type @asked. */
static const char *on_final_answer(struct ib_conn *conn,
				   const struct ib_msg *msg,
				   enum ib_msg_type asked)
{
	struct ib_tx *tx = find_waiting(conn, asked, msg->cookie);

	if (!tx)
		return asked == IB_MSG_GET_REQ ? "no such GET" : "no such PUT";
	if (msg->type == IB_MSG_PUT_DONE && msg->status >= 0)
		tx->nob = tx->length;
	if (msg->type == IB_MSG_GET_DONE) {
		if (msg->status > (int64_t)tx->length)
			return "more bytes than there was room for";
		tx->nob = (uint32_t)MAX(msg->status, 0);
		/* Some nodes report fewer bytes than were asked for. */
		if (tx->nob && tx->nob < tx->length)
			log_debug("o2iblnd", "a GET of %u bytes has got %u",
				  tx->length, tx->nob);
	}
	if (msg->status < 0)
		ib_tx_result(tx, msg->status, LNET_CAUSE_REMOTE_ERROR);
	else
		ib_tx_result(tx, 0, LNET_CAUSE_OK);
	tx_finish(tx);
	return NULL;
}

const char *ib_exchange_answered(struct ib_conn *conn, const struct ib_msg *msg)
{
	switch (msg->type) {
	case IB_MSG_PUT_ACK:
		return on_put_ack(conn, msg);
	case IB_MSG_PUT_NAK:
		return on_final_answer(conn, msg, IB_MSG_PUT_REQ);
	case IB_MSG_PUT_DONE:
		return on_final_answer(conn, msg, IB_MSG_PUT_ACK);
	case IB_MSG_GET_DONE:
		return on_final_answer(conn, msg, IB_MSG_GET_REQ);
	default:
		return "it answers nothing";
	}
}

/* ---- abandoning ---- */

/* Changes the DONE in @tx, none of whose WRITEs is posted, to say that no data
 * comes. */
static void cancel_done(struct ib_tx *tx)
{
	struct ib_msg msg;
	const char *why;

	BUG_ON(ib_msg_decode(ib_tx_buf(tx), tx->sge.length, &msg, &why));
	ib_writes_init(&tx->writes, NULL, NULL, 0);
	tx->nwrites = 0;
	ib_done_encode(&tx->conn->out, tx->type, msg.cookie, -ECANCELED,
		       ib_tx_buf(tx));
}

/* May a device still access the payload memory of @tx? */
static bool uses_memory(const struct ib_tx *tx)
{
	switch (tx->type) {
	case IB_MSG_PUT_DONE:
	case IB_MSG_GET_DONE:
		return tx->nob && tx->fsm.state >= IB_TX_WRITING;
	case IB_MSG_PUT_ACK:
	case IB_MSG_GET_REQ:
		return true;
	default:
		return false;
	}
}

bool ib_tx_abandon(struct ib_tx *tx, bool memory_stays)
{
	struct ib_conn *conn = tx->conn;
	bool begun = tx->begun;

	BUG_ON(tx->own || tx->fsm.state == IB_TX_NEW);
	tx->abandoned = true;
	if (!memory_stays && begun && uses_memory(tx))
		ib_conn_fail(conn, -ECANCELED, IB_BLAME_SELF,
			     "a message was given up");
	ib_tx_result(tx, -ECANCELED, LNET_CAUSE_CANCELED);
	if (tx->fsm.state == IB_TX_RESERVED || tx->fsm.state == IB_TX_QUEUED) {
		if (tx->type == IB_MSG_PUT_DONE ||
		    tx->type == IB_MSG_GET_DONE) {
			cancel_done(tx);
		} else if (!begun) {
			tx_finish(tx);
			ib_conn_defer(conn);
		}
	}
	return begun;
}
