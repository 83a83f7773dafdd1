/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/retry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/rpc.h"
#include "rpc/text.h"

#define FORCE_VARIABLE "ULRPC_FORCE_POLICY"

#define AFTER_MAX (30 * NSEC_PER_SEC)
#define CAP	  (5 * NSEC_PER_SEC)
#define BASE_MIN  (10 * NSEC_PER_MSEC)
/* The budget, in thousandths of a retry: what one retry costs, what it earns
 * with each call and in each second. BURST: how many retries may be paid in
 * advance, at least. */
#define COST	 UINT64_C(1000)
#define PER_CALL UINT64_C(100)
#define PER_SEC	 (10 * COST)
#define BURST	 10 /* in retries */

/* ---- rules ---- */

static const enum backoff_policy policies[] = {
	[ULRPC_BACKOFF_DEFAULT] = BACKOFF_FULL,
	[ULRPC_BACKOFF_FULL] = BACKOFF_FULL,
	[ULRPC_BACKOFF_EQUAL] = BACKOFF_EQUAL,
	[ULRPC_BACKOFF_MAD] = BACKOFF_MAD,
	[ULRPC_BACKOFF_NONE] = BACKOFF_NONE,
};

int retry_check(const struct ulrpc_retry *r)
{
	return r && (unsigned int)r->policy >= ARRAY_SIZE(policies) ? -EINVAL
								    : 0;
}

int retry_force(enum ulrpc_backoff *force, struct conf_owner owner)
{
	const char *name = secure_getenv(FORCE_VARIABLE);

	if (!name || !*name)
		return 0;
	for (unsigned int i = ULRPC_BACKOFF_FULL; i < ARRAY_SIZE(policies); i++)
		if (strcmp(name, backoff_names[policies[i]]) == 0) {
			*force = (enum ulrpc_backoff)i;
			return 0;
		}
	return conf_refuse(owner, -EINVAL,
			   "force_policy: " FORCE_VARIABLE
			   "=%.64s: no such policy; there are full, equal, mad "
			   "and none",
			   name);
}

void retry_rule_init(struct retry_rule *rule, const struct ulrpc_retry *r,
		     enum ulrpc_backoff force)
{
	static const struct ulrpc_retry usual = { .max = ULRPC_RETRIES_ANY };

	if (!r)
		r = &usual;
	*rule = (struct retry_rule){
		.law = { .policy = policies[force ? force : r->policy],
			 .max = r->max == ULRPC_RETRIES_ANY ? BACKOFF_NO_MAX
							    : r->max,
			 .base = rpc_ns(r->base),
			 .cap = r->cap ? rpc_ns(r->cap) : CAP },
		.least = rpc_ns(r->least),
		.forced = force != ULRPC_BACKOFF_DEFAULT,
		.tell_overloaded = r->tell_overloaded,
	};
}

/* ---- the budget ---- */

void budget_begin(struct retry_budget *b, uint64_t calls, uint64_t now)
{
	*b = (struct retry_budget){ .calls = calls, .at = now };
}

/* Adds what the budget has earned since the last time. */
static void budget_earn(struct retry_budget *b, uint64_t calls, uint64_t now)
{
	uint64_t by_calls = calls - b->calls;
	uint64_t by_time = now > b->at ? now - b->at : 0;

	by_calls = MIN(by_calls, b->spent / PER_CALL + 1) * PER_CALL;
	by_time = MIN(by_time, (b->spent / PER_SEC + 1) * NSEC_PER_SEC);
	/* Fractions of a thousandth count the next time. */
	b->at = MAX(b->at, now) - by_time % (NSEC_PER_SEC / PER_SEC);
	by_time /= NSEC_PER_SEC / PER_SEC;
	b->calls = calls;
	b->spent -= MIN(b->spent, by_calls + by_time);
}

uint64_t budget_take(struct retry_budget *b, uint32_t burst, uint64_t calls,
		     uint64_t now)
{
	uint64_t most = MAX(burst, BURST) * COST;

	budget_earn(b, calls, now);
	b->spent += COST;
	return b->spent <= most ? 0
				: (b->spent - most) * (NSEC_PER_SEC / PER_SEC);
}

void budget_give_back(struct retry_budget *b)
{
	b->spent -= COST;
}

/* ---- the next attempt ---- */

uint64_t retry_after_ns(uint64_t us)
{
	return MIN(rpc_ns(us), AFTER_MAX);
}

uint64_t retry_base(uint64_t timeout, uint64_t rtt)
{
	return MAX(MAX(BASE_MIN, timeout / 2), rpc_at(rtt, rtt));
}

static struct backoff_law retry_law_of(const struct retry_rule *rule,
				       uint64_t timeout, uint64_t rtt)
{
	struct backoff_law law = rule->law;

	if (!law.base)
		law.base = retry_base(timeout, rtt);
	return law;
}

uint64_t retry_pause(const struct retry_rule *rule, uint32_t n,
		     uint64_t timeout, uint64_t rtt, uint64_t random)
{
	const struct backoff_law law = retry_law_of(rule, timeout, rtt);

	return backoff_pause(&law, n, random);
}

/* Returns when (ns) all attempts have to be over. If "mad" is forced, callers
 * have given no total: it follows from the time-out of an attempt. */
static uint64_t retry_until(const struct retry_case *c,
			    const struct backoff_law *law)
{
	uint64_t total = TIME_NEVER;

	if (c->rule->forced && law->policy == BACKOFF_MAD)
		total = backoff_mad_total(law, MAX(c->timeout, c->rule->least));
	return MIN(c->deadline, rpc_at(c->began, total));
}

enum backoff_verdict retry_next(const struct retry_case *c, uint64_t *at_p)
{
	struct backoff_law law = retry_law_of(c->rule, c->timeout, c->rtt);
	struct backoff_failure f = { .now = c->now,
				     .least = c->least,
				     .answer = c->answer,
				     .random = c->random };
	struct backoff b = { .n = c->retries };
	enum backoff_verdict verdict;
	uint64_t paid;

	if (law.max == 0)
		return BACKOFF_ENOUGH;
	b.until = retry_until(c, &law);
	if (c->lost) {
		law.policy = BACKOFF_NONE;
		return backoff_next(&b, &law, &f, at_p);
	}
	paid = budget_take(c->budget, c->burst, c->calls, c->now);
	f.least = MAX(MAX(f.least, c->rule->least), paid);
	verdict = backoff_next(&b, &law, &f, at_p);
	if (verdict != BACKOFF_RETRY)
		budget_give_back(c->budget);
	return verdict;
}
