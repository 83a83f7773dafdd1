/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -EPERM : 0;
}

/* Maps root inside the namespace to the user that we are outside. */
static int map_ids(unsigned int uid, unsigned int gid)
{
	char map[64];
	int rc;

	snprintf(map, sizeof(map), "0 %u 1", uid);
	rc = write_file("/proc/self/uid_map", map);
	if (!rc)
		rc = write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return rc ? rc : write_file("/proc/self/gid_map", map);
}

int netns_enter(void)
{
	unsigned int uid = geteuid(), gid = getegid();

	if (uid == 0 && unshare(CLONE_NEWNET) == 0)
		return 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return -errno;
	return map_ids(uid, gid);
}

static int lo_up(int fd)
{
	struct ifreq ifr = { .ifr_name = "lo" };

	if (ioctl(fd, SIOCGIFFLAGS, &ifr) != 0)
		return -errno;
	ifr.ifr_flags |= IFF_UP;
	return ioctl(fd, SIOCSIFFLAGS, &ifr) != 0 ? -errno : 0;
}

static int set_addr(int fd, unsigned long request, const char *name,
		    struct in_addr addr)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr = addr };
	struct ifreq ifr = { 0 };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	memcpy(&ifr.ifr_addr, &sin, sizeof(sin));
	return ioctl(fd, request, &ifr) != 0 ? -errno : 0;
}

static bool has_label(int fd, const char *name)
{
	struct ifreq ifr = { 0 };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_addr.sa_family = AF_INET;
	return ioctl(fd, SIOCGIFADDR, &ifr) == 0;
}

int netns_add_addr(struct in_addr addr)
{
	struct in_addr host = { .s_addr = UINT32_MAX };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char name[IFNAMSIZ];
	int rc;

	if (fd < 0)
		return -errno;
	/* one address for each label */
	snprintf(name, sizeof(name), "lo:%08x", ntohl(addr.s_addr));
	rc = lo_up(fd);
	if (!rc && !has_label(fd, name)) {
		rc = set_addr(fd, SIOCSIFADDR, name, addr);
		if (!rc)
			rc = set_addr(fd, SIOCSIFNETMASK, name, host);
	}
	close(fd);
	return rc;
}

unsigned long netns_counter(const char *name)
{
	char names[8192], values[8192], *n, *v, *at_n, *at_v;
	unsigned long count = 0;
	FILE *f = fopen("/proc/net/netstat", "r");

	if (!f)
		return 0;
	/* The first two lines have the names of TCP's counters, and their
	 * values. */
	if (fgets(names, sizeof(names), f) &&
	    fgets(values, sizeof(values), f)) {
		n = strtok_r(names, " ", &at_n);
		v = strtok_r(values, " ", &at_v);
		while (n && v) {
			if (!strcmp(n, name))
				count = strtoul(v, NULL, 10);
			n = strtok_r(NULL, " ", &at_n);
			v = strtok_r(NULL, " ", &at_v);
		}
	}
	fclose(f);
	return count;
}
