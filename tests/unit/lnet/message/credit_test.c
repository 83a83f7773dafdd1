/* SPDX-License-Identifier: BSD-3-Clause */
/* Credits of peers and interfaces, and the counters of traffic. */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77
#define SECOND UINT64_C(1000000) /* us */

static struct seen seen, sent;
static uint8_t memory[65536], source[65536];

static int add_ni(void *arg, unsigned int index, struct lnet *node)
{
	(void)index;
	return lnet_ni_add(node, arg);
}

/* Returns a cluster in which nodes 0 and 2 receive, and node 1 sends with these
 * credits. */
static struct lnet_sim *limited(uint32_t credits, uint32_t peer_credits,
				unsigned int cpts)
{
	struct lnet_sim *sim;
	struct ulnet_ni_conf conf = { .credits = credits,
				      .peer_credits = peer_credits };
	struct ulnet_md umd =
		md_of(memory, sizeof(memory), LNET_MD_OP_PUT, &seen);

	seen.n = 0;
	sent.n = 0;
	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	cr_assert_eq(plain_node(sim, "10.0.0.1@tcp", NULL, NULL, NULL), 0);
	conf.nid = nid_of("10.0.0.2@tcp");
	cr_assert_eq(plain_node(sim, "", NULL, add_ni, &conf), 1);
	cr_assert_eq(plain_node(sim, "10.0.0.3@tcp", NULL, NULL, NULL), 2);
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	post_md(lnet_sim_node(sim, 2), PORTAL, BITS, &umd);
	return sim;
}

static void puts_to(struct lnet_sim *sim, unsigned int target, unsigned int n,
		    size_t length, uint64_t tag)
{
	struct ulnet_md umd = md_of(source, length, 0, &sent);

	umd.threshold = 1;
	umd.timeout = 5 * SECOND;
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY,
				     bind_md(lnet_sim_node(sim, 1), &umd),
				     LNET_NOACK_REQ, nth_id(target), PORTAL,
				     BITS, 0, tag + i),
			     0);
}

static struct ulnet_ni_info ni_info(struct lnet_sim *sim)
{
	struct ulnet_ni_info info;

	cr_assert_eq(lnet_ni_info(lnet_sim_node(sim, 1), 1, &info), 0);
	return info;
}

static struct ulnet_peer_info peer_info(struct lnet_sim *sim,
					unsigned int target)
{
	struct ulnet_id id = nth_id(target);
	struct ulnet_peer_info info;

	cr_assert_eq(lnet_peer_info(lnet_sim_node(sim, 1), &id.nid, &info), 0);
	return info;
}

static void stall(struct lnet_sim *sim)
{
	const struct ulnet_sim_link stalled = { .stall = LNET_SIM_ALWAYS };

	cluster_links(sim, &stalled);
}

Test(credit, defaults)
{
	struct lnet_sim *sim = limited(0, 0, 1);
	struct ulnet_ni_info ni = ni_info(sim);
	struct ulnet_id id = nth_id(0);
	struct ulnet_peer_info peer;

	cr_assert_eq(ni.credits_max, 256);
	cr_assert_eq(ni.credits, 256);
	cr_assert_eq(ni.credits_min, 256);
	cr_assert_eq(lnet_peer_info(lnet_sim_node(sim, 1), &id.nid, &peer),
		     -ENOENT);
	puts_to(sim, 0, 1, 1, 0);
	lnet_sim_run_all(sim);
	peer = peer_info(sim, 0);
	cr_assert_eq(peer.credits_max, 8);
	cr_assert_eq(peer.credits, 8);
	cr_assert_eq(peer.credits_min, 7);
	cr_assert_eq(peer.cpt, 0);
	cr_assert(nid_is(&peer.nid, "10.0.0.1@tcp"));
	cr_assert(nid_is(&peer.primary, "10.0.0.1@tcp"));
	cluster_end(sim);
}

Test(credit, one_peer)
{
	struct lnet_sim *sim = limited(10, 4, 1);

	stall(sim);
	puts_to(sim, 0, 7, 100, 0);
	cr_assert_eq(peer_info(sim, 0).credits, -3);
	cr_assert_eq(peer_info(sim, 0).credits_min, -3);
	cr_assert_eq(peer_info(sim, 0).queued_bytes, 3 * 172);
	cr_assert_eq(ni_info(sim).credits, 6);
	cr_assert_eq(ni_info(sim).credits_min, 6);
	cr_assert_eq(lnet_sim_check(sim), 0);
	/* Another peer has credits of its own, but shares those of the NI. */
	puts_to(sim, 2, 5, 100, 0);
	cr_assert_eq(peer_info(sim, 2).credits, -1);
	cr_assert_eq(ni_info(sim).credits, 2);
	cr_assert_eq(lnet_sim_check(sim), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, 12);
	cr_assert_eq(peer_info(sim, 0).credits, 4);
	cr_assert_eq(peer_info(sim, 0).credits_min, -3);
	cr_assert_eq(peer_info(sim, 0).queued_bytes, 0);
	cr_assert_eq(peer_info(sim, 2).credits, 4);
	cr_assert_eq(ni_info(sim).credits, 10);
	cluster_end(sim);
}

Test(credit, interface)
{
	struct lnet_sim *sim = limited(5, 4, 1);

	stall(sim);
	puts_to(sim, 0, 4, 100, 0);
	puts_to(sim, 2, 4, 100, 0);
	cr_assert_eq(peer_info(sim, 0).credits, 0);
	cr_assert_eq(peer_info(sim, 2).credits, 0);
	cr_assert_eq(ni_info(sim).credits, -3);
	cr_assert_eq(ni_info(sim).queued, 3);
	cr_assert_eq(ni_info(sim).credits_min, -3);
	/* A message that waits for a credit of the NI has one of its peer. */
	cr_assert_eq(peer_info(sim, 2).queued_bytes, 0);
	cr_assert_eq(lnet_sim_check(sim), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(ni_info(sim).credits, 5);
	cr_assert_eq(ni_info(sim).credits_min, -3);
	cluster_end(sim);
}

/* An urgent message is sent next, whether it waits for a credit of the peer or
 * of the interface: it has to wait until one message ahead of it gives its
 * credit back. */
static void urgent(uint32_t credits, uint32_t peer_credits)
{
	const struct ulnet_sim_link slow = { .bandwidth = 100000 };
	struct lnet_sim *sim = limited(credits, peer_credits, 1);
	struct ulnet_md umd = md_of(source, 10, LNET_MD_URGENT, &sent);

	cluster_links(sim, &slow);
	umd.threshold = 1;
	puts_to(sim, 0, 10, 1000, 100);
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(lnet_sim_node(sim, 1), &umd),
			     LNET_NOACK_REQ, nth_id(0), PORTAL, BITS, 0, 1),
		     0);
	cr_assert_eq(lnet_sim_check(sim), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 11);
	for (unsigned int i = 0, before = 2; i < 11; i++)
		if (i < before)
			cr_assert_eq(seen.ev[i].hdr_data, 100 + i);
		else
			cr_assert_eq(seen.ev[i].hdr_data,
				     i == before ? 1 : 99 + i, "%u", i);
	cluster_end(sim);
}

Test(credit, urgent)
{
	urgent(8, 2);
	urgent(2, 8);
}

/* A peer gets no more credits than the NI has. */
Test(credit, peer_credits_are_limited)
{
	struct lnet_sim *sim = limited(3, 100, 1);

	stall(sim);
	puts_to(sim, 0, 4, 1, 0);
	cr_assert_eq(peer_info(sim, 0).credits_max, 3);
	cr_assert_eq(peer_info(sim, 0).credits, -1);
	cr_assert_eq(ni_info(sim).credits, 0);
	lnet_sim_run_all(sim);
	cluster_end(sim);
}

/* Each CPT has its share of the NI's credits: enough for eight peers at least,
 * and never more than all. */
Test(credit, shares_of_cpts)
{
	static const struct {
		uint32_t credits, peer_credits;
		unsigned int cpts;
		uint32_t share;
	} cases[] = {
		{ 256, 8, 1, 256 },   { 256, 8, 2, 128 }, { 256, 8, 4, 64 },
		{ 256, 8, 16, 64 },   { 32, 8, 4, 32 },	  { 1000, 8, 3, 333 },
		{ 256, 100, 4, 256 }, { 1, 1, 2, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct lnet_sim *sim = limited(
			cases[i].credits, cases[i].peer_credits, cases[i].cpts);

		cr_assert_eq(ni_info(sim).credits,
			     cases[i].share * cases[i].cpts, "case %zu", i);
		cr_assert_eq(ni_info(sim).credits_max,
			     cases[i].share * cases[i].cpts, "case %zu", i);
		cluster_end(sim);
	}
}

/* Messages that wait for credits keep their order. */
Test(credit, order)
{
	const struct ulnet_sim_link slow = { .bandwidth = 1000000,
					     .latency = MSEC };
	struct lnet_sim *sim = limited(3, 2, 1);
	uint64_t next[2] = { 1000, 2000 };

	cluster_links(sim, &slow);
	for (unsigned int i = 0; i < 20; i++) {
		puts_to(sim, 0, 1, 500, 1000 + i);
		puts_to(sim, 2, 1, 500, 2000 + i);
	}
	while (sent.n < 40) {
		lnet_sim_run(sim, MSEC / 10);
		cr_assert_eq(lnet_sim_check(sim), 0);
		cr_assert_lt(lnet_sim_now(sim), 1000 * MSEC);
	}
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 40);
	for (unsigned int i = 0; i < 40; i++) {
		uint64_t tag = seen.ev[i].hdr_data;

		cr_assert_eq(tag, next[tag / 1000 - 1]++);
	}
	cluster_end(sim);
}

/* With one credit one message is sent at a time. */
Test(credit, one)
{
	const struct ulnet_sim_link slow = { .bandwidth = 1072000 };
	struct lnet_sim *sim = limited(1, 1, 1);

	cluster_links(sim, &slow);
	puts_to(sim, 0, 10, 1000, 0);
	for (unsigned int i = 0; i < 10; i++) {
		/* 1,072 bytes take a millisecond, and each message begins when
		 * the one before is sent; the granularity of timers adds to
		 * that. */
		lnet_sim_run(sim, MSEC / 2);
		cr_assert_leq(sent.n, i);
		cr_assert_eq(lnet_sim_check(sim), 0);
		lnet_sim_run(sim, MSEC / 2);
	}
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, 10);
	cr_assert_geq(sent.ev[9].elapsed, 10000);
	cr_assert_eq(seen.n, 10);
	for (unsigned int i = 0; i < 10; i++)
		cr_assert_eq(seen.ev[i].hdr_data, i);
	cluster_end(sim);
}

/* Messages that reach their deadline while they wait give their place back. */
Test(credit, late_in_the_queue)
{
	struct lnet_sim *sim = limited(3, 2, 1);
	struct ulnet_md umd = md_of(source, 10, 0, &sent);

	stall(sim);
	puts_to(sim, 0, 2, 10, 0);
	puts_to(sim, 2, 2, 10, 0); /* one of them waits for the NI */
	umd.timeout = SECOND;
	umd.threshold = 1;
	for (unsigned int i = 0; i < 6; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY,
				     bind_md(lnet_sim_node(sim, 1), &umd),
				     LNET_NOACK_REQ, nth_id(i % 2 ? 0 : 2),
				     PORTAL, BITS, 0, 0),
			     0);
	cr_assert_eq(peer_info(sim, 0).credits, -3);
	cr_assert_eq(peer_info(sim, 2).credits, -3);
	cr_assert_eq(ni_info(sim).credits, -1);
	lnet_sim_run(sim, 1500 * MSEC);
	cr_assert_eq(sent.n, 6);
	cr_assert_eq(peer_info(sim, 0).credits, 0);
	cr_assert_eq(peer_info(sim, 2).credits, 0);
	cr_assert_eq(peer_info(sim, 0).queued_bytes, 0);
	cr_assert_eq(ni_info(sim).credits, -1);
	cr_assert_eq(lnet_sim_check(sim), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, 10);
	cr_assert_eq(ni_info(sim).credits, 3);
	cluster_end(sim);
}

/* Messages of a node to itself need no credits. */
Test(credit, loopback_has_none)
{
	struct lnet_sim *sim = limited(1, 1, 1);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_md umd = md_of(memory, 65536, LNET_MD_OP_PUT, &seen);
	struct ulnet_nid lo = LNET_NID_LO;
	struct ulnet_ni_info info;
	struct ulnet_peer_info peer;

	post_md(node, PORTAL, BITS, &umd);
	puts_to(sim, 1, 50, 10, 0);
	cr_assert_eq(ni_info(sim).credits, 1);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 50);
	cr_assert_eq(ni_info(sim).credits_min, 1);
	cr_assert_eq(lnet_ni_info(node, 0, &info), 0);
	cr_assert(lnet_nid_is_lo(&info.nid));
	cr_assert_eq(info.credits, info.credits_min);
	cr_assert_eq(info.send_count, 50);
	cr_assert_eq(info.recv_count, 50);
	cr_assert_eq(lnet_peer_info(node, &lo, &peer), -ENOENT);
	cluster_end(sim);
}

/* ---- what is counted ---- */

Test(credit, traffic)
{
	struct lnet_sim *sim = limited(0, 0, 1);
	struct lnet *target = lnet_sim_node(sim, 0);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_md umd = md_of(memory, 500, LNET_MD_OP_GET, NULL);
	struct ulnet_nid nid = nid_of("10.0.0.2@tcp");
	struct ulnet_ni_info ni;
	struct ulnet_peer_info peer;

	post_md(target, PORTAL, 1, &umd);
	puts_to(sim, 0, 3, 100, 0);		      /* stored */
	put_bytes(node, nth_id(0), 9, 1, source, 40); /* dropped */
	umd = md_of(source, 200, 0, &sent);
	umd.threshold = 2;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(node, &umd), nth_id(0),
			     PORTAL, 1, 0),
		     0);
	lnet_sim_run_all(sim);

	ni = ni_info(sim);
	cr_assert_eq(ni.send_count, 5);
	cr_assert_eq(ni.send_length, 340);
	cr_assert_eq(ni.recv_count, 1);
	cr_assert_eq(ni.recv_length, 200);
	cr_assert_eq(ni.drop_count, 0);
	peer = peer_info(sim, 0);
	cr_assert_eq(peer.send_count, 5);
	cr_assert_eq(peer.recv_count, 1);

	cr_assert_eq(lnet_ni_info(target, 1, &ni), 0);
	cr_assert_eq(ni.recv_count, 4);
	cr_assert_eq(ni.recv_length, 300);
	cr_assert_eq(ni.drop_count, 1);
	cr_assert_eq(ni.drop_length, 40);
	cr_assert_eq(ni.send_count, 1);
	cr_assert_eq(ni.send_length, 200);
	cr_assert_eq(lnet_peer_info(target, &nid, &peer), 0);
	cr_assert_eq(peer.recv_count, 5);
	cr_assert_eq(peer.send_count, 1);

	cr_assert_eq(counter(target, "recv_count"), 4);
	cr_assert_eq(counter(target, "recv_length"), 300);
	cr_assert_eq(counter(target, "drop_count"), 1);
	cr_assert_eq(counter(target, "drop_length"), 40);
	cr_assert_eq(counter(target, "drop_no_match"), 1);
	cr_assert_eq(counter(target, "send_count"), 1);
	cr_assert_eq(counter(target, "send_length"), 200);
	cr_assert_eq(counter(target, "peers"), 1);
	cr_assert_eq(counter(node, "send_count"), 5);
	cr_assert_eq(counter(node, "msgs_alloc"), 0);
	cr_assert_gt(counter(node, "msgs_max"), 0);
	cr_assert_eq(counter(node, "errors"), 0);
	cluster_end(sim);
}

Test(credit, failures)
{
	static const struct {
		struct ulnet_sim_link link;
		const char *counter;
	} cases[] = {
		{ { .refuse = LNET_SIM_ALWAYS }, "remote_dropped_count" },
		{ { .stall = LNET_SIM_ALWAYS }, "local_timeout_count" },
		{ { .mute = LNET_SIM_ALWAYS }, "network_timeout_count" },
		{ { .error = LNET_SIM_ALWAYS }, "local_error_count" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct lnet_sim *sim = limited(0, 0, 1);
		struct lnet *node = lnet_sim_node(sim, 1);

		cr_assert_eq(lnet_setting_set(node, "retry_count", 0), 0);
		cluster_links(sim, &cases[i].link);
		puts_to(sim, 0, 3, 10, 0);
		lnet_sim_run_all(sim);
		cr_assert_eq(counter(node, cases[i].counter), 3, "%s",
			     cases[i].counter);
		cr_assert_eq(counter(node, "errors"), 3);
		cr_assert_eq(counter(node, "send_count"), 0);
		cr_assert_eq(ni_info(sim).credits, 256);
		cluster_end(sim);
	}
}

Test(credit, no_route)
{
	struct lnet_sim *sim = limited(0, 0, 1);

	put_bytes(lnet_sim_node(sim, 1), id_of("10.0.0.1@tcp7"), PORTAL, BITS,
		  source, 1);
	lnet_sim_run_all(sim);
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "local_no_route_count"), 1);
	cluster_end(sim);
}

/* ---- two interfaces of one net ---- */

/* Without discovery a peer always sees the same NID of this node. */
Test(credit, each_peer_sees_one_nid)
{
	struct lnet_sim *sim;
	struct ulnet_md umd = md_of(memory, 65536, LNET_MD_OP_PUT, &seen);
	unsigned int by_first[2] = { 0 };

	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	cr_assert_eq(plain_node(sim, "10.0.0.1@tcp", NULL, NULL, NULL), 0);
	cr_assert_eq(
		plain_node(sim, "10.0.1.1@tcp 10.0.1.2@tcp", NULL, NULL, NULL),
		1);
	cr_assert_eq(plain_node(sim, "10.0.0.3@tcp", NULL, NULL, NULL), 2);
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	post_md(lnet_sim_node(sim, 2), PORTAL, BITS, &umd);
	for (unsigned int i = 0; i < 20; i++) {
		put_bytes(lnet_sim_node(sim, 1), nth_id(i % 2 ? 2 : 0), PORTAL,
			  BITS, source, 1);
		lnet_sim_run_all(sim);
	}
	cr_assert_eq(seen.n, 20);
	for (unsigned int i = 0; i < 20; i++)
		by_first[i % 2] += nid_is(&seen.ev[i].source, "10.0.1.1@tcp");
	cr_assert(by_first[0] == 0 || by_first[0] == 10);
	cr_assert(by_first[1] == 0 || by_first[1] == 10);
	/* Different peers see different NIDs. */
	cr_assert_neq(by_first[0], by_first[1]);
	cluster_end(sim);
}

/* ---- an NI goes away while messages wait on it ---- */

static struct lnet_sim *current;
static unsigned int resent;

/* When it is told of the failure, sends once more, over the other NI. */
static void send_again(const struct ulnet_event *ev)
{
	see(ev);
	if (ev->terminal && ev->status && resent++ == 0)
		puts_to(current, 2, 1, 64, 99);
}

static void put_again(struct lnet_sim *sim, struct ulnet_nid from,
		      unsigned int target)
{
	struct ulnet_md umd = md_of(source, 64, 0, &sent);

	umd.threshold = 1;
	umd.timeout = 5 * SECOND;
	umd.handler = send_again;
	cr_assert_eq(LNetPut(from, bind_md(lnet_sim_node(sim, 1), &umd),
			     LNET_NOACK_REQ, nth_id(target), PORTAL, BITS, 0,
			     1),
		     0);
}

/* One message is stuck with the only credit of the NI; one, which has named the
 * NI, waits for that credit; one waits for a credit of the peer. The handler of
 * the second one sends over the other NI. That message must not wait, nor must
 * the others, which are sent over the other NI, too. */
Test(credit, queues_of_an_ni_that_goes)
{
	struct lnet_sim *sim = limited(1, 1, 1);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_ni_conf other = { .nid = nid_of("10.0.0.9@tcp") };
	const struct ulnet_nid gone = nth_id(1).nid;

	current = sim;
	resent = 0;
	link_set(sim, 1, 0,
		 &(struct ulnet_sim_link){ .stall = LNET_SIM_ALWAYS });
	puts_to(sim, 0, 1, 64, 1);
	put_again(sim, gone, 2);
	puts_to(sim, 2, 1, 64, 2);
	lnet_sim_run(sim, 1000000);
	cr_assert_eq(lnet_ni_add(node, &other), 0);
	cr_assert_eq(lnet_ni_del(node, &gone), 0);
	lnet_sim_run(sim, 1000000);
	cr_assert_eq(resent, 1);
	cr_assert_eq(peer_info(sim, 2).credits, 1);
	cr_assert_eq(peer_info(sim, 2).queued_bytes, 0);
	cr_assert_eq(seen.n, 3, "%u of 3 came", seen.n);
	cluster_end(sim);
}
