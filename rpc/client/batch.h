/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A batch: one message with calls of one client, and the memory where their
 * replies land (reply_buf.h). It is one attempt of each of its calls, or one
 * query about each. A late answer is recognized by the numbers of its call and
 * attempt, wherever it lands.
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
	/* The first nagain calls are sent again, with the numbers that they
	 * had. Of the new calls, the one at index i has number xid + i. */
	uint64_t xid;
	unsigned int nagain, hint; /* @hint: where to look first */
	uint64_t sent;		   /* ns: when it was given to LNet */
	uint64_t due;		   /* ns: when its answers are expected */
	uint32_t epoch;
	unsigned int n, open;	   /* calls; those that wait */
	unsigned int held;	   /* entries whose held is not NULL */
	uint32_t need;		   /* bytes at most of all replies */
	bool sending;		   /* LNet has the send MD */
	struct reply_buf *bufs;	   /* attached for this batch */
	struct reply_buf *current; /* of these, the one that LNet finds */
	struct ulnet_md_handle send_md;
	struct ulnet_id peer;		/* who may reply */
	struct ulnet_nid local, target; /* rail */
	struct ulnet_nid hop; /* the rail's first: a gateway, or the target */
	uint32_t paths;
	bool over;    /* batch.work has been given */
	bool landing; /* an event of one of bufs is being dealt with */
	bool bulk;    /* a call of it has bulks */
	bool query;
	bool suspect;		/* LNet was told that its rail loses messages */
	struct ulnet_work work; /* frees it, if LNet has nothing to say */
	size_t size;
	uint8_t *head; /* behind the entries */
	struct batch_entry {
		struct ulrpc_call *call; /* NULL: ended, or went its own way */
		struct ulrpc_call *held; /* LNet is sending its body */
	} entries[];
};

/* Sends up to @n calls from the client's queues; takes as many as fit. Returns
 * how many calls it took off the queue, be it that they were sent or that they
 * cannot be sent (now); 0: there are none. */
unsigned int batch_send(struct ulrpc_client *c, unsigned int n);
/* The same for queries, from client.ask. False: there is no memory. */
bool batch_query(struct ulrpc_client *c);
/* No call of the batch waits any more: unlinks its memory, and cancels its
 * sending. */
void batch_retire(struct batch *p);
/* A call has ended, or does not wait for this batch any more: from now on no
 * reply to it is taken at @at. */
static inline void batch_forget(const struct ulrpc_call *call, struct place *at)
{
	struct batch *p = at->batch;

	p->entries[at->index].call = NULL;
	p->need -= call->reply_need;
	at->batch = NULL;
	if (--p->open == 0)
		batch_retire(p);
}
/* The same for all places where a reply to the call could land. */
static inline void batch_forget_all(struct ulrpc_call *call)
{
	batch_forget(call, &call->out);
	if (unlikely(call->query.batch))
		batch_forget(call, &call->query);
}
/* Cancels what is on its way to this import's server, if it can be canceled. */
void batches_abort(struct import *imp);

/* imports.reply_buf_users */
extern const struct reply_buf_users batch_reply_users;

#endif
