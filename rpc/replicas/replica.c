/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/replicas/replica.h"

#include "base/backoff.h"
#include "base/hash.h"

const struct fsm_state replica_states[REPLICA_STATES] = {
	[REPLICA_USED] = { "used", FSM_TO(REPLICA_LEFT) },
	[REPLICA_LEFT] = { "left",
			   FSM_TO(REPLICA_USED) | FSM_TO(REPLICA_TRIED) },
	[REPLICA_TRIED] = { "tried",
			    FSM_TO(REPLICA_USED) | FSM_TO(REPLICA_LEFT) },
};

/* ---- hashes ---- */

/* All clients must choose the same server for a key, so this seed never
 * changes. */
#define HASH_SEED UINT64_C(0x756c6e6574)

uint64_t replica_hash(const struct ulnet_nid *nid)
{
	char text[LNET_NIDSTR_SIZE];

	return replica_key(text,
			   strlen(lnet_nid_format(nid, text, sizeof(text))));
}

uint64_t replica_key(const void *key, size_t length)
{
	return hash_bytes(key, length, HASH_SEED);
}

/* Returns how much a call with @key wants to go to @r. The server for which
 * that is the highest number is chosen (rendezvous hashing): if a server comes
 * or goes, keys of other servers stay where they are. */
static uint64_t wish_for(const struct replica *r, uint64_t key)
{
	uint64_t x = r->hash ^ key;

	/* mixes all bits, as splitmix64 does */
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* ---- the choice ---- */

static bool may_take(const struct replica *r, const struct choice *c)
{
	bool in_use = replica_is_used(r) || replica_is_due(r, c->now);

	return in_use != c->left && !replica_set_has(c->tried, r->number);
}

static uint32_t weight_of(const struct replica *r)
{
	return MAX(r->address.weight, 1u);
}

/* The servers that may be chosen, and have the best priority among these. */
struct group {
	struct replica *const *all;
	unsigned int n;
	const struct choice *c;
	uint16_t priority;
	unsigned int size;
	const struct room *room; /* NULL: any server is in the group */
};

static bool group_has(const struct group *g, unsigned int i)
{
	return g->all[i]->address.priority == g->priority &&
	       may_take(g->all[i], g->c) &&
	       (!g->room || replica_has_room(g->all[i], g->room));
}

static void group_find(struct group *g)
{
	g->size = 0;
	for (unsigned int i = 0; i < g->n; i++) {
		const struct replica *r = g->all[i];

		if (!may_take(r, g->c))
			continue;
		if (!g->size || r->address.priority < g->priority) {
			g->priority = r->address.priority;
			g->size = 0;
		}
		g->size += r->address.priority == g->priority;
	}
}

/* Returns the @k-th server of the group; the first is 0. */
static struct replica *group_at(const struct group *g, uint64_t k)
{
	for (unsigned int i = 0; i < g->n; i++)
		if (group_has(g, i) && !k--)
			return g->all[i];
	return NULL;
}

/* Takes those out of the group that hold more than their share. Returns NULL;
 * or, if that are all, the one that holds the least. */
static struct replica *group_narrow(struct group *g)
{
	struct replica *least = NULL;

	for (unsigned int i = 0; i < g->n; i++)
		if (group_has(g, i) &&
		    (!least || g->all[i]->under_way < least->under_way))
			least = g->all[i];
	g->room = g->c->room;
	g->size = 0;
	for (unsigned int i = 0; i < g->n; i++)
		g->size += group_has(g, i);
	return g->size ? NULL : least;
}

static struct replica *choose_by_key(const struct group *g)
{
	struct replica *best = NULL;

	for (unsigned int i = 0; i < g->n; i++)
		if (group_has(g, i) &&
		    (!best || wish_for(g->all[i], g->c->key) >
				      wish_for(best, g->c->key)))
			best = g->all[i];
	return best;
}

static uint64_t load_of(const struct replica *r)
{
	return (uint64_t)r->under_way +
	       (r->open ? atomic_load_explicit(r->open, memory_order_relaxed)
			: 0);
}

/* Has @a less to do for its weight than @b? One that has no room has most, even
 * if others than this set have filled it. */
static bool has_less(const struct replica *a, const struct replica *b,
		     uint64_t now)
{
	bool full = a->full_until > now;

	if (unlikely(full != (b->full_until > now)))
		return !full;
	return load_of(a) * weight_of(b) < load_of(b) * weight_of(a);
}

static struct replica *choose_least(const struct group *g)
{
	uint64_t first = (g->c->random >> 32) % g->size;
	uint64_t other = (uint32_t)g->c->random % MAX(g->size - 1, 1u);
	struct replica *a = group_at(g, first), *b;

	if (g->size == 1)
		return a;
	b = group_at(g, other + (other >= first));
	return has_less(b, a, g->c->now) ? b : a;
}

/* Servers take turns. For each choice every server gets as many points as its
 * weight. The one that then has most is chosen, and loses as many as all have
 * got. So a server with a high weight has turns spread evenly among those of
 * the others. */
static struct replica *choose_by_turns(const struct group *g)
{
	struct replica *best = NULL;
	int64_t all = 0;

	for (unsigned int i = 0; i < g->n; i++) {
		struct replica *r = g->all[i];

		if (!group_has(g, i))
			continue;
		r->turn += weight_of(r);
		all += weight_of(r);
		if (!best || r->turn > best->turn)
			best = r;
	}
	if (best)
		best->turn -= all;
	return best;
}

/* Returns a server that may be tried again; NULL: there is none. */
static struct replica *choose_due(const struct group *g)
{
	for (unsigned int i = 0; i < g->n; i++)
		if (group_has(g, i) && replica_is_due(g->all[i], g->c->now))
			return g->all[i];
	return NULL;
}

struct replica *replica_choose(struct replica *const *all, unsigned int n,
			       const struct choice *c)
{
	struct group g = { .all = all, .n = n, .c = c };
	struct replica *one;

	group_find(&g);
	if (!g.size)
		return NULL;
	if (c->keyed)
		return choose_by_key(&g);
	/* Who wants the first one wants no call at the others. */
	if (c->choice == ULRPC_CHOOSE_FIRST)
		return group_at(&g, 0);
	one = choose_due(&g);
	if (!one && c->room)
		one = group_narrow(&g);
	if (one)
		return one;
	switch (c->choice) {
	case ULRPC_CHOOSE_TURNS:
		return choose_by_turns(&g);
	default:
		return choose_least(&g);
	}
}

/* ---- leaving a server ---- */

static void replica_move(struct replica *r, enum replica_state to)
{
	fsm_move(&r->fsm, replica_states, to);
}

/* No call goes to @r for @pause. */
static void replica_pause(struct replica *r, uint64_t now, uint64_t pause)
{
	r->pause = MIN(pause, REPLICA_PAUSE_MAX);
	r->until = now + MIN(r->pause, UINT64_MAX - now);
}

void replica_try(struct replica *r, uint64_t now)
{
	if (!replica_is_due(r, now))
		return;
	if (r->fsm.state == REPLICA_LEFT)
		replica_move(r, REPLICA_TRIED);
	replica_pause(r, now, 2 * r->pause);
}

void replica_leave(struct replica *r, bool outlier, uint64_t now,
		   uint64_t random)
{
	static const struct backoff_law law = {
		.policy = BACKOFF_EQUAL,
		.base = REPLICA_PAUSE_MIN,
		.cap = REPLICA_PAUSE_MAX,
	};

	if (r->fsm.state == REPLICA_LEFT)
		return;
	replica_move(r, REPLICA_LEFT);
	r->outlier = outlier;
	r->failures = 0;
	replica_pause(r, now, backoff_pause(&law, ++r->left_times, random));
}

static void replica_use(struct replica *r)
{
	if (!replica_is_used(r))
		replica_move(r, REPLICA_USED);
	r->outlier = false;
}

void replica_is_back(struct replica *r)
{
	/* An outlier was connected all the time: it is left for another reason.
	 */
	if (!r->outlier)
		replica_use(r);
}

/* Of two trials of an outlier, the other one may have ended, without an answer,
 * while this one was under way: then the server was left again. */
static bool has_passed(const struct replica *r, bool trial)
{
	return r->fsm.state == REPLICA_TRIED ||
	       (trial && r->fsm.state == REPLICA_LEFT && r->outlier &&
		!r->down);
}

void replica_on_answer(struct replica *r, bool trial)
{
	r->failures = 0;
	if (has_passed(r, trial)) {
		/* times from before it was left do not count any more */
		r->samples = 0;
		r->left_times = 0;
		replica_use(r);
	}
}

void replica_on_full(struct replica *r, uint64_t until)
{
	r->full_until = until;
}

/* Returns the mean with @value, number @n, added: the plain mean of the first
 * eight, then each new value counts for an eighth. */
static uint64_t mean_of(uint64_t mean, uint64_t value, unsigned int n)
{
	return n == 1 ? value : mean + value / MIN(n, 8u) - mean / MIN(n, 8u);
}

void replica_on_time(struct replica *r, uint64_t ns, uint64_t usual)
{
	uint64_t relative =
		MIN(ns, UINT64_MAX / RELATIVE_USUAL) * RELATIVE_USUAL;

	r->samples += r->samples < REPLICA_SAMPLES;
	r->mean = mean_of(r->mean, ns, r->samples);
	r->relative =
		mean_of(r->relative, relative / MAX(usual, 1u), r->samples);
}

bool replica_on_failure(struct replica *r)
{
	return ++r->failures >= REPLICA_FAILURES ||
	       r->fsm.state == REPLICA_TRIED;
}

/* Is the mean of @r good enough to be compared with others? */
static bool has_mean(const struct replica *r)
{
	return replica_is_used(r) && r->samples >= REPLICA_SAMPLES;
}

/* Is the relative time of @r more than @times the median of the others'? */
static bool is_above(const struct replica *r, struct replica *const *all,
		     unsigned int n, unsigned int times)
{
	uint64_t limit = r->relative / times;
	/* the times beside the limit: the last below it, the first above */
	uint64_t below = 0, above = UINT64_MAX;
	unsigned int others = 0, faster = 0;

	if (!has_mean(r))
		return false;
	for (unsigned int i = 0; i < n; i++) {
		if (all[i] == r || !has_mean(all[i]))
			continue;
		others++;
		if (all[i]->relative < limit) {
			faster++;
			below = MAX(below, all[i]->relative);
		} else {
			above = MIN(above, all[i]->relative);
		}
	}
	/* The median of an even number is the mean of the two in the middle. */
	if (others && 2 * faster == others)
		return below + (above - below) / 2 < limit;
	return 2 * faster > others;
}

bool replica_is_slow(const struct replica *r, struct replica *const *all,
		     unsigned int n)
{
	return r->mean >= REPLICA_SLOW_MIN && is_above(r, all, n, REPLICA_SLOW);
}

bool replica_is_slower(const struct replica *r, struct replica *const *all,
		       unsigned int n)
{
	return is_above(r, all, n, REPLICA_SLOWER);
}

bool replica_may_leave(struct replica *const *all, unsigned int n)
{
	unsigned int outliers = 0;

	for (unsigned int i = 0; i < n; i++)
		outliers += all[i]->outlier;
	return 2 * (outliers + 1) <= n;
}
