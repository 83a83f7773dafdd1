/* SPDX-License-Identifier: BSD-3-Clause */
/* What taking a path changes: whose turn is next, by which NI a peer knows this
 * node, and whether the path is kept as a peer's only one, which needs no
 * selection. */
#include "lnet/path/path.h"

#include <errno.h>

#include "lnet/path/health.h"
#include "path_rig.h"

static void take(struct path_rig *rig, const char *src, const char *dst,
		 unsigned int flags, const char *want)
{
	struct ulnet_nid from =
		src ? rig_nid(src) : (struct ulnet_nid)LNET_NID_ANY;
	struct ulnet_nid to = rig_nid(dst);
	struct path_request w = { .src = &from, .dst = &to, .flags = flags };
	struct path path;
	char text[PATH_TEXT_SIZE];

	cr_assert_eq(path_get(rig->cpt, &w, &path), 0);
	cr_assert_str_eq(rig_path_text(&path, text, sizeof(text)), want);
	peer_unref(path.lpni);
	ni_unref(path.ni, rig->cpt->index);
}

/* Spec, section 9.2: eight messages over two equal rails go strictly
 * alternately, four each. */
Test(path, equal_rails_alternate)
{
	struct path_rig rig;

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	rig_ni(&rig, "10.0.1.1@tcp");
	rig_peer(&rig, "10.0.0.2@tcp 10.0.1.2@tcp");
	for (unsigned int i = 0; i < 4; i++) {
		take(&rig, NULL, "10.0.1.2@tcp", 0,
		     "10.0.0.1@tcp > 10.0.0.2@tcp");
		take(&rig, NULL, "10.0.1.2@tcp", 0,
		     "10.0.1.1@tcp > 10.0.1.2@tcp");
	}
	/* Rails are not fixed pairs: local NIs take turns, and so do peer NIs.
	 */
	take(&rig, "10.0.0.1@tcp", "10.0.1.2@tcp", 0,
	     "10.0.0.1@tcp > 10.0.1.2@tcp");
	take(&rig, NULL, "10.0.1.2@tcp", 0, "10.0.1.1@tcp > 10.0.0.2@tcp");
	rig_fini(&rig);
}

/* Two nets with unequal numbers of NIs take turns as nets. */
Test(path, nets_alternate)
{
	struct path_rig rig;

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	rig_ni(&rig, "10.0.1.1@tcp");
	rig_ni(&rig, "10.1.0.1@tcp1");
	rig_peer(&rig, "10.0.0.2@tcp 10.1.0.2@tcp1");
	for (unsigned int i = 0; i < 3; i++) {
		take(&rig, NULL, "10.0.0.2@tcp", 0,
		     "10.0.0.1@tcp > 10.0.0.2@tcp");
		take(&rig, NULL, "10.0.0.2@tcp", 0,
		     "10.1.0.1@tcp1 > 10.1.0.2@tcp1");
		take(&rig, NULL, "10.0.0.2@tcp", 0,
		     "10.0.1.1@tcp > 10.0.0.2@tcp");
		take(&rig, NULL, "10.0.0.2@tcp", 0,
		     "10.1.0.1@tcp1 > 10.1.0.2@tcp1");
	}
	rig_fini(&rig);
}

/* Such a peer gets messages from one source NI until that is gone or down, and
 * then from another one (requirement C4). */
Test(path, a_peer_that_is_not_multi_rail_sees_one_source)
{
	struct path_rig rig;
	struct lnet_ni *a;

	rig_init(&rig);
	a = rig_ni(&rig, "10.0.0.1@tcp");
	rig_ni(&rig, "10.0.1.1@tcp");
	rig_ni(&rig, "10.0.2.1@tcp");
	for (unsigned int i = 0; i < 5; i++)
		take(&rig, NULL, "10.0.0.3@tcp", 0,
		     "10.0.0.1@tcp > 10.0.0.3@tcp");
	atomic_store(&a->health, 0);
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.0.1@tcp > 10.0.0.3@tcp");
	atomic_store(&a->health, LNET_HEALTH_MAX);
	/* A message that names another source NI gets it; the next ones do not.
	 */
	take(&rig, "10.0.2.1@tcp", "10.0.0.3@tcp", 0,
	     "10.0.2.1@tcp > 10.0.0.3@tcp");
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.0.1@tcp > 10.0.0.3@tcp");
	atomic_store(&a->up, false);
	for (unsigned int i = 0; i < 5; i++)
		take(&rig, NULL, "10.0.0.3@tcp", 0,
		     "10.0.1.1@tcp > 10.0.0.3@tcp");
	/* The first NI is up again, but stays unused. */
	atomic_store(&a->up, true);
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.1.1@tcp > 10.0.0.3@tcp");
	rig_config(&rig, config_without(rig.config, &rig.ni[2]));
	for (unsigned int i = 0; i < 5; i++)
		take(&rig, NULL, "10.0.0.3@tcp", 0,
		     "10.0.2.1@tcp > 10.0.0.3@tcp");
	rig_fini(&rig);
}

/* A ping does not make its source the NI that a peer knows this node by. */
Test(path, pings_do_not_set_the_preferred_ni)
{
	struct path_rig rig;

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	rig_ni(&rig, "10.0.1.1@tcp");
	take(&rig, NULL, "10.0.0.3@tcp", PATH_PORTAL0,
	     "10.0.0.1@tcp > 10.0.0.3@tcp");
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.1.1@tcp > 10.0.0.3@tcp");
	take(&rig, NULL, "10.0.0.3@tcp", PATH_PORTAL0,
	     "10.0.1.1@tcp > 10.0.0.3@tcp");
	rig_fini(&rig);
}

static bool has_only(struct path_rig *rig, const char *src, const char *dst)
{
	struct ulnet_nid from =
		src ? rig_nid(src) : (struct ulnet_nid)LNET_NID_ANY;
	struct ulnet_nid to = rig_nid(dst);
	struct lnet_peer_ni *p = path_get_only(rig->cpt, &from, &to);

	if (!p)
		return false;
	ni_unref(p->only, rig->cpt->index);
	peer_unref(p);
	return true;
}

Test(path, an_only_path_is_kept)
{
	struct path_rig rig;
	struct lnet_ni *a;

	rig_init(&rig);
	a = rig_ni(&rig, "10.0.0.1@tcp");
	cr_assert_not(has_only(&rig, NULL, "10.0.0.3@tcp"));
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.0.1@tcp > 10.0.0.3@tcp");
	cr_assert(has_only(&rig, NULL, "10.0.0.3@tcp"));
	cr_assert(has_only(&rig, "10.0.0.1@tcp", "10.0.0.3@tcp"));
	cr_assert_not(has_only(&rig, "10.0.0.9@tcp", "10.0.0.3@tcp"));
	atomic_store(&a->up, false);
	cr_assert_not(has_only(&rig, NULL, "10.0.0.3@tcp"));
	atomic_store(&a->up, true);
	cr_assert(has_only(&rig, NULL, "10.0.0.3@tcp"));
	/* An NI on another net does not change the path, but it has to be
	 * selected once more. */
	rig_ni(&rig, "10.1.0.1@tcp1");
	cr_assert_not(has_only(&rig, NULL, "10.0.0.3@tcp"));
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.0.1@tcp > 10.0.0.3@tcp");
	cr_assert(has_only(&rig, NULL, "10.0.0.3@tcp"));
	rig_ni(&rig, "10.0.1.1@tcp");
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.0.1@tcp > 10.0.0.3@tcp");
	cr_assert_not(has_only(&rig, NULL, "10.0.0.3@tcp"));
	rig_fini(&rig);
}

/* A peer that was multi-rail for a while knows this node by the NI of before,
 * and not by the one that is best by then. */
Test(path, multi_rail_for_a_while)
{
	struct lnet_peer_ni *lpni;
	struct path_rig rig;

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.0.1@tcp > 10.0.0.3@tcp");
	rig_ni(&rig, "10.0.1.1@tcp");
	lpni = rig_peer_ni(&rig, "10.0.0.3@tcp");
	lpni->peer->multi_rail = true;
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.1.1@tcp > 10.0.0.3@tcp");
	lpni->peer->multi_rail = false;
	atomic_store(&rig.ni[1].health, 0);
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.0.1@tcp > 10.0.0.3@tcp");
	rig_fini(&rig);
}

/* An NI that a message comes from is not down, even if the peer has said so. */
Test(path, an_ni_that_sends_is_not_down)
{
	struct lnet_peer_ni *lpni;
	struct path_rig rig;

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	lpni = rig_peer(&rig, "10.0.0.2@tcp 10.0.1.2@tcp");
	lpni->down = true;
	lpni->health = 0;
	health_gain_peer_ni(rig.cpt, lpni);
	cr_assert_not(lpni->down);
	rig_fini(&rig);
}

/* An answer names its source: it does not make that the NI that the peer knows
 * this node by, even if no other NI is left. */
Test(path, answers_do_not_keep_a_path)
{
	struct path_rig rig;

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.0.1@tcp > 10.0.0.3@tcp");
	rig_ni(&rig, "10.0.1.1@tcp");
	rig_config(&rig, config_without(rig.config, &rig.ni[1]));
	take(&rig, "10.0.1.1@tcp", "10.0.0.3@tcp", 0,
	     "10.0.1.1@tcp > 10.0.0.3@tcp");
	cr_assert_not(has_only(&rig, NULL, "10.0.0.3@tcp"));
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.1.1@tcp > 10.0.0.3@tcp");
	cr_assert(has_only(&rig, NULL, "10.0.0.3@tcp"));
	/* The first NI is there again, but stays unused. */
	rig_ni(&rig, "10.0.0.1@tcp");
	take(&rig, NULL, "10.0.0.3@tcp", 0, "10.0.1.1@tcp > 10.0.0.3@tcp");
	rig_fini(&rig);
}

/* A path to a multi-rail peer is kept as well if only one of its NIs can be
 * reached. */
Test(path, only_path_to_a_multi_rail_peer)
{
	struct path_rig rig;

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	rig_peer(&rig, "10.0.0.2@tcp 10.1.0.2@tcp1");
	take(&rig, NULL, "10.0.0.2@tcp", 0, "10.0.0.1@tcp > 10.0.0.2@tcp");
	cr_assert(has_only(&rig, NULL, "10.0.0.2@tcp"));
	/* The NID that is named is out of reach, so a selection leads to the
	 * other one each time. */
	take(&rig, NULL, "10.1.0.2@tcp1", 0, "10.0.0.1@tcp > 10.0.0.2@tcp");
	cr_assert_not(has_only(&rig, NULL, "10.1.0.2@tcp1"));
	rig_ni(&rig, "10.1.0.1@tcp1");
	take(&rig, NULL, "10.0.0.2@tcp", 0, "10.1.0.1@tcp1 > 10.1.0.2@tcp1");
	cr_assert_not(has_only(&rig, NULL, "10.1.0.2@tcp1"));
	rig_fini(&rig);
}
