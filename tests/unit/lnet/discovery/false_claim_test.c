/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer claims NIDs that are not its own: nobody becomes a part of a peer
 * without having confirmed that, and nobody gets messages that are for another
 * node. (NIDs that nobody had met: unverified_test.c.)
 */
#include <ulnet/fault.h>

#include "tests/unit/lnet/discovery/lie_rig.h"

/* ---- claims of NIDs that are in use ---- */

static void claims_one_in_use(unsigned int cpts)
{
	struct rig r = rig_open(cpts, "10.0.0.2@tcp");

	arrives(&r, r.node, "10.0.0.2@tcp");
	lie_two(&r, LIAR, "10.0.0.2@tcp");
	lnet_sim_run_all(r.sim);
	KNOWS(r.node, LIAR, LIARS);
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cr_assert_eq(counter(r.node, "claims_refused"), 1);
	/* The victim is claimed as primary NID, too, once it may be asked
	 * again. */
	lnet_sim_run(r.sim, 1000 * MSEC);
	lie_two(&r, "10.0.0.2@tcp", LIAR);
	lnet_sim_run_all(r.sim);
	KNOWS(r.node, LIAR, LIARS);
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cr_assert_eq(counter(r.node, "claims_refused"), 2);
	arrives(&r, r.node, "10.0.0.2@tcp");
	cluster_end(r.sim);
}

Test(false_claim, claims_one_in_use)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		claims_one_in_use(cpts);
}

/* The liar gets the other NIDs of its announcement, until these say otherwise.
 */
Test(false_claim, claims_one_of_several)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	arrives(&r, r.node, "10.0.0.2@tcp");
	lie_begin(3);
	lie_nid(LIAR);
	lie_nid("10.0.0.2@tcp");
	lie_nid("10.0.0.67@tcp");
	lie_push(r.liar, "10.0.0.1@tcp");
	lnet_sim_run(r.sim, 5 * MSEC);
	KNOWS(r.node, LIAR, LIARS " 10.0.0.67@tcp");
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cluster_end(r.sim);
}

/* ---- NIDs that have answered themselves ---- */

Test(false_claim, rails_speak_when_used)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp 10.0.1.2@tcp");
	const struct ulnet_nid first = nid_of("10.0.0.2@tcp");

	arrives(&r, r.node, "10.0.0.2@tcp");
	KNOWS(r.node, "10.0.0.2@tcp",
	      "discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp");
	WORD(r.node, "10.0.0.2@tcp", "own");
	/* The next message comes from the other NID. */
	cr_assert_eq(lnet_ni_set_health(r.victim, &first, 0), 0);
	arrives(&r, r.victim, "10.0.0.1@tcp");
	WORD(r.node, "10.0.1.2@tcp", "own");
	KNOWS(r.node, "10.0.1.2@tcp",
	      "discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp");
	cr_assert_eq(counter(r.node, "claims_refused"), 0);
	cluster_end(r.sim);
}

Test(false_claim, configured_need_not_speak)
{
	const struct ulnet_nid nids[] = { nid_of(LIAR),
					  nid_of("10.0.0.2@tcp") };
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	lie_unasked(&r, LIAR, "10.0.0.2@tcp");
	WORD(r.node, "10.0.0.2@tcp", "hearsay");
	cr_assert_eq(lnet_peer_add(r.node, nids, 2, true), 0);
	WORD(r.node, "10.0.0.2@tcp", "own");
	arrives(&r, r.victim, "10.0.0.1@tcp");
	WORD(r.node, "10.0.0.2@tcp", "own");
	cluster_end(r.sim);
}

/* A NID that is configured, and owned by another CPT, stays there, and does not
 * hold up the discovery of the liar. */
Test(false_claim, claims_a_configured_one)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		const struct ulnet_nid nid = nid_of("10.0.0.2@tcp");
		struct rig r = rig_open(cpts, "10.0.0.2@tcp");

		cr_assert_eq(lnet_peer_add(r.node, &nid, 1, true), 0);
		lie_two(&r, LIAR, "10.0.0.2@tcp");
		lnet_sim_run(r.sim, 100 * MSEC);
		KNOWS(r.node, LIAR, LIARS);
		cr_assert_eq(counter(r.node, "discoveries_failed"), 0);
		cluster_end(r.sim);
	}
}

/* ---- NIDs that are announced as down ---- */

static bool is_down(struct lnet *node, const char *text)
{
	const struct ulnet_nid nid = nid_of(text);
	struct ulnet_peer_info peer;

	cr_assert_eq(lnet_peer_info(node, &nid, &peer), 0);
	cr_assert_eq(peer.health, peer.down ? 0 : LNET_HEALTH_MAX);
	return peer.down;
}

/* The announcement that an NI is down is not believed of the NI that it came
 * from. */
Test(false_claim, announces_itself_as_down)
{
	const struct ulnet_nid own = nid_of(LIAR);
	const struct ulnet_nid other = nid_of("10.0.0.67@tcp");
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	lie_begin(2);
	lie_nid4(lnet_nid_to_nid4(&own), 0xdeadface);
	lie_nid4(lnet_nid_to_nid4(&other), 0xdeadface);
	lie_push(r.liar, "10.0.0.1@tcp");
	lnet_sim_run(r.sim, 5 * MSEC);
	cr_assert_not(is_down(r.node, LIAR));
	cr_assert(is_down(r.node, "10.0.0.67@tcp"));
	lie_two(&r, LIAR, "10.0.0.67@tcp");
	cr_assert_not(is_down(r.node, "10.0.0.67@tcp"));
	cluster_end(r.sim);
}

/* ---- a peer that accepts no connections ---- */

/* A node that accepts no connections discovers others, but is not discovered.
 */
Test(false_claim, a_node_that_accepts_no_connections)
{
	struct ulnet_conf conf = mode_conf(LNET_DISCOVERY_ON);
	struct lnet_sim *sim = NULL;
	struct lnet *node, *caller;

	memset(&seen, 0, sizeof(seen));
	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	node = node_on(sim, "10.0.0.1@tcp 10.0.1.1@tcp");
	conf.accept = LNET_ACCEPT_NONE;
	cr_assert_eq(lnet_sim_node_add(sim, "10.0.0.2@tcp 10.0.1.2@tcp", &conf,
				       NULL, NULL),
		     1);
	caller = lnet_sim_node(sim, 1);
	put_to(caller, "10.0.0.1@tcp", 0, &seen);
	lnet_sim_run_all(sim);
	delivered();
	KNOWS(caller, "10.0.0.1@tcp",
	      "discovered mr: 10.0.0.1@tcp 10.0.1.1@tcp");
	KNOWS(node, "10.0.0.2@tcp", "unknown: 10.0.0.2@tcp");
	cr_assert_eq(counter(node, "pushes"), 0);
	cluster_end(sim);
}

/* ---- NIDs that answer late, or never ---- */

/* The victim is pinged because of a claim, does not answer, but announces
 * another NID, and crashes: it is pinged once more whether the announcement
 * still holds. */
Test(false_claim, an_announcement_without_an_answer)
{
	const struct ulnet_ni_conf second = { .nid = nid_of("10.0.0.2@tcp1") };
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	arrives(&r, r.node, "10.0.0.2@tcp");
	victim_link(&r, false);
	lie_two(&r, LIAR, "10.0.0.2@tcp");
	cr_assert_eq(lnet_ni_add(r.victim, &second), 0);
	lnet_sim_run(r.sim, 5 * MSEC);
	KNOWS(r.node, "10.0.0.2@tcp", "discovering mr: 10.0.0.2@tcp");
	cr_assert_eq(lnet_sim_crash(r.sim, 1), 0);
	lnet_sim_run(r.sim, 60000 * MSEC);
	KNOWS(r.node, "10.0.0.2@tcp", "failed mr: 10.0.0.2@tcp 10.0.0.2@tcp1");
	victim_link(&r, true);
	cr_assert_eq(lnet_sim_restart(r.sim, 1), 0);
	lnet_sim_run_all(r.sim);
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cluster_end(r.sim);
}

static void asked(void *arg, int status)
{
	*(int *)arg = status;
}

/* An announcement that a claimed NID pushes may be old, so the NID is pinged
 * all the same. */
Test(false_claim, an_announcement_that_was_pushed)
{
	const struct ulnet_ni_conf second = { .nid = nid_of("10.0.0.2@tcp1") };
	const struct ulnet_nid victim = nid_of("10.0.0.2@tcp");
	struct rig r = rig_open(1, "10.0.0.2@tcp");
	int status = 0;

	arrives(&r, r.node, "10.0.0.2@tcp");
	victim_link(&r, false);
	cr_assert_eq(lnet_discover(r.node, &victim, LNET_DISCOVER_FORCE, asked,
				   &status),
		     0);
	while (!status)
		lnet_sim_run(r.sim, 5 * MSEC);
	lie_two(&r, LIAR, "10.0.0.2@tcp");
	WORD(r.node, "10.0.0.2@tcp", "claimed");
	cr_assert_eq(lnet_ni_add(r.victim, &second), 0);
	lnet_sim_run(r.sim, 5 * MSEC);
	KNOWS(r.node, "10.0.0.2@tcp",
	      "discovering mr: 10.0.0.2@tcp 10.0.0.2@tcp1");
	WORD(r.node, "10.0.0.2@tcp", "claimed");
	victim_link(&r, true);
	lnet_sim_run_all(r.sim);
	WORD(r.node, "10.0.0.2@tcp", "own");
	cluster_end(r.sim);
}

/* A claimed NID that is silent is pinged until it answers: it may really belong
 * to the peer that claims it by now. */
Test(false_claim, claims_one_that_is_silent)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	arrives(&r, r.node, "10.0.0.2@tcp");
	victim_link(&r, false);
	lie_two(&r, LIAR, "10.0.0.2@tcp");
	lnet_sim_run(r.sim, 60000 * MSEC);
	cr_assert_gt(counter(r.node, "discoveries_failed"), 1);
	victim_link(&r, true);
	lnet_sim_run_all(r.sim);
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	KNOWS(r.node, LIAR, LIARS);
	cluster_end(r.sim);
}

/* Adds an NI that is never sent from. */
static void ni_add_ill(struct lnet *node, const char *text)
{
	const struct ulnet_ni_conf ni = { .nid = nid_of(text) };

	cr_assert_eq(lnet_ni_add(node, &ni), 0);
	cr_assert_eq(lnet_ni_set_health(node, &ni.nid, 0), 0);
}

/* A peer has announced NIDs, which wait to be merged, when its NIDs go to
 * another peer that has announced fewer: the other peer is pinged for the rest.
 */
Test(false_claim, nids_go_to_another_peer_before_a_merge)
{
	const struct ulnet_nid first = nid_of("10.0.0.2@tcp");
	struct rig r = rig_open(1, "10.0.0.2@tcp");
	struct ulnet_fault fault;
	int status = 0;

	put_to(r.node, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run_all(r.sim);
	delivered();
	/* Discovery of this NID fails; later the first NID claims it. */
	put_to(r.node, "10.0.1.2@tcp", UINT64_C(10000), NULL);
	lnet_sim_run(r.sim, 20 * MSEC);
	ni_add_ill(r.victim, "10.0.1.2@tcp");
	lnet_sim_run(r.sim, 5 * MSEC);
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	KNOWS(r.node, "10.0.1.2@tcp", "failed: 10.0.1.2@tcp");
	WORD(r.node, "10.0.1.2@tcp", "claimed");
	lnet_fault_init(&fault, LNET_FAULT_DROP);
	fault.rate = 1;
	fault.messages = LNET_FAULT_REPLY;
	cr_assert_eq(lnet_fault_add(r.node, &fault), 0);
	cr_assert_eq(lnet_discover(r.node, &first, LNET_DISCOVER_FORCE, asked,
				   &status),
		     0);
	lnet_sim_run(r.sim, 5 * MSEC);
	ni_add_ill(r.victim, "10.0.0.2@tcp1");
	lnet_sim_run(r.sim, 5 * MSEC);
	KNOWS(r.node, "10.0.0.2@tcp", "discovering mr: 10.0.0.2@tcp");
	lie_begin(2);
	lie_nid("10.0.0.2@tcp");
	lie_nid("10.0.1.2@tcp");
	lie_push_by(r.victim, nid_of("10.0.1.2@tcp"), "10.0.0.1@tcp");
	lnet_sim_run(r.sim, 5 * MSEC);
	cr_assert_eq(lnet_fault_del(r.node, LNET_FAULT_DROP, NULL, NULL), 1);
	lnet_sim_run_all(r.sim);
	KNOWS(r.node, "10.0.0.2@tcp",
	      "discovered mr: 10.0.0.2@tcp 10.0.0.2@tcp1 10.0.1.2@tcp");
	cluster_end(r.sim);
}
