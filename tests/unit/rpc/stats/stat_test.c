/* SPDX-License-Identifier: BSD-3-Clause */
/* How calls and requests are recorded, and in which counters. */
#include <criterion/criterion.h>
#include <string.h>
#include "rpc/run.h"

static struct stat_shard stats;
static struct runs ended = { .count = stat_on_run,
			     .failed = stat_on_failed_run };
static struct shard shard = { .stats = &stats, .runs = &ended };

static void begin(void)
{
	stat_shard_init(&stats);
	stats.shard = &shard;
}

static void end(void)
{
	stat_shard_fini(&stats);
}

TestSuite(stat, .init = begin, .fini = end);

static struct ulnet_id id_of(unsigned int n)
{
	char text[40];
	struct ulnet_id id;

	snprintf(text, sizeof(text), "12345-10.0.%u.%u@tcp", n >> 8, n & 255);
	cr_assert_eq(lnet_id_parse(text, &id), 0);
	return id;
}

static struct ulrpc_outcome ok_outcome(void)
{
	return (struct ulrpc_outcome){ .cause = ULRPC_CAUSE_OK,
				       .execution = ULRPC_EXECUTED,
				       .attempts = 1,
				       .total = 100,
				       .window = 10,
				       .wire = 50,
				       .server_queue = 30,
				       .service = 10 };
}

static const struct stat_method *only_method(const struct stat_service *sv)
{
	uint32_t bucket = 0;
	const struct stat_method *m;

	stat_fold(&stats);
	m = stat_method_walk(sv, &bucket, NULL);
	cr_assert_not_null(m);
	cr_assert_null(stat_method_walk(sv, &bucket, m));
	return m;
}

static uint64_t times_count(const struct stat_method *m, unsigned int time)
{
	return hist_count(&m->times[time]);
}

Test(stat, calls_by_method)
{
	struct stat_service *sv = stat_service_get(&stats, STAT_CALLS, "echo");
	struct ulrpc_outcome o = ok_outcome();
	struct call_report r = { .shard = &shard,
				 .stats = sv,
				 .method = 7,
				 .sent = 64,
				 .received = 32,
				 .outcome = &o };
	const struct stat_method *m;

	cr_assert_eq(stat_service_get(&stats, STAT_CALLS, "echo"), sv);
	cr_assert_neq(stat_service_get(&stats, STAT_REQUESTS, "echo"), sv);
	run_call_end(&r, NULL, NULL);
	o.attempts = 3;
	o.total = 200;
	run_call_end(&r, NULL, NULL);
	o.cause = ULRPC_CAUSE_DEADLINE;
	o.execution = ULRPC_EXECUTION_UNKNOWN;
	r.received = 0;
	run_call_end(&r, NULL, NULL);
	m = only_method(sv);
	cr_assert_eq(m->number, 7);
	cr_assert_eq(m->counts[STAT_COUNT_calls], 3);
	cr_assert_eq(m->counts[STAT_COUNT_failed], 1);
	cr_assert_eq(m->counts[STAT_COUNT_attempts], 7);
	cr_assert_eq(m->counts[STAT_COUNT_sent_bytes], 3 * 64);
	cr_assert_eq(m->counts[STAT_COUNT_received_bytes], 2 * 32);
	cr_assert_eq(m->ends[ULRPC_CAUSE_OK], 2);
	cr_assert_eq(m->ends[ULRPC_CAUSE_DEADLINE], 1);
	/* Without an answer the client does not know the times at the server.
	 */
	cr_assert_eq(times_count(m, STAT_CALL_TIME_total), 3);
	cr_assert_eq(times_count(m, STAT_CALL_TIME_connecting), 3);
	cr_assert_eq(times_count(m, STAT_CALL_TIME_wire), 2);
	cr_assert_eq(times_count(m, STAT_CALL_TIME_service), 2);
	cr_assert_eq(m->times[STAT_CALL_TIME_total].sum, 500000);
	cr_assert_eq(m->times[STAT_CALL_TIME_queue].sum, 60000);
	cr_assert_eq(stats.counts[RPC_STAT_unrecorded], 0);
}

static uint64_t failed_count(const struct stat_method *m, unsigned int end)
{
	const struct hist *h = stat_failed_times(m, end);

	return h ? hist_count(h) : 0;
}

/* How long calls took is known for each cause. */
Test(stat, times_by_cause)
{
	static const enum ulrpc_cause causes[] = {
		ULRPC_CAUSE_OK,	      ULRPC_CAUSE_DEADLINE, ULRPC_CAUSE_OK,
		ULRPC_CAUSE_CANCELED, ULRPC_CAUSE_DEADLINE,
	};
	struct stat_service *sv = stat_service_get(&stats, STAT_CALLS, "echo");
	struct ulrpc_outcome o = ok_outcome();
	struct call_report r = {
		.shard = &shard, .stats = sv, .method = 7, .outcome = &o
	};
	const struct stat_method *m;
	struct stat_shard sum;
	struct hist ok;

	for (unsigned int i = 0; i < ARRAY_SIZE(causes); i++) {
		o.cause = causes[i];
		o.total = 100 << i;
		run_call_end(&r, NULL, NULL);
	}
	m = only_method(sv);
	cr_expect_eq(times_count(m, STAT_CALL_TIME_total), 5);
	cr_expect_eq(failed_count(m, ULRPC_CAUSE_DEADLINE), 2);
	cr_expect_eq(stat_failed_times(m, ULRPC_CAUSE_DEADLINE)->sum, 1800000);
	cr_expect_eq(failed_count(m, ULRPC_CAUSE_CANCELED), 1);
	cr_expect_null(stat_failed_times(m, ULRPC_CAUSE_HANDLER));
	stat_ok_times(m, &ok);
	cr_expect_eq(hist_count(&ok), 2);
	cr_expect_eq(ok.sum, 500000);

	stat_shard_init(&sum);
	cr_assert_eq(stat_shard_merge(&sum, &stats, 0), 0);
	cr_assert_eq(stat_shard_merge(&sum, &stats, 0), 0);
	m = only_method(stat_service_get(&sum, STAT_CALLS, "echo"));
	cr_expect_eq(failed_count(m, ULRPC_CAUSE_DEADLINE), 4);
	stat_ok_times(m, &ok);
	cr_expect_eq(hist_count(&ok), 4);
	stat_shard_reset(&sum);
	cr_expect_null(stat_failed_times(m, ULRPC_CAUSE_DEADLINE));
	stat_ok_times(m, &ok);
	cr_expect_eq(hist_count(&ok), 0);
	stat_shard_fini(&sum);
}

/* Many methods, in any order, have counters of their own. */
Test(stat, many_methods)
{
	struct stat_service *sv = stat_service_get(&stats, STAT_CALLS, "x");
	struct ulrpc_outcome o = ok_outcome();
	struct stat_method *m = NULL;
	uint32_t bucket = 0;
	unsigned int n = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		struct call_report r = { .shard = &shard,
					 .stats = sv,
					 .method = i * i % 101 << 20,
					 .outcome = &o };

		run_call_end(&r, NULL, NULL);
	}
	stat_fold(&stats);
	while ((m = stat_method_walk(sv, &bucket, m))) {
		uint64_t want = 0;

		for (uint32_t i = 0; i < 1000; i++)
			want += i * i % 101 << 20 == m->number;
		cr_assert_eq(m->counts[STAT_COUNT_calls], want);
		n++;
	}
	cr_assert_eq(n, 51); /* squares modulo 101 */
}

/* A call for which there is no memory counts as unrecorded. */
Test(stat, unrecorded)
{
	struct ulrpc_outcome o = ok_outcome();
	struct call_report r = { .shard = &shard, .outcome = &o };

	run_call_end(&r, NULL, NULL);
	run_call_end(&r, NULL, NULL);
	stat_fold(&stats);
	cr_assert_eq(stats.counts[RPC_STAT_unrecorded], 2);
}

static struct request_report request_to(struct stat_service *sv,
					unsigned int how)
{
	return (struct request_report){ .service = sv,
					.method = 5,
					.end = how,
					.total = 9000,
					.queue = 1000,
					.service_time = 8000,
					.received = 100,
					.sent = 10,
					.run = how == WIRE_OK ||
					       how == WIRE_FAILED };
}

Test(stat, requests_by_method)
{
	struct stat_service *sv = stat_service_get(&stats, STAT_REQUESTS, "s");
	static const unsigned int ends[] = { WIRE_OK,	   WIRE_FAILED,
					     WIRE_OK,	   WIRE_OVERLOADED,
					     WIRE_EXPIRED, STAT_UNANSWERED };
	const struct stat_method *m;

	cr_assert_eq(stat_method_add(sv, 5), 0);
	cr_assert_eq(stat_method_add(sv, 5), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(ends); i++) {
		struct request_report r = request_to(sv, ends[i]);
		const struct bulk_report bulk = { .time = 5000, .sent = 4096 };

		r.bulk = i == 0 ? &bulk : NULL;
		run_request_end(&shard, &r, NULL, NULL);
	}
	m = only_method(sv);
	cr_assert_eq(m->counts[STAT_COUNT_calls], 6);
	cr_assert_eq(m->counts[STAT_COUNT_failed], 4);
	cr_assert_eq(m->counts[STAT_COUNT_bulk_sent_bytes], 4096);
	cr_assert_eq(m->ends[WIRE_OK], 2);
	cr_assert_eq(m->ends[WIRE_OVERLOADED], 1);
	cr_assert_eq(m->ends[STAT_UNANSWERED], 1);
	cr_assert_eq(failed_count(m, WIRE_OVERLOADED), 1);
	cr_assert_eq(failed_count(m, STAT_UNANSWERED), 1);
	cr_assert_eq(times_count(m, STAT_REQUEST_TIME_total), 6);
	cr_assert_eq(times_count(m, STAT_REQUEST_TIME_queue), 3);
	cr_assert_eq(times_count(m, STAT_REQUEST_TIME_service), 3);
	cr_assert_eq(times_count(m, STAT_REQUEST_TIME_bulk), 1);
}

/* Requests for unknown methods do not add methods to the statistics. */
Test(stat, requests_for_what_is_not)
{
	struct stat_service *sv = stat_service_get(&stats, STAT_REQUESTS, "s");
	uint32_t bucket = 0;

	for (uint32_t i = 0; i < 100; i++) {
		struct request_report r = request_to(sv, WIRE_NO_METHOD);

		r.method = i;
		run_request_end(&shard, &r, NULL, NULL);
		r.service = NULL;
		r.end = WIRE_NO_SERVICE;
		run_request_end(&shard, &r, NULL, NULL);
	}
	stat_fold(&stats);
	cr_assert_null(stat_method_walk(sv, &bucket, NULL));
	cr_assert_eq(sv->refused[WIRE_NO_METHOD], 100);
	cr_assert_eq(stats.refused[WIRE_NO_SERVICE], 100);
}

/* The time in which a request was throttled has a histogram of its own. */
Test(stat, throttled)
{
	struct stat_service *sv = stat_service_get(&stats, STAT_REQUESTS, "s");
	struct stat_service *cv = stat_service_get(&stats, STAT_CALLS, "s");
	struct request_report r = request_to(sv, WIRE_OK);
	struct ulrpc_outcome o = ok_outcome();
	struct call_report call = {
		.shard = &shard, .stats = cv, .method = 7, .outcome = &o
	};

	cr_assert_eq(stat_method_add(sv, 5), 0);
	for (unsigned int i = 0; i < 5; i++) {
		r.throttled = i == 1 || i == 2 ? 7000 : 0;
		o.server_throttled = r.throttled / 1000;
		run_request_end(&shard, &r, NULL, NULL);
		run_call_end(&call, NULL, NULL);
	}
	cr_assert_eq(times_count(only_method(sv), STAT_REQUEST_TIME_queue), 5);
	cr_assert_eq(times_count(only_method(sv), STAT_REQUEST_TIME_throttled),
		     2);
	cr_assert_eq(times_count(only_method(cv), STAT_CALL_TIME_queue), 5);
	cr_assert_eq(times_count(only_method(cv), STAT_CALL_TIME_throttled), 2);
	cr_assert_eq(only_method(cv)->times[STAT_CALL_TIME_throttled].sum,
		     14000);
}

Test(stat, peers)
{
	struct stat_service *sv = stat_service_get(&stats, STAT_REQUESTS, "s");
	struct request_report r = request_to(sv, WIRE_OK);
	struct stat_peer a = { 0 }, b = { 0 };

	cr_assert_eq(stat_method_add(sv, 5), 0);
	stat_peer_add(&stats, STAT_REQUESTS, &a, id_of(1));
	stat_peer_add(&stats, STAT_REQUESTS, &b, id_of(2));
	r.peer = &a;
	run_request_end(&shard, &r, NULL, NULL);
	run_request_end(&shard, &r, NULL, NULL);
	stat_fold(&stats);
	cr_assert_eq(a.counts[STAT_COUNT_calls], 2);
	cr_assert_eq(a.counts[STAT_COUNT_received_bytes], 200);
	cr_assert_eq(a.times->sum, 18000);
	/* A peer without calls has no histogram. */
	cr_assert_null(b.times);
	stat_peer_del(&stats, STAT_REQUESTS, &a);
	stat_peer_del(&stats, STAT_REQUESTS, &a);
	stat_peer_del(&stats, STAT_REQUESTS, &b);
	cr_assert_null(a.times);
	cr_assert_eq(stats.gone[STAT_REQUESTS].peers, 2);
	cr_assert_eq(stats.gone[STAT_REQUESTS].counts[STAT_COUNT_calls], 2);
	cr_assert_eq(hist_count(&stats.gone[STAT_REQUESTS].times), 2);
	cr_assert_eq(stats.gone[STAT_CALLS].peers, 0);
}

/* Peers are added and removed while a reader walks them, one part per turn. */
Test(stat, peers_read_in_steps)
{
	struct stat_peer p[6] = { 0 };
	struct stat_cursor *c, *other;

	for (unsigned int i = 0; i < 5; i++)
		stat_peer_add(&stats, STAT_CALLS, &p[i], id_of(i));
	c = stat_cursor_new(&stats, STAT_CALLS);
	other = stat_cursor_new(&stats, STAT_CALLS);
	cr_assert_eq(stat_cursor_next(&stats, c), &p[0]);
	/* the cursor is past this one */
	stat_peer_del(&stats, STAT_CALLS, &p[0]);
	/* both cursors stand at this one */
	stat_peer_del(&stats, STAT_CALLS, &p[1]);
	cr_assert_eq(stat_cursor_next(&stats, c), &p[2]);
	stat_peer_del(&stats, STAT_CALLS, &p[4]);
	stat_peer_add(&stats, STAT_CALLS, &p[5], id_of(5));
	cr_assert_eq(stat_cursor_next(&stats, c), &p[3]);
	cr_assert_eq(stat_cursor_next(&stats, c), &p[5]);
	cr_assert_null(stat_cursor_next(&stats, c));
	cr_assert_null(stat_cursor_next(&stats, c));
	cr_assert_eq(stat_cursor_next(&stats, other), &p[2]);
	stat_cursor_end(c);
	/* The second cursor is freed with the shard. */
	for (unsigned int i = 0; i < 6; i++)
		stat_peer_del(&stats, STAT_CALLS, &p[i]);
}

Test(stat, merge_and_reset)
{
	struct stat_service *sv = stat_service_get(&stats, STAT_REQUESTS, "s");
	struct request_report r = request_to(sv, WIRE_OK);
	struct stat_peer peer = { 0 };
	const struct stat_method *m;
	struct stat_shard sum;

	cr_assert_eq(stat_method_add(sv, 5), 0);
	stat_peer_add(&stats, STAT_REQUESTS, &peer, id_of(1));
	r.peer = &peer;
	run_request_end(&shard, &r, NULL, NULL);
	r.service = NULL;
	run_request_end(&shard, &r, NULL, NULL);
	stat_peer_del(&stats, STAT_REQUESTS, &peer);
	stat_count(&shard, RPC_STAT_replies_late);

	stat_shard_init(&sum);
	cr_assert_eq(stat_shard_merge(&sum, &stats, 0), 0);
	cr_assert_eq(stat_shard_merge(&sum, &stats, 0), 0);
	sv = stat_service_get(&sum, STAT_REQUESTS, "s");
	m = only_method(sv);
	cr_assert_eq(m->counts[STAT_COUNT_calls], 2);
	cr_assert_eq(times_count(m, STAT_REQUEST_TIME_service), 2);
	cr_assert_eq(m->times[STAT_REQUEST_TIME_total].max, 9000);
	cr_assert_eq(sum.counts[RPC_STAT_replies_late], 2);
	cr_assert_eq(sum.refused[WIRE_OK], 2);
	cr_assert_eq(sum.gone[STAT_REQUESTS].peers, 2);
	cr_assert_eq(hist_count(&sum.gone[STAT_REQUESTS].times), 4);

	stat_shard_reset(&sum);
	cr_assert_eq(m->counts[STAT_COUNT_calls], 0);
	cr_assert_eq(m->ends[WIRE_OK], 0);
	cr_assert_eq(times_count(m, STAT_REQUEST_TIME_service), 0);
	cr_assert_eq(sum.counts[RPC_STAT_replies_late], 0);
	cr_assert_eq(sum.refused[WIRE_OK], 0);
	cr_assert_eq(sum.gone[STAT_REQUESTS].peers, 0);
	stat_shard_fini(&sum);
}

/* ---- runs ---- */

struct some {
	struct stat_shard stats;
	struct runs runs;
	struct shard shard;
	struct stat_service *services[2];
	struct stat_peer peers[2];
};

static void some_begin(struct some *s)
{
	stat_shard_init(&s->stats);
	s->shard.stats = &s->stats;
	s->stats.shard = &s->shard;
	s->shard.runs = &s->runs;
	s->runs.count = stat_on_run;
	s->services[0] = stat_service_get(&s->stats, STAT_CALLS, "a");
	s->services[1] = stat_service_get(&s->stats, STAT_CALLS, "b");
	for (unsigned int i = 0; i < 2; i++)
		stat_peer_add(&s->stats, STAT_CALLS, &s->peers[i], id_of(i));
}

static void some_end(struct some *s)
{
	for (unsigned int i = 0; i < 2; i++)
		stat_peer_del(&s->stats, STAT_CALLS, &s->peers[i]);
	stat_shard_fini(&s->stats);
}

/* Records calls each of which differs from the one before in at most one thing.
 * @fold_each: statistics are brought up to date after each call. */
static void some_calls(struct some *s, bool fold_each)
{
	struct ulrpc_outcome o = ok_outcome();
	struct call_report r = { .shard = &s->shard,
				 .stats = s->services[0],
				 .peer = &s->peers[0],
				 .outcome = &o };
	uint64_t random = 1;

	for (unsigned int i = 0; i < 20000; i++) {
		unsigned int thing, value;

		random = random * UINT64_C(6364136223846793005) + 1;
		thing = (unsigned int)(random >> 59);
		value = random >> 58 & 1;
		if (thing < 6)
			(&o.total)[thing] = value * 1000;
		else if (thing == 6)
			r.stats = s->services[value];
		else if (thing == 7)
			r.peer = value ? &s->peers[1] : NULL;
		else if (thing == 8)
			r.method = value;
		else if (thing == 9)
			o.cause = value ? ULRPC_CAUSE_OK : ULRPC_CAUSE_HANDLER;
		else if (thing == 10)
			o.execution =
				value ? ULRPC_EXECUTED : ULRPC_NOT_EXECUTED;
		o.attempts = 1 + value;
		r.sent = thing;
		r.received = value;
		r.bulk_sent = 4096;
		run_call_end(&r, NULL, NULL);
		if (thing == 11)
			stat_call_late(&r);
		if (fold_each)
			stat_fold(&s->stats);
	}
	stat_fold(&s->stats);
}

static void assert_same_method(const struct stat_method *a,
			       const struct stat_method *b)
{
	cr_assert_eq(memcmp(a->counts, b->counts, sizeof(a->counts)), 0);
	cr_assert_eq(memcmp(a->ends, b->ends, sizeof(a->ends)), 0);
	cr_assert_eq(memcmp(a->times, b->times,
			    STAT_CALL_TIMES_ALL * sizeof(a->times[0])),
		     0);
	cr_assert_gt(a->counts[STAT_COUNT_calls], 0);
}

/* Calls that are counted in runs give the same sums as when each is counted at
 * once. */
Test(stat, runs_lose_nothing)
{
	static struct some runs, each;
	uint64_t failed = 0;

	some_begin(&runs);
	some_begin(&each);
	some_calls(&runs, false);
	some_calls(&each, true);
	for (unsigned int i = 0; i < 4; i++) {
		const struct stat_method *m =
			stat_method_find(runs.services[i / 2], i % 2);

		assert_same_method(
			m, stat_method_find(each.services[i / 2], i % 2));
		failed += m->counts[STAT_COUNT_failed];
	}
	cr_assert_gt(failed, 0);
	for (unsigned int i = 0; i < 2; i++) {
		const struct stat_peer *p = &runs.peers[i], *q = &each.peers[i];

		cr_assert_eq(memcmp(p->counts, q->counts, sizeof(p->counts)),
			     0);
		cr_assert_eq(memcmp(p->times, q->times, sizeof(*p->times)), 0);
	}
	some_end(&runs);
	some_end(&each);
}

/* A run is at most as long as a counter of struct hist_small can hold. */
Test(stat, a_run_has_a_longest)
{
	struct stat_service *sv = stat_service_get(&stats, STAT_REQUESTS, "s");
	struct request_report r = request_to(sv, WIRE_OK);
	struct stat_peer peer = { 0 };
	const struct stat_method *m;

	cr_assert_eq(stat_method_add(sv, 5), 0);
	stat_peer_add(&stats, STAT_REQUESTS, &peer, id_of(1));
	r.peer = &peer;
	run_request_end(&shard, &r, NULL, NULL);
	/* as if so many calls had ended */
	ended.run[STAT_REQUESTS].counts[STAT_COUNT_calls] = UINT32_MAX - 1;
	for (int i = 0; i < 3; i++)
		run_request_end(&shard, &r, NULL, NULL);
	m = only_method(sv);
	cr_assert_eq(m->counts[STAT_COUNT_calls], UINT64_C(0x100000001));
	cr_assert_eq(times_count(m, STAT_REQUEST_TIME_total),
		     UINT64_C(0x100000001));
	cr_assert_eq(peer.counts[STAT_COUNT_calls], UINT64_C(0x100000001));
	stat_peer_del(&stats, STAT_REQUESTS, &peer);
	cr_assert_eq(hist_count(&stats.gone[STAT_REQUESTS].times),
		     UINT64_C(0x100000001));
}

/* A peer is removed, and another one is added in the same memory, while a run
 * is open. */
Test(stat, run_of_a_peer_that_goes)
{
	struct stat_service *sv = stat_service_get(&stats, STAT_REQUESTS, "s");
	struct request_report r = request_to(sv, WIRE_OK);
	struct stat_peer peer = { 0 };
	const uint64_t *gone = stats.gone[STAT_REQUESTS].counts;

	cr_assert_eq(stat_method_add(sv, 5), 0);
	r.peer = &peer;
	stat_peer_add(&stats, STAT_REQUESTS, &peer, id_of(1));
	run_request_end(&shard, &r, NULL, NULL);
	stat_peer_del(&stats, STAT_REQUESTS, &peer);
	cr_assert_eq(gone[STAT_COUNT_calls], 1);
	/* a request that ends after its peer was removed */
	run_request_end(&shard, &r, NULL, NULL);
	peer = (struct stat_peer){ 0 };
	stat_peer_add(&stats, STAT_REQUESTS, &peer, id_of(2));
	run_request_end(&shard, &r, NULL, NULL);
	stat_fold(&stats);
	cr_assert_eq(gone[STAT_COUNT_calls], 2);
	cr_assert_eq(peer.counts[STAT_COUNT_calls], 1);
	cr_assert_eq(hist_count(&stats.gone[STAT_REQUESTS].times), 2);
	stat_peer_del(&stats, STAT_REQUESTS, &peer);
}
