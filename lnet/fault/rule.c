/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/fault/rule.h"

#include <errno.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/hash.h"

#define FAULT_REQUESTS (LNET_FAULT_PUT | LNET_FAULT_GET)
#define FAULT_MESSAGES (FAULT_REQUESTS | LNET_FAULT_ACK | LNET_FAULT_REPLY)

/* Bits of kinds[].where: when rules of a kind apply. */
#define RECEIVING 1
#define SENDING	  2

/* By kind of rule: where it applies, and what it needs. */
static const struct {
	unsigned int where;
	bool latency; /* the rule must have a latency */
	bool payload; /* the rule strikes only messages with a payload */
} kinds[LNET_FAULT_KINDS] = {
	[LNET_FAULT_DROP] = { RECEIVING, false, false },
	[LNET_FAULT_DELAY] = { RECEIVING | SENDING, true, false },
	[LNET_FAULT_DUPLICATE] = { SENDING, false, false },
	[LNET_FAULT_CORRUPT] = { SENDING, false, true },
	[LNET_FAULT_ERROR] = { SENDING, false, false },
};

/* The LNET_FAULT_* bit of each type of message. */
static const uint32_t type_bits[FAULT_TYPES] = {
	LNET_FAULT_ACK,
	LNET_FAULT_PUT,
	LNET_FAULT_GET,
	LNET_FAULT_REPLY,
};

static bool causes_make_sense(const struct ulnet_fault *f)
{
	if (f->causes & ~LNET_FAULT_CAUSES)
		return false;
	if (f->kind == LNET_FAULT_ERROR)
		return f->causes;
	return f->kind == LNET_FAULT_DROP || !f->causes;
}

/* Can any message pass the filters? */
static bool filters_make_sense(const struct ulnet_fault *f)
{
	if (f->messages & ~FAULT_MESSAGES)
		return false;
	return !f->portals || !f->messages || f->messages & FAULT_REQUESTS;
}

int fault_check(const struct ulnet_fault *f)
{
	if ((unsigned int)f->kind >= LNET_FAULT_KINDS)
		return -EINVAL;
	if (!f->rate == !f->interval || f->interval > LNET_FAULT_US_MAX)
		return -EINVAL;
	if (kinds[f->kind].latency == !f->latency ||
	    f->latency > LNET_FAULT_US_MAX)
		return -EINVAL;
	return causes_make_sense(f) && filters_make_sense(f) ? 0 : -EINVAL;
}

/* ---- life ---- */

static uint64_t interval_ns(const struct fault_rule *rule)
{
	return rule->is.interval * NSEC_PER_USEC;
}

static uint64_t rule_draw(const struct fault_rule *rule, uint64_t n)
{
	return hash_u64(n, rule->seed);
}

/* Returns the random moment in the @n-th interval, ns. */
static uint64_t interval_moment(const struct fault_rule *rule, uint64_t n)
{
	uint64_t ns = interval_ns(rule);

	return rule->start + n * ns + rule_draw(rule, n) % ns;
}

struct fault_rule *fault_rule_new(const struct ulnet_fault *f, uint64_t seed,
				  uint64_t now)
{
	struct fault_rule *rule = calloc(1, sizeof(*rule));

	if (!rule)
		return NULL;
	rule->is = *f;
	rule->seed = seed;
	rule->start = now;
	if (f->interval)
		atomic_init(&rule->due, interval_moment(rule, 0));
	return rule;
}

/* ---- which messages ---- */

static bool nid_fits(const struct ulnet_nid *pattern,
		     const struct ulnet_nid *nid)
{
	struct ulnet_nid net;

	if (lnet_nid_is_any(pattern) || lnet_nid_eq(pattern, nid))
		return true;
	net = lnet_nid_make(lnet_nid_net(nid), UINT32_MAX);
	return lnet_nid_eq(pattern, &net);
}

/* The kind of fault that the rule makes: LNET_FAULT_DROP with causes makes an
 * error. */
static enum ulnet_fault_kind rule_kind(const struct ulnet_fault *f)
{
	return f->causes ? LNET_FAULT_ERROR : f->kind;
}

static bool type_fits(const struct ulnet_fault *f,
		      const struct fault_look *look)
{
	uint32_t bit = type_bits[look->type];

	if (f->messages && !(f->messages & bit))
		return false;
	if (!f->portals)
		return true;
	return bit & FAULT_REQUESTS && look->portal < LNET_PORTALS &&
	       f->portals & UINT64_C(1) << look->portal;
}

static bool rule_is_about(const struct ulnet_fault *f,
			  const struct fault_look *look)
{
	return kinds[rule_kind(f)].where &
		       (look->sending ? SENDING : RECEIVING) &&
	       type_fits(f, look) &&
	       (look->length || !kinds[f->kind].payload) &&
	       nid_fits(&f->source, look->source) &&
	       nid_fits(&f->dest, look->dest) &&
	       nid_fits(&f->local, look->local);
}

/* ---- when ---- */

static bool rate_strikes(const struct fault_rule *rule, uint64_t n)
{
	uint32_t rate = rule->is.rate;

	if (rule->is.random)
		return rule_draw(rule, n) % rate == 0;
	return rule_draw(rule, n / rate) % rate == n % rate;
}

/* Strikes once in each interval, from a random moment on; or, with .random,
 * after a random time since the last strike. If several CPTs call this at the
 * same time, it is true for only one of them. */
static bool interval_strikes(struct fault_rule *rule, uint64_t now)
{
	uint64_t due = atomic_load(&rule->due), ns = interval_ns(rule), next;

	if (now < due)
		return false;
	if (rule->is.random)
		next = now + 1 + rule_draw(rule, now) % (2 * ns);
	else
		next = interval_moment(rule, (now - rule->start) / ns + 1);
	return atomic_compare_exchange_strong(&rule->due, &due, next);
}

static bool rule_strikes(struct fault_rule *rule, const struct fault_look *look,
			 uint64_t n)
{
	return rule->is.rate ? rate_strikes(rule, n)
			     : interval_strikes(rule, look->now);
}

static enum ulnet_cause pick_cause(uint32_t causes, uint64_t draw)
{
	unsigned int skip =
		causes ? draw % (unsigned int)__builtin_popcount(causes) : 0;

	while (skip--)
		causes &= causes - 1;
	return causes ? __builtin_ctz(causes) : LNET_CAUSE_OK;
}

void fault_decide(struct fault_rule *const *rules, unsigned int n,
		  const struct fault_look *look, struct fault_hit *hit)
{
	hit->kind = LNET_FAULT_KINDS;
	for (unsigned int i = 0; i < n; i++) {
		struct fault_rule *rule = rules[i];
		uint64_t seen;

		if (!rule_is_about(&rule->is, look))
			continue;
		seen = atomic_fetch_add(&rule->seen, 1);
		if (!rule_strikes(rule, look, seen))
			continue;
		atomic_fetch_add(&rule->struck[look->type], 1);
		hit->kind = rule_kind(&rule->is);
		hit->latency_ns = rule->is.latency * NSEC_PER_USEC;
		hit->draw = rule_draw(rule, ~seen);
		hit->cause = pick_cause(rule->is.causes, hit->draw);
		return;
	}
}

/* ---- counters, and comparing ---- */

void fault_rule_reset(struct fault_rule *rule)
{
	atomic_store(&rule->seen, 0);
	for (unsigned int i = 0; i < FAULT_TYPES; i++)
		atomic_store(&rule->struck[i], 0);
}

void fault_rule_info(const struct fault_rule *rule,
		     struct ulnet_fault_info *info)
{
	uint64_t struck[FAULT_TYPES];

	*info = (struct ulnet_fault_info){ .fault = rule->is,
					   .seen = atomic_load(&rule->seen) };
	for (unsigned int i = 0; i < FAULT_TYPES; i++) {
		struck[i] = atomic_load(&rule->struck[i]);
		info->fired += struck[i];
	}
	info->struck = (struct ulnet_counts){ .ack = struck[0],
					      .put = struck[1],
					      .get = struck[2],
					      .reply = struck[3] };
}

bool fault_rule_is(const struct fault_rule *rule, enum ulnet_fault_kind kind,
		   const struct ulnet_nid *source, const struct ulnet_nid *dest)
{
	return (kind == LNET_FAULT_KINDS || rule->is.kind == kind) &&
	       (!source || lnet_nid_eq(source, &rule->is.source)) &&
	       (!dest || lnet_nid_eq(dest, &rule->is.dest));
}

bool fault_rule_same(const struct fault_rule *rule, const struct ulnet_fault *f)
{
	const struct ulnet_fault *is = &rule->is;

	return fault_rule_is(rule, f->kind, &f->source, &f->dest) &&
	       lnet_nid_eq(&is->local, &f->local) &&
	       is->portals == f->portals && is->messages == f->messages &&
	       is->rate == f->rate && is->interval == f->interval &&
	       is->random == f->random && is->latency == f->latency &&
	       is->causes == f->causes;
}

void lnet_fault_init(struct ulnet_fault *fault, enum ulnet_fault_kind kind)
{
	*fault = (struct ulnet_fault){ .kind = kind,
				       .source = LNET_NID_ANY,
				       .dest = LNET_NID_ANY,
				       .local = LNET_NID_ANY };
}
