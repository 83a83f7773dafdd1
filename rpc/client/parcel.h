/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parcel: one message with calls of one client, and the memory where their
 * replies land (reply_buf.h). It is one attempt of each of its calls, or one
 * query about each. An answer that comes late is known by the numbers of its
 * call and attempt, wherever it lands.
 *
 * A parcel ends when none of its calls waits any more; its memory is free when
 * LNet has told the end of everything that LNet was given.
 */
#ifndef RPC_PARCEL_H
#define RPC_PARCEL_H

#include "base/list.h"
#include "rpc/client/call.h"
#include "rpc/rpc.h"

struct ulrpc_client;
struct import;
struct reply_buf;

struct parcel {
	struct list all;       /* imports.parcels */
	struct list of_import; /* import.parcels, while somebody waits */
	struct list of_watch;  /* client.watched, by due */
	struct shard *shard;
	struct ulrpc_client *client; /* NULL: nobody waits */
	uint64_t match;
	/* The first nagain calls had their numbers before, which may be any.
	 * Of the others call i has number xid + i. */
	uint64_t xid;
	unsigned int nagain, hint; /* @hint: where to look first */
	uint64_t sent;		   /* ns: when it was given to LNet */
	uint64_t due;		   /* ns: when its answers are expected */
	uint32_t epoch;
	unsigned int n, open;	/* calls; those that wait */
	unsigned int held;	/* entries with a body being sent from there */
	uint32_t need;		/* bytes that their replies may have */
	bool sending;		/* LNet has the send MD */
	struct reply_buf *bufs; /* that LNet has for it */
	struct reply_buf *current; /* the one that can be found */
	struct ulnet_md_handle send_md;
	struct ulnet_id peer;		/* who may reply */
	struct ulnet_nid local, target; /* rail */
	struct ulnet_nid hop; /* its first one: a gateway, or the target */
	uint32_t paths;
	bool over;    /* work is given */
	bool landing; /* an event of one of bufs is being dealt with */
	bool bulk;    /* there is any in it */
	bool query;
	bool suspect;		/* LNet was told that its rail loses messages */
	struct ulnet_work work; /* frees it, if LNet has nothing to say */
	size_t size;
	uint8_t *head; /* behind the entries */
	struct parcel_entry {
		struct ulrpc_call *call; /* NULL: ended, or went its own way */
		struct ulrpc_call *held; /* body being sent from there */
	} entries[];
};

/* Sends up to @n calls from the client's queues; takes as many as fit. Returns
 * how many went, or cannot go (now) and are out of the way; 0: there are
 * none. */
unsigned int parcel_send(struct ulrpc_client *c, unsigned int n);
/* The same for queries, from client.ask. False: there is no memory. */
bool parcel_query(struct ulrpc_client *c);
/* No call of the parcel waits any more: unlinks its memory, and cancels its
 * sending. */
void parcel_retire(struct parcel *p);
/* A call has ended, or goes its own way: nothing lands at @at for it. */
static inline void parcel_forget(const struct ulrpc_call *call,
				 struct place *at)
{
	struct parcel *p = at->parcel;

	p->entries[at->index].call = NULL;
	p->need -= call->reply_need;
	at->parcel = NULL;
	if (--p->open == 0)
		parcel_retire(p);
}
/* Nothing lands for it anywhere. */
static inline void parcel_forget_all(struct ulrpc_call *call)
{
	parcel_forget(call, &call->out);
	if (unlikely(call->query.parcel))
		parcel_forget(call, &call->query);
}
/* What is on its way to this import's server is given up, if it can be. */
void parcels_abort(struct import *imp);

/* imports.reply_buf_users */
extern const struct reply_buf_users parcel_reply_users;

#endif
