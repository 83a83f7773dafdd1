/* SPDX-License-Identifier: BSD-3-Clause */
/* The services of the RPC scenario, and what they know of each execution. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/loop.h>

#include "tests/sim/rpc_run.h"

/* ---- jobs ---- */

struct job *job_new(struct member *m, struct ulrpc_request *request,
		    const struct test_body *body)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		abort();
	j->m = m;
	j->request = request;
	j->body = *body;
	j->start = m->starts[body->service];
	j->life = m->life;
	j->next = m->jobs;
	j->prev = &m->jobs;
	if (j->next)
		j->next->prev = &j->next;
	m->jobs = j;
	return j;
}

static void job_free(struct job *j)
{
	*j->prev = j->next;
	if (j->next)
		j->next->prev = j->prev;
	free(j);
}

void job_check(struct job *j)
{
	if (!j->delayed && !j->blocked && !j->moving &&
	    (!j->request || j->dead))
		job_free(j);
}

static void answer(struct run *r, struct ulrpc_request *request,
		   const struct test_body *b, int status)
{
	char *reply;

	if (status) {
		ulrpc_fail(request, status);
		return;
	}
	/* a copy: nobody may read it later */
	reply = lnet_sim_buf(r->sim, b->reply_length + 1);
	pattern_fill(reply, b->reply_length, reply_pattern(b->id));
	ulrpc_reply(request, reply, b->reply_length);
	lnet_sim_buf_retire(r->sim, reply);
}

void job_answer(struct job *j, int status)
{
	struct ulrpc_request *request = j->request;
	struct run *r = j->m->run;

	r->calls[j->body.id - 1]->answered = lnet_sim_now(r->sim);
	if (!j->dead)
		audit_answer(j);
	if (j->store)
		status = store_end(j, status);
	j->request = NULL;
	answer(r, request, &j->body, status ? status : j->body.status);
}

static void on_delay(void *arg)
{
	struct job *j = arg;

	/* A node that has crashed does not stand still any more. */
	if (is_paused(j->m) && !j->m->run->over) {
		lnet_sim_at(j->m->run->sim,
			    j->m->paused - lnet_sim_now(j->m->run->sim),
			    on_delay, j);
		return;
	}
	j->delayed = false;
	if (!j->dead && j->request)
		job_answer(j, 0);
	job_check(j);
}

static void job_delay(struct job *j)
{
	j->delayed = true;
	if (j->body.delay > 100000)
		tally_count(j->m->run, HANDLER_IS_SLOW);
	lnet_sim_at(j->m->run->sim, j->body.delay * US, on_delay, j);
}

/* ---- bulk ---- */

/* A bulk has been moved, or not; from now on nobody may touch the memory on
 * this side. */
void part_end(struct job *j, unsigned int i, int status, uint64_t moved)
{
	struct lnet_sim *sim = j->m->run->sim;

	if (!status && moved != j->parts[i].size)
		lnet_sim_fail(sim, "call %lu: %lu bytes moved of %u",
			      (unsigned long)j->body.id, (unsigned long)moved,
			      j->parts[i].size);
	if (!status && j->parts[i].get &&
	    !pattern_holds(j->parts[i].buf, j->parts[i].size,
			   bulk_pattern(j->body.id, i)))
		lnet_sim_fail(sim,
			      "call %lu: bulk %u was read with wrong contents",
			      (unsigned long)j->body.id, i);
	lnet_sim_buf_retire(sim, j->parts[i].buf);
	j->parts[i].buf = NULL;
	if (status)
		j->status = -EREMOTEIO;
}

static void on_moved(void *arg, int status, uint64_t moved)
{
	struct job *j = *(struct job **)arg;
	unsigned int i = 0;

	while ((void *)&j->parts[i] != arg)
		i++;
	part_end(j, i, status, moved);
	if (--j->moving)
		return;
	if (j->request)
		job_answer(j, j->status);
	job_check(j);
}

bool part_begin(struct job *j, unsigned int i, struct iovec iov[2])
{
	struct ulrpc_bulk_info info;
	uint32_t half;
	int rc = ulrpc_request_bulk(j->request, i, &info);

	if (rc) {
		/* its service may have abandoned it */
		if (!j->blocked || job_deadline(j))
			lnet_sim_fail(j->m->run->sim,
				      "call %lu has no bulk %u: %d",
				      (unsigned long)j->body.id, i, rc);
		return false;
	}
	j->parts[i].job = j;
	j->parts[i].size = (uint32_t)info.length;
	j->parts[i].get = info.access == ULRPC_BULK_SOURCE;
	j->parts[i].buf = lnet_sim_buf(j->m->run->sim, info.length + 1);
	half = (uint32_t)info.length / 2;
	iov[0] = (struct iovec){ j->parts[i].buf, half };
	iov[1] = (struct iovec){ j->parts[i].buf + half, info.length - half };
	if (!j->parts[i].get)
		pattern_fill(j->parts[i].buf, (uint32_t)info.length,
			     bulk_pattern(j->body.id, i));
	return true;
}

static void part_move(struct job *j, unsigned int i)
{
	struct iovec iov[2];
	int rc;

	if (!part_begin(j, i, iov))
		return;
	j->moving++;
	if (j->parts[i].get)
		rc = ulrpc_bulk_get(j->request, i, 0, iov, 2, on_moved,
				    &j->parts[i]);
	else
		rc = ulrpc_bulk_put(j->request, i, 0, iov, 2, on_moved,
				    &j->parts[i]);
	if (!rc)
		return;
	lnet_sim_fail(j->m->run->sim, "call %lu: bulk %u cannot be moved: %d",
		      (unsigned long)j->body.id, i, rc);
	j->moving--;
	lnet_sim_buf_retire(j->m->run->sim, j->parts[i].buf);
	j->parts[i].buf = NULL;
}

static void job_move(struct job *j)
{
	struct ulrpc_request_info info;

	ulrpc_request_info(j->request, &info);
	/* Counts as one more until all moves have begun. */
	j->moving++;
	for (unsigned int i = 0; i < info.nbulks && i < BULKS; i++)
		part_move(j, i);
	j->moving--;
	if (j->body.early || !j->moving)
		job_answer(j, j->status);
	job_check(j);
}

/* ---- requests ---- */

static struct test_call *call_of(struct run *r, const struct test_method *tm,
				 const struct test_body *b)
{
	struct test_call *c =
		b->id && b->id <= r->ncalls ? r->calls[b->id - 1] : NULL;

	if (!c || c->target != tm->member->index || c->service != tm->service ||
	    c->method != tm->method)
		return NULL;
	return c;
}

/* Checks that the call may run, when its handler begins. */
static void check_run(const struct test_call *c, const struct member *m)
{
	if (c->ended && c->outcome.execution == ULRPC_NOT_EXECUTED)
		lnet_sim_fail(c->run->sim,
			      "node %u: call %lu is executed, and its caller "
			      "was told that it never would be: %s",
			      m->index, (unsigned long)c->id,
			      ulrpc_cause_name(c->outcome.cause));
	if (c->given_up)
		lnet_sim_fail(c->run->sim,
			      "node %u: call %lu is run, and was given up "
			      "before",
			      m->index, (unsigned long)c->id);
}

void execute(struct test_call *c, const struct member *m)
{
	if (c->executed && !call_is_idempotent(c))
		lnet_sim_fail(c->run->sim,
			      "node %u: call %lu is executed again", m->index,
			      (unsigned long)c->id);
	check_run(c, m);
	c->executed++;
}

static bool is_stored(const struct test_call *c, const struct member *m)
{
	return m->stores[c->service].number &&
	       method_semantics(c->method) == ULRPC_EXACTLY_ONCE;
}

static void serve(struct test_call *c, struct job *j)
{
	if (is_stored(c, j->m))
		store_begin(j);
	else
		execute(c, j->m);
	if (j->body.blocks && !lnet_in_turn()) {
		work_block(j);
	} else if (method_has_bulk(c->method)) {
		job_move(j);
	} else if (c->method != METHOD_INLINE && j->body.delay) {
		job_delay(j);
	} else {
		job_answer(j, 0);
		job_check(j);
	}
}

static bool is_whole(const struct test_body *b, const char *body, size_t length)
{
	return b->magic == TEST_MAGIC && b->length == length &&
	       pattern_holds(body + sizeof(*b), (uint32_t)(length - sizeof(*b)),
			     request_pattern(b->id));
}

static void on_request(void *arg, struct ulrpc_request *request,
		       const void *body, size_t length)
{
	struct test_method *tm = arg;
	struct member *m = tm->member;
	struct test_body b = { 0 };
	struct test_call *c;

	if (length >= sizeof(b))
		memcpy(&b, body, sizeof(b));
	c = call_of(m->run, tm, &b);
	if (!c || !is_whole(&b, body, length)) {
		lnet_sim_fail(m->run->sim,
			      "node %u: a request with wrong contents",
			      m->index);
		ulrpc_refuse(request);
		return;
	}
	check_run(c, m);
	/* A refused request was not executed, and may come again. */
	if (b.refuse) {
		ulrpc_refuse(request);
		return;
	}
	annex_serve(m, request, &b);
	serve(c, job_new(m, request, &b));
}

/* ---- services ---- */

const char *const method_names[METHODS] = { "inline", "later", "work", "high",
					    "bulk",   "again", "store" };

static enum ulrpc_run method_run(struct run *r, enum method m)
{
	switch (m) {
	case METHOD_WORK:
	case METHOD_HIGH:
	case METHOD_AGAIN:
		return ULRPC_RUN_WORKER;
	case METHOD_BULK:
		return chance(r, 30) ? ULRPC_RUN_WORKER : ULRPC_RUN_INLINE;
	default:
		return ULRPC_RUN_INLINE;
	}
}

static void methods_fill(struct member *m, unsigned int service,
			 struct ulrpc_method_conf *methods)
{
	for (unsigned int i = 0; i < METHODS; i++) {
		struct test_method *tm = &m->methods[service][i];

		*tm = (struct test_method){ m, service, (enum method)i };
		methods[i] = (struct ulrpc_method_conf){
			.name = method_names[i],
			.handler = on_request,
			.arg = tm,
			.semantics = method_semantics(tm->method),
			.run = method_run(m->run, tm->method),
			.priority = i == METHOD_HIGH ? ULRPC_PRIORITY_HIGH
						     : ULRPC_PRIORITY_DEFAULT,
		};
	}
}

static void conf_fill(struct run *r, struct ulrpc_service_conf *conf)
{
	conf->workers_min = 1 + (unsigned int)rnd(r, 4);
	conf->buffers = 2 + (unsigned int)rnd(r, 3);
	conf->request_max = 32768;
	if (r->n >= NODES_MANY)
		conf->buffer_size = 131072;
	conf->segments = 1 + (unsigned int)rnd(r, 8);
	conf->retry_after = 1 + rnd(r, 20000);
	conf->high_ratio = 1 + (unsigned int)rnd(r, 3);
	/* longer bodies are lent */
	conf->request_limit = 65536;
	if (chance(r, 30))
		conf->window = 1 + (unsigned int)rnd(r, 8);
	if (r->tiny || chance(r, 20)) {
		conf->queue_max = 1 + (unsigned int)rnd(r, 6);
		conf->queue_bytes_max = 65536;
	}
	if (chance(r, 30))
		conf->policy = "fifo";
	if (chance(r, 50))
		conf->stuck = 1 + rnd(r, 1000000);
	if (chance(r, 20))
		conf->stalled = 1 + rnd(r, 1000000);
}

static void on_nobodys_request(void *arg, struct ulrpc_request *request,
			       const void *body, size_t length)
{
	struct member *m = arg;

	(void)body;
	(void)length;
	lnet_sim_fail(m->run->sim, "node %u: a request for nobody", m->index);
	ulrpc_reply(request, "", 0);
}

void server_crowd(struct member *m)
{
	struct ulrpc_method_conf method = { .name = method_names[0],
					    .handler = on_nobodys_request,
					    .arg = m,
					    .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;
	char name[8];

	ulrpc_service_conf_init(&conf);
	conf.name = name;
	conf.methods = &method;
	conf.nmethods = 1;
	conf.request_max = 1;
	conf.buffer_size = 65536;
	conf.buffers = 2;
	for (unsigned int i = ULRPC_PORTAL_FIRST; i < ULRPC_PORTAL_LAST; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		/* RPC may be shutting down */
		(void)ulrpc_service_start(m->rpc, &conf, NULL);
	}
}

void server_start(struct member *m, unsigned int service)
{
	struct ulrpc_method_conf methods[METHODS];
	struct store *store = &m->stores[service];
	struct ulrpc_durable durable = { .lookup = store_lookup, .arg = store };
	struct ulrpc_service_conf conf;
	struct run *r = m->run;
	char name[8];
	int rc;

	ulrpc_service_conf_init(&conf);
	snprintf(name, sizeof(name), "s%u", service);
	methods_fill(m, service, methods);
	conf.name = name;
	conf.methods = methods;
	conf.nmethods = METHODS;
	conf_fill(r, &conf);
	/* a fixed portal can be used again at once */
	if (service == 1) {
		conf.portal = PORTAL_CHECKED;
		conf.checksum = true;
	}
	if (store->number) {
		if (chance(r, 3)) {
			store_make(m, store);
			tally_count(r, STORE_IS_LOST);
		}
		memcpy(durable.incarnation, store->incarnation, 16);
		conf.durable = &durable;
	}
	conf.flavour = run_flavour(r, service);
	m->starts[service]++;
	rc = ulrpc_service_start(m->rpc, &conf, &m->services[service]);
	if (!rc)
		return;
	m->services[service] = NULL;
	/* RPC may be shutting down */
	if (rc != -ESHUTDOWN)
		lnet_sim_fail(r->sim, "node %u: service %u does not start: %d",
			      m->index, service, rc);
}

void server_stop(struct member *m, unsigned int service)
{
	struct ulrpc_service *svc = m->services[service];
	struct run *r = m->run;
	int rc;

	m->services[service] = NULL;
	wait_begin(m, "the end of a service");
	rc = ulrpc_service_stop(svc, chance(r, 30) ? 0 : rnd(r, 100000));
	wait_end(m);
	server_stopped(m, service);
	tally_count(r, SERVICE_STOPS);
	if (rc == -ETIMEDOUT)
		tally_count(r, SERVICE_LEAVES);
	if (rc && rc != -ETIMEDOUT)
		lnet_sim_fail(r->sim, "node %u: service %u does not stop: %d",
			      m->index, service, rc);
}

static void parts_retire(struct job *j)
{
	for (unsigned int i = 0; i < BULKS; i++) {
		if (j->parts[i].buf)
			lnet_sim_buf_retire(j->m->run->sim, j->parts[i].buf);
		j->parts[i].buf = NULL;
	}
}

void server_stopped(struct member *m, unsigned int service)
{
	for (struct job *j = m->jobs; j; j = j->next)
		if (j->body.service == service && !j->dead)
			j->lost = true;
}

void server_crashed(struct member *m)
{
	struct job *j, *next;

	if (m->jobs)
		tally_count(m->run, SERVER_CRASHES);
	for (j = m->jobs; j; j = next) {
		next = j->next;
		if (j->lost)
			continue;
		if (j->blocked)
			lnet_sim_fail(m->run->sim,
				      "node %u: call %lu blocks a worker, and "
				      "the node has crashed",
				      m->index, (unsigned long)j->body.id);
		parts_retire(j);
		j->moving = 0;
		j->dead = true;
		job_check(j);
	}
	memset(m->services, 0, sizeof(m->services));
}

unsigned int server_jobs(const struct member *m)
{
	unsigned int n = 0;

	for (struct job *j = m->jobs; j; j = j->next)
		n++;
	return n;
}

/* To be called after the simulation: requests have been freed with it. */
void server_free(struct member *m)
{
	while (m->jobs) {
		struct job *j = m->jobs;

		/* The analyzer does not see that job_free() takes the job off
		 * the list. */
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		if (j->request && !j->dead)
			ulrpc_fail(j->request, -EIO);
		job_free(j);
	}
	for (unsigned int i = 0; i < SERVICES; i++)
		store_free(&m->stores[i]);
}
