/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "base/env.h"
#include "rpc/estimate.h"

#define US UINT64_C(1000)

Test(mean, nothing_is_known_at_first)
{
	struct mean m = { 0 };

	cr_expect_eq(mean_value(&m), 0);
	cr_expect_eq(mean_upto(&m, 4), 0);
}

Test(mean, the_first_sample_with_half_of_it)
{
	struct mean m = { 0 };

	mean_add(&m, 100 * US);
	cr_expect_eq(mean_value(&m), 100 * US);
	cr_expect_eq(mean_upto(&m, 4), 300 * US);
}

Test(mean, a_sample_of_nothing_is_one)
{
	struct mean m = { 0 };

	mean_add(&m, 0);
	cr_expect_eq(mean_value(&m), 1);
}

/* The distance is forgotten when there is none any more. */
Test(mean, what_does_not_change)
{
	struct mean m = { 0 };

	for (unsigned int i = 0; i < 100; i++)
		mean_add(&m, 800 * US);
	cr_expect_eq(mean_value(&m), 800 * US);
	cr_expect(mean_upto(&m, 4) < 801 * US);
}

Test(mean, follows_what_changes)
{
	struct mean m = { 0 };

	mean_add(&m, 100 * US);
	for (unsigned int i = 0; i < 50; i++)
		mean_add(&m, 5000 * US);
	cr_expect(mean_value(&m) > 4900 * US && mean_value(&m) <= 5000 * US);
	for (unsigned int i = 0; i < 60; i++)
		mean_add(&m, 100 * US);
	cr_expect(mean_value(&m) < 110 * US);
}

/* Four deviations more than the mean are above nearly all. */
Test(mean, what_varies_is_below_four_deviations)
{
	unsigned int above = 0;
	struct mean m = { 0 };
	struct rng rng;

	rng_seed(&rng, 1);
	for (unsigned int i = 0; i < 10000; i++) {
		uint64_t x = 100 * US + rng_below(&rng, 100 * US);

		above += i && x > mean_upto(&m, 4);
		mean_add(&m, x);
	}
	cr_expect_lt(above, 50);
}
