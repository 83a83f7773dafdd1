/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/trace.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Where its parts begin and end; between them there are dashes. */
static const uint8_t ends[] = { 1, 17, 25, 26 };

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_zero(const uint8_t *bytes, unsigned int from, unsigned int to)
{
	while (from < to)
		if (bytes[from++])
			return false;
	return true;
}

bool trace_is_good(const uint8_t *bytes, uint32_t length)
{
	return length == TRACE_LENGTH && !bytes[0] &&
	       !is_zero(bytes, ends[0], ends[1]) &&
	       !is_zero(bytes, ends[1], ends[2]);
}

int trace_parse(const char *text, uint8_t bytes[TRACE_LENGTH])
{
	uint8_t read[TRACE_LENGTH];
	const uint8_t *end = ends;

	for (unsigned int i = 0; i < TRACE_LENGTH; i++, text += 2) {
		int high, low;

		if (i == *end) {
			if (*text++ != '-')
				return -EINVAL;
			end++;
		}
		high = digit(text[0]);
		low = high < 0 ? -1 : digit(text[1]);
		if (low < 0)
			return -EINVAL;
		read[i] = (uint8_t)(high << 4 | low);
	}
	if (*text || !trace_is_good(read, TRACE_LENGTH))
		return -EINVAL;
	memcpy(bytes, read, TRACE_LENGTH);
	return 0;
}

void trace_format(const uint8_t bytes[TRACE_LENGTH],
		  char text[ULRPC_TRACE_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *end = ends;

	for (unsigned int i = 0; i < TRACE_LENGTH; i++) {
		if (i == *end) {
			*text++ = '-';
			end++;
		}
		*text++ = digits[bytes[i] >> 4];
		*text++ = digits[bytes[i] & 15];
	}
	*text = '\0';
}
