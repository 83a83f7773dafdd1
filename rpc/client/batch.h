/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A batch: one message with calls of one client, and the memory where their
 * replies land. For each of its calls, the batch is an attempt or, if it
 * consists of queries, a query. A reply is recognized by the numbers of its
 * call and attempt, wherever it lands.
 *
 * A batch is over when none of its calls waits for a reply in it any more. It
 * is freed when LNet has also reported the end of its sending and of its reply
 * buffers.
 *
 * Thread: owner.
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
	struct list all; /* node in imports.batches */
	/* node in import.batches, until the batch is over */
	struct list of_import;
	/* node in client.watched, which is sorted by @due */
	struct list of_watch;
	struct shard *shard;
	/* the client whose calls are in the batch; NULL: the batch is over */
	struct ulrpc_client *client;
	uint64_t match;
	/* The first nagain calls are sent again, under their old numbers. A
	 * later call, at index i, has the number xid + i. */
	uint64_t xid;
	/* nagain: see @xid. hint: the entry where entry_find() begins to search
	 */
	unsigned int nagain, hint;
	uint64_t sent; /* ns: when the message was given to LNet */
	/* ns: when calls without an answer are asked about */
	uint64_t due;
	uint32_t epoch;
	/* n: how many calls the batch has. open: how many of them still wait
	 * for a reply */
	unsigned int n, open;
	/* how many entries have a borrowed body; 1, if there is a @record
	 * instead */
	unsigned int nborrowed;
	/* bytes that all replies to the batch may take together */
	uint32_t need;
	bool sending; /* LNet has the MD of the message */
	/* list of the buffers where replies may land */
	struct reply_buf *bufs;
	struct reply_buf *current; /* the buffer of @bufs that is linked now */
	struct ulnet_md_handle send_md;
	/* the only peer whose replies are accepted */
	struct ulnet_id peer;
	/* the rail that LNet has sent the message over */
	struct ulnet_nid local, target;
	/* the next hop on that rail: a gateway, or @target */
	struct ulnet_nid hop;
	uint32_t paths;
	bool freeing; /* is @work posted? */
	bool landing; /* is an event of a buffer being handled? */
	bool bulk;    /* has one of the calls bulks? */
	bool query;
	/* was LNet told that the batch's rail loses messages? */
	bool suspect;
	/* frees the batch when no event of LNet is left that could do so */
	struct ulnet_work work;
	size_t size;
	uint8_t *head; /* the head of the message, encoded behind the entries */
	/* If nborrowed is not 0: the encrypted message, which LNet sends
	 * instead of the borrowed bodies; NULL: the bodies are sent as they
	 * are. */
	uint8_t *record;
	size_t record_size;
	struct batch_entry {
		/* NULL: the call does not wait for a reply in this batch any
		 * more */
		struct ulrpc_call *call;
		/* the call from whose memory LNet sends the body; NULL: the
		 * body was copied */
		struct ulrpc_call *borrowed;
	} entries[];
};

/* Sends up to @n calls from the client's queues, as many as fit into a message.
 * Returns how many calls it took for the message, even if there was no memory
 * to send it; 0: no queued call can be sent now. */
unsigned int batch_send(struct ulrpc_client *c, unsigned int n);
/* Sends a message of queries about calls in client.ask. Returns false if there
 * is no memory. */
bool batch_query(struct ulrpc_client *c);
/* Called when no call waits for a reply in the batch any more: unlinks its
 * memory, and cancels its sending. */
void batch_retire(struct batch *p);
/* Stops @call from taking a reply to @at, which is call->out or call->query. */
static inline void batch_forget(const struct ulrpc_call *call,
				struct batch_ref *at)
{
	struct batch *p = at->batch;

	p->entries[at->index].call = NULL;
	p->need -= call->reply_need;
	at->batch = NULL;
	if (--p->open == 0)
		batch_retire(p);
}
/* Stops @call, which is in flight, from taking a reply to its attempt or to its
 * query. */
static inline void batch_forget_all(struct ulrpc_call *call)
{
	batch_forget(call, &call->out);
	if (unlikely(call->query.batch))
		batch_forget(call, &call->query);
}
/* Cancels the messages on their way to this import's server, where LNet can. */
void batches_abort(struct import *imp);

/* ---- memory for replies: reply_buf.c ---- */

/*
 * Attaching and unlinking a match entry costs as much as the rest of receiving
 * a reply. So an import keeps some buffers attached: a batch of one call with a
 * short reply takes such a buffer, and returns it if there is still room for
 * another reply. Other batches have buffers of their own.
 *
 * Each message lands behind the one before it, even if it is a late copy, or
 * stopped halfway on a lost connection. So nothing is written over a message
 * that is still being read. A late copy may land in the buffer of another
 * batch, which recognizes by the call's number that the copy is not meant for
 * it.
 *
 * A batch returns its buffer only when the reply that it waited for has
 * arrived. Otherwise that reply could still come, and take room that the next
 * batch needs.
 */
struct reply_buf {
	const struct reply_buf_users *users;
	struct reply_buf *next; /* the next buffer in batch.bufs */
	/* node in import.reply_bufs, while no batch has the buffer */
	struct list link;
	struct shard *shard;
	/* NULL: the buffer is in import.reply_bufs, or about to be freed */
	struct batch *batch;
	/* the buffer is attached for the import, and not for one batch */
	bool kept;
	/* bytes left behind all messages that have landed */
	uint32_t room;
	uint64_t match;
	struct ulnet_id peer; /* the only peer that may send to the buffer */
	struct ulnet_md_handle md;
	struct ulnet_work work;
	size_t size; /* bytes of this structure, as allocated */
	uint8_t bytes[] __attribute__((aligned(16)));
};

/* Functions of batch.c, set as imports.reply_buf_users. */
struct reply_buf_users {
	/* Called when a message of replies has landed for @p, which has calls
	 * that wait. */
	void (*on_replies)(struct batch *p, const struct ulnet_event *ev);
	/* Called when a buffer of @p was freed, or the event of one has been
	 * handled: frees @p if that is possible now. */
	void (*check)(struct batch *p);
};
extern const struct reply_buf_users batch_reply_users;

/* Gives @p memory for its replies: sets bufs, current and match. Returns 0,
 * -ENOMEM, or what LNetMEAttach(3) returns. */
int reply_buf_attach(struct batch *p);
/* Called when no call of @p waits any more: returns the buffer of @p to the
 * import, or unlinks it. p->client is still set. */
void reply_buf_release(struct batch *p);
/* Unlinks the buffers that the import keeps, because it has disconnected, ends,
 * or uses another NID of the server from now on. */
void reply_bufs_drop(struct import *imp);

#endif
