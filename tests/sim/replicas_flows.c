/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams at one of several servers, which sends all messages back. */
#include <errno.h>
#include <string.h>
#include "tests/sim/replicas_run.h"
#include "ulnet/stream.h"

#define MESSAGES 8 /* of a stream; its window has room for them */

struct message {
	uint32_t flow, number;
};

/* Reads what has come of @f, and counts it in @n. Returns what
 * ulrpc_stream_next() has returned. */
static int take(const struct flow *f, struct ulrpc_stream *stream, uint32_t *n)
{
	struct message m;
	const void *body;
	size_t length;
	int rc;

	while ((rc = ulrpc_stream_next(stream, &body, &length)) == 1) {
		memset(&m, 0, sizeof(m));
		if (length == sizeof(m))
			memcpy(&m, body, length);
		if (length != sizeof(m) || m.flow != f->index ||
		    m.number != (*n)++)
			lnet_sim_fail(f->r->sim,
				      "stream %u: message %u is another one",
				      f->index, *n - 1);
	}
	return rc;
}

static int give(const struct flow *f, struct ulrpc_stream *stream, uint32_t n)
{
	const struct message m = { f->index, n };

	return ulrpc_stream_send(stream, &m, sizeof(m));
}

/* ---- the service ---- */

static void on_served_ended(void *arg, struct ulrpc_stream *stream,
			    const struct ulrpc_stream_outcome *o)
{
	struct flow *f = arg;

	(void)o;
	f->served = NULL;
	ulrpc_stream_put(stream);
}

static void on_served_readable(void *arg, struct ulrpc_stream *stream)
{
	struct flow *f = arg;
	uint32_t n = f->read;
	int rc = take(f, stream, &f->read);

	while (n < f->read && !give(f, stream, n))
		n++;
	if (!rc)
		ulrpc_stream_end(stream, 0, NULL);
}

static void on_stream(void *arg, struct ulrpc_stream *stream, const void *body,
		      size_t length)
{
	struct server *s = arg;
	struct ulrpc_stream_events events = {
		.readable = on_served_readable,
		.ended = on_served_ended,
	};
	struct flow *f;
	uint32_t index;

	if (length != sizeof(index)) {
		lnet_sim_fail(s->r->sim, "a stream is opened with %zu bytes",
			      length);
		return;
	}
	memcpy(&index, body, sizeof(index));
	f = &s->r->flows[index];
	if (f->gots++)
		lnet_sim_fail(s->r->sim, "stream %u is opened twice", index);
	f->at = s;
	f->served = stream;
	events.arg = f;
	ulrpc_stream_watch(stream, &events);
}

int flows_serve(struct server *s)
{
	const struct ulrpc_stream_method method = {
		.name = "back",
		.handler = on_stream,
		.arg = s,
		.run = ULRPC_RUN_INLINE,
	};
	struct ulrpc_stream_service_conf conf;

	ulrpc_stream_service_conf_init(&conf);
	conf.service.name = "flow";
	conf.methods = &method;
	conf.nmethods = 1;
	return ulrpc_stream_serve(s->rpc, &conf, NULL);
}

/* ---- callers ---- */

static void on_ended(void *arg, struct ulrpc_stream *stream,
		     const struct ulrpc_stream_outcome *o)
{
	struct flow *f = arg;

	if (f->ended++)
		lnet_sim_fail(f->r->sim, "stream %u ends twice", f->index);
	f->end = *o;
	f->stream = NULL;
	f->r->flows_ended += o->cause == ULRPC_CAUSE_OK;
	ulrpc_stream_put(stream);
}

static void on_readable(void *arg, struct ulrpc_stream *stream)
{
	struct flow *f = arg;

	(void)take(f, stream, &f->back);
}

static void on_writable(void *arg, struct ulrpc_stream *stream)
{
	struct flow *f = arg;

	while (f->sent < MESSAGES && !give(f, stream, f->sent))
		f->sent++;
	if (f->sent == MESSAGES)
		(void)ulrpc_stream_close_send(stream);
}

static void on_opened(void *arg, const struct ulrpc_replicas_outcome *o,
		      struct ulrpc_stream *stream)
{
	struct flow *f = arg;
	struct lnet_sim *sim = f->r->sim;
	uint64_t took = lnet_sim_now(sim) - f->began, stood;

	stood = f->from->paused > f->began ? f->from->paused - f->began : 0;
	f->o = *o;
	if (f->opened++)
		lnet_sim_fail(sim, "stream %u is told to be open twice",
			      f->index);
	if (took > f->deadline * US && took > stood)
		lnet_sim_fail(sim, "stream %u: is opened after its deadline",
			      f->index);
	if (!stream != (o->call.cause != ULRPC_CAUSE_OK))
		lnet_sim_fail(sim, "stream %u: %s, and it is%s there", f->index,
			      ulrpc_cause_name(o->call.cause),
			      stream ? "" : " not");
	if (!stream)
		return;
	if (!f->at || !lnet_nid_eq(&f->at->nids[0], &o->server))
		lnet_sim_fail(sim, "stream %u: another server has got it",
			      f->index);
	f->stream = stream;
	on_writable(f, stream);
}

void flow_open(void *arg)
{
	struct flow *f = arg;
	struct caller *m = f->from;
	const uint32_t key = f->index % 5;
	struct ulrpc_replicas_stream_conf conf;

	if (!m->rpc || after_pause(m, flow_open, f))
		return;
	ulrpc_replicas_stream_conf_init(&conf);
	conf.deadline = f->deadline;
	conf.events = (struct ulrpc_stream_events){ on_readable, on_writable,
						    on_ended, f };
	if (f->keyed) {
		conf.key = &key;
		conf.key_length = sizeof(key);
	}
	f->life = m->life;
	f->began = lnet_sim_now(f->r->sim);
	if (ulrpc_replicas_stream_open(m->flows, "back", &f->index,
				       sizeof(f->index), &conf, on_opened, f,
				       NULL))
		lnet_sim_fail(f->r->sim, "stream %u cannot be opened",
			      f->index);
}

static void give_back(struct ulrpc_stream **stream)
{
	ulrpc_stream_put(*stream);
	*stream = NULL;
}

void flows_crash(struct run *r, const struct server *s, const struct caller *m)
{
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct flow *f = &r->flows[i];

		if (m && f->from == m)
			give_back(&f->stream);
		if (s && f->at == s)
			give_back(&f->served);
	}
}

void flow_draw(struct run *r, unsigned int i)
{
	struct flow *f = &r->flows[i];

	f->r = r;
	f->index = i;
	f->from = &r->callers[rnd(r, CALLERS)];
	f->last = i >= FLOWS - FLOWS_LAST;
	f->keyed = chance(r, 30);
	f->deadline = f->last || chance(r, 70) ? LONG : 1 + rnd(r, 3 * SECONDS);
}

/* ---- what must hold ---- */

static void end_check(const struct flow *f)
{
	struct lnet_sim *sim = f->r->sim;
	const struct ulrpc_stream_outcome *e = &f->end;

	if (e->sent != f->sent || e->received != f->back)
		lnet_sim_fail(sim,
			      "stream %u: sent %u and read %u, and is told %u "
			      "and %u",
			      f->index, f->sent, f->back, (unsigned int)e->sent,
			      (unsigned int)e->received);
	if (e->delivered > f->read || f->read > e->sent - e->undelivered)
		lnet_sim_fail(sim,
			      "stream %u: %u of %u were read, and it is told "
			      "%u, and %u not",
			      f->index, f->read, f->sent,
			      (unsigned int)e->delivered,
			      (unsigned int)e->undelivered);
	if (e->cause == ULRPC_CAUSE_OK && f->back != MESSAGES)
		lnet_sim_fail(sim, "stream %u ends well with %u messages",
			      f->index, f->back);
}

void flow_check(const struct flow *f)
{
	struct lnet_sim *sim = f->r->sim;
	const struct ulrpc_outcome *o = &f->o.call;
	bool same = is_same_life(f->from, f->life);

	if (same && f->opened != 1)
		lnet_sim_fail(sim, "stream %u: is told to be open %u times",
			      f->index, f->opened);
	if (same && o->cause == ULRPC_CAUSE_OK && f->ended != 1)
		lnet_sim_fail(sim, "stream %u: ends %u times", f->index,
			      f->ended);
	if (!f->opened)
		return;
	/* Handlers refuse none; a server may have forgotten its streams. */
	if (o->cause == ULRPC_CAUSE_HANDLER)
		lnet_sim_fail(sim, "stream %u: is refused, as %d", f->index,
			      o->status);
	if (o->execution == ULRPC_NOT_EXECUTED && f->gots)
		lnet_sim_fail(sim, "stream %u: was opened, and is told not",
			      f->index);
	if (f->ended)
		end_check(f);
	if (!same || f->deadline < LONG)
		return;
	if (o->execution == ULRPC_NOT_EXECUTED)
		lnet_sim_fail(sim, "stream %u: could have gone on, and is %s",
			      f->index, ulrpc_cause_name(o->cause));
	if (f->last && (!f->ended || f->end.cause != ULRPC_CAUSE_OK))
		lnet_sim_fail(sim, "stream %u: is lost, as %s, %s", f->index,
			      ulrpc_cause_name(o->cause),
			      f->ended ? ulrpc_cause_name(f->end.cause)
				       : "not ended");
}
