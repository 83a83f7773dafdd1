/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two sides of a ring, and how they wake each other: lnd/shmlnd/ring.h. Side 0
 * writes FRAMES frames into a ring that has room for CAP, and sleeps while it is
 * full; side 1 reads them, and sleeps while it is empty. Then it writes a frame
 * for side 0, which waits for that, too, and at last for that alone. Either may
 * poll for a while before it sleeps, and then is not to be woken.
 *
 * What must hold:
 *	- nobody sleeps for ever: all frames are read (no invalid end state)
 *	- a wake-up is sent only to a side that has said that it sleeps, and
 *	  once for each time that it has said so
 *
 * The system may have no memory for a wake-up, which is then sent again later,
 * and has no room for one while earlier ones have not been read, of which one
 * is enough. BREAK_LACK forgets a wake-up for which there was no memory,
 * BREAK_READ reads wake-ups after the last look at the ring. BREAK_LESS takes
 * what a side wants away without a wake-up, if that is not any more what it was
 * to be woken for.
 *
 * A processor may keep a store to itself while later loads are made. In the
 * program, stores and loads that decide about wake-ups are sequentially
 * consistent. BREAK_TAIL, BREAK_HEAD and BREAK_WANTS leave out that for a store:
 * it then waits in a buffer of its side, which is written at any time later.
 */
#ifndef FRAMES
#define FRAMES 4
#endif
#ifndef CAP
#define CAP 2
#endif

#define FOR_FRAMES 1
#define FOR_ROOM   2

byte tail, head;	/* as the other side sees them */
bool answered;		/* side 1 has written its frame */
byte wants[2];		/* FOR_...; as the other side sees them */
bool bells[2];		/* a side has wake-ups that it has not read */
bool due[2];		/* a wake-up for it is to be sent again */
bool asleep[2];		/* has said so, and not taken it back */
byte slept[2], rung[2]; /* how often */

/* the buffers */
bool held_tail, held_head, held_wants[2];
byte new_tail, new_head;
byte new_wants[2];

inline store_tail(v)
{
#ifdef BREAK_TAIL
	atomic { new_tail = v; held_tail = true }
#else
	tail = v
#endif
}

inline store_head(v)
{
#ifdef BREAK_HEAD
	atomic { new_head = v; held_head = true }
#else
	head = v
#endif
}

/* shm_ring_awake(): a plain store, after which nothing depends on its time. A
 * store that follows overtakes it in no processor. */
inline awake(me)
{
#ifndef BREAK_AWAKE
	atomic {
		wants[me] = 0;
		held_wants[me] = false;
		asleep[me] = false
	}
#else
	asleep[me] = false
#endif
}

inline say_asleep(me, what)
{
	atomic {
		asleep[me] = true;
		slept[me]++;
#ifdef BREAK_WANTS
		new_wants[me] = what;
		held_wants[me] = true
#else
		wants[me] = what
#endif
	}
}

/* shm_ring_must_wake(), and the wake-up */
inline wake(other, what)
{
	if
	:: wants[other] & what ->
		atomic {
#ifdef BREAK_CLAIM
			if
			:: true ->
#else
#ifdef BREAK_LESS
			if
			:: !(wants[other] & what) -> wants[other] = 0
			:: else -> skip
			fi;
#endif
			if
			:: wants[other] ->
				wants[other] = 0;
#endif
				assert(asleep[other]);
				rung[other]++;
				assert(rung[other] <= slept[other]);
				if
				/* If it is set, the socket is full. */
				:: true -> bells[other] = true
#ifdef BREAK_LACK
				:: true -> skip
#else
				:: true -> due[other] = true
#endif
				fi
			:: else
			fi
		}
	:: else
	fi
}

/* shm_ring_sleep(), and the sleep. @something: some of @what is there. */
inline sleep(me, what, something)
{
	say_asleep(me, what);
	if
#ifndef BREAK_LOOK
	:: something -> skip
	:: else ->
#else
	:: true ->
#endif
#ifdef BREAK_READ
		bells[me] = false;
#endif
		bells[me]
	fi;
	awake(me);
	bells[me] = false
}

active proctype writer()
{
	byte t = 0;

	do
	:: t == FRAMES && answered -> break
	:: t < FRAMES && t - head < CAP ->
		t++;
		store_tail(t);
		wake(1, FOR_FRAMES)
	/* It sleeps at once, or polls. */
	:: t < FRAMES && t - head == CAP ->
		sleep(0, FOR_FRAMES | FOR_ROOM, t - head < CAP)
	:: t < FRAMES && t - head == CAP -> t - head < CAP
	:: t == FRAMES && !answered -> sleep(0, FOR_FRAMES, answered)
	:: t == FRAMES && !answered -> answered
	od
}

active proctype reader()
{
	byte h = 0;

	do
	:: h == FRAMES ->
		answered = true;
		wake(0, FOR_FRAMES);
		break
	:: h < FRAMES && h < tail ->
		h++;
		store_head(h);
		wake(0, FOR_ROOM)
	:: h < FRAMES && h == tail -> sleep(1, FOR_FRAMES, h < tail)
	:: h < FRAMES && h == tail -> h < tail
	od
}

/* Writes what is in the buffers. */
active proctype buffers()
{
end:
	do
	:: atomic { held_tail -> tail = new_tail; held_tail = false }
	:: atomic { held_head -> head = new_head; held_head = false }
	:: atomic { held_wants[0] -> wants[0] = new_wants[0]; held_wants[0] = false }
	:: atomic { held_wants[1] -> wants[1] = new_wants[1]; held_wants[1] = false }
	/* on_wake_again() */
	:: atomic { due[0] -> bells[0] = true; due[0] = false }
	:: atomic { due[1] -> bells[1] = true; due[1] = false }
	od
}
