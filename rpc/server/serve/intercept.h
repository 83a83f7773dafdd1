/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of services with interceptors. Their methods have another handler,
 * which calls the interceptors and then the handler of the user. So a service
 * without interceptors pays nothing.
 */
#ifndef RPC_SERVE_INTERCEPT_H
#define RPC_SERVE_INTERCEPT_H

#include "rpc/context/intercept.h"
#include "rpc/server/serve/request.h"

/* A method whose requests are intercepted. Does not change. */
struct intercepted {
	ulrpc_handler_fn handler;
	void *arg;
	struct request_chain *chain;
	/* The method opens streams: what the user has given follows these bytes
	 * of the body. 0: it does not. */
	uint32_t head;
};

/* What the interceptors of a request know; belongs to the request. */
struct request_seen {
	struct request_chain *chain; /* a reference */
	uint32_t head;		     /* of struct intercepted */
	/* Of a stream, which may outlive its service: names of the service and
	 * of the method; else NULL */
	char *service, *method;
	unsigned int n; /* how many interceptors have let it pass */
	void *states[];
};

/* Puts interceptors before the handlers of all methods of @conf, the last
 * @nstreams of which open streams with a body that begins with @head bytes of
 * the library's own. */
int service_intercept(struct ulrpc_service *svc,
		      const struct ulrpc_service_conf *conf,
		      unsigned int nstreams, uint32_t head);

/* The function for ulrpc_method.handler, whose arg is a struct intercepted. */
void request_intercept(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length);
/* @r, which is REQUEST_SEEN, ends with @status (enum wire_status) and @error;
 * STAT_CANCELED, STAT_UNANSWERED: nobody gets the reply. @queue, @service: ns.
 * Called once, before the memory of @r is freed. */
void request_seen_end(struct ulrpc_request *r, unsigned int status,
		      uint32_t error, uint64_t queue, uint64_t service);

/* The same for @r, whose reply has come to its CPT. */
void request_seen_finish(struct ulrpc_request *r, uint32_t status);

#endif
