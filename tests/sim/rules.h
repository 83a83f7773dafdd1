/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault rules on the nodes of a random cluster: what nodes do to their own
 * messages (lnet_fault(3)), beside what the network does. */
#ifndef TESTS_SIM_RULES_H
#define TESTS_SIM_RULES_H

#include <ulnet/fault.h>
#include <ulnet/sim.h>

/* How often rules of each kind have struck, as far as they were deleted. */
struct rules {
	uint64_t struck[LNET_FAULT_KINDS];
};

extern const char *const rules_names[LNET_FAULT_KINDS];

/* A rule more on @node, of any kind, or none any more. Payloads are corrupted
 * of what goes to the portals @corrupt: bits. NIDs of a rule are @a and @b, if
 * it is not about all. */
void rules_change(struct rules *r, struct lnet_sim *sim, struct lnet *node,
		  const struct ulnet_nid *a, const struct ulnet_nid *b,
		  uint64_t corrupt);

/* None any more. What they have delayed comes within 50 ms. */
void rules_forget(struct rules *r, struct lnet_sim *sim, struct lnet *node);

#endif
