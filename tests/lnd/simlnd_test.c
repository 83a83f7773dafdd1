/* SPDX-License-Identifier: BSD-3-Clause */
/* simlnd: two nodes in the simulator, whose own checks count, too. */
#include "tests/lnd/conformance.h"

#include "ulnet/sim.h"

struct sim_params {
	unsigned int cpts;
	struct ulnet_sim_link link;
};

static const char *const nids[2] = { "10.0.0.1@tcp", "10.0.0.2@tcp" };

static int sim_up(struct lnd_rig *rig)
{
	const struct sim_params *p = rig->arg;
	const struct ulnet_nid any = LNET_NID_ANY;
	struct lnet_sim *sim;
	int rc = lnet_nid_parse("10.0.0.99@tcp", &rig->absent);

	if (!rc)
		rc = lnet_sim_new(1, p->cpts, &sim);
	if (rc)
		return rc;
	rig->priv = sim;
	rc = lnet_sim_link_set(sim, &any, &any, &p->link);
	for (unsigned int i = 0; i < 2 && rc >= 0; i++) {
		rc = lnet_sim_node_add(sim, nids[i], NULL, NULL, NULL);
		rig->node[i] = lnet_sim_node(sim, i);
		lnet_nid_parse(nids[i], &rig->nid[i]);
	}
	if (rc < 0)
		lnet_sim_free(sim);
	return rc < 0 ? rc : 0;
}

static unsigned int sim_down(struct lnd_rig *rig)
{
	return lnet_sim_free(rig->priv);
}

static void sim_run(struct lnd_rig *rig, uint64_t us)
{
	lnet_sim_run(rig->priv, us * 1000);
}

static unsigned int sim_check(struct lnd_rig *rig)
{
	return lnet_sim_check(rig->priv);
}

static int sim_kill(struct lnd_rig *rig)
{
	rig->node[1] = NULL;
	return lnet_sim_crash(rig->priv, 1);
}

static int sim_restart(struct lnd_rig *rig)
{
	int rc = lnet_sim_restart(rig->priv, 1);

	rig->node[1] = lnet_sim_node(rig->priv, 1);
	return rc;
}

static int sim_lose(struct lnd_rig *rig, unsigned int from, bool on)
{
	const struct sim_params *p = rig->arg;
	struct ulnet_sim_link link = p->link;

	link.loss = on ? LNET_SIM_ALWAYS : 0;
	return lnet_sim_link_set(rig->priv, &rig->nid[from],
				 &rig->nid[1 - from], &link);
}

static const struct lnd_rig_ops sim_ops = {
	.up = sim_up,
	.down = sim_down,
	.run = sim_run,
	.check = sim_check,
	.kill_peer = sim_kill,
	.restart_peer = sim_restart,
	.lose = sim_lose,
};

/* 1 MiB takes 10 ms to send, and as long again to store. */
#define SLOW                                               \
	{                                                  \
		.latency = 1000000, .bandwidth = 100000000 \
	}

static struct sim_params fast = { .cpts = 1 };
static struct sim_params slow = { .cpts = 1, .link = SLOW };
static struct sim_params connects = {
	.cpts = 2, .link = { .latency = 1000000, .connect = 3000000 }
};
static struct sim_params two = { .cpts = 2 };
static struct sim_params slow_three = { .cpts = 3, .link = SLOW };

#define CAN (RIG_KILL | RIG_LOSE | RIG_VIRTUAL_TIME)
#define RIG(text, params)                                                     \
	{                                                                     \
		.name = (text), .can = CAN, .ops = &sim_ops, .arg = &(params) \
	}

static struct lnd_rig rigs[] = {
	RIG("simlnd", fast),
	RIG("simlnd, slow link", slow),
	RIG("simlnd, 2 CPTs", two),
	RIG("simlnd, slow link, 3 CPTs", slow_three),
	RIG("simlnd, connections, 2 CPTs", connects),
};

int main(int argc, char **argv)
{
	return conformance_main(argc, argv, rigs,
				sizeof(rigs) / sizeof(rigs[0]));
}
