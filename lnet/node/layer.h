/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who lives on a node, and ends before it. Inside LNet only; the contract is in
 * ulnet/loop.h.
 */
#ifndef LNET_LAYER_H
#define LNET_LAYER_H

struct lnet;

/* The node is to be closed: nobody lives on it afterwards. */
void layers_close(struct lnet *node);
/* The node has crashed: layers call no users any more. */
void layers_mute(struct lnet *node);

#endif
