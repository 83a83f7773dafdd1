/* SPDX-License-Identifier: BSD-3-Clause */
/* What our tests use of the simulator beside ulnet/sim.h. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "lnd/o2iblnd/simqp/simqp.h"
#include "ulnet/sim.h"

/*
 * Gives the cluster simulated RDMA devices: nets of type o2ib then use o2iblnd
 * on these instead of simlnd. simqp.h sets their faults. lnet_sim_crash() and
 * the checks of operations work as with simlnd, except for those that rely on
 * what the simulated network knows of messages. To be called before the first
 * node is added. @conf NULL: defaults. The simulation owns *@fabric_p. Returns
 * 0, -EALREADY or -ENOMEM.
 */
int sim_verbs(struct lnet_sim *sim, const struct simqp_conf *conf,
	      struct simqp_fabric **fabric_p) must_check;

/*
 * Checks the consistency of all that a node holds: credits against the messages
 * that hold them, queues, references. Outside of any turn. Returns NULL, or a
 * description of what is wrong, in @buf.
 */
const char *node_check(struct lnet *node, char *buf, size_t size);

#endif
