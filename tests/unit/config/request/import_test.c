/* SPDX-License-Identifier: BSD-3-Clause */
/* What a file says is imported and exported again; a file with an error changes
 * nothing. */
#include "tests/unit/config/rig.h"
#include "ulnet/route.h"

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
		seed = config_file(name);
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
