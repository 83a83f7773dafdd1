/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory where the replies of a parcel land, and the match entries by which
 * LNet finds it.
 *
 * A parcel of one call with a short reply takes a buffer that its import keeps
 * attached, if there is one, and gives it back, as long as there is room in it
 * for another: setting up a match entry, and taking it down, costs as much as
 * the rest of receiving the reply. Each message lands behind the one before it,
 * so none is written over what somebody still reads, not even by a copy that
 * comes late, or that stopped halfway on a connection that was lost. Such a
 * copy still finds the buffer, with the parcel that has it then or with none,
 * and is told from what that waits for by the numbers of calls.
 *
 * A buffer is given back only by the arrival of the reply that the parcel
 * waited for: one whose reply may still come would be used up by it.
 *
 * All other parcels have buffers of their own.
 *
 * Thread: owner.
 */
#ifndef RPC_REPLY_BUF_H
#define RPC_REPLY_BUF_H

#include "base/list.h"
#include "ulnet/loop.h"

struct import;
struct parcel;
struct shard;

struct reply_buf {
	struct reply_buf *next; /* parcel.bufs */
	struct list link;	/* import.reply_bufs; imports.reply_bufs, once
				 * it is not to be used again */
	struct shard *shard;
	struct parcel *parcel; /* NULL: in one of these lists */
	bool kept;	       /* by the import */
	uint32_t room;	       /* bytes, behind all that has landed */
	uint64_t match;
	struct ulnet_id peer; /* who may reply */
	struct ulnet_md_handle md;
	struct ulnet_work work;
	size_t size; /* of all this, as allocated */
	uint8_t bytes[] __attribute__((aligned(16)));
};

/* The replies of @p land somewhere from now on: sets bufs, current and match.
 * 0, -ENOMEM, or what LNetMEAttach(3) says. */
int reply_buf_attach(struct parcel *p);
/* No call of @p waits any more; parcel.client is still there. */
void reply_buf_release(struct parcel *p);

/* The import keeps none any more, for now: it rests, ends, or goes over to
 * another NID. */
void reply_bufs_drop(struct import *imp);

/* After a crash: those of a parcel, and those of a list above. */
void reply_bufs_gone_parcel(struct parcel *p);
void reply_bufs_gone(struct list *bufs);

#endif
