/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interceptors: functions of a program that see each call before it is sent, or
 * each request before its handler, and how both end: for logs, tokens, rates,
 * traces. Manual: ulrpc_interceptors(7). Conventions as in ulnet/rpc.h.
 */
#ifndef ULNET_INTERCEPT_H
#define ULNET_INTERCEPT_H

#include "ulnet/context.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ULRPC_INTERCEPTORS_MAX 16 /* of a client, a service or a node */

/* ---- calls: ulrpc_client_conf.interceptors ---- */

/* A call that is being made; valid until the function returns. */
struct ulrpc_call_start {
	struct ulrpc_client *client;
	const char *service;
	uint32_t method; /* see ulrpc_method_name() */
	bool stream;	 /* the call opens a stream */
	const void *body;
	size_t length;
	/* A copy, in which everything but bulks and context may be changed.
	 * What it then points to is borrowed until ulrpc_call() returns. */
	struct ulrpc_call_conf *conf;
	/* What goes with the call, the caller's own metadata too:
	 * ulrpc_context_sent() reads it, ulrpc_context_add() adds to it. */
	struct ulrpc_context *context;
	void *state; /* for the end of this call; NULL at first */
	/* why the call is refused, for outcome.text; "" at first */
	char text[ULRPC_TEXT_MAX];
};

/* A call has ended; valid until the function returns. */
struct ulrpc_call_end {
	const char *service;
	uint32_t method;
	bool stream;
	const struct ulrpc_outcome *outcome;
	size_t length; /* bytes of the reply */
	/* has what came with the reply: ulrpc_context_metadata(); of a stream,
	 * nothing */
	const struct ulrpc_context *context;
};

struct ulrpc_call_interceptor {
	/* Called in ulrpc_call(), on its thread; where that must not block,
	 * must not block. Returns 0, or a negative errno: then the call is not
	 * sent, and ends with ULRPC_CAUSE_INTERCEPTED and this status. NULL: is
	 * not called. */
	int (*begin)(void *arg, struct ulrpc_call_start *call);
	/* Called once for each call that @begin has let pass, or that has come
	 * here if there is no @begin: on the client's CPT, of a stream on that
	 * of the connection that carries it, in a turn, before the caller hears
	 * of the end; or in ulrpc_call(), if that fails. Must not block. NULL:
	 * is not called. */
	void (*end)(void *arg, void *state, const struct ulrpc_call_end *end);
	void *arg;
};

/* ---- requests: ulrpc_service_conf.interceptors ---- */

/* Returned by begin of struct ulrpc_request_interceptor: refuses the request as
 * ulrpc_overloaded() does. */
#define ULRPC_INTERCEPT_OVERLOADED 1

/* A request whose handler is to be called; valid until the function returns. */
struct ulrpc_request_start {
	/* For ulrpc_request_info(), ulrpc_request_peer(),
	 * ulrpc_request_metadata(), ulrpc_reply_add() and the like; must not be
	 * replied to, nor kept. */
	struct ulrpc_request *request;
	const void *body;
	size_t length;
	bool stream; /* the request opens a stream */
	void *state; /* for the end of this request; NULL at first */
	/* why the request is refused, for outcome.text; "" at first */
	char text[ULRPC_TEXT_MAX];
};

/* A request was replied to; valid until the function returns. */
struct ulrpc_request_end {
	const char *service;
	const char *method;
	bool stream;
	/* how the caller will see it: ULRPC_CAUSE_OK; ULRPC_CAUSE_HANDLER and
	 * the status of the handler, or of an interceptor; ULRPC_CAUSE_CANCELED
	 * or ULRPC_CAUSE_SHUTDOWN: the reply goes to nobody; and others */
	enum ulrpc_cause cause;
	int status; /* 0, or a negative errno */
	/* us: until the handler or the first interceptor was called; from then
	 * until the reply */
	uint64_t queue, service_time;
	size_t received, sent; /* bytes of both bodies, without metadata */
};

struct ulrpc_request_interceptor {
	/* Called before the handler, on the same thread: must not block if the
	 * method is run inline. Returns 0; a negative errno: the handler is not
	 * called, and the request fails with this status;
	 * ULRPC_INTERCEPT_OVERLOADED. NULL: is not called. */
	int (*begin)(void *arg, struct ulrpc_request_start *request);
	/* Called once for each request that @begin has let pass, or that has
	 * come here if there is no @begin, when it has been replied to: on the
	 * CPT of the request, or, if the service has ended, on the thread that
	 * replies. Must not block. NULL: is not called. */
	void (*end)(void *arg, void *state,
		    const struct ulrpc_request_end *end);
	void *arg;
};

#ifdef __cplusplus
}
#endif

#endif
