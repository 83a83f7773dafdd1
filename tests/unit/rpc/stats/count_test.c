/* SPDX-License-Identifier: BSD-3-Clause */
/* How calls are counted in the statistics of both sides. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include "config/yaml/tree.h"
#include "ulnet/control.h"
#include "ulnet/service.h"

static char memory[5000], taken[3000];

static void echo(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static void refuse(void *arg, struct ulrpc_request *request, const void *body,
		   size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	ulrpc_fail(request, -EPERM);
}

#define SPIN_US 3000

/* Takes SPIN_US, without sleeping, on the thread of the CPT. */
static void spin(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	struct timespec now;
	uint64_t end = 0, ns;

	(void)arg;
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
		end = end ? end : ns + SPIN_US * 1000;
	} while (ns < end);
	ulrpc_reply(request, body, length);
}

/* What spin() does, with a reply that is held. */
static void spin_long(void *arg, struct ulrpc_request *request,
		      const void *body, size_t length)
{
	static const char longest[ULRPC_BODY_MAX + 1];

	(void)body;
	(void)length;
	spin(arg, request, longest, sizeof(longest));
}

static void on_put(void *arg, int status, uint64_t moved)
{
	(void)arg;
	cr_assert_eq(status, 0);
	cr_assert_eq(moved, sizeof(memory));
}

/* What spin() does, while bulk is being moved. */
static void spin_put(void *arg, struct ulrpc_request *request, const void *body,
		     size_t length)
{
	struct iovec iov = { memory, sizeof(memory) };

	cr_assert_eq(ulrpc_bulk_put(request, 0, 0, &iov, 1, on_put, NULL), 0);
	spin(arg, request, body, length);
}

/* Fills the bulk of a request, on a worker. */
static void fill(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	struct iovec iov = { arg, 5000 };

	(void)body;
	(void)length;
	if (ulrpc_bulk_put_wait(request, 0, 0, &iov, 1))
		ulrpc_fail(request, -EIO);
	else
		ulrpc_reply(request, NULL, 0);
}

/* Reads a part of the bulk. */
static void take(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	struct iovec iov = { arg, sizeof(taken) };

	(void)body;
	(void)length;
	if (ulrpc_bulk_get_wait(request, 0, 0, &iov, 1))
		ulrpc_fail(request, -EIO);
	else
		ulrpc_reply(request, NULL, 0);
}

static const struct ulrpc_method_conf methods[] = {
	{ .name = "Echo", .handler = echo, .run = ULRPC_RUN_INLINE },
	{ .name = "Refuse", .handler = refuse },
	{ .name = "Fill", .handler = fill, .arg = memory },
	{ .name = "Take", .handler = take, .arg = taken },
	{ .name = "Spin", .handler = spin, .run = ULRPC_RUN_INLINE },
	{ .name = "SpinLong", .handler = spin_long, .run = ULRPC_RUN_INLINE },
	{ .name = "SpinPut", .handler = spin_put, .run = ULRPC_RUN_INLINE },
};

struct pair {
	struct lnet *node;
	struct ulrpc *rpc;
	struct ulrpc_service *service;
	struct ulrpc_client *client;
};

/* @cpts: 0: the caller drives the node, whose only CPT has no thread. */
static struct pair pair_open(unsigned int cpts)
{
	struct ulrpc_service_conf sconf;
	struct ulrpc_client_conf cconf;
	struct ulrpc_conf rconf;
	struct ulnet_conf conf;
	struct pair p;

	lnet_conf_init(&conf);
	conf.cpts = cpts;
	if (!cpts)
		conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &p.node), 0);
	/* No call is sent twice because a thread comes late. */
	ulrpc_conf_init(&rconf);
	rconf.timeout_min = 30 * 1000000;
	cr_assert_eq(ulrpc_open(p.node, &rconf, &p.rpc), 0);
	ulrpc_service_conf_init(&sconf);
	sconf.name = "test";
	sconf.methods = methods;
	sconf.nmethods = sizeof(methods) / sizeof(*methods);
	cr_assert_eq(ulrpc_service_start(p.rpc, &sconf, &p.service), 0);
	ulrpc_client_conf_init(&cconf);
	cconf.nids = &LNET_NID_LO;
	cconf.nnids = 1;
	cconf.service = "test";
	cr_assert_eq(ulrpc_client_open(p.rpc, &cconf, &p.client), 0);
	return p;
}

static void call(struct pair *p, const char *method, struct ulrpc_bulk *bulk,
		 enum ulrpc_cause cause)
{
	struct ulrpc_call_conf conf = { .deadline = 60 * 1000000,
					.bulks = &bulk,
					.nbulks = bulk != NULL };
	struct ulrpc_outcome o;

	cr_assert_eq(ulrpc_call_wait(p->client, ulrpc_method(method),
				     "0123456789", 10, &conf, NULL, 0, NULL,
				     &o),
		     0);
	cr_assert_eq(o.cause, cause, "%s: %s", method,
		     ulrpc_cause_name(o.cause));
}

/* ---- reading ---- */

static struct doc *stats_of(struct ulrpc *rpc)
{
	const struct tree_limits limits = { 1 << 20, 100000, TREE_DEPTH_MAX };
	struct tree_error err;
	struct doc *doc;
	char *text;

	cr_assert_eq(ulrpc_stats(rpc, &text), 0);
	cr_assert_eq(tree_parse(text, strlen(text), &limits, &doc, &err), 0,
		     "%s", text);
	free(text);
	return doc;
}

/* Returns the entry of @method in @list; NULL: the first peer's entry. */
static const struct tree *entry(const struct doc *doc, const char *list,
				const char *method)
{
	const struct tree *rpc = tree_get(doc_root(doc), "rpc"), *t;

	tree_for_each (t, tree_get(rpc, list)) {
		const struct tree *m = tree_get(t, method ? "method" : "peer");

		if (!method || (m && !strcmp(m->text, method)))
			return t;
	}
	cr_assert_fail("%s: no %s", list, method);
	return NULL;
}

/* Returns the number at the path @path, such as "a/b"; 0 if it is not there. */
static int64_t number(const struct tree *t, const char *path)
{
	char *copy = strdup(path), *save = NULL, *word;
	int64_t value = 0;

	for (word = strtok_r(copy, "/", &save); word && t;
	     word = strtok_r(NULL, "/", &save))
		t = tree_get(t, word);
	free(copy);
	if (t)
		cr_assert(tree_number(t, &value), "%s: %s", path, t->text);
	return value;
}

static void is(const struct tree *t, const char *path, int64_t want)
{
	cr_assert_eq(number(t, path), want, "%s: %lld, not %lld", path,
		     (long long)number(t, path), (long long)want);
}

static int64_t counter(const struct doc *doc, const char *name)
{
	const struct tree *rpc = tree_get(doc_root(doc), "rpc");

	cr_assert_not_null(tree_get(tree_get(rpc, "counters"), name));
	return number(tree_get(rpc, "counters"), name);
}

/* ---- both sides ---- */

/* Makes 27 calls, of all kinds. */
static void call_all(struct pair *p)
{
	struct iovec iov = { memory, sizeof(memory) };
	struct ulrpc_bulk_conf bconf = { .iov = &iov,
					 .niov = 1,
					 .access = ULRPC_BULK_SINK,
					 .segment = 4096 };
	struct ulrpc_bulk_conf sconf = { .iov = &iov,
					 .niov = 1,
					 .access = ULRPC_BULK_SOURCE };
	struct ulrpc_bulk *bulk, *source;

	cr_assert_eq(ulrpc_bulk_new(p->rpc, &bconf, &bulk), 0);
	cr_assert_eq(ulrpc_bulk_new(p->rpc, &sconf, &source), 0);
	for (unsigned int i = 0; i < 20; i++)
		call(p, "Echo", NULL, ULRPC_CAUSE_OK);
	for (unsigned int i = 0; i < 3; i++)
		call(p, "Refuse", NULL, ULRPC_CAUSE_HANDLER);
	call(p, "Fill", bulk, ULRPC_CAUSE_OK);
	call(p, "Take", source, ULRPC_CAUSE_OK);
	call(p, "Take", source, ULRPC_CAUSE_OK);
	call(p, "Nonsense", NULL, ULRPC_CAUSE_NO_METHOD);
	ulrpc_bulk_close(bulk, NULL, NULL);
	ulrpc_bulk_close(source, NULL, NULL);
}

static void check_methods(const struct doc *doc)
{
	const struct tree *t = entry(doc, "calls", "Echo");

	is(t, "calls", 20);
	is(t, "failed", 0);
	is(t, "attempts", 20);
	is(t, "sent_bytes", 200);
	is(t, "received_bytes", 200);
	is(t, "ends/ok", 20);
	is(t, "times_us/total/count", 20);
	is(t, "times_us/service/count", 20);
	cr_assert(tree_get(t, "estimate_us") && tree_get(t, "timeout_us"));
	t = entry(doc, "requests", "Echo");
	cr_assert(tree_get(t, "estimate_us") && !tree_get(t, "timeout_us"));
	is(t, "calls", 20);
	is(t, "sent_bytes", 200);
	is(t, "received_bytes", 200);
	is(t, "ends/ok", 20);
	is(t, "times_us/queue/count", 20);
	is(t, "times_us/bulk/count", 0);
	t = entry(doc, "calls", "Refuse");
	is(t, "failed", 3);
	is(t, "ends/handler", 3);
	t = entry(doc, "requests", "Refuse");
	is(t, "ends/failed", 3);
	is(t, "sent_bytes", 0);
	t = entry(doc, "requests", "Fill");
	is(t, "bulk_sent_bytes", 5000);
	is(t, "bulk_received_bytes", 0);
	is(t, "times_us/bulk/count", 1);
	t = entry(doc, "calls", "Fill");
	is(t, "bulk_sent_bytes", 0);
	is(t, "bulk_received_bytes", 5000);
	t = entry(doc, "requests", "Take");
	is(t, "bulk_sent_bytes", 0);
	is(t, "bulk_received_bytes", 6000);
	t = entry(doc, "calls", "Take");
	is(t, "bulk_sent_bytes", 6000);
	is(t, "bulk_received_bytes", 0);
	is(entry(doc, "refused_by_service", NULL), "ends/no method", 1);
}

static void check_peers(const struct doc *doc)
{
	const struct tree *t;

	for (unsigned int side = 0; side < 2; side++) {
		t = entry(doc, side ? "clients" : "servers", NULL);
		is(t, "connections", 1);
		is(t, "calls", 27);
		is(t, "failed", 4);
		is(t, "bulk_sent_bytes", side ? 5000 : 6000);
		is(t, "bulk_received_bytes", side ? 6000 : 5000);
		is(t, "times_us/total/count", 27);
		cr_assert_not_null(tree_get(t, "rtt_us"));
		cr_assert_gt(number(t, "window"), 1);
		cr_assert_eq(!tree_get(t, "patience"), side);
	}
	t = entry(doc, "servers", NULL);
	is(t, "states/full", 1);
	is(t, "slots", 1024);
	is(t, "patience", 1);
}

static void check_counters(const struct doc *doc)
{
	cr_assert_eq(counter(doc, "connections_made"), 1);
	cr_assert_eq(counter(doc, "clients_accepted"), 1);
	cr_assert_eq(counter(doc, "parcels_sent"), 27);
	cr_assert_eq(counter(doc, "requests_received"), 27);
	cr_assert_eq(counter(doc, "answers_sent"), 27);
	cr_assert_eq(counter(doc, "replies_received"), 27);
	cr_assert_eq(counter(doc, "segments_moved"), 4);
	cr_assert_eq(counter(doc, "unrecorded"), 0);
	cr_assert_gt(counter(doc, "control_received"), 3);
}

static void both_sides_agree(unsigned int cpts)
{
	struct pair p = pair_open(cpts);
	struct doc *doc;

	call_all(&p);
	doc = stats_of(p.rpc);
	check_methods(doc);
	check_peers(doc);
	check_counters(doc);
	doc_free(doc);
	ulrpc_client_close(p.client);
	cr_assert_eq(ulrpc_service_stop(p.service, 1000000), 0);
	cr_assert_eq(ulrpc_close(p.rpc), 0);
	lnet_close(p.node);
}

Test(count, both_sides_agree)
{
	both_sides_agree(1);
	both_sides_agree(3);
}

/* What was counted for a connection stays in the totals after its end. */
Test(count, what_is_gone_stays)
{
	struct pair p = pair_open(1);
	const struct tree *rpc;
	struct doc *doc;

	for (unsigned int i = 0; i < 7; i++)
		call(&p, "Echo", NULL, ULRPC_CAUSE_OK);
	ulrpc_client_close(p.client);
	/* Waits until the server has received the Disconnect. */
	for (doc = stats_of(p.rpc); !counter(doc, "clients_left");
	     doc = stats_of(p.rpc))
		doc_free(doc);
	rpc = tree_get(doc_root(doc), "rpc");
	cr_assert_eq(tree_get(rpc, "servers")->count, 0);
	cr_assert_eq(tree_get(rpc, "clients")->count, 0);
	is(tree_get(rpc, "servers_gone"), "connections", 1);
	is(tree_get(rpc, "servers_gone"), "calls", 7);
	is(tree_get(rpc, "clients_gone"), "connections", 1);
	is(tree_get(rpc, "clients_gone"), "times_us/total/count", 7);
	is(entry(doc, "calls", "Echo"), "calls", 7);
	doc_free(doc);

	cr_assert_eq(ulrpc_stats_reset(p.rpc), 0);
	doc = stats_of(p.rpc);
	rpc = tree_get(doc_root(doc), "rpc");
	is(tree_get(rpc, "clients_gone"), "connections", 0);
	is(entry(doc, "calls", "Echo"), "calls", 0);
	doc_free(doc);
	cr_assert_eq(ulrpc_service_stop(p.service, 1000000), 0);
	cr_assert_eq(ulrpc_close(p.rpc), 0);
	lnet_close(p.node);
}

static void on_end(void *arg, const struct ulrpc_outcome *outcome,
		   const void *reply, size_t length)
{
	unsigned int *n = arg;

	(void)reply;
	(void)length;
	cr_assert_eq(outcome->cause, ULRPC_CAUSE_OK);
	(*n)++;
}

/* Calls @method @times times, with @bulk unless that is NULL. */
static void spins(struct pair *p, const char *method, unsigned int times,
		  struct ulrpc_bulk *bulk)
{
	struct ulrpc_call_conf conf = { .deadline = 60 * 1000000,
					.reply_limit = ULRPC_BODY_MAX + 1,
					.bulks = &bulk,
					.nbulks = bulk != NULL };
	unsigned int n = 0;

	for (unsigned int i = 0; i < times; i++)
		cr_assert_eq(ulrpc_call(p->client, ulrpc_method(method), NULL,
					0, &conf, on_end, &n, NULL),
			     0);
	while (n < times)
		cr_assert_geq(lnet_poll(p->node, -1), 0);
}

/* Checks that a value of a histogram is that of so many spin(), but for what
 * the tick counter is wrong. */
static void at_least(const struct tree *t, const char *times, const char *what,
		     unsigned int spins)
{
	const struct tree *v =
		tree_get(tree_get(tree_get(t, "times_us"), times), what);

	cr_assert_geq(strtod(v->text, NULL), spins * SPIN_US * 0.9, "%s %s: %s",
		      times, what, v->text);
}

/* The time in inline handlers is known, though the clock stands in a turn; and
 * those that come after them in the turn have waited. */
Test(count, inline_handlers_are_timed)
{
	struct pair p = pair_open(0);
	struct doc *doc = NULL;
	const struct tree *t;

	/* The first calls wait for the connection, the last ones are one
	 * message. */
	for (unsigned int i = 0; i < 2; i++)
		spins(&p, "Spin", 3, NULL);
	doc = stats_of(p.rpc);
	t = entry(doc, "requests", "Spin");
	is(t, "times_us/service/count", 6);
	at_least(t, "service", "min", 1);
	at_least(t, "total", "min", 1);
	at_least(t, "queue", "max", 2);
	at_least(t, "total", "max", 3);
	doc_free(doc);
	cr_assert_eq(ulrpc_close(p.rpc), 0);
	lnet_close(p.node);
}

/* So it is if the reply cannot go at once, as it is long, or bulk is still
 * being moved. */
Test(count, inline_handlers_that_end_later_are_timed)
{
	static char sink[sizeof(memory)];
	struct iovec iov = { sink, sizeof(sink) };
	struct ulrpc_bulk_conf bconf = { .iov = &iov,
					 .niov = 1,
					 .access = ULRPC_BULK_SINK };
	static const char *const methods_late[] = { "SpinLong", "SpinPut" };
	struct pair p = pair_open(0);
	struct ulrpc_bulk *bulk;
	struct doc *doc;

	cr_assert_eq(ulrpc_bulk_new(p.rpc, &bconf, &bulk), 0);
	spins(&p, "SpinLong", 1, NULL);
	spins(&p, "SpinPut", 1, bulk);
	doc = stats_of(p.rpc);
	for (unsigned int i = 0; i < 2; i++) {
		const struct tree *t = entry(doc, "requests", methods_late[i]);

		is(t, "times_us/service/count", 1);
		at_least(t, "service", "min", 1);
		at_least(t, "total", "min", 1);
	}
	doc_free(doc);
	ulrpc_bulk_close(bulk, NULL, NULL);
	cr_assert_eq(ulrpc_close(p.rpc), 0);
	lnet_close(p.node);
}

/* ulrpc_close() may come before the end of the control. */
Test(count, ends_under_control)
{
	struct pair p = pair_open(2);
	struct lnet_control *control;
	char *answer;

	cr_assert_eq(lnet_control_start(p.node, NULL, &control), 0);
	cr_assert_eq(ulrpc_control(p.rpc, control), 0);
	call(&p, "Echo", NULL, ULRPC_CAUSE_OK);
	cr_assert_eq(lnet_control_request(control, "rpc show:", &answer), 0);
	cr_assert(strstr(answer, "method: \"Echo\""), "%s", answer);
	free(answer);
	cr_assert_eq(ulrpc_close(p.rpc), 0);
	cr_assert_eq(lnet_control_request(control, "rpc show:", &answer), 0);
	cr_assert(strstr(answer, "runs no RPC"), "%s", answer);
	free(answer);
	lnet_control_stop(control);
	lnet_close(p.node);
}
