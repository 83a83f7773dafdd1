/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "tools/rpcping/rpcping.h"

static uint64_t close_to(uint64_t a, uint64_t b)
{
	uint64_t gap = a < b ? b - a : a - b;

	return gap * 100 <= b;
}

/* Greater values are in the same bucket or a later one, no bucket is skipped,
 * and each power of two begins a bucket. */
Test(histogram, buckets)
{
	unsigned int last = 0, index;

	for (uint64_t ns = 0; ns < 1u << 20; ns++) {
		index = histogram_index(ns);
		cr_assert(index == last || index == last + 1, "%ju",
			  (uintmax_t)ns);
		last = index;
	}
	for (unsigned int bit = 20; bit < HISTOGRAM_TOP; bit++) {
		index = histogram_index((UINT64_C(1) << bit) - 1);
		cr_assert_eq(histogram_index(UINT64_C(1) << bit), index + 1);
	}
	cr_assert_eq(histogram_index((UINT64_C(1) << HISTOGRAM_TOP) - 1),
		     HISTOGRAM_SIZE - 1);
}

/* The median of many equal values, between others, is read with an error of at
 * most 1 %. */
Test(histogram, error)
{
	for (uint64_t ns = 1; ns < UINT64_C(1) << 43; ns += ns / 7 + 1) {
		struct histogram h = { 0 };

		histogram_add(&h, 1);
		for (int i = 0; i < 10; i++)
			histogram_add(&h, ns);
		histogram_add(&h, UINT64_C(1) << 43);
		cr_assert(close_to(histogram_quantile(&h, 0.5), ns),
			  "%ju is read as %ju", (uintmax_t)ns,
			  (uintmax_t)histogram_quantile(&h, 0.5));
	}
}

Test(histogram, quantiles)
{
	static struct histogram h;

	cr_assert_eq(histogram_quantile(&h, 0.5), 0);
	for (uint64_t i = 1; i <= 1000; i++)
		histogram_add(&h, i * 1000);
	cr_assert_eq(h.min, 1000);
	cr_assert_eq(h.max, 1000000);
	cr_assert_eq(h.sum, 500500000);
	cr_assert(close_to(histogram_quantile(&h, 0.5), 500000));
	cr_assert(close_to(histogram_quantile(&h, 0.9), 900000));
	cr_assert(close_to(histogram_quantile(&h, 0.99), 990000));
	cr_assert(close_to(histogram_quantile(&h, 0.999), 999000));
	cr_assert_eq(histogram_quantile(&h, 1), 1000000);
	cr_assert(close_to(histogram_quantile(&h, 0), 1000));
}

Test(histogram, one_value)
{
	struct histogram h = { 0 };

	histogram_add(&h, 12345);
	cr_assert_eq(histogram_quantile(&h, 0.5), 12345);
	cr_assert_eq(histogram_quantile(&h, 0.999), 12345);
}

Test(histogram, beyond)
{
	struct histogram h = { 0 };

	histogram_add(&h, UINT64_MAX);
	cr_assert_eq(h.max, (UINT64_C(1) << HISTOGRAM_TOP) - 1);
	cr_assert_eq(h.count[HISTOGRAM_SIZE - 1], 1);
}

Test(histogram, merge_and_since)
{
	static struct histogram a, b, empty, sum, rest;

	histogram_add(&a, 10);
	histogram_add(&a, 5000);
	histogram_add(&b, 3);
	histogram_add(&b, 70);
	histogram_merge(&sum, &empty);
	cr_assert_eq(sum.n, 0);
	histogram_merge(&sum, &a);
	histogram_merge(&sum, &empty);
	histogram_merge(&sum, &b);
	cr_assert_eq(sum.n, 4);
	cr_assert_eq(sum.min, 3);
	cr_assert_eq(sum.max, 5000);
	cr_assert_eq(sum.sum, 5083);
	histogram_since(&rest, &sum, &a);
	cr_assert_eq(rest.n, 2);
	cr_assert_eq(rest.count[3], 1);
	cr_assert_eq(rest.count[70], 1);
	cr_assert_eq(rest.count[10], 0);
}
