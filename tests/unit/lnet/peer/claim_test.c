/* SPDX-License-Identifier: BSD-3-Clause */
/* NIDs that another CPT owns become NIDs of a peer, even while they are in use;
 * messages that wait meanwhile are sent by the new owner. */
#include <criterion/criterion.h>
#include <errno.h>
#include "lnet/node/node.h"
#include "lnet/peer/claim.h"
#include "lnet/peer/member.h"
#include "lnet/peer/provenance.h"
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77
#define CPTS   3

static uint8_t memory[100], byte;

/* Node 0 claims a NID of node 1, which is owned by CPT "owner", for the peer
 * with NID "primary", which CPT "cpt" owns. */
struct rig {
	struct lnet_sim *sim;
	struct lnet *node;
	struct ulnet_nid nid, primary;
	struct ulnet_nid other; /* nobody's, and owned by the same CPT as nid */
	struct lnet_cpt *owner, *cpt;
	struct peer_claim claim;
	bool done;
	int rc;
	struct seen seen; /* at node 1 */
};

static struct lnet_cpt *cpt_of(const struct rig *r, const struct ulnet_nid *nid)
{
	return r->node->cpt[lnet_cpt_of(r->node, nid)];
}

static void rig_open(struct rig *r)
{
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, &r->seen);

	memset(r, 0, sizeof(*r));
	r->sim = cluster_with(2, CPTS, NULL);
	r->node = lnet_sim_node(r->sim, 0);
	r->nid = nth_id(1).nid;
	r->owner = cpt_of(r, &r->nid);
	for (unsigned int i = 2; !r->cpt || r->cpt == r->owner; i++) {
		r->primary = nth_id(i).nid;
		r->cpt = cpt_of(r, &r->primary);
	}
	for (unsigned int i = 10;
	     !r->other.type || cpt_of(r, &r->other) != r->owner ||
	     lnet_nid_eq(&r->other, &r->primary);
	     i++)
		r->other = nth_id(i).nid;
	post_md(lnet_sim_node(r->sim, 1), PORTAL, BITS, &umd);
}

static void rig_close(struct rig *r)
{
	cluster_end(r->sim);
}

static void on_done(struct peer_claim *claim, int rc)
{
	struct rig *r = container_of(claim, struct rig, claim);

	cr_assert(loop_is_owner(r->cpt->loop));
	cr_assert_not(r->done);
	r->done = true;
	r->rc = rc;
}

static int begin(void *arg)
{
	struct rig *r = arg;
	struct lnet_peer_ni *p = peer_get(r->cpt, &r->primary);
	int rc;

	r->done = false;
	r->claim.done = on_done;
	r->claim.by = LNET_NID_ANY;
	rc = peer_claim(r->cpt, p->peer, &r->nid, &r->claim);
	peer_unref(p);
	return rc;
}

static int claim(struct rig *r)
{
	int rc = lnet_call(r->node, r->cpt->index, begin, r);

	if (rc != -EINPROGRESS)
		return rc;
	cr_assert_not(r->done);
	lnet_sim_run(r->sim, MSEC);
	cr_assert(r->done);
	return r->rc;
}

static void check_one_peer(struct rig *r)
{
	struct ulnet_nid primary;

	cr_assert_eq(cpt_of(r, &r->nid), r->cpt);
	cr_assert_eq(lnet_primary(r->node, &r->nid, &primary), 0);
	cr_assert(lnet_nid_eq(&primary, &r->primary));
	cr_assert_eq(peer_find(r->cpt, &r->nid)->place.state, PEER_HERE);
}

static void check_apart(struct rig *r)
{
	struct ulnet_nid primary;

	cr_assert_eq(cpt_of(r, &r->nid), r->owner);
	cr_assert_eq(lnet_primary(r->node, &r->nid, &primary), 0);
	cr_assert(lnet_nid_eq(&primary, &r->nid));
}

static void put(struct rig *r)
{
	put_bytes(r->node, nth_id(1), PORTAL, BITS, &byte, 1);
}

static uint64_t sent_on(struct rig *r, struct lnet_cpt *cpt)
{
	struct lnet_peer_ni *p = peer_find(cpt, &r->nid);
	struct ulnet_counts counts = { 0 };

	if (!p)
		return 0;
	traffic_sum(&p->traffic.send, &counts);
	return counts.put;
}

Test(claim, a_nid_that_nobody_knows)
{
	static struct rig r;

	rig_open(&r);
	cr_assert_eq(claim(&r), 0);
	check_one_peer(&r);
	put(&r);
	lnet_sim_run_all(r.sim);
	cr_assert_eq(r.seen.n, 1);
	cr_assert_eq(sent_on(&r, r.cpt), 1);
	/* The NID is the peer's already. */
	cr_assert_eq(claim(&r), 0);
	rig_close(&r);
}

/* The NID is known already, and idle: its record there becomes an alias. The
 * NID has seen a source NID of this node, and keeps seeing that one. */
Test(claim, an_idle_nid)
{
	static struct rig r;
	struct ulnet_nid source;

	rig_open(&r);
	put(&r);
	lnet_sim_run_all(r.sim);
	cr_assert_eq(sent_on(&r, r.owner), 1);
	source = peer_find(r.owner, &r.nid)->preferred;
	cr_assert_not(lnet_nid_is_any(&source));
	cr_assert_eq(claim(&r), 0);
	check_one_peer(&r);
	cr_assert(lnet_nid_eq(&peer_find(r.cpt, &r.nid)->preferred, &source));
	cr_assert_eq(peer_find(r.owner, &r.nid)->place.state, PEER_ALIAS);
	cr_assert(lnet_nid_eq(&peer_find(r.owner, &r.nid)->peer->primary,
			      &r.primary));
	put(&r);
	lnet_sim_run_all(r.sim);
	cr_assert_eq(r.seen.n, 2);
	cr_assert_eq(sent_on(&r, r.owner), 1);
	cr_assert_eq(sent_on(&r, r.cpt), 1);
	rig_close(&r);
}

static int owes_an_answer(void *arg)
{
	struct rig *r = arg;

	peer_asked(peer_find(r->owner, &r->nid)->peer,
		   loop_now(r->owner->loop) + NSEC_PER_SEC);
	return 0;
}

/* The NID was asked something: until when its answers may be behind its
 * requests is handed over, too. */
Test(claim, a_nid_that_owes_an_answer)
{
	static struct rig r;
	uint64_t until;

	rig_open(&r);
	put(&r);
	lnet_sim_run_all(r.sim);
	cr_assert_eq(lnet_call(r.node, r.owner->index, owes_an_answer, &r), 0);
	until = peer_find(r.owner, &r.nid)->peer->asked_until;
	cr_assert_eq(claim(&r), 0);
	check_one_peer(&r);
	cr_assert_geq(peer_find(r.cpt, &r.nid)->peer->asked_until, until);
	rig_close(&r);
}

static int fall_ill(void *arg)
{
	struct rig *r = arg;
	struct lnet_peer_ni *p = peer_find(r->owner, &r->nid);

	p->health = 300;
	p->down = true;
	return 0;
}

static int is_multi_rail(void *arg)
{
	struct rig *r = arg;
	struct lnet_peer_ni *p = peer_get(r->cpt, &r->primary);

	p->peer->multi_rail = true;
	peer_unref(p);
	return 0;
}

/* The NID keeps its health and its state, until it answers. */
Test(claim, an_unhealthy_nid)
{
	static struct rig r;
	const struct lnet_peer_ni *p;

	rig_open(&r);
	put(&r);
	lnet_sim_run_all(r.sim);
	cr_assert_eq(lnet_call(r.node, r.owner->index, fall_ill, &r), 0);
	cr_assert_eq(lnet_call(r.node, r.cpt->index, is_multi_rail, &r), 0);
	cr_assert_eq(claim(&r), 0);
	p = peer_find(r.cpt, &r.nid);
	cr_assert_eq(p->health, 300);
	cr_assert(p->down);
	lnet_sim_run(r.sim, 10000 * MSEC);
	cr_assert_eq(p->health, LNET_HEALTH_MAX);
	cr_assert_not(p->down);
	rig_close(&r);
}

static int put_here(void *arg)
{
	put(arg);
	return 0;
}

/* A message that is on its way to the old owner is forwarded to the new one. */
Test(claim, a_message_overtaken)
{
	static struct rig r;

	rig_open(&r);
	put(&r);
	lnet_sim_run_all(r.sim);
	cr_assert_eq(lnet_call(r.node, r.cpt->index, begin, &r), -EINPROGRESS);
	cr_assert_eq(lnet_call(r.node, r.cpt->index, put_here, &r), 0);
	lnet_sim_run_all(r.sim);
	cr_assert(r.done);
	cr_assert_eq(r.rc, 0);
	check_one_peer(&r);
	cr_assert_eq(r.seen.n, 2);
	cr_assert_eq(sent_on(&r, r.owner), 1);
	cr_assert_eq(sent_on(&r, r.cpt), 1);
	rig_close(&r);
}

static int use(void *arg)
{
	struct rig *r = arg;

	cr_assert_not_null(peer_get(r->owner, &r->nid));
	return 0;
}

static int unuse(void *arg)
{
	struct rig *r = arg;

	peer_unref(peer_find(r->owner, &r->nid));
	return 0;
}

/* While the NID is in use both CPTs have a record of it: the old owner's is an
 * alias. */
Test(claim, a_nid_in_use)
{
	static struct rig r;

	rig_open(&r);
	cr_assert_eq(lnet_call(r.node, r.owner->index, use, &r), 0);
	cr_assert_eq(claim(&r), 0);
	check_one_peer(&r);
	cr_assert_eq(peer_find(r.owner, &r.nid)->place.state, PEER_ALIAS);
	cr_assert_eq(lnet_call(r.node, r.owner->index, unuse, &r), 0);
	put(&r);
	lnet_sim_run_all(r.sim);
	cr_assert_eq(r.seen.n, 1);
	cr_assert_eq(sent_on(&r, r.cpt), 1);
	rig_close(&r);
}

static int configure(void *arg)
{
	struct rig *r = arg;

	peer_set_configured(r->owner, peer_find(r->owner, &r->nid)->peer, true);
	return 0;
}

static int one_more_nid(void *arg)
{
	struct rig *r = arg;
	struct lnet_peer_ni *p = peer_get(r->owner, &r->nid);

	cr_assert_eq(member_add(r->owner, p->peer, &r->other), 0);
	p->peer->multi_rail = true;
	cpt_topology_changed(r->owner);
	peer_unref(p);
	return 0;
}

static int use_other(void *arg)
{
	struct rig *r = arg;

	cr_assert_not_null(peer_get(r->owner, &r->other));
	return 0;
}

static int unuse_other(void *arg)
{
	struct rig *r = arg;

	peer_unref(peer_find(r->owner, &r->other));
	return 0;
}

static void check_other(struct rig *r, struct lnet_cpt *cpt)
{
	cr_assert_eq(cpt_of(r, &r->other), cpt);
	cr_assert(directory_same(&r->node->directory, &r->other, &r->nid));
	cr_assert_eq(peer_find(cpt, &r->other)->place.state, PEER_HERE);
	cr_assert_eq(peer_find(cpt, &r->other)->peer,
		     peer_find(cpt, &r->nid)->peer);
}

/* What was asked of one NID of a peer may be answered by another, so the NIDs
 * of a peer move together. */
Test(claim, a_nid_of_a_peer_in_use)
{
	static struct rig r;

	rig_open(&r);
	cr_assert_eq(lnet_call(r.node, r.owner->index, one_more_nid, &r), 0);
	cr_assert_eq(lnet_call(r.node, r.owner->index, use_other, &r), 0);
	cr_assert_eq(claim(&r), 0);
	check_one_peer(&r);
	check_other(&r, r.cpt);
	cr_assert_eq(peer_find(r.cpt, &r.nid)->peer->nnis, 3);
	cr_assert_eq(peer_find(r.owner, &r.other)->place.state, PEER_ALIAS);
	cr_assert(lnet_nid_eq(&peer_find(r.owner, &r.other)->peer->primary,
			      &r.primary));
	cr_assert_eq(lnet_call(r.node, r.owner->index, unuse_other, &r), 0);
	put(&r);
	lnet_sim_run_all(r.sim);
	rig_close(&r);
}

static int unverified_other(void *arg)
{
	struct rig *r = arg;

	provenance_unverify(r->owner, peer_find(r->owner, &r->other), &r->nid);
	return 0;
}

/* A NID that moves to another CPT with its peer is still unverified. */
Test(claim, an_unverified_nid_comes_along)
{
	static struct rig r;

	rig_open(&r);
	cr_assert_eq(lnet_call(r.node, r.owner->index, one_more_nid, &r), 0);
	cr_assert_eq(lnet_call(r.node, r.owner->index, unverified_other, &r),
		     0);
	cr_assert_eq(claim(&r), 0);
	check_other(&r, r.cpt);
	cr_assert(provenance_is_unverified(peer_find(r.cpt, &r.other)));
	cr_assert(lnet_nid_eq(&peer_find(r.cpt, &r.other)->claimed_by, &r.nid));
	cr_assert_not(provenance_is_unverified(peer_find(r.cpt, &r.nid)));
	cr_assert_not(provenance_is_unverified(peer_find(r.owner, &r.other)));
	rig_close(&r);
}

/* A message that waits for another try to the NID can still be canceled,
 * whichever CPT has the NID. */
Test(claim, a_nid_that_is_tried_again)
{
	const struct ulnet_sim_link refuses = { .latency = 10000,
						.refuse = LNET_SIM_ALWAYS };
	static uint8_t payload[10];
	static struct seen sent;
	static struct rig r;
	struct ulnet_md umd = md_of(payload, sizeof(payload), 0, &sent);
	struct ulnet_md_handle md;

	rig_open(&r);
	cr_assert_eq(lnet_call(r.node, r.owner->index, one_more_nid, &r), 0);
	cluster_links(r.sim, &refuses);
	umd.threshold = 1;
	umd.timeout = 10000000;
	md = bind_md(r.node, &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, nth_id(1),
			     PORTAL, BITS, 0, 0),
		     0);
	/* Both paths were tried, and the first pause has begun. */
	lnet_sim_run(r.sim, 5 * MSEC);
	cr_assert_eq(sent.n, 0);
	cr_assert_eq(counter(r.node, "resend_count"), 2);
	cr_assert_eq(claim(&r), 0);
	check_one_peer(&r);
	check_other(&r, r.cpt);
	cr_assert_eq(sent.n, 0);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run(r.sim, 0);
	cr_assert_eq(sent.n, 1);
	cr_expect_eq(sent.ev[0].status, -ECANCELED);
	cr_expect_eq(sent.ev[0].outcome, LNET_OUTCOME_NOT_DELIVERED);
	rig_close(&r);
}

Test(claim, a_nid_of_an_administrator)
{
	static struct rig r;

	rig_open(&r);
	cr_assert_eq(lnet_call(r.node, r.owner->index, use, &r), 0);
	cr_assert_eq(lnet_call(r.node, r.owner->index, configure, &r), 0);
	cr_assert_eq(lnet_call(r.node, r.owner->index, unuse, &r), 0);
	cr_assert_eq(claim(&r), -EBUSY);
	check_apart(&r);
	rig_close(&r);
}

Test(claim, a_nid_with_connections)
{
	const struct ulnet_sim_link link = { .latency = 100000,
					     .connect = 2 * MSEC };
	static struct rig r;

	rig_open(&r);
	link_set(r.sim, 0, 1, &link);
	put(&r);
	lnet_sim_run(r.sim, MSEC / 2);
	cr_assert_eq(claim(&r), -EBUSY, "it is not made yet");
	check_apart(&r);
	lnet_sim_run_all(r.sim);
	cr_assert_eq(r.seen.n, 1);
	cr_assert(peer_is_connected(r.owner, &r.nid));
	cr_assert_eq(claim(&r), 0);
	check_one_peer(&r);
	cr_assert_not(peer_is_connected(r.owner, &r.nid));
	cr_assert(peer_is_connected(r.cpt, &r.nid));
	/* The same connection is used: a new one would take longer. */
	put(&r);
	lnet_sim_run(r.sim, MSEC);
	cr_assert_eq(r.seen.n, 2);
	rig_close(&r);
}

/* ---- under traffic ---- */

#define MESSAGES 50

/* Asserts that there is one event for each of the messages 0 to MESSAGES - 1.
 */
static void each_once(const struct seen *seen)
{
	bool came[MESSAGES] = { false };

	for (unsigned int i = 0; i < seen->n; i++) {
		uint64_t n = seen->ev[i].hdr_data;

		cr_assert_eq(seen->ev[i].status, 0);
		cr_assert_lt(n, MESSAGES);
		cr_assert_not(came[n], "%u came twice", (unsigned int)n);
		came[n] = true;
	}
	cr_assert_eq(seen->n, MESSAGES);
}

static int claim_at_last(struct rig *r)
{
	int rc;

	do
		rc = claim(r);
	while (rc == -EBUSY);
	return rc;
}

static void put_many(struct lnet *node, struct ulnet_id target)
{
	static uint8_t payload[100];
	struct ulnet_md umd = md_of(payload, sizeof(payload), 0, NULL);

	umd.threshold = 1;
	for (unsigned int i = 0; i < MESSAGES; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(node, &umd),
				     LNET_NOACK_REQ, target, PORTAL, BITS, 0,
				     i),
			     0);
}

/* Claims the NID while messages go both ways, most of which wait for a credit.
 */
static void under_traffic(uint64_t seed, uint64_t connect, struct rig *r)
{
	const struct ulnet_sim_link slow = {
		.connect = connect,
		.latency = MSEC,
		.jitter = 3 * MSEC,
		.reorder = 200000,
		.reorder_window = 5 * MSEC,
		.bandwidth = 172 * 1000, /* a message in a millisecond */
	};
	static struct seen back;
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, &back);

	memset(&back, 0, sizeof(back));
	rig_open(r);
	cluster_links(r->sim, &slow);
	post_md(r->node, PORTAL, BITS, &umd);
	put_many(r->node, nth_id(1));
	put_many(lnet_sim_node(r->sim, 1), nth_id(0));
	lnet_sim_run(r->sim, seed * MSEC * 3 / 4);
	cr_assert_eq(claim_at_last(r), 0, "seed %u", (unsigned int)seed);
	check_one_peer(r);
	/* Messages that have to wait do so at the new owner. */
	lnet_sim_run_all(r->sim);
	each_once(&r->seen);
	each_once(&back);
	cr_assert_eq(sent_on(r, r->owner) + sent_on(r, r->cpt), MESSAGES);
	cr_assert(connect || seed > MESSAGES / 2 ||
			  sent_on(r, r->cpt) > MESSAGES / 4,
		  "seed %u: %u", (unsigned int)seed,
		  (unsigned int)sent_on(r, r->cpt));
	rig_close(r);
}

Test(claim, a_nid_under_traffic)
{
	static struct rig r;

	for (uint64_t seed = 0; seed < 100; seed++)
		under_traffic(seed, 0, &r);
}

/* With connections, incoming messages are on their way to the old owner. */
Test(claim, connections_under_traffic)
{
	static struct rig r;

	for (uint64_t seed = 0; seed < 100; seed++)
		under_traffic(seed, 2 * MSEC, &r);
}

/* A message that waits is canceled shortly before or after it was handed over:
 * it is canceled wherever it is. */
Test(claim, a_message_that_is_canceled)
{
	const struct ulnet_sim_link slow = { .latency = MSEC,
					     .bandwidth = 172 * 1000 };
	static uint8_t payload[100];
	static struct seen sent;
	static struct rig r;
	struct ulnet_md umd = md_of(payload, sizeof(payload), 0, &sent);
	struct ulnet_md_handle md;

	for (unsigned int late = 0; late < 3; late++) {
		memset(&sent, 0, sizeof(sent));
		rig_open(&r);
		cluster_links(r.sim, &slow);
		put_many(r.node, nth_id(1));
		umd.threshold = 1;
		md = bind_md(r.node, &umd);
		cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ,
				     nth_id(1), PORTAL, BITS, 0, MESSAGES),
			     0);
		lnet_sim_run(r.sim, 5 * MSEC);
		if (late == 0)
			cr_assert_eq(LNetMDUnlink(md), 0);
		cr_assert_eq(lnet_call(r.node, r.cpt->index, begin, &r),
			     -EINPROGRESS);
		if (late == 1)
			cr_assert_eq(LNetMDUnlink(md), 0);
		lnet_sim_run(r.sim, 0);
		if (late == 2)
			cr_assert_eq(LNetMDUnlink(md), 0);
		lnet_sim_run(r.sim, 0);
		cr_assert(r.done);
		cr_assert_eq(r.rc, 0);
		cr_assert_eq(sent.n, 1);
		cr_expect_eq(sent.ev[0].status, -ECANCELED);
		cr_expect_eq(sent.ev[0].outcome, LNET_OUTCOME_NOT_DELIVERED);
		lnet_sim_run_all(r.sim);
		each_once(&r.seen);
		rig_close(&r);
	}
}

/* ---- which peer gives ---- */

/* A claim in the other direction: the peer of r->nid claims r->primary. */
static struct peer_claim counterclaim;
static int counter_rc;

static void counter_done(struct peer_claim *c, int rc)
{
	(void)c;
	counter_rc = rc;
}

static int counter_begin(void *arg)
{
	struct rig *r = arg;
	struct lnet_peer_ni *p = peer_get(r->owner, &r->nid);
	int rc;

	counter_rc = -EINPROGRESS;
	counterclaim.done = counter_done;
	counterclaim.by = LNET_NID_ANY;
	rc = peer_claim(r->owner, p->peer, &r->primary, &counterclaim);
	peer_unref(p);
	return rc;
}

static int meet_primary(void *arg)
{
	struct rig *r = arg;

	peer_unref(peer_get(r->cpt, &r->primary));
	return 0;
}

/* Two peers that claim each other's NIDs become one peer. */
Test(claim, each_others_nids)
{
	static struct rig r;
	struct ulnet_nid a, b;

	for (unsigned int more = 0; more < 2; more++) {
		rig_open(&r);
		cr_assert_eq(lnet_call(r.node, r.cpt->index, meet_primary, &r),
			     0);
		if (more)
			cr_assert_eq(lnet_call(r.node, r.owner->index,
					       one_more_nid, &r),
				     0);
		cr_assert_eq(lnet_call(r.node, r.cpt->index, begin, &r),
			     -EINPROGRESS);
		cr_assert_eq(
			lnet_call(r.node, r.owner->index, counter_begin, &r),
			-EINPROGRESS);
		lnet_sim_run_all(r.sim);
		cr_assert(r.done);
		cr_assert_eq(lnet_primary(r.node, &r.nid, &a), 0);
		cr_assert_eq(lnet_primary(r.node, &r.primary, &b), 0);
		cr_assert(lnet_nid_eq(&a, &b));
		/* The peer with more NIDs remains, or else the one with the
		 * smaller primary NID. */
		if (more || lnet_nid_cmp(&r.nid, &r.primary) < 0) {
			cr_assert_eq(r.rc, -EBUSY);
			cr_assert_eq(counter_rc, 0);
			cr_assert(lnet_nid_eq(&a, &r.nid));
		} else {
			cr_assert_eq(r.rc, 0);
			cr_assert_eq(counter_rc, -EBUSY);
			cr_assert(lnet_nid_eq(&a, &r.primary));
		}
		rig_close(&r);
	}
}

static int forget(void *arg)
{
	struct rig *r = arg;

	return peer_forget(r->cpt, peer_find(r->cpt, &r->primary)->peer);
}

/* When the CPT that has claimed the NID forgets it, the first owner has it
 * back, forgets it, too, and can hand it over again. */
Test(claim, an_alias_comes_home)
{
	static struct rig r;

	rig_open(&r);
	put(&r);
	lnet_sim_run_all(r.sim);
	cr_assert_eq(claim(&r), 0);
	cr_assert_eq(peer_find(r.owner, &r.nid)->place.state, PEER_ALIAS);
	cr_assert_eq(lnet_call(r.node, r.cpt->index, forget, &r), 0);
	/* The first owner is told in a turn of its own. */
	cr_assert_eq(peer_find(r.owner, &r.nid)->place.state, PEER_ALIAS);
	cr_assert_eq(lnet_sim_check(r.sim), 0);
	lnet_sim_run_all(r.sim);
	cr_assert_eq(cpt_of(&r, &r.nid), r.owner);
	cr_assert_null(peer_find(r.owner, &r.nid));
	cr_assert_eq(claim(&r), 0);
	check_one_peer(&r);
	rig_close(&r);
}

static int name_it(void *arg)
{
	const struct rig *r = arg;

	peer_find(r->owner, &r->nid)->used = true;
	return 0;
}

/* If messages were addressed to the NID, its new owner knows it: the NID stays
 * in its peer even if that names it no more. The first owner does not keep the
 * NID for that when it comes home. */
Test(claim, a_nid_that_was_named)
{
	static struct rig r;

	rig_open(&r);
	put(&r);
	lnet_sim_run_all(r.sim);
	cr_assert_eq(lnet_call(r.node, r.owner->index, name_it, &r), 0);
	cr_assert_eq(claim(&r), 0);
	cr_assert(peer_find(r.cpt, &r.nid)->used);
	cr_assert_not(peer_find(r.owner, &r.nid)->used);
	rig_close(&r);
}

static int take_alias(void *arg)
{
	struct rig *r = arg;
	struct lnet_peer_ni *p = peer_get(r->cpt, &r->primary);
	struct lnet_peer_ni *alias = peer_get(r->cpt, &r->nid);
	int rc = member_take(r->cpt, p->peer, alias);

	peer_unref(alias);
	peer_unref(p);
	return rc;
}

/* A NID that another CPT owns cannot be taken without a claim. */
Test(claim, an_alias_is_not_taken)
{
	static struct rig r;

	rig_open(&r);
	cr_assert_eq(lnet_call(r.node, r.cpt->index, take_alias, &r), -EXDEV);
	check_apart(&r);
	rig_close(&r);
}

/* Lets another peer take the only NID of the peer that claims. */
static int lose_all(void *arg)
{
	struct rig *r = arg;
	struct lnet_peer *other = peer_new(r->cpt, &r->primary);
	struct lnet_peer_ni *p = peer_find(r->cpt, &r->primary);
	int rc = member_take(r->cpt, other, p);

	peer_drop(r->cpt, other);
	return rc;
}

Test(claim, for_a_peer_without_nids)
{
	static struct rig r;
	struct ulnet_nid primary;

	rig_open(&r);
	cr_assert_eq(lnet_call(r.node, r.owner->index, one_more_nid, &r), 0);
	cr_assert_eq(lnet_call(r.node, r.cpt->index, begin, &r), -EINPROGRESS);
	cr_assert_eq(lnet_call(r.node, r.cpt->index, lose_all, &r), 0);
	lnet_sim_run(r.sim, MSEC);
	cr_assert(r.done);
	cr_assert_eq(r.rc, -EAGAIN);
	cr_assert_eq(lnet_primary(r.node, &r.nid, &primary), 0);
	cr_assert(lnet_nid_eq(&primary, &r.nid));
	cr_assert_eq(peer_find(r.cpt, &r.primary)->peer->nnis, 1);
	cr_assert(
		lnet_nid_eq(&peer_find(r.cpt, &r.nid)->peer->primary, &r.nid));
	/* The NIDs are a peer as before, but on the CPT of the claim. */
	check_other(&r, r.cpt);
	rig_close(&r);
}

/* Claims as a thread does that waits for the result. */
Test(claim, a_thread_that_waits)
{
	static struct rig r;
	struct ulnet_nid other;

	rig_open(&r);
	cr_assert_eq(peer_claim_wait(r.node, &r.primary, &r.nid), -ENOENT);
	cr_assert_eq(lnet_call(r.node, r.owner->index, one_more_nid, &r), 0);
	cr_assert_eq(lnet_call(r.node, r.cpt->index, meet_primary, &r), 0);
	cr_assert_eq(peer_claim_wait(r.node, &r.primary, &r.nid), 0);
	check_one_peer(&r);
	check_other(&r, r.cpt);
	for (unsigned int i = 50; i < 60; i++) {
		other = nth_id(i).nid;
		cr_assert_eq(peer_claim_wait(r.node, &r.primary, &other), 0);
		cr_assert_eq(cpt_of(&r, &other), r.cpt);
	}
	cr_assert_eq(peer_find(r.cpt, &r.primary)->peer->nnis, 13);
	rig_close(&r);
}

/* A node that closes waits for claims in progress. */
Test(claim, a_node_that_closes)
{
	static struct rig r;

	rig_open(&r);
	cr_assert_eq(lnet_call(r.node, r.cpt->index, begin, &r), -EINPROGRESS);
	cr_assert_eq(lnet_sim_free(r.sim), 0);
	cr_assert(r.done);
}
