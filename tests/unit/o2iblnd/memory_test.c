/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounce memory: shares, uses, and queues. */
#include "lnd/o2iblnd/o2iblnd.h"
#include "tests/unit/o2iblnd/ib_rig.h"

#include <criterion/criterion.h>
#include <errno.h>

#define MIB (1u << 20)

/* ---- blocks ---- */

Test(o2ib_arena, shares)
{
	uint64_t one = 0, two = 0;
	struct ib_block b[8], c;
	struct ib_arena a;
	struct rig r;

	rig_open(&r, 8);
	ib_arena_init(&a, &r.a.port, 8 * MIB);
	for (unsigned int i = 0; i < 5; i++)
		cr_assert_eq(ib_arena_get(&a, &one, MIB, &b[i]), 0);
	cr_expect_eq(ib_arena_get(&a, &one, MIB, &c), -ENOBUFS,
		     "more than is left");
	cr_expect_eq(a.refused, 1);
	cr_assert_eq(ib_arena_get(&a, &two, MIB, &b[5]), 0, "others may");
	cr_assert_eq(ib_arena_get(&a, &two, 1, &b[6]), 0);
	cr_expect_eq(two, MIB + 4096);
	cr_expect_eq(a.used, 6 * MIB + 4096);
	cr_expect_eq(r.a.mrs, 2);
	for (unsigned int i = 0; i < 7; i++)
		ib_arena_put(&a, i < 5 ? &one : &two, &b[i]);
	cr_expect_eq(one, 0);
	cr_expect_eq(two, 0);
	cr_expect_eq(a.used, 0);
	cr_expect_eq(r.a.mrs, 1, "one chunk is kept");
	ib_arena_fini(&a);
	rig_close(&r);
}

Test(o2ib_arena, no_memory)
{
	struct ib_arena a;
	struct ib_block b;
	uint64_t held = 0;
	struct rig r;

	rig_open(&r, 8);
	ib_arena_init(&a, &r.a.port, 8 * MIB);
	r.a.fail_reg = -ENOMEM;
	cr_expect_eq(ib_arena_get(&a, &held, 1, &b), -ENOMEM);
	cr_expect_eq(a.failed, 1);
	cr_expect_eq(held, 0);
	ib_arena_fini(&a);
	rig_close(&r);
}

/* Small blocks are merged again, so that a large one needs no other chunk. */
Test(o2ib_arena, halves)
{
	static struct ib_block small[4 * MIB / IB_BLOCK_MIN];
	struct ib_block large[4];
	uint64_t held = 0;
	struct ib_arena a;
	struct rig r;

	rig_open(&r, 8);
	ib_arena_init(&a, &r.a.port, 64 * MIB);
	for (unsigned int i = 0; i < ARRAY_SIZE(small); i++)
		cr_assert_eq(ib_arena_get(&a, &held, 1, &small[i]), 0);
	cr_expect_eq(r.a.mrs, 1);
	/* in no order */
	for (unsigned int i = 0; i < ARRAY_SIZE(small); i++)
		ib_arena_put(&a, &held, &small[i * 37 % ARRAY_SIZE(small)]);
	for (unsigned int i = 0; i < ARRAY_SIZE(large); i++)
		cr_assert_eq(ib_arena_get(&a, &held, MIB, &large[i]), 0);
	cr_expect_eq(r.a.mrs, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(large); i++)
		ib_arena_put(&a, &held, &large[i]);
	ib_arena_fini(&a);
	cr_expect_eq(r.a.mrs, 0);
	rig_close(&r);
}

#define BLOCKS 200

/* Random blocks: none overlap, all are registered, and all come back. */
static void run_arena(uint64_t seed)
{
	static struct ib_block blocks[BLOCKS];
	uint64_t held = 0;
	struct ib_arena a;
	struct rng rng;
	struct rig r;

	rng_seed(&rng, seed);
	rig_open(&r, 8);
	ib_arena_init(&a, &r.a.port, 64 * MIB);
	memset(blocks, 0, sizeof(blocks));
	for (unsigned int step = 0; step < 3000; step++) {
		struct ib_block *b = &blocks[rng_below(&rng, BLOCKS)];
		uint32_t length =
			1 + (uint32_t)rng_below(&rng, rng_below(&rng, 4) ? 20000
									 : MIB);
		uint8_t mark = (uint8_t)(b - blocks);

		if (b->chunk) {
			cr_assert_eq(*(uint8_t *)b->addr, mark);
			cr_assert_eq(((uint8_t *)b->addr)[b->length - 1], mark);
			ib_arena_put(&a, &held, b);
		} else if (!ib_arena_get(&a, &held, length, b)) {
			cr_assert_eq((uintptr_t)b->addr % IB_BLOCK_MIN, 0);
			cr_assert(b->lkey && b->rkey);
			*(uint8_t *)b->addr = mark;
			((uint8_t *)b->addr)[b->length - 1] = mark;
		}
		cr_assert_eq(held, a.used);
		cr_assert_leq(a.used, a.max);
		cr_assert_leq(a.used, a.registered);
	}
	for (unsigned int i = 0; i < BLOCKS; i++)
		if (blocks[i].chunk)
			ib_arena_put(&a, &held, &blocks[i]);
	cr_assert_eq(held, 0);
	cr_assert_leq(r.a.mrs, 1);
	ib_arena_fini(&a);
	rig_close(&r);
}

Test(o2ib_arena, random)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		run_arena(seed);
}

/* ---- shares, and who waits ---- */

static struct rig r;
static struct ib_ni ini;
static struct ib_cpt cpt;
static struct list somebody; /* an element for cpt.memory_waiters */
static unsigned int retried;

static void on_retry(struct work *w)
{
	(void)w;
	cpt.retrying = false;
	retried++;
}

static struct ulnet_nid peer(uint32_t i)
{
	return lnet_nid_make(LNET_NET(LNET_TYPE_O2IB, 0), 0x0a000001 + i);
}

/* @mib: for each use */
static void open_cpt(unsigned int mib)
{
	rig_open(&r, 8);
	r.a.ni.loops = &r.loop;
	ini.ni = &r.a.ni;
	cpt = (struct ib_cpt){ .ini = &ini, .retry = { .fn = on_retry } };
	hash_init(&cpt.holders);
	list_init(&cpt.memory_waiters);
	list_init(&somebody);
	for (unsigned int i = 0; i < IB_USES; i++)
		ib_arena_init(&cpt.arena[i], &r.a.port, (uint64_t)mib * MIB);
}

static void close_cpt(void)
{
	cr_expect_eq(cpt.holders.count, 0, "nobody is remembered");
	for (unsigned int i = 0; i < IB_USES; i++) {
		cr_expect_eq(cpt.arena[i].used, 0);
		ib_arena_fini(&cpt.arena[i]);
	}
	hash_fini(&cpt.holders);
	rig_close(&r);
}

static int get(uint32_t who, enum ib_use use, uint32_t length,
	       struct ib_memory *m)
{
	struct ulnet_nid nid = peer(who);

	*m = (struct ib_memory){ 0 };
	return ib_memory_get(&cpt, use, &nid, length, m);
}

static void begins_to_wait(uint32_t who, enum ib_use use, struct ib_memory *m)
{
	struct ulnet_nid nid = peer(who);

	cr_assert_eq(ib_memory_wait(&cpt, use, &nid, m), 0);
	cr_assert(m->waits);
}

/* The two uses are independent, and so are peers. */
Test(o2ib_memory, two_uses)
{
	struct ib_memory m[4], more;

	open_cpt(2);
	for (unsigned int i = 0; i < 4; i++) {
		cr_assert_eq(get(0, (enum ib_use)(i % 2), MIB, &m[i]), 0);
		cr_expect_eq(m[i].sge.length, MIB);
		cr_expect_eq(m[i].sge.addr, m[i].block.addr);
	}
	cr_expect_eq(get(0, IB_USE_REQUESTS, 1, &more), -ENOBUFS);
	cr_expect_eq(get(1, IB_USE_ANSWERS, 1, &more), -ENOBUFS);
	for (unsigned int i = 0; i < 4; i++)
		ib_memory_put(&cpt, &m[i]);
	ib_memory_put(&cpt, &m[0]);
	close_cpt();
}

Test(o2ib_memory, no_memory)
{
	struct ib_memory m;

	open_cpt(2);
	r.a.fail_reg = -ENOMEM;
	cr_expect_eq(get(0, IB_USE_REQUESTS, 1, &m), -ENOMEM);
	begins_to_wait(0, IB_USE_REQUESTS, &m);
	cr_expect_eq(ib_memory_retry(&cpt, 1, 1, &m), -ENOMEM);
	ib_memory_unwait(&cpt, &m);
	close_cpt();
}

/* Memory is kept for the first transfer in its peer's queue. */
Test(o2ib_memory, one_waits)
{
	struct ib_memory m, first, second, third, other;
	const struct ulnet_nid nid = peer(0);

	open_cpt(2);
	cr_assert_eq(get(0, IB_USE_REQUESTS, MIB, &m), 0);
	cr_assert_eq(get(1, IB_USE_REQUESTS, MIB / 2, &other), 0);
	cr_assert_eq(get(0, IB_USE_REQUESTS, MIB, &first), -ENOBUFS);
	cr_expect_not(ib_memory_is_awaited(&cpt, IB_USE_REQUESTS, &nid));
	begins_to_wait(0, IB_USE_REQUESTS, &first);
	cr_expect(ib_memory_is_awaited(&cpt, IB_USE_REQUESTS, &nid));
	ib_memory_put(&cpt, &other);
	cr_expect_eq(get(0, IB_USE_REQUESTS, 1, &second), -ENOBUFS,
		     "there is memory, but one waits");
	begins_to_wait(0, IB_USE_REQUESTS, &second);
	cr_assert_eq(get(0, IB_USE_ANSWERS, 1, &third), 0, "another use");
	cr_assert_eq(get(1, IB_USE_REQUESTS, 1, &other), 0, "another peer");
	/* If the first one in a round gets none, the next one does not either.
	 */
	cr_expect_eq(ib_memory_retry(&cpt, 1, MIB, &first), -ENOBUFS);
	cr_expect_eq(ib_memory_retry(&cpt, 1, 1, &second), -ENOBUFS);
	ib_memory_put(&cpt, &m);
	cr_assert_eq(ib_memory_retry(&cpt, 2, MIB, &first), 0);
	cr_expect_eq(get(0, IB_USE_REQUESTS, 1, &m), -ENOBUFS,
		     "it has not gone on yet");
	ib_memory_put(&cpt, &other);
	cr_assert_eq(ib_memory_retry(&cpt, 2, 1, &second), 0);
	ib_memory_unwait(&cpt, &first);
	ib_memory_unwait(&cpt, &second);
	cr_expect_not(ib_memory_is_awaited(&cpt, IB_USE_REQUESTS, &nid));
	ib_memory_put(&cpt, &first);
	ib_memory_put(&cpt, &second);
	ib_memory_put(&cpt, &third);
	close_cpt();
}

/* Retries once for all memory that is freed in a turn, if transfers wait. */
Test(o2ib_memory, fed_soon)
{
	struct ib_memory m[3];

	open_cpt(2);
	retried = 0;
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(get(i, IB_USE_REQUESTS, 1, &m[i]), 0);
	ib_memory_put(&cpt, &m[0]);
	rig_run(&r, 0);
	cr_expect_eq(retried, 0, "nobody waits");
	cr_assert_eq(get(0, IB_USE_REQUESTS, 1, &m[0]), 0);
	list_add_tail(&cpt.memory_waiters, &somebody);
	ib_memory_put(&cpt, &m[0]);
	ib_memory_put(&cpt, &m[1]);
	cr_expect_eq(retried, 0, "not in the call");
	rig_run(&r, 0);
	cr_expect_eq(retried, 1);
	m[2] = (struct ib_memory){ 0 };
	begins_to_wait(0, IB_USE_REQUESTS, &m[2]);
	ib_memory_unwait(&cpt, &m[2]);
	ib_memory_unwait(&cpt, &m[2]);
	rig_run(&r, 0);
	cr_expect_eq(retried, 2,
		     "who stood behind it may have what it did not");
	list_del(&somebody);
	close_cpt();
}
