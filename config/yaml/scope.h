/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading what a user wrote, and the answer to it: status, output, errors as
 * the kernel's lnetctl prints them, notes. Knows no command.
 */
#ifndef CONFIG_YAML_SCOPE_H
#define CONFIG_YAML_SCOPE_H

#include "config/yaml/tree.h"

/* ---- answers ---- */

#define REQUEST_MAX ((size_t)4 << 20)  /* bytes of the longest request */
#define ANSWER_MAX  ((size_t)64 << 20) /* bytes of the longest answer */

/* Limits of what users send, and of answers, which the node makes. */
extern const struct tree_limits request_limits, answer_limits;

struct answer {
	struct doc *doc;
	int status;
	struct tree *output, *error, *notes; /* NULL: nothing yet */
};

/* What an error is about, in the words of the kernel's lnetctl. */
struct subject {
	const char *top;	   /* what was done: "add", "manage" */
	const char *item;	   /* what it was done to: "net", "ping" */
	const struct tree *seq_no; /* the user's number for it; NULL: none */
};

/* Longest description of an error; a longer one is cut. */
#define DESCR_SIZE 512

int answer_init(struct answer *a);
void answer_fini(struct answer *a);
/* The mapping that is printed on stdout. NULL: no memory. */
struct tree *answer_output(struct answer *a);
/* Adds an error; the @rc of the first one becomes the status. */
void answer_error(struct answer *a, const struct subject *s, int rc,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Adds an error in the form that the kernel's lnetctl has for settings; @rc as
 * for answer_error(). */
void answer_setting_error(struct answer *a, const char *top, const char *name,
			  int rc, const char *descr);
void answer_note(struct answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds a note, but not if there is the same note already, or if there are
 * NOTES_MAX notes: for what may be true of each item of a long file. */
void answer_note_once(struct answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define NOTES_MAX 64

/* Sets *@text_p, to be freed, to the answer as YAML. -ENOMEM; -EMSGSIZE: it is
 * longer than @max. */
int answer_text(const struct answer *a, size_t max, char **text_p) must_check;

/* ---- reading ---- */

/* Where the functions below add errors, and how the errors look. Each function
 * takes one thing out of a tree, or adds an error, with the item and its line,
 * to the answer and returns a negative errno. */
struct scope {
	struct answer *answer;
	struct subject subject;
	/* errors begin with the number of the line, because it is a line of a
	 * file that the user knows */
	bool show_lines;
	bool set; /* the command "set", whose errors look different */
	/* the text is a file, which may come from a kernel node or a later
	 * release: unknown keys, unless they seem misspelt, and what has no
	 * effect are ignored, with a note */
	bool lenient;
	/* number of the item in its section, from 1; 0: none */
	unsigned int index;
};

/* Adds an error about @at (NULL: about nothing in the text); returns @rc. */
int scope_fail(const struct scope *s, const struct tree *at, int rc,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* As scope_fail() with -EINVAL, but always with the number of the line: the
 * request is malformed, which requests of our tools never are. */
int scope_misread(const struct scope *s, const struct tree *at, const char *fmt,
		  ...) __attribute__((format(printf, 3, 4)));

/* Reports why "set @name" fails, as the kernel's lnetctl does. */
void scope_set_fail(const struct scope *s, const char *name, int rc,
		    const char *why);

/* Read a value into *@..._p. If @t is NULL, they return 0 and leave *@..._p
 * alone. */
int scope_text(const struct scope *s, const struct tree *t,
	       const char **text_p) must_check;
int scope_number(const struct scope *s, const struct tree *t, int64_t min,
		 int64_t max, int64_t *value_p) must_check;
/* Reads true, false, yes, no, on, off, 0 or 1. */
int scope_bool(const struct scope *s, const struct tree *t,
	       bool *value_p) must_check;

/* Reads a number of any size; with @words also those of scope_bool(), which
 * stand for 1 and 0. */
int scope_value(const struct scope *s, const struct tree *t, bool words,
		int64_t *value_p) must_check;
/* As scope_value(), without an error in the answer. */
bool scope_is_value(const struct tree *t, bool words,
		    int64_t *value_p) must_check;

/* Sets *@t_p to the child of @map with @key; an error if there is none. */
int scope_need(const struct scope *s, const struct tree *map, const char *key,
	       const struct tree **t_p) must_check;
/* Checks that @t is a mapping, or null. */
int scope_map(const struct scope *s, const struct tree *t) must_check;
/* Checks that @t is a mapping, or null, and has no other keys than @keys, which
 * ends with NULL. A lenient scope notes other keys, and refuses only those that
 * look like one of @keys. */
int scope_keys(const struct scope *s, const struct tree *t,
	       const char *const *keys) must_check;

/* Is @key one of @keys? */
bool key_in(const char *key, const char *const *keys);
/* The first of @keys that @key was probably meant to be: one that begins with
 * @key, or differs from it in a letter, or in two if @key has five or more. Two
 * letters that are swapped count as one. NULL: there is none. */
const char *key_near(const char *key, const char *const *keys);
/* Reports that the @what with the key of @t is unknown. A lenient scope notes
 * it once and returns 0, unless @near says what was probably meant (NULL:
 * nothing). Else -EINVAL, with the line. */
int scope_unknown(const struct scope *s, const struct tree *t, const char *what,
		  const char *near) must_check;
/* Iterates over @list: a sequence, a mapping, or a scalar, which is taken for a
 * sequence of one. Returns the value after @prev, or the first if @prev is
 * NULL. NULL: there are no more, or @list is NULL. */
const struct tree *list_next(const struct tree *list, const struct tree *prev);
/* As list_next(), for a list of mappings. A single mapping needs no sequence
 * around it: it is an item itself, unless its keys are numbers ("0: {...}"). */
const struct tree *items_next(const struct tree *list, const struct tree *prev);

#endif
