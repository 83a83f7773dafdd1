/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/lockstep.h"

#include <errno.h>

static const struct fsm_state lockstep_states[LOCKSTEP_STATES] = {
	[LOCKSTEP_READY] = { "ready", FSM_TO(LOCKSTEP_RUNNING) },
	[LOCKSTEP_RUNNING] = { "running", FSM_TO(LOCKSTEP_WAITING) |
						  FSM_TO(LOCKSTEP_ENDED) },
	[LOCKSTEP_WAITING] = { "waiting", FSM_TO(LOCKSTEP_READY) },
	[LOCKSTEP_ENDED] = { "ended", 0 },
};

static _Thread_local struct lockstep_thread *thread_here
	__attribute__((tls_model("initial-exec")));

/* ---- the turn ---- */

static void turn_await(sem_t *turn)
{
	int rc;

	do
		rc = sem_wait(turn);
	while (rc && errno == EINTR);
	BUG_ON(rc);
}

static void turn_give(sem_t *turn)
{
	BUG_ON(sem_post(turn));
}

static void thread_ready(struct lockstep_thread *t, int status)
{
	t->status = status;
	timer_wheel_cancel(&t->of->timers, &t->timer);
	list_del(&t->link);
	list_add_tail(&t->of->ready, &t->link);
	fsm_move(&t->fsm, lockstep_states, LOCKSTEP_READY);
}

static void thread_late(struct timer *timer)
{
	thread_ready(container_of(timer, struct lockstep_thread, timer),
		     -ETIMEDOUT);
}

static uint64_t held_until(const struct lockstep_thread *t)
{
	return t->held ? *t->held : 0;
}

bool lockstep_run(struct lockstep *ls, uint64_t now)
{
	struct lockstep_thread *t, *first = NULL;

	BUG_ON(thread_here);
	timer_wheel_advance(&ls->timers, now);
	list_for_each_entry (t, &ls->ready, link) {
		if (held_until(t) > now)
			continue;
		first = t;
		break;
	}
	t = first;
	if (!t)
		return false;
	list_del(&t->link);
	fsm_move(&t->fsm, lockstep_states, LOCKSTEP_RUNNING);
	turn_give(&t->turn);
	turn_await(&ls->turn);
	return true;
}

uint64_t lockstep_next(const struct lockstep *ls)
{
	uint64_t next = timer_wheel_next(&ls->timers);
	const struct lockstep_thread *t;

	list_for_each_entry (t, &ls->ready, link)
		next = MIN(next, held_until(t));
	return next;
}

/* ---- waiting ---- */

struct lockstep_thread *lockstep_current(void)
{
	return thread_here;
}

int lockstep_wait(struct list *queue, uint64_t until, bool endable)
{
	struct lockstep_thread *t = thread_here;

	if (endable && t->ending)
		return -ECANCELED;
	t->endable = endable;
	list_add_tail(queue, &t->link);
	if (until != TIME_NEVER)
		timer_wheel_arm(&t->of->timers, &t->timer, until);
	fsm_move(&t->fsm, lockstep_states, LOCKSTEP_WAITING);
	turn_give(&t->of->turn);
	turn_await(&t->turn);
	return t->status;
}

void lockstep_wake(struct list *queue)
{
	if (!list_empty(queue))
		thread_ready(list_first(queue, struct lockstep_thread, link),
			     0);
}

void lockstep_end(struct lockstep_thread *t)
{
	t->ending = true;
	if (t->fsm.state == LOCKSTEP_WAITING && t->endable)
		thread_ready(t, -ECANCELED);
}

/* ---- life ---- */

static void *lockstep_thread_main(void *arg)
{
	struct lockstep_thread *t = arg;
	struct lockstep *ls = t->of;

	thread_here = t;
	turn_await(&t->turn);
	t->fn(t->arg);
	fsm_move(&t->fsm, lockstep_states, LOCKSTEP_ENDED);
	lockstep_wake(&t->joiner);
	turn_give(&ls->turn);
	return NULL;
}

int lockstep_start(struct lockstep *ls, struct lockstep_thread *t,
		   const uint64_t *held, void (*fn)(void *arg), void *arg)
{
	int rc;

	*t = (struct lockstep_thread){
		.of = ls, .held = held, .fn = fn, .arg = arg
	};
	timer_init(&t->timer, thread_late);
	list_init(&t->joiner);
	sem_init(&t->turn, 0, 0);
	rc = pthread_create(&t->thread, NULL, lockstep_thread_main, t);
	if (rc) {
		sem_destroy(&t->turn);
		return -rc;
	}
	list_add_tail(&ls->ready, &t->link);
	ls->threads++;
	return 0;
}

void lockstep_join(struct lockstep_thread *t)
{
	while (thread_here && !lockstep_ended(t))
		(void)lockstep_wait(&t->joiner, TIME_NEVER, false);
	BUG_ON(!lockstep_ended(t));
	pthread_join(t->thread, NULL);
	sem_destroy(&t->turn);
	t->of->threads--;
}

void lockstep_init(struct lockstep *ls, uint64_t now)
{
	*ls = (struct lockstep){ .threads = 0 };
	list_init(&ls->ready);
	timer_wheel_init(&ls->timers, now);
	sem_init(&ls->turn, 0, 0);
}

void lockstep_fini(struct lockstep *ls)
{
	BUG_ON(ls->threads);
	sem_destroy(&ls->turn);
}
