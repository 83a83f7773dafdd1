/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "base/env.h"
#include "base/timer.h"

/*
 * Compares the wheel with a model, which has for each timer the time at which
 * it must expire and the order of arming, and finds the next one by looking at
 * all.
 */
#define MODEL_TIMERS 150

struct model_timer {
	struct timer timer;
	struct model *model;
	bool armed;
	uint64_t due;
	uint64_t number;
};

struct model {
	struct timer_wheel wheel;
	struct model_timer timers[MODEL_TIMERS];
	struct rng rng;
	uint64_t numbers;
	uint64_t to; /* end of the present advance */
	unsigned int expired;
	bool meddle; /* timers' functions arm and cancel */
};

static struct model_timer *model_first(struct model *m)
{
	struct model_timer *first = NULL;

	for (unsigned int i = 0; i < MODEL_TIMERS; i++) {
		struct model_timer *t = &m->timers[i];

		if (!t->armed)
			continue;
		if (!first || t->due < first->due ||
		    (t->due == first->due && t->number < first->number))
			first = t;
	}
	return first;
}

static void model_arm(struct model *m, struct model_timer *t, uint64_t at)
{
	t->armed = true;
	t->due = MAX(at, m->wheel.now);
	t->number = m->numbers++;
	timer_wheel_arm(&m->wheel, &t->timer, at);
}

static void model_cancel(struct model *m, struct model_timer *t)
{
	t->armed = false;
	timer_wheel_cancel(&m->wheel, &t->timer);
}

/* Times now, near, far and in the past, many of them equal. */
static uint64_t random_time(struct model *m)
{
	uint64_t r = rng_next(&m->rng);
	uint64_t now = m->wheel.now;
	uint64_t ahead = rng_next(&m->rng) >> (r >> 58);

	switch (r % 8) {
	case 0:
		return now;
	case 1:
		return now - MIN(now, ahead);
	case 2:
		return now + 1 + ahead % 3;
	case 3:
		return (now + ahead % 1000000) & ~UINT64_C(0xfff);
	case 4:
		return UINT64_MAX - ahead % 100;
	default:
		return ahead > UINT64_MAX - now ? UINT64_MAX : now + ahead;
	}
}

static struct model_timer *random_timer(struct model *m)
{
	return &m->timers[rng_below(&m->rng, MODEL_TIMERS)];
}

static void random_change(struct model *m)
{
	struct model_timer *t = random_timer(m);

	if (rng_below(&m->rng, 3))
		model_arm(m, t, random_time(m));
	else
		model_cancel(m, t);
}

static void model_expired(struct timer *timer)
{
	struct model_timer *t = container_of(timer, struct model_timer, timer);
	struct model *m = t->model;

	cr_assert_eq(model_first(m), t, "order");
	cr_assert_leq(t->due, m->to);
	cr_assert_eq(m->wheel.now, t->due);
	cr_assert(!timer_armed(timer));
	t->armed = false;
	m->expired++;
	if (!m->meddle)
		return;
	/* Less than one new timer on average, so that the test ends. */
	if (rng_below(&m->rng, 2))
		model_cancel(m, random_timer(m));
	if (rng_below(&m->rng, 2))
		model_arm(m, random_timer(m), random_time(m));
}

static void model_advance(struct model *m, uint64_t to)
{
	struct model_timer *first;

	m->to = MAX(to, m->wheel.now);
	timer_wheel_advance(&m->wheel, to);
	cr_assert_eq(m->wheel.now, m->to);
	first = model_first(m);
	if (first)
		cr_assert_gt(first->due, m->to, "one was left behind");
}

static void model_check(struct model *m)
{
	struct model_timer *first = model_first(m);
	uint64_t armed = 0;

	for (unsigned int i = 0; i < MODEL_TIMERS; i++) {
		cr_assert_eq(timer_armed(&m->timers[i].timer),
			     m->timers[i].armed);
		armed += m->timers[i].armed;
	}
	cr_assert_eq(m->wheel.armed, armed);
	if (first)
		cr_assert_leq(timer_wheel_next(&m->wheel), first->due);
	else
		cr_assert_eq(timer_wheel_next(&m->wheel), TIME_NEVER);
}

static void model_init(struct model *m, uint64_t seed, uint64_t now)
{
	*m = (struct model){ .meddle = true };
	rng_seed(&m->rng, seed);
	timer_wheel_init(&m->wheel, now);
	for (unsigned int i = 0; i < MODEL_TIMERS; i++) {
		m->timers[i].model = m;
		timer_init(&m->timers[i].timer, model_expired);
	}
}

static void model_run(uint64_t seed, uint64_t now, unsigned int ops)
{
	static struct model m;

	model_init(&m, seed, now);
	while (ops--) {
		uint64_t step;

		if (rng_below(&m.rng, 4)) {
			random_change(&m);
		} else {
			step = rng_next(&m.rng) >> (20 + rng_below(&m.rng, 44));
			model_advance(&m, m.wheel.now + step);
		}
		if (ops % 16 == 0)
			model_check(&m);
	}
	m.meddle = false;
	model_advance(&m, TIME_NEVER);
	cr_assert_eq(m.wheel.armed, 0);
	cr_assert_gt(m.expired, 1000);
}

Test(timer, model)
{
	for (uint64_t seed = 0; seed < 20; seed++)
		model_run(seed, 0, 20000);
}

Test(timer, model_starts_anywhere)
{
	struct rng rng;

	rng_seed(&rng, 99);
	for (uint64_t seed = 0; seed < 20; seed++)
		model_run(seed, rng_next(&rng) >> 2, 5000);
}

/* Advances only to timer_wheel_next(), as a loop does. */
Test(timer, model_by_next)
{
	static struct model m;
	unsigned int turns = 0;

	model_init(&m, 5, 123456789);
	m.meddle = false;
	for (unsigned int i = 0; i < 20000; i++) {
		random_change(&m);
		if (i % 4)
			continue;
		model_advance(&m, timer_wheel_next(&m.wheel));
		turns++;
	}
	while (m.wheel.armed) {
		unsigned int expired = m.expired;
		unsigned int steps = 0;

		while (m.expired == expired) {
			model_advance(&m, timer_wheel_next(&m.wheel));
			cr_assert_leq(++steps, TIMER_LEVELS);
		}
	}
	cr_assert_gt(m.expired, turns / 2);
}

struct once {
	struct timer timer;
	unsigned int *calls;
	unsigned int order;
};

static void count_call(struct timer *t)
{
	struct once *o = container_of(t, struct once, timer);

	o->order = (*o->calls)++;
}

/* Timers with equal times that were armed when that time was on different
 * levels of the wheel. */
Test(timer, equal_times_fire_in_arming_order)
{
	static const uint64_t when[] = {
		0,	  1000,	    999999,   16700000,
		16777000, 16777200, 16777215, 16777216
	};
	const uint64_t at = 16777216;
	struct once o[ARRAY_SIZE(when)];
	struct timer_wheel w;
	unsigned int calls = 0;

	timer_wheel_init(&w, 0);
	for (size_t i = 0; i < ARRAY_SIZE(when); i++) {
		o[i].calls = &calls;
		timer_init(&o[i].timer, count_call);
		if (when[i] < at)
			timer_wheel_advance(&w, when[i]);
		timer_wheel_arm(&w, &o[i].timer, at);
	}
	cr_assert_eq(calls, 0);
	timer_wheel_advance(&w, at - 1);
	cr_assert_eq(calls, 0);
	timer_wheel_advance(&w, at);
	cr_assert_eq(calls, ARRAY_SIZE(when));
	for (size_t i = 0; i < ARRAY_SIZE(when); i++)
		cr_assert_eq(o[i].order, i);
}

/* The base enters a slot of an upper level, before the time of its timer. */
Test(timer, equal_times_in_a_slot_that_has_begun)
{
	struct once first, second;
	struct timer_wheel w;
	unsigned int calls = 0;

	timer_wheel_init(&w, 0);
	first.calls = second.calls = &calls;
	timer_init(&first.timer, count_call);
	timer_init(&second.timer, count_call);
	timer_wheel_arm(&w, &first.timer, 100);
	timer_wheel_advance(&w, 70);
	timer_wheel_arm(&w, &second.timer, 100);
	timer_wheel_advance(&w, 100);
	cr_assert_eq(first.order, 0);
	cr_assert_eq(second.order, 1);
}

Test(timer, rearming_goes_behind)
{
	struct once o[3];
	struct timer_wheel w;
	unsigned int calls = 0;

	timer_wheel_init(&w, 0);
	for (unsigned int i = 0; i < 3; i++) {
		o[i].calls = &calls;
		timer_init(&o[i].timer, count_call);
		timer_wheel_arm(&w, &o[i].timer, 100);
	}
	timer_wheel_arm(&w, &o[0].timer, 100);
	timer_wheel_advance(&w, 100);
	cr_assert_eq(o[1].order, 0);
	cr_assert_eq(o[2].order, 1);
	cr_assert_eq(o[0].order, 2);
}

Test(timer, past_and_present)
{
	struct timer_wheel w;
	unsigned int calls = 0;
	struct once o = { .calls = &calls };

	timer_wheel_init(&w, 1000);
	timer_init(&o.timer, count_call);
	for (uint64_t at = 998; at <= 1000; at++) {
		timer_wheel_arm(&w, &o.timer, at);
		cr_assert_eq(timer_wheel_next(&w), 1000);
		timer_wheel_advance(&w, 1000);
		cr_assert(!timer_armed(&o.timer));
	}
	cr_assert_eq(calls, 3);
	timer_wheel_advance(&w, 5);
	cr_assert_eq(w.now, 1000, "never back");
}

Test(timer, next_is_exact_without_cancels)
{
	static const uint64_t at[] = { 1,
				       63,
				       64,
				       65,
				       4095,
				       1234567,
				       UINT64_C(1) << 40,
				       UINT64_C(1) << 63,
				       UINT64_MAX - 1,
				       UINT64_MAX };
	unsigned int calls = 0;
	struct once o = { .calls = &calls };
	struct timer_wheel w;

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		timer_wheel_init(&w, 0);
		timer_init(&o.timer, count_call);
		timer_wheel_arm(&w, &o.timer, at[i]);
		cr_assert_eq(timer_wheel_next(&w), at[i]);
		timer_wheel_advance(&w, at[i] - 1);
		cr_assert_eq(calls, i);
		cr_assert_eq(timer_wheel_next(&w), at[i]);
		timer_wheel_advance(&w, at[i]);
		cr_assert_eq(calls, i + 1);
		cr_assert_eq(timer_wheel_next(&w), TIME_NEVER);
	}
}

struct many {
	struct timer timer;
	struct timer_wheel *wheel;
	uint64_t *last;
	unsigned int *calls;
};

static void many_expired(struct timer *t)
{
	struct many *m = container_of(t, struct many, timer);

	cr_assert_geq(t->at, *m->last);
	cr_assert_eq(t->at, m->wheel->now);
	*m->last = t->at;
	(*m->calls)++;
}

Test(timer, a_hundred_thousand)
{
	enum { N = 100000 };
	static struct many m[N];
	static struct timer_wheel w;
	unsigned int calls = 0;
	uint64_t last = 0;
	struct rng rng;

	rng_seed(&rng, 3);
	timer_wheel_init(&w, 0);
	for (unsigned int i = 0; i < N; i++) {
		m[i].wheel = &w;
		m[i].last = &last;
		m[i].calls = &calls;
		timer_init(&m[i].timer, many_expired);
		timer_wheel_arm(&w, &m[i].timer,
				1 + rng_below(&rng, 100 * NSEC_PER_SEC));
	}
	cr_assert_eq(w.armed, N);
	for (unsigned int i = 0; i < N; i += 2)
		timer_wheel_cancel(&w, &m[i].timer);
	for (uint64_t t = 0; t <= 100; t++)
		timer_wheel_advance(&w, t * NSEC_PER_SEC);
	cr_assert_eq(calls, N / 2);
	cr_assert_eq(w.armed, 0);
}
