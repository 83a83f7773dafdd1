/* SPDX-License-Identifier: BSD-3-Clause */
/* What gate_rules.c makes of a text, for gate.c. */
#ifndef RPC_GATE_RULES_H
#define RPC_GATE_RULES_H

#include "rpc/server/gate.h"

enum gate_per { GATE_PER_HOST, GATE_PER_CLIENT, GATE_PER_RULE };

struct gate_rule {
	struct ulnet_nidlist *nids; /* NULL: any */
	bool one_pid, one_method;   /* else any */
	uint32_t pid, method;
	uint32_t rate;	/* requests a second; not 0 */
	uint32_t depth; /* not 0 */
	enum gate_per per;
};

/* Immutable. */
struct gate_rules {
	unsigned int n;
	struct gate_rule rule[];
};

/* The index of the rule that holds for @item; rules->n: none. */
unsigned int gate_rules_match(const struct gate_rules *rules,
			      const struct sched_item *item);

#endif
