/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/conn_priv.h"

#include <errno.h>

/* The peer's descriptor is kept in the transmit's buffer, behind the DONE that
 * will be sent from there. */
#define RDMA_OFFSET 64

_Static_assert(RDMA_OFFSET >= IB_DONE_SIZE, "room for the message");
_Static_assert(RDMA_OFFSET + IB_PUT_ACK_FRAGS * IB_FRAG_SIZE <= IB_MSG_SIZE_MAX,
	       "room for any descriptor");
_Static_assert(IB_GET_REQ_FRAGS <= IB_PUT_ACK_FRAGS, "of either kind");

/* ---- to send ---- */

static in_line struct ib_tx *tx_begin(struct ib_conn *conn, bool answer)
{
	struct ib_tx *tx = ib_tx_new(conn->home->pool, answer);

	if (!tx)
		return NULL;
	tx->conn = conn;
	tx->time = conn->home->timeout;
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

void ib_tx_unget(struct ib_tx *tx)
{
	BUG_ON(tx->fsm.state != IB_TX_NEW);
	list_del(&tx->all);
	ib_tx_put(tx);
}

void ib_send_immediate(struct ib_tx *tx, uint32_t length)
{
	tx->type = IB_MSG_IMMEDIATE;
	tx->nob = length;
	tx->sge.length = (uint32_t)ib_immediate_encode(&tx->conn->out, length,
						       ib_tx_buf(tx));
	ib_tx_queue(tx, tx->time);
}

void ib_send_put(struct ib_tx *tx, const struct ib_sge *source, uint32_t length)
{
	tx->type = IB_MSG_PUT_REQ;
	tx->source = source;
	tx->length = length;
	tx->sge.length = (uint32_t)ib_put_req_encode(
		&tx->conn->out, ib_tx_name(tx), ib_tx_buf(tx));
	ib_tx_queue(tx, tx->time / 2);
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
	ib_tx_queue(tx, tx->time);
	return 0;
}

/* PUT_NAK, PUT_DONE or GET_DONE; after tx->nwrites WRITEs. */
static void send_done(struct ib_tx *tx, enum ib_msg_type type, uint64_t cookie,
		      int32_t status, uint64_t time)
{
	tx->type = (uint8_t)type;
	tx->sge.length = (uint32_t)ib_done_encode(&tx->conn->out, type, cookie,
						  status, ib_tx_buf(tx));
	ib_tx_queue(tx, time);
}

/* What is to be written where @rdma says, which is in a receive. */
static void aim(struct ib_tx *tx, const struct ib_rdma *rdma, uint32_t length)
{
	uint8_t *copy = ib_tx_buf(tx) + RDMA_OFFSET;

	memcpy(copy, rdma->frags, (size_t)rdma->nfrags * IB_FRAG_SIZE);
	tx->rdma = *rdma;
	tx->rdma.frags = copy;
	ib_writes_init(&tx->writes, &tx->rdma, tx->source, length);
	tx->nwrites = ib_writes_count(&tx->writes, tx->conn->send_sge);
	tx->nob = length;
}

/* ---- to answer ---- */

static in_line void ended(struct ib_rx *rx, bool acked)
{
	struct ib_conn *conn = rx->conn;

	BUG_ON(rx->fsm.state != IB_RX_SHOWN);
	if (!rx->aside)
		conn->standing--;
	ib_rx_repost(rx, acked);
	if (!conn->standing && !list_empty(&conn->behind))
		ib_conn_defer(conn);
	ib_conn_pump(conn);
	ib_conn_unshow(conn);
}

/* By a transmit. */
static out_of_line void answered(struct ib_rx *rx, bool acked)
{
	ended(rx, acked);
}

int ib_rx_set_aside(struct ib_rx *rx)
{
	struct ib_conn *conn = rx->conn;
	int rc;

	BUG_ON(rx->fsm.state != IB_RX_SHOWN);
	/* LNet delays a message first, and then holds it. */
	if (rx->aside)
		return 0;
	/* The receive of a PUT_REQ is for its PUT_DONE: the peer gets no credit
	 * for it before it is answered. */
	if (rx->msg.type != IB_MSG_PUT_REQ && ib_conn_is_open(conn)) {
		rc = ib_rx_copy_aside(rx);
		if (rc)
			return rc;
	}
	rx->aside = true;
	conn->standing--;
	if (!conn->standing && !list_empty(&conn->behind))
		ib_conn_defer(conn);
	return 0;
}

/* The peer waits for an answer, and there will be no data. */
static out_of_line void refuse(struct ib_rx *rx, int status)
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
		refuse(rx, status);
	ended(rx, false);
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
	/* The peer's message has come in part. */
	tx->begun = true;
	tx->length = (uint32_t)nob;
	tx->sge.length = (uint32_t)ib_put_ack_encode(&conn->out, rx->msg.cookie,
						     ib_tx_name(tx), sink,
						     ib_tx_buf(tx));
	*tx_p = tx;
	ib_tx_queue(tx, tx->time);
	answered(rx, true);
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
	aim(tx, &rx->msg.rdma, length);
	*tx_p = tx;
	send_done(tx, IB_MSG_GET_DONE, rx->msg.cookie, (int32_t)length,
		  tx->time);
	answered(rx, false);
	return 0;
}

/* ---- answers of the peer ---- */

/* That of @type and @cookie which waits. */
static struct ib_tx *find(struct ib_conn *conn, enum ib_msg_type type,
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
	struct ib_tx *tx = find(conn, IB_MSG_PUT_REQ, msg->cookie);
	uint64_t nob = ib_rdma_nob(&msg->rdma);
	int32_t status = -ECANCELED;

	if (!tx)
		return "no such PUT";
	if (nob > tx->length || nob > INT32_MAX)
		return "it has room for more than there is";
	if (!tx->abandoned) {
		aim(tx, &msg->rdma, (uint32_t)nob);
		status = (int32_t)nob;
	}
	send_done(tx, IB_MSG_PUT_DONE, msg->dst_cookie, status, tx->time / 2);
	return NULL;
}

/* @tx has got its answer, which is the last word. */
static void finish(struct ib_tx *tx, int32_t status)
{
	if (status < 0)
		ib_tx_result(tx, status, LNET_CAUSE_REMOTE_ERROR);
	else
		ib_tx_result(tx, 0, LNET_CAUSE_OK);
	ib_tx_finish(tx);
}

static const char *on_put_nak(struct ib_conn *conn, const struct ib_msg *msg)
{
	struct ib_tx *tx = find(conn, IB_MSG_PUT_REQ, msg->cookie);

	if (!tx)
		return "no such PUT";
	finish(tx, msg->status);
	return NULL;
}

static const char *on_put_done(struct ib_conn *conn, const struct ib_msg *msg)
{
	struct ib_tx *tx = find(conn, IB_MSG_PUT_ACK, msg->cookie);

	if (!tx)
		return "no such PUT";
	if (msg->status >= 0)
		tx->nob = tx->length;
	finish(tx, msg->status);
	return NULL;
}

static const char *on_get_done(struct ib_conn *conn, const struct ib_msg *msg)
{
	struct ib_tx *tx = find(conn, IB_MSG_GET_REQ, msg->cookie);

	if (!tx)
		return "no such GET";
	if (msg->status > (int64_t)tx->length)
		return "more bytes than there was room for";
	if (msg->status > 0)
		tx->nob = (uint32_t)msg->status;
	/* Some nodes say so, and have not written the end of it. */
	if (msg->status > 0 && tx->nob < tx->length)
		log_debug("o2ib", "a GET of %u bytes has got %u", tx->length,
			  tx->nob);
	finish(tx, msg->status);
	return NULL;
}

const char *ib_exchange_answered(struct ib_conn *conn, const struct ib_msg *msg)
{
	switch (msg->type) {
	case IB_MSG_PUT_ACK:
		return on_put_ack(conn, msg);
	case IB_MSG_PUT_NAK:
		return on_put_nak(conn, msg);
	case IB_MSG_PUT_DONE:
		return on_put_done(conn, msg);
	case IB_MSG_GET_DONE:
		return on_get_done(conn, msg);
	default:
		return "it answers nothing";
	}
}

/* ---- to give up ---- */

/* A DONE, none of whose WRITEs is posted: says that nothing comes. */
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

/* May its memory be read, or written, from now on? */
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
			ib_tx_finish(tx);
			ib_conn_defer(conn);
		}
	}
	return begun;
}
