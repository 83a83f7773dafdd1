/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node in a program that has an event loop of its own: here, epoll. The loop
 * waits for the program's own descriptor, stdin, and for lnet_fd(), at most as
 * long as lnet_next_timeout(), and then calls lnet_poll(). The program has one
 * thread.
 *
 * It reads NIDs from stdin, one in a line, and pings them. Other nodes may ping
 * its NID. To run it with port 9988 and a NID of this host:
 *
 *	epoll 9988 127.0.0.1@tcp
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <ulnet/lnet.h>

#define TIMEOUT UINT64_C(1000000) /* us for each ping */

static unsigned int waiting; /* pings without an answer */
static int failed;

static void check(int rc, const char *what)
{
	if (rc < 0)
		errx(1, "%s: %s", what, strerror(-rc));
}

/* ---- the node ---- */

static struct lnet *node_new(const char *port, const char *nid)
{
	struct ulnet_conf conf = {
		.run = LNET_RUN_POLL,
		.nids = nid,
		.port = (uint16_t)atoi(port),
	};
	struct lnet *node;

	check(lnet_open(&conf, &node), nid);
	return node;
}

/* Called from within lnet_poll(). */
static void on_pong(void *name, int status, const struct ulnet_ping_info *info)
{
	if (status)
		printf("%s: %s\n", (char *)name, strerror(-status));
	else
		printf("%s: %u interfaces\n", (char *)name, info->nnis);
	failed |= status != 0;
	waiting--;
	free(name);
}

static void ping(struct lnet *node, const char *name)
{
	struct ulnet_id target = { .pid = LNET_PID_LUSTRE };
	char *copy = strdup(name);

	if (!copy)
		err(1, "no memory");
	if (lnet_nid_parse(name, &target.nid) == 0 &&
	    lnet_ping(node, target, TIMEOUT, on_pong, copy) == 0) {
		waiting++;
		return;
	}
	printf("%s: not a NID like 10.0.0.1@tcp\n", name);
	failed = 1;
	free(copy);
}

/* ---- the program's own loop ---- */

static void watch(int ep, int fd, const char *what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		err(1, "%s", what);
}

/* Pings the NIDs that have come on stdin. False: stdin has ended. */
static bool read_lines(struct lnet *node)
{
	static char text[4096];
	static size_t len;
	ssize_t n = read(STDIN_FILENO, text + len, sizeof(text) - 1 - len);
	char *line = text, *end;

	if (n <= 0)
		return false;
	len += (size_t)n;
	text[len] = '\0';
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		ping(node, line);
	}
	len = strlen(line);
	memmove(text, line, len);
	return len < sizeof(text) - 1;
}

/* The timeout for epoll_wait(), ms, rounded up; -1: none. */
static int timeout_ms(struct lnet *node)
{
	uint64_t us = lnet_next_timeout(node);

	return us < UINT64_C(3600000000) ? (int)((us + 999) / 1000) : -1;
}

int main(int argc, char **argv)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), fd;
	struct epoll_event ev;
	struct lnet *node;
	bool more = true;

	if (argc != 3)
		errx(2, "usage: epoll PORT NID");
	setvbuf(stdout, NULL, _IOLBF, 0);
	node = node_new(argv[1], argv[2]);
	fd = lnet_fd(node);
	check(fd, "descriptor");
	watch(ep, fd, "descriptor");
	watch(ep, STDIN_FILENO, "stdin, which should be a pipe or a terminal");
	printf("ready\n");
	while (more || waiting) {
		int n = epoll_wait(ep, &ev, 1, timeout_ms(node));

		if (n == 1 && ev.data.fd == STDIN_FILENO) {
			more = read_lines(node);
			if (!more)
				epoll_ctl(ep, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
		} else {
			check(lnet_poll(node, 0), "node");
		}
	}
	lnet_close(node);
	close(ep);
	return failed;
}
