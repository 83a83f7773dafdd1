/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/queue/exec.h"

#include <errno.h>
#include <string.h>

#include "base/misuse.h"
#include "ulnet/loop.h"

/* ns: a worker beyond the first min ends when it has had no work for so long.
 */
#define IDLE_NS (10 * NSEC_PER_SEC)

/* A client that workers wait for counts as silent when nothing has come from it
 * for SILENCE_NS, or for SILENCE_TIMES times as long as its slowest answer
 * took, if that is longer. */
#define SILENCE_NS    NSEC_PER_SEC
#define SILENCE_TIMES 4

struct exec_worker {
	struct exec *exec;
	struct list link;
	struct ulnet_thread *thread;
	enum sched_lane lane; /* lane of the request that the worker runs */
	/* ns that the worker has waited for the client of that request */
	uint64_t waited;
};

/* the worker whose thread is calling; NULL: the calling thread is no worker */
static _Thread_local struct exec_worker *worker_here
	__attribute__((tls_model("initial-exec")));

/* A part of a request's time, one in REPLY_PART, is left for the reply to
 * travel. */
#define REPLY_PART 16

static uint64_t exec_now(const struct exec *e)
{
	return lnet_now(e->conf.node, 0);
}

/* ---- what may be served now ---- */

#define LANES_ALL ((1u << LANES) - 1)

/* Returns the number of seats for requests that are not of the high lane. */
static unsigned int seats_normal(const struct exec *e)
{
	return e->conf.max - (e->conf.reserve && e->conf.max > 1);
}

static unsigned int lanes_open(const struct exec *e)
{
	if (unlikely(e->seated >= e->conf.max))
		return 0;
	return e->normal < seats_normal(e) ? LANES_ALL : 1u << LANE_HIGH;
}

/* ---- what can be done in time ---- */

/* Will a worker be free for one more request of @lane when the requests that
 * wait now have got theirs? */
static bool exec_is_free(const struct exec *e, unsigned int lane)
{
	unsigned int open = lanes_open(e), busy = e->seated;

	for (unsigned int i = 0; i < LANES; i++)
		if (open & 1u << i)
			busy += e->lanes.lane[i].queued;
	return open & 1u << lane && busy < e->conf.max;
}

/* Returns ns until a worker takes a request that has @ahead others in front of
 * it. */
static uint64_t exec_wait_behind(const struct exec *e, uint64_t ahead)
{
	uint64_t each = mean_value(&e->worker_time), max = e->conf.max;

	/* The sum of two times: until a worker is free, and for the requests
	 * ahead. */
	return each / (max + 1) + each * ahead / max;
}

static uint64_t exec_wait(const struct exec *e, const struct sched_item *item)
{
	return exec_wait_behind(e, lanes_ahead(&e->lanes, item));
}

/* Returns ns by which @item would be too late if a worker took it at @start; 0:
 * it would be in time. */
static uint64_t exec_missing(const struct sched_item *item, uint64_t start)
{
	uint64_t cost = item->cost ? mean_upto(item->cost, 2) : 0;
	uint64_t end = start + cost;

	if (item->deadline == TIME_NEVER)
		return 0;
	if (item->deadline > item->arrival)
		end += (item->deadline - item->arrival) / REPLY_PART;
	return end > item->deadline ? end - item->deadline : 0;
}

/* Can @item be done in time? The caller holds e->lock. */
static bool exec_is_in_time(struct exec *e, struct sched_item *item,
			    uint64_t now)
{
	uint64_t gate = lanes_gate_wait(&e->lanes, item, now);

	item->late = false;
	item->again = item->wait = 0;
	item->ahead = 0;
	item->taken = e->taken;
	if (!exec_is_free(e, item->lane)) {
		item->ahead = lanes_ahead(&e->lanes, item);
		item->wait = exec_wait_behind(e, item->ahead);
	}
	item->wait = MAX(item->wait, gate);
	if (item->wait)
		item->again = exec_missing(item, now + item->wait);
	return item->again == 0;
}

static void seat_take(struct exec *e, enum sched_lane lane)
{
	e->seated++;
	if (lane != LANE_HIGH)
		e->normal++;
}

static void seat_give(struct exec *e, enum sched_lane lane)
{
	e->seated--;
	if (lane != LANE_HIGH)
		e->normal--;
}

static struct sched_item *exec_take(struct exec *e, uint64_t now,
				    uint64_t *again)
{
	struct sched_item *item;

	item = lanes_take(&e->lanes, lanes_open(e), now, again);
	if (!item)
		return NULL;
	seat_take(e, (enum sched_lane)item->lane);
	e->taken++;
	item->started = now;
	item->late = now >= item->deadline ||
		     (e->lanes.queued && exec_missing(item, now));
	if (item->late)
		item->again = exec_wait(e, item);
	return item;
}

/* Called when a request has ended: frees its seat. @run: the handler was
 * called, and the request had its worker for @took ns. */
static void exec_ended(struct exec *e, enum sched_lane lane, bool run,
		       uint64_t took)
{
	seat_give(e, lane);
	if (run)
		mean_add(&e->worker_time, took);
}

/* ---- threads ---- */

static void exec_work(void *arg);
static void waits_yield(struct exec *e);

/* Starts a thread. The caller holds e->lock. */
static int worker_add(struct exec *e)
{
	struct exec_worker *w = malloc(sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	w->exec = e;
	rc = lnet_thread_start(e->conf.node, exec_work, w, &w->thread);
	if (rc) {
		free(w);
		return rc;
	}
	list_add_tail(&e->workers, &w->link);
	e->nworkers++;
	return 0;
}

static unsigned int workers_present(const struct exec *e)
{
	return e->nworkers - e->away.used;
}

/* Makes a worker if none is idle while requests wait. (Requests in the gate
 * need a worker that looks at the gate.) Locked. */
static void workers_grow(struct exec *e)
{
	int rc;

	if (e->idle || !lanes_any(&e->lanes) ||
	    workers_present(e) >= e->conf.max)
		return;
	rc = worker_add(e);
	if (rc)
		lnet_log(LNET_LOG_WARN, "rpc",
			 "cannot start one more worker: %s", strerror(-rc));
}

/* Moves threads that have ended to @to, to be joined. Locked. */
static void take_ended(struct exec *e, struct list *to)
{
	list_init(to);
	list_splice_tail(to, &e->ended);
}

static void exec_join(struct list *workers)
{
	while (!list_empty(workers)) {
		struct exec_worker *w =
			list_first(workers, struct exec_worker, link);

		list_del(&w->link);
		lnet_thread_join(w->thread);
		free(w);
	}
}

/* Waits until @until (ns), or until there is something to do. If no other idle
 * worker asks the gate at @again (ns), this one does, and returns then.
 * -ECANCELED: this thread is to end; -ETIMEDOUT: @until has come. Locked. */
static int wait_work(struct exec *e, uint64_t until, uint64_t again)
{
	bool looks = again < e->again;
	int rc;

	if (looks) {
		e->again = again;
		until = MIN(until, again);
	}
	e->idle++;
	rc = lnet_cond_wait(&e->wake, &e->lock, until);
	e->idle--;
	if (looks && e->again == again)
		e->again = TIME_NEVER;
	return rc;
}

/* The calling worker has taken a request, and cannot ask the gate any more.
 * Wakes an idle worker, which asks the gate and takes what it lets through.
 * Locked. */
static void wake_next(struct exec *e)
{
	if (e->idle && (e->lanes.queued || e->again == TIME_NEVER))
		lnet_cond_signal(&e->wake);
}

/* Called when the handler has called fork() and returned in the child. */
static out_of_line void abort_child(void)
{
	misuse("the handler of a request called fork(), and returned in the "
	       "child, which has to call exec() or _exit() there: the parent "
	       "answers the request");
}

/* Runs @item. Returns the time (ns) at which that was done. The lock is held on
 * entry and on return, but not while @item runs. */
static uint64_t work_on(struct exec_worker *w, struct sched_item *item)
{
	struct exec *e = w->exec;
	enum sched_lane lane = (enum sched_lane)item->lane;
	uint64_t started = item->started, now;
	bool late = item->late;

	w->lane = lane;
	w->waited = 0;
	workers_grow(e);
	if (unlikely(!list_empty(&e->waits)))
		waits_yield(e);
	if (unlikely(e->lanes.gate))
		wake_next(e);
	pthread_mutex_unlock(&e->lock);
	e->conf.run(item);
	if (unlikely(lnet_is_forked(e->conf.node)))
		abort_child();
	/* the item may have been freed */
	now = exec_now(e);
	pthread_mutex_lock(&e->lock);
	exec_ended(e, lane, !late, now - started - w->waited);
	/* An idle worker may now take a request that had to wait for a seat. */
	if (e->conf.reserve && lane != LANE_HIGH && e->lanes.queued && e->idle)
		lnet_cond_signal(&e->wake);
	return now;
}

/* Works until this worker is not needed any more. Locked. */
static void work_loop(struct exec_worker *w)
{
	struct exec *e = w->exec;
	uint64_t idle_since = exec_now(e);

	for (;;) {
		uint64_t again = TIME_NEVER, until = TIME_NEVER;
		uint64_t now = exec_now(e);
		struct sched_item *item = exec_take(e, now, &again);

		if (item) {
			idle_since = work_on(w, item);
			continue;
		}
		if (e->state == EXEC_CLOSING && !lanes_any(&e->lanes))
			return;
		if (workers_present(e) > e->conf.min) {
			until = idle_since + IDLE_NS;
			if (now >= until)
				return;
		}
		if (wait_work(e, until, again) == -ECANCELED)
			return;
	}
}

static void exec_work(void *arg)
{
	struct exec_worker *w = arg;
	struct exec *e = w->exec;
	void (*gone)(void *arg) = NULL;
	void *gone_arg = e->conf.arg;
	struct list before;

	worker_here = w;
	pthread_mutex_lock(&e->lock);
	work_loop(w);
	take_ended(e, &before);
	list_del(&w->link);
	list_add_tail(&e->ended, &w->link);
	if (--e->nworkers == 0 && e->state == EXEC_CLOSING) {
		gone = e->conf.gone;
		lnet_cond_broadcast(&e->wake);
	}
	pthread_mutex_unlock(&e->lock);
	exec_join(&before);
	if (gone)
		gone(gone_arg);
}

/* ---- waits for clients ---- */

/* Makes the worker of @w leave its seat, unless the client's host has used up
 * its share of threads that are away. Locked. */
static void wait_leave(struct exec *e, struct exec_wait *w)
{
	w->quota = quota_take(&e->away, w->host, 1, exec_now(e));
	if (!w->quota)
		return;
	w->state = EXEC_WAIT_AWAY;
	seat_give(e, w->worker->lane);
}

/* Are there too few seats for the requests that wait, and @more requests? */
static bool seats_are_short(const struct exec *e, unsigned int more)
{
	unsigned int waiting = e->lanes.queued + more;
	unsigned int high = e->lanes.lane[LANE_HIGH].queued;

	return e->seated + waiting > e->conf.max ||
	       e->normal + waiting - high > seats_normal(e);
}

/* Makes workers that wait for clients leave their seats, until there are enough
 * seats for the requests that wait, and @more requests. Locked. */
static out_of_line void waits_make_room(struct exec *e, unsigned int more)
{
	struct exec_wait *w;

	list_for_each_entry (w, &e->waits, link) {
		/* the maximum may have been lowered since */
		if (!seats_are_short(e, more) || e->away.used >= e->away.max)
			return;
		if (w->state == EXEC_WAIT_SEATED)
			wait_leave(e, w);
	}
}

/* Is @w in the way of other requests? It is if requests of other clients wait
 * for seats, and are more than the waits that were given up: each of these
 * waits soon frees a seat. Locked. */
static bool wait_is_in_the_way(const struct exec *e, const struct exec_wait *w)
{
	return lanes_open(e) != LANES_ALL &&
	       e->lanes.queued - w->client->queued > e->leaving;
}

/* Is it possible that no idle worker asks the gate? Then workers that wait for
 * clients have to ask. Locked. */
static bool gate_is_unattended(const struct exec *e)
{
	return e->lanes.gate && lanes_open(e) != LANES_ALL;
}

/* If requests wait: makes workers that wait for clients leave their seats, or
 * wakes these workers to see whether their waits are to be given up. Locked. */
static out_of_line void waits_yield(struct exec *e)
{
	struct exec_wait *w;

	if (!lanes_any(&e->lanes))
		return;
	waits_make_room(e, 0);
	if (e->idle)
		lnet_cond_signal(&e->wake);
	else
		workers_grow(e);
	list_for_each_entry (w, &e->waits, link)
		if (w->state == EXEC_WAIT_SEATED && !w->woken &&
		    (wait_is_in_the_way(e, w) || gate_is_unattended(e))) {
			w->woken = true;
			w->wake(w);
		}
}

/* Moves requests that may pass the gate to the lanes. *@again: as in
 * lanes_release(). Locked. */
static out_of_line void waits_release(struct exec *e, uint64_t now,
				      uint64_t *again)
{
	unsigned int queued = e->lanes.queued;

	lanes_release(&e->lanes, now, again);
	if (e->lanes.queued > queued)
		waits_yield(e);
}

/* Returns the time (ns) from which on the client of @w counts as silent, if
 * nothing comes. Locked. */
static uint64_t silent_from(const struct exec *e, const struct exec_wait *w)
{
	uint64_t first = w->began, last = 0, slowest = 0;
	const struct exec_wait *other;

	list_for_each_entry (other, &e->waits, link) {
		if (other->client != w->client)
			continue;
		first = MIN(first, other->began);
		last = MAX(last, atomic_load(&other->progress->last));
		slowest = MAX(slowest, atomic_load(&other->progress->slowest));
	}
	return MAX(first, last) + MAX(SILENCE_NS, SILENCE_TIMES * slowest);
}

bool exec_wait_begin(struct exec *e, struct exec_wait *w)
{
	if (!exec_is_mine(e))
		return false;
	w->worker = worker_here;
	w->state = EXEC_WAIT_SEATED;
	w->woken = false;
	w->began = exec_now(e);
	pthread_mutex_lock(&e->lock);
	list_add_tail(&e->waits, &w->link);
	waits_yield(e);
	pthread_mutex_unlock(&e->lock);
	return true;
}

enum exec_wait_state exec_wait_look(struct exec *e, struct exec_wait *w,
				    uint64_t *until)
{
	enum exec_wait_state state;
	uint64_t now = exec_now(e);

	*until = TIME_NEVER;
	pthread_mutex_lock(&e->lock);
	if (w->state == EXEC_WAIT_SEATED && unlikely(gate_is_unattended(e)))
		waits_release(e, now, until);
	if (w->state == EXEC_WAIT_SEATED && !wait_is_in_the_way(e, w)) {
		w->woken = false;
	} else if (w->state == EXEC_WAIT_SEATED) {
		w->woken = true;
		*until = MIN(*until, silent_from(e, w));
		if (now >= *until) {
			*until = TIME_NEVER;
			w->state = EXEC_WAIT_OVER;
			e->leaving++;
		}
	}
	state = w->state;
	pthread_mutex_unlock(&e->lock);
	return state;
}

void exec_wait_end(struct exec *e, struct exec_wait *w)
{
	uint64_t now = exec_now(e);

	pthread_mutex_lock(&e->lock);
	list_del(&w->link);
	w->worker->waited += now - w->began;
	if (w->state == EXEC_WAIT_OVER)
		e->leaving--;
	if (w->state == EXEC_WAIT_AWAY) {
		quota_put(&e->away, w->quota, 1);
		seat_take(e, w->worker->lane);
		/* The worker has a seat again, so there may be too few seats.
		 */
		waits_yield(e);
	}
	pthread_mutex_unlock(&e->lock);
}

/* ---- what is to be run ---- */

/* Puts @item into the queue, and sees to it that a worker takes it. The caller
 * holds e->lock. */
static void exec_put(struct exec *e, struct sched_item *item, uint64_t now)
{
	lanes_put(&e->lanes, item, now);
	if (e->idle)
		lnet_cond_signal(&e->wake);
	else
		workers_grow(e);
	if (unlikely(!list_empty(&e->waits)))
		waits_yield(e);
}

bool exec_add(struct exec *e, struct sched_item *item, uint64_t now)
{
	bool in_time;

	pthread_mutex_lock(&e->lock);
	if (unlikely(!list_empty(&e->waits)))
		waits_make_room(e, 1);
	in_time = exec_is_in_time(e, item, now);
	if (in_time)
		exec_put(e, item, now);
	pthread_mutex_unlock(&e->lock);
	return in_time;
}

bool exec_add_again(struct exec *e, struct sched_item *item, uint64_t now)
{
	bool open;

	item->deadline = TIME_NEVER;
	item->flow = NULL;
	item->goes_on = true;
	pthread_mutex_lock(&e->lock);
	open = e->state == EXEC_OPEN;
	if (open)
		exec_put(e, item, now);
	pthread_mutex_unlock(&e->lock);
	return open;
}

unsigned int exec_waiting(struct exec *e)
{
	unsigned int n;

	pthread_mutex_lock(&e->lock);
	n = e->lanes.queued;
	pthread_mutex_unlock(&e->lock);
	return n;
}

unsigned int exec_running(struct exec *e)
{
	unsigned int n;

	pthread_mutex_lock(&e->lock);
	n = e->nworkers - e->idle;
	pthread_mutex_unlock(&e->lock);
	return n;
}

void exec_limits(struct exec *e, struct exec_limits *to)
{
	pthread_mutex_lock(&e->lock);
	*to = (struct exec_limits){ .min = e->conf.min,
				    .max = e->conf.max,
				    .ratio = e->lanes.ratio };
	pthread_mutex_unlock(&e->lock);
}

/* Requests may now be served that could not before: sees to it that workers
 * look. Locked. */
static void exec_look_again(struct exec *e)
{
	e->again = TIME_NEVER;
	lnet_cond_broadcast(&e->wake);
	workers_grow(e);
	if (!list_empty(&e->waits))
		waits_yield(e);
}

void exec_set_limits(struct exec *e, const struct exec_limits *to)
{
	pthread_mutex_lock(&e->lock);
	e->conf.min = to->min;
	e->conf.max = to->max;
	e->away.max = to->max;
	e->lanes.ratio = to->ratio;
	exec_look_again(e);
	pthread_mutex_unlock(&e->lock);
}

int exec_set_plan(struct exec *e, const struct sched_plan *plan,
		  unsigned int ratio)
{
	struct sched_plan from = *plan;
	struct lanes lanes, before;
	uint64_t now = exec_now(e);
	int rc;

	from.round = now;
	rc = lanes_init(&lanes, &from, ratio);
	if (rc)
		return rc;
	pthread_mutex_lock(&e->lock);
	before = e->lanes;
	lanes_move(&before, &lanes, now);
	e->lanes = lanes;
	e->conf.plan = plan;
	exec_look_again(e);
	pthread_mutex_unlock(&e->lock);
	lanes_fini(&before);
	return 0;
}

void exec_hand_over(struct exec *e, struct sched_item *item,
		    struct sched_client *to, uint64_t now)
{
	struct exec_wait *w;

	pthread_mutex_lock(&e->lock);
	if (item->queued) {
		lanes_remove(&e->lanes, item);
		item->client = to;
		lanes_put(&e->lanes, item, now);
	}
	list_for_each_entry (w, &e->waits, link)
		if (w->item == item)
			w->client = to;
	pthread_mutex_unlock(&e->lock);
}

/* Fills in @place for @item, which is in the gate, from the estimate that was
 * made when @item came. */
static void find_throttled(const struct sched_item *item, uint64_t now,
			   struct exec_place *place)
{
	uint64_t until = item->arrival + item->wait;

	*place = (struct exec_place){ .throttled = true,
				      .wait = until > now ? until - now : 0 };
}

/* Fills in @place for @item, which is in a lane. Assumes that of the items that
 * were ahead of it when it came, one is gone for each item that was taken
 * since. Locked. */
static void find_queued(const struct exec *e, const struct sched_item *item,
			struct exec_place *place)
{
	uint32_t since = e->taken - item->taken;
	unsigned int ahead = item->ahead > since ? item->ahead - since : 0;

	*place = (struct exec_place){ .ahead = ahead,
				      .wait = exec_wait_behind(e, ahead) };
}

bool exec_find(struct exec *e, const struct sched_item *item, uint64_t now,
	       struct exec_place *place)
{
	bool queued;

	pthread_mutex_lock(&e->lock);
	queued = item->queued;
	if (queued && item->flow)
		find_throttled(item, now, place);
	else if (queued)
		find_queued(e, item, place);
	pthread_mutex_unlock(&e->lock);
	return queued;
}

bool exec_remove(struct exec *e, struct sched_item *item)
{
	bool queued;

	pthread_mutex_lock(&e->lock);
	queued = item->queued;
	if (queued)
		lanes_remove(&e->lanes, item);
	pthread_mutex_unlock(&e->lock);
	return queued;
}

bool exec_is_mine(const struct exec *e)
{
	return worker_here && worker_here->exec == e;
}

void exec_close(struct exec *e)
{
	bool gone;

	pthread_mutex_lock(&e->lock);
	BUG_ON(e->state != EXEC_OPEN);
	e->state = EXEC_CLOSING;
	gone = !e->nworkers;
	lnet_cond_broadcast(&e->wake);
	pthread_mutex_unlock(&e->lock);
	if (gone)
		e->conf.gone(e->conf.arg);
}

void exec_free(struct exec *e)
{
	struct list done;

	pthread_mutex_lock(&e->lock);
	BUG_ON(e->nworkers || lanes_any(&e->lanes));
	take_ended(e, &done);
	pthread_mutex_unlock(&e->lock);
	exec_join(&done);
	lanes_fini(&e->lanes);
	quotas_fini(&e->away);
	lnet_cond_destroy(&e->wake);
	pthread_mutex_destroy(&e->lock);
}

static int start_workers(struct exec *e)
{
	int rc = 0;

	if (e->conf.is_virtual)
		return 0; /* workers_grow() makes them when needed */
	pthread_mutex_lock(&e->lock);
	for (unsigned int i = 0; i < e->conf.min && !rc; i++)
		rc = worker_add(e);
	pthread_mutex_unlock(&e->lock);
	return rc;
}

static void nobody(void *arg)
{
	(void)arg;
}

/* Called when not all workers could be made: ends those that were. */
static void stop_workers(struct exec *e)
{
	pthread_mutex_lock(&e->lock);
	e->conf.gone = nobody;
	e->state = EXEC_CLOSING;
	lnet_cond_broadcast(&e->wake);
	while (e->nworkers)
		lnet_cond_wait(&e->wake, &e->lock, TIME_NEVER);
	pthread_mutex_unlock(&e->lock);
}

int exec_open(struct exec *e, const struct exec_conf *conf)
{
	int rc;

	*e = (struct exec){ .conf = *conf, .again = TIME_NEVER };
	rc = lanes_init(&e->lanes, conf->plan, conf->ratio);
	if (rc)
		return rc;
	rc = lnet_cond_init(&e->wake);
	if (rc) {
		lanes_fini(&e->lanes);
		return rc;
	}
	quotas_init(&e->away, "spare workers for requests that wait for it",
		    conf->max, conf->seed);
	list_init(&e->waits);
	list_init(&e->workers);
	list_init(&e->ended);
	pthread_mutex_init(&e->lock, NULL);
	rc = start_workers(e);
	if (rc) {
		stop_workers(e);
		exec_free(e);
	}
	return rc;
}
