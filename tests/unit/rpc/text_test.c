/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>
#include "rpc/text.h"

Test(text, as_much_as_fits)
{
	cr_assert_eq(text_fit("", 0), 0);
	cr_assert_eq(text_fit("abc", 3), 3);
	cr_assert_eq(text_fit("abc", 2), 2);
	cr_assert_eq(text_fit("abc", 0), 0);
}

/* Characters of two, three and four bytes. */
Test(text, no_half_characters)
{
	static const char *const texts[] = { "a\xc3\xa4", "a\xe2\x82\xac",
					     "a\xf0\x9f\x98\x80" };

	for (unsigned int i = 0; i < 3; i++) {
		size_t length = strlen(texts[i]);

		cr_assert_eq(text_fit(texts[i], length), length);
		for (size_t max = 1; max < length; max++)
			cr_assert_eq(text_fit(texts[i], max), 1);
	}
	/* None at all. */
	cr_assert_eq(text_fit("\x80\x80\x80\x80\x80\x80", 5), 5);
}

Test(text, what_is_taken)
{
	char to[ULRPC_TEXT_MAX], from[2 * ULRPC_TEXT_MAX];

	text_take(to, NULL, 0);
	cr_assert_str_eq(to, "");
	text_take(to, "no room", 7);
	cr_assert_str_eq(to, "no room");
	text_take(to, "a\0b\033[1m\x7f\xc2\x9b\xc2\xa0\xc2", 13);
	cr_assert_str_eq(to, "a?b?[1m??\xc2\xa0\xc2");
	memset(from, 'x', sizeof(from));
	memcpy(from + ULRPC_TEXT_MAX - 2, "\xc3\xa4", 2);
	text_take(to, from, sizeof(from));
	cr_assert_eq(strlen(to), ULRPC_TEXT_MAX - 2);
	text_take(to, from + 1, sizeof(from) - 1);
	cr_assert_eq(strlen(to), ULRPC_TEXT_MAX - 1);
	text_take(to, from, ULRPC_TEXT_MAX - 1);
	cr_assert_eq(strlen(to), ULRPC_TEXT_MAX - 1);
}
