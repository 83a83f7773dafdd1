/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules of fault injection: which message a rule strikes, and when. Knows
 * neither nodes nor messages, only what a rule looks at.
 *
 * A rule and its counters belong to whoever made it (fault_rule_new()), and all
 * CPTs use them at the same time: the rule is immutable, the counters are
 * atomic. What is drawn follows from the rule's seed and its counters, so the
 * same messages in the same order meet the same faults.
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
	uint64_t start;	      /* ns: the first interval begins */
	_Atomic uint64_t due; /* ns: interval: it strikes the next message from
			       * then on */
	_Atomic uint64_t seen;
	_Atomic uint64_t struck[FAULT_TYPES];
};

/* What rules look at. Borrows the NIDs. */
struct fault_look {
	const struct ulnet_nid *source, *dest, *local;
	unsigned int type;   /* LNET_MSG_* */
	unsigned int portal; /* of a PUT or GET; of others anything */
	uint32_t length;     /* of the payload */
	bool sending;	     /* else receiving */
	uint64_t now;	     /* ns */
};

/* What befalls a message. */
enum fault_act {
	FAULT_NOTHING,
	FAULT_DROP,
	FAULT_DELAY,
	FAULT_DUPLICATE,
	FAULT_CORRUPT,
	FAULT_FAIL,
};

struct fault_hit {
	enum fault_act act;
	uint64_t latency_ns;	/* FAULT_DELAY */
	enum ulnet_cause cause; /* FAULT_FAIL */
	uint64_t draw;		/* random, for where to corrupt */
};

/* 0, or -EINVAL. */
int fault_check(const struct ulnet_fault *f) must_check;

/* @f has been checked. @now: ns, of the CPTs' loops. NULL: no memory.
 * free() when no CPT knows it any more. */
struct fault_rule *fault_rule_new(const struct ulnet_fault *f, uint64_t seed,
				  uint64_t now);

/* The first of @n rules that strikes the message decides. That rule, and those
 * before it, count the message as seen if they are about such messages. Any
 * thread. */
void fault_decide(struct fault_rule *const *rules, unsigned int n,
		  const struct fault_look *look, struct fault_hit *hit);

/* Any thread. */
void fault_rule_reset(struct fault_rule *rule);
void fault_rule_info(const struct fault_rule *rule,
		     struct ulnet_fault_info *info);

/* Is the rule of this kind (LNET_FAULT_KINDS: any), with this source and
 * destination (NULL: any)? */
bool fault_rule_is(const struct fault_rule *rule, enum ulnet_fault_kind kind,
		   const struct ulnet_nid *source,
		   const struct ulnet_nid *dest);

/* Is it made of the very same @f? */
bool fault_rule_same(const struct fault_rule *rule,
		     const struct ulnet_fault *f);

#endif
