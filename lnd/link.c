/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/link.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"
#include "lnd/netif.h"

/* how many rtnetlink messages are read, at most, before the state of links is
 * read */
#define BATCH 64
/* If the state of links could not be read, it is read again after so long. */
#define AGAIN NSEC_PER_SEC

struct link_watch {
	struct env_io io;  /* rtnetlink; fd -1: the system does not allow it */
	struct list links; /* lnd_link.in_watch */
	struct loop *loop;
	void **slot;	    /* that of lnd_link_join() */
	struct timer again; /* armed while the state could not be read */
};

/* ---- looking ---- */

void lnd_link_name(struct lnd_ni *ni, const struct ifaddrs *all)
{
	const char *name = netif_renamed(all, &ni->nid, ni->interface);

	if (name)
		lnet_ni_renamed(ni, name);
}

static void watch_look(struct link_watch *w)
{
	struct lnd_link *l;
	struct ifaddrs *all;

	if (getifaddrs(&all)) {
		log_warn("link",
			 "state of interfaces not known, trying again: %s",
			 strerror(errno));
		loop_timer_arm(w->loop, &w->again, loop_now(w->loop) + AGAIN);
		return;
	}
	loop_timer_cancel(w->loop, &w->again);
	list_for_each_entry (l, &w->links, in_watch)
		l->look(l, all);
	freeifaddrs(all);
}

static void watch_on_again(struct timer *t)
{
	watch_look(container_of(t, struct link_watch, again));
}

/* ---- when to look ---- */

static void stop_watching(struct link_watch *w)
{
	loop_unwatch(w->loop, &w->io);
	if (w->io.fd >= 0)
		fork_fd_close(w->io.fd);
	w->io.fd = -1;
}

/* Reads and discards up to BATCH messages. 0, or a (positive) errno that will
 * not go away. */
static int link_drain(int fd)
{
	for (unsigned int i = 0; i < BATCH; i++) {
		char c; /* the rest of the message is dropped */

		/* ENOBUFS: messages were lost, which does not matter. */
		if (recv(fd, &c, sizeof(c), 0) >= 0 || errno == ENOBUFS)
			continue;
		return errno == EAGAIN || errno == EINTR ? 0 : errno;
	}
	return 0;
}

static void on_change(struct env_io *io, int revents)
{
	struct link_watch *w = container_of(io, struct link_watch, io);
	int rc = revents & ENV_ERROR ? ENOMEM : link_drain(io->fd);

	if (rc) {
		log_err("link",
			"changes of links and addresses are not noticed any "
			"more: %s",
			strerror(rc));
		stop_watching(w);
	}
	watch_look(w);
}

/* A descriptor for the system's messages about links and addresses, or -errno.
 */
static int open_netlink(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK,
				 .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
					      RTMGRP_IPV6_IFADDR };
	int fd, rc;

	fork_hold();
	fd = fork_fd_made(socket(AF_NETLINK,
				 SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
				 NETLINK_ROUTE));
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	rc = -errno;
	fork_fd_close(fd);
	return rc;
}

/* Does @rc mean that this system never lets us watch links? */
static bool link_is_refusal(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -EPROTONOSUPPORT ||
	       rc == -EAFNOSUPPORT;
}

static int watch_begin(struct link_watch *w)
{
	w->io.fd = open_netlink();
	if (w->io.fd >= 0)
		return loop_watch(w->loop, &w->io);
	if (!link_is_refusal(w->io.fd))
		return w->io.fd;
	log_warn("link",
		 "changes of links and addresses are not noticed: "
		 "rtnetlink: %s",
		 strerror(-w->io.fd));
	w->io.fd = -1;
	return 0;
}

static void watch_free(struct link_watch *w)
{
	stop_watching(w);
	loop_timer_cancel(w->loop, &w->again);
	*w->slot = NULL;
	free(w);
}

static int watch_new(const struct lnd_ni *ni, void **slot)
{
	struct link_watch *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	w->loop = ni->loops[0];
	w->io.events = ENV_READ;
	w->io.fn = on_change;
	w->slot = slot;
	list_init(&w->links);
	timer_init(&w->again, watch_on_again);
	*slot = w;
	rc = watch_begin(w);
	if (rc) {
		log_err("link", "cannot watch links and addresses: %s",
			strerror(-rc));
		watch_free(w);
	}
	return rc;
}

/* ---- links ---- */

int lnd_link_join(struct lnd_link *l, void **slot)
{
	int rc = *slot ? 0 : watch_new(l->ni, slot);

	if (rc)
		return rc;
	l->watch = *slot;
	list_add_tail(&l->watch->links, &l->in_watch);
	return 0;
}

void lnd_link_leave(struct lnd_link *l)
{
	struct link_watch *w = l->watch;

	if (!w)
		return;
	list_del(&l->in_watch);
	l->watch = NULL;
	if (list_empty(&w->links))
		watch_free(w);
}

void lnd_link_look(struct lnd_link *l)
{
	watch_look(l->watch);
}
