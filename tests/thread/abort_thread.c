/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node with two CPTs in threads, that calls itself. A handler begins to get
 * the caller's bulk, and leaves the reply to another thread, which replies at
 * some time, perhaps after it has canceled the transfer. Meanwhile the client
 * is closed, or the deadline passes, so that the bulk is aborted. Each call and
 * each transfer must end once, and all memory must come back.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/list.h"
#include "base/util.h"
#include "ulnet/service.h"

#define ROUNDS	 300
#define CALLS	 8 /* in each round */
#define BYTES	 8192
#define SEGMENT	 64
#define DEADLINE 60000000 /* us: nothing should take so long */

static struct lnet *node;
static struct ulrpc *rpc;

/* Counts of what has happened, for those who wait for it. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int begun;    /* handlers that have begun, in this round */
	unsigned int ended;    /* calls that have ended, in this round */
	unsigned int released; /* bulks that were released, in this round */
	unsigned int replied;  /* handlers that have replied, in this round */
	unsigned int moved, aborted;
	struct list jobs; /* jobs that wait for their reply */
	bool stop;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER,
	   .changed = PTHREAD_COND_INITIALIZER };

#define CHECK(cond)                                                        \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond);                                    \
			abort();                                           \
		}                                                          \
	} while (0)

static void count(unsigned int *n)
{
	pthread_mutex_lock(&seen.lock);
	++*n;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
}

static void wait_for(const unsigned int *n, unsigned int want)
{
	pthread_mutex_lock(&seen.lock);
	while (*n < want)
		pthread_cond_wait(&seen.changed, &seen.lock);
	/* A request that had no time left may reach its handler a round later.
	 */
	CHECK(n == &seen.begun || *n == want);
	pthread_mutex_unlock(&seen.lock);
}

/* Waits for the replies of all handlers that have begun, so that no round
 * leaves work to the next. */
static void wait_for_replies(void)
{
	pthread_mutex_lock(&seen.lock);
	while (seen.replied < seen.begun)
		pthread_cond_wait(&seen.changed, &seen.lock);
	pthread_mutex_unlock(&seen.lock);
}

/* ---- the service ---- */

struct job {
	struct list link; /* link in seen.jobs */
	struct ulrpc_request *request;
	_Atomic unsigned int refs; /* one of the transfer, one of the reply */
	atomic_bool ended;
	unsigned int number;
	uint8_t bytes[BYTES];
};

static void job_put(struct job *job)
{
	if (atomic_fetch_sub(&job->refs, 1) == 1)
		free(job);
}

static void on_got(void *arg, int status, uint64_t moved)
{
	struct job *job = arg;

	CHECK(!atomic_exchange(&job->ended, true));
	CHECK(status ? moved < BYTES : moved == BYTES);
	for (uint64_t i = 0; i < moved; i++)
		CHECK(job->bytes[i] == 7);
	count(status ? &seen.aborted : &seen.moved);
	job_put(job);
}

static void on_take(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	struct job *job = calloc(1, sizeof(*job));
	struct iovec iov = { job->bytes, BYTES };
	static unsigned int number;

	(void)arg;
	(void)body;
	(void)length;
	atomic_init(&job->refs, 2);
	job->request = r;
	job->number = number++;
	CHECK(ulrpc_bulk_get(r, 0, 0, &iov, 1, on_got, job) == 0);
	pthread_mutex_lock(&seen.lock);
	list_add_tail(&seen.jobs, &job->link);
	pthread_mutex_unlock(&seen.lock);
	count(&seen.begun);
}

static void reply_to(struct job *job)
{
	/* Waits for a short and varying time, but keeps the processor: if
	 * another process got it, that could take long. */
	for (volatile unsigned int i = job->number * 7 % 50 * 4000; i > 0; i--)
		;
	for (unsigned int i = job->number % 3; i--;)
		CHECK(ulrpc_bulk_cancel(job->request, 0) == 0);
	if (job->number % 5)
		ulrpc_reply(job->request, "got it", 6);
	else
		ulrpc_fail(job->request, -EIO);
	job_put(job);
	count(&seen.replied);
}

static void *replier(void *arg)
{
	pthread_mutex_lock(&seen.lock);
	for (;;) {
		struct job *job;

		while (list_empty(&seen.jobs) && !seen.stop)
			pthread_cond_wait(&seen.changed, &seen.lock);
		if (list_empty(&seen.jobs))
			break;
		job = list_first(&seen.jobs, struct job, link);
		list_del(&job->link);
		pthread_mutex_unlock(&seen.lock);
		reply_to(job);
		pthread_mutex_lock(&seen.lock);
	}
	pthread_mutex_unlock(&seen.lock);
	return arg;
}

static struct ulrpc_service *serve(void)
{
	const struct ulrpc_method_conf method = { .name = "take",
						  .handler = on_take,
						  .run = ULRPC_RUN_INLINE };
	struct ulrpc_service *service;
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = "taker";
	conf.methods = &method;
	conf.nmethods = 1;
	conf.segments = 1;
	CHECK(ulrpc_service_start(rpc, &conf, &service) == 0);
	return service;
}

/* ---- callers ---- */

static uint8_t memory[CALLS][BYTES];

static void on_done(void *arg, const struct ulrpc_outcome *o, const void *reply,
		    size_t length)
{
	atomic_bool *done = arg;

	CHECK(!atomic_exchange(done, true));
	CHECK(o->cause != ULRPC_CAUSE_OK || (reply && length == 6));
	count(&seen.ended);
}

static void on_released(void *arg)
{
	(void)arg;
	count(&seen.released);
}

static struct ulrpc_client *client_open(void)
{
	struct ulnet_nid nid = LNET_NID_LO;
	struct ulrpc_client_conf conf;
	struct ulrpc_client *c;

	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "taker";
	CHECK(ulrpc_client_open(rpc, &conf, &c) == 0);
	return c;
}

static struct ulrpc_bulk *call(struct ulrpc_client *c, unsigned int i,
			       uint64_t deadline, atomic_bool *done)
{
	struct iovec iov = { memory[i], BYTES };
	struct ulrpc_bulk_conf lend = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SOURCE,
					.segment = SEGMENT };
	struct ulrpc_call_conf conf = { .deadline = deadline, .nbulks = 1 };
	struct ulrpc_bulk *bulk;

	memset(memory[i], 7, BYTES);
	CHECK(ulrpc_bulk_new(rpc, &lend, &bulk) == 0);
	conf.bulks = &bulk;
	CHECK(ulrpc_call(c, ulrpc_method("take"), NULL, 0, &conf, on_done, done,
			 NULL) == 0);
	return bulk;
}

/* Either the client is closed as soon as some of its calls are being served, or
 * the time of the calls is too short. */
static void one_round(unsigned int n)
{
	bool goes = n % 2;
	atomic_bool done[CALLS] = { false };
	struct ulrpc_bulk *bulks[CALLS];
	struct ulrpc_client *c = client_open();

	pthread_mutex_lock(&seen.lock);
	seen.begun = seen.ended = seen.released = seen.replied = 0;
	pthread_mutex_unlock(&seen.lock);
	for (unsigned int i = 0; i < CALLS; i++)
		bulks[i] = call(c, i, goes ? DEADLINE : 500 + 100 * (n % 20),
				&done[i]);
	if (goes) {
		wait_for(&seen.begun, CALLS);
		ulrpc_client_close(c);
	}
	wait_for(&seen.ended, CALLS);
	for (unsigned int i = 0; i < CALLS; i++)
		ulrpc_bulk_close(bulks[i], on_released, NULL);
	wait_for(&seen.released, CALLS);
	/* All bulk has been released: nobody reads this memory any more. */
	memset(memory, 0, sizeof(memory));
	if (!goes)
		ulrpc_client_close(c);
	wait_for_replies();
}

int main(void)
{
	struct ulrpc_service *service;
	struct ulnet_conf conf;
	pthread_t thread;

	list_init(&seen.jobs);
	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	conf.cpts = 2;
	CHECK(lnet_open(&conf, &node) == 0);
	CHECK(ulrpc_open(node, NULL, &rpc) == 0);
	service = serve();
	CHECK(pthread_create(&thread, NULL, replier, NULL) == 0);
	for (unsigned int i = 0; i < ROUNDS; i++)
		one_round(i);
	CHECK(ulrpc_service_stop(service, DEADLINE) == 0);
	pthread_mutex_lock(&seen.lock);
	seen.stop = true;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
	pthread_join(thread, NULL);
	CHECK(ulrpc_close(rpc) == 0);
	lnet_close(node);
	printf("%u transfers, and %u that were aborted\n", seen.moved,
	       seen.aborted);
	CHECK(seen.aborted);
	return 0;
}
