/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of messages as text. */
#ifndef TESTS_WIRE_HEX_H
#define TESTS_WIRE_HEX_H

#include <ctype.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "base/util.h"

/* Converts text such as "0a 02 ff*9 01" to bytes; "ff*9" is nine bytes ff. Two
 * blanks or "#" begin a remark. Returns the number of bytes. */
static inline size_t unhex(const char *text, uint8_t *out, size_t max)
{
	size_t n = 0;

	while (isxdigit((unsigned char)*text)) {
		char *end;
		unsigned long byte = strtoul(text, &end, 16), times = 1;

		cr_assert(end == text + 2, "not bytes: %s", text);
		if (*end == '*')
			times = strtoul(end + 1, &end, 10);
		cr_assert_leq(n + times, max);
		memset(out + n, (int)byte, times);
		n += times;
		text = *end == ' ' ? end + 1 : end;
	}
	cr_assert(*text == '\0' || *text == ' ' || *text == '\n' ||
			  *text == '#',
		  "not bytes: %s", text);
	return n;
}

/* Returns a copy in an allocation of its own, so that ASan sees reads behind
 * it. */
static inline uint8_t *exactly(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	BUG_ON(!copy);
	if (n)
		memcpy(copy, bytes, n);
	return copy;
}

#endif
