/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer claims NIDs that nobody had met: such a NID is unverified until it has
 * been asked itself, and meanwhile nobody gets messages that are for it.
 */
#include "tests/unit/lnet/discovery/lie_rig.h"

/* A message to a NID that the liar has claimed, and that nobody had met before,
 * goes to its owner and nowhere else. */
static void is_asked(unsigned int cpts, const char *first, const char *second)
{
	struct rig r = rig_open(cpts, "10.0.0.2@tcp");
	struct ulnet_nid primary;

	lie_unasked(&r, first, second);
	primary = primary_of(&r, "10.0.0.2@tcp");
	cr_assert(nid_is(&primary, first));
	arrives(&r, r.node, "10.0.0.2@tcp");
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cr_assert_eq(counter(r.node, "claims_refused"), 1);
	arrives(&r, r.node, "10.0.0.2@tcp");
	cluster_end(r.sim);
}

Test(unverified, is_pinged)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		is_asked(cpts, LIAR, "10.0.0.2@tcp");
		is_asked(cpts, "10.0.0.2@tcp", LIAR);
	}
}

static void on_asked(void *arg, int status)
{
	struct lnet *node = arg;

	cr_assert_eq(status, 0);
	KNOWS(node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	seen.n++;
}

/* An application that asks for discovery of such a NID waits until the NID has
 * answered itself. */
Test(unverified, is_discovered)
{
	const struct ulnet_nid nid = nid_of("10.0.0.2@tcp");

	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		struct rig r = rig_open(cpts, "10.0.0.2@tcp");

		lie_unasked(&r, LIAR, "10.0.0.2@tcp");
		lnet_sim_run(r.sim, 10000 * MSEC);
		KNOWS(r.node, LIAR, LIARS " 10.0.0.2@tcp");
		cr_assert_eq(lnet_discover(r.node, &nid, 0, on_asked, r.node),
			     0);
		lnet_sim_run_all(r.sim);
		cr_assert_eq(seen.n, 1);
		cluster_end(r.sim);
	}
}

static void on_silent(void *arg, int status)
{
	(void)arg;
	cr_assert_eq(status, -ETIMEDOUT);
	seen.n++;
}

/* If the NID does not answer, the application is told so. */
Test(unverified, is_not_discovered)
{
	const struct ulnet_nid nid = nid_of("10.0.0.2@tcp");
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	lie_unasked(&r, LIAR, "10.0.0.2@tcp");
	lnet_sim_run(r.sim, 10000 * MSEC);
	victim_link(&r, false);
	cr_assert_eq(lnet_discover(r.node, &nid, 0, on_silent, NULL), 0);
	lnet_sim_run(r.sim, 60000 * MSEC);
	cr_assert_eq(seen.n, 1);
	cluster_end(r.sim);
}

/* A message from the NID has that as its initiator, and not the liar's, even
 * before the NID was asked. */
Test(unverified, speaks_for_itself)
{
	static uint8_t memory[100], byte;
	static struct seen came;
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, &came);
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	post_md(r.node, PORTAL + 1, BITS, &umd);
	lie_unasked(&r, LIAR, "10.0.0.2@tcp");
	victim_link(&r, false);
	put_bytes(r.victim, id_of("10.0.0.1@tcp"), PORTAL + 1, BITS, &byte, 1);
	lnet_sim_run(r.sim, 60000 * MSEC);
	cr_assert_eq(came.n, 1);
	cr_assert(nid_is(&came.ev[0].initiator.nid, "10.0.0.2@tcp"));
	cluster_end(r.sim);
}

/* The liar announces the victim's NID, and another one. */
static void lie_three(const struct rig *r)
{
	lie_begin(3);
	lie_nid(LIAR);
	lie_nid("10.0.0.2@tcp");
	lie_nid("10.0.1.2@tcp");
	lie_push(r->liar, "10.0.0.1@tcp");
	lnet_sim_run(r->sim, 5 * MSEC);
	cr_assert_eq(seen_last(&pushed), LNET_EVENT_ACK);
}

/* An administrator who configures a claimed NID has not configured the liar. */
static void is_configured(unsigned int cpts)
{
	const struct ulnet_nid nids[] = { nid_of("10.0.2.2@tcp"),
					  nid_of("10.0.0.2@tcp"),
					  nid_of("10.0.1.2@tcp") };
	struct rig r = rig_open(cpts, "10.0.0.2@tcp");
	struct ulnet_nid primary;

	victim_link(&r, false);
	lie_three(&r);
	victim_link(&r, true);
	cr_assert_eq(lnet_peer_add(r.node, nids, ARRAY_SIZE(nids), true), 0);
	primary = primary_of(&r, LIAR);
	cr_assert(nid_is(&primary, LIAR));
	for (unsigned int i = 0; i < ARRAY_SIZE(nids); i++) {
		cr_assert_eq(lnet_primary(r.node, &nids[i], &primary), 0);
		cr_assert(lnet_nid_eq(&primary, &nids[0]));
	}
	arrives(&r, r.node, "10.0.0.2@tcp");
	cluster_end(r.sim);
}

Test(unverified, is_configured)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		is_configured(cpts);
}

/* If a peer claims a NID that the liar has claimed, too, the two do not become
 * one peer: the liar does not move to the CPT of the other one. */
static void names_both(unsigned int cpts)
{
	struct rig r = rig_open(cpts, "10.0.0.2@tcp");
	const struct ulnet_nid liar = nid_of(LIAR);
	unsigned int cpt;

	arrives(&r, r.node, "10.0.0.2@tcp");
	victim_link(&r, false);
	lie_three(&r);
	cpt = node_cpt_of(r.node, &liar);
	KNOWS(r.node, LIAR, LIARS " 10.0.1.2@tcp");
	lie_begin(2);
	lie_nid("10.0.0.2@tcp");
	lie_nid("10.0.1.2@tcp");
	lie_push(r.victim, "10.0.0.1@tcp");
	lnet_sim_run(r.sim, 1500 * MSEC); /* the ping has failed */
	cr_assert_eq(node_cpt_of(r.node, &liar), cpt);
	KNOWS(r.node, LIAR, LIARS " 10.0.1.2@tcp");
	victim_link(&r, true);
	lnet_sim_run_all(r.sim);
	arrives(&r, r.node, "10.0.0.2@tcp");
	cluster_end(r.sim);
}

Test(unverified, claimed_by_two)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		names_both(cpts);
}

/* While the NID does not answer, messages to it do not go elsewhere. */
Test(unverified, is_silent)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp");
	uint64_t dropped;

	lie_unasked(&r, LIAR, "10.0.0.2@tcp");
	dropped = counter(r.liar, "drop_count");
	victim_link(&r, false);
	put_to(r.node, "10.0.0.2@tcp", UINT64_C(3000000), &seen);
	lnet_sim_run(r.sim, 60000 * MSEC);
	cr_assert(seen.n && seen.ev[seen.n - 1].terminal);
	cr_assert_neq(seen.ev[seen.n - 1].status, 0);
	cr_assert_eq(counter(r.liar, "drop_count"), dropped);
	cluster_end(r.sim);
}

/* A message that can only go to that NID does not wait for its answer. */
Test(unverified, by_one_path)
{
	static struct seen waits;
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	lie_unasked(&r, LIAR, "10.0.0.2@tcp");
	lnet_sim_run_all(r.sim);
	WORD(r.node, "10.0.0.2@tcp", "hearsay");
	victim_link(&r, false);
	put_to(r.node, "10.0.0.2@tcp", UINT64_C(3000000), &waits);
	lnet_sim_run(r.sim, MSEC);
	victim_link(&r, true);
	put_from(r.node, nid_of("10.0.0.1@tcp"), "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run(r.sim, 10 * MSEC);
	delivered();
	cr_assert_eq(waits.n, 0);
	cr_assert_eq(counter(r.node, "discovery_waits"), 1);
	lnet_sim_run_all(r.sim);
	seen_end(&waits, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
	cluster_end(r.sim);
}

/* The NID is asked also when it sends a message itself. */
Test(unverified, that_speaks)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	lie_unasked(&r, LIAR, "10.0.0.2@tcp");
	WORD(r.node, "10.0.0.2@tcp", "hearsay");
	arrives(&r, r.victim, "10.0.0.1@tcp");
	KNOWS(r.node, LIAR, LIARS);
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cluster_end(r.sim);
}

/* The liar claims one of two NIDs of a node that nobody has met: both NIDs
 * become one peer all the same. */
static void one_of_two_rails(unsigned int cpts)
{
	struct rig r = rig_open(cpts, "10.0.0.2@tcp 10.0.1.2@tcp");

	lie_two(&r, LIAR, "10.0.1.2@tcp");
	arrives(&r, r.node, "10.0.0.2@tcp");
	arrives(&r, r.node, "10.0.1.2@tcp");
	if (cpts == 1) {
		KNOWS(r.node, "10.0.1.2@tcp",
		      "discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp");
		KNOWS(r.node, LIAR, "discovered: " LIAR);
	}
	cluster_end(r.sim);
}

Test(unverified, one_of_two_rails)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		one_of_two_rails(cpts);
}

static void rail_link(const struct rig *r, bool works)
{
	const struct ulnet_sim_link link = { .loss = works ? 0 : 1000000 };
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct ulnet_nid rail = nid_of("10.0.1.2@tcp");

	cr_assert_eq(lnet_sim_link_set(r->sim, &any, &rail, &link), 0);
	cr_assert_eq(lnet_sim_link_set(r->sim, &rail, &any, &link), 0);
}

/* The NID that both claim does not answer at first: it is asked again later,
 * though nobody uses it, but not for ever. */
static void one_rail_is_silent(uint64_t silence, const char *known)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp 10.0.1.2@tcp");

	rail_link(&r, false);
	lie_two(&r, LIAR, "10.0.1.2@tcp");
	put_to(r.node, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run(r.sim, silence);
	delivered();
	KNOWS(r.node, LIAR, LIARS " 10.0.1.2@tcp");
	rail_link(&r, true);
	lnet_sim_run_all(r.sim);
	KNOWS(r.node, "10.0.1.2@tcp", known);
	cluster_end(r.sim);
}

Test(unverified, a_silent_rail_is_asked_again)
{
	one_rail_is_silent(10000 * MSEC,
			   "discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp");
	one_rail_is_silent(UINT64_C(1000000) * MSEC, LIARS " 10.0.1.2@tcp");
}

static void second_link(const struct rig *r, bool works)
{
	const struct ulnet_sim_link link = { .loss = works ? 0 : 1000000 };
	const struct ulnet_nid node = nid_of("10.0.0.1@tcp");
	const struct ulnet_nid second = nid_of("10.0.1.2@tcp");

	cr_assert_eq(lnet_sim_link_set(r->sim, &node, &second, &link), 0);
	cr_assert_eq(lnet_sim_link_set(r->sim, &second, &node, &link), 0);
}

/* A NID that the liar has named first, and the victim, too, cannot be asked.
 * When the liar does not name it any more, the victim gets it. */
Test(unverified, given_up_to_the_victim)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp 10.0.1.2@tcp");

	second_link(&r, false);
	lie_two(&r, LIAR, "10.0.1.2@tcp");
	WORD(r.node, "10.0.1.2@tcp", "hearsay");
	arrives(&r, r.node, "10.0.0.2@tcp");
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	lie_begin(1);
	lie_nid(LIAR);
	lie_push(r.liar, "10.0.0.1@tcp");
	lnet_sim_run_all(r.sim);
	second_link(&r, true);
	arrives(&r, r.node, "10.0.0.2@tcp");
	KNOWS(r.node, "10.0.0.2@tcp",
	      "discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp");
	cluster_end(r.sim);
}
