/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulated backend keeps the contract of lnd/o2iblnd/verbs.h, sentence by
 * sentence: data, memory, and faults of data. */
#include "tests/unit/o2iblnd/simqp_rig.h"

Test(verbs, status_names)
{
	for (unsigned int i = 0; i < IB_WC_STATUSES; i++) {
		cr_assert(*ib_wc_status_name(i));
		for (unsigned int k = 0; k < i; k++)
			cr_assert(strcmp(ib_wc_status_name(i),
					 ib_wc_status_name(k)) != 0);
	}
	cr_assert_str_eq(ib_wc_status_name(IB_WC_STATUSES), "unknown");
}

/* ---- data ---- */

Test(data, sends_and_writes)
{
	const struct simqp_link link = { .latency = MSEC,
					 .bandwidth = 1000000 };
	struct rig *r = rig_new(1, NULL);
	struct ib_sge sges[2];
	struct ib_wr wr = { .type = IB_WR_SEND, .sge = sges, .nsge = 2 };
	struct simqp_stats stats;
	struct conn *p[2];
	uint64_t begun;

	rig_pair(r, p);
	simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
	for (unsigned int i = 0; i < RING; i++)
		p[A]->out[i] = (uint8_t)i;
	begun = env_sim_now(r->world);
	/* 3000 bytes take 3 ms; two entries; no bytes. */
	cr_assert_eq(conn_write(p[A], p[B]->in + 1000, p[B]->in_mr->rkey, 7,
				3000, 0),
		     0);
	sges[0] = conn_sge(p[A], 20, 3);
	sges[1] = conn_sge(p[A], 99, 5);
	wr.cookie = (void *)1;
	p[A]->sends++;
	cr_assert_eq(CALL(r, r->v->post_send(p[A]->qp, &wr, 1)), 0);
	cr_assert_eq(conn_send(p[A], 0, 0, 2), 0);
	qp_rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 3, IB_WC_OK);
	conn_expect(p[B], true, 0, 3, IB_WC_OK);
	cr_assert_eq(p[B]->wcs[0].length, 8);
	cr_assert_eq(p[B]->wcs[1].length, 8);
	cr_assert_eq(p[B]->wcs[2].length, 0);
	cr_assert_arr_eq(p[B]->in + 1000, p[A]->out + 7, 3000);
	cr_assert_arr_eq(p[B]->in + 64, p[A]->out + 20, 3);
	cr_assert_arr_eq(p[B]->in + 67, p[A]->out + 99, 5);
	cr_assert(rig_is_filled(p[B]->in + 72, 900, 0));
	cr_assert_geq(p[A]->at - begun, 5 * MSEC);
	cr_assert_lt(p[A]->at - begun, 6 * MSEC);
	simqp_stats(r->fabric, &stats);
	cr_assert_eq(stats.sends, 3);
	cr_assert_eq(stats.writes, 1);
	cr_assert_eq(stats.bytes, 3016);
	cr_assert_eq(stats.connected, 1);
	rig_free(r);
}

/* Memory is read until the SEND has completed, unless it is inlined. */
Test(data, read_while_it_travels)
{
	const struct simqp_link link = { .latency = 10 * MSEC };

	for (unsigned int inlined = 0; inlined < 2; inlined++) {
		struct rig *r = rig_new(1, NULL);
		struct ib_sge sge;
		struct ib_wr wr = { .type = IB_WR_SEND,
				    .sge = &sge,
				    .nsge = 1,
				    .inlined = inlined };
		struct conn *p[2];

		rig_pair(r, p);
		simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
		conn_fill(p[A], 1);
		sge = conn_sge(p[A], 0, 64);
		if (inlined)
			sge.lkey = 0; /* not accessed */
		p[A]->sends++;
		cr_assert_eq(CALL(r, r->v->post_send(p[A]->qp, &wr, 1)), 0);
		conn_fill(p[A], 2);
		qp_rig_run(r, NSEC_PER_SEC);
		cr_assert(rig_is_filled(p[B]->in, 64, inlined ? 1 : 2));
		rig_free(r);
	}
}

/* Packets under way when their queue pair fails may still arrive, unchanged. */
Test(data, flushed_and_yet_received)
{
	const struct simqp_link link = { .latency = 10 * MSEC };
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
	conn_fill(p[A], 1);
	cr_assert_eq(conn_send(p[A], 0, 64, 0), 0);
	conn_disconnect(p[A]);
	conn_fill(p[A], 2);
	qp_rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 1, IB_WC_FLUSHED);
	cr_assert_eq(p[B]->disconnected, 1);
	conn_expect(p[B], true, 0, 1, IB_WC_OK);
	cr_assert(rig_is_filled(p[B]->in, 64, 1));
	rig_free(r);
}

static void post_late(struct conn *c, const struct wc *wc)
{
	(void)wc;
	cr_assert_eq(conn_recv(c, 0, 64, 0), 0);
}

Test(data, not_ready)
{
	for (unsigned int late = 0; late < 3; late++) {
		struct rig *r = rig_new(1, NULL);
		struct simqp_stats stats;
		struct conn *p[2];

		r->receives = 0;
		r->conf.rnr_retry_count = late == 2 ? 7 : 3;
		rig_pair(r, p);
		cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
		cr_assert_eq(conn_send(p[A], 0, 8, 1), 0);
		qp_rig_run(r, 2 * MSEC + MSEC / 2);
		cr_assert_eq(p[A]->nwcs, 0);
		if (late == 1)
			post_late(p[B], NULL);
		qp_rig_run(r, 100 * MSEC);
		simqp_stats(r->fabric, &stats);
		if (late == 2) { /* without limit */
			cr_assert_eq(p[A]->nwcs, 0);
			cr_assert_gt(stats.not_ready, 90);
			post_late(p[B], NULL);
			post_late(p[B], NULL);
			qp_rig_run(r, 2 * MSEC);
			conn_expect(p[A], false, 0, 2, IB_WC_OK);
		} else if (late == 1) { /* one arrives in time */
			cr_assert_eq(p[A]->nwcs, 2);
			cr_assert_eq(conn_sent(p[A], 0)->status, IB_WC_OK);
			cr_assert_eq(conn_sent(p[A], 1)->status,
				     IB_WC_NOT_READY);
		} else {
			cr_assert_eq(conn_sent(p[A], 0)->status,
				     IB_WC_NOT_READY);
			cr_assert_eq(conn_sent(p[A], 1)->status, IB_WC_FLUSHED);
			cr_assert_eq(p[A]->nwcs, 2);
			/* both are in error */
			post_late(p[B], NULL);
			cr_assert_eq(conn_send(p[B], 0, 8, 9), 0);
			cr_assert_eq(conn_send(p[A], 0, 8, 2), 0);
			qp_rig_run(r, MSEC);
			conn_expect(p[B], true, 0, 1, IB_WC_FLUSHED);
			conn_expect(p[B], false, 9, 1, IB_WC_FLUSHED);
			cr_assert_eq(conn_sent(p[A], 2)->status, IB_WC_FLUSHED);
		}
		rig_free(r);
	}
}

enum wrong {
	RIGHT,
	LAST_BYTE,
	BEYOND,
	BEFORE,
	WRAPPED,
	NO_KEY,
	LOCAL_KEY,
	NOT_REMOTE,
	OLD_KEY,
	OTHERS_KEY,
	WRONGS
};

Test(data, writes_refused)
{
	for (unsigned int w = 0; w < WRONGS; w++) {
		struct rig *r = rig_new(w, NULL);
		enum ib_wc_status status =
			w <= LAST_BYTE ? IB_WC_OK : IB_WC_REMOTE_ACCESS;
		struct ib_mr *old;
		struct conn *p[2];
		uint32_t key;
		uint8_t *to;
		static uint8_t memory[RING];

		rig_pair(r, p);
		conn_fill(p[A], 5);
		to = p[B]->in;
		key = p[B]->in_mr->rkey;
		cr_assert_eq(
			r->v->reg(r->nodes[B].port, memory, RING, true, &old),
			0);
		if (w == LAST_BYTE)
			to += RING - 100;
		if (w == BEYOND)
			to += RING - 99;
		if (w == BEFORE)
			to--;
		if (w == WRAPPED)
			to = (uint8_t *)UINTPTR_MAX - 10;
		if (w == NO_KEY)
			key = 12345;
		if (w == LOCAL_KEY)
			key = p[B]->in_mr->lkey;
		if (w == NOT_REMOTE) {
			key = p[B]->out_mr->rkey;
			to = p[B]->out;
		}
		if (w == OLD_KEY) {
			key = old->rkey;
			to = memory;
		}
		if (w == OTHERS_KEY)
			key = p[A]->in_mr->rkey;
		CALL_VOID(r, r->v->dereg(r->nodes[B].port, old));
		cr_assert_eq(conn_write(p[A], to, key, 0, 100, 0), 0);
		cr_assert_eq(conn_send(p[A], 0, 8, 1), 0);
		qp_rig_run(r, NSEC_PER_SEC);
		/* one completion, of the SEND behind the WRITE */
		cr_assert_eq(p[A]->sends, 0);
		cr_assert_eq(conn_sent(p[A], 0)->cookie, 0);
		cr_assert_eq(conn_sent(p[A], 0)->status, status, "%u", w);
		cr_assert_eq(conn_sent(p[A], 1)->cookie, 1);
		if (status) {
			cr_assert_eq(conn_sent(p[A], 1)->status, IB_WC_FLUSHED);
			cr_assert_eq(p[B]->failed, 1);
			cr_assert_eq(p[B]->status, -EIO);
			conn_expect(p[B], true, 0, 4, IB_WC_FLUSHED);
			cr_assert(rig_is_filled(p[B]->in, RING, 0));
			cr_assert(rig_is_filled(p[B]->out, RING, 0));
			cr_assert(rig_is_filled(memory, RING, 0));
		} else {
			cr_assert_eq(to[99], 5);
		}
		rig_free(r);
	}
}

/* Nothing is written, so nothing is checked. */
Test(data, empty_write)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	cr_assert_eq(conn_write(p[A], NULL, 0, 0, 0, 0), 0);
	qp_rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 1, IB_WC_OK);
	rig_free(r);
}

/* Errors in the sender's memory; earlier work requests are done. */
Test(data, local_errors)
{
	for (unsigned int w = 0; w < 5; w++) {
		struct rig *r = rig_new(w, NULL);
		struct ib_sge sge, good;
		struct ib_wr wrs[] = {
			{ .type = IB_WR_WRITE, .sge = &sge, .nsge = 1 },
			{ .type = IB_WR_SEND, .sge = &good, .nsge = 1 },
		};
		struct conn *p[2];
		unsigned int first;

		rig_pair(r, p);
		sge = good = conn_sge(p[A], 0, 8);
		if (w == 0)
			sge.lkey = 1;
		if (w == 1)
			sge.length = RING + 1;
		if (w == 2)
			sge.addr = p[A]->out + RING - 7;
		if (w == 3)
			sge.lkey = p[A]->out_mr->rkey;
		wrs[0].remote_addr = (uintptr_t)p[B]->in;
		wrs[0].rkey = p[B]->in_mr->rkey;
		/* alone, and behind another one */
		first = w % 2;
		if (first)
			cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
		wrs[1].cookie = (void *)1;
		p[A]->sends++;
		cr_assert_eq(CALL(r, r->v->post_send(p[A]->qp, wrs, 2)), 0);
		cr_assert_eq(conn_send(p[A], 0, 8, 2), 0);
		if (w == 4) { /* while it is under way */
			CALL_VOID(r,
				  r->v->dereg(r->nodes[A].port, p[A]->out_mr));
			p[A]->out_mr = NULL;
		}
		qp_rig_run(r, MSEC);
		cr_assert_eq(p[A]->sends, 0);
		if (first)
			cr_assert_eq(conn_sent(p[A], 0)->status, IB_WC_OK);
		cr_assert_eq(conn_sent(p[A], first)->cookie, 1);
		cr_assert_eq(conn_sent(p[A], first)->status, IB_WC_LOCAL_ERROR);
		cr_assert_eq(conn_sent(p[A], first + 1)->status, IB_WC_FLUSHED);
		cr_assert_eq(conn_count(p[B], true, IB_WC_OK), first);
		rig_free(r);
	}
}

/* A receive that is too short, or not registered. */
Test(data, bad_receives)
{
	for (unsigned int w = 0; w < 2; w++) {
		struct rig *r = rig_new(w, NULL);
		struct ib_sge sge;
		struct conn *p[2];

		r->receives = w ? 0 : 4;
		rig_pair(r, p);
		sge = (struct ib_sge){ p[B]->in, 100, 77 };
		if (w) {
			p[B]->recvs++;
			cr_assert_eq(
				CALL(r, r->v->post_recv(p[B]->qp, &sge, NULL)),
				0);
		}
		conn_fill(p[A], 1);
		cr_assert_eq(conn_send(p[A], 0, 65, 0), 0);
		qp_rig_run(r, NSEC_PER_SEC);
		conn_expect(p[A], false, 0, 1, IB_WC_REMOTE_ERROR);
		cr_assert_eq(p[B]->wcs[0].cookie, 0);
		cr_assert_eq(p[B]->wcs[0].status, IB_WC_LOCAL_ERROR);
		conn_expect(p[B], true, 1, w ? 0 : 3, IB_WC_FLUSHED);
		cr_assert(rig_is_filled(p[B]->in, RING, 0));
		rig_free(r);
	}
}

Test(data, limits)
{
	struct rig *r = rig_new(1, NULL);
	struct ib_sge sges[3];
	struct ib_wr wrs[17] = { 0 };
	struct conn *p[2];

	r->receives = 16;
	rig_pair(r, p);
	cr_assert_eq(conn_recv(p[B], 0, 8, 99), -ENOMEM);
	for (unsigned int i = 0; i < 3; i++)
		sges[i] = conn_sge(p[A], 0, 30);
	for (unsigned int i = 0; i < 17; i++)
		wrs[i] = (struct ib_wr){ .type = IB_WR_SEND, .sge = sges };
	cr_assert_eq(r->v->post_send(p[A]->qp, wrs, 17), -ENOMEM);
	wrs[0].nsge = 3;
	cr_assert_eq(r->v->post_send(p[A]->qp, wrs, 1), -EINVAL);
	wrs[0].nsge = 2;
	wrs[0].inlined = true; /* 60 of 64 */
	p[A]->sends += 16;
	cr_assert_eq(r->v->post_send(p[A]->qp, wrs, 16), 0);
	cr_assert_eq(r->v->post_send(p[A]->qp, wrs, 1), -ENOMEM);
	qp_rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(conn_count(p[A], false, IB_WC_OK), 16);
	sges[0].length = 35;
	cr_assert_eq(r->v->post_send(p[A]->qp, wrs, 1), -EINVAL);
	cr_assert_eq(conn_count(p[B], true, IB_WC_OK), 16);
	rig_free(r);
}

/* create(): too large for the device, or for memory. */
Test(data, queues_too_large)
{
	static const struct {
		struct simqp_device device;
		struct ib_qp_conf conf;
		int rc;
	} cases[] = {
		{ { .max_inline = 10 }, { 1000000, 1000000, 100, 64 }, 0 },
		{ { .limits.max_qp_wr = 100 }, { 100, 100, 1, 0 }, 0 },
		{ { .limits.max_qp_wr = 100 }, { 101, 1, 1, 0 }, -ENOMEM },
		{ { .limits.max_qp_wr = 100 }, { 1, 101, 1, 0 }, -ENOMEM },
		{ { .limits.max_cqe = 100 }, { 50, 50, 1, 0 }, 0 },
		{ { .limits.max_cqe = 100 }, { 50, 51, 1, 0 }, -ENOMEM },
		{ { .limits.max_sge = 4 }, { 50, 50, 4, 0 }, 0 },
		{ { .limits.max_sge = 4 }, { 50, 50, 5, 0 }, -EINVAL },
		{ { .wr_max = 100 }, { 50, 50, 1, 0 }, 0 },
		{ { .wr_max = 100 }, { 51, 50, 1, 0 }, -ENOMEM },
	};
	struct conn *b;

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *r = rig_new(i, NULL);

		r->answer = LATER;
		simqp_device_set(r->fabric, rig_nid(r, B), &cases[i].device);
		qp_rig_open(r, A);
		qp_rig_open(r, B);
		cr_assert_eq(r->nodes[B].port->limits.max_qp_wr,
			     cases[i].device.limits.max_qp_wr);
		rig_connect_to(r, A, 0, rig_nid(r, B));
		qp_rig_run(r, NSEC_PER_SEC);
		b = rig_passive(r, B);
		r->qp_conf = cases[i].conf;
		cr_assert_eq(conn_create(b), cases[i].rc, "%u", i);
		/* a smaller one is possible */
		r->qp_conf = (struct ib_qp_conf){ 4, 4, 1, 0 };
		if (cases[i].rc)
			cr_assert_eq(conn_create(b), 0);
		else
			cr_assert_eq(b->qp->max_inline,
				     MIN(cases[i].conf.max_inline,
					 cases[i].device.max_inline));
		rig_free(r);
	}
}

/* ---- memory ---- */

Test(memory, registration)
{
	const struct simqp_device device = { .limits.max_mr_size = 1000,
					     .locked_max = 1500 };
	struct rig *r = rig_new(1, NULL);
	static uint8_t buf[2000];
	struct ib_mr *mr[2], *none = NULL;
	struct ib_port *port;
	struct simqp_usage u;
	uint32_t rkey;

	simqp_device_set(r->fabric, rig_nid(r, A), &device);
	qp_rig_open(r, A);
	port = r->nodes[A].port;
	cr_assert_eq(r->v->reg(port, NULL, 10, true, &none), -EFAULT);
	cr_assert_eq(r->v->reg(port, buf, 0, true, &none), -EINVAL);
	cr_assert_eq(r->v->reg(port, buf, 1001, true, &none), -EINVAL);
	cr_assert_eq(r->v->reg(port, buf, SIZE_MAX, true, &none), -EINVAL);
	cr_assert_eq(r->v->reg(port, buf, 1000, true, &mr[0]), 0);
	cr_assert_eq(mr[0]->addr, buf);
	cr_assert_eq(mr[0]->length, 1000);
	cr_assert_eq(r->v->reg(port, buf, 501, true, &none), -ENOMEM);
	/* The same memory registered twice has different keys. */
	cr_assert_eq(r->v->reg(port, buf, 500, true, &mr[1]), 0);
	cr_assert_neq(mr[0]->rkey, mr[1]->rkey);
	cr_assert_neq(mr[0]->lkey, mr[1]->lkey);
	simqp_usage(r->fabric, rig_nid(r, A), &u);
	cr_assert_eq(u.mrs, 2);
	cr_assert_eq(u.locked, 1500);
	rkey = mr[0]->rkey;
	r->v->dereg(port, mr[0]);
	cr_assert_eq(r->v->reg(port, buf, 1000, true, &mr[0]), 0);
	cr_assert_neq(mr[0]->rkey, rkey);
	r->v->dereg(port, mr[0]);
	r->v->dereg(port, mr[1]);
	simqp_fail_call(r->fabric, rig_nid(r, A), SIMQP_CALL_REG, 0, -ENOMEM);
	cr_assert_eq(r->v->reg(port, buf, 10, true, &none), -ENOMEM);
	cr_assert_null(none);
	rig_free(r);
}

Test(memory, registration_fails_at_random)
{
	const struct simqp_device device = { .reg_fails = SIMQP_ALWAYS / 2 };
	struct rig *r = rig_new(1, NULL);
	unsigned int failed = 0;

	simqp_device_set(r->fabric, rig_nid(r, A), &device);
	qp_rig_open(r, A);
	for (unsigned int i = 0; i < 100; i++) {
		struct ib_mr *mr;

		if (r->v->reg(r->nodes[A].port, r, 8, false, &mr))
			failed++;
		else
			r->v->dereg(r->nodes[A].port, mr);
	}
	cr_assert(failed > 20 && failed < 80);
	rig_free(r);
}

/* Memory is taken away from a WRITE under way by dereg(), or by disconnect().
 */
Test(memory, fences)
{
	const struct simqp_link link = { .latency = 10 * MSEC };

	for (unsigned int dereg = 0; dereg < 2; dereg++) {
		struct rig *r = rig_new(dereg, NULL);
		struct conn *p[2];

		rig_pair(r, p);
		simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
		conn_fill(p[A], 1);
		cr_assert_eq(conn_write(p[A], p[B]->in, p[B]->in_mr->rkey, 0,
					RING, 0),
			     0);
		qp_rig_run(r, 5 * MSEC);
		if (dereg) {
			CALL_VOID(r,
				  r->v->dereg(r->nodes[B].port, p[B]->in_mr));
			p[B]->in_mr = NULL;
		} else {
			conn_disconnect(p[B]);
		}
		memset(p[B]->in, 9, RING);
		qp_rig_run(r, 20 * NSEC_PER_SEC);
		cr_assert(rig_is_filled(p[B]->in, RING, 9));
		cr_assert_eq(p[B]->failed, dereg);
		cr_assert_eq(p[A]->disconnected, !dereg);
		conn_expect(p[A], false, 0, 1,
			    dereg ? IB_WC_REMOTE_ACCESS : IB_WC_SILENT);
		rig_free(r);
	}
}
