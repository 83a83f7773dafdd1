/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that wait for a connection: they hold nothing, keep their order, can
 * be given up at once, and are sent soon after the peer can be reached.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL	5
#define BITS	0x77
#define SECOND	UINT64_C(1000000) /* us */
#define CONNECT (2 * MSEC)	  /* ns: duration of an attempt */
/* dead peers: with 8 credits each they have more than an NI's 256 */
#define DEAD 33
#define SOON (200 * MSEC) /* requirement I5 */

static const struct ulnet_sim_link tcp = { .latency = 100000,
					   .connect = CONNECT };
static struct seen seen, sent;
static uint8_t memory[65536], source[4096];

/* Returns a cluster of nodes 0 and 1, on links that need connections. */
static struct lnet_sim *pair(unsigned int cpts)
{
	struct lnet_sim *sim = cluster_with(2, cpts, NULL);
	struct ulnet_md umd =
		md_of(memory, sizeof(memory), LNET_MD_OP_PUT, &seen);

	seen.n = 0;
	sent.n = 0;
	cluster_links(sim, &tcp);
	post_md(lnet_sim_node(sim, 1), PORTAL, BITS, &umd);
	return sim;
}

static struct ulnet_md_handle put(struct lnet_sim *sim, struct ulnet_id to,
				  uint64_t timeout, uint64_t tag)
{
	struct ulnet_md umd = md_of(source, 100, 0, &sent);
	struct ulnet_md_handle md;

	umd.threshold = 1;
	umd.timeout = timeout;
	md = bind_md(lnet_sim_node(sim, 0), &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, to, PORTAL, BITS,
			     0, tag),
		     0);
	return md;
}

/* Cuts node @peer off from node 0 without telling either, or connects it again.
 */
static void cut(struct lnet_sim *sim, unsigned int peer, bool on)
{
	const struct ulnet_id a = nth_id(0), b = nth_id(peer);

	cr_assert_eq(lnet_sim_partition(sim, &a.nid, &b.nid, on), 0);
}

static void expect_all_credits(struct lnet_sim *sim, unsigned int peer)
{
	struct ulnet_id id = nth_id(peer);
	struct ulnet_peer_info info;
	struct ulnet_ni_info ni;

	cr_assert_eq(lnet_peer_info(lnet_sim_node(sim, 0), &id.nid, &info), 0);
	cr_expect_eq(info.credits, info.credits_max);
	cr_expect_eq(info.queued_bytes, 0);
	cr_assert_eq(lnet_ni_info(lnet_sim_node(sim, 0), 1, &ni), 0);
	cr_expect_eq(ni.credits, ni.credits_max);
}

static void expect_waiting(struct lnet_sim *sim, unsigned int peer, uint64_t n)
{
	struct ulnet_id id = nth_id(peer);
	struct ulnet_peer_info info;

	cr_assert_eq(lnet_peer_info(lnet_sim_node(sim, 0), &id.nid, &info), 0);
	cr_expect_eq(info.connecting, n);
}

Test(connect, dead_peers_block_nobody)
{
	struct lnet_sim *sim = pair(1);

	put(sim, nth_id(1), SECOND, 0);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(seen.n, 1);
	for (unsigned int i = 2; i < 2 + DEAD; i++) {
		cut(sim, i, true);
		for (unsigned int k = 0; k < 12; k++)
			put(sim, nth_id(i), 20 * SECOND, k);
	}
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(sent.n, 1);
	expect_all_credits(sim, 2);
	expect_waiting(sim, 2, 12);
	expect_all_credits(sim, 1 + DEAD);
	cr_assert_eq(lnet_sim_check(sim), 0);
	/* A message to a peer that can be reached is not delayed at all. */
	put(sim, nth_id(1), SECOND, 1);
	lnet_sim_run(sim, tcp.latency);
	cr_assert_eq(seen.n, 2);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, 2 + 12 * DEAD);
	for (unsigned int i = 2; i < sent.n; i++)
		cr_expect_eq(sent.ev[i].outcome, LNET_OUTCOME_NOT_DELIVERED);
	cluster_end(sim);
}

/* When very many messages fail at once, the credit that one gives back must not
 * start the next one recursively. */
Test(connect, very_many_wait)
{
	enum { N = 100000 };
	struct lnet_sim *sim = pair(1);
	struct ulnet_md umd = md_of(source, 100, 0, NULL);
	struct ulnet_md_handle md = bind_md(lnet_sim_node(sim, 0), &umd);

	/* All credits are in use when the connection is lost, and the other
	 * messages wait for them. */
	put(sim, nth_id(1), SECOND, 0);
	lnet_sim_run(sim, 10 * MSEC);
	for (unsigned int i = 0; i < N; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ,
				     nth_id(1), PORTAL, BITS + 1, 0, i),
			     0);
	cut(sim, 1, true);
	lnet_sim_run(sim, 10 * MSEC);
	expect_all_credits(sim, 1);
	cr_assert_eq(lnet_sim_check(sim), 0);
	cut(sim, 1, false);
	cr_assert_eq(LNetMDUnlink(md), 0);
	cluster_end(sim);
}

Test(connect, order)
{
	struct lnet_sim *sim = pair(1);

	for (unsigned int i = 0; i < 30; i++)
		put(sim, nth_id(1), SECOND, i);
	lnet_sim_run(sim, CONNECT / 2);
	cr_assert_eq(seen.n, 0);
	for (unsigned int i = 30; i < 60; i++)
		put(sim, nth_id(1), SECOND, i);
	lnet_sim_run(sim, CONNECT / 2);
	for (unsigned int i = 60; i < 90; i++)
		put(sim, nth_id(1), SECOND, i);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 90);
	for (unsigned int i = 0; i < 90; i++)
		cr_expect_eq(seen.ev[i].hdr_data, i);
	cluster_end(sim);
}

Test(connect, given_up_at_once)
{
	struct lnet_sim *sim = pair(1);
	struct ulnet_md_handle md;
	uint64_t began;

	cut(sim, 1, true);
	md = put(sim, nth_id(1), 20 * SECOND, 0);
	lnet_sim_run(sim, 300 * MSEC);
	cr_assert_eq(sent.n, 0);
	began = lnet_sim_now(sim);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run(sim, 0);
	cr_assert_eq(lnet_sim_now(sim), began);
	seen_end(&sent, LNET_EVENT_SEND, -ECANCELED, LNET_OUTCOME_NOT_DELIVERED,
		 sent.ev[0].cause);
	cr_assert_eq(lnet_sim_check(sim), 0);
	cluster_end(sim);
}

Test(connect, deadline)
{
	struct lnet_sim *sim = pair(1);

	cut(sim, 1, true);
	put(sim, nth_id(1), SECOND / 10, 0);
	lnet_sim_run(sim, 100 * MSEC);
	seen_end(&sent, LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_NOT_DELIVERED,
		 LNET_CAUSE_LOCAL_TIMEOUT);
	cluster_end(sim);
}

/* All messages that wait for the same attempt end with its outcome. */
Test(connect, refused)
{
	struct lnet_sim *sim = pair(1);

	cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, 0), "retry_count", 0),
		     0);
	for (unsigned int i = 0; i < 20; i++)
		put(sim, nth_id(7), SECOND, i);
	lnet_sim_run(sim, CONNECT);
	cr_assert_eq(sent.n, 20);
	for (unsigned int i = 0; i < 20; i++) {
		const struct ulnet_event *ev = &sent.ev[i];
		struct ulnet_id id = nth_id(7);

		cr_expect_eq(ev->status, -ECONNREFUSED);
		cr_expect_eq(ev->cause, LNET_CAUSE_REMOTE_DROPPED);
		cr_expect_eq(ev->outcome, LNET_OUTCOME_NOT_DELIVERED);
		cr_expect_eq(ev->hdr_data, i);
		cr_expect(lnet_nid_eq(&ev->path_peer, &id.nid));
	}
	expect_all_credits(sim, 7);
	expect_waiting(sim, 7, 0);
	cluster_end(sim);
}

/* Peer 1 is away for @outage ns: silent, or refusing connections. A sender that
 * tries again as soon as it is told of a failure is served soon after that. */
static void recovers(uint64_t outage, bool silent)
{
	struct lnet_sim *sim = pair(1);
	uint64_t back = 0;
	struct ulnet_md umd =
		md_of(memory, sizeof(memory), LNET_MD_OP_PUT, &seen);

	if (silent)
		cut(sim, 1, true);
	else
		cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	while (!seen.n) {
		sent.n = 0;
		put(sim, nth_id(1), 3600 * SECOND, 0);
		while (!sent.n) {
			lnet_sim_run(sim, MSEC / 10);
			if (back || lnet_sim_now(sim) < outage)
				continue;
			back = lnet_sim_now(sim);
			if (silent) {
				cut(sim, 1, false);
				continue;
			}
			cr_assert_eq(lnet_sim_restart(sim, 1), 0);
			post_md(lnet_sim_node(sim, 1), PORTAL, BITS, &umd);
		}
		lnet_sim_run(sim, tcp.latency);
	}
	cr_expect_leq(lnet_sim_now(sim) - back, SOON, "%lu ms after %lu ms",
		      (lnet_sim_now(sim) - back) / MSEC, outage / MSEC);
	cluster_end(sim);
}

Test(connect, recovers_soon_after_any_outage)
{
	static const uint64_t outages[] = { 1, 100, 1000, 5000, 60000 };

	for (unsigned int i = 0; i < ARRAY_SIZE(outages); i++) {
		recovers(outages[i] * MSEC, false);
		recovers(outages[i] * MSEC, true);
	}
}

/* A message from the peer ends the pause between attempts to reach it. */
Test(connect, a_message_from_the_peer_ends_a_pause)
{
	struct lnet_sim *sim = pair(1);
	struct ulnet_id a = nth_id(0), b = nth_id(1);
	struct ulnet_sim_link refuses = tcp;

	refuses.refuse = LNET_SIM_ALWAYS;
	cr_assert_eq(lnet_sim_link_set(sim, &a.nid, &b.nid, &refuses), 0);
	for (unsigned int i = 0; i < 8; i++) {
		sent.n = 0;
		put(sim, b, SECOND, i);
		while (!sent.n)
			lnet_sim_run(sim, MSEC / 10);
	}
	cr_assert_eq(lnet_sim_link_set(sim, &a.nid, &b.nid, &tcp), 0);
	sent.n = 0;
	put(sim, b, SECOND, 9);
	put_bytes(lnet_sim_node(sim, 1), a, PORTAL, BITS, source, 1);
	lnet_sim_run(sim, CONNECT + 2 * tcp.latency);
	seen_end(&sent, LNET_EVENT_SEND, 0, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_OK);
	cr_assert_geq(seen.n, 1);
	cluster_end(sim);
}

Test(connect, ni_goes)
{
	struct lnet_sim *sim = pair(1);
	struct ulnet_id a = nth_id(0);

	cut(sim, 1, true);
	for (unsigned int i = 0; i < 20; i++)
		put(sim, nth_id(1), 20 * SECOND, i);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_ni_del(lnet_sim_node(sim, 0), &a.nid), 0);
	lnet_sim_run(sim, 0);
	cr_assert_eq(sent.n, 20);
	for (unsigned int i = 0; i < 20; i++)
		cr_expect_eq(sent.ev[i].status, -ESHUTDOWN);
	cluster_end(sim);
}

Test(connect, node_closes)
{
	struct lnet_sim *sim = pair(2);

	cut(sim, 1, true);
	for (unsigned int i = 0; i < 20; i++)
		put(sim, nth_id(1), 20 * SECOND, i);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_sim_free(sim), 0);
	cr_assert_eq(sent.n, 20);
}
