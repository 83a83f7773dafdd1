/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names and the portals of a node's services: each belongs to one service.
 *
 * A service that starts without a portal of its own gets the one that a service
 * of its name had before on this node, because clients may still send there.
 */
#pragma once

struct services;
struct ulrpc_service;
struct ulrpc_service_conf;

/* Reserves the name of @svc and the portal of its configuration for it, or any
 * free portal if the configuration has 0, and puts it into the list of
 * services. Returns 0; -EEXIST: the name or the portal is taken; -ENOSPC: no
 * portal is free; the caller is told why in the way of @c. Called with
 * rpc->wait.lock held. */
int portals_claim(struct services *all, struct ulrpc_service *svc,
		  const struct ulrpc_service_conf *c);

/* Takes @svc out of the list; its name and its portal are free again. Takes
 * rpc->wait.lock. */
void portals_release(struct ulrpc_service *svc);
