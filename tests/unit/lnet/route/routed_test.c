/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways of messages between nets: which gateway, there and back, longer
 * paths, circles, and what cannot be. (Gateways that fail: gateway_test.c.) */
#include "tests/unit/lnet/route/routed_rig.h"
#include "ulnet/loop.h"

/* ---- there and back ---- */

static void there_and_back(unsigned int cpts, enum ulnet_discovery discovery)
{
	struct lnet_sim *sim = two_nets(cpts, nids, discovery);
	const struct ulnet_event *ev;

	put_arrives(sim, 100);
	ev = &served.ev[served.n - 1];
	cr_assert_eq(ev->type, LNET_EVENT_PUT);
	cr_assert(nid_is(&ev->initiator.nid, "10.0.0.1@tcp"));
	cr_assert(nid_is(&ev->source, "10.0.0.1@tcp"));
	cr_assert(lnet_nid_net(&ev->sender) == net_of("tcp1"));
	put_arrives(sim, 40000);
	cr_assert_gt(routed_by(sim, FIRST) + routed_by(sim, SECOND_ROUTER), 3);
	routed_end(sim);
}

Test(routed, there_and_back)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		there_and_back(cpts, LNET_DISCOVERY_ON);
		there_and_back(cpts, LNET_DISCOVERY_OFF);
	}
}

/* Two equally good gateways take turns. */
Test(routed, gateways_take_turns)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_OFF);

	for (int i = 0; i < 50; i++)
		put_arrives(sim, 100);
	cr_assert_geq(counter(lnet_sim_node(sim, RIGHT), "recv_count"), 50);
	cr_assert_geq(routed_by(sim, FIRST), 30);
	cr_assert_geq(routed_by(sim, SECOND_ROUTER), 30);
	routed_end(sim);
}

/* An answer goes back through the gateway of its request. */
Test(routed, answers_go_back_the_same_way)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_OFF);
	const struct ulnet_nid second = nid_of("10.0.0.12@tcp");
	uint64_t before;

	cr_assert_eq(lnet_route_del(lnet_sim_node(sim, LEFT), net_of("tcp1"),
				    &second),
		     0);
	lnet_sim_run(sim, SECOND);
	before = routed_by(sim, SECOND_ROUTER);
	for (int i = 0; i < 10; i++)
		put_arrives(sim, 100);
	cr_assert_eq(routed_by(sim, SECOND_ROUTER), before);
	routed_end(sim);
}

/* A process that accepts no connections is reached only through the gateways
 * that it has sent through. */
static void answers_go_by(struct lnet_sim *sim, struct lnet *caller,
			  unsigned int other)
{
	struct ulnet_md umd = md_of(source, 10, 0, NULL);
	uint64_t before = routed_by(sim, other);
	struct ulnet_md_handle md = bind_md(caller, &umd);
	struct ulnet_id id;

	cr_assert_eq(LNetGetId(caller, 1, &id), 0);
	cr_assert_neq(id.pid & LNET_PID_USERFLAG, 0);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ,
			     id_of("10.0.1.1@tcp1"), PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run(sim, 100 * MSEC);
	md = bind_md(lnet_sim_node(sim, RIGHT), &umd);
	for (int i = 0; i < 6; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, id,
				     PORTAL, BITS, 0, 0),
			     0);
	lnet_sim_run(sim, 100 * MSEC);
	cr_assert_eq(routed_by(sim, other), before);
}

static void caller_is_reached(unsigned int cpts)
{
	struct ulnet_conf conf = { .accept = LNET_ACCEPT_NONE,
				   .discovery = LNET_DISCOVERY_OFF };
	struct lnet_sim *sim = two_nets(cpts, nids, LNET_DISCOVERY_OFF);
	int n = lnet_sim_node_add(sim, "10.0.0.2@tcp", &conf, NULL, NULL);
	struct ulnet_nid first = nid_of("10.0.0.11@tcp");
	struct lnet *caller;

	cr_assert_geq(n, 0);
	caller = lnet_sim_node(sim, (unsigned int)n);
	route_of(caller, "tcp1", "10.0.0.11@tcp", 1, 0);
	route_of(caller, "tcp1", "10.0.0.12@tcp", 1, 9);
	lnet_sim_run(sim, 100 * MSEC);
	answers_go_by(sim, caller, SECOND_ROUTER);
	cr_assert_eq(lnet_route_del(caller, net_of("tcp1"), &first), 0);
	lnet_sim_run(sim, 100 * MSEC);
	answers_go_by(sim, caller, FIRST);
	routed_end(sim);
}

Test(routed, caller_is_reached)
{
	caller_is_reached(1);
	caller_is_reached(3);
}

/* ---- which gateway ---- */

static const struct {
	const char *what;
	uint32_t hops[2], priority[2];
	int chosen; /* 0 or 1; -1: both */
} choices[] = {
	{ "the better priority", { 1, 1 }, { 1, 0 }, 1 },
	{ "priority before hops", { 1, 9 }, { 1, 0 }, 1 },
	{ "fewer hops", { 2, 1 }, { 0, 0 }, 1 },
	{ "hops that are not said are one", { 2, 0 }, { 0, 0 }, 1 },
	{ "one and none are the same", { 1, 0 }, { 3, 3 }, -1 },
};

Test(routed, choice)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(choices); i++) {
		struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_OFF);
		struct lnet *node = lnet_sim_node(sim, LEFT);
		const char *const gateways[2] = { "10.0.0.11@tcp",
						  "10.0.0.12@tcp" };
		uint64_t by[2];

		for (int g = 0; g < 2; g++) {
			const struct ulnet_nid nid = nid_of(gateways[g]);

			cr_assert_eq(lnet_route_del(node, net_of("tcp1"), &nid),
				     0);
			route_of(node, "tcp1", gateways[g], choices[i].hops[g],
				 choices[i].priority[g]);
		}
		lnet_sim_run(sim, SECOND);
		for (int k = 0; k < 4; k++)
			put_arrives(sim, 10);
		by[0] = routed_by(sim, FIRST);
		by[1] = routed_by(sim, SECOND_ROUTER);
		cr_assert_eq(by[0] > 0, choices[i].chosen != 1, "%s",
			     choices[i].what);
		cr_assert_eq(by[1] > 0, choices[i].chosen != 0, "%s",
			     choices[i].what);
		routed_end(sim);
	}
}

/* ---- who is told ---- */

struct heard {
	struct ulnet_peer_watch watch;
	unsigned int of_right;
};

static void hear(struct ulnet_peer_watch *watch, const struct ulnet_id *peer)
{
	struct heard *h = container_of(watch, struct heard, watch);

	h->of_right += nid_is(&peer->nid, "10.0.1.1@tcp1");
}

/* Messages to nodes behind a gateway may be lost with it: watchers of those
 * nodes are told, on whichever CPT. */
static void those_behind(unsigned int cpts)
{
	struct lnet_sim *sim = two_nets(cpts, nids, LNET_DISCOVERY_ON);
	struct lnet *node = lnet_sim_node(sim, LEFT);
	const struct ulnet_nid first = nid_of("10.0.0.11@tcp");
	const struct ulnet_nid right = nid_of("10.0.1.1@tcp1");
	struct heard heard = { .watch.disconnected = hear };
	const struct ulnet_nid left = nid_of("10.0.0.1@tcp");
	unsigned int cpt;

	put_arrives(sim, 100);
	cpt = (unsigned int)lnet_cpt_of(node, &right);
	lnet_peer_watch_add(node, cpt, &heard.watch);
	lnet_sim_cut(sim, &left, &first);
	lnet_sim_run(sim, SECOND);
	cr_assert_geq(heard.of_right, 1);
	lnet_peer_watch_del(node, cpt, &heard.watch);
	routed_end(sim);
}

Test(routed, peers_behind_a_gateway)
{
	those_behind(1);
	those_behind(3);
}

/* ---- a net that both nodes are on, and another path ---- */

static const char *const shared[NODES] = {
	[LEFT] = "10.0.0.1@tcp 10.0.2.1@tcp2",
	[FIRST] = "10.0.0.11@tcp 10.0.1.11@tcp1",
	[SECOND_ROUTER] = "10.0.0.12@tcp 10.0.1.12@tcp1",
	[RIGHT] = "10.0.1.1@tcp1 10.0.2.9@tcp2",
};

static uint64_t routed_by_both(struct lnet_sim *sim)
{
	return routed_by(sim, FIRST) + routed_by(sim, SECOND_ROUTER);
}

/* A PUT waits for a connection when the interface fails. */
static void net_fails_under_put(struct lnet_sim *sim)
{
	const struct ulnet_nid near = nid_of("10.0.2.1@tcp2");
	const struct ulnet_nid far = nid_of("10.0.2.9@tcp2");
	static struct seen seen;
	struct ulnet_md umd = md_of(source, 100, 0, &seen);

	seen.n = 0;
	umd.threshold = 2;
	umd.timeout = 5 * SECOND / 1000;
	lnet_sim_cut(sim, &near, &far);
	cr_assert_eq(LNetPut(LNET_NID_ANY,
			     bind_md(lnet_sim_node(sim, LEFT), &umd),
			     LNET_ACK_REQ, id_of("10.0.2.9@tcp2"), PORTAL, BITS,
			     0, 0),
		     0);
	lnet_sim_run(sim, MSEC / 5);
	cr_assert_eq(seen.n, 0);
	cr_assert_eq(lnet_sim_ni_set(sim, &near, false), 0);
	lnet_sim_run(sim, 6 * SECOND);
	seen_end(&seen, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
}

/* As with kernel nodes: while the net of a peer is down here, the peer is
 * reached through a gateway to another one of its nets. */
static void shared_net_down(unsigned int cpts)
{
	struct lnet_sim *sim = two_nets(cpts, shared, LNET_DISCOVERY_ON);
	const struct ulnet_nid near = nid_of("10.0.2.1@tcp2");
	uint64_t before;

	put_arrives(sim, 100);
	before = routed_by_both(sim);
	for (int i = 0; i < 4; i++)
		put_arrives(sim, 100);
	cr_assert_eq(routed_by_both(sim), before);
	net_fails_under_put(sim);
	for (int i = 0; i < 4; i++)
		put_arrives(sim, 40000);
	cr_assert_geq(routed_by_both(sim), before + 5);
	cr_assert_eq(lnet_sim_ni_set(sim, &near, true), 0);
	lnet_sim_run(sim, 2 * SECOND);
	before = routed_by_both(sim);
	for (int i = 0; i < 4; i++)
		put_arrives(sim, 100);
	cr_assert_eq(routed_by_both(sim), before);
	routed_end(sim);
}

Test(routed, shared_net_down)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++)
		shared_net_down(cpts);
}

/* ---- longer paths ---- */

static const char *const chain[NODES] = {
	[LEFT] = "10.0.0.1@tcp",
	[FIRST] = "10.0.0.11@tcp 10.0.1.11@tcp1",
	[SECOND_ROUTER] = "10.0.1.12@tcp1 10.0.2.12@tcp2",
	[RIGHT] = "10.0.2.1@tcp2",
};

static void two_hops(unsigned int cpts)
{
	const struct ulnet_conf conf = { 0 };
	struct lnet_sim *sim = nodes_and_routers(cpts, chain, &conf);
	struct seen seen;

	route_of(lnet_sim_node(sim, LEFT), "tcp2", "10.0.0.11@tcp", 2, 0);
	route_of(lnet_sim_node(sim, LEFT), "tcp1", "10.0.0.11@tcp", 1, 0);
	route_of(lnet_sim_node(sim, FIRST), "tcp2", "10.0.1.12@tcp1", 1, 0);
	route_of(lnet_sim_node(sim, SECOND_ROUTER), "tcp", "10.0.1.11@tcp1", 1,
		 0);
	route_of(lnet_sim_node(sim, RIGHT), "tcp", "10.0.2.12@tcp2", 2, 0);
	route_of(lnet_sim_node(sim, RIGHT), "tcp1", "10.0.2.12@tcp2", 1, 0);
	serve(sim, RIGHT);
	lnet_sim_run(sim, SECOND);
	for (int i = 0; i < 4; i++) {
		seen = put_to(sim, "10.0.2.1@tcp2", 50000);
		seen_end(&seen, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED,
			 LNET_CAUSE_OK);
	}
	cr_assert(route_info(sim, 1).multi_hop);
	cr_assert_not(route_info(sim, 0).multi_hop);
	routed_end(sim);
}

Test(routed, two_hops)
{
	two_hops(1);
	two_hops(2);
}

/* ---- a circle: three routers, each of which takes the next one for a gateway
 * to tcp9 ---- */

enum { SOURCE, INTO, A, B, C, CIRCLE };

static const char *const circle[CIRCLE] = {
	[INTO] = "10.0.8.11@tcp8 10.0.0.11@tcp",
	[A] = "10.0.0.12@tcp 10.0.1.12@tcp1 10.0.3.12@tcp3",
	[B] = "10.0.1.13@tcp1 10.0.2.13@tcp2",
	[C] = "10.0.2.14@tcp2 10.0.3.14@tcp3",
};

static const struct ulnet_sim_link long_wire = { .latency = 20 * MSEC };

static struct lnet_sim *circle_new(unsigned int cpts, const char *sender,
				   const char *gateway)
{
	struct ulnet_conf conf = { .discovery = LNET_DISCOVERY_OFF };
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	for (int i = 0; i < CIRCLE; i++)
		cr_assert_eq(lnet_sim_node_add(
				     sim, i == SOURCE ? sender : circle[i],
				     &conf, i == SOURCE ? NULL : start_router,
				     NULL),
			     i);
	cluster_links(sim, &long_wire);
	route_of(lnet_sim_node(sim, SOURCE), "tcp9", gateway, 4, 0);
	route_of(lnet_sim_node(sim, INTO), "tcp9", "10.0.0.12@tcp", 3, 0);
	route_of(lnet_sim_node(sim, A), "tcp9", "10.0.1.13@tcp1", 2, 0);
	route_of(lnet_sim_node(sim, A), "tcp8", "10.0.0.11@tcp", 1, 0);
	route_of(lnet_sim_node(sim, B), "tcp9", "10.0.2.14@tcp2", 2, 0);
	route_of(lnet_sim_node(sim, C), "tcp9", "10.0.3.12@tcp3", 2, 0);
	lnet_sim_run(sim, SECOND);
	return sim;
}

static void put_into_circle(struct lnet_sim *sim)
{
	struct seen seen = put_to(sim, "10.0.9.1@tcp9", 100);

	seen_end(&seen, LNET_EVENT_UNLINK, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_RESPONSE_TIMEOUT);
}

/* A router on the net of the message's source sees that it has gone round. */
Test(routed, circle_beside_its_source)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct lnet_sim *sim =
			circle_new(cpts, "10.0.0.1@tcp", "10.0.0.12@tcp");

		put_into_circle(sim);
		for (unsigned int i = A; i <= C; i++)
			cr_expect_eq(routed_by(sim, i), 1, "node %u", i);
		cr_expect_eq(
			counter(lnet_sim_node(sim, A), "drop_false_source"), 1);
		routed_end(sim);
	}
}

/* If the source is further away no router sees that: the message goes round
 * until the circle is broken. The simulator finds that, and calls it a
 * violation. */
Test(routed, circle_far_from_its_source)
{
	const struct ulnet_nid next = nid_of("10.0.1.13@tcp1");

	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct lnet_sim *sim =
			circle_new(cpts, "10.0.8.1@tcp8", "10.0.8.11@tcp8");
		struct lnet *a = lnet_sim_node(sim, A);
		uint64_t rounds;

		put_into_circle(sim);
		cr_assert_eq(lnet_route_del(a, net_of("tcp9"), &next), 0);
		lnet_sim_run(sim, SECOND);
		cr_expect_eq(counter(a, "drop_no_route"), 1);
		rounds = routed_by(sim, A);
		lnet_sim_run(sim, SECOND);
		cr_expect_eq(routed_by(sim, A), rounds);
		cr_expect_eq(lnet_sim_check(sim), 1, "it goes round");
		cr_expect_eq(lnet_sim_free(sim), 1);
	}
}

/* ---- what cannot be ---- */

static const struct {
	const char *what, *net, *gateway;
	uint32_t hops;
	int rc;
} refusals[] = {
	{ "its own net", "tcp", "10.0.0.11@tcp", 1, -EINVAL },
	{ "a gateway behind a gateway", "tcp5", "10.0.9.1@tcp9", 1,
	  -EHOSTUNREACH },
	{ "a gateway on the net itself", "tcp5", "10.0.9.1@tcp5", 1, -EINVAL },
	{ "itself as a gateway", "tcp5", "10.0.0.1@tcp", 1, -EINVAL },
	{ "0@lo", "tcp5", "0@lo", 1, -EINVAL },
	{ "too many hops", "tcp5", "10.0.0.11@tcp", 256, -EINVAL },
	{ "it has that one", "tcp1", "10.0.0.11@tcp", 1, -EEXIST },
	{ "a good one", "tcp5", "10.0.0.11@tcp", 255, 0 },
};

Test(routed, refused)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_OFF);
	struct lnet *node = lnet_sim_node(sim, LEFT);
	const struct ulnet_nid gateway = nid_of("10.0.0.13@tcp");

	for (unsigned int i = 0; i < ARRAY_SIZE(refusals); i++) {
		const struct ulnet_route r = { net_of(refusals[i].net),
					       nid_of(refusals[i].gateway),
					       refusals[i].hops, 0 };

		cr_assert_eq(lnet_route_add(node, &r), refusals[i].rc, "%s",
			     refusals[i].what);
	}
	cr_assert_eq(lnet_route_del(node, net_of("tcp1"), &gateway), -ENOENT);
	cr_assert_eq(lnet_routes(node, NULL, 0), 3);
	routed_end(sim);
}

/* Given up in the pause after its gateways have refused it: the event has the
 * path of the last attempt, from end to end. */
Test(routed, given_up_in_a_pause)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_OFF);
	const struct ulnet_sim_link refuses = { .connect = MSEC,
						.refuse = LNET_SIM_ALWAYS };
	const struct ulnet_nid any = LNET_NID_ANY;
	struct seen seen = { .n = 0 };
	struct ulnet_md umd = md_of(source, 100, 0, &seen);
	struct ulnet_md_handle md;

	put_arrives(sim, 100);
	cr_assert_eq(lnet_sim_link_set(sim, &any, &any, &refuses), 0);
	md = bind_md(lnet_sim_node(sim, LEFT), &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ,
			     id_of("10.0.1.1@tcp1"), PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run(sim, 5 * MSEC);
	cr_assert_eq(seen.n, 0);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 1);
	cr_expect_eq(seen.ev[0].paths_tried, 2);
	cr_expect(nid_is(&seen.ev[0].path_peer, "10.0.1.1@tcp1"));
	cr_expect(nid_is(&seen.ev[0].path_hop, "10.0.0.11@tcp") ||
		  nid_is(&seen.ev[0].path_hop, "10.0.0.12@tcp"));
	routed_end(sim);
}

Test(routed, no_route)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_ON);
	struct seen seen = put_to(sim, "10.0.7.1@tcp7", 10);

	seen_end(&seen, LNET_EVENT_SEND, -EHOSTUNREACH,
		 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_LOCAL_NO_ROUTE);
	routed_end(sim);
}

/* A message is dropped that came through another gateway than this node would
 * use for its source. */
Test(routed, drop_asym_route)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_OFF);
	struct lnet *right = lnet_sim_node(sim, RIGHT);
	const struct ulnet_nid first = nid_of("10.0.1.11@tcp1");
	uint64_t came;

	cr_assert_eq(lnet_route_del(right, net_of("tcp"), &first), 0);
	for (int i = 0; i < 4; i++)
		put_arrives(sim, 10);
	cr_assert_eq(lnet_setting_set(right, "drop_asym_route", 1), 0);
	came = routed_by(sim, FIRST);
	for (int i = 0; i < 20; i++)
		put_to(sim, "10.0.1.1@tcp1", 10);
	came = routed_by(sim, FIRST) - came;
	cr_assert_gt(came, 0);
	cr_assert_eq(counter(right, "drop_asym_route"), came);
	routed_end(sim);
}

/* ---- why ---- */

Test(routed, explained)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct lnet_sim *sim = two_nets(cpts, nids, LNET_DISCOVERY_ON);
		const struct ulnet_nid dst = nid_of("10.0.1.1@tcp1");
		struct ulnet_path_candidate c[16];
		struct ulnet_path path;
		int n = lnet_path_explain(lnet_sim_node(sim, LEFT), NULL, &dst,
					  &path, c, ARRAY_SIZE(c));

		cr_assert_geq(n, 4);
		cr_assert_eq(path.status, 0);
		cr_assert(nid_is(&path.local, "10.0.0.1@tcp"));
		cr_assert(nid_is(&path.peer, "10.0.1.1@tcp1"));
		cr_assert_eq(lnet_nid_net(&path.gateway), net_of("tcp"));
		cr_assert_eq(c[0].kind, LNET_PATH_GATEWAY);
		cr_assert_eq(c[1].kind, LNET_PATH_GATEWAY);
		cr_assert(c[0].why == LNET_PATH_CHOSEN ||
			  c[1].why == LNET_PATH_CHOSEN);
		routed_end(sim);
	}
}
