/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A loop: one thread's clock, timers, mailbox and work, on an env. Everything
 * that is not said to be for any thread is for the loop's owner: the thread
 * that runs it (or, while nobody runs it, the one that made it or last took it
 * over).
 *
 * One turn: due timers; the mailbox; file descriptors (libev's order); at its
 * end the deferred work, and what that defers, for a number of rounds; of that
 * the work that is to be the last, when there is no other.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <pthread.h>
#include "base/env.h"
#include "base/guard.h"
#include "base/mailbox.h"
#include "base/spin.h"
#include "base/timer.h"

struct work_queue {
	struct work *first;
	struct work **tail;
};

struct loop {
	struct env *env;
	uint64_t now; /* ns; as of this turn's start */
	struct timer_wheel wheel;
	struct mailbox mailbox;
	struct work_queue deferred, last;
	struct guard guard;
	bool in_turn; /* between loop_turn_begin() and _end() */
	uint64_t turns;
	struct spin spin;
	pthread_t owner;	      /* any thread, atomic */
	_Atomic bool stopping;	      /* any thread */
	_Atomic unsigned int posting; /* threads in loop_post() */
};

/* loop.c's: use loop_current(). Initial-exec: a shared library's default model
 * would cost a call for each use. */
extern _Thread_local struct loop *loop_here
	__attribute__((tls_model("initial-exec")));
/* Outside of all turns: does @l belong to this thread? */
bool loop_is_owner_outside(const struct loop *l);
/* @l has something to do, or not any more, and is not in a turn. */
void loop_set_alarm(struct loop *l);

/* Takes @env, also on error. The calling thread is the owner. 0 or -ENOMEM. */
int loop_new(struct env *env, struct loop **loop_p) must_check;
/* No timer armed, no work queued. Waits for threads that are in loop_post()
 * with work that is done. Frees the env, too. */
void loop_free(struct loop *l);

/* The calling thread becomes the owner: a thread that is to run a loop made by
 * another one. Nobody may be using the loop. */
void loop_take_over(struct loop *l);

/* May the caller touch what belongs to @l? Inside a turn of a loop: is it this
 * one (that is how several virtual loops in one thread are kept apart, too).
 * Outside of any turn: is the caller @l's owner? */
static inline bool loop_is_owner(const struct loop *l)
{
	return loop_here ? loop_here == l : loop_is_owner_outside(l);
}
#define loop_assert_owner(l) BUG_ON(!loop_is_owner(l))

/* The loop whose turn runs in this thread, or NULL. */
static inline struct loop *loop_current(void)
{
	return loop_here;
}

/* Time of this turn, ns: no system call. Outside of a turn: the clock's. */
static inline uint64_t loop_now(const struct loop *l)
{
	return likely(l->in_turn) ? l->now : l->env->ops->clock(l->env);
}

static inline uint64_t loop_random(struct loop *l)
{
	uint64_t r;

	l->env->ops->random(l->env, &r, sizeof(r));
	return r;
}

/* Timers: as timer.h says. @at as loop_now(). */
static inline void loop_timer_arm(struct loop *l, struct timer *t, uint64_t at)
{
	timer_wheel_arm(&l->wheel, t, at);
	if (unlikely(!l->in_turn))
		loop_set_alarm(l);
}

static inline void loop_timer_cancel(struct loop *l, struct timer *t)
{
	timer_wheel_cancel(&l->wheel, t);
	if (unlikely(!l->in_turn))
		loop_set_alarm(l);
}

static inline int loop_watch(struct loop *l, struct env_io *io)
{
	return l->env->ops->watch(l->env, io);
}

static inline void loop_unwatch(struct loop *l, struct env_io *io)
{
	l->env->ops->unwatch(l->env, io);
}

/* Any thread. Runs @w->fn on @l's thread, soon; order is kept for each sender.
 * @w is the loop's until it runs. */
void loop_post(struct loop *l, struct work *w);

/* Owner. Runs @w->fn at the end of this turn (or in the next one, when called
 * outside of a turn), never inside the call. */
void loop_defer(struct loop *l, struct work *w);
/* The same, after all that is deferred: for what is better done once, with the
 * results of the whole turn. */
void loop_defer_last(struct loop *l, struct work *w);
/* Owner. Is there anything deferred? */
static inline bool loop_has_work(const struct loop *l)
{
	return l->deferred.first || l->last.first;
}

/* loop_call(), when it is not the turn of @l that runs here. */
int loop_call_outside(struct loop *l, int (*fn)(void *arg), void *arg);

/* Calls @fn(@arg) on @l's thread and returns what it returned. On the owner: at
 * once. On a thread that is no loop's: waits for it, for as long as nobody runs
 * @l. In the turn of another loop: -EXDEV (two loops that wait for each other
 * would stop). */
static inline int loop_call(struct loop *l, int (*fn)(void *arg), void *arg)
{
	return likely(loop_here == l) ? fn(arg) : loop_call_outside(l, fn, arg);
}

/* Owner, in a turn. After a call of something that should not block and may: is
 * the turn not young any more? Then loop_guard_end() has to know what was
 * called. */
static inline bool loop_guard_is_late(const struct loop *l)
{
	return guard_is_late(&l->guard) && l->in_turn;
}
void loop_guard_end(struct loop *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void loop_guard_vend(struct loop *l, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));
/* Owner. In the midst of a turn others have had the thread: what they took is
 * no call's. */
static inline void loop_guard_others(struct loop *l)
{
	if (unlikely(loop_guard_is_late(l)))
		guard_look(&l->guard, l->env->ops->clock(l->env));
}

/* Owner. One turn; waits for something to do if @block: perhaps polls for a
 * while (loop_poll_before_sleep()), then sleeps. */
void loop_run_once(struct loop *l, bool block);
/* Owner. Before it sleeps, the loop polls for up to *@max ns (base/spin.h),
 * which any thread may change, and counts how that ended. All three stay the
 * caller's, for as long as there is the loop. */
void loop_poll_before_sleep(struct loop *l, const _Atomic uint64_t *max,
			    stat_t *hits, stat_t *misses);
/* Owner. For those who wait by other means than loop_run_once(), and then call
 * it: env_ops.fd(), and the time (ns, as loop_now()) of the next turn even if
 * nothing shows on that descriptor: 0 is at once, TIME_NEVER never. To be asked
 * before each wait. */
static inline int loop_fd(struct loop *l)
{
	return l->env->ops->fd(l->env);
}
uint64_t loop_next(struct loop *l);
/* Takes the loop over and runs it until loop_stop(). */
void loop_run(struct loop *l);
/* Any thread: loop_run() returns after its present turn. Sticks: a loop_run()
 * that comes later returns after one turn. */
void loop_stop(struct loop *l);

/* ---- for env implementations ---- */

/* One turn, as above. Between the two, and outside of turns, others may use the
 * thread: what the env itself calls for @l (descriptors) goes between
 * loop_enter() and loop_leave(). */
void loop_turn_begin(struct loop *l); /* clock, timers, mailbox */
void loop_turn_end(struct loop *l);   /* deferred work; sets the alarm */
/* Makes @l the current loop of this thread; returns the one that was. */
struct loop *loop_enter(struct loop *l);
void loop_leave(struct loop *before);

#endif
