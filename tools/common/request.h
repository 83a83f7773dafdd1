/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the text of a request to a node (lnet_control(7)): a YAML document with
 * one key, the command, and a mapping of its arguments.
 */
#ifndef TOOLS_REQUEST_H
#define TOOLS_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct request {
	char *text;
	size_t size;
	FILE *out; /* a stream that writes to @text and @size */
	bool more; /* the mapping has an argument already */
	int error; /* the first error, which request_end() returns */
};

/* Begins a request. The caller must call request_free() in any case. */
void request_begin(struct request *r, const char *command);

/* Add an argument. Texts are quoted, so that YAML takes each for a text. */
void request_number(struct request *r, const char *key, int64_t value);
void request_flag(struct request *r, const char *key);
void request_text(struct request *r, const char *key, const char *value);
void request_list(struct request *r, const char *key, char *const *values,
		  unsigned int n);
/* As request_list(), of NIDs. @ports: where the node is to connect to each of
 * them; 0: where it does anyway. */
void request_nids(struct request *r, const char *key, char *const *nids,
		  const uint16_t *ports, unsigned int n);
/* Lets request_end() return @error: for a caller that could not make a value.
 */
void request_fail(struct request *r, int error);

/* Completes r->text. Returns 0; -ENOMEM; -EILSEQ: a text is not UTF-8. */
int request_end(struct request *r);
void request_free(struct request *r);

#endif
