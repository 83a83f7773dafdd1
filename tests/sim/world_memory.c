/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host whose nodes have rings in memory between them (sim/sim.h). What these
 * seldom do by themselves is made to happen here, and counted: the linker puts
 * functions of this file in the place of two of shmlnd's.
 */
#include "tests/sim/world.h"

#include <errno.h>

#include "lnd/shmlnd/loan.h"
#include "lnd/shmlnd/ring.h"
#include "sim/sim.h"
#include "sim/sim_priv.h"
#include "tests/sim/cluster.h"

/* Of the run; there is one at a time. */
static struct {
	/* Not the simulation's: the other runs are what they would be if no
	 * copy ever failed. */
	struct rng rng;
	unsigned int percent; /* of copies that fail */
	uint64_t waits; /* times that a side slept until a ring has room */
	uint64_t fails; /* copies that have failed */
} host;

/* ---- in the place of functions of shmlnd ---- */

bool __real_shm_ring_sleep(struct shm_ring *r, uint32_t what);
bool __wrap_shm_ring_sleep(struct shm_ring *r, uint32_t what);

bool __wrap_shm_ring_sleep(struct shm_ring *r, uint32_t what)
{
	bool sleeps = __real_shm_ring_sleep(r, what);

	host.waits += sleeps && what & SHM_WANTS_ROOM;
	return sleeps;
}

int __real_shm_copy(int pid, const struct shm_token *token,
		    const struct shm_segment *from, unsigned int n,
		    const struct iovec *to, unsigned int nto, size_t length);
int __wrap_shm_copy(int pid, const struct shm_token *token,
		    const struct shm_segment *from, unsigned int n,
		    const struct iovec *to, unsigned int nto, size_t length);

/* The system may refuse any copy, the first one, of nothing, or a later one:
 * because of this memory, or of the whole process. */
int __wrap_shm_copy(int pid, const struct shm_token *token,
		    const struct shm_segment *from, unsigned int n,
		    const struct iovec *to, unsigned int nto, size_t length)
{
	if (!host.percent || rng_below(&host.rng, 100) >= host.percent)
		return __real_shm_copy(pid, token, from, n, to, nto, length);
	host.fails += length != 0;
	return rng_below(&host.rng, 4) ? -EFAULT : -EPERM;
}

/* ---- the world ---- */

static uint64_t rnd(struct lnet_sim *sim, uint64_t below)
{
	return lnet_sim_random(sim, below);
}

/* Short rings are soon full; and what is short is copied out of the sender's
 * memory, too, or nothing is. In one run of four rings are as short as they can
 * be, and copies fail: then what was lent goes through a ring, or is called
 * back, and may find the ring full. */
int world_new(struct lnet_sim *sim)
{
	static const unsigned int percent[] = { 5, 25, 60 };
	static const int64_t copy_min[] = { 0, 64, 1024, 16384 };
	struct sim_memory conf = {
		.delay = rnd(sim, rnd(sim, 100) < 20 ? MS : 20 * US),
		.ring_size = SHM_RING_MIN << rnd(sim, 2),
		.copy_min = copy_min[rnd(sim, 4)],
	};

	host.waits = host.fails = host.percent = 0;
	if (sim->seed % 4 == 1) {
		rng_seed(&host.rng, sim->seed);
		host.percent = percent[sim->seed / 4 % 3];
		conf.ring_size = SHM_RING_MIN;
	}
	return sim_memory(sim, &conf);
}

/* The second of several rails is TCP. */
void world_nids(struct ulnet_nid *nids, unsigned int n, unsigned int index)
{
	for (unsigned int i = 0; i < n; i++)
		nids[i] = lnet_nid_make(
			LNET_NET(i == 1 ? LNET_TYPE_SOCK : LNET_TYPE_SHM, 0),
			0x0a000001 + (i << 16) + index);
}

/* A node stands still for up to half a minute. */
bool world_disturb(struct lnet_sim *sim, unsigned int nodes)
{
	unsigned int i = (unsigned int)rnd(sim, nodes);

	return rnd(sim, 100) < 30 &&
	       !lnet_sim_pause(sim, i, rnd(sim, (100 * MS) << rnd(sim, 9)));
}

void world_tell(scenario_tell_fn tell, void *arg)
{
	tell(arg, SCENARIO_MUST, "a node waits for room in a ring", host.waits);
	tell(arg, SCENARIO_MUST, "what is lent cannot be copied", host.fails);
}
