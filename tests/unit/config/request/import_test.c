/* SPDX-License-Identifier: BSD-3-Clause */
/* Files: what kernel nodes export can be imported and is shown again; a file
 * with an error changes nothing. */
#include "config/yaml/scope.h"
#include "tests/unit/config/rig.h"
#include "tests/source.h"
#include "ulnet/route.h"

static char *golden(const char *name)
{
	char file[128], *text = calloc(1, 65536);
	FILE *f;

	snprintf(file, sizeof(file), "tests/config/%s", name);
	f = source_open(file);
	cr_assert_not_null(f, "%s", file);
	cr_assert_gt(fread(text, 1, 65535, f), 0);
	fclose(f);
	return text;
}

/* Replaces the values of all keys by #: they count something, or differ for
 * another good reason. */
static void blank_values(char *text)
{
	for (char *line = text; line; line = strchr(line, '\n')) {
		char *colon;

		line += *line == '\n';
		colon = strstr(line, ": ");
		if (colon && colon < line + strcspn(line, "\n"))
			memset(colon + 2, '#', strcspn(colon + 2, "\n"));
	}
}

/* Returns the part of @text from line @from to before line @to, or to the end.
 */
static char *part(const char *text, const char *from, const char *to)
{
	const char *start = strstr(text, from);
	const char *end = start && to ? strstr(start, to) : NULL;

	cr_assert_not_null(start);
	return end ? strndup(start, (size_t)(end - start)) : strdup(start);
}

Test(import, kernel_export)
{
	struct rig rig = rig_open();
	char *file = golden("export.yaml");
	struct result r;
	char *nets, *expected, *global;

	import_ok(&rig, "add", file);
	/* The settings have the same values. */
	r = ask(&rig, "export:");
	cr_assert_eq(r.status, 0);
	global = part(file, "global:\n", NULL);
	cr_assert(strstr(r.out, global), "%s", r.out);
	free(global);
	/* The nets have the same keys and values, but for counts of messages.
	 */
	nets = part(r.out, "net:\n", "global:\n");
	expected = part(file, "net:\n", "peer:\n");
	for (char *p = expected; (p = strstr(p, "    send_count: 1\n"));)
		memcpy(p, "    send_count: 0", 17);
	for (char *p = expected; (p = strstr(p, "    recv_count: 1\n"));)
		memcpy(p, "    recv_count: 0", 17);
	for (char *p = expected; (p = strstr(p, "    get: 1\n"));)
		memcpy(p, "    get: 0", 10);
	cr_assert_str_eq(nets, expected);
	free(nets);
	free(expected);
	free(file);
	result_free(&r);
	rig_close(&rig);
}

Test(import, kernel_show)
{
	struct rig rig = rig_open();
	char *file = golden("net-show-4.yaml"), *peers;
	struct result r;

	import_ok(&rig, "add", file);
	r = ask(&rig, "net show: {verbose: 4}");
	blank_values(file);
	blank_values(r.out);
	cr_assert_str_eq(r.out, file);
	result_free(&r);
	free(file);

	r = ask(&rig, "ping: {nids: 10.77.0.3@tcp}");
	result_free(&r);
	/* The ping above has failed, which has cost the peer health. */
	ask_out(&rig, "peer set: {all: true, health: 1000}", "");
	file = golden("peer-show-4.yaml");
	r = ask(&rig, "peer show: {verbose: 4}");
	peers = strdup(r.out);
	import_ok(&rig, "add", peers);
	blank_values(file);
	blank_values(peers);
	cr_assert_str_eq(peers, file);
	free(peers);
	free(file);
	result_free(&r);
	rig_close(&rig);
}

/* A node that imports what another node exports has the same configuration. */
Test(import, round_trip)
{
	static const char *const exports[] = { "export: {backup: true}",
					       "export:" };
	struct rig a = rig_open();
	char *state;

	ask_out(&a, "net add: {net: tcp, interfaces: [eth3, eth1], nagle: 1}",
		"");
	ask_out(&a, "net add: {net: tcp7, interfaces: eth1, credits: 99}", "");
	ask_out(&a, "set: {transaction_timeout: 30, retry_count: 1}", "");
	state = rig_state(&a);
	for (unsigned int i = 0; i < ARRAY_SIZE(exports); i++) {
		struct rig b = rig_open();
		struct result r = ask(&a, exports[i]);
		char *same;

		import_ok(&b, "add", r.out);
		same = rig_state(&b);
		cr_assert_str_eq(same, state);
		free(same);
		/* Deleting what is in the same file removes it all. */
		import_ok(&b, "del", r.out);
		result_free(&r);
		ask_out(&b, "net show: {net: tcp}", "");
		ask_out(&b, "net show: {net: tcp7}", "");
		rig_close(&b);
	}
	free(state);
	rig_close(&a);
}

Test(import, errors)
{
	struct rig rig = rig_open();

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	import_fail(&rig, "add", "net: [\n", -22, "line 2, column 1: ");
	import_fail(&rig, "add", "[net]\n", -22, "not a mapping");
	import_fail(&rig, "add", "a: 1\na: 2\n", -22, "key 'a' comes twice");
	import_fail(&rig, "add", "global: {retry_count: 3}\nfrob: 1\n", -22,
		    "line 2, column 7: unknown key 'frob'");
	import_fail(&rig, "add", "net: {net type: tcp}\n", -22,
		    "line 1, net 1: local NI(s) is missing");
	import_fail(&rig, "add", "net: tcp\n", -22, "a mapping is expected");
	import_fail(&rig, "add", "net:\n- net tpye: tcp\n", -22,
		    "line 2, net 1: unknown key 'net tpye'");
	import_fail(&rig, "add", "net:\n- {}\n", -22, "net type is missing");
	import_fail(&rig, "add", "net:\n- net type: tpc\n", -2,
		    "cannot parse net 'tpc'");
	import_fail(&rig, "add", "net:\n- net type: tcp1\n", -22,
		    "local NI(s) is missing");
	import_fail(&rig, "add",
		    "net:\n- net type: tcp1\n  local NI(s):\n"
		    "  - interface: eth1\n",
		    -22, "line 4, net 1: unknown key 'interface'");
	import_fail(&rig, "add",
		    "net:\n- net type: tcp1\n  local NI(s):\n"
		    "  - interfaces: {0: eth1}\n    tunables: {creds: 1}\n",
		    -22, "unknown tunable 'creds': 'credits' may be meant");
	import_fail(&rig, "add",
		    "net:\n- net type: tcp1\n  local NI(s):\n"
		    "  - interfaces: {0: eth1}\n    CPT: \"1-\"\n",
		    -22, "cannot parse CPTs '1-'");
	import_fail(&rig, "add", "global:\n  retry_count: x\n", -22,
		    "line 2, column 16: retry_count: a number is expected");
	import_fail(&rig, "add", "global:\n  retry_cuont: 1\n", -22,
		    "unknown setting 'retry_cuont'");
	import_fail(&rig, "add", "global:\n  retry_count: -3\n", -22,
		    "-3 is not in 0..");
	import_fail(&rig, "bogus", "net:\n", -22, "add, del, show or exec");
	ask_fail(&rig, "import: {mode: add}", -22, "text is missing");
	rig_close(&rig);
}

/* If a setting comes several times in a file the last value counts, even if it
 * is the one that the node has. */
Test(import, last_value)
{
	struct rig rig = rig_open();
	char *before = rig_state(&rig), *after;

	import_ok(&rig, "add",
		  "global: {retry_count: 5}\nglobal2: {retry_count: 2}\n");
	after = rig_state(&rig);
	cr_assert_str_eq(after, before);
	import_ok(&rig, "add",
		  "global: {retry_count: 5}\nglobal2: {retry_count: 2}\n"
		  "global3: {retry_count: 4}\n");
	free(after);
	after = rig_state(&rig);
	cr_assert(strstr(after, "    retry_count: 4\n"), "%s", after);
	free(before);
	free(after);
	rig_close(&rig);
}

/* health_sensitivity of a route, as some kernel nodes export it, is ignored
 * with a note. */
Test(import, route_sensitivity)
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
Test(import, cpts)
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

/* A file of a later release: each unknown key is ignored, with one note. */
Test(import, later_release)
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

/* Of the rules for this host that have the same net, the first counts. */
Test(import, first_rule)
{
	struct rig rig = rig_open();
	char *state;

	import_ok(&rig, "add",
		  "ip2nets:\n"
		  "- {net-spec: tcp7, interfaces: eth4, ip-range: 127.9.9.9}\n"
		  "- {net-spec: elan0, interfaces: x, ip-range: 127.9.9.9}\n"
		  "- {net-spec: tcp7, interfaces: eth2, ip-range: 127.0.0.1}\n"
		  "- {net-spec: tcp8, interfaces: eth2, ip-range: 127.0.0.1}\n"
		  "- {net-spec: tcp7, ip-range: {0: 127.0.0.1}}\n");
	state = rig_state(&rig);
	cr_assert(strstr(state, "net type: tcp7"), "%s", state);
	cr_assert(strstr(state, "net type: tcp8"), "%s", state);
	cr_assert(strstr(state, "0: eth2"), "%s", state);
	cr_assert_null(strstr(state, "0: eth4"), "%s", state);
	free(state);
	rig_close(&rig);
}

/* Settings that kernel nodes do not have are in a section of their own, behind
 * what kernel nodes read; older files have them in "global". */
Test(import, settings_of_ours)
{
	struct rig rig = rig_open();
	struct result r;
	char *state = rig_state(&rig);

	cr_assert_null(strstr(state, "ulnet:"));
	cr_assert_null(strstr(state, "health_gain"));
	free(state);
	import_ok(&rig, "add", "global: {health_gain: 7, retry_count: 4}");
	import_ok(&rig, "add", "ulnet: {busy_poll: 20}");
	import_fail(&rig, "add", "ulnet: {busy_pol: 20}", -EINVAL,
		    "unknown setting 'busy_pol': 'busy_poll' may be meant");
	state = rig_state(&rig);
	cr_assert(strstr(state, "    max_recovery_ping_interval: 900\n"
				"ulnet:\n"
				"    health_gain: 7\n"
				"    busy_poll: 20\n"),
		  "%s", state);
	free(state);
	r = ask(&rig, "export: {kernel: true}");
	cr_assert(strstr(r.out, "    retry_count: 4\n"), "%s", r.out);
	cr_assert_null(strstr(r.out, "ulnet"), "%s", r.out);
	cr_assert_null(strstr(r.out, "health_gain"), "%s", r.out);
	result_free(&r);
	ask_fail(&rig, "export: {kernel: true, dot: true}", -EINVAL,
		 "a drawing is no backup");
	rig_close(&rig);
}

/* An unknown key that resembles a known one is an error. */
Test(import, misspelt)
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
Test(import, many_unknown_keys)
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

/* A setting that has no effect in kernel nodes of today is ignored here, too,
 * with a note. */
Test(import, no_effect)
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

Test(import, nothing_to_import)
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

/* The first net of a node, which names it, is still the first one after a file
 * that was to delete it has failed. */
Test(import, nets_keep_their_order)
{
	struct rig rig = rig_open();

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0, eth1]}", "");
	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth2]}", "");
	import_fail(&rig, "del",
		    "net: [{net type: tcp}]\n"
		    "route: [{net: tcp9, gateway: 10.0.0.1@tcp}]\n",
		    -ENOENT, "route 1: ");
	rig_close(&rig);
}

/* A step fails after others have been done, which are undone. */
Test(import, atomic)
{
	static const char good[] = "net:\n"
				   "- net type: tcp\n"
				   "  local NI(s):\n"
				   "  - interfaces: {0: eth1}\n"
				   "    seq_no: 1\n"
				   "    tunables: {credits: 50}\n"
				   "- net type: tcp1\n"
				   "  local NI(s):\n"
				   "  - interfaces: {0: eth2, 1: eth3}\n"
				   "    seq_no: 2\n"
				   "global: {retry_count: 7}\n";
	char bad[1024];
	struct rig rig = rig_open();
	struct result r;

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0], nagle: 1}", "");
	snprintf(bad, sizeof(bad),
		 "%snetwork:\n- net type: tcp\n"
		 "  local NI(s):\n  - interfaces: {0: eth4}\n"
		 "  - interfaces: {0: nic0}\n    seq_no: 77\n",
		 good);
	import_fail(&rig, "add", bad, -100,
		    "      seq_no: 77\n      errno: -100\n      descr: ! "
		    "\"line 16, net 1: cannot add network tcp(nic0): no such "
		    "interface\"\n");
	import_fail(&rig, "add",
		    "net:\n- net type: tcp\n  local NI(s):\n"
		    "  - interfaces: {0: eth1}\n- net type: tcp\n"
		    "  local NI(s):\n  - interfaces: {0: eth0}\n",
		    -17, "line 7, net 2: ");
	r = import(&rig, "add", good);
	cr_assert_eq(r.status, 0, "%s", r.answer);
	/* An NI with two interfaces becomes two NIs, with a note. */
	cr_assert_str_eq(r.err, "# tcp1: 2 interfaces of one NI become one "
				"NI each\n");
	result_free(&r);
	r = import(&rig, "add", "global:\n  use_tcp_bonding: 1\n");
	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert(strstr(r.err, "# use_tcp_bonding: each interface has an NI"),
		  "%s", r.err);
	result_free(&r);
	import_fail(&rig, "add", "global:\n  use_tcp_bonding: 2\n", -22,
		    "line 2, column 20: use_tcp_bonding: 2 is not in "
		    "0..1");
	import_fail(&rig, "add",
		    "net:\n- net type: tcp3\n  local NI(s):\n"
		    "  - interfaces: {0: eth2}\n    tcp bonding: 7\n",
		    -22, "line 5, net 1: ");
	/* Deleting a net that does not exist fails, and restores the ones
	 * deleted before. */
	import_fail(&rig, "del",
		    "net:\n- net type: tcp\n- net type: tcp1\n"
		    "- net type: tcp2\n",
		    -22, "line 4, net 3: cannot del network: no tcp2");
	import_fail(&rig, "del", "net:\n- net type: tcp\n- net type: tcp\n",
		    -22, "line 3, net 2: ");
	rig_close(&rig);
}

Test(import, del)
{
	struct rig rig = rig_open();

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0, eth1, eth2]}",
		"");
	import_ok(&rig, "del",
		  "net:\n- net type: tcp\n  local NI(s):\n"
		  "  - nid: 10.77.0.3@tcp\n  - interfaces: {0: eth2}\n"
		  "- net type: lo\n");
	ask_out(&rig, "net show: {net: tcp}",
		"net:\n"
		"-     net type: tcp\n"
		"      local NI(s):\n"
		"      -     nid: 10.77.0.2@tcp\n"
		"            status: up\n"
		"            interfaces:\n"
		"                  0: eth0\n");
	import_ok(&rig, "del", "net:\n- net type: tcp\n");
	ask_out(&rig, "net show: {net: tcp}", "");
	rig_close(&rig);
}

Test(import, show_and_exec)
{
	struct rig rig = rig_open();
	struct result r;

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	import_ok(&rig, "add", "numa: {range: 3}\n");
	r = import(&rig, "show",
		   "net:\n- net type: tcp\n- net type: lo\n"
		   "global:\nstatistics:\n");
	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_eq(strncmp(r.out, "net:\n-     net type: tcp\n", 25), 0);
	cr_assert(strstr(r.out, "global:\n    numa_range: 3\n"));
	cr_assert(strstr(r.out, "statistics:\n    msgs"));
	result_free(&r);
	r = import(&rig, "show", "statistics: {}\n");
	cr_assert_eq(strncmp(r.out, "statistics:\n    msgs", 20), 0);
	result_free(&r);

	r = import(&rig, "exec",
		   "net:\n- net type: tcp9\nping:\n- primary nid: 0@lo\n"
		   "- {nids: [10.77.0.98@tcp], timeout: 2}\n");
	cr_assert_eq(r.status, -EHOSTUNREACH);
	cr_assert(strstr(r.out, "ping:\n- primary nid: 10.77.0.2@tcp\n"));
	cr_assert(strstr(r.err, "manage:\n- ping:\n"));
	result_free(&r);
	r = import(&rig, "exec", "discover:\n- {nid: 0@lo, force: 1}\n");
	cr_assert_eq(r.status, -EINVAL);
	cr_assert(strstr(r.err, "failed to discover 0@lo"));
	result_free(&r);
	r = import(&rig, "exec", "discover: [{nid: 0@lo, bogus: 1}]\n");
	cr_assert_eq(r.status, -EINVAL);
	cr_assert(strstr(r.err, "unknown key ''bogus''"));
	result_free(&r);
	rig_close(&rig);
}

/* A large file, with 5000 peers. */
Test(import, many_peers)
{
	struct rig rig = rig_open();
	char *text = malloc(5000 * 80), *p = text, *before, *after;

	p += sprintf(p, "peer:\n");
	for (int i = 0; i < 5000; i++)
		p += sprintf(p, "- primary nid: 10.1.%d.%d@tcp\n", i / 250,
			     i % 250 + 1);
	import_ok(&rig, "add", text);
	before = rig_state(&rig);
	import_ok(&rig, "del", text);
	import_ok(&rig, "add", text);
	after = rig_state(&rig);
	cr_assert_str_eq(after, before);
	cr_assert(strstr(before, "10.1.19.250@tcp"));
	free(before);
	free(after);
	free(text);
	rig_close(&rig);
}

/* Rules of several kinds keep the order in which they were added. */
Test(import, faults)
{
	static const char rules[] = "fault:\n"
				    "-     rule_type: delay\n"
				    "      source: \"*\"\n"
				    "      dest: 10.77.0.9@tcp\n"
				    "      local_nid: \"*\"\n"
				    "      message:\n"
				    "      - PUT\n"
				    "      - GET\n"
				    "      interval: 0.25\n"
				    "      latency: 1.5\n"
				    "-     rule_type: error\n"
				    "      source: \"*@tcp\"\n"
				    "      dest: \"*\"\n"
				    "      local_nid: 10.77.0.2@tcp\n"
				    "      portal:\n"
				    "      - 4\n"
				    "      - 63\n"
				    "      rate: 3\n"
				    "      random: true\n"
				    "      health_error:\n"
				    "      - local_error\n"
				    "      - remote_timeout\n"
				    "-     rule_type: delay\n"
				    "      source: \"*\"\n"
				    "      dest: \"*\"\n"
				    "      local_nid: \"*\"\n"
				    "      rate: 1\n"
				    "      latency: 2\n";
	struct rig rig = rig_open();
	char *state, *part;

	import_ok(&rig, "add", rules);
	state = rig_state(&rig);
	part = strstr(state, "fault:\n");
	cr_assert_not_null(part);
	cr_assert_str_eq(part, rules);
	import_fail(&rig, "add", rules, -EEXIST,
		    "fault 1: cannot add fault rule: there is this rule "
		    "already");
	/* A rule with an error undoes the rules before it, and so do errors
	 * that come after it. */
	import_fail(&rig, "add",
		    "fault:\n"
		    "- {rule_type: drop, rate: 1}\n"
		    "- {rule_type: drop, rate: 1, latency: 3}\n",
		    -EINVAL, "line 3, fault 2: drop: latency is not for");
	import_fail(&rig, "add",
		    "fault: [{rule_type: drop, rate: 1}]\n"
		    "net: [{net type: tcp, local NI(s): "
		    "[{interfaces: {0: eth9}}]}]\n",
		    -ENETDOWN, "eth9");
	import_fail(&rig, "del",
		    "fault:\n"
		    "- {rule_type: delay, dest: 10.77.0.9@tcp, rate: 1, "
		    "latency: 1}\n"
		    "- {rule_type: drop, rate: 1}\n",
		    -ENOENT, "fault 2: cannot del fault rule");
	import_fail(&rig, "add", "fault: [{rule_type: rob, rate: 1}]\n",
		    -EINVAL, "rule_type: unknown: 'rob'");
	import_fail(&rig, "add", "fault: [{rule_type: drop, rat: 1}]\n",
		    -EINVAL, "unknown key 'rat'");
	import_ok(&rig, "del", rules);
	import_ok(&rig, "add", state);
	free(state);
	state = rig_state(&rig);
	cr_assert_str_eq(strstr(state, "fault:\n"), rules);
	free(state);
	rig_close(&rig);
}

/* A backup of a kernel node with two rails, and a peer with two NIDs. */
Test(import, kernel_backup)
{
	static const char backup[] =
		"net:\n"
		"-     net type: tcp\n"
		"      local NI(s):\n"
		"      -     interfaces:\n"
		"                  0: eth0\n"
		"            tunables:\n"
		"                  peer_timeout: 180\n"
		"                  peer_credits: 8\n"
		"                  peer_buffer_credits: 0\n"
		"                  credits: 256\n"
		"            lnd tunables:\n"
		"                  conns_per_peer: 1\n"
		"                  timeout: 49\n"
		"                  tos: -1\n"
		"            CPT: \"[0,1]\"\n"
		"peer:\n"
		"-     primary nid: 10.77.0.98@tcp\n"
		"      Multi-Rail: true\n"
		"      peer ni:\n"
		"      -     nid: 10.77.0.98@tcp\n"
		"      -     nid: 10.77.0.99@tcp\n"
		"global:\n"
		"    numa_range: 0\n"
		"    max_interfaces: 200\n"
		"    discovery: 1\n"
		"    drop_asym_route: 0\n"
		"    retry_count: 2\n"
		"    transaction_timeout: 150\n"
		"    health_sensitivity: 100\n"
		"    recovery_interval: 1\n"
		"    router_sensitivity: 100\n"
		"    lnd_timeout: 49\n"
		"    response_tracking: 3\n"
		"    recovery_limit: 0\n"
		"    max_recovery_ping_interval: 900\n";
	struct rig rig = rig_open();

	import_ok(&rig, "add", backup);
	ask_out(&rig, "peer show: {nid: 10.77.0.99@tcp}",
		"peer:\n"
		"-     primary nid: 10.77.0.98@tcp\n"
		"      Multi-Rail: true\n"
		"      peer ni:\n"
		"      -     nid: 10.77.0.98@tcp\n"
		"            state: NA\n"
		"      -     nid: 10.77.0.99@tcp\n"
		"            state: NA\n");
	rig_close(&rig);
}

/* Files that kernel nodes print can all be imported, and their contents are
 * then shown. */
Test(import, kernel_shapes)
{
	static const struct {
		const char *file;
		const char *request, *expected;
	} shapes[] = {
		{ "net-show-4.yaml", "net show:", "nid: 10.77.0.2@tcp\n" },
		{ "global-show.yaml",
		  "global show:", "transaction_timeout: 150\n" },
		{ "peer-discovered-2.yaml", "global show:", "" },
		{ "peer-discovered-3.yaml", "global show:", "" },
		{ "peer-show-4.yaml", "global show:", "" },
		{ "stats-show.yaml", "global show:", "" },
		{ "discover.yaml", "global show:", "" },
		{ "ping-3.yaml", "global show:", "" },
		{ "route-show.yaml",
		  "route show:", "net: tcp2\n      gateway: 10.77.0.4@tcp1\n" },
		{ "routing-show.yaml", "routing show:", "large: 1024\n" },
		{ "routing-show.yaml", "routing show:", "enable: 1\n" },
		{ "peer-route-global.yaml", "peer show: {nid: 10.77.1.4@tcp2}",
		  "primary nid: 10.77.0.4@tcp1\n" },
		{ "peer-route-global.yaml", "peer show: {nid: 10.77.1.3@tcp2}",
		  "      -     nid: 10.77.1.3@tcp2\n" },
		{ "peer-route-global.yaml", "route show:", "net: tcp2\n" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct rig rig = rig_open();
		char *file = golden(shapes[i].file);
		struct result r;

		/* A route needs an interface on the net of its gateway. */
		if (strcmp(shapes[i].file, "net-show-4.yaml") != 0)
			ask_out(&rig,
				"net add: {net: tcp1, interfaces: [eth1]}", "");
		import_ok(&rig, "add", file);
		r = ask(&rig, shapes[i].request);
		cr_assert_eq(r.status, 0, "%s: %s", shapes[i].file, r.err);
		cr_assert(strstr(r.out, shapes[i].expected), "%s: %s",
			  shapes[i].file, r.out);
		result_free(&r);
		free(file);
		rig_close(&rig);
	}
}

/* Removes the values of all keys "state". No gateway answers through the stub
 * LND, so they differ from those of a kernel node; all else is compared line by
 * line. */
static void cut_states(char *text)
{
	while ((text = strstr(text, " state: "))) {
		text += sizeof(" state: ") - 1;
		memmove(text, strchr(text, '\n'),
			strlen(strchr(text, '\n')) + 1);
	}
}

static void shows(struct rig *rig, const char *request, const char *expected)
{
	char *wanted = strdup(expected);
	struct result r = ask(rig, request);

	cr_assert_eq(r.status, 0, "%s", r.answer);
	cut_states(wanted);
	cut_states(r.out);
	cr_assert_str_eq(r.out, wanted);
	free(wanted);
	result_free(&r);
}

Test(import, kernel_routes)
{
	static const char *const peers[] = { "10.77.0.4@tcp1", "10.77.1.3@tcp2",
					     "10.77.0.2@tcp1" };
	struct rig rig = rig_open();
	char *file = golden("route-show.yaml"), *text, *end;

	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth1]}", "");
	import_ok(&rig, "add", file);
	shows(&rig, "route show: {verbose: 1}", file);
	free(file);
	file = golden("routing-show.yaml");
	import_ok(&rig, "add", file);
	shows(&rig, "routing show:", file);
	free(file);
	rig_close(&rig);

	rig = rig_open();
	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth1]}", "");
	file = golden("peer-route-global.yaml");
	import_ok(&rig, "add", file);
	text = part(file, "route:\n", "global:\n");
	shows(&rig, "route show: {verbose: 1}", text);
	free(text);
	/* The peers are compared one by one, as their order differs. */
	end = strstr(file, "route:\n");
	*end = '\0';
	for (unsigned int i = 0; i < ARRAY_SIZE(peers); i++) {
		char first[64], request[64], whole[512];

		snprintf(first, sizeof(first), "-     primary nid: %s\n",
			 peers[i]);
		text = part(file, first, NULL);
		end = strstr(text + 1, "\n- ");
		if (end)
			end[1] = '\0';
		snprintf(request, sizeof(request), "peer show: {nid: %s}",
			 peers[i]);
		snprintf(whole, sizeof(whole), "peer:\n%s", text);
		shows(&rig, request, whole);
		free(text);
	}
	free(file);
	rig_close(&rig);
}

/* A kernel node that has sent messages to itself lists itself as a peer: that
 * entry is ignored with a note. */
Test(import, kernel_self)
{
	struct rig rig = rig_open();
	char *file = golden("peer-route-global.yaml");
	struct result r;

	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth0]}", "");
	r = import(&rig, "add", file);
	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_str_eq(
		r.err,
		"# peer 10.77.0.2@tcp1 is this node itself: not added\n");
	result_free(&r);
	/* Deleting it is ignored as well, even though the NI with that NID is
	 * deleted before. */
	r = import(&rig, "del",
		   "net: [{net type: tcp1, local NI(s): [{nid: "
		   "10.77.0.2@tcp1}]}]\n"
		   "peer: [{primary nid: 10.77.0.2@tcp1}]");
	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_str_eq(r.err, "# peer 10.77.0.2@tcp1 is this node itself: "
				"not deleted\n");
	result_free(&r);
	ask_fail(&rig, "peer del: {prim_nid: 10.77.0.2@tcp1}", -ENOENT,
		 "no such peer was configured");
	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth0]}", "");
	/* No other peer may have a NID of this node, and a command cannot add
	 * the node itself as a peer. */
	r = import(&rig, "add",
		   "peer: [{primary nid: 10.77.0.9@tcp1, peer ni: [{nid: "
		   "10.77.0.2@tcp1}]}]");
	cr_assert_eq(r.status, -EINVAL, "%s", r.answer);
	result_free(&r);
	ask_fail(&rig, "peer add: {prim_nid: 10.77.0.2@tcp1}", -EINVAL,
		 "that is a NID of this node");
	free(file);
	rig_close(&rig);
	/* An error after the ignored peer undoes everything. */
	rig = rig_open();
	ask_out(&rig, "net add: {net: tcp1, interfaces: [eth0]}", "");
	import_fail(&rig, "add",
		    "peer: [{primary nid: 10.77.0.2@tcp1}]\n"
		    "route: [{net: tcp5, gateway: 10.77.0.3@tcp7}]",
		    -EHOSTUNREACH, "No interface configured");
	rig_close(&rig);
}

/* Files with nothing but statistics, answers or defaults leave the node
 * unchanged. */
Test(import, kernel_output_without_configuration)
{
	static const char *const files[] = { "stats-show.yaml", "discover.yaml",
					     "ping.yaml", "peer-show-4.yaml",
					     "peer-discovered-3.yaml" };
	struct rig rig = rig_open();
	char *before = rig_state(&rig), *after;

	for (unsigned int i = 0; i < ARRAY_SIZE(files); i++) {
		char *file = golden(files[i]);

		import_ok(&rig, "add", file);
		free(file);
	}
	after = rig_state(&rig);
	cr_assert_str_eq(after, before);
	free(before);
	free(after);
	rig_close(&rig);
}

/* The fuzzer's seeds that are meant to reach far can be imported without an
 * error. */
Test(import, fuzz_seeds)
{
	static const char *const seeds[] = { "import-backup", "import-ip2nets",
					     "import-udsp-fault" };

	for (unsigned int i = 0; i < ARRAY_SIZE(seeds); i++) {
		struct rig rig = rig_open();
		char name[64], *seed;
		struct result r;

		snprintf(name, sizeof(name), "../fuzz/corpus/yaml/%s",
			 seeds[i]);
		seed = golden(name);
		ask_out(&rig, "net add: {net: tcp9, interfaces: [eth7]}", "");
		if (i > 0)
			ask_out(&rig, "net add: {net: tcp, interfaces: [eth4]}",
				"");
		r = import(&rig, "add", seed + 1);
		cr_assert_eq(r.status, 0, "%s: %s", seeds[i], r.answer);
		result_free(&r);
		free(seed);
		rig_close(&rig);
	}
}

/* ---- shapes ---- */

/* Sections, and lists in them, in each form that files have. */
Test(import, shapes)
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
Test(import, old_shapes_refused)
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
