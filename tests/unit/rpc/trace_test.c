/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include "rpc/text.h"

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

/* One character changed, missing, or too many. */
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
	/* Another version; nobody's trace; nobody's span. */
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
