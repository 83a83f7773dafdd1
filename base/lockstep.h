/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of a simulation, which may block, run in lockstep: of these threads
 * and the one that runs the loops, exactly one runs at any time. lockstep_run()
 * hands the turn to a thread that is ready; the thread keeps the turn until it
 * waits or returns. The order in which threads become ready depends only on
 * what was done before, so a run can be repeated. Each hand-over orders memory.
 *
 * A thread may wait only in lockstep_wait(). If it blocks elsewhere, such as on
 * a mutex that another of these threads holds, the simulation hangs.
 *
 * Thread: the one that has the turn.
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
	struct list ready; /* of lockstep_thread.link: threads that are ready */
	struct timer_wheel timers;
	sem_t turn; /* posted when the turn comes back to lockstep_run() */
	unsigned int threads;
};

struct lockstep_thread {
	struct lockstep *of;
	struct fsm fsm; /* enum lockstep_state */
	struct list link;
	struct timer timer;
	sem_t turn;
	pthread_t thread;
	/* the thread that waits in lockstep_join(), if any */
	struct list joiner;
	bool endable; /* its present wait is one that lockstep_end() may end */
	bool ending;  /* lockstep_end() has been called */
	int status;   /* result of its last wait */
	const uint64_t *held; /* as in lockstep_start() */
	void (*fn)(void *arg);
	void *arg;
};

/* All times are ns of the virtual clock. */
void lockstep_init(struct lockstep *ls, uint64_t now);
/* All threads must have been joined. */
void lockstep_fini(struct lockstep *ls);

/* Makes a thread that will run @fn(@arg), ready at once. @t is the caller's
 * memory until lockstep_join(). @held: NULL, or borrowed until lockstep_join():
 * the thread gets no turn before the time *@held (ns), since its process is
 * stopped until then. Returns 0, or -errno of making threads. */
int lockstep_start(struct lockstep *ls, struct lockstep_thread *t,
		   const uint64_t *held, void (*fn)(void *arg),
		   void *arg) must_check;
/* Has the thread's fn returned? */
static inline bool lockstep_ended(const struct lockstep_thread *t)
{
	return t->fsm.state == LOCKSTEP_ENDED;
}
/* Frees what the thread @t has taken. Its fn must have returned; but if the
 * caller is a thread in lockstep, too, it waits until that has happened. */
void lockstep_join(struct lockstep_thread *t);

/* Of the threads that are ready and not held, hands the turn to the one that
 * became ready first; returns when the turn comes back. Returns false: there is
 * none. Not for a thread in lockstep. */
bool lockstep_run(struct lockstep *ls, uint64_t now);
/* Returns when the next wait times out, or when the next thread that is ready
 * is no longer held, ns; 0: a thread is ready now; TIME_NEVER: nothing waits
 * for a time. */
uint64_t lockstep_next(const struct lockstep *ls);

/* Returns the calling thread, if it is in lockstep; else NULL. */
struct lockstep_thread *lockstep_current(void);
/* Makes the calling thread, which is in lockstep, wait at the end of @queue
 * until lockstep_wake() or @until. Returns 0; -ETIMEDOUT; or, if @endable,
 * -ECANCELED: lockstep_end() was called, perhaps before this wait. */
int lockstep_wait(struct list *queue, uint64_t until, bool endable);
/* Ends the wait of the first thread in @queue, if any. */
void lockstep_wake(struct list *queue);
/* Ends the present wait of @t, if it is endable, and all its endable waits in
 * future. */
void lockstep_end(struct lockstep_thread *t);

#endif
