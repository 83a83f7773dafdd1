/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "base/hash.h"
#include "base/loop.h"
#include "tests/unit/base/note.h"

#define LOOPS 3

struct world {
	struct env_sim *sim;
	struct loop *loops[LOOPS];
};

static struct loop *add_loop(struct env_sim *sim)
{
	struct loop *l;
	struct env *e;

	cr_assert_eq(env_sim_env(sim, &e), 0);
	cr_assert_eq(loop_new(e, &l), 0);
	return l;
}

static void world_init(struct world *w, uint64_t seed)
{
	cr_assert_eq(env_sim_new(seed, &w->sim), 0);
	for (unsigned int i = 0; i < LOOPS; i++)
		w->loops[i] = add_loop(w->sim);
}

static void world_fini(struct world *w)
{
	for (unsigned int i = 0; i < LOOPS; i++)
		loop_free(w->loops[i]);
	env_sim_free(w->sim);
}

static void run(struct world *w, uint64_t until)
{
	while (env_sim_step(w->sim, until))
		;
}

Test(env_sim, nothing_to_do)
{
	struct world w;

	world_init(&w, 1);
	cr_assert(!env_sim_step(w.sim, TIME_NEVER));
	cr_assert_eq(env_sim_now(w.sim), 0);
	cr_assert(!env_sim_step(w.sim, 1000));
	cr_assert_eq(env_sim_now(w.sim), 1000);
	cr_assert(!env_sim_step(w.sim, 10));
	cr_assert_eq(env_sim_now(w.sim), 1000);
	cr_assert_eq(loop_now(w.loops[1]), 1000, "outside of turns, too");
	world_fini(&w);
}

Test(env_sim, timers_at_their_times)
{
	static const uint64_t at[] = { 5, 100 * NSEC_PER_SEC, 7, 4096,
				       NSEC_PER_SEC };
	struct note n[ARRAY_SIZE(at)];
	struct world w;

	world_init(&w, 1);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		note_init(&n[i], w.loops[i % LOOPS]);
		loop_timer_arm(n[i].loop, &n[i].timer, at[i]);
	}
	run(&w, 4095);
	cr_assert_eq(env_sim_now(w.sim), 4095);
	cr_assert_eq(n[0].calls + n[2].calls, 2);
	cr_assert_eq(n[3].calls, 0);
	run(&w, TIME_NEVER);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		cr_assert_eq(n[i].calls, 1);
		cr_assert_eq(n[i].at, at[i]);
	}
	cr_assert_eq(env_sim_now(w.sim), 100 * NSEC_PER_SEC);
	world_fini(&w);
}

/* However far away a timer is, it takes one step for the clock and one for the
 * turn. */
Test(env_sim, far_timer_costs_two_steps)
{
	struct world w;
	struct note n;
	int steps = 0;

	world_init(&w, 1);
	note_init(&n, w.loops[0]);
	loop_timer_arm(n.loop, &n.timer, 12345678901234567);
	while (env_sim_step(w.sim, TIME_NEVER))
		steps++;
	cr_assert_eq(n.calls, 1);
	cr_assert_eq(steps, 2);
	world_fini(&w);
}

Test(env_sim, cancelled_timer_leaves_nothing_to_do)
{
	struct world w;
	struct note n;

	world_init(&w, 1);
	note_init(&n, w.loops[0]);
	loop_timer_arm(n.loop, &n.timer, 1000);
	loop_timer_cancel(n.loop, &n.timer);
	cr_assert(!env_sim_step(w.sim, TIME_NEVER));
	cr_assert_eq(n.calls, 0);
	world_fini(&w);
}

Test(env_sim, post_and_defer_take_no_time)
{
	struct note timer, posted, deferred;
	struct world w;

	world_init(&w, 1);
	note_init(&timer, w.loops[0]);
	note_init(&posted, w.loops[1]);
	note_init(&deferred, w.loops[2]);
	loop_timer_arm(timer.loop, &timer.timer, 50);
	loop_post(posted.loop, &posted.work);
	loop_defer(deferred.loop, &deferred.work);
	cr_assert_eq(deferred.calls, 0, "never inside the call");
	cr_assert(env_sim_step(w.sim, 0));
	cr_assert_eq(posted.calls, 1);
	cr_assert(env_sim_step(w.sim, 0));
	cr_assert_eq(deferred.calls, 1);
	cr_assert(!env_sim_step(w.sim, 0));
	cr_assert_eq(timer.calls, 0);
	loop_timer_cancel(timer.loop, &timer.timer);
	world_fini(&w);
}

static unsigned int order[8], orders;

struct ball {
	struct work work;
	struct loop **loops;
	unsigned int at;
	unsigned int left;
};

static void bounce(struct work *work)
{
	struct ball *b = container_of(work, struct ball, work);

	if (orders < ARRAY_SIZE(order))
		order[orders++] = b->at;
	if (!b->left--)
		return;
	b->at = !b->at;
	loop_post(b->loops[b->at], &b->work);
}

/* Two loops that post to each other without end do not starve a third one. */
Test(env_sim, rounds)
{
	struct ball ball = { .work.fn = bounce, .left = 100 };
	struct note third;
	struct world w;

	world_init(&w, 1);
	ball.loops = w.loops;
	note_init(&third, w.loops[2]);
	loop_post(third.loop, &third.work);
	loop_post(w.loops[0], &ball.work);
	cr_assert(env_sim_step(w.sim, 0));
	cr_assert(env_sim_step(w.sim, 0));
	cr_assert_eq(orders, 2);
	cr_assert_eq(third.calls, 0);
	cr_assert(env_sim_step(w.sim, 0));
	cr_assert_eq(third.calls, 1);
	run(&w, 0);
	cr_assert_eq(ball.left, UINT32_MAX);
	world_fini(&w);
}

static void post_to_self(struct work *work)
{
	struct ball *b = container_of(work, struct ball, work);

	if (b->left--)
		loop_post(b->loops[0], &b->work);
}

Test(env_sim, post_to_oneself_is_seen)
{
	struct ball ball = { .work.fn = post_to_self, .left = 10 };
	struct world w;

	world_init(&w, 1);
	ball.loops = w.loops;
	loop_defer(w.loops[0], &ball.work);
	run(&w, 0);
	cr_assert_eq(ball.left, UINT32_MAX);
	world_fini(&w);
}

static int nothing(void *arg)
{
	(void)arg;
	return 42;
}

static void call_another(struct work *work)
{
	struct ball *b = container_of(work, struct ball, work);

	cr_assert(loop_is_owner(b->loops[0]));
	cr_assert(!loop_is_owner(b->loops[1]));
	cr_assert_eq(loop_call(b->loops[0], nothing, NULL), 42);
	cr_assert_eq(loop_call(b->loops[1], nothing, NULL), -EXDEV);
	b->left = 1;
}

Test(env_sim, loops_of_one_thread_are_kept_apart)
{
	struct ball ball = { .work.fn = call_another };
	struct world w;

	world_init(&w, 1);
	ball.loops = w.loops;
	cr_assert_null(loop_current());
	cr_assert(loop_is_owner(w.loops[0]) && loop_is_owner(w.loops[1]));
	cr_assert_eq(loop_call(w.loops[1], nothing, NULL), 42);
	loop_post(w.loops[0], &ball.work);
	run(&w, 0);
	cr_assert_eq(ball.left, 1);
	world_fini(&w);
}

Test(env_sim, run_once_blocks_in_virtual_time)
{
	struct note far, near;
	struct world w;

	world_init(&w, 1);
	note_init(&far, w.loops[0]);
	note_init(&near, w.loops[1]);
	loop_timer_arm(far.loop, &far.timer, 1000);
	loop_timer_arm(near.loop, &near.timer, 500);
	loop_run_once(far.loop, false);
	cr_assert_eq(env_sim_now(w.sim), 0);
	loop_run_once(far.loop, true);
	cr_assert_eq(env_sim_now(w.sim), 1000);
	cr_assert_eq(far.calls, 1);
	cr_assert_eq(near.calls, 1);
	world_fini(&w);
}

/* A loop watches one of a pair of sockets. */
struct end {
	struct env_io io;
	struct loop *loop;
	struct env_sim *sim;
	int other;	/* what is written to it comes to io.fd */
	uint64_t heard; /* ns: when it was last called */
	unsigned int calls, left;
	unsigned int news; /* things that the system does not know of */
};

static void end_on_ready(struct env_io *io, int revents)
{
	struct end *end = container_of(io, struct end, io);
	char byte;

	cr_assert_eq(revents, ENV_READ);
	end->heard = env_sim_now(end->sim);
	end->calls++;
	end->news -= end->news > 0;
	while (read(io->fd, &byte, 1) == 1)
		end->left--;
}

static bool end_rest(struct env_io *io)
{
	return !container_of(io, struct end, io)->news;
}

static void end_open(struct end *end, struct world *w, struct loop *loop)
{
	int fd[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd),
		     0);
	*end = (struct end){ .io = { .fd = fd[0],
				     .events = ENV_READ,
				     .fn = end_on_ready,
				     .rest = end_rest },
			     .loop = loop,
			     .sim = w->sim,
			     .other = fd[1] };
	cr_assert_eq(loop_watch(loop, &end->io), 0);
}

static void end_write(struct end *end)
{
	cr_assert_eq(write(end->other, "x", 1), 1);
	end->left++;
}

static void end_close(struct end *end)
{
	loop_unwatch(end->loop, &end->io);
	close(end->io.fd);
	close(end->other);
}

Test(env_sim, descriptors_are_heard_of)
{
	struct world w;
	struct end end;

	world_init(&w, 1);
	end_open(&end, &w, w.loops[0]);
	run(&w, TIME_NEVER);
	cr_assert_eq(end.calls, 0);
	end_write(&end);
	run(&w, TIME_NEVER);
	cr_assert_eq(end.calls, 1);
	cr_assert_eq(end.heard, 0, "at once");
	/* It is called again for what only memory tells. */
	end.news = 2;
	end_write(&end);
	run(&w, TIME_NEVER);
	cr_assert_eq(end.calls, 3);
	cr_assert_eq(end.left, 0);
	end_close(&end);
	world_fini(&w);
}

Test(env_sim, descriptors_are_heard_of_late)
{
	uint64_t heard[2];

	for (unsigned int i = 0; i < 2; i++) {
		struct world w;
		struct end end;

		world_init(&w, 1);
		env_sim_delay(w.sim, 1000000);
		end_open(&end, &w, w.loops[0]);
		env_sim_freeze(w.loops[0]->env, 500);
		end_write(&end);
		run(&w, TIME_NEVER);
		cr_assert_eq(end.calls, 1);
		heard[i] = end.heard;
		end_close(&end);
		world_fini(&w);
	}
	cr_assert(heard[0] >= 500 && heard[0] < 1000000);
	cr_assert_eq(heard[0], heard[1], "a seed has the same run each time");
}

Test(env_sim, a_descriptor_that_is_not_asked_for_waits)
{
	struct world w;
	struct end end;

	world_init(&w, 1);
	end_open(&end, &w, w.loops[0]);
	end.io.events = 0;
	cr_assert_eq(loop_watch(end.loop, &end.io), 0);
	end_write(&end);
	run(&w, TIME_NEVER);
	cr_assert_eq(end.calls, 0);
	end.io.events = ENV_READ;
	cr_assert_eq(loop_watch(end.loop, &end.io), 0);
	run(&w, TIME_NEVER);
	cr_assert_eq(end.calls, 1);
	end_close(&end);
	world_fini(&w);
}

Test(env_sim, what_only_memory_tells_is_kept)
{
	struct world w;
	struct end end;

	world_init(&w, 1);
	end_open(&end, &w, w.loops[0]);
	end.news = 2;
	end_write(&end);
	while (!end.calls)
		cr_assert(env_sim_step(w.sim, TIME_NEVER));
	end.io.events = 0;
	cr_assert_eq(loop_watch(end.loop, &end.io), 0);
	run(&w, TIME_NEVER);
	cr_assert_eq(end.calls, 1);
	end.io.events = ENV_READ;
	cr_assert_eq(loop_watch(end.loop, &end.io), 0);
	run(&w, TIME_NEVER);
	cr_assert_eq(end.calls, 2);
	end_close(&end);
	world_fini(&w);
}

Test(env_sim, hangs_up)
{
	struct world w;
	struct end end;
	char byte;

	world_init(&w, 1);
	end_open(&end, &w, w.loops[0]);
	env_sim_hang_up(w.loops[1]->env);
	cr_assert_lt(read(end.other, &byte, 1), 0, "not yet");
	env_sim_hang_up(w.loops[0]->env);
	run(&w, TIME_NEVER);
	cr_assert_eq(end.calls, 0, "its own loop hears of nothing");
	cr_assert_eq(read(end.other, &byte, 1), 0, "the end");
	end_close(&end);
	world_fini(&w);
}

Test(env_sim, loop_freed_in_the_middle_of_a_round)
{
	struct note n[LOOPS + 1];
	struct world w;
	struct loop *extra;

	world_init(&w, 1);
	for (unsigned int i = 0; i < LOOPS; i++) {
		note_init(&n[i], w.loops[i]);
		loop_post(n[i].loop, &n[i].work);
	}
	cr_assert(env_sim_step(w.sim, 0));
	cr_assert(env_sim_step(w.sim, 0));
	loop_free(w.loops[1]);
	extra = add_loop(w.sim);
	note_init(&n[LOOPS], extra);
	loop_post(extra, &n[LOOPS].work);
	w.loops[1] = extra;
	run(&w, TIME_NEVER);
	for (unsigned int i = 0; i <= LOOPS; i++)
		cr_assert_eq(n[i].calls, 1);
	world_fini(&w);
}

/* A random program: every event adds itself to a hash of the run, and creates
 * others. */
struct actor {
	struct timer timer;
	struct work work;
	struct program *program;
	struct loop *loop;
	bool posted;
};

struct program {
	struct world w;
	struct actor actors[30];
	uint64_t trace;
	unsigned int left;
};

static void act(struct actor *a)
{
	struct program *p = a->program;
	struct actor *b;
	uint64_t r = loop_random(a->loop);

	p->trace = hash_u64(p->trace ^ loop_now(a->loop),
			    (uint64_t)(a - p->actors));
	if (!p->left)
		return;
	p->left--;
	b = &p->actors[r % ARRAY_SIZE(p->actors)];
	if (!b->posted) {
		b->posted = true;
		loop_post(b->loop, &b->work);
	}
	if (!timer_armed(&a->timer))
		loop_timer_arm(a->loop, &a->timer,
			       loop_now(a->loop) + 1 + (r >> 44));
}

static void act_timer(struct timer *t)
{
	act(container_of(t, struct actor, timer));
}

static void act_work(struct work *w)
{
	struct actor *a = container_of(w, struct actor, work);

	a->posted = false;
	act(a);
}

static uint64_t run_program(uint64_t seed)
{
	static struct program p;

	p = (struct program){ .left = 20000 };
	world_init(&p.w, seed);
	for (unsigned int i = 0; i < ARRAY_SIZE(p.actors); i++) {
		struct actor *a = &p.actors[i];

		a->program = &p;
		a->loop = p.w.loops[i % LOOPS];
		a->work.fn = act_work;
		timer_init(&a->timer, act_timer);
	}
	p.actors[0].posted = true;
	loop_post(p.actors[0].loop, &p.actors[0].work);
	run(&p.w, TIME_NEVER);
	cr_assert_eq(p.left, 0);
	p.trace ^= env_sim_now(p.w.sim) ^ env_sim_random(p.w.sim);
	world_fini(&p.w);
	return p.trace;
}

Test(env_sim, same_seed_same_run)
{
	uint64_t first = run_program(1);
	void *other_heap = malloc(777);

	cr_assert_eq(run_program(1), first);
	cr_assert_neq(run_program(2), first);
	cr_assert_eq(run_program(1), first);
	free(other_heap);
}

/* Reference values of the published splitmix64 and xoshiro256**. */
Test(rng, known_values)
{
	struct rng r = { { 1, 2, 3, 4 } };

	cr_assert_eq(rng_next(&r), UINT64_C(11520));
	cr_assert_eq(rng_next(&r), UINT64_C(0));
	cr_assert_eq(rng_next(&r), UINT64_C(1509978240));
	rng_seed(&r, 1234567);
	cr_assert_eq(r.s[0], UINT64_C(6457827717110365317));
	cr_assert_eq(r.s[1], UINT64_C(3203168211198807973));
}

Test(rng, below)
{
	static const uint64_t bounds[] = { 1,	      2,    3,
					   10,	      1000, UINT64_C(3) << 62,
					   UINT64_MAX };
	unsigned int hits[10] = { 0 };
	struct rng r;

	rng_seed(&r, 7);
	cr_assert_eq(rng_below(&r, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
		for (unsigned int k = 0; k < 1000; k++)
			cr_assert_lt(rng_below(&r, bounds[i]), bounds[i]);
	}
	for (unsigned int k = 0; k < 100000; k++)
		hits[rng_below(&r, 10)]++;
	for (unsigned int k = 0; k < 10; k++)
		cr_assert(hits[k] > 9500 && hits[k] < 10500);
}
