/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tombstone receives on the portal of a service that has ended, until a
 * service uses the portal again. It answers requests with "no such service", so
 * that clients know that their requests were not executed, and look for the
 * service by its name. To requests of calls that the service has executed it
 * sends the reply again, which the service has left (session/kept.h). It needs
 * little memory of its own, and reads only the heads of
 * messages. The bytes of answers that LNet is sending are limited, and each NID
 * has its share of them (quota.h).
 *
 * Thread: owner (the CPT).
 */
#ifndef RPC_TOMBSTONE_H
#define RPC_TOMBSTONE_H

#include "rpc/rpc.h"

extern const struct rpc_part tombstone_part;

/* Puts a tombstone on @portal, on the CPT of @s, unless there is one. Returns
 * 0; -ENOMEM; -ESHUTDOWN; or what LNetMEAttach(3) returns. */
int tombstone_open(struct shard *s, unsigned int portal);
/* Removes the tombstone on @portal, on the CPT of @s, if there is one. */
void tombstone_close(struct shard *s, unsigned int portal);

#endif
