/* SPDX-License-Identifier: BSD-3-Clause */
#include "etcd/node.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

/* ---- jobs ---- */

static void job_main(void *arg)
{
	struct etcd_job *job = arg;

	job->main(job);
	pthread_mutex_lock(&job->node->lock);
	job->done = true;
	pthread_mutex_unlock(&job->node->lock);
}

static void job_free(struct etcd_job *job)
{
	etcd_link_fini(&job->link);
	free(job);
}

/* Takes a job that is closed, and whose thread has returned (or whatever its
 * thread does, if @any), off the list. */
static struct etcd_job *job_pop(struct etcd_node *node, bool any)
{
	struct etcd_job **p, *job;

	pthread_mutex_lock(&node->lock);
	for (p = &node->jobs; *p; p = &(*p)->next)
		if (any || ((*p)->closed && (*p)->done))
			break;
	job = *p;
	if (job)
		*p = job->next;
	pthread_mutex_unlock(&node->lock);
	return job;
}

/* Frees those that have ended. */
static void jobs_reap(struct etcd_node *node)
{
	struct etcd_job *job;

	while ((job = job_pop(node, false))) {
		lnet_thread_join(job->thread);
		job_free(job);
	}
}

int etcd_job_start(struct etcd_node *node, struct etcd_job *job,
		   const struct etcd_text *text,
		   void (*main)(struct etcd_job *job))
{
	int rc = etcd_link_init(&job->link, text);

	jobs_reap(node);
	if (rc) {
		free(job);
		return rc;
	}
	job->node = node;
	job->main = main;
	job->link.times = node->times;
	job->retry = ETCD_RETRY_MIN;
	job->retry_max = ETCD_RETRY_MAX;
	/* The thread takes the lock at its end only. */
	pthread_mutex_lock(&node->lock);
	if (text->tls)
		job->link.settings = etcd_settings_get(node->settings);
	rc = lnet_thread_start(node->lnet, job_main, job, &job->thread);
	if (!rc) {
		job->next = node->jobs;
		node->jobs = job;
	}
	pthread_mutex_unlock(&node->lock);
	if (rc)
		job_free(job);
	return rc;
}

void etcd_job_close(struct etcd_job *job)
{
	struct etcd_node *node = job->node;
	bool ended;

	etcd_link_stop(&job->link);
	pthread_mutex_lock(&node->lock);
	job->closed = true;
	ended = !job->thread;
	pthread_mutex_unlock(&node->lock);
	if (ended)
		job_free(job);
}

void etcd_job_join(struct etcd_job *job)
{
	struct etcd_node *node = job->node;
	struct etcd_job **p = &node->jobs;

	etcd_link_stop(&job->link);
	pthread_mutex_lock(&node->lock);
	while (*p != job)
		p = &(*p)->next;
	*p = job->next;
	pthread_mutex_unlock(&node->lock);
	lnet_thread_join(job->thread);
	job_free(job);
}

int etcd_job_retry(struct etcd_job *job)
{
	unsigned int ms = job->retry;

	job->retry = MIN(ms * 2, job->retry_max);
	return etcd_link_pause(&job->link, ms);
}

/* ---- nodes ---- */

void etcd_node_get(struct etcd_node *node)
{
	pthread_mutex_lock(&node->lock);
	node->refs++;
	pthread_mutex_unlock(&node->lock);
}

void etcd_node_put(struct etcd_node *node)
{
	bool last;

	pthread_mutex_lock(&node->lock);
	last = --node->refs == 0;
	pthread_mutex_unlock(&node->lock);
	if (!last)
		return;
	lnet_cond_destroy(&node->changed);
	pthread_mutex_destroy(&node->lock);
	etcd_settings_put(node->settings);
	free(node);
}

static void node_on_close(struct ulnet_layer *layer)
{
	/* the layer is the first field */
	struct etcd_node *node = (struct etcd_node *)(void *)layer;
	struct etcd_job *job;

	pthread_mutex_lock(&node->lock);
	for (job = node->jobs; job; job = job->next)
		etcd_link_stop(&job->link);
	pthread_mutex_unlock(&node->lock);
	while ((job = job_pop(node, true))) {
		lnet_thread_join(job->thread);
		/* Whoever has opened it closes it later. */
		if (job->closed)
			job_free(job);
		else
			job->thread = NULL;
	}
	lnet_layer_del(node->lnet, layer);
	etcd_node_put(node);
}

struct etcd_node *etcd_node_of(struct lnet *lnet)
{
	return (struct etcd_node *)(void *)lnet_layer_find(lnet, node_on_close);
}

int lnet_etcd_open(struct lnet *lnet)
{
	struct etcd_node *node;
	int rc = lnet_names_open(lnet);

	if (rc || etcd_node_of(lnet))
		return rc;
	if (lnet_is_virtual(lnet))
		return -EOPNOTSUPP;
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->lnet = lnet;
	node->times = ETCD_TIMES_DEFAULT;
	node->refs = 1;
	node->layer.close = node_on_close;
	node->scheme = (struct ulnet_name_scheme){
		.scheme = "etcd",
		.open = etcd_feed_open,
		.close = etcd_feed_close,
		.arg = node,
	};
	node->tls_scheme = node->scheme;
	node->tls_scheme.scheme = "etcds";
	node->tls_scheme.open = etcd_feed_open_tls;
	rc = lnet_cond_init(&node->changed);
	if (rc) {
		free(node);
		return rc;
	}
	pthread_mutex_init(&node->lock, NULL);
	rc = lnet_name_scheme_add(lnet, &node->scheme);
	if (rc) {
		etcd_node_put(node);
		return rc;
	}
	/* A scheme "etcds" of the program's own stays. */
	(void)lnet_name_scheme_add(lnet, &node->tls_scheme);
	lnet_layer_add(lnet, &node->layer);
	return 0;
}

int lnet_etcd_settings(struct lnet *lnet, const char *path,
		       struct ulnet_text_error *err)
{
	struct etcd_node *node = etcd_node_of(lnet);
	struct etcd_settings *made, *old;
	struct ulnet_text_error own = { .what = "" };
	int rc;

	err = err ? err : &own;
	*err = (struct ulnet_text_error){ .what = "" };
	if (!node)
		return -ENXIO;
	rc = etcd_settings_read(path, &made, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&node->lock);
	old = node->settings;
	node->settings = made;
	pthread_mutex_unlock(&node->lock);
	etcd_settings_put(old);
	return 0;
}
