/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/batch.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "rpc/bulk/bulk.h"
#include "rpc/bulk/transfer.h"
#include "rpc/client/attempt.h"
#include "rpc/client/bulks.h"
#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/client/fetch.h"
#include "rpc/client/load.h"
#include "rpc/flavour.h"
#include "rpc/sealed.h"
#include "rpc/text.h"
#include "rpc/wire/wire_put.h"

/* us: time-out of a message, at most. Messages of calls with more time have
 * LNet's own time-out, which is shorter. */
#define SEND_TIMEOUT_MAX (50 * UINT64_C(1000000))

/* ---- memory ---- */

static void entries_release(struct batch *p)
{
	if (unlikely(p->nborrowed && p->record)) {
		slab_put(&p->shard->imports->slab, p->record, p->record_size);
		p->nborrowed = 0;
		return;
	}
	for (unsigned int i = 0; p->nborrowed; i++) {
		if (!p->entries[i].borrowed)
			continue;
		call_put(p->entries[i].borrowed);
		p->entries[i].borrowed = NULL;
		p->nborrowed--;
	}
}

static void batch_free(struct batch *p)
{
	list_del(&p->all);
	slab_put(&p->shard->imports->slab, p, p->size);
}

/* Frees the batch if it is over, and LNet no longer uses its memory. */
static void batch_check(struct batch *p)
{
	struct shard *s = p->shard;

	if (p->open || p->sending || p->bufs || p->freeing || p->landing)
		return;
	batch_free(p);
	shard_release(s);
}

/* ---- replies ---- */

/* Finds the entry of a call that was sent again. Begins behind the last entry
 * that was found, as replies are nearly always in the order of the calls. */
static struct batch_entry *entry_find_again(struct batch *p, uint64_t xid)
{
	for (unsigned int i = 0; i < p->nagain; i++) {
		unsigned int at = (p->hint + i) % p->nagain;
		const struct ulrpc_call *call = p->entries[at].call;

		if (!call || call->xid != xid)
			continue;
		p->hint = at + 1;
		return &p->entries[at];
	}
	return NULL;
}

static struct batch_entry *entry_find(struct batch *p, uint64_t xid)
{
	uint64_t i = xid - p->xid;

	if (likely(i < p->n && i >= p->nagain))
		return &p->entries[i];
	return entry_find_again(p, xid);
}

/* Is @attempt the number of the call's attempt, or of its query in @p? */
static bool is_of_batch(const struct batch *p, const struct ulrpc_call *call,
			uint32_t attempt)
{
	if (likely(call->out.attempt == attempt))
		return true;
	return call->query.batch == p && call->query.attempt == attempt;
}

/* Does the reply show that the server has looked at the call? */
static bool is_answer(const struct wire_reply *r)
{
	return r->status != WIRE_NOT_CONNECTED && r->status != WIRE_STALE_EPOCH;
}

/* Returns how many of the replies show that the server is not too busy. */
static out_of_line uint32_t replies_not_busy(const struct wire_replies *m,
					     const struct wire_reply *reply)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->nreplies; i++)
		n += is_answer(&reply[i]) &&
		     reply[i].status != WIRE_OVERLOADED &&
		     reply[i].status != WIRE_EXPIRED;
	return n;
}

static void replies_take(struct batch *p, const struct wire_replies *m,
			 const struct wire_reply *reply, uint64_t now)
{
	struct ulrpc_client *c = p->client;
	bool success = false;

	for (uint32_t i = 0; i < m->nreplies; i++) {
		const struct wire_reply *r = &reply[i];
		struct batch_entry *e = entry_find(p, r->xid);

		if (unlikely(!success) && e && is_answer(r)) {
			success = true;
			if (unlikely(window_is_slow(&c->window)))
				client_grow(c, replies_not_busy(m, reply));
			client_on_answer(c, m->window);
			if (unlikely(c->imp->backoff) && e->call)
				attempt_on_prompt(e->call, r, now);
			timeouts_advertised(&c->timeouts, m->estimate);
		}
		if (likely(e && e->call && is_of_batch(p, e->call, r->attempt)))
			call_on_reply(e->call, r, now);
		else
			stat_count(p->shard, e ? RPC_STAT_replies_late
					       : RPC_STAT_replies_unknown);
	}
}

/* Asks the server about the calls of @p. A query that was not answered is just
 * repeated. */
static void batch_ask(struct batch *p)
{
	for (unsigned int i = 0; i < p->n && !p->query; i++)
		if (p->entries[i].call)
			call_ask(p->entries[i].call);
}

/* Called when a message of replies cannot be read. If it was damaged on its
 * way, the server still has the replies, and is asked for them: at once, or, if
 * @p is a batch of queries, when the next query is due, since a line that
 * damages everything would be asked again and again. If the message is as the
 * server has made it, the call in it ends, if there is only one. */
static void replies_bad(struct batch *p, int rc)
{
	stat_count(p->shard, RPC_STAT_replies_malformed + stat_of_bad(rc));
	if (rc == -EBADMSG)
		batch_ask(p);
	else if (p->n == 1 && p->open == 1)
		call_fail(p->entries[0].call, ULRPC_CAUSE_BAD_REPLY);
}

/* Decodes the replies that have landed with @ev on a connection with keys,
 * where they have to be sealed. Returns -EACCES for a message that is not
 * sealed, and counts it; otherwise what wire_replies_decode() returns. */
static out_of_line int replies_decode_sealed(struct batch *p,
					     const struct ulnet_event *ev,
					     struct wire_replies *m,
					     struct wire_reply *reply)
{
	struct sealed *sd = p->client->imp->sealed;
	uint8_t *landed = (uint8_t *)ev->md_start + ev->offset;
	struct opened o;

	if (!sd || !wire_is_sealed(ev->hdr_data)) {
		stat_count(p->shard, RPC_STAT_seals_missing);
		return -EACCES;
	}
	if (sealed_open(p->shard, sd, ev, landed, ev->mlength, &o))
		return -EACCES;
	return wire_replies_decode(m, reply, o.hdr_data, o.payload, o.length);
}

/* What reply_buf_users.on_replies calls. */
static void batch_on_replies(struct batch *p, const struct ulnet_event *ev)
{
	struct wire_reply reply[WIRE_CALLS_MAX];
	uint64_t now = shard_now(p->shard);
	struct ulrpc_client *c = p->client;
	struct wire_replies m;
	int rc;

	if (likely(!c->imp->secure))
		rc = wire_replies_decode(&m, reply, ev->hdr_data,
					 (uint8_t *)ev->md_start + ev->offset,
					 ev->mlength);
	else
		rc = replies_decode_sealed(p, ev, &m, reply);
	if (rc) {
		if (rc != -EACCES)
			replies_bad(p, rc);
		return;
	}
	if (m.client != c->imp->handle) {
		stat_count(p->shard, RPC_STAT_replies_unknown);
		return;
	}
	import_heard(c->imp, now);
	if (unlikely(c->imp->waiting))
		import_on_sign(c->imp);
	if (unlikely(!c->imp->ack_due))
		import_ack_soon(c->imp);
	if (p->sending) { /* LNet has not reported yet which rail it takes */
		p->local = ev->target.nid;
		p->target = ev->source;
		p->paths = MAX(p->paths, 1);
	}
	replies_take(p, &m, reply, now);
}

const struct reply_buf_users batch_reply_users = {
	.on_replies = batch_on_replies,
	.check = batch_check,
};

/* ---- the end of waiting ---- */

static void on_batch_over(struct ulnet_work *work)
{
	struct batch *p = container_of(work, struct batch, work);

	p->freeing = false;
	batch_check(p);
}

void batch_retire(struct batch *p)
{
	list_del(&p->of_import);
	list_del(&p->of_watch);
	reply_buf_release(p);
	p->client = NULL;
	if (p->sending) {
		(void)LNetMDUnlink(p->send_md);
	} else if (unlikely(!p->bufs && !p->landing)) {
		p->freeing = true;
		p->work.fn = on_batch_over;
		shard_defer(p->shard, &p->work);
	}
}

/* ---- sending ---- */

static void batch_undelivered(struct batch *p)
{
	struct import *imp = p->client->imp;
	uint32_t epoch = p->epoch;
	uint64_t sent = p->sent;

	for (unsigned int i = 0; i < p->n && p->open; i++)
		if (p->entries[i].call)
			attempt_undelivered(p->entries[i].call, p);
	import_undelivered(imp, epoch, sent);
}

/* Called when LNet does not know whether @p was delivered. */
static void batch_doubtful(struct batch *p)
{
	struct import *imp = p->client->imp;
	uint32_t epoch = p->epoch;

	batch_ask(p);
	import_suspect(imp, epoch);
}

static void batch_on_sent(const struct ulnet_event *ev)
{
	struct batch *p = ev->user_ptr;

	if (ev->type == LNET_EVENT_SEND) {
		p->local = ev->path_local;
		p->target = ev->path_peer;
		p->hop = ev->path_hop;
		p->paths = ev->paths_tried;
	}
	if (ev->unlinked) {
		p->sending = false;
		entries_release(p);
	}
	if (ev->type == LNET_EVENT_SEND && ev->status &&
	    (p->open || ev->cause != LNET_CAUSE_CANCELED))
		stat_count(p->shard, ev->outcome == LNET_OUTCOME_NOT_DELIVERED
					     ? RPC_STAT_parcels_undelivered
					     : RPC_STAT_parcels_doubtful);
	if (ev->type == LNET_EVENT_SEND && ev->status && p->open) {
		if (ev->outcome == LNET_OUTCOME_NOT_DELIVERED)
			batch_undelivered(p);
		else
			batch_doubtful(p);
	}
	if (ev->unlinked)
		batch_check(p);
}

void batches_abort(struct import *imp)
{
	struct batch *p;

	list_for_each_entry (p, &imp->batches, of_import)
		if (p->sending)
			(void)LNetMDUnlink(p->send_md);
}

/* ---- making ---- */

/* Takes a call that cannot be sent off its queue, and ends it later. */
static void call_reject(struct ulrpc_client *c, struct ulrpc_call *call,
			enum ulrpc_cause cause)
{
	list_del(&call->link);
	list_add_tail(&c->fenced, &call->link);
	call_fail_later(call, cause);
}

/* Called when @call cannot be sent now, because of @rc. If that may pass, puts
 * the call off, and calls behind it go first; otherwise ends it with @cause. */
static void call_put_off(struct ulrpc_client *c, struct ulrpc_call *call,
			 int rc, enum ulrpc_cause cause)
{
	if (rc == -EAGAIN || rpc_is_short(rc))
		client_stall(c, call);
	else
		call_reject(c, call, cause);
}

/* Logs, once for each client, which part of a call is too long. */
static void log_too_long(struct ulrpc_client *c, const struct ulrpc_call *call)
{
	char text[ULRPC_TEXT_MAX];

	if (c->logged_too_long)
		return;
	c->logged_too_long = true;
	call_excess(call, text, sizeof(text));
	lnet_log(LNET_LOG_WARN, "rpc", "service %s: %s", c->service, text);
}

static void batch_fill(struct load *l, unsigned int n)
{
	struct ulrpc_client *c = l->client;
	struct ulrpc_call *call;
	int rc;

	while (unlikely((rc = load_fill(l, n, &call)))) {
		if (rc == -EMSGSIZE) {
			log_too_long(c, call);
			call_reject(c, call, ULRPC_CAUSE_BAD_REQUEST);
		} else if (rc == -EINPROGRESS) {
			call_seal(call);
		} else {
			call_put_off(c, call, rc, ULRPC_CAUSE_BULK);
		}
	}
}

/* Called when no batch can be made of @l, because of @rc, such as -ENOMEM:
 * takes all calls out of the load, to be sent later or ended. */
static void load_undo(struct load *l, int rc)
{
	struct ulrpc_client *c = l->client;

	while (l->n) {
		struct ulrpc_call *call = l->calls[--l->n];

		for (unsigned int i = 0; i < call->nbulks; i++)
			bulk_detach(call->bulks[i]);
		list_init(&call->link);
		call_put_off(c, call, rc, ULRPC_CAUSE_NO_MEMORY);
	}
}

static in_line struct batch *batch_new(const struct load *l)
{
	struct ulrpc_client *c = l->client;
	struct shard *s = c->shard;
	size_t size = sizeof(struct batch) + l->n * sizeof(struct batch_entry) +
		      c->seal_head + l->head + l->bodies - l->borrowed;
	struct batch *p = slab_get(&s->imports->slab, size);

	if (!p)
		return NULL;
	p->shard = s;
	p->client = c;
	p->match = shard_match_alloc(s);
	p->xid = c->imp->xid + 1 - l->nagain;
	p->nagain = l->nagain;
	p->hint = 0;
	p->sent = l->now;
	p->due = l->due;
	p->epoch = c->imp->epoch;
	p->peer = import_target(c->imp);
	p->n = p->open = l->n;
	p->nborrowed = 0;
	p->need = l->need;
	p->sending = false;
	list_init(&p->of_watch);
	p->freeing = false;
	p->landing = false;
	p->bulk = l->nsegments != 0;
	p->query = false;
	p->suspect = false;
	p->bufs = NULL;
	p->current = NULL;
	p->local = LNET_NID_ANY;
	p->target = LNET_NID_ANY;
	p->paths = 0;
	p->size = size;
	p->head = (uint8_t *)&p->entries[l->n] + c->seal_head;
	list_add_tail(&s->imports->batches, &p->all);
	list_add_tail(&c->imp->batches, &p->of_import);
	return p;
}

/* Fills in entry @i with the call. A new call gets a number and a slot. */
static in_line void entry_fill(struct batch *p, unsigned int i,
			       struct ulrpc_call *call, uint64_t due,
			       uint64_t now)
{
	struct import *imp = p->client->imp;

	if (likely(call->slot == SLOT_NONE)) {
		call->slot = slots_take(&imp->slots, call);
		call->xid = ++imp->xid;
		list_add_tail(&imp->calls, &call->order);
	}
	call_on_packed(call, p, i, due, now);
	p->entries[i].call = call;
	p->entries[i].borrowed = NULL;
}

static uint64_t batch_time_left(uint64_t deadline, uint64_t now)
{
	if (deadline == TIME_NEVER)
		return 0;
	return deadline <= now
		       ? 1
		       : (deadline - now + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
}

static struct wire_call wire_call_of(struct ulrpc_call *call,
				     const struct wire_segments *segments,
				     uint64_t time, uint64_t now)
{
	bool limited = call->priority & CALL_LIMITED;

	return (struct wire_call){
		.xid = call->xid,
		.timeout = time / NSEC_PER_USEC,
		.remaining = batch_time_left(call->deadline, now),
		.attempt = call->out.attempt,
		.method = call->method,
		.length = call->length,
		.flags = call->flags & ~CALL_LOCAL,
		.priority = call->priority & ~CALL_LIMITED,
		.reply_max = call->reply_max,
		.slot = call->slot,
		.semantics = call->semantics,
		.bulks = { .n = call->nbulks, .list = segments },
		.trace = call_trace_view(call),
		.reply_limit = limited ? fetch_limit(call->client->rpc,
						     call->reply_limit)
				       : 0,
	};
}

/* Are @a and @b, which are sent for the first time, encoded alike, and due at
 * the same time? */
static bool is_alike(const struct ulrpc_call *a, const struct ulrpc_call *b)
{
	return a->header[0] == b->header[0] && a->header[1] == b->header[1] &&
	       a->header[2] == b->header[2] && a->retry == b->retry;
}

/* Do the fields in @t suit @call, which has @time (ns) for this attempt? */
static in_line bool template_suits(const struct call_template *t,
				   const struct ulrpc_call *call, uint64_t time,
				   uint64_t now)
{
	return t->method_length == call->header[1] &&
	       t->others == call->header[2] &&
	       t->timeout == time / NSEC_PER_USEC &&
	       t->remaining == batch_time_left(call->deadline, now);
}

/* Makes @t suit @call. Returns false, and @t is as before, if @call has fields
 * that other calls do not have. */
static out_of_line bool template_make(struct call_template *t,
				      struct ulrpc_call *call, uint64_t time,
				      uint64_t now)
{
	struct wire_call w;

	if (call->nbulks || call->flags & (CALL_TRACED | CALL_NAMED) ||
	    call->priority & CALL_LIMITED)
		return false;
	w = wire_call_of(call, NULL, time, now);
	t->method_length = call->header[1];
	t->others = call->header[2];
	t->timeout = w.timeout;
	t->remaining = w.remaining;
	wire_call_rest_make(&t->rest, &w);
	return true;
}

/* Encodes a call that has fields that other calls do not have. */
static out_of_line uint8_t *encode_apart(struct ulrpc_call *call,
					 const struct wire_segments *segments,
					 uint64_t time, uint64_t now,
					 uint8_t *at)
{
	struct wire_call w = wire_call_of(call, segments, time, now);

	w.length = call_sent_length(call);
	return wire_call_put(at, &w);
}

/* Encodes the calls at @at of the head, and makes them entries of @p. */
static uint8_t *encode_calls(struct batch *p, const struct load *l, uint8_t *at)
{
	const struct wire_segments *segments = l->segments;
	struct call_template *template = &l->client->template;
	/* a call in @p that @template suits, and that is due at @due */
	const struct ulrpc_call *like = NULL;
	uint64_t time, due = TIME_NEVER;

	for (unsigned int i = 0; i < l->n; i++) {
		struct ulrpc_call *call = l->calls[i];

		if (likely(like && is_alike(call, like))) {
			entry_fill(p, i, call, due, l->now);
		} else {
			time = attempt_time(call, l->now);
			due = attempt_due(call, time, l->now);
			p->due = MIN(p->due, due);
			entry_fill(p, i, call, due, l->now);
			like = NULL;
			if (unlikely(!template_suits(template, call, time,
						     l->now)) &&
			    !template_make(template, call, time, l->now)) {
				at = encode_apart(call, segments, time, l->now,
						  at);
				segments += call->nbulks;
				continue;
			}
			/* A call that is sent again has another T than one
			 * that is not. */
			if (likely(i >= p->nagain))
				like = call;
		}
		at = wire_call_put_with(at, call->xid, call->out.attempt,
					call->slot, &template->rest);
	}
	return at;
}

/* Encodes the queries: they have neither body nor bulk. */
static uint8_t *encode_queries(struct batch *p, const struct load *l,
			       uint8_t *at)
{
	for (unsigned int i = 0; i < l->n; i++) {
		struct ulrpc_call *call = l->calls[i];
		struct wire_call w = wire_call_of(
			call, NULL, attempt_time(call, l->now), l->now);

		w.attempt = call->query.attempt;
		w.flags |= WIRE_CALL_QUERY;
		w.length = 0;
		w.trace = (struct wire_view){ NULL, NULL };
		w.bulks.n = 0;
		at = wire_call_put(at, &w);
		p->entries[i].borrowed = NULL;
	}
	return at;
}

static uint8_t *encode_checksum(const struct batch *p, const struct load *l,
				uint8_t *at)
{
	uint32_t crc = 0;

	for (unsigned int i = 0; i < l->n && !p->query; i++) {
		struct ulrpc_call *call = l->calls[i];
		struct load_body body = load_body(call);

		if (call->flags & CALL_NAMED)
			crc = crc32c(crc, call_context(call)->name.bytes,
				     call_context(call)->name.length);
		crc = crc32c(crc, body.start, body.length);
	}
	return wire_checksum_put(at, crc);
}

/* Encodes what few heads have: a checksum, a flavour above ULRPC_FLAVOUR_AUTH,
 * or the number of a service that shares its portal. */
static out_of_line uint8_t *encode_marks(const struct batch *p,
					 const struct load *l, uint8_t *at)
{
	enum ulrpc_flavour flavour = l->client->flavour;

	if (l->client->checked)
		at = encode_checksum(p, l, at);
	if (flavour > ULRPC_FLAVOUR_AUTH)
		at = wire_flavour_put(at, flavour_to_wire(flavour));
	if (l->client->number)
		at = wire_service_put(at, l->client->number);
	return at;
}

static uint8_t *encode_head(struct batch *p, const struct load *l)
{
	struct ulrpc_client *c = l->client;
	struct import *imp = c->imp;
	struct wire_requests m = {
		.connection = imp->connection,
		.client = imp->handle,
		.acked = import_acked(imp),
		.epoch = imp->epoch,
	};
	uint8_t *at = wire_requests_put(p->head, &m);

	imp->acked_sent = m.acked;
	at = p->query ? encode_queries(p, l, at) : encode_calls(p, l, at);
	if (unlikely(c->marked))
		at = encode_marks(p, l, at);
	return wire_bodies_put(at, (uint32_t)l->bodies);
}

/* Does what encode_bodies() does where more is to be done than to copy bodies.
 */
static out_of_line unsigned int encode_bodies_apart(struct batch *p,
						    const struct load *l,
						    uint8_t *at,
						    struct iovec *iov)
{
	uint8_t *from = p->head;
	unsigned int niov = 0;

	for (unsigned int i = 0; i < l->n; i++) {
		struct ulrpc_call *call = l->calls[i];
		struct load_body body = load_body(call);

		if (call->flags & CALL_NAMED)
			at = mempcpy(at, call_context(call)->name.bytes,
				     call_context(call)->name.length);
		if (!load_borrows(call)) {
			at = mempcpy(at, body.start, body.length);
			continue;
		}
		if (at > from)
			iov[niov++] =
				(struct iovec){ from, (size_t)(at - from) };
		iov[niov++] = (struct iovec){ body.start, body.length };
		from = at;
		call_get(call);
		p->entries[i].borrowed = call;
		p->nborrowed++;
		p->record = NULL;
	}
	if (at > from)
		iov[niov++] = (struct iovec){ from, (size_t)(at - from) };
	return niov;
}

/* Adds the bodies: copied behind the head, or from the calls' memory. Returns
 * the number of fragments in @iov. */
static unsigned int encode_bodies(struct batch *p, const struct load *l,
				  uint8_t *at, struct iovec *iov)
{
	unsigned int n = p->query ? 0 : l->n;

	if (unlikely(l->apart))
		return encode_bodies_apart(p, l, at, iov);
	for (unsigned int i = 0; i < n; i++) {
		struct ulrpc_call *call = l->calls[i];

		memcpy(at, call_body(call), call->length);
		at += call->length;
	}
	iov[0] = (struct iovec){ p->head, (size_t)(at - p->head) };
	return 1;
}

/* Sends a message of one fragment, if LNet can send it at once. */
static in_line bool batch_put_now(struct batch *p, const struct load *l,
				  const struct iovec *iov, uint64_t hdr_data)
{
	const struct ulnet_put_now put = { .start = iov->iov_base,
					   .length = (uint32_t)iov->iov_len,
					   .self = LNET_NID_ANY,
					   .target = p->peer,
					   .portal = l->client->portal,
					   .match_bits = p->match,
					   .hdr_data = hdr_data };
	struct shard *s = p->shard;

	if (!lnet_put_now(s->node, s->cpt, &put, &p->local))
		return false;
	p->target = p->hop = p->peer.nid;
	p->paths = 1;
	stat_count(s, RPC_STAT_parcels_sent);
	entries_release(p);
	return true;
}

static out_of_line int batch_put(struct batch *p, const struct load *l,
				 const struct iovec *iov, unsigned int niov,
				 uint64_t hdr_data)
{
	struct ulrpc_client *c = l->client;
	uint64_t left = batch_time_left(l->until, l->now);
	struct ulnet_md md = {
		.start = niov == 1 ? iov[0].iov_base : (void *)iov,
		.length = niov == 1 ? (uint32_t)iov[0].iov_len : niov,
		.threshold = 1,
		.options = LNET_MD_OF_LAYER | p->shard->near |
			   (niov == 1 ? 0 : LNET_MD_IOVEC),
		.numa_node = p->shard->numa_node,
		.user_ptr = p,
		.handler = batch_on_sent,
		.timeout = left > SEND_TIMEOUT_MAX ? 0 : left,
	};
	int rc = LNetMDBind(p->shard->node, &md, LNET_UNLINK, &p->send_md);

	if (rc) {
		entries_release(p); /* no event will come */
		return rc;
	}
	p->sending = true;
	rc = LNetPut(LNET_NID_ANY, p->send_md, LNET_NOACK_REQ, p->peer,
		     c->portal, p->match, 0, hdr_data);
	if (rc)
		(void)LNetMDUnlink(p->send_md);
	else
		stat_count(p->shard, RPC_STAT_parcels_sent);
	return rc;
}

/* Encrypts the message in @iov into memory of its own, which is sent instead.
 * Returns what batch_seal() returns. */
static int batch_seal_apart(struct batch *p, struct sealed *sd,
			    const struct sealed_to *to, uint64_t now,
			    struct iovec *iov, unsigned int niov)
{
	struct slab *slab = &p->shard->imports->slab;
	size_t size = SEAL_HEAD;
	uint8_t *record;
	int rc;

	for (unsigned int i = 0; i < niov; i++)
		size += iov[i].iov_len;
	record = slab_get(slab, size);
	if (!record)
		return -ENOMEM;
	rc = sealed_make(sd, to, iov, niov, now, record, record + SEAL_HEAD);
	if (rc) {
		slab_put(slab, record, size);
		return rc;
	}
	entries_release(p);
	p->record = record;
	p->record_size = size;
	p->nborrowed = 1;
	iov[0] = (struct iovec){ record, size };
	return 1;
}

/* Writes the seal of the message in @iov in front of it, where batch_new() has
 * left SEAL_HEAD bytes. Returns the number of fragments, or -errno. */
static out_of_line int batch_seal(struct batch *p, const struct load *l,
				  struct iovec *iov, unsigned int niov,
				  uint64_t hdr_data)
{
	const struct sealed_to to = { l->client->portal, p->match, hdr_data };
	bool private = l->client->flavour == ULRPC_FLAVOUR_PRIVACY;
	struct sealed *sd = l->client->imp->sealed;
	uint8_t *head = p->head - SEAL_HEAD;
	int rc;

	if (private && niov > 1)
		return batch_seal_apart(p, sd, &to, l->now, iov, niov);
	rc = sealed_make(sd, &to, iov, niov, l->now, head,
			 private ? iov[0].iov_base : NULL);
	iov[0].iov_base = head;
	iov[0].iov_len += SEAL_HEAD;
	return rc ? rc : (int)niov;
}

static int batch_launch(struct batch *p, const struct load *l)
{
	struct iovec iov[LNET_MAX_IOV];
	unsigned int niov;
	uint64_t hdr_data;
	uint8_t *at;

	at = encode_head(p, l);
	hdr_data =
		wire_hdr_data(WIRE_REQUESTS, p->head, (size_t)(at - p->head));
	niov = encode_bodies(p, l, at, iov);
	if (unlikely(l->client->imp->sealed)) {
		int n = batch_seal(p, l, iov, niov, hdr_data);

		if (n < 0) {
			entries_release(p);
			return n;
		}
		niov = (unsigned int)n;
		hdr_data = wire_hdr_sealed(hdr_data);
	}
	if (likely(niov == 1) && likely(batch_put_now(p, l, iov, hdr_data)))
		return 0;
	return batch_put(p, l, iov, niov, hdr_data);
}

/* Frees a batch that was not sent, and for which no memory for replies was
 * attached. */
static void batch_drop(struct batch *p)
{
	p->open = 0;
	list_del(&p->of_import);
	batch_check(p);
}

unsigned int batch_send(struct ulrpc_client *c, unsigned int n)
{
	struct load l;
	struct batch *p;
	unsigned int sent;
	int rc;

	load_begin(&l, c);
	l.slots = slots_have(&c->imp->slots, n);
	batch_fill(&l, n);
	if (!l.n)
		return 0;
	sent = l.n;
	p = batch_new(&l);
	if (!p) {
		load_undo(&l, -ENOMEM);
		return sent;
	}
	shard_hold(c->shard);
	rc = reply_buf_attach(p);
	if (rc) {
		load_undo(&l, rc);
		batch_drop(p);
		return sent;
	}
	c->nqueued -= sent;
	c->inflight += sent;
	c->imp->sent = l.now;
	if (unlikely(batch_launch(p, &l)))
		batch_undelivered(p);
	else
		attempt_watch(c, p);
	return sent;
}

/* ---- queries ---- */

bool batch_query(struct ulrpc_client *c)
{
	uint64_t random = shard_random(c->shard, UINT64_MAX);
	struct batch *p;
	struct load l;

	load_begin(&l, c);
	load_fill_queries(&l);
	BUG_ON(!l.n);
	l.nagain = l.n;
	p = batch_new(&l);
	if (!p)
		return false;
	p->query = true;
	shard_hold(c->shard);
	if (reply_buf_attach(p)) {
		batch_drop(p);
		return false;
	}
	for (unsigned int i = 0; i < l.n; i++) {
		p->entries[i].call = l.calls[i];
		attempt_on_asked(l.calls[i], p, i, random);
	}
	c->imp->sent = l.now;
	if (batch_launch(p, &l)) {
		batch_undelivered(p);
		return true;
	}
	attempt_watch(c, p);
	attempts_asked(l.calls[0], p);
	return true;
}
