/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache of registrations. */
#include "lnd/o2iblnd/regcache.h"
#include "tests/unit/o2iblnd/ib_rig.h"

#include <criterion/criterion.h>
#include <errno.h>

#define MIB (1u << 20)

/* ---- cache ---- */

#define BLOCK IB_REG_BLOCK
#define TAIL  LNET_MTU
/* does not begin at a block */
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

/* A payload is in the registration of the block in which it begins, which stays
 * in the range. */
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

/* Distant parts do not share a registration. */
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
	/* A range that exceeds the limit evicts nothing. */
	open_cache(BLOCK);
	reg[0] = got(range.end - 1, 1);
	ib_regcache_put(&c, reg[0]);
	cr_expect_eq(get(104 * BLOCK, 1, &more), -ENOBUFS);
	cr_expect_eq(c.evicted, 0);
	close_cache();
}

/* After a failure nothing is registered for a second, but what exists is found.
 */
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

/* Registrations not in use are evicted when other memory is needed. */
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

/* The memory is deregistered at once, even if it is in use. */
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
	/* Other ranges are not affected. */
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
