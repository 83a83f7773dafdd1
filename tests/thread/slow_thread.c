/* SPDX-License-Identifier: BSD-3-Clause */
/* The log names who blocks a CPT: the first time, and only then. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/guard.h"
#include "tests/thread/check.h"
#include "ulnet/loop.h"
#include "ulnet/service.h"

#define LINES 64

static struct {
	pthread_mutex_t lock;
	unsigned int n;
	char text[LINES][256];
} said = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void on_line(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	pthread_mutex_lock(&said.lock);
	if (said.n < LINES)
		snprintf(said.text[said.n++], sizeof(said.text[0]), "%s", line);
	pthread_mutex_unlock(&said.lock);
}

static unsigned int lines_with(const char *what)
{
	unsigned int n = 0;

	pthread_mutex_lock(&said.lock);
	for (unsigned int i = 0; i < said.n; i++)
		n += strstr(said.text[i], what) != NULL;
	pthread_mutex_unlock(&said.lock);
	return n;
}

static void block(void)
{
	/* The guard may leave out as much as GUARD_SAMPLE (base/guard.h). */
	const uint64_t ns = GUARD_LONG + 3 * GUARD_SAMPLE;
	struct timespec t = { (time_t)(ns / NSEC_PER_SEC),
			      (long)(ns % NSEC_PER_SEC) };

	nanosleep(&t, NULL);
}

/* ---- a service's method ---- */

static void slow(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	block();
	ulrpc_reply(request, body, length);
}

static void quick(void *arg, struct ulrpc_request *request, const void *body,
		  size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static struct ulrpc_client *serve(struct lnet *node)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "Slow", .handler = slow, .run = ULRPC_RUN_INLINE },
		{ .name = "Quick", .handler = quick, .run = ULRPC_RUN_INLINE },
		{ .name = "Work", .handler = slow },
	};
	struct ulrpc_service_conf sconf;
	struct ulrpc_client_conf cconf;
	struct ulrpc_service *service;
	struct ulrpc_client *client = NULL;
	struct ulrpc *rpc;

	check(ulrpc_open(node, NULL, &rpc) == 0);
	ulrpc_service_conf_init(&sconf);
	sconf.name = "test";
	sconf.methods = methods;
	sconf.nmethods = 3;
	check(ulrpc_service_start(rpc, &sconf, &service) == 0);
	ulrpc_client_conf_init(&cconf);
	cconf.nids = &LNET_NID_LO;
	cconf.nnids = 1;
	cconf.service = "test";
	check(ulrpc_client_open(rpc, &cconf, &client) == 0);
	return client;
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* Returns after the turn in which the call has ended. */
static void call(struct ulrpc_client *client, const char *method)
{
	const struct ulrpc_call_conf conf = { .deadline = ULRPC_NEVER };
	struct ulrpc_outcome o;

	check(ulrpc_call_wait(client, ulrpc_method(method), "x", 1, &conf, NULL,
			      0, NULL, &o) == 0);
	check(o.cause == ULRPC_CAUSE_OK);
	check(lnet_call(ulrpc_node(ulrpc_client_rpc(client)), 0, nothing,
			NULL) == 0);
}

/* ---- what a program posts ---- */

static void slow_work(struct ulnet_work *work)
{
	(void)work;
	block();
}

static void post_slow(struct lnet *node)
{
	struct ulnet_work work = { .fn = slow_work };

	lnet_post(node, 0, &work);
	check(lnet_call(node, 0, nothing, NULL) == 0);
}

int main(void)
{
	struct ulrpc_client *client;
	struct lnet *node;

	lnet_log_set(LNET_LOG_WARN, on_line, NULL);
	if (!check(lnet_open(NULL, &node) == 0))
		return 1;
	client = serve(node);
	/* a worker may block */
	call(client, "Work");
	call(client, "Work");
	call(client, "Quick");
	call(client, "Slow");
	check(lines_with("method Slow of service test, which is run inline, "
			 "took") == 1);
	for (unsigned int i = 0; i < 2; i++) {
		call(client, "Slow");
		call(client, "Quick");
		call(client, "Work");
	}
	check(lines_with("method Slow of service test, which is run inline, "
			 "took") == 1);
	check(!lines_with("Quick") && !lines_with("Work"));
	post_slow(node);
	check(lines_with("work ") == 1);
	post_slow(node);
	check(lines_with("work ") == 1);
	lnet_close(node);
	return atomic_load(&failures) ? 1 : 0;
}
