/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of lnd/o2iblnd/verbs.h, sentence by sentence, kept by the
 * backend in memory; and the faults that it can be told to have. */
#include <signal.h>
#include <string.h>

#include "tests/unit/o2iblnd/simqp_rig.h"

static bool is_filled(const uint8_t *p, size_t n, uint8_t with)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != with)
			return false;
	return true;
}

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

/* ---- connections ---- */

Test(connect, both_sides)
{
	const struct simqp_link link = { .latency = 10 * MSEC };
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
	rig_pair(r, p);
	cr_assert_eq(p[A]->resolved, 1);
	cr_assert_eq(p[B]->resolved, 0);
	/* There and back, and there. */
	cr_assert_geq(p[A]->at, 20 * MSEC);
	cr_assert_eq(p[B]->at, p[A]->at + 10 * MSEC);
	cr_assert_eq(p[B]->qp->cpt, 1);
	/* What is received has its full size. */
	cr_assert_eq(p[B]->private_length, 56);
	cr_assert_str_eq((char *)p[B]->private, "hello");
	cr_assert(is_filled(p[B]->private + 5, 51, 0));
	cr_assert_eq(p[A]->private_length, 196);
	cr_assert_str_eq((char *)p[A]->private, "yes");
	cr_assert(is_filled(p[A]->private + 3, 193, 0));
	cr_assert_lt(p[B]->from.port, 1024);
	cr_assert(lnet_nid_eq(&p[B]->from.nid, rig_nid(r, A)));
	cr_assert_eq(p[A]->nwcs + p[B]->nwcs, 0);
	cr_assert_eq(p[A]->qp->max_inline, 64);
	rig_free(r);
}

Test(connect, unprivileged_ports)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	r->conf.privileged = false;
	rig_pair(r, p);
	cr_assert_geq(p[B]->from.port, 1024);
	rig_free(r);
}

/* To oneself, too; and many at once, of which each has a port of its own. */
Test(connect, many)
{
	struct rig *r = rig_new(1, NULL);
	unsigned int established = 0;

	r->receives = 0;
	rig_open(r, A);
	rig_open(r, B);
	for (unsigned int i = 0; i < 32; i++)
		rig_connect_to(r, A, i % CPTS, rig_nid(r, i % 2 ? A : B));
	rig_run(r, NSEC_PER_SEC);
	for (unsigned int i = 0; i < r->nconns; i++) {
		established += r->conns[i].established;
		for (unsigned int k = 0; k < i; k++)
			cr_assert(!r->conns[i].passive ||
				  r->conns[i].from.port !=
					  r->conns[k].from.port);
	}
	cr_assert_eq(established, 64);
	rig_free(r);
}

Test(connect, ports_run_out)
{
	struct rig *r = rig_new(1, NULL);
	struct ib_qp *qps[512], *qp;
	struct node *a = &r->nodes[A];
	struct conn c = { .rig = r, .node = a };

	rig_open(r, A);
	for (unsigned int i = 0; i < 512; i++)
		cr_assert_eq(
			r->v->resolve(a->port, 0, rig_nid(r, B), &c, &qps[i]),
			0);
	cr_assert_eq(r->v->resolve(a->port, 0, rig_nid(r, B), &c, &qp),
		     -EADDRINUSE);
	r->v->destroy(qps[77]);
	cr_assert_eq(r->v->resolve(a->port, 0, rig_nid(r, B), &c, &qps[77]), 0);
	for (unsigned int i = 0; i < 512; i++)
		r->v->destroy(qps[i]);
	rig_free(r);
}

enum obstacle {
	NOBODY,
	NO_PORT,
	NOT_LISTENING,
	DEAF,
	OTHER_SERVICE,
	SILENT_THERE,
	SILENT_BACK,
	PEER_DOWN,
	PEER_GONE,
	LINK_DOWN,
	STALE,
	NO_ADDRESS,
	NO_ROUTE,
	REFUSED,
	UNANSWERED,
	OBSTACLES
};

static void set_obstacle(struct rig *r, enum obstacle o)
{
	const struct ulnet_nid *a = rig_nid(r, A), *b = rig_nid(r, B);

	if (o == NOT_LISTENING)
		r->conf.listen = false;
	if (o == OTHER_SERVICE)
		r->conf.service++;
	if (o != NOBODY)
		simqp_device_set(r->fabric, b, NULL);
	if (o != NO_PORT && o != NOBODY)
		rig_open(r, B);
	r->conf.service = SERVICE;
	if (o == DEAF)
		CALL_VOID(r, r->v->deafen(r->nodes[B].port));
	if (o == SILENT_THERE)
		simqp_silence(r->fabric, a, b, TIME_NEVER);
	if (o == SILENT_BACK)
		simqp_silence(r->fabric, b, &LNET_NID_ANY, TIME_NEVER);
	if (o == PEER_DOWN)
		simqp_port_set(r->fabric, b, false, "cable");
	if (o == PEER_GONE)
		simqp_remove(r->fabric, b);
	if (o == LINK_DOWN)
		simqp_port_set(r->fabric, a, false, "cable");
	if (o == STALE)
		simqp_reject_next(r->fabric, b, IB_CM_REJECT_STALE);
	if (o == NO_ADDRESS)
		simqp_unresolve_next(r->fabric, a, -ETIMEDOUT);
	if (o == NO_ROUTE)
		simqp_unresolve_next(r->fabric, a, -EHOSTUNREACH);
	r->answer = o == REFUSED ? REJECT : o == UNANSWERED ? VANISH : ACCEPT;
}

Test(connect, obstacles)
{
	static const struct {
		int failed, rejected;
		uint64_t ms; /* that it takes */
		const char *private;
	} want[OBSTACLES] = {
		[NOBODY] = { -EHOSTUNREACH, 0, 0, NULL },
		[NO_PORT] = { 0, IB_CM_REJECT_NO_LISTENER, 0, "" },
		[NOT_LISTENING] = { 0, IB_CM_REJECT_NO_LISTENER, 0, "" },
		[DEAF] = { 0, IB_CM_REJECT_NO_LISTENER, 0, "" },
		[OTHER_SERVICE] = { 0, IB_CM_REJECT_NO_LISTENER, 0, "" },
		[SILENT_THERE] = { -ENETDOWN, 0, 30000, NULL },
		[SILENT_BACK] = { -ENETDOWN, 0, 30000, NULL },
		[PEER_DOWN] = { -ENETDOWN, 0, 30000, NULL },
		[PEER_GONE] = { -EHOSTUNREACH, 0, 0, NULL },
		[LINK_DOWN] = { -EHOSTUNREACH, 0, 0, NULL },
		[STALE] = { 0, IB_CM_REJECT_STALE, 0, "" },
		[NO_ADDRESS] = { -ETIMEDOUT, 0, 2000, NULL },
		[NO_ROUTE] = { -EHOSTUNREACH, 0, 0, NULL },
		[REFUSED] = { 0, IB_CM_REJECT_CONSUMER, 0, "no" },
		[UNANSWERED] = { 0, IB_CM_REJECT_CONSUMER, 0, "" },
	};

	for (unsigned int o = 0; o < OBSTACLES; o++) {
		struct rig *r = rig_new(o, NULL);
		struct conn *c;
		unsigned int receives;

		set_obstacle(r, o);
		rig_open(r, A);
		c = rig_connect_to(r, A, 1, rig_nid(r, B));
		rig_run(r, 100 * NSEC_PER_SEC);
		cr_assert_eq(c->established, 0);
		cr_assert_eq(c->failed, want[o].failed != 0, "%u", o);
		cr_assert_eq(c->rejected, want[o].rejected != 0, "%u", o);
		cr_assert_eq(c->status, want[o].failed + want[o].rejected,
			     "%u: %d", o, c->status);
		cr_assert_eq(c->at / MSEC, want[o].ms, "%u", o);
		if (want[o].private) {
			cr_assert_eq(c->private_length, 148);
			cr_assert_str_eq((char *)c->private, want[o].private);
			cr_assert(is_filled(c->private + 2, 146, 0));
		}
		/* In error: what was posted has been flushed. */
		receives = c->resolved ? r->receives : 0;
		conn_expect(c, true, 0, receives, IB_WC_FLUSHED);
		conn_destroy(c);
		/* The next one finds it as it is. */
		if (o == STALE || o == NO_ADDRESS || o == NO_ROUTE) {
			c = rig_connect_to(r, A, 0, rig_nid(r, B));
			rig_run(r, NSEC_PER_SEC);
			cr_assert_eq(c->established, 1, "%u", o);
		}
		rig_free(r);
	}
}

/* The active side gives up, before and after it is answered. */
Test(connect, active_gives_up)
{
	for (unsigned int accepted = 0; accepted < 2; accepted++) {
		struct rig *r = rig_new(1, NULL);
		struct conn *a, *b;

		r->answer = LATER;
		rig_open(r, A);
		rig_open(r, B);
		a = rig_connect_to(r, A, 0, rig_nid(r, B));
		rig_run(r, NSEC_PER_SEC);
		b = rig_passive(r, B);
		cr_assert_eq(conn_create(b), 0);
		if (accepted) {
			cr_assert_eq(CALL(r, r->v->accept(b->qp, NULL, 0)), 0);
		}
		conn_disconnect(a);
		rig_run(r, NSEC_PER_SEC);
		cr_assert_eq(a->established + a->failed + a->rejected, 0);
		conn_expect(a, true, 0, r->receives, IB_WC_FLUSHED);
		cr_assert_eq(b->failed, 1);
		cr_assert_eq(b->status, -ECONNRESET);
		conn_expect(b, true, 0, r->receives, IB_WC_FLUSHED);
		if (!accepted) {
			cr_assert_eq(CALL(r, r->v->accept(b->qp, NULL, 0)),
				     -ENOTCONN);
			CALL_VOID(r, r->v->reject(b->qp, NULL, 0));
		}
		rig_run(r, NSEC_PER_SEC);
		cr_assert_eq(b->failed, 1);
		rig_free(r);
	}
}

/* The passive side takes it back before the active one has heard of it. */
Test(connect, passive_takes_back)
{
	const struct simqp_link slow = { .latency = 10 * MSEC };
	struct rig *r = rig_new(1, NULL);
	struct conn *a, *b;

	r->answer = LATER;
	rig_open(r, A);
	rig_open(r, B);
	a = rig_connect_to(r, A, 0, rig_nid(r, B));
	rig_run(r, NSEC_PER_SEC);
	b = rig_passive(r, B);
	simqp_silence(r->fabric, rig_nid(r, B), rig_nid(r, A), MSEC);
	cr_assert_eq(conn_create(b), 0);
	cr_assert_eq(CALL(r, r->v->accept(b->qp, NULL, 0)), 0);
	simqp_link_set(r->fabric, rig_nid(r, B), rig_nid(r, A), &slow);
	rig_run(r, 2 * MSEC);
	conn_disconnect(b);
	rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(a->failed, 1);
	cr_assert_eq(a->status, -ECONNRESET);
	cr_assert_eq(b->failed, 0);
	rig_free(r);
}

/* Nobody confirms, so the passive side gives up. */
Test(connect, unconfirmed)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *b;

	r->answer = LATER;
	rig_open(r, A);
	rig_open(r, B);
	rig_connect_to(r, A, 0, rig_nid(r, B));
	rig_run(r, NSEC_PER_SEC);
	b = rig_passive(r, B);
	simqp_silence(r->fabric, rig_nid(r, A), rig_nid(r, B), TIME_NEVER);
	cr_assert_eq(conn_create(b), 0);
	cr_assert_eq(CALL(r, r->v->accept(b->qp, NULL, 0)), 0);
	rig_run(r, 29 * NSEC_PER_SEC);
	cr_assert_eq(b->failed, 0);
	rig_run(r, 2 * NSEC_PER_SEC);
	cr_assert_eq(b->failed, 1);
	cr_assert_eq(b->status, -ENETDOWN);
	cr_assert_eq(b->established, 0);
	rig_free(r);
}

/* Connect messages are lost, and repeated; each request is told once. */
Test(connect, lost_messages)
{
	const struct simqp_link link = { .cm_loss = SIMQP_ALWAYS / 2,
					 .cm_latency = MSEC };
	unsigned int late = 0;

	for (unsigned int seed = 0; seed < 20; seed++) {
		struct rig *r = rig_new(seed, NULL);
		struct conn *a, *b;

		simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
		rig_open(r, A);
		rig_open(r, B);
		a = rig_connect_to(r, A, 0, rig_nid(r, B));
		rig_run(r, 100 * NSEC_PER_SEC);
		b = rig_passive(r, B);
		cr_assert(b);
		cr_assert_eq(r->nodes[B].requests, 1);
		cr_assert_eq(a->established, 1);
		cr_assert_eq(b->established, 1);
		late += b->at > NSEC_PER_SEC;
		rig_free(r);
	}
	cr_assert_gt(late, 5);
}

static void send_when_open(struct conn *c, const struct wc *wc)
{
	if (!wc && c->established)
		cr_assert_eq(conn_send(c, 0, 8, 0), 0);
}

/* Who is connected may send at once. */
Test(connect, data_overtakes)
{
	const struct simqp_link link = { .rtu_delay = 20 * MSEC };
	struct rig *r = rig_new(1, NULL);
	struct simqp_stats stats;
	struct conn *a, *b;

	simqp_link_set(r->fabric, rig_nid(r, A), rig_nid(r, B), &link);
	rig_open(r, A);
	rig_open(r, B);
	a = rig_connect_to(r, A, 0, rig_nid(r, B));
	a->hook = send_when_open;
	rig_run(r, 10 * MSEC);
	b = rig_passive(r, B);
	cr_assert_eq(b->established, 0);
	cr_assert_eq(b->early, 1);
	cr_assert_eq(conn_count(b, true, IB_WC_OK), 1);
	cr_assert_eq(conn_send(b, 0, 8, 0), -ENOTCONN);
	rig_run(r, 20 * MSEC);
	cr_assert_eq(b->established, 1);
	simqp_stats(r->fabric, &stats);
	cr_assert_eq(stats.overtaken, 1);
	rig_free(r);
}

/* deafen() and close(): requests on their way are rejected. */
Test(connect, deafened_meanwhile)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2], *c;

	rig_pair(r, p);
	c = rig_connect_to(r, A, 0, rig_nid(r, B));
	CALL_VOID(r, r->v->deafen(r->nodes[B].port));
	rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(c->status, IB_CM_REJECT_NO_LISTENER);
	cr_assert_eq(r->nodes[B].requests, 1);
	/* Those that there are go on. */
	cr_assert_eq(conn_send(p[B], 0, 8, 0), 0);
	rig_run(r, NSEC_PER_SEC);
	conn_expect(p[B], false, 0, 1, IB_WC_OK);
	rig_free(r);
}

/* ---- ports ---- */

Test(port, open_refused)
{
	struct rig *r = rig_new(1, NULL);
	struct node *a = &r->nodes[A];
	const char *why = NULL;
	struct ib_port *port = NULL;

	simqp_remove(r->fabric, rig_nid(r, A));
	cr_assert_eq(r->v->open(&a->ni, &r->conf, &rig_events, a, &port, &why),
		     -ENODEV);
	cr_assert(why && *why);
	simqp_insert(r->fabric, rig_nid(r, A));
	simqp_fail_call(r->fabric, rig_nid(r, A), SIMQP_CALL_OPEN, 0, -EACCES);
	cr_assert_eq(r->v->open(&a->ni, &r->conf, &rig_events, a, &port, NULL),
		     -EACCES);
	cr_assert_null(port);
	rig_open(r, A);
	cr_assert_eq(r->v->open(&a->ni, &r->conf, &rig_events, a, &port, &why),
		     -EADDRINUSE);
	rig_free(r);
}

Test(port, calls_fail)
{
	struct rig *r = rig_new(1, NULL);
	const struct ulnet_nid *nid = rig_nid(r, A);
	struct ib_qp *qp = NULL;
	struct conn *p[2], *late;

	rig_pair(r, p);
	simqp_fail_call(r->fabric, nid, SIMQP_CALL_RESOLVE, 0, -EMFILE);
	cr_assert_eq(r->v->resolve(r->nodes[A].port, 0, nid, p[A], &qp),
		     -EMFILE);
	cr_assert_null(qp);
	r->answer = LATER;
	rig_connect_to(r, B, 0, nid);
	rig_run(r, MSEC);
	late = rig_passive(r, A);
	simqp_fail_call(r->fabric, nid, SIMQP_CALL_CREATE, 0, -ENOMEM);
	cr_assert_eq(conn_create(late), -ENOMEM);
	cr_assert_eq(conn_create(late), 0);
	simqp_fail_call(r->fabric, nid, SIMQP_CALL_ACCEPT, 0, -ENOMEM);
	cr_assert_eq(CALL(r, r->v->accept(late->qp, NULL, 0)), -ENOMEM);
	cr_assert_eq(CALL(r, r->v->accept(late->qp, NULL, 0)), 0);
	/* After one good call; once. */
	simqp_fail_call(r->fabric, nid, SIMQP_CALL_POST_SEND, 1, -ENOMEM);
	cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
	cr_assert_eq(conn_send(p[A], 0, 8, 1), -ENOMEM);
	cr_assert_eq(conn_send(p[A], 0, 8, 1), 0);
	simqp_fail_call(r->fabric, nid, SIMQP_CALL_POST_RECV, 0, -EIO);
	cr_assert_eq(conn_recv(p[A], 0, 8, 9), -EIO);
	rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 2, IB_WC_OK);
	rig_free(r);
}

Test(port, goes_down_and_comes_back)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	simqp_port_set(r->fabric, rig_nid(r, B), false, "no carrier");
	simqp_port_set(r->fabric, rig_nid(r, B), false, "no carrier");
	cr_assert_eq(r->nodes[B].changes, 0);
	cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
	rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(r->nodes[B].changes, 1);
	cr_assert_eq(r->nodes[B].ups, 0);
	cr_assert_str_eq(r->nodes[B].why, "no carrier");
	cr_assert_eq(r->nodes[A].changes, 0);
	/* Sent again until it is back. */
	cr_assert_eq(p[A]->nwcs, 0);
	simqp_port_set(r->fabric, rig_nid(r, B), true, "carrier");
	rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(r->nodes[B].ups, 1);
	conn_expect(p[A], false, 0, 1, IB_WC_OK);
	rig_free(r);
}

Test(port, is_down_from_the_start)
{
	struct rig *r = rig_new(1, NULL);

	simqp_port_set(r->fabric, rig_nid(r, A), false, "no carrier");
	rig_open(r, A);
	rig_run(r, MSEC);
	cr_assert_eq(r->nodes[A].changes, 1);
	rig_free(r);
}

Test(port, device_is_removed)
{
	struct rig *r = rig_new(1, NULL);
	struct ib_mr *mr;
	struct ib_qp *qp;
	struct conn *p[2], *asked;

	rig_pair(r, p);
	asked = rig_connect_to(r, B, 0, rig_nid(r, A));
	cr_assert_eq(conn_send(p[B], 0, 8, 0), 0);
	simqp_remove(r->fabric, rig_nid(r, B));
	/* Between the two: */
	cr_assert_eq(CALL(r, r->v->resolve(r->nodes[B].port, 0, rig_nid(r, A),
					   p[B], &qp)),
		     -ENODEV);
	cr_assert_eq(CALL(r, r->v->reg(r->nodes[B].port, &mr, sizeof(mr), false,
				       &mr)),
		     -ENODEV);
	rig_run(r, 60 * NSEC_PER_SEC);
	cr_assert_eq(r->nodes[B].changes, 1);
	cr_assert_eq(r->nodes[B].removals, 1);
	cr_assert_eq(p[B]->failed, 1);
	cr_assert_eq(p[B]->status, -ENODEV);
	conn_expect(p[B], false, 0, 1, IB_WC_FLUSHED);
	conn_expect(p[B], true, 0, 4, IB_WC_FLUSHED);
	cr_assert_eq(asked->failed, 1);
	cr_assert_eq(asked->established, 0);
	/* The other side finds silence. */
	cr_assert_eq(p[A]->failed + p[A]->disconnected + p[A]->nwcs, 0);
	cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
	rig_run(r, 60 * NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 1, IB_WC_SILENT);
	rig_close(r, B);
	simqp_insert(r->fabric, rig_nid(r, B));
	rig_open(r, B);
	rig_free(r);
}

/* ---- data ---- */

static void fill(struct conn *c, uint8_t with)
{
	memset(c->out, with, RING);
}

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
	/* 3000 bytes take 3 ms; two pieces; nothing at all. */
	cr_assert_eq(conn_write(p[A], p[B]->in + 1000, p[B]->in_mr->rkey, 7,
				3000, 0),
		     0);
	sges[0] = conn_sge(p[A], 20, 3);
	sges[1] = conn_sge(p[A], 99, 5);
	wr.cookie = (void *)1;
	p[A]->sends++;
	cr_assert_eq(CALL(r, r->v->post_send(p[A]->qp, &wr, 1)), 0);
	cr_assert_eq(conn_send(p[A], 0, 0, 2), 0);
	rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 3, IB_WC_OK);
	conn_expect(p[B], true, 0, 3, IB_WC_OK);
	cr_assert_eq(p[B]->wcs[0].length, 8);
	cr_assert_eq(p[B]->wcs[1].length, 8);
	cr_assert_eq(p[B]->wcs[2].length, 0);
	cr_assert_arr_eq(p[B]->in + 1000, p[A]->out + 7, 3000);
	cr_assert_arr_eq(p[B]->in + 64, p[A]->out + 20, 3);
	cr_assert_arr_eq(p[B]->in + 67, p[A]->out + 99, 5);
	cr_assert(is_filled(p[B]->in + 72, 900, 0));
	cr_assert_geq(p[A]->at - begun, 5 * MSEC);
	cr_assert_lt(p[A]->at - begun, 6 * MSEC);
	simqp_stats(r->fabric, &stats);
	cr_assert_eq(stats.sends, 3);
	cr_assert_eq(stats.writes, 1);
	cr_assert_eq(stats.bytes, 3016);
	cr_assert_eq(stats.connected, 1);
	rig_free(r);
}

/* Memory is read until it is done, but for what is inlined. */
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
		fill(p[A], 1);
		sge = conn_sge(p[A], 0, 64);
		if (inlined)
			sge.lkey = 0; /* not looked at */
		p[A]->sends++;
		cr_assert_eq(CALL(r, r->v->post_send(p[A]->qp, &wr, 1)), 0);
		fill(p[A], 2);
		rig_run(r, NSEC_PER_SEC);
		cr_assert(is_filled(p[B]->in, 64, inlined ? 1 : 2));
		rig_free(r);
	}
}

/* What is on its way when its queue pair goes to error may still arrive, as it
 * was then. */
Test(data, flushed_and_yet_received)
{
	const struct simqp_link link = { .latency = 10 * MSEC };
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
	fill(p[A], 1);
	cr_assert_eq(conn_send(p[A], 0, 64, 0), 0);
	conn_disconnect(p[A]);
	fill(p[A], 2);
	rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 1, IB_WC_FLUSHED);
	cr_assert_eq(p[B]->disconnected, 1);
	conn_expect(p[B], true, 0, 1, IB_WC_OK);
	cr_assert(is_filled(p[B]->in, 64, 1));
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
		rig_run(r, 2 * MSEC + MSEC / 2);
		cr_assert_eq(p[A]->nwcs, 0);
		if (late == 1)
			post_late(p[B], NULL);
		rig_run(r, 100 * MSEC);
		simqp_stats(r->fabric, &stats);
		if (late == 2) { /* for ever */
			cr_assert_eq(p[A]->nwcs, 0);
			cr_assert_gt(stats.not_ready, 90);
			post_late(p[B], NULL);
			post_late(p[B], NULL);
			rig_run(r, 2 * MSEC);
			conn_expect(p[A], false, 0, 2, IB_WC_OK);
		} else if (late == 1) { /* one in time */
			cr_assert_eq(p[A]->nwcs, 2);
			cr_assert_eq(conn_sent(p[A], 0)->status, IB_WC_OK);
			cr_assert_eq(conn_sent(p[A], 1)->status,
				     IB_WC_NOT_READY);
		} else {
			cr_assert_eq(conn_sent(p[A], 0)->status,
				     IB_WC_NOT_READY);
			cr_assert_eq(conn_sent(p[A], 1)->status, IB_WC_FLUSHED);
			cr_assert_eq(p[A]->nwcs, 2);
			/* Both are in error. */
			post_late(p[B], NULL);
			cr_assert_eq(conn_send(p[B], 0, 8, 9), 0);
			cr_assert_eq(conn_send(p[A], 0, 8, 2), 0);
			rig_run(r, MSEC);
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
		fill(p[A], 5);
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
		rig_run(r, NSEC_PER_SEC);
		/* One completion, of the SEND behind it. */
		cr_assert_eq(p[A]->sends, 0);
		cr_assert_eq(conn_sent(p[A], 0)->cookie, 0);
		cr_assert_eq(conn_sent(p[A], 0)->status, status, "%u", w);
		cr_assert_eq(conn_sent(p[A], 1)->cookie, 1);
		if (status) {
			cr_assert_eq(conn_sent(p[A], 1)->status, IB_WC_FLUSHED);
			cr_assert_eq(p[B]->failed, 1);
			cr_assert_eq(p[B]->status, -EIO);
			conn_expect(p[B], true, 0, 4, IB_WC_FLUSHED);
			cr_assert(is_filled(p[B]->in, RING, 0));
			cr_assert(is_filled(p[B]->out, RING, 0));
			cr_assert(is_filled(memory, RING, 0));
		} else {
			cr_assert_eq(to[99], 5);
		}
		rig_free(r);
	}
}

/* Nothing is written, so nothing is looked at. */
Test(data, empty_write)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	cr_assert_eq(conn_write(p[A], NULL, 0, 0, 0, 0), 0);
	rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 1, IB_WC_OK);
	rig_free(r);
}

/* What is wrong with the sender's memory: what was before it is done. */
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
		/* Alone, and behind another one. */
		first = w % 2;
		if (first)
			cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
		wrs[1].cookie = (void *)1;
		p[A]->sends++;
		cr_assert_eq(CALL(r, r->v->post_send(p[A]->qp, wrs, 2)), 0);
		cr_assert_eq(conn_send(p[A], 0, 8, 2), 0);
		if (w == 4) { /* while it travels */
			CALL_VOID(r,
				  r->v->dereg(r->nodes[A].port, p[A]->out_mr));
			p[A]->out_mr = NULL;
		}
		rig_run(r, MSEC);
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

/* A receive that is too short, or whose memory is not registered. */
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
		fill(p[A], 1);
		cr_assert_eq(conn_send(p[A], 0, 65, 0), 0);
		rig_run(r, NSEC_PER_SEC);
		conn_expect(p[A], false, 0, 1, IB_WC_REMOTE_ERROR);
		cr_assert_eq(p[B]->wcs[0].cookie, 0);
		cr_assert_eq(p[B]->wcs[0].status, IB_WC_LOCAL_ERROR);
		conn_expect(p[B], true, 1, w ? 0 : 3, IB_WC_FLUSHED);
		cr_assert(is_filled(p[B]->in, RING, 0));
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
	rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(conn_count(p[A], false, IB_WC_OK), 16);
	sges[0].length = 35;
	cr_assert_eq(r->v->post_send(p[A]->qp, wrs, 1), -EINVAL);
	cr_assert_eq(conn_count(p[B], true, IB_WC_OK), 16);
	rig_free(r);
}

/* create(): what is too large for the device, or for memory. */
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
		rig_open(r, A);
		rig_open(r, B);
		cr_assert_eq(r->nodes[B].port->limits.max_qp_wr,
			     cases[i].device.limits.max_qp_wr);
		rig_connect_to(r, A, 0, rig_nid(r, B));
		rig_run(r, NSEC_PER_SEC);
		b = rig_passive(r, B);
		r->qp_conf = cases[i].conf;
		cr_assert_eq(conn_create(b), cases[i].rc, "%u", i);
		/* A smaller one will do. */
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

/* ---- ends ---- */

Test(ends, disconnect_flushes)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	simqp_silence(r->fabric, rig_nid(r, A), rig_nid(r, B), MSEC);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(conn_send(p[A], 0, 8, i), 0);
	rig_run(r, 2 * MSEC);
	conn_disconnect(p[A]);
	conn_disconnect(p[A]);
	cr_assert_eq(p[A]->nwcs, 0);
	rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 3, IB_WC_FLUSHED);
	conn_expect(p[A], true, 0, 4, IB_WC_FLUSHED);
	cr_assert_eq(p[A]->disconnected + p[A]->failed, 0);
	/* The peer is told, and flushes once it disconnects, too. */
	cr_assert_eq(p[B]->disconnected, 1);
	cr_assert_eq(p[B]->nwcs, 0);
	cr_assert_eq(conn_send(p[B], 0, 8, 9), 0);
	conn_disconnect(p[B]);
	cr_assert_eq(conn_send(p[B], 0, 8, 10), 0);
	cr_assert_eq(conn_recv(p[B], 0, 8, 4), 0);
	rig_run(r, NSEC_PER_SEC);
	conn_expect(p[B], false, 9, 2, IB_WC_FLUSHED);
	conn_expect(p[B], true, 0, 5, IB_WC_FLUSHED);
	cr_assert_eq(p[A]->disconnected, 0);
	conn_disconnect(p[A]);
	rig_run(r, NSEC_PER_SEC);
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
	rig_run(r, NSEC_PER_SEC);
	cr_assert(!p[A]->qp && !p[B]->qp);
	simqp_usage(r->fabric, rig_nid(r, B), &u);
	cr_assert_eq(u.qps, 0);
	rig_free(r);
}

/* A queue pair is destroyed that its peer is still connected to. */
Test(ends, destroyed_undisconnected)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	r->receives = 0;
	rig_pair(r, p);
	conn_destroy(p[A]);
	rig_run(r, NSEC_PER_SEC);
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

	rig_open(r, A);
	simqp_fabric_free(r->fabric);
}

/* Once in error nothing comes in, although nobody has disconnected. */
Test(ends, error_takes_nothing)
{
	struct rig *r = rig_new(1, NULL);
	struct ib_sge bad = { r, 8, 0 };
	struct ib_wr wr = { .type = IB_WR_SEND, .sge = &bad, .nsge = 1 };
	struct conn *p[2];

	rig_pair(r, p);
	fill(p[A], 1);
	p[B]->sends++;
	cr_assert_eq(CALL(r, r->v->post_send(p[B]->qp, &wr, 1)), 0);
	cr_assert_eq(conn_write(p[A], p[B]->in, p[B]->in_mr->rkey, 0, RING, 0),
		     0);
	rig_run(r, 20 * NSEC_PER_SEC);
	conn_expect(p[B], false, 0, 1, IB_WC_LOCAL_ERROR);
	conn_expect(p[B], true, 0, 4, IB_WC_FLUSHED);
	conn_expect(p[A], false, 0, 1, IB_WC_SILENT);
	cr_assert(is_filled(p[B]->in, RING, 0));
	rig_free(r);
}

/* Silence, in either direction, short or long. */
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
		rig_run(r, 20 * NSEC_PER_SEC);
		/* It arrives once, however often it is sent. */
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

/* Silence ends when it is taken back. */
Test(ends, silence_taken_back)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	simqp_silence(r->fabric, rig_nid(r, A), &LNET_NID_ANY, TIME_NEVER);
	cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
	rig_run(r, MSEC);
	simqp_silence(r->fabric, rig_nid(r, A), &LNET_NID_ANY, 0);
	rig_run(r, NSEC_PER_SEC);
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
	rig_run(r, 60 * NSEC_PER_SEC);
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
	rig_run(r, 5 * MSEC);
	simqp_cut(r->fabric, rig_nid(r, B), &LNET_NID_ANY);
	cr_assert_eq(p[A]->failed + p[B]->failed, 0);
	rig_run(r, NSEC_PER_SEC);
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

/* simqp_link.ends: of a SEND, and of a WRITE with the SEND behind it. */
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
		link.ends[end] = SIMQP_ALWAYS;
		simqp_link_set(r->fabric, rig_nid(r, A), rig_nid(r, B), &link);
		if (write)
			cr_assert_eq(conn_write(p[A], p[B]->in,
						p[B]->in_mr->rkey, 0, 8, 0),
				     0);
		else
			cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
		rig_run(r, 20 * NSEC_PER_SEC);
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

/* SENDs that are not taken although there is a receive. */
Test(ends, rnr_by_fault)
{
	const struct simqp_link link = { .rnr = SIMQP_ALWAYS };
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2];

	rig_pair(r, p);
	simqp_link_set(r->fabric, rig_nid(r, A), rig_nid(r, B), &link);
	cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
	rig_run(r, NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 1, IB_WC_NOT_READY);
	conn_expect(p[B], true, 0, 4, IB_WC_FLUSHED);
	rig_free(r);
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
	rig_open(r, A);
	port = r->nodes[A].port;
	cr_assert_eq(r->v->reg(port, NULL, 10, true, &none), -EFAULT);
	cr_assert_eq(r->v->reg(port, buf, 0, true, &none), -EINVAL);
	cr_assert_eq(r->v->reg(port, buf, 1001, true, &none), -EINVAL);
	cr_assert_eq(r->v->reg(port, buf, SIZE_MAX, true, &none), -EINVAL);
	cr_assert_eq(r->v->reg(port, buf, 1000, true, &mr[0]), 0);
	cr_assert_eq(mr[0]->addr, buf);
	cr_assert_eq(mr[0]->length, 1000);
	cr_assert_eq(r->v->reg(port, buf, 501, true, &none), -ENOMEM);
	/* The same memory twice: other keys. */
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
	rig_open(r, A);
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

/* A WRITE is on its way while the memory is taken away: by dereg(), or by
 * disconnect(). */
Test(memory, fences)
{
	const struct simqp_link link = { .latency = 10 * MSEC };

	for (unsigned int dereg = 0; dereg < 2; dereg++) {
		struct rig *r = rig_new(dereg, NULL);
		struct conn *p[2];

		rig_pair(r, p);
		simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
		fill(p[A], 1);
		cr_assert_eq(conn_write(p[A], p[B]->in, p[B]->in_mr->rkey, 0,
					RING, 0),
			     0);
		rig_run(r, 5 * MSEC);
		if (dereg) {
			CALL_VOID(r,
				  r->v->dereg(r->nodes[B].port, p[B]->in_mr));
			p[B]->in_mr = NULL;
		} else {
			conn_disconnect(p[B]);
		}
		memset(p[B]->in, 9, RING);
		rig_run(r, 20 * NSEC_PER_SEC);
		cr_assert(is_filled(p[B]->in, RING, 9));
		cr_assert_eq(p[B]->failed, dereg);
		cr_assert_eq(p[A]->disconnected, !dereg);
		conn_expect(p[A], false, 0, 1,
			    dereg ? IB_WC_REMOTE_ACCESS : IB_WC_SILENT);
		rig_free(r);
	}
}
