/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of a peer that has used up its share of messages are not read,
 * while others are served (requirement I1). */
#include <criterion/criterion.h>
#include <errno.h>
#include "base/log.h"
#include "ulnet/loop.h"
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define SECOND (1000 * MSEC)
#define PING   (UINT64_C(1) << 63)

static struct seen seen, asked;
static uint8_t memory[65536], source[64];

static void small_nodes(struct lnet_sim *sim, unsigned int n, uint32_t messages)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.messages_max = messages;
	cluster_nodes(sim, n, &conf);
	seen.n = 0;
	asked.n = 0;
	cr_assert_eq(LNetSetLazyPortal(lnet_sim_node(sim, 0), PORTAL), 0);
}

static struct lnet_sim *small_cluster(unsigned int n, unsigned int cpts,
				      uint32_t messages)
{
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	small_nodes(sim, n, messages);
	return sim;
}

/* Its nodes can stand still. */
static struct lnet_sim *small_cluster_apart(unsigned int n, uint32_t messages)
{
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	lnet_sim_apart(sim);
	small_nodes(sim, n, messages);
	return sim;
}

/* Node @from pings node 0. */
static void ping(struct lnet_sim *sim, unsigned int from, struct seen *s,
		 uint64_t timeout)
{
	struct ulnet_md umd = md_of(memory, 256, LNET_MD_TRUNCATE, s);

	umd.threshold = 2;
	umd.timeout = timeout / 1000;
	cr_assert_eq(LNetGet(LNET_NID_ANY,
			     bind_md(lnet_sim_node(sim, from), &umd), nth_id(0),
			     0, PING, 0),
		     0);
}

static void count_line(int level, const char *line, void *arg)
{
	(void)level;
	if (strstr(line, "messages in use") && strstr(line, "10.0.0.2@tcp"))
		++*(unsigned int *)arg;
}

static void count_replies(const struct ulnet_event *ev)
{
	if (ev->type == LNET_EVENT_REPLY && !ev->status)
		++*(unsigned int *)ev->user_ptr;
}

/* Node @from sends @n GETs of ten bytes to node @to. */
static void get_some(struct lnet_sim *sim, unsigned int from, unsigned int to,
		     unsigned int n, unsigned int *replies)
{
	struct ulnet_md umd = md_of(memory, 10, LNET_MD_TRUNCATE, NULL);
	struct ulnet_md_handle md;

	umd.timeout = 10 * SECOND / 1000;
	umd.user_ptr = replies;
	umd.handler = count_replies;
	md = bind_md(lnet_sim_node(sim, from), &umd);
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(
			LNetGet(LNET_NID_ANY, md, nth_id(to), PORTAL, 1, 0), 0);
}

/* Node 2 pings once in a millisecond, and each time is answered at once. */
static void others_are_answered(struct lnet_sim *sim, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		asked.n = 0;
		ping(sim, 2, &asked, 10 * SECOND);
		lnet_sim_run(sim, MSEC);
		seen_end(&asked, LNET_EVENT_REPLY, 0, LNET_OUTCOME_DELIVERED,
			 LNET_CAUSE_OK);
	}
	cr_assert_eq(lnet_sim_check(sim), 0);
}

/* Returns a cluster in which node 1 sends many pings, and never reads a REPLY.
 */
static struct lnet_sim *unread_cluster(unsigned int cpts, unsigned int *lines)
{
	const struct ulnet_sim_link unread = { .stall = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = small_cluster(3, cpts, 64);

	log_setup(LOG_WARN, count_line, lines);
	link_set(sim, 0, 1, &unread);
	for (unsigned int i = 0; i < 500; i++)
		ping(sim, 1, NULL, 10 * SECOND);
	return sim;
}

static void unread_answers(unsigned int cpts)
{
	unsigned int lines = 0;
	struct lnet_sim *sim = unread_cluster(cpts, &lines);
	struct lnet *node = lnet_sim_node(sim, 0);

	others_are_answered(sim, 300);
	cr_assert_gt(counter(node, "parked"), 0);
	cr_assert_eq(counter(node, "drop_count"), 0);
	/* half of seven eighths, and a message that waits */
	cr_assert_leq(counter(node, "msgs_alloc"), 56 / 2 + 2);
	cr_assert_eq(lines, 1);
	/* Node 1 is served again once its REPLYs are given up, and to the end.
	 */
	lnet_sim_run_all(sim);
	cr_assert_eq(counter(node, "drop_count"), 0);
	cr_assert_eq(counter(node, "msgs_alloc"), 0);
	log_setup(LOG_WARN, NULL, NULL);
	cluster_end(sim);
}

Test(throttle, unread_answers)
{
	unread_answers(1);
	unread_answers(3);
}

/* Once node 0 has asked node 1 something, the answer may be behind requests in
 * the same connection: some requests are copied, and the others are dropped
 * when none has been served for a while. */
static void unread_answers_of_asked(unsigned int cpts)
{
	unsigned int lines = 0, replies = 0;
	struct lnet_sim *sim = unread_cluster(cpts, &lines);
	struct lnet *node = lnet_sim_node(sim, 0);

	others_are_answered(sim, 100);
	get_some(sim, 0, 1, 1, &replies);
	others_are_answered(sim, 300);
	/* node 1's share of messages and of throttled ones, and node 0's GET */
	cr_assert_leq(counter(node, "msgs_alloc"), 56 / 2 + 2 + 4 / 2 + 1 + 1);
	cr_assert_geq(counter(node, "drop_no_memory"), 500 - 30 - 3);
	cr_assert_eq(lines, 2, "it waits, and is not listened to");
	lnet_sim_run_all(sim);
	cr_assert_eq(counter(node, "msgs_alloc"), 0);
	log_setup(LOG_WARN, NULL, NULL);
	cluster_end(sim);
}

Test(throttle, unread_answers_of_asked)
{
	unread_answers_of_asked(1);
	unread_answers_of_asked(3);
}

static void put_some(struct lnet_sim *sim, unsigned int from, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct ulnet_md umd = md_of(source, 10, 0, NULL);

		umd.threshold = 1;
		cr_assert_eq(LNetPut(LNET_NID_ANY,
				     bind_md(lnet_sim_node(sim, from), &umd),
				     LNET_NOACK_REQ, nth_id(0), PORTAL, 1, 0,
				     i),
			     0);
	}
	lnet_sim_run(sim, MSEC);
}

static void post_source(struct lnet *node)
{
	struct ulnet_md umd =
		md_of(source, sizeof(source),
		      LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE, NULL);

	post_md(node, PORTAL, 1, &umd);
}

static void post_buffer(struct lnet_sim *sim, int threshold)
{
	struct ulnet_md umd =
		md_of(memory, sizeof(memory), LNET_MD_OP_PUT, &seen);

	umd.threshold = threshold;
	post_md(lnet_sim_node(sim, 0), PORTAL, 1, &umd);
	lnet_sim_run(sim, MSEC);
}

/*
 * Two nodes have used up their share of each other, and neither reads: all
 * answers that they wait for are behind requests of the other. @window messages
 * are in transit at most. Returns how many requests were dropped.
 */
static uint64_t ask_each_other(unsigned int cpts, uint32_t window)
{
	const struct ulnet_sim_link link = { .window = window,
					     .latency = 1000 };
	struct lnet_sim *sim = small_cluster(2, cpts, 1024);
	unsigned int replies[2] = { 0, 0 };
	uint64_t dropped = 0;

	cluster_links(sim, &link);
	post_source(lnet_sim_node(sim, 0));
	post_source(lnet_sim_node(sim, 1));
	for (unsigned int i = 0; i < 2; i++)
		get_some(sim, i, 1 - i, 2000, &replies[i]);
	/* Their deadlines are far away. */
	for (unsigned int i = 0; i < 10; i++) {
		lnet_sim_run(sim, SECOND / 10);
		cr_assert_eq(lnet_sim_check(sim), 0);
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct lnet *node = lnet_sim_node(sim, i);
		uint64_t n = counter(node, "drop_no_memory");

		cr_assert_eq(counter(node, "msgs_alloc"), n);
		cr_assert_eq(replies[1 - i] + n, 2000);
		dropped = MAX(dropped, n);
	}
	cluster_end(sim);
	return dropped;
}

Test(throttle, both_have_their_share)
{
	/* Answers go ahead of requests, so that nothing is lost. */
	cr_assert_eq(ask_each_other(1, 16), 0);
	cr_assert_eq(ask_each_other(3, 16), 0);
	/* Requests that are in transit already may be lost. */
	cr_assert_leq(ask_each_other(1, 1000), 1000);
	cr_assert_leq(ask_each_other(3, 1000), 1000);
}

/* Node 0's own GET is answered, although @n PUTs of node 1 are ahead of the
 * answer, for which there is no buffer. @lost of them are dropped. */
static void answer_behind(unsigned int cpts, unsigned int n, unsigned int lost)
{
	struct lnet_sim *sim = small_cluster(2, cpts, 32);
	struct lnet *node = lnet_sim_node(sim, 0);
	unsigned int replies = 0;

	post_source(lnet_sim_node(sim, 1));
	put_some(sim, 1, n);
	cr_assert_eq(counter(node, "parked"), 1);
	get_some(sim, 0, 1, 1, &replies);
	lnet_sim_run(sim, SECOND / 2);
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(replies, 1);
	cr_assert_eq(counter(node, "drop_count"), lost);
	/* The PUTs that are left come in their order. */
	post_buffer(sim, LNET_MD_THRESH_INF);
	cr_assert_eq(seen.n, n - lost);
	for (unsigned int i = 0; i < seen.n && cpts == 1; i++)
		cr_assert_eq(seen.ev[i].hdr_data, i);
	cluster_end(sim);
}

Test(throttle, answer_behind_requests)
{
	/* 15 PUTs have room, and two are copied. */
	answer_behind(1, 17, 0);
	answer_behind(3, 17, 0);
	answer_behind(1, 40, 23);
	answer_behind(3, 40, 23);
}

/* A process that stands still neither copies nor drops what keeps an answer
 * back, and is not to be blamed for that; once it goes on, it does. */
Test(throttle, stands_still_behind_requests)
{
	struct lnet_sim *sim = small_cluster_apart(2, 32);
	struct lnet *node = lnet_sim_node(sim, 0);
	unsigned int replies = 0;

	post_source(lnet_sim_node(sim, 1));
	put_some(sim, 1, 40);
	get_some(sim, 0, 1, 1, &replies);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_sim_pause(sim, 0, SECOND), 0);
	for (unsigned int i = 0; i < 30; i++) {
		lnet_sim_run(sim, SECOND / 20);
		cr_assert_eq(lnet_sim_check(sim), 0);
	}
	cr_assert_eq(replies, 1);
	cr_assert_eq(counter(node, "drop_count"), 23);
	cluster_end(sim);
}

/* A request has waited for long when this node first asks its sender something:
 * only from then on does it keep an answer back. */
Test(throttle, asks_late)
{
	struct lnet_sim *sim = small_cluster(2, 1, 32);
	unsigned int replies = 0;

	post_source(lnet_sim_node(sim, 1));
	put_some(sim, 1, 40);
	lnet_sim_run(sim, 2 * SECOND + SECOND / 10);
	cr_assert_eq(lnet_sim_check(sim), 0);
	get_some(sim, 0, 1, 1, &replies);
	for (unsigned int i = 0; i < 30; i++) {
		lnet_sim_run(sim, SECOND / 100);
		cr_assert_eq(lnet_sim_check(sim), 0);
	}
	cr_assert_eq(replies, 1);
	cluster_end(sim);
}

/* All throttled messages come in the order in which they were sent, one after
 * the other, as room becomes free. */
static void goes_on(unsigned int cpts)
{
	struct lnet_sim *sim = small_cluster(2, cpts, 32);
	struct lnet *node = lnet_sim_node(sim, 0);

	put_some(sim, 1, 200);
	cr_assert_gt(counter(node, "parked"), 0);
	for (unsigned int i = 1; i <= 40; i++) {
		post_buffer(sim, 5);
		cr_assert_eq(seen.n, 5 * i);
		cr_assert_eq(lnet_sim_check(sim), 0);
	}
	for (unsigned int i = 0; i < 200 && cpts == 1; i++)
		cr_assert_eq(seen.ev[i].hdr_data, i);
	cr_assert_eq(counter(node, "drop_count"), 0);
	cluster_end(sim);
}

Test(throttle, throttled_messages_come_in_order)
{
	goes_on(1);
	goes_on(3);
}

/* Room that one peer gives back serves another one that waits. */
Test(throttle, room_goes_to_others)
{
	struct lnet_sim *sim = small_cluster(4, 1, 32);
	struct lnet *node = lnet_sim_node(sim, 0);

	for (unsigned int i = 1; i < 4; i++)
		put_some(sim, i, 100);
	cr_assert_geq(counter(node, "parked"), 3);
	for (unsigned int i = 1; i <= 100; i++) {
		post_buffer(sim, 3);
		cr_assert_eq(seen.n, 3 * i);
		cr_assert_eq(lnet_sim_check(sim), 0);
	}
	cr_assert_eq(counter(node, "drop_count"), 0);
	cluster_end(sim);
}

Test(throttle, interface_goes)
{
	struct lnet_sim *sim = small_cluster(2, 1, 32);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_id self = nth_id(0);

	put_some(sim, 1, 100);
	cr_assert_gt(counter(node, "parked"), 0);
	cr_assert_eq(lnet_ni_del(node, &self.nid), 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "msgs_alloc"), 0);
	cluster_end(sim);
}

Test(throttle, node_goes)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct lnet_sim *sim = small_cluster(3, cpts, 32);

		put_some(sim, 1, 100);
		put_some(sim, 2, 100);
		cr_assert_eq(lnet_sim_crash(sim, 0), 0);
		cluster_end(sim);
	}
}

/* A node is not throttled by itself: beyond the limit its own PUTs are dropped,
 * and a part of the messages is left for answers to it. */
Test(throttle, a_node_does_not_throttle_itself)
{
	struct lnet_sim *sim = small_cluster(2, 1, 32);
	struct lnet *node = lnet_sim_node(sim, 0);

	put_some(sim, 0, 100);
	cr_assert_eq(counter(node, "parked"), 0);
	cr_assert_eq(counter(node, "drop_no_memory"), 100 - 28);
	post_buffer(sim, LNET_MD_THRESH_INF);
	cr_assert_eq(seen.n, 28);
	cluster_end(sim);
}

/* ---- for the layer above ---- */

struct taking {
	struct lnet *node;
	unsigned int from;
	bool full;
};

static int on_taking(void *arg)
{
	const struct taking *t = arg;
	const struct ulnet_id from = nth_id(t->from);

	lnet_peer_throttle(t->node,
			   (unsigned int)lnet_cpt_of(t->node, &from.nid),
			   &from.nid, t->full);
	return 0;
}

/* Node 0 takes no more requests of node @from, or takes them again. */
static void take(struct lnet_sim *sim, unsigned int from, bool full)
{
	struct lnet *node = lnet_sim_node(sim, 0);
	struct taking t = { node, from, full };
	const struct ulnet_id id = nth_id(from);

	cr_assert_eq(lnet_call(node, (unsigned int)lnet_cpt_of(node, &id.nid),
			       on_taking, &t),
		     0);
}

static unsigned int replies_seen(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < seen.n; i++)
		n += seen.ev[i].type == LNET_EVENT_REPLY && !seen.ev[i].status;
	return n;
}

/* The layer above takes no more from node 1: it waits, while others are served,
 * until the layer takes more again. */
static void waits_for_the_layer(unsigned int cpts)
{
	struct lnet_sim *sim = small_cluster(3, cpts, 64);
	struct lnet *node = lnet_sim_node(sim, 0);
	unsigned int lines = 0;

	ping(sim, 1, &seen, 10 * SECOND);
	lnet_sim_run(sim, MSEC);
	seen_end(&seen, LNET_EVENT_REPLY, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
	log_setup(LOG_WARN, count_line, &lines);
	take(sim, 1, true);
	seen.n = 0;
	for (unsigned int i = 0; i < 10; i++)
		ping(sim, 1, &seen, 10 * SECOND);
	others_are_answered(sim, 100);
	cr_assert_gt(counter(node, "parked"), 0);
	cr_assert_eq(replies_seen(), 0);
	take(sim, 1, false);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "msgs_alloc"), 0);
	cr_assert_eq(counter(node, "drop_count"), 0);
	cr_assert_eq(replies_seen(), 10);
	cr_assert_eq(lnet_sim_check(sim), 0);
	log_setup(LOG_WARN, NULL, NULL);
	cluster_end(sim);
}

Test(throttle, for_the_layer_above)
{
	waits_for_the_layer(1);
	waits_for_the_layer(3);
}
