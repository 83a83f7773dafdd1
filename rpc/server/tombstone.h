/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals whose service has gone, or has not come back yet. Requests for the
 * service are answered that there is no such service, and so are certainly not
 * executed; their client may then look for the service by its name. A tombstone
 * takes little memory on each CPT, and reads only as much of a message as the
 * answer needs. The answers on their way are limited, and each NID has its
 * share (quota.h): a NID that takes no answers gets no more of them, and all
 * others still do.
 *
 * Thread: owner (the CPT).
 */
#ifndef RPC_TOMBSTONE_H
#define RPC_TOMBSTONE_H

#include "rpc/rpc.h"

extern const struct rpc_part tombstone_part;

/* Puts a tombstone on @portal, on this CPT, until there is a service again, or
 * RPC stops. 0, -ENOMEM, -ESHUTDOWN, or what LNetMEAttach(3) says. */
int tombstone_open(struct shard *s, unsigned int portal);
/* A service takes @portal: removes its tombstone, if it has one. */
void tombstone_close(struct shard *s, unsigned int portal);

#endif
