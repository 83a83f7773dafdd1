/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Not the first byte of a character. */
static bool continues(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/* The most of @length bytes, which do not end at a character's beginning, that
 * does. */
static size_t whole(const uint8_t *bytes, size_t length)
{
	size_t i = length;

	while (i && length - i < 3 && continues(bytes[i]))
		i--;
	/* What is no UTF-8 is cut anywhere. */
	return continues(bytes[i]) ? length : i;
}

size_t text_fit(const char *text, size_t max)
{
	size_t length = strnlen(text, max + 1);

	return length > max ? whole((const uint8_t *)text, max) : length;
}

/* How many bytes of the control character there are at @bytes; 0: it is none.
 * Those of ISO 6429 above 127 take two. */
static size_t control(const uint8_t *bytes, size_t length)
{
	if (bytes[0] < 0x20 || bytes[0] == 0x7f)
		return 1;
	return length > 1 && bytes[0] == 0xc2 && bytes[1] < 0xa0 ? 2 : 0;
}

void text_take(char to[ULRPC_TEXT_MAX], const void *bytes, size_t length)
{
	const uint8_t *from = bytes;
	size_t n = 0;

	if (length > ULRPC_TEXT_MAX - 1)
		length = whole(from, ULRPC_TEXT_MAX - 1);
	while (length) {
		size_t skip = control(from, length);

		to[n++] = skip ? '?' : (char)*from;
		skip += !skip;
		from += skip;
		length -= skip;
	}
	to[n] = '\0';
}
