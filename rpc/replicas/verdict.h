/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the end of a call at one server says of that server: whether it is to be
 * left, and how fast it is. Owner: the CPT of the set.
 */
#ifndef RPC_REPLICAS_VERDICT_H
#define RPC_REPLICAS_VERDICT_H

#include "rpc/replicas/call.h"

/* What the end of an attempt says of the server. */
enum verdict {
	VERDICT_NONE,
	VERDICT_ANSWERED,
	/* It has answered that it has no room. It is not left for that: the
	 * others would have less room then. */
	VERDICT_BUSY,
	VERDICT_FAILED,
};

enum verdict verdict_of(enum ulrpc_cause cause);
/* Does @cause, with which @a has just ended, say that no other server would do
 * better? So it is if the server takes the client, but its rules refuse this
 * call: rules are those of the service. */
bool verdict_is_last(const struct attempt *a, enum ulrpc_cause cause);
/* Tells the server of @a that @a has ended with @o. */
void verdict_take(const struct attempt *a, const struct ulrpc_outcome *o);

#endif
