/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What false claims cost the node that hears them: its own NI loses no health
 * by them, the claimed NIDs are pinged seldom, and what is kept of them is
 * little.
 */
#include <ulnet/fault.h>

#include "lnet/net/net.h"
#include "lnet/net/ni.h"
#include "tests/slice.h"
#include "tests/unit/lnet/discovery/lie_rig.h"

#define SECOND UINT64_C(1000000) /* us */

/* ---- the health of the node's own NI ---- */

static int32_t my_health(const struct rig *r)
{
	const struct ulnet_nid nid = nid_of("10.0.0.1@tcp");

	return ni_health(config_ni(r->node->cpt[0]->config, &nid));
}

static int32_t its_health(const struct rig *r, const char *text)
{
	const struct ulnet_nid nid = nid_of(text);

	return peer_find(r->node->cpt[0], &nid)->health;
}

/* Makes all that is sent to @to fail with @cause. */
static void sending_fails(const struct rig *r, const char *to,
			  enum ulnet_cause cause)
{
	struct ulnet_fault f;

	lnet_fault_init(&f, LNET_FAULT_ERROR);
	f.dest = nid_of(to);
	f.rate = 1;
	f.causes = LNET_FAULT_CAUSE(cause);
	cr_assert_eq(lnet_fault_add(r->node, &f), 0);
}

/* The node's own NI loses no health because of claimed NIDs that are dead, or
 * that no path leads to. @used: messages are sent to one of them; else only
 * pings and pushes. */
static void names_the_unreachable(enum ulnet_cause cause, bool used)
{
	static const char *const dead[] = { "10.0.0.67@tcp", "10.0.0.68@tcp" };
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	cr_assert_eq(lnet_setting_set(r.node, "retry_count", 0), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(dead); i++)
		sending_fails(&r, dead[i], cause);
	lie_begin(3);
	lie_nid(LIAR);
	for (unsigned int i = 0; i < ARRAY_SIZE(dead); i++)
		lie_nid(dead[i]);
	for (unsigned int i = 0; i < 8; i++) {
		lie_push(r.liar, "10.0.0.1@tcp");
		if (used)
			put_to(r.node, dead[0], SECOND, &seen);
		else
			put_to(r.node, LIAR, SECOND, &seen);
		lnet_sim_run(r.sim, 2000 * MSEC);
		cr_assert_eq(my_health(&r), LNET_HEALTH_MAX, "round %u", i);
	}
	if (used)
		cr_assert_lt(its_health(&r, dead[0]), LNET_HEALTH_MAX);
	cluster_end(r.sim);
}

Test(claim_cost, names_the_unreachable)
{
	static const enum ulnet_cause causes[] = { LNET_CAUSE_LOCAL_NO_ROUTE,
						   LNET_CAUSE_NETWORK_TIMEOUT };

	for (unsigned int i = 0; i < ARRAY_SIZE(causes); i++) {
		names_the_unreachable(causes[i], false);
		names_the_unreachable(causes[i], true);
	}
}

/* Nor does the node's NI lose health by NIDs that were known, and are dead now,
 * though each claim pings them. */
Test(claim_cost, claims_the_unreachable)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	put_to(r.node, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run_all(r.sim);
	delivered();
	sending_fails(&r, "10.0.0.2@tcp", LNET_CAUSE_NETWORK_TIMEOUT);
	for (unsigned int i = 0; i < 4; i++) {
		lie_two(&r, LIAR, "10.0.0.2@tcp");
		lnet_sim_run(r.sim, 60000 * MSEC);
		cr_assert_eq(my_health(&r), LNET_HEALTH_MAX);
	}
	cr_assert_gt(counter(r.node, "network_timeout_count"), 0);
	/* The NID is pinged at growing intervals, however often it is claimed,
	 * and no more once it has answered. */
	cr_assert_leq(counter(r.node, "network_timeout_count"), 12);
	cr_assert_eq(lnet_fault_del(r.node, LNET_FAULT_KINDS, NULL, NULL), 1);
	lnet_sim_run_all(r.sim);
	WORD(r.node, "10.0.0.2@tcp", "own");
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cluster_end(r.sim);
}

/* ---- how often claimed NIDs are pinged ---- */

static uint64_t gets_to(const struct rig *r, const char *text)
{
	const struct ulnet_nid nid = nid_of(text);
	struct ulnet_peer_info peer;

	cr_assert_eq(lnet_peer_info(r->node, &nid, &peer), 0);
	return peer.sent.get;
}

/* Whether a claimed NID belongs to a peer is asked of the NID itself, not of
 * another NID of its owner. */
Test(claim_cost, a_claimed_nid_is_pinged_itself)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp 10.0.1.2@tcp");
	uint64_t first, second;

	put_to(r.node, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run_all(r.sim);
	delivered();
	first = gets_to(&r, "10.0.0.2@tcp");
	second = gets_to(&r, "10.0.1.2@tcp");
	for (unsigned int i = 0; i < 4; i++) {
		lie_two(&r, LIAR, "10.0.0.2@tcp");
		lnet_sim_run(r.sim, 60000 * MSEC);
	}
	cr_assert_gt(gets_to(&r, "10.0.0.2@tcp"), first);
	cr_assert_eq(gets_to(&r, "10.0.1.2@tcp"), second);
	cluster_end(r.sim);
}

/* However often a NID is claimed, it is pinged only at the intervals that
 * follow its denials. */
Test(claim_cost, claims_again_and_again)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp");
	uint64_t asked;

	put_to(r.node, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run_all(r.sim);
	delivered();
	asked = gets_to(&r, "10.0.0.2@tcp");
	for (unsigned int i = 0; i < 600; i++) {
		lie_two(&r, LIAR, "10.0.0.2@tcp");
		lnet_sim_run(r.sim, 95 * MSEC);
	}
	asked = gets_to(&r, "10.0.0.2@tcp") - asked;
	/* In a minute: after 1, 2, 4, 8, 16 and 32 s at most, or after half of
	 * each. */
	cr_assert_geq(asked, 6);
	cr_assert_leq(asked, 7);
	cr_assert_eq(counter(r.node, "claims_refused"), asked);
	cr_assert_geq(counter(r.node, "claims_paused"), 600 - asked);
	cluster_end(r.sim);
}

/* A claim that was made during an interval is checked after it, even if it is
 * not repeated. */
Test(claim_cost, claims_in_the_pause)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	put_to(r.node, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run_all(r.sim);
	delivered();
	for (unsigned int i = 0; i < 2; i++) {
		lie_two(&r, LIAR, "10.0.0.2@tcp");
		lnet_sim_run(r.sim, 100 * MSEC);
	}
	cr_assert_eq(counter(r.node, "claims_refused"), 1);
	cr_assert_eq(counter(r.node, "claims_paused"), 1);
	lnet_sim_run(r.sim, 1000 * MSEC);
	cr_assert_eq(counter(r.node, "claims_refused"), 2);
	cluster_end(r.sim);
}

/* Nor does the node's NI lose health when the LND finds claimed NIDs silent,
 * and nobody else is heard. */
Test(claim_cost, claims_the_silent)
{
	const struct ulnet_sim_link slow = { .latency = MSEC, .connect = MSEC };
	const struct ulnet_sim_link dead = { .connect = MSEC, .loss = 1000000 };
	const struct ulnet_nid node = nid_of("10.0.0.1@tcp");
	const struct ulnet_nid nid = nid_of("10.0.0.2@tcp");
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	cluster_links(r.sim, &slow);
	cr_assert_eq(lnet_sim_link_set(r.sim, &node, &nid, &dead), 0);
	lie_begin(2);
	lie_nid(LIAR);
	lie_nid("10.0.0.2@tcp");
	lie_push(r.liar, "10.0.0.1@tcp");
	for (unsigned int t = 0; t < 2000; t++) {
		lnet_sim_run(r.sim, MSEC);
		cr_assert_eq(my_health(&r), LNET_HEALTH_MAX);
	}
	cr_assert_gt(counter(r.node, "silences"), 0);
	cr_assert_lt(its_health(&r, "10.0.0.2@tcp"), LNET_HEALTH_MAX);
	cluster_end(r.sim);
}

/* ---- shares ---- */

/* NIDs that were only claimed make way for peers that send messages themselves.
 */
Test(claim_cost, claimed_nids_have_a_share)
{
	enum { PEERS = 40 };
	struct ulnet_conf conf = mode_conf(LNET_DISCOVERY_ON);
	struct lnet_sim *sim;
	struct lnet *node, *liar;
	char text[80];
	int i;

	conf.peers_max = PEERS;
	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	cr_assert_geq(lnet_sim_node_add(sim, "10.0.0.1@tcp", &conf, NULL, NULL),
		      0);
	node = lnet_sim_node(sim, 0);
	node_mode(sim, LIAR, LNET_DISCOVERY_OFF);
	liar = lnet_sim_node(sim, 1);
	lie_begin(100);
	lie_nid(LIAR);
	for (i = 1; i < 100; i++) {
		snprintf(text, sizeof(text), "10.7.0.%d@tcp", i);
		lie_nid(text);
	}
	for (i = 0; i < 3; i++) {
		lie_push(liar, "10.0.0.1@tcp");
		lnet_sim_run(sim, 5 * MSEC);
	}
	/* half of them, and the liar */
	cr_assert_leq(counter(node, "peers"), PEERS / 2 + 2);
	cr_assert_geq(counter(node, "peers"), PEERS / 2);
	for (i = 1; i < PEERS; i++) {
		struct lnet *other;

		struct ulnet_peer_info peer;
		struct ulnet_nid nid;

		snprintf(text, sizeof(text), "10.6.0.%d@tcp", i);
		nid = nid_of(text);
		node_mode(sim, text, LNET_DISCOVERY_OFF);
		other = lnet_sim_node(sim, (unsigned int)i + 1);
		put_to(other, "10.0.0.1@tcp", UINT64_C(1000), NULL);
		lnet_sim_run(sim, 5 * MSEC);
		cr_assert_eq(lnet_peer_info(node, &nid, &peer), 0);
	}
	cluster_end(sim);
}

/* Names @n NIDs that nobody has, others in each @round, and the liar's own. */
static void lie_at_random(unsigned int n, unsigned int round, bool up)
{
	lie_begin(n + 1);
	lie_nid(LIAR);
	for (unsigned int i = 0; i < n; i++) {
		struct ulnet_nid nid;
		char text[80];

		snprintf(text, sizeof(text), "10.%u.%u.%u@tcp",
			 100 + round / 50, round % 50, i + 1);
		nid = nid_of(text);
		lie_nid4(lnet_nid_to_nid4(&nid), up ? 0x15aac0de : 0xdeadface);
	}
}

/* Sends that failed, of whatever kind. */
static uint64_t failures(struct lnet *node)
{
	return counter(node, "remote_dropped_count") +
	       counter(node, "remote_error_count") +
	       counter(node, "remote_timeout_count") +
	       counter(node, "network_timeout_count");
}

/* A stranger who names other NIDs in each push, up or down, leaves no more
 * behind than what he has named last, and few of these are tried at a time:
 * while he pushes, and in the minute after that. */
Test(claim_cost, random_nids_leave_nothing)
{
	enum { NIDS = 127, A_PUSH = 8, A_SECOND = 20 };
	const unsigned int rounds = slice_of(50, 15);
	const unsigned int seconds = 60;

	for (unsigned int i = 0; i < 4; i++) {
		unsigned int cpts = 1 + i / 2;
		struct rig r = rig_open(cpts, "10.0.0.2@tcp");
		uint64_t before;

		arrives(&r, r.node, "10.0.0.2@tcp");
		before = failures(r.node);
		for (unsigned int round = 0; round < rounds; round++) {
			lie_at_random(NIDS, round, i % 2);
			lie_push(r.liar, "10.0.0.1@tcp");
			lnet_sim_run(r.sim, 10 * MSEC);
		}
		cr_assert_leq(counter(r.node, "peers"), 3 * NIDS,
			      "%u CPTs, up %u", cpts, i % 2);
		lnet_sim_run(r.sim, seconds * 1000 * MSEC);
		cr_assert_leq(failures(r.node) - before,
			      rounds * A_PUSH + seconds * A_SECOND,
			      "%u CPTs, up %u", cpts, i % 2);
		/* others did not notice */
		arrives(&r, r.node, "10.0.0.2@tcp");
		cluster_end(r.sim);
	}
}
