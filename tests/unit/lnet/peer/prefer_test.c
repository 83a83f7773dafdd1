/* SPDX-License-Identifier: BSD-3-Clause */
/* The preferred local NI of a peer that is not multi-rail: the one that the
 * peer knows this node by. */
#include <criterion/criterion.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77

static uint8_t memory[100];

/* Returns the source of the last message that node 1 has received. */
static const struct ulnet_nid *source_of(const struct seen *seen)
{
	return &seen->ev[seen->n - 1].source;
}

struct pair {
	struct lnet_sim *sim;
	struct lnet *node;
	struct seen seen;
};

/* Node 0 has three NIs; node 1 receives. */
static void pair_open(struct pair *p)
{
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, &p->seen);
	struct ulnet_ni_conf conf = { 0 };

	p->seen.n = 0;
	p->sim = cluster(2);
	p->node = lnet_sim_node(p->sim, 0);
	conf.nid = nid_of("10.9.0.1@tcp");
	cr_assert_eq(lnet_ni_add(p->node, &conf), 0);
	conf.nid = nid_of("10.9.0.2@tcp");
	cr_assert_eq(lnet_ni_add(p->node, &conf), 0);
	post_md(lnet_sim_node(p->sim, 1), PORTAL, BITS, &umd);
}

/* Asserts that all of 10 messages come from the same NID, which is returned. */
static struct ulnet_nid sees_one(struct pair *p)
{
	struct ulnet_nid first;

	for (unsigned int i = 0; i < 10; i++) {
		unsigned int n = p->seen.n;

		put_bytes(p->node, nth_id(1), PORTAL, BITS, "x", 1);
		lnet_sim_run_all(p->sim);
		cr_assert_eq(p->seen.n, n + 1);
		if (i == 0)
			first = *source_of(&p->seen);
		cr_assert(lnet_nid_eq(source_of(&p->seen), &first));
	}
	return first;
}

/* When the preferred NI is gone another one is preferred: the rest do not take
 * turns. */
Test(prefer, a_peer_sees_one_nid_until_that_is_gone)
{
	struct ulnet_nid was[3];
	static struct pair p;

	pair_open(&p);
	for (unsigned int i = 0; i < 3; i++) {
		was[i] = sees_one(&p);
		for (unsigned int j = 0; j < i; j++)
			cr_assert(!lnet_nid_eq(&was[i], &was[j]));
		cr_assert_eq(lnet_ni_del(p.node, &was[i]), 0);
		lnet_sim_run_all(p.sim);
	}
	cluster_end(p.sim);
}

static void set_up(struct pair *p, const struct ulnet_nid *nid, bool up)
{
	cr_assert_eq(lnet_sim_ni_set(p->sim, nid, up), 0);
	lnet_sim_run_all(p->sim);
}

/* A preferred NI that was down for a while is not preferred again: the peer
 * would see one more change. */
Test(prefer, a_peer_sees_one_nid_until_that_is_down)
{
	struct ulnet_nid first, second, third;
	static struct pair p;

	pair_open(&p);
	first = sees_one(&p);
	set_up(&p, &first, false);
	second = sees_one(&p);
	cr_assert(!lnet_nid_eq(&first, &second));
	set_up(&p, &first, true);
	third = sees_one(&p);
	cr_assert(lnet_nid_eq(&second, &third));
	cluster_end(p.sim);
}

/* A message that names its NI gets it, and others keep the preferred one. */
Test(prefer, a_named_ni_does_not_become_the_preferred_one)
{
	struct ulnet_md umd = md_of(memory, 1, 0, NULL);
	struct ulnet_nid first, again;
	static struct pair p;

	pair_open(&p);
	first = sees_one(&p);
	for (unsigned int i = 0; i < 3; i++) {
		const char *ni[] = { "10.0.0.1@tcp", "10.9.0.1@tcp",
				     "10.9.0.2@tcp" };

		umd.threshold = 1;
		cr_assert_eq(LNetPut(nid_of(ni[i]), bind_md(p.node, &umd),
				     LNET_NOACK_REQ, nth_id(1), PORTAL, BITS, 0,
				     0),
			     0);
		lnet_sim_run_all(p.sim);
		cr_assert(nid_is(source_of(&p.seen), ni[i]));
	}
	again = sees_one(&p);
	cr_assert(lnet_nid_eq(&first, &again));
	cluster_end(p.sim);
}
