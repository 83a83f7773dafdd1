/* SPDX-License-Identifier: BSD-3-Clause */
/* Tree to text, in the indentation and with the quotes that scripts know from
 * the kernel's lnetctl. */
#include "config/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ulnet/control.h"

const struct tree_style tree_wide = { 6, 0, 6 };
const struct tree_style tree_middle = { 4, 4, 2 };
const struct tree_style tree_narrow = { 2, 0, 2 };

/* ---- scalars ---- */

/* Does @text say the same without quotes, whatever stands around it? Narrower
 * than YAML. */
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

/* The code point at @s, of *len bytes; *len 0: none. */
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

int tree_emit_quoted(const char *text, FILE *out)
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

int lnet_ctl_quote(const char *text, char **quoted_p)
{
	char *quoted = NULL;
	size_t size;
	FILE *f = open_memstream(&quoted, &size);
	int rc;

	if (!f)
		return -ENOMEM;
	rc = tree_emit_quoted(text, f);
	if (ferror(f))
		rc = -ENOMEM;
	if (fclose(f) && !rc)
		rc = -ENOMEM;
	if (rc)
		free(quoted);
	else
		*quoted_p = quoted;
	return rc;
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

/* @text came from libyaml, which takes UTF-8 only, or is ours. */
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

/* What stands on the line of its key: scalars, and what is empty. */
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

/* A pair whose key is written at column @at, which the output has reached
 * already. */
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

/* A collection that is not empty; the line is at column @at. */
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
