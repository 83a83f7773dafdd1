/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual time. Nothing that happens may depend on addresses or on the real
 * world, so that a run can be repeated. */
#include "base/env.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include "base/list.h"
#include "base/lockstep.h"
#include "base/loop.h"

struct env_sim {
	uint64_t now;
	struct rng rng;
	/* of sim_env.link, in the order in which the envs were made */
	struct list envs;
	/* sim_env.link of the env that was served last at this instant; &envs:
	 * none was yet */
	struct list *round;
	struct lockstep lockstep;
	uint64_t world; /* env.world */
	uint64_t delay; /* ns: env_sim_delay() */
	/* room for one entry for each descriptor that is watched */
	struct pollfd *polls;
	unsigned int npolls, nios;
};

struct sim_env {
	struct env env;
	struct env_sim *sim;
	struct list link;
	uint64_t alarm;
	bool woken;
	uint64_t frozen; /* ns: there are no turns until then */
	struct list ios; /* of sim_io.link */
	/* whose function is being called, unless it has been unwatched; or NULL
	 */
	struct sim_io *serving;
};

/* A descriptor that is watched: env_io.impl. */
struct sim_io {
	struct list link;
	struct env_io *user;
	/* ns: when the loop hears of what has come; TIME_NEVER: nothing has */
	uint64_t due;
	bool restless; /* there is something that the system does not know of */
};

static uint64_t rotl(uint64_t x, unsigned int k)
{
	return x << k | x >> (64 - k);
}

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void rng_seed(struct rng *r, uint64_t seed)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(r->s); i++)
		r->s[i] = splitmix64(&seed);
}

uint64_t rng_next(struct rng *r)
{
	uint64_t *s = r->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	unsigned __int128 m;
	uint64_t unfair;

	if (!n)
		return 0;
	/* Lemire's method: the high half of the product is uniform if products
	 * whose low half is below 2^64 mod n are rejected. */
	m = (unsigned __int128)rng_next(r) * n;
	if ((uint64_t)m < n) {
		unfair = -n % n;
		while ((uint64_t)m < unfair)
			m = (unsigned __int128)rng_next(r) * n;
	}
	return (uint64_t)(m >> 64);
}

static struct sim_env *sim_env(struct env *env)
{
	return container_of(env, struct sim_env, env);
}

static uint64_t sim_clock(struct env *env)
{
	return sim_env(env)->sim->now;
}

static void sim_random(struct env *env, void *buf, size_t len)
{
	struct rng *rng = &sim_env(env)->sim->rng;
	uint8_t *p = buf;

	while (len) {
		uint64_t r = rng_next(rng);
		size_t n = MIN(len, sizeof(r));

		memcpy(p, &r, n);
		p += n;
		len -= n;
	}
}

static void sim_alarm(struct env *env, uint64_t at)
{
	sim_env(env)->alarm = at;
}

static void sim_wake(struct env *env)
{
	sim_env(env)->woken = true;
}

/* ---- descriptors ---- */

/* Between two looks at them, only the simulation itself acts, so what the
 * system says of them follows from the seed. */

static int sim_watch(struct env *env, struct env_io *user)
{
	struct sim_env *e = sim_env(env);
	struct env_sim *s = e->sim;
	struct sim_io *io = user->impl;

	if (!io) {
		if (s->nios == s->npolls) {
			unsigned int n = 2 * s->npolls + 8;
			struct pollfd *p =
				realloc(s->polls, n * sizeof(*s->polls));

			if (!p)
				return -ENOMEM;
			s->polls = p;
			s->npolls = n;
		}
		io = malloc(sizeof(*io));
		if (!io)
			return -ENOMEM;
		*io = (struct sim_io){ .user = user, .due = TIME_NEVER };
		list_add_tail(&e->ios, &io->link);
		s->nios++;
		user->impl = io;
	}
	if (io->restless)
		io->due = s->now;
	return 0;
}

static void sim_unwatch(struct env *env, struct env_io *user)
{
	struct sim_env *e = sim_env(env);
	struct sim_io *io = user->impl;

	if (!io)
		return;
	if (e->serving == io)
		e->serving = NULL;
	list_del(&io->link);
	e->sim->nios--;
	free(io);
	user->impl = NULL;
}

static int poll_events(int events)
{
	return (events & ENV_READ ? POLLIN : 0) |
	       (events & ENV_WRITE ? POLLOUT : 0);
}

/* Which of the events that @user asks for have come? */
static int events_of(const struct env_io *user, int found)
{
	int events = (found & POLLIN ? ENV_READ : 0) |
		     (found & POLLOUT ? ENV_WRITE : 0);

	return found & (POLLERR | POLLHUP) ? user->events
					   : events & user->events;
}

/* Asks the system about all descriptors. Returns false if it says nothing new.
 */
static bool sim_look(struct env_sim *s)
{
	struct sim_env *e;
	struct sim_io *io;
	unsigned int n = 0;
	bool found = false;
	int rc;

	list_for_each_entry (e, &s->envs, link)
		list_for_each_entry (io, &e->ios, link)
			s->polls[n++] = (struct pollfd){
				io->user->events ? io->user->fd : -1,
				(short)poll_events(io->user->events), 0
			};
	rc = n ? poll(s->polls, n, 0) : 0;
	BUG_ON(rc < 0 && errno != EINTR);
	if (rc <= 0)
		return false;
	n = 0;
	list_for_each_entry (e, &s->envs, link)
		list_for_each_entry (io, &e->ios, link) {
			int events = s->polls[n++].revents;

			BUG_ON(events & POLLNVAL); /* it was closed */
			if (!events || io->due != TIME_NEVER)
				continue;
			io->due = s->now + rng_below(&s->rng, s->delay);
			found = true;
		}
	return found;
}

/* Calls the function of @io, of which the loop has heard. */
static void io_call(struct sim_env *e, struct sim_io *io)
{
	struct env_io *user = io->user;
	struct pollfd p = { user->fd, (short)poll_events(user->events), 0 };
	int events = io->restless ? ENV_READ & user->events : 0;

	io->due = TIME_NEVER;
	if (poll(&p, 1, 0) > 0)
		events |= events_of(user, p.revents);
	if (!events)
		return;
	io->restless = false;
	e->serving = io;
	user->fn(user, events);
	if (e->serving == io && user->rest && !user->rest(user)) {
		/* in the next turn, so that this one ends */
		io->due = e->sim->now + 1;
		io->restless = true;
	}
	e->serving = NULL;
}

static struct sim_io *io_due(struct sim_env *e)
{
	struct sim_io *io;

	list_for_each_entry (io, &e->ios, link)
		if (io->due <= e->sim->now)
			return io;
	return NULL;
}

static void ios_serve(struct sim_env *e)
{
	struct loop *before = loop_enter(e->env.loop);
	struct sim_io *io;

	while ((io = io_due(e)))
		io_call(e, io);
	loop_leave(before);
}

/* Returns when the loop of @e has something to do next. */
static uint64_t sim_next(const struct sim_env *e)
{
	uint64_t next = e->woken ? 0 : e->alarm;
	const struct sim_io *io;

	list_for_each_entry (io, &e->ios, link)
		next = MIN(next, io->due);
	return MAX(next, e->frozen);
}

void env_sim_delay(struct env_sim *s, uint64_t most)
{
	s->delay = most;
}

/* Is @fd a socket that does not listen? */
static bool is_for_data(int fd)
{
	socklen_t size = sizeof(int);
	int listens;

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) &&
	       !listens;
}

void env_sim_hang_up(struct env *env)
{
	const struct sim_io *io;

	/* Nothing comes to this end: it does not know that it is dead. */
	list_for_each_entry (io, &sim_env(env)->ios, link)
		if (is_for_data(io->user->fd))
			(void)shutdown(io->user->fd, SHUT_WR);
}

/* ---- turns ---- */

static void sim_turn(struct sim_env *e)
{
	/* Cleared before the turn, since the turn may set them again. */
	e->woken = false;
	e->alarm = TIME_NEVER;
	e->sim->round = &e->link;
	loop_turn_begin(e->env.loop);
	ios_serve(e);
	loop_turn_end(e->env.loop);
}

static void sim_run_once(struct env *env, enum env_wait wait)
{
	struct sim_env *e = sim_env(env);
	struct env_sim *s = e->sim;

	if (wait == ENV_WAIT) {
		do {
			/* There must be something that can happen, or this
			 * would wait for ever. */
			BUG_ON(!env_sim_step(s, TIME_NEVER));
		} while (s->round != &e->link);
	} else {
		sim_turn(e);
	}
}

static void sim_env_free(struct env *env)
{
	struct sim_env *e = sim_env(env);

	BUG_ON(!list_empty(&e->ios));
	if (e->sim->round == &e->link)
		e->sim->round = e->link.prev;
	list_del(&e->link);
	free(e);
}

static int sim_fd(struct env *env)
{
	(void)env;
	return -ENOTSUP;
}

static const struct env_ops sim_ops = {
	.is_virtual = true,
	.clock = sim_clock,
	.random = sim_random,
	.alarm = sim_alarm,
	.wake = sim_wake,
	.watch = sim_watch,
	.unwatch = sim_unwatch,
	.run_once = sim_run_once,
	.fd = sim_fd,
	.free = sim_env_free,
};

int env_sim_new(uint64_t seed, struct env_sim **sim_p)
{
	struct env_sim *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (getrandom(&s->world, sizeof(s->world), 0) < 0) {
		free(s);
		return -EAGAIN;
	}
	s->world |= 1; /* 0 is none */
	rng_seed(&s->rng, seed);
	list_init(&s->envs);
	s->round = &s->envs;
	lockstep_init(&s->lockstep, 0);
	*sim_p = s;
	return 0;
}

void env_sim_free(struct env_sim *s)
{
	BUG_ON(!list_empty(&s->envs));
	lockstep_fini(&s->lockstep);
	free(s->polls);
	free(s);
}

int env_sim_env(struct env_sim *s, struct env **env_p)
{
	struct sim_env *e = malloc(sizeof(*e));

	if (!e)
		return -ENOMEM;
	*e = (struct sim_env){
		.env.ops = &sim_ops,
		.env.lockstep = &s->lockstep,
		.env.held = &e->frozen,
		.env.world = s->world,
		.sim = s,
		.alarm = TIME_NEVER,
	};
	list_init(&e->ios);
	list_add_tail(&s->envs, &e->link);
	*env_p = &e->env;
	return 0;
}

void env_sim_freeze(struct env *env, uint64_t until)
{
	sim_env(env)->frozen = until;
}

uint64_t env_sim_now(const struct env_sim *s)
{
	return s->now;
}

uint64_t env_sim_random(struct env_sim *s)
{
	return rng_next(&s->rng);
}

/* Returns the next env of the round that has something to do now. NULL: none
 * has; then *@alarm_p is the earliest alarm of all envs, ns. */
static struct sim_env *find_ready(struct env_sim *s, uint64_t *alarm_p)
{
	struct list *at = s->round;
	uint64_t alarm = TIME_NEVER;

	do {
		struct sim_env *e;
		uint64_t next;

		at = at->next;
		if (at == &s->envs)
			continue;
		e = list_entry(at, struct sim_env, link);
		next = sim_next(e);
		if (next <= s->now)
			return e;
		alarm = MIN(alarm, next);
	} while (at != s->round);
	*alarm_p = alarm;
	return NULL;
}

bool env_sim_step(struct env_sim *s, uint64_t until)
{
	struct sim_env *e;
	uint64_t at = TIME_NEVER;

	if (until < s->now)
		return false;
	if (lockstep_run(&s->lockstep, s->now))
		return true;
	e = find_ready(s, &at);
	if (e) {
		sim_turn(e);
		return true;
	}
	if (s->nios && sim_look(s))
		return true;
	s->round = &s->envs;
	at = MIN(at, MAX(lockstep_next(&s->lockstep), s->now));
	if (at != TIME_NEVER && at <= until) {
		s->now = at;
		return true;
	}
	if (until != TIME_NEVER)
		s->now = until;
	return false;
}
