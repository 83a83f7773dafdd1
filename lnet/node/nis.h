/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces that come and go: the control side of net/. Changes are made one
 * at a time; each publishes a new snapshot to all CPTs.
 */
#ifndef LNET_NIS_H
#define LNET_NIS_H

#include "base/util.h"

struct lnd;
struct lnd_upcalls;
struct lnet;

/* What the rooms of LNet do for LNDs. */
extern const struct lnd_upcalls nis_upcalls;

/* Every node has 0@lo, from its first moment to its last. */
int nis_start_lo(struct lnet *node) must_check;
/* All NIs are gone. */
void nis_fini(struct lnet *node);

/* Which LND serves nets of @type on the node, or NULL. */
const struct lnd *node_lnd(const struct lnet *node, int type);

#endif
