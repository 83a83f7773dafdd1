/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loops in threads of their own:
 *
 *	callers (plain threads) --loop_call--> loop 0, loop 1
 *	posters (plain threads) --loop_post--> loop 0
 *	loop 0 <--loop_post--> loop 1   (a ball)
 *
 * All counters are plain variables of the loops: the thread sanitizer sees it
 * when another thread touches one. A lost wake-up is a hang.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include "base/loop.h"

#define CALLERS 2
#define POSTERS 2
#define CALLS	3000
#define POSTS	20000
#define BOUNCES 5000

struct side {
	struct loop *loop;
	struct side *other;
	pthread_t thread;
	sem_t started;
	struct work start;
	unsigned int calls;  /* of loop_call, as the loop counts */
	unsigned int posted; /* of posters, as the loop counts */
	unsigned int exdev;
};

struct ball {
	struct work work;
	struct side *at;
	unsigned int left;
	sem_t done;
};

struct post {
	struct work work;
	struct side *to;
};

static struct side sides[2];
static struct post posts[POSTERS][POSTS];

static void on_start(struct work *w)
{
	sem_post(&container_of(w, struct side, start)->started);
}

static void *run(void *arg)
{
	struct side *s = arg;

	loop_run(s->loop);
	return NULL;
}

static int side_init(struct side *s)
{
	struct env *env;
	int rc;

	rc = env_ev_new(NULL, &env);
	if (rc)
		return rc;
	rc = loop_new(env, &s->loop);
	if (rc)
		return rc;
	sem_init(&s->started, 0, 0);
	s->start.fn = on_start;
	loop_post(s->loop, &s->start);
	rc = pthread_create(&s->thread, NULL, run, s);
	if (rc)
		return -rc;
	sem_wait(&s->started);
	return 0;
}

static int count_call(void *arg)
{
	struct side *s = arg;

	BUG_ON(!loop_is_owner(s->loop));
	if (loop_call(s->other->loop, count_call, s->other) == -EXDEV)
		s->exdev++;
	return (int)++s->calls;
}

static void *call_many(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < CALLS; i++) {
		struct side *s = &sides[i % 2];

		BUG_ON(loop_call(s->loop, count_call, s) <= 0);
	}
	return NULL;
}

static void on_post(struct work *w)
{
	container_of(w, struct post, work)->to->posted++;
}

static void *post_many(void *arg)
{
	struct post *p = arg;

	for (unsigned int i = 0; i < POSTS; i++) {
		p[i] = (struct post){ .work.fn = on_post, .to = &sides[0] };
		loop_post(sides[0].loop, &p[i].work);
	}
	return NULL;
}

static void bounce(struct work *w)
{
	struct ball *b = container_of(w, struct ball, work);

	if (!b->left--) {
		sem_post(&b->done);
		return;
	}
	b->at = b->at->other;
	loop_post(b->at->loop, &b->work);
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void stress(void)
{
	struct ball ball = { .work.fn = bounce,
			     .at = &sides[0],
			     .left = BOUNCES };
	pthread_t threads[CALLERS + POSTERS];

	sem_init(&ball.done, 0, 0);
	loop_post(sides[0].loop, &ball.work);
	for (unsigned int i = 0; i < CALLERS; i++)
		BUG_ON(pthread_create(&threads[i], NULL, call_many, NULL));
	for (unsigned int i = 0; i < POSTERS; i++)
		BUG_ON(pthread_create(&threads[CALLERS + i], NULL, post_many,
				      posts[i]));
	for (unsigned int i = 0; i < CALLERS + POSTERS; i++)
		pthread_join(threads[i], NULL);
	sem_wait(&ball.done);
	/* Sent by the same thread, so it comes after all that was posted. */
	loop_call(sides[0].loop, nothing, NULL);
	sem_destroy(&ball.done);
}

int main(void)
{
	bool ok = true;

	sides[0].other = &sides[1];
	sides[1].other = &sides[0];
	for (unsigned int i = 0; i < 2; i++) {
		if (side_init(&sides[i]))
			return 1;
	}
	stress();
	for (unsigned int i = 0; i < 2; i++) {
		struct side *s = &sides[i];

		loop_stop(s->loop);
		pthread_join(s->thread, NULL);
		ok = ok && s->calls == CALLERS * CALLS / 2 &&
		     s->exdev == s->calls;
		loop_free(s->loop);
		sem_destroy(&s->started);
	}
	if (sides[0].posted != POSTERS * POSTS)
		ok = false;
	if (!ok)
		fprintf(stderr, "calls %u %u, -EXDEV %u %u, posts %u\n",
			sides[0].calls, sides[1].calls, sides[0].exdev,
			sides[1].exdev, sides[0].posted);
	return ok ? 0 : 1;
}
