/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces with less than full health are pinged until they have it again, at
 * growing intervals. Nothing is sent where there is no other interface to
 * choose, or when all are healthy (requirement D6).
 */
#include <criterion/criterion.h>
#include "tests/unit/lnet/rails.h"

/* Returns how many GETs node 1 has received so far. */
static uint64_t pings(struct lnet_sim *sim)
{
	struct ulnet_ni_info ni;
	uint64_t n = 0;

	for (unsigned int i = 1; i <= 2; i++) {
		cr_assert_eq(lnet_ni_info(lnet_sim_node(sim, 1), i, &ni), 0);
		n += ni.received.get;
	}
	return n;
}

static void expect_silence(struct lnet_sim *sim)
{
	uint64_t before = pings(sim);

	lnet_sim_run(sim, 10000 * MSEC);
	cr_expect_eq(pings(sim), before);
}

Test(recovery, a_peer_that_is_well_again)
{
	struct lnet_sim *sim = rails();

	paths_are(sim, NULL, theirs[0], &refuses);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(peer_health(sim, 0), 900);
	cr_assert_eq(pings(sim), 0);
	rails_heal(sim);
	lnet_sim_run(sim, 100 * MSEC);
	cr_expect_eq(peer_health(sim, 0), 1000);
	cr_expect_eq(pings(sim), 1);
	cr_expect_eq(lnet_sim_check(sim), 0);
	expect_silence(sim);
	rails_end(sim);
}

/* Asserts that @n pings fail in the next @ms. */
static void expect_failures(struct lnet_sim *sim, uint64_t ms, unsigned int n)
{
	uint64_t before = counted(sim, "remote_dropped_count");

	lnet_sim_run(sim, ms * MSEC);
	cr_expect_eq(counted(sim, "remote_dropped_count") - before, n, "%lu",
		     counted(sim, "remote_dropped_count") - before);
}

/* Intervals are 100, 200, 400 ms, and so on up to 1 s, then a 32nd of the
 * outage, or the maximum that is set. Pings that fail cost the peer NI health
 * (seed 000), and nobody else. */
Test(recovery, intervals_grow)
{
	struct lnet_sim *sim = rails();

	cr_assert_eq(
		lnet_setting_set(lnet_sim_node(sim, 0), "recovery_limit", 0),
		0);
	paths_are(sim, NULL, theirs[0], &refuses);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	expect_failures(sim, 2000, 4);
	cr_expect_eq(peer_health(sim, 0), 900 - 4 * 100);
	expect_failures(sim, 20000, 20);
	lnet_sim_run(sim, 42000 * MSEC); /* 64 s */
	expect_failures(sim, 16000, 7);
	lnet_sim_run(sim, 48000 * MSEC); /* 128 s */
	expect_failures(sim, 32000, 7);
	cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, 0),
				      "max_recovery_ping_interval", 2),
		     0);
	lnet_sim_run(sim, 6000 * MSEC);
	expect_failures(sim, 20000, 10);
	cr_expect_eq(peer_health(sim, 0), 0);
	cr_expect_eq(peer_health(sim, 1), 1000);
	cr_expect_eq(my_health(sim, 0), 1000);
	cr_expect_eq(my_health(sim, 1), 1000);
	cr_expect_eq(counted(sim, "resend_count"), 1, "pings are sent once");
	rails_heal(sim);
	lnet_sim_run(sim, 2000 * MSEC);
	/* Else it is pinged, and the simulation runs, for ever. */
	cr_assert_eq(peer_health(sim, 0), 1000);
	rails_end(sim);
}

/* Recovery also raises health that was lowered by hand. */
Test(recovery, health_set_by_hand)
{
	const struct ulnet_nid ni = nid_of(mine[1]), peer = nid_of(theirs[0]);
	struct lnet_sim *sim = rails();
	struct lnet *node = lnet_sim_node(sim, 0);

	put(sim, mine[1], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_ni_set_health(node, &ni, 700), 0);
	cr_assert_eq(lnet_peer_set_health(node, &peer, 0), 0);
	cr_assert_eq(my_health(sim, 1), 700);
	cr_assert_eq(peer_health(sim, 0), 0);
	lnet_sim_run(sim, 500 * MSEC);
	cr_expect_eq(my_health(sim, 1), 1000);
	cr_expect_eq(peer_health(sim, 0), 1000);
	expect_silence(sim);
	cr_assert_eq(lnet_peer_set_health(node, NULL, 500), 0);
	cr_assert_eq(lnet_ni_set_health(node, NULL, 500), 0);
	lnet_sim_run(sim, 500 * MSEC);
	for (unsigned int i = 0; i < 2; i++) {
		cr_expect_eq(my_health(sim, i), 1000);
		cr_expect_eq(peer_health(sim, i), 1000);
	}
	rails_end(sim);
}

/* A peer from which something is received is pinged soon. */
Test(recovery, a_peer_that_sends)
{
	struct lnet_sim *sim = rails();
	const struct ulnet_id back = id_of(mine[0]);
	struct ulnet_md umd = md_of(source, 10, 0, NULL);

	paths_are(sim, NULL, theirs[0], &refuses);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(peer_health(sim, 0), 900);
	lnet_sim_run(sim, 20000 * MSEC);
	cr_assert_eq(peer_health(sim, 0), 0);
	rails_heal(sim);
	cr_assert_eq(LNetPut(nid_of(theirs[0]),
			     bind_md(lnet_sim_node(sim, 1), &umd),
			     LNET_NOACK_REQ, back, PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run(sim, 400 * MSEC);
	cr_expect_eq(peer_health(sim, 0), 1000);
	expect_silence(sim);
	rails_end(sim);
}

Test(recovery, limit)
{
	struct lnet_sim *sim = rails();
	uint64_t failed;

	cr_assert_eq(
		lnet_setting_set(lnet_sim_node(sim, 0), "recovery_limit", 5),
		0);
	paths_are(sim, NULL, theirs[0], &refuses);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, 7000 * MSEC);
	failed = counted(sim, "remote_dropped_count");
	lnet_sim_run(sim, 1000000 * MSEC);
	cr_expect_eq(counted(sim, "remote_dropped_count"), failed);
	rails_end(sim);
}

static void set(struct lnet_sim *sim, const char *name, int64_t value)
{
	cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, 0), name, value), 0);
}

/* While health is off, nobody is pinged, whatever health was set by hand; once
 * it is on again, what is ill is. */
Test(recovery, off_and_on)
{
	const struct ulnet_nid ni = nid_of(mine[1]), peer = nid_of(theirs[0]);
	struct lnet_sim *sim = rails();
	struct lnet *node = lnet_sim_node(sim, 0);

	put(sim, mine[1], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	set(sim, "health_sensitivity", 0);
	cr_assert_eq(lnet_ni_set_health(node, &ni, 999), 0);
	cr_assert_eq(lnet_peer_set_health(node, &peer, 999), 0);
	expect_silence(sim);
	cr_expect_eq(my_health(sim, 1), 999);
	cr_expect_eq(peer_health(sim, 0), 999);
	set(sim, "health_sensitivity", 1);
	lnet_sim_run(sim, 500 * MSEC);
	cr_expect_eq(my_health(sim, 1), 1000);
	cr_expect_eq(peer_health(sim, 0), 1000);
	expect_silence(sim);
	rails_end(sim);
}

/* Pings that are under way end when health is switched off. */
/* An idle node whose NIs are all ill, and whose peer does not answer, sends no
 * more than a ping a second for each NI, beside the first ones. */
Test(recovery, no_storm_while_idle)
{
	struct lnet_sim *sim = rails();
	struct lnet *node = lnet_sim_node(sim, 0);
	uint64_t before;

	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	paths_are(sim, NULL, NULL, &refuses);
	for (unsigned int i = 0; i < 2; i++) {
		const struct ulnet_nid ni = nid_of(mine[i]);

		cr_assert_eq(lnet_ni_set_health(node, &ni, 0), 0);
	}
	before = counted(sim, "remote_dropped_count");
	lnet_sim_run(sim, 30000 * MSEC);
	cr_expect_gt(counted(sim, "remote_dropped_count"), before);
	cr_expect_leq(counted(sim, "remote_dropped_count") - before,
		      2 * (30 + 4), "%lu",
		      counted(sim, "remote_dropped_count") - before);
	rails_heal(sim);
	lnet_sim_run(sim, 2000 * MSEC);
	rails_end(sim);
}

Test(recovery, off_during_pings)
{
	struct lnet_sim *sim = rails();

	paths_are(sim, NULL, theirs[0], &refuses);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, 3000 * MSEC);
	cr_assert_lt(peer_health(sim, 0), 900);
	set(sim, "health_sensitivity", 0);
	rails_heal(sim);
	lnet_sim_run(sim, 2000 * MSEC);
	expect_silence(sim);
	rails_end(sim);
}

/* A small gain makes recovery slow, and not pings many. */
Test(recovery, a_small_gain)
{
	const struct ulnet_nid peer = nid_of(theirs[0]);
	struct lnet_sim *sim = rails();
	uint64_t before;

	put(sim, mine[1], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	set(sim, "health_gain", 1);
	before = pings(sim);
	cr_assert_eq(lnet_peer_set_health(lnet_sim_node(sim, 0), &peer, 900),
		     0);
	lnet_sim_run(sim, 60000 * MSEC);
	cr_expect_lt(pings(sim) - before, 16 + 61);
	cr_expect_gt(pings(sim) - before, 60);
	cr_expect_eq((uint64_t)peer_health(sim, 0) - 900, pings(sim) - before);
	lnet_sim_run(sim, 60000 * MSEC);
	cr_expect_eq(peer_health(sim, 0), 1000);
	expect_silence(sim);
	rails_end(sim);
}

/* A local NI recovers by pinging a peer that this node has sent to. */
Test(recovery, an_ni_of_ours)
{
	struct lnet_sim *sim = rails();
	struct ulnet_ni_info ni;

	put(sim, mine[1], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	paths_are(sim, mine[0], NULL, &fails);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(my_health(sim, 0), 900);
	rails_heal(sim);
	lnet_sim_run(sim, 100 * MSEC);
	cr_expect_eq(my_health(sim, 0), 1000);
	cr_assert_eq(lnet_ni_info(lnet_sim_node(sim, 0), 1, &ni), 0);
	cr_expect_eq(ni.sent.get, 1, "the ping went out on it");
	expect_silence(sim);
	rails_end(sim);
}

/* Of several known peers on the NI's net only one can be reached, whichever it
 * is: it is pinged in its turn. */
Test(recovery, an_ni_asks_all_in_turn)
{
	enum { PEERS = 8 };
	const struct ulnet_nid ni = nid_of(mine[0]);

	for (unsigned int left = 0; left < PEERS; left++) {
		struct lnet_sim *sim = rails();
		struct lnet *node = lnet_sim_node(sim, 0);

		for (unsigned int i = 0; i < PEERS; i++) {
			char nid[32];

			snprintf(nid, sizeof(nid), "10.0.0.%u@tcp", 10 + i);
			cr_assert_eq(plain_node(sim, nid, NULL, NULL, NULL),
				     (int)(2 + i));
			put_bytes(lnet_sim_node(sim, 2 + i), id_of(mine[0]),
				  PORTAL, BITS, source, 10);
			put_bytes(node, id_of(nid), PORTAL, BITS, source, 10);
			lnet_sim_run(sim, MSEC);
			if (i != left)
				paths_are(sim, NULL, nid, &refuses);
		}
		cr_assert_eq(lnet_ni_set_health(node, &ni, 900), 0);
		lnet_sim_run(sim, PEERS * 1000 * MSEC);
		cr_expect_eq(my_health(sim, 0), 1000, "number %u is left",
			     left);
		/* Else it is pinged, and the simulation runs, for ever. */
		cr_assert_eq(lnet_ni_set_health(node, &ni, 1000), 0);
		rails_end(sim);
	}
}

/* All peers of the CPT that recovers the NI are dead; one that another CPT
 * knows can be reached, and is pinged in its turn. */
Test(recovery, an_ni_asks_those_of_other_cpts)
{
	enum { PEERS = 8 };
	const struct ulnet_nid ni = nid_of(mine[0]);
	unsigned int known[2] = { 0 };
	struct lnet_sim *sim;
	struct lnet *node;

	cr_assert_eq(lnet_sim_new(1, 2, &sim), 0);
	cr_assert_eq(
		plain_node(sim, "10.0.0.1@tcp 10.0.1.1@tcp", NULL, NULL, NULL),
		0);
	node = lnet_sim_node(sim, 0);
	for (unsigned int i = 0; i < PEERS; i++) {
		struct ulnet_nid nid;
		unsigned int cpt;
		char text[32];

		snprintf(text, sizeof(text), "10.0.0.%u@tcp", 10 + i);
		nid = nid_of(text);
		cr_assert_eq(plain_node(sim, text, NULL, NULL, NULL),
			     (int)(1 + i));
		cpt = node_cpt_of(node, &nid);
		if (cpt == 1 && known[1])
			continue;
		known[cpt]++;
		put_bytes(lnet_sim_node(sim, 1 + i), id_of(mine[0]), PORTAL,
			  BITS, source, 10);
		put_bytes(node, id_of(text), PORTAL, BITS, source, 10);
		lnet_sim_run(sim, MSEC);
		if (cpt == 0)
			paths_are(sim, NULL, text, &refuses);
	}
	cr_assert(known[0] && known[1]);
	/* CPT 0 recovers the NI. */
	cr_assert_eq(lnet_ni_set_health(node, &ni, 900), 0);
	lnet_sim_run(sim, PEERS * 1000 * MSEC);
	cr_expect_eq(my_health(sim, 0), 1000);
	cr_assert_eq(lnet_ni_set_health(node, &ni, 1000), 0);
	cluster_end(sim);
}

/* A peer that another CPT owns by now is no longer pinged here; its health here
 * stays as it was. */
Test(recovery, a_peer_that_has_moved)
{
	struct lnet_sim *sim = rails();
	struct lnet_cpt *cpt = lnet_sim_node(sim, 0)->cpt[0];
	struct ulnet_nid nid = nid_of(theirs[0]);
	struct lnet_peer_ni *lpni = peer_find(cpt, &nid);

	paths_are(sim, NULL, theirs[0], &refuses);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(peer_health(sim, 0), 900);
	cr_assert_not_null(lpni->recovery);
	lpni->place.state = PEER_ALIAS;
	lnet_sim_run(sim, 1000 * MSEC);
	cr_expect_null(lpni->recovery);
	cr_expect_eq(lpni->health, 900);
	lpni->place.state = PEER_HERE;
	expect_silence(sim);
	rails_end(sim);
}

/* The NI knows no peer to ping: it recovers as time passes. */
Test(recovery, an_ni_that_knows_nobody)
{
	struct lnet_sim *sim = rails();
	const struct ulnet_nid other = nid_of("10.5.0.1@tcp5");
	struct ulnet_ni_conf conf = { .nid = other };
	struct lnet_cpt *cpt;

	cr_assert_eq(lnet_ni_add(lnet_sim_node(sim, 0), &conf), 0);
	lnet_sim_run(sim, MSEC);
	cpt = lnet_sim_node(sim, 0)->cpt[0];
	health_lose_ni(cpt, config_ni(cpt->config, &other));
	cr_assert_eq(ni_health(config_ni(cpt->config, &other)), 900);
	lnet_sim_run(sim, 100 * MSEC);
	cr_expect_eq(ni_health(config_ni(cpt->config, &other)), 1000);
	cr_expect_eq(pings(sim), 0);
	rails_end(sim);
}

/* The only peer that is known on the NI's net does not exist. */
Test(recovery, an_ni_that_has_heard_nobody)
{
	struct lnet_sim *sim = rails();
	const struct ulnet_nid other = nid_of("10.5.0.1@tcp5");
	struct ulnet_ni_conf conf = { .nid = other };
	struct lnet *node = lnet_sim_node(sim, 0);
	struct lnet_cpt *cpt = node->cpt[0];

	cr_assert_eq(lnet_ni_add(node, &conf), 0);
	lnet_sim_run(sim, MSEC);
	put_bytes(node, id_of("10.5.0.2@tcp5"), PORTAL, BITS, source, 10);
	lnet_sim_run(sim, MSEC);
	health_lose_ni(cpt, config_ni(cpt->config, &other));
	lnet_sim_run(sim, 1000 * MSEC);
	cr_expect_eq(ni_health(config_ni(cpt->config, &other)), 1000);
	rails_end(sim);
}

/* With one NI on each side there is no choice, so nothing is pinged. */
Test(recovery, not_without_a_choice)
{
	struct lnet_sim *sim = cluster(2);
	uint64_t failed;

	cluster_links(sim, &refuses);
	put_bytes(lnet_sim_node(sim, 0), nth_id(1), PORTAL, BITS, source, 10);
	lnet_sim_run(sim, 100 * MSEC);
	cr_assert_eq(peer_health(sim, 0), 700, "three attempts have failed");
	failed = counted(sim, "remote_dropped_count");
	lnet_sim_run(sim, 10000 * MSEC);
	cr_expect_eq(counted(sim, "remote_dropped_count"), failed);
	rails_end(sim);
}

/* The NI was the only one when it lost health; then another one is added, which
 * would get all messages. */
Test(recovery, a_choice_that_comes_later)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_ni_conf conf = { .nid = nid_of("10.0.7.1@tcp") };
	const struct ulnet_sim_link works = { .latency = 10000 };

	put_bytes(node, nth_id(1), PORTAL, BITS, source, 10);
	lnet_sim_run(sim, MSEC);
	cluster_links(sim, &fails);
	put_bytes(node, nth_id(1), PORTAL, BITS, source, 10);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(my_health(sim, 0), 900);
	cluster_links(sim, &works);
	lnet_sim_run(sim, 10000 * MSEC);
	cr_assert_eq(my_health(sim, 0), 900);
	cr_assert_eq(lnet_ni_add(node, &conf), 0);
	lnet_sim_run(sim, 200 * MSEC);
	cr_expect_eq(my_health(sim, 0), 1000);
	rails_end(sim);
}

Test(recovery, the_ni_goes)
{
	struct lnet_sim *sim = rails();
	const struct ulnet_nid nid = nid_of(mine[0]);

	paths_are(sim, mine[0], NULL, &fails);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(my_health(sim, 0), 900);
	cr_assert_eq(lnet_ni_del(lnet_sim_node(sim, 0), &nid), 0);
	expect_silence(sim);
	rails_end(sim);
}

/* Closes the node between two pings, and during one. */
Test(recovery, the_node_closes)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct lnet_sim *sim = rails();

		paths_are(sim, NULL, theirs[0], &refuses);
		put(sim, mine[0], 0, SECOND);
		lnet_sim_run(sim, MSEC);
		paths_are(sim, NULL, theirs[0], &stalls);
		lnet_sim_run(sim, (i ? 150 : 50) * MSEC);
		cr_assert_eq(lnet_sim_free(sim), 0);
	}
}
