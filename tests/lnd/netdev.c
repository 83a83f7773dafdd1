/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/netdev.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A request for rtnetlink that is being built. */
struct request {
	struct nlmsghdr h;
	char bytes[512];
};

/* Appends @len bytes, all 0, to the request. */
static void *put(struct request *r, size_t len)
{
	void *p = (char *)r + NLMSG_ALIGN(r->h.nlmsg_len);

	BUG_ON(NLMSG_ALIGN(r->h.nlmsg_len) + len > sizeof(*r));
	r->h.nlmsg_len = NLMSG_ALIGN(r->h.nlmsg_len) + (uint32_t)len;
	return p;
}

static struct request request_of(uint16_t type, uint16_t flags)
{
	return (struct request){
		.h = { .nlmsg_len = NLMSG_HDRLEN,
		       .nlmsg_type = type,
		       .nlmsg_flags =
			       (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags) },
	};
}

static struct rtattr *begin(struct request *r, uint16_t type)
{
	struct rtattr *a = put(r, sizeof(*a));

	a->rta_type = type;
	return a;
}

/* Ends the attribute, which contains all that was appended since begin(). */
static void end(const struct request *r, struct rtattr *a)
{
	a->rta_len = (unsigned short)((const char *)r + r->h.nlmsg_len -
				      (const char *)a);
}

static void put_attr(struct request *r, uint16_t type, const void *data,
		     size_t len)
{
	struct rtattr *a = begin(r, type);

	memcpy(put(r, len), data, len);
	end(r, a);
}

static void put_text(struct request *r, uint16_t type, const char *text)
{
	put_attr(r, type, text, strlen(text) + 1);
}

static int answer(int fd)
{
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char bytes[1024];
	} a;
	ssize_t n = recv(fd, &a, sizeof(a), 0);

	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(a.h) + sizeof(a.e.error) ||
	    a.h.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return a.e.error;
}

static int ask(const struct request *r)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int rc;

	if (fd < 0)
		return -errno;
	rc = send(fd, r, r->h.nlmsg_len, 0) < 0 ? -errno : answer(fd);
	close(fd);
	return rc;
}

int netdev_set(const char *name, bool up)
{
	struct request r = request_of(RTM_NEWLINK, 0);
	struct ifinfomsg *i = put(&r, sizeof(*i));

	i->ifi_index = (int)if_nametoindex(name);
	i->ifi_change = IFF_UP;
	i->ifi_flags = up ? IFF_UP : 0;
	return ask(&r);
}

int netdev_rename(const char *name, const char *to)
{
	struct request r = request_of(RTM_NEWLINK, 0);
	struct ifinfomsg *i = put(&r, sizeof(*i));

	i->ifi_index = (int)if_nametoindex(name);
	put_text(&r, IFLA_IFNAME, to);
	return ask(&r);
}

static int change_addr(struct request r, const char *name, const char *addr)
{
	struct ifaddrmsg *i = put(&r, sizeof(*i));
	int family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	size_t len = family == AF_INET ? sizeof(struct in_addr)
				       : sizeof(struct in6_addr);
	uint8_t bytes[sizeof(struct in6_addr)];

	if (inet_pton(family, addr, bytes) != 1)
		return -EINVAL;
	i->ifa_family = (uint8_t)family;
	i->ifa_prefixlen = (uint8_t)(8 * len);
	/* nobody else can have the address, so it can be used at once */
	i->ifa_flags = IFA_F_NODAD;
	i->ifa_index = if_nametoindex(name);
	put_attr(&r, IFA_LOCAL, bytes, len);
	return ask(&r);
}

static int listen_to(uint32_t groups)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int rc;

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd < 0 ? -errno : fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* Does the message announce a new route to @addr as an address of this host? */
static bool is_route_to(struct nlmsghdr *h, const struct in6_addr *addr)
{
	struct rtmsg *m = NLMSG_DATA(h);
	struct rtattr *a = RTM_RTA(m);
	int len = (int)RTM_PAYLOAD(h);

	if (h->nlmsg_type != RTM_NEWROUTE || m->rtm_family != AF_INET6 ||
	    m->rtm_type != RTN_LOCAL)
		return false;
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if (a->rta_type == RTA_DST && RTA_PAYLOAD(a) == sizeof(*addr) &&
		    !memcmp(RTA_DATA(a), addr, sizeof(*addr)))
			return true;
	return false;
}

/* Waits until IPv6 can use the address @text: there is a route to it, some time
 * after it was added. @fd is a netlink socket that was opened before the
 * address was added. */
static int await_route(int fd, const char *text)
{
	union {
		struct nlmsghdr h;
		char bytes[8192];
	} m;
	struct in6_addr addr;
	int len;

	if (inet_pton(AF_INET6, text, &addr) != 1)
		return -EINVAL;
	for (;;) {
		struct nlmsghdr *h = &m.h;

		len = (int)recv(fd, &m, sizeof(m), 0);
		if (len < 0 && errno != EINTR)
			return -errno;
		for (; NLMSG_OK(h, (uint32_t)len); h = NLMSG_NEXT(h, len))
			if (is_route_to(h, &addr))
				return 0;
	}
}

int netdev_add_addr(const char *name, const char *addr)
{
	int fd = strchr(addr, ':') ? listen_to(RTMGRP_IPV6_ROUTE) : -1;
	int rc = change_addr(request_of(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL),
			     name, addr);

	if (!rc && fd >= 0)
		rc = await_route(fd, addr);
	if (fd >= 0)
		close(fd);
	return rc;
}

int netdev_del_addr(const char *name, const char *addr)
{
	return change_addr(request_of(RTM_DELADDR, 0), name, addr);
}

int netdev_add_pair(const char *name, const char *other)
{
	struct request r = request_of(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	struct rtattr *info, *data, *peer;

	put(&r, sizeof(struct ifinfomsg));
	put_text(&r, IFLA_IFNAME, name);
	info = begin(&r, IFLA_LINKINFO);
	put_text(&r, IFLA_INFO_KIND, "veth");
	data = begin(&r, IFLA_INFO_DATA);
	peer = begin(&r, VETH_INFO_PEER);
	put(&r, sizeof(struct ifinfomsg));
	put_text(&r, IFLA_IFNAME, other);
	end(&r, peer);
	end(&r, data);
	end(&r, info);
	return ask(&r);
}

int netdev_del(const char *name)
{
	struct request r = request_of(RTM_DELLINK, 0);
	struct ifinfomsg *i = put(&r, sizeof(*i));

	i->ifi_index = (int)if_nametoindex(name);
	return i->ifi_index ? ask(&r) : -ENODEV;
}

int netdev_listen(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK,
				 .nl_groups = RTMGRP_IPV4_IFADDR };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
			NETLINK_ROUTE);
	int rc;

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd < 0 ? -errno : fd;
	rc = -errno;
	close(fd);
	return rc;
}

bool netdev_has_lost(int fd)
{
	char c;

	while (recv(fd, &c, sizeof(c), 0) >= 0)
		;
	return errno == ENOBUFS;
}
