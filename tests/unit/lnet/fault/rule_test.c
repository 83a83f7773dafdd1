/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules of fault injection (H7): which are valid, which messages they apply to,
 * when they strike, and with which effect.
 */
#include "lnet/fault/rule.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "base/env.h"

#define A   lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), 0x0a000001)
#define B   lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), 0x0a000002)
#define B1  lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 1), 0x0a000002)
#define TCP lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), UINT32_MAX)

#define PORTAL(n) (UINT64_C(1) << (n))

static struct ulnet_fault fault_of(enum ulnet_fault_kind kind)
{
	struct ulnet_fault f;

	lnet_fault_init(&f, kind);
	f.rate = 1;
	if (kind == LNET_FAULT_DELAY)
		f.latency = 1000;
	if (kind == LNET_FAULT_ERROR)
		f.causes = LNET_FAULT_CAUSE(LNET_CAUSE_LOCAL_ERROR);
	return f;
}

static struct fault_rule *rule_of(const struct ulnet_fault *f)
{
	struct fault_rule *rule;

	cr_assert_eq(fault_check(f), 0);
	rule = fault_rule_new(f, 42, 1000);
	cr_assert(rule);
	return rule;
}

/* The example is a PUT of 100 bytes from A to portal 7 of B, being sent by A.
 */
struct example {
	struct ulnet_nid source, dest, local;
	struct fault_look look;
};

static void example_init(struct example *e)
{
	e->source = A;
	e->dest = B;
	e->local = A;
	e->look = (struct fault_look){ .source = &e->source,
				       .dest = &e->dest,
				       .local = &e->local,
				       .type = LNET_MSG_PUT,
				       .portal = 7,
				       .length = 100,
				       .sending = true,
				       .now = 2000 };
}

static struct fault_hit decide(struct fault_rule *rule,
			       const struct fault_look *look)
{
	struct fault_hit hit;

	fault_decide(&rule, 1, look, &hit);
	return hit;
}

static uint64_t seen_by(const struct fault_rule *rule)
{
	struct ulnet_fault_info info;

	fault_rule_info(rule, &info);
	return info.seen;
}

Test(rule, valid_rules)
{
	for (int kind = 0; kind < LNET_FAULT_KINDS; kind++) {
		struct ulnet_fault f = fault_of(kind);

		cr_expect_eq(fault_check(&f), 0, "kind %d", kind);
	}
}

Test(rule, invalid_rules)
{
	static const struct {
		const char *what;
		struct ulnet_fault f;
	} bad[] = {
		{ "no such kind", { .kind = LNET_FAULT_KINDS, .rate = 1 } },
		{ "neither rate nor interval", { .kind = LNET_FAULT_DROP } },
		{ "both", { .rate = 2, .interval = 5 } },
		{ "more than a week", { .interval = LNET_FAULT_US_MAX + 1 } },
		{ "no latency", { .kind = LNET_FAULT_DELAY, .rate = 1 } },
		{ "latency above a week",
		  { .kind = LNET_FAULT_DELAY,
		    .rate = 1,
		    .latency = LNET_FAULT_US_MAX + 1 } },
		{ "latency of a drop", { .rate = 1, .latency = 1 } },
		{ "no cause", { .kind = LNET_FAULT_ERROR, .rate = 1 } },
		{ "cause of no failure",
		  { .kind = LNET_FAULT_ERROR,
		    .rate = 1,
		    .causes = LNET_FAULT_CAUSE(LNET_CAUSE_OK) } },
		{ "cause of no send",
		  { .kind = LNET_FAULT_ERROR,
		    .rate = 1,
		    .causes = LNET_FAULT_CAUSE(LNET_CAUSE_CANCELED) } },
		{ "cause of a duplicate",
		  { .kind = LNET_FAULT_DUPLICATE, .rate = 1, .causes = 2 } },
		{ "no such type", { .rate = 1, .messages = 16 } },
		{ "portals of what has none",
		  { .rate = 1, .portals = 1, .messages = LNET_FAULT_ACK } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect_eq(fault_check(&bad[i].f), -EINVAL, "%s",
			     bad[i].what);
}

/* A filter of a rule, and whether the example passes it with its type replaced
 * by this one. */
struct filter_case {
	const char *what;
	bool fits;
	struct ulnet_nid source, dest, local;
	uint64_t portals;
	uint32_t messages;
	enum ulnet_msg_type type;
};

static void check_filter(const struct filter_case *c)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE);
	struct fault_rule *rule;
	struct example e;

	f.source = c->source;
	f.dest = c->dest;
	f.local = c->local;
	f.portals = c->portals;
	f.messages = c->messages;
	rule = rule_of(&f);
	example_init(&e);
	e.look.type = c->type;
	cr_expect_eq(decide(rule, &e.look).kind,
		     c->fits ? LNET_FAULT_DUPLICATE : LNET_FAULT_KINDS, "%s",
		     c->what);
	cr_expect_eq(seen_by(rule), c->fits, "%s", c->what);
	free(rule);
}

Test(rule, which_messages)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct filter_case cases[] = {
		{ "all", true, any, any, any, 0, 0, LNET_MSG_PUT },
		{ "by source", true, A, any, any, 0, 0, LNET_MSG_PUT },
		{ "another source", false, B, any, any, 0, 0, LNET_MSG_PUT },
		{ "by destination", true, any, B, any, 0, 0, LNET_MSG_PUT },
		{ "another one", false, any, B1, any, 0, 0, LNET_MSG_PUT },
		{ "by local NI", true, any, any, A, 0, 0, LNET_MSG_PUT },
		{ "another NI", false, any, any, B, 0, 0, LNET_MSG_PUT },
		{ "by net", true, TCP, TCP, TCP, 0, 0, LNET_MSG_PUT },
		{ "another net", false, any,
		  lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 1), UINT32_MAX), any,
		  0, 0, LNET_MSG_PUT },
		{ "portal", true, any, any, any, PORTAL(7) | PORTAL(8), 0,
		  LNET_MSG_PUT },
		{ "another portal", false, any, any, any, PORTAL(8), 0,
		  LNET_MSG_PUT },
		{ "portal of a GET", true, any, any, any, PORTAL(7), 0,
		  LNET_MSG_GET },
		{ "REPLYs have none", false, any, any, any, PORTAL(7), 0,
		  LNET_MSG_REPLY },
		{ "ACKs have none", false, any, any, any, PORTAL(7), 0,
		  LNET_MSG_ACK },
		{ "PUT", true, any, any, any, 0, LNET_FAULT_PUT, LNET_MSG_PUT },
		{ "GET", true, any, any, any, 0, LNET_FAULT_GET, LNET_MSG_GET },
		{ "ACK", true, any, any, any, 0, LNET_FAULT_ACK, LNET_MSG_ACK },
		{ "REPLY", true, any, any, any, 0, LNET_FAULT_REPLY,
		  LNET_MSG_REPLY },
		{ "one of two types", true, any, any, any, 0,
		  LNET_FAULT_ACK | LNET_FAULT_PUT, LNET_MSG_PUT },
		{ "none of two", false, any, any, any, 0,
		  LNET_FAULT_ACK | LNET_FAULT_PUT, LNET_MSG_REPLY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_filter(&cases[i]);
}

Test(rule, a_large_nid_is_on_its_net)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE);
	struct fault_rule *rule;
	struct example e;

	f.source = TCP;
	rule = rule_of(&f);
	example_init(&e);
	cr_assert_eq(lnet_nid_parse("fd77::1@tcp", &e.source), 0);
	cr_expect_eq(decide(rule, &e.look).kind, LNET_FAULT_DUPLICATE);
	cr_assert_eq(lnet_nid_parse("fd77::1@tcp1", &e.source), 0);
	cr_expect_eq(decide(rule, &e.look).kind, LNET_FAULT_KINDS);
	free(rule);
}

Test(rule, where_each_kind_strikes)
{
	static const struct {
		enum ulnet_fault_kind kind;
		enum ulnet_fault_kind receiving, sending;
	} cases[LNET_FAULT_KINDS] = {
		{ LNET_FAULT_DROP, LNET_FAULT_DROP, LNET_FAULT_KINDS },
		{ LNET_FAULT_DELAY, LNET_FAULT_DELAY, LNET_FAULT_DELAY },
		{ LNET_FAULT_DUPLICATE, LNET_FAULT_KINDS,
		  LNET_FAULT_DUPLICATE },
		{ LNET_FAULT_CORRUPT, LNET_FAULT_KINDS, LNET_FAULT_CORRUPT },
		{ LNET_FAULT_ERROR, LNET_FAULT_KINDS, LNET_FAULT_ERROR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ulnet_fault f = fault_of(cases[i].kind);
		struct fault_rule *rule = rule_of(&f);
		struct example e;

		example_init(&e);
		cr_expect_eq(decide(rule, &e.look).kind, cases[i].sending);
		e.look.sending = false;
		cr_expect_eq(decide(rule, &e.look).kind, cases[i].receiving);
		free(rule);
	}
}

Test(rule, a_drop_with_causes_fails_sends)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DROP);
	struct fault_rule *rule;
	struct fault_hit hit;
	struct example e;

	f.causes = LNET_FAULT_CAUSE(LNET_CAUSE_REMOTE_DROPPED);
	rule = rule_of(&f);
	example_init(&e);
	hit = decide(rule, &e.look);
	cr_expect_eq(hit.kind, LNET_FAULT_ERROR);
	cr_expect_eq(hit.cause, LNET_CAUSE_REMOTE_DROPPED);
	e.look.sending = false;
	cr_expect_eq(decide(rule, &e.look).kind, LNET_FAULT_KINDS);
	free(rule);
}

Test(rule, what_has_no_payload_is_not_corrupted)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_CORRUPT);
	struct fault_rule *rule = rule_of(&f);
	struct example e;

	example_init(&e);
	e.look.length = 0;
	cr_expect_eq(decide(rule, &e.look).kind, LNET_FAULT_KINDS);
	cr_expect_eq(seen_by(rule), 0);
	free(rule);
}

/* ---- when ---- */

#define BLOCKS 1000

/* Asserts that the rule strikes once in each block of @rate messages, and at
 * every place in a block about equally often. */
static void check_rate(uint32_t rate)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE);
	unsigned int places[16] = { 0 };
	struct fault_rule *rule;
	struct example e;

	f.rate = rate;
	rule = rule_of(&f);
	example_init(&e);
	for (unsigned int block = 0; block < BLOCKS; block++) {
		unsigned int n = 0;

		for (uint32_t i = 0; i < rate; i++) {
			if (decide(rule, &e.look).kind == LNET_FAULT_KINDS)
				continue;
			n++;
			places[i]++;
		}
		cr_assert_eq(n, 1, "rate %u, block %u", rate, block);
	}
	for (uint32_t i = 0; i < rate; i++)
		cr_expect(places[i] > BLOCKS / rate / 2, "rate %u, place %u",
			  rate, i);
	cr_expect_eq(seen_by(rule), (uint64_t)rate * BLOCKS);
	free(rule);
}

Test(rule, rate_strikes_one_of_each_block)
{
	static const uint32_t rates[] = { 1, 2, 3, 10, 16 };

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		check_rate(rates[i]);
}

Test(rule, random_rate_strikes_by_chance)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE);
	unsigned int n = 0, in_block = 0, uneven = 0;
	struct fault_rule *rule;
	struct example e;

	f.rate = 10;
	f.random = true;
	rule = rule_of(&f);
	example_init(&e);
	for (unsigned int i = 0; i < 10 * BLOCKS; i++) {
		in_block += decide(rule, &e.look).kind != LNET_FAULT_KINDS;
		if (i % 10 < 9)
			continue;
		n += in_block;
		uneven += in_block != 1;
		in_block = 0;
	}
	cr_expect(n > BLOCKS * 8 / 10 && n < BLOCKS * 12 / 10, "%u", n);
	cr_expect(uneven > BLOCKS / 4, "%u", uneven);
	free(rule);
}

/* There is a message each millisecond, and an interval of 50 ms: the rule
 * strikes about one message in each interval, at different moments. */
Test(rule, interval_strikes_one_in_each)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE);
	unsigned int first = UINT32_MAX, last = 0;
	struct fault_rule *rule;
	struct example e;

	f.rate = 0;
	f.interval = 50000;
	rule = rule_of(&f);
	example_init(&e);
	e.look.now = 1000; /* when the rule was made */
	for (unsigned int interval = 0; interval < BLOCKS; interval++) {
		unsigned int n = 0;

		for (unsigned int ms = 0; ms < 50; ms++) {
			e.look.now += NSEC_PER_MSEC;
			if (decide(rule, &e.look).kind == LNET_FAULT_KINDS)
				continue;
			n++;
			first = MIN(first, ms);
			last = MAX(last, ms);
		}
		/* A moment in the last millisecond of an interval is found in
		 * the next interval. */
		cr_assert(n <= 2, "interval %u: %u", interval, n);
	}
	cr_expect(first < 5 && last > 45, "%u to %u", first, last);
	cr_expect_eq(seen_by(rule), 50 * BLOCKS);
	free(rule);
}

static unsigned int struck_in(struct fault_rule *rule, uint64_t ns,
			      uint64_t step)
{
	unsigned int n = 0;
	struct example e;

	example_init(&e);
	for (uint64_t t = 0; t < ns; t += step) {
		e.look.now = 1000 + t;
		n += decide(rule, &e.look).kind != LNET_FAULT_KINDS;
	}
	return n;
}

Test(rule, as_many_intervals_as_hits)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE);
	struct fault_rule *rule;
	unsigned int n;

	f.rate = 0;
	f.interval = 1000;
	rule = rule_of(&f);
	/* A moment in the last microsecond of an interval is found in the next
	 * one, whose own moment is then skipped. */
	n = struck_in(rule, NSEC_PER_SEC, NSEC_PER_USEC);
	cr_expect(n > 990 && n <= 1000, "%u", n);
	free(rule);
	f.random = true;
	rule = rule_of(&f);
	n = struck_in(rule, NSEC_PER_SEC, NSEC_PER_USEC);
	cr_expect(n > 900 && n < 1100, "%u", n);
	free(rule);
}

/* After a time without messages one is struck, and not one for each interval.
 */
Test(rule, a_pause_is_not_made_up_for)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE);
	struct fault_rule *rule;
	struct example e;

	f.rate = 0;
	f.interval = 1000;
	rule = rule_of(&f);
	example_init(&e);
	e.look.now = NSEC_PER_SEC;
	cr_expect_eq(decide(rule, &e.look).kind, LNET_FAULT_DUPLICATE);
	cr_expect_eq(decide(rule, &e.look).kind, LNET_FAULT_KINDS);
	free(rule);
}

/* ---- several rules ---- */

Test(rule, the_first_that_strikes_decides)
{
	struct ulnet_fault f[3] = { fault_of(LNET_FAULT_DUPLICATE),
				    fault_of(LNET_FAULT_CORRUPT),
				    fault_of(LNET_FAULT_ERROR) };
	unsigned int acts[LNET_FAULT_ERROR + 1] = { 0 };
	struct fault_rule *rules[3];
	struct example e;

	f[0].dest = B1; /* not the example's */
	f[1].rate = 4;
	for (unsigned int i = 0; i < 3; i++)
		rules[i] = rule_of(&f[i]);
	example_init(&e);
	for (unsigned int i = 0; i < 400; i++) {
		struct fault_hit hit;

		fault_decide(rules, 3, &e.look, &hit);
		acts[hit.kind]++;
	}
	cr_expect_eq(acts[LNET_FAULT_CORRUPT], 100);
	cr_expect_eq(acts[LNET_FAULT_ERROR], 300);
	cr_expect_eq(seen_by(rules[0]), 0);
	cr_expect_eq(seen_by(rules[1]), 400);
	cr_expect_eq(seen_by(rules[2]), 300);
	for (unsigned int i = 0; i < 3; i++)
		free(rules[i]);
}

/* ---- with what ---- */

Test(rule, each_of_the_causes_is_drawn)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_ERROR);
	unsigned int drawn[LNET_CAUSE_COUNT] = { 0 };
	struct fault_rule *rule;
	struct example e;

	f.causes = LNET_FAULT_CAUSES;
	rule = rule_of(&f);
	example_init(&e);
	for (unsigned int i = 0; i < 1000; i++)
		drawn[decide(rule, &e.look).cause]++;
	for (int c = 0; c < LNET_CAUSE_COUNT; c++)
		cr_expect_eq(drawn[c] > 50,
			     c >= LNET_CAUSE_LOCAL_INTERRUPT &&
				     c <= LNET_CAUSE_NETWORK_TIMEOUT,
			     "%s: %u", lnet_cause_name(c), drawn[c]);
	free(rule);
}

Test(rule, latency_is_in_nanoseconds)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DELAY);
	struct fault_rule *rule;
	struct example e;

	f.latency = 1500;
	rule = rule_of(&f);
	example_init(&e);
	cr_expect_eq(decide(rule, &e.look).latency_ns, 1500 * NSEC_PER_USEC);
	free(rule);
}

/* ---- what is known of them ---- */

Test(rule, counts_and_reset)
{
	static const enum ulnet_msg_type types[] = {
		LNET_MSG_PUT,	LNET_MSG_PUT,	LNET_MSG_PUT, LNET_MSG_GET,
		LNET_MSG_REPLY, LNET_MSG_REPLY, LNET_MSG_ACK,
	};
	struct ulnet_fault f = fault_of(LNET_FAULT_DUPLICATE);
	struct fault_rule *rule = rule_of(&f);
	struct ulnet_fault_info info;
	struct example e;

	example_init(&e);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		e.look.type = types[i];
		(void)decide(rule, &e.look);
	}
	fault_rule_info(rule, &info);
	cr_expect_eq(info.fault.kind, LNET_FAULT_DUPLICATE);
	cr_expect_eq(info.seen, 7);
	cr_expect_eq(info.fired, 7);
	cr_expect_eq(info.struck.put, 3);
	cr_expect_eq(info.struck.get, 1);
	cr_expect_eq(info.struck.reply, 2);
	cr_expect_eq(info.struck.ack, 1);
	fault_rule_reset(rule);
	fault_rule_info(rule, &info);
	cr_expect_eq(info.seen + info.fired + info.struck.put, 0);
	free(rule);
}

Test(rule, found_by_source_and_destination)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_DROP);
	const struct ulnet_nid a = A, b = B, any = LNET_NID_ANY;
	struct fault_rule *rule;

	f.source = A;
	rule = rule_of(&f);
	cr_expect(fault_rule_is(rule, LNET_FAULT_DROP, NULL, NULL));
	cr_expect(fault_rule_is(rule, LNET_FAULT_DROP, &a, NULL));
	cr_expect(fault_rule_is(rule, LNET_FAULT_DROP, &a, &any));
	cr_expect_not(fault_rule_is(rule, LNET_FAULT_DROP, &b, NULL));
	cr_expect_not(fault_rule_is(rule, LNET_FAULT_DROP, &a, &b));
	cr_expect_not(fault_rule_is(rule, LNET_FAULT_DELAY, NULL, NULL));
	free(rule);
}

/* The same seed and the same messages make the same faults. */
Test(rule, what_is_drawn_follows_from_the_seed)
{
	struct ulnet_fault f = fault_of(LNET_FAULT_ERROR);
	unsigned int same = 0, other = 0;
	struct fault_rule *r[3];
	struct example e;

	f.rate = 7;
	f.causes = LNET_FAULT_CAUSES;
	for (unsigned int i = 0; i < 3; i++)
		r[i] = fault_rule_new(&f, i < 2 ? 1 : 2, 0);
	example_init(&e);
	for (unsigned int i = 0; i < 700; i++) {
		struct fault_hit a = decide(r[0], &e.look);
		struct fault_hit b = decide(r[1], &e.look);
		struct fault_hit c = decide(r[2], &e.look);

		same += a.kind == b.kind &&
			(a.kind == LNET_FAULT_KINDS ||
			 (a.cause == b.cause && a.draw == b.draw));
		other += a.kind != c.kind;
	}
	cr_expect_eq(same, 700);
	cr_expect(other > 50, "%u", other);
	for (unsigned int i = 0; i < 3; i++)
		free(r[i]);
}
