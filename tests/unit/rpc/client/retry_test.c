/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include "base/env.h"
#include "rpc/client/retry.h"

#define MS  NSEC_PER_MSEC
#define SEC NSEC_PER_SEC

static struct retry_budget budget;

static struct retry_case case_of(const struct retry_rule *rule)
{
	budget_begin(&budget, 0, 0);
	return (struct retry_case){
		.rule = rule,
		.budget = &budget,
		.burst = 1000,
		.deadline = TIME_NEVER,
		.timeout = 100 * MS,
		.rtt = MS,
		.answer = MS,
	};
}

/* ---- rules ---- */

Test(retry, the_default)
{
	struct retry_rule rule;

	retry_rule_init(&rule, NULL, ULRPC_BACKOFF_DEFAULT);
	cr_expect_eq(rule.law.policy, BACKOFF_FULL);
	cr_expect_eq(rule.law.max, BACKOFF_NO_MAX);
	cr_expect_eq(rule.law.cap, 5 * SEC);
	cr_expect_eq(rule.least, 0);
	cr_expect_not(rule.forced);
	cr_expect_not(rule.tell_overloaded);
}

Test(retry, as_the_caller_says)
{
	static const struct ulrpc_retry r = { .policy = ULRPC_BACKOFF_EQUAL,
					      .max = 3,
					      .base = 1000,
					      .cap = 7000,
					      .least = 5000,
					      .tell_overloaded = true };
	struct retry_rule rule;

	retry_rule_init(&rule, &r, ULRPC_BACKOFF_DEFAULT);
	cr_expect_eq(rule.law.policy, BACKOFF_EQUAL);
	cr_expect_eq(rule.law.max, 3);
	cr_expect_eq(rule.law.base, MS);
	cr_expect_eq(rule.law.cap, 7 * MS);
	cr_expect_eq(rule.least, 5 * MS);
	cr_expect(rule.tell_overloaded);
}

Test(retry, forced_on_all)
{
	static const struct ulrpc_retry r = { .policy = ULRPC_BACKOFF_NONE,
					      .max = 3 };
	struct retry_rule rule;

	retry_rule_init(&rule, &r, ULRPC_BACKOFF_MAD);
	cr_expect_eq(rule.law.policy, BACKOFF_MAD);
	cr_expect_eq(rule.law.max, 3);
	cr_expect(rule.forced);
	retry_rule_init(&rule, NULL, ULRPC_BACKOFF_EQUAL);
	cr_expect_eq(rule.law.policy, BACKOFF_EQUAL);
}

Test(retry, policies_that_there_are)
{
	struct ulrpc_retry r = { 0 };

	cr_expect_eq(retry_check(NULL), 0);
	for (unsigned int i = 0; i <= ULRPC_BACKOFF_NONE; i++) {
		r.policy = (enum ulrpc_backoff)i;
		cr_expect_eq(retry_check(&r), 0);
	}
	r.policy = (enum ulrpc_backoff)(ULRPC_BACKOFF_NONE + 1);
	cr_expect_eq(retry_check(&r), -EINVAL);
	r.policy = (enum ulrpc_backoff) - 1;
	cr_expect_eq(retry_check(&r), -EINVAL);
}

/* ---- when the next attempt is made ---- */

/* The caller's least time counts if the server asks for less, and the deadline
 * before both. */
Test(retry, the_least_time)
{
	const struct ulrpc_retry r = { .policy = ULRPC_BACKOFF_MAD,
				       .max = ULRPC_RETRIES_ANY,
				       .base = 1000,
				       .least = 300000 };
	struct retry_rule rule;
	struct retry_case c;
	uint64_t at = 0;

	retry_rule_init(&rule, &r, ULRPC_BACKOFF_DEFAULT);
	c = case_of(&rule);
	cr_expect_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 300 * MS, "the first retry of mad has no other pause");
	c.least = 200 * MS;
	cr_expect_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 300 * MS);
	c.least = 400 * MS;
	cr_expect_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 400 * MS);
	c.deadline = 300 * MS;
	c.least = 0;
	cr_expect_eq(retry_next(&c, &at), BACKOFF_TOO_LATE);
	/* The question has waited for a call that was lost. */
	c.lost = true;
	cr_expect_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 0);
}

/* If "mad" is forced, all attempts together have so much time that each of them
 * can have the least one. */
Test(retry, the_least_time_of_a_forced_policy)
{
	const struct ulrpc_retry r = { .max = 3, .least = 300000 };
	struct retry_rule rule;
	struct retry_case c;
	uint64_t at = 0;

	retry_rule_init(&rule, &r, ULRPC_BACKOFF_MAD);
	cr_expect_eq(rule.least, 300 * MS);
	c = case_of(&rule);
	c.now = 400 * MS;
	cr_expect_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 700 * MS);
}

/* A forced policy does not allow retries to a rule that has none. */
Test(retry, no_retries_are_none)
{
	static const struct ulrpc_retry none = { 0 };

	for (unsigned int i = 0; i <= ULRPC_BACKOFF_NONE; i++) {
		struct retry_rule rule;
		struct retry_case c;
		uint64_t at;

		retry_rule_init(&rule, &none, (enum ulrpc_backoff)i);
		c = case_of(&rule);
		cr_expect_eq(retry_next(&c, &at), BACKOFF_ENOUGH);
	}
}

Test(retry, so_many_and_no_more)
{
	static const struct ulrpc_retry three = { .max = 3 };
	struct retry_rule rule;
	struct retry_case c;
	uint64_t at;

	retry_rule_init(&rule, &three, ULRPC_BACKOFF_DEFAULT);
	c = case_of(&rule);
	for (; c.retries < 3; c.retries++)
		cr_assert_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(retry_next(&c, &at), BACKOFF_ENOUGH);
}

/* The base of pauses is the longest of T / 2, two round trips, and 10 ms. */
Test(retry, the_base)
{
	struct retry_rule rule;
	struct retry_case c;
	uint64_t at;

	cr_expect_eq(retry_base(0, 0), 10 * MS);
	cr_expect_eq(retry_base(SEC, MS), 500 * MS);
	cr_expect_eq(retry_base(SEC, 400 * MS), 800 * MS);
	cr_expect_eq(retry_base(TIME_NEVER, TIME_NEVER), TIME_NEVER);
	retry_rule_init(&rule, NULL, ULRPC_BACKOFF_DEFAULT);
	c = case_of(&rule);
	c.random = UINT64_MAX;
	cr_assert_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 50 * MS);
	c.retries = 1;
	cr_assert_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 100 * MS);
	c.retries = 1000;
	cr_assert_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 5 * SEC);
}

Test(retry, not_before_the_server_wants)
{
	struct retry_rule rule;
	struct retry_case c;
	uint64_t at;

	retry_rule_init(&rule, NULL, ULRPC_BACKOFF_DEFAULT);
	c = case_of(&rule);
	c.now = 3 * SEC;
	c.least = 2 * SEC;
	cr_assert_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 5 * SEC);
	c.random = UINT64_MAX;
	cr_assert_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 5 * SEC + 50 * MS);
}

/* A call that was lost has waited for its answer: it is sent again without a
 * pause, even if the budget is used up. */
Test(retry, lost)
{
	struct retry_rule rule;
	struct retry_case c;
	uint64_t at;

	retry_rule_init(&rule, NULL, ULRPC_BACKOFF_DEFAULT);
	c = case_of(&rule);
	c.random = UINT64_MAX;
	c.now = 7 * SEC;
	c.lost = true;
	for (c.retries = 0; c.retries < 10; c.retries++) {
		cr_assert_eq(retry_next(&c, &at), BACKOFF_RETRY);
		cr_expect_eq(at, 7 * SEC);
	}
	budget_begin(&budget, 0, c.now);
	budget.spent = 10000;
	c.burst = 10;
	cr_assert_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 7 * SEC);
	cr_expect_eq(budget.spent, 10000);
	c.lost = false;
	c.random = 0;
	cr_assert_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(at, 7 * SEC + 100 * MS);
}

Test(retry, the_pause_beyond_the_time_of_an_attempt)
{
	static const struct ulrpc_retry second = { .base = 1000000 };
	struct retry_rule rule;

	retry_rule_init(&rule, NULL, ULRPC_BACKOFF_DEFAULT);
	cr_expect_eq(retry_pause(&rule, 1, SEC, MS, UINT64_MAX), 500 * MS);
	cr_expect_eq(retry_pause(&rule, 2, SEC, MS, UINT64_MAX), SEC);
	retry_rule_init(&rule, &second, ULRPC_BACKOFF_DEFAULT);
	cr_expect_eq(retry_pause(&rule, 1, SEC, MS, UINT64_MAX), SEC);
	retry_rule_init(&rule, &second, ULRPC_BACKOFF_NONE);
	cr_expect_eq(retry_pause(&rule, 1, SEC, MS, UINT64_MAX), 0);
}

/* A retry that would come too late does not use the budget. */
Test(retry, not_when_it_is_too_late)
{
	struct retry_rule rule;
	struct retry_case c;
	uint64_t at;

	retry_rule_init(&rule, NULL, ULRPC_BACKOFF_DEFAULT);
	c = case_of(&rule);
	c.now = SEC;
	c.least = 500 * MS;
	c.deadline = SEC + 501 * MS;
	cr_expect_eq(retry_next(&c, &at), BACKOFF_TOO_LATE);
	cr_expect_eq(budget.spent, 0);
	c.deadline++;
	cr_expect_eq(retry_next(&c, &at), BACKOFF_RETRY);
	cr_expect_eq(budget.spent, 1000);
}

/* A forced "mad" shares the time that the caller's rule would take at most: ten
 * retries of a second each make ten seconds in all. */
Test(retry, mad_when_it_is_forced)
{
	static const struct ulrpc_retry ten = { .max = 10, .base = 511000 };
	struct retry_rule rule;
	struct retry_case c;
	struct rng rng;
	uint64_t at;

	rng_seed(&rng, 1);
	retry_rule_init(&rule, &ten, ULRPC_BACKOFF_MAD);
	for (unsigned int i = 0; i < 100; i++) {
		c = case_of(&rule);
		c.timeout = SEC;
		for (c.now = SEC;; c.now = at + c.timeout, c.retries++) {
			c.random = rng_next(&rng);
			if (retry_next(&c, &at) != BACKOFF_RETRY)
				break;
			cr_assert_lt(at, 10 * SEC);
		}
		cr_assert_eq(c.retries, 4);
	}
	/* With a "mad" of the caller's own only the deadline limits retries. */
	rule.forced = false;
	c.retries = 4;
	cr_expect_eq(retry_next(&c, &at), BACKOFF_RETRY);
}

/* ---- the budget for retries ---- */

Test(retry, a_burst_of_retries)
{
	struct retry_budget b;

	budget_begin(&b, 0, 0);
	for (unsigned int i = 0; i < 64; i++)
		cr_assert_eq(budget_take(&b, 64, 0, 0), 0);
	/* After the burst there are ten retries in a second. */
	for (unsigned int i = 1; i <= 30; i++)
		cr_assert_eq(budget_take(&b, 64, 0, 0), i * 100 * MS);
	/* What is given back does not make the budget grow beyond its limit. */
	for (unsigned int i = 0; i < 30; i++)
		budget_give_back(&b);
	cr_expect_eq(budget_take(&b, 64, 0, 0), 100 * MS);
}

Test(retry, ten_at_least)
{
	struct retry_budget b;

	budget_begin(&b, 0, 0);
	for (unsigned int i = 0; i < 10; i++)
		cr_assert_eq(budget_take(&b, 1, 0, 0), 0);
	cr_expect_eq(budget_take(&b, 1, 0, 0), 100 * MS);
}

/* Each call adds a tenth of a retry to the budget. */
Test(retry, calls_add_to_the_budget)
{
	unsigned int at_once = 0;
	struct retry_budget b;

	budget_begin(&b, 5, SEC);
	while (!budget_take(&b, 10, 5, SEC))
		;
	budget_give_back(&b);
	for (uint64_t calls = 6; calls <= 1005; calls++) {
		if (budget_take(&b, 10, calls, SEC))
			budget_give_back(&b);
		else
			at_once++;
	}
	cr_expect_eq(at_once, 100);
}

/* The budget never exceeds the burst. */
Test(retry, the_budget_is_bounded)
{
	struct retry_budget b;

	budget_begin(&b, 0, 0);
	for (unsigned int i = 0; i < 100; i++)
		cr_assert_eq(budget_take(&b, 100, UINT64_MAX, TIME_NEVER - 5),
			     0);
	cr_expect_eq(budget_take(&b, 100, UINT64_MAX, TIME_NEVER - 5),
		     100 * MS);
}

/* The budget grows with time by the same amount, however often it is computed.
 */
Test(retry, time_is_counted_exactly)
{
	unsigned int taken = 0;
	struct retry_budget b;

	budget_begin(&b, 0, 0);
	for (uint64_t now = 0; now < 100 * SEC; now += 12345) {
		if (budget_take(&b, 10, 0, now))
			budget_give_back(&b);
		else
			taken++;
	}
	cr_expect(taken >= 1009 && taken <= 1010, "%u", taken);
}

/* All calls fail at an overloaded server. Retries may add a tenth to the new
 * calls, and ten in a second. */
Test(retry, little_is_added_to_an_overload)
{
	unsigned int sent = 0, again = 0;
	struct retry_rule rule;
	struct retry_case c;
	struct rng rng;

	rng_seed(&rng, 1);
	retry_rule_init(&rule, NULL, ULRPC_BACKOFF_DEFAULT);
	c = case_of(&rule);
	budget_begin(&budget, 0, 0);
	c.burst = 10;
	for (uint64_t ms = 0; ms < 60000; ms++) {
		uint64_t at;

		c.calls = ++sent;
		c.now = ms * MS;
		c.deadline = c.now + SEC;
		c.random = rng_next(&rng);
		if (retry_next(&c, &at) == BACKOFF_RETRY)
			again++;
	}
	cr_expect_eq(sent, 60000);
	cr_expect_leq(again, 6000 + 600 + 10 + 20);
	cr_expect_geq(again, 6000);
}
