/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random PUTs, GETs and pings among the nodes of a cluster, by the public API
 * only, as a user's would be. Violation: contents are not what was sent. What
 * becomes of operations, of credits and of buffers the simulator looks at
 * itself.
 */
#ifndef TESTS_SIM_TRAFFIC_H
#define TESTS_SIM_TRAFFIC_H

#include "tests/sim/cluster.h"

struct traffic;
struct use;

/* A node, and what it has been lent. */
struct talker {
	struct traffic *traffic;
	unsigned int index;
	unsigned int nnids;
	const struct ulnet_nid *nids; /* the scenario's */
	struct use *uses;	      /* MDs that live in it */
};

struct traffic {
	struct lnet_sim *sim;
	struct talker *talkers;
	unsigned int n;
	unsigned int left; /* operations to begin */
	uint64_t next_pattern;
	uint32_t large;		/* bytes of a large buffer */
	unsigned int one_peers; /* that have entries of their own on each node,
				 * the first ones */
	bool over; /* nothing new begins */
};

/* For @n nodes, which are to begin @left operations. */
void traffic_init(struct traffic *t, struct lnet_sim *sim, unsigned int n,
		  unsigned int left);
/* Node @index, with @nnids NIDs, which stay the caller's, before it starts. */
void traffic_add(struct traffic *t, unsigned int index,
		 const struct ulnet_nid *nids, unsigned int nnids);
/* The node has started: attaches what others send to. */
void traffic_start(struct traffic *t, unsigned int index, struct lnet *node);
/* Its process has died. */
void traffic_crashed(struct traffic *t, unsigned int index);
/* Up to @n operations begin at node @index, if it is there. */
void traffic_go(struct traffic *t, unsigned int index, unsigned int n);
/* One that is under way is unlinked, perhaps. */
void traffic_unlink(struct traffic *t, unsigned int index);
/* One buffer more for what waits at a lazy portal. */
void traffic_post(struct traffic *t, unsigned int index);
/* The simulation is no more. Returns how many nodes still have been lent
 * something. */
unsigned int traffic_fini(struct traffic *t);

#endif
