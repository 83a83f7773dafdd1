/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/timer.h"

#include <limits.h>

#define LEVEL_BITS 6
#define SLOT_MASK  (TIMER_SLOTS - 1)

/*
 * Why equal times keep their order: a timer is always in the slot where
 * slot_add() would put it now. w->base enters a slot of an upper level only in
 * enter_slot(), which moves that slot's timers to the levels below, oldest
 * first, while those levels are empty. So of two timers with equal times the
 * one armed first is never on a higher level, nor behind the other in a slot.
 */

void timer_wheel_init(struct timer_wheel *w, uint64_t now)
{
	w->now = now;
	w->base = now;
	w->earliest = TIME_NEVER;
	w->armed = 0;
	for (unsigned int l = 0; l < TIMER_LEVELS; l++)
		w->occupied[l] = 0;
	for (unsigned int s = 0; s < ARRAY_SIZE(w->slots); s++)
		list_init(&w->slots[s].timers);
}

struct timer *timer_wheel_any(const struct timer_wheel *w)
{
	for (unsigned int s = 0; s < ARRAY_SIZE(w->slots); s++)
		if (!list_empty(&w->slots[s].timers))
			return list_first(&w->slots[s].timers, struct timer,
					  link);
	return NULL;
}

static inline uint64_t slot_bit(unsigned int slot)
{
	return UINT64_C(1) << (slot & SLOT_MASK);
}

/* Puts @t into the slot for @at, which must not be before the base. Always
 * inlined, since it is nearly all that arming costs. */
static in_line void slot_add(struct timer_wheel *w, struct timer *t,
			     uint64_t at)
{
	unsigned int level, slot;
	struct timer_slot *s;

	/* clz needs at least one bit: "| 1" sets one, and does not change the
	 * level. */
	level = (63 - (unsigned int)__builtin_clzll((at ^ w->base) | 1)) /
		LEVEL_BITS;
	slot = (at >> (level * LEVEL_BITS)) & SLOT_MASK;
	slot += level * TIMER_SLOTS;
	t->slot = (uint16_t)slot;
	s = &w->slots[slot];
	if (list_empty(&s->timers)) {
		w->occupied[level] |= slot_bit(slot);
		s->earliest = at;
	} else if (at < s->earliest) {
		s->earliest = at;
	}
	list_add_tail(&s->timers, &t->link);
}

static inline void slot_del(struct timer_wheel *w, struct timer *t)
{
	/* If @t is alone in its slot, both neighbours are the slot's head. */
	if (t->link.next == t->link.prev)
		w->occupied[t->slot / TIMER_SLOTS] &= ~slot_bit(t->slot);
	list_del(&t->link);
}

#define NO_SLOT UINT_MAX

/* Returns the earliest slot that has timers; NO_SLOT: none has. */
static unsigned int first_slot(const struct timer_wheel *w)
{
	for (unsigned int l = 0; l < TIMER_LEVELS; l++) {
		if (w->occupied[l])
			return l * TIMER_SLOTS +
			       (unsigned int)__builtin_ctzll(w->occupied[l]);
	}
	return NO_SLOT;
}

static void find_earliest(struct timer_wheel *w)
{
	unsigned int slot = first_slot(w);

	w->earliest = slot == NO_SLOT ? TIME_NEVER : w->slots[slot].earliest;
}

void timer_wheel_arm(struct timer_wheel *w, struct timer *t, uint64_t at)
{
	if (timer_armed(t))
		timer_wheel_cancel(w, t);
	w->armed++;
	t->at = at;
	at = MAX(at, w->now);
	w->earliest = MIN(w->earliest, at);
	slot_add(w, t, at);
}

void timer_wheel_cancel(struct timer_wheel *w, struct timer *t)
{
	if (!timer_armed(t))
		return;
	slot_del(w, t);
	w->armed--;
	if (unlikely(t->at <= w->earliest))
		find_earliest(w);
}

/* Returns when the range of time of @slot begins, ns. The range must not be
 * over yet. */
static uint64_t slot_start(const struct timer_wheel *w, unsigned int slot)
{
	unsigned int shift = slot / TIMER_SLOTS * LEVEL_BITS;
	uint64_t above = (w->base >> shift) & ~(uint64_t)SLOT_MASK;

	return (above | (slot & SLOT_MASK)) << shift;
}

/* Advances the base, on its way to @now, into a slot of an upper level, below
 * which all levels are empty. It goes straight to the slot's first timer, so
 * that the timers move down as far as possible. */
static void enter_slot(struct timer_wheel *w, unsigned int slot, uint64_t now)
{
	struct timer_slot *s = &w->slots[slot];
	struct list moving;
	struct timer *t;

	list_init(&moving);
	list_splice_tail(&moving, &s->timers);
	w->occupied[slot / TIMER_SLOTS] &= ~slot_bit(slot);
	w->base = MIN(s->earliest, now);
	w->now = MAX(w->now, w->base);
	while ((t = list_pop(&moving, struct timer, link)))
		slot_add(w, t, MAX(t->at, w->base));
}

static void expire_slot(struct timer_wheel *w, struct timer_slot *s)
{
	do {
		struct timer *t = list_first(&s->timers, struct timer, link);

		timer_wheel_cancel(w, t);
		t->fn(t);
	} while (!list_empty(&s->timers));
}

void timer_wheel_expire(struct timer_wheel *w, uint64_t now)
{
	unsigned int slot;

	now = MAX(now, w->now);
	while ((slot = first_slot(w)) != NO_SLOT) {
		uint64_t start = slot_start(w, slot);

		if (start > now)
			break;
		if (slot >= TIMER_SLOTS) {
			enter_slot(w, slot, now);
		} else {
			w->base = w->now = start;
			expire_slot(w, &w->slots[slot]);
		}
	}
	/* A timer's function may have advanced the wheel further. */
	w->now = MAX(now, w->now);
	w->base = w->now;
	find_earliest(w);
}
