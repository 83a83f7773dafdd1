/* SPDX-License-Identifier: BSD-3-Clause */
/* Which candidate is best, and what decided (requirement C3). */
#include "lnet/path/rank.h"

#include <criterion/criterion.h>

#include "base/hash.h"

#define KEYS  LNET_PATH_CRITERIA
#define FIRST LNET_PATH_PEER_UP
#define ALL   UINT32_MAX

/* This repeats the order of the header, so that nobody changes it unnoticed. */
Test(rank, criteria_decide_in_this_order)
{
	static const enum ulnet_path_why order[] = {
		LNET_PATH_PEER_UP,
		LNET_PATH_UNTRIED,
		LNET_PATH_PEER_HEALTH,
		LNET_PATH_PEER_PRIORITY,
		LNET_PATH_ROUTE_PREFERRED,
		LNET_PATH_ROUTE_PRIORITY,
		LNET_PATH_HOPS,
		LNET_PATH_HEALTH,
		LNET_PATH_NAMED,
		LNET_PATH_PRIORITY,
		LNET_PATH_LESS_TRIED,
		LNET_PATH_PREFERRED,
		LNET_PATH_CONNECTED,
		LNET_PATH_NEAR,
		LNET_PATH_CREDITS,
		LNET_PATH_PEER_TURN,
		LNET_PATH_TURN,
	};

	cr_assert_eq(ARRAY_SIZE(order), KEYS - FIRST);
	for (unsigned int i = 0; i < ARRAY_SIZE(order); i++) {
		struct path_rank a = { .key = { 0 } }, b = { .key = { 0 } };

		/* @a is better by this criterion, @b by all that follow. */
		a.key[order[i]] = 1;
		for (unsigned int k = i + 1; k < ARRAY_SIZE(order); k++)
			b.key[order[k]] = 1000;
		cr_assert(rank_is_better(ALL, &a, &b), "criterion %u", i);
		cr_assert_not(rank_is_better(ALL, &b, &a), "criterion %u", i);
		cr_assert_eq(rank_decides(ALL, &a, &b), order[i]);
		cr_assert_eq(rank_decides(ALL, &b, &a), order[i]);
	}
}

Test(rank, of_equals_none_is_better)
{
	struct path_rank a = { .key = { 0 } };

	a.key[LNET_PATH_HEALTH] = 1000;
	a.key[LNET_PATH_CREDITS] = -3;
	cr_assert_eq(rank_decides(ALL, &a, &a), LNET_PATH_CHOSEN);
	cr_assert_not(rank_is_better(ALL, &a, &a));
}

Test(rank, keys_of_values)
{
	cr_assert_gt(rank_of_use(0), rank_of_use(1));
	cr_assert_gt(rank_of_use(7), rank_of_use(8));
}

/* Within the range all distances are as good as the nearest (requirement C10).
 */
Test(rank, numa_range)
{
	static const struct {
		uint32_t a, b, range;
		int better; /* 1: a, -1: b, 0: neither */
	} rows[] = {
		{ 10, 10, 0, 0 },   { 10, 21, 0, 1 },
		{ 21, 10, 0, -1 },  { 10, 21, 21, 0 },
		{ 10, 21, 20, 1 },  { 10, 21, 100, 0 },
		{ 31, 21, 21, -1 }, { 31, 40, 21, 1 },
		{ 0, 1, 0, 1 },	    { UINT32_MAX, 40, 20, -1 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t a = rank_of_distance(rows[i].a, rows[i].range);
		int64_t b = rank_of_distance(rows[i].b, rows[i].range);

		cr_assert_eq((a > b) - (a < b), rows[i].better, "row %u", i);
	}
}

/* Returns a random rank. Keys have few values, so that many are equal; the last
 * one differs for each @i. */
static struct path_rank some_rank(uint64_t *seed, unsigned int i)
{
	struct path_rank r = { .key = { 0 } };

	for (unsigned int k = FIRST; k < KEYS; k++) {
		*seed = hash_u64(*seed, k);
		r.key[k] = (int64_t)(*seed % 3) - 1;
	}
	r.key[LNET_PATH_TURN] = rank_of_use(i + 1);
	return r;
}

static unsigned int best_of(const struct path_rank *r,
			    const unsigned int *order, unsigned int n)
{
	unsigned int best = order[0];

	for (unsigned int i = 1; i < n; i++)
		if (rank_is_better(ALL, &r[order[i]], &r[best]))
			best = order[i];
	return best;
}

#define SOME 7

static void shuffle(unsigned int *order, uint64_t *seed)
{
	for (unsigned int i = SOME - 1; i > 0; i--) {
		unsigned int k, was = order[i];

		*seed = hash_u64(*seed, i);
		k = (unsigned int)(*seed % (i + 1));
		order[i] = order[k];
		order[k] = was;
	}
}

/* The best candidate is the maximum of a total order: it is better than all
 * others, in whatever order they are compared. */
Test(rank, best_does_not_depend_on_the_order_of_candidates)
{
	uint64_t seed = 1;

	for (unsigned int round = 0; round < 2000; round++) {
		unsigned int order[SOME], best;
		struct path_rank r[SOME];

		for (unsigned int i = 0; i < SOME; i++) {
			order[i] = i;
			r[i] = some_rank(&seed, i);
		}
		best = best_of(r, order, SOME);
		for (unsigned int i = 0; i < SOME; i++)
			cr_assert(i == best ||
					  rank_is_better(ALL, &r[best], &r[i]),
				  "round %u", round);
		for (unsigned int again = 0; again < 10; again++) {
			shuffle(order, &seed);
			cr_assert_eq(best_of(r, order, SOME), best, "round %u",
				     round);
		}
	}
}

Test(rank, is_transitive_and_antisymmetric)
{
	uint64_t seed = 2;

	for (unsigned int round = 0; round < 20000; round++) {
		struct path_rank a = some_rank(&seed, 0);
		struct path_rank b = some_rank(&seed, 1);
		struct path_rank c = some_rank(&seed, 2);

		cr_assert_neq(rank_is_better(ALL, &a, &b),
			      rank_is_better(ALL, &b, &a));
		if (rank_is_better(ALL, &a, &b) && rank_is_better(ALL, &b, &c))
			cr_assert(rank_is_better(ALL, &a, &c));
	}
}

/* A candidate that was chosen is last in turn: if all else is equal, all are
 * chosen equally often. */
Test(rank, turns_are_taken_round_robin)
{
	struct path_rank r[3] = { 0 };
	unsigned int chosen[3] = { 0 }, order[3] = { 0, 1, 2 };
	uint64_t uses = 0;

	for (unsigned int i = 0; i < 30; i++) {
		unsigned int best = best_of(r, order, 3);

		cr_assert_eq(best, i % 3);
		chosen[best]++;
		r[best].key[LNET_PATH_TURN] = rank_of_use(++uses);
	}
	cr_assert(chosen[0] == 10 && chosen[1] == 10 && chosen[2] == 10);
}
