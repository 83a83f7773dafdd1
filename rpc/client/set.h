/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of the clients of a service: rpc/service_set.h. */
#ifndef RPC_CLIENT_SET_H
#define RPC_CLIENT_SET_H

#include "rpc/service_set.h"

struct shard;

/* What rpc_side.set_clients calls first: changes the clients that this CPT has,
 * as @set says, and adds them to what it tells. Calls in flight stay there, and
 * none that waits is refused. Owner, in a turn. */
void clients_set(struct shard *s, struct client_set *set);

#endif
