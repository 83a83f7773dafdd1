/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetching a reply that the server holds, because it is longer than its call
 * had room for (WIRE_HELD): GETs into memory of the fetch, until one has
 * brought all of it, or the call ends otherwise. Then the server is told that
 * it need not hold the reply; if that is lost, it learns so from the next
 * calls.
 *
 *	WAITING <-> FLYING -> LANDED -> OVER
 *	   `-----------`----------------'
 *
 * A server can make each call that has a slot take memory, but no more than the
 * caller allows (ulrpc_call_conf.reply_limit). A call can end at its deadline
 * while LNet still uses the memory: the fetch is freed later.
 *
 * Owner: the CPT of the client.
 */
#ifndef RPC_CLIENT_FETCH_H
#define RPC_CLIENT_FETCH_H

#include "base/fsm.h"
#include "base/list.h"
#include "rpc/bulk/loss.h"
#include "rpc/client/import.h"

struct ulrpc_call;
struct wire_reply;

enum fetch_state {
	FETCH_WAITING, /* for the next try */
	FETCH_FLYING,  /* LNet has its MD: the last event is missing */
	FETCH_LANDED,  /* the reply is here, and the call ends */
	FETCH_OVER,    /* the call has ended */
	FETCH_STATES
};

/* The server that holds a reply. */
struct holder {
	struct ulnet_id peer;
	struct ulnet_nid self; /* NID of ours that the call was sent from, to
				* which the reply is given; ANY: not known */
};

/* Functions of call.c. A fetch ends with one of them, unless fetch_drop() comes
 * first. */
struct fetch_users {
	/* The reply is in fetch.body (0), or the server has sent something of
	 * another length (-EPROTO). */
	void (*fetched)(struct ulrpc_call *call, int status);
	/* The call has no deadline, and nothing is answered for minutes. */
	void (*lost)(struct ulrpc_call *call);
};

struct fetch {
	const struct fetch_users *users;
	struct list link; /* imports.fetches */
	struct shard *shard;
	struct ulrpc_call *call; /* NULL: OVER */
	struct fsm fsm;		 /* enum fetch_state */
	bool answered;		 /* an answer has come, and set status */
	bool too_short;		 /* the answer was not as long as announced */
	int status;		 /* of this try */
	struct retry_schedule schedule;
	struct holder holder;
	uint64_t match;
	uint64_t deadline;	 /* ns, of the call */
	uint64_t since, began;	 /* ns: the first try, and this one */
	uint64_t queue, service; /* us, as the server says */
	struct ulnet_md_handle md;
	struct ulnet_timer timer; /* WAITING */
	struct ulnet_work work;	  /* frees it */
	uint32_t length;
	size_t size; /* of all this */
	_Alignas(uint64_t) uint8_t body[];
};

/* Begins to fetch the reply to @call that @r announces, r->needed bytes, from
 * @holder, and sets call->fetch. -ENOMEM. */
int fetch_start(struct ulrpc_call *call, const struct holder *holder,
		const struct wire_reply *r,
		const struct fetch_users *users) must_check;
/* The call ends. f->body is valid until the end of this turn. */
void fetch_drop(struct fetch *f);
/* An LND's connection to the server of @imp was lost: repeats GETs that were
 * under way over it. */
void fetches_on_conn_loss(struct import *imp, const struct conn_loss *s);
/* Tells @holder that the reply with the match value @match is not wanted any
 * more. */
void fetch_release(struct shard *s, const struct holder *holder,
		   uint64_t match);

#endif
