/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node's CPTs offer to the programs and libraries that run on them:
 * time, timers, work and randomness, under real and under virtual time. Manual:
 * lnet_post(3), lnet_timer_init(3), lnet_layer_add(3).
 *
 * A CPT is an event loop that makes turns. A function marked "Owner" may be
 * called only where lnet_cpt_owned() is true for @cpt. No function here locks,
 * allocates or fails; @cpt is below lnet_cpts(); times are ns.
 */
#ifndef ULNET_LOOP_H
#define ULNET_LOOP_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where and when ---- */

/* Is time virtual (ulnet_sim(7))? Then all CPTs of all nodes run in one thread,
 * and there must be no others but those of ulnet/thread.h. Any thread. */
ULNET_EXPORT bool lnet_is_virtual(struct lnet *node);

/* May the caller touch what belongs to @cpt now? True in a turn of @cpt, and,
 * if @cpt has no thread of its own, also on the thread that drives the node,
 * outside of all turns. Any thread. */
ULNET_EXPORT bool lnet_cpt_owned(struct lnet *node, unsigned int cpt);
/* The CPT that the caller owns, the first one if there are several, or -1. Any
 * thread. */
ULNET_EXPORT int lnet_cpt_current(struct lnet *node);
/* Is the caller in a turn of any CPT of any node, where nothing may wait? Any
 * thread. */
ULNET_EXPORT bool lnet_in_turn(void);

/* Monotonic time: in a turn of @cpt the time at which the turn began, which
 * takes no system call; elsewhere the clock's time. Any thread. */
ULNET_EXPORT uint64_t lnet_now(struct lnet *node, unsigned int cpt);
/* lnet_now(), if the caller is in a turn of @cpt, and so owns @cpt; else 0: one
 * question instead of two, for what is called very often. Any thread. */
ULNET_EXPORT uint64_t lnet_turn(struct lnet *node, unsigned int cpt);

/* Unpredictable bytes; under virtual time they follow from the seed. Owner. */
ULNET_EXPORT void lnet_random(struct lnet *node, unsigned int cpt, void *buf,
			      size_t len);

/*
 * To be called by layers after each call of a user's function: if that has
 * taken too long, which delays all other work of the CPT, logs so. @fmt makes
 * its name, as printf(): "method Add of service tally". Owner, in a turn.
 */
ULNET_EXPORT void lnet_guard_end(struct lnet *node, unsigned int cpt,
				 const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* For ulnet's own layers, which make very many such calls (base/guard.h): the
 * address of the tick up to which lnet_guard_end() does nothing, valid as long
 * as the node is open. Any thread; to be read by the owner. */
ULNET_EXPORT const uint64_t *lnet_guard_late(struct lnet *node,
					     unsigned int cpt);

/* ---- work: lnet_post(3) ---- */

/* Something to be done once; the caller embeds it in an object. The node
 * borrows it from lnet_post() or lnet_defer() until the call of fn, which may
 * free it, or give it to the node again. */
struct ulnet_work {
	void *opaque[2];
	void (*fn)(struct ulnet_work *work);
};

/* Has @work done in a turn of @cpt, soon. Work of one sender is done in the
 * order in which it was posted. Any thread. */
ULNET_EXPORT void lnet_post(struct lnet *node, unsigned int cpt,
			    struct ulnet_work *work);
/* Has @work done at the end of this turn of @cpt, or, outside of turns, at the
 * end of the next turn, which begins at once. Work is done in the order in
 * which it was deferred, and never inside of this function. Owner. */
ULNET_EXPORT void lnet_defer(struct lnet *node, unsigned int cpt,
			     struct ulnet_work *work);

/* ---- timers: lnet_timer_init(3) ---- */

/* The caller embeds a timer in an object, which must be neither moved nor freed
 * while the timer is armed. */
struct ulnet_timer {
	uint64_t opaque[5];
	void (*fn)(struct ulnet_timer *timer);
};

/* Prepares @timer, which is not armed then. To be called before anything
 * else. */
ULNET_EXPORT void lnet_timer_init(struct ulnet_timer *timer,
				  void (*fn)(struct ulnet_timer *timer));
/* Arms @timer, or moves it if it is armed: fn is called once, in a turn that
 * begins at @at or later. The timers of a CPT are called in the order of their
 * times, and those of equal times in the order in which they were armed.
 * Owner. */
ULNET_EXPORT void lnet_timer_arm(struct lnet *node, unsigned int cpt,
				 struct ulnet_timer *timer, uint64_t at);
/* Disarms @timer: fn is not called after this function returns. No effect on a
 * timer that is not armed. Owner. */
ULNET_EXPORT void lnet_timer_cancel(struct lnet *node, unsigned int cpt,
				    struct ulnet_timer *timer);
ULNET_EXPORT bool lnet_timer_armed(const struct ulnet_timer *timer);

/* ---- the ends of connections: lnet_peer_watch_add(3) ---- */

/* Functions to be called about the peers whose NIDs a CPT owns
 * (lnet_cpt_of()). */
struct ulnet_peer_watch {
	void *opaque[2];
	/* Connections to the process @peer (pid LNET_PID_ANY: to all processes
	 * of the NID) have ended with messages on them, to @peer or from it,
	 * that may be lost, even if SEND events said that they were sent. This
	 * is a hint: the messages may have arrived, and others may be lost
	 * without it. Also called for all peers on a net when an interface of
	 * this node on the net is deleted; not called for connections that this
	 * node ends as it closes, or that end after all messages on them have
	 * arrived. In a turn of the CPT, and not inside of another call of the
	 * user's, so it may send, and delete watches, including its own. A
	 * watch that is added meanwhile is called, too. */
	void (*disconnected)(struct ulnet_peer_watch *watch,
			     const struct ulnet_id *peer);
	/* On connections to this NID nothing has come back from @peer for
	 * longer than usual, because it is dead or this rail is cut; or the
	 * peer has said by another of its NIDs that this one is down, or no
	 * longer its own. Messages on the way there or back may be lost, or
	 * late. As disconnected(); may be NULL. */
	void (*silent)(struct ulnet_peer_watch *watch,
		       const struct ulnet_id *peer);
	/* The NIDs of this node have changed, or one of its interfaces has gone
	 * down or come up. Discovery tells that to peers; lnet_tell() is for
	 * those that discovery does not tell. In a turn, as disconnected();
	 * may be NULL. */
	void (*changed)(struct ulnet_peer_watch *watch);
};

/* Borrows @watch until lnet_peer_watch_del(), or until the node crashes. Owner
 * of @cpt. */
ULNET_EXPORT void lnet_peer_watch_add(struct lnet *node, unsigned int cpt,
				      struct ulnet_peer_watch *watch);
ULNET_EXPORT void lnet_peer_watch_del(struct lnet *node, unsigned int cpt,
				      struct ulnet_peer_watch *watch);

/* Tells @peer, a process that only calls (its pid has LNET_PID_USERFLAG), what
 * NIDs this node has and which of them are up: by a push of discovery to that
 * very NID, over connections that the process has made. Whether it arrives is
 * not reported. Owner of @cpt. -EINVAL: @peer listens, so discovery tells it;
 * -EOPNOTSUPP: discovery is off; -ENOMEM; -ESHUTDOWN. */
ULNET_EXPORT int lnet_tell(struct lnet *node, unsigned int cpt,
			   const struct ulnet_id *peer);

/* Reports that a message from the local NID @local to @peer, or the answer,
 * seems to be lost on that path, for example because the peer was heard by
 * another path. The effect is as if the LND had said that nothing comes back:
 * both ends lose health, and messages take other paths, if there are any, until
 * the path answers recovery pings.
 * Owner of @cpt, which owns the NID of @peer; else without effect. */
ULNET_EXPORT void lnet_peer_suspect(struct lnet *node, unsigned int cpt,
				    const struct ulnet_nid *local,
				    const struct ulnet_id *peer);

/* ---- layers: lnet_layer_add(3) ---- */

/* What a library keeps for a node, and has to free when the node is closed or,
 * in the simulator, crashes: lnet_sim_crash(3). */
struct ulnet_layer {
	void *opaque[2];
	/* The node has crashed: from now on the layer calls no function of its
	 * users. Set before anything else ends, and before close(). */
	bool mute;
	/* The node is about to end: end what lives on it, and call
	 * lnet_layer_del(). Outside of all turns; the layer that was added last
	 * is called first. May wait: in lnet_close() nothing has ended yet; in
	 * a crash nothing can be sent any more, operations have ended, and
	 * threads (thread.h) have returned. */
	void (*close)(struct ulnet_layer *layer);
};

/* An option of a layer's memory descriptor: its handler is called for the end
 * of the descriptor even if the node has crashed. */
#define LNET_MD_OF_LAYER 0x8000u

/* Borrows @layer until lnet_layer_del(). Any thread, but only one at a time for
 * each node. */
ULNET_EXPORT void lnet_layer_add(struct lnet *node, struct ulnet_layer *layer);
/* The layer that was added with the function @close, or NULL. Threads as for
 * lnet_layer_add(). */
ULNET_EXPORT struct ulnet_layer *lnet_layer_find(
	struct lnet *node, void (*close)(struct ulnet_layer *layer));
/* Takes @layer away: before lnet_close(), or in close(). */
ULNET_EXPORT void lnet_layer_del(struct lnet *node, struct ulnet_layer *layer);

#ifdef __cplusplus
}
#endif

#endif
