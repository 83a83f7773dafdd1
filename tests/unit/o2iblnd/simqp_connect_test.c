/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulated backend keeps the contract of lnd/o2iblnd/verbs.h, sentence by
 * sentence: ports, and connecting. */
#include "tests/unit/o2iblnd/simqp_rig.h"

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
	/* round trip, and one way */
	cr_assert_geq(p[A]->at, 20 * MSEC);
	cr_assert_eq(p[B]->at, p[A]->at + 10 * MSEC);
	cr_assert_eq(p[B]->qp->cpt, 1);
	/* Received private data has its full size. */
	cr_assert_eq(p[B]->private_length, 56);
	cr_assert_str_eq((char *)p[B]->private, "hello");
	cr_assert(rig_is_filled(p[B]->private + 5, 51, 0));
	cr_assert_eq(p[A]->private_length, 196);
	cr_assert_str_eq((char *)p[A]->private, "yes");
	cr_assert(rig_is_filled(p[A]->private + 3, 193, 0));
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

/* To oneself, too; and many at once, each with a source port of its own. */
Test(connect, many)
{
	struct rig *r = rig_new(1, NULL);
	unsigned int established = 0;

	r->receives = 0;
	qp_rig_open(r, A);
	qp_rig_open(r, B);
	for (unsigned int i = 0; i < 32; i++)
		rig_connect_to(r, A, i % CPTS, rig_nid(r, i % 2 ? A : B));
	qp_rig_run(r, NSEC_PER_SEC);
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

	qp_rig_open(r, A);
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
		qp_rig_open(r, B);
	r->conf.service = SERVICE;
	if (o == DEAF)
		CALL_VOID(r, r->v->stop_listening(r->nodes[B].port));
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
		uint64_t ms; /* time that it takes */
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
		qp_rig_open(r, A);
		c = rig_connect_to(r, A, 1, rig_nid(r, B));
		qp_rig_run(r, 100 * NSEC_PER_SEC);
		cr_assert_eq(c->established, 0);
		cr_assert_eq(c->failed, want[o].failed != 0, "%u", o);
		cr_assert_eq(c->rejected, want[o].rejected != 0, "%u", o);
		cr_assert_eq(c->status, want[o].failed + want[o].rejected,
			     "%u: %d", o, c->status);
		cr_assert_eq(c->at / MSEC, want[o].ms, "%u", o);
		if (want[o].private) {
			cr_assert_eq(c->private_length, 148);
			cr_assert_str_eq((char *)c->private, want[o].private);
			cr_assert(rig_is_filled(c->private + 2, 146, 0));
		}
		/* in error: receives were flushed */
		receives = c->resolved ? r->receives : 0;
		conn_expect(c, true, 0, receives, IB_WC_FLUSHED);
		conn_destroy(c);
		/* the next one is not affected */
		if (o == STALE || o == NO_ADDRESS || o == NO_ROUTE) {
			c = rig_connect_to(r, A, 0, rig_nid(r, B));
			qp_rig_run(r, NSEC_PER_SEC);
			cr_assert_eq(c->established, 1, "%u", o);
		}
		rig_free(r);
	}
}

/* The active side gives up before and after the answer. */
Test(connect, active_gives_up)
{
	for (unsigned int accepted = 0; accepted < 2; accepted++) {
		struct rig *r = rig_new(1, NULL);
		struct conn *a, *b;

		r->answer = LATER;
		qp_rig_open(r, A);
		qp_rig_open(r, B);
		a = rig_connect_to(r, A, 0, rig_nid(r, B));
		qp_rig_run(r, NSEC_PER_SEC);
		b = rig_passive(r, B);
		cr_assert_eq(conn_create(b), 0);
		if (accepted) {
			cr_assert_eq(CALL(r, r->v->accept(b->qp, NULL, 0)), 0);
		}
		conn_disconnect(a);
		qp_rig_run(r, NSEC_PER_SEC);
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
		qp_rig_run(r, NSEC_PER_SEC);
		cr_assert_eq(b->failed, 1);
		rig_free(r);
	}
}

/* The passive side disconnects before the active one knows of the acceptance.
 */
Test(connect, passive_takes_back)
{
	const struct simqp_link slow = { .latency = 10 * MSEC };
	struct rig *r = rig_new(1, NULL);
	struct conn *a, *b;

	r->answer = LATER;
	qp_rig_open(r, A);
	qp_rig_open(r, B);
	a = rig_connect_to(r, A, 0, rig_nid(r, B));
	qp_rig_run(r, NSEC_PER_SEC);
	b = rig_passive(r, B);
	simqp_silence(r->fabric, rig_nid(r, B), rig_nid(r, A), MSEC);
	cr_assert_eq(conn_create(b), 0);
	cr_assert_eq(CALL(r, r->v->accept(b->qp, NULL, 0)), 0);
	simqp_link_set(r->fabric, rig_nid(r, B), rig_nid(r, A), &slow);
	qp_rig_run(r, 2 * MSEC);
	conn_disconnect(b);
	qp_rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(a->failed, 1);
	cr_assert_eq(a->status, -ECONNRESET);
	cr_assert_eq(b->failed, 0);
	rig_free(r);
}

/* No confirmation comes: the passive side gives up. */
Test(connect, unconfirmed)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *b;

	r->answer = LATER;
	qp_rig_open(r, A);
	qp_rig_open(r, B);
	rig_connect_to(r, A, 0, rig_nid(r, B));
	qp_rig_run(r, NSEC_PER_SEC);
	b = rig_passive(r, B);
	simqp_silence(r->fabric, rig_nid(r, A), rig_nid(r, B), TIME_NEVER);
	cr_assert_eq(conn_create(b), 0);
	cr_assert_eq(CALL(r, r->v->accept(b->qp, NULL, 0)), 0);
	qp_rig_run(r, 29 * NSEC_PER_SEC);
	cr_assert_eq(b->failed, 0);
	qp_rig_run(r, 2 * NSEC_PER_SEC);
	cr_assert_eq(b->failed, 1);
	cr_assert_eq(b->status, -ENETDOWN);
	cr_assert_eq(b->established, 0);
	rig_free(r);
}

/* Connect messages are lost and repeated; each request is reported once. */
Test(connect, lost_messages)
{
	const struct simqp_link link = { .cm_loss = SIMQP_ALWAYS / 2,
					 .cm_latency = MSEC };
	unsigned int late = 0;

	for (unsigned int seed = 0; seed < 20; seed++) {
		struct rig *r = rig_new(seed, NULL);
		struct conn *a, *b;

		simqp_link_set(r->fabric, &LNET_NID_ANY, &LNET_NID_ANY, &link);
		qp_rig_open(r, A);
		qp_rig_open(r, B);
		a = rig_connect_to(r, A, 0, rig_nid(r, B));
		qp_rig_run(r, 100 * NSEC_PER_SEC);
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

/* The active side may send as soon as it is connected. */
Test(connect, data_overtakes)
{
	const struct simqp_link link = { .rtu_delay = 20 * MSEC };
	struct rig *r = rig_new(1, NULL);
	struct simqp_stats stats;
	struct conn *a, *b;

	simqp_link_set(r->fabric, rig_nid(r, A), rig_nid(r, B), &link);
	qp_rig_open(r, A);
	qp_rig_open(r, B);
	a = rig_connect_to(r, A, 0, rig_nid(r, B));
	a->hook = send_when_open;
	qp_rig_run(r, 10 * MSEC);
	b = rig_passive(r, B);
	cr_assert_eq(b->established, 0);
	cr_assert_eq(b->early, 1);
	cr_assert_eq(conn_count(b, true, IB_WC_OK), 1);
	cr_assert_eq(conn_send(b, 0, 8, 0), -ENOTCONN);
	qp_rig_run(r, 20 * MSEC);
	cr_assert_eq(b->established, 1);
	simqp_stats(r->fabric, &stats);
	cr_assert_eq(stats.overtaken, 1);
	rig_free(r);
}

/* stop_listening() and close(): requests under way are rejected. */
Test(connect, stopped_meanwhile)
{
	struct rig *r = rig_new(1, NULL);
	struct conn *p[2], *c;

	rig_pair(r, p);
	c = rig_connect_to(r, A, 0, rig_nid(r, B));
	CALL_VOID(r, r->v->stop_listening(r->nodes[B].port));
	qp_rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(c->status, IB_CM_REJECT_NO_LISTENER);
	cr_assert_eq(r->nodes[B].requests, 1);
	/* existing connections go on */
	cr_assert_eq(conn_send(p[B], 0, 8, 0), 0);
	qp_rig_run(r, NSEC_PER_SEC);
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
	qp_rig_open(r, A);
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
	qp_rig_run(r, MSEC);
	late = rig_passive(r, A);
	simqp_fail_call(r->fabric, nid, SIMQP_CALL_CREATE, 0, -ENOMEM);
	cr_assert_eq(conn_create(late), -ENOMEM);
	cr_assert_eq(conn_create(late), 0);
	simqp_fail_call(r->fabric, nid, SIMQP_CALL_ACCEPT, 0, -ENOMEM);
	cr_assert_eq(CALL(r, r->v->accept(late->qp, NULL, 0)), -ENOMEM);
	cr_assert_eq(CALL(r, r->v->accept(late->qp, NULL, 0)), 0);
	/* After one successful call, and once only. */
	simqp_fail_call(r->fabric, nid, SIMQP_CALL_POST_SEND, 1, -ENOMEM);
	cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
	cr_assert_eq(conn_send(p[A], 0, 8, 1), -ENOMEM);
	cr_assert_eq(conn_send(p[A], 0, 8, 1), 0);
	simqp_fail_call(r->fabric, nid, SIMQP_CALL_POST_RECV, 0, -EIO);
	cr_assert_eq(conn_recv(p[A], 0, 8, 9), -EIO);
	qp_rig_run(r, NSEC_PER_SEC);
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
	qp_rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(r->nodes[B].changes, 1);
	cr_assert_eq(r->nodes[B].ups, 0);
	cr_assert_str_eq(r->nodes[B].why, "no carrier");
	cr_assert_eq(r->nodes[A].changes, 0);
	/* Messages are sent again until the link is back. */
	cr_assert_eq(p[A]->nwcs, 0);
	simqp_port_set(r->fabric, rig_nid(r, B), true, "carrier");
	qp_rig_run(r, NSEC_PER_SEC);
	cr_assert_eq(r->nodes[B].ups, 1);
	conn_expect(p[A], false, 0, 1, IB_WC_OK);
	rig_free(r);
}

Test(port, is_down_from_the_start)
{
	struct rig *r = rig_new(1, NULL);

	simqp_port_set(r->fabric, rig_nid(r, A), false, "no carrier");
	qp_rig_open(r, A);
	qp_rig_run(r, MSEC);
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
	/* between the two calls */
	cr_assert_eq(CALL(r, r->v->resolve(r->nodes[B].port, 0, rig_nid(r, A),
					   p[B], &qp)),
		     -ENODEV);
	cr_assert_eq(CALL(r, r->v->reg(r->nodes[B].port, &mr, sizeof(mr), false,
				       &mr)),
		     -ENODEV);
	qp_rig_run(r, 60 * NSEC_PER_SEC);
	cr_assert_eq(r->nodes[B].changes, 1);
	cr_assert_eq(r->nodes[B].removals, 1);
	cr_assert_eq(p[B]->failed, 1);
	cr_assert_eq(p[B]->status, -ENODEV);
	conn_expect(p[B], false, 0, 1, IB_WC_FLUSHED);
	conn_expect(p[B], true, 0, 4, IB_WC_FLUSHED);
	cr_assert_eq(asked->failed, 1);
	cr_assert_eq(asked->established, 0);
	/* for the other side the peer is silent */
	cr_assert_eq(p[A]->failed + p[A]->disconnected + p[A]->nwcs, 0);
	cr_assert_eq(conn_send(p[A], 0, 8, 0), 0);
	qp_rig_run(r, 60 * NSEC_PER_SEC);
	conn_expect(p[A], false, 0, 1, IB_WC_SILENT);
	qp_rig_close(r, B);
	simqp_insert(r->fabric, rig_nid(r, B));
	qp_rig_open(r, B);
	rig_free(r);
}
