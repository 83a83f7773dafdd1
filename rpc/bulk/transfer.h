/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bulk of one request, at the server: what the caller has lent, and the
 * transfers from and to it. Knows nothing of requests: a request with bulk owns
 * a `struct transfers`. Functions take NULL for "no bulk", except for
 * transfers_new() and where it says so.
 *
 * A transfer is cut into chunks: a chunk is within one segment of the caller
 * and one MD of this node. Some chunks are under way at a time, each as a PUT
 * with ACK or as a GET. What did not arrive, or perhaps did not, is repeated
 * (loss.h). That is harmless: the caller's segments stay linked while the
 * attempt is the call's last one (bulk.h), and a retry moves the same bytes to
 * the same memory.
 *
 * A later attempt of the call lends the same memory under new match values:
 * transfers_refresh() has transfers go on with these, and what was moved before
 * stays moved.
 *
 * Thread: owner of the shard, unless it says any.
 */
#ifndef RPC_TRANSFER_H
#define RPC_TRANSFER_H

#include <stdatomic.h>

#include "rpc/wire/wire.h"
#include "ulnet/service.h"
#include "ulnet/thread.h"

struct shard;
struct transfers;

/* Progress heartbeat of a caller's bulk. Written by the owner of the transfers,
 * read by any thread. */
struct bulk_progress {
	_Atomic uint64_t last;	  /* ns: when a chunk was moved; 0: none was */
	_Atomic uint64_t slowest; /* ns that one took, of those moved */
};

struct transfers_conf {
	struct shard *shard;
	struct ulnet_nid self; /* NID of ours that the request came to */
	struct ulnet_id peer;  /* NID that the request came from, and pid */
	uint64_t deadline;     /* ns, of the call; UINT64_MAX: none */
	uint64_t retry_time;   /* without a deadline: ns for which a chunk is
				* tried */
	unsigned int window;   /* chunks under way, of all transfers */
	/* Of the caller's connection; both borrowed until transfer_abort(), or
	 * NULL: */
	uint64_t *heard;   /* set to the time, ns, when the caller answers */
	struct list *busy; /* lists the transfers while something is moved, for
			    * transfers_on_conn_loss() */
};

/* Bytes of memory that transfers_new() takes. */
uint64_t transfers_size(const struct wire_call *call);
/* Copies what @call says of its bulk; *@t_p is NULL if it has none. 0; -EPROTO:
 * that makes no sense; -ENOMEM. */
int transfers_new(const struct transfers_conf *conf,
		  const struct wire_call *call,
		  struct transfers **t_p) must_check;
/* Another attempt of the same call has come, as @call. Chunks under way with
 * the old match values are given up and repeated with the new ones, to
 * conf->peer from conf->self. The deadline becomes conf->deadline if that is
 * later; the rest of @conf is not used. 0; -EPROTO: @call lends other memory,
 * and nothing is changed. */
int transfers_refresh(struct transfers *t, const struct transfers_conf *conf,
		      const struct wire_call *call) must_check;
/* The caller has asked about the call over another rail: chunks that begin from
 * now on go to conf->peer from conf->self first. Those under way are given up
 * and repeated only if LNet does not know that NID as one of the same peer: the
 * caller no longer has the old one. The rest of @conf is not used. */
void transfers_follow(struct transfers *t, const struct transfers_conf *conf);
/* A connection to @rail, a NID of the caller whose transfers are in @busy, was
 * lost. Chunks sent over it that are still under way after a random pause are
 * given up and repeated. The pause is about @rtt, ns (0: not known), and grows
 * up to 0.1 s with each loss while nothing is moved. */
void transfers_on_conn_loss(const struct list *busy, uint64_t rtt,
			    const struct ulnet_nid *rail);
/* One more reference to @t, not NULL, for one more transfers_free(). Any
 * thread. */
void transfers_get(struct transfers *t);
/* Gives a reference back. Transfers under way have references of their own, and
 * end by themselves. Any thread. */
void transfers_free(struct transfers *t);

/* From transfers_use() to transfers_unuse(), after which @t may be freed,
 * transfer_start() and transfer_wait_begin() may use the shard of @t. Not NULL.
 * Any thread; for a short time, because who ends the request waits. */
void transfers_use(struct transfers *t);
void transfers_unuse(struct transfers *t);
bool transfers_used(const struct transfers *t);

/* ulrpc_request_bulk(3), ulrpc_bulk_get(3), ulrpc_bulk_put(3). Any thread. */
unsigned int transfers_count(const struct transfers *t);
int transfers_info(const struct transfers *t, unsigned int index,
		   struct ulrpc_bulk_info *info);
int transfer_start(struct transfers *t, unsigned int index,
		   enum ulrpc_bulk_access access, uint64_t offset,
		   const struct iovec *iov, unsigned int niov,
		   ulrpc_bulk_fn done, void *arg);

/* A thread that waits for the end of a transfer. */
struct transfer_waiter {
	pthread_mutex_t lock;
	struct ulnet_cond cond;
	bool done, woken;
	int status;
	atomic_bool over; /* transfer_wait_give_up() */
};
/* As transfer_start(). After success the caller owes transfer_wait_end(). */
int transfer_wait_begin(struct transfers *t, unsigned int index,
			enum ulrpc_bulk_access access, uint64_t offset,
			const struct iovec *iov, unsigned int niov,
			struct transfer_waiter *w);
/* Waits until the transfer ends, until @until, ns, or for transfer_wait_wake().
 * False: the transfer has ended, or the thread is to end
 * (lnet_cond_wait(3)). */
bool transfer_wait(struct transfer_waiter *w, uint64_t until);
/* Any thread, before transfer_wait_end(). */
void transfer_wait_wake(struct transfer_waiter *w);
/* The transfer ends with -ETIMEDOUT, as soon as nothing uses its memory. By the
 * thread that waits. */
void transfer_wait_give_up(struct transfers *t, struct transfer_waiter *w);
/* Waits for the end. Returns the transfer's status, or -ECANCELED: the thread
 * is to end. */
int transfer_wait_end(struct transfer_waiter *w);
/* Borrowed as long as @t, which is not NULL. */
const struct bulk_progress *transfers_progress(const struct transfers *t);

/* ulrpc_bulk_timeout(3), ulrpc_bulk_cancel(3). Any thread. */
int transfer_timeout(struct transfers *t, unsigned int index, uint64_t us);
int transfer_cancel(struct transfers *t, unsigned int index);

/* Is there a transfer whose done function was not called yet? */
bool transfer_busy(const struct transfers *t);
/* Calls @fn(@arg) once, after the done function of the last transfer; @t must
 * be busy now. @fn may free @t. */
void transfer_on_done(struct transfers *t, void (*fn)(void *arg), void *arg);
/* Transfers, also those that begin later, end with @status (negative) as soon
 * as none of their memory is used. */
void transfer_abort(struct transfers *t, int status);

/* What the reply says of sinks: fills up to @max entries, borrowed from @t;
 * returns their number, at most transfers_count(). */
unsigned int transfer_moved(const struct transfers *t, struct wire_moved *out,
			    unsigned int max);
/* Bytes moved with success: got from the caller, and put to it. */
void transfer_bytes(const struct transfers *t, uint64_t *in, uint64_t *out);
/* Chunks moved with success; @t is not NULL. */
uint64_t transfer_segments(const struct transfers *t);
/* ns in which something was being moved. */
uint64_t transfer_time(const struct transfers *t);
/* The status of the first transfer that failed, or 0. */
int transfer_status(const struct transfers *t);

#endif
