/* SPDX-License-Identifier: BSD-3-Clause */
/* Patterns that users write for names which peers have proved. Any thread. */
#ifndef BASE_PATTERN_H
#define BASE_PATTERN_H

#include <stdbool.h>

/* What a pattern of names may have in it, for messages: pattern_may_have(). */
#define PATTERN_CHARS "letters, digits, ._-@:/=, and * or ? for any of them"

/* Does @pattern fit @text? In @pattern, * is any text and ? is any character.
 */
bool pattern_fits(const char *pattern, const char *text);
/* May a pattern of names have @c in it? */
bool pattern_may_have(unsigned char c);

#endif
