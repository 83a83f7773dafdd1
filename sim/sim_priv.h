/* SPDX-License-Identifier: BSD-3-Clause */
/* What the simulator's files share. */
#ifndef SIM_SIM_PRIV_H
#define SIM_SIM_PRIV_H

#include "base/env.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/timer.h"
#include "lnd/o2iblnd/simqp/simqp.h"
#include "lnd/simlnd/simlnd.h"
#include "lnet/core/cpt.h"
#include "ulnet/names.h"
#include "ulnet/sim.h"

struct sim_node {
	struct lnet_sim *sim;
	unsigned int index;
	struct lnet *node; /* NULL while it is crashed */
	struct ulnet_conf conf;
	struct ulnet_nid *nids;
	unsigned int nnids;
	lnet_sim_start_fn start;
	void *arg;
	struct lnet_observer observer;
	/* ns: until when the node stands still, or stood */
	uint64_t paused;
	struct loop **loops; /* the node's own, or the simulation's */
	struct loop *own[LNET_CPTS_MAX];
	struct ulnet_name_scheme scheme; /* names.c */
};

struct lnet_sim {
	uint64_t seed;
	char command[256];
	unsigned int cpts;
	struct env_sim *env;
	struct loop *loops[LNET_CPTS_MAX];
	bool apart; /* nodes that are added get loops of their own */
	struct sim_net *net;
	/* NULL: nets of type o2ib use simlnd, too */
	struct simqp_fabric *fabric;
	bool memory; /* nets of type shm use shmlnd, not simlnd */
	struct ulnet_tunable tunables[2]; /* then those of their NIs */
	struct sim_node **nodes;
	unsigned int nnodes;
	/* the node that is crashing: time stands still meanwhile; NULL: none is
	 */
	struct sim_node *crashing;
	struct timer_wheel callbacks; /* timers of lnet_sim_at() */
	struct list ats;	      /* of sim_at.link */
	bool calling;		      /* a function of lnet_sim_at() runs */
	bool ending;		      /* lnet_sim_free() has begun */
	struct ulnet_sim_stats stats;
	/* by fate: the number of messages that had this fate */
	uint64_t fates[SIM_FATES];
	unsigned int violations;
	/* For audit.c: */
	uint64_t digest;
	FILE *trace;
	struct pool audit_ops;
	struct hash ops;  /* of audit_op.hash: operations that have not ended */
	/* The request that was just pushed, of an operation that is about to
	 * begin; NULL: there is none. */
	struct audit_op *pushed;
	const struct lnd_msg *pushed_as;
	struct hash ways; /* for way.c: of way.hash */
	/* For names.c: */
	struct list names; /* of sim_name.link: the table */
	struct list feeds; /* of sim_feed.link: what nodes look up */
	/* For buf.c: */
	struct list bufs;    /* of buffers that are in use */
	struct list retired; /* of retired buffers, the oldest first */
	size_t retired_bytes;
};

/* ---- audit.c: the invariants of operations, and the event log ---- */

/* Returns sizeof(struct audit_op), for the pool. */
size_t audit_op_size(void);
/* Makes audit.c the observer of @n. */
void audit_watch(struct sim_node *n);
/* its arg is the simulation */
extern const struct sim_net_watch audit_net_watch;
extern const char *const audit_fates[SIM_FATES];
/* Reports operations that have not ended although their deadline has passed;
 * with @closed, all operations that have not ended. */
void audit_check(struct lnet_sim *sim, bool closed);
/* Logs an event of the simulation itself. */
void audit_note(struct lnet_sim *sim, const char *what, unsigned int index);

/* ---- way.c: which NIs messages are sent through ---- */

/* As sim_net_watch.send(); @arg: the simulation. */
void way_send(void *arg, const struct lnd_msg *msg, uint64_t down);
/* Forgets what is known of the messages of @node (NULL: of all nodes). */
void ways_forget(struct lnet_sim *sim, const struct lnet *node);

/* ---- names.c: the table in which nodes look up names ---- */

/* Lets the node, which has been opened, look up names there. */
int sim_names_start(struct sim_node *n);
void sim_names_free(struct lnet_sim *sim);

/* ---- buf.c: buffers that nobody may write to any more ---- */

/* Reports retired buffers that were written to. */
void bufs_check(struct lnet_sim *sim);
void bufs_free(struct lnet_sim *sim);

#endif
