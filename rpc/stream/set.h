/* SPDX-License-Identifier: BSD-3-Clause */
/* What RPC asks of all streams of a node: changes while they are open
 * (rpc/service_set.h), and how many there are. */
#ifndef RPC_STREAM_SET_H
#define RPC_STREAM_SET_H

#include "rpc/rpc.h"
#include "rpc/service_set.h"

/* What rpc_side.set calls before services_set(): says in @set whether the
 * service has streams, and what these have. */
void streams_tell_service(struct shard *s, struct service_set *set);
/* ... and after it: changes what @set gives. Windows count for streams that are
 * opened from now on; none ends because there are more than streams_max. */
void streams_set_service(struct shard *s, const struct service_set *set);
/* What rpc_side.set_clients calls: the same for the clients of a service on
 * this CPT. A patience counts for calls that carriers make from now on. */
void streams_set_clients(struct shard *s, struct client_set *set);

/* The functions for rpc_side.streams. */
void streams_of_clients(struct shard *s, rpc_streams_fn fn, void *arg);
void streams_served(struct shard *s, rpc_streams_fn fn, void *arg);

#endif
