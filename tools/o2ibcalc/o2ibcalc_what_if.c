/* SPDX-License-Identifier: BSD-3-Clause */
/* What an input means; and how what was negotiated compares to what was
 * predicted. */
#include <string.h>

#include "o2ibcalc_report.h"

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
	const char *name = input_name(w->input);

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
