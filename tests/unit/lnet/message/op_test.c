/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How operations end: exactly once, by their deadline, and with an outcome that
 * says what is known of them then.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77
#define SECOND UINT64_C(1000000) /* us */
#define ALWAYS LNET_SIM_ALWAYS

static struct seen seen, sent;
static uint8_t memory[4096], source[4096];

static struct ulnet_md_handle begin(struct lnet_sim *sim, bool get, bool ack,
				    uint64_t timeout, uint32_t options)
{
	struct ulnet_md umd = md_of(source, 100, options, &sent);
	struct ulnet_md_handle md;
	int rc;

	umd.threshold = 2;
	umd.timeout = timeout;
	md = bind_md(lnet_sim_node(sim, 1), &umd);
	if (get)
		rc = LNetGet(LNET_NID_ANY, md, nth_id(0), PORTAL, BITS, 0);
	else
		rc = LNetPut(LNET_NID_ANY, md, ack, nth_id(0), PORTAL, BITS, 0,
			     0);
	cr_assert_eq(rc, 0);
	cr_assert_eq(sent.n, 0, "called back before it returned");
	return md;
}

static struct lnet_sim *target_and_sender(void)
{
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(
		memory, sizeof(memory),
		LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE, &seen);

	seen.n = 0;
	sent.n = 0;
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	return sim;
}

/* ---- every kind of end ---- */

enum { PUT, PUT_ACK, GET };

/* @there is the link from the sender to the target, @back the one of the
 * answer. */
struct op_case {
	const char *what;
	unsigned int op;
	struct ulnet_sim_link there, back;
	unsigned int events;
	enum ulnet_event_type last;
	int status;
	enum ulnet_outcome outcome;
	enum ulnet_cause cause;
	uint64_t from, to;	/* ms: ends in between */
	unsigned int delivered; /* events at the target */
};

#define LATENCY .latency = 10 * MSEC
#define TIMEOUT 1000

/* clang-format off */
static const struct op_case cases[] = {
	{ "PUT", PUT, { LATENCY }, { LATENCY }, 1, LNET_EVENT_SEND, 0,
	  LNET_OUTCOME_UNKNOWN, LNET_CAUSE_OK, 0, 0, 1 },
	{ "PUT, ACK", PUT_ACK, { LATENCY }, { LATENCY }, 2, LNET_EVENT_ACK, 0,
	  LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK, 20, 20, 1 },
	{ "GET", GET, { LATENCY }, { LATENCY }, 2, LNET_EVENT_REPLY, 0,
	  LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK, 20, 20, 1 },

	{ "lost PUT", PUT, { .loss = ALWAYS }, { LATENCY }, 1, LNET_EVENT_SEND,
	  0, LNET_OUTCOME_UNKNOWN, LNET_CAUSE_OK, 0, 0, 0 },
	{ "lost PUT, ACK", PUT_ACK, { .loss = ALWAYS }, { LATENCY }, 2,
	  LNET_EVENT_UNLINK, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
	  LNET_CAUSE_RESPONSE_TIMEOUT, TIMEOUT, TIMEOUT, 0 },
	{ "lost GET", GET, { .loss = ALWAYS }, { LATENCY }, 2,
	  LNET_EVENT_UNLINK, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
	  LNET_CAUSE_RESPONSE_TIMEOUT, TIMEOUT, TIMEOUT, 0 },
	{ "lost ACK", PUT_ACK, { LATENCY }, { .loss = ALWAYS }, 2,
	  LNET_EVENT_UNLINK, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
	  LNET_CAUSE_RESPONSE_TIMEOUT, TIMEOUT, TIMEOUT, 1 },
	{ "lost REPLY", GET, { LATENCY }, { .loss = ALWAYS }, 2,
	  LNET_EVENT_UNLINK, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
	  LNET_CAUSE_RESPONSE_TIMEOUT, TIMEOUT, TIMEOUT, 1 },

	/* three attempts, with pauses of 10 and 20 ms */
	{ "refused PUT", PUT, { .refuse = ALWAYS, LATENCY }, { LATENCY }, 1,
	  LNET_EVENT_SEND, -EHOSTUNREACH, LNET_OUTCOME_NOT_DELIVERED,
	  LNET_CAUSE_REMOTE_DROPPED, 90, 90, 0 },
	{ "refused PUT, ACK", PUT_ACK, { .refuse = ALWAYS }, { LATENCY }, 1,
	  LNET_EVENT_SEND, -EHOSTUNREACH, LNET_OUTCOME_NOT_DELIVERED,
	  LNET_CAUSE_REMOTE_DROPPED, 30, 30, 0 },
	{ "refused GET", GET, { .refuse = ALWAYS }, { LATENCY }, 1,
	  LNET_EVENT_SEND, -EHOSTUNREACH, LNET_OUTCOME_NOT_DELIVERED,
	  LNET_CAUSE_REMOTE_DROPPED, 30, 30, 0 },

	{ "stalled PUT", PUT, { .stall = ALWAYS }, { LATENCY }, 1,
	  LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_NOT_DELIVERED,
	  LNET_CAUSE_LOCAL_TIMEOUT, TIMEOUT, TIMEOUT, 0 },
	{ "stalled PUT, ACK", PUT_ACK, { .stall = ALWAYS }, { LATENCY }, 1,
	  LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_NOT_DELIVERED,
	  LNET_CAUSE_LOCAL_TIMEOUT, TIMEOUT, TIMEOUT, 0 },
	{ "stalled GET", GET, { .stall = ALWAYS }, { LATENCY }, 1,
	  LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_NOT_DELIVERED,
	  LNET_CAUSE_LOCAL_TIMEOUT, TIMEOUT, TIMEOUT, 0 },

	{ "mute PUT", PUT, { .mute = ALWAYS }, { LATENCY }, 1, LNET_EVENT_SEND,
	  -ETIMEDOUT, LNET_OUTCOME_UNKNOWN, LNET_CAUSE_NETWORK_TIMEOUT, TIMEOUT,
	  TIMEOUT, 1 },
	/* The answer comes, and proves that the request was delivered; yet the
	 * operation ends only when the request does. */
	{ "mute PUT, ACK", PUT_ACK, { .mute = ALWAYS }, { LATENCY }, 2,
	  LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_DELIVERED,
	  LNET_CAUSE_NETWORK_TIMEOUT, TIMEOUT, TIMEOUT, 1 },
	{ "mute GET", GET, { .mute = ALWAYS }, { LATENCY }, 2, LNET_EVENT_SEND,
	  -ETIMEDOUT, LNET_OUTCOME_DELIVERED, LNET_CAUSE_NETWORK_TIMEOUT,
	  TIMEOUT, TIMEOUT, 1 },
	{ "mute PUT, lost ACK", PUT_ACK, { .mute = ALWAYS }, { .loss = ALWAYS },
	  1, LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
	  LNET_CAUSE_NETWORK_TIMEOUT, TIMEOUT, TIMEOUT, 1 },

	/* The request may have arrived or not: nobody can know. */
	{ "PUT with an error", PUT, { .error = ALWAYS, .loss = ALWAYS },
	  { LATENCY }, 1, LNET_EVENT_SEND, -EIO, LNET_OUTCOME_UNKNOWN,
	  LNET_CAUSE_LOCAL_ERROR, 0, 0, 0 },
	{ "GET with an error", GET, { .error = ALWAYS, .loss = ALWAYS },
	  { LATENCY }, 1, LNET_EVENT_SEND, -EIO, LNET_OUTCOME_UNKNOWN,
	  LNET_CAUSE_LOCAL_ERROR, 0, 0, 0 },

	{ "answer after the deadline", PUT_ACK, { LATENCY },
	  { .latency = 2000 * MSEC }, 2, LNET_EVENT_UNLINK, -ETIMEDOUT,
	  LNET_OUTCOME_UNKNOWN, LNET_CAUSE_RESPONSE_TIMEOUT, TIMEOUT, TIMEOUT,
	  1 },
	{ "answer just in time", PUT_ACK, { LATENCY }, { .latency = 989 * MSEC },
	  2, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK, 999, 999,
	  1 },
	{ "sent twice", PUT_ACK, { .duplicate = ALWAYS }, { LATENCY }, 2,
	  LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK, 10, 10, 2 },
	{ "GET sent twice", GET, { .duplicate = ALWAYS }, { LATENCY }, 2,
	  LNET_EVENT_REPLY, 0, LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK, 10, 10,
	  2 },
	{ "answered twice", PUT_ACK, { LATENCY }, { .duplicate = ALWAYS }, 2,
	  LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK, 10, 10, 1 },
	{ "replied twice", GET, { LATENCY }, { .duplicate = ALWAYS }, 2,
	  LNET_EVENT_REPLY, 0, LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK, 10, 10,
	  1 },

	/* The payload breaks off: the target has only a part of it. */
	{ "PUT cut off", PUT_ACK, { .cut = ALWAYS }, { LATENCY }, 2,
	  LNET_EVENT_UNLINK, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
	  LNET_CAUSE_RESPONSE_TIMEOUT, TIMEOUT, TIMEOUT, 1 },
	/* The REPLY breaks off: the target has answered, but there is no data.
	 */
	{ "REPLY cut off", GET, { LATENCY }, { .cut = ALWAYS }, 2,
	  LNET_EVENT_REPLY, -EIO, LNET_OUTCOME_DELIVERED,
	  LNET_CAUSE_REMOTE_ERROR, 10, 10, 1 },
};
/* clang-format on */

static void run_case(const struct op_case *c)
{
	struct lnet_sim *sim = target_and_sender();
	const struct ulnet_event *last;
	uint64_t ended = 0;

	link_set(sim, 1, 0, &c->there);
	link_set(sim, 0, 1, &c->back);
	begin(sim, c->op == GET, c->op == PUT_ACK, TIMEOUT * 1000, 0);
	while (!sent.n || !sent.ev[sent.n - 1].terminal) {
		ended = lnet_sim_now(sim);
		cr_assert_leq(ended, 3000 * MSEC, "%s: does not end", c->what);
		lnet_sim_run(sim, MSEC);
	}
	last = &sent.ev[sent.n - 1];
	cr_assert_eq(sent.n, c->events, "%s: %u events", c->what, sent.n);
	cr_assert_eq(last->type, c->last, "%s: %s", c->what,
		     lnet_event_name(last->type));
	cr_assert_eq(last->status, c->status, "%s: %d", c->what, last->status);
	cr_assert_eq(last->outcome, c->outcome, "%s: %s", c->what,
		     lnet_outcome_name(last->outcome));
	cr_assert_eq(last->cause, c->cause, "%s: %s", c->what,
		     lnet_cause_name(last->cause));
	cr_assert_geq(last->elapsed, c->from * 1000, "%s: after %lu us",
		      c->what, (unsigned long)last->elapsed);
	/* Timers may be 2 ms late. */
	cr_assert_leq(last->elapsed, (c->to + 2) * 1000, "%s: after %lu us",
		      c->what, (unsigned long)last->elapsed);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, c->events, "%s: more events", c->what);
	cr_assert_eq(seen.n, c->delivered, "%s: %u times", c->what, seen.n);
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "rst_alloc"), 0);
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "errors"), c->status != 0,
		     "%s", c->what);
	cluster_end(sim);
}

Test(op, every_kind_of_end)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		run_case(&cases[i]);
}

/* ---- a REPLY or ACK that overtakes the SEND ---- */

Test(op, answer_before_sent)
{
	for (int get = 0; get < 2; get++) {
		struct lnet_sim *sim = target_and_sender();
		const struct ulnet_sim_link mute = { .mute = ALWAYS };

		link_set(sim, 1, 0, &mute);
		begin(sim, get, true, SECOND, 0);
		lnet_sim_run(sim, MSEC);
		cr_assert_eq(sent.n, 1);
		cr_assert_eq(sent.ev[0].type,
			     get ? LNET_EVENT_REPLY : LNET_EVENT_ACK);
		cr_assert(!sent.ev[0].terminal);
		cr_assert(!sent.ev[0].unlinked);
		cr_assert_eq(sent.ev[0].outcome, LNET_OUTCOME_NONE);
		cr_assert_eq(sent.ev[0].status, 0);
		lnet_sim_run_all(sim);
		cr_assert_eq(sent.n, 2);
		cr_assert_eq(sent.ev[1].type, LNET_EVENT_SEND);
		cr_assert(sent.ev[1].terminal);
		cr_assert(sent.ev[1].unlinked);
		cluster_end(sim);
	}
}

/* As above, but the REPLY is still being stored when the SEND comes: storing
 * takes 100 ms, the request 72 ms. */
Test(op, sent_while_receiving)
{
	const struct ulnet_sim_link slow = { .bandwidth = 1000 };

	for (int late = 0; late < 2; late++) {
		struct lnet_sim *sim = target_and_sender();

		cluster_links(sim, &slow);
		begin(sim, true, false, late ? 90000 : SECOND, 0);
		lnet_sim_run_all(sim);
		seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_REPLY, 0);
		cr_assert_eq(sent.ev[0].status, 0);
		cr_assert(!sent.ev[0].terminal);
		if (late)
			seen_end(&sent, LNET_EVENT_REPLY, -ETIMEDOUT,
				 LNET_OUTCOME_DELIVERED,
				 LNET_CAUSE_NETWORK_TIMEOUT);
		else
			seen_end(&sent, LNET_EVENT_REPLY, 0,
				 LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK);
		cr_assert_eq(sent.ev[1].mlength, late ? 0 : 100);
		cluster_end(sim);
	}
}

/* ---- tracking ---- */

/* Without tracking the answer is accepted whenever it comes. */
Test(op, no_tracking)
{
	const struct ulnet_sim_link late = { .latency = 5000 * MSEC };
	const struct ulnet_sim_link late_and_slow = { .latency = 5000 * MSEC,
						      .bandwidth = 1000 };

	for (int get = 0; get < 2; get++) {
		struct lnet_sim *sim = target_and_sender();

		link_set(sim, 0, 1, get ? &late_and_slow : &late);
		begin(sim, get, true, SECOND, LNET_MD_NO_TRACK_RESPONSE);
		lnet_sim_run(sim, 4000 * MSEC);
		seen_types(&sent, LNET_EVENT_SEND, 0);
		lnet_sim_run_all(sim);
		cr_assert_eq(sent.n, 2);
		seen_end(&sent, get ? LNET_EVENT_REPLY : LNET_EVENT_ACK, 0,
			 LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK);
		cr_assert_eq(counter(lnet_sim_node(sim, 1),
				     "response_timeout_count"),
			     0);
		cluster_end(sim);
	}
}

/* With both options set the answer is not tracked. */
Test(op, no_tracking_wins)
{
	const struct ulnet_sim_link late = { .latency = 5000 * MSEC };
	struct lnet_sim *sim = target_and_sender();

	link_set(sim, 0, 1, &late);
	begin(sim, false, true, SECOND,
	      LNET_MD_NO_TRACK_RESPONSE | LNET_MD_TRACK_RESPONSE);
	lnet_sim_run_all(sim);
	seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_ACK, 0);
	cluster_end(sim);
}

Test(op, response_timeout)
{
	const struct ulnet_sim_link lossy = { .loss = ALWAYS };
	struct lnet_sim *sim = target_and_sender();
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_md_handle md;

	link_set(sim, 1, 0, &lossy);
	md = begin(sim, true, false, SECOND, 0);
	lnet_sim_run(sim, 500 * MSEC);
	cr_assert_eq(counter(node, "rst_alloc"), 1);
	cr_assert_eq(counter(node, "msgs_alloc"), 1);
	lnet_sim_run_all(sim);
	seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_UNLINK, 0);
	cr_assert(sent.ev[1].unlinked);
	cr_assert_eq(LNetMDUnlink(md), -ENOENT);
	cr_assert_eq(counter(node, "rst_alloc"), 0);
	cr_assert_eq(counter(node, "msgs_alloc"), 0);
	cr_assert_eq(counter(node, "response_timeout_count"), 1);
	cluster_end(sim);
}

/* An MD without a timeout gets the node's. */
Test(op, timeout_of_the_node)
{
	const struct ulnet_sim_link lossy = { .loss = ALWAYS };
	struct ulnet_conf conf;
	struct lnet_sim *sim;

	lnet_conf_init(&conf);
	conf.transaction_timeout = 7 * SECOND;
	sim = cluster_with(2, 1, &conf);
	sent.n = 0;
	cluster_links(sim, &lossy);
	begin(sim, true, false, 0, 0);
	lnet_sim_run(sim, 6990 * MSEC);
	cr_assert_eq(sent.n, 1);
	lnet_sim_run(sim, 20 * MSEC);
	cr_assert_eq(sent.n, 2);
	cluster_end(sim);
}

/* ---- thresholds of active MDs ---- */

/* With a threshold of 1 there is none left for the ACK: the SEND ends the
 * operation, and the ACK is dropped. */
Test(op, no_threshold_for_the_answer)
{
	struct lnet_sim *sim = target_and_sender();
	struct ulnet_md umd = md_of(source, 10, 0, &sent);

	umd.threshold = 1;
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(lnet_sim_node(sim, 1), &umd),
			     LNET_ACK_REQ, nth_id(0), PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 1);
	seen_types(&sent, LNET_EVENT_SEND, 0);
	cr_assert(sent.ev[0].terminal);
	cr_assert(sent.ev[0].unlinked);
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "drop_bad_handle"), 1);
	cluster_end(sim);
}

/* An MD with an infinite threshold serves any number of operations at once. */
Test(op, many_at_once)
{
	enum { N = 200 };
	struct lnet_sim *sim = target_and_sender();
	struct ulnet_md umd = md_of(source, 10, 0, &sent);
	struct ulnet_md_handle md = bind_md(lnet_sim_node(sim, 1), &umd);
	unsigned int acks = 0;

	for (unsigned int i = 0; i < N; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, nth_id(0),
				     PORTAL, BITS, 10 * i, i),
			     0);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, 2 * N);
	for (unsigned int i = 0; i < sent.n; i++) {
		cr_assert(!sent.ev[i].unlinked);
		acks += sent.ev[i].type == LNET_EVENT_ACK;
	}
	cr_assert_eq(acks, N);
	/* The target gets the PUTs in the order in which they were sent. */
	for (unsigned int i = 0; i < N; i++)
		cr_assert_eq(seen.ev[i].hdr_data, i);
	cr_assert_eq(LNetMDUnlink(md), 0);
	cluster_end(sim);
}

/* ---- what cannot begin, and what ends at once ---- */

Test(op, bad_arguments)
{
	struct lnet_sim *sim = target_and_sender();
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_md umd = md_of(source, 10, 0, &sent);
	struct ulnet_md_handle md = bind_md(node, &umd);
	struct ulnet_id any_pid = nth_id(0);

	any_pid.pid = LNET_PID_ANY;
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, nth_id(0),
			     LNET_PORTALS, BITS, 0, 0),
		     -EINVAL);
	cr_assert_eq(
		LNetGet(LNET_NID_ANY, md, nth_id(0), LNET_PORTALS, BITS, 0),
		-EINVAL);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, ANY_ID, PORTAL,
			     BITS, 0, 0),
		     -EINVAL);
	cr_assert_eq(LNetGet(LNET_NID_ANY, md, any_pid, PORTAL, BITS, 0),
		     -EINVAL);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, 0);
	cluster_end(sim);
}

/* If there is no path nothing is sent, and the event says so. */
Test(op, no_path)
{
	static const struct {
		const char *self, *target;
		int status;
		enum ulnet_cause cause;
	} ways[] = {
		{ NULL, "10.0.0.1@tcp9", -EHOSTUNREACH,
		  LNET_CAUSE_LOCAL_NO_ROUTE },
		{ NULL, "1@lo", -EHOSTUNREACH, LNET_CAUSE_LOCAL_NO_ROUTE },
		{ NULL, "10.0.0.1@o2ib", -EHOSTUNREACH,
		  LNET_CAUSE_LOCAL_NO_ROUTE },
		{ "10.9.9.9@tcp", "10.0.0.1@tcp", -EINVAL,
		  LNET_CAUSE_LOCAL_ERROR },
		{ "0@lo", "10.0.0.1@tcp", -EINVAL, LNET_CAUSE_LOCAL_ERROR },
		{ "10.0.0.2@tcp", "10.0.0.1@tcp9", -EHOSTUNREACH,
		  LNET_CAUSE_LOCAL_NO_ROUTE },
		{ "10.9.9.9@tcp", "0@lo", -EINVAL, LNET_CAUSE_LOCAL_ERROR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct lnet_sim *sim = target_and_sender();
		struct ulnet_md umd = md_of(source, 10, 0, &sent);
		struct ulnet_nid self =
			ways[i].self ? nid_of(ways[i].self) : LNET_NID_ANY;

		umd.threshold = 2;
		cr_assert_eq(LNetPut(self, bind_md(lnet_sim_node(sim, 1), &umd),
				     LNET_ACK_REQ, id_of(ways[i].target),
				     PORTAL, BITS, 0, 0),
			     0);
		cr_assert_eq(sent.n, 0);
		lnet_sim_run_all(sim);
		cr_assert_gt(sent.n, 0);
		cr_assert_eq(sent.ev[0].type, LNET_EVENT_SEND);
		cr_assert_eq(sent.ev[0].status, ways[i].status, "%s: %d",
			     ways[i].target, sent.ev[0].status);
		cr_assert_eq(sent.ev[0].cause, ways[i].cause);
		cr_assert_eq(sent.ev[0].outcome, LNET_OUTCOME_NOT_DELIVERED);
		cr_assert_eq(sent.ev[0].paths_tried, 0);
		cr_assert(lnet_nid_is_any(&sent.ev[0].path_local));
		cr_assert(lnet_nid_is_any(&sent.ev[0].path_peer));
		cluster_end(sim);
	}
}

Test(op, interface_is_down)
{
	struct lnet_sim *sim = target_and_sender();
	struct ulnet_id self = nth_id(1);

	cr_assert_eq(lnet_sim_ni_set(sim, &self.nid, false), 0);
	begin(sim, false, true, SECOND, 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.ev[0].status, -ENETDOWN);
	cr_assert_eq(sent.ev[0].outcome, LNET_OUTCOME_NOT_DELIVERED);
	sent.n = 0;
	cr_assert_eq(lnet_sim_ni_set(sim, &self.nid, true), 0);
	begin(sim, false, true, SECOND, 0);
	lnet_sim_run_all(sim);
	seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_ACK, 0);
	cluster_end(sim);
}

/* When its MD is unlinked, a send is canceled that waits for a credit, or in
 * the LND. */
Test(op, send_that_waits_is_canceled)
{
	enum { N = 12 }; /* 8 PUTs have credits */
	const struct ulnet_sim_link stalled = { .stall = ALWAYS };
	struct lnet_sim *sim = target_and_sender();
	struct ulnet_md_handle md[N];
	static struct seen each[N];

	link_set(sim, 1, 0, &stalled);
	for (unsigned int i = 0; i < N; i++) {
		struct ulnet_md umd = md_of(source, 10, 0, &each[i]);

		umd.threshold = 2;
		md[i] = bind_md(lnet_sim_node(sim, 1), &umd);
		cr_assert_eq(LNetPut(LNET_NID_ANY, md[i], LNET_ACK_REQ,
				     nth_id(0), PORTAL, BITS, 0, 0),
			     0);
	}
	lnet_sim_run(sim, MSEC);
	for (unsigned int i = 0; i < N; i++)
		cr_assert_eq(LNetMDUnlink(md[i]), 0);
	lnet_sim_run(sim, MSEC);
	for (unsigned int i = 0; i < N; i++) {
		cr_assert_eq(each[i].n, 1, "PUT %u", i);
		seen_end(&each[i], LNET_EVENT_SEND, -ECANCELED,
			 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_CANCELED);
		cr_assert(each[i].ev[0].unlinked);
	}
	cr_assert_eq(lnet_sim_check(sim), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 0);
	cluster_end(sim);
}

/* Cancels a GET of CPT @cpt by unlinking its MD after 80 ms: the request takes
 * 72 ms, and storing the payload of its REPLY 100 ms. If @mute, the node does
 * not know until the end that the GET was sent. */
static void cancel_reply(unsigned int cpts, unsigned int cpt, bool mute)
{
	const struct ulnet_sim_link there = { .bandwidth = 1000,
					      .mute = mute ? ALWAYS : 0 };
	const struct ulnet_sim_link slow = { .bandwidth = 1000 };
	struct lnet_sim *sim = cluster_with(2, cpts, NULL);
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE, NULL);
	struct ulnet_md_handle md;

	sent.n = 0;
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	cluster_links(sim, &slow);
	link_set(sim, 1, 0, &there);
	for (unsigned int i = 0; i <= cpt; i++) {
		umd = md_of(source, 100, 0, &sent);
		umd.threshold = 2;
		md = bind_md(lnet_sim_node(sim, 1), &umd);
	}
	cr_assert_eq(LNetGet(LNET_NID_ANY, md, nth_id(0), PORTAL, BITS, 0), 0);
	memset(memory, 1, 100);
	memset(source, 2, 100);
	lnet_sim_run(sim, 80 * MSEC);
	cr_assert_eq(sent.n, mute ? 0 : 1);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run(sim, 0);
	seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_REPLY, 0);
	seen_end(&sent, LNET_EVENT_REPLY, -ECANCELED, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_CANCELED);
	cr_assert_eq(sent.ev[0].status, mute ? -ECANCELED : 0);
	cr_assert_eq(sent.ev[0].cause,
		     mute ? LNET_CAUSE_CANCELED : LNET_CAUSE_OK);
	cr_assert_eq(sent.ev[1].mlength, 0);
	cr_assert(sent.ev[1].unlinked);
	memset(source, 3, 100);
	cr_assert_eq(lnet_sim_check(sim), 0);
	lnet_sim_run_all(sim);
	for (unsigned int i = 0; i < 100; i++)
		cr_assert_eq(source[i], 3, "written to after the last event");
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "errors"), 1);
	cluster_end(sim);
}

/* A REPLY whose payload is being stored is canceled when the MD is unlinked,
 * whichever CPT stores it. */
Test(op, answer_being_stored_is_canceled)
{
	for (int mute = 0; mute < 2; mute++) {
		cancel_reply(1, 0, mute);
		for (unsigned int i = 0; i < 3; i++)
			cancel_reply(3, i, mute);
	}
}

/* The deadline is that of the whole operation, which includes waiting for a
 * credit. */
Test(op, deadline_passes_in_the_queue)
{
	const struct ulnet_sim_link stalled = { .stall = ALWAYS };
	struct lnet_sim *sim = target_and_sender();
	static struct seen first;

	link_set(sim, 1, 0, &stalled);
	for (unsigned int i = 0; i < 8; i++) {
		struct ulnet_md umd = md_of(source, 10, 0, &first);

		umd.threshold = 1;
		umd.timeout = 5 * SECOND;
		cr_assert_eq(LNetPut(LNET_NID_ANY,
				     bind_md(lnet_sim_node(sim, 1), &umd),
				     LNET_NOACK_REQ, nth_id(0), PORTAL, BITS, 0,
				     0),
			     0);
	}
	begin(sim, false, true, 2 * SECOND, 0);
	lnet_sim_run(sim, 1990 * MSEC);
	cr_assert_eq(sent.n, 0);
	lnet_sim_run(sim, 20 * MSEC);
	cr_assert_gt(sent.n, 0);
	cr_assert_eq(sent.ev[0].status, -ETIMEDOUT);
	cr_assert_eq(sent.ev[0].outcome, LNET_OUTCOME_NOT_DELIVERED);
	cr_assert_eq(sent.ev[0].cause, LNET_CAUSE_LOCAL_TIMEOUT);
	cr_assert_eq(first.n, 0);
	cluster_end(sim);
}

/* ---- answers that come to another CPT ---- */

/* Each CPT GETs @length bytes. Returns how many of the REPLYs went through a
 * bounce buffer: none if they are long, since the CPT that owns the operation
 * says in time where they go. */
static uint64_t answers_bounced(uint32_t length)
{
	static uint8_t from[65536], to[65536];
	struct ulnet_md umd = md_of(from, length, LNET_MD_OP_GET, NULL);
	struct lnet_sim *sim = cluster_with(2, 3, NULL);
	struct lnet *node = lnet_sim_node(sim, 1);
	uint64_t bounced;

	memset(from, 7, length);
	umd.options |= LNET_MD_MANAGE_REMOTE;
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	for (unsigned int i = 0; i < 3; i++) {
		struct seen got = { .n = 0 };
		struct ulnet_md get = md_of(to, length, 0, &got);

		memset(to, 0, length);
		get.threshold = 2;
		cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(node, &get),
				     nth_id(0), PORTAL, BITS, 0),
			     0);
		lnet_sim_run(sim, 100 * MSEC);
		seen_end(&got, LNET_EVENT_REPLY, 0, LNET_OUTCOME_DELIVERED,
			 LNET_CAUSE_OK);
		cr_assert_eq(memcmp(from, to, length), 0);
	}
	bounced = counter(node, "aside");
	cluster_end(sim);
	return bounced;
}

Test(op, answer_to_another_cpt)
{
	cr_assert_eq(answers_bounced(65536), 0);
	cr_assert_eq(answers_bounced(1000), 2);
}

/* ---- PUTs for buffers of another CPT ---- */

struct posting {
	struct lnet *node;
	uint64_t bits;
	struct ulnet_md umd;
};

static int post_here(void *arg)
{
	struct posting *p = arg;

	post_md(p->node, PORTAL, p->bits, &p->umd);
	return 0;
}

/* As answers_bounced(), but for PUTs into a buffer of each CPT. */
static uint64_t puts_bounced(uint32_t length)
{
	static uint8_t from[65536], to[65536];
	struct lnet_sim *sim = cluster_with(2, 3, NULL);
	struct seen got = { .n = 0 };
	struct posting p = { .node = lnet_sim_node(sim, 0) };
	uint64_t bounced;

	memset(from, 7, length);
	p.umd = md_of(to, length, LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, &got);
	for (unsigned int i = 0; i < 3; i++) {
		p.bits = i;
		cr_assert_eq(lnet_call(p.node, i, post_here, &p), 0);
	}
	for (unsigned int i = 0; i < 3; i++) {
		memset(to, 0, length);
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, i, from,
			  length);
		lnet_sim_run(sim, 100 * MSEC);
		cr_assert_eq(got.n, i + 1);
		cr_assert_eq(memcmp(from, to, length), 0);
	}
	bounced = counter(p.node, "aside");
	cluster_end(sim);
	return bounced;
}

Test(op, put_to_another_cpt)
{
	cr_assert_eq(puts_bounced(65536), 0);
	cr_assert_eq(puts_bounced(1000), 2);
}

/* ---- the node goes ---- */

Test(op, close_ends_operations)
{
	const struct ulnet_sim_link lossy = { .loss = ALWAYS };
	struct lnet_sim *sim = target_and_sender();

	link_set(sim, 1, 0, &lossy);
	begin(sim, true, false, 0, 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_sim_free(sim), 0);
	seen_types(&sent, LNET_EVENT_SEND, LNET_EVENT_UNLINK, 0);
	seen_end(&sent, LNET_EVENT_UNLINK, -ESHUTDOWN, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_SHUTDOWN);
}

Test(op, close_ends_sends_that_wait)
{
	const struct ulnet_sim_link stalled = { .stall = ALWAYS };
	struct lnet_sim *sim = target_and_sender();
	struct ulnet_md umd = md_of(source, 10, 0, &sent);
	unsigned int aborted = 0, waited = 0;

	link_set(sim, 1, 0, &stalled);
	umd.threshold = 2;
	for (unsigned int i = 0; i < 20; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY,
				     bind_md(lnet_sim_node(sim, 1), &umd),
				     i % 2 ? LNET_ACK_REQ : LNET_NOACK_REQ,
				     nth_id(0), PORTAL, BITS, 0, 0),
			     0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_sim_free(sim), 0);
	for (unsigned int i = 0; i < sent.n; i++) {
		if (!sent.ev[i].terminal)
			continue;
		cr_assert_eq(sent.ev[i].status, -ESHUTDOWN);
		cr_assert_eq(sent.ev[i].outcome, LNET_OUTCOME_NOT_DELIVERED);
		aborted += sent.ev[i].paths_tried == 1;
		waited += sent.ev[i].paths_tried == 0;
	}
	cr_assert_eq(aborted, 8);
	cr_assert_eq(waited, 12);
}

/* The application of a crashed node gets no more events. */
Test(op, crash_is_silent)
{
	const struct ulnet_sim_link lossy = { .loss = ALWAYS };
	struct lnet_sim *sim = target_and_sender();

	link_set(sim, 1, 0, &lossy);
	begin(sim, true, false, 0, 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	seen_types(&sent, LNET_EVENT_SEND, 0);
	cr_assert_eq(lnet_sim_restart(sim, 1), 0);
	cluster_end(sim);
}
