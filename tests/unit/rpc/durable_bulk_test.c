/* SPDX-License-Identifier: BSD-3-Clause */
/* A durable service that puts data into its caller's memory, and whose node
 * crashes before the reply is sent. When the caller gets the reply from the
 * store, the memory must have these data. */
#include <errno.h>
#include "tests/unit/rpc/serve_rig.h"

#define PAGE 4096

static struct store {
	uint8_t value[256];
	size_t length;
	unsigned int runs;
	bool cut; /* the reply will be lost */
	/* what ulrpc_request_record() returned while data were being put */
	int busy;
	/* what ulrpc_bulk_put() returned after the reply was recorded */
	int too_late;
} store;

static struct serve_rig g;
static struct called called;
static uint8_t page[PAGE], sink[2 * PAGE];
static struct ulrpc_bulk *bulk;

static int store_lookup(void *arg, const void *key, void **value_p,
			size_t *length_p)
{
	(void)arg;
	(void)key;
	if (!store.length)
		return -ENOENT;
	*value_p = malloc(store.length);
	*length_p = store.length;
	memcpy(*value_p, store.value, store.length);
	return 0;
}

static void replies_are_lost(bool lost)
{
	const struct ulnet_sim_link link = {
		.loss = lost ? LNET_SIM_ALWAYS : 0,
	};
	struct ulnet_nid from = nth_id(SERVER).nid, to = nth_id(CALLER).nid;

	cr_assert_eq(lnet_sim_link_set(g.sim, &from, &to, &link), 0);
}

static int put(struct ulrpc_request *r, ulrpc_bulk_fn done)
{
	const struct iovec iov = { page, sizeof(page) };

	return ulrpc_bulk_put(r, 0, 0, &iov, 1, done, r);
}

static void on_put(void *arg, int status, uint64_t moved)
{
	struct ulrpc_request *r = arg;
	struct ulrpc_record record;

	cr_assert_eq(status, 0);
	cr_assert_eq(moved, PAGE);
	cr_assert_eq(ulrpc_request_record(r, 0, "ok", 2, &record), 0);
	cr_assert_leq(record.length, sizeof(store.value));
	memcpy(store.value, record.value, record.length);
	store.length = record.length;
	store.too_late = put(r, on_put);
	replies_are_lost(store.cut);
	ulrpc_reply(r, "ok", 2);
}

/* Puts a page into the caller's memory. */
static void read_page(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	struct ulrpc_record record;

	(void)arg;
	(void)body;
	(void)length;
	store.runs++;
	cr_assert_eq(put(r, on_put), 0);
	store.busy = ulrpc_request_record(r, 0, "ok", 2, &record);
}

static void start(void)
{
	static const struct ulrpc_method_conf m = {
		.name = "read",
		.handler = read_page,
		.run = ULRPC_RUN_INLINE,
		.semantics = ULRPC_EXACTLY_ONCE,
	};
	static const struct ulrpc_durable d = { .incarnation = { 1 },
						.lookup = store_lookup };
	struct ulrpc_service_conf conf;

	serve_open(&g, NULL);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = &m;
	conf.nmethods = 1;
	conf.durable = &d;
	serve_start(&g, &conf);
}

/* The caller lends @size bytes, one page or two, of which the service fills the
 * first. */
static void begin(unsigned int flags, size_t size)
{
	const struct iovec iov = { sink, size };
	const struct ulrpc_bulk_conf conf = {
		.iov = &iov,
		.niov = 1,
		.access = ULRPC_BULK_SINK,
		.flags = flags,
	};

	memset(&store, 0, sizeof(store));
	memset(page, 'D', sizeof(page));
	memset(sink, 0, sizeof(sink));
	called = (struct called){ 0 };
	serve_init(&g, 1, 1);
	start();
	serve_client(&g);
	cr_assert_eq(ulrpc_bulk_new(g.rpc[CALLER], &conf, &bulk), 0);
}

static void end(void)
{
	ulrpc_bulk_close(bulk, NULL, NULL);
	serve_fini(&g);
}

static void call(void)
{
	const struct ulrpc_call_conf conf = {
		.deadline = 10000000,
		.semantics = ULRPC_EXACTLY_ONCE,
		.bulks = &bulk,
		.nbulks = 1,
	};

	cr_assert_eq(ulrpc_call(g.client, ulrpc_method("read"), "x", 1, &conf,
				on_called, &called, NULL),
		     0);
}

/* The call is executed, and its server crashes before the reply is sent. */
static void call_and_crash(void)
{
	store.cut = true;
	call();
	lnet_sim_run(g.sim, 20 * MSEC);
	cr_assert_gt(store.length, 0);
	cr_assert_eq(called.ended, 0);
	cr_assert_eq(lnet_sim_crash(g.sim, SERVER), 0);
}

static void restart(void)
{
	cr_assert_eq(lnet_sim_restart(g.sim, SERVER), 0);
	g.node[SERVER] = lnet_sim_node(g.sim, SERVER);
	replies_are_lost(false);
	start();
	lnet_sim_run(g.sim, 11 * SEC);
	cr_assert_eq(called.ended, 1);
	cr_assert_eq(store.runs, 1);
}

/* A reply is recorded only when all data have been moved: otherwise a lost
 * message would be missing in the data of a replayed reply. */
Test(durable_bulk, recorded_when_all_is_moved)
{
	begin(0, PAGE);
	call();
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(called.outcome.status, 0);
	cr_assert_eq(store.busy, -EBUSY);
	cr_assert_eq(store.too_late, -EPERM);
	end();
}

Test(durable_bulk, is_there_when_the_reply_is_replayed)
{
	static const struct {
		unsigned int flags;
		size_t size;
	} kinds[] = { { 0, PAGE },
		      { ULRPC_BULK_CHECKSUM, PAGE },
		      { ULRPC_BULK_CHECKSUM, 2 * PAGE } };

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		begin(kinds[i].flags, kinds[i].size);
		call_and_crash();
		restart();
		cr_assert_eq(called.outcome.status, 0, "%u: %s", i,
			     ulrpc_cause_name(called.outcome.cause));
		cr_assert_eq(memcmp(sink, page, PAGE), 0, "%u", i);
		end();
	}
}

/* The checksum in the store is that of the data that were put before the crash.
 */
Test(durable_bulk, is_checked_when_the_reply_is_replayed)
{
	begin(ULRPC_BULK_CHECKSUM, PAGE);
	call_and_crash();
	sink[PAGE / 2] ^= 1;
	restart();
	cr_assert_eq(called.outcome.cause, ULRPC_CAUSE_CHECKSUM, "%s",
		     ulrpc_cause_name(called.outcome.cause));
	cr_assert_eq(called.outcome.execution, ULRPC_EXECUTED);
	end();
}
