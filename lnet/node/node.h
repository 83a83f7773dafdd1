/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node as a whole (core/cpt.h): opening, closing, and the control side, which
 * changes configuration. Inside LNet only.
 */
#ifndef LNET_NODE_H
#define LNET_NODE_H

#include "lnd/lnd.h"
#include "lnet/core/cpt.h"
#include "lnet/discovery/discovery.h"
#include "lnet/net/net.h"
#include "ulnet/route.h"

/* The outermost part of a CPT. */
struct whole_cpt {
	struct discovery_cpt discovery;
	pthread_t thread;    /* LNET_RUN_THREADS */
	struct list watches; /* of ulnet_peer_watch.opaque (watch.c) */
	struct list leaving; /* of ni_cpt.leaving: NIs that have left the
			      * configuration, and whose LND is told at the end
			      * of this turn */
};

static inline struct whole_cpt *whole_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct whole_cpt,
			    discovery.msg.path.peer.portal.cpt);
}

struct fault_set;
struct policy_table;
struct route_table;

/* The outermost part of a node. */
struct whole_node {
	struct net_node net;
	struct whole_cpt *all; /* the CPTs that lnet.cpt points to */
	const struct lnd *lnd; /* node_params.lnd */
	bool (*drive)(void *arg, uint64_t until); /* node_params.drive */
	void *drive_arg;
	unsigned int driving; /* calls of drive() that have not returned */
	struct list layers;   /* of ulnet_layer.opaque; last one first */
	struct list threads;  /* virtual time: of ulnet_thread.link */
	/* Held for a change of configuration; handlers are never called with
	 * it, and never wait for it. */
	pthread_mutex_t control;
	/* Snapshots, as net.config: see node_publish(). */
	struct route_table *routes;
	struct policy_table *policies; /* NULL: there are no policies */
	struct fault_set *faults;      /* NULL: there are no rules */
	struct ulnet_routing routing;  /* as set; net.config_lock */
};

static inline struct whole_node *whole_node(const struct lnet *node)
{
	return container_of(node, struct whole_node, net.portal.node);
}

/* ---- opening and closing ---- */

/* What a node is opened with: more than users can ask for. */
struct node_params {
	struct ulnet_conf conf;
	struct loop *const *loops; /* conf.cpts of them, borrowed; NULL: own */
	/* A list, borrowed until the node is freed; lolnd must be in it. */
	const struct lnd *const *lnds;
	const struct lnd *lnd; /* serves all nets but lo; NULL: see lnds */
	void *lnd_net;	       /* lnd_ni.net */
	/* lnd_ni.fabric. If not NULL, o2iblnd serves nets of type o2ib in any
	 * case. */
	void *fabric;
	const struct lnet_observer *observer;
	/* With borrowed loops: does the next thing that is due by @until (ns).
	 * Returns false if there was none, and it is @until now. */
	bool (*drive)(void *arg, uint64_t until);
	void *drive_arg;
};
/* node_params.lnds of nodes that users open: all LNDs (lnet/open.c). */
extern const struct lnd *const open_lnds[];
/* Replaces zeros by defaults, and resolves LNET_ACCEPT_DEFAULT. Returns 0, or
 * -EINVAL if a field makes no sense. */
int node_conf_fill(struct ulnet_conf *c) must_check;
/* Opens a node. @p->conf must come from node_conf_fill(); its nids are
 * ignored. */
int node_open(const struct node_params *p, struct lnet **node_p) must_check;
/* Ends the node as if its process had been killed: nothing more is sent, and
 * users' functions are not called any more. Otherwise as lnet_close(). */
void node_crash(struct lnet *node);

/* Tell all layers (ulnet/loop.h) to close; or, after a crash, to call users no
 * more. */
void layers_close(struct lnet *node);
void layers_mute(struct lnet *node);

/* ---- threads under virtual time: the rest is in ulnet/thread.h ---- */

/* The node is marked as crashed: cancels what its threads wait for, or will
 * wait for; also those that are started later. */
void threads_end(struct lnet *node);
/* Is a thread in the middle of something that a crash would leave half done, as
 * loop_call()? */
bool threads_are_busy(const struct lnet *node);
/* Has the function of each thread returned? */
bool threads_ended(const struct lnet *node);

/* ---- the control side ---- */

/* Begins a change of configuration. -EXDEV: the caller cannot wait for all
 * CPTs; this is checked first, so that a change is made on all of them or none.
 * -EBUSY: the caller is in a loop, which must not wait for the change of
 * another thread, since that may be waiting for this loop. -ESHUTDOWN. */
int node_control_begin(struct lnet *node) must_check;
void node_control_end(struct lnet *node);

/* Replaces a snapshot: @pointer is the address of a pointer to the old one,
 * which becomes @new; then @take puts @new into each CPT, in a turn of the CPT.
 * After that nobody holds the old one, and it is freed. */
void node_publish(struct lnet *node, void *pointer, void *new,
		  int (*take)(struct lnet_cpt *cpt, void *new));

/* What the rooms of LNet do for LNDs. */
extern const struct lnd_upcalls nis_upcalls;
/* Which LND serves nets of @type on the node, or NULL. */
const struct lnd *node_lnd(const struct lnet *node, int type);

/* Called as the node opens: create 0@lo, and an empty table of routes. */
int nis_start_lo(struct lnet *node) must_check;
int routes_start(struct lnet *node) must_check;
/* Called at the end, when all NIs are freed and no CPT uses anything here. */
void nis_fini(struct lnet *node);
void routes_fini(struct lnet *node);
void policies_fini(struct lnet *node);
void faults_fini(struct lnet *node);

/* ---- who hears of lost connections: watch.c, ulnet/loop.h, lnd/lnd.h ---- */

void watches_init(struct lnet_cpt *cpt);
/* @ni has left the configuration, and messages under way on it, in either
 * direction, may be lost. Watches hear that the connections to each of the
 * CPT's peers on the net have ended, as it is not known who used @ni. In a turn
 * of @cpt. */
void watches_ni_gone(struct lnet_cpt *cpt, const struct lnet_ni *ni);

/* As in lnd_upcalls. */
void upcall_peer_silent(struct lnd_ni *lnd, const struct ulnet_id *peer,
			uint64_t ns);
void upcall_peer_disconnected(struct lnd_ni *lnd, const struct ulnet_id *peer);

#endif
