/* SPDX-License-Identifier: BSD-3-Clause */
/* Network interfaces of the system, and conversion between NIDs and socket
 * addresses (IPv4 and IPv6). Any thread. */
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
/* Has @a the address of @nid? Ports do not count. */
bool netif_addr_is(const union netif_addr *a, const struct ulnet_nid *nid);
/* Sets the address of @nid to that in @sa. False: @sa is NULL, or is neither
 * IPv4 nor IPv6. */
bool netif_addr_take(struct ulnet_nid *nid, const struct sockaddr *sa);

/* lnd.resolve(). Accepts addresses of interfaces, and any address of an IPv4
 * loopback network (127.0.0.2); never IPv6 link-local ones (fe80::/10). An
 * interface's name stands for its first address of the size of @nid's, else for
 * its first address. */
int netif_resolve(const char *interface, struct ulnet_nid *nid,
		  char name[LNET_INTERFACE_SIZE]);

/* lnd.source(). Asks the kernel, which sends nothing for that. -ENETUNREACH: it
 * has no route; -EADDRNOTAVAIL: by a link-local address (fe80::/10). */
int netif_source(const struct ulnet_nid *target, struct ulnet_nid *nid);

/* How many bulk connections each way suit the speed of the interface that has
 * the address of @nid: 1 below 4 Gbit/s or if the speed is unknown, and one
 * more for each factor of 4 (25 Gbit/s: 3). */
unsigned int netif_conns(const struct ulnet_nid *nid);

/* How many leading bits of the address of @nid, which is one of this host, its
 * IP network has; 0: that is not known. */
unsigned int netif_prefix(const struct ulnet_nid *nid);

/* The NUMA node of the interface's device; -1: unknown. */
int netif_numa_node(const char *name);
/* The NUMA node of the device whose folder in sysfs is @folder; -1: unknown. */
int netif_device_numa_node(const char *folder);

/* The name that the interface with the address of @nid has now, if it was
 * renamed since it was called @name. NULL: it is called @name still, or is not
 * known. @name may also be an address. @all: from getifaddrs(3). */
const char *netif_renamed(const struct ifaddrs *all,
			  const struct ulnet_nid *nid, const char *name);

/* Why the address of @nid cannot be used just now, as text; NULL: it can. It
 * can if an interface has the address, or is a loopback interface whose network
 * has it, and if that interface is up with a carrier. @all: from getifaddrs(3).
 */
const char *netif_fault(const struct ifaddrs *all, const struct ulnet_nid *nid);

#endif
