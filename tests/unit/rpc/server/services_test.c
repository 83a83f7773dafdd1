/* SPDX-License-Identifier: BSD-3-Clause */
/* Services and calls of the real library, end to end, in virtual time. */
#include "tests/unit/rpc/serve_rig.h"

static void rig(struct serve_rig *g, struct ulrpc_service_conf *conf)
{
	serve_init(g, 1, 1);
	serve_open(g, NULL);
	serve_start_with(g, conf);
	serve_client(g);
}

static void end(struct serve_rig *g)
{
	ulrpc_client_close(g->client);
	serve_fini(g);
}

Test(service, inline_call)
{
	struct serve_rig g;
	struct ulnet_id caller = nth_id(CALLER);
	struct called c;

	rig(&g, NULL);
	serve_call(&g, "echo", "hello", 5, 1000000, 0, &c);
	lnet_sim_run(g.sim, SEC / 2);
	cr_assert_eq(c.ended, 1);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(c.outcome.execution, ULRPC_EXECUTED);
	cr_assert_eq(c.length, 5);
	cr_assert_eq(memcmp(c.reply, "hello", 5), 0);
	cr_assert_eq(g.served.info.attempt, 1);
	cr_assert_str_eq(g.served.info.service, "test");
	cr_assert_str_eq(g.served.info.method_name, "echo");
	cr_assert(lnet_nid_eq(&g.served.info.client.nid, &caller.nid));
	end(&g);
}

/* A service that is started without asking for a handle is stopped when RPC is
 * closed. */
Test(service, without_a_handle)
{
	struct ulrpc_service_conf conf;
	struct serve_rig g;

	rig(&g, NULL);
	conf = serve_conf(&g);
	conf.name = "other";
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &conf, NULL), 0);
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &conf, NULL), -EEXIST);
	end(&g);
}

Test(service, start_conf)
{
	struct ulrpc_service_conf good, c;
	struct ulrpc_method_conf m[2];
	struct ulrpc_service *other, *third;
	struct serve_rig g;

	rig(&g, NULL);
	good = serve_conf(&g);
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &good, &other),
		     -EEXIST);
	good.name = "other";
#define BAD(field, value, rc)                                                \
	do {                                                                 \
		c = good;                                                    \
		c.field = value;                                             \
		cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &c, &other), \
			     rc, #field);                                    \
	} while (0)
	BAD(name, NULL, -EINVAL);
	BAD(name, "", -EINVAL);
	BAD(name,
	    "0123456789012345678901234567890123456789012345678901234567890123",
	    -EINVAL);
	BAD(nmethods, 0, -EINVAL);
	BAD(buffers, 1, -EINVAL);
	BAD(buffers, ULRPC_BUFFERS_MAX + 1, -EINVAL);
	BAD(methods, NULL, -EINVAL);
	BAD(portal, ulrpc_service_portal(g.service), -EEXIST);
	BAD(portal, ULRPC_PORTAL_BULK, -EINVAL);
	BAD(portal, 64, -EINVAL);
	BAD(policy, "best", -EOPNOTSUPP);
	BAD(request_max, ULRPC_BODY_MAX + 1, -EINVAL);
	BAD(queue_bytes_max, 65535, -EINVAL);
	BAD(buffers, 1, -EINVAL);
	BAD(buffer_size, 1000, -EINVAL);
	BAD(workers_max, 100000, -EINVAL);
	m[0] = good.methods[0];
	m[1] = good.methods[0];
	c = good;
	c.methods = m;
	c.nmethods = 2;
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &c, &other), -EEXIST);
	m[1].name = NULL;
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &c, &other), -EINVAL);
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &good, &other), 0);
	/* The portal of a service that has stopped is not given to the next
	 * service. */
	cr_assert_eq(ulrpc_service_stop(other, 1000), 0);
	good.name = "third";
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &good, &third), 0);
	cr_assert_eq(ulrpc_service_portal(third),
		     ulrpc_service_portal(g.service) + 2);
	end(&g);
}

Test(service, no_portal_is_left)
{
	unsigned int n = ULRPC_PORTAL_LAST - ULRPC_PORTAL_FIRST + 1;
	struct ulrpc_service_conf c;
	struct ulrpc_service *svc;
	struct serve_rig g;
	char name[20];

	rig(&g, NULL);
	c = serve_conf(&g);
	c.name = name;
	for (unsigned int i = 1; i < n; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &c, &svc), 0);
	}
	strcpy(name, "last");
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &c, &svc), -ENOSPC);
	c.portal = 10;
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &c, &svc), 0);
	end(&g);
}

/* How often starting or stopping a service inside a turn has failed with
 * -EDEADLK, as it must. */
static int deadlocked;

static void stop_inside(void *arg, struct ulrpc_request *r, const void *body,
			size_t length)
{
	struct serve_rig *g = arg;
	struct ulrpc_service_conf conf = serve_conf(g);
	struct ulrpc_service *svc;

	conf.name = "inside";
	deadlocked += ulrpc_service_stop(g->service, 1) == -EDEADLK;
	deadlocked +=
		ulrpc_service_start(g->rpc[SERVER], &conf, &svc) == -EDEADLK;
	ulrpc_reply(r, body, length);
}

Test(service, not_in_a_turn)
{
	struct ulrpc_method_conf m = { .name = "stop",
				       .run = ULRPC_RUN_INLINE,
				       .handler = stop_inside };
	struct ulrpc_service_conf conf;
	struct serve_rig g;
	struct called c;

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	conf = serve_conf(&g);
	conf.methods = &m;
	conf.nmethods = 1;
	m.arg = &g;
	serve_start(&g, &conf);
	serve_client(&g);
	serve_call(&g, "stop", "", 0, 1000000, 0, &c);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(deadlocked, 2);
	end(&g);
}

Test(service, refusals_are_certain)
{
	struct ulrpc_service_conf conf = { .queue_max = 4 };
	struct called c[8], d;
	struct serve_rig g;
	unsigned int over = 0;

	rig(&g, &conf);
	for (unsigned int i = 0; i < 8; i++)
		serve_call(&g, "park", "x", 1, 5000000, 0, &c[i]);
	serve_call(&g, "nothing", "x", 1, 5000000, 0, &d);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(d.outcome.cause, ULRPC_CAUSE_NO_METHOD);
	cr_assert_eq(d.outcome.execution, ULRPC_NOT_EXECUTED);
	/* Calls that the server refuses are sent again until their deadline. */
	lnet_sim_run(g.sim, 3990 * MSEC);
	for (unsigned int i = 0; i < 8; i++)
		if (c[i].ended) {
			over++;
			cr_assert_eq(c[i].outcome.cause,
				     ULRPC_CAUSE_OVERLOADED);
			cr_assert_eq(c[i].outcome.execution,
				     ULRPC_NOT_EXECUTED);
			cr_assert_eq(c[i].outcome.retry_after, 10000);
		}
	cr_assert_eq(over, 4);
	while (g.served.parked) {
		serve_release(&g.served);
		lnet_sim_run(g.sim, 10 * MSEC);
	}
	for (unsigned int i = 0; i < 8; i++)
		cr_assert_eq(c[i].ended, 1);
	/* No more requests run than there was room for; the deadlines of some
	 * have passed. */
	cr_assert_leq(g.served.runs, 4, "%u", g.served.runs);
	end(&g);
}

/* ---- faults ---- */

#define CALLS 400

static unsigned int executed[CALLS];

static void count_run(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	uint32_t n;

	(void)arg;
	cr_assert_eq(length, sizeof(n));
	memcpy(&n, body, sizeof(n));
	cr_assert_lt(n, CALLS);
	executed[n]++;
	ulrpc_reply(r, body, length);
}

static void every_call_ends_once(uint64_t seed,
				 const struct ulnet_sim_link *link)
{
	static struct called c[CALLS];
	struct ulrpc_method_conf m[2] = {
		{ .name = "a", .handler = count_run, .run = ULRPC_RUN_INLINE },
		{ .name = "b", .handler = count_run },
	};
	struct ulnet_nid any = LNET_NID_ANY;
	struct ulrpc_service_conf conf;
	struct serve_rig g;

	memset(executed, 0, sizeof(executed));
	serve_init(&g, seed, 2);
	serve_open(&g, NULL);
	conf = serve_conf(&g);
	conf.methods = m;
	conf.nmethods = 2;
	serve_start(&g, &conf);
	serve_client(&g);
	lnet_sim_link_set(g.sim, &any, &any, link);
	for (uint32_t i = 0; i < CALLS; i++) {
		serve_call(&g, i % 2 ? "a" : "b", &i, sizeof(i), 20000000, 0,
			   &c[i]);
		lnet_sim_run(g.sim, lnet_sim_random(g.sim, 20 * MSEC));
	}
	lnet_sim_run(g.sim, 60 * SEC);
	for (uint32_t i = 0; i < CALLS; i++) {
		const struct ulrpc_outcome *o = &c[i].outcome;

		cr_assert_eq(c[i].ended, 1, "seed %llu, call %u",
			     (unsigned long long)seed, i);
		cr_assert_leq(executed[i], 1, "seed %llu, call %u",
			      (unsigned long long)seed, i);
		if (o->cause == ULRPC_CAUSE_OK)
			cr_assert(executed[i] == 1 &&
				  !memcmp(c[i].reply, &i, sizeof(i)));
		if (o->execution == ULRPC_NOT_EXECUTED)
			cr_assert_eq(executed[i], 0, "seed %llu, call %u: %s",
				     (unsigned long long)seed, i,
				     ulrpc_cause_name(o->cause));
	}
	end(&g);
}

Test(service, faults)
{
	const struct ulnet_sim_link links[] = {
		{ .latency = MSEC, .duplicate = 300000 },
		{ .latency = MSEC,
		  .duplicate = 200000,
		  .reorder = 300000,
		  .reorder_window = 50 * MSEC },
		{ .refuse = 300000 },
		{ .loss = 100000, .error = 100000, .duplicate = 100000 },
		{ .latency = MSEC,
		  .refuse = 100000,
		  .error = 50000,
		  .stall = 20000,
		  .mute = 50000,
		  .duplicate = 100000,
		  .reorder = 100000,
		  .reorder_window = 20 * MSEC },
	};

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	for (uint64_t seed = 1; seed <= 4; seed++)
		for (unsigned int i = 0; i < ARRAY_SIZE(links); i++)
			every_call_ends_once(seed * 100 + i, &links[i]);
}
