/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/reply.h"

#include <errno.h>
#include <string.h>

#include "rpc/export.h"

#define BACKOFF_BASE_NS (10 * NSEC_PER_MSEC)
#define BACKOFF_MAX_NS	(5 * NSEC_PER_SEC)
/* A message is given to LNet with at most this time, us. */
#define SEND_TIMEOUT_US UINT64_C(50000000)
/* And this, if the time is over before it is sent. */
#define LATE_TIMEOUT_US UINT64_C(1000000)

/* A reply usually has far less than its bound in the head. */
#define REPLY_USUAL 32
#define HEADROOM(n)                                                  \
	(WIRE_REPLIES_BOUND + WIRE_REPLY_BOUND + WIRE_BODIES_BOUND + \
	 (n)*REPLY_USUAL)

/* Room of messages: for how many replies, and for bytes of bodies. The largest
 * take what comes of a message of requests of the usual limit: in several
 * messages it would come back as several, and so on, ever smaller ones. */
static const struct {
	uint32_t replies, headroom, room;
} classes[REPLY_CLASSES] = {
	{ 40, HEADROOM(40), 4096 - HEADROOM(40) },
	{ WIRE_CALLS_MAX, HEADROOM(WIRE_CALLS_MAX),
	  65536 - HEADROOM(WIRE_CALLS_MAX) },
	{ WIRE_CALLS_MAX, HEADROOM(WIRE_CALLS_MAX), 131072 },
};

#define REPLY_OWN REPLY_CLASSES /* of its own size, for one reply */

struct reply_message {
	struct service_cpt *sc;
	struct list link;    /* service_cpt.replies */
	struct share *share; /* whose it is */
	unsigned int class;
	bool linked; /* LNet has it */
	bool work;   /* counts as such */
	unsigned int tries;
	uint32_t calls;
	uint32_t headroom, room; /* bytes for the head, and for bodies */
	uint32_t bodies;	 /* bytes of these */
	uint8_t *end;		 /* of the head */
	/* when it is packed */
	uint8_t *start;
	uint32_t length;
	uint64_t hdr_data, match, deadline;
	struct ulnet_id target;
	struct ulnet_nid self;
	struct ulnet_md_handle md;
	struct ulnet_timer again;
	_Alignas(uint64_t) uint8_t data[];
};

static void again(struct ulnet_timer *t);

void replies_init(struct service_cpt *sc)
{
	for (unsigned int i = 0; i < REPLY_CLASSES; i++)
		pool_init(&sc->reply_pools[i],
			  sizeof(struct reply_message) + classes[i].headroom +
				  classes[i].room,
			  0);
	list_init(&sc->replies);
}

void replies_fini(struct service_cpt *sc)
{
	for (unsigned int i = 0; i < REPLY_CLASSES; i++)
		pool_fini(&sc->reply_pools[i]);
}

/* ---- messages ---- */

/* For this reply and, if they are like it, for all that are to come; REPLY_OWN:
 * for this one. */
static unsigned int class_for(const struct origin *o,
			      const struct wire_reply *r, size_t bound)
{
	const unsigned int last = REPLY_CLASSES - 1;
	unsigned int i = bound > WIRE_REPLY_BOUND; /* has checksums in it */

	while (i < last && (o->unanswered > classes[i].replies ||
			    r->length > classes[i].room / o->unanswered))
		i++;
	if (i > 0 && (o->unanswered == 1 || bound > classes[i].headroom / 2 ||
		      r->length > classes[i].room))
		return REPLY_OWN;
	return i;
}

static struct reply_message *message_get(struct origin *o,
					 const struct wire_reply *r,
					 size_t bound)
{
	unsigned int class = class_for(o, r, bound);
	uint32_t headroom = HEADROOM(0) + (uint32_t)bound, room = r->length;
	struct reply_message *m;

	if (likely(class != REPLY_OWN)) {
		headroom = classes[class].headroom;
		room = classes[class].room;
		m = pool_get(&o->sc->reply_pools[class]);
	} else {
		m = malloc(sizeof(*m) + headroom + room);
	}
	if (!m)
		return NULL;
	m->class = class;
	m->headroom = headroom;
	m->room = room;
	return m;
}

/* Bytes of memory that it takes. */
static int64_t message_size(const struct reply_message *m)
{
	return (int64_t)(sizeof(*m) + m->headroom + m->room);
}

static void message_init(struct reply_message *m, struct origin *o)
{
	struct service_cpt *sc = o->sc;
	struct wire_replies head = { .client = o->handle, .epoch = o->epoch };

	m->sc = sc;
	m->linked = false;
	m->work = !sc->shard->aborted && !o->refused;
	m->tries = 0;
	m->calls = 0;
	m->bodies = 0;
	m->end = wire_replies_put(m->data, &head);
	lnet_timer_init(&m->again, again);
	m->share = o->share;
	m->share->replies += (uint64_t)message_size(m);
	service_held(sc, m->share, 0, message_size(m));
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
	m->share->replies -= (uint64_t)message_size(m);
	service_held(sc, m->share, 0, -message_size(m));
	if (likely(m->class != REPLY_OWN))
		pool_put(&sc->reply_pools[m->class], m);
	else
		free(m);
}

static void message_end(struct reply_message *m)
{
	struct service_cpt *sc = m->sc;
	struct shard *s = sc->shard;
	bool work = m->work;

	message_put(m);
	if (work)
		sc->answers--;
	service_cpt_settled(sc);
	if (work)
		shard_work_end(s);
	shard_release(s); /* sc may go */
}

static void give_up(struct reply_message *m, const char *why)
{
	struct service_cpt *sc = m->sc;
	char text[LNET_NIDSTR_SIZE];

	stat_count(sc->shard, RPC_STAT_answers_lost);
	if (service_may_log(sc))
		lnet_log(LNET_LOG_WARN, "rpc",
			 "service %s: %u replies to %s are lost: %s",
			 sc->service->name, m->calls,
			 lnet_nid_format(&m->target.nid, text, sizeof(text)),
			 why);
	message_end(m);
}

/* ---- sending ---- */

static void wait_again(struct reply_message *m)
{
	struct shard *s = m->sc->shard;
	uint64_t window = BACKOFF_BASE_NS << MIN(m->tries, 16u);
	uint64_t now = shard_now(s);
	uint64_t at;

	window = MIN(window, BACKOFF_MAX_NS);
	at = now + shard_random(s, window);
	m->tries++;
	if (at >= m->deadline) {
		give_up(m, "not delivered by the deadline");
		return;
	}
	shard_arm(s, &m->again, at);
}

static void on_event(const struct ulnet_event *ev)
{
	struct reply_message *m = ev->user_ptr;
	struct service_cpt *sc = m->sc;

	if (!ev->unlinked)
		return;
	m->linked = false;
	/* What may have been delivered is not sent again: it would need room at
	 * the client that may not be there. */
	if (ev->type == LNET_EVENT_SEND &&
	    ev->outcome != LNET_OUTCOME_NOT_DELIVERED)
		message_end(m);
	else if (sc->shard->aborted || service_cpt_ended(sc))
		give_up(m, "the service stops");
	else
		wait_again(m);
}

static int message_bind(struct reply_message *m, uint64_t now)
{
	uint64_t left = now < m->deadline ? (m->deadline - now) / NSEC_PER_USEC
					  : LATE_TIMEOUT_US;
	struct ulnet_md md = {
		.start = m->start,
		.length = m->length,
		.threshold = 1,
		.user_ptr = m,
		.handler = on_event,
		.timeout = left < SEND_TIMEOUT_US ? MAX(left, 1) : 0,
	};

	return LNetMDBind(m->sc->shard->node, &md, LNET_UNLINK, &m->md);
}

/* What is late goes once: to be told that it has expired, or was answered, ends
 * a call for sure whose caller has more time than he gave to this attempt. */
static void message_send(struct reply_message *m)
{
	uint64_t now = shard_now(m->sc->shard);
	int rc;

	if (unlikely(now >= m->deadline))
		stat_count(m->sc->shard, RPC_STAT_answers_late);
	if (message_bind(m, now)) {
		wait_again(m);
		return;
	}
	stat_count(m->sc->shard, RPC_STAT_answers_sent);
	m->linked = true;
	rc = LNetPut(m->self, m->md, LNET_NOACK_REQ, m->target,
		     ULRPC_PORTAL_REPLY, m->match, 0, m->hdr_data);
	if (unlikely(rc))
		LNetMDUnlink(m->md); /* which makes an event */
}

static void again(struct ulnet_timer *t)
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
	/* As long as a silent client is remembered, but no longer. */
	if (m->deadline == TIME_NEVER)
		m->deadline = rpc_at(shard_now(m->sc->shard),
				     rpc_ns(export_lease(m->sc->shard->rpc)));
}

/* What a client does not take may be twice of what is left. Before the first one
 * it has taken all. */
static bool replies_are_full(const struct reply_message *m)
{
	const struct ulrpc_service *svc = m->sc->service;
	uint64_t before = m->share->replies - (uint64_t)message_size(m);

	return service_held_bytes(svc) + before / 2 >
	       2 * svc->conf.queue_bytes_max;
}

void reply_flush(struct origin *o)
{
	struct reply_message *m = o->out;

	if (!m)
		return;
	o->out = NULL;
	message_finish(m, o);
	if (unlikely(replies_are_full(m)))
		give_up(m, "too many are waiting to be sent");
	else
		message_send(m);
}

static bool has_room(const struct reply_message *m, const struct wire_reply *r,
		     size_t bound)
{
	size_t head = (size_t)(m->end - m->data);

	return head + bound + WIRE_BODIES_BOUND <= m->headroom &&
	       m->bodies + r->length <= m->room && m->calls < WIRE_CALLS_MAX;
}

static struct reply_message *room_for(struct origin *o,
				      const struct wire_reply *r)
{
	size_t bound = r->nbulks ? wire_reply_bound(r) : WIRE_REPLY_BOUND;

	if (o->out && !has_room(o->out, r, bound))
		reply_flush(o);
	if (!o->out) {
		o->out = message_get(o, r, bound);
		if (o->out)
			message_init(o->out, o);
	}
	return o->out;
}

void replies_flush(struct ulnet_work *w)
{
	struct service_cpt *sc =
		container_of(w, struct service_cpt, flush_work);
	struct shard *s = sc->shard;

	sc->flushing = false;
	if (s->crashed)
		return;
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

void reply_add(struct origin *o, const struct wire_reply *r, const void *body)
{
	struct reply_message *m = room_for(o, r);

	BUG_ON(!o->unanswered);
	if (unlikely(!m)) {
		o->unanswered--;
		stat_count(o->sc->shard, RPC_STAT_answers_lost);
		return;
	}
	m->end = wire_reply_put(m->end, r);
	if (r->length)
		memcpy(m->data + m->headroom + m->bodies, body, r->length);
	m->bodies += r->length;
	m->calls++;
	o->unanswered--;
	if (!o->reading)
		flush_later(o);
}

/* ---- the end ---- */

/* What waits to be sent again, will not be; what LNet has, may still go. */
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
			give_up(m, "the service stops");
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

void replies_crash(struct service_cpt *sc)
{
	struct reply_message *m;

	list_for_each_entry (m, &sc->replies, link)
		shard_cancel(sc->shard, &m->again);
}

void replies_gone(struct service_cpt *sc)
{
	while (!list_empty(&sc->replies))
		message_put(
			list_first(&sc->replies, struct reply_message, link));
}
