/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be said of a node: names, and values as text, for options and files.
 */
#ifndef TOOLS_O2IBCALC_INPUT_H
#define TOOLS_O2IBCALC_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include <ulnet/o2ib.h>

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

struct input;

/* How many there are; and each, by numbers from 0. */
unsigned int inputs(void);
const struct input *input_at(unsigned int number);
const char *input_name(const struct input *in);
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

/* A number from @min to @max that is all of @text. */
bool number_parse(const char *text, unsigned long min, unsigned long max,
		  unsigned long *value_p);

#endif
