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

/* What start_conf() asks of a service's configuration. */
struct start_case {
	struct serve_rig g;
	struct ulrpc_service_conf good;
	struct ulnet_conf_error err;
};

/* @c is refused with @rc, and the caller hears why. */
static void refused(struct start_case *s, struct ulrpc_service_conf c, int rc,
		    const char *what)
{
	struct ulrpc_service *service = NULL;

	s->err.what[0] = '\0';
	c.err = &s->err;
	cr_expect_eq(ulrpc_service_start(s->g.rpc[SERVER], &c, &service), rc,
		     "%s", what);
	cr_expect_null(service);
	cr_expect_str_eq(s->err.what, what);
	c.err = NULL;
	cr_expect_eq(ulrpc_service_start(s->g.rpc[SERVER], &c, &service), rc,
		     "%s", what);
}

#define BAD(field, value, rc, what)                    \
	do {                                           \
		struct ulrpc_service_conf c = s->good; \
		c.field = value;                       \
		refused(s, c, rc, #field ": " what);   \
	} while (0)

static void refuse_fields(struct start_case *s)
{
	static const char long_name[] = "0123456789012345678901234567890123456"
					"789012345678901234567890123";
	static const struct ulrpc_durable no_lookup = { .incarnation = "x" };

	BAD(name, NULL, -EINVAL, "a name is expected");
	BAD(name, "", -EINVAL, "a name is expected");
	BAD(name, long_name, -EINVAL, "it has more than 63 bytes");
	BAD(name, "test", -EEXIST, "'test' is in use");
	BAD(methods, NULL, -EINVAL, "there are none");
	BAD(buffers, 1, -EINVAL, "1 is not from 2 to 1024");
	BAD(buffers, 1025, -EINVAL, "1025 is not from 2 to 1024");
	BAD(portal, ulrpc_service_portal(s->g.service), -EEXIST,
	    "36 is that of service test");
	BAD(portal, ULRPC_PORTAL_BULK, -EINVAL, "63 is for RPC itself");
	BAD(portal, 64, -EINVAL, "64 is more than 63");
	BAD(policy, "best", -EOPNOTSUPP,
	    "'best', at byte 0: 'best' is no policy: fair, rr, fifo, edf or "
	    "tbf is expected");
	BAD(policy, "rr quantum=0", -EINVAL,
	    "'rr quantum=0', at byte 3: quantum: not from 1 to 65536");
	BAD(policy, "fifo tbf method=echo rate=5; method=ehco rate=7", -EINVAL,
	    "'fifo tbf method=echo rate=5; method=ehco rate=7', at byte 36: "
	    "rule 2: method: there is no 'ehco'");
	BAD(request_max, ULRPC_BODY_MAX + 1, -EINVAL,
	    "983041 is more than 983040");
	BAD(queue_bytes_max, 65535, -EINVAL,
	    "65535 is less than request_max, 65536");
	{
		struct ulrpc_service_conf c = s->good;

		c.request_max = 1001;
		c.request_limit = 1000;
		refused(s, c, -EINVAL,
			"request_limit: 1000 is less than request_max, 1001");
		c.request_limit = 70000;
		c.queue_bytes_max = 69999;
		refused(s, c, -EINVAL,
			"queue_bytes_max: 69999 is less than request_limit, "
			"70000");
	}
	BAD(workers_min, 4097, -EINVAL, "4097 is more than 4096");
	BAD(workers_max, 100000, -EINVAL, "100000 is more than 4096");
	BAD(durable, &no_lookup, -EINVAL, "there is no lookup");
}

static void refuse_methods(struct start_case *s)
{
	struct ulrpc_method_conf m[2] = { s->good.methods[0],
					  s->good.methods[0] };
	struct ulrpc_service_conf c = s->good;

	c.nmethods = 0;
	refused(s, c, -EINVAL, "methods: there are none");
	c.methods = m;
	c.nmethods = 2;
	refused(s, c, -EEXIST, "methods: 'echo' has the same number as 'echo'");
	m[1].handler = NULL;
	refused(s, c, -EINVAL, "methods: 'echo' has no handler");
	m[1] = m[0];
	m[1].run = (enum ulrpc_run)2;
	refused(s, c, -EINVAL, "methods: 'echo': 2 is no way to run it");
	m[1] = m[0];
	m[1].priority = (enum ulrpc_priority)4;
	refused(s, c, -EINVAL, "methods: 'echo': 4 is no priority");
	m[1] = m[0];
	m[1].semantics = (enum ulrpc_semantics)3;
	refused(s, c, -EINVAL, "methods: 'echo': 3 is no semantics");
	m[1].name = NULL;
	refused(s, c, -EINVAL, "methods: number 2 has no name");
}

static void refuse_pairs(struct start_case *s)
{
	struct ulrpc_service_conf c = s->good;
	char what[128];

	c.workers_min = 4;
	c.workers_max = 2;
	refused(s, c, -EINVAL, "workers_max: 2 is less than workers_min, 4");
	c = s->good;
	c.buffer_size = 1000;
	snprintf(what, sizeof(what),
		 "buffer_size: 1000 is less than a message has, %u",
		 (unsigned int)MIN(LNET_MTU, 65536 + WIRE_HEAD_MAX));
	refused(s, c, -EINVAL, what);
}

Test(service, start_conf)
{
	struct ulrpc_service *other, *third;
	struct start_case s;

	rig(&s.g, NULL);
	s.good = serve_conf(&s.g);
	s.good.name = "other";
	refuse_fields(&s);
	refuse_methods(&s);
	refuse_pairs(&s);
	cr_assert_eq(ulrpc_service_start(s.g.rpc[SERVER], &s.good, &other), 0);
	/* The portal of a service that has stopped is not given to the next
	 * service. */
	cr_assert_eq(ulrpc_service_stop(other, 1000), 0);
	s.good.name = "third";
	cr_assert_eq(ulrpc_service_start(s.g.rpc[SERVER], &s.good, &third), 0);
	cr_assert_eq(ulrpc_service_portal(third),
		     ulrpc_service_portal(s.g.service) + 2);
	end(&s.g);
}

static int unique_entry(struct lnet *node, unsigned int portal)
{
	struct ulnet_me_handle me;

	return LNetMEAttach(node, portal, nth_id(CALLER), 1, 0, LNET_RETAIN,
			    LNET_INS_AFTER, &me);
}

/* A service that gets no portal hears so, and which one was meant. */
Test(service, portals_that_cannot_be_had)
{
	struct start_case s;
	struct services *all;
	char name[16];

	rig(&s.g, NULL);
	all = s.g.rpc[SERVER]->services;
	s.good = serve_conf(&s.g);
	s.good.name = "other";
	s.good.portal = 7;
	cr_assert_eq(unique_entry(s.g.node[SERVER], 7), 0);
	text_copy(all->former[7], ULRPC_SERVICE_NAME, "before");
	refused(&s, s.good, -EPERM,
		"portal: 7 is used for unique match entries");
	/* The portal is as it was. */
	cr_assert_str_eq(all->former[7], "before");
	cr_assert_eq(all->had[7].name, 0);
	s.good.portal = 0;
	s.good.name = name;
	for (unsigned int i = ULRPC_PORTAL_FIRST; i < ULRPC_PORTAL_LAST; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		s.good.portal = i + 1; /* the first is that of "test" */
		cr_assert_eq(
			ulrpc_service_start(s.g.rpc[SERVER], &s.good, NULL), 0);
	}
	s.good.portal = 0;
	snprintf(name, sizeof(name), "last");
	refused(&s, s.good, -ENOSPC, "portal: none from 36 to 60 is left");
	end(&s.g);
}

/* The same of the portal that is to be shared. */
Test(service, shared_portal_that_cannot_be_had)
{
	struct start_case s;
	char name[16];

	rig(&s.g, NULL);
	s.good = serve_conf(&s.g);
	s.good.name = name;
	for (unsigned int i = ULRPC_PORTAL_FIRST + 1; i < ULRPC_PORTAL_LAST;
	     i++) {
		snprintf(name, sizeof(name), "s%u", i);
		cr_assert_eq(
			ulrpc_service_start(s.g.rpc[SERVER], &s.good, NULL), 0);
	}
	cr_assert_eq(unique_entry(s.g.node[SERVER], ULRPC_PORTAL_LAST), 0);
	snprintf(name, sizeof(name), "last");
	refused(&s, s.good, -EPERM,
		"portal: 60 is used for unique match entries");
	end(&s.g);
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
