/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/yaml/answer.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

const struct tree_limits request_limits = { REQUEST_MAX, 100000,
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

/* The part of the answer that *@part_p is, made if there is none yet. */
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
