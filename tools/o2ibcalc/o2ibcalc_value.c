/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "o2ibcalc.h"

enum place {
	IN_NODE, /* of each side */
	IN_RES,
	IN_HIW, /* of the connection */
	IN_SENDS,
};

#define NODE(field)                                       \
	IN_NODE, offsetof(struct ulnet_o2ib_node, field), \
		sizeof(((struct ulnet_o2ib_node *)0)->field)
#define RES(field)                                            \
	IN_RES, offsetof(struct ulnet_o2ib_resources, field), \
		sizeof(((struct ulnet_o2ib_resources *)0)->field)

const struct value result_values[] = {
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

bool value_is_bool(const struct value *v)
{
	return v->size == sizeof(bool);
}

int64_t value_of(const struct value *v, const struct ulnet_o2ib_result *r,
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

char *note_text(const struct ulnet_o2ib_note *note, int64_t value,
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

const char *side_name(enum ulnet_o2ib_side side)
{
	static const char *const names[] = { "A", "B", "A and B" };

	return names[side];
}

/* ---- what an input means; how what was negotiated compares ---- */

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

const char *what_if_words(const struct report *r, const struct what_if *w,
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

bool what_if_is_new(const struct report *r, const struct ulnet_o2ib_note *n)
{
	if (n->kind < LNET_O2IB_WARNING)
		return false;
	for (unsigned int i = 0; i < r->notes.n; i++)
		if (r->notes.note[i].rule == n->rule &&
		    r->notes.note[i].side == n->side)
			return false;
	return true;
}

bool report_depth_differs(const struct report *r, const struct negotiated *c)
{
	return c->has_depth && c->depth != r->result.conn.depth;
}

bool report_frags_differ(const struct report *r, const struct negotiated *c)
{
	return c->has_frags && c->frags != r->result.conn.frags;
}

bool report_unexpected(const struct report *r)
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
