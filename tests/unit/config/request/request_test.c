/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands: what they do, what they print, and what they say when they fail. */
#include "tests/unit/config/rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ulnet/loop.h"

#define LO_ONLY                   \
	"net:\n"                  \
	"-     net type: lo\n"    \
	"      local NI(s):\n"    \
	"      -     nid: 0@lo\n" \
	"            status: up\n"
#define NI(nid, interface)           \
	"      -     nid: " nid "\n" \
	"            status: up\n"   \
	"            interfaces:\n"  \
	"                  0: " interface "\n"
#define NET(net)                    \
	"-     net type: " net "\n" \
	"      local NI(s):\n"

Test(request, nets)
{
	struct rig rig = rig_open();

	ask_out(&rig, "net show:", LO_ONLY);
	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	ask_out(&rig, "net add: {net: tcp1, interfaces: \"eth1, eth2\"}", "");
	ask_out(&rig, "net add: {net: tcp, nid: 10.77.0.6@tcp}", "");
	ask_out(&rig, "net show: {verbose: 0}",
		LO_ONLY NET("tcp") NI("10.77.0.2@tcp", "eth0")
			NI("10.77.0.6@tcp", "eth4") NET("tcp1")
				NI("10.77.0.3@tcp1", "eth1")
					NI("10.77.0.4@tcp1", "eth2"));
	ask_out(&rig, "net show: {net: tcp9}", "");
	ask_out(&rig, "net del: {net: tcp1, interface: eth2}", "");
	ask_out(&rig, "net del: {nid: 10.77.0.2@tcp}", "");
	ask_out(&rig, "net show: {net: tcp1}",
		"net:\n" NET("tcp1") NI("10.77.0.3@tcp1", "eth1"));
	ask_out(&rig, "net del: {net: tcp}", "");
	ask_out(&rig, "net del: {net: tcp1, interfaces: [10.77.0.3]}", "");
	ask_out(&rig, "net show:", LO_ONLY);
	rig_close(&rig);
}

struct going {
	struct lnet_cpt *cpt;
	unsigned int ni;
};

static int goes_down(void *arg)
{
	const struct going *g = arg;

	lnet_ni_set_up(&g->cpt->config->ni[1 + g->ni]->lnd, false, "it burns");
	return 0;
}

static int goes_up(void *arg)
{
	const struct going *g = arg;

	lnet_ni_set_up(&g->cpt->config->ni[1 + g->ni]->lnd, true, NULL);
	return 0;
}

static void ni_goes(struct rig *rig, unsigned int ni, int (*how)(void *))
{
	struct going g = { rig->node->cpt[0], ni };

	cr_assert_eq(loop_call(g.cpt->loop, how, &g), 0);
}

/* Checks that the output for net tcp begins with @lines. */
static void net_is(struct rig *rig, const char *lines)
{
	struct result r = ask(rig, "net show: {net: tcp, verbose: 5}");

	cr_assert_eq(strncmp(r.out, lines, strlen(lines)), 0, "%s", r.out);
	result_free(&r);
}

Test(request, states_of_nets)
{
	struct rig rig = rig_open();

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0, eth1]}", "");
	ask_out(&rig, "net set: {nid: 10.77.0.2@tcp, health: 700}", "");
	net_is(&rig, "net:\n-     net type: tcp\n"
		     "      state name: active\n"
		     "      health value: 1000\n"
		     "      statistics:\n"
		     "            send_count: 0\n");
	ni_goes(&rig, 1, goes_down);
	net_is(&rig, "net:\n-     net type: tcp\n"
		     "      state name: active\n"
		     "      health value: 700\n");
	ni_goes(&rig, 0, goes_down);
	net_is(&rig, "net:\n-     net type: tcp\n"
		     "      state name: inactive\n"
		     "      health value: 0\n");
	rig_close(&rig);
}

/* Does the answer to @request have all of @lines? */
static void has_lines(struct rig *rig, const char *request,
		      const char *const *lines)
{
	struct result r = ask(rig, request);

	for (; *lines; lines++)
		cr_expect(strstr(r.out, *lines), "no %s in %s", *lines, r.out);
	result_free(&r);
}

/* Events of interfaces are counted (seed 000); that one is down already, or up,
 * is none. */
Test(request, events_of_interfaces)
{
	static const char *const went[] = {
		"\n                  down events: 2\n",
		"\n                  up events: 1\n", NULL
	};
	static const char *const stats[] = { "\n    interface_downs: 2\n",
					     "\n    interface_ups: 1\n", NULL };
	static const char *const none[] = {
		"\n                  down events: 0\n",
		"\n                  up events: 0\n", NULL
	};
	static const char *const reset[] = { "\n    interface_downs: 0\n",
					     "\n    interface_ups: 0\n", NULL };
	struct rig rig = rig_open();

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	ni_goes(&rig, 0, goes_up);
	ni_goes(&rig, 0, goes_down);
	ni_goes(&rig, 0, goes_down);
	ni_goes(&rig, 0, goes_up);
	ni_goes(&rig, 0, goes_down);
	has_lines(&rig, "net show: {net: tcp, verbose: 5}", went);
	has_lines(&rig, "stats show:", stats);
	ask_out(&rig, "stats reset:", "");
	has_lines(&rig, "net show: {net: tcp, verbose: 5}", none);
	has_lines(&rig, "stats show:", reset);
	rig_close(&rig);
}

static void numa_node_is(const char *dir, unsigned int node, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/node%u", dir, node);
	cr_assert_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/node%u/distance", dir, node);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
}

static void numa_node_gone(const char *dir, unsigned int node)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/node%u/distance", dir, node);
	cr_assert_eq(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/node%u", dir, node);
	cr_assert_eq(rmdir(path), 0);
}

/* What an NI's device is near to (seed 002). Machines without several NUMA
 * nodes have none; numbers of nodes may have gaps. */
Test(request, numa)
{
	static const char *const shown[] = {
		"\n            numa:\n                  node: 3\n"
		"                  distances:\n                        0: 31\n"
		"                        3: 10\n",
		NULL
	};
	char dir[] = "/tmp/ulnet-numa.XXXXXX";
	struct node_params p = { .lnds = open_lnds,
				 .lnd = &stub_lnd,
				 .numa_dir = dir };
	struct rig rig = rig_open();
	struct result r;

	cr_assert_not_null(mkdtemp(dir));
	numa_node_is(dir, 0, "10 31\n");
	numa_node_is(dir, 3, "31 10\n");
	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	r = ask(&rig, "net show: {net: tcp, verbose: 5}");
	cr_assert(!strstr(r.out, "numa"), "%s", r.out);
	result_free(&r);
	cr_assert_eq(lnet_numa_here(rig.node), -1);
	rig_close(&rig);

	lnet_conf_init(&p.conf);
	p.conf.cpts = 1;
	cr_assert_eq(node_open(&p, &rig.node), 0);
	cr_assert_eq(lnet_control_start(rig.node, NULL, &rig.control), 0);
	cr_assert_geq(lnet_numa_here(rig.node), 0);
	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	net_node(rig.node)->config->ni[1]->lnd.numa_node = 3;
	has_lines(&rig, "net show: {net: tcp, verbose: 5}", shown);
	rig_close(&rig);
	numa_node_gone(dir, 0);
	numa_node_gone(dir, 3);
	cr_assert_eq(rmdir(dir), 0);
}

Test(request, net_errors)
{
	struct rig rig = rig_open();
	char *before, *after;

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	before = rig_state(&rig);
	ask_fail(&rig, "net add: {net: tcp, interfaces: [eth9]}", -100,
		 "---\nadd:\n-     net:\n      errno: -100\n      descr: ! "
		 "\"cannot add network tcp(eth9): no such interface\"\n...\n");
	ask_fail(&rig, "net add: {net: tcp, interfaces: [none]}", -100,
		 "no address");
	ask_fail(&rig, "net add: {net: tpc, interfaces: [eth0]}", -2,
		 "cannot parse net 'tpc'");
	ask_fail(&rig, "net add: {net: eth0@tcp, interfaces: [eth0]}", -2,
		 "cannot parse net 'eth0@tcp': it is a NID on net 'tcp'");
	ask_fail(&rig, "net add: {net: tcp, interfaces: [eth0]}", -17,
		 "File exists");
	/* The first of two NIs is removed again. */
	ask_fail(&rig, "net add: {net: tcp, interfaces: [eth1, eth9]}", -100,
		 "eth9");
	ask_fail(&rig, "net add: {net: lo, interfaces: [eth1]}", -22,
		 "always there");
	ask_fail(&rig, "net add: {net: tcp}", -22, "neither an interface");
	ask_fail(&rig, "net add: {interfaces: [eth1]}", -22, "net is missing");
	ask_fail(&rig, "net add:", -22, "net is missing");
	ask_fail(&rig, "net add: {net: [tcp]}", -22, "a text is expected");
	ask_fail(&rig, "net add: {net: tcp, interfaces: ['eth1[1-0]']}", -22,
		 "is not the name of an interface");
	ask_fail(&rig, "net add: {net: tcp, interfaces: ['eth1[0']}", -22,
		 "is not the name of an interface");
	ask_fail(&rig, "net add: {net: tcp, nid: 10.77.0.3@tcp1}", -22,
		 "another net");
	ask_fail(&rig, "net add: {net: tcp, nid: foo@bar}", -22,
		 "cannot parse NID 'foo@bar'");
	ask_fail(&rig, "net add: {net: tcp, interfaces: [eth1], bogus: 1}", -22,
		 "no such tunable: 'bogus'");
	ask_fail(&rig, "net add: {net: tcp, interfaces: [eth1], tos: 256}", -22,
		 "tos: 256 is not in -1..255");
	ask_fail(&rig, "net add: {net: tcp, interfaces: [eth1], credits: x}",
		 -22, "credits: a number is expected");
	ask_fail(&rig, "net add: {net: tcp, interfaces: [eth1], ip2net: x}",
		 -22,
		 "'net' does not go with ip2net, which names the networks");
	ask_fail(&rig, "net add: {net: tcp, interfaces: [eth1], cpts: '[1'}",
		 -22, "cannot parse CPTs '[1'");
	ask_fail(&rig, "net del: {net: tcp7}", -22, "cannot del network");
	ask_fail(&rig, "net del: {net: tcp, interface: eth3}", -22,
		 "no tcp(eth3)");
	ask_fail(&rig, "net del: {net: lo}", -22, "always there");
	ask_fail(&rig, "net del: {net: tcp, interfaces: []}", -22,
		 "no interface is given");
	ask_fail(&rig, "net show: {net: tpc}", -2, "cannot parse net");
	after = rig_state(&rig);
	cr_assert_str_eq(after, before);
	free(before);
	free(after);
	rig_close(&rig);
}

/* Errors of lnet_ni_add() are passed on, without a place in a text that the
 * user has never seen. */
Test(request, ranges)
{
	static const struct {
		const char *args, *said;
	} cases[] = {
		{ "credits: 1073741824",
		  "\"credits: 1073741824 is not in -1..1073741823\"" },
		{ "credits: -7", "\"credits: -7 is not in -1..1073741823\"" },
		{ "peer_credits: 70000",
		  "\"peer_credits: 70000 is not in -1..65535\"" },
		{ "peer_buffer_credits: 65536",
		  "\"peer_buffer_credits: 65536 is not in -1..65535\"" },
		{ "peer_timeout: x", "\"peer_timeout: a number is expected\"" },
		{ "tos: 256", "\"tos: 256 is not in -1..255\"" },
	};
	struct rig rig = rig_open();
	char request[128];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(request, sizeof(request),
			 "net add: {net: tcp, interfaces: [eth0], %s}",
			 cases[i].args);
		ask_fail(&rig, request, -22, cases[i].said);
	}
	ask_fail(&rig, "net add:", -22, "\"net add: net is missing\"");
	ask_fail(&rig, "ping: {nids: 0@lo, timeout: 0}", -22,
		 "timeout: 0 is not in 1..");
	ask_out(&rig,
		"net add: {net: tcp, interfaces: [eth0], credits: 1073741823, "
		"peer_credits: 65535, peer_buffer_credits: 65535}",
		"");
	rig_close(&rig);
}

Test(request, tunables)
{
	struct rig rig = rig_open_with(2, NULL);

	ask_out(&rig,
		"net add: {net: tcp, interfaces: [eth0], credits: 64, "
		"peer_credits: 4, peer_timeout: 0, peer_buffer_credits: 16, "
		"conns_per_peer: 3, tunables: {nagle: 1}, cpts: '[0-1]'}",
		"");
	ask_out(&rig, "export: {backup: true}",
		"net:\n"
		"-     net type: tcp\n"
		"      local NI(s):\n"
		"      -     interfaces:\n"
		"                  0: eth0\n"
		"            tunables:\n"
		"                  peer_timeout: 0\n"
		"                  peer_credits: 4\n"
		"                  peer_buffer_credits: 16\n"
		"                  credits: 64\n"
		"            lnd tunables:\n"
		"                  conns_per_peer: 3\n"
		"                  timeout: 16\n"
		"                  tos: -1\n"
		"                  nagle: 1\n"
		"            CPT: \"[0,1]\"\n"
		"global:\n"
		"    numa_range: 0\n"
		"    max_interfaces: 200\n"
		"    discovery: 1\n"
		"    drop_asym_route: 0\n"
		"    retry_count: 2\n"
		"    transaction_timeout: 50\n"
		"    health_sensitivity: 100\n"
		"    recovery_interval: 1\n"
		"    router_sensitivity: 100\n"
		"    lnd_timeout: 16\n"
		"    response_tracking: 3\n"
		"    recovery_limit: 0\n"
		"    max_recovery_ping_interval: 900\n");
	rig_close(&rig);
}

/* One interface more than the setting allows: the error names the setting. */
Test(request, too_many_interfaces)
{
	struct rig rig = rig_open();

	ask_out(&rig, "set: {max_interfaces: 1}", "");
	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	ask_fail(&rig, "net add: {net: tcp1, interfaces: [eth1]}", -ENOSPC,
		 "cannot add network tcp1(eth1): there are as many interfaces "
		 "as the setting max_interfaces allows");
	rig_close(&rig);
}

Test(request, malformed)
{
	struct rig rig = rig_open();

	ask_fail(&rig, "", -22, "one key, the command, is expected");
	ask_fail(&rig, "net show", -22, "line 1, column 1: a mapping");
	ask_fail(&rig, "{}", -22, "a mapping with one key");
	ask_fail(&rig, "net show:\nping:\n", -22, "a mapping with one key");
	ask_fail(&rig, "net show: [\n", -22, "line 2, column 1: ");
	ask_fail(&rig, "frob:\n", -22, "unknown command 'frob'");
	ask_fail(&rig, "errno: 1\n", -22, "unknown command 'errno'");
	ask_fail(&rig, "net show:\n  nett: x\n", -22,
		 "line 2, column 9: unknown key 'nett'");
	ask_fail(&rig, "net show: tcp\n", -22,
		 "net show: a mapping is expected");
	ask_fail(&rig, "net show: {verbose: [1]}\n", -22,
		 "verbose: a number is expected");
	ask_fail(&rig, "net show: {verbose: -1}\n", -22, "-1 is not in 0..");
	ask_fail(&rig, "peer show: {nid: 5}\n", -22, "cannot parse NID");
	ask_fail(&rig, "peer show: {nid: x@y}\n", -22, "cannot parse NID");
	ask_fail(&rig, "export: {backup: maybe}\n", -22,
		 "true or false is expected");
	rig_close(&rig);
}

Test(request, cpt_of_nid)
{
	struct rig rig = rig_open();

	ask_out(&rig, "cpt-of-nid: {nids: [10.77.0.3@tcp, 0@lo]}",
		"cpt-of-nid:\n"
		"- nid: 10.77.0.3@tcp\n"
		"  cpt: 0\n"
		"- nid: 0@lo\n"
		"  cpt: 0\n");
	ask_out(&rig, "cpt-of-nid: {nids: '10.77.0.[3-4]@tcp,0@lo'}",
		"cpt-of-nid:\n"
		"- nid: 10.77.0.3@tcp\n"
		"  cpt: 0\n"
		"- nid: 10.77.0.4@tcp\n"
		"  cpt: 0\n"
		"- nid: 0@lo\n"
		"  cpt: 0\n");
	ask_fail(&rig, "cpt-of-nid:", -EINVAL, "nids is missing");
	ask_fail(&rig, "cpt-of-nid: {nids: []}", -EINVAL, "nids is missing");
	/* One bad NID fails the command as a whole. */
	ask_fail(&rig, "cpt-of-nid: {nids: [10.77.0.3@tcp, '*']}", -EINVAL,
		 "cannot parse NID ''*''");
	rig_close(&rig);
}

/* A range of NIDs stands for each of them. */
Test(request, ping_range)
{
	struct rig rig = rig_open();

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	ask_fail(&rig, "ping: {nids: ['10.77.0.[11-12]@tcp', 10.77.0.9@tcp]}",
		 -EHOSTUNREACH, "failed to ping 10.77.0.12@tcp");
	ask_fail(&rig, "ping: {nids: ['10.77.0.[11-12]@tcp', 10.77.0.9@tcp]}",
		 -EHOSTUNREACH, "failed to ping 10.77.0.9@tcp");
	ask_fail(&rig, "ping: {nids: '10.77.[0-9].*@tcp'}", -E2BIG,
		 "ranges of more than 256 NIDs");
	ask_fail(&rig, "ping: {nids: '10.77.0.[3-1]@tcp'}", -EINVAL,
		 "cannot parse NID");
	rig_close(&rig);
}

Test(request, settings)
{
	struct rig rig = rig_open();
	struct result r;

	ask_out(&rig, "set: {retry_count: 3}", "");
	r = ask(&rig, "global show:");
	cr_assert(strstr(r.out, "global:\n    numa_range: 0\n"));
	cr_assert(strstr(r.out, "    retry_count: 3\n"));
	result_free(&r);
	/* These can be set only in the other order, which the command finds. */
	ask_out(&rig, "set: {retry_count: 100, transaction_timeout: 200}", "");
	ask_out(&rig, "set: {transaction_timeout: 40, retry_count: 2}", "");
	/* If one setting fails none is changed. */
	ask_fail(&rig, "set: {transaction_timeout: 41, retry_count: 60}", -61,
		 "add:\n    - retry_count:\n          errno: -61\n"
		 "          descr: \"cannot configure retry count: "
		 "transaction_timeout has to be more than retry_count\"\n");
	r = ask(&rig, "global show:");
	cr_assert(strstr(r.out, "    transaction_timeout: 40\n"), "%s", r.out);
	result_free(&r);
	ask_fail(&rig, "set: {retry_count: many}", -1,
		 "parser:\n    - set:\n          errno: -1\n"
		 "          descr: \"cannot parse retry_count value\"\n");
	ask_fail(&rig, "set: {retry_count: -1}", -61, "Invalid argument");
	ask_fail(&rig, "set: {recovery_interval: 2}", -95,
		 "without effect: the longer an interface is silent");
	ask_out(&rig, "set: {health_sensitivity: 100, routing: 0}", "");
	ask_fail(&rig, "set: {retry_count: 1, routing: 2}", -61, "not in 0..1");
	ask_fail(&rig, "set: {lnd_timeout: 5}", -1,
		 "follows from other settings");
	ask_fail(&rig, "set: {nonsense: 5}", -61, "no such setting");
	ask_fail(&rig, "set: {use_tcp_bonding: 2}", -61, "not in 0..1");
	ask_out(&rig, "set: {use_tcp_bonding: 0}", "");
	r = ask(&rig, "set: {use_tcp_bonding: 1}");
	cr_assert_eq(r.status, 0);
	cr_assert(strstr(r.err, "# use_tcp_bonding: each interface has an NI"),
		  "%s", r.err);
	result_free(&r);
	ask_fail(&rig, "set:", -22, "no setting is given");
	rig_close(&rig);
}

Test(request, ping)
{
	struct rig rig = rig_open();
	struct result r;

	ask_out(&rig, "ping: {nids: [0@lo], timeout: 60}",
		"ping:\n"
		"- primary nid: 0@lo\n"
		"  Multi-Rail: false\n"
		"  peer_ni:\n"
		"  - nid: 0@lo\n");
	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	r = ask(&rig, "ping: {nids: [10.77.0.98@tcp, 0@lo, bad, "
		      "10.77.0.97@tcp], timeout: 1}");
	cr_assert_eq(r.status, -EHOSTUNREACH);
	cr_assert_str_eq(r.out, "ping:\n"
				"- primary nid: 10.77.0.2@tcp\n"
				"  Multi-Rail: false\n"
				"  peer_ni:\n"
				"  - nid: 10.77.0.2@tcp\n");
	cr_assert_str_eq(
		r.err,
		"manage:\n"
		"- ping:\n"
		"  errno: -113\n"
		"  descr: ! 'failed to ping 10.77.0.98@tcp: No route to host'\n"
		"- ping:\n"
		"  errno: -22\n"
		"  descr: ! 'failed to ping bad: that is no NID'\n"
		"- ping:\n"
		"  errno: -110\n"
		"  descr: ! 'failed to ping 10.77.0.97@tcp: Connection timed "
		"out'\n");
	result_free(&r);
	ask_fail(&rig, "ping: {nids: []}", -22, "no NID is given");
	ask_fail(&rig, "ping:", -22, "nids is missing");
	ask_fail(&rig, "ping: {nids: 0@lo, timeout: 0}", -22, "timeout");
	ask_fail(&rig, "ping: {nids: {a: [b]}}", -22, "a text is expected");
	rig_close(&rig);
}

Test(request, ping_from)
{
	struct rig rig = rig_open();

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0, eth1]}", "");
	ask_fail(&rig, "ping: {nids: 0@lo, source: bad}", -22,
		 "cannot parse NID ''bad''");
	ask_fail(&rig, "ping: {nids: 10.77.0.3@tcp, source: 10.77.0.9@tcp}",
		 -22,
		 "failed to ping 10.77.0.3@tcp: the source is no NID of this "
		 "node");
	ask_fail(&rig, "ping: {nids: 0@lo, force: true}", -22,
		 "unknown key ''force''");
	rig_close(&rig);
}

/* A NID with a port, at which the node connects as long as the command takes.
 */
Test(request, ping_at_a_port)
{
	struct rig rig = rig_open();
	struct ulnet_nid nid;

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	ask_fail(&rig, "ping: {nids: [{nid: 10.77.0.98@tcp, port: 7000}]}",
		 -EHOSTUNREACH,
		 "failed to ping 10.77.0.98@tcp: No route to host");
	ask_fail(&rig, "discover: {nids: [{nid: 10.77.0.98@tcp, port: 7001}]}",
		 -EHOSTUNREACH, "failed to discover 10.77.0.98@tcp");
	/* Nothing is left of either port. */
	cr_assert_eq(lnet_nid_parse("10.77.0.98@tcp", &nid), 0);
	cr_assert_eq(
		lnet_peer_port_claim(rig.node, &nid, 7002, LNET_PORT_FOUND), 0);
	ask_fail(&rig, "ping: {nids: [{nid: 10.77.0.98@tcp, port: 7000}]}",
		 -EADDRINUSE,
		 "failed to ping 10.77.0.98@tcp: the node has this NID at "
		 "another port");
	ask_fail(&rig, "ping: {nids: [{nid: 10.77.0.98@tcp, port: 7002}]}",
		 -EHOSTUNREACH, "No route to host");
	ask_fail(&rig, "ping: {nids: [{nid: bad, port: 7000}]}", -22,
		 "failed to ping bad: that is no NID");
	ask_fail(&rig, "ping: {nids: [{nid: 10.77.0.98@tcp, port: 0}]}", -22,
		 "port");
	ask_fail(&rig, "ping: {nids: [{nid: 10.77.0.98@tcp}]}", -22, "port");
	ask_fail(&rig, "ping: {nids: [{port: 7000}]}", -22, "nid");
	ask_fail(&rig, "ping: {nids: [{nid: a, port: 1, x: 2}]}", -22,
		 "unknown key ''x''");
	rig_close(&rig);
}

Test(request, discover)
{
	struct rig rig = rig_open();

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	ask_fail(&rig, "discover: {nids: [10.77.0.98@tcp, bad]}", -113,
		 "manage:\n"
		 "- discover:\n"
		 "  errno: -113\n"
		 "  descr: ! 'failed to discover 10.77.0.98@tcp: No route to "
		 "host'\n"
		 "- discover:\n"
		 "  errno: -22\n"
		 "  descr: ! 'failed to discover bad: that is no NID'\n");
	ask_fail(&rig, "discover: {nids: 10.77.0.97@tcp, timeout: 1}", -110,
		 "failed to discover 10.77.0.97@tcp: Connection timed out");
	ask_fail(&rig, "discover: {nids: 10.78.0.1@tcp9}", -113, "No route");
	ask_fail(&rig, "discover: {nids: 10.77.0.2@tcp}", -22,
		 "failed to discover 10.77.0.2@tcp: that is a NID of this "
		 "node");
	ask_fail(&rig, "discover:", -22, "discover: nids is missing");
	ask_fail(&rig, "discover: {nids: []}", -22, "no NID is given");
	ask_fail(&rig, "discover: {nids: a, force: maybe}", -22, "force");
	ask_fail(&rig, "discover: {nids: a, source: 0@lo}", -22,
		 "unknown key ''source''");
	rig_close(&rig);
}

Test(request, debug)
{
	struct rig rig = rig_open();

	ask_out(&rig, "debug recovery:", "");
	ask_fail(&rig, "debug recovery: {local: 7}", -22, "true or false");
	ask_fail(&rig, "debug recovery: {nid: 0@lo}", -22, "unknown key 'nid'");
	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0, eth1]}", "");
	ask_out(&rig,
		"peer add: {prim_nid: 10.77.0.97@tcp, nids: [10.77.0.98@tcp]}",
		"");
	ask_out(&rig, "debug recovery: {peer: true, local: true}", "");
	/* NIs in bad health are pinged only if there is another one to choose:
	 * net and peer both have two. */
	ask_out(&rig, "set: {health_gain: 1}", "");
	ask_out(&rig, "net set: {nid: 10.77.0.2@tcp, health: 10}", "");
	ask_out(&rig, "peer set: {nid: 10.77.0.97@tcp, health: 10}", "");
	ask_out(&rig, "debug recovery: {local: true}",
		"Local NI recovery:\n"
		"      nid-0: 10.77.0.2@tcp\n");
	ask_out(&rig, "debug recovery: {peer: true}",
		"Peer NI recovery:\n"
		"      nid-0: 10.77.0.97@tcp\n");
	ask_out(&rig, "debug recovery:",
		"Local NI recovery:\n"
		"      nid-0: 10.77.0.2@tcp\n"
		"Peer NI recovery:\n"
		"      nid-0: 10.77.0.97@tcp\n");
	rig_close(&rig);
}

Test(request, debug_peer)
{
	struct rig rig = rig_open();

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	ask_out(&rig,
		"peer add: {prim_nid: 10.77.0.97@tcp, nids: [10.77.0.98@tcp]}",
		"");
	ask_out(&rig, "debug peer: {nid: 10.77.0.98@tcp}",
		"peer:\n"
		"-     primary nid: 10.77.0.97@tcp\n"
		"      state: unknown\n"
		"      peer state: 9\n"
		"      state bits:\n"
		"      - MULTI_RAIL\n"
		"      - CONFIGURED\n"
		"      CPT: 0\n"
		"      peer ni:\n"
		"      -     nid: 10.77.0.97@tcp\n"
		"            state: active\n"
		"            by word: own\n"
		"            health value: 1000\n"
		"            ping_count: 0\n"
		"            next_ping: 0\n"
		"            refcount: 0\n"
		"            waiting for a credit: 0\n"
		"            waiting for a connection: 0\n"
		"      -     nid: 10.77.0.98@tcp\n"
		"            state: active\n"
		"            by word: own\n"
		"            health value: 1000\n"
		"            ping_count: 0\n"
		"            next_ping: 0\n"
		"            refcount: 0\n"
		"            waiting for a credit: 0\n"
		"            waiting for a connection: 0\n");
	ask_fail(&rig, "debug peer:", -22, "nid is missing");
	ask_fail(&rig, "debug peer: {nid: bad}", -22, "cannot parse NID");
	ask_fail(&rig, "debug peer: {nid: 10.77.0.9@tcp}", -2,
		 "show:\n-     peer:\n");
	rig_close(&rig);
}

/* The node is polled, and its only thread is the one that makes the request. */
Test(request, ping_polled)
{
	struct ulnet_conf conf;
	struct rig rig;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &rig.node), 0);
	cr_assert_eq(lnet_control_start(rig.node, NULL, &rig.control), 0);
	ask_out(&rig, "ping: {nids: 0@lo, timeout: 60}",
		"ping:\n"
		"- primary nid: 0@lo\n"
		"  Multi-Rail: false\n"
		"  peer_ni:\n"
		"  - nid: 0@lo\n");
	rig_close(&rig);
}

static int request_inside(void *arg)
{
	char *answer;

	return lnet_control_request(arg, "net show:", &answer);
}

Test(request, inside_a_loop)
{
	struct rig rig = rig_open();

	cr_assert_eq(lnet_call(rig.node, 0, request_inside, rig.control),
		     -EDEADLK);
	rig_close(&rig);
}

Test(request, peers)
{
	struct rig rig = rig_open();
	struct result r;

	ask_out(&rig, "peer show:", "");
	ask_out(&rig, "peer list:", "");
	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	r = ask(&rig, "ping: {nids: [10.77.0.98@tcp, 10.77.0.5@tcp]}");
	result_free(&r);
	ask_out(&rig, "peer list:",
		"peer list:\n"
		"-     nid: 10.77.0.5@tcp\n"
		"-     nid: 10.77.0.98@tcp\n");
	ask_out(&rig, "peer show: {nid: 10.77.0.98@tcp}",
		"peer:\n"
		"-     primary nid: 10.77.0.98@tcp\n"
		"      Multi-Rail: false\n"
		"      peer ni:\n"
		"      -     nid: 10.77.0.98@tcp\n"
		"            state: NA\n");
	ask_fail(&rig, "peer show: {nid: 10.77.0.99@tcp}", -2,
		 "cannot get peer information");
	rig_close(&rig);
}

Test(request, stats)
{
	struct rig rig = rig_open();
	struct result r = ask(&rig, "ping: {nids: 0@lo, timeout: 60}");

	result_free(&r);
	r = ask(&rig, "stats show:");
	/* The ping may not have been freed yet. */
	cr_assert_eq(strncmp(r.out, "statistics:\n    msgs_alloc: ", 28), 0);
	cr_assert(strstr(r.out, "    send_count: 2\n    resend_count: 0\n"));
	cr_assert(strstr(r.out, "    drop_length: 0\n    protocol_errors: 0\n"),
		  "%s", r.out);
	result_free(&r);
	ask_out(&rig, "stats reset:", "");
	r = ask(&rig, "stats show:");
	cr_assert(strstr(r.out, "    send_count: 0\n"));
	result_free(&r);
	rig_close(&rig);
}

Test(request, configure)
{
	struct rig rig = rig_open();
	char *full, *again, *empty;

	empty = rig_state(&rig);
	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0, eth1], tos: 7}",
		"");
	ask_out(&rig, "set: {retry_count: 4}", "");
	cr_assert_eq(lnet_control_remember(rig.control, NULL), 0);
	full = rig_state(&rig);
	ask_fail(&rig, "lnet configure:", -16,
		 "---\nconfigure:\n-     lnet:\n      errno: -16\n"
		 "      descr: ! \"LNet configure error: Object busy\"\n...\n");
	ask_out(&rig, "lnet unconfigure:", "");
	ask_fail(&rig, "net show:", -100, "Network is down");
	ask_fail(&rig, "ping: {nids: 0@lo}", -100, "Network is down");
	ask_fail(&rig, "import: {text: ''}", -100, "Network is down");
	ask_fail(&rig, "lnet unconfigure:", -100, "Network is down");
	ask_out(&rig, "lnet configure:", "");
	ask_out(&rig, "net show:", LO_ONLY);
	/* Settings are as at first, also those that the node was opened with.
	 */
	again = rig_state(&rig);
	cr_assert_str_eq(again, empty);
	free(again);
	ask_out(&rig, "lnet unconfigure:", "");
	ask_out(&rig, "lnet configure: {all: true}", "");
	again = rig_state(&rig);
	cr_assert_str_eq(again, full);
	free(again);
	/* A remembered configuration that fails leaves the node unconfigured.
	 */
	cr_assert_eq(lnet_control_remember(rig.control,
					   "net: [{net type: tcp, local NI(s): "
					   "[{interfaces: {0: eth9}}]}]"),
		     0);
	ask_out(&rig, "lnet unconfigure:", "");
	ask_fail(&rig, "lnet configure: {all: true}", -100, "tcp(eth9)");
	ask_fail(&rig, "net show:", -100, "Network is down");
	free(full);
	free(empty);
	rig_close(&rig);
}

/* ---- an application that changes its node at the same time ---- */

struct application {
	struct lnet *node;
	atomic_bool ended;
	unsigned int times, bad;
};

static void *application_main(void *arg)
{
	struct application *a = arg;
	struct ulnet_ni_conf conf = { .credits = 8 };

	if (lnet_nid_parse("10.77.0.7@tcp", &conf.nid))
		a->bad++;
	while (!atomic_load(&a->ended)) {
		a->bad += lnet_ni_add(a->node, &conf) != 0;
		a->bad += lnet_ni_del(a->node, &conf.nid) != 0;
		a->times++;
	}
	return NULL;
}

/* A failed command undoes what it has done, not what the application has done.
 */
Test(request, beside_the_application)
{
	struct rig rig = rig_open();
	struct application a = { .node = rig.node };
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, application_main, &a), 0);
	for (int i = 0; i < 300; i++) {
		struct result r = ask(&rig, "net add: {net: tcp, interfaces: "
					    "[eth0, eth1, eth2, eth9]}");

		cr_assert_eq(r.status, -100, "%s", r.answer);
		cr_assert_not(strstr(r.answer, "could not be restored"), "%s",
			      r.answer);
		result_free(&r);
	}
	atomic_store(&a.ended, true);
	pthread_join(thread, NULL);
	cr_assert_eq(a.bad, 0, "%u of %u", a.bad, a.times);
	ask_out(&rig, "net show:", LO_ONLY);
	rig_close(&rig);
}

/* ---- names of settings ---- */

static bool set_takes(const char *name)
{
	const char *known;

	for (unsigned int i = 0; (known = lnet_ctl_setting(i)); i++)
		if (!strcmp(known, name))
			return true;
	return false;
}

/* "set" takes each setting of a node, but not what follows from others; and
 * what it says that it takes, it does. */
Test(request, set_names)
{
	struct rig rig = rig_open();
	struct ulnet_setting all[64];
	int n = lnet_settings(rig.node, all, 64);
	const char *name;

	cr_assert(n > 0 && n < 64);
	for (int i = 0; i < n; i++)
		cr_assert_eq(set_takes(all[i].name), !all[i].derived, "%s",
			     all[i].name);
	for (unsigned int i = 0; (name = lnet_ctl_setting(i)); i++) {
		char request[64];
		struct result r;

		snprintf(request, sizeof(request), "set: {%s: no}", name);
		r = ask(&rig, request);
		cr_assert(!strstr(r.err, "no such setting"), "%s: %s", name,
			  r.err);
		result_free(&r);
	}
	rig_close(&rig);
}
