/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of replies that are longer than their calls have room for: a
 * service that makes them, a client, and calls. Client and service are both
 * real. */
#ifndef TESTS_UNIT_RPC_LONG_REPLY_RIG_H
#define TESTS_UNIT_RPC_LONG_REPLY_RIG_H

#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "tests/unit/rpc/serve_rig.h"
#define ROOM  100		   /* bytes that a call has for its reply */
#define LIMIT (UINT32_C(16) << 20) /* of replies, as a service has it */
#define LONG 300000

static struct serve_rig g;

/* ---- the service ---- */

static inline uint8_t nth_byte(size_t i)
{
	return (uint8_t)(i * 167 ^ i >> 8 ^ i >> 15);
}

/* Replies with as many bytes as the request says. */
static inline void make(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	uint32_t n;
	uint8_t *reply;

	note_request(arg, r, body, length);
	memcpy(&n, body, sizeof(n));
	reply = lnet_sim_buf(g.sim, n + 1);
	for (uint32_t i = 0; i < n; i++)
		reply[i] = nth_byte(i);
	ulrpc_reply(r, reply, n);
	lnet_sim_buf_retire(g.sim, reply);
}

static inline void serve_long(uint64_t bytes_max, uint32_t limit)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "make",
		  .handler = make,
		  .arg = &g.served,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "work", .handler = make, .arg = &g.served },
		{ .name = "again",
		  .handler = make,
		  .arg = &g.served,
		  .run = ULRPC_RUN_INLINE,
		  .semantics = ULRPC_IDEMPOTENT },
		{ .name = "hold",
		  .handler = hold,
		  .arg = &g.served,
		  .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_service_conf conf;

	serve_open(&g, NULL);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	conf.queue_bytes_max = bytes_max;
	conf.reply_limit = limit;
	serve_start(&g, &conf);
}

static inline void open_with(uint64_t bytes_max)
{
	serve_init(&g, 1, 1);
	serve_long(bytes_max, 0);
	serve_client(&g);
}

static inline void open_limited(uint32_t limit)
{
	serve_init(&g, 1, 1);
	serve_long(0, limit);
	serve_client(&g);
}

static inline struct service_cpt *cpt0(void)
{
	return &g.service->cpt[0];
}

static inline uint64_t server_counted(enum rpc_stat stat)
{
	return serve_counted(cpt0(), stat);
}

static inline uint64_t client_counted(enum rpc_stat stat)
{
	return g.client->shard->stats->counts[stat];
}

/* Returns the bytes that the service holds for replies and requests, without
 * the short replies that it keeps in case they are asked for again. */
static inline uint64_t held(void)
{
	return cpt0()->used_bytes - cpt0()->kept_bytes;
}

/* ---- calls ---- */

struct asked {
	unsigned int ended;
	uint64_t at; /* ns: when the call ended */
	struct ulrpc_outcome outcome;
	size_t length;
	bool right; /* all bytes of the reply are right */
	struct ulrpc_call *call;
};

static inline void on_asked(void *arg, const struct ulrpc_outcome *o,
		     const void *reply, size_t length)
{
	struct asked *a = arg;

	a->ended++;
	a->at = lnet_sim_now(g.sim);
	a->outcome = *o;
	a->length = length;
	a->right = true;
	cr_assert_eq(o->total, o->connecting + o->window + o->wire +
				       o->server_queue + o->service + o->fetch);
	for (size_t i = 0; i < length; i++)
		a->right &= ((const uint8_t *)reply)[i] == nth_byte(i);
}

static inline void ask_of(const char *method, struct asked *a, uint32_t n,
		   const struct ulrpc_call_conf *conf)
{
	*a = (struct asked){ 0 };
	cr_assert_eq(ulrpc_call(g.client, ulrpc_method(method), &n, sizeof(n),
				conf, on_asked, a, &a->call),
		     0);
}

static inline struct ulrpc_call_conf conf_within(uint64_t ms)
{
	return (struct ulrpc_call_conf){ .deadline = ms == ULRPC_NEVER
							     ? ms
							     : ms * 1000,
					 .reply_max = ROOM };
}

static inline void ask(struct asked *a, uint32_t n, uint64_t ms)
{
	struct ulrpc_call_conf conf = conf_within(ms);

	ask_of("make", a, n, &conf);
}

static inline void asked_ended(struct asked *a, enum ulrpc_cause cause, size_t length)
{
	cr_assert_eq(a->ended, 1);
	cr_assert_eq(a->outcome.cause, cause, "%s",
		     ulrpc_cause_name(a->outcome.cause));
	cr_assert_eq(a->outcome.execution, ULRPC_EXECUTED);
	cr_assert_eq(a->length, length);
	cr_assert(a->right);
	ulrpc_call_put(a->call);
}

/* Runs until the server holds the reply of @a, and the client knows that. */
static inline void until_held(const struct asked *a)
{
	for (unsigned int i = 0; a->call->fsm.state != CALL_FETCH; i++) {
		cr_assert_lt(i, 1000000);
		lnet_sim_run(g.sim, MSEC / 1000);
	}
}

static inline void slow_link(void)
{
	cluster_links(g.sim, &(struct ulnet_sim_link){ .latency = MSEC });
}

/* Loses all messages to the server from now on. */
static inline void deafen(void)
{
	link_set(g.sim, CALLER, SERVER,
		 &(struct ulnet_sim_link){ .loss = LNET_SIM_ALWAYS });
}

static inline void hear_again(void)
{
	link_set(g.sim, CALLER, SERVER,
		 &(struct ulnet_sim_link){ .latency = MSEC });
}

/* Makes a call, with a deadline in @ms, whose reply the server holds, and loses
 * the GETs of that reply. */
static inline void ask_deaf(struct asked *a, uint64_t ms)
{
	slow_link();
	ask(a, 1, 1000);
	lnet_sim_run(g.sim, 100 * MSEC);
	asked_ended(a, ULRPC_CAUSE_OK, 1);
	ask(a, LONG, ms);
	lnet_sim_run(g.sim, 3 * MSEC / 2);
	deafen();
	until_held(a);
}

static inline void fini(void)
{
	serve_fini(&g);
}

#endif
