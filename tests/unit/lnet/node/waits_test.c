/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that wait for what others do: when they poll, and when they sleep. In
 * an environment with a fake clock: each look at it takes a microsecond.
 */
#include <criterion/criterion.h>
#include "lnet/node/waits.h"

#define LONGEST (32 * NSEC_PER_USEC)

struct rig {
	struct env env;
	uint64_t now;
	unsigned int processors;
	struct waits *w;
	_Atomic uint64_t max;
	stat_t hits, misses;
	unsigned int asked, slept;
	unsigned int soon; /* how often is asked until it is done */
	bool ends;	   /* the node is closed while the thread sleeps */
};

static uint64_t fake_clock(struct env *env)
{
	return container_of(env, struct rig, env)->now += NSEC_PER_USEC;
}

static unsigned int fake_processors(struct env *env)
{
	return container_of(env, struct rig, env)->processors;
}

static const struct env_ops fake_ops = {
	.clock = fake_clock,
	.processors = fake_processors,
};

static void rig_init(struct rig *r)
{
	struct spin spin = { .max = &r->max,
			     .hits = &r->hits,
			     .misses = &r->misses,
			     .processors = 2 };

	*r = (struct rig){ .env = { .ops = &fake_ops },
			   .now = NSEC_PER_SEC,
			   .processors = 2 };
	atomic_init(&r->max, LONGEST);
	r->w = waits_new(&r->env, &spin);
	cr_assert_not_null(r->w);
}

static bool is_done(void *arg)
{
	struct rig *r = arg;

	return ++r->asked > r->soon;
}

static void sleep_long(void *arg)
{
	struct rig *r = arg;

	r->slept++;
	r->now += NSEC_PER_MSEC;
	if (r->ends)
		waits_end(r->w);
}

/* Waits @n times. */
static void rig_wait(struct rig *r, unsigned int n, unsigned int soon)
{
	stat_set(&r->hits, 0);
	stat_set(&r->misses, 0);
	r->slept = 0;
	r->soon = soon;
	for (unsigned int i = 0; i < n; i++) {
		r->asked = 0;
		waits_wait(r->w, is_done, sleep_long, r);
	}
}

Test(waits, what_comes_soon_is_not_slept_for)
{
	struct rig r;

	rig_init(&r);
	rig_wait(&r, 10, 0);
	cr_assert_eq(r.slept, 0);
	cr_assert_eq(stat_get(&r.hits), 10);
	/* as is what comes later, for which the window has grown */
	rig_wait(&r, 10, 10);
	cr_assert_eq(r.slept, 0);
	cr_assert_eq(stat_get(&r.hits), 10);
	waits_end(r.w);
}

Test(waits, what_comes_late_is_slept_for)
{
	struct rig r;

	rig_init(&r);
	rig_wait(&r, 20, UINT32_MAX);
	cr_assert_eq(r.slept, 20);
	cr_assert_eq(stat_get(&r.misses), 20);
	/* The window is a microsecond now. */
	cr_assert_leq(r.asked, 2);
	waits_end(r.w);
}

Test(waits, switched_off)
{
	struct rig r;

	rig_init(&r);
	atomic_store(&r.max, 0);
	rig_wait(&r, 3, 0);
	cr_assert_eq(r.slept, 3);
	cr_assert_eq(r.asked, 0);
	waits_end(r.w);
	r.w = NULL;
	rig_wait(&r, 3, 0);
	cr_assert_eq(r.slept, 3);
	cr_assert_eq(r.asked, 0);
}

Test(waits, on_one_processor)
{
	struct rig r;

	rig_init(&r);
	r.processors = 1;
	rig_wait(&r, 2000, 0);
	cr_assert_eq(r.slept, 2000);
	cr_assert_eq(r.asked, 0);
	cr_assert_eq(stat_get(&r.hits) + stat_get(&r.misses), 0);
	waits_end(r.w);
}

Test(waits, one_thread_polls_at_a_time)
{
	struct rig r;

	rig_init(&r);
	atomic_store(&r.w->taken, true);
	rig_wait(&r, 3, 0);
	cr_assert_eq(r.slept, 3);
	cr_assert_eq(r.asked, 0);
	atomic_store(&r.w->taken, false);
	rig_wait(&r, 3, 0);
	cr_assert_eq(r.slept, 0);
	waits_end(r.w);
}

Test(waits, the_node_is_closed_meanwhile)
{
	struct rig r;

	rig_init(&r);
	r.ends = true;
	rig_wait(&r, 1, UINT32_MAX);
	cr_assert_eq(r.slept, 1);
	cr_assert_eq(stat_get(&r.misses), 0);
}
