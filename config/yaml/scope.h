/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading what a user wrote: each function takes one thing out of a tree, or
 * adds an error to the answer that names the item and the place, and returns a
 * negative errno.
 */
#ifndef CONFIG_YAML_SCOPE_H
#define CONFIG_YAML_SCOPE_H

#include "config/yaml/answer.h"

struct scope {
	struct answer *answer;
	struct subject subject;
	bool places;	    /* the lines of the text mean something to the user:
			     * errors begin with them */
	bool set;	    /* "set": errors look different */
	bool lenient;	    /* a file, which may come from another kind of node,
			     * or a later release: keys that nobody knows are
			     * passed over, unless they look like misspelt ones,
			     * and so is what has no effect here */
	unsigned int index; /* of the item in its section, from 1; 0: none */
};

int scope_fail(const struct scope *s, const struct tree *at, int rc,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* -EINVAL, always with the place: the request is malformed. Users of a tool
 * never see that, since tools make no such requests. */
int scope_misread(const struct scope *s, const struct tree *at, const char *fmt,
		  ...) __attribute__((format(printf, 3, 4)));

/* How the kernel's lnetctl reports what "set @name" fails with. */
void scope_set_fail(const struct scope *s, const char *name, int rc,
		    const char *why);

int scope_text(const struct scope *s, const struct tree *t,
	       const char **text_p) must_check;
int scope_number(const struct scope *s, const struct tree *t, int64_t min,
		 int64_t max, int64_t *value_p) must_check;
/* true, false, yes, no, 0, 1 */
int scope_bool(const struct scope *s, const struct tree *t,
	       bool *value_p) must_check;
/* The same of what has @key in @map; where there is none, 0, and *@value_p is
 * left alone. */
int scope_get_text(const struct scope *s, const struct tree *map,
		   const char *key, const char **text_p) must_check;
int scope_get_number(const struct scope *s, const struct tree *map,
		     const char *key, int64_t min, int64_t max,
		     int64_t *value_p) must_check;
int scope_get_bool(const struct scope *s, const struct tree *map,
		   const char *key, bool *value_p) must_check;

/* A mapping, or null. */
int scope_map(const struct scope *s, const struct tree *t) must_check;
/* A sequence, or null. */
int scope_seq(const struct scope *s, const struct tree *t) must_check;
/* A mapping or null with no other keys than @keys, which ends with NULL; or, if
 * the scope is lenient, none that looks like one of them. */
int scope_keys(const struct scope *s, const struct tree *t,
	       const char *const *keys) must_check;

/* Is @key one of @keys? */
bool key_in(const char *key, const char *const *keys);
/* The first of @keys that @key looks like: it takes one letter to be put in,
 * left out, replaced or swapped with the next one, or two if it has five or
 * more, or it begins with @key. NULL: none. */
const char *key_near(const char *key, const char *const *keys);
/* The @what with the key of @t means nothing here: 0 with a note, said once, if
 * the scope is lenient and @near NULL. Else -EINVAL, always with the place; and
 * @near, unless it is NULL, is what may have been meant. */
int scope_unknown(const struct scope *s, const struct tree *t, const char *what,
		  const char *near) must_check;
/* Walks over a sequence, over the values of a mapping, or over one scalar in
 * their place: the one after @prev (NULL: the first), or NULL. */
const struct tree *list_next(const struct tree *list, const struct tree *prev);

#endif
