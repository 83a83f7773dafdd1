/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request to a node, as lnet_control(7) has it: a YAML document with one key,
 * the command, and a mapping of its arguments. Knows no commands.
 */
#ifndef TOOLS_REQUEST_H
#define TOOLS_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct request {
	char *text;
	size_t size;
	FILE *out; /* into the two above */
	bool more; /* there is an argument already */
	int error; /* the first one */
};

/* Errors are kept until request_end(). request_free() is due in any case. */
void request_begin(struct request *r, const char *command);

/* Numbers as they are, texts quoted: whatever is in them stays text. */
void request_number(struct request *r, const char *key, int64_t value);
void request_flag(struct request *r, const char *key);
void request_text(struct request *r, const char *key, const char *value);
void request_list(struct request *r, const char *key, char *const *values,
		  unsigned int n);
/* For callers that could not make a value. */
void request_fail(struct request *r, int error);

/* 0 and r->text is complete; -ENOMEM; -EILSEQ: a text is not UTF-8. */
int request_end(struct request *r);
void request_free(struct request *r);

#endif
