/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing one document as YAML, in the shape of lnetctl's, or as JSON. */
#ifndef TOOLS_O2IBCALC_EMIT_H
#define TOOLS_O2IBCALC_EMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define EMIT_LEVELS 16

struct emit {
	FILE *out;
	bool json;
	unsigned int depth;
	bool list[EMIT_LEVELS];	 /* of each level: a list, not a mapping */
	bool begun[EMIT_LEVELS]; /* ... which has something in it */
	unsigned int dashes;	 /* YAML: of lists whose next line is due */
};

/* The document is a mapping, which emit_end() ends. @key is NULL in lists. */
void emit_begin(struct emit *e, FILE *out, bool json);
void emit_map(struct emit *e, const char *key);
void emit_list(struct emit *e, const char *key);
void emit_end(struct emit *e);
void emit_number(struct emit *e, const char *key, int64_t value);
void emit_bool(struct emit *e, const char *key, bool value);
void emit_text(struct emit *e, const char *key, const char *text);

#endif
