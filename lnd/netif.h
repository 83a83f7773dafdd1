/* SPDX-License-Identifier: BSD-3-Clause */
/* What the system says of its network interfaces, and how it writes addresses:
 * of a NID only the address counts, IPv4 or IPv6. Any thread. */
#ifndef LND_NETIF_H
#define LND_NETIF_H

#include <netinet/in.h>

#include "lnd/lnd.h"

struct ifaddrs;

/* An address and a port. */
union netif_addr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

union netif_addr netif_addr(const struct ulnet_nid *nid, uint16_t port);
/* Is it the address of @nid, whatever the ports? */
bool netif_addr_is(const union netif_addr *a, const struct ulnet_nid *nid);
/* The address in @sa, which may be NULL, becomes that of @nid. False: it is of
 * another kind. */
bool netif_addr_take(struct ulnet_nid *nid, const struct sockaddr *sa);

/* As lnd.h says of resolve(). An address is taken if it is an interface's, or
 * any of an IPv4 loopback network's (127.0.0.2); never if it is one of IPv6
 * that each link has (fe80::/10). An interface's name stands for its first
 * address of the size of @nid's, else for its first address. */
int netif_resolve(const char *interface, struct ulnet_nid *nid,
		  char name[LNET_INTERFACE_SIZE]);

/* How many bulk connections, each way, fit the interface with the address of
 * @nid: 1 below 4 Gbit/s or when the speed is not known, and one more for each
 * fourfold (25 Gbit/s: 3). */
unsigned int netif_conns(const struct ulnet_nid *nid);

/* The NUMA node of the interface's device; -1: none is known. */
int netif_numa_node(const char *name);
/* The same of the device that has this folder in sysfs. */
int netif_device_numa_node(const char *folder);

/* What keeps packets from going from and to the address of @nid, in words;
 * NULL: nothing. An interface must have it, or be a loopback interface whose
 * network it is in; and that interface must be up and have its carrier. @all:
 * getifaddrs(3)'s. */
const char *netif_fault(const struct ifaddrs *all, const struct ulnet_nid *nid);

#endif
