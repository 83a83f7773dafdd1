/* SPDX-License-Identifier: BSD-3-Clause */
/* How users' policies choose among paths that are equally good otherwise
 * (requirement C8). */
#include "lnet/path/verdict.h"

#include "path_rig.h"

#define NONE   LNET_PRIORITY_NONE
#define ROUNDS 8

/* This node has two NIs on tcp and one on tcp1. A multi-rail peer has as many,
 * another peer has a single NI. */
static void rig_rails(struct path_rig *rig)
{
	rig_init(rig);
	rig_ni(rig, "10.0.0.1@tcp");
	rig_ni(rig, "10.0.1.1@tcp");
	rig_ni(rig, "10.1.0.1@tcp1");
	rig_peer(rig, "10.0.0.2@tcp 10.0.1.2@tcp 10.1.0.2@tcp1");
	rig_peer(rig, "10.0.0.3@tcp");
}

/* Takes paths for ROUNDS messages to @dst, one after the other. Returns the
 * different paths, in the order of their first use, separated by ", ". */
static const char *paths_to(struct path_rig *rig, const char *dst)
{
	static char all[1024];
	const struct ulnet_nid any = LNET_NID_ANY, to = rig_nid(dst);
	struct path_request request = { .src = &any, .dst = &to };

	*all = '\0';
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct path path;
		char text[PATH_TEXT_SIZE];

		cr_assert_eq(path_get(rig->cpt, &request, &path), 0);
		rig_path_text(&path, text, sizeof(text));
		if (!strstr(all, text)) {
			strcat(all, *all ? ", " : "");
			strcat(all, text);
		}
		peer_unref(path.lpni);
		ni_unref(path.ni, 0);
	}
	return all;
}

Test(verdict, priorities)
{
	static const struct {
		const char *src, *dst;
		uint32_t priority;
		const char *paths;
	} rows[] = {
		{ "tcp1", "", 0, "10.1.0.1@tcp1 > 10.1.0.2@tcp1" },
		{ "", "tcp1", 0, "10.1.0.1@tcp1 > 10.1.0.2@tcp1" },
		{ "", "tcp[1-7/3]", 9, "10.1.0.1@tcp1 > 10.1.0.2@tcp1" },
		{ "10.1.*.*@tcp1", "", 0, NULL }, /* rates an NI, not its net */
	};
	struct path_rig rig;

	rig_rails(&rig);
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *paths;

		rig_policy(&rig, rows[i].src, rows[i].dst, "",
			   rows[i].priority);
		paths = paths_to(&rig, "10.0.0.2@tcp");
		if (rows[i].paths)
			cr_assert_str_eq(paths, rows[i].paths, "row %u", i);
		else
			cr_assert_gt(strlen(paths), 60, "row %u: %s", i, paths);
		rig_no_policies(&rig);
		cr_assert_gt(strlen(paths_to(&rig, "10.0.0.2@tcp")), 60);
	}
	rig_fini(&rig);
}

/* Policies give priorities to local NIs and to peer NIs. An NI without a
 * priority of its own has that of its net. */
Test(verdict, priorities_of_nis)
{
	struct path_rig rig;

	rig_rails(&rig);
	rig_policy(&rig, "tcp", "", "", 3);
	rig_policy(&rig, "10.0.1.1@tcp", "", "", 2);
	rig_policy(&rig, "", "10.0.0.2@tcp", "", 7);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.2@tcp"),
			 "10.0.1.1@tcp > 10.0.0.2@tcp");
	rig_policy(&rig, "10.0.0.1@tcp", "", "", 1);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.2@tcp"),
			 "10.0.0.1@tcp > 10.0.0.2@tcp");
	/* 10.0.1.1 has a worse priority than its net, which 10.0.0.1 has. */
	rig_no_policies(&rig);
	rig_policy(&rig, "tcp", "", "", 3);
	rig_policy(&rig, "10.0.1.1@tcp", "", "", 4);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.3@tcp"),
			 "10.0.0.1@tcp > 10.0.0.3@tcp");
	rig_fini(&rig);
}

/* An NI that is less healthy than others, or down, is not chosen, however good
 * its priority. */
Test(verdict, health_comes_first)
{
	struct path_rig rig;

	rig_rails(&rig);
	rig_policy(&rig, "10.0.1.1@tcp", "", "", 0);
	rig_policy(&rig, "tcp", "", "", 1);
	atomic_store(&rig.ni[2].health, 900);
	cr_assert_str_eq(paths_to(&rig, "10.0.1.2@tcp"),
			 "10.0.0.1@tcp > 10.0.0.2@tcp, "
			 "10.0.0.1@tcp > 10.0.1.2@tcp");
	atomic_store(&rig.ni[2].health, LNET_HEALTH_MAX);
	atomic_store(&rig.ni[2].up, false);
	cr_assert_str_eq(paths_to(&rig, "10.0.1.2@tcp"),
			 "10.0.0.1@tcp > 10.0.0.2@tcp, "
			 "10.0.0.1@tcp > 10.0.1.2@tcp");
	rig_fini(&rig);
}

Test(verdict, pairs)
{
	struct path_rig rig;

	rig_rails(&rig);
	rig_policy(&rig, "", "tcp", "", 0);
	rig_policy(&rig, "10.0.0.1@tcp", "10.0.1.2@tcp", "", NONE);
	rig_policy(&rig, "10.0.1.1@tcp", "10.0.0.2@tcp", "", NONE);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.2@tcp"),
			 "10.0.0.1@tcp > 10.0.1.2@tcp, "
			 "10.0.1.1@tcp > 10.0.0.2@tcp");
	/* The local NI of the first pair is down. */
	atomic_store(&rig.ni[1].up, false);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.2@tcp"),
			 "10.0.1.1@tcp > 10.0.0.2@tcp");
	rig_fini(&rig);
}

/* A peer that knows this node by one NI gets messages from another one if a
 * policy says so, and from the first one while that other one is down. */
Test(verdict, pair_with_a_peer_that_knows_one_ni)
{
	struct path_rig rig;

	rig_rails(&rig);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.3@tcp"),
			 "10.0.0.1@tcp > 10.0.0.3@tcp");
	rig_policy(&rig, "10.0.1.1@tcp", "*@tcp", "", NONE);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.3@tcp"),
			 "10.0.1.1@tcp > 10.0.0.3@tcp");
	/* The policy also holds for a peer that is not known yet. */
	cr_assert_str_eq(paths_to(&rig, "10.0.0.77@tcp"),
			 "10.0.1.1@tcp > 10.0.0.77@tcp");
	atomic_store(&rig.ni[2].up, false);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.3@tcp"),
			 "10.0.0.1@tcp > 10.0.0.3@tcp");
	atomic_store(&rig.ni[2].up, true);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.3@tcp"),
			 "10.0.1.1@tcp > 10.0.0.3@tcp");
	rig_fini(&rig);
}

/* Policies for interfaces and routes stay in force, whether these exist or not.
 */
Test(verdict, interfaces_and_routes_that_come_and_go)
{
	struct path_rig rig;

	rig_init(&rig);
	rig_policy(&rig, "10.0.1.1@tcp", "", "", 0);
	rig_policy(&rig, "", "tcp5", "10.0.0.92@tcp", NONE);
	rig_ni(&rig, "10.0.0.1@tcp");
	cr_assert_str_eq(paths_to(&rig, "10.0.0.3@tcp"),
			 "10.0.0.1@tcp > 10.0.0.3@tcp");
	rig_ni(&rig, "10.0.1.1@tcp");
	cr_assert_str_eq(paths_to(&rig, "10.0.0.4@tcp"),
			 "10.0.1.1@tcp > 10.0.0.4@tcp");
	rig_config(&rig, config_without(rig.config, &rig.ni[2]));
	cr_assert_str_eq(paths_to(&rig, "10.0.0.4@tcp"),
			 "10.0.0.1@tcp > 10.0.0.4@tcp");
	rig_fini(&rig);
}

/* ---- gateways ---- */

static const struct lnet_route *route_to(struct path_rig *rig, const char *dst)
{
	const struct ulnet_nid any = LNET_NID_ANY, to = rig_nid(dst);
	const struct path_request request = { .src = &any, .dst = &to };
	struct path path;

	cr_assert_eq(path_select(rig->cpt, &request, &path, NULL), 0);
	return path.route;
}

/* Returns the route of an answer to a message that came through gateway @hop.
 */
static const struct lnet_route *route_back(struct path_rig *rig,
					   const char *dst, const char *hop)
{
	const struct ulnet_nid any = LNET_NID_ANY, to = rig_nid(dst);
	const struct ulnet_nid last = rig_nid(hop);
	const struct path_request request = {
		.src = &any, .dst = &to, .hop = &last, .flags = PATH_EXACT
	};
	struct path path;

	cr_assert_eq(path_select(rig->cpt, &request, &path, NULL), 0);
	return path.route;
}

Test(verdict, gateways)
{
	struct lnet_route *r[3];
	struct path_rig rig;

	rig_rails(&rig);
	atomic_init(&rig.cpt->node->settings.value[SETTING_ROUTER_SENSITIVITY],
		    100);
	rig_peer(&rig, "10.5.0.1@tcp5 10.6.0.1@tcp6");
	rig_peer(&rig, "10.5.0.9@tcp5");
	r[0] = rig_route(&rig, "tcp5", "10.0.0.91@tcp", 1, 0);
	r[1] = rig_route(&rig, "tcp5", "10.0.0.92@tcp", 5, 8);
	cr_assert_eq(route_to(&rig, "10.5.0.9@tcp5"), r[0]);
	rig_policy(&rig, "", "10.5.0.[7-9]@tcp5", "10.0.0.[92-99]@tcp", NONE);
	/* The policy's gateway is chosen whatever the priority and the hops of
	 * its route, for peers that are known (9) and that are not (8). */
	cr_assert_eq(route_to(&rig, "10.5.0.9@tcp5"), r[1]);
	cr_assert_eq(route_to(&rig, "10.5.0.8@tcp5"), r[1]);
	cr_assert_eq(route_to(&rig, "10.5.0.6@tcp5"), r[0]);
	cr_assert_eq(route_to(&rig, "10.5.0.1@tcp5"), r[0]);
	atomic_store(&r[1]->told, ROUTE_TOLD_FAR_DOWN);
	cr_assert_eq(route_to(&rig, "10.5.0.9@tcp5"), r[0]);
	/* An answer goes back through the gateway of its request only if no
	 * policy says otherwise: lnet_routing(7), lnet_policy(7). */
	atomic_store(&r[1]->told, ROUTE_TOLD_WORKS);
	cr_assert_eq(route_back(&rig, "10.5.0.9@tcp5", "10.0.0.91@tcp"), r[1]);
	cr_assert_eq(route_back(&rig, "10.5.0.1@tcp5", "10.0.0.91@tcp"), r[0]);
	atomic_store(&r[1]->told, ROUTE_TOLD_FAR_DOWN);
	/* Of a peer with NIs on several nets, the net with the best priority is
	 * chosen. */
	r[2] = rig_route(&rig, "tcp6", "10.0.0.91@tcp", 1, 0);
	rig_policy(&rig, "", "tcp6", "", 0);
	cr_assert_eq(route_to(&rig, "10.5.0.1@tcp5"), r[2]);
	rig_fini(&rig);
}

/* Two rails, each of them an IP network of its own (/24), and a node without
 * policies of its user. */
static void rig_apart(struct path_rig *rig)
{
	rig_init(rig);
	rig_ni(rig, "10.0.0.1@tcp")->lnd.prefix = 24;
	rig_ni(rig, "10.0.1.1@tcp")->lnd.prefix = 24;
	rig_peer(rig, "10.0.0.2@tcp 10.0.1.2@tcp");
	rig->policies = calloc(1, sizeof(*rig->policies));
	rig->cpt->policies = rig->policies;
}

/* No path leads from one IP network to the other while both ends have an NI
 * in each. When the peer has lost one of its own, only the local NI beside the
 * other one is used; and when this node has lost that, what is left. */
Test(verdict, neighbours)
{
	struct path_rig rig;

	rig_apart(&rig);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.2@tcp"),
			 "10.0.0.1@tcp > 10.0.0.2@tcp, "
			 "10.0.1.1@tcp > 10.0.1.2@tcp");
	rig_peer_ni(&rig, "10.0.0.2@tcp")->down = true;
	cr_assert_str_eq(paths_to(&rig, "10.0.0.2@tcp"),
			 "10.0.1.1@tcp > 10.0.1.2@tcp");
	atomic_store(&rig.ni[2].up, false);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.2@tcp"),
			 "10.0.0.1@tcp > 10.0.1.2@tcp");
	rig_fini(&rig);
}

/* An NI without a neighbour goes to all of them; a pair that the user prefers
 * counts more than neighbours do. */
Test(verdict, neighbours_are_no_rule)
{
	struct path_rig rig;

	rig_apart(&rig);
	rig_peer(&rig, "10.0.2.2@tcp 10.0.3.2@tcp");
	cr_assert_str_eq(paths_to(&rig, "10.0.2.2@tcp"),
			 "10.0.0.1@tcp > 10.0.2.2@tcp, "
			 "10.0.1.1@tcp > 10.0.3.2@tcp");
	rig_policy(&rig, "10.0.0.1@tcp", "10.0.1.2@tcp", "", NONE);
	rig_policy(&rig, "10.0.1.1@tcp", "10.0.0.2@tcp", "", NONE);
	cr_assert_str_eq(paths_to(&rig, "10.0.0.2@tcp"),
			 "10.0.0.1@tcp > 10.0.1.2@tcp, "
			 "10.0.1.1@tcp > 10.0.0.2@tcp");
	rig_fini(&rig);
}

/* A loopback address reaches nobody but this host, though it is in no other IP
 * network than the addresses of peers far away are. */
Test(verdict, loopback_is_for_this_host)
{
	struct path_rig rig;

	rig_init(&rig);
	rig_ni(&rig, "127.0.0.1@tcp")->lnd.prefix = 8;
	rig_ni(&rig, "10.0.0.1@tcp")->lnd.prefix = 24;
	rig_ni(&rig, "::1@tcp")->lnd.prefix = 128;
	rig_ni(&rig, "fd00::1@tcp")->lnd.prefix = 64;
	rig.policies = calloc(1, sizeof(*rig.policies));
	rig.cpt->policies = rig.policies;
	rig_peer(&rig, "10.9.0.2@tcp");
	rig_peer(&rig, "127.0.0.9@tcp");
	rig_peer(&rig, "fd99::2@tcp");
	cr_expect_str_eq(paths_to(&rig, "10.9.0.2@tcp"),
			 "10.0.0.1@tcp > 10.9.0.2@tcp");
	cr_expect_str_eq(paths_to(&rig, "127.0.0.9@tcp"),
			 "127.0.0.1@tcp > 127.0.0.9@tcp");
	cr_expect_str_eq(paths_to(&rig, "fd99::2@tcp"),
			 "fd00::1@tcp > fd99::2@tcp");
	rig_fini(&rig);
}

/* A peer that is not multi-rail goes on seeing the NI by which it knows this
 * node, be that in another IP network. */
Test(verdict, neighbours_of_a_single_rail)
{
	struct path_rig rig;

	rig_apart(&rig);
	rig_peer(&rig, "10.0.1.3@tcp");
	rig_peer_ni(&rig, "10.0.1.3@tcp")->preferred = rig_nid("10.0.0.1@tcp");
	cr_assert_str_eq(paths_to(&rig, "10.0.1.3@tcp"),
			 "10.0.0.1@tcp > 10.0.1.3@tcp");
	rig_fini(&rig);
}
