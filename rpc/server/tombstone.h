/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tombstone takes the portal of a service that has ended, until there is a
 * service again. It answers requests that there is no such service, so that
 * clients know that the requests were not executed, and look for the service by
 * its name. It needs little memory, and reads only the heads of messages. The
 * answers on their way are limited, and each NID has its share (quota.h).
 *
 * Thread: owner (the CPT).
 */
#ifndef RPC_TOMBSTONE_H
#define RPC_TOMBSTONE_H

#include "rpc/rpc.h"

extern const struct rpc_part tombstone_part;

/* Puts a tombstone on @portal, on this CPT. 0, -ENOMEM, -ESHUTDOWN, or what
 * LNetMEAttach(3) returns. */
int tombstone_open(struct shard *s, unsigned int portal);
/* Removes the tombstone on @portal, on this CPT, if there is one. */
void tombstone_close(struct shard *s, unsigned int portal);

#endif
