/* SPDX-License-Identifier: BSD-3-Clause */
/* Interceptors of clients, services and nodes. Each writes its letter to a log,
 * in capitals at the end. */
#include <ctype.h>

#include "tests/unit/rpc/serve_rig.h"
#include "ulnet/intercept.h"

static struct serve_rig g;
static char logged[256];

static void note(char c)
{
	size_t n = strlen(logged);

	cr_assert_lt(n + 1, sizeof(logged));
	logged[n] = c;
}

static void logged_is(const char *what)
{
	cr_expect_str_eq(logged, what);
	memset(logged, 0, sizeof(logged));
}

/* ---- interceptors ---- */

/* What an interceptor does, and what it has seen. */
struct ic {
	char letter;
	int refuse; /* what begin returns */
	const char *text;
	const char *add; /* name of a pair that begin adds; its value is "v" */
	bool details;
	bool calls; /* begin makes a call, too, at first */
	uint64_t deadline;
	const char *trace;
	/* of the last end */
	enum ulrpc_cause cause;
	int status;
	char found[32]; /* value of the reply's pair "re" */
	unsigned int begun, ended, streams;
	size_t length; /* of the last body */
	uint64_t service_time;
	char method[32];
};

static void call_within(struct ic *x)
{
	const struct ulrpc_call_conf conf = { .deadline = 10000000 };
	static struct called other;

	x->calls = false;
	cr_assert_eq(ulrpc_call(g.client, ulrpc_method("hold"), "", 0, &conf,
				on_called, &other, NULL),
		     0);
	lnet_sim_run(g.sim, SEC);
}

static int call_begin(void *arg, struct ulrpc_call_start *s)
{
	struct ic *x = arg;

	note(x->letter);
	cr_expect_str_eq(s->text, "");
	cr_expect_null(s->state);
	x->begun++;
	x->streams += s->stream;
	x->length = s->length;
	s->state = x;
	if (x->text)
		snprintf(s->text, sizeof(s->text), "%s", x->text);
	if (x->add)
		cr_expect_eq(ulrpc_context_add(s->context, x->add, "v", 1), 0);
	if (x->deadline)
		s->conf->deadline = x->deadline;
	if (x->trace)
		s->conf->trace = x->trace;
	if (x->calls)
		call_within(x);
	/* These do not count. */
	s->conf->nbulks = 3;
	s->conf->context = NULL;
	return x->refuse;
}

static void call_end(void *arg, void *state, const struct ulrpc_call_end *e)
{
	struct ulrpc_metadata m;
	struct ic *x = arg;

	cr_expect_eq(state, x);
	note((char)toupper(x->letter));
	x->ended++;
	x->cause = e->outcome->cause;
	x->status = e->outcome->status;
	x->length = e->length;
	if (!ulrpc_context_find(e->context, "re", &m))
		snprintf(x->found, sizeof(x->found), "%s",
			 (const char *)m.value);
}

static int request_begin(void *arg, struct ulrpc_request_start *s)
{
	const struct ulrpc_details d = { "t", "d", 1 };
	struct ulrpc_request_info info;
	struct ic *x = arg;

	note(x->letter);
	ulrpc_request_info(s->request, &info);
	snprintf(x->method, sizeof(x->method), "%s", info.method_name);
	cr_expect_str_eq(s->text, "");
	cr_expect_null(s->state);
	x->begun++;
	x->streams += s->stream;
	x->length = s->length;
	s->state = x;
	if (x->text)
		snprintf(s->text, sizeof(s->text), "%s", x->text);
	if (x->add)
		cr_expect_eq(ulrpc_reply_add(s->request, x->add, "v", 1), 0);
	if (x->details)
		cr_expect_eq(ulrpc_reply_details(s->request, &d), 0);
	return x->refuse;
}

static void request_end(void *arg, void *state,
			const struct ulrpc_request_end *e)
{
	struct ic *x = arg;

	cr_expect_eq(state, x);
	cr_expect_str_eq(e->method, x->method);
	note((char)toupper(x->letter));
	x->ended++;
	x->cause = e->cause;
	x->status = e->status;
	x->length = e->sent;
	x->service_time = e->service_time;
}

/* two of the client, one of its node; one of the server's node, two of the
 * service */
static struct ic a, b, c, d, e, f;

/* ---- the rig ---- */

static unsigned int queue_max;

static void open_all(enum ulrpc_run run, unsigned int cpts)
{
	const struct ulrpc_call_interceptor node_calls = { call_begin, call_end,
							   &c };
	const struct ulrpc_request_interceptor node_requests = { request_begin,
								 request_end,
								 &d };
	const struct ulrpc_request_interceptor own[] = {
		{ request_begin, request_end, &e },
		{ request_begin, request_end, &f },
	};
	const struct ulrpc_call_interceptor mine[] = {
		{ call_begin, call_end, &a },
		{ call_begin, call_end, &b },
	};
	const struct ulrpc_method_conf methods[] = {
		{ .name = "echo",
		  .handler = echo,
		  .arg = &g.served,
		  .run = run },
		{ .name = "hold",
		  .handler = hold,
		  .arg = &g.served,
		  .run = ULRPC_RUN_INLINE },
	};
	const struct ulrpc_service_conf service = {
		.name = "test",
		.methods = methods,
		.nmethods = 2,
		.interceptors = own,
		.ninterceptors = 2,
	};
	struct ulrpc_conf conf = { .call_interceptors = &node_calls,
				   .ncall_interceptors = 1 };
	const struct ulnet_nid nid = nth_id(SERVER).nid;
	const struct ulrpc_client_conf client = {
		.nids = &nid,
		.nnids = 1,
		.service = "test",
		.interceptors = mine,
		.ninterceptors = 2,
		.queue_max = queue_max,
	};

	serve_init(&g, 1, cpts);
	cr_assert_eq(ulrpc_close(g.rpc[CALLER]), 0);
	cr_assert_eq(ulrpc_open(g.node[CALLER], &conf, &g.rpc[CALLER]), 0);
	conf = (struct ulrpc_conf){ .request_interceptors = &node_requests,
				    .nrequest_interceptors = 1 };
	cr_assert_eq(ulrpc_open(g.node[SERVER], &conf, &g.rpc[SERVER]), 0);
	serve_start(&g, &service);
	cr_assert_eq(ulrpc_client_open(g.rpc[CALLER], &client, &g.client), 0);
	a = (struct ic){ .letter = 'a' };
	b = (struct ic){ .letter = 'b' };
	c = (struct ic){ .letter = 'c' };
	d = (struct ic){ .letter = 'd' };
	e = (struct ic){ .letter = 'e' };
	f = (struct ic){ .letter = 'f' };
	memset(logged, 0, sizeof(logged));
}

static struct called called;

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	note('!');
	on_called(arg, o, reply, length);
}

static int call(struct ulrpc_context *x, const char *method, const void *body,
		size_t length, struct ulrpc_call **call_p)
{
	const struct ulrpc_call_conf conf = { .deadline = 10000000,
					      .context = x };

	called = (struct called){ 0 };
	return ulrpc_call(g.client, ulrpc_method(method), body, length, &conf,
			  on_end, &called, call_p);
}

static void call_ok(struct ulrpc_context *x)
{
	cr_assert_eq(call(x, "echo", "body", 4, NULL), 0);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(called.ended, 1);
	cr_assert_eq(called.outcome.cause, ULRPC_CAUSE_OK, "%s: %s",
		     ulrpc_cause_name(called.outcome.cause),
		     called.outcome.text);
	cr_expect_eq(called.length, 4);
}

/* ---- tests ---- */

/* The node's are next to the network, and the end comes in reverse. */
Test(intercept_pair, in_order)
{
	for (unsigned int i = 0; i < 4; i++) {
		open_all(i % 2 ? ULRPC_RUN_WORKER : ULRPC_RUN_INLINE,
			 1 + i / 2);
		call_ok(NULL);
		logged_is("abcdefFEDCBA!");
		cr_expect_eq(a.cause, ULRPC_CAUSE_OK);
		cr_expect_eq(a.length, 4);
		cr_expect_eq(f.cause, ULRPC_CAUSE_OK);
		cr_expect_eq(f.length, 4);
		cr_expect_str_eq(f.method, "echo");
		serve_fini(&g);
	}
}

/* What interceptors add goes with one call; the caller's context stays as it
 * is, and gets what has come. */
Test(intercept_pair, metadata)
{
	struct ulrpc_metadata m;
	struct ulrpc_context *x;
	char found[2][8];

	open_all(ULRPC_RUN_INLINE, 1);
	cr_assert_eq(ulrpc_context_new(&x), 0);
	cr_assert_eq(ulrpc_context_add(x, "own", "w", 1), 0);
	b.add = "token";
	d.add = "re";
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(call(x, "hold", "", 0, NULL), 0);
		cr_expect_eq(ulrpc_context_add(x, "n", "v", 1), -EBUSY);
		lnet_sim_run(g.sim, SEC);
		cr_assert_eq(g.served.parked, 1);
		for (unsigned int j = 0; j < 2; j++) {
			cr_assert_eq(
				ulrpc_request_metadata(g.served.park[0], j, &m),
				0);
			snprintf(found[j], sizeof(found[j]), "%s", m.name);
		}
		cr_expect_str_eq(found[0], "own");
		cr_expect_str_eq(found[1], "token");
		cr_expect_eq(ulrpc_request_metadata(g.served.park[0], 2, &m),
			     -ENOENT);
		serve_release(&g.served);
		lnet_sim_run(g.sim, SEC);
		cr_assert_eq(called.outcome.cause, ULRPC_CAUSE_OK);
		cr_expect_str_eq(a.found, "v");
		cr_assert_eq(ulrpc_context_find(x, "re", &m), 0);
		cr_expect_eq(ulrpc_context_sent(x, 0, &m), 0);
		cr_expect_str_eq(m.name, "own");
		cr_expect_eq(ulrpc_context_sent(x, 1, &m), -ENOENT);
	}
	ulrpc_context_free(x);
	/* without a context of the caller */
	memset(a.found, 0, sizeof(a.found));
	call_ok(NULL);
	cr_expect_str_eq(a.found, "v");
	serve_fini(&g);
}

/* An interceptor has made a call, with which the client has enough: those that
 * have let the other one pass hear of that. */
Test(intercept_pair, too_many_calls)
{
	queue_max = 1;
	open_all(ULRPC_RUN_INLINE, 1);
	queue_max = 0;
	a.calls = true;
	cr_assert_eq(call(NULL, "echo", "", 0, NULL), -EAGAIN);
	logged_is("aabcdefbcCBA");
	cr_expect_eq(a.status, -EAGAIN);
	cr_expect_eq(a.cause, ULRPC_CAUSE_OVERLOADED);
	serve_release(&g.served);
	lnet_sim_run(g.sim, SEC);
	serve_fini(&g);
}

/* A call that is refused here is not sent, and ends later. */
Test(intercept_pair, refused_call)
{
	struct ulrpc_context *x;
	struct ulrpc_call *ref;

	for (unsigned int cpts = 1; cpts < 3; cpts++) {
		open_all(ULRPC_RUN_INLINE, cpts);
		cr_assert_eq(ulrpc_context_new(&x), 0);
		b.refuse = -EKEYREJECTED;
		b.text = "no token";
		cr_assert_eq(call(x, "echo", "", 0, &ref), 0);
		logged_is("ab");
		lnet_sim_run(g.sim, SEC);
		logged_is("A!");
		cr_expect_eq(called.outcome.cause, ULRPC_CAUSE_INTERCEPTED);
		cr_expect_eq(called.outcome.status, -EKEYREJECTED);
		cr_expect_eq(called.outcome.execution, ULRPC_NOT_EXECUTED);
		cr_expect_eq(called.outcome.attempts, 0);
		cr_expect_str_eq(called.outcome.text, "no token");
		cr_expect_eq(ulrpc_status_of(&called.outcome),
			     ULRPC_STATUS_UNAUTHENTICATED);
		cr_expect_eq(a.cause, ULRPC_CAUSE_INTERCEPTED);
		cr_expect_eq(a.status, -EKEYREJECTED);
		cr_expect_eq(g.served.runs, 0);
		ulrpc_call_put(ref);
		/* canceled meanwhile: exactly one end, too */
		cr_assert_eq(call(x, "echo", "", 0, &ref), 0);
		ulrpc_cancel(ref);
		lnet_sim_run(g.sim, SEC);
		cr_expect_eq(called.ended, 1);
		ulrpc_call_put(ref);
		logged_is("abA!");
		/* a positive number is refused, too */
		b.refuse = 7;
		b.text = NULL;
		cr_assert_eq(call(x, "echo", "", 0, NULL), 0);
		lnet_sim_run(g.sim, SEC);
		cr_expect_eq(called.outcome.status, -EPERM);
		b.refuse = 0;
		logged_is("abA!");
		call_ok(x);
		ulrpc_context_free(x);
		serve_fini(&g);
	}
}

/* A request that is refused has no handler. */
Test(intercept_pair, refused_request)
{
	struct ulrpc_details details;
	struct ulrpc_context *x;

	for (unsigned int i = 0; i < 2; i++) {
		open_all(i ? ULRPC_RUN_WORKER : ULRPC_RUN_INLINE, 1);
		cr_assert_eq(ulrpc_context_new(&x), 0);
		e.refuse = -EACCES;
		e.text = "who are you?";
		e.details = true;
		cr_assert_eq(call(x, "echo", "", 0, NULL), 0);
		lnet_sim_run(g.sim, SEC);
		logged_is("abcdeDCBA!");
		cr_expect_eq(called.outcome.cause, ULRPC_CAUSE_HANDLER);
		cr_expect_eq(ulrpc_status_of(&called.outcome),
			     ULRPC_STATUS_PERMISSION_DENIED);
		cr_expect_str_eq(called.outcome.text, "who are you?");
		cr_expect_eq(ulrpc_context_details(x, &details), 0);
		cr_expect_eq(d.cause, ULRPC_CAUSE_HANDLER);
		cr_expect_eq(d.status, -EACCES);
		cr_expect_eq(g.served.runs, 0);
		ulrpc_context_free(x);
		serve_fini(&g);
	}
}

/* A limit of rates: the call is made again, and was not executed before. */
Test(intercept_pair, overloaded)
{
	open_all(ULRPC_RUN_INLINE, 1);
	e.refuse = ULRPC_INTERCEPT_OVERLOADED;
	cr_assert_eq(call(NULL, "echo", "body", 4, NULL), 0);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(called.ended, 0);
	cr_expect_gt(e.begun, 1);
	cr_expect_eq(e.ended, 0);
	cr_expect_eq(d.ended, d.begun);
	cr_expect_eq(d.cause, ULRPC_CAUSE_OVERLOADED);
	e.refuse = 0;
	lnet_sim_run(g.sim, 5 * SEC);
	cr_assert_eq(called.ended, 1);
	cr_expect_eq(called.outcome.cause, ULRPC_CAUSE_OK);
	cr_expect_eq(g.served.runs, 1);
	cr_expect_eq(a.begun, 1);
	serve_fini(&g);
}

/* Interceptors may change the configuration of a call. */
Test(intercept_pair, configuration)
{
	const char *trace =
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

	open_all(ULRPC_RUN_INLINE, 1);
	a.trace = trace;
	call_ok(NULL);
	cr_expect_str_eq(g.served.info.trace, trace);
	a.deadline = 100000;
	cr_assert_eq(call(NULL, "hold", "", 0, NULL), 0);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(called.outcome.cause, ULRPC_CAUSE_DEADLINE);
	serve_release(&g.served);
	serve_fini(&g);
}

/* A call that cannot be made has ended for its interceptors, too. */
Test(intercept_pair, not_made)
{
	static char body[1];
	struct ulrpc_call_conf conf = { 0 };
	struct ulrpc_context *x;

	open_all(ULRPC_RUN_INLINE, 1);
	cr_assert_eq(ulrpc_context_new(&x), 0);
	cr_expect_eq(
		ulrpc_call(g.client, 1, NULL, 0, &conf, on_end, &called, NULL),
		-EINVAL);
	logged_is("");
	b.add = "token";
	cr_expect_eq(call(x, "echo", body, ULRPC_LENT_MAX, NULL), -EMSGSIZE);
	logged_is("abcCBA");
	cr_expect_eq(a.status, -EMSGSIZE);
	a.trace = "none";
	cr_expect_eq(call(x, "echo", "", 0, NULL), -EINVAL);
	logged_is("abcCBA");
	a.trace = NULL;
	/* the caller has the context again */
	cr_expect_eq(ulrpc_context_add(x, "n", "v", 1), 0);
	ulrpc_context_free(x);
	serve_fini(&g);
}

/* Requests whose replies go to nobody. */
Test(intercept_pair, unwanted_replies)
{
	struct ulrpc_call *ref;

	open_all(ULRPC_RUN_INLINE, 1);
	cr_assert_eq(call(NULL, "hold", "", 0, &ref), 0);
	lnet_sim_run(g.sim, SEC);
	ulrpc_cancel(ref);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(called.outcome.cause, ULRPC_CAUSE_CANCELED);
	cr_expect_eq(a.cause, ULRPC_CAUSE_CANCELED);
	cr_expect_eq(f.ended, 0);
	serve_release(&g.served);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(f.ended, 1);
	cr_expect_eq(f.cause, ULRPC_CAUSE_CANCELED);
	cr_expect_geq(f.service_time, 1000000);
	ulrpc_call_put(ref);
	/* the service ends before the handler replies */
	cr_assert_eq(call(NULL, "hold", "", 0, NULL), 0);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(ulrpc_service_stop(g.service, 1000), -ETIMEDOUT);
	g.service = NULL;
	cr_expect_eq(f.ended, 1);
	serve_release(&g.served);
	cr_expect_eq(f.ended, 2);
	cr_expect_eq(d.ended, 2);
	cr_expect_eq(f.cause, ULRPC_CAUSE_SHUTDOWN);
	serve_fini(&g);
}

/* A node that crashes calls nobody, and frees all. */
Test(intercept_pair, crash)
{
	struct ulrpc_context *x;

	open_all(ULRPC_RUN_INLINE, 1);
	cr_assert_eq(ulrpc_context_new(&x), 0);
	cr_assert_eq(call(x, "hold", "", 0, NULL), 0);
	lnet_sim_run(g.sim, SEC);
	logged_is("abcdef");
	lnet_sim_crash(g.sim, CALLER);
	g.rpc[CALLER] = NULL;
	g.client = NULL;
	lnet_sim_crash(g.sim, SERVER);
	g.rpc[SERVER] = NULL;
	g.service = NULL;
	logged_is("");
	ulrpc_context_free(x);
	serve_fini(&g);
}

Test(intercept_pair, configurations_that_are_refused)
{
	struct ulrpc_call_interceptor calls[ULRPC_INTERCEPTORS_MAX + 1] = {
		{ .begin = call_begin }
	};
	struct ulnet_conf_error err;
	const struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf conf = {
		.nids = &nid,
		.nnids = 1,
		.service = "test",
		.ninterceptors = 1,
		.err = &err,
	};
	struct ulrpc_client *client;

	open_all(ULRPC_RUN_INLINE, 1);
	cr_expect_eq(ulrpc_client_open(g.rpc[CALLER], &conf, &client), -EINVAL);
	cr_expect_str_eq(err.what, "interceptors: there are none");
	conf.interceptors = calls;
	conf.ninterceptors = 2;
	cr_expect_eq(ulrpc_client_open(g.rpc[CALLER], &conf, &client), -EINVAL);
	cr_expect_str_eq(err.what,
			 "interceptors: number 2 has neither begin nor end");
	conf.ninterceptors = ULRPC_INTERCEPTORS_MAX + 1;
	cr_expect_eq(ulrpc_client_open(g.rpc[CALLER], &conf, &client), -EINVAL);
	cr_expect_str_eq(err.what, "ninterceptors: 17 is more than 16");
	serve_fini(&g);
}
