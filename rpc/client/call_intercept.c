/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of clients with interceptors. Such a call has a context of its own, to
 * which interceptors may add; at the end, the caller's context gets what the
 * reply has brought. The interception stands between the call and its caller,
 * and is freed with the call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/context/context.h"
#include "rpc/context/intercept.h"
#include "rpc/streaming.h"

struct interception {
	struct ulrpc_context context; /* of the call */
	/* the caller's, with a reference; NULL: he has given none */
	struct ulrpc_context *callers;
	bool held; /* callers was taken, and is not released yet */
	struct call_chain *chain; /* a reference */
	char service[ULRPC_SERVICE_NAME];
	uint32_t method;
	bool stream;		     /* the call opens a stream */
	struct ulrpc_client *client; /* until the call has ended */
	/* what the caller has given to ulrpc_call() */
	ulrpc_done_fn done;
	void *arg;
	char *text;	/* why the call was refused; NULL: there is no text */
	unsigned int n; /* how many interceptors have let the call pass */
	void *states[];
};

static struct interception *interception_of(struct ulrpc_context *c)
{
	return container_of(c, struct interception, context);
}

static void callers_release(struct interception *x)
{
	if (x->held)
		context_release(x->callers);
	x->held = false;
}

/* The function for ulrpc_context.fini. */
static void interception_fini(struct ulrpc_context *c)
{
	struct interception *x = interception_of(c);

	/* The call could not be made, or its node has crashed. */
	callers_release(x);
	if (x->callers)
		context_put(x->callers);
	free(x->text);
	call_chain_put(x->chain);
}

/* Takes the caller's context, and makes one of the same content. */
static int callers_take(struct interception *x, struct ulrpc_context *callers)
{
	int rc = context_take(callers);

	if (rc)
		return rc;
	x->callers = callers;
	x->held = true;
	if (callers->scope) {
		scope_get(callers->scope);
		x->context.scope = callers->scope;
	}
	return annex_copy(&x->context.sent, &callers->sent);
}

static int interception_new(struct ulrpc_client *client, uint32_t method,
			    const struct ulrpc_call_conf *conf,
			    ulrpc_done_fn done, void *arg,
			    struct interception **x_p)
{
	struct interception *x =
		calloc(1, sizeof(*x) + client->chain->n * sizeof(x->states[0]));
	int rc;

	if (!x)
		return -ENOMEM;
	context_init(&x->context, interception_fini);
	x->chain = client->chain;
	atomic_fetch_add(&x->chain->refs, 1);
	memcpy(x->service, client->service, sizeof(x->service));
	x->client = client;
	x->stream = client->open_head;
	x->method = method;
	x->done = done;
	x->arg = arg;
	rc = conf->context ? callers_take(x, conf->context) : 0;
	if (rc) {
		context_put(&x->context);
		return rc;
	}
	*x_p = x;
	return 0;
}

/* ---- the end ---- */

static void interceptors_end(struct interception *x,
			     const struct ulrpc_outcome *outcome, size_t length)
{
	const struct ulrpc_call_end end = {
		.service = x->service,
		.method = x->method,
		.stream = x->stream,
		.outcome = outcome,
		.length = length,
		.context = &x->context,
	};

	while (x->n) {
		const struct ulrpc_call_interceptor *i =
			&x->chain->list[--x->n];

		if (i->end)
			i->end(i->arg, x->states[x->n], &end);
	}
}

/* The call has ended because an interceptor has refused it. */
static void outcome_refused(const struct interception *x,
			    struct ulrpc_outcome *o)
{
	o->status = x->context.refused;
	if (x->text)
		text_take(o->text, x->text, strlen(x->text));
}

/* Gives the caller's context what has come, and its caller the context. */
static void callers_said(struct interception *x)
{
	if (!x->held)
		return;
	x->callers->said = x->context.said;
	x->callers->said_length = x->context.said_length;
	x->context.said = NULL;
	x->context.said_length = 0;
	callers_release(x);
}

/* The call has opened a stream: unless the stream takes @x, this is the end. */
static void on_opened(struct interception *x,
		      const struct ulrpc_outcome *outcome, const void *reply,
		      size_t length)
{
	struct ulrpc_client *c = x->client;

	callers_said(x);
	context_get(&x->context);
	c->opened = x;
	x->done(x->arg, outcome, reply, length);
	if (c->opened == x)
		interceptors_end(x, outcome, length);
	c->opened = NULL;
	context_put(&x->context);
}

struct interception *client_seen_take(struct ulrpc_client *client)
{
	struct interception *x = client->opened;

	client->opened = NULL;
	if (x)
		context_get(&x->context);
	return x;
}

void client_seen_over(struct interception *x, const struct ulrpc_outcome *o,
		      size_t received)
{
	interceptors_end(x, o, received);
}

void client_seen_put(struct interception *x)
{
	context_put(&x->context);
}

/* The function for ulrpc_call.done. The call still has its context. */
static void on_intercepted(void *arg, const struct ulrpc_outcome *outcome,
			   const void *reply, size_t length)
{
	struct interception *x = arg;
	struct ulrpc_outcome refused;

	if (outcome->cause == ULRPC_CAUSE_INTERCEPTED) {
		refused = *outcome;
		outcome_refused(x, &refused);
		outcome = &refused;
	}
	if (x->stream && outcome->cause == ULRPC_CAUSE_OK) {
		on_opened(x, outcome, reply, length);
		return;
	}
	interceptors_end(x, outcome, length);
	callers_said(x);
	x->done(x->arg, outcome, reply, length);
}

/* ulrpc_call() returns @rc, so nobody is called. */
static void interception_unmade(struct interception *x, int rc)
{
	const struct ulrpc_outcome o = {
		.status = rc,
		.cause = rc == -ENOMEM	    ? ULRPC_CAUSE_NO_MEMORY
			 : rc == -ESHUTDOWN ? ULRPC_CAUSE_SHUTDOWN
			 : rc == -ECANCELED ? ULRPC_CAUSE_CANCELED
			 : rc == -EAGAIN    ? ULRPC_CAUSE_OVERLOADED
					    : ULRPC_CAUSE_BAD_REQUEST,
		.execution = ULRPC_NOT_EXECUTED,
		.bulk_free = rc != -EBUSY,
		.local = LNET_NID_ANY,
		.target = LNET_NID_ANY,
	};

	interceptors_end(x, &o, 0);
}

/* ---- the beginning ---- */

/* Calls the interceptors, until one refuses the call. */
static void interceptors_begin(struct interception *x, const void *body,
			       size_t length, struct ulrpc_call_conf *conf)
{
	const struct call_chain *chain = x->chain;
	const uint32_t head = MIN(x->client->open_head, (uint32_t)length);
	const struct ulrpc_call_conf given = *conf;
	struct ulrpc_call_start start = {
		.client = x->client,
		.service = x->service,
		.method = x->method,
		.stream = x->stream,
		.body = body ? (const uint8_t *)body + head : NULL,
		.length = length - head,
		.conf = conf,
		.context = &x->context,
	};

	for (; x->n < chain->n && !x->context.refused; x->n++) {
		const struct ulrpc_call_interceptor *i = &chain->list[x->n];

		start.state = NULL;
		if (i->begin)
			x->context.refused = i->begin(i->arg, &start);
		x->states[x->n] = start.state;
		if (x->context.refused)
			break;
	}
	conf->bulks = given.bulks;
	conf->nbulks = given.nbulks;
	conf->context = &x->context;
	if (x->context.refused > 0)
		x->context.refused = -EPERM;
	if (x->context.refused && start.text[0])
		x->text = strndup(start.text, sizeof(start.text) - 1);
}

int call_begin_intercepted(struct ulrpc_client *client, uint32_t method,
			   const void *body, size_t length,
			   const struct ulrpc_call_conf *conf,
			   ulrpc_done_fn done, void *arg,
			   struct ulrpc_call **call_p)
{
	struct ulrpc_call_conf own = *conf;
	struct interception *x;
	int rc = interception_new(client, method, conf, done, arg, &x);

	if (rc)
		return rc;
	interceptors_begin(x, body, length, &own);
	rc = call_begin_checked(client, method, body, length, &own,
				on_intercepted, x, call_p);
	if (rc)
		interception_unmade(x, rc);
	/* Unless it has failed, the call has a reference. */
	context_put(&x->context);
	return rc;
}
