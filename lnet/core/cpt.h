/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node and its CPTs, as far as all rooms (folders) of LNet know them. Inside
 * LNet only.
 *
 * Each room may extend both structures: its own structure begins with that of
 * the room below.
 *
 *	struct lnet_cpt < portal_cpt < peer_cpt < path_cpt < msg_cpt <
 *		discovery_cpt < whole_cpt
 *	struct lnet < portal_node < net_node < whole_node
 *
 * Functions pass struct lnet_cpt and struct lnet. A function gets at the part
 * of its room, or of one below, by portal_cpt(cpt) and the like, which cost
 * nothing, since all parts begin at the same address. node/node.c allocates the
 * outermost structures.
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
#include "lnet/core/setting.h"
#include "lnet/core/stat.h"
#include "ulnet/lnet.h"

struct lnd_msg;
struct lnd_ni;
struct lnet_config;
struct policy_table;
struct route_table;

/* Types of handles. The tag of an id is made of a type and the index of the
 * CPT. */
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
	/* The snapshots that it uses: net/net.h, route/route.h, and
	 * policy/policy.h (NULL: there are no policies). */
	const struct lnet_config *config;
	const struct route_table *routes;
	const struct policy_table *policies;
	uint64_t rules;		     /* version: see cpt_rules_changed() */
	uint64_t topology;	     /* version: see cpt_topology_changed() */
	struct log_limit limits_log; /* messages about used-up shares */
	stat_t stats[STAT_COUNT];    /* read by any thread */
};

/* Functions by which the simulator's checks learn what happens inside a node.
 * Without an observer each costs one test. */
struct lnet_observer {
	/* Operation @op (its id on the wire) began, with @deadline (ns). May
	 * set @req->mark. */
	void (*begin)(void *arg, struct lnet *node, uint64_t op,
		      struct lnd_msg *req, uint64_t deadline);
	/* An event of operation @op (0: of none) is about to be delivered. */
	void (*event)(void *arg, struct lnet *node, uint64_t op,
		      const struct ulnet_event *ev);
	/* A received PUT or GET (@rx: the LND's of @ni) has found its MD. */
	void (*accepted)(void *arg, struct lnet *node, struct lnd_ni *ni,
			 void *rx);
	/* A received message (@rx: the LND's of @ni) for another node is
	 * forwarded as @msg, to which the mark moves; and @msg ends. */
	void (*forward)(void *arg, struct lnet *node, struct lnd_ni *ni,
			void *rx, struct lnd_msg *msg);
	void (*forwarded)(void *arg, struct lnet *node, struct lnd_msg *msg);
	/* The node is closed, and @n objects were not freed; @what: their
	 * name. */
	void (*leaked)(void *arg, struct lnet *node, const char *what,
		       uint32_t n);
	void *arg;
};

struct lnet {
	/* immutable after open */
	struct ulnet_conf conf; /* defaults filled in; for what is also a
				 * setting, see settings */
	uint64_t incarnation;
	uint64_t hash_seed;
	unsigned int cpts;
	struct lnet_cpt *cpt[LNET_CPTS_MAX];
	struct loop *loops[LNET_CPTS_MAX];
	bool own_loops;
	const struct lnet_observer *observer; /* NULL: none */
	struct directory directory;	      /* any thread */

	atomic_bool crashed; /* users' functions are not called any more; set
			      * before closing */
	atomic_bool closing; /* NIs in config may be freed */
	struct settings settings;
	atomic_bool routing;   /* forwards messages of other nodes */
	atomic_uint gateway_news; /* about gateways, posted to other CPTs */
	atomic_uint next_home; /* for node_home() */
	/* Version of what peers are told of this node. Increased after the
	 * change, before CPTs are told of it. */
	_Atomic uint32_t info_version;

	/* For lnet_close() and lnet_ni_del(), which wait for something to
	 * end. */
	pthread_mutex_t ended_lock;
	pthread_cond_t ended;
	uint64_t ended_count;
};

/* Wakes lnet_close(): something that it may be waiting for has ended. */
void node_wake_closer(struct lnet *node);
static inline void cpt_ended_one(struct lnet_cpt *cpt)
{
	if (unlikely(cpt->closing))
		node_wake_closer(cpt->node);
}

/* Sets *@gone; waits until *@gone is set. Any thread. */
void node_set_gone(struct lnet *node, bool *gone);
void node_wait_gone(struct lnet *node, const bool *gone);

/* May the caller wait for each CPT to do something? */
bool node_may_wait(const struct lnet *node);

/* Calls @fn for each CPT, in a turn of the CPT, one after the other, until a
 * call fails; returns its error. -EXDEV: the calling thread cannot wait for all
 * CPTs, and @fn was not called. */
int node_each_cpt(struct lnet *node, int (*fn)(struct lnet_cpt *cpt, void *arg),
		  void *arg);

/* The CPT that owns @nid. A peer may move to another CPT, so a CPT to which
 * something is posted has to check whether it still owns the NID. Any
 * thread. */
static inline unsigned int node_cpt_of(struct lnet *node,
				       const struct ulnet_nid *nid)
{
	return directory_cpt(&node->directory, nid);
}
/* The CPT in whose turn the caller is; it must be in one. */
static inline struct lnet_cpt *node_cpt_here(struct lnet *node)
{
	struct loop *here = loop_current();

	for (unsigned int i = 0; i < node->cpts; i++)
		if (likely(node->loops[i] == here))
			return node->cpt[i];
	BUG_ON("not in a turn of the node's loops");
	return NULL;
}
/* The CPT whose turn or thread this is; on other threads CPTs are taken in
 * rotation. */
struct lnet_cpt *node_home(struct lnet *node);
/* The CPT whose object a handle's cookie names, or NULL. */
struct lnet_cpt *node_cpt_of_id(struct lnet *node, uint64_t id);

/* Frees @pool, all of whose objects must have been returned. If some were not,
 * the observer is told how many @what leaked; without an observer, aborts. */
void cpt_pool_fini(struct lnet_cpt *cpt, struct pool *pool, const char *what);

/* The NIs of this node have changed, or those of a peer that @cpt owns, or what
 * the peer says of itself: paths that were remembered become invalid. */
static inline void cpt_topology_changed(struct lnet_cpt *cpt)
{
	cpt->topology++;
}

/* The NIs, routes or policies of this node have changed: policy verdicts
 * (path/verdict.h) become invalid, too. */
static inline void cpt_rules_changed(struct lnet_cpt *cpt)
{
	cpt->rules++;
	cpt_topology_changed(cpt);
}

static inline void cpt_stat(struct lnet_cpt *cpt, enum lnet_stat s)
{
	stat_inc(&cpt->stats[s]);
}

/* The deadline, in ns, of an operation that begins now and names none. */
static inline uint64_t cpt_deadline(const struct lnet_cpt *cpt)
{
	return loop_now(cpt->loop) +
	       settings_transaction_timeout(&cpt->node->settings);
}

/* A message or operation begins; ends. */
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
