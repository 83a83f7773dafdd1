/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that lend a source and a sink, and a service that copies one to the
 * other, while messages are lost, calls are canceled, and nodes crash. After a
 * success the sink must have the right bytes, and nobody may touch memory that
 * was given back.
 */
#include <criterion/criterion.h>
#include "tests/slice.h"
#include "tests/unit/rpc/bulk/bulk_rig.h"
#include "ulnet/fault.h"
#include "ulnet/service.h"

#define JOBS 6 /* calls at the same time */
#define RUNS 80

struct world;

struct job {
	struct world *w;
	struct memory source, sink;
	struct ulrpc_bulk *bulks[2];
	uint64_t offset, length; /* the part of the source that is copied */
	bool checked;
	/* nonzero: the status with which the service is to fail */
	uint32_t status;
	unsigned int ended, released;
	struct ulrpc_outcome outcome;
	struct ulrpc_call *call;
};

/* A request that the handler is serving. */
struct copy {
	struct list link;
	struct job *job;
	struct ulrpc_request *request;
	struct memory m;
};

struct world {
	struct rig g;
	struct ulrpc *caller, *server;
	struct ulrpc_service *service;
	struct ulrpc_client *client;
	struct job jobs[JOBS];
	struct list copies;
	unsigned int copied;
};

/* ---- the service ---- */

static void copy_end(struct copy *c)
{
	list_del(&c->link);
	memory_free(&c->job->w->g, &c->m);
	free(c);
}

static void on_put(void *arg, int status, uint64_t moved)
{
	struct copy *c = arg;
	struct ulrpc_request *r = c->request;

	if (!status)
		cr_assert_eq(moved, c->job->length);
	cr_assert(memory_guarded(&c->m));
	c->job->w->copied++;
	copy_end(c);
	if (status)
		ulrpc_fail(r, status);
	else
		ulrpc_reply(r, NULL, 0);
}

static void on_got(void *arg, int status, uint64_t moved)
{
	struct copy *c = arg;
	struct ulrpc_request *r = c->request;

	if (!status)
		cr_assert_eq(moved, c->job->length);
	if (!status)
		status = ulrpc_bulk_put(r, 1, c->job->offset, c->m.iov,
					c->m.niov, on_put, c);
	if (!status)
		return;
	copy_end(c);
	ulrpc_fail(r, status);
}

static void on_copy(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	struct world *w = arg;
	struct copy *c = calloc(1, sizeof(*c));
	struct ulrpc_bulk_info info;
	uint32_t index;

	cr_assert_geq(length, sizeof(index));
	memcpy(&index, body, sizeof(index));
	c->job = &w->jobs[index];
	c->request = r;
	list_add_tail(&w->copies, &c->link);
	cr_assert_eq(ulrpc_request_bulk(r, 0, &info), 0);
	cr_assert_eq(info.access, ULRPC_BULK_SOURCE);
	cr_assert_eq(info.length, c->job->source.length);
	cr_assert_eq(info.checksum, c->job->checked && info.length);
	cr_assert_eq(ulrpc_request_bulk(r, 2, &info), -ENOENT);
	c->m = memory_new(&w->g, c->job->length, 1 + rig_random(&w->g, 3000));
	cr_assert_eq(ulrpc_bulk_put(r, 0, 0, NULL, 0, on_put, c), -EACCES);
	cr_assert_eq(ulrpc_bulk_get(r, 0, c->job->offset, c->m.iov, c->m.niov,
				    on_got, c),
		     0);
}

/* ---- callers ---- */

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct job *j = arg;

	(void)reply;
	(void)length;
	j->ended++;
	j->outcome = *o;
	/* The caller may overwrite the source at once: nothing reads it any
	 * more. */
	if (o->bulk_free && o->cause == ULRPC_CAUSE_OK)
		memset(j->source.buf, 0, j->source.size);
}

static void on_released(void *arg)
{
	struct job *j = arg;

	j->released++;
	if (j->released < 2)
		return;
	memory_retire(&j->w->g, &j->source);
	memory_retire(&j->w->g, &j->sink);
}

/* The shape of a job's memory and request. */
struct shape {
	size_t length, longest; /* longest: of a fragment, at most */
	uint32_t segment;
	bool checked;
	size_t body; /* bytes of the request's body; 0: a few */
};

static struct shape random_shape(struct rig *g)
{
	return (struct shape){
		.length = 1 + rig_random(g, 40000),
		.longest = 1 + rig_random(g, 1 << (4 + rig_random(g, 9))),
		.segment = 500 + (uint32_t)rig_random(g, 20000),
		.checked = rig_random(g, 2),
	};
}

static void job_bulk(struct job *j, unsigned int i, uint32_t segment)
{
	struct memory *m = i ? &j->sink : &j->source;
	struct ulrpc_bulk_conf conf = {
		.iov = m->iov,
		.niov = m->niov,
		.access = i ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE,
		.flags = j->checked ? ULRPC_BULK_CHECKSUM : 0,
		.segment = segment,
	};

	cr_assert_eq(ulrpc_bulk_new(j->w->caller, &conf, &j->bulks[i]), 0);
}

static void job_start(struct world *w, uint32_t index,
		      const struct shape *shape)
{
	struct job *j = &w->jobs[index];
	struct rig *g = &w->g;
	struct ulrpc_call_conf conf = { .deadline = 20000000,
					.bulks = j->bulks,
					.nbulks = 2 };
	size_t length = MAX(shape->body, sizeof(index));
	uint8_t *body = calloc(1, length);

	*j = (struct job){ .w = w,
			   .checked = shape->checked,
			   .length = shape->length };
	j->source = memory_new(g, shape->length, shape->longest);
	j->sink = memory_new(g, shape->length, shape->longest);
	memory_fill(&j->source, index);
	memory_fill(&j->sink, 99);
	/* A transfer of memory with checksums must begin where a segment does.
	 */
	if (shape->length && !j->checked) {
		j->offset = rig_random(g, shape->length);
		j->length = 1 + rig_random(g, shape->length - j->offset);
	}
	job_bulk(j, 0, shape->segment);
	job_bulk(j, 1, shape->segment);
	memcpy(body, &index, sizeof(index));
	cr_assert_eq(ulrpc_call(w->client, ulrpc_method("copy"), body, length,
				&conf, on_end, j, &j->call),
		     0);
	free(body);
	/* A bulk can be part of one call at a time only. */
	cr_assert_eq(ulrpc_call(w->client, ulrpc_method("copy"), &index,
				sizeof(index), &conf, on_end, j, NULL),
		     -EBUSY);
}

static void job_check(struct job *j, uint32_t index)
{
	cr_assert_eq(j->ended, 1);
	cr_assert_eq(j->released, 2);
	cr_assert(memory_guarded(&j->sink));
	if (j->outcome.cause == ULRPC_CAUSE_OK) {
		cr_assert(memory_is(&j->sink, 0, j->offset, 99, 0));
		cr_assert(memory_is(&j->sink, j->offset, j->length, index,
				    j->offset));
		cr_assert(memory_is(&j->sink, j->offset + j->length,
				    j->sink.length - j->offset - j->length, 99,
				    j->offset + j->length));
	}
	ulrpc_call_put(j->call);
	memory_free(&j->w->g, &j->source);
	memory_free(&j->w->g, &j->sink);
}

/* ---- runs ---- */

static void world_open(struct world *w, uint64_t seed)
{
	const struct ulrpc_method_conf method = { .name = "copy",
						  .handler = on_copy,
						  .arg = w,
						  .run = ULRPC_RUN_INLINE };
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_service_conf sc;
	struct ulrpc_client_conf cc;

	*w = (struct world){ 0 };
	list_init(&w->copies);
	rig_init(&w->g, seed);
	cr_assert_eq(ulrpc_open(w->g.rpc[CALLER].node, NULL, &w->caller), 0);
	cr_assert_eq(ulrpc_open(w->g.rpc[SERVER].node, NULL, &w->server), 0);
	ulrpc_service_conf_init(&sc);
	sc.name = "copier";
	sc.methods = &method;
	sc.nmethods = 1;
	sc.segments = 1 + (uint32_t)rig_random(&w->g, 8);
	cr_assert_eq(ulrpc_service_start(w->server, &sc, &w->service), 0);
	ulrpc_client_conf_init(&cc);
	cc.nids = &nid;
	cc.nnids = 1;
	cc.service = "copier";
	cr_assert_eq(ulrpc_client_open(w->caller, &cc, &w->client), 0);
}

static void world_close(struct world *w, bool server)
{
	ulrpc_client_close(w->client);
	cr_assert_eq(ulrpc_close(w->caller), 0);
	if (server) {
		cr_assert_eq(ulrpc_service_stop(w->service, 0), 0);
		cr_assert_eq(ulrpc_close(w->server), 0);
	}
	while (!list_empty(&w->copies))
		copy_end(list_first(&w->copies, struct copy, link));
	rig_fini(&w->g);
}

enum mishap { NOTHING, FAULTS, CANCEL, CRASH, MISHAPS };

static void links(struct rig *g, bool faults)
{
	struct ulnet_sim_link link = {
		.latency = rig_random(g, 2 * MSEC),
		.bandwidth = rig_random(g, 2) ? 0 : 5000000,
	};
	uint32_t *f[] = { &link.loss,  &link.duplicate, &link.refuse,
			  &link.error, &link.mute,	&link.cut };

	if (faults)
		for (unsigned int i = 0; i < ARRAY_SIZE(f); i++)
			*f[i] = (uint32_t)rig_random(g, 20000);
	cluster_links(g->sim, &link);
}

static void close_bulks(struct world *w, uint32_t jobs)
{
	for (uint32_t i = 0; i < jobs; i++)
		for (unsigned int k = 0; k < 2; k++)
			ulrpc_bulk_close(w->jobs[i].bulks[k], on_released,
					 &w->jobs[i]);
}

static void one_run(uint64_t seed, unsigned int *well)
{
	enum mishap mishap = (enum mishap)(seed % MISHAPS);
	static struct world w;

	world_open(&w, seed);
	links(&w.g, mishap == FAULTS);
	for (uint32_t i = 0; i < JOBS; i++) {
		struct shape shape = random_shape(&w.g);

		job_start(&w, i, &shape);
	}
	lnet_sim_run(w.g.sim, rig_random(&w.g, 40) * MSEC);
	if (mishap == CANCEL)
		for (uint32_t i = 0; i < JOBS; i += 2)
			ulrpc_cancel(w.jobs[i].call);
	if (mishap == CRASH)
		cr_assert_eq(lnet_sim_crash(w.g.sim, SERVER), 0);
	/* Half of the runs close the bulks before their calls have ended. */
	if (rig_random(&w.g, 2))
		lnet_sim_run(w.g.sim, 30000 * MSEC);
	close_bulks(&w, JOBS);
	lnet_sim_run(w.g.sim, 60000 * MSEC);
	for (uint32_t i = 0; i < JOBS; i++) {
		if (mishap == NOTHING)
			cr_assert_eq(w.jobs[i].outcome.cause, ULRPC_CAUSE_OK,
				     "%s",
				     ulrpc_cause_name(w.jobs[i].outcome.cause));
		well[mishap] += w.jobs[i].outcome.cause == ULRPC_CAUSE_OK;
		job_check(&w.jobs[i], i);
	}
	world_close(&w, mishap != CRASH);
}

Test(bulk_call, extremes)
{
	const struct shape shapes[] = {
		{ .length = 0, .segment = 1, .checked = true },
		{ .length = 1, .segment = 1, .checked = true },
		/* the most segments, of the smallest size */
		{ .length = 256, .longest = 256, .segment = 1 },
		/* the most segments with the most fragments */
		{ .length = 65536, .longest = 1, .segment = LNET_MTU },
		{ .length = (64u << 20) + 1,
		  .longest = 3000000,
		  .segment = LNET_MTU,
		  .checked = true },
	};
	static struct world w;

	world_open(&w, 1);
	for (uint32_t i = 0; i < ARRAY_SIZE(shapes); i++)
		job_start(&w, i, &shapes[i]);
	lnet_sim_run(w.g.sim, 10000 * MSEC);
	close_bulks(&w, ARRAY_SIZE(shapes));
	for (uint32_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		cr_assert_eq(w.jobs[i].outcome.cause, ULRPC_CAUSE_OK, "%s",
			     ulrpc_cause_name(w.jobs[i].outcome.cause));
		cr_assert(w.jobs[i].outcome.bulk_free);
		job_check(&w.jobs[i], i);
	}
	world_close(&w, true);
}

/* The descriptions of all bulks do not fit into one message. */
Test(bulk_call, several_messages)
{
	const struct shape shape = {
		.length = 3000, .longest = 500, .segment = 700, .body = 50000
	};
	static struct world w;

	world_open(&w, 1);
	for (uint32_t i = 0; i < JOBS; i++)
		job_start(&w, i, &shape);
	lnet_sim_run(w.g.sim, 10000 * MSEC);
	close_bulks(&w, JOBS);
	for (uint32_t i = 0; i < JOBS; i++) {
		cr_assert_eq(w.jobs[i].outcome.cause, ULRPC_CAUSE_OK, "%s",
			     ulrpc_cause_name(w.jobs[i].outcome.cause));
		cr_assert_eq(w.jobs[i].outcome.attempts, 1);
		job_check(&w.jobs[i], i);
	}
	world_close(&w, true);
}

/* 64 MiB are copied to the service and back, while connections break in the
 * middle of payloads, or the network is down for a while. Each call must
 * succeed, and be executed once. */
Test(bulk_call, connections_are_cut)
{
	const struct ulnet_sim_link link = { .latency = MSEC / 10,
					     .bandwidth = 1000000000,
					     .connect = MSEC,
					     .cut = 50000 };
	const struct ulnet_id a = nth_id(CALLER), b = nth_id(SERVER);
	const struct shape shape = { .length = 64u << 20,
				     .longest = 3000000,
				     .segment = LNET_MTU,
				     .checked = true };
	static struct world w;

	for (uint64_t seed = 1; seed <= slice_of(4, 1); seed++) {
		world_open(&w, seed);
		cluster_links(w.g.sim, &link);
		job_start(&w, 0, &shape);
		for (unsigned int i = 0; i < 20; i++) {
			lnet_sim_run(w.g.sim,
				     (1 + rig_random(&w.g, 20)) * MSEC);
			cr_assert_eq(lnet_sim_partition(w.g.sim, &a.nid, &b.nid,
							!(i % 2)),
				     0);
		}
		lnet_sim_run(w.g.sim, 19000 * MSEC);
		close_bulks(&w, 1);
		cr_assert_eq(w.jobs[0].outcome.cause, ULRPC_CAUSE_OK,
			     "seed %llu: %s", (unsigned long long)seed,
			     ulrpc_cause_name(w.jobs[0].outcome.cause));
		cr_assert_eq(w.copied, 1, "and nothing runs twice");
		job_check(&w.jobs[0], 0);
		world_close(&w, true);
	}
}

/* Flips a bit in some messages of data, in both directions. */
static void corrupt_data(struct rig *g)
{
	struct ulnet_fault f;

	lnet_fault_init(&f, LNET_FAULT_CORRUPT);
	f.rate = 25;
	f.random = true;
	f.messages = LNET_FAULT_REPLY; /* answers to the service's GETs */
	cr_assert_eq(lnet_fault_add(lnet_sim_node(g->sim, CALLER), &f), 0);
	f.messages = LNET_FAULT_PUT;
	f.portals = UINT64_C(1) << ULRPC_PORTAL_BULK;
	cr_assert_eq(lnet_fault_add(lnet_sim_node(g->sim, SERVER), &f), 0);
}

static uint64_t corrupted(struct rig *g, unsigned int node)
{
	struct ulnet_fault_info info;

	cr_assert_eq(lnet_fault_list(lnet_sim_node(g->sim, node),
				     LNET_FAULT_CORRUPT, &info, 1),
		     1);
	return info.fired;
}

/* Checksums find data that was changed on its way (requirement H7), in both
 * directions, and it is moved again: no call fails, and none runs twice. */
Test(bulk_call, data_is_corrupted)
{
	const struct shape shape = { .length = 20000,
				     .longest = 700,
				     .segment = 2000,
				     .checked = true };
	uint64_t got = 0, put = 0;
	static struct world w;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		world_open(&w, seed);
		corrupt_data(&w.g);
		for (uint32_t i = 0; i < JOBS; i++)
			job_start(&w, i, &shape);
		lnet_sim_run(w.g.sim, 30000 * MSEC);
		close_bulks(&w, JOBS);
		lnet_sim_run(w.g.sim, 10000 * MSEC);
		for (uint32_t i = 0; i < JOBS; i++) {
			cr_expect_eq(w.jobs[i].outcome.cause, ULRPC_CAUSE_OK,
				     "seed %u, job %u: %s", (unsigned int)seed,
				     i,
				     ulrpc_cause_name(w.jobs[i].outcome.cause));
			job_check(&w.jobs[i], i);
		}
		cr_expect_eq(w.copied, JOBS);
		got += corrupted(&w.g, CALLER);
		put += corrupted(&w.g, SERVER);
		world_close(&w, true);
	}
	cr_expect(got);
	cr_expect(put);
}

struct again {
	struct world *w;
	struct ulrpc_call_conf conf;
	unsigned int ended;
};

/* The callback of the first call makes a second one with the same bulk at once.
 */
static void lend_again(void *arg, const struct ulrpc_outcome *o,
		       const void *reply, size_t length)
{
	struct again *a = arg;
	uint32_t index = 0;

	(void)reply;
	(void)length;
	cr_assert_eq(o->cause, ULRPC_CAUSE_OK);
	cr_assert(o->bulk_free);
	if (a->ended++ == 0)
		cr_assert_eq(ulrpc_call(a->w->client, ulrpc_method("copy"),
					&index, sizeof(index), &a->conf,
					lend_again, a, NULL),
			     0);
}

Test(bulk_call, free_at_the_end)
{
	const struct shape shape = { .length = 5000,
				     .longest = 100,
				     .segment = 700 };
	static struct world w;
	struct again a = { .w = &w, .conf = { .deadline = 20000000 } };
	uint32_t index = 0;

	world_open(&w, 1);
	job_start(&w, 0, &shape);
	lnet_sim_run(w.g.sim, 100 * MSEC);
	cr_assert_eq(w.jobs[0].ended, 1);
	memory_fill(&w.jobs[0].source, 0);
	a.conf.bulks = w.jobs[0].bulks;
	a.conf.nbulks = 2;
	cr_assert_eq(ulrpc_call(w.client, ulrpc_method("copy"), &index,
				sizeof(index), &a.conf, lend_again, &a, NULL),
		     0);
	lnet_sim_run(w.g.sim, 100 * MSEC);
	cr_assert_eq(a.ended, 2);
	close_bulks(&w, 1);
	job_check(&w.jobs[0], 0);
	world_close(&w, true);
}

Test(bulk_call, any_layout_and_mishap)
{
	unsigned int well[MISHAPS] = { 0 };

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		printf("seed %llu\n", (unsigned long long)seed);
		one_run(seed, well);
	}
	printf("ended well: %u; with faults %u, canceled %u, crashed %u, of %u "
	       "each\n",
	       well[NOTHING], well[FAULTS], well[CANCEL], well[CRASH],
	       RUNS / MISHAPS * JOBS);
	cr_assert_gt(well[FAULTS], RUNS / MISHAPS * JOBS / 3);
	cr_assert_geq(well[CANCEL], RUNS / MISHAPS * JOBS / 2);
	cr_assert_lt(well[CRASH], RUNS / MISHAPS * JOBS);
}
