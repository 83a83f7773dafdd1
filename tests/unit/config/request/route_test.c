/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes and routing in commands and files. */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/config/rig.h"
#include "ulnet/route.h"

#define NET "net: [{net type: tcp, local NI(s): [{interfaces: {0: eth0}}]}]\n"

static struct rig rig_on_tcp(void)
{
	struct rig rig = rig_open();

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	return rig;
}

/* Brackets stand for several nets, and for several gateways; each route is
 * added, or none. */
Test(route, ranges)
{
	struct rig rig = rig_on_tcp();
	char *state = rig_state(&rig), *after;

	ask_out(&rig,
		"route add: {net: 'tcp[5,8]', gateway: '10.77.0.[11-13/2]@tcp, "
		"10.77.0.9'}",
		"");
	ask_out(&rig, "route show: {net: tcp8}",
		"route:\n"
		"-     net: tcp8\n      gateway: 10.77.0.11@tcp\n"
		"-     net: tcp8\n      gateway: 10.77.0.13@tcp\n"
		"-     net: tcp8\n      gateway: 10.77.0.9@tcp\n");
	ask_fail(&rig, "route del: {net: tcp5, gateway: '10.77.0.[9-11]@tcp'}",
		 -ENOENT, "10.77.0.10@tcp: there is no such route");
	ask_out(&rig,
		"route del: {net: 'tcp[5,8]', gateway: ['10.77.0.[9,11]@tcp', "
		"10.77.0.13@tcp]}",
		"");
	after = rig_state(&rig);
	cr_assert_str_eq(after, state);
	free(after);
	ask_fail(&rig, "route add: {net: tcp5, gateway: '10.77.0.[1-3]@tcp'}",
		 -EINVAL, "by 10.77.0.2@tcp");
	ask_fail(&rig, "route add: {net: tcp5, gateway: '10.*.*.*@tcp'}",
		 -E2BIG, "ranges of more than 256 NIDs");
	ask_fail(&rig, "route add: {net: tcp5, gateway: '10.77.0.[9-3]@tcp'}",
		 -EINVAL, "cannot parse NID");
	ask_fail(&rig, "route add: {net: 'tpc[5-6]', gateway: 10.77.0.9@tcp}",
		 -ENOENT, "cannot parse net 'tpc[5-6]': no such net: tpc5");
	ask_fail(&rig, "route add: {net: tcp5, gateway: []}", -EINVAL,
		 "no gateway is given");
	ask_fail(&rig,
		 "route add: {net: 'tcp[1-200]', gateway: "
		 "'10.77.0.[10-40]@tcp'}",
		 -EINVAL, "more than 4096 routes");
	after = rig_state(&rig);
	cr_assert_str_eq(after, state);
	free(after);
	free(state);
	rig_close(&rig);
}

Test(route, added_and_shown)
{
	struct rig rig = rig_on_tcp();

	ask_out(&rig, "route show:", "");
	ask_out(&rig, "route add: {net: tcp5, gateway: 10.77.0.9@tcp}", "");
	ask_out(&rig,
		"route add: {net: tcp2, gateway: 10.77.0.8@tcp, hop: 2, "
		"priority: 3, health_sensitivity: 1}",
		"");
	ask_out(&rig, "route show:",
		"route:\n"
		"-     net: tcp2\n"
		"      gateway: 10.77.0.8@tcp\n"
		"-     net: tcp5\n"
		"      gateway: 10.77.0.9@tcp\n");
	/* No gateway answers through the stub LND. The node asks them in a turn
	 * of its own. */
	ask_until(&rig, "route show: {net: tcp5, verbose: 1}", "state: down");
	ask_until(&rig, "route show: {net: tcp2, verbose: 1}", "state: down");
	/* The same as a kernel node shows. */
	ask_out(&rig, "route show: {net: tcp5, verbose: 1}",
		"route:\n"
		"-     net: tcp5\n"
		"      gateway: 10.77.0.9@tcp\n"
		"      hop: -1\n"
		"      priority: 0\n"
		"      health_sensitivity: 1\n"
		"      state: down\n"
		"      type: single-hop\n");
	/* With the name of the state, as for nets and peers. */
	ask_out(&rig, "route show: {net: tcp5, verbose: 5}",
		"route:\n"
		"-     net: tcp5\n"
		"      gateway: 10.77.0.9@tcp\n"
		"      hop: -1\n"
		"      priority: 0\n"
		"      health_sensitivity: 1\n"
		"      state: down\n"
		"      state name: ill\n"
		"      type: single-hop\n");
	ask_out(&rig, "route show: {priority: 3, hop: 2}",
		"route:\n"
		"-     net: tcp2\n"
		"      gateway: 10.77.0.8@tcp\n");
	ask_out(&rig, "route show: {hop: 2, verbose: 1}",
		"route:\n"
		"-     net: tcp2\n"
		"      gateway: 10.77.0.8@tcp\n"
		"      hop: 2\n"
		"      priority: 3\n"
		"      health_sensitivity: 1\n"
		"      state: down\n"
		"      type: multi-hop\n");
	ask_out(&rig, "route show: {gateway: 10.77.0.7@tcp}", "");
	ask_out(&rig, "route del: {net: tcp2, gateway: 10.77.0.8@tcp}", "");
	ask_fail(&rig, "route del: {net: tcp2, gateway: 10.77.0.8@tcp}",
		 -ENOENT,
		 "cannot delete route to tcp2 by 10.77.0.8@tcp: there is no "
		 "such route");
	rig_close(&rig);
}

Test(route, refused)
{
	static const struct {
		const char *args;
		int rc;
		const char *why;
	} cases[] = {
		{ "gateway: 10.77.0.9@tcp", -EINVAL, "net is missing" },
		{ "net: tcp5", -EINVAL, "gateway is missing" },
		{ "net: tpc, gateway: 10.77.0.9@tcp", -ENOENT,
		  "cannot parse net 'tpc'" },
		{ "net: tcp5, gateway: x", -EINVAL, "cannot parse NID 'x'" },
		{ "net: tcp5, gateway: 10.77.0.9@tcp, hop: 0", -EINVAL,
		  "hop: 0 is not in 1..255" },
		{ "net: tcp5, gateway: 10.77.0.9@tcp, priority: -1", -EINVAL,
		  "priority: -1 is not in" },
		{ "net: tcp5, gateway: 10.77.0.9@tcp, hops: 1", -EINVAL,
		  "unknown key 'hops'" },
		{ "net: tcp5, gateway: 10.77.0.9@tcp, health_sensitivity: 9",
		  -EOPNOTSUPP, "not supported" },
		{ "net: tcp, gateway: 10.77.0.9@tcp", -EINVAL,
		  "the network is local" },
		{ "net: tcp5, gateway: 10.77.0.9@tcp1", -EHOSTUNREACH,
		  "No interface configured on the same net as gateway" },
	};
	struct rig rig = rig_on_tcp();
	char request[128];

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(request, sizeof(request), "route add: {%s}",
			 cases[i].args);
		ask_fail(&rig, request, cases[i].rc, cases[i].why);
	}
	ask_out(&rig, "route show:", "");
	rig_close(&rig);
}

Test(route, routing)
{
	struct rig rig = rig_open();

	/* A node that does not route shows nothing. */
	ask_out(&rig, "routing show:", "");
	ask_out(&rig, "set: {routing: 0}", "");
	ask_out(&rig, "routing show:", "");
	ask_out(&rig, "set: {routing: 1, small_buffers: 100}", "");
	ask_out(&rig, "routing show:",
		"routing:\n"
		"    - cpt[0]:\n"
		"          tiny:\n"
		"              npages: 0\n"
		"              nbuffers: 2048\n"
		"              credits: 2048\n"
		"              mincredits: 2048\n"
		"          small:\n"
		"              npages: 1\n"
		"              nbuffers: 100\n"
		"              credits: 100\n"
		"              mincredits: 100\n"
		"          large:\n"
		"              npages: 256\n"
		"              nbuffers: 1024\n"
		"              credits: 1024\n"
		"              mincredits: 1024\n"
		"    - enable: 1\n"
		"buffers:\n"
		"    tiny: 2048\n"
		"    small: 100\n"
		"    large: 1024\n");
	ask_out(&rig, "set: {routing: 0}", "");
	ask_out(&rig, "routing show:",
		"routing:\n"
		"    - enable: 0\n"
		"buffers:\n"
		"    tiny: 2048\n"
		"    small: 100\n"
		"    large: 1024\n");
	ask_fail(&rig, "set: {tiny_buffers: -1}", -61, "not in 0..2147483647");
	rig_close(&rig);
}

/* ---- files ---- */

static const char file[] =
	NET "route:\n"
	    "- net: tcp5\n  gateway: 10.77.0.9@tcp\n  hop: 2\n  priority: 1\n"
	    "- net: tcp5\n  gateway: 10.77.0.8@tcp\n  hop: -1\n"
	    "  health_sensitivity: 1\n  state: up\n  type: single-hop\n"
	    "routing:\n- cpt[0]: {tiny: {npages: 0}}\n- enable: 1\n"
	    "buffers: {tiny: 512, small: 0, large: 32}\n";

/* A node that imports what another node exports has the same routes. */
Test(route, round_trip)
{
	struct rig one = rig_open(), two = rig_open();
	char *first, *second;

	import_ok(&one, "add", file);
	first = rig_state(&one);
	cr_assert(strstr(first, "    tiny: 512\n    small: 16384\n"), "%s",
		  first);
	import_ok(&two, "add", first);
	second = rig_state(&two);
	cr_assert_str_eq(second, first);
	import_ok(&two, "del",
		  "route:\n- net: tcp5\n  gateway: "
		  "10.77.0.9@tcp\nrouting:\n- enable: 1\n");
	ask_out(&two, "route show:",
		"route:\n"
		"-     net: tcp5\n"
		"      gateway: 10.77.0.8@tcp\n");
	free(first);
	free(second);
	rig_close(&one);
	rig_close(&two);
}

Test(route, all_or_nothing)
{
	struct rig rig = rig_on_tcp();

	ask_out(&rig, "route add: {net: tcp6, gateway: 10.77.0.7@tcp, hop: 9}",
		"");
	import_fail(&rig, "add",
		    "route:\n- {net: tcp5, gateway: 10.77.0.9@tcp}\n"
		    "- {net: tcp5, gateway: 10.77.0.9@tcp9}\n"
		    "routing: [{enable: 1}]\n",
		    -EHOSTUNREACH, "line 3, route 2: cannot add route");
	import_fail(&rig, "del",
		    "route:\n- {net: tcp6, gateway: 10.77.0.7@tcp}\n"
		    "- {net: tcp6, gateway: 10.77.0.7@tcp}\n",
		    -ENOENT, "line 3, route 2: cannot delete route");
	import_fail(&rig, "add",
		    "buffers: {tiny: 5}\nrouting: [{enable: 1}]\n"
		    "route: [{net: tcp, gateway: 10.77.0.9@tcp}]\n",
		    -EINVAL, "line 3, route 1");
	rig_close(&rig);
}

Test(route, unconfigured)
{
	struct rig rig = rig_open();

	import_ok(&rig, "add", file);
	ask_out(&rig, "lnet unconfigure:", "");
	ask_out(&rig, "lnet configure:", "");
	ask_out(&rig, "route show:", "");
	cr_assert_eq(lnet_routes(rig.node, NULL, 0), 0);
	rig_close(&rig);
}

/* ---- many ---- */

#define MANY 20000

/* A file with routes to MANY nets through eight gateways, and @last. */
static char *many_routes(const char *last)
{
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	fprintf(f, "route:\n");
	for (unsigned int i = 1; i <= MANY; i++)
		fprintf(f, "- {net: tcp%u, gateway: 10.77.0.%u@tcp, hop: 1}\n",
			i, i % 8 + 200);
	fputs(last, f);
	fclose(f);
	return text;
}

/* As many routes as a large site may have, all or none. With a cost that grows
 * faster than their number, this would not end. */
Test(route, thousands_at_once)
{
	char *good = many_routes("");
	char *bad = many_routes("- {net: o2ib, gateway: 10.0.0.1@o2ib3}\n");
	struct rig rig = rig_on_tcp();
	struct ulnet_route_info *infos = calloc(MANY + 1, sizeof(*infos));

	ask_out(&rig, "route add: {net: o2ib7, gateway: 10.77.0.99@tcp}", "");
	import_fail(&rig, "add", bad, -EHOSTUNREACH, "No interface");
	import_ok(&rig, "add", good);
	cr_assert_eq(lnet_routes(rig.node, infos, MANY + 1), MANY + 1);
	for (unsigned int i = 1; i <= MANY; i++)
		cr_assert_lt(infos[i - 1].route.net, infos[i].route.net);
	import_fail(&rig, "del", bad, -ENOENT, "there is no such route");
	import_ok(&rig, "del", good);
	cr_assert_eq(lnet_routes(rig.node, NULL, 0), 1);
	free(infos);
	free(good);
	free(bad);
	rig_close(&rig);
}

/* Of changes that are made together, the first that is not possible is named,
 * and none is made; they are made in their order. */
Test(route, changed_together)
{
	struct rig rig = rig_on_tcp();
	struct ulnet_route_change c[4] = { 0 };
	struct ulnet_route_info info[2];
	unsigned int failed = 77;

	for (unsigned int i = 0; i < 4; i++) {
		lnet_net_parse(i == 3 ? "tcp4" : "tcp5", &c[i].route.net);
		lnet_nid_parse("10.77.0.9@tcp", &c[i].route.gateway);
		c[i].route.priority = i;
	}
	cr_assert_eq(lnet_routes_change(rig.node, c, 2, &failed), -EEXIST);
	cr_assert_eq(failed, 1);
	cr_assert_eq(lnet_routes(rig.node, NULL, 0), 0);
	/* added, deleted, and added once more */
	c[1].del = true;
	cr_assert_eq(lnet_routes_change(rig.node, c, 4, NULL), 0);
	cr_assert_eq(lnet_routes(rig.node, info, 2), 2);
	cr_assert_eq(info[0].route.priority, 3);
	cr_assert_eq(info[1].route.priority, 2);
	/* the first in the order given, not in that of the table */
	c[3].del = true;
	cr_assert_eq(lnet_routes_change(rig.node, c + 1, 3, &failed), 0);
	c[0].del = true;
	c[2].del = true;
	failed = 77;
	cr_assert_eq(lnet_routes_change(rig.node, c, 4, &failed), -ENOENT);
	cr_assert_eq(failed, 1);
	cr_assert_eq(lnet_routes(rig.node, info, 2), 1);
	cr_assert_eq(info[0].route.priority, 2);
	cr_assert_eq(lnet_routes_change(rig.node, c, 0, NULL), 0);
	rig_close(&rig);
}

static void count_passed(void *arg, const struct ulnet_route *route,
			 const char *why)
{
	(void)route;
	(void)why;
	(*(unsigned int *)arg)++;
}

/* Of the routes of a text all are added, or none: neither those before the one
 * that is not possible, nor is the node a router because of another. */
Test(route, of_a_text_all_or_none)
{
	static const char *const gateways[] = {
		"10.77.0.9@tcp",		   /* twice */
		"10.77.0.9@tcp",  "10.77.0.2@tcp", /* the node's own */
		"10.88.0.9@tcp9",		   /* on no net of the node */
		"10.77.0.8@tcp",  "fd00::9@tcp",   /* cannot be reached */
	};
	struct rig rig = rig_on_tcp();
	struct ulnet_route routes[6] = { 0 };
	struct ulnet_routing routing;
	unsigned int passed = 0;

	for (unsigned int i = 0; i < 6; i++) {
		lnet_net_parse("tcp5", &routes[i].net);
		cr_assert_eq(lnet_nid_parse(gateways[i], &routes[i].gateway),
			     0);
	}
	cr_assert_eq(lnet_routes_add(rig.node, routes, 6, NULL, NULL),
		     -EHOSTUNREACH);
	cr_assert_eq(lnet_routes(rig.node, NULL, 0), 0);
	lnet_routing(rig.node, &routing);
	cr_assert(!routing.enabled);
	cr_assert_eq(
		lnet_routes_add(rig.node, routes, 5, count_passed, &passed), 0);
	cr_assert_eq(lnet_routes(rig.node, NULL, 0), 2);
	cr_assert_eq(passed, 2);
	lnet_routing(rig.node, &routing);
	cr_assert(routing.enabled);
	passed = 0;
	cr_assert_eq(
		lnet_routes_add(rig.node, routes, 5, count_passed, &passed), 0);
	cr_assert_eq(lnet_routes(rig.node, NULL, 0), 2);
	cr_assert_eq(passed, 4);
	rig_close(&rig);
}
