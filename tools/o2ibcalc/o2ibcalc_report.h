/* SPDX-License-Identifier: BSD-3-Clause */
/* What is printed: as a table that a person reads, as YAML, as JSON. */
#ifndef TOOLS_O2IBCALC_REPORT_H
#define TOOLS_O2IBCALC_REPORT_H

#include <stdio.h>

#include "o2ibcalc_input.h"
#include "o2ibcalc_yaml.h"

#define WHAT_IF_VALUES 16
#define WHAT_IFS       8

/* Another value of an input, and what comes of it. */
struct variant {
	char text[INPUT_TEXT_SIZE];
	struct ulnet_o2ib_result result;
	struct ulnet_o2ib_notes notes;
};

struct what_if {
	const struct input *input;
	enum ulnet_o2ib_side side; /* whose: A, B, or of both */
	unsigned int n;
	struct variant values[WHAT_IF_VALUES];
};

struct report {
	struct ulnet_o2ib_pair pair;
	struct ulnet_o2ib_result result;
	struct ulnet_o2ib_notes notes;
	bool explain;
	unsigned int nwhat_ifs;
	struct what_if *what_ifs;
	const char *negotiated_file; /* NULL: none */
	struct negotiated_list negotiated;
};

void report_table(const struct report *r, FILE *out);
/* 0, or -ENOMEM. */
int report_emit(const struct report *r, bool json, FILE *out);

/* Does the connection differ from what was predicted? */
bool report_depth_differs(const struct report *r, const struct negotiated *c);
bool report_frags_differ(const struct report *r, const struct negotiated *c);
/* Is the connection there, and should not be? */
bool report_unexpected(const struct report *r);
bool report_differs(const struct report *r);

/* What an input means for these nodes, in a sentence for A or B; NULL: nothing
 * special. */
const char *what_if_words(const struct report *r, const struct what_if *w,
			  enum ulnet_o2ib_side side);
/* Was it noted without the other value, too? */
bool what_if_is_new(const struct report *r, const struct ulnet_o2ib_note *n);

#endif
