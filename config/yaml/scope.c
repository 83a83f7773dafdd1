/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/yaml/scope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

/* ---- answers ---- */

const struct tree_limits request_limits = { REQUEST_MAX, 400000,
					    TREE_DEPTH_MAX };
const struct tree_limits answer_limits = { ANSWER_MAX, 4000000,
					   TREE_DEPTH_MAX };

int answer_init(struct answer *a)
{
	*a = (struct answer){ .doc = doc_new() };
	return a->doc && doc_set_root(a->doc, TREE_MAP, TREE_PLAIN, NULL)
		       ? 0
		       : -ENOMEM;
}

void answer_fini(struct answer *a)
{
	doc_free(a->doc);
	*a = (struct answer){ 0 };
}

/* Returns the section of the answer that @part_p points to, and makes it if it
 * does not exist yet. */
static struct tree *part(struct answer *a, struct tree **part_p,
			 const char *key, bool map)
{
	if (!*part_p)
		*part_p = map ? tree_map(doc_root(a->doc), key)
			      : tree_seq(doc_root(a->doc), key);
	return *part_p;
}

struct tree *answer_output(struct answer *a)
{
	return part(a, &a->output, "output", true);
}

static struct tree *error_item(struct answer *a, const char *top, int rc)
{
	if (!a->status)
		a->status = rc;
	return tree_item(part(a, &a->error, "error", true), top);
}

void answer_error(struct answer *a, const struct subject *s, int rc,
		  const char *fmt, ...)
{
	struct tree *item = error_item(a, s->top, rc);
	char descr[DESCR_SIZE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(descr, sizeof(descr), fmt, ap);
	va_end(ap);
	tree_null(item, s->item);
	if (s->seq_no)
		tree_copy(item, "seq_no", s->seq_no);
	tree_int(item, "errno", rc);
	tree_text(item, "descr",
		  strcmp(s->top, "manage") ? TREE_TAG_DOUBLE : TREE_TAG_SINGLE,
		  descr);
}

void answer_setting_error(struct answer *a, const char *top, const char *name,
			  int rc, const char *descr)
{
	struct tree *item = tree_map(error_item(a, top, rc), name);

	tree_int(item, "errno", rc);
	tree_text(item, "descr", TREE_DOUBLE, descr);
}

static bool was_noted(const struct answer *a, const char *text)
{
	const struct tree *t;

	if (!a->notes)
		return false;
	tree_for_each (t, a->notes)
		if (!strcmp(t->text, text))
			return true;
	return a->notes->count >= NOTES_MAX;
}

static void note(struct answer *a, bool once, const char *fmt, va_list ap)
{
	char text[DESCR_SIZE];

	vsnprintf(text, sizeof(text), fmt, ap);
	if (!once || !was_noted(a, text))
		tree_text(part(a, &a->notes, "notes", false), NULL, TREE_DOUBLE,
			  text);
}

void answer_note(struct answer *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(a, false, fmt, ap);
	va_end(ap);
}

void answer_note_once(struct answer *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(a, true, fmt, ap);
	va_end(ap);
}

int answer_text(const struct answer *a, size_t max, char **text_p)
{
	const struct tree *const parts[] = { a->output, a->error, a->notes };
	size_t size = 0;
	char *text;
	FILE *f;
	int rc;

	if (doc_failed(a->doc))
		return -ENOMEM;
	f = open_memstream(&text, &size);
	if (!f)
		return -ENOMEM;
	fprintf(f, "status: %d\n", a->status);
	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i])
			tree_emit_pair(parts[i], &tree_narrow, f);
	rc = text_end(f, 0, &text);
	if (rc)
		return rc;
	if (size > max) {
		free(text);
		return -EMSGSIZE;
	}
	*text_p = text;
	return 0;
}

/* ---- reading ---- */

static void yaml_fail(const struct scope *s, const struct tree *at,
		      bool with_line, int rc, const char *fmt, va_list ap)
{
	char where[64] = "", what[DESCR_SIZE];

	if (with_line && at && at->line && s->index)
		snprintf(where, sizeof(where), "line %u, %s %u: ", at->line,
			 s->subject.item, s->index);
	else if (with_line && at && at->line)
		snprintf(where, sizeof(where), "line %u, column %u: ", at->line,
			 at->column);
	vsnprintf(what, sizeof(what), fmt, ap);
	answer_error(s->answer, &s->subject, rc, "%s%s", where, what);
}

int scope_fail(const struct scope *s, const struct tree *at, int rc,
	       const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	yaml_fail(s, at, s->show_lines, rc, fmt, ap);
	va_end(ap);
	return rc;
}

int scope_misread(const struct scope *s, const struct tree *at, const char *fmt,
		  ...)
{
	va_list ap;

	va_start(ap, fmt);
	yaml_fail(s, at, true, -EINVAL, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

void scope_set_fail(const struct scope *s, const char *name, int rc,
		    const char *why)
{
	char words[TREE_KEY_SIZE], descr[DESCR_SIZE];

	snprintf(words, sizeof(words), "%s", name);
	for (char *c = words; *c; c++)
		if (*c == '_')
			*c = ' ';
	snprintf(descr, sizeof(descr), "cannot configure %s: %s", words, why);
	/* Scripts expect one number for everything that is wrong with a
	 * value. */
	answer_setting_error(s->answer, "add", name,
			     rc == -EINVAL || rc == -ENOENT ? -ENODATA : rc,
			     descr);
}

static const char *scope_name_of(const struct tree *t)
{
	return t->key ? t->key : "item";
}

int scope_text(const struct scope *s, const struct tree *t, const char **text_p)
{
	if (!t)
		return 0;
	if (!tree_is_text(t))
		return scope_misread(s, t, "%s: a text is expected",
				     scope_name_of(t));
	*text_p = t->text;
	return 0;
}

int scope_number(const struct scope *s, const struct tree *t, int64_t min,
		 int64_t max, int64_t *value_p)
{
	int64_t v;

	if (!t)
		return 0;
	if (!tree_number(t, &v))
		return scope_fail(s, t, -EINVAL, "%s: a number is expected",
				  scope_name_of(t));
	if (v < min || v > max)
		return scope_fail(s, t, -EINVAL,
				  "%s: %" PRId64 " is not in %" PRId64
				  "..%" PRId64,
				  scope_name_of(t), v, min, max);
	*value_p = v;
	return 0;
}

static bool scope_word(const struct tree *t, bool *value_p)
{
	static const char *const words[] = { "false", "true", "no", "yes",
					     "off",   "on",   "0",  "1" };

	for (unsigned int i = 0; i < ARRAY_SIZE(words); i++) {
		if (t->kind == TREE_SCALAR && !strcasecmp(t->text, words[i])) {
			*value_p = i & 1;
			return true;
		}
	}
	return false;
}

int scope_bool(const struct scope *s, const struct tree *t, bool *value_p)
{
	return !t || scope_word(t, value_p)
		       ? 0
		       : scope_fail(s, t, -EINVAL,
				    "%s: true or false is expected",
				    scope_name_of(t));
}

bool scope_is_value(const struct tree *t, bool words, int64_t *value_p)
{
	bool on;

	if (!words || !scope_word(t, &on))
		return tree_number(t, value_p);
	*value_p = on;
	return true;
}

int scope_value(const struct scope *s, const struct tree *t, bool words,
		int64_t *value_p)
{
	return !t || scope_is_value(t, words, value_p)
		       ? 0
		       : scope_number(s, t, INT64_MIN, INT64_MAX, value_p);
}

int scope_need(const struct scope *s, const struct tree *map, const char *key,
	       const struct tree **t_p)
{
	*t_p = tree_get(map, key);
	return *t_p ? 0 : scope_fail(s, map, -EINVAL, "%s is missing", key);
}

int scope_map(const struct scope *s, const struct tree *t)
{
	if (t->kind == TREE_MAP || tree_is_null(t))
		return 0;
	return scope_misread(s, t, "%s: a mapping is expected",
			     scope_name_of(t));
}

bool key_in(const char *key, const char *const *keys)
{
	for (; *keys; keys++)
		if (!strcmp(key, *keys))
			return true;
	return false;
}

/* Do at most @letters changes turn @a into @b? A change inserts, removes or
 * replaces a letter, or swaps it with the next one. */
static bool alike(const char *a, const char *b, unsigned int letters)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return true;
	if (!letters)
		return false;
	letters--;
	return (*a && *b && alike(a + 1, b + 1, letters)) ||
	       (*a && *b && a[0] == b[1] && a[1] == b[0] &&
		alike(a + 2, b + 2, letters)) ||
	       (*a && alike(a + 1, b, letters)) ||
	       (*b && alike(a, b + 1, letters));
}

/* Shorter keys are like too many others. */
#define LETTERS_MIN 3

const char *key_near(const char *key, const char *const *keys)
{
	size_t len = strlen(key);

	for (; len >= LETTERS_MIN && *keys; keys++)
		if (!strncmp(*keys, key, len) ||
		    alike(key, *keys, len < 5 ? 1 : 2))
			return *keys;
	return NULL;
}

int scope_unknown(const struct scope *s, const struct tree *t, const char *what,
		  const char *near)
{
	if (near)
		return scope_misread(s, t, "unknown %s '%s': '%s' may be meant",
				     what, t->key, near);
	if (!s->lenient)
		return scope_misread(s, t, "unknown %s '%s'", what, t->key);
	answer_note_once(s->answer, "%s: unknown %s '%s' is passed over",
			 s->subject.item, what, t->key);
	return 0;
}

int scope_keys(const struct scope *s, const struct tree *t,
	       const char *const *keys)
{
	const struct tree *child;
	int rc = scope_map(s, t);

	if (rc)
		return rc;
	tree_for_each (child, t) {
		if (key_in(child->key, keys))
			continue;
		rc = scope_unknown(s, child, "key",
				   s->lenient ? key_near(child->key, keys)
					      : NULL);
		if (rc)
			return rc;
	}
	return 0;
}

static bool keys_are_numbers(const struct tree *map)
{
	const struct tree *t;

	tree_for_each (t, map)
		if (t->key[strspn(t->key, "0123456789")])
			return false;
	return true;
}

const struct tree *items_next(const struct tree *list, const struct tree *prev)
{
	if (list && list->kind == TREE_MAP && !keys_are_numbers(list))
		return prev ? NULL : list;
	return list_next(list, prev);
}

const struct tree *list_next(const struct tree *list, const struct tree *prev)
{
	const struct list *next;

	if (!list)
		return NULL;
	if (list->kind == TREE_SCALAR)
		return prev || tree_is_null(list) ? NULL : list;
	next = prev ? prev->link.next : list->children.next;
	return next == &list->children
		       ? NULL
		       : container_of(next, const struct tree, link);
}
