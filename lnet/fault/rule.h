/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules of fault injection: which messages a rule strikes, and when. Knows
 * neither nodes nor messages, only struct fault_look.
 *
 * All CPTs use a rule at the same time: it is immutable, except for counters,
 * which are atomic. Random numbers are computed from the seed and the counters
 * of the rule, so that the same messages in the same order meet the same
 * faults.
 */
#ifndef LNET_FAULT_RULE_H
#define LNET_FAULT_RULE_H

#include <stdatomic.h>
#include "base/util.h"
#include "ulnet/fault.h"

#define FAULT_TYPES 4 /* number of message types: LNET_MSG_* */

struct fault_rule {
	struct ulnet_fault is;
	uint64_t seed;
	uint64_t start; /* ns: when the first interval began */
	/* ns: with .interval, the rule strikes the first message after this
	 * time */
	_Atomic uint64_t due;
	_Atomic uint64_t seen;
	_Atomic uint64_t struck[FAULT_TYPES];
};

/* What rules look at in a message. The NIDs are borrowed. */
struct fault_look {
	const struct ulnet_nid *source, *dest, *local;
	unsigned int type;   /* LNET_MSG_* */
	unsigned int portal; /* only for a PUT or GET */
	uint32_t length;     /* bytes of the payload */
	/* true: the message is to be sent; false: it was received */
	bool sending;
	uint64_t now; /* ns: the time now */
};

/* The fault that a message meets. */
struct fault_hit {
	enum ulnet_fault_kind kind; /* LNET_FAULT_KINDS: no fault */
	uint64_t latency_ns;	    /* with LNET_FAULT_DELAY: how long, ns */
	/* with LNET_FAULT_ERROR: the cause that is reported */
	enum ulnet_cause cause;
	/* a random number, which decides where to corrupt the message */
	uint64_t draw;
};

/* Returns 0, or -EINVAL: the rule makes no sense. */
int fault_check(const struct ulnet_fault *f) must_check;

/* Makes a rule from @f, which fault_check() must have accepted. @now: ns on the
 * clock of a CPT's loop. Returns NULL if there is no memory. To be freed with
 * free() when no CPT uses the rule any more. */
struct fault_rule *fault_rule_new(const struct ulnet_fault *f, uint64_t seed,
				  uint64_t now);

/* Sets *@hit to what the first of the @n rules that strikes the message does to
 * it. That rule, and each rule before it whose filters the message passes,
 * counts the message as seen. Any thread. */
void fault_decide(struct fault_rule *const *rules, unsigned int n,
		  const struct fault_look *look, struct fault_hit *hit);

/* Set the counters of the rule to 0; describe the rule and its counters. Any
 * thread. */
void fault_rule_reset(struct fault_rule *rule);
void fault_rule_info(const struct fault_rule *rule,
		     struct ulnet_fault_info *info);

/* Does the rule have this kind (LNET_FAULT_KINDS: any), source and destination
 * (NULL: any)? */
bool fault_rule_is(const struct fault_rule *rule, enum ulnet_fault_kind kind,
		   const struct ulnet_nid *source,
		   const struct ulnet_nid *dest);

/* Is the rule equal to one that would be made from @f? */
bool fault_rule_same(const struct fault_rule *rule,
		     const struct ulnet_fault *f);

#endif
