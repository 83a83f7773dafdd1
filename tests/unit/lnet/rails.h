/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two simulated nodes with two NIs each. Node 0 sends, and knows node 1 to be
 * one multi-rail peer, as discovery would find it.
 */
#ifndef TESTS_RAILS_H
#define TESTS_RAILS_H

#include <criterion/criterion.h>
#include <errno.h>
#include "lnet/message/out.h"
#include "lnet/node/node.h"
#include "lnet/path/health.h"
#include "lnet/peer/member.h"
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77
#define SECOND UINT64_C(1000000) /* us */

static struct seen seen, sent;
static uint8_t memory[65536], source[4096];

static const char *const mine[] = { "10.0.0.1@tcp", "10.0.1.1@tcp" };
static const char *const theirs[] = { "10.0.0.2@tcp", "10.0.1.2@tcp" };

/* Makes node 1, as @node knows it, one multi-rail peer with both NIDs, as
 * discovery would. */
static inline void make_multi_rail(struct lnet *node)
{
	struct lnet_cpt *cpt = node->cpt[0];
	struct ulnet_nid nid = nid_of(theirs[0]);
	struct lnet_peer_ni *first = peer_get(cpt, &nid), *other;

	cr_assert_not_null(first);
	nid = nid_of(theirs[1]);
	other = peer_get(cpt, &nid);
	cr_assert_not_null(other);
	cr_assert_eq(member_take(cpt, first->peer, other), 0);
	first->peer->multi_rail = true;
	cpt_topology_changed(cpt);
	peer_unref(other);
	peer_unref(first);
}

/* Returns a cluster of both nodes, with 10 ms from one to the other. Node 1 has
 * an MD for PUTs and GETs, whose events go to `seen`. */
static inline struct lnet_sim *rails(void)
{
	struct ulnet_md umd = md_of(memory, sizeof(memory),
				    LNET_MD_OP_PUT | LNET_MD_OP_GET, &seen);
	const struct ulnet_sim_link link = { .latency = 10000 };
	struct lnet_sim *sim;
	char nids[64];

	seen.n = 0;
	sent.n = 0;
	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	snprintf(nids, sizeof(nids), "%s %s", mine[0], mine[1]);
	cr_assert_eq(plain_node(sim, nids, NULL, NULL, NULL), 0);
	snprintf(nids, sizeof(nids), "%s %s", theirs[0], theirs[1]);
	cr_assert_eq(plain_node(sim, nids, NULL, NULL, NULL), 1);
	cluster_links(sim, &link);
	post_md(lnet_sim_node(sim, 1), PORTAL, BITS, &umd);
	make_multi_rail(lnet_sim_node(sim, 0));
	return sim;
}

/* Sets all links from NI @from to NI @to; NULL: from all NIs, or to all. */
static inline void paths_are(struct lnet_sim *sim, const char *from,
			     const char *to, const struct ulnet_sim_link *link)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	struct ulnet_nid a = from ? nid_of(from) : any;
	struct ulnet_nid b = to ? nid_of(to) : any;

	cr_assert_eq(lnet_sim_link_set(sim, &a, &b, link), 0);
}

static const struct ulnet_sim_link refuses = { .latency = 10000,
					       .refuse = LNET_SIM_ALWAYS };
static const struct ulnet_sim_link stalls = { .latency = 10000,
					      .stall = LNET_SIM_ALWAYS };
static const struct ulnet_sim_link fails = { .latency = 10000,
					     .error = LNET_SIM_ALWAYS };

static inline struct ulnet_md_handle put(struct lnet_sim *sim, const char *from,
					 uint32_t options, uint64_t timeout)
{
	struct ulnet_md umd = md_of(source, 100, options, &sent);
	struct ulnet_md_handle md;

	umd.threshold = 1;
	umd.timeout = timeout;
	md = bind_md(lnet_sim_node(sim, 0), &umd);
	cr_assert_eq(
		LNetPut(from ? nid_of(from) : (struct ulnet_nid)LNET_NID_ANY,
			md, LNET_NOACK_REQ, id_of(theirs[0]), PORTAL, BITS, 0,
			0),
		0);
	return md;
}

static inline uint64_t counted(struct lnet_sim *sim, const char *name)
{
	return counter(lnet_sim_node(sim, 0), name);
}

static inline int32_t peer_health(struct lnet_sim *sim, unsigned int i)
{
	struct lnet_cpt *cpt = lnet_sim_node(sim, 0)->cpt[0];
	struct ulnet_nid nid = nid_of(theirs[i]);

	return peer_find(cpt, &nid)->health;
}

static inline int32_t my_health(struct lnet_sim *sim, unsigned int i)
{
	const struct ulnet_nid nid = nid_of(mine[i]);

	return ni_health(
		config_ni(lnet_sim_node(sim, 0)->cpt[0]->config, &nid));
}

/* What node 0 shows of its own NI @i, and of NI @i of node 1. */
static inline struct ulnet_ni_info my_ni(struct lnet_sim *sim, unsigned int i)
{
	struct ulnet_ni_info info;

	cr_assert_eq(lnet_ni_info(lnet_sim_node(sim, 0), 1 + i, &info), 0);
	return info;
}

static inline struct ulnet_peer_info their_ni(struct lnet_sim *sim,
					      unsigned int i)
{
	const struct ulnet_nid nid = nid_of(theirs[i]);
	struct ulnet_peer_info info;

	cr_assert_eq(lnet_peer_info(lnet_sim_node(sim, 0), &nid, &info), 0);
	return info;
}

/* Makes all links work. By that recovery ends, too: it pings the NIs that have
 * failed until they answer. */
static inline void rails_heal(struct lnet_sim *sim)
{
	const struct ulnet_sim_link works = { .latency = 10000 };

	paths_are(sim, NULL, NULL, &works);
	for (unsigned int i = 0; i < 2; i++) {
		paths_are(sim, mine[i], NULL, &works);
		paths_are(sim, NULL, mine[i], &works);
		paths_are(sim, NULL, theirs[i], &works);
		for (unsigned int k = 0; k < 2; k++)
			paths_are(sim, mine[i], theirs[k], &works);
	}
}

static inline void rails_end(struct lnet_sim *sim)
{
	rails_heal(sim);
	cluster_end(sim);
}

#endif
