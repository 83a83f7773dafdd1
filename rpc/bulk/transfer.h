/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bulk of one request, on the server's side: what the caller has lent, and
 * the transfers from and to it. Knows nothing of requests: they own a `struct
 * transfers`, if there is bulk at all; all functions but transfers_new() take
 * NULL for "none".
 *
 * A transfer is cut into pieces: what one segment of the caller and one MD of
 * ours have in common. Some are under way at a time, each a PUT with ACK, or a
 * GET. A piece that did not arrive, or perhaps did not, is tried again, which
 * is harmless as the caller's segments stay linked, for any number of messages,
 * as long as the attempt is the call's last one (bulk.h): another try moves the
 * same bytes to the same place (tries.h).
 *
 * When the caller sends the call again, the segments of the attempt before are
 * not there any more. The same memory has new match values then, with which
 * transfers go on: transfers_refresh(). What was moved before stays moved, for
 * the memory is the call's all the time.
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

/* How a caller answers when its bulk is moved. Written by the owner of the
 * transfers, read by any thread. */
struct pulse {
	_Atomic uint64_t last;	  /* ns: when a piece was moved; 0: none was */
	_Atomic uint64_t slowest; /* ns: that one took, of those moved */
};

struct transfers_conf {
	struct shard *shard;
	struct ulnet_nid self; /* NID of ours that the request came to */
	struct ulnet_id peer;  /* NID it came from, and pid */
	uint64_t deadline;     /* ns, as lnet_now(), the caller's; UINT64_MAX:
			    * none */
	uint64_t patience;   /* ns that a piece is tried for if there is none */
	unsigned int window; /* pieces in flight, of all transfers */
	/* Of the caller's connection; both borrowed until transfer_abort();
	 * NULL. */
	uint64_t *heard;   /* set to the time, ns, when it has answered */
	struct list *busy; /* it is in this one while something is moved, for
			    * transfers_severed() */
};

/* Bytes of memory that transfers_new() takes. */
uint64_t transfers_size(const struct wire_call *call);
/* Copies what @call says of its bulk; *@t_p is NULL if it has none. 0; -EPROTO:
 * it makes no sense; -ENOMEM. */
int transfers_new(const struct transfers_conf *conf,
		  const struct wire_call *call,
		  struct transfers **t_p) must_check;
/*
 * Another attempt of the same call has come, as @call, and lends the same
 * memory with other match values: tries that are under way with the old ones
 * are given up, and all goes on with these, to conf->peer from conf->self; the
 * deadline only moves forward. The rest of @conf is not looked at. 0; -EPROTO:
 * @call lends something else, and nothing is changed.
 */
int transfers_refresh(struct transfers *t, const struct transfers_conf *conf,
		      const struct wire_call *call) must_check;
/*
 * The caller has asked about the call over another rail, from conf->peer to
 * conf->self: what is moved from now on goes there first. What is under way is
 * given up and begun anew if that NID is not known to be one of the same peer:
 * then the caller has left the other one. The rest of @conf is not looked at.
 */
void transfers_follow(struct transfers *t, const struct transfers_conf *conf);
/*
 * A rail has failed: @rail, a NID of the caller that the transfers in @busy
 * belong to. Tries that went by it may be lost. Those that are still under way
 * after a random pause of about @rtt, ns (0: not known), are given up, and
 * others take their place (tries.h). The pauses become longer, up to 0.1 s,
 * while rails fail and nothing is moved between.
 */
void transfers_severed(const struct list *busy, uint64_t rtt,
		       const struct ulnet_nid *rail);
/* One more reference to @t, for one more transfers_free(). Any thread. */
void transfers_get(struct transfers *t);
/* What is still going on ends by itself. Any thread. */
void transfers_free(struct transfers *t);

/* Until transfers_unuse(), after which @t may be gone, transfer_start() and
 * transfer_wait_begin() may use the shard of @t. Any thread; for a short time
 * only, because whoever gives the request up waits for it. */
void transfers_use(struct transfers *t);
void transfers_unuse(struct transfers *t);
bool transfers_used(const struct transfers *t);

/* ulrpc_request_bulk(3), ulrpc_bulk_get(3), ulrpc_bulk_put(3), and *_wait: for
 * them request.c has request_transfers(). Any thread. */
unsigned int transfers_count(const struct transfers *t);
int transfers_info(const struct transfers *t, unsigned int index,
		   struct ulrpc_bulk_info *info);
int transfer_start(struct transfers *t, unsigned int index,
		   enum ulrpc_bulk_access access, uint64_t offset,
		   const struct iovec *iov, unsigned int niov,
		   ulrpc_bulk_fn done, void *arg);
/*
 * As transfer_start(), by a thread that waits for the end: transfer_wait_end(),
 * unless the beginning failed. transfer_wait() returns before the end, too: at
 * @until, ns, or because of transfer_wait_wake(), which any thread may call
 * before transfer_wait_end(). transfer_wait_end() returns how the transfer
 * ended, or -ECANCELED: the calling thread is to end (lnet_cond_wait(3)).
 */
struct transfer_waiter {
	pthread_mutex_t lock;
	struct ulnet_cond cond;
	bool done, woken;
	int status;
	atomic_bool over; /* transfer_wait_give_up() */
};
int transfer_wait_begin(struct transfers *t, unsigned int index,
			enum ulrpc_bulk_access access, uint64_t offset,
			const struct iovec *iov, unsigned int niov,
			struct transfer_waiter *w);
/* False: it has ended, or nothing will be waited for any more. */
bool transfer_wait(struct transfer_waiter *w, uint64_t until);
void transfer_wait_wake(struct transfer_waiter *w);
/* The transfer ends soon, with -ETIMEDOUT, as soon as nothing uses its memory.
 * By the thread that waits. */
void transfer_wait_give_up(struct transfers *t, struct transfer_waiter *w);
int transfer_wait_end(struct transfer_waiter *w);
/* Borrowed, as @t, which is not NULL. */
const struct pulse *transfers_pulse(const struct transfers *t);

/* ulrpc_bulk_timeout(3), ulrpc_bulk_cancel(3). Any thread. */
int transfer_timeout(struct transfers *t, unsigned int index, uint64_t us);
int transfer_cancel(struct transfers *t, unsigned int index);

/* Is a transfer under way, or posted by another thread, whose done was not
 * called yet? */
bool transfer_busy(const struct transfers *t);
/* Calls @fn(@arg) once, when the last one has ended, after its done; it must be
 * busy now. @fn may free @t. */
void transfer_on_done(struct transfers *t, void (*fn)(void *arg), void *arg);
/* All that is under way, and what comes later, ends with @status (negative) as
 * soon as none of its memory is used. */
void transfer_abort(struct transfers *t, int status);

/* What the reply says: fills up to @max entries, borrowed from @t; returns how
 * many there are (at most transfers_count()). */
unsigned int transfer_moved(const struct transfers *t, struct wire_moved *out,
			    unsigned int max);
/* Bytes moved with success: got from the caller, and put to it. */
void transfer_bytes(const struct transfers *t, uint64_t *in, uint64_t *out);
/* Segments moved with success, so far. */
uint64_t transfer_segments(const struct transfers *t);
/* ns in which something was being moved. */
uint64_t transfer_time(const struct transfers *t);
/* Status of the first transfer that failed; 0: none has. */
int transfer_status(const struct transfers *t);

#endif
