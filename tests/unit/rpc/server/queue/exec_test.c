/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers: real threads, which run jobs that block until the test posts a
 * semaphore. */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdatomic.h>
#include "rpc/server/queue/exec.h"
#include "ulnet/lnet.h"

#define ITEMS 64

struct job {
	struct sched_item item;
	struct sched_client client;
	struct sched_host host;
	sem_t *go; /* NULL: the job ends at once */
	struct exec_wait wait;
	bool waits; /* waits for its client until @go */
	bool done;
};

static struct exec exec;
static struct sched_plan plan;
static struct job jobs[ITEMS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned int begun, ended, at_once, most, gone;
static unsigned int waiting, woken;
static const struct bulk_progress progress;
static atomic_uint not_workers; /* jobs that did not run on a worker */
static struct lnet *node;

static void count(unsigned int *what)
{
	pthread_mutex_lock(&lock);
	(*what)++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void on_wake(struct exec_wait *w)
{
	(void)w;
	count(&woken);
}

static void run(struct sched_item *item)
{
	struct job *j = container_of(item, struct job, item);

	not_workers += !exec_is_mine(&exec);
	pthread_mutex_lock(&lock);
	begun++;
	at_once++;
	most = MAX(most, at_once);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	if (j->waits) {
		cr_assert(exec_wait_begin(&exec, &j->wait));
		count(&waiting);
	}
	if (j->go)
		sem_wait(j->go);
	if (j->waits)
		exec_wait_end(&exec, &j->wait);
	pthread_mutex_lock(&lock);
	at_once--;
	ended++;
	j->done = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void on_gone(void *arg)
{
	(void)arg;
	count(&gone);
}

static void wait_for(const unsigned int *what, unsigned int n)
{
	pthread_mutex_lock(&lock);
	while (*what < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void open_exec_with(const char *policy, unsigned int min,
			   unsigned int max, bool reserve)
{
	struct ulnet_conf nc;
	struct exec_conf conf = { .min = min,
				  .max = max,
				  .plan = &plan,
				  .ratio = 10,
				  .reserve = reserve,
				  .run = run,
				  .gone = on_gone };

	cr_assert_eq(sched_plan_parse(policy, &plan, NULL), 0);
	lnet_conf_init(&nc);
	nc.run = LNET_RUN_THREADS;
	cr_assert_eq(lnet_open(&nc, &node), 0);
	conf.node = node;
	cr_assert_eq(exec_open(&exec, &conf), 0);
}

static void open_exec(unsigned int min, unsigned int max, bool reserve)
{
	open_exec_with(NULL, min, max, reserve);
}

static void close_exec(void)
{
	exec_close(&exec);
	wait_for(&gone, 1);
	cr_assert_eq(not_workers, 0);
	cr_assert_not(exec_is_mine(&exec));
	exec_free(&exec);
	sched_plan_free(&plan);
	lnet_close(node);
}

static void add(unsigned int i, enum sched_lane lane, sem_t *go)
{
	jobs[i].item.lane = (uint8_t)lane;
	jobs[i].client.host = &jobs[i].host;
	jobs[i].item.client = &jobs[i].client;
	jobs[i].item.deadline = TIME_NEVER;
	jobs[i].go = go;
	cr_assert(exec_add(&exec, &jobs[i].item, 0));
}

Test(exec, nothing_to_do)
{
	open_exec(4, 4, false);
	close_exec();
}

Test(exec, all_are_run_before_the_end)
{
	open_exec(2, 2, false);
	for (unsigned int i = 0; i < ITEMS; i++)
		add(i, (enum sched_lane)(i % LANES), NULL);
	close_exec();
	cr_assert_eq(ended, ITEMS);
}

/* A worker is added for each one that blocks, up to the limit. */
Test(exec, grows)
{
	sem_t go;

	sem_init(&go, 0, 0);
	open_exec(1, 5, false);
	cr_assert_eq(exec.nworkers, 1);
	for (unsigned int i = 0; i < 8; i++)
		add(i, LANE_NORMAL, &go);
	wait_for(&begun, 5);
	cr_assert_eq(exec.nworkers, 5);
	for (unsigned int i = 0; i < 8; i++)
		sem_post(&go);
	wait_for(&ended, 8);
	cr_assert_eq(most, 5);
	close_exec();
}

Test(exec, fixed_does_not_grow)
{
	sem_t go;

	sem_init(&go, 0, 0);
	open_exec(2, 2, false);
	for (unsigned int i = 0; i < 8; i++) {
		add(i, LANE_NORMAL, &go);
		sem_post(&go);
	}
	wait_for(&ended, 8);
	cr_assert_leq(most, 2);
	close_exec();
}

/* One worker is reserved for the high lane, whatever the normal jobs do. */
Test(exec, one_is_reserved)
{
	sem_t go;

	sem_init(&go, 0, 0);
	open_exec(1, 3, true);
	for (unsigned int i = 0; i < 6; i++)
		add(i, LANE_NORMAL, &go);
	wait_for(&begun, 2);
	add(6, LANE_HIGH, NULL);
	wait_for(&ended, 1);
	cr_assert(jobs[6].done);
	pthread_mutex_lock(&lock);
	cr_assert_eq(begun, 3, "not more than 2 others");
	pthread_mutex_unlock(&lock);
	for (unsigned int i = 0; i < 6; i++)
		sem_post(&go);
	wait_for(&ended, 7);
	close_exec();
}

Test(exec, removed)
{
	sem_t go;

	sem_init(&go, 0, 0);
	open_exec(1, 1, false);
	add(0, LANE_NORMAL, &go);
	wait_for(&begun, 1);
	add(1, LANE_NORMAL, NULL);
	add(2, LANE_NORMAL, NULL);
	cr_assert_not(exec_remove(&exec, &jobs[0].item));
	cr_assert(exec_remove(&exec, &jobs[1].item));
	cr_assert_not(exec_remove(&exec, &jobs[1].item));
	sem_post(&go);
	wait_for(&ended, 2);
	close_exec();
	cr_assert_not(jobs[1].done);
	cr_assert(jobs[2].done);
}

/* The gate lets one job through each millisecond, and wakes idle workers for
 * it. */
Test(exec, gate)
{
	open_exec_with("tbf rate=1000 depth=1 per=rule", 4, 4, false);
	for (unsigned int i = 0; i < ITEMS; i++) {
		jobs[i].host.nid = &LNET_NID_LO;
		add(i, (enum sched_lane)(i % LANES), NULL);
	}
	wait_for(&ended, ITEMS);
	for (unsigned int i = 0; i < ITEMS; i++)
		cr_assert_eq(jobs[i].item.released != 0, i != 0);
	close_exec();
}

/* ---- waits for clients ---- */

static struct ulnet_nid nids[ITEMS];

/* Adds a job that waits for its client, which is on host @of. */
static void add_wait(unsigned int i, unsigned int of, sem_t *go)
{
	nids[i] = LNET_NID_LO;
	nids[i].addr[0] = of;
	jobs[i].waits = true;
	jobs[i].wait = (struct exec_wait){ .client = &jobs[i].client,
					   .item = &jobs[i].item,
					   .host = &nids[i],
					   .progress = &progress,
					   .wake = on_wake };
	add(i, LANE_NORMAL, go);
}

static unsigned int locked(const unsigned int *what)
{
	unsigned int n;

	pthread_mutex_lock(&exec.lock);
	n = *what;
	pthread_mutex_unlock(&exec.lock);
	return n;
}

/* A worker that waits for its client gives its seat to another one, and no
 * other worker does. */
Test(exec, waiting_workers_give_way)
{
	sem_t go;

	sem_init(&go, 0, 0);
	open_exec(2, 2, false);
	add_wait(0, 0, &go);
	add_wait(1, 1, &go);
	wait_for(&waiting, 2);
	cr_assert_eq(locked(&exec.nworkers), 2);
	for (unsigned int i = 2; i < 20; i++) {
		add(i, LANE_NORMAL, NULL);
		wait_for(&ended, i - 1);
	}
	cr_assert_eq(woken, 0);
	add(20, LANE_NORMAL, &go);
	add(21, LANE_NORMAL, &go);
	wait_for(&begun, 22);
	add(22, LANE_NORMAL, NULL);
	cr_assert_eq(locked(&exec.seated), 2);
	cr_assert_eq(locked(&exec.away.used), 2);
	cr_assert_eq(locked(&exec.nworkers), 4);
	for (unsigned int i = 0; i < 4; i++)
		sem_post(&go);
	wait_for(&ended, 23);
	close_exec();
	cr_assert_eq(exec.away.used, 0);
}

/* Workers that wait for clients of one host may take only a share of the spare
 * threads, so that some are left for the next host. Those that have to keep
 * their seats are woken when other jobs wait. */
Test(exec, waits_have_shares)
{
	sem_t go;

	sem_init(&go, 0, 0);
	open_exec(4, 4, false);
	for (unsigned int i = 0; i < 7; i++)
		add_wait(i, 0, &go);
	wait_for(&waiting, 7);
	cr_assert_eq(locked(&exec.away.used), 3);
	cr_assert_eq(locked(&exec.seated), 4);
	cr_assert_eq(woken, 0);
	add(7, LANE_NORMAL, NULL);
	wait_for(&woken, 4);
	/* Job 7 gets the seat of whichever ends first. */
	sem_post(&go);
	wait_for(&ended, 2);
	cr_assert(jobs[7].done);
	for (unsigned int i = 0; i < 6; i++)
		sem_post(&go);
	wait_for(&ended, 8);
	cr_assert_eq(locked(&exec.nworkers), 7);
	close_exec();
}

static void sleep_until(uint64_t until)
{
	static struct ulnet_cond never;

	cr_assert_eq(lnet_cond_init(&never), 0);
	pthread_mutex_lock(&lock);
	while (!lnet_cond_wait(&never, &lock, until))
		;
	pthread_mutex_unlock(&lock);
	lnet_cond_destroy(&never);
}

/* The gate lets a job through even while all workers wait, and then those that
 * keep their seats are woken. */
Test(exec, gate_while_all_wait)
{
	uint64_t until;
	sem_t go;

	sem_init(&go, 0, 0);
	open_exec_with("tbf rate=1000 depth=1 per=rule", 4, 4, false);
	for (unsigned int i = 0; i < 7; i++) {
		jobs[i].host.nid = &LNET_NID_LO;
		add_wait(i, 0, &go);
	}
	wait_for(&waiting, 7);
	cr_assert_eq(locked(&exec.seated), 4);
	jobs[7].host.nid = &LNET_NID_LO;
	add(7, LANE_NORMAL, NULL);
	wait_for(&woken, 4);
	while (!locked(&exec.lanes.queued)) {
		for (unsigned int i = 0; i < 7; i++)
			if (exec_wait_look(&exec, &jobs[i].wait, &until) ==
			    EXEC_WAIT_SEATED)
				break;
		cr_assert_neq(until, TIME_NEVER);
		if (!locked(&exec.lanes.queued))
			sleep_until(until);
	}
	sem_post(&go);
	wait_for(&ended, 2);
	cr_assert(jobs[7].done);
	for (unsigned int i = 0; i < 6; i++)
		sem_post(&go);
	wait_for(&ended, 8);
	close_exec();
}

/* A worker whose client has come back goes on at once, even without a seat. */
Test(exec, back_at_once)
{
	sem_t back, go;

	sem_init(&back, 0, 0);
	sem_init(&go, 0, 0);
	open_exec(1, 1, false);
	add_wait(0, 0, &back);
	wait_for(&waiting, 1);
	add(1, LANE_NORMAL, &go);
	wait_for(&begun, 2);
	sem_post(&back);
	wait_for(&ended, 1);
	cr_assert(jobs[0].done);
	add(2, LANE_NORMAL, NULL);
	sem_post(&go);
	wait_for(&ended, 3);
	close_exec();
}
