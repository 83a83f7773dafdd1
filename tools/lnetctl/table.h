/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables that are as wide as a terminal: columns that do not fit are left out,
 * the least important ones first. Knows nothing of what is in them.
 */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include <stdio.h>

#define TABLE_COLUMNS 16

struct table_column {
	const char *title;
	int width;	   /* negative: its cells stand at the left */
	unsigned int rank; /* how soon it is left out: the highest is the first;
			    * 0: never */
};

struct table {
	const struct table_column *columns;
	unsigned int n;
	unsigned int hidden; /* bits: columns that are left out */
	unsigned int next;   /* the column of the next cell */
	FILE *out;
};

/* Prints the heads of those of the @n columns (up to TABLE_COLUMNS) that fit
 * into @width; 0: all of them. @columns and @out are borrowed as long as there
 * are cells. */
void table_begin(struct table *t, const struct table_column *columns,
		 unsigned int n, unsigned int width, FILE *out);

/* The next cell of a row, or of the next row. */
void table_cell(struct table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
