/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans of calls and requests, as a collector reads them (requirement J5). */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "config/yaml/tree.h"
#include "ulnet/context.h"
#include "ulnet/service.h"
#include "ulnet/spans.h"

#define MINUTE	UINT64_C(60000000) /* us */
#define TRACE	"0af7651916cd43dd8448eb211c80319c"
#define PARENT	"b7ad6b7169203331"
#define SAMPLED "00-" TRACE "-" PARENT "-01"
#define NOT	"00-" TRACE "-" PARENT "-00"

static struct lnet *node;
static struct ulrpc *rpc;
static struct ulrpc_client *front, *back;
static char dir[] = "/tmp/ulnet-spans.XXXXXX", path[64], moved[64];
static char *text; /* all that was written */
static struct doc *docs[64];
static unsigned int ndocs;

/* ---- two services, of which one calls the other ---- */

static void echo(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static void deny(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	ulrpc_fail(request, -EPERM);
}

static struct ulrpc_request *_Atomic kept;
static struct ulrpc_service *front_service;

static void keep(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	atomic_store(&kept, request);
}

static void relay(void *arg, struct ulrpc_request *request, const void *body,
		  size_t length)
{
	struct ulrpc_call_conf conf = { .deadline = MINUTE };
	struct ulrpc_context *context;
	struct ulrpc_outcome o;

	(void)arg;
	cr_assert_eq(ulrpc_context_new(&context), 0);
	cr_assert_eq(ulrpc_context_under(context, request), 0);
	conf.context = context;
	cr_assert_eq(ulrpc_call_wait(back, ulrpc_method("Echo"), body, length,
				     &conf, NULL, 0, NULL, &o),
		     0);
	cr_assert_eq(o.cause, ULRPC_CAUSE_OK);
	ulrpc_context_free(context);
	ulrpc_reply(request, NULL, 0);
}

static const struct ulrpc_method_conf methods[] = {
	{ .name = "Echo", .handler = echo, .run = ULRPC_RUN_INLINE },
	{ .name = "Relay", .handler = relay },
	{ .name = "Deny", .handler = deny },
	{ .name = "Keep", .handler = keep, .run = ULRPC_RUN_INLINE },
};

static struct ulrpc_client *open_both(const char *name)
{
	struct ulrpc_service_conf sconf;
	struct ulrpc_client_conf cconf;
	struct ulrpc_service *service;
	struct ulrpc_client *client;

	ulrpc_service_conf_init(&sconf);
	sconf.name = name;
	sconf.methods = methods;
	sconf.nmethods = sizeof(methods) / sizeof(methods[0]);
	cr_assert_eq(ulrpc_service_start(rpc, &sconf, &service), 0);
	if (!front_service)
		front_service = service;
	ulrpc_client_conf_init(&cconf);
	cconf.nids = &LNET_NID_LO;
	cconf.nnids = 1;
	cconf.service = name;
	cr_assert_eq(ulrpc_client_open(rpc, &cconf, &client), 0);
	return client;
}

static void set_up(void)
{
	const struct ulrpc_conf rconf = { .timeout_min = 30 * 1000000 };

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/spans", dir);
	snprintf(moved, sizeof(moved), "%s/moved", dir);
	cr_assert_eq(lnet_open(NULL, &node), 0);
	cr_assert_eq(ulrpc_open(node, &rconf, &rpc), 0);
	front = open_both("front");
	back = open_both("back");
}

static void tear_down(void)
{
	for (unsigned int i = 0; i < ndocs; i++)
		doc_free(docs[i]);
	free(text);
	lnet_close(node);
	unlink(path);
	unlink(moved);
	rmdir(dir);
}

TestSuite(spans, .init = set_up, .fini = tear_down);

static struct ulrpc_spans *start(const char *to, uint32_t share, uint32_t queue)
{
	const struct ulrpc_spans_conf conf = {
		.path = to, .name = "a \"test\"", .share = share, .queue = queue
	};
	struct ulrpc_spans *spans;

	cr_assert_eq(ulrpc_spans_start(rpc, &conf, &spans), 0);
	return spans;
}

static void call(const char *method, const char *trace, enum ulrpc_cause cause)
{
	struct ulrpc_call_conf conf = { .deadline = MINUTE, .trace = trace };
	struct ulrpc_outcome o;

	cr_assert_eq(ulrpc_call_wait(front, ulrpc_method(method), NULL, 0,
				     &conf, NULL, 0, NULL, &o),
		     0);
	cr_assert_eq(o.cause, cause);
}

/* ---- reading ---- */

static void read_text(int fd)
{
	size_t size = 1 << 20, n = 0;
	ssize_t got;

	text = malloc(size + 1);
	while ((got = read(fd, text + n, size - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
}

static void read_file(const char *name)
{
	FILE *file = fopen(name, "r");

	free(text);
	cr_assert_not_null(file);
	read_text(fileno(file));
	fclose(file);
}

static const struct tree *first(const struct tree *list)
{
	const struct tree *t;

	cr_assert_eq(list->count, 1);
	tree_for_each (t, list)
		return t;
	return NULL;
}

/* Collects all spans of the lines in @text. Returns how many. */
static unsigned int spans_of(const struct tree **spans, unsigned int most)
{
	const struct tree_limits limits = { 1 << 20, 100000, TREE_DEPTH_MAX };
	unsigned int n = 0;
	char *line, *rest;

	for (line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		const struct tree *t, *span;
		struct tree_error err;

		/* JSON is YAML. */
		cr_assert_eq(tree_parse(line, strlen(line), &limits,
					&docs[ndocs], &err),
			     0, "%s", line);
		t = tree_get(doc_root(docs[ndocs++]), "resourceSpans");
		t = tree_get(first(t), "scopeSpans");
		tree_for_each (span, tree_get(first(t), "spans")) {
			cr_assert_lt(n, most);
			spans[n++] = span;
		}
	}
	return n;
}

static const char *of(const struct tree *span, const char *key)
{
	const struct tree *t = tree_get(span, key);

	return t ? t->text : "";
}

/* Returns the span with this name and kind: 2: of a server, 3: of a client. */
static const struct tree *find(const struct tree **spans, unsigned int n,
			       const char *name, const char *kind)
{
	for (unsigned int i = 0; i < n; i++)
		if (!strcmp(of(spans[i], "name"), name) &&
		    !strcmp(of(spans[i], "kind"), kind))
			return spans[i];
	cr_assert_fail("no span %s of kind %s", name, kind);
	return NULL;
}

static const char *attribute(const struct tree *span, const char *key)
{
	const struct tree *t;

	tree_for_each (t, tree_get(span, "attributes"))
		if (!strcmp(of(t, "key"), key))
			return of(tree_get(t, "value"), "stringValue");
	return "";
}

/* @span has @parent, and is within its time. */
static void under(const struct tree *span, const struct tree *parent)
{
	cr_assert_str_eq(of(span, "parentSpanId"), of(parent, "spanId"));
	cr_assert_str_eq(of(span, "traceId"), of(parent, "traceId"));
	cr_assert_geq(strtoull(of(span, "startTimeUnixNano"), NULL, 10),
		      strtoull(of(parent, "startTimeUnixNano"), NULL, 10));
	cr_assert_leq(strtoull(of(span, "startTimeUnixNano"), NULL, 10),
		      strtoull(of(span, "endTimeUnixNano"), NULL, 10));
}

/* ---- tests ---- */

/* The spans of a call, and of the call that is made for it. */
static void chain(const struct tree **spans, unsigned int n, const char *parent)
{
	const struct tree *caller, *server;

	cr_assert_eq(n, 4);
	caller = find(spans, n, "front/Relay", "3");
	cr_assert_str_eq(of(caller, "parentSpanId"), parent);
	server = find(spans, n, "front/Relay", "2");
	under(server, caller);
	caller = find(spans, n, "back/Echo", "3");
	under(caller, server);
	under(find(spans, n, "back/Echo", "2"), caller);
	cr_assert_str_eq(attribute(server, "rpc.service"), "front");
	cr_assert_str_eq(attribute(server, "rpc.method"), "Relay");
	cr_assert_str_eq(attribute(server, "net.peer.name"), "0@lo");
	cr_assert_str_eq(attribute(server, "rpc.ulrpc.status"), "OK");
	cr_assert_str_eq(attribute(server, "rpc.ulrpc.execution"), "executed");
	cr_assert_str_eq(attribute(caller, "rpc.ulrpc.execution"), "executed");
	cr_assert_str_eq(attribute(caller, "rpc.ulrpc.cause"), "ok");
}

Test(spans, of_calls_with_a_trace)
{
	struct ulrpc_spans *spans = start(path, 0, 0);
	struct ulrpc_spans_stats stats;
	const struct tree *found[8];
	unsigned int n;

	call("Relay", NOT, ULRPC_CAUSE_OK);
	call("Relay", NULL, ULRPC_CAUSE_OK);
	call("Relay", SAMPLED, ULRPC_CAUSE_OK);
	ulrpc_spans_stats(spans, &stats);
	cr_assert_eq(stats.dropped, 0);
	ulrpc_spans_stop(spans);
	call("Relay", SAMPLED, ULRPC_CAUSE_OK);
	read_file(path);
	n = spans_of(found, 8);
	chain(found, n, PARENT);
	cr_assert_str_eq(of(found[0], "traceId"), TRACE);
}

Test(spans, of_a_share_of_the_others)
{
	struct ulrpc_spans *spans = start(path, 1000000, 0);
	const struct tree *found[8];

	call("Relay", NULL, ULRPC_CAUSE_OK);
	call("Relay", NOT, ULRPC_CAUSE_OK);
	ulrpc_spans_stop(spans);
	read_file(path);
	chain(found, spans_of(found, 8), "");
}

Test(spans, of_failures)
{
	struct ulrpc_spans *spans = start(path, 0, 0);
	const struct tree *found[8];
	unsigned int n;

	call("Deny", SAMPLED, ULRPC_CAUSE_HANDLER);
	ulrpc_spans_stop(spans);
	read_file(path);
	n = spans_of(found, 8);
	cr_assert_eq(n, 2);
	for (unsigned int i = 0; i < n; i++) {
		const struct tree *status = tree_get(found[i], "status");

		cr_assert_str_eq(of(status, "code"), "2");
		cr_assert_str_eq(of(status, "message"), "PERMISSION_DENIED");
	}
}

/* The client knows names that somebody has declared, otherwise numbers. */
Test(spans, of_methods_that_do_not_exist)
{
	struct ulrpc_spans *spans = start(path, 0, 0);
	const struct tree *found[8], *span;
	char number[32];

	call("Missing", SAMPLED, ULRPC_CAUSE_NO_METHOD);
	cr_assert_eq(ulrpc_method_declare(rpc, "Absent"), 0);
	call("Absent", SAMPLED, ULRPC_CAUSE_NO_METHOD);
	ulrpc_spans_stop(spans);
	read_file(path);
	cr_assert_eq(spans_of(found, 8), 2);
	snprintf(number, sizeof(number), "front/0x%08x",
		 ulrpc_method("Missing"));
	span = find(found, 2, number, "3");
	cr_assert_str_eq(attribute(span, "rpc.ulrpc.execution"),
			 "not executed");
	cr_assert_str_eq(attribute(span, "rpc.ulrpc.cause"),
			 ulrpc_cause_name(ULRPC_CAUSE_NO_METHOD));
	find(found, 2, "front/Absent", "3");
}

static void on_end(void *arg, const struct ulrpc_outcome *outcome,
		   const void *reply, size_t length)
{
	(void)reply;
	(void)length;
	(void)outcome;
	atomic_fetch_add((_Atomic unsigned int *)arg, 1);
}

static void call_often(unsigned int n)
{
	struct ulrpc_call_conf conf = { .deadline = MINUTE, .trace = SAMPLED };
	_Atomic unsigned int ended = 0;

	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(ulrpc_call(front, ulrpc_method("Echo"), NULL, 0,
					&conf, on_end, &ended, NULL),
			     0);
	while (ended < n)
		usleep(1000);
}

/* What does not fit is dropped, and counted; no call waits. */
Test(spans, too_many)
{
	struct ulrpc_spans *spans = start(path, 0, 1);
	struct ulrpc_spans_stats stats;

	call_often(200);
	do
		ulrpc_spans_stats(spans, &stats);
	while (stats.written + stats.dropped < 400);
	cr_assert_eq(stats.written + stats.dropped, 400);
	cr_assert_gt(stats.dropped, 0);
	ulrpc_spans_stop(spans);
}

Test(spans, a_file_that_was_moved)
{
	struct ulrpc_spans *spans = start(path, 0, 0);
	struct ulrpc_spans_stats stats;
	const struct tree *found[8];

	call("Echo", SAMPLED, ULRPC_CAUSE_OK);
	do
		ulrpc_spans_stats(spans, &stats);
	while (stats.written < 2);
	cr_assert_eq(rename(path, moved), 0);
	ulrpc_spans_reopen(spans);
	call("Echo", SAMPLED, ULRPC_CAUSE_OK);
	ulrpc_spans_stop(spans);
	read_file(path);
	cr_assert_eq(spans_of(found, 8), 2);
	read_file(moved);
	cr_assert_eq(spans_of(found, 8), 2);
}

/* Half a line does not spoil the next one. */
Test(spans, a_file_system_that_is_full)
{
	struct ulrpc_spans *spans = start(path, 0, 0);
	struct rlimit before, limit;
	struct ulrpc_spans_stats stats;
	const struct tree *found[8];
	char *whole;

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 100;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	call("Echo", SAMPLED, ULRPC_CAUSE_OK);
	do
		ulrpc_spans_stats(spans, &stats);
	while (stats.dropped < 2);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	call("Echo", SAMPLED, ULRPC_CAUSE_OK);
	ulrpc_spans_stop(spans);
	read_file(path);
	whole = strchr(text, '\n');
	cr_assert_eq(whole - text, 100);
	memmove(text, whole + 1, strlen(whole));
	cr_assert_eq(spans_of(found, 8), 2);
}

/* A service that is stopped leaves a request to its handler, and tells the
 * caller that it does not know how that will end. */
Test(spans, of_requests_without_an_answer)
{
	struct ulrpc_spans *spans = start(path, 0, 0);
	struct ulrpc_call_conf conf = { .deadline = MINUTE, .trace = SAMPLED };
	_Atomic unsigned int ended = 0;
	const struct tree *found[8], *span;

	cr_assert_eq(ulrpc_call(front, ulrpc_method("Keep"), NULL, 0, &conf,
				on_end, &ended, NULL),
		     0);
	while (!atomic_load(&kept))
		usleep(1000);
	cr_assert_eq(ulrpc_service_stop(front_service, 0), -ETIMEDOUT);
	while (!ended)
		usleep(1000);
	ulrpc_reply(atomic_load(&kept), NULL, 0);
	ulrpc_spans_stop(spans);
	read_file(path);
	cr_assert_eq(spans_of(found, 8), 2);
	for (unsigned int kind = 2; kind <= 3; kind++) {
		span = find(found, 2, "front/Keep", kind == 2 ? "2" : "3");
		cr_assert_str_eq(attribute(span, "rpc.ulrpc.execution"),
				 "unknown");
		cr_assert_str_eq(of(tree_get(span, "status"), "code"), "2");
	}
	cr_assert_str_eq(attribute(find(found, 2, "front/Keep", "2"),
				   "rpc.ulrpc.status"),
			 "unanswered");
}

/* Calls that end because RPC is closed have spans, too. */
Test(spans, rpc_is_closed_before)
{
	struct ulrpc_spans *spans = start(path, 0, 0);
	struct ulrpc_call_conf conf = { .deadline = MINUTE, .trace = SAMPLED };
	struct ulrpc_spans_stats stats;
	_Atomic unsigned int ended = 0;
	const struct tree *found[8];

	cr_assert_eq(ulrpc_call(front, ulrpc_method("Keep"), NULL, 0, &conf,
				on_end, &ended, NULL),
		     0);
	while (!atomic_load(&kept))
		usleep(1000);
	cr_assert_eq(ulrpc_close(rpc), 0);
	cr_assert_eq(ended, 1);
	ulrpc_reply(atomic_load(&kept), NULL, 0);
	ulrpc_spans_stats(spans, &stats);
	cr_assert_eq(stats.written, 2);
	cr_assert_eq(stats.dropped, 0);
	ulrpc_spans_reopen(spans);
	ulrpc_spans_stop(spans);
	read_file(path);
	cr_assert_eq(spans_of(found, 8), 2);
	find(found, 2, "front/Keep", "2");
	find(found, 2, "front/Keep", "3");
}

static int listen_at(const char *where, char *to, size_t size)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(at.sun_path, where);
	cr_assert_eq(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	cr_assert_eq(listen(listener, 1), 0);
	snprintf(to, size, "unix:%s", where);
	return listener;
}

/* The end waits for a collector that does not read, but not for each line. */
Test(spans, a_collector_that_does_not_read)
{
	char to[80];
	int listener = listen_at(path, to, sizeof(to));
	struct ulrpc_spans *spans = start(to, 0, 1 << 16);
	struct timespec begin, end;

	call_often(6000); /* 188 lines: minutes */
	clock_gettime(CLOCK_MONOTONIC, &begin);
	ulrpc_spans_stop(spans);
	clock_gettime(CLOCK_MONOTONIC, &end);
	cr_assert_lt(end.tv_sec - begin.tv_sec, 60);
	close(listener);
}

Test(spans, to_a_socket)
{
	char to[80];
	int listener = listen_at(path, to, sizeof(to)), fd;
	struct ulrpc_spans *spans = start(to, 0, 0);
	const struct tree *found[8];

	call("Echo", SAMPLED, ULRPC_CAUSE_OK);
	ulrpc_spans_stop(spans);
	fd = accept(listener, NULL, NULL);
	read_text(fd);
	cr_assert_eq(spans_of(found, 8), 2);
	close(fd);
	close(listener);
}

Test(spans, refused)
{
	struct ulrpc_spans_conf conf = { .path = "" };
	struct ulrpc_spans *spans = start(path, 0, 0), *more;

	cr_assert_eq(ulrpc_spans_start(rpc, &conf, &more), -EINVAL);
	conf.path = path;
	cr_assert_eq(ulrpc_spans_start(rpc, &conf, &more), -EALREADY);
	conf.share = 1000001;
	cr_assert_eq(ulrpc_spans_start(rpc, &conf, &more), -EINVAL);
	ulrpc_spans_stop(spans);
	conf.share = 0;
	conf.path = "/nonexistent/spans";
	cr_assert_eq(ulrpc_spans_start(rpc, &conf, &more), -ENOENT);
	conf.path = moved;
	cr_assert_eq(mkfifo(moved, 0600), 0);
	cr_assert_eq(ulrpc_spans_start(rpc, &conf, &more), -EINVAL);
	conf.path = "/dev/null";
	cr_assert_eq(ulrpc_spans_start(rpc, &conf, &more), -EINVAL);
	conf.path = "unix:/nonexistent/spans";
	cr_assert_eq(ulrpc_spans_start(rpc, &conf, &more), -ENOENT);
	ulrpc_spans_stop(NULL);
}

/* In a child of fork(), in which nothing runs any more. */
Test(spans, forked)
{
	struct ulrpc_spans *spans = start(path, 0, 0), *more;
	struct ulrpc_spans_conf conf = { .path = path };
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(60);
		ulrpc_spans_stop(spans);
		_exit(ulrpc_spans_start(rpc, &conf, &more) != -ESHUTDOWN);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	ulrpc_spans_stop(spans);
}
