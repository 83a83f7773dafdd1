/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers for the messages of anybody to one portal of one CPT. LNet packs
 * messages into a buffer, one behind the other, until the next one might not
 * fit; then the buffer is posted again, at once, unless something in it is
 * still in use. Knows nothing of what the messages mean.
 *
 * Buffers are not divided among senders: a message is in one only as long as it
 * is read, or pinned. At most a quarter of the buffers may be pinned, no matter
 * by whom, since whoever cannot pin copies instead.
 *
 * The portal is lazy: while no buffer is posted, LNet holds what comes, within
 * the node's lazy_max and lazy_bytes_max. Of these each peer has its share;
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
	struct shard *shard;
	inbox_fn fn;
	void *arg;
	struct list all;     /* of inbox_buffer.all */
	struct list waiting; /* of inbox_buffer.waiting: could not be posted */
	struct ulnet_timer again; /* tries those again */
	struct ulnet_work work;	  /* says that it is closed */
	void (*done)(void *arg);
	void *done_arg;
	struct inbox_buffer *current; /* while fn runs: where payload lies */
	unsigned int portal;
	uint32_t buffer_size, message_max; /* bytes */
	unsigned int buffers, pinned, pinned_max;
	unsigned int linked; /* buffers that LNet knows */
	bool heads;	     /* longer messages are cut off */
	bool closing;
	bool calling; /* fn runs */
	bool said;    /* work is under way */
};

/*
 * Posts @buffers (at least 2) of @buffer_size bytes each, for messages of at
 * most @message_max (at most buffer_size). Makes the portal lazy. @in is the
 * caller's, and must not move until it is closed.
 * 0, -EINVAL, -ENOMEM, or what LNetMEAttach(3) says; then nothing is open.
 */
int inbox_open(struct inbox *in, struct shard *s, unsigned int portal,
	       unsigned int buffers, uint32_t buffer_size, uint32_t message_max,
	       inbox_fn fn, void *arg);

/* As inbox_open(), but longer messages are cut after @message_max bytes instead
 * of being dropped: ev->mlength and ev->rlength differ then. */
int inbox_open_heads(struct inbox *in, struct shard *s, unsigned int portal,
		     unsigned int buffers, uint32_t buffer_size,
		     uint32_t message_max, inbox_fn fn, void *arg);

/* No new message comes after this; those that are landing still do, unless the
 * shard is aborted. @done is called once, never before this returns, when LNet
 * refers to no buffer, none is pinned, and all are freed: @in may be freed
 * then. */
void inbox_close(struct inbox *in, void (*done)(void *arg), void *arg);

/* Inside of fn: the payload stays valid, and its buffer away from new messages
 * once it is full, until inbox_unpin(), once for each success. NULL: a quarter
 * of the buffers are pinned already, so the caller has to copy. */
struct inbox_buffer *inbox_pin(struct inbox *in);
void inbox_unpin(struct inbox_buffer *b);
/* From now on the inbox does not wait for this pin when it closes: the buffer
 * takes no message any more, and the last inbox_kept_put() frees it. */
void inbox_pin_keep(struct inbox_buffer *b);
/* Any thread. */
void inbox_kept_put(struct inbox_buffer *b);

#endif
