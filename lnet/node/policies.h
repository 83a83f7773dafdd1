/* SPDX-License-Identifier: BSD-3-Clause */
/* The policies of a node: control side of policy/table.h. */
#ifndef LNET_NODE_POLICIES_H
#define LNET_NODE_POLICIES_H

struct lnet;

/* With the node: no CPT uses them any more. */
void policies_fini(struct lnet *node);

#endif
