/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A loop: the clock, timers, mailbox and deferred work of one thread, on an env
 * (env.h). A function is for the loop's owner, unless its comment says "any
 * thread". The owner is the thread that runs the loop or, while none does, the
 * one that made the loop or last took it over.
 *
 * One turn runs, in this order: due timers; the mailbox; ready file descriptors
 * (in libev's order); deferred work, including what that defers, for a bounded
 * number of rounds. Work of loop_defer_last() runs when no other work is
 * deferred.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/env.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/spin.h"
#include "base/stat.h"
#include "base/timer.h"

struct work;
typedef void (*work_fn)(struct work *w);

/* One thing to do on a loop, embedded in what it is about. Must not be posted
 * or deferred again before it has run. */
struct work {
	struct work *next;
	work_fn fn;
};

struct work_queue {
	struct work *first;
	struct work **tail;
};

/*
 * The queue between loops: many threads put, the owner takes everything at
 * once. Putting allocates nothing and cannot fail. The length is bounded by
 * what can be in flight: a thread that runs no loop waits for the answer to
 * what it has posted before it posts again.
 */
struct mailbox {
	_Atomic(struct work *) head; /* newest first */
};

void mailbox_init(struct mailbox *m);
/* Puts @w. Returns whether the mailbox was empty: only then must the owner be
 * woken, so that a burst costs one wake-up. Any thread. */
bool mailbox_put(struct mailbox *m, struct work *w);
/* Takes everything, oldest first; NULL: the mailbox was empty. Owner. */
struct work *mailbox_take(struct mailbox *m);
/* Is the mailbox empty? Owner. */
static inline bool mailbox_empty(struct mailbox *m)
{
	return atomic_load_explicit(&m->head, memory_order_acquire) == NULL;
}

struct loop {
	struct env *env;
	uint64_t now; /* ns: the time of this turn */
	struct timer_wheel wheel;
	/* What other threads write with each post has a cache line of its own
	 * (tests/cache_lines.sh). */
	_Alignas(CACHE_LINE) struct mailbox mailbox;
	_Atomic unsigned int posting; /* number of threads in loop_post() */
	_Alignas(CACHE_LINE) struct work_queue deferred;
	struct work_queue last;
	struct guard guard;
	pthread_t sampled; /* the thread that guard.starved is about */
	bool in_turn; /* between loop_turn_begin() and loop_turn_end() */
	bool orphan;  /* loop_orphan() was called */
	uint64_t turns;
	struct spin spin;
	pthread_t owner; /* read by any thread, atomically */
	/* loop_stop() was called; set by any thread */
	_Atomic bool stopping;
	/* name of the loop's node, for the log; "": none yet, or the loop is of
	 * several nodes */
	char name[LOG_NAME];
};

/* Private to loop.c: use loop_current(). Initial-exec, since the default model
 * of a shared library would cost a call for each use. */
extern _Thread_local struct loop *loop_here
	__attribute__((tls_model("initial-exec")));
/* loop_is_owner() for a thread that is in no turn. */
bool loop_is_owner_outside(const struct loop *l);
/* Tells the env when @l needs its next turn. Not to be called during a turn,
 * whose end does this anyway. */
void loop_set_alarm(struct loop *l);

/* Makes a loop on @env, which the loop owns; on error @env is freed. The
 * calling thread is the owner. Returns 0 or -ENOMEM. */
int loop_new(struct env *env, struct loop **loop_p) must_check;
/* Frees a loop, and its env. No timer may be armed and no work queued. Waits
 * for threads that are still inside loop_post(). */
void loop_free(struct loop *l);

/* Makes the calling thread the owner. For a thread that is to run a loop which
 * another thread has made. Nobody may be using the loop. */
void loop_take_over(struct loop *l);
/* The caller, who owns the loop and is in no turn, does not any more, and
 * nobody does. */
void loop_give_up(struct loop *l);

/* This process is a child of fork(), and the loop is its parent's: nobody owns
 * it any more, it makes no turns, and what is posted to it is forgotten. If the
 * calling thread is in a turn of @l, the process ends with a message when the
 * function that called fork() there returns: what is left of the turn is for
 * the parent to do. */
void loop_orphan(struct loop *l);

/* May the caller touch what belongs to @l? Inside a turn, only if that is a
 * turn of @l (which also keeps apart several simulated loops in one thread).
 * Outside of any turn, only if the caller is @l's owner. */
static inline bool loop_is_owner(const struct loop *l)
{
	return loop_here ? loop_here == l : loop_is_owner_outside(l);
}
#define loop_assert_owner(l) BUG_ON(!loop_is_owner(l))

/* Returns the loop in whose turn the calling thread is, or NULL. */
static inline struct loop *loop_current(void)
{
	return loop_here;
}

/* Returns the time of this turn, ns, which takes no system call. Outside of a
 * turn: the time of the clock. */
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

/* Call timer_wheel_arm() and timer_wheel_cancel(). @at: a time as loop_now()
 * returns it. */
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

/* Runs @w->fn on @l's thread, soon. Work that one thread posts keeps its order.
 * @w is lent to the loop until it runs. Any thread. */
void loop_post(struct loop *l, struct work *w);

/* Runs @w->fn at the end of this turn or, when called outside of a turn, in the
 * next one; never inside the call. */
void loop_defer(struct loop *l, struct work *w);
/* As loop_defer(), for a caller that has made sure that it is the owner. */
void loop_defer_owned(struct loop *l, struct work *w);
/* As loop_defer(), but after all other deferred work: for what is better done
 * once, with the results of the whole turn. */
void loop_defer_last(struct loop *l, struct work *w);
static inline bool loop_has_work(const struct loop *l)
{
	return l->deferred.first || l->last.first;
}

/* The rest of loop_call(), for callers that are in no turn of @l. */
int loop_call_outside(struct loop *l, int (*fn)(void *arg), void *arg);

/* Any thread. Calls @fn(@arg) on @l's thread and returns its result. On the
 * owner: at once. On a thread that runs no loop: blocks until somebody runs @l.
 * In the turn of another loop: -EXDEV, since two loops that waited for each
 * other would block for ever. After loop_orphan(): -ESHUTDOWN. */
static inline int loop_call(struct loop *l, int (*fn)(void *arg), void *arg)
{
	return likely(loop_here == l) ? fn(arg) : loop_call_outside(l, fn, arg);
}

/* To be asked in a turn, after a call that might have blocked: has this turn
 * taken so long that the guard must be told by loop_guard_end() what was
 * called? */
static inline bool loop_guard_is_late(const struct loop *l)
{
	return guard_is_late(&l->guard) && l->in_turn;
}
void loop_guard_end(struct loop *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void loop_guard_vend(struct loop *l, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));
/* Somebody else, such as an application's callbacks, has used the thread during
 * this turn: no call of ours is blamed for the time until now. */
static inline void loop_guard_others(struct loop *l)
{
	if (unlikely(loop_guard_is_late(l)))
		(void)guard_look(&l->guard, l->env->ops->clock(l->env));
}

/* Runs one turn. With @block, waits until there is something to do: polls for a
 * while if loop_poll_before_sleep() says so, then sleeps. */
void loop_run_once(struct loop *l, bool block);
/* Lets the loop poll before it sleeps, as @spin says, of which the caller has
 * set the fields that are for that. What these point to stays the caller's, and
 * must outlive the loop. */
void loop_poll_before_sleep(struct loop *l, const struct spin *spin);
/* For callers that wait by other means and then call loop_run_once(). loop_fd()
 * returns the descriptor to wait for (env_ops.fd). loop_next() returns when the
 * next turn is due even if that descriptor is not ready: a time as loop_now(),
 * ns; 0: at once; TIME_NEVER. To be called before each wait. */
static inline int loop_fd(struct loop *l)
{
	return l->env->ops->fd(l->env);
}
uint64_t loop_next(struct loop *l);
/* Takes the loop over and runs it until loop_stop(). */
void loop_run(struct loop *l);
/* Makes loop_run() return after its present turn; one that is called later
 * returns after one turn. Any thread. */
void loop_stop(struct loop *l);

/* ---- for env implementations ---- */

/* The two halves of a turn, between which descriptors are served. Each call of
 * a descriptor's function is enclosed in loop_enter() and loop_leave(). */
/* reads the clock; runs timers and the mailbox */
void loop_turn_begin(struct loop *l);
void loop_turn_end(struct loop *l); /* runs deferred work; sets the alarm */
/* Makes @l the current loop of this thread; returns the previous one. */
struct loop *loop_enter(struct loop *l);
void loop_leave(struct loop *before);

#endif
