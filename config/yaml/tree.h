/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A YAML document as a tree: mappings (with the order of their keys),
 * sequences, scalars with the form in which they are written; read from text,
 * with libyaml's events, and written to text. Knows nothing of LNet.
 *
 * All of a document is freed at once. Any thread, one at a time for each
 * document.
 */
#ifndef CONFIG_YAML_TREE_H
#define CONFIG_YAML_TREE_H

#include <stdint.h>
#include <stdio.h>
#include "base/list.h"

enum tree_kind { TREE_SCALAR, TREE_MAP, TREE_SEQ };

enum tree_form {
	TREE_PLAIN,	 /* text (an empty one is null) */
	TREE_DOUBLE,	 /* "text" */
	TREE_SINGLE,	 /* 'text' */
	TREE_TAG_DOUBLE, /* ! "text" */
	TREE_TAG_SINGLE, /* ! 'text' */
};

struct doc;

struct tree {
	struct doc *doc;
	struct list link; /* in the parent's children */
	struct list children;
	unsigned int count; /* of them */
	enum tree_kind kind;
	enum tree_form form;
	const char *key;     /* in a mapping; else NULL */
	const char *text;    /* of a scalar; UTF-8 without NUL */
	unsigned int line;   /* where it stands, from 1; 0: it was made here */
	unsigned int column; /* from 1 */
};

#define tree_for_each(child, t) \
	list_for_each_entry (child, &(t)->children, link)

/* ---- documents ---- */

/* NULL: no memory. */
struct doc *doc_new(void) must_check;
void doc_free(struct doc *doc);
/* NULL: there is none yet. */
struct tree *doc_root(const struct doc *doc);
/* @text NULL: "". */
struct tree *doc_set_root(struct doc *doc, enum tree_kind kind,
			  enum tree_form form, const char *text);
/* Has memory been short since doc_new()? Then parts are missing. */
bool doc_failed(const struct doc *doc);

/* ---- making: @key NULL in a sequence ---- */

/*
 * Each adds a child at the end of @parent and returns it; texts and keys are
 * copied. Without memory they return NULL and doc_failed() says so; a @parent
 * of NULL is taken for the result of such a call.
 */
struct tree *tree_map(struct tree *parent, const char *key);
struct tree *tree_seq(struct tree *parent, const char *key);
/* One more mapping in the sequence @key of @parent, a mapping; the sequence is
 * made, if it is not there yet. */
struct tree *tree_item(struct tree *parent, const char *key);
struct tree *tree_null(struct tree *parent, const char *key);
struct tree *tree_int(struct tree *parent, const char *key, int64_t value);
struct tree *tree_uint(struct tree *parent, const char *key, uint64_t value);
/* TREE_PLAIN: quoted if it could be taken for null. */
struct tree *tree_text(struct tree *parent, const char *key,
		       enum tree_form form, const char *text);
/* A copy of @t with all that is under it. */
struct tree *tree_copy(struct tree *parent, const char *key,
		       const struct tree *t);

/* ---- reading ---- */

/* The child of that key; NULL if there is none, or @map is no mapping. */
struct tree *tree_get(const struct tree *map, const char *key);
/* Nothing stands there: an empty plain scalar, "~" or "null". */
bool tree_is_null(const struct tree *t);
/* A scalar that is not null. */
bool tree_is_text(const struct tree *t);
/* The decimal number that a scalar stands for; false: it stands for none, or
 * for one of more than 64 bits. */
bool tree_number(const struct tree *t, int64_t *value_p);

/* ---- text to tree ---- */

struct tree_limits {
	size_t bytes;
	unsigned int nodes;
	unsigned int depth; /* at most TREE_DEPTH_MAX */
};
#define TREE_DEPTH_MAX 32
#define TREE_KEYS_MAX  1024 /* of one mapping */
#define TREE_KEY_SIZE  128  /* bytes of a key */

struct tree_error {
	unsigned int line, column; /* from 1; 0: no place in the text */
	char what[TREE_KEY_SIZE + 64];
};

/*
 * Parses the one document in @text; none makes a tree that is null. 0, -EINVAL
 * (@err says why), -EMSGSIZE (more than @limits; @err), -ENOMEM (@err).
 * Anchors, aliases, tags but "!", keys that are no texts, and keys that come
 * twice are errors.
 */
int tree_parse(const char *text, size_t len, const struct tree_limits *limits,
	       struct doc **doc_p, struct tree_error *err) must_check;

/* ---- tree to text ---- */

/* The three ways in which the kernel's lnetctl prints. */
struct tree_style {
	unsigned int indent; /* of a mapping in a mapping */
	unsigned int dash;   /* of a sequence's dashes in a mapping */
	unsigned int item;   /* from a dash to what it stands for */
};
extern const struct tree_style tree_wide;   /* 6, "-     key": net, peer */
extern const struct tree_style tree_middle; /* 4, "    - key": global */
extern const struct tree_style tree_narrow; /* 2, "- key": ping */

/* Writes @t, which may be any node, as a document of its own, without markers.
 * Parses back to the same tree. Errors are in ferror(@out). */
void tree_emit(const struct tree *t, const struct tree_style *style, FILE *out);
/* One key and its value. */
void tree_emit_pair(const struct tree *t, const struct tree_style *style,
		    FILE *out);

/* Closes @f, which open_memstream() has made for *@text_p. If @rc is 0 and all
 * of it was written, the text is to be freed, and 0 is returned; else there is
 * no text: -ENOMEM, or @rc. */
int text_end(FILE *f, int rc, char **text_p) must_check;

#endif
