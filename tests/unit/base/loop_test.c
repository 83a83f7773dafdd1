/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/log.h"
#include "base/loop.h"
#include "tests/unit/base/note.h"

static struct loop *make_loop(struct ev_loop *ev)
{
	struct loop *l;
	struct env *e;

	cr_assert_eq(env_ev_new(ev, &e), 0);
	cr_assert_eq(loop_new(e, &l), 0);
	return l;
}

static uint64_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static void sleep_ms(unsigned int ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000L };

	nanosleep(&t, NULL);
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
		cr_assert_lt(n[i].at, due + 10 * NSEC_PER_SEC);
	}
	cr_assert_leq(turns, 8, "%u turns: it did not sleep", turns);
	loop_free(l);
}

/* libev's idea of the time is old when the loop has not run for a while. */
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

/* Armed late, cancelled early, again and again, as requests do; the alarm that
 * stays behind may cost a turn but must not fire anything. */
Test(loop, cancelled_timers)
{
	struct loop *l = make_loop(NULL);
	struct note n, last;

	note_init(&n, l);
	note_init(&last, l);
	for (unsigned int i = 1; i < 100; i++) {
		loop_timer_arm(l, &n.timer, loop_now(l) + i * NSEC_PER_MSEC);
		loop_run_once(l, false);
		loop_timer_cancel(l, &n.timer);
	}
	loop_timer_arm(l, &last.timer, loop_now(l) + 20 * NSEC_PER_MSEC);
	while (!last.calls)
		loop_run_once(l, true);
	cr_assert_eq(n.calls, 0);
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

	/* Of the other one, when this one ran. */
	last->left = last->other->left;
}

/* ... but for work that never ends. */
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

/* A timer comes in between, however much work each one makes. */
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

/* Nothing but the post itself could end the wait of each run_once. */
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

struct pipe_io {
	struct env_io io;
	struct loop *loop;
	int fds[2];
	unsigned int reads;
	unsigned int writes;
};

static void on_pipe(struct env_io *io, int revents)
{
	struct pipe_io *p = container_of(io, struct pipe_io, io);
	char c;

	cr_assert_eq(loop_current(), p->loop);
	if (revents & ENV_READ) {
		p->reads++;
		if (read(io->fd, &c, 1) == 0)
			loop_unwatch(p->loop, io);
	}
	if (revents & ENV_WRITE)
		p->writes++;
}

static void pipe_init(struct pipe_io *p, struct loop *l, int end)
{
	*p = (struct pipe_io){ .loop = l };
	cr_assert_eq(pipe(p->fds), 0);
	p->io.fd = p->fds[end];
	p->io.fn = on_pipe;
	p->io.events = end ? ENV_WRITE : ENV_READ;
}

Test(loop, watch_pipe)
{
	struct loop *l = make_loop(NULL);
	struct pipe_io p;

	pipe_init(&p, l, 0);
	cr_assert_eq(loop_watch(l, &p.io), 0);
	loop_run_once(l, false);
	cr_assert_eq(p.reads, 0);
	cr_assert_eq(write(p.fds[1], "ab", 2), 2);
	loop_run_once(l, true);
	cr_assert_eq(p.reads, 1);
	/* Pause, and go on. */
	p.io.events = 0;
	cr_assert_eq(loop_watch(l, &p.io), 0);
	loop_run_once(l, false);
	cr_assert_eq(p.reads, 1);
	p.io.events = ENV_READ;
	cr_assert_eq(loop_watch(l, &p.io), 0);
	loop_run_once(l, true);
	cr_assert_eq(p.reads, 2);
	/* End of file: the function stops the watching itself. */
	close(p.fds[1]);
	loop_run_once(l, true);
	cr_assert_eq(p.reads, 3);
	loop_run_once(l, false);
	cr_assert_eq(p.reads, 3);
	cr_assert_null(p.io.impl);
	loop_unwatch(l, &p.io);
	close(p.fds[0]);
	loop_free(l);
}

struct error_io {
	struct env_io io;
	unsigned int errors, others;
};

static void on_error_io(struct env_io *io, int revents)
{
	struct error_io *e = container_of(io, struct error_io, io);

	if (revents == ENV_ERROR)
		e->errors++;
	else
		e->others++;
}

/* What the system does not let be watched is told to be so: libev stops the
 * watcher, and calls it with all events. */
Test(loop, watch_fails)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct loop *l = make_loop(ev);
	struct error_io e = { .io = { .events = ENV_READ, .fn = on_error_io } };
	struct pipe_io p;

	pipe_init(&p, l, 0);
	e.io.fd = p.fds[0];
	cr_assert_eq(loop_watch(l, &e.io), 0);
	cr_assert_eq(write(p.fds[1], "a", 1), 1);
	ev_io_stop(ev, e.io.impl);
	ev_feed_event(ev, e.io.impl, EV_ERROR | EV_READ | EV_WRITE);
	ev_run(ev, EVRUN_NOWAIT);
	cr_assert_eq(e.errors, 1);
	cr_assert_eq(e.others, 0);
	/* It may be watched anew. */
	cr_assert_eq(loop_watch(l, &e.io), 0);
	ev_run(ev, EVRUN_NOWAIT);
	cr_assert_eq(e.errors, 1);
	cr_assert_eq(e.others, 1);
	loop_unwatch(l, &e.io);
	close(p.fds[0]);
	close(p.fds[1]);
	loop_free(l);
	ev_loop_destroy(ev);
}

Test(loop, watch_for_writing)
{
	struct loop *l = make_loop(NULL);
	struct pipe_io p;

	pipe_init(&p, l, 1);
	cr_assert_eq(loop_watch(l, &p.io), 0);
	loop_run_once(l, true);
	cr_assert_eq(p.writes, 1);
	loop_unwatch(l, &p.io);
	loop_run_once(l, false);
	cr_assert_eq(p.writes, 1);
	close(p.fds[0]);
	close(p.fds[1]);
	loop_free(l);
}

struct flush {
	struct pipe_io p;
	struct work work;
	unsigned int reads_seen;
};

static void on_flush(struct work *w)
{
	struct flush *f = container_of(w, struct flush, work);

	f->reads_seen = f->p.reads;
}

static void on_flush_pipe(struct env_io *io, int revents)
{
	struct flush *f = container_of(io, struct flush, p.io);

	on_pipe(io, revents);
	cr_assert(f->p.loop->in_turn);
	loop_defer(f->p.loop, &f->work);
}

/* What descriptors' functions defer runs in their own turn. */
Test(loop, deferred_by_a_descriptor)
{
	struct loop *l = make_loop(NULL);
	struct flush f = { .work.fn = on_flush };

	pipe_init(&f.p, l, 0);
	f.p.io.fn = on_flush_pipe;
	cr_assert_eq(loop_watch(l, &f.p.io), 0);
	cr_assert_eq(write(f.p.fds[1], "a", 1), 1);
	loop_run_once(l, true);
	cr_assert_eq(f.reads_seen, 1);
	loop_unwatch(l, &f.p.io);
	close(f.p.fds[0]);
	close(f.p.fds[1]);
	loop_free(l);
}

/* ---- descriptors that are tried while polling ---- */

struct hot {
	struct env_io io;
	struct loop *loop;
	int fds[2];
	unsigned int tried; /* and nothing was there */
	unsigned int bytes;
	struct hot *closes; /* unwatches this one when it reads */
};

static void on_hot(struct env_io *io, int revents)
{
	struct hot *h = container_of(io, struct hot, io);
	char c;

	cr_assert_eq(revents, ENV_READ);
	cr_assert(h->loop->in_turn);
	cr_assert_eq(loop_current(), h->loop);
	if (read(io->fd, &c, 1) != 1) {
		cr_assert_eq(errno, EAGAIN);
		h->tried++;
		return;
	}
	h->bytes++;
	if (h->closes)
		loop_unwatch(h->loop, &h->closes->io);
}

static void hot_init(struct hot *h, struct loop *l)
{
	*h = (struct hot){ .loop = l };
	cr_assert_eq(pipe2(h->fds, O_NONBLOCK), 0);
	h->io.fd = h->fds[0];
	h->io.events = ENV_READ;
	h->io.eager = true;
	h->io.fn = on_hot;
	cr_assert_eq(loop_watch(l, &h->io), 0);
}

static void hot_fini(struct hot *h)
{
	loop_unwatch(h->loop, &h->io);
	close(h->fds[0]);
	close(h->fds[1]);
}

static void hot_byte(struct hot *h)
{
	unsigned int before = h->bytes;

	cr_assert_eq(write(h->fds[1], "a", 1), 1);
	while (h->bytes == before)
		loop_run_once(h->loop, false);
}

/* Only those that were active, and asked for it; not while sleeping. */
Test(loop, polling_tries_what_was_active)
{
	struct loop *l = make_loop(NULL);
	struct hot a, b;

	hot_init(&a, l);
	hot_init(&b, l);
	hot_byte(&a);
	while (!a.tried)
		loop_run_once(l, false);
	cr_assert_eq(b.tried, 0);
	/* One that is not tried is heard, too. */
	hot_byte(&b);
	hot_byte(&a);
	a.tried = b.tried = 0;
	cr_assert_eq(write(a.fds[1], "a", 1), 1);
	loop_run_once(l, true);
	cr_assert_eq(a.tried + b.tried, 0);
	cr_assert_eq(a.bytes, 3);
	hot_fini(&a);
	hot_fini(&b);
	loop_free(l);
}

Test(loop, what_is_not_watched_is_not_tried)
{
	struct loop *l = make_loop(NULL);
	struct hot a, b;

	hot_init(&a, l);
	hot_init(&b, l);
	hot_byte(&a);
	hot_byte(&b);
	/* From within a turn that may be about to try it. */
	b.closes = &a;
	hot_byte(&b);
	a.tried = b.tried = 0;
	while (!b.tried)
		loop_run_once(l, false);
	cr_assert_eq(a.tried, 0);
	/* Paused: watched for nothing. */
	b.io.events = 0;
	cr_assert_eq(loop_watch(l, &b.io), 0);
	b.tried = 0;
	for (unsigned int i = 0; i < 1000; i++)
		loop_run_once(l, false);
	cr_assert_eq(b.tried, 0);
	hot_fini(&a);
	hot_fini(&b);
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
	/* Until that thread has become the owner. */
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

/* ---- on the application's loop ---- */

Test(loop, borrowed_loop_can_end)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct loop *l = make_loop(ev);
	struct note n;

	note_init(&n, l);
	loop_timer_arm(l, &n.timer, loop_now(l) + NSEC_PER_SEC * 1000);
	/* Nothing of the application's own: returns. */
	ev_run(ev, 0);
	loop_timer_cancel(l, &n.timer);
	loop_free(l);
	ev_run(ev, 0);
	ev_loop_destroy(ev);
}

static void watched_loop_can_end(struct ev_loop *ev, struct loop *l)
{
	struct pipe_io p[2];

	for (unsigned int i = 0; i < 2; i++) {
		pipe_init(&p[i], l, 0);
		cr_assert_eq(loop_watch(l, &p[i].io), 0);
	}
	ev_run(ev, 0);
	/* Changed, and paused. */
	p[0].io.events = ENV_READ | ENV_WRITE;
	cr_assert_eq(loop_watch(l, &p[0].io), 0);
	p[0].io.events = ENV_READ;
	cr_assert_eq(loop_watch(l, &p[0].io), 0);
	p[1].io.events = 0;
	cr_assert_eq(loop_watch(l, &p[1].io), 0);
	cr_assert_eq(loop_watch(l, &p[1].io), 0);
	ev_run(ev, 0);
	for (unsigned int i = 0; i < 2; i++) {
		loop_unwatch(l, &p[i].io);
		close(p[i].fds[0]);
		close(p[i].fds[1]);
	}
}

static void count_turn(struct ev_loop *ev, ev_timer *t, int revents)
{
	(void)ev;
	(void)revents;
	++*(unsigned int *)t->data;
}

/* The loop's own sockets do not keep the application's ev_run() from returning,
 * and its own watchers do, as many as there are, before and after. */
Test(loop, watched_descriptors_let_a_borrowed_loop_end)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct loop *l = make_loop(ev);
	unsigned int calls = 0;
	ev_timer t;

	watched_loop_can_end(ev, l);
	ev_timer_init(&t, count_turn, 0.001, 0);
	t.data = &calls;
	ev_timer_start(ev, &t);
	ev_run(ev, 0);
	cr_assert_eq(calls, 1);
	watched_loop_can_end(ev, l);
	loop_free(l);
	ev_timer_start(ev, &t);
	ev_run(ev, 0);
	cr_assert_eq(calls, 2);
	ev_loop_destroy(ev);
}

/* ---- turns that take too long ---- */

static uint64_t fake_now;

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
	names += strstr(line, "blocker 1 took") != NULL;
}

struct blocker {
	struct work work;
	struct loop *loop;
	uint64_t ns;
};

static void block(struct work *w)
{
	struct blocker *b = container_of(w, struct blocker, work);
	uint64_t begun = loop_guard_begin(b->loop), inner;

	inner = loop_guard_begin(b->loop);
	fake_now += b->ns;
	loop_guard_end(b->loop, inner, "blocker %d", 1);
	/* Who called it is not to blame. */
	loop_guard_end(b->loop, begun, "blocker %d took", 1);
}

static void turn_of(struct blocker *b, uint64_t ns)
{
	b->ns = ns;
	loop_post(b->loop, &b->work);
	loop_run_once(b->loop, false);
}

Test(loop, who_takes_too_long_is_named_once)
{
	struct loop *l = make_loop(NULL);
	struct blocker b = { .loop = l, .work.fn = block };
	struct env_ops ops = *l->env->ops;

	fake_now = l->now;
	ops.clock = ops.clock_coarse = fake_clock;
	l->env->ops = &ops;
	log_setup(LOG_WARN, on_line, NULL);
	turn_of(&b, GUARD_LONG);
	cr_assert_eq(long_turns + names, 0);
	turn_of(&b, GUARD_LONG + 1);
	cr_assert_eq(long_turns, 1);
	cr_assert_eq(names, 0);
	/* All calls are measured now. */
	turn_of(&b, GUARD_LONG - 1);
	cr_assert_eq(names, 0);
	turn_of(&b, GUARD_LONG + 1);
	turn_of(&b, GUARD_LONG + 1);
	cr_assert_eq(long_turns, 1);
	cr_assert_eq(names, 1);
	/* Until nothing has been too long for a while. */
	cr_assert(l->guard.watching);
	fake_now += GUARD_WATCH;
	turn_of(&b, 0);
	turn_of(&b, 1);
	cr_assert(!l->guard.watching);
	turn_of(&b, GUARD_LONG + 1);
	cr_assert_eq(long_turns, 2);
	turn_of(&b, GUARD_LONG + 1);
	cr_assert_eq(names, 1);
	log_setup(LOG_WARN, NULL, NULL);
	loop_free(l);
}

/* ---- for other event loops ---- */

static bool readable(int fd, int timeout)
{
	struct pollfd p = { fd, POLLIN, 0 };
	int n = poll(&p, 1, timeout);

	cr_assert_geq(n, 0);
	return n;
}

/* Turns until there is nothing to do; returns how many. */
static unsigned int settle(struct loop *l, int fd)
{
	unsigned int turns = 0;

	while (loop_next(l) <= loop_now(l) || readable(fd, 0)) {
		loop_run_once(l, false);
		turns++;
		cr_assert_leq(turns, 5, "it never comes to rest");
	}
	return turns;
}

static int loop_fd_of(struct loop *l)
{
	int fd = loop_fd(l);

	cr_assert_geq(fd, 0);
	cr_assert_eq(loop_fd(l), fd);
	return fd;
}

Test(loop, descriptors_show_elsewhere)
{
	struct loop *l = make_loop(NULL);
	int fd = loop_fd_of(l);
	struct pipe_io p;

	settle(l, fd);
	cr_assert_eq(loop_next(l), TIME_NEVER);
	pipe_init(&p, l, 0);
	cr_assert_eq(loop_watch(l, &p.io), 0);
	cr_assert_eq(write(p.fds[1], "ab", 2), 2);
	cr_assert(readable(fd, -1));
	loop_run_once(l, false);
	cr_assert_eq(p.reads, 1);
	/* Paused, with something to read: silent. */
	p.io.events = 0;
	cr_assert_eq(loop_watch(l, &p.io), 0);
	cr_assert(!readable(fd, 0));
	settle(l, fd);
	cr_assert_eq(p.reads, 1);
	p.io.events = ENV_READ;
	cr_assert_eq(loop_watch(l, &p.io), 0);
	settle(l, fd);
	cr_assert_eq(p.reads, 2);
	loop_unwatch(l, &p.io);
	close(p.fds[0]);
	close(p.fds[1]);
	settle(l, fd);
	loop_free(l);
}

/* Tried first while polling, descriptors must not hide others from those who
 * poll because they were told to. */
Test(loop, eager_descriptors_show_elsewhere)
{
	struct loop *l = make_loop(NULL);
	int fd = loop_fd_of(l);
	struct pipe_io p[2];

	for (unsigned int i = 0; i < 2; i++) {
		pipe_init(&p[i], l, 0);
		p[i].io.eager = i == 0;
		cr_assert_eq(loop_watch(l, &p[i].io), 0);
	}
	settle(l, fd);
	for (unsigned int i = 0; i < 20; i++) {
		cr_assert_eq(write(p[i & 1].fds[1], "x", 1), 1);
		cr_assert(readable(fd, -1));
		loop_run_once(l, false);
		cr_assert_eq(p[i & 1].reads, i / 2 + 1);
	}
	for (unsigned int i = 0; i < 2; i++) {
		loop_unwatch(l, &p[i].io);
		close(p[i].fds[0]);
		close(p[i].fds[1]);
	}
	loop_free(l);
}

Test(loop, timers_and_work_elsewhere)
{
	struct loop *l = make_loop(NULL);
	int fd = loop_fd_of(l);
	uint64_t at = loop_now(l) + 1000 * NSEC_PER_SEC;
	struct note n;

	settle(l, fd);
	note_init(&n, l);
	loop_timer_arm(l, &n.timer, at);
	cr_assert_eq(loop_next(l), at);
	loop_timer_cancel(l, &n.timer);
	settle(l, fd);
	cr_assert_eq(loop_next(l), TIME_NEVER);
	loop_timer_arm(l, &n.timer, loop_now(l));
	cr_assert_leq(loop_next(l), loop_now(l));
	settle(l, fd);
	cr_assert_eq(n.calls, 1);
	loop_defer(l, &n.work);
	cr_assert_eq(loop_next(l), 0);
	settle(l, fd);
	cr_assert_eq(n.calls, 2);
	loop_free(l);
}

static void *post_late(void *arg)
{
	struct note *n = arg;

	sleep_ms(10);
	loop_post(n->loop, &n->work);
	return NULL;
}

/* libev's own wake-up shows only while libev itself waits. */
Test(loop, another_thread_shows_elsewhere)
{
	struct loop *l = make_loop(NULL);
	int fd = loop_fd_of(l);

	for (unsigned int i = 0; i < 20; i++) {
		pthread_t thread;
		struct note n;

		note_init(&n, l);
		settle(l, fd);
		cr_assert_eq(pthread_create(&thread, NULL, post_late, &n), 0);
		while (!n.calls) {
			cr_assert(readable(fd, -1));
			loop_run_once(l, false);
		}
		cr_assert_eq(pthread_join(thread, NULL), 0);
	}
	settle(l, fd);
	loop_free(l);
}

Test(loop, a_borrowed_loop_is_waited_for_by_its_owner)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct loop *l = make_loop(ev);

	cr_assert_eq(loop_fd(l), -ENOTSUP);
	loop_free(l);
	ev_loop_destroy(ev);
}

struct app {
	ev_timer timer;
	struct loop *loops[2];
	struct note notes[2];
};

static void on_app_timer(struct ev_loop *ev, ev_timer *t, int revents)
{
	struct app *a = container_of(t, struct app, timer);

	(void)ev;
	(void)revents;
	/* Neither loop's turn: both are ours. */
	cr_assert_null(loop_current());
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert(loop_is_owner(a->loops[i]));
		loop_defer(a->loops[i], &a->notes[i].work);
		loop_timer_arm(a->loops[i], &a->notes[i].timer,
			       loop_now(a->loops[i]) + 5 * NSEC_PER_MSEC);
	}
}

Test(loop, two_on_one_borrowed_loop)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct app a;
	struct pipe_io p[2];

	for (unsigned int i = 0; i < 2; i++) {
		a.loops[i] = make_loop(ev);
		note_init(&a.notes[i], a.loops[i]);
		pipe_init(&p[i], a.loops[i], 0);
		cr_assert_eq(loop_watch(a.loops[i], &p[i].io), 0);
		cr_assert_eq(write(p[i].fds[1], "x", 1), 1);
	}
	ev_timer_init(&a.timer, on_app_timer, 0.001, 0);
	ev_timer_start(ev, &a.timer);
	while (a.notes[0].calls + a.notes[1].calls < 4)
		ev_run(ev, EVRUN_ONCE);
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(a.notes[i].calls, 2);
		cr_assert_eq(p[i].reads, 1);
		loop_unwatch(a.loops[i], &p[i].io);
		close(p[i].fds[0]);
		close(p[i].fds[1]);
		loop_free(a.loops[i]);
	}
	ev_loop_destroy(ev);
}

struct nested {
	struct work work;
	struct ev_loop *ev;
	bool done;
};

static void nest(struct work *w)
{
	struct nested *n = container_of(w, struct nested, work);

	ev_run(n->ev, EVRUN_NOWAIT);
	n->done = true;
}

/* Bad manners, but the application's: an iteration inside of an iteration. */
Test(loop, nested_iteration)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct loop *l = make_loop(ev);
	struct nested nested = { .work.fn = nest, .ev = ev };
	struct note n;

	note_init(&n, l);
	loop_timer_arm(l, &n.timer, loop_now(l) + NSEC_PER_MSEC);
	loop_post(l, &nested.work);
	while (!nested.done || !n.calls)
		loop_run_once(l, true);
	cr_assert_eq(n.calls, 1);
	cr_assert(!l->in_turn);
	loop_free(l);
	ev_loop_destroy(ev);
}
