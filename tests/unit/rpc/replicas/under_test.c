/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to several servers with a context, and for a request: server 1 relays
 * what node 0 asks to the servers of a set of its own.
 */
#include "tests/unit/rpc/replicas/servers.h"

#define INNER 1u /* number of the call that is made for the request */

static struct ulrpc_client *outer;
static struct ulrpc_replicas *inner;
static struct ulrpc_request *request; /* of the relay; NULL: none */
static struct ulrpc_context *context;
static struct ulrpc_call *asked;
static enum ulrpc_cause outer_cause;

static void on_inner(void *arg, const struct ulrpc_replicas_outcome *o,
		     const void *reply, size_t length)
{
	on_end(arg, o, reply, length);
	if (request)
		ulrpc_fail(request, o->call.status ? o->call.status : -EIO);
	request = NULL;
}

static void relay(void *arg, struct ulrpc_request *r, const void *body,
		  size_t length)
{
	const uint32_t index = INNER;
	struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 30000000 },
	};

	(void)arg;
	(void)body;
	(void)length;
	request = r;
	calls[INNER] = (struct one){ .began = lnet_sim_now(sim) };
	cr_assert_eq(ulrpc_context_new(&context), 0);
	cr_assert_eq(ulrpc_context_under(context, r), 0);
	how.call.context = context;
	cr_assert_eq(ulrpc_replicas_call(inner, ulrpc_method("work"), &index,
					 sizeof(index), &how, on_inner,
					 &calls[INNER], NULL),
		     0);
}

static void on_outer(void *arg, const struct ulrpc_outcome *o,
		     const void *reply, size_t length)
{
	(void)arg;
	(void)reply;
	(void)length;
	outer_cause = o->cause;
}

/* @named: the servers are those of a name that is not known yet. */
static void begin(bool named)
{
	const struct ulrpc_method_conf method = { .name = "relay",
						  .handler = relay,
						  .run = ULRPC_RUN_INLINE };
	const struct ulnet_nid first = server_nid(1);
	struct ulnet_nid nids[] = { server_nid(2), server_nid(3) };
	struct ulrpc_service_conf service;
	struct ulrpc_client_conf client;
	struct ulrpc_service *svc;

	sim_open(1);
	rs = NULL;
	request = NULL;
	ulrpc_service_conf_init(&service);
	service.name = "relay";
	service.methods = &method;
	service.nmethods = 1;
	cr_assert_eq(ulrpc_service_start(servers[1].rpc, &service, &svc), 0);
	ulrpc_client_conf_init(&client);
	client.nids = &first;
	client.nnids = 1;
	client.service = "relay";
	cr_assert_eq(ulrpc_client_open(rpc, &client, &outer), 0);
	if (named) {
		conf.client.target = "servers";
	} else {
		conf.client.nids = nids;
		conf.client.nnids = 2;
	}
	cr_assert_eq(ulrpc_replicas_open(servers[1].rpc, &conf, &inner), 0);
}

static void ask(uint64_t deadline)
{
	const struct ulrpc_call_conf how = { .deadline = deadline };

	cr_assert_eq(ulrpc_call(outer, ulrpc_method("relay"), NULL, 0, &how,
				on_outer, NULL, &asked),
		     0);
}

static void end(void)
{
	ulrpc_call_put(asked);
	ulrpc_context_free(context);
	ulrpc_replicas_close(inner);
	ulrpc_client_close(outer);
	lnet_sim_run(sim, 20 * SEC);
	sim_close();
}

/* The call for the request has the context, and ends soon when the caller of
 * the request does not want it any more. */
static void ends_when_canceled(void)
{
	cr_assert_eq(calls[INNER].n, 0);
	cr_assert_not_null(request);
	cr_assert_eq(ulrpc_context_add(context, "a", "b", 1), -EBUSY);
	ulrpc_cancel(asked);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(outer_cause, ULRPC_CAUSE_CANCELED);
	cr_assert_eq(calls[INNER].n, 1);
	cr_assert_eq(calls[INNER].o.call.cause, ULRPC_CAUSE_CANCELED, "%s",
		     ulrpc_cause_name(calls[INNER].o.call.cause));
	cr_assert_null(request);
	cr_assert_eq(ulrpc_context_add(context, "a", "b", 1), 0);
}

/* No server is known. */
Test(replicas_under, a_call_that_waits_for_a_server_ends_with_its_request)
{
	begin(true);
	ask(60000000);
	lnet_sim_run(sim, SEC);
	ends_when_canceled();
	end();
}

/* The servers are gone: most of the time no attempt is under way. */
Test(replicas_under, a_call_between_two_attempts_ends_with_its_request)
{
	for (unsigned int i = 0; i < 8; i++) {
		begin(false);
		cr_assert_eq(lnet_sim_crash(sim, 2), 0);
		cr_assert_eq(lnet_sim_crash(sim, 3), 0);
		ask(60000000);
		lnet_sim_run(sim, SEC + i * 33 * MSEC);
		ends_when_canceled();
		end();
	}
}

Test(replicas_under, a_call_at_a_server_ends_with_its_request)
{
	begin(false);
	servers[2].delay = servers[3].delay = 10 * SEC;
	ask(60000000);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(calls[INNER].executed, 1);
	ends_when_canceled();
	cr_assert_eq(calls[INNER].o.call.execution, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_eq(calls[INNER].executed, 1);
	end();
}

/* The time of the request is that of the call, wherever the call is. */
Test(replicas_under, a_call_has_the_time_of_its_request)
{
	for (unsigned int i = 0; i < 3; i++) {
		begin(i == 0);
		for (unsigned int k = 2; k <= SERVERS; k++) {
			servers[k].delay = 10 * SEC;
			if (i == 1)
				cr_assert_eq(lnet_sim_crash(sim, k), 0);
		}
		ask(2000000);
		lnet_sim_run(sim, 3 * SEC);
		cr_assert_eq(calls[INNER].n, 1, "round %u", i);
		cr_assert_leq(calls[INNER].took, 2 * SEC);
		cr_assert_neq(calls[INNER].o.call.cause, ULRPC_CAUSE_OK);
		end();
	}
}

/* A call that is made when its request is not wanted any more is refused. */
Test(replicas_under, a_context_is_with_one_call)
{
	struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 30000000 },
	};
	const uint32_t index = 3;
	struct ulrpc_metadata pair;

	sim_open(1);
	set_servers(SERVERS_OF(0));
	conf.client.target = "servers";
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
	cr_assert_eq(ulrpc_context_new(&context), 0);
	cr_assert_eq(ulrpc_context_add(context, "user", "anna", 4), 0);
	how.call.context = context;
	ulrpc_replicas_call_put(call_with(2, &how));
	cr_assert_eq(ulrpc_replicas_call(rs, ulrpc_method("work"), &index,
					 sizeof(index), &how, on_end,
					 &calls[3], NULL),
		     -EBUSY);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(ulrpc_context_find(context, "server", &pair), -EBUSY);
	set_servers(SERVERS_OF(2));
	lnet_sim_run(sim, 10 * SEC);
	went_well(2);
	cr_assert_str_eq(said, "anna");
	/* What the reply has brought is in the user's context. */
	cr_assert_eq(ulrpc_context_find(context, "server", &pair), 0);
	cr_assert_eq(pair.length, 1);
	cr_assert_eq(*(const char *)pair.value, '2');
	ulrpc_replicas_call_put(call_with(2, &how));
	lnet_sim_run(sim, SEC);
	went_well(2);
	ulrpc_context_free(context);
	sim_close();
}
