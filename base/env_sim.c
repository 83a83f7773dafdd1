/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual time. Nothing here may depend on addresses or on the real world, so
 * that a run can be repeated. */
#include "base/env.h"

#include <errno.h>
#include <string.h>
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
};

struct sim_env {
	struct env env;
	struct env_sim *sim;
	struct list link;
	uint64_t alarm;
	bool woken;
	uint64_t frozen; /* ns: there are no turns until then */
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

static int sim_watch(struct env *env, struct env_io *io)
{
	(void)env;
	(void)io;
	return -ENOTSUP;
}

static void sim_unwatch(struct env *env, struct env_io *io)
{
	(void)env;
	(void)io;
}

static void sim_turn(struct sim_env *e)
{
	/* Cleared before the turn, since the turn may set them again. */
	e->woken = false;
	e->alarm = TIME_NEVER;
	e->sim->round = &e->link;
	loop_turn_begin(e->env.loop);
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
	struct env_sim *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->now = 0;
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
		.sim = s,
		.alarm = TIME_NEVER,
	};
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
		next = MAX(e->woken ? 0 : e->alarm, e->frozen);
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
