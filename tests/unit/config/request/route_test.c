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
	/* The same as a kernel node shows; no gateway answers through the stub
	 * LND. */
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
