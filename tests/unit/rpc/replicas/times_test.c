/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/replicas/times.h"

#include "tests/unit/lnet/cluster.h"

#define US UINT64_C(1000)

static struct times t;

static void add(uint32_t method, uint64_t us, unsigned int n)
{
	while (n--)
		times_add(&t, method, us * US, false);
}

Test(times, nineteen_of_twenty)
{
	times_init(&t);
	cr_assert_eq(times_most(&t, 1), TIME_NEVER);
	add(1, 100, TIMES_MIN - 1);
	cr_assert_eq(times_most(&t, 1), TIME_NEVER, "too few");
	add(1, 100, 900);
	cr_assert(times_most(&t, 1) >= 100 * US &&
		  times_most(&t, 1) <= 125 * US);
	cr_assert_eq(times_most(&t, 2), TIME_NEVER);
	add(1, 50000, 80);
	cr_assert(times_most(&t, 1) >= 50000 * US &&
			  times_most(&t, 1) <= 62500 * US,
		  "more than one of twenty takes longer than 100 us");
	/* What was long ago counts less and less. */
	add(1, 100, 4000);
	cr_assert_leq(times_most(&t, 1), 125 * US);
	times_free(&t);
}

Test(times, the_usual_time_and_what_is_saved_up)
{
	times_init(&t);
	cr_assert_eq(times_usual(&t, 1), 0);
	cr_assert_null(times_hedges(&t, 1), "nothing is known of it");
	cr_assert(times_add(&t, 1, 100 * US, false));
	cr_assert_not(times_add(&t, 1, 300 * US, true));
	cr_assert_eq(times_usual(&t, 1), 200 * US);
	add(1, 1000, 200);
	cr_assert(times_usual(&t, 1) > 990 * US &&
		  times_usual(&t, 1) <= 1000 * US);
	add(2, 5, 1);
	cr_assert_eq(times_usual(&t, 2), 5 * US);
	*times_hedges(&t, 1) = 7;
	cr_assert_eq(*times_hedges(&t, 2), 0, "each has its own");
	cr_assert_eq(*times_hedges(&t, 1), 7);
	times_free(&t);
}

Test(times, any_time_has_its_place)
{
	times_init(&t);
	for (uint64_t us = 1; us < UINT64_C(1) << 50; us *= 2) {
		times_free(&t);
		add(7, us, TIMES_MIN);
		cr_assert(times_most(&t, 7) >= MIN(us, UINT64_C(1) << 31) * US);
		cr_assert(times_most(&t, 7) <= MAX(us * 5 / 4, 5) * US);
	}
	times_free(&t);
	add(7, 0, TIMES_MIN);
	cr_assert_leq(times_most(&t, 7), 5 * US);
	times_free(&t);
}

Test(times, methods_are_bounded)
{
	times_init(&t);
	for (uint32_t m = 0; m < TIMES_METHODS + 5; m++)
		add(m, 100, TIMES_MIN);
	cr_assert_neq(times_most(&t, TIMES_METHODS - 1), TIME_NEVER);
	cr_assert_eq(times_most(&t, TIMES_METHODS), TIME_NEVER);
	times_free(&t);
}
