/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "base/backoff.h"
#include "base/env.h"

#define MS UINT64_C(1000000)

/* The largest pause that there can be: random bits that are a multiple of the
 * range, less one. */
static uint64_t longest(uint64_t base, uint64_t ceiling, unsigned int attempt,
			uint64_t range)
{
	return backoff_ns(base, ceiling, attempt, range - 1);
}

Test(backoff, the_range_doubles_up_to_the_ceiling)
{
	static const uint64_t range_ms[] = { 10, 20, 40, 80, 150, 150 };

	for (unsigned int i = 0; i < ARRAY_SIZE(range_ms); i++) {
		uint64_t range = range_ms[i] * MS;

		cr_expect_eq(longest(10 * MS, 150 * MS, i, range), range);
		/* One more, and it begins anew: so that is the range. */
		cr_expect_eq(backoff_ns(10 * MS, 150 * MS, i, range), 1);
	}
}

Test(backoff, any_number_of_failures)
{
	static const unsigned int attempts[] = { 57, 63,   64,
						 65, 1000, UINT32_MAX };

	for (unsigned int i = 0; i < ARRAY_SIZE(attempts); i++)
		cr_expect_eq(longest(10 * MS, 150 * MS, attempts[i], 150 * MS),
			     150 * MS);
	cr_expect_eq(longest(1, UINT64_MAX, 63, UINT64_C(1) << 63),
		     UINT64_C(1) << 63);
	cr_expect_eq(longest(1, UINT64_MAX, 64, UINT64_MAX), UINT64_MAX);
}

Test(backoff, a_base_above_the_ceiling)
{
	cr_expect_eq(longest(900 * MS, 150 * MS, 0, 150 * MS), 150 * MS);
	cr_expect_eq(longest(900 * MS, 150 * MS, 3, 150 * MS), 150 * MS);
}

/* Each tenth of the range gets its share. */
Test(backoff, spreads_evenly)
{
	unsigned int n[10] = { 0 };
	struct rng rng;

	rng_seed(&rng, 1);
	for (unsigned int i = 0; i < 10000; i++) {
		uint64_t p = backoff_ns(10 * MS, 150 * MS, 9, rng_next(&rng));

		cr_assert(p >= 1 && p <= 150 * MS);
		n[(p - 1) / (15 * MS)]++;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(n); i++)
		cr_expect(n[i] > 900 && n[i] < 1100, "%u: %u", i, n[i]);
}
