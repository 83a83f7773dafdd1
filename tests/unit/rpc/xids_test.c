/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "rpc/xids.h"

static void is(struct xids *s, uint64_t n, enum xids_past past)
{
	cr_assert_eq(xids_add(s, n), past, "%llu", (unsigned long long)n);
}

static void twice(struct xids *s, uint64_t n)
{
	is(s, n, XIDS_NEW);
	is(s, n, XIDS_SEEN);
}

Test(xids, in_order_needs_no_memory)
{
	struct xids s;

	xids_init(&s);
	is(&s, 0, XIDS_SEEN); /* 0 is no number */
	for (uint64_t n = 1; n < 100000; n++)
		twice(&s, n);
	for (uint64_t n = 1; n < 100000; n++)
		is(&s, n, XIDS_SEEN);
	cr_assert_null(s.large);
	cr_assert_eq(s.lost, 0);
	xids_fini(&s);
}

Test(xids, any_order_within_the_window)
{
	struct xids s;

	xids_init(&s);
	for (uint64_t n = 4000; n > 0; n--)
		twice(&s, n);
	cr_assert_eq(s.lost, 0);
	twice(&s, 4001);
	is(&s, 4001, XIDS_SEEN);
	for (uint64_t n = 4002; n < 5000; n++)
		is(&s, n, XIDS_NEW);
	xids_trim(&s);
	cr_assert_null(s.large, "all before it has been seen");
	is(&s, 4999, XIDS_SEEN);
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
	is(&s, 71, XIDS_SEEN);
	cr_assert_eq(s.lost, 0);
	xids_fini(&s);
}

Test(xids, of_too_many_holes_the_oldest_are_not_known_any_more)
{
	struct xids s;

	xids_init(&s);
	for (uint64_t n = 1; n < 100000; n += 2)
		twice(&s, n);
	is(&s, 2, XIDS_LOST);
	is(&s, 3, XIDS_LOST);
	twice(&s, 99998);
	xids_fini(&s);
}

Test(xids, below)
{
	struct xids s;

	xids_init(&s);
	for (uint64_t n = 1; n < 20000; n++)
		if (n % 1000)
			is(&s, n, XIDS_NEW);
	xids_below(&s, 5500);
	is(&s, 5000, XIDS_SEEN);
	twice(&s, 6000);
	xids_below(&s, 1000);
	twice(&s, 7000);
	for (uint64_t n = 1; n < 400; n++) {
		xids_below(&s, 30000 + n);
		is(&s, 30000 + n, XIDS_SEEN);
		is(&s, 8000, XIDS_SEEN);
		twice(&s, 30001 + n);
	}
	xids_fini(&s);
}

/* All that are not further apart than the span are known, whatever came
 * between, and wherever the first one is in its word. */
Test(xids, the_span_is_known)
{
	for (uint64_t first = 1; first < 200; first++) {
		struct xids s;

		xids_init(&s);
		for (uint64_t n = 1; n < first; n++)
			is(&s, n, XIDS_NEW);
		is(&s, first + XIDS_SPAN - 1, XIDS_NEW);
		cr_assert_leq(s.base, first / 64);
		is(&s, first, XIDS_NEW);
		cr_assert_eq(s.lost, 0);
		xids_fini(&s);
	}
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
	is(&s, UINT64_MAX - 5, XIDS_SEEN);
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
		is(&s, n, seen[n] ? XIDS_SEEN : XIDS_NEW);
		seen[n] = true;
	}
	cr_assert_eq(s.lost, 0);
	xids_fini(&s);
}

/* A window that is told what does not come any more begins with a word that is
 * not full: else nothing would ever move it. */
Test(xids, told_that_the_rest_of_a_word_does_not_come)
{
	struct xids s;

	xids_init(&s);
	for (uint64_t n = 40; n < 128; n++)
		is(&s, n, XIDS_NEW);
	xids_below(&s, 39);
	for (uint64_t n = 128; n < 1000; n++)
		twice(&s, n);
	cr_assert_null(s.large);
	cr_assert_eq(s.lost, 0);
	xids_fini(&s);
}
