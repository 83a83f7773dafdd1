/* SPDX-License-Identifier: BSD-3-Clause */
#include "cutoff.h"

#include <errno.h>

#include <ulnet/lnet.h>

#define TURN_US 10000

static void take_networks(struct lnet *node)
{
	struct ulnet_ni_info info;

	/* The first is 0@lo, which stays. */
	while (lnet_ni_info(node, 1, &info) == 0 &&
	       lnet_ni_del(node, &info.nid) == 0)
		;
}

static void *cutoff_main(void *arg)
{
	struct cutoff *c = arg;
	int rc = 0;
	bool over;

	pthread_mutex_lock(&c->lock);
	while (!c->over && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&c->changed, &c->lock, &c->at);
	over = c->over;
	pthread_mutex_unlock(&c->lock);
	if (!over)
		take_networks(c->node);
	atomic_store(&c->ended, true);
	return NULL;
}

void cutoff_begin(struct cutoff *c, struct lnet *node, uint64_t us)
{
	pthread_condattr_t attr;

	*c = (struct cutoff){ .node = node };
	clock_gettime(CLOCK_MONOTONIC, &c->at);
	c->at.tv_sec += (time_t)(us / 1000000);
	c->at.tv_nsec += (long)(us % 1000000) * 1000;
	if (c->at.tv_nsec >= 1000000000) {
		c->at.tv_sec++;
		c->at.tv_nsec -= 1000000000;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	c->running = !pthread_create(&c->thread, NULL, cutoff_main, c);
}

void cutoff_end(struct cutoff *c)
{
	pthread_mutex_lock(&c->lock);
	c->over = true;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
	while (c->running && !atomic_load(&c->ended) &&
	       lnet_poll(c->node, TURN_US) == 0)
		;
	if (c->running)
		pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
}
