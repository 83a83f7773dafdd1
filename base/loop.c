/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/loop.h"

#include <errno.h>
#include <sched.h>

#include "base/cond.h"
#include "base/misuse.h"

/* Most rounds of deferred work in a turn. */
#define ROUNDS 64

/* The model is said here, too: a definition does not take it over. */
_Thread_local struct loop *loop_here __attribute__((tls_model("initial-exec")));

/* ---- queues ---- */

void mailbox_init(struct mailbox *m)
{
	atomic_init(&m->head, NULL);
}

bool mailbox_put(struct mailbox *m, struct work *w)
{
	struct work *head =
		atomic_load_explicit(&m->head, memory_order_relaxed);

	/*
	 * Release publishes @w and what it carries to the owner. The old head
	 * is stored, but not dereferenced, so relaxed loads are enough. There
	 * is no ABA problem, because the owner only ever takes everything.
	 */
	do {
		w->next = head;
	} while (!atomic_compare_exchange_weak_explicit(&m->head, &head, w,
							memory_order_release,
							memory_order_relaxed));
	return head == NULL;
}

struct work *mailbox_take(struct mailbox *m)
{
	struct work *oldest = NULL;
	struct work *w;

	if (mailbox_empty(m))
		return NULL;
	w = atomic_exchange_explicit(&m->head, NULL, memory_order_acquire);
	while (w) {
		struct work *next = w->next;

		w->next = oldest;
		oldest = w;
		w = next;
	}
	return oldest;
}

static void queue_init(struct work_queue *q)
{
	q->first = NULL;
	q->tail = &q->first;
}

static void queue_put(struct work_queue *q, struct work *w)
{
	w->next = NULL;
	*q->tail = w;
	q->tail = &w->next;
}

static struct work *queue_take(struct work_queue *q)
{
	struct work *w = q->first;

	queue_init(q);
	return w;
}

/* ---- life ---- */

int loop_new(struct env *env, struct loop **loop_p)
{
	struct loop *l = lines_calloc(sizeof(*l));

	if (!l) {
		env->ops->free(env);
		return -ENOMEM;
	}
	l->env = env;
	l->now = env->ops->clock(env);
	timer_wheel_init(&l->wheel, l->now);
	mailbox_init(&l->mailbox);
	queue_init(&l->deferred);
	queue_init(&l->last);
	atomic_init(&l->stopping, false);
	atomic_init(&l->posting, 0);
	loop_take_over(l);
	/* The tick counter has nothing to do with virtual time. */
	if (env->ops->is_virtual)
		l->guard.rate.due = TIME_NEVER;
	env->loop = l;
	*loop_p = l;
	return 0;
}

void loop_free(struct loop *l)
{
	BUG_ON(l->in_turn);
	BUG_ON(l->wheel.armed);
	BUG_ON(loop_has_work(l) || !mailbox_empty(&l->mailbox));
	/* This waits only for threads that are about to return from
	 * loop_post(): their work has run. */
	while (atomic_load_explicit(&l->posting, memory_order_acquire))
		sched_yield();
	l->env->ops->free(l->env);
	free(l);
}

void loop_take_over(struct loop *l)
{
	/* Relaxed order is enough: the caller knows that nobody uses the loop,
	 * and whatever told the caller so has ordered memory. */
	__atomic_store_n(&l->owner, pthread_self(), __ATOMIC_RELAXED);
}

void loop_give_up(struct loop *l)
{
	static const pthread_t nobody;

	__atomic_store_n(&l->owner, nobody, __ATOMIC_RELAXED);
}

void loop_orphan(struct loop *l)
{
	l->orphan = true;
	loop_give_up(l);
	l->in_turn = loop_here == l;
	/* The next call that ends in the turn is reported to the guard. */
	l->guard.late = 0;
	if (loop_here == l)
		loop_here = NULL;
}

bool loop_is_owner_outside(const struct loop *l)
{
	return pthread_equal(__atomic_load_n(&l->owner, __ATOMIC_RELAXED),
			     pthread_self());
}

struct loop *loop_enter(struct loop *l)
{
	struct loop *before = loop_here;

	loop_here = l;
	return before;
}

void loop_leave(struct loop *before)
{
	loop_here = before;
}

uint64_t loop_next(struct loop *l)
{
	loop_assert_owner(l);
	if (loop_has_work(l) || !mailbox_empty(&l->mailbox))
		return 0;
	return timer_wheel_next(&l->wheel);
}

void loop_set_alarm(struct loop *l)
{
	l->env->ops->alarm(l->env, loop_next(l));
}

void loop_post(struct loop *l, struct work *w)
{
	/* No wake-up is needed: the end of this turn looks into the mailbox.
	 * (in_turn is the owner's, so it is read only by the owner.) */
	if (loop_here == l && l->in_turn) {
		mailbox_put(&l->mailbox, w);
		return;
	}
	if (unlikely(l->orphan))
		return;
	/* As soon as @w is in the mailbox it may run, and the loop may then be
	 * freed; but loop_free() waits until "posting" is 0 again. */
	atomic_fetch_add_explicit(&l->posting, 1, memory_order_relaxed);
	if (mailbox_put(&l->mailbox, w))
		l->env->ops->wake(l->env);
	atomic_fetch_sub_explicit(&l->posting, 1, memory_order_release);
}

static void defer(struct loop *l, struct work_queue *q, struct work *w)
{
	bool first = !loop_has_work(l);

	queue_put(q, w);
	/* If other work was deferred before, the alarm is already set to now.
	 */
	if (unlikely(!l->in_turn) && first)
		loop_set_alarm(l);
}

void loop_defer_owned(struct loop *l, struct work *w)
{
	defer(l, &l->deferred, w);
}

void loop_defer(struct loop *l, struct work *w)
{
	loop_assert_owner(l);
	defer(l, &l->deferred, w);
}

void loop_defer_last(struct loop *l, struct work *w)
{
	loop_assert_owner(l);
	defer(l, &l->last, w);
}

struct call {
	struct work work;
	int (*fn)(void *arg);
	void *arg;
	int rc;
	bool done;
	pthread_mutex_t lock;
	struct cond cond;
};

static void call_run(struct work *w)
{
	struct call *c = container_of(w, struct call, work);

	c->rc = c->fn(c->arg);
	/* Signalled with the lock held: @c is on the stack of the thread that
	 * waits, which cannot go on before the lock is released. */
	pthread_mutex_lock(&c->lock);
	c->done = true;
	cond_signal(&c->cond);
	pthread_mutex_unlock(&c->lock);
}

static int call_and_wait(struct loop *l, int (*fn)(void *arg), void *arg)
{
	struct call c = {
		.work.fn = call_run,
		.fn = fn,
		.arg = arg,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	int rc = cond_init(&c.cond);

	BUG_ON(!l);
	if (rc)
		return rc;
	loop_post(l, &c.work);
	pthread_mutex_lock(&c.lock);
	while (!c.done)
		cond_wait(&c.cond, &c.lock, TIME_NEVER);
	pthread_mutex_unlock(&c.lock);
	cond_destroy(&c.cond);
	pthread_mutex_destroy(&c.lock);
	return c.rc;
}

int loop_call_outside(struct loop *l, int (*fn)(void *arg), void *arg)
{
	struct loop *before;
	int rc;

	if (unlikely(l->orphan))
		return -ESHUTDOWN;
	if (!loop_is_owner(l))
		return loop_here ? -EXDEV : call_and_wait(l, fn, arg);
	/* Otherwise loop_current() would be NULL in @fn. */
	before = loop_enter(l);
	rc = fn(arg);
	loop_leave(before);
	return rc;
}

void loop_poll_before_sleep(struct loop *l, const struct spin *spin)
{
	l->spin = *spin;
}

static bool poll_is_over(struct loop *l, uint64_t until)
{
	uint64_t now = l->env->ops->clock(l->env);

	spin_looked(&l->spin, now);
	return now >= until;
}

/* Polls until a turn has found something to do, or until @until (ns). Returns
 * whether there was a turn. */
static bool poll_until(struct loop *l, uint64_t until)
{
	uint64_t turns = l->turns;

	do
		l->env->ops->run_once(l->env, ENV_PEEK);
	while (l->turns == turns && !poll_is_over(l, until));
	return l->turns != turns;
}

static uint64_t loop_starved(struct loop *l)
{
	const struct env_ops *ops = l->env->ops;

	return ops->starved ? ops->starved(l->env) : 0;
}

static out_of_line void poll_then_sleep(struct loop *l, uint64_t max)
{
	uint64_t begun = l->env->ops->clock(l->env);
	uint64_t window = spin_begin(&l->spin, l->env, begun, max);
	bool hit = window && poll_until(l, begun + window);

	if (!hit)
		l->env->ops->run_once(l->env, ENV_WAIT);
	if (window)
		spin_end(&l->spin, begun, l->now, hit);
}

void loop_run_once(struct loop *l, bool block)
{
	uint64_t max = block ? spin_max(&l->spin) : 0;

	loop_assert_owner(l);
	BUG_ON(loop_here);
	if (unlikely(max))
		poll_then_sleep(l, max);
	else
		l->env->ops->run_once(l->env, block ? ENV_WAIT : ENV_TRY);
}

void loop_run(struct loop *l)
{
	loop_take_over(l);
	do {
		loop_run_once(l, !atomic_load(&l->stopping));
	} while (!atomic_load(&l->stopping));
}

void loop_stop(struct loop *l)
{
	atomic_store(&l->stopping, true);
	l->env->ops->wake(l->env);
}

static void run_all(struct work *w)
{
	while (w) {
		struct work *next = w->next; /* @w may be gone after its run */

		w->fn(w);
		w = next;
	}
}

/* Called in the child of a fork(), after the function that called fork() has
 * returned there. */
static void orphan_abort(const char *fmt, va_list args)
{
	char name[256];

	vsnprintf(name, sizeof(name), fmt, args);
	misuse("%s called fork(), and returned in the child, which has to call "
	       "exec() or _exit() there: fork(2) gave it no other thread of "
	       "the node",
	       name);
}

/* loop_starved() for the guard: nothing, since it last asked, if that was on
 * another thread. */
static uint64_t guard_starved(struct loop *l)
{
	if (!pthread_equal(l->sampled, pthread_self()))
		l->guard.sampled = 0;
	l->sampled = pthread_self();
	return loop_starved(l);
}

void loop_guard_vend(struct loop *l, const char *fmt, va_list args)
{
	uint64_t ns;

	if (unlikely(l->orphan))
		orphan_abort(fmt, args);
	if (!loop_guard_is_late(l))
		return;
	/* The clock counts as read now: so if this call is inside of another
	 * one, the other one is not blamed for its time. */
	ns = guard_look(&l->guard, l->env->ops->clock(l->env));
	if (ns > GUARD_LONG)
		guard_call(&l->guard, ns, guard_starved(l), fmt, args);
}

void loop_guard_end(struct loop *l, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	loop_guard_vend(l, fmt, args);
	va_end(args);
}

static out_of_line void learn_rate(struct loop *l)
{
	uint64_t ticks = tick_now(), now = l->env->ops->clock(l->env);
	uint64_t took = tick_now() - ticks;

	if (took < TICK_INTERRUPTED || !TICK_FINE)
		tick_rate_learn(&l->guard.rate, ticks + took / 2, now);
}

void loop_turn_begin(struct loop *l)
{
	struct loop *before = loop_enter(l);

	l->in_turn = true;
	l->turns++;
	l->now = l->env->ops->clock(l->env);
	guard_turn_begin(&l->guard, l->now);
	if (unlikely(l->now >= l->guard.rate.due))
		learn_rate(l);
	if (unlikely(guard_sample_is_due(&l->guard)))
		guard_sample(&l->guard, guard_starved(l));
	timer_wheel_advance(&l->wheel, l->now);
	run_all(mailbox_take(&l->mailbox));
	loop_leave(before);
}

static out_of_line void turn_late(struct loop *l)
{
	uint64_t now = l->env->ops->clock(l->env);

	if (guard_turn_is_long(&l->guard, now))
		guard_turn_long(&l->guard, now, guard_starved(l));
}

void loop_turn_end(struct loop *l)
{
	struct loop *before = loop_enter(l);

	loop_guard_others(l);
	/* The number of rounds is bounded, so that work which always defers
	 * more does not delay timers and descriptors. What is left runs in the
	 * next turn, at once. */
	for (unsigned int i = 0; i < ROUNDS && loop_has_work(l); i++)
		run_all(queue_take(l->deferred.first ? &l->deferred
						     : &l->last));
	run_all(queue_take(&l->last));
	if (unlikely(loop_guard_is_late(l)))
		turn_late(l);
	l->in_turn = false;
	loop_set_alarm(l);
	loop_leave(before);
}
