/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels: what carries all streams of a client and a server, in both
 * directions, by ordinary calls.
 *
 * Streams are built above calls, so that they have what calls have: sending
 * again, at most once, rails, flavours. A client's messages go in push calls.
 * What the server sends is in the replies of pull calls, of which the client
 * has a few under way; the server keeps such a call until there is something to
 * send, but not for long. Both are calls to one service of the server's node
 * (RPC_STREAM_CARRIER), whose handlers run inline: kept calls take neither a
 * worker nor anything of the window, the queue or the estimates of the service
 * that has the streams. Calls may overtake each other, so batches of frames are
 * numbered, and the receiver puts them in order. Each call is executed or not,
 * once; if it is not known which, the channel ends, and all its streams with
 * it. The next stream makes a new channel.
 *
 * What is bounded: a stream's messages that its program has not read, by the
 * window that the reader has granted (struct credit); what waits to be sent,
 * likewise, as a window never covers more than its sender would hold itself,
 * and frames of other kinds are few for each stream; early batches, by
 * BATCHES_AHEAD; calls that are kept, by PULLS_MAX. How many streams there are
 * is bounded at the server (serve.c).
 *
 * Threads: any thread may send and read, so a mutex guards a channel and its
 * streams: wait.lock. Nobody waits while holding it, nor calls a function of
 * the user, of calls or of requests. Calls are made, requests answered and
 * callbacks called by the CPT alone, in channel.work, which is given when
 * something is to be done, and runs at the end of the turn: so what is sent in
 * a turn travels together.
 */
#ifndef RPC_STREAM_CHANNEL_H
#define RPC_STREAM_CHANNEL_H

#include "base/hash.h"
#include "base/heap.h"
#include "base/list.h"
#include "rpc/rpc.h"
#include "rpc/stream/frame.h"

#define PULLS_MAX 4

struct channel;
struct streams_node;

/* How a stream, or a channel, ended. */
struct stream_end {
	int status;
	enum ulrpc_cause cause;
};

/* Both sides of channels. Called with the lock held, by the CPT. */
struct channel_ops {
	/* A frame that only one side gets. @s NULL: there is no such stream.
	 * Returns 0, or -errno, with which the channel ends. */
	int (*on_frame)(struct channel *ch, struct ulrpc_stream *s,
			const struct frame *f);
	/* Sends what waits in the channel. May drop the lock meanwhile. */
	void (*flush)(struct channel *ch);
	/* Does what is due at @now; returns when to be called again, or
	 * TIME_NEVER. */
	uint64_t (*tick)(struct channel *ch, uint64_t now);
	/* The deadline of @s has passed. */
	void (*on_deadline)(struct ulrpc_stream *s);
	/* Charges a batch of @n bytes that has come early, and takes that back.
	 * Both NULL: it is not counted. */
	bool (*keep)(struct channel *ch, size_t n);
	void (*let_go)(struct channel *ch, size_t n);
	/* @s has left the table. May be NULL. */
	void (*unlinked)(struct ulrpc_stream *s);
	/* The channel has ended. */
	void (*on_end)(struct channel *ch);
	/* RPC is gone: whatever calls refer to is let go, as they get no
	 * callbacks any more. */
	void (*abandon)(struct channel *ch);
	/* Called without the lock, on any thread, when nobody refers to the
	 * channel any more. */
	void (*free)(struct channel *ch);
};

/* Frames that wait to be sent. In front of them is room for what the message
 * begins with. */
struct chunk {
	struct list link;
	uint32_t off, len, cap;
	uint8_t bytes[];
};

#define CHUNK_FRONT (PUSH_HEAD + BATCH_HEAD)

/* A batch that has come before its turn. */
struct early {
	uint8_t *bytes; /* NULL: none */
	size_t length;
};

struct channel {
	struct wait wait; /* its lock guards what follows, if not immutable */

	/* immutable */
	struct shard *shard;
	const struct channel_ops *ops;
	uint64_t key; /* names it on the wire */
	uint64_t making; /* names it, too: of the server's choice */
	/* random, so that a client cannot choose ids with equal hashes */
	uint64_t seed;

	atomic_uint refs;
	struct streams_node *streams_node;
	struct list of_node; /* streams_node.channels; with that lock */

	bool ended;	       /* no streams, and none can be opened */
	struct stream_end end; /* if it has ended */
	/* RPC is being closed: no timers any more. RPC is gone: nothing may be
	 * given to the CPT any more. */
	bool closed, dead;
	unsigned int waiters; /* threads in stream.c that wait for it */

	struct list out;   /* chunk.link */
	uint64_t next_out; /* number of the next batch */
	uint64_t next_in;  /* number of the batch that is expected */
	struct early early[BATCHES_AHEAD];
	unsigned int nearly; /* of these */
	/* CLOSE frames in out, for streams that this side has given up */
	unsigned int strays;

	struct hash streams;   /* ulrpc_stream.by_id, by channel_hash() */
	struct heap deadlines; /* ulrpc_stream.due */
	struct list events;    /* ulrpc_stream.of_events */

	struct ulnet_work work;
	bool given; /* work */
	struct ulnet_timer timer;
};

/* Returns 0 or -errno. The first reference is the channel's own, until it
 * ends. */
int channel_init(struct channel *ch, struct shard *s,
		 const struct channel_ops *ops) must_check;

static inline struct channel *channel_get(struct channel *ch)
{
	atomic_fetch_add_explicit(&ch->refs, 1, memory_order_relaxed);
	return ch;
}

/* Any thread; not with the lock held, unless it is not the last reference. */
void channel_put(struct channel *ch);
/* For channel_ops.free. */
void channel_fini(struct channel *ch);

static inline void channel_lock(struct channel *ch)
{
	pthread_mutex_lock(&ch->wait.lock);
}

static inline void channel_unlock(struct channel *ch)
{
	pthread_mutex_unlock(&ch->wait.lock);
}

/* All functions below are called with the lock held. */

/* There is something to be done on the CPT. Any thread. */
void channel_kick(struct channel *ch);
/* Queues a frame. 0 or -ENOMEM. Any thread. */
int channel_frame(struct channel *ch, uint32_t stream, enum frame_kind kind,
		  const void *body, size_t length) must_check;
/* As channel_frame(), with @head, of @size bytes, before the body. */
int channel_frame_two(struct channel *ch, uint32_t stream, enum frame_kind kind,
		      const void *head, size_t size, const void *body,
		      size_t length) must_check;
/* Without memory for a frame that must come, the channel ends. Any thread. */
void channel_frame_sure(struct channel *ch, uint32_t stream,
			enum frame_kind kind, const void *body, size_t length);
/* Returns frames to be sent, with CHUNK_FRONT bytes in front, and how many
 * bytes they are: @room at most, unless the first frame is longer. NULL: there
 * are none. They stay until channel_sent(). CPT. */
uint8_t *channel_next(struct channel *ch, size_t room, size_t *length_p);
void channel_sent(struct channel *ch, size_t length);
/* A batch has come. Returns 0, or -errno, with which the channel is to end;
 * -EBUSY: it is early, and channel_ops.keep does not let it stay. CPT. */
int channel_receive(struct channel *ch, const uint8_t *bytes, size_t length);
/* Lets the CPT end the channel. Any thread. */
void channel_end_soon(struct channel *ch, enum ulrpc_cause cause);
void channel_cancel_streams(struct channel *ch);
/* Ends the channel and its streams. Those that the service has ended stay,
 * until all that has come was read. CPT. */
void channel_end(struct channel *ch, int status, enum ulrpc_cause cause);
/* RPC ends: no stream stays. CPT. */
void channel_close(struct channel *ch);
static inline uint64_t channel_hash(const struct channel *ch, uint32_t id)
{
	return hash_u64(id, ch->seed);
}

struct ulrpc_stream *channel_find(const struct channel *ch, uint32_t id);

#endif
