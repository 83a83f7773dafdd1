/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/bulk/sealers.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

struct sealers {
	struct lnet *node;
	unsigned int max;
	pthread_mutex_t lock; /* for what follows */
	struct ulnet_cond wake;
	struct list jobs;   /* that no sealer has taken, and */
	unsigned int njobs; /* their number */
	unsigned int idle;  /* sealers that wait */
	unsigned int n;	    /* threads that were started */
	/* the threads have to end, or have, as the node has crashed: there are
	 * no more jobs */
	bool ending;
	struct ulnet_thread *threads[SEALERS_MAX];
};

/* ---- the threads ---- */

static void job_done(struct ulnet_work *work)
{
	struct seal_job *job = container_of(work, struct seal_job, work);
	struct shard *s = job->shard;

	job->done(job);
	shard_release(s);
}

static void sealer(void *arg)
{
	struct sealers *l = arg;

	pthread_mutex_lock(&l->lock);
	for (;;) {
		struct seal_job *job;

		while (!(job = list_pop(&l->jobs, struct seal_job, link)) &&
		       !l->ending) {
			l->idle++;
			if (lnet_cond_wait(&l->wake, &l->lock, TIME_NEVER))
				l->ending = true;
			l->idle--;
		}
		if (!job)
			break;
		l->njobs--;
		pthread_mutex_unlock(&l->lock);
		job->run(job);
		shard_post(job->shard, &job->work);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
}

/* Starts one more sealer, unless there are enough, or one is idle for the next
 * job. Returns whether there is any. Locked. */
static bool sealers_grow(struct sealers *l)
{
	if (l->njobs >= l->idle && l->n < l->max &&
	    !lnet_thread_start(l->node, sealer, l, &l->threads[l->n]))
		l->n++;
	return l->n;
}

bool sealers_give(struct shard *s, struct seal_job *job)
{
	struct sealers *l = s->rpc->sealers;
	bool given;

	job->shard = s;
	job->work.fn = job_done;
	pthread_mutex_lock(&l->lock);
	given = !l->ending && sealers_grow(l);
	if (given) {
		shard_hold(s);
		list_add_tail(&l->jobs, &job->link);
		l->njobs++;
		lnet_cond_signal(&l->wake);
	}
	pthread_mutex_unlock(&l->lock);
	return given;
}

/* ---- life ---- */

/* How many are of use: a processor is left for the CPTs, if there are more. */
static unsigned int sealers_max(const struct ulrpc *rpc)
{
	cpu_set_t set;
	int n;

	if (rpc->is_virtual || sched_getaffinity(0, sizeof(set), &set))
		return 1;
	n = CPU_COUNT(&set) - 1;
	return (unsigned int)MIN(MAX(n, 1), SEALERS_MAX);
}

int sealers_open(struct ulrpc *rpc)
{
	struct sealers *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	rc = lnet_cond_init(&l->wake);
	if (rc) {
		free(l);
		return rc;
	}
	pthread_mutex_init(&l->lock, NULL);
	l->node = rpc->node;
	l->max = sealers_max(rpc);
	list_init(&l->jobs);
	rpc->sealers = l;
	return 0;
}

void sealers_free(struct ulrpc *rpc)
{
	struct sealers *l = rpc->sealers;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	BUG_ON(!list_empty(&l->jobs));
	l->ending = true;
	lnet_cond_broadcast(&l->wake);
	pthread_mutex_unlock(&l->lock);
	while (l->n)
		lnet_thread_join(l->threads[--l->n]);
	lnet_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
