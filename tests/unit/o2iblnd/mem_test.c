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

#define BLOCK IB_REG_BLOCK
#define TAIL  LNET_MTU
/* Not at the beginning of a block. */
#define BASE (100 * BLOCK + 5000)

static const struct span range = { BASE, BASE + 10 * BLOCK };
static struct ib_regcache c;
static struct rig r;

static void open_cache(uint64_t max)
{
	rig_open(&r, 8);
	ib_regcache_init(&c, &r.a.port, max);
}

static void close_cache(void)
{
	ib_regcache_fini(&c);
	cr_expect_eq(r.a.mrs, 0);
	rig_close(&r);
}

static int get(uintptr_t at, size_t length, struct ib_reg **reg_p)
{
	struct iovec v = { (void *)at, length };

	return ib_regcache_get(&c, &range, v, 0, reg_p);
}

static struct ib_reg *got(uintptr_t at, size_t length)
{
	struct ib_reg *reg;

	cr_assert_eq(get(at, length, &reg), 0);
	cr_assert(reg->start <= at && reg->end >= at + length);
	cr_assert(reg->start >= range.start && reg->end <= range.end);
	return reg;
}

static bool is_registered(uintptr_t at)
{
	struct ib_reg *reg = got(at, 1);
	bool was = !c.misses;

	ib_regcache_put(&c, reg);
	c.misses = 0;
	return was;
}

/* What begins in a block is in its registration, which is in the range. */
Test(o2ib_regcache, blocks)
{
	struct ib_reg *first, *second, *last;

	open_cache(UINT64_MAX);
	first = got(BASE, 1);
	cr_expect_eq(first->start, BASE);
	cr_expect_eq(first->end, 101 * BLOCK + TAIL);
	cr_expect_eq(got(101 * BLOCK - 1, TAIL), first);
	cr_expect_eq(c.hits, 1);
	second = got(101 * BLOCK, TAIL);
	cr_expect_eq(second->start, 101 * BLOCK);
	cr_expect_eq(second->end, 102 * BLOCK + TAIL);
	last = got(range.end - 1, 1);
	cr_expect_eq(last->start, 110 * BLOCK);
	cr_expect_eq(last->end, range.end);
	cr_expect_eq(r.a.mrs, 3);
	cr_expect_eq(c.bytes, 2 * (BLOCK + TAIL) - 5000 + 5000);
	ib_regcache_put(&c, first);
	ib_regcache_put(&c, first);
	ib_regcache_put(&c, second);
	ib_regcache_put(&c, last);
	cr_expect_eq(r.a.mrs, 3, "kept");
	close_cache();
}

/* Pieces that are far apart have no registration in common. */
Test(o2ib_regcache, too_long)
{
	struct ib_reg *reg;

	open_cache(UINT64_MAX);
	cr_expect_eq(get(BASE, BLOCK + TAIL, &reg), -EMSGSIZE);
	cr_expect_eq(get(range.end - 10, 11, &reg), -EMSGSIZE);
	cr_expect_eq(r.a.mrs, 0);
	close_cache();
}

Test(o2ib_regcache, bounds)
{
	struct ib_reg *reg[3], *more;

	open_cache(3 * (BLOCK + TAIL));
	for (unsigned int i = 0; i < 3; i++)
		reg[i] = got((101 + i) * BLOCK, 1);
	cr_expect_eq(get(104 * BLOCK, 1, &more), -ENOBUFS);
	ib_regcache_put(&c, reg[2]);
	ib_regcache_put(&c, reg[0]);
	more = got(104 * BLOCK, 1);
	cr_expect_eq(c.evicted, 1, "that which was used longest ago");
	c.misses = 0;
	cr_expect(is_registered(101 * BLOCK));
	ib_regcache_put(&c, more);
	ib_regcache_put(&c, reg[1]);
	close_cache();
	/* What can never be there takes nothing from the others. */
	open_cache(BLOCK);
	reg[0] = got(range.end - 1, 1);
	ib_regcache_put(&c, reg[0]);
	cr_expect_eq(get(104 * BLOCK, 1, &more), -ENOBUFS);
	cr_expect_eq(c.evicted, 0);
	close_cache();
}

/* What cannot be registered is not tried again for a second; what is there is
 * found. */
Test(o2ib_regcache, pause)
{
	struct iovec v = { (void *)(103 * BLOCK), 1 };
	struct ib_reg *reg;

	open_cache(UINT64_MAX);
	ib_regcache_put(&c, got(101 * BLOCK, 1));
	r.a.fail_reg = -EFAULT;
	cr_expect_eq(ib_regcache_get(&c, &range, v, 5, &reg), -EFAULT);
	cr_expect_eq(r.a.mrs, 1, "which is kept");
	r.a.fail_reg = 0;
	cr_expect_eq(ib_regcache_get(&c, &range, v, NSEC_PER_SEC, &reg),
		     -EAGAIN);
	ib_regcache_put(&c, got(101 * BLOCK, 1));
	cr_assert_eq(ib_regcache_get(&c, &range, v, NSEC_PER_SEC + 5, &reg), 0);
	ib_regcache_put(&c, reg);
	close_cache();
}

/* Whatever needs locked memory gets what nobody uses. */
Test(o2ib_regcache, gives_way)
{
	struct ib_reg *used;
	struct ib_mr *mr;
	char bytes[64];

	open_cache(UINT64_MAX);
	used = got(101 * BLOCK, 1);
	ib_regcache_put(&c, got(102 * BLOCK, 1));
	ib_regcache_put(&c, got(103 * BLOCK, 1));
	cr_assert_eq(ib_regcache_reg(&c, &r.a.port, bytes, 64, false, &mr), 0);
	cr_expect_eq(r.a.mrs, 4, "not needed yet");
	r.a.port.verbs->dereg(&r.a.port, mr);
	r.a.fail_reg = -ENOMEM;
	cr_expect_eq(ib_regcache_reg(&c, &r.a.port, bytes, 64, false, &mr),
		     -ENOMEM);
	cr_expect_eq(r.a.mrs, 1, "all that was idle");
	cr_expect_eq(ib_regcache_reg(NULL, &r.a.port, bytes, 64, false, &mr),
		     -ENOMEM);
	r.a.fail_reg = 0;
	ib_regcache_put(&c, used);
	close_cache();
}

/* Nothing of it is registered at once, whoever still has it. */
Test(o2ib_regcache, forget)
{
	struct ib_reg *used, *again;

	open_cache(UINT64_MAX);
	ib_regcache_forget(&c, (void *)range.start, range.end - range.start);
	ib_regcache_put(&c, got(101 * BLOCK, 1));
	used = got(102 * BLOCK, 1);
	cr_expect_eq(r.a.mrs, 2);
	ib_regcache_forget(&c, (void *)range.start, range.end - range.start);
	cr_expect_eq(r.a.mrs, 0);
	cr_expect_eq(c.bytes, 0);
	again = got(102 * BLOCK, 1);
	cr_expect_neq(again, used);
	ib_regcache_put(&c, used);
	cr_expect_eq(r.a.mrs, 1);
	ib_regcache_put(&c, again);
	/* Another range is another one's. */
	ib_regcache_forget(&c, (void *)(110 * BLOCK), BLOCK);
	cr_expect_eq(r.a.mrs, 1);
	close_cache();
}

static void run_cache(uint64_t seed)
{
	struct ib_reg *held[16] = { 0 };
	struct rng rng;

	rng_seed(&rng, seed);
	open_cache(6 * (BLOCK + TAIL));
	for (unsigned int step = 0; step < 2000; step++) {
		unsigned int i = (unsigned int)rng_below(&rng, 16);
		uintptr_t at = BASE + rng_below(&rng, 9 * BLOCK);

		r.a.fail_reg = rng_below(&rng, 20) ? 0 : -ENOMEM;
		c.pause = 0;
		if (held[i]) {
			ib_regcache_put(&c, held[i]);
			held[i] = NULL;
		} else if (!rng_below(&rng, 40)) {
			ib_regcache_forget(&c, (void *)range.start,
					   range.end - range.start);
		} else if (!get(at, 1 + rng_below(&rng, TAIL), &held[i])) {
			cr_assert(held[i]->start <= at && held[i]->mr);
		}
		cr_assert_leq(c.bytes, c.max);
		for (unsigned int k = 1; k < c.nregs; k++)
			cr_assert_lt(c.regs[k - 1]->start, c.regs[k]->start);
		cr_assert_eq(r.a.mrs, c.nregs);
	}
	for (unsigned int i = 0; i < 16; i++)
		if (held[i])
			ib_regcache_put(&c, held[i]);
	close_cache();
}

Test(o2ib_regcache, random)
{
	for (uint64_t seed = 1; seed <= 100; seed++)
		run_cache(seed);
}
