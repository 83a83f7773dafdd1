/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers: when they are connected to, how often, and what is remembered of them.
 */
#include "tests/unit/o2iblnd/peer_rig.h"

static const struct told *told(struct peer_rig *r, unsigned int from,
			       unsigned int to)
{
	return &r->nodes[from].told[to];
}

static void expect_sent(const struct peer_msg *m)
{
	cr_expect_eq(m->state, MSG_ENDED);
	cr_expect_eq(m->status, 0, "%d, cause %d", m->status, m->cause);
	cr_expect_eq(m->arrived, 1);
}

static void expect_failed(const struct peer_msg *m, int status,
			  enum ulnet_cause cause)
{
	cr_expect_eq(m->state, MSG_ENDED);
	cr_expect_eq(m->status, status, "%d", m->status);
	cr_expect_eq(m->cause, cause, "%d", m->cause);
	cr_expect_eq(m->arrived, 0);
}

/* ---- who is lower ---- */

static struct ulnet_nid o2ib(uint32_t addr)
{
	return lnet_nid_make(LNET_NET(LNET_TYPE_O2IB, 0), addr);
}

Test(o2ib_race, rules)
{
	struct ulnet_nid a = o2ib(0xc0a8010a), b = o2ib(0xc0a80114);
	struct ulnet_nid c = o2ib(0x0a0000c8), d = o2ib(0x0a000105);

	cr_expect_eq(ib_race_hash(&a), 0x0a01a8c0 ^ 0x00050000);
	/* 192.168.1.10 and .20: the same order by both rules */
	cr_expect(ib_race_is_lower(IB_RACE_HASH, &a, &b));
	cr_expect(ib_race_is_lower(IB_RACE_NID, &a, &b));
	cr_expect(!ib_race_is_lower(IB_RACE_HASH, &b, &a));
	cr_expect(!ib_race_is_lower(IB_RACE_NID, &b, &a));
	/* 10.0.0.200 and 10.0.1.5: not the same order */
	cr_expect(ib_race_is_lower(IB_RACE_NID, &c, &d));
	cr_expect(!ib_race_is_lower(IB_RACE_NID, &d, &c));
	cr_expect(ib_race_is_lower(IB_RACE_HASH, &d, &c));
	cr_expect(!ib_race_is_lower(IB_RACE_HASH, &c, &d));
	cr_expect(!ib_race_is_lower(IB_RACE_HASH, &a, &a));
}

/* ---- what is answered, and what follows ---- */

static const struct {
	uint8_t reason;
	uint16_t version, depth, frags; /* 0: our own */
	bool is_short;
	bool again;
} rejects[] = {
	{ IB_REJECT_RACE, .again = true },
	{ IB_REJECT_RESOURCES, .again = false },
	{ IB_REJECT_FATAL, .again = false },
	{ IB_REJECT_FATAL, .version = IB_VERSION_1, .again = false },
	{ IB_REJECT_INCOMPATIBLE, .again = true },
	{ IB_REJECT_INCOMPATIBLE, .version = IB_VERSION_1, .again = false },
	{ IB_REJECT_STALE, .again = true },
	{ IB_REJECT_FRAGS, .frags = 100, .again = true },
	{ IB_REJECT_FRAGS, .frags = 256, .again = false },
	{ IB_REJECT_FRAGS, .frags = 257, .again = false },
	{ IB_REJECT_FRAGS, .frags = 100, .is_short = true, .again = false },
	{ IB_REJECT_DEPTH, .depth = 4, .again = true },
	{ IB_REJECT_DEPTH, .depth = 8, .again = false },
	{ IB_REJECT_DEPTH, .depth = 9, .again = false },
	{ IB_REJECT_SERVICE, .again = false },
	{ IB_REJECT_EARLY, .again = false },
	{ 77, .again = false },
};

Test(o2ib_peer, rejects)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(rejects); i++) {
		struct peer_rig *r = peer_rig_new_up(0);
		struct ib_reject *f =
			peer_rig_force(r, B, 1, rejects[i].reason);
		struct peer_msg *m;

		if (rejects[i].version)
			f->version = rejects[i].version;
		if (rejects[i].depth)
			f->params.queue_depth = rejects[i].depth;
		if (rejects[i].frags)
			f->params.max_frags = rejects[i].frags;
		if (rejects[i].is_short)
			f->params.max_frags = 0;
		m = peer_rig_send(r, A, B);
		cr_expect_eq(m->state, MSG_WAITS);
		peer_rig_run(r, 50 * MSEC);
		cr_expect_eq(r->nodes[B].requests, rejects[i].again ? 2 : 1,
			     "row %u: %u requests", i, r->nodes[B].requests);
		if (rejects[i].again)
			expect_sent(m);
		else
			expect_failed(m, -ECONNRESET,
				      LNET_CAUSE_REMOTE_DROPPED);
		cr_expect_eq(told(r, A, B)->failed, !rejects[i].again);
		if (rejects[i].again) {
			const struct ib_msg *q = &r->nodes[B].asked;

			cr_expect_eq(r->nodes[B].asked_env.dst.stamp,
				     r->nodes[B].stamp);
			cr_expect_eq(q->params.queue_depth,
				     rejects[i].depth ? rejects[i].depth : 8);
			cr_expect_eq(q->params.max_frags,
				     rejects[i].frags ? rejects[i].frags : 256);
		}
		peer_rig_free(r);
	}
}

/* The first request names no incarnation. What the peer has told is forgotten
 * with the last connection. */
Test(o2ib_peer, remembers)
{
	struct peer_rig *r = peer_rig_new_up(1000);
	struct ulnet_nid any = LNET_NID_ANY;

	expect_sent((peer_rig_send(r, A, B), peer_rig_run(r, SEC), r->msgs));
	cr_expect_eq(r->nodes[B].asked_env.dst.stamp, 0);
	simqp_cut(r->fabric, &any, &any);
	peer_rig_run(r, SEC);
	cr_expect_eq(told(r, A, B)->disconnected, 1);
	cr_expect_eq(told(r, B, A)->disconnected, 1);
	cr_expect_eq(r->nodes[A].ps.hash.count, 0);
	peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	cr_expect_eq(r->nodes[B].asked_env.dst.stamp, 0);
	expect_sent(&r->msgs[1]);
	peer_rig_free(r);
}

Test(o2ib_peer, system_rejects)
{
	static const struct {
		int reason;
		unsigned int requests;
		int status;
	} rows[] = {
		{ IB_CM_REJECT_STALE, 1, 0 },
		{ IB_CM_REJECT_NO_LISTENER, 0, -ECONNREFUSED },
		{ 12, 0, -ECONNRESET },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct peer_rig *r = peer_rig_new_up(0);
		struct ulnet_nid b = peer_rig_nid(r, B);
		struct peer_msg *m;

		simqp_reject_next(r->fabric, &b, rows[i].reason);
		m = peer_rig_send(r, A, B);
		peer_rig_run(r, 50 * MSEC);
		cr_expect_eq(r->nodes[B].requests, rows[i].requests);
		if (rows[i].status)
			expect_failed(m, rows[i].status,
				      LNET_CAUSE_REMOTE_DROPPED);
		else
			expect_sent(m);
		peer_rig_free(r);
	}
}

Test(o2ib_peer, no_way)
{
	struct peer_rig *r = peer_rig_new_up(0);
	struct ulnet_nid a = peer_rig_nid(r, A), large = a;
	struct peer_msg *m = peer_rig_send(r, A, PEER_NODES);
	struct ib_conn *conn;

	peer_rig_run(r, 50 * MSEC);
	expect_failed(m, -EHOSTUNREACH, LNET_CAUSE_LOCAL_NO_ROUTE);
	/* too long for an answer: the peer is down */
	simqp_unresolve_next(r->fabric, &a, -ETIMEDOUT);
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, 12 * SEC);
	expect_failed(m, -ETIMEDOUT, LNET_CAUSE_REMOTE_DROPPED);
	/* a local failure */
	simqp_fail_call(r->fabric, &a, SIMQP_CALL_RESOLVE, 0, -ENOMEM);
	m = peer_rig_send(r, A, 2);
	peer_rig_run(r, SEC);
	expect_failed(m, -ENOMEM, LNET_CAUSE_LOCAL_DROPPED);
	large.size = LNET_NID_IPV6_SIZE;
	cr_expect_eq(ib_peers_get(&r->nodes[A].ps, &large, true, &conn),
		     -EAFNOSUPPORT);
	peer_rig_free(r);
}

/* ---- how often ---- */

Test(o2ib_peer, retries_are_paced)
{
	struct peer_rig *r = peer_rig_new_up(0);
	struct peer_msg *m;
	uint64_t begin = env_sim_now(r->world);
	unsigned int before;

	peer_rig_force(r, B, 1000, IB_REJECT_RACE);
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, 900 * MSEC);
	cr_expect_eq(r->nodes[B].requests, 11, "%u", r->nodes[B].requests);
	peer_rig_run(r, 4 * SEC);
	cr_expect_eq(r->nodes[B].requests, 15, "%u", r->nodes[B].requests);
	for (unsigned int i = 11; i < 15; i++)
		cr_expect_geq(r->nodes[B].request_at[i] -
				      r->nodes[B].request_at[i - 1],
			      SEC);
	cr_expect_eq(told(r, A, B)->failed, 0);
	peer_rig_run(r, 20 * SEC);
	expect_failed(m, -ECONNRESET, LNET_CAUSE_REMOTE_DROPPED);
	cr_expect_leq(told(r, A, B)->failed_at - begin,
		      ib_peers_wait_max(&r->nodes[A].ps) + MSEC);
	cr_expect_eq(told(r, A, B)->silent, 0);
	/* while nobody waits */
	before = r->nodes[B].requests;
	peer_rig_run(r, 60 * SEC);
	cr_expect_eq(r->nodes[B].requests, before);
	peer_rig_free(r);
}

Test(o2ib_peer, failures_are_paced)
{
	struct peer_rig *r = peer_rig_new_up(0);
	uint64_t end = env_sim_now(r->world) + 60 * SEC;
	unsigned int n;
	struct peer_msg *m;

	/* This one asks again from its callback. */
	peer_rig_force(r, B, 100000, IB_REJECT_FATAL);
	while (env_sim_now(r->world) < end && r->nmsgs < PEER_MSGS / 2) {
		m = peer_rig_send(r, A, B);
		while (m->state != MSG_ENDED)
			peer_rig_run(r, MSEC);
	}
	n = r->nodes[B].requests;
	cr_expect_lt(n, 60, "%u", n);
	cr_expect_gt(n, 10, "%u", n);
	cr_expect_eq(told(r, A, B)->failed, n);
	/* nobody else waits for that peer */
	m = peer_rig_send(r, A, 2);
	peer_rig_run(r, MSEC);
	expect_sent(m);
	/* the peer is up again, and connects */
	r->nodes[B].force = 0;
	m = peer_rig_send(r, A, B);
	peer_rig_send(r, B, A);
	peer_rig_run(r, 10 * MSEC);
	expect_sent(m);
	peer_rig_free(r);
}

/* Requests come to a CPT that does not own the peer any more: the peer asks
 * again. */
Test(o2ib_peer, astray)
{
	struct peer_rig *r = peer_rig_new_up(1000);
	struct peer_msg *m;

	r->nodes[B].astray = 2;
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, 10 * MSEC);
	cr_expect_eq(r->nodes[B].requests, 3);
	cr_expect_eq(r->nodes[B].ps.hash.count, 1);
	expect_sent(m);
	peer_rig_free(r);
}

/* A peer accepts connections and ends them at once. */
Test(o2ib_peer, in_vain)
{
	struct peer_rig *r = peer_rig_new_up(1000);
	struct ulnet_nid any = LNET_NID_ANY;
	uint64_t end = env_sim_now(r->world) + 20 * SEC;
	struct simqp_link link = { .latency = 1000 };

	/* nothing that is sent arrives */
	link.wc_ppm[IB_WC_REMOTE_ERROR] = SIMQP_ALWAYS;
	simqp_link_set(r->fabric, &any, &any, &link);
	while (env_sim_now(r->world) < end && r->nmsgs < PEER_MSGS / 2) {
		struct peer_msg *m = peer_rig_send(r, A, B);

		while (m->state != MSG_ENDED)
			peer_rig_run(r, MSEC);
		cr_assert(m->status);
	}
	cr_expect_lt(r->nodes[B].requests, 40, "%u", r->nodes[B].requests);
	cr_expect_gt(r->nodes[B].requests, 4);
	/* the peer may have changed since, so nothing is known of it */
	cr_expect_eq(r->nodes[B].asked_env.dst.stamp, 0);
	peer_rig_free(r);
}

/* The number of peers whose failures are remembered is limited. */
Test(o2ib_peer, failures_are_forgotten)
{
	struct peer_rig *r = peer_rig_new_up(0);
	struct ib_conn *conn;

	for (unsigned int i = 0; i < CONNECT_FAILURES_MAX + 100; i++) {
		struct ulnet_nid nid = o2ib(0x0b000001 + i);

		cr_assert_eq(ib_peers_get(&r->nodes[A].ps, &nid, true, &conn),
			     -EINPROGRESS);
	}
	peer_rig_run(r, 10 * SEC);
	cr_expect_eq(r->nodes[A].ps.connects.nfailed, CONNECT_FAILURES_MAX);
	cr_expect_eq(r->nodes[A].ps.hash.count, CONNECT_FAILURES_MAX);
	peer_rig_free(r);
}

/* ---- several connections ---- */

Test(o2ib_peer, conns_per_peer)
{
	struct peer_rig *r = peer_rig_new_up(1000);
	struct peer_msg *m[8];

	r->nodes[A].conf.conns_per_peer = 4;
	m[0] = peer_rig_send(r, A, B);
	m[1] = peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	expect_sent(m[0]);
	expect_sent(m[1]);
	/* all waiting messages were sent over the first connection */
	cr_expect_eq(m[0]->conn, m[1]->conn);
	cr_expect_eq(peer_rig_conns(r, A, B), 4);
	cr_expect_eq(peer_rig_conns(r, B, A), 4);
	cr_expect_eq(r->nodes[B].requests, 4);
	for (unsigned int i = 0; i < 8; i++)
		m[i] = peer_rig_send(r, A, B);
	for (unsigned int i = 0; i < 4; i++) {
		cr_expect_eq(m[i]->conn, m[i + 4]->conn);
		for (unsigned int k = 0; k < i; k++)
			cr_expect_neq(m[i]->conn, m[k]->conn);
	}
	peer_rig_run(r, SEC);
	/* B accepts connections, but opens none. */
	peer_rig_send(r, B, A);
	peer_rig_run(r, SEC);
	cr_expect_eq(r->nodes[A].requests, 0);
	/* Several connections end together: LNet is told once. */
	{
		struct ulnet_nid any = LNET_NID_ANY;

		simqp_cut(r->fabric, &any, &any);
	}
	peer_rig_run(r, SEC);
	cr_expect_eq(told(r, A, B)->disconnected, 1);
	cr_expect_eq(told(r, B, A)->disconnected, 1);
	peer_rig_free(r);
}

/* ---- terms ---- */

Test(o2ib_peer, least_of_both)
{
	struct peer_rig *r = peer_rig_new(1);
	struct peer_msg *m;

	r->nodes[B].conf.terms.depth = 4;
	r->nodes[B].conf.terms.frags = 100;
	peer_rig_up(r, A);
	peer_rig_up(r, B);
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	expect_sent(m);
	cr_expect_eq(r->nodes[B].requests, 3);
	cr_expect_eq(peer_rig_conn(r, A, B)->terms.depth, 4);
	cr_expect_eq(peer_rig_conn(r, A, B)->terms.frags, 100);
	peer_rig_free(r);
}

/* The device of either side only supports a smaller depth. */
Test(o2ib_peer, depth_of_device)
{
	for (unsigned int small = A; small <= B; small++) {
		struct simqp_device device = { .wr_max = 24 };
		struct peer_rig *r = peer_rig_new(1);
		struct ulnet_nid nid = peer_rig_nid(r, small);
		struct peer_msg *m;

		simqp_device_set(r->fabric, &nid, &device);
		peer_rig_up(r, A);
		peer_rig_up(r, B);
		m = peer_rig_send(r, A, B);
		peer_rig_run(r, SEC);
		expect_sent(m);
		cr_expect_eq(r->nodes[B].requests, 1);
		cr_expect_lt(peer_rig_conn(r, A, B)->terms.depth, 8);
		cr_expect_eq(peer_rig_conn(r, A, B)->terms.depth,
			     peer_rig_conn(r, B, A)->terms.depth);
		peer_rig_free(r);
	}
}

/* The next request asks for what the peer has told, up to our own limits. */
Test(o2ib_peer, terms_are_kept)
{
	struct simqp_device device = { .wr_max = 24 };
	struct peer_rig *r = peer_rig_new(1);
	struct ulnet_nid a = peer_rig_nid(r, A);
	struct peer_msg *m;

	r->nodes[A].conf.min_pause = 100 * SEC;
	r->nodes[A].conf.max_pause = 100 * SEC;
	r->nodes[2].conf.frags = 257;
	simqp_device_set(r->fabric, &a, &device);
	for (unsigned int i = 0; i < PEER_NODES; i++)
		peer_rig_up(r, i);
	peer_rig_force(r, B, 1, IB_REJECT_FATAL);
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, MSEC);
	expect_failed(m, -ECONNRESET, LNET_CAUSE_REMOTE_DROPPED);
	cr_expect_lt(peer_rig_peer(r, A, B)->terms.depth, 8);
	m = peer_rig_send(r, 2, A);
	peer_rig_run(r, MSEC);
	expect_sent(m);
	cr_expect_eq(r->nodes[A].asked.params.max_frags, 257);
	cr_expect_eq(peer_rig_peer(r, A, 2)->terms.frags, 256);
	peer_rig_free(r);
}

/* ---- requests of peers ---- */

/* Decision 13: the shares of peers in connections. */
Test(o2ib_peer, shares)
{
	struct peer_rig *r = peer_rig_new_up(1000);
	struct peer_msg *m;

	r->nodes[A].conf.conns_per_peer = 8;
	r->nodes[B].conf.accept_max = 6;
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	expect_sent(m);
	/* The peer may not have more than is left for others. */
	cr_expect_eq(peer_rig_conns(r, A, B), 4);
	m = peer_rig_send(r, 2, B);
	peer_rig_run(r, SEC);
	expect_sent(m);
	peer_rig_free(r);

	r = peer_rig_new_up(1000);
	r->nodes[A].conf.conns_per_peer = 8;
	r->nodes[B].conf.accept_peer_max = 2;
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	expect_sent(m);
	cr_expect_eq(peer_rig_conns(r, A, B), 2);
	peer_rig_free(r);

	r = peer_rig_new_up(1000);
	r->nodes[B].conf.accept_max = 0;
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	expect_failed(m, -ECONNRESET, LNET_CAUSE_REMOTE_DROPPED);
	/* Connections that B opens do not count. */
	m = peer_rig_send(r, B, A);
	peer_rig_run(r, SEC);
	expect_sent(m);
	peer_rig_free(r);
}

/* No queue pair can be made for a request: rejected for lack of resources. */
Test(o2ib_peer, cannot_accept)
{
	struct peer_rig *r = peer_rig_new_up(1000);
	struct ulnet_nid b = peer_rig_nid(r, B);
	struct peer_msg *m;

	simqp_fail_call(r->fabric, &b, SIMQP_CALL_CREATE, 0, -EIO);
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	expect_failed(m, -ECONNRESET, LNET_CAUSE_REMOTE_DROPPED);
	cr_expect_eq(r->nodes[B].ps.hash.count, 0);
	peer_rig_free(r);
}

/* Decision 14: A has restarted, and B has not noticed. */
Test(o2ib_peer, restarts)
{
	struct peer_rig *r = peer_rig_new_up(1000);
	struct peer_msg *m = peer_rig_send(r, A, B);

	r->nodes[A].conf.conns_per_peer = 3;
	peer_rig_run(r, SEC);
	expect_sent(m);
	cr_expect_eq(peer_rig_conns(r, B, A), 3);
	peer_rig_down(r, A, true);
	cr_expect_eq(peer_rig_conns(r, B, A), 3);
	/* Connections of the earlier incarnation do not count for the share. */
	r->nodes[B].conf.accept_peer_max = 3;
	peer_rig_up(r, A);
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	expect_sent(m);
	cr_expect_eq(r->nodes[B].requests, 9, "%u", r->nodes[B].requests);
	cr_expect_eq(peer_rig_conns(r, B, A), 3);
	cr_expect_eq(told(r, B, A)->disconnected, 1);
	cr_expect_eq(told(r, A, B)->failed, 0);
	peer_rig_free(r);
}

/* B has forgotten the terms, but not the connection: the new one closes the old
 * one. */
Test(o2ib_peer, restarts_unknown)
{
	struct peer_rig *r = peer_rig_new_up(1000);
	struct peer_msg *m = peer_rig_send(r, A, B);

	peer_rig_run(r, SEC);
	expect_sent(m);
	peer_rig_down(r, A, true);
	cr_expect_eq(peer_rig_conns(r, B, A), 1);
	peer_rig_peer(r, B, A)->terms.peer.stamp = 0;
	peer_rig_up(r, A);
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	expect_sent(m);
	cr_expect_eq(r->nodes[B].requests, 2);
	cr_expect_eq(peer_rig_conns(r, B, A), 1);
	cr_expect_eq(told(r, B, A)->disconnected, 1);
	peer_rig_free(r);
}

/* The same, but B finds out when it connects to the restarted peer. */
Test(o2ib_peer, restarts_and_is_asked)
{
	struct peer_rig *r = peer_rig_new_up(1000);
	struct peer_msg *m = peer_rig_send(r, A, B);

	peer_rig_run(r, SEC);
	peer_rig_down(r, A, true);
	peer_rig_up(r, A);
	m = peer_rig_send(r, B, A);
	peer_rig_run(r, 30 * SEC);
	cr_expect_eq(m->state, MSG_ENDED);
	cr_expect_neq(m->status, 0);
	m = peer_rig_send(r, B, A);
	peer_rig_run(r, SEC);
	expect_sent(m);
	peer_rig_free(r);
}

/* The same under load. */
Test(o2ib_peer, restarts_under_load)
{
	for (unsigned int silently = 0; silently < 2; silently++) {
		struct peer_rig *r = peer_rig_new_up(50000);
		struct peer_msg *m;

		for (unsigned int life = 0; life < 4; life++) {
			for (unsigned int i = 0; i < 40; i++) {
				peer_rig_send(r, A, B);
				peer_rig_send(r, B, A);
				peer_rig_run(r, 30000);
			}
			peer_rig_down(r, A, silently);
			peer_rig_up(r, A);
		}
		peer_rig_run(r, 60 * SEC);
		for (unsigned int i = 0; i < 2; i++) {
			m = peer_rig_send(r, i, !i);
			peer_rig_run(r, 30 * SEC);
			expect_sent(m);
		}
		peer_rig_free(r);
	}
}

/* ---- both at once ---- */

Test(o2ib_peer, races)
{
	static const uint64_t latencies[] = { 1000, MSEC, 30 * MSEC };

	for (unsigned int i = 0; i < 3 * 4; i++) {
		struct peer_rig *r = peer_rig_new_up(latencies[i % 3]);
		unsigned int first = i / 3 % 2; /* both orders of the NIDs */
		struct peer_msg *m[2];

		if (i / 6)
			r->nodes[A].conf.conns_per_peer =
				r->nodes[B].conf.conns_per_peer = 3;
		m[0] = peer_rig_send(r, first, !first);
		peer_rig_run(r, latencies[i % 3] / 2);
		m[1] = peer_rig_send(r, !first, first);
		peer_rig_run(r, 900 * MSEC);
		expect_sent(m[0]);
		expect_sent(m[1]);
		cr_expect_eq(peer_rig_conns(r, A, B), peer_rig_conns(r, B, A));
		cr_expect_eq(told(r, A, B)->failed + told(r, B, A)->failed, 0);
		/* 10.0.0.1 is lower: its requests are rejected */
		if (i / 6 == 0)
			cr_expect(!peer_rig_conn(r, A, B)->active);
		cr_expect_eq(told(r, A, B)->disconnected, 0);
		peer_rig_free(r);
	}
}

/* Nodes that order NIDs differently: both reject, or both accept. */
Test(o2ib_peer, races_of_versions)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct peer_rig *r = peer_rig_new(1);
		struct simqp_link link = { .latency = 5 * MSEC };
		struct ulnet_nid any = LNET_NID_ANY;
		struct peer_msg *m[2];
		unsigned int n;

		simqp_link_set(r->fabric, &any, &any, &link);
		r->nodes[A].ni.nid = o2ib(0x0a0000c8);
		r->nodes[B].ni.nid = o2ib(0x0a000105);
		r->nodes[A].conf.race = i ? IB_RACE_HASH : IB_RACE_NID;
		r->nodes[B].conf.race = i ? IB_RACE_NID : IB_RACE_HASH;
		peer_rig_up(r, A);
		peer_rig_up(r, B);
		m[0] = peer_rig_send(r, A, B);
		m[1] = peer_rig_send(r, B, A);
		peer_rig_run(r, 12 * SEC);
		expect_sent(m[0]);
		expect_sent(m[1]);
		n = r->nodes[A].requests + r->nodes[B].requests;
		if (i == 0)
			cr_expect_eq(n, 2);
		else
			cr_expect_gt(n, 10);
		cr_expect_leq(n, 2 * (IB_RACE_REJECTS_MAX + 1));
		peer_rig_free(r);
	}
}

/* A higher node whose request is never answered does not reject for ever. */
Test(o2ib_peer, race_limit)
{
	struct peer_rig *r = peer_rig_new_up(MSEC);
	struct peer_msg *m[2];
	uint64_t begin;

	r->nodes[B].ps.set.timeout = 100 * SEC;
	r->nodes[A].mute = true;
	m[0] = peer_rig_send(r, B, A);
	peer_rig_run(r, 100 * MSEC);
	begin = env_sim_now(r->world);
	m[1] = peer_rig_send(r, A, B);
	while (m[1]->state != MSG_ENDED)
		peer_rig_run(r, 10 * MSEC);
	expect_sent(m[1]);
	expect_sent(m[0]);
	cr_expect_eq(r->nodes[B].requests, IB_RACE_REJECTS_MAX + 1);
	cr_expect_geq(env_sim_now(r->world) - begin, 9 * SEC);
	cr_expect_leq(env_sim_now(r->world) - begin, 11 * SEC);
	cr_expect_eq(peer_rig_peer(r, B, A)->races, 0);
	/* The request of B itself ends some time, without effect. */
	peer_rig_run(r, 60 * SEC);
	cr_expect_eq(told(r, B, A)->failed, 0);
	cr_expect_eq(told(r, B, A)->disconnected, 0);
	cr_expect_eq(peer_rig_conns(r, B, A), 1);
	peer_rig_free(r);
}

/* While a request of the peer is being answered, this side sends none, whatever
 * becomes of its own. */
Test(o2ib_peer, waits_for_passive)
{
	for (unsigned int i = 0; i < 3; i++) {
		struct peer_rig *r = peer_rig_new_up(MSEC);
		struct simqp_link slow = { .latency = MSEC,
					   .rtu_delay = 3 * SEC };
		struct ulnet_nid a = peer_rig_nid(r, A);
		struct ulnet_nid b = peer_rig_nid(r, B);
		struct peer_msg *m[2];

		simqp_link_set(r->fabric, &b, &a, &slow);
		m[0] = peer_rig_send(r, B, A);
		if (i == 1)
			peer_rig_force(r, B, 1, IB_REJECT_FATAL);
		if (i == 2)
			peer_rig_run(r, SEC);
		m[1] = peer_rig_send(r, A, B);
		peer_rig_run(r, 2 * SEC - i / 2 * SEC);
		cr_expect_eq(r->nodes[B].requests, i < 2);
		cr_expect_eq(m[1]->state, MSG_WAITS);
		peer_rig_run(r, 2 * SEC);
		expect_sent(m[0]);
		expect_sent(m[1]);
		cr_expect_eq(r->nodes[B].requests, i < 2);
		cr_expect_eq(told(r, A, B)->failed, 0);
		peer_rig_free(r);
	}
}

/* The peer sends a request and never confirms: those who wait are told in time.
 */
Test(o2ib_peer, passive_comes_to_nothing)
{
	struct peer_rig *r = peer_rig_new_up(MSEC);
	struct simqp_link slow = { .latency = MSEC, .rtu_delay = 100 * SEC };
	struct ulnet_nid a = peer_rig_nid(r, A), b = peer_rig_nid(r, B);
	struct peer_msg *m;

	r->nodes[A].ps.set.timeout = 60 * SEC;
	simqp_link_set(r->fabric, &b, &a, &slow);
	peer_rig_send(r, B, A);
	peer_rig_run(r, 10 * MSEC);
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, ib_peers_wait_max(&r->nodes[A].ps) + SEC);
	expect_failed(m, -ETIMEDOUT, LNET_CAUSE_REMOTE_DROPPED);
	peer_rig_free(r);
}

/* ---- silence, and the port ---- */

Test(o2ib_peer, silence)
{
	struct peer_rig *r = peer_rig_new_up(MSEC);
	struct ulnet_nid any = LNET_NID_ANY, b = peer_rig_nid(r, B);
	struct peer_msg *m[2];

	simqp_silence(r->fabric, &b, &any, TIME_NEVER);
	m[0] = peer_rig_send(r, A, B);
	peer_rig_run(r, 2 * SEC);
	cr_expect_eq(told(r, A, B)->silent, 0);
	peer_rig_run(r, SEC);
	cr_expect_eq(told(r, A, B)->silent, 1);
	cr_expect_geq(told(r, A, B)->silent_ns, 2 * SEC);
	cr_expect_eq(m[0]->state, MSG_WAITS);
	/* Those who come later are told, too. */
	m[1] = peer_rig_send(r, A, B);
	peer_rig_run(r, MSEC);
	cr_expect_eq(told(r, A, B)->silent, 2);
	peer_rig_run(r, 20 * SEC);
	expect_failed(m[0], -ETIMEDOUT, LNET_CAUSE_REMOTE_DROPPED);
	expect_failed(m[1], -ETIMEDOUT, LNET_CAUSE_REMOTE_DROPPED);
	cr_expect_eq(told(r, A, B)->failed, 1);
	cr_expect_eq(told(r, A, B)->silent, 2);
	peer_rig_free(r);
}

Test(o2ib_peer, port_down)
{
	struct peer_rig *r = peer_rig_new_up(MSEC);
	struct ulnet_nid a = peer_rig_nid(r, A);
	struct peer_msg *m[3];

	peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	m[0] = peer_rig_send(r, A, 2);
	simqp_port_set(r->fabric, &a, false, "a test");
	peer_rig_run(r, 10 * MSEC);
	expect_failed(m[0], -ENETDOWN, LNET_CAUSE_LOCAL_NO_ROUTE);
	cr_expect_eq(told(r, A, B)->disconnected, 1);
	cr_expect_eq(told(r, A, 2)->disconnected, 0);
	cr_expect_eq(r->nodes[A].ps.set.conns, 0);
	m[1] = peer_rig_send(r, A, B);
	cr_expect_eq(m[1]->status, -ENETDOWN);
	simqp_port_set(r->fabric, &a, true, NULL);
	peer_rig_run(r, 10 * MSEC);
	m[2] = peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	expect_sent(m[2]);
	peer_rig_free(r);
}

Test(o2ib_peer, device_removed)
{
	struct peer_rig *r = peer_rig_new_up(MSEC);
	struct ulnet_nid a = peer_rig_nid(r, A);
	struct peer_msg *m;

	peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	m = peer_rig_send(r, A, 2);
	simqp_remove(r->fabric, &a);
	peer_rig_run(r, 10 * MSEC);
	expect_failed(m, -ENODEV, LNET_CAUSE_LOCAL_NO_ROUTE);
	cr_expect_eq(told(r, A, B)->disconnected, 1);
	cr_expect_eq(r->nodes[A].ps.set.conns, 0);
	cr_expect_eq(r->nodes[A].ps.hash.count, 0);
	m = peer_rig_send(r, A, B);
	cr_expect_eq(m->status, -ENODEV);
	peer_rig_down(r, A, false);
	simqp_insert(r->fabric, &a);
	peer_rig_up(r, A);
	m = peer_rig_send(r, A, B);
	peer_rig_run(r, SEC);
	expect_sent(m);
	peer_rig_free(r);
}

/* The NI shuts down during an attempt: nobody is told. */
Test(o2ib_peer, stops)
{
	struct peer_rig *r = peer_rig_new_up(MSEC);
	struct ulnet_nid b;

	for (unsigned int i = 0; i < 12; i++) {
		peer_rig_send(r, A, B);
		peer_rig_send(r, B, A);
		peer_rig_run(r, i * MSEC / 2);
		peer_rig_down(r, A, i % 2);
		b = peer_rig_nid(r, B);
		cr_expect_eq(ib_peers_use(&r->nodes[B].ps, &b), false);
		peer_rig_up(r, A);
		peer_rig_run(r, 40 * SEC);
	}
	peer_rig_free(r);
}
