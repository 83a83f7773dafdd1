/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/serve/reply.h"

#include <errno.h>
#include <string.h>

#include "base/backoff.h"
#include "rpc/server/serve/estimates.h"
#include "rpc/server/session/export.h"
#include "rpc/wire/wire_put.h"

/* Pauses before what was not delivered is sent again. There may be many replies
 * to clients that have gone, so these pauses are longer than a client's own. */
static const struct backoff_law reply_law = { .max = BACKOFF_NO_MAX,
					      .base = 10 * NSEC_PER_MSEC,
					      .cap = 500 * NSEC_PER_MSEC };
/* The longest time-out with which a message is given to LNet, us. */
#define SEND_TIMEOUT_US UINT64_C(50000000)
/* The time-out if the deadline has passed before it is sent, us. */
#define LATE_TIMEOUT_US UINT64_C(1000000)

/* A reply usually has far less than its bound in the head. */
#define REPLY_USUAL 32
#define HEADROOM(n)                                                  \
	(WIRE_REPLIES_BOUND + WIRE_REPLY_BOUND + WIRE_BODIES_BOUND + \
	 (n)*REPLY_USUAL)

/* Bytes of bodies in the largest message for several replies. Replies to one
 * full message of requests fit in: if they went in several messages, the client
 * would send its next requests in several, and so on, ever smaller ones. */
#define BODIES_MOST UINT32_C(131072)
/* Bytes of checksums in its head, besides those of one reply. */
#define CHECKSUMS_MOST UINT32_C(8192)

struct reply_message {
	struct service_cpt *sc;
	struct list link;	  /* service_cpt.replies, until it is over */
	struct record_reply kept; /* keeps is 0: no reply in it is kept */
	struct origin *origin;	  /* while it is being packed */
	struct share *share;	  /* that it is charged to */
	bool linked;		  /* LNet has it */
	bool work;		  /* counts as work */
	bool owed;    /* room for a reply in it was kept: it is not given up */
	bool refusal; /* it counts as one: sc->refusals, and not held_bytes */
	bool over;    /* it is not on its way any more */
	struct backoff tries;
	uint32_t calls;
	uint32_t size;		 /* bytes of data, as slab_size() */
	uint32_t headroom, room; /* bytes for the head, and for bodies */
	uint32_t bodies;	 /* bytes of these */
	uint8_t *data;
	uint8_t *end; /* of the head */
	/* when it is packed */
	uint8_t *start;
	uint32_t length;
	uint64_t hdr_data, match, deadline;
	struct ulnet_id target;
	struct ulnet_nid self;
	struct ulnet_md_handle md;
	struct ulnet_timer again;
};

static void reply_again(struct ulnet_timer *t);

uint64_t reply_size(uint32_t length)
{
	return sizeof(struct reply_message) + slab_size(HEADROOM(1) + length);
}

void replies_init(struct service_cpt *sc)
{
	list_init(&sc->replies);
	pool_init(&sc->messages, sizeof(struct reply_message), 0);
}

/* ---- origins ---- */

void origin_free(struct origin *o)
{
	BUG_ON(o->out);
	if (o->export)
		export_unref(o->export);
	pool_put(&o->sc->origins, o);
}

/* ---- messages ---- */

/* Allocates data for @headroom and @bodies bytes; bodies get what rounding up
 * adds. */
static bool message_data(struct reply_message *m, uint32_t headroom,
			 uint32_t bodies)
{
	size_t size = slab_size(headroom + bodies);
	uint8_t *data = slab_get(&m->sc->slab, size);

	if (!data)
		return false;
	m->data = data;
	m->size = (uint32_t)size;
	m->headroom = headroom;
	m->room = (uint32_t)size - headroom;
	return true;
}

/* Makes a message for this reply, and for all later ones of @o if they are like
 * it. */
static struct reply_message *message_get(struct origin *o,
					 const struct wire_reply *r,
					 size_t bound)
{
	struct reply_message *m = pool_get(&o->sc->messages);
	uint64_t bodies = (uint64_t)o->unanswered * r->length;
	uint32_t headroom = HEADROOM(o->unanswered);

	if (!m)
		return NULL;
	m->sc = o->sc;
	if (bodies > BODIES_MOST)
		bodies = MAX(BODIES_MOST, r->length);
	if (unlikely(bound > WIRE_REPLY_BOUND)) /* it has checksums in it */
		headroom += (uint32_t)MAX(
			bound, MIN(o->unanswered * bound, CHECKSUMS_MOST));
	if (message_data(m, headroom, (uint32_t)bodies))
		return m;
	pool_put(&o->sc->messages, m);
	return NULL;
}

static int64_t message_bytes(const struct reply_message *m)
{
	return (int64_t)(sizeof(*m) + m->size);
}

/* The message holds @bytes more, or, if that is negative, fewer. */
static void message_held(struct reply_message *m, int64_t bytes)
{
	if (m->refusal)
		service_refused(m->sc, m->share, bytes);
	else
		service_held(m->sc, m->share, 0, bytes);
}

/* A client that is not connected has its share by its NID: a crowd of them does
 * not wait for one that takes no answers. */
static out_of_line struct share *stranger_share(const struct origin *o)
{
	struct service_cpt *sc = o->sc;
	struct share *share = share_new(&sc->shard->exports->hosts, &o->source,
					sc->service->portal, true);

	return share ? share : o->share;
}

static void message_init(struct reply_message *m, struct origin *o)
{
	struct service_cpt *sc = o->sc;
	struct wire_replies head = { .client = o->handle, .epoch = o->epoch };
	uint64_t estimate = estimates_told(sc, shard_now(sc->shard));

	if (sc->service->has_exec)
		head.window =
			grant_of(&o->share->grant, sc->service->conf.window);
	m->origin = o;
	m->kept = (struct record_reply){ .until = TIME_NEVER };
	m->linked = m->owed = m->refusal = m->over = false;
	m->work = !sc->shard->aborted && !o->refused;
	backoff_begin(&m->tries, TIME_NEVER); /* reply_wait() */
	m->calls = 0;
	m->bodies = 0;
	m->end = wire_replies_put(m->data, &head);
	if (estimate)
		m->end = wire_estimate_put(m->end, estimate);
	lnet_timer_init(&m->again, reply_again);
	m->share = o->share;
	if (unlikely(o->share == &sc->unknown))
		m->share = stranger_share(o);
	message_held(m, message_bytes(m));
	list_add_tail(&sc->replies, &m->link);
	if (m->work) {
		sc->answers++;
		shard_work_begin(sc->shard);
	}
	shard_hold(sc->shard);
}

static void message_put(struct reply_message *m)
{
	struct service_cpt *sc = m->sc;

	list_del(&m->link);
	message_held(m, -message_bytes(m));
	slab_put(&sc->slab, m->data, m->size);
	pool_put(&sc->messages, m);
}

/* The message is not on its way any more: frees it, unless it keeps a reply
 * that the client may ask for again. */
static void message_end(struct reply_message *m)
{
	struct service_cpt *sc = m->sc;
	struct shard *s = sc->shard;
	bool work = m->work;

	m->over = true;
	list_del(&m->link);
	if (m->kept.keeps)
		service_kept(sc, message_bytes(m));
	else
		message_put(m);
	if (work)
		sc->answers--;
	service_cpt_settled(sc);
	if (work)
		shard_work_end(s);
	shard_release(s); /* sc may go */
}

void reply_let_go(struct record_reply *kept)
{
	struct reply_message *m =
		container_of(kept, struct reply_message, kept);

	if (!m->over)
		return;
	service_kept(m->sc, -message_bytes(m));
	message_put(m);
}

static void reply_give_up(struct reply_message *m, const char *why)
{
	struct service_cpt *sc = m->sc;
	char text[LNET_NIDSTR_SIZE];

	stat_count(sc->shard, RPC_STAT_answers_lost);
	if (service_may_log(sc))
		lnet_log(LNET_LOG_WARN, "rpc",
			 "service %s: %u replies to %s are given up: %s",
			 sc->service->name, m->calls,
			 lnet_nid_format(&m->target.nid, text, sizeof(text)),
			 why);
	message_end(m);
}

/* ---- sending ---- */

static void reply_wait(struct reply_message *m)
{
	struct shard *s = m->sc->shard;
	struct backoff_failure f = { .now = shard_now(s),
				     .random = shard_random(s, UINT64_MAX) };
	uint64_t at;

	m->tries.until = m->deadline;
	if (backoff_next(&m->tries, &reply_law, &f, &at)) {
		reply_give_up(m, "not delivered by the deadline");
		return;
	}
	shard_arm(s, &m->again, at);
}

/* It was certainly not delivered. */
static void reply_failed(struct reply_message *m)
{
	const struct service_cpt *sc = m->sc;

	if (sc->shard->aborted || service_cpt_ended(sc))
		reply_give_up(m, "the service stops");
	else
		reply_wait(m);
}

static void reply_on_event(const struct ulnet_event *ev)
{
	struct reply_message *m = ev->user_ptr;

	if (!ev->unlinked)
		return;
	m->linked = false;
	/* A message that may have been delivered is not sent again: it would
	 * need room at the client, which may not be there. */
	if (ev->type == LNET_EVENT_SEND &&
	    ev->outcome != LNET_OUTCOME_NOT_DELIVERED)
		message_end(m);
	else
		reply_failed(m);
}

static int message_bind(struct reply_message *m, uint64_t now)
{
	uint64_t left = now < m->deadline ? (m->deadline - now) / NSEC_PER_USEC
					  : LATE_TIMEOUT_US;
	struct ulnet_md md = {
		.start = m->start,
		.length = m->length,
		.threshold = 1,
		.options = LNET_MD_PREFER_PATH | LNET_MD_OF_LAYER,
		.user_ptr = m,
		.handler = reply_on_event,
		.timeout = left < SEND_TIMEOUT_US ? MAX(left, 1) : 0,
	};

	return LNetMDBind(m->sc->shard->node, &md, LNET_UNLINK, &m->md);
}

/* A late message is sent once, as it may still end a call for sure: its caller
 * may have more time than he gave to this attempt. */
static void message_send(struct reply_message *m)
{
	uint64_t now = shard_now(m->sc->shard);
	int rc;

	if (unlikely(now >= m->deadline))
		stat_count(m->sc->shard, RPC_STAT_answers_late);
	if (message_bind(m, now)) {
		reply_failed(m);
		return;
	}
	stat_count(m->sc->shard, RPC_STAT_answers_sent);
	m->linked = true;
	rc = LNetPut(m->self, m->md, LNET_NOACK_REQ, m->target,
		     ULRPC_PORTAL_REPLY, m->match, 0, m->hdr_data);
	if (unlikely(rc))
		LNetMDUnlink(m->md); /* which makes an event */
}

static void reply_again(struct ulnet_timer *t)
{
	struct reply_message *m = container_of(t, struct reply_message, again);

	stat_count(m->sc->shard, RPC_STAT_answers_resent);
	message_send(m);
}

/* ---- packing ---- */

static void message_finish(struct reply_message *m, const struct origin *o)
{
	size_t head;

	if (m->bodies)
		m->end = wire_bodies_put(m->end, m->bodies);
	head = (size_t)(m->end - m->data);
	BUG_ON(head > m->headroom);
	m->start = m->data + m->headroom - head;
	memmove(m->start, m->data, head);
	m->length = (uint32_t)head + m->bodies;
	m->hdr_data = wire_hdr_data(WIRE_REPLIES, m->start, head);
	m->match = o->match;
	m->self = o->local;
	m->target = (struct ulnet_id){ o->source, o->client.pid };
	m->deadline = o->deadline;
	m->kept.until = o->deadline;
	/* As long as a silent client is remembered, but no longer. */
	if (m->deadline == TIME_NEVER)
		m->deadline = rpc_at(
			shard_now(m->sc->shard),
			rpc_ns(export_lease(m->sc->shard->rpc, o->export)));
}

/* The message has only refusals in it: charges it as such. False: there is no
 * room for it. */
static bool message_refuses(struct reply_message *m)
{
	struct service_cpt *sc = m->sc;
	int64_t bytes = message_bytes(m);
	bool room = share_allows(m->share->host->held.refusals, sc->refusals,
				 sc->service->conf.queue_bytes_max,
				 (uint64_t)bytes);

	m->refusal = true;
	message_held(m, bytes);
	service_held(sc, m->share, 0, -bytes);
	return room;
}

/* Moves a message that has become shorter than expected to memory that fits. */
static void message_shrink(struct reply_message *m)
{
	uint32_t head = (uint32_t)(m->end - m->data) + WIRE_BODIES_BOUND;
	uint32_t size = m->size, headroom = m->headroom;
	uint8_t *data = m->data;

	if (slab_size(head + m->bodies) > size / 2 ||
	    !message_data(m, head, m->bodies))
		return;
	m->end = m->data + (m->end - data);
	memcpy(m->data, data, head - WIRE_BODIES_BOUND);
	memcpy(m->data + head, data + headroom, m->bodies);
	message_held(m, (int64_t)m->size - (int64_t)size);
	slab_put(&m->sc->slab, data, size);
}

void reply_flush(struct origin *o)
{
	struct reply_message *m = o->out;

	if (!m)
		return;
	o->out = NULL;
	m->origin = NULL;
	message_shrink(m);
	message_finish(m, o);
	if (unlikely(!m->owed && !message_refuses(m)))
		reply_give_up(m, "too many refusals are waiting to be sent");
	else
		message_send(m);
}

static bool message_has_room(const struct reply_message *m,
			     const struct wire_reply *r, size_t bound)
{
	size_t head = (size_t)(m->end - m->data);

	return head + bound + WIRE_BODIES_BOUND <= m->headroom &&
	       m->bodies + r->length <= m->room;
}

/* Another message for @r. */
static out_of_line struct reply_message *message_next(
	struct origin *o, const struct wire_reply *r, size_t bound)
{
	reply_flush(o);
	o->out = message_get(o, r, bound);
	if (o->out)
		message_init(o->out, o);
	return o->out;
}

/* A message of requests has WIRE_CALLS_MAX calls at most, so one of replies has
 * no more than so many of them. */
static struct reply_message *reply_room_for(struct origin *o,
					    const struct wire_reply *r)
{
	size_t bound = WIRE_REPLY_BOUND;

	if (unlikely(r->bulks.n))
		bound = wire_reply_bound(r);
	if (likely(o->out && message_has_room(o->out, r, bound)))
		return o->out;
	return message_next(o, r, bound);
}

void replies_flush(struct ulnet_work *w)
{
	struct service_cpt *sc =
		container_of(w, struct service_cpt, flush_work);
	struct shard *s = sc->shard;

	sc->flushing = false;
	while (!list_empty(&sc->flush)) {
		struct origin *o = list_first(&sc->flush, struct origin, link);

		list_del(&o->link);
		reply_flush(o);
		origin_unref(o);
	}
	shard_release(s);
}

/* At the end of the turn. */
static void flush_later(struct origin *o)
{
	struct service_cpt *sc = o->sc;

	if (!list_empty(&o->link))
		return;
	o->refs++;
	list_add_tail(&sc->flush, &o->link);
	if (sc->flushing)
		return;
	sc->flushing = true;
	shard_hold(sc->shard);
	shard_defer(sc->shard, &sc->flush_work);
}

/* There is no memory for the reply that @keep was to keep. */
static void reply_lost(struct origin *o, struct record *keep)
{
	record_end(keep, RECORD_LOST);
	record_drop(&o->export->records, keep);
}

void reply_add(struct origin *o, const struct wire_reply *r, const void *body,
	       bool owed, struct record *keep)
{
	struct reply_message *m = reply_room_for(o, r);

	BUG_ON(!o->unanswered);
	if (unlikely(!m)) {
		o->unanswered--;
		stat_count(o->sc->shard, RPC_STAT_answers_lost);
		if (keep)
			reply_lost(o, keep);
		return;
	}
	m->end = wire_reply_put(m->end, r);
	if (likely(r->length))
		memcpy(m->data + m->headroom + m->bodies, body, r->length);
	m->bodies += r->length;
	m->calls++;
	m->owed = m->owed || owed;
	o->unanswered--;
	if (keep)
		record_keep(&o->export->records, keep, &m->kept);
	if (!o->reading)
		flush_later(o);
}

void reply_skip(struct origin *o)
{
	BUG_ON(!o->unanswered);
	o->unanswered--;
}

/* ---- replies that were kept ---- */

/* Copies what a reply says of sinks to one piece of memory, for free(). NULL:
 * there is no memory. */
static struct wire_moved *moved_again(const struct wire_reply *from)
{
	size_t words = 2 * (size_t)ULRPC_SEGMENTS_MAX;
	struct wire_moved *out =
		calloc(from->bulks.n, sizeof(*out) + words * sizeof(uint32_t));
	uint32_t *at = (uint32_t *)(out + from->bulks.n);
	struct wire_view view = from->bulks.view;
	struct wire_moved_in in;

	for (uint32_t i = 0; out && wire_moved_next(&view, &in); i++) {
		out[i] = (struct wire_moved){ .index = in.index,
					      .n = in.n,
					      .checksum = at };
		wire_moved_checksums(&in, at);
		at += in.n;
		if (!in.has_lengths)
			continue;
		out[i].length = at;
		wire_moved_lengths(&in, at);
		at += in.n;
	}
	return out;
}

static bool reply_once_more(struct origin *o, struct wire_reply *r,
			    uint32_t attempt)
{
	struct wire_moved *moved = NULL;

	if (r->bulks.n) {
		moved = moved_again(r);
		if (!moved)
			return false;
		r->bulks.list = moved;
	}
	r->attempt = attempt;
	reply_add(o, r, r->body, false, NULL);
	free(moved);
	return true;
}

bool reply_again_to(struct origin *o, const struct record *rec)
{
	struct reply_message *m =
		container_of(rec->reply, struct reply_message, kept);
	struct wire_reply *replies;
	struct wire_replies head;
	bool found = false;

	if (m->sc != o->sc)
		return false;
	if (m->origin) /* it is still being packed */
		reply_flush(m->origin);
	replies = calloc(WIRE_CALLS_MAX, sizeof(*replies));
	if (!replies)
		return false;
	BUG_ON(wire_replies_decode(&head, replies, m->hdr_data, m->start,
				   m->length));
	for (uint32_t i = 0; i < head.nreplies && !found; i++)
		if (replies[i].xid == rec->xid)
			found = reply_once_more(o, &replies[i], rec->attempt);
	free(replies);
	return found;
}

static bool reply_is_of(const struct record_reply *kept, void *sc)
{
	return container_of(kept, struct reply_message, kept)->sc == sc;
}

static void lose_of(struct export *e, void *sc)
{
	records_lose(&e->records, reply_is_of, sc);
}

void replies_lose(struct service_cpt *sc)
{
	exports_each(sc->shard->exports, lose_of, sc);
}

/* ---- the end ---- */

/* Messages that wait to be sent again are given up; those that LNet has may
 * still go. */
void replies_abort(struct service_cpt *sc)
{
	struct reply_message *m, *next;

	list_for_each_entry_safe (m, next, &sc->replies, link) {
		if (m->work) {
			m->work = false;
			sc->answers--;
			shard_work_end(sc->shard);
		}
		if (lnet_timer_armed(&m->again)) {
			shard_cancel(sc->shard, &m->again);
			reply_give_up(m, "the service stops");
		}
	}
}

void replies_stop(struct service_cpt *sc)
{
	struct reply_message *m;

	list_for_each_entry (m, &sc->replies, link)
		if (m->linked)
			LNetMDUnlink(m->md);
}
