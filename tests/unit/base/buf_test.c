/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "base/buf.h"

Test(buf, round_trip)
{
	uint8_t b[32];
	uint8_t out[4];
	struct writer w = writer_of(b, sizeof(b));
	struct reader r;

	write_le32(&w, 0x01020304);
	write_le64(&w, UINT64_C(0x1122334455667788));
	write_bytes(&w, "\0\0\0", 3);
	write_bytes(&w, "abcd", 4);
	cr_assert(!w.bad);
	cr_assert_eq(w.p - b, 19);
	cr_assert_eq(b[0], 4);
	cr_assert_eq(b[4], 0x88);

	r = reader_of(b, 19);
	cr_assert_eq(read_le32(&r), 0x01020304);
	cr_assert_eq(read_le64(&r), UINT64_C(0x1122334455667788));
	cr_assert_eq(read_skip(&r, 3), b + 12);
	read_bytes(&r, out, 4);
	cr_assert_arr_eq(out, "abcd", 4);
	cr_assert_eq(reader_left(&r), 0);
	cr_assert(!r.bad);
}

Test(buf, swapped)
{
	static const uint8_t b[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	struct reader plain = reader_of(b, sizeof(b));
	struct reader swapped = reader_of(b, sizeof(b));

	cr_assert_eq(read_u32(&plain, false),
		     __builtin_bswap32(read_u32(&swapped, true)));
	cr_assert_eq(read_u64(&plain, false),
		     __builtin_bswap64(read_u64(&swapped, true)));
}

Test(buf, small_numbers)
{
	uint8_t b[3];
	struct writer w = writer_of(b, sizeof(b));
	struct reader r = reader_of(b, sizeof(b));

	write_u8(&w, 0x81);
	write_le16(&w, 0x1234);
	cr_assert(!w.bad && w.p == w.end);
	cr_assert_eq(b[1], 0x34);
	cr_assert_eq(read_u8(&r), 0x81);
	cr_assert_eq(le16toh(read_u16(&r, false)), 0x1234);
	cr_assert(!r.bad);
	r = reader_of(b + 1, 2);
	cr_assert_eq(le16toh(__builtin_bswap16(read_u16(&r, true))), 0x1234);
	cr_assert_eq(read_u16(&r, false), 0);
	cr_assert_eq(read_u8(&r), 0);
	cr_assert(r.bad);
	write_u8(&w, 1);
	cr_assert(w.bad);
}

/* A read past the end fails and yields zeros, and so does every later one. */
Test(buf, read_past_the_end)
{
	static const uint8_t b[12] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

	for (size_t len = 0; len < 12; len++) {
		struct reader r = reader_of(b, len);
		uint8_t out[2] = { 9, 9 };

		(void)read_le32(&r);
		cr_assert_eq(r.bad, len < 4);
		cr_assert_eq(read_u64(&r, false), 0);
		cr_assert(r.bad);
		read_bytes(&r, out, sizeof(out));
		cr_assert_eq(out[0] | out[1], 0);
		cr_assert_null(read_skip(&r, 0));
		cr_assert_eq(read_u32(&r, true), 0);
		cr_assert_eq(read_le64(&r), 0);
	}
}

Test(buf, huge_lengths_do_not_wrap)
{
	uint8_t b[8];
	struct reader r = reader_of(b, sizeof(b));
	struct writer w = writer_of(b, sizeof(b));

	cr_assert_null(read_skip(&r, SIZE_MAX));
	cr_assert_null(write_skip(&w, SIZE_MAX - 4));
	cr_assert(r.bad && w.bad);
}

Test(buf, write_past_the_end)
{
	uint8_t b[9];
	struct writer w = writer_of(b, 8);

	memset(b, 0x55, sizeof(b));
	write_le32(&w, 1);
	write_le64(&w, UINT64_MAX);
	cr_assert(w.bad);
	write_le32(&w, UINT32_MAX);
	write_bytes(&w, "x", 1);
	for (size_t i = 4; i < sizeof(b); i++)
		cr_assert_eq(b[i], 0x55);
}
