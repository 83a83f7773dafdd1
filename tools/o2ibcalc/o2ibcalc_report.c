/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes of it, as a table that a person reads, or for programs as YAML,
 * which can be read in again, or JSON.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "config/yaml/tree.h"
#include "o2ibcalc.h"

/* ---- what was calculated of a node, as a list of values with names ---- */

enum value_group {
	VALUE_LIMITS, /* of a node, before it is connected */
	VALUE_CONN,   /* of its side of a connection */
	VALUE_PEER,   /* of all connections to the peer */
	VALUE_NODE,   /* of the node */
	VALUE_GROUPS
};

enum place {
	IN_NODE, /* of each side */
	IN_RES,
	IN_HIW, /* of the connection */
	IN_SENDS,
};

struct value {
	const char *name;
	enum value_group group;
	const char *words;
	bool what_if; /* is shown there */
	enum place place;
	size_t offset, size;
};

#define VALUE_TEXT_SIZE 32

#define NODE(field)                                       \
	IN_NODE, offsetof(struct ulnet_o2ib_node, field), \
		sizeof(((struct ulnet_o2ib_node *)0)->field)
#define RES(field)                                            \
	IN_RES, offsetof(struct ulnet_o2ib_resources, field), \
		sizeof(((struct ulnet_o2ib_resources *)0)->field)

/* They end with one without a name. */
static const struct value result_values[] = {
	{ "starts", VALUE_LIMITS, "the NI starts", false, NODE(starts) },
	{ "pools", VALUE_LIMITS, "pools of memory regions", false,
	  NODE(pools) },
	{ "wrs_extra", VALUE_LIMITS, "work requests to register", false,
	  NODE(wrs_extra) },
	{ "depth_max", VALUE_LIMITS, "deepest queue", false, NODE(depth_max) },
	{ "frags_offered", VALUE_LIMITS, "fragments, if it asks", false,
	  NODE(frags_offered) },
	{ "frags_accepted", VALUE_LIMITS, "fragments, if it is asked", false,
	  NODE(frags_accepted) },
	{ "hiw", VALUE_CONN, "credits owed that are returned at once", true,
	  IN_HIW, 0, 0 },
	{ "concurrent_sends", VALUE_CONN, "on this connection", true, IN_SENDS,
	  0, 0 },
	{ "max_recv_wr", VALUE_CONN, "messages that can come, posted", true,
	  RES(max_recv_wr) },
	{ "rx_bytes", VALUE_CONN, "their memory", true, RES(rx_bytes) },
	{ "rx_pages", VALUE_CONN, "the same in pages", false, RES(rx_pages) },
	{ "max_send_wr", VALUE_CONN, "work requests of the send queue", true,
	  RES(max_send_wr) },
	{ "max_send_wr_granted", VALUE_CONN, "that the device grants", false,
	  RES(max_send_wr_granted) },
	{ "cq_entries", VALUE_CONN, "entries of the completion queue", true,
	  RES(cq_entries) },
	{ "posted_max", VALUE_CONN, "messages sent, not completed, at most",
	  true, RES(posted_max) },
	{ "bulk_wrs", VALUE_CONN, "work requests of a bulk message", false,
	  RES(bulk_wrs) },
	{ "typical_wrs", VALUE_CONN, "in use: all posted are bulk", true,
	  RES(typical_wrs) },
	{ "worst_wrs", VALUE_CONN, "in use: all fragments of all", true,
	  RES(worst_wrs) },
	{ "worst_percent", VALUE_CONN, "... in percent of max_send_wr", false,
	  RES(worst_percent) },
	{ "wire_messages", VALUE_CONN, "messages on their way, each way", false,
	  RES(wire_messages) },
	{ "wire_answers", VALUE_CONN, "answers on their way, each way", false,
	  RES(wire_answers) },
	{ "conns", VALUE_PEER, "connections", false, RES(conns) },
	{ "peer_recv_wr", VALUE_PEER, "messages that can come", false,
	  RES(peer_recv_wr) },
	{ "peer_send_wr", VALUE_PEER, "work requests of send queues", false,
	  RES(peer_send_wr) },
	{ "peer_cq_entries", VALUE_PEER, "entries of completion queues", false,
	  RES(peer_cq_entries) },
	{ "peer_rx_bytes", VALUE_PEER, "memory of messages that can come",
	  false, RES(peer_rx_bytes) },
	{ "tx_buffers", VALUE_NODE, "messages to be sent, at first", false,
	  RES(tx_buffers) },
	{ "tx_bytes", VALUE_NODE, "their memory", false, RES(tx_bytes) },
	{ "mr_regions", VALUE_NODE, "memory regions in pools", false,
	  RES(mr_regions) },
	{ "mr_pages", VALUE_NODE, "pages of each", false, RES(mr_pages) },
	{ "node_rx_bytes", VALUE_NODE, "memory of messages that can come", true,
	  RES(node_rx_bytes) },
	{ 0 },
};

static bool value_is_bool(const struct value *v)
{
	return v->size == sizeof(bool);
}

static int64_t value_of(const struct value *v,
			const struct ulnet_o2ib_result *r,
			enum ulnet_o2ib_side side)
{
	const char *from = (const char *)&r->res[side];
	uint32_t word;
	uint64_t large;
	bool truth;

	if (v->place == IN_HIW)
		return r->conn.hiw[side];
	if (v->place == IN_SENDS)
		return r->conn.concurrent_sends[side];
	if (v->place == IN_NODE)
		from = (const char *)&r->node[side];
	if (v->size == sizeof(truth)) {
		memcpy(&truth, from + v->offset, sizeof(truth));
		return truth;
	}
	if (v->size == sizeof(word)) {
		memcpy(&word, from + v->offset, sizeof(word));
		return word;
	}
	memcpy(&large, from + v->offset, sizeof(large));
	return (int64_t)large;
}

/* The value of a note: numbers stand for some. Returns @buf. */
static char *note_text(const struct ulnet_o2ib_note *note, int64_t value,
		       char buf[VALUE_TEXT_SIZE])
{
	static const char *const truths[] = { "global_mr", "pools",
					      "connected" };

	if (strcmp(note->name, "registration") == 0) {
		snprintf(buf, VALUE_TEXT_SIZE, "%s",
			 lnet_o2ib_registration_name(
				 (enum ulnet_o2ib_registration)value));
		return buf;
	}
	snprintf(buf, VALUE_TEXT_SIZE, "%" PRId64, value);
	for (size_t i = 0; i < sizeof(truths) / sizeof(truths[0]); i++)
		if (strcmp(note->name, truths[i]) == 0)
			snprintf(buf, VALUE_TEXT_SIZE, "%s",
				 value ? "yes" : "no");
	return buf;
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

/* For A or B; NULL: nothing special. */
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

/* Was it not noted without the other value, too? */
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

/* ---- how what was negotiated compares ---- */

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

/* Is the connection there, and should not be? */
static bool report_unexpected(const struct report *r)
{
	return r->negotiated.n && r->result.conn.verdict != LNET_O2IB_CONNECTED;
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
static bool o2ibcalc_report_is_shown(const struct report *r, const char *name)
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
		if (o2ibcalc_report_is_shown(r, in->name))
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

static void print_conn(const struct report *r, FILE *out)
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

static void o2ibcalc_report_put_line(const struct report *r,
				     const struct what_if *w, const char *name,
				     const struct value *v,
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
			o2ibcalc_report_put_line(r, w, v->name, v, LNET_O2IB_A,
						 out);
			continue;
		}
		for (int side = 0; side < 2; side++) {
			snprintf(name, sizeof(name), "%s: %s", side ? "B" : "A",
				 v->name);
			o2ibcalc_report_put_line(
				r, w, name, v, side ? LNET_O2IB_B : LNET_O2IB_A,
				out);
		}
	}
}

static void o2ibcalc_report_put_words(const struct report *r,
				      const struct what_if *w, FILE *out)
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
static void put_beyond(const struct what_if *w, const struct variant *v,
		       FILE *out)
{
	const struct ulnet_o2ib_conn *c = &v->result.conn;

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

static void print_what_if(const struct report *r, const struct what_if *w,
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
	o2ibcalc_report_put_line(r, w, "queue_depth", NULL, LNET_O2IB_A, out);
	o2ibcalc_report_put_line(r, w, "max_frags", NULL, LNET_O2IB_A, out);
	o2ibcalc_report_put_line(r, w, "rejects", NULL, LNET_O2IB_A, out);
	put_values(r, w, out);
	o2ibcalc_report_put_words(r, w, out);
	for (unsigned int i = 0; i < w->n; i++) {
		v = &w->values[i];
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

static void print_negotiated(const struct report *r, FILE *out)
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
	print_conn(r, out);
	if (verdict == LNET_O2IB_CONNECTED || verdict == LNET_O2IB_NO_CQ)
		put_resources(r, out);
	put_problems(r, out);
	for (unsigned int i = 0; i < r->nwhat_ifs; i++)
		print_what_if(r, &r->what_ifs[i], out);
	if (r->explain)
		put_whys(r, out);
	if (r->negotiated_file)
		print_negotiated(r, out);
}

/* ==== for programs ==== */

/* What YAML takes for something else than a text. */
static bool o2ibcalc_report_is_word(const char *text)
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
	tree_text(t, key,
		  o2ibcalc_report_is_word(text) ? TREE_PLAIN : TREE_DOUBLE,
		  text);
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
