/* SPDX-License-Identifier: BSD-3-Clause */
/* o2iblnd in the conformance suite: two nodes in the simulator, over simulated
 * queue pairs, where the simulator's own checks count, too; and two nodes in
 * real time, on the RDMA devices that tests/vm/o2ib_rpc.sh describes, if this
 * machine has them. */
#include "tests/lnd/conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/sim.h"
#include "tests/all_memory.h"

struct params {
	unsigned int cpts;
	struct simqp_conf conf;
	struct simqp_link link;
	struct simqp_device device;
	struct ulnet_tunable tunables[2];
	unsigned int ntunables;
	bool registered; /* all memory is registered */
};

struct cluster {
	struct lnet_sim *sim;
	struct simqp_fabric *fabric;
};

static const char *const nids[2] = { "10.0.0.1@o2ib", "10.0.0.2@o2ib" };

static int node_start(void *arg, unsigned int index, struct lnet *node)
{
	const struct params *p = arg;
	struct ulnet_ni_conf conf = {
		.tunables = p->tunables,
		.ntunables = p->ntunables,
	};
	int rc = lnet_nid_parse(nids[index], &conf.nid);

	if (!rc && p->registered)
		rc = all_memory_register(node);
	return rc ? rc : lnet_ni_add(node, &conf);
}

static int cluster_up(struct lnd_rig *rig, struct cluster *c)
{
	struct params *p = rig->arg;
	const struct ulnet_nid any = LNET_NID_ANY;
	int rc = lnet_sim_new(1, p->cpts, &c->sim);

	if (rc)
		return rc;
	rc = sim_verbs(c->sim, &p->conf, &c->fabric);
	if (rc) {
		lnet_sim_free(c->sim);
		return rc;
	}
	simqp_link_set(c->fabric, &any, &any, &p->link);
	for (unsigned int i = 0; i < 2 && rc >= 0; i++) {
		lnet_nid_parse(nids[i], &rig->nid[i]);
		simqp_device_set(c->fabric, &rig->nid[i], &p->device);
		rc = lnet_sim_node_add(c->sim, "", NULL, node_start, p);
		rig->node[i] = lnet_sim_node(c->sim, i);
	}
	if (rc < 0)
		lnet_sim_free(c->sim);
	return MIN(rc, 0);
}

static int up(struct lnd_rig *rig)
{
	struct cluster *c = calloc(1, sizeof(*c));
	int rc = c ? lnet_nid_parse("10.0.0.99@o2ib", &rig->absent) : -ENOMEM;

	if (!rc)
		rc = cluster_up(rig, c);
	if (rc)
		free(c);
	rig->priv = rc ? NULL : c;
	return rc;
}

static unsigned int down(struct lnd_rig *rig)
{
	struct cluster *c = rig->priv;
	unsigned int violations = lnet_sim_free(c->sim);

	free(c);
	return violations;
}

static struct lnet_sim *sim_of(const struct lnd_rig *rig)
{
	return ((struct cluster *)rig->priv)->sim;
}

static void run(struct lnd_rig *rig, uint64_t us)
{
	lnet_sim_run(sim_of(rig), us * 1000);
}

static unsigned int check(struct lnd_rig *rig)
{
	return lnet_sim_check(sim_of(rig));
}

static int kill_peer(struct lnd_rig *rig)
{
	rig->node[1] = NULL;
	return lnet_sim_crash(sim_of(rig), 1);
}

static int restart_peer(struct lnd_rig *rig)
{
	int rc = lnet_sim_restart(sim_of(rig), 1);

	rig->node[1] = lnet_sim_node(sim_of(rig), 1);
	return rc;
}

static int lose(struct lnd_rig *rig, unsigned int from, bool on)
{
	struct cluster *c = rig->priv;

	simqp_silence(c->fabric, &rig->nid[from], &rig->nid[1 - from],
		      on ? TIME_NEVER : 0);
	return 0;
}

static const struct lnd_rig_ops ops = {
	.up = up,
	.down = down,
	.run = run,
	.check = check,
	.kill_peer = kill_peer,
	.restart_peer = restart_peer,
	.lose = lose,
};

#define FAST                     \
	{                        \
		.latency = 2000, \
	}
/* 1 MiB takes 10 ms to send. */
#define SLOW                                               \
	{                                                  \
		.latency = 1000000, .bandwidth = 100000000 \
	}

static struct params fast = { .cpts = 1, .link = FAST };
static struct params slow = { .cpts = 1, .link = SLOW };
static struct params two = { .cpts = 2, .link = FAST };
static struct params lossy = {
	.cpts = 1,
	.conf = { .ack_ns = 100000, .rnr_ns = 20000 },
	.link = { .latency = 2000,
		  .jitter = 5000,
		  .loss = 20000,
		  .rnr = 20000 },
};
static struct params several = {
	.cpts = 2,
	.link = FAST,
	.tunables = { { "conns_per_peer", 3 } },
	.ntunables = 1,
};
/* Memory for four payloads of 1 MiB, of which a peer may use half. */
static struct params little_memory = {
	.cpts = 1,
	.link = SLOW,
	.tunables = { { "bounce_max", 4194304 }, { "cksum", 1 } },
	.ntunables = 2,
};

static struct params registered = {
	.cpts = 1,
	.link = SLOW,
	.registered = true,
};
static struct params registered_two = {
	.cpts = 2,
	.link = FAST,
	.registered = true,
	.tunables = { { "register_max", 3000000 } },
	.ntunables = 1,
};

/* ---- devices ---- */

static int has_devices(const char **why)
{
	bool there = !access("/sys/class/infiniband/rxea", F_OK) &&
		     !access("/sys/class/infiniband/rxeb", F_OK);

	*why = there ? NULL : "no RDMA devices rxea and rxeb";
	return there ? 0 : -ENOTSUP;
}

#define NODES                                           \
	.nids = { "10.77.9.1@o2ib", "10.77.9.2@o2ib" }, \
	.absent = "10.77.9.99@o2ib", .may_run = has_devices

/* short pauses, so that a peer that comes back is soon connected again */
static const struct ulnet_tunable quick[] = {
	{ "min_reconnectms", 1 },
	{ "max_reconnectms", 20 },
};

static struct real_net polls = { NODES, .run = LNET_RUN_POLL, .cpts = 1,
				 .tunables = quick, .ntunables = 2 };
static struct real_net threads = { NODES, .run = LNET_RUN_THREADS, .cpts = 2,
				   .tunables = quick, .ntunables = 2 };

static struct real_net direct = { NODES,	  .run = LNET_RUN_POLL,
				  .cpts = 1,	  .tunables = quick,
				  .ntunables = 2, .registered = true };

/* Large payloads are fetched once they are matched, so smaller ones may
 * overtake them. */
#define CAN (RIG_KILL | RIG_VIRTUAL_TIME | RIG_OVERTAKE)
#define RIG(text, params, more)                                   \
	{                                                         \
		.name = (text), .can = CAN | (more), .ops = &ops, \
		.arg = &(params)                                  \
	}

static struct lnd_rig rigs[] = {
	RIG("o2iblnd", fast, RIG_LOSE),
	RIG("o2iblnd, slow link", slow, RIG_LOSE),
	RIG("o2iblnd, 2 CPTs", two, RIG_LOSE),
	/* These devices give up so soon that deliberate losses end connections.
	 */
	RIG("o2iblnd, losses", lossy, 0),
	RIG("o2iblnd, 3 connections, 2 CPTs", several, RIG_LOSE),
	RIG("o2iblnd, little memory", little_memory, RIG_LOSE),
	RIG("o2iblnd, registered memory", registered, RIG_LOSE),
	RIG("o2iblnd, registered memory, 2 CPTs", registered_two, RIG_LOSE),
	{ .name = "o2iblnd on devices",
	  .can = RIG_KILL | RIG_OVERTAKE,
	  .ops = &real_ops,
	  .arg = &polls,
	  .patience = 300000000 },
	{ .name = "o2iblnd on devices, registered memory",
	  .can = RIG_KILL | RIG_OVERTAKE,
	  .ops = &real_ops,
	  .arg = &direct,
	  .patience = 300000000 },
	{ .name = "o2iblnd on devices, threads, 2 CPTs",
	  .can = RIG_KILL | RIG_OVERTAKE | RIG_THREADS,
	  .ops = &real_ops,
	  .arg = &threads,
	  .patience = 300000000 },
};

int main(int argc, char **argv)
{
	heap_keep();
	return conformance_main(argc, argv, rigs,
				sizeof(rigs) / sizeof(rigs[0]));
}
