/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/spin.h"

/* The least window, ns: from 0 a window could not grow again. */
#define SPIN_MIN NSEC_PER_USEC
/* A thread looks each SPIN_MEASURE how long it was without a processor, and how
 * many it may run on. If it waited for more than one part in SPIN_SHARE, it
 * does not poll for SPIN_OFF_MIN and more. A thread that wakes up on an idle
 * processor waits for less. */
#define SPIN_MEASURE (50 * NSEC_PER_MSEC)
#define SPIN_SHARE   8
#define SPIN_OFF_MIN (100 * NSEC_PER_MSEC)
#define SPIN_OFF_MAX (10 * NSEC_PER_SEC)
/* So many windows in vain end polling, too: more than a window needs to grow
 * from SPIN_MIN to the highest value of any setting. */
#define SPIN_VAIN 32

static void spin_off(struct spin *s, uint64_t now)
{
	s->off = MIN(MAX(2 * s->off, SPIN_OFF_MIN), SPIN_OFF_MAX);
	s->off_until = now + s->off;
	/* How long the thread waits for a processor while it does not poll is
	 * not counted. */
	s->since = 0;
	s->vain = 0;
}

static uint64_t env_starved(struct env *env)
{
	return env->ops->starved ? env->ops->starved(env) : 0;
}

static bool too_few_processors(const struct spin *s, struct env *env)
{
	return s->processors && env->ops->processors &&
	       env->ops->processors(env) < s->processors;
}

/* May the thread go on polling? The system counts for each thread, so nothing
 * is known when another one has polled before. */
static bool spin_measure(struct spin *s, struct env *env, uint64_t now)
{
	uint64_t starved = env_starved(env), before = s->starved;
	bool same = s->since && pthread_equal(s->of, pthread_self());
	bool shared = same && starved - MIN(before, starved) >
				      (now - s->since) / SPIN_SHARE;

	s->starved = starved;
	s->of = pthread_self();
	s->since = now;
	if (!shared && !too_few_processors(s, env)) {
		/* It went well since it was measured last. */
		if (same && !s->vain)
			s->off /= 2;
		return true;
	}
	spin_off(s, now);
	return false;
}

uint64_t spin_begin(struct spin *s, struct env *env, uint64_t now, uint64_t max)
{
	if (now < s->off_until)
		return 0;
	if (now - s->since >= SPIN_MEASURE && !spin_measure(s, env, now))
		return 0;
	s->looked = now;
	s->robbed = false;
	s->window = MIN(MAX(s->window, SPIN_MIN), max);
	return s->window;
}

void spin_end(struct spin *s, uint64_t begun, uint64_t now, bool hit)
{
	bool soon = now - begun <= spin_max(s);

	if (hit)
		spin_looked(s, now);
	stat_inc(hit ? s->hits : s->misses);
	s->window = soon ? 2 * s->window : s->window / 2;
	s->vain = hit && !s->robbed ? 0 : s->vain + (hit || soon);
	if (s->vain == SPIN_VAIN)
		spin_off(s, now);
}
