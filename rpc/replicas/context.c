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
	struct ulrpc_context *own;
	int rc = ulrpc_context_new(&own);

	if (rc)
		return rc;
	rc = context_take(c);
	if (rc) {
		ulrpc_context_free(own);
		return rc;
	}
	own->sent = c->sent;
	own->scope = c->scope;
	if (c->scope) {
		scope_get(c->scope);
		call->deadline = MIN(call->deadline, c->scope->deadline);
	}
	call->in.cancel = on_scope_canceled;
	call->context = c;
	call->conf.context = own;
	call->has_context = true;
	return 0;
}

int replicas_context_enter(struct ulrpc_replicas_call *call)
{
	return call->context && call->context->scope
		       ? scope_enter(call->context->scope, &call->in)
		       : 0;
}

void replicas_context_release(struct ulrpc_replicas_call *call)
{
	struct ulrpc_context *c = call->context, *own = call->conf.context;

	if (!call->has_context)
		return;
	call->has_context = false;
	scope_leave(&call->in);
	/* An attempt that is still under way copied what it sends when it was
	 * made, and has nothing to say any more. */
	annex_init(&own->sent);
	if (!atomic_load(&own->busy)) {
		c->said = own->said;
		c->said_length = own->said_length;
		own->said = NULL;
		own->said_length = 0;
	}
	context_release(c);
}

void replicas_context_free(struct ulrpc_replicas_call *call)
{
	if (!call->context)
		return;
	replicas_context_release(call);
	context_put(call->context);
	context_put(call->conf.context);
}
