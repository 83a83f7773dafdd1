/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers on a hierarchical wheel: arming and cancelling take constant time and
 * no memory, however many are armed, and timers expire exactly in the order of
 * their time (equal times: order of arming), because every level of the wheel
 * splits the one above it down to a nanosecond.
 *
 * A level has 64 slots; a timer sits on the level of the highest 6-bit digit in
 * which its time differs from the wheel's base, and moves to a lower level as
 * the base comes nearer to its time. The base follows the time only when a
 * timer is due: a turn of a loop in which no timer is due costs a comparison.
 *
 * Thread: owner.
 */
#ifndef BASE_TIMER_H
#define BASE_TIMER_H

#include "base/list.h"

#define TIMER_LEVELS 11 /* 11 * 6 bits >= 64 bits of nanoseconds */
#define TIMER_SLOTS  64

struct timer;
typedef void (*timer_fn)(struct timer *t);

struct timer {
	struct list link;
	uint64_t at; /* ns */
	timer_fn fn;
	uint16_t slot; /* level * TIMER_SLOTS + slot of the level */
};

struct timer_slot {
	struct list timers;
	uint64_t earliest; /* no timer in it is before this */
};

struct timer_wheel {
	uint64_t now;	   /* all timers before this have expired */
	uint64_t base;	   /* slots are counted from here; not after now */
	uint64_t earliest; /* no timer is before this; not before now */
	uint64_t armed;	   /* number of timers */
	uint64_t occupied[TIMER_LEVELS]; /* a bit for each slot in use */
	struct timer_slot slots[TIMER_LEVELS * TIMER_SLOTS];
};

void timer_wheel_init(struct timer_wheel *w, uint64_t now);

static inline void timer_init(struct timer *t, timer_fn fn)
{
	list_init(&t->link);
	t->fn = fn;
}

static inline bool timer_armed(const struct timer *t)
{
	return !list_empty(&t->link);
}

/* Arms @t, or moves it. A time that has passed expires at the next
 * timer_wheel_advance(). @t stays the caller's, and must not move in memory
 * while it is armed. */
void timer_wheel_arm(struct timer_wheel *w, struct timer *t, uint64_t at);

/* No effect when not armed. After it, t->fn is not called. */
void timer_wheel_cancel(struct timer_wheel *w, struct timer *t);

/* The earliest timer's time; TIME_NEVER without timers. After a cancel the time
 * may be too early, never too late: then each timer_wheel_advance() to the time
 * that this function returns gets nearer to the timer, and TIMER_LEVELS of them
 * are enough. A time that has passed counts as w->now. */
static inline uint64_t timer_wheel_next(const struct timer_wheel *w)
{
	return w->earliest;
}

/* timer_wheel_advance(), when a timer may be due. */
void timer_wheel_expire(struct timer_wheel *w, uint64_t now);
/* Moves time on to @now (never back), calling the functions of all timers due
 * at or before it, in order. They may arm and cancel any timer; one that is
 * armed for a time at or before @now by a function is called in the same
 * advance. w->now is the timer's own time during its call. */
static inline void timer_wheel_advance(struct timer_wheel *w, uint64_t now)
{
	if (unlikely(now >= w->earliest))
		timer_wheel_expire(w, now);
	else
		w->now = MAX(w->now, now);
}

#endif
