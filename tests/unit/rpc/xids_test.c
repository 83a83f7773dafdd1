/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "rpc/xids.h"

static void twice(struct xids *s, uint64_t n)
{
	cr_assert(xids_add(s, n), "%llu is new", (unsigned long long)n);
	cr_assert_not(xids_add(s, n), "%llu is not", (unsigned long long)n);
}

Test(xids, in_order_needs_no_memory)
{
	struct xids s;

	xids_init(&s);
	cr_assert_not(xids_add(&s, 0), "0 is no number");
	for (uint64_t n = 1; n < 100000; n++)
		twice(&s, n);
	for (uint64_t n = 1; n < 100000; n++)
		cr_assert_not(xids_add(&s, n));
	cr_assert_null(s.large);
	cr_assert_eq(s.forgotten, 0);
	xids_fini(&s);
}

Test(xids, any_order_within_the_window)
{
	struct xids s;

	xids_init(&s);
	for (uint64_t n = 4000; n > 0; n--)
		twice(&s, n);
	cr_assert_eq(s.forgotten, 0);
	twice(&s, 4001);
	for (uint64_t n = 4001; n < 5000; n++)
		xids_add(&s, n);
	xids_trim(&s);
	cr_assert_null(s.large, "all before it has been seen");
	cr_assert_not(xids_add(&s, 4999));
	twice(&s, 5000);
	xids_fini(&s);
}

Test(xids, holes_are_remembered)
{
	struct xids s;

	xids_init(&s);
	for (uint64_t n = 1; n < 100000; n++)
		if (n != 70 && n != 500)
			twice(&s, n);
	twice(&s, 500);
	twice(&s, 70);
	cr_assert_not(xids_add(&s, 71));
	cr_assert_eq(s.forgotten, 0);
	xids_fini(&s);
}

Test(xids, too_many_holes_are_counted_and_never_new_again)
{
	struct xids s;

	xids_init(&s);
	for (uint64_t n = 1; n < 100000; n += 2)
		twice(&s, n);
	cr_assert_gt(s.forgotten, 0);
	cr_assert_not(xids_add(&s, 2), "forgotten counts as seen");
	twice(&s, 99998);
	xids_fini(&s);
}

Test(xids, below)
{
	struct xids s;

	xids_init(&s);
	for (uint64_t n = 1; n < 20000; n++)
		if (n % 1000)
			xids_add(&s, n);
	xids_below(&s, 5500);
	cr_assert_not(xids_add(&s, 5000));
	twice(&s, 6000);
	xids_below(&s, 1000);
	twice(&s, 7000);
	for (uint64_t n = 1; n < 400; n++) {
		xids_below(&s, 30000 + n);
		cr_assert_not(xids_add(&s, 30000 + n));
		cr_assert_not(xids_add(&s, 8000));
		twice(&s, 30001 + n);
	}
	xids_fini(&s);
}

/* What a stranger could send: no number takes long, none is new twice. */
Test(xids, far_jumps)
{
	struct xids s;

	xids_init(&s);
	for (unsigned int i = 0; i < 64; i++)
		twice(&s, (UINT64_C(1) << i) + 5);
	twice(&s, UINT64_MAX);
	xids_below(&s, UINT64_MAX);
	cr_assert_not(xids_add(&s, UINT64_MAX - 5));
	xids_fini(&s);
}

/* Against a table of all numbers. */
Test(xids, random_against_a_table)
{
	static bool seen[1 << 16];
	uint64_t random = 88172645463325252u, at = 1;
	struct xids s;

	xids_init(&s);
	for (unsigned int i = 0; i < 200000; i++) {
		uint64_t n;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		at += random % 64 == 0;
		n = at + random / 64 % 1500;
		if (n >= 1 << 16)
			break;
		cr_assert_eq(xids_add(&s, n), !seen[n], "%llu",
			     (unsigned long long)n);
		seen[n] = true;
	}
	cr_assert_eq(s.forgotten, 0);
	xids_fini(&s);
}
