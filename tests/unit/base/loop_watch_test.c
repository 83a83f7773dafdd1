/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that a loop watches. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "tests/unit/base/loop_rig.h"

Test(loop_watch, watch_pipe)
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
	/* Pauses, and resumes. */
	p.io.events = 0;
	cr_assert_eq(loop_watch(l, &p.io), 0);
	loop_run_once(l, false);
	cr_assert_eq(p.reads, 1);
	p.io.events = ENV_READ;
	cr_assert_eq(loop_watch(l, &p.io), 0);
	loop_run_once(l, true);
	cr_assert_eq(p.reads, 2);
	/* At the end of the file the callback stops watching. */
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

/* A descriptor that the system cannot watch is reported as ENV_ERROR. (libev
 * stops its watcher, and calls it with all events.) */
Test(loop_watch, watch_fails)
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
	/* Watching may be tried again. */
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

Test(loop_watch, watch_for_writing)
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

/* Work that a descriptor's function defers runs in the same turn. */
Test(loop_watch, deferred_by_a_descriptor)
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
	unsigned int tried; /* calls in which nothing could be read */
	unsigned int bytes;
	struct hot *closes; /* is unwatched when this one reads */
};

static void on_hot(struct env_io *io, int revents)
{
	struct hot *h = container_of(io, struct hot, io);
	char c;

	cr_assert_eq(revents & ~ENV_POLLED, ENV_READ);
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

/* While polling, only eager descriptors that were active are tried; while
 * sleeping, none. */
Test(loop_watch, polling_tries_what_was_active)
{
	struct loop *l = make_loop(NULL);
	struct hot a, b;

	hot_init(&a, l);
	hot_init(&b, l);
	hot_byte(&a);
	while (!a.tried)
		loop_run_once(l, false);
	cr_assert_eq(b.tried, 0);
	/* Other descriptors are served, too. */
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

#define POLLS 20000

/* When nothing comes for long, all descriptors are looked at now and then; in
 * between those that were active are still tried. */
Test(loop_watch, polling_goes_on_trying)
{
	struct loop *l = make_loop(NULL);
	struct hot a;

	hot_init(&a, l);
	hot_byte(&a);
	a.tried = 0;
	for (unsigned int i = 0; i < POLLS; i++)
		loop_run_once(l, false);
	cr_assert_geq(a.tried, POLLS);
	hot_fini(&a);
	loop_free(l);
}

Test(loop_watch, what_is_not_watched_is_not_tried)
{
	struct loop *l = make_loop(NULL);
	struct hot a, b;

	hot_init(&a, l);
	hot_init(&b, l);
	hot_byte(&a);
	hot_byte(&b);
	/* Unwatches a descriptor in a turn that may be about to try it. */
	b.closes = &a;
	hot_byte(&b);
	a.tried = b.tried = 0;
	while (!b.tried)
		loop_run_once(l, false);
	cr_assert_eq(a.tried, 0);
	/* Pauses. */
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

/* ---- descriptors of which the system does not know everything ---- */

/* Takes what was put into a plain number, as into shared memory, and bytes that
 * tell of it to who rests. */
struct mute {
	struct env_io io;
	struct loop *loop;
	int fds[2];
	unsigned int there, taken, polled, rests;
	bool resting;
};

static void on_mute(struct env_io *io, int revents)
{
	struct mute *m = container_of(io, struct mute, io);
	char c[16];

	if (!(revents & ENV_POLLED))
		(void)!read(io->fd, c, sizeof(c));
	m->polled += m->there && revents & ENV_POLLED;
	m->resting = false;
	m->taken += m->there;
	m->there = 0;
}

static bool mute_rest(struct env_io *io)
{
	struct mute *m = container_of(io, struct mute, io);

	m->rests++;
	m->resting = !m->there;
	return m->resting;
}

static bool mute_news(const struct env_io *io)
{
	struct mute *m = container_of((struct env_io *)io, struct mute, io);

	return m->there;
}

static void mute_init(struct mute *m, struct loop *l)
{
	*m = (struct mute){ .loop = l, .resting = true };
	cr_assert_eq(pipe2(m->fds, O_NONBLOCK), 0);
	m->io.fd = m->fds[0];
	m->io.events = ENV_READ;
	m->io.eager = true;
	m->io.fn = on_mute;
	m->io.rest = mute_rest;
	m->io.news = mute_news;
	cr_assert_eq(loop_watch(l, &m->io), 0);
}

static void mute_fini(struct mute *m)
{
	loop_unwatch(m->loop, &m->io);
	close(m->fds[0]);
	close(m->fds[1]);
}

static void mute_put(struct mute *m)
{
	m->there++;
	if (m->resting)
		cr_assert_eq(write(m->fds[1], "a", 1), 1);
}

static void mute_wake(struct mute *m)
{
	unsigned int before = m->taken;

	mute_put(m);
	while (m->taken == before)
		loop_run_once(m->loop, false);
}

/* It is polled, without a byte; it rests before the loop sleeps, and if it
 * cannot, the loop does not sleep. */
Test(loop_watch, rests_before_sleep)
{
	struct loop *l = make_loop(NULL);
	struct mute m;

	mute_init(&m, l);
	mute_wake(&m);
	cr_assert_not(m.resting);
	while (m.polled < 10)
		mute_wake(&m);
	if (m.resting)
		mute_wake(&m);
	m.there = 1;
	loop_run_once(l, true);
	cr_assert_eq(m.there, 0);
	mute_put(&m);
	loop_run_once(l, true);
	cr_assert_eq(m.there, 0);
	mute_fini(&m);
	loop_free(l);
}

struct counted {
	struct work work;
	unsigned int n;
};

static void count_work(struct work *w)
{
	container_of(w, struct counted, work)->n++;
}

/* Polls for up to a minute before it sleeps, and does not care for others. */
struct peeking {
	struct loop *loop;
	struct env_ops ops;
	_Atomic uint64_t max;
	stat_t hits, misses;
};

static void peeking_init(struct peeking *p)
{
	p->loop = make_loop(NULL);
	p->ops = *p->loop->env->ops;
	p->ops.starved = NULL;
	p->loop->env->ops = &p->ops;
	atomic_init(&p->max, 60 * NSEC_PER_SEC);
	stat_set(&p->hits, 0);
	stat_set(&p->misses, 0);
	loop_poll_before_sleep(p->loop, &(struct spin){ .max = &p->max,
							.hits = &p->hits,
							.misses = &p->misses });
}

static void peeking_wait(struct peeking *p)
{
	p->loop->spin.window = p->max;
	loop_run_once(p->loop, true);
	cr_assert_eq(stat_get(&p->misses), 0);
}

/* A loop that polls before it sleeps looks at the memory itself, and does not
 * rest meanwhile. It sees what other threads have posted, and what comes to
 * other descriptors. */
Test(loop_watch, peeks_before_sleep)
{
	struct counted c = { .work.fn = count_work };
	struct peeking p;
	struct mute m;
	struct hot a;

	peeking_init(&p);
	mute_init(&m, p.loop);
	hot_init(&a, p.loop);
	mute_wake(&m);
	m.rests = m.polled = 0;
	for (unsigned int i = 0; i < 20; i++) {
		m.there = 1;
		peeking_wait(&p);
		cr_assert_eq(m.there, 0);
	}
	cr_assert_eq(m.polled, 20);
	loop_post(p.loop, &c.work);
	peeking_wait(&p);
	cr_assert_eq(c.n, 1);
	cr_assert_eq(write(a.fds[1], "a", 1), 1);
	while (!a.bytes)
		peeking_wait(&p);
	cr_assert_eq(m.rests, 0);
	hot_fini(&a);
	mute_fini(&m);
	loop_free(p.loop);
}

/* More of them than are polled: each rests, or is polled. */
Test(loop_watch, rests_when_others_are_polled)
{
	struct loop *l = make_loop(NULL);
	struct mute m[9];

	for (unsigned int i = 0; i < ARRAY_SIZE(m); i++)
		mute_init(&m[i], l);
	for (unsigned int k = 0; k < 50; k++) {
		for (unsigned int i = 0; i < ARRAY_SIZE(m); i++)
			mute_put(&m[i]);
		for (unsigned int i = 0; i < ARRAY_SIZE(m); i++)
			while (m[i].there)
				loop_run_once(l, true);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(m); i++) {
		cr_assert_eq(m[i].taken, 50);
		mute_fini(&m[i]);
	}
	loop_free(l);
}

/* Who waits by other means never has it polled: it rests after each call. */
Test(loop_watch, rests_for_who_waits_himself)
{
	struct loop *l = make_loop(NULL);
	struct pollfd p = { .events = POLLIN };
	struct mute m;

	mute_init(&m, l);
	mute_wake(&m);
	/* There is something when the descriptor is asked for. */
	m.there = 1;
	p.fd = loop_fd(l);
	cr_assert(p.fd >= 0);
	for (unsigned int i = 0; i < 20; i++) {
		while (m.there) {
			cr_assert_eq(poll(&p, 1, 60000), 1);
			loop_run_once(l, false);
		}
		cr_assert(m.resting);
		mute_put(&m);
	}
	mute_fini(&m);
	loop_free(l);
}

/* The same on a loop of the application. */
Test(loop_watch, rests_on_a_borrowed_loop)
{
	struct ev_loop *ev = ev_loop_new(0);
	struct loop *l = make_loop(ev);
	struct mute m;

	mute_init(&m, l);
	for (unsigned int i = 0; i < 20; i++) {
		mute_put(&m);
		while (m.there) {
			/* our watchers do not keep it from returning */
			ev_ref(ev);
			ev_run(ev, EVRUN_ONCE);
			ev_unref(ev);
		}
		cr_assert(m.resting);
	}
	mute_fini(&m);
	loop_free(l);
	ev_loop_destroy(ev);
}

struct stopper {
	struct work work;
	struct pipe_io *pipe;
	bool pauses;
};

static void stop_pipe(struct work *w)
{
	struct stopper *s = container_of(w, struct stopper, work);

	s->pipe->io.events = 0;
	if (s->pauses)
		cr_assert_eq(loop_watch(s->pipe->loop, &s->pipe->io), 0);
	else
		loop_unwatch(s->pipe->loop, &s->pipe->io);
}

/* A ready descriptor begins a turn, and the work that runs first in it
 * unwatches the descriptor. (The work was posted without a wake-up, so that
 * nothing else can begin the turn.) */
Test(loop_watch, stopped_in_the_turn_that_it_began)
{
	for (int pauses = 0; pauses <= 1; pauses++) {
		struct loop *l = make_loop(NULL);
		struct stopper s = { .work.fn = stop_pipe, .pauses = pauses };
		struct pipe_io p;

		pipe_init(&p, l, 0);
		s.pipe = &p;
		cr_assert_eq(loop_watch(l, &p.io), 0);
		loop_run_once(l, false);
		cr_assert_eq(write(p.fds[1], "a", 1), 1);
		cr_assert(mailbox_put(&l->mailbox, &s.work));
		loop_run_once(l, true);
		cr_assert_eq(p.io.events, 0);
		cr_assert_eq(p.reads, 0);
		loop_unwatch(l, &p.io);
		close(p.fds[0]);
		close(p.fds[1]);
		loop_free(l);
	}
}
