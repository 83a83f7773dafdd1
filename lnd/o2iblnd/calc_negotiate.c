/* SPDX-License-Identifier: BSD-3-Clause */
/* What two nodes make of their limits when they connect. */
#include <errno.h>

#include "base/util.h"
#include "lnd/o2iblnd/calc.h"

struct talk {
	const struct ulnet_o2ib_node *ini, *acc;
	enum ulnet_o2ib_side ini_side, acc_side;
	struct ulnet_o2ib_conn *conn;
	struct ulnet_o2ib_notes *notes;
};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static bool is_user(const struct ulnet_o2ib_node *node)
{
	return node->conf.model == LNET_O2IB_USER;
}

uint32_t calc_wrs_each(const struct ulnet_o2ib_node *node, uint32_t frags)
{
	if (is_user(node))
		return 1 + node->conf.max_writes;
	return 1 + frags + node->wrs_extra;
}

/* Model user: has the device queues for this depth, with @wrs to send? */
static bool user_fits(const struct ulnet_o2ib_node *node, uint32_t depth,
		      uint64_t wrs)
{
	uint64_t receives = 2 * (uint64_t)depth + 2;
	uint32_t max_wr = node->conf.max_qp_wr, max_cqe = node->conf.max_cqe;

	if (max_wr && wrs > max_wr)
		wrs = max_wr;
	return (!max_wr || receives <= max_wr) &&
	       (!max_cqe || wrs + receives <= max_cqe);
}

static uint32_t user_capped(const struct ulnet_o2ib_node *node, uint32_t depth)
{
	uint64_t each = calc_wrs_each(node, 0);

	while (depth > 1 && !user_fits(node, depth, each * depth))
		depth--;
	return depth;
}

uint64_t calc_user_wrs(const struct ulnet_o2ib_node *node, uint32_t depth)
{
	uint64_t wrs = (uint64_t)calc_wrs_each(node, 0) * depth;

	if (wrs < CALC_USER_WRS_MIN &&
	    user_fits(node, depth, CALC_USER_WRS_MIN))
		return CALC_USER_WRS_MIN;
	return wrs;
}

/* The depth that a node can have, for the sake of its device. */
static uint32_t capped(const struct ulnet_o2ib_node *node, uint32_t depth,
		       uint32_t frags)
{
	uint64_t each = calc_wrs_each(node, frags);

	if (is_user(node))
		return user_capped(node, depth);
	if (!calc_model(node->conf.model)->capped || !node->conf.max_qp_wr ||
	    each * depth <= node->conf.max_qp_wr)
		return depth;
	return (uint32_t)(node->conf.max_qp_wr / each);
}

static uint32_t take_cap(struct talk *t, enum ulnet_o2ib_side side,
			 uint32_t depth, uint32_t frags)
{
	const struct ulnet_o2ib_node *node =
		side == t->ini_side ? t->ini : t->acc;
	uint32_t cap = capped(node, depth, frags);

	t->conn->capped[side] = cap < depth;
	if (cap < depth) {
		calc_side(t->notes, side);
		calc_changed(t->notes, RULE_CAP, "queue_depth", depth, cap);
	}
	return cap;
}

static void refuse(struct talk *t, enum ulnet_o2ib_verdict verdict,
		   enum calc_rule rule, const char *name, int64_t value)
{
	t->conn->verdict = verdict;
	calc_side(t->notes, LNET_O2IB_BOTH);
	calc_note(t->notes, LNET_O2IB_ERROR, rule, name, value, "%s",
		  lnet_o2ib_verdict_text(verdict));
}

/* Another request is made, with what was allowed. */
static void rejected(struct talk *t, struct ulnet_o2ib_attempt *attempt,
		     enum ulnet_o2ib_answer answer, uint32_t limit)
{
	attempt->answer = answer;
	attempt->limit = limit;
	t->conn->rejects++;
}

/* The acceptor looks at the depth, then at the fragments. False: another
 * request follows, with what is in @next. */
static bool answer_v2(struct talk *t, struct ulnet_o2ib_attempt *now,
		      struct ulnet_o2ib_attempt *next)
{
	uint32_t depth_max = t->acc->depth_max, frags = t->acc->frags_accepted;

	calc_side(t->notes, LNET_O2IB_BOTH);
	if (now->depth > depth_max) {
		rejected(t, now, LNET_O2IB_QUEUE_SIZE, depth_max);
		calc_changed(t->notes, RULE_ASK_DEPTH, "queue_depth",
			     now->depth, depth_max);
		next->depth = depth_max;
		return false;
	}
	if (now->frags > frags) {
		rejected(t, now, LNET_O2IB_FRAGS, frags);
		if (t->ini->frags_fixed &&
		    calc_model(t->ini->conf.model)->never_lowers) {
			refuse(t, LNET_O2IB_FRAGS_FIXED, RULE_ASK_FIXED,
			       "max_frags", now->frags);
			return true;
		}
		calc_changed(t->notes, RULE_ASK_FRAGS, "max_frags", now->frags,
			     frags);
		next->frags = frags;
		return false;
	}
	if (now->frags < frags && t->acc->frags_fixed) {
		rejected(t, now, LNET_O2IB_FRAGS, frags);
		refuse(t, LNET_O2IB_FRAGS_DEMANDED, RULE_ASK_DEMANDED,
		       "max_frags", now->frags);
	}
	return true;
}

/* All that version 1 can say is no. */
static bool answer_v1(struct talk *t, struct ulnet_o2ib_attempt *now)
{
	uint32_t frags = t->acc->frags_accepted;
	enum ulnet_o2ib_verdict verdict;

	if (now->frags > frags)
		verdict = LNET_O2IB_FRAGS_V1;
	else if (now->frags < frags && t->acc->frags_fixed)
		verdict = LNET_O2IB_FRAGS_DEMANDED;
	else
		return true;
	rejected(t, now, LNET_O2IB_FATAL, frags);
	refuse(t, verdict,
	       verdict == LNET_O2IB_FRAGS_V1 ? RULE_ASK_V1 : RULE_ASK_DEMANDED,
	       "max_frags", now->frags);
	return true;
}

/* False: the acceptor does not speak the version of this request. */
static bool answer_version(struct talk *t, struct ulnet_o2ib_attempt *now,
			   struct ulnet_o2ib_attempt *next)
{
	if (now->version == 1 || t->acc->conf.version == 2)
		return true;
	rejected(t, now, LNET_O2IB_UNCOMPAT, 1);
	calc_side(t->notes, LNET_O2IB_BOTH);
	calc_changed(t->notes, RULE_ASK_VERSION, "version", now->version, 1);
	next->version = 1;
	next->depth = CALC_DEPTH_V1;
	return false;
}

static void accepted(struct talk *t, struct ulnet_o2ib_attempt *now)
{
	uint32_t depth;

	depth = take_cap(t, t->acc_side, now->depth, now->frags);
	now->answer = LNET_O2IB_ACCEPTED;
	now->limit = depth;
	if (!depth) {
		refuse(t, LNET_O2IB_NO_DEPTH, RULE_ASK_NO_DEPTH, "queue_depth",
		       0);
		return;
	}
	t->conn->version = now->version;
	t->conn->depth = depth;
	t->conn->frags = now->frags;
	calc_side(t->notes, LNET_O2IB_BOTH);
	calc_value(t->notes, RULE_ACCEPTED, "queue_depth", depth);
	calc_value(t->notes, RULE_ACCEPTED, "max_frags", now->frags);
}

/* One request, with what the initiator would like to have in @wish, and the
 * answer. False: another one follows. */
static bool ask(struct talk *t, struct ulnet_o2ib_attempt *wish)
{
	struct ulnet_o2ib_conn *conn = t->conn;
	struct ulnet_o2ib_attempt *now = &conn->attempts[conn->nattempts];

	*now = *wish;
	now->depth = take_cap(t, t->ini_side, wish->depth, wish->frags);
	if (!now->depth) {
		refuse(t, LNET_O2IB_NO_DEPTH, RULE_ASK_NO_DEPTH, "queue_depth",
		       0);
		return true;
	}
	conn->nattempts++;
	if (!answer_version(t, now, wish))
		return false;
	if (now->version == 1 ? !answer_v1(t, now) : !answer_v2(t, now, wish))
		return false;
	if (conn->verdict == LNET_O2IB_CONNECTED)
		accepted(t, now);
	return true;
}

/* ---- credits ---- */

static uint32_t flow_hiw(const struct ulnet_o2ib_node *node,
			 const struct ulnet_o2ib_conn *conn,
			 struct ulnet_o2ib_notes *notes)
{
	uint32_t hiw = node->conf.peer_credits_hiw, d = conn->depth;
	uint32_t pc = node->conf.peer_credits, now;

	if (conn->version == 1) {
		calc_value(notes, RULE_FLOW_V1, "hiw", CALC_HIW_V1);
		return CALC_HIW_V1;
	}
	switch (calc_model(node->conf.model)->hiw) {
	case CALC_HIW_SCALED:
		now = pc ? (uint32_t)((uint64_t)d * hiw / pc) : 0;
		calc_note(notes, LNET_O2IB_COMPUTED, RULE_FLOW_SCALED, "hiw",
			  now, "%u * %u / %u", d, hiw, pc);
		if (now || !is_user(node))
			break;
		calc_note(notes, LNET_O2IB_COMPUTED, RULE_FLOW_SCALED, "hiw", 1,
			  "at least 1 in model user");
		return 1;
	case CALC_HIW_BELOW:
		now = least(hiw, d - 1);
		calc_note(notes, LNET_O2IB_COMPUTED, RULE_FLOW_BELOW, "hiw",
			  now, "least of %u and %u - 1", hiw, d);
		break;
	default:
		now = hiw;
		calc_value(notes, RULE_FLOW_CONFIGURED, "hiw", now);
		if (now > d)
			calc_note(notes, LNET_O2IB_WARNING, RULE_FLOW_STALL,
				  "hiw", now, "%u > %u", now, d);
	}
	if (!now)
		calc_note(notes, LNET_O2IB_WARNING, RULE_FLOW_ZERO, "hiw", 0,
			  "%u", now);
	return now;
}

static uint32_t flow_sends(const struct ulnet_o2ib_node *node,
			   const struct ulnet_o2ib_conn *conn,
			   struct ulnet_o2ib_notes *notes)
{
	uint32_t cs = node->conf.concurrent_sends, now = cs;

	if (conn->version != 1)
		return cs;
	if (now < CALC_CS_MIN_V1)
		now = CALC_CS_MIN_V1;
	if (now > CALC_CS_MAX_V1)
		now = CALC_CS_MAX_V1;
	if (now != cs)
		calc_changed(notes, RULE_CS_V1, "concurrent_sends", cs, now);
	return now;
}

static void flow(struct talk *t, enum ulnet_o2ib_side side,
		 const struct ulnet_o2ib_node *node)
{
	calc_side(t->notes, side);
	t->conn->hiw[side] = flow_hiw(node, t->conn, t->notes);
	t->conn->concurrent_sends[side] = flow_sends(node, t->conn, t->notes);
}

int lnet_o2ib_negotiate(const struct ulnet_o2ib_node *nodes,
			enum ulnet_o2ib_side initiator,
			struct ulnet_o2ib_conn *conn,
			struct ulnet_o2ib_notes *notes)
{
	enum ulnet_o2ib_side ini =
		initiator == LNET_O2IB_B ? LNET_O2IB_B : LNET_O2IB_A;
	enum ulnet_o2ib_side acc =
		ini == LNET_O2IB_A ? LNET_O2IB_B : LNET_O2IB_A;
	struct talk t = { .ini = &nodes[ini],
			  .acc = &nodes[acc],
			  .ini_side = ini,
			  .acc_side = acc,
			  .conn = conn,
			  .notes = notes };
	struct ulnet_o2ib_attempt wish = { .version = t.ini->conf.version,
					   .depth = t.ini->depth_max,
					   .frags = t.ini->frags_offered };

	*conn = (struct ulnet_o2ib_conn){ .initiator = ini,
					  .version = wish.version };
	if (!nodes[0].starts || !nodes[1].starts) {
		refuse(&t, LNET_O2IB_NO_NI, RULE_NO_NI, "connected", 0);
	} else if ((nodes[0].conf.version == 1 || nodes[1].conf.version == 1) &&
		   (is_user(&nodes[0]) || is_user(&nodes[1]))) {
		refuse(&t, LNET_O2IB_NO_VERSION, RULE_ASK_NO_V1, "version", 1);
	} else {
		/* Each reject lowers something for good. */
		while (!ask(&t, &wish))
			BUG_ON(conn->nattempts == LNET_O2IB_ATTEMPTS_MAX);
	}
	if (conn->verdict != LNET_O2IB_CONNECTED) {
		conn->depth = conn->frags = 0;
		return -ECONNREFUSED;
	}
	flow(&t, ini, t.ini);
	flow(&t, acc, t.acc);
	return 0;
}
