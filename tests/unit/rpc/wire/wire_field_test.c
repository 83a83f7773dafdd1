/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoding of fields at the very end of memory, behind which nothing may be
 * read. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include "rpc/wire/wire_field.h"

#define BYTES_MAX 12

/* Returns a copy in an allocation of its own, so that ASan sees reads behind
 * it. */
static uint8_t *exactly(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	cr_assert(copy);
	return memcpy(copy, bytes, n);
}

static void check_number(uint64_t v)
{
	uint8_t bytes[BYTES_MAX] = { 0 };
	size_t n = (size_t)(put_varint(bytes, v) - bytes);

	for (size_t cut = 0; cut <= n + 1; cut++) {
		uint8_t *p = exactly(bytes, cut);
		const uint8_t *end = cut >= n ? p + n : NULL;
		uint64_t got = ~v;

		cr_assert_eq(get_varint(p, p + cut, &got), end, "%zu of %zu",
			     cut, n);
		cr_assert(!end || got == v, "%zu of %zu", cut, n);
		cr_assert_eq(skip_varint(p, p + cut), end, "%zu of %zu", cut,
			     n);
		free(p);
	}
}

/* The value must not depend on the bytes that follow, nor on their number. */
static void check_followed(uint64_t v, uint8_t by)
{
	uint8_t bytes[2 * BYTES_MAX];
	size_t n = (size_t)(put_varint(bytes, v) - bytes);

	memset(bytes + n, by, BYTES_MAX);
	for (size_t more = 0; more < 9; more++) {
		uint8_t *p = exactly(bytes, n + more);
		uint64_t got = ~v;

		cr_assert_eq(get_varint(p, p + n + more, &got), p + n);
		cr_assert_eq(got, v);
		free(p);
	}
}

Test(wire_field, number_of_any_length_cut_anywhere)
{
	check_number(0);
	for (unsigned int bit = 0; bit < 64; bit++) {
		check_number(UINT64_C(1) << bit);
		check_number(UINT64_MAX >> bit);
	}
}

Test(wire_field, number_of_any_length_and_what_follows)
{
	uint64_t v = 88172645463325252;

	for (unsigned int bit = 0; bit < 64; bit++) {
		for (unsigned int by = 0; by < 256; by += 5) {
			v ^= v << 13;
			v ^= v >> 7;
			v ^= v << 17;
			check_followed(v >> bit, (uint8_t)by);
		}
	}
}

Test(wire_field, number_without_an_end)
{
	uint8_t bytes[BYTES_MAX];
	uint64_t v;

	memset(bytes, 0x80, sizeof(bytes));
	bytes[BYTES_MAX - 1] = 0;
	cr_assert_null(get_varint(bytes, bytes + sizeof(bytes), &v));
	cr_assert_null(skip_varint(bytes, bytes + sizeof(bytes)));
}

/* Writes a field with @length bytes of content, all 7; with @other, after an
 * unknown field. */
static size_t put_content(uint8_t *bytes, bool other, size_t length)
{
	uint8_t *p = bytes;

	if (other)
		p = put_varint_field(p, 9, 300);
	*p++ = TAG(5, WT_LEN);
	p = put_varint(p, length);
	memset(p, 7, length);
	return (size_t)(p + length - bytes);
}

static void check_content(bool other, size_t length)
{
	uint8_t bytes[256];
	size_t n = put_content(bytes, other, length);

	for (size_t cut = 0; cut <= n; cut++) {
		uint8_t *p = exactly(bytes, cut);
		struct wire_view v = { p, p + cut }, in;

		cr_assert_eq(get_next(&v, TAG(5, WT_LEN), &in), cut == n,
			     "%zu of %zu", cut, n);
		cr_assert_eq(v.p, v.end, "nothing is left");
		cr_assert(cut < n || view_length(in) == length);
		cr_assert(cut < n || in.end == v.end);
		free(p);
	}
}

Test(wire_field, content_of_any_length_cut_anywhere)
{
	static const size_t lengths[] = { 0, 1, 2, 127, 128, 200 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		check_content(false, lengths[i]);
		check_content(true, lengths[i]);
	}
}
