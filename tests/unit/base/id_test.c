/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include "base/env.h"
#include "base/id.h"

static int things[4];

static uint64_t alloc(struct id_table *t, void *obj)
{
	uint64_t id = 0;

	cr_assert_eq(id_alloc(t, obj, &id), 0);
	cr_assert_neq(id, 0);
	cr_assert_neq(id, UINT64_MAX);
	return id;
}

Test(id, lookup_and_stale)
{
	struct id_table t;
	uint64_t a, b, c;

	id_table_init(&t, 0x5a);
	cr_assert_null(id_lookup(&t, 0));
	a = alloc(&t, &things[0]);
	b = alloc(&t, &things[1]);
	cr_assert_neq(a, b);
	cr_assert_eq(id_tag(a), 0x5a);
	cr_assert_eq(id_lookup(&t, a), &things[0]);
	cr_assert_eq(id_lookup(&t, b), &things[1]);
	id_free(&t, a);
	cr_assert_null(id_lookup(&t, a));
	c = alloc(&t, &things[2]);
	cr_assert_eq((uint32_t)c, (uint32_t)a, "the slot is used again");
	cr_assert_neq(c, a);
	cr_assert_null(id_lookup(&t, a));
	cr_assert_eq(id_lookup(&t, c), &things[2]);
	cr_assert_eq(t.used, 2);
	id_table_fini(&t);
}

Test(id, made_up_ids)
{
	struct id_table t;
	struct rng rng;
	uint64_t id;

	id_table_init(&t, 3);
	id = alloc(&t, &things[0]);
	const uint64_t bad[] = {
		0,
		UINT64_MAX,
		id + 1,
		id - 1,
		id ^ 1 << 24,
		id + (UINT64_C(1) << 32),
		id & UINT32_MAX,
		id | 0xffffff,
		(uint32_t)id | UINT64_C(0xffffffff00000000),
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_null(id_lookup(&t, bad[i]), "%zu", i);
	rng_seed(&rng, 1);
	for (unsigned int i = 0; i < 1000000; i++) {
		uint64_t r = rng_next(&rng);

		/* The chance of guessing the id is 1 in 2^64. */
		cr_assert_null(id_lookup(&t, r));
	}
	id_table_fini(&t);
}

Test(id, slot_is_retired_when_its_generations_are_used_up)
{
	struct id_table t;
	uint64_t last, next;

	id_table_init(&t, 0xff);
	last = alloc(&t, &things[0]);
	id_free(&t, last);
	t.slots[0].generation = UINT32_MAX - 1;
	last = alloc(&t, &things[0]);
	cr_assert_eq(last >> 32, UINT32_MAX - 1);
	cr_assert_eq(last & 0xffffff, 0);
	id_free(&t, last);
	for (unsigned int i = 0; i < 100; i++) {
		next = alloc(&t, &things[1]);
		cr_assert_neq(next & 0xffffff, 0);
		if (i % 2)
			id_free(&t, next);
	}
	cr_assert_null(id_lookup(&t, last));
	cr_assert_null(id_lookup(&t, UINT64_C(0xffffffffff000000)));
	cr_assert_null(id_lookup(&t, UINT64_C(0x00000000ff000000)));
	id_table_fini(&t);
}

Test(id, walk_may_remove)
{
	enum { N = 100 };
	uint64_t id[N];
	int seen[N] = { 0 };
	struct id_table t;
	uint32_t pos = 0;
	int *obj;

	id_table_init(&t, 0);
	for (unsigned int i = 0; i < N; i++)
		id[i] = alloc(&t, &seen[i]);
	for (unsigned int i = 0; i < N; i += 3)
		id_free(&t, id[i]);
	while ((obj = id_walk(&t, &pos))) {
		(*obj)++;
		id_free(&t, id[obj - seen]);
	}
	for (unsigned int i = 0; i < N; i++)
		cr_assert_eq(seen[i], i % 3 != 0);
	cr_assert_eq(t.used, 0);
	id_table_fini(&t);
}

Test(id, fills_up)
{
	struct id_table t;
	uint64_t id, first;

	id_table_init(&t, 1);
	first = alloc(&t, &things[0]);
	for (uint32_t i = 1; i < ID_SLOTS_MAX; i++) {
		if (id_alloc(&t, &things[0], &id))
			cr_assert_fail("%u", i);
	}
	cr_assert_eq(id_alloc(&t, &things[0], &id), -ENOSPC);
	id_free(&t, first);
	cr_assert_eq(id_alloc(&t, &things[1], &id), 0);
	cr_assert_eq(id_lookup(&t, id), &things[1]);
	id_table_fini(&t);
}
