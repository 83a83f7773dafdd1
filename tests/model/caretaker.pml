/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A loop with a caretaker, and a thread that borrows it: base/caretaker.h. The
 * caretaker sleeps without the lock until its descriptor is readable, which is
 * not looked at while the loop is borrowed, or until its time has come. Another
 * thread posts work, bytes come to a socket, and the borrower waits for both,
 * or leaves them; it leaves a timer, too. When all has been seen to, or with
 * EARLY at any time, the caretaker is stopped.
 *
 * What must hold:
 *	- nobody sleeps for ever: what was posted, what has come and the timer
 *	  are seen to, and the caretaker ends (no invalid end state)
 *	- one thread at a time makes turns
 *	- a bell that nobody rings is not readable for ever: the caretaker would
 *	  never sleep
 *
 * BREAK_LOOK returns the loop without looking at the descriptor again,
 * BREAK_TIMER without waking the caretaker for an earlier timer, BREAK_STOP
 * without waking it when it was stopped meanwhile. BREAK_AGAIN looks whether it
 * was stopped before a turn, and not after it. BREAK_HUSH hushes the bell
 * after the look at what was posted; BREAK_LATE hushes it in turns only;
 * BREAK_HEARD counts a bell as heard that is not rung yet. BREAK_LOCK borrows
 * while the caretaker makes turns.
 */
#ifndef POSTS
#define POSTS 2
#endif

bool locked;		/* somebody makes turns */
bool borrowed;		/* the caretaker is not woken by the descriptor */
byte posted;		/* in the mailbox */
bool bytes;		/* have come to the socket */
byte bell;		/* what the eventfd counts */
byte rung, heard;
bool timer;		/* armed, and due at any time */
bool sleeps_for_it;	/* the caretaker's time is the timer's */
bool stopping, ended;
byte finished;		/* threads that have nothing left to do */
byte turning;		/* threads that make turns */
byte seen;		/* what was seen to: posts, the bytes and the timer */
bool libev;		/* a borrower that sleeps is woken by ev_async_send() */

#define READABLE (bell > 0 || bytes)

/* Any thread: env_ops.wake(). */
inline wake()
{
	libev = true;
	rung++;
	bell++
}

inline hush()
{
	if
	:: rung != heard ->
		atomic {
			if
			:: bell > 0 -> heard = heard + bell; bell = 0
			:: else ->
#ifdef BREAK_HEARD
				heard = rung
#else
				skip
#endif
			fi
		}
	:: else
	fi
}

inline look()
{
	atomic { seen = seen + posted; posted = 0 };
	atomic { if :: bytes -> bytes = false; seen++ :: else fi }
}

/* A turn, by who has the lock. Timers are seen to once they are due. */
inline turn(due)
{
	turning++;
	assert(turning == 1);
	libev = false;
#ifdef BREAK_HUSH
	look();
	hush();
#else
	hush();
	look();
#endif
	if
	:: due && timer -> timer = false; seen++
	:: else
	fi;
	turning--
}

/* What the caretaker does when it wakes up. libev makes a turn only if it has
 * something; the bell may have been rung after the turn that did its work, and
 * would wake the caretaker again and again. */
inline run_once(due, before)
{
	atomic { before = -1; if :: bell > 0 -> before = heard :: else fi };
#ifndef BREAK_LATE
	hush();
#endif
	if
	:: libev || bytes || (due && timer) -> turn(due)
	:: else -> assert(heard != before)
	fi;
	before = 0
}

active proctype caretaker()
{
	bool due = false;
	short before = 0; /* heard, if the bell was rung; -1: it was not */

	atomic { !locked -> locked = true };
	do
	:: true ->
#ifdef BREAK_AGAIN
		if :: stopping -> break :: else fi;
#endif
		run_once(due, before);
#ifndef BREAK_AGAIN
		/* after the turn, which has hushed the bell */
		if :: stopping -> break :: else fi;
#endif
		sleeps_for_it = timer;
		locked = false;
		/* asleep */
		if
		:: READABLE && !borrowed -> due = false
		:: sleeps_for_it -> due = true
		fi;
		atomic { !locked -> locked = true }
	od;
	ended = true;
	locked = false;
	finished++
}

/* Borrows twice: to wait, and to leave a timer. Where the caretaker makes turns,
 * it does not. */
active proctype borrower()
{
	byte times = 0;

	do
	:: times == 2 || ended -> break
	:: else ->
		if
#ifdef BREAK_LOCK
		:: locked = true;
#else
		:: atomic { !locked && !ended -> locked = true };
#endif
			times++;
			borrowed = true;
			if
			:: times == 1 ->
				/* asleep in a turn, until there is something */
				if
				:: libev || bytes
				:: true	/* what it waits for has come */
				fi;
				turn(false)
			:: else ->
				timer = true;
				turn(false)
			fi;
#ifndef BREAK_LOOK
			borrowed = false;
#endif
			if
#ifndef BREAK_TIMER
			:: timer && !sleeps_for_it -> wake()
#endif
#ifndef BREAK_STOP
			:: stopping -> wake()
#endif
			:: !(timer && !sleeps_for_it) && !stopping
#ifdef BREAK_TIMER
			:: timer && !sleeps_for_it
#endif
#ifdef BREAK_STOP
			:: stopping
#endif
			fi;
			locked = false
		:: ended
		fi
	od;
	finished++
}

/* Posts, and lets bytes come. */
active proctype others()
{
	byte n = 0;

	do
	:: n == POSTS -> break
	:: n < POSTS ->
		posted++;
		wake();
		n++
	od;
	bytes = true;
	finished++
}

active proctype stopper()
{
#ifndef EARLY
	seen == POSTS + 2;	/* the bytes and the timer, too */
#endif
	stopping = true;
	wake();
	finished == 3;
	assert(rung == heard + bell)
}
