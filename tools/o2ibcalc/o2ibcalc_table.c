/* SPDX-License-Identifier: BSD-3-Clause */
/* The report for people. */
#include <inttypes.h>
#include <string.h>

#include "o2ibcalc.h"

#define NAME_WIDTH  20
#define VALUE_WIDTH 14
#define WHAT_WIDTH  12

static const struct ulnet_o2ib_note *changed(const struct report *r,
					     enum ulnet_o2ib_side side,
					     const char *name)
{
	const struct ulnet_o2ib_note *note;

	for (unsigned int i = 0; i < r->notes.n; i++) {
		note = &r->notes.note[i];
		if (note->kind == LNET_O2IB_CHANGED && note->side == side &&
		    strcmp(note->name, name) == 0)
			return note;
	}
	return NULL;
}

static void row(FILE *out, const char *name, const char *a, const char *b,
		const char *words)
{
	/* Releases of kernels may be long. */
	fprintf(out, "  %-*s%*.*s%*.*s", NAME_WIDTH, name, VALUE_WIDTH,
		VALUE_WIDTH - 1, a, VALUE_WIDTH, VALUE_WIDTH - 1, b);
	fprintf(out, *words ? "   %s\n" : "%s\n", words);
}

/* ---- tunables ---- */

/* As adjusted, with a star if that is not what was configured. */
static char *tunable_text(const struct report *r, const struct input *in,
			  enum ulnet_o2ib_side side, char buf[INPUT_TEXT_SIZE])
{
	size_t length;

	input_text(in, &r->result.node[side].conf, buf);
	length = strlen(buf);
	if (changed(r, side, in->name) && length + 1 < INPUT_TEXT_SIZE)
		memcpy(buf + length, "*", 2);
	return buf;
}

/* Only when somebody has said something about it. */
static bool is_shown(const struct report *r, const char *name)
{
	const struct ulnet_o2ib_conf *a = &r->result.node[0].conf;
	const struct ulnet_o2ib_conf *b = &r->result.node[1].conf;
	bool user = a->model == LNET_O2IB_USER || b->model == LNET_O2IB_USER;

	if (strcmp(name, "max_writes") == 0 || strcmp(name, "pieces") == 0)
		return user;
	if (strcmp(name, "version") == 0)
		return a->version == 1 || b->version == 1;
	return true;
}

static void put_tunables(const struct report *r, FILE *out)
{
	char a[INPUT_TEXT_SIZE], b[INPUT_TEXT_SIZE];

	fprintf(out, "%-*s%*s%*s\n", NAME_WIDTH + 2, "Tunables, as adjusted",
		VALUE_WIDTH, "A", VALUE_WIDTH, "B");
	for (const struct input *in = inputs; in->name; in++) {
		if (is_shown(r, in->name))
			row(out, in->name, tunable_text(r, in, 0, a),
			    tunable_text(r, in, 1, b), "");
	}
}

static void put_changes(const struct report *r, FILE *out)
{
	char before[VALUE_TEXT_SIZE], now[VALUE_TEXT_SIZE];
	bool any = false;

	for (unsigned int i = 0; i < r->notes.n; i++) {
		const struct ulnet_o2ib_note *n = &r->notes.note[i];

		if (n->kind != LNET_O2IB_CHANGED || !input_find(n->name) ||
		    n->side == LNET_O2IB_BOTH)
			continue;
		fprintf(out, "%s  * %s: %s %s becomes %s: %s\n",
			any ? "" : "\n", side_name(n->side), n->name,
			note_text(n, n->before, before),
			note_text(n, n->value, now), n->rule->text);
		any = true;
	}
}

/* Work requests that are granted are of interest when they are fewer. */
static bool is_granted(const struct report *r, const struct value *v)
{
	const struct ulnet_o2ib_resources *res = r->result.res;

	return strcmp(v->name, "max_send_wr_granted") == 0 &&
	       res[0].max_send_wr == res[0].max_send_wr_granted &&
	       res[1].max_send_wr == res[1].max_send_wr_granted;
}

static void put_group(const struct report *r, enum value_group group,
		      const char *title, FILE *out)
{
	const struct value *v;
	char text[2][VALUE_TEXT_SIZE];

	fprintf(out, "\n%-*s%*s%*s\n", NAME_WIDTH + 2, title, VALUE_WIDTH, "A",
		VALUE_WIDTH, "B");
	for (v = result_values; v->name; v++) {
		if (v->group != group || is_granted(r, v))
			continue;
		for (int side = 0; side < 2; side++) {
			int64_t value =
				value_of(v, &r->result,
					 side ? LNET_O2IB_B : LNET_O2IB_A);

			if (value_is_bool(v))
				snprintf(text[side], VALUE_TEXT_SIZE, "%s",
					 value ? "yes" : "no");
			else
				snprintf(text[side], VALUE_TEXT_SIZE,
					 "%" PRId64, value);
		}
		row(out, v->name, text[0], text[1], v->words);
	}
}

/* ---- the connection ---- */

static void put_attempt(const struct ulnet_o2ib_attempt *t, unsigned int n,
			FILE *out)
{
	fprintf(out, "  %u. depth %u, %u fragments", n, t->depth, t->frags);
	switch (t->answer) {
	case LNET_O2IB_ACCEPTED:
		fprintf(out, ": accepted");
		if (t->limit != t->depth)
			fprintf(out, ", with depth %u for the device's sake",
				t->limit);
		break;
	case LNET_O2IB_QUEUE_SIZE:
		fprintf(out, ": rejected, depth %u at most", t->limit);
		break;
	case LNET_O2IB_FRAGS:
		fprintf(out, ": rejected, %u fragments %s", t->limit,
			t->frags > t->limit ? "at most" : "or nothing");
		break;
	case LNET_O2IB_UNCOMPAT:
		fprintf(out, ": rejected, version 1 only");
		break;
	default:
		fprintf(out, ": rejected for good");
	}
	fputc('\n', out);
}

static void put_conn(const struct report *r, FILE *out)
{
	const struct ulnet_o2ib_conn *c = &r->result.conn;

	if (c->nattempts)
		fprintf(out, "\n%s asks %s for a connection\n",
			side_name(c->initiator),
			side_name(c->initiator == LNET_O2IB_A ? LNET_O2IB_B
							      : LNET_O2IB_A));
	for (unsigned int i = 0; i < c->nattempts; i++)
		put_attempt(&c->attempts[i], i + 1, out);
	if (c->verdict == LNET_O2IB_CONNECTED)
		fprintf(out, "\nConnected: queue depth %u, %u fragments\n",
			c->depth, c->frags);
	else
		fprintf(out, "\nNo connection: %s\n",
			lnet_o2ib_verdict_text(c->verdict));
}

static void put_resources(const struct report *r, FILE *out)
{
	char title[64];

	put_group(r, VALUE_CONN, "One connection", out);
	put_group(r, VALUE_PEER, "One pair of NIs", out);
	snprintf(title, sizeof(title), "Node, %u peer%s", r->pair.npeers,
		 r->pair.npeers == 1 ? "" : "s");
	put_group(r, VALUE_NODE, title, out);
}

static void put_problem(const struct ulnet_o2ib_note *n, FILE *out)
{
	fprintf(out, "%s: %s: %s: ",
		n->kind == LNET_O2IB_ERROR ? "error" : "warning",
		side_name(n->side), n->name);
	if (*n->how && n->side != LNET_O2IB_BOTH)
		fprintf(out, "%s: ", n->how);
	fprintf(out, "%s\n", n->rule->text);
}

static void put_problems(const struct report *r, FILE *out)
{
	bool any = false;

	for (unsigned int i = 0; i < r->notes.n; i++) {
		const struct ulnet_o2ib_note *n = &r->notes.note[i];

		if (n->kind < LNET_O2IB_WARNING)
			continue;
		if (!any)
			fputc('\n', out);
		any = true;
		put_problem(n, out);
	}
}

/* ---- why ---- */

static void put_why(const struct ulnet_o2ib_note *n, FILE *out)
{
	char before[VALUE_TEXT_SIZE], now[VALUE_TEXT_SIZE];

	fprintf(out, "  %-7s  %s = %s", side_name(n->side), n->name,
		note_text(n, n->value, now));
	if (n->kind == LNET_O2IB_CHANGED)
		fprintf(out, ", not %s", note_text(n, n->before, before));
	if (*n->how && strcmp(n->how, now) != 0)
		fprintf(out, " (%s)", n->how);
	fprintf(out, "\n           %s [%s]\n", n->rule->text, n->rule->id);
}

static void put_whys(const struct report *r, FILE *out)
{
	fprintf(out, "\nWhy, in the order of calculation\n");
	for (unsigned int i = 0; i < r->notes.n; i++)
		put_why(&r->notes.note[i], out);
}

/* ---- what if ---- */

/* @v NULL: of the connection. */
static int64_t line_value(const struct ulnet_o2ib_result *result,
			  const char *name, const struct value *v,
			  enum ulnet_o2ib_side side)
{
	if (v)
		return value_of(v, result, side);
	if (*name == 'q')
		return result->conn.depth;
	return *name == 'm' ? result->conn.frags : result->conn.rejects;
}

static void put_line(const struct report *r, const struct what_if *w,
		     const char *name, const struct value *v,
		     enum ulnet_o2ib_side side, FILE *out)
{
	fprintf(out, "  %-*s%*" PRId64, NAME_WIDTH + 2, name, WHAT_WIDTH,
		line_value(&r->result, name, v, side));
	for (unsigned int i = 0; i < w->n; i++)
		fprintf(out, "%*" PRId64, WHAT_WIDTH,
			line_value(&w->values[i].result, name, v, side));
	fputc('\n', out);
}

static bool same_for_both(const struct report *r, const struct what_if *w,
			  const struct value *v)
{
	bool same = value_of(v, &r->result, LNET_O2IB_A) ==
		    value_of(v, &r->result, LNET_O2IB_B);

	for (unsigned int i = 0; i < w->n; i++)
		same &= value_of(v, &w->values[i].result, LNET_O2IB_A) ==
			value_of(v, &w->values[i].result, LNET_O2IB_B);
	return same;
}

static void put_values(const struct report *r, const struct what_if *w,
		       FILE *out)
{
	const struct value *v;
	char name[64];

	for (v = result_values; v->name; v++) {
		if (!v->what_if)
			continue;
		if (same_for_both(r, w, v)) {
			put_line(r, w, v->name, v, LNET_O2IB_A, out);
			continue;
		}
		for (int side = 0; side < 2; side++) {
			snprintf(name, sizeof(name), "%s: %s", side ? "B" : "A",
				 v->name);
			put_line(r, w, name, v,
				 side ? LNET_O2IB_B : LNET_O2IB_A, out);
		}
	}
}

static void put_words(const struct report *r, const struct what_if *w,
		      FILE *out)
{
	const char *a = what_if_words(r, w, LNET_O2IB_A);
	const char *b = what_if_words(r, w, LNET_O2IB_B);

	if (a && b && strcmp(a, b) == 0) {
		fprintf(out, "  A and B: %s.\n", a);
		return;
	}
	if (a)
		fprintf(out, "  A: %s.\n", a);
	if (b)
		fprintf(out, "  B: %s.\n", b);
}

/* More may be posted than there are credits for. */
static void put_beyond(const struct report *r, const struct what_if *w,
		       const struct variant *v, FILE *out)
{
	const struct ulnet_o2ib_conn *c = &v->result.conn;

	(void)r;
	if (strcmp(w->input->name, "concurrent_sends") != 0 ||
	    c->verdict != LNET_O2IB_CONNECTED)
		return;
	for (int i = 0; i < 2; i++) {
		if ((w->side != LNET_O2IB_BOTH && (int)w->side != i) ||
		    v->result.res[i].posted_max <= c->depth)
			continue;
		fprintf(out,
			"  %s: warning: %s: concurrent_sends %u is above the "
			"depth %u: credits are the limit, not sends\n",
			v->text, i ? "B" : "A", v->result.res[i].posted_max,
			c->depth);
	}
}

static void put_what_if(const struct report *r, const struct what_if *w,
			FILE *out)
{
	const struct variant *v;
	char title[64];

	snprintf(title, sizeof(title), "What if %s", w->input->name);
	fprintf(out, "\n%s of %s were\n", title, side_name(w->side));
	fprintf(out, "%-*s%*s", NAME_WIDTH + 4, "", WHAT_WIDTH, "now");
	for (unsigned int i = 0; i < w->n; i++)
		fprintf(out, "%*s", WHAT_WIDTH, w->values[i].text);
	fprintf(out, "\n  %-*s%*s", NAME_WIDTH + 2, "connected", WHAT_WIDTH,
		r->result.conn.verdict == LNET_O2IB_CONNECTED ? "yes" : "no");
	for (unsigned int i = 0; i < w->n; i++)
		fprintf(out, "%*s", WHAT_WIDTH,
			w->values[i].result.conn.verdict == LNET_O2IB_CONNECTED
				? "yes"
				: "no");
	fputc('\n', out);
	put_line(r, w, "queue_depth", NULL, LNET_O2IB_A, out);
	put_line(r, w, "max_frags", NULL, LNET_O2IB_A, out);
	put_line(r, w, "rejects", NULL, LNET_O2IB_A, out);
	put_values(r, w, out);
	put_words(r, w, out);
	for (unsigned int i = 0; i < w->n; i++) {
		v = &w->values[i];
		put_beyond(r, w, v, out);
		for (unsigned int k = 0; k < v->notes.n; k++) {
			if (!what_if_is_new(r, &v->notes.note[k]))
				continue;
			fprintf(out, "  %s: ", v->text);
			put_problem(&v->notes.note[k], out);
		}
	}
}

/* ---- what was negotiated ---- */

static void put_negotiated(const struct report *r, FILE *out)
{
	const struct ulnet_o2ib_conn *conn = &r->result.conn;

	if (!report_differs(r)) {
		fprintf(out, "\n%s: as predicted: %zu connection%s\n",
			r->negotiated_file, r->negotiated.n,
			r->negotiated.n == 1 ? "" : "s");
		return;
	}
	fputc('\n', out);
	for (size_t i = 0; i < r->negotiated.n; i++) {
		const struct negotiated *c = &r->negotiated.conns[i];
		const char *gap = *c->nid ? ": " : "";

		if (report_unexpected(r)) {
			fprintf(out,
				"%s:%lu: %s%sconnected; no connection was "
				"predicted\n",
				r->negotiated_file, c->line, c->nid, gap);
			continue;
		}
		if (report_depth_differs(r, c))
			fprintf(out,
				"%s:%lu: %s%squeue_depth is %ju; %u was "
				"predicted\n",
				r->negotiated_file, c->line, c->nid, gap,
				(uintmax_t)c->depth, conn->depth);
		if (report_frags_differ(r, c))
			fprintf(out,
				"%s:%lu: %s%smax_frags is %ju; %u was "
				"predicted\n",
				r->negotiated_file, c->line, c->nid, gap,
				(uintmax_t)c->frags, conn->frags);
	}
}

void report_table(const struct report *r, FILE *out)
{
	enum ulnet_o2ib_verdict verdict = r->result.conn.verdict;

	put_tunables(r, out);
	put_changes(r, out);
	put_group(r, VALUE_LIMITS, "Limits", out);
	put_conn(r, out);
	if (verdict == LNET_O2IB_CONNECTED || verdict == LNET_O2IB_NO_CQ)
		put_resources(r, out);
	put_problems(r, out);
	for (unsigned int i = 0; i < r->nwhat_ifs; i++)
		put_what_if(r, &r->what_ifs[i], out);
	if (r->explain)
		put_whys(r, out);
	if (r->negotiated_file)
		put_negotiated(r, out);
}
