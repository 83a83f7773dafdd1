/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random PUTs, GETs and pings among the nodes of a cluster, by the public API
 * only. Violation: contents are not what was sent. The simulator itself checks
 * operations, credits and buffers.
 */
#ifndef TESTS_SIM_TRAFFIC_H
#define TESTS_SIM_TRAFFIC_H

#include "tests/sim/cluster.h"

struct traffic;
struct use;

/* A node, and the buffers that it is using. */
struct talker {
	struct traffic *traffic;
	unsigned int index;
	unsigned int nnids;
	const struct ulnet_nid *nids; /* they belong to the scenario */
	struct use *uses;	      /* its MDs */
};

struct traffic {
	struct lnet_sim *sim;
	struct talker *talkers;
	unsigned int n;
	unsigned int left; /* operations that are still to begin */
	uint64_t next_pattern;
	uint32_t large; /* length of a large buffer, bytes */
	/* so many nodes, the first ones, have entries of their own on each node
	 */
	unsigned int one_peers;
	bool over; /* nothing new begins */
};

/* Prepares traffic among @n nodes, which are to begin @left operations. */
void traffic_init(struct traffic *t, struct lnet_sim *sim, unsigned int n,
		  unsigned int left);
/* Announces node @index with @nnids NIDs, before it starts. The NIDs stay the
 * caller's, and must live as long. */
void traffic_add(struct traffic *t, unsigned int index,
		 const struct ulnet_nid *nids, unsigned int nnids);
/* Called when the node has started: attaches the buffers that others send to.
 */
void traffic_start(struct traffic *t, unsigned int index, struct lnet *node);
/* Called when the process of node @index has died. */
void traffic_crashed(struct traffic *t, unsigned int index);
/* Begins up to @n operations at node @index, if the node is up. */
void traffic_go(struct traffic *t, unsigned int index, unsigned int n);
/* Unlinks an MD of an operation that is under way, if there is one. */
void traffic_unlink(struct traffic *t, unsigned int index);
/* Attaches one more buffer for messages that wait at the lazy portal. */
void traffic_post(struct traffic *t, unsigned int index);
/* Frees all, after the simulation. Returns how many nodes are still using a
 * buffer. */
unsigned int traffic_fini(struct traffic *t);

#endif
