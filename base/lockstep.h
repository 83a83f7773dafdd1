/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads under virtual time, which may block: of the threads of a lockstep and
 * of the one that runs the loops, exactly one runs at any time. lockstep_run()
 * hands the turn to a thread that is ready, which keeps the turn until it waits
 * or returns. Threads become ready in an order that follows from what was done
 * before, so that a run can be repeated; and as each hand-over is one of locks,
 * what one of them has written the next one sees.
 *
 *	READY -> RUNNING -> WAITING -> READY ..
 *		 RUNNING -> ENDED
 *
 * A thread waits only in lockstep_wait(). One that blocks elsewhere, on a mutex
 * that another one of them holds, say, stops everything.
 *
 * Thread: whose turn it is.
 */
#ifndef BASE_LOCKSTEP_H
#define BASE_LOCKSTEP_H

#include <pthread.h>
#include <semaphore.h>
#include "base/fsm.h"
#include "base/list.h"
#include "base/timer.h"

enum lockstep_state {
	LOCKSTEP_READY,	  /* in lockstep.ready */
	LOCKSTEP_RUNNING, /* has the turn */
	LOCKSTEP_WAITING, /* in the queue that lockstep_wait() was given */
	LOCKSTEP_ENDED,
	LOCKSTEP_STATES
};

struct lockstep {
	struct list ready; /* lockstep_thread.link */
	struct timer_wheel timers;
	sem_t turn; /* of who calls lockstep_run() */
	unsigned int threads;
};

struct lockstep_thread {
	struct lockstep *of;
	struct fsm fsm; /* enum lockstep_state */
	struct list link;
	struct timer timer;
	sem_t turn;
	pthread_t thread;
	bool endable; /* its wait is ended by lockstep_end() */
	bool ending;  /* lockstep_end() has been called */
	int status;   /* how its wait has ended */
	void (*fn)(void *arg);
	void *arg;
};

/* @now: as all times here, ns of the virtual clock. */
void lockstep_init(struct lockstep *ls, uint64_t now);
/* No thread is left. */
void lockstep_fini(struct lockstep *ls);

/* @t, the caller's memory until lockstep_join(), is ready to run @fn(@arg). 0,
 * -errno of making threads. */
int lockstep_start(struct lockstep *ls, struct lockstep_thread *t,
		   void (*fn)(void *arg), void *arg) must_check;
/* @t's fn has returned: nothing of it is left. */
void lockstep_join(struct lockstep_thread *t);

/* Hands the turn to the thread that became ready first; returns when the turn
 * comes back. False: none is ready. Not for a thread of the lockstep. */
bool lockstep_run(struct lockstep *ls, uint64_t now);
/* When a wait ends because of the time: 0, a thread is ready; TIME_NEVER. */
uint64_t lockstep_next(const struct lockstep *ls);

/* The thread of a lockstep that the caller is, or NULL. */
struct lockstep_thread *lockstep_current(void);
/* Has the calling thread, which is one of a lockstep, wait at the end of @queue
 * until lockstep_wake(), or @until. 0; -ETIMEDOUT; -ECANCELED: if @endable,
 * lockstep_end() has been called, perhaps before this wait. */
int lockstep_wait(struct list *queue, uint64_t until, bool endable);
/* The first one that waits in @queue, if any, is ready. */
void lockstep_wake(struct list *queue);
/* All waits of @t end, now and from now on, if they are endable. */
void lockstep_end(struct lockstep_thread *t);

#endif
