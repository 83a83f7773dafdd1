/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a caller gives to a call beside its body, and gets back beside its
 * outcome. A context belongs to its maker and to the call that has it: one at a
 * time. While a call has it, only that call touches it; it is the maker's again
 * before the call's callback runs.
 */
#ifndef RPC_CONTEXT_H
#define RPC_CONTEXT_H

#include <stdatomic.h>
#include "rpc/context/annex.h"
#include "rpc/context/scope.h"

struct ulrpc_context {
	/* of its maker, and of a call that has it */
	_Atomic unsigned int refs;
	atomic_bool busy; /* a call has it */
	struct annex sent;
	/* names of the metadata that are taken over from what it comes under;
	 * NULL: none */
	char *pass;
	/* what was taken over last: where it is in @sent, and how much it is */
	uint32_t passed_at, passed_length, passed_pairs;
	struct scope *scope; /* a reference; NULL: it is under no request */
	/* of the last call's reply: a copy of its annex; NULL: it had none */
	uint8_t *said;
	uint32_t said_length;
	/* of an intercepted call (rpc/client/call_intercept.c): the status with
	 * which the call is refused; 0: it is not */
	int refused;
	/* called before the context is freed; NULL: nothing is */
	void (*fini)(struct ulrpc_context *c);
};

/* Makes *@c, which is all 0, a context with one reference: it is the beginning
 * of memory from malloc(), which is freed with the last one. */
void context_init(struct ulrpc_context *c,
		  void (*fini)(struct ulrpc_context *c));

/* A call takes @c, with a reference. Returns 0, or -EBUSY. Any thread. */
int context_take(struct ulrpc_context *c);
/* The call that has @c has got a reply with @annex. Returns 0, or -ENOMEM. */
int context_say(struct ulrpc_context *c, struct wire_view annex);
/* The call that has @c has ended. It still has its reference. */
void context_release(struct ulrpc_context *c);
bool context_is_busy(const struct ulrpc_context *c);
/* Calls that are given @c, which is not busy, are in @scope from now on, and
 * take with them what @c passes on of the metadata in @annex, which was
 * checked, or is empty. Returns 0, and @c has got the caller's reference; or
 * -E2BIG, -EMSGSIZE or -ENOMEM, and nothing has changed. */
int context_enter(struct ulrpc_context *c, struct scope *scope,
		  struct wire_view annex) must_check;
void context_get(struct ulrpc_context *c);
void context_put(struct ulrpc_context *c);

#endif
