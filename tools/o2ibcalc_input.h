/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inputs that o2ibcalc takes for a node: their names, and their values as
 * text, as options and files have them.
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

/* How many inputs there are; and each of them, by its number from 0. */
unsigned int inputs(void);
const struct input *input_at(unsigned int number);
const char *input_name(const struct input *in);
/* Is the value of @in in @conf a number? In YAML other values need quotes where
 * they look like something else. */
bool input_is_number(const struct input *in,
		     const struct ulnet_o2ib_conf *conf);

/* Finds an input by its name, or by the name that lnetctl shows for it; NULL:
 * there is no such input. */
const struct input *input_find(const char *name);
/* The nearest name, or NULL. */
const char *input_near(const char *name);

/* Sets the input to the value that @text says. Returns 0; or -1, and then @c
 * tells why, but for c->line, which is left alone. */
int input_set(const struct input *in, const char *text,
	      struct ulnet_o2ib_conf *conf, struct complaint *c);
/* Writes the value to @buf, as input_set() would take it. Returns @buf. */
char *input_text(const struct input *in, const struct ulnet_o2ib_conf *conf,
		 char buf[INPUT_TEXT_SIZE]);

/* A number from @min to @max that is all of @text. */
bool number_parse(const char *text, unsigned long min, unsigned long max,
		  unsigned long *value_p);

#endif
