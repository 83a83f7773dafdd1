/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics of all CPTs as YAML, number by number, and through the
 * control. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include "base/crc32c.h"
#include "config/yaml/tree.h"
#include "lnet/node/node.h"
#include "rpc/run.h"
#include "rpc/stats/stats.h"
#include "tests/tree_eq.h"
#include "ulnet/control.h"

#define CPTS 2

/* An RPC instance without any parts but statistics. */
struct rig {
	struct ulrpc rpc;
	struct shard shards[CPTS];
};

static int shard_begin(void *arg)
{
	int rc = rpc_part_open(&run_part, arg);

	return rc ? rc : rpc_part_open(&stat_part, arg);
}

static int shard_end(void *arg)
{
	rpc_part_close(&stat_part, arg);
	rpc_part_close(&run_part, arg);
	return 0;
}

static struct rig *rig_open(void)
{
	struct rig *rig = lines_calloc(sizeof(*rig));
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.cpts = CPTS;
	cr_assert_eq(lnet_open(&conf, &rig->rpc.node), 0);
	rig->rpc.ncpts = CPTS;
	rig->rpc.shards = rig->shards;
	cr_assert_eq(stat_part.open(&rig->rpc), 0);
	for (unsigned int i = 0; i < CPTS; i++) {
		rig->shards[i] = (struct shard){ .rpc = &rig->rpc,
						 .node = rig->rpc.node,
						 .cpt = i };
		cr_assert_eq(lnet_call(rig->rpc.node, i, shard_begin,
				       &rig->shards[i]),
			     0);
	}
	return rig;
}

static void rig_close(struct rig *rig)
{
	stats_close(&rig->rpc);
	for (unsigned int i = 0; i < CPTS; i++)
		cr_assert_eq(
			lnet_call(rig->rpc.node, i, shard_end, &rig->shards[i]),
			0);
	stat_part.free(&rig->rpc);
	lnet_close(rig->rpc.node);
	free(rig);
}

/* ---- reading YAML ---- */

static struct doc *parse(const char *text)
{
	const struct tree_limits limits = { 64 << 20, 4000000, TREE_DEPTH_MAX };
	struct tree_error err;
	struct doc *doc;

	cr_assert_eq(tree_parse(text, strlen(text), &limits, &doc, &err), 0,
		     "line %u: %s\n%s", err.line, err.what, text);
	return doc;
}

static struct doc *stats_of(struct rig *rig)
{
	char *text;
	struct doc *doc;

	cr_assert_eq(ulrpc_stats(&rig->rpc, &text), 0);
	doc = parse(text);
	free(text);
	return doc;
}

/* Returns the value at a path of keys and indices, such as "a.1.b". */
static const struct tree *at(const struct tree *t, const char *path)
{
	char *copy = strdup(path), *save = NULL, *word;

	for (word = strtok_r(copy, ".", &save); word;
	     word = strtok_r(NULL, ".", &save)) {
		const struct tree *child = NULL, *c;
		unsigned long i = strtoul(word, NULL, 10);

		if (t->kind == TREE_MAP)
			child = tree_get(t, word);
		else
			tree_for_each (c, t)
				if (!i--) {
					child = c;
					break;
				}
		cr_assert_not_null(child, "%s: no %s", path, word);
		t = child;
	}
	free(copy);
	return t;
}

static void has(const struct doc *doc, const char *path, const char *want)
{
	cr_assert_str_eq(at(doc_root(doc), path)->text, want, "%s: %s", path,
			 at(doc_root(doc), path)->text);
}

static unsigned int count_at(const struct doc *doc, const char *path)
{
	return at(doc_root(doc), path)->count;
}

/* ---- calls and requests to count ---- */

static struct ulnet_id id_of(unsigned int n)
{
	char text[40];
	struct ulnet_id id;

	snprintf(text, sizeof(text), "12345-10.0.%u.%u@tcp", n >> 8, n & 255);
	cr_assert_eq(lnet_id_parse(text, &id), 0);
	return id;
}

static int record_calls(void *arg)
{
	struct shard *s = arg;
	struct ulrpc_outcome o = { .cause = ULRPC_CAUSE_OK,
				   .execution = ULRPC_EXECUTED,
				   .attempts = 1,
				   .total = 100 };
	static const char *const services[] = { "zeta", "alpha \"\xff\"" };

	for (unsigned int i = 0; i < 2; i++) {
		struct call_report r = {
			.shard = s,
			.stats = stat_service_get(s->stats, STAT_CALLS,
						  services[i]),
			.sent = 10,
			.outcome = &o,
		};

		r.method = crc32c(0, "Echo", 4);
		run_call_end(&r, NULL, NULL);
		r.method = 3;
		run_call_end(&r, NULL, NULL);
	}
	o.cause = ULRPC_CAUSE_DEADLINE;
	o.total = 3000;
	run_call_end(
		&(struct call_report){
			.shard = s,
			.stats = stat_service_get(s->stats, STAT_CALLS,
						  services[0]),
			.method = 3,
			.outcome = &o,
		},
		NULL, NULL);
	stat_count(s, RPC_STAT_parcels_sent);
	return 0;
}

Test(stats, nothing_yet)
{
	struct rig *rig = rig_open();
	struct doc *doc = stats_of(rig);

	has(doc, "rpc.cpts", "2");
	cr_assert_eq(count_at(doc, "rpc.counters"), RPC_STATS);
	cr_assert_eq(at(doc_root(doc), "rpc.calls")->kind, TREE_SEQ);
	cr_assert_eq(count_at(doc, "rpc.calls"), 0);
	cr_assert_eq(count_at(doc, "rpc.requests"), 0);
	cr_assert_eq(count_at(doc, "rpc.servers"), 0);
	cr_assert_eq(count_at(doc, "rpc.clients"), 0);
	has(doc, "rpc.clients_gone.times_us.total.count", "0");
	doc_free(doc);
	rig_close(rig);
}

/* Calls are summed over CPTs, and sorted; names may have any bytes. */
Test(stats, calls)
{
	struct rig *rig = rig_open();
	struct doc *doc;

	cr_assert_eq(ulrpc_method_declare(&rig->rpc, "Echo"), 0);
	cr_assert_eq(ulrpc_method_declare(&rig->rpc, "Echo"), 0);
	for (unsigned int i = 0; i < CPTS; i++)
		cr_assert_eq(lnet_call(rig->rpc.node, i, record_calls,
				       &rig->shards[i]),
			     0);
	doc = stats_of(rig);
	cr_assert_eq(count_at(doc, "rpc.calls"), 4);
	has(doc, "rpc.calls.0.service", "alpha \"\xc3\xbf\"");
	has(doc, "rpc.calls.0.method", "Echo");
	has(doc, "rpc.calls.1.number", "0x00000003");
	cr_assert_null(tree_get(at(doc_root(doc), "rpc.calls.1"), "method"));
	has(doc, "rpc.calls.2.service", "zeta");
	has(doc, "rpc.calls.2.calls", "2");
	has(doc, "rpc.calls.2.sent_bytes", "20");
	has(doc, "rpc.calls.2.ends.ok", "2");
	has(doc, "rpc.calls.2.times_us.total.count", "2");
	has(doc, "rpc.calls.2.times_us.total.p50", "100.000");
	has(doc, "rpc.calls.2.times_us.total.mean", "100.000");
	cr_assert_eq(count_at(doc, "rpc.calls.2.times_us.total.buckets"), 1);
	cr_assert_str_eq(tree_get(at(doc_root(doc),
				     "rpc.calls.2.times_us.total.buckets"),
				  "106.496")
				 ->text,
			 "2");
	cr_assert_eq(count_at(doc, "rpc.calls.2.failed_us"), 0);
	has(doc, "rpc.calls.3.times_us.total.count", "4");
	has(doc, "rpc.calls.3.ends.deadline", "2");
	has(doc, "rpc.calls.3.failed_us.deadline.count", "2");
	has(doc, "rpc.calls.3.failed_us.deadline.mean", "3000.000");
	has(doc, "rpc.counters.parcels_sent", "2");
	doc_free(doc);

	cr_assert_eq(ulrpc_stats_reset(&rig->rpc), 0);
	doc = stats_of(rig);
	has(doc, "rpc.calls.2.calls", "0");
	has(doc, "rpc.calls.2.times_us.total.count", "0");
	cr_assert_eq(count_at(doc, "rpc.calls.2.ends"), 0);
	cr_assert_eq(count_at(doc, "rpc.calls.3.failed_us"), 0);
	has(doc, "rpc.counters.parcels_sent", "0");
	doc_free(doc);
	rig_close(rig);
}

/* ---- ulrpc_counters() ---- */

struct told {
	struct ulrpc_counter all[256];
	unsigned int n;
};

static void tell(void *arg, const struct ulrpc_counter *c)
{
	struct told *t = arg;

	cr_assert_lt(t->n, ARRAY_SIZE(t->all));
	cr_assert_gt(strlen(c->help), 0);
	t->all[t->n++] = *c;
}

/* Returns the first counter called @name from index @from on. */
static const struct ulrpc_counter *told_of(const struct told *t,
					   unsigned int from, const char *name)
{
	while (from < t->n && strcmp(t->all[from].name, name) != 0)
		from++;
	cr_assert_lt(from, t->n, "no %s", name);
	return &t->all[from];
}

static int count_in_turn(void *arg)
{
	struct told t = { .n = 0 };

	cr_assert_eq(ulrpc_counters(arg, tell, &t), -EDEADLK);
	cr_assert_eq(t.n, 0);
	return 0;
}

Test(stats, counters)
{
	struct rig *rig = rig_open();
	const struct ulrpc_counter *c;
	struct told t = { .n = 0 };
	uint64_t sum = 0;

	cr_assert_eq(ulrpc_method_declare(&rig->rpc, "Echo"), 0);
	for (unsigned int i = 0; i < CPTS; i++)
		cr_assert_eq(lnet_call(rig->rpc.node, i, record_calls,
				       &rig->shards[i]),
			     0);
	cr_assert_eq(ulrpc_counters(&rig->rpc, tell, &t), 0);
	for (unsigned int i = 0; i < t.n; i++)
		cr_assert_eq(t.all[i].service != NULL, i >= RPC_STATS);
	c = told_of(&t, 0, "parcels_sent");
	cr_assert_eq(c->value, 2);
	cr_assert_eq(c->kind, ULRPC_COUNTER_GROWS);
	cr_assert_eq(told_of(&t, 0, "slots_noted")->kind, ULRPC_COUNTER_NOW);
	/* One counter for each of four methods. */
	c = told_of(&t, RPC_STATS, "sent_bytes");
	for (unsigned int i = 0; i < 4; i++, sum += c++->value) {
		cr_assert_str_eq(c->name, "sent_bytes");
		cr_assert_eq(c->kind, ULRPC_COUNTER_GROWS);
		cr_assert(!c->served);
		cr_assert_eq(c->method != NULL, c->number != 3);
		cr_assert(!c->method || !strcmp(c->method, "Echo"));
	}
	cr_assert_str_neq(c->name, "sent_bytes");
	cr_assert_eq(sum, 80);
	c = told_of(&t, RPC_STATS, "total");
	c += !c->method; /* the other one has failed calls */
	cr_assert_eq(c->kind, ULRPC_COUNTER_TIMES);
	cr_assert_eq(c->value, 200000);
	cr_assert_eq(c->samples, 2);
	cr_assert_eq(lnet_call(rig->rpc.node, 0, count_in_turn, &rig->rpc), 0);
	rig_close(rig);
}

/* ---- peers ---- */

#define PEERS		1000
#define PEERS_IN_A_TURN 64

struct crowd {
	struct shard *shard;
	struct stat_peer peers[PEERS];
};

static int crowd_come(void *arg)
{
	struct crowd *crowd = arg;
	struct request_report r = { .end = WIRE_NO_SERVICE, .total = 5000 };

	for (unsigned int i = 0; i < PEERS; i++) {
		/* The last peer has two connections. */
		stat_peer_add(crowd->shard->stats, STAT_REQUESTS,
			      &crowd->peers[i], id_of(i == 0 ? PEERS - 1 : i));
		r.peer = &crowd->peers[i];
		run_request_end(crowd->shard, &r, NULL, NULL);
	}
	return 0;
}

static int crowd_go(void *arg)
{
	struct crowd *crowd = arg;

	for (unsigned int i = 0; i < PEERS; i++)
		stat_peer_del(crowd->shard->stats, STAT_REQUESTS,
			      &crowd->peers[i]);
	return 0;
}

static struct loop *counted;

static int turns_of(void *arg)
{
	*(uint64_t *)arg = counted->turns;
	return 0;
}

static uint64_t turns(struct lnet *node, unsigned int cpt)
{
	uint64_t n;

	counted = node->loops[cpt];
	cr_assert_eq(lnet_call(node, cpt, turns_of, &n), 0);
	return n;
}

/* While peers are read, the CPT does other work after each slice of them. */
Test(stats, peers_are_read_in_slices)
{
	struct rig *rig = rig_open();
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	struct lnet *node = rig->rpc.node;
	uint64_t before;

	crowd->shard = &rig->shards[1];
	cr_assert_eq(lnet_call(node, 1, crowd_come, crowd), 0);
	before = turns(node, 1);
	doc_free(stats_of(rig));
	cr_assert_geq(turns(node, 1) - before, PEERS / PEERS_IN_A_TURN);
	before = turns(node, 1);
	cr_assert_eq(ulrpc_stats_reset(&rig->rpc), 0);
	cr_assert_geq(turns(node, 1) - before, PEERS / PEERS_IN_A_TURN);
	cr_assert_eq(lnet_call(node, 1, crowd_go, crowd), 0);
	free(crowd);
	rig_close(rig);
}

Test(stats, more_peers_than_are_read_in_a_turn)
{
	struct rig *rig = rig_open();
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	struct doc *doc;
	char path[64];

	crowd->shard = &rig->shards[1];
	cr_assert_eq(lnet_call(rig->rpc.node, 1, crowd_come, crowd), 0);
	doc = stats_of(rig);
	has(doc, "rpc.refused.no service", "1000");
	cr_assert_eq(count_at(doc, "rpc.clients"), PEERS - 1);
	has(doc, "rpc.clients.0.peer", "12345-10.0.0.1@tcp");
	has(doc, "rpc.clients.0.connections", "1");
	has(doc, "rpc.clients.0.times_us.total.max", "5.000");
	snprintf(path, sizeof(path), "rpc.clients.%u.connections", PEERS - 2);
	has(doc, path, "2");
	snprintf(path, sizeof(path), "rpc.clients.%u.calls", PEERS - 2);
	has(doc, path, "2");
	doc_free(doc);

	cr_assert_eq(ulrpc_stats_reset(&rig->rpc), 0);
	doc = stats_of(rig);
	has(doc, "rpc.clients.500.calls", "0");
	has(doc, "rpc.clients.500.times_us.total.count", "0");
	doc_free(doc);

	cr_assert_eq(lnet_call(rig->rpc.node, 1, crowd_go, crowd), 0);
	doc = stats_of(rig);
	cr_assert_eq(count_at(doc, "rpc.clients"), 0);
	has(doc, "rpc.clients_gone.connections", "1000");
	doc_free(doc);
	free(crowd);
	rig_close(rig);
}

/* ---- gauges ---- */

/* A server with three connections, two of which are in the same state. */
static const struct stat_peer_gauges shown[] = {
	{ "full", .rtt = 3000, .backoff = 1, .window = 2, .slots = 7,
	  .silent = 9000, .under_way = 1, .oldest = 6000 },
	{ "idle", .rtt = 5000, .backoff = 4, .window = 8, .slots = 9 },
	{ "full", .rtt = 4000, .backoff = 2, .window = 6, .slots = 1,
	  .silent = 8000, .under_way = 4, .oldest = 7000 },
};
static struct stat_peer showing[ARRAY_SIZE(shown)];

static int show_methods(struct shard *s, struct stat_shard *sum)
{
	const struct stat_method_gauges g = { 1000 * (s->cpt + 1),
					      3000 - 1000 * s->cpt };

	return stat_gauge(sum, STAT_CALLS, "alpha", 3, &g);
}

static int show_peer(struct shard *s, struct stat_peer *p,
		     struct stat_peer_gauges *g, struct stat_shard *sum)
{
	(void)s;
	(void)sum;
	*g = shown[p - showing];
	return 0;
}

static int show_begin(void *arg)
{
	static const struct stat_gauger gauger = { show_methods, show_peer };
	struct shard *s = arg;

	s->stats->gauger[STAT_CALLS] = &gauger;
	for (unsigned int i = 0; i < ARRAY_SIZE(shown) && !s->cpt; i++)
		stat_peer_add(s->stats, STAT_CALLS, &showing[i], id_of(1));
	return 0;
}

static int show_end(void *arg)
{
	struct shard *s = arg;

	for (unsigned int i = 0; i < ARRAY_SIZE(shown); i++)
		stat_peer_del(s->stats, STAT_CALLS, &showing[i]);
	return 0;
}

/* The gauges of a method are the maxima over CPTs. Those of a peer are the
 * maxima over its connections, or the sums of what is granted. */
Test(stats, gauges)
{
	struct rig *rig = rig_open();
	struct doc *doc;

	for (unsigned int i = 0; i < CPTS; i++)
		cr_assert_eq(lnet_call(rig->rpc.node, i, show_begin,
				       &rig->shards[i]),
			     0);
	doc = stats_of(rig);
	has(doc, "rpc.calls.0.estimate_us", "2.000");
	has(doc, "rpc.calls.0.timeout_us", "3.000");
	cr_assert_eq(count_at(doc, "rpc.servers"), 1);
	cr_assert_eq(count_at(doc, "rpc.servers.0.states"), 2);
	has(doc, "rpc.servers.0.states.full", "2");
	has(doc, "rpc.servers.0.states.idle", "1");
	has(doc, "rpc.servers.0.rtt_us", "5.000");
	has(doc, "rpc.servers.0.patience", "4");
	has(doc, "rpc.servers.0.window", "16");
	has(doc, "rpc.servers.0.slots", "17");
	has(doc, "rpc.servers.0.silent_us", "9.000");
	has(doc, "rpc.servers.0.under_way", "5");
	has(doc, "rpc.servers.0.oldest_us", "7.000");
	doc_free(doc);
	cr_assert_eq(lnet_call(rig->rpc.node, 0, show_end, rig->shards), 0);
	rig_close(rig);
}

/* ---- through the control ---- */

static char *ask(struct lnet_control *control, const char *request)
{
	char *answer;

	cr_assert_eq(lnet_control_request(control, request, &answer), 0);
	return answer;
}

static void status_is(struct lnet_control *control, const char *request,
		      const char *status)
{
	char *answer = ask(control, request);
	struct doc *doc = parse(answer);

	has(doc, "status", status);
	doc_free(doc);
	free(answer);
}

Test(stats, through_the_control)
{
	struct rig *rig = rig_open();
	struct lnet_control *control;
	struct doc *doc, *all;
	char *answer;

	cr_assert_eq(lnet_control_start(rig->rpc.node, NULL, &control), 0);
	status_is(control, "rpc show:", "-95");
	cr_assert_eq(ulrpc_control(&rig->rpc, control), 0);
	/* may be called again */
	cr_assert_eq(ulrpc_control(&rig->rpc, control), 0);
	cr_assert_eq(lnet_call(rig->rpc.node, 0, record_calls, rig->shards), 0);

	answer = ask(control, "rpc show: {verbose: 1}");
	doc = parse(answer);
	all = stats_of(rig);
	cr_assert(tree_eq(at(doc_root(doc), "output.rpc"),
			  at(doc_root(all), "rpc")));
	doc_free(doc);
	doc_free(all);
	free(answer);

	answer = ask(control, "rpc show:");
	doc = parse(answer);
	has(doc, "output.rpc.calls.3.calls", "1");
	cr_assert_null(strstr(answer, "buckets"));
	doc_free(doc);
	free(answer);

	status_is(control, "rpc show: {verbose: -1}", "-22");
	status_is(control, "rpc reset:", "0");
	all = stats_of(rig);
	has(all, "rpc.calls.3.calls", "0");
	doc_free(all);
	cr_assert_eq(ulrpc_control(&rig->rpc, NULL), 0);
	status_is(control, "rpc show:", "-95");
	lnet_control_stop(control);
	rig_close(rig);
}

/* The control may end before RPC does. */
Test(stats, control_ends_first)
{
	struct rig *rig = rig_open();
	struct lnet_control *control;

	cr_assert_eq(lnet_control_start(rig->rpc.node, NULL, &control), 0);
	cr_assert_eq(ulrpc_control(&rig->rpc, control), 0);
	lnet_control_stop(control);
	rig_close(rig);
}

Test(stats, rpc_ends_first)
{
	struct rig *rig = rig_open();
	struct lnet_control *control;

	cr_assert_eq(lnet_control_start(rig->rpc.node, NULL, &control), 0);
	cr_assert_eq(ulrpc_control(&rig->rpc, control), 0);
	stats_close(&rig->rpc);
	status_is(control, "rpc show:", "-95");
	lnet_control_stop(control);
	rig_close(rig);
}

static int read_in_turn(void *arg)
{
	struct ulrpc *rpc = arg;
	char *text;

	cr_assert_eq(ulrpc_stats(rpc, &text), -EDEADLK);
	cr_assert_eq(ulrpc_stats_reset(rpc), -EDEADLK);
	cr_assert_eq(ulrpc_control(rpc, NULL), -EDEADLK);
	return 0;
}

Test(stats, not_in_a_turn)
{
	struct rig *rig = rig_open();

	cr_assert_eq(lnet_call(rig->rpc.node, 0, read_in_turn, &rig->rpc), 0);
	rig_close(rig);
}
