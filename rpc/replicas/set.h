/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of the sets of servers of a service: rpc/service_set.h. */
#ifndef RPC_REPLICAS_SET_H
#define RPC_REPLICAS_SET_H

#include "rpc/service_set.h"

struct shard;

/* Changes the sets that this CPT has as @set says, and adds them to what it
 * tells: clients_set() does that for the clients of their servers, but these
 * have no queues of their own. Owner, in a turn. */
void replicas_set(struct shard *s, struct client_set *set);

#endif
