/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for payloads: shares, two uses, and who waits for it. */
#include "lnd/o2iblnd/memory.h"
#include "tests/unit/o2iblnd/ib_rig.h"

#include <criterion/criterion.h>
#include <errno.h>

#define MIB (1u << 20)

static struct rig r;
static struct ib_ni ini;
static struct ib_cpt cpt;
static struct list somebody; /* cpt.hungry */
static unsigned int fed;

static void on_feed(struct work *w)
{
	(void)w;
	cpt.feeding = false;
	fed++;
}

static struct ulnet_nid peer(uint32_t i)
{
	return lnet_nid_make(LNET_NET(LNET_TYPE_O2IB, 0), 0x0a000001 + i);
}

/* @mib for each use. */
static void open_cpt(unsigned int mib)
{
	rig_open(&r, 8);
	r.a.ni.loops = &r.loop;
	ini.ni = &r.a.ni;
	cpt = (struct ib_cpt){ .ini = &ini, .feed = { .fn = on_feed } };
	hash_init(&cpt.holders);
	list_init(&cpt.hungry);
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

/* What this side asks takes nothing from what it answers, nor one peer's use of
 * one from its own of the other. */
Test(o2ib_memory, two_uses)
{
	struct ib_memory m[4], more;

	open_cpt(2);
	for (unsigned int i = 0; i < 4; i++) {
		cr_assert_eq(get(0, (enum ib_use)(i % 2), MIB, &m[i]), 0);
		cr_expect_eq(m[i].sge.length, MIB);
		cr_expect_eq(m[i].sge.addr, m[i].block.addr);
	}
	cr_expect_eq(get(0, IB_USE_ASKS, 1, &more), -ENOBUFS);
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
	cr_expect_eq(get(0, IB_USE_ASKS, 1, &m), -ENOMEM);
	begins_to_wait(0, IB_USE_ASKS, &m);
	cr_expect_eq(ib_memory_feed(&cpt, 1, 1, &m), -ENOMEM);
	ib_memory_unwait(&cpt, &m);
	close_cpt();
}

/* Nobody gets what a peer waits for but this peer's first one. */
Test(o2ib_memory, one_waits)
{
	struct ib_memory m, first, second, third, other;
	const struct ulnet_nid nid = peer(0);

	open_cpt(2);
	cr_assert_eq(get(0, IB_USE_ASKS, MIB, &m), 0);
	cr_assert_eq(get(1, IB_USE_ASKS, MIB / 2, &other), 0);
	cr_assert_eq(get(0, IB_USE_ASKS, MIB, &first), -ENOBUFS);
	cr_expect_not(ib_memory_is_awaited(&cpt, IB_USE_ASKS, &nid));
	begins_to_wait(0, IB_USE_ASKS, &first);
	cr_expect(ib_memory_is_awaited(&cpt, IB_USE_ASKS, &nid));
	ib_memory_put(&cpt, &other);
	cr_expect_eq(get(0, IB_USE_ASKS, 1, &second), -ENOBUFS,
		     "there is memory, but one waits");
	begins_to_wait(0, IB_USE_ASKS, &second);
	cr_assert_eq(get(0, IB_USE_ANSWERS, 1, &third), 0, "another use");
	cr_assert_eq(get(1, IB_USE_ASKS, 1, &other), 0, "another peer");
	/* A round: the first one gets none, so the second one does not. */
	cr_expect_eq(ib_memory_feed(&cpt, 1, MIB, &first), -ENOBUFS);
	cr_expect_eq(ib_memory_feed(&cpt, 1, 1, &second), -ENOBUFS);
	ib_memory_put(&cpt, &m);
	cr_assert_eq(ib_memory_feed(&cpt, 2, MIB, &first), 0);
	cr_expect_eq(get(0, IB_USE_ASKS, 1, &m), -ENOBUFS,
		     "it has not gone on yet");
	ib_memory_put(&cpt, &other);
	cr_assert_eq(ib_memory_feed(&cpt, 2, 1, &second), 0);
	ib_memory_unwait(&cpt, &first);
	ib_memory_unwait(&cpt, &second);
	cr_expect_not(ib_memory_is_awaited(&cpt, IB_USE_ASKS, &nid));
	ib_memory_put(&cpt, &first);
	ib_memory_put(&cpt, &second);
	ib_memory_put(&cpt, &third);
	close_cpt();
}

/* Once for all that comes back in a turn, and if somebody waits. */
Test(o2ib_memory, fed_soon)
{
	struct ib_memory m[3];

	open_cpt(2);
	fed = 0;
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(get(i, IB_USE_ASKS, 1, &m[i]), 0);
	ib_memory_put(&cpt, &m[0]);
	rig_run(&r, 0);
	cr_expect_eq(fed, 0, "nobody waits");
	cr_assert_eq(get(0, IB_USE_ASKS, 1, &m[0]), 0);
	list_add_tail(&cpt.hungry, &somebody);
	ib_memory_put(&cpt, &m[0]);
	ib_memory_put(&cpt, &m[1]);
	cr_expect_eq(fed, 0, "not in the call");
	rig_run(&r, 0);
	cr_expect_eq(fed, 1);
	m[2] = (struct ib_memory){ 0 };
	begins_to_wait(0, IB_USE_ASKS, &m[2]);
	ib_memory_unwait(&cpt, &m[2]);
	ib_memory_unwait(&cpt, &m[2]);
	rig_run(&r, 0);
	cr_expect_eq(fed, 2, "who stood behind it may have what it did not");
	list_del(&somebody);
	close_cpt();
}
