/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applies the fault rules of a node to its messages. The number of delayed
 * messages and copies is bounded (lnet/message/tamper.h): beyond the bound a
 * message goes on as if no rule had struck it, and faults_skipped is counted.
 */
#ifndef LNET_FAULT_INJECT_H
#define LNET_FAULT_INJECT_H

#include "lnet/fault/rule.h"
#include "lnet/message/msgs.h"

/* All rules of a node: an immutable snapshot. Changing the rules makes a new
 * set, which may share rules with the old set. The msg_cpt.faults of each CPT
 * points to .does of the set that the CPT uses. */
struct fault_set {
	struct msg_faults does;
	unsigned int n;
	struct fault_rule *rule[];
};

/* Returns an empty set with room for @n rules, to be freed with free(). NULL:
 * there is no memory. */
struct fault_set *fault_set_new(unsigned int n);

#endif
