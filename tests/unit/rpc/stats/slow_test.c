/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the slowest calls and requests: what enters them, for how long
 * it stays, and what is known of it. */
#include <string.h>
#include "rpc/stats/slow.h"
#include "rpc/stats/stats.h"
#include "rpc/text.h"
#include "tests/unit/rpc/server/request_rig.h"

/* ---- the table ---- */

static struct slow table;

static void add(uint64_t total, uint64_t ended)
{
	const struct slow_entry e = { .ended = ended, .times = { total } };

	if (slow_enters(&table, total, ended))
		slow_add(&table, &e);
}

/* The sum of the table at @now has these total times, which end with 0. */
static void holds(uint64_t now, const uint64_t *totals)
{
	struct slow sum = { 0 };
	unsigned int n = 0;

	slow_merge(&sum, &table, now);
	slow_sort(&sum);
	for (; totals[n]; n++) {
		cr_assert_lt(n, sum.now.n, "only %u", n);
		cr_assert_eq(sum.now.entries[n].times[0], totals[n],
			     "%u: %ju", n,
			     (uintmax_t)sum.now.entries[n].times[0]);
	}
	cr_assert_eq(sum.now.n, n, "%u", sum.now.n);
}

#define HOLDS(now, ...) holds(now, (const uint64_t[]){ __VA_ARGS__, 0 })

Test(slow, the_slowest_stay)
{
	const uint64_t t = SEC;

	for (uint64_t i = 1; i <= 5; i++)
		add(i * 10, t + i);
	HOLDS(t, 50, 40, 30, 20, 10);
	for (uint64_t i = 6; i <= 20; i++)
		add(i * 10, t + i);
	HOLDS(t, 200, 190, 180, 170, 160, 150, 140, 130);
	/* The least of them and what is below it do not enter. */
	cr_assert(!slow_enters(&table, 130, t));
	cr_assert(!slow_enters(&table, 7, t));
	add(130, t);
	add(135, t);
	add(500, t);
	HOLDS(t, 500, 200, 190, 180, 170, 160, 150, 140);
}

Test(slow, nothing_that_took_no_time)
{
	add(0, SEC);
	holds(SEC, (const uint64_t[]){ 0 });
}

/* What is slower than all that comes later leaves with the second window. */
Test(slow, windows)
{
	const uint64_t t = SEC;

	for (unsigned int i = 0; i < SLOW_PLACES; i++)
		add(1000 + i, t);
	add(5, t + SLOW_WINDOW - 1);
	HOLDS(t, 1007, 1006, 1005, 1004, 1003, 1002, 1001, 1000);
	add(5, t + SLOW_WINDOW);
	add(6, t + SLOW_WINDOW + 1);
	cr_assert_eq(table.now.n, 2);
	HOLDS(t + SLOW_WINDOW, 1007, 1006, 1005, 1004, 1003, 1002, 1001, 1000);
	/* A reader does not see what is older, even if nothing has come. */
	HOLDS(t + 2 * SLOW_WINDOW, 6, 5);
	add(7, t + 2 * SLOW_WINDOW);
	HOLDS(t + 2 * SLOW_WINDOW, 7, 6, 5);
	holds(t + 5 * SLOW_WINDOW, (const uint64_t[]){ 0 });
	add(8, t + 5 * SLOW_WINDOW);
	HOLDS(t + 5 * SLOW_WINDOW, 8);
}

/* ---- of calls and requests ---- */

static struct serve_rig g;

#define TRACE "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

/* Makes a call that has a trace, and whose handler takes @ns. */
static void call_taking(const char *method, uint64_t ns)
{
	const struct ulrpc_call_conf conf = { .deadline = 100000000,
					      .trace = TRACE };
	struct called c = { 0 };

	cr_assert_eq(ulrpc_call(g.client, ulrpc_method(method), "hello", 5,
				&conf, on_called, &c, NULL),
		     0);
	lnet_sim_run(g.sim, 10 * MSEC + ns);
	serve_release(&g.served);
	lnet_sim_run(g.sim, 10 * MSEC);
	cr_assert_eq(c.ended, 1);
}

static struct slow_entry slowest(unsigned int node, enum stat_side side)
{
	struct stats_sum *sum;
	struct stat_service *sv;
	struct slow_entry e;

	cr_assert_eq(stats_sum(g.rpc[node], false, &sum), 0);
	sv = stat_service_get(&sum->all, side, "test");
	slow_sort(&sv->slow);
	cr_assert_gt(sv->slow.now.n, 0);
	e = sv->slow.now.entries[0];
	stats_sum_free(sum);
	return e;
}

static void check_entry(const struct slow_entry *e, uint64_t parts)
{
	char trace[ULRPC_TRACE_SIZE];

	cr_expect_eq(e->method, ulrpc_method("park"));
	cr_expect_eq(e->end, 0);
	cr_expect(e->traced);
	trace_format(e->trace, trace);
	cr_expect_str_eq(trace, TRACE);
	cr_expect_geq(e->times[0], 300 * MSEC);
	cr_expect_leq(parts, e->times[0]);
	cr_expect_geq(parts, 300 * MSEC);
	cr_expect_str_eq(e->name, "");
	cr_expect_geq(e->ended, 9 * MSEC);
	cr_expect_leq(e->ended, 11 * MSEC);
}

Test(slow, calls_and_requests)
{
	struct slow_entry e;

	serve_init(&g, 1, 1);
	lnet_sim_run(g.sim, MSEC); /* as the time 0 stands for "never" */
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	serve_client(&g);
	call_taking("hold", 100 * MSEC);
	call_taking("park", 300 * MSEC);

	e = slowest(CALLER, STAT_CALLS);
	check_entry(&e, e.times[STAT_CALL_TIME_wire] +
				e.times[STAT_CALL_TIME_queue] +
				e.times[STAT_CALL_TIME_service]);
	cr_expect_eq(e.attempts, 1);
	cr_expect(lnet_nid_eq(&e.peer.nid, &(struct ulnet_nid){ 0 }) == false);

	e = slowest(SERVER, STAT_REQUESTS);
	check_entry(&e, e.times[STAT_REQUEST_TIME_queue] +
				e.times[STAT_REQUEST_TIME_service]);
	cr_expect_geq(e.times[STAT_REQUEST_TIME_service], 300 * MSEC);
	cr_expect(e.known & 1u << STAT_REQUEST_TIME_service);
	cr_expect(!(e.known & 1u << STAT_REQUEST_TIME_bulk));

	cr_assert_eq(ulrpc_stats_reset(g.rpc[SERVER]), 0);
	call_taking("hold", 10 * MSEC);
	cr_expect_eq(slowest(SERVER, STAT_REQUESTS).method,
		     ulrpc_method("hold"));
	ulrpc_client_close(g.client);
	serve_fini(&g);
}
