/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive buffers for messages from anybody to one portal of one CPT. LNet
 * packs messages into a buffer, one behind the other, until the next one might
 * not fit. The buffer is then posted again at once, unless it is pinned.
 *
 * Buffers have no shares: a message is in a buffer only while it is read, or
 * pinned. At most a quarter of the buffers may be pinned; who cannot pin copies
 * the message instead.
 *
 * The portal is lazy: while no buffer is posted, LNet queues messages, within
 * the node's lazy_max and lazy_bytes_max. Each peer has its share of these, and
 * LNet does not read from a peer that has used up its share.
 *
 * Thread: owner (the CPT).
 */
#ifndef RPC_INBOX_H
#define RPC_INBOX_H

#include "base/list.h"
#include "ulnet/loop.h"

struct inbox;
struct inbox_buffer;
struct shard;

/* A message has come: @payload is borrowed until return, or until the buffer is
 * unpinned. May close the inbox. */
typedef void (*inbox_fn)(void *arg, const struct ulnet_event *ev,
			 const void *payload, size_t length);

struct inbox {
	/* set by the caller of inbox_open(); the rest is 0 then */
	struct shard *shard;
	unsigned int portal;
	unsigned int buffers; /* at least 2 */
	uint32_t buffer_size; /* bytes */
	uint32_t message_max; /* bytes, at most buffer_size */
	bool heads; /* longer messages are cut off, not dropped: ev->mlength
		     * and ev->rlength differ then */
	inbox_fn fn;
	void *arg;

	struct list all;     /* of inbox_buffer.all */
	struct list waiting; /* of inbox_buffer.waiting: could not be posted */
	struct ulnet_timer again; /* tries those again */
	struct ulnet_work work;	  /* inbox_closed() */
	void (*done)(void *arg);
	void *done_arg;
	struct inbox_buffer *current;	 /* that the payload lies in, in fn */
	unsigned int pinned, pinned_max; /* buffers */
	unsigned int linked;		 /* buffers that LNet has */
	bool closing;
	bool calling; /* fn runs */
	bool close_scheduled;
};

/* Makes the portal lazy, and posts the buffers. @in must not move until it is
 * closed. 0; -EINVAL, -ENOMEM, or what LNetMEAttach(3) returns: nothing is
 * open. */
int inbox_open(struct inbox *in);

/* No new message comes after this; those that are landing still do, unless the
 * shard is aborted. Calls @done once, never before this returns, when LNet
 * refers to no buffer, none is pinned, and all are freed: @in may be freed
 * then. */
void inbox_close(struct inbox *in, void (*done)(void *arg), void *arg);

/* Called inside of fn: the payload stays valid until inbox_unpin(), which is to
 * be called once for each success. NULL: a quarter of the buffers are pinned
 * already. */
struct inbox_buffer *inbox_pin(struct inbox *in);
void inbox_unpin(struct inbox_buffer *b);
/* Makes a pin independent of the inbox, which does not wait for it any more
 * when it closes: the buffer is not posted again, and the last inbox_kept_put()
 * frees it. */
void inbox_pin_keep(struct inbox_buffer *b);
/* Any thread. */
void inbox_kept_put(struct inbox_buffer *b);

#endif
