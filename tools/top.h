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

/* Reads a node's answer to the request "top"; lines that are not known are
 * skipped. NULL: no memory, or the answer has no line "clock". */
struct top_sample *top_read(const char *text);
void top_free(struct top_sample *s);

/* Prints the block for the time between two samples. It has at most @rows NIDs
 * of peers, namely those where most happens or waits, and as many routes, first
 * those that are not up; then it says how many are left out. Columns that do
 * not fit into @width are left out; 0: there is room for all. */
void top_print(const struct top_sample *before, const struct top_sample *now,
	       unsigned int rows, unsigned int width, FILE *out);

#endif
