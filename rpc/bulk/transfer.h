/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bulk of one request, at the server: what the caller has lent, and the
 * transfers from and to it. This file knows nothing of requests: a request with
 * bulk owns a `struct transfers`. A request without bulk has NULL instead,
 * which functions accept unless they say "not NULL".
 *
 * A transfer is cut into chunks: a chunk is within one segment of the caller
 * and one MD of this node. Some chunks are under way at a time, each as a PUT
 * with ACK or as a GET. What did not arrive, or perhaps did not, is repeated
 * (loss.h). That is harmless: the caller's segments stay linked while the
 * attempt is the call's last one (bulk.h), and a retry moves the same bytes to
 * the same memory.
 *
 * A later attempt of the call lends the same memory under new match values.
 * transfers_refresh() makes transfers go on with the new values; what was moved
 * before stays moved.
 *
 * Thread: owner of the shard, unless a comment says "any thread".
 */
#ifndef RPC_TRANSFER_H
#define RPC_TRANSFER_H

#include <stdatomic.h>

#include "rpc/wire/wire.h"
#include "ulnet/service.h"
#include "ulnet/thread.h"

struct bulk_pace;
struct piece_key;
struct shard;
struct transfers;

/* Progress of a caller's bulk. Written by the owner of the transfers, read by
 * any thread. */
struct bulk_progress {
	/* ns: when a chunk was last moved; 0: none was */
	_Atomic uint64_t last;
	_Atomic uint64_t slowest; /* ns that the slowest chunk took */
};

struct transfers_conf {
	struct shard *shard;
	struct ulnet_nid self; /* this node's NID to which the request came */
	struct ulnet_id peer;  /* NID and pid from which the request came */
	uint64_t deadline;     /* ns: deadline of the call; TIME_NEVER: none */
	/* ns for which a chunk is tried again if the call has no deadline */
	uint64_t retry_time;
	/* chunks under way at a time, at most, of all transfers together */
	unsigned int window;
	/* heard, busy and pace belong to the caller's connection, and are
	 * borrowed until transfer_abort(). NULL: there is no connection. *heard
	 * is set to the time (ns) whenever the caller answers. */
	uint64_t *heard;
	/* lists these transfers while something is moved, for
	 * transfers_on_conn_loss() */
	struct list *busy;
	struct bulk_pace *pace;
	/* Sets *@nid to another NID of the caller, from which messages of the
	 * same connection have come, and returns true; returns false if there
	 * is none. NULL: there is no connection. @caller: the field below. */
	bool (*other)(const void *caller, struct ulnet_nid *nid);
	const void *caller;
	/* protection: how the caller's memory has to be sealed (enum
	 * seal_protection; 0: not at all). seals: the key for what is put.
	 * opens: the key for what is got. transfers_new() takes references to
	 * the keys. */
	unsigned int protection;
	struct piece_key *seals, *opens;
};

/* Segments with seals, of all bulk of a call together, at most: the heads of
 * messages have room for so many. */
#define TRANSFERS_SEALED_MAX 1024u

/* Returns how many bytes of memory transfers_new() takes. */
uint64_t transfers_size(const struct wire_call *call);
/* Returns how many bytes the body has that @call lends; 0: it lends none. */
uint64_t transfers_body_length(const struct wire_call *call);
/* Sets *@t_p to the transfers for the bulk that @call describes, which is
 * copied; to NULL if @call has no bulk. Returns 0; -EPROTO: the description is
 * not valid; -ENOMEM. */
int transfers_new(const struct transfers_conf *conf,
		  const struct wire_call *call,
		  struct transfers **t_p) must_check;
/* Called when another attempt of the same call has come as @call. Gives up
 * chunks under way with the old match values, and repeats them with the new
 * ones, to conf->peer from conf->self. Moves the deadline to conf->deadline if
 * that is later. The rest of @conf is not used. Returns 0; -EPROTO: @call lends
 * other memory, and nothing is changed. */
int transfers_refresh(struct transfers *t, const struct transfers_conf *conf,
		      const struct wire_call *call) must_check;
/* Called when the caller has asked about the call over another rail: chunks
 * that begin from now on go to conf->peer from conf->self first. Chunks under
 * way go on if LNet knows conf->peer as the same peer. If it does not, the
 * caller no longer has the old NID, and they are given up and repeated. The
 * rest of @conf is not used. */
void transfers_follow(struct transfers *t, const struct transfers_conf *conf);
/* Called when a connection to @rail was lost, a NID of the caller whose
 * transfers are in @busy. After a random pause, gives up and repeats the chunks
 * that were sent over that connection and are still under way. The pause is
 * about @rtt ns (0: not known), and grows up to 0.1 s with each loss while
 * nothing is moved. */
void transfers_on_conn_loss(const struct list *busy, uint64_t rtt,
			    const struct ulnet_nid *rail);
/* Takes a reference to @t, not NULL, to be given back by transfers_free(). Any
 * thread. */
void transfers_get(struct transfers *t);
/* Gives a reference back. Transfers under way have references of their own, and
 * end by themselves. Any thread. */
void transfers_free(struct transfers *t);

/* Between transfers_use() and transfers_unuse(), transfer_start() and
 * transfer_wait_begin() may use the shard of @t. After transfers_unuse(), @t
 * may be freed. @t is not NULL. Any thread; only for a short time, because the
 * end of the request waits for it. */
void transfers_use(struct transfers *t);
void transfers_unuse(struct transfers *t);
bool transfers_used(const struct transfers *t);

/* What ulrpc_request_bulk(3), ulrpc_bulk_get(3) and ulrpc_bulk_put(3) do. Any
 * thread. */
unsigned int transfers_count(const struct transfers *t);
int transfers_info(const struct transfers *t, unsigned int index,
		   struct ulrpc_bulk_info *info);
int transfer_start(struct transfers *t, unsigned int index,
		   enum ulrpc_bulk_access access, uint64_t offset,
		   const struct iovec *iov, unsigned int niov,
		   ulrpc_bulk_fn done, void *arg);

/* Begins to get the body that the call lends into @to, which has room for
 * transfers_body_length() bytes, and stays until @t is not busy any more.
 * transfer_on_done() and transfer_status() then tell the end. Returns 0;
 * -ENOMEM: nothing is begun. Owner. */
int transfers_get_body(struct transfers *t, void *to) must_check;
/* The body has come: what is moved from now on is the handler's. Owner. */
void transfers_have_body(struct transfers *t);

/* A thread that waits for the end of a transfer. */
struct transfer_waiter {
	pthread_mutex_t lock;
	struct ulnet_cond cond;
	bool done, woken;
	int status;
	atomic_bool over; /* was transfer_wait_give_up() called? */
};
/* Begins a transfer as transfer_start() does, for which @w waits. After success
 * the caller owes transfer_wait_end(), and @w must stay until then. */
int transfer_wait_begin(struct transfers *t, unsigned int index,
			enum ulrpc_bulk_access access, uint64_t offset,
			const struct iovec *iov, unsigned int niov,
			struct transfer_waiter *w);
/* Waits until the transfer ends, until @until (ns), or until
 * transfer_wait_wake() is called. Returns false if the transfer has ended, or
 * if the thread is to end (lnet_cond_wait(3)); otherwise true. */
bool transfer_wait(struct transfer_waiter *w, uint64_t until);
/* Ends the current or next transfer_wait(). Any thread, before
 * transfer_wait_end(). */
void transfer_wait_wake(struct transfer_waiter *w);
/* Ends the transfer with -ETIMEDOUT, as soon as nothing uses its memory. Called
 * by the thread that waits. */
void transfer_wait_give_up(struct transfers *t, struct transfer_waiter *w);
/* Waits for the end of the transfer. Returns its status, or -ECANCELED: the
 * thread is to end. */
int transfer_wait_end(struct transfer_waiter *w);
/* Returns the progress of @t, which is not NULL. Borrowed from @t. */
const struct bulk_progress *transfers_progress(const struct transfers *t);

/* What ulrpc_bulk_timeout(3) and ulrpc_bulk_cancel(3) do. Any thread. */
int transfer_timeout(struct transfers *t, unsigned int index, uint64_t us);
int transfer_cancel(struct transfers *t, unsigned int index);

/* Is there a transfer whose done function was not called yet? */
bool transfer_busy(const struct transfers *t);
/* Calls @fn(@arg) once, after the done function of the last transfer. @t must
 * be busy now. @fn may free @t. */
void transfer_on_done(struct transfers *t, void (*fn)(void *arg), void *arg);
/* Ends all transfers, also those that begin later, with @status (negative),
 * each as soon as none of its memory is used. */
void transfer_abort(struct transfers *t, int status);

/* Fills @out with what the reply is to say of sinks: up to @max entries, which
 * borrow from @t. Returns how many entries, which is at most transfers_count().
 * This completes the seals of sealed sinks: a later put to a segment of such a
 * sink begins at the beginning of the segment. */
unsigned int transfer_moved(struct transfers *t, struct wire_moved *out,
			    unsigned int max);
/* Sets *@in to the bytes that were got from the caller, and *@out to those that
 * were put to it, in chunks that succeeded. */
void transfer_bytes(const struct transfers *t, uint64_t *in, uint64_t *out);
/* Returns how many chunks were moved with success; @t is not NULL. */
uint64_t transfer_segments(const struct transfers *t);
/* Returns for how many ns at least one chunk was under way. */
uint64_t transfer_time(const struct transfers *t);
/* The same, since transfers_have_body(). @t is not NULL. */
uint64_t transfer_time_of_handler(const struct transfers *t);
/* Returns the status of the first transfer that failed, or 0. */
int transfer_status(const struct transfers *t);

#endif
