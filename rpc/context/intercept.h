/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of interceptors (ulnet/intercept.h). A client and a service have one
 * each, which does not change: of their own and of the node's, in the order in
 * which they are called first. At the end they are called in reverse.
 *
 * The node's are always those next to the network: last of a call, first of a
 * request.
 */
#ifndef RPC_INTERCEPT_H
#define RPC_INTERCEPT_H

#include <stdatomic.h>
#include "rpc/text.h"
#include "ulnet/intercept.h"

/* Both are freed with the last reference. Any thread. */
struct call_chain {
	_Atomic unsigned int refs;
	unsigned int n;
	struct ulrpc_call_interceptor list[];
};

struct request_chain {
	_Atomic unsigned int refs;
	unsigned int n;
	struct ulrpc_request_interceptor list[];
};

/* Check what a user has given in the fields @field and n@field. Return 0 or
 * -EINVAL, which is logged for @owner. */
int call_interceptors_check(const struct ulrpc_call_interceptor *list,
			    unsigned int n, const char *field,
			    struct conf_owner owner);
int request_interceptors_check(const struct ulrpc_request_interceptor *list,
			       unsigned int n, const char *field,
			       struct conf_owner owner);

/* Set *@chain_p to a list with one reference: first @a, then @b; NULL if both
 * are empty. Return 0 or -ENOMEM. */
int call_chain_new(const struct ulrpc_call_interceptor *a, unsigned int na,
		   const struct ulrpc_call_interceptor *b, unsigned int nb,
		   struct call_chain **chain_p);
int request_chain_new(const struct ulrpc_request_interceptor *a,
		      unsigned int na,
		      const struct ulrpc_request_interceptor *b,
		      unsigned int nb, struct request_chain **chain_p);
/* NULL is fine. */
void call_chain_put(struct call_chain *c);
void request_chain_put(struct request_chain *c);

#endif
