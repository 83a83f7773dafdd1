/* SPDX-License-Identifier: BSD-3-Clause */
/* The report for programs: YAML or JSON, which can be read in again. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "o2ibcalc.h"
#include "config/yaml/tree.h"

/* ---- values ---- */

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

static void emit_text(struct tree *t, const char *key, const char *text)
{
	tree_text(t, key, is_word(text) ? TREE_PLAIN : TREE_DOUBLE, text);
}

static void emit_bool(struct tree *t, const char *key, bool value)
{
	tree_text(t, key, TREE_PLAIN, value ? "true" : "false");
}

/* ---- the report ---- */

static void put_conf(struct tree *parent, const char *key,
		     const struct ulnet_o2ib_conf *conf)
{
	struct tree *t = tree_map(parent, key);
	char text[INPUT_TEXT_SIZE];

	for (const struct input *in = inputs; in->name; in++) {
		input_text(in, conf, text);
		if (input_is_number(in, conf))
			tree_int(t, in->name, atol(text));
		else
			emit_text(t, in->name, text);
	}
}

static void put_value(struct tree *t, const struct value *v,
		      const struct ulnet_o2ib_result *result,
		      enum ulnet_o2ib_side side)
{
	int64_t value = value_of(v, result, side);

	if (value_is_bool(v))
		emit_bool(t, v->name, value != 0);
	else
		tree_int(t, v->name, value);
}

/* Has it got resources? */
static bool has_sides(const struct ulnet_o2ib_result *result)
{
	return result->conn.verdict == LNET_O2IB_CONNECTED ||
	       result->conn.verdict == LNET_O2IB_NO_CQ;
}

static void put_side(struct tree *parent, const char *key,
		     const struct ulnet_o2ib_result *result,
		     enum ulnet_o2ib_side side)
{
	struct tree *t = tree_map(parent, key);
	const struct value *v;

	put_conf(t, "tunables", &result->node[side].conf);
	for (v = result_values; v->name; v++)
		if (v->group == VALUE_LIMITS || has_sides(result))
			put_value(t, v, result, side);
}

static void put_attempts(struct tree *parent,
			 const struct ulnet_o2ib_conn *conn)
{
	struct tree *list = tree_seq(parent, "attempts");

	for (unsigned int i = 0; i < conn->nattempts; i++) {
		const struct ulnet_o2ib_attempt *a = &conn->attempts[i];
		struct tree *t = tree_map(list, NULL);

		tree_int(t, "version", a->version);
		tree_int(t, "queue_depth", a->depth);
		tree_int(t, "max_frags", a->frags);
		emit_text(t, "answer", lnet_o2ib_answer_name(a->answer));
		tree_int(t, "limit", a->limit);
	}
}

static void put_note(struct tree *list, const struct ulnet_o2ib_note *n)
{
	static const char *const kinds[] = { "computed", "changed", "warning",
					     "error" };
	struct tree *t = tree_map(list, NULL);
	char text[VALUE_TEXT_SIZE];

	emit_text(t, "of",
		  n->side == LNET_O2IB_BOTH ? "both" : side_name(n->side));
	emit_text(t, "kind", kinds[n->kind]);
	emit_text(t, "name", n->name);
	if (n->kind == LNET_O2IB_CHANGED)
		emit_text(t, "before", note_text(n, n->before, text));
	emit_text(t, "value", note_text(n, n->value, text));
	emit_text(t, "rule", n->rule->id);
	emit_text(t, "text", n->rule->text);
	if (*n->how)
		emit_text(t, "how", n->how);
}

static void put_notes(struct tree *parent, const char *key,
		      const struct ulnet_o2ib_notes *notes,
		      enum ulnet_o2ib_note_kind from,
		      enum ulnet_o2ib_note_kind to)
{
	struct tree *list = tree_seq(parent, key);

	for (unsigned int i = 0; i < notes->n; i++)
		if (notes->note[i].kind >= from && notes->note[i].kind <= to)
			put_note(list, &notes->note[i]);
}

static void put_conn(struct tree *t, const struct ulnet_o2ib_conn *conn)
{
	emit_bool(t, "connected", conn->verdict == LNET_O2IB_CONNECTED);
	if (conn->verdict != LNET_O2IB_CONNECTED)
		emit_text(t, "reason", lnet_o2ib_verdict_text(conn->verdict));
	tree_int(t, "version", conn->version);
	tree_int(t, "queue_depth", conn->depth);
	tree_int(t, "max_frags", conn->frags);
	tree_int(t, "rejects", conn->rejects);
}

static void put_result(struct tree *parent, const struct report *r)
{
	const struct ulnet_o2ib_result *result = &r->result;
	struct tree *t = tree_map(parent, "result");

	put_conn(t, &result->conn);
	put_attempts(t, &result->conn);
	put_side(t, "a", result, LNET_O2IB_A);
	put_side(t, "b", result, LNET_O2IB_B);
	put_notes(t, "changes", &r->notes, LNET_O2IB_CHANGED,
		  LNET_O2IB_CHANGED);
	put_notes(t, "warnings", &r->notes, LNET_O2IB_WARNING,
		  LNET_O2IB_WARNING);
	put_notes(t, "errors", &r->notes, LNET_O2IB_ERROR, LNET_O2IB_ERROR);
	if (r->explain)
		put_notes(t, "explain", &r->notes, LNET_O2IB_COMPUTED,
			  LNET_O2IB_ERROR);
}

static void put_variant(struct tree *list, const struct variant *variant)
{
	static const char *const sides[] = { "a", "b" };
	struct tree *t = tree_map(list, NULL), *side_t;
	const struct value *v;

	emit_text(t, "value", variant->text);
	put_conn(t, &variant->result.conn);
	for (int side = 0; side < 2 && has_sides(&variant->result); side++) {
		side_t = tree_map(t, sides[side]);
		for (v = result_values; v->name; v++)
			if (v->what_if)
				put_value(side_t, v, &variant->result,
					  side ? LNET_O2IB_B : LNET_O2IB_A);
	}
	put_notes(t, "warnings", &variant->notes, LNET_O2IB_WARNING,
		  LNET_O2IB_WARNING);
	put_notes(t, "errors", &variant->notes, LNET_O2IB_ERROR,
		  LNET_O2IB_ERROR);
}

static void put_what_ifs(struct tree *parent, const struct report *r)
{
	struct tree *list = tree_seq(parent, "what_if"), *values;

	for (unsigned int i = 0; i < r->nwhat_ifs; i++) {
		const struct what_if *w = &r->what_ifs[i];
		const char *a = what_if_words(r, w, LNET_O2IB_A);
		const char *b = what_if_words(r, w, LNET_O2IB_B);
		struct tree *t = tree_map(list, NULL);

		emit_text(t, "of",
			  w->side == LNET_O2IB_BOTH ? "both"
						    : side_name(w->side));
		emit_text(t, "input", w->input->name);
		if (a)
			emit_text(t, "a", a);
		if (b)
			emit_text(t, "b", b);
		values = tree_seq(t, "values");
		for (unsigned int k = 0; k < w->n; k++)
			put_variant(values, &w->values[k]);
	}
}

static void put_negotiated(struct tree *parent, const struct report *r)
{
	struct tree *t = tree_map(parent, "negotiated"), *list;

	tree_int(t, "connections", (int64_t)r->negotiated.n);
	emit_bool(t, "as_predicted", !report_differs(r));
	list = tree_seq(t, "differences");
	for (size_t i = 0; i < r->negotiated.n; i++) {
		const struct negotiated *c = &r->negotiated.conns[i];

		if (!report_unexpected(r) && !report_depth_differs(r, c) &&
		    !report_frags_differ(r, c))
			continue;
		t = tree_map(list, NULL);
		tree_int(t, "line", (int64_t)c->line);
		if (*c->nid)
			emit_text(t, "nid", c->nid);
		if (c->has_depth)
			tree_int(t, "queue_depth", (int64_t)c->depth);
		if (c->has_frags)
			tree_int(t, "max_frags", (int64_t)c->frags);
	}
}

/* ---- JSON ---- */

/* Bytes that are no ASCII come from the user: each becomes a character of this
 * number. */
static void put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < ' ' || c > '~')
			fprintf(out, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static bool is_quoted(const struct tree *t)
{
	return t->form != TREE_PLAIN ||
	       (isalpha((unsigned char)*t->text) &&
		strcmp(t->text, "true") != 0 && strcmp(t->text, "false") != 0);
}

static void put_json(const struct tree *t, FILE *out)
{
	const char *between = "";
	const struct tree *child;

	if (t->kind == TREE_SCALAR && is_quoted(t))
		put_quoted(out, t->text);
	else if (t->kind == TREE_SCALAR)
		fputs(t->text, out);
	if (t->kind == TREE_SCALAR)
		return;
	fputc(t->kind == TREE_MAP ? '{' : '[', out);
	tree_for_each (child, t) {
		fputs(between, out);
		between = ", ";
		if (child->key)
			fprintf(out, "\"%s\": ", child->key);
		put_json(child, out);
	}
	fputc(t->kind == TREE_MAP ? '}' : ']', out);
}

/* ---- all of it ---- */

int report_emit(const struct report *r, bool json, FILE *out)
{
	static const struct tree_style style = { 4, 4, 4 };
	struct doc *doc = doc_new();
	struct tree *t;
	int rc;

	if (!doc)
		return -ENOMEM;
	t = doc_set_root(doc, TREE_MAP, TREE_PLAIN, NULL);
	put_conf(t, "a", &r->pair.node[LNET_O2IB_A]);
	put_conf(t, "b", &r->pair.node[LNET_O2IB_B]);
	emit_text(t, "initiator", side_name(r->pair.initiator));
	tree_int(t, "npeers", r->pair.npeers);
	put_result(t, r);
	if (r->nwhat_ifs)
		put_what_ifs(t, r);
	if (r->negotiated_file)
		put_negotiated(t, r);
	rc = doc_failed(doc) ? -ENOMEM : 0;
	if (!rc && json) {
		put_json(t, out);
		fputc('\n', out);
	} else if (!rc) {
		tree_emit(t, &style, out);
	}
	doc_free(doc);
	return rc;
}
