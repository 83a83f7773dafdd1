/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops that run as guests of an application: on its libev loop, or by its own
 * way of waiting for descriptors. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ev.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/unit/base/loop_rig.h"

/* ---- on the application's loop ---- */

Test(loop_guest, borrowed_loop_can_end)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct loop *l = make_loop(ev);
	struct note n;

	note_init(&n, l);
	loop_timer_arm(l, &n.timer, loop_now(l) + NSEC_PER_SEC * 1000);
	/* The application has no watchers: returns. */
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
	/* Changes, then pauses, what is watched. */
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

/* Our watchers never keep the application's ev_run() from returning; the
 * application's own do. */
Test(loop_guest, watched_descriptors_let_a_borrowed_loop_end)
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

/* ---- for other event loops ---- */

static bool readable(int fd, int timeout)
{
	struct pollfd p = { fd, POLLIN, 0 };
	int n = poll(&p, 1, timeout);

	cr_assert_geq(n, 0);
	return n;
}

/* Runs turns until there is nothing to do; returns their number. */
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

Test(loop_guest, descriptors_wake_another_loop)
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
	/* While paused, data to read does not show. */
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

/* Serving eager descriptors without asking the system must not hide other ones
 * from a caller that waits on loop_fd(). */
Test(loop_guest, eager_descriptors_wake_another_loop)
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

Test(loop_guest, timers_and_work_in_another_loop)
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

/* loop_fd() shows a post of another thread, which libev sees only while it
 * waits itself. */
Test(loop_guest, another_thread_wakes_another_loop)
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

Test(loop_guest, a_borrowed_loop_is_waited_for_by_its_owner)
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
	/* Outside of any turn both loops are ours. */
	cr_assert_null(loop_current());
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert(loop_is_owner(a->loops[i]));
		loop_defer(a->loops[i], &a->notes[i].work);
		loop_timer_arm(a->loops[i], &a->notes[i].timer,
			       loop_now(a->loops[i]) + 5 * NSEC_PER_MSEC);
	}
}

Test(loop_guest, two_on_one_borrowed_loop)
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

#define CROWD 100

/* Loops that share one libev loop; each watches a descriptor, and has an alarm
 * far away. */
struct crowd {
	struct ev_loop *ev;
	struct loop *loops[CROWD];
	struct pipe_io pipes[CROWD];
	struct note late[CROWD];
	uint64_t last[CROWD]; /* ns: last turn of each loop */
	ev_timer app;
	struct note *app_defers;
	struct loop *app_to;
};

/* How many loops have had a turn since the last call; *@which: one of them. */
static unsigned int crowd_turns(struct crowd *c, unsigned int *which)
{
	unsigned int turns = 0;

	for (unsigned int i = 0; i < CROWD; i++) {
		if (c->loops[i]->now == c->last[i])
			continue;
		c->last[i] = c->loops[i]->now;
		*which = i;
		turns++;
	}
	return turns;
}

static void crowd_init(struct crowd *c)
{
	unsigned int which;

	*c = (struct crowd){ .ev = ev_loop_new(EVFLAG_AUTO) };
	for (unsigned int i = 0; i < CROWD; i++) {
		struct loop *l = c->loops[i] = make_loop(c->ev);

		pipe_init(&c->pipes[i], l, 0);
		cr_assert_eq(loop_watch(l, &c->pipes[i].io), 0);
		note_init(&c->late[i], l);
		loop_timer_arm(l, &c->late[i].timer,
			       loop_now(l) + 1000 * NSEC_PER_SEC);
	}
	ev_run(c->ev, EVRUN_NOWAIT);
	crowd_turns(c, &which);
}

static void crowd_fini(struct crowd *c)
{
	for (unsigned int i = 0; i < CROWD; i++) {
		loop_timer_cancel(c->loops[i], &c->late[i].timer);
		loop_unwatch(c->loops[i], &c->pipes[i].io);
		close(c->pipes[i].fds[0]);
		close(c->pipes[i].fds[1]);
		loop_free(c->loops[i]);
	}
	ev_loop_destroy(c->ev);
}

/* An idle loop has no turns. */
Test(loop, only_loops_with_work_have_turns)
{
	unsigned int which = CROWD;
	struct crowd c;
	struct note n;

	crowd_init(&c);
	ev_run(c.ev, EVRUN_NOWAIT);
	cr_assert_eq(crowd_turns(&c, &which), 0);

	cr_assert_eq(write(c.pipes[42].fds[1], "x", 1), 1);
	ev_run(c.ev, EVRUN_NOWAIT);
	cr_assert_eq(crowd_turns(&c, &which), 1);
	cr_assert_eq(which, 42);
	cr_assert_eq(c.pipes[42].reads, 1);

	note_init(&n, c.loops[7]);
	loop_timer_arm(c.loops[7], &n.timer, loop_now(c.loops[7]) + 1);
	while (!n.calls)
		ev_run(c.ev, EVRUN_NOWAIT);
	cr_assert_eq(crowd_turns(&c, &which), 1);
	cr_assert_eq(which, 7);

	note_init(&n, c.loops[8]);
	loop_post(c.loops[8], &n.work);
	ev_run(c.ev, EVRUN_NOWAIT);
	cr_assert_eq(n.calls, 1);
	cr_assert_eq(crowd_turns(&c, &which), 1);
	cr_assert_eq(which, 8);

	note_init(&n, c.loops[9]);
	loop_defer(c.loops[9], &n.work);
	ev_run(c.ev, EVRUN_NOWAIT);
	cr_assert_eq(n.calls, 1);
	cr_assert_eq(crowd_turns(&c, &which), 1);
	cr_assert_eq(which, 9);
	crowd_fini(&c);
}

static void on_crowd_app(struct ev_loop *ev, ev_timer *t, int revents)
{
	struct crowd *c = container_of(t, struct crowd, app);

	(void)ev;
	(void)revents;
	loop_defer(c->app_to, &c->app_defers->work);
}

/* Work that an application's callback asks for is done in the same iteration of
 * libev. */
Test(loop, work_deferred_in_a_callback_is_done_at_once)
{
	unsigned int which = CROWD;
	struct crowd c;
	struct note n;

	crowd_init(&c);
	note_init(&n, c.loops[5]);
	c.app_to = c.loops[5];
	c.app_defers = &n;
	ev_timer_init(&c.app, on_crowd_app, 0, 0);
	ev_timer_start(c.ev, &c.app);
	ev_run(c.ev, EVRUN_ONCE);
	cr_assert_eq(n.calls, 1);
	cr_assert_eq(crowd_turns(&c, &which), 1);
	cr_assert_eq(which, 5);
	crowd_fini(&c);
}

struct waiter {
	struct loop *l;
	struct note n;
	ev_timer app, late;
	bool is_late;
};

static void on_late(struct ev_loop *ev, ev_timer *t, int revents)
{
	struct waiter *w = container_of(t, struct waiter, late);

	(void)ev;
	(void)revents;
	w->is_late = true;
}

static void on_waiter(struct ev_loop *ev, ev_timer *t, int revents)
{
	struct waiter *w = container_of(t, struct waiter, app);

	(void)ev;
	(void)revents;
	loop_defer(w->l, &w->n.work);
	while (!w->n.calls && !w->is_late)
		loop_run_once(w->l, true);
}

/* An application's callback defers work and waits until that is done, as it
 * does when it closes a node. @begun: our loop has work before that in the same
 * iteration. */
static void waits_in_callback(bool begun)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct waiter w = { .l = make_loop(ev) };
	struct note before;

	note_init(&w.n, w.l);
	note_init(&before, w.l);
	ev_run(ev, EVRUN_NOWAIT);
	if (begun)
		loop_defer(w.l, &before.work);
	ev_timer_init(&w.app, on_waiter, 0, 0);
	ev_timer_init(&w.late, on_late, 30, 0);
	ev_timer_start(ev, &w.app);
	ev_timer_start(ev, &w.late);
	ev_run(ev, EVRUN_ONCE);
	cr_assert_eq(w.n.calls, 1);
	cr_assert(!w.is_late, "waited for more than it had asked for");
	ev_timer_stop(ev, &w.late);
	loop_free(w.l);
	ev_loop_destroy(ev);
}

Test(loop_guest, a_callback_waits_for_what_it_has_asked_for)
{
	waits_in_callback(false);
	waits_in_callback(true);
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

/* The application runs an iteration inside an iteration. */
Test(loop_guest, nested_iteration)
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
