/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * YAML documents as trees. A tree is parsed from text, by libyaml, or made by a
 * program, and can be written as text. Knows nothing of LNet. The nodes of a
 * document are freed with it. Any thread, one at a time for each document.
 */
#ifndef CONFIG_YAML_TREE_H
#define CONFIG_YAML_TREE_H

#include <stdint.h>
#include <stdio.h>
#include "base/list.h"

enum tree_kind { TREE_SCALAR, TREE_MAP, TREE_SEQ };

/* How a scalar is written. */
enum tree_form {
	TREE_PLAIN,	 /* text; "" is null */
	TREE_DOUBLE,	 /* "text" */
	TREE_SINGLE,	 /* 'text' */
	TREE_TAG_DOUBLE, /* ! "text" */
	TREE_TAG_SINGLE, /* ! 'text' */
};

struct doc;

struct tree {
	struct doc *doc;
	struct list link; /* in the list of the parent's children */
	struct list children;
	unsigned int count; /* number of children */
	enum tree_kind kind;
	enum tree_form form;
	const char *key;  /* key, if the parent is a mapping; else NULL */
	const char *text; /* text of a scalar, UTF-8 without NUL */
	/* line in the text, from 1; 0: the node was not parsed */
	unsigned int line;
	unsigned int column; /* column in the text, from 1 */
};

#define tree_for_each(child, t) \
	list_for_each_entry (child, &(t)->children, link)

/* ---- documents ---- */

/* Makes an empty document. NULL: no memory. */
struct doc *doc_new(void) must_check;
void doc_free(struct doc *doc);
/* Returns the root. NULL: there is none yet. */
struct tree *doc_root(const struct doc *doc);
/* Makes the root; its text is @text, or "" if that is NULL. Returns NULL: no
 * memory. */
struct tree *doc_set_root(struct doc *doc, enum tree_kind kind,
			  enum tree_form form, const char *text);
/* Is a part of the document missing because there was no memory? */
bool doc_failed(const struct doc *doc);

/* ---- making: @key NULL in a sequence ---- */

/*
 * Each adds a child at the end of @parent and returns it; texts and keys are
 * copied. NULL: there was no memory, now or when @parent, which may be NULL,
 * was made; so only doc_failed() needs to be checked.
 */
struct tree *tree_map(struct tree *parent, const char *key);
struct tree *tree_seq(struct tree *parent, const char *key);
/* Adds a mapping to the sequence @key of @parent, which is made if need be. */
struct tree *tree_item(struct tree *parent, const char *key);
struct tree *tree_null(struct tree *parent, const char *key);
struct tree *tree_int(struct tree *parent, const char *key, int64_t value);
struct tree *tree_uint(struct tree *parent, const char *key, uint64_t value);
/* TREE_PLAIN becomes TREE_DOUBLE if YAML would take @text for null. */
struct tree *tree_text(struct tree *parent, const char *key,
		       enum tree_form form, const char *text);
/* Adds a copy of @t and all its children. */
struct tree *tree_copy(struct tree *parent, const char *key,
		       const struct tree *t);

/* ---- reading ---- */

/* The child of that key; NULL if there is none, or @map is no mapping. */
struct tree *tree_get(const struct tree *map, const char *key);
/* Is it a plain scalar that is empty, "~" or "null"? */
bool tree_is_null(const struct tree *t);
/* Is it a scalar, but not null? */
bool tree_is_text(const struct tree *t);
/* Parses a scalar as a decimal number. Returns false: it is none, or needs more
 * than 64 bits. */
bool tree_number(const struct tree *t, int64_t *value_p);

/* ---- text to tree ---- */

struct tree_limits {
	size_t bytes;
	unsigned int nodes;
	/* most collections inside of each other, at most TREE_DEPTH_MAX */
	unsigned int depth;
};
#define TREE_DEPTH_MAX 32
#define TREE_KEYS_MAX  1024 /* children of one mapping */
#define TREE_KEY_SIZE  128  /* bytes of a key */

struct tree_error {
	/* where in the text the error is, from 1; 0: it is not about a part of
	 * the text */
	unsigned int line, column;
	char what[TREE_KEY_SIZE + 64];
};

/*
 * Parses the document in @text; an empty text is a document that is null.
 * Returns 0; -EINVAL; -EMSGSIZE: it exceeds @limits; -ENOMEM. @err is filled on
 * error. Anchors, aliases, tags but "!", keys that are no texts, repeated keys
 * and a second document are errors.
 */
int tree_parse(const char *text, size_t len, const struct tree_limits *limits,
	       struct doc **doc_p, struct tree_error *err) must_check;

/* ---- tree to text ---- */

/* How many columns one of the three styles of the kernel's lnetctl indents. */
struct tree_style {
	unsigned int indent; /* columns for a mapping in a mapping */
	unsigned int dash;   /* columns for a sequence in a mapping */
	unsigned int item;   /* columns from a dash to its item */
};
/* 6 columns, "-     key": for net, peer */
extern const struct tree_style tree_wide;
/* 4 columns, "    - key": for global */
extern const struct tree_style tree_middle;
extern const struct tree_style tree_narrow; /* 2 columns, "- key": for ping */

/* Writes @t as a document without markers, which parses to the same tree.
 * Errors are in ferror(@out). */
void tree_emit(const struct tree *t, const struct tree_style *style, FILE *out);
/* Writes @t with its key in front. */
void tree_emit_pair(const struct tree *t, const struct tree_style *style,
		    FILE *out);

/* Closes @f, which open_memstream() has made for *@text_p. If @rc is 0 and all
 * was written, returns 0, and *@text_p is to be freed. Otherwise frees the text
 * and returns @rc or -ENOMEM. */
int text_end(FILE *f, int rc, char **text_p) must_check;

#endif
