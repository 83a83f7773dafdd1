/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that come from elsewhere: are they UTF-8, and fit for a terminal? */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Returns how many bytes the character of UTF-8 at @p has, all of which are
 * before @end; 0: there is none. */
size_t text_character(const uint8_t *p, const uint8_t *end);

/* Makes @text fit for a terminal and for one line: each control character, and
 * each byte that is not UTF-8, becomes '?', two of them if it has two bytes. */
void text_clean(char *text);

#endif
