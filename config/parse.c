/* SPDX-License-Identifier: BSD-3-Clause */
/* Text to tree, with libyaml's events. What is foreign is bounded here. */
#include "config/tree.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

struct parse {
	yaml_parser_t yaml;
	const struct tree_limits *limits;
	struct tree_error *err;
	struct doc *doc;
	/* collections begun and not ended, the outermost first */
	struct tree *open[TREE_DEPTH_MAX];
	unsigned int depth;
	unsigned int nodes;
	bool started; /* a document has begun */
	bool ended;
	bool has_key;
	char key[TREE_KEY_SIZE]; /* of the value that comes next */
};

static int fail_at(struct parse *p, const yaml_mark_t *mark, int rc,
		   const char *what)
{
	p->err->line = mark ? (unsigned int)mark->line + 1 : 0;
	p->err->column = mark ? (unsigned int)mark->column + 1 : 0;
	snprintf(p->err->what, sizeof(p->err->what), "%s", what);
	return rc;
}

/* What libyaml itself found. */
static int fail_yaml(struct parse *p)
{
	const yaml_parser_t *y = &p->yaml;

	if (y->error == YAML_MEMORY_ERROR)
		return fail_at(p, NULL, -ENOMEM, "no memory");
	return fail_at(
		p, y->error == YAML_READER_ERROR ? &y->mark : &y->problem_mark,
		-EINVAL, y->problem ? y->problem : "not YAML");
}

static bool wants_key(const struct parse *p)
{
	return p->depth && p->open[p->depth - 1]->kind == TREE_MAP &&
	       !p->has_key;
}

/* Puts a node where it belongs. */
static int add(struct parse *p, const yaml_mark_t *mark, enum tree_kind kind,
	       enum tree_form form, const char *text)
{
	struct tree *t;

	if (wants_key(p))
		return fail_at(p, mark, -EINVAL, "a key must be a text");
	if (++p->nodes > p->limits->nodes)
		return fail_at(p, mark, -EMSGSIZE,
			       "the document has too many entries");
	if (p->depth)
		t = tree_add(p->open[p->depth - 1], p->has_key ? p->key : NULL,
			     kind, form, text);
	else
		t = doc_set_root(p->doc, kind, form, text);
	if (!t)
		return fail_at(p, NULL, -ENOMEM, "no memory");
	t->line = (unsigned int)mark->line + 1;
	t->column = (unsigned int)mark->column + 1;
	p->has_key = false;
	if (kind == TREE_SCALAR)
		return 0;
	if (p->depth >= MIN(p->limits->depth, (unsigned int)TREE_DEPTH_MAX))
		return fail_at(p, mark, -EMSGSIZE, "nested too deeply");
	p->open[p->depth++] = t;
	return 0;
}

static int add_key(struct parse *p, const yaml_mark_t *mark, const char *text,
		   size_t len)
{
	const struct tree *map = p->open[p->depth - 1];
	char what[TREE_KEY_SIZE + 32];

	if (len >= sizeof(p->key))
		return fail_at(p, mark, -EINVAL, "a key is too long");
	if (map->count >= TREE_KEYS_MAX)
		return fail_at(p, mark, -EMSGSIZE,
			       "a mapping has too many keys");
	if (tree_get(map, text)) {
		snprintf(what, sizeof(what), "key '%s' comes twice", text);
		return fail_at(p, mark, -EINVAL, what);
	}
	memcpy(p->key, text, len + 1);
	p->has_key = true;
	return 0;
}

static int check_tag(struct parse *p, const yaml_mark_t *mark,
		     const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor)
		return fail_at(p, mark, -EINVAL,
			       "anchors and aliases are not supported");
	if (tag && strcmp((const char *)tag, "!") != 0)
		return fail_at(p, mark, -EINVAL, "tags are not supported");
	return 0;
}

static enum tree_form form_of(const yaml_event_t *ev)
{
	bool tag = ev->data.scalar.tag != NULL;

	switch (ev->data.scalar.style) {
	case YAML_PLAIN_SCALAR_STYLE:
		return tag ? TREE_TAG_DOUBLE : TREE_PLAIN;
	case YAML_SINGLE_QUOTED_SCALAR_STYLE:
		return tag ? TREE_TAG_SINGLE : TREE_SINGLE;
	default:
		return tag ? TREE_TAG_DOUBLE : TREE_DOUBLE;
	}
}

static int on_scalar(struct parse *p, const yaml_event_t *ev)
{
	const yaml_mark_t *mark = &ev->start_mark;
	const char *text = (const char *)ev->data.scalar.value;
	size_t len = ev->data.scalar.length;
	int rc =
		check_tag(p, mark, ev->data.scalar.anchor, ev->data.scalar.tag);

	if (rc)
		return rc;
	if (memchr(text, 0, len))
		return fail_at(p, mark, -EINVAL, "a text contains a NUL");
	if (wants_key(p))
		return add_key(p, mark, text, len);
	return add(p, mark, TREE_SCALAR, form_of(ev), text);
}

static int on_begin(struct parse *p, const yaml_event_t *ev)
{
	bool map = ev->type == YAML_MAPPING_START_EVENT;
	int rc = map ? check_tag(p, &ev->start_mark,
				 ev->data.mapping_start.anchor,
				 ev->data.mapping_start.tag)
		     : check_tag(p, &ev->start_mark,
				 ev->data.sequence_start.anchor,
				 ev->data.sequence_start.tag);

	return rc ? rc
		  : add(p, &ev->start_mark, map ? TREE_MAP : TREE_SEQ,
			TREE_PLAIN, NULL);
}

static int on_event(struct parse *p, const yaml_event_t *ev)
{
	switch (ev->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (p->started)
			return fail_at(p, &ev->start_mark, -EINVAL,
				       "a second document begins");
		p->started = true;
		return 0;
	case YAML_SCALAR_EVENT:
		return on_scalar(p, ev);
	case YAML_MAPPING_START_EVENT:
	case YAML_SEQUENCE_START_EVENT:
		return on_begin(p, ev);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		p->depth--;
		return 0;
	case YAML_ALIAS_EVENT:
		return fail_at(p, &ev->start_mark, -EINVAL,
			       "anchors and aliases are not supported");
	case YAML_STREAM_END_EVENT:
		p->ended = true;
		return 0;
	default:
		return 0;
	}
}

static int parse_all(struct parse *p)
{
	yaml_event_t ev;
	int rc;

	while (!p->ended) {
		if (!yaml_parser_parse(&p->yaml, &ev))
			return fail_yaml(p);
		rc = on_event(p, &ev);
		yaml_event_delete(&ev);
		if (rc)
			return rc;
	}
	if (!doc_root(p->doc) &&
	    !doc_set_root(p->doc, TREE_SCALAR, TREE_PLAIN, NULL))
		return fail_at(p, NULL, -ENOMEM, "no memory");
	return 0;
}

int tree_parse(const char *text, size_t len, const struct tree_limits *limits,
	       struct doc **doc_p, struct tree_error *err)
{
	struct parse p = { .limits = limits, .err = err };
	int rc;

	if (len > limits->bytes)
		return fail_at(&p, NULL, -EMSGSIZE, "the document is too long");
	p.doc = doc_new();
	if (!p.doc || !yaml_parser_initialize(&p.yaml)) {
		doc_free(p.doc);
		return fail_at(&p, NULL, -ENOMEM, "no memory");
	}
	yaml_parser_set_encoding(&p.yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p.yaml, (const unsigned char *)text, len);
	rc = parse_all(&p);
	yaml_parser_delete(&p.yaml);
	if (rc)
		doc_free(p.doc);
	else
		*doc_p = p.doc;
	return rc;
}
