/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node as a whole (core/cpt.h): opening, closing, and the control side, which
 * changes the configuration. Inside LNet only.
 */
#ifndef LNET_NODE_H
#define LNET_NODE_H

#include "base/fork.h"
#include "base/log.h"
#include "lnd/lnd.h"
#include "lnet/core/cpt.h"
#include "lnet/discovery/discovery.h"
#include "lnet/net/net.h"
#include "ulnet/route.h"

/* The outermost part of a CPT. */
struct whole_cpt {
	struct discovery_cpt discovery;
	/* with LNET_RUN_THREADS and LNET_RUN_SHARED: the thread of the CPT */
	pthread_t thread;
	/* with LNET_RUN_SHARED: what that thread is, else NULL */
	struct caretaker *caretaker;
	/* with LNET_RUN_THREADS: who waits for that thread, else NULL */
	struct waits *waits;
	struct list watches; /* of ulnet_peer_watch.opaque: see watch.c */
	/* of ni_cpt.leaving: NIs that were deleted from the configuration in
	 * this turn; their LNDs are told at its end */
	struct list leaving;
};

static inline struct whole_cpt *whole_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct whole_cpt,
			    discovery.msg.path.peer.portal.cpt);
}

struct caretaker;
struct fault_set;
struct policy_table;
struct route_table;
struct waits;

/* The outermost part of a node. */
struct whole_node {
	struct net_node net;
	bool has_threads;      /* the CPTs have threads of the node's own */
	struct whole_cpt *all; /* array of the CPTs to which lnet.cpt points */
	const struct lnd *lnd; /* node_params.lnd */
	bool memory;	       /* node_params.memory */
	bool (*drive)(void *arg, uint64_t until); /* node_params.drive */
	void *drive_arg;
	/* number of calls of drive() that have not returned */
	unsigned int driving;
	/* of ulnet_layer.opaque; the layer that was added last is first */
	struct list layers;
	struct list threads; /* of ulnet_thread.link; under lnet.ended_lock */
	struct fork_watch fork;
	struct log_node log;
	/* Locked during a change of the configuration. It is not held when
	 * handlers are called, and handlers never wait for it. */
	pthread_mutex_t control;
	/* Snapshots of the control side, as net.config: see node_publish(). */
	struct route_table *routes;
	struct policy_table *policies; /* NULL: the node has no policies */
	struct fault_set *faults;      /* NULL: the node has no fault rules */
	/* what the user has set; protected by net.config_lock */
	struct ulnet_routing routing;
};

static inline struct whole_node *whole_node(const struct lnet *node)
{
	return container_of(node, struct whole_node, net.portal.node);
}

/* ---- opening and closing ---- */

/* The parameters of a node, of which users can choose only some. */
struct node_params {
	struct ulnet_conf conf;
	/* array of conf.cpts loops, borrowed; NULL: the node makes its own */
	struct loop *const *loops;
	/* An array that ends with NULL, borrowed until the node is freed. It
	 * must have lolnd. */
	const struct lnd *const *lnds;
	/* an LND that serves all nets except lo; NULL: .lnds has an LND for
	 * each net */
	const struct lnd *lnd;
	void *lnd_net; /* becomes lnd_ni.net */
	/* Becomes lnd_ni.fabric. If it is not NULL, o2iblnd serves nets of type
	 * o2ib, even if .lnd is set. */
	void *fabric;
	/* shmlnd serves nets of type shm, even if .lnd is set */
	bool memory;
	const struct lnet_observer *observer;
	/* directory as for numa_read(); NULL: the machine has one NUMA node */
	const char *numa_dir;
	/* With borrowed loops: does what is due next, unless that is due only
	 * after @until (ns). Returns false if nothing was due: then the time is
	 * @until. */
	bool (*drive)(void *arg, uint64_t until);
	void *drive_arg;
};
/* The LNDs of nodes that users open, as node_params.lnds: lnet/open.c. */
extern const struct lnd *const open_lnds[];
/* Only privileged processes can bind ports below this one. */
#define PRIVILEGED_PORTS 1024
/* Logs why the configuration is refused, and fills conf.err with it, unless
 * that is NULL. Returns @rc. */
int node_conf_refuse(const struct ulnet_conf *c, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Replaces zeros by defaults, and LNET_ACCEPT_DEFAULT by what it stands for.
 * Returns 0, or -EINVAL if a field makes no sense: see node_conf_refuse(). */
int node_conf_fill(struct ulnet_conf *c) must_check;
/* Opens a node. @p->conf must come from node_conf_fill(). Its nids are ignored.
 */
int node_open(const struct node_params *p, struct lnet **node_p) must_check;
/* Ends the node as if its process had been killed: nothing more is sent, and
 * users' functions are not called any more. Otherwise as lnet_close(). */
void node_crash(struct lnet *node);

/* layers_close() tells all layers (ulnet/loop.h) to close. layers_mute(), after
 * a crash, tells them to call no functions of their users any more. */
void layers_close(struct lnet *node);
void layers_mute(struct lnet *node);

/* Calls node_params.drive, which makes turns of this node or of other nodes. */
bool node_drive(struct lnet *node, uint64_t until);

/* Aborts if a timer of a user is armed on @loop, which the function with the
 * name @fn is about to free. */
void timers_check(const struct loop *loop, const char *fn);

/* ---- threads: the rest is in ulnet/thread.h ---- */

/* lnet_close() is misused by a thread of the node itself; the node must not be
 * freed while one has not been joined. */
void threads_check_closer(const struct lnet *node);
void threads_check_joined(const struct lnet *node);

/* ---- under virtual time: ---- */

/* The node has been marked as crashed: makes all waits of its threads fail, now
 * and later, also those of threads that are started later. */
void threads_end(struct lnet *node);
/* Is any thread in the middle of something that a crash would leave half done,
 * such as loop_call()? */
bool threads_are_busy(const struct lnet *node);
/* Have the functions of all threads returned? */
bool threads_ended(const struct lnet *node);

/* ---- the control side ---- */

/* Begins a change of the configuration. -EXDEV: the caller cannot wait for all
 * CPTs; since this is checked first, a change is made on all CPTs or on none.
 * -EBUSY: the caller owns the only loop of the node, and another thread is
 * making a change; the caller must not wait for that thread, which may be
 * waiting for the loop. -ESHUTDOWN. */
int node_control_begin(struct lnet *node) must_check;
void node_control_end(struct lnet *node);

/* Replaces a snapshot. @pointer is the address of the pointer to the old
 * snapshot; @new takes its place. @take then gives @new to each CPT, in a turn
 * of the CPT. After that nobody uses the old snapshot, and it is freed. */
void node_publish(struct lnet *node, void *pointer, void *new,
		  int (*take)(struct lnet_cpt *cpt, void *new));

/* To be called when the NIs have changed: a node whose NIs are in several IP
 * networks has a table of policies, be it an empty one. */
void policies_follow_nis(struct lnet *node);

/* The functions of LNet that LNDs call. */
extern const struct lnd_upcalls nis_upcalls;
/* Returns the LND that serves nets of @type on the node, or NULL. */
const struct lnd *node_lnd(const struct lnet *node, int type);

/* Create 0@lo, and an empty table of routes. Called when the node is opened. */
int nis_start_lo(struct lnet *node) must_check;
int routes_start(struct lnet *node) must_check;
/* Free the snapshots of the node. Called at the end, when all NIs are freed and
 * no CPT uses a snapshot any more. */
void nis_fini(struct lnet *node);
void routes_fini(struct lnet *node);
void policies_fini(struct lnet *node);
void faults_fini(struct lnet *node);

/* ---- who hears of lost connections: watch.c, ulnet/loop.h, lnd/lnd.h ---- */

void watches_init(struct lnet_cpt *cpt);
/* @ni was deleted from the configuration, and messages on the way to it or from
 * it may be lost. Tells watches that the connections to all of the CPT's peers
 * on the net have ended, since it is not known which of them used @ni. In a
 * turn of @cpt. */
void watches_ni_gone(struct lnet_cpt *cpt, const struct lnet_ni *ni);

/* As in lnd_upcalls. */
void upcall_peer_silent(struct lnd_ni *lnd, const struct ulnet_id *peer,
			uint64_t ns);
void upcall_peer_disconnected(struct lnd_ni *lnd, const struct ulnet_id *peer);

#endif
