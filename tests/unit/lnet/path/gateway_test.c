/* SPDX-License-Identifier: BSD-3-Clause */
/* When a message goes through a gateway, and which. */
#include "lnet/path/select.h"

#include <errno.h>

#include "where.h"

/* Adds routes to rig_usual(): to tcp5 through two gateways on tcp and one on
 * tcp1, to tcp6 through one on tcp1. */
static void rig_routed(struct path_rig *rig, struct lnet_route *routes[4])
{
	rig_usual(rig);
	atomic_init(&rig->cpt->node->settings.value[SETTING_ROUTER_SENSITIVITY],
		    100);
	rig_peer(rig, "10.5.0.1@tcp5 10.5.0.2@tcp5 10.6.0.1@tcp6");
	rig_peer(rig, "10.5.0.9@tcp5");
	routes[0] = rig_route(rig, "tcp5", "10.0.0.91@tcp", 1, 0);
	routes[1] = rig_route(rig, "tcp5", "10.0.0.92@tcp", 1, 0);
	routes[2] = rig_route(rig, "tcp5", "10.1.0.93@tcp1", 1, 0);
	routes[3] = rig_route(rig, "tcp6", "10.1.0.94@tcp1", 1, 0);
}

static const struct lnet_route *route_from_to(struct path_rig *rig,
					      const char *src, const char *dst,
					      unsigned int flags,
					      const char *hop)
{
	struct ulnet_nid from = src ? rig_nid(src) : LNET_NID_ANY;
	struct ulnet_nid to = rig_nid(dst), last;
	struct path_request request = { .src = &from,
					.dst = &to,
					.flags = flags };
	struct path path;

	if (hop) {
		last = rig_nid(hop);
		request.hop = &last;
	}
	return path_select(rig->cpt, &request, &path, NULL) ? NULL : path.route;
}

static const struct lnet_route *route_to(struct path_rig *rig, const char *dst)
{
	return route_from_to(rig, NULL, dst, 0, NULL);
}

Test(gateway, priority_and_hops)
{
	struct lnet_route *r[4];
	struct path_rig rig;

	rig_routed(&rig, r);
	r[1]->hops = 2;
	r[2]->hops = 2;
	cr_assert_eq(route_to(&rig, "10.5.0.9@tcp5"), r[0]);
	r[0]->priority = 1;
	r[2]->priority = 1;
	cr_assert_eq(route_to(&rig, "10.5.0.9@tcp5"), r[1]);
	rig_fini(&rig);
}

Test(gateway, health_and_state)
{
	struct lnet_route *r[4];
	struct path_rig rig;

	rig_routed(&rig, r);
	/* A gateway with less health comes last, whatever its priority and
	 * hops. */
	r[1]->priority = r[2]->priority = 3;
	r[2]->hops = 9;
	atomic_store(&r[0]->health, 900);
	cr_assert_eq(route_to(&rig, "10.5.0.9@tcp5"), r[1]);
	atomic_store(&r[1]->told, ROUTE_TOLD_FAR_DOWN);
	cr_assert_eq(route_to(&rig, "10.5.0.9@tcp5"), r[2]);
	atomic_store(&r[2]->told, ROUTE_TOLD_NO_ROUTER);
	cr_assert_eq(route_to(&rig, "10.5.0.9@tcp5"), r[0]);
	atomic_store(&r[0]->told, ROUTE_TOLD_NEAR_DOWN);
	cr_assert_null(route_to(&rig, "10.5.0.9@tcp5"));
	/* There was never a route to this net. */
	cr_assert_null(route_to(&rig, "10.7.0.9@tcp7"));
	rig_fini(&rig);
}

Test(gateway, from_a_named_source)
{
	struct lnet_route *r[4];
	struct path_rig rig;

	rig_routed(&rig, r);
	cr_assert_eq(
		route_from_to(&rig, "10.1.0.1@tcp1", "10.5.0.9@tcp5", 0, NULL),
		r[2]);
	cr_assert_null(route_from_to(&rig, "10.0.0.1@tcp", "10.6.0.1@tcp6",
				     PATH_EXACT, NULL));
	rig_fini(&rig);
}

/* A message to a multi-rail peer goes to another net of the peer if there is no
 * way to the one that was named. */
Test(gateway, to_any_net_of_the_peer)
{
	struct lnet_route *r[4];
	struct path_rig rig;

	rig_routed(&rig, r);
	for (int i = 0; i < 3; i++)
		atomic_store(&r[i]->told, ROUTE_TOLD_FAR_DOWN);
	cr_assert_eq(route_to(&rig, "10.5.0.1@tcp5"), r[3]);
	cr_assert_null(route_to(&rig, "10.5.0.9@tcp5"));
	rig_fini(&rig);
}

Test(gateway, of_answers_and_forwarded_messages)
{
	struct lnet_route *r[4];
	struct path_rig rig;

	rig_routed(&rig, r);
	r[1]->priority = 9;
	cr_assert_eq(route_from_to(&rig, NULL, "10.5.0.9@tcp5", PATH_EXACT,
				   "10.0.0.92@tcp"),
		     r[1]);
	/* A message that is forwarded does not go back to the gateway it came
	 * from. */
	r[1]->priority = 0;
	r[0]->priority = r[2]->priority = 9;
	cr_assert_neq(route_from_to(&rig, NULL, "10.5.0.9@tcp5",
				    PATH_EXACT | PATH_FORWARD, "10.0.0.92@tcp"),
		      r[1]);
	rig_fini(&rig);
}

Test(gateway, untried_first)
{
	struct lnet_route *r[4];
	struct ulnet_nid any = LNET_NID_ANY, to = rig_nid("10.5.0.9@tcp5");
	struct ulnet_nid mine = rig_nid("10.0.0.1@tcp");
	struct failed_paths failed = { 0 };
	struct path_request request = { .src = &any,
					.dst = &to,
					.failed = &failed };
	struct path_rig rig;
	struct path path;

	rig_routed(&rig, r);
	r[1]->priority = 1;
	r[2]->priority = 2;
	failed_paths_add(&failed, &mine, &r[0]->gateway);
	cr_assert_eq(path_select(rig.cpt, &request, &path, NULL), 0);
	cr_assert_eq(path.route, r[1]);
	failed_paths_add(&failed, &mine, &r[1]->gateway);
	cr_assert_eq(path_select(rig.cpt, &request, &path, NULL), 0);
	cr_assert_eq(path.route, r[2]);
	rig_fini(&rig);
}

/* A peer that is not multi-rail knows this node by one NI, so the local NI
 * stays the same. The gateway is multi-rail, so its NIs on that net take turns.
 */
Test(gateway, multi_rail_gateway)
{
	struct lnet_route *r[4];
	struct path_request request;
	struct ulnet_nid any = LNET_NID_ANY, to = rig_nid("10.5.0.9@tcp5");
	bool seen[2] = { false, false };
	struct path_rig rig;
	struct path path;

	rig_routed(&rig, r);
	rig_peer(&rig, "10.0.0.91@tcp 10.0.1.91@tcp 10.1.0.91@tcp1");
	atomic_store(&r[1]->told, ROUTE_TOLD_FAR_DOWN);
	atomic_store(&r[2]->told, ROUTE_TOLD_FAR_DOWN);
	request = (struct path_request){ .src = &any, .dst = &to };
	for (unsigned int i = 0; i < 6; i++) {
		char text[LNET_NIDSTR_SIZE];
		struct lnet_ni *first = i ? path.ni : NULL;

		cr_assert_eq(path_get(rig.cpt, &request, &path), 0);
		cr_assert_eq(path.route, r[0]);
		if (first)
			cr_assert_eq(path.ni, first);
		lnet_nid_format(&path.lpni->nid, text, sizeof(text));
		seen[0] |= !strcmp(text, "10.0.0.91@tcp");
		seen[1] |= !strcmp(text, "10.0.1.91@tcp");
		cr_assert_eq(path.ni->segment, nid_segment(&path.lpni->nid));
		peer_unref(path.lpni);
		ni_unref(path.ni, 0);
	}
	cr_assert(seen[0] && seen[1]);
	rig_fini(&rig);
}

/* A message goes to another net of the peer if all NIs of this node are down on
 * the nets that they share. */
Test(gateway, to_another_net_of_the_peer)
{
	struct path_rig rig;
	struct lnet_route *r;
	struct path path;
	char text[PATH_TEXT_SIZE];

	rig_usual(&rig);
	rig_ni(&rig, "10.9.0.1@tcp9");
	r = rig_route(&rig, "tcp2", "10.9.0.91@tcp9", 1, 0);
	for (int i = 1; i <= 3; i++)
		set_up(&rig.ni[i], false);
	cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", 0, NULL, &path), 0);
	cr_assert_eq(path.route, r);
	cr_assert_eq(path.dst, rig_peer_ni(&rig, "10.2.0.2@tcp2"));
	cr_assert_str_eq(rig_path_text(&path, text, sizeof(text)),
			 "10.9.0.1@tcp9 > ?");
	/* A message that names its source is not redirected, nor is one to the
	 * only NI of a peer. */
	fails(&rig, "10.0.0.1@tcp", "10.0.0.2@tcp", -ENETDOWN);
	fails(&rig, NULL, "10.0.0.3@tcp", -ENETDOWN);
	/* PATH_HOP asks for the way to a gateway, which is never through
	 * another one. */
	cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", PATH_HOP, NULL, &path),
		     -ENETDOWN);
	atomic_store(&r->told, ROUTE_TOLD_FAR_DOWN);
	fails(&rig, NULL, "10.0.0.2@tcp", -ENETDOWN);
	atomic_store(&r->told, ROUTE_TOLD_WORKS);
	set_up(&rig.ni[3], true);
	goes(&rig, NULL, "10.0.0.2@tcp", "10.1.0.1@tcp1 > 10.1.0.2@tcp1");
	rig_fini(&rig);
}

/* As before, but the nodes share just one net. */
Test(gateway, to_another_net_than_the_only_shared_one)
{
	struct path_rig rig;
	struct lnet_route *r;
	struct path path;

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	rig_ni(&rig, "10.9.0.1@tcp9");
	rig_peer(&rig, "10.0.0.2@tcp 10.2.0.2@tcp2");
	r = rig_route(&rig, "tcp2", "10.9.0.91@tcp9", 1, 0);
	set_up(&rig.ni[1], false);
	cr_assert_eq(where(&rig, NULL, "10.0.0.2@tcp", 0, NULL, &path), 0);
	cr_assert_eq(path.route, r);
	rig_fini(&rig);
}

/* If messages of two kinds alternate, such as a ping and a request, those of
 * one kind do not always get the same gateway. */
Test(gateway, of_every_second_message)
{
	struct lnet_route *r[4];
	struct ulnet_nid any = LNET_NID_ANY, to = rig_nid("10.5.0.9@tcp5");
	struct path_request request = { .src = &any, .dst = &to };
	unsigned int by[3] = { 0 };
	struct path_rig rig;
	struct path path;

	rig_routed(&rig, r);
	atomic_store(&r[2]->told, ROUTE_TOLD_FAR_DOWN);
	for (unsigned int i = 0; i < 400; i++) {
		cr_assert_eq(path_get(rig.cpt, &request, &path), 0);
		if (i % 2)
			by[path.route == r[1]]++;
		peer_unref(path.lpni);
		ni_unref(path.ni, 0);
	}
	cr_assert_gt(by[0], 40);
	cr_assert_gt(by[1], 40);
	rig_fini(&rig);
}

/* The gateway's address family decides from which NI of a net it is reached. */
Test(gateway, families)
{
	struct path_rig rig;
	struct path path;
	char text[PATH_TEXT_SIZE];

	rig_init(&rig);
	rig_ni(&rig, "10.0.0.1@tcp");
	rig_ni(&rig, "10.0.1.1@tcp1");
	rig_peer(&rig, "10.9.0.2@tcp9 fd99::2@tcp9");
	rig_route(&rig, "tcp9", "fd77::9@tcp", 1, 0);
	fails(&rig, NULL, "fd99::2@tcp9", -EHOSTUNREACH);
	rig_ni(&rig, "fd77::1@tcp");
	cr_assert_eq(where(&rig, NULL, "10.9.0.2@tcp9", 0, NULL, &path), 0);
	cr_assert_str_eq(rig_path_text(&path, text, sizeof(text)),
			 "fd77::1@tcp > ?");
	rig_fini(&rig);
}
