/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A loop that polls before it sleeps, in an environment with a fake clock: each
 * look at what is ready takes a microsecond, and a sleep lasts until the alarm.
 * The loop waits for its timers.
 */
#include <criterion/criterion.h>
#include "base/cpus.h"
#include "base/loop.h"

#define LONGEST (64 * NSEC_PER_USEC)
#define SOON	(20 * NSEC_PER_USEC) /* less than LONGEST */
#define LATE	(1000 * NSEC_PER_USEC)
#define ROUNDS	20

struct fake_env {
	struct env env;
	uint64_t now, alarm;
	unsigned int looks, sleeps;
	/* ns: how long others have had the processor; and how much of each look
	 * they take, in percent */
	uint64_t starved;
	unsigned int others;
	unsigned int processors;
	/* what is waited for needs the processor, and makes progress while the
	 * loop sleeps only */
	bool needs_ours;
	/* ns: others take the processor for so long in the fourth look */
	uint64_t robs;
};

static struct fake_env *fake_of(struct env *env)
{
	return container_of(env, struct fake_env, env);
}

static uint64_t fake_clock(struct env *env)
{
	return fake_of(env)->now;
}

static void fake_alarm(struct env *env, uint64_t at)
{
	fake_of(env)->alarm = at;
}

static void fake_run_once(struct env *env, enum env_wait wait)
{
	struct fake_env *e = fake_of(env);

	if (wait == ENV_WAIT) {
		cr_assert_neq(e->alarm, TIME_NEVER);
		e->now = MAX(e->now, e->alarm);
		e->sleeps++;
	} else {
		cr_assert_eq(wait, ENV_PEEK);
		e->now += NSEC_PER_USEC;
		e->alarm += e->needs_ours ? NSEC_PER_USEC : 0;
		e->starved += NSEC_PER_USEC * e->others / 100;
		if (++e->looks == 4)
			e->now += e->robs;
	}
	if (e->now < e->alarm)
		return;
	loop_turn_begin(env->loop);
	loop_turn_end(env->loop);
}

static uint64_t fake_starved(struct env *env)
{
	return fake_of(env)->starved;
}

static unsigned int fake_processors(struct env *env)
{
	return fake_of(env)->processors;
}

static void fake_free(struct env *env)
{
	(void)env;
}

static const struct env_ops fake_ops = {
	.clock = fake_clock,
	.alarm = fake_alarm,
	.run_once = fake_run_once,
	.starved = fake_starved,
	.processors = fake_processors,
	.free = fake_free,
};

struct rig {
	struct fake_env env;
	struct loop *loop;
	struct timer timer;
	_Atomic uint64_t max;
	stat_t hits, misses;
	unsigned int fired;
};

static void on_fired(struct timer *t)
{
	container_of(t, struct rig, timer)->fired++;
}

static void rig_init(struct rig *r, uint64_t max)
{
	*r = (struct rig){ .env = { .env = { .ops = &fake_ops },
				    .now = NSEC_PER_SEC,
				    .processors = 2,
				    .alarm = TIME_NEVER } };
	atomic_init(&r->max, max);
	timer_init(&r->timer, on_fired);
	cr_assert_eq(loop_new(&r->env.env, &r->loop), 0);
	loop_poll_before_sleep(r->loop, &(struct spin){ .max = &r->max,
							.hits = &r->hits,
							.misses = &r->misses,
							.processors = 2 });
}

/* A timer expires @rounds times, each time @wait ns after the loop has begun to
 * wait for it. */
static void rig_run(struct rig *r, unsigned int rounds, uint64_t wait)
{
	stat_set(&r->hits, 0);
	stat_set(&r->misses, 0);
	r->env.looks = r->env.sleeps = r->fired = 0;
	for (unsigned int i = 1; i <= rounds; i++) {
		loop_timer_arm(r->loop, &r->timer, r->env.now + wait);
		loop_run_once(r->loop, true);
		cr_assert_eq(r->fired, i);
	}
	cr_assert_eq(r->env.sleeps, rounds - stat_get(&r->hits));
}

Test(spin, off_it_sleeps_at_once)
{
	struct rig r;

	rig_init(&r, 0);
	rig_run(&r, ROUNDS, SOON);
	cr_assert_eq(r.env.sleeps, ROUNDS);
	cr_assert_eq(r.env.looks, 0);
	cr_assert_eq(stat_get(&r.hits) + stat_get(&r.misses), 0);
	loop_free(r.loop);
}

Test(spin, a_loop_that_was_told_nothing_sleeps)
{
	struct rig r;

	rig_init(&r, LONGEST);
	r.loop->spin.max = NULL;
	rig_run(&r, ROUNDS, SOON);
	cr_assert_eq(r.env.looks, 0);
	loop_free(r.loop);
}

/* Windows of 1, 2, 4, 8 and 16 us are too short for a timer of 20 us; 32 us are
 * enough. */
Test(spin, grows_to_what_is_needed)
{
	struct rig r;

	rig_init(&r, LONGEST);
	rig_run(&r, ROUNDS, SOON);
	cr_assert_eq(stat_get(&r.misses), 5);
	cr_assert_eq(stat_get(&r.hits), ROUNDS - 5);
	cr_assert_eq(r.env.looks, 1 + 2 + 4 + 8 + 16 + (ROUNDS - 5) * 20);
	loop_free(r.loop);
}

/* If what ends the waits comes too late for any window, polling soon ends. */
Test(spin, shrinks_when_nothing_comes)
{
	struct rig r;

	rig_init(&r, LONGEST);
	rig_run(&r, ROUNDS, SOON);
	rig_run(&r, ROUNDS, LATE);
	cr_assert_eq(stat_get(&r.hits), 0);
	cr_assert_eq(stat_get(&r.misses), ROUNDS);
	/* windows of 64, 32, ..., 2 us, and the shortest one from then on */
	cr_assert_eq(r.env.looks, 126 + ROUNDS - 6);

	/* The window grows again. */
	rig_run(&r, ROUNDS, SOON);
	cr_assert_eq(stat_get(&r.misses), 5);
	loop_free(r.loop);
}

Test(spin, never_longer_than_allowed)
{
	struct rig r;

	rig_init(&r, LONGEST);
	rig_run(&r, ROUNDS, SOON);
	atomic_store(&r.max, 4 * NSEC_PER_USEC);
	rig_run(&r, ROUNDS, SOON);
	cr_assert_eq(stat_get(&r.hits), 0);
	cr_assert_leq(r.env.looks, ROUNDS * 4);
	atomic_store(&r.max, 0);
	rig_run(&r, ROUNDS, SOON);
	cr_assert_eq(r.env.looks, 0);
	loop_free(r.loop);
}

/* Runs until a second has passed. Returns how many times the loop has polled
 * for a timer that expires soon. */
static unsigned int rig_second(struct rig *r, unsigned int others)
{
	const uint64_t end = r->env.now + NSEC_PER_SEC;
	unsigned int n = 0;

	r->env.others = others;
	while (r->env.now < end) {
		rig_run(r, 1, SOON);
		n += r->env.looks > 0;
	}
	return n;
}

/* Who shares his processor stops polling, for longer each time; once it is his
 * own, polling is back. */
Test(spin, not_where_others_wait)
{
	const unsigned int all = NSEC_PER_SEC / SOON;
	struct rig r;

	rig_init(&r, LONGEST);
	cr_assert_eq(rig_second(&r, 0), all);
	cr_assert_eq(rig_second(&r, 5), all);
	/* 50 ms each time, until after 100, 200 and 400 ms */
	cr_assert_lt(rig_second(&r, 50), all / 4);
	cr_assert_leq(rig_second(&r, 50), all / 10);
	for (unsigned int i = 0; i < 8; i++)
		rig_second(&r, 50);
	/* never longer than ten seconds */
	for (unsigned int i = 0; i < 11; i++)
		rig_second(&r, 0);
	cr_assert_eq(rig_second(&r, 0), all);
	loop_free(r.loop);
}

/* Others who had the processor long ago do not count. */
Test(spin, forgives)
{
	const unsigned int all = NSEC_PER_SEC / SOON;
	struct rig r;

	rig_init(&r, LONGEST);
	for (unsigned int i = 0; i < 20; i++)
		rig_second(&r, 50);
	cr_assert_leq(rig_second(&r, 50), all / 20);
	for (unsigned int i = 0; i < 12; i++)
		rig_second(&r, 0);
	/* 50 ms each time, until after 100, 200 and 400 ms, as at first */
	cr_assert_gt(rig_second(&r, 50), all / 10);
	loop_free(r.loop);
}

/* Another thread, which has waited for a processor long before, makes the
 * turns. */
static void *other_second(void *arg)
{
	struct rig *r = arg;

	loop_take_over(r->loop);
	r->env.starved += 100 * NSEC_PER_SEC;
	return (void *)(uintptr_t)rig_second(r, 0);
}

Test(spin, each_thread_by_its_own_count)
{
	const unsigned int all = NSEC_PER_SEC / SOON;
	pthread_t other;
	struct rig r;
	void *n;

	rig_init(&r, LONGEST);
	cr_assert_eq(rig_second(&r, 0), all);
	cr_assert_eq(pthread_create(&other, NULL, other_second, &r), 0);
	pthread_join(other, &n);
	cr_assert_eq((uintptr_t)n, all);
	loop_take_over(r.loop);
	cr_assert_lt(rig_second(&r, 50), all / 4);
	loop_free(r.loop);
}

/* On a processor that is too few there is no polling, not even once; as soon as
 * the loop has seen another one, there is. */
Test(spin, not_on_one_processor)
{
	const unsigned int all = NSEC_PER_SEC / SOON;
	struct rig r;

	rig_init(&r, LONGEST);
	r.env.processors = 1;
	cr_assert_eq(rig_second(&r, 0), 0);
	r.env.processors = 2;
	for (unsigned int i = 0; i < 2; i++)
		rig_second(&r, 0);
	cr_assert_eq(rig_second(&r, 0), all);

	r.env.processors = 1;
	cr_assert_leq(rig_second(&r, 0), all / 20);
	cr_assert_eq(rig_second(&r, 0), 0);
	loop_free(r.loop);
}

/* Nobody says that a processor is shared, but what is waited for always comes
 * after the loop has stopped polling, and soon then. */
Test(spin, not_where_it_is_in_vain)
{
	struct rig r;

	rig_init(&r, LONGEST);
	r.env.needs_ours = true;
	cr_assert_leq(rig_second(&r, 0), 4 * 64);
	for (unsigned int i = 0; i < 10; i++)
		rig_second(&r, 0);
	cr_assert_leq(rig_second(&r, 0), 64);
	r.env.needs_ours = false;
	for (unsigned int i = 0; i < 11; i++)
		rig_second(&r, 0);
	cr_assert_eq(rig_second(&r, 0), NSEC_PER_SEC / SOON);
	loop_free(r.loop);
}

/* What is waited for comes while the loop polls, but only when others have had
 * the processor meanwhile: they could have it sooner. */
Test(spin, not_where_others_take_it)
{
	const unsigned int all = NSEC_PER_SEC / SOON;
	struct rig r;

	rig_init(&r, LONGEST);
	r.env.robs = 2 * NSEC_PER_USEC;
	cr_assert_eq(rig_second(&r, 0), all);
	r.env.robs = SOON;
	cr_assert_leq(rig_second(&r, 0), 4 * 64);
	for (unsigned int i = 0; i < 11; i++)
		rig_second(&r, 0);
	r.env.robs = 0;
	for (unsigned int i = 0; i < 11; i++)
		rig_second(&r, 0);
	cr_assert_eq(rig_second(&r, 0), all);
	loop_free(r.loop);
}

Test(spin, lists_of_processors)
{
	cr_assert(cpus_list_has("2-5,8\n", "3\n", 1));
	cr_assert(cpus_list_has("2-5,8\n", "2-5,8\n", 5));
	cr_assert(cpus_list_has("2-5,8\n", "8,4-5\n", 3));
	cr_assert_not(cpus_list_has("2-5,8\n", "8,4-5\n", 4));
	cr_assert_not(cpus_list_has("2-5,8\n", "4-6\n", 1));
	cr_assert_not(cpus_list_has("2-5,8\n", "0-15\n", 1));
	cr_assert_not(cpus_list_has("\n", "0\n", 1));
	cr_assert_not(cpus_list_has("", "0-3\n", 1));
	cr_assert_not(cpus_list_has("0-3", "", 1));
	cr_assert_not(cpus_list_has("all", "0", 1));
	cr_assert_not(cpus_list_has("0-", "0", 1));
	cr_assert_not(cpus_list_has("0-3", "-1", 1));
	cr_assert_not(cpus_list_has("0-99999999999999999999", "0", 1));
}
