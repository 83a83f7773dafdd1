/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "base/backoff.h"
#include "base/env.h"

#define MS    UINT64_C(1000000)
#define FIRST UINT64_C(0) /* random bits that give the smallest value */
#define LAST  UINT64_MAX  /* and the greatest */
#define DRAWS 100000
#define CELLS 20
/* chi-square with CELLS - 1 degrees of freedom exceeds this once in a
 * million */
#define CHI2_MAX 60.0

static const uint32_t numbers[] = { 1,	2,  3,	4,  5,	6,  7,	 8,
				    10, 40, 63, 64, 65, 66, 100, 1000 };

static struct backoff_law law_of(enum backoff_policy policy)
{
	return (struct backoff_law){ .policy = policy,
				     .max = BACKOFF_NO_MAX,
				     .base = 500 * MS,
				     .cap = 30000 * MS };
}

static uint64_t win_of(const struct backoff_law *law, uint32_t n)
{
	uint64_t win = law->base;

	while (--n && win < law->cap)
		win *= 2;
	return MIN(win, law->cap);
}

/* ---- ranges ---- */

/* "mad" subtracts the random part. */
static void expect_range(const struct backoff_law *law, uint32_t n,
			 uint64_t least, uint64_t most)
{
	bool mad = law->policy == BACKOFF_MAD;

	cr_expect_eq(backoff_pause(law, n, FIRST), mad ? most : least, "%u", n);
	cr_expect_eq(backoff_pause(law, n, LAST), mad ? least : most, "%u", n);
}

Test(backoff, full_ranges)
{
	struct backoff_law law = law_of(BACKOFF_FULL);

	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++)
		expect_range(&law, numbers[i], 0, win_of(&law, numbers[i]));
}

Test(backoff, equal_ranges)
{
	struct backoff_law law = law_of(BACKOFF_EQUAL);

	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++) {
		uint64_t win = win_of(&law, numbers[i]);

		expect_range(&law, numbers[i], win / 2, win);
	}
	law.base = 7; /* an odd window is halved */
	expect_range(&law, 1, 3, 7);
}

/* The time from attempt n to retry n + 1, as in the law's table, and in
 * ulrpc_retry(7): multiples of 511 ms, less up to 511 ms. */
Test(backoff, mad_ranges)
{
	static const struct {
		uint64_t least, most; /* ms */
	} table[] = {
		{ 0, 0 },	  { 0, 511 },	    { 511, 1022 },
		{ 1533, 2044 },	  { 3577, 4088 },   { 7665, 8176 },
		{ 15841, 16352 }, { 29489, 30000 }, { 29489, 30000 },
	};
	struct backoff_law law = law_of(BACKOFF_MAD);

	law.base = 511 * MS;
	for (uint32_t n = 0; n < ARRAY_SIZE(table); n++)
		expect_range(&law, n + 1, table[n].least * MS,
			     table[n].most * MS);
}

Test(backoff, none_is_what_was_asked_for)
{
	struct backoff_law law = law_of(BACKOFF_NONE);
	struct backoff b;
	uint64_t at;

	backoff_begin(&b, TIME_NEVER);
	for (unsigned int i = 0; i < 5; i++) {
		struct backoff_failure f = { .now = 7 * MS,
					     .least = 3 * MS,
					     .random = LAST };

		cr_assert_eq(backoff_next(&b, &law, &f, &at), BACKOFF_RETRY);
		cr_expect_eq(at, 10 * MS);
	}
}

Test(backoff, a_base_above_the_cap)
{
	for (enum backoff_policy p = 0; p < BACKOFF_NONE; p++) {
		struct backoff_law law = { .policy = p,
					   .base = 900 * MS,
					   .cap = 150 * MS };

		for (uint32_t n = 1; n < 5; n++) {
			cr_expect(backoff_pause(&law, n, FIRST) <= 150 * MS);
			cr_expect(backoff_pause(&law, n, LAST) <= 150 * MS);
		}
	}
}

/* ---- no overflow ---- */

Test(backoff, any_number_of_failures)
{
	static const struct backoff_law laws[] = {
		{ .base = 500 * MS, .cap = 30000 * MS },
		{ .base = 1, .cap = UINT64_MAX },
		{ .base = UINT64_MAX, .cap = UINT64_MAX },
		{ .base = 3, .cap = UINT64_C(1) << 63 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(laws); i++) {
		struct backoff_law law = laws[i];
		uint64_t win = MIN(law.base, law.cap);

		for (uint32_t n = 1; n <= 1000; n++) {
			cr_assert_eq(backoff_pause(&law, n, LAST), win,
				     "law %u, n = %u", i, n);
			win = win > law.cap / 2 ? law.cap : win * 2;
		}
	}
}

Test(backoff, times_near_the_end_of_the_clock)
{
	struct backoff_law law = law_of(BACKOFF_FULL);
	struct backoff_failure f = { .now = TIME_NEVER - 5,
				     .least = 2,
				     .random = LAST };
	struct backoff b = { .n = UINT32_MAX - 1, .until = TIME_NEVER };
	uint64_t at = 0;

	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(backoff_next(&b, &law, &f, &at), BACKOFF_RETRY);
		cr_expect_eq(at, TIME_NEVER);
	}
	f.least = UINT64_MAX;
	f.now = 0;
	cr_assert_eq(backoff_next(&b, &law, &f, &at), BACKOFF_RETRY);
	cr_expect_eq(at, TIME_NEVER);
}

/* ---- distributions ---- */

/* The chi-square statistic of pauses, which should have @width + 1 equally
 * probable values from @least on. */
static double chi2(const struct backoff_law *law, uint32_t n, uint64_t least,
		   uint64_t width, struct rng *rng)
{
	unsigned int cells[CELLS] = { 0 };
	double sum = 0;

	for (unsigned int i = 0; i < DRAWS; i++) {
		uint64_t x = backoff_pause(law, n, rng_next(rng));

		cr_assert(x >= least && x <= least + width, "n = %u", n);
		x = (x - least) / (width / CELLS);
		cells[MIN(x, CELLS - 1)]++;
	}
	for (unsigned int i = 0; i < CELLS; i++) {
		double off = cells[i] - (double)DRAWS / CELLS;

		sum += off * off * CELLS / DRAWS;
	}
	return sum;
}

Test(backoff, uniform_for_each_retry)
{
	struct backoff_law full = law_of(BACKOFF_FULL);
	struct backoff_law equal = law_of(BACKOFF_EQUAL);
	struct backoff_law mad = law_of(BACKOFF_MAD);
	struct rng rng;

	rng_seed(&rng, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++) {
		uint32_t n = numbers[i];
		uint64_t win = win_of(&full, n), mad_win;

		cr_expect_lt(chi2(&full, n, 0, win, &rng), CHI2_MAX, "%u", n);
		cr_expect_lt(chi2(&equal, n, win / 2, win / 2, &rng), CHI2_MAX,
			     "%u", n);
		if (n == 1)
			continue;
		mad_win = win_of(&mad, n - 1);
		cr_expect_lt(chi2(&mad, n, mad_win - mad.base, mad.base, &rng),
			     CHI2_MAX, "%u", n);
	}
}

/* With few possible values each occurs equally often, both ends included. */
Test(backoff, both_ends_are_in_the_range)
{
	struct backoff_law law = { .base = 3, .cap = 3 };
	unsigned int n[4] = { 0 };
	struct rng rng;

	rng_seed(&rng, 2);
	for (unsigned int i = 0; i < 40000; i++)
		n[backoff_pause(&law, 1, rng_next(&rng))]++;
	for (unsigned int i = 0; i < ARRAY_SIZE(n); i++)
		cr_expect(n[i] > 9500 && n[i] < 10500, "%u: %u", i, n[i]);
}

/* ---- stop rules ---- */

Test(backoff, never_beyond_the_least_wait_and_the_cap)
{
	struct rng rng;

	rng_seed(&rng, 3);
	for (unsigned int i = 0; i < 20000; i++) {
		struct backoff_law law = {
			.policy = (enum backoff_policy)rng_below(
				&rng, BACKOFF_POLICIES),
			.max = BACKOFF_NO_MAX,
			.base = 1 + rng_below(&rng, 1000 * MS),
			.cap = rng_below(&rng, 60000 * MS),
		};
		struct backoff b = { (uint32_t)rng_below(&rng, 100),
				     TIME_NEVER };
		struct backoff_failure f = { rng_next(&rng) >> 8,
					     rng_below(&rng, 5000 * MS), 0,
					     rng_next(&rng) };
		uint64_t at;

		cr_assert_eq(backoff_next(&b, &law, &f, &at), BACKOFF_RETRY);
		cr_assert(at >= f.now + f.least);
		cr_assert(at <= f.now + f.least + law.cap);
	}
}

Test(backoff, never_beyond_the_deadline)
{
	unsigned int retries = 0, ends = 0;
	struct rng rng;

	rng_seed(&rng, 4);
	for (unsigned int i = 0; i < 20000; i++) {
		struct backoff_law law = law_of(
			(enum backoff_policy)rng_below(&rng, BACKOFF_POLICIES));
		struct backoff_failure f = { 0, 100 * MS,
					     rng_below(&rng, 100 * MS), 0 };
		struct backoff b;
		uint64_t at;

		backoff_begin(&b, rng_below(&rng, 60000 * MS));
		for (;;) {
			f.random = rng_next(&rng);
			if (backoff_next(&b, &law, &f, &at) != BACKOFF_RETRY)
				break;
			cr_assert(at + f.answer < b.until);
			f.now = at;
			retries++;
		}
		ends++;
	}
	cr_expect_gt(retries, ends); /* otherwise the loop has tested nothing */
}

/* No retry is begun whose answer would come exactly at the deadline. */
Test(backoff, the_answer_has_to_come_before_the_deadline)
{
	struct backoff_law law = law_of(BACKOFF_NONE);
	struct backoff_failure f = { 10 * MS, 5 * MS, 2 * MS, 0 };
	struct backoff b;
	uint64_t at = 99;

	backoff_begin(&b, 17 * MS);
	cr_expect_eq(backoff_next(&b, &law, &f, &at), BACKOFF_TOO_LATE);
	cr_expect_eq(at, 99);
	cr_expect_eq(b.n, 0);
	b.until++;
	cr_expect_eq(backoff_next(&b, &law, &f, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 15 * MS);
	cr_expect_eq(b.n, 1);
}

Test(backoff, no_more_retries_than_were_asked_for)
{
	for (enum backoff_policy p = 0; p < BACKOFF_POLICIES; p++)
		for (uint32_t max = 0; max < 4; max++) {
			struct backoff_failure f = { 0 };
			struct backoff_law law = law_of(p);
			struct backoff b;
			uint64_t at;

			law.max = max;
			backoff_begin(&b, TIME_NEVER);
			for (uint32_t i = 0; i < max; i++)
				cr_assert_eq(backoff_next(&b, &law, &f, &at),
					     BACKOFF_RETRY);
			cr_expect_eq(backoff_next(&b, &law, &f, &at),
				     BACKOFF_ENOUGH);
		}
}

/* With ten retries allowed, and ten seconds in all, attempts of a second each
 * leave time for four retries, whatever the random numbers. */
Test(backoff, mad_ends_with_its_total_time)
{
	struct backoff_law law = { BACKOFF_MAD, 10, 511 * MS, 30000 * MS };
	struct rng rng;

	rng_seed(&rng, 5);
	for (unsigned int i = 0; i < 1000; i++) {
		struct backoff_failure f = { .least = 1000 * MS };
		struct backoff b;
		uint64_t at;

		backoff_begin(&b, backoff_mad_total(&law, 1000 * MS));
		do {
			f.random = rng_next(&rng);
			f.now = b.n ? at : 0;
		} while (backoff_next(&b, &law, &f, &at) == BACKOFF_RETRY);
		cr_assert_eq(b.n, 4);
	}
}

Test(backoff, mad_total_time)
{
	struct backoff_law law = { .policy = BACKOFF_MAD, .max = 10 };

	cr_expect_eq(backoff_mad_total(&law, 7), 70);
	cr_expect_eq(backoff_mad_total(&law, UINT64_MAX / 9), TIME_NEVER);
	law.max = 0;
	cr_expect_eq(backoff_mad_total(&law, UINT64_MAX), 0);
	law.max = BACKOFF_NO_MAX;
	cr_expect_eq(backoff_mad_total(&law, 1), TIME_NEVER);
}
