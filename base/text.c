/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text.h"

#include <stdbool.h>
#include <string.h>

size_t text_character(const uint8_t *p, const uint8_t *end)
{
	size_t n = *p < 0x80   ? 1
		   : *p < 0xc2 ? 0
		   : *p < 0xe0 ? 2
		   : *p < 0xf0 ? 3
		   : *p < 0xf5 ? 4
			       : 0;

	if (n > (size_t)(end - p))
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* too long, or a surrogate, or beyond the last character */
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
	    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* Terminals obey controls of two bytes, too: U+0080 to U+009F. */
static bool is_control(const uint8_t *p, size_t n)
{
	return n == 1 ? *p < 0x20 || *p == 0x7f
		      : n == 2 && p[0] == 0xc2 && p[1] < 0xa0;
}

void text_clean(char *text)
{
	uint8_t *p = (uint8_t *)text, *end = p + strlen(text);

	while (p < end) {
		size_t n = text_character(p, end);

		if (!n || is_control(p, n))
			memset(p, '?', n ? n : 1);
		p += n ? n : 1;
	}
}
