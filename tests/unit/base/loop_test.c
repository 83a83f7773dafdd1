/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop's timers, work, threads, and turns that take too long. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "tests/unit/base/loop_rig.h"

static uint64_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

Test(loop, clock_and_random)
{
	struct loop *l = make_loop(NULL);
	uint64_t before = clock_now();
	uint8_t big[1000];
	unsigned int zeros = 0;

	cr_assert_geq(loop_now(l), before);
	cr_assert_leq(loop_now(l), clock_now());
	cr_assert_neq(loop_random(l), loop_random(l));
	l->env->ops->random(l->env, big, sizeof(big));
	for (size_t i = 0; i < sizeof(big); i++)
		zeros += big[i] == 0;
	cr_assert_lt(zeros, 50);
	loop_free(l);
}

Test(loop, timers_wait_for_their_time)
{
	static const unsigned int ms[] = { 30, 1, 0, 15, 30 };
	struct note n[ARRAY_SIZE(ms)];
	struct loop *l = make_loop(NULL);
	uint64_t start = loop_now(l);
	unsigned int turns = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ms); i++) {
		note_init(&n[i], l);
		loop_timer_arm(l, &n[i].timer, start + ms[i] * NSEC_PER_MSEC);
	}
	while (!n[0].calls || !n[4].calls) {
		loop_run_once(l, true);
		turns++;
	}
	for (size_t i = 0; i < ARRAY_SIZE(ms); i++) {
		uint64_t due = start + ms[i] * NSEC_PER_MSEC;

		cr_assert_eq(n[i].calls, 1);
		cr_assert_geq(n[i].at, due);
		cr_assert_lt(n[i].at, due + 60 * NSEC_PER_SEC);
	}
	cr_assert_leq(turns, 8, "%u turns: it did not sleep", turns);
	loop_free(l);
}

/* When the loop has not run for a while, libev's cached time is old. */
Test(loop, timer_after_a_pause)
{
	struct loop *l = make_loop(NULL);
	unsigned int turns = 0;
	struct note n;

	note_init(&n, l);
	loop_run_once(l, false);
	sleep_ms(50);
	loop_timer_arm(l, &n.timer, loop_now(l) + 20 * NSEC_PER_MSEC);
	while (!n.calls) {
		loop_run_once(l, true);
		turns++;
	}
	cr_assert_leq(turns, 3);
	loop_free(l);
}

Test(loop, timer_in_the_past_fires_at_once)
{
	struct loop *l = make_loop(NULL);
	struct note n;

	note_init(&n, l);
	loop_timer_arm(l, &n.timer, 0);
	loop_run_once(l, true);
	cr_assert_eq(n.calls, 1);
	sleep_ms(2);
	loop_timer_arm(l, &n.timer, loop_now(l) - NSEC_PER_MSEC);
	loop_run_once(l, true);
	cr_assert_eq(n.calls, 2);
	loop_free(l);
}

/* Timers that are armed far ahead and cancelled early, as those of requests
 * are. The alarm that remains set may cost a turn, but must call nothing. */
Test(loop, cancelled_timers)
{
	struct loop *l = make_loop(NULL);
	unsigned int before; /* not 0 if a turn took longer than 1 ms */
	struct note n, last;

	note_init(&n, l);
	note_init(&last, l);
	for (unsigned int i = 1; i < 100; i++) {
		loop_timer_arm(l, &n.timer, loop_now(l) + i * NSEC_PER_MSEC);
		loop_run_once(l, false);
		loop_timer_cancel(l, &n.timer);
	}
	before = n.calls;
	loop_timer_arm(l, &last.timer, loop_now(l) + 20 * NSEC_PER_MSEC);
	while (!last.calls)
		loop_run_once(l, true);
	cr_assert_eq(n.calls, before);
	loop_free(l);
}

Test(loop, defer)
{
	struct loop *l = make_loop(NULL);
	struct note a, b;

	note_init(&a, l);
	note_init(&b, l);
	loop_defer(l, &a.work);
	loop_defer(l, &b.work);
	cr_assert_eq(a.calls + b.calls, 0);
	loop_run_once(l, true);
	cr_assert_eq(a.calls, 1);
	cr_assert_eq(b.calls, 1);
	loop_free(l);
}

struct chain {
	struct work work;
	struct loop *loop;
	void (*again)(struct loop *l, struct work *w);
	unsigned int left;
	const struct chain *other;
};

static void chain_step(struct work *w)
{
	struct chain *c = container_of(w, struct chain, work);

	if (--c->left)
		c->again(c->loop, w);
}

Test(loop, deferred_work_may_defer_more)
{
	struct loop *l = make_loop(NULL);
	struct chain c = {
		.work.fn = chain_step, .loop = l, .again = loop_defer, .left = 5
	};

	loop_post(l, &c.work);
	loop_run_once(l, true);
	cr_assert_eq(c.left, 0, "all in one turn");
	loop_free(l);
}

static void note_left(struct work *w)
{
	struct chain *last = container_of(w, struct chain, work);

	/* What was left of the other kind of work when this one ran. */
	last->left = last->other->left;
}

/* Work of loop_defer_last() runs after all other work, unless that never
 * ends. */
Test(loop, last_work_comes_after_all_other)
{
	struct loop *l = make_loop(NULL);
	struct chain c = {
		.work.fn = chain_step, .loop = l, .again = loop_defer, .left = 5
	};
	struct chain last = { .work.fn = note_left, .left = 99, .other = &c };

	loop_defer_last(l, &last.work);
	loop_defer(l, &c.work);
	loop_run_once(l, true);
	cr_assert_eq(last.left, 0);
	c.left = 1000000;
	loop_defer_last(l, &last.work);
	loop_defer(l, &c.work);
	loop_run_once(l, true);
	cr_assert_gt(c.left, 0, "the turn has ended");
	cr_assert_eq(last.left, c.left);
	while (c.left)
		loop_run_once(l, true);
	loop_free(l);
}

/* A timer expires even though each work defers another one. */
Test(loop, endless_work_lets_timers_in)
{
	struct loop *l = make_loop(NULL);
	struct chain c = { .work.fn = chain_step,
			   .loop = l,
			   .again = loop_defer,
			   .left = 1000000 };
	struct note n;

	note_init(&n, l);
	loop_defer(l, &c.work);
	loop_run_once(l, true);
	cr_assert_gt(c.left, 0, "the turn has ended");
	loop_timer_arm(l, &n.timer, clock_now());
	loop_run_once(l, true);
	cr_assert_eq(n.calls, 1);
	while (c.left)
		loop_run_once(l, true);
	loop_free(l);
}

/* Only the post itself can end the wait of each loop_run_once(). */
Test(loop, post_to_oneself_does_not_sleep)
{
	struct loop *l = make_loop(NULL);
	struct chain c = {
		.work.fn = chain_step, .loop = l, .again = loop_post, .left = 5
	};

	loop_defer(l, &c.work);
	while (c.left)
		loop_run_once(l, true);
	loop_free(l);
}

Test(loop, wake_before_sleep_is_not_lost)
{
	struct loop *l = make_loop(NULL);
	struct note n;

	note_init(&n, l);
	loop_run_once(l, false);
	loop_post(l, &n.work);
	loop_run_once(l, true);
	cr_assert_eq(n.calls, 1);
	l->env->ops->wake(l->env);
	loop_run_once(l, true);
	loop_free(l);
}

/* ---- threads ---- */

static void *run_loop(void *arg)
{
	loop_run(arg);
	return NULL;
}

static int count_call(void *arg)
{
	unsigned int *n = arg;

	return (int)++*n;
}

struct running {
	struct loop *loop;
	pthread_t thread;
	struct note started;
};

static void start(struct running *r)
{
	r->loop = make_loop(NULL);
	note_init(&r->started, r->loop);
	loop_post(r->loop, &r->started.work);
	cr_assert_eq(pthread_create(&r->thread, NULL, run_loop, r->loop), 0);
	/* Waits until that thread has become the owner. */
	while (loop_is_owner(r->loop))
		sleep_ms(1);
}

static void stop(struct running *r)
{
	loop_stop(r->loop);
	cr_assert_eq(pthread_join(r->thread, NULL), 0);
	cr_assert_eq(r->started.calls, 1);
	loop_free(r->loop);
}

Test(loop, call_from_a_plain_thread)
{
	struct running r;
	unsigned int calls = 0;

	start(&r);
	for (int i = 1; i <= 100; i++)
		cr_assert_eq(loop_call(r.loop, count_call, &calls), i);
	stop(&r);
}

struct cross {
	struct loop *other;
	unsigned int calls;
};

static int call_other(void *arg)
{
	struct cross *c = arg;

	return loop_call(c->other, count_call, &c->calls);
}

Test(loop, call_from_another_loop)
{
	struct running a, b;
	struct cross c = { .calls = 0 };

	start(&a);
	start(&b);
	c.other = b.loop;
	cr_assert_eq(loop_call(a.loop, call_other, &c), -EXDEV);
	cr_assert_eq(c.calls, 0);
	c.other = a.loop;
	cr_assert_eq(loop_call(a.loop, call_other, &c), 1, "on the owner");
	stop(&a);
	stop(&b);
}

static void *post_later(void *arg)
{
	struct note *n = arg;

	sleep_ms(20);
	loop_post(n->loop, &n->work);
	return NULL;
}

Test(loop, post_wakes_a_sleeping_loop)
{
	struct loop *l = make_loop(NULL);
	pthread_t thread;
	struct note n;

	note_init(&n, l);
	cr_assert_eq(pthread_create(&thread, NULL, post_later, &n), 0);
	while (!n.calls)
		loop_run_once(l, true);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	loop_free(l);
}

Test(loop, stop_sticks)
{
	struct loop *l = make_loop(NULL);
	struct note n;

	note_init(&n, l);
	loop_stop(l);
	loop_run_once(l, false);
	loop_post(l, &n.work);
	loop_run(l);
	cr_assert_eq(n.calls, 1);
	loop_run(l);
	loop_free(l);
}

/* ---- turns that take too long ---- */

static uint64_t fake_now;

/* For tests that also set env_ops.starved: whether this thread really had to
 * wait for a processor would make a difference. */
static uint64_t fake_clock(struct env *e)
{
	(void)e;
	return fake_now;
}

static unsigned int long_turns, names;

static void on_line(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	long_turns += strstr(line, "a turn took") != NULL;
	names += strstr(line, "blocker 1 took 500 ms") != NULL;
	cr_assert(!strstr(line, "caller"));
}

struct blocker {
	struct work work;
	struct loop *loop;
	uint64_t ns;
};

/* Pretends that the turn has taken so many ticks that the guard reads the
 * clock. */
static void ticks_pass(struct loop *l)
{
	l->guard.late = 1;
}

static void block(struct work *w)
{
	struct blocker *b = container_of(w, struct blocker, work);

	fake_now += b->ns;
	ticks_pass(b->loop);
	loop_guard_end(b->loop, "blocker %d", 1);
	/* The enclosing call is not blamed, too. */
	ticks_pass(b->loop);
	loop_guard_end(b->loop, "caller");
}

static void turn_of(struct blocker *b, uint64_t ns)
{
	b->ns = ns;
	loop_post(b->loop, &b->work);
	loop_run_once(b->loop, false);
}

Test(loop, a_long_call_is_named_once)
{
	struct loop *l = make_loop(NULL);
	struct blocker b = { .loop = l, .work.fn = block };
	struct env_ops ops = *l->env->ops;

	fake_now = l->now;
	ops.clock = fake_clock;
	ops.starved = NULL;
	l->env->ops = &ops;
	log_setup(LOG_WARN, on_line, NULL);
	turn_of(&b, GUARD_LONG);
	cr_assert_eq(long_turns + names, 0);
	turn_of(&b, GUARD_LONG + 1);
	cr_assert_eq(names, 1);
	turn_of(&b, GUARD_LONG + 1);
	cr_assert_eq(names, 1);
	cr_assert_eq(long_turns, 0);
	log_setup(LOG_WARN, NULL, NULL);
	loop_free(l);
}

/* How long a tick takes is known once two turns are far enough apart; and not
 * under virtual time. */
Test(loop, rate_of_ticks)
{
	const uint64_t third = (UINT64_C(1) << 32) / 3;
	struct tick_rate r = { 0 };

	if (!TICK_FINE)
		cr_skip_test("the tick counter is too coarse");
	tick_rate_learn(&r, 7000, 1000);
	cr_assert_eq(r.ns, 0);
	cr_assert_eq(r.due, 1000 + TICK_LEARN);
	tick_rate_learn(&r, 7000 + 3 * TICK_LEARN, 1000 + TICK_LEARN);
	cr_assert_eq(r.ns, third);
	cr_assert_eq(r.due, 1000 + 10 * TICK_LEARN);
	/* A longer time counts more. */
	tick_rate_learn(&r, 7000 + 60 * TICK_LEARN, 1000 + 30 * TICK_LEARN);
	cr_assert_eq(r.ns, UINT64_C(1) << 31);
	/* The counter stands. */
	tick_rate_learn(&r, 7000, 1000 + 300 * TICK_LEARN);
	cr_assert_eq(r.ns, 0);
}

static uint64_t fake_waited;

static uint64_t fake_starved(struct env *env)
{
	(void)env;
	return fake_waited;
}

static void wait_for_a_processor(struct work *w)
{
	struct blocker *b = container_of(w, struct blocker, work);

	fake_now += b->ns;
	fake_waited += b->ns - GUARD_LONG;
	ticks_pass(b->loop);
	loop_guard_end(b->loop, "blocker %d", 1);
}

/* Nobody is blamed for the time in which the thread had no processor: neither
 * the call, nor the turn. */
Test(loop, time_without_a_processor_is_not_blamed)
{
	struct loop *l = make_loop(NULL);
	struct blocker b = { .loop = l, .work.fn = wait_for_a_processor };
	struct env_ops ops = *l->env->ops;

	fake_now = l->now;
	/* What was before the first turn does not count. */
	fake_waited = 100 * NSEC_PER_SEC;
	ops.clock = fake_clock;
	ops.starved = fake_starved;
	l->env->ops = &ops;
	log_setup(LOG_WARN, on_line, NULL);
	turn_of(&b, GUARD_LONG);
	for (unsigned int i = 0; i < 3; i++)
		turn_of(&b, 20 * GUARD_LONG);
	cr_assert_eq(long_turns + names, 0);
	b.work.fn = block;
	turn_of(&b, GUARD_LONG + 1);
	cr_assert_eq(names, 1);
	log_setup(LOG_WARN, NULL, NULL);
	loop_free(l);
}

static void call_after_others(struct work *w)
{
	struct blocker *b = container_of(w, struct blocker, work);

	fake_now += b->ns;
	ticks_pass(b->loop);
	loop_guard_others(b->loop);
	ticks_pass(b->loop);
	loop_guard_end(b->loop, "caller");
}

/* Time that others use in the middle of a turn is blamed on no call. */
Test(loop, time_of_others_is_not_blamed_on_a_call)
{
	struct loop *l = make_loop(NULL);
	struct blocker b = { .loop = l, .work.fn = call_after_others };
	struct env_ops ops = *l->env->ops;

	fake_now = l->now;
	ops.clock = fake_clock;
	ops.starved = NULL;
	l->env->ops = &ops;
	log_setup(LOG_WARN, on_line, NULL);
	turn_of(&b, GUARD_LONG + 1);
	cr_assert_eq(long_turns, 1);
	log_setup(LOG_WARN, NULL, NULL);
	loop_free(l);
}

/* A turn that is long because of many short calls: none of them is named. */
Test(loop, short_calls_of_a_long_turn_are_not_named)
{
	struct loop *l = make_loop(NULL);
	struct blocker b[3];
	struct env_ops ops = *l->env->ops;

	fake_now = l->now;
	ops.clock = fake_clock;
	ops.starved = NULL;
	l->env->ops = &ops;
	log_setup(LOG_WARN, on_line, NULL);
	for (unsigned int n = 0; n < 2; n++) {
		for (size_t i = 0; i < ARRAY_SIZE(b); i++) {
			b[i] = (struct blocker){ .loop = l,
						 .work.fn = block,
						 .ns = GUARD_LONG / 2 };
			loop_post(l, &b[i].work);
		}
		loop_run_once(l, false);
	}
	cr_assert_eq(long_turns, 1);
	cr_assert_eq(names, 0);
	log_setup(LOG_WARN, NULL, NULL);
	loop_free(l);
}
