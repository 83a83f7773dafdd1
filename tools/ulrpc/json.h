/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a JSON text (RFC 8259) piece by piece, without a tree: numbers stay
 * text, so that those of 64 bits stay exact. What is wrong is a sentence, with
 * its place.
 */
#ifndef TOOLS_ULRPC_JSON_H
#define TOOLS_ULRPC_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define JSON_WHY 200

struct json {
	const char *begin, *at, *end;
	char *text; /* the string that was read last; to be freed */
	size_t length, size;
	bool first;	    /* nothing of the object or array was read yet */
	char why[JSON_WHY]; /* "": nothing is wrong */
};

/* @text, of @length bytes, is borrowed. json_fini() is due in any case. */
void json_init(struct json *j, const char *text, size_t length);
void json_fini(struct json *j);

/* What comes next: '{', '[', '"', '0' for a number, 't', 'f' or 'n' for true,
 * false and null, a closing bracket or another character, or 0 at the end. */
char json_next(struct json *j);
/* Go into an object or array, and to its next member; then false at its end,
 * which is read, or if something is wrong. A member of an object is a string,
 * then json_colon(), then the value. */
bool json_enter(struct json *j, char bracket);
bool json_member(struct json *j, char closing);
bool json_colon(struct json *j);
/* Reads a string into j->text, of j->length bytes, with a 0 behind it. */
bool json_string(struct json *j);
/* Reads a number, or the characters of true, false or null, into j->text. */
bool json_word(struct json *j);
/* Nothing but blanks may come. */
bool json_end(struct json *j);
/* Says what is wrong at this place; returns false. */
bool json_wrong(struct json *j, const char *what);

/* Prints a string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void json_print_string(FILE *out, const char *text, size_t length);

/* How many bytes the character of UTF-8 at @p has; 0: it is none. */
size_t json_utf8(const char *p, const char *end);

#endif
