/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applies the fault rules of a node to its messages. Delayed messages and
 * copies are bounded (lnet/message/tamper.h): beyond that a message goes on as
 * if no rule had struck it, and faults_skipped is counted.
 */
#ifndef LNET_FAULT_INJECT_H
#define LNET_FAULT_INJECT_H

#include "lnet/fault/rule.h"
#include "lnet/message/msgs.h"

/* All rules of a node: a snapshot. Immutable; a change of rules makes a new
 * set, which may share rules with the old one. In each CPT, msg_cpt.faults
 * points to .does of the set that it uses. */
struct fault_set {
	struct msg_faults does;
	unsigned int n;
	struct fault_rule *rule[];
};

/* Returns a set with room for @n rules, and none in it yet, for free(). NULL:
 * no memory. */
struct fault_set *fault_set_new(unsigned int n);

#endif
