/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/yaml/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "ulnet/control.h"

#define CHUNK_SIZE 16384

/* A block of a document's memory. */
struct chunk {
	struct chunk *next;
	size_t used, size;
	max_align_t data[];
};

struct doc {
	/* list of chunks; the one that is being filled comes first */
	struct chunk *chunks;
	struct tree *root;
	bool failed;
};

/* ---- documents ---- */

static struct chunk *tree_chunk_add(struct doc *doc, size_t need)
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
		c = tree_chunk_add(doc, size);
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

/* Adds a child; unlike in tree_text(), @form is not changed. */
static struct tree *tree_add(struct tree *parent, const char *key,
			     enum tree_kind kind, enum tree_form form,
			     const char *text)
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

/* Does YAML take @text for null if it is not quoted? */
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

struct tree *tree_int(struct tree *parent, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return tree_text(parent, key, TREE_PLAIN, text);
}

struct tree *tree_uint(struct tree *parent, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return tree_text(parent, key, TREE_PLAIN, text);
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

struct tree *tree_item(struct tree *parent, const char *key)
{
	struct tree *seq = tree_get(parent, key);

	return tree_map(seq ? seq : tree_seq(parent, key), NULL);
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

/* ---- text to tree ---- */

struct parse {
	yaml_parser_t yaml;
	const struct tree_limits *limits;
	struct tree_error *err;
	struct doc *doc;
	/* Collections that have not ended yet, the outermost first: */
	struct tree *open[TREE_DEPTH_MAX];
	unsigned int depth;
	unsigned int nodes;
	bool started; /* a document has begun */
	bool ended;
	bool has_key;
	char key[TREE_KEY_SIZE]; /* key of the next value */
};

static int fail_at(struct parse *p, const yaml_mark_t *mark, int rc,
		   const char *what)
{
	p->err->line = mark ? (unsigned int)mark->line + 1 : 0;
	p->err->column = mark ? (unsigned int)mark->column + 1 : 0;
	snprintf(p->err->what, sizeof(p->err->what), "%s", what);
	return rc;
}

/* Reports an error of libyaml. */
static int fail_yaml(struct parse *p)
{
	const yaml_parser_t *y = &p->yaml;

	if (y->error == YAML_MEMORY_ERROR)
		return fail_at(p, NULL, -ENOMEM, "no memory");
	return fail_at(
		p, y->error == YAML_READER_ERROR ? &y->mark : &y->problem_mark,
		-EINVAL, y->problem ? y->problem : "not YAML");
}

static bool expects_key(const struct parse *p)
{
	return p->depth && p->open[p->depth - 1]->kind == TREE_MAP &&
	       !p->has_key;
}

/* Adds a node to the innermost open collection. */
static int add_node(struct parse *p, const yaml_mark_t *mark,
		    enum tree_kind kind, enum tree_form form, const char *text)
{
	struct tree *t;

	if (expects_key(p))
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
	if (expects_key(p))
		return add_key(p, mark, text, len);
	return add_node(p, mark, TREE_SCALAR, form_of(ev), text);
}

static int tree_on_begin(struct parse *p, const yaml_event_t *ev)
{
	bool map = ev->type == YAML_MAPPING_START_EVENT;
	int rc = map ? check_tag(p, &ev->start_mark,
				 ev->data.mapping_start.anchor,
				 ev->data.mapping_start.tag)
		     : check_tag(p, &ev->start_mark,
				 ev->data.sequence_start.anchor,
				 ev->data.sequence_start.tag);

	return rc ? rc
		  : add_node(p, &ev->start_mark, map ? TREE_MAP : TREE_SEQ,
			     TREE_PLAIN, NULL);
}

static int tree_on_event(struct parse *p, const yaml_event_t *ev)
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
		return tree_on_begin(p, ev);
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

static int tree_parse_all(struct parse *p)
{
	yaml_event_t ev;
	int rc;

	while (!p->ended) {
		if (!yaml_parser_parse(&p->yaml, &ev))
			return fail_yaml(p);
		rc = tree_on_event(p, &ev);
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
	rc = tree_parse_all(&p);
	yaml_parser_delete(&p.yaml);
	if (rc)
		doc_free(p.doc);
	else
		*doc_p = p.doc;
	return rc;
}

/* ---- tree to text ---- */

const struct tree_style tree_wide = { 6, 0, 6 };
const struct tree_style tree_middle = { 4, 4, 2 };
const struct tree_style tree_narrow = { 2, 0, 2 };

/* ---- scalars ---- */

/* Can @text be written without quotes anywhere in a document? False also for
 * some texts that could. */
static bool plain_ok(const char *text)
{
	size_t len = strlen(text);
	const char *c;

	if (!len || strchr("?,[]{}#&*!|>'\"%@` ", *text) ||
	    text[len - 1] == ' ' || text[len - 1] == ':' ||
	    !strncmp(text, "---", 3) || !strncmp(text, "...", 3))
		return false;
	if ((*text == '-' || *text == ':') && (!text[1] || text[1] == ' '))
		return false;
	for (c = text; *c; c++)
		if (*c < ' ' || *c > '~' || (*c == ':' && c[1] == ' ') ||
		    (*c == ' ' && c[1] == '#'))
			return false;
	return true;
}

static bool printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

/* Decodes the character at @s. Sets *@len to its number of bytes; 0: it is not
 * UTF-8. */
static uint32_t utf8(const unsigned char *s, size_t *len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t v;

	*len = *s < 0x80	     ? 1
	       : (*s & 0xe0) == 0xc0 ? 2
	       : (*s & 0xf0) == 0xe0 ? 3
	       : (*s & 0xf8) == 0xf0 ? 4
				     : 0;
	if (*len < 2)
		return *s;
	v = *s & (0x7fu >> *len);
	for (size_t i = 1; i < *len; i++) {
		if ((s[i] & 0xc0) != 0x80) {
			*len = 0;
			return 0;
		}
		v = v << 6 | (s[i] & 0x3fu);
	}
	if (v < least[*len] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
		*len = 0;
	return v;
}

static void emit_escape(uint32_t v, FILE *out)
{
	switch (v) {
	case '"':
	case '\\':
		fprintf(out, "\\%c", (char)v);
		break;
	case '\n':
		fputs("\\n", out);
		break;
	case '\t':
		fputs("\\t", out);
		break;
	default:
		if (v >= ' ' && v <= '~')
			fputc((int)v, out);
		else if (v < 0x100)
			fprintf(out, "\\x%02X", v);
		else if (v < 0x10000)
			fprintf(out, "\\u%04X", v);
		else
			fprintf(out, "\\U%08X", v);
	}
}

/* Writes @text in double quotes. -EILSEQ: it is not UTF-8, and what was written
 * so far is of no use. */
static int tree_emit_quoted(const char *text, FILE *out)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t len;

	fputc('"', out);
	for (; *s; s += len) {
		uint32_t v = utf8(s, &len);

		if (!len)
			return -EILSEQ;
		emit_escape(v, out);
	}
	fputc('"', out);
	return 0;
}

static void emit_single(const char *text, FILE *out)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			fputc('\'', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

/* Writes @text in double quotes. All texts are UTF-8, because they come from
 * this program or from libyaml, which accepts nothing else; so
 * tree_emit_quoted() is not expected to fail. */
static void emit_double(const char *text, FILE *out)
{
	if (tree_emit_quoted(text, out))
		fputs("?\"", out);
}

static void emit_scalar(const struct tree *t, FILE *out)
{
	if (t->form == TREE_TAG_DOUBLE || t->form == TREE_TAG_SINGLE)
		fputs("! ", out);
	if (t->form == TREE_PLAIN && plain_ok(t->text))
		fputs(t->text, out);
	else if ((t->form == TREE_SINGLE || t->form == TREE_TAG_SINGLE) &&
		 printable(t->text))
		emit_single(t->text, out);
	else
		emit_double(t->text, out);
}

static void emit_key(const char *key, FILE *out)
{
	if (plain_ok(key))
		fputs(key, out);
	else
		emit_double(key, out);
	fputc(':', out);
}

/* ---- trees ---- */

static void emit_node(const struct tree *t, const struct tree_style *style,
		      unsigned int at, FILE *out);

static void pad(unsigned int n, FILE *out)
{
	fprintf(out, "%*s", (int)n, "");
}

/* Writes @t on the line of its key if it is a scalar or an empty collection.
 * Returns false: it is neither. */
static bool emit_inline(const struct tree *t, FILE *out)
{
	if (t->kind != TREE_SCALAR && t->count)
		return false;
	if (t->kind == TREE_MAP)
		fputs(" {}", out);
	else if (t->kind == TREE_SEQ)
		fputs(" []", out);
	else if (!tree_is_null(t) || *t->text) {
		fputc(' ', out);
		emit_scalar(t, out);
	}
	fputc('\n', out);
	return true;
}

/* Writes a pair. The output has reached column @at, where the key is to be. */
static void emit_pair(const struct tree *t, const struct tree_style *style,
		      unsigned int at, FILE *out)
{
	unsigned int below =
		at + (t->kind == TREE_SEQ ? style->dash : style->indent);

	emit_key(t->key, out);
	if (emit_inline(t, out))
		return;
	fputc('\n', out);
	pad(below, out);
	emit_node(t, style, below, out);
}

static void emit_item(const struct tree *t, const struct tree_style *style,
		      unsigned int at, FILE *out)
{
	fputc('-', out);
	if (emit_inline(t, out))
		return;
	pad(style->item - 1, out);
	emit_node(t, style, at + style->item, out);
}

/* Writes a collection that is not empty. The output has reached column @at. */
static void emit_node(const struct tree *t, const struct tree_style *style,
		      unsigned int at, FILE *out)
{
	const struct tree *child;
	bool first = true;

	tree_for_each (child, t) {
		if (!first)
			pad(at, out);
		first = false;
		if (t->kind == TREE_MAP)
			emit_pair(child, style, at, out);
		else
			emit_item(child, style, at, out);
	}
}

void tree_emit(const struct tree *t, const struct tree_style *style, FILE *out)
{
	if (t->kind != TREE_SCALAR && t->count) {
		emit_node(t, style, 0, out);
	} else if (t->kind != TREE_SCALAR) {
		fputs(t->kind == TREE_MAP ? "{}\n" : "[]\n", out);
	} else if (*t->text || !tree_is_null(t)) {
		emit_scalar(t, out);
		fputc('\n', out);
	}
}

void tree_emit_pair(const struct tree *t, const struct tree_style *style,
		    FILE *out)
{
	emit_pair(t, style, 0, out);
}

/* text_end() and lnet_ctl_quote(), which needs it, stand here, and not in
 * client.c, because RPC has a weak reference to lnet_ctl_quote(): wherever a
 * control is linked, tree.o is linked, too. */
int text_end(FILE *f, int rc, char **text_p)
{
	bool bad = ferror(f);

	if ((fclose(f) || bad) && !rc)
		rc = -ENOMEM;
	if (rc)
		free(*text_p);
	return rc;
}

int lnet_ctl_quote(const char *text, char **quoted_p)
{
	size_t size;
	char *quoted;
	FILE *f = open_memstream(&quoted, &size);
	int rc = f ? text_end(f, tree_emit_quoted(text, f), &quoted) : -ENOMEM;

	if (!rc)
		*quoted_p = quoted;
	return rc;
}
