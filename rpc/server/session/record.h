/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a server remembers of a client's calls, so that none is executed twice:
 * for each slot of the connection, a record of the last call that came in it. A
 * call has one number (xid) and one slot; a request is one attempt of a call. A
 * request of an acknowledged call is a RECORD_COPY. For any other request, the
 * record of its slot tells in constant time what is known:
 *
 *	the record is of		the request is
 *	a call with a higher xid	RECORD_COPY
 *	a call with a lower xid		RECORD_NEW: the client does not wait
 *					for the older call any more
 *	this call, and this attempt or	RECORD_COPY
 *	  a later one
 *	this call, and an earlier
 *	  attempt, and is ACTIVE	RECORD_AGAIN
 *		KEPT			RECORD_ANSWERED
 *		LOST			RECORD_DOUBTFUL
 *		STALLED			RECORD_HOPELESS
 *		NONE, DONE		RECORD_NEW, RECORD_REPEATED
 *
 * A query (WIRE_CALL_QUERY) is RECORD_UNKNOWN where another request would be
 * executed. It is noted like any attempt, so an earlier attempt that comes
 * after it is a copy, and is never executed.
 *
 * Kept replies lie in the messages in which they were sent (record_reply). A
 * message is let go when all calls with a kept reply in it are acknowledged, or
 * replaced in their slots, or when nobody will ask for it any more. The body of
 * a long reply is apart (record_body): the record owns it, and lets it go as
 * soon as the call is over for the client.
 *
 * Records are in chunks, made when one of their slots is used for the first
 * time; the clients of one host have their share of all chunks (quota.h). A
 * request for which no chunk can be made is refused as not executed. A late
 * copy of it must not be executed when there is room again: so the highest xid
 * and attempt of such requests are noted, and a chunk that is made later
 * refuses everything up to these (BLANK). The client goes on with higher
 * attempts. Calls of strangers that were refused are noted so, too
 * (export_spare()).
 *
 * Thread: owner.
 */
#ifndef RPC_RECORD_H
#define RPC_RECORD_H

#include "base/list.h"
#include "base/util.h"
#include "rpc/quota.h"
#include "rpc/wire/wire.h"

/* slots that each connection is granted */
#define RECORD_SLOTS  WIRE_SLOTS_USUAL
#define RECORD_CHUNK  64u /* slots in a chunk */
#define RECORD_CHUNKS (RECORD_SLOTS / RECORD_CHUNK)

struct ulrpc_request;
struct record_chunk;
struct records;

enum record_state {
	/* no attempt that has come was executed, and none of them will be */
	RECORD_NONE,
	/* no call has come in this slot; but requests up to the record's xid
	 * and attempt may be copies of requests that were refused without a
	 * record */
	RECORD_BLANK,
	RECORD_DONE, /* executed, and may be executed again */
	/* perhaps executed, and may not be executed again; there is no reply */
	RECORD_LOST,
	/* executed, and may not be executed again; the reply is kept */
	RECORD_KEPT,
	RECORD_STALLED, /* LOST, because the handler made no progress */
	RECORD_ACTIVE,	/* the call is being served */
	RECORD_STATES
};

/* What records know of a message with kept replies; embedded in that message.
 * Whoever owns the message sets all to 0 at first, but @until to TIME_NEVER. */
struct record_reply {
	struct list link; /* node in records.replies, while @keeps is not 0 */
	/* how many records have their reply in the message; some of them may be
	 * of calls that are acknowledged */
	uint32_t keeps;
	/* the service that made the message has ended (kept.h) */
	bool left;
	/* the highest xid of the calls whose replies the message has */
	uint64_t last;
	union {
		/* ns: after this no caller waits for a reply in the message;
		 * TIME_NEVER: some caller may wait forever */
		uint64_t until;
		/* during records_lose() only: what takes the place of this;
		 * NULL: nothing */
		struct record_reply *heir;
	};
};

/* What records know of the body of a long reply; embedded in that. */
struct record_body {
	struct list link; /* node in records.bodies, while @of is not NULL */
	/* the record that owns the body; NULL: the body was let go */
	struct record *of;
};

struct record {
	/* xid of the last call in this slot; 0: no call has come yet */
	uint64_t xid;
	uint32_t attempt;
	uint8_t state; /* enum record_state */
	union {
		struct ulrpc_request *request; /* valid in the state ACTIVE */
		/* valid in the state KEPT: the message with the reply. It may
		 * be gone if the call is acknowledged. */
		struct record_reply *reply;
	};
	/* the body of a long reply; NULL: the reply is not long */
	struct record_body *body;
};

/* Functions of the owner of records, which records call. */
struct record_ops {
	/* Records were allocated for @slots more slots; negative: they were
	 * freed. */
	void (*noted)(struct records *rs, int slots);
	/* Called when nobody waits for @r any more, and another call has got
	 * its record. */
	void (*give_up)(struct ulrpc_request *r);
	/* Called when @r has lost its record, because its connection has ended.
	 */
	void (*forget)(struct ulrpc_request *r);
	/* let_go: no record needs the message of @reply any more. body_let_go:
	 * no record needs @body any more. */
	void (*let_go)(struct record_reply *reply);
	void (*body_let_go)(struct record_body *body);
};

/* The records of a connection. */
struct records {
	uint64_t trimmed; /* ns: when records_trim() last ran; 0: never */
	uint64_t acked;	  /* calls up to this xid are over for the client */
	uint16_t used;	  /* how many chunks are allocated */
	uint16_t kept;	  /* how many messages are in @replies */
	/* RECORD_SLOTS if the array chunks is allocated, else 0 */
	uint16_t slots;
	/* The highest attempt and xid of the requests for which no chunk could
	 * be made; 0: there are no such requests. An attempt of UINT16_MAX
	 * stands for all higher ones, too. */
	uint16_t unnoted_attempt;
	uint64_t unnoted;
	/* of record_reply.link, in the order in which the messages began to be
	 * kept */
	struct list replies;
	/* of record_body.link, by xid. A record with a body is KEPT, so
	 * @replies is not empty while @bodies is not. */
	struct list bodies;
	const struct record_ops *ops;
	struct quotas *quotas; /* the quotas to which chunks are charged */
	struct record_chunk **chunks;
};

struct record_chunk {
	struct quota *quota;
	struct record records[RECORD_CHUNK];
};

enum record_past {
	RECORD_NEW, /* the request is to be executed: record_begin() */
	/* the request was perhaps executed. It is to be executed again if its
	 * method allows that; else record_end(RECORD_LOST) */
	RECORD_REPEATED,
	RECORD_COPY,	 /* the request gets no answer */
	RECORD_AGAIN,	 /* record.request goes on, and answers this attempt */
	RECORD_ANSWERED, /* record.reply answers this attempt, too */
	/* the request is a query about a call that was not executed */
	RECORD_UNKNOWN,
	/* the request was perhaps executed, and may not be executed again */
	RECORD_DOUBTFUL,
	/* the request was perhaps executed, and its handler made no progress */
	RECORD_HOPELESS,
	/* the request has an impossible slot or xid; nothing is noted */
	RECORD_BEYOND,
	/* there is no record for the request, or there was none for a copy of
	 * it. It was not executed here, and will not be */
	RECORD_NO_ROOM,
};

void records_init(struct records *rs, const struct record_ops *ops,
		  struct quotas *quotas);
/* Called when the connection has ended: lets all replies and bodies go, and
 * frees the chunks. */
void records_fini(struct records *rs);

static inline struct record *record_find(const struct records *rs,
					 uint32_t slot)
{
	struct record_chunk *c;

	if (unlikely(slot >= rs->slots))
		return NULL;
	c = rs->chunks[slot / RECORD_CHUNK];
	return likely(c) ? &c->records[slot % RECORD_CHUNK] : NULL;
}

enum record_past record_look_rare(struct records *rs, const struct wire_call *c,
				  const struct ulnet_nid *nid, uint64_t now,
				  struct record **rec_p) must_check;

/* Looks up what is known of @c, which has come from @nid, and notes @c in its
 * record. Sets *@rec_p to that record, or leaves it alone if no record notes
 * @c. */
static inline must_check enum record_past record_look(
	struct records *rs, const struct wire_call *c,
	const struct ulnet_nid *nid, uint64_t now, struct record **rec_p)
{
	struct record *rec = record_find(rs, c->slot);

	/* Usually a new call, in a slot whose last call is acknowledged. */
	if (unlikely(!rec || c->xid <= rs->acked || rec->xid > rs->acked ||
		     rec->state == RECORD_ACTIVE ||
		     c->flags & (WIRE_CALL_RESENT | WIRE_CALL_QUERY)))
		return record_look_rare(rs, c, nid, now, rec_p);
	rec->xid = c->xid;
	rec->attempt = c->attempt;
	rec->state = RECORD_NONE;
	*rec_p = rec;
	return RECORD_NEW;
}

/* Notes that @r serves the call of @rec from now on. */
static inline void record_begin(struct record *rec, struct ulrpc_request *r)
{
	rec->state = RECORD_ACTIVE;
	rec->request = r;
}

/* Notes that the request of @rec has ended, and that its reply is not kept.
 * @state is neither ACTIVE nor KEPT. */
static inline void record_end(struct record *rec, enum record_state state)
{
	rec->state = (uint8_t)state;
}

/* Notes that the request of @rec has ended, and that its reply is kept in
 * @reply. */
static inline void record_keep(struct records *rs, struct record *rec,
			       struct record_reply *reply)
{
	rec->state = RECORD_KEPT;
	rec->reply = reply;
	if (rec->xid > reply->last)
		reply->last = rec->xid;
	if (reply->keeps++)
		return;
	rs->kept++;
	list_add_tail(&rs->replies, &reply->link);
}

/* Lets the reply of @rec, which is KEPT, go, because nobody will ask for it.
 * @rec becomes LOST. */
void record_drop(struct records *rs, struct record *rec);
/* Makes @rec the owner of @body, the body of a long reply that @rec is going to
 * keep. */
void record_body_add(struct records *rs, struct record *rec,
		     struct record_body *body);
/* Takes @body from its record, without calling body_let_go(), and lets the
 * short reply of that record go. The record gets @state, which is not KEPT. */
void record_body_remove(struct records *rs, struct record_body *body,
			enum record_state state);

/* Notes that all calls up to @xid are over for the client, and lets their
 * replies and bodies go. */
void records_acked_rare(struct records *rs);
static inline void records_acked(struct records *rs, uint64_t xid)
{
	if (xid > rs->acked)
		rs->acked = xid;
	if (!list_empty(&rs->replies))
		records_acked_rare(rs);
}

/* Frees what nobody will ask for any more: requests of calls that are over,
 * replies whose callers have no time left, and chunks in which nothing is left.
 * Does nothing if it was already called in this turn. */
void records_trim(struct records *rs, uint64_t now);
/* Returns the highest xid of a call that was executed, or may have been, or is
 * being served, or is over for the client; 0: there is none. All calls with
 * higher ones were refused, or have not come. */
uint64_t records_executed(const struct records *rs);
/* Called when a call in @slot was refused. If the chunk of that slot knows
 * nothing else of calls, frees it, and notes what a chunk that is made later
 * has to refuse. */
void records_spare(struct records *rs, uint32_t slot);
/* Lets go the replies for which @is_of(reply, arg) is true, and puts what
 * @heir(reply, arg) returns in their place. If that is NULL, the records become
 * LOST. */
void records_lose(struct records *rs,
		  bool (*is_of)(const struct record_reply *reply, void *arg),
		  struct record_reply *(*heir)(const struct record_reply *reply,
					       void *arg),
		  void *arg);

#endif
