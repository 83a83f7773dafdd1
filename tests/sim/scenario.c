/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/rules.h"
#include "tests/sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/traffic.h"
#include "tests/sim/world.h"

#define NODES_MAX  6
#define RAILS	   3 /* of a node, at most */
#define OPERATIONS 600

const unsigned int scenario_seeds_long = 1000;
const uint64_t scenario_kept[] = {
	/* in memory: a node stands still while a throttled request keeps
	 * answers back */
	1104,
	/* in memory: a message is sent when its NI is stopping; another looks
	 * for a better path when some NIs of its node are gone */
	1258,
	/* in memory: a message fails while its node closes, and its peer NI has
	 * been pinged */
	2459,
	/* in memory: as 1104 */
	2691,
	0,
};

bool scenario_repeats(const struct run *r)
{
	(void)r;
	return true;
}

struct member {
	unsigned int nnids;
	struct ulnet_nid nids[RAILS_MAX];
	bool deleted[RAILS_MAX];
	struct run *run;
	unsigned int index;
};

#define DISTURBANCES 12

struct run {
	struct lnet_sim *sim;
	struct splits splits;
	struct traffic traffic;
	struct member members[NODES_MAX];
	unsigned int n;
	bool over;
	/* messages take long, so that many are under way */
	bool slow;
	bool harsh;		/* every fault, all the time */
	struct ulnet_conf conf; /* of all nodes */
	uint64_t disturbed[DISTURBANCES];
	struct rules rules;
};

static uint64_t rnd(struct run *r, uint64_t below)
{
	return lnet_sim_random(r->sim, below);
}

static bool chance(struct run *r, unsigned int percent)
{
	return rnd(r, 100) < percent;
}

static struct lnet *node_of(struct member *m)
{
	return lnet_sim_node(m->run->sim, m->index);
}

static struct member *some_member(struct run *r)
{
	return &r->members[rnd(r, r->n)];
}

/* ---- what happens to the cluster ---- */

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

static void toggle(struct run *r, struct member *m, unsigned int i)
{
	/* The NI comes back with so few credits that messages queue. */
	struct ulnet_ni_conf conf = { .nid = m->nids[i],
				      .credits = 1 + (uint32_t)rnd(r, 8),
				      .peer_credits = 1 + (uint32_t)rnd(r, 4) };

	if (m->deleted[i]) {
		if (!lnet_ni_add(node_of(m), &conf))
			m->deleted[i] = false;
	} else if (!lnet_ni_del(node_of(m), &m->nids[i])) {
		m->deleted[i] = true;
	}
}

/* Adds an NI that was deleted or, if there is none, deletes one. */
static void toggle_ni(struct run *r, struct member *m)
{
	unsigned int i = (unsigned int)rnd(r, m->nnids);

	for (unsigned int k = 0; k < m->nnids; k++)
		if (m->deleted[k])
			i = k;
	toggle(r, m, i);
}

static struct ulnet_nid some_nid(struct run *r)
{
	struct member *m = some_member(r);

	return chance(r, 20) ? LNET_NID_ANY : m->nids[rnd(r, m->nnids)];
}

static void random_link(struct run *r, struct ulnet_nid a, struct ulnet_nid b)
{
	struct ulnet_sim_link l = { .latency =
					    rnd(r, r->slow ? 20 * MS : MS / 5),
				    .jitter =
					    rnd(r, r->slow ? 5 * MS : MS / 10),
				    .reorder_window = rnd(r, 5 * MS) };

	if (chance(r, 50))
		l.bandwidth = 1000000 + rnd(r, 1000000000);
	if (chance(r, 30))
		l.connect = 1 + rnd(r, r->slow ? 50 * MS : MS);
	if (chance(r, 30))
		l.window = 1 + (uint32_t)rnd(r, 16);
	link_faults(r->sim, r->harsh, &l);
	lnet_sim_link_set(r->sim, &a, &b, &l);
}

static void separate(struct run *r)
{
	struct ulnet_nid a = some_nid(r), b = some_nid(r);

	split(&r->splits, r->sim, a, b, rnd(r, 50 * MS));
}

/* Changes rules. None damages contents, because this scenario checks them. */
static void change_rules(struct run *r, struct member *m)
{
	struct ulnet_nid a = some_nid(r), b = some_nid(r);

	if (node_of(m))
		rules_change(&r->rules, r->sim, node_of(m), &a, &b, 0);
}

static const char *const disturbances[DISTURBANCES] = {
	[0] = "a node crashes",
	[1] = "a partition begins",
	[2] = "an interface goes down",
	[3] = "an interface comes up",
	[4] = "a node stands still",
	[5] = "an interface is added, or deleted",
	[6] = "links change",
	[7] = "room for messages is added",
	[10] = "fault rules change",
};
/* for each number that is drawn: the index of the disturbance's name */
static const uint8_t disturbance_of[DISTURBANCES] = { 0, 1, 2, 3, 3,  5,
						      6, 7, 5, 5, 10, 10 };

static void disturb(struct run *r)
{
	struct member *m = some_member(r);
	const struct ulnet_nid *nid = &m->nids[rnd(r, m->nnids)];
	uint64_t which = rnd(r, DISTURBANCES);

	if (world_disturb(r->sim, r->n)) {
		r->disturbed[4]++;
		return;
	}
	r->disturbed[disturbance_of[which]]++;
	switch (which) {
	case 0:
		crash(r, m);
		break;
	case 1:
		separate(r);
		break;
	case 2:
		lnet_sim_ni_set(r->sim, nid, false);
		break;
	case 3:
	case 4:
		lnet_sim_ni_set(r->sim, nid, true);
		break;
	case 5:
	case 8:
	case 9:
		if (node_of(m))
			toggle_ni(r, m);
		break;
	case 6:
		random_link(r, some_nid(r), some_nid(r));
		break;
	case 10:
	case 11:
		change_rules(r, m);
		break;
	default:
		traffic_post(&r->traffic, m->index);
		break;
	}
}

static void step(void *arg)
{
	struct run *r = arg;
	struct member *m = some_member(r);

	traffic_go(&r->traffic, m->index, chance(r, 10) ? 30 : 1);
	if (chance(r, 15))
		disturb(r);
	m = some_member(r);
	if (chance(r, 10))
		traffic_unlink(&r->traffic, m->index);
	if (node_of(m) && chance(r, 20) &&
	    (m->deleted[0] || m->deleted[1] || m->deleted[2]))
		toggle_ni(r, m);
	lnet_sim_check(r->sim);
	if (r->traffic.left)
		lnet_sim_at(r->sim, rnd(r, 5 * MS), step, r);
}

/* ---- setting up ---- */

static int start(void *arg, unsigned int index, struct lnet *node)
{
	struct run *r = arg;

	memset(r->members[index].deleted, 0, sizeof(r->members[index].deleted));
	traffic_start(&r->traffic, index, node);
	return 0;
}

static void plan_member(struct run *r, unsigned int index, unsigned int rails)
{
	struct member *m = &r->members[index];

	m->run = r;
	m->index = index;
	m->nnids = rails;
	world_nids(m->nids, rails, index);
	traffic_add(&r->traffic, index, m->nids, rails);
}

static int set_up(struct run *r)
{
	unsigned int rails = 1 + (unsigned int)rnd(r, RAILS);
	bool same = chance(r, 75);
	int rc = world_new(r->sim);

	r->n = 2 + (unsigned int)rnd(r, NODES_MAX - 1);
	r->slow = chance(r, 25);
	r->harsh = chance(r, 25);
	lnet_conf_init(&r->conf);
	/* Few messages a peer: more have to wait. */
	if (chance(r, 40))
		r->conf.messages_max = 8 + (uint32_t)rnd(r, 16);
	/* Little memory for messages without a buffer: more of them wait, or
	 * are dropped. */
	if (chance(r, 40))
		r->conf.lazy_max = 1 + (uint32_t)rnd(r, 4);
	traffic_init(&r->traffic, r->sim, r->n, OPERATIONS);
	for (unsigned int i = 0; i < r->n; i++)
		plan_member(r, i,
			    same ? rails : 1 + (unsigned int)rnd(r, RAILS));
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
	int rc = set_up(r);

	if (!rc) {
		lnet_sim_at(r->sim, MS, step, r);
		/* Sometimes the run ends while traffic and faults are under
		 * way. */
		lnet_sim_run(r->sim, chance(r, 30) ? rnd(r, SEC) : 60 * SEC);
	}
	r->over = r->traffic.over = true;
	for (unsigned int i = 0; i < r->n; i++)
		if (node_of(&r->members[i]))
			rules_forget(&r->rules, r->sim,
				     node_of(&r->members[i]));
	return rc;
}

void scenario_tell(const struct run *r, scenario_tell_fn tell, void *arg)
{
	for (unsigned int i = 0; i < DISTURBANCES; i++)
		if (disturbances[i])
			tell(arg, "", disturbances[i], r->disturbed[i]);
	for (unsigned int i = 0; i < LNET_FAULT_KINDS; i++)
		tell(arg, "", rules_names[i], r->rules.struck[i]);
	world_tell(tell, arg);
}

unsigned int scenario_free(struct run *r)
{
	unsigned int left = traffic_fini(&r->traffic);

	free(r);
	return left;
}
