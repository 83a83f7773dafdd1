/* SPDX-License-Identifier: BSD-3-Clause */
/* A node and what it knows of others, as a drawing for Graphviz. */
#ifndef CONFIG_DOT_H
#define CONFIG_DOT_H

#include <stdio.h>
#include "base/util.h"
#include "ulnet/lnet.h"

/* Writes a digraph: this node with its interfaces, nets, peers with their
 * NIDs, routes. Errors of @out are in ferror(@out). 0, or what reading the node
 * fails with; -ENOMEM. */
int dot_print(struct lnet *node, FILE *out) must_check;

#endif
