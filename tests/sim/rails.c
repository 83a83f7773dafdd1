/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "tests/sim/rpc_run.h"
#include "tests/sim/traffic.h"

#define OPERATIONS 1000 /* operations of LNet itself, beside the calls */

struct rails {
	struct traffic traffic;
	/* deleted[node][rail]: that interface is deleted */
	bool (*deleted)[RAILS_MAX];
	struct rail {
		struct run *run;
		unsigned int index;
		bool cut;
	} rail[RAILS_MAX];
	struct one_way {
		struct run *run;
		struct ulnet_nid src, dst;
	} one_way[SPLITS_MAX]; /* the oldest one is overwritten */
	unsigned int nways;
};

static struct member *some_member(struct run *r)
{
	return &r->members[rnd(r, r->n)];
}

static struct lnet *node_of(const struct member *m)
{
	return lnet_sim_node(m->run->sim, m->index);
}

/* ---- interfaces ---- */

/* Returns an interface of @m that is allowed to fail. */
static unsigned int some_rail(const struct member *m)
{
	const struct run *r = m->run;
	unsigned int i = (unsigned int)rnd(m->run, m->nnids);

	if (r->weather != WEATHER_SPARED || i != r->spare)
		return i;
	return (i + 1) % m->nnids;
}

static bool *deleted(const struct member *m, unsigned int i)
{
	return &m->run->rails->deleted[m->index][i];
}

static unsigned int nis_left(const struct member *m)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < m->nnids; i++)
		n += !*deleted(m, i);
	return n;
}

/* Does nothing while an interface of this NID is still being deleted. */
static void ni_add(struct member *m, unsigned int i)
{
	struct ulnet_ni_conf conf = { .nid = m->nids[i] };

	/* Sometimes the interface has so few credits that messages queue. */
	if (chance(m->run, 50))
		conf.credits = conf.peer_credits = 1 + (uint32_t)rnd(m->run, 8);
	if (lnet_ni_add(node_of(m), &conf))
		return;
	*deleted(m, i) = false;
	tally_count(m->run, NI_IS_ADDED);
}

static void ni_del(struct member *m, unsigned int i)
{
	if (nis_left(m) == 1 || lnet_ni_del(node_of(m), &m->nids[i]))
		return;
	*deleted(m, i) = true;
	tally_count(m->run, NI_IS_DELETED);
}

static void ni_toggle(struct run *r)
{
	struct member *m = some_member(r);
	unsigned int i = some_rail(m);

	if (!node_of(m))
		return;
	if (*deleted(m, i))
		ni_add(m, i);
	else
		ni_del(m, i);
}

static void ni_set(struct run *r, bool up)
{
	struct member *m = some_member(r);
	const struct ulnet_nid *nid = &m->nids[some_rail(m)];

	if (!lnet_sim_ni_set(r->sim, nid, up) && !up)
		tally_count(r, NI_IS_DOWN);
}

/* ---- between nodes ---- */

/* Cuts the rail, so that nothing passes on it, or mends it. */
static void rail_set(struct rail *rail, bool cut)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	struct run *r = rail->run;

	for (unsigned int i = 0; i < r->n; i++)
		if (rail->index < r->members[i].nnids)
			lnet_sim_partition(r->sim,
					   &r->members[i].nids[rail->index],
					   &any, cut);
	rail->cut = cut;
}

static void rail_mend(void *arg)
{
	struct rail *rail = arg;

	if (rail->cut)
		rail_set(rail, false);
}

static void rail_cut(struct run *r)
{
	struct rail *rail = &r->rails->rail[some_rail(some_member(r))];

	if (rail->cut)
		return;
	rail_set(rail, true);
	tally_count(r, RAIL_IS_CUT);
	lnet_sim_at(r->sim, rnd(r, chance(r, 20) ? 5 * SEC : 200 * MS),
		    rail_mend, rail);
}

static void one_way_mend(void *arg)
{
	static const struct ulnet_sim_link perfect = { .latency = 10 * US };
	struct one_way *w = arg;

	links_set(&w->run->links, w->run->sim, w->src, w->dst, &perfect);
}

/* Cuts one direction between two nodes on a rail, or makes a hole in it. */
static void one_way(struct run *r)
{
	struct ulnet_sim_link deaf = { .latency = 10 * US,
				       .hole = link_hole(r->sim, 50) };
	struct rails *rails = r->rails;
	struct one_way *w = &rails->one_way[rails->nways++ % SPLITS_MAX];
	struct member *a = some_member(r), *b = some_member(r);

	if (!deaf.hole)
		deaf.loss = LNET_SIM_ALWAYS;
	if (w->run)
		one_way_mend(w);
	*w = (struct one_way){ r, a->nids[some_rail(a)],
			       b->nids[some_rail(b)] };
	links_set(&r->links, r->sim, w->src, w->dst, &deaf);
	tally_count(r, deaf.hole ? LINK_HAS_HOLE : LINK_IS_ONE_WAY);
	lnet_sim_at(r->sim, rnd(r, chance(r, 20) ? 5 * SEC : 200 * MS),
		    one_way_mend, w);
}

/* ---- a step of the run, and its end ---- */

static void disturb(struct run *r)
{
	switch (rnd(r, 12)) {
	case 0:
	case 1:
	case 2:
		ni_toggle(r);
		break;
	case 3:
	case 4:
		ni_set(r, false);
		break;
	case 5:
	case 6:
		ni_set(r, true);
		break;
	case 7:
		rail_cut(r);
		break;
	case 8:
		one_way(r);
		break;
	case 9:
	case 10:
		views_disturb(r);
		break;
	default:
		traffic_post(&r->rails->traffic, some_member(r)->index);
		break;
	}
}

/* Begins calls that must succeed, because one rail works all the time. */
static void spared_calls(struct run *r)
{
	static const struct probe p = { .us = 20 * SEC / US };

	if (chance(r, 10))
		caller_probe(some_member(r), &p);
}

void rails_step(struct run *r)
{
	if (!r->rails)
		return;
	if (r->weather == WEATHER_SPARED)
		spared_calls(r);
	traffic_go(&r->rails->traffic, some_member(r)->index,
		   chance(r, 10) ? 10 : 1);
	if (chance(r, 10))
		traffic_unlink(&r->rails->traffic, some_member(r)->index);
	if (r->weather != WEATHER_FAIR && chance(r, 15))
		disturb(r);
	if (chance(r, 15))
		liar_step(r);
}

void rails_start(struct run *r, unsigned int index, struct lnet *node)
{
	if (!r->rails)
		return;
	for (unsigned int i = 0; i < RAILS_MAX; i++)
		r->rails->deleted[index][i] = false;
	/* recovery_limit 0: ill interfaces are pinged until they are well, so
	 * that a run does not end by itself. */
	lnet_setting_set(node, "recovery_limit", 0);
	traffic_start(&r->rails->traffic, index, node);
}

void rails_crashed(struct run *r, unsigned int index)
{
	if (r->rails)
		traffic_crashed(&r->rails->traffic, index);
}

void rails_heal(struct run *r)
{
	if (!r->rails)
		return;
	r->rails->traffic.left = 0;
	views_heal(r);
	for (unsigned int i = 0; i < RAILS_MAX; i++)
		rail_mend(&r->rails->rail[i]);
	for (unsigned int i = 0; i < r->n; i++)
		for (unsigned int k = 0; k < r->members[i].nnids; k++)
			if (*deleted(&r->members[i], k) &&
			    node_of(&r->members[i]))
				ni_add(&r->members[i], k);
}

/* Within this time each interface is pinged, and each peer asked, at least once
 * more, even if that first has to wait for a node that does not answer, and
 * then as long again. */
#define SETTLED (2 * LNET_TIME + 60 * SEC)

void rails_settle(struct run *r)
{
	uint64_t end = lnet_sim_now(r->sim) + SETTLED;

	if (!r->rails)
		return;
	views_meet(r);
	while (!views_are_right(r, lnet_sim_now(r->sim) >= end) &&
	       lnet_sim_now(r->sim) < end)
		lnet_sim_run(r->sim, SEC);
}

void rails_over(struct run *r)
{
	if (r->rails)
		r->rails->traffic.over = true;
}

void rails_new(struct run *r)
{
	struct rails *rails = calloc(1, sizeof(*rails));

	if (!rails)
		abort();
	rails->deleted = calloc(r->n, sizeof(*rails->deleted));
	if (!rails->deleted)
		abort();
	for (unsigned int i = 0; i < RAILS_MAX; i++)
		rails->rail[i] = (struct rail){ .run = r, .index = i };
	traffic_init(&rails->traffic, r->sim, r->n, OPERATIONS);
	for (unsigned int i = 0; i < r->n; i++)
		traffic_add(&rails->traffic, i, r->members[i].nids,
			    r->members[i].nnids);
	r->rails = rails;
}

unsigned int rails_free(struct run *r)
{
	unsigned int left;

	if (!r->rails)
		return 0;
	left = traffic_fini(&r->rails->traffic);
	free(r->rails->deleted);
	free(r->rails);
	liar_free(r);
	return left;
}
