/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node and its CPTs, as far as all of LNet knows them. Inside LNet only.
 *
 * Node and CPT are built up from room to room. The structure of a room begins
 * with that of the room below, and adds what is the room's own:
 *
 *	struct lnet_cpt < portal_cpt < peer_cpt < path_cpt < msg_cpt <
 *		discovery_cpt < whole_cpt
 *	struct lnet < portal_node < net_node < whole_node
 *
 * All functions hand on struct lnet_cpt and struct lnet. A function that needs
 * the part of a room, its own or one below, takes portal_cpt(cpt) and the like,
 * which cost nothing, since all of them begin at the same address. Only node.c
 * makes nodes, and only as a whole.
 */
#ifndef LNET_CPT_H
#define LNET_CPT_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/id.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/pool.h"
#include "lnet/core/directory.h"
#include "lnet/core/observer.h"
#include "lnet/core/setting.h"
#include "lnet/core/stat.h"
#include "ulnet/lnet.h"

struct lnet_config;
struct policy_table;
struct route_table;

/* Types of handles, in the tag of an id beside the CPT. */
enum { ID_MD, ID_ME, ID_OP, ID_EQ };
#define ID_TAG(cpt, type) ((uint8_t)((cpt) << 2 | (type)))
#define ID_CPT(id)	  ((unsigned int)id_tag(id) >> 2)

/* A CPT. The thread of its loop owns every field that does not say
 * otherwise. */
struct lnet_cpt {
	struct lnet *node;
	unsigned int index;
	struct loop *loop;
	bool closing;
	const struct lnet_config *config; /* the snapshot it holds (config.h) */
	const struct route_table *routes; /* ... (route/route.h) */
	const struct policy_table
		*policies; /* ... (policy/policy.h); NULL: there
					      * are none */
	uint64_t rules;	   /* 1, and how often cpt_rules_changed() was called */
	uint64_t topology; /* the same of cpt_topology_changed() */
	struct log_limit limits_log; /* who has reached its share */
	stat_t stats[STAT_COUNT];    /* read by any thread */
};

struct lnet {
	/* immutable after open */
	struct ulnet_conf conf; /* defaults filled in; of what is a setting,
				 * too, only the value at first */
	uint64_t incarnation;
	uint64_t hash_seed;
	unsigned int cpts;
	struct lnet_cpt *cpt[LNET_CPTS_MAX];
	struct loop *loops[LNET_CPTS_MAX];
	bool own_loops;
	const struct lnet_observer *observer; /* NULL: none */
	struct directory directory;	      /* any thread */

	atomic_bool crashed; /* nobody hears of its end (set before closing) */
	atomic_bool closing; /* NIs in config may be gone */
	struct settings settings;
	atomic_bool routing;   /* messages for others are passed on */
	atomic_uint news; /* of gateways, on their way between CPTs */
	atomic_uint next_home; /* CPT for the next object of a plain thread */
	/* 1, and how often what peers are told of this node has changed. Is
	 * increased after the change, before CPTs are told of it. */
	_Atomic uint32_t info_version;

	/* closing, or an NI's deleter: something that was in use went away */
	pthread_mutex_t ended_lock;
	pthread_cond_t ended;
	uint64_t ended_count;
};

/* Something of @cpt went away, which lnet_close() may be waiting for. */
void node_wake_closer(struct lnet *node);
static inline void cpt_ended_one(struct lnet_cpt *cpt)
{
	if (unlikely(cpt->closing))
		node_wake_closer(cpt->node);
}

/* Sets *@gone, which a thread in node_wait_gone() waits for. */
void node_set_gone(struct lnet *node, bool *gone);
void node_wait_gone(struct lnet *node, const bool *gone);

/* May the caller have something done on all CPTs, one after the other? */
bool node_may_wait(const struct lnet *node);

/* Calls @fn for each CPT, on its thread, one after the other, until one call
 * returns an error, which is returned. -EXDEV, without any call: on a thread
 * that cannot wait for all of them. */
int node_each_cpt(struct lnet *node, int (*fn)(struct lnet_cpt *cpt, void *arg),
		  void *arg);

/* The CPT that owns what belongs to @nid. A peer may move to another CPT: what
 * was sent to its CPT may arrive when another one owns it, which is for the
 * receiver to look at. Any thread. */
static inline unsigned int node_cpt_of(struct lnet *node,
				       const struct ulnet_nid *nid)
{
	return directory_cpt(&node->directory, nid);
}
/* The CPT in whose turn this is called; there must be one. */
static inline struct lnet_cpt *node_cpt_here(struct lnet *node)
{
	struct loop *here = loop_current();

	for (unsigned int i = 0; i < node->cpts; i++)
		if (likely(node->loops[i] == here))
			return node->cpt[i];
	BUG_ON("not in a turn of the node's loops");
	return NULL;
}
/* The CPT whose thread this is, else one that takes its turn. */
struct lnet_cpt *node_home(struct lnet *node);
/* The CPT that a handle's cookie names, or NULL. */
struct lnet_cpt *node_cpt_of_id(struct lnet *node, uint64_t id);

/* The end of @pool, of which nothing may be in use. If something is, an
 * observer is told; without one it is a bug that aborts. */
void cpt_pool_fini(struct lnet_cpt *cpt, struct pool *pool, const char *what);

/* The NIs of this node have changed, or those of a peer that the CPT owns, or
 * what the peer says of itself: no path that was found before holds. */
static inline void cpt_topology_changed(struct lnet_cpt *cpt)
{
	cpt->topology++;
}

/* ... or the routes or policies of this node: nothing that policies have said
 * of its NIs or of peers holds either. */
static inline void cpt_rules_changed(struct lnet_cpt *cpt)
{
	cpt->rules++;
	cpt_topology_changed(cpt);
}

static inline void cpt_stat(struct lnet_cpt *cpt, enum lnet_stat s)
{
	stat_inc(&cpt->stats[s]);
}

/* Deadline of what begins now and has none of its own, ns. */
static inline uint64_t cpt_deadline(const struct lnet_cpt *cpt)
{
	return loop_now(cpt->loop) +
	       settings_transaction_timeout(&cpt->node->settings);
}

/* Counts the messages and operations that are alive: one more; one less. */
static inline void cpt_count_begun(struct lnet_cpt *cpt)
{
	uint64_t alive = stat_get(&cpt->stats[STAT_msgs_alloc]) + 1;

	stat_set(&cpt->stats[STAT_msgs_alloc], alive);
	if (alive > stat_get(&cpt->stats[STAT_msgs_max]))
		stat_set(&cpt->stats[STAT_msgs_max], alive);
}

static inline void cpt_count_gone(struct lnet_cpt *cpt)
{
	stat_add(&cpt->stats[STAT_msgs_alloc], UINT64_MAX);
}

#endif
