/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * o2ibcalc(1): what is read, what comes of it, and how it is printed.
 */
#ifndef TOOLS_O2IBCALC_H
#define TOOLS_O2IBCALC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <ulnet/o2ib.h>

#include "tools/common/option.h"

/* ---- inputs ---- */
/* What can be said of a node: names, and values as text, for options and
 * files. */

/* Longer texts of values are cut. */
#define INPUT_TEXT_SIZE LNET_O2IB_KERNEL_SIZE

/* Why something cannot be used. */
struct complaint {
	unsigned long line; /* of a file, from 1; 0: none */
	const char *near;   /* what a name was probably meant to be, or NULL */
	char what[256];
};

__attribute__((format(printf, 2, 3))) int complain(struct complaint *c,
						   const char *fmt, ...);

struct input {
	const char *name;
	size_t offset; /* in struct ulnet_o2ib_conf */
	unsigned int min, max;
	const char *alias; /* in what lnetctl shows */
	const struct word *words;
	const char *or_else;  /* besides numbers, what is expected */
	const char *expected; /* instead of numbers, or of any */
	const char *(*name_of)(unsigned int i); /* of an enumeration */
	bool is_kernel;				/* a release */
};

extern const struct input inputs[]; /* they end with one without a name */

/* A number, or a text in quotes where YAML would take it for something else. */
bool input_is_number(const struct input *in,
		     const struct ulnet_o2ib_conf *conf);

/* By its name, or by the one that lnetctl shows; NULL: there is none, and
 * nothing is said. */
const struct input *input_find(const char *name);
/* The nearest name, or NULL. */
const char *input_near(const char *name);

/* Returns 0 or -1, and then @c tells why; its line is left alone. */
int input_set(const struct input *in, const char *text,
	      struct ulnet_o2ib_conf *conf, struct complaint *c);
/* As input_set() takes it. Returns @buf. */
char *input_text(const struct input *in, const struct ulnet_o2ib_conf *conf,
		 char buf[INPUT_TEXT_SIZE]);

/* ---- files ---- */
/* Files that are read: YAML that anybody may have written. */

/* In a NID, with the 0. */
#define NEGOTIATED_NID_SIZE 64

/* A connection of a file. */
struct negotiated {
	unsigned long line;
	bool has_depth, has_frags;
	uint64_t depth, frags;
	char nid[NEGOTIATED_NID_SIZE]; /* of the peer; "": the file has none */
};

struct negotiated_list {
	struct negotiated *conns;
	size_t n;
};

/* What came with a node that lnetctl shows. */
struct node_origin {
	char nid[NEGOTIATED_NID_SIZE]; /* "": not what lnetctl shows */
	unsigned int others; /* NIs on o2ib nets that were passed over */
};

/* @side LNET_O2IB_BOTH: @text is about two nodes; else about one, its inputs
 * alone, or what lnetctl shows. Changes what the file is about. Returns 0 or
 * -1, and then @c tells why. */
int nodes_read(const char *text, struct ulnet_o2ib_pair *pair,
	       enum ulnet_o2ib_side side, struct node_origin *origin,
	       struct complaint *c);
/* Every mapping with queue_depth or max_frags is a connection; one at least is
 * there if 0 is returned. */
int negotiated_read(const char *text, struct negotiated_list *list,
		    struct complaint *c);
void negotiated_free(struct negotiated_list *list);

/* ---- reports ---- */
/* What is printed: as a table that a person reads, as YAML, as JSON. */

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

/* Is any connection other than what was predicted? */
bool report_differs(const struct report *r);

#endif
