/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/serve/intercept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- before the handler ---- */

/* Only the service itself fails the opening of a stream without a text: that is
 * how it says that it has forgotten the client's streams. */
static void refuse(const struct intercepted *m, struct ulrpc_request *r, int rc,
		   const char *text)
{
	if (rc > 0)
		ulrpc_overloaded(r);
	else if (m->head && !text[0])
		ulrpc_fail_text(r, rc, "refused by an interceptor");
	else
		ulrpc_fail_text(r, rc, text);
}

/* Calls the interceptors until one refuses @r. Returns what that returns, or 0.
 */
static int all_begin(struct request_seen *seen,
		     struct ulrpc_request_start *start)
{
	const struct request_chain *chain = seen->chain;
	int rc = 0;

	while (seen->n < chain->n) {
		const struct ulrpc_request_interceptor *i =
			&chain->list[seen->n];

		start->state = NULL;
		if (i->begin)
			rc = i->begin(i->arg, start);
		if (rc)
			break;
		seen->states[seen->n++] = start->state;
	}
	return rc;
}

void request_intercept(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	const struct intercepted *m = arg;
	const uint32_t head = MIN(m->head, (uint32_t)length);
	struct request_seen *seen =
		malloc(sizeof(*seen) + m->chain->n * sizeof(seen->states[0]));
	struct ulrpc_request_start start = {
		.request = r,
		.body = (const uint8_t *)body + head,
		.length = length - head,
		.stream = m->head,
	};
	int rc;

	if (!seen) {
		ulrpc_overloaded(r);
		return;
	}
	seen->chain = m->chain;
	atomic_fetch_add(&seen->chain->refs, 1);
	seen->head = m->head;
	seen->service = seen->method = NULL;
	seen->n = 0;
	r->seen = seen;
	r->rare |= REQUEST_SEEN;
	rc = all_begin(seen, &start);
	if (rc)
		refuse(m, r, rc, start.text);
	else
		m->handler(m->arg, r, body, length);
	/* the request may be gone */
}

/* ---- services ---- */

int service_intercept(struct ulrpc_service *svc,
		      const struct ulrpc_service_conf *conf,
		      unsigned int nstreams, uint32_t head)
{
	const struct ulrpc_conf *node = &svc->rpc->conf;
	struct ulrpc_method *m;
	int rc;

	if (!strcmp(svc->name, RPC_STREAM_CARRIER))
		return 0;
	rc = request_chain_new(node->request_interceptors,
			       node->nrequest_interceptors, conf->interceptors,
			       conf->ninterceptors, &svc->chain);
	if (rc || !svc->chain)
		return rc;
	svc->intercepted = calloc(conf->nmethods, sizeof(*svc->intercepted));
	if (!svc->intercepted)
		return -ENOMEM;
	for (unsigned int i = 0; i < conf->nmethods; i++) {
		m = service_method(svc, ulrpc_method(conf->methods[i].name));
		svc->intercepted[i] = (struct intercepted){
			.handler = m->handler,
			.arg = m->arg,
			.chain = svc->chain,
			.head = i + nstreams >= conf->nmethods ? head : 0,
		};
		m->handler = request_intercept;
		m->arg = &svc->intercepted[i];
	}
	return 0;
}
