/* SPDX-License-Identifier: BSD-3-Clause */
/* What runs a node: threads of its own, a caller that polls, a libev loop, or a
 * loop of another kind. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ev.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include "tests/unit/lnet/cluster.h"
#include "lnet/node/node.h"
#include "tests/port.h"
#include "ulnet/loop.h"

#define PORTAL 5
#define BITS   0x77

/* us: a node that sleeps although there is something to do is killed by the
 * time limit of make */
#define HOUR UINT64_C(3600000000)

static struct seen seen, sent;
static uint8_t memory[LNET_MTU], source[LNET_MTU];

/* Counts events down; the last one posts the semaphore. */
static sem_t enough;
static unsigned int awaited;
static pthread_t called_on;

static void see_on_thread(const struct ulnet_event *ev)
{
	see(ev);
	called_on = pthread_self();
	if (--awaited == 0)
		sem_post(&enough);
}

/* The node sends itself a PUT and a GET, which make 6 events. */
static void talk_to_itself(struct lnet *node)
{
	struct ulnet_md umd = md_of(
		memory, LNET_MTU,
		LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE, &seen);
	struct ulnet_md_handle put, get;

	seen.n = 0;
	sent.n = 0;
	awaited = 6;
	sem_init(&enough, 0, 0);
	umd.handler = see_on_thread;
	post_md(node, PORTAL, BITS, &umd);
	umd = md_of(source, LNET_MTU, 0, &sent);
	umd.handler = see_on_thread;
	umd.threshold = 2;
	put = bind_md(node, &umd);
	get = bind_md(node, &umd);
	source[LNET_MTU - 1] = 77;
	cr_assert_eq(LNetPut(LNET_NID_ANY, put, LNET_ACK_REQ, id_of("0@lo"),
			     PORTAL, BITS, 0, 0),
		     0);
	cr_assert_eq(LNetGet(LNET_NID_ANY, get, id_of("0@lo"), PORTAL, BITS, 0),
		     0);
}

static void talked(void)
{
	cr_assert_eq(seen.n, 2);
	cr_assert_eq(sent.n, 4);
	cr_assert_eq(memory[LNET_MTU - 1], 77);
}

Test(node_run, polled)
{
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(lnet_poll(node, 0), 0);
	talk_to_itself(node);
	cr_assert_eq(seen.n + sent.n, 0, "called back without a turn");
	for (unsigned int i = 0; i < 20 && awaited; i++)
		cr_assert_eq(lnet_poll(node, 10000), 0);
	talked();
	cr_assert(pthread_equal(called_on, pthread_self()));
	lnet_close(node);
}

/* lnet_poll() waits no longer than it was told, and not at all for a timeout of
 * 0. */
Test(node_run, poll_waits)
{
	struct ulnet_conf conf;
	struct lnet *node;
	ev_tstamp before;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	while (lnet_poll(node, 0) == 0 && awaited)
		;
	before = ev_time();
	cr_assert_eq(lnet_poll(node, 0), 0);
	cr_assert_lt(ev_time() - before, 5);
	cr_assert_eq(lnet_poll(node, 20000), 0);
	cr_assert_lt(ev_time() - before, 30);
	lnet_close(node);
}

static uint64_t polls(struct lnet *node)
{
	const stat_t *stats = node->cpt[0]->stats;

	return stat_get(&stats[STAT_busy_poll_hits]) +
	       stat_get(&stats[STAT_busy_poll_misses]);
}

/* Each wait counts as one poll, however long the CPT has busy-polled. */
Test(node_run, busy_poll)
{
	static const struct {
		int64_t busy_poll;
		uint64_t timeout, polls;
	} cases[] = { { 0, 1000, 0 },
		      { 100, 1000, 1 },
		      { 100, 0, 0 },
		      { 1, 1000, 1 },
		      { 0, 1000, 0 } };
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(lnet_poll(node, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t before = polls(node);

		cr_assert_eq(
			lnet_setting_set(node, "busy_poll", cases[i].busy_poll),
			0);
		cr_assert_eq(lnet_poll(node, cases[i].timeout), 0);
		cr_assert_eq(polls(node) - before, cases[i].polls, "case %zu",
			     i);
	}
	lnet_close(node);
}

static int poll_rc;
static struct lnet *poll_node;

static void poll_inside(const struct ulnet_event *ev)
{
	see(ev);
	poll_rc = lnet_poll(poll_node, 0);
}

Test(node_run, poll_in_a_handler)
{
	struct ulnet_conf conf;
	struct ulnet_md umd = md_of(source, 10, 0, &sent);

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &poll_node), 0);
	umd.handler = poll_inside;
	cr_assert_eq(LNetMDUnlink(bind_md(poll_node, &umd)), 0);
	cr_assert_eq(lnet_poll(poll_node, 0), 0);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(poll_rc, -EDEADLK);
	lnet_close(poll_node);
}

Test(node_run, threads_are_not_polled)
{
	struct lnet *node;

	cr_assert_eq(lnet_open(NULL, &node), 0);
	cr_assert_eq(lnet_poll(node, 0), -EBUSY);
	lnet_close(node);
}

static void ev_stop(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)w;
	(void)revents;
	if (!awaited)
		ev_break(loop, EVBREAK_ALL);
}

Test(node_run, on_an_ev_loop)
{
	struct ev_loop *ev = ev_loop_new(0);
	struct ulnet_conf conf;
	struct lnet *node;
	ev_timer watchdog;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_EV;
	conf.ev = ev;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	talk_to_itself(node);
	cr_assert_eq(seen.n + sent.n, 0);
	ev_timer_init(&watchdog, ev_stop, 0.001, 0.001);
	ev_timer_start(ev, &watchdog);
	ev_run(ev, 0);
	talked();
	cr_assert(pthread_equal(called_on, pthread_self()));
	lnet_close(node);
	ev_timer_stop(ev, &watchdog);
	ev_loop_destroy(ev);
}

/* Nothing of the node keeps ev_run() going: not even its sockets, before and
 * after they were used. */
Test(node_run, an_ev_loop_can_end)
{
	struct ev_loop *ev = ev_loop_new(0);
	struct ulnet_ni_conf ni = { .nid = nid_of("127.0.0.1@tcp") };
	struct ulnet_conf conf;
	struct lnet *node;
	ev_timer watchdog;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_EV;
	conf.ev = ev;
	conf.port = free_port();
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(lnet_ni_add(node, &ni), 0);
	ev_run(ev, 0);
	talk_to_itself(node);
	ev_timer_init(&watchdog, ev_stop, 0.001, 0.001);
	ev_timer_start(ev, &watchdog);
	ev_run(ev, 0);
	talked();
	ev_timer_stop(ev, &watchdog);
	ev_run(ev, 0);
	lnet_close(node);
	ev_run(ev, 0);
	ev_loop_destroy(ev);
}

/* ---- in a loop of another kind ---- */

/* Waits as an application does that has its own loop, until *@until is 0.
 * Returns how often it has waited. */
static unsigned int wait_elsewhere(struct lnet *node, const unsigned int *until)
{
	struct pollfd p = { lnet_fd(node), POLLIN, 0 };
	unsigned int waits = 0;

	cr_assert_geq(p.fd, 0);
	for (; *until; waits++) {
		uint64_t us = lnet_next_timeout(node);

		cr_assert_geq(
			poll(&p, 1,
			     us == UINT64_MAX ? -1 : (int)((us + 999) / 1000)),
			0);
		cr_assert_eq(lnet_poll(node, 0), 0);
	}
	return waits;
}

static int count_down(void *n)
{
	--*(unsigned int *)n;
	return 0;
}

static struct lnet *called_node;

static void *call_late(void *n)
{
	/* the other thread waits, or is about to; both must work */
	usleep(10000);
	cr_assert_eq(lnet_call(called_node, 0, count_down, n), 0);
	return NULL;
}

static unsigned int alarms;

static void on_alarm(struct ulnet_timer *timer)
{
	(void)timer;
	alarms--;
}

Test(node_run, polled_by_another_loop)
{
	struct ulnet_timer timer;
	struct ulnet_conf conf;
	unsigned int calls = 1;
	pthread_t thread;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &called_node), 0);
	talk_to_itself(called_node);
	cr_assert_leq(wait_elsewhere(called_node, &awaited), 10);
	talked();
	/* woken by another thread */
	cr_assert_eq(pthread_create(&thread, NULL, call_late, &calls), 0);
	cr_assert_leq(wait_elsewhere(called_node, &calls), 10);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	/* woken by a timer */
	alarms = 1;
	lnet_timer_init(&timer, on_alarm);
	lnet_timer_arm(called_node, 0, &timer,
		       lnet_now(called_node, 0) + 20000000);
	cr_assert_leq(lnet_next_timeout(called_node), 20000);
	cr_assert_leq(wait_elsewhere(called_node, &alarms), 10);
	lnet_close(called_node);
}

/* ---- endless messages of a node to itself ---- */

#define ANSWERS 1000000

static struct {
	struct ulnet_md_handle md;
	unsigned int left; /* answers left */
} echo;

static void put_to_itself(void)
{
	cr_assert_eq(LNetPut(LNET_NID_ANY, echo.md, LNET_NOACK_REQ,
			     id_of("0@lo"), PORTAL, BITS, 0, 0),
		     0);
}

static void answer_itself(const struct ulnet_event *ev)
{
	if (ev->type != LNET_EVENT_PUT || !echo.left)
		return;
	echo.left--;
	put_to_itself();
}

static void *call_soon(void *n)
{
	cr_assert_eq(lnet_call(called_node, 0, count_down, n), 0);
	return NULL;
}

/* Polls until *@until is 0. Each turn must end although there is more to do. */
static void poll_among_answers(const unsigned int *until)
{
	do {
		echo.left = ANSWERS;
		cr_assert_eq(lnet_poll(called_node, HOUR), 0);
		cr_assert_lt(echo.left, ANSWERS, "answers go on");
		cr_assert_gt(echo.left, 0, "the turn has ended");
	} while (*until);
}

/* The node answers each message to itself with another one at once: timers and
 * other threads have their turn nevertheless. */
Test(node_run, endless_answers_to_itself)
{
	struct ulnet_md umd = md_of(
		memory, LNET_MTU, LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, NULL);
	struct ulnet_timer timer;
	struct ulnet_conf conf;
	unsigned int calls = 1;
	pthread_t thread;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &called_node), 0);
	umd.handler = answer_itself;
	post_md(called_node, PORTAL, BITS, &umd);
	umd = md_of(source, 8, 0, NULL);
	echo.md = bind_md(called_node, &umd);
	put_to_itself();
	alarms = 1;
	lnet_timer_init(&timer, on_alarm);
	lnet_timer_arm(called_node, 0, &timer, lnet_now(called_node, 0) + 1);
	poll_among_answers(&alarms);
	cr_assert_eq(pthread_create(&thread, NULL, call_soon, &calls), 0);
	poll_among_answers(&calls);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	echo.left = 0;
	lnet_close(called_node);
}

static int fd_inside(void *node)
{
	cr_assert_eq(lnet_next_timeout(node), UINT64_MAX);
	return lnet_fd(node);
}

static void *fd_elsewhere(void *node)
{
	cr_assert_eq(lnet_fd(node), -EXDEV);
	cr_assert_eq(lnet_next_timeout(node), UINT64_MAX);
	return NULL;
}

Test(node_run, which_nodes_have_a_descriptor)
{
	struct ulnet_conf conf;
	struct lnet_sim *sim;
	struct lnet *node;
	pthread_t thread;

	cr_assert_eq(lnet_open(NULL, &node), 0);
	cr_assert_eq(lnet_fd(node), -EBUSY);
	cr_assert_eq(lnet_next_timeout(node), UINT64_MAX);
	lnet_close(node);
	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(lnet_call(node, 0, fd_inside, node), -EDEADLK);
	cr_assert_eq(pthread_create(&thread, NULL, fd_elsewhere, node), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	lnet_close(node);
	conf.run = LNET_RUN_EV;
	conf.ev = ev_loop_new(0);
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(lnet_fd(node), -ENOTSUP);
	lnet_close(node);
	ev_loop_destroy(conf.ev);
	sim = cluster(1);
	cr_assert_eq(lnet_fd(lnet_sim_node(sim, 0)), -ENOTSUP);
	cluster_end(sim);
}

static void wait_enough(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 60;
	cr_assert_eq(sem_timedwait(&enough, &t), 0);
}

Test(node_run, in_threads)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		struct ulnet_conf conf;
		struct lnet *node;

		lnet_conf_init(&conf);
		conf.cpts = cpts;
		cr_assert_eq(lnet_open(&conf, &node), 0);
		/* The events of one MD come one by one, but those of two MDs
		 * may come on two CPTs at once. */
		if (cpts == 1) {
			talk_to_itself(node);
			wait_enough();
			talked();
			cr_assert(!pthread_equal(called_on, pthread_self()));
		}
		lnet_close(node);
	}
}

/* The node closes while operations are in progress: every MD has its last
 * event. */
Test(node_run, closed_at_once)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		struct ulnet_conf conf;
		struct lnet *node;
		static struct seen each[20];
		struct ulnet_md passive =
			md_of(memory, 10,
			      LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, NULL);

		lnet_conf_init(&conf);
		conf.cpts = cpts;
		cr_assert_eq(lnet_open(&conf, &node), 0);
		post_md(node, PORTAL, BITS, &passive);
		for (unsigned int i = 0; i < ARRAY_SIZE(each); i++) {
			struct ulnet_md umd = md_of(source, 10, 0, &each[i]);

			each[i].n = 0;
			umd.threshold = 2;
			cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(node, &umd),
					     LNET_ACK_REQ, id_of("0@lo"),
					     PORTAL, BITS, 0, 0),
				     0);
		}
		lnet_close(node);
		for (unsigned int i = 0; i < ARRAY_SIZE(each); i++) {
			unsigned int terminals = 0;

			cr_assert_gt(each[i].n, 0);
			for (unsigned int e = 0; e < each[i].n; e++)
				terminals += each[i].ev[e].terminal;
			cr_assert_eq(terminals, 1);
			cr_assert(each[i].ev[each[i].n - 1].unlinked);
		}
	}
}
