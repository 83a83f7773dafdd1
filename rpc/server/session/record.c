/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/record.h"

void records_init(struct records *rs, const struct record_ops *ops,
		  struct quotas *quotas)
{
	*rs = (struct records){ .ops = ops, .quotas = quotas };
	list_init(&rs->replies);
	list_init(&rs->bodies);
}

/* ---- replies that are kept ---- */

static void record_reply_let_go(struct records *rs, struct record_reply *reply)
{
	list_del(&reply->link);
	reply->keeps = 0;
	rs->kept--;
	rs->ops->let_go(reply);
}

/* Does @rec keep a reply that may be used? If its call is acknowledged, the
 * reply may be gone. */
static bool has_reply(const struct records *rs, const struct record *rec)
{
	return rec->state == RECORD_KEPT && rec->xid > rs->acked;
}

static void reply_put(struct records *rs, struct record_reply *reply)
{
	BUG_ON(!reply->keeps);
	if (--reply->keeps == 0)
		record_reply_let_go(rs, reply);
}

static void body_unlink(struct record_body *body)
{
	list_del(&body->link);
	body->of->body = NULL;
	body->of = NULL;
}

static void body_let_go(struct records *rs, struct record *rec)
{
	struct record_body *body = rec->body;

	if (likely(!body))
		return;
	body_unlink(body);
	rs->ops->body_let_go(body);
}

void record_drop(struct records *rs, struct record *rec)
{
	body_let_go(rs, rec);
	if (has_reply(rs, rec))
		reply_put(rs, rec->reply);
	rec->state = RECORD_LOST;
}

/* Searches from the end, as the new body nearly always has the highest xid. */
void record_body_add(struct records *rs, struct record *rec,
		     struct record_body *body)
{
	struct list *at = rs->bodies.prev;

	body_let_go(rs, rec);
	while (at != &rs->bodies &&
	       list_entry(at, struct record_body, link)->of->xid > rec->xid)
		at = at->prev;
	list_add(at, &body->link);
	body->of = rec;
	rec->body = body;
}

void record_body_remove(struct records *rs, struct record_body *body,
			enum record_state state)
{
	struct record *rec = body->of;

	body_unlink(body);
	if (has_reply(rs, rec))
		reply_put(rs, rec->reply);
	rec->state = (uint8_t)state;
}

static void bodies_acked(struct records *rs, uint64_t xid)
{
	while (!list_empty(&rs->bodies)) {
		struct record *rec =
			list_first(&rs->bodies, struct record_body, link)->of;

		if (rec->xid > xid)
			break;
		body_let_go(rs, rec);
	}
}

/* Costs no more than what it lets go: it stops at the first message with a
 * reply that is not acknowledged. */
void records_acked_rare(struct records *rs)
{
	bodies_acked(rs, rs->acked);
	while (!list_empty(&rs->replies)) {
		struct record_reply *reply =
			list_first(&rs->replies, struct record_reply, link);

		if (reply->last > rs->acked)
			break;
		record_reply_let_go(rs, reply);
	}
}

/* ---- chunks ---- */

static bool table_make(struct records *rs)
{
	if (rs->slots)
		return true;
	rs->chunks = calloc(RECORD_CHUNKS, sizeof(rs->chunks[0]));
	if (!rs->chunks)
		return false;
	rs->slots = RECORD_SLOTS;
	return true;
}

/* If calls were refused because no chunk could be made, and are not over for
 * the client yet, makes all records of @c BLANK. Usually there are no such
 * calls. */
static void chunk_blank(const struct records *rs, struct record_chunk *c)
{
	uint32_t attempt = rs->unnoted_attempt;

	if (likely(rs->unnoted <= rs->acked))
		return;
	if (attempt == UINT16_MAX)
		attempt = UINT32_MAX;
	for (unsigned int i = 0; i < RECORD_CHUNK; i++)
		c->records[i] = (struct record){ .xid = rs->unnoted,
						 .attempt = attempt,
						 .state = RECORD_BLANK };
}

static struct record *chunk_make(struct records *rs, uint32_t slot,
				 const struct ulnet_nid *nid, uint64_t now)
{
	struct record_chunk *c;

	if (!table_make(rs))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->quota = quota_take(rs->quotas, nid, 1, now);
	if (!c->quota) {
		free(c);
		return NULL;
	}
	chunk_blank(rs, c);
	rs->chunks[slot / RECORD_CHUNK] = c;
	rs->used++;
	rs->ops->noted(rs, RECORD_CHUNK);
	return &c->records[slot % RECORD_CHUNK];
}

static void record_chunk_free(struct records *rs, struct record_chunk **c_p)
{
	struct record_chunk *c = *c_p;

	*c_p = NULL;
	rs->used--;
	rs->ops->noted(rs, -(int)RECORD_CHUNK);
	quota_put(rs->quotas, c->quota, 1);
	free(c);
}

void records_fini(struct records *rs)
{
	bodies_acked(rs, UINT64_MAX);
	for (unsigned int i = 0; i < RECORD_CHUNKS && rs->used; i++) {
		struct record_chunk *c = rs->chunks[i];

		if (!c)
			continue;
		for (unsigned int j = 0; j < RECORD_CHUNK; j++)
			if (c->records[j].state == RECORD_ACTIVE)
				rs->ops->forget(c->records[j].request);
		record_chunk_free(rs, &rs->chunks[i]);
	}
	while (!list_empty(&rs->replies))
		record_reply_let_go(rs, list_first(&rs->replies,
						   struct record_reply, link));
	free(rs->chunks);
	rs->chunks = NULL;
	rs->slots = 0;
}

/* ---- looking up a request ---- */

/* A new call takes the record: lets go of the reply and the body of the call
 * before, and gives up its request. */
static void record_take(struct records *rs, struct record *rec, uint64_t xid)
{
	struct ulrpc_request *r = NULL;

	if (rec->state == RECORD_ACTIVE)
		r = rec->request;
	else if (has_reply(rs, rec))
		reply_put(rs, rec->reply);
	body_let_go(rs, rec);
	rec->xid = xid;
	rec->attempt = 0;
	rec->state = RECORD_NONE;
	if (r)
		rs->ops->give_up(r);
}

static enum record_past record_past(const struct record *rec,
				    const struct wire_call *c)
{
	switch ((enum record_state)rec->state) {
	case RECORD_ACTIVE:
		return RECORD_AGAIN;
	case RECORD_KEPT:
		return RECORD_ANSWERED;
	case RECORD_LOST:
		return RECORD_DOUBTFUL;
	case RECORD_STALLED:
		return RECORD_HOPELESS;
	default:
		break;
	}
	if (c->flags & WIRE_CALL_QUERY)
		return RECORD_UNKNOWN;
	if (rec->state == RECORD_DONE || c->flags & WIRE_CALL_RESENT)
		return RECORD_REPEATED;
	return RECORD_NEW;
}

static void record_unnoted(struct records *rs, uint64_t xid, uint32_t attempt)
{
	if (rs->unnoted <= rs->acked)
		rs->unnoted_attempt = 0;
	rs->unnoted = MAX(rs->unnoted, xid);
	rs->unnoted_attempt =
		(uint16_t)MAX(rs->unnoted_attempt, MIN(attempt, UINT16_MAX));
}

/* Prepares @rec, which is BLANK, for @c. Returns false if @c may be a copy of a
 * request that was refused. */
static bool record_fill(struct record *rec, const struct wire_call *c)
{
	if (c->xid <= rec->xid && c->attempt <= rec->attempt)
		return false;
	*rec = (struct record){ .state = RECORD_NONE };
	return true;
}

enum record_past record_look_rare(struct records *rs, const struct wire_call *c,
				  const struct ulnet_nid *nid, uint64_t now,
				  struct record **rec_p)
{
	struct record *rec;

	if (!c->xid || c->slot >= RECORD_SLOTS)
		return RECORD_BEYOND;
	if (c->xid <= rs->acked)
		return RECORD_COPY;
	rec = record_find(rs, c->slot);
	if (!rec)
		rec = chunk_make(rs, c->slot, nid, now);
	if (!rec) {
		record_unnoted(rs, c->xid, c->attempt);
		return RECORD_NO_ROOM;
	}
	if (rec->state == RECORD_BLANK && !record_fill(rec, c))
		return RECORD_NO_ROOM;
	if (c->xid < rec->xid ||
	    (c->xid == rec->xid && c->attempt <= rec->attempt))
		return RECORD_COPY;
	if (c->xid > rec->xid)
		record_take(rs, rec, c->xid);
	rec->attempt = c->attempt;
	*rec_p = rec;
	return record_past(rec, c);
}

/* ---- letting go ---- */

static bool record_is_idle(struct records *rs, struct record *rec, uint64_t now)
{
	if (has_reply(rs, rec) && rec->reply->until <= now)
		record_drop(rs, rec);
	if (rec->xid > rs->acked)
		return false;
	if (rec->state == RECORD_ACTIVE)
		record_take(rs, rec, rec->xid);
	return true;
}

static bool chunk_is_idle(struct records *rs, struct record_chunk *c,
			  uint64_t now)
{
	bool idle = true;

	for (unsigned int i = 0; i < RECORD_CHUNK; i++)
		idle &= record_is_idle(rs, &c->records[i], now);
	return idle;
}

void records_trim(struct records *rs, uint64_t now)
{
	if (rs->trimmed == now)
		return;
	rs->trimmed = now;
	records_acked_rare(rs);
	for (unsigned int i = 0; i < RECORD_CHUNKS && rs->used; i++)
		if (rs->chunks[i] && chunk_is_idle(rs, rs->chunks[i], now))
			record_chunk_free(rs, &rs->chunks[i]);
}

uint64_t records_executed(const struct records *rs)
{
	uint64_t xid = rs->acked;

	for (unsigned int i = 0; i < RECORD_CHUNKS && rs->slots; i++) {
		const struct record_chunk *c = rs->chunks[i];

		for (unsigned int j = 0; c && j < RECORD_CHUNK; j++)
			if (c->records[j].state > RECORD_BLANK)
				xid = MAX(xid, c->records[j].xid);
	}
	return xid;
}

void records_spare(struct records *rs, uint32_t slot)
{
	struct record_chunk **c_p;

	if (!record_find(rs, slot))
		return;
	c_p = &rs->chunks[slot / RECORD_CHUNK];
	for (unsigned int i = 0; i < RECORD_CHUNK; i++)
		if ((*c_p)->records[i].state > RECORD_BLANK)
			return;
	for (unsigned int i = 0; i < RECORD_CHUNK; i++) {
		const struct record *rec = &(*c_p)->records[i];

		if (rec->xid > rs->acked)
			record_unnoted(rs, rec->xid, rec->attempt);
	}
	record_chunk_free(rs, c_p);
}

/* Replaces the reply of @rec, a KEPT record, by its heir. Without an heir, @rec
 * becomes LOST. */
static void record_inherit(struct record *rec)
{
	rec->reply = rec->reply->heir;
	if (!rec->reply)
		rec->state = RECORD_LOST;
}

void records_lose(struct records *rs,
		  bool (*is_of)(const struct record_reply *reply, void *arg),
		  struct record_reply *(*heir)(const struct record_reply *reply,
					       void *arg),
		  void *arg)
{
	struct record_reply *reply, *next;

	list_for_each_entry (reply, &rs->replies, link)
		if (is_of(reply, arg))
			reply->heir = heir(reply, arg);
	for (unsigned int i = 0; i < RECORD_CHUNKS && rs->kept; i++) {
		struct record_chunk *c = rs->chunks[i];

		for (unsigned int j = 0; c && j < RECORD_CHUNK; j++) {
			struct record *rec = &c->records[j];

			if (has_reply(rs, rec) && is_of(rec->reply, arg))
				record_inherit(rec);
		}
	}
	list_for_each_entry_safe (reply, next, &rs->replies, link) {
		if (!is_of(reply, arg))
			continue;
		if (reply->heir) {
			list_add(reply->link.prev, &reply->heir->link);
			rs->kept++;
		}
		record_reply_let_go(rs, reply);
	}
}
