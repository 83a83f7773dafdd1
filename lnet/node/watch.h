/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who wants to hear that connections to peers have ended. Inside LNet only; the
 * contract is in ulnet/loop.h, and for LNDs in lnd/lnd.h.
 *
 * Owner: the CPT.
 */
#ifndef LNET_WATCH_H
#define LNET_WATCH_H

struct lnet_cpt;

void watches_init(struct lnet_cpt *cpt);

#endif
