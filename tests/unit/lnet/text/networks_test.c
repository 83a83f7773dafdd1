/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks as one text: given by interface, or by rules for the addresses of a
 * host. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "base/util.h"
#include "lnet/text/networks.h"
#include "lnet/text/spec.h"

/* Parses @text, and puts it together again as "net(interface)". */
static void good(const char *text, const char *expected)
{
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_ni_conf *confs;
	char all[1024] = "", net[LNET_NIDSTR_SIZE];
	unsigned int n;

	cr_assert_eq(lnet_networks_parse(text, &confs, &n, &err), 0, "%s: %s",
		     text, err.what);
	for (unsigned int i = 0; i < n; i++) {
		lnet_net_format(lnet_nid_net(&confs[i].nid), net, sizeof(net));
		sprintf(all + strlen(all), "%s%s(%s)", i ? " " : "", net,
			confs[i].interface);
		cr_assert_eq(confs[i].credits, 0);
		cr_assert_eq(confs[i].ntunables, 0);
	}
	cr_assert_str_eq(all, expected);
	free(confs);
}

static void bad(const char *text, int rc, size_t offset, const char *what)
{
	struct ulnet_text_error err = { 999, "" };
	struct ulnet_ni_conf *confs = NULL;
	unsigned int n = 7;

	cr_assert_eq(lnet_networks_parse(text, &confs, &n, &err), rc, "%s: %s",
		     text, err.what);
	cr_assert_eq(err.offset, offset, "%s: %zu: %s", text, err.offset,
		     err.what);
	cr_assert(strstr(err.what, what), "%s: %s", text, err.what);
	cr_assert_null(confs);
	cr_assert_eq(n, 7);
	cr_assert_eq(lnet_networks_parse(text, &confs, &n, NULL), rc);
}

Test(spec, networks)
{
	good("tcp(eth0)", "tcp(eth0)");
	good("tcp1(127.0.0.2)", "tcp1(127.0.0.2)");
	good("tcp(eth0,eth1)", "tcp(eth0) tcp(eth1)");
	good(" tcp0 ( eth0 , eth1:2 ) , o2ib3(ib0)\n",
	     "tcp(eth0) tcp(eth1:2) o2ib3(ib0)");
	good("tcp(eth0),tcp1(eth0)", "tcp(eth0) tcp1(eth0)");
	good("tcp(fd77::2)", "tcp(fd77::2)");
	/* All CPTs use each interface, whatever list of CPTs is given. */
	good("tcp(eth0)[0,1]", "tcp(eth0)");
	good("tcp(eth0[1],eth1 [0-3] , eth2)[2] , tcp1(eth0[0])",
	     "tcp(eth0) tcp(eth1) tcp(eth2) tcp1(eth0)");
}

Test(spec, bad_networks)
{
	bad("", -EINVAL, 0, "net is expected");
	bad("  ", -EINVAL, 2, "net is expected");
	bad("tpc(eth0)", -EINVAL, 0, "no such net: tpc");
	bad("tcp(eth0),", -EINVAL, 10, "net is expected");
	bad("tcp(eth0", -EINVAL, 3, "')' is missing");
	bad("tcp()", -EINVAL, 3, "interface is expected");
	bad("tcp(eth0,)", -EINVAL, 4, "not the name");
	bad("tcp(,eth0)", -EINVAL, 4, "not the name");
	bad("tcp(eth0,,eth1)", -EINVAL, 9, "not the name");
	bad("tcp(eth0) tcp1(eth1)", -EINVAL, 10, "',' is expected");
	bad("tcp(eth0,eth0)", -EINVAL, 9, "eth0 comes twice");
	bad("tcp(eth0)[0,x]", -EINVAL, 9, "no list of CPTs");
	bad("tcp(eth0)[0", -EINVAL, 9, "no list of CPTs");
	bad("tcp(eth0)[0]tcp1(eth0)", -EINVAL, 12, "',' is expected");
	bad("tcp(eth0[1)", -EINVAL, 4, "not the name");
	bad("tcp(eth1,eth0[])", -EINVAL, 9, "not the name");
	bad("tcp(eth0[1]eth1)", -EINVAL, 4, "not the name");
	bad("tcp([1])", -EINVAL, 4, "not the name");
	bad("lo", -EINVAL, 0, "always there");
	bad("tcp(eth0),kfi", -ENODEV, 10, "no interface");
	bad("tcp(a123456789b123456789c123456789d123456789e123456789f1234567890"
	    "123)",
	    -EINVAL, 4, "not the name");
	bad("tcp99999(eth0)", -EINVAL, 0, "no such net");
	/* What was meant is proposed. */
	bad("127.0.0.50@tcp", -EINVAL, 0,
	    "no such net; an interface goes so: 'tcp(127.0.0.50)'");
	bad("tcp(eth0),eth1@o2ib3(x)", -EINVAL, 10, "so: 'o2ib3(eth1)'");
	bad("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff@tcp65535", -EINVAL, 0,
	    "so: 'tcp65535(2001:db8:ffff:ffff:ffff:ffff:ffff:ffff)'");
	bad("5@kfi", -EINVAL, 0, "no such net: 5@kfi");
	bad("@tcp", -EINVAL, 0, "no such net: @tcp");
	bad("eth0@tpc", -EINVAL, 0, "no such net: eth0@tpc");
	bad("tcptcptcptcptcptcptcptcptcptcptcptcptcptcptcptcptcptcptcptcptcptc"
	    "p",
	    -EINVAL, 0, "no such net");
}

Test(spec, too_many)
{
	char *text = malloc(32 * 1100), *p = text;
	struct ulnet_text_error err;
	struct ulnet_ni_conf *confs;
	unsigned int n;

	for (int i = 0; i < 1100; i++)
		p += sprintf(p, "%stcp%d(eth0)", i ? "," : "", i);
	cr_assert_eq(lnet_networks_parse(text, &confs, &n, &err), -EINVAL);
	cr_assert(strstr(err.what, "more than"));
	free(text);
}

/* A net without an interface is on the first IPv4 interface of this host other
 * than the loopback, if there is one. */
Test(spec, without_interface)
{
	const char *name = NULL;
	struct ifaddrs *list, *i;
	char expected[64];

	cr_assert_eq(getifaddrs(&list), 0);
	for (i = list; i && !name; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET &&
		    i->ifa_flags & IFF_UP && !(i->ifa_flags & IFF_LOOPBACK))
			name = i->ifa_name;
	if (name) {
		snprintf(expected, sizeof(expected), "tcp2(%s)", name);
		good("tcp2", expected);
	} else {
		bad("tcp2", -ENODEV, 0, "no interface");
	}
	freeifaddrs(list);
}

Test(spec, cpts)
{
	static const struct {
		const char *text;
		unsigned int cpts;
		int rc;
	} cases[] = {
		{ "[0]", 1, 0 },
		{ "[0,1]", 2, 0 },
		{ "[ 0 - 3 ]", 4, 0 },
		{ "[3,2,0-1]", 4, 0 },
		{ "0", 1, 0 },
		{ " 0 - 3 ", 4, 0 },
		{ "0,1", 2, 0 },
		{ "*", 32, 0 },
		{ "[*]", 3, 0 },
		{ "[0-6/2,1-7/2]", 8, 0 },
		{ "[0-4000000000/4294967295]", 1, 0 },
		/* from a node that had more CPTs */
		{ "[0,1,2,3]", 2, 0 },
		{ "[0-4000000000]", 16, 0 },
		{ "[0]", 2, -EOPNOTSUPP },
		{ "[1]", 1, -EOPNOTSUPP },
		{ "[0,2]", 3, -EOPNOTSUPP },
		{ "[0-6/2]", 8, -EOPNOTSUPP },
		{ "1", 2, -EOPNOTSUPP },
		{ "", 1, -EINVAL },
		{ "[", 1, -EINVAL },
		{ "[]", 1, -EINVAL },
		{ "[0", 1, -EINVAL },
		{ "0]", 1, -EINVAL },
		{ "[0,]", 1, -EINVAL },
		{ "0,", 1, -EINVAL },
		{ "[1-0]", 1, -EINVAL },
		{ "[0-4/0]", 1, -EINVAL },
		{ "[-1]", 1, -EINVAL },
		{ "[0]x", 1, -EINVAL },
		{ "x", 1, -EINVAL },
		{ "[99999999999999999999]", 1, -EINVAL },
	};
	char text[SPEC_CPTS_SIZE + 64] = "tcp(eth0[", *end = text + 9;

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_eq(spec_cpts(cases[i].text, cases[i].cpts),
			     cases[i].rc, "%s %u", cases[i].text,
			     cases[i].cpts);
	/* As on a host with 128 CPTs. */
	for (int i = 0; i < 128; i++)
		end += sprintf(end, "%s%d", i ? "," : "", i);
	strcpy(end, "])");
	good(text, "tcp(eth0)");
	memset(end, '0', SPEC_CPTS_SIZE + 55 - (size_t)(end - text));
	strcpy(text + SPEC_CPTS_SIZE + 55, "])");
	bad(text, -EINVAL, 4, "not the name");
}

/* ---- ip2nets ---- */

/* Fills @addrs with the addresses of a host, and returns their number: eth0 has
 * 10.0.0.5 and fd00::5; eth1 10.1.2.5 and 10.9.0.5; ib0 192.168.0.5. */
static unsigned int host(struct ip2nets_address addrs[8])
{
	static const char *const all[][2] = {
		{ "eth0", "10.0.0.5@tcp" },   { "eth0", "fd00::5@tcp" },
		{ "eth1", "10.1.2.5@tcp" },   { "eth1:1", "10.9.0.5@tcp" },
		{ "ib0", "192.168.0.5@tcp" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++) {
		strcpy(addrs[i].interface, all[i][0]);
		cr_assert_eq(lnet_nid_parse(all[i][1], &addrs[i].nid), 0);
	}
	return ARRAY_SIZE(all);
}

static void rules_good(const char *rules, const char *expected)
{
	struct ulnet_text_error err = { 0, "" };
	struct ip2nets_address addrs[8];
	unsigned int n = host(addrs);
	char *networks;

	cr_assert_eq(ip2nets_networks(rules, addrs, n, &networks, &err), 0,
		     "%s: %s", rules, err.what);
	cr_assert_str_eq(networks, expected);
	free(networks);
}

static void rules_bad(const char *rules, int rc, size_t offset,
		      const char *what)
{
	struct ulnet_text_error err = { 999, "" };
	struct ip2nets_address addrs[8];
	unsigned int n = host(addrs);
	char *networks = NULL;

	cr_assert_eq(ip2nets_networks(rules, addrs, n, &networks, &err), rc,
		     "%s: %s", rules, err.what);
	cr_assert(strstr(err.what, what), "%s: %s", rules, err.what);
	cr_assert_eq(err.offset, offset, "%s: %zu: %s", rules, err.offset,
		     err.what);
	cr_assert_null(networks);
	cr_assert_eq(ip2nets_networks(rules, addrs, n, &networks, NULL), rc);
}

Test(ip2nets, good)
{
	rules_good("tcp 10.0.*.*", "tcp(eth0)");
	rules_good("tcp1 10.1.2.[1-9/2]", "tcp1(eth1)");
	rules_good("tcp1 10.1.0.0/16", "tcp1(eth1)");
	/* The address is given, as the interface's name would stand for its
	 * IPv4 address. */
	rules_good("tcp1 fd00::/64", "tcp1(fd00::5)");
	rules_good("tcp1(eth0) fd00::5", "tcp1(fd00::5)");
	rules_good("tcp1(eth0) 10.0.0.5 fd00::5", "tcp1(eth0)");
	rules_good("tcp 10.5.*.* 10.1.*.*", "tcp(eth1)");
	rules_good("tcp(eth0) 10.0.0.5; o2ib3(ib0) 192.168.*.*",
		   "tcp(eth0),o2ib3(ib0)");
	rules_good("tcp(eth0,eth1) 10.*.*.*", "tcp(eth0),tcp(eth1)");
	rules_good("tcp( eth0 , eth1 ),tcp1(eth1:1) 10.*.*.*",
		   "tcp(eth0),tcp(eth1),tcp1(eth1:1)");
	rules_good("# all\n tcp 10.7.*.* # not here\n;;tcp2 *.*.*.*\n",
		   "tcp2(eth0),tcp2(eth1),tcp2(ib0)");
	rules_good("tcp(10.9.0.5) 10.9.*.*", "tcp(10.9.0.5)");
	/* That there is no such interface shows when the NI is added. */
	rules_good("tcp(eth7) 10.0.*.*", "tcp(eth7)");
	rules_good("tcp(eth0[0,1])[2] 10.0.*.*", "tcp(eth0)");
	rules_good("tcp0(eth0), o2ib0 (ib0)\t10.0.*.*", "tcp(eth0),o2ib(ib0)");
	rules_good("tcp(eth0) 10.0.*.*; \\\n o2ib(ib0) \\\n192.168.*.*",
		   "tcp(eth0),o2ib(ib0)");
}

/* Of the rules for a net the first that is for this host counts. */
Test(ip2nets, first_rule)
{
	rules_good("tcp 10.7.*.*; tcp 10.0.*.*", "tcp(eth0)");
	rules_good("tcp0(eth0) 10.0.0.[2,5]; tcp0 10.*.*.*", "tcp(eth0)");
	rules_good("tcp(eth0,eth1) 10.0.0.[4-10]; tcp(eth1) *.*.*.*",
		   "tcp(eth0),tcp(eth1)");
	rules_good("tcp(eth1) *.*.*.*; tcp(eth0,eth1) 10.0.0.[4-10]",
		   "tcp(eth1)");
	/* For each net by itself. */
	rules_good("tcp(eth0) 10.0.*.*; tcp(eth1),o2ib(ib0) *.*.*.*",
		   "tcp(eth0),o2ib(ib0)");
	rules_good("tcp(eth0),o2ib(ib0),tcp(eth1) *.*.*.*",
		   "tcp(eth0),o2ib(ib0),tcp(eth1)");
}

/* All interfaces that match are used (seed 002's example), each once. */
Test(ip2nets, all_interfaces)
{
	rules_good("tcp 10.[0-1].*.*", "tcp(eth0),tcp(eth1)");
	rules_good("tcp 10.*.*.*", "tcp(eth0),tcp(eth1)");
	rules_good("tcp 10.9.*.*", "tcp(eth1:1)");
	rules_good("tcp,o2ib 10.0.0.5 192.168.0.5",
		   "tcp(eth0),tcp(ib0),o2ib(eth0),o2ib(ib0)");
}

/* An interface's name stands for its first address; another one is named. */
Test(ip2nets, second_address)
{
	struct ip2nets_address addrs[2] = { { .interface = "eth0" },
					    { .interface = "eth0" } };
	char *networks;

	cr_assert_eq(lnet_nid_parse("10.0.0.5@tcp", &addrs[0].nid), 0);
	cr_assert_eq(lnet_nid_parse("10.9.0.5@tcp", &addrs[1].nid), 0);
	cr_assert_eq(ip2nets_networks("tcp 10.9.*.*; tcp1(eth0) 10.0.*.*",
				      addrs, 2, &networks, NULL),
		     0);
	cr_assert_str_eq(networks, "tcp(10.9.0.5),tcp1(eth0)");
	free(networks);
}

/* A comment ends at the next rule. */
Test(ip2nets, comments)
{
	rules_good("tcp10 10.0.0.[1-9] # a; tcp11 10.1.*.*",
		   "tcp10(eth0),tcp11(eth1)");
	rules_good("tcp10 10.0.0.[1-9] # a\ntcp11 10.1.*.*",
		   "tcp10(eth0),tcp11(eth1)");
	rules_good("# routers; tcp10 10.0.0.5", "tcp10(eth0)");
	/* What looks like the rest of a comment is a rule, and none. */
	rules_bad("tcp 10.0.0.5 # a; or b", -EINVAL, 21, "a number");
}

/* A rule may name what other hosts have. A foreign net of a rule for this host
 * is passed over with a warning, as this host cannot be on it. */
Test(ip2nets, other_hosts)
{
	rules_good("elan0 132.6.[1-3].[2-8/2]; tcp 10.0.*.*", "tcp(eth0)");
	rules_good("kfi 132.6.*.*; tcp 10.0.*.*", "tcp(eth0)");
	rules_good("elan(a,b)[0],vib 132.6.*.*; tcp 10.0.*.*", "tcp(eth0)");
	rules_good("tcp 10.0.*.*; elan0 10.0.*.*", "tcp(eth0)");
	rules_good("elan0,tcp 10.0.*.*", "tcp(eth0)");
	rules_good("tcp(bond7,eth9) 132.6.*.*; tcp 10.0.*.*", "tcp(eth0)");
	rules_bad("elan0 10.0.*.*", -ENOENT, 14, "are not there");
	/* But what is misspelt, or no rule at all, is refused. */
	rules_bad("tpc 132.6.*.*; tcp 10.0.*.*", -EINVAL, 0, "no such net");
	rules_bad("tcp99999 132.6.*.*", -EINVAL, 0, "no such net");
	rules_bad("elan( 132.6.*.*; tcp 10.0.*.*", -EINVAL, 15, "expected");
	rules_bad("elan-0 132.6.*.*", -EINVAL, 0, "no such net: elan-0");
	rules_bad("tcp(eth7,) 132.6.*.*", -EINVAL, 4, "not the name");
}

/* Ranges may say which hosts are meant by the address of another interface that
 * the text uses; else they contradict the interface (requirement B6). */
Test(ip2nets, ranges_of_another_interface)
{
	rules_good("tcp(eth0,eth1) 10.0.0.[4-6]", "tcp(eth0),tcp(eth1)");
	rules_good("o2ib 192.168.0.*; tcp(eth0) 192.168.0.[1,5]",
		   "o2ib(ib0),tcp(eth0)");
	rules_good("tcp(eth0) 192.168.0.[1,5]; o2ib 192.168.0.*",
		   "tcp(eth0),o2ib(ib0)");
	rules_bad("o2ib 192.168.0.*; tcp(eth0) 10.1.*.*", -EINVAL, 18,
		  "eth0 has no address in 10.1.*.*");
}

Test(ip2nets, bad)
{
	rules_bad("", -ENOENT, 0, "no rule matches");
	rules_bad("tcp 10.7.*.*", -ENOENT, 12, "no rule matches");
	rules_bad("tcp", -EINVAL, 3, "a range of addresses is expected");
	rules_bad("tcp ;", -EINVAL, 4, "a range of addresses is expected");
	rules_bad("tpc 10.0.*.*", -EINVAL, 0, "no such net: tpc");
	rules_bad("tcp 10.0.*.*; tpc 10.7.*.*", -EINVAL, 14,
		  "no such net: tpc");
	rules_bad("tcp(eth0 10.0.*.*", -EINVAL, 17, "a range of addresses");
	rules_bad("tcp1(eth0) 10.1.*.*", -EINVAL, 0,
		  "eth0 has no address in 10.1");
	rules_bad("tcp(eth0)[0,x] 10.0.*.*", -EINVAL, 9, "CPTs");
	rules_bad("tcp 10.0.0.5@tcp", -EINVAL, 4, "no '@'");
	rules_bad("kfi 10.0.*.*", -ENODEV, 0, "no interface");
	rules_bad("tcp 10.0.0", -EINVAL, 10, "");
	rules_bad("tcp 10.0.0.256", -EINVAL, 11, "");
	rules_bad("tcp 10.0.0.[9-1]", -EINVAL, 12, "low end");
}

/* Many rules that do not apply, and one at the end that does. */
Test(ip2nets, many)
{
	struct ip2nets_address addrs[8];
	unsigned int n = host(addrs);
	char *rules = malloc(64 * 1001), *p = rules, *networks;
	struct ulnet_text_error err;

	for (unsigned int i = 0; i < 1000; i++)
		p += sprintf(p, "tcp%u(eth0) 10.[100-200].%u.[1-99/2]\n",
			     i % 100, i % 256);
	strcpy(p, "tcp7 10.0.0.5");
	cr_assert_eq(ip2nets_networks(rules, addrs, n, &networks, &err), 0);
	cr_assert_str_eq(networks, "tcp7(eth0)");
	free(networks);
	free(rules);
}

/* ---- the addresses of this host, which has at least 127.0.0.1 ---- */

Test(ip2nets, host)
{
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_ni_conf *confs;
	unsigned int n;

	cr_assert_eq(lnet_ip2nets_parse("tcp3 127.0.0.1", &confs, &n, &err), 0,
		     "%s", err.what);
	cr_assert_eq(n, 1);
	cr_assert_str_eq(confs[0].interface, "lo");
	cr_assert_eq(lnet_nid_net(&confs[0].nid), LNET_NET(LNET_TYPE_SOCK, 3));
	free(confs);
	cr_assert_eq(lnet_ip2nets_parse("tcp 127.9.9.9", &confs, &n, &err),
		     -ENOENT);
	cr_assert_eq(lnet_ip2nets_parse("tcp(lo) 127.0.0.1; tpc 127.0.0.1",
					&confs, &n, &err),
		     -EINVAL);
	cr_assert_eq(err.offset, 19);
}

/* Every host has a loopback, so wildcards do not match its address: it must be
 * named. */
Test(ip2nets, loopback_is_named)
{
	struct ip2nets_address lo = { .interface = "lo" };
	char *networks;

	cr_assert_eq(lnet_nid_parse("127.0.0.1@tcp", &lo.nid), 0);
	cr_assert_eq(ip2nets_networks("tcp *.*.*.*", &lo, 1, &networks, NULL),
		     -ENOENT);
	cr_assert_eq(ip2nets_networks("tcp 127.*.*.*", &lo, 1, &networks, NULL),
		     0);
	cr_assert_str_eq(networks, "tcp(lo)");
	free(networks);
	cr_assert_eq(lnet_nid_parse("::1@tcp", &lo.nid), 0);
	cr_assert_eq(ip2nets_networks("tcp ::/1", &lo, 1, &networks, NULL),
		     -ENOENT);
	cr_assert_eq(ip2nets_networks("tcp ::1", &lo, 1, &networks, NULL), 0);
	free(networks);
}
