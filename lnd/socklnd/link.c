/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/socklnd.h"

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
#include "lnd/socklnd/handshake.h"
#include "lnd/socklnd/peer.h"

/* how many rtnetlink messages are read, at most, before the state of links is
 * read */
#define BATCH 64
/* If the state of links could not be read, it is read again after so long. */
#define AGAIN NSEC_PER_SEC

struct sock_links {
	struct env_io io; /* rtnetlink; fd -1: the system does not allow it */
	struct list nis;  /* sock_ni.in_links */
	struct loop *loop;
	void **shared;	    /* lnd_ni.shared */
	struct timer again; /* armed while the state could not be read */
};

/* ---- consequences on the CPTs ---- */

static void on_link_changed(struct work *w)
{
	struct sock_cpt *cpt = container_of(w, struct sock_cpt, link_work);

	atomic_store(&cpt->link_posted, false);
	if (sock_ni_is_up(cpt->sni))
		sock_peers_link_up(cpt);
	else
		sock_peers_link_down(cpt);
	passage_arrived(&cpt->sni->passage);
}

static void post_link_changed(struct sock_ni *sni)
{
	for (unsigned int i = 0; i < sni->ni->cpts; i++) {
		struct sock_cpt *cpt = &sni->cpts[i];

		if (!atomic_exchange(&cpt->link_posted, true))
			passage_send(&sni->passage, cpt->loop, &cpt->link_work);
	}
}

void sock_link_init(struct sock_cpt *cpt)
{
	cpt->link_work.fn = on_link_changed;
}

/* ---- the state of links ---- */

/* LNet is told before the CPTs end messages, so that it does not send these
 * again on this NI. */
static void ni_look(struct sock_ni *sni, const char *fault)
{
	bool was = atomic_exchange(&sni->up, !fault);

	lnet_ni_set_up(sni->ni, !fault, fault);
	if (was || !fault)
		post_link_changed(sni);
}

static void name_look(struct lnd_ni *ni, const struct ifaddrs *all)
{
	const char *name = netif_renamed(all, &ni->nid, ni->interface);

	if (name)
		lnet_ni_renamed(ni, name);
}

static void link_look(struct sock_links *ls)
{
	struct sock_ni *sni;
	struct ifaddrs *all;

	if (getifaddrs(&all)) {
		log_warn("socklnd",
			 "state of interfaces not known, trying again: %s",
			 strerror(errno));
		loop_timer_arm(ls->loop, &ls->again,
			       loop_now(ls->loop) + AGAIN);
		return;
	}
	loop_timer_cancel(ls->loop, &ls->again);
	list_for_each_entry (sni, &ls->nis, in_links) {
		name_look(sni->ni, all);
		ni_look(sni, netif_fault(all, &sni->ni->nid));
	}
	freeifaddrs(all);
}

static void link_on_again(struct timer *t)
{
	link_look(container_of(t, struct sock_links, again));
}

/* ---- when to look ---- */

static void stop_watching(struct sock_links *ls)
{
	loop_unwatch(ls->loop, &ls->io);
	if (ls->io.fd >= 0)
		fork_fd_close(ls->io.fd);
	ls->io.fd = -1;
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
	struct sock_links *ls = container_of(io, struct sock_links, io);
	int rc = revents & ENV_ERROR ? ENOMEM : link_drain(io->fd);

	if (rc) {
		log_err("socklnd",
			"changes of links and addresses are not noticed any "
			"more: %s",
			strerror(rc));
		stop_watching(ls);
	}
	link_look(ls);
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

static int watch(struct sock_links *ls)
{
	ls->io.fd = open_netlink();
	if (ls->io.fd >= 0)
		return loop_watch(ls->loop, &ls->io);
	if (!link_is_refusal(ls->io.fd))
		return ls->io.fd;
	log_warn("socklnd",
		 "changes of links and addresses are not noticed: "
		 "rtnetlink: %s",
		 strerror(-ls->io.fd));
	ls->io.fd = -1;
	return 0;
}

static void links_free(struct sock_links *ls)
{
	struct sock_shared *s = *ls->shared;

	stop_watching(ls);
	loop_timer_cancel(ls->loop, &ls->again);
	s->links = NULL;
	sock_shared_put(ls->shared);
	free(ls);
}

static int links_new(const struct lnd_ni *ni, struct sock_links **ls_p)
{
	struct sock_shared *s = sock_shared_get(ni->shared);
	struct sock_links *ls = s ? calloc(1, sizeof(*ls)) : NULL;
	int rc;

	if (!ls) {
		sock_shared_put(ni->shared);
		return -ENOMEM;
	}
	ls->shared = ni->shared;
	ls->loop = ni->loops[0];
	ls->io.events = ENV_READ;
	ls->io.fn = on_change;
	list_init(&ls->nis);
	timer_init(&ls->again, link_on_again);
	s->links = ls;
	rc = watch(ls);
	if (rc) {
		log_err("socklnd", "cannot watch links and addresses: %s",
			strerror(-rc));
		links_free(ls);
		return rc;
	}
	*ls_p = ls;
	return 0;
}

int sock_link_join(struct sock_ni *sni)
{
	struct sock_shared *s = *sni->ni->shared;
	struct sock_links *ls = s ? s->links : NULL;
	int rc = ls ? 0 : links_new(sni->ni, &ls);

	if (rc)
		return rc;
	list_add_tail(&ls->nis, &sni->in_links);
	sni->links = ls;
	link_look(ls);
	return 0;
}

void sock_link_leave(struct sock_ni *sni)
{
	struct sock_links *ls = sni->links;

	if (!ls)
		return;
	list_del(&sni->in_links);
	sni->links = NULL;
	if (list_empty(&ls->nis))
		links_free(ls);
}
