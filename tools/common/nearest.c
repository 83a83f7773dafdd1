/* SPDX-License-Identifier: BSD-3-Clause */
#include "nearest.h"

#include <string.h>

/* Longer words are no names of ours. */
#define LETTERS	  40
#define BEGINNING 3 /* letters that may stand for a name */

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* One line of the table of distances between beginnings of the two words; @line
 * is the one above, @above the one above that. */
static void next_line(const char *a, unsigned int i, const char *b,
		      const unsigned int *above, const unsigned int *line,
		      unsigned int *next)
{
	next[0] = i;
	for (unsigned int j = 1; j <= strlen(b); j++) {
		next[j] = least(least(line[j], next[j - 1]) + 1,
				line[j - 1] + (a[i - 1] != b[j - 1]));
		if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
		    a[i - 2] == b[j - 1])
			next[j] = least(next[j], above[j - 2] + 1);
	}
}

static unsigned int distance(const char *a, const char *b)
{
	unsigned int lines[3][LETTERS + 1];
	unsigned int i;

	for (i = 0; i <= strlen(b); i++)
		lines[0][i] = i;
	for (i = 1; i <= strlen(a); i++)
		next_line(a, i, b, lines[(i + 1) % 3], lines[(i + 2) % 3],
			  lines[i % 3]);
	return lines[(i + 2) % 3][strlen(b)];
}

void nearest_init(struct nearest *n, const char *word)
{
	*n = (struct nearest){ .word = word };
}

void nearest_try(struct nearest *n, const char *name)
{
	size_t length = strlen(n->word);
	unsigned int steps;

	if (length > LETTERS || strlen(name) > LETTERS)
		return;
	steps = distance(n->word, name);
	if (length >= BEGINNING && strncmp(n->word, name, length) == 0)
		steps = least(steps, 1);
	if (steps > length / 3 + 1 || steps >= strlen(name) ||
	    (n->name && steps >= n->steps))
		return;
	n->name = name;
	n->steps = steps;
}

void nearest_say(const struct nearest *n, const char *before, FILE *to)
{
	if (n->name)
		fprintf(to, "Did you mean '%s%s'?\n", before, n->name);
}
