/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes, links and partitions of the random clusters of all scenarios. */
#ifndef TESTS_SIM_CLUSTER_H
#define TESTS_SIM_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <ulnet/sim.h>

#define RAILS_MAX  8 /* of a node */
#define SPLITS_MAX 32
#define NODES_MANY 24 /* with more nodes than this, each has less memory */

#define US  UINT64_C(1000)
#define MS  (1000 * US)
#define SEC (1000 * MS)

/* ---- contents: every byte follows from the pattern and its offset ---- */

void pattern_fill(char *buf, uint32_t size, uint64_t pattern);
bool pattern_holds(const char *buf, uint32_t size, uint64_t pattern);

/* ---- nodes ---- */

/* Fills @nids with the NIDs of node @index on the first @n rails: two rails are
 * of net type tcp, one of o2ib. */
void cluster_nids(struct ulnet_nid *nids, unsigned int n, unsigned int index);
/* As cluster_nids(), but for any number of rails, which are on each of @nets
 * nets (1 to 3) in turn. */
void cluster_nids_on(struct ulnet_nid *nids, unsigned int n, unsigned int index,
		     unsigned int nets);
/* Adds a node with @nids. @conf, @start and @arg are passed to
 * lnet_sim_node_add(), whose result is returned. */
int cluster_node_add(struct lnet_sim *sim, const struct ulnet_nid *nids,
		     unsigned int n, const struct ulnet_conf *conf,
		     lnet_sim_start_fn start, void *arg);

/* ---- the network ---- */

/* In one run of five: with a chance of @percent, how many bytes of payload pass
 * an MTU hole; otherwise 0: there is none. Takes none of the random numbers of
 * the simulation: the other runs are what they were before there were holes. */
uint32_t link_hole(struct lnet_sim *sim, unsigned int percent);
/* In another run of five, in which lnet_sim_apart() has to be called: do
 * processes stand still for a while? */
bool has_pauses(const struct lnet_sim *sim);
/* In some runs with several CPTs: are clients served by another CPT than the
 * one that owns their NID (ULRPC_SPREAD_CLIENTS)? */
bool spreads(const struct lnet_sim *sim);
/* Have clients little memory for long replies? */
bool is_narrow(const struct lnet_sim *sim);
/* Do the nodes prove who they are? */
bool has_keys(const struct lnet_sim *sim);
/* Counts the seeds whose nodes do: 0, 1, 2, ... */
unsigned int keys_seed(const struct lnet_sim *sim);
/* Returns a cluster's key, which all nodes load; NULL: this was built without
 * TLS. */
struct ulrpc_keys *cluster_keys(struct lnet_sim *sim);
/* In the streams' scenario: may messages be longer than
 * ULRPC_STREAM_MESSAGE_MAX? */
bool has_long(const struct lnet_sim *sim);
/* In one run of four the nodes push small messages: about half of them, or
 * nearly all. The other runs are what they were before nodes could push. */
void cluster_push(struct lnet_sim *sim);
/* In the replicas' scenario: has each node two rails? */
bool has_two_rails(const struct lnet_sim *sim);
/* Draws the faults of a link into @l: any of them, or all if @harsh. */
void link_faults(struct lnet_sim *sim, bool harsh, struct ulnet_sim_link *l);

#define LINKS_MAX 4096 /* more than any run sets */

/* The links that have been changed, so that they can be healed. */
struct links {
	struct ulnet_nid pairs[LINKS_MAX][2];
	unsigned int n;
};

/* Calls lnet_sim_link_set(), and remembers the link. */
void links_set(struct links *l, struct lnet_sim *sim, struct ulnet_nid src,
	       struct ulnet_nid dst, const struct ulnet_sim_link *link);
/* Calls lnet_sim_link_set() with @link for each link that was ever changed. */
void links_set_all(struct links *l, struct lnet_sim *sim,
		   const struct ulnet_sim_link *link);
/* Makes all links that were ever changed perfect and fast. */
void links_heal(struct links *l, struct lnet_sim *sim);

/* Pairs of NIDs between which nothing passes for a while. */
struct splits {
	struct split {
		struct lnet_sim *sim;
		struct ulnet_nid a, b;
	} split[SPLITS_MAX]; /* the oldest one is overwritten */
	unsigned int n;
};

void split(struct splits *s, struct lnet_sim *sim, struct ulnet_nid a,
	   struct ulnet_nid b, uint64_t ns);
void splits_heal(struct splits *s);

#endif
