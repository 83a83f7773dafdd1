/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The services of a node: how they are found by name, begin and end.
 *
 * End of life, by ulrpc_service_stop() or with RPC on the node: each CPT closes
 * (refuses new requests), aborts (what is under way stays without an answer),
 * stops (unlinks its buffers); then the service is freed, or, if handlers still
 * have requests of it, when the last one of these is answered.
 *
 * The gauges of services and exports, too: how long requests may take, and how
 * many a client may have under way.
 */
#ifndef RPC_SERVICES_H
#define RPC_SERVICES_H

extern const struct rpc_part service_part;

#endif
