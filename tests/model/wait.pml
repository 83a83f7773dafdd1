/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that wait, and how they are woken: struct wait of rpc/rpc.h. Two
 * wait until CHANGES changes have been made. Each asks, polls, and sleeps after
 * that; with ENDLESS, polling has no end but what is waited for. Another thread
 * makes the changes, with the lock held, and calls wait_wake() after each: with
 * the lock held, even before the change, or without it.
 *
 * What must hold:
 *	- nobody sleeps, or polls, for ever (no invalid end state)
 *	- the system is asked to wake threads that sleep until a change, and no
 *	  others: none that poll sleep for the lock, to be woken by its release
 *
 * BREAK_COUNT wakes without counting, BREAK_CHANGED wakes only who polls.
 * BREAK_SEEN looks at the counter after it has asked, before it polls, and
 * BREAK_LATE likewise while it polls; BREAK_TAKEN notes what the counter was even if it
 * has not got the lock. BREAK_EARLY counts before the change, without the lock.
 * BREAK_LOCK waits for the lock while it polls.
 */
#ifndef CHANGES
#define CHANGES 2
#endif
#define WAITERS 2

bool locked;
byte blocked;  /* threads that poll, and sleep until the lock is released */
byte changes, wakes;
byte sleepers; /* until the next change */
byte round;    /* of changes that they sleep for */

#define READY (changes == CHANGES)

inline take()
{
	atomic { !locked -> locked = true }
}

inline release()
{
	atomic { assert(blocked == 0); locked = false }
}

inline wake()
{
#ifndef BREAK_COUNT
	wakes++;
#endif
#ifndef BREAK_CHANGED
	atomic { sleepers = 0; round++ }
#endif
}

active proctype changer()
{
	byte n = 0;

	do
	:: n == CHANGES -> break
	:: n < CHANGES -> take(); changes++; wake(); release(); n++
	:: n < CHANGES -> take(); wake(); changes++; release(); n++
	:: n < CHANGES -> take(); changes++; release(); wake(); n++
#ifdef BREAK_EARLY
	:: n < CHANGES -> wake(); take(); changes++; release(); n++
#endif
	od
}

/* waiter_is_ready() */
inline ask_polling()
{
	now = wakes;
#ifdef BREAK_TAKEN
	seen = now;
#endif
	got = false;
	if
#ifdef BREAK_LOCK
	:: atomic { locked -> blocked++ };
		atomic { !locked -> blocked--; locked = true };
		got = true
#else
	:: atomic { locked -> skip }
#endif
	:: atomic { !locked -> locked = true; got = true }
	fi;
	if
	:: got ->
		yes = READY;
		locked = false;
#ifdef BREAK_LATE
		now = wakes;
#endif
		seen = now
	:: else
	fi
}

active [WAITERS] proctype waiter()
{
	byte seen = 0, now = 0, for_round = 0;
	bool yes = false, got = false;

#ifndef BREAK_SEEN
	seen = wakes;
#endif
	take();
	yes = READY;
	locked = false;
#ifdef BREAK_SEEN
	seen = wakes;
#endif
	do
	:: yes -> goto over
	:: !yes && wakes != seen -> ask_polling()
#ifndef ENDLESS
	:: !yes -> break
#endif
	od;
	/* waiter_sleep() */
	take();
	do
	:: READY -> break
	:: else ->
		atomic { for_round = round; sleepers++; locked = false };
		round != for_round;
		take()
	od;
	locked = false;
over:
	skip
}
