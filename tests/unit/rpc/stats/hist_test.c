/* SPDX-License-Identifier: BSD-3-Clause */
/* Histograms, compared with sorted values. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "rpc/stats/hist.h"

#define VALUES 20000

static uint64_t state = 88172645463325252;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Returns a random time, of any magnitude that has a bucket. */
static uint64_t any_time(void)
{
	return next() >> (64 - HIST_RANGE_BITS + next() % HIST_RANGE_BITS);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Checks that @got is @want with an error of at most a sixteenth, or half a
 * unit; after merging, a whole unit. */
static void near(uint64_t got, uint64_t want, unsigned int unit_bits)
{
	uint64_t may = UINT64_C(1) << unit_bits;

	if (unit_bits == HIST_UNIT_BITS) /* else merged */
		may /= 2;
	may = MAX(want / 16, may);
	cr_assert_leq(distance(got, want), may, "%lu is not %lu", got, want);
}

static uint64_t exact(const uint64_t *sorted, size_t n, unsigned int p)
{
	size_t rank = (n * p + 9999) / 10000;

	return sorted[rank ? rank - 1 : 0];
}

Test(hist, buckets_follow_each_other)
{
	uint64_t low, end = 0;

	for (unsigned int b = 0; b < HIST_BUCKETS; b++) {
		uint64_t before = end;

		end = hist_range(b, 0, &low);
		cr_assert_eq(low, before);
		cr_assert_gt(end, low);
		cr_assert_eq(hist_bucket(low), b);
		cr_assert_eq(hist_bucket(end - 1), b);
		cr_assert(end - low == 1 || (end - low) * 8 <= low);
	}
	cr_assert_eq(end, UINT64_C(1) << (HIST_RANGE_BITS - HIST_UNIT_BITS));
	hist_range(HIST_SMALL - 1, HIST_SMALL_BITS, &low);
	cr_assert_eq(hist_range(HIST_SMALL - 1, HIST_SMALL_BITS, &low),
		     UINT64_C(1) << HIST_RANGE_BITS);
}

/* Any single value is read with a bounded error. */
Test(hist, error_is_bounded)
{
	for (int i = 0; i < VALUES; i++) {
		uint64_t ns = any_time(), low = any_time() % (ns + 1);
		struct hist h = { 0 }, from_small = { 0 };
		struct hist_small s = { 0 };

		/* A smaller and a larger value keep min and max from giving the
		 * result away. */
		for (int j = 0; j < 2; j++) {
			uint64_t v[] = { low, ns, UINT64_C(1) << 41 };

			for (unsigned int k = 0; k < 3; k++) {
				hist_add(&h, v[k], 1);
				cr_assert(hist_small_add(&s, v[k], 1));
			}
		}
		hist_merge_small(&from_small, &s);
		if (ns >= UINT64_C(1) << 41)
			continue;
		near(hist_quantile(&h, 5000), ns, HIST_UNIT_BITS);
		near(hist_quantile(&from_small, 5000), ns, HIST_SMALL_BITS);
	}
}

Test(hist, quantiles_of_sorted_values)
{
	static const unsigned int ps[] = { 0,	 1,    100,  2500, 5000,
					   9000, 9900, 9990, 9999, 10000 };
	uint64_t *v = malloc(VALUES * sizeof(*v)), sum = 0;
	struct hist h = { 0 };

	for (int shape = 0; shape < 3; shape++) {
		memset(&h, 0, sizeof(h));
		sum = 0;
		for (int i = 0; i < VALUES; i++) {
			v[i] = shape == 0   ? any_time()
			       : shape == 1 ? 10000 + next() % 3000
					    : (next() % 100 ? 25000 : 9000000);
			hist_add(&h, v[i], 1);
			sum += v[i];
		}
		qsort(v, VALUES, sizeof(*v), by_value);
		for (unsigned int i = 0; i < ARRAY_SIZE(ps); i++)
			near(hist_quantile(&h, ps[i]), exact(v, VALUES, ps[i]),
			     HIST_UNIT_BITS);
		cr_assert_eq(hist_count(&h), VALUES);
		cr_assert_eq(hist_min(&h), v[0]);
		cr_assert_eq(h.max, v[VALUES - 1]);
		cr_assert_eq(h.sum, sum);
	}
	free(v);
}

Test(hist, empty)
{
	struct hist h = { 0 };

	cr_assert_eq(hist_count(&h), 0);
	cr_assert_eq(hist_min(&h), 0);
	cr_assert_eq(hist_quantile(&h, 5000), 0);
	hist_add(&h, 0, 1);
	cr_assert_eq(hist_count(&h), 1);
	cr_assert_eq(hist_min(&h), 0);
	cr_assert_eq(hist_quantile(&h, 5000), 0);
}

/* A time beyond all buckets is counted, and can be the maximum. */
Test(hist, beyond_the_range)
{
	const uint64_t day = UINT64_C(24) * 3600 * 1000000000;
	struct hist h = { 0 }, merged = { 0 };
	struct hist_small s = { 0 };

	hist_add(&h, day, 1);
	hist_add(&h, UINT64_C(1) << HIST_RANGE_BITS, 1);
	cr_assert_eq(hist_count(&h), 2);
	cr_assert_eq(hist_quantile(&h, 10000), day);
	cr_assert(hist_small_add(&s, day, 1));
	hist_merge_small(&merged, &s);
	cr_assert_eq(hist_quantile(&merged, 5000), day);
}

/* A histogram merged from parts equals that of all values. */
Test(hist, merge)
{
	struct hist parts[4] = { 0 }, whole = { 0 }, sum = { 0 };

	for (int i = 0; i < VALUES; i++) {
		uint64_t ns = any_time();

		hist_add(&whole, ns, 1);
		/* the last part stays empty */
		hist_add(&parts[next() % 3], ns, 1);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++)
		hist_merge(&sum, &parts[i]);
	cr_assert_eq(memcmp(&sum, &whole, sizeof(sum)), 0);
}

/* Adding a value n times at once equals adding it n times. */
Test(hist, several_at_once)
{
	struct hist at_once = { 0 }, one_by_one = { 0 };
	struct hist_small small_at_once = { 0 }, small_one_by_one = { 0 };

	for (int i = 0; i < VALUES / 10; i++) {
		uint32_t n = 1 + (uint32_t)(next() % 20);
		uint64_t ns = any_time();

		hist_add(&at_once, ns, n);
		cr_assert(hist_small_add(&small_at_once, ns, n));
		while (n--) {
			hist_add(&one_by_one, ns, 1);
			cr_assert(hist_small_add(&small_one_by_one, ns, 1));
		}
	}
	cr_assert_eq(memcmp(&at_once, &one_by_one, sizeof(at_once)), 0);
	cr_assert_eq(memcmp(&small_at_once, &small_one_by_one,
			    sizeof(small_at_once)),
		     0);
}

/* The time 0 counts, and is the minimum. */
Test(hist, zero)
{
	struct hist h = { 0 };

	hist_add(&h, 7000, 1);
	cr_assert_eq(hist_min(&h), 7000);
	for (int i = 0; i < 3; i++)
		hist_add(&h, 0, 1);
	cr_assert_eq(hist_count(&h), 4);
	cr_assert_eq(hist_min(&h), 0);
	cr_assert_eq(h.n[0], 3);
	cr_assert_eq(h.sum, 7000);
	cr_assert_eq(h.max, 7000);
}

/* A bucket of a small histogram overflows its 32-bit counter. */
Test(hist, small_one_is_full)
{
	struct hist_small s = { 0 };
	struct hist h = { 0 };
	unsigned int b = hist_bucket(20000 >> HIST_SMALL_BITS);

	cr_assert(hist_small_add(&s, 20000, 1));
	cr_assert(hist_small_add(&s, 5000000, 1));
	for (int i = 0; i < 3; i++) {
		s.n[b] = UINT32_MAX; /* as if so many had been added */
		cr_assert(hist_small_add(&s, 20000, 1));
		cr_assert_eq(s.n[b], 1);
	}
	hist_merge_small(&h, &s);
	cr_assert_eq(hist_count(&h), UINT64_C(3) * UINT32_MAX + 2);
	near(hist_quantile(&h, 5000), 20000, HIST_SMALL_BITS);
	near(hist_quantile(&h, 10000), 5000000, HIST_SMALL_BITS);
	hist_small_clear(&s);
	cr_assert_null(s.spilled);
	cr_assert_eq(s.not_min, 0);
}

/* Values that are collected before they are added are those that would be added
 * one by one; with a base that is a multiple of a unit. */
Test(hist, fine)
{
	for (unsigned int round = 0; round < 50; round++) {
		uint64_t base = (round % 3) * (next() % 100000)
				<< HIST_SMALL_BITS;
		struct hist_small small = { 0 }, small_one_by_one = { 0 };
		struct hist h = { 0 }, one_by_one = { 0 };
		struct hist_fine f = { 0 };
		uint32_t n = 0;

		for (bool room = true; room; n++) {
			uint32_t ns = (uint32_t)(next() % HIST_FINE_END);

			if (round % 2)
				ns = 100 + ns % 30;
			room = hist_fine_add(&f, ns);
			hist_add(&one_by_one, base + ns, 1);
			cr_assert(hist_small_add(&small_one_by_one, base + ns,
						 1));
		}
		cr_assert_geq(n, UINT8_MAX);
		hist_add_fine(&h, base, &f, n);
		cr_assert(hist_small_add_fine(&small, base, &f, n));
		cr_assert_eq(memcmp(&h, &one_by_one, sizeof(h)), 0);
		cr_assert_eq(memcmp(&small, &small_one_by_one, sizeof(small)),
			     0);
	}
}
