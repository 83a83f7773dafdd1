/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the two sides of streams send each other. All numbers are little-endian.
 *
 * A stream is opened by a call of its method, with a body of
 *
 *	u64 channel, u32 stream, u32 window_messages, u32 window_bytes,
 *	u32 flags (OPEN_*), u64 time left (us; ~0: no deadline), what the user
 *	gave
 *
 * and a reply of u32 window_messages, u32 window_bytes, u32 flavour (with
 * OPENED_LONG perhaps), u64 making. Everything else travels in batches of
 * frames: in the bodies of push calls to the client's server, and in the
 * replies of pull calls. A push is u64 channel, u64 making, and a batch. A pull
 * is u64 channel, u64 making, u64 number of the batch that the client waits
 * for, u32 ms for which the server may keep the call; a reply without a body
 * says that there was nothing to send. The server chooses the making: if it has
 * forgotten the channel and makes it again, it chooses another one.
 *
 *	batch: u64 number, from 0; u64 0; frames
 *	frame: u32 stream; u24 length; u8 kind; as many bytes
 */
#ifndef RPC_STREAM_FRAME_H
#define RPC_STREAM_FRAME_H

#include "base/buf.h"
#include "base/util.h"
#include "ulnet/stream.h"

#define STREAM_PUSH "push"
#define STREAM_PULL "pull"

#define OPEN_HEAD 32u
/* A flag of the opening call: the channel was used before. A server that does
 * not know the channel has forgotten it, and refuses the stream. */
#define OPEN_KNOWN  1u
/* Another one: the client reads END_ANNEX. */
#define OPEN_ANNEX  2u
/* And another one: the client takes messages of more than
 * ULRPC_STREAM_MESSAGE_MAX bytes, as its window allows. */
#define OPEN_LONG   4u
#define OPENED_SIZE 20u
/* A bit of the flavour in the reply, if the client has said OPEN_LONG: so does
 * the service. */
#define OPENED_LONG UINT32_C(0x80000000)
#define PUSH_HEAD   16u
#define PULL_SIZE   28u
#define BATCH_HEAD  16u
#define FRAME_HEAD  8u
#define CREDIT_SIZE 16u
#define CLOSE_SIZE  8u
#define END_SIZE    16u
/* A bit of the cause of END: an annex comes before the text, as it does before
 * a body (rpc/context/annex.h). */
#define END_ANNEX   UINT32_C(0x80000000)
/* bytes of a batch, unless its only frame is longer, and of the longest one */
#define BATCH_MAX   (BATCH_HEAD + FRAME_HEAD + ULRPC_STREAM_MESSAGE_MAX)
#define BATCH_LONG  (BATCH_HEAD + FRAME_HEAD + ULRPC_STREAM_LONG_MAX)
/* Returns the bytes of a batch of a frame with @length. */
static inline uint32_t batch_of_one(uint32_t length)
{
	return BATCH_HEAD + FRAME_HEAD + length;
}
/* How far batches may overtake each other: the receiver keeps so many until
 * their turn comes, and the sender sends no later ones. */
#define BATCHES_AHEAD 8u

enum frame_kind {
	FRAME_MESSAGE = 1,
	/* from the reader: u64 messages and u64 bytes that its program has read
	 * so far */
	FRAME_CREDIT,
	FRAME_HALF, /* from the client: it will send no more messages */
	/* from the client, its last frame: u64 messages that its program has
	 * read. Unless the server has ended the stream, this cancels it */
	FRAME_CLOSE,
	/* from the server, its last frame: u32 negated status, u32 cause, with
	 * END_ANNEX perhaps, u64 messages that its program has read; a text */
	FRAME_END,
	FRAME_KINDS
};

struct frame {
	uint32_t stream;
	uint32_t kind;
	uint32_t length;
	const uint8_t *body;
};

static inline void frame_head(uint8_t *p, uint32_t stream, uint32_t kind,
			      uint32_t length)
{
	store_le32(p, stream);
	store_le32(p + 4, length | kind << 24);
}

/* Reads the frame at @p into *@f. Returns the bytes of the frame; 0: the @left
 * bytes at @p do not begin with a valid frame. */
static inline size_t frame_read(const uint8_t *p, size_t left, struct frame *f)
{
	uint32_t word;

	if (left < FRAME_HEAD)
		return 0;
	word = load_le32(p + 4);
	*f = (struct frame){
		.stream = load_le32(p),
		.kind = word >> 24,
		.length = word & 0xffffff,
		.body = p + FRAME_HEAD,
	};
	if (f->length > left - FRAME_HEAD || !f->kind || f->kind >= FRAME_KINDS)
		return 0;
	return FRAME_HEAD + (size_t)f->length;
}

#endif
