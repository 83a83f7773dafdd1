/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Getting a reply that the server holds, because it is longer than its call had
 * room for (WIRE_HELD): memory for it, and GETs until one has brought all of
 * it, or the call ends otherwise. Then the server is told that it need not hold
 * the reply any more; that may be lost, for the server hears the same with the
 * next calls.
 *
 *	WAITING <-> FLYING -> LANDED -> OVER
 *	   `-----------`----------------'
 *
 * A server can make each call that has a slot take memory, as much as its
 * caller allows (ulrpc_call_conf.reply_limit), and no more.
 *
 * The memory is not the user's. So a call can end at its deadline, whatever
 * LNet has still to do with it: the fetch is freed later.
 *
 * Owner: the CPT of the client.
 */
#ifndef RPC_CLIENT_FETCH_H
#define RPC_CLIENT_FETCH_H

#include "base/fsm.h"
#include "base/list.h"
#include "rpc/bulk/tries.h"
#include "rpc/client/import.h"

struct ulrpc_call;
struct wire_reply;

enum fetch_state {
	FETCH_WAITING, /* to try again */
	FETCH_FLYING,  /* LNet has its MD: the last event is missing */
	FETCH_LANDED,  /* all is here, and the call ends */
	FETCH_OVER,    /* nobody waits for it */
	FETCH_STATES
};

/* Who holds a reply, and @self, the NID of this node that the call was sent
 * from: the holder gives the reply to that NID. */
struct holder {
	struct ulnet_id peer;
	struct ulnet_nid self; /* or ANY */
};

/* Functions of the owner of the reply (call.c). A fetch ends with one of them,
 * unless fetch_drop() comes first. */
struct fetch_users {
	/* All is here (0), or the server has sent something else (-EPROTO). */
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
	bool answered;		 /* status is the answer's */
	bool too_short;		 /* so is that: not as long as was said */
	int status;		 /* of this try */
	struct tries tries;
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
/* The call ends; what is in f->body is there until the end of this turn. */
void fetch_drop(struct fetch *f);
/* A rail to the server of @imp has failed: replies that were asked for by that
 * rail, and have not arrived yet, are asked for again. */
void fetches_severed(struct import *imp, const struct severed *s);
/* Tells @holder that nobody wants the reply that @r says is held there. */
void fetch_refuse(struct shard *s, const struct holder *holder,
		  const struct wire_reply *r);

#endif
