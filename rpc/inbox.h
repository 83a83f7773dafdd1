/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive buffers for messages from anybody to one portal of one CPT. LNet
 * packs messages into a buffer, one behind the other, until message_max bytes
 * might not fit any more. The buffer is then posted again at once, unless it is
 * pinned.
 *
 * Clients have no shares of the buffers, as a message takes up a buffer only
 * while it is handled, or pinned. At most a quarter of the buffers may be
 * pinned; a reader that cannot pin copies the message instead.
 *
 * The portal is lazy: while no buffer is posted, LNet queues messages, within
 * the node's lazy_max and lazy_bytes_max. LNet gives each peer a share of that,
 * and does not read from a peer that has used up its share.
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

/* Called when a message has come. @payload is borrowed until this returns, or
 * until the buffer is unpinned. May close the inbox. */
typedef void (*inbox_fn)(void *arg, const struct ulnet_event *ev,
			 const void *payload, size_t length);

struct inbox {
	/* set by the caller of inbox_open(), with all other fields 0 */
	struct shard *shard;
	unsigned int portal;
	unsigned int buffers; /* how many buffers there are, at least 2 */
	uint32_t buffer_size; /* bytes of each buffer */
	/* bytes of the longest message, at most @buffer_size */
	uint32_t message_max;
	/* messages longer than @message_max are cut off, and not dropped: their
	 * ev->mlength is less than ev->rlength */
	bool heads;
	inbox_fn fn;
	void *arg;

	struct list all; /* of inbox_buffer.all */
	/* of inbox_buffer.waiting: buffers that could not be posted */
	struct list waiting;
	struct ulnet_timer again; /* posts the waiting buffers again */
	struct ulnet_work work;	  /* calls inbox_closed() */
	void (*done)(void *arg);
	void *done_arg;
	/* the buffer whose payload @fn has; NULL: @fn does not run */
	struct inbox_buffer *current;
	/* how many buffers are pinned, and how many may be */
	unsigned int pinned, pinned_max;
	unsigned int linked; /* how many buffers LNet has */
	bool closing;
	bool calling; /* does @fn run? */
	bool close_scheduled;
};

/* Makes the portal lazy, and posts the buffers. @in must not move until it is
 * closed. Returns 0; or -EINVAL, -ENOMEM, or an error of LNetMEAttach(3): the
 * inbox is not open. */
int inbox_open(struct inbox *in);

/* No new message comes after this call. Messages that are being received are
 * still delivered, unless the shard is aborted. Calls @done once, never before
 * this function returns, when LNet refers to no buffer, none is pinned, and all
 * are freed: @in may be freed then. */
void inbox_close(struct inbox *in, void (*done)(void *arg), void *arg);

/* Called inside of @fn. The payload then stays valid until inbox_unpin(), which
 * is to be called once for each success. Returns NULL if as many buffers are
 * pinned as may be. */
struct inbox_buffer *inbox_pin(struct inbox *in);
void inbox_unpin(struct inbox_buffer *b);
/* Makes a pin independent of the inbox: when the inbox closes, it does not wait
 * for this pin any more. The buffer is not posted again, and the last
 * inbox_kept_put() frees it. */
void inbox_pin_keep(struct inbox_buffer *b);
/* Ends a pin that inbox_pin_keep() has made independent. Any thread. */
void inbox_kept_put(struct inbox_buffer *b);

#endif
