/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator: clusters of real nodes in one process, under virtual time,
 * with faults that are computed from a seed. Manual: ulnet_sim(7),
 * lnet_sim_new(3).
 *
 * Threads: only the thread that made the simulation may call these functions,
 * between two calls of lnet_sim_run() or in callbacks of lnet_sim_at(). Those
 * marked "Handlers may call it" may also be called in handlers of nodes, and by
 * threads in lockstep with the simulation (thread.h). Times are ns of virtual
 * time.
 */
#ifndef ULNET_SIM_H
#define ULNET_SIM_H

#include <stdio.h>
#include "ulnet/lnet.h"
#include "ulnet/names.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lnet_sim;

/* The probability of what always happens. Probabilities are parts in a million.
 */
#define LNET_SIM_ALWAYS UINT32_C(1000000)

/* One direction of a link between two NIDs. All zero: no faults, and no
 * delay. */
struct ulnet_sim_link {
	uint64_t latency; /* ns that a message is on its way */
	/* ns: up to this much is added to the latency, at random; messages stay
	 * in order */
	uint64_t jitter;
	uint64_t bandwidth; /* bytes/s; 0: no limit */
	/* ns that it takes to make a connection, which the first message then
	 * needs; 0: messages need no connection */
	uint64_t connect;
	/* how many messages may be on the link or not yet read by the receiver
	 * before the sender has to wait; 0: no limit */
	uint32_t window;
	/* Probabilities for each message: */
	/* the message is lost, but the sender is told that it was sent */
	uint32_t loss;
	uint32_t duplicate; /* the message arrives twice */
	/* later messages may overtake it, within reorder_window */
	uint32_t reorder;
	/* ns: how much later than without reordering it may arrive */
	uint64_t reorder_window;
	/* the message is not sent, and the sender is told so */
	uint32_t refuse;
	/* the sender is told of an error; the message may arrive nevertheless
	 */
	uint32_t error;
	/* the message is not sent; the sender waits until it gives up */
	uint32_t stall;
	/* the message arrives, but the sender is not told that it was sent */
	uint32_t mute;
	uint32_t cut; /* the connection breaks in the middle of the payload */
	/* bytes: messages with more payload are lost, as if the MTU of the link
	 * were smaller than its ends believe; 0: none */
	uint32_t hole;
};

struct ulnet_sim_stats {
	uint64_t events;     /* lines of the event log */
	uint64_t messages;   /* messages that arrived at a node */
	uint64_t operations; /* PUTs and GETs begun */
	uint64_t faults;     /* faults injected */
};

/* Makes a simulation. @cpts: CPTs of each node, 1 to LNET_CPTS_MAX. -ELIBSCN:
 * the program is linked with libulnet before libulnetlab; -EINVAL; -ENOMEM. */
ULNET_EXPORT int lnet_sim_new(uint64_t seed, unsigned int cpts,
			      struct lnet_sim **sim_p);
/* Closes all nodes, checks that nothing is left of them, and frees everything.
 * Returns the number of violations found since lnet_sim_new(). */
ULNET_EXPORT unsigned int lnet_sim_free(struct lnet_sim *sim);

/* Adds a node, and returns its index, by which the functions below name it.
 * @nids: separated by blanks. @start sets the node up: it is called now and
 * after each restart; if it returns a negative value now, the node is not
 * added, and that value is returned. @conf NULL: defaults; its cpts are
 * ignored. */
typedef int (*lnet_sim_start_fn)(void *arg, unsigned int index,
				 struct lnet *node);
ULNET_EXPORT int lnet_sim_node_add(struct lnet_sim *sim, const char *nids,
				   const struct ulnet_conf *conf,
				   lnet_sim_start_fn start, void *arg);
/* Returns the node, or NULL while it is crashed. Handlers may call it. */
ULNET_EXPORT struct lnet *lnet_sim_node(struct lnet_sim *sim,
					unsigned int index);
/* Crashes the node. -EBUSY: a function is waiting for the node, which must stay
 * until that function has returned. */
ULNET_EXPORT int lnet_sim_crash(struct lnet_sim *sim, unsigned int index);
ULNET_EXPORT int lnet_sim_restart(struct lnet_sim *sim, unsigned int index);
/* The nodes that are added from now on can be paused: each has loops of its
 * own. */
ULNET_EXPORT void lnet_sim_apart(struct lnet_sim *sim);
/* Pauses the node, as if its process were stopped or its machine suspended: its
 * loops and threads do nothing for @duration ns. What is sent to it waits, and
 * is read after the timers that became due have run. -ENOENT: it is crashed.
 * -EINVAL: it cannot be paused. */
ULNET_EXPORT int lnet_sim_pause(struct lnet_sim *sim, unsigned int index,
				uint64_t duration);
ULNET_EXPORT int lnet_sim_ni_set(struct lnet_sim *sim,
				 const struct ulnet_nid *nid, bool up);

/* Sets the link from @src to @dst. LNET_NID_ANY stands for all NIDs. If several
 * links fit, one set for this very @src takes precedence, and among those one
 * set for this very @dst. */
ULNET_EXPORT int lnet_sim_link_set(struct lnet_sim *sim,
				   const struct ulnet_nid *src,
				   const struct ulnet_nid *dst,
				   const struct ulnet_sim_link *link);
/* While @on, nothing passes between @a and @b, in either direction. */
ULNET_EXPORT int lnet_sim_partition(struct lnet_sim *sim,
				    const struct ulnet_nid *a,
				    const struct ulnet_nid *b, bool on);
/* Breaks the connections (ulnet_sim_link.connect) between @a and @b: messages
 * on them are lost, and both ends notice it and connect again. */
ULNET_EXPORT void lnet_sim_cut(struct lnet_sim *sim, const struct ulnet_nid *a,
			       const struct ulnet_nid *b);

/* From now on nodes that look up @name, the text of a target, find *@answer,
 * which is copied, @delay ns after they have asked; those that know the name
 * already are told @delay ns from now. @answer NULL: nobody answers. Of a name
 * that was never set they learn at once that there is none. -ENOMEM. */
ULNET_EXPORT int lnet_sim_name_set(struct lnet_sim *sim, const char *name,
				   const struct ulnet_name_answer *answer,
				   uint64_t delay);

ULNET_EXPORT uint64_t lnet_sim_now(const struct lnet_sim *sim);
/* Returns a random number in [0, @below), uniformly distributed. Handlers may
 * call it. */
ULNET_EXPORT uint64_t lnet_sim_random(struct lnet_sim *sim, uint64_t below);
/* Calls @fn(@arg) @delay ns from now, outside of all nodes, unless
 * lnet_sim_free() is called before. -ENOMEM; -ESHUTDOWN: lnet_sim_free() has
 * begun. Handlers may call it. */
ULNET_EXPORT int lnet_sim_at(struct lnet_sim *sim, uint64_t delay,
			     void (*fn)(void *arg), void *arg);
/* Lets @duration ns pass. */
ULNET_EXPORT void lnet_sim_run(struct lnet_sim *sim, uint64_t duration);
/* Lets time pass until nothing is left to happen. */
ULNET_EXPORT void lnet_sim_run_all(struct lnet_sim *sim);

/* Allocates a buffer, which the simulation frees. After lnet_sim_buf_retire() a
 * write to the buffer is a violation. Handlers may call both functions. */
ULNET_EXPORT void *lnet_sim_buf(struct lnet_sim *sim, size_t size);
ULNET_EXPORT void lnet_sim_buf_retire(struct lnet_sim *sim, void *buf);

/* Checks all invariants that can be checked at this moment. Returns the number
 * of violations found so far. Each violation is printed to stderr when it is
 * found, with the seed and the command set by lnet_sim_set_command(). */
ULNET_EXPORT unsigned int lnet_sim_check(struct lnet_sim *sim);
ULNET_EXPORT void lnet_sim_set_command(struct lnet_sim *sim,
				       const char *command);
/* Reports a violation that the scenario itself has found. Handlers may call it.
 */
ULNET_EXPORT void lnet_sim_fail(struct lnet_sim *sim, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* From now on writes a line for each event to @out; NULL: to nobody. */
ULNET_EXPORT void lnet_sim_trace(struct lnet_sim *sim, FILE *out);
/* Returns a hash of all events so far, which is the same for equal runs. */
ULNET_EXPORT uint64_t lnet_sim_digest(const struct lnet_sim *sim);
ULNET_EXPORT void lnet_sim_stats(const struct lnet_sim *sim,
				 struct ulnet_sim_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
