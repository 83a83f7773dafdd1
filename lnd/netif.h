/* SPDX-License-Identifier: BSD-3-Clause */
/* What the system says of its network interfaces. Any thread. */
#ifndef LND_NETIF_H
#define LND_NETIF_H

#include "lnd/lnd.h"

struct ifaddrs;

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

/* What keeps packets from going from and to the address of @nid, in words;
 * NULL: nothing. An interface must have it, or be a loopback interface whose
 * network it is in; and that interface must be up and have its carrier. @all:
 * getifaddrs(3)'s. */
const char *netif_fault(const struct ifaddrs *all,
			     const struct ulnet_nid *nid);

#endif
