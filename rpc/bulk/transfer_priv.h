/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of transfers share: what a caller has lent, and its checksums
 * (remote.c), and transfers (transfer.c). */
#ifndef RPC_TRANSFER_PRIV_H
#define RPC_TRANSFER_PRIV_H

#include <stdatomic.h>
#include "base/fsm.h"
#include "base/list.h"
#include "rpc/bulk/place.h"
#include "rpc/bulk/severed.h"
#include "rpc/bulk/tries.h"
#include "rpc/rpc.h"
#include "rpc/bulk/transfer.h"

/* A bulk of the caller. */
struct remote {
	uint64_t match; /* owner: of the attempt that came last */
	/* any thread */
	_Atomic uint64_t timeout; /* us, of transfers that begin; 0: none */
	atomic_uint cancels;	  /* transfer_cancel(), so far */
	/* immutable */
	uint64_t length;
	enum ulrpc_bulk_access access;
	bool checked;
	unsigned int n;
	uint32_t *lengths; /* of its segments */
	/* Checksums, if checked: of a source, what the caller says, immutable;
	 * of a sink, of what was put to the first @put bytes of each segment:
	 * owner. */
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
	atomic_bool canceling; /* cancel is given */
	struct ulnet_work cancel;
	struct pulse pulse;
	/* owner */
	struct list active;
	struct list link;	/* conf.busy, while there are active ones */
	unsigned int busy;	/* pieces that are not free, of all */
	unsigned int severings; /* in a row, since a piece was moved */
	int aborted;		/* 0, or why everything ends */
	int failed;
	uint64_t in, out;  /* bytes */
	uint64_t segments; /* moved */
	uint64_t since;	   /* ns: something is active */
	uint64_t time;	   /* ns: before that */
	void (*on_done)(void *arg);
	void *on_done_arg;
	unsigned int n;
	struct remote remotes[];
};

enum piece_state {
	PIECE_FREE,
	PIECE_FLYING,  /* LNet may use its memory: the last event is missing */
	PIECE_WAITING, /* to be tried again */
	PIECE_STATES
};

struct piece {
	struct transfer *x;
	struct fsm fsm;
	bool answered;	       /* status is the answer's */
	bool final;	       /* no other try could do better */
	int status;	       /* of this try */
	uint64_t match;	       /* remote.match, as this try has it */
	struct ulnet_nid rail; /* of the peer's, that it went to; ANY: LNet has
				* not said yet */
	struct ulnet_md_handle md;
	struct place at;
	uint32_t length;
	struct tries tries;
	uint64_t first, began; /* ns: the first try; this one */
	uint64_t again;	       /* ns: waiting, until */
};

struct transfer {
	struct transfers *t;
	struct remote *r;
	struct list link;	  /* t->active */
	struct ulnet_work work;	  /* begins it; ends it */
	struct ulnet_timer timer; /* pieces that wait; the transfer's time is
				   * over */
	ulrpc_bulk_fn done;
	void *arg;
	struct span span;
	uint64_t timeout;	/* ns; TIME_NEVER: none of its own */
	uint64_t deadline;	/* ns: by that */
	struct severed severed; /* a rail has failed */
	uint64_t sweep;	      /* ns: when tries that began before that are given
			       * up; TIME_NEVER */
	unsigned int cancels; /* the remote's, when it was asked for */
	struct place next;    /* what no piece was made of yet */
	/* Checked: for each segment, of a source, bytes that are missing, of a
	 * sink, checksum of what is put there. */
	uint32_t *left;
	uint32_t *crc;
	int status;
	bool ending;
	unsigned int busy; /* pieces that are not free */
	uint64_t moved;
	uint64_t low; /* beginning of what was certainly not moved */
	unsigned int npieces;
	struct piece pieces[];
};

/* Gives a reference back; the last one frees @t. Any thread. */
void transfers_put(struct transfers *t);

/* ---- checksums ---- */

/* Can it be checked, if that is asked for? Parts of a source's segment cannot.
 * Any thread. */
bool transfer_checkable(const struct transfer *x);
/* Fills x->left, or x->crc: on the thread that wants the transfer, to have
 * other threads do the work; what continues a segment has to wait for the
 * owner. */
void transfer_sum(struct transfer *x);
/* What is put to a segment begins where it does, or where the last one ended;
 * else nobody knew a checksum of it: -EINVAL. */
int transfer_sum_merge(struct transfer *x) must_check;
/* The transfer failed, so the contents of its segments are not known. */
void transfer_sum_forget(struct transfer *x);
/* A piece has come; -EBADMSG: it completes a segment that is wrong. */
int transfer_sum_check(struct transfer *x, const struct piece *p) must_check;

#endif
