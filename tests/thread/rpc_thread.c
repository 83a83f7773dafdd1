/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service on a node with two CPTs in threads, over TCP on the loopback
 * interface; clients are nodes of their own. Handlers run inline, on worker
 * threads, and some are answered by yet another thread. Callers are plain
 * threads that wait, and callbacks on the clients' CPTs. Then the service stops
 * while calls are under way, and comes again: each of them ends once. Threads
 * start, call and stop services at the same time, more than there are portals.
 *
 * With ONE_HOST, all clients are processes of one host, with one NID, so that
 * the server's CPTs share them: it has three, and each client's calls are
 * handled by one.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/util.h"
#include "tests/port.h"
#include "tests/thread/check.h"
#include "ulnet/loop.h"
#include "ulnet/service.h"

#ifdef ONE_HOST
#define CLIENTS	    12
#define SERVER_CPTS 3
#else
#define ONE_HOST    0
#define CLIENTS	    4
#define SERVER_CPTS 2
#endif
#define CALLERS	 2 /* threads of each client */
#define CALLS	 300
#define LONG	 3000
#define MANY	 500 /* calls of each client while the service stops */
#define RESTARTS 10
#define STARTERS 4  /* threads that start services */
#define STARTED	 10 /* services of each of these at a time */

#define PATIENCE UINT64_C(120000000) /* us */
/* longer than served calls take */
#define LAST_DEADLINE UINT64_C(10000000)

static uint16_t port;
static struct lnet *server;
static struct ulrpc *server_rpc;
static struct ulrpc_service *service;
static atomic_uint runs;

/* ---- answered by another thread ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct ulrpc_request *request[8192];
	unsigned int first, n;
	bool stop;
} later = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .changed = PTHREAD_COND_INITIALIZER };

static void *answer_later(void *arg)
{
	pthread_mutex_lock(&later.lock);
	for (;;) {
		struct ulrpc_request *r;
		struct ulrpc_request_info info;

		while (!later.n && !later.stop)
			pthread_cond_wait(&later.changed, &later.lock);
		if (!later.n)
			break;
		r = later.request[later.first++ % ARRAY_SIZE(later.request)];
		later.n--;
		pthread_mutex_unlock(&later.lock);
		ulrpc_request_info(r, &info);
		check(!strcmp(info.method_name, "late"));
		ulrpc_reply(r, "late", 4);
		pthread_mutex_lock(&later.lock);
	}
	pthread_mutex_unlock(&later.lock);
	return arg;
}

static void on_late(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	atomic_fetch_add(&runs, 1);
	pthread_mutex_lock(&later.lock);
	BUG_ON(later.n == ARRAY_SIZE(later.request));
	later.request[(later.first + later.n++) % ARRAY_SIZE(later.request)] =
		r;
	pthread_cond_signal(&later.changed);
	pthread_mutex_unlock(&later.lock);
}

static atomic_uint runs_on[SERVER_CPTS]; /* by CPT: of inline handlers */

static void on_inline(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	int cpt = lnet_cpt_current(server);

	(void)arg;
	if (check(cpt >= 0))
		atomic_fetch_add(&runs_on[cpt], 1);
	atomic_fetch_add(&runs, 1);
	ulrpc_reply(r, body, length);
}

static void on_echo(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	(void)arg;
	atomic_fetch_add(&runs, 1);
	ulrpc_reply(r, body, length);
}

/* ---- nodes ---- */

static struct ulnet_nid nid_of(unsigned int i)
{
	struct ulnet_nid nid;
	char text[LNET_NIDSTR_SIZE];

	snprintf(text, sizeof(text), "127.0.0.%u@tcp", 40 + i);
	BUG_ON(lnet_nid_parse(text, &nid));
	return nid;
}

static struct lnet *node_up(unsigned int i, unsigned int cpts)
{
	struct ulnet_conf conf;
	struct ulnet_ni_conf ni = { .nid = nid_of(ONE_HOST && i ? 1 : i) };
	struct lnet *node;
	int rc;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	conf.cpts = cpts;
	conf.port = port;
	/* Of several processes with one NID at most one can listen. */
	conf.accept = ONE_HOST && i ? LNET_ACCEPT_NONE : LNET_ACCEPT_ALL;
	rc = lnet_open(&conf, &node);
	BUG_ON(rc);
	rc = lnet_ni_add(node, &ni);
	if (rc) {
		printf("no TCP on the loopback interface: %s\n", strerror(-rc));
		exit(77);
	}
	return node;
}

static void service_up(void)
{
	static const struct ulrpc_method_conf methods[] = {
		{ .name = "echo",
		  .handler = on_inline,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "work", .handler = on_echo },
		{ .name = "high",
		  .handler = on_echo,
		  .priority = ULRPC_PRIORITY_HIGH },
		{ .name = "late", .handler = on_late },
	};
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = "threads";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	conf.workers_min = 1;
	conf.workers_max = 4;
	BUG_ON(ulrpc_service_start(server_rpc, &conf, &service));
	BUG_ON(ulrpc_service_start(server_rpc, &conf, &service) != -EEXIST);
}

/* ---- callers ---- */

struct caller {
	struct client *client;
	pthread_t thread;
	unsigned int good;
};

struct client {
	struct lnet *node;
	struct ulrpc *rpc;
	struct ulrpc_client *client;
	struct caller callers[CALLERS];
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t ended;
	unsigned int pending, good, refused, other;
};

static const char *const names[] = { "echo", "work", "high", "late" };

static void *call_and_wait(void *arg)
{
	struct caller *c = arg;
	struct ulrpc_call_conf conf = { .deadline = PATIENCE };

	for (unsigned int i = 0; i < CALLS; i++) {
		const char *name = names[i % ARRAY_SIZE(names)];
		size_t size = i % 10 ? 40 : LONG, length = 0;
		char body[LONG], reply[LONG];
		struct ulrpc_outcome o;

		memset(body, (int)i, sizeof(body));
		check(!ulrpc_call_wait(c->client->client, ulrpc_method(name),
				       body, size, &conf, reply, sizeof(reply),
				       &length, &o));
		check(o.cause == ULRPC_CAUSE_OK);
		if (!strcmp(name, "late"))
			check(length == 4 && !memcmp(reply, "late", 4));
		else
			check(length == size && !memcmp(reply, body, size));
		c->good += o.cause == ULRPC_CAUSE_OK;
	}
	return NULL;
}

static void on_done(void *arg, const struct ulrpc_outcome *o, const void *reply,
		    size_t length)
{
	struct client *c = arg;

	(void)reply;
	(void)length;
	pthread_mutex_lock(&c->lock);
	if (o->cause == ULRPC_CAUSE_OK)
		c->good++;
	else if (o->execution == ULRPC_NOT_EXECUTED)
		c->refused++;
	else
		c->other++;
	if (!--c->pending)
		pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->lock);
}

static void call_many(struct client *c, unsigned int n, uint64_t deadline)
{
	struct ulrpc_call_conf conf = { .deadline = deadline };

	pthread_mutex_lock(&c->lock);
	c->pending += n;
	c->good = 0;
	pthread_mutex_unlock(&c->lock);
	for (unsigned int i = 0; i < n; i++)
		BUG_ON(ulrpc_call(c->client,
				  ulrpc_method(names[i % ARRAY_SIZE(names)]),
				  "many", 4, &conf, on_done, c, NULL));
}

static void client_up(struct client *c, unsigned int i)
{
	struct ulnet_nid nid = nid_of(0);
	struct ulrpc_client_conf conf;

	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->ended, NULL);
	c->node = node_up(i + 1, 1);
	BUG_ON(ulrpc_open(c->node, NULL, &c->rpc));
	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "threads";
	BUG_ON(ulrpc_client_open(c->rpc, &conf, &c->client));
}

static void client_down(struct client *c)
{
	ulrpc_client_close(c->client);
	BUG_ON(ulrpc_close(c->rpc));
	lnet_close(c->node);
}

static void wait_pending(struct client *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->pending)
		pthread_cond_wait(&c->ended, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

static void all_call(struct client *clients)
{
	for (unsigned int i = 0; i < CLIENTS; i++)
		for (unsigned int j = 0; j < CALLERS; j++) {
			struct caller *k = &clients[i].callers[j];

			k->client = &clients[i];
			BUG_ON(pthread_create(&k->thread, NULL, call_and_wait,
					      k));
		}
	for (unsigned int i = 0; i < CLIENTS; i++)
		call_many(&clients[i], 4 * CALLS, PATIENCE);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		for (unsigned int j = 0; j < CALLERS; j++) {
			pthread_join(clients[i].callers[j].thread, NULL);
			check(clients[i].callers[j].good == CALLS);
		}
		wait_pending(&clients[i]);
		check(clients[i].good == 4 * CALLS);
	}
	check(runs == CLIENTS * CALLS * (CALLERS + 4));
}

/* Stops the service while each client has MANY calls under way. Returns how
 * many were successful: as many as were executed, since the caller of a served
 * call hears of it. */
static unsigned int stop_in_between(struct client *clients, uint64_t deadline,
				    bool restarts)
{
	unsigned int before = atomic_load(&runs), good = 0;

	for (unsigned int i = 0; i < CLIENTS; i++)
		call_many(&clients[i], MANY, deadline);
	check(!ulrpc_service_stop(service, PATIENCE));
	if (restarts)
		service_up();
	for (unsigned int i = 0; i < CLIENTS; i++) {
		wait_pending(&clients[i]);
		good += clients[i].good;
		check(!clients[i].other);
	}
	check(good == atomic_load(&runs) - before);
	return good;
}

/* Calls that were not served before the stop are served by the next service. */
static void restarts(struct client *clients)
{
	for (unsigned int i = 0; i < RESTARTS; i++)
		check(stop_in_between(clients, PATIENCE, true) ==
		      CLIENTS * MANY);
}

/* If there is no next service, such calls end without having been executed. */
static void stop_at_last(struct client *clients)
{
	unsigned int refused = 0, good;

	good = stop_in_between(clients, LAST_DEADLINE, false);
	for (unsigned int i = 0; i < CLIENTS; i++)
		refused += clients[i].refused;
	check(good + refused == CLIENTS * MANY);
}

/* ---- more services than portals ---- */

struct starter {
	struct client *client;
	unsigned int index;
	pthread_t thread;
};

static void own_arg(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	(void)body;
	(void)length;
	ulrpc_reply(r, &arg, sizeof(arg));
}

static void one_more(struct starter *s, unsigned int i,
		     struct ulrpc_service **service_p)
{
	struct ulrpc_method_conf method = { .name = "own",
					    .handler = own_arg,
					    .arg = service_p,
					    .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;
	char name[32];

	snprintf(name, sizeof(name), "crowd %u %u", s->index, i);
	ulrpc_service_conf_init(&conf);
	conf.name = name;
	conf.methods = &method;
	conf.nmethods = 1;
	check(!ulrpc_service_start(server_rpc, &conf, service_p));
}

/* Calls the service that one_more() has started for @want. */
static void call_one(struct starter *s, unsigned int i, void *want)
{
	struct ulrpc_call_conf conf = { .deadline = PATIENCE };
	struct ulnet_nid nid = nid_of(0);
	struct ulrpc_client_conf client_conf;
	struct ulrpc_client *client;
	struct ulrpc_outcome o;
	void *got = NULL;
	size_t length = 0;
	char name[32];

	snprintf(name, sizeof(name), "crowd %u %u", s->index, i);
	ulrpc_client_conf_init(&client_conf);
	client_conf.nids = &nid;
	client_conf.nnids = 1;
	client_conf.service = name;
	check(!ulrpc_client_open(s->client->rpc, &client_conf, &client));
	for (unsigned int n = 0; n < 5; n++) {
		check(!ulrpc_call_wait(client, ulrpc_method("own"), "", 0,
				       &conf, &got, sizeof(got), &length, &o));
		check(o.cause == ULRPC_CAUSE_OK && length == sizeof(got));
		check(got == want);
	}
	ulrpc_client_close(client);
}

static void *start_and_stop(void *arg)
{
	struct ulrpc_service *services[STARTED];
	struct starter *s = arg;

	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < STARTED; i++)
			one_more(s, i, &services[i]);
		for (unsigned int i = 0; i < STARTED; i++)
			call_one(s, i, &services[i]);
		for (unsigned int i = 0; i < STARTED; i++)
			check(!ulrpc_service_stop(services[i], PATIENCE));
	}
	return NULL;
}

static void crowd(struct client *clients)
{
	struct starter s[STARTERS];

	for (unsigned int i = 0; i < STARTERS; i++) {
		s[i] = (struct starter){ .client = &clients[i % CLIENTS],
					 .index = i };
		BUG_ON(pthread_create(&s[i].thread, NULL, start_and_stop,
				      &s[i]));
	}
	for (unsigned int i = 0; i < STARTERS; i++)
		pthread_join(s[i].thread, NULL);
}

/* ---- clients of one host ---- */

static bool is_spread(void)
{
	for (unsigned int i = 0; i < SERVER_CPTS; i++)
		if (!atomic_load(&runs_on[i]))
			return false;
	return true;
}

/* Which CPT gets a client is a matter of chance, so there are more clients, one
 * after the other, until each CPT has had one. */
static void until_spread(void)
{
	struct ulrpc_call_conf conf = { .deadline = PATIENCE };

	while (!is_spread()) {
		struct ulrpc_outcome o;
		struct client c;

		client_up(&c, 1);
		check(!ulrpc_call_wait(c.client, ulrpc_method("echo"), "", 0,
				       &conf, NULL, 0, NULL, &o));
		check(o.cause == ULRPC_CAUSE_OK);
		client_down(&c);
	}
}

int main(void)
{
	static struct client clients[CLIENTS];
	pthread_t answerer;

	port = free_port();
	BUG_ON(!port || pthread_create(&answerer, NULL, answer_later, NULL));
	server = node_up(0, SERVER_CPTS);
	BUG_ON(ulrpc_open(server, NULL, &server_rpc));
	service_up();
	for (unsigned int i = 0; i < CLIENTS; i++)
		client_up(&clients[i], i);
	all_call(clients);
	if (ONE_HOST)
		until_spread();
	restarts(clients);
	stop_at_last(clients);
	crowd(clients);
	for (unsigned int i = 0; i < CLIENTS; i++)
		client_down(&clients[i]);
	BUG_ON(ulrpc_close(server_rpc));
	lnet_close(server);
	pthread_mutex_lock(&later.lock);
	later.stop = true;
	pthread_cond_signal(&later.changed);
	pthread_mutex_unlock(&later.lock);
	pthread_join(answerer, NULL);
	return atomic_load(&failures) != 0;
}
