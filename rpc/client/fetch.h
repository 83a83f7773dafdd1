/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetching a reply that the server holds because it is longer than its call had
 * room for (WIRE_HELD). A fetch sends GETs, into its own memory, until one of
 * them has brought the whole reply, or the call ends otherwise. Then it tells
 * the server that the reply need not be held; if that message is lost, the
 * server learns the same from later calls.
 *
 *	QUEUED -> WAITING <-> FLYING -> LANDED -> OVER
 *	   `---------`-----------`----------------'
 *
 * A server can make each call that has a slot take memory, but no more than the
 * caller allows (ulrpc_call_conf.reply_limit), which the request says, and all
 * of a CPT together no more than ulrpc_conf.reply_bytes_max (struct
 * reply_room). A reply for which there is no room waits, in the state QUEUED,
 * and the server holds it meanwhile. When others that came later have taken as
 * much as all of the room, they leave room for it. A call can end at its
 * deadline while LNet still uses the memory: the fetch is freed later.
 *
 * Owner: the CPT of the client.
 */
#ifndef RPC_CLIENT_FETCH_H
#define RPC_CLIENT_FETCH_H

#include "base/fsm.h"
#include "base/list.h"
#include "rpc/body_proof.h"
#include "rpc/bulk/loss.h"
#include "rpc/client/import.h"
#include "rpc/rpc.h"

struct sync;
struct ulrpc_call;
struct wire_reply;

enum fetch_state {
	FETCH_QUEUED,  /* waits for room: in reply_room.waiting */
	FETCH_WAITING, /* waits for the next try */
	/* LNet has the MD of a try, whose last event has not come */
	FETCH_FLYING,
	FETCH_LANDED, /* the reply is here, and the call is about to end */
	FETCH_OVER,   /* the call has ended */
	FETCH_STATES
};

/* Where a reply is held. */
struct holder {
	struct ulnet_id peer;
	/* the NID of this node from which the call was sent, which is the only
	 * one that the server gives the reply to; ANY: not known */
	struct ulnet_nid self;
};

/* Functions of call.c. A fetch ends with one of them, unless fetch_drop() comes
 * first. */
struct fetch_users {
	/* Called when the reply is in fetch.body (@status 0), or the server has
	 * sent something of another length (-EPROTO). */
	void (*fetched)(struct ulrpc_call *call, int status);
	/* Called for a call without a deadline, when nothing was answered for
	 * minutes. */
	void (*lost)(struct ulrpc_call *call);
	/* Called when there is room for the reply now, but no memory. */
	void (*no_memory)(struct ulrpc_call *call);
};

struct fetch {
	const struct fetch_users *users;
	struct list link; /* node in imports.fetches */
	struct shard *shard;
	struct ulrpc_call *call; /* NULL: the fetch is FETCH_OVER */
	struct fsm fsm;		 /* enum fetch_state */
	bool answered;		 /* an answer has come, and has set @status */
	/* the answer was not as long as what was asked for */
	bool too_short;
	int status; /* result of this try: 0 or -errno */
	struct retry_schedule schedule; /* of the piece */
	unsigned int damaged; /* how often the whole reply came changed */
	struct holder holder;
	uint64_t match;
	uint64_t deadline; /* ns: deadline of the call */
	/* ns: when the first try began, and when the last one did */
	uint64_t since, began;
	/* us: times of the call, as the server has reported */
	uint64_t queue, service;
	struct ulnet_md_handle md;
	struct ulnet_timer timer; /* for the next try, in FETCH_WAITING */
	/* frees the fetch; in FETCH_QUEUED, ends its call */
	struct ulnet_work work;
	struct list wait; /* node in reply_room.waiting */
	/* bytes of the reply; of those that have come, in whole pieces; and of
	 * the piece that is being got */
	uint32_t length, come, piece;
	bool annexed;	   /* the reply has an annex */
	uint64_t checksum; /* checksum of the reply; 0: not known */
	/* What the server has said of the body, in its sealed message: nothing
	 * (0 bytes), its digest, or what it was sealed with. */
	uint32_t nproof;
	uint8_t proof[BODY_PROOF_MAX];
	struct body_proof check; /* of the pieces that have come */
	uint8_t *body;		 /* NULL: there was no room yet */
	uint32_t room;		 /* bytes of the room that @body takes */
	bool extra;		 /* they count in reply_room.extra */
	/* in FETCH_QUEUED: what reply_room.taken was at first */
	uint64_t before;
};

/* Begins to fetch the reply to @call that @r announces, of r->needed bytes,
 * from @holder, and sets call->fetch. Returns 0 or -ENOMEM. */
int fetch_start(struct ulrpc_call *call, const struct holder *holder,
		const struct wire_reply *r,
		const struct fetch_users *users) must_check;
/* Returns how many bytes the longest reply has that is fetched for a call whose
 * caller takes @limit (ulrpc_call_conf.reply_limit); 0: whatever the service
 * sends. */
static inline uint32_t fetch_limit(const struct ulrpc *rpc, uint32_t limit)
{
	return (uint32_t)MIN(rpc->conf.reply_bytes_max,
			     limit ? limit : ULRPC_REPLY_MAX);
}

/* Returns the ulrpc_client_conf.reply_limit of a client that is to take @limit:
 * 0, which costs its calls nothing, if the node never takes more. */
static inline uint32_t fetch_limit_needed(const struct ulrpc *rpc,
					  uint32_t limit)
{
	return limit < fetch_limit(rpc, 0) ? limit : 0;
}

/* Called when the call ends: drops the fetch, and tells the server. f->body is
 * valid until the end of this turn. */
void fetch_drop(struct fetch *f);
/* Called while the caller of a call is told of its reply, @length bytes at
 * @reply: if that is the body of a fetch, takes it from the fetch. Returns the
 * body, which is to be freed by free(); NULL: it is none. */
void *fetch_take(struct shard *s, const void *reply, size_t length);
/* As sync_take(), which it calls unless @reply is the body of a fetch: that is
 * given to the waiting thread. What is not long is copied at once, if the
 * thread has room for it. */
void fetch_give(struct shard *s, struct sync *sync, const void *reply,
		size_t length, struct ulrpc_outcome *o);
/* What reply_room.bodies.gave calls. */
void fetch_on_given(struct give_back *g, void *holder, size_t bytes);
/* Called when an LND's connection to the server of @imp was lost: repeats GETs
 * that were under way over it. */
void fetches_on_conn_loss(struct import *imp, const struct conn_loss *s);
/* Tells @holder that the reply with the match value @match is not wanted any
 * more. */
void fetch_release(struct shard *s, const struct holder *holder,
		   uint64_t match);

#endif
