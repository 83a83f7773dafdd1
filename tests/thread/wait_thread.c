/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that make the turns of a CPT while they wait: of a loop with a
 * caretaker (base/caretaker.h), and of a node of LNET_RUN_SHARED, whose calls
 * go over TCP to a node of LNET_RUN_THREADS. And threads that poll before they
 * sleep, for calls, sets of calls and streams. A lost wake-up is a hang; the
 * counters are plain variables of the loop, so the thread sanitizer sees it if
 * two threads make turns at a time.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/caretaker.h"
#include "lnet/node/node.h"
#include "lnet/node/waits.h"
#include "rpc/rpc.h"
#include "tests/port.h"
#include "tests/thread/check.h"
#include "ulnet/loop.h"
#include "ulnet/service.h"
#include "ulnet/stream.h"

#define BORROWERS 3
#define TIMES	  2000 /* each borrows, or posts */
#define CALLERS	  4
#define CALLS	  200
/* us */
#define DEADLINE UINT64_C(600000000)

/* ---- a loop ---- */

struct desk {
	struct loop *loop;
	struct caretaker *caretaker;
	unsigned int turns; /* as the loop counts */
	atomic_uint borrowed;
};

/* What a thread posts, and waits for. */
struct errand {
	struct work work;
	struct desk *desk;
	bool done;
	sem_t told;
};

static void on_errand(struct work *w)
{
	struct errand *e = container_of(w, struct errand, work);

	check(loop_is_owner(e->desk->loop));
	e->desk->turns++;
	e->done = true;
	sem_post(&e->told);
}

/* Another thread posts what the borrower waits for. */
static void *post(void *arg)
{
	struct errand *e = arg;

	loop_post(e->desk->loop, &e->work);
	return NULL;
}

/* Waits for an errand of another thread: by the turns of the loop if nobody
 * else makes them. */
static void run_errand(struct desk *d, bool afar)
{
	struct errand e = { .work.fn = on_errand, .desk = d };
	pthread_t poster;

	sem_init(&e.told, 0, 0);
	if (afar)
		BUG_ON(pthread_create(&poster, NULL, post, &e));
	if (caretaker_borrow(d->caretaker)) {
		atomic_fetch_add(&d->borrowed, 1);
		if (!afar)
			loop_post(d->loop, &e.work);
		while (!e.done)
			loop_run_once(d->loop, true);
		caretaker_return(d->caretaker);
	} else if (!afar) {
		loop_post(d->loop, &e.work);
	}
	sem_wait(&e.told);
	if (afar)
		pthread_join(poster, NULL);
	sem_destroy(&e.told);
}

static void *run_errands(void *arg)
{
	for (unsigned int i = 0; i < TIMES; i++)
		run_errand(arg, i % 16 == 0);
	return NULL;
}

struct alarm {
	struct timer timer;
	sem_t rung;
};

static void on_alarm(struct timer *t)
{
	sem_post(&container_of(t, struct alarm, timer)->rung);
}

/* The caretaker, which sleeps, sees to a timer that a borrower has left; and to
 * work that it has left. */
static void leave_behind(struct desk *d)
{
	struct errand e = { .work.fn = on_errand, .desk = d };
	struct alarm a;

	sem_init(&a.rung, 0, 0);
	sem_init(&e.told, 0, 0);
	timer_init(&a.timer, on_alarm);
	while (!caretaker_borrow(d->caretaker))
		sched_yield();
	loop_timer_arm(d->loop, &a.timer, loop_now(d->loop) + NSEC_PER_MSEC);
	caretaker_return(d->caretaker);
	sem_wait(&a.rung);
	while (!caretaker_borrow(d->caretaker))
		sched_yield();
	loop_defer(d->loop, &e.work);
	caretaker_return(d->caretaker);
	sem_wait(&e.told);
	sem_destroy(&a.rung);
	sem_destroy(&e.told);
}

static void *care(void *arg)
{
	struct desk *d = arg;

	caretaker_begin(d->caretaker);
	caretaker_run(d->caretaker);
	return NULL;
}

/* Ends the caretaker while the loop is borrowed. */
static void end_borrowed(struct desk *d, pthread_t caretaker)
{
	while (!caretaker_borrow(d->caretaker))
		sched_yield();
	caretaker_stop(d->caretaker);
	loop_run_once(d->loop, true);
	caretaker_return(d->caretaker);
	pthread_join(caretaker, NULL);
	check(!caretaker_borrow(d->caretaker));
	loop_take_over(d->loop);
}

static void a_loop(void)
{
	pthread_t caretaker, borrowers[BORROWERS];
	struct desk d = { .turns = 0 };
	struct env *env;

	BUG_ON(env_ev_new(NULL, &env) || loop_new(env, &d.loop));
	BUG_ON(caretaker_new(d.loop, &d.caretaker));
	BUG_ON(pthread_create(&caretaker, NULL, care, &d));
	for (unsigned int i = 0; i < BORROWERS; i++)
		BUG_ON(pthread_create(&borrowers[i], NULL, run_errands, &d));
	for (unsigned int i = 0; i < BORROWERS; i++)
		pthread_join(borrowers[i], NULL);
	leave_behind(&d);
	end_borrowed(&d, caretaker);
	check(d.turns == BORROWERS * TIMES + 1);
	check(atomic_load(&d.borrowed) > 0);
	caretaker_free(d.caretaker);
	loop_free(d.loop);
}

/* ---- nodes ---- */

struct side {
	struct lnet *node;
	struct ulrpc *rpc;
	struct ulnet_nid nid;
};

static uint16_t port;
static struct side sides[2]; /* that which calls, and that which is called */
/* of the first to itself, and of the first to the second */
static struct ulrpc_client *own, *other;
static _Atomic pthread_t handled_by;
static sem_t has_come;

static int call(struct ulrpc_client *client, const char *method,
		struct ulrpc_outcome *o)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE };
	char sent[64] = "to and fro", got[64] = "";
	size_t length = 0;
	int rc = ulrpc_call_wait(client, ulrpc_method(method), sent,
				 sizeof(sent), &conf, got, sizeof(got), &length,
				 o);

	if (!rc && o->cause == ULRPC_CAUSE_OK)
		check(length == sizeof(got) && !memcmp(sent, got, sizeof(got)));
	return rc;
}

static void on_echo(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	(void)arg;
	atomic_store(&handled_by, pthread_self());
	ulrpc_reply(r, body, length);
}

/* Whoever calls it, it is in a turn, and must not wait. */
static void on_nested(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	struct ulrpc_outcome o;

	(void)arg;
	check(lnet_in_turn());
	check(call(own, "echo", &o) == -EDEADLK);
	ulrpc_reply(r, body, length);
}

/* The child of the thread that makes the turns, whoever that is, has neither
 * node. */
static void on_fork(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	pid_t pid = fork();
	int status = -1;

	(void)arg;
	if (!pid) {
		struct ulrpc_outcome o;

		_exit(lnet_is_forked(sides[0].node) &&
				      call(own, "echo", &o) == -ESHUTDOWN
			      ? 0
			      : 1);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	check(WIFEXITED(status) && !WEXITSTATUS(status));
	ulrpc_reply(r, body, length);
}

static struct ulrpc_request *kept;

static void on_keep(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	kept = r;
	sem_post(&has_come);
}

static void side_up(struct side *s, const char *nid, enum ulnet_run run,
		    unsigned int cpts)
{
	static const struct ulrpc_method_conf methods[] = {
		{ .name = "echo", .handler = on_echo, .run = ULRPC_RUN_INLINE },
		{ .name = "nested",
		  .handler = on_nested,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "fork", .handler = on_fork, .run = ULRPC_RUN_INLINE },
		{ .name = "keep", .handler = on_keep, .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;
	struct ulnet_conf nconf;
	struct ulnet_ni_conf ni = { 0 };

	lnet_conf_init(&nconf);
	nconf.run = run;
	nconf.cpts = cpts;
	nconf.port = port;
	BUG_ON(lnet_nid_parse(nid, &s->nid));
	ni.nid = s->nid;
	BUG_ON(lnet_open(&nconf, &s->node) || lnet_ni_add(s->node, &ni));
	BUG_ON(ulrpc_open(s->node, NULL, &s->rpc));
	ulrpc_service_conf_init(&conf);
	conf.name = "desk";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	BUG_ON(ulrpc_service_start(s->rpc, &conf, &service));
}

static struct ulrpc_client *client_up(struct side *from, struct ulnet_nid *to)
{
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client;

	ulrpc_client_conf_init(&conf);
	conf.nids = to;
	conf.nnids = 1;
	conf.service = "desk";
	BUG_ON(ulrpc_client_open(from->rpc, &conf, &client));
	return client;
}

static void nodes_up(enum ulnet_run run, unsigned int cpts)
{
	struct ulnet_nid lo = LNET_NID_LO;

	sem_init(&has_come, 0, 0);
	side_up(&sides[0], "127.0.0.2@tcp", run, cpts);
	side_up(&sides[1], "127.0.0.3@tcp", LNET_RUN_THREADS, 1);
	own = client_up(&sides[0], &lo);
	other = client_up(&sides[0], &sides[1].nid);
}

static void nodes_down(void)
{
	lnet_close(sides[0].node);
	lnet_close(sides[1].node);
	sem_destroy(&has_come);
}

/* Calls until this thread has handled its own call itself; or, if it never is
 * to do so, some times. */
static void who_handles(bool shared)
{
	unsigned int n = 0;
	bool self = false;

	do {
		struct ulrpc_outcome o;

		check(call(own, "echo", &o) == 0 && o.cause == ULRPC_CAUSE_OK);
		self = pthread_equal(atomic_load(&handled_by), pthread_self());
	} while (shared ? !self : ++n < 20 && !self);
	check(self == shared);
}

static void set_add(struct ulrpc_set *set, struct ulrpc_client *client,
		    const char *method)
{
	const struct ulrpc_call_conf conf = { .deadline = DEADLINE };

	check(ulrpc_set_call(set, client, ulrpc_method(method), "x", 1, &conf,
			     NULL, NULL) == 0);
}

/* Takes the @n results of @set. */
static void set_take(struct ulrpc_set *set, unsigned int n)
{
	struct ulrpc_result result;

	for (unsigned int i = 0; i < n; i++) {
		check(ulrpc_set_next(set, &result) == 0 &&
		      result.outcome.cause == ULRPC_CAUSE_OK &&
		      result.length == 1);
		free(result.reply);
	}
	check(ulrpc_set_next(set, &result) == -EAGAIN);
	ulrpc_set_free(set);
}

static void call_both(void)
{
	struct ulrpc_set *set;

	BUG_ON(ulrpc_set_new(sides[0].rpc, &set));
	set_add(set, own, "echo");
	set_add(set, other, "echo");
	check(ulrpc_set_wait(set, 1, DEADLINE) >= 1);
	check(ulrpc_set_wait(set, ULRPC_SET_ALL, ULRPC_NEVER) == 2);
	set_take(set, 2);
}

static void *call_much(void *arg)
{
	for (unsigned int i = 0; i < CALLS; i++) {
		struct ulrpc_outcome o;

		(void)arg;
		if (i % 4 == 0)
			call_both();
		check(call(i % 8 ? other : own, i % 16 ? "echo" : "nested",
			   &o) == 0);
		check(o.cause == ULRPC_CAUSE_OK);
	}
	return NULL;
}

static void nothing(int sig)
{
	(void)sig;
}

/* Several threads call, and are disturbed by signals. */
static void many(void)
{
	struct sigaction act = { .sa_handler = nothing };
	pthread_t callers[CALLERS];

	sigaction(SIGUSR1, &act, NULL);
	for (unsigned int i = 0; i < CALLERS; i++)
		BUG_ON(pthread_create(&callers[i], NULL, call_much, NULL));
	for (unsigned int i = 0; i < 100 * CALLERS; i++) {
		pthread_kill(callers[i % CALLERS], SIGUSR1);
		sched_yield();
	}
	for (unsigned int i = 0; i < CALLERS; i++)
		pthread_join(callers[i], NULL);
}

static void *call_keep(void *arg)
{
	struct ulrpc_outcome *o = arg;

	check(call(other, "keep", o) == 0);
	return NULL;
}

/* RPC is closed while a thread waits for a call that nobody answers, perhaps by
 * the turns of the node. */
static void close_meanwhile(void)
{
	struct ulrpc_outcome o = { .cause = ULRPC_CAUSE_OK };
	pthread_t caller;

	BUG_ON(pthread_create(&caller, NULL, call_keep, &o));
	sem_wait(&has_come);
	check(ulrpc_close(sides[0].rpc) == 0);
	pthread_join(caller, NULL);
	check(o.cause != ULRPC_CAUSE_OK);
	ulrpc_fail(kept, -EIO);
}

static void nodes(enum ulnet_run run, unsigned int cpts)
{
	struct ulrpc_outcome o;

	nodes_up(run, cpts);
	who_handles(run == LNET_RUN_SHARED);
	many();
	check(call(own, "fork", &o) == 0 && o.cause == ULRPC_CAUSE_OK);
	close_meanwhile();
	nodes_down();
}

/* How often threads that waited have polled. */
static uint64_t polled(struct lnet *node)
{
	struct ulnet_stat stats[256];
	int n = lnet_stats(node, stats, ARRAY_SIZE(stats));
	uint64_t sum = 0;

	for (int i = 0; i < n && i < (int)ARRAY_SIZE(stats); i++)
		if (!strncmp(stats[i].name, "wait_poll_", 10))
			sum += stats[i].value;
	return sum;
}

/* Where all share one processor, threads that wait never poll. */
static void one_processor(enum ulnet_run run)
{
	cpu_set_t all, one;
	int cpu = 0;

	BUG_ON(sched_getaffinity(0, sizeof(all), &all));
	while (!CPU_ISSET((size_t)cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	BUG_ON(sched_setaffinity(0, sizeof(one), &one));
	nodes_up(run, 1);
	for (unsigned int i = 0; i < CALLS; i++) {
		struct ulrpc_outcome o;

		check(call(other, "echo", &o) == 0 &&
		      o.cause == ULRPC_CAUSE_OK);
		call_both();
	}
	check(polled(sides[0].node) == 0);
	nodes_down();
	BUG_ON(sched_setaffinity(0, sizeof(all), &all));
}

/* ---- polling, on however few processors ---- */

#define PASSERS 3
#define PASSES	2000

/* ns: until a window of this length has ended, the test has failed. */
static _Atomic uint64_t long_window = 600 * NSEC_PER_SEC;
static _Atomic uint64_t short_window = 20 * NSEC_PER_USEC;

/* Nobody waits now. The next thread that does polls for *@max at most. */
static struct waits *poll_for(const _Atomic uint64_t *max)
{
	struct waits *w = whole_cpt(sides[0].node->cpt[0])->waits;

	w->spin = (struct spin){
		.max = max,
		.window = atomic_load(max),
		.hits = w->spin.hits,
		.misses = w->spin.misses,
	};
	return w;
}

/* Calls wait(@arg) in a thread, which polls until end() ends its wait. */
static void polls(void *(*wait)(void *arg), void *arg, void (*end)(void))
{
	struct waits *w = poll_for(&long_window);
	uint64_t hits = stat_get(w->spin.hits);
	pthread_t waiter;

	BUG_ON(pthread_create(&waiter, NULL, wait, arg));
	while (!atomic_load(&w->taken))
		sched_yield();
	end();
	pthread_join(waiter, NULL);
	check(stat_get(w->spin.hits) == hits + 1);
}

/* A token, which threads hand on to each other. */
struct token {
	struct wait wait;
	unsigned int at;
};

struct passer {
	struct token *token;
	unsigned int number;
};

static bool has_token(void *arg)
{
	struct passer *p = arg;

	return p->token->at == p->number;
}

static void *pass(void *arg)
{
	struct passer *p = arg;
	struct token *t = p->token;

	for (unsigned int i = 0; i < PASSES; i++) {
		check(wait_until(&t->wait, sides[0].node, has_token, p,
				 TIME_NEVER) == 0);
		pthread_mutex_lock(&t->wait.lock);
		t->at = (t->at + 1) % PASSERS;
		if (i % 2)
			wait_wake(&t->wait);
		pthread_mutex_unlock(&t->wait.lock);
		if (i % 2 == 0)
			wait_wake(&t->wait);
	}
	return NULL;
}

/* One polls at a time, the others sleep, or begin to. */
static void tokens(void)
{
	struct token t = { .at = 0 };
	struct passer passers[PASSERS];
	pthread_t threads[PASSERS];

	BUG_ON(wait_init(&t.wait));
	atomic_store(&t.wait.cpt, 0);
	poll_for(&short_window);
	for (unsigned int i = 0; i < PASSERS; i++) {
		passers[i] = (struct passer){ &t, i };
		BUG_ON(pthread_create(&threads[i], NULL, pass, &passers[i]));
	}
	for (unsigned int i = 0; i < PASSERS; i++)
		pthread_join(threads[i], NULL);
	wait_fini(&t.wait);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

/* The time that a thread waits at most ends polling, too. */
static void in_vain(void)
{
	struct lnet *node = sides[0].node;
	struct wait wait;

	BUG_ON(wait_init(&wait));
	atomic_store(&wait.cpt, 0);
	poll_for(&long_window);
	check(wait_until(&wait, node, never, NULL,
			 lnet_now(node, 0) + NSEC_PER_MSEC) == -ETIMEDOUT);
	wait_fini(&wait);
}

/* What is waited for. */
struct change {
	struct wait wait;
	unsigned int asked;
};

/* What is waited for happens as soon as it was asked for in vain. */
static bool has_changed(void *arg)
{
	struct change *c = arg;

	if (c->asked++)
		return true;
	wait_wake(&c->wait);
	return false;
}

/* No change escapes who is about to poll, or to sleep at once. */
static void changed_meanwhile(unsigned int cpt)
{
	struct change c = { .asked = 0 };

	BUG_ON(wait_init(&c.wait));
	atomic_store(&c.wait.cpt, cpt);
	poll_for(&long_window);
	check(wait_until(&c.wait, sides[0].node, has_changed, &c, TIME_NEVER) ==
	      0);
	check(c.asked == 2);
	wait_fini(&c.wait);
}

static void reply_kept(void)
{
	ulrpc_reply(kept, "x", 1);
}

static void *wait_set(void *arg)
{
	check(ulrpc_set_wait(arg, 1, DEADLINE) == 1);
	return NULL;
}

static void a_set(void)
{
	struct ulrpc_set *set;

	BUG_ON(ulrpc_set_new(sides[0].rpc, &set));
	set_add(set, other, "keep");
	sem_wait(&has_come);
	polls(wait_set, set, reply_kept);
	set_take(set, 1);
}

static struct ulrpc_stream *kept_stream; /* the service's */
static unsigned int filled; /* messages sent that it has not read */

static void on_stream(void *arg, struct ulrpc_stream *stream, const void *body,
		      size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	kept_stream = stream;
	sem_post(&has_come);
}

static void *wait_message(void *arg)
{
	const void *body;
	size_t length;

	check(ulrpc_stream_next_wait(arg, &body, &length) == 1 && length == 1);
	return NULL;
}

static void send_kept(void)
{
	check(ulrpc_stream_send(kept_stream, "x", 1) == 0);
}

static void *wait_room(void *arg)
{
	check(ulrpc_stream_send_wait(arg, "x", 1) == 0);
	return NULL;
}

static void read_kept(void)
{
	const void *body;
	size_t length;

	for (; filled; filled--)
		check(ulrpc_stream_next_wait(kept_stream, &body, &length) == 1);
}

static void *wait_end(void *arg)
{
	struct ulrpc_stream_outcome o;

	check(ulrpc_stream_outcome_wait(arg, &o) == 0);
	check(o.cause == ULRPC_CAUSE_OK);
	return NULL;
}

static void end_kept(void)
{
	ulrpc_stream_end(kept_stream, 0, NULL);
	ulrpc_stream_put(kept_stream);
}

static struct ulrpc_streams *streams_up(void)
{
	static const struct ulrpc_stream_method methods[] = {
		{ .name = "keep",
		  .handler = on_stream,
		  .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_stream_service *service;
	struct ulrpc_stream_service_conf sconf;
	struct ulrpc_streams_conf conf;
	struct ulrpc_streams *streams;

	ulrpc_stream_service_conf_init(&sconf);
	sconf.service.name = "belt";
	sconf.methods = methods;
	sconf.nmethods = ARRAY_SIZE(methods);
	BUG_ON(ulrpc_stream_serve(sides[1].rpc, &sconf, &service));
	ulrpc_streams_conf_init(&conf);
	conf.client.nids = &sides[1].nid;
	conf.client.nnids = 1;
	conf.client.service = "belt";
	BUG_ON(ulrpc_streams_open(sides[0].rpc, &conf, &streams));
	return streams;
}

static void a_stream(void)
{
	const struct ulrpc_stream_conf conf = { .deadline = DEADLINE };
	struct ulrpc_streams *streams = streams_up();
	struct ulrpc_stream *stream;

	BUG_ON(ulrpc_stream_open(streams, "keep", "x", 1, &conf, &stream));
	sem_wait(&has_come);
	polls(wait_message, stream, send_kept);
	while (ulrpc_stream_send(stream, "x", 1) == 0)
		filled++;
	polls(wait_room, stream, read_kept);
	polls(wait_end, stream, end_kept);
	ulrpc_stream_put(stream);
	ulrpc_streams_close(streams);
}

static void polling(void)
{
	nodes_up(LNET_RUN_THREADS, 1);
	tokens();
	in_vain();
	changed_meanwhile(0);
	changed_meanwhile(WAIT_ASLEEP);
	a_set();
	a_stream();
	nodes_down();
}

int main(void)
{
	a_loop();
	port = free_port();
	if (!port) {
		printf("no TCP on the loopback interface\n");
		return atomic_load(&failures) ? 1 : 77;
	}
	nodes(LNET_RUN_SHARED, 1);
	nodes(LNET_RUN_SHARED, 2);
	nodes(LNET_RUN_THREADS, 1);
	polling();
	one_processor(LNET_RUN_SHARED);
	one_processor(LNET_RUN_THREADS);
	return atomic_load(&failures) ? 1 : 0;
}
