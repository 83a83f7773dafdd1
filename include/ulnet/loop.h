/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the CPTs of a node offer to the programs and libraries that run on them:
 * time, timers, work and randomness, under real and under virtual time. Manual:
 * lnet_post(3), lnet_timer_init(3), lnet_put_now(3), lnet_layer_add(3).
 *
 * A CPT is an event loop that makes turns. A function marked "Owner" may be
 * called only where lnet_cpt_owned() is true for @cpt. No function here locks,
 * allocates or fails, unless its comment says so; @cpt is below lnet_cpts();
 * times are ns.
 */
#ifndef ULNET_LOOP_H
#define ULNET_LOOP_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where and when ---- */

/* Is the time of the node virtual (ulnet_sim(7))? Then one thread runs all CPTs
 * of all nodes, and the program may start further threads only with
 * ulnet/thread.h. Any thread. */
ULNET_EXPORT bool lnet_is_virtual(struct lnet *node);

/* May the caller access now what belongs to @cpt? That is so in a turn of @cpt,
 * and, if @cpt has no thread of its own, also outside of all turns on the
 * thread that drives the node. Any thread. */
ULNET_EXPORT bool lnet_cpt_owned(struct lnet *node, unsigned int cpt);
/* Returns the first CPT that the caller owns (lnet_cpt_owned()), or -1 if it
 * owns none. Any thread. */
ULNET_EXPORT int lnet_cpt_current(struct lnet *node);
/* Returns the NUMA node on which the calling thread runs. Memory that the
 * thread is the first to touch lies there: for LNET_MD_NUMA_NODE. Returns -1:
 * the machine has one NUMA node, or it is not known. A system call; any thread.
 */
ULNET_EXPORT int lnet_numa_here(struct lnet *node);
/* Is the caller in a turn of any CPT of any node? Nothing may wait there. Any
 * thread. */
ULNET_EXPORT bool lnet_in_turn(void);

/*
 * For a thread that begins something and then does nothing but wait for its
 * end. On a node of LNET_RUN_SHARED, if nobody makes turns of @cpt now, such a
 * thread makes them itself: this function calls begin(@arg) on @cpt, where the
 * caller owns it, and then makes turns until done(@arg), which it calls between
 * them, returns true; and it must only become true in a turn of @cpt. Meanwhile
 * all functions of users that @cpt calls are called on this thread. Any thread.
 * Returns 0; or, without having called begin, -EBUSY: somebody else makes the
 * turns, and the caller has to wait for him; -EDEADLK: the caller is in a turn;
 * -ESHUTDOWN: in a child of fork().
 */
ULNET_EXPORT int lnet_cpt_run(struct lnet *node, unsigned int cpt,
			      void (*begin)(void *arg), bool (*done)(void *arg),
			      void *arg);
/*
 * For a thread that waits until done(@arg), which a turn of @cpt makes true on
 * another thread: polls that for a while, if it seems to pay (the setting
 * wait_poll), and else calls sleep(@arg), which returns when done(@arg) is
 * true, and in which the node may be closed. Any thread that is in no turn.
 */
ULNET_EXPORT void lnet_cpt_wait(struct lnet *node, unsigned int cpt,
				bool (*done)(void *arg),
				void (*sleep)(void *arg), void *arg);

/* Returns the monotonic time: in a turn of @cpt the time at which the turn
 * began, which takes no system call; elsewhere the time of the clock. Any
 * thread. */
ULNET_EXPORT uint64_t lnet_now(struct lnet *node, unsigned int cpt);
/* Returns the time of the clock, even in a turn. Any thread. */
ULNET_EXPORT uint64_t lnet_clock(struct lnet *node, unsigned int cpt);
/* Returns lnet_now() if the caller is in a turn of @cpt, and so owns @cpt;
 * otherwise 0. One call of this is cheaper than one of lnet_cpt_owned() and one
 * of lnet_now(). Any thread. */
ULNET_EXPORT uint64_t lnet_turn(struct lnet *node, unsigned int cpt);

/* Fills @buf with unpredictable bytes; under virtual time they are computed
 * from the seed. Owner. */
ULNET_EXPORT void lnet_random(struct lnet *node, unsigned int cpt, void *buf,
			      size_t len);

/*
 * To be called by a layer after each call of a user's function. Logs a warning
 * if that function has taken so long that it delays the other work of the CPT.
 * @fmt, as in printf(), makes the name of the function: "method Add of service
 * tally". Owner, in a turn.
 */
ULNET_EXPORT void lnet_guard_end(struct lnet *node, unsigned int cpt,
				 const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* For ulnet's own layers, which call very many functions of users: returns the
 * address of a value of the processor's tick counter (base/guard.h), valid
 * while the node is open. Until the counter passes that value, lnet_guard_end()
 * has nothing to do and need not be called. Any thread may call this; only the
 * owner may read the value. */
ULNET_EXPORT const uint64_t *lnet_guard_late(struct lnet *node,
					     unsigned int cpt);
/* Likewise: returns the address of how many ns 2^32 ticks of that counter take;
 * 0: not known yet, or time is virtual. Any thread may call this; only the
 * owner may read the value, in a turn. */
ULNET_EXPORT const uint64_t *lnet_tick_rate(struct lnet *node,
					    unsigned int cpt);

/* ---- work: lnet_post(3) ---- */

/* Something to be done once. The caller embeds it in an object. The node
 * borrows it from lnet_post() or lnet_defer() until it calls fn, which may free
 * it or give it to the node again. */
struct ulnet_work {
	void *opaque[2];
	void (*fn)(struct ulnet_work *work);
};

/* Schedules @work: fn is called soon, in a turn of @cpt. Work that one thread
 * has posted is done in the order in which it was posted. Any thread. */
ULNET_EXPORT void lnet_post(struct lnet *node, unsigned int cpt,
			    struct ulnet_work *work);
/* Schedules @work for the end of this turn of @cpt or, outside of turns, for
 * the end of the next turn, which begins at once. Work is done in the order in
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

/* Prepares @timer, which is then not armed. No other function may be called for
 * the timer before this one. */
ULNET_EXPORT void lnet_timer_init(struct ulnet_timer *timer,
				  void (*fn)(struct ulnet_timer *timer));
/* Arms @timer, or sets a new time if it is armed: fn is called once, in a turn
 * that begins at time @at or later. Timers of a CPT are called in the order of
 * their times; timers with equal times in the order in which they were armed.
 * Owner. */
ULNET_EXPORT void lnet_timer_arm(struct lnet *node, unsigned int cpt,
				 struct ulnet_timer *timer, uint64_t at);
/* Disarms @timer: fn is not called after this function returns. No effect on a
 * timer that is not armed. Owner. */
ULNET_EXPORT void lnet_timer_cancel(struct lnet *node, unsigned int cpt,
				    struct ulnet_timer *timer);
ULNET_EXPORT bool lnet_timer_armed(const struct ulnet_timer *timer);

/* ---- the ends of connections: lnet_peer_watch_add(3) ---- */

/* Functions that a CPT calls when something happens to a peer whose NID the CPT
 * owns (lnet_cpt_of()). */
struct ulnet_peer_watch {
	void *opaque[2];
	/* Connections to the process @peer (pid LNET_PID_ANY: to all processes
	 * with that NID) have ended, and messages on them, to @peer or from it,
	 * may be lost, even if SEND events said that they were sent. This is a
	 * hint: the messages may have arrived, and other messages may be lost
	 * without a hint.
	 *
	 * Also called for all peers on a net when an NI of this node on that
	 * net is deleted. Not called for connections that this node ends
	 * because it closes, nor for those that end after all messages on them
	 * have arrived.
	 *
	 * Called in a turn of the CPT, and not inside of a function that the
	 * user has called: so it may send, and may delete watches, including
	 * its own. A watch that is added meanwhile is called, too. */
	void (*disconnected)(struct ulnet_peer_watch *watch,
			     const struct ulnet_id *peer);
	/* On connections to this NID nothing has come back from @peer for
	 * longer than usual, because the peer is dead or this rail is cut; or
	 * the peer has said, by another NID, that this NID is down or no longer
	 * belongs to it. Messages on the way to @peer or from it may be lost or
	 * late. Called as disconnected(); may be NULL. */
	void (*silent)(struct ulnet_peer_watch *watch,
		       const struct ulnet_id *peer);
	/* The NIDs of this node have changed, or one of its NIs has gone down
	 * or come up. Discovery tells peers about it; the user can tell those
	 * that discovery does not reach with lnet_tell(). Called as
	 * disconnected(); may be NULL. */
	void (*changed)(struct ulnet_peer_watch *watch);
};

/* Borrows @watch until lnet_peer_watch_del(), or until the simulator crashes
 * the node. Owner of @cpt. */
ULNET_EXPORT void lnet_peer_watch_add(struct lnet *node, unsigned int cpt,
				      struct ulnet_peer_watch *watch);
ULNET_EXPORT void lnet_peer_watch_del(struct lnet *node, unsigned int cpt,
				      struct ulnet_peer_watch *watch);

/* Tells @peer, a process that only makes connections (its pid has
 * LNET_PID_USERFLAG), which NIDs this node has and which of them are up:
 * discovery sends a push to that very NID, over a connection that the process
 * has made. Whether the push arrives is not reported. Owner of @cpt. -EINVAL:
 * @peer listens, so that discovery tells it anyway; -EOPNOTSUPP: discovery is
 * off; -ENOMEM; -ESHUTDOWN. */
ULNET_EXPORT int lnet_tell(struct lnet *node, unsigned int cpt,
			   const struct ulnet_id *peer);

/* Reports that a message from the local NID @local to @peer, or the answer to
 * it, seems to be lost on that path: for example because the peer was heard on
 * another path. The effect is as if the LND had reported that nothing comes
 * back: the NIs at both ends of the path lose health, and messages take other
 * paths, if there are any, until the path answers recovery pings. Must be
 * called by the owner of @cpt, which must own the NID of @peer; otherwise
 * without effect. */
ULNET_EXPORT void lnet_peer_suspect(struct lnet *node, unsigned int cpt,
				    const struct ulnet_nid *local,
				    const struct ulnet_id *peer);
/* Back-pressure. @full: the layer above takes no more requests from @nid for
 * now, since it does not handle in time what has come. LNet then leaves further
 * requests from there unread, also those of other portals, until this is called
 * with false. Requests whose payload is being received already still come, and
 * so do all answers. Without effect on messages of this node to itself, and if
 * @cpt does not know @nid. Owner of @cpt, to which the requests come. */
ULNET_EXPORT void lnet_peer_throttle(struct lnet *node, unsigned int cpt,
				     const struct ulnet_nid *nid, bool full);
/* As lnet_peer_suspect(), for the path of the message that is being sent from
 * @md: the LND has the message, but its SEND event, which names the path, has
 * not come yet. Without effect if there is no such message, or if another CPT
 * sends it. Owner of @cpt, the CPT of @md. */
ULNET_EXPORT void lnet_send_suspect(struct lnet *node, unsigned int cpt,
				    struct ulnet_md_handle md);

/* To be called in the handler of a PUT event: the sender gets no ACK, as if the
 * message were lost, so that it may send the message again. For a layer that
 * finds that the payload has changed on its way. Owner of @cpt, the CPT of the
 * event. */
ULNET_EXPORT void lnet_withhold_ack(struct lnet *node, unsigned int cpt);

/* ---- small messages: lnet_put_now(3) ---- */

/* A PUT without an ACK, as LNetPut() sends it, but of memory for which there is
 * no memory descriptor. */
struct ulnet_put_now {
	const void *start;
	uint32_t length;
	struct ulnet_nid self; /* the local NI; LNET_NID_ANY: any */
	struct ulnet_id target;
	unsigned int portal;
	uint64_t match_bits;
	uint64_t hdr_data;
};

/* Sends @put if that needs no decision and nothing has to be waited for: it is
 * small, there is one path only to its target, and the LND takes it at once.
 * Returns true: *@local is the local NID that it goes from, to the NID of the
 * target; the memory is the caller's again. That is what an LNET_EVENT_SEND
 * with status 0 says; no event will come. Returns false: nothing has happened,
 * and LNetPut() is to be called, for which nothing has to be different. Always
 * false outside of a turn of @cpt. */
ULNET_EXPORT bool lnet_put_now(struct lnet *node, unsigned int cpt,
			       const struct ulnet_put_now *put,
			       struct ulnet_nid *local);

/* ---- layers: lnet_layer_add(3) ---- */

/* What a library keeps for a node, and must free when the node is closed or, in
 * the simulator, crashes: lnet_sim_crash(3). */
struct ulnet_layer {
	void *opaque[2];
	/* The node has crashed: the layer must not call its users' functions
	 * any more. Set before close() is called, and before anything of the
	 * node ends. */
	bool mute;
	/* The node is about to end: the layer must end what it has on the node,
	 * and call lnet_layer_del(). Called outside of all turns, first for the
	 * layer that was added last. May wait. When lnet_close() calls it,
	 * nothing of the node has ended yet; in a crash nothing can be sent any
	 * more, operations have ended, and the functions of threads (thread.h)
	 * have returned. */
	void (*close)(struct ulnet_layer *layer);
};

/* An option of a memory descriptor that a layer uses: if the node has crashed,
 * the handler of the descriptor is still called for the event that ends the
 * descriptor. And LNet does not send a message again over its only path: the
 * layer hears of the failure at once, and knows best when to try again. */
#define LNET_MD_OF_LAYER 0x8000u

/* Borrows @layer until lnet_layer_del(). Any thread, but for each node only one
 * at a time. */
ULNET_EXPORT void lnet_layer_add(struct lnet *node, struct ulnet_layer *layer);
/* Returns the layer that was added with the function @close, or NULL. Threads
 * as for lnet_layer_add(). */
ULNET_EXPORT struct ulnet_layer *lnet_layer_find(
	struct lnet *node, void (*close)(struct ulnet_layer *layer));
/* Removes @layer: before lnet_close(), or in close(). Threads as for
 * lnet_layer_add(). */
ULNET_EXPORT void lnet_layer_del(struct lnet *node, struct ulnet_layer *layer);

#ifdef __cplusplus
}
#endif

#endif
