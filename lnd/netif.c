/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/netif.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SYSFS_SIZE (sizeof("/sys/class/net/") + IFNAMSIZ)

static void set_addr(struct ulnet_nid *nid, const void *bytes, uint8_t size)
{
	nid->size = size;
	memset(nid->addr, 0, sizeof(nid->addr));
	memcpy(nid->addr, bytes, size + sizeof(struct in_addr));
}

bool netif_addr_take(struct ulnet_nid *nid, const struct sockaddr *sa)
{
	const struct sockaddr_in *v4 = (const void *)sa;
	const struct sockaddr_in6 *v6 = (const void *)sa;

	if (sa && sa->sa_family == AF_INET)
		set_addr(nid, &v4->sin_addr, 0);
	else if (sa && sa->sa_family == AF_INET6)
		set_addr(nid, &v6->sin6_addr, LNET_NID_IPV6_SIZE);
	else
		return false;
	return true;
}

union netif_addr netif_addr(const struct ulnet_nid *nid, uint16_t port)
{
	union netif_addr a;

	memset(&a, 0, sizeof(a));
	if (lnet_nid_is_nid4(nid)) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(port);
		memcpy(&a.v4.sin_addr, nid->addr, sizeof(a.v4.sin_addr));
	} else {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(port);
		memcpy(&a.v6.sin6_addr, nid->addr, sizeof(a.v6.sin6_addr));
	}
	return a;
}

bool netif_addr_is(const union netif_addr *a, const struct ulnet_nid *nid)
{
	if (lnet_nid_is_nid4(nid))
		return a->any.sa_family == AF_INET &&
		       !memcmp(&a->v4.sin_addr, nid->addr,
			       sizeof(a->v4.sin_addr));
	return a->any.sa_family == AF_INET6 &&
	       !memcmp(&a->v6.sin6_addr, nid->addr, sizeof(a->v6.sin6_addr));
}

static bool has_addr(const struct ifaddrs *i, const struct ulnet_nid *nid)
{
	struct ulnet_nid a = *nid;

	return netif_addr_take(&a, i->ifa_addr) && lnet_nid_eq(&a, nid);
}

/* Is @i a loopback interface whose IPv4 network has @nid's address? */
static bool netif_is_loopback(const struct ifaddrs *i,
			      const struct ulnet_nid *nid)
{
	struct ulnet_nid a = *nid, mask = *nid;

	if (!(i->ifa_flags & IFF_LOOPBACK) ||
	    !netif_addr_take(&a, i->ifa_addr) ||
	    !netif_addr_take(&mask, i->ifa_netmask) || !lnet_nid_is_nid4(&a) ||
	    !lnet_nid_is_nid4(nid))
		return false;
	for (unsigned int b = 0; b < sizeof(struct in_addr); b++)
		if ((a.addr[b] ^ nid->addr[b]) & mask.addr[b])
			return false;
	return true;
}

static const struct ifaddrs *find_addr(const struct ifaddrs *all,
				       const struct ulnet_nid *nid)
{
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (has_addr(i, nid))
			return i;
	return NULL;
}

const char *netif_fault(const struct ifaddrs *all, const struct ulnet_nid *nid)
{
	/* IFF_RUNNING: there is a carrier, and the driver is ready. */
	const unsigned int need = IFF_UP | IFF_RUNNING;
	bool found = false;

	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!has_addr(i, nid) && !netif_is_loopback(i, nid))
			continue;
		if ((i->ifa_flags & need) == need)
			return NULL;
		found = true;
	}
	return found ? "its link is down" : "no interface has its address";
}

const char *netif_renamed(const struct ifaddrs *all,
			  const struct ulnet_nid *nid, const char *name)
{
	const struct ifaddrs *has = NULL;
	struct in6_addr addr;

	if (inet_pton(AF_INET, name, &addr) == 1 ||
	    inet_pton(AF_INET6, name, &addr) == 1)
		return NULL;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!has_addr(i, nid))
			continue;
		/* Several interfaces may have it: then it is still this one. */
		if (!strcmp(i->ifa_name, name))
			return NULL;
		has = i;
	}
	return has && strlen(has->ifa_name) < LNET_INTERFACE_SIZE
		       ? has->ifa_name
		       : NULL;
}

/* IPv6 link-local addresses (fe80::/10) cannot be used: a NID cannot say on
 * which link they are. */
static bool is_link_local(const struct ulnet_nid *nid)
{
	return !lnet_nid_is_nid4(nid) && nid->addr[0] == 0xfe &&
	       (nid->addr[1] & 0xc0) == 0x80;
}

/* Is @nid's address one of this host? 0 or -EADDRNOTAVAIL. */
static int check_addr(const struct ifaddrs *all, const struct ulnet_nid *nid)
{
	if (is_link_local(nid))
		return -EADDRNOTAVAIL;
	if (find_addr(all, nid))
		return 0;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (netif_is_loopback(i, nid))
			return 0;
	return -EADDRNOTAVAIL;
}

/* The first address of the interface (or of its alias, eth0:1) whose size is
 * @size. */
static bool find_name_of_size(const struct ifaddrs *all, const char *name,
			      unsigned int size, struct ulnet_nid *nid)
{
	struct ulnet_nid a = *nid;

	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (strcmp(i->ifa_name, name) != 0 ||
		    !netif_addr_take(&a, i->ifa_addr) || a.size != size ||
		    is_link_local(&a))
			continue;
		*nid = a;
		return true;
	}
	return false;
}

/* The address that an interface's name stands for: one of the size of @nid's,
 * if there is any. 0, -EADDRNOTAVAIL or -ENODEV. */
static int netif_find_name(const struct ifaddrs *all, const char *name,
			   struct ulnet_nid *nid)
{
	unsigned int size = nid->size;

	if (find_name_of_size(all, name, size, nid) ||
	    find_name_of_size(all, name, LNET_NID_IPV6_SIZE - size, nid))
		return 0;
	return if_nametoindex(name) ? -EADDRNOTAVAIL : -ENODEV;
}

/* Writes a name that netif_resolve() turns back into @nid's address: the name
 * of its interface if the address is the first one there, else the address. */
static void netif_name_of(const struct ifaddrs *all,
			  const struct ulnet_nid *nid, char *name)
{
	const struct ifaddrs *i = find_addr(all, nid);
	struct ulnet_nid first = lnet_nid_make(lnet_nid_net(nid), 0);

	if (i && !netif_find_name(all, i->ifa_name, &first) &&
	    lnet_nid_eq(&first, nid))
		snprintf(name, LNET_INTERFACE_SIZE, "%s", i->ifa_name);
	else
		inet_ntop(lnet_nid_is_nid4(nid) ? AF_INET : AF_INET6, nid->addr,
			  name, LNET_INTERFACE_SIZE);
}

/* Sets the address of @nid from @text. False: @text is no address. */
static bool parse_addr(const char *text, struct ulnet_nid *nid)
{
	uint8_t bytes[sizeof(nid->addr)];

	if (inet_pton(AF_INET, text, bytes) == 1)
		set_addr(nid, bytes, 0);
	else if (inet_pton(AF_INET6, text, bytes) == 1)
		set_addr(nid, bytes, LNET_NID_IPV6_SIZE);
	else
		return false;
	return true;
}

static int resolve(const struct ifaddrs *all, const char *interface,
		   struct ulnet_nid *nid, char *name)
{
	struct ulnet_nid found = *nid;
	int rc;

	if (!interface) {
		netif_name_of(all, nid, name);
		return check_addr(all, nid);
	}
	if (strlen(interface) >= LNET_INTERFACE_SIZE)
		return -ENAMETOOLONG;
	if (parse_addr(interface, &found))
		rc = check_addr(all, &found);
	else
		rc = netif_find_name(all, interface, &found);
	if (rc)
		return rc;
	text_copy(name, LNET_INTERFACE_SIZE, interface);
	*nid = found;
	return 0;
}

int netif_resolve(const char *interface, struct ulnet_nid *nid,
		  char name[LNET_INTERFACE_SIZE])
{
	struct ifaddrs *all;
	int rc;

	if (getifaddrs(&all))
		return -errno;
	rc = resolve(all, interface, nid, name);
	freeifaddrs(all);
	return rc;
}

/* The address of this end of a UDP socket that is connected to @to: the kernel
 * chooses it by the route to @to. */
static int source_addr(const union netif_addr *to, union netif_addr *own)
{
	const socklen_t len =
		to->any.sa_family == AF_INET ? sizeof(to->v4) : sizeof(to->v6);
	socklen_t room = sizeof(*own);
	int fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, &to->any, len) || getsockname(fd, &own->any, &room))
		rc = -errno;
	close(fd);
	return rc;
}

int netif_source(const struct ulnet_nid *target, struct ulnet_nid *nid)
{
	/* A socket that is connected to port 0 is not connected. */
	const union netif_addr to = netif_addr(target, 1);
	struct ulnet_nid found = *target;
	union netif_addr own;
	int rc = source_addr(&to, &own);

	if (rc)
		return rc;
	if (!netif_addr_take(&found, &own.any) || is_link_local(&found))
		return -EADDRNOTAVAIL;
	*nid = found;
	return 0;
}

/* The number of bits that are set in the address of @mask. */
static unsigned int mask_bits(const struct ulnet_nid *mask)
{
	unsigned int bits = 0;

	for (size_t i = 0; i < sizeof(mask->addr); i++)
		bits += (unsigned int)__builtin_popcount(mask->addr[i]);
	return bits;
}

unsigned int netif_prefix(const struct ulnet_nid *nid)
{
	struct ulnet_nid mask = *nid;
	unsigned int bits = 0;
	struct ifaddrs *all;

	if (getifaddrs(&all))
		return 0;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!has_addr(i, nid) && !netif_is_loopback(i, nid))
			continue;
		if (netif_addr_take(&mask, i->ifa_netmask))
			bits = mask_bits(&mask);
		break;
	}
	freeifaddrs(all);
	return bits;
}

/* The number in the file FOLDER/NAME of sysfs; -1: there is none. */
static int sysfs_number(const char *folder, const char *name)
{
	char path[PATH_MAX];
	int n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

/* The folder of the interface in sysfs; an alias (eth0:1) has that of its
 * interface. */
static void sysfs_folder(const char *name, char folder[SYSFS_SIZE])
{
	snprintf(folder, SYSFS_SIZE, "/sys/class/net/%.*s",
		 (int)MIN(strcspn(name, ":"), IFNAMSIZ - 1U), name);
}

/* The speed of the interface in Gbit/s, at least 1; 1 if it is unknown. */
static unsigned int speed_of(const char *name)
{
	char folder[SYSFS_SIZE];
	int mbit;

	sysfs_folder(name, folder);
	mbit = sysfs_number(folder, "speed");
	return mbit >= 1000 ? (unsigned int)mbit / 1000 : 1;
}

int netif_device_numa_node(const char *folder)
{
	return sysfs_number(folder, "device/numa_node");
}

int netif_numa_node(const char *name)
{
	char folder[SYSFS_SIZE];

	sysfs_folder(name, folder);
	return netif_device_numa_node(folder);
}

unsigned int netif_conns(const struct ulnet_nid *nid)
{
	unsigned int gbit = 1, log2 = 0;
	const struct ifaddrs *i;
	struct ifaddrs *all;

	if (getifaddrs(&all))
		return 1;
	i = find_addr(all, nid);
	if (i)
		gbit = speed_of(i->ifa_name);
	freeifaddrs(all);
	while (gbit >>= 1)
		log2++;
	return log2 / 2 + 1;
}
