/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer claims NIDs that are not its own: nobody becomes a part of a peer
 * without having confirmed that, and nobody gets messages that are for another
 * node.
 *
 * The peer that claims, the "liar", is 10.0.0.66@tcp. It announces only what
 * the test pushes. The NIDs that it claims are mostly those of the "victim",
 * 10.0.0.2@tcp.
 */
#include <errno.h>
#include <ulnet/fault.h>

#include "lnet/message/wire.h"
#include "lnet/net/net.h"
#include "lnet/net/ni.h"
#include "lnet/peer/provenance.h"
#include "tests/unit/lnet/discovery/discover_rig.h"
#include "ulnet/fault.h"

#define LIAR   "10.0.0.66@tcp"
#define LIARS  "discovered mr: 10.0.0.66@tcp"
#define NAMES  200
#define SECOND UINT64_C(1000000) /* us */

struct rig {
	struct lnet_sim *sim;
	struct lnet *node, *liar, *victim;
};

static struct seen seen, pushed;
static uint8_t lie[16 + 16 * (NAMES + 2)];
static size_t lie_length;

static void lie_u32(uint32_t v)
{
	memcpy(lie + lie_length, &v, sizeof(v));
	lie_length += sizeof(v);
}

static void lie_nid4(uint64_t nid4, uint32_t status)
{
	memcpy(lie + lie_length, &nid4, sizeof(nid4));
	lie_length += sizeof(nid4);
	lie_u32(status);
	lie_u32(0);
}

static void lie_begin(uint32_t nnis)
{
	lie_length = 0;
	lie_u32(0x70696e67);
	lie_u32(0x1e);
	lie_u32(LNET_PID_LUSTRE);
	lie_u32(nnis + 1);
	/* 0@lo, whose status is the number of the announcement */
	lie_nid4(UINT64_C(9) << 48, 100);
}

static void lie_nid(const char *text)
{
	const struct ulnet_nid nid = nid_of(text);

	lie_nid4(lnet_nid_to_nid4(&nid), 0x15aac0de);
}

static void lie_push_by(struct lnet *from, struct ulnet_nid self,
			const char *to)
{
	struct ulnet_md umd = md_of(lie, lie_length, 0, &pushed);

	umd.threshold = 2;
	pushed.n = 0;
	cr_assert_eq(LNetPut(self, bind_md(from, &umd), LNET_ACK_REQ, id_of(to),
			     0, PING_MATCH_BITS, 0, 0),
		     0);
}

static void lie_push(struct lnet *from, const char *to)
{
	lie_push_by(from, LNET_NID_ANY, to);
}

/* The liar announces NIDs @a and @b. */
static void lie_two(const struct rig *r, const char *a, const char *b)
{
	lie_begin(2);
	lie_nid(a);
	lie_nid(b);
	lie_push(r->liar, "10.0.0.1@tcp");
	lnet_sim_run(r->sim, 5 * MSEC);
	cr_assert_eq(seen_last(&pushed), LNET_EVENT_ACK);
}

/* Opens the node, the victim, and the liar. The liar has no buffer, so that it
 * drops what comes to it by mistake. */
static struct rig rig_open(unsigned int cpts, const char *victim)
{
	struct rig r;

	memset(&seen, 0, sizeof(seen));
	cr_assert_eq(lnet_sim_new(1, cpts, &r.sim), 0);
	r.node = node_on(r.sim, "10.0.0.1@tcp");
	r.victim = node_on(r.sim, victim);
	node_mode(r.sim, LIAR, LNET_DISCOVERY_OFF);
	r.liar = lnet_sim_node(r.sim, 2);
	return r;
}

/* Makes the link from the node to the victim work, or lose everything. */
static void victim_link(const struct rig *r, bool works)
{
	const struct ulnet_sim_link link = { .loss = works ? 0 : 1000000 };
	const struct ulnet_nid node = nid_of("10.0.0.1@tcp");
	const struct ulnet_nid victim = nid_of("10.0.0.2@tcp");

	cr_assert_eq(lnet_sim_link_set(r->sim, &node, &victim, &link), 0);
}

/* As lie_two(), but meanwhile the node cannot ask the victim. */
static void lie_unasked(const struct rig *r, const char *a, const char *b)
{
	victim_link(r, false);
	lie_two(r, a, b);
	victim_link(r, true);
}

static void delivered(void)
{
	seen_end(&seen, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
	memset(&seen, 0, sizeof(seen));
}

/* Sends a message, and asserts that it is acknowledged, when all that it has
 * caused is over. */
static void arrives(const struct rig *r, struct lnet *from, const char *to)
{
	put_to(from, to, 0, &seen);
	lnet_sim_run_all(r->sim);
	delivered();
}

static struct ulnet_nid primary_of(const struct rig *r, const char *text)
{
	const struct ulnet_nid nid = nid_of(text);
	struct ulnet_nid primary;

	cr_assert_eq(lnet_primary(r->node, &nid, &primary), 0);
	return primary;
}

static const char *word_of(struct lnet *node, const char *text)
{
	const struct ulnet_nid nid = nid_of(text);
	struct lnet_peer_ni *p = peer_find(node->cpt[0], &nid);

	return p ? fsm_name(&p->provenance, peer_provenances) : "unknown";
}

#define WORD(node, nid, want) cr_assert_str_eq(word_of(node, nid), want)

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

/* ---- claims of NIDs that nobody had met ---- */

/* A message to a NID that the liar has claimed, and that nobody had met before,
 * goes to its owner and nowhere else. */
static void unverified_is_asked(unsigned int cpts, const char *first,
				const char *second)
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

Test(false_claim, unverified_is_pinged)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		unverified_is_asked(cpts, LIAR, "10.0.0.2@tcp");
		unverified_is_asked(cpts, "10.0.0.2@tcp", LIAR);
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
Test(false_claim, unverified_is_discovered)
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
Test(false_claim, unverified_is_not_discovered)
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
Test(false_claim, unverified_speaks_for_itself)
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
static void unverified_is_configured(unsigned int cpts)
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

Test(false_claim, unverified_is_configured)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		unverified_is_configured(cpts);
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
	victim_link(&r, true);
	lnet_sim_run_all(r.sim);
	arrives(&r, r.node, "10.0.0.2@tcp");
	cluster_end(r.sim);
}

Test(false_claim, claimed_by_two)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		names_both(cpts);
}

/* While the NID does not answer, messages to it do not go elsewhere. */
Test(false_claim, unverified_is_silent)
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
Test(false_claim, unverified_by_one_path)
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
Test(false_claim, unverified_that_speaks)
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

Test(false_claim, one_of_two_rails)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		one_of_two_rails(cpts);
}

/* The NID that both claim does not answer at first: it is asked again later,
 * though nobody uses it, but not for ever. */
static void rail_link(const struct rig *r, bool works)
{
	const struct ulnet_sim_link link = { .loss = works ? 0 : 1000000 };
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct ulnet_nid rail = nid_of("10.0.1.2@tcp");

	cr_assert_eq(lnet_sim_link_set(r->sim, &any, &rail, &link), 0);
	cr_assert_eq(lnet_sim_link_set(r->sim, &rail, &any, &link), 0);
}

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

Test(false_claim, a_silent_rail_is_asked_again)
{
	one_rail_is_silent(10000 * MSEC,
			   "discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp");
	one_rail_is_silent(UINT64_C(1000000) * MSEC, LIARS " 10.0.1.2@tcp");
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

/* ---- our own health ---- */

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

Test(false_claim, names_the_unreachable)
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
Test(false_claim, claims_the_unreachable)
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

static uint64_t gets_to(const struct rig *r, const char *text)
{
	const struct ulnet_nid nid = nid_of(text);
	struct ulnet_peer_info peer;

	cr_assert_eq(lnet_peer_info(r->node, &nid, &peer), 0);
	return peer.sent.get;
}

/* Whether a claimed NID belongs to a peer is asked of the NID itself, not of
 * another NID of its owner. */
Test(false_claim, a_claimed_nid_is_pinged_itself)
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
Test(false_claim, claims_again_and_again)
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
Test(false_claim, claims_in_the_pause)
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
Test(false_claim, claims_the_silent)
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

/* ---- shares ---- */

/* NIDs that were only claimed make way for peers that send messages themselves.
 */
Test(false_claim, claimed_nids_have_a_share)
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
Test(false_claim, random_nids_leave_nothing)
{
	enum { ROUNDS = 200, NIDS = 127, A_PUSH = 8, A_SECOND = 20 };
	const unsigned int seconds = 60;

	for (unsigned int i = 0; i < 4; i++) {
		unsigned int cpts = 1 + i / 2;
		struct rig r = rig_open(cpts, "10.0.0.2@tcp");
		uint64_t before;

		arrives(&r, r.node, "10.0.0.2@tcp");
		before = failures(r.node);
		for (unsigned int round = 0; round < ROUNDS; round++) {
			lie_at_random(NIDS, round, i % 2);
			lie_push(r.liar, "10.0.0.1@tcp");
			lnet_sim_run(r.sim, 10 * MSEC);
		}
		cr_assert_leq(counter(r.node, "peers"), 3 * NIDS,
			      "%u CPTs, up %u", cpts, i % 2);
		lnet_sim_run(r.sim, seconds * 1000 * MSEC);
		cr_assert_leq(failures(r.node) - before,
			      ROUNDS * A_PUSH + seconds * A_SECOND,
			      "%u CPTs, up %u", cpts, i % 2);
		/* others did not notice */
		arrives(&r, r.node, "10.0.0.2@tcp");
		cluster_end(r.sim);
	}
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
Test(false_claim, given_up_to_the_victim)
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
