/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node, and its CPTs. Inside LNet only.
 */
#ifndef LNET_NODE_H
#define LNET_NODE_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/hash.h"
#include "base/id.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/pool.h"
#include "lnd/lnd.h"
#include "lnet/event.h"
#include "lnet/hold.h"
#include "lnet/match.h"
#include "lnet/observer.h"
#include "lnet/peer.h"
#include "lnet/setting.h"
#include "lnet/stat.h"
#include "ulnet/lnet.h"

struct lnet_config;
struct lnet_ni;
struct ping_target;

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
	pthread_t thread; /* LNET_RUN_THREADS */
	bool closing;
	const struct lnet_config *config; /* the snapshot it holds */

	struct id_table mds, mes, ops;
	struct pool msg_pool, op_pool, md_pool, me_pool, peer_pool, wish_pool;
	struct list active;	  /* lnet_msg.active: all messages in life */
	struct list mds_unlinked; /* lnet_md.link */
	uint64_t sequence;	  /* of events */
	uint64_t ni_uses;	  /* of NI choices */

	struct hash peers;		/* lnet_peer_ni.hash */
	struct lnet_peer_ni *peer_last; /* looked for last, or NULL */
	struct list peers_idle;		/* lnet_peer_ni.idle, longest first */
	struct list refunds; /* lnet_msg.lnd.link: messages that are about to
			      * give their credits back (msg.c) */
	bool refunding;	     /* ... one after the other, just now */

	struct lnet_portal portals[LNET_PORTALS];
	struct hold holds[LNET_PORTALS];
	struct lnet_msg *receiving; /* being given to recv() just now */
	uint64_t next_complaint;    /* ns: not before, about headers */
	struct lnet_holdings has;   /* what came through 0@lo */
	struct lnet_holdings has_all;
	struct log_limit limits_log; /* who has reached its share */
	struct list parked;	     /* lnet_msg.link (park.h) */
	struct work unpark;
	bool unparking;	   /* that is under way */
	uint64_t unpark_round;
	struct timer park_timer; /* armed while some are parked */
	uint64_t arrivals; /* numbers lnet_msg.arrival */
	struct ping_target *ping;
	struct list watches; /* ulnet_peer_watch.opaque (watch.h) */

	stat_t stats[STAT_COUNT]; /* read by any thread */
};

struct lnet {
	/* immutable after open */
	struct ulnet_conf conf; /* defaults filled in; what is a setting, too,
				 * may be another one by now */
	uint64_t incarnation;
	uint64_t hash_seed;
	unsigned int cpts;
	struct lnet_cpt *cpt;
	struct loop *loops[LNET_CPTS_MAX];
	bool own_loops;
	const struct lnd *lnd; /* serves all nets but lo, if set */
	void *lnd_net;
	void *lnd_shared[LND_COUNT_MAX]; /* lnd_ni.shared; CPT 0's thread */
	const struct lnet_observer *observer;	  /* NULL: none */
	bool (*drive)(void *arg, uint64_t until); /* see node_params */
	void *drive_arg;
	unsigned int driving; /* calls of it that have not returned */
	atomic_bool crashed; /* nobody hears of its end (set before closing) */
	atomic_bool closing; /* NIs in config may be gone */

	struct list layers; /* ulnet_layer.opaque; last one first */
	struct list threads; /* virtual time: ulnet_thread.link */
	struct settings settings;
	struct portal_shared portals[LNET_PORTALS];
	const struct portal_users *portal_users;
	struct eqs eqs;
	atomic_uint next_home; /* CPT for the next object of a plain thread */

	/* control side: changes of configuration, one at a time; handlers are
	 * never called with the mutex held, and never wait for it */
	pthread_mutex_t control;
	pthread_mutex_t config_lock; /* for reading and replacing config */
	struct lnet_config *config;
	_Atomic uint64_t ni_starts;
	atomic_uint nis_alive; /* made and not freed yet */

	/* closing, or an NI's deleter: something that was in use went away */
	pthread_mutex_t ended_lock;
	pthread_cond_t ended;
	uint64_t ended_count;
};

/* How a node is opened by those inside: more than users may say. */
struct node_params {
	struct ulnet_conf conf;
	struct loop *const *loops; /* conf.cpts of them, borrowed; NULL: own */
	const struct lnd *lnd;
	void *lnd_net;
	const struct lnet_observer *observer;
	/* With loops of others: does the next thing that is not after @until
	 * (ns); false: there is none, and it is that time now. */
	bool (*drive)(void *arg, uint64_t until);
	void *drive_arg;
};
/* Puts defaults where a 0 stands for them, and resolves LNET_ACCEPT_DEFAULT.
 * -EINVAL: a field of @c makes no sense. */
int node_conf_fill(struct ulnet_conf *c) must_check;
/* @p->conf is what node_conf_fill() has made; its nids are not looked at. */
int node_open(const struct node_params *p, struct lnet **node_p) must_check;
/* As lnet_close(), as if its process had been killed: no event is delivered. */
void node_crash(struct lnet *node);

/*
 * Consistency of all that the node holds: credits against the messages that
 * have them, queues, references. Outside of any turn. Returns NULL, or what is
 * wrong, in
 * @buf.
 */
const char *node_check(struct lnet *node, char *buf, size_t size);

/* Something of @cpt went away, which lnet_close() may be waiting for. */
void node_wake_closer(struct lnet *node);
static inline void cpt_ended_one(struct lnet_cpt *cpt)
{
	if (unlikely(cpt->closing))
		node_wake_closer(cpt->node);
}

/* An NI is gone; sets *@gone, which the thread that deleted it waits for. */
void node_ni_gone(struct lnet *node, bool *gone);

/* May the caller have something done on all CPTs, one after the other? */
bool node_may_wait(const struct lnet *node);

/* Calls @fn for each CPT, on its thread, one after the other, until one call
 * returns an error, which is returned. -EXDEV, without any call: on a thread
 * that cannot wait for all of them. */
int node_each_cpt(struct lnet *node, int (*fn)(struct lnet_cpt *cpt, void *arg),
		  void *arg);

/* The CPT that owns what belongs to @nid. */
unsigned int node_cpt_of(const struct lnet *node, const struct ulnet_nid *nid);
/* The CPT whose thread this is, else one that takes its turn. */
struct lnet_cpt *node_home(struct lnet *node);
/* The CPT that a handle's cookie names, or NULL. */
struct lnet_cpt *node_cpt_of_id(struct lnet *node, uint64_t id);

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

/* Of messages and operations that are alive, there is one more, or less. */
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
