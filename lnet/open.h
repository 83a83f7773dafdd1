/* SPDX-License-Identifier: BSD-3-Clause */
/* lnet_open(3), and the list of LNDs. */
#ifndef LNET_OPEN_H
#define LNET_OPEN_H

struct lnd;

/* All LNDs of nodes that lnet_open() opens: node_params.lnds. */
extern const struct lnd *const open_lnds[];

#endif
