/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "base/siphash.h"

/* The published test vectors: key 00 01 .. 0f, data 00 01 .. of each length. */
Test(siphash, published)
{
	static const uint8_t want[][SIPHASH_SIZE] = {
		{ 0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6,
		  0x72, 0x14, 0xc7, 0x55, 0x02, 0x93 },
		{ 0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76,
		  0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45 },
	};
	uint8_t bytes[SIPHASH_SIZE], out[SIPHASH_SIZE];

	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		siphash(bytes, bytes, i, out);
		cr_assert_arr_eq(out, want[i], SIPHASH_SIZE);
	}
}

/* The result depends on each byte of the key and of the data, and on the
 * length. */
Test(siphash, each_byte_counts)
{
	uint8_t key[SIPHASH_SIZE] = { 1 }, data[32] = { 2 };
	uint8_t first[SIPHASH_SIZE], out[SIPHASH_SIZE];

	for (size_t length = 0; length < sizeof(data); length++) {
		siphash(key, data, length, first);
		siphash(key, data, length + 1, out);
		cr_assert_arr_neq(out, first, SIPHASH_SIZE);
		for (size_t i = 0; i < length; i++) {
			data[i] ^= 0x80;
			siphash(key, data, length, out);
			cr_assert_arr_neq(out, first, SIPHASH_SIZE);
			data[i] ^= 0x80;
		}
		for (size_t i = 0; i < sizeof(key); i++) {
			key[i] ^= 1;
			siphash(key, data, length, out);
			cr_assert_arr_neq(out, first, SIPHASH_SIZE);
			key[i] ^= 1;
		}
	}
}
