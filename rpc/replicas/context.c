/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The context of a call to one of several servers. A context belongs to one
 * call at a time, but here several are made for one: the call itself has the
 * user's context, and its attempts one that borrows what is sent.
 */
#include "rpc/context/context.h"

#include "rpc/replicas/call.h"

/* The function for scope_link.cancel. */
static void on_scope_canceled(struct scope_link *l)
{
	ulrpc_replicas_cancel(container_of(l, struct ulrpc_replicas_call, in));
}

int replicas_context_take(struct ulrpc_replicas_call *call,
			  struct ulrpc_context *c)
{
	int rc = context_take(c);

	if (rc)
		return rc;
	call->context = c;
	call->has_context = true;
	rc = replicas_context_lend(&call->attempts[0]);
	if (rc) {
		replicas_context_free(call);
		return rc;
	}
	if (c->scope)
		call->deadline = MIN(call->deadline, c->scope->deadline);
	call->in.cancel = on_scope_canceled;
	return 0;
}

int replicas_context_lend(struct attempt *a)
{
	const struct ulrpc_context *c = a->of->context;
	int rc;

	if (!c || a->context)
		return 0;
	rc = ulrpc_context_new(&a->context);
	if (rc)
		return rc;
	a->context->sent = c->sent;
	a->context->scope = c->scope;
	if (c->scope)
		scope_get(c->scope);
	return 0;
}

int replicas_context_enter(struct ulrpc_replicas_call *call)
{
	return call->context && call->context->scope
		       ? scope_enter(call->context->scope, &call->in)
		       : 0;
}

/* Gives the user what the last answer has said. */
static void context_tell(struct ulrpc_replicas_call *call)
{
	struct ulrpc_context *from = call->answered, *to = call->context;

	/* A later attempt may have it. */
	if (!from || atomic_load(&from->busy))
		return;
	to->said = from->said;
	to->said_length = from->said_length;
	from->said = NULL;
	from->said_length = 0;
}

void replicas_context_release(struct ulrpc_replicas_call *call)
{
	if (!call->has_context)
		return;
	call->has_context = false;
	scope_leave(&call->in);
	/* An attempt that is still under way copied what it sends when it was
	 * made, and has nothing to say any more. */
	for (int i = 0; i < CALL_ATTEMPTS; i++)
		if (call->attempts[i].context)
			annex_init(&call->attempts[i].context->sent);
	context_tell(call);
	context_release(call->context);
}

void replicas_context_free(struct ulrpc_replicas_call *call)
{
	if (!call->context)
		return;
	replicas_context_release(call);
	context_put(call->context);
	for (int i = 0; i < CALL_ATTEMPTS; i++)
		ulrpc_context_free(call->attempts[i].context);
}
