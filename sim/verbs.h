/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated RDMA devices in a cluster: nets of type o2ib run o2iblnd over them,
 * instead of simlnd. Their faults are set by simqp.h; lnet_sim_crash() and what
 * checks operations hold for them, too, but for what the network itself knows
 * of messages.
 */
#ifndef SIM_VERBS_H
#define SIM_VERBS_H

#include "lnd/o2iblnd/simqp/simqp.h"
#include "ulnet/sim.h"

/* Before the first node. @conf NULL: the defaults. The simulation's, until it
 * is freed. 0, -EALREADY, -ENOMEM. */
int sim_verbs(struct lnet_sim *sim, const struct simqp_conf *conf,
	      struct simqp_fabric **fabric_p) must_check;

#endif
