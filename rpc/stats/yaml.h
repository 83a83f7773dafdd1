/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes YAML in the style of the kernel's lnetctl: each level is indented by 4
 * columns. Any thread. */
#ifndef RPC_STATS_YAML_H
#define RPC_STATS_YAML_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct yaml {
	FILE *out;
	unsigned int depth;
	bool item; /* the next line begins an item of a list, with "- " */
};

void yaml_line(struct yaml *y, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Begins an item of a list. The item ends with y->depth--. */
void yaml_item(struct yaml *y);
/* Prints a text, quoted. */
void yaml_name(struct yaml *y, const char *key, const char *name);
void yaml_count(struct yaml *y, const char *key, uint64_t n);
/* Prints the time @ns in us. */
void yaml_time(struct yaml *y, const char *key, uint64_t ns);

#endif
