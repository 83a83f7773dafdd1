/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When rpcping begins calls and how it counts them, in virtual time. A fake
 * replaces RPC and ends each call as the test says.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/loop.h>
#include <ulnet/sim.h>
#include "tools/rpcping/rpcping.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

/* ---- the fake of RPC ---- */

struct ulrpc_bulk {
	void (*released)(void *arg);
	void *arg;
};

/* A call under way. */
struct one {
	struct ulnet_timer timer;
	ulrpc_done_fn done;
	void *arg;
	struct one *next;
};

struct ulrpc_client {
	struct one *list;
};

static struct {
	struct lnet_sim *sim;
	struct ulrpc_client client;
	uint64_t takes; /* ns that a call takes */
	/* calls that would end in this interval, ns, end when it is over */
	uint64_t stall_from, stall_to;
	struct ulrpc_outcome outcome;
	int refuses; /* calls that fail at once with -ENOMEM */
	unsigned int called, under_way, most;
	unsigned int bulks; /* that are open */
	/* the last one that was closed and is not released yet */
	struct ulrpc_bulk *closed;
	unsigned int ended;
	char reply[64];
	size_t reply_length;
} fake;

struct lnet *ulrpc_node(struct ulrpc *rpc)
{
	(void)rpc;
	return lnet_sim_node(fake.sim, 0);
}

void ulrpc_client_conf_init(struct ulrpc_client_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
}

int ulrpc_client_open(struct ulrpc *rpc, const struct ulrpc_client_conf *conf,
		      struct ulrpc_client **client_p)
{
	(void)rpc;
	cr_assert_str_eq(conf->service, "echo");
	*client_p = &fake.client;
	return 0;
}

unsigned int ulrpc_client_cpt(const struct ulrpc_client *client)
{
	(void)client;
	return 0;
}

uint32_t ulrpc_method(const char *name)
{
	cr_assert_str_eq(name, "Raw");
	return 17;
}

int ulrpc_method_declare(struct ulrpc *rpc, const char *name)
{
	(void)rpc;
	cr_assert_str_eq(name, "Raw");
	return 0;
}

const char *ulrpc_cause_name(enum ulrpc_cause cause)
{
	(void)cause;
	return "";
}

static void one_end(struct one *c, const struct ulrpc_outcome *o)
{
	struct one **link = &fake.client.list;

	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	fake.under_way--;
	c->done(c->arg, o, o->cause ? NULL : fake.reply,
		o->cause ? 0 : fake.reply_length);
	free(c);
}

static void on_timer(struct ulnet_timer *timer)
{
	one_end((struct one *)timer, &fake.outcome);
}

int ulrpc_call(struct ulrpc_client *client, uint32_t method, const void *body,
	       size_t length, const struct ulrpc_call_conf *conf,
	       ulrpc_done_fn done, void *arg, struct ulrpc_call **call_p)
{
	uint64_t at = lnet_sim_now(fake.sim) + fake.takes;
	struct one *c;

	cr_assert(client && method == 17 && conf->deadline && !call_p);
	fake.called++;
	if (fake.refuses) {
		fake.refuses--;
		return -ENOMEM;
	}
	if (length && length <= sizeof(fake.reply)) {
		memcpy(fake.reply, body, length);
		fake.reply_length = length;
	}
	if (++fake.under_way > fake.most)
		fake.most = fake.under_way;
	if (at >= fake.stall_from && at < fake.stall_to)
		at = fake.stall_to;
	c = calloc(1, sizeof(*c));
	c->done = done;
	c->arg = arg;
	c->next = client->list;
	client->list = c;
	lnet_timer_init(&c->timer, on_timer);
	lnet_timer_arm(lnet_sim_node(fake.sim, 0), 0, &c->timer, at);
	return 0;
}

/* ---- the same for several servers ---- */

struct ulrpc_replicas {
	ulrpc_replicas_done_fn done;
};

static struct ulrpc_replicas set;

void ulrpc_replicas_conf_init(struct ulrpc_replicas_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
}

int ulrpc_replicas_open(struct ulrpc *rpc,
			const struct ulrpc_replicas_conf *conf,
			struct ulrpc_replicas **replicas_p)
{
	(void)rpc;
	cr_assert_eq(conf->choice, ULRPC_CHOOSE_TURNS);
	cr_assert_eq(conf->hedge, 7);
	*replicas_p = &set;
	return 0;
}

unsigned int ulrpc_replicas_cpt(const struct ulrpc_replicas *replicas)
{
	(void)replicas;
	return 0;
}

/* The servers take turns, and the second one moves and hedges. */
static void on_set_end(void *arg, const struct ulrpc_outcome *o,
		       const void *reply, size_t length)
{
	static unsigned int turn;
	const unsigned int at = turn++ % 2;
	const struct ulrpc_replicas_outcome all = {
		.call = *o,
		.server = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0),
					0x0a000001 + at),
		.moves = 2 * at,
		.hedged = at,
	};

	set.done(arg, &all, reply, length);
}

int ulrpc_replicas_call(struct ulrpc_replicas *replicas, uint32_t method,
			const void *body, size_t length,
			const struct ulrpc_replicas_call_conf *conf,
			ulrpc_replicas_done_fn done, void *arg,
			struct ulrpc_replicas_call **call_p)
{
	cr_assert(replicas == &set && !call_p && !conf->key);
	set.done = done;
	return ulrpc_call(&fake.client, method, body, length, &conf->call,
			  on_set_end, arg, NULL);
}

static int end_all(void *arg)
{
	const struct ulrpc_outcome o = { .status = -ECANCELED,
					 .cause = ULRPC_CAUSE_CANCELED };

	(void)arg;
	while (fake.client.list) {
		lnet_timer_cancel(lnet_sim_node(fake.sim, 0), 0,
				  &fake.client.list->timer);
		one_end(fake.client.list, &o);
	}
	return 0;
}

void ulrpc_client_close(struct ulrpc_client *client)
{
	if (client)
		lnet_call(lnet_sim_node(fake.sim, 0), 0, end_all, NULL);
}

void ulrpc_replicas_close(struct ulrpc_replicas *replicas)
{
	if (replicas)
		ulrpc_client_close(&fake.client);
}

int ulrpc_bulk_new(struct ulrpc *rpc, const struct ulrpc_bulk_conf *conf,
		   struct ulrpc_bulk **bulk_p)
{
	(void)rpc;
	cr_assert_eq(conf->iov->iov_len, 4097);
	cr_assert_eq(conf->segment, 1025);
	fake.bulks++;
	*bulk_p = calloc(1, sizeof(**bulk_p));
	return 0;
}

void ulrpc_bulk_close(struct ulrpc_bulk *bulk, void (*released)(void *arg),
		      void *arg)
{
	if (!released) {
		fake.bulks--;
		free(bulk);
		return;
	}
	bulk->released = released;
	bulk->arg = arg;
	fake.closed = bulk;
}

static void release(void)
{
	struct ulrpc_bulk *b = fake.closed;

	fake.closed = NULL;
	fake.bulks--;
	b->released(b->arg);
	free(b);
}

/* ---- the rig ---- */

static struct load_stats stats;

static int no_start(void *arg, unsigned int index, struct lnet *node)
{
	(void)arg;
	(void)index;
	(void)node;
	return 0;
}

static void on_ended(void *arg)
{
	(void)arg;
	fake.ended++;
}

static struct load *begin(const struct load_conf *conf)
{
	struct load_conf c = *conf;
	struct load *l;

	cr_assert_eq(lnet_sim_new(1, 1, &fake.sim), 0);
	cr_assert_eq(lnet_sim_node_add(fake.sim, "10.0.0.1@tcp", NULL, no_start,
				       NULL),
		     0);
	fake.takes = 2 * MS;
	fake.outcome.bulk_free = true;
	fake.outcome.attempts = 1;
	c.service = "echo";
	c.method = "Raw";
	c.deadline = 1000000;
	c.ended = on_ended;
	cr_assert_eq(load_open((struct ulrpc *)&fake, &c, &l), 0);
	load_start(l);
	return l;
}

static void finish(struct load *l)
{
	cr_assert_eq(fake.ended, 1);
	cr_assert_eq(fake.under_way, 0);
	load_stats(l, &stats);
	cr_assert_eq(stats.inflight, 0);
	load_free(l);
	cr_assert_eq(fake.bulks, 0);
	cr_assert_eq(lnet_sim_free(fake.sim), 0);
}

/* ---- one after the other ---- */

Test(load, count)
{
	struct load *l = begin(
		&(struct load_conf){ .size = 8, .inflight = 3, .count = 10 });

	lnet_sim_run(fake.sim, S);
	finish(l);
	cr_assert_eq(fake.called, 10);
	cr_assert_eq(fake.most, 3);
	cr_assert_eq(stats.answered, 10);
	cr_assert_eq(stats.lost, 0);
	cr_assert_eq(stats.bytes, 160);
	cr_assert_eq(stats.latency.min, 2 * MS);
	cr_assert_eq(stats.latency.max, 2 * MS);
	cr_assert_eq(stats.last - stats.first, 8 * MS);
}

Test(load, time_limit)
{
	struct load *l =
		begin(&(struct load_conf){ .inflight = 2, .time = 100 * 1000 });

	lnet_sim_run(fake.sim, S);
	finish(l);
	/* Calls begin at 0, 2, ... 98 ms, two at a time. */
	cr_assert_eq(stats.answered, 100);
	cr_assert_eq(stats.last - stats.first, 100 * MS);
}

Test(load, warmup)
{
	struct load *l = begin(&(struct load_conf){
		.inflight = 1, .time = 10 * 1000, .warmup = 20 * 1000 });

	lnet_sim_run(fake.sim, S);
	finish(l);
	cr_assert_eq(fake.called, 15);
	cr_assert_eq(stats.answered, 5);
	cr_assert_eq(stats.latency.n, 5);
	cr_assert_eq(stats.last - stats.first, 10 * MS);
}

/* ---- at several servers ---- */

static const struct load_conf of_set = { .inflight = 1,
					 .count = 10,
					 .replicas = true,
					 .choice = ULRPC_CHOOSE_TURNS,
					 .hedge = 7 };

Test(load, by_server)
{
	struct load_stats *sum = calloc(1, sizeof(*sum));
	struct load *l = begin(&of_set);

	lnet_sim_run(fake.sim, S);
	finish(l);
	cr_assert_eq(stats.answered, 10);
	cr_assert_eq(stats.nservers, 2);
	cr_assert_eq(stats.moves, 10);
	cr_assert_eq(stats.hedged, 5);
	load_stats_merge(sum, &stats);
	load_stats_merge(sum, &stats);
	cr_assert_eq(sum->nservers, 2);
	cr_assert_eq(sum->moves, 20);
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(stats.server[i].answered, 5);
		cr_assert_eq(stats.server[i].lost, 0);
		cr_assert_eq(stats.server[i].sum, 10 * MS);
		cr_assert_eq(sum->server[i].answered, 10);
		cr_assert_eq(sum->server[i].max, 2 * MS);
	}
	free(sum);
}

Test(load, lost_by_server)
{
	struct load *l = begin(&of_set);
	const struct load_loss *loss = &stats.loss[ULRPC_CAUSE_DEADLINE];

	fake.outcome.cause = ULRPC_CAUSE_DEADLINE;
	lnet_sim_run(fake.sim, S);
	finish(l);
	cr_assert_eq(loss->n, 10);
	cr_assert(lnet_nid_eq(&loss->server, &stats.server[0].nid));
	cr_assert_eq(stats.server[0].lost, 5);
	cr_assert_eq(stats.server[1].answered, 0);
}

/* ---- at a rate ---- */

Test(load, rate)
{
	struct load *l = begin(&(struct load_conf){
		.inflight = 100, .time = 1000 * 1000, .rate = 1000 });

	fake.takes = 5 * MS;
	lnet_sim_run(fake.sim, 2 * S);
	finish(l);
	cr_assert_eq(stats.answered, 1000);
	cr_assert_eq(stats.behind, 0);
	cr_assert_leq(fake.most, 6);
	cr_assert_leq(stats.latency.max, 6 * MS);
}

/* No call ends for half a second. All calls that should have been made in this
 * time count as having waited, not just the one that was under way. */
Test(load, rate_stalled)
{
	struct load *l = begin(&(struct load_conf){
		.inflight = 1, .time = 2000 * 1000, .rate = 100 });

	fake.stall_from = lnet_sim_now(fake.sim) + 500 * MS;
	fake.stall_to = fake.stall_from + 500 * MS;
	lnet_sim_run(fake.sim, 3 * S);
	finish(l);
	cr_assert_eq(stats.answered, 200);
	/* A quarter of all calls waited, half of these at least 250 ms. */
	cr_assert_geq(histogram_quantile(&stats.latency, 0.9), 200 * MS);
	cr_assert_geq(stats.latency.max, 490 * MS);
	cr_assert_leq(histogram_quantile(&stats.latency, 0.5), 3 * MS);
}

/* At a rate that is too high the calls that were never begun are counted. */
Test(load, rate_too_high)
{
	struct load *l = begin(&(struct load_conf){
		.inflight = 1, .time = 1000 * 1000, .rate = 1000 });

	lnet_sim_run(fake.sim, 2 * S);
	finish(l);
	cr_assert_eq(stats.answered, 500);
	cr_assert_eq(stats.behind, 500);
	cr_assert_geq(stats.latency.max, 490 * MS);
}

/* ---- losses ---- */

/* A slot whose call fails at once pauses before its next call. */
Test(load, lost)
{
	struct load *l = begin(
		&(struct load_conf){ .inflight = 4, .time = 1000 * 1000 });

	fake.takes = 1;
	fake.outcome.status = -ENOENT;
	fake.outcome.cause = ULRPC_CAUSE_NO_SERVICE;
	lnet_sim_run(fake.sim, 2 * S);
	finish(l);
	cr_assert_eq(stats.answered, 0);
	cr_assert_eq(stats.lost, fake.called);
	cr_assert_eq(stats.loss[ULRPC_CAUSE_NO_SERVICE].n, fake.called);
	cr_assert_eq(stats.loss[ULRPC_CAUSE_NO_SERVICE].first.status, -ENOENT);
	cr_assert_geq(fake.called, 4);
	cr_assert_leq(fake.called, 4 * 101);
}

Test(load, overloaded)
{
	struct load *l =
		begin(&(struct load_conf){ .inflight = 1, .count = 3 });

	fake.outcome.status = -EBUSY;
	fake.outcome.cause = ULRPC_CAUSE_OVERLOADED;
	fake.outcome.retry_after = 300 * 1000;
	lnet_sim_run(fake.sim, 599 * MS);
	cr_assert_eq(fake.called, 2);
	lnet_sim_run(fake.sim, S);
	finish(l);
	cr_assert_eq(stats.lost, 3);
}

Test(load, not_made)
{
	struct load *l = begin(
		&(struct load_conf){ .size = 8, .inflight = 2, .count = 5 });

	fake.refuses = 2;
	lnet_sim_run(fake.sim, S);
	finish(l);
	cr_assert_eq(stats.answered, 3);
	cr_assert_eq(stats.lost, 2);
	cr_assert_eq(stats.loss[LOAD_NOT_MADE].n, 2);
	cr_assert_eq(stats.loss[LOAD_NOT_MADE].first.status, -ENOMEM);
}

Test(load, resent_and_explained)
{
	struct load *l = begin(&(struct load_conf){
		.inflight = 1, .count = 4, .explain = true });

	fake.outcome.attempts = 3;
	fake.outcome.paths = 4;
	fake.outcome.wire = 7;
	fake.outcome.service = 9;
	fake.outcome.local = fake.outcome.target = LNET_NID_LO;
	lnet_sim_run(fake.sim, S);
	finish(l);
	cr_assert_eq(stats.resent, 8);
	cr_assert_eq(stats.explain.attempts_max, 3);
	cr_assert_eq(stats.explain.paths, 16);
	cr_assert_eq(stats.explain.stage[LOAD_WIRE].sum, 28000);
	cr_assert_eq(stats.explain.stage[LOAD_SERVICE].max, 9000);
	cr_assert_eq(stats.explain.nrails, 1);
	cr_assert_eq(stats.explain.rail[0].n, 4);
}

/* ---- contents ---- */

static int fill(const struct probe_call *call, void *body)
{
	memcpy(body, &call->seed, sizeof(call->seed));
	return sizeof(call->seed);
}

static bool seed_check(const struct probe_call *call, const void *reply,
		       size_t length, char *what, size_t size)
{
	cr_assert_eq(length, sizeof(call->seed));
	if (memcmp(reply, &call->seed, length) == 0 && call->seed % 5)
		return true;
	snprintf(what, size, "it is wrong");
	return false;
}

Test(load, wrong)
{
	static const struct probe probe = { .method = "Raw",
					    .prepare = fill,
					    .check = seed_check };
	struct load *l = begin(&(struct load_conf){ .size = 8,
						    .inflight = 1,
						    .count = 10,
						    .seed = 1,
						    .verify = true,
						    .probe = &probe });

	lnet_sim_run(fake.sim, S);
	finish(l);
	cr_assert_eq(stats.answered, 8);
	cr_assert_eq(stats.lost, 2);
	cr_assert_eq(stats.loss[LOAD_WRONG].n, 2);
	cr_assert_str_eq(stats.loss[LOAD_WRONG].what, "it is wrong");
}

/* ---- bulk ---- */

/* A slot makes its next call only when the server can no longer access the
 * memory of the one before. */
Test(load, slot_waits_for_its_memory)
{
	static const struct probe probe = { .method = "Raw",
					    .bulk = ULRPC_BULK_SINK,
					    .prepare = fill };
	struct load *l = begin(&(struct load_conf){ .inflight = 1,
						    .count = 2,
						    .bulk = 4097,
						    .segments = 4,
						    .probe = &probe });

	fake.outcome = (struct ulrpc_outcome){ .status = -ETIMEDOUT,
					       .cause = ULRPC_CAUSE_DEADLINE };
	lnet_sim_run(fake.sim, S);
	cr_assert_eq(fake.called, 1);
	cr_assert_eq(fake.ended, 0);
	cr_assert_not_null(fake.closed);
	fake.outcome = (struct ulrpc_outcome){ .bulk_free = true };
	release();
	lnet_sim_run(fake.sim, S);
	finish(l);
	cr_assert_eq(fake.called, 2);
	cr_assert_eq(stats.lost, 1);
	cr_assert_eq(stats.answered, 1);
	cr_assert_eq(stats.bytes, 4097);
}

/* Releases the memory of each call a moment after its end, as is usual. The
 * slots do not pause for that. */
static void release_all(void *arg)
{
	(void)arg;
	if (fake.closed)
		release();
	if (!fake.ended)
		cr_assert_eq(lnet_sim_at(fake.sim, 1000, release_all, NULL), 0);
}

Test(load, memory_is_released_soon)
{
	static const struct probe probe = { .method = "Raw",
					    .bulk = ULRPC_BULK_SINK,
					    .prepare = fill };
	struct load *l = begin(&(struct load_conf){ .inflight = 1,
						    .count = 10,
						    .bulk = 4097,
						    .segments = 4,
						    .probe = &probe });

	fake.outcome.bulk_free = false;
	release_all(NULL);
	lnet_sim_run(fake.sim, S);
	finish(l);
	cr_assert_eq(stats.answered, 10);
	cr_assert_leq(stats.last - stats.first, 21 * MS);
}

/* ---- the end ---- */

Test(load, stopped)
{
	struct load *l = begin(&(struct load_conf){ .inflight = 2 });

	lnet_sim_run(fake.sim, 21 * MS);
	cr_assert_eq(fake.ended, 0);
	load_stop(l);
	cr_assert_eq(fake.ended, 0, "two are under way");
	lnet_sim_run(fake.sim, S);
	finish(l);
	cr_assert_eq(stats.answered, 22);
	cr_assert_eq(stats.lost, 0);
}

Test(load, stopped_while_waiting)
{
	struct load *l =
		begin(&(struct load_conf){ .inflight = 2, .rate = 0.01 });

	lnet_sim_run(fake.sim, S);
	load_stop(l);
	lnet_sim_run(fake.sim, 1);
	finish(l);
	cr_assert_eq(stats.answered, 1);
}

/* Calls that are canceled at the end count as lost. */
Test(load, canceled)
{
	struct load *l = begin(&(struct load_conf){ .inflight = 3 });

	fake.takes = 100 * S;
	lnet_sim_run(fake.sim, S);
	load_stop(l);
	load_cancel(l);
	lnet_sim_run(fake.sim, 1);
	finish(l);
	cr_assert_eq(stats.answered, 0);
	cr_assert_eq(stats.lost, 3);
}

Test(load, merged)
{
	static struct load_stats sum;
	struct load *l = begin(&(struct load_conf){
		.inflight = 1, .count = 4, .explain = true });

	fake.outcome.attempts = 2;
	lnet_sim_run(fake.sim, S);
	finish(l);
	load_stats_merge(&sum, &stats);
	load_stats_merge(&sum, &stats);
	cr_assert_eq(sum.answered, 8);
	cr_assert_eq(sum.resent, 8);
	cr_assert_eq(sum.latency.n, 8);
	cr_assert_eq(sum.first, stats.first);
	cr_assert_eq(sum.last, stats.last);
	cr_assert_eq(sum.explain.nrails, 1);
	cr_assert_eq(sum.explain.rail[0].n, 8);
}
