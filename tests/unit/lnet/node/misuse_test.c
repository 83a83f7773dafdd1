/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that break a rule of lnet(3)'s pages are aborted, on a node and in
 * the simulator with the same sentence. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include "tests/misuse.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/loop.h"
#include "ulnet/thread.h"

#define MINUTE (60000 * MSEC)

/* Where a mistake is made. */
struct place {
	void (*make)(struct place *p);
	bool virtual;
	struct lnet_sim *sim;
	struct lnet *node; /* has two CPTs */
	struct ulnet_thread *thread, *second;
	pthread_mutex_t lock;
	struct ulnet_cond cond;
	bool waits; /* under .lock: the thread is in lnet_cond_wait() */
	bool returned;
	struct ulnet_timer timer;
	struct ulnet_work work;
	struct ulnet_peer_watch watch;
	struct ulnet_layer layer;
	int which;
};

static void place_open(struct place *p)
{
	struct ulnet_conf conf;

	cr_assert_eq(lnet_cond_init(&p->cond), 0);
	if (p->virtual) {
		p->sim = cluster_with(1, 2, NULL);
		p->node = lnet_sim_node(p->sim, 0);
		return;
	}
	lnet_conf_init(&conf);
	conf.cpts = 2;
	cr_assert_eq(lnet_open(&conf, &p->node), 0);
}

static void place_close(struct place *p)
{
	lnet_cond_destroy(&p->cond);
	if (p->virtual)
		cluster_end(p->sim);
	else
		lnet_close(p->node);
}

static void place_run(void *arg)
{
	struct place *p = arg;

	place_open(p);
	p->make(p);
}

#define PLACE(...) \
	((struct place){ .lock = PTHREAD_MUTEX_INITIALIZER, __VA_ARGS__ })

/* Asserts that @make, with @which, ends on a node and in the simulator with
 * what fits @pattern, and with the same. */
static void both(void (*make)(struct place *p), int which, const char *pattern)
{
	struct place node = PLACE(.make = make, .which = which);
	struct place sim = PLACE(.make = make, .which = which, .virtual = true);
	char a[MISUSE_TEXT], b[MISUSE_TEXT];

	cr_assert_str_eq(misuse_is(place_run, &node, pattern, a),
			 misuse_is(place_run, &sim, pattern, b));
}

static void only_sim(void (*make)(struct place *p), int which,
		     const char *pattern)
{
	struct place p = PLACE(.make = make, .which = which, .virtual = true);
	char text[MISUSE_TEXT];

	misuse_is(place_run, &p, pattern, text);
}

/* ---- threads ---- */

static void start(struct place *p, void (*fn)(void *arg))
{
	cr_assert_eq(lnet_thread_start(p->node, fn, p, &p->thread), 0);
}

static void returns(void *arg)
{
	(void)arg;
}

static void not_joined(struct place *p)
{
	start(p, returns);
	lnet_close(p->node);
}

Test(misuse, thread_is_not_joined)
{
	both(not_joined, 0,
	     "ulnet: lnet_close(): the thread \"*\" of "
	     "lnet_thread_start() has not been joined");
}

static void crash_not_joined(struct place *p)
{
	start(p, returns);
	lnet_sim_crash(p->sim, 0);
}

Test(misuse, thread_is_not_joined_in_a_crash)
{
	only_sim(crash_not_joined, 0,
		 "ulnet: lnet_sim_crash(): the thread \"*\" of "
		 "lnet_thread_start() has not been joined");
}

static void closes(void *arg)
{
	lnet_close(((struct place *)arg)->node);
}

static void closed_by_thread(struct place *p)
{
	start(p, closes);
	lnet_thread_join(p->thread);
}

Test(misuse, thread_closes_its_node)
{
	both(closed_by_thread, 0,
	     "ulnet: lnet_close(): called by the thread \"*\" of "
	     "lnet_thread_start(), which must be joined before");
}

static void joins_itself(void *arg)
{
	struct place *p = arg;

	pthread_mutex_lock(&p->lock); /* p->thread is set */
	lnet_thread_join(p->thread);
}

static void joined_by_itself(struct place *p)
{
	pthread_mutex_lock(&p->lock);
	start(p, joins_itself);
	pthread_mutex_unlock(&p->lock);
	lnet_thread_join(p->thread);
}

Test(misuse, thread_joins_itself)
{
	both(joined_by_itself, 0,
	     "ulnet: lnet_thread_join(): the thread \"*\" joins itself");
}

static void waits(void *arg)
{
	struct place *p = arg;

	pthread_mutex_lock(&p->lock);
	p->waits = true;
	while (p->waits)
		lnet_cond_wait(&p->cond, &p->lock, UINT64_MAX);
	pthread_mutex_unlock(&p->lock);
}

static bool is_waiting(struct place *p)
{
	bool yes;

	pthread_mutex_lock(&p->lock);
	yes = p->waits;
	pthread_mutex_unlock(&p->lock);
	return yes;
}

static void await_waiting(struct place *p)
{
	if (p->virtual)
		lnet_sim_run_all(p->sim);
	while (!is_waiting(p))
		sched_yield();
}

static void destroy_waited_for(struct place *p)
{
	start(p, waits);
	await_waiting(p);
	lnet_cond_destroy(&p->cond);
}

Test(misuse, condition_is_waited_for)
{
	both(destroy_waited_for, 0,
	     "ulnet: lnet_cond_destroy(): a thread waits in lnet_cond_wait()");
}

static void join_waiting(struct place *p)
{
	start(p, waits);
	lnet_thread_join(p->thread);
}

Test(misuse, join_of_a_thread_that_nothing_wakes)
{
	only_sim(join_waiting, 0,
		 "ulnet: lnet_thread_join(): the thread \"*\" waits for what "
		 "cannot happen any more");
}

static int join_here(void *arg)
{
	lnet_thread_join(((struct place *)arg)->thread);
	return 0;
}

static void join_in_turn(struct place *p)
{
	start(p, waits);
	lnet_call(p->node, 0, join_here, p);
}

Test(misuse, join_in_a_turn)
{
	only_sim(join_in_turn, 0,
		 "ulnet: lnet_thread_join(): called in a turn of a CPT, where "
		 "nothing may wait, before the thread \"*\" has returned");
}

/* What is allowed: to join a thread that has not returned yet, and to destroy
 * a condition whose waiters have been woken. */

static void sleeps(void *arg)
{
	struct place *p = arg;
	uint64_t until = lnet_now(p->node, 0) + MSEC;

	pthread_mutex_lock(&p->lock);
	while (lnet_cond_wait(&p->cond, &p->lock, until) != -ETIMEDOUT)
		;
	p->returned = true;
	pthread_mutex_unlock(&p->lock);
}

static void joins(void *arg)
{
	struct place *p = arg;

	lnet_thread_join(p->thread);
	cr_assert(p->returned);
}

static void join_early(bool virtual)
{
	struct place p = PLACE(.virtual = virtual);

	place_open(&p);
	start(&p, sleeps);
	lnet_thread_join(p.thread);
	cr_assert(p.returned);
	/* By another thread. */
	p.returned = false;
	start(&p, sleeps);
	cr_assert_eq(lnet_thread_start(p.node, joins, &p, &p.second), 0);
	lnet_thread_join(p.second);
	/* Woken by one signal, and by a broadcast. */
	for (unsigned int i = 0; i < 2; i++) {
		start(&p, waits);
		await_waiting(&p);
		pthread_mutex_lock(&p.lock);
		p.waits = false;
		if (i)
			lnet_cond_broadcast(&p.cond);
		else
			lnet_cond_signal(&p.cond);
		pthread_mutex_unlock(&p.lock);
		lnet_cond_destroy(&p.cond);
		lnet_thread_join(p.thread);
		cr_assert_eq(lnet_cond_init(&p.cond), 0);
	}
	place_close(&p);
}

Test(misuse, join_waits)
{
	join_early(false);
	join_early(true);
}

/* ---- turns ---- */

static int close_here(void *arg)
{
	lnet_close(((struct place *)arg)->node);
	return 0;
}

static void close_in_turn(struct place *p)
{
	lnet_call(p->node, 0, close_here, p);
}

Test(misuse, closed_in_a_turn)
{
	both(close_in_turn, 0,
	     "ulnet: lnet_close(): called in a turn of a CPT, by a handler or "
	     "what it has called, where nothing may wait");
}

static void never(struct ulnet_work *work)
{
	(void)work;
}

static void never_too(struct ulnet_timer *timer)
{
	(void)timer;
}

static void ignore(struct ulnet_peer_watch *watch, const struct ulnet_id *peer)
{
	(void)watch;
	(void)peer;
}

static const char *const owners[] = {
	"lnet_timer_arm",      "lnet_timer_cancel",  "lnet_defer",
	"lnet_random",	       "lnet_withhold_ack",  "lnet_peer_watch_add",
	"lnet_peer_watch_del", "lnet_tell",	     "lnet_peer_suspect",
	"lnet_send_suspect",   "lnet_peer_throttle",
};

/* In a turn of CPT 0. */
static int touch_cpt_1(void *arg)
{
	struct place *p = arg;
	const struct ulnet_nid nid = LNET_NID_LO;
	const struct ulnet_id peer = { nid, LNET_PID_USERFLAG };
	char byte;

	lnet_timer_init(&p->timer, never_too);
	p->work.fn = never;
	p->watch.disconnected = ignore;
	switch (p->which) {
	case 0:
		lnet_timer_arm(p->node, 1, &p->timer, 0);
		break;
	case 1:
		lnet_timer_cancel(p->node, 1, &p->timer);
		break;
	case 2:
		lnet_defer(p->node, 1, &p->work);
		break;
	case 3:
		lnet_random(p->node, 1, &byte, 1);
		break;
	case 4:
		lnet_withhold_ack(p->node, 1);
		break;
	case 5:
		lnet_peer_watch_add(p->node, 1, &p->watch);
		break;
	case 6:
		lnet_peer_watch_del(p->node, 1, &p->watch);
		break;
	case 7:
		(void)lnet_tell(p->node, 1, &peer);
		break;
	case 8:
		lnet_peer_suspect(p->node, 1, &nid, &peer);
		break;
	case 9:
		lnet_send_suspect(p->node, 1,
				  (struct ulnet_md_handle){ p->node, 0 });
		break;
	case 10:
		lnet_peer_throttle(p->node, 1, &nid, true);
		break;
	}
	return 0;
}

static void off_the_cpt(struct place *p)
{
	lnet_call(p->node, 0, touch_cpt_1, p);
}

Test(misuse, functions_for_the_owner)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(owners); i++) {
		char pattern[200];

		snprintf(pattern, sizeof(pattern),
			 "ulnet: %s(): called outside of the turns of CPT 1, "
			 "by a thread that does not own that CPT",
			 owners[i]);
		both(off_the_cpt, (int)i, pattern);
	}
}

/* ---- what is left at the end ---- */

static void armed(struct place *p)
{
	struct lnet *node;
	struct ulnet_conf conf;

	lnet_timer_init(&p->timer, never_too);
	if (p->virtual) {
		lnet_timer_arm(p->node, 0, &p->timer, MINUTE);
		lnet_sim_free(p->sim);
		return;
	}
	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	misuse_must(lnet_open(&conf, &node) == 0);
	lnet_timer_arm(node, 0, &p->timer, lnet_now(node, 0) + MINUTE);
	lnet_close(node);
}

Test(misuse, timer_is_armed)
{
	struct place p = PLACE(.make = armed);
	char text[MISUSE_TEXT];

	misuse_is(place_run, &p,
		  "ulnet: lnet_close(): the timer \"*\" is armed", text);
	only_sim(armed, 0, "ulnet: lnet_sim_free(): the timer \"*\" is armed");
}

static void stays(struct ulnet_layer *layer)
{
	(void)layer;
}

static void layer_stays(struct place *p)
{
	p->layer.close = stays;
	lnet_layer_add(p->node, &p->layer);
	lnet_close(p->node);
}

static void layer_cannot_close(struct place *p)
{
	lnet_layer_add(p->node, &p->layer);
}

Test(misuse, layers)
{
	both(layer_stays, 0,
	     "ulnet: lnet_close(): the function close \"*\" of a layer has not "
	     "called lnet_layer_del()");
	both(layer_cannot_close, 0,
	     "ulnet: lnet_layer_add(): a layer without the function close");
}

/* ---- the simulator's own functions ---- */

static const char *const passing[] = { "lnet_sim_run", "lnet_sim_run_all",
				       "lnet_sim_crash", "lnet_sim_free" };

static void pass(void *arg)
{
	struct place *p = arg;

	switch (p->which) {
	case 0:
		lnet_sim_run(p->sim, 1);
		break;
	case 1:
		lnet_sim_run_all(p->sim);
		break;
	case 2:
		lnet_sim_crash(p->sim, 0);
		break;
	case 3:
		lnet_sim_free(p->sim);
		break;
	}
}

static int pass_here(void *arg)
{
	pass(arg);
	return 0;
}

static void pass_in_turn(struct place *p)
{
	lnet_call(p->node, 0, pass_here, p);
}

static void pass_on_thread(struct place *p)
{
	start(p, pass);
	lnet_sim_run_all(p->sim);
}

static void pass_at(struct place *p)
{
	lnet_sim_at(p->sim, 1, pass, p);
	lnet_sim_run_all(p->sim);
}

Test(misuse, time_passes)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(passing); i++) {
		char pattern[200];

		snprintf(pattern, sizeof(pattern),
			 "ulnet: %s(): called in a turn of a node, *",
			 passing[i]);
		only_sim(pass_in_turn, (int)i, pattern);
		snprintf(pattern, sizeof(pattern),
			 "ulnet: %s(): called by a thread of "
			 "lnet_thread_start(): *",
			 passing[i]);
		only_sim(pass_on_thread, (int)i, pattern);
		if (i == 2) /* is allowed there */
			continue;
		snprintf(pattern, sizeof(pattern),
			 "ulnet: %s(): called by a function of lnet_sim_at()",
			 passing[i]);
		only_sim(pass_at, (int)i, pattern);
	}
}

static void retire_twice(struct place *p)
{
	void *buf = lnet_sim_buf(p->sim, 100);

	lnet_sim_buf_retire(p->sim, buf);
	lnet_sim_buf_retire(p->sim, buf);
}

Test(misuse, buffer_is_retired_twice)
{
	only_sim(retire_twice, 0,
		 "ulnet: lnet_sim_buf_retire(): this is no buffer of "
		 "lnet_sim_buf(), or one that is retired already");
}
