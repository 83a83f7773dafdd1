/* SPDX-License-Identifier: BSD-3-Clause */
/* The report for programs: YAML or JSON, which can be read in again. */
#include <stdlib.h>

#include "o2ibcalc_emit.h"
#include "o2ibcalc_report.h"
#include "o2ibcalc_value.h"

static void put_conf(struct emit *e, const char *key,
		     const struct ulnet_o2ib_conf *conf)
{
	char text[INPUT_TEXT_SIZE];

	emit_map(e, key);
	for (unsigned int i = 0; i < inputs(); i++) {
		const struct input *in = input_at(i);

		input_text(in, conf, text);
		if (input_is_number(in, conf))
			emit_number(e, input_name(in), atol(text));
		else
			emit_text(e, input_name(in), text);
	}
	emit_end(e);
}

static void put_value(struct emit *e, const struct value *v,
		      const struct ulnet_o2ib_result *result,
		      enum ulnet_o2ib_side side)
{
	int64_t value = value_of(v, result, side);

	if (value_is_bool(v))
		emit_bool(e, v->name, value != 0);
	else
		emit_number(e, v->name, value);
}

/* Has it got resources? */
static bool has_sides(const struct ulnet_o2ib_result *result)
{
	return result->conn.verdict == LNET_O2IB_CONNECTED ||
	       result->conn.verdict == LNET_O2IB_NO_CQ;
}

static void put_side(struct emit *e, const char *key,
		     const struct ulnet_o2ib_result *result,
		     enum ulnet_o2ib_side side)
{
	const struct value *v;

	emit_map(e, key);
	put_conf(e, "tunables", &result->node[side].conf);
	for (unsigned int i = 0; (v = value_at(i)); i++)
		if (v->group == VALUE_LIMITS || has_sides(result))
			put_value(e, v, result, side);
	emit_end(e);
}

static void put_attempts(struct emit *e, const struct ulnet_o2ib_conn *conn)
{
	emit_list(e, "attempts");
	for (unsigned int i = 0; i < conn->nattempts; i++) {
		const struct ulnet_o2ib_attempt *t = &conn->attempts[i];

		emit_map(e, NULL);
		emit_number(e, "version", t->version);
		emit_number(e, "queue_depth", t->depth);
		emit_number(e, "max_frags", t->frags);
		emit_text(e, "answer", lnet_o2ib_answer_name(t->answer));
		emit_number(e, "limit", t->limit);
		emit_end(e);
	}
	emit_end(e);
}

static void put_note(struct emit *e, const struct ulnet_o2ib_note *n)
{
	static const char *const kinds[] = { "computed", "changed", "warning",
					     "error" };
	char text[VALUE_TEXT_SIZE];

	emit_map(e, NULL);
	emit_text(e, "of",
		  n->side == LNET_O2IB_BOTH ? "both" : side_name(n->side));
	emit_text(e, "kind", kinds[n->kind]);
	emit_text(e, "name", n->name);
	if (n->kind == LNET_O2IB_CHANGED)
		emit_text(e, "before", note_text(n, n->before, text));
	emit_text(e, "value", note_text(n, n->value, text));
	emit_text(e, "rule", n->rule->id);
	emit_text(e, "text", n->rule->text);
	if (*n->how)
		emit_text(e, "how", n->how);
	emit_end(e);
}

static void put_notes(struct emit *e, const char *key,
		      const struct ulnet_o2ib_notes *notes,
		      enum ulnet_o2ib_note_kind from,
		      enum ulnet_o2ib_note_kind to)
{
	emit_list(e, key);
	for (unsigned int i = 0; i < notes->n; i++)
		if (notes->note[i].kind >= from && notes->note[i].kind <= to)
			put_note(e, &notes->note[i]);
	emit_end(e);
}

static void put_conn(struct emit *e, const struct ulnet_o2ib_conn *conn)
{
	emit_bool(e, "connected", conn->verdict == LNET_O2IB_CONNECTED);
	if (conn->verdict != LNET_O2IB_CONNECTED)
		emit_text(e, "reason", lnet_o2ib_verdict_text(conn->verdict));
	emit_number(e, "version", conn->version);
	emit_number(e, "queue_depth", conn->depth);
	emit_number(e, "max_frags", conn->frags);
	emit_number(e, "rejects", conn->rejects);
}

static void put_result(struct emit *e, const struct report *r)
{
	const struct ulnet_o2ib_result *result = &r->result;

	emit_map(e, "result");
	put_conn(e, &result->conn);
	put_attempts(e, &result->conn);
	put_side(e, "a", result, LNET_O2IB_A);
	put_side(e, "b", result, LNET_O2IB_B);
	put_notes(e, "changes", &r->notes, LNET_O2IB_CHANGED,
		  LNET_O2IB_CHANGED);
	put_notes(e, "warnings", &r->notes, LNET_O2IB_WARNING,
		  LNET_O2IB_WARNING);
	put_notes(e, "errors", &r->notes, LNET_O2IB_ERROR, LNET_O2IB_ERROR);
	if (r->explain)
		put_notes(e, "explain", &r->notes, LNET_O2IB_COMPUTED,
			  LNET_O2IB_ERROR);
	emit_end(e);
}

static void put_variant(struct emit *e, const struct variant *variant)
{
	static const char *const sides[] = { "a", "b" };
	const struct value *v;

	emit_map(e, NULL);
	emit_text(e, "value", variant->text);
	put_conn(e, &variant->result.conn);
	for (int side = 0; side < 2 && has_sides(&variant->result); side++) {
		emit_map(e, sides[side]);
		for (unsigned int i = 0; (v = value_at(i)); i++)
			if (v->what_if)
				put_value(e, v, &variant->result,
					  side ? LNET_O2IB_B : LNET_O2IB_A);
		emit_end(e);
	}
	put_notes(e, "warnings", &variant->notes, LNET_O2IB_WARNING,
		  LNET_O2IB_WARNING);
	put_notes(e, "errors", &variant->notes, LNET_O2IB_ERROR,
		  LNET_O2IB_ERROR);
	emit_end(e);
}

static void put_what_ifs(struct emit *e, const struct report *r)
{
	emit_list(e, "what_if");
	for (unsigned int i = 0; i < r->nwhat_ifs; i++) {
		const struct what_if *w = &r->what_ifs[i];
		const char *a = what_if_words(r, w, LNET_O2IB_A);
		const char *b = what_if_words(r, w, LNET_O2IB_B);

		emit_map(e, NULL);
		emit_text(e, "of",
			  w->side == LNET_O2IB_BOTH ? "both"
						    : side_name(w->side));
		emit_text(e, "input", input_name(w->input));
		if (a)
			emit_text(e, "a", a);
		if (b)
			emit_text(e, "b", b);
		emit_list(e, "values");
		for (unsigned int k = 0; k < w->n; k++)
			put_variant(e, &w->values[k]);
		emit_end(e);
		emit_end(e);
	}
	emit_end(e);
}

static void put_negotiated(struct emit *e, const struct report *r)
{
	emit_map(e, "negotiated");
	emit_number(e, "connections", (int64_t)r->negotiated.n);
	emit_bool(e, "as_predicted", !report_differs(r));
	emit_list(e, "differences");
	for (size_t i = 0; i < r->negotiated.n; i++) {
		const struct negotiated *c = &r->negotiated.conns[i];

		if (!report_unexpected(r) && !report_depth_differs(r, c) &&
		    !report_frags_differ(r, c))
			continue;
		emit_map(e, NULL);
		emit_number(e, "line", (int64_t)c->line);
		if (*c->nid)
			emit_text(e, "nid", c->nid);
		if (c->has_depth)
			emit_number(e, "queue_depth", (int64_t)c->depth);
		if (c->has_frags)
			emit_number(e, "max_frags", (int64_t)c->frags);
		emit_end(e);
	}
	emit_end(e);
	emit_end(e);
}

void report_emit(const struct report *r, bool json, FILE *out)
{
	struct emit e;

	emit_begin(&e, out, json);
	put_conf(&e, "a", &r->pair.node[LNET_O2IB_A]);
	put_conf(&e, "b", &r->pair.node[LNET_O2IB_B]);
	emit_text(&e, "initiator", side_name(r->pair.initiator));
	emit_number(&e, "npeers", r->pair.npeers);
	put_result(&e, r);
	if (r->nwhat_ifs)
		put_what_ifs(&e, r);
	if (r->negotiated_file)
		put_negotiated(&e, r);
	emit_end(&e);
}
