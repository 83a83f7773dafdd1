/* SPDX-License-Identifier: BSD-3-Clause */
/* What the random clusters of all scenarios are made of. */
#ifndef TESTS_SIM_CLUSTER_H
#define TESTS_SIM_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <ulnet/sim.h>

#define RAILS_MAX  8 /* of a node */
#define SPLITS_MAX 32
#define NODES_MANY 24 /* from here on each has less memory */

#define US  UINT64_C(1000)
#define MS  (1000 * US)
#define SEC (1000 * MS)

/* ---- contents: every byte follows from the pattern and its place ---- */

void pattern_fill(char *buf, uint32_t size, uint64_t pattern);
bool pattern_holds(const char *buf, uint32_t size, uint64_t pattern);

/* ---- nodes ---- */

/* NIDs of node @index on the first @n rails: two of tcp, one of o2ib. */
void cluster_nids(struct ulnet_nid *nids, unsigned int n, unsigned int index);
/* The same on any number of rails, which are dealt to @nets nets, 1 to 3. */
void cluster_nids_on(struct ulnet_nid *nids, unsigned int n, unsigned int index,
		     unsigned int nets);
/* Adds a node with @nids. @conf, @start and @arg: of lnet_sim_node_add(), which
 * this returns. */
int cluster_node_add(struct lnet_sim *sim, const struct ulnet_nid *nids,
		     unsigned int n, const struct ulnet_conf *conf,
		     lnet_sim_start_fn start, void *arg);

/* ---- the network ---- */

/* A link may have any fault; if it is @harsh, it has all of them. */
void link_faults(struct lnet_sim *sim, bool harsh, struct ulnet_sim_link *l);

#define LINKS_MAX 4096 /* more than a run sets */

/* Links that are not as they were, so that they can be healed. */
struct links {
	struct ulnet_nid pairs[LINKS_MAX][2];
	unsigned int n;
};

/* lnet_sim_link_set(), which is remembered. */
void links_set(struct links *l, struct lnet_sim *sim, struct ulnet_nid src,
	       struct ulnet_nid dst, const struct ulnet_sim_link *link);
/* All that were set are @link now. */
void links_set_all(struct links *l, struct lnet_sim *sim,
		   const struct ulnet_sim_link *link);
/* All of them are perfect, and quick. */
void links_heal(struct links *l, struct lnet_sim *sim);

/* Between whom nothing passes, for a while. */
struct splits {
	struct split {
		struct lnet_sim *sim;
		struct ulnet_nid a, b;
	} split[SPLITS_MAX]; /* used round and round */
	unsigned int n;
};

void split(struct splits *s, struct lnet_sim *sim, struct ulnet_nid a,
	   struct ulnet_nid b, uint64_t ns);
void splits_heal(struct splits *s);

#endif
