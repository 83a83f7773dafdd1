/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The view of "lnetctl top": rates between two answers of a node, and what is
 * so now. Knows no connection: lnetctl.c asks.
 */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct top_sample; /* one answer */

/* Reads what a node says to the request "top"; lines that are not known are
 * skipped. NULL: no memory, or it has no time. */
struct top_sample *top_read(const char *text);
void top_free(struct top_sample *s);

/* Prints the block for the time between the two; with at most @rows NIDs of
 * peers, those where most happens, or waits, and routes, first those that are
 * not up. How many are not shown is said. Columns that do not fit into @width
 * are left out; 0: there is room for all. */
void top_print(const struct top_sample *before, const struct top_sample *now,
	       unsigned int rows, unsigned int width, FILE *out);

#endif
