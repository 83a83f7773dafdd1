/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node as a whole (cpt.h): opening and closing. Inside LNet only.
 */
#ifndef LNET_NODE_H
#define LNET_NODE_H

#include "lnd/lnd.h"
#include "lnet/core/cpt.h"
#include "lnet/discovery/discovery.h"
#include "lnet/net/net.h"
#include "ulnet/route.h"

/* Nothing is above it. */
struct whole_cpt {
	struct discovery_cpt discovery;
	pthread_t thread;    /* LNET_RUN_THREADS */
	struct list watches; /* ulnet_peer_watch.opaque (watch.h) */
	struct list leaving; /* ni_cpt.leaving: have left the configuration, and
			      * their LND is told at the end of this turn */
};

static inline struct whole_cpt *whole_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct whole_cpt,
			    discovery.msg.path.peer.portal.cpt);
}

struct fault_set;
struct policy_table;
struct route_table;

struct whole_node {
	struct net_node net;
	struct whole_cpt *all; /* lnet.cpt are these */
	const struct lnd *lnd; /* serves all nets but lo, if set */
	bool (*drive)(void *arg, uint64_t until); /* see node_params */
	void *drive_arg;
	unsigned int driving; /* calls of it that have not returned */
	struct list layers;   /* ulnet_layer.opaque; last one first */
	struct list threads;  /* virtual time: ulnet_thread.link */
	/* control side: changes of configuration, one at a time; handlers are
	 * never called with the mutex held, and never wait for it */
	pthread_mutex_t control;
	struct route_table *routes;    /* as net.config (routes.c) */
	struct ulnet_routing routing;  /* as set; net.config_lock */
	struct policy_table *policies; /* NULL: none; as net.config
					* (policies.c) */
	struct fault_set *faults; /* NULL: no rules; as net.config (fault.c) */
};

static inline struct whole_node *whole_node(const struct lnet *node)
{
	return container_of(node, struct whole_node, net.portal.node);
}

/* How a node is opened by those inside: more than users may say. */
struct node_params {
	struct ulnet_conf conf;
	struct loop *const *loops; /* conf.cpts of them, borrowed; NULL: own */
	/* A list, borrowed until the node is no more; lolnd is one of them. */
	const struct lnd *const *lnds;
	const struct lnd *lnd; /* whole_node.lnd */
	void *lnd_net;	       /* lnd_ni.net */
	/* lnd_ni.fabric. If not NULL, nets of type o2ib are o2iblnd's all the
	 * same. */
	void *fabric;
	const struct lnet_observer *observer;
	/* With loops of others: does the next thing that is due up to @until
	 * (ns). False: there was none, and it is @until now. */
	bool (*drive)(void *arg, uint64_t until);
	void *drive_arg;
};
/* Puts defaults where a 0 stands for them, and resolves LNET_ACCEPT_DEFAULT.
 * -EINVAL: a field of @c makes no sense. */
int node_conf_fill(struct ulnet_conf *c) must_check;
/* @p->conf is what node_conf_fill() has made; its nids are not looked at. */
int node_open(const struct node_params *p, struct lnet **node_p) must_check;
/* Begins a change. -EXDEV: the caller cannot have things done on all CPTs; this
 * is asked first, so that a change is made as a whole or not at all. -EBUSY: in
 * a loop, which must not wait for the change of another thread, since that may
 * be waiting for this loop. */
int node_control_begin(struct lnet *node) must_check;
void node_control_end(struct lnet *node);

/* What the rooms of LNet do for LNDs. */
extern const struct lnd_upcalls nis_upcalls;
/* Which LND serves nets of @type on the node, or NULL. */
const struct lnd *node_lnd(const struct lnet *node, int type);

/* From the first moment of the node to the last one. There is 0@lo, and there
 * are no routes yet; at the end all NIs are gone, and no CPT uses the others
 * any more. */
int nis_start_lo(struct lnet *node) must_check;
int routes_start(struct lnet *node) must_check;
void nis_fini(struct lnet *node);
void routes_fini(struct lnet *node);
void policies_fini(struct lnet *node);
void faults_fini(struct lnet *node);

/* As if its process had been killed: from now on nothing is sent, and users
 * hear nothing. Then it ends as in lnet_close(). */
void node_crash(struct lnet *node);

/*
 * Checks the consistency of all that the node holds: credits against the
 * messages that have them, queues, references. Outside of any turn. Returns
 * NULL, or what is wrong, in @buf.
 */
const char *node_check(struct lnet *node, char *buf, size_t size);

#endif
