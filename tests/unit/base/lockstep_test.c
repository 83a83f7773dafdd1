/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include "base/cond.h"
#include "base/env.h"
#include "base/lockstep.h"
#include "base/loop.h"

#define THREADS 3

struct world;

struct guest {
	struct lockstep_thread thread;
	struct world *w;
	char name;
	uint64_t sleep;
	uint64_t held; /* until when it gets no turn */
	int status;    /* result of the wait */
};

struct world {
	struct env_sim *sim;
	struct loop *loop;
	struct lockstep *ls;
	struct guest guest[THREADS];
	pthread_mutex_t lock;
	struct cond cond;
	bool ready;
	char said[64];
	unsigned int n;
};

static void say(struct world *w, char c)
{
	cr_assert_lt(w->n, sizeof(w->said) - 1);
	w->said[w->n++] = c;
}

static void world_init(struct world *w)
{
	struct env *e;

	*w = (struct world){ .lock = PTHREAD_MUTEX_INITIALIZER };
	cr_assert_eq(env_sim_new(1, &w->sim), 0);
	cr_assert_eq(env_sim_env(w->sim, &e), 0);
	cr_assert_eq(loop_new(e, &w->loop), 0);
	cr_assert_eq(cond_init(&w->cond), 0);
	w->ls = e->lockstep;
}

static void start(struct world *w, unsigned int i, void (*fn)(void *arg))
{
	w->guest[i].w = w;
	w->guest[i].name = (char)('a' + i);
	cr_assert_eq(lockstep_start(w->ls, &w->guest[i].thread,
				    &w->guest[i].held, fn, &w->guest[i]),
		     0);
}

static void run(struct world *w)
{
	while (env_sim_step(w->sim, TIME_NEVER))
		;
}

static void world_fini(struct world *w, unsigned int guests)
{
	for (unsigned int i = 0; i < guests; i++)
		lockstep_join(&w->guest[i].thread);
	cond_destroy(&w->cond);
	loop_free(w->loop);
	env_sim_free(w->sim);
}

/* ---- time ---- */

static void sleeper(void *arg)
{
	struct guest *g = arg;
	struct world *w = g->w;

	say(w, g->name);
	pthread_mutex_lock(&w->lock);
	g->status = cond_wait(&w->cond, &w->lock, g->sleep);
	pthread_mutex_unlock(&w->lock);
	cr_assert_eq(env_sim_now(w->sim), MAX(g->sleep, g->held));
	say(w, (char)(g->name - 'a' + 'A'));
}

/* Threads begin in order of creation, and go on in the order of their times. */
Test(lockstep, sleep)
{
	struct world w;

	world_init(&w);
	for (unsigned int i = 0; i < THREADS; i++) {
		w.guest[i].sleep = 3000 - 1000 * i;
		start(&w, i, sleeper);
	}
	cr_assert_str_eq(w.said, "", "nobody runs before he has the turn");
	run(&w);
	cr_assert_str_eq(w.said, "abcCBA");
	cr_assert_eq(env_sim_now(w.sim), 3000);
	for (unsigned int i = 0; i < THREADS; i++)
		cr_assert_eq(w.guest[i].status, -ETIMEDOUT);
	world_fini(&w, THREADS);
}

/* A thread whose process is stopped goes on when that goes on, and keeps nobody
 * else waiting. */
Test(lockstep, held)
{
	struct world w;

	world_init(&w);
	for (unsigned int i = 0; i < THREADS; i++) {
		w.guest[i].sleep = 1000;
		start(&w, i, sleeper);
	}
	while (w.n < THREADS)
		cr_assert(env_sim_step(w.sim, TIME_NEVER));
	w.guest[0].held = 5000;
	run(&w);
	cr_assert_str_eq(w.said, "abcBCA");
	cr_assert_eq(env_sim_now(w.sim), 5000);
	world_fini(&w, THREADS);
}

/* ---- each other ---- */

static void waiter(void *arg)
{
	struct guest *g = arg;
	struct world *w = g->w;

	pthread_mutex_lock(&w->lock);
	while (!g->status && !w->ready)
		g->status = cond_wait_or_end(&w->cond, &w->lock, TIME_NEVER);
	say(w, g->name);
	pthread_mutex_unlock(&w->lock);
}

static void waker(void *arg)
{
	struct guest *g = arg;

	g->w->ready = true;
	cond_broadcast(&g->w->cond);
	say(g->w, g->name);
}

Test(lockstep, wake)
{
	struct world w;

	world_init(&w);
	start(&w, 0, waiter);
	start(&w, 1, waiter);
	run(&w);
	cr_assert_str_eq(w.said, "");
	start(&w, 2, waker);
	run(&w);
	cr_assert_str_eq(w.said, "cab", "%s", w.said);
	cr_assert_eq(env_sim_now(w.sim), 0);
	world_fini(&w, 3);
}

/* A signal wakes one thread, the first that waits. */
Test(lockstep, signal)
{
	struct world w;

	world_init(&w);
	start(&w, 0, waiter);
	start(&w, 1, waiter);
	run(&w);
	w.ready = true;
	cond_signal(&w.cond);
	run(&w);
	cr_assert_str_eq(w.said, "a");
	cond_signal(&w.cond);
	run(&w);
	cr_assert_str_eq(w.said, "ab");
	world_fini(&w, 2);
}

/* ---- loops ---- */

static int tell(void *arg)
{
	say(((struct guest *)arg)->w, 'l');
	return 7;
}

static void caller(void *arg)
{
	struct guest *g = arg;

	cr_assert_not(loop_is_owner(g->w->loop));
	cr_assert_eq(lockstep_current(), &g->thread);
	g->status = loop_call(g->w->loop, tell, g);
	say(g->w, g->name);
}

Test(lockstep, call_of_a_loop)
{
	struct world w;

	world_init(&w);
	start(&w, 0, caller);
	run(&w);
	cr_assert_str_eq(w.said, "la");
	cr_assert_eq(w.guest[0].status, 7);
	cr_assert_null(lockstep_current());
	world_fini(&w, 1);
}

/* ---- the end ---- */

/* lockstep_end() ends its wait, and the next one at once. */
static void stubborn(void *arg)
{
	struct guest *g = arg;

	waiter(g);
	waiter(g);
}

Test(lockstep, end)
{
	struct world w;

	world_init(&w);
	start(&w, 0, stubborn);
	w.guest[1].sleep = 500;
	start(&w, 1, sleeper); /* whose wait is not endable */
	env_sim_step(w.sim, 0);
	env_sim_step(w.sim, 0);
	lockstep_end(&w.guest[0].thread);
	lockstep_end(&w.guest[1].thread);
	run(&w);
	cr_assert_eq(w.guest[0].status, -ECANCELED);
	cr_assert_eq(w.guest[1].status, -ETIMEDOUT);
	cr_assert_str_eq(w.said, "baaB", "%s", w.said);
	world_fini(&w, 2);
}
