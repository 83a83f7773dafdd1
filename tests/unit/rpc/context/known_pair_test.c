/* SPDX-License-Identifier: BSD-3-Clause */
/* Metadata that are sent once, and named by a number then. */
#include "rpc/server/session/known.h"

#include "rpc/client/client.h"
#include "rpc/client/naming.h"
#include "rpc/server/session/export.h"
#include "tests/unit/rpc/serve_rig.h"
#include "ulnet/context.h"

#define PAIRS  8
#define FLIGHT 3 /* calls that certainly go in one message */

static struct serve_rig g;

/* What the handler has seen. */
static char seen[8192];

static void look(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct ulrpc_metadata m;
	char *p = seen;

	note_request(arg, r, body, MIN(length, 63));
	for (unsigned int i = 0; !ulrpc_request_metadata(r, i, &m); i++)
		p += sprintf(p, "%s=%s;", m.name, (const char *)m.value);
	*p = '\0';
	ulrpc_reply(r, body, length);
}

static const char *const kinds[] = { "inline", "worker", "again" };

static void begin(void)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "inline",
		  .handler = look,
		  .arg = &g.served,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "worker", .handler = look, .arg = &g.served },
		{ .name = "again",
		  .handler = look,
		  .arg = &g.served,
		  .semantics = ULRPC_IDEMPOTENT },
	};

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_methods(&g, methods, 3);
	serve_client(&g);
}

static struct exports *exports(void)
{
	return g.rpc[SERVER]->shards[0].exports;
}

static struct export *export_now(void)
{
	uint32_t pos = 0;

	return id_walk(&exports()->table, &pos);
}

static uint64_t known(void)
{
	return g.rpc[SERVER]->shards[0].stats->counts[RPC_STAT_metadata_known];
}

static uint64_t unknown(void)
{
	return g.rpc[SERVER]
		->shards[0]
		.stats->counts[RPC_STAT_metadata_unknown];
}

static void on_answer(void *arg, const struct ulrpc_outcome *o,
		      const void *reply, size_t length)
{
	struct called *c = arg;

	(void)reply;
	c->ended++;
	c->outcome = *o;
	c->length = length;
}

/* Adds the pairs of the set @number to @x. Returns them as look() does. */
static const char *pairs_of(unsigned int number, struct ulrpc_context *x)
{
	static char all[2000];
	char name[16], value[24], *p = all;

	for (unsigned int i = 0; i < PAIRS; i++) {
		sprintf(name, "name-%u", i);
		sprintf(value, "value-%u-%u", number, i);
		p += sprintf(p, "%s=%s;", name, value);
		cr_assert_eq(ulrpc_context_add(x, name, value, strlen(value)),
			     0);
	}
	return all;
}

/* Makes a call with the set @number, and a body of @length bytes. */
static void call_begin(unsigned int number, const char *method, size_t length,
		       struct called *c)
{
	static char body[40000];
	struct ulrpc_call_conf conf = { .deadline = 10000000,
					.reply_max = sizeof(body),
					.semantics = ULRPC_IDEMPOTENT };

	cr_assert_eq(ulrpc_context_new(&conf.context), 0);
	(void)pairs_of(number, conf.context);
	memset(body, (int)number, length);
	cr_assert_eq(ulrpc_call(g.client, ulrpc_method(method), body, length,
				&conf, on_answer, c, NULL),
		     0);
	ulrpc_context_free(conf.context);
}

/* Checks that @c, with the set @number, was executed, with these metadata. */
static void call_check(unsigned int number, size_t length,
		       const struct called *c)
{
	struct ulrpc_context *x;

	cr_assert_eq(c->ended, 1);
	cr_assert_eq(c->outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(c->outcome.cause));
	cr_assert_eq(c->length, length);
	cr_assert_eq(ulrpc_context_new(&x), 0);
	cr_assert_str_eq(seen, pairs_of(number, x));
	ulrpc_context_free(x);
}

static void call(unsigned int number, const char *method, size_t length)
{
	unsigned int runs = g.served.runs;
	struct called c = { 0 };

	call_begin(number, method, length, &c);
	lnet_sim_run(g.sim, SEC);
	call_check(number, length, &c);
	cr_assert_eq(g.served.runs, runs + 1);
}

/* The first call is sent as it is, the second one defines, others refer: to
 * whatever method, and with short or long bodies. */
Test(known_pair, sent_once)
{
	begin();
	call(1, kinds[0], 4);
	cr_expect_eq(exports()->sets.used, 0);
	call(1, kinds[0], 4);
	cr_expect_neq(exports()->sets.used, 0);
	cr_expect_eq(known(), 0);
	for (unsigned int i = 0; i < 30; i++) {
		call(1, kinds[i % 3], i % 5 == 4 ? 20000 + i : 50 * i);
		cr_expect_eq(known(), i + 1);
	}
	cr_expect_eq(unknown(), 0);
	serve_fini(&g);
}

/* A reference does not overtake its definition: it waits for the reply. */
Test(known_pair, in_flight)
{
	struct called c[FLIGHT] = { 0 };

	begin();
	call(2, kinds[0], 4);
	for (unsigned int i = 0; i < FLIGHT; i++)
		call_begin(1, kinds[i % 3], 4, &c[i]);
	lnet_sim_run(g.sim, SEC);
	for (unsigned int i = 0; i < FLIGHT; i++)
		call_check(1, 4, &c[i]);
	cr_expect_eq(known(), 0);
	cr_expect_eq(unknown(), 0);
	for (unsigned int i = 0; i < FLIGHT; i++)
		call_begin(1, kinds[i % 3], 4, &c[i]);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(known(), FLIGHT);
	cr_expect_eq(g.served.runs, 1 + 2 * FLIGHT);
	serve_fini(&g);
}

/* Sets that come once take no memory, and push out no others. */
Test(known_pair, sets_that_come_once)
{
	begin();
	call(1, kinds[1], 4);
	call(1, kinds[1], 4);
	for (unsigned int i = 0; i < 100; i++)
		call(1000 + i, kinds[1], 4);
	call(1, kinds[1], 4);
	cr_expect_eq(known(), 1);
	cr_expect_eq(unknown(), 0);
	serve_fini(&g);
}

/* Calls that are tried again, since a message has no room for them, do not make
 * their sets come twice. */
Test(known_pair, full_messages)
{
	struct called c[20] = { 0 };

	begin();
	call(1, kinds[0], 4);
	for (unsigned int i = 0; i < ARRAY_SIZE(c); i++)
		call_begin(1000 + i, kinds[i % 3], 30000, &c[i]);
	lnet_sim_run(g.sim, SEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(c); i++)
		cr_expect(c[i].ended == 1 &&
			  c[i].outcome.cause == ULRPC_CAUSE_OK);
	cr_expect_eq(exports()->sets.used, 0);
	cr_expect_eq(unknown(), 0);
	serve_fini(&g);
}

/* A set that is known counts as if it had come with the call. */
Test(known_pair, too_long_with_set)
{
	struct called c = { 0 };

	begin();
	for (unsigned int i = 0; i < 3; i++)
		call(1, kinds[i], 4);
	cr_expect_eq(known(), 1);
	g.service->conf.request_max = 100;
	call_begin(1, kinds[0], 4, &c);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(known(), 2);
	cr_expect_eq(g.served.runs, 3);
	cr_expect_eq(c.ended, 1);
	cr_expect_eq(c.outcome.cause, ULRPC_CAUSE_BAD_REQUEST, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	serve_fini(&g);
}

/* More sets than the server remembers: each call has its own. */
Test(known_pair, many_sets)
{
	begin();
	for (unsigned int i = 0; i < 600; i++)
		call(i * 7 % (20 + i % 3), kinds[i % 3], 4);
	cr_expect_gt(known(), 100);
	cr_expect_eq(unknown(), 0);
	serve_fini(&g);
}

/* The server does not know a set any more: nothing runs without it, the client
 * sends it, and does not define one at once. */
Test(known_pair, forgotten)
{
	begin();
	for (unsigned int i = 0; i < 3; i++)
		call(1, kinds[i], 4);
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t before = known();

		known_drop(exports(), export_now());
		call(1, kinds[i], 4);
		cr_expect_eq(unknown(), i + 1);
		call(1, kinds[i], 4);
		cr_expect_eq(exports()->sets.used, 0);
		while (known() == before)
			call(1, kinds[i], 4);
	}
	serve_fini(&g);
}

/* Another epoch: what was named before is sent again. */
Test(known_pair, another_epoch)
{
	struct wire_view found;
	uint32_t epoch;

	begin();
	for (unsigned int i = 0; i < 3; i++)
		call(1, kinds[i], 4);
	cr_expect_eq(known(), 1);
	cr_expect(known_find(export_now(), KNOWN_SETS, &found));
	epoch = g.client->imp->epoch;
	import_lost(g.client->imp, epoch);
	call(2, kinds[0], 4);
	cr_expect_gt(g.client->imp->epoch, epoch);
	cr_expect_not(known_find(export_now(), KNOWN_SETS, &found));
	call(1, kinds[0], 4);
	cr_expect_eq(known(), 1);
	call(1, kinds[0], 4);
	cr_expect_eq(known(), 2);
	cr_expect_eq(unknown(), 0);
	serve_fini(&g);
}

/* A server of a release that remembers none gets all, always. */
Test(known_pair, old_server)
{
	begin();
	call(1, kinds[0], 4);
	naming_reset(g.client->imp, 0);
	for (unsigned int i = 0; i < 5; i++)
		call(1, kinds[0], 4);
	cr_expect_eq(exports()->sets.used, 0);
	cr_expect_eq(known(), 0);
	serve_fini(&g);
}

static struct wire_view view_of(const void *p, size_t length)
{
	return (struct wire_view){ p, (const uint8_t *)p + length };
}

/* A number means one set or none, in whatever order definitions come. */
Test(known_pair, late_definition)
{
	struct wire_view found;
	struct export *e;

	begin();
	call(1, kinds[0], 4);
	e = export_now();
	known_add(exports(), e, 3 + KNOWN_SETS, view_of("new", 3));
	known_add(exports(), e, 3, view_of("old", 3));
	known_add(exports(), e, 3 + KNOWN_SETS, view_of("other", 5));
	cr_expect_not(known_find(e, 3, &found));
	cr_assert(known_find(e, 3 + KNOWN_SETS, &found));
	cr_expect_eq(view_length(found), 3);
	cr_expect_arr_eq(found.p, "new", 3);
	cr_expect_not(known_find(e, 3 + 2 * KNOWN_SETS, &found));
	serve_fini(&g);
}

/* A client that defines without end stays within its share, and what it defines
 * then is not known. */
Test(known_pair, endless)
{
	static const uint8_t pairs[ULRPC_METADATA_MAX];
	struct wire_view found;
	struct exports *x;

	begin();
	call(1, kinds[0], 4);
	x = exports();
	for (uint32_t i = 1; i < 1000; i++) {
		known_add(x, export_now(), i, view_of(pairs, sizeof(pairs)));
		cr_assert(known_find(export_now(), i, &found));
		cr_assert_leq(x->sets.used,
			      KNOWN_SETS * (sizeof(pairs) + 64) + 256);
	}
	known_drop(x, export_now());
	cr_assert_eq(x->sets.used, 0);
	x->sets.max = 4 * sizeof(pairs);
	for (uint32_t i = 1; i < 1000; i++)
		known_add(x, export_now(), i, view_of(pairs, sizeof(pairs)));
	cr_expect_leq(x->sets.used, 3 * sizeof(pairs) + 256);
	cr_expect_not(known_find(export_now(), 999, &found));
	serve_fini(&g);
}
