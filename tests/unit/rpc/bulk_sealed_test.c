/* SPDX-License-Identifier: BSD-3-Clause */
/* Sealed bulk where bulk has trouble: rails that fail, RDMA, connections that
 * are made again meanwhile, memory that is moved in parts. */
#include "rpc/client/client.h"
#include "rpc/client/import.h"
#include "rpc/bulk/bulk_priv.h"
#include "rpc/bulk/seal.h"
#include "rpc/bulk/sealers.h"
#include "rpc/flavour.h"
#include "sim/sim.h"
#include "tests/unit/rpc/mover.h"
#include "tests/unit/rpc/proof_rig.h"

#define LENGTH 3000000

static const char *const one_rail[2] = { "10.0.0.1@tcp", "10.0.0.2@tcp" };
static const char *const two_rails[2] = { "10.0.0.1@tcp 10.1.0.1@tcp",
					  "10.0.0.2@tcp 10.1.0.2@tcp" };
static const char *const rdma[2] = { "10.0.0.1@o2ib", "10.0.0.2@o2ib" };

static struct {
	struct serve_rig g;
	struct folder *folder;
	struct mover m;
	struct called call;
	struct ulrpc_bulk *bulk;
	/* of the method "parts" */
	struct ulrpc_request *r;
	unsigned int step;
	int status;
} w;

static void get_parts(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length);
static void put_small(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length);

/* ---- a method that moves memory in parts ---- */

struct part {
	uint32_t at, length;
};

/* Into segments of 1000 bytes: a segment in two parts; another one, again from
 * its beginning; over the end of one; and one in part. */
static const struct part pieces[] = {
	{ 0, 300 },    { 300, 700 },  { 1000, 1000 }, { 1000, 1000 },
	{ 2000, 500 }, { 2500, 900 }, { 3400, 100 },
};

static void parts_on(void *arg, int status, uint64_t moved)
{
	struct ulrpc_request *r = arg;
	const struct part *p = &pieces[w.step];
	struct iovec iov;

	(void)moved;
	if (status || w.step == ARRAY_SIZE(pieces)) {
		w.status = status;
		ulrpc_reply(r, NULL, 0);
		return;
	}
	iov = (struct iovec){ w.m.own + p->at, p->length };
	w.step++;
	cr_assert_eq(ulrpc_bulk_put(r, 0, p->at, &iov, 1, parts_on, r), 0);
}

static void parts(void *arg, struct ulrpc_request *r, const void *body,
		  size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	w.step = 0;
	parts_on(r, 0, 0);
}

static void quick(void *arg, struct ulrpc_request *r, const void *body,
		  size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	ulrpc_reply(r, NULL, 0);
}

/* ---- the rig ---- */

static void nodes_add(const char *const nids[2], unsigned int cpts)
{
	const struct ulnet_sim_link link = { .latency = MSEC };
	struct ulnet_conf conf;

	w.g = (struct serve_rig){ .served.lock = PTHREAD_MUTEX_INITIALIZER };
	cr_assert_eq(lnet_cond_init(&w.g.served.unparked), 0);
	cr_assert_eq(lnet_sim_new(1, cpts, &w.g.sim), 0);
	if (nids == rdma) {
		struct simqp_fabric *fabric;

		cr_assert_eq(sim_verbs(w.g.sim, NULL, &fabric), 0);
	}
	lnet_conf_init(&conf);
	conf.discovery =
		nids == two_rails ? LNET_DISCOVERY_ON : LNET_DISCOVERY_OFF;
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(
			lnet_sim_node_add(w.g.sim, nids[i], &conf, NULL, NULL),
			(int)i);
		w.g.node[i] = lnet_sim_node(w.g.sim, i);
	}
	if (nids != rdma)
		cluster_links(w.g.sim, &link);
}

static struct ulnet_nid rail_nid(unsigned int node, unsigned int rail)
{
	struct ulnet_id id;

	cr_assert_eq(LNetGetId(w.g.node[node], rail + 1, &id), 0);
	return id.nid;
}

static void begin(const char *const nids[2], enum ulrpc_flavour flavour)
{
	struct ulrpc_client_conf client;
	struct ulrpc_method_conf methods[5];
	struct ulnet_nid nid;

	nodes_add(nids, 1);
	mover_init(&w.m, w.g.sim, LENGTH);
	w.folder = folder_of_two();
	w.g.rpc[SERVER] =
		open_with(w.g.node[SERVER], keys_load_named(w.folder, "b"));
	w.g.rpc[CALLER] =
		open_with(w.g.node[CALLER], keys_load_named(w.folder, "a"));
	methods[0] = mover_method(&w.m);
	methods[1] = (struct ulrpc_method_conf){ .name = "parts",
						 .handler = parts,
						 .run = ULRPC_RUN_INLINE };
	methods[2] = (struct ulrpc_method_conf){ .name = "get_parts",
						 .handler = get_parts,
						 .run = ULRPC_RUN_INLINE };
	methods[3] = (struct ulrpc_method_conf){ .name = "quick",
						 .handler = quick,
						 .run = ULRPC_RUN_INLINE };
	methods[4] = (struct ulrpc_method_conf){ .name = "put_small",
						 .handler = put_small,
						 .run = ULRPC_RUN_INLINE };
	serve_methods(&w.g, methods, 5);
	nid = rail_nid(SERVER, 0);
	ulrpc_client_conf_init(&client);
	client.nids = &nid;
	client.nnids = 1;
	client.service = "test";
	client.flavour = flavour;
	cr_assert_eq(ulrpc_client_open(w.g.rpc[CALLER], &client, &w.g.client),
		     0);
}

static void end(void)
{
	ulrpc_client_close(w.g.client);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(ulrpc_close(w.g.rpc[i]), 0);
	mover_fini(&w.m);
	cr_assert_eq(lnet_sim_free(w.g.sim), 0);
	folder_end(w.folder);
}

static void call(const char *method)
{
	struct ulrpc_call_conf conf = { .deadline = 100000000,
					.bulks = &w.bulk,
					.nbulks = 1 };

	w.call = (struct called){ 0 };
	w.bulk = mover_lend(&w.m, w.g.rpc[CALLER]);
	cr_assert_eq(ulrpc_call(w.g.client, ulrpc_method(method), NULL, 0,
				&conf, on_called, &w.call, NULL),
		     0);
}

static void ended(void)
{
	for (unsigned int i = 0; i < 120000 && !w.call.ended; i++)
		lnet_sim_run(w.g.sim, MSEC);
	cr_assert_eq(w.call.ended, 1);
	cr_assert_eq(w.call.outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(w.call.outcome.cause));
	ulrpc_bulk_close(w.bulk, NULL, NULL);
}

static const enum move moves[] = { MOVE_GET, MOVE_PUT };

/* Calls @during for each flavour and direction, while 3 MB are moved. */
static void moved_by(const char *const nids[2], uint32_t segment,
		     void (*during)(void))
{
	for (unsigned int f = ULRPC_FLAVOUR_INTEGRITY; f <= FLAVOUR_MAX; f++) {
		begin(nids, (enum ulrpc_flavour)f);
		w.m.segment = segment;
		for (unsigned int i = 0; i < ARRAY_SIZE(moves); i++) {
			w.m.move = moves[i];
			mover_fill(&w.m, i);
			call("move");
			if (during)
				during();
			ended();
			cr_assert(mover_is_done(&w.m), "%u, %u", f, i);
		}
		cr_assert_eq(w.m.runs, 2);
		end();
	}
}

/* ---- tests ---- */

Test(bulk_sealed, in_large_segments)
{
	moved_by(one_rail, 0, NULL);
}

/* More than can be sealed in a turn, and more than are under way at a time. */
Test(bulk_sealed, in_many_segments)
{
	moved_by(one_rail, 20000, NULL);
}

Test(bulk_sealed, over_rdma)
{
	moved_by(rdma, 0, NULL);
	moved_by(rdma, 100000, NULL);
}

static void cut(unsigned int rail, bool on)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct ulnet_nid nid = rail_nid(i, rail);

		cr_assert_eq(
			lnet_sim_partition(w.g.sim, &nid, &LNET_NID_ANY, on),
			0);
	}
}

/* The handler runs, so its bulk is under way. */
static void until_moving(void)
{
	unsigned int runs = w.m.runs;

	while (w.m.runs == runs)
		lnet_sim_run(w.g.sim, MSEC / 10);
}

static void one_fails(void)
{
	until_moving();
	cut(0, true);
	lnet_sim_run(w.g.sim, 10 * SEC);
	cut(0, false);
}

Test(bulk_sealed, a_rail_fails)
{
	moved_by(two_rails, 50000, one_fails);
}

static struct import *import_of(void)
{
	return w.g.client->imp;
}

/* The client makes its connection again, with other keys, while bulk that was
 * sealed with the ones before is under way. */
static void connect_again(void)
{
	uint32_t epoch = import_of()->epoch;
	unsigned int ms = 0;

	until_moving();
	cut(0, true);
	while (import_of()->epoch == epoch && ms++ < 90000)
		lnet_sim_run(w.g.sim, MSEC);
	cr_assert_neq(import_of()->epoch, epoch);
	cut(0, false);
}

Test(bulk_sealed, connected_again)
{
	moved_by(one_rail, 100000, connect_again);
}

/* A sink that is filled in parts; what nothing was put to stays as it was. */
Test(bulk_sealed, in_parts)
{
	for (unsigned int f = ULRPC_FLAVOUR_INTEGRITY; f <= FLAVOUR_MAX; f++) {
		begin(one_rail, (enum ulrpc_flavour)f);
		w.m.segment = 1000;
		w.m.length = 5000;
		w.m.move = MOVE_PUT;
		mover_fill(&w.m, 3);
		call("parts");
		ended();
		cr_assert_eq(w.status, 0);
		cr_assert_eq(w.step, ARRAY_SIZE(pieces));
		cr_assert_arr_eq(w.m.lent, w.m.own, 3500);
		for (unsigned int i = 3500; i < 5000; i++)
			cr_assert_eq(w.m.lent[i], (uint8_t)(i * 11 + 3));
		w.m.length = LENGTH;
		end();
	}
}

/* Parts of a source, of segments of 1000 bytes. */
static const struct part wanted[] = {
	{ 0, 300 },	{ 300, 700 }, { 999, 2 },  { 1000, 1000 },
	{ 1500, 2000 }, { 4999, 1 },  { 0, 5000 }, { 2000, 0 },
};

static void wanted_on(void *arg, int status, uint64_t moved)
{
	struct ulrpc_request *r = arg;
	const struct part *p = &wanted[w.step];
	struct iovec iov[2];

	if (w.step) {
		cr_assert_eq(status, 0);
		cr_assert_eq(moved, p[-1].length);
		cr_assert_arr_eq(w.m.own + 1, w.m.lent + p[-1].at,
				 p[-1].length);
		cr_assert_eq(w.m.own[0], 0xa5);
		cr_assert_eq(w.m.own[1 + p[-1].length], 0xa5);
	}
	if (w.step++ == ARRAY_SIZE(wanted)) {
		ulrpc_reply(r, NULL, 0);
		return;
	}
	memset(w.m.own, 0xa5, 6000);
	iov[0] = (struct iovec){ w.m.own + 1, p->length / 3 };
	iov[1] = (struct iovec){ w.m.own + 1 + p->length / 3,
				 p->length - p->length / 3 };
	cr_assert_eq(ulrpc_bulk_get(r, 0, p->at, iov, 2, wanted_on, r), 0);
}

static void get_parts(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	w.step = 0;
	wanted_on(r, 0, 0);
}

Test(bulk_sealed, parts_of_segments)
{
	for (unsigned int f = ULRPC_FLAVOUR_INTEGRITY; f <= FLAVOUR_MAX; f++) {
		begin(one_rail, (enum ulrpc_flavour)f);
		w.m.segment = 1000;
		w.m.length = 5000;
		w.m.move = MOVE_GET;
		mover_fill(&w.m, 5);
		call("get_parts");
		ended();
		cr_assert_eq(w.step, ARRAY_SIZE(wanted) + 1);
		w.m.length = LENGTH;
		end();
	}
}

/* What is got beside what is wanted is of the caller's share, too: with that
 * used up the transfer waits. */
Test(bulk_sealed, parts_of_segments_have_a_share)
{
	struct bulk_pool *pool;

	begin(one_rail, ULRPC_FLAVOUR_PRIVACY);
	pool = w.g.rpc[SERVER]->shards[0].bulk_pool;
	w.m.segment = 1000;
	w.m.length = 5000;
	w.m.move = MOVE_GET;
	mover_fill(&w.m, 5);
	pool->rooms.max = 699; /* one less than there is beside 300 bytes */
	call("get_parts");
	lnet_sim_run(w.g.sim, SEC);
	cr_assert_eq(w.step, 1);
	cr_assert_eq(w.call.ended, 0);
	pool->rooms.max = SEAL_ROOM_MAX;
	ended();
	cr_assert_eq(w.step, ARRAY_SIZE(wanted) + 1);
	cr_assert_eq(pool->rooms.used, 0);
	w.m.length = LENGTH;
	end();
}

static void call_quick(void)
{
	const struct ulrpc_call_conf conf = { .deadline = 1000000 };
	struct called c = { 0 };

	cr_assert_eq(ulrpc_call(w.g.client, ulrpc_method("quick"), NULL, 0,
				&conf, on_called, &c, NULL),
		     0);
	for (unsigned int i = 0; i < 1000 && !c.ended; i++)
		lnet_sim_run(w.g.sim, MSEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
}

/* ---- turns ---- */

/* Segments that are too small for sealers. */
#define SMALL 20000u
/* What is sealed in a turn: as many of them as make up a slice. */
#define SMALL_SLICE ((SEAL_SLICE + SMALL - 1) / SMALL * SMALL)

static struct {
	uint32_t sealed; /* by the server, in the handler's turn */
	bool waits;
} turn;

static void on_small(void *arg, int status, uint64_t moved)
{
	(void)moved;
	cr_assert_eq(status, 0);
	ulrpc_reply(arg, NULL, 0);
}

/* Puts all at once. */
static void put_small(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	const struct bulk_pool *pool = w.g.rpc[SERVER]->shards[0].bulk_pool;
	const struct iovec iov = { w.m.own, w.m.length };

	(void)arg;
	(void)body;
	(void)length;
	cr_assert_eq(ulrpc_bulk_put(r, 0, 0, &iov, 1, on_small, r), 0);
	turn.sealed = pool->sealed;
	turn.waits = !list_empty(&pool->waiting);
}

/* A server seals no more of small segments in a turn than a slice, so that its
 * other calls go on. */
Test(bulk_sealed, a_server_seals_a_slice_in_a_turn)
{
	for (unsigned int f = ULRPC_FLAVOUR_INTEGRITY; f <= FLAVOUR_MAX; f++) {
		begin(one_rail, (enum ulrpc_flavour)f);
		w.m.segment = SMALL;
		w.m.length = 8 * SMALL;
		w.m.move = MOVE_PUT;
		mover_fill(&w.m, f);
		call("put_small");
		ended();
		cr_assert_arr_eq(w.m.lent, w.m.own, w.m.length);
		cr_assert_eq(turn.sealed, SMALL_SLICE);
		cr_assert(turn.waits);
		w.m.length = LENGTH;
		end();
	}
}

/* Returns whether the call that is made now waits for its seals. */
static int call_in_turn(void *arg)
{
	(void)arg;
	call("move");
	return !list_empty(&w.g.client->summing);
}

/* Nor does a caller. */
Test(bulk_sealed, a_caller_seals_a_slice_in_a_turn)
{
	for (unsigned int f = ULRPC_FLAVOUR_INTEGRITY; f <= FLAVOUR_MAX; f++) {
		begin(one_rail, (enum ulrpc_flavour)f);
		w.m.segment = SMALL;
		w.m.move = MOVE_GET;
		call_quick();
		for (unsigned int i = 0; i < 2; i++) {
			w.m.length = SMALL_SLICE + i * SMALL;
			mover_fill(&w.m, i);
			cr_assert_eq(lnet_call(w.g.node[CALLER], 0,
					       call_in_turn, NULL),
				     (int)i);
			ended();
			cr_assert(mover_is_done(&w.m));
		}
		w.m.length = LENGTH;
		end();
	}
}

/* ---- sealers ---- */

/* A job that keeps the sealer of a node until it is let go. */
static struct {
	struct seal_job job;
	pthread_mutex_t lock;
	struct ulnet_cond let_go;
	bool held, ended;
} blocker;

static void blocker_run(struct seal_job *job)
{
	(void)job;
	pthread_mutex_lock(&blocker.lock);
	while (blocker.held &&
	       !lnet_cond_wait(&blocker.let_go, &blocker.lock, TIME_NEVER))
		;
	pthread_mutex_unlock(&blocker.lock);
}

static void blocker_done(struct seal_job *job)
{
	(void)job;
	blocker.ended = true;
}

static int blocker_give(void *arg)
{
	return sealers_give(arg, NULL, &blocker.job) ? 0 : -EIO;
}

static void sealer_hold(unsigned int node)
{
	memset(&blocker, 0, sizeof(blocker));
	pthread_mutex_init(&blocker.lock, NULL);
	cr_assert_eq(lnet_cond_init(&blocker.let_go), 0);
	blocker.job.run = blocker_run;
	blocker.job.done = blocker_done;
	blocker.held = true;
	cr_assert_eq(lnet_call(w.g.node[node], 0, blocker_give,
			       &w.g.rpc[node]->shards[0]),
		     0);
}

static void sealer_let_go(void)
{
	pthread_mutex_lock(&blocker.lock);
	blocker.held = false;
	lnet_cond_broadcast(&blocker.let_go);
	pthread_mutex_unlock(&blocker.lock);
	while (!blocker.ended)
		lnet_sim_run(w.g.sim, MSEC);
	lnet_cond_destroy(&blocker.let_go);
}

/* Jobs that say in which order they were done. */
static struct seal_turn {
	struct seal_job job;
	char name;
} turns[] = {
	{ .name = 'a' }, { .name = 'b' }, { .name = 'c' }, { .name = 'o' }
};
static char order[ARRAY_SIZE(turns) + 1];

static void turn_run(struct seal_job *job)
{
	order[strlen(order)] = container_of(job, struct seal_turn, job)->name;
}

static void turn_done(struct seal_job *job)
{
	(void)job;
}

/* Gives three jobs of one host, and then one of this process. */
static int turns_give(void *arg)
{
	static const struct ulnet_nid greedy = { .type = LNET_TYPE_SOCK,
						 .addr = { 10, 9, 9, 9 } };

	for (unsigned int i = 0; i < ARRAY_SIZE(turns); i++) {
		turns[i].job.run = turn_run;
		turns[i].job.done = turn_done;
		if (!sealers_give(arg, turns[i].name == 'o' ? NULL : &greedy,
				  &turns[i].job))
			return -EIO;
	}
	return 0;
}

/* Sealers take jobs of hosts in turn: who gives many does not keep others
 * waiting for all of them. */
Test(bulk_sealed, hosts_take_turns_at_sealers)
{
	begin(one_rail, ULRPC_FLAVOUR_PRIVACY);
	sealer_hold(0);
	memset(order, 0, sizeof(order));
	cr_assert_eq(
		lnet_call(w.g.node[0], 0, turns_give, &w.g.rpc[0]->shards[0]),
		0);
	sealer_let_go();
	while (strlen(order) < ARRAY_SIZE(turns))
		lnet_sim_run(w.g.sim, MSEC);
	lnet_sim_run(w.g.sim, MSEC);
	cr_assert_str_eq(order, "aobc");
	end();
}

/* Large segments are sealed and opened by the sealers: while these are busy,
 * CPTs go on with all other calls, and only the bulk waits for them. */
Test(bulk_sealed, others_are_served_meanwhile)
{
	for (unsigned int f = ULRPC_FLAVOUR_INTEGRITY; f <= FLAVOUR_MAX; f++) {
		begin(one_rail, (enum ulrpc_flavour)f);
		for (unsigned int i = 0; i < 4; i++) {
			unsigned int before = w.m.ended;

			w.m.move = moves[i % 2];
			mover_fill(&w.m, i);
			call_quick();
			sealer_hold(i / 2);
			call("move");
			for (unsigned int k = 0; k < 100; k++)
				call_quick();
			cr_assert_eq(w.call.ended, 0, "%u, %u", f, i);
			/* Only what the caller opens has gone all the way. */
			cr_assert_eq(w.m.ended - before, i == 1);
			sealer_let_go();
			ended();
			cr_assert(mover_is_done(&w.m), "%u, %u", f, i);
		}
		end();
	}
}

static void on_released(void *arg)
{
	*(bool *)arg = true;
}

/* A call that ends while sealers have its bulk: that comes back when they are
 * done. */
Test(bulk_sealed, ended_while_sealers_have_it)
{
	begin(one_rail, ULRPC_FLAVOUR_PRIVACY);
	for (unsigned int i = 0; i < 4; i++) {
		struct ulrpc_call_conf conf = { .deadline = 200000,
						.bulks = &w.bulk,
						.nbulks = 1 };
		bool released = false;
		unsigned int moved = w.m.ended;

		w.m.move = moves[i % 2];
		mover_fill(&w.m, i);
		call_quick();
		sealer_hold(i / 2);
		w.call = (struct called){ 0 };
		w.bulk = mover_lend(&w.m, w.g.rpc[CALLER]);
		cr_assert_eq(ulrpc_call(w.g.client, ulrpc_method("move"), NULL,
					0, &conf, on_called, &w.call, NULL),
			     0);
		lnet_sim_run(w.g.sim, SEC);
		cr_assert_eq(w.call.ended, 1);
		cr_assert_eq(w.call.outcome.cause, ULRPC_CAUSE_DEADLINE);
		ulrpc_bulk_close(w.bulk, on_released, &released);
		lnet_sim_run(w.g.sim, SEC);
		/* It is this node's sealer that has it. */
		cr_assert_eq(released, i / 2 == SERVER, "%u", i);
		if (i / 2 == SERVER)
			cr_assert_eq(w.m.ended, moved);
		sealer_let_go();
		lnet_sim_run(w.g.sim, SEC);
		cr_assert(released);
	}
	call("move");
	ended();
	end();
}

/* RPC that is closed waits for its sealers. */
Test(bulk_sealed, closed_while_sealers_have_it)
{
	begin(one_rail, ULRPC_FLAVOUR_PRIVACY);
	w.m.move = MOVE_GET;
	mover_fill(&w.m, 0);
	call_quick();
	for (unsigned int i = 0; i < 2; i++) {
		call("move");
		if (i)
			until_moving();
		ulrpc_bulk_close(w.bulk, NULL, NULL);
	}
	end();
}

/* LNet may have a message of a sink for long after the reply has come, and the
 * client may connect again more often meanwhile than it keeps earlier keys. */
Test(bulk_sealed, connected_often_before_it_is_idle)
{
	for (unsigned int f = ULRPC_FLAVOUR_INTEGRITY; f <= FLAVOUR_MAX; f++) {
		begin(one_rail, (enum ulrpc_flavour)f);
		w.m.move = MOVE_PUT;
		mover_fill(&w.m, f);
		call("move");
		until_moving();
		bulk_use(w.bulk);
		while (list_empty(&w.g.client->opening))
			lnet_sim_run(w.g.sim, MSEC);
		for (unsigned int i = 0; i <= SEALED_PAST_MAX; i++) {
			import_lost(import_of(), import_of()->epoch);
			call_quick();
		}
		cr_assert_eq(w.call.ended, 0);
		bulk_unuse(w.bulk);
		ended();
		cr_assert(mover_is_done(&w.m), "%u", f);
		end();
	}
}

/* A node that crashes does not take its sealers' jobs with it: the memory comes
 * back, though no call does. */
Test(bulk_sealed, crashed_while_sealers_have_it)
{
	for (unsigned int i = 0; i < 2; i++) {
		begin(one_rail, ULRPC_FLAVOUR_PRIVACY);
		w.m.move = MOVE_GET;
		mover_fill(&w.m, 0);
		call_quick();
		if (i)
			sealer_hold(CALLER);
		call("move");
		ulrpc_client_close(w.g.client);
		cr_assert_eq(lnet_sim_crash(w.g.sim, CALLER), 0);
		ulrpc_bulk_close(w.bulk, NULL, NULL);
		if (i)
			lnet_cond_destroy(&blocker.let_go);
		cr_assert_eq(ulrpc_close(w.g.rpc[SERVER]), 0);
		mover_fini(&w.m);
		cr_assert_eq(lnet_sim_free(w.g.sim), 0);
		folder_end(w.folder);
	}
}

static char logged_excess[256];

static void on_line(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	if (strstr(line, "too much"))
		snprintf(logged_excess, sizeof(logged_excess), "%s", line);
}

/* More segments with seals than the head of a message has room for: the caller,
 * and the log, hear of what there are too many. */
Test(bulk_sealed, too_many_segments)
{
	static const char says[] = "bulk of 1025 segments is too much: with "
				   "seals a call may have up to 1024";
	struct ulrpc_bulk *bulks[5];
	const struct ulrpc_call_conf conf = { .deadline = 10000000,
					      .bulks = bulks,
					      .nbulks = 5 };

	begin(one_rail, ULRPC_FLAVOUR_INTEGRITY);
	w.m.segment = 100;
	w.m.length = 20500;
	w.m.move = MOVE_GET;
	for (unsigned int i = 0; i < 5; i++)
		bulks[i] = mover_lend(&w.m, w.g.rpc[CALLER]);
	lnet_log_set(LNET_LOG_WARN, on_line, NULL);
	w.call = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(w.g.client, ulrpc_method("move"), NULL, 0,
				&conf, on_called, &w.call, NULL),
		     0);
	for (unsigned int i = 0; i < 10000 && !w.call.ended; i++)
		lnet_sim_run(w.g.sim, MSEC);
	cr_assert_eq(w.call.outcome.cause, ULRPC_CAUSE_BAD_REQUEST);
	cr_assert(strstr(w.call.outcome.text, says), "%s", w.call.outcome.text);
	cr_assert(strstr(logged_excess, says), "%s", logged_excess);
	for (unsigned int i = 0; i < 5; i++)
		ulrpc_bulk_close(bulks[i], NULL, NULL);
	w.m.length = LENGTH;
	end();
}

/* The generation that the next piece is sealed with. */
static uint32_t generation(struct piece_key *k)
{
	const struct piece_place place = { SEAL_INTEGRITY, 0, 0, 1 };
	struct piece_seal seal;
	struct piece *p;

	cr_assert_eq(
		piece_seal_begin(k, &place, lnet_sim_now(w.g.sim), &seal, &p),
		0);
	piece_drop(p);
	return seal.generation;
}

/* The one export of the server. */
static struct export *export_of(void)
{
	struct exports *x = w.g.rpc[SERVER]->shards[0].exports;
	uint32_t pos = 0;

	return id_walk(&x->table, &pos);
}

/* Keys that are worn out are replaced, and what was sealed before is opened. */
static void worn_out(void)
{
	struct piece_key *keys[2];

	until_moving();
	keys[0] = import_of()->sealed->bulk_out;
	keys[1] = export_of()->session->sealed->bulk_out;
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t before = generation(keys[i]);

		piece_key_limit(keys[i], 2, SEAL_AGE_MAX);
		(void)generation(keys[i]);
		cr_assert_gt(generation(keys[i]), before);
	}
}

Test(bulk_sealed, keys_are_replaced)
{
	moved_by(one_rail, 100000, worn_out);
}
