/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node's CPTs offer to programs and libraries that run on them: time,
 * timers, work, randomness; under real and under virtual time. Manual:
 * lnet_post(3), lnet_timer_init(3), lnet_layer_add(3).
 *
 * A CPT is a loop that makes turns. "Owner" is who may touch what belongs to a
 * CPT: lnet_cpt_owned(). Nothing here locks, allocates, or can fail; @cpt is
 * below lnet_cpts(). Times are ns.
 */
#ifndef ULNET_LOOP_H
#define ULNET_LOOP_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where and when ---- */

/* Is time virtual (ulnet_sim(7))? Then all CPTs of all nodes run in one thread,
 * and there must be no other one. Any thread. */
ULNET_EXPORT bool lnet_is_virtual(struct lnet *node);

/* May the caller touch what belongs to @cpt now? On its thread, in a turn of it
 * or (if it has none of its own) outside of all turns. Any thread. */
ULNET_EXPORT bool lnet_cpt_owned(struct lnet *node, unsigned int cpt);
/* The CPT that the caller owns, the first one if several; or -1. Any thread. */
ULNET_EXPORT int lnet_cpt_current(struct lnet *node);
/* Is the caller in a turn of any CPT, of any node? Nothing may wait there. Any
 * thread. */
ULNET_EXPORT bool lnet_in_turn(void);

/* Monotonic. Of this turn, in a turn of @cpt: no system call; elsewhere the
 * clock's. Any thread. */
ULNET_EXPORT uint64_t lnet_now(struct lnet *node, unsigned int cpt);

/* Unpredictable bytes; under virtual time, from the seed. Owner. */
ULNET_EXPORT void lnet_random(struct lnet *node, unsigned int cpt, void *buf,
			      size_t len);

/* ---- work: lnet_post(3) ---- */

/* Something to be done once, embedded in what it belongs to. The node's from
 * when it is given until fn is called, which may free it or give it again. */
struct ulnet_work {
	void *opaque[2];
	void (*fn)(struct ulnet_work *work);
};

/* In a turn of @cpt, soon; in order for each sender. Any thread. */
ULNET_EXPORT void lnet_post(struct lnet *node, unsigned int cpt,
			    struct ulnet_work *work);
/* At the end of this turn of @cpt, or of the next one, which comes at once, if
 * this is none; in order. Never inside the call. Owner. */
ULNET_EXPORT void lnet_defer(struct lnet *node, unsigned int cpt,
			     struct ulnet_work *work);

/* ---- timers: lnet_timer_init(3) ---- */

/* Embedded in what it belongs to. Must not move, nor end, while armed. */
struct ulnet_timer {
	uint64_t opaque[5];
	void (*fn)(struct ulnet_timer *timer);
};

/* Before anything else; not armed. */
ULNET_EXPORT void lnet_timer_init(struct ulnet_timer *timer,
				  void (*fn)(struct ulnet_timer *timer));
/* Arms it, or moves it: fn is called once, in a turn that begins at @at or
 * later. Timers of a CPT are called in the order of their times; equal times,
 * in the order of arming. Owner. */
ULNET_EXPORT void lnet_timer_arm(struct lnet *node, unsigned int cpt,
				 struct ulnet_timer *timer, uint64_t at);
/* After it fn is not called. No effect when not armed. Owner. */
ULNET_EXPORT void lnet_timer_cancel(struct lnet *node, unsigned int cpt,
				    struct ulnet_timer *timer);
ULNET_EXPORT bool lnet_timer_armed(const struct ulnet_timer *timer);

/* ---- layers: lnet_layer_add(3) ---- */

/* Something that lives on a node and has to know when the node crashes, which
 * only simulated ones do: lnet_sim_crash(3). Both functions are called outside
 * of all turns; first those of the layer that came last. */
struct ulnet_layer {
	void *opaque[2];
	/* From now on no handler is called for this node, and calls of it fail.
	 * Cancel all timers; post, defer and arm nothing more; free nothing
	 * that LNet or given work may still refer to. */
	void (*crash)(struct ulnet_layer *layer);
	/* All given work has run, and nobody refers to memory of yours any
	 * more: free it, and @layer. The node must not be used. */
	void (*gone)(struct ulnet_layer *layer);
	/* lnet_close() has been called, and has done nothing yet: end, and call
	 * lnet_layer_del(). May wait. NULL: the user should have done so. */
	void (*close)(struct ulnet_layer *layer);
};

/* Borrows @layer until lnet_layer_del(), or gone(). Any thread, but in one at a
 * time. */
ULNET_EXPORT void lnet_layer_add(struct lnet *node, struct ulnet_layer *layer);
/* One that was added, and has this function: is there one of that kind? NULL: no.
 * Threads as there. */
ULNET_EXPORT struct ulnet_layer *
lnet_layer_find(struct lnet *node, void (*crash)(struct ulnet_layer *layer));
/* Before lnet_close() or in close(). crash() may call it; then gone() is not
 * called. */
ULNET_EXPORT void lnet_layer_del(struct lnet *node, struct ulnet_layer *layer);

#ifdef __cplusplus
}
#endif

#endif
