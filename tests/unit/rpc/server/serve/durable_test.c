/* SPDX-License-Identifier: BSD-3-Clause */
/* Durable services, which remember what they have executed even after a
 * restart. Here the store is memory, and a raw client reconnects as a new
 * client, so that the service knows only what is in the store, as after a
 * restart. */
#include <errno.h>
#include "tests/unit/rpc/server/request_rig.h"

#define STORED 8

static struct store {
	struct {
		uint8_t key[ULRPC_RECORD_KEY];
		void *value;
		size_t length;
	} of[STORED];
	unsigned int n;
	unsigned int lookups, runs;
	int error;     /* what a lookup fails with, or 0 */
	int recorded;  /* what ulrpc_request_record() returned */
	uint64_t keep; /* us: until when it asked to keep the record */
} store;

static struct serve_rig g;

static unsigned int store_find(const void *key)
{
	unsigned int i = 0;

	while (i < store.n && memcmp(store.of[i].key, key, ULRPC_RECORD_KEY))
		i++;
	return i;
}

static void *copy_of(const void *bytes, size_t length)
{
	return memcpy(malloc(length), bytes, length);
}

static void store_put(const void *key, const void *value, size_t length)
{
	unsigned int i = store_find(key);

	cr_assert_lt(i, STORED);
	if (i == store.n)
		store.n++;
	else
		free(store.of[i].value);
	memcpy(store.of[i].key, key, ULRPC_RECORD_KEY);
	store.of[i].value = copy_of(value, length);
	store.of[i].length = length;
}

static int store_lookup(void *arg, const void *key, void **value_p,
			size_t *length_p)
{
	unsigned int i = store_find(key);

	cr_assert_eq(arg, &store);
	store.lookups++;
	if (store.error)
		return store.error;
	if (i == store.n)
		return -ENOENT;
	*value_p = copy_of(store.of[i].value, store.of[i].length);
	*length_p = store.of[i].length;
	return 0;
}

/* ---- the service ---- */

/* Stands for the user's transaction: counts a run, and stores the record. */
static void commit(struct ulrpc_request *r, int status, const void *body,
		   size_t length)
{
	struct ulrpc_record record;

	store.runs++;
	store.recorded = ulrpc_request_record(r, status, body, length, &record);
	if (store.recorded)
		return;
	store.keep = record.keep;
	store_put(record.key, record.value, record.length);
}

/* Handler that replies with the number of this run. */
static void count(void *arg, struct ulrpc_request *r, const void *body,
		  size_t length)
{
	char runs = (char)('1' + store.runs);

	note_request(arg, r, body, length);
	commit(r, 0, &runs, 1);
	ulrpc_reply(r, &runs, 1);
}

static void count_failed(void *arg, struct ulrpc_request *r, const void *body,
			 size_t length)
{
	note_request(arg, r, body, length);
	commit(r, -42, NULL, 0);
	ulrpc_fail(r, -42);
}

/* Handler that refuses: as overloaded if the call has a body, else as a bad
 * request. */
static void refuse(void *arg, struct ulrpc_request *r, const void *body,
		   size_t length)
{
	note_request(arg, r, body, length);
	if (length)
		ulrpc_overloaded(r);
	else
		ulrpc_refuse(r);
}

static void start(bool durable)
{
	static struct ulrpc_method_conf m[5];
	const struct ulrpc_durable conf = {
		.incarnation = { 1, 2, 3 },
		.lookup = store_lookup,
		.arg = &store,
	};
	struct ulrpc_service_conf c;

	m[0] = (struct ulrpc_method_conf){ .name = "count",
					   .handler = count,
					   .run = ULRPC_RUN_INLINE };
	m[1] = (struct ulrpc_method_conf){ .name = "work", .handler = count };
	m[2] = (struct ulrpc_method_conf){ .name = "hold",
					   .handler = hold,
					   .run = ULRPC_RUN_INLINE };
	m[3] = (struct ulrpc_method_conf){ .name = "fail",
					   .handler = count_failed,
					   .run = ULRPC_RUN_INLINE };
	m[4] = (struct ulrpc_method_conf){ .name = "refuse",
					   .handler = refuse,
					   .run = ULRPC_RUN_INLINE };
	for (unsigned int i = 0; i < ARRAY_SIZE(m); i++) {
		m[i].arg = &g.served;
		m[i].semantics = ULRPC_EXACTLY_ONCE;
	}
	ulrpc_service_conf_init(&c);
	c.name = "test";
	c.methods = m;
	c.nmethods = ARRAY_SIZE(m);
	c.durable = durable ? &conf : NULL;
	serve_start(&g, &c);
}

static void begin_with(bool durable)
{
	memset(&store, 0, sizeof(store));
	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	start(durable);
	raw_client_init(&a, g.sim, CALLER, SERVER);
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_OK);
}

static void end(void)
{
	serve_fini(&g);
	while (store.n)
		free(store.of[--store.n].value);
}

/* Makes the server forget the client: only the store knows its calls. */
static void forget(void)
{
	raw_client_disconnect(&a);
	a.epoch++;
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_OK);
}

static void send_call(const struct wire_call *call, const char *body)
{
	a.replies = 0;
	raw_client_send(&a, call, 1, body, call->length);
	settle(&g);
}

static const struct wire_reply *send_attempt_as(enum ulrpc_semantics semantics,
						const char *method,
						uint64_t xid, uint32_t slot,
						uint32_t attempt,
						uint32_t flags)
{
	struct wire_call call = raw_client_call_of(xid, method, 0);

	call.slot = slot;
	call.attempt = attempt;
	call.flags = flags;
	call.semantics = semantics;
	send_call(&call, "");
	return a.replies ? &a.reply[0] : NULL;
}

static const struct wire_reply *send_attempt(const char *method, uint64_t xid,
					     uint32_t slot, uint32_t attempt,
					     uint32_t flags)
{
	return send_attempt_as(ULRPC_EXACTLY_ONCE, method, xid, slot, attempt,
			       flags);
}

/* Checks that the reply has this status and first byte, and that so many calls
 * have run so far. */
static void check_reply(const struct wire_reply *r, uint32_t status, char body,
			unsigned int runs)
{
	cr_assert(r);
	cr_assert_eq(r->status, status, "%u", r->status);
	cr_assert_eq(store.runs, runs, "%u runs", store.runs);
	cr_assert_eq(r->length, body ? 1 : 0);
	if (body)
		cr_assert_eq(a.body[0][0], body);
}

static uint64_t replayed(void)
{
	return serve_counted(cpt0(&g), RPC_STAT_requests_replayed);
}

/* ---- tests ---- */

Test(durable, is_answered_from_the_store)
{
	static const char *const methods[] = { "count", "work" };

	for (unsigned int i = 0; i < 2; i++) {
		begin_with(true);
		check_reply(send_attempt(methods[i], 5, 3, 0, 0), WIRE_OK, '1',
			    1);
		forget();
		check_reply(send_attempt(methods[i], 5, 3, 1, WIRE_CALL_RESENT),
			    WIRE_OK, '1', 1);
		cr_assert_eq(replayed(), 1);
		cr_assert_eq(store.lookups, 1);
		/* once more, now from the record in memory */
		check_reply(send_attempt(methods[i], 5, 3, 2, WIRE_CALL_RESENT),
			    WIRE_OK, '1', 1);
		cr_assert_eq(store.lookups, 1);
		end();
	}
}

/* Clients choose ids, slots and numbers of calls. Nevertheless they cannot
 * choose the bucket of the table of requests under way: its seed is random. */
Test(durable, clients_choose_no_buckets)
{
	struct ulrpc_request *r;
	const struct durable *x;

	begin_with(true);
	cr_assert_null(send_attempt("hold", 5, 3, 0, 0));
	r = unpark(&g.served);
	x = r->durable;
	cr_assert_neq(g.rpc[SERVER]->seed, 0);
	cr_assert_eq(x->hash.hash,
		     hash_bytes(x->key, sizeof(x->key), g.rpc[SERVER]->seed));
	ulrpc_fail(r, -1);
	settle(&g);
	end();
}

/* The record has to be kept until a minute after the caller's deadline. */
Test(durable, is_kept_as_long_as_it_may_be_needed)
{
	struct wire_call call = raw_client_call_of(5, "count", 0);

	begin_with(true);
	call.semantics = ULRPC_EXACTLY_ONCE;
	call.timeout = 1000000;
	call.remaining = 5000000;
	raw_client_send(&a, &call, 1, "", 0);
	settle(&g);
	cr_assert_eq(store.runs, 1);
	cr_assert_leq(store.keep, UINT64_C(65000000));
	cr_assert_gt(store.keep, UINT64_C(64900000));
	call.xid++;
	call.remaining = ULRPC_NEVER;
	raw_client_send(&a, &call, 1, "", 0);
	settle(&g);
	cr_assert_eq(store.runs, 2);
	cr_assert_eq(store.keep, ULRPC_NEVER);
	end();
}

Test(durable, failure_is_answered_from_the_store)
{
	begin_with(true);
	check_reply(send_attempt("fail", 5, 3, 0, 0), WIRE_FAILED, 0, 1);
	forget();
	check_reply(send_attempt("fail", 5, 3, 1, WIRE_CALL_RESENT),
		    WIRE_FAILED, 0, 1);
	cr_assert_eq(a.reply[0].error, 42);
	cr_assert_eq(replayed(), 1);
	end();
}

Test(durable, what_was_not_executed_is_executed_now)
{
	begin_with(true);
	/* The store has no record of the slot, and then one of an older call.
	 */
	check_reply(send_attempt("count", 5, 3, 1, WIRE_CALL_RESENT), WIRE_OK,
		    '1', 1);
	forget();
	check_reply(send_attempt("count", 9, 3, 1, WIRE_CALL_RESENT), WIRE_OK,
		    '2', 2);
	forget();
	/* The store is not asked about a first attempt. */
	store.lookups = 0;
	check_reply(send_attempt("count", 10, 3, 0, 0), WIRE_OK, '3', 3);
	cr_assert_eq(store.lookups, 0);
	cr_assert_eq(store.n, 1);
	cr_assert_eq(replayed(), 0);
	end();
}

/* A call that the store has no record of, and that the handler refuses, is said
 * not to have been executed. Of a call that was not looked up that is not said.
 */
Test(durable, what_is_refused_was_not_executed)
{
	static const uint32_t statuses[] = { WIRE_BAD_REQUEST,
					     WIRE_OVERLOADED };

	begin_with(true);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t length = i % 2, resent = i / 2;
		struct wire_call c =
			raw_client_call_of(1 + i, "refuse", length);

		c.slot = i;
		c.attempt = resent;
		c.flags = resent ? WIRE_CALL_RESENT : 0;
		c.semantics = ULRPC_EXACTLY_ONCE;
		send_call(&c, "x");
		cr_assert_eq(a.replies, 1);
		cr_assert_eq(a.reply[0].status, statuses[length]);
		cr_assert_eq(a.reply[0].unexecuted, resent);
	}
	cr_assert_eq(store.lookups, 2);
	end();
}

Test(durable, what_cannot_be_told_is_doubtful)
{
	begin_with(true);
	check_reply(send_attempt("count", 9, 3, 0, 0), WIRE_OK, '1', 1);
	forget();
	/* A late copy of a call older than the one in the store. */
	check_reply(send_attempt("count", 5, 3, 1, WIRE_CALL_RESENT),
		    WIRE_DOUBTFUL, 0, 1);
	store.error = -EIO;
	check_reply(send_attempt("count", 9, 3, 1, WIRE_CALL_RESENT),
		    WIRE_DOUBTFUL, 0, 1);
	store.error = 0;
	forget();
	memset(store.of[0].value, 0xff, store.of[0].length);
	check_reply(send_attempt("count", 9, 3, 2, WIRE_CALL_RESENT),
		    WIRE_DOUBTFUL, 0, 1);
	forget();
	store.of[0].length = 3;
	check_reply(send_attempt("count", 9, 3, 3, WIRE_CALL_RESENT),
		    WIRE_DOUBTFUL, 0, 1);
	end();
}

/* The caller is idempotent, so the client does not watch which store the
 * service has; but the method is not. A later attempt therefore is doubtful,
 * and the store is not asked. */
Test(durable, store_is_not_asked_for_idempotent_callers)
{
	begin_with(true);
	check_reply(send_attempt_as(ULRPC_IDEMPOTENT, "count", 5, 3, 1,
				    WIRE_CALL_RESENT),
		    WIRE_DOUBTFUL, 0, 0);
	cr_assert_eq(store.lookups, 0);
	check_reply(send_attempt_as(ULRPC_IDEMPOTENT, "count", 6, 3, 0, 0),
		    WIRE_OK, '1', 1);
	end();
}

/* The client loses its connection while a handler has its call. Another attempt
 * is refused as overloaded until the handler has replied, and then is answered
 * from the store. */
Test(durable, waits_for_one_that_is_under_way)
{
	struct ulrpc_request *r;

	begin_with(true);
	cr_assert_null(send_attempt("hold", 5, 3, 0, 0));
	cr_assert_eq(g.served.parked, 1);
	forget();
	check_reply(send_attempt("hold", 5, 3, 1, WIRE_CALL_RESENT),
		    WIRE_OVERLOADED, 0, 0);
	cr_assert_gt(a.reply[0].retry_after, 0);
	cr_assert_not(a.reply[0].unexecuted);
	/* A later call in the slot is refused, too: its record would replace
	 * that of the first. */
	check_reply(send_attempt("hold", 9, 3, 0, 0), WIRE_OVERLOADED, 0, 0);
	r = unpark(&g.served);
	commit(r, 0, "h", 1);
	ulrpc_reply(r, "h", 1);
	settle(&g);
	forget();
	check_reply(send_attempt("hold", 5, 3, 2, WIRE_CALL_RESENT), WIRE_OK,
		    'h', 1);
	cr_assert_eq(g.served.parked, 0);
	end();
}

/* The service stops while a handler has a request, and is started again with
 * the same store. Later attempts come over the same connection, and then over a
 * new one. */
Test(durable, waits_for_one_of_a_service_that_has_ended)
{
	struct ulrpc_request *r;

	begin_with(true);
	cr_assert_null(send_attempt("hold", 5, 3, 0, 0));
	r = unpark(&g.served);
	cr_assert_eq(ulrpc_service_stop(g.service, 0), -ETIMEDOUT);
	start(true);
	cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_OK);
	check_reply(send_attempt("hold", 5, 3, 1, WIRE_CALL_QUERY),
		    WIRE_DOUBTFUL, 0, 0);
	check_reply(send_attempt("hold", 5, 3, 2, WIRE_CALL_RESENT),
		    WIRE_OVERLOADED, 0, 0);
	commit(r, 0, "h", 1);
	ulrpc_reply(r, "h", 1);
	check_reply(send_attempt("hold", 5, 3, 3, WIRE_CALL_RESENT), WIRE_OK,
		    'h', 1);
	forget();
	check_reply(send_attempt("hold", 5, 3, 4, WIRE_CALL_RESENT), WIRE_OK,
		    'h', 1);
	end();
}

/* As above, for a call that had been sent again before: its record is in the
 * store when the handler has ended. */
Test(durable, one_that_is_lost_is_looked_up_when_the_service_is_back)
{
	struct ulrpc_request *r;

	begin_with(true);
	cr_assert_null(send_attempt("hold", 6, 4, 1, WIRE_CALL_RESENT));
	r = unpark(&g.served);
	a.replies = 0;
	cr_assert_eq(ulrpc_service_stop(g.service, 0), -ETIMEDOUT);
	settle(&g);
	cr_assert_eq(a.replies, 1);
	check_reply(&a.reply[0], WIRE_SHUTTING_DOWN, 0, 0);
	check_reply(send_attempt("hold", 6, 4, 2, WIRE_CALL_RESENT),
		    WIRE_NO_SERVICE, 0, 0);
	check_reply(send_attempt("hold", 6, 4, 3,
				 WIRE_CALL_RESENT | WIRE_CALL_QUERY),
		    WIRE_NO_SERVICE, 0, 0);
	start(true);
	cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_OK);
	check_reply(send_attempt("hold", 6, 4, 4,
				 WIRE_CALL_RESENT | WIRE_CALL_QUERY),
		    WIRE_UNKNOWN_CALL, 0, 0);
	commit(r, 0, "h", 1);
	ulrpc_reply(r, "h", 1);
	check_reply(send_attempt("hold", 6, 4, 5, WIRE_CALL_RESENT), WIRE_OK,
		    'h', 1);
	end();
}

/* A handler may end even after RPC has been closed. */
Test(durable, handler_ends_after_rpc_is_closed)
{
	struct ulrpc_request *r;
	struct ulrpc_record record;

	begin_with(true);
	cr_assert_null(send_attempt("hold", 5, 3, 0, 0));
	r = unpark(&g.served);
	end();
	cr_assert_eq(ulrpc_request_record(r, 0, "h", 1, &record), 0);
	ulrpc_reply(r, "h", 1);
}

Test(durable, tells_its_incarnation)
{
	static const uint8_t mine[16] = { 1, 2, 3 };
	const struct wire_opened *o;
	uint8_t first[16];

	begin_with(true);
	o = raw_client_open(&a, "test");
	cr_assert(o->durable);
	cr_assert_eq(memcmp(o->incarnation, mine, 16), 0);
	end();
	begin_with(false);
	o = raw_client_open(&a, "test");
	cr_assert_not(o->durable);
	memcpy(first, o->incarnation, 16);
	cr_assert_eq(ulrpc_service_stop(g.service, 0), 0);
	start(false);
	o = raw_client_open(&a, "test");
	cr_assert_neq(memcmp(o->incarnation, first, 16), 0);
	end();
}

Test(durable, other_services_store_nothing)
{
	begin_with(false);
	check_reply(send_attempt("count", 5, 3, 0, 0), WIRE_OK, '1', 1);
	cr_assert_eq(store.recorded, -EOPNOTSUPP);
	forget();
	check_reply(send_attempt("count", 5, 3, 1, WIRE_CALL_RESENT),
		    WIRE_DOUBTFUL, 0, 1);
	end();
}

Test(durable, bad_values)
{
	struct ulrpc_durable conf = { .lookup = store_lookup };
	struct ulrpc_record record;
	struct ulrpc_service_conf c;
	struct ulrpc_request *r;
	static char long_one[8192];

	begin_with(true);
	c = serve_conf(&g);
	c.name = "other";
	c.durable = &conf;
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &c, NULL), -EINVAL);
	conf.incarnation[0] = 1;
	conf.lookup = NULL;
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &c, NULL), -EINVAL);
	cr_assert_null(send_attempt("hold", 5, 3, 0, 0));
	r = unpark(&g.served);
	cr_assert_eq(ulrpc_request_record(r, 1, NULL, 0, &record), -EINVAL);
	cr_assert_eq(ulrpc_request_record(r, -1, "x", 1, &record), -EINVAL);
	cr_assert_eq(
		ulrpc_request_record(r, 0, long_one, sizeof(long_one), &record),
		-EMSGSIZE);
	ulrpc_fail(r, -1);
	settle(&g);
	end();
}
