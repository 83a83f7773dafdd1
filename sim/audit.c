/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invariants of operations, checked in every run:
 *	- an operation ends in exactly one terminal event, by its deadline, or
 *	  when its node goes on that was paused then;
 *	- one that is reported not delivered is not delivered, now or later;
 *	- of several attempts to send it, at most one arrives.
 * An operation is remembered until it has ended and no packet has its mark.
 */
#include <inttypes.h>

#include "lnet/message/out.h"
#include "lnet/message/wire.h"
#include "sim/sim_priv.h"

/* Most copies of one attempt that the network and fault rules can make. */
#define COPIES_MOST 16

struct audit_op {
	struct hash_node hash; /* in sim->ops, until the operation has ended */
	struct sim_node *n;    /* valid while the operation has not ended */
	unsigned int index;    /* index of that node */
	struct lnet *node;
	uint64_t op;
	uint64_t deadline;
	/* number of packets with its mark, and 1 until the operation has ended
	 */
	uint32_t refs;
	uint32_t accepted; /* number of its packets that have found an MD */
	/* number of attempts: times that its request was given to an LND */
	uint32_t tries;
	uint32_t forwards; /* number of times that routers have forwarded it */
	/* number of the attempt that has arrived; 0: none has */
	uint32_t got;
	bool denied; /* the operation was reported not delivered */
	bool late;   /* it was reported that the operation is late */
	uint32_t type;
	uint64_t match_bits;
};

static uint64_t op_hash(const struct lnet *node, uint64_t op)
{
	return hash_u64(op, (uint64_t)(uintptr_t)node);
}

static struct audit_op *op_find(struct lnet_sim *sim, const struct lnet *node,
				uint64_t op)
{
	struct hash_node *n = hash_first(&sim->ops, op_hash(node, op));

	for (; n; n = hash_next(n)) {
		struct audit_op *a = container_of(n, struct audit_op, hash);

		if (a->node == node && a->op == op)
			return a;
	}
	return NULL;
}

static void audit_op_put(struct lnet_sim *sim, struct audit_op *a)
{
	if (--a->refs == 0)
		pool_put(&sim->audit_ops, a);
}

size_t audit_op_size(void)
{
	return sizeof(struct audit_op);
}

/* ---- the log ---- */

static void digest(struct lnet_sim *sim, const void *what, size_t len)
{
	sim->stats.events++;
	sim->digest = hash_bytes(what, len, sim->digest);
}

static void digest_event(struct lnet_sim *sim, unsigned int index,
			 const struct ulnet_event *ev)
{
	uint64_t record[] = { lnet_sim_now(sim),    index,	    ev->type,
			      (uint64_t)ev->status, ev->match_bits, ev->mlength,
			      ev->outcome,	    ev->unlinked };

	digest(sim, record, sizeof(record));
}

static void trace_time(struct lnet_sim *sim)
{
	fprintf(sim->trace, "%14.6f ms  ", (double)lnet_sim_now(sim) / 1e6);
}

static void trace_event(struct lnet_sim *sim, unsigned int index,
			const struct ulnet_event *ev)
{
	if (!sim->trace)
		return;
	trace_time(sim);
	fprintf(sim->trace,
		"node %-4u event %-6s bits %#" PRIx64
		" status %d length %u%s%s%s\n",
		index, lnet_event_name(ev->type), ev->match_bits, ev->status,
		ev->mlength, ev->terminal ? " " : "",
		ev->terminal ? lnet_outcome_name(ev->outcome) : "",
		ev->type == LNET_EVENT_REPLY && ev->status ? ", data lost"
							   : "");
}

void audit_note(struct lnet_sim *sim, const char *what, unsigned int index)
{
	uint64_t record[] = { lnet_sim_now(sim), index,
			      hash_bytes(what, strlen(what), 0) };

	digest(sim, record, sizeof(record));
	if (!sim->trace)
		return;
	trace_time(sim);
	fprintf(sim->trace, "node %-4u %s\n", index, what);
}

static const char *type_name(uint32_t type)
{
	static const char *const names[] = { "ACK", "PUT", "GET", "REPLY" };

	return type < ARRAY_SIZE(names) ? names[type] : "?";
}

const char *const audit_fates[SIM_FATES] = {
	[SIM_ARRIVES] = "arrives",
	[SIM_NOBODY] = "finds nobody",
	[SIM_LOST] = "lost",
	[SIM_DUPLICATE] = "duplicated",
	[SIM_REFUSED] = "refused",
	[SIM_STALLED] = "stalled",
	[SIM_MUTE] = "sent, not told",
	[SIM_ERROR] = "error told",
	[SIM_CUT] = "cut",
	[SIM_OVERTAKEN] = "may be overtaken",
	[SIM_PUSHED] = "pushed",
};

static void net_trace(void *arg, enum sim_fate fate,
		      const struct ulnet_nid *src, const struct ulnet_nid *dst,
		      const void *bytes, uint32_t length)
{
	struct lnet_sim *sim = arg;
	char a[LNET_NIDSTR_SIZE], b[LNET_NIDSTR_SIZE];
	struct {
		uint64_t now;
		struct ulnet_nid src, dst;
		uint32_t fate, length;
	} record = { lnet_sim_now(sim), *src, *dst, fate, length };
	struct lnet_hdr hdr = { .type = UINT32_MAX };

	digest(sim, &record, sizeof(record));
	sim->fates[fate]++;
	if (!sim->trace)
		return;
	if (bytes)
		hdr_decode(&hdr, bytes,
			   lnet_nid_is_nid4(src) && lnet_nid_is_nid4(dst)
				   ? LNET_HDR_SIZE
				   : LNET_HDR_LARGE_SIZE);
	trace_time(sim);
	fprintf(sim->trace, "%s > %s  %s %s, %u bytes\n",
		lnet_nid_format(src, a, sizeof(a)),
		lnet_nid_format(dst, b, sizeof(b)),
		bytes ? type_name(hdr.type) : "message", audit_fates[fate],
		length);
}

/* ---- operations ---- */

/* Called when the operation of what was pushed must have begun: what LNet has
 * taken for refused, it sends again. */
static void pushed_check(struct lnet_sim *sim)
{
	if (!sim->pushed)
		return;
	sim->pushed = NULL;
	lnet_sim_fail(sim, "a message was pushed, but LNet does not know it");
}

/* Returns what is to be known of an operation whose request is @req. */
static struct audit_op *begin_new(struct lnet_sim *sim,
				  const struct lnd_msg *req)
{
	struct audit_op *a = NULL;

	if (sim->pushed_as == req) {
		a = sim->pushed;
		sim->pushed = NULL;
	}
	pushed_check(sim);
	if (!a) {
		a = pool_get(&sim->audit_ops);
		if (a)
			*a = (struct audit_op){ 0 };
	}
	return a;
}

static void audit_on_begin(void *arg, struct lnet *node, uint64_t op,
			   struct lnd_msg *req, uint64_t deadline)
{
	struct sim_node *n = arg;
	struct lnet_sim *sim = n->sim;
	struct audit_op *a = begin_new(sim, req);

	sim->stats.operations++;
	if (a) {
		a->n = n;
		a->index = n->index;
		a->node = node;
		a->op = op;
		a->deadline = deadline;
		a->refs++;
	}
	if (!a || hash_add(&sim->ops, &a->hash, op_hash(node, op))) {
		lnet_sim_fail(sim, "no memory to watch an operation");
		if (a)
			audit_op_put(sim, a);
		return;
	}
	req->mark = a;
	req->mark_number = 0;
}

/* Returns by when, ns, @a must have ended: at its deadline, or, if its node
 * stands still then, when the node goes on. */
static uint64_t op_due(const struct audit_op *a)
{
	return MAX(a->deadline, a->n->paused);
}

static void op_ended(struct audit_op *a, const struct ulnet_event *ev)
{
	struct lnet_sim *sim = a->n->sim;
	uint64_t now = lnet_sim_now(sim);

	if (now > op_due(a) && sim->crashing != a->n && !a->late)
		lnet_sim_fail(sim,
			      "node %u: operation, bits %#" PRIx64
			      ", ended %" PRIu64 " ns after its deadline",
			      a->n->index, ev->match_bits, now - a->deadline);
	a->denied = ev->outcome == LNET_OUTCOME_NOT_DELIVERED;
	a->match_bits = ev->match_bits;
	if (a->denied && a->accepted)
		lnet_sim_fail(sim,
			      "node %u: operation, bits %#" PRIx64
			      ", reported not delivered, but it was",
			      a->n->index, ev->match_bits);
	hash_del(&sim->ops, &a->hash);
	audit_op_put(sim, a);
}

static void audit_on_event(void *arg, struct lnet *node, uint64_t op,
			   const struct ulnet_event *ev)
{
	struct sim_node *n = arg;
	struct lnet_sim *sim = n->sim;
	struct audit_op *a;

	if (sim->crashing != n) {
		digest_event(sim, n->index, ev);
		trace_event(sim, n->index, ev);
	}
	if (!op)
		return;
	a = op_find(sim, node, op);
	if (!a)
		lnet_sim_fail(sim,
			      "node %u: %s event, bits %#" PRIx64
			      ", of an operation that has ended",
			      n->index, lnet_event_name(ev->type),
			      ev->match_bits);
	else if (ev->terminal)
		op_ended(a, ev);
}

/* Copies that the network makes of an attempt have the number of that attempt.
 */
static void try_accepted(const struct sim_node *n, struct audit_op *a,
			 uint32_t number)
{
	if (a->got && a->got != number)
		lnet_sim_fail(n->sim,
			      "node %u: operation %#" PRIx64 " of node %u was "
			      "sent again though it had arrived",
			      n->index, a->op, a->index);
	a->got = number;
}

static void on_accepted(void *arg, struct lnet *node, struct lnd_ni *ni,
			void *rx)
{
	struct sim_node *n = arg;
	struct audit_op *a;

	(void)node;
	if (ni->lnd != &simlnd)
		return;
	a = sim_net_rx_mark(rx);
	if (!a)
		return;
	a->accepted++;
	try_accepted(n, a, sim_net_rx_number(rx));
	if (a->denied)
		lnet_sim_fail(n->sim,
			      "node %u: operation of node %u, bits %#" PRIx64
			      ", was reported not delivered, and now is",
			      n->index, a->index, a->match_bits);
}

static void on_leaked(void *arg, struct lnet *node, const char *what,
		      uint32_t count)
{
	struct sim_node *n = arg;

	(void)node;
	lnet_sim_fail(n->sim, "node %u: closed, and %u %s were not freed",
		      n->index, count, what);
}

/* An attempt passes each node at most once, except for copies. */
static uint32_t forwards_most(const struct sim_node *n,
			      const struct audit_op *a)
{
	return (a->tries + 1) * n->sim->nnodes * COPIES_MOST;
}

/* The forwarded message belongs to the same attempt as the message that was
 * received. */
static void on_forward(void *arg, struct lnet *node, struct lnd_ni *ni,
		       void *rx, struct lnd_msg *msg)
{
	const struct sim_node *n = arg;
	struct audit_op *a;

	(void)node;
	if (ni->lnd != &simlnd)
		return;
	a = msg->mark = sim_net_rx_mark(rx);
	msg->mark_number = sim_net_rx_number(rx);
	if (!a)
		return;
	a->refs++;
	if (++a->forwards == forwards_most(n, a))
		lnet_sim_fail(
			n->sim,
			"node %u: a message of node %u, bits %#" PRIx64
			", goes round: routers have passed it on %u times",
			n->index, a->index, a->match_bits, a->forwards);
}

static void on_forwarded(void *arg, struct lnet *node, struct lnd_msg *msg)
{
	const struct sim_node *n = arg;

	(void)node;
	if (msg->mark)
		audit_op_put(n->sim, msg->mark);
	msg->mark = NULL;
}

void audit_watch(struct sim_node *n)
{
	n->observer = (struct lnet_observer){
		.begin = audit_on_begin,
		.event = audit_on_event,
		.accepted = on_accepted,
		.forward = on_forward,
		.forwarded = on_forwarded,
		.leaked = on_leaked,
		.arg = n,
	};
}

static uint32_t net_hold(void *arg, const struct lnd_msg *msg)
{
	struct audit_op *a = msg->mark;

	(void)arg;
	a->refs++;
	return msg->mark_number ? msg->mark_number : a->tries;
}

static void net_send(void *arg, const struct lnd_msg *msg, uint64_t down)
{
	struct audit_op *a = msg->mark;

	if (a && !msg->mark_number)
		a->tries++;
	way_send(arg, msg, down);
}

/* @copy counts as a packet. An operation that goes the straight way begins only
 * once its request was pushed (op_push()): the request has no mark then. */
static void net_push(void *arg, const struct lnd_msg *msg, struct lnd_msg *copy)
{
	const struct msg_out *out = container_of(msg, struct msg_out, lnd);
	struct lnet_sim *sim = arg;
	struct audit_op *a = msg->mark;

	pushed_check(sim);
	if (a || out->role != OUT_OP) {
		copy->mark_number = a ? msg->mark_number : 0;
		net_send(arg, msg, TIME_NEVER);
	} else {
		a = sim->pushed = pool_get(&sim->audit_ops);
		sim->pushed_as = msg;
		if (a)
			*a = (struct audit_op){ .tries = 1 };
	}
	copy->mark = a;
	if (a)
		a->refs++;
}

static void net_drop(void *arg, void *mark)
{
	audit_op_put(arg, mark);
}

const struct sim_net_watch audit_net_watch = {
	.hold = net_hold,
	.drop = net_drop,
	.push = net_push,
	.send = net_send,
	.trace = net_trace,
};

void audit_check(struct lnet_sim *sim, bool closed)
{
	uint64_t now = lnet_sim_now(sim);
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	pushed_check(sim);
	while ((n = hash_walk(&sim->ops, &bucket, n))) {
		struct audit_op *a = container_of(n, struct audit_op, hash);

		if (a->late || (!closed && now <= op_due(a)))
			continue;
		a->late = true;
		lnet_sim_fail(sim,
			      closed ? "node %u: operation %#" PRIx64
				       " never ended"
				     : "node %u: operation %#" PRIx64
				       " is past its deadline",
			      a->n->index, a->op);
	}
	while (closed && sim->ops.count) {
		struct audit_op *a;

		bucket = 0;
		a = container_of(hash_walk(&sim->ops, &bucket, NULL),
				 struct audit_op, hash);
		hash_del(&sim->ops, &a->hash);
		audit_op_put(sim, a);
	}
}
