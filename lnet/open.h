/* SPDX-License-Identifier: BSD-3-Clause */
/* LNet as users open it: what is in rooms and LNDs, put together. */
#ifndef LNET_OPEN_H
#define LNET_OPEN_H

struct lnd;

/* node_params.lnds: every LND that nets are configured by. */
extern const struct lnd *const open_lnds[];

#endif
