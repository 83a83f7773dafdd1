/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that an administrator configures. Their NIDs hash to any of several
 * CPTs. */
#include <criterion/criterion.h>
#include <errno.h>
#include "lnet/node/node.h"
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77

static uint8_t memory[100];

static void open_with(struct lnet_sim **sim, struct lnet **node,
		      unsigned int cpts)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.peers_max = 20;
	*sim = cluster_with(2, cpts, &conf);
	*node = lnet_sim_node(*sim, 0);
}

static void nids_from(struct ulnet_nid *nids, unsigned int n,
		      unsigned int first)
{
	for (unsigned int i = 0; i < n; i++)
		nids[i] = nth_id(first + i).nid;
}

/* Asserts that all @nids are a configured peer, whose primary NID is the first
 * one, and whose CPT is that one's. */
static void check_peer(struct lnet *node, const struct ulnet_nid *nids,
		       unsigned int n, bool multi_rail)
{
	for (unsigned int i = 0; i < n; i++) {
		struct ulnet_peer_info info;
		struct ulnet_nid primary;

		cr_assert_eq(lnet_peer_info(node, &nids[i], &info), 0);
		cr_assert(lnet_nid_eq(&info.primary, &nids[0]));
		cr_assert(info.configured);
		cr_assert_eq(info.multi_rail, multi_rail);
		cr_assert_eq(info.state, multi_rail ? 9 : 8);
		cr_assert_str_eq(info.state_name, "unknown");
		cr_assert_eq((int)info.cpt, lnet_cpt_of(node, &nids[0]));
		cr_assert_eq(lnet_primary(node, &nids[i], &primary), 0);
		cr_assert(lnet_nid_eq(&primary, &nids[0]));
	}
}

static void check_single(struct lnet *node, const struct ulnet_nid *nid)
{
	struct ulnet_nid primary;

	cr_assert_eq(lnet_primary(node, nid, &primary), 0);
	cr_assert(lnet_nid_eq(&primary, nid));
}

static void come_and_go(unsigned int cpts)
{
	struct ulnet_nid nids[8], again[3];
	struct ulnet_peer_info info;
	struct lnet_sim *sim;
	struct lnet *node;

	open_with(&sim, &node, cpts);
	nids_from(nids, 8, 10);
	cr_assert_eq(lnet_peer_add(node, nids, 5, true), 0);
	lnet_sim_run_all(sim);
	check_peer(node, nids, 5, true);
	/* Adds NIDs to the same peer, some of which it has already. */
	again[0] = nids[0];
	again[1] = nids[4];
	again[2] = nids[5];
	cr_assert_eq(lnet_peer_add(node, again, 3, true), 0);
	check_peer(node, nids, 6, true);

	cr_assert_eq(lnet_peer_del(node, &nids[0], &nids[1], 1), 0);
	check_single(node, &nids[1]);
	cr_assert_eq(lnet_peer_del(node, &nids[0], &nids[1], 1), -ENOENT);
	cr_assert_eq(lnet_peer_del(node, &nids[0], &nids[0], 1), -EINVAL);
	cr_assert_eq(lnet_peer_del(node, &nids[2], NULL, 0), -ENOENT);
	check_peer(node, &nids[0], 1, true);
	cr_assert_eq(lnet_peer_del(node, &nids[0], NULL, 0), 0);
	for (unsigned int i = 0; i < 6; i++) {
		check_single(node, &nids[i]);
		cr_assert_eq(lnet_peer_info(node, &nids[i], &info), -ENOENT);
	}
	cr_assert_eq(lnet_peer_del(node, &nids[0], NULL, 0), -ENOENT);
	cluster_end(sim);
}

Test(configured, come_and_go)
{
	come_and_go(1);
	come_and_go(4);
}

/* A NID of another configured peer cannot be added; when one of several NIDs
 * fails, none is added. */
Test(configured, not_twice)
{
	struct ulnet_nid a[3], b[3], mine = nth_id(0).nid, any = LNET_NID_ANY;
	struct lnet_sim *sim;
	struct lnet *node;
	struct ulnet_peer_info info;

	open_with(&sim, &node, 3);
	nids_from(a, 3, 10);
	nids_from(b, 3, 20);
	cr_assert_eq(lnet_peer_add(node, a, 3, false), 0);
	b[2] = a[1];
	cr_assert_eq(lnet_peer_add(node, b, 3, true), -EEXIST);
	check_peer(node, a, 3, false);
	cr_assert_eq(lnet_peer_info(node, &b[0], &info), -ENOENT);
	cr_assert_eq(lnet_peer_info(node, &b[1], &info), -ENOENT);
	/* A peer that was there before keeps what it had. */
	cr_assert_eq(lnet_peer_add(node, b, 1, false), 0);
	cr_assert_eq(lnet_peer_add(node, b, 3, true), -EEXIST);
	check_peer(node, b, 1, false);
	cr_assert_eq(lnet_peer_info(node, &b[1], &info), -ENOENT);
	/* Nor are some of several deleted. */
	b[2] = nth_id(22).nid;
	cr_assert_eq(lnet_peer_del(node, a, &a[1], 1), 0);
	cr_assert_eq(lnet_peer_add(node, a, 2, false), 0);
	cr_assert_eq(
		lnet_peer_del(node, a, (struct ulnet_nid[]){ a[1], b[2] }, 2),
		-ENOENT);
	cr_assert_eq(lnet_peer_add(node, a, 3, false), 0);
	check_peer(node, a, 3, false);
	cr_assert_eq(lnet_peer_add(node, &a[1], 1, true), -EEXIST);
	cr_assert_eq(lnet_peer_add(node, &mine, 1, true), -EINVAL);
	cr_assert_eq(lnet_peer_add(node, &any, 1, true), -EINVAL);
	cr_assert_eq(lnet_peer_add(node, a, 0, true), -EINVAL);
	cluster_end(sim);
}

/* A configured peer is not forgotten, however many others are. */
Test(configured, never_forgotten)
{
	struct ulnet_nid nids[3];
	struct lnet_sim *sim;
	struct lnet *node;

	open_with(&sim, &node, 1);
	nids_from(nids, 3, 10);
	cr_assert_eq(lnet_peer_add(node, nids, 3, true), 0);
	for (unsigned int i = 0; i < 50; i++)
		put_bytes(node, nth_id(100 + i), PORTAL, BITS, "x", 1);
	lnet_sim_run_all(sim);
	check_peer(node, nids, 3, true);
	cr_assert_leq(counter(node, "peers"), 20);
	cluster_end(sim);
}

/* A peer is configured whose second NID is known already on another CPT, and
 * idle: both its NIDs are used. */
Test(configured, all_rails_are_used)
{
	struct ulnet_ni_conf conf = { 0 };
	struct ulnet_nid nids[2];
	static struct seen seen;
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, &seen);
	struct ulnet_peer_info info[2];
	struct lnet_sim *sim;
	struct lnet *node;

	open_with(&sim, &node, 4);
	nids_from(nids, 2, 1);
	for (unsigned int i = 50;
	     lnet_cpt_of(node, &nids[1]) == lnet_cpt_of(node, &nids[0]); i++)
		nids[1] = nth_id(i).nid;
	conf.nid = nids[1];
	cr_assert_eq(lnet_ni_add(lnet_sim_node(sim, 1), &conf), 0);
	post_md(lnet_sim_node(sim, 1), PORTAL, BITS, &umd);
	put_bytes(node, (struct ulnet_id){ nids[1], LNET_PID_LUSTRE }, PORTAL,
		  BITS, "x", 1);
	lnet_sim_run_all(sim);
	cr_assert_eq(lnet_peer_add(node, nids, 2, true), 0);
	for (unsigned int i = 0; i < 10; i++) {
		put_bytes(node, (struct ulnet_id){ nids[0], LNET_PID_LUSTRE },
			  PORTAL, BITS, "x", 1);
		lnet_sim_run_all(sim);
	}
	cr_assert_eq(seen.n, 11);
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(lnet_peer_info(node, &nids[i], &info[i]), 0);
		cr_assert_eq(info[i].send_count, 5);
	}
	cluster_end(sim);
}
