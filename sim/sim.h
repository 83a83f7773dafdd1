/* SPDX-License-Identifier: BSD-3-Clause */
/* What our own tests use of the simulator in addition to ulnet/sim.h. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "lnd/o2iblnd/simqp/simqp.h"
#include "ulnet/sim.h"

/*
 * Gives the cluster simulated RDMA devices: nets of type o2ib then use o2iblnd
 * on these devices instead of simlnd. Faults of the devices are set with
 * simqp.h. lnet_sim_crash() and the checks of operations work as with simlnd,
 * except for checks that rely on what the simulated network knows of messages.
 * To be called before the first node is added. @conf NULL: defaults. *@fabric_p
 * belongs to the simulation. Returns 0, -EALREADY or -ENOMEM.
 */
int sim_verbs(struct lnet_sim *sim, const struct simqp_conf *conf,
	      struct simqp_fabric **fabric_p) must_check;

struct sim_memory {
	/* ns: a node hears of what has come to a socket within that time, drawn
	 * each time; the rings themselves are as fast as memory is */
	uint64_t delay;
	int64_t ring_size, copy_min; /* the tunables: shmlnd(7) */
};

/*
 * Makes the nodes of the cluster one host: nets of type shm then use shmlnd, on
 * memory and sockets that are real, in virtual time. Each node gets loops of
 * its own, as by lnet_sim_apart(): one that is paused leaves its rings as they
 * are, and of one that crashes others hear by the end of its sockets. To be
 * called before the first node is added. Returns 0 or -EALREADY.
 */
int sim_memory(struct lnet_sim *sim, const struct sim_memory *conf) must_check;

/* Somebody who sees and may change each message on the wire: LNet's header, of
 * @hdr_len bytes, and the payload. From now on @fn(@arg, ...) is called for
 * each; NULL: nobody. To be called outside of any turn. */
typedef void sim_tap_fn(void *arg, uint8_t *hdr, size_t hdr_len,
			uint8_t *payload, size_t length);
void sim_tap(struct lnet_sim *sim, sim_tap_fn *fn, void *arg);

/* From now on nodes push small messages over the simulated network (lnd.push())
 * with the probability @ppm. 0, at first: they do not. */
void sim_push(struct lnet_sim *sim, uint32_t ppm);

/* From now on the first @bits of an NI's address are its IP network, as nodes
 * of the simulated network see it. 0, at first: it is not known. To be called
 * before the first node is added. */
void sim_prefix(struct lnet_sim *sim, unsigned int bits);

/*
 * Checks that all that a node holds is consistent: credits and the messages
 * that hold them, queues, references. To be called outside of any turn. Returns
 * NULL, or @buf with a description of what is wrong.
 */
const char *node_check(struct lnet *node, char *buf, size_t size);

#endif
