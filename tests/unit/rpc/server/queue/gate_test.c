/* SPDX-License-Identifier: BSD-3-Clause */
/* Token buckets, in virtual time. */
#include <criterion/criterion.h>
#include <errno.h>
#include "rpc/server/queue/sched.h"
#include "ulnet/rpc.h"

#define ALL   ((1u << LANES) - 1)
#define SEC   NSEC_PER_SEC
#define ITEMS 4096

/* Clients 0 to 3 are on hosts of their own, 4 to 7 on the same ones. */
#define HOSTS	4
#define CLIENTS 8

static struct sched_item items[ITEMS];
static struct ulnet_nid nids[HOSTS];
static struct sched_host hosts[HOSTS];
static struct sched_client clients[CLIENTS];
static struct lanes lanes;
static struct sched_plan plan;
static unsigned int made;
static unsigned int passed[CLIENTS];

static void begin(const char *policy)
{
	struct ulnet_text_error err = { .what = "" };

	cr_assert_eq(sched_plan_parse(policy, &plan, &err), 0, "%s", err.what);
	cr_assert_eq(lanes_init(&lanes, &plan, 10), 0);
	for (unsigned int i = 0; i < HOSTS; i++) {
		nids[i] = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0),
					0x0a000001 + i);
		hosts[i].nid = &nids[i];
	}
	for (unsigned int i = 0; i < CLIENTS; i++)
		clients[i] = (struct sched_client){ .host = &hosts[i % HOSTS],
						    .id = 100 + i,
						    .pid = 1000 + i };
}

static void end(void)
{
	cr_assert_not(lanes_any(&lanes));
	lanes_fini(&lanes);
	sched_plan_free(&plan);
}

static struct sched_item *put_as(unsigned int client, const char *method,
				 enum sched_lane lane, uint64_t deadline,
				 uint64_t now)
{
	struct sched_item *item = &items[made++];

	*item = (struct sched_item){ .client = &clients[client],
				     .method = ulrpc_method(method),
				     .lane = (uint8_t)lane,
				     .arrival = now,
				     .deadline = deadline };
	lanes_put(&lanes, item, now);
	return item;
}

static struct sched_item *put(unsigned int client, uint64_t now)
{
	return put_as(client, "get", LANE_NORMAL, TIME_NEVER, now);
}

static struct sched_item *take(uint64_t now, uint64_t *again)
{
	struct sched_item *item = lanes_take(&lanes, ALL, now, again);

	if (item)
		passed[item->client - clients]++;
	return item;
}

/* Takes all items as soon as the gate lets them, until @until. Returns the time
 * of the last one, or 0. */
static uint64_t run(uint64_t now, uint64_t until)
{
	uint64_t last = 0;

	for (;;) {
		uint64_t again = TIME_NEVER;
		struct sched_item *item = take(now, &again);

		if (item) {
			cr_assert_eq(item->released ? item->released
						    : item->arrival,
				     now);
			last = now;
		} else if (again > until) {
			return last;
		} else {
			cr_assert_gt(again, now);
			now = again;
		}
	}
}

/* ---- rates ---- */

Test(gate, rate_and_depth)
{
	begin("tbf rate=1000 depth=3");
	for (unsigned int i = 0; i < 1003; i++)
		put(0, 5 * SEC);
	cr_assert_eq(run(5 * SEC, 5 * SEC), 5 * SEC);
	cr_assert_eq(passed[0], 3, "a full bucket");
	cr_assert_eq(run(5 * SEC, 7 * SEC), 6 * SEC, "1000 a second");
	cr_assert_eq(passed[0], 1003);
	/* After a pause the bucket is full again, and no fuller. */
	for (unsigned int i = 0; i < 5; i++)
		put(0, 60 * SEC);
	cr_assert_eq(run(60 * SEC, 60 * SEC), 60 * SEC);
	cr_assert_eq(passed[0], 1006);
	cr_assert_eq(run(60 * SEC, TIME_NEVER - 1), 60 * SEC + SEC / 500);
	end();
}

/* A rate that does not divide a second is kept exactly. */
Test(gate, no_rate_is_rounded)
{
	begin("tbf rate=7 depth=1");
	for (unsigned int i = 0; i < 701; i++)
		put(0, 0);
	cr_assert_eq(run(0, TIME_NEVER - 1), 100 * SEC);
	end();
}

Test(gate, no_rule_matches)
{
	begin("tbf nid=10.0.0.[2-3]@tcp rate=1; method=put rate=1; pid=1004 "
	      "rate=1");
	for (unsigned int i = 0; i < 10; i++) {
		put(0, 0);
		put(1, 0);
		put(4, 0);
	}
	put_as(0, "put", LANE_NORMAL, TIME_NEVER, 0);
	put_as(0, "put", LANE_NORMAL, TIME_NEVER, 0);
	run(0, SEC / 2);
	cr_assert_eq(passed[0], 12, "free, and two tokens of another rule");
	cr_assert_eq(passed[1], 3);
	cr_assert_eq(passed[4], 3);
	run(SEC / 2, TIME_NEVER - 1);
	end();
}

Test(gate, first_rule_that_matches)
{
	begin("tbf nid=10.0.0.1@tcp 10.0.0.2@tcp rate=10 depth=1; rate=100 "
	      "depth=1");
	for (unsigned int i = 0; i < 200; i++)
		for (unsigned int c = 0; c < 3; c++)
			put(c, 0);
	run(0, SEC - 1);
	cr_assert_eq(passed[0], 10);
	cr_assert_eq(passed[1], 10);
	cr_assert_eq(passed[2], 100);
	run(SEC, TIME_NEVER - 1);
	end();
}

/* ---- who shares a bucket ---- */

static void share(const char *policy, unsigned int of0, unsigned int of4,
		  unsigned int of1)
{
	memset(passed, 0, sizeof(passed));
	made = 0;
	begin(policy);
	for (unsigned int i = 0; i < 300; i++)
		put(0, 0); /* all of these come before the others */
	for (unsigned int i = 0; i < 100; i++) {
		put(4, 0);
		put(1, 0);
	}
	run(0, SEC - 1);
	cr_assert_eq(passed[0], of0, "%s: %u", policy, passed[0]);
	cr_assert_eq(passed[4], of4, "%s: %u", policy, passed[4]);
	cr_assert_eq(passed[1], of1, "%s: %u", policy, passed[1]);
	run(SEC, TIME_NEVER - 1);
	end();
}

/* Clients that share a bucket take turns, and none starves. */
Test(gate, who_shares_a_bucket)
{
	share("tbf rate=60 depth=1", 31, 29, 60);
	share("tbf rate=60 depth=1 per=client", 60, 60, 60);
	/* One bucket for all: host 0, with two clients, and host 1 take turns.
	 */
	share("tbf rate=60 depth=1 per=rule", 31, 0, 29);
}

/* A host that makes ever new connections gets no more tokens. */
Test(gate, new_connections)
{
	begin("tbf rate=10 depth=2");
	for (unsigned int i = 0; i < 100; i++) {
		clients[0].id = 1000 + i;
		put(0, i * SEC / 100);
		run(i * SEC / 100, (i + 1) * SEC / 100 - 1);
	}
	cr_assert_eq(passed[0], 2 + 9);
	run(SEC, TIME_NEVER - 1);
	end();
}

/* Buckets of hosts that are not heard of any more are freed. */
Test(gate, idle_buckets_are_freed)
{
	begin("tbf rate=1000 depth=1");
	for (unsigned int i = 0; i < ITEMS; i++) {
		nids[0] = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), i + 1);
		put(0, i * SEC);
		run(i * SEC, i * SEC);
	}
	cr_assert_eq(passed[0], ITEMS);
	end();
}

/* ---- priorities ---- */

Test(gate, high_first)
{
	uint64_t again = TIME_NEVER;
	unsigned int high = 0;

	begin("tbf rate=100 depth=1");
	put(0, 0);
	for (unsigned int i = 0; i < 50; i++)
		put_as(0, "get", LANE_NORMAL, TIME_NEVER, 0);
	for (unsigned int i = 0; i < 50; i++)
		put_as(0, "get", LANE_HIGH, TIME_NEVER, 0);
	cr_assert_not_null(take(0, &again));
	for (unsigned int i = 1; i <= 22; i++)
		high += take(i * SEC / 100, &again)->lane == LANE_HIGH;
	cr_assert_eq(high, 20, "ten, then one of the others");
	run(22 * SEC / 100, TIME_NEVER - 1);
	end();
}

/* An item of high priority, of a client without a rule, goes before all items
 * that the gate has let through. */
Test(gate, high_lane_behind_the_gate)
{
	uint64_t again = TIME_NEVER;
	struct sched_item *item;

	begin("fifo tbf nid=10.0.0.1@tcp rate=100 depth=8");
	for (unsigned int i = 0; i < 8; i++)
		put(0, 0);
	item = put_as(1, "get", LANE_HIGH, TIME_NEVER, 0);
	cr_assert_eq(take(0, &again), item);
	run(0, 0);
	end();
}

/* ---- time ---- */

static uint64_t held(unsigned int client, uint64_t now)
{
	struct sched_item item = { .client = &clients[client],
				   .lane = LANE_NORMAL };

	return lanes_gate_wait(&lanes, &item, now);
}

Test(gate, expected_wait)
{
	begin("tbf nid=10.0.0.[1-2]@tcp rate=100 depth=2");
	cr_assert_eq(held(0, 0), 0);
	put(0, 0);
	cr_assert_eq(held(0, 0), 0);
	put(0, 0);
	cr_assert_eq(held(0, 0), SEC / 100);
	for (unsigned int i = 0; i < 10; i++)
		put(0, 0);
	cr_assert_eq(held(0, 0), 11 * SEC / 100);
	cr_assert_eq(held(0, SEC / 1000), 109 * SEC / 1000);
	cr_assert_eq(held(4, 0), 2 * SEC / 100, "it takes turns");
	cr_assert_eq(held(1, 0), 0);
	cr_assert_eq(held(2, 0), 0, "no rule");
	run(0, TIME_NEVER - 1);
	end();
}

/* The time that an item is said to have been throttled ends when the gate lets
 * it through, even if no worker takes it then. */
Test(gate, released)
{
	uint64_t again = TIME_NEVER;
	struct sched_item *a, *b, *c;

	begin("tbf rate=100 depth=1");
	a = put(0, SEC);
	b = put(0, SEC);
	c = put(0, SEC);
	cr_assert_eq(take(5 * SEC, &again), a);
	cr_assert_eq(take(5 * SEC, &again), b);
	cr_assert_eq(take(5 * SEC, &again), c);
	cr_assert_eq(a->released, 0);
	cr_assert_eq(b->released, SEC + SEC / 100);
	cr_assert_eq(c->released, SEC + SEC / 50);
	end();
}

/* An item that is removed takes no token, nor does one that is let through
 * after its deadline. */
Test(gate, removed_and_expired)
{
	uint64_t again = TIME_NEVER;
	struct sched_item *late, *last;

	begin("tbf rate=10 depth=1");
	put(0, 0);
	put(0, 0);
	late = put_as(0, "get", LANE_NORMAL, SEC / 20, 0);
	last = put(0, 0);
	lanes_remove(&lanes, &items[1]);
	cr_assert_not_null(take(0, &again));
	cr_assert_null(take(0, &again));
	cr_assert_eq(again, SEC / 10);
	cr_assert_eq(take(SEC / 10, &again), late);
	cr_assert_eq(take(SEC / 10, &again), last);
	end();
}

/* An item that continues a request was let through before, and takes no token.
 */
Test(gate, continued_items_take_no_token)
{
	uint64_t again = TIME_NEVER;

	begin("tbf rate=1 depth=1");
	put(0, 0);
	items[1] = (struct sched_item){ .client = &clients[0],
					.lane = LANE_NORMAL,
					.goes_on = true };
	lanes_put(&lanes, &items[1], 0);
	cr_assert_not_null(take(0, &again));
	cr_assert_not_null(take(0, &again));
	end();
}

/* ---- rules ---- */

Test(gate, rules_that_are_wrong)
{
	static const struct {
		const char *text;
		size_t offset;
		const char *what;
	} wrong[] = {
		{ "tbf", 3, "rule 1: has no rate" },
		{ "tbf nid=10.0.0.1@tcp", 4, "rule 1: has no rate" },
		{ "tbf rate=5; rate=7", 11,
		  "rule 2: never reached: rule 1 is for all" },
		{ "tbf pid=1 rate=5; depth=7", 18, "rule 2: has no rate" },
		{ "tbf pid=1 rate=5; rat=7", 18,
		  "rule 2: rat: there is no such item" },
		{ "tbf rate=0", 9, "rule 1: rate: not from 1 to 1000000000" },
		{ "tbf rate=2000000000", 9,
		  "rule 1: rate: not from 1 to 1000000000" },
		{ "tbf rate=5x", 4, "rule 1: rate: not a number" },
		{ "tbf rate=5 rate=6", 11, "rule 1: rate: there twice" },
		{ "tbf rate=5 fast", 11, "rule 1: fast: is to be name=value" },
		{ "tbf fast rate=5", 4, "rule 1: fast: is to be name=value" },
		{ "tbf rate= depth=3", 4, "rule 1: rate: has no value" },
		{ "tbf rate=5 per=nid", 11,
		  "rule 1: per: is to be host, client or rule" },
		{ "tbf rate=5 pid=4294967296", 15,
		  "rule 1: pid: not from 0 to 4294967295" },
		{ "tbf rate=5 pid=99999999999999999999999", 15,
		  "rule 1: pid: not from 0 to 4294967295" },
		{ "tbf rate=5 methd=put", 11,
		  "rule 1: methd: there is no such item" },
		{ "fifo tfb rate=5", 5, "tfb: 'tbf' is expected here" },
	};
	struct ulnet_text_error err;

	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++) {
		cr_assert_eq(sched_plan_parse(wrong[i].text, &plan, &err),
			     -EINVAL, "%s", wrong[i].text);
		cr_assert_str_eq(err.what, wrong[i].what, "%s: %s",
				 wrong[i].text, err.what);
		cr_assert_eq(err.offset, wrong[i].offset, "%s: %zu",
			     wrong[i].text, err.offset);
	}
	/* An error within a list of NIDs is reported. */
	cr_assert_eq(
		sched_plan_parse("tbf rate=1 nid=10.0.0.300@tcp", &plan, &err),
		-EINVAL);
	cr_assert_eq(strncmp(err.what, "rule 1: nid: ", 13), 0, "%s", err.what);
	cr_assert_geq(err.offset, 15);
}

Test(gate, rules_that_are_right)
{
	static const char *const right[] = {
		("tbf nid=10.0.0.[1-9]@tcp rate=1000 depth=3; method=put "
		 "rate=500; rate=10000"),
		"tbf rate=5;",
		"rr quantum=4 tbf nid=10.0.0.1@tcp *@o2ib rate=1 per=client",
		"tbf\trate=5 ; ",
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(right); i++) {
		begin(right[i]);
		cr_assert_not_null(lanes.gate, "%s", right[i]);
		end();
	}
}
