/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include "lnd/o2iblnd/rdma.h"

union ibr_addr ibr_addr(const struct ulnet_nid *nid, uint16_t port)
{
	union ibr_addr a;

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

static bool is_addr(const struct sockaddr *sa, const struct ulnet_nid *nid)
{
	const struct sockaddr_in *v4 = (const void *)sa;
	const struct sockaddr_in6 *v6 = (const void *)sa;

	if (!sa)
		return false;
	if (lnet_nid_is_nid4(nid))
		return sa->sa_family == AF_INET &&
		       !memcmp(&v4->sin_addr, nid->addr, sizeof(v4->sin_addr));
	return sa->sa_family == AF_INET6 &&
	       !memcmp(&v6->sin6_addr, nid->addr, sizeof(v6->sin6_addr));
}

struct ulnet_nid ibr_addr_nid(const struct sockaddr *sa,
			      const struct ulnet_nid *nid)
{
	const struct sockaddr_in *v4 = (const void *)sa;
	const struct sockaddr_in6 *v6 = (const void *)sa;
	struct ulnet_nid of = *nid;

	if (lnet_nid_is_nid4(nid) && sa->sa_family == AF_INET)
		memcpy(of.addr, &v4->sin_addr, sizeof(v4->sin_addr));
	else if (!lnet_nid_is_nid4(nid) && sa->sa_family == AF_INET6)
		memcpy(of.addr, &v6->sin6_addr, sizeof(v6->sin6_addr));
	else
		return LNET_NID_ANY;
	return of;
}

const char *ibr_addr_fault(const struct ulnet_nid *nid)
{
	const unsigned int need = IFF_UP | IFF_RUNNING;
	const char *fault = "no interface has its address";
	struct ifaddrs *all;

	/* Not known: what the device says counts. */
	if (getifaddrs(&all))
		return NULL;
	for (const struct ifaddrs *i = all; i && fault; i = i->ifa_next) {
		if (!is_addr(i->ifa_addr, nid))
			continue;
		fault = (i->ifa_flags & need) == need ? NULL
						      : "its link is down";
	}
	freeifaddrs(all);
	return fault;
}
