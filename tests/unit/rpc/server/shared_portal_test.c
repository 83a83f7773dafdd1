/* SPDX-License-Identifier: BSD-3-Clause */
/* A node with more services than portals: the last portal is shared. */
#include <errno.h>

#include "rpc/client/client.h"
#include "rpc/server/set.h"
#include "tests/unit/rpc/serve_rig.h"
#include "tests/unit/rpc/server/raw_client.h"

#define OWN  (ULRPC_PORTAL_LAST - ULRPC_PORTAL_FIRST)
#define MANY 300

struct one {
	struct ulrpc_service *service;
	struct ulrpc_client *client;
	struct called called;
	unsigned int runs, gone;
	uint32_t index;
	char name[16];
};

static struct serve_rig g;
static struct raw_client a;
static struct one all[MANY];

/* Replies which service has been called. */
static void which(void *arg, struct ulrpc_request *r, const void *body,
		  size_t length)
{
	struct one *o = arg;

	(void)body;
	(void)length;
	o->runs++;
	ulrpc_reply(r, &o->index, sizeof(o->index));
}

static void on_gone(void *arg, const struct ulnet_id *client)
{
	struct one *o = arg;

	(void)client;
	o->gone++;
}

static int try_start(struct one *o, const struct ulrpc_service_conf *more)
{
	struct ulrpc_method_conf m = { .name = "which",
				       .handler = which,
				       .arg = o,
				       .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf = *more;

	o->index = (uint32_t)(o - all);
	snprintf(o->name, sizeof(o->name), "s%u", o->index);
	conf.name = o->name;
	conf.methods = &m;
	conf.nmethods = 1;
	conf.gone = on_gone;
	conf.gone_arg = o;
	conf.request_max = 1024;
	return ulrpc_service_start(g.rpc[SERVER], &conf, &o->service);
}

static void start(unsigned int i)
{
	cr_assert_eq(try_start(&all[i], &(struct ulrpc_service_conf){ 0 }), 0);
}

static void start_all(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		start(i);
}

static void stop(unsigned int i)
{
	cr_assert_eq(ulrpc_service_stop(all[i].service, 1000000), 0);
	all[i].service = NULL;
}

static void call(unsigned int i, uint64_t deadline)
{
	struct ulrpc_call_conf conf = { .deadline = deadline };
	struct one *o = &all[i];

	o->called = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(o->client, ulrpc_method("which"), "x", 1, &conf,
				on_called, &o->called, NULL),
		     0);
}

static void answered(unsigned int i)
{
	const struct called *c = &all[i].called;
	uint32_t index;

	cr_assert_eq(c->ended, 1, "%u ended %u times", i, c->ended);
	cr_assert_eq(c->outcome.cause, ULRPC_CAUSE_OK, "%u: %s", i,
		     ulrpc_cause_name(c->outcome.cause));
	cr_assert_eq(c->length, sizeof(index));
	memcpy(&index, c->reply, sizeof(index));
	cr_assert_eq(index, i);
}

static void denied(unsigned int i, enum ulrpc_cause cause)
{
	const struct called *c = &all[i].called;

	cr_assert_eq(c->ended, 1, "%u ended %u times", i, c->ended);
	cr_assert_eq(c->outcome.cause, cause, "%u: %s", i,
		     ulrpc_cause_name(c->outcome.cause));
	cr_assert_eq(c->outcome.execution, ULRPC_NOT_EXECUTED);
}

static void call_all(unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++)
		call(i, 60000000);
	lnet_sim_run(g.sim, SEC);
	for (unsigned int i = from; i < to; i++)
		answered(i);
}

static void rig(unsigned int cpts, unsigned int n)
{
	memset(all, 0, sizeof(all));
	serve_init(&g, 1, cpts);
	serve_open(&g, NULL);
	start_all(n);
	cr_assert_eq(ulrpc_open(g.node[CALLER], NULL, &g.rpc[CALLER]), 0);
	for (unsigned int i = 0; i < n; i++)
		all[i].client = serve_client_of(g.rpc[CALLER], all[i].name);
}

static unsigned int portal_of(unsigned int i)
{
	return ulrpc_service_portal(all[i].service);
}

/* ---- many services ---- */

static void count_service(void *arg, const struct ulrpc_service_info *info)
{
	unsigned int *n = arg;

	(void)info;
	(*n)++;
}

/* 24 services have portals of their own; the others share the last one. Each
 * call gets to its service. */
static void many(unsigned int cpts)
{
	unsigned int n = 0;

	rig(cpts, MANY);
	for (unsigned int i = 0; i < OWN; i++)
		cr_assert_eq(portal_of(i), ULRPC_PORTAL_FIRST + i);
	for (unsigned int i = OWN; i < MANY; i++)
		cr_assert_eq(portal_of(i), ULRPC_PORTAL_LAST);
	ulrpc_services(g.rpc[SERVER], count_service, &n);
	cr_assert_eq(n, MANY);
	call_all(0, MANY);
	call_all(0, MANY);
	for (unsigned int i = 0; i < MANY; i++)
		cr_assert_eq(all[i].runs, 2);
	serve_fini(&g);
}

Test(shared_portal, many_services)
{
	many(1);
}

Test(shared_portal, on_several_cpts)
{
	many(4);
}

/* Services stop and start while others are called. */
Test(shared_portal, come_and_go)
{
	rig(2, MANY);
	call_all(0, MANY);
	for (unsigned int round = 0; round < 4; round++) {
		for (unsigned int i = round; i < MANY; i += 4)
			stop(i);
		for (unsigned int i = 0; i < MANY; i++)
			call(i, i % 4 == round ? 500000 : 60000000);
		lnet_sim_run(g.sim, SEC);
		for (unsigned int i = 0; i < MANY; i++)
			if (i % 4 == round)
				denied(i, ULRPC_CAUSE_NO_SERVICE);
			else
				answered(i);
		for (unsigned int i = round; i < MANY; i += 4)
			start(i);
		call_all(0, MANY);
	}
	serve_fini(&g);
}

/* Calls that wait for a service that comes again are answered then. */
Test(shared_portal, calls_wait_for_a_service)
{
	rig(1, OWN + 3);
	call_all(0, OWN + 3);
	for (unsigned int i = OWN; i < OWN + 3; i++) {
		stop(i);
		call(i, 60000000);
	}
	lnet_sim_run(g.sim, SEC);
	for (unsigned int i = OWN + 3; i-- > OWN;)
		start(i);
	lnet_sim_run(g.sim, 10 * SEC);
	for (unsigned int i = OWN; i < OWN + 3; i++)
		answered(i);
	serve_fini(&g);
}

/* A service has the number that it had before, so that its clients find it
 * there; the numbers go round, so that late messages find nobody else. */
Test(shared_portal, numbers_are_kept)
{
	unsigned int number, other;

	rig(1, OWN + 2);
	number = all[OWN].service->number;
	cr_assert_eq(number, LNET_PORTALS);
	stop(OWN);
	start(OWN + 2);
	other = all[OWN + 2].service->number;
	cr_assert_eq(other, number + 2);
	start(OWN);
	cr_assert_eq(all[OWN].service->number, number);
	serve_fini(&g);
}

/* The last number is given away, and no more. */
Test(shared_portal, numbers_end)
{
	struct ulnet_conf_error err;
	struct ulrpc_service_conf conf = { .err = &err };
	struct services *s;

	rig(1, OWN + 1);
	s = g.rpc[SERVER]->services;
	s->next_number = SERVICE_NUMBERS - LNET_PORTALS - 1;
	start(OWN + 1);
	cr_assert_eq(all[OWN + 1].service->number, SERVICE_NUMBERS - 1);
	start(OWN + 2);
	cr_assert_eq(all[OWN + 2].service->number, LNET_PORTALS + 1);
	/* as if all were taken */
	for (unsigned int i = LNET_PORTALS; i < SERVICE_NUMBERS; i++) {
		struct ulrpc_service *svc = calloc(1, sizeof(*svc));

		svc->number = i;
		snprintf(svc->name, sizeof(svc->name), "fill%u", i);
		list_add_tail(&s->all, &svc->link);
	}
	cr_assert_eq(try_start(&all[OWN + 3], &conf), -ENOSPC);
	cr_assert_str_eq(err.what,
			 "portal: it is shared by 960 services already");
	for (unsigned int i = LNET_PORTALS; i < SERVICE_NUMBERS; i++) {
		struct ulrpc_service *svc =
			container_of(s->all.prev, struct ulrpc_service, link);

		list_del(&svc->link);
		free(svc);
	}
	serve_fini(&g);
}

/* ---- beside services with fixed portals ---- */

Test(shared_portal, fixed_portals)
{
	struct ulnet_conf_error err;
	struct ulrpc_service_conf conf = { .portal = ULRPC_PORTAL_LAST,
					   .err = &err };

	rig(1, OWN + 5);
	/* the one that is shared is taken, others are not */
	cr_assert_eq(try_start(&all[OWN + 5], &conf), -EEXIST);
	cr_assert_str_eq(err.what, "portal: 60 is shared by services that have "
				   "not asked for one");
	conf.portal = 20;
	cr_assert_eq(try_start(&all[OWN + 5], &conf), 0);
	all[OWN + 5].client = serve_client_of(g.rpc[CALLER], all[OWN + 5].name);
	call_all(0, OWN + 6);
	serve_fini(&g);
}

/* A portal that becomes free stays so until the service which had it comes
 * again. So a client that still sends there calls nobody else. */
Test(shared_portal, portals_are_kept)
{
	rig(1, OWN + 2);
	call_all(0, OWN + 2);
	stop(7);
	start(OWN + 2);
	cr_assert_eq(portal_of(OWN + 2), ULRPC_PORTAL_LAST);
	all[OWN + 2].client = serve_client_of(g.rpc[CALLER], all[OWN + 2].name);
	call_all(OWN + 2, OWN + 3);
	call(7, 60000000);
	lnet_sim_run(g.sim, SEC);
	start(7);
	cr_assert_eq(portal_of(7), ULRPC_PORTAL_FIRST + 7);
	lnet_sim_run(g.sim, 10 * SEC);
	answered(7);
	call_all(0, OWN + 3);
	serve_fini(&g);
}

/* The names of RPC's own receiver on the shared portal are free. */
Test(shared_portal, is_no_service)
{
	struct ulrpc_method_conf m = { .name = "which",
				       .handler = which,
				       .arg = &all[0],
				       .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf = { .methods = &m, .nmethods = 1 };
	struct service_set set = { 0 };

	rig(1, OWN + 1);
	conf.name = g.rpc[SERVER]->services->shared->name;
	set.service = conf.name;
	cr_assert_eq(services_set(&g.rpc[SERVER]->shards[0], &set), -ENOENT);
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	a.numbers = true;
	raw_client_connect(&a);
	cr_assert_eq(raw_client_open(&a, conf.name)->status, WIRE_NO_SERVICE);
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &conf, NULL), 0);
	cr_assert_eq(raw_client_open(&a, conf.name)->status, WIRE_OK);
	serve_fini(&g);
}

/* ---- who calls ---- */

static uint32_t status_of(uint64_t xid)
{
	raw_client_call(&a, xid, "which", "x");
	lnet_sim_run(g.sim, MSEC);
	return raw_client_reply(&a, xid)->status;
}

/* A client of an earlier release reaches services with portals of their own,
 * and hears that there are no others. */
Test(shared_portal, earlier_clients)
{
	rig(1, OWN + 2);
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	raw_client_connect(&a);
	cr_assert_eq(raw_client_open(&a, "s24")->status, WIRE_NO_SERVICE);
	cr_assert_eq(raw_client_open(&a, "s23")->status, WIRE_OK);
	cr_assert_eq(a.number, 0);
	cr_assert_eq(status_of(1), WIRE_OK);
	a.portal = ULRPC_PORTAL_LAST;
	cr_assert_eq(status_of(2), WIRE_NO_SERVICE);
	cr_assert_eq(all[OWN].runs + all[OWN + 1].runs, 0);
	serve_fini(&g);
}

/* Numbers that the client did not get from the server lead nowhere. */
Test(shared_portal, numbers_are_not_believed)
{
	static const uint32_t wrong[] = {
		0,
		1,
		ULRPC_PORTAL_FIRST,
		ULRPC_PORTAL_LAST,
		LNET_PORTALS - 1,
		LNET_PORTALS, /* a service, which the client has not opened */
		LNET_PORTALS + 2,
		SERVICE_NUMBERS - 1,
		SERVICE_NUMBERS,
		UINT32_MAX,
	};

	rig(1, OWN + 2);
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	a.numbers = true;
	raw_client_connect(&a);
	cr_assert_eq(raw_client_open(&a, "s25")->status, WIRE_OK);
	cr_assert_eq(a.number, LNET_PORTALS + 1);
	cr_assert_eq(a.portal, ULRPC_PORTAL_LAST);
	cr_assert_eq(status_of(1), WIRE_OK);
	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++) {
		a.number = wrong[i];
		cr_assert_eq(status_of(2 + i), WIRE_NO_SERVICE, "%u", wrong[i]);
	}
	/* Nor do they at a service that has a portal to itself, and no number.
	 */
	cr_assert_eq(raw_client_open(&a, "s3")->status, WIRE_OK);
	cr_assert_eq(a.number, 0);
	cr_assert_eq(status_of(100), WIRE_OK);
	for (unsigned int i = 1; i < ARRAY_SIZE(wrong); i++) {
		a.number = wrong[i];
		cr_assert_eq(status_of(100 + i), WIRE_NO_SERVICE, "%u",
			     wrong[i]);
	}
	cr_assert_eq(all[3].runs, 1);
	cr_assert_eq(all[25].runs, 1);
	serve_fini(&g);
}

/* Another attempt of a call gets the reply, also when the service has ended,
 * and when it has come again. */
Test(shared_portal, does_not_deny_what_was_executed)
{
	struct wire_call c = raw_client_call_of(1, "which", 0);

	rig(1, OWN + 2);
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	a.numbers = true;
	raw_client_connect(&a);
	raw_client_open(&a, "s24");
	cr_assert_eq(status_of(1), WIRE_OK);
	stop(OWN);
	for (c.attempt = 1; c.attempt < 3; c.attempt++) {
		a.replies = 0;
		raw_client_send(&a, &c, 1, "", 0);
		lnet_sim_run(g.sim, MSEC);
		cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
		cr_assert_eq(raw_client_reply(&a, 1)->length, 4);
		if (!all[OWN].service) {
			cr_assert_eq(status_of(2), WIRE_NO_SERVICE);
			start(OWN);
			cr_assert_eq(status_of(3), WIRE_NO_SERVICE);
			raw_client_open(&a, "s24");
		}
	}
	cr_assert_eq(all[OWN].runs, 1);
	serve_fini(&g);
}

static struct ulrpc_request *parked[64];
static unsigned int nparked;

static void park_inline(void *arg, struct ulrpc_request *r, const void *body,
			size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	parked[nparked++] = r;
}

static uint32_t again(struct wire_call *c, uint32_t semantics)
{
	c->attempt++;
	c->flags = WIRE_CALL_RESENT;
	c->semantics = semantics;
	lnet_sim_run(g.sim, MSEC);
	a.replies = 0;
	raw_client_send(&a, c, 1, "", 0);
	lnet_sim_run(g.sim, MSEC);
	return raw_client_reply(&a, c->xid)->status;
}

/* A call may have been executed by a service that has ended. If it is to be
 * executed exactly once, the client is to find the service, whose store knows;
 * else it is told that nobody does. */
Test(shared_portal, leaves_doubts_to_the_store)
{
	struct ulrpc_method_conf m = { .name = "park",
				       .handler = park_inline,
				       .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf = { .name = "ends",
					   .methods = &m,
					   .nmethods = 1 };
	struct wire_call c = raw_client_call_of(1, "park", 0);
	struct ulrpc_service *svc;

	rig(1, OWN);
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &conf, &svc), 0);
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	a.numbers = true;
	raw_client_connect(&a);
	cr_assert_eq(raw_client_open(&a, "ends")->status, WIRE_OK);
	cr_assert_neq(a.number, 0);
	raw_client_send(&a, &c, 1, "", 0);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(nparked, 1);
	cr_assert_eq(ulrpc_service_stop(svc, 1000), -ETIMEDOUT);
	cr_assert_eq(again(&c, ULRPC_EXACTLY_ONCE), WIRE_NO_SERVICE);
	cr_assert_eq(again(&c, ULRPC_AT_MOST_ONCE), WIRE_DOUBTFUL);
	ulrpc_reply(parked[0], "", 0);
	serve_fini(&g);
}

/* Each service hears that a client has gone if the client had opened it. */
Test(shared_portal, hear_of_clients_that_are_gone)
{
	rig(1, OWN + 3);
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	a.numbers = true;
	raw_client_connect(&a);
	raw_client_open(&a, "s2");
	raw_client_open(&a, "s25");
	lnet_sim_run(g.sim, 100 * SEC);
	for (unsigned int i = 0; i < OWN + 3; i++)
		cr_assert_eq(all[i].gone, i == 2 || i == 25, "%u", i);
	serve_fini(&g);
}

/* ---- buffers ---- */

/* A service that keeps all of its requests, which are long, leaves the buffers
 * to the others. */
Test(shared_portal, nobody_keeps_the_buffers)
{
	struct ulrpc_method_conf m = { .name = "park",
				       .handler = park_inline,
				       .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf = { .name = "greedy",
					   .methods = &m,
					   .nmethods = 1 };
	static const struct ulrpc_call_conf call_conf = { .deadline =
								  60000000 };
	static uint8_t big[60000];
	struct ulrpc_service *svc;
	struct ulrpc_client *c;
	struct called called[ARRAY_SIZE(parked)];

	rig(1, OWN + 2);
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &conf, &svc), 0);
	cr_assert_eq(ulrpc_service_portal(svc), ULRPC_PORTAL_LAST);
	c = serve_client_of(g.rpc[CALLER], "greedy");
	for (unsigned int i = 0; i < ARRAY_SIZE(parked); i++)
		cr_assert_eq(ulrpc_call(c, ulrpc_method("park"), big,
					sizeof(big), &call_conf, on_called,
					&called[i], NULL),
			     0);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(nparked, ARRAY_SIZE(parked));
	cr_assert_eq(g.rpc[SERVER]->services->shared->cpt[0].inbox.pinned, 0);
	call_all(0, OWN + 2);
	while (nparked)
		ulrpc_reply(parked[--nparked], "", 0);
	serve_fini(&g);
}

/* ---- a portal that another service had before ---- */

/* What was for the service before, and comes when the client has opened the
 * next one on the same portal, is not executed there. */
Test(shared_portal, late_for_the_service_before)
{
	const struct ulrpc_service_conf conf = { .portal = 55 };
	uint32_t before = 0;

	rig(1, 0);
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	a.numbers = true;
	raw_client_connect(&a);
	for (unsigned int i = 0; i < 4; i++) {
		struct one *o = &all[i % 2];
		uint32_t now = i ? 55 + i * SERVICE_NUMBERS : 0;

		cr_assert_eq(try_start(o, &conf), 0);
		cr_assert_eq(raw_client_open(&a, o->name)->status, WIRE_OK);
		cr_assert_eq(a.portal, 55);
		cr_assert_eq(a.number, now);
		cr_assert_eq(status_of(10 * i + 1), WIRE_OK);
		a.number = before;
		cr_assert_eq(status_of(10 * i + 2),
			     i ? WIRE_NO_SERVICE : WIRE_OK);
		a.number = now;
		cr_assert_eq(status_of(10 * i + 3), WIRE_OK);
		before = now;
		stop(i % 2);
	}
	cr_assert_eq(all[0].runs + all[1].runs, 3 + 2 + 2 + 2);
	/* A service that comes again is called as before. */
	cr_assert_eq(try_start(&all[1], &conf), 0);
	cr_assert_eq(raw_client_open(&a, all[1].name)->status, WIRE_OK);
	cr_assert_eq(a.number, before);
	serve_fini(&g);
}

/* Real clients of the one and of the other. */
Test(shared_portal, one_after_the_other)
{
	const struct ulrpc_service_conf conf = { .portal = 55 };

	rig(1, 0);
	for (unsigned int i = 0; i < 6; i++) {
		cr_assert_eq(try_start(&all[i % 2], &conf), 0);
		if (i < 2)
			all[i].client =
				serve_client_of(g.rpc[CALLER], all[i].name);
		call(i % 2, 60000000);
		lnet_sim_run(g.sim, 10 * SEC);
		answered(i % 2);
		stop(i % 2);
	}
	serve_fini(&g);
}
