/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/text/bridge.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The kernel sends no longer messages to a buffer of this size. */
#define MESSAGE_MAX 32768

struct bridge {
	unsigned int index;
	bool is_bridge, has_port;
};

static bool is_kind_bridge(struct rtattr *info)
{
	int length = (int)RTA_PAYLOAD(info);

	for (struct rtattr *a = RTA_DATA(info); RTA_OK(a, length);
	     a = RTA_NEXT(a, length))
		if (a->rta_type == IFLA_INFO_KIND)
			return RTA_PAYLOAD(a) >= sizeof("bridge") &&
			       !memcmp(RTA_DATA(a), "bridge", sizeof("bridge"));
	return false;
}

static void look_at_link(struct bridge *b, struct nlmsghdr *m)
{
	const struct ifinfomsg *link = NLMSG_DATA(m);
	int length = (int)IFLA_PAYLOAD(m);

	for (struct rtattr *a = IFLA_RTA(NLMSG_DATA(m)); RTA_OK(a, length);
	     a = RTA_NEXT(a, length)) {
		unsigned int master = 0;

		if (a->rta_type == IFLA_MASTER &&
		    RTA_PAYLOAD(a) == sizeof(master)) {
			memcpy(&master, RTA_DATA(a), sizeof(master));
			b->has_port |= master == b->index;
		}
		if (a->rta_type == IFLA_LINKINFO &&
		    (unsigned int)link->ifi_index == b->index)
			b->is_bridge = is_kind_bridge(a);
	}
}

/* Looks at one part of the list of links. Returns false after the last one. */
static bool look_at_part(struct bridge *b, struct nlmsghdr *m, size_t length)
{
	for (; NLMSG_OK(m, length); m = NLMSG_NEXT(m, length)) {
		if (m->nlmsg_type == NLMSG_DONE || m->nlmsg_type == NLMSG_ERROR)
			return false;
		if (m->nlmsg_type == RTM_NEWLINK)
			look_at_link(b, m);
	}
	return true;
}

/* Asks the kernel for all links, and looks at them. */
static void look_at_links(struct bridge *b, int fd)
{
	static const struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} ask = { .head = { .nlmsg_len = sizeof(ask),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		  .link = { .ifi_family = AF_UNSPEC } };
	_Alignas(struct nlmsghdr) char part[MESSAGE_MAX];
	ssize_t n = send(fd, &ask, sizeof(ask), 0);

	while (n > 0) {
		n = recv(fd, part, sizeof(part), 0);
		if (n > 0 &&
		    !look_at_part(b, (struct nlmsghdr *)part, (size_t)n))
			return;
	}
}

bool bridge_is_empty(const char *name)
{
	struct bridge b = { .index = if_nametoindex(name) };
	int fd = b.index ? socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
				  NETLINK_ROUTE)
			 : -1;

	if (fd < 0)
		return false;
	look_at_links(&b, fd);
	close(fd);
	return b.is_bridge && !b.has_port;
}
