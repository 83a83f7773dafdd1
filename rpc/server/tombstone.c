/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/tombstone.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/inbox.h"
#include "rpc/quota.h"
#include "rpc/sealed.h"
#include "rpc/server/session/export.h"
#include "rpc/server/session/export_control.h"
#include "rpc/server/session/kept.h"
#include "rpc/server/serve/request.h"
#include "rpc/stats/stat.h"
#include "rpc/forwarded.h"
#include "rpc/wire/wire.h"
#include "rpc/wire/wire_put.h"

#define BUFFERS 2
/* bytes of a receive buffer: one more than the largest head of a message has */
#define BUFFER_SIZE (WIRE_HEAD_MAX + 1)
/* bytes of all answers that a CPT's tombstones have sent and LNet has not done
 * with, at most */
#define ANSWERS_MAX (UINT32_C(4) << 20)
/* us: LNet's time-out for an answer */
#define SEND_TIMEOUT UINT64_C(5000000)

/* The tombstones of a CPT. */
struct tombstones {
	struct list open; /* of tombstone.link */
	/* bytes of answers that LNet is sending, by the NID that they go to */
	struct quotas to;
};

struct tombstone {
	struct shard *shard;
	struct list link;
	struct inbox inbox;
};

struct tombstone_answer {
	struct shard *shard;
	struct quota *to;
	uint32_t size; /* bytes of this structure with the message */
	uint8_t bytes[];
};

/* ---- answers ---- */

static void answer_free(struct tombstone_answer *a)
{
	quota_put(&a->shard->tombstones->to, a->to, a->size);
	free(a);
}

static void tombstone_on_sent(const struct ulnet_event *ev)
{
	struct tombstone_answer *a = ev->user_ptr;
	struct shard *s = a->shard;

	if (ev->type == LNET_EVENT_SEND && ev->status)
		stat_count(s, RPC_STAT_answers_lost);
	if (!ev->unlinked)
		return;
	answer_free(a);
	shard_release(s);
}

/* If the message that @a answers was sealed, seals the answer too: @length
 * bytes in a->bytes + SEAL_HEAD, of which @head are the head. Sets *@md to what
 * is to be sent. Returns 0 or -errno. */
static int answer_seal_in(struct tombstone_answer *a,
			  const struct ulnet_event *ev, size_t head,
			  size_t length, struct ulnet_md *md,
			  uint64_t *hdr_data_p)
{
	const struct session *se = a->shard->exports->proved;
	uint8_t *message = a->bytes + SEAL_HEAD;
	const struct iovec iov = { message, length };
	struct sealed_to to = { ULRPC_PORTAL_REPLY, ev->match_bits,
				wire_hdr_data(WIRE_REPLIES, message, head) };

	md->start = message;
	md->length = (uint32_t)length;
	*hdr_data_p = to.hdr_data;
	if (!se)
		return 0;
	md->start = a->bytes;
	md->length += SEAL_HEAD;
	*hdr_data_p = wire_hdr_sealed(to.hdr_data);
	return sealed_make(se->sealed, &to, &iov, 1, shard_now(a->shard),
			   a->bytes, se->sealed->private ? message : NULL);
}

/* Sends the answer @a of @length bytes, of which @head are the head, to the
 * sender of @ev. */
static void answer_send(struct tombstone_answer *a,
			const struct ulnet_event *ev, size_t head,
			size_t length)
{
	struct ulnet_id to = { ev->source, ev->initiator.pid };
	struct shard *s = a->shard;
	struct ulnet_md md = {
		.threshold = 1,
		.options = LNET_MD_PREFER_PATH | LNET_MD_OF_LAYER,
		.user_ptr = a,
		.handler = tombstone_on_sent,
		.timeout = SEND_TIMEOUT,
	};
	struct ulnet_md_handle mdh;
	uint64_t hdr_data;

	if (answer_seal_in(a, ev, head, length, &md, &hdr_data) ||
	    LNetMDBind(s->node, &md, LNET_UNLINK, &mdh)) {
		stat_count(s, RPC_STAT_answers_lost);
		answer_free(a);
		return;
	}
	shard_hold(s);
	if (!LNetPut(ev->target.nid, mdh, LNET_NOACK_REQ, to,
		     ULRPC_PORTAL_REPLY, ev->match_bits, 0, hdr_data)) {
		stat_count(s, RPC_STAT_answers_sent);
		return;
	}
	stat_count(s, RPC_STAT_answers_lost);
	BUG_ON(LNetMDUnlink(mdh)); /* tombstone_on_sent() frees the answer */
}

static struct tombstone_answer *answer_new(struct shard *s,
					   const struct ulnet_nid *nid,
					   size_t bytes)
{
	struct tombstones *v = s->tombstones;
	struct tombstone_answer *a;
	uint32_t size =
		(uint32_t)(sizeof(*a) + SEAL_HEAD + WIRE_REPLIES_BOUND + bytes);
	struct quota *to = quota_take(&v->to, nid, size, shard_now(s));

	if (!to)
		return NULL;
	a = malloc(size);
	if (!a) {
		quota_put(&v->to, to, size);
		return NULL;
	}
	a->size = size;
	a->shard = s;
	a->to = to;
	return a;
}

/* Returns the status for all calls of @m that have no record. Sets *@e_p if the
 * connection is known. */
static uint32_t tombstone_status(struct shard *s, const struct ulnet_event *ev,
				 const struct wire_requests *m,
				 struct export **e_p)
{
	struct export *e =
		export_find(s->exports, m->connection, m->client,
			    &ev->initiator, &ev->source, shard_now(s));

	if (!e)
		return WIRE_NOT_CONNECTED;
	records_acked(&e->records, m->acked);
	*e_p = e;
	return e->epoch == m->epoch ? WIRE_NO_SERVICE : WIRE_STALE_EPOCH;
}

/* Sends the reply of @rec, which its service has left, in a message of its own.
 * Returns false if @rec has no reply, or if there is no memory. */
static bool tombstone_repeat(struct shard *s, const struct ulnet_event *ev,
			     const struct wire_replies *head,
			     const struct record *rec)
{
	struct kept_message m;
	struct kept_again again;
	struct tombstone_answer *a;
	uint8_t *at, *begin;
	size_t length;

	if (!rec->reply->left)
		return false;
	left_message(rec->reply, &m);
	if (!kept_find(&m, rec->xid, rec->attempt, &again))
		return false;
	length = again.reply.length;
	a = answer_new(s, &ev->source,
		       wire_reply_bound(&again.reply) + WIRE_BODIES_BOUND +
			       length);
	if (!a) {
		free(again.moved);
		return false;
	}
	at = wire_replies_put(begin = a->bytes + SEAL_HEAD, head);
	at = wire_reply_put(at, &again.reply);
	free(again.moved);
	if (length) {
		at = wire_bodies_put(at, (uint32_t)length);
		memcpy(at, again.reply.body, length);
	}
	answer_send(a, ev, (size_t)(at - begin), (size_t)(at - begin) + length);
	return true;
}

static void tombstone_again(struct shard *s, const struct ulnet_event *ev,
			    const struct wire_replies *head,
			    const struct record *rec)
{
	stat_count(s, tombstone_repeat(s, ev, head, rec)
			      ? RPC_STAT_answers_again
			      : RPC_STAT_requests_repeated);
}

/* Returns the status for @c, from what @e knows of it: @status if @c is new;
 * WIRE_OK: its reply, which *@rec_p has, is to be sent again; WIRE_STATUSES: it
 * gets no answer. As in a service, a call is not refused if it has come before,
 * because the other copy of it may have reached the service. */
static uint32_t tombstone_look(struct shard *s, struct export *e,
			       const struct wire_call *c, uint32_t status,
			       struct record **rec_p)
{
	switch (record_look(&e->records, c, export_source(e), shard_now(s),
			    rec_p)) {
	case RECORD_NEW:
	case RECORD_REPEATED:
		export_spare(s->exports, e, c);
		return status;
	case RECORD_UNKNOWN:
		stat_count(s, RPC_STAT_queries_unknown);
		return WIRE_UNKNOWN_CALL;
	case RECORD_DOUBTFUL:
		/* The client will learn from the store of the durable service.
		 */
		if (c->flags & WIRE_CALL_RESENT &&
		    c->semantics == ULRPC_EXACTLY_ONCE)
			return status;
		stat_count(s, RPC_STAT_requests_doubtful);
		return WIRE_DOUBTFUL;
	case RECORD_BEYOND:
		return WIRE_BAD_REQUEST;
	case RECORD_ANSWERED:
		return WIRE_OK;
	case RECORD_NO_ROOM:
		export_spare(s->exports, e, c);
		stat_count(s, RPC_STAT_requests_unnoted);
		return WIRE_STATUSES;
	default: /* @c is a copy, or a service is serving the call */
		stat_count(s, RPC_STAT_requests_repeated);
		return WIRE_STATUSES;
	}
}

static void tombstone_refuse(struct shard *s, const struct ulnet_event *ev,
			     const struct wire_requests *m,
			     const struct wire_call *calls)
{
	struct wire_replies head = { .client = m->client, .epoch = m->epoch };
	struct tombstone_answer *a;
	struct record *rec = NULL;
	struct export *e = NULL;
	uint64_t unknown_for = 0;
	uint32_t status, n = 0;
	uint8_t *at, *begin;

	if (!m->ncalls)
		return;
	a = answer_new(s, &ev->source, m->ncalls * WIRE_REPLY_BOUND);
	if (!a) {
		stat_count(s, RPC_STAT_answers_lost);
		return;
	}
	status = tombstone_status(s, ev, m, &e);
	if (!e)
		unknown_for = export_unknown_for(s->exports, m->connection,
						 shard_now(s));
	at = wire_replies_put(begin = a->bytes + SEAL_HEAD, &head);
	for (uint32_t i = 0; i < m->ncalls; i++) {
		const struct wire_call *c = &calls[i];
		struct wire_reply r = { .xid = c->xid,
					.attempt = c->attempt,
					.status = status,
					.absent = unknown_for };

		if (e)
			r.status = tombstone_look(s, e, c, status, &rec);
		if (r.status == WIRE_OK)
			tombstone_again(s, ev, &head, rec);
		if (r.status == WIRE_OK || r.status == WIRE_STATUSES)
			continue;
		at = wire_reply_put(at, &r);
		n++;
	}
	if (n)
		answer_send(a, ev, (size_t)(at - begin), (size_t)(at - begin));
	else
		answer_free(a);
}

/* Answers a sealed message, on the CPT that has its session. A message that was
 * cut off cannot be opened, and gets no answer. */
static void tombstone_open_sealed(struct shard *s, const struct ulnet_event *ev,
				  void *record, size_t length)
{
	struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_requests m;
	struct opened o;

	if (length < ev->rlength ||
	    export_unseal(s, unseal_handle(record, length), ev, record, length,
			  &o))
		return;
	if (!wire_requests_decode_heads(&m, calls, o.hdr_data, o.payload,
					o.length) &&
	    export_is_proved(s->exports, m.connection))
		tombstone_refuse(s, ev, &m, calls);
	export_unsealed(s);
}

/* ---- messages that came to another CPT than their connection's ---- */

static void tombstone_forwarded_there(struct forwarded *forwarded)
{
	struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_requests m;
	struct shard *s = forwarded->to;

	if (s->aborted || !s->tombstones)
		return;
	if (wire_is_sealed(forwarded->ev.hdr_data))
		tombstone_open_sealed(s, &forwarded->ev, forwarded->payload,
				      forwarded->length);
	else if (!wire_requests_decode_heads(&m, calls, forwarded->ev.hdr_data,
					     forwarded->payload,
					     forwarded->length))
		tombstone_refuse(s, &forwarded->ev, &m, calls);
}

static void tombstone_pass_on(struct shard *s, unsigned int cpt,
			      const struct ulnet_event *ev, const void *payload,
			      size_t length)
{
	struct forwarded *forwarded =
		forwarded_new(s, cpt, ev, payload, length, false);

	if (forwarded)
		forwarded_send(forwarded, tombstone_forwarded_there, NULL,
			       NULL);
	else
		stat_count(s, RPC_STAT_answers_lost);
}

/* ---- messages ---- */

static void on_message(void *arg, const struct ulnet_event *ev,
		       const void *payload, size_t length)
{
	struct tombstone *v = arg;
	struct shard *s = v->shard;
	struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_requests m;
	unsigned int cpt;
	int rc;

	stat_count(s, RPC_STAT_requests_received);
	if (wire_is_sealed(ev->hdr_data)) {
		cpt = export_handle_cpt(unseal_handle(payload, length));
		if (likely(cpt == s->cpt || cpt >= s->rpc->ncpts))
			tombstone_open_sealed(s, ev, (void *)payload, length);
		else
			tombstone_pass_on(s, cpt, ev, payload, length);
		return;
	}
	rc = wire_requests_decode_heads(&m, calls, ev->hdr_data, payload,
					length);
	if (rc) {
		stat_count(s, RPC_STAT_requests_malformed + stat_of_bad(rc));
		return;
	}
	cpt = export_cpt(m.connection);
	if (likely(cpt == s->cpt || cpt >= s->rpc->ncpts))
		tombstone_refuse(s, ev, &m, calls);
	else
		tombstone_pass_on(s, cpt, ev, payload, length);
}

/* ---- life ---- */

static struct tombstone *tombstone_find(struct shard *s, unsigned int portal)
{
	struct tombstone *v;

	list_for_each_entry (v, &s->tombstones->open, link)
		if (v->inbox.portal == portal)
			return v;
	return NULL;
}

int tombstone_open(struct shard *s, unsigned int portal)
{
	struct tombstone *v;
	int rc;

	if (s->closing)
		return -ESHUTDOWN;
	if (tombstone_find(s, portal))
		return 0;
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->shard = s;
	v->inbox = (struct inbox){
		.shard = s,
		.portal = portal,
		.buffers = BUFFERS,
		.buffer_size = BUFFER_SIZE,
		.message_max = BUFFER_SIZE,
		.heads = true,
		.fn = on_message,
		.arg = v,
	};
	rc = inbox_open(&v->inbox);
	if (rc) {
		free(v);
		return rc;
	}
	list_add_tail(&s->tombstones->open, &v->link);
	return 0;
}

static void close_one(struct tombstone *v)
{
	list_del(&v->link);
	inbox_close(&v->inbox, free, v);
}

void tombstone_close(struct shard *s, unsigned int portal)
{
	struct tombstone *v = tombstone_find(s, portal);

	if (v)
		close_one(v);
}

static int tombstone_shard_open(struct shard *s)
{
	struct tombstones *v = s->tombstones;

	quotas_init(&v->to, "bytes of answers from portals without a service",
		    ANSWERS_MAX, shard_random(s, UINT64_MAX));
	list_init(&v->open);
	return 0;
}

static void tombstone_shard_stop(struct shard *s)
{
	while (!list_empty(&s->tombstones->open))
		close_one(list_first(&s->tombstones->open, struct tombstone,
				     link));
}

static void tombstone_shard_free(struct shard *s)
{
	quotas_fini(&s->tombstones->to);
}

const struct rpc_part tombstone_part = {
	RPC_PART_STATE(struct tombstones, tombstones),
	.shard_open = tombstone_shard_open,
	.shard_stop = tombstone_shard_stop,
	.shard_free = tombstone_shard_free,
};
