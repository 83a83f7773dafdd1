/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names, portals and numbers of a node's services. Each service has a name
 * and a number of its own. While there are portals enough, each also has a
 * portal of its own, whose number is the service's. The last portal that is
 * left in the range becomes the shared portal, for the rest of RPC's life: the
 * services that start later share it, and requests name them by their numbers,
 * which begin at LNET_PORTALS. A service with a fixed portal never shares it.
 *
 * A number that another service has had before goes with a count of that, by
 * which clients name the service (ulrpc_service.mark): a request that comes
 * late, and was for the service before, does not reach the next one.
 *
 * A service that starts without a portal of its own gets the one, or the
 * number, that a service of its name had before on this node, because clients
 * may still send there.
 */
#pragma once

struct services;
struct ulrpc_service;
struct ulrpc_service_conf;

/* Reserves for @svc its name, and the portal of its configuration; if that is
 * 0, any free portal, or a number on the shared portal. Puts @svc into the list
 * of services. Returns 0; -EAGAIN: the shared portal is to be made first;
 * -EEXIST: the name or the portal is taken; -ENOSPC: no portal, or number, is
 * free; except with -EAGAIN the caller is told why in the way of @c. Called
 * with rpc->wait.lock held. */
int portals_claim(struct services *all, struct ulrpc_service *svc,
		  const struct ulrpc_service_conf *c);
/* Reserves the shared portal for @svc, which is to receive there. Returns 0; or
 * -ENOSPC, and the caller is told so in the way of @c. Called with
 * rpc->wait.lock held. */
int portals_share(struct services *all, struct ulrpc_service *svc,
		  const struct ulrpc_service_conf *c);

/* Called when clients can find @svc from now on: its number is not that of the
 * service any more which had it before. A service that fails to start before
 * that leaves everything as it was. Takes rpc->wait.lock. */
void portals_use(struct ulrpc_service *svc);
/* Takes @svc out of the list; its name, portal and number are free again. Takes
 * rpc->wait.lock. */
void portals_release(struct ulrpc_service *svc);
