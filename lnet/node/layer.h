/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who lives on a node, and hears of its crash. Inside LNet only; the contract
 * is in ulnet/loop.h.
 */
#ifndef LNET_LAYER_H
#define LNET_LAYER_H

struct lnet;

/* The node is to be closed: nobody lives on it afterwards. */
void layers_close(struct lnet *node);
/* The node has crashed: it is marked, nothing of it has ended yet. */
void layers_crash(struct lnet *node);
/* It has ended, its loops are still there. */
void layers_gone(struct lnet *node);

#endif
