/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node with two CPTs in threads:
 *
 *	posters (plain threads) --lnet_post--> CPT 0, CPT 1
 *	CPT 0 <--lnet_post--> CPT 1, by lnet_defer and a timer (a ball)
 *
 * What belongs to a CPT is a plain variable: the thread sanitizer sees it when
 * another thread touches one. A lost wake-up is a hang.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include "base/util.h"
#include "ulnet/loop.h"

#define CPTS	2
#define POSTERS 2
#define POSTS	20000 /* of each poster to each CPT */
#define BOUNCES 500

static struct lnet *node;

/* ---- posters ---- */

struct post {
	struct ulnet_work work;
	unsigned int cpt, poster, number;
};

static struct post posts[POSTERS][CPTS][POSTS];
/* Belongs to the CPTs: the next number of each poster, and how many were out of
 * order. */
static struct {
	unsigned int next[POSTERS];
	unsigned int wrong;
} seen[CPTS];

static void on_post(struct ulnet_work *work)
{
	struct post *p = container_of(work, struct post, work);

	if (lnet_cpt_current(node) != (int)p->cpt ||
	    !lnet_cpt_owned(node, p->cpt) || lnet_cpt_owned(node, 1 - p->cpt) ||
	    seen[p->cpt].next[p->poster] != p->number)
		seen[p->cpt].wrong++;
	seen[p->cpt].next[p->poster]++;
}

static void *post_many(void *arg)
{
	unsigned int poster = *(unsigned int *)arg;

	BUG_ON(lnet_cpt_current(node) != -1 || lnet_is_virtual(node));
	for (unsigned int i = 0; i < POSTS; i++) {
		for (unsigned int cpt = 0; cpt < CPTS; cpt++) {
			struct post *p = &posts[poster][cpt][i];

			*p = (struct post){ .work.fn = on_post,
					    .cpt = cpt,
					    .poster = poster,
					    .number = i };
			lnet_post(node, cpt, &p->work);
		}
	}
	return NULL;
}

/* ---- the ball ---- */

struct ball {
	struct ulnet_work work;
	struct ulnet_timer timer;
	unsigned int cpt, left;
	uint64_t now, due;
	bool wrong;
	sem_t done;
};

static void ball_arrives(struct ulnet_work *work);

static void ball_timer(struct ulnet_timer *timer)
{
	struct ball *b = container_of(timer, struct ball, timer);

	if (lnet_now(node, b->cpt) < b->due || lnet_timer_armed(timer))
		b->wrong = true;
	b->cpt = 1 - b->cpt;
	b->work.fn = ball_arrives;
	lnet_post(node, b->cpt, &b->work);
}

/* Runs at the end of the turn, in which time has stood still. */
static void ball_deferred(struct ulnet_work *work)
{
	struct ball *b = container_of(work, struct ball, work);
	uint8_t random;

	if (lnet_now(node, b->cpt) != b->now)
		b->wrong = true;
	lnet_random(node, b->cpt, &random, 1);
	b->due = b->now + random;
	lnet_timer_arm(node, b->cpt, &b->timer, b->due);
}

static void ball_arrives(struct ulnet_work *work)
{
	struct ball *b = container_of(work, struct ball, work);

	/* all CPTs have the same clock */
	if (lnet_now(node, 1 - b->cpt) < b->now)
		b->wrong = true;
	b->now = lnet_now(node, b->cpt);
	if (!b->left--) {
		sem_post(&b->done);
		return;
	}
	work->fn = ball_deferred;
	lnet_defer(node, b->cpt, work);
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void stress(struct ball *ball)
{
	unsigned int number[POSTERS];
	pthread_t threads[POSTERS];

	lnet_post(node, ball->cpt, &ball->work);
	for (unsigned int i = 0; i < POSTERS; i++) {
		number[i] = i;
		BUG_ON(pthread_create(&threads[i], NULL, post_many,
				      &number[i]));
	}
	for (unsigned int i = 0; i < POSTERS; i++)
		pthread_join(threads[i], NULL);
	sem_wait(&ball->done);
	for (unsigned int cpt = 0; cpt < CPTS; cpt++)
		lnet_call(node, cpt, nothing, NULL);
}

int main(void)
{
	struct ball ball = { .work.fn = ball_arrives, .left = BOUNCES };
	struct ulnet_conf conf;
	bool ok;

	lnet_conf_init(&conf);
	conf.cpts = CPTS;
	if (lnet_open(&conf, &node))
		return 1;
	lnet_timer_init(&ball.timer, ball_timer);
	sem_init(&ball.done, 0, 0);
	stress(&ball);
	lnet_close(node);
	sem_destroy(&ball.done);
	ok = !ball.wrong;
	for (unsigned int cpt = 0; cpt < CPTS; cpt++) {
		ok = ok && !seen[cpt].wrong;
		for (unsigned int i = 0; i < POSTERS; i++)
			ok = ok && seen[cpt].next[i] == POSTS;
	}
	if (!ok)
		fprintf(stderr, "ball %d; wrong %u %u, posts %u %u %u %u\n",
			ball.wrong, seen[0].wrong, seen[1].wrong,
			seen[0].next[0], seen[0].next[1], seen[1].next[0],
			seen[1].next[1]);
	return ok ? 0 : 1;
}
