/* SPDX-License-Identifier: BSD-3-Clause */
/* Which NIDs belong to a peer: they come together and part, and the directory
 * agrees, even when memory runs out. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "lnet/node/node.h"
#include "lnet/peer/member.h"
#include "sim/sim.h"
#include "tests/unit/lnet/cluster.h"

#define CPTS 3

/* The linker replaces malloc() by this function. */
void *__wrap_malloc(size_t size);
void *__real_malloc(size_t size);

/* how many of the next calls succeed; < 0: all */
static int mallocs_left = -1;
/* how many calls fail before those */
static unsigned int mallocs_to_fail;

void *__wrap_malloc(size_t size)
{
	if (mallocs_to_fail) {
		mallocs_to_fail--;
		return NULL;
	}
	if (mallocs_left == 0)
		return NULL;
	if (mallocs_left > 0)
		mallocs_left--;
	return __real_malloc(size);
}

struct rig {
	struct lnet_sim *sim;
	struct lnet *node;
	struct lnet_cpt *cpt;
};

static struct lnet *opened;

static void rig_check(struct rig *r)
{
	char text[200];
	const char *wrong = node_check(r->node, text, sizeof(text));

	cr_assert_null(wrong, "%s", wrong);
}

static void rig_open(struct rig *r, unsigned int peers_max)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.peers_max = peers_max;
	r->sim = cluster_with(1, CPTS, &conf);
	r->node = opened = lnet_sim_node(r->sim, 0);
	r->cpt = r->node->cpt[1];
}

static void rig_close(struct rig *r)
{
	rig_check(r);
	cluster_end(r->sim);
}

/* Returns the @n-th NID that CPT @cpt owns by its hash; if @nets, each is on a
 * net of its own. */
static struct ulnet_nid nth_of(unsigned int cpt, unsigned int n, bool nets)
{
	for (unsigned int i = 1;; i++) {
		struct ulnet_nid nid = lnet_nid_make(LNET_NET(2, nets ? n : 0),
						     0x0a000000 + n * 1000 + i);

		if (directory_default_cpt(&opened->directory, &nid) == cpt)
			return nid;
	}
}

static struct ulnet_nid nth(unsigned int n)
{
	return nth_of(1, n, false);
}

/* Makes NID @n known as a message from it would. It is idle again afterwards.
 */
static struct lnet_peer_ni *meet(struct rig *r, unsigned int n)
{
	struct ulnet_nid nid = nth(n);
	struct lnet_peer_ni *p = peer_get(r->cpt, &nid);

	cr_assert_not_null(p);
	peer_unref(p);
	return p;
}

static struct lnet_peer_ni *find(struct rig *r, unsigned int n)
{
	struct ulnet_nid nid = nth(n);

	return peer_find(r->cpt, &nid);
}

/* Asserts that NID @primary is the primary one of @n's peer, for this CPT and
 * in the directory. */
static void known_by(struct rig *r, unsigned int n, unsigned int primary)
{
	struct ulnet_nid nid = nth(n), want = nth(primary), is;
	const struct lnet_peer_ni *p = find(r, n);

	cr_assert_eq(lnet_primary(r->node, &nid, &is), 0);
	cr_assert(lnet_nid_eq(&is, &want), "%u is not known by %u", n, primary);
	cr_assert_eq(lnet_cpt_of(r->node, &nid), (int)r->cpt->index);
	if (p)
		cr_assert(lnet_nid_eq(&p->peer->primary, &want));
}

/* Returns a peer with NIDs 0 to @n - 1, which is held. */
static struct lnet_peer *peer_of(struct rig *r, unsigned int n)
{
	struct lnet_peer *peer = meet(r, 0)->peer;

	peer_hold(peer);
	for (unsigned int i = 1; i < n; i++) {
		struct ulnet_nid nid = nth(i);

		cr_assert_eq(member_add(r->cpt, peer, &nid), 0);
	}
	cr_assert_eq(peer->nnis, n);
	return peer;
}

Test(member, sizes)
{
	/* bytes of a peer with one NI, of which there may be 100,000 */
	cr_assert_leq(sizeof(struct lnet_peer) + sizeof(struct lnet_peer_net) +
			      sizeof(struct lnet_peer_ni),
		      1024);
}

Test(member, a_new_nid_is_a_peer_of_its_own)
{
	struct rig r;

	rig_open(&r, 0);
	cr_assert_neq(meet(&r, 0)->peer, meet(&r, 1)->peer);
	known_by(&r, 0, 0);
	known_by(&r, 1, 1);
	cr_assert_eq(find(&r, 0)->peer->nnis, 1);
	rig_close(&r);
}

Test(member, nids_come_and_go)
{
	struct ulnet_nid nid, other_cpt;
	struct lnet_peer *peer;
	struct rig r;

	rig_open(&r, 0);
	peer = peer_of(&r, 3);
	for (unsigned int i = 0; i < 3; i++)
		known_by(&r, i, 0);
	rig_check(&r);

	nid = nth(1);
	cr_assert_eq(member_add(r.cpt, peer, &nid), 0);
	cr_assert_eq(peer->nnis, 3);
	other_cpt = nth_of(2, 0, false);
	cr_assert_eq(member_add(r.cpt, peer, &other_cpt), -EXDEV);
	meet(&r, 5);
	nid = nth(5);
	cr_assert_eq(member_add(r.cpt, peer, &nid), -EEXIST);

	cr_assert_eq(member_split(r.cpt, find(&r, 1)), 0);
	cr_assert_eq(member_split(r.cpt, find(&r, 1)), 0);
	known_by(&r, 1, 1);
	known_by(&r, 2, 0);
	cr_assert_eq(peer->nnis, 2);
	peer_drop(r.cpt, peer);
	rig_close(&r);
}

Test(member, nets_have_their_nis)
{
	const struct lnet_peer_net *pnet;
	struct lnet_peer *peer;
	unsigned int nets = 0;
	struct rig r;

	rig_open(&r, 0);
	peer = peer_of(&r, 2);
	for (unsigned int i = 2; i < 5; i++) {
		struct ulnet_nid nid = nth_of(1, i, true);

		cr_assert_eq(member_add(r.cpt, peer, &nid), 0);
	}
	list_for_each_entry (pnet, &peer->nets, link)
		nets++;
	cr_assert_eq(nets, 4);
	cr_assert_eq(peer->nnis, 5);
	peer_drop(r.cpt, peer);
	rig_close(&r);
}

/* An IPv6 NID that leaves its peer stays on a segment of its own, apart from
 * the IPv4 NIDs of its net. */
Test(member, large_nids_stay_on_their_segment)
{
	struct ulnet_nid large;
	struct lnet_peer_ni *p;
	struct lnet_peer *peer;
	struct rig r;

	rig_open(&r, 0);
	peer = peer_of(&r, 2);
	for (unsigned int i = 1;; i++) {
		char text[32];

		snprintf(text, sizeof(text), "fd77::%x@tcp", i);
		cr_assert_eq(lnet_nid_parse(text, &large), 0);
		if (directory_default_cpt(&r.node->directory, &large) ==
		    r.cpt->index)
			break;
	}
	cr_assert_eq(member_add(r.cpt, peer, &large), 0);
	p = peer_find(r.cpt, &large);
	cr_assert_eq(member_split(r.cpt, p), 0);
	cr_assert_eq(p->net->segment, nid_segment(&large));
	rig_check(&r);
	cr_assert_eq(member_take(r.cpt, peer, p), 0);
	cr_assert_eq(p->net->segment, nid_segment(&large));
	cr_assert_neq(p->net, peer_next_ni(peer, NULL)->net);
	peer_drop(r.cpt, peer);
	rig_close(&r);
}

Test(member, the_primary_changes_for_all)
{
	struct lnet_peer *peer;
	struct ulnet_nid nid;
	struct rig r;

	rig_open(&r, 0);
	peer = peer_of(&r, 3);
	nid = nth(2);
	cr_assert_eq(peer_set_primary(r.cpt, peer, &nid), 0);
	for (unsigned int i = 0; i < 3; i++)
		known_by(&r, i, 2);
	rig_check(&r);
	nid = nth(7);
	cr_assert_eq(peer_set_primary(r.cpt, peer, &nid), -ENOENT);
	/* The primary NID leaves the peer: the first of the others takes its
	 * place. */
	cr_assert_eq(member_split(r.cpt, find(&r, 2)), 0);
	known_by(&r, 2, 2);
	known_by(&r, 0, 0);
	known_by(&r, 1, 0);
	peer_drop(r.cpt, peer);
	rig_close(&r);
}

/* Two peers become one while one of them is in use by a message. */
Test(member, two_become_one)
{
	struct lnet_peer_ni *used;
	struct lnet_peer *peer;
	struct ulnet_nid nid;
	struct rig r;

	rig_open(&r, 0);
	peer = peer_of(&r, 2);
	used = meet(&r, 5);
	peer_ref(used);
	nid = nth(6);
	cr_assert_eq(member_add(r.cpt, used->peer, &nid), 0);
	cr_assert_eq(peer_merge(r.cpt, peer, used->peer), 0);
	cr_assert_eq(peer->nnis, 4);
	cr_assert_eq(used->peer, peer);
	known_by(&r, 5, 0);
	known_by(&r, 6, 0);
	cr_assert_eq(peer_cpt(r.cpt)->peer_pool.used, 1);
	/* Only the message holds the peer now. */
	peer_drop(r.cpt, peer);
	cr_assert(list_empty(&peer->idle));
	peer_unref(used);
	cr_assert(!list_empty(&peer->idle));
	rig_close(&r);
}

/* Until when answers may come is that of the peer, and a NID takes it along
 * when it leaves: an answer may come from any NI of the peer that was asked. */
Test(member, answers_that_are_owed)
{
	struct lnet_peer *peer;
	struct rig r;

	rig_open(&r, 0);
	peer = peer_of(&r, 2);
	peer_asked(meet(&r, 5)->peer, 100);
	peer_asked(peer, 70);
	cr_assert_eq(member_take(r.cpt, peer, find(&r, 5)), 0);
	cr_assert_eq(peer->asked_until, 100);
	peer_asked(peer, 50);
	cr_assert_eq(member_split(r.cpt, find(&r, 1)), 0);
	cr_assert_eq(find(&r, 1)->peer->asked_until, 100);
	cr_assert_eq(peer->asked_until, 100);
	peer_asked(find(&r, 1)->peer, 130);
	cr_assert_eq(peer_merge(r.cpt, peer, find(&r, 1)->peer), 0);
	cr_assert_eq(peer->asked_until, 130);
	peer_drop(r.cpt, peer);
	rig_close(&r);
}

/* If an allocation fails, whichever it is, nothing has changed, and nothing is
 * lost. */
Test(member, no_memory)
{
	struct lnet_peer *peer;
	struct ulnet_nid nid;
	struct rig r;
	int rc, left;

	rig_open(&r, 0);
	peer = peer_of(&r, 2);
	meet(&r, 5);
	for (unsigned int step = 0; step < 4; step++) {
		for (left = 0, rc = -ENOMEM; rc; left++) {
			mallocs_left = left;
			nid = nth(step == 0 ? 3 : 1);
			if (step == 0)
				rc = member_add(r.cpt, peer, &nid);
			else if (step == 1)
				rc = peer_set_primary(r.cpt, peer, &nid);
			else if (step == 2)
				rc = peer_merge(r.cpt, peer, find(&r, 5)->peer);
			else
				rc = member_split(r.cpt, find(&r, 1));
			mallocs_left = -1;
			cr_assert(rc == 0 || rc == -ENOMEM);
			cr_assert_lt(left, 20);
			rig_check(&r);
		}
		cr_assert_gt(left, 1);
	}
	known_by(&r, 1, 1);
	known_by(&r, 5, 0);
	known_by(&r, 3, 0);
	peer_drop(r.cpt, peer);
	rig_close(&r);
}

/* ---- who is forgotten ---- */

Test(member, all_of_a_peer_is_forgotten)
{
	struct rig r;

	rig_open(&r, 4);
	peer_drop(r.cpt, peer_of(&r, 3));
	meet(&r, 5);
	/* That is one NI too many: the oldest peer is forgotten with all three
	 * NIs. */
	meet(&r, 6);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_null(find(&r, i));
	cr_assert_not_null(find(&r, 5));
	cr_assert_eq(counter(r.node, "peers"), 2);
	cr_assert_eq(atomic_load(&r.node->directory.count), 0);
	known_by(&r, 2, 2);
	rig_close(&r);
}

Test(member, what_is_configured_or_held_is_not_forgotten)
{
	struct lnet_peer *held;
	struct rig r;

	rig_open(&r, 3);
	held = meet(&r, 0)->peer;
	peer_hold(held);
	peer_set_configured(r.cpt, meet(&r, 1)->peer, true);
	for (unsigned int i = 2; i < 10; i++)
		meet(&r, i);
	cr_assert_not_null(find(&r, 0));
	cr_assert_not_null(find(&r, 1));
	cr_assert_null(find(&r, 8));
	rig_check(&r);
	peer_drop(r.cpt, held);
	peer_set_configured(r.cpt, find(&r, 1)->peer, false);
	for (unsigned int i = 10; i < 13; i++)
		meet(&r, i);
	cr_assert_null(find(&r, 0));
	cr_assert_null(find(&r, 1));
	rig_close(&r);
}

Test(member, who_was_used_is_not_the_next_to_be_forgotten)
{
	struct lnet_peer_ni *held;
	struct rig r;

	rig_open(&r, 4);
	for (unsigned int i = 0; i < 4; i++)
		meet(&r, i);
	peer_touch(find(&r, 0));
	peer_touch(find(&r, 0));
	held = find(&r, 1);
	peer_ref(held);
	peer_touch(held);
	cr_assert_eq(held->refs, 1);
	peer_unref(held);
	meet(&r, 4);
	cr_assert_null(find(&r, 2));
	meet(&r, 5);
	cr_assert_null(find(&r, 3));
	cr_assert_not_null(find(&r, 0));
	cr_assert_not_null(find(&r, 1));
	rig_close(&r);
}

/* If there is no memory for forgetting a peer, the next one is forgotten. */
Test(member, without_memory_another_one_is_forgotten)
{
	struct rig r;

	rig_open(&r, 3);
	peer_drop(r.cpt, peer_of(&r, 2));
	meet(&r, 5);
	/* The first allocation is the one for forgetting. */
	mallocs_to_fail = 1;
	meet(&r, 6);
	cr_assert_eq(mallocs_to_fail, 0);
	cr_assert_not_null(find(&r, 0));
	cr_assert_not_null(find(&r, 1));
	cr_assert_null(find(&r, 5));
	rig_close(&r);
}

/* A NID that another CPT owns becomes an alias here, with its peer's primary
 * NID. */
Test(member, an_alias)
{
	struct ulnet_nid nid;
	struct directory_entry e;
	struct lnet_peer_ni *p;
	struct rig r;

	rig_open(&r, 0);
	nid = nth(0);
	e = (struct directory_entry){ nid, nth(9), 2, true };
	cr_assert_eq(directory_change(&r.node->directory, &e, 1), 0);
	p = meet(&r, 0);
	cr_assert_eq(p->place.state, PEER_ALIAS);
	cr_assert(lnet_nid_eq(&p->peer->primary, &e.primary));
	rig_close(&r);
}
