/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/node/waits.h"

#include <sched.h>
#include <stdlib.h>

struct waits *waits_new(struct env *env, const struct spin *spin)
{
	struct waits *w = lines_calloc(sizeof(*w));

	if (!w)
		return NULL;
	atomic_init(&w->users, 1);
	w->spin = *spin;
	w->env = env;
	return w;
}

static void waits_put(struct waits *w)
{
	if (atomic_fetch_sub(&w->users, 1) == 1)
		free(w);
}

/* Returns false: another thread polls. */
static bool waits_take(struct waits *w)
{
	return !atomic_load_explicit(&w->taken, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&w->taken, true, memory_order_acquire);
}

static void waits_release(struct waits *w)
{
	atomic_store_explicit(&w->taken, false, memory_order_release);
}

void waits_end(struct waits *w)
{
	if (!w)
		return;
	while (!waits_take(w))
		sched_yield();
	w->ended = true;
	waits_release(w);
	waits_put(w);
}

/* Tells the processor that this is a loop which waits. */
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
	__asm__ volatile("yield");
#endif
}

static uint64_t waits_now(struct waits *w)
{
	return w->env->ops->clock(w->env);
}

static bool waits_over(struct waits *w, uint64_t until)
{
	uint64_t now = waits_now(w);

	spin_looked(&w->spin, now);
	return now >= until;
}

/* Polls until @done(@arg), or until @until (ns). Returns whether that is done.
 */
static bool waits_poll(struct waits *w, bool (*done)(void *arg), void *arg,
		       uint64_t until)
{
	bool is = done(arg);

	while (!is && !waits_over(w, until)) {
		relax();
		is = done(arg);
	}
	return is;
}

/* The first part of waits_wait(). *@begun: when a wait has begun that is to be
 * learned from by waits_learn(); 0: none. Returns whether the wait is over. */
static bool waits_begin(struct waits *w, bool (*done)(void *arg), void *arg,
			uint64_t *begun)
{
	uint64_t max = spin_max(&w->spin), now, window;
	bool hit = false;

	if (!max || !waits_take(w))
		return false;
	now = waits_now(w);
	window = spin_begin(&w->spin, w->env, now, max);
	hit = window && waits_poll(w, done, arg, now + window);
	if (hit) {
		spin_end(&w->spin, now, waits_now(w), true);
	} else if (window) {
		*begun = now;
		atomic_fetch_add(&w->users, 1);
	}
	waits_release(w);
	return hit;
}

/* The thread that has begun to wait at @begun, and has slept, is awake. If
 * another one polls now, that knows more of its own waits. */
static void waits_learn(struct waits *w, uint64_t begun)
{
	if (waits_take(w)) {
		if (!w->ended)
			spin_end(&w->spin, begun, waits_now(w), false);
		waits_release(w);
	}
	waits_put(w);
}

void waits_wait(struct waits *w, bool (*done)(void *arg),
		void (*sleep)(void *arg), void *arg)
{
	uint64_t begun = 0;
	int cancelable;
	bool hit;

	/* Nobody is canceled who has taken it. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
	hit = w && waits_begin(w, done, arg, &begun);
	pthread_setcancelstate(cancelable, NULL);
	if (hit)
		return;
	sleep(arg);
	if (!begun)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
	waits_learn(w, begun);
	pthread_setcancelstate(cancelable, NULL);
}
