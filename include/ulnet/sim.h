/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator: clusters of real nodes in one process, under virtual time,
 * with faults that follow from a seed. Manual: ulnet_sim(7), lnet_sim_new(3).
 *
 * Thread: the one that made the simulation. Threads in lockstep with it
 * (thread.h) may call what handlers may call. Functions are called between two
 * calls of lnet_sim_run(), or from lnet_sim_at() callbacks, unless handlers are
 * said to be allowed to call them. Times are ns of virtual time.
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

/* One direction of a link between two NIDs. All zero: no faults, and no
 * delay. */
struct ulnet_sim_link {
	uint64_t latency;   /* ns */
	uint64_t jitter;    /* ns: up to so much is added; keeps the order */
	uint64_t bandwidth; /* bytes/s; 0: no limit */
	uint64_t connect;   /* ns: how long it takes to make the connection that
			     * messages need; 0: they need none */
	uint32_t window;    /* the sender waits while so many messages are on
			     * the link, or not read by the receiver; 0: no
			     * limit */
	/* Probabilities for each message: */
	uint32_t loss;	    /* lost, but the sender is told that it is sent */
	uint32_t duplicate; /* arrives twice */
	uint32_t reorder;   /* may be overtaken, within reorder_window */
	uint64_t reorder_window; /* ns */
	uint32_t refuse;	 /* not sent, as the sender is told */
	uint32_t error; /* the sender is told of an error; may still arrive */
	uint32_t stall; /* not sent; the sender waits until it gives up */
	uint32_t mute;	/* arrives, but the sender is not told */
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

/* Adds a node, and returns its index, by which the functions below name it.
 * @nids: separated by blanks. @start is called now and after each restart, to
 * set the node up; if it returns a negative value, the node is not added, and
 * that value is returned. @conf NULL: defaults; its cpts are ignored. */
typedef int (*lnet_sim_start_fn)(void *arg, unsigned int index,
				 struct lnet *node);
ULNET_EXPORT int lnet_sim_node_add(struct lnet_sim *sim, const char *nids,
				   const struct ulnet_conf *conf,
				   lnet_sim_start_fn start, void *arg);
/* The node, or NULL while it is crashed. Handlers may call it. */
ULNET_EXPORT struct lnet *lnet_sim_node(struct lnet_sim *sim,
					unsigned int index);
/* -EBUSY: a function is waiting for the node, which therefore must stay. */
ULNET_EXPORT int lnet_sim_crash(struct lnet_sim *sim, unsigned int index);
ULNET_EXPORT int lnet_sim_restart(struct lnet_sim *sim, unsigned int index);
ULNET_EXPORT int lnet_sim_ni_set(struct lnet_sim *sim,
				 const struct ulnet_nid *nid, bool up);

/* Sets the link from @src to @dst. LNET_NID_ANY stands for all NIDs; a link
 * with the exact NID takes precedence, first of @src, then of @dst. */
ULNET_EXPORT int lnet_sim_link_set(struct lnet_sim *sim,
				   const struct ulnet_nid *src,
				   const struct ulnet_nid *dst,
				   const struct ulnet_sim_link *link);
/* While @on, nothing passes between @a and @b, in either direction. */
ULNET_EXPORT int lnet_sim_partition(struct lnet_sim *sim,
				    const struct ulnet_nid *a,
				    const struct ulnet_nid *b, bool on);
/* Breaks connections (ulnet_sim_link.connect) between @a and @b: messages on
 * them are lost, both ends notice, and connect again. */
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

/* Allocates a buffer that is watched after lnet_sim_buf_retire(): a write to it
 * is then a violation. The simulation frees it. Handlers may call both. */
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

/* Writes a line for each event to @out; NULL: stops that. */
ULNET_EXPORT void lnet_sim_trace(struct lnet_sim *sim, FILE *out);
/* A hash of all events so far: equal for equal runs. */
ULNET_EXPORT uint64_t lnet_sim_digest(const struct lnet_sim *sim);
ULNET_EXPORT void lnet_sim_stats(const struct lnet_sim *sim,
				 struct ulnet_sim_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
