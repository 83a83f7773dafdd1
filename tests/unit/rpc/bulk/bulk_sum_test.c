/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who computes checksums of bulk, how often, and how many in a turn of a loop:
 * while a loop sums, everybody else on it waits. The bytes that are summed are
 * counted for each loop and turn.
 */
#include <criterion/criterion.h>
#include "base/crc32c.h"
#include "base/loop.h"
#include "tests/unit/rpc/bulk/bulk_rig.h"
#include "ulnet/service.h"

#define SEGMENT ((size_t)64 << 10)
#define LENGTH	(ULRPC_SEGMENTS_MAX * SEGMENT) /* 16 MiB */
/* as rpc/client/call.c has it */
#define SLICE ((size_t)1 << 20)

/* Bytes that were summed in pieces of at least PIECE, which no head of a
 * message has. */
#define PIECE (SEGMENT / 16)
static struct {
	struct loop *loop;	  /* NULL: in no turn */
	uint64_t turn;		  /* the last one in which it has summed */
	size_t total, here, most; /* here: in that turn */
} sums[3];

uint32_t __real_crc32c(uint32_t crc, const void *data, size_t len);
uint32_t __wrap_crc32c(uint32_t crc, const void *data, size_t len);

uint32_t __wrap_crc32c(uint32_t crc, const void *data, size_t len)
{
	struct loop *l = loop_current();
	unsigned int i = 0;

	if (len < PIECE)
		return __real_crc32c(crc, data, len);
	while (sums[i].total && sums[i].loop != l)
		cr_assert_lt(++i, ARRAY_SIZE(sums));
	if (!sums[i].total || (l && sums[i].turn != l->turns))
		sums[i].here = 0;
	sums[i].loop = l;
	sums[i].turn = l ? l->turns : 0;
	sums[i].total += len;
	sums[i].here += len;
	sums[i].most = MAX(sums[i].most, sums[i].here);
	return __real_crc32c(crc, data, len);
}

/* Sets the bytes that were summed by all loops, and the most in a turn of any.
 * Forgets them. */
static void sums_take(size_t *total, size_t *most)
{
	*total = *most = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(sums); i++) {
		*total += sums[i].total;
		*most = MAX(*most, sums[i].most);
	}
	memset(sums, 0, sizeof(sums));
}

struct world {
	struct rig g;
	struct ulrpc *caller, *server;
	struct ulrpc_service *service;
	struct ulrpc_client *client;
	struct memory lent, own;
	struct ulrpc_bulk *bulk;
	enum ulrpc_bulk_access access;
	size_t piece, moved; /* the service moves @piece bytes at a time */
	struct ulrpc_request *request;
	struct ulrpc_call *call;
	unsigned int served, ended, released;
	struct ulrpc_outcome outcome;
};

/* ---- the service ---- */

static void on_moved(void *arg, int status, uint64_t moved);

static void move_on(struct world *w)
{
	struct iovec iov = { (uint8_t *)w->own.iov[0].iov_base + w->moved,
			     w->piece };
	bool get = w->access == ULRPC_BULK_SOURCE;

	cr_assert_eq((get ? ulrpc_bulk_get : ulrpc_bulk_put)(
			     w->request, 0, w->moved, &iov, 1, on_moved, w),
		     0);
}

static void on_moved(void *arg, int status, uint64_t moved)
{
	struct world *w = arg;

	cr_assert_eq(status, 0);
	w->moved += moved;
	if (w->moved < LENGTH)
		move_on(w);
	else
		ulrpc_reply(w->request, NULL, 0);
}

static void on_request(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	struct world *w = arg;

	(void)body;
	(void)length;
	w->served++;
	w->request = r;
	w->moved = 0;
	move_on(w);
}

/* ---- the caller ---- */

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct world *w = arg;

	(void)reply;
	(void)length;
	w->ended++;
	w->outcome = *o;
}

static void world_open(struct world *w, enum ulrpc_bulk_access access,
		       size_t piece)
{
	const struct ulrpc_method_conf method = { .name = "move",
						  .handler = on_request,
						  .arg = w,
						  .run = ULRPC_RUN_INLINE };
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_service_conf sc;
	struct ulrpc_client_conf cc;
	struct ulrpc_bulk_conf bc;

	*w = (struct world){ .access = access, .piece = piece };
	rig_init(&w->g, 1);
	cr_assert_eq(ulrpc_open(w->g.rpc[CALLER].node, NULL, &w->caller), 0);
	cr_assert_eq(ulrpc_open(w->g.rpc[SERVER].node, NULL, &w->server), 0);
	ulrpc_service_conf_init(&sc);
	sc.name = "mover";
	sc.methods = &method;
	sc.nmethods = 1;
	cr_assert_eq(ulrpc_service_start(w->server, &sc, &w->service), 0);
	ulrpc_client_conf_init(&cc);
	cc.nids = &nid;
	cc.nnids = 1;
	cc.service = "mover";
	cr_assert_eq(ulrpc_client_open(w->caller, &cc, &w->client), 0);
	w->lent = memory_new(&w->g, LENGTH, 0);
	w->own = memory_new(&w->g, LENGTH, 0);
	bc = (struct ulrpc_bulk_conf){ .iov = w->lent.iov,
				       .niov = w->lent.niov,
				       .access = access,
				       .flags = ULRPC_BULK_CHECKSUM,
				       .segment = SEGMENT };
	cr_assert_eq(ulrpc_bulk_new(w->caller, &bc, &w->bulk), 0);
}

static int call(struct world *w)
{
	struct ulrpc_call_conf conf = { .deadline = 20000000,
					.bulks = &w->bulk,
					.nbulks = 1 };

	return ulrpc_call(w->client, ulrpc_method("move"), NULL, 0, &conf,
			  on_end, w, &w->call);
}

/* Calls once, and checks the end and the data. */
static void move_all(struct world *w)
{
	bool get = w->access == ULRPC_BULK_SOURCE;

	memory_fill(get ? &w->lent : &w->own, 1);
	memory_fill(get ? &w->own : &w->lent, 2);
	cr_assert_eq(call(w), 0);
	lnet_sim_run(w->g.sim, 10000 * MSEC);
	cr_assert_eq(w->ended, 1);
	cr_assert_eq(w->outcome.cause, ULRPC_CAUSE_OK);
	cr_assert(memory_is(get ? &w->own : &w->lent, 0, LENGTH, 1, 0));
	ulrpc_call_put(w->call);
}

static void on_released(void *arg)
{
	struct world *w = arg;

	w->released++;
}

static void world_close(struct world *w)
{
	ulrpc_client_close(w->client);
	cr_assert_eq(ulrpc_close(w->caller), 0);
	ulrpc_bulk_close(w->bulk, on_released, w);
	cr_assert_eq(w->released, 1);
	cr_assert_eq(ulrpc_service_stop(w->service, 0), 0);
	cr_assert_eq(ulrpc_close(w->server), 0);
	memory_free(&w->g, &w->lent);
	memory_free(&w->g, &w->own);
	rig_fini(&w->g);
}

/* ---- tests ---- */

/* A large source or sink, moved whole or in parts, is summed once at each end,
 * and little of it in any turn. */
Test(bulk_sum, once_and_little_at_a_time)
{
	static const struct {
		enum ulrpc_bulk_access access;
		size_t piece;
	} runs[] = {
		{ ULRPC_BULK_SOURCE, LENGTH }, { ULRPC_BULK_SOURCE, SEGMENT },
		{ ULRPC_BULK_SINK, LENGTH },   { ULRPC_BULK_SINK, SEGMENT },
		{ ULRPC_BULK_SINK, PIECE },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(runs); i++) {
		static struct world w;
		size_t total, most;

		world_open(&w, runs[i].access, runs[i].piece);
		move_all(&w);
		cr_assert_eq(w.served, 1);
		sums_take(&total, &most);
		cr_assert_eq(total, 2 * LENGTH, "run %u: %zu", i, total);
		cr_assert_leq(most, SLICE, "run %u: %zu", i, most);
		world_close(&w);
	}
}

/* A call that is canceled while its source is summed touches it no more. */
Test(bulk_sum, canceled_meanwhile)
{
	static struct world w;
	size_t total, most;

	world_open(&w, ULRPC_BULK_SOURCE, LENGTH);
	cr_assert_eq(call(&w), 0);
	ulrpc_cancel(w.call);
	lnet_sim_run(w.g.sim, 1);
	cr_assert_eq(w.ended, 1);
	cr_assert_eq(w.outcome.cause, ULRPC_CAUSE_CANCELED);
	cr_assert_eq(w.outcome.execution, ULRPC_NOT_EXECUTED);
	cr_assert(w.outcome.bulk_free);
	memory_retire(&w.g, &w.lent);
	lnet_sim_run(w.g.sim, 1000 * MSEC);
	sums_take(&total, &most);
	cr_assert_geq(total, SLICE);
	cr_assert_leq(total, 2 * SLICE);
	cr_assert_eq(w.served, 0);
	ulrpc_call_put(w.call);
	world_close(&w);
}

/* The client is closed while the source of a call is summed. */
Test(bulk_sum, closed_meanwhile)
{
	static struct world w;

	world_open(&w, ULRPC_BULK_SOURCE, LENGTH);
	cr_assert_eq(call(&w), 0);
	world_close(&w);
	cr_assert_eq(w.ended, 1);
	cr_assert_eq(w.outcome.execution, ULRPC_NOT_EXECUTED);
	ulrpc_call_put(w.call);
}
