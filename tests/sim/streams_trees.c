/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees of the streams scenario: streams and calls that are made for others. */
#include <errno.h>
#include <string.h>

#include "tests/sim/streams_run.h"

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

	if (!t->live || t->life != t->at->life || t->of->ntwigs == TWIGS ||
	    after_pause(t->at, twig_make, t))
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

void grow(void *arg, struct ulrpc_stream *stream, const void *body,
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

void grow_call(void *arg, struct ulrpc_request *request, const void *body,
	       size_t length)
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

void tree_check(void *arg)
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

	if (tree->life != tree->root->life || !tree->root->rpc ||
	    after_pause(tree->root, tree_give_up, tree))
		return;
	if (tree->stream)
		ulrpc_stream_cancel(tree->stream);
	if (tree->call)
		ulrpc_cancel(tree->call);
	if (tree->last)
		at(tree->r, 20 * SEC, tree_check, tree);
}

void tree_open(void *arg)
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
	if (!tree->root->rpc || after_pause(tree->root, tree_open, tree))
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

void tree_crash(struct tree *tree, const struct member *m)
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

void tree_free(struct tree *tree)
{
	ulrpc_stream_put(tree->stream);
	ulrpc_call_put(tree->call);
	for (unsigned int i = 0; i < tree->ntwigs; i++) {
		ulrpc_stream_put(tree->twigs[i].served);
		ulrpc_stream_put(tree->twigs[i].made);
		ulrpc_context_free(tree->twigs[i].context);
	}
}
