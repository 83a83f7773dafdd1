/* SPDX-License-Identifier: BSD-3-Clause */
/* Which addresses can be used, by the system's list of interfaces. */
#include "lnd/netif.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ifaddrs.h>
#include <net/if.h>

#include "lnd/socklnd/sock.h"

#define READY	(IFF_UP | IFF_RUNNING)
#define ENTRIES 3

/* One entry of the system's list: an address of an interface. */
struct line {
	const char *addr; /* NULL: an interface without an address */
	const char *mask; /* NULL: none */
	unsigned int flags;
};

struct net {
	struct ifaddrs ifa[ENTRIES];
	union netif_addr addr[ENTRIES], mask[ENTRIES];
};

static struct ulnet_nid nid_of(const char *addr)
{
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(addr, &nid), 0, "%s", addr);
	return nid;
}

static struct sockaddr *sockaddr_of(union netif_addr *a, const char *text)
{
	if (!text)
		return NULL;
	*a = (union netif_addr){ 0 };
	if (inet_pton(AF_INET, text, &a->v4.sin_addr) == 1)
		a->any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1)
		a->any.sa_family = AF_INET6;
	cr_assert_neq(a->any.sa_family, AF_UNSPEC, "%s", text);
	return &a->any;
}

static const struct ifaddrs *net_of(struct net *net, const struct line *line)
{
	*net = (struct net){ 0 };
	for (unsigned int i = 0; i < ENTRIES; i++) {
		struct ifaddrs *ifa = &net->ifa[i];

		ifa->ifa_next = i + 1 < ENTRIES ? ifa + 1 : NULL;
		ifa->ifa_flags = line[i].flags;
		ifa->ifa_addr = sockaddr_of(&net->addr[i], line[i].addr);
		ifa->ifa_netmask = sockaddr_of(&net->mask[i], line[i].mask);
	}
	return net->ifa;
}

static const struct {
	const char *what;
	struct line line[ENTRIES];
	const char *addr;
	bool up;
} cases[] = {
	{ "its address", { { "10.0.0.1", NULL, READY } }, "10.0.0.1", true },
	{ "not the first",
	  { { NULL, NULL, READY },
	    { "10.0.0.1", NULL, READY },
	    { "10.0.0.2", NULL, READY } },
	  "10.0.0.2",
	  true },
	{ "nobody's", { { "10.0.0.1", NULL, READY } }, "10.0.0.2", false },
	{ "its network's, which is not enough",
	  { { "10.0.0.1", "255.0.0.0", READY } },
	  "10.0.0.2",
	  false },
	{ "taken down",
	  { { "10.0.0.1", NULL, IFF_RUNNING } },
	  "10.0.0.1",
	  false },
	{ "no carrier", { { "10.0.0.1", NULL, IFF_UP } }, "10.0.0.1", false },
	{ "down here, up there",
	  { { "10.0.0.1", NULL, IFF_UP }, { "10.0.0.1", NULL, READY } },
	  "10.0.0.1",
	  true },
	{ "loopback",
	  { { "127.0.0.1", "255.0.0.0", READY | IFF_LOOPBACK } },
	  "127.0.0.1",
	  true },
	{ "its network's",
	  { { "127.0.0.1", "255.0.0.0", READY | IFF_LOOPBACK } },
	  "127.0.0.2",
	  true },
	{ "the end of it",
	  { { "127.0.0.1", "255.0.0.0", READY | IFF_LOOPBACK } },
	  "127.255.255.254",
	  true },
	{ "beyond it",
	  { { "127.0.0.1", "255.0.0.0", READY | IFF_LOOPBACK } },
	  "128.0.0.2",
	  false },
	{ "loopback taken down",
	  { { "127.0.0.1", "255.0.0.0", IFF_LOOPBACK } },
	  "127.0.0.2",
	  false },
	{ "loopback, no mask",
	  { { "127.0.0.1", NULL, READY | IFF_LOOPBACK } },
	  "127.0.0.2",
	  false },
	{ "IPv6", { { "fd77::1", "ffff::", READY } }, "fd77::1", true },
	{ "behind one of its link",
	  { { "fe80::1", "ffff::", READY }, { "fd77::1", "ffff::", READY } },
	  "fd77::1",
	  true },
	{ "another one of its network",
	  { { "fd77::1", "ffff::", READY } },
	  "fd77::2",
	  false },
	{ "no carrier, IPv6",
	  { { "fd77::1", "ffff::", IFF_UP } },
	  "fd77::1",
	  false },
	{ "the same bytes, IPv4",
	  { { "10.0.0.1", "255.0.0.0", READY } },
	  "a00:1::",
	  false },
	{ "the same bytes, IPv6",
	  { { "7f00:1::", "ff00::", READY | IFF_LOOPBACK } },
	  "127.0.0.1",
	  false },
	{ "IPv6's loopback has one address",
	  { { "127.0.0.1", "255.0.0.0", READY | IFF_LOOPBACK },
	    { "::1", "ffff::", READY | IFF_LOOPBACK } },
	  "::2",
	  false },
	{ "one more of loopback's, alone",
	  { { "10.0.0.1", "255.255.255.255", READY | IFF_LOOPBACK } },
	  "10.0.0.2",
	  false },
};

Test(netif, fault)
{
	struct ulnet_nid nid = nid_of("10.0.0.1");
	struct net net;

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct ifaddrs *all = net_of(&net, cases[i].line);

		nid = nid_of(cases[i].addr);
		cr_expect_eq(!netif_fault(all, &nid), cases[i].up, "%s",
			     cases[i].what);
	}
	cr_expect_str_eq(netif_fault(NULL, &nid),
			 "no interface has its address");
}

/* The loopback interface is the one that each host has. */
Test(netif, prefix)
{
	struct ulnet_nid nid = nid_of("127.0.0.1");

	cr_assert_eq(netif_prefix(&nid), 8);
	nid = nid_of("127.1.2.3");
	cr_assert_eq(netif_prefix(&nid), 8);
	nid = nid_of("192.0.2.1");
	cr_assert_eq(netif_prefix(&nid), 0);
}

/* What the kernel's routes say: loopback addresses are reached from one of
 * them; whatever is the case for others, it is an address of this host. */
Test(netif, source)
{
	struct ulnet_nid nid, target = nid_of("127.0.0.7@tcp3");
	char name[LNET_INTERFACE_SIZE];
	int rc;

	cr_assert_eq(netif_source(&target, &nid), 0);
	target = nid_of("127.0.0.1@tcp3");
	cr_assert(lnet_nid_eq(&nid, &target));
	target = nid_of("192.0.2.1@tcp3");
	nid = LNET_NID_ANY;
	rc = netif_source(&target, &nid);
	if (rc)
		cr_assert(lnet_nid_is_any(&nid));
	else
		cr_assert_eq(netif_resolve(NULL, &nid, name), 0);
}
