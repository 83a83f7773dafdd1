/* SPDX-License-Identifier: BSD-3-Clause */
/* Merging an announcement into what is known of its peer while memory runs out.
 */
#include "lnet/discovery/reconcile.h"

#include <errno.h>

#include "lnet/discovery/info.h"
#include "lnet/peer/member.h"
#include "tests/unit/lnet/discovery/discover_rig.h"

void *__wrap_malloc(size_t size);
void *__real_malloc(size_t size);

/* how many of the next calls succeed; < 0: all */
static int mallocs_left = -1;

void *__wrap_malloc(size_t size)
{
	if (mallocs_left == 0)
		return NULL;
	if (mallocs_left > 0)
		mallocs_left--;
	return __real_malloc(size);
}

static const char *const nids[] = { "10.0.0.2@tcp", "10.0.1.2@tcp",
				    "10.0.2.2@tcp", "10.0.3.2@tcp",
				    "10.0.9.2@tcp" };

/* The peer announces the first four NIDs; it is known to have the last one. */
struct half {
	struct lnet *node, *peer;
	int left; /* calls of malloc() that succeed */
	int rc;	  /* result of the first merge */
};

static struct announcement *what_it_tells(struct lnet_cpt *cpt,
					  const struct lnet *peer)
{
	uint8_t bytes[512];
	size_t length = ping_info_encode(peer, peer->cpt[0]->config, bytes,
					 sizeof(bytes));
	struct announcement *told;

	cr_assert_leq(length, sizeof(bytes));
	cr_assert_eq(announcement_new(cpt, bytes, length, &told), 0);
	told->source = MERGE_PUSH;
	told->from = nid_of(nids[0]);
	return told;
}

/* Asserts that each NID is in one peer or in none, as the directory says. */
static void check_directory(struct lnet_cpt *cpt)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(nids); i++) {
		const struct ulnet_nid nid = nid_of(nids[i]);
		const struct lnet_peer_ni *p = peer_find(cpt, &nid);
		struct ulnet_nid primary =
			directory_primary(&cpt->node->directory, &nid);

		cr_assert(lnet_nid_eq(&primary, p ? &p->peer->primary : &nid));
	}
}

static int merge_twice(void *arg)
{
	struct half *h = arg;
	struct lnet_cpt *cpt = h->node->cpt[0];
	struct announcement *told = what_it_tells(cpt, h->peer);
	struct lnet_peer *peer = peer_find(cpt, &told->from)->peer;
	size_t ask;

	cr_assert(peer->merged);
	peer_hold(peer);
	mallocs_left = h->left;
	h->rc = reconcile(cpt, peer, told, &ask);
	mallocs_left = -1;
	cr_assert_eq(peer->merged, h->rc == 0);
	check_directory(cpt);
	cr_assert_eq(reconcile(cpt, peer, told, &ask), 0);
	cr_assert(peer->merged);
	check_directory(cpt);
	peer_drop(cpt, peer);
	announcement_free(told);
	return 0;
}

#define ALL_NIDS                                                 \
	"discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp 10.0.2.2@tcp " \
	"10.0.3.2@tcp"

/* Opens a node, and its peer, which has got NIDs that the node does not know
 * of. */
static struct lnet_sim *half_open(struct half *h)
{
	static struct seen seen;
	struct lnet_sim *sim;
	struct ulnet_nid gone = nid_of(nids[4]);

	seen.n = 0;
	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	h->node = node_on(sim, "10.0.0.1@tcp");
	h->peer = node_on(sim, "10.0.0.2@tcp 10.0.9.2@tcp");
	put_to(h->node, nids[0], 0, &seen);
	lnet_sim_run_all(sim);
	KNOWS(h->node, nids[0], "discovered mr: 10.0.0.2@tcp 10.0.9.2@tcp");
	for (unsigned int i = 1; i < 4; i++) {
		const struct ulnet_ni_conf ni = { .nid = nid_of(nids[i]) };

		cr_assert_eq(lnet_ni_add(h->peer, &ni), 0);
	}
	cr_assert_eq(lnet_ni_del(h->peer, &gone), 0);
	return sim;
}

/* Merges while @left calls of malloc() succeed: if that fails, the peer remains
 * to be merged, and a second merge completes it. Returns the result of the
 * first one. */
static int half_a_merge(int left)
{
	struct half h = { .left = left };
	struct lnet_sim *sim = half_open(&h);

	cr_assert_eq(lnet_call(h.node, 0, merge_twice, &h), 0);
	KNOWS(h.node, nids[0], ALL_NIDS);
	cluster_end(sim);
	return h.rc;
}

/* A NID of shared memory that another net tells of may be of another host,
 * where somebody else has it. */
Test(reconcile, shared_memory_of_another_host)
{
	static struct seen seen;
	struct lnet *node, *near;
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	node = node_on(sim, "10.0.0.1@tcp 5@shm");
	near = node_on(sim, "7@shm");
	node_on(sim, "10.0.0.2@tcp 1000@shm");
	put_to(node, "10.0.0.2@tcp", 0, &seen);
	put_to(node, "7@shm", 0, &seen);
	put_to(near, "5@shm", 0, &seen);
	lnet_sim_run_all(sim);
	KNOWS(node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	KNOWS(node, "7@shm", "discovered mr: 7@shm");
	KNOWS(near, "5@shm", "discovered mr: 10.0.0.1@tcp 5@shm");
	cluster_end(sim);
}

Test(reconcile, half_a_merge_is_mended)
{
	int left = 0, rc;

	while ((rc = half_a_merge(left))) {
		cr_assert_eq(rc, -ENOMEM);
		cr_assert_lt(++left, 100);
	}
	cr_assert_gt(left, 8);
}

static int merge_claimed(void *arg)
{
	struct half *h = arg;
	struct lnet_cpt *cpt = h->node->cpt[0];
	struct announcement *told = what_it_tells(cpt, h->peer);
	struct lnet_peer_ni *p = peer_find(cpt, &told->from);
	size_t ask;

	p->claimed_by = nid_of(nids[1]);
	cr_assert_eq(reconcile(cpt, p->peer, told, &ask), 0);
	announcement_free(told);
	return 0;
}

/* A NID has named the peer, and was forgotten since: if the peer names it, the
 * peer gets it, as any other that is new. */
Test(reconcile, named_by_one_that_is_forgotten)
{
	struct half h = { 0 };
	struct lnet_sim *sim = half_open(&h);

	cr_assert_eq(lnet_call(h.node, 0, merge_claimed, &h), 0);
	KNOWS(h.node, nids[0], ALL_NIDS);
	cluster_end(sim);
}

struct overtaken {
	struct lnet *node, *peer;
	uint32_t before; /* how many changes before the latest announcement */
	int rc;
};

static int merge_overtaken(void *arg)
{
	struct overtaken *o = arg;
	struct ulnet_nid first = nid_of(nids[0]), second = nid_of(nids[1]);
	struct lnet_cpt *cpt = o->node->cpt[0];
	struct announcement *told = what_it_tells(cpt, o->peer);
	struct lnet_peer_ni *p = peer_find(cpt, &second);
	size_t ask;

	cr_assert_eq(member_split(cpt, p), 0);
	p->claimed_by = first;
	told->from = second;
	told->info.sequence -= o->before;
	o->rc = reconcile(cpt, p->peer, told, &ask);
	announcement_free(told);
	return 0;
}

/* A peer is known in two halves, which have named each other. A push from one
 * half unites them, unless it is older than what the other half has announced:
 * then the peer is asked. */
Test(reconcile, overtaken_by_an_announcement_of_the_other_half)
{
	for (uint32_t before = 0; before < 2; before++) {
		static struct seen seen;
		struct overtaken o = { .before = before };
		struct lnet_sim *sim;

		seen.n = 0;
		cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
		o.node = node_on(sim, "10.0.0.1@tcp");
		o.peer = node_on(sim, "10.0.0.2@tcp 10.0.1.2@tcp");
		put_to(o.node, nids[0], 0, &seen);
		lnet_sim_run_all(sim);
		cr_assert_eq(lnet_call(o.node, 0, merge_overtaken, &o), 0);
		cr_assert_eq(o.rc, (int)before);
		KNOWS(o.node, nids[0],
		      before ? "discovered mr: 10.0.0.2@tcp"
			     : "unknown mr: 10.0.0.2@tcp 10.0.1.2@tcp");
		cluster_end(sim);
	}
}
