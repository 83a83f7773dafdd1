/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes on two nets, and routers between them (requirements B1, B3 to B5):
 *
 *	0: 10.0.0.1@tcp --- 1: 10.0.0.11@tcp 10.0.1.11@tcp1 --- 3: 10.0.1.1@tcp1
 *		       \--- 2: 10.0.0.12@tcp 10.0.1.12@tcp1 ---/
 */
#ifndef TESTS_ROUTED_RIG_H
#define TESTS_ROUTED_RIG_H

#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"
#include "ulnet/route.h"

#define SECOND (1000 * MSEC)
#define PORTAL 5
#define BITS   0x77

enum { LEFT, FIRST, SECOND_ROUTER, RIGHT, NODES };

static const char *const nids[NODES] = {
	[LEFT] = "10.0.0.1@tcp",
	[FIRST] = "10.0.0.11@tcp 10.0.1.11@tcp1",
	[SECOND_ROUTER] = "10.0.0.12@tcp 10.0.1.12@tcp1",
	[RIGHT] = "10.0.1.1@tcp1",
};

static struct seen served;
static uint8_t memory[65536], source[65536];

static inline uint32_t net_of(const char *text)
{
	uint32_t net;

	cr_assert_eq(lnet_net_parse(text, &net), 0);
	return net;
}

static inline void route_of(struct lnet *node, const char *net,
			    const char *gateway, uint32_t hops,
			    uint32_t priority)
{
	const struct ulnet_route r = { net_of(net), nid_of(gateway), hops,
				       priority };

	cr_assert_eq(lnet_route_add(node, &r), 0);
}

static inline void routing_set(struct lnet *node, bool on)
{
	const struct ulnet_routing r = { .enabled = on };

	cr_assert_eq(lnet_routing_set(node, &r), 0);
}

/* Turns routing on; also after a restart. */
static inline int start_router(void *arg, unsigned int index, struct lnet *node)
{
	(void)arg;
	(void)index;
	routing_set(node, true);
	return 0;
}

static inline void serve(struct lnet_sim *sim, unsigned int index)
{
	struct lnet *node = lnet_sim_node(sim, index);
	struct ulnet_md umd =
		md_of(memory, sizeof(memory),
		      LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_TRUNCATE |
			      LNET_MD_MANAGE_REMOTE,
		      NULL);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;

	served.n = 0;
	umd.user_ptr = &served;
	umd.handler = see;
	cr_assert_eq(LNetMEAttach(node, PORTAL, ANY_ID, BITS, 0, LNET_RETAIN,
				  LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &md), 0);
}

static const struct ulnet_sim_link wire = { .latency = MSEC / 10,
					    .connect = MSEC };

/* Nodes and routers with these NIDs, and without routes. */
static inline struct lnet_sim *nodes_and_routers(unsigned int cpts,
						 const char *const *names,
						 const struct ulnet_conf *conf)
{
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	for (int i = 0; i < NODES; i++)
		cr_assert_eq(lnet_sim_node_add(sim, names[i], conf,
					       i == FIRST || i == SECOND_ROUTER
						       ? start_router
						       : NULL,
					       NULL),
			     i);
	cluster_links(sim, &wire);
	return sim;
}

/* Returns a cluster of two nets with two routers between them, and routes
 * through both on either side. */
static inline struct lnet_sim *two_nets(unsigned int cpts,
					const char *const *names,
					enum ulnet_discovery discovery)
{
	const struct ulnet_conf conf = { .discovery = discovery };
	struct lnet_sim *sim = nodes_and_routers(cpts, names, &conf);

	route_of(lnet_sim_node(sim, LEFT), "tcp1", "10.0.0.11@tcp", 0, 0);
	route_of(lnet_sim_node(sim, LEFT), "tcp1", "10.0.0.12@tcp", 0, 0);
	route_of(lnet_sim_node(sim, RIGHT), "tcp", "10.0.1.11@tcp1", 0, 0);
	route_of(lnet_sim_node(sim, RIGHT), "tcp", "10.0.1.12@tcp1", 0, 0);
	serve(sim, RIGHT);
	lnet_sim_run(sim, SECOND);
	return sim;
}

/* Ends the cluster after a time: gateways are pinged for ever, so events never
 * run out. */
static inline void routed_end(struct lnet_sim *sim)
{
	lnet_sim_run(sim, 100 * SECOND);
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
}

/* The left node PUTs @length bytes to @target. Returns the events of that. */
static inline struct seen put_to(struct lnet_sim *sim, const char *target,
				 uint32_t length)
{
	static struct seen seen;
	struct ulnet_md umd = md_of(source, length, 0, &seen);

	seen.n = 0;
	umd.threshold = 2;
	umd.timeout = 5 * SECOND / 1000;
	cr_assert_eq(LNetPut(LNET_NID_ANY,
			     bind_md(lnet_sim_node(sim, LEFT), &umd),
			     LNET_ACK_REQ, id_of(target), PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run(sim, 6 * SECOND);
	return seen;
}

static inline void put_arrives(struct lnet_sim *sim, uint32_t length)
{
	struct seen seen = put_to(sim, "10.0.1.1@tcp1", length);

	seen_end(&seen, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED,
		 LNET_CAUSE_OK);
}

static inline uint64_t routed_by(struct lnet_sim *sim, unsigned int index)
{
	return counter(lnet_sim_node(sim, index), "route_count");
}

/* Returns the left node's route through its gateway number @which. */
static inline struct ulnet_route_info route_info(struct lnet_sim *sim,
						 unsigned int which)
{
	struct ulnet_route_info infos[2];

	cr_assert_eq(lnet_routes(lnet_sim_node(sim, LEFT), infos, 2), 2);
	return infos[which];
}

#endif
