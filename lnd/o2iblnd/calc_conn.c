/* SPDX-License-Identifier: BSD-3-Clause */
/* The negotiation of two nodes when they connect, and the resources that a
 * connection takes. */
#include <errno.h>

#include "base/util.h"
#include "lnd/o2iblnd/calc.h"

struct negotiation {
	const struct ulnet_o2ib_node *ini, *acc;
	enum ulnet_o2ib_side ini_side, acc_side;
	struct ulnet_o2ib_conn *conn;
	struct ulnet_o2ib_notes *notes;
};

/* Returns how many send queue entries each of the D messages may need. */
static uint32_t wrs_each(const struct ulnet_o2ib_node *node, uint32_t frags)
{
	if (calc_is_user(node))
		return 1 + node->conf.max_writes;
	return 1 + frags + node->wrs_extra;
}

/* Model user: does the device allow queues for this @depth, with @wrs entries
 * for sending? */
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
	uint64_t each = wrs_each(node, 0);

	while (depth > 1 && !user_fits(node, depth, each * depth))
		depth--;
	return depth;
}

/* Model user: returns how many entries of the send queue are asked for with
 * this depth. The device may grant fewer, which is enough. */
static uint64_t user_wrs(const struct ulnet_o2ib_node *node, uint32_t depth)
{
	uint64_t wrs = (uint64_t)wrs_each(node, 0) * depth;

	if (wrs < CALC_USER_WRS_MIN &&
	    user_fits(node, depth, CALC_USER_WRS_MIN))
		return CALC_USER_WRS_MIN;
	return wrs;
}

/* Returns @depth, lowered to the limits of the node's device. */
static uint32_t capped(const struct ulnet_o2ib_node *node, uint32_t depth,
		       uint32_t frags)
{
	uint64_t each = wrs_each(node, frags);

	if (calc_is_user(node))
		return user_capped(node, depth);
	if (!calc_model(node->conf.model)->capped || !node->conf.max_qp_wr ||
	    each * depth <= node->conf.max_qp_wr)
		return depth;
	return (uint32_t)(node->conf.max_qp_wr / each);
}

static uint32_t take_cap(struct negotiation *t, enum ulnet_o2ib_side side,
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

static void calc_conn_refuse(struct negotiation *t,
			     enum ulnet_o2ib_verdict verdict,
			     enum calc_rule rule, const char *name,
			     int64_t value)
{
	t->conn->verdict = verdict;
	calc_side(t->notes, LNET_O2IB_BOTH);
	calc_note(t->notes, LNET_O2IB_ERROR, rule, name, value, "%s",
		  lnet_o2ib_verdict_text(verdict));
}

/* Notes a rejection that tells @limit. */
static void rejected(struct negotiation *t, struct ulnet_o2ib_attempt *attempt,
		     enum ulnet_o2ib_answer answer, uint32_t limit)
{
	attempt->answer = answer;
	attempt->limit = limit;
	t->conn->rejects++;
}

/* The acceptor judges first the depth, then the fragments, in version 2.
 * Returns false if the initiator asks again, for @next. */
static bool answer_v2(struct negotiation *t, struct ulnet_o2ib_attempt *now,
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
			calc_conn_refuse(t, LNET_O2IB_FRAGS_FIXED,
					 RULE_ASK_FIXED, "max_frags",
					 now->frags);
			return true;
		}
		calc_changed(t->notes, RULE_ASK_FRAGS, "max_frags", now->frags,
			     frags);
		next->frags = frags;
		return false;
	}
	if (now->frags < frags && t->acc->frags_fixed) {
		rejected(t, now, LNET_O2IB_FRAGS, frags);
		calc_conn_refuse(t, LNET_O2IB_FRAGS_DEMANDED, RULE_ASK_DEMANDED,
				 "max_frags", now->frags);
	}
	return true;
}

/* As answer_v2(), in version 1, in which a rejection tells no limits. */
static bool answer_v1(struct negotiation *t, struct ulnet_o2ib_attempt *now)
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
	calc_conn_refuse(t, verdict,
			 verdict == LNET_O2IB_FRAGS_V1 ? RULE_ASK_V1
						       : RULE_ASK_DEMANDED,
			 "max_frags", now->frags);
	return true;
}

/* The acceptor judges the version. Returns false if it does not speak that
 * version, so that the initiator asks again in another one. */
static bool answer_version(struct negotiation *t,
			   struct ulnet_o2ib_attempt *now,
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

static void accepted(struct negotiation *t, struct ulnet_o2ib_attempt *now)
{
	uint32_t depth;

	depth = take_cap(t, t->acc_side, now->depth, now->frags);
	now->answer = LNET_O2IB_ACCEPTED;
	now->limit = depth;
	if (!depth) {
		calc_conn_refuse(t, LNET_O2IB_NO_DEPTH, RULE_ASK_NO_DEPTH,
				 "queue_depth", 0);
		return;
	}
	t->conn->version = now->version;
	t->conn->depth = depth;
	t->conn->frags = now->frags;
	calc_side(t->notes, LNET_O2IB_BOTH);
	calc_value(t->notes, RULE_ACCEPTED, "queue_depth", depth);
	calc_value(t->notes, RULE_ACCEPTED, "max_frags", now->frags);
}

static uint64_t entries_to_ask(const struct negotiation *t,
			       const struct ulnet_o2ib_attempt *now);

/* Can the initiator make its completion queue for this request? It does so
 * before it sends the request, so it does not learn that less would do. */
static bool can_ask(struct negotiation *t, const struct ulnet_o2ib_attempt *now)
{
	uint64_t entries = entries_to_ask(t, now);
	uint32_t max = t->ini->conf.max_cqe;

	if (!max || entries <= max)
		return true;
	t->conn->verdict = LNET_O2IB_NO_CQ_TO_ASK;
	calc_side(t->notes, t->ini_side);
	calc_note(t->notes, LNET_O2IB_ERROR, RULE_ASK_NO_CQ, "cq_entries",
		  (int64_t)entries, "%ju > %u", (uintmax_t)entries, max);
	return false;
}

/* Makes one request, and its answer. Returns false if the initiator asks again,
 * with the new @request. */
static bool calc_conn_ask(struct negotiation *t,
			  struct ulnet_o2ib_attempt *request)
{
	struct ulnet_o2ib_conn *conn = t->conn;
	struct ulnet_o2ib_attempt *now = &conn->attempts[conn->nattempts];

	*now = *request;
	now->depth = take_cap(t, t->ini_side, request->depth, request->frags);
	if (!now->depth) {
		calc_conn_refuse(t, LNET_O2IB_NO_DEPTH, RULE_ASK_NO_DEPTH,
				 "queue_depth", 0);
		return true;
	}
	if (!can_ask(t, now))
		return true;
	conn->nattempts++;
	if (!answer_version(t, now, request))
		return false;
	if (now->version == 1 ? !answer_v1(t, now)
			      : !answer_v2(t, now, request))
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
		if (now || !calc_is_user(node))
			break;
		calc_note(notes, LNET_O2IB_COMPUTED, RULE_FLOW_SCALED, "hiw", 1,
			  "at least 1 in model user");
		return 1;
	case CALC_HIW_BELOW:
		now = MIN(hiw, d - 1);
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

static void flow(struct negotiation *t, enum ulnet_o2ib_side side,
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
	struct negotiation t = { .ini = &nodes[ini],
				 .acc = &nodes[acc],
				 .ini_side = ini,
				 .acc_side = acc,
				 .conn = conn,
				 .notes = notes };
	struct ulnet_o2ib_attempt request = { .version = t.ini->conf.version,
					      .depth = t.ini->depth_max,
					      .frags = t.ini->frags_offered };

	*conn = (struct ulnet_o2ib_conn){ .initiator = ini,
					  .version = request.version };
	if (!nodes[0].starts || !nodes[1].starts) {
		calc_conn_refuse(&t, LNET_O2IB_NO_NI, RULE_NO_NI, "connected",
				 0);
	} else if ((nodes[0].conf.version == 1 || nodes[1].conf.version == 1) &&
		   (calc_is_user(&nodes[0]) || calc_is_user(&nodes[1]))) {
		calc_conn_refuse(&t, LNET_O2IB_NO_VERSION, RULE_ASK_NO_V1,
				 "version", 1);
	} else {
		/* This loop ends, since each rejection lowers a limit. */
		while (!calc_conn_ask(&t, &request))
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

/* ---- resources ---- */

struct sum {
	const struct ulnet_o2ib_node *node;
	const struct calc_model *model;
	const struct ulnet_o2ib_conn *conn;
	enum ulnet_o2ib_side side;
	struct ulnet_o2ib_resources *r;
	struct ulnet_o2ib_notes *notes;
};

/* Notes a value and, as printf() would, how it was computed. */
#define computed(s, rule, name, value, ...)                   \
	calc_note((s)->notes, LNET_O2IB_COMPUTED, rule, name, \
		  (int64_t)(value), __VA_ARGS__)

static uint64_t ceiling(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

static void sum_recv(struct sum *s)
{
	uint32_t d = s->conn->depth, page = s->node->conf.page_size;
	struct ulnet_o2ib_resources *r = s->r;

	if (s->conn->version == 1) {
		r->max_recv_wr = 2 * d;
		computed(s, RULE_RX_V1, "max_recv_wr", r->max_recv_wr, "2 * %u",
			 d);
	} else {
		r->max_recv_wr = 2 * d + 2;
		computed(s, RULE_RX, "max_recv_wr", r->max_recv_wr,
			 "2 * %u + 2", d);
	}
	r->rx_bytes = (uint64_t)r->max_recv_wr * CALC_MSG_BYTES;
	computed(s, RULE_RX_BYTES, "rx_bytes", r->rx_bytes, "%u * %u",
		 r->max_recv_wr, CALC_MSG_BYTES);
	r->rx_pages = ceiling(r->rx_bytes, page);
	computed(s, RULE_RX_PAGES, "rx_pages", r->rx_pages, "%ju / %u",
		 (uintmax_t)r->rx_bytes, page);
}

/* Returns how many entries of the send queue the device grants. */
static uint64_t granted(struct sum *s)
{
	uint64_t wrs = s->r->max_send_wr, max = s->node->conf.max_qp_wr;

	if (!max || wrs <= max)
		return wrs;
	if (s->model->send == CALC_SEND_USER) {
		computed(s, RULE_SEND_CAPPED, "max_send_wr_granted", max,
			 "%ju > %ju", (uintmax_t)wrs, (uintmax_t)max);
		return max;
	}
	if (s->model->send != CALC_SEND_CS) {
		calc_note(s->notes, LNET_O2IB_WARNING, RULE_SEND_FAILS,
			  "max_send_wr", (int64_t)wrs, "%ju > %ju",
			  (uintmax_t)wrs, (uintmax_t)max);
		return wrs;
	}
	while (wrs > max && wrs >= CALC_SHRINK_MIN)
		wrs -= wrs / 4;
	calc_note(s->notes, LNET_O2IB_WARNING, RULE_SEND_SHRINKS,
		  "max_send_wr_granted", (int64_t)wrs, "%ju > %ju",
		  (uintmax_t)s->r->max_send_wr, (uintmax_t)max);
	return wrs;
}

static void sum_send(struct sum *s)
{
	uint32_t d = s->conn->depth, f = s->conn->frags;
	uint32_t cs = s->conn->concurrent_sends[s->side];
	uint32_t each = wrs_each(s->node, f);
	struct ulnet_o2ib_resources *r = s->r;

	switch (s->model->send) {
	case CALC_SEND_CS:
		r->max_send_wr = (uint64_t)(f + 1) * cs;
		computed(s, RULE_SEND_CS, "max_send_wr", r->max_send_wr,
			 "(%u + 1) * %u", f, cs);
		break;
	case CALC_SEND_DEPTH:
		r->max_send_wr = (uint64_t)(f + 1) * d;
		computed(s, RULE_SEND_DEPTH, "max_send_wr", r->max_send_wr,
			 "(%u + 1) * %u", f, d);
		break;
	case CALC_SEND_EXTRA:
		r->max_send_wr = (uint64_t)each * d;
		computed(s, RULE_SEND_EXTRA, "max_send_wr", r->max_send_wr,
			 "(%u + 1 + %u) * %u", f, s->node->wrs_extra, d);
		break;
	default:
		r->max_send_wr = user_wrs(s->node, d);
		computed(s, RULE_SEND_USER, "max_send_wr", r->max_send_wr,
			 "greatest of (%u + 1) * %u and %u", each - 1, d,
			 CALC_USER_WRS_MIN);
	}
	r->max_send_wr_granted = granted(s);
}

static void sum_cq(struct sum *s)
{
	struct ulnet_o2ib_resources *r = s->r;
	uint64_t send = r->max_send_wr;
	enum calc_rule rule = RULE_CQ;

	if (s->model->send == CALC_SEND_USER) {
		send = r->max_send_wr_granted;
	} else if (s->model->cq_by_depth) {
		send = 2 * (uint64_t)s->conn->depth;
		rule = RULE_CQ_DEPTH;
	} else if (s->conn->capped[s->side]) {
		send = s->node->conf.max_qp_wr;
		rule = RULE_CQ_CAPPED;
	}
	r->cq_entries = r->max_recv_wr + send;
	computed(s, rule, "cq_entries", r->cq_entries, "%u + %ju",
		 r->max_recv_wr, (uintmax_t)send);
}

/* Returns 0; -ENOSPC: the device has no completion queue of that size. */
static int check_cq(struct sum *s)
{
	const struct ulnet_o2ib_resources *r = s->r;
	uint64_t max = s->node->conf.max_cqe;

	if (!max || r->cq_entries <= max)
		return 0;
	calc_note(s->notes, LNET_O2IB_ERROR, RULE_CQ_MAX, "cq_entries",
		  (int64_t)r->cq_entries, "%ju > %ju", (uintmax_t)r->cq_entries,
		  (uintmax_t)max);
	return -ENOSPC;
}

/* Returns how many entries of the completion queue the initiator makes for this
 * request. */
static uint64_t entries_to_ask(const struct negotiation *t,
			       const struct ulnet_o2ib_attempt *now)
{
	struct ulnet_o2ib_conn conn = *t->conn;
	struct ulnet_o2ib_resources r = { 0 };
	struct sum s = { .node = t->ini,
			 .model = calc_model(t->ini->conf.model),
			 .conn = &conn,
			 .side = t->ini_side,
			 .r = &r };

	conn.version = now->version;
	conn.depth = now->depth;
	conn.frags = now->frags;
	conn.concurrent_sends[s.side] = flow_sends(t->ini, &conn, NULL);
	sum_recv(&s);
	sum_send(&s);
	sum_cq(&s);
	return r.cq_entries;
}

static uint32_t bulk_wrs(struct sum *s)
{
	const struct ulnet_o2ib_conf *c = &s->node->conf;
	uint32_t n;

	switch (c->registration) {
	case LNET_O2IB_REG_GLOBAL:
		n = (uint32_t)ceiling(CALC_BULK_BYTES, c->page_size) + 1;
		computed(s, RULE_BULK_GLOBAL, "bulk_wrs", n, "%u + 1", n - 1);
		return n;
	case LNET_O2IB_REG_FMR:
		computed(s, RULE_BULK_FMR, "bulk_wrs", 2, "1 + 1");
		return 2;
	case LNET_O2IB_REG_USER:
		n = (uint32_t)ceiling(c->pieces, c->wrq_sge) + 1;
		computed(s, RULE_BULK_USER, "bulk_wrs", n, "%u / %u + 1",
			 c->pieces, c->wrq_sge);
		return n;
	default:
		computed(s, RULE_BULK_FASTREG, "bulk_wrs", 4, "3 + 1");
		return 4;
	}
}

static void sum_use(struct sum *s)
{
	struct ulnet_o2ib_resources *r = s->r;
	uint32_t d = s->conn->depth;
	uint32_t most = 1 + s->conn->frags + s->node->wrs_extra;

	r->posted_max = s->model->sends_ignored
				? d
				: s->conn->concurrent_sends[s->side];
	calc_value(s->notes,
		   s->model->sends_ignored ? RULE_POSTED_DEPTH : RULE_POSTED,
		   "posted_max", r->posted_max);
	r->bulk_wrs = bulk_wrs(s);
	r->typical_wrs = (uint64_t)r->posted_max * r->bulk_wrs;
	computed(s, RULE_TYPICAL, "typical_wrs", r->typical_wrs, "%u * %u",
		 r->posted_max, r->bulk_wrs);
	/* Nodes of model user send such messages in batches, so the queue need
	 * not have room for all. */
	if (r->typical_wrs > r->max_send_wr_granted &&
	    s->model->send != CALC_SEND_USER)
		calc_note(s->notes, LNET_O2IB_WARNING, RULE_TYPICAL_MANY,
			  "typical_wrs", (int64_t)r->typical_wrs, "%ju > %ju",
			  (uintmax_t)r->typical_wrs,
			  (uintmax_t)r->max_send_wr_granted);
	r->worst_wrs = (uint64_t)r->posted_max * most;
	computed(s, RULE_WORST, "worst_wrs", r->worst_wrs, "%u * %u",
		 r->posted_max, most);
	if (r->max_send_wr)
		r->worst_percent = r->worst_wrs * 100 / r->max_send_wr;
	computed(s, RULE_WORST_PERCENT, "worst_percent", r->worst_percent,
		 "100 * %ju / %ju", (uintmax_t)r->worst_wrs,
		 (uintmax_t)r->max_send_wr);
	r->wire_messages = r->wire_answers = d;
	calc_value(s->notes, RULE_WIRE, "wire_messages", d);
	calc_value(s->notes, RULE_WIRE, "wire_answers", d);
}

static void sum_peer(struct sum *s, uint32_t conns)
{
	struct ulnet_o2ib_resources *r = s->r;
	const struct {
		const char *name;
		uint64_t one, *all;
	} rows[] = {
		{ "peer_recv_wr", r->max_recv_wr, &r->peer_recv_wr },
		{ "peer_send_wr", r->max_send_wr, &r->peer_send_wr },
		{ "peer_cq_entries", r->cq_entries, &r->peer_cq_entries },
		{ "peer_rx_bytes", r->rx_bytes, &r->peer_rx_bytes },
	};

	r->conns = conns;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		*rows[i].all = rows[i].one * conns;
		computed(s, RULE_PEER, rows[i].name, *rows[i].all, "%ju * %u",
			 (uintmax_t)rows[i].one, conns);
	}
}

static uint64_t pool(uint32_t size, uint32_t ncpts)
{
	uint64_t each = size / ncpts;

	return ncpts * (each < CALC_POOL_MIN ? CALC_POOL_MIN : each);
}

static void sum_node(struct sum *s, uint32_t npeers)
{
	const struct ulnet_o2ib_conf *c = &s->node->conf;
	struct ulnet_o2ib_resources *r = s->r;

	r->tx_buffers = pool(c->ntx, c->ncpts);
	computed(s, RULE_TX_POOL, "tx_buffers", r->tx_buffers,
		 "%u * greatest of %u / %u and %u", c->ncpts, c->ntx, c->ncpts,
		 CALC_POOL_MIN);
	r->tx_bytes = r->tx_buffers * CALC_MSG_BYTES;
	computed(s, RULE_RX_BYTES, "tx_bytes", r->tx_bytes, "%ju * %u",
		 (uintmax_t)r->tx_buffers, CALC_MSG_BYTES);
	r->mr_regions = s->node->pools ? pool(c->fmr_pool_size, c->ncpts) : 0;
	r->mr_pages = s->node->pools ? s->model->frags_accepted : 0;
	computed(s, RULE_MR_POOL, "mr_regions", r->mr_regions, "%u pages each",
		 r->mr_pages);
	r->node_rx_bytes = npeers * r->peer_rx_bytes;
	computed(s, RULE_NODE_RX, "node_rx_bytes", r->node_rx_bytes, "%u * %ju",
		 npeers, (uintmax_t)r->peer_rx_bytes);
}

int lnet_o2ib_resources(const struct ulnet_o2ib_node *nodes,
			const struct ulnet_o2ib_conn *conn,
			enum ulnet_o2ib_side side, uint32_t npeers,
			struct ulnet_o2ib_resources *res,
			struct ulnet_o2ib_notes *notes)
{
	enum ulnet_o2ib_side me =
		side == LNET_O2IB_B ? LNET_O2IB_B : LNET_O2IB_A;
	struct sum s = { .node = &nodes[me],
			 .model = calc_model(nodes[me].conf.model),
			 .conn = conn,
			 .side = me,
			 .r = res,
			 .notes = notes };
	int rc;

	*res = (struct ulnet_o2ib_resources){ 0 };
	calc_side(notes, me);
	sum_recv(&s);
	sum_send(&s);
	sum_cq(&s);
	rc = check_cq(&s);
	sum_use(&s);
	sum_peer(&s, nodes[conn->initiator].conf.conns_per_peer);
	sum_node(&s, npeers ? npeers : 1);
	return rc;
}

int lnet_o2ib_calculate(const struct ulnet_o2ib_pair *pair,
			struct ulnet_o2ib_result *result,
			struct ulnet_o2ib_notes *notes)
{
	int rc, bad = 0;

	*result = (struct ulnet_o2ib_result){ 0 };
	for (int i = 0; i < 2; i++) {
		calc_side(notes, i ? LNET_O2IB_B : LNET_O2IB_A);
		/* The result does not matter here: a node that does not start
		 * is refused below. */
		(void)lnet_o2ib_adjust(&pair->node[i], &result->node[i], notes);
	}
	rc = lnet_o2ib_negotiate(result->node, pair->initiator, &result->conn,
				 notes);
	for (int i = 0; !rc && i < 2; i++)
		bad |= lnet_o2ib_resources(result->node, &result->conn,
					   i ? LNET_O2IB_B : LNET_O2IB_A,
					   pair->npeers, &result->res[i],
					   notes);
	if (!bad)
		return rc;
	result->conn.verdict = LNET_O2IB_NO_CQ;
	return -ECONNREFUSED;
}
