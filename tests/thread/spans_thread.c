/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans are written while sampled calls of several nodes end on several CPTs:
 * to a file that is moved away and opened again, to a file system that is full,
 * to a socket whose reader hangs, and while RPC is closed. Calls go on, and
 * each span is written or counted as dropped. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/port.h"
#include "tests/thread/check.h"
#include "ulnet/service.h"
#include "ulnet/spans.h"

#define CALLERS 3	    /* the node itself, and others; a thread of each */
#define SPANS	(4 * CALLS) /* a call of the node itself has two */
#define CALLS	400	    /* of each caller */
#define FILES	64
#define SAMPLED "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static char dir[] = "/tmp/ulnet-spans.XXXXXX", path[64];
static atomic_uint calling; /* callers that have not finished */
static unsigned int moved;  /* files that were moved away */

static void echo(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

struct caller {
	struct lnet *node;
	struct ulrpc *rpc;
	struct ulrpc_client *client;
	pthread_t thread;
};

struct rig {
	struct caller
		callers[CALLERS]; /* the first one has service and spans */
	struct ulrpc_spans *spans;
};

static uint16_t port;

static struct ulnet_nid nid_of(unsigned int i)
{
	struct ulnet_nid nid;
	char text[LNET_NIDSTR_SIZE];

	snprintf(text, sizeof(text), "127.0.0.%u@tcp", 40 + i);
	check(lnet_nid_parse(text, &nid) == 0);
	return nid;
}

static int node_open(struct caller *c, unsigned int i)
{
	struct ulnet_ni_conf ni = { .nid = nid_of(i) };
	struct ulnet_conf conf;
	int rc;

	lnet_conf_init(&conf);
	conf.cpts = 2;
	conf.port = port;
	conf.accept = LNET_ACCEPT_ALL;
	rc = lnet_open(&conf, &c->node);
	if (!rc)
		rc = lnet_ni_add(c->node, &ni);
	return rc ? rc : ulrpc_open(c->node, NULL, &c->rpc);
}

static int client_open(struct caller *c, struct ulnet_nid to)
{
	struct ulrpc_client_conf conf;

	ulrpc_client_conf_init(&conf);
	conf.nids = &to;
	conf.nnids = 1;
	conf.service = "test";
	return ulrpc_client_open(c->rpc, &conf, &c->client);
}

static int rig_open(struct rig *rig, const char *to, uint32_t queue)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "A", .handler = echo, .run = ULRPC_RUN_INLINE },
		{ .name = "B", .handler = echo },
	};
	const struct ulrpc_spans_conf spans = { .path = to, .queue = queue };
	struct ulrpc_service_conf sconf;
	int rc = 0;

	for (unsigned int i = 0; i < CALLERS && !rc; i++)
		rc = node_open(&rig->callers[i], i);
	if (!rc)
		rc = ulrpc_spans_start(rig->callers->rpc, &spans, &rig->spans);
	ulrpc_service_conf_init(&sconf);
	sconf.name = "test";
	sconf.methods = methods;
	sconf.nmethods = 2;
	if (!rc)
		rc = ulrpc_service_start(rig->callers->rpc, &sconf, NULL);
	for (unsigned int i = 0; i < CALLERS && !rc; i++)
		rc = client_open(&rig->callers[i], i ? nid_of(0) : LNET_NID_LO);
	return rc;
}

static void *calls_main(void *arg)
{
	const struct caller *c = arg;
	const struct ulrpc_call_conf conf = { .deadline = ULRPC_NEVER,
					      .trace = SAMPLED };

	for (unsigned int i = 0; i < CALLS; i++) {
		struct ulrpc_outcome o;

		check(ulrpc_call_wait(c->client,
				      ulrpc_method(i % 2 ? "A" : "B"), "x", 1,
				      &conf, NULL, 0, NULL, &o) == 0);
		check(o.cause == ULRPC_CAUSE_OK);
	}
	atomic_fetch_sub(&calling, 1);
	return NULL;
}

/* Lets all callers make their calls, and calls @meanwhile until they are done.
 */
static void call_all(struct rig *rig, void (*meanwhile)(struct rig *rig))
{
	atomic_store(&calling, CALLERS);
	for (unsigned int i = 0; i < CALLERS; i++)
		if (pthread_create(&rig->callers[i].thread, NULL, calls_main,
				   &rig->callers[i]))
			abort();
	while (atomic_load(&calling))
		meanwhile(rig);
	for (unsigned int i = 0; i < CALLERS; i++)
		pthread_join(rig->callers[i].thread, NULL);
}

/* Closes RPC, and then ends the spans. */
static struct ulrpc_spans_stats rig_close(struct rig *rig)
{
	struct ulrpc_spans_stats stats;

	check(ulrpc_close(rig->callers->rpc) == 0);
	ulrpc_spans_stats(rig->spans, &stats);
	check(stats.written + stats.dropped == SPANS);
	ulrpc_spans_stop(rig->spans);
	for (unsigned int i = 0; i < CALLERS; i++)
		lnet_close(rig->callers[i].node);
	return stats;
}

/* Counts the spans in a file, and removes it. */
static unsigned int count(const char *name)
{
	static const char mark[] = "\"spanId\":";
	FILE *file = fopen(name, "r");
	unsigned int n = 0;
	char *line = NULL;
	size_t size = 0;

	if (!check(file))
		return 0;
	while (getline(&line, &size, file) > 0) {
		check(!strncmp(line, "{\"resourceSpans\":", 17));
		for (const char *at = line; (at = strstr(at, mark)); at++)
			n++;
	}
	free(line);
	fclose(file);
	check(unlink(name) == 0);
	return n;
}

static void name_file(unsigned int i, char *name, size_t size)
{
	snprintf(name, size, "%s/moved.%u", dir, i);
}

static void rotate(struct rig *rig)
{
	struct ulrpc_spans_stats stats;
	char name[80];

	ulrpc_spans_stats(rig->spans, &stats);
	name_file(moved, name, sizeof(name));
	if (moved < FILES && rename(path, name) == 0)
		moved++;
	ulrpc_spans_reopen(rig->spans);
	usleep(1000);
}

static void files_that_are_moved(void)
{
	struct ulrpc_spans_stats stats;
	unsigned int n = 0;
	struct rig rig;

	if (!check(rig_open(&rig, path, 8192) == 0))
		return;
	call_all(&rig, rotate);
	stats = rig_close(&rig);
	check(stats.dropped == 0);
	for (unsigned int i = 0; i < moved; i++) {
		char name[80];

		name_file(i, name, sizeof(name));
		n += count(name);
	}
	/* Perhaps the last one was not opened again. */
	if (!access(path, F_OK))
		n += count(path);
	check(n == stats.written);
}

static void limit_file(rlim_t bytes)
{
	struct rlimit limit;

	check(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	limit.rlim_cur = bytes;
	check(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* The file system is full by turns. */
static void fill(struct rig *rig)
{
	struct ulrpc_spans_stats stats;

	ulrpc_spans_stats(rig->spans, &stats);
	limit_file(stats.written % 2 ? 100 : RLIM_INFINITY);
	usleep(1000);
	limit_file(100);
	usleep(1000);
}

static void a_disk_that_is_full(void)
{
	struct ulrpc_spans_stats stats;
	struct rig rig;

	if (!check(rig_open(&rig, path, 0) == 0))
		return;
	limit_file(100);
	call_all(&rig, fill);
	limit_file(100);
	stats = rig_close(&rig);
	check(stats.dropped > 0);
	limit_file(RLIM_INFINITY);
	check(unlink(path) == 0);
}

static void look(struct rig *rig)
{
	struct ulrpc_spans_stats stats;

	ulrpc_spans_stats(rig->spans, &stats);
	usleep(1000);
}

/* Nobody reads until all calls have ended. */
static void a_reader_that_hangs(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	struct ulrpc_spans_stats stats;
	struct rig rig;
	char to[80];

	strcpy(at.sun_path, path);
	check(bind(listener, (struct sockaddr *)&at, sizeof(at)) == 0);
	check(listen(listener, 1) == 0);
	snprintf(to, sizeof(to), "unix:%s", path);
	if (!check(rig_open(&rig, to, 64) == 0))
		return;
	call_all(&rig, look);
	stats = rig_close(&rig);
	check(stats.dropped > 0);
	close(listener);
	check(unlink(path) == 0);
}

static atomic_uint ended;

static void on_end(void *arg, const struct ulrpc_outcome *outcome,
		   const void *reply, size_t length)
{
	(void)arg;
	(void)outcome;
	(void)reply;
	(void)length;
	atomic_fetch_add(&ended, 1);
}

/* Each call has a span, however it ends; not each has come to the service. */
static void rpc_that_is_closed(void)
{
	const struct ulrpc_call_conf conf = { .deadline = ULRPC_NEVER,
					      .trace = SAMPLED };
	struct ulrpc_spans_stats stats;
	struct rig rig;

	if (!check(rig_open(&rig, path, 0) == 0))
		return;
	for (unsigned int i = 0; i < CALLS; i++)
		check(ulrpc_call(rig.callers->client,
				 ulrpc_method(i % 2 ? "A" : "B"), NULL, 0,
				 &conf, on_end, NULL, NULL) == 0);
	for (unsigned int i = 0; i < CALLERS; i++)
		lnet_close(rig.callers[i].node);
	check(atomic_load(&ended) == CALLS);
	ulrpc_spans_stats(rig.spans, &stats);
	check(stats.written >= CALLS && stats.written <= 2 * CALLS);
	check(stats.dropped == 0);
	ulrpc_spans_stop(rig.spans);
	check(count(path) == stats.written);
}

int main(void)
{
	signal(SIGXFSZ, SIG_IGN);
	if (!check(mkdtemp(dir)))
		return 1;
	snprintf(path, sizeof(path), "%s/spans", dir);
	port = free_port();
	files_that_are_moved();
	a_disk_that_is_full();
	a_reader_that_hangs();
	rpc_that_is_closed();
	check(rmdir(dir) == 0);
	return atomic_load(&failures) ? 1 : 0;
}
