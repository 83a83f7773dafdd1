/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches the links, addresses and names of this host's interfaces, by
 * rtnetlink. All NIs of one LND on a node share a watch, which CPT 0 owns.
 * Functions: CPT 0's thread.
 */
#ifndef LND_LINK_H
#define LND_LINK_H

#include "lnd/lnd.h"

struct ifaddrs;
struct link_watch;

/* An NI that watches. The first two are set before it joins. */
struct lnd_link {
	struct lnd_ni *ni;
	/* Something has changed, perhaps nothing that is of the NI: looks at
	 * @all, from getifaddrs(3), which is borrowed until return. In a turn
	 * of the loop, or from lnd_link_look(). Must not join or leave. */
	void (*look)(struct lnd_link *l, const struct ifaddrs *all);
	struct list in_watch;	  /* link_watch.links */
	struct link_watch *watch; /* NULL: it does not watch */
};

/* Watches from now on, by the watch in *@slot, which is created if need be. If
 * the system does not report changes, as in some sandboxes, the log has a
 * warning, and nothing is called but by lnd_link_look(). @slot: borrowed until
 * all links have left, and NULL then. 0 or -errno, logged. */
int lnd_link_join(struct lnd_link *l, void **slot) must_check;
/* No effect on a link that has not joined. */
void lnd_link_leave(struct lnd_link *l);
/* Calls look() of all links of the watch, at once, or later if the system does
 * not say how its interfaces are. */
void lnd_link_look(struct lnd_link *l);

/* Tells LNet if the interface of @ni has another name now. @all: from
 * getifaddrs(3). */
void lnd_link_name(struct lnd_ni *ni, const struct ifaddrs *all);

#endif
