/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a service that runs: rpc/service_set.h. */
#ifndef RPC_SERVER_SET_H
#define RPC_SERVER_SET_H

#include "rpc/service_set.h"

struct shard;

/* What rpc_side.set calls on CPT 0: changes the service as @set says, and tells
 * what it has now. Returns 0; or -ENOENT, -EINVAL, -EOPNOTSUPP, -ENOMEM: then
 * nothing has changed, and set->why tells the reason. */
int services_set(struct shard *s, struct service_set *set);

#endif
