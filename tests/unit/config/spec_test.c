/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that name interfaces. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include "base/util.h"
#include "config/spec.h"
#include "ulnet/control.h"

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
	/* All CPTs use each interface, whatever kernel nodes are told. */
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
	bad("tcp(eth0[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
	    "0,"
	    "0,0,0])",
	    -EINVAL, 4, "not the name");
	bad("lo", -EINVAL, 0, "always there");
	bad("tcp(eth0),kfi", -ENODEV, 10, "no interface");
	bad("tcp(a123456789b123456789c123456789d123456789e123456789f1234567890"
	    "123)",
	    -EINVAL, 4, "not the name");
	bad("tcp99999(eth0)", -EINVAL, 0, "no such net");
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

/* A net alone is on the first interface that leads out of this host, if there
 * is one. */
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
		/* of a node that had more of them */
		{ "[0,1,2,3]", 2, 0 },
		{ "[0-4000000000]", 16, 0 },
		{ "[0]", 2, -EOPNOTSUPP },
		{ "[1]", 1, -EOPNOTSUPP },
		{ "[0,2]", 3, -EOPNOTSUPP },
		{ "", 1, -EINVAL },
		{ "0", 1, -EINVAL },
		{ "[", 1, -EINVAL },
		{ "[]", 1, -EINVAL },
		{ "[0", 1, -EINVAL },
		{ "[0,]", 1, -EINVAL },
		{ "[1-0]", 1, -EINVAL },
		{ "[-1]", 1, -EINVAL },
		{ "[0]x", 1, -EINVAL },
		{ "[99999999999999999999]", 1, -EINVAL },
	};

	unsigned long highest = 7;

	cr_assert_eq(spec_cpts("[0-2,9,4]", 2, &highest), 0);
	cr_assert_eq(highest, 9);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_eq(spec_cpts(cases[i].text, cases[i].cpts, &highest),
			     cases[i].rc, "%s %u", cases[i].text,
			     cases[i].cpts);
}
