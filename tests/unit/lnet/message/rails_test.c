/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between two multi-rail nodes with two NIs each on one net: which
 * rails they take, and what becomes of them when a rail fails (requirements C3,
 * C5, D7; spec, sections 9.2 and 11.4c).
 */
#include <criterion/criterion.h>

#include "lnet/net/net.h"
#include "lnet/peer/member.h"
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77

static const char *const mine[] = { "10.77.0.3@tcp", "10.77.1.3@tcp" };
static const char *const theirs[] = { "10.77.0.2@tcp", "10.77.1.2@tcp" };

static struct seen seen, sent;
static uint8_t memory[65536], source[4096];

static int know_call(void *arg)
{
	struct lnet *node = arg;
	const struct ulnet_nid first = nid_of(theirs[0]);
	const struct ulnet_nid second = nid_of(theirs[1]);
	struct lnet_peer_ni *p = peer_get(node->cpt[0], &first);

	cr_assert_not_null(p);
	cr_assert_eq(member_add(node->cpt[0], p->peer, &second), 0);
	p->peer->multi_rail = true;
	cpt_topology_changed(node->cpt[0]);
	peer_unref(p);
	return 0;
}

/* Returns a cluster in which node 0 sends, and knows both NIDs of node 1, which
 * receives. */
static struct lnet_sim *two_rails(void)
{
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, &seen);
	struct lnet_sim *sim;

	seen.n = 0;
	sent.n = 0;
	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	cr_assert_eq(plain_node(sim, "10.77.0.3@tcp 10.77.1.3@tcp", NULL, NULL,
				NULL),
		     0);
	cr_assert_eq(plain_node(sim, "10.77.0.2@tcp 10.77.1.2@tcp", NULL, NULL,
				NULL),
		     1);
	post_md(lnet_sim_node(sim, 1), PORTAL, BITS, &umd);
	cr_assert_eq(lnet_call(lnet_sim_node(sim, 0), 0, know_call,
			       lnet_sim_node(sim, 0)),
		     0);
	return sim;
}

/* Sends @n PUTs to the peer's second NID; if @wait, each after the one before
 * has ended. */
static void put(struct lnet_sim *sim, unsigned int n, bool wait)
{
	struct ulnet_md umd = md_of(source, 100, 0, &sent);

	umd.threshold = 2; /* the PUT and its ACK */
	umd.timeout = 5 * UINT64_C(1000000);
	for (unsigned int i = 0; i < n; i++) {
		cr_assert_eq(LNetPut(LNET_NID_ANY,
				     bind_md(lnet_sim_node(sim, 0), &umd),
				     LNET_ACK_REQ, id_of(theirs[1]), PORTAL,
				     BITS, 0, i),
			     0);
		if (wait)
			lnet_sim_run(sim, 10 * MSEC);
	}
}

/* Messages alternate strictly over equal rails, four each. Each answer goes
 * back over the rail of its request. */
Test(rails, equal_rails_alternate)
{
	struct lnet_sim *sim = two_rails();
	unsigned int acks = 0;

	put(sim, 8, true);
	cr_assert_eq(seen.n, 8);
	for (unsigned int i = 0; i < 8; i++)
		cr_assert(nid_is(&seen.ev[i].source, mine[i % 2]), "%u", i);
	for (unsigned int i = 0; i < sent.n; i++) {
		const struct ulnet_event *ev = &sent.ev[i];

		if (ev->type != LNET_EVENT_ACK)
			continue;
		cr_assert(nid_is(&ev->path_local, mine[acks % 2]));
		cr_assert(nid_is(&ev->path_peer, theirs[acks % 2]));
		cr_assert(nid_is(&ev->source, theirs[acks % 2]));
		cr_assert(nid_is(&ev->target.nid, theirs[1]));
		acks++;
	}
	cr_assert_eq(acks, 8);
	for (unsigned int i = 1; i <= 2; i++) {
		struct ulnet_ni_info info;

		cr_assert_eq(lnet_ni_info(lnet_sim_node(sim, 1), i, &info), 0);
		cr_assert_eq(info.received.put, 4);
		cr_assert_eq(info.sent.ack, 4);
	}
	cluster_end(sim);
}

/* A rail fails while messages wait for credits, of it and of the other one:
 * messages that have not left take the other rail. A rail that is back gets its
 * share again. */
Test(rails, a_rail_fails_and_comes_back)
{
	const struct ulnet_sim_link slow = { .latency = MSEC };
	const struct ulnet_nid first = nid_of(mine[0]);
	struct lnet_sim *sim = two_rails();
	unsigned int by[2] = { 0 }, failed = 0;

	cluster_links(sim, &slow);
	put(sim, 100, false);
	cr_assert_eq(lnet_sim_ni_set(sim, &first, false), 0);
	put(sim, 10, false);
	lnet_sim_run(sim, 100 * MSEC);
	for (unsigned int i = 0; i < sent.n; i++)
		failed += sent.ev[i].terminal && sent.ev[i].status;
	/* Only messages fail that the LND has already. */
	cr_assert_leq(failed, 16, "%u failed", failed);
	cr_assert_geq(seen.n, 110 - 16);
	seen.n = 0;
	put(sim, 4, true);
	cr_assert_eq(seen.n, 4);
	for (unsigned int i = 0; i < 4; i++)
		cr_assert(nid_is(&seen.ev[i].source, mine[1]));
	cr_assert_eq(lnet_sim_ni_set(sim, &first, true), 0);
	seen.n = 0;
	put(sim, 100, true);
	cr_assert_eq(seen.n, 100);
	for (unsigned int i = 0; i < 100; i++)
		by[nid_is(&seen.ev[i].source, mine[1])]++;
	cr_assert(by[0] >= 49 && by[1] >= 49, "%u and %u", by[0], by[1]);
	cluster_end(sim);
}

/* A rail on which messages are stuck gets no more of them. */
Test(rails, a_rail_that_stands_gets_no_more)
{
	const struct ulnet_sim_link stands = { .stall = LNET_SIM_ALWAYS };
	const struct ulnet_nid first = nid_of(mine[0]), any = LNET_NID_ANY;
	struct lnet_sim *sim = two_rails();

	cr_assert_eq(lnet_sim_link_set(sim, &first, &any, &stands), 0);
	put(sim, 20, true);
	cr_assert_eq(seen.n, 19);
	for (unsigned int i = 0; i < seen.n; i++)
		cr_assert(nid_is(&seen.ev[i].source, mine[1]));
	cluster_end(sim);
}

/* Messages leave by the NI that is nearest to their memory (requirement C10).
 */
Test(rails, near_the_memory)
{
	struct lnet_sim *sim = two_rails();
	struct lnet *node = lnet_sim_node(sim, 0);
	const struct lnet_config *config = net_node(node)->config;
	struct ulnet_md umd = md_of(source, 100, LNET_MD_NUMA_NODE, NULL);
	unsigned int by_first = 0;

	umd.threshold = 1;
	config->ni[1]->lnd.numa_node = 0;
	config->ni[2]->lnd.numa_node = 1;
	for (unsigned int i = 0; i < 8; i++) {
		umd.numa_node = i / 4;
		cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(node, &umd),
				     LNET_NOACK_REQ, id_of(theirs[1]), PORTAL,
				     BITS, 0, i),
			     0);
	}
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 8);
	for (unsigned int i = 0; i < 8; i++) {
		unsigned int node_of = (unsigned int)seen.ev[i].hdr_data / 4;

		cr_assert(nid_is(&seen.ev[i].source, mine[node_of]), "%u", i);
	}
	/* A wide range makes all NIs equal. */
	cr_assert_eq(lnet_setting_set(node, "numa_range", 100), 0);
	seen.n = 0;
	for (unsigned int i = 0; i < 8; i++)
		cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(node, &umd),
				     LNET_NOACK_REQ, id_of(theirs[1]), PORTAL,
				     BITS, 0, i),
			     0);
	lnet_sim_run_all(sim);
	cr_assert_eq(seen.n, 8);
	for (unsigned int i = 0; i < 8; i++)
		by_first += nid_is(&seen.ev[i].source, mine[0]);
	cr_assert_eq(by_first, 4);
	cluster_end(sim);
}
