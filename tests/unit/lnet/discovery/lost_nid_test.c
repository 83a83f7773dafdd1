/* SPDX-License-Identifier: BSD-3-Clause */
/* NIDs that come to a peer, and that it loses. */
#include "lnet/core/cpt.h"
#include "lnet/peer/peer.h"
#include "tests/unit/lnet/discovery/discover_rig.h"
#include "ulnet/fault.h"

#define SECOND UINT64_C(1000000) /* us */
#define LATE   (100 * MSEC)

static struct seen more;

static struct lnet_sim *sim_new(unsigned int cpts)
{
	struct lnet_sim *sim;

	memset(&more, 0, sizeof(more));
	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	return sim;
}

Test(lost_nid, local_nis_come_and_go)
{
	const struct ulnet_ni_conf third = { .nid = nid_of("10.0.0.1@tcp2") };
	const struct ulnet_nid second = nid_of("10.0.0.1@tcp1");
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_ni_add(a, &third), 0);
	lnet_sim_run_all(sim);
	KNOWS(b, "10.0.0.1@tcp",
	      "discovered mr: 10.0.0.1@tcp 10.0.0.1@tcp1 10.0.0.1@tcp2");
	cr_assert_eq(lnet_ni_del(a, &second), 0);
	lnet_sim_run_all(sim);
	KNOWS(b, "10.0.0.1@tcp", "discovered mr: 10.0.0.1@tcp 10.0.0.1@tcp2");
	KNOWS(b, "10.0.0.1@tcp1", "nothing");
	cluster_end(sim);
}

static void loses(unsigned int cpts, const char *lost, const char *kept)
{
	const struct ulnet_nid nid = nid_of(lost);
	struct lnet_sim *sim = sim_new(cpts);
	char left[64];
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_ni_del(a, &nid), 0);
	lnet_sim_run_all(sim);
	snprintf(left, sizeof(left), "discovered mr: %s", kept);
	KNOWS(b, kept, left);
	KNOWS(b, lost, "nothing");
	cluster_end(sim);
}

/* A NID that its peer has lost is not known any more, on no CPT. */
Test(lost_nid, a_peer_loses_a_nid)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		loses(cpts, "10.0.0.1@tcp", "10.0.0.1@tcp1");
		loses(cpts, "10.0.0.1@tcp1", "10.0.0.1@tcp");
	}
}

/* Makes a message from the peer NI @arg last. */
static int message_begins(void *arg)
{
	peer_ref(arg);
	return 0;
}

static int message_ends(void *arg)
{
	peer_unref(arg);
	return 0;
}

static int message_comes(void *arg)
{
	struct lnet_peer_ni *p = arg;

	traffic_add(&p->traffic.recv, LNET_MSG_PUT, 1);
	return 0;
}

/* If a message is still under way when a peer loses the NID, that is forgotten
 * afterwards; but not if another message has come from it. */
static void loses_in_use(bool comes)
{
	const struct ulnet_nid nid = nid_of("10.0.0.1@tcp");
	struct lnet_sim *sim = sim_new(1);
	struct lnet_peer_ni *p;
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	p = peer_find(b->cpt[0], &nid);
	cr_assert_eq(lnet_call(b, 0, message_begins, p), 0);
	cr_assert_eq(lnet_ni_del(a, &nid), 0);
	lnet_sim_run(sim, 5000 * MSEC);
	KNOWS(b, "10.0.0.1@tcp1", "discovered mr: 10.0.0.1@tcp1");
	KNOWS(b, "10.0.0.1@tcp", "unknown: 10.0.0.1@tcp");
	if (comes)
		cr_assert_eq(lnet_call(b, 0, message_comes, p), 0);
	cr_assert_eq(lnet_call(b, 0, message_ends, p), 0);
	lnet_sim_run_all(sim);
	KNOWS(b, "10.0.0.1@tcp", comes ? "unknown: 10.0.0.1@tcp" : "nothing");
	cluster_end(sim);
}

Test(lost_nid, a_peer_loses_a_nid_in_use)
{
	loses_in_use(false);
	loses_in_use(true);
}

/* A peer claims a NID on a net that this node has left for a while: the NID can
 * only be pinged when the net is back. */
Test(lost_nid, a_net_comes_back)
{
	const struct ulnet_ni_conf own = { .nid = nid_of("10.0.0.1@tcp1") };
	const struct ulnet_ni_conf its = { .nid = nid_of("10.0.0.2@tcp1") };
	struct lnet_sim *sim = sim_new(1);
	struct ulnet_fault fault;
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_ni_del(b, &its.nid), 0);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp1", "nothing");
	/* A message from the NID comes before the push that announces it. */
	lnet_fault_init(&fault, LNET_FAULT_DROP);
	fault.rate = 1;
	fault.messages = LNET_FAULT_PUT;
	fault.portals = 1;
	cr_assert_eq(lnet_fault_add(a, &fault), 0);
	cr_assert_eq(lnet_ni_add(b, &its), 0);
	put_from(b, its.nid, "10.0.0.1@tcp1", SECOND, &more);
	lnet_sim_run(sim, LATE);
	seen_delivered(&more);
	cr_assert_eq(lnet_ni_del(a, &own.nid), 0);
	cr_assert_eq(lnet_fault_del(a, LNET_FAULT_DROP, NULL, NULL), 1);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	KNOWS(a, "10.0.0.2@tcp1", "unknown: 10.0.0.2@tcp1");
	/* The push in which the peer announces itself is lost, too. */
	cr_assert_eq(lnet_fault_add(a, &fault), 0);
	cr_assert_eq(lnet_ni_add(a, &own), 0);
	lnet_sim_run(sim, LATE);
	KNOWS(a, "10.0.0.2@tcp1", KNOWS_B);
	cluster_end(sim);
}

/* A message to a NID that its peer has lost goes to another NID of the peer;
 * when the NID is back, it is used again. */
Test(lost_nid, a_nid_in_use_goes)
{
	const struct ulnet_ni_conf again = { .nid = nid_of("10.0.0.2@tcp") };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_ni_del(b, &again.nid), 0);
	lnet_sim_run(sim, LATE);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp1 10.0.0.2@tcp");
	put_to(a, "10.0.0.2@tcp", SECOND, &more);
	lnet_sim_run(sim, LATE);
	seen_delivered(&more);
	cr_assert_eq(lnet_ni_add(b, &again), 0);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp1 10.0.0.2@tcp");
	cluster_end(sim);
}
