/* SPDX-License-Identifier: BSD-3-Clause */
/* Extensions: the server tells a client before T is over that its request takes
 * longer. */
#include <errno.h>

#include "rpc/server/serve/deadline.h"
#include "tests/unit/rpc/server/request_rig.h"

static struct wire_call slow(uint64_t xid, const char *method, uint64_t timeout,
			     uint64_t remaining)
{
	struct wire_call c = raw_client_call_of(xid, method, 1);

	c.slot = (uint32_t)xid + 20;
	c.timeout = timeout;
	c.remaining = remaining;
	return c;
}

static void send_slow(uint64_t xid, const char *method, uint64_t timeout,
		      uint64_t remaining)
{
	struct wire_call c = slow(xid, method, timeout, remaining);

	raw_client_send(&a, &c, 1, "x", 0);
}

/* Begins with a server for which clients may be silent, and handlers slow, for
 * as long as they like. */
static void patient_rig(struct serve_rig *g, struct ulrpc_service_conf *conf)
{
	struct ulrpc_conf rpc;

	ulrpc_conf_init(&rpc);
	rpc.keepalive = 1000000000000000;
	conf->stuck = ULRPC_NEVER;
	serve_init(g, 1, 1);
	serve_open(g, &rpc);
	if (conf->methods)
		serve_start(g, conf);
	else
		serve_start_with(g, conf);
	raw_client_init(&a, g->sim, CALLER, SERVER);
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_OK);
}

static uint64_t now(const struct serve_rig *g)
{
	return lnet_now(g->node[CALLER], 0);
}

static void run_until(struct serve_rig *g, uint64_t at)
{
	lnet_sim_run(g->sim, at - now(g));
}

/* Whether extension @i prolongs T until @at, ns, to the microsecond. */
static bool is_until(unsigned int i, uint64_t at)
{
	uint64_t to = a.extended[i] + a.extension[i].extend * NSEC_PER_USEC;

	return to <= at && at < to + NSEC_PER_USEC;
}

Test(extend, says_state_and_progress)
{
	const struct wire_extension *x = a.extension;
	struct serve_rig g;
	uint64_t t0;

	rig(&g);
	t0 = now(&g);
	send_slow(1, "park", 1000000, 60000000);
	send_slow(2, "work", 1000000, 60000000);
	send_slow(3, "work", 1000000, 60000000);
	run_until(&g, t0 + 770 * MSEC);
	cr_assert_eq(a.extends, 0);
	ulrpc_progress(g.served.park[0], 123);
	run_until(&g, t0 + 900 * MSEC);
	cr_assert_eq(a.extends, 1, "in one message");
	cr_assert_eq(a.nextensions, 3);
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(x[i].xid, i + 1);
		cr_assert_eq(x[i].slot, i + 21);
		cr_assert_eq(x[i].attempt, 0);
		cr_assert(is_until(i, t0 + 1500 * MSEC));
		cr_assert_eq(x[i].state, i ? WIRE_QUEUED : WIRE_RUNNING);
		cr_assert_eq(x[i].position, i ? i - 1 : 0);
		cr_assert_eq(x[i].progress, i ? 0 : 123);
	}
	ulrpc_progress(g.served.park[0], 5000);
	run_until(&g, t0 + 1400 * MSEC);
	cr_assert_eq(x[3].progress, 1000);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(a.replies, 3);
	lnet_sim_run(g.sim, 10 * SEC);
	cr_assert_eq(a.nextensions, 6, "nothing more");
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_extends_sent), 2);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_extensions_sent), 6);
	serve_fini(&g);
}

static unsigned int log2_up(uint64_t n, uint64_t by)
{
	unsigned int l = 0;

	while (by << l < n)
		l++;
	return l;
}

/* us: the most that one extension prolongs T by, and the longest extension that
 * a client accepts */
#define STEP_MAX UINT64_C(240000000)
#define BELIEVED UINT64_C(300000000)

/* Returns how many extensions a call that takes @total us, and has T =
 * @timeout, may have at most. */
static unsigned int extensions_max(uint64_t total, uint64_t timeout)
{
	return log2_up(total, timeout) + 2 + (unsigned int)(total / STEP_MAX);
}

/* Whatever T is, and however long the call takes: T as the client knows it
 * never runs out, never moves back, and is never prolonged by more than a
 * client accepts; and the client gets no more than ceil(log2(total/T)) + 2
 * extensions, plus one for each four minutes (P5, and the invariants of slow
 * servers). */
static void as_few_as_possible(uint64_t rtt)
{
	static const uint64_t timeouts[] = { 2000,    50000,	50001,
					     61234,   333333,	1000000,
					     4000000, 70000000, 400000000 };
	static const uint64_t percent[] = { 60,	 101,  149,   151,   250,
					    900, 3333, 17000, 123456 };
	struct ulrpc_service_conf conf = { 0 };
	struct serve_rig g;
	uint64_t xid = 0;

	patient_rig(&g, &conf);
	a.rtt = rtt;
	raw_client_keepalive(&a);
	for (unsigned int i = 0; i < ARRAY_SIZE(timeouts); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(percent); j++) {
			uint64_t total = timeouts[i] * percent[j] / 100;
			uint64_t t0 = now(&g), end = timeouts[i];
			unsigned int n = 0;

			a.nextensions = 0;
			send_slow(++xid, "hold", timeouts[i], 1000000000000);
			run_until(&g, t0 + total * NSEC_PER_USEC);
			for (; n < a.nextensions; n++) {
				uint64_t at =
					(a.extended[n] - t0) / NSEC_PER_USEC;
				uint64_t to = at + a.extension[n].extend;

				cr_assert_eq(a.extension[n].xid, xid);
				cr_assert_lt(at, end, "late");
				cr_assert_gt(to, end, "back");
				cr_assert_leq(a.extension[n].extend, BELIEVED);
				end = to;
			}
			cr_assert_gt(end, total, "of %llu after %llu, %u",
				     (unsigned long long)timeouts[i],
				     (unsigned long long)total, n);
			cr_assert_leq(n, extensions_max(total, timeouts[i]));
			serve_release(&g.served);
			settle(&g);
		}
	}
	serve_fini(&g);
}

Test(extend, as_few_as_possible)
{
	as_few_as_possible(0);
}

/* The number of extensions does not depend on the round trip that the client
 * reports. */
Test(extend, as_few_for_distant_clients)
{
	as_few_as_possible(30000);
	as_few_as_possible(300000);
	as_few_as_possible(UINT64_MAX);
}

/* An extension is sent two round trips before the end of T, or half of T if
 * that is less. The round trip is the one that the client last reported, in an
 * Open or a Keepalive. */
Test(extend, two_round_trips_before_the_end)
{
	static const struct {
		uint64_t rtt, timeout; /* us */
		uint64_t least, most;  /* ms: when the extension is sent */
	} cases[] = {
		{ 0, 1000000, 775, 900 },
		{ 10000, 1000000, 775, 900 },
		{ 200000, 1000000, 475, 600 },
		/* the round trip reported last stays in force */
		{ 0, 1000000, 475, 600 },
		{ 400000, 1000000, 375, 500 },
	};
	struct ulrpc_service_conf conf = { 0 };
	struct serve_rig g;

	patient_rig(&g, &conf);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t t0, at;

		a.rtt = cases[i].rtt;
		if (i % 2)
			raw_client_keepalive(&a);
		else
			raw_client_open(&a, "test");
		a.nextensions = 0;
		t0 = now(&g);
		send_slow(i + 1, "hold", cases[i].timeout, 1000000000000);
		run_until(&g, t0 + cases[i].timeout * NSEC_PER_USEC);
		cr_assert_geq(a.nextensions, 1);
		at = (a.extended[0] - t0) / MSEC;
		cr_assert(at >= cases[i].least && at <= cases[i].most,
			  "%u: %lu", i, (unsigned long)at);
		serve_release(&g.served);
		settle(&g);
	}
	serve_fini(&g);
}

/* An extension never goes beyond the caller's deadline, and none is sent when
 * the deadline is near. When it is over the call is refused as expired. */
Test(extend, to_the_callers_deadline)
{
	struct serve_rig g;
	uint64_t t0;

	rig(&g);
	raw_client_call(&a, 1, "park", "x");
	settle(&g);
	t0 = now(&g);
	send_slow(2, "work", 1000000, 1400000);
	send_slow(3, "work", 1000000, 1000000);
	send_slow(4, "work", 0, 1200000);
	run_until(&g, t0 + 1000 * MSEC);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_EXPIRED);
	cr_assert_eq(a.nextensions, 1);
	cr_assert_eq(a.extension[0].xid, 2);
	cr_assert(is_until(0, t0 + 1400 * MSEC));
	run_until(&g, t0 + 1200 * MSEC);
	cr_assert_eq(raw_client_reply(&a, 4)->status, WIRE_EXPIRED);
	run_until(&g, t0 + 1394 * MSEC);
	cr_assert_eq(a.replies, 2);
	/* The refusal is sent 5 ms before the deadline, to be there in time. */
	run_until(&g, t0 + 1396 * MSEC);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_EXPIRED);
	cr_assert_eq(a.nextensions, 1);
	serve_release(&g.served);
	serve_fini(&g);
}

/* A call without a deadline is extended for as long as it takes. */
Test(extend, without_a_deadline)
{
	struct serve_rig g;

	rig(&g);
	raw_client_call(&a, 1, "park", "x");
	settle(&g);
	send_slow(2, "work", 100000, 0);
	send_slow(3, "hold", 100000, 0);
	lnet_sim_run(g.sim, 50 * SEC);
	cr_assert_eq(a.replies, 0);
	cr_assert_gt(a.nextensions, 10);
	cr_assert_not(ulrpc_request_canceled(g.served.park[1]));
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_OK);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_OK);
	serve_fini(&g);
}

/* If the server's estimate says that a call takes longer than T, its extension
 * is sent at once. */
Test(extend, at_once)
{
	struct serve_rig g;
	uint64_t t0;

	rig(&g);
	for (uint64_t xid = 1; xid <= 8; xid++) {
		raw_client_call(&a, xid, "park", "x");
		lnet_sim_run(g.sim, SEC);
		serve_release(&g.served);
		settle(&g);
	}
	cr_assert_eq(a.nextensions, 0);
	t0 = now(&g);
	send_slow(11, "park", 3000000, 60000000);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(a.nextensions, 0, "it has time");
	send_slow(12, "park", 500000, 60000000);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(a.nextensions, 1);
	cr_assert_eq(a.extension[0].xid, 12);
	cr_assert_geq(a.extension[0].extend, 1000000);
	/* So is that of a call that waits behind such a one, even if nothing is
	 * known of its own method. */
	send_slow(13, "low", 500000, 60000000);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(a.nextensions, 2);
	cr_assert_eq(a.extension[1].xid, 13);
	cr_assert_eq(a.extension[1].state, WIRE_QUEUED);
	cr_assert_eq(a.extension[1].position, 1);
	run_until(&g, t0 + SEC);
	cr_assert_eq(a.nextensions, 2, "and not again");
	while (g.served.parked) {
		serve_release(&g.served);
		settle(&g);
	}
	serve_fini(&g);
}

/* An extension says that the call is throttled if rules of the policy hold it
 * back. */
Test(extend, throttled)
{
	struct ulrpc_service_conf conf;
	struct serve_rig g;

	ulrpc_service_conf_init(&conf);
	conf.policy = "tbf rate=1 depth=1";
	patient_rig(&g, &conf);
	send_slow(1, "work", 500000, 60000000);
	send_slow(2, "work", 500000, 60000000);
	lnet_sim_run(g.sim, 10 * MSEC);
	cr_assert_eq(a.replies, 1);
	cr_assert_eq(a.nextensions, 1, "it would be too late");
	cr_assert_eq(a.extension[0].xid, 2);
	cr_assert_eq(a.extension[0].state, WIRE_THROTTLED);
	cr_assert_geq(a.extension[0].extend, 1900000);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(a.replies, 2);
	cr_assert_eq(a.nextensions, 1);
	serve_fini(&g);
}

static void bulk_ended(void *arg, int status, uint64_t moved)
{
	(void)arg;
	(void)status;
	(void)moved;
}

/* An extension says that bulk is under way if the request waits for nothing
 * else. */
Test(extend, bulk)
{
	static const uint32_t length = 64;
	const struct wire_segments lent = { .match = 0x77000,
					    .access = WIRE_ACCESS_SINK,
					    .n = 1,
					    .length = &length };
	static char memory[64];
	const struct iovec iov = { memory, sizeof(memory) };
	struct wire_call c = slow(1, "hold", 200000, 60000000);
	struct serve_rig g;

	rig(&g);
	c.bulks.n = 1;
	c.bulks.list = &lent;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(ulrpc_bulk_put(g.served.park[0], 0, 0, &iov, 1, bulk_ended,
				    NULL),
		     0);
	/* The handler has replied; only bulk is missing. */
	serve_release(&g.served);
	lnet_sim_run(g.sim, SEC);
	cr_assert_geq(a.nextensions, 2);
	for (unsigned int i = 0; i < a.nextensions; i++)
		cr_assert_eq(a.extension[i].state, WIRE_BULK);
	cr_assert_eq(a.replies, 0);
	serve_fini(&g);
}

/* No extension is sent to a client that has disconnected. */
Test(extend, not_to_a_client_that_left)
{
	struct serve_rig g;

	rig(&g);
	send_slow(1, "hold", 100000, 60000000);
	settle(&g);
	raw_client_disconnect(&a);
	lnet_sim_run(g.sim, 10 * SEC);
	cr_assert_eq(a.extends, 0);
	serve_release(&g.served);
	serve_fini(&g);
}

/* A later attempt prolongs T by its own timeout, and never shortens it. */
Test(extend, another_attempt)
{
	struct ulrpc_request *r;
	struct serve_rig g;
	uint64_t t0;

	rig(&g);
	t0 = now(&g);
	send_slow(1, "hold", 1000000, 60000000);
	run_until(&g, t0 + 500 * MSEC);
	r = g.served.park[0];
	deadline_renew(r, 100000);
	cr_assert_eq(r->expires, t0 + SEC, "never back");
	deadline_renew(r, 2000000);
	cr_assert_eq(r->expires, t0 + 2500 * MSEC);
	extend_now(r);
	extend_now(r);
	settle(&g);
	cr_assert_eq(a.nextensions, 1);
	cr_assert_eq(a.extension[0].extend, 2000000);
	run_until(&g, t0 + 1700 * MSEC);
	cr_assert_eq(a.nextensions, 1);
	run_until(&g, t0 + 2400 * MSEC);
	cr_assert_eq(a.nextensions, 2);
	serve_release(&g.served);
	serve_fini(&g);
}

/* ---- many ---- */

#define MANY 1000

static struct ulrpc_request *kept[MANY];
static unsigned int nkept;

static void keep(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	kept[nkept++] = r;
}

/* A client has as many slow requests as it may have, all sent within a second.
 * Their extensions travel in messages of up to 64, and come in as few rounds as
 * if they were one request, however long they take. */
Test(extend, many_travel_together)
{
	static const struct ulrpc_method_conf method = {
		.name = "keep", .handler = keep, .run = ULRPC_RUN_INLINE
	};
	struct ulrpc_service_conf conf = { .name = "test",
					   .methods = &method,
					   .nmethods = 1,
					   .queue_max = 2 * MANY,
					   .queue_bytes_max = 1 << 30 };
	unsigned int rounds = extensions_max(1000000000, 10000000);
	struct wire_call calls[20];
	struct serve_rig g;

	patient_rig(&g, &conf);
	for (uint64_t xid = 1; xid <= MANY; xid += 20) {
		for (unsigned int i = 0; i < 20; i++)
			calls[i] = slow(xid + i, "keep", 10000000, 10000000000);
		raw_client_send(&a, calls, 20, "01234567890123456789", 0);
		lnet_sim_run(g.sim, 2 * MSEC);
	}
	cr_assert_eq(nkept, MANY);
	lnet_sim_run(g.sim, 1000 * SEC);
	cr_assert_leq(a.nextensions, rounds * MANY);
	cr_assert_geq(a.nextensions, log2_up(1000, 10) * MANY);
	/* In each round some requests came before a multiple of the grain, and
	 * some after it: hence one more message that is not full. */
	cr_assert_leq(a.extends, a.nextensions / WIRE_ENTRIES_MAX + 2 * rounds);
	cr_assert_eq(ulrpc_service_stop(g.service, 0), -ETIMEDOUT);
	for (unsigned int i = 0; i < MANY; i++)
		ulrpc_reply(kept[i], NULL, 0);
	serve_fini(&g);
}
