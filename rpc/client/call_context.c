/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls with a context. Few calls have one, so a call has no field for it: it
 * lies behind the call's body, and stands between the call and its callback.
 */
#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/client/naming.h"
#include "rpc/context/context.h"
#include "rpc/text.h"

struct call_context *call_context(struct ulrpc_call *call)
{
	uintptr_t end = (uintptr_t)call_trace(call) +
			(call->flags & CALL_TRACED ? CALL_TRACE : 0);
	uintptr_t align = _Alignof(struct call_context);

	return (struct call_context *)((end + align - 1) & ~(align - 1));
}

/* The function for ulrpc_call.done. The context is the user's again when his
 * callback runs. */
static void on_context_done(void *arg, const struct ulrpc_outcome *outcome,
			    const void *reply, size_t length)
{
	struct ulrpc_call *call = arg;
	struct call_context *x = call_context(call);

	if (call->flags & CALL_NAMED && outcome->execution == ULRPC_EXECUTED)
		naming_done(call->client->imp, x);
	x->taken = false;
	scope_leave(&x->in);
	context_release(x->context);
	x->done(x->arg, outcome, reply, length);
}

int call_context_take(struct ulrpc_call *call, struct ulrpc_context *c)
{
	struct call_context *x;
	int rc = context_take(c);

	if (rc)
		return rc;
	call->flags |= CALL_CONTEXT;
	x = call_context(call);
	*x = (struct call_context){
		.call = call,
		.context = c,
		.taken = true,
		.done = call->done,
		.arg = call->arg,
	};
	call->done = on_context_done;
	call->arg = call;
	if (c->scope)
		call->deadline = MIN(call->deadline, c->scope->deadline);
	return 0;
}

int call_context_enter(struct ulrpc_call *call,
		       void (*cancel)(struct scope_link *l))
{
	struct call_context *x;

	if (!(call->flags & CALL_CONTEXT))
		return 0;
	/* A stream is in the scope itself. Its opening is not canceled, as the
	 * service may have got the stream, and nobody would know. */
	if (call->client->open_head)
		return 0;
	x = call_context(call);
	x->in.cancel = cancel;
	return x->context->scope ? scope_enter(x->context->scope, &x->in) : 0;
}

void call_context_free(struct ulrpc_call *call)
{
	struct call_context *x;

	if (!(call->flags & CALL_CONTEXT))
		return;
	x = call_context(call);
	scope_leave(&x->in);
	/* The call could not be made, or its node has crashed. */
	if (x->taken)
		context_release(x->context);
	context_put(x->context);
}

/* Sets in @o that the handler has failed. */
static void say_failed(const struct annex_failure *failure,
		       struct ulrpc_outcome *o)
{
	o->cause = ULRPC_CAUSE_HANDLER;
	o->status = failure->error <= ERROR_MAX
			    ? -(int)failure->error
			    : cause_status(ULRPC_CAUSE_HANDLER);
	text_take(o->text, failure->text.p, view_length(failure->text));
}

bool call_context_said(struct ulrpc_call *call, struct wire_view *body,
		       struct ulrpc_outcome *o)
{
	struct annex_failure failure;
	struct wire_view annex;

	o->cause = ULRPC_CAUSE_OK;
	if (!annex_split(body, &annex))
		o->cause = ULRPC_CAUSE_BAD_REPLY;
	else if (call->flags & CALL_CONTEXT &&
		 context_say(call_context(call)->context, annex))
		o->cause = ULRPC_CAUSE_NO_MEMORY;
	o->status = cause_status(o->cause);
	if (o->cause)
		return false;
	failure = annex_failure(annex);
	if (failure.error)
		say_failed(&failure, o);
	return !failure.error;
}
