/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose a request is, for what outlives the request (channels of streams): only
 * the same process, with the same proof of who it is, may use that. The NID and
 * the pid of a client do not say that, as they are only what its messages
 * claim.
 */
#ifndef RPC_OWNER_H
#define RPC_OWNER_H

#include <string.h>
#include "rpc/rpc.h"

struct ulrpc_request;

struct rpc_owner {
	/* proved: a digest of the id that the process gives and of who it has
	 * proved to be; otherwise that id (server/session/client_ids.h) */
	uint8_t id[RPC_ID_SIZE];
	bool proved;
	uint64_t connection; /* by which the request came */
};

/* Returns false if the connection has ended. */
bool request_owner(const struct ulrpc_request *r, struct rpc_owner *owner);

static inline bool owner_same(const struct rpc_owner *a,
			      const struct rpc_owner *b)
{
	return a->proved == b->proved && !memcmp(a->id, b->id, RPC_ID_SIZE);
}

/* Has the connection ended? Owner of @s, which the request came to. */
bool owner_is_gone(const struct shard *s, const struct rpc_owner *owner);

/* May @owner call @method of @service with @flavour, as the node's rules are
 * now? Owner of @s, as above; without its connection it may not. */
bool owner_may(const struct shard *s, const struct rpc_owner *owner,
	       enum ulrpc_flavour flavour, const char *service,
	       const char *method);

#endif
