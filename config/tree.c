/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define CHUNK_SIZE 16384

/* Memory of a document, given back as a whole. */
struct chunk {
	struct chunk *next;
	size_t used, size;
	max_align_t data[];
};

struct doc {
	struct chunk *chunks; /* the one in use first */
	struct tree *root;
	bool failed;
};

/* ---- documents ---- */

static struct chunk *chunk_add(struct doc *doc, size_t need)
{
	size_t size = MAX(need, (size_t)CHUNK_SIZE);
	struct chunk *c = malloc(sizeof(*c) + size);

	if (!c)
		return NULL;
	c->used = 0;
	c->size = size;
	c->next = doc->chunks;
	doc->chunks = c;
	return c;
}

static void *doc_alloc(struct doc *doc, size_t size)
{
	struct chunk *c = doc->chunks;
	void *p;

	size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
	if (!c || c->size - c->used < size)
		c = chunk_add(doc, size);
	if (!c) {
		doc->failed = true;
		return NULL;
	}
	p = (char *)c->data + c->used;
	c->used += size;
	return p;
}

static const char *doc_text(struct doc *doc, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = doc_alloc(doc, size);

	return copy ? memcpy(copy, text, size) : NULL;
}

struct doc *doc_new(void)
{
	return calloc(1, sizeof(struct doc));
}

void doc_free(struct doc *doc)
{
	struct chunk *c, *next;

	if (!doc)
		return;
	for (c = doc->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	free(doc);
}

struct tree *doc_root(const struct doc *doc)
{
	return doc->root;
}

bool doc_failed(const struct doc *doc)
{
	return doc->failed;
}

/* ---- making ---- */

static struct tree *node_new(struct doc *doc, enum tree_kind kind,
			     enum tree_form form, const char *text)
{
	struct tree *t = doc_alloc(doc, sizeof(*t));

	if (!t)
		return NULL;
	*t = (struct tree){
		.doc = doc,
		.kind = kind,
		.form = form,
		.text = text && *text ? doc_text(doc, text) : "",
	};
	list_init(&t->link);
	list_init(&t->children);
	return t->text ? t : NULL;
}

struct tree *doc_set_root(struct doc *doc, enum tree_kind kind,
			  enum tree_form form, const char *text)
{
	doc->root = node_new(doc, kind, form, text);
	return doc->root;
}

struct tree *tree_add(struct tree *parent, const char *key, enum tree_kind kind,
		      enum tree_form form, const char *text)
{
	struct tree *t;

	if (!parent)
		return NULL;
	BUG_ON(parent->kind == TREE_SCALAR);
	BUG_ON((parent->kind == TREE_MAP) != (key != NULL));
	t = node_new(parent->doc, kind, form, text);
	if (t && key)
		t->key = doc_text(parent->doc, key);
	if (!t || (key && !t->key))
		return NULL;
	list_add_tail(&parent->children, &t->link);
	parent->count++;
	return t;
}

struct tree *tree_map(struct tree *parent, const char *key)
{
	return tree_add(parent, key, TREE_MAP, TREE_PLAIN, NULL);
}

struct tree *tree_seq(struct tree *parent, const char *key)
{
	return tree_add(parent, key, TREE_SEQ, TREE_PLAIN, NULL);
}

struct tree *tree_null(struct tree *parent, const char *key)
{
	return tree_add(parent, key, TREE_SCALAR, TREE_PLAIN, NULL);
}

/* What YAML takes for null when it is not quoted. */
static bool null_text(const char *text)
{
	return !*text || !strcmp(text, "~") || !strcmp(text, "null") ||
	       !strcmp(text, "Null") || !strcmp(text, "NULL");
}

struct tree *tree_text(struct tree *parent, const char *key,
		       enum tree_form form, const char *text)
{
	if (form == TREE_PLAIN && null_text(text))
		form = TREE_DOUBLE;
	return tree_add(parent, key, TREE_SCALAR, form, text);
}

__attribute__((format(printf, 4, 5)))
static struct tree *tree_printf(struct tree *parent, const char *key,
				enum tree_form form, const char *fmt, ...)
{
	struct tree *t;
	char *text;
	va_list ap;
	int n;

	if (!parent)
		return NULL;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		parent->doc->failed = true;
		return NULL;
	}
	t = tree_text(parent, key, form, text);
	free(text);
	return t;
}

struct tree *tree_int(struct tree *parent, const char *key, int64_t value)
{
	return tree_printf(parent, key, TREE_PLAIN, "%" PRId64, value);
}

struct tree *tree_uint(struct tree *parent, const char *key, uint64_t value)
{
	return tree_printf(parent, key, TREE_PLAIN, "%" PRIu64, value);
}

struct tree *tree_copy(struct tree *parent, const char *key,
		       const struct tree *t)
{
	struct tree *copy = tree_add(parent, key, t->kind, t->form, t->text);
	const struct tree *child;

	if (copy)
		tree_for_each (child, t)
			tree_copy(copy, child->key, child);
	return copy;
}

/* ---- reading ---- */

struct tree *tree_get(const struct tree *map, const char *key)
{
	struct tree *t;

	if (!map || map->kind != TREE_MAP)
		return NULL;
	tree_for_each (t, map)
		if (!strcmp(t->key, key))
			return t;
	return NULL;
}

bool tree_is_null(const struct tree *t)
{
	return t->kind == TREE_SCALAR && t->form == TREE_PLAIN &&
	       null_text(t->text);
}

bool tree_is_text(const struct tree *t)
{
	return t->kind == TREE_SCALAR && !tree_is_null(t);
}

bool tree_number(const struct tree *t, int64_t *value_p)
{
	const char *digits = t->text + (*t->text == '-' || *t->text == '+');
	char *end;
	long long v;

	if (t->kind != TREE_SCALAR || *digits < '0' || *digits > '9')
		return false;
	errno = 0;
	v = strtoll(t->text, &end, 10);
	if (errno || *end)
		return false;
	*value_p = v;
	return true;
}

bool tree_eq(const struct tree *a, const struct tree *b)
{
	const struct list *la = a->children.next, *lb = b->children.next;

	if (a->kind != b->kind || a->count != b->count ||
	    strcmp(a->text, b->text) != 0 ||
	    tree_is_null(a) != tree_is_null(b) || !a->key != !b->key ||
	    (a->key && strcmp(a->key, b->key) != 0))
		return false;
	for (; la != &a->children; la = la->next, lb = lb->next)
		if (!tree_eq(container_of(la, struct tree, link),
			     container_of(lb, struct tree, link)))
			return false;
	return true;
}
