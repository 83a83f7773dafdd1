/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>
#include "services/common/pattern.h"

#define SIZE 4096

/* Data of any length are filled, and no byte behind them. */
Test(pattern, any_length)
{
	unsigned char buf[80];

	for (size_t n = 0; n <= 72; n++) {
		memset(buf, 0xee, sizeof(buf));
		pattern_fill(buf, n, 7, 16);
		for (size_t i = n; i < sizeof(buf); i++)
			cr_assert_eq(buf[i], 0xee);
		cr_assert_eq(pattern_check(buf, n, 7, 16), n);
	}
}

/* A part of the data has the same bytes as in the whole. */
Test(pattern, parts)
{
	unsigned char whole[SIZE], part[SIZE];

	pattern_fill(whole, SIZE, 1, 0);
	for (size_t at = 0; at < SIZE; at += PATTERN_ALIGN) {
		pattern_fill(part, SIZE - at, 1, at);
		cr_assert_eq(memcmp(part, whole + at, SIZE - at), 0, "%zu", at);
	}
}

/* A single wrong bit is found, wherever it is. */
Test(pattern, wrong_byte)
{
	unsigned char buf[203];

	pattern_fill(buf, sizeof(buf), 99, 8);
	for (size_t i = 0; i < sizeof(buf); i++) {
		for (int bit = 0; bit < 8; bit++) {
			buf[i] ^= 1 << bit;
			cr_assert_eq(pattern_check(buf, sizeof(buf), 99, 8), i);
			buf[i] ^= 1 << bit;
		}
	}
	cr_assert_eq(pattern_check(buf, sizeof(buf), 99, 8), sizeof(buf));
}

/* Data of another offset or seed are wrong. */
Test(pattern, wrong_place)
{
	unsigned char buf[SIZE];

	pattern_fill(buf, SIZE, 5, 1024);
	for (uint64_t at = 0; at <= 2048; at += PATTERN_ALIGN)
		if (at != 1024)
			cr_assert_lt(pattern_check(buf, SIZE, 5, at), 8);
	for (uint64_t seed = 0; seed < 100; seed++)
		if (seed != 5)
			cr_assert_lt(pattern_check(buf, SIZE, seed, 1024), 8);
	/* The pattern of the next seed is not this one, shifted by a word. */
	cr_assert_lt(pattern_check(buf, SIZE, 6, 1024 - 8), 8);
	cr_assert_lt(pattern_check(buf, SIZE, 4, 1024 + 8), 8);
}
