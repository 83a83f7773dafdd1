/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks by the addresses of a host. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/util.h"
#include "config/ip2nets.h"
#include "ulnet/control.h"

/* eth0: 10.0.0.5 and fd00::5; eth1: 10.1.2.5, 10.9.0.5; ib0: 192.168.0.5 */
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

static void good(const char *rules, const char *expected)
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

static void bad(const char *rules, int rc, size_t offset, const char *what)
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
	good("tcp 10.0.*.*", "tcp(eth0)");
	good("tcp1 10.1.2.[1-9/2]", "tcp1(eth1)");
	good("tcp1 10.1.0.0/16", "tcp1(eth1)");
	/* By its name it would stand for its IPv4 address. */
	good("tcp1 fd00::/64", "tcp1(fd00::5)");
	good("tcp1(eth0) fd00::5", "tcp1(fd00::5)");
	good("tcp1(eth0) 10.0.0.5 fd00::5", "tcp1(eth0)");
	good("tcp 10.5.*.* 10.1.*.*", "tcp(eth1)");
	good("tcp(eth0) 10.0.0.5; o2ib3(ib0) 192.168.*.*",
	     "tcp(eth0),o2ib3(ib0)");
	good("tcp(eth0,eth1) 10.*.*.*", "tcp(eth0),tcp(eth1)");
	good("tcp( eth0 , eth1 ),tcp1(eth1:1) 10.*.*.*",
	     "tcp(eth0),tcp(eth1),tcp1(eth1:1)");
	good("# all\n tcp 10.7.*.* # not here\n;;tcp2 *.*.*.*\n", "tcp2(eth0)");
	good("tcp(10.9.0.5) 10.9.*.*", "tcp(10.9.0.5)");
	/* That it is not there shows when the NI is added. */
	good("tcp(eth7) 10.0.*.*", "tcp(eth7)");
	good("tcp(eth0[0,1])[2] 10.0.*.*", "tcp(eth0)");
	/* A rule that does not apply is no second one. */
	good("tcp 10.7.*.*; tcp 10.0.*.*", "tcp(eth0)");
}

Test(ip2nets, bad)
{
	bad("", -ENOENT, 0, "no rule matches");
	bad("tcp 10.7.*.*", -ENOENT, 12, "no rule matches");
	bad("tcp", -EINVAL, 3, "a range of addresses is expected");
	bad("tcp ;", -EINVAL, 4, "a range of addresses is expected");
	bad("tpc 10.0.*.*", -EINVAL, 0, "no such net: tpc");
	bad("tcp 10.0.*.*; tpc 10.7.*.*", -EINVAL, 14, "no such net: tpc");
	bad("tcp(eth0 10.0.*.*", -EINVAL, 17, "a range of addresses");
	bad("tcp 10.0.*.*; tcp 10.1.*.*", -EINVAL, 14, "net tcp comes twice");
	bad("tcp(eth0),o2ib(ib0),tcp(eth1) *.*.*.*", -EINVAL, 0,
	    "net tcp comes twice");
	bad("tcp1(eth0) 10.1.*.*", -EINVAL, 0, "eth0 has no address in 10.1");
	bad("tcp(eth0)[0,x] 10.0.*.*", -EINVAL, 9, "CPTs");
	bad("tcp 10.0.0.5@tcp", -EINVAL, 4, "no '@'");
	bad("kfi 10.0.*.*", -ENODEV, 0, "no interface");
	bad("tcp 10.0.0", -EINVAL, 10, "");
	bad("tcp 10.0.0.256", -EINVAL, 11, "");
	bad("tcp 10.0.0.[9-1]", -EINVAL, 12, "low end");
}

/* Rules that do not apply are many, and those that do come last. */
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

/* ---- this host: it has 127.0.0.1 at least ---- */

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

/* Every host has a loopback: who writes "*" means other addresses. */
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
