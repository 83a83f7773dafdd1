/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of a node, and what they do to its messages. What a rule makes the
 * node keep is bounded as said in lnet/message/tamper.h and copy.h; a message
 * for which that is used up goes on as if no rule had struck it, and is counted
 * (faults_skipped).
 */
#ifndef LNET_FAULT_INJECT_H
#define LNET_FAULT_INJECT_H

#include "lnet/fault/rule.h"
#include "lnet/message/msgs.h"

/* Immutable; a change makes a new one. Each CPT uses the one that it holds:
 * msg_cpt.faults is its @does. The rules are those of several sets. */
struct fault_set {
	struct msg_faults does;
	unsigned int n;
	struct fault_rule *rule[];
};

/* A set with room for @n rules, and none yet. NULL: no memory. free(). */
struct fault_set *fault_set_new(unsigned int n);

#endif
