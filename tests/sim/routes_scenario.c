/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A row of nets, with one to three routers between neighbours, under random
 * traffic, faults, and changes of routes and policies. The simulator itself
 * checks operations, credits and routers' buffers. Once the faults are over,
 * every node must reach every other one within a minute and a half (an idle
 * gateway is pinged once a minute). Then all routers but one between any two
 * nets fail, each in another way, and every node must still reach every other
 * one.
 *
 *	net 0 --- routers --- net 1 --- routers --- net 2 ...
 */
#include "tests/sim/policies.h"
#include "tests/sim/rules.h"
#include "tests/sim/scenario.h"

#include <stdlib.h>
#include <ulnet/route.h>

#include "tests/sim/traffic.h"

#define NETS_MAX   4
#define BETWEEN	   3 /* routers between two nets, at most */
#define ENDS	   2 /* end nodes of a net, at most */
#define MEMBERS	   (NETS_MAX * ENDS + (NETS_MAX - 1) * BETWEEN)
#define OPERATIONS 500
#define CALM	   (90 * SEC)

const unsigned int scenario_seeds_long = 1000;
const uint64_t scenario_kept[] = { 0 };

bool scenario_repeats(const struct run *r)
{
	(void)r;
	return true;
}

struct member {
	struct run *run;
	unsigned int index;
	unsigned int net; /* the first net that it is on */
	bool router;	  /* it routes between that net and the next one */
	unsigned int nnids;
	struct ulnet_nid nids[RAILS_MAX];
};

enum disturbance {
	CRASH,
	PARTITION,
	NI_DOWN,
	NI_UP,
	LINKS,
	ROUTE_DEL,
	ROUTE_ADD,
	ROUTING_OFF,
	ROUTING_ON,
	FAULT_RULES,
	POLICIES,
	DISTURBANCES
};

static const char *const disturbances[DISTURBANCES] = {
	[CRASH] = "a node crashes",
	[PARTITION] = "a partition begins",
	[NI_DOWN] = "an interface goes down",
	[NI_UP] = "an interface comes up",
	[LINKS] = "links change",
	[ROUTE_DEL] = "a route is deleted",
	[ROUTE_ADD] = "routes are added",
	[ROUTING_OFF] = "routing is turned off",
	[ROUTING_ON] = "routing is turned on",
	[FAULT_RULES] = "fault rules change",
	[POLICIES] = "policies change",
};

enum harm {
	HARM_CRASH,
	HARM_ROUTING_OFF,
	HARM_DOWN, /* the interface on one of its nets is down */
	HARMS
};

static const char *const harms[HARMS] = {
	[HARM_CRASH] = "a router is dead",
	[HARM_ROUTING_OFF] = "a router passes nothing on",
	[HARM_DOWN] = "a side of a router is down",
};

struct run {
	struct lnet_sim *sim;
	struct splits splits;
	struct links links;
	struct traffic traffic;
	struct rules rules;
	struct member members[MEMBERS];
	unsigned int n, nets;
	struct ulnet_conf conf;
	/* buffers of each size, of a router; 0: the default */
	uint32_t buffers;
	bool over, harsh;
	uint64_t disturbed[DISTURBANCES];
	unsigned int asked, answered;
	bool one_way; /* one router is left between any two nets */
	uint64_t harmed[HARMS];
	/* pings that were lost before routers knew which interfaces of others
	 * were down */
	uint64_t lost;
};

static uint64_t rnd(struct run *r, uint64_t below)
{
	return lnet_sim_random(r->sim, below);
}

static bool chance(struct run *r, unsigned int percent)
{
	return rnd(r, 100) < percent;
}

static struct lnet *node_of(const struct member *m)
{
	return lnet_sim_node(m->run->sim, m->index);
}

static struct member *some_member(struct run *r)
{
	return &r->members[rnd(r, r->n)];
}

static uint32_t net_id(unsigned int net)
{
	return LNET_NET(net % 2 ? LNET_TYPE_O2IB : LNET_TYPE_SOCK, net / 2);
}

/* ---- routes ---- */

/* Returns a NID of @m on @net, or NULL if it is not on that net. */
static const struct ulnet_nid *nid_on(const struct member *m, unsigned int net)
{
	for (unsigned int i = 0; i < m->nnids; i++)
		if (lnet_nid_net(&m->nids[i]) == net_id(net))
			return &m->nids[i];
	return NULL;
}

/* Adds routes to @far by all routers between @near, a net that @m is on, and
 * the next net towards @far. */
static void add_routes(struct lnet *node, const struct member *m,
		       unsigned int near, unsigned int far)
{
	const struct run *r = m->run;
	unsigned int between = far > near ? near : near - 1;

	for (unsigned int i = 0; i < r->n; i++) {
		const struct member *by = &r->members[i];
		struct ulnet_route route = {
			.net = net_id(far),
			.hops = far > near ? far - near : near - far,
		};

		if (!by->router || by->net != between || by == m)
			continue;
		route.gateway = *nid_on(by, near);
		/* the route may exist already */
		(void)lnet_route_add(node, &route);
	}
}

static void add_all_routes(struct lnet *node, const struct member *m)
{
	for (unsigned int far = 0; far < m->run->nets; far++) {
		unsigned int near = m->net;

		if (m->router && far > m->net)
			near = m->net + 1;
		if (far != near)
			add_routes(node, m, near, far);
	}
}

static void del_some_route(struct run *r, struct lnet *node)
{
	struct ulnet_route_info infos[NETS_MAX * BETWEEN];
	int n = lnet_routes(node, infos, NETS_MAX * BETWEEN);

	if (n > 0) {
		const struct ulnet_route *route =
			&infos[rnd(r, (uint64_t)n)].route;

		(void)lnet_route_del(node, route->net, &route->gateway);
	}
}

static void set_routing(const struct member *m, struct lnet *node, bool on)
{
	const uint32_t n = m->run->buffers;
	const struct ulnet_routing routing = { .enabled = on,
					       .buffers = { n, n, n } };

	if (m->router && lnet_routing_set(node, &routing))
		lnet_sim_fail(m->run->sim, "node %u: routing cannot be set",
			      m->index);
}

static void change_policies(const struct member *m, struct lnet *node)
{
	struct run *r = m->run;
	const struct member *other = some_member(r), *by = some_member(r);

	while (!by->router)
		by = some_member(r);
	policies_change(r->sim, node, &m->nids[rnd(r, m->nnids)],
			&other->nids[rnd(r, other->nnids)],
			&by->nids[rnd(r, by->nnids)]);
}

/* ---- what happens ---- */

static void restart(void *arg)
{
	struct member *m = arg;

	if (!m->run->over)
		lnet_sim_restart(m->run->sim, m->index);
}

static void crash(struct run *r, struct member *m)
{
	if (lnet_sim_crash(r->sim, m->index))
		return;
	traffic_crashed(&r->traffic, m->index);
	lnet_sim_at(r->sim, 1 + rnd(r, 100 * MS), restart, m);
}

static struct ulnet_nid some_nid(struct run *r)
{
	struct member *m = some_member(r);

	return chance(r, 20) ? LNET_NID_ANY : m->nids[rnd(r, m->nnids)];
}

static void random_link(struct run *r, struct ulnet_nid a, struct ulnet_nid b)
{
	struct ulnet_sim_link l = { .latency = rnd(r, MS / 5),
				    .jitter = rnd(r, MS / 10),
				    .reorder_window = rnd(r, 5 * MS) };

	if (chance(r, 50))
		l.bandwidth = 1000000 + rnd(r, 1000000000);
	if (chance(r, 30))
		l.connect = 1 + rnd(r, MS);
	if (chance(r, 30))
		l.window = 1 + (uint32_t)rnd(r, 16);
	link_faults(r->sim, r->harsh, &l);
	links_set(&r->links, r->sim, a, b, &l);
}

static void separate(struct run *r)
{
	struct ulnet_nid a = some_nid(r), b = some_nid(r);

	split(&r->splits, r->sim, a, b, rnd(r, 50 * MS));
}

static void disturb_node(struct run *r, struct member *m,
			 enum disturbance which)
{
	struct lnet *node = node_of(m);
	struct ulnet_nid a = some_nid(r), b = some_nid(r);

	if (!node)
		return;
	switch (which) {
	case ROUTE_DEL:
		del_some_route(r, node);
		break;
	case ROUTE_ADD:
		add_all_routes(node, m);
		break;
	case ROUTING_OFF:
		set_routing(m, node, false);
		break;
	case ROUTING_ON:
		set_routing(m, node, true);
		break;
	case POLICIES:
		change_policies(m, node);
		break;
	default:
		rules_change(&r->rules, r->sim, node, &a, &b, 0);
		break;
	}
}

static void disturb(struct run *r)
{
	struct member *m = some_member(r);
	const struct ulnet_nid *nid = &m->nids[rnd(r, m->nnids)];
	enum disturbance which = (enum disturbance)rnd(r, DISTURBANCES);

	r->disturbed[which]++;
	switch (which) {
	case CRASH:
		crash(r, m);
		break;
	case PARTITION:
		separate(r);
		break;
	case NI_DOWN:
	case NI_UP:
		lnet_sim_ni_set(r->sim, nid, which == NI_UP);
		break;
	case LINKS:
		random_link(r, some_nid(r), some_nid(r));
		break;
	default:
		disturb_node(r, m, which);
		break;
	}
}

static void check_policies(struct run *r, const struct member *from,
			   const struct member *to)
{
	if (node_of(from))
		policies_check(r->sim, node_of(from), &to->nids[0],
			       to->nnids == 1);
}

static void step(void *arg)
{
	struct run *r = arg;

	traffic_go(&r->traffic, some_member(r)->index, chance(r, 10) ? 30 : 2);
	if (chance(r, 15))
		disturb(r);
	if (chance(r, 10))
		traffic_unlink(&r->traffic, some_member(r)->index);
	if (chance(r, 60))
		check_policies(r, some_member(r), some_member(r));
	lnet_sim_check(r->sim);
	if (r->traffic.left)
		lnet_sim_at(r->sim, rnd(r, 5 * MS), step, r);
}

/* ---- the end: nothing is in the way any more ---- */

static void heal(struct run *r)
{
	splits_heal(&r->splits);
	links_heal(&r->links, r->sim);
	for (unsigned int i = 0; i < r->n; i++) {
		struct member *m = &r->members[i];

		if (!node_of(m))
			lnet_sim_restart(r->sim, m->index);
		rules_forget(&r->rules, r->sim, node_of(m));
		for (unsigned int k = 0; k < m->nnids; k++)
			lnet_sim_ni_set(r->sim, &m->nids[k], true);
		set_routing(m, node_of(m), true);
		add_all_routes(node_of(m), m);
	}
}

static void reached(void *arg, int status, const struct ulnet_ping_info *info)
{
	struct run *r = arg;

	(void)info;
	r->answered += status == 0;
}

/* Does a ping from @from reach @to? */
static bool reaches(struct run *r, const struct member *from,
		    const struct member *to)
{
	const struct ulnet_id id = { to->nids[0], LNET_PID_LUSTRE };
	bool does;

	if (lnet_ping(node_of(from), id, 10000000, reached, r)) {
		lnet_sim_fail(r->sim, "node %u: no ping can be sent",
			      from->index);
		return true;
	}
	r->asked++;
	lnet_sim_run(r->sim, 11 * SEC);
	does = r->answered == r->asked;
	r->answered = r->asked;
	return does;
}

typedef void (*pair_fn)(struct run *r, const struct member *from,
			const struct member *to);

static void all_to_all(struct run *r, pair_fn fn)
{
	for (unsigned int i = 0; i < r->n; i++)
		for (unsigned int k = 0; k < r->n; k++)
			if (i != k && !r->members[i].router &&
			    !r->members[k].router)
				fn(r, &r->members[i], &r->members[k]);
}

static void must_reach(struct run *r, const struct member *from,
		       const struct member *to)
{
	if (!reaches(r, from, to))
		lnet_sim_fail(r->sim,
			      "node %u does not reach node %u, %u hops away, "
			      "though %s",
			      from->index, to->index,
			      to->net > from->net ? to->net - from->net
						  : from->net - to->net,
			      r->one_way ? "there is one way"
					 : "nothing is in the way");
	check_policies(r, from, to);
}

/* ---- one way that is left ---- */

static void side_down(struct run *r, const struct member *m, unsigned int net)
{
	for (unsigned int i = 0; i < m->nnids; i++)
		if (lnet_nid_net(&m->nids[i]) == net_id(net))
			lnet_sim_ni_set(r->sim, &m->nids[i], false);
}

static void harm_router(struct run *r, struct member *m)
{
	enum harm harm = (enum harm)rnd(r, HARMS);

	r->harmed[harm]++;
	switch (harm) {
	case HARM_CRASH:
		if (!lnet_sim_crash(r->sim, m->index))
			traffic_crashed(&r->traffic, m->index);
		break;
	case HARM_ROUTING_OFF:
		set_routing(m, node_of(m), false);
		break;
	default:
		side_down(r, m, m->net + (unsigned int)rnd(r, 2));
		break;
	}
}

/* Gives all links connections, in which up to 16 messages wait until they are
 * received: only a node that sends to a dead node notices that it is dead. */
static void connect_all(struct run *r)
{
	const struct ulnet_sim_link link = { .latency = MS / 20,
					     .connect = MS,
					     .window = 16 };

	links_set_all(&r->links, r->sim, &link);
}

static void leave_one_way(struct run *r)
{
	connect_all(r);
	for (unsigned int net = 0; net + 1 < r->nets; net++) {
		struct member *of[BETWEEN];
		unsigned int n = 0, stays;

		for (unsigned int i = 0; i < r->n; i++)
			if (r->members[i].router && r->members[i].net == net)
				of[n++] = &r->members[i];
		stays = (unsigned int)rnd(r, n);
		for (unsigned int i = 0; i < n; i++)
			if (i != stays)
				harm_router(r, of[i]);
	}
	r->one_way = true;
}

/* Sends a ping, which may be lost: losses show which routers are dead. */
static void try_to_reach(struct run *r, const struct member *from,
			 const struct member *to)
{
	r->lost += !reaches(r, from, to);
}

/* ---- setting up ---- */

static int start(void *arg, unsigned int index, struct lnet *node)
{
	struct run *r = arg;
	struct member *m = &r->members[index];

	set_routing(m, node, true);
	add_all_routes(node, m);
	for (uint64_t i = chance(r, 50) ? rnd(r, 5) : 0; i; i--)
		change_policies(m, node);
	traffic_start(&r->traffic, index, node);
	return 0;
}

static void plan_nids(struct member *m, unsigned int net, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		m->nids[m->nnids++] = lnet_nid_make(
			net_id(net),
			0x0a000001 + (net << 20) + (i << 16) + m->index);
}

static void plan_member(struct run *r, unsigned int net, bool router)
{
	struct member *m = &r->members[r->n];

	*m = (struct member){ r, r->n, net, router, 0, { { 0 } } };
	plan_nids(m, net, 1 + (unsigned int)rnd(r, 2));
	if (router)
		plan_nids(m, net + 1, 1 + (unsigned int)rnd(r, 2));
	r->n++;
}

static void plan_all(struct run *r)
{
	r->nets = 2 + (unsigned int)rnd(r, NETS_MAX - 1);
	for (unsigned int net = 0; net < r->nets; net++) {
		for (uint64_t i = 1 + rnd(r, ENDS); i; i--)
			plan_member(r, net, false);
		for (uint64_t i = 1 + rnd(r, BETWEEN); i && net + 1 < r->nets;
		     i--)
			plan_member(r, net, true);
	}
}

static int set_up(struct run *r)
{
	int rc = 0;

	plan_all(r);
	r->harsh = chance(r, 20);
	r->buffers = chance(r, 50) ? 1 + (uint32_t)rnd(r, 8) : 0;
	lnet_conf_init(&r->conf);
	if (chance(r, 30))
		r->conf.discovery = LNET_DISCOVERY_OFF;
	traffic_init(&r->traffic, r->sim, r->n, OPERATIONS);
	for (unsigned int i = 0; i < r->n; i++)
		traffic_add(&r->traffic, i, r->members[i].nids,
			    r->members[i].nnids);
	for (unsigned int i = 0; i < r->n && rc >= 0; i++)
		rc = cluster_node_add(r->sim, r->members[i].nids,
				      r->members[i].nnids, &r->conf, start, r);
	random_link(r, LNET_NID_ANY, LNET_NID_ANY);
	return rc < 0 ? rc : 0;
}

struct run *scenario_new(struct lnet_sim *sim)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->sim = sim;
	return r;
}

int scenario_play(struct run *r)
{
	bool early;
	int rc = set_up(r);

	if (rc)
		return rc;
	early = chance(r, 20);
	lnet_sim_at(r->sim, MS, step, r);
	/* Sometimes the run ends while traffic and faults are under way. */
	lnet_sim_run(r->sim, early ? rnd(r, SEC) : 20 * SEC);
	r->over = true;
	if (!early) {
		r->traffic.left = 0;
		heal(r);
		lnet_sim_run(r->sim, CALM);
		all_to_all(r, must_reach);
		leave_one_way(r);
		all_to_all(r, try_to_reach);
		lnet_sim_run(r->sim, CALM);
		all_to_all(r, must_reach);
	}
	r->traffic.over = true;
	return 0;
}

void scenario_tell(const struct run *r, scenario_tell_fn tell, void *arg)
{
	for (unsigned int i = 0; i < DISTURBANCES; i++)
		tell(arg, "", disturbances[i], r->disturbed[i]);
	for (unsigned int i = 0; i < LNET_FAULT_KINDS; i++)
		tell(arg, "", rules_names[i], r->rules.struck[i]);
	for (unsigned int i = 0; i < HARMS; i++)
		tell(arg, "at the end, ", harms[i], r->harmed[i]);
	tell(arg, "at the end, ", "pings lost by routers that have failed",
	     r->lost);
}

unsigned int scenario_free(struct run *r)
{
	unsigned int left = traffic_fini(&r->traffic);

	free(r);
	return left;
}
