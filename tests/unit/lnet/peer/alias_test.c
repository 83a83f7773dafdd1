/* SPDX-License-Identifier: BSD-3-Clause */
/* Match entries that name a NID are for its peer: they match messages from all
 * NIDs of the peer, also if these become known later. Node 0 has the entries;
 * node 1 has two NIDs. */
#include <criterion/criterion.h>
#include <errno.h>
#include "lnet/node/node.h"
#include "lnet/peer/member.h"
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77
#define CPTS   3

static uint8_t memory[100], byte;

struct rig {
	struct lnet_sim *sim;
	struct lnet *node, *peer;
	struct ulnet_nid nid[3]; /* two of node 1, and one of node 2 */
	struct lnet_cpt *cpt;	 /* of node 0, the owner of nid[0] and nid[1] */
	uint32_t pid;		 /* in the entries */
	struct seen seen;
};

static void rig_open(struct rig *r)
{
	struct ulnet_ni_conf conf = { 0 };

	r->seen.n = 0;
	r->pid = LNET_PID_LUSTRE;
	r->sim = cluster_with(3, CPTS, NULL);
	r->node = lnet_sim_node(r->sim, 0);
	r->peer = lnet_sim_node(r->sim, 1);
	r->nid[0] = nth_id(1).nid;
	r->nid[2] = nth_id(2).nid;
	r->cpt = r->node->cpt[lnet_cpt_of(r->node, &r->nid[0])];
	for (unsigned int i = 1;
	     !i || r->node->cpt[lnet_cpt_of(r->node, &conf.nid)] != r->cpt; i++)
		conf.nid = lnet_nid_make(LNET_NET(2, 0), 0x0a090000 + i);
	r->nid[1] = conf.nid;
	cr_assert_eq(lnet_ni_add(r->peer, &conf), 0);
}

static void rig_close(struct rig *r)
{
	cluster_end(r->sim);
}

/* Makes both NIDs one peer. Runs on the CPT that owns them. */
static int become_one(void *arg)
{
	struct rig *r = arg;
	struct lnet_peer_ni *p = peer_get(r->cpt, &r->nid[0]);
	struct lnet_peer_ni *q = peer_get(r->cpt, &r->nid[1]);

	cr_assert_eq(member_take(r->cpt, p->peer, q), 0);
	peer_unref(p);
	peer_unref(q);
	return 0;
}

static void unite(struct rig *r)
{
	cr_assert_eq(lnet_call(r->node, r->cpt->index, become_one, r), 0);
}

/* Attaches an entry for BITS, less @ignore, from @nid. */
static void post(struct rig *r, const struct ulnet_nid *nid, uint64_t ignore)
{
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, &r->seen);
	struct ulnet_id id = { *nid, r->pid };
	struct ulnet_md_handle md;
	struct ulnet_me_handle me;

	cr_assert_eq(LNetMEAttach(r->node, PORTAL, id, BITS, ignore,
				  LNET_UNLINK, LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md), 0);
}

/* Node @from sends a PUT from @nid. */
static void send_from(struct rig *r, unsigned int from,
		      const struct ulnet_nid *nid)
{
	struct ulnet_md umd = md_of(&byte, 1, 0, NULL);
	struct lnet *node = lnet_sim_node(r->sim, from);

	umd.threshold = 1;
	cr_assert_eq(LNetPut(*nid, bind_md(node, &umd), LNET_NOACK_REQ,
			     nth_id(0), PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run(r->sim, MSEC);
}

/* Asserts that @n messages have come, the last one from @source, with nid[0] as
 * its initiator. */
static void check_seen(const struct rig *r, unsigned int n,
		       const struct ulnet_nid *source)
{
	cr_assert_eq(r->seen.n, n);
	cr_assert(lnet_nid_eq(&r->seen.ev[n - 1].source, source));
	cr_assert(lnet_nid_eq(&r->seen.ev[n - 1].initiator.nid, &r->nid[0]));
}

/* With an entry for one NID, of any of these kinds, messages from the other NID
 * match once both are one peer, and messages from others do not. */
static void found(unsigned int named, uint64_t ignore, bool wild)
{
	static struct rig r;

	rig_open(&r);
	if (wild)
		r.pid = LNET_PID_ANY;
	post(&r, &r.nid[named], ignore);
	send_from(&r, 1, &r.nid[1 - named]);
	cr_assert_eq(r.seen.n, 0);
	cr_assert_eq(counter(r.node, "drop_no_match"), 1);
	unite(&r);
	send_from(&r, 1, &r.nid[1 - named]);
	check_seen(&r, 1, &r.nid[1 - named]);
	send_from(&r, 1, &r.nid[named]);
	check_seen(&r, 2, &r.nid[named]);
	send_from(&r, 2, &r.nid[2]);
	cr_assert_eq(r.seen.n, 2);
	cr_assert_eq(counter(r.node, "drop_no_match"), 2);
	rig_close(&r);
}

Test(alias, unique)
{
	found(0, 0, false);
	found(1, 0, false);
}

Test(alias, masked)
{
	found(0, 1, false);
	found(1, 1, false);
}

Test(alias, wildcard)
{
	found(0, 0, true);
	found(1, 0, true);
}

/* The entry is attached when the NIDs are one peer already. */
Test(alias, attached_later)
{
	for (unsigned int named = 0; named < 2; named++) {
		static struct rig r;

		rig_open(&r);
		unite(&r);
		post(&r, &r.nid[named], 0);
		send_from(&r, 1, &r.nid[1 - named]);
		check_seen(&r, 1, &r.nid[1 - named]);
		rig_close(&r);
	}
}

/* A queued message finds its entry, whichever comes last: the entry, or that
 * both NIDs become one peer. */
Test(alias, held)
{
	for (unsigned int i = 0; i < 8; i++) {
		unsigned int named = i & 1;
		bool entry_last = i & 2;
		static struct rig r;

		rig_open(&r);
		cr_assert_eq(LNetSetLazyPortal(r.node, PORTAL), 0);
		/* makes the portal one of such entries before any message waits
		 */
		if (i & 4)
			post(&r, &r.nid[2], 0);
		if (entry_last)
			unite(&r);
		else
			post(&r, &r.nid[named], 0);
		send_from(&r, 1, &r.nid[1 - named]);
		cr_assert_eq(r.seen.n, 0);
		if (entry_last)
			post(&r, &r.nid[named], 0);
		else
			unite(&r);
		lnet_sim_run(r.sim, MSEC);
		cr_assert_eq(r.seen.n, 1);
		cr_assert(lnet_nid_eq(&r.seen.ev[0].source, &r.nid[1 - named]));
		rig_close(&r);
	}
}

/* Makes the NIDs two peers again, so that the entry matches only its own NID.
 */
static int part(void *arg)
{
	struct rig *r = arg;

	cr_assert_eq(member_split(r->cpt, peer_find(r->cpt, &r->nid[1])), 0);
	return 0;
}

Test(alias, parted)
{
	static struct rig r;

	rig_open(&r);
	unite(&r);
	post(&r, &r.nid[1], 0);
	cr_assert_eq(lnet_call(r.node, r.cpt->index, part, &r), 0);
	send_from(&r, 1, &r.nid[0]);
	cr_assert_eq(r.seen.n, 0);
	send_from(&r, 1, &r.nid[1]);
	cr_assert_eq(r.seen.n, 1);
	cr_assert(lnet_nid_eq(&r.seen.ev[0].initiator.nid, &r.nid[1]));
	rig_close(&r);
}
