/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of events, and the queues that hold events. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   UINT64_C(0xfedcba9876543210)
#define DATA   UINT64_C(0x0102030405060708)

static struct seen seen, sent;
static uint8_t memory[4096], source[4096];

/* ---- fields ---- */

/* Asserts the fields that are the same in all events of one MD. */
static void check_md(const struct ulnet_event *ev, struct ulnet_md_handle md,
		     void *start, struct seen *user, uint32_t options)
{
	cr_assert_eq(ev->md.node, md.node);
	cr_assert_eq(ev->md.cookie, md.cookie);
	cr_assert_eq(ev->md_start, start);
	cr_assert_eq(ev->user_ptr, user);
	cr_assert_eq(ev->md_options, options);
}

static bool id_is(const struct ulnet_id *id, const char *nid, uint32_t pid)
{
	return nid_is(&id->nid, nid) && id->pid == pid;
}

/* Returns a cluster of node 0, with pid 12345, which is the target, and node 1,
 * with pid 77, which begins operations. */
static struct lnet_sim *two_pids(void)
{
	const struct ulnet_sim_link link = { .latency = 3 * MSEC };
	struct lnet_sim *sim = cluster(1);
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.pid = 77;
	cr_assert_eq(plain_node(sim, "10.0.0.2@tcp", &conf, NULL, NULL), 1);
	cluster_links(sim, &link);
	return sim;
}

static void check_passive(const struct ulnet_event *ev, bool get)
{
	cr_assert_eq(ev->type, get ? LNET_EVENT_GET : LNET_EVENT_PUT);
	cr_assert_eq(ev->status, 0);
	cr_assert(!ev->unlinked);
	cr_assert(!ev->terminal);
	cr_assert_eq(ev->outcome, LNET_OUTCOME_NONE);
	cr_assert_eq(ev->cause, LNET_CAUSE_OK);
	cr_assert_eq(ev->msg_type, get ? LNET_MSG_GET : LNET_MSG_PUT);
	cr_assert(id_is(&ev->target, "10.0.0.1@tcp", 12345));
	cr_assert(id_is(&ev->initiator, "10.0.0.2@tcp", 77));
	cr_assert(nid_is(&ev->source, "10.0.0.2@tcp"));
	cr_assert(nid_is(&ev->sender, "10.0.0.2@tcp"));
	cr_assert(lnet_nid_is_any(&ev->path_local));
	cr_assert(lnet_nid_is_any(&ev->path_peer));
	cr_assert_eq(ev->paths_tried, 0);
	cr_assert_eq(ev->portal, PORTAL);
	cr_assert_eq(ev->match_bits, BITS);
	cr_assert_eq(ev->hdr_data, get ? 0 : DATA);
	cr_assert_eq(ev->elapsed, 0);
}

static void check_active(const struct ulnet_event *ev, bool get)
{
	cr_assert_eq(ev->msg_type, get ? LNET_MSG_GET : LNET_MSG_PUT);
	cr_assert(id_is(&ev->target, "10.0.0.1@tcp", 12345));
	cr_assert(nid_is(&ev->path_local, "10.0.0.2@tcp"));
	cr_assert(nid_is(&ev->path_peer, "10.0.0.1@tcp"));
	cr_assert_eq(ev->paths_tried, 1);
	cr_assert_eq(ev->portal, PORTAL);
	cr_assert_eq(ev->match_bits, BITS);
	cr_assert_eq(ev->cause, LNET_CAUSE_OK);
}

static void check_send(const struct ulnet_event *ev)
{
	cr_assert_eq(ev->type, LNET_EVENT_SEND);
	cr_assert_eq(ev->status, 0);
	cr_assert(!ev->unlinked);
	cr_assert(lnet_nid_is_any(&ev->initiator.nid));
	cr_assert_eq(ev->initiator.pid, 77);
	cr_assert(lnet_nid_is_any(&ev->source));
	cr_assert(lnet_nid_is_any(&ev->sender));
	cr_assert_eq(ev->elapsed, 0);
}

static void check_answer(const struct ulnet_event *ev)
{
	cr_assert_eq(ev->status, 0);
	cr_assert(ev->terminal);
	cr_assert(ev->unlinked);
	cr_assert_eq(ev->outcome, LNET_OUTCOME_DELIVERED);
	cr_assert(id_is(&ev->initiator, "10.0.0.1@tcp", 12345));
	cr_assert(nid_is(&ev->source, "10.0.0.1@tcp"));
	cr_assert(nid_is(&ev->sender, "10.0.0.1@tcp"));
	cr_assert_geq(ev->elapsed, 6000);
	cr_assert_leq(ev->elapsed, 8000);
}

Test(event, put)
{
	struct lnet_sim *sim = two_pids();
	uint32_t options =
		LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE | LNET_MD_TRUNCATE;
	struct ulnet_md umd = md_of(memory, 100, options, &seen);
	struct ulnet_md_handle passive, active;

	passive = post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	umd = md_of(source, 90, LNET_MD_TRACK_RESPONSE, &sent);
	umd.threshold = 2;
	active = bind_md(lnet_sim_node(sim, 1), &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, active, LNET_ACK_REQ, nth_id(0),
			     PORTAL, BITS, 30, DATA),
		     0);
	lnet_sim_run_all(sim);

	cr_assert_eq(seen.n, 1);
	check_passive(&seen.ev[0], false);
	check_md(&seen.ev[0], passive, memory, &seen, options);
	cr_assert_eq(seen.ev[0].rlength, 90);
	cr_assert_eq(seen.ev[0].mlength, 70);
	cr_assert_eq(seen.ev[0].offset, 30);

	cr_assert_eq(sent.n, 2);
	for (unsigned int i = 0; i < 2; i++) {
		check_active(&sent.ev[i], false);
		check_md(&sent.ev[i], active, source, &sent,
			 LNET_MD_TRACK_RESPONSE);
		cr_assert_eq(sent.ev[i].rlength, 90);
		cr_assert_eq(sent.ev[i].offset, 30);
		cr_assert_eq(sent.ev[i].hdr_data, DATA);
	}
	check_send(&sent.ev[0]);
	cr_assert(!sent.ev[0].terminal);
	cr_assert_eq(sent.ev[0].outcome, LNET_OUTCOME_NONE);
	cr_assert_eq(sent.ev[0].mlength, 90);
	cr_assert_eq(sent.ev[1].type, LNET_EVENT_ACK);
	check_answer(&sent.ev[1]);
	cr_assert_eq(sent.ev[1].mlength, 70);
	cr_assert_gt(sent.ev[1].sequence, sent.ev[0].sequence);
	cluster_end(sim);
}

Test(event, get)
{
	struct lnet_sim *sim = two_pids();
	uint32_t options =
		LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE | LNET_MD_TRUNCATE;
	struct ulnet_md umd = md_of(memory, 100, options, &seen);
	struct ulnet_md_handle passive, active;

	passive = post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	umd = md_of(source, 90, 0, &sent);
	umd.threshold = 2;
	active = bind_md(lnet_sim_node(sim, 1), &umd);
	cr_assert_eq(LNetGet(LNET_NID_ANY, active, nth_id(0), PORTAL, BITS, 30),
		     0);
	lnet_sim_run_all(sim);

	cr_assert_eq(seen.n, 1);
	check_passive(&seen.ev[0], true);
	check_md(&seen.ev[0], passive, memory, &seen, options);
	cr_assert_eq(seen.ev[0].rlength, 90);
	cr_assert_eq(seen.ev[0].mlength, 70);
	cr_assert_eq(seen.ev[0].offset, 30);

	cr_assert_eq(sent.n, 2);
	for (unsigned int i = 0; i < 2; i++) {
		check_active(&sent.ev[i], true);
		check_md(&sent.ev[i], active, source, &sent, 0);
		cr_assert_eq(sent.ev[i].hdr_data, 0);
	}
	check_send(&sent.ev[0]);
	cr_assert_eq(sent.ev[0].rlength, 90);
	cr_assert_eq(sent.ev[0].mlength, 90);
	cr_assert_eq(sent.ev[1].type, LNET_EVENT_REPLY);
	check_answer(&sent.ev[1]);
	cr_assert_eq(sent.ev[1].rlength, 70);
	cr_assert_eq(sent.ev[1].mlength, 70);
	cluster_end(sim);
}

/* A PUT without ACK ends with its SEND. */
Test(event, put_without_ack)
{
	struct lnet_sim *sim = two_pids();
	struct ulnet_md umd = md_of(source, 90, 0, &sent);

	umd.threshold = 1;
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(lnet_sim_node(sim, 1), &umd),
			     LNET_NOACK_REQ, nth_id(0), PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(sent.ev[0].type, LNET_EVENT_SEND);
	cr_assert(sent.ev[0].terminal);
	cr_assert(sent.ev[0].unlinked);
	cr_assert_eq(sent.ev[0].outcome, LNET_OUTCOME_UNKNOWN);
	check_active(&sent.ev[0], false);
	cluster_end(sim);
}

/* Of nodes with several NIDs, events name the one that the message was sent to,
 * and the one that it came from. */
Test(event, nids_of_both_rails)
{
	struct lnet_sim *sim;
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);

	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	cr_assert_eq(
		plain_node(sim, "10.0.0.1@tcp 10.1.0.1@tcp1", NULL, NULL, NULL),
		0);
	cr_assert_eq(
		plain_node(sim, "10.0.0.2@tcp 10.1.0.2@tcp1", NULL, NULL, NULL),
		1);
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	umd = md_of(source, 10, 0, &sent);
	umd.threshold = 2;
	cr_assert_eq(LNetPut(nid_of("10.1.0.2@tcp1"),
			     bind_md(lnet_sim_node(sim, 1), &umd), LNET_ACK_REQ,
			     id_of("10.1.0.1@tcp1"), PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 1);
	cr_assert(nid_is(&seen.ev[0].target.nid, "10.1.0.1@tcp1"));
	cr_assert(nid_is(&seen.ev[0].source, "10.1.0.2@tcp1"));
	cr_assert(nid_is(&seen.ev[0].sender, "10.1.0.2@tcp1"));
	cr_assert_eq(sent.n, 2);
	cr_assert(nid_is(&sent.ev[1].path_local, "10.1.0.2@tcp1"));
	cr_assert(nid_is(&sent.ev[1].path_peer, "10.1.0.1@tcp1"));
	cr_assert(nid_is(&sent.ev[1].source, "10.1.0.1@tcp1"));
	cluster_end(sim);
}

Test(event, sequence_counts)
{
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(memory, 1000, LNET_MD_OP_PUT, &seen);

	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	for (unsigned int i = 0; i < 10; i++)
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, BITS, "x",
			  1);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 10);
	for (unsigned int i = 1; i < 10; i++)
		cr_assert_eq(seen.ev[i].sequence, seen.ev[i - 1].sequence + 1);
	cluster_end(sim);
}

Test(event, words)
{
	cr_assert_str_eq(lnet_event_name(LNET_EVENT_GET), "GET");
	cr_assert_str_eq(lnet_event_name(LNET_EVENT_UNLINK), "UNLINK");
	cr_assert_str_eq(lnet_event_name((enum ulnet_event_type)0), "?");
	cr_assert_str_eq(lnet_event_name((enum ulnet_event_type)7), "?");
	cr_assert_str_eq(lnet_event_name((enum ulnet_event_type) - 1), "?");
	cr_assert_str_eq(lnet_outcome_name(LNET_OUTCOME_NOT_DELIVERED),
			 "not delivered");
	cr_assert_str_eq(lnet_outcome_name((enum ulnet_outcome)4), "?");
	cr_assert_str_eq(lnet_cause_name(LNET_CAUSE_RESPONSE_TIMEOUT),
			 "response timeout");
	cr_assert_str_eq(lnet_cause_name(LNET_CAUSE_COUNT), "?");
	for (int i = 0; i < LNET_CAUSE_COUNT; i++)
		cr_assert_str_neq(lnet_cause_name((enum ulnet_cause)i), "?");
}

/* ---- queues ---- */

static struct ulnet_eq_handle eq_of(struct lnet *node, uint32_t count)
{
	struct ulnet_eq_handle eq;

	cr_assert_eq(LNetEQAlloc(node, count, &eq), 0);
	return eq;
}

static struct ulnet_md queued(void *start, size_t len, uint32_t options,
			      struct ulnet_eq_handle eq)
{
	struct ulnet_md umd = md_of(start, len, options, NULL);

	umd.eq = eq;
	return umd;
}

Test(eq, bad_arguments)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_eq_handle eq = { NULL, 42 }, eqs[2];
	struct ulnet_event ev;

	cr_assert_eq(LNetEQAlloc(node, 0, &eq), -EINVAL);
	cr_assert_eq(LNetEQAlloc(node, UINT32_MAX, &eq), -EINVAL);
	cr_assert_eq(eq.cookie, 42);
	cr_assert_eq(LNetEQFree(LNET_EQ_NONE), -ENOENT);
	cr_assert_eq(LNetEQGet(LNET_EQ_NONE, &ev), -ENOENT);
	eq = eq_of(node, 1);
	cr_assert_eq(LNetEQGet(eq, &ev), 0);
	cr_assert_eq(LNetEQPoll(&eq, 0, 0, &ev, NULL), -EINVAL);
	cr_assert_eq(LNetEQPoll(&eq, -1, 0, &ev, NULL), -EINVAL);
	eqs[0] = eq;
	eqs[1] = eq_of(lnet_sim_node(sim, 1), 1);
	cr_assert_eq(LNetEQPoll(eqs, 2, 0, &ev, NULL), -EINVAL);
	eqs[1] = LNET_EQ_NONE;
	cr_assert_eq(LNetEQPoll(eqs, 2, 0, &ev, NULL), -EINVAL);
	cr_assert_eq(LNetEQFree(eq), 0);
	cr_assert_eq(LNetEQFree(eq), -ENOENT);
	cr_assert_eq(LNetEQGet(eq, &ev), -ENOENT);
	cr_assert_eq(LNetEQPoll(&eq, 1, 0, &ev, NULL), -ENOENT);
	cluster_end(sim);
}

/* Events come in their order, with the number of their queue. */
Test(eq, order)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_eq_handle eqs[2] = { eq_of(node, 20), eq_of(node, 20) };
	struct ulnet_event ev;
	int which = -1;

	for (unsigned int i = 0; i < 2; i++) {
		struct ulnet_md umd =
			queued(memory, 1000, LNET_MD_OP_PUT, eqs[i]);

		post_md(node, PORTAL, i, &umd);
	}
	for (unsigned int i = 0; i < 10; i++)
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, 1, source,
			  i);
	put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, 0, source, 99);
	lnet_sim_run_all(sim);
	for (unsigned int i = 0; i < 5; i++) {
		cr_assert_eq(LNetEQGet(eqs[1], &ev), 1);
		cr_assert_eq(ev.mlength, i);
	}
	/* The first queue has precedence. */
	cr_assert_eq(LNetEQPoll(eqs, 2, 0, &ev, &which), 1);
	cr_assert_eq(which, 0);
	cr_assert_eq(ev.mlength, 99);
	for (unsigned int i = 5; i < 10; i++) {
		cr_assert_eq(LNetEQPoll(eqs, 2, 0, &ev, &which), 1);
		cr_assert_eq(which, 1);
		cr_assert_eq(ev.mlength, i);
	}
	cr_assert_eq(LNetEQPoll(eqs, 2, 0, &ev, &which), 0);
	cluster_end(sim);
}

/* In a queue an MD reserves a place for its last event, and an operation two
 * for its events. */
Test(eq, reservation)
{
	const struct ulnet_sim_link lossy = { .loss = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_eq_handle eq = eq_of(node, 5);
	struct ulnet_md umd = queued(source, 10, 0, eq);
	struct ulnet_md_handle a, b, c;
	struct ulnet_event ev;

	cluster_links(sim, &lossy);
	a = bind_md(node, &umd);
	b = bind_md(node, &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, a, LNET_ACK_REQ, nth_id(1), PORTAL,
			     BITS, 0, 0),
		     0);
	/* This would need 2 + 2 of 5 places, besides that of the other MD. */
	cr_assert_eq(LNetPut(LNET_NID_ANY, b, LNET_ACK_REQ, nth_id(1), PORTAL,
			     BITS, 0, 0),
		     -ENOBUFS);
	cr_assert_eq(LNetGet(LNET_NID_ANY, b, nth_id(1), PORTAL, BITS, 0),
		     -ENOBUFS);
	cr_assert_eq(LNetMDBind(node, &umd, LNET_UNLINK, &c), 0);
	cr_assert_eq(LNetMDBind(node, &umd, LNET_UNLINK, &c), -ENOBUFS);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(LNetMDUnlink(a), 0);
	cr_assert_eq(LNetMDUnlink(b), 0);
	cr_assert_eq(LNetMDUnlink(c), 0);
	lnet_sim_run_all(sim);
	/* SEND and UNLINK of the PUT, and UNLINK of the two other MDs */
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_eq(LNetEQGet(eq, &ev), 1, "event %u", i);
	cr_assert_eq(LNetEQGet(eq, &ev), 0);
	/* All five places are free again. */
	for (unsigned int i = 0; i < 5; i++)
		cr_assert_eq(LNetMDBind(node, &umd, LNET_UNLINK, &c), 0);
	cr_assert_eq(LNetMDBind(node, &umd, LNET_UNLINK, &c), -ENOBUFS);
	cluster_end(sim);
}

/* All places are given back, whichever way an operation ends. */
Test(eq, nothing_leaks)
{
	static const struct ulnet_sim_link links[] = {
		{ .loss = LNET_SIM_ALWAYS },	  { .refuse = LNET_SIM_ALWAYS },
		{ .stall = LNET_SIM_ALWAYS },	  { .mute = LNET_SIM_ALWAYS },
		{ .error = LNET_SIM_ALWAYS },	  { .cut = LNET_SIM_ALWAYS },
		{ .duplicate = LNET_SIM_ALWAYS }, { 0 },
	};
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_eq_handle eq = eq_of(node, 3);
	struct ulnet_md passive = md_of(
		memory, 4096,
		LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE, NULL);
	struct ulnet_md umd = queued(source, 10, 0, eq);
	struct ulnet_event ev;

	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &passive);
	umd.threshold = 2;
	umd.timeout = 10000;
	for (size_t i = 0; i < 4 * ARRAY_SIZE(links); i++) {
		struct ulnet_md_handle md;
		unsigned int terminals = 0, last = 0;
		int rc;

		link_set(sim, i / 2 % 2, !(i / 2 % 2), &links[i / 4]);
		md = bind_md(node, &umd);
		if (i % 2)
			rc = LNetGet(LNET_NID_ANY, md, nth_id(0), PORTAL, BITS,
				     0);
		else
			rc = LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, nth_id(0),
				     PORTAL, BITS, 0, 0);
		cr_assert_eq(rc, 0, "operation %zu", i);
		lnet_sim_run_all(sim);
		LNetMDUnlink(md);
		lnet_sim_run_all(sim);
		while (LNetEQGet(eq, &ev) == 1) {
			terminals += ev.terminal;
			last += ev.unlinked;
			cr_assert_eq(ev.md.cookie, md.cookie);
		}
		cr_assert_eq(terminals, 1);
		cr_assert_eq(last, 1);
	}
	cr_assert_eq(LNetEQFree(eq), 0);
	cluster_end(sim);
}

/* If the queue is full the peer's message is dropped; events are not lost. */
Test(eq, full)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_eq_handle eq = eq_of(node, 4);
	struct ulnet_md umd = queued(memory, 1000, LNET_MD_OP_PUT, eq);
	struct ulnet_md_handle md = post_md(node, PORTAL, BITS, &umd);
	struct ulnet_event ev;

	for (unsigned int i = 0; i < 5; i++)
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, BITS,
			  source, i);
	lnet_sim_run_all(sim);
	cr_assert_eq(counter(node, "drop_eq_full"), 2);
	cr_assert_eq(counter(node, "drop_count"), 2);
	cr_assert_eq(counter(node, "drop_length"), 3 + 4);
	/* Messages that were dropped have used no part of the buffer. */
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(LNetEQGet(eq, &ev), 1);
		cr_assert_eq(ev.mlength, i);
	}
	put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, BITS, source, 7);
	lnet_sim_run_all(sim);
	cr_assert_eq(LNetEQGet(eq, &ev), 1);
	cr_assert_eq(ev.mlength, 7);
	cr_assert_eq(ev.offset, 0 + 1 + 2);
	/* There is always a place for the MD's last event. */
	for (unsigned int i = 0; i < 5; i++)
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, BITS,
			  source, i);
	lnet_sim_run_all(sim);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run_all(sim);
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(LNetEQGet(eq, &ev), 1);
		cr_assert_eq(ev.type, LNET_EVENT_PUT);
	}
	cr_assert_eq(LNetEQGet(eq, &ev), 1);
	cr_assert_eq(ev.type, LNET_EVENT_UNLINK);
	cr_assert_eq(LNetEQGet(eq, &ev), 0);
	cluster_end(sim);
}

/* In a simulation virtual time passes while LNetEQPoll() waits. */
Test(eq, poll_simulated)
{
	const struct ulnet_sim_link link = { .latency = 5 * MSEC };
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_eq_handle eq = eq_of(node, 4);
	struct ulnet_md umd = queued(memory, 100, LNET_MD_OP_PUT, eq);
	struct ulnet_event ev;
	uint64_t before;

	cluster_links(sim, &link);
	post_md(node, PORTAL, BITS, &umd);
	put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, BITS, "x", 1);
	cr_assert_eq(LNetEQPoll(&eq, 1, 0, &ev, NULL), 0);
	cr_assert_eq(LNetEQPoll(&eq, 1, 1000000, &ev, NULL), 1);
	cr_assert_eq(ev.type, LNET_EVENT_PUT);
	cr_assert_geq(lnet_sim_now(sim), 5 * MSEC);
	cr_assert_leq(lnet_sim_now(sim), 7 * MSEC);
	/* Time only passes while something is left to happen. */
	before = lnet_sim_now(sim);
	umd = md_of(source, 1, 0, NULL);
	umd.timeout = 3000000;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(node, &umd), nth_id(1),
			     PORTAL, BITS, 0),
		     0);
	cr_assert_eq(LNetEQPoll(&eq, 1, 1000000, &ev, NULL), 0);
	cr_assert_geq(lnet_sim_now(sim) - before, 1000 * MSEC);
	cluster_end(sim);
}

static struct ulnet_eq_handle polled;
static int poll_rc[2];

static void poll_inside(const struct ulnet_event *ev)
{
	struct ulnet_event got;

	see(ev);
	poll_rc[0] = LNetEQPoll(&polled, 1, 0, &got, NULL);
	poll_rc[1] = LNetEQPoll(&polled, 1, 1000, &got, NULL);
}

/* Waiting inside a handler would never end. */
Test(eq, poll_in_a_handler)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = md_of(memory, 100, LNET_MD_OP_PUT, &seen);

	polled = eq_of(node, 4);
	umd.handler = poll_inside;
	post_md(node, PORTAL, BITS, &umd);
	put_bytes(node, nth_id(0), PORTAL, BITS, "x", 1);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 1);
	cr_assert_eq(poll_rc[0], 0);
	cr_assert_eq(poll_rc[1], -EDEADLK);
	cluster_end(sim);
}

/* ---- with the library's threads ---- */

static uint64_t ms_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct later {
	struct lnet *node;
	unsigned int ms;
};

static void *put_later(void *arg)
{
	struct later *l = arg;
	struct timespec t = { .tv_nsec = l->ms * 1000000L };

	nanosleep(&t, NULL);
	put_bytes(l->node, id_of("0@lo"), PORTAL, BITS, "later", 5);
	return NULL;
}

Test(eq, poll_sleeps)
{
	struct lnet *node;
	struct ulnet_eq_handle eqs[2];
	struct ulnet_event ev;
	struct ulnet_md umd;
	struct later later = { .ms = 30 };
	pthread_t thread;
	uint64_t before;
	int which = -1;

	cr_assert_eq(lnet_open(NULL, &node), 0);
	eqs[0] = eq_of(node, 4);
	eqs[1] = eq_of(node, 4);
	umd = queued(memory, 100, LNET_MD_OP_PUT, eqs[1]);
	post_md(node, PORTAL, BITS, &umd);
	before = ms_now();
	cr_assert_eq(LNetEQPoll(eqs, 2, 20000, &ev, &which), 0);
	cr_assert_geq(ms_now() - before, 20);
	later.node = node;
	cr_assert_eq(pthread_create(&thread, NULL, put_later, &later), 0);
	cr_assert_eq(LNetEQPoll(eqs, 2, 60000000, &ev, &which), 1);
	cr_assert_eq(which, 1);
	cr_assert_eq(ev.mlength, 5);
	cr_assert_lt(ms_now() - before, 30000);
	pthread_join(thread, NULL);
	lnet_close(node);
}
