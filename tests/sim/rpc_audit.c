/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks into RPC's structures: does each call that waits wait for something
 * that will happen; is nothing left when no call is under way? */
#include <string.h>

#include "base/share.h"
#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/client/fetch.h"
#include "rpc/client/import.h"
#include "rpc/client/batch.h"
#include "rpc/client/imports.h"
#include "rpc/server/session/export.h"
#include "rpc/server/serve/durable.h"
#include "rpc/server/serve/request.h"
#include "rpc/server/serve/service.h"
#include "tests/sim/rpc_run.h"

/* ---- while calls are under way ---- */

static unsigned int count_in(const struct list *calls, enum call_state state)
{
	const struct ulrpc_call *call;
	unsigned int n = 0;

	list_for_each_entry (call, calls, link)
		n += call->fsm.state == state;
	return n;
}

/* Compares the counts of calls with their states (enum call_state). */
static const char *client_miscounts(const struct ulrpc_client *c)
{
	const struct ulrpc_call *call;
	const struct batch *p;
	unsigned int sent = 0, asked = 0;

	if (c->nqueued != count_in(&c->again, CALL_QUEUED) +
				  count_in(&c->queue, CALL_QUEUED) +
				  count_in(&c->summing, CALL_QUEUED) +
				  count_in(&c->stalled, CALL_QUEUED) +
				  count_in(&c->fenced, CALL_QUEUED))
		return "calls are queued, and not counted";
	list_for_each_entry (p, &c->imp->batches, of_import)
		if (p->client == c && !p->query)
			sent += p->open;
	list_for_each_entry (call, &c->ask, link) {
		if (call->fsm.state != CALL_ASK)
			return "a call is to be asked about, and does not know";
		asked++;
	}
	return c->inflight == sent && asked <= sent
		       ? NULL
		       : "calls are sent, and not counted";
}

/* Finds calls that could be sent now, with nothing that will send them (see
 * client.again). */
static const char *client_sleeps(const struct ulrpc_client *c)
{
	const struct import *imp = c->imp;

	if (list_empty(&c->again) && list_empty(&c->queue) &&
	    list_empty(&c->ask))
		return NULL;
	if (imp->fsm.state == IMPORT_IDLE)
		return "a call waits, and nobody connects";
	if (!import_is_up(imp))
		return lnet_timer_armed(&imp->timer)
			       ? NULL
			       : "a call waits for a connection that nobody "
				 "makes";
	if (c->fsm.state == CLIENT_UNOPENED)
		return "a call waits for a service that nobody asks for";
	if (c->fsm.state == CLIENT_OPENING)
		return lnet_timer_armed(&c->open_timer)
			       ? NULL
			       : "a call waits for a service not asked for "
				 "again";
	if (c->flushing || !import_is_ready(imp))
		return NULL;
	if (!list_empty(&c->ask) && !lnet_timer_armed(&c->stall_timer))
		return "a call is to be asked about, and is not";
	if (list_empty(&c->again) && list_empty(&c->queue))
		return NULL;
	if (c->inflight >= c->window.limit || imp->slots.wanted)
		return NULL;
	return "a call waits, and nothing is in its way";
}

static bool is_at(const struct batch_ref *at, const struct batch *p, uint32_t i)
{
	return at->batch == p && at->index == i;
}

static const char *batch_miscounts(const struct batch *p)
{
	unsigned int open = 0;

	for (unsigned int i = 0; i < p->n; i++) {
		const struct ulrpc_call *call = p->entries[i].call;

		if (!call)
			continue;
		open++;
		if (!call_is_out(call) ||
		    !is_at(p->query ? &call->query : &call->out, p, i) ||
		    (i >= p->nagain && call->xid != p->xid + i))
			return "a call is not where it says it is";
	}
	return open && open == p->open ? NULL : "a message miscounts its calls";
}

/* Counts the reply buffers that are kept: each waits for a batch, or belongs to
 * one (batch.h). */
static const char *import_miscounts(const struct import *imp)
{
	const struct batch *p;
	const struct list *l;
	unsigned int kept = 0;

	for (l = imp->reply_bufs.next; l != &imp->reply_bufs; l = l->next) {
		const struct reply_buf *rb =
			container_of(l, struct reply_buf, link);

		if (!rb->kept || rb->batch)
			return "memory for replies is somebody's, and nobody's";
		kept++;
	}
	list_for_each_entry (p, &imp->batches, of_import)
		kept += p->current && p->current->kept;
	return kept == imp->nreply_bufs ? NULL
					: "memory for replies is miscounted";
}

/* Each slot must belong to the one call that names it, or be free. */
static const char *slots_miscount(const struct slots *s)
{
	uint32_t held = 0;

	for (uint32_t i = 0; i < s->size; i++) {
		if (!s->calls[i])
			continue;
		if (s->calls[i]->slot != i)
			return "a slot is somebody's who has another one";
		held += i < s->made;
	}
	return held + slots_free(s) == s->made ? NULL : "slots are miscounted";
}

/* Does an attempt last longer than its call? The answer to a query may come a
 * little later. */
static bool outlasts(const struct ulrpc_call *call)
{
	return call->fsm.state == CALL_SENT &&
	       call->expected > rpc_at(call->deadline, 20 * MS);
}

static const char *import_is_wrong(const struct import *imp)
{
	const struct ulrpc_client *c;
	const struct ulrpc_call *call;
	const struct batch *p;
	const char *what = import_miscounts(imp);
	uint64_t last = 0;

	what = what ? what : slots_miscount(&imp->slots);
	list_for_each_entry (call, &imp->calls, order) {
		if (call->xid <= last || call->xid > imp->xid ||
		    slots_find(&imp->slots, call->slot) != call)
			return "numbers are out of order";
		if (outlasts(call))
			return "an attempt is to last longer than its call";
		last = call->xid;
	}
	list_for_each_entry (p, &imp->batches, of_import)
		what = what ? what : batch_miscounts(p);
	list_for_each_entry (c, &imp->clients, link) {
		what = what ? what : client_miscounts(c);
		what = what ? what : client_sleeps(c);
	}
	return what;
}

/* Do servers advertise a longer time than any call has taken? Estimates are at
 * most a quarter above the longest sample. */
static bool expects_too_much(const struct import *imp, uint64_t longest)
{
	const struct ulrpc_client *c;

	list_for_each_entry (c, &imp->clients, link)
		if (c->timeouts.advertised > longest + longest / 4 + MS)
			return true;
	return false;
}

static const struct import *import_of(const struct fetch *f)
{
	return f->call->client->imp;
}

/* Does the first fetch of its server wait for room, and has room, with nothing
 * that will begin it? */
static bool fetch_sleeps(const struct fetch *f, const struct reply_room *room)
{
	const struct fetch *g;

	list_for_each_entry (g, &room->waiting, wait) {
		if (g == f)
			break;
		if (import_of(g) == import_of(f))
			return false;
	}
	return !room->given && (!import_of(f)->reply_bytes ||
				share_allows(import_of(f)->reply_bytes,
					     room->used, room->max, f->length));
}

/* What is fetched takes no more memory than the CPT has for it, and each server
 * its share (fetch.h). */
static const char *room_is_wrong(const struct imports *x)
{
	const struct reply_room *room = &x->reply_room;
	uint64_t used = 0, extra = 0;
	const struct import *imp;
	const struct fetch *f;

	list_for_each_entry (f, &x->fetches, link)
		used += f->room;
	if (used != room->used)
		return "memory for long replies is miscounted";
	list_for_each_entry (imp, &x->all, link) {
		used = 0;
		list_for_each_entry (f, &x->fetches, link)
			if (f->call && import_of(f) == imp)
				used += f->room;
		if (used != imp->reply_bytes)
			return "a server's long replies are miscounted";
		extra += ULRPC_BODY_MAX;
	}
	if (room->used > room->max + extra)
		return "long replies take more memory than there is for them";
	list_for_each_entry (f, &room->waiting, wait)
		if (fetch_sleeps(f, room))
			return "a long reply waits for room, and there is room";
	return NULL;
}

void audit_waiting(struct member *m)
{
	struct ulrpc *rpc = m->rpc;
	const struct import *imp;
	const char *what = NULL;

	for (unsigned int i = 0; rpc && !m->crashing && i < rpc->ncpts; i++) {
		what = what ? what : room_is_wrong(rpc->shards[i].imports);
		list_for_each_entry (imp, &rpc->shards[i].imports->all, link) {
			what = what ? what : import_is_wrong(imp);
			if (expects_too_much(imp, m->run->longest))
				what = "calls are expected to take longer than "
				       "any has";
		}
	}
	if (what)
		lnet_sim_fail(m->run->sim, "node %u: %s", m->index, what);
}

/* ---- what handlers have ---- */

/* Returns how often a request with a first timeout of @timeout may have been
 * extended in @total: ceil(log2(total / timeout)) + 2, and once every four
 * minutes. */
static unsigned int extensions_max(uint64_t timeout, uint64_t total)
{
	unsigned int n = 2 + (unsigned int)(total / (240 * NSEC_PER_SEC));

	for (; timeout < total; timeout *= 2)
		n++;
	return n;
}

static void job_audit(struct job *j, uint64_t now)
{
	const struct ulrpc_request *r = j->request;
	struct lnet_sim *sim = j->m->run->sim;

	if (r->expires < j->expires)
		lnet_sim_fail(
			sim, "node %u: call %lu expires at %lu, not at %lu",
			j->m->index, (unsigned long)j->body.id,
			(unsigned long)r->expires, (unsigned long)j->expires);
	j->expires = r->expires;
	if (r->expires > r->deadline)
		lnet_sim_fail(sim, "node %u: call %lu outlives its caller",
			      j->m->index, (unsigned long)j->body.id);
	/* later attempts may have another timeout */
	if (!r->latest && r->timeout &&
	    r->extensions > extensions_max(r->timeout, now - r->arrival))
		lnet_sim_fail(sim, "node %u: call %lu is extended %u times",
			      j->m->index, (unsigned long)j->body.id,
			      r->extensions);
}

void audit_times(struct member *m)
{
	uint64_t now = lnet_sim_now(m->run->sim);

	for (struct job *j = m->jobs; j; j = j->next)
		if (j->request && !j->dead && !j->lost &&
		    j->request->state != REQUEST_LOST)
			job_audit(j, now);
}

static void note_time(struct run *r, const struct ulrpc_request *request)
{
	uint64_t took = lnet_sim_now(r->sim) - request->arrival;

	r->longest = MAX(r->longest, took);
}

void audit_answer(const struct job *j)
{
	note_time(j->m->run, j->request);
}

static void note_keyed(struct run *r, const struct service_cpt *sc,
		       const void *key)
{
	const struct ulrpc_request *request;

	list_for_each_entry (request, &sc->active, link)
		if (request->durable &&
		    !memcmp(request->durable->key, key, ULRPC_RECORD_KEY))
			note_time(r, request);
}

void audit_lookup(const struct member *m, const void *key)
{
	const struct service_cpt *sc;

	for (unsigned int i = 0; m->rpc && i < m->rpc->ncpts; i++)
		list_for_each_entry (sc, &m->rpc->services->shard[i], link)
			note_keyed(m->run, sc, key);
}

bool audit_given_up(const struct member *m, bool report)
{
	bool heard = true;

	for (struct job *j = m->jobs; j; j = j->next) {
		const struct test_call *c = m->run->calls[j->body.id - 1];

		if (!j->request || j->dead || j->lost || !c->given_up ||
		    ulrpc_request_canceled(j->request))
			continue;
		heard = false;
		if (report)
			lnet_sim_fail(m->run->sim,
				      "node %u: call %lu is given up, and its "
				      "handler has not heard of that",
				      m->index, (unsigned long)j->body.id);
	}
	return heard;
}

/* ---- what servers remember ---- */

/* Is the service about to stop, or has it stopped? */
static bool ends(const struct member *m, unsigned int service)
{
	return !m->services[service] || !m->rpc || m->rpc->state != RPC_OPEN;
}

uint64_t audit_restarts(const struct member *m, unsigned int service)
{
	uint64_t n = UINT64_C(1) << 63 | (uint64_t)m->life << 40;

	n += (uint64_t)m->starts[service] << 32;
	return n + ((uint64_t)ends(m, service) << 31);
}

uint64_t audit_lapses(const struct member *m, unsigned int service)
{
	uint64_t n = audit_restarts(m, service);

	for (unsigned int i = 0; m->rpc && i < m->rpc->ncpts; i++) {
		const uint64_t *counts = m->rpc->shards[i].stats->counts;

		n += counts[RPC_STAT_clients_accepted] +
		     counts[RPC_STAT_clients_lost] +
		     counts[RPC_STAT_clients_left];
	}
	return n;
}

bool audit_knows(const struct member *m, unsigned int service,
		 const struct ulrpc_client *client)
{
	const struct import *imp = client->imp;
	unsigned int cpt = export_cpt(imp->connection);
	const struct export *e;

	if (!import_is_up(imp) || ends(m, service) || cpt >= m->rpc->ncpts)
		return false;
	e = id_slot_obj(&m->rpc->shards[cpt].exports->table,
			(uint32_t)imp->connection);
	return e && e->handle == imp->connection;
}

unsigned int audit_store(const struct member *m, unsigned int service,
			 const struct ulrpc_client *client)
{
	const struct store *store = &m->stores[service];

	if (client->portal && memcmp(client->incarnation, store->incarnation,
				     sizeof(store->incarnation)) != 0)
		return 0;
	return store->number;
}

/* ---- when no call is under way ---- */

static const char *client_busy(const struct ulrpc_client *c)
{
	if (c->ncalls || c->nqueued || c->inflight)
		return "a client counts calls";
	if (!list_empty(&c->again) || !list_empty(&c->queue) ||
	    !list_empty(&c->summing) || !list_empty(&c->fenced) ||
	    !list_empty(&c->ask) || !list_empty(&c->watched) ||
	    !list_empty(&c->fetching))
		return "a client has calls";
	return NULL;
}

static const char *imports_busy(const struct imports *x)
{
	const char *what = NULL;
	struct import *imp;
	struct ulrpc_client *c;

	if (!list_empty(&x->batches) || !list_empty(&x->fetches))
		return "parcels, or replies to be fetched";
	list_for_each_entry (imp, &x->all, link) {
		if (!list_empty(&imp->batches) || !list_empty(&imp->calls))
			return "a connection has calls";
		list_for_each_entry (c, &imp->clients, link)
			what = what ? what : client_busy(c);
	}
	return what;
}

static const char *service_busy(const struct service_cpt *sc)
{
	if (sc->under_way || sc->used_bytes != sc->kept_bytes)
		return "a service counts requests";
	if (!list_empty(&sc->active) || !list_empty(&sc->flush) ||
	    !list_empty(&sc->replies) || !list_empty(&sc->long_replies))
		return "a service has requests, or replies";
	if (sc->forwards || sc->inbox.pinned)
		return "a service has messages";
	return NULL;
}

static const char *shard_busy(struct shard *s)
{
	const char *what = s->work ? "work" : imports_busy(s->imports);
	struct service_cpt *sc;

	list_for_each_entry (sc, &s->rpc->services->shard[s->cpt], link)
		what = what ? what : service_busy(sc);
	return what;
}

bool audit_rpc(struct member *m, bool say)
{
	struct ulrpc *rpc = m->rpc;
	const char *what = NULL;

	for (unsigned int i = 0; rpc && i < rpc->ncpts && !what; i++)
		what = shard_busy(&rpc->shards[i]);
	if (what && say)
		lnet_sim_fail(m->run->sim,
			      "node %u: no call is under way, but there is "
			      "left: %s",
			      m->index, what);
	return !what;
}
