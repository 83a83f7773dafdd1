/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A loop that has a thread, its caretaker, and that any other thread may borrow
 * while the caretaker sleeps: to make the turns itself, instead of waking the
 * caretaker and waiting for it.
 *
 *	caretaker:  turns, as long as there is work; sleeps; turns
 *	borrower:                        borrows, turns, returns the loop
 *
 * Who makes turns, or sleeps in one, has the lock, and is the loop's owner. The
 * caretaker does not sleep in a turn, but without the lock, on a descriptor of
 * its own (env_ops.fd) that is readable when the loop has something to do.
 * While the loop is borrowed that descriptor is not looked at, so what comes
 * wakes the borrower only. So borrowing takes two system calls, of which none
 * wakes a thread. Neither can be left out: without the first, the caretaker
 * would wake up for what the borrower waits for, and without the second, nobody
 * would see what comes between two borrowers.
 *
 * The caretaker is woken when the loop is returned with something to do: a
 * descriptor that is ready, work that was posted, or a timer that is due
 * before the time at which the caretaker wakes up by itself.
 */
#ifndef BASE_CARETAKER_H
#define BASE_CARETAKER_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/loop.h"

struct caretaker {
	struct loop *loop;
	/* held by the thread that makes turns: it guards the loop, and what
	 * follows */
	pthread_mutex_t lock;
	uint64_t until; /* ns: when the caretaker wakes up by itself */
	bool ended;	/* the caretaker's function has returned */
	int sleeps_on;	/* epoll descriptor that has loop_fd() alone */
	_Atomic bool stopping;
};

/* Makes a caretaker for @loop, which the caller owns, and which must outlive
 * it. Returns 0 or -errno. */
int caretaker_new(struct loop *loop, struct caretaker **c_p) must_check;
/* Frees @c, whose functions nobody uses any more. NULL is allowed. */
void caretaker_free(struct caretaker *c);

/* For the caretaker's thread: the first makes it the loop's owner, so that
 * others can borrow the loop from then on. The second makes turns until
 * caretaker_stop(); then nobody owns the loop, nor can borrow it. */
void caretaker_begin(struct caretaker *c);
void caretaker_run(struct caretaker *c);
/* Makes caretaker_run() return, as soon as the loop is not borrowed. Any
 * thread. */
void caretaker_stop(struct caretaker *c);

/* Any thread that is in no turn. Makes the caller the loop's owner, unless
 * somebody makes turns now: then returns false. The caller makes turns by
 * loop_run_once(), and soon calls caretaker_return(). */
bool caretaker_borrow(struct caretaker *c) must_check;
void caretaker_return(struct caretaker *c);

#endif
