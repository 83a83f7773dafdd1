/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers as users see them: in the three styles of the kernel's lnetctl. */
#include <errno.h>
#include <string.h>

#include "config/control.h"
#include "config/scope.h"

/* The style follows from the top key. */
static const struct tree_style *output_style(const char *key)
{
	static const char *const wide[] = { "net",
					    "peer",
					    "peer list",
					    "route",
					    "fault",
					    "path",
					    "Local NI recovery",
					    "Peer NI recovery",
					    NULL };
	static const char *const narrow[] = { "ping", "discover", "cpt-of-nid",
					      NULL };

	if (key_in(key, wide))
		return &tree_wide;
	return key_in(key, narrow) ? &tree_narrow : &tree_middle;
}

static const struct tree_style *error_style(const struct tree *error)
{
	const struct tree *item = list_next(error, NULL), *first;

	if (!strcmp(error->key, "manage"))
		return &tree_narrow;
	first = item ? list_next(item, NULL) : NULL;
	return first && first->kind == TREE_MAP ? &tree_middle : &tree_wide;
}

static void print_output(const struct tree *output, FILE *out)
{
	const struct tree *t = NULL;

	while (output && (t = list_next(output, t)))
		if (t->key && !strcmp(t->key, "text") && tree_is_text(t))
			fputs(t->text, out); /* no YAML: printed as it is */
		else if (t->key)
			tree_emit_pair(t, output_style(t->key), out);
}

static void print_errors(const struct tree *errors, FILE *err)
{
	const struct tree *t = NULL;

	while (errors && (t = list_next(errors, t))) {
		const struct tree_style *style;

		if (!t->key)
			continue;
		style = error_style(t);
		if (style == &tree_wide)
			fputs("---\n", err);
		tree_emit_pair(t, style, err);
		if (style == &tree_wide)
			fputs("...\n", err);
	}
}

static void print_notes(const struct tree *notes, FILE *err)
{
	const struct tree *t = NULL;

	while (notes && (t = list_next(notes, t))) {
		fputs("# ", err);
		/* Prints one line, whatever the text contains. */
		for (const char *c = t->text; *c; c++)
			fputc((unsigned char)*c < ' ' ? '?' : *c, err);
		fputc('\n', err);
	}
}

int lnet_ctl_print(const char *answer, FILE *out, FILE *err, int *status_p)
{
	struct tree_error why;
	struct doc *doc;
	const struct tree *root, *status;
	int64_t value;
	int rc = tree_parse(answer, strlen(answer), &answer_limits, &doc, &why);

	if (rc)
		return rc == -ENOMEM ? rc : -EINVAL;
	root = doc_root(doc);
	status = tree_get(root, "status");
	if (!status || !tree_number(status, &value) || value > 0 ||
	    value < INT32_MIN) {
		doc_free(doc);
		return -EINVAL;
	}
	if (out) {
		print_output(tree_get(root, "output"), out);
		rc = fflush(out) ? -EIO : 0;
	}
	if (err) {
		print_errors(tree_get(root, "error"), err);
		print_notes(tree_get(root, "notes"), err);
		rc = fflush(err) ? -EIO : rc;
	}
	if (!rc && status_p)
		*status_p = (int)value;
	doc_free(doc);
	return rc;
}
