/* SPDX-License-Identifier: BSD-3-Clause */
/* The forms of imported files: older and later ones, keys that are unknown,
 * misspelt, or without effect here. */
#include "config/yaml/scope.h"
#include "tests/unit/config/rig.h"

/* A file of a later release: each unknown key is ignored, with one note. */
Test(import_shape, later_release)
{
	static const char file[] =
		"net:\n"
		"- net type: tcp\n"
		"  colour: red\n"
		"  local NI(s):\n"
		"  - interfaces: {0: eth0}\n"
		"    temperature: {now: 3}\n"
		"    tunables: {credits: 50, quota: many}\n"
		"    lnd tunables: {tos: 4, zerocopy: 1}\n"
		"  - interfaces: {0: eth1}\n"
		"    temperature: {now: 4}\n"
		"route: [{net: tcp5, gateway: 10.77.0.9@tcp, since: 5}]\n"
		"routing: [{enable: 1, mood: good}]\n"
		"buffers: {tiny: 8, giant: 1}\n"
		"peer:\n"
		"- {primary nid: 10.77.0.7@tcp, uptime: 3, peer ni: "
		"[{nid: 10.77.0.7@tcp, load: 2}]}\n"
		"numa: {range: 1, nodes: 2}\n"
		"global: {some_new_global: [1, 2], retry_count: 4}\n"
		"udsp: [{src: tcp, hits: 8, action: {priority: 2}}]\n"
		"ip2nets: [{net-spec: tcp7, interfaces: {0: eth2}, ip-range: "
		"{0: '*.*.*.*'}, owner: me}]\n";
	static const char notes[] =
		"# global: unknown setting 'some_new_global' is passed over\n"
		"# net: unknown key 'colour' is passed over\n"
		"# net: unknown key 'temperature' is passed over\n"
		"# net: unknown tunable 'quota' is passed over\n"
		"# net: unknown tunable 'zerocopy' is passed over\n"
		"# route: unknown key 'since' is passed over\n"
		"# routing: unknown key 'mood' is passed over\n"
		"# buffers: unknown key 'giant' is passed over\n"
		"# peer: unknown key 'uptime' is passed over\n"
		"# numa: unknown key 'nodes' is passed over\n"
		"# udsp: unknown key 'hits' is passed over\n"
		"# ip2nets: unknown key 'owner' is passed over\n";
	static const char *const there[] = {
		"0: eth0",	    "0: eth1",	     "credits: 50\n",
		"tos: 4\n",	    "net: tcp5\n",   "enable: 1\n",
		"tiny: 8\n",	    "10.77.0.7@tcp", "numa_range: 1\n",
		"retry_count: 4\n", "priority: 2\n", "net type: tcp7\n",
	};
	struct rig rig = rig_open();
	struct result r = import(&rig, "add", file);
	char *state;

	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_str_eq(r.err, notes);
	result_free(&r);
	state = rig_state(&rig);
	for (unsigned int i = 0; i < ARRAY_SIZE(there); i++)
		cr_assert(strstr(state, there[i]), "%s: %s", there[i], state);
	free(state);
	rig_close(&rig);
}

/* health_sensitivity of a route, as some kernel nodes export it, is ignored
 * with a note. */
Test(import_shape, route_sensitivity)
{
	struct rig rig = rig_open();
	struct result r;

	r = import(&rig, "add",
		   "net: [{net type: tcp1, local NI(s): [{interfaces: {0: "
		   "eth0}}]}]\n"
		   "route:\n"
		   "- {net: tcp5, gateway: 10.77.0.9@tcp1, "
		   "health_sensitivity: 50}\n"
		   "- {net: tcp6, gateway: 10.77.0.9@tcp1, "
		   "health_sensitivity: 7}\n");
	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_str_eq(r.err,
			 "# route: health_sensitivity is passed over: gateways "
			 "lose health as other peers do, by the setting "
			 "health_sensitivity\n");
	result_free(&r);
	cr_assert_eq(lnet_routes(rig.node, NULL, 0), 2);
	rig_close(&rig);
}

/* All CPTs use each interface. A list of some CPTs is ignored with a note, at
 * each door. */
Test(import_shape, cpts)
{
	static const char file[] =
		"net:\n"
		"- net type: tcp\n  local NI(s):\n"
		"  - {interfaces: {0: eth0}, CPT: \"[0]\"}\n"
		"  - {interfaces: {0: \"eth1[1]\", 1: \"eth2[0,1]\"}, "
		"CPT: [0, 1]}\n"
		"ip2nets:\n"
		"- {net-spec: tcp7, interfaces: {0: eth3}, ip-range: {0: "
		"'*.*.*.*'}, CPT: \"[1]\"}\n";
	struct rig rig = rig_open_with(2, NULL);
	struct result r = import(&rig, "add", file);

	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_str_eq(
		r.err,
		"# net: CPTs [0] are passed over: all CPTs use each interface\n"
		"# net: CPTs [1] are passed over: all CPTs use each interface\n"
		"# tcp: 2 interfaces of one NI become one NI each\n"
		"# ip2nets: CPTs [1] are passed over: all CPTs use each "
		"interface\n");
	result_free(&r);
	import_ok(&rig, "del",
		  "net: [{net type: tcp, local NI(s): [{interfaces: "
		  "{0: \"eth1[1]\"}}]}]\n");
	ask_out(&rig, "net add: {net: tcp, interfaces: ['eth1[0,1]', eth4]}",
		"");
	ask_out(&rig, "net add: {net: tcp, interfaces: ['eth5[0-1],eth6']}",
		"");
	ask_out(&rig, "net add: {net: tcp, interfaces: eth3, cpts: '*'}", "");
	r = ask(&rig, "net add: {net: tcp, interfaces: ['eth7[0]'], cpts: 1}");
	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_str_eq(
		r.err,
		"# net: CPTs 1 are passed over: all CPTs use each interface\n"
		"# net: CPTs [0] are passed over: all CPTs use each "
		"interface\n");
	result_free(&r);
	import_fail(&rig, "add",
		    "net: [{net type: tcp, local NI(s): [{nid: "
		    "10.77.0.9@tcp, CPT: [0, x]}]}]\n",
		    -22, "cannot parse CPTs '[0,x]'");
	rig_close(&rig);
}

/* A setting that has no effect in kernel nodes of today is ignored here, too,
 * with a note. */
Test(import_shape, no_effect)
{
	struct rig rig = rig_open();
	struct result r;

	r = import(&rig, "add",
		   "global: {recovery_interval: 5, retry_count: 4}");
	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_str_eq(r.err,
			 "# recovery_interval: 5 is without effect: the longer "
			 "an interface is silent, the longer is the time "
			 "between its pings\n");
	result_free(&r);
	r = ask(&rig, "global show:");
	cr_assert(strstr(r.out, "    recovery_interval: 1\n"), "%s", r.out);
	cr_assert(strstr(r.out, "    retry_count: 4\n"), "%s", r.out);
	result_free(&r);
	rig_close(&rig);
}

/* An unknown key that resembles a known one is an error. */
Test(import_shape, misspelt)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "global: {retry_cuont: 3}",
		  "unknown setting 'retry_cuont': 'retry_count' may be meant" },
		{ "global: {retry: 3}", "'retry_count' may be meant" },
		{ "numa: {rnage: 3}", "'range' may be meant" },
		{ "net: [{net tpye: tcp}]", "'net type' may be meant" },
		{ "net: [{net type: tcp, local NI(s): [{interface: {0: "
		  "eth0}}]}]",
		  "'interfaces' may be meant" },
		{ "net: [{net type: tcp, local NI(s): [{interfaces: {0: eth0}, "
		  "tunables: {peer_credit: 3}}]}]",
		  "unknown tunable 'peer_credit': 'peer_credits' may be "
		  "meant" },
		{ "net: [{net type: tcp, local NI(s): [{interfaces: {0: eth0}, "
		  "lnd tunables: {conn_per_peer: 3}}]}]",
		  "'conns_per_peer' may be meant" },
		{ "route: [{net: tcp5, gatway: 10.77.0.9@tcp}]",
		  "line 1, route 1: unknown key 'gatway': 'gateway' may be" },
		{ "routing: [{enabel: 1}]", "'enable' may be meant" },
		{ "buffers: {smal: 1}", "'small' may be meant" },
		{ "peer: [{primary nid: 10.77.0.9@tcp, multi-rail: true}]",
		  "'Multi-Rail' may be meant" },
		{ "udsp: [{scr: tcp}]", "'src' may be meant" },
		/* Without an unknown key these policies and rules would mean
		 * something else, so it is an error. */
		{ "udsp: [{src: tcp, action: {avoid: 1}}]",
		  "unknown key 'avoid'" },
		{ "fault: [{rule_type: drop, rate: 1, weekday: 3}]",
		  "unknown key 'weekday'" },
	};
	struct rig rig = rig_open();

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++)
		import_fail(&rig, "add", rows[i].text, -EINVAL, rows[i].words);
	rig_close(&rig);
}

/* Each unknown key is noted once, and there are at most NOTES_MAX notes. */
Test(import_shape, many_unknown_keys)
{
	struct rig rig = rig_open();
	char *text = malloc(200 * 40), *p = text;
	struct result r;
	int lines = 0;

	p += sprintf(p, "global:\n");
	for (int i = 0; i < 200; i++)
		p += sprintf(p, "  extraneous_%d: 1\n", 1000 + i);
	r = import(&rig, "add", text);
	cr_assert_eq(r.status, 0, "%s", r.answer);
	for (p = r.err; (p = strchr(p, '\n')); p++)
		lines++;
	cr_assert_eq(lines, NOTES_MAX);
	result_free(&r);
	free(text);
	rig_close(&rig);
}

Test(import_shape, nothing_to_import)
{
	struct rig rig = rig_open();
	char *before = rig_state(&rig), *after;

	import_ok(&rig, "add", "");
	import_ok(&rig, "add", "# nothing\n---\n");
	import_ok(&rig, "add", "net:\npeer:\nglobal:\nroute: []\nudsp:\n");
	import_ok(&rig, "add", "statistics: {send_count: 5, x: [y]}");
	import_ok(&rig, "add",
		  "routing: [{'cpt[0]': {tiny: {npages: 0}}}, {enable: 0}]\n"
		  "buffers: {tiny: 0, small: 0, large: 0}\n"
		  "numa: {range: 0}\n");
	import_ok(&rig, "add", "ping: [{nids: x}]\ndiscover: [y]");
	import_ok(&rig, "add",
		  "peer:\n- primary nid: 10.77.0.3@tcp\n  Multi-Rail: true\n"
		  "  peer state: 273\n  peer ni:\n  - nid: 10.77.0.3@tcp\n"
		  "    state: NA\n");
	import_ok(&rig, "add",
		  "net:\n- net type: lo\n  state name: active\n"
		  "  health value: 1000\n  statistics: {send_count: 0}\n");
	import_ok(&rig, "add", "global: {lnd_timeout: 49, discovery: 1}");
	after = rig_state(&rig);
	cr_assert_str_eq(after, before);
	free(before);
	free(after);
	rig_close(&rig);
}

/* Sections, and lists in them, in each form that files have. */
Test(import_shape, shapes)
{
	/* What each file of a group says is the same. */
	static const char *const groups[][6] = {
		{ "net: [{net type: tcp, local NI(s): [{interfaces: {0: eth0}, "
		  "tunables: {credits: 99}, CPT: '[0]'}]}]",
		  "net: {net type: tcp, local NI(s): {interfaces: eth0, "
		  "tunables: {credits: 99}, CPT: 0}}",
		  "net: {0: {net type: tcp, local NI(s): {0: {interfaces: "
		  "[eth0], tunables: {credits: 99}, CPT: [0]}}}}",
		  /* of old kernel nodes */
		  "net: [{net: tcp, interfaces: {0: eth0}, detail: 1, "
		  "tunables: "
		  "{credits: 99, SMP: '[0]'}, seq_no: 3}]",
		  "network: {net: tcp, intf: eth0, tunables: {credits: 99}}" },
		{ "net: [{net type: tcp, local NI(s): [{interfaces: {0: eth0}}]"
		  "}]\nroute: [{net: tcp5, gateway: 10.77.0.51@tcp}, {net: "
		  "tcp5, gateway: 10.77.0.52@tcp}]",
		  "net: {net: tcp, interfaces: eth0}\n"
		  "route: {net: tcp5, gateway: '10.77.0.[51-52]@tcp'}",
		  "net: {net: tcp, interfaces: eth0}\n"
		  "route: [{net: tcp5, gateway: [10.77.0.51@tcp, "
		  "10.77.0.52@tcp], detail: 1}]",
		  "net: {net: tcp, interfaces: eth0}\n"
		  "route: {net: 'tcp[5]', gateway: "
		  "'10.77.0.51@tcp, 10.77.0.52'}" },
		{ "routing: [{enable: 1}]\nbuffers: {tiny: 8, large: 9}",
		  "routing: {enable: 1}\nbuffers: [{tiny: 8}, {large: 9}]",
		  "routing: {enable: on}\nbuffer: [{tiny: 8, large: 9}]" },
		{ "global: {max_interfaces: 16, discovery: 0}",
		  "global: [{max_intf: 16}, {discovery: off}]",
		  "global: {max_intf: 16, discovery: 'no'}" },
		{ "numa: {range: 3}", "numa: [{range: 3}]",
		  "global: {numa_range: 3}" },
		{ "peer: [{primary nid: 1.2.3.4@tcp, peer ni: [{nid: "
		  "1.2.3.4@tcp}, {nid: 1.2.3.5@tcp1}]}]",
		  "peer: {primary nid: 1.2.3.4@tcp, peer ni: {0: {nid: "
		  "1.2.3.4@tcp}, 1: {nid: 1.2.3.5@tcp1}}}",
		  "peer: {primary nid: 1.2.3.4@tcp, peer ni: {nid: "
		  "1.2.3.5@tcp1}}",
		  "peers: {nids: {0: 1.2.3.4@tcp, 1: 1.2.3.5@tcp1}}",
		  "peers: [{nids: [1.2.3.4@tcp, 1.2.3.5@tcp1]}]" },
		{ "udsp: [{src: tcp, action: {priority: 2}}]",
		  "udsp: {src: tcp, action: {priority: 2}}" },
		{ "ip2nets: [{net-spec: tcp7, interfaces: {0: eth2}, ip-range: "
		  "{0: 127.0.0.1}}]",
		  "ip2nets: {net-spec: tcp7, interfaces: eth2, ip-range: "
		  "127.0.0.1}",
		  "net: {net: tcp7, intf: eth2, pattern: 127.*.*.*}" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(groups); i++) {
		char *first = NULL;

		for (unsigned int k = 0; k < 6 && groups[i][k]; k++) {
			struct rig rig = rig_open();
			char *state, *none = rig_state(&rig);

			import_ok(&rig, "add", groups[i][k]);
			state = rig_state(&rig);
			cr_assert_str_neq(state, none, "%s", groups[i][k]);
			if (first)
				cr_assert_str_eq(state, first, "%s",
						 groups[i][k]);
			else
				first = strdup(state);
			free(state);
			free(none);
			rig_close(&rig);
		}
		free(first);
	}
}

/* What old shapes do not say is refused, as in new ones. */
Test(import_shape, old_shapes_refused)
{
	struct rig rig = rig_open();
	struct result r;

	import_fail(&rig, "add", "net: {net: tcp, detail: 1}", -22,
		    "local NI(s) is missing");
	import_fail(&rig, "add", "net: {net: tcp, interfaces: {}}", -22,
		    "neither an interface nor a NID");
	import_fail(&rig, "add", "peers: {nids: {}}", -22, "no NID is given");
	import_fail(&rig, "add", "global: [{max_intf: 0}]", -22,
		    "max_intf: 0 is not in");
	import_fail(&rig, "add", "global: [retry_count]", -22,
		    "a mapping is expected");
	import_fail(&rig, "add", "global: {retry_count: yes}", -22,
		    "retry_count: a number is expected");
	import_fail(&rig, "add", "routing: {enable: 2}", -22,
		    "true or false is expected");
	/* A pattern for other hosts is no error, but is mentioned. */
	r = import(&rig, "add", "net: {net: tcp, pattern: 127.9.9.9}");
	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_str_eq(r.err, "# net: the pattern of net tcp is not for this "
				"host\n");
	result_free(&r);
	rig_close(&rig);
}
