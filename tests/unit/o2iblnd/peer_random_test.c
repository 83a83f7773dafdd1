/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random runs by seed: nodes connect to each other, and restart, are cut off,
 * silent, or refused. In the end all nodes that want to be connected are, each
 * message has ended once, and no connection is left.
 */
#include "base/env.h"
#include "tests/slice.h"
#include "tests/unit/o2iblnd/peer_rig.h"

struct run {
	struct peer_rig *r;
	struct rng rng;
	bool port_down[PEER_NODES];
};

static uint64_t below(struct run *w, uint64_t n)
{
	return rng_below(&w->rng, n);
}

static struct ulnet_nid any_nid(struct run *w)
{
	return peer_rig_nid(w->r, (unsigned int)below(w, PEER_NODES));
}

static void restart(struct run *w)
{
	unsigned int i = (unsigned int)below(w, PEER_NODES);

	peer_rig_down(w->r, i, below(w, 2));
	peer_rig_run(w->r, below(w, 2) * below(w, 3000) * MSEC);
	peer_rig_up(w->r, i);
	/* if the port is down, the new node is told again */
	w->r->nodes[i].ps.down = w->port_down[i] ? -ENETDOWN : 0;
}

static void harm(struct run *w)
{
	static const enum simqp_call calls[] = {
		SIMQP_CALL_RESOLVE, SIMQP_CALL_CREATE,	  SIMQP_CALL_CONNECT,
		SIMQP_CALL_ACCEPT,  SIMQP_CALL_POST_RECV, SIMQP_CALL_POST_SEND,
	};
	struct simqp_fabric *f = w->r->fabric;
	struct ulnet_nid a = any_nid(w), b = any_nid(w);
	unsigned int i = (unsigned int)below(w, PEER_NODES);

	switch (below(w, 9)) {
	case 0:
	case 1:
		restart(w);
		break;
	case 2:
		simqp_cut(f, &a, &b);
		break;
	case 3:
		simqp_silence(f, &a, &b, below(w, 12000) * MSEC);
		break;
	case 4:
		peer_rig_force(w->r, i, 1 + (unsigned int)below(w, 14),
			       (unsigned int)below(w, 11))
			->stamp += below(w, 2);
		break;
	case 5:
		simqp_reject_next(f, &a, (int)below(w, 12));
		break;
	case 6:
		simqp_unresolve_next(f, &a,
				     below(w, 2) ? -ETIMEDOUT : -EHOSTUNREACH);
		break;
	case 7:
		simqp_fail_call(f, &a, calls[below(w, ARRAY_SIZE(calls))],
				(unsigned int)below(w, 20),
				below(w, 2) ? -ENOMEM : -EIO);
		break;
	default:
		w->port_down[i] = !w->port_down[i];
		a = peer_rig_nid(w->r, i);
		simqp_port_set(f, &a, !w->port_down[i], "a test");
	}
}

static void heal(struct run *w)
{
	struct ulnet_nid any = LNET_NID_ANY;
	struct simqp_link clean = { .latency = 10000 };

	for (unsigned int i = 0; i < PEER_NODES; i++) {
		struct ulnet_nid a = peer_rig_nid(w->r, i);

		simqp_port_set(w->r->fabric, &a, true, NULL);
		w->r->nodes[i].force = 0;
	}
	simqp_link_set(w->r->fabric, &any, &any, &clean);
	peer_rig_run(w->r, 120 * SEC);
}

/* One of the next messages arrives. The first ones may meet a dead connection,
 * or a fault that was set before. */
static void reach(struct run *w, unsigned int from, unsigned int to)
{
	for (unsigned int i = 0; i < 12; i++) {
		struct peer_msg *m = peer_rig_send(w->r, from, to);

		for (unsigned int k = 0; k < 60 && m->state != MSG_ENDED; k++)
			peer_rig_run(w->r, SEC);
		cr_assert_eq(m->state, MSG_ENDED, "seed %ju: no end",
			     (uintmax_t)w->r->seed);
		if (!m->status)
			return;
	}
	cr_assert(false, "seed %ju: %u does not reach %u: %d, cause %d",
		  (uintmax_t)w->r->seed, from, to,
		  w->r->msgs[w->r->nmsgs - 1].status,
		  w->r->msgs[w->r->nmsgs - 1].cause);
}

static void set_up(struct run *w)
{
	struct ulnet_nid any = LNET_NID_ANY;
	struct simqp_link link = { .latency = 1 + below(w, 3) * MSEC,
				   .jitter = below(w, 2) * MSEC,
				   .rtu_delay = below(w, 3) * MSEC };

	if (!below(w, 3)) {
		link.cm_loss = (uint32_t)below(w, 200000);
		link.loss = (uint32_t)below(w, 20000);
	}
	simqp_link_set(w->r->fabric, &any, &any, &link);
	for (unsigned int i = 0; i < PEER_NODES; i++) {
		struct ib_peers_conf *c = &w->r->nodes[i].conf;

		c->conns_per_peer = 1 + (unsigned int)below(w, 3);
		c->race = (enum ib_race_rule)below(w, IB_RACE_RULES);
		c->terms.depth = (uint16_t)(1 + below(w, 8));
		c->terms.frags = (uint16_t)(1 + below(w, 257));
		c->frags = MIN(c->terms.frags, 256);
		if (!below(w, 3))
			c->accept_max = 8 + (unsigned int)below(w, 6);
		peer_rig_up(w->r, i);
	}
}

static void run(uint64_t seed)
{
	struct run *w = calloc(1, sizeof(*w));
	unsigned int steps;

	cr_assert_not_null(w);
	rng_seed(&w->rng, seed);
	w->r = peer_rig_new(seed);
	set_up(w);
	steps = 50 + (unsigned int)below(w, 250);
	for (unsigned int i = 0; i < steps; i++) {
		unsigned int from = (unsigned int)below(w, PEER_NODES);
		unsigned int to = (unsigned int)below(w, PEER_NODES);

		if (from != to)
			peer_rig_send(w->r, from, to);
		if (!below(w, 6))
			harm(w);
		peer_rig_run(w->r, below(w, below(w, 8) ? 4 : 3000) * MSEC);
	}
	heal(w);
	for (unsigned int i = 0; i < PEER_NODES; i++)
		for (unsigned int k = 0; k < PEER_NODES; k++)
			if (i != k)
				reach(w, i, k);
	peer_rig_free(w->r);
	free(w);
}

/* The environment variable O2IB_SEEDS="FIRST COUNT" sets other seeds. */
Test(o2ib_peer_random, seeds)
{
	const char *more = getenv("O2IB_SEEDS");
	unsigned long first = 1, count = slice_of(300, 80);

	if (more)
		sscanf(more, "%lu %lu", &first, &count);
	for (unsigned long i = 0; i < count; i++)
		run(first + i);
}
