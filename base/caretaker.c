/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/caretaker.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Adds the loop's descriptor to what the caretaker sleeps on, or says whether
 * the caretaker is to be woken by it. Returns 0 or -errno. */
static int sleep_set(struct caretaker *c, int op, bool look)
{
	struct epoll_event e = { .events = look ? EPOLLIN : 0 };

	return epoll_ctl(c->sleeps_on, op, loop_fd(c->loop), &e) ? -errno : 0;
}

static int sleep_init(struct caretaker *c)
{
	int rc = loop_fd(c->loop);

	if (rc < 0)
		return rc;
	c->sleeps_on = epoll_create1(EPOLL_CLOEXEC);
	if (c->sleeps_on < 0)
		return -errno;
	rc = sleep_set(c, EPOLL_CTL_ADD, true);
	if (rc)
		close(c->sleeps_on);
	return rc;
}

int caretaker_new(struct loop *loop, struct caretaker **c_p)
{
	struct caretaker *c = lines_calloc(sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->loop = loop;
	c->until = TIME_NEVER;
	atomic_init(&c->stopping, false);
	rc = sleep_init(c);
	if (rc) {
		free(c);
		return rc;
	}
	pthread_mutex_init(&c->lock, NULL);
	*c_p = c;
	return 0;
}

void caretaker_free(struct caretaker *c)
{
	if (!c)
		return;
	close(c->sleeps_on);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- the caretaker's thread ---- */

void caretaker_begin(struct caretaker *c)
{
	pthread_mutex_lock(&c->lock);
	loop_take_over(c->loop);
}

/* Returns for how many ms to sleep, rounded up; -1: no limit. */
static int sleep_ms(const struct caretaker *c)
{
	uint64_t now, ms;

	if (c->until == TIME_NEVER)
		return -1;
	now = c->loop->env->ops->clock(c->loop->env);
	ms = (MAX(c->until, now) - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	return (int)MIN(ms, (uint64_t)INT_MAX);
}

/* Sleeps without the lock. What comes between is not missed: the descriptor
 * stays readable until a turn has seen to it. */
static void caretaker_sleep(struct caretaker *c)
{
	struct epoll_event e;
	int ms;

	c->until = loop_next(c->loop);
	ms = sleep_ms(c);
	if (!ms)
		return;
	loop_give_up(c->loop);
	pthread_mutex_unlock(&c->lock);
	/* Whatever ends this, a turn does no harm. */
	(void)epoll_wait(c->sleeps_on, &e, 1, ms);
	caretaker_begin(c);
}

void caretaker_run(struct caretaker *c)
{
	/* Asked after each turn: one that began before caretaker_stop() may
	 * have hushed its wake-up. */
	for (loop_run_once(c->loop, false); !atomic_load(&c->stopping);
	     loop_run_once(c->loop, false))
		caretaker_sleep(c);
	c->ended = true;
	loop_give_up(c->loop);
	pthread_mutex_unlock(&c->lock);
}

void caretaker_stop(struct caretaker *c)
{
	atomic_store(&c->stopping, true);
	c->loop->env->ops->wake(c->loop->env);
}

/* ---- borrowers ---- */

bool caretaker_borrow(struct caretaker *c)
{
	if (pthread_mutex_trylock(&c->lock))
		return false;
	if (unlikely(c->ended)) {
		pthread_mutex_unlock(&c->lock);
		return false;
	}
	loop_take_over(c->loop);
	BUG_ON(sleep_set(c, EPOLL_CTL_MOD, false));
	return true;
}

/* caretaker_stop() may have been called before the caretaker looked at the
 * descriptor again, which the borrower's turns have then hushed. */
void caretaker_return(struct caretaker *c)
{
	struct loop *l = c->loop;
	bool due = loop_next(l) < c->until;

	BUG_ON(sleep_set(c, EPOLL_CTL_MOD, true));
	if (due || unlikely(atomic_load(&c->stopping)))
		l->env->ops->wake(l->env);
	loop_give_up(l);
	pthread_mutex_unlock(&c->lock);
}
