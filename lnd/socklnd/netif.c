/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/netif.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

static bool is_ipv4(const struct ifaddrs *i)
{
	return i->ifa_addr && i->ifa_addr->sa_family == AF_INET;
}

static uint32_t in_addr_of(const struct sockaddr *sa)
{
	struct sockaddr_in in;

	memcpy(&in, sa, sizeof(in));
	return ntohl(in.sin_addr.s_addr);
}

static bool has_addr(const struct ifaddrs *i, uint32_t addr)
{
	return is_ipv4(i) && in_addr_of(i->ifa_addr) == addr;
}

/* Every address of a loopback network is this host's. */
static bool is_loopback(const struct ifaddrs *i, uint32_t addr)
{
	uint32_t mask;

	if (!is_ipv4(i) || !(i->ifa_flags & IFF_LOOPBACK) || !i->ifa_netmask)
		return false;
	mask = in_addr_of(i->ifa_netmask);
	return (in_addr_of(i->ifa_addr) & mask) == (addr & mask);
}

static const struct ifaddrs *find_addr(const struct ifaddrs *all, uint32_t addr)
{
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (has_addr(i, addr))
			return i;
	return NULL;
}

const char *sock_netif_fault(const struct ifaddrs *all, uint32_t addr)
{
	/* IFF_RUNNING is what comes of the carrier and of what the driver says
	 * besides. */
	const unsigned int need = IFF_UP | IFF_RUNNING;
	bool found = false;

	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!has_addr(i, addr) && !is_loopback(i, addr))
			continue;
		if ((i->ifa_flags & need) == need)
			return NULL;
		found = true;
	}
	return found ? "its link is down" : "no interface has its address";
}

/* 0, or why @addr cannot be used here. */
static int check_addr(const struct ifaddrs *all, uint32_t addr)
{
	if (find_addr(all, addr))
		return 0;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (is_loopback(i, addr))
			return 0;
	return -EADDRNOTAVAIL;
}

/* The first IPv4 address of the interface (or of its alias, eth0:1). */
static int netif_find_name(const struct ifaddrs *all, const char *name,
			   uint32_t *addr)
{
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (is_ipv4(i) && strcmp(i->ifa_name, name) == 0) {
			*addr = in_addr_of(i->ifa_addr);
			return 0;
		}
	return if_nametoindex(name) ? -EADDRNOTAVAIL : -ENODEV;
}

/* What leads back to this address: the name of its interface, unless another
 * address of it comes first; else the address. */
static void name_of(const struct ifaddrs *all, uint32_t addr, char *name)
{
	const struct ifaddrs *i = find_addr(all, addr);
	struct in_addr in = { .s_addr = htonl(addr) };
	uint32_t first;

	if (i && !netif_find_name(all, i->ifa_name, &first) && first == addr)
		snprintf(name, LNET_INTERFACE_SIZE, "%s", i->ifa_name);
	else
		inet_ntop(AF_INET, &in, name, LNET_INTERFACE_SIZE);
}

static int resolve(const struct ifaddrs *all, const char *interface,
		   struct ulnet_nid *nid, char *name)
{
	uint32_t addr = (uint32_t)lnet_nid_to_nid4(nid);
	struct in_addr in;
	int rc = 0;

	if (!interface) {
		name_of(all, addr, name);
		return check_addr(all, addr);
	}
	if (strlen(interface) >= LNET_INTERFACE_SIZE)
		return -ENAMETOOLONG;
	if (inet_pton(AF_INET, interface, &in) == 1) {
		addr = ntohl(in.s_addr);
		rc = check_addr(all, addr);
	} else {
		rc = netif_find_name(all, interface, &addr);
	}
	if (rc)
		return rc;
	text_copy(name, LNET_INTERFACE_SIZE, interface);
	*nid = lnet_nid_make(lnet_nid_net(nid), addr);
	return 0;
}

int sock_netif_resolve(const char *interface, struct ulnet_nid *nid,
		       char name[LNET_INTERFACE_SIZE])
{
	struct ifaddrs *all;
	int rc;

	if (!lnet_nid_is_nid4(nid))
		return -EAFNOSUPPORT;
	if (getifaddrs(&all))
		return -errno;
	rc = resolve(all, interface, nid, name);
	freeifaddrs(all);
	return rc;
}

/* Gbit/s, at least 1; what is not known counts as 1. */
static unsigned int speed_of(const char *name)
{
	char path[sizeof("/sys/class/net//speed") + IFNAMSIZ];
	int mbit = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%.*s/speed",
		 (int)strcspn(name, ":"), name);
	f = fopen(path, "re");
	if (!f)
		return 1;
	if (fscanf(f, "%d", &mbit) != 1)
		mbit = 0;
	fclose(f);
	return mbit >= 1000 ? (unsigned int)mbit / 1000 : 1;
}

int sock_netif_numa_node(const char *name)
{
	char path[sizeof("/sys/class/net//device/numa_node") + IFNAMSIZ];
	int node = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%.*s/device/numa_node",
		 (int)MIN(strcspn(name, ":"), IFNAMSIZ - 1U), name);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

unsigned int sock_netif_conns(uint32_t addr)
{
	unsigned int gbit = 1, log2 = 0;
	const struct ifaddrs *i;
	struct ifaddrs *all;

	if (getifaddrs(&all))
		return 1;
	i = find_addr(all, addr);
	if (i)
		gbit = speed_of(i->ifa_name);
	freeifaddrs(all);
	while (gbit >>= 1)
		log2++;
	return log2 / 2 + 1;
}
