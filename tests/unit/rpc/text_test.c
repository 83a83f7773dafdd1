/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include "rpc/text.h"

Test(text, as_much_as_fits)
{
	cr_assert_eq(text_fit("", 0), 0);
	cr_assert_eq(text_fit("abc", 3), 3);
	cr_assert_eq(text_fit("abc", 2), 2);
	cr_assert_eq(text_fit("abc", 0), 0);
}

/* characters of two, three and four bytes */
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
	/* This text has no character at all. */
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
	cr_assert_str_eq(to, "a?b\033[1m\x7f\xc2\x9b\xc2\xa0?");
	memset(from, 'x', sizeof(from));
	memcpy(from + ULRPC_TEXT_MAX - 2, "\xc3\xa4", 2);
	text_take(to, from, sizeof(from));
	cr_assert_eq(strlen(to), ULRPC_TEXT_MAX - 2);
	text_take(to, from + 1, sizeof(from) - 1);
	cr_assert_eq(strlen(to), ULRPC_TEXT_MAX - 1);
	text_take(to, from, ULRPC_TEXT_MAX - 1);
	cr_assert_eq(strlen(to), ULRPC_TEXT_MAX - 1);
}

/* ---- traces ---- */

#define GOOD "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

Test(trace, there_and_back)
{
	uint8_t bytes[TRACE_LENGTH];
	char text[ULRPC_TRACE_SIZE];

	cr_assert_eq(trace_parse(GOOD, bytes), 0);
	cr_assert_eq(bytes[0], 0);
	cr_assert_eq(bytes[1], 0x4b);
	cr_assert_eq(bytes[16], 0x36);
	cr_assert_eq(bytes[17], 0);
	cr_assert_eq(bytes[24], 0xb7);
	cr_assert_eq(bytes[25], 1);
	trace_format(bytes, text);
	cr_assert_str_eq(text, GOOD);
	cr_assert_eq(strlen(text) + 1, ULRPC_TRACE_SIZE);
}

/* One character of a trace is changed or missing, or there is one too many. */
Test(trace, no_other_text)
{
	static const char by[] = { '-', 'g', 'A', ' ', '/', ':', '`', '\0' };
	uint8_t bytes[TRACE_LENGTH] = { 99 };
	char text[ULRPC_TRACE_SIZE + 1];

	for (size_t i = 0; i < ULRPC_TRACE_SIZE - 1; i++)
		for (size_t k = 0; k < sizeof(by); k++) {
			strcpy(text, GOOD);
			if (text[i] == by[k])
				continue;
			text[i] = by[k];
			cr_assert_eq(trace_parse(text, bytes), -EINVAL, "%s",
				     text);
		}
	strcpy(text, GOOD);
	text[2] = text[35] = text[52] = '0';
	cr_assert_eq(trace_parse(text, bytes), -EINVAL);
	cr_assert_eq(trace_parse(GOOD "0", bytes), -EINVAL);
	cr_assert_eq(trace_parse("", bytes), -EINVAL);
	/* another version; a trace id of zeros; a span id of zeros */
	cr_assert_eq(trace_parse("01-4bf92f3577b34da6a3ce929d0e0e4736-"
				 "00f067aa0ba902b7-01",
				 bytes),
		     -EINVAL);
	cr_assert_eq(trace_parse("00-00000000000000000000000000000000-"
				 "00f067aa0ba902b7-01",
				 bytes),
		     -EINVAL);
	cr_assert_eq(trace_parse("00-4bf92f3577b34da6a3ce929d0e0e4736-"
				 "0000000000000000-01",
				 bytes),
		     -EINVAL);
	cr_assert_eq(bytes[0], 99);
}

Test(trace, what_peers_send)
{
	uint8_t bytes[TRACE_LENGTH + 1] = { 0 };

	cr_assert_eq(trace_parse(GOOD, bytes), 0);
	cr_assert(trace_is_good(bytes, TRACE_LENGTH));
	cr_assert_not(trace_is_good(bytes, TRACE_LENGTH - 1));
	cr_assert_not(trace_is_good(bytes, TRACE_LENGTH + 1));
	cr_assert_not(trace_is_good(NULL, 0));
	bytes[0] = 1;
	cr_assert_not(trace_is_good(bytes, TRACE_LENGTH));
	memset(bytes, 0, sizeof(bytes));
	cr_assert_not(trace_is_good(bytes, TRACE_LENGTH));
}
