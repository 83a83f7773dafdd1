/* SPDX-License-Identifier: BSD-3-Clause */
/* Random fault rules on the nodes of a random cluster: what nodes do to their
 * own messages (lnet_fault(3)), in addition to what the network does. */
#ifndef TESTS_SIM_RULES_H
#define TESTS_SIM_RULES_H

#include <ulnet/fault.h>
#include <ulnet/sim.h>

/* By kind: how often the rules that have been deleted have struck. */
struct rules {
	uint64_t struck[LNET_FAULT_KINDS];
};

extern const char *const rules_names[LNET_FAULT_KINDS];

/* Adds a rule of any kind to @node, or deletes all. Rules corrupt payloads only
 * for the portals in @corrupt, a bit each. A rule that is not for all messages
 * is about NIDs @a and @b. */
void rules_change(struct rules *r, struct lnet_sim *sim, struct lnet *node,
		  const struct ulnet_nid *a, const struct ulnet_nid *b,
		  uint64_t corrupt);

/* Deletes all rules. Messages that they have delayed arrive within 50 ms. */
void rules_forget(struct rules *r, struct lnet_sim *sim, struct lnet *node);

#endif
