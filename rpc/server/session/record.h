/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a server remembers of a client's calls: a record for each slot of the
 * connection, of the last call that came in that slot. A call has one number
 * (xid) and one slot; each attempt of it is a request that says which attempt
 * it is. So what is known of a request is found in constant time:
 *
 *	the record is of		the request is
 *	a call with a higher xid	RECORD_COPY, as is whatever is
 *					acknowledged
 *	a call with a lower xid		RECORD_NEW; the older call is given up,
 *					for its client does not wait any more
 *	this call, and this attempt or	RECORD_COPY
 *	  a later one
 *	this call, and an earlier
 *	  attempt, and is ACTIVE	RECORD_AGAIN
 *		KEPT			RECORD_ANSWERED
 *		LOST			RECORD_DOUBTFUL
 *		STALLED			RECORD_HOPELESS
 *		NONE, DONE		RECORD_NEW, RECORD_REPEATED
 *
 * A query (WIRE_CALL_QUERY) is RECORD_UNKNOWN in those cases in which another
 * request would be executed. It is noted like any attempt: so an earlier
 * attempt that comes after it is a copy, and is never executed.
 *
 * Replies that are kept lie in the messages in which they went (record_reply).
 * A message is let go when all calls with a reply in it are acknowledged, or
 * have been replaced in their slots, or when nobody will ask any more. A reply
 * that is longer than its caller has room for has its body elsewhere
 * (record_body). The record owns that: there is one for a slot at most, and it
 * is let go as soon as the call is over for the client.
 *
 * Records are in chunks, made when a slot of theirs is used for the first time;
 * the clients of one host have their share of all chunks (quota.h). A request
 * that comes when there is no room for a chunk is refused, as not executed. A
 * late copy of it must not be executed afterwards, when there is room: so the
 * highest xid and attempt of such requests are kept, and a chunk that is made
 * later refuses everything up to these (BLANK). A client that was refused comes
 * with higher attempts.
 *
 * Thread: owner.
 */
#ifndef RPC_RECORD_H
#define RPC_RECORD_H

#include "base/list.h"
#include "base/util.h"
#include "rpc/quota.h"
#include "rpc/wire/wire.h"

/* Granted to each connection. */
#define RECORD_SLOTS  WIRE_SLOTS_USUAL
#define RECORD_CHUNK  64u /* slots */
#define RECORD_CHUNKS (RECORD_SLOTS / RECORD_CHUNK)

struct ulrpc_request;
struct record_chunk;
struct records;

enum record_state {
	RECORD_NONE,  /* no attempt that has come was executed, or will be */
	RECORD_BLANK, /* none has come; up to this xid and attempt they may be
		       * copies of what was refused without a record */
	RECORD_DONE,  /* executed; may be once more */
	RECORD_LOST,  /* perhaps executed; may not be again, and has no reply */
	RECORD_KEPT,  /* executed; may not be again, and its reply is kept */
	RECORD_STALLED, /* perhaps executed; its handler is not waited for */
	RECORD_ACTIVE,	/* being served */
	RECORD_STATES
};

/* A message with replies that are kept. Part of it; at first zero, and
 * TIME_NEVER until it is packed. */
struct record_reply {
	struct list link; /* records.replies, while keeps is not 0 */
	uint32_t keeps;	  /* records that have it, and have not been given up
			   * since without being acknowledged */
	uint64_t last;	  /* the highest xid of theirs */
	uint64_t until;	  /* ns: then no caller waits any more; TIME_NEVER */
};

/* The body of a reply that is kept without it. Part of it. */
struct record_body {
	struct list link;  /* records.bodies, as long as it is held */
	struct record *of; /* the same; NULL: it was let go */
};

struct record {
	uint64_t xid; /* 0: none has come yet */
	uint32_t attempt;
	uint8_t state; /* enum record_state */
	union {
		struct ulrpc_request *request; /* ACTIVE */
		/* KEPT; of an acknowledged call it may be gone. */
		struct record_reply *reply;
	};
	struct record_body *body; /* NULL: none is held */
};

/* What the owner of records is told. */
struct record_ops {
	/* There is memory for @slots more slots, or, if that is negative, for
	 * fewer. */
	void (*noted)(struct records *rs, int slots);
	/* Nobody waits for @r any more; its record is another call's. */
	void (*give_up)(struct ulrpc_request *r);
	/* @r has no record any more, because its connection has gone. */
	void (*forget)(struct ulrpc_request *r);
	/* No record has the reply, or the body, any more. */
	void (*let_go)(struct record_reply *reply);
	void (*body_let_go)(struct record_body *body);
};

/* Of a connection. */
struct records {
	uint64_t trimmed; /* ns: when last; 0: never */
	uint64_t acked;	  /* xids up to this one are over for the client */
	uint16_t used;	  /* chunks */
	uint16_t kept;	  /* messages in replies */
	uint16_t slots;	  /* that there is a place for in chunks: all, or
			      * none, as long as no call has come */
	/* The highest attempt, and xid, of those that there was no room for; 0:
	 * there was none. UINT16_MAX stands for higher ones, too. */
	uint16_t unnoted_attempt;
	uint64_t unnoted;
	struct list replies; /* record_reply.link, as they were kept */
	struct list bodies;  /* record_body.link, by xid; each of a record
			      * that is KEPT, so if there are any, there are
			      * replies */
	const struct record_ops *ops;
	struct quotas *quotas; /* of chunks */
	struct record_chunk **chunks;
};

struct record_chunk {
	struct quota *quota;
	struct record records[RECORD_CHUNK];
};

enum record_past {
	RECORD_NEW,	 /* to be executed: record_begin() */
	RECORD_REPEATED, /* perhaps it was executed: the same, if the service
			  * may do so twice; else record_end(RECORD_LOST) */
	RECORD_COPY,	 /* nothing is said to it */
	RECORD_AGAIN,	 /* its request goes on, for this attempt */
	RECORD_ANSWERED, /* the reply that is kept is for this attempt */
	RECORD_UNKNOWN,	 /* a query: nothing is being done */
	RECORD_DOUBTFUL, /* perhaps executed, and may not be again */
	RECORD_HOPELESS, /* the same, for its handler makes no progress */
	RECORD_BEYOND,	 /* there is no such slot, or xid; nothing is noted */
	RECORD_NO_ROOM,	 /* for a record, or there was none before; not executed
			  * here, nor will be */
};

void records_init(struct records *rs, const struct record_ops *ops,
		  struct quotas *quotas);
/* The connection has gone: lets everything go. */
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

/* Looks up what is known of @c, from a client at @nid, and notes @c in
 * *@rec_p. */
static inline must_check enum record_past record_look(
	struct records *rs, const struct wire_call *c,
	const struct ulnet_nid *nid, uint64_t now, struct record **rec_p)
{
	struct record *rec = record_find(rs, c->slot);

	/* A new call, in a slot whose last one is over. */
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

/* The record's request has ended; @state is neither ACTIVE nor KEPT. */
static inline void record_end(struct record *rec, enum record_state state)
{
	rec->state = (uint8_t)state;
}

/* The same, but the record becomes KEPT: its reply is in @reply. */
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

/* Nobody will ask for the reply of @rec, which is KEPT. */
void record_drop(struct records *rs, struct record *rec);
/* The reply of @rec, which is going to be KEPT, has its body in @body. */
void record_hold(struct records *rs, struct record *rec,
		 struct record_body *body);
/* @body, which was held, has gone, and so has the reply: the record gets
 * @state, which is not KEPT. */
void record_unhold(struct records *rs, struct record_body *body,
		   enum record_state state);

/* The client says that all its calls up to @xid are over. */
void records_acked_rare(struct records *rs);
static inline void records_acked(struct records *rs, uint64_t xid)
{
	if (xid > rs->acked)
		rs->acked = xid;
	if (!list_empty(&rs->replies))
		records_acked_rare(rs);
}

/* Lets go, at most once for each time, what nobody will ask for: requests of
 * calls that are over, replies whose callers have no time left, empty
 * chunks. */
void records_trim(struct records *rs, uint64_t now);
/* Lets go the replies for which @is_of(reply, arg) is true: a client that asks
 * for one is told that it is lost. */
void records_lose(struct records *rs,
		  bool (*is_of)(const struct record_reply *reply, void *arg),
		  void *arg);

#endif
