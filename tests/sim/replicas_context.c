/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls with contexts: metadata, and a request for which they are made. The
 * request is that of a call which the caller makes to a service of its own.
 */
#include <errno.h>
#include <string.h>
#include "tests/sim/replicas_run.h"

/* ---- metadata ---- */

void tag_begin(struct call *c)
{
	struct lnet_sim *sim = c->r->sim;

	if (!c->tagged && !c->request)
		return;
	if (ulrpc_context_new(&c->context))
		lnet_sim_fail(sim, "no memory for a context");
	else if (c->tagged && ulrpc_context_add(c->context, "call-bin",
						&c->index, sizeof(c->index)))
		lnet_sim_fail(sim, "no memory for metadata");
	else if (c->request && ulrpc_context_under(c->context, c->request))
		lnet_sim_fail(sim, "call %u cannot be made for a request",
			      c->index);
}

void tag_serve(const struct call *c, const struct server *s,
	       struct ulrpc_request *request)
{
	const uint32_t own = (uint32_t)(s - s->r->servers);
	struct ulrpc_metadata m;
	int rc = ulrpc_request_find(request, "call-bin", &m);

	if (c->tagged ? rc || m.length != sizeof(c->index) ||
				memcmp(m.value, &c->index, sizeof(c->index))
		      : rc != -ENOENT)
		lnet_sim_fail(s->r->sim, "call %u comes with wrong metadata",
			      c->index);
	if (c->tagged &&
	    ulrpc_reply_add(request, "server-bin", &own, sizeof(own)))
		lnet_sim_fail(s->r->sim, "no memory for metadata");
}

/* Metadata of the reply have to be of the server that has answered. */
void tag_end(struct call *c)
{
	struct ulrpc_metadata m;
	uint32_t by;

	if (c->tagged && c->o.call.cause == ULRPC_CAUSE_OK) {
		if (ulrpc_context_find(c->context, "server-bin", &m) ||
		    m.length != sizeof(by)) {
			lnet_sim_fail(c->r->sim,
				      "call %u: its reply has no metadata",
				      c->index);
		} else {
			memcpy(&by, m.value, sizeof(by));
			if (by != c->by)
				lnet_sim_fail(c->r->sim,
					      "call %u: metadata of another "
					      "server",
					      c->index);
		}
		c->r->tagged_ended++;
	}
	ulrpc_context_free(c->context);
	c->context = NULL;
}

/* ---- the request ---- */

static void on_front(void *arg, struct ulrpc_request *request, const void *body,
		     size_t length)
{
	struct caller *m = arg;
	struct call *c;
	uint32_t index;
	int rc;

	if (length != sizeof(index)) {
		lnet_sim_fail(m->r->sim, "a request has %zu bytes", length);
		return;
	}
	memcpy(&index, body, sizeof(index));
	c = &m->r->calls[index];
	c->request = request;
	rc = call_begin(c);
	if (!rc)
		return;
	/* The request may be over already. */
	if (rc != -ECANCELED)
		lnet_sim_fail(m->r->sim, "call %u cannot be made", c->index);
	c->request = NULL;
	ulrpc_fail(request, rc);
}

int front_start(struct caller *m)
{
	const struct ulrpc_method_conf method = {
		.name = "front",
		.handler = on_front,
		.arg = m,
		.run = ULRPC_RUN_INLINE,
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_client_conf client;
	int rc;

	ulrpc_service_conf_init(&conf);
	conf.name = "front";
	conf.methods = &method;
	conf.nmethods = 1;
	rc = ulrpc_service_start(m->rpc, &conf, NULL);
	if (rc)
		return rc;
	ulrpc_client_conf_init(&client);
	client.service = "front";
	client.nids = m->nids;
	client.nnids = 1;
	return ulrpc_client_open(m->rpc, &client, &m->front);
}

static void on_front_end(void *arg, const struct ulrpc_outcome *o,
			 const void *reply, size_t length)
{
	struct call *c = arg;

	(void)o;
	(void)reply;
	(void)length;
	if (c->front_ended++)
		lnet_sim_fail(c->r->sim, "the call for call %u ends twice",
			      c->index);
	c->r->under_ended++;
}

void front_call(struct call *c)
{
	const struct ulrpc_call_conf conf = { .deadline = c->deadline };

	c->front_life = c->from->life;
	if (ulrpc_call(c->from->front, ulrpc_method("front"), &c->index,
		       sizeof(c->index), &conf, on_front_end, c,
		       c->cancel ? &c->plain_handle : NULL))
		lnet_sim_fail(c->r->sim, "the call for call %u cannot be made",
			      c->index);
}

void front_check(const struct call *c)
{
	if (is_same_life(c->from, c->front_life) && c->front_ended != 1)
		lnet_sim_fail(c->r->sim, "the call for call %u ends %u times",
			      c->index, c->front_ended);
}
