/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who owns what outlives a request, such as the channels of streams: only the
 * process that made the request, with the same proof of who it is, may use it.
 * The NID and pid of a client do not tell that, because they are only what its
 * messages claim.
 */
#ifndef RPC_OWNER_H
#define RPC_OWNER_H

#include <string.h>
#include "rpc/rpc.h"

struct ulrpc_request;

struct rpc_owner {
	/* If @proved, the digest of the id that the process gives and of the
	 * identity that it has proved; otherwise the id that it gives
	 * (server/session/client_ids.h). */
	uint8_t id[RPC_ID_SIZE];
	bool proved;
	uint64_t connection; /* the connection by which the request came */
};

/* Fills in *@owner with the client of @r. Returns false if the service has
 * ended before @r was answered: then nobody gets the answer. Any thread, before
 * the reply. */
bool request_owner(const struct ulrpc_request *r, struct rpc_owner *owner);
/* Returns the flavour of the call @r. Any thread, before the reply. */
enum ulrpc_flavour request_flavour(const struct ulrpc_request *r);

static inline bool owner_same(const struct rpc_owner *a,
			      const struct rpc_owner *b)
{
	return a->proved == b->proved && !memcmp(a->id, b->id, RPC_ID_SIZE);
}

/* Has the owner's connection ended? Called by the owner of @s, where the
 * request came. */
bool owner_is_gone(const struct shard *s, const struct rpc_owner *owner);

/* Do the node's rules of now let @owner call @method of @service with @flavour?
 * False if the owner's connection has ended. Called by the owner of @s, where
 * the request came. */
bool owner_may(const struct shard *s, const struct rpc_owner *owner,
	       enum ulrpc_flavour flavour, const char *service,
	       const char *method);

#endif
