/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to several servers of one service (ulrpc_replicas(7)). The first server
 * is always well, and can always be reached. The others crash, shut down, are
 * slow, are cut off, and come and go with their name, which is sometimes found
 * late, or not at all for a while. The network between them and their callers
 * has every fault. Callers crash, and in some runs they stand still for a
 * while. What must hold, and who checks it:
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
 * Once faults have ended, all calls end well and soon; and nothing is left in
 * the end.
 *	call_check(), by the sanitizers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/cluster.h"
#include "tests/sim/scenario.h"
#include "ulnet/replicas.h"
#include "ulnet/service.h"

#define SERVERS 4 /* at most */
#define CALLERS 2
#define CALLS	300
#define LAST	40 /* of them are made when faults have ended */
#define LENT	3000 /* bytes that some calls lend */

#define SECONDS UINT64_C(1000000) /* us */
/* us: whoever has so long need not be lost. */
#define LONG (30 * SECONDS)

const unsigned int scenario_seeds_long = 2000;
const uint64_t scenario_kept[] = { 0 };

struct server {
	struct run *r;
	unsigned int index; /* of the node */
	unsigned int life;
	struct ulrpc *rpc; /* NULL: crashed */
	struct ulnet_nid nid;
	uint64_t delay; /* ns, at most */
};

struct caller {
	struct run *r;
	unsigned int index;
	unsigned int life; /* how often it was started, or its set closed */
	struct ulrpc *rpc; /* NULL: crashed */
	struct ulrpc_replicas *rs;
	struct ulnet_nid nid;
	struct ulrpc_replicas_conf conf;
	uint64_t paused; /* ns: when the last pause has ended, or ends */
};

struct call {
	struct run *r;
	struct caller *from;
	unsigned int index;
	enum ulrpc_semantics semantics;
	uint64_t deadline; /* us */
	bool last, keyed;
	bool cancel; /* by its caller, after a while */

	bool lends, sink;	 /* memory; for the server to write to it */
	uint8_t *memory;	 /* NULL: not lent, or free again */
	struct ulrpc_bulk *bulk; /* NULL: none, or closed */

	struct ulrpc_replicas_call *handle; /* if it is to be canceled */
	unsigned int life;		    /* of the caller; 0: not made */
	uint64_t began, took;		    /* ns */
	/* ns from its beginning to the end of the last pause before its end */
	uint64_t stood;
	unsigned int ended, executed;
	struct ulrpc_replicas_outcome o;
	uint32_t by; /* the server that has answered */
};

struct run {
	struct lnet_sim *sim;
	unsigned int n; /* servers */
	bool named;
	bool faults; /* there may be some */
	bool pauses; /* callers stand still */
	struct server servers[SERVERS];
	struct ulnet_nid nids[SERVERS]; /* theirs */
	struct caller callers[CALLERS];
	struct later *laters; /* all of them */
	uint64_t bulk_moves;  /* calls that went on, and lend memory */
	struct call calls[CALLS];
	struct splits splits;
	struct links links;
	uint64_t causes[ULRPC_CAUSE_COUNT], crashes, moves, hedges, npauses;
	uint64_t name_failures;
};

static uint64_t rnd(struct run *r, uint64_t below)
{
	return lnet_sim_random(r->sim, below);
}

static bool chance(struct run *r, unsigned int percent)
{
	return rnd(r, 100) < percent;
}

static void at(struct run *r, uint64_t ns, void (*fn)(void *arg), void *arg)
{
	if (lnet_sim_at(r->sim, ns, fn, arg))
		lnet_sim_fail(r->sim, "no memory for a step");
}

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

static void answer_later(void *arg)
{
	struct later *l = arg;

	if (l->s->rpc && l->s->life == l->life)
		ulrpc_reply(l->request, &l->answer, sizeof(l->answer));
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
	if (c->executed++ && c->semantics != ULRPC_IDEMPOTENT)
		lnet_sim_fail(r->sim, "call %u is executed twice", index);
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
	const struct ulrpc_method_conf method = {
		.name = "work",
		.handler = on_work,
		.arg = s,
		.run = ULRPC_RUN_INLINE,
		.semantics = ULRPC_AT_MOST_ONCE,
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;
	int rc;

	(void)index;
	ulrpc_service_conf_init(&conf);
	conf.name = "work";
	conf.methods = &method;
	conf.nmethods = 1;
	s->life++;
	rc = ulrpc_open(node, NULL, &s->rpc);
	return rc ? rc : ulrpc_service_start(s->rpc, &conf, &service);
}

/* ---- callers ---- */

static void set_open(struct caller *m)
{
	if (ulrpc_replicas_open(m->rpc, &m->conf, &m->rs))
		lnet_sim_fail(m->r->sim, "the servers cannot be opened");
}

static int start_caller(void *arg, unsigned int index, struct lnet *node)
{
	struct caller *m = arg;
	int rc;

	(void)index;
	m->life++;
	rc = ulrpc_open(node, NULL, &m->rpc);
	if (!rc)
		set_open(m);
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
}

static void on_end(void *arg, const struct ulrpc_replicas_outcome *o,
		   const void *reply, size_t length)
{
	struct call *c = arg;
	struct run *r = c->r;
	struct answer answer;

	if (c->ended++)
		lnet_sim_fail(r->sim, "call %u ends twice", c->index);
	c->o = *o;
	c->took = lnet_sim_now(r->sim) - c->began;
	c->stood = c->from->paused > c->began ? c->from->paused - c->began : 0;
	bulk_end(c);
	r->causes[o->call.cause]++;
	r->moves += o->moves;
	r->hedges += o->hedged;
	if (o->call.cause != ULRPC_CAUSE_OK)
		return;
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

static void call_put(struct call *c)
{
	ulrpc_replicas_call_put(c->handle);
	c->handle = NULL;
}

static bool is_paused(const struct caller *m)
{
	return m->paused > lnet_sim_now(m->r->sim);
}

/* Makes the program of @m do @fn when it goes on. Returns false if it has not
 * stopped. */
static bool after_pause(const struct caller *m, void (*fn)(void *arg),
			void *arg)
{
	if (!is_paused(m))
		return false;
	at(m->r, m->paused - lnet_sim_now(m->r->sim), fn, arg);
	return true;
}

static void call_cancel(void *arg)
{
	struct call *c = arg;

	if (!c->handle || after_pause(c->from, call_cancel, c))
		return;
	ulrpc_replicas_cancel(c->handle);
	call_put(c);
}

static void call_make(void *arg)
{
	struct call *c = arg;
	struct caller *m = c->from;
	struct ulrpc_replicas_call_conf conf;
	const uint32_t body = c->index, key = c->index % 7;

	if (!m->rpc || after_pause(m, call_make, c))
		return;
	ulrpc_replicas_call_conf_init(&conf);
	conf.call.deadline = c->deadline;
	conf.call.semantics = c->semantics;
	if (c->keyed) {
		conf.key = &key;
		conf.key_length = sizeof(key);
	}
	if (c->lends) {
		bulk_begin(c);
		conf.call.bulks = &c->bulk;
		conf.call.nbulks = 1;
	}
	c->life = m->life;
	c->began = lnet_sim_now(c->r->sim);
	if (ulrpc_replicas_call(m->rs, ulrpc_method("work"), &body,
				sizeof(body), &conf, on_end, c,
				c->cancel ? &c->handle : NULL))
		lnet_sim_fail(c->r->sim, "call %u cannot be made", c->index);
	else if (c->cancel)
		at(c->r, rnd(c->r, SEC), call_cancel, c);
}

static void set_close(struct caller *m)
{
	if (!m->rpc || is_paused(m))
		return;
	ulrpc_replicas_close(m->rs);
	m->life++;
	set_open(m);
}

/* ---- faults ---- */

/* One of the servers that are not always well; NULL: there is only one. */
static struct server *any_victim(struct run *r)
{
	return r->n < 2 ? NULL : &r->servers[1 + rnd(r, r->n - 1)];
}

static void server_restart(void *arg)
{
	struct server *s = arg;

	if (lnet_sim_restart(s->r->sim, s->index))
		lnet_sim_fail(s->r->sim, "a server does not come again");
}

static void server_crash(void *arg)
{
	struct server *s = arg;
	struct run *r = s->r;

	if (!s->rpc || lnet_sim_crash(r->sim, s->index))
		return;
	r->crashes++;
	s->rpc = NULL;
	at(r, rnd(r, 3 * SEC), server_restart, s);
}

static void server_drain(struct server *s)
{
	if (s->rpc && !ulrpc_shutdown(s->rpc, 2 * SECONDS, NULL, NULL))
		at(s->r, rnd(s->r, 3 * SEC), server_crash, s);
}

static void caller_restart(void *arg)
{
	struct caller *m = arg;

	if (lnet_sim_restart(m->r->sim, m->index))
		lnet_sim_fail(m->r->sim, "a caller does not come again");
}

static void caller_crash(struct caller *m)
{
	struct run *r = m->r;

	if (!m->rpc || lnet_sim_crash(r->sim, m->index))
		return;
	m->rpc = NULL;
	m->paused = 0;
	for (unsigned int i = 0; i < CALLS; i++)
		if (r->calls[i].from == m)
			call_put(&r->calls[i]);
	at(r, rnd(r, SEC), caller_restart, m);
}

static void caller_pause(struct caller *m)
{
	struct run *r = m->r;
	uint64_t ns = rnd(r, 5 * SEC);

	if (!m->rpc || is_paused(m))
		return;
	if (lnet_sim_pause(r->sim, m->index, ns))
		lnet_sim_fail(r->sim, "a caller cannot be paused");
	m->paused = lnet_sim_now(r->sim) + ns;
	r->npauses++;
}

/* The name cannot be looked up for now: nobody answers, or that it fails. */
static int name_fail(struct run *r)
{
	const struct ulnet_name_answer failed = {
		.status = chance(r, 50) ? -EAGAIN : -ENOENT,
		.why = "it is not known",
	};

	r->name_failures++;
	return lnet_sim_name_set(r->sim, "servers",
				 chance(r, 50) ? &failed : NULL,
				 rnd(r, 2 * SEC));
}

/* The name stands for the first server, and some of the others. */
static void name_set(struct run *r)
{
	struct ulnet_address addresses[SERVERS] = { 0 };
	struct ulnet_name_answer a = { .addresses = addresses };

	if (r->named && r->faults && chance(r, 30)) {
		if (name_fail(r))
			lnet_sim_fail(r->sim, "no memory for a name");
		return;
	}
	for (unsigned int i = 0; i < r->n; i++) {
		if (i && r->faults && chance(r, 40))
			continue;
		addresses[a.n].nid = r->servers[i].nid;
		addresses[a.n++].weight = (uint16_t)rnd(r, 5);
	}
	if (r->named && lnet_sim_name_set(r->sim, "servers", &a,
					  rnd(r, r->faults ? 5 * SEC : SEC)))
		lnet_sim_fail(r->sim, "no memory for a name");
}

static void network_trouble(struct run *r, struct server *s)
{
	struct caller *m = &r->callers[rnd(r, CALLERS)];
	struct ulnet_sim_link link = { .latency = rnd(r, 5 * MS),
				       .jitter = rnd(r, 5 * MS),
				       .reorder_window = 5 * MS,
				       .connect = rnd(r, 2) * MS };

	link_faults(r->sim, chance(r, 20), &link);
	if (chance(r, 50))
		links_set(&r->links, r->sim, m->nid, s->nid, &link);
	else
		links_set(&r->links, r->sim, s->nid, m->nid, &link);
	if (chance(r, 30))
		split(&r->splits, r->sim, m->nid, s->nid, rnd(r, 8 * SEC));
	if (chance(r, 20))
		lnet_sim_cut(r->sim, &m->nid, &s->nid);
}

static void trouble(void *arg)
{
	struct run *r = arg;
	struct server *s = any_victim(r);

	if (!r->faults)
		return;
	if (s) {
		network_trouble(r, s);
		s->delay = chance(r, 30) ? rnd(r, 2 * SEC) : rnd(r, 5 * MS);
		if (chance(r, 10))
			at(r, 0, server_crash, s);
		if (chance(r, 10))
			server_drain(s);
	}
	if (chance(r, 3))
		caller_crash(&r->callers[rnd(r, CALLERS)]);
	if (r->pauses && chance(r, 15))
		caller_pause(&r->callers[rnd(r, CALLERS)]);
	if (chance(r, 3))
		set_close(&r->callers[rnd(r, CALLERS)]);
	if (chance(r, 20))
		name_set(r);
	at(r, rnd(r, SEC), trouble, r);
}

/* ---- what must hold ---- */

/* Is its caller still the same one? */
static bool call_counts(const struct call *c)
{
	return c->life && c->life == c->from->life;
}

static void outcome_check(const struct call *c)
{
	struct lnet_sim *sim = c->r->sim;
	const struct ulrpc_outcome *o = &c->o.call;
	bool ok = o->cause == ULRPC_CAUSE_OK;

	if (c->took > c->deadline * US && c->took > c->stood)
		lnet_sim_fail(sim, "call %u: ends after its deadline",
			      c->index);
	if (o->execution == ULRPC_NOT_EXECUTED && c->executed)
		lnet_sim_fail(sim, "call %u: was executed, and is told not",
			      c->index);
	if (o->execution == ULRPC_EXECUTED && !c->executed)
		lnet_sim_fail(sim, "call %u: was not executed", c->index);
	if (ok && !lnet_nid_eq(&c->o.server, &c->r->servers[c->by].nid))
		lnet_sim_fail(sim, "call %u: another server has answered",
			      c->index);
}

static void call_check(const struct call *c)
{
	struct lnet_sim *sim = c->r->sim;
	const struct ulrpc_outcome *o = &c->o.call;
	bool free = c->deadline >= LONG && !c->cancel && call_counts(c);

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
	if (free && (c->last || c->semantics == ULRPC_IDEMPOTENT))
		lnet_sim_fail(sim, "call %u: is lost, as %s (%s)", c->index,
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
	c->semantics = chance(r, 50) ? ULRPC_IDEMPOTENT : ULRPC_AT_MOST_ONCE;
	c->last = i >= CALLS - LAST;
	c->keyed = chance(r, 20);
	c->cancel = !c->last && chance(r, 10);
	c->lends = chance(r, 25);
	c->sink = chance(r, 50);
	c->deadline = c->last || chance(r, 70) ? LONG : 1 + rnd(r, 3 * SECONDS);
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

static int add_node(struct run *r, unsigned int *index_p, struct ulnet_nid *nid,
		    lnet_sim_start_fn start, void *arg)
{
	int rc;

	cluster_nids(nid, 1, *index_p);
	rc = cluster_node_add(r->sim, nid, 1, NULL, start, arg);
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
	r->pauses = has_pauses(r->sim);
	if (r->pauses)
		lnet_sim_apart(r->sim);
	for (unsigned int i = 0; i < r->n && rc >= 0; i++) {
		struct server *s = &r->servers[i];

		s->r = r;
		s->index = i;
		rc = add_node(r, &s->index, &s->nid, start_server, s);
		r->nids[i] = s->nid;
	}
	name_set(r);
	for (unsigned int i = 0; i < CALLERS && rc >= 0; i++) {
		struct caller *m = &r->callers[i];

		caller_draw(r, m);
		m->index = r->n + i;
		rc = add_node(r, &m->index, &m->nid, start_caller, m);
	}
	for (unsigned int i = 0; i < CALLS; i++)
		call_draw(r, i);
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
	lnet_sim_run(r->sim, 15 * SEC);
	r->faults = false;
	splits_heal(&r->splits);
	links_heal(&r->links, r->sim);
	for (unsigned int i = 0; i < r->n; i++)
		r->servers[i].delay = 0;
	name_set(r);
	/* Nodes come again, and LNet gives up what faults have left in it. */
	lnet_sim_run(r->sim, 60 * SEC);
	for (unsigned int i = CALLS - LAST; i < CALLS; i++)
		at(r, rnd(r, SEC), call_make, &r->calls[i]);
	lnet_sim_run(r->sim, 60 * SEC);
	for (unsigned int i = 0; i < CALLS; i++)
		call_check(&r->calls[i]);
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
	tell(arg, "", "crashes", r->crashes);
	tell(arg, "", "pauses", r->npauses);
	tell(arg, "", "failures of the name", r->name_failures);
}

unsigned int scenario_free(struct run *r)
{
	struct later *l;

	for (unsigned int i = 0; i < CALLS; i++) {
		ulrpc_replicas_call_put(r->calls[i].handle);
		/* of a caller that has crashed */
		ulrpc_bulk_close(r->calls[i].bulk, NULL, NULL);
	}
	while ((l = r->laters)) {
		r->laters = l->next;
		free(l);
	}
	free(r);
	return 0;
}
