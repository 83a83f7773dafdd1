/* SPDX-License-Identifier: BSD-3-Clause */
/* What remote.c (the caller's memory, and its checksums) and transfer.c
 * (transfers) share. */
#ifndef RPC_TRANSFER_PRIV_H
#define RPC_TRANSFER_PRIV_H

#include <stdatomic.h>
#include <sys/uio.h>
#include "base/fsm.h"
#include "base/list.h"
#include "rpc/bulk/loss.h"
#include "rpc/rpc.h"
#include "rpc/bulk/transfer.h"

/* ---- positions in memory: any thread ---- */

/* The same bytes in two memories: in segments of a caller, of which only the
 * lengths are known here, and in fragments of this process. */
struct span {
	uint64_t length;
	const uint32_t *lengths; /* of the segments; none is 0 */
	unsigned int nsegments;
	unsigned int segment; /* where the span begins, */
	uint32_t in_segment;  /* at this offset */
	unsigned int niov;
	struct iovec *iov; /* @length bytes; no fragment is empty */
};

struct cursor {
	uint64_t offset; /* from the beginning of the span */
	unsigned int segment;
	uint32_t in_segment;
	unsigned int fragment;
	size_t in_fragment;
};

static inline struct cursor cursor_begin(const struct span *s)
{
	return (struct cursor){ .segment = s->segment,
				.in_segment = s->in_segment };
}

/* Bytes of the span from @at to the end of @at's segment. */
static inline uint32_t cursor_room(const struct span *s,
				   const struct cursor *at)
{
	return (uint32_t)MIN(s->lengths[at->segment] - at->in_segment,
			     s->length - at->offset);
}

/* Goes @length bytes on, at most to the end. */
void cursor_move(const struct span *s, struct cursor *at, uint64_t length);
/* Fills @out with up to @max fragments of the @length bytes at @at; returns
 * their number, and in *@length_p their bytes. */
unsigned int cursor_slice(const struct span *s, const struct cursor *at,
			  uint64_t length, struct iovec *out, unsigned int max,
			  uint32_t *length_p);

/* ---- what a request has lent, and its transfers ---- */

/* A bulk of the caller. */
struct remote {
	uint64_t match; /* owner: of the attempt that came last */
	/* any thread */
	_Atomic uint64_t timeout; /* us, of transfers that begin; 0: none */
	atomic_uint cancels;	  /* calls of transfer_cancel() */
	/* immutable */
	uint64_t length;
	enum ulrpc_bulk_access access;
	bool checked;
	unsigned int n;
	uint32_t *lengths; /* of its segments */
	/* Checksums of the segments, if checked. Of a source: as the caller has
	 * sent them, immutable. Of a sink: of the first @put bytes, owner. */
	uint32_t *crc;
	uint32_t *put;
	bool tried; /* a sink: something may have been put to it */
};

struct transfers {
	struct transfers_conf conf;
	/* any thread */
	atomic_uint pending; /* transfers whose done was not called */
	atomic_uint users;   /* see transfers_use() */
	atomic_uint refs; /* those whose done has not returned, a cancellation
			   * on its way, and the owner */
	atomic_bool canceling; /* @cancel is given */
	struct ulnet_work cancel;
	struct bulk_progress progress;
	/* owner */
	struct list active;
	struct list link;	  /* conf.busy, while there are active ones */
	unsigned int busy;	  /* chunks that are not free, of all */
	unsigned int conn_losses; /* since a chunk was moved */
	int aborted;		  /* 0, or the status with which all ends */
	int failed;		  /* 0, or the status of the first failure */
	uint64_t in, out;	  /* bytes */
	uint64_t segments;	  /* chunks moved */
	uint64_t since;		  /* ns: when a first one became active */
	uint64_t time;		  /* ns: in which one was active, before that */
	void (*on_done)(void *arg);
	void *on_done_arg;
	unsigned int n;
	struct remote remotes[];
};

enum chunk_state {
	CHUNK_FREE,
	CHUNK_FLYING,  /* LNet has its MD: the last event is missing */
	CHUNK_WAITING, /* to be sent, or sent again */
	CHUNK_STATES
};

struct chunk {
	struct transfer *x;
	struct fsm fsm;
	bool answered;	       /* an answer has come, and set status */
	bool final;	       /* no retry could do better */
	int status;	       /* of this try */
	uint64_t match;	       /* remote.match when this try began */
	struct ulnet_nid rail; /* the peer's NID that this try went to; ANY:
				* not known yet */
	struct ulnet_md_handle md;
	struct cursor at;
	uint32_t length;
	struct retry_schedule schedule;
	uint64_t first, began; /* ns: the first try; this one */
	uint64_t again;	       /* WAITING: ns, until when */
};

struct transfer {
	struct transfers *t;
	struct remote *r;
	struct list link;	  /* t->active */
	struct ulnet_work work;	  /* begins it; ends it */
	struct ulnet_timer timer; /* transfer_arm() */
	ulrpc_bulk_fn done;
	void *arg;
	struct span span;
	uint64_t timeout;	    /* ns, its own; TIME_NEVER: none */
	uint64_t deadline;	    /* ns, by @timeout */
	struct conn_loss conn_loss; /* the last one */
	uint64_t sweep;	      /* ns: when chunks that @conn_loss covers are
			       * given up; TIME_NEVER */
	unsigned int cancels; /* the remote's, when this transfer was made */
	struct cursor next;   /* what no chunk was made of yet */
	/* If checked, for each segment: of a source, bytes still missing; of a
	 * sink, the checksum of what is put there. Else NULL. */
	uint32_t *left;
	uint32_t *crc;
	int status;
	bool ending;
	unsigned int busy; /* chunks that are not free */
	uint64_t moved;
	uint64_t low; /* beginning of what was certainly not moved */
	unsigned int nchunks;
	struct chunk chunks[];
};

/* ---- checksums ---- */

/* Can the checksums be verified, if there are any? Not for a part of a source's
 * segment. Any thread. */
bool transfer_checkable(const struct transfer *x);
/* Fills x->left, or x->crc, as far as that needs no other transfer: on the
 * thread that starts the transfer, which spares the owner the work. */
void transfer_sum(struct transfer *x);
/* Combines x->crc with what was put to the sink before. -EINVAL: the span
 * begins neither where its segment does nor where the last put to it ended. */
int transfer_sum_merge(struct transfer *x) must_check;
/* The transfer failed, so the contents of its segments are not known. */
void transfer_sum_forget(struct transfer *x);
/* Chunk @p of a source has come; -EBADMSG: it completes a segment whose
 * checksum is wrong. */
int transfer_sum_check(struct transfer *x, const struct chunk *p) must_check;

#endif
