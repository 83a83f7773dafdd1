/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes: how they are opened, run and closed, and who may call them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ev.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include "tests/unit/lnet/cluster.h"
#include "lnd/simlnd/simlnd.h"
#include "lnet/net/ni.h"
#include "lnet/node/node.h"
#include "tests/port.h"
#include "ulnet/loop.h"

#define PORTAL 5
#define BITS   0x77

static struct seen seen, sent;
static uint8_t memory[LNET_MTU], source[LNET_MTU];

/* ---- configuration ---- */

Test(node, defaults)
{
	struct ulnet_conf conf;

	memset(&conf, 0xff, sizeof(conf));
	lnet_conf_init(&conf);
	cr_assert_eq(conf.run, LNET_RUN_THREADS);
	cr_assert_null(conf.ev);
	cr_assert_eq(conf.cpts, 1);
	cr_assert_eq(conf.pid, 0);
	cr_assert_eq(conf.transaction_timeout, 50000000);
	cr_assert_eq(conf.port, 988);
	cr_assert_eq(conf.accept, LNET_ACCEPT_DEFAULT);
	cr_assert_eq(conf.accept_backlog, 4096);
	cr_assert_eq(conf.accept_max, 1024);
	cr_assert_eq(conf.accept_timeout, 5000000);
}

/* What a node makes of @port and @accept, and of zeros. */
static enum ulnet_accept accepts(uint16_t port, enum ulnet_accept accept)
{
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	conf.port = port;
	conf.accept = accept;
	conf.accept_backlog = 0;
	conf.accept_max = 0;
	conf.accept_timeout = 0;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	accept = node->conf.accept;
	cr_assert_eq(node->conf.port, port ? port : 988);
	cr_assert_eq(node->conf.accept_backlog, 4096);
	cr_assert_eq(node->conf.accept_max, 1024);
	cr_assert_eq(node->conf.accept_timeout, 5000000);
	cr_assert_eq(net_node(node)->config->ni[0]->lnd.conf, &node->conf);
	lnet_close(node);
	return accept;
}

Test(node, accept)
{
	cr_assert_eq(accepts(0, LNET_ACCEPT_DEFAULT), LNET_ACCEPT_SECURE);
	cr_assert_eq(accepts(1023, LNET_ACCEPT_DEFAULT), LNET_ACCEPT_SECURE);
	cr_assert_eq(accepts(1024, LNET_ACCEPT_DEFAULT), LNET_ACCEPT_ALL);
	cr_assert_eq(accepts(65535, LNET_ACCEPT_SECURE), LNET_ACCEPT_SECURE);
	cr_assert_eq(accepts(0, LNET_ACCEPT_ALL), LNET_ACCEPT_ALL);
	cr_assert_eq(accepts(0, LNET_ACCEPT_NONE), LNET_ACCEPT_NONE);
}

/* 0 stands for the default of every field. */
Test(node, nothing_is_configured)
{
	struct ulnet_conf zero = { 0 }, polled = { .run = LNET_RUN_POLL };
	struct ulnet_conf want;
	struct lnet *node;

	lnet_conf_init(&want);
	want.accept = LNET_ACCEPT_SECURE;
	want.pid = LNET_PID_LUSTRE;
	cr_assert_eq(lnet_open(&zero, &node), 0);
	cr_assert_eq(memcmp(&node->conf, &want, sizeof(want)), 0);
	lnet_close(node);
	cr_assert_eq(lnet_open(&polled, &node), 0);
	cr_assert_eq(node->conf.run, LNET_RUN_POLL);
	lnet_close(node);
}

Test(node, has_the_interfaces_of_its_configuration)
{
	struct ulnet_conf conf = { .run = LNET_RUN_POLL,
				   .nids = "127.0.0.1@tcp  127.0.0.2@tcp1",
				   .port = free_port() };
	static const char *const bad[] = { "nonsense@", "*",
					   "127.0.0.1@tcp 127.0.0.1@tcp" };
	static const int want[] = { -EINVAL, -EINVAL, -EEXIST };
	struct lnet *node = NULL;
	struct ulnet_id id;

	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(LNetGetId(node, 1, &id), 0);
	cr_assert(nid_is(&id.nid, "127.0.0.1@tcp"));
	cr_assert_eq(LNetGetId(node, 2, &id), 0);
	cr_assert(nid_is(&id.nid, "127.0.0.2@tcp1"));
	cr_assert_eq(LNetGetId(node, 3, &id), -ENOENT);
	lnet_close(node);
	node = NULL;
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		int rc;

		conf.nids = bad[i];
		rc = lnet_open(&conf, &node);
		cr_assert_eq(rc, want[i], "%s: %d", bad[i], rc);
		cr_assert_null(node);
	}
	conf.nids = "";
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(LNetGetId(node, 1, &id), -ENOENT);
	lnet_close(node);
}

static int try_conf(void (*change)(struct ulnet_conf *conf))
{
	struct ulnet_conf conf;
	struct lnet *node = NULL;
	int rc;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	change(&conf);
	rc = lnet_open(&conf, &node);
	cr_assert_eq(node == NULL, rc != 0);
	lnet_close(node);
	return rc;
}

static void as_it_is(struct ulnet_conf *c)
{
	c->lazy_max = 0;
}

static void many_cpts(struct ulnet_conf *c)
{
	c->run = LNET_RUN_THREADS;
	c->cpts = LNET_CPTS_MAX + 1;
}

static void two_polled(struct ulnet_conf *c)
{
	c->cpts = 2;
}

static void unknown_run(struct ulnet_conf *c)
{
	c->run = (enum ulnet_run)3;
}

static void ev_without_loop(struct ulnet_conf *c)
{
	c->run = LNET_RUN_EV;
}

static void loop_without_ev(struct ulnet_conf *c)
{
	c->ev = (struct ev_loop *)c;
}

static void two_on_ev(struct ulnet_conf *c)
{
	c->run = LNET_RUN_EV;
	c->ev = (struct ev_loop *)c;
	c->cpts = 2;
}

static void long_timeout(struct ulnet_conf *c)
{
	c->transaction_timeout = UINT64_MAX / 1000;
}

static void any_pid(struct ulnet_conf *c)
{
	c->pid = LNET_PID_ANY;
}

static void unknown_accept(struct ulnet_conf *c)
{
	c->accept = (enum ulnet_accept)(LNET_ACCEPT_NONE + 1);
}

static void long_backlog(struct ulnet_conf *c)
{
	c->accept_backlog = UINT32_C(1) << 31;
}

static void many_handshakes(struct ulnet_conf *c)
{
	c->accept_max = UINT32_C(1) << 31;
}

static void long_accept(struct ulnet_conf *c)
{
	c->accept_timeout = UINT64_C(1000000) * INT32_MAX + 1;
}

static void longest(struct ulnet_conf *c)
{
	c->transaction_timeout = UINT64_C(1000000) * INT32_MAX;
	c->accept_timeout = c->transaction_timeout;
	c->accept_backlog = INT32_MAX;
	c->accept_max = INT32_MAX;
}

static void too_long(struct ulnet_conf *c)
{
	c->transaction_timeout = UINT64_C(1000000) * INT32_MAX + 1;
}

Test(node, bad_configurations)
{
	static void (*const bad[])(struct ulnet_conf * conf) = {
		many_cpts,	 two_polled,   unknown_run,	ev_without_loop,
		loop_without_ev, two_on_ev,    long_timeout,	any_pid,
		unknown_accept,	 long_backlog, many_handshakes, long_accept,
		too_long,
	};

	cr_assert_eq(try_conf(as_it_is), 0);
	cr_assert_eq(try_conf(longest), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_eq(try_conf(bad[i]), -EINVAL, "number %zu", i);
}

Test(node, close_nothing)
{
	lnet_close(NULL);
}

/* ---- who runs it ---- */

/* Called back as often as there are events; the last one posts. */
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

/* A PUT and a GET of the node to itself; @expect events, through @umd's. */
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

Test(node, polled)
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

/* It waits no longer than it was told, and for no less if nothing happens. */
Test(node, poll_waits)
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

/* Each wait is counted as one, however long the CPT has polled. */
Test(node, busy_poll)
{
	static const struct {
		int64_t busy_poll;
		uint64_t timeout, polls;
	} cases[] = { { 0, 1000, 0 }, { 100, 1000, 1 }, { 100, 0, 0 },
		      { 1, 1000, 1 }, { 0, 1000, 0 } };
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(lnet_poll(node, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t before = polls(node);

		cr_assert_eq(lnet_setting_set(node, "busy_poll",
					      cases[i].busy_poll),
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

Test(node, poll_in_a_handler)
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

Test(node, threads_are_not_polled)
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

Test(node, on_an_ev_loop)
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

/* Nothing of the node's is a reason for ev_run() to go on: not its sockets
 * either, before and after they have been used. */
Test(node, an_ev_loop_can_end)
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

/* Waits as an application would; returns how often. */
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
	usleep(10000); /* the other one waits, or will; both must work */
	cr_assert_eq(lnet_call(called_node, 0, count_down, n), 0);
	return NULL;
}

static unsigned int alarms;

static void on_alarm(struct ulnet_timer *timer)
{
	(void)timer;
	alarms--;
}

Test(node, in_another_loop)
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
	/* Another thread. */
	cr_assert_eq(pthread_create(&thread, NULL, call_late, &calls), 0);
	cr_assert_leq(wait_elsewhere(called_node, &calls), 10);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	/* Only time. */
	alarms = 1;
	lnet_timer_init(&timer, on_alarm);
	lnet_timer_arm(called_node, 0, &timer,
		       lnet_now(called_node, 0) + 20000000);
	cr_assert_leq(lnet_next_timeout(called_node), 20000);
	cr_assert_leq(wait_elsewhere(called_node, &alarms), 10);
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

Test(node, who_may_wait_elsewhere)
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

Test(node, in_threads)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		struct ulnet_conf conf;
		struct lnet *node;

		lnet_conf_init(&conf);
		conf.cpts = cpts;
		cr_assert_eq(lnet_open(&conf, &node), 0);
		/* One MD's events come one by one, but two MDs' do not. */
		if (cpts == 1) {
			talk_to_itself(node);
			wait_enough();
			talked();
			cr_assert(!pthread_equal(called_on, pthread_self()));
		}
		lnet_close(node);
	}
}

/* Closed in the middle of things: every MD has had its last event. */
Test(node, closed_at_once)
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

/* ---- who may call ---- */

static int note_thread(void *arg)
{
	*(pthread_t *)arg = pthread_self();
	return -77;
}

Test(node, call)
{
	struct ulnet_conf conf;
	pthread_t on[3];
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.cpts = 3;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(lnet_call(node, i, note_thread, &on[i]), -77);
	cr_assert_eq(lnet_call(node, 3, note_thread, &on[0]), -EINVAL);
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert(!pthread_equal(on[i], pthread_self()));
		cr_assert(!pthread_equal(on[i], on[(i + 1) % 3]));
	}
	lnet_close(node);
}

struct across {
	struct lnet *node;
	struct ulnet_md_handle md;
	struct ulnet_me_handle me;
	int rc[4];
};

static int call_across(void *arg)
{
	struct across *a = arg;
	struct ulnet_md umd = md_of(memory, 10, LNET_MD_OP_PUT, NULL);
	struct ulnet_md_handle md;

	a->rc[0] = LNetMDUnlink(a->md);
	a->rc[1] = LNetMEUnlink(a->me);
	a->rc[2] = LNetMDAttach(a->me, &umd, LNET_UNLINK, &md);
	a->rc[3] = LNetPut(LNET_NID_ANY, a->md, LNET_NOACK_REQ, id_of("0@lo"),
			   PORTAL, BITS, 0, 0);
	return 0;
}

static int make_here(void *arg)
{
	struct across *a = arg;
	struct ulnet_md umd = md_of(source, 10, 0, NULL);

	a->rc[0] = LNetMDBind(a->node, &umd, LNET_UNLINK, &a->md);
	a->rc[1] = LNetMEAttach(a->node, PORTAL, ANY_ID, BITS, 0, LNET_UNLINK,
				LNET_INS_AFTER, &a->me);
	return 0;
}

/* What one CPT has is not for another CPT's thread, but for any plain one. */
Test(node, across_cpts)
{
	struct ulnet_conf conf;
	struct lnet *node;
	struct across a;

	lnet_conf_init(&conf);
	conf.cpts = 2;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	a.node = node;
	cr_assert_eq(lnet_call(node, 0, make_here, &a), 0);
	cr_assert_eq(a.rc[0], 0);
	cr_assert_eq(a.rc[1], 0);
	cr_assert_eq(lnet_call(node, 1, call_across, &a), 0);
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_eq(a.rc[i], -EXDEV, "call %u", i);
	cr_assert_eq(lnet_call(node, 0, call_across, &a), 0);
	cr_assert_eq(a.rc[0], 0);
	cr_assert_eq(a.rc[1], 0);
	cr_assert_eq(a.rc[2], -ENOENT);
	cr_assert_eq(a.rc[3], -ENOENT);
	cr_assert_eq(lnet_call(node, 0, make_here, &a), 0);
	call_across(&a);
	cr_assert_eq(a.rc[0], 0);
	cr_assert_eq(a.rc[1], 0);
	lnet_close(node);
}

/* A handle that means nothing, whatever is in it. */
Test(node, made_up_handles)
{
	struct lnet_sim *sim = cluster_with(1, 3, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = md_of(memory, 10, LNET_MD_OP_PUT, NULL);

	for (unsigned int i = 0; i < 64; i++) {
		struct ulnet_md_handle md = { node, UINT64_C(1) << i };
		struct ulnet_me_handle me = { node, ~(UINT64_C(1) << i) };
		struct ulnet_eq_handle eq = { node, UINT64_C(0x101) << i };
		struct ulnet_event ev;
		struct ulnet_md_handle made;

		cr_assert_eq(LNetMDUnlink(md), -ENOENT);
		cr_assert_eq(LNetMEUnlink(me), -ENOENT);
		cr_assert_eq(LNetEQFree(eq), -ENOENT);
		cr_assert_eq(LNetEQGet(eq, &ev), -ENOENT);
		cr_assert_eq(
			LNetGet(LNET_NID_ANY, md, nth_id(0), PORTAL, BITS, 0),
			-ENOENT);
		cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &made),
			     -ENOENT);
	}
	cluster_end(sim);
}

/* Ids of one kind are not taken for those of another. */
Test(node, handles_have_kinds)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd = md_of(memory, 10, LNET_MD_OP_PUT, NULL);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md, wrong;
	struct ulnet_me_handle wrong_me;
	struct ulnet_eq_handle eq;

	cr_assert_eq(LNetMEAttach(node, PORTAL, ANY_ID, BITS, 0, LNET_UNLINK,
				  LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md), 0);
	cr_assert_eq(LNetEQAlloc(node, 1, &eq), 0);
	wrong = (struct ulnet_md_handle){ node, me.cookie };
	cr_assert_eq(LNetMDUnlink(wrong), -ENOENT);
	wrong.cookie = eq.cookie;
	cr_assert_eq(LNetMDUnlink(wrong), -ENOENT);
	wrong_me = (struct ulnet_me_handle){ node, md.cookie };
	cr_assert_eq(LNetMEUnlink(wrong_me), -ENOENT);
	cr_assert_eq(LNetMEUnlink(me), 0);
	cluster_end(sim);
}

Test(node, cpt_of)
{
	struct lnet_sim *sim = cluster_with(1, 4, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	unsigned int hits[4] = { 0 };
	struct ulnet_nid any = LNET_NID_ANY;

	cr_assert_eq(lnet_cpt_of(node, &any), -1);
	for (unsigned int i = 0; i < 400; i++) {
		struct ulnet_nid nid = lnet_nid_make(LNET_NET(2, 0), i);
		int cpt = lnet_cpt_of(node, &nid);

		cr_assert(cpt >= 0 && cpt < 4);
		cr_assert_eq(lnet_cpt_of(node, &nid), cpt);
		hits[cpt]++;
	}
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_gt(hits[i], 40);
	cluster_end(sim);
}

static int put_here(void *arg)
{
	put_bytes(arg, nth_id(1), PORTAL, BITS, source, 10);
	return 0;
}

/* What the directory says of a NID, everybody goes by. */
Test(node, the_directory_is_gone_by)
{
	struct lnet_sim *sim = cluster_with(2, 4, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_nid nid = nth_id(1).nid, any = LNET_NID_ANY, primary;
	struct directory_entry e = { nid, nid, 0, false };
	struct directory_entry alias = { nth_id(100).nid, nid, 0, true };
	unsigned int was = (unsigned int)lnet_cpt_of(node, &nid);
	struct ulnet_peer_info info;

	cr_assert_eq(lnet_primary(node, &any, &primary), -EINVAL);
	cr_assert_eq(lnet_primary(node, &nid, &primary), 0);
	cr_assert(lnet_nid_eq(&primary, &nid));
	e.cpt = (was + 1) % 4;
	cr_assert_eq(directory_change(&node->directory, &e, 1), 0);
	cr_assert_eq(lnet_cpt_of(node, &nid), (int)e.cpt);
	cr_assert_eq(directory_change(&node->directory, &alias, 1), 0);
	cr_assert_eq(lnet_primary(node, &alias.nid, &primary), 0);
	cr_assert(lnet_nid_eq(&primary, &nid));
	/* What is sent to it goes by way of that CPT, even what was already on
	 * its way to another one. */
	cr_assert_eq(lnet_call(node, was, put_here, node), 0);
	e.cpt = (was + 2) % 4;
	cr_assert_eq(directory_change(&node->directory, &e, 1), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(lnet_peer_info(node, &nid, &info), 0);
	cr_assert_eq(info.cpt, e.cpt);
	cr_assert_eq(info.send_count, 1);
	cluster_end(sim);
}

/* ---- limits ---- */

Test(node, peers_are_forgotten)
{
	struct ulnet_conf conf;
	struct lnet_sim *sim;
	struct lnet *node;
	struct ulnet_peer_info info;
	struct ulnet_id first = nth_id(1), last = nth_id(5);
	struct ulnet_md umd = md_of(memory, 10, LNET_MD_OP_PUT, &seen);

	lnet_conf_init(&conf);
	conf.peers_max = 3;
	sim = cluster_with(6, 1, &conf);
	node = lnet_sim_node(sim, 0);
	for (unsigned int i = 1; i < 6; i++) {
		put_bytes(lnet_sim_node(sim, i), nth_id(0), PORTAL, BITS, "x",
			  1);
		lnet_sim_run_all(sim);
		if (i != 3)
			continue;
		/* The first is looked for last; nobody is looked for any more
		 * when it is forgotten. */
		cr_assert_eq(lnet_peer_info(node, &first.nid, &info), 0);
		post_md(node, PORTAL, BITS, &umd);
	}
	cr_assert_eq(counter(node, "peers"), 3);
	cr_assert_eq(counter(node, "drop_no_match"), 3);
	cr_assert_eq(lnet_peer_info(node, &first.nid, &info), -ENOENT);
	cr_assert_eq(lnet_peer_info(node, &last.nid, &info), 0);
	cluster_end(sim);
}

/* All peers are in use: a new one is not served. */
Test(node, too_many_peers)
{
	const struct ulnet_sim_link stalled = { .stall = LNET_SIM_ALWAYS };
	struct ulnet_conf conf;
	struct lnet_sim *sim;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.peers_max = 2;
	sim = cluster_with(5, 1, &conf);
	node = lnet_sim_node(sim, 0);
	for (unsigned int i = 1; i < 4; i++)
		link_set(sim, 0, i, &stalled);
	for (unsigned int i = 1; i < 4; i++) {
		struct ulnet_md umd = md_of(source, 10, 0, &sent);

		umd.threshold = 1;
		cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(node, &umd),
				     LNET_NOACK_REQ, nth_id(i), PORTAL, BITS, 0,
				     0),
			     0);
	}
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(sent.ev[0].status, -ENOBUFS);
	cr_assert_eq(sent.ev[0].outcome, LNET_OUTCOME_NOT_DELIVERED);
	put_bytes(lnet_sim_node(sim, 4), nth_id(0), PORTAL, BITS, "x", 1);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_no_memory"), 1);
	cluster_end(sim);
}

Test(node, too_many_messages)
{
	struct ulnet_conf conf;
	struct lnet_sim *sim;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.messages_max = 4;
	sim = cluster_with(3, 1, &conf);
	node = lnet_sim_node(sim, 0);
	cr_assert_eq(LNetSetLazyPortal(node, PORTAL), 0);
	for (unsigned int i = 0; i < 6; i++)
		put_bytes(lnet_sim_node(sim, 1), nth_id(0), PORTAL, BITS, "xx",
			  2);
	lnet_sim_run(sim, MSEC);
	/* A peer that is alone has half and one, and one that waits. */
	cr_assert_eq(counter(node, "parked"), 1);
	cr_assert_eq(counter(node, "drop_count"), 0);
	cr_assert_eq(counter(node, "msgs_alloc"), 4);
	/* Those of other peers find no room even to wait. */
	put_bytes(lnet_sim_node(sim, 2), nth_id(0), PORTAL, BITS, "xx", 2);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(counter(node, "drop_no_memory"), 1);
	cr_assert_eq(counter(node, "drop_length"), 2);
	cluster_end(sim);
}

Test(node, stats)
{
	struct lnet_sim *sim = cluster(1);
	struct ulnet_stat stats[64];
	int n = lnet_stats(lnet_sim_node(sim, 0), NULL, 0);

	cr_assert_gt(n, 30);
	memset(stats, 0, sizeof(stats));
	cr_assert_eq(lnet_stats(lnet_sim_node(sim, 0), stats, 2), n);
	cr_assert_str_eq(stats[0].name, "msgs_alloc");
	cr_assert_not_null(stats[1].help);
	cr_assert_null(stats[2].name);
	cr_assert_eq(lnet_stats(lnet_sim_node(sim, 0), stats, 64), n);
	cr_assert_null(stats[n].name);
	cluster_end(sim);
}

/* ---- a change of another thread, which waits for this one ---- */

static void *add_ni(void *arg)
{
	struct ulnet_ni_conf conf = { .nid = nid_of("10.0.0.1@tcp") };

	return (void *)(intptr_t)lnet_ni_add(arg, &conf);
}

/* The owner of a polled node is told -EBUSY: it would wait for itself. */
Test(node, owner_does_not_wait_for_a_change, .timeout = 60)
{
	struct ulnet_ni_conf conf = { .nid = nid_of("10.0.0.2@tcp") };
	struct node_params p = { .lnd = &simlnd };
	struct sim_net *net;
	struct lnet *node;
	pthread_t thread;
	void *result;
	int rc;

	lnet_conf_init(&p.conf);
	p.conf.run = LNET_RUN_POLL;
	cr_assert_eq(sim_net_new(NULL, &net), 0);
	p.lnd_net = net;
	cr_assert_eq(node_open(&p, &node), 0);
	cr_assert_eq(pthread_create(&thread, NULL, add_ni, node), 0);
	/* Until the other one has begun. */
	while (pthread_mutex_trylock(&whole_node(node)->control) == 0) {
		pthread_mutex_unlock(&whole_node(node)->control);
		sched_yield();
	}
	cr_assert_eq(lnet_ni_add(node, &conf), -EBUSY);
	while ((rc = lnet_ni_add(node, &conf)) == -EBUSY)
		cr_assert_eq(lnet_poll(node, 1000), 0);
	cr_assert_eq(rc, 0);
	pthread_join(thread, &result);
	cr_assert_eq((intptr_t)result, 0);
	lnet_close(node);
	sim_net_free(net);
}

/* Deleted by a thread that can wait, an NI has gone when that returns. */
Test(node, deleted_and_added_at_once, .timeout = 60)
{
	struct node_params p = { .lnd = &simlnd };
	struct sim_net *net;
	struct lnet *node;

	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		lnet_conf_init(&p.conf);
		p.conf.cpts = cpts;
		cr_assert_eq(sim_net_new(NULL, &net), 0);
		p.lnd_net = net;
		cr_assert_eq(node_open(&p, &node), 0);
		for (unsigned int i = 0; i < 100; i++) {
			struct ulnet_ni_conf conf = { .nid = nid_of(
							      "10.0.0.1@tcp") };

			cr_assert_eq(lnet_ni_add(node, &conf), 0);
			put_bytes(node, nth_id(1), PORTAL, BITS, source, 10);
			cr_assert_eq(lnet_ni_del(node, &conf.nid), 0);
			cr_assert_eq(atomic_load(&net_node(node)->nis_alive), 1);
		}
		lnet_close(node);
		sim_net_free(net);
	}
}
