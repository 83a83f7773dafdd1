/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory where the replies of a batch land, and the match entries by which
 * LNet finds it.
 *
 * To set up a match entry and to take it down costs as much as the rest of
 * receiving a reply. So an import keeps buffers attached: a batch of one call
 * with a short reply takes one of them, if there is one, and gives it back as
 * long as it has room for another reply.
 *
 * Each message lands behind the one before it. So no message is written over
 * one that somebody still reads, even if it is a late copy, or one that stopped
 * halfway on a connection that was lost. A late copy still finds the buffer,
 * which by then may belong to another batch or to none; the numbers of the
 * calls in it show that this batch does not wait for it.
 *
 * A batch gives its buffer back only when the reply that it waited for has
 * arrived. Otherwise the reply might still come, and use up the buffer of the
 * next batch.
 *
 * All other batches have buffers of their own.
 *
 * Thread: owner.
 */
#ifndef RPC_REPLY_BUF_H
#define RPC_REPLY_BUF_H

#include "base/list.h"
#include "ulnet/loop.h"

struct import;
struct batch;
struct shard;

/* Functions of the owner of the replies (batch.c): imports.reply_buf_users. */
struct reply_buf_users {
	/* A message of replies to calls of @p, which is open, is here. */
	void (*on_replies)(struct batch *p, const struct ulnet_event *ev);
	/* A buffer of @p has gone, or @p is not landing any more: @p may be
	 * over, and freed when this returns. */
	void (*check)(struct batch *p);
};

struct reply_buf {
	const struct reply_buf_users *users;
	struct reply_buf *next; /* batch.bufs */
	struct list link;	/* import.reply_bufs, while it is kept there */
	struct shard *shard;
	struct batch *batch; /* NULL: kept, or not to be used again */
	bool kept;	     /* by the import */
	uint32_t room;	     /* bytes, behind all that has landed */
	uint64_t match;
	struct ulnet_id peer; /* who may reply */
	struct ulnet_md_handle md;
	struct ulnet_work work;
	size_t size; /* of all this, as allocated */
	uint8_t bytes[] __attribute__((aligned(16)));
};

/* The replies of @p land somewhere from now on: sets bufs, current and match.
 * 0, -ENOMEM, or what LNetMEAttach(3) says. */
int reply_buf_attach(struct batch *p);
/* Gives back the buffers of @p: no call of it waits any more. p->client is
 * still set. */
void reply_buf_release(struct batch *p);

/* The import gives up the buffers that it keeps: it rests, ends, or goes over
 * to another NID. */
void reply_bufs_drop(struct import *imp);

#endif
