/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node and its CPTs, as far as all rooms (folders) of LNet know them. Inside
 * LNet only.
 *
 * Each room may extend struct lnet_cpt and struct lnet: the room's own
 * structure begins with that of the room below.
 *
 *	struct lnet_cpt < portal_cpt < peer_cpt < path_cpt < msg_cpt <
 *		discovery_cpt < whole_cpt
 *	struct lnet < portal_node < net_node < whole_node
 *
 * Arguments of functions are struct lnet_cpt and struct lnet. portal_cpt(cpt)
 * and the like convert them to the structure of a room; that costs nothing,
 * since all these structures begin at the same address. node/node.c allocates
 * the outermost ones.
 */
#ifndef LNET_CPT_H
#define LNET_CPT_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/id.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/misuse.h"
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
	/* The snapshots that the CPT uses: net/net.h, route/route.h, and
	 * policy/policy.h (NULL: the node has no table). */
	const struct lnet_config *config;
	const struct route_table *routes;
	const struct policy_table *policies;
	/* version number: increased by cpt_rules_changed() */
	uint64_t rules;
	/* version number: increased by cpt_topology_changed() */
	uint64_t topology;
	/* limits log lines about peers that have used up their shares */
	struct log_limit limits_log;
	/* written by the CPT, read by any thread */
	stat_t stats[STAT_COUNT];
};

/* Functions by which the simulator's checks learn what happens inside a node. A
 * node without an observer pays one test for each. */
struct lnet_observer {
	/* Operation @op (lnet_op.id) has begun, and must end by
	 * @deadline (ns). The observer may set @req->mark. */
	void (*begin)(void *arg, struct lnet *node, uint64_t op,
		      struct lnd_msg *req, uint64_t deadline);
	/* An event of operation @op (0: of no operation) is about to be
	 * delivered. */
	void (*event)(void *arg, struct lnet *node, uint64_t op,
		      const struct ulnet_event *ev);
	/* A PUT or GET that @ni has received as @rx has found its MD. */
	void (*accepted)(void *arg, struct lnet *node, struct lnd_ni *ni,
			 void *rx);
	/* forward: @ni has received, as @rx, a message for another node, which
	 * is forwarded as @msg; @msg takes over the mark of the message.
	 * forwarded: @msg, which was forwarded, has ended. */
	void (*forward)(void *arg, struct lnet *node, struct lnd_ni *ni,
			void *rx, struct lnd_msg *msg);
	void (*forwarded)(void *arg, struct lnet *node, struct lnd_msg *msg);
	/* The node is being closed, and @n objects of the kind named @what were
	 * never freed. */
	void (*leaked)(void *arg, struct lnet *node, const char *what,
		       uint32_t n);
	void *arg;
};

struct lnet {
	/* immutable after open */
	/* as the node was opened, with defaults filled in. Some are settings:
	 * what counts is .settings, where they may have other values by now */
	struct ulnet_conf conf;
	uint64_t incarnation;
	uint64_t hash_seed;
	unsigned int cpts;
	struct lnet_cpt *cpt[LNET_CPTS_MAX];
	struct loop *loops[LNET_CPTS_MAX];
	bool own_loops;
	/* NULL: nobody observes the node */
	const struct lnet_observer *observer;
	struct directory directory; /* may be used by any thread */

	/* users' functions must not be called any more; set before closing */
	atomic_bool crashed;
	/* the node is being closed: NIs in config may have been freed */
	atomic_bool closing;
	/* this process is a child of fork(), and the node is its parent's */
	bool forked;
	struct settings settings;
	atomic_bool routing; /* the node forwards messages of other nodes */
	/* number of posts about gateways (node/watch.c) under way to CPTs */
	atomic_uint gateway_news;
	atomic_uint next_home; /* which CPT node_home() takes next */
	/* Version number of what peers are told of this node, and the sequence
	 * number by which they know what was told last. Increased after each
	 * change of NIs, of their states or of flags, when all CPTs have the
	 * new state. */
	_Atomic uint32_t info_version;
	/* The version since which peers must not use an NI that they may have
	 * used before: it is down, or gone. 0: none. */
	_Atomic uint32_t info_lost;

	/* For lnet_close() and lnet_ni_del(), which wait for something to
	 * end. */
	pthread_mutex_t ended_lock;
	pthread_cond_t ended;
	uint64_t ended_count;
};

/* Something has ended that lnet_close() may be waiting for: wakes lnet_close().
 */
void node_wake_closer(struct lnet *node);
static inline void cpt_ended_one(struct lnet_cpt *cpt)
{
	if (unlikely(cpt->closing))
		node_wake_closer(cpt->node);
}

/* Sets *@gone; waits until *@gone is set. Any thread. */
void node_set_gone(struct lnet *node, bool *gone);
void node_wait_gone(struct lnet *node, const bool *gone);

/* May the caller wait until each CPT has done something? */
bool node_may_wait(const struct lnet *node);

/* Calls @fn for each CPT, in a turn of the CPT, one CPT after the other. Stops
 * at the first call that fails, and returns its error. -EXDEV: the calling
 * thread cannot wait for all CPTs, and @fn was not called. */
int node_each_cpt(struct lnet *node, int (*fn)(struct lnet_cpt *cpt, void *arg),
		  void *arg);

/* Returns the CPT that owns @nid. A peer may move to another CPT, so work that
 * was posted to a CPT has to check whether the CPT still owns the NID. Any
 * thread. */
static inline unsigned int node_cpt_of(struct lnet *node,
				       const struct ulnet_nid *nid)
{
	return directory_cpt(&node->directory, nid);
}
/* Returns the CPT in whose turn the caller is. The caller must be in a turn of
 * the node. */
static inline struct lnet_cpt *node_cpt_here(struct lnet *node)
{
	struct loop *here = loop_current();

	for (unsigned int i = 0; i < node->cpts; i++)
		if (likely(node->loops[i] == here))
			return node->cpt[i];
	BUG_ON("not in a turn of the node's loops");
	return NULL;
}
/* Aborts unless the caller owns @cpt. For public functions that only the owner
 * of a CPT may call; @fn is the name of the function. */
static inline void node_check_owner(struct lnet *node, unsigned int cpt,
				    const char *fn)
{
	MISUSE_IF(!loop_is_owner(node->loops[cpt]),
		  "%s(): called outside of the turns of CPT %u, by a thread "
		  "that does not own that CPT",
		  fn, cpt);
}

/* Returns the CPT to which the calling thread belongs; on a thread that belongs
 * to none, CPTs are taken in rotation. */
struct lnet_cpt *node_home(struct lnet *node);
/* Returns the CPT whose object the cookie of a handle names, or NULL. */
struct lnet_cpt *node_cpt_of_id(struct lnet *node, uint64_t id);

/* Frees @pool, all of whose objects must have been returned. If objects were
 * not returned, tells the observer how many (@what names them); a node without
 * an observer aborts. */
void cpt_pool_fini(struct lnet_cpt *cpt, struct pool *pool, const char *what);

/* To be called when the NIs of this node have changed, or the NIs of a peer
 * that @cpt owns, or what that peer says of itself. Remembered paths become
 * invalid. */
static inline void cpt_topology_changed(struct lnet_cpt *cpt)
{
	cpt->topology++;
}

/* To be called when the NIs, routes or policies of this node have changed.
 * Policy verdicts (path/verdict.h) become invalid, and remembered paths, too.
 */
static inline void cpt_rules_changed(struct lnet_cpt *cpt)
{
	cpt->rules++;
	cpt_topology_changed(cpt);
}

static inline void cpt_stat(struct lnet_cpt *cpt, enum lnet_stat s)
{
	stat_inc(&cpt->stats[s]);
}

/* Returns the deadline, in ns, of an operation that begins now and has no
 * timeout of its own. */
static inline uint64_t cpt_deadline(const struct lnet_cpt *cpt)
{
	return loop_now(cpt->loop) +
	       settings_transaction_timeout(&cpt->node->settings);
}

/* Count a message or operation that begins, or ends. */
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
