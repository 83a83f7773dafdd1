/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of connections, and what becomes of messages under way when one
 * ends. */
#include "tests/unit/o2iblnd/ib_rig.h"
#include "ulnet/o2ib.h"

#include <criterion/criterion.h>
#include <errno.h>

#define S NSEC_PER_SEC

static void end(struct rig *r, struct rig_side *s)
{
	if (s->conn)
		ib_conn_close(s->conn, -ESHUTDOWN);
	rig_run(r, 0);
	if (s->qp && s->qp->created)
		rig_flush(s);
	rig_run(r, 0);
	cr_expect_null(s->conn);
}

static void end_all(struct rig *r)
{
	end(r, &r->a);
	end(r, &r->b);
	rig_close(r);
}

/* ---- the beginning ---- */

Test(o2ib_conn, connects)
{
	struct rig r;

	rig_open(&r, 8);
	rig_connect(&r);
	cr_expect_eq(r.a.qp->nrecvs, 18);
	cr_expect_eq(r.b.qp->nrecvs, 18);
	cr_expect_eq(r.a.qp->conf.max_recv_wr, 18);
	cr_expect_eq(r.a.conn->terms.peer.stamp, r.b.set.self.stamp);
	cr_expect_eq(r.b.conn->terms.peer.stamp, r.a.set.self.stamp);
	cr_expect_eq(r.a.conn->credit.have, 8);
	cr_expect_eq(r.a.conn->credit.hiw, 4);
	cr_assert_not_null(rig_send(&r.a, 100, NULL));
	cr_assert_not_null(rig_send(&r.b, 0, NULL));
	rig_settle(&r);
	cr_expect_eq(r.a.ndone, 1);
	cr_expect_eq(r.a.done[0].status, 0);
	cr_expect_eq(r.a.done[0].cause, LNET_CAUSE_OK);
	cr_expect_eq(r.b.ngot, 1);
	cr_expect_eq(r.b.got[0].payload_len, 100);
	cr_expect_eq(r.a.ngot, 1);
	end_all(&r);
	cr_expect_eq(r.a.status, -ESHUTDOWN);
	cr_expect(r.a.closed && r.a.gone > r.a.closed);
}

/* The peer's messages arrive before this side is told that it is connected. */
Test(o2ib_conn, early)
{
	uint8_t full[IB_PRIVATE_ACCEPT_SIZE] = { 0 };
	struct rig r;

	rig_open(&r, 8);
	rig_ask(&r);
	memcpy(full, r.b.qp->private, r.b.qp->private_len);
	ib_conn_on_established(&r.a.qp->qp, full, sizeof(full));
	for (uint32_t i = 1; i <= 3; i++) {
		cr_assert_not_null(rig_send(&r.a, i, NULL));
		rig_carry(&r.a);
	}
	cr_expect_eq(r.b.ngot, 0);
	cr_expect_null(ib_tx_get(r.b.conn), "nothing is sent before");
	ib_conn_on_established(&r.b.qp->qp, NULL, 0);
	cr_expect_eq(r.b.established, 1);
	cr_assert_eq(r.b.ngot, 3);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(r.b.got[i].payload_len, i + 1);
	rig_settle(&r);
	end_all(&r);
}

/* The same, but the connection is never established. */
Test(o2ib_conn, early_in_vain)
{
	uint8_t full[IB_PRIVATE_ACCEPT_SIZE] = { 0 };
	struct rig r;

	rig_open(&r, 8);
	rig_ask(&r);
	memcpy(full, r.b.qp->private, r.b.qp->private_len);
	ib_conn_on_established(&r.a.qp->qp, full, sizeof(full));
	cr_assert_not_null(rig_send(&r.a, 5, NULL));
	rig_carry(&r.a);
	ib_conn_on_failed(&r.b.qp->qp, -ECONNRESET);
	rig_run(&r, 0);
	cr_expect(r.b.refused && !r.b.established && !r.b.ngot);
	cr_expect_eq(r.b.status, -ECONNRESET);
	end_all(&r);
}

Test(o2ib_conn, less_memory)
{
	struct rig r;

	rig_open(&r, 8);
	/* the second side has the smaller threshold, for a depth of 8 */
	r.a.fail_create = 3;
	rig_ask(&r);
	cr_expect_eq(r.a.conn->terms.depth, 6);
	cr_expect_eq(r.b.conn->terms.depth, 6);
	cr_expect_eq(r.a.qp->nrecvs, 14);
	end_all(&r);

	rig_open(&r, 8);
	r.b.fail_create = 5;
	rig_connect(&r);
	cr_expect_eq(r.b.conn->terms.depth, 4);
	cr_expect_eq(r.a.conn->terms.depth, 4, "the answer says so");
	cr_expect_eq(r.a.conn->credit.have, 4);
	cr_expect_eq(r.a.conn->credit.hiw, 2);
	cr_expect_eq(r.a.qp->nrecvs, 18, "posted before");
	end_all(&r);

	rig_open(&r, 4);
	r.a.fail_create = 100;
	rig_ask(&r);
	cr_expect(r.a.refused && r.a.gone);
	cr_expect_eq(r.a.status, -ENOMEM);
	rig_close(&r);

	rig_open(&r, 4);
	r.a.fail_reg = -ENOMEM;
	rig_ask(&r);
	cr_expect(r.a.refused);
	cr_expect_eq(r.a.status, -ENOMEM);
	end_all(&r);
}

Test(o2ib_conn, device_limit)
{
	struct rig r;

	rig_open(&r, 100);
	r.a.port.limits.max_qp_wr = 42;
	r.a.port.limits.max_sge = 2;
	rig_ask(&r);
	cr_expect_eq(r.a.conn->terms.depth, 20);
	cr_expect_eq(r.a.qp->conf.max_send_wr, 42);
	cr_expect_eq(r.a.qp->conf.max_send_sge, 2);
	end_all(&r);
}

static void refuse(struct rig *r, int reason, const struct ib_reject *reject)
{
	uint8_t full[IB_PRIVATE_REJECT_SIZE] = { 0 };

	rig_open(r, 8);
	rig_ask(r);
	if (reject)
		ib_reject_encode(reject, full);
	r->a.qp->error = true;
	ib_conn_on_rejected(&r->a.qp->qp, reason, full, sizeof(full));
	rig_run(r, 0);
	cr_expect(r->a.refused && !r->a.established);
	cr_expect_eq(r->a.refusal.cm_reason, reason);
}

Test(o2ib_conn, rejected)
{
	struct ib_reject reject = {
		.version = IB_VERSION_2,
		.reason = IB_REJECT_DEPTH,
		.stamp = 77,
		.params = { 4, 256, IB_MSG_SIZE_MAX },
	};
	struct rig r;

	refuse(&r, IB_CM_REJECT_CONSUMER, &reject);
	cr_expect_eq(r.a.status, -ECONNRESET);
	cr_expect(r.a.refusal.has_reject);
	cr_expect_eq(r.a.refusal.reject.reason, IB_REJECT_DEPTH);
	cr_expect_eq(r.a.refusal.reject.params.queue_depth, 4);
	end_all(&r);
	refuse(&r, IB_CM_REJECT_CONSUMER, NULL);
	cr_expect_eq(r.a.status, -ECONNRESET);
	cr_expect(!r.a.refusal.has_reject);
	end_all(&r);
	refuse(&r, IB_CM_REJECT_NO_LISTENER, NULL);
	cr_expect_eq(r.a.status, -ECONNREFUSED);
	end_all(&r);
	refuse(&r, IB_CM_REJECT_STALE, NULL);
	cr_expect_eq(r.a.status, -ECONNRESET);
	end_all(&r);
}

/* The answer to the request is not valid. */
Test(o2ib_conn, wrong_answer)
{
	uint8_t full[IB_PRIVATE_ACCEPT_SIZE] = { 0 };
	struct rig r;

	rig_open(&r, 8);
	rig_ask(&r);
	memcpy(full, r.b.qp->private, r.b.qp->private_len);
	full[0x30]++; /* a deeper queue than was asked for */
	ib_conn_on_established(&r.a.qp->qp, full, sizeof(full));
	rig_run(&r, 0);
	cr_expect(r.a.refused && !r.a.established && r.a.qp->error);
	cr_expect_eq(r.a.status, -EPROTO);
	end_all(&r);
}

Test(o2ib_conn, no_answer)
{
	struct rig r;

	rig_open(&r, 8);
	rig_ask(&r);
	rig_run(&r, 9 * S);
	cr_expect(!r.a.refused);
	rig_run(&r, 2 * S); /* a quarter of 40 s */
	cr_expect(r.a.refused);
	cr_expect_eq(r.a.status, -ENETDOWN);
	rig_run(&r, 30 * S);
	cr_expect(r.b.refused);
	cr_expect_eq(r.b.status, -ETIMEDOUT);
	end_all(&r);
}

Test(o2ib_conn, closed_at_once)
{
	struct ib_request want = { .depth = 8, .frags = 256 };
	struct rig r;

	/* before the address is resolved */
	rig_open(&r, 8);
	want.peer.nid = r.b.set.self.nid;
	cr_assert_eq(ib_conn_connect(&r.a.set, &want, &r.a, &r.a.conn), 0);
	ib_conn_close(r.a.conn, -ESHUTDOWN);
	ib_conn_on_resolved(&r.a.qp->qp);
	cr_expect(!r.a.refused, "in a turn of its own");
	rig_run(&r, 0);
	cr_expect(r.a.refused && r.a.gone);
	rig_close(&r);
	/* while the request waits for its answer */
	rig_open(&r, 8);
	rig_ask(&r);
	end_all(&r);
	cr_expect(r.a.refused && r.b.refused && r.a.gone && r.b.gone);
}

Test(o2ib_conn, cannot_post)
{
	struct rig r;

	rig_open(&r, 8);
	r.b.fail_post_recv = -EIO;
	rig_ask(&r);
	rig_run(&r, 0);
	cr_expect(r.b.refused);
	cr_expect_eq(r.b.status, -EIO);
	end_all(&r);

	rig_open(&r, 8);
	rig_connect(&r);
	r.a.fail_post_send = -EIO;
	cr_assert_not_null(rig_send(&r.a, 10, &r));
	cr_expect(!r.a.ndone && !r.a.closed, "not in the call");
	rig_run(&r, 0);
	cr_expect(r.a.closed);
	cr_expect_eq(r.a.status, -EIO);
	cr_expect_eq(r.a.done[0].cause, LNET_CAUSE_LOCAL_DROPPED);
	end_all(&r);

	/* The queue pair is in error before the LND is told that the connection
	 * has ended. */
	rig_open(&r, 8);
	rig_connect(&r);
	r.a.fail_post_send = -ENOTCONN;
	cr_assert_not_null(rig_send(&r.a, 10, &r));
	rig_run(&r, 0);
	cr_expect(r.a.closed);
	cr_expect_eq(r.a.status, -ECONNRESET);
	cr_expect_eq(r.a.done[0].cause, LNET_CAUSE_REMOTE_DROPPED);
	end_all(&r);

	rig_open(&r, 8);
	rig_connect(&r);
	cr_assert_not_null(rig_send(&r.a, 10, &r));
	r.b.fail_post_recv = -EIO;
	rig_carry(&r.a);
	rig_run(&r, 0);
	cr_expect(r.b.closed);
	cr_expect_eq(r.b.status, -EIO);
	end_all(&r);
}

/* ---- the end ---- */

enum how { PEER, SILENT, NOT_READY, DEADLINE, SELF, LINK, SHUTDOWN, FAILED };

static void bring_about(struct rig *r, enum how how)
{
	struct rig_side *a = &r->a;

	switch (how) {
	case PEER:
		ib_conn_on_disconnected(&a->qp->qp);
		break;
	case SILENT:
	case NOT_READY:
		a->qp->error = true;
		rig_complete(a, how == SILENT ? IB_WC_SILENT : IB_WC_NOT_READY);
		break;
	case DEADLINE:
		rig_run(r, 51 * S);
		break;
	case SELF:
		ib_conn_close(a->conn, -ENOMEM);
		break;
	case LINK:
		ib_conn_close(a->conn, -ENETDOWN);
		break;
	case SHUTDOWN:
		ib_conn_close(a->conn, -ESHUTDOWN);
		break;
	case FAILED:
		a->qp->error = true;
		ib_conn_on_failed(&a->qp->qp, -ENODEV);
		break;
	}
	rig_run(r, 0);
}

/* One transmit waits for its answer, one is posted, one is queued. */
Test(o2ib_conn, causes)
{
	static const struct {
		enum how how;
		int status, tx_status;
		enum ulnet_cause waiting, posted, queued;
	} cases[] = {
		{ PEER, 0, -ECONNRESET, LNET_CAUSE_REMOTE_ERROR,
		  LNET_CAUSE_REMOTE_ERROR, LNET_CAUSE_REMOTE_DROPPED },
		{ SILENT, -ETIMEDOUT, -ETIMEDOUT, LNET_CAUSE_NETWORK_TIMEOUT,
		  LNET_CAUSE_NETWORK_TIMEOUT, LNET_CAUSE_REMOTE_DROPPED },
		{ NOT_READY, -ECONNABORTED, -ECONNABORTED,
		  LNET_CAUSE_REMOTE_ERROR, LNET_CAUSE_REMOTE_DROPPED,
		  LNET_CAUSE_REMOTE_DROPPED },
		{ DEADLINE, -ETIMEDOUT, -ETIMEDOUT, LNET_CAUSE_REMOTE_TIMEOUT,
		  LNET_CAUSE_NETWORK_TIMEOUT, LNET_CAUSE_LOCAL_TIMEOUT },
		{ SELF, -ENOMEM, -ENOMEM, LNET_CAUSE_LOCAL_ERROR,
		  LNET_CAUSE_LOCAL_ERROR, LNET_CAUSE_LOCAL_DROPPED },
		{ LINK, -ENETDOWN, -ENETDOWN, LNET_CAUSE_LOCAL_ERROR,
		  LNET_CAUSE_LOCAL_ERROR, LNET_CAUSE_LOCAL_NO_ROUTE },
		{ SHUTDOWN, -ESHUTDOWN, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN,
		  LNET_CAUSE_SHUTDOWN, LNET_CAUSE_LOCAL_ABORTED },
		{ FAILED, -ENODEV, -ENODEV, LNET_CAUSE_LOCAL_ERROR,
		  LNET_CAUSE_LOCAL_ERROR, LNET_CAUSE_LOCAL_NO_ROUTE },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct ib_frag frag = { 0x1000, 5000 };
		const struct ib_sink sink = { 7, 1, &frag };
		struct ib_tx *tx;
		struct rig r;
		int get, posted, queued;
		enum ulnet_cause found[3] = { 0 };

		rig_open(&r, 8);
		r.a.conf.concurrent_sends = 1;
		rig_connect(&r);
		tx = ib_tx_get(r.a.conn);
		tx->user = &get;
		rig_header(ib_tx_header(tx), 2, 0);
		cr_assert_eq(ib_send_get(tx, &sink), 0);
		rig_carry(&r.a);
		rig_complete(&r.a, IB_WC_OK);
		rig_send(&r.a, 1, &posted);
		rig_send(&r.a, 2, &queued);
		cr_assert_eq(r.a.qp->ncalls, 1);
		bring_about(&r, cases[i].how);
		cr_expect(r.a.closed && r.a.qp->error, "case %u", i);
		cr_expect_eq(r.a.status, cases[i].status, "case %u: %d", i,
			     r.a.status);
		cr_expect_eq(r.a.done[0].user, &queued, "that is the first");
		rig_flush(&r.a);
		cr_assert_eq(r.a.ndone, 3, "case %u", i);
		for (unsigned int k = 0; k < 3; k++) {
			cr_expect_eq(r.a.done[k].status, cases[i].tx_status,
				     "case %u: %d", i, r.a.done[k].status);
			found[r.a.done[k].user == &get	    ? 0
			      : r.a.done[k].user == &posted ? 1
							    : 2] =
				r.a.done[k].cause;
		}
		cr_expect_eq(found[0], cases[i].waiting, "case %u: %d", i,
			     found[0]);
		cr_expect_eq(found[1], cases[i].posted, "case %u: %d", i,
			     found[1]);
		cr_expect_eq(found[2], cases[i].queued, "case %u: %d", i,
			     found[2]);
		cr_expect(r.a.gone);
		ib_rx_end(r.b.got[0].rx, 0);
		end_all(&r);
	}
}

/* What the device reports as delivered counts as delivered, even if the
 * connection has ended. Queued transmits are returned in reverse order. */
Test(o2ib_conn, late_completion)
{
	struct rig r;
	char who[6];

	rig_open(&r, 4);
	r.a.conf.concurrent_sends = 2;
	rig_connect(&r);
	for (int i = 0; i < 6; i++)
		rig_send(&r.a, 1, &who[i]);
	ib_conn_close(r.a.conn, -ENOMEM);
	cr_expect_eq(r.a.told, 1, "nothing in the call");
	cr_expect_null(ib_tx_get(r.a.conn));
	rig_run(&r, 0);
	cr_assert_eq(r.a.ndone, 4);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(r.a.done[i].user, &who[5 - i]);
	cr_expect_lt(r.a.closed, r.a.told);
	rig_complete(&r.a, IB_WC_OK);
	cr_assert_eq(r.a.ndone, 5);
	cr_expect_eq(r.a.done[4].status, 0);
	rig_flush(&r.a);
	cr_assert_eq(r.a.ndone, 6);
	cr_expect_eq(r.a.done[5].status, -ENOMEM);
	cr_expect_eq(r.a.done[5].cause, LNET_CAUSE_LOCAL_ERROR);
	end_all(&r);
}

/* All work requests are flushed, and no event says why. */
Test(o2ib_conn, flushed)
{
	struct rig r;

	rig_open(&r, 4);
	rig_connect(&r);
	r.a.qp->error = true;
	rig_flush(&r.a);
	rig_run(&r, 0);
	cr_expect(r.a.closed && r.a.gone);
	cr_expect_eq(r.a.status, -ECONNRESET);
	end_all(&r);
	/* Receives are flushed first; the SEND's status is the reason. */
	rig_open(&r, 4);
	rig_connect(&r);
	rig_send(&r.a, 1, NULL);
	r.a.qp->error = true;
	while (r.a.qp->nrecvs) {
		r.a.qp->nrecvs--;
		ib_conn_on_received(&r.a.qp->qp,
				    r.a.qp->recvs[r.a.qp->first_recv++].cookie,
				    0, IB_WC_FLUSHED);
	}
	rig_run(&r, 0);
	cr_expect(!r.a.closed);
	rig_complete(&r.a, IB_WC_SILENT);
	rig_run(&r, 0);
	cr_expect(r.a.gone);
	cr_expect_eq(r.a.status, -ETIMEDOUT);
	end_all(&r);
}

/* A message that the user has not answered outlives the connection. */
Test(o2ib_conn, held_message)
{
	struct rig r;

	rig_open(&r, 4);
	r.b.take = false;
	rig_connect(&r);
	rig_send(&r.a, 9, NULL);
	rig_settle(&r);
	cr_assert_eq(r.b.ngot, 1);
	end(&r, &r.b);
	cr_expect(r.b.gone);
	cr_expect_eq(r.b.mrs, r.b.pool.total ? 1 : 0);
	cr_expect_eq(r.b.got[0].rx->msg.payload[8], 'x');
	ib_rx_end(r.b.got[0].rx, 0);
	end_all(&r);
}

/* ---- time ---- */

Test(o2ib_conn, keepalive)
{
	struct rig r;
	struct ib_msg msg;
	const char *why;

	rig_open(&r, 8);
	r.a.conf.keepalive = 10 * S;
	rig_connect(&r);
	rig_run(&r, 9 * S);
	cr_expect_eq(r.a.qp->ncalls, 0);
	rig_run(&r, 2 * S);
	cr_assert_eq(r.a.qp->ncalls, 1);
	cr_assert_eq(
		ib_msg_decode(rig_last(&r.a)->bytes, IB_HDR_SIZE, &msg, &why),
		0);
	cr_expect_eq(msg.type, IB_MSG_NOOP);
	rig_settle(&r);
	cr_expect_eq(r.a.told, 1, "the user does not know");
	rig_run(&r, 8 * S);
	cr_expect_eq(r.a.qp->first_call + r.a.qp->ncalls, 1);
	rig_send(&r.a, 1, NULL);
	rig_settle(&r);
	rig_run(&r, 9 * S);
	cr_expect_eq(r.a.qp->first_call + r.a.qp->ncalls, 2,
		     "the message was one");
	rig_run(&r, 2 * S);
	cr_expect_eq(r.a.qp->first_call + r.a.qp->ncalls, 3);
	/* The peer never answers the request. */
	rig_run(&r, 51 * S);
	cr_expect(r.a.closed);
	end_all(&r);
}

Test(o2ib_conn, deadlines)
{
	static const struct {
		bool put;
		uint64_t time, before, after; /* s */
	} cases[] = {
		{ false, 0, 39, 51 },
		{ true, 0, 19, 31 }, /* half of it, for the PUT_REQ */
		{ false, 20, 19, 31 },
		{ true, 20, 9, 21 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ib_sge source = { .length = 5000 };
		struct ib_tx *tx;
		struct rig r;

		rig_open(&r, 8);
		rig_connect(&r);
		tx = ib_tx_get(r.a.conn);
		if (cases[i].time)
			tx->time = cases[i].time * S;
		if (cases[i].put)
			ib_send_put(tx, &source, 5000);
		else
			ib_send_immediate(tx, 10);
		rig_run(&r, cases[i].before * S);
		cr_expect(!r.a.closed, "case %u", i);
		rig_run(&r, (cases[i].after - cases[i].before) * S);
		cr_expect(r.a.closed, "case %u", i);
		end_all(&r);
	}
}

/* ---- credits ---- */

/* If only one side sends, the other one returns credits by NOOPs. */
Test(o2ib_conn, noop)
{
	struct rig r;

	rig_open(&r, 4);
	rig_connect(&r);
	for (int i = 0; i < 40; i++)
		cr_assert_not_null(rig_send(&r.a, 1, NULL));
	cr_expect_eq(r.a.qp->ncalls, 4, "as many as there are credits");
	rig_settle(&r);
	cr_expect_eq(r.a.ndone, 40);
	cr_expect_eq(r.b.ngot, 40);
	cr_expect_eq(r.a.conn->credit.have + r.b.conn->credit.owe, 4);
	end_all(&r);
}

/* A message waits for a credit, and no work request is posted: a NOOP tests
 * whether the peer is there. */
static void without_credits(uint64_t silence, uint64_t asks)
{
	const uint64_t ms = NSEC_PER_MSEC;
	struct rig r;

	rig_open(&r, 4);
	r.a.conf.silence.min = silence;
	r.b.take = false;
	rig_connect(&r);
	for (unsigned int i = 0; i < 5; i++)
		rig_send(&r.a, 1, NULL);
	for (unsigned int i = 0; i < 4; i++) {
		rig_carry(&r.a);
		rig_complete(&r.a, IB_WC_OK);
	}
	for (unsigned int i = 0; i < 2; i++) {
		rig_run(&r, asks - 10 * ms);
		cr_expect_eq(r.a.qp->ncalls, 0, "not yet");
		rig_run(&r, 20 * ms);
		cr_assert_eq(r.a.qp->ncalls, 1);
		cr_expect_eq(rig_last(&r.a)->bytes[6], IB_MSG_NOOP);
		if (!i)
			rig_complete(&r.a, IB_WC_OK);
	}
	rig_complete(&r.a, IB_WC_SILENT);
	rig_run(&r, 0);
	cr_expect(r.a.closed);
	cr_expect_eq(r.a.status, -ETIMEDOUT);
	/* Answering one message shows the next one. */
	for (unsigned int i = 0; i < r.b.ngot; i++) {
		ib_rx_end(r.b.got[i].rx, 0);
		rig_run(&r, 0);
	}
	end_all(&r);
}

Test(o2ib_conn, without_credits)
{
	without_credits(300 * NSEC_PER_MSEC, 300 * NSEC_PER_MSEC);
	/* a quarter of a message's time-out */
	without_credits(0, 10 * S);
}

/* Nothing is acknowledged: the user is told once, again when more is sent, and
 * not any more after an acknowledgement. */
Test(o2ib_conn, silence)
{
	const uint64_t ms = NSEC_PER_MSEC;
	struct rig r;

	rig_open(&r, 8);
	r.a.conf.silence.min = 300 * ms;
	rig_connect(&r);
	rig_run(&r, 5000 * ms);
	cr_expect_eq(r.a.silent, 0, "nothing was sent");
	rig_send(&r.a, 1, NULL);
	rig_run(&r, 290 * ms);
	cr_expect_eq(r.a.silent, 0);
	rig_run(&r, 200 * ms);
	cr_expect_eq(r.a.silent, 1);
	cr_expect_geq(r.a.silent_ns, 300 * ms);
	rig_run(&r, 1000 * ms);
	cr_expect_eq(r.a.silent, 1, "nobody has asked again");
	rig_send(&r.a, 1, NULL);
	rig_run(&r, 200 * ms);
	cr_expect_eq(r.a.silent, 2);
	cr_expect_eq(r.a.closed, 0, "nothing ends by that");
	rig_settle(&r);
	rig_run(&r, 1000 * ms);
	cr_expect_eq(r.a.silent, 2);
	/* A slow acknowledgement raises the time that the next one may take. */
	rig_send(&r.a, 1, NULL);
	rig_run(&r, 1500 * ms);
	cr_expect_eq(r.a.silent, 2);
	rig_settle(&r);
	end_all(&r);
}

/* The user is told again if a message that waited for credits is sent later. */
Test(o2ib_conn, silence_after_waiting)
{
	const uint64_t ms = NSEC_PER_MSEC;
	struct rig r;

	rig_open(&r, 4);
	r.a.conf.silence.min = 300 * ms;
	rig_connect(&r);
	for (int i = 0; i < 5; i++)
		rig_send(&r.a, 1, NULL);
	for (int i = 0; i < 4; i++) {
		rig_carry(&r.a);
		rig_complete(&r.a, IB_WC_OK);
	}
	rig_run(&r, 200 * ms);
	cr_assert_eq(r.a.qp->ncalls, 0);
	rig_carry(&r.b);
	cr_assert_eq(r.a.qp->ncalls, 1);
	rig_run(&r, 290 * ms);
	cr_expect_eq(r.a.silent, 0);
	rig_run(&r, 300 * ms);
	cr_expect_eq(r.a.silent, 1);
	end_all(&r);
}

/* The queues have the sizes that the calculator computes. */
Test(o2ib_conn, queues)
{
	static const uint32_t depths[] = { 8, 20, 128 };
	static struct ulnet_o2ib_result result;

	for (unsigned int i = 0; i < ARRAY_SIZE(depths); i++) {
		struct ulnet_o2ib_pair pair = { .npeers = 1 };
		const struct ulnet_o2ib_resources *res = &result.res[0];
		struct rig r;

		for (unsigned int k = 0; k < 2; k++) {
			lnet_o2ib_conf_init(&pair.node[k]);
			pair.node[k].model = LNET_O2IB_USER;
			pair.node[k].peer_credits = depths[i];
			pair.node[k].credits = 256;
		}
		cr_assert_eq(lnet_o2ib_calculate(&pair, &result, NULL), 0);
		rig_open(&r, depths[i]);
		rig_connect(&r);
		cr_expect_eq(result.conn.depth, depths[i]);
		cr_expect_eq(r.a.qp->conf.max_send_wr, res->max_send_wr);
		cr_expect_eq(r.a.qp->conf.max_recv_wr, res->max_recv_wr);
		end_all(&r);
	}
}

Test(o2ib_conn, concurrent_sends)
{
	struct rig r;

	rig_open(&r, 8);
	r.a.conf.concurrent_sends = 3;
	rig_connect(&r);
	for (int i = 0; i < 8; i++)
		rig_send(&r.a, 1, NULL);
	cr_expect_eq(r.a.qp->ncalls, 3);
	rig_carry(&r.a);
	rig_complete(&r.a, IB_WC_OK);
	cr_expect_eq(r.a.qp->ncalls, 3);
	cr_expect_eq(r.a.ndone, 1);
	rig_settle(&r);
	cr_expect_eq(r.a.ndone, 8);
	end_all(&r);
}

Test(o2ib_conn, no_transmit)
{
	struct rig r;
	struct ib_tx *tx;

	rig_open(&r, 8);
	r.a.pool.max = 2;
	rig_connect(&r);
	tx = ib_tx_get(r.a.conn);
	cr_assert_not_null(tx);
	cr_assert_not_null(rig_send(&r.a, 1, NULL));
	cr_expect_null(ib_tx_get(r.a.conn));
	cr_expect_eq(r.a.pool.refused, 1);
	list_del(&tx->all);
	ib_tx_put(tx);
	cr_assert_not_null(rig_send(&r.a, 1, NULL));
	rig_settle(&r);
	cr_expect_eq(r.a.ndone, 2);
	end_all(&r);
}

/* ---- one after the other ---- */

Test(o2ib_conn, blocking)
{
	struct rig r;

	rig_open(&r, 8);
	r.b.take = false;
	rig_connect(&r);
	for (uint32_t i = 1; i <= 5; i++)
		rig_send(&r.a, i, NULL);
	rig_settle(&r);
	cr_assert_eq(r.b.ngot, 1, "the others wait");
	ib_rx_end(r.b.got[0].rx, 0);
	cr_expect_eq(r.b.ngot, 1, "not in the call");
	rig_send(&r.a, 6, NULL);
	rig_carry(&r.a);
	cr_expect_eq(r.b.ngot, 1, "it does not overtake");
	rig_settle(&r);
	cr_assert_eq(r.b.ngot, 2);
	cr_assert_eq(ib_rx_bounce(r.b.got[1].rx), 0);
	/* a message that was delayed may be held later */
	cr_assert_eq(ib_rx_bounce(r.b.got[1].rx), 0);
	rig_settle(&r);
	cr_assert_eq(r.b.ngot, 3);
	ib_rx_end(r.b.got[1].rx, 0);
	rig_settle(&r);
	cr_assert_eq(r.b.ngot, 3, "there is one that stands still");
	r.b.take = true;
	ib_rx_end(r.b.got[2].rx, 0);
	rig_settle(&r);
	cr_assert_eq(r.b.ngot, 6);
	for (uint32_t i = 0; i < 6; i++)
		cr_expect_eq(r.b.got[i].payload_len, i + 1);
	end_all(&r);
}

/* All messages are moved to bounce buffers: the peer has its credits back, and
 * the messages stay what they are. */
Test(o2ib_conn, all_bounced)
{
	struct rig r;

	rig_open(&r, 2);
	r.b.take = false;
	rig_connect(&r);
	for (unsigned int round = 0; round < 2; round++) {
		r.b.ngot = 0;
		for (uint32_t i = 0; i < 20; i++) {
			rig_send(&r.a, i, NULL);
			rig_settle(&r);
			cr_assert_eq(r.b.ngot, i + 1);
			cr_assert_eq(ib_rx_bounce(r.b.got[i].rx), 0);
		}
		rig_settle(&r);
		if (round)
			end(&r, &r.b);
		for (uint32_t i = 0; i < 20; i++) {
			const struct ib_msg *msg = &r.b.got[i].rx->msg;

			cr_expect_eq(msg->payload_len, i);
			for (uint32_t k = 0; k < i; k++)
				cr_expect_eq(msg->payload[k], 'x');
			ib_rx_end(r.b.got[i].rx, 0);
		}
		if (round)
			break;
		rig_settle(&r);
		cr_expect_eq(r.b.qp->nrecvs, 6);
		cr_expect_eq(r.a.conn->credit.have + r.b.conn->credit.owe, 2);
	}
	end_all(&r);
}

/* A message that another one blocks when the connection ends is never shown. */
Test(o2ib_conn, bounced_in_vain)
{
	struct rig r;

	rig_open(&r, 8);
	r.b.take = false;
	rig_connect(&r);
	for (uint32_t i = 1; i <= 5; i++)
		rig_send(&r.a, i, NULL);
	rig_settle(&r);
	ib_conn_close(r.b.conn, -ENOMEM);
	ib_rx_end(r.b.got[0].rx, 0);
	rig_run(&r, 0);
	cr_expect_eq(r.b.ngot, 1);
	end_all(&r);
}

/* Of a dead connection only messages that the user holds are kept, perhaps one
 * of many. */
Test(o2ib_conn, held_for_long)
{
	const struct ib_msg *msg;
	struct rig r;

	rig_open(&r, 8);
	r.b.take = false;
	rig_connect(&r);
	rig_send(&r.a, 100, NULL);
	rig_settle(&r);
	cr_assert_not_null(r.b.conn->rx_bufs);
	end(&r, &r.b);
	cr_expect_null(r.b.got[0].rx->conn->rx_bufs);
	msg = &r.b.got[0].rx->msg;
	cr_assert_eq(msg->payload_len, 100);
	for (unsigned int i = 0; i < 100; i++)
		cr_expect_eq(msg->payload[i], 'x');
	cr_expect_eq(lnet_hdr_payload(msg->lnet_hdr, LNET_HDR_SIZE), 100);
	ib_rx_end(r.b.got[0].rx, 0);
	end_all(&r);
}

/* The same for an ib_rx without receive buffer: its message was bounced. */
Test(o2ib_conn, held_in_the_receive_of_another)
{
	struct rig r;

	rig_open(&r, 2);
	r.b.take = false;
	rig_connect(&r);
	/* every buffer belongs to another ib_rx than at first */
	for (uint32_t i = 0; i < 20; i++) {
		rig_send(&r.a, i, NULL);
		rig_settle(&r);
		cr_assert_eq(ib_rx_bounce(r.b.got[i].rx), 0);
	}
	rig_send(&r.a, 50, NULL);
	rig_settle(&r);
	cr_assert_eq(r.b.ngot, 21);
	end(&r, &r.b);
	cr_expect_null(r.b.got[20].rx->conn->rx_bufs);
	cr_assert_not_null(r.b.got[20].rx->bounce);
	for (unsigned int i = 0; i < 50; i++)
		cr_expect_eq(r.b.got[20].rx->msg.payload[i], 'x');
	for (uint32_t i = 0; i < 21; i++)
		ib_rx_end(r.b.got[i].rx, 0);
	end_all(&r);
}
