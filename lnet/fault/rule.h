/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules of fault injection: which message a rule strikes, and when. Knows
 * neither nodes nor messages, only struct fault_look.
 *
 * All CPTs use a rule at the same time: it is immutable, and its counters are
 * atomic. Random draws are computed from the rule's seed and counters, so that
 * the same messages in the same order meet the same faults.
 */
#ifndef LNET_FAULT_RULE_H
#define LNET_FAULT_RULE_H

#include <stdatomic.h>
#include "base/util.h"
#include "ulnet/fault.h"

#define FAULT_TYPES 4 /* of messages: LNET_MSG_* */

struct fault_rule {
	struct ulnet_fault is;
	uint64_t seed;
	uint64_t start;	      /* ns: when the first interval begins */
	_Atomic uint64_t due; /* ns: with .interval, from when on the rule
			       * strikes the next message */
	_Atomic uint64_t seen;
	_Atomic uint64_t struck[FAULT_TYPES];
};

/* What rules look at in a message. Borrows the NIDs. */
struct fault_look {
	const struct ulnet_nid *source, *dest, *local;
	unsigned int type;   /* LNET_MSG_* */
	unsigned int portal; /* only of a PUT or GET */
	uint32_t length;     /* of the payload */
	bool sending;	     /* else receiving */
	uint64_t now;	     /* ns */
};

/* What is done to a message. */
struct fault_hit {
	enum ulnet_fault_kind kind; /* LNET_FAULT_KINDS: nothing */
	uint64_t latency_ns;	    /* LNET_FAULT_DELAY */
	enum ulnet_cause cause;	    /* LNET_FAULT_ERROR */
	uint64_t draw;		/* random, for where to corrupt */
};

/* Returns 0, or -EINVAL: the rule makes no sense. */
int fault_check(const struct ulnet_fault *f) must_check;

/* Makes a rule of @f, which fault_check() has accepted. @now: ns, of a CPT's
 * loop. Returns NULL if there is no memory. For free(), when no CPT uses the
 * rule. */
struct fault_rule *fault_rule_new(const struct ulnet_fault *f, uint64_t seed,
				  uint64_t now);

/* The first of @n rules that strikes the message decides what *@hit is. That
 * rule, and those before it, count the message as seen if it passes their
 * filters. Any thread. */
void fault_decide(struct fault_rule *const *rules, unsigned int n,
		  const struct fault_look *look, struct fault_hit *hit);

/* Set the counters to 0; describe the rule and its counters. Any thread. */
void fault_rule_reset(struct fault_rule *rule);
void fault_rule_info(const struct fault_rule *rule,
		     struct ulnet_fault_info *info);

/* Has the rule this kind (LNET_FAULT_KINDS: any), source and destination (NULL:
 * any)? */
bool fault_rule_is(const struct fault_rule *rule, enum ulnet_fault_kind kind,
		   const struct ulnet_nid *source,
		   const struct ulnet_nid *dest);

/* Was the rule made of an equal @f? */
bool fault_rule_same(const struct fault_rule *rule,
		     const struct ulnet_fault *f);

#endif
