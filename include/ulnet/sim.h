/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator: clusters of real nodes in one process, under virtual time,
 * with faults, from a seed. Manual: ulnet_sim(7), lnet_sim_new(3).
 *
 * One thread: the one that made the simulation, and those that are in lockstep
 * with it (thread.h), for which the same holds as for handlers. Functions are
 * called from outside, between two lnet_sim_run(), or from lnet_sim_at()
 * callbacks, unless they say that handlers may call them. Times are nanoseconds
 * of virtual time.
 */
#ifndef ULNET_SIM_H
#define ULNET_SIM_H

#include <stdio.h>
#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lnet_sim;

/* Probabilities: parts in a million. */
#define LNET_SIM_ALWAYS UINT32_C(1000000)

/* One direction of a link, between two NIDs. All zero: perfect and immediate.
 */
struct ulnet_sim_link {
	uint64_t latency;   /* ns */
	uint64_t jitter;    /* ns: up to that much is added, order is kept */
	uint64_t bandwidth; /* bytes/s; 0: no limit */
	uint64_t connect;   /* ns: messages need a connection, and an attempt
			     * to make one takes so long; 0: they need none */
	uint32_t window;    /* messages on the link, or not read yet by the
			     * receiver, beyond which the sender waits; 0: no
			     * limit */
	/* Of each message: */
	uint32_t loss;	    /* silently gone; the sender thinks it is sent */
	uint32_t duplicate; /* arrives twice */
	uint32_t reorder;   /* may be overtaken, within reorder_window */
	uint64_t reorder_window; /* ns */
	uint32_t refuse;	 /* not sent, and the sender is told so */
	uint32_t error; /* the sender is told of an error; may yet arrive */
	uint32_t stall; /* stuck at the sender till it gives up; never sent */
	uint32_t mute;	/* arrives, but the sender is never told */
	uint32_t cut;	/* the connection breaks within the payload */
};

struct ulnet_sim_stats {
	uint64_t events;     /* lines of the event log */
	uint64_t messages;   /* arrived at a node */
	uint64_t operations; /* PUTs and GETs begun */
	uint64_t faults;     /* injected */
};

/* @cpts: of each node, 1 .. LNET_CPTS_MAX. -ELIBSCN: the program is linked with
 * libulnet before libulnetlab; -EINVAL; -ENOMEM. */
ULNET_EXPORT int lnet_sim_new(uint64_t seed, unsigned int cpts,
			      struct lnet_sim **sim_p);
/* Closes all nodes, checks that nothing is left, and frees everything. Returns
 * the number of violations that the simulation found from its beginning. */
ULNET_EXPORT unsigned int lnet_sim_free(struct lnet_sim *sim);

/* Nodes are named by a small number. @nids: separated by blanks. @start is
 * called now and after each restart, to set the node up; a negative return
 * value is lnet_sim_node_add()'s, and the node is not added. @conf NULL:
 * defaults; its cpts are the simulation's. */
typedef int (*lnet_sim_start_fn)(void *arg, unsigned int index,
				 struct lnet *node);
ULNET_EXPORT int lnet_sim_node_add(struct lnet_sim *sim, const char *nids,
				   const struct ulnet_conf *conf,
				   lnet_sim_start_fn start, void *arg);
/* The node, or NULL while it is crashed. Handlers may call it. */
ULNET_EXPORT struct lnet *lnet_sim_node(struct lnet_sim *sim,
					unsigned int index);
/* -EBUSY: a function waits for something of the node, so the node must stay. */
ULNET_EXPORT int lnet_sim_crash(struct lnet_sim *sim, unsigned int index);
ULNET_EXPORT int lnet_sim_restart(struct lnet_sim *sim, unsigned int index);
ULNET_EXPORT int lnet_sim_ni_set(struct lnet_sim *sim,
				 const struct ulnet_nid *nid, bool up);

/* LNET_NID_ANY stands for all NIDs; the more exact rule wins, @src first. */
ULNET_EXPORT int lnet_sim_link_set(struct lnet_sim *sim,
				   const struct ulnet_nid *src,
				   const struct ulnet_nid *dst,
				   const struct ulnet_sim_link *link);
/* While @on, nothing passes between @a and @b, in either direction. */
ULNET_EXPORT int lnet_sim_partition(struct lnet_sim *sim,
				    const struct ulnet_nid *a,
				    const struct ulnet_nid *b, bool on);
/* Connections (ulnet_sim_link.connect) between @a and @b break: what is on its
 * way over them is lost, and both ends notice; they are made anew. */
ULNET_EXPORT void lnet_sim_cut(struct lnet_sim *sim, const struct ulnet_nid *a,
			       const struct ulnet_nid *b);

ULNET_EXPORT uint64_t lnet_sim_now(const struct lnet_sim *sim);
/* Uniform in [0, below). Handlers may call it. */
ULNET_EXPORT uint64_t lnet_sim_random(struct lnet_sim *sim, uint64_t below);
/* Calls @fn(@arg) @delay ns from now, outside of all nodes. Handlers may call
 * it. */
ULNET_EXPORT int lnet_sim_at(struct lnet_sim *sim, uint64_t delay,
			     void (*fn)(void *arg), void *arg);
/* Lets @duration ns pass. */
ULNET_EXPORT void lnet_sim_run(struct lnet_sim *sim, uint64_t duration);
/* Lets time pass until nothing is left to happen. */
ULNET_EXPORT void lnet_sim_run_all(struct lnet_sim *sim);

/* Buffers that are watched: lnet_sim_buf_retire() says that nobody may write to
 * this one any more, and if somebody does it is a violation. Handlers may call
 * both. */
ULNET_EXPORT void *lnet_sim_buf(struct lnet_sim *sim, size_t size);
ULNET_EXPORT void lnet_sim_buf_retire(struct lnet_sim *sim, void *buf);

/* Checks all invariants that can be checked at this moment. Returns the number
 * of violations found so far; each is printed to stderr when found, with the
 * seed and the command of lnet_sim_set_command(). */
ULNET_EXPORT unsigned int lnet_sim_check(struct lnet_sim *sim);
ULNET_EXPORT void lnet_sim_set_command(struct lnet_sim *sim,
				       const char *command);
/* A violation of the scenario's own. Handlers may call it. */
ULNET_EXPORT void lnet_sim_fail(struct lnet_sim *sim, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Writes each event to @out, a line each; NULL: no more. */
ULNET_EXPORT void lnet_sim_trace(struct lnet_sim *sim, FILE *out);
/* A hash of all events so far: equal for equal runs. */
ULNET_EXPORT uint64_t lnet_sim_digest(const struct lnet_sim *sim);
ULNET_EXPORT void lnet_sim_stats(const struct lnet_sim *sim,
				 struct ulnet_sim_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
