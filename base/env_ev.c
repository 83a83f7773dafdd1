/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The env of real time, on libev. An iteration of the libev loop contains one
 * turn of ours if there is anything to do: the first callback of one of our
 * watchers begins the turn, and a watcher of the lowest priority ends it after
 * the callbacks of all descriptors. An idle env costs its libev loop nothing.
 */
#include "base/env.h"

#include <errno.h>
#include <stdio.h>
#include <fcntl.h>
#include <ev.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/list.h"
#include "base/loop.h"

#define RANDOM_BYTES 256
/* libev's timer is always active, which keeps libev's reference count simple.
 * If there is no alarm, it is set to so many seconds from now. */
#define NO_ALARM_SEC 1e9
/* Seconds added to delays, so that rounding never ends a wait before its time.
 */
#define LATER_SEC 1e-6

/* While a loop is polled, up to HOT_MAX eager descriptors, those active last,
 * are served without asking the system which ones are ready. All descriptors
 * are looked at again after HOT_TIME, which is less than waking a sleeping
 * thread takes. */
#define HOT_MAX	 4
#define HOT_TIME (30 * NSEC_PER_USEC)
/* Most reads, in one turn in which no work comes up, of the descriptor that was
 * active last. */
#define HOT_TRIES 4
/* How long a loop that polls before it sleeps looks at memory (env_io.news)
 * before it asks the system again: about as long as it takes to ask. */
#define PEEK_TIME (2 * NSEC_PER_USEC)
/* File descriptors that must be free when an env is made: those that libev
 * needs for a loop, and as many again for other threads that open some at the
 * same time. */
#define SPARE_FILES 4

/*
 * One descriptor for users who wait with their own poll() or epoll: it is
 * readable when a watched descriptor is ready, or when another thread has
 * called io_mirror_ring(). libev's own epoll cannot serve for that, because
 * libev updates it, and sees other threads' wake-ups, only when it is about to
 * wait itself.
 */
struct io_mirror {
	int fd; /* epoll descriptor; -1: not open. Owner's */
	/* eventfd that @fd watches; -1: not open. Read by any thread */
	_Atomic int bell;
	/* how often the bell was rung, or is about to be. Any thread */
	_Atomic uint64_t rung;
	uint64_t heard; /* how often of these it was hushed. Owner's */
};

static void io_mirror_init(struct io_mirror *m)
{
	m->fd = -1;
	atomic_init(&m->bell, -1);
	atomic_init(&m->rung, 0);
	m->heard = 0;
}

static bool io_mirror_is_open(const struct io_mirror *m)
{
	return m->fd >= 0;
}

static int mirror_ctl(struct io_mirror *m, int op, int fd, int events)
{
	struct epoll_event ev = { .data.fd = fd };

	if (events & ENV_READ)
		ev.events |= EPOLLIN;
	if (events & ENV_WRITE)
		ev.events |= EPOLLOUT;
	return epoll_ctl(m->fd, op, fd, &ev) ? -errno : 0;
}

static void io_mirror_close(struct io_mirror *m)
{
	int bell = atomic_exchange(&m->bell, -1);

	if (bell >= 0)
		close(bell);
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

/* Opens the mirror. Returns 0 or -errno. */
static int io_mirror_open(struct io_mirror *m)
{
	int bell, rc;

	m->fd = epoll_create1(EPOLL_CLOEXEC);
	if (m->fd < 0)
		return -errno;
	bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = bell < 0 ? -errno : mirror_ctl(m, EPOLL_CTL_ADD, bell, ENV_READ);
	/* This store is sequentially consistent, as is the load in
	 * io_mirror_ring(). */
	if (!rc)
		atomic_store(&m->bell, bell);
	else
		io_mirror_close(m);
	if (rc && bell >= 0)
		close(bell);
	return rc;
}

/* Changes the events for which @fd is watched from @before to @events (0:
 * none). No effect while the mirror is not open. Returns 0; -errno: nothing has
 * changed. */
static int io_mirror_set(struct io_mirror *m, int fd, int before, int events)
{
	int op = !before  ? EPOLL_CTL_ADD
		 : events ? EPOLL_CTL_MOD
			  : EPOLL_CTL_DEL;

	if (!io_mirror_is_open(m) || events == before)
		return 0;
	return mirror_ctl(m, op, fd, events);
}

/* Makes the mirror readable until io_mirror_hush(). Any thread. The caller has
 * just executed a full fence, so an owner that opens the mirror too late for
 * this call sees what the caller did before. */
static void io_mirror_ring(struct io_mirror *m)
{
	int bell = atomic_load(&m->bell);
	uint64_t one = 1;

	if (bell < 0)
		return;
	atomic_fetch_add_explicit(&m->rung, 1, memory_order_relaxed);
	BUG_ON(write(bell, &one, sizeof(one)) < 0 && errno != EAGAIN);
}

/* Ends what io_mirror_ring() has begun. Called before the owner looks for what
 * other threads have done. Costs no system call unless the bell was rung, or is
 * about to be: an eventfd counts what is written, so the two counters tell. */
static void io_mirror_hush(struct io_mirror *m)
{
	int bell = atomic_load_explicit(&m->bell, memory_order_relaxed);
	uint64_t rung;

	if (bell < 0 ||
	    atomic_load_explicit(&m->rung, memory_order_relaxed) == m->heard)
		return;
	if (read(bell, &rung, sizeof(rung)) == (ssize_t)sizeof(rung))
		m->heard += rung;
	else
		BUG_ON(errno != EAGAIN);
}

/* ---- the env ---- */

struct ev_env {
	struct env env;
	struct ev_loop *ev;
	bool own;
	ev_async wake;
	/* while active, the next iteration has a turn */
	ev_idle again;
	/* While this is pending, the iteration has a turn to end, or a whole
	 * one to make; that happens after all other watchers have been called.
	 */
	struct ev_watcher turn;
	bool ending; /* turn_end() is running */
	ev_timer timer;
	/* ns: when the timer is set to; TIME_NEVER: no alarm */
	uint64_t timer_at;
	size_t random_left;
	uint8_t random[RANDOM_BYTES];
	/* eager descriptors, the last active one first */
	struct env_io *hot[HOT_MAX];
	unsigned int hots;
	/* ns: when the system was last asked about all descriptors */
	uint64_t looked;
	/* some of the watches are restless */
	bool restless;
	/* the descriptor whose readiness has begun this turn; NULL: none, or it
	 * was unwatched since then */
	struct ev_watch *first;
	struct list watches;
	struct io_mirror mirror; /* descriptor for users of env_ops.fd() */
};

struct ev_watch {
	ev_io io;
	struct ev_env *e;
	struct env_io *user;
	struct list link; /* in ev_env.watches */
	/* its function is to be called, ready or not */
	bool restless;
	/* events with which the watcher was started; 0: not started. libev may
	 * have stopped it since then */
	int events;
};

static struct ev_env *ev_env(struct env *env)
{
	return container_of(env, struct ev_env, env);
}

/* Reads, from the system's file about the calling thread, how long it has
 * waited for a processor: the second of two numbers of ns, of which the first
 * is the time on a processor. */
static uint64_t real_starved(struct env *env)
{
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	unsigned long long waited = 0;
	char text[96];
	ssize_t n;

	(void)env;
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[MAX(n, 0)] = '\0';
	return sscanf(text, "%*u %llu", &waited) == 1 ? waited : 0;
}

/* A set of more processors than a cpu_set_t has room for has enough. */
static unsigned int real_processors(struct env *env)
{
	cpu_set_t set;

	(void)env;
	if (sched_getaffinity(0, sizeof(set), &set))
		return CPU_SETSIZE;
	return (unsigned int)CPU_COUNT(&set);
}

static uint64_t real_clock(struct env *env)
{
	struct timespec t;

	(void)env;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* getrandom() of up to 256 bytes is never short, but it may be interrupted
 * while it waits for the system's first entropy. */
static void refill(struct ev_env *e)
{
	ssize_t n;

	do {
		n = getrandom(e->random, sizeof(e->random), 0);
	} while (n < 0 && errno == EINTR);
	BUG_ON(n != (ssize_t)sizeof(e->random));
	e->random_left = sizeof(e->random);
}

static void real_random(struct env *env, void *buf, size_t len)
{
	struct ev_env *e = ev_env(env);
	uint8_t *p = buf;

	while (len) {
		size_t n;

		if (!e->random_left)
			refill(e);
		n = MIN(len, e->random_left);
		e->random_left -= n;
		memcpy(p, e->random + e->random_left, n);
		p += n;
		len -= n;
	}
}

static void real_wake(struct env *env)
{
	struct ev_env *e = ev_env(env);

	ev_async_send(e->ev, &e->wake); /* this call begins with a full fence */
	io_mirror_ring(&e->mirror);
}

/* ---- turns ---- */

static void turn_now(struct ev_env *e)
{
	io_mirror_hush(&e->mirror);
	loop_turn_begin(e->env.loop);
}

/* Begins a turn, unless one has begun. To be called first in each libev
 * callback of ours. */
static void turn_begin(struct ev_env *e)
{
	if (e->env.loop->in_turn)
		return;
	/* The application runs, in a child of fork(), the libev loop that it
	 * lent to the node. */
	if (unlikely(e->env.loop->orphan)) {
		e->first = NULL;
		return;
	}
	ev_feed_event(e->ev, &e->turn, EV_CUSTOM);
	turn_now(e);
}

static void turn_end(struct ev_env *e)
{
	e->ending = true;
	loop_turn_end(e->env.loop);
	e->ending = false;
}

static void on_turn(struct ev_loop *ev, struct ev_watcher *w, int revents)
{
	struct ev_env *e = container_of(w, struct ev_env, turn);

	(void)ev;
	(void)revents;
	if (!e->env.loop->in_turn) {
		if (e->env.loop->orphan)
			return;
		turn_now(e);
	}
	turn_end(e);
}

static void again_start(struct ev_env *e)
{
	if (ev_is_active(&e->again))
		return;
	ev_idle_start(e->ev, &e->again);
	ev_unref(e->ev); /* as in watch_start() */
}

static void again_stop(struct ev_env *e)
{
	if (!ev_is_active(&e->again))
		return;
	ev_ref(e->ev);
	ev_idle_stop(e->ev, &e->again);
}

static void feed_restless(struct ev_env *e)
{
	struct ev_watch *w;

	e->restless = false;
	list_for_each_entry (w, &e->watches, link) {
		if (w->restless && w->events)
			ev_feed_event(e->ev, &w->io, EV_READ);
		w->restless = false;
	}
}

static void env_ev_on_again(struct ev_loop *ev, ev_idle *w, int revents)
{
	struct ev_env *e = container_of(w, struct ev_env, again);

	(void)ev;
	(void)revents;
	again_stop(e);
	turn_begin(e);
	if (unlikely(e->restless))
		feed_restless(e);
}

/* Schedules a turn. Work that an application's callback has asked for is done
 * in the same iteration of libev; what a turn has left to do is done in the
 * next one, so that descriptors are served first. */
static void turn_soon(struct ev_env *e)
{
	if (ev_depth(e->ev) && !e->ending)
		ev_feed_event(e->ev, &e->turn, EV_CUSTOM);
	else
		again_start(e);
}

static void set_timer(struct ev_env *e, uint64_t at)
{
	e->timer_at = at;
	if (at == TIME_NEVER) {
		e->timer.repeat = NO_ALARM_SEC;
	} else {
		uint64_t now;

		/* libev counts the delay from when it last looked at the clock.
		 */
		ev_now_update(e->ev);
		now = real_clock(&e->env);
		e->timer.repeat = LATER_SEC;
		e->timer.repeat +=
			(double)(at - MIN(at, now)) / (double)NSEC_PER_SEC;
	}
	ev_timer_again(e->ev, &e->timer);
}

static void real_alarm(struct env *env, uint64_t at)
{
	struct ev_env *e = ev_env(env);

	if (at <= env->loop->now)
		turn_soon(e);
	else if (at < e->timer_at)
		set_timer(e, at);
	/* A timer that would fire before @at is left alone: the turn that it
	 * makes sets it again. That is rare, whereas most calls are about
	 * deadlines that are armed and cancelled long before their time. */
}

static void env_ev_on_timer(struct ev_loop *ev, ev_timer *t, int revents)
{
	struct ev_env *e = container_of(t, struct ev_env, timer);

	(void)ev;
	(void)revents;
	set_timer(e, TIME_NEVER);
	turn_begin(e);
}

static void on_wake(struct ev_loop *ev, ev_async *w, int revents)
{
	(void)ev;
	(void)revents;
	turn_begin(container_of(w, struct ev_env, wake));
}

static void hot_del(struct ev_env *e, const struct env_io *io)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < e->hots; i++)
		if (e->hot[i] != io)
			e->hot[n++] = e->hot[i];
	e->hots = n;
}

/* The descriptor is not served any more without asking the system. If it has
 * something to do already, its function is called in the next turn, not in this
 * one, or else one that always has would keep a turn from ending. */
static void io_rest(struct ev_env *e, struct env_io *io)
{
	struct ev_watch *w = io->impl;

	if (likely(!io->rest || !w || io->rest(io)))
		return;
	w->restless = true;
	e->restless = true;
	again_start(e);
	io_mirror_ring(&e->mirror);
}

static void hot_rest(struct ev_env *e)
{
	for (unsigned int i = 0; i < e->hots; i++)
		io_rest(e, e->hot[i]);
}

/* Is this loop never polled by run_hot()? */
static bool is_never_hot(const struct ev_env *e)
{
	return !e->own || io_mirror_is_open(&e->mirror);
}

static void hot_add(struct ev_env *e, struct env_io *io)
{
	if (e->hots && e->hot[0] == io)
		return;
	hot_del(e, io);
	if (e->hots == HOT_MAX)
		io_rest(e, e->hot[HOT_MAX - 1]);
	e->hots = MIN(e->hots + 1, HOT_MAX);
	memmove(e->hot + 1, e->hot, (e->hots - 1) * sizeof(e->hot[0]));
	e->hot[0] = io;
}

static void on_io(struct ev_loop *ev, ev_io *io, int revents)
{
	struct ev_watch *w = container_of(io, struct ev_watch, io);
	struct env_io *user = w->user;
	struct ev_env *e = w->e;
	struct loop *before;
	int events = 0;

	(void)ev;
	if (revents & EV_READ)
		events |= ENV_READ;
	if (revents & EV_WRITE)
		events |= ENV_WRITE;
	/* EV_ERROR: libev has stopped the watcher. */
	if (unlikely(revents & EV_ERROR))
		events = ENV_ERROR;
	/* A turn begins with timers and the mailbox, whose functions may
	 * unwatch this descriptor, which clears "first". */
	e->first = w;
	turn_begin(e);
	if (!e->first)
		return;
	if (likely(events != ENV_ERROR))
		events &= user->events;
	if (!events)
		return;
	if (user->eager && events & ENV_READ)
		hot_add(e, user);
	before = loop_enter(e->env.loop);
	loop_guard_others(e->env.loop);
	user->fn(user, events);
	/* The function may have unwatched the descriptor, which clears
	 * "first". */
	if (e->first == w && unlikely(is_never_hot(e)))
		io_rest(e, user);
	loop_leave(before);
}

static void watch_stop(struct ev_watch *w)
{
	if (!w->events)
		return;
	ev_ref(w->e->ev);
	ev_io_stop(w->e->ev, &w->io);
}

/* Starts the watcher, unless @events is 0, and drops its reference to the libev
 * loop: our watchers must not keep an application's ev_run() from returning. */
static void watch_start(struct ev_watch *w, int fd, int events)
{
	int ev_events = 0;

	if (events & ENV_READ)
		ev_events |= EV_READ;
	if (events & ENV_WRITE)
		ev_events |= EV_WRITE;
	w->events = events;
	if (!events)
		return;
	ev_io_set(&w->io, fd, ev_events);
	ev_io_start(w->e->ev, &w->io);
	ev_unref(w->e->ev);
}

static struct ev_watch *watch_new(struct ev_env *e, struct env_io *user)
{
	struct ev_watch *w = malloc(sizeof(*w));

	if (!w)
		return NULL;
	w->e = e;
	w->user = user;
	w->events = 0;
	w->restless = false;
	ev_init(&w->io, on_io);
	list_add_tail(&e->watches, &w->link);
	user->impl = w;
	return w;
}

static int real_watch(struct env *env, struct env_io *user)
{
	struct ev_env *e = ev_env(env);
	struct ev_watch *w = user->impl;
	int rc;

	if (!w)
		w = watch_new(e, user);
	rc = w ? io_mirror_set(&e->mirror, user->fd, w->events, user->events)
	       : -ENOMEM;
	if (rc)
		return rc;
	watch_stop(w);
	watch_start(w, user->fd, user->events);
	return 0;
}

static void real_unwatch(struct env *env, struct env_io *user)
{
	struct ev_env *e = ev_env(env);
	struct ev_watch *w = user->impl;

	if (!w)
		return;
	hot_del(e, user);
	if (e->first == w)
		e->first = NULL;
	BUG_ON(io_mirror_set(&e->mirror, user->fd, w->events, 0));
	watch_stop(w);
	list_del(&w->link);
	free(w);
	user->impl = NULL;
}

static int real_fd(struct env *env)
{
	struct ev_env *e = ev_env(env);
	struct ev_watch *w;
	int rc = 0;

	if (!e->own)
		return -ENOTSUP;
	if (io_mirror_is_open(&e->mirror))
		return e->mirror.fd;
	rc = io_mirror_open(&e->mirror);
	if (rc)
		return rc;
	list_for_each_entry (w, &e->watches, link)
		if (!rc)
			rc = io_mirror_set(&e->mirror, w->user->fd, 0,
					   w->events);
	if (rc)
		io_mirror_close(&e->mirror);
	else
		hot_rest(e);
	return rc ? rc : e->mirror.fd;
}

static void try_hot(struct ev_env *e, unsigned int i)
{
	struct env_io *io = e->hot[i];

	if (io->events)
		io->fn(io, io->events | ENV_POLLED);
}

/* Makes a turn that serves the hot descriptors only. */
static void run_hot(struct ev_env *e)
{
	struct loop *l = e->env.loop, *before;

	loop_turn_begin(l);
	before = loop_enter(l);
	/* The functions of the descriptors may change the list; the next turn
	 * sees the change. */
	for (unsigned int i = 0; i < e->hots; i++)
		try_hot(e, i);
	for (unsigned int n = 1; n < HOT_TRIES && e->hots && !loop_has_work(l);
	     n++)
		try_hot(e, 0);
	loop_leave(before);
	turn_end(e);
}

/* Is there anything to do that takes no look at the system? *seen: there are
 * hot descriptors that can tell. */
static bool hot_news(const struct ev_env *e, bool *seen)
{
	struct loop *l = e->env.loop;

	for (unsigned int i = 0; i < e->hots; i++) {
		const struct env_io *io = e->hot[i];

		if (!io->news || !io->events)
			continue;
		*seen = true;
		if (io->news(io))
			return true;
	}
	return *seen && (loop_has_work(l) || !mailbox_empty(&l->mailbox));
}

/* Makes a turn if hot descriptors, or other threads, have something to do.
 * Returns false: the system has to be asked. */
static bool run_peek(struct ev_env *e)
{
	bool seen = false;

	if (io_mirror_is_open(&e->mirror))
		return false;
	if (hot_news(e, &seen)) {
		run_hot(e);
		return true;
	}
	return seen && real_clock(&e->env) < e->looked + PEEK_TIME;
}

/* Lets libev ask the system, and run what is ready. */
static out_of_line void run_system(struct ev_env *e, enum env_wait wait)
{
	const struct loop *l = e->env.loop;
	uint64_t before = l->now;

	/* A loop that peeks does not sleep before it is told to. */
	if (wait != ENV_PEEK)
		hot_rest(e);
	/* If an application's callback has made a turn pending, libev must not
	 * wait: it would make that turn, and then wait for another one. */
	if (ev_is_pending(&e->turn))
		wait = ENV_LOOK;
	/* The bell may have been rung after the turn that did its work, and
	 * there may be no other turn soon. */
	io_mirror_hush(&e->mirror);
	/* Without this reference libev would not wait for our watchers. */
	ev_ref(e->ev);
	ev_run(e->ev, wait == ENV_WAIT ? EVRUN_ONCE : EVRUN_NOWAIT);
	ev_unref(e->ev);
	/* If there was a turn, its time is used, which saves a look at the
	 * clock. */
	e->looked = l->now != before ? l->now : real_clock(&e->env);
}

/* Need the system not be asked yet? */
static bool is_hot(const struct ev_env *e)
{
	return e->hots && !io_mirror_is_open(&e->mirror) &&
	       e->env.loop->now < e->looked + HOT_TIME;
}

static void real_run_once(struct env *env, enum env_wait wait)
{
	struct ev_env *e = ev_env(env);

	if (wait == ENV_TRY && is_hot(e))
		run_hot(e);
	else if (wait != ENV_PEEK || !run_peek(e))
		run_system(e, wait);
}

static void start_watchers(struct ev_env *e)
{
	ev_async_init(&e->wake, on_wake);
	ev_idle_init(&e->again, env_ev_on_again);
	/* At a lower priority "again" would not run while other watchers are
	 * busy. */
	ev_set_priority(&e->again, EV_MAXPRI);
	ev_init(&e->turn, on_turn);
	ev_set_priority(&e->turn, EV_MINPRI);
	ev_init(&e->timer, env_ev_on_timer);

	/* References are dropped as in watch_start(). */
	ev_async_start(e->ev, &e->wake);
	ev_unref(e->ev);
	set_timer(e, TIME_NEVER);
	ev_unref(e->ev);
}

static void stop_watchers(struct ev_env *e)
{
	ev_ref(e->ev);
	ev_async_stop(e->ev, &e->wake);
	again_stop(e);
	ev_clear_pending(e->ev, &e->turn);
	ev_ref(e->ev);
	ev_timer_stop(e->ev, &e->timer);
}

static void real_free(struct env *env)
{
	struct ev_env *e = ev_env(env);

	stop_watchers(e);
	io_mirror_close(&e->mirror);
	if (e->own)
		ev_loop_destroy(e->ev);
	free(e);
}

static const struct env_ops real_ops = {
	.clock = real_clock,
	.starved = real_starved,
	.processors = real_processors,
	.random = real_random,
	.alarm = real_alarm,
	.wake = real_wake,
	.watch = real_watch,
	.unwatch = real_unwatch,
	.run_once = real_run_once,
	.fd = real_fd,
	.free = real_free,
};

/* Checks that there are enough free file descriptors for libev, which aborts
 * the program when it cannot open one. Returns 0 or -errno. */
static int check_spare_files(void)
{
	int fd[SPARE_FILES], rc = 0;
	unsigned int n = 0;

	while (n < SPARE_FILES && !rc) {
		fd[n] = eventfd(0, EFD_CLOEXEC);
		if (fd[n] < 0)
			rc = -errno;
		else
			n++;
	}
	while (n)
		close(fd[--n]);
	return rc;
}

int env_ev_new(struct ev_loop *ev, struct env **env_p)
{
	int rc = check_spare_files();
	struct ev_env *e;

	if (rc)
		return rc;
	e = malloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	memset(e, 0, sizeof(*e));
	e->env.ops = &real_ops;
	e->own = !ev;
	list_init(&e->watches);
	io_mirror_init(&e->mirror);
	errno = 0;
	e->ev = ev ? ev : ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
	if (!e->ev) {
		rc = errno ? -errno : -ENOMEM;
		free(e);
		return rc;
	}
	start_watchers(e);
	*env_p = &e->env;
	return 0;
}
