/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/serve/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/crc32c.h"
#include "rpc/server/serve/service.h"
#include "rpc/server/session/export.h"
#include "rpc/server/session/kept.h"
#include "rpc/sealed.h"
#include "rpc/wire/wire_put.h"

/* Pauses before a message that was not delivered is sent again. They are longer
 * than the pauses of clients, because many replies may be for clients that have
 * gone. */
static const struct backoff_law reply_law = { .max = BACKOFF_NO_MAX,
					      .base = 10 * NSEC_PER_MSEC,
					      .cap = 500 * NSEC_PER_MSEC };
/* us: with more time left than this, a message has LNet's own time-out */
#define SEND_TIMEOUT_US UINT64_C(50000000)
/* us: time-out of a message whose deadline has passed */
#define LATE_TIMEOUT_US UINT64_C(1000000)

/* Bytes that a reply usually takes in the head: far less than WIRE_REPLY_BOUND,
 * the most that it can take. */
#define REPLY_USUAL 32
#define HEADROOM(n)                                                  \
	(WIRE_REPLIES_BOUND + WIRE_REPLY_BOUND + WIRE_BODIES_BOUND + \
	 (n)*REPLY_USUAL)

/* Bytes of bodies in a message with several replies, at most. They are enough
 * for the replies to a full message of requests. If those were split, the
 * client would send its next requests in several messages, and so on, in ever
 * smaller ones. */
#define BODIES_MOST UINT32_C(131072)
/* Bytes of checksums in the head of a message with several replies, at most. */
#define CHECKSUMS_MOST UINT32_C(8192)

/* What a sealed message has in addition, at the end of reply_message.data. */
struct reply_seal {
	uint64_t connection; /* the connection's export.handle */
	bool private;	     /* is the message encrypted, too? */
	struct iovec iov[2]; /* the seal, and the message behind it */
	uint8_t head[SEAL_HEAD];
	/* The encrypted form of a private message, while LNet sends it; else
	 * NULL. The message itself stays: for sending it again, and for the
	 * kept replies in it. Its bytes are charged to the share of the
	 * message. */
	uint8_t *record;
};

struct reply_message {
	struct service_cpt *sc;
	struct list link; /* node in service_cpt.replies, until @over */
	/* replies in the message that are kept; keeps is 0 if none is */
	struct record_reply kept;
	/* while replies are added to the message, else NULL */
	struct request_batch *batch;
	struct share *share; /* the share to which the message is charged */
	bool linked;	     /* LNet is sending the message */
	/* the end of RPC waits for the message: shard_work_begin() */
	bool work;
	bool owed; /* a reply in the message is owed: see reply_add() */
	/* the message is charged to sc->refusals, and not to sc->used_bytes */
	bool refusal;
	/* the message was sent or given up, and exists only because it is kept
	 */
	bool over;
	bool sealed;
	struct backoff tries;
	uint32_t calls;
	uint32_t size; /* bytes of @data, as of slab_size() */
	/* bytes of @data for the head, and for the bodies */
	uint32_t headroom, room;
	uint32_t bodies; /* bytes of bodies, so far */
	uint8_t *data;
	uint8_t *end; /* where the next field of the head is written */
	/* set by message_finish(), as the fields below are */
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

/* ---- request batches ---- */

void request_batch_free(struct request_batch *b)
{
	BUG_ON(b->out);
	if (b->export)
		export_unref(b->export);
	pool_put(&b->sc->batches, b);
}

/* ---- messages ---- */

/* Allocates m->data, with @headroom bytes for the head and at least @bodies
 * bytes for bodies. Returns false if there is no memory. */
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

/* Bytes at the end of data that are kept free for a seal. */
#define SEAL_ALIGN 16
#define SEAL_ROOM  (uint32_t)(sizeof(struct reply_seal) + SEAL_ALIGN)

static struct reply_seal *seal_of(const struct reply_message *m)
{
	uint32_t at = m->size - (uint32_t)sizeof(struct reply_seal);

	return (struct reply_seal *)(m->data + (at & ~(SEAL_ALIGN - 1u)));
}

/* Allocates a message with room for @r, and for all later replies of @b if they
 * are as long as @r. @bound: bytes that @r takes in the head, at most. Returns
 * NULL if there is no memory. */
static struct reply_message *message_get(struct request_batch *b,
					 const struct wire_reply *r,
					 size_t bound)
{
	struct reply_message *m = pool_get(&b->sc->messages);
	uint64_t bodies = (uint64_t)b->unanswered * r->length;
	uint32_t headroom = HEADROOM(b->unanswered);

	if (!m)
		return NULL;
	m->sc = b->sc;
	if (bodies > BODIES_MOST)
		bodies = MAX(BODIES_MOST, r->length);
	/* The message has checksums, or a seal. */
	if (unlikely(bound > WIRE_REPLY_BOUND)) {
		headroom += (uint32_t)MAX(
			bound, MIN(b->unanswered * bound, CHECKSUMS_MOST));
		bodies += SEAL_ROOM;
	}
	if (message_data(m, headroom, (uint32_t)bodies)) {
		if (unlikely(bound > WIRE_REPLY_BOUND))
			m->room -= SEAL_ROOM;
		return m;
	}
	pool_put(&b->sc->messages, m);
	return NULL;
}

static int64_t message_bytes(const struct reply_message *m)
{
	return (int64_t)(sizeof(*m) + m->size);
}

/* Charges @bytes to the share of @m; if negative, gives them back. */
static void message_charge(struct reply_message *m, int64_t bytes)
{
	if (m->refusal)
		service_charge_refusal(m->sc, m->share, bytes);
	else
		service_charge(m->sc, m->share, 0, bytes);
}

/* Returns the share for the client of @b, which is not connected: a share of
 * the client's NID alone, so that other clients have their room even if this
 * one does not take its answers. Without memory, returns the share that all
 * such clients have in common. */
static out_of_line struct share *unconnected_share(
	const struct request_batch *b)
{
	struct service_cpt *sc = b->sc;
	struct share *share = share_new(&sc->shard->exports->hosts, &b->source,
					sc->service->number, true);

	return share ? share : b->share;
}

static void message_init(struct reply_message *m, struct request_batch *b)
{
	struct service_cpt *sc = b->sc;
	struct wire_replies head = { .client = b->handle, .epoch = b->epoch };
	uint64_t estimate = estimates_told(sc, shard_now(sc->shard));

	if (sc->service->has_exec)
		head.window = grant_of(&b->share->grant,
				       service_limit(sc->service, window));
	m->batch = b;
	m->kept = (struct record_reply){ .until = TIME_NEVER };
	m->linked = m->owed = m->refusal = m->over = m->sealed = false;
	m->work = !sc->shard->aborted && !b->refused;
	/* reply_wait() sets the real deadline */
	backoff_begin(&m->tries, TIME_NEVER);
	m->calls = 0;
	m->bodies = 0;
	m->end = wire_replies_put(m->data, &head);
	if (estimate)
		m->end = wire_estimate_put(m->end, estimate);
	lnet_timer_init(&m->again, reply_again);
	m->share = b->share;
	if (unlikely(b->share == &sc->unconnected))
		m->share = unconnected_share(b);
	message_charge(m, message_bytes(m));
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
	message_charge(m, -message_bytes(m));
	slab_put(&sc->slab, m->data, m->size);
	pool_put(&sc->messages, m);
}

/* Called when @m was sent or given up: frees it, unless a reply in it is kept.
 * May end the service. */
static void message_end(struct reply_message *m)
{
	struct service_cpt *sc = m->sc;
	struct shard *s = sc->shard;
	bool work = m->work;

	m->over = true;
	list_del(&m->link);
	if (m->kept.keeps)
		service_count_kept(sc, message_bytes(m));
	else
		message_put(m);
	if (work)
		sc->answers--;
	service_cpt_settled(sc);
	if (work)
		shard_work_end(s);
	shard_release(s); /* sc may be freed here */
}

void reply_let_go(struct record_reply *kept)
{
	struct reply_message *m =
		container_of(kept, struct reply_message, kept);

	if (unlikely(kept->left)) {
		left_free(kept);
	} else if (m->over) {
		service_count_kept(m->sc, -message_bytes(m));
		message_put(m);
	}
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

/* Frees the encrypted form of @m, because LNet has done with it. */
static out_of_line void record_put(struct reply_message *m)
{
	struct reply_seal *seal = seal_of(m);
	size_t size = SEAL_HEAD + (size_t)m->length;

	if (!seal->record)
		return;
	slab_put(&m->sc->slab, seal->record, size);
	message_charge(m, -(int64_t)slab_size(size));
	seal->record = NULL;
}

/* Called when @m was certainly not delivered. */
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
	/* A message that may have been delivered is not sent again, because the
	 * client may have no buffer for a second one. */
	if (ev->type == LNET_EVENT_SEND &&
	    ev->outcome != LNET_OUTCOME_NOT_DELIVERED)
		message_end(m);
	else
		reply_failed(m);
}

/* The event handler of sealed messages. */
static void reply_on_sealed_event(const struct ulnet_event *ev)
{
	if (ev->unlinked)
		record_put(ev->user_ptr);
	reply_on_event(ev);
}

static inline void message_md(struct reply_message *m, uint64_t now,
			      struct ulnet_md *md)
{
	uint64_t left = now < m->deadline ? (m->deadline - now) / NSEC_PER_USEC
					  : LATE_TIMEOUT_US;

	*md = (struct ulnet_md){
		.start = m->start,
		.length = m->length,
		.threshold = 1,
		.options = LNET_MD_PREFER_PATH | LNET_MD_OF_LAYER,
		.user_ptr = m,
		.handler = reply_on_event,
		.timeout = left < SEND_TIMEOUT_US ? MAX(left, 1) : 0,
	};
}

static inline void message_count_late(const struct reply_message *m,
				      struct shard *s, uint64_t now)
{
	if (unlikely(now >= m->deadline))
		stat_count(s, RPC_STAT_answers_late);
}

static inline void message_launch(struct reply_message *m, struct shard *s,
				  const struct ulnet_md *md, uint64_t hdr_data)
{
	if (LNetMDBind(s->node, md, LNET_UNLINK, &m->md)) {
		if (m->sealed)
			record_put(m);
		reply_failed(m);
		return;
	}
	stat_count(s, RPC_STAT_answers_sent);
	m->linked = true;
	if (unlikely(LNetPut(m->self, m->md, LNET_NOACK_REQ, m->target,
			     ULRPC_PORTAL_REPLY, m->match, 0, hdr_data)))
		/* LNet then reports the end of the MD to reply_on_event() */
		LNetMDUnlink(m->md);
}

/* Returns the keys of the connection of @m; NULL: the connection has ended. */
static struct sealed *message_keys(const struct reply_message *m)
{
	struct exports *x = m->sc->shard->exports;
	uint64_t handle = seal_of(m)->connection;
	const struct export *e = id_slot_obj(&x->table, (uint32_t)handle);

	return e && e->handle == handle && e->session ? e->session->sealed
						      : NULL;
}

/* Seals @m anew, and sets what is to be sent. Returns 0, or -ENOMEM or -EIO. */
static int message_seal(struct reply_message *m, struct sealed *sd,
			uint64_t now, struct ulnet_md *md)
{
	struct reply_seal *seal = seal_of(m);
	const struct sealed_to to = { ULRPC_PORTAL_REPLY, m->match,
				      m->hdr_data };
	size_t size = SEAL_HEAD + (size_t)m->length;

	seal->iov[0] = (struct iovec){ seal->head, SEAL_HEAD };
	seal->iov[1] = (struct iovec){ m->start, m->length };
	if (!seal->private) {
		md->start = seal->iov;
		md->length = ARRAY_SIZE(seal->iov);
		md->options |= LNET_MD_IOVEC;
		return sealed_make(sd, &to, &seal->iov[1], 1, now, seal->head,
				   NULL);
	}
	seal->record = slab_get(&m->sc->slab, size);
	if (!seal->record)
		return -ENOMEM;
	message_charge(m, (int64_t)slab_size(size));
	md->start = seal->record;
	md->length = (uint32_t)size;
	return sealed_make(sd, &to, &seal->iov[1], 1, now, seal->record,
			   seal->record + SEAL_HEAD);
}

static out_of_line void message_send_sealed(struct reply_message *m)
{
	struct sealed *sd = message_keys(m);
	struct shard *s = m->sc->shard;
	uint64_t now = shard_now(s);
	struct ulnet_md md;

	message_count_late(m, s, now);
	if (!sd) {
		reply_give_up(m, "the connection has ended");
		return;
	}
	message_md(m, now, &md);
	md.handler = reply_on_sealed_event;
	if (message_seal(m, sd, now, &md)) {
		record_put(m);
		reply_failed(m);
		return;
	}
	message_launch(m, s, &md, wire_hdr_sealed(m->hdr_data));
}

/* Sends @m, if LNet can send it at once, and ends it. Not if the service ends,
 * which may be over with its last message: callers still use the service. */
static in_line bool message_put_now(struct reply_message *m, struct shard *s)
{
	const struct ulnet_put_now put = { .start = m->start,
					   .length = m->length,
					   .self = m->self,
					   .target = m->target,
					   .portal = ULRPC_PORTAL_REPLY,
					   .match_bits = m->match,
					   .hdr_data = m->hdr_data };
	struct ulnet_nid local;

	if (unlikely(m->sc->fsm.state != SERVICE_CPT_UP) ||
	    !lnet_put_now(s->node, s->cpt, &put, &local))
		return false;
	stat_count(s, RPC_STAT_answers_sent);
	message_end(m);
	return true;
}

/* Sends @m. A message whose deadline has passed is sent once, too, because the
 * caller may have more time than this attempt had. */
static in_line void message_send_plain(struct reply_message *m)
{
	struct shard *s = m->sc->shard;
	uint64_t now = shard_now(s);
	struct ulnet_md md;

	message_count_late(m, s, now);
	if (likely(message_put_now(m, s)))
		return;
	message_md(m, now, &md);
	message_launch(m, s, &md, m->hdr_data);
}

static void message_send(struct reply_message *m)
{
	if (unlikely(m->sealed))
		message_send_sealed(m);
	else
		message_send_plain(m);
}

static void reply_again(struct ulnet_timer *t)
{
	struct reply_message *m = container_of(t, struct reply_message, again);

	stat_count(m->sc->shard, RPC_STAT_answers_resent);
	message_send(m);
}

/* ---- packing ---- */

/* Adds the checksum and prepares the seal, if the client asked for them. */
static out_of_line void message_complete(struct reply_message *m,
					 const struct request_batch *b)
{
	struct reply_seal *seal;

	if (b->wants & BATCH_WANTS_CHECKSUM)
		m->end = wire_checksum_put(
			m->end, crc32c(0, m->data + m->headroom, m->bodies));
	if (!(b->wants & BATCH_WANTS_SEAL && b->export))
		return;
	m->sealed = true;
	seal = seal_of(m);
	seal->connection = b->export->handle;
	seal->private = batch_flavour(b) == ULRPC_FLAVOUR_PRIVACY;
	seal->record = NULL;
}

static in_line void message_finish(struct reply_message *m,
				   const struct request_batch *b)
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
	m->match = b->match;
	m->self = b->local;
	m->target = (struct ulnet_id){ b->source, b->client.pid };
	m->deadline = b->deadline;
	m->kept.until = b->deadline;
	/* A message without a deadline is sent again until a client that is
	 * silent would be forgotten. */
	if (m->deadline == TIME_NEVER)
		m->deadline = rpc_at(
			shard_now(m->sc->shard),
			rpc_ns(export_lease(m->sc->shard->rpc, b->export)));
}

/* If @m contains only refusals, charges it as a refusal. Returns false if there
 * is no room for more refusals. */
static bool message_refuses(struct reply_message *m)
{
	struct service_cpt *sc = m->sc;
	int64_t bytes = message_bytes(m);
	bool room = share_allows(m->share->host->used.refusals, sc->refusals,
				 service_limit(sc->service, queue_bytes_max),
				 (uint64_t)bytes);

	m->refusal = true;
	message_charge(m, bytes);
	service_charge(sc, m->share, 0, -bytes);
	return room;
}

/* If @m is much shorter than expected, moves it to memory of the right size. */
static in_line void message_shrink(struct reply_message *m)
{
	uint32_t packed = (uint32_t)(m->end - m->data);
	uint32_t head = packed + WIRE_CHECKSUM_BOUND + WIRE_BODIES_BOUND;
	uint32_t size = m->size, headroom = m->headroom;
	uint8_t *data = m->data;

	if (slab_size(head + m->bodies) > size / 2 ||
	    !message_data(m, head, m->bodies))
		return;
	m->end = m->data + packed;
	memcpy(m->data, data, packed);
	memcpy(m->data + head, data + headroom, m->bodies);
	message_charge(m, (int64_t)m->size - (int64_t)size);
	slab_put(&m->sc->slab, data, size);
}

#define REFUSALS_TOO_MANY "too many refusals are waiting to be sent"

/* Ends reply_flush() for a message with a checksum or a seal. A sealed message
 * keeps its size, because the seal's place is at its end. */
static out_of_line void reply_flush_marked(struct request_batch *b,
					   struct reply_message *m)
{
	if (!(b->wants & BATCH_WANTS_SEAL))
		message_shrink(m);
	message_complete(m, b);
	message_finish(m, b);
	if (!m->owed && !message_refuses(m))
		reply_give_up(m, REFUSALS_TOO_MANY);
	else
		message_send(m);
}

void reply_flush(struct request_batch *b)
{
	struct reply_message *m = b->out;

	if (!m)
		return;
	b->out = NULL;
	m->batch = NULL;
	if (unlikely(b->wants)) {
		reply_flush_marked(b, m);
		return;
	}
	message_shrink(m);
	message_finish(m, b);
	if (unlikely(!m->owed && !message_refuses(m)))
		reply_give_up(m, REFUSALS_TOO_MANY);
	else
		message_send_plain(m);
}

static bool message_has_room(const struct reply_message *m,
			     const struct wire_reply *r, size_t bound)
{
	size_t head = (size_t)(m->end - m->data);

	return head + bound + WIRE_BODIES_BOUND <= m->headroom &&
	       m->bodies + r->length <= m->room;
}

/* Sends the message of @b, if there is one, and begins another one for @r. */
static out_of_line struct reply_message *message_next(
	struct request_batch *b, const struct wire_reply *r, size_t bound)
{
	reply_flush(b);
	b->out = message_get(b, r, bound);
	if (b->out)
		message_init(b->out, b);
	return b->out;
}

/* Returns a message with room for @r; NULL: no memory. A message has at most
 * WIRE_CALLS_MAX replies in it, as it answers one message of requests. */
static struct reply_message *reply_room_for(struct request_batch *b,
					    const struct wire_reply *r)
{
	size_t bound = WIRE_REPLY_BOUND;

	if (unlikely(r->bulks.n | b->wants))
		bound = wire_reply_bound(r) + WIRE_CHECKSUM_BOUND;
	if (likely(b->out && message_has_room(b->out, r, bound)))
		return b->out;
	return message_next(b, r, bound);
}

static void flush_all(struct service_cpt *sc)
{
	while (!list_empty(&sc->flush)) {
		struct request_batch *b =
			list_first(&sc->flush, struct request_batch, link);

		list_del(&b->link);
		reply_flush(b);
		request_batch_unref(b);
	}
}

void replies_flush(struct ulnet_work *w)
{
	struct service_cpt *sc =
		container_of(w, struct service_cpt, flush_work);
	struct shard *s = sc->shard;

	sc->flush_scheduled = false;
	flush_all(sc);
	shard_release(s);
}

/* Schedules reply_flush(@b) for the end of the turn. */
static void flush_later(struct request_batch *b)
{
	struct service_cpt *sc = b->sc;

	if (!list_empty(&b->link))
		return;
	b->refs++;
	list_add_tail(&sc->flush, &b->link);
	if (sc->flush_scheduled)
		return;
	sc->flush_scheduled = true;
	shard_hold(sc->shard);
	shard_defer(sc->shard, &sc->flush_work);
}

void reply_add(struct request_batch *b, const struct wire_reply *r,
	       const void *body, bool owed, struct record *keep)
{
	struct reply_message *m = reply_room_for(b, r);

	BUG_ON(!b->unanswered);
	if (unlikely(!m)) {
		b->unanswered--;
		stat_count(b->sc->shard, RPC_STAT_answers_lost);
		if (keep) {
			record_end(keep, RECORD_LOST);
			record_drop(&b->export->records, keep);
		}
		return;
	}
	m->end = wire_reply_put(m->end, r);
	if (likely(r->length))
		memcpy(m->data + m->headroom + m->bodies, body, r->length);
	m->bodies += r->length;
	m->calls++;
	m->owed |= owed;
	b->unanswered--;
	if (keep)
		record_keep(&b->export->records, keep, &m->kept);
	if (!b->reading)
		flush_later(b);
}

void reply_skip(struct request_batch *b)
{
	BUG_ON(!b->unanswered);
	b->unanswered--;
}

/* ---- kept replies ---- */

/* Sets *@out to the message that contains the kept reply of @rec. Returns false
 * if another service than @sc made that reply. */
static bool kept_message_of(const struct service_cpt *sc,
			    const struct record *rec, struct kept_message *out)
{
	struct reply_message *m;

	if (unlikely(rec->reply->left)) {
		left_message(rec->reply, out);
		return true;
	}
	m = container_of(rec->reply, struct reply_message, kept);
	if (m->sc != sc)
		return false;
	/* replies are still being added: the message has no complete head
	 * before reply_flush() */
	if (m->batch)
		reply_flush(m->batch);
	*out = (struct kept_message){ m->hdr_data, m->start, m->length };
	return true;
}

bool reply_again_to(struct request_batch *b, const struct record *rec)
{
	struct kept_message m;
	struct kept_again again;

	if (!kept_message_of(b->sc, rec, &m) ||
	    !kept_find(&m, rec->xid, rec->attempt, &again))
		return false;
	reply_add(b, &again.reply, again.reply.body, false, NULL);
	free(again.moved);
	return true;
}

/* What chooses the kept replies of @sc to the client of @export. */
struct leaving {
	const struct service_cpt *sc;
	struct export *export;
};

static bool reply_is_of(const struct record_reply *kept, void *arg)
{
	const struct leaving *l = arg;

	return !kept->left &&
	       container_of(kept, struct reply_message, kept)->sc == l->sc;
}

/* Copies the kept reply @kept, so that the tombstone can answer from it when
 * the service has gone. Returns NULL if there is no room, or if RPC ends: then
 * nobody could answer from the copy. */
static struct record_reply *reply_leave(const struct record_reply *kept,
					void *arg)
{
	const struct leaving *l = arg;
	const struct reply_message *m =
		container_of(kept, struct reply_message, kept);
	const struct kept_message message = { m->hdr_data, m->start,
					      m->length };

	if (l->sc->shard->closing)
		return NULL;
	return left_new(l->sc->shard->exports, l->export, kept, &message);
}

static void lose_of(struct export *e, void *sc)
{
	struct leaving l = { sc, e };

	records_lose(&e->records, reply_is_of, reply_leave, &l);
}

/* Sends the messages that replies are still being added to, and then takes the
 * kept replies away from @sc. */
void replies_lose(struct service_cpt *sc)
{
	flush_all(sc);
	exports_each(sc->shard->exports, lose_of, sc);
}

/* ---- the end ---- */

/* Gives up messages that wait to be sent again. Messages that LNet has already
 * are still sent. */
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
