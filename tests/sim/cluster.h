/* SPDX-License-Identifier: BSD-3-Clause */
/* What the random clusters of all scenarios are made of. */
#ifndef TESTS_SIM_CLUSTER_H
#define TESTS_SIM_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <ulnet/sim.h>

#define RAILS_MAX  3
#define SPLITS_MAX 32

#define US  UINT64_C(1000)
#define MS  (1000 * US)
#define SEC (1000 * MS)

/* ---- contents: every byte follows from the pattern and its place ---- */

void pattern_fill(char *buf, uint32_t size, uint64_t pattern);
bool pattern_holds(const char *buf, uint32_t size, uint64_t pattern);

/* ---- nodes ---- */

/* Adds node @index, with an NI on each of the first @rails nets; @nids: where
 * theirs go. @conf and @start: of lnet_sim_node_add(), which this returns. */
int cluster_node_add(struct lnet_sim *sim, unsigned int index,
		     unsigned int rails, struct ulnet_nid *nids,
		     const struct ulnet_conf *conf, lnet_sim_start_fn start,
		     void *arg);

/* ---- the network ---- */

/* A link may have any fault; if it is @harsh, it has all of them. */
void link_faults(struct lnet_sim *sim, bool harsh, struct ulnet_sim_link *l);

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
