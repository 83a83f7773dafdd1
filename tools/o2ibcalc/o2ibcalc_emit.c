/* SPDX-License-Identifier: BSD-3-Clause */
#include "o2ibcalc_emit.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define INDENT 4

/* What YAML takes for something else than a text. */
static bool is_word(const char *text)
{
	static const char *const others[] = { "yes", "no",  "true", "false",
					      "on",  "off", "null", "y",
					      "n",   "Y",   "N" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(text, others[i]) == 0)
			return false;
	return isalpha((unsigned char)*text) &&
	       text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789._-")] == 0;
}

/* A string of JSON is one of YAML, too. Bytes that are no ASCII come from the
 * user: each becomes a character of this number. */
static void put_quoted(struct emit *e, const char *text)
{
	fputc('"', e->out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < ' ' || c > '~')
			fprintf(e->out, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			fprintf(e->out, "\\%c", c);
		else
			fputc(c, e->out);
	}
	fputc('"', e->out);
}

static void put_text(struct emit *e, const char *text)
{
	if (!e->json && is_word(text))
		fputs(text, e->out);
	else
		put_quoted(e, text);
}

/* All that stands before a value. */
static void put_key(struct emit *e, const char *key)
{
	unsigned int level = e->depth - 1;
	bool *begun = &e->begun[level];

	if (e->json) {
		if (*begun)
			fputs(", ", e->out);
		if (key)
			fprintf(e->out, "\"%s\": ", key);
		*begun = true;
		return;
	}
	/* The first line of a list, or of its item that is a mapping. */
	if (e->list[level] && !*begun)
		fputc('\n', e->out);
	if (e->dashes && !e->list[level])
		fprintf(e->out, "%*s%-*s", (int)((level - 1) * INDENT), "",
			INDENT, "-");
	else if (e->list[level])
		fprintf(e->out, "%*s- ", (int)(level * INDENT), "");
	else
		fprintf(e->out, "%*s", (int)(level * INDENT), "");
	e->dashes = 0;
	if (key)
		fprintf(e->out, "%s:", key);
	*begun = true;
}

static void go_down(struct emit *e, bool list)
{
	e->list[e->depth] = list;
	e->begun[e->depth] = false;
	e->depth++;
}

void emit_begin(struct emit *e, FILE *out, bool json)
{
	*e = (struct emit){ .out = out, .json = json };
	go_down(e, false);
	if (json)
		fputc('{', out);
}

void emit_map(struct emit *e, const char *key)
{
	if (e->json) {
		put_key(e, key);
		fputc('{', e->out);
	} else if (key) {
		put_key(e, key);
		fputc('\n', e->out);
	} else {
		/* Its first line has the dash. */
		if (!e->begun[e->depth - 1])
			fputc('\n', e->out);
		e->begun[e->depth - 1] = true;
		e->dashes = 1;
	}
	go_down(e, false);
}

void emit_list(struct emit *e, const char *key)
{
	put_key(e, key);
	if (e->json)
		fputc('[', e->out);
	go_down(e, true);
}

void emit_end(struct emit *e)
{
	unsigned int level = --e->depth;

	if (e->json)
		fputc(e->list[level] ? ']' : '}', e->out);
	else if (e->list[level] && !e->begun[level])
		fputs(" []\n", e->out);
	if (e->json && !level)
		fputc('\n', e->out);
}

static void put_gap(struct emit *e, const char *key)
{
	if (!e->json && key)
		fputc(' ', e->out);
}

static void put_end(struct emit *e)
{
	if (!e->json)
		fputc('\n', e->out);
}

void emit_number(struct emit *e, const char *key, int64_t value)
{
	put_key(e, key);
	put_gap(e, key);
	fprintf(e->out, "%" PRId64, value);
	put_end(e);
}

void emit_bool(struct emit *e, const char *key, bool value)
{
	put_key(e, key);
	put_gap(e, key);
	fputs(value ? "true" : "false", e->out);
	put_end(e);
}

void emit_text(struct emit *e, const char *key, const char *text)
{
	put_key(e, key);
	put_gap(e, key);
	put_text(e, text);
	put_end(e);
}
