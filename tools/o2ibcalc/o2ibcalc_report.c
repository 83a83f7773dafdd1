/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints what was calculated: as a table for people, or for programs as JSON or
 * as YAML, which o2ibcalc can read again.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "config/yaml/tree.h"
#include "o2ibcalc.h"

/* ---- the values that are calculated ---- */

enum value_group {
	VALUE_BOTH,   /* values of the connection, the same at both sides */
	VALUE_LIMITS, /* values of a node, before it is connected */
	VALUE_CONN,   /* values of a node's side of the connection */
	/* values of all connections of a node to the other node */
	VALUE_PEER,
	VALUE_NODE, /* values of a node with all its peers */
};

/* A field of struct ulnet_o2ib_result: @offset is that of side A, and the one
 * of side B follows @stride bytes later. */
struct value {
	const char *name;
	enum value_group group;
	const char *words; /* a description of the value, for people */
	bool what_if;	   /* it is shown in the answer to --what-if */
	size_t offset, stride, size;
};

#define VALUE_TEXT_SIZE 32

/* clang-format off */
#define VALUE(name, group, what_if, words, field, stride)                    \
	{ name, VALUE_##group, words, what_if,                               \
	  offsetof(struct ulnet_o2ib_result, field), stride,                 \
	  sizeof(((struct ulnet_o2ib_result *)0)->field) }
#define NODE(name, words)                                                    \
	VALUE(#name, LIMITS, false, words, node[0].name,                     \
	      sizeof(struct ulnet_o2ib_node))
#define RES(group, name, what_if, words)                                     \
	VALUE(#name, group, what_if, words, res[0].name,                     \
	      sizeof(struct ulnet_o2ib_resources))

/* All values; the last entry has no name. */
static const struct value result_values[] = {
	VALUE("queue_depth", BOTH, true, "", conn.depth, 0),
	VALUE("max_frags", BOTH, true, "", conn.frags, 0),
	VALUE("rejects", BOTH, true, "", conn.rejects, 0),
	NODE(starts, "the NI starts"),
	NODE(pools, "pools of memory regions"),
	NODE(wrs_extra, "work requests to register"),
	NODE(depth_max, "deepest queue"),
	NODE(frags_offered, "fragments, if it asks"),
	NODE(frags_accepted, "fragments, if it is asked"),
	VALUE("hiw", CONN, true, "credits owed that are returned at once",
	      conn.hiw[0], sizeof(uint32_t)),
	VALUE("concurrent_sends", CONN, true, "on this connection",
	      conn.concurrent_sends[0], sizeof(uint32_t)),
	RES(CONN, max_recv_wr, true, "messages that can come, posted"),
	RES(CONN, rx_bytes, true, "their memory"),
	RES(CONN, rx_pages, false, "the same in pages"),
	RES(CONN, max_send_wr, true, "work requests of the send queue"),
	RES(CONN, max_send_wr_granted, false, "that the device grants"),
	RES(CONN, cq_entries, true, "entries of the completion queue"),
	RES(CONN, posted_max, true, "messages sent, not completed, at most"),
	RES(CONN, bulk_wrs, false, "work requests of a bulk message"),
	RES(CONN, typical_wrs, true, "in use: all posted are bulk"),
	RES(CONN, worst_wrs, true, "in use: all fragments of all"),
	RES(CONN, worst_percent, false, "... in percent of max_send_wr"),
	RES(CONN, wire_messages, false, "messages on their way, each way"),
	RES(CONN, wire_answers, false, "answers on their way, each way"),
	RES(PEER, conns, false, "connections"),
	RES(PEER, peer_recv_wr, false, "messages that can come"),
	RES(PEER, peer_send_wr, false, "work requests of send queues"),
	RES(PEER, peer_cq_entries, false, "entries of completion queues"),
	RES(PEER, peer_rx_bytes, false, "memory of messages that can come"),
	RES(NODE, tx_buffers, false, "messages to be sent, at first"),
	RES(NODE, tx_bytes, false, "their memory"),
	RES(NODE, mr_regions, false, "memory regions in pools"),
	RES(NODE, mr_pages, false, "pages of each"),
	RES(NODE, node_rx_bytes, true, "memory of messages that can come"),
	{ 0 },
};
/* clang-format on */

static bool value_is_bool(const struct value *v)
{
	return v->size == sizeof(bool);
}

static int64_t value_of(const struct value *v,
			const struct ulnet_o2ib_result *r,
			enum ulnet_o2ib_side side)
{
	const void *at = (const char *)r + v->offset + side * v->stride;

	if (value_is_bool(v))
		return *(const bool *)at;
	return v->size == sizeof(uint32_t) ? *(const uint32_t *)at
					   : (int64_t) * (const uint64_t *)at;
}

static const char *yes_no(bool value)
{
	return value ? "yes" : "no";
}

/* Returns the text of the value, which is constant or in @buf. */
static const char *value_text(const struct value *v,
			      const struct ulnet_o2ib_result *r,
			      enum ulnet_o2ib_side side,
			      char buf[VALUE_TEXT_SIZE])
{
	int64_t value = value_of(v, r, side);

	if (value_is_bool(v))
		return yes_no(value);
	snprintf(buf, VALUE_TEXT_SIZE, "%" PRId64, value);
	return buf;
}

/* Returns the text of @value, which is constant or in @buf. @value is the value
 * in @note, or the value before it was changed. */
static const char *note_text(const struct ulnet_o2ib_note *note, int64_t value,
			     char buf[VALUE_TEXT_SIZE])
{
	static const char *const truths[] = { "global_mr", "pools",
					      "connected" };

	if (strcmp(note->name, "registration") == 0)
		return lnet_o2ib_registration_name(
			(enum ulnet_o2ib_registration)value);
	for (size_t i = 0; i < sizeof(truths) / sizeof(truths[0]); i++)
		if (strcmp(note->name, truths[i]) == 0)
			return yes_no(value);
	snprintf(buf, VALUE_TEXT_SIZE, "%" PRId64, value);
	return buf;
}

static bool is_connected(const struct ulnet_o2ib_result *r)
{
	return r->conn.verdict == LNET_O2IB_CONNECTED;
}

/* Have the values of VALUE_CONN, VALUE_PEER and VALUE_NODE been calculated? */
static bool has_resources(const struct ulnet_o2ib_result *r)
{
	return is_connected(r) || r->conn.verdict == LNET_O2IB_NO_CQ;
}

static const char *side_name(enum ulnet_o2ib_side side)
{
	static const char *const names[] = { "A", "B", "A and B" };

	return names[side];
}

/* ---- what an input means for these nodes, in a sentence ---- */

static const char *sends_words(enum ulnet_o2ib_model model)
{
	switch (model) {
	case LNET_O2IB_2_10_54:
		return "max_send_wr is (max_frags + 1) * concurrent_sends, and "
		       "the completion queue grows with it; above the device's "
		       "max_qp_wr the queue pair is not created as asked for";
	case LNET_O2IB_2_11:
		return "concurrent_sends has no effect";
	default:
		return "work requests do not depend on concurrent_sends; only "
		       "the number of messages that are sent and not completed "
		       "does";
	}
}

static const char *map_words(enum ulnet_o2ib_model model)
{
	switch (model) {
	case LNET_O2IB_2_10_54:
	case LNET_O2IB_2_10:
		return "map_on_demand limits the fragments of a message, and "
		       "so the work requests";
	case LNET_O2IB_USER:
		return "map_on_demand has no effect";
	default:
		return "map_on_demand does not limit fragments; it only says "
		       "whether memory is mapped where there is a global "
		       "memory region";
	}
}

/* Returns a sentence about what the input of @w means for the node of @side, A
 * or B; NULL: there is nothing to say. */
static const char *what_if_words(const struct report *r,
				 const struct what_if *w,
				 enum ulnet_o2ib_side side)
{
	enum ulnet_o2ib_model model = r->result.node[side].conf.model;
	const char *name = w->input->name;

	if (w->side != LNET_O2IB_BOTH && w->side != side)
		return NULL;
	if (strcmp(name, "concurrent_sends") == 0)
		return sends_words(model);
	if (strcmp(name, "map_on_demand") == 0)
		return map_words(model);
	if (strcmp(name, "peer_credits") == 0)
		return "peer_credits is the deepest queue that the node offers "
		       "and accepts; the least of both nodes counts";
	return NULL;
}

/* Is @n a problem that the nodes have with the other value of the input, but
 * not with the present one? */
static bool what_if_is_new(const struct report *r,
			   const struct ulnet_o2ib_note *n)
{
	if (n->kind < LNET_O2IB_WARNING)
		return false;
	for (unsigned int i = 0; i < r->notes.n; i++)
		if (r->notes.note[i].rule == n->rule &&
		    r->notes.note[i].side == n->side)
			return false;
	return true;
}

/* ---- what was negotiated, compared with what was calculated ---- */

static bool report_depth_differs(const struct report *r,
				 const struct negotiated *c)
{
	return c->has_depth && c->depth != r->result.conn.depth;
}

static bool report_frags_differ(const struct report *r,
				const struct negotiated *c)
{
	return c->has_frags && c->frags != r->result.conn.frags;
}

/* Are nodes connected that should not be? */
static bool report_unexpected(const struct report *r)
{
	return r->negotiated.n && !is_connected(&r->result);
}

bool report_differs(const struct report *r)
{
	if (report_unexpected(r))
		return true;
	for (size_t i = 0; i < r->negotiated.n; i++)
		if (report_depth_differs(r, &r->negotiated.conns[i]) ||
		    report_frags_differ(r, &r->negotiated.conns[i]))
			return true;
	return false;
}

/* ==== for people ==== */

#define NAME_WIDTH  20
#define VALUE_WIDTH 14
#define WHAT_WIDTH  12

/* Is the value other than what was configured? */
static bool is_changed(const struct report *r, enum ulnet_o2ib_side side,
		       const char *name)
{
	for (unsigned int i = 0; i < r->notes.n; i++) {
		const struct ulnet_o2ib_note *note = &r->notes.note[i];

		if (note->kind == LNET_O2IB_CHANGED && note->side == side &&
		    strcmp(note->name, name) == 0)
			return true;
	}
	return false;
}

static void row(FILE *out, const char *name, const char *a, const char *b,
		const char *words)
{
	/* The release of a kernel may be longer than the column; it is cut. */
	fprintf(out, "  %-*s%*.*s%*.*s", NAME_WIDTH, name, VALUE_WIDTH,
		VALUE_WIDTH - 1, a, VALUE_WIDTH, VALUE_WIDTH - 1, b);
	fprintf(out, *words ? "   %s\n" : "%s\n", words);
}

/* ---- tunables ---- */

/* Returns the value as adjusted, with a star behind it if it is not what was
 * configured. */
static char *tunable_text(const struct report *r, const struct input *in,
			  enum ulnet_o2ib_side side, char buf[INPUT_TEXT_SIZE])
{
	size_t length;

	input_text(in, &r->result.node[side].conf, buf);
	length = strlen(buf);
	if (is_changed(r, side, in->name) && length + 1 < INPUT_TEXT_SIZE)
		memcpy(buf + length, "*", 2);
	return buf;
}

/* Some inputs are shown only if a node of the pair uses them. */
static bool input_is_shown(const struct report *r, const char *name)
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
		if (input_is_shown(r, in->name))
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

/* Is @v max_send_wr_granted, and do the devices of both nodes grant all? Then
 * the value is not worth a line. */
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
	char a[VALUE_TEXT_SIZE], b[VALUE_TEXT_SIZE];

	fprintf(out, "\n%-*s%*s%*s\n", NAME_WIDTH + 2, title, VALUE_WIDTH, "A",
		VALUE_WIDTH, "B");
	for (const struct value *v = result_values; v->name; v++)
		if (v->group == group && !is_granted(r, v))
			row(out, v->name,
			    value_text(v, &r->result, LNET_O2IB_A, a),
			    value_text(v, &r->result, LNET_O2IB_B, b),
			    v->words);
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
	if (is_connected(&r->result))
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
	const char *value = note_text(n, n->value, now);

	fprintf(out, "  %-7s  %s = %s", side_name(n->side), n->name, value);
	if (n->kind == LNET_O2IB_CHANGED)
		fprintf(out, ", not %s", note_text(n, n->before, before));
	if (*n->how && strcmp(n->how, value) != 0)
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

/* Prints a line of the table: @v as it is, and as it is with each other value
 * of the input. */
static void put_what_if_line(const struct report *r, const struct what_if *w,
			     const char *name, const struct value *v,
			     enum ulnet_o2ib_side side, FILE *out)
{
	char text[VALUE_TEXT_SIZE];

	fprintf(out, "  %-*s%*s", NAME_WIDTH + 2, name, WHAT_WIDTH,
		value_text(v, &r->result, side, text));
	for (unsigned int i = 0; i < w->n; i++)
		fprintf(out, "%*s", WHAT_WIDTH,
			value_text(v, &w->values[i].result, side, text));
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
	char name[64];

	for (const struct value *v = result_values; v->name; v++) {
		if (!v->what_if)
			continue;
		if (same_for_both(r, w, v)) {
			put_what_if_line(r, w, v->name, v, LNET_O2IB_A, out);
			continue;
		}
		for (unsigned int side = 0; side < 2; side++) {
			snprintf(name, sizeof(name), "%s: %s", side_name(side),
				 v->name);
			put_what_if_line(r, w, name, v, side, out);
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

/* Warns if @v would let a node post more messages than it has credits for. */
static void put_beyond(const struct what_if *w, const struct variant *v,
		       FILE *out)
{
	const struct ulnet_o2ib_conn *c = &v->result.conn;

	if (strcmp(w->input->name, "concurrent_sends") != 0 ||
	    !is_connected(&v->result))
		return;
	for (unsigned int side = 0; side < 2; side++)
		if ((w->side == LNET_O2IB_BOTH || w->side == side) &&
		    v->result.res[side].posted_max > c->depth)
			fprintf(out,
				"  %s: warning: %s: concurrent_sends %u is "
				"above the depth %u: credits are the limit, "
				"not sends\n",
				v->text, side_name(side),
				v->result.res[side].posted_max, c->depth);
}

static void put_what_if(const struct report *r, const struct what_if *w,
			FILE *out)
{
	fprintf(out, "\nWhat if %s of %s were\n", w->input->name,
		side_name(w->side));
	fprintf(out, "%-*s%*s", NAME_WIDTH + 4, "", WHAT_WIDTH, "now");
	for (unsigned int i = 0; i < w->n; i++)
		fprintf(out, "%*s", WHAT_WIDTH, w->values[i].text);
	fprintf(out, "\n  %-*s%*s", NAME_WIDTH + 2, "connected", WHAT_WIDTH,
		yes_no(is_connected(&r->result)));
	for (unsigned int i = 0; i < w->n; i++)
		fprintf(out, "%*s", WHAT_WIDTH,
			yes_no(is_connected(&w->values[i].result)));
	fputc('\n', out);
	put_values(r, w, out);
	put_words(r, w, out);
	for (unsigned int i = 0; i < w->n; i++) {
		const struct variant *v = &w->values[i];

		put_beyond(w, v, out);
		for (unsigned int k = 0; k < v->notes.n; k++) {
			if (!what_if_is_new(r, &v->notes.note[k]))
				continue;
			fprintf(out, "  %s: ", v->text);
			put_problem(&v->notes.note[k], out);
		}
	}
}

/* ---- what was negotiated ---- */

/* Prints the beginning of a line about @c. */
static void put_line_start(const struct report *r, const struct negotiated *c,
			   FILE *out)
{
	fprintf(out, "%s:%lu: %s%s", r->negotiated_file, c->line, c->nid,
		*c->nid ? ": " : "");
}

static void put_differences(const struct report *r, const struct negotiated *c,
			    FILE *out)
{
	const struct ulnet_o2ib_conn *conn = &r->result.conn;

	if (report_unexpected(r)) {
		put_line_start(r, c, out);
		fputs("connected; no connection was predicted\n", out);
		return;
	}
	if (report_depth_differs(r, c)) {
		put_line_start(r, c, out);
		fprintf(out, "queue_depth is %ju; %u was predicted\n",
			(uintmax_t)c->depth, conn->depth);
	}
	if (report_frags_differ(r, c)) {
		put_line_start(r, c, out);
		fprintf(out, "max_frags is %ju; %u was predicted\n",
			(uintmax_t)c->frags, conn->frags);
	}
}

static void put_negotiated(const struct report *r, FILE *out)
{
	if (!report_differs(r)) {
		fprintf(out, "\n%s: as predicted: %zu connection%s\n",
			r->negotiated_file, r->negotiated.n,
			r->negotiated.n == 1 ? "" : "s");
		return;
	}
	fputc('\n', out);
	for (size_t i = 0; i < r->negotiated.n; i++)
		put_differences(r, &r->negotiated.conns[i], out);
}

void report_table(const struct report *r, FILE *out)
{
	put_tunables(r, out);
	put_changes(r, out);
	put_group(r, VALUE_LIMITS, "Limits", out);
	put_conn(r, out);
	if (has_resources(&r->result))
		put_resources(r, out);
	put_problems(r, out);
	for (unsigned int i = 0; i < r->nwhat_ifs; i++)
		put_what_if(r, &r->what_ifs[i], out);
	if (r->explain)
		put_whys(r, out);
	if (r->negotiated_file)
		put_negotiated(r, out);
}

/* ==== for programs ==== */

/* Does YAML take @text for a text although it is not quoted? */
static bool needs_no_quotes(const char *text)
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
	tree_text(t, key, needs_no_quotes(text) ? TREE_PLAIN : TREE_DOUBLE,
		  text);
}

static void emit_bool(struct tree *t, const char *key, bool value)
{
	tree_text(t, key, TREE_PLAIN, value ? "true" : "false");
}

/* ---- the report ---- */

static void emit_conf(struct tree *parent, const char *key,
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

static void emit_value(struct tree *t, const struct value *v,
		       const struct ulnet_o2ib_result *result,
		       enum ulnet_o2ib_side side)
{
	int64_t value = value_of(v, result, side);

	if (value_is_bool(v))
		emit_bool(t, v->name, value != 0);
	else
		tree_int(t, v->name, value);
}

static void emit_side(struct tree *parent, const char *key,
		      const struct ulnet_o2ib_result *result,
		      enum ulnet_o2ib_side side)
{
	struct tree *t = tree_map(parent, key);

	emit_conf(t, "tunables", &result->node[side].conf);
	for (const struct value *v = result_values; v->name; v++)
		if (v->group == VALUE_LIMITS ||
		    (v->group != VALUE_BOTH && has_resources(result)))
			emit_value(t, v, result, side);
}

static void emit_attempts(struct tree *parent,
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

static void emit_note(struct tree *list, const struct ulnet_o2ib_note *n)
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

/* Adds the notes of one kind. */
static void emit_notes(struct tree *parent, const char *key,
		       const struct ulnet_o2ib_notes *notes,
		       enum ulnet_o2ib_note_kind kind)
{
	struct tree *list = tree_seq(parent, key);

	for (unsigned int i = 0; i < notes->n; i++)
		if (notes->note[i].kind == kind)
			emit_note(list, &notes->note[i]);
}

static void emit_problem_notes(struct tree *parent,
			       const struct ulnet_o2ib_notes *notes)
{
	emit_notes(parent, "warnings", notes, LNET_O2IB_WARNING);
	emit_notes(parent, "errors", notes, LNET_O2IB_ERROR);
}

static void emit_conn(struct tree *t, const struct ulnet_o2ib_result *result)
{
	const struct ulnet_o2ib_conn *conn = &result->conn;

	emit_bool(t, "connected", is_connected(result));
	if (!is_connected(result))
		emit_text(t, "reason", lnet_o2ib_verdict_text(conn->verdict));
	tree_int(t, "version", conn->version);
	for (const struct value *v = result_values; v->name; v++)
		if (v->group == VALUE_BOTH)
			emit_value(t, v, result, LNET_O2IB_A);
}

static void emit_result(struct tree *parent, const struct report *r)
{
	const struct ulnet_o2ib_result *result = &r->result;
	struct tree *t = tree_map(parent, "result"), *list;

	emit_conn(t, result);
	emit_attempts(t, &result->conn);
	emit_side(t, "a", result, LNET_O2IB_A);
	emit_side(t, "b", result, LNET_O2IB_B);
	emit_notes(t, "changes", &r->notes, LNET_O2IB_CHANGED);
	emit_problem_notes(t, &r->notes);
	if (!r->explain)
		return;
	list = tree_seq(t, "explain");
	for (unsigned int i = 0; i < r->notes.n; i++)
		emit_note(list, &r->notes.note[i]);
}

static void emit_variant(struct tree *list, const struct variant *variant)
{
	const struct ulnet_o2ib_result *result = &variant->result;
	struct tree *t = tree_map(list, NULL), *of_side;

	emit_text(t, "value", variant->text);
	emit_conn(t, result);
	for (unsigned int side = 0; side < 2; side++) {
		if (!has_resources(result))
			break;
		of_side = tree_map(t, side == LNET_O2IB_A ? "a" : "b");
		for (const struct value *v = result_values; v->name; v++)
			if (v->what_if && v->group != VALUE_BOTH)
				emit_value(of_side, v, result, side);
	}
	emit_problem_notes(t, &variant->notes);
}

static void emit_what_ifs(struct tree *parent, const struct report *r)
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
			emit_variant(values, &w->values[k]);
	}
}

static void emit_negotiated(struct tree *parent, const struct report *r)
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

/* Writes @text in quotes. A byte that is no ASCII, which only users' texts
 * have, becomes the character of that number. */
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
	emit_conf(t, "a", &r->pair.node[LNET_O2IB_A]);
	emit_conf(t, "b", &r->pair.node[LNET_O2IB_B]);
	emit_text(t, "initiator", side_name(r->pair.initiator));
	tree_int(t, "npeers", r->pair.npeers);
	emit_result(t, r);
	if (r->nwhat_ifs)
		emit_what_ifs(t, r);
	if (r->negotiated_file)
		emit_negotiated(t, r);
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
