/* SPDX-License-Identifier: BSD-3-Clause */
/* Gateways that stand still, are slow, or fail, and what they say of
 * themselves. */
#include "tests/unit/lnet/route/routed_rig.h"
#include "ulnet/fault.h"

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
Test(gateway, frozen_gateway)
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
Test(gateway, gateway_of_a_silent_target)
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
Test(gateway, checks_of_idle_gateways)
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

/* ---- a gateway that is slow ---- */

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

Test(gateway, slow_gateway)
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

Test(gateway, router_dies)
{
	router_dies(1);
	router_dies(3);
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

Test(gateway, killed_under_load)
{
	killed_under_load(1);
	killed_under_load(2);
}

/* ---- what routers say of themselves ---- */

/* The router announces that its far side is down. */
Test(gateway, far_side_down)
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
Test(gateway, far_side_deaf)
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
Test(gateway, deaf_side_is_pinged)
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
Test(gateway, deaf_side_is_told_soon)
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

Test(gateway, routing_turned_off)
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
