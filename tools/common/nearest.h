/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of several names, the one that a mistyped word was probably meant to be.
 * Names are offered one after the other.
 */
#ifndef TOOLS_NEAREST_H
#define TOOLS_NEAREST_H

#include <stdio.h>

struct nearest {
	const char *word;   /* borrowed, as names are */
	const char *name;   /* NULL: none is near */
	unsigned int steps; /* from the word to the name */
};

void nearest_init(struct nearest *n, const char *word);

/* Near is what takes so few letters to be put in, left out, replaced or
 * swapped with the next one: one for each three of the word, and one more. What
 * begins with the word, if that has three letters or more, is one step away. Of
 * those that are as near the first one counts. */
void nearest_try(struct nearest *n, const char *name);

/* "Did you mean 'BEFORE NAME'?", a line, if one is near. */
void nearest_say(const struct nearest *n, const char *before, FILE *to);

#endif
