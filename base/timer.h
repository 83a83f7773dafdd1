/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers on a hierarchical wheel. Arming and cancelling take constant time and
 * no memory, however many timers are armed. Timers expire exactly in the order
 * of their times (equal times: in the order of arming), since the levels go
 * down to a nanosecond.
 *
 * A level has 64 slots. A timer is on the level of the highest 6-bit digit in
 * which its time differs from the wheel's base, and moves to a lower level as
 * the base approaches its time. The base advances only when a timer is due, so
 * a turn of a loop in which no timer is due costs one comparison.
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
	uint64_t at; /* ns: when the timer expires */
	timer_fn fn;
	/* index in timer_wheel.slots: level * TIMER_SLOTS + slot on that level
	 */
	uint16_t slot;
};

struct timer_slot {
	struct list timers;
	uint64_t earliest; /* ns: no timer in the slot is earlier */
};

struct timer_wheel {
	uint64_t now;	   /* ns: all timers before this have expired */
	uint64_t base;	   /* ns: slots are counted from here; base <= now */
	uint64_t earliest; /* ns: no timer is earlier; at least @now */
	uint64_t armed;	   /* number of armed timers */
	/* by level: a bit for each slot in use */
	uint64_t occupied[TIMER_LEVELS];
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

/* Arms @t for @at, even if it is armed already. A time in the past expires at
 * the next timer_wheel_advance(). @t stays the caller's, and must not move in
 * memory while it is armed. */
void timer_wheel_arm(struct timer_wheel *w, struct timer *t, uint64_t at);

/* Disarms @t: t->fn is not called afterwards. No effect on a timer that is not
 * armed. */
void timer_wheel_cancel(struct timer_wheel *w, struct timer *t);

/* Returns a timer that is armed; NULL: none is. */
struct timer *timer_wheel_any(const struct timer_wheel *w);

/* Returns the time of the earliest timer, not before w->now; TIME_NEVER: there
 * is none. After a cancel the result may be too early, but never too late:
 * advancing to it up to TIMER_LEVELS times reaches the timer. */
static inline uint64_t timer_wheel_next(const struct timer_wheel *w)
{
	return w->earliest;
}

/* The rest of timer_wheel_advance(), for when a timer may be due. */
void timer_wheel_expire(struct timer_wheel *w, uint64_t now);
/* Advances time to @now (never back), calling the functions of all timers due
 * by then, in order, with w->now at the timer's own time. A function may arm
 * and cancel any timer; one that it arms for a time up to @now is called in the
 * same advance. */
static inline void timer_wheel_advance(struct timer_wheel *w, uint64_t now)
{
	if (unlikely(now >= w->earliest))
		timer_wheel_expire(w, now);
	else
		w->now = MAX(w->now, now);
}

#endif
