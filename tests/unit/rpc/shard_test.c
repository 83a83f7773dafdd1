/* SPDX-License-Identifier: BSD-3-Clause */
/* What all parts of RPC build on: match values, memory, waiting, and random
 * numbers. */
#include "base/pool.h"
#include "rpc/give_back.h"
#include "rpc/rpc.h"
#include "rpc/slab.h"
#include "tests/unit/lnet/cluster.h"

static int cmp(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

#define VALUES 5000
#define CPTS   3

Test(shard, match_values_are_never_used_again)
{
	static uint64_t values[2][CPTS * VALUES];
	struct lnet_sim *sim = cluster_with(2, CPTS, NULL);

	for (unsigned int i = 0; i < 2; i++) {
		struct ulrpc *rpc;
		unsigned int n = 0;

		cr_assert_eq(ulrpc_open(lnet_sim_node(sim, i), NULL, &rpc), 0);
		for (unsigned int v = 0; v < VALUES; v++)
			for (unsigned int c = 0; c < CPTS; c++)
				values[i][n++] =
					shard_match_alloc(&rpc->shards[c]);
		qsort(values[i], n, sizeof(values[i][0]), cmp);
		for (unsigned int v = 0; v < n; v++) {
			cr_assert_eq(values[i][v] & 0xff, 0);
			cr_assert(v == 0 || values[i][v] != values[i][v - 1]);
		}
		cr_assert_eq(ulrpc_close(rpc), 0);
	}
	/* Nor does another node use the same values, such as one that starts
	 * later with the same NID. */
	cr_assert_neq(memcmp(values[0], values[1], sizeof(values[0])), 0);
	cluster_end(sim);
}

struct alarm {
	struct ulnet_timer timer;
	bool rung;
};

static void ring(struct ulnet_timer *timer)
{
	container_of(timer, struct alarm, timer)->rung = true;
}

static bool has_rung(void *arg)
{
	return ((struct alarm *)arg)->rung;
}

/* wait_until() moves virtual time on to the event that is waited for, however
 * long nothing else happens. If no event is left, it fails. */
Test(shard, waiting_in_virtual_time_ends_when_nothing_is_to_happen)
{
	const uint64_t hours = 3600 * UINT64_C(1000000000);
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct alarm alarm = { .rung = false };
	struct wait wait;
	uint64_t now;

	cr_assert_eq(wait_init(&wait), 0);
	lnet_timer_init(&alarm.timer, ring);
	lnet_timer_arm(node, 0, &alarm.timer, lnet_sim_now(sim) + 5 * hours);
	cr_assert_eq(wait_until(&wait, node, has_rung, &alarm, TIME_NEVER), 0);
	cr_assert_geq(lnet_sim_now(sim), 5 * hours);
	alarm.rung = false;
	now = lnet_sim_now(sim);
	cr_assert_eq(wait_until(&wait, node, has_rung, &alarm, TIME_NEVER),
		     -EDEADLK);
	cr_assert_eq(lnet_sim_now(sim), now);
	wait_fini(&wait);
	cluster_end(sim);
}

Test(shard, random_numbers_are_within_their_bounds)
{
	struct lnet_sim *sim = cluster(1);
	unsigned int seen[4] = { 0 };
	struct ulrpc *rpc;

	cr_assert_eq(ulrpc_open(lnet_sim_node(sim, 0), NULL, &rpc), 0);
	for (unsigned int i = 0; i < 4000; i++) {
		uint64_t r = shard_random(&rpc->shards[0], 3);

		cr_assert_leq(r, 3);
		seen[r]++;
		cr_assert_eq(shard_random(&rpc->shards[0], 0), 0);
	}
	for (unsigned int i = 0; i < 4; i++)
		cr_assert(seen[i] > 800 && seen[i] < 1200, "%u", seen[i]);
	cr_assert_eq(ulrpc_close(rpc), 0);
	cluster_end(sim);
}

Test(shard, slab_gives_what_is_asked_for)
{
	static const size_t sizes[] = { 1,    255,     256,	257,	4096,
					4097, 1 << 20, 4 << 20, 5 << 20 };
	void *piece[ARRAY_SIZE(sizes)][8];
	struct slab slab;

	slab_init(&slab, NULL);
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++)
			for (unsigned int j = 0; j < 8; j++) {
				piece[i][j] = slab_get(&slab, sizes[i]);
				cr_assert_not_null(piece[i][j]);
				memset(piece[i][j], (int)(i * 8 + j), sizes[i]);
			}
		for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++)
			for (unsigned int j = 0; j < 8; j++) {
				const uint8_t *p = piece[i][j];

				cr_assert_eq(p[0], i * 8 + j);
				cr_assert_eq(p[sizes[i] - 1], i * 8 + j);
				slab_put(&slab, piece[i][j], sizes[i]);
			}
	}
	cr_assert_eq(slab.used, 0);
	slab_fini(&slab);
}

/* slab_size() is at least the size, and not much more. */
Test(shard, slab_sizes)
{
	for (size_t size = 1; size < 3000000; size += 1 + size / 100) {
		cr_assert_geq(slab_size(size), size);
		cr_assert(size <= 256 || slab_size(size) <= size * 5 / 4);
		cr_assert_eq(slab_size(slab_size(size)), slab_size(size));
	}
	cr_assert_eq(slab_size(4 << 20), 4 << 20);
	cr_assert_eq(slab_class_of(4 << 20), SLAB_CLASSES - 1);
}

#if !POOL_IS_MALLOC
/* The slab keeps large pieces up to a limit, so that their pages stay. */
Test(shard, slab_keeps)
{
	static void *piece[64];
	struct slab slab;
	void *first;

	slab_init(&slab, NULL);
	first = slab_get(&slab, 70000);
	slab_put(&slab, first, 70000);
	cr_assert_eq(slab_get(&slab, 75000), first);
	slab_put(&slab, first, 75000);
	for (size_t size = 100000; size < 4000000; size += size / 2) {
		for (unsigned int i = 0; i < ARRAY_SIZE(piece); i++)
			piece[i] = slab_get(&slab, size);
		for (unsigned int i = 0; i < ARRAY_SIZE(piece); i++)
			slab_put(&slab, piece[i], size);
		cr_assert_leq(slab.kept, SLAB_KEEP_ALL);
	}
	cr_assert_geq(slab.kept, SLAB_KEEP_ALL / 2);
	slab_fini(&slab);
}

static void slab_use(struct slab *slab, size_t size, unsigned int n)
{
	void *piece[32];

	cr_assert_leq(n, ARRAY_SIZE(piece));
	for (unsigned int i = 0; i < n; i++)
		piece[i] = slab_get(slab, size);
	for (unsigned int i = 0; i < n; i++)
		slab_put(slab, piece[i], size);
}

/* The slab keeps the pieces that are used again, and frees those that are not.
 */
Test(shard, slab_gives_back_when_idle)
{
	struct lnet_sim *sim = cluster(1);
	struct ulrpc *rpc;
	struct slab slab;

	cr_assert_eq(ulrpc_open(lnet_sim_node(sim, 0), NULL, &rpc), 0);
	slab_init(&slab, &rpc->shards[0]);
	slab_use(&slab, 100000, 16);
	slab_use(&slab, 300, 16);
	for (unsigned int i = 0; i < 10; i++) {
		slab_use(&slab, 70000, 8);
		lnet_sim_run(sim, 5000 * MSEC);
	}
	cr_assert_eq(slab.made, 16 + 16 + 8);
	cr_assert_eq(slab.kept, 8 * slab_size(70000));
	lnet_sim_run(sim, 30000 * MSEC);
	cr_assert_eq(slab.kept, 0);
	/* A little memory may be kept for ever. */
	slab_use(&slab, 3000, 16);
	lnet_sim_run_all(sim);
	cr_assert_eq(slab.kept, 16 * slab_size(3000));
	slab_use(&slab, 100000, 16);
	slab_stop(&slab);
	slab_fini(&slab);
	cr_assert_eq(ulrpc_close(rpc), 0);
	cluster_end(sim);
}
#endif

Test(shard, opening_fails_as_a_whole)
{
	struct lnet_sim *sim = cluster_with(1, CPTS, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_me_handle me;
	struct ulrpc *rpc = NULL;

	/* Another user's entries on the portal are of a kind that excludes the
	 * library's. */
	cr_assert_eq(LNetMEAttach(node, ULRPC_PORTAL_CONTROL, nth_id(0), 1, 0,
				  LNET_RETAIN, LNET_INS_AFTER, &me),
		     0);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(ulrpc_open(node, NULL, &rpc), -EPERM);
	cr_assert_null(rpc);
	cr_assert_eq(LNetMEUnlink(me), 0);
	cluster_end(sim);
}

Test(shard, times_do_not_overflow)
{
	cr_assert_eq(rpc_ns(1), 1000);
	cr_assert_eq(rpc_ns(ULRPC_NEVER), TIME_NEVER);
	cr_assert_eq(rpc_ns(ULRPC_NEVER / 1000 + 1), TIME_NEVER);
	cr_assert_eq(rpc_at(5, TIME_NEVER), TIME_NEVER);
	cr_assert_eq(rpc_at(5, TIME_NEVER - 4), TIME_NEVER);
	cr_assert_eq(rpc_at(5, 6), 11);
}

/* ---- memory that is given back in steps ---- */

#define LONG_MEMORY ((size_t)61 << 20)

struct giving {
	struct give_back g;
	struct shard *shard;
	struct ulnet_work other; /* what else the CPT has to do */
	uint8_t *mem;
	size_t given;
	unsigned int turns, steps;
	bool dropped; /* the end of the memory was not there any more */
};

static void on_other(struct ulnet_work *w)
{
	struct giving *x = container_of(w, struct giving, other);

	x->turns++;
	if (x->given < LONG_MEMORY)
		shard_post(x->shard, w);
}

static void on_given(struct give_back *g, void *holder, size_t bytes)
{
	struct giving *x = container_of(g, struct giving, g);

	cr_assert_eq(holder, x);
	cr_assert_lt(bytes, GIVE_BACK_MIN);
	/* The other work had its turn before each step. */
	cr_assert_eq(x->turns, ++x->steps);
	if (!x->given)
		x->dropped = !x->mem[LONG_MEMORY - 4096];
	x->given += bytes;
	cr_assert_eq(give_back_is_over(g), x->given == LONG_MEMORY);
}

static int begin_giving(void *arg)
{
	struct giving *x = arg;

	give_back_init(&x->g, x->shard, on_given);
	x->other.fn = on_other;
	shard_post(x->shard, &x->other);
	give_back(&x->g, x->mem, LONG_MEMORY, x);
	return 0;
}

/* Gigabytes are given back bit by bit, and what else a CPT has to do goes on
 * meanwhile. RPC does not end before all is given back. */
Test(shard, long_memory_is_given_back_in_turns)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct lnet_sim *sim = cluster(1);
		struct giving x = { .mem = malloc(LONG_MEMORY) };
		struct ulrpc *rpc;

		memset(x.mem, 1, LONG_MEMORY);
		cr_assert_eq(ulrpc_open(lnet_sim_node(sim, 0), NULL, &rpc), 0);
		x.shard = &rpc->shards[0];
		cr_assert_eq(lnet_call(rpc->node, 0, begin_giving, &x), 0);
		cr_assert_eq(x.given, 0);
		if (i)
			lnet_sim_run(sim, MSEC);
		cr_assert_eq(ulrpc_close(rpc), 0);
		cr_assert_eq(x.given, LONG_MEMORY);
		cr_assert_geq(x.steps, LONG_MEMORY / GIVE_BACK_MIN);
		cr_assert(x.dropped);
		cluster_end(sim);
	}
}
