/* SPDX-License-Identifier: BSD-3-Clause */
/* The eight cases of path selection, and which candidate is chosen in each
 * (requirements C3, C4, C5, C11). */
#include "lnet/path/select.h"

#include <errno.h>

#include "base/hash.h"
#include "where.h"

Test(select, eight_cases)
{
	static const struct {
		const char *src, *dst;
		unsigned int flags;
		enum path_case which;
		int rc;
		const char *path; /* NULL: one of several */
	} rows[] = {
		/* A: with a source named */
		{ "10.0.1.1@tcp", "10.0.0.2@tcp", 0, PATH_SPEC_LOCAL_MR, 0,
		  "10.0.1.1@tcp > 10.0.0.2@tcp" },
		{ "10.0.1.1@tcp", "10.0.1.2@tcp", 0, PATH_SPEC_LOCAL_MR, 0,
		  "10.0.1.1@tcp > 10.0.1.2@tcp" },
		{ "10.0.1.1@tcp", "10.0.0.3@tcp", 0, PATH_SPEC_LOCAL_NMR, 0,
		  "10.0.1.1@tcp > 10.0.0.3@tcp" },
		{ "10.0.1.1@tcp", "10.2.0.2@tcp2", 0, PATH_SPEC_REMOTE_MR,
		  -EHOSTUNREACH, NULL },
		{ "10.0.1.1@tcp", "10.1.0.2@tcp1", 0, PATH_SPEC_REMOTE_MR,
		  -EINVAL, NULL },
		{ "10.0.1.1@tcp", "10.2.0.5@tcp2", 0, PATH_SPEC_REMOTE_NMR,
		  -EHOSTUNREACH, NULL },
		/* B: without a source */
		{ NULL, "10.0.0.2@tcp", 0, PATH_ANY_LOCAL_MR, 0, NULL },
		{ NULL, "10.2.0.2@tcp2", 0, PATH_ANY_LOCAL_MR, 0, NULL },
		{ NULL, "10.0.0.3@tcp", 0, PATH_ANY_LOCAL_NMR, 0, NULL },
		{ NULL, "10.2.0.4@tcp2", 0, PATH_ANY_REMOTE_MR, -EHOSTUNREACH,
		  NULL },
		{ NULL, "10.2.0.5@tcp2", 0, PATH_ANY_REMOTE_NMR, -EHOSTUNREACH,
		  NULL },
		/* to peers that are not known yet */
		{ "10.0.1.1@tcp", "10.0.0.9@tcp", 0, PATH_SPEC_LOCAL_NMR, 0,
		  "10.0.1.1@tcp > ?" },
		{ NULL, "10.1.0.9@tcp1", 0, PATH_ANY_LOCAL_NMR, 0,
		  "10.1.0.1@tcp1 > ?" },
		{ NULL, "10.2.0.9@tcp2", 0, PATH_ANY_REMOTE_NMR, -EHOSTUNREACH,
		  NULL },
		/* answers and recovery: exactly to the NID named, as if the
		 * peer were not multi-rail */
		{ "10.0.1.1@tcp", "10.0.0.2@tcp", PATH_EXACT,
		  PATH_SPEC_LOCAL_NMR, 0, "10.0.1.1@tcp > 10.0.0.2@tcp" },
		{ NULL, "10.1.0.2@tcp1", PATH_EXACT, PATH_ANY_LOCAL_NMR, 0,
		  "10.1.0.1@tcp1 > 10.1.0.2@tcp1" },
		{ NULL, "10.2.0.2@tcp2", PATH_EXACT, PATH_ANY_REMOTE_NMR,
		  -EHOSTUNREACH, NULL },
	};
	unsigned int seen = 0;
	struct path_rig rig;
	char text[PATH_TEXT_SIZE];

	rig_usual(&rig);
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct path path;
		int rc = where(&rig, rows[i].src, rows[i].dst, rows[i].flags,
			       NULL, &path);

		cr_assert_eq(rc, rows[i].rc, "row %u: %d", i, rc);
		cr_assert_eq(path.which, rows[i].which, "row %u", i);
		seen |= 1u << path.which;
		if (rows[i].path)
			cr_assert_str_eq(
				rig_path_text(&path, text, sizeof(text)),
				rows[i].path, "row %u", i);
	}
	cr_assert_eq(seen, (1u << PATH_CASES) - 1);
	rig_fini(&rig);
}

/* Who names an NI on each side gets this pair as long as no other NI of the
 * peer on that net is better off; an answer gets it as long as it is up. Never
 * does a message go to an NI that the peer says is down, if there is another
 * one. */
Test(select, both_named)
{
	struct lnet_peer_ni *first, *second;
	struct failed_paths failed = { .n = 0 };
	const struct ulnet_nid src = rig_nid("10.0.0.1@tcp");
	const char *const to_first = "10.0.0.1@tcp > 10.0.0.2@tcp";
	const char *const to_second = "10.0.0.1@tcp > 10.0.1.2@tcp";
	char text[PATH_TEXT_SIZE];
	struct path_rig rig;
	struct path path;

	rig_usual(&rig);
	first = rig_peer_ni(&rig, "10.0.0.2@tcp");
	second = rig_peer_ni(&rig, "10.0.1.2@tcp");
	second->use = 0;
	for (first->use = 1; first->use < 4; first->use++)
		goes(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp", to_first);
	first->health = 900;
	goes(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp", to_second);
	cr_assert_eq(where(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp", PATH_KEEP,
			   NULL, &path),
		     0);
	cr_expect_str_eq(rig_path_text(&path, text, sizeof(text)), to_first);
	first->health = LNET_HEALTH_MAX;
	failed_paths_add(&failed, &src, &first->nid);
	cr_assert_eq(
		where(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp", 0, &failed, &path),
		0);
	cr_expect_str_eq(rig_path_text(&path, text, sizeof(text)), to_second);
	first->down = true;
	goes(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp", to_second);
	cr_assert_eq(where(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp", PATH_KEEP,
			   NULL, &path),
		     0);
	cr_expect_str_eq(rig_path_text(&path, text, sizeof(text)), to_second);
	second->down = true;
	goes(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp", to_first);
	/* A local NI that is named and down is not replaced. */
	set_up(&rig.ni[1], false);
	fails(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp", -ENETDOWN);
	rig_fini(&rig);
}

Test(select, no_path)
{
	struct path_rig rig;

	rig_usual(&rig);
	fails(&rig, NULL, "0@lo", -EHOSTUNREACH);
	fails(&rig, "10.0.7.7@tcp", "10.0.0.2@tcp", -EINVAL);
	rig_fini(&rig);
}

/* An NI that is down is not chosen even if the others are less healthy. */
Test(select, an_ni_that_is_down_is_never_chosen)
{
	struct path_rig rig;
	struct lnet_ni *a, *b, *c;

	rig_usual(&rig);
	a = &rig.ni[1], b = &rig.ni[2], c = &rig.ni[3];
	atomic_store(&b->health, 1);
	atomic_store(&c->health, 0);
	set_up(a, false);
	goes(&rig, NULL, "10.0.0.3@tcp", "10.0.1.1@tcp > 10.0.0.3@tcp");
	goes(&rig, NULL, "10.1.0.2@tcp1", "10.0.1.1@tcp > 10.0.0.2@tcp");
	fails(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp", -ENETDOWN);
	fails(&rig, "10.0.0.1@tcp", "10.0.0.3@tcp", -ENETDOWN);
	set_up(b, false);
	fails(&rig, NULL, "10.0.0.3@tcp", -ENETDOWN);
	/* All of tcp is down, but there is tcp1. */
	goes(&rig, NULL, "10.0.0.2@tcp", "10.1.0.1@tcp1 > 10.1.0.2@tcp1");
	set_up(c, false);
	fails(&rig, NULL, "10.0.0.2@tcp", -ENETDOWN);
	set_up(a, true);
	goes(&rig, NULL, "10.0.0.3@tcp", "10.0.0.1@tcp > 10.0.0.3@tcp");
	rig_fini(&rig);
}

/* Local NIs are compared by health, then credits, then turn. */
Test(select, local_nis)
{
	struct path_rig rig;
	struct lnet_ni *a, *b;

	rig_usual(&rig);
	a = &rig.ni[1], b = &rig.ni[2];
	a->cpt->use = 8, b->cpt->use = 7;
	goes(&rig, NULL, "10.0.0.3@tcp", "10.0.1.1@tcp > 10.0.0.3@tcp");
	credits_set(&b->cpt->credits, 255);
	goes(&rig, NULL, "10.0.0.3@tcp", "10.0.0.1@tcp > 10.0.0.3@tcp");
	atomic_store(&a->health, 999);
	goes(&rig, NULL, "10.0.0.3@tcp", "10.0.1.1@tcp > 10.0.0.3@tcp");
	atomic_store(&b->health, 998);
	goes(&rig, NULL, "10.0.0.3@tcp", "10.0.0.1@tcp > 10.0.0.3@tcp");
	rig_fini(&rig);
}

/* Sets the connections of @ni to the peer's two NIs: in @text, "x" and "y" are
 * NIs that it is connecting to, "X" and "Y" those that it is connected to. */
static void connections(struct path_rig *rig, const struct lnet_ni *ni,
			const char *text)
{
	struct lnet_peer_ni *p[] = { rig_peer_ni(rig, "10.0.0.2@tcp"),
				     rig_peer_ni(rig, "10.0.1.2@tcp") };

	for (unsigned int k = 0; k < 2; k++) {
		if (strchr(text, "xy"[k]))
			peer_connecting(p[k], ni->bit);
		if (strchr(text, "XY"[k]))
			peer_connected(p[k], ni->bit, true);
	}
}

/* A local NI from which a message would wait for a connection comes after one
 * from which it would not, however many credits it has: the connection may
 * never be made. Peer NIs that the message would not be sent to do not count:
 * those that are down, or less healthy than another one. */
Test(select, local_nis_that_have_to_connect_first)
{
	static const struct {
		const char *a, *b; /* connections() */
		const char *down, *ill;
		const char *local;
	} rows[] = {
		{ "", "", "", "", "10.0.0.1@tcp" },
		{ "x", "", "", "", "10.0.1.1@tcp" },
		{ "xy", "", "", "", "10.0.1.1@tcp" },
		{ "xY", "", "", "", "10.0.0.1@tcp" },
		{ "X", "y", "", "", "10.0.0.1@tcp" },
		{ "xy", "x", "", "", "10.0.0.1@tcp" },
		{ "xY", "x", "", "", "10.0.0.1@tcp" },
		{ "x", "xY", "", "", "10.0.1.1@tcp" },
		{ "x", "", "y", "", "10.0.1.1@tcp" },
		{ "y", "", "y", "", "10.0.0.1@tcp" },
		{ "xY", "", "y", "", "10.0.1.1@tcp" },
		{ "Xy", "", "y", "", "10.0.0.1@tcp" },
		{ "x", "", "", "y", "10.0.1.1@tcp" },
		{ "y", "", "", "y", "10.0.0.1@tcp" },
		{ "xY", "", "", "y", "10.0.1.1@tcp" },
		{ "yX", "", "", "x", "10.0.1.1@tcp" },
		{ "x", "", "xy", "", "10.0.1.1@tcp" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct path_rig rig;
		struct path path;
		char nid[LNET_NIDSTR_SIZE];

		rig_init(&rig);
		rig_ni(&rig, "10.0.0.1@tcp");
		rig_ni(&rig, "10.0.1.1@tcp");
		credits_set(&rig.ni[2].cpt->credits, 1);
		rig_peer(&rig, "10.0.0.2@tcp 10.0.1.2@tcp");
		connections(&rig, &rig.ni[1], rows[i].a);
		connections(&rig, &rig.ni[2], rows[i].b);
		for (unsigned int k = 0; k < 2; k++) {
			struct lnet_peer_ni *p = rig_peer_ni(
				&rig, k ? "10.0.1.2@tcp" : "10.0.0.2@tcp");

			p->down = strchr(rows[i].down, "xy"[k]);
			if (strchr(rows[i].ill, "xy"[k]))
				p->health = 0;
		}
		cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", 0, NULL, &path),
			     0);
		lnet_nid_format(&path.ni->lnd.nid, nid, sizeof(nid));
		cr_assert_str_eq(nid, rows[i].local, "row %u", i);
		rig_fini(&rig);
	}
}

/* While a local NI is connecting to a peer NI, another NI of the peer that it
 * is connected to comes first; but health decides before that. */
Test(select, peer_nis_that_have_to_be_connected_to)
{
	static const struct {
		const char *ours, *others; /* connections() */
		const char *ill;
		const char *peer;
	} rows[] = {
		{ "", "", "", "10.0.0.2@tcp" },
		{ "xY", "", "", "10.0.1.2@tcp" },
		{ "xY", "", "y", "10.0.0.2@tcp" },
		{ "xy", "", "", "10.0.0.2@tcp" },
		{ "Y", "", "", "10.0.0.2@tcp" },
		{ "Y", "x", "", "10.0.0.2@tcp" },
		{ "Xy", "xY", "", "10.0.0.2@tcp" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct lnet_peer_ni *x, *y;
		struct path_rig rig;
		struct path path;
		char nid[LNET_NIDSTR_SIZE];

		rig_init(&rig);
		rig_ni(&rig, "10.0.0.1@tcp");
		x = rig_peer(&rig, "10.0.0.2@tcp 10.0.1.2@tcp");
		y = rig_peer_ni(&rig, "10.0.1.2@tcp");
		peer_set_credits(x, 8);
		peer_set_credits(y, 8);
		y->credits = 1;
		connections(&rig, &rig.ni[1], rows[i].ours);
		connections(&rig, rig_ni(&rig, "10.0.1.1@tcp"), rows[i].others);
		rig.ni[2].cpt->use = 1;
		credits_set(&rig.ni[2].cpt->credits, 1);
		if (rows[i].ill[0])
			y->health = 0;
		cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", 0, NULL, &path),
			     0);
		lnet_nid_format(&path.lpni->nid, nid, sizeof(nid));
		cr_assert_str_eq(nid, rows[i].peer, "row %u", i);
		rig_fini(&rig);
	}
}

/* The same holds for a peer with a single NI; again health decides before
 * connections. */
Test(select, local_nis_that_have_to_connect_to_the_one_named)
{
	struct lnet_peer_ni *x;
	struct path_rig rig;

	rig_usual(&rig);
	x = rig_peer_ni(&rig, "10.0.0.3@tcp");
	rig.ni[1].cpt->use = 8, rig.ni[2].cpt->use = 9;
	goes(&rig, NULL, "10.0.0.3@tcp", "10.0.0.1@tcp > 10.0.0.3@tcp");
	x->connecting_from = rig.ni[1].bit;
	goes(&rig, NULL, "10.0.0.3@tcp", "10.0.1.1@tcp > 10.0.0.3@tcp");
	atomic_store(&rig.ni[2].health, 999);
	goes(&rig, NULL, "10.0.0.3@tcp", "10.0.0.1@tcp > 10.0.0.3@tcp");
	rig_fini(&rig);
}

/* Asserts the path of a message whose memory is at NUMA node @node. */
static void goes_near(struct path_rig *rig, int node, const char *want)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct ulnet_nid to = rig_nid("10.0.0.3@tcp");
	const struct path_request w = {
		.src = &any, .dst = &to, .flags = PATH_NEAR, .numa_node = node
	};
	struct path path;
	char text[PATH_TEXT_SIZE];

	cr_assert_eq(path_select(rig->cpt, &w, &path, NULL), 0);
	cr_assert_str_eq(rig_path_text(&path, text, sizeof(text)), want);
}

/* Among NIs of equal health the one nearest to the memory is chosen, however
 * few credits it has (requirement C10). */
Test(select, local_nis_near_the_memory)
{
	struct numa numa = {
		.farthest = 31,
		.distance = { { 10, 21, 31 }, { 21, 10, 12 }, { 31, 12, 10 } }
	};
	struct path_rig rig;
	struct lnet_ni *a, *b;

	rig_usual(&rig);
	rig.node.numa = &numa;
	a = &rig.ni[1], b = &rig.ni[2];
	a->lnd.numa_node = 0, b->lnd.numa_node = 2;
	credits_set(&a->cpt->credits, 1);
	goes_near(&rig, 0, "10.0.0.1@tcp > 10.0.0.3@tcp");
	goes_near(&rig, 1, "10.0.1.1@tcp > 10.0.0.3@tcp");
	credits_set(&b->cpt->credits, 0);
	goes_near(&rig, 1, "10.0.1.1@tcp > 10.0.0.3@tcp");
	/* Both NIs are within the range: credits decide. */
	atomic_store(&rig.cpt->node->settings.value[SETTING_NUMA_RANGE], 21);
	goes_near(&rig, 1, "10.0.0.1@tcp > 10.0.0.3@tcp");
	atomic_store(&rig.cpt->node->settings.value[SETTING_NUMA_RANGE], 20);
	goes_near(&rig, 1, "10.0.1.1@tcp > 10.0.0.3@tcp");
	/* An NI of unknown NUMA node counts as farthest, but health decides
	 * before distance. */
	b->lnd.numa_node = -1;
	goes_near(&rig, 1, "10.0.0.1@tcp > 10.0.0.3@tcp");
	atomic_store(&a->health, 0);
	goes_near(&rig, 1, "10.0.1.1@tcp > 10.0.0.3@tcp");
	rig_fini(&rig);
}

/* Peer NIs are compared by health, then credits, then turn. A peer NI that was
 * never sent to counts with the credits that the local NI will give it. */
Test(select, peer_nis)
{
	struct path_rig rig;
	struct lnet_peer_ni *x, *y;

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	x = rig_peer(&rig, "10.0.0.2@tcp 10.0.1.2@tcp");
	y = rig_peer_ni(&rig, "10.0.1.2@tcp");
	x->use = 1;
	goes(&rig, NULL, "10.0.0.2@tcp", "10.0.0.1@tcp > 10.0.1.2@tcp");
	peer_set_credits(y, 8);
	y->credits = 7;
	goes(&rig, NULL, "10.0.0.2@tcp", "10.0.0.1@tcp > 10.0.0.2@tcp");
	x->health = 999;
	goes(&rig, NULL, "10.0.0.2@tcp", "10.0.0.1@tcp > 10.0.1.2@tcp");
	y->health = 0;
	goes(&rig, NULL, "10.0.0.2@tcp", "10.0.0.1@tcp > 10.0.0.2@tcp");
	rig_fini(&rig);
}

/* Nets are compared by the peer's health, then the local health, then the
 * peer's turn, then the local turn. */
Test(select, nets)
{
	struct path_rig rig;
	struct lnet_peer_ni *x, *y, *z;
	struct lnet_ni *a, *b;

	rig_init(&rig);
	a = rig_ni(&rig, "10.0.0.1@tcp");
	b = rig_ni(&rig, "10.1.0.1@tcp1");
	x = rig_peer(&rig, "10.0.0.2@tcp 10.1.0.2@tcp1 10.0.1.2@tcp");
	y = rig_peer_ni(&rig, "10.1.0.2@tcp1");
	z = rig_peer_ni(&rig, "10.0.1.2@tcp");
	z->use = 100;
	goes(&rig, NULL, "10.0.0.2@tcp", "10.1.0.1@tcp1 > 10.1.0.2@tcp1");
	y->use = 100, a->cpt->use = 1;
	goes(&rig, NULL, "10.0.0.2@tcp", "10.1.0.1@tcp1 > 10.1.0.2@tcp1");
	b->cpt->use = 2;
	goes(&rig, NULL, "10.0.0.2@tcp", "10.0.0.1@tcp > 10.0.0.2@tcp");
	atomic_store(&a->health, 900);
	goes(&rig, NULL, "10.0.0.2@tcp", "10.1.0.1@tcp1 > 10.1.0.2@tcp1");
	y->health = 900;
	goes(&rig, NULL, "10.0.0.2@tcp", "10.0.0.1@tcp > 10.0.0.2@tcp");
	/* A net is as healthy as its best NI. */
	x->health = 0;
	goes(&rig, NULL, "10.0.0.2@tcp", "10.0.0.1@tcp > 10.0.1.2@tcp");
	z->health = 899;
	goes(&rig, NULL, "10.0.0.2@tcp", "10.1.0.1@tcp1 > 10.1.0.2@tcp1");
	rig_fini(&rig);
}

/* A peer NI that its peer calls down is not chosen as long as another one is
 * up, even if that one is less healthy, or was tried already. */
Test(select, down_at_the_peer)
{
	static const struct {
		/* a letter for each peer NI (x, y, z) that is down */
		const char *down;
		const char *ill; /* ... that has health 0 */
		/* ... that was tried, from 10.0.0.1 or 10.1.0.1 */
		const char *tried;
		bool b_is_down; /* 10.1.0.1, the local NI on tcp1 */
		const char *path;
	} rows[] = {
		{ "", "", "", false, "10.0.0.1@tcp > 10.0.0.2@tcp" },
		{ "x", "", "", false, "10.0.0.1@tcp > 10.0.1.2@tcp" },
		{ "x", "yz", "", false, "10.0.0.1@tcp > 10.0.1.2@tcp" },
		{ "x", "yz", "yz", false, "10.0.0.1@tcp > 10.0.1.2@tcp" },
		{ "x", "", "y", false, "10.1.0.1@tcp1 > 10.1.0.2@tcp1" },
		{ "xy", "", "", false, "10.1.0.1@tcp1 > 10.1.0.2@tcp1" },
		{ "xy", "z", "z", false, "10.1.0.1@tcp1 > 10.1.0.2@tcp1" },
		{ "z", "xy", "", false, "10.0.0.1@tcp > 10.0.0.2@tcp" },
		/* z is up, but cannot be reached */
		{ "xy", "", "", true, "10.0.0.1@tcp > 10.0.0.2@tcp" },
		{ "xyz", "", "", false, "10.0.0.1@tcp > 10.0.0.2@tcp" },
		{ "xyz", "x", "", false, "10.0.0.1@tcp > 10.0.1.2@tcp" },
		{ "xyz", "", "xz", false, "10.0.0.1@tcp > 10.0.1.2@tcp" },
	};
	static const char *const nids[] = { "10.0.0.2@tcp", "10.0.1.2@tcp",
					    "10.1.0.2@tcp1" };

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct failed_paths failed = { .n = 0 };
		struct path_rig rig;
		struct lnet_ni *a, *b;
		struct path path;
		char text[PATH_TEXT_SIZE];

		rig_init(&rig);
		a = rig_ni(&rig, "10.0.0.1@tcp");
		b = rig_ni(&rig, "10.1.0.1@tcp1");
		rig_peer(&rig, "10.0.0.2@tcp 10.0.1.2@tcp 10.1.0.2@tcp1");
		set_up(b, !rows[i].b_is_down);
		for (unsigned int k = 0; k < 3; k++) {
			struct lnet_peer_ni *p = rig_peer_ni(&rig, nids[k]);

			p->down = strchr(rows[i].down, "xyz"[k]);
			if (strchr(rows[i].ill, "xyz"[k]))
				p->health = 0;
			if (strchr(rows[i].tried, "xyz"[k]))
				failed_paths_add(&failed,
						 &(k < 2 ? a : b)->lnd.nid,
						 &p->nid);
		}
		cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", 0,
				   failed.n ? &failed : NULL, &path),
			     0);
		cr_assert_str_eq(rig_path_text(&path, text, sizeof(text)),
				 rows[i].path, "row %u: %s", i, text);
		rig_fini(&rig);
	}
}

/* There are two local NIs, of which one was tried to the only peer NI that is
 * up: the next try takes the other local NI, although the first one has an
 * untried path, to a peer NI that is down. */
Test(select, down_at_the_peer_is_not_an_untried_path)
{
	struct failed_paths failed = { .n = 0 };
	struct path_rig rig;
	struct path path;
	char text[PATH_TEXT_SIZE];

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	rig_ni(&rig, "10.0.1.1@tcp");
	rig_peer(&rig, "10.0.0.2@tcp 10.0.1.2@tcp");
	rig_peer_ni(&rig, "10.0.0.2@tcp")->down = true;
	atomic_store(&rig.ni[2].health, 0);
	failed_paths_add(&failed, &rig.ni[1].lnd.nid,
			 &rig_peer_ni(&rig, "10.0.1.2@tcp")->nid);
	cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", 0, &failed, &path), 0);
	cr_assert_str_eq(rig_path_text(&path, text, sizeof(text)),
			 "10.0.1.1@tcp > 10.0.1.2@tcp");
	rig_fini(&rig);
}

/* A message for a peer NI that is down gets it only if nothing else will do. */
Test(select, down_at_the_peer_is_named)
{
	struct path_rig rig;
	struct path path;

	rig_usual(&rig);
	rig_peer_ni(&rig, "10.0.0.2@tcp")->down = true;
	goes(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp",
	     "10.0.0.1@tcp > 10.0.1.2@tcp");
	cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", PATH_EXACT, NULL, &path),
		     0);
	cr_assert(path.lpni->down);
	rig_fini(&rig);
}

/* Each path is tried once before any is tried twice, and so on, whatever the
 * turns and the health. */
Test(select, tries_take_other_paths_first)
{
	static const unsigned int paths = 2 * 2 + 1;
	uint64_t seed = 3;

	for (unsigned int round = 0; round < 200; round++) {
		struct failed_paths failed = { .n = 0 };
		struct path_rig rig;
		struct path path;

		rig_usual(&rig);
		for (unsigned int i = 1; i < rig.nnis; i++) {
			seed = hash_u64(seed, i);
			atomic_store(&rig.ni[i].health, (int)(seed % 3) * 500);
			rig.ni[i].cpt->use = seed >> 32 & 3;
		}
		rig_peer_ni(&rig, "10.0.1.2@tcp")->health =
			(int)(seed >> 50) % 3;
		for (unsigned int i = 0; i < 3 * paths; i++) {
			cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", 0,
					   &failed, &path),
				     0);
			cr_assert_eq(failed_paths_count(&failed,
							&path.ni->lnd.nid,
							&path.lpni->nid),
				     i / paths, "round %u, try %u", round, i);
			failed_paths_add(&failed, &path.ni->lnd.nid,
					 &path.lpni->nid);
		}
		rig_fini(&rig);
	}
}

/* A second try takes the healthiest untried path, and among equals the one that
 * has the least in common with the first. */
Test(select, second_try_shares_nothing_with_the_first)
{
	struct failed_paths failed = { .n = 0 };
	struct path_rig rig;
	struct path path;
	char text[PATH_TEXT_SIZE];

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	rig_ni(&rig, "10.0.1.1@tcp");
	rig_peer(&rig, "10.0.0.2@tcp 10.0.1.2@tcp");
	failed_paths_add(&failed, &rig.ni[2].lnd.nid,
			 &rig_peer_ni(&rig, "10.0.1.2@tcp")->nid);
	rig_peer_ni(&rig, "10.0.0.2@tcp")->use = 9;
	rig.ni[1].cpt->use = 9;
	cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", 0, &failed, &path), 0);
	cr_assert_str_eq(rig_path_text(&path, text, sizeof(text)),
			 "10.0.0.1@tcp > 10.0.0.2@tcp");
	atomic_store(&rig.ni[1].health, 0);
	cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", 0, &failed, &path), 0);
	cr_assert_str_eq(rig_path_text(&path, text, sizeof(text)),
			 "10.0.1.1@tcp > 10.0.0.2@tcp");
	rig_fini(&rig);
}

/* The second try takes the other net, although the first net has another path
 * that was not tried. */
Test(select, second_try_takes_another_net)
{
	struct failed_paths failed = { .n = 0 };
	struct path_rig rig;
	struct path path;
	char text[PATH_TEXT_SIZE];

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	rig_ni(&rig, "10.0.1.1@tcp");
	rig_ni(&rig, "10.1.0.1@tcp1")->cpt->use = 9;
	rig_peer(&rig, "10.0.0.2@tcp 10.1.0.2@tcp1");
	failed_paths_add(&failed, &rig.ni[1].lnd.nid,
			 &rig_peer_ni(&rig, "10.0.0.2@tcp")->nid);
	cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", 0, NULL, &path), 0);
	cr_assert_str_eq(rig_path_text(&path, text, sizeof(text)),
			 "10.0.0.1@tcp > 10.0.0.2@tcp");
	cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", 0, &failed, &path), 0);
	cr_assert_str_eq(rig_path_text(&path, text, sizeof(text)),
			 "10.1.0.1@tcp1 > 10.1.0.2@tcp1");
	rig_fini(&rig);
}

/* ---- explaining ---- */

static struct path_trace explain(struct path_rig *rig, const char *src,
				 const char *dst, int rc, struct path *path)
{
	struct ulnet_nid from =
		src ? rig_nid(src) : (struct ulnet_nid)LNET_NID_ANY;
	struct ulnet_nid to = rig_nid(dst);
	struct path_request request = { .src = &from, .dst = &to };
	struct path_trace trace = { .seen = NULL };

	cr_assert_eq(path_select(rig->cpt, &request, path, &trace), rc);
	cr_assert_not(trace.incomplete);
	return trace;
}

static void trace_is(struct path_trace *t, const char *want)
{
	static const char *const whys[LNET_PATH_WHY_COUNT] = {
		[LNET_PATH_CHOSEN] = "chosen",
		[LNET_PATH_PEER_UP] = "peer up",
		[LNET_PATH_PEER_HEALTH] = "peer health",
		[LNET_PATH_HEALTH] = "health",
		[LNET_PATH_PREFERRED] = "preferred",
		[LNET_PATH_CREDITS] = "credits",
		[LNET_PATH_PEER_TURN] = "peer turn",
		[LNET_PATH_TURN] = "turn",
		[LNET_PATH_DOWN] = "down",
		[LNET_PATH_NOT_ASKED] = "not asked",
		[LNET_PATH_UNREACHED] = "unreached",
	};
	char text[2048] = "", nid[LNET_NIDSTR_SIZE];

	for (unsigned int i = 0; i < t->n; i++) {
		size_t len = strlen(text);

		cr_assert_not_null(whys[t->seen[i].why]);
		lnet_nid_format(&t->seen[i].nid, nid, sizeof(nid));
		snprintf(text + len, sizeof(text) - len, "%s%d %s %s",
			 i ? ", " : "", t->seen[i].kind, nid,
			 whys[t->seen[i].why]);
	}
	cr_assert_str_eq(text, want);
	free(t->seen);
}

Test(select, explains_every_candidate)
{
	struct path_trace t;
	struct path_rig rig;
	struct path path;

	rig_usual(&rig);
	rig_peer_ni(&rig, "10.1.0.2@tcp1")->use = 1;
	credits_set(&rig.ni[1].cpt->credits, 3);
	rig_peer_ni(&rig, "10.0.1.2@tcp")->health = 0;
	t = explain(&rig, NULL, "10.0.0.2@tcp", 0, &path);
	trace_is(&t, "0 0.0.0.0@tcp chosen, 0 0.0.0.0@tcp1 peer turn, "
		     "0 0.0.0.0@tcp2 unreached, "
		     "1 10.0.0.1@tcp credits, 1 10.0.1.1@tcp chosen, "
		     "2 10.0.0.2@tcp chosen, 2 10.0.1.2@tcp health");
	rig_peer_ni(&rig, "10.0.0.2@tcp")->down = true;
	rig_peer_ni(&rig, "10.1.0.2@tcp1")->down = true;
	t = explain(&rig, NULL, "10.0.0.2@tcp", 0, &path);
	trace_is(&t, "0 0.0.0.0@tcp chosen, 0 0.0.0.0@tcp1 peer up, "
		     "0 0.0.0.0@tcp2 unreached, "
		     "1 10.0.0.1@tcp credits, 1 10.0.1.1@tcp chosen, "
		     "2 10.0.0.2@tcp peer up, 2 10.0.1.2@tcp chosen");
	rig_peer_ni(&rig, "10.0.0.2@tcp")->down = false;
	set_up(&rig.ni[1], false);
	set_up(&rig.ni[3], false);
	t = explain(&rig, NULL, "10.0.0.2@tcp", 0, &path);
	trace_is(&t, "0 0.0.0.0@tcp chosen, 0 0.0.0.0@tcp1 down, "
		     "0 0.0.0.0@tcp2 unreached, "
		     "1 10.0.0.1@tcp down, 1 10.0.1.1@tcp chosen, "
		     "2 10.0.0.2@tcp chosen, 2 10.0.1.2@tcp health");
	set_up(&rig.ni[1], true);
	t = explain(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp", 0, &path);
	trace_is(&t, "1 10.0.0.1@tcp chosen, 1 10.0.1.1@tcp not asked, "
		     "2 10.0.0.2@tcp chosen, 2 10.0.1.2@tcp health");
	rig_peer_ni(&rig, "10.0.0.3@tcp")->preferred = rig.ni[2].lnd.nid;
	t = explain(&rig, NULL, "10.0.0.3@tcp", 0, &path);
	trace_is(&t, "1 10.0.0.1@tcp preferred, 1 10.0.1.1@tcp chosen, "
		     "2 10.0.0.3@tcp chosen");
	set_up(&rig.ni[1], false);
	set_up(&rig.ni[2], false);
	t = explain(&rig, NULL, "10.0.0.3@tcp", -ENETDOWN, &path);
	trace_is(&t, "1 10.0.0.1@tcp down, 1 10.0.1.1@tcp down");
	t = explain(&rig, NULL, "10.2.0.5@tcp2", -EHOSTUNREACH, &path);
	trace_is(&t, "");
	rig_fini(&rig);
}

/* In random states: explaining changes nothing, it says what is chosen without
 * it, and the choice does not depend on the order of the NIs. */
Test(select, choice_depends_on_state_alone)
{
	static const char *const mine[] = { "10.0.0.1@tcp", "10.0.1.1@tcp",
					    "10.0.2.1@tcp", "10.1.0.1@tcp1",
					    "10.1.1.1@tcp1" };
	static const char *const theirs[2] = {
		"10.0.0.2@tcp 10.0.1.2@tcp 10.1.0.2@tcp1 10.1.1.2@tcp1",
		"10.1.1.2@tcp1 10.0.1.2@tcp 10.1.0.2@tcp1 10.0.0.2@tcp",
	};
	static const char *const peers[] = { "10.0.0.2@tcp", "10.0.1.2@tcp",
					     "10.1.0.2@tcp1", "10.1.1.2@tcp1" };

	for (uint64_t round = 0; round < 500; round++) {
		char text[2][PATH_TEXT_SIZE];

		for (unsigned int way = 0; way < 2; way++) {
			struct path_rig rig;
			struct path_trace t;
			struct path path;

			rig_init(&rig);
			rig_peer(&rig, theirs[way]);
			for (unsigned int i = 0; i < ARRAY_SIZE(mine); i++) {
				unsigned int k =
					way ? ARRAY_SIZE(mine) - 1 - i : i;
				uint64_t r = hash_u64(round, k);
				struct lnet_ni *ni = rig_ni(&rig, mine[k]);

				atomic_store(&ni->up, r % 4 > 0 || k == 3);
				atomic_store(&ni->health, (r >> 8) % 2);
				credits_set(&ni->cpt->credits, (r >> 16) % 2);
				ni->cpt->use = 10 + k;
			}
			for (unsigned int i = 0; i < ARRAY_SIZE(peers); i++) {
				struct lnet_peer_ni *p =
					rig_peer_ni(&rig, peers[i]);
				uint64_t r = hash_u64(round, 100 + i);

				peer_set_credits(p, 8);
				p->health = (int32_t)(r % 2);
				p->credits = (int32_t)(r >> 8) % 2;
				p->use = 20 + i;
			}
			t = explain(&rig, NULL, peers[round % 4], 0, &path);
			rig_path_text(&path, text[way], sizeof(text[way]));
			goes(&rig, NULL, peers[round % 4], text[way]);
			for (unsigned int i = 0; i < t.n; i++)
				if (t.seen[i].kind == LNET_PATH_LOCAL_NI &&
				    t.seen[i].why == LNET_PATH_CHOSEN)
					cr_assert(
						lnet_nid_eq(&t.seen[i].nid,
							    &path.ni->lnd.nid));
			free(t.seen);
			rig_fini(&rig);
		}
		cr_assert_str_eq(text[0], text[1]);
	}
}

/* No path leads from IPv4 to IPv6 or back, even if both are on the same net. */
Test(select, families)
{
	unsigned int seen[2] = { 0 };
	struct path_rig rig;
	struct path path;

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	rig_ni(&rig, "fd77::1@tcp");
	rig_ni(&rig, "10.0.1.1@tcp1");
	rig_peer(&rig, "10.0.0.2@tcp fd77::2@tcp 10.0.1.2@tcp1");
	rig_peer(&rig, "fd77::3@tcp 10.2.0.3@tcp2");
	rig_peer(&rig, "fd77::4@tcp1");
	for (unsigned int i = 0; i < 30; i++) {
		struct ulnet_nid any = LNET_NID_ANY;
		struct ulnet_nid dst = rig_nid("10.0.0.2@tcp");
		struct path_request request = { .src = &any, .dst = &dst };

		cr_assert_eq(path_get(rig.cpt, &request, &path), 0);
		cr_assert_eq(path.ni->lnd.nid.size, path.lpni->nid.size);
		seen[path.lpni->nid.size != 0]++;
		peer_unref(path.lpni);
		ni_unref(path.ni, 0);
	}
	cr_assert_eq(seen[0], 20);
	cr_assert_eq(seen[1], 10);
	/* With both ends named; the last one names a single NI. */
	goes(&rig, "fd77::1@tcp", "fd77::2@tcp", "fd77::1@tcp > fd77::2@tcp");
	fails(&rig, "fd77::1@tcp", "10.0.0.2@tcp", -EINVAL);
	fails(&rig, "10.0.0.1@tcp", "fd77::2@tcp", -EINVAL);
	goes(&rig, NULL, "fd77::3@tcp", "fd77::1@tcp > fd77::3@tcp");
	/* To peers that are not known yet. */
	goes(&rig, NULL, "fd77::9@tcp", "fd77::1@tcp > ?");
	goes(&rig, NULL, "10.0.0.9@tcp", "10.0.0.1@tcp > ?");
	/* This node is on that net, but has no IPv6 address there. */
	fails(&rig, NULL, "fd77::4@tcp1", -EHOSTUNREACH);
	fails(&rig, NULL, "fd77::9@tcp1", -EHOSTUNREACH);
	rig_fini(&rig);
}
