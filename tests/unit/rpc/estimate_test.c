/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "base/env.h"
#include "rpc/estimate.h"

#define US  NSEC_PER_USEC
#define MS  NSEC_PER_MSEC
#define SEC NSEC_PER_SEC
/* ns after which a sample does not count as recent any more */
#define LATER (2 * ESTIMATE_RECENT)

/* Returns whether @estimate could be that of @exact: a bucket is a quarter of
 * its octave wide. */
static bool is_near(uint64_t estimate, uint64_t exact)
{
	return estimate >= exact && estimate <= exact + exact / 4;
}

/* Adds @n samples of @ns, at equal intervals in the @time ns from *@now on. */
static void feed(struct estimate *e, uint64_t ns, unsigned int n, uint64_t time,
		 uint64_t *now)
{
	for (unsigned int i = 0; i < n; i++) {
		*now += time / n;
		estimate_add(e, ns, 1, *now);
	}
}

Test(estimate, nothing_is_known_at_first)
{
	struct estimate e = { 0 };

	cr_expect_eq(estimate_read(&e, 0), 0);
	cr_expect_eq(estimate_read(&e, 1000000 * SEC), 0);
}

Test(estimate, one_sample_is_known_exactly_and_then_by_its_bucket)
{
	struct estimate e = { 0 };
	uint64_t now = 12345 * SEC;

	estimate_add(&e, 777777, 1, now);
	cr_expect_eq(estimate_read(&e, now), 777777);
	cr_expect(is_near(estimate_read(&e, now + ESTIMATE_RECENT), 777777));
	cr_expect(is_near(estimate_read(&e, now + LATER), 777777));
}

Test(estimate, what_takes_no_time_is_known_too)
{
	struct estimate e = { 0 };

	estimate_add(&e, 0, 1, SEC);
	cr_expect_eq(estimate_read(&e, SEC), 1);
	cr_expect_neq(estimate_read(&e, SEC + LATER), 0);
	cr_expect_leq(estimate_read(&e, SEC + LATER), 2 * US);
}

Test(estimate, no_samples_are_none)
{
	struct estimate e = { 0 };

	estimate_add(&e, SEC, 0, SEC);
	cr_expect_eq(estimate_read(&e, SEC), 0);
}

/* An estimate from one sample is near that sample, from the first bucket to the
 * last. */
Test(estimate, the_whole_range)
{
	for (uint64_t ns = 1100; ns < 4000 * SEC; ns += ns / 9) {
		struct estimate e = { 0 };

		estimate_add(&e, ns, 1, 0);
		cr_assert(is_near(estimate_read(&e, LATER), ns), "%lu", ns);
	}
}

Test(estimate, what_is_beyond_the_range)
{
	struct estimate e = { 0 };

	estimate_add(&e, UINT64_MAX, 1, 0);
	cr_expect_eq(estimate_read(&e, 0), UINT64_MAX);
	cr_expect_geq(estimate_read(&e, LATER), 3600 * SEC);
}

/* ---- recent samples ---- */

/* At any time the estimate is at least the longest sample of the last two
 * seconds, and at most the bucket of the longest sample of all. */
Test(estimate, never_below_what_was_just_seen)
{
	uint64_t at[3000], ns[3000], longest = 0, now = 0;
	struct estimate e = { 0 };
	struct rng rng;

	rng_seed(&rng, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(at); i++) {
		uint64_t recent = 0, is;

		now += rng_below(&rng, 300 * MS);
		at[i] = now;
		ns[i] = UINT64_C(1) << rng_below(&rng, 36);
		ns[i] += rng_below(&rng, ns[i]);
		longest = MAX(longest, ns[i]);
		estimate_add(&e, ns[i], 1, now);
		for (unsigned int j = i + 1; j--;) {
			if (now - at[j] > ESTIMATE_RECENT)
				break;
			recent = MAX(recent, ns[j]);
		}
		is = estimate_read(&e, now);
		cr_assert_geq(is, recent);
		cr_assert(is <= MAX(longest + longest / 4, 2 * US));
	}
}

Test(estimate, a_server_that_becomes_slow_is_believed_at_once)
{
	struct estimate e = { 0 };
	uint64_t now = 0;

	feed(&e, MS, 100000, 60 * SEC, &now);
	estimate_add(&e, 500 * MS, 1, now);
	cr_expect_eq(estimate_read(&e, now), 500 * MS);
}

/* ---- old samples ---- */

/* An outlier among very many samples counts for seconds. */
Test(estimate, one_outlier_is_forgotten_in_seconds)
{
	struct estimate e = { 0 };
	uint64_t now = 0;

	feed(&e, MS, 10000, 10 * SEC, &now);
	estimate_add(&e, 10 * SEC, 1, now);
	feed(&e, MS, 1000, LATER, &now);
	cr_expect(is_near(estimate_read(&e, now), MS));
}

/* An outlier among few samples counts for minutes. */
Test(estimate, one_outlier_is_forgotten_in_minutes)
{
	struct estimate e = { 0 };
	uint64_t now = 0;

	feed(&e, MS, 10, 10 * SEC, &now);
	estimate_add(&e, 10 * SEC, 1, now);
	feed(&e, MS, 10, 10 * SEC, &now);
	/* one of 21 samples */
	cr_expect(is_near(estimate_read(&e, now), 10 * SEC));
	feed(&e, MS, 180, 3 * ESTIMATE_HALF_LIFE, &now);
	cr_expect(is_near(estimate_read(&e, now), MS));
}

/* At first a tenth of the samples is slow, then none is. With each half-life
 * the weight of the slow ones halves, so between six and seven half-lives later
 * they are less than one in a thousand. */
Test(estimate, the_half_life)
{
	struct estimate e = { 0 };
	uint64_t now = 0;
	unsigned int i;

	for (i = 0; i < 20 * 6000; i++) {
		now += 10 * MS;
		estimate_add(&e, i % 10 ? MS : SEC, 1, now);
	}
	for (i = 0; i < 20; i++) {
		feed(&e, MS, 6000, ESTIMATE_HALF_LIFE, &now);
		if (is_near(estimate_read(&e, now), MS))
			break;
	}
	cr_expect(i >= 5 && i <= 6, "%u", i);
}

/* Samples are forgotten by time alone, even if no others follow. */
Test(estimate, all_is_forgotten)
{
	struct estimate e = { 0 };

	estimate_add(&e, SEC, 1, SEC);
	cr_expect_neq(estimate_read(&e, 2 * ESTIMATE_HALF_LIFE), 0);
	cr_expect_eq(estimate_read(&e, 4 * ESTIMATE_HALF_LIFE), 0);
	estimate_add(&e, SEC, UINT32_MAX, 4 * ESTIMATE_HALF_LIFE);
	cr_expect(is_near(estimate_read(&e, 30 * ESTIMATE_HALF_LIFE), SEC));
	cr_expect_eq(estimate_read(&e, 40 * ESTIMATE_HALF_LIFE), 0);
}

/* ---- large numbers ---- */

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Compares the estimate with the sorted samples, all of one half-life. */
Test(estimate, the_tail_of_many)
{
	struct rng rng;

	rng_seed(&rng, 2);
	for (unsigned int round = 0; round < 20; round++) {
		unsigned int n = 1000 + (unsigned int)rng_below(&rng, 9000);
		uint64_t *all = malloc(n * sizeof(*all));
		struct estimate e = { 0 };

		cr_assert_not_null(all);
		for (unsigned int i = 0; i < n; i++) {
			all[i] = 10 * US + rng_below(&rng, 10 * US);
			all[i] <<= rng_below(&rng, rng_below(&rng, 20));
			estimate_add(&e, all[i], 1, i * MS);
		}
		qsort(all, n, sizeof(*all), compare);
		cr_expect(is_near(estimate_read(&e, 40 * SEC),
				  all[n - 1 - n / 1000]),
			  "round %u", round);
		free(all);
	}
}

/* Samples that are added many at a time count like single ones. */
Test(estimate, many_at_a_time)
{
	struct estimate a = { 0 }, b = { 0 };

	for (unsigned int i = 0; i < 1000; i++) {
		estimate_add(&a, MS, 1, SEC);
		estimate_add(&a, SEC, 1, SEC);
	}
	estimate_add(&b, MS, 1000, SEC);
	estimate_add(&b, SEC, 1000, SEC);
	cr_expect_arr_eq(&a, &b, sizeof(a));
}

Test(estimate, more_than_a_counter_holds)
{
	struct estimate e = { 0 };

	for (unsigned int i = 0; i < 10; i++)
		estimate_add(&e, MS, UINT32_MAX, SEC);
	estimate_add(&e, SEC, 1000, SEC);
	cr_expect(is_near(estimate_read(&e, SEC + LATER), MS));
}

/* Another thread may pass a time that is earlier than that of the last sample.
 */
Test(estimate, time_does_not_go_back)
{
	struct estimate a = { 0 }, b = { 0 };

	estimate_add(&a, MS, 1, 100 * SEC);
	estimate_add(&b, MS, 1, 100 * SEC);
	estimate_add(&a, SEC, 1, 100 * SEC);
	estimate_add(&b, SEC, 1, 10 * SEC);
	cr_expect_arr_eq(&a, &b, sizeof(a));
	cr_expect_eq(estimate_read(&b, 5 * SEC), SEC);
	cr_expect_arr_eq(&a, &b, sizeof(a));
}

/* ---- means ---- */

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

/* If the samples do not change, the deviation goes to zero. */
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

/* Nearly all samples are below the mean plus four deviations. */
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
