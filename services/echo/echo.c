/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Service "echo": sends requests back, after a delay if the client asks for
 * one. The delay is a timer on the loop, or a worker sleeps. It ends early if
 * nobody waits for the reply any more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <ulnet/loop.h>

#include "services/common/pattern.h"
#include "services/echo/echo.pb-c.h"
#include "services/services.h"

/* us: the longest delay */
#define DELAY_MAX    (UINT64_C(366) * 86400 * 1000000)
#define PROGRESS_MAX 999

struct echo {
	struct service base;
	struct ulrpc *rpc;
};

/* A request whose delay is a timer on its CPT. */
struct pending {
	struct ulnet_timer timer; /* the first field: see echo_on_timer() */
	struct echo *echo;
	struct ulrpc_request *request;
	Ulrpc__Echo__EchoRequest *message;
	uint64_t begin; /* ns: when the delay began */
	uint64_t step;	/* the step that the timer ends: 1 to steps_of() */
};

/* ---- bytes ---- */

static void on_raw(void *arg, struct ulrpc_request *request, const void *body,
		   size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

/* ---- messages ---- */

/* Replies with what @m asks for. Takes @m. */
static void reply(struct ulrpc_request *request, Ulrpc__Echo__EchoRequest *m)
{
	Ulrpc__Echo__EchoReply r = ULRPC__ECHO__ECHO_REPLY__INIT;
	void *body;

	r.payload = m->payload;
	body = malloc(ulrpc__echo__echo_reply__get_packed_size(&r) + 1);
	if (body)
		ulrpc_reply(request, body,
			    ulrpc__echo__echo_reply__pack(&r, body));
	else
		ulrpc_fail(request, -ENOMEM);
	free(body);
	ulrpc__echo__echo_request__free_unpacked(m, NULL);
}

/* Decodes a request. Returns NULL if the request has been answered with an
 * error. */
static Ulrpc__Echo__EchoRequest *unpack(struct ulrpc_request *request,
					const void *body, size_t length)
{
	Ulrpc__Echo__EchoRequest *m =
		ulrpc__echo__echo_request__unpack(NULL, length, body);

	if (!m)
		ulrpc_refuse(request);
	return m;
}

/* ---- delays ---- */

/* The delay consists of this many steps, with a report of progress between
 * any two. */
static uint64_t steps_of(const Ulrpc__Echo__EchoRequest *m)
{
	return (uint64_t)m->progress + 1;
}

/* Returns us from the beginning of the delay to the end of step @n, which is 1
 * or more. */
static uint64_t step_end(const Ulrpc__Echo__EchoRequest *m, uint64_t n)
{
	return m->delay * n / steps_of(m);
}

static void echo_report(struct ulrpc_request *request,
			const Ulrpc__Echo__EchoRequest *m, uint64_t n)
{
	ulrpc_progress(request, (uint32_t)(1000 * n / steps_of(m)));
}

/* Answers a request whose delay was cut short by an error. Takes @m. */
static void echo_give_up(struct ulrpc_request *request,
			 Ulrpc__Echo__EchoRequest *m, int status,
			 const char *why)
{
	ulrpc_fail_text(request, status, why);
	ulrpc__echo__echo_request__free_unpacked(m, NULL);
}

/* ---- on the loop ---- */

static void pending_arm(struct pending *p)
{
	uint64_t at = p->begin + step_end(p->message, p->step) * 1000;

	lnet_timer_arm(ulrpc_node(p->echo->rpc), ulrpc_request_cpt(p->request),
		       &p->timer, at);
}

static void echo_on_timer(struct ulnet_timer *timer)
{
	/* the timer is its first field */
	struct pending *p = (struct pending *)timer;

	if (p->step == steps_of(p->message)) {
		reply(p->request, p->message);
		free(p);
		return;
	}
	echo_report(p->request, p->message, p->step++);
	pending_arm(p);
}

static void echo_on_cancel(void *arg, struct ulrpc_request *request)
{
	struct pending *p = arg;

	lnet_timer_cancel(ulrpc_node(p->echo->rpc), ulrpc_request_cpt(request),
			  &p->timer);
	echo_give_up(request, p->message, -ECANCELED, "nobody waits any more");
	free(p);
}

/* Begins a delay by a timer. Takes @m. */
static void wait_on_loop(struct echo *e, struct ulrpc_request *request,
			 Ulrpc__Echo__EchoRequest *m)
{
	unsigned int cpt = ulrpc_request_cpt(request);
	struct pending *p = malloc(sizeof(*p));

	if (!p) {
		echo_give_up(request, m, -ENOMEM, "no memory to wait with");
		return;
	}
	*p = (struct pending){ .echo = e,
			       .request = request,
			       .message = m,
			       .begin = lnet_now(ulrpc_node(e->rpc), cpt),
			       .step = 1 };
	lnet_timer_init(&p->timer, echo_on_timer);
	pending_arm(p);
	if (ulrpc_request_on_cancel(request, echo_on_cancel, p))
		echo_on_cancel(p, request);
}

/* As unpack(), but also answers with an error if the message asks for too much.
 */
static Ulrpc__Echo__EchoRequest *unpack_checked(struct ulrpc_request *request,
						const void *body, size_t length)
{
	Ulrpc__Echo__EchoRequest *m = unpack(request, body, length);

	if (m && (m->delay > DELAY_MAX || m->progress > PROGRESS_MAX)) {
		echo_give_up(
			request, m, -EINVAL,
			"a delay of 366 days, with 999 reports, is the most");
		return NULL;
	}
	return m;
}

static void on_echo(void *arg, struct ulrpc_request *request, const void *body,
		    size_t length)
{
	Ulrpc__Echo__EchoRequest *m = unpack_checked(request, body, length);

	if (m && m->delay)
		wait_on_loop(arg, request, m);
	else if (m)
		reply(request, m);
}

/* ---- by a worker ---- */

/* Sleeps for the delay of @m, and reports progress. Returns 0, or an error of
 * ulrpc_request_sleep(). */
static int sleep_steps(struct ulrpc_request *request,
		       const Ulrpc__Echo__EchoRequest *m)
{
	int rc = 0;

	for (uint64_t n = 1; !rc && n <= steps_of(m); n++) {
		rc = ulrpc_request_sleep(request,
					 step_end(m, n) - step_end(m, n - 1));
		if (!rc && n < steps_of(m))
			echo_report(request, m, n);
	}
	return rc;
}

static void on_echo_worker(void *arg, struct ulrpc_request *request,
			   const void *body, size_t length)
{
	Ulrpc__Echo__EchoRequest *m = unpack_checked(request, body, length);
	int rc;

	(void)arg;
	if (!m)
		return;
	rc = m->delay ? sleep_steps(request, m) : 0;
	if (rc)
		echo_give_up(request, m, rc, "nobody waits any more");
	else
		reply(request, m);
}

/* ---- beginning and end ---- */

static int echo_start(struct ulrpc *rpc, const struct service_conf *conf,
		      struct service **service_p)
{
	struct echo *e = calloc(1, sizeof(*e));
	const struct ulrpc_method_conf methods[] = {
		{ .name = "Raw",
		  .handler = on_raw,
		  .arg = e,
		  .run = ULRPC_RUN_INLINE,
		  .semantics = ULRPC_IDEMPOTENT },
		{ .name = "RawWorker",
		  .handler = on_raw,
		  .arg = e,
		  .semantics = ULRPC_IDEMPOTENT },
		{ .name = "Echo",
		  .handler = on_echo,
		  .arg = e,
		  .run = ULRPC_RUN_INLINE,
		  .semantics = ULRPC_IDEMPOTENT },
		{ .name = "EchoWorker",
		  .handler = on_echo_worker,
		  .arg = e,
		  .semantics = ULRPC_IDEMPOTENT },
	};
	int rc;

	if (!e)
		return -ENOMEM;
	e->rpc = rpc;
	rc = service_run(&e->base, &echo_service, rpc, conf, methods,
			 sizeof(methods) / sizeof(methods[0]), ULRPC_BODY_MAX);
	if (rc)
		free(e);
	else
		*service_p = &e->base;
	return rc;
}

static int echo_stop(struct service *service, uint64_t timeout)
{
	/* the service is its first member */
	struct echo *e = (struct echo *)service;
	int rc = ulrpc_service_stop(e->base.running, timeout);

	free(e);
	return rc;
}

/* ---- calling it ---- */

static bool echo_check_payload(const struct probe_call *call,
			       const void *payload, size_t length, char *what,
			       size_t size)
{
	size_t good;

	if (length != call->size) {
		snprintf(what, size, "%zu bytes came back, not %ju", length,
			 (uintmax_t)call->size);
		return false;
	}
	good = pattern_check(payload, length, call->seed, call->offset);
	if (good == length)
		return true;
	snprintf(what, size, "byte %zu of %zu is not what was sent", good,
		 length);
	return false;
}

/* ---- bytes ---- */

static int raw_prepare(const struct probe_call *call, void *body)
{
	pattern_fill(body, call->size, call->seed, call->offset);
	return (int)call->size;
}

/* ---- messages ---- */

static int message_prepare(const struct probe_call *call, void *body)
{
	Ulrpc__Echo__EchoRequest m = ULRPC__ECHO__ECHO_REQUEST__INIT;
	size_t length;

	m.delay = call->delay;
	m.progress = call->progress;
	m.payload.len = call->size;
	m.payload.data = malloc(call->size + 1);
	if (!m.payload.data)
		return -ENOMEM;
	pattern_fill(m.payload.data, call->size, call->seed, call->offset);
	length = ulrpc__echo__echo_request__pack(&m, body);
	free(m.payload.data);
	return (int)length;
}

static bool message_check(const struct probe_call *call, const void *reply,
			  size_t length, char *what, size_t size)
{
	Ulrpc__Echo__EchoReply *m =
		ulrpc__echo__echo_reply__unpack(NULL, length, reply);
	bool good;

	if (!m) {
		snprintf(what, size, "the reply cannot be read");
		return false;
	}
	good = echo_check_payload(call, m->payload.data, m->payload.len, what,
				  size);
	ulrpc__echo__echo_reply__free_unpacked(m, NULL);
	return good;
}

static const struct probe probes[] = {
	{ .method = "Raw",
	  .text = "bytes, on the loop",
	  .verifies = true,
	  .prepare = raw_prepare,
	  .check = echo_check_payload },
	{ .method = "RawWorker",
	  .text = "bytes, by a worker",
	  .worker = true,
	  .verifies = true,
	  .prepare = raw_prepare,
	  .check = echo_check_payload },
	{ .method = "Echo",
	  .text = "a message, on the loop; waits by a timer",
	  .delays = true,
	  .verifies = true,
	  .prepare = message_prepare,
	  .check = message_check },
	{ .method = "EchoWorker",
	  .text = "a message, by a worker, who sleeps",
	  .delays = true,
	  .worker = true,
	  .verifies = true,
	  .prepare = message_prepare,
	  .check = message_check },
};

const struct service_type echo_service = {
	.name = "echo",
	.text = "what is sent comes back",
	.start = echo_start,
	.stop = echo_stop,
	.descriptor = &ulrpc__echo__echo__descriptor,
	.probes = probes,
	.nprobes = sizeof(probes) / sizeof(probes[0]),
};
