/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads what a user wrote: each function takes one thing out of a tree, or adds
 * an error, which names the item and its line, to the answer, and returns a
 * negative errno.
 */
#ifndef CONFIG_YAML_SCOPE_H
#define CONFIG_YAML_SCOPE_H

#include "config/yaml/answer.h"

struct scope {
	struct answer *answer;
	struct subject subject;
	bool show_lines; /* errors begin with the line: it is one of a file that
			  * the user knows */
	bool set;	 /* the command "set", whose errors look different */
	bool lenient;	 /* a file, which may come from a kernel node or a later
			  * release: unknown keys are ignored with a note (but
			  * misspelt ones), and so is what has no effect */
	unsigned int index; /* of the item in its section, from 1; 0: none */
};

/* Adds an error about @at (NULL: about nothing in the text); returns @rc. */
int scope_fail(const struct scope *s, const struct tree *at, int rc,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The same with -EINVAL, and always with the line: the request is malformed,
 * which those that tools make never are. */
int scope_misread(const struct scope *s, const struct tree *at, const char *fmt,
		  ...) __attribute__((format(printf, 3, 4)));

/* Reports, as the kernel's lnetctl does, what "set @name" fails with. */
void scope_set_fail(const struct scope *s, const char *name, int rc,
		    const char *why);

/* Read a value. @t NULL: returns 0 and leaves *@..._p alone. */
int scope_text(const struct scope *s, const struct tree *t,
	       const char **text_p) must_check;
int scope_number(const struct scope *s, const struct tree *t, int64_t min,
		 int64_t max, int64_t *value_p) must_check;
/* true, false, yes, no, 0, 1 */
int scope_bool(const struct scope *s, const struct tree *t,
	       bool *value_p) must_check;

/* *@t_p is the child of @map with @key, which must be there. */
int scope_need(const struct scope *s, const struct tree *map, const char *key,
	       const struct tree **t_p) must_check;
/* Checks that @t is a mapping, or null. */
int scope_map(const struct scope *s, const struct tree *t) must_check;
/* Checks that @t is a sequence, or null. */
int scope_seq(const struct scope *s, const struct tree *t) must_check;
/* Checks that @t is a mapping, or null, and has no other keys than @keys, which
 * ends with NULL. A lenient scope notes other keys, and refuses only those that
 * look like one of @keys. */
int scope_keys(const struct scope *s, const struct tree *t,
	       const char *const *keys) must_check;

/* Is @key one of @keys? */
bool key_in(const char *key, const char *const *keys);
/* The first of @keys that @key was probably meant to be, or NULL: one that
 * begins with @key, or differs from it in a letter, or in two if @key has five
 * or more. Two letters that are swapped count as one. */
const char *key_near(const char *key, const char *const *keys);
/* Reports that the @what with the key of @t is unknown. A lenient scope notes
 * it once and returns 0, unless @near says what was probably meant (NULL:
 * nothing). Else -EINVAL, with the line. */
int scope_unknown(const struct scope *s, const struct tree *t, const char *what,
		  const char *near) must_check;
/* The value after @prev (NULL: the first) in a sequence, in a mapping, or of a
 * scalar, which is taken for a sequence of one. NULL: there are no more; or
 * @list is NULL. */
const struct tree *list_next(const struct tree *list, const struct tree *prev);

#endif
