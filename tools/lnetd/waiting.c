/* SPDX-License-Identifier: BSD-3-Clause */
#include "waiting.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/program.h"

#define SECOND_NS   UINT64_C(1000000000)
#define MILLISECOND UINT64_C(1000000) /* ns in a millisecond */

int waiting_open(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK,
				 .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
					      RTMGRP_IPV6_IFADDR };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
			NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Takes all messages, and ignores what they say. */
static void waiting_drain(int fd)
{
	char c; /* the rest of a message is dropped */

	while (recv(fd, &c, sizeof(c), 0) >= 0)
		;
}

int waiting_wait(int fd, int signals, uint64_t at)
{
	uint64_t now = clock_ns();
	uint64_t until = fd < 0 && now + SECOND_NS < at ? now + SECOND_NS : at;
	struct pollfd p[] = { { .fd = signals, .events = POLLIN },
			      { .fd = fd, .events = POLLIN } };
	int number;

	while (!(number = signals_take(signals)) &&
	       (now = clock_ns()) < until) {
		uint64_t left = (until - now) / MILLISECOND + 1;

		/* poll() ignores a negative descriptor. */
		poll(p, 2, left < 60000 ? (int)left : 60000);
		if (p[1].revents) {
			waiting_drain(fd);
			break;
		}
	}
	return number;
}
