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

/* Slots that each connection is granted. */
#define RECORD_SLOTS  WIRE_SLOTS_USUAL
#define RECORD_CHUNK  64u /* slots */
#define RECORD_CHUNKS (RECORD_SLOTS / RECORD_CHUNK)

struct ulrpc_request;
struct record_chunk;
struct records;

enum record_state {
	RECORD_NONE, /* no attempt that has come was executed, or will be */
	/* no call has come in this slot; requests up to its xid and attempt may
	 * be copies of requests that were refused without a record */
	RECORD_BLANK,
	RECORD_DONE, /* executed; it may be executed again */
	/* perhaps executed; it may not be executed again, and has no reply */
	RECORD_LOST,
	/* executed; it may not be executed again, and its reply is kept */
	RECORD_KEPT,
	RECORD_STALLED, /* as LOST, because its handler made no progress */
	RECORD_ACTIVE,	/* being served */
	RECORD_STATES
};

/* What records know of a message with kept replies; embedded in it. Its owner
 * sets everything to 0, except until, which is TIME_NEVER before the message is
 * packed. */
struct record_reply {
	struct list link; /* records.replies, while keeps is not 0 */
	/* how many records have their reply in it; those of acknowledged calls
	 * may be counted still */
	uint32_t keeps;
	bool left;     /* its service has ended: kept.h */
	uint64_t last; /* the highest xid of these records */
	union {
		/* ns: when no caller waits any more; TIME_NEVER: some caller
		 * may wait forever */
		uint64_t until;
		/* at the end of records_lose(): what is to take its place;
		 * NULL: nothing */
		struct record_reply *heir;
	};
};

/* What records know of the body of a long reply; embedded in it. */
struct record_body {
	struct list link; /* records.bodies, while of is not NULL */
	/* the record that owns it; NULL: none, it was let go */
	struct record *of;
};

struct record {
	/* of the last call in this slot; 0: no call has come yet */
	uint64_t xid;
	uint32_t attempt;
	uint8_t state; /* enum record_state */
	union {
		struct ulrpc_request *request; /* ACTIVE */
		/* KEPT. If the call is acknowledged, the reply may be gone. */
		struct record_reply *reply;
	};
	struct record_body *body; /* of a long reply; NULL: none */
};

/* Functions of the owner of records, which records call. */
struct record_ops {
	/* Records for @slots more slots have been allocated; negative: freed.
	 */
	void (*noted)(struct records *rs, int slots);
	/* Nobody waits for @r any more; another call has its record now. */
	void (*give_up)(struct ulrpc_request *r);
	/* @r has no record any more, because its connection has ended. */
	void (*forget)(struct ulrpc_request *r);
	/* let_go: no record needs the message of @reply any more. body_let_go:
	 * no record needs @body any more. */
	void (*let_go)(struct record_reply *reply);
	void (*body_let_go)(struct record_body *body);
};

/* The records of a connection. */
struct records {
	uint64_t trimmed; /* ns: when records_trim() last ran; 0: never */
	uint64_t acked;	  /* xids up to this one are over for the client */
	uint16_t used;	  /* chunks that are allocated */
	uint16_t kept;	  /* how many messages are in the list replies */
	/* RECORD_SLOTS if the array chunks is allocated, else 0 */
	uint16_t slots;
	/* The highest attempt and xid of requests for which no chunk could be
	 * made; 0: there are none. UINT16_MAX stands for all higher attempts,
	 * too. */
	uint16_t unnoted_attempt;
	uint64_t unnoted;
	/* record_reply.link, in the order in which the messages began to be
	 * kept */
	struct list replies;
	/* record_body.link, by xid. The records of bodies are KEPT, so while
	 * bodies is not empty, replies is not either */
	struct list bodies;
	const struct record_ops *ops;
	struct quotas *quotas; /* that chunks are charged to */
	struct record_chunk **chunks;
};

struct record_chunk {
	struct quota *quota;
	struct record records[RECORD_CHUNK];
};

enum record_past {
	RECORD_NEW,	 /* to be executed: record_begin() */
	RECORD_REPEATED, /* perhaps executed: to be executed if that may happen
			  * twice; else record_end(RECORD_LOST) */
	RECORD_COPY,	 /* gets no answer */
	RECORD_AGAIN,	 /* record.request goes on, for this attempt */
	RECORD_ANSWERED, /* record.reply answers this attempt, too */
	RECORD_UNKNOWN,	 /* a query of a call that was not executed */
	RECORD_DOUBTFUL, /* perhaps executed, and may not be executed again */
	RECORD_HOPELESS, /* perhaps executed; its handler made no progress */
	/* its slot or its xid is impossible; nothing is noted */
	RECORD_BEYOND,
	/* there is no record for it, or there was none for a copy of it: it was
	 * not executed here, and will not be */
	RECORD_NO_ROOM,
};

void records_init(struct records *rs, const struct record_ops *ops,
		  struct quotas *quotas);
/* The connection has ended: lets all replies and bodies go, and frees the
 * chunks. */
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
 * record, *@rec_p. If no record is noted, *@rec_p is left as it is. */
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

/* @r serves the call from now on. */
static inline void record_begin(struct record *rec, struct ulrpc_request *r)
{
	rec->state = RECORD_ACTIVE;
	rec->request = r;
}

/* The request of @rec has ended, and its reply is not kept. @state is neither
 * ACTIVE nor KEPT. */
static inline void record_end(struct record *rec, enum record_state state)
{
	rec->state = (uint8_t)state;
}

/* The request of @rec has ended with a reply in @reply, which is kept. */
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

/* Nobody will ask for the reply of @rec, which is KEPT: lets the reply go, and
 * makes @rec LOST. */
void record_drop(struct records *rs, struct record *rec);
/* Makes @rec the owner of @body, the body of a long reply that @rec is going to
 * keep. */
void record_body_add(struct records *rs, struct record *rec,
		     struct record_body *body);
/* Lets @body and the short reply of its record go, without calling
 * body_let_go(). The record gets @state, which is not KEPT. */
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

/* Lets go what nobody will ask for: requests of calls that are over, replies
 * whose callers have no time left, and chunks in which nothing is left. Does
 * nothing if called again within a turn. */
void records_trim(struct records *rs, uint64_t now);
/* A call in @slot was refused. If nothing else is known of the calls in the
 * chunk of that slot, frees the chunk, and keeps in mind what a chunk that is
 * made later has to refuse. */
void records_spare(struct records *rs, uint32_t slot);
/* Lets go the replies for which @is_of(reply, arg) is true. What
 * @heir(reply, arg) returns takes their place; if that is NULL, their records
 * become LOST. */
void records_lose(struct records *rs,
		  bool (*is_of)(const struct record_reply *reply, void *arg),
		  struct record_reply *(*heir)(const struct record_reply *reply,
					       void *arg),
		  void *arg);

#endif
