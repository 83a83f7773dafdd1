/* SPDX-License-Identifier: BSD-3-Clause */
/* The callers of the RPC scenario, and their checks of each outcome. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/loop.h>

#include "tests/sim/rpc_run.h"

/* ---- bulk ---- */

static void bulk_retire(struct test_bulk *b)
{
	if (b->buf)
		lnet_sim_buf_retire(b->call->run->sim, b->buf);
	b->buf = NULL;
}

/* From now on nobody may touch the memory of the bulk. */
static void on_released(void *arg)
{
	bulk_retire(arg);
}

static void bulk_close(struct test_bulk *b)
{
	struct ulrpc_bulk *bulk = b->bulk;

	b->bulk = NULL;
	if (bulk)
		ulrpc_bulk_close(bulk, on_released, b);
}

static void bulk_new(struct test_call *c, unsigned int i)
{
	static const uint32_t sizes[] = { 0, 1, 1000, 4096, 10000, 70000 };
	struct run *r = c->run;
	struct test_bulk *b = &c->bulks[i];
	struct ulrpc_bulk_conf conf = { 0 };
	struct iovec iov[2];
	int rc;

	b->call = c;
	b->size = sizes[rnd(r, sizeof(sizes) / sizeof(sizes[0]))];
	b->access = chance(r, 50) ? ULRPC_BULK_SOURCE : ULRPC_BULK_SINK;
	b->buf = lnet_sim_buf(r->sim, b->size + 1);
	memset(b->buf, 0, b->size + 1);
	if (b->access == ULRPC_BULK_SOURCE)
		pattern_fill(b->buf, b->size, bulk_pattern(c->id, i));
	iov[0] = (struct iovec){ b->buf, b->size / 3 };
	iov[1] = (struct iovec){ b->buf + b->size / 3, b->size - b->size / 3 };
	conf.iov = iov;
	conf.niov = 2;
	conf.access = b->access;
	conf.flags = chance(r, 50) ? ULRPC_BULK_CHECKSUM : 0;
	conf.segment = chance(r, 60) ? 4096 : 0;
	rc = ulrpc_bulk_new(c->from->rpc, &conf, &b->bulk);
	if (!rc)
		return;
	lnet_sim_fail(r->sim, "call %lu: bulk of %u bytes cannot be made: %d",
		      (unsigned long)c->id, b->size, rc);
	b->bulk = NULL;
	bulk_retire(b);
}

/* Checks and closes the bulk of a call that has ended. */
static void bulks_end(struct test_call *c)
{
	struct lnet_sim *sim = c->run->sim;

	for (unsigned int i = 0; i < c->nbulks; i++) {
		struct test_bulk *b = &c->bulks[i];

		if (c->outcome.cause == ULRPC_CAUSE_OK &&
		    !pattern_holds(b->buf, b->size, bulk_pattern(c->id, i)))
			lnet_sim_fail(sim,
				      "call %lu: bulk %u has wrong contents",
				      (unsigned long)c->id, i);
		/* The outcome says whether others may still write to the bulk.
		 */
		if (c->outcome.bulk_free)
			bulk_retire(b);
		bulk_close(b);
		if (c->outcome.bulk_free && b->buf)
			lnet_sim_fail(sim, "call %lu: bulk %u is not free",
				      (unsigned long)c->id, i);
	}
}

/* ---- the end of a call ---- */

static void call_put(struct test_call *c)
{
	ulrpc_call_put(c->call);
	c->call = NULL;
}

static void context_end(struct test_call *c)
{
	ulrpc_context_free(c->context);
	c->context = NULL;
}

static void finish(struct test_call *c, const struct ulrpc_outcome *o,
		   const void *reply, size_t length)
{
	c->outcome = *o;
	c->ended = true;
	outcome_check(c, reply, length);
	context_end(c);
	tally_end(c->run, o);
	bulks_end(c);
}

static void on_done(void *arg, const struct ulrpc_outcome *o, const void *reply,
		    size_t length)
{
	struct test_call *c = arg;
	struct member *m = c->from;
	struct lnet *node = lnet_sim_node(c->run->sim, m->index);

	if (c->ended || c->dead || c->failed) {
		outcome_wrong(c,
			      c->ended ? "ended twice" : "ended, but must not");
		return;
	}
	if (c->starting)
		outcome_wrong(c, "ended inside of the call");
	if (!lnet_in_turn() || !lnet_cpt_owned(node, c->cpt))
		outcome_wrong(c, "ended on the wrong CPT");
	finish(c, o, reply, length);
	if (!c->run->over && chance(c->run, 15))
		caller_call(m);
}

/* ---- beginning ---- */

static struct test_call *call_new(struct member *m,
				  const struct test_client *tc)
{
	struct run *r = m->run;
	struct test_call *c;

	/* When all is over, nodes close one after the other. */
	if (r->over || r->ncalls == CALLS_MAX)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	r->calls[r->ncalls++] = c;
	c->run = r;
	c->from = m;
	c->life = m->life;
	c->id = r->ncalls;
	c->began = lnet_sim_now(r->sim);
	c->target = tc->target;
	c->service = tc->service;
	if (audit_knows(&r->members[c->target], c->service, tc->client))
		c->lapses = audit_lapses(&r->members[c->target], c->service);
	c->restarts = audit_restarts(&r->members[c->target], c->service);
	c->store = audit_store(&r->members[c->target], c->service, tc->client);
	c->cpt = ulrpc_client_cpt(tc->client);
	return c;
}

static uint64_t some_deadline(struct run *r)
{
	unsigned int n = (unsigned int)rnd(r, 100);

	if (n < 5)
		return 1 + rnd(r, 100);
	if (n < 30)
		return 1000 + rnd(r, 20000);
	if (n < 85)
		return 20000 + rnd(r, 2000000);
	if (n < 95)
		return 2000000 + rnd(r, 20000000);
	return ULRPC_NEVER;
}

static uint32_t some_length(struct run *r)
{
	static const uint32_t lengths[] = { 0, 8, 64, 300, 1100, 5000, 20000 };
	unsigned int n = chance(r, 70) ? 4 : 7;

	return lengths[rnd(r, n)];
}

static enum ulrpc_semantics some_semantics(struct run *r)
{
	unsigned int n = (unsigned int)rnd(r, 100);

	if (n < 40)
		return ULRPC_IDEMPOTENT;
	return n < 70 ? ULRPC_AT_MOST_ONCE : ULRPC_EXACTLY_ONCE;
}

static uint32_t some_delay(struct run *r)
{
	uint32_t us =
		(uint32_t)rnd(r, chance(r, r->late ? 20 : 70) ? 5000 : 1000000);

	/* Handlers get slow only after a while, when the clients have learnt
	 * how long calls take. */
	if ((r->weather == WEATHER_SLOW || r->weather == WEATHER_FAIR) &&
	    r->left < CALLS / 2 && !r->healed)
		us *= 10;
	return us;
}

/* Draws what the server is to do, and what the caller demands. */
static void call_plan(struct test_call *c, struct test_body *b,
		      struct ulrpc_call_conf *conf)
{
	struct run *r = c->run;

	c->method = (enum method)rnd(r, METHODS);
	c->semantics = some_semantics(r);
	/* Methods that store something are mostly called to be executed exactly
	 * once. */
	if (method_semantics(c->method) == ULRPC_EXACTLY_ONCE && chance(r, 60))
		c->semantics = ULRPC_EXACTLY_ONCE;
	c->reply_length = some_length(r);
	c->reply_max = c->reply_length + (uint32_t)rnd(r, 100) + 1;
	if (chance(r, 10) && c->reply_length > 1)
		c->reply_max = c->reply_length / 2;
	if (c->id % 211 == 0 && !r->conf.reply_bytes_max &&
	    method_semantics(c->method) == ULRPC_IDEMPOTENT)
		c->reply_length = IN_PIECES;
	/* Some take less than comes. */
	c->reply_limit = c->id % 17 == 0  ? c->reply_length / 2 + 1
			 : c->id % 5 == 0 ? 0
					  : ULRPC_REPLY_MAX;
	*b = (struct test_body){
		.magic = TEST_MAGIC,
		.id = c->id,
		.reply_length = c->reply_length,
		.delay = some_delay(r),
		.status = chance(r, 5) ? -1 - (int)rnd(r, 100) : 0,
		.service = (uint8_t)c->service,
		.method = (uint8_t)c->method,
		.target = (uint8_t)c->target,
		.refuse = chance(r, 2),
		.early = chance(r, 15),
		.blocks = chance(r, 70),
		.asks = chance(r, 5),
		.stores_first = chance(r, 50),
		.disk_full = chance(r, 2),
		.length = (uint32_t)sizeof(*b) + some_length(r),
	};
	if (c->id % 13 == 0)
		b->length = LENT_LENGTH;
	conf->deadline = some_deadline(r);
	conf->reply_max = c->reply_max;
	conf->reply_limit = c->reply_limit;
	conf->priority = (enum ulrpc_priority)rnd(r, 4);
	conf->semantics = c->semantics;
	c->hasty = c->id % 4 == 0;
	conf->wait_for_ready = c->hasty ? ULRPC_WAIT_NOT : ULRPC_WAIT_DEFAULT;
	c->nbulks = method_has_bulk(c->method) ? (unsigned int)rnd(r, BULKS + 1)
					       : 0;
	annex_begin(c);
	if (!*c->trace)
		spans_trace(c);
	conf->trace = *c->trace ? c->trace : NULL;
	b->annexed = c->context;
	conf->context = c->context;
}

/* Changes a plan to that of a call that a server has no reason to fail and, if
 * @probe says so, that may be executed more than once. */
static void call_plan_probe(struct test_call *c, struct test_body *b,
			    struct ulrpc_call_conf *conf,
			    const struct probe *probe)
{
	static const enum method methods[] = { METHOD_INLINE, METHOD_WORK,
					       METHOD_AGAIN };

	c->probe = probe->us;
	c->hasty = false;
	conf->wait_for_ready = ULRPC_WAIT_READY;
	conf->deadline = probe->us ? probe->us + probe->faults : ULRPC_NEVER;
	c->reply_max = conf->reply_max = MAX_REPLY;
	c->reply_limit = conf->reply_limit = 0;
	if (c->reply_length == IN_PIECES)
		c->reply_length = b->reply_length = 64;
	b->status = 0;
	b->refuse = b->disk_full = false;
	b->delay = probe->us ? 0 : 5 * SEC / US;
	if (!probe->idempotent)
		return;
	c->method = methods[rnd(c->run, 3)];
	c->semantics = conf->semantics = ULRPC_IDEMPOTENT;
	c->nbulks = 0;
	b->method = (uint8_t)c->method;
	b->asks = false;
}

static int call_start(struct test_call *c, struct ulrpc_client *client,
		      const struct test_body *b, struct ulrpc_call_conf *conf)
{
	struct run *r = c->run;
	struct ulrpc_bulk *bulks[BULKS];
	char *body = lnet_sim_buf(r->sim, b->length);
	int rc;

	memcpy(body, b, sizeof(*b));
	pattern_fill(body + sizeof(*b), b->length - (uint32_t)sizeof(*b),
		     request_pattern(c->id));
	for (unsigned int i = 0; i < c->nbulks; i++) {
		bulk_new(c, i);
		bulks[i] = c->bulks[i].bulk;
	}
	conf->bulks = bulks;
	conf->nbulks = c->nbulks;
	c->deadline = conf->deadline == ULRPC_NEVER
			      ? UINT64_MAX
			      : lnet_sim_now(r->sim) + conf->deadline * US;
	c->starting = true;
	rc = ulrpc_call(client, ulrpc_method(method_names[c->method]), body,
			b->length, conf, on_done, c,
			chance(r, 40) || conf->deadline == ULRPC_NEVER
				? &c->call
				: NULL);
	c->starting = false;
	lnet_sim_buf_retire(r->sim, body);
	return rc;
}

/* Begins a call. @probe: the call has to succeed within these times; NULL: it
 * need not succeed. */
static void call_begin(struct member *m, const struct test_client *tc,
		       const struct probe *probe)
{
	struct ulrpc_call_conf conf = { 0 };
	struct test_call *c = call_new(m, tc);
	struct test_body b;
	int rc;

	if (!c)
		return;
	call_plan(c, &b, &conf);
	if (probe)
		call_plan_probe(c, &b, &conf, probe);
	rc = call_start(c, tc->client, &b, &conf);
	if (!rc)
		return;
	c->failed = true;
	context_end(c);
	for (unsigned int i = 0; i < c->nbulks; i++) {
		bulk_close(&c->bulks[i]);
		if (c->bulks[i].buf)
			outcome_wrong(c, "a bulk is in use that never was");
	}
	if (rc != -ESHUTDOWN)
		lnet_sim_fail(m->run->sim, "node %u: call %lu not begun: %d",
			      m->index, (unsigned long)c->id, rc);
}

static const struct test_client *some_client(struct member *m)
{
	const struct test_client *tc = &m->clients[rnd(m->run, CLIENTS_MAX)];

	return m->rpc && tc->client && !is_paused(m) ? tc : NULL;
}

/* Makes a call, and waits for it while time passes. */
static void call_wait(struct member *m, const struct test_client *tc,
		      const char *trace)
{
	struct run *r = m->run;
	struct test_call *c = call_new(m, tc);
	struct ulrpc_call_conf conf = { 0 };
	struct ulrpc_outcome o;
	struct test_body b;
	char reply[256];
	size_t length;
	int rc;

	if (!c)
		return;
	strcpy(c->trace, trace);
	call_plan(c, &b, &conf);
	c->method = METHOD_INLINE;
	c->nbulks = 0;
	c->waiting = true;
	b.method = METHOD_INLINE;
	b.length = sizeof(b);
	b.reply_length = c->reply_length = (uint32_t)rnd(r, sizeof(reply));
	conf.reply_max = c->reply_max = sizeof(reply);
	conf.deadline = 1 + rnd(r, 50000);
	c->deadline = lnet_sim_now(r->sim) + conf.deadline * US;
	rc = ulrpc_call_wait(tc->client, ulrpc_method("inline"), &b, sizeof(b),
			     &conf, reply, sizeof(reply), &length, &o);
	if (rc) {
		c->failed = true;
		context_end(c);
		if (rc != -ESHUTDOWN &&
		    (rc != -ECANCELED || lnet_sim_node(r->sim, m->index)))
			lnet_sim_fail(r->sim,
				      "node %u: call %lu not waited for: %d",
				      m->index, (unsigned long)c->id, rc);
		return;
	}
	finish(c, &o, reply, length);
}

void caller_call(struct member *m)
{
	const struct test_client *tc = some_client(m);
	struct run *r = m->run;

	if (!tc || !r->left)
		return;
	r->left--;
	if (r->waiting || lnet_in_turn() || !chance(r, 3)) {
		call_begin(m, tc, NULL);
		return;
	}
	wait_begin(m, "a call");
	call_wait(m, tc, "");
	wait_end(m);
}

void caller_ask(struct member *m, const char *trace)
{
	const struct test_client *tc = some_client(m);

	if (tc && m->run->left)
		call_wait(m, tc, trace);
}

void caller_probe(struct member *m, const struct probe *probe)
{
	for (unsigned int i = 0; i < CLIENTS_MAX; i++)
		if (m->clients[i].client && !is_paused(m))
			call_begin(m, &m->clients[i], probe);
}

/* ---- giving up ---- */

void caller_cancel_one(struct run *r)
{
	struct test_call *c;

	if (r->first == r->ncalls)
		return;
	c = r->calls[r->first + rnd(r, r->ncalls - r->first)];
	if (!c->call || c->dead || is_paused(c->from))
		return;
	c->canceled = true;
	ulrpc_cancel(c->call);
	if (!c->ended)
		tally_count(r, CALL_IS_CANCELED);
	if (chance(r, 50))
		call_put(c);
}

void caller_cancel_long(struct run *r)
{
	for (unsigned int i = r->first; i < r->ncalls; i++) {
		struct test_call *c = r->calls[i];

		if (c->call && !c->ended && !c->dead && !is_paused(c->from) &&
		    c->deadline == UINT64_MAX) {
			ulrpc_cancel(c->call);
			call_put(c);
		}
	}
}

void caller_given_up(struct run *r)
{
	for (unsigned int i = r->first; i < r->ncalls; i++)
		if (r->calls[i]->ended &&
		    r->calls[i]->outcome.cause == ULRPC_CAUSE_CANCELED)
			r->calls[i]->given_up = true;
}

void caller_crashed(struct member *m)
{
	struct run *r = m->run;
	bool left = false;

	for (unsigned int i = r->first; i < r->ncalls; i++) {
		struct test_call *c = r->calls[i];

		if (c->from != m || c->life != m->life)
			continue;
		if (!c->ended && !c->failed)
			c->dead = left = true;
		for (unsigned int k = 0; k < c->nbulks; k++) {
			bulk_retire(&c->bulks[k]);
			bulk_close(&c->bulks[k]);
		}
		call_put(c);
		context_end(c);
	}
	memset(m->clients, 0, sizeof(m->clients));
	if (left)
		tally_count(r, CALLER_CRASHES);
}

void caller_closed(struct member *m)
{
	struct run *r = m->run;

	for (unsigned int i = 0; i < r->ncalls; i++) {
		struct test_call *c = r->calls[i];

		if (c->from != m || c->life != m->life || c->dead || c->failed)
			continue;
		if (!c->ended && !c->waiting)
			outcome_wrong(c, "has not ended, and RPC is closed");
		for (unsigned int k = 0; k < c->nbulks; k++)
			if (c->bulks[k].buf)
				outcome_wrong(
					c,
					"a bulk is in use, and RPC is closed");
	}
}

/* ---- checking ---- */

unsigned int caller_check(struct run *r)
{
	uint64_t now = lnet_sim_now(r->sim);
	unsigned int left = 0;

	for (unsigned int i = r->first; i < r->ncalls; i++) {
		struct test_call *c = r->calls[i];

		if (c->ended || c->dead || c->failed) {
			if (c->call && !is_paused(c->from) && chance(r, 30))
				call_put(c);
			/* all calls before this one have ended, and were given
			 * back */
			if (i == r->first && !c->call)
				r->first++;
			continue;
		}
		left++;
		if (now <= member_late(c->from, c->deadline))
			continue;
		outcome_wrong(c, "is past its deadline");
		c->failed = true;
	}
	return left;
}

unsigned int caller_left(struct run *r)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < r->ncalls; i++) {
		struct test_call *c = r->calls[i];

		if (c->ended || c->dead || c->failed)
			continue;
		fprintf(stderr, "call %lu of node %u has never ended\n",
			(unsigned long)c->id, c->from->index);
		left++;
	}
	return left;
}

void caller_free(struct run *r)
{
	for (unsigned int i = 0; i < r->ncalls; i++) {
		struct test_call *c = r->calls[i];

		for (unsigned int k = 0; k < c->nbulks; k++)
			if (c->bulks[k].bulk)
				ulrpc_bulk_close(c->bulks[k].bulk, NULL, NULL);
		ulrpc_call_put(c->call);
		free(c);
	}
}
