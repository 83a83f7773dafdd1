/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that say which path a message takes and why, and that set health by
 * hand. */
#include "tests/unit/config/rig.h"

/* A node with two NIs. @sensitivity: how much each ping of an ill NI, and each
 * message that fails, changes in its health; 0: and health does not matter for
 * paths. */
static struct rig rig_two_nis(unsigned int cpts, unsigned int sensitivity)
{
	struct rig rig = rig_open_with(cpts, NULL);
	char request[64];

	snprintf(request, sizeof(request), "set: {health_sensitivity: %u}",
		 sensitivity);
	ask_out(&rig, request, "");
	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0, eth1]}", "");
	return rig;
}

/* Sends a request that must return @status, and print exactly @out and @err. */
static void ask_both(struct rig *rig, const char *request, int status,
		     const char *out, const char *err)
{
	struct result r = ask(rig, request);

	cr_assert_eq(r.status, status, "%s: %s", request, r.answer);
	cr_assert_str_eq(r.out, out);
	cr_assert_str_eq(r.err, err);
	result_free(&r);
}

/* Sends a request that must succeed. Returns what it prints, but for lines with
 * health or credits: these vary, as gateways are pinged meanwhile. */
static char *ask_lines(struct rig *rig, const char *request)
{
	static const char *const passed_over[] = {
		" health: ", " credits: ", " it has: ", " the chosen one has: "
	};
	struct result r = ask(rig, request);
	char *text = calloc(1, strlen(r.out) + 1), *rest = r.out, *line;

	cr_assert_eq(r.status, 0, "%s: %s", request, r.answer);
	while ((line = strsep(&rest, "\n")) && rest) {
		bool wanted = true;

		for (unsigned int i = 0; i < ARRAY_SIZE(passed_over); i++)
			wanted &= !strstr(line, passed_over[i]);
		if (wanted)
			strcat(strcat(text, line), "\n");
	}
	result_free(&r);
	return text;
}

Test(path, by_turns)
{
	struct rig rig = rig_two_nis(1, 100);

	ask_out(&rig, "path show: {nid: 10.77.0.9@tcp}",
		"path:\n"
		"-     destination: 10.77.0.9@tcp\n"
		"      situation: any local NI, peer on our nets\n"
		"      from: 10.77.0.2@tcp\n"
		"      to: 10.77.0.9@tcp\n"
		"      local NI(s):\n"
		"      -     nid: 10.77.0.2@tcp\n"
		"            health: 1000\n"
		"            credits: 256\n"
		"            why: chosen\n"
		"      -     nid: 10.77.0.3@tcp\n"
		"            health: 1000\n"
		"            credits: 256\n"
		"            why: turn\n"
		"      peer ni:\n"
		"      -     nid: 10.77.0.9@tcp\n"
		"            why: chosen\n");
	rig_close(&rig);
}

Test(path, by_health)
{
	struct rig rig = rig_two_nis(1, 100);
	struct result r = { 0 };

	/* Until no ping of the ill NI, once a second, comes between. */
	do {
		result_free(&r);
		ask_out(&rig, "net set: {nid: 10.77.0.2@tcp, health: 300}", "");
		r = ask(&rig, "path show: {nid: 10.77.0.9@tcp}");
		cr_assert_eq(r.status, 0, "%s", r.answer);
	} while (!strstr(r.out, "health: 300"));
	cr_assert_str_eq(r.out,
			 "path:\n"
			 "-     destination: 10.77.0.9@tcp\n"
			 "      situation: any local NI, peer on our nets\n"
			 "      from: 10.77.0.3@tcp\n"
			 "      to: 10.77.0.9@tcp\n"
			 "      local NI(s):\n"
			 "      -     nid: 10.77.0.2@tcp\n"
			 "            health: 300\n"
			 "            credits: 256\n"
			 "            why: health\n"
			 "            it has: 300\n"
			 "            the chosen one has: 1000\n"
			 "      -     nid: 10.77.0.3@tcp\n"
			 "            health: 1000\n"
			 "            credits: 256\n"
			 "            why: chosen\n"
			 "      peer ni:\n"
			 "      -     nid: 10.77.0.9@tcp\n"
			 "            why: chosen\n");
	result_free(&r);
	rig_close(&rig);
}

Test(path, there_is_none)
{
	struct rig rig = rig_two_nis(1, 100);

	ask_both(&rig, "path show: {nid: 10.77.0.9@tcp5}", -EHOSTUNREACH,
		 "path:\n"
		 "-     destination: 10.77.0.9@tcp5\n"
		 "      situation: any local NI, peer elsewhere\n",
		 "---\nshow:\n-     path:\n      errno: -113\n"
		 "      descr: ! \"no path to 10.77.0.9@tcp5: No route to "
		 "host\"\n...\n");
	ask_fail(&rig, "path show: {nid: 10.77.0.9@tcp, source: 1.2.3.4@tcp}",
		 -EINVAL, "no path to 10.77.0.9@tcp: no such local NI");
	ask_fail(&rig, "path show: {}", -EINVAL, "nid is missing");
	ask_fail(&rig, "path show: {nid: x@y}", -EINVAL, "cannot parse NID");
	ask_fail(&rig, "path show: {nid: 0@lo, source: 5}", -EINVAL,
		 "cannot parse NID '5'");
	ask_fail(&rig, "path show: {nids: 0@lo}", -EINVAL,
		 "unknown key 'nids'");
	rig_close(&rig);
}

/* A node with two NIs, of which the first is chosen, and two gateways, of which
 * the first is chosen, too. Pings of the gateways are lost rather than refused,
 * as otherwise their routes would be down at once: see ask_way(). */
static struct rig rig_two_routes(unsigned int cpts)
{
	struct rig rig = rig_two_nis(cpts, 1);

	stub_lnd_loses = -1;
	ask_out(&rig, "net set: {nid: 10.77.0.3@tcp, health: 100}", "");
	ask_out(&rig, "route add: {net: tcp5, gateway: 10.77.0.9@tcp}", "");
	ask_out(&rig,
		"route add: {net: tcp5, gateway: 10.77.0.8@tcp, priority: 1}",
		"");
	return rig;
}

/* Have the pings of the gateways timed out? */
static bool routes_are_down(struct rig *rig)
{
	struct result r = ask(rig, "route show: {verbose: 1}");
	bool down = strstr(r.out, "state: down");

	cr_assert_eq(r.status, 0, "%s", r.answer);
	result_free(&r);
	return down;
}

/* Checks the path to 10.0.0.1@tcp5. The second NI is not chosen for the reason
 * @why_not_second; @rest is printed after the gateway's NIs. Returns false, and
 * checks nothing, if the routes went down meanwhile: the caller tries again
 * with another node. */
static bool ask_way(struct rig *rig, const char *request, const char *situation,
		    const char *why_not_second, const char *rest)
{
	char *text, *shown = ask_lines(rig, request);
	bool in_time = !routes_are_down(rig);

	cr_assert_gt(asprintf(&text,
			      "path:\n"
			      "-     destination: 10.0.0.1@tcp5\n"
			      "      situation: %s\n"
			      "      from: 10.77.0.2@tcp\n"
			      "      to: 10.0.0.1@tcp5\n"
			      "      gateway: 10.77.0.9@tcp\n"
			      "      gateway(s):\n"
			      "      -     nid: 10.77.0.9@tcp\n"
			      "            why: chosen\n"
			      "      -     nid: 10.77.0.8@tcp\n"
			      "            why: priority of the route\n"
			      "      local NI(s):\n"
			      "      -     nid: 10.77.0.2@tcp\n"
			      "            why: chosen\n"
			      "      -     nid: 10.77.0.3@tcp\n"
			      "            why: %s\n"
			      "      gateway ni:\n"
			      "      -     nid: 10.77.0.9@tcp\n"
			      "            why: chosen\n"
			      "%s",
			      situation, why_not_second, rest),
		     0);
	if (in_time)
		cr_assert_str_eq(shown, text);
	free(shown);
	free(text);
	return in_time;
}

/* Each stage is shown once, whichever CPTs own the peer and the gateway. */
Test(path, by_gateway)
{
	for (unsigned int cpts = 1; cpts <= 8;) {
		struct rig rig = rig_two_routes(cpts);

		cpts += ask_way(&rig, "path show: {nid: 10.0.0.1@tcp5}",
				"any local NI, peer elsewhere", "health", "") &&
			ask_way(&rig,
				"path show: {nid: 10.0.0.1@tcp5, source: "
				"10.77.0.2@tcp}",
				"local NI named, peer elsewhere",
				"not asked for", "");
		rig_close(&rig);
	}
}

/* The NIs of the peer are shown apart from those of the gateway. */
Test(path, by_gateway_to_multi_rail_peer)
{
	for (unsigned int cpts = 1; cpts <= 8;) {
		struct rig rig = rig_two_routes(cpts);

		ask_out(&rig,
			"peer add: {prim_nid: 10.0.0.1@tcp5, nids: "
			"[10.0.0.2@tcp5]}",
			"");
		cpts += ask_way(&rig, "path show: {nid: 10.0.0.1@tcp5}",
				"any local NI, multi-rail peer elsewhere",
				"health",
				"      peer ni:\n"
				"      -     nid: 10.0.0.1@tcp5\n"
				"            why: chosen\n"
				"      -     nid: 10.0.0.2@tcp5\n"
				"            why: turn\n");
		rig_close(&rig);
	}
}

static void health_is(struct rig *rig, const char *show, const char *nid,
		      unsigned int health)
{
	struct result r = ask(rig, show);
	const char *ni = strstr(r.out, nid);
	char line[64];

	snprintf(line, sizeof(line), "health value: %u\n", health);
	cr_assert_not_null(ni, "%s", r.out);
	ni = strstr(ni, "health value: ");
	cr_assert_eq(strncmp(ni, line, strlen(line)), 0, "%s", r.out);
	result_free(&r);
}

Test(health, of_interfaces)
{
	static const char show[] = "net show: {verbose: 2}";
	struct rig rig = rig_two_nis(1, 0);

	ask_out(&rig, "net set: {nid: 10.77.0.3@tcp, health: 0}", "");
	health_is(&rig, show, "10.77.0.2@tcp", 1000);
	health_is(&rig, show, "10.77.0.3@tcp", 0);
	ask_out(&rig, "net set: {all: true, health: 7}", "");
	health_is(&rig, show, "10.77.0.2@tcp", 7);
	health_is(&rig, show, "10.77.0.3@tcp", 7);
	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth2]}", "");
	ask_out(&rig, "net set: {net: tcp, health: 9}", "");
	health_is(&rig, "net show: {verbose: 2}", "10.77.0.2@tcp", 9);
	health_is(&rig, "net show: {verbose: 2}", "10.77.0.3@tcp", 9);
	health_is(&rig, "net show: {verbose: 2}", "10.77.0.4@tcp1", 1000);
	ask_both(&rig, "net set: {nid: 10.77.0.9@tcp, health: 7}", -ENOENT, "",
		 "---\nset:\n-     net:\n      errno: -2\n"
		 "      descr: ! \"cannot set the health of 10.77.0.9@tcp: "
		 "no such NID here\"\n...\n");
	rig_close(&rig);
}

Test(health, of_peers)
{
	static const char show[] = "peer show: {verbose: 2}";
	struct rig rig = rig_two_nis(1, 0);
	struct result r = ask(&rig, "ping: {nids: [10.77.0.98@tcp, "
				    "10.77.0.99@tcp]}");

	result_free(&r);
	ask_out(&rig, "peer set: {all: true, health: 10}", "");
	ask_out(&rig, "peer set: {nid: 10.77.0.99@tcp, health: 1000}", "");
	health_is(&rig, show, "10.77.0.98@tcp", 10);
	health_is(&rig, show, "10.77.0.99@tcp", 1000);
	ask_fail(&rig, "peer set: {nid: 10.77.0.8@tcp, health: 7}", -ENOENT,
		 "set:\n-     peer:\n");
	rig_close(&rig);
}

Test(health, errors)
{
	static const struct {
		const char *args;
		int status;
		const char *words;
	} cases[] = {
		{ "nid: 10.77.0.2@tcp", -EINVAL, "health is missing" },
		{ "health: 5", -EINVAL, "either nid or all is needed" },
		{ "health: 5, all: false", -EINVAL,
		  "either nid or all is needed" },
		{ "health: 5, all: true, nid: 10.77.0.2@tcp", -EINVAL,
		  "either nid or all is needed" },
		{ "health: 1001, all: true", -EINVAL,
		  "1001 is not in 0..1000" },
		{ "health: -1, all: true", -EINVAL, "-1 is not in 0..1000" },
		{ "health: x, all: true", -EINVAL, "a number is expected" },
		{ "health: 5, nid: x@y", -EINVAL, "cannot parse NID 'x@y'" },
		{ "health: 5, frob: 1", -EINVAL, "unknown key 'frob'" },
	};
	struct rig rig = rig_two_nis(1, 0);
	char request[128];

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(request, sizeof(request), "net set: {%s}",
			 cases[i].args);
		ask_fail(&rig, request, cases[i].status, cases[i].words);
		snprintf(request, sizeof(request), "peer set: {%s}",
			 cases[i].args);
		ask_fail(&rig, request, cases[i].status, cases[i].words);
	}
	ask_fail(&rig, "net set: {nid: 0@lo, health: 1}", -EINVAL, "0@lo");
	ask_fail(&rig, "net set: {net: lo, health: 1}", -EINVAL,
		 "lo has no health");
	ask_fail(&rig, "net set: {net: tcp9, health: 1}", -ENOENT,
		 "cannot set the health of tcp9: no such network here");
	ask_fail(&rig, "net set: {net: tpc, health: 1}", -ENOENT,
		 "cannot parse net 'tpc'");
	ask_fail(&rig, "net set: {net: tcp, all: true, health: 1}", -EINVAL,
		 "one of nid, net and all is needed");
	ask_fail(&rig, "net set: {all: true, conns_per_peer: 1}", -EOPNOTSUPP,
		 "conns_per_peer cannot be set: it is given when net "
		 "add or import adds the interface");
	ask_fail(&rig, "net set: {all: true, lnd_timeout: 1}", -EOPNOTSUPP,
		 "lnd_timeout cannot be set: it follows from "
		 "transaction_timeout and retry_count: use set");
	ask_fail(&rig, "peer set: {all: true, state: 1}", -EOPNOTSUPP,
		 "state cannot be set: it is what discovery has "
		 "found: use discover, or peer add");
	rig_close(&rig);
}
