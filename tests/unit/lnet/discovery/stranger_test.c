/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that name NIDs which are not theirs: nobody is made a part of a peer
 * that he knows nothing of, and nobody gets what is for another one.
 *
 * The liar, 10.0.0.66@tcp, tells nothing of itself but what is pushed by hand.
 */
#include <errno.h>
#include <ulnet/fault.h>

#include "lnet/message/wire.h"
#include "lnet/net/net.h"
#include "lnet/net/ni.h"
#include "lnet/peer/provenance.h"
#include "tests/unit/lnet/discovery/discover_rig.h"
#include "ulnet/fault.h"

#define LIAR  "10.0.0.66@tcp"
#define LIARS "discovered mr: 10.0.0.66@tcp"
#define NAMES 200
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
	lie_nid4(UINT64_C(9) << 48, 100); /* 0@lo: the number of what is told */
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

/* The liar says that it has @a and @b. */
static void lie_two(const struct rig *r, const char *a, const char *b)
{
	lie_begin(2);
	lie_nid(a);
	lie_nid(b);
	lie_push(r->liar, "10.0.0.1@tcp");
	lnet_sim_run(r->sim, 5 * MSEC);
	cr_assert_eq(seen_last(&pushed), LNET_EVENT_ACK);
}

/* The liar has no buffer: what comes to it by mistake is dropped. */
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

/* Whether the victim can be reached. */
static void victim_link(const struct rig *r, bool works)
{
	const struct ulnet_sim_link link = { .loss = works ? 0 : 1000000 };
	const struct ulnet_nid node = nid_of("10.0.0.1@tcp");
	const struct ulnet_nid victim = nid_of("10.0.0.2@tcp");

	cr_assert_eq(lnet_sim_link_set(r->sim, &node, &victim, &link), 0);
}

/* The same, while who is named cannot be asked. */
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

/* A message is acknowledged, and all that it has caused is over. */
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

/* ---- who is in use ---- */

static void claims_one_in_use(unsigned int cpts)
{
	struct rig r = rig_open(cpts, "10.0.0.2@tcp");

	arrives(&r, r.node, "10.0.0.2@tcp");
	lie_two(&r, LIAR, "10.0.0.2@tcp");
	lnet_sim_run_all(r.sim);
	KNOWS(r.node, LIAR, LIARS);
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cr_assert_eq(counter(r.node, "claims_refused"), 1);
	/* As its primary NID, too: when it may be asked again. */
	lnet_sim_run(r.sim, 1000 * MSEC);
	lie_two(&r, "10.0.0.2@tcp", LIAR);
	lnet_sim_run_all(r.sim);
	KNOWS(r.node, LIAR, LIARS);
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cr_assert_eq(counter(r.node, "claims_refused"), 2);
	arrives(&r, r.node, "10.0.0.2@tcp");
	cluster_end(r.sim);
}

Test(stranger, claims_one_in_use)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		claims_one_in_use(cpts);
}

/* The other NIDs of what was told are the liar's all the same, until they say
 * otherwise. */
Test(stranger, claims_one_of_several)
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

/* ---- who was never heard of ---- */

/* What is addressed to it goes to it, and to nobody else. */
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

Test(stranger, unverified_is_asked)
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

/* Who asks for its discovery waits for what it says itself. */
Test(stranger, unverified_is_discovered)
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

/* ... and hears that it has said nothing. */
Test(stranger, unverified_is_not_discovered)
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

/* What comes from it is its own, and not the liar's, also before it has been
 * asked. */
Test(stranger, unverified_speaks_for_itself)
{
	static uint8_t memory[100], byte;
	static struct seen came;
	struct ulnet_md umd = md_of(memory, sizeof(memory),
				    LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE,
				    &came);
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

/* The liar says that it has the victim's NID, and another one. */
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

/* An administrator who names it has not named the liar. */
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

Test(stranger, unverified_is_configured)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		unverified_is_configured(cpts);
}

/* Who names a NID that the liar has named, too, is not one with the liar, who
 * has named both: the liar does not go to the CPT of the other one. */
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
	lnet_sim_run(r.sim, 1500 * MSEC); /* the question has failed */
	cr_assert_eq(node_cpt_of(r.node, &liar), cpt);
	victim_link(&r, true);
	lnet_sim_run_all(r.sim);
	arrives(&r, r.node, "10.0.0.2@tcp");
	cluster_end(r.sim);
}

Test(stranger, names_both)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		names_both(cpts);
}

/* Nor does it go elsewhere while it does not answer. */
Test(stranger, unverified_is_silent)
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

/* What goes to it and nowhere else in any case need not wait for its answer. */
Test(stranger, unverified_by_one_path)
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

/* It is asked also when it speaks itself. */
Test(stranger, unverified_that_speaks)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp");

	lie_unasked(&r, LIAR, "10.0.0.2@tcp");
	WORD(r.node, "10.0.0.2@tcp", "hearsay");
	arrives(&r, r.victim, "10.0.0.1@tcp");
	KNOWS(r.node, LIAR, LIARS);
	KNOWS(r.node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cluster_end(r.sim);
}

/* Somebody has taken one of two rails before they were heard of: they find each
 * other. */
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

Test(stranger, one_of_two_rails)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		one_of_two_rails(cpts);
}

/* ---- who has spoken ---- */

Test(stranger, rails_speak_when_used)
{
	struct rig r = rig_open(1, "10.0.0.2@tcp 10.0.1.2@tcp");
	const struct ulnet_nid first = nid_of("10.0.0.2@tcp");

	arrives(&r, r.node, "10.0.0.2@tcp");
	KNOWS(r.node, "10.0.0.2@tcp",
	      "discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp");
	WORD(r.node, "10.0.0.2@tcp", "own");
	/* The other one, from which the next message comes. */
	cr_assert_eq(lnet_ni_set_health(r.victim, &first, 0), 0);
	arrives(&r, r.victim, "10.0.0.1@tcp");
	WORD(r.node, "10.0.1.2@tcp", "own");
	KNOWS(r.node, "10.0.1.2@tcp",
	      "discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp");
	cr_assert_eq(counter(r.node, "claims_refused"), 0);
	cluster_end(r.sim);
}

Test(stranger, configured_need_not_speak)
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

/* What another CPT has by configuration stays there, and holds nobody up. */
Test(stranger, claims_a_configured_one)
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

/* ---- what is down ---- */

static bool is_down(struct lnet *node, const char *text)
{
	const struct ulnet_nid nid = nid_of(text);
	struct ulnet_peer_info peer;

	cr_assert_eq(lnet_peer_info(node, &nid, &peer), 0);
	cr_assert_eq(peer.health, peer.down ? 0 : LNET_HEALTH_MAX);
	return peer.down;
}

/* That an NI is down is not believed of the one that the word came over. */
Test(stranger, says_what_is_down)
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

/* All that is sent to @to ends in this way. */
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

/* Of NIDs to which there is no way, or which are dead, our own NI is none the
 * worse: @used, by messages to one; else by questions and pushes. */
static void names_the_unreachable(enum ulnet_cause cause, bool used)
{
	static const char *const dead[] = { "10.0.0.67@tcp", "10.0.0.68@tcp" };
	struct rig r = rig_open(1, "10.0.0.2@tcp");

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

Test(stranger, names_the_unreachable)
{
	static const enum ulnet_cause causes[] = { LNET_CAUSE_LOCAL_NO_ROUTE,
						   LNET_CAUSE_NETWORK_TIMEOUT };

	for (unsigned int i = 0; i < ARRAY_SIZE(causes); i++) {
		names_the_unreachable(causes[i], false);
		names_the_unreachable(causes[i], true);
	}
}

/* Nor of NIDs that were heard of, but are dead now: each claim asks them. */
Test(stranger, claims_the_unreachable)
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
	/* It is asked again with growing pauses, whoever claims it how often;
	 * and when it answers there is no question any more. */
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

/* Whose a NID is, is not asked another NID, which answers as well. */
Test(stranger, claimed_is_asked_itself)
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

/* However often it is claimed, it is asked at the times that its denials
 * allow. */
Test(stranger, claims_again_and_again)
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
	/* In a minute, after at most 1, 2, 4, 8, 16, 32 s, or the half. */
	cr_assert_geq(asked, 6);
	cr_assert_leq(asked, 7);
	cr_assert_eq(counter(r.node, "claims_refused"), asked);
	cr_assert_geq(counter(r.node, "claims_paused"), 600 - asked);
	cluster_end(r.sim);
}

/* One that came in the pause is answered, also if it is never made again. */
Test(stranger, claims_in_the_pause)
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

/* Nor when the LND finds them silent and nobody else is heard. */
Test(stranger, names_the_silent)
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

/* ---- who only calls ---- */

/* It discovers others, and nobody discovers it. */
Test(stranger, only_calls)
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

/* Names that nobody confirms make way for whoever comes himself. */
Test(stranger, names_have_a_share)
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
	/* Half of them, and itself. */
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

/* Who is asked because of a lie, and does not answer, may have told something
 * meanwhile, and have ended since: he is asked again whether it is still so. */
Test(stranger, what_is_told_without_an_answer)
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

/* What comes unasked from one that is claimed may have been on its way for
 * long: it is asked all the same. */
Test(stranger, what_is_told_unasked)
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

/* Who is claimed, and silent, is asked until he answers: he may have become a
 * part of who claims him. */
Test(stranger, claims_one_that_is_silent)
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

/* One more NI, by which nothing is sent. */
static void ni_add_ill(struct lnet *node, const char *text)
{
	const struct ulnet_ni_conf ni = { .nid = nid_of(text) };

	cr_assert_eq(lnet_ni_add(node, &ni), 0);
	cr_assert_eq(lnet_ni_set_health(node, &ni.nid, 0), 0);
}

/* A peer has told something, which waits to be merged, when it loses its NIDs
 * to another one that was told less: who has them now is asked. */
Test(stranger, heir_of_what_was_told)
{
	const struct ulnet_nid first = nid_of("10.0.0.2@tcp");
	struct rig r = rig_open(1, "10.0.0.2@tcp");
	struct ulnet_fault fault;
	int status = 0;

	put_to(r.node, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run_all(r.sim);
	delivered();
	/* Asked in vain, and later claimed by the first. */
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
