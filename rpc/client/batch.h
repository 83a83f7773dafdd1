/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A batch: one message with calls of one client, and the memory where their
 * replies land (reply_buf.h). It is one attempt of each of its calls, or one
 * query about each. An answer that comes late is known by the numbers of its
 * call and attempt, wherever it lands.
 *
 * A batch ends when none of its calls waits any more; its memory is free when
 * LNet has told the end of everything that LNet was given.
 */
#ifndef RPC_BATCH_H
#define RPC_BATCH_H

#include "base/list.h"
#include "rpc/client/call.h"
#include "rpc/rpc.h"

struct ulrpc_client;
struct import;
struct reply_buf;

struct batch {
	struct list all;       /* imports.batches */
	struct list of_import; /* import.batches, while somebody waits */
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
	struct batch_entry {
		struct ulrpc_call *call; /* NULL: ended, or went its own way */
		struct ulrpc_call *held; /* body being sent from there */
	} entries[];
};

/* Sends up to @n calls from the client's queues; takes as many as fit. Returns
 * how many went, or cannot go (now) and are out of the way; 0: there are
 * none. */
unsigned int batch_send(struct ulrpc_client *c, unsigned int n);
/* The same for queries, from client.ask. False: there is no memory. */
bool batch_query(struct ulrpc_client *c);
/* No call of the batch waits any more: unlinks its memory, and cancels its
 * sending. */
void batch_retire(struct batch *p);
/* A call has ended, or goes its own way: nothing lands at @at for it. */
static inline void batch_forget(const struct ulrpc_call *call, struct place *at)
{
	struct batch *p = at->batch;

	p->entries[at->index].call = NULL;
	p->need -= call->reply_need;
	at->batch = NULL;
	if (--p->open == 0)
		batch_retire(p);
}
/* Nothing lands for it anywhere. */
static inline void batch_forget_all(struct ulrpc_call *call)
{
	batch_forget(call, &call->out);
	if (unlikely(call->query.batch))
		batch_forget(call, &call->query);
}
/* What is on its way to this import's server is given up, if it can be. */
void batches_abort(struct import *imp);

/* imports.reply_buf_users */
extern const struct reply_buf_users batch_reply_users;

#endif
