/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/bulk/sealers.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/hash.h"

/* Lists of jobs. The first one has jobs of this process itself; hosts are
 * spread over the others, and hosts that share a list by chance take turns as
 * one host. */
#define LANES 64u

struct sealers {
	struct lnet *node;
	unsigned int max;
	uint64_t seed;
	pthread_mutex_t lock; /* guards what follows */
	struct ulnet_cond wake;
	struct list lanes[LANES]; /* jobs that no sealer has taken */
	uint64_t waiting;	  /* a bit for each lane that is not empty */
	/* the lane from which the next job is taken, if it has one */
	unsigned int lane;
	unsigned int njobs; /* jobs in all lanes */
	unsigned int idle;  /* sealers that wait for jobs */
	unsigned int n;	    /* threads that were started */
	/* There are no more jobs, because the node has crashed or RPC ends: the
	 * threads end, or have ended. */
	bool ending;
	struct ulnet_thread *threads[SEALERS_MAX];
};

/* ---- lanes ---- */

static void lanes_add(struct sealers *l, const struct ulnet_nid *host,
		      struct seal_job *job)
{
	unsigned int lane = 0;

	if (host)
		lane = 1 +
		       hash_bytes(host, sizeof(*host), l->seed) % (LANES - 1);
	list_add_tail(&l->lanes[lane], &job->link);
	l->waiting |= UINT64_C(1) << lane;
	l->njobs++;
}

/* Takes the next job; NULL: there is none. The caller holds the lock. */
static struct seal_job *lanes_pop(struct sealers *l)
{
	uint64_t later = l->waiting & ~UINT64_C(0) << l->lane;
	struct seal_job *job;
	unsigned int lane;

	if (!l->waiting)
		return NULL;
	lane = (unsigned int)__builtin_ctzll(later ? later : l->waiting);
	job = list_pop(&l->lanes[lane], struct seal_job, link);
	if (list_empty(&l->lanes[lane]))
		l->waiting &= ~(UINT64_C(1) << lane);
	l->lane = (lane + 1) % LANES;
	l->njobs--;
	return job;
}

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

		while (!(job = lanes_pop(l)) && !l->ending) {
			l->idle++;
			if (lnet_cond_wait(&l->wake, &l->lock, TIME_NEVER))
				l->ending = true;
			l->idle--;
		}
		if (!job)
			break;
		pthread_mutex_unlock(&l->lock);
		job->run(job);
		shard_post(job->shard, &job->work);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
}

/* Starts one more sealer, unless there are enough, or an idle one can take the
 * next job. Returns whether there is any sealer. The caller holds the lock. */
static bool sealers_grow(struct sealers *l)
{
	if (l->njobs >= l->idle && l->n < l->max &&
	    !lnet_thread_start(l->node, sealer, l, &l->threads[l->n]))
		l->n++;
	return l->n;
}

bool sealers_give(struct shard *s, const struct ulnet_nid *host,
		  struct seal_job *job)
{
	struct sealers *l = s->rpc->sealers;
	bool given;

	job->shard = s;
	job->work.fn = job_done;
	pthread_mutex_lock(&l->lock);
	given = !l->ending && sealers_grow(l);
	if (given) {
		shard_hold(s);
		lanes_add(l, host, job);
		lnet_cond_signal(&l->wake);
	}
	pthread_mutex_unlock(&l->lock);
	return given;
}

/* ---- life ---- */

/* Returns how many sealers are of use: one for each processor but one, which is
 * for the CPTs. */
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
	l->seed = rpc->seed;
	for (unsigned int i = 0; i < LANES; i++)
		list_init(&l->lanes[i]);
	rpc->sealers = l;
	return 0;
}

void sealers_free(struct ulrpc *rpc)
{
	struct sealers *l = rpc->sealers;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	BUG_ON(l->njobs);
	l->ending = true;
	lnet_cond_broadcast(&l->wake);
	pthread_mutex_unlock(&l->lock);
	while (l->n)
		lnet_thread_join(l->threads[--l->n]);
	lnet_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
