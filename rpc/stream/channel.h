/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels: a channel carries all streams between a client and a server, in
 * both directions, by ordinary calls.
 *
 * Because streams are built on calls, they have what calls have: messages are
 * sent again, but executed at most once, over several rails, with flavours. The
 * client sends its messages in push calls. The server sends its messages in the
 * replies of pull calls: the client has a few of these under way, and the
 * server keeps each one until there is something to send, but not for long.
 * Both are calls to one service of the server's node (RPC_STREAM_CARRIER),
 * whose handlers run inline. So kept calls occupy no worker, and do not count
 * in the window, queue or estimates of the service that has the streams. Calls
 * may overtake each other, so batches of frames are numbered, and the receiver
 * puts them in order. If it is not known whether a call was executed, the
 * channel ends, and all its streams with it. The next stream makes a new
 * channel.
 *
 * What is bounded: messages of a stream that its program has not read, by the
 * window that the reader has granted (struct credit); messages that wait to be
 * sent, by the same window, which the sender limits to what it would grant
 * itself; frames of other kinds are few for each stream; early batches, by
 * BATCHES_AHEAD, of batch_max bytes; kept calls, by PULLS_MAX, and so replies
 * that are being fetched, of ULRPC_BODY_MAX bytes. The server bounds how many
 * streams there are (serving.h).
 *
 * Threads: any thread may send and read, so a mutex, wait.lock, guards a
 * channel and its streams. A thread that holds it does not wait, and calls no
 * function of the user, of calls or of requests. Only the CPT makes calls,
 * answers requests and calls callbacks: in channel.work, which is posted when
 * there is something to do, and runs at the end of the turn. So what is sent in
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

/* How a stream or a channel has ended. cause is ULRPC_CAUSE_OK (0) as long as
 * it has not, or if it has ended well. */
struct stream_end {
	int status;
	enum ulrpc_cause cause;
};

/* What client and server do with a channel. Called by the CPT with the lock
 * held, unless a comment says otherwise. */
struct channel_ops {
	/* Handles a frame of a kind that only one side gets. @s: NULL: there is
	 * no such stream. Returns 0; or -errno, with which the channel is
	 * ended. */
	int (*on_frame)(struct channel *ch, struct ulrpc_stream *s,
			const struct frame *f);
	/* Sends what waits in the channel. May drop the lock meanwhile. */
	void (*flush)(struct channel *ch);
	/* Does what is due at @now. Returns when to call this again;
	 * TIME_NEVER: not by time. */
	uint64_t (*tick)(struct channel *ch, uint64_t now);
	/* Called when the deadline of @s has passed. */
	void (*on_deadline)(struct ulrpc_stream *s);
	/* keep() charges a batch of @n bytes that has come early, and returns
	 * false if it may not stay; let_go() takes the charge back. Both NULL:
	 * early batches are not charged. */
	bool (*keep)(struct channel *ch, size_t n);
	void (*let_go)(struct channel *ch, size_t n);
	/* Called when @s has left the channel's table. May be NULL. */
	void (*unlinked)(struct ulrpc_stream *s);
	/* Called when the channel has ended. */
	void (*on_end)(struct channel *ch);
	/* Called when RPC is gone: drops the references that calls under way
	 * have, because they get no callbacks any more. */
	void (*abandon)(struct channel *ch);
	/* Called without the lock, on any thread, when nobody refers to the
	 * channel any more. */
	void (*free)(struct channel *ch);
};

/* Frames that wait to be sent, with CHUNK_FRONT bytes of room in front of them
 * for the beginning of the message. */
struct chunk {
	struct list link;
	uint32_t off, len, cap;
	uint8_t bytes[];
};

#define CHUNK_FRONT (PUSH_HEAD + BATCH_HEAD)

/* A batch that has come before its turn. */
struct early {
	uint8_t *bytes; /* NULL: there is none here */
	size_t length;
};

struct channel {
	/* its lock guards the fields below that are not immutable */
	struct wait wait;

	/* immutable; but a client learns @making, and perhaps @server, with its
	 * first stream: */
	struct shard *shard;
	const struct channel_ops *ops;
	/* number of the channel on the wire, chosen by the client */
	uint64_t key;
	/* second number of the channel on the wire, chosen by the server */
	uint64_t making;
	/* at the client: of the server (caller.c); LNET_NID_ANY: it is not
	 * known yet; at the server */
	struct ulnet_nid server;
	/* random, so that a client cannot choose ids with equal hashes */
	uint64_t seed;

	atomic_uint refs;
	struct streams_node *streams_node;
	/* node in streams_node.channels, guarded by its lock */
	struct list of_node;

	/* no stream can be opened; there are only those that are being opened,
	 * or that have not been read to the end yet */
	bool ended;
	/* how the channel has ended, or is to end soon; and a text about that,
	 * or NULL */
	struct stream_end end;
	char *why;
	/* closed: RPC is being closed, and the timer is not armed any more.
	 * dead: RPC is gone, and nothing may be posted to the CPT any more */
	bool closed, dead;
	/* threads in stream.c that wait for something of this channel */
	unsigned int waiters;

	struct list out;   /* of chunk.link */
	uint64_t next_out; /* number of the next batch that is sent */
	/* number of the next batch in order from the other side */
	uint64_t next_in;
	/* bytes of the longest batch that may come: as the streams allow that
	 * the channel has, or has had */
	uint32_t batch_max;
	struct early early[BATCHES_AHEAD];
	unsigned int nearly; /* how many entries of @early are in use */
	/* CLOSE frames in @out for streams that this side does not know any
	 * more */
	unsigned int strays;

	struct hash streams;   /* of ulrpc_stream.by_id, by channel_hash() */
	struct heap deadlines; /* of ulrpc_stream.due */
	/* of ulrpc_stream.of_events: streams whose users are to be told
	 * something */
	struct list events;

	struct ulnet_work work;
	bool given; /* is @work posted? */
	struct ulnet_timer timer;
};

/* Initializes @ch. Returns 0 or -errno. The first reference is the channel's
 * own: it is dropped when the channel ends. */
int channel_init(struct channel *ch, struct shard *s,
		 const struct channel_ops *ops) must_check;

static inline struct channel *channel_get(struct channel *ch)
{
	atomic_fetch_add_explicit(&ch->refs, 1, memory_order_relaxed);
	return ch;
}

/* Drops a reference. Any thread. A caller that holds the lock must know that it
 * is not the last reference. */
void channel_put(struct channel *ch);
/* Frees what @ch has. For channel_ops.free. */
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

/* Posts channel.work, because there is something to do on the CPT. Any thread.
 */
void channel_kick(struct channel *ch);
/* Queues a frame to be sent. Returns 0 or -ENOMEM. Any thread. */
int channel_frame(struct channel *ch, uint32_t stream, enum frame_kind kind,
		  const void *body, size_t length) must_check;
/* Does what channel_frame() does. The body of the frame is the @size bytes at
 * @head, and then the @length bytes at @body. */
int channel_frame_two(struct channel *ch, uint32_t stream, enum frame_kind kind,
		      const void *head, size_t size, const void *body,
		      size_t length) must_check;
/* Queues a frame that must be sent: without memory for it, the channel ends
 * soon. Any thread. */
void channel_frame_sure(struct channel *ch, uint32_t stream,
			enum frame_kind kind, const void *body, size_t length);
/* Returns the frames to be sent next, with CHUNK_FRONT bytes of room in front
 * of them, and sets *@length_p to their bytes: at most @room, unless the first
 * frame alone is longer. NULL: there are none. They stay where they are until
 * channel_sent(). Called by the CPT. */
uint8_t *channel_next(struct channel *ch, size_t room, size_t *length_p);
void channel_sent(struct channel *ch, size_t length);
/* Called by the CPT when a batch has come. Returns 0; or -errno, with which the
 * channel is to be ended; -EBUSY: the batch is early, and channel_ops.keep does
 * not let it stay. */
int channel_receive(struct channel *ch, const uint8_t *bytes, size_t length);
/* Makes the CPT end the channel. Any thread. */
void channel_end_soon(struct channel *ch, enum ulrpc_cause cause);
void channel_cancel_streams(struct channel *ch);
/* Ends @s with its channel, which has ended. */
void channel_cut(struct ulrpc_stream *s);
/* Notes a text about how the channel is about to end; "": none. */
void channel_say(struct channel *ch, const char *why);
/* Ends the channel and its streams. A client's stream that the service has
 * already ended stays until all that has come was read, and one that is being
 * opened until the call that opens it has ended. Called by the CPT. */
void channel_end(struct channel *ch, int status, enum ulrpc_cause cause);
/* Called by the CPT when RPC ends: no stream stays. */
void channel_close(struct channel *ch);
static inline uint64_t channel_hash(const struct channel *ch, uint32_t id)
{
	return hash_u64(id, ch->seed);
}

struct ulrpc_stream *channel_find(const struct channel *ch, uint32_t id);

#endif
