/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes on two nets, and routers between them (requirements B1, B3 to B5):
 *
 *	0: 10.0.0.1@tcp --- 1: 10.0.0.11@tcp 10.0.1.11@tcp1 --- 3: 10.0.1.1@tcp1
 *		       \--- 2: 10.0.0.12@tcp 10.0.1.12@tcp1 ---/
 */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"
#include "ulnet/fault.h"
#include "ulnet/loop.h"
#include "ulnet/route.h"

#define SECOND (1000 * MSEC)
#define PORTAL 5
#define BITS   0x77

enum { LEFT, FIRST, SECOND_ROUTER, RIGHT, NODES };

static const char *const nids[NODES] = {
	[LEFT] = "10.0.0.1@tcp",
	[FIRST] = "10.0.0.11@tcp 10.0.1.11@tcp1",
	[SECOND_ROUTER] = "10.0.0.12@tcp 10.0.1.12@tcp1",
	[RIGHT] = "10.0.1.1@tcp1",
};

static struct seen served;
static uint8_t memory[65536], source[65536];

static uint32_t net_of(const char *text)
{
	uint32_t net;

	cr_assert_eq(lnet_net_parse(text, &net), 0);
	return net;
}

static void route_of(struct lnet *node, const char *net, const char *gateway,
		     uint32_t hops, uint32_t priority)
{
	const struct ulnet_route r = { net_of(net), nid_of(gateway), hops,
				       priority };

	cr_assert_eq(lnet_route_add(node, &r), 0);
}

static void routing_set(struct lnet *node, bool on)
{
	const struct ulnet_routing r = { .enabled = on };

	cr_assert_eq(lnet_routing_set(node, &r), 0);
}

/* Turns routing on; also after a restart. */
static int start_router(void *arg, unsigned int index, struct lnet *node)
{
	(void)arg;
	(void)index;
	routing_set(node, true);
	return 0;
}

static void serve(struct lnet_sim *sim, unsigned int index)
{
	struct lnet *node = lnet_sim_node(sim, index);
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_TRUNCATE |
			      LNET_MD_MANAGE_REMOTE,
		      NULL);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;

	served.n = 0;
	umd.user_ptr = &served;
	umd.handler = see;
	cr_assert_eq(LNetMEAttach(node, PORTAL, ANY_ID, BITS, 0, LNET_RETAIN,
				  LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &md), 0);
}

static const struct ulnet_sim_link wire = { .latency = MSEC / 10,
					    .connect = MSEC };

/* Returns a cluster of two nets with two routers between them, and routes
 * through both on either side. */
static struct lnet_sim *two_nets(unsigned int cpts, const char *const *names,
				 enum ulnet_discovery discovery)
{
	struct ulnet_conf conf = { .discovery = discovery };
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	for (int i = 0; i < NODES; i++)
		cr_assert_eq(lnet_sim_node_add(sim, names[i], &conf,
					       i == FIRST || i == SECOND_ROUTER
						       ? start_router
						       : NULL,
					       NULL),
			     i);
	cluster_links(sim, &wire);
	route_of(lnet_sim_node(sim, LEFT), "tcp1", "10.0.0.11@tcp", 0, 0);
	route_of(lnet_sim_node(sim, LEFT), "tcp1", "10.0.0.12@tcp", 0, 0);
	route_of(lnet_sim_node(sim, RIGHT), "tcp", "10.0.1.11@tcp1", 0, 0);
	route_of(lnet_sim_node(sim, RIGHT), "tcp", "10.0.1.12@tcp1", 0, 0);
	serve(sim, RIGHT);
	lnet_sim_run(sim, SECOND);
	return sim;
}

/* Ends the cluster after a time: gateways are pinged for ever, so events never
 * run out. */
static void routed_end(struct lnet_sim *sim)
{
	lnet_sim_run(sim, 100 * SECOND);
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
}

/* The left node PUTs @length bytes to @target. Returns the events of that. */
static struct seen put_to(struct lnet_sim *sim, const char *target,
			  uint32_t length)
{
	static struct seen seen;
	struct ulnet_md umd = md_of(source, length, 0, &seen);

	seen.n = 0;
	umd.threshold = 2;
	umd.timeout = 5 * SECOND / 1000;
	cr_assert_eq(LNetPut(LNET_NID_ANY,
			     bind_md(lnet_sim_node(sim, LEFT), &umd),
			     LNET_ACK_REQ, id_of(target), PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run(sim, 6 * SECOND);
	return seen;
}

static void put_arrives(struct lnet_sim *sim, uint32_t length)
{
	struct seen seen = put_to(sim, "10.0.1.1@tcp1", length);

	seen_end(&seen, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
}

static uint64_t routed_by(struct lnet_sim *sim, unsigned int index)
{
	return counter(lnet_sim_node(sim, index), "route_count");
}

/* Returns the left node's route through its gateway number @which. */
static struct ulnet_route_info route_info(struct lnet_sim *sim,
					  unsigned int which)
{
	struct ulnet_route_info infos[2];

	cr_assert_eq(lnet_routes(lnet_sim_node(sim, LEFT), infos, 2), 2);
	return infos[which];
}

/* ---- a gateway that stands still ---- */

/* Makes the node do nothing, though its LND acknowledges what comes in: as a
 * process that was stopped, for which the kernel goes on. */
static void freeze(struct lnet_sim *sim, unsigned int index)
{
	struct ulnet_fault fault;

	lnet_fault_init(&fault, LNET_FAULT_DROP);
	fault.rate = 1;
	cr_assert_eq(lnet_fault_add(lnet_sim_node(sim, index), &fault), 0);
}

struct tally {
	unsigned int answered, lost;
};

static void tally(const struct ulnet_event *ev)
{
	struct tally *t = ev->user_ptr;

	t->answered += ev->type == LNET_EVENT_ACK;
	t->lost += ev->type == LNET_EVENT_UNLINK;
}

/* The left node PUTs every 100 ms, @n times, with ACKs within 5 s. */
static void put_steadily(struct lnet_sim *sim, const char *target,
			 unsigned int n, struct tally *t)
{
	struct ulnet_md umd = md_of(source, 100, 0, NULL);

	umd.threshold = 2;
	umd.timeout = 5 * SECOND / 1000;
	umd.user_ptr = t;
	umd.handler = tally;
	while (n--) {
		cr_assert_eq(LNetPut(LNET_NID_ANY,
				     bind_md(lnet_sim_node(sim, LEFT), &umd),
				     LNET_ACK_REQ, id_of(target), PORTAL, BITS,
				     0, 0),
			     0);
		lnet_sim_run(sim, 100 * MSEC);
	}
}

/* It takes messages for two seconds: one without an answer from it, and one for
 * the answer to a ping. When it goes on, it is used again. */
Test(routed, frozen_gateway)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct lnet_sim *sim = two_nets(cpts, nids, LNET_DISCOVERY_OFF);
		struct tally first = { 0, 0 }, then = { 0, 0 };
		struct tally again = { 0, 0 };
		uint64_t routed;

		put_steadily(sim, "10.0.1.1@tcp1", 10, &first);
		cr_assert_eq(first.answered, 10);
		freeze(sim, FIRST);
		put_steadily(sim, "10.0.1.1@tcp1", 25, &first);
		put_steadily(sim, "10.0.1.1@tcp1", 50, &then);
		lnet_sim_run(sim, 6 * SECOND);
		cr_expect_gt(first.lost, 0);
		cr_expect_eq(then.lost, 0, "%u CPTs: %u", cpts, then.lost);
		cr_expect_eq(then.answered, 50);
		cr_assert_eq(lnet_fault_del(lnet_sim_node(sim, FIRST),
					    LNET_FAULT_DROP, NULL, NULL),
			     1);
		lnet_sim_run(sim, 3 * SECOND);
		routed = routed_by(sim, FIRST);
		put_steadily(sim, "10.0.1.1@tcp1", 20, &again);
		cr_expect_eq(again.answered, 20);
		cr_expect_gt(routed_by(sim, FIRST), routed);
		routed_end(sim);
	}
}

/* A target behind it that is silent is no fault of a gateway. */
Test(routed, gateway_of_a_silent_target)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_OFF);
	struct tally t = { 0, 0 };

	freeze(sim, RIGHT);
	put_steadily(sim, "10.0.1.1@tcp1", 50, &t);
	lnet_sim_run(sim, 6 * SECOND);
	cr_expect_eq(t.lost, 50);
	for (unsigned int i = 0; i < 2; i++)
		cr_expect_eq(route_info(sim, i).health, LNET_HEALTH_MAX);
	routed_end(sim);
}

/* How many GETs has the first router received in a time without traffic? */
static uint64_t checks(struct lnet_sim *sim, uint64_t ns)
{
	struct ulnet_ni_info before, after;

	cr_assert_eq(lnet_ni_info(lnet_sim_node(sim, FIRST), 1, &before), 0);
	lnet_sim_run(sim, ns);
	cr_assert_eq(lnet_ni_info(lnet_sim_node(sim, FIRST), 1, &after), 0);
	return after.received.get - before.received.get;
}

/* Gateways that are not used are checked as often as the setting says. */
Test(routed, checks_of_idle_gateways)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_OFF);

	lnet_sim_run(sim, 10 * SECOND);
	cr_expect_eq(checks(sim, 600 * SECOND), 10);
	cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, LEFT),
				      "alive_router_check_interval", 5),
		     0);
	lnet_sim_run(sim, 60 * SECOND);
	cr_expect_eq(checks(sim, 600 * SECOND), 120);
	routed_end(sim);
}

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

/* Of two equally good gateways the one is chosen for which fewer messages wait;
 * other CPTs know that, too. */
static void slow_gateway(unsigned int cpts)
{
	const struct ulnet_sim_link slow = { .latency = MSEC / 10,
					     .connect = MSEC,
					     .window = 1,
					     .bandwidth = 100000 };
	const struct ulnet_nid from = nid_of("10.0.0.1@tcp"),
			       to = nid_of("10.0.0.11@tcp");
	struct lnet_sim *sim = two_nets(cpts, nids, LNET_DISCOVERY_OFF);
	struct ulnet_md umd = md_of(source, 1000, 0, NULL);
	uint64_t before[2] = { routed_by(sim, FIRST),
			       routed_by(sim, SECOND_ROUTER) };
	struct ulnet_md_handle md;

	cr_assert_eq(lnet_sim_link_set(sim, &from, &to, &slow), 0);
	md = bind_md(lnet_sim_node(sim, LEFT), &umd);
	for (int i = 0; i < 200; i++) {
		cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ,
				     id_of("10.0.1.1@tcp1"), PORTAL, BITS, 0,
				     0),
			     0);
		lnet_sim_run(sim, MSEC);
	}
	cr_expect_leq(routed_by(sim, FIRST) - before[0], 40);
	cr_expect_geq(routed_by(sim, SECOND_ROUTER) - before[1], 160);
	/* Once nothing waits the gateways take turns again. */
	cr_assert_eq(lnet_sim_link_set(sim, &from, &to, &wire), 0);
	lnet_sim_run(sim, SECOND);
	before[0] = routed_by(sim, FIRST);
	for (int i = 0; i < 20; i++)
		put_arrives(sim, 10);
	cr_expect_geq(routed_by(sim, FIRST) - before[0], 10);
	routed_end(sim);
}

Test(routed, slow_gateway)
{
	slow_gateway(1);
	slow_gateway(3);
}

/* ---- gateways that fail ---- */

/* No PUT is lost when a router crashes, nor later. */
static void router_dies(unsigned int cpts)
{
	struct lnet_sim *sim = two_nets(cpts, nids, LNET_DISCOVERY_ON);

	put_arrives(sim, 100);
	cr_assert_eq(lnet_sim_crash(sim, FIRST), 0);
	for (int i = 0; i < 6; i++)
		put_arrives(sim, 100);
	cr_assert_not(route_info(sim, 0).up);
	cr_assert(route_info(sim, 1).up);
	cr_assert_eq(lnet_sim_restart(sim, FIRST), 0);
	lnet_sim_run(sim, 10 * SECOND);
	cr_assert(route_info(sim, 0).up);
	/* The router knows again which nodes to push to. */
	routing_set(lnet_sim_node(sim, FIRST), false);
	lnet_sim_run(sim, SECOND);
	cr_assert_str_eq(route_info(sim, 0).state, "down");
	routing_set(lnet_sim_node(sim, FIRST), true);
	lnet_sim_run(sim, SECOND);
	for (int i = 0; i < 6; i++)
		put_arrives(sim, 100);
	cr_assert_gt(routed_by(sim, FIRST), 0);
	routed_end(sim);
}

Test(routed, router_dies)
{
	router_dies(1);
	router_dies(3);
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

/* ---- how long it takes ---- */

/* A PUT every 2 ms, for a while, and how late the latest ACK has come. */
struct flow {
	struct lnet_sim *sim;
	unsigned int left, begun, ended;
	uint64_t latest; /* us */
};

static void flow_event(const struct ulnet_event *ev)
{
	struct flow *f = ev->user_ptr;

	if (!ev->terminal)
		return;
	cr_assert_eq(ev->status, 0, "%s: %s", lnet_event_name(ev->type),
		     lnet_cause_name(ev->cause));
	f->ended++;
	f->latest = MAX(f->latest, ev->elapsed);
}

static void flow_step(void *arg)
{
	struct flow *f = arg;
	struct ulnet_md umd = { .start = source,
				.length = 100,
				.threshold = 2,
				.user_ptr = f,
				.handler = flow_event,
				.timeout = 5 * SECOND / 1000 };

	if (!f->left--)
		return;
	f->begun++;
	cr_assert_eq(LNetPut(LNET_NID_ANY,
			     bind_md(lnet_sim_node(f->sim, LEFT), &umd),
			     LNET_ACK_REQ, id_of("10.0.1.1@tcp1"), PORTAL + 1,
			     BITS, 0, 0),
		     0);
	lnet_sim_at(f->sim, 2 * MSEC, flow_step, f);
}

/* Posts a buffer whose events nobody gets. */
static void sink(struct lnet_sim *sim, unsigned int index)
{
	struct lnet *node = lnet_sim_node(sim, index);
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, NULL);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;

	cr_assert_eq(LNetMEAttach(node, PORTAL + 1, ANY_ID, BITS, 0,
				  LNET_RETAIN, LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &md), 0);
}

/* A router crashes under load: messages whose answers are lost with it end
 * without one, so only those count that are sent afterwards. */
static void killed_under_load(unsigned int cpts)
{
	struct lnet_sim *sim = two_nets(cpts, nids, LNET_DISCOVERY_ON);
	struct flow flow = { .sim = sim, .left = 500 };

	sink(sim, RIGHT);
	put_arrives(sim, 100);
	cr_assert_eq(lnet_sim_crash(sim, FIRST), 0);
	flow_step(&flow);
	lnet_sim_run(sim, 6 * SECOND);
	cr_assert_eq(flow.ended, 500);
	cr_assert_lt(flow.latest, 200000, "%llu us",
		     (unsigned long long)flow.latest);
	routed_end(sim);
}

Test(routed, killed_under_load)
{
	killed_under_load(1);
	killed_under_load(2);
}

/* ---- what routers say of themselves ---- */

/* The router announces that its far side is down. */
Test(routed, far_side_down)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_ON);
	const struct ulnet_nid far = nid_of("10.0.1.11@tcp1");
	uint64_t before;

	put_arrives(sim, 100);
	cr_assert_eq(lnet_sim_ni_set(sim, &far, false), 0);
	lnet_sim_run(sim, SECOND);
	cr_assert_str_eq(route_info(sim, 0).state, "down");
	before = routed_by(sim, FIRST);
	for (int i = 0; i < 6; i++)
		put_arrives(sim, 100);
	cr_assert_eq(routed_by(sim, FIRST), before);
	cr_assert_eq(lnet_sim_ni_set(sim, &far, true), 0);
	lnet_sim_run(sim, 2 * SECOND);
	cr_assert_str_eq(route_info(sim, 0).state, "up");
	routed_end(sim);
}

/* A router accepts messages, but its far side reaches nobody: it announces
 * that, and after a few seconds all messages go through the other router. */
Test(routed, far_side_deaf)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct lnet_sim *sim = two_nets(cpts, nids, LNET_DISCOVERY_ON);
		const struct ulnet_nid far = nid_of("10.0.1.11@tcp1");
		const struct ulnet_nid right = nid_of("10.0.1.1@tcp1");
		uint64_t before;

		for (int i = 0; i < 4; i++)
			put_arrives(sim, 100);
		cr_assert_eq(lnet_sim_partition(sim, &far, &right, true), 0);
		for (int i = 0; i < 4; i++)
			put_to(sim, "10.0.1.1@tcp1", 100);
		cr_assert_not(route_info(sim, 0).up, "%u CPTs", cpts);
		before = routed_by(sim, FIRST);
		for (int i = 0; i < 10; i++)
			put_arrives(sim, 100);
		cr_assert_eq(routed_by(sim, FIRST), before);
		cr_assert_eq(lnet_sim_partition(sim, &far, &right, false), 0);
		lnet_sim_run(sim, 5 * SECOND);
		cr_assert(route_info(sim, 0).up, "%u CPTs", cpts);
		for (int i = 0; i < 10; i++)
			put_arrives(sim, 100);
		cr_assert_gt(routed_by(sim, FIRST), before);
		routed_end(sim);
	}
}

/* Notes whether the second NI is up in the ping information. */
static void note_far_up(void *arg, int status,
			const struct ulnet_ping_info *info)
{
	int *up = arg;

	cr_assert_eq(status, 0);
	cr_assert_eq(info->nnis, 2);
	*up = info->ni[1].up;
}

/* A node that pings the far side is told that it is up, since it has just
 * received something. */
Test(routed, deaf_side_is_pinged)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_OFF);
	const struct ulnet_nid far = nid_of("10.0.1.11@tcp1");
	const struct ulnet_nid right = nid_of("10.0.1.1@tcp1");
	int up = -1;

	for (int i = 0; i < 4; i++)
		put_arrives(sim, 100);
	cr_assert_eq(lnet_sim_partition(sim, &far, &right, true), 0);
	for (int i = 0; i < 4; i++)
		put_to(sim, "10.0.1.1@tcp1", 100);
	cr_assert_eq(lnet_ping(lnet_sim_node(sim, LEFT), id_of("10.0.0.11@tcp"),
			       1000000, note_far_up, &up),
		     0);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(up, 0);
	cr_assert_eq(lnet_sim_partition(sim, &far, &right, false), 0);
	cr_assert_eq(lnet_ping(lnet_sim_node(sim, RIGHT),
			       id_of("10.0.1.11@tcp1"), 1000000, note_far_up,
			       &up),
		     0);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(up, 1);
	routed_end(sim);
}

#define STEP (10 * MSEC)

/* Runs until the first router's far side loses health, or the route through
 * that router is down. Returns how long that took, ns; at most a minute. */
static uint64_t until_ill(struct lnet_sim *sim)
{
	struct ulnet_ni_info info;
	uint64_t ns = 0;

	do {
		lnet_sim_run(sim, STEP);
		cr_assert_eq(lnet_ni_info(lnet_sim_node(sim, FIRST), 2, &info),
			     0);
		ns += STEP;
	} while (info.health == LNET_HEALTH_MAX && ns < 60 * SECOND);
	return ns;
}

static uint64_t until_down(struct lnet_sim *sim)
{
	uint64_t ns = 0;

	while (route_info(sim, 0).up && ns < 60 * SECOND) {
		lnet_sim_run(sim, STEP);
		ns += STEP;
	}
	return ns;
}

/* Once messages were lost at the far side, the router's neighbours on the near
 * side know within half a second: after two pings, with nothing heard
 * meanwhile. */
Test(routed, deaf_side_is_told_soon)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_ON);
	const struct ulnet_nid far = nid_of("10.0.1.11@tcp1");
	const struct ulnet_nid right = nid_of("10.0.1.1@tcp1");
	static struct seen seen[4];

	for (int i = 0; i < 4; i++)
		put_arrives(sim, 100);
	cr_assert_eq(lnet_sim_partition(sim, &far, &right, true), 0);
	for (int i = 0; i < 4; i++) {
		struct ulnet_md umd = md_of(source, 100, 0, &seen[i]);

		umd.threshold = 2;
		cr_assert_eq(LNetPut(LNET_NID_ANY,
				     bind_md(lnet_sim_node(sim, LEFT), &umd),
				     LNET_ACK_REQ, id_of("10.0.1.1@tcp1"),
				     PORTAL, BITS, 0, 0),
			     0);
	}
	cr_assert_lt(until_ill(sim), 60 * SECOND);
	cr_assert_lt(until_down(sim), SECOND / 2);
	lnet_sim_partition(sim, &far, &right, false);
	lnet_sim_run(sim, 60 * SECOND);
	routed_end(sim);
}

Test(routed, routing_turned_off)
{
	struct lnet_sim *sim = two_nets(1, nids, LNET_DISCOVERY_ON);

	put_arrives(sim, 100);
	routing_set(lnet_sim_node(sim, FIRST), false);
	lnet_sim_run(sim, SECOND);
	cr_assert_str_eq(route_info(sim, 0).state, "down");
	for (int i = 0; i < 4; i++)
		put_arrives(sim, 100);
	/* If no router routes, that is known at once. */
	routing_set(lnet_sim_node(sim, SECOND_ROUTER), false);
	lnet_sim_run(sim, SECOND);
	{
		struct seen seen = put_to(sim, "10.0.1.1@tcp1", 10);

		seen_end(&seen, LNET_EVENT_SEND, -EHOSTUNREACH,
			 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_LOCAL_NO_ROUTE);
	}
	routing_set(lnet_sim_node(sim, FIRST), true);
	lnet_sim_run(sim, SECOND);
	put_arrives(sim, 100);
	routed_end(sim);
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
	struct ulnet_conf conf = { 0 };
	struct lnet_sim *sim;
	struct seen seen;

	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	for (int i = 0; i < NODES; i++)
		cr_assert_eq(lnet_sim_node_add(sim, chain[i], &conf,
					       i == FIRST || i == SECOND_ROUTER
						       ? start_router
						       : NULL,
					       NULL),
			     i);
	cluster_links(sim, &wire);
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
