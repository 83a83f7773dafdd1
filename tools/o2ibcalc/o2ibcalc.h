/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of o2ibcalc(1): inputs, files, reports. */
#ifndef TOOLS_O2IBCALC_H
#define TOOLS_O2IBCALC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <ulnet/o2ib.h>

#include "tools/common/option.h"

/* ---- inputs: fields of struct ulnet_o2ib_conf, by name and as text ---- */

/* Longer texts of values are cut. */
#define INPUT_TEXT_SIZE LNET_O2IB_KERNEL_SIZE

/* What is wrong with an option or a file. */
struct complaint {
	unsigned long line; /* number of a line in the file, from 1; 0: none */
	/* what a name was probably meant to be; NULL: nothing */
	const char *near;
	char what[256];
};

/* Fills in *@c, except for its line. Returns -1. */
__attribute__((format(printf, 2, 3))) int complain(struct complaint *c,
						   const char *fmt, ...);

/* Parses "A" or "B", in upper or lower case. Returns false if it is neither. */
bool side_parse(const char *text, enum ulnet_o2ib_side *side_p);

struct input {
	const char *name;
	size_t offset; /* offset in struct ulnet_o2ib_conf */
	unsigned int min, max;
	/* the name that lnetctl uses, if it is another one; NULL: the same name
	 */
	const char *alias;
	const struct word *words; /* words that stand for numbers; NULL: none */
	/* for errors: what a value may be instead of a number */
	const char *or_else;
	/* for errors: what a value must be, if it is no number */
	const char *expected;
	/* For an enumeration: the name of value @i, or NULL after the last one.
	 */
	const char *(*name_of)(unsigned int i);
	bool is_kernel; /* the value is the release of a kernel, a text */
};

extern const struct input inputs[]; /* all inputs; the last entry has no name */

/* Is the value printed as a number, not as a word? */
bool input_is_number(const struct input *in,
		     const struct ulnet_o2ib_conf *conf);

/* Finds an input by its name or its alias; NULL: there is none. */
const struct input *input_find(const char *name);
/* Returns the name of the input that was probably meant, or NULL. */
const char *input_near(const char *name);

/* Sets the input to @text. Returns 0, or complain(). */
int input_set(const struct input *in, const char *text,
	      struct ulnet_o2ib_conf *conf, struct complaint *c);
/* Writes the input's value to @buf, as input_set() takes it. Returns @buf. */
char *input_text(const struct input *in, const struct ulnet_o2ib_conf *conf,
		 char buf[INPUT_TEXT_SIZE]);

/* ---- files: YAML ---- */

#define NEGOTIATED_NID_SIZE 64 /* bytes, with the terminating 0 */

/* A connection that a file shows. */
struct negotiated {
	unsigned long line;
	bool has_depth, has_frags;
	uint64_t depth, frags;
	/* NID of the peer; "": the file has none */
	char nid[NEGOTIATED_NID_SIZE];
};

struct negotiated_list {
	struct negotiated *conns;
	size_t n;
};

/* The NI whose tunables were read, in a file that lnetctl has written. */
struct shown_ni {
	/* NID of the NI; "": lnetctl has not written it */
	char nid[NEGOTIATED_NID_SIZE];
	/* number of other NIs on o2ib nets, which are ignored */
	unsigned int others;
};

/* Reads @text: inputs, or what lnetctl shows. Changes @pair by it: both nodes,
 * if @side is LNET_O2IB_BOTH, or the node @side. Returns 0, or complain(). */
int nodes_read(const char *text, struct ulnet_o2ib_pair *pair,
	       enum ulnet_o2ib_side side, struct shown_ni *ni,
	       struct complaint *c);
/* Reads connections: the mappings with queue_depth or max_frags, wherever they
 * are in @text. Returns 0 if there is one at least, or complain(). */
int negotiated_read(const char *text, struct negotiated_list *list,
		    struct complaint *c);
void negotiated_free(struct negotiated_list *list);

/* ---- reports: a table for people, YAML or JSON for programs ---- */

#define WHAT_IF_VALUES 16
#define WHAT_IFS       8

/* Another value of an input, and what is calculated with it. */
struct variant {
	char text[INPUT_TEXT_SIZE];
	struct ulnet_o2ib_result result;
	struct ulnet_o2ib_notes notes;
};

struct what_if {
	const struct input *input;
	/* whose input is changed: that of A, of B, or of both */
	enum ulnet_o2ib_side side;
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
	const char *negotiated_file; /* the file of --negotiated; NULL: none */
	struct negotiated_list negotiated;
};

void report_table(const struct report *r, FILE *out);
/* Writes the report as JSON (@json) or YAML. Returns 0 or -ENOMEM. */
int report_emit(const struct report *r, bool json, FILE *out);

/* Does any connection in the file of --negotiated differ from what was
 * calculated? */
bool report_differs(const struct report *r);

#endif
