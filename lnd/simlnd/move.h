/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that go to another CPT, with the NID that they lead to (lnd.h,
 * can_move() and move()). The connection leaves its path here, and comes to the
 * path there in a turn of that CPT's. What is on its way to this CPT meanwhile
 * is passed on when it arrives, and what was sent later may overtake it then.
 * Inside simlnd only.
 */
#ifndef LND_SIMLND_MOVE_H
#define LND_SIMLND_MOVE_H

#include "lnd/simlnd/net.h"

/* As lnd.h. */
bool sim_can_move(struct lnd_ni *ni, unsigned int cpt,
		  const struct ulnet_nid *nid);
void sim_move(struct lnd_ni *ni, unsigned int cpt, const struct ulnet_nid *nid);

#endif
