/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that are longer than a message: the client lends their bodies, and
 * the server gets them. Client and service are both real. */
#include <errno.h>
#include <sys/mman.h>

#include "rpc/bulk/bulk.h"
#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/client/lent.h"
#include "rpc/server/session/export.h"
#include "tests/unit/rpc/serve_rig.h"
#include "ulnet/context.h"

#define MIB   (UINT32_C(1) << 20)
#define LIMIT (16 * MIB) /* what a service takes by default */
#define LONG  (3 * MIB + 5)

static struct serve_rig g;

/* What handlers have found wrong. */
static unsigned int wrong;

/* ---- the service ---- */

static uint8_t nth_byte(size_t i)
{
	return (uint8_t)(i * 167 ^ i >> 8 ^ i >> 15);
}

/* Replies with the length of the body. */
static void take(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	uint32_t n = (uint32_t)length;

	note_request(arg, r, body, 0);
	for (size_t i = 0; i < length; i++)
		wrong += ((const uint8_t *)body)[i] != nth_byte(i);
	ulrpc_reply(r, &n, sizeof(n));
}

/* Replies with the length of the bulk, when it has got the caller's bulk. */
static void on_taken(void *arg, int status, uint64_t moved)
{
	uint32_t n = (uint32_t)moved;

	cr_assert_eq(status, 0);
	ulrpc_reply(arg, &n, sizeof(n));
}

static uint8_t taken[5000];

static void take_bulk(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	struct iovec iov = { taken, sizeof(taken) };

	note_request(arg, r, body, 0);
	for (size_t i = 0; i < length; i++)
		wrong += ((const uint8_t *)body)[i] != nth_byte(i);
	cr_assert_eq(ulrpc_bulk_get(r, 0, 0, &iov, 1, on_taken, r), 0);
}

static void serve_lent(const struct ulrpc_service_conf *more)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "take",
		  .handler = take,
		  .arg = &g.served,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "work", .handler = take, .arg = &g.served },
		{ .name = "with_bulk",
		  .handler = take_bulk,
		  .arg = &g.served,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "again",
		  .handler = take,
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
	if (more)
		conf = *more;
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	serve_start(&g, &conf);
}

static void open_with(const struct ulrpc_service_conf *more)
{
	wrong = 0;
	serve_init(&g, 1, 1);
	serve_lent(more);
	serve_client(&g);
	cluster_links(g.sim,
		      &(struct ulnet_sim_link){ .latency = MSEC / 10,
						.bandwidth = 10000000000 });
}

static struct service_cpt *cpt0(void)
{
	return &g.service->cpt[0];
}

static uint64_t counted(enum rpc_stat stat)
{
	return serve_counted(cpt0(), stat);
}

static uint64_t charged(void)
{
	return cpt0()->used_bytes - cpt0()->kept_bytes;
}

/* ---- calls ---- */

struct put {
	unsigned int ended;
	struct ulrpc_outcome outcome;
	uint32_t took; /* bytes that the handler has seen */
	struct ulrpc_call *call;
};

static void on_put(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct put *p = arg;

	p->ended++;
	p->outcome = *o;
	if (length == sizeof(p->took))
		memcpy(&p->took, reply, sizeof(p->took));
	cr_assert_eq(o->total, o->connecting + o->window + o->wire +
				       o->server_queue + o->service + o->fetch);
}

static int put_with(const char *method, struct put *p, uint32_t n,
		    const struct ulrpc_call_conf *conf)
{
	uint8_t *body = malloc(n + 1);
	int rc;

	*p = (struct put){ 0 };
	for (uint32_t i = 0; i < n; i++)
		body[i] = nth_byte(i);
	rc = ulrpc_call(g.client, ulrpc_method(method), body, n, conf, on_put,
			p, &p->call);
	free(body);
	return rc;
}

static void put(const char *method, struct put *p, uint32_t n, uint64_t ms)
{
	struct ulrpc_call_conf conf = {
		.deadline = ms == ULRPC_NEVER ? ms : ms * 1000,
	};

	cr_assert_eq(put_with(method, p, n, &conf), 0);
}

static void put_ended(struct put *p, enum ulrpc_cause cause, uint32_t took)
{
	cr_assert_eq(p->ended, 1);
	cr_assert_eq(p->outcome.cause, cause, "%s: %s",
		     ulrpc_cause_name(p->outcome.cause), p->outcome.text);
	cr_assert_eq(p->took, took);
	cr_assert_eq(wrong, 0);
	ulrpc_call_put(p->call);
}

static void nothing_is_left(void)
{
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(charged(), 0);
	cr_assert_eq(g.client->backlog.bytes, 0);
}

/* Runs until the server gets the body of a call. */
static void until_lent(void)
{
	for (unsigned int i = 0; !counted(RPC_STAT_requests_lent); i++) {
		cr_assert_lt(i, 1000000);
		lnet_sim_run(g.sim, MSEC / 100);
	}
}

static void slow_link(void)
{
	cluster_links(g.sim, &(struct ulnet_sim_link){
				     .latency = MSEC, .bandwidth = 100000000 });
}

static void fini(void)
{
	serve_fini(&g);
}

/* ---- requests that arrive ---- */

Test(lent, arrives)
{
	static const uint32_t lengths[] = { 65536,	    65537,
					    ULRPC_BODY_MAX, ULRPC_BODY_MAX + 1,
					    LONG,	    LIMIT };
	static const char *const methods[] = { "take", "work", "again" };
	unsigned int runs = 0, lent = 0;
	struct put p;

	open_with(NULL);
	for (unsigned int m = 0; m < ARRAY_SIZE(methods); m++) {
		for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
			put(methods[m], &p, lengths[i], 5000);
			lnet_sim_run(g.sim, 100 * MSEC);
			put_ended(&p, ULRPC_CAUSE_OK, lengths[i]);
			cr_assert_eq(p.outcome.attempts, 1);
			cr_assert(p.outcome.bulk_free);
			cr_assert_eq(g.served.info.nbulks, 0);
			lent += lengths[i] > 65536;
			cr_assert_eq(++runs, g.served.runs);
		}
	}
	cr_assert_eq(counted(RPC_STAT_requests_lent), lent);
	cr_assert_eq(counted(RPC_STAT_requests_not_lent), 0);
	cr_assert_eq(counted(RPC_STAT_requests_stalled), 0);
	nothing_is_left();
	fini();
}

/* The client knows the limit before it sends anything. */
Test(lent, too_long)
{
	struct put p;
	uint64_t before;

	open_with(NULL);
	put("take", &p, 1, 1000);
	lnet_sim_run(g.sim, 10 * MSEC);
	put_ended(&p, ULRPC_CAUSE_OK, 1);
	before = counted(RPC_STAT_requests_received);
	put("take", &p, LIMIT + 1, 1000);
	lnet_sim_run(g.sim, 100 * MSEC);
	put_ended(&p, ULRPC_CAUSE_BAD_REQUEST, 0);
	cr_assert_eq(p.outcome.execution, ULRPC_NOT_EXECUTED);
	cr_assert_eq(p.outcome.attempts, 0);
	cr_assert_str_eq(p.outcome.text,
			 "a request of 16777217 bytes is too long: the service "
			 "takes up to 16777216");
	cr_assert_eq(counted(RPC_STAT_requests_received), before);
	cr_assert_eq(g.served.runs, 1);
	nothing_is_left();
	fini();
}

/* What a service says explicitly is its limit. */
Test(lent, limits_of_services)
{
	static const struct {
		uint32_t max, limit, longest;
	} cases[] = {
		{ 1000, 0, 1000 },
		{ 0, 1000, 1000 },
		{ 1000, 3000, 3000 },
		{ 0, 100000, 100000 },
		{ ULRPC_BODY_MAX, 20 * MIB, 20 * MIB },
	};
	struct put p;

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ulrpc_service_conf conf;

		ulrpc_service_conf_init(&conf);
		conf.request_max = cases[i].max;
		conf.request_limit = cases[i].limit;
		open_with(&conf);
		/* The service is not known yet. */
		put("take", &p, cases[i].longest, 1000);
		lnet_sim_run(g.sim, 100 * MSEC);
		put_ended(&p, ULRPC_CAUSE_OK, cases[i].longest);
		put("take", &p, cases[i].longest, 1000);
		lnet_sim_run(g.sim, 100 * MSEC);
		put_ended(&p, ULRPC_CAUSE_OK, cases[i].longest);
		put("take", &p, cases[i].longest + 1, 1000);
		lnet_sim_run(g.sim, 100 * MSEC);
		put_ended(&p, ULRPC_CAUSE_BAD_REQUEST, 0);
		nothing_is_left();
		fini();
	}
}

/* Metadata and a trace go with a body that is lent, too, also if that turns out
 * only when the call is to be sent. */
Test(lent, with_metadata_and_trace)
{
	static const uint32_t lengths[] = { 70000, LONG, 70000 };
	struct put p;

	open_with(NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct ulrpc_call_conf conf = {
			.deadline = 1000000,
			.trace = "00-0af7651916cd43dd8448eb211c80319c-"
				 "b7ad6b7169203331-01",
		};
		struct ulrpc_context *x;

		cr_assert_eq(ulrpc_context_new(&x), 0);
		cr_assert_eq(ulrpc_context_add(x, "name", "value", 5), 0);
		conf.context = x;
		cr_assert_eq(put_with("work", &p, lengths[i], &conf), 0);
		lnet_sim_run(g.sim, 100 * MSEC);
		put_ended(&p, ULRPC_CAUSE_OK, lengths[i]);
		cr_assert_eq(memcmp(g.served.info.trace, conf.trace, 36), 0);
		ulrpc_context_free(x);
	}
	nothing_is_left();
	fini();
}

/* ---- bodies that are several bulks ---- */

/* A body that is longer than ULRPC_BULK_MAX is several bulks, as it is here if
 * it is longer than a MiB; the last of them may be short. */
static void in_parts(void)
{
	g.rpc[CALLER]->lent_part = MIB;
}

Test(lent, is_several_bulks)
{
	static const uint32_t lengths[] = { MIB,  MIB + 1,   2 * MIB,
					    LONG, LIMIT - 1, LIMIT };
	static const char *const methods[] = { "take", "work", "again" };
	struct put p;

	open_with(NULL);
	in_parts();
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		uint32_t n = lengths[i / 2];

		put(methods[i % 3], &p, n, 5000);
		lnet_sim_run(g.sim, 100 * MSEC);
		put_ended(&p, ULRPC_CAUSE_OK, n);
		cr_assert_eq(p.outcome.attempts, 1);
		cr_assert(p.outcome.bulk_free);
		cr_assert_eq(g.served.info.nbulks, 0);
	}
	cr_assert_eq(counted(RPC_STAT_requests_not_lent), 0);
	nothing_is_left();
	fini();
}

/* The caller's own bulk comes before those of the body, which the handler does
 * not see; all of them together are ULRPC_BULKS_MAX at most. */
Test(lent, is_several_bulks_beside_others)
{
	static const uint32_t parts = ULRPC_BULKS_MAX - 1;
	struct iovec iov;
	struct ulrpc_bulk_conf bconf = { .iov = &iov,
					 .niov = 1,
					 .access = ULRPC_BULK_SOURCE };
	struct ulrpc_bulk *bulk;
	struct ulrpc_call_conf conf = { .deadline = 5000000,
					.bulks = &bulk,
					.nbulks = 1 };
	struct put p;

	open_with(NULL);
	in_parts();
	iov = (struct iovec){ lnet_sim_buf(g.sim, sizeof(taken)),
			      sizeof(taken) };
	memset(iov.iov_base, 7, iov.iov_len);
	cr_assert_eq(ulrpc_bulk_new(g.rpc[CALLER], &bconf, &bulk), 0);
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(put_with("with_bulk", &p, parts * MIB, &conf), 0);
		lnet_sim_run(g.sim, SEC);
		put_ended(&p, ULRPC_CAUSE_OK, sizeof(taken));
		cr_assert(p.outcome.bulk_free);
		cr_assert_eq(g.served.info.nbulks, 1);
		cr_assert_eq(memcmp(taken, iov.iov_base, sizeof(taken)), 0);
		memset(taken, 0, sizeof(taken));
	}
	cr_assert_eq(put_with("with_bulk", &p, parts * MIB + 1, &conf),
		     -EMSGSIZE);
	ulrpc_bulk_close(bulk, NULL, NULL);
	lnet_sim_buf_retire(g.sim, iov.iov_base);
	nothing_is_left();
	fini();
}

/* A call that ends while some of its bulks are still to come leaves nothing.
 * What is on its way already comes before the server hears of the end. */
Test(lent, several_bulks_that_are_canceled)
{
	for (unsigned int i = 0; i < 20; i++) {
		struct put p;

		open_with(NULL);
		g.rpc[CALLER]->lent_part = 2 * MIB / ULRPC_BULKS_MAX;
		slow_link();
		put("take", &p, 2 * MIB, 60000);
		until_lent();
		lnet_sim_run(g.sim, i * MSEC / 4);
		ulrpc_cancel(p.call);
		lnet_sim_run(g.sim, SEC);
		put_ended(&p, ULRPC_CAUSE_CANCELED, 0);
		cr_assert_eq(g.served.runs, 0, "%u", i);
		nothing_is_left();
		fini();
	}
}

/* The longest body is as many bulks as a call may have, and its request fits
 * into a message. Nothing of it is touched here. */
Test(lent, longest)
{
	const uint64_t longest = UINT32_MAX;
	struct wire_segments segments[ULRPC_BULKS_MAX];
	struct ulrpc_call_conf conf = { .deadline = 1000000 };
	const struct wire_call w = {
		.bulks = { .n = ULRPC_BULKS_MAX, .list = segments },
	};
	struct ulrpc_bulk *bulks[ULRPC_BULKS_MAX];
	struct put p;
	uint64_t sum = 0;
	uint8_t *memory =
		mmap(NULL, longest, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	cr_assert_neq(memory, MAP_FAILED);
	open_with(NULL);
	cr_assert_eq(lent_bulks(g.rpc[CALLER], longest), ULRPC_BULKS_MAX);
	cr_assert_eq(lent_bulks(g.rpc[CALLER], ULRPC_BULK_MAX), 1);
	cr_assert_eq(lent_bulks(g.rpc[CALLER], ULRPC_BULK_MAX + 1), 2);
	for (unsigned int i = 0; i < ULRPC_BULKS_MAX; i++) {
		uint64_t at = i * ULRPC_BULK_MAX;
		struct iovec iov = { memory + at,
				     MIN(longest - at, ULRPC_BULK_MAX) };
		struct ulrpc_bulk_conf bconf = { .iov = &iov,
						 .niov = 1,
						 .access = ULRPC_BULK_SOURCE,
						 .flags = ULRPC_BULK_CHECKSUM };

		cr_assert_eq(ulrpc_bulk_new(g.rpc[CALLER], &bconf, &bulks[i]),
			     0);
		bulk_is_body(bulks[i]);
		bulk_describe(bulks[i], &segments[i]);
		for (unsigned int k = 0; k < segments[i].n; k++)
			sum += segments[i].length[k];
	}
	cr_assert_eq(sum, longest);
	cr_assert_leq(wire_call_bound(&w), WIRE_HEAD_MAX);
	for (unsigned int i = 0; i < ULRPC_BULKS_MAX; i++)
		ulrpc_bulk_close(bulks[i], NULL, NULL);
	cr_assert_eq(ulrpc_call(g.client, ulrpc_method("take"), memory,
				longest + 1, &conf, on_put, &p, NULL),
		     -EMSGSIZE);
	munmap(memory, longest);
	nothing_is_left();
	fini();
}

/* Each message may be lost, or come late or twice; each call is executed
 * once. */
static void some_are_lost(void (*prepare)(void))
{
	const struct ulnet_sim_link bad = { .latency = MSEC,
					    .jitter = 3 * MSEC,
					    .loss = LNET_SIM_ALWAYS / 5,
					    .error = LNET_SIM_ALWAYS / 20,
					    .duplicate = LNET_SIM_ALWAYS / 10,
					    .reorder = LNET_SIM_ALWAYS / 10,
					    .reorder_window = 5 * MSEC };
	struct put p;

	open_with(NULL);
	if (prepare)
		prepare();
	cluster_links(g.sim, &bad);
	for (unsigned int i = 0; i < 20; i++) {
		put(i % 2 ? "take" : "work", &p, LONG + i, 600000);
		lnet_sim_run(g.sim, 600 * SEC);
		put_ended(&p, ULRPC_CAUSE_OK, LONG + i);
	}
	cr_assert_eq(g.served.runs, 20);
	nothing_is_left();
	fini();
}

Test(lent, messages_are_lost)
{
	some_are_lost(NULL);
	some_are_lost(in_parts);
}

/* Many at a time use up the client's share: further ones are refused, come
 * again, and all are served. */
Test(lent, share_of_the_client)
{
	static struct put p[40];
	struct ulrpc_service_conf conf;
	uint64_t most = 0;

	ulrpc_service_conf_init(&conf);
	conf.queue_bytes_max = 8 * MIB;
	conf.request_limit = 4 * MIB;
	open_with(&conf);
	slow_link();
	for (unsigned int i = 0; i < ARRAY_SIZE(p); i++)
		put(i % 2 ? "work" : "take", &p[i], LONG, 600000);
	for (unsigned int i = 0; i < 10000; i++) {
		lnet_sim_run(g.sim, MSEC);
		most = MAX(most, charged());
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(p); i++)
		put_ended(&p[i], ULRPC_CAUSE_OK, LONG);
	cr_assert_eq(g.served.runs, ARRAY_SIZE(p));
	cr_assert_geq(most, 2 * (uint64_t)LONG);
	cr_assert_leq(most, 8 * (uint64_t)LONG);
	nothing_is_left();
	fini();
}

/* Others go first while a body is on its way. */
Test(lent, holds_up_nobody)
{
	struct put p, q;

	open_with(NULL);
	slow_link();
	put("take", &q, 1, 1000);
	lnet_sim_run(g.sim, 100 * MSEC);
	put_ended(&q, ULRPC_CAUSE_OK, 1);
	put("take", &p, LIMIT, 60000);
	until_lent();
	put("take", &q, 1, 1000);
	lnet_sim_run(g.sim, 100 * MSEC);
	put_ended(&q, ULRPC_CAUSE_OK, 1);
	cr_assert_eq(p.ended, 0);
	lnet_sim_run(g.sim, 10 * SEC);
	put_ended(&p, ULRPC_CAUSE_OK, LIMIT);
	/* What the body takes on its way is no time in a queue. */
	cr_assert_leq(p.outcome.server_queue, 1000);
	nothing_is_left();
	fini();
}

static uint64_t given;

static void on_given(struct give_back *b, void *holder, size_t bytes)
{
	const struct share *share = holder;

	given += bytes;
	cr_assert_geq(share->used.bytes, bytes);
	cr_assert_geq(charged(), bytes);
	service_on_given(b, holder, bytes);
}

/* What is long is given back in steps, and charged until then. */
Test(lent, is_given_back)
{
	static const uint32_t lengths[] = { LONG, LIMIT };
	struct put p;

	for (unsigned int i = 0; i < 4; i++) {
		uint32_t length = lengths[i / 2];

		open_with(NULL);
		slow_link();
		cpt0()->bodies.gave = on_given;
		given = 0;
		put("take", &p, length, 60000);
		until_lent();
		if (i % 2)
			ulrpc_cancel(p.call);
		lnet_sim_run(g.sim, SEC);
		put_ended(&p, i % 2 ? ULRPC_CAUSE_CANCELED : ULRPC_CAUSE_OK,
			  i % 2 ? 0 : length);
		cr_assert_eq(given, length == LIMIT ? LIMIT : 0);
		nothing_is_left();
		fini();
	}
}

/* A body that is on its way keeps no worker: others are not told to wait for
 * it. */
Test(lent, is_no_work_yet)
{
	struct put p;

	open_with(NULL);
	slow_link();
	put("work", &p, LIMIT, 60000);
	until_lent();
	/* what the client was promised when it came counts no more */
	lnet_sim_run(g.sim, 110 * MSEC);
	cr_assert_eq(cpt0()->under_way, 1);
	cr_assert_eq(cpt0()->being_got, 1);
	mean_add(&g.service->exec.worker_time, SEC);
	cr_assert_eq(service_retry_after(g.service, 0), 10000);
	cr_assert_eq(service_promise(cpt0(), lnet_now(g.node[SERVER], 0)), 1);
	lnet_sim_run(g.sim, SEC);
	put_ended(&p, ULRPC_CAUSE_OK, LIMIT);
	cr_assert_eq(cpt0()->being_got, 0);
	nothing_is_left();
	fini();
}

/* The user's own bulk keeps its numbers, and the handler cannot reach the body
 * as bulk. */
static int of_body, of_own;
static unsigned int nbulks;

static void look(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct ulrpc_bulk_info info;

	(void)arg;
	(void)body;
	nbulks = g.served.info.nbulks;
	of_own = ulrpc_request_bulk(r, 0, &info);
	of_body = ulrpc_request_bulk(r, 1, &info);
	wrong += info.length != 10;
	wrong += length != LONG;
	ulrpc_reply(r, NULL, 0);
}

Test(lent, beside_own_bulk)
{
	static uint8_t own[10];
	const struct iovec iov = { own, sizeof(own) };
	const struct ulrpc_bulk_conf bulk = { .iov = &iov,
					      .niov = 1,
					      .access = ULRPC_BULK_SINK };
	const struct ulrpc_method_conf method = { .name = "look",
						  .handler = look,
						  .run = ULRPC_RUN_INLINE };
	struct ulrpc_bulk *b[1];
	struct ulrpc_call_conf conf = { .deadline = 1000000,
					.bulks = b,
					.nbulks = 1 };
	struct put p;

	wrong = 0;
	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_methods(&g, &method, 1);
	serve_client(&g);
	cr_assert_eq(ulrpc_bulk_new(g.rpc[CALLER], &bulk, &b[0]), 0);
	cr_assert_eq(put_with("look", &p, LONG, &conf), 0);
	lnet_sim_run(g.sim, 100 * MSEC);
	put_ended(&p, ULRPC_CAUSE_OK, 0);
	cr_assert_eq(of_own, 0);
	cr_assert_eq(of_body, -ENOENT);
	ulrpc_bulk_close(b[0], NULL, NULL);
	nothing_is_left();
	fini();
}

/* ---- how many there may be ---- */

/* What makes calls in a turn of the client's CPT. */
static struct put many[4];
static int made[4];

static void make_many(void *arg, const struct ulrpc_outcome *o,
		      const void *reply, size_t length)
{
	const struct ulrpc_call_conf conf = { .deadline = 60000000 };

	(void)arg, (void)o, (void)reply, (void)length;
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		made[i] = put_with("work", &many[i], LONG, &conf);
}

/* Bodies that are lent count at once, as many as one callback may lend; the
 * call that has ended does not. */
Test(lent, calls_of_one_callback)
{
	static const struct {
		uint32_t calls;
		uint64_t bytes;
		unsigned int made;
	} cases[] = {
		{ 0, 2 * LONG - 1, 2 },
		{ 0, 2 * LONG + 1, 3 },
		{ 3, 0, 3 },
		{ 0, 0, 4 },
	};
	const struct ulnet_nid nid = nth_id(SERVER).nid;
	const struct ulrpc_call_conf conf = { .deadline = 1000000 };

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ulrpc_client_conf c;
		struct put p;

		open_with(NULL);
		ulrpc_client_close(g.client);
		ulrpc_client_conf_init(&c);
		c.nids = &nid;
		c.nnids = 1;
		c.service = "test";
		c.queue_max = cases[i].calls;
		c.queue_bytes = cases[i].bytes;
		cr_assert_eq(ulrpc_client_open(g.rpc[CALLER], &c, &g.client),
			     0);
		cr_assert_eq(ulrpc_call(g.client, ulrpc_method("take"), NULL, 0,
					&conf, make_many, NULL, NULL),
			     0);
		lnet_sim_run(g.sim, SEC);
		for (unsigned int j = 0; j < ARRAY_SIZE(many); j++) {
			bool room = j < cases[i].made;

			cr_assert_eq(made[j], room ? 0 : -EAGAIN, "%u: %u: %d",
				     i, j, made[j]);
			if (room)
				put_ended(&many[j], ULRPC_CAUSE_OK, LONG);
		}
		/* There is room again. */
		cr_assert_eq(put_with("work", &p, LONG, &conf), 0);
		lnet_sim_run(g.sim, 100 * MSEC);
		put_ended(&p, ULRPC_CAUSE_OK, LONG);
		nothing_is_left();
		fini();
	}
}

/* ---- calls, clients, services and nodes that end ---- */

/* The call ends, or its client, while the body is on its way: the server frees
 * what it has. */
Test(lent, canceled)
{
	for (unsigned int i = 0; i < 30; i++) {
		enum ulrpc_cause cause = ULRPC_CAUSE_CANCELED;
		struct put p;

		open_with(NULL);
		slow_link();
		put(i & 1 ? "take" : "work", &p, LONG, i % 3 ? 60000 : 25);
		until_lent();
		lnet_sim_run(g.sim, i * MSEC / 2);
		if (i % 3 == 0) {
			/* the server, if it has begun to get the body, says
			 * before that it will not be in time */
			lnet_sim_run(g.sim, 30 * MSEC);
			cause = p.outcome.cause == ULRPC_CAUSE_EXPIRED
					? ULRPC_CAUSE_EXPIRED
					: ULRPC_CAUSE_DEADLINE;
			cr_assert(cause != ULRPC_CAUSE_EXPIRED ||
				  p.outcome.execution == ULRPC_NOT_EXECUTED);
		} else if (i % 3 == 1) {
			ulrpc_cancel(p.call);
		} else {
			ulrpc_client_close(g.client);
		}
		lnet_sim_run(g.sim, MSEC / 10);
		cr_assert(p.outcome.bulk_free); /* of the user's, of none */
		put_ended(&p, cause, 0);
		lnet_sim_run(g.sim, SEC);
		cr_assert_eq(charged(), 0);
		/* What tells the server may come behind the body. */
		cr_assert_eq(
			g.served.runs + counted(RPC_STAT_requests_not_lent), 1);
		cr_assert(!g.served.runs ||
			  p.outcome.execution == ULRPC_EXECUTION_UNKNOWN);
		fini();
	}
}

/* The node of the client or of the server crashes at some moment. */
Test(lent, crash)
{
	for (unsigned int i = 0; i < 40; i++) {
		unsigned int gone = i % 2, left = !gone;
		struct put p;

		open_with(NULL);
		cluster_links(g.sim, &(struct ulnet_sim_link){
					     .latency = MSEC,
					     .bandwidth = 100000000,
					     .refuse = i % 3 ? 0 : 500000 });
		put(i % 4 > 1 ? "take" : "work", &p, LONG, 2000);
		lnet_sim_run(g.sim, i * MSEC);
		cr_assert_eq(lnet_sim_crash(g.sim, gone), 0);
		lnet_sim_run(g.sim, 200 * SEC);
		if (gone == SERVER)
			cr_assert_eq(p.ended, 1);
		else
			cr_assert_eq(charged(), 0);
		ulrpc_call_put(p.call);
		cr_assert_eq(ulrpc_close(g.rpc[left]), 0);
		lnet_sim_run_all(g.sim);
		cr_assert_eq(lnet_sim_free(g.sim), 0);
	}
}

static int forget_client(void *arg)
{
	struct exports *x = arg;

	for (unsigned int i = 0; i < EXPORT_CLOCKS; i++)
		if (!list_empty(&x->silent[i]))
			export_vanished(x, list_first(&x->silent[i],
						      struct export, link));
	return 0;
}

/* The server forgets the client while the body is on its way: the call was
 * certainly not executed, whatever it does, and is sent again. */
Test(lent, client_is_forgotten)
{
	for (unsigned int i = 0; i < 20; i++) {
		struct put p;

		open_with(NULL);
		slow_link();
		put(i % 2 ? "take" : "work", &p, LONG, 60000);
		until_lent();
		lnet_sim_run(g.sim, i * MSEC);
		cr_assert_eq(lnet_call(g.node[SERVER], 0, forget_client,
				       cpt0()->shard->exports),
			     0);
		lnet_sim_run(g.sim, 10 * SEC);
		put_ended(&p, ULRPC_CAUSE_OK, LONG);
		cr_assert_eq(g.served.runs, 1);
		cr_assert_eq(counted(RPC_STAT_requests_not_lent), 1);
		cr_assert_eq(cpt0()->being_got, 0);
		nothing_is_left();
		fini();
	}
}

/* A call whose body was not there yet was certainly not executed: it is sent
 * again, whatever it does, when the server is back. */
Test(lent, server_restarts)
{
	struct ulrpc_call_conf conf = { .deadline = 60000000 };
	struct put p;

	open_with(NULL);
	slow_link();
	conf.semantics = ULRPC_IDEMPOTENT;
	cr_assert_eq(put_with("again", &p, LONG, &conf), 0);
	until_lent();
	cr_assert_eq(lnet_sim_crash(g.sim, SERVER), 0);
	lnet_sim_run(g.sim, 500 * MSEC);
	cr_assert_eq(lnet_sim_restart(g.sim, SERVER), 0);
	g.node[SERVER] = lnet_sim_node(g.sim, SERVER);
	serve_lent(NULL);
	lnet_sim_run(g.sim, 59 * SEC);
	put_ended(&p, ULRPC_CAUSE_OK, LONG);
	cr_assert_eq(g.served.runs, 1);
	nothing_is_left();
	fini();
}

/* A service that stops does not wait for bodies longer than it may, and says
 * that the call was not executed. */
Test(lent, service_stops)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct put p;
		int rc;

		open_with(NULL);
		slow_link();
		put("work", &p, LONG, 5000);
		until_lent();
		rc = ulrpc_service_stop(g.service, i ? 5000000 : 1000);
		cr_assert_eq(rc, i ? 0 : -ETIMEDOUT);
		lnet_sim_run(g.sim, 6 * SEC);
		cr_assert_eq(g.served.runs, i);
		if (!i)
			cr_assert_eq(p.outcome.execution, ULRPC_NOT_EXECUTED);
		put_ended(&p, i ? ULRPC_CAUSE_OK : p.outcome.cause,
			  i ? LONG : 0);
		fini();
	}
}

/* The service comes back with another limit: the call ends, and says which. */
Test(lent, limit_has_changed)
{
	struct ulrpc_service_conf conf;
	struct put p;

	open_with(NULL);
	put("take", &p, LONG, 1000);
	lnet_sim_run(g.sim, 100 * MSEC);
	put_ended(&p, ULRPC_CAUSE_OK, LONG);
	cr_assert_eq(ulrpc_service_stop(g.service, 1000000), 0);
	ulrpc_service_conf_init(&conf);
	conf.request_max = 1000;
	conf.request_limit = MIB;
	{
		const struct ulrpc_method_conf method = {
			.name = "take",
			.handler = take,
			.arg = &g.served,
			.run = ULRPC_RUN_INLINE,
		};

		conf.name = "test";
		conf.methods = &method;
		conf.nmethods = 1;
		serve_start(&g, &conf);
	}
	put("take", &p, LONG, 5000);
	lnet_sim_run(g.sim, SEC);
	cr_assert_str_eq(p.outcome.text,
			 "a request of 3145733 bytes is too long: the service "
			 "takes up to 1048576");
	put_ended(&p, ULRPC_CAUSE_BAD_REQUEST, 0);
	/* shorter than what was in a message before */
	put("take", &p, 5000, 5000);
	lnet_sim_run(g.sim, SEC);
	put_ended(&p, ULRPC_CAUSE_OK, 5000);
	nothing_is_left();
	fini();
}
