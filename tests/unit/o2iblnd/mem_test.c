/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of registered memory; registrations that are kept. */
#include "lnd/o2iblnd/arena.h"
#include "lnd/o2iblnd/regcache.h"
#include "tests/unit/o2iblnd/ib_rig.h"

#include <criterion/criterion.h>
#include <errno.h>

#define MIB (1u << 20)

/* ---- arena ---- */

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

/* After small blocks there is room for large ones again, without another
 * chunk. */
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
	/* In no order. */
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

/* None overlaps another one; each is in registered memory; all comes back. */
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

/* ---- cache ---- */

#define AT(n) ((void *)((uintptr_t)0x10000 + (n)))

Test(o2ib_regcache, finds)
{
	struct ib_reg *one, *two, *three;
	struct ib_regcache c;
	struct rig r;

	rig_open(&r, 8);
	ib_regcache_init(&c, &r.a.port, 10000);
	cr_assert_eq(ib_regcache_get(&c, AT(0), 1000, true, &one), 0);
	cr_assert_eq(ib_regcache_get(&c, AT(100), 900, false, &two), 0);
	cr_expect_eq(one, two, "part of it");
	cr_expect_eq(c.hits, 1);
	cr_assert_eq(ib_regcache_get(&c, AT(1000), 10, true, &three), 0);
	cr_expect_neq(three, one, "beside it");
	cr_expect_eq(c.bytes, 1010);
	ib_regcache_put(&c, one);
	ib_regcache_put(&c, two);
	ib_regcache_put(&c, three);
	cr_expect_eq(r.a.mrs, 2, "kept");
	/* Over both: one. */
	cr_assert_eq(ib_regcache_get(&c, AT(900), 200, false, &one), 0);
	cr_expect_eq(r.a.mrs, 1);
	cr_expect_eq(c.bytes, 1100);
	cr_expect(one->remote, "as they were");
	ib_regcache_put(&c, one);
	ib_regcache_fini(&c);
	cr_expect_eq(r.a.mrs, 0);
	rig_close(&r);
}

/* For reading is not enough for peers to write to. */
Test(o2ib_regcache, remote)
{
	struct ib_reg *one, *two;
	struct ib_regcache c;
	struct rig r;

	rig_open(&r, 8);
	ib_regcache_init(&c, &r.a.port, 10000);
	cr_assert_eq(ib_regcache_get(&c, AT(0), 1000, false, &one), 0);
	cr_assert_eq(ib_regcache_get(&c, AT(0), 1000, true, &two), 0);
	cr_expect_neq(one, two);
	cr_expect(two->remote && !one->remote);
	cr_expect_eq(r.a.mrs, 2, "the first is used still");
	ib_regcache_put(&c, one);
	cr_expect_eq(r.a.mrs, 1);
	ib_regcache_put(&c, two);
	ib_regcache_fini(&c);
	rig_close(&r);
}

Test(o2ib_regcache, bounds)
{
	struct ib_reg *reg[4], *more;
	struct ib_regcache c;
	struct rig r;

	rig_open(&r, 8);
	ib_regcache_init(&c, &r.a.port, 4000);
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_eq(
			ib_regcache_get(&c, AT(2000 * i), 1000, true, &reg[i]),
			0);
	cr_expect_eq(ib_regcache_get(&c, AT(9000), 1, true, &more), -ENOBUFS);
	ib_regcache_put(&c, reg[2]);
	ib_regcache_put(&c, reg[0]);
	cr_assert_eq(ib_regcache_get(&c, AT(9000), 1, true, &more), 0);
	cr_expect_eq(c.evicted, 1, "that which was used longest ago");
	ib_regcache_put(&c, more);
	cr_assert_eq(ib_regcache_get(&c, AT(0), 1000, true, &reg[0]), 0);
	cr_expect_eq(c.hits, 1);
	ib_regcache_put(&c, reg[0]);
	ib_regcache_put(&c, reg[1]);
	ib_regcache_put(&c, reg[3]);
	/* No more can be locked. */
	r.a.fail_reg = -ENOMEM;
	cr_expect_eq(ib_regcache_get(&c, AT(20000), 1, true, &more), -ENOMEM);
	cr_expect_eq(r.a.mrs, 0, "all of it was given for that");
	ib_regcache_fini(&c);
	rig_close(&r);
}

Test(o2ib_regcache, forget)
{
	struct ib_reg *one, *two;
	struct ib_regcache c;
	struct rig r;

	rig_open(&r, 8);
	ib_regcache_init(&c, &r.a.port, 10000);
	cr_expect(ib_regcache_forget(&c, AT(0), 1000));
	cr_assert_eq(ib_regcache_get(&c, AT(0), 1000, true, &one), 0);
	ib_regcache_put(&c, one);
	cr_expect(ib_regcache_forget(&c, AT(999), 1));
	cr_expect_eq(r.a.mrs, 0);
	cr_assert_eq(ib_regcache_get(&c, AT(0), 1000, true, &one), 0);
	cr_expect(!ib_regcache_forget(&c, AT(0), 1), "it is in use");
	cr_expect_eq(r.a.mrs, 1);
	cr_assert_eq(ib_regcache_get(&c, AT(0), 1000, true, &two), 0);
	cr_expect_neq(one, two, "not found again");
	ib_regcache_put(&c, one);
	cr_expect_eq(r.a.mrs, 1);
	ib_regcache_put(&c, two);
	ib_regcache_fini(&c);
	rig_close(&r);
}

/* None overlaps another one, and all that is asked for is there. */
static void run_cache(uint64_t seed)
{
	struct ib_reg *held[16] = { 0 };
	struct ib_regcache c;
	struct rng rng;
	struct rig r;

	rng_seed(&rng, seed);
	rig_open(&r, 8);
	ib_regcache_init(&c, &r.a.port, 20000);
	for (unsigned int step = 0; step < 2000; step++) {
		unsigned int i = (unsigned int)rng_below(&rng, 16);
		uintptr_t at = rng_below(&rng, 30000);
		size_t length = 1 + rng_below(&rng, 3000);
		bool remote = rng_below(&rng, 2);

		r.a.fail_reg = rng_below(&rng, 20) ? 0 : -EFAULT;
		if (held[i]) {
			ib_regcache_put(&c, held[i]);
			held[i] = NULL;
		} else if (!rng_below(&rng, 8)) {
			ib_regcache_forget(&c, AT(at), length);
		} else if (!ib_regcache_get(&c, AT(at), length, remote,
					    &held[i])) {
			cr_assert(held[i]->start <= (uintptr_t)AT(at) &&
				  held[i]->end >= (uintptr_t)AT(at + length));
			cr_assert(held[i]->remote || !remote);
		}
		cr_assert_leq(c.bytes, c.max);
		for (unsigned int k = 1; k < c.nregs; k++)
			cr_assert_leq(c.regs[k - 1]->end, c.regs[k]->start);
		cr_assert_eq(r.a.mrs, c.nregs + c.unknown);
	}
	for (unsigned int i = 0; i < 16; i++)
		if (held[i])
			ib_regcache_put(&c, held[i]);
	ib_regcache_fini(&c);
	cr_assert_eq(r.a.mrs, 0);
	rig_close(&r);
}

Test(o2ib_regcache, random)
{
	for (uint64_t seed = 1; seed <= 100; seed++)
		run_cache(seed);
}
