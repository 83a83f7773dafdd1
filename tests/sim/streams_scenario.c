/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams among the nodes of a random cluster (ulrpc_streams(7)), under every
 * fault of the network, and with nodes that crash and come again. What must
 * hold, and who checks it:
 *
 * Messages come in the order in which they were sent, each once, and with their
 * contents.
 *	take()
 * A stream ends once for each side that has not crashed. What its outcome says
 * of messages is true: those that were delivered have been read, the others
 * have not; a stream that has ended well has lost none.
 *	on_ended(), on_served_ended(), flow_check()
 * Metadata that come with an opening, or with the end of a stream that its
 * service has ended, are those of this stream, and so are details of failures.
 *	check_metadata(), check_details()
 * A reader that is slow, or does not read, stops no other stream; nobody sends
 * what has no room, or a frame that does not belong.
 *	flow_check()
 * A stream of a name goes to one of its servers, and its outcome says to which.
 *	flow_check()
 * A server at whose host nobody listens is given up in seconds, one that is
 * only silent when patience is at its end.
 *	server_leaves()
 * Once faults have ended, streams end well; and nothing is left in the end.
 *	scenario_play(), by the sanitizers
 * When who has begun a tree of streams and calls gives it up, all of it ends:
 * at once if there are no faults, else by the deadline that all inherit.
 *	tree_check()
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim_keys.h"
#include "tests/sim/streams_run.h"

const unsigned int scenario_seeds_long = 1000;
const uint64_t scenario_kept[] = { 436, 1759, 1909, 0 };

static const char *const kinds[KINDS] = { "list", "sum", "echo", "drop" };

/* ---- messages ---- */

static uint64_t pattern(const struct flow *f, uint32_t number)
{
	return ((uint64_t)f->index << 32 | number) * 0x9e3779b97f4a7c15;
}

/* Sends what is left, as far as possible. Returns whether all was sent. */
static bool give(struct flow *f, struct ulrpc_stream *stream, struct way *w)
{
	static char body[ULRPC_STREAM_LONG_MAX];

	while (w->sent < w->total) {
		pattern_fill(body, f->size, pattern(f, w->sent));
		if (ulrpc_stream_send(stream, body, f->size))
			return false;
		w->sent++;
	}
	return true;
}

/* Reads @most messages. Returns what ulrpc_stream_next() has returned. */
static int take(struct flow *f, struct ulrpc_stream *stream, struct way *w,
		uint32_t most)
{
	const void *body;
	size_t length;
	int rc = 1;

	while (most-- && (rc = ulrpc_stream_next(stream, &body, &length)) == 1)
		if (length != f->size ||
		    !pattern_holds(body, f->size, pattern(f, w->read++)))
			lnet_sim_fail(f->r->sim,
				      "stream %u: message %u is another one",
				      f->index, w->read - 1);
	return rc;
}

/* ---- metadata ---- */

/* What every other stream is opened with: half of them with their number, the
 * others all alike. */
static uint32_t opening_of(const struct flow *f)
{
	return f->index % 4 ? f->index : UINT32_MAX;
}

static struct ulrpc_context *context_of(const struct flow *f)
{
	const uint32_t number = opening_of(f);
	struct ulrpc_context *c = NULL;

	if (f->index % 2)
		return NULL;
	if (ulrpc_context_new(&c) ||
	    ulrpc_context_add(c, "flow-bin", &number, sizeof(number)))
		lnet_sim_fail(f->r->sim, "no memory for metadata");
	return c;
}

/* Have come with @stream: @number, or, if @none, no metadata? */
static void check_metadata(const struct flow *f, struct ulrpc_stream *stream,
			   uint32_t number, bool none)
{
	struct ulrpc_metadata m;
	int rc = ulrpc_stream_find(stream, "flow-bin", &m);

	if (none ? rc != -ENOENT
		 : rc || m.length != sizeof(number) ||
			    memcmp(m.value, &number, sizeof(number)))
		lnet_sim_fail(f->r->sim, "stream %u: wrong metadata", f->index);
}

/* ---- failures ---- */

#define TYPE "test.Flow"

/* Ends @stream as @f is to end. */
static void served_end(const struct flow *f, struct ulrpc_stream *stream)
{
	const struct ulrpc_details details = { TYPE, &f->index,
					       sizeof(f->index) };

	if (!f->fails) {
		ulrpc_stream_end(stream, 0, NULL);
		return;
	}
	/* It may have ended otherwise. */
	(void)ulrpc_stream_add_details(stream, &details);
	ulrpc_stream_end_status(stream, ULRPC_STATUS_NOT_FOUND, kinds[f->kind]);
}

static void check_details(const struct flow *f, struct ulrpc_stream *stream,
			  const struct ulrpc_stream_outcome *o)
{
	struct ulrpc_details d;

	if (!f->fails || strcmp(o->text, kinds[f->kind]) ||
	    ulrpc_stream_status_of(o) != ULRPC_STATUS_NOT_FOUND ||
	    ulrpc_stream_details(stream, &d) || strcmp(d.type, TYPE) ||
	    d.length != sizeof(f->index) ||
	    memcmp(d.bytes, &f->index, sizeof(f->index)))
		lnet_sim_fail(f->r->sim, "stream %u: wrong details", f->index);
}

/* ---- what leads to others ---- */

/* With keys, some nodes ask for a flavour, and others take what services want.
 */
static enum ulrpc_flavour flavour_of(const struct member *m)
{
	unsigned int i = (keys_seed(m->r->sim) + m->index) % 4;

	return m->r->keys && i
		       ? (enum ulrpc_flavour)(ULRPC_FLAVOUR_AUTH + i - 1)
		       : ULRPC_FLAVOUR_DEFAULT;
}

struct ulrpc_streams *streams_to(struct member *m, const struct member *to)
{
	const unsigned int k = to ? to->index : NODES;
	struct ulrpc_streams_conf conf;

	if (m->to[k])
		return m->to[k];
	ulrpc_streams_conf_init(&conf);
	if (to) {
		conf.client.nids = to->nids;
		conf.client.nnids = m->r->nnids;
	} else {
		conf.client.target = "flows";
	}
	conf.client.service = "flow";
	conf.client.flavour = flavour_of(m);
	conf.window_messages = m->r->window;
	conf.window_bytes = has_long(m->r->sim) ? 1 << 20 : 0;
	conf.patience = PATIENCE;
	if (ulrpc_streams_open(m->rpc, &conf, &m->to[k]))
		lnet_sim_fail(m->r->sim, "streams cannot be opened");
	return m->to[k];
}

struct ulrpc_client *calls_to(struct member *m, const struct member *to)
{
	struct ulrpc_client **client = &m->calls[to->index];
	struct ulrpc_client_conf conf;

	if (m->calls[to->index])
		return m->calls[to->index];
	ulrpc_client_conf_init(&conf);
	conf.nids = to->nids;
	conf.nnids = m->r->nnids;
	conf.service = "flow";
	conf.flavour = flavour_of(m);
	if (ulrpc_client_open(m->rpc, &conf, client))
		lnet_sim_fail(m->r->sim, "a client cannot be opened");
	return *client;
}

/* ---- the service ---- */

static void on_served_ended(void *arg, struct ulrpc_stream *stream,
			    const struct ulrpc_stream_outcome *o)
{
	struct flow *f = arg;

	f->served_ended++;
	f->served_outcome = *o;
	if (f->served_ended > 1)
		lnet_sim_fail(f->r->sim, "stream %u ends twice", f->index);
	f->served = NULL;
	ulrpc_stream_put(stream);
}

static void served_go(void *arg, struct ulrpc_stream *stream)
{
	struct flow *f = arg;
	int rc = -1;

	if (f->kind != KIND_DROP)
		rc = take(f, stream, &f->up, UINT32_MAX);
	if (f->kind == KIND_ECHO)
		f->down.total = f->up.read;
	if (!give(f, stream, &f->down))
		return;
	if (rc == 0 || f->kind == KIND_LIST)
		served_end(f, stream);
}

static void on_stream(void *arg, struct ulrpc_stream *stream, const void *body,
		      size_t length)
{
	struct member *m = arg;
	struct flow *f;
	struct ulrpc_stream_events events = {
		.readable = served_go,
		.writable = served_go,
		.ended = on_served_ended,
	};
	uint32_t index;

	if (length != sizeof(index)) {
		lnet_sim_fail(m->r->sim, "a stream is opened with %zu bytes",
			      length);
		return;
	}
	memcpy(&index, body, sizeof(index));
	f = &m->r->flows[index];
	if (f->gots++)
		lnet_sim_fail(m->r->sim, "stream %u is opened twice", index);
	if (!f->named && f->to != m)
		lnet_sim_fail(m->r->sim, "stream %u comes to node %u", index,
			      m->index);
	m->r->served_named += f->named;
	f->to = m;
	f->served = stream;
	f->served_life = m->life;
	events.arg = f;
	check_metadata(f, stream, opening_of(f), f->index % 2);
	if (ulrpc_stream_add(stream, "flow-bin", &index, sizeof(index)))
		lnet_sim_fail(m->r->sim, "no memory for metadata");
	ulrpc_stream_watch(stream, &events);
	served_go(f, stream);
}

static int start(void *arg, unsigned int index, struct lnet *node)
{
	struct member *m = arg;
	struct ulrpc_stream_method methods[KINDS + 1];
	const struct ulrpc_method_conf call = { .name = "grow-call",
						.handler = grow_call,
						.arg = m,
						.run = ULRPC_RUN_INLINE };
	struct ulrpc_stream_service_conf conf;
	struct ulrpc_conf rpc;
	int rc;

	(void)index;
	for (int i = 0; i < KINDS; i++)
		methods[i] = (struct ulrpc_stream_method){
			.name = kinds[i],
			.handler = on_stream,
			.arg = m,
			.run = ULRPC_RUN_INLINE,
		};
	methods[KINDS] = (struct ulrpc_stream_method){
		.name = "grow",
		.handler = grow,
		.arg = m,
		.run = ULRPC_RUN_INLINE,
	};
	ulrpc_stream_service_conf_init(&conf);
	conf.service.name = "flow";
	conf.service.methods = &call;
	conf.service.nmethods = 1;
	conf.methods = methods;
	conf.nmethods = KINDS + 1;
	conf.window_messages = m->r->window;
	conf.window_bytes = has_long(m->r->sim) ? 1 << 20 : 0;
	m->life++;
	m->paused = 0;
	memset(m->to, 0, sizeof(m->to));
	memset(m->calls, 0, sizeof(m->calls));
	ulrpc_conf_init(&rpc);
	if (spreads(m->r->sim))
		rpc.spread = ULRPC_SPREAD_CLIENTS;
	rpc.keys = m->r->keys;
	rc = ulrpc_open(node, &rpc, &m->rpc);
	return rc ? rc : ulrpc_stream_serve(m->rpc, &conf, NULL);
}

/* ---- clients ---- */

static void on_ended(void *arg, struct ulrpc_stream *stream,
		     const struct ulrpc_stream_outcome *o)
{
	struct flow *f = arg;
	bool failed;

	if (f->ended++)
		lnet_sim_fail(f->r->sim, "stream %u ends twice", f->index);
	f->outcome = *o;
	f->r->causes[o->cause]++;
	f->stream = NULL;
	/* The opening may have been refused with that cause, too. */
	failed = o->cause == ULRPC_CAUSE_HANDLER &&
		 o->execution == ULRPC_EXECUTED;
	if (o->cause == ULRPC_CAUSE_OK || failed)
		check_metadata(f, stream, f->index, false);
	if (failed)
		check_details(f, stream, o);
	ulrpc_stream_put(stream);
}

static void on_readable(void *arg, struct ulrpc_stream *stream)
{
	struct flow *f = arg;

	/* An odd one is slow: flow_step() reads it. */
	if (f->index % 2 == 0)
		take(f, stream, &f->down, UINT32_MAX);
}

static void on_writable(void *arg, struct ulrpc_stream *stream)
{
	struct flow *f = arg;

	if (give(f, stream, &f->up))
		(void)ulrpc_stream_close_send(stream);
}

static void flow_step(void *arg)
{
	struct flow *f = arg;

	if (!f->stream || f->life != f->from->life ||
	    after_pause(f->from, flow_step, f))
		return;
	if (f->cancel && chance(f->r, 10))
		ulrpc_stream_cancel(f->stream);
	take(f, f->stream, &f->down, 1 + (uint32_t)rnd(f->r, 20));
	at(f->r, rnd(f->r, 50 * MS), flow_step, f);
}

static uint64_t deadline_of(const struct flow *f)
{
	if (f->lost)
		return 100 * SECONDS;
	return f->last ? 600 * SECONDS : (1 + rnd(f->r, 60)) * SECONDS;
}

void flow_open(void *arg)
{
	struct flow *f = arg;
	struct ulrpc_streams *streams;
	struct ulrpc_stream_conf conf = {
		.deadline = deadline_of(f),
		.events = { on_readable, on_writable, on_ended, f },
	};

	if (!f->from->rpc || after_pause(f->from, flow_open, f) ||
	    !(streams = streams_to(f->from, f->named ? NULL : f->to)))
		return;
	f->life = f->from->life;
	conf.context = context_of(f);
	if (ulrpc_stream_open(streams, kinds[f->kind], &f->index,
			      sizeof(f->index), &conf, &f->stream)) {
		lnet_sim_fail(f->r->sim, "stream %u cannot be opened",
			      f->index);
		ulrpc_context_free(conf.context);
		return;
	}
	ulrpc_context_free(conf.context);
	on_writable(f, f->stream);
	at(f->r, 20 * MS, flow_step, f);
}

/* ---- what must hold ---- */

static void side_check(const struct flow *f, const char *side,
		       const struct ulrpc_stream_outcome *o,
		       const struct way *out, const struct way *in)
{
	struct lnet_sim *sim = f->r->sim;

	if (o->sent != out->sent || o->received != in->read)
		lnet_sim_fail(sim,
			      "stream %u, %s: sent %u and read %u, and is told "
			      "%u and %u",
			      f->index, side, out->sent, in->read,
			      (unsigned int)o->sent, (unsigned int)o->received);
	if (o->delivered > out->read || out->read > o->sent - o->undelivered)
		lnet_sim_fail(
			sim,
			"stream %u, %s: %u of %u were read, and it is told "
			"%u, and %u not",
			f->index, side, out->read, out->sent,
			(unsigned int)o->delivered,
			(unsigned int)o->undelivered);
	if (o->cause == ULRPC_CAUSE_BAD_REQUEST ||
	    o->cause == ULRPC_CAUSE_BAD_REPLY ||
	    o->cause == ULRPC_CAUSE_NO_METHOD ||
	    (f->last && f->kind != KIND_DROP && o->cause != ULRPC_CAUSE_OK))
		lnet_sim_fail(sim, "stream %u, %s: ends with %s", f->index,
			      side, ulrpc_cause_name(o->cause));
	if (o->execution == ULRPC_NOT_EXECUTED && f->gots)
		lnet_sim_fail(sim, "stream %u: was opened, and is told not",
			      f->index);
}

static bool is_of(const struct member *m, const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < m->r->nnids; i++)
		if (lnet_nid_eq(&m->nids[i], nid))
			return true;
	return false;
}

static void flow_check(const struct flow *f)
{
	struct lnet_sim *sim;

	if (!f->r)
		return; /* no server has left */
	sim = f->r->sim;
	if (f->life && f->life == f->from->life && f->ended != 1)
		lnet_sim_fail(sim, "stream %u: ends %u times", f->index,
			      f->ended);
	if (f->gots && f->served_life == f->to->life && f->served_ended != 1)
		lnet_sim_fail(sim, "stream %u: ends %u times for its service",
			      f->index, f->served_ended);
	if (f->ended)
		side_check(f, "client", &f->outcome, &f->up, &f->down);
	if (f->ended && f->outcome.execution == ULRPC_EXECUTED && f->gots &&
	    !is_of(f->to, &f->outcome.server))
		lnet_sim_fail(sim, "stream %u: says that another server has it",
			      f->index);
	if (f->served_ended)
		side_check(f, "service", &f->served_outcome, &f->down, &f->up);
	if (f->ended && f->outcome.cause == ULRPC_CAUSE_OK &&
	    (f->down.read != f->down.sent ||
	     (f->kind == KIND_ECHO && f->down.read != f->up.sent)))
		lnet_sim_fail(sim, "stream %u: ends well without all messages",
			      f->index);
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

static void flow_draw(struct run *r, unsigned int i)
{
	static const uint32_t sizes[] = { 0,   8,    64,
					  500, 3000, ULRPC_STREAM_MESSAGE_MAX };
	struct flow *f = &r->flows[i];
	uint32_t n;

	f->r = r;
	f->index = i;
	f->from = &r->members[rnd(r, r->n)];
	f->to = &r->members[rnd(r, r->n)];
	f->named = r->named && chance(r, 50);
	if (f->named)
		f->to = NULL;
	f->kind = (enum kind)rnd(r, KINDS);
	f->size = sizes[rnd(r, sizeof(sizes) / sizeof(sizes[0]))];
	f->last = i >= FLOWS - LAST;
	f->cancel = !f->last && chance(r, 25);
	f->fails = !f->last && i % 5 == 0;
	n = (uint32_t)rnd(r, f->size > 3000 ? 20 : 300);
	if (has_long(r->sim) && f->size == ULRPC_STREAM_MESSAGE_MAX) {
		f->size = i % 2 ? 100000 : ULRPC_STREAM_LONG_MAX;
		n /= 3;
	}
	if (f->kind == KIND_LIST)
		f->down.total = n;
	else
		f->up.total = n;
	if (f->last && f->kind == KIND_DROP)
		f->kind = KIND_SUM;
}

static int set_up(struct run *r)
{
	int rc = 0;

	r->n = 1 + (unsigned int)rnd(r, NODES);
	r->nnids = 1 + (unsigned int)rnd(r, RAILS);
	r->window = chance(r, 50) ? 0 : 1 + (uint32_t)rnd(r, 10);
	r->faults = chance(r, 85);
	r->named = chance(r, 40);
	r->pauses = has_pauses(r->sim);
	if (r->pauses)
		lnet_sim_apart(r->sim);
	if (has_keys(r->sim))
		r->keys = sim_keys_new(r->sim);
	for (unsigned int i = 0; i < r->n && rc >= 0; i++) {
		struct member *m = &r->members[i];

		m->r = r;
		m->index = i;
		cluster_nids(m->nids, r->nnids, i);
		rc = cluster_node_add(r->sim, m->nids, r->nnids, NULL, start,
				      m);
	}
	name_set(r);
	for (unsigned int i = 0; i < FLOWS; i++)
		flow_draw(r, i);
	for (unsigned int i = 0; i < TREES; i++)
		r->trees[i] = (struct tree){ .r = r,
					     .index = i,
					     .last = i >= TREES / 2 };
	return rc < 0 ? rc : 0;
}

static void keys_wear(void *arg)
{
	struct run *r = arg;

	for (unsigned int i = 0; i < r->n; i++)
		r->renewed += sim_keys_wear(r->members[i].rpc);
	if (r->faults)
		at(r, 100 * MS, keys_wear, r);
}

int scenario_play(struct run *r)
{
	int rc = set_up(r);

	if (rc)
		return rc;
	at(r, rnd(r, SEC), trouble, r);
	for (unsigned int i = 0; i < FLOWS - LAST; i++)
		at(r, rnd(r, 10 * SEC), flow_open, &r->flows[i]);
	for (unsigned int i = 0; i < TREES / 2; i++)
		at(r, rnd(r, 10 * SEC), tree_open, &r->trees[i]);
	if (r->keys && keys_seed(r->sim) % 2)
		at(r, 0, keys_wear, r);
	lnet_sim_run(r->sim, 15 * SEC);
	trouble_end(r);
	/* Nodes come again, and LNet gives up what faults have left in it. */
	lnet_sim_run(r->sim, 60 * SEC);
	for (unsigned int i = FLOWS - LAST; i < FLOWS; i++)
		at(r, rnd(r, SEC), flow_open, &r->flows[i]);
	for (unsigned int i = TREES / 2; i < TREES; i++)
		at(r, rnd(r, SEC), tree_open, &r->trees[i]);
	/* The longest deadline passes, and clients that are silent are gone. */
	lnet_sim_run(r->sim, 240 * SEC);
	server_leaves(r);
	for (unsigned int i = 0; i < FLOWS + LOST; i++)
		flow_check(&r->flows[i]);
	for (unsigned int i = 0; i < TREES; i++)
		tree_check(&r->trees[i]);
	return 0;
}

void scenario_tell(const struct run *r, scenario_tell_fn tell, void *arg)
{
	for (int i = 0; i < ULRPC_CAUSE_COUNT; i++)
		tell(arg, "streams that ended with ",
		     ulrpc_cause_name((enum ulrpc_cause)i), r->causes[i]);
	tell(arg, "", "streams of the name that a service has got",
	     r->served_named);
	tell(arg, "", "streams whose server was gone", r->gone);
	tell(arg, "", "streams whose server was silent", r->silent);
	tell(arg, "", "crashes", r->crashes);
	tell(arg, "", "pauses", r->npauses);
	tell(arg, "", "NIs down", r->nis_down);
	tell(arg, "", "changes of rules", r->rules_changed);
	tell(arg, "", "changes of the name", r->renamed);
	tell(arg, "", "connections with renewed keys", r->renewed);
	for (int i = 0; i < LNET_FAULT_KINDS; i++)
		tell(arg, "", rules_names[i], r->rules.struck[i]);
	tell(arg, "", "parts of trees", r->twigs);
}

unsigned int scenario_free(struct run *r)
{
	for (unsigned int i = 0; i < FLOWS + LOST; i++) {
		ulrpc_stream_put(r->flows[i].stream);
		ulrpc_stream_put(r->flows[i].served);
	}
	for (unsigned int i = 0; i < TREES; i++)
		tree_free(&r->trees[i]);
	ulrpc_keys_put(r->keys);
	free(r);
	return 0;
}
