/* SPDX-License-Identifier: BSD-3-Clause */
/* Service "brw" between simulated nodes. */
#include <stdio.h>
#include <stdlib.h>
#include "base/util.h"
#include "services/brw/memory.h"
#include "services/services.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/loop.h"

#define MIB ((size_t)1 << 20)

/* Bytes of fresh memory that were touched in turns of the loop, and by workers.
 */
static size_t touched_inline, touched_by_workers;

void __real_memory_touch(struct chunk *p);
void __wrap_memory_touch(struct chunk *p);

void __wrap_memory_touch(struct chunk *p)
{
	*(lnet_in_turn() ? &touched_inline : &touched_by_workers) += p->fresh;
	__real_memory_touch(p);
}

struct world {
	struct lnet_sim *sim;
	struct ulrpc *caller, *server;
	struct service *brw;
	struct ulrpc_client *client;
	unsigned int ended;
	char wrong[200];
	const struct probe *probe;
	struct probe_call call;
};

static void world_open(struct world *w)
{
	const struct service_conf conf = { .memory = 64 * MIB };
	struct ulnet_nid nid = nth_id(1).nid;
	struct ulrpc_client_conf cc;

	*w = (struct world){ .sim = cluster(2) };
	cr_assert_eq(ulrpc_open(lnet_sim_node(w->sim, 0), NULL, &w->caller), 0);
	cr_assert_eq(ulrpc_open(lnet_sim_node(w->sim, 1), NULL, &w->server), 0);
	cr_assert_eq(brw_service.start(w->server, &conf, &w->brw), 0);
	ulrpc_client_conf_init(&cc);
	cc.nids = &nid;
	cc.nnids = 1;
	cc.service = "brw";
	cr_assert_eq(ulrpc_client_open(w->caller, &cc, &w->client), 0);
}

static void world_close(struct world *w)
{
	ulrpc_client_close(w->client);
	cr_assert_eq(ulrpc_close(w->caller), 0);
	cr_assert_eq(brw_service.stop(w->brw, 0), 0);
	cr_assert_eq(ulrpc_close(w->server), 0);
	cluster_end(w->sim);
}

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct world *w = arg;

	w->ended++;
	cr_assert_eq(o->cause, ULRPC_CAUSE_OK, "%s: %s", w->probe->method,
		     ulrpc_cause_name(o->cause));
	cr_assert(w->probe->check(&w->call, reply, length, w->wrong,
				  sizeof(w->wrong)),
		  "%s: %s", w->probe->method, w->wrong);
}

/* Calls method @p with @length bytes of bulk. */
static void probe(struct world *w, const struct probe *p, size_t length)
{
	struct iovec iov = { calloc(1, length), length };
	struct ulrpc_bulk_conf bc = { .iov = &iov,
				      .niov = 1,
				      .access = p->bulk,
				      .flags = ULRPC_BULK_CHECKSUM };
	struct ulrpc_call_conf conf = { .deadline = 10000000, .nbulks = 1 };
	unsigned int ended = w->ended;
	uint8_t body[PROBE_ROOM];
	struct ulrpc_bulk *bulk;
	int n;

	w->probe = p;
	w->call = (struct probe_call){ .bulk = iov.iov_base,
				       .length = length,
				       .seed = length };
	cr_assert_eq(ulrpc_bulk_new(w->caller, &bc, &bulk), 0);
	conf.bulks = &bulk;
	n = p->prepare(&w->call, body);
	cr_assert_gt(n, 0);
	cr_assert_eq(ulrpc_call(w->client, ulrpc_method(p->method), body,
				(size_t)n, &conf, on_end, w, NULL),
		     0);
	lnet_sim_run(w->sim, UINT64_C(20000000000));
	cr_assert_eq(w->ended, ended + 1);
	ulrpc_bulk_close(bulk, NULL, NULL);
	free(iov.iov_base);
}

/* Each method moves data of all sizes. Workers touch what is used for the first
 * time, if that is much: the loop serves others meanwhile. */
Test(brw, workers_touch_much_fresh_memory)
{
	static const size_t lengths[] = { 1, 5000, MIB, 4 * MIB + 9, 20 * MIB };

	for (unsigned int i = 0; i < brw_service.nprobes; i++) {
		static struct world w;

		touched_inline = touched_by_workers = 0;
		world_open(&w);
		for (unsigned int k = 0; k < ARRAY_SIZE(lengths); k++)
			probe(&w, &brw_service.probes[i], lengths[k]);
		cr_assert_leq(touched_inline, 64 << 10);
		if (!brw_service.probes[i].worker)
			cr_assert_eq(touched_inline + touched_by_workers,
				     20 * MIB);
		world_close(&w);
	}
}
