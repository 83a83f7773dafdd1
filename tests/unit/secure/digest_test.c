/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>

#include "secure/digest.h"

static void digest_in_hex(const char *text, size_t piece, char *hex)
{
	uint8_t bytes[DIGEST_SIZE];
	size_t n = strlen(text);
	struct digest *d;

	cr_assert_eq(digest_begin(&d), 0);
	for (size_t at = 0; at < n; at += piece)
		digest_add(d, text + at, MIN(piece, n - at));
	cr_assert_eq(digest_end(d, bytes), 0);
	for (unsigned int i = 0; i < DIGEST_SIZE; i++)
		sprintf(hex + 2 * i, "%02x", bytes[i]);
}

/* The examples of FIPS 180-2, in pieces of any length. */
Test(digest, is_sha_256)
{
	char hex[2 * DIGEST_SIZE + 1];

	for (size_t piece = 1; piece < 60; piece++) {
		digest_in_hex("abc", piece, hex);
		cr_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223"
				      "b00361a396177a9cb410ff61f20015ad");
		digest_in_hex("abcdbcdecdefdefgefghfghighijhijk"
			      "ijkljklmklmnlmnomnopnopq",
			      piece, hex);
		cr_assert_str_eq(hex, "248d6a61d20638b8e5c026930c3e6039"
				      "a33ce45964ff2167f6ecedd419db06c1");
	}
}

Test(digest, dropped)
{
	struct digest *d;

	cr_assert_eq(digest_begin(&d), 0);
	digest_drop(d);
	digest_drop(NULL);
}
