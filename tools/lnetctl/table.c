/* SPDX-License-Identifier: BSD-3-Clause */
#include "table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

static bool is_hidden(const struct table *t, unsigned int i)
{
	return t->hidden >> i & 1;
}

/* With a blank before each column but the first. */
static unsigned int width_of(const struct table *t)
{
	unsigned int width = 0;

	for (unsigned int i = 0; i < t->n; i++)
		if (!is_hidden(t, i))
			width += (unsigned int)abs(t->columns[i].width) +
				 (width != 0);
	return width;
}

/* False: none is left that may be. */
static bool hide_one(struct table *t)
{
	unsigned int worst = 0, rank = 0;

	for (unsigned int i = 0; i < t->n; i++)
		if (!is_hidden(t, i) && t->columns[i].rank > rank) {
			rank = t->columns[i].rank;
			worst = i;
		}
	if (rank)
		t->hidden |= 1u << worst;
	return rank != 0;
}

void table_begin(struct table *t, const struct table_column *columns,
		 unsigned int n, unsigned int width, FILE *out)
{
	*t = (struct table){ .columns = columns, .n = n, .out = out };
	while (width && width_of(t) > width && hide_one(t))
		;
	for (unsigned int i = 0; i < n; i++)
		table_cell(t, "%s", columns[i].title);
}

/* The first column is never hidden, so blanks go before all others. */
void table_cell(struct table *t, const char *fmt, ...)
{
	const unsigned int i = t->next;
	char text[128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (!is_hidden(t, i))
		fprintf(t->out, "%s%*s", i ? " " : "", t->columns[i].width,
			text);
	t->next = i + 1 == t->n ? 0 : i + 1;
	if (!t->next)
		fputc('\n', t->out);
}
