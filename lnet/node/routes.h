/* SPDX-License-Identifier: BSD-3-Clause */
/* The routes of a node, from its first moment to its last. */
#ifndef LNET_NODE_ROUTES_H
#define LNET_NODE_ROUTES_H

#include "base/util.h"

struct lnet;

/* There are none yet. */
int routes_start(struct lnet *node) must_check;
void routes_fini(struct lnet *node);

#endif
