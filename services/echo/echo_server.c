/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs echo. Requests that wait on a loop are in a list of their CPT, so that
 * they can be answered when the service ends; workers that sleep are woken.
 */
#include "echo.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <ulnet/loop.h>

#include "services/echo/echo.pb-c.h"

/* One that waits. Of its CPT. */
struct pending {
	struct ulnet_timer timer;
	struct ulrpc_request *request;
	Ulrpc__Echo__EchoRequest *message;
	struct pending *next, **link; /* who points to it */
};

struct echo {
	struct service base;
	struct ulrpc *rpc;
	struct pending *pending[LNET_CPTS_MAX];
	atomic_bool ending;
	pthread_mutex_t lock; /* with which sleepers wait for the end */
	pthread_cond_t end;
	pthread_condattr_t monotonic;
};

static uint64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- bytes ---- */

static void on_raw(void *arg, struct ulrpc_request *request, const void *body,
		   size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

/* ---- messages ---- */

/* Takes @m. */
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

/* NULL, and the request is answered. */
static Ulrpc__Echo__EchoRequest *unpack(struct ulrpc_request *request,
					const void *body, size_t length)
{
	Ulrpc__Echo__EchoRequest *m =
		ulrpc__echo__echo_request__unpack(NULL, length, body);

	if (!m)
		ulrpc_refuse(request);
	return m;
}

static void pending_end(struct pending *p, int status)
{
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	if (status) {
		ulrpc_fail_text(p->request, status, "echo is being stopped");
		ulrpc__echo__echo_request__free_unpacked(p->message, NULL);
	} else {
		reply(p->request, p->message);
	}
	free(p);
}

static void on_timer(struct ulnet_timer *timer)
{
	/* The first field. */
	pending_end((struct pending *)timer, 0);
}

/* Takes @m. */
static void wait_on_loop(struct echo *e, struct ulrpc_request *request,
			 Ulrpc__Echo__EchoRequest *m)
{
	struct lnet *node = ulrpc_node(e->rpc);
	unsigned int cpt = ulrpc_request_cpt(request);
	uint64_t now = lnet_now(node, cpt), at;
	struct pending *p = malloc(sizeof(*p));

	if (!p || m->delay > (UINT64_MAX - now) / 1000) {
		ulrpc_fail(request, p ? -EINVAL : -ENOMEM);
		ulrpc__echo__echo_request__free_unpacked(m, NULL);
		free(p);
		return;
	}
	at = now + m->delay * 1000;
	*p = (struct pending){ .request = request,
			       .message = m,
			       .next = e->pending[cpt],
			       .link = &e->pending[cpt] };
	if (p->next)
		p->next->link = &p->next;
	e->pending[cpt] = p;
	lnet_timer_init(&p->timer, on_timer);
	lnet_timer_arm(node, cpt, &p->timer, at);
}

static void on_echo(void *arg, struct ulrpc_request *request, const void *body,
		    size_t length)
{
	struct echo *e = arg;
	Ulrpc__Echo__EchoRequest *m = unpack(request, body, length);

	if (!m)
		return;
	if (!m->delay) {
		reply(request, m);
	} else if (atomic_load(&e->ending)) {
		ulrpc_fail_text(request, -ESHUTDOWN, "echo is being stopped");
		ulrpc__echo__echo_request__free_unpacked(m, NULL);
	} else {
		wait_on_loop(e, request, m);
	}
}

/* Until @us are over, or the service ends: then false. */
static bool sleep_us(struct echo *e, uint64_t us)
{
	uint64_t until = clock_us();
	struct timespec t;
	int rc = 0;

	until = us < UINT64_MAX / 2 - until ? until + us : UINT64_MAX / 2;
	t.tv_sec = (time_t)(until / 1000000);
	t.tv_nsec = (long)(until % 1000000 * 1000);
	pthread_mutex_lock(&e->lock);
	while (!rc && !atomic_load(&e->ending))
		rc = pthread_cond_timedwait(&e->end, &e->lock, &t);
	pthread_mutex_unlock(&e->lock);
	return rc == ETIMEDOUT;
}

static void on_echo_worker(void *arg, struct ulrpc_request *request,
			   const void *body, size_t length)
{
	struct echo *e = arg;
	Ulrpc__Echo__EchoRequest *m = unpack(request, body, length);

	if (!m)
		return;
	if (!m->delay || sleep_us(e, m->delay)) {
		reply(request, m);
		return;
	}
	ulrpc_fail_text(request, -ESHUTDOWN, "echo is being stopped");
	ulrpc__echo__echo_request__free_unpacked(m, NULL);
}

/* ---- beginning and end ---- */

static void echo_free(struct echo *e)
{
	pthread_cond_destroy(&e->end);
	pthread_condattr_destroy(&e->monotonic);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

int echo_start(struct ulrpc *rpc, const struct service_conf *conf,
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
	struct ulrpc_service_conf c;
	int rc;

	if (!e)
		return -ENOMEM;
	e->base.type = &echo_service;
	e->rpc = rpc;
	pthread_mutex_init(&e->lock, NULL);
	pthread_condattr_init(&e->monotonic);
	pthread_condattr_setclock(&e->monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&e->end, &e->monotonic);
	service_conf_fill(conf, &echo_service, &c);
	c.methods = methods;
	c.nmethods = sizeof(methods) / sizeof(methods[0]);
	c.request_max = ULRPC_BODY_MAX;
	rc = ulrpc_service_start(rpc, &c, &e->base.running);
	if (rc) {
		echo_free(e);
		return rc;
	}
	*service_p = &e->base;
	return 0;
}

struct flush {
	struct echo *echo;
	unsigned int cpt;
};

static int flush(void *arg)
{
	const struct flush *f = arg;
	struct echo *e = f->echo;
	struct pending *p;

	while ((p = e->pending[f->cpt])) {
		lnet_timer_cancel(ulrpc_node(e->rpc), f->cpt, &p->timer);
		pending_end(p, -ESHUTDOWN);
	}
	return 0;
}

int echo_stop(struct service *service, uint64_t timeout)
{
	struct echo *e = (struct echo *)service; /* its head */
	struct lnet *node = ulrpc_node(e->rpc);
	int rc;

	pthread_mutex_lock(&e->lock);
	atomic_store(&e->ending, true);
	pthread_cond_broadcast(&e->end);
	pthread_mutex_unlock(&e->lock);
	for (unsigned int i = 0; i < lnet_cpts(node); i++) {
		struct flush f = { .echo = e, .cpt = i };

		lnet_call(node, i, flush, &f);
	}
	rc = ulrpc_service_stop(e->base.running, timeout);
	echo_free(e);
	return rc;
}
