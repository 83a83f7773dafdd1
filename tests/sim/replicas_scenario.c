/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to several servers of one service (ulrpc_replicas(7)). The first server
 * is always well, and can always be reached. The others crash, shut down, are
 * slow, are cut off, and come and go with their name, which is sometimes found
 * late, or not at all for a while. The network between them and their callers
 * has every fault; nodes fail their own messages by rules, and lose their
 * interfaces for a while. Callers crash, and in some runs they stand still for
 * a while. In some runs each node has two rails, and in some all have keys.
 * What must hold, and who checks it:
 *
 * A call ends once, by its deadline, or when its caller goes on if that stood
 * still then. It says truly whether it was executed and which server has
 * answered.
 *	on_end(), call_check()
 * A call that must not be executed twice is executed once at most, by one of
 * all servers.
 *	on_work()
 * No call that has time, and may go on to another server, is lost; what may not
 * ends as unknown, or as executed by a handler that could not move its bulk.
 *	call_check()
 * What a call lends is read and written right, at whichever server, and nobody
 * touches it when the call is told that it is free.
 *	bulk_end(), on_moved(), the simulator
 * A call that is executed exactly once has its effects at one of all servers,
 * whatever dies, and ends well if it has the time.
 *	store_commit(), call_check()
 * Metadata of a request are those of its call, and metadata of the reply those
 * of the server that has answered. A call that is made for a request ends by
 * the request's deadline, and soon after the request is canceled.
 *	tag_serve(), tag_end(), outcome_check(), on_end()
 * All of this holds for calls of a client that is opened with the name, too, as
 * far as such a client goes from server to server.
 * A stream is opened once, at one server, and stays there; its messages come in
 * order, each once, and what its outcome says of them is true.
 *	replicas_flows.c
 * Once faults have ended, all calls and streams end well and soon; and nothing
 * is left in the end.
 *	call_check(), by the sanitizers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/replicas_run.h"
#include "ulnet/keys.h"

const unsigned int scenario_seeds_long = 2000;
const uint64_t scenario_kept[] = { 0 };

/* ---- the service ---- */

struct answer {
	uint32_t call, server;
};

/* A request that is answered later. */
struct later {
	struct later *next; /* in run.laters */
	struct server *s;
	unsigned int life;
	struct ulrpc_request *request;
	struct answer answer;
	uint8_t lent[LENT]; /* what the call lends */
};

/* What is in the memory that a call lends, when it has been read or written. */
static void lent_fill(uint8_t *p, uint32_t call)
{
	for (uint32_t i = 0; i < LENT; i++)
		p[i] = (uint8_t)(call * 31 + i * 7 + 1);
}

static bool lent_holds(const uint8_t *p, uint32_t call)
{
	uint8_t right[LENT];

	lent_fill(right, call);
	return !memcmp(p, right, LENT);
}

static bool is_there(const struct later *l)
{
	return l->s->rpc && l->s->life == l->life;
}

static void answer(void *arg)
{
	struct later *l = arg;

	if (is_there(l))
		ulrpc_reply(l->request, &l->answer, sizeof(l->answer));
}

/* The call is executed, with all its effects. Its server may crash before it
 * replies. */
static void store_commit(struct later *l)
{
	struct run *r = l->s->r;
	struct call *c = &r->calls[l->answer.call];
	struct ulrpc_record record;
	int rc = ulrpc_request_record(l->request, 0, &l->answer,
				      sizeof(l->answer), &record);

	if (rc) {
		lnet_sim_fail(r->sim, "call %u cannot be recorded: %d",
			      c->index, rc);
		return;
	}
	if (c->stored++)
		lnet_sim_fail(r->sim, "call %u is executed twice, not once",
			      c->index);
	store_put(l->s, &record);
	at(r, chance(r, 50) ? rnd(r, SEC) : 0, answer, l);
}

static void answer_later(void *arg)
{
	struct later *l = arg;

	if (l->s->r->calls[l->answer.call].semantics != ULRPC_EXACTLY_ONCE)
		answer(l);
	else if (is_there(l))
		store_commit(l);
}

static void on_moved(void *arg, int status, uint64_t moved)
{
	struct later *l = arg;
	struct run *r = l->s->r;

	if (status) {
		ulrpc_fail(l->request, status);
		return;
	}
	if (moved != LENT || !lent_holds(l->lent, l->answer.call))
		lnet_sim_fail(r->sim, "call %u: the server has read wrong data",
			      l->answer.call);
	at(r, l->s->delay ? rnd(r, l->s->delay) : 0, answer_later, l);
}

static void lent_move(struct later *l, bool sink)
{
	const struct iovec iov = { l->lent, LENT };
	int rc;

	if (sink)
		lent_fill(l->lent, l->answer.call);
	rc = sink ? ulrpc_bulk_put(l->request, 0, 0, &iov, 1, on_moved, l)
		  : ulrpc_bulk_get(l->request, 0, 0, &iov, 1, on_moved, l);
	if (rc)
		ulrpc_fail(l->request, rc);
}

static void on_work(void *arg, struct ulrpc_request *request, const void *body,
		    size_t length)
{
	struct server *s = arg;
	struct run *r = s->r;
	struct later *l = malloc(sizeof(*l));
	struct call *c;
	uint32_t index;

	if (!l || length != sizeof(index))
		abort();
	memcpy(&index, body, sizeof(index));
	c = &r->calls[index];
	/* A crash before the effects may have led to another execution. */
	if (c->executed++ && c->semantics == ULRPC_AT_MOST_ONCE)
		lnet_sim_fail(r->sim, "call %u is executed twice", index);
	tag_serve(c, s, request);
	*l = (struct later){ .next = r->laters,
			     .s = s,
			     .life = s->life,
			     .request = request,
			     .answer = { index, (uint32_t)(s - r->servers) } };
	r->laters = l;
	if (c->lends)
		lent_move(l, c->sink);
	else
		at(r, s->delay ? rnd(r, s->delay) : 0, answer_later, l);
}

static int start_server(void *arg, unsigned int index, struct lnet *node)
{
	struct server *s = arg;
	struct ulrpc_method_conf methods[] = {
		{ .name = "work", .semantics = ULRPC_AT_MOST_ONCE },
		{ .name = "store", .semantics = ULRPC_EXACTLY_ONCE },
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_durable durable;
	int rc;

	(void)index;
	for (int i = 0; i < 2; i++) {
		methods[i].handler = on_work;
		methods[i].arg = s;
		methods[i].run = ULRPC_RUN_INLINE;
	}
	ulrpc_service_conf_init(&conf);
	conf.name = "work";
	conf.methods = methods;
	conf.nmethods = 2;
	store_conf(s, &durable);
	conf.durable = &durable;
	s->life++;
	rc = ulrpc_open(node, &s->r->conf, &s->rpc);
	if (!rc)
		rc = ulrpc_service_start(s->rpc, &conf, NULL);
	return rc ? rc : flows_serve(s);
}

/* ---- callers ---- */

static void sets_open(struct caller *m)
{
	struct ulrpc_replicas_conf conf = m->conf;

	if (ulrpc_replicas_open(m->rpc, &conf, &m->rs))
		lnet_sim_fail(m->r->sim, "the servers cannot be opened");
	conf.client.service = "flow";
	if (ulrpc_replicas_open(m->rpc, &conf, &m->flows))
		lnet_sim_fail(m->r->sim, "their streams cannot be opened");
}

static int start_caller(void *arg, unsigned int index, struct lnet *node)
{
	struct caller *m = arg;
	int rc;

	(void)index;
	m->life++;
	rc = ulrpc_open(node, &m->r->conf, &m->rpc);
	if (!rc)
		rc = front_start(m);
	if (!rc && m->r->named)
		rc = ulrpc_client_open(m->rpc, &m->conf.client, &m->plain);
	if (!rc)
		sets_open(m);
	return rc;
}

/* ---- memory that is lent ---- */

/* From now on nobody may touch it. */
static void on_released(void *arg)
{
	struct call *c = arg;

	if (c->memory)
		lnet_sim_buf_retire(c->r->sim, c->memory);
	c->memory = NULL;
}

static void bulk_begin(struct call *c)
{
	struct lnet_sim *sim = c->r->sim;
	struct iovec iov = { lnet_sim_buf(sim, LENT), LENT };
	const struct ulrpc_bulk_conf conf = {
		.iov = &iov,
		.niov = 1,
		.access = c->sink ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE,
		.segment = 1000,
	};

	if (!iov.iov_base)
		abort();
	c->memory = iov.iov_base;
	memset(c->memory, 0, LENT);
	if (!c->sink)
		lent_fill(c->memory, c->index);
	if (ulrpc_bulk_new(c->from->rpc, &conf, &c->bulk))
		abort();
}

static void bulk_end(struct call *c)
{
	const struct ulrpc_outcome *o = &c->o.call;
	struct ulrpc_bulk *bulk = c->bulk;

	if (!bulk)
		return;
	if (o->cause == ULRPC_CAUSE_OK && !lent_holds(c->memory, c->index))
		lnet_sim_fail(c->r->sim, "call %u: its memory is wrong",
			      c->index);
	c->r->bulk_moves += c->o.moves;
	if (o->bulk_free)
		on_released(c);
	c->bulk = NULL;
	ulrpc_bulk_close(bulk, on_released, c);
	c->r->hedged_sources += c->o.hedged;
	if (c->o.hedged && c->sink)
		lnet_sim_fail(c->r->sim, "call %u: a sink at two servers",
			      c->index);
}

static void reply_take(struct call *c, const void *reply, size_t length)
{
	struct run *r = c->r;
	struct answer answer;

	if (length != sizeof(answer)) {
		lnet_sim_fail(r->sim, "call %u: the reply has %zu bytes",
			      c->index, length);
		return;
	}
	memcpy(&answer, reply, sizeof(answer));
	c->by = answer.server;
	if (answer.call != c->index)
		lnet_sim_fail(r->sim, "call %u: the reply is that to call %u",
			      c->index, answer.call);
}

/* A call that is made for a request ends soon after that is canceled. */
static void under_end(struct call *c)
{
	uint64_t now = lnet_sim_now(c->r->sim), since = c->canceled;

	if (since < c->from->paused)
		since = c->from->paused;
	if (c->canceled && now > since + SEC)
		lnet_sim_fail(c->r->sim,
			      "call %u: its request was canceled long ago",
			      c->index);
	ulrpc_reply(c->request, NULL, 0);
	c->request = NULL;
}

static void on_end(void *arg, const struct ulrpc_replicas_outcome *o,
		   const void *reply, size_t length)
{
	struct call *c = arg;
	struct run *r = c->r;

	if (c->ended++)
		lnet_sim_fail(r->sim, "call %u ends twice", c->index);
	c->o = *o;
	c->took = lnet_sim_now(r->sim) - c->began;
	c->stood = c->from->paused > c->began ? c->from->paused - c->began : 0;
	bulk_end(c);
	r->causes[o->call.cause]++;
	r->moves += o->moves;
	r->hedges += o->hedged;
	r->sealed += o->call.cause == ULRPC_CAUSE_OK && r->conf.keys;
	if (o->call.cause == ULRPC_CAUSE_OK)
		reply_take(c, reply, length);
	tag_end(c);
	if (c->request)
		under_end(c);
}

static void on_plain_end(void *arg, const struct ulrpc_outcome *o,
			 const void *reply, size_t length)
{
	struct call *c = arg;
	const struct ulrpc_replicas_outcome all = { .call = *o,
						    .server = o->target };

	c->r->plain_ended++;
	on_end(c, &all, reply, length);
}

void call_put(struct call *c)
{
	ulrpc_replicas_call_put(c->handle);
	c->handle = NULL;
	ulrpc_call_put(c->plain_handle);
	c->plain_handle = NULL;
}

static void call_cancel(void *arg)
{
	struct call *c = arg;

	if ((!c->handle && !c->plain_handle) ||
	    after_pause(c->from, call_cancel, c))
		return;
	c->canceled = lnet_sim_now(c->r->sim);
	if (c->handle)
		ulrpc_replicas_cancel(c->handle);
	else
		ulrpc_cancel(c->plain_handle);
	call_put(c);
}

/* What the call is made with. */
static void call_conf(struct call *c, struct ulrpc_replicas_call_conf *conf)
{
	ulrpc_replicas_call_conf_init(conf);
	conf->call.deadline = c->under ? LONG : c->deadline;
	conf->call.semantics = c->semantics;
	if (c->lends) {
		bulk_begin(c);
		conf->call.bulks = &c->bulk;
		conf->call.nbulks = 1;
	}
	tag_begin(c);
	conf->call.context = c->context;
}

int call_begin(struct call *c)
{
	struct caller *m = c->from;
	struct ulrpc_replicas_call_conf conf;
	const uint32_t body = c->index, key = c->index % 7;
	const uint32_t method = ulrpc_method(
		c->semantics == ULRPC_EXACTLY_ONCE ? "store" : "work");
	int rc;

	call_conf(c, &conf);
	if (c->keyed) {
		conf.key = &key;
		conf.key_length = sizeof(key);
	}
	c->began = lnet_sim_now(c->r->sim);
	if (c->plain)
		rc = ulrpc_call(m->plain, method, &body, sizeof(body),
				&conf.call, on_plain_end, c,
				c->cancel ? &c->plain_handle : NULL);
	else
		rc = ulrpc_replicas_call(
			m->rs, method, &body, sizeof(body), &conf, on_end, c,
			c->cancel && !c->under ? &c->handle : NULL);
	if (!rc)
		c->life = m->life;
	return rc;
}

static void call_make(void *arg)
{
	struct call *c = arg;

	if (!c->from->rpc || after_pause(c->from, call_make, c))
		return;
	if (c->under)
		front_call(c);
	else if (call_begin(c))
		lnet_sim_fail(c->r->sim, "call %u cannot be made", c->index);
	if (c->cancel)
		at(c->r, rnd(c->r, SEC), call_cancel, c);
}

void sets_renew(struct caller *m)
{
	if (!m->rpc || is_paused(m))
		return;
	ulrpc_replicas_close(m->rs);
	ulrpc_replicas_close(m->flows);
	m->life++;
	sets_open(m);
}

/* ---- what must hold ---- */

/* Is its caller still the same one? */
static bool call_counts(const struct call *c)
{
	return is_same_life(c->from, c->life);
}

static void outcome_check(const struct call *c)
{
	struct lnet_sim *sim = c->r->sim;
	const struct ulrpc_outcome *o = &c->o.call;
	const struct server *by = &c->r->servers[c->by];
	bool ok = o->cause == ULRPC_CAUSE_OK;
	unsigned int executed =
		c->semantics == ULRPC_EXACTLY_ONCE ? c->stored : c->executed;

	if (c->took > c->deadline * US && c->took > c->stood)
		lnet_sim_fail(sim, "call %u: ends after its deadline",
			      c->index);
	if (o->execution == ULRPC_NOT_EXECUTED && executed)
		lnet_sim_fail(sim, "call %u: was executed, and is told not",
			      c->index);
	if (o->execution == ULRPC_EXECUTED && !executed)
		lnet_sim_fail(sim, "call %u: was not executed", c->index);
	/* A plain client may have an answer before it knows where LNet has
	 * sent the request. */
	if (ok && !(c->plain && lnet_nid_is_any(&c->o.server)) &&
	    !lnet_nid_eq(&c->o.server, &by->nids[0]) &&
	    !(c->plain && lnet_nid_eq(&c->o.server, &by->nids[1])))
		lnet_sim_fail(sim, "call %u%s: another server has answered",
			      c->index, c->plain ? " with a plain client" : "");
}

/* Has the call to end well if it has the time? A client that calls one server
 * does not repeat an idempotent call that its server has given up; and nobody
 * knows what was in a store that is lost. */
static bool must_go_on(const struct call *c)
{
	return c->semantics == ULRPC_EXACTLY_ONCE
		       ? !c->r->forgets
		       : c->semantics == ULRPC_IDEMPOTENT && !c->plain;
}

static void call_check(const struct call *c)
{
	static const char *const semantics[] = { "at most once", "idempotent",
						 "exactly once" };
	struct lnet_sim *sim = c->r->sim;
	const struct ulrpc_outcome *o = &c->o.call;
	bool free = c->deadline >= LONG && !c->cancel && call_counts(c);

	front_check(c);
	if (call_counts(c) && c->ended != 1)
		lnet_sim_fail(sim, "call %u: ends %u times", c->index,
			      c->ended);
	if (!c->ended)
		return;
	outcome_check(c);
	if (c->last && c->took > SEC)
		lnet_sim_fail(sim, "call %u: takes %u ms without faults",
			      c->index, (unsigned int)(c->took / MS));
	if (o->cause == ULRPC_CAUSE_OK)
		return;
	if (free && (c->last || must_go_on(c)))
		lnet_sim_fail(sim, "call %u, %s%s: is lost, as %s (%s)",
			      c->index, semantics[c->semantics],
			      c->plain ? " with a plain client" : "",
			      ulrpc_cause_name(o->cause), o->text);
	else if (free && o->execution != ULRPC_EXECUTION_UNKNOWN &&
		 !(o->execution == ULRPC_EXECUTED && c->lends &&
		   o->cause == ULRPC_CAUSE_BULK))
		lnet_sim_fail(sim,
			      "call %u: could have gone on, and ends as %s",
			      c->index, ulrpc_cause_name(o->cause));
}

/* ---- the run ---- */

struct run *scenario_new(struct lnet_sim *sim)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->sim = sim;
	return r;
}

bool scenario_repeats(const struct run *r)
{
	(void)r;
	return true;
}

static void call_draw(struct run *r, unsigned int i)
{
	struct call *c = &r->calls[i];

	c->r = r;
	c->index = i;
	c->from = &r->callers[rnd(r, CALLERS)];
	c->semantics = chance(r, 50) ? ULRPC_IDEMPOTENT
				     : (enum ulrpc_semantics)rnd(r, 3);
	c->last = i >= CALLS - LAST;
	c->keyed = chance(r, 20);
	c->cancel = !c->last && chance(r, 10);
	/* What is executed exactly once has its reply recorded, and no bulk. */
	c->lends = c->semantics != ULRPC_EXACTLY_ONCE && chance(r, 30);
	c->sink = chance(r, 50);
	c->plain = r->named && chance(r, 20);
	c->tagged = chance(r, 40);
	c->under = !c->plain && chance(r, 15);
	c->deadline = c->last || chance(r, 65)
			      ? LONG
			      : 1 + rnd(r, (1 + rnd(r, 3)) * SECONDS);
}

static void caller_draw(struct run *r, struct caller *m)
{
	m->r = r;
	ulrpc_replicas_conf_init(&m->conf);
	m->conf.client.service = "work";
	m->conf.choice = (enum ulrpc_choice)rnd(r, 3);
	m->conf.hedge = chance(r, 50) ? 0 : (unsigned int)rnd(r, 500);
	if (r->named) {
		m->conf.client.target = "servers";
	} else {
		m->conf.client.nids = r->nids;
		m->conf.client.nnids = r->n;
	}
}

static int add_node(struct run *r, unsigned int *index_p,
		    struct ulnet_nid *nids, lnet_sim_start_fn start, void *arg)
{
	int rc;

	cluster_nids(nids, r->rails, *index_p);
	rc = cluster_node_add(r->sim, nids, r->rails, NULL, start, arg);
	if (rc >= 0)
		*index_p = (unsigned int)rc;
	return rc;
}

static int set_up(struct run *r)
{
	int rc = 0;

	r->n = 1 + (unsigned int)rnd(r, SERVERS);
	r->named = chance(r, 50);
	r->faults = chance(r, 90);
	r->forgets = chance(r, 20);
	r->rails = has_two_rails(r->sim) ? 2 : 1;
	ulrpc_conf_init(&r->conf);
	if (has_keys(r->sim))
		r->conf.keys = cluster_keys(r->sim);
	r->pauses = has_pauses(r->sim);
	if (r->pauses)
		lnet_sim_apart(r->sim);
	for (unsigned int i = 0; i < r->n && rc >= 0; i++) {
		struct server *s = &r->servers[i];

		s->r = r;
		s->index = i;
		rc = add_node(r, &s->index, s->nids, start_server, s);
		r->nids[i] = s->nids[0];
	}
	name_set(r);
	for (unsigned int i = 0; i < CALLERS && rc >= 0; i++) {
		struct caller *m = &r->callers[i];

		caller_draw(r, m);
		m->index = r->n + i;
		if (r->conf.keys)
			m->conf.client.flavour = (enum ulrpc_flavour)(
				ULRPC_FLAVOUR_AUTH +
				(keys_seed(r->sim) + i) % 3);
		rc = add_node(r, &m->index, m->nids, start_caller, m);
	}
	for (unsigned int i = 0; i < CALLS; i++)
		call_draw(r, i);
	for (unsigned int i = 0; i < FLOWS; i++)
		flow_draw(r, i);
	return rc < 0 ? rc : 0;
}

int scenario_play(struct run *r)
{
	int rc = set_up(r);

	if (rc)
		return rc;
	at(r, rnd(r, SEC), trouble, r);
	for (unsigned int i = 0; i < CALLS - LAST; i++)
		at(r, rnd(r, 15 * SEC), call_make, &r->calls[i]);
	for (unsigned int i = 0; i < FLOWS - FLOWS_LAST; i++)
		at(r, rnd(r, 15 * SEC), flow_open, &r->flows[i]);
	lnet_sim_run(r->sim, 15 * SEC);
	trouble_end(r);
	/* Nodes come again, and LNet gives up what faults have left in it. */
	lnet_sim_run(r->sim, 60 * SEC);
	for (unsigned int i = CALLS - LAST; i < CALLS; i++)
		at(r, rnd(r, SEC), call_make, &r->calls[i]);
	for (unsigned int i = FLOWS - FLOWS_LAST; i < FLOWS; i++)
		at(r, rnd(r, SEC), flow_open, &r->flows[i]);
	lnet_sim_run(r->sim, 60 * SEC);
	for (unsigned int i = 0; i < CALLS; i++)
		call_check(&r->calls[i]);
	for (unsigned int i = 0; i < FLOWS; i++)
		flow_check(&r->flows[i]);
	return 0;
}

void scenario_tell(const struct run *r, scenario_tell_fn tell, void *arg)
{
	for (int i = 0; i < ULRPC_CAUSE_COUNT; i++)
		tell(arg, "calls that ended with ",
		     ulrpc_cause_name((enum ulrpc_cause)i), r->causes[i]);
	tell(arg, "", "calls that went on", r->moves);
	tell(arg, "", "calls with bulk that went on", r->bulk_moves);
	tell(arg, "", "hedged calls", r->hedges);
	tell(arg, "", "hedged calls that lend sources", r->hedged_sources);
	tell(arg, "", "calls with keys that went well", r->sealed);
	tell(arg, "", "nodes have two rails", r->rails > 1);
	tell(arg, "", "interfaces that were down", r->ndowns);
	for (unsigned int i = 0; i < LNET_FAULT_KINDS; i++)
		tell(arg, "", rules_names[i], r->rules.struck[i]);
	tell(arg, "", "crashes", r->crashes);
	tell(arg, "", "pauses", r->npauses);
	tell(arg, "", "failures of the name", r->name_failures);
	tell(arg, "", "calls of a client of the name", r->plain_ended);
	tell(arg, "", "calls with metadata that went well", r->tagged_ended);
	tell(arg, "", "requests for which calls were made", r->under_ended);
	tell(arg, "", "replies from a store", r->replays);
	tell(arg, "", "streams that ended well", r->flows_ended);
}

unsigned int scenario_free(struct run *r)
{
	struct later *l;

	for (unsigned int i = 0; i < CALLS; i++) {
		call_put(&r->calls[i]);
		/* of a caller that has crashed */
		ulrpc_bulk_close(r->calls[i].bulk, NULL, NULL);
		ulrpc_context_free(r->calls[i].context);
	}
	for (unsigned int i = 0; i < SERVERS; i++)
		store_free(&r->servers[i]);
	while ((l = r->laters)) {
		r->laters = l->next;
		free(l);
	}
	ulrpc_keys_put(r->conf.keys);
	free(r);
	return 0;
}
