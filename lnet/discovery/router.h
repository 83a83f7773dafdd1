/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gateways of this node's routes are asked how they are, whether anything
 * is sent or not (requirement B4): each is discovered anew once a minute, by a
 * process that only calls once a second, and at once when a route by it comes.
 * What it tells decides which of its routes are up (route/route.h). One that
 * does not answer loses health like any peer that fails a message, so recovery
 * (recovery.h) pings it until it does; and whatever comes from it meanwhile
 * shows that it is alive.
 *
 * Asking does something for the gateway, too: a kernel node that routes takes a
 * net from which nobody asks for one that it cannot reach.
 *
 * Owner of all of it: the CPT, for those gateways that it owns.
 */
#ifndef LNET_DISCOVERY_ROUTER_H
#define LNET_DISCOVERY_ROUTER_H

#include "base/timer.h"

struct discovery;
struct lnet_cpt;
struct lnet_peer_ni;
struct ulnet_nid;

struct router_watch {
	struct lnet_cpt *cpt;
	struct timer timer; /* armed while there are routes */
};

void routers_init(struct lnet_cpt *cpt);
void routers_stop(struct lnet_cpt *cpt);

/* Routes have changed. */
void routers_changed(struct lnet_cpt *cpt);

/* @lpni is in full health again. If it is a gateway's, the gateway may have
 * been restarted, and then knows no peer that it would tell of changes. */
void routers_well(struct lnet_cpt *cpt, const struct lnet_peer_ni *lpni);

/* A message that may have gone by @nid is lost. If @nid is a gateway's, the
 * state of its interfaces may have changed since it was asked last. */
void routers_suspect(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* The peer NI that @d has asked gave no answer. */
void routers_silent(const struct discovery *d);

#endif
