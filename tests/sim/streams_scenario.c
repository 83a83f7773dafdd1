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
#include "tests/sim/cluster.h"
#include "tests/sim/scenario.h"
#include "ulnet/context.h"
#include "ulnet/stream.h"

#define NODES 3 /* at most */
#define RAILS 3 /* of a node */
#define FLOWS 60
#define LAST  12 /* of them begin when faults have ended */

#define TREES 8
#define TWIGS 6 /* of a tree, at most */

#define SECONDS UINT64_C(1000000) /* us */

const unsigned int scenario_seeds_long = 1000;
const uint64_t scenario_kept[] = { 0 };

enum kind { KIND_LIST, KIND_SUM, KIND_ECHO, KIND_DROP, KINDS };
static const char *const kinds[KINDS] = { "list", "sum", "echo", "drop" };

/* Messages in one direction. */
struct way {
	uint32_t total; /* that are to be sent */
	uint32_t sent, read;
};

/* A stream, as both programs see it. */
struct flow {
	struct run *r;
	struct member *from, *to;
	unsigned int index;
	enum kind kind;
	uint32_t size;
	bool last;   /* it must end well */
	bool cancel; /* by its client, after a while */
	bool fails;  /* its service ends it with a failure */
	struct way up, down;

	struct ulrpc_stream *stream; /* NULL: not opened, or given back */
	unsigned int life;	     /* of the client, when it was opened */
	unsigned int ended;
	struct ulrpc_stream_outcome outcome;

	struct ulrpc_stream *served;
	unsigned int served_life;
	unsigned int gots, served_ended;
	struct ulrpc_stream_outcome served_outcome;
};

/* A stream or a request of a tree, at the node that serves it. */
struct twig {
	struct tree *of;
	struct member *at;
	unsigned int life; /* of the node */
	bool live;	   /* its handler has not been told of an end */
	struct ulrpc_stream *served;
	struct ulrpc_request *request;
	struct ulrpc_context *context; /* under @served, or @request */
	struct ulrpc_stream *made;     /* for it; NULL: none, or a call */
};

struct tree {
	struct run *r;
	struct member *root;
	unsigned int index, life;
	bool last; /* there are no faults while it grows */
	struct ulrpc_stream *stream;
	struct ulrpc_call *call;
	unsigned int ntwigs;
	struct twig twigs[TWIGS];
};

struct member {
	struct run *r;
	unsigned int index;
	unsigned int life; /* how often it was started */
	struct ulrpc *rpc; /* NULL: crashed */
	struct ulrpc_streams *to[NODES];
	struct ulrpc_client *calls[NODES];
	struct ulnet_nid nids[RAILS];
};

struct run {
	struct lnet_sim *sim;
	unsigned int n, nnids;
	uint32_t window;
	bool faults; /* there may be some */
	struct member members[NODES];
	struct flow flows[FLOWS];
	struct tree trees[TREES];
	struct splits splits;
	struct links links;
	uint64_t causes[ULRPC_CAUSE_COUNT], crashes, twigs;
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

/* ---- messages ---- */

static uint64_t pattern(const struct flow *f, uint32_t number)
{
	return ((uint64_t)f->index << 32 | number) * 0x9e3779b97f4a7c15;
}

/* Sends what is left, as far as possible. Returns whether all was sent. */
static bool give(struct flow *f, struct ulrpc_stream *stream, struct way *w)
{
	char body[ULRPC_STREAM_MESSAGE_MAX];

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

/* ---- trees ---- */

static struct ulrpc_streams *streams_to(struct member *m, struct member *to)
{
	struct ulrpc_streams **streams = &m->to[to->index];
	struct ulrpc_streams_conf conf;

	if (*streams != NULL)
		return m->to[to->index];
	ulrpc_streams_conf_init(&conf);
	conf.client.nids = to->nids;
	conf.client.nnids = m->r->nnids;
	conf.client.service = "flow";
	conf.window_messages = m->r->window;
	conf.patience = 20 * SECONDS;
	if (ulrpc_streams_open(m->rpc, &conf, streams))
		lnet_sim_fail(m->r->sim, "streams cannot be opened");
	return *streams;
}

static struct ulrpc_client *calls_to(struct member *m, struct member *to)
{
	struct ulrpc_client **client = &m->calls[to->index];
	struct ulrpc_client_conf conf;

	if (m->calls[to->index])
		return m->calls[to->index];
	ulrpc_client_conf_init(&conf);
	conf.nids = to->nids;
	conf.nnids = m->r->nnids;
	conf.service = "flow";
	if (ulrpc_client_open(m->rpc, &conf, client))
		lnet_sim_fail(m->r->sim, "a client cannot be opened");
	return *client;
}

/* What was made for @t has ended: so does @t, unless it has. */
static void twig_end(struct twig *t)
{
	struct ulrpc_request *request = t->request;

	if (t->served)
		ulrpc_stream_end(t->served, -EIO, NULL);
	if (!request)
		return;
	t->request = NULL;
	t->live = false;
	ulrpc_fail(request, -EIO);
}

static void on_made_stream(void *arg, struct ulrpc_stream *stream,
			   const struct ulrpc_stream_outcome *o)
{
	struct twig *t = arg;

	(void)o;
	t->made = NULL;
	ulrpc_stream_put(stream);
	twig_end(t);
}

static void on_made_call(void *arg, const struct ulrpc_outcome *o,
			 const void *reply, size_t length)
{
	(void)o, (void)reply, (void)length;
	twig_end(arg);
}

static int stream_of_tree(struct member *from, const struct tree *tree,
			  const struct ulrpc_stream_conf *conf,
			  struct ulrpc_stream **stream)
{
	struct run *r = from->r;
	struct member *to = &r->members[rnd(r, r->n)];

	return ulrpc_stream_open(streams_to(from, to), "grow", &tree->index,
				 sizeof(tree->index), conf, stream);
}

static int call_of_tree(struct member *from, const struct tree *tree,
			const struct ulrpc_call_conf *conf, ulrpc_done_fn done,
			void *arg, struct ulrpc_call **call)
{
	struct run *r = from->r;
	struct member *to = &r->members[rnd(r, r->n)];

	return ulrpc_call(calls_to(from, to), ulrpc_method("grow-call"),
			  &tree->index, sizeof(tree->index), conf, done, arg,
			  call);
}

/* Makes a stream, or a call, for a twig. It has no deadline of its own. */
static void twig_make(void *arg)
{
	struct twig *t = arg;
	const struct ulrpc_stream_conf stream = {
		.deadline = ULRPC_NEVER,
		.events = { .ended = on_made_stream, .arg = t },
		.context = t->context,
	};
	const struct ulrpc_call_conf call = { .deadline = ULRPC_NEVER,
					      .context = t->context };
	int rc;

	if (!t->live || t->life != t->at->life || t->of->ntwigs == TWIGS)
		return;
	if (chance(t->of->r, 50))
		rc = stream_of_tree(t->at, t->of, &stream, &t->made);
	else
		rc = call_of_tree(t->at, t->of, &call, on_made_call, t, NULL);
	if (rc && rc != -ECANCELED)
		lnet_sim_fail(t->of->r->sim, "tree %u does not grow: %s",
			      t->of->index, strerror(-rc));
}

static struct twig *twig_new(struct member *m, const void *body, size_t length)
{
	struct run *r = m->r;
	struct tree *tree;
	struct twig *t;
	unsigned int index = TREES;

	if (length == sizeof(index))
		memcpy(&index, body, sizeof(index));
	if (index >= TREES || r->trees[index].ntwigs == TWIGS) {
		lnet_sim_fail(r->sim, "tree %u gets too much", index);
		return NULL;
	}
	tree = &r->trees[index];
	t = &tree->twigs[tree->ntwigs++];
	*t = (struct twig){
		.of = tree, .at = m, .life = m->life, .live = true
	};
	r->twigs++;
	if (ulrpc_context_new(&t->context))
		lnet_sim_fail(r->sim, "no memory for a context");
	return t;
}

static void on_twig_ended(void *arg, struct ulrpc_stream *stream,
			  const struct ulrpc_stream_outcome *o)
{
	struct twig *t = arg;

	(void)o;
	t->live = false;
	t->served = NULL;
	ulrpc_stream_put(stream);
}

static void grow(void *arg, struct ulrpc_stream *stream, const void *body,
		 size_t length)
{
	struct twig *t = twig_new(arg, body, length);
	const struct ulrpc_stream_events events = { .ended = on_twig_ended,
						    .arg = t };

	if (!t) {
		ulrpc_stream_put(stream);
		return;
	}
	t->served = stream;
	if (ulrpc_context_under_stream(t->context, stream))
		lnet_sim_fail(t->of->r->sim, "a context is under no stream");
	/* outside of turns, where clients may have to be opened */
	at(t->of->r, rnd(t->of->r, 20 * MS), twig_make, t);
	ulrpc_stream_watch(stream, &events);
}

static void on_twig_canceled(void *arg, struct ulrpc_request *request)
{
	struct twig *t = arg;

	t->live = false;
	t->request = NULL;
	ulrpc_fail(request, -ECANCELED);
}

static void grow_call(void *arg, struct ulrpc_request *request,
		      const void *body, size_t length)
{
	struct twig *t = twig_new(arg, body, length);

	if (!t || ulrpc_request_on_cancel(request, on_twig_canceled, t)) {
		if (t)
			t->live = false;
		ulrpc_fail(request, -ECANCELED);
		return;
	}
	t->request = request;
	if (ulrpc_context_under(t->context, request))
		lnet_sim_fail(t->of->r->sim, "a context is under no request");
	at(t->of->r, rnd(t->of->r, 20 * MS), twig_make, t);
}

static void on_root_stream(void *arg, struct ulrpc_stream *stream,
			   const struct ulrpc_stream_outcome *o)
{
	struct tree *tree = arg;

	(void)o;
	tree->stream = NULL;
	ulrpc_stream_put(stream);
}

static void on_root_call(void *arg, const struct ulrpc_outcome *o,
			 const void *reply, size_t length)
{
	(void)arg, (void)o, (void)reply, (void)length;
}

/* Nobody has begun @tree any more: nothing of it goes on. */
static void tree_check(void *arg)
{
	const struct tree *tree = arg;

	for (unsigned int i = 0; i < tree->ntwigs; i++) {
		const struct twig *t = &tree->twigs[i];

		if (t->live && t->life == t->at->life && t->at->rpc)
			lnet_sim_fail(tree->r->sim,
				      "tree %u: part %u goes on at node %u, "
				      "and its root has given up",
				      tree->index, i, t->at->index);
	}
}

static void tree_give_up(void *arg)
{
	struct tree *tree = arg;

	if (tree->life != tree->root->life || !tree->root->rpc)
		return;
	if (tree->stream)
		ulrpc_stream_cancel(tree->stream);
	if (tree->call)
		ulrpc_cancel(tree->call);
	if (tree->last)
		at(tree->r, 20 * SEC, tree_check, tree);
}

static void tree_open(void *arg)
{
	struct tree *tree = arg;
	struct run *r = tree->r;
	uint64_t deadline = tree->last ? ULRPC_NEVER : 60 * SECONDS;
	const struct ulrpc_stream_conf stream = {
		.deadline = deadline,
		.events = { .ended = on_root_stream, .arg = tree },
	};
	const struct ulrpc_call_conf call = { .deadline = deadline };
	int rc;

	tree->root = &r->members[rnd(r, r->n)];
	if (!tree->root->rpc)
		return;
	tree->life = tree->root->life;
	if (tree->index % 2)
		rc = stream_of_tree(tree->root, tree, &stream, &tree->stream);
	else
		rc = call_of_tree(tree->root, tree, &call, on_root_call, tree,
				  &tree->call);
	if (rc)
		lnet_sim_fail(r->sim, "tree %u cannot begin", tree->index);
	at(r, rnd(r, 5 * SEC), tree_give_up, tree);
}

/* Gives back what programs of the node @m had, which has crashed. */
static void tree_crash(struct tree *tree, const struct member *m)
{
	if (tree->root == m && tree->life == m->life) {
		ulrpc_stream_put(tree->stream);
		ulrpc_call_put(tree->call);
		tree->stream = NULL;
		tree->call = NULL;
	}
	for (unsigned int i = 0; i < tree->ntwigs; i++) {
		struct twig *t = &tree->twigs[i];

		if (t->at != m || t->life != m->life)
			continue;
		ulrpc_stream_put(t->served);
		ulrpc_stream_put(t->made);
		t->served = t->made = NULL;
		t->request = NULL;
		t->live = false;
	}
}

static void tree_free(struct tree *tree)
{
	ulrpc_stream_put(tree->stream);
	ulrpc_call_put(tree->call);
	for (unsigned int i = 0; i < tree->ntwigs; i++) {
		ulrpc_stream_put(tree->twigs[i].served);
		ulrpc_stream_put(tree->twigs[i].made);
		ulrpc_context_free(tree->twigs[i].context);
	}
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
	m->life++;
	memset(m->to, 0, sizeof(m->to));
	memset(m->calls, 0, sizeof(m->calls));
	ulrpc_conf_init(&rpc);
	if (spreads(m->r->sim))
		rpc.spread = ULRPC_SPREAD_CLIENTS;
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

	if (!f->stream || f->life != f->from->life)
		return;
	if (f->cancel && chance(f->r, 10))
		ulrpc_stream_cancel(f->stream);
	take(f, f->stream, &f->down, 1 + (uint32_t)rnd(f->r, 20));
	at(f->r, rnd(f->r, 50 * MS), flow_step, f);
}

static void flow_open(void *arg)
{
	struct flow *f = arg;
	struct ulrpc_streams *streams;
	struct ulrpc_stream_conf conf = {
		.deadline =
			f->last ? 600 * SECONDS : (1 + rnd(f->r, 60)) * SECONDS,
		.events = { on_readable, on_writable, on_ended, f },
	};

	if (!f->from->rpc || !(streams = streams_to(f->from, f->to)))
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

/* Something else is under way between the same nodes: closes all of it. */
static void streams_close(void *arg)
{
	struct member *m = arg;
	struct ulrpc_streams **streams = &m->to[rnd(m->r, m->r->n)];

	if (!m->rpc || !m->r->faults)
		return;
	ulrpc_streams_close(*streams);
	*streams = NULL;
}

/* ---- faults ---- */

/* A handle of a program on a node that has crashed. */
static void give_back(struct ulrpc_stream **stream)
{
	ulrpc_stream_put(*stream);
	*stream = NULL;
}

static void restart(void *arg)
{
	struct member *m = arg;

	if (lnet_sim_restart(m->r->sim, m->index))
		lnet_sim_fail(m->r->sim, "a node does not come again");
}

static void crash(void *arg)
{
	struct member *m = arg;
	struct run *r = m->r;

	if (!m->rpc || lnet_sim_crash(r->sim, m->index))
		return;
	r->crashes++;
	m->rpc = NULL;
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct flow *f = &r->flows[i];

		if (f->from == m && f->stream)
			give_back(&f->stream);
		if (f->to == m && f->served)
			give_back(&f->served);
	}
	for (unsigned int i = 0; i < TREES; i++)
		tree_crash(&r->trees[i], m);
	at(r, rnd(r, 2 * SEC), restart, m);
}

static struct ulnet_nid any_nid(struct run *r)
{
	return r->members[rnd(r, r->n)].nids[rnd(r, r->nnids)];
}

static void trouble(void *arg)
{
	struct run *r = arg;
	struct ulnet_sim_link link = { .latency = rnd(r, 5 * MS),
				       .jitter = rnd(r, 5 * MS),
				       .reorder_window = 5 * MS,
				       .connect = rnd(r, 2) * MS };
	struct ulnet_nid a = any_nid(r), b = any_nid(r);

	if (!r->faults)
		return;
	link_faults(r->sim, chance(r, 20), &link);
	links_set(&r->links, r->sim, a, b, &link);
	if (chance(r, 20))
		split(&r->splits, r->sim, a, b, rnd(r, 4 * SEC));
	if (chance(r, 20))
		lnet_sim_cut(r->sim, &a, &b);
	if (chance(r, 8))
		at(r, 0, crash, &r->members[rnd(r, r->n)]);
	if (chance(r, 5))
		at(r, 0, streams_close, &r->members[rnd(r, r->n)]);
	at(r, rnd(r, SEC), trouble, r);
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

static void flow_check(const struct flow *f)
{
	struct lnet_sim *sim = f->r->sim;

	if (f->life && f->life == f->from->life && f->ended != 1)
		lnet_sim_fail(sim, "stream %u: ends %u times", f->index,
			      f->ended);
	if (f->gots && f->served_life == f->to->life && f->served_ended != 1)
		lnet_sim_fail(sim, "stream %u: ends %u times for its service",
			      f->index, f->served_ended);
	if (f->ended)
		side_check(f, "client", &f->outcome, &f->up, &f->down);
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
	f->kind = (enum kind)rnd(r, KINDS);
	f->size = sizes[rnd(r, sizeof(sizes) / sizeof(sizes[0]))];
	f->last = i >= FLOWS - LAST;
	f->cancel = !f->last && chance(r, 25);
	f->fails = !f->last && i % 5 == 0;
	n = (uint32_t)rnd(r, f->size > 3000 ? 20 : 300);
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
	for (unsigned int i = 0; i < r->n && rc >= 0; i++) {
		struct member *m = &r->members[i];

		m->r = r;
		m->index = i;
		cluster_nids(m->nids, r->nnids, i);
		rc = cluster_node_add(r->sim, m->nids, r->nnids, NULL, start,
				      m);
	}
	for (unsigned int i = 0; i < FLOWS; i++)
		flow_draw(r, i);
	for (unsigned int i = 0; i < TREES; i++)
		r->trees[i] = (struct tree){ .r = r,
					     .index = i,
					     .last = i >= TREES / 2 };
	return rc < 0 ? rc : 0;
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
	lnet_sim_run(r->sim, 15 * SEC);
	r->faults = false;
	splits_heal(&r->splits);
	links_heal(&r->links, r->sim);
	/* Nodes come again, and LNet gives up what faults have left in it. */
	lnet_sim_run(r->sim, 60 * SEC);
	for (unsigned int i = FLOWS - LAST; i < FLOWS; i++)
		at(r, rnd(r, SEC), flow_open, &r->flows[i]);
	for (unsigned int i = TREES / 2; i < TREES; i++)
		at(r, rnd(r, SEC), tree_open, &r->trees[i]);
	/* The longest deadline passes, and clients that are silent are gone. */
	lnet_sim_run(r->sim, 240 * SEC);
	for (unsigned int i = 0; i < FLOWS; i++)
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
	tell(arg, "", "crashes", r->crashes);
	tell(arg, "", "parts of trees", r->twigs);
}

unsigned int scenario_free(struct run *r)
{
	for (unsigned int i = 0; i < FLOWS; i++) {
		ulrpc_stream_put(r->flows[i].stream);
		ulrpc_stream_put(r->flows[i].served);
	}
	for (unsigned int i = 0; i < TREES; i++)
		tree_free(&r->trees[i]);
	free(r);
	return 0;
}
