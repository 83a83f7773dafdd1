/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/munge.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "secure/keys.h"

struct munge_jobs {
	struct ulrpc *rpc;
	pthread_mutex_t lock; /* guards what follows */
	struct ulnet_cond wake;
	struct list waiting[DOOR_CLASSES];
	struct ulnet_thread *threads[MUNGE_THREADS];
	unsigned int nthreads;
	unsigned int idle;
	unsigned int strangers; /* threads that ask for strangers, now */
	bool closing;		/* no more questions are asked */
};

/* ---- jobs ---- */

struct munge_job *munge_job_new(struct shard *s, const struct rpc_side *side,
				struct keys *keys)
{
	struct munge_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	list_init(&j->link);
	j->shard = s;
	j->side = side;
	j->keys = keys_ref(keys);
	j->begun = shard_now(s);
	return j;
}

void munge_job_free(struct munge_job *j)
{
	keys_put(j->keys);
	explicit_bzero(&j->question, sizeof(j->question));
	explicit_bzero(&j->answer, sizeof(j->answer));
	free(j);
}

static void on_answer(struct ulnet_work *w)
{
	struct munge_job *j = container_of(w, struct munge_job, work);
	struct shard *s = j->shard;

	j->side->on_munge(s, j);
	munge_job_free(j);
	shard_taken(s);
}

/* ---- threads ---- */

/* Takes the next job; NULL: there is none that may be asked now. The caller
 * holds the lock. */
static struct munge_job *job_take(struct munge_jobs *jobs)
{
	for (unsigned int i = 0; i < DOOR_CLASSES; i++) {
		struct list *l = &jobs->waiting[i];
		bool may = i == DOOR_KNOWN || !jobs->strangers || jobs->closing;

		if (may && !list_empty(l)) {
			struct munge_job *j =
				list_first(l, struct munge_job, link);

			list_del(&j->link);
			return j;
		}
	}
	return NULL;
}

/* Waits for a job. Returns NULL if the thread is to end. The caller holds the
 * lock. */
static struct munge_job *job_wait(struct munge_jobs *jobs)
{
	struct munge_job *j;

	while (!(j = job_take(jobs)) && !jobs->closing) {
		jobs->idle++;
		/* -ECANCELED: the simulator has crashed the node */
		if (lnet_cond_wait(&jobs->wake, &jobs->lock, TIME_NEVER) ==
		    -ECANCELED)
			jobs->closing = true;
		jobs->idle--;
	}
	return j;
}

static void job_fail(struct munge_job *j, int rc, const char *why)
{
	j->answer.rc = rc;
	text_copy(j->answer.why, sizeof(j->answer.why), why);
}

static uint64_t job_now(const struct munge_job *j)
{
	return lnet_now(j->shard->node, j->shard->cpt);
}

static void job_run(struct munge_job *j, bool closing)
{
	if (closing) {
		job_fail(j, -ESHUTDOWN, "this node shuts down");
	} else if (job_now(j) >= j->begun + MUNGE_LIFE) {
		job_fail(j, -EHOSTDOWN,
			 "MUNGE: munged is so slow that it was not asked");
	} else {
		keys_munge(j->keys, &j->question, &j->answer);
	}
	lnet_post(j->shard->node, j->shard->cpt, &j->work);
}

static void thread_main(void *arg)
{
	struct munge_jobs *jobs = arg;
	struct munge_job *j;

	pthread_mutex_lock(&jobs->lock);
	while ((j = job_wait(jobs))) {
		unsigned int stranger = j->class == DOOR_STRANGER;
		bool closing = jobs->closing;

		jobs->strangers += stranger;
		pthread_mutex_unlock(&jobs->lock);
		job_run(j, closing);
		pthread_mutex_lock(&jobs->lock);
		jobs->strangers -= stranger;
	}
	pthread_mutex_unlock(&jobs->lock);
}

/* Starts a thread with all signals blocked: they are for the program's own
 * threads, and writing to a munged that goes away raises SIGPIPE. The caller
 * holds the lock. */
static int thread_add(struct munge_jobs *jobs)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = lnet_thread_start(jobs->rpc->node, thread_main, jobs,
			       &jobs->threads[jobs->nthreads]);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc)
		jobs->nthreads++;
	return rc;
}

/* Starts a thread, unless one is idle or there are enough. Returns 0 if there
 * is any thread. The caller holds the lock. */
static int threads_grow(struct munge_jobs *jobs)
{
	int rc = 0;

	if (!jobs->idle && jobs->nthreads < MUNGE_THREADS)
		rc = thread_add(jobs);
	return jobs->nthreads ? 0 : rc;
}

int munge_ask(struct munge_job *j)
{
	struct shard *s = j->shard;
	struct munge_jobs *jobs = s->rpc->munge;
	int rc;

	pthread_mutex_lock(&jobs->lock);
	rc = jobs->closing ? -ESHUTDOWN : threads_grow(jobs);
	if (!rc) {
		/* Counts like shard_give(), so that ulrpc_close() waits; the
		 * work is posted when the answer has come. */
		atomic_fetch_add(&s->rpc->posted, 1);
		j->work.fn = on_answer;
		list_add_tail(&jobs->waiting[j->class], &j->link);
		lnet_cond_signal(&jobs->wake);
	}
	pthread_mutex_unlock(&jobs->lock);
	return rc;
}

/* ---- life ---- */

static int munge_open(struct ulrpc *rpc)
{
	struct munge_jobs *jobs = calloc(1, sizeof(*jobs));
	int rc;

	if (!jobs)
		return -ENOMEM;
	rc = lnet_cond_init(&jobs->wake);
	if (rc) {
		free(jobs);
		return rc;
	}
	pthread_mutex_init(&jobs->lock, NULL);
	jobs->rpc = rpc;
	for (unsigned int i = 0; i < DOOR_CLASSES; i++)
		list_init(&jobs->waiting[i]);
	rpc->munge = jobs;
	return 0;
}

/* Called when the shard aborts: what was asked is answered soon, and
 * ulrpc_close() waits for that. Not done earlier, because calls under way may
 * need a new connection. */
static void munge_abort(struct shard *s)
{
	struct munge_jobs *jobs = s->rpc->munge;

	if (!jobs)
		return;
	pthread_mutex_lock(&jobs->lock);
	jobs->closing = true;
	lnet_cond_broadcast(&jobs->wake);
	pthread_mutex_unlock(&jobs->lock);
}

static void munge_free(struct ulrpc *rpc)
{
	struct munge_jobs *jobs = rpc->munge;

	if (!jobs)
		return;
	for (unsigned int i = 0; i < jobs->nthreads; i++)
		lnet_thread_join(jobs->threads[i]);
	pthread_mutex_destroy(&jobs->lock);
	lnet_cond_destroy(&jobs->wake);
	free(jobs);
}

const struct rpc_part munge_part = {
	.open = munge_open,
	.shard_abort = munge_abort,
	.free = munge_free,
};
