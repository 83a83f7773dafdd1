/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulated backend keeps the contract of lnd/o2iblnd/verbs.h, sentence by
 * sentence: how queue pairs end, and the faults that end them. */
#include <signal.h>

#include "tests/unit/o2iblnd/simqp_rig.h"

/* ---- ends ---- */

Test(ends, disconnect_flushes)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	simqp_silence(r->fabric, rig_nid(r, A), rig_nid(r, B), MSEC);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(conn_send(p[A], 0, 8, i), 0);
	qp_rig_run(r, 2 * MSEC);
	conn_disconnect(p[A]);
	conn_disconnect(p[A]);
	cr_assert_eq(p[A]->nwcs, 0);
	qp_rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 3, IB_WC_FLUSHED);
	conn_expect(p[A], true, 0, 4, IB_WC_FLUSHED);
	cr_assert_eq(p[A]->disconnected + p[A]->failed, 0);
	/* The peer is told; its work requests are flushed when it disconnects,
	 * too. */
	cr_assert_eq(p[B]->disconnected, 1);
	cr_assert_eq(p[B]->nwcs, 0);
	cr_assert_eq(conn_send(p[B], 0, 8, 9), 0);
	conn_disconnect(p[B]);
	cr_assert_eq(conn_send(p[B], 0, 8, 10), 0);
	cr_assert_eq(conn_recv(p[B], 0, 8, 4), 0);
	qp_rig_run(r, NSEC_PER_SEC);
	conn_expect(p[B], false, 9, 2, IB_WC_FLUSHED);
	conn_expect(p[B], true, 0, 5, IB_WC_FLUSHED);
	cr_assert_eq(p[A]->disconnected, 0);
	conn_disconnect(p[A]);
	qp_rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(p[A]->nwcs, 7);
	rig_free(r);
}

static void disconnect_in_event(struct conn *c, const struct wc *wc)
{
	if (!wc && c->disconnected)
		conn_disconnect(c);
}

/* Queue pairs are destroyed in their last event. */
Test(ends, destroyed_in_an_event)
{
	const struct simqp_conf conf = { .cq_ns = MSEC };
	struct rig *r = rig_new(1, &conf);
	struct simqp_usage u;
	struct conn *p[2];

	rig_pair(r, p);
	p[A]->destroy_flushed = p[B]->destroy_flushed = true;
	p[B]->hook = disconnect_in_event;
	cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
	conn_disconnect(p[A]);
	qp_rig_run(r, NSEC_PER_SEC);
	cr_assert(!p[A]->qp && !p[B]->qp);
	simqp_usage(r->fabric, rig_nid(r, B), &u);
	cr_assert_eq(u.qps, 0);
	rig_free(r);
}

/* A queue pair is destroyed while its peer is connected. */
Test(ends, destroyed_undisconnected)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	r->receives = 0;
	rig_pair(r, p);
	conn_destroy(p[A]);
	qp_rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(p[B]->disconnected, 1);
	rig_free(r);
}

Test(ends, destroyed_too_early, .signal = SIGABRT)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	conn_disconnect(p[A]);
	conn_destroy(p[A]);
}

Test(ends, closed_too_early, .signal = SIGABRT)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	r->v->close(r->nodes[A].port);
}

Test(ends, freed_too_early, .signal = SIGABRT)
{
	struct rig *r = rig_new(1, NULL);

	qp_rig_open(r, A);
	simqp_fabric_free(r->fabric);
}

/* In error nothing is received, even without a disconnection. */
Test(ends, error_takes_nothing)
{
	struct rig *r = rig_new(1, NULL);
	struct ib_sge bad = { r, 8, 0 };
	struct ib_wr wr = { .type = IB_WR_SEND, .sge = &bad, .nsge = 1 };
	struct conn *p[2];

	rig_pair(r, p);
	conn_fill(p[A], 1);
	p[B]->sends++;
	cr_assert_eq(CALL(r, r->v->post_send(p[B]->qp, &wr, 1)), 0);
	cr_assert_eq(conn_write(p[A], p[B]->in, p[B]->in_mr->rkey, 0, RING, 0),
		     0);
	qp_rig_run(r, 20 * NSEC_PER_SEC);
	conn_expect(p[B], false, 0, 1, IB_WC_LOCAL_ERROR);
	conn_expect(p[B], true, 0, 4, IB_WC_FLUSHED);
	conn_expect(p[A], false, 0, 1, IB_WC_SILENT);
	cr_assert(rig_is_filled(p[B]->in, RING, 0));
	rig_free(r);
}

/* Silence in either direction, short or long. */
Test(ends, silence)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct rig *r = rig_new(i, NULL);
		unsigned int from = i % 2 ? B : A;
		bool is_long = i / 2;
		uint64_t begun;
		struct conn *p[2];

		rig_pair(r, p);
		begun = env_sim_now(r->world);
		simqp_silence(r->fabric, rig_nid(r, from),
			      rig_nid(r, from == A ? B : A),
			      is_long ? TIME_NEVER : NSEC_PER_SEC);
		cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
		cr_assert_eq(conn_send(p[A], 0, 8, 1), 0);
		qp_rig_run(r, 20 * NSEC_PER_SEC);
		/* Data arrives once, however often it is sent. */
		cr_assert_eq(conn_count(p[B], true, IB_WC_OK),
			     is_long && from == A ? 0 : 2);
		if (is_long) { /* 6 times 500 ms */
			cr_assert_eq(conn_sent(p[A], 0)->status, IB_WC_SILENT);
			cr_assert_eq(conn_sent(p[A], 1)->status, IB_WC_FLUSHED);
			conn_expect(p[A], true, 0, 4, IB_WC_FLUSHED);
			cr_assert_eq((p[A]->at - begun) / MSEC, 3000);
		} else {
			conn_expect(p[A], false, 0, 2, IB_WC_OK);
		}
		rig_free(r);
	}
}

/* Silence can be ended. */
Test(ends, silence_taken_back)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	simqp_silence(r->fabric, rig_nid(r, A), &LNET_NID_ANY, TIME_NEVER);
	cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
	qp_rig_run(r, MSEC);
	simqp_silence(r->fabric, rig_nid(r, A), &LNET_NID_ANY, 0);
	qp_rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 1, IB_WC_OK);
	rig_free(r);
}

Test(ends, lost_packets)
{
	const struct simqp_link link = { .latency = MSEC,
					 .jitter = MSEC,
					 .loss = SIMQP_ALWAYS / 5 };
	struct rig *r = rig_new(8, NULL);
	struct simqp_stats stats;
	struct conn *p[2];

	r->receives = 16;
	rig_pair(r, p);
	simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
	for (unsigned int i = 0; i < 16; i++) {
		p[A]->out[i] = (uint8_t)i;
		cr_assert_eq(conn_send(p[A], i, 1, i), 0);
	}
	qp_rig_run(r, 60 * NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 16, IB_WC_OK);
	conn_expect(p[B], true, 0, 16, IB_WC_OK);
	for (unsigned int i = 0; i < 16; i++)
		cr_assert_eq(p[B]->in[64 * i], i);
	simqp_stats(r->fabric, &stats);
	cr_assert_gt(stats.lost, 0);
	cr_assert_gt(stats.resent, 0);
	rig_free(r);
}

Test(ends, cut)
{
	const struct simqp_link link = { .latency = 10 * MSEC };
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2], *waits;

	rig_pair(r, p);
	simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
	waits = rig_connect_to(r, A, 1, rig_nid(r, B));
	cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
	qp_rig_run(r, 5 * MSEC);
	simqp_cut(r->fabric, rig_nid(r, B), &LNET_NID_ANY);
	cr_assert_eq(p[A]->failed + p[B]->failed, 0);
	qp_rig_run(r, NSEC_PER_SEC);
	for (unsigned int i = A; i <= B; i++) {
		cr_assert_eq(p[i]->failed, 1);
		cr_assert_eq(p[i]->status, -EIO);
		conn_expect(p[i], true, 0, 4, IB_WC_FLUSHED);
		cr_assert_eq(p[i]->disconnected, 0);
	}
	conn_expect(p[A], false, 0, 1, IB_WC_FLUSHED);
	cr_assert_eq(waits->failed, 1);
	cr_assert_eq(waits->status, -ENOTCONN);
	rig_free(r);
}

/* simqp_link.wc_ppm for a SEND, and for a WRITE with the SEND behind it. */
Test(ends, by_fault)
{
	for (unsigned int i = 0; i < 2 * IB_WC_STATUSES; i++) {
		enum ib_wc_status end = i / 2;
		struct simqp_link link = { 0 };
		struct rig *r = rig_new(i, NULL);
		enum ib_wc_status recv = IB_WC_FLUSHED;
		bool write = i % 2;
		struct conn *p[2];

		rig_pair(r, p);
		link.wc_ppm[end] = SIMQP_ALWAYS;
		simqp_link_set(r->fabric, rig_nid(r, A), rig_nid(r, B), &link);
		if (write)
			cr_assert_eq(conn_write(p[A], p[B]->in,
						p[B]->in_mr->rkey, 0, 8, 0),
				     0);
		else
			cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
		qp_rig_run(r, 20 * NSEC_PER_SEC);
		conn_expect(p[A], false, 0, 1, end);
		cr_assert_eq(p[A]->failed, end == IB_WC_FLUSHED);
		cr_assert_eq(p[B]->failed,
			     end == IB_WC_REMOTE_ACCESS ||
				     (end == IB_WC_REMOTE_ERROR && write));
		if (end == IB_WC_OK)
			recv = IB_WC_OK;
		if (end == IB_WC_REMOTE_ERROR && !write)
			recv = IB_WC_LOCAL_ERROR;
		if (p[B]->nwcs && end != IB_WC_SILENT && end != IB_WC_FLUSHED)
			cr_assert_eq(p[B]->wcs[0].status, recv);
		if (end >= IB_WC_NOT_READY && end <= IB_WC_REMOTE_ERROR)
			cr_assert_eq(p[B]->nwcs, 4, "both are in error");
		rig_free(r);
	}
}

/* SENDs that find no receive although there is one. */
Test(ends, rnr_by_fault)
{
	const struct simqp_link link = { .rnr = SIMQP_ALWAYS };
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	simqp_link_set(r->fabric, rig_nid(r, A), rig_nid(r, B), &link);
	cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
	qp_rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 1, IB_WC_NOT_READY);
	conn_expect(p[B], true, 0, 4, IB_WC_FLUSHED);
	rig_free(r);
}
