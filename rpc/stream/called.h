/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's side of streams: a channel as the client has it, and the streams
 * of a service at a server, which have one channel after another.
 */
#ifndef RPC_STREAM_CALLED_H
#define RPC_STREAM_CALLED_H

#include "rpc/stream/stream.h"

/* push calls that may be under way at a time */
#define PUSHES 4u

#define FLAVOURS (ULRPC_FLAVOUR_PRIVACY + 1)

struct called;

struct push {
	struct called *called;
	bool busy;
	uint64_t number; /* number of the batch that the call carries */
};

struct pull {
	struct called *called;
	bool busy;
	struct ulrpc_call *call;
};

/* A channel, as the client has it. */
struct called {
	struct channel ch;
	struct ulrpc_streams *st;
	uint32_t last_id; /* id of the stream that was made last */
	/* of ulrpc_stream.of_opening: streams whose opening call is under way
	 */
	struct list opening;
	bool live;     /* the server knows the channel */
	bool closing;  /* ulrpc_streams_close() was called */
	bool retiring; /* streams_retire() was called: ends with its streams */
	unsigned int flavour; /* the highest flavour of the channel's streams */
	/* making of the channel that another server has last made for a stream,
	 * and how many batches it was sent */
	uint64_t stray_making;
	uint64_t nstray;
	/* If the server has a name: clients of its carrier, as in struct
	 * ulrpc_streams, from when it is known which server it is (@bound) */
	struct ulrpc_client *carriers[FLAVOURS];
	bool bound;
	unsigned int npush, npull;
	unsigned int want; /* how many pull calls to have under way */
	/* ms for which the server may keep the next pull call */
	uint32_t hold;
	/* how many pull calls in a row had no batch, and were hardly kept */
	unsigned int hasty;
	struct push push[PUSHES];
	struct pull pull[PULLS_MAX];
};

struct ulrpc_streams {
	/* immutable: */
	struct shard *shard; /* shard of the carriers */
	/* client of the service, which opens streams */
	struct ulrpc_client *client;
	/* Clients of the carrier: one for each flavour from @least on; NULL:
	 * this node cannot have that flavour. All are on one CPT, which may be
	 * another one than that of @client, as a NID may get another owner at
	 * any time. */
	struct ulrpc_client *carriers[FLAVOURS];
	unsigned int least;
	/*
	 * The target is a name, which may stand for several servers. The first
	 * stream of a channel goes to one of them, by @client; then @client
	 * stays there, so that further streams go there, too, and the channel
	 * has carriers of its own, which are opened with @kept. When the
	 * channel has ended, @client may go to another server; a channel
	 * without streams ends if the name has that server no more.
	 */
	bool named;
	unsigned int npins; /* channels because of which @client stays; CPT */
	struct ulrpc_client_conf kept;
	struct ulrpc_retry kept_retry;
	char *kept_server;
	struct ulnet_nid server; /* as in struct channel */
	char service[ULRPC_SERVICE_NAME];

	/* any thread may read it; streams_set_clients() changes it: */
	/* what is granted to a stream that is opened */
	_Atomic uint32_t window_messages, window_bytes;
	/* us: time-out of push calls, and of opening a stream */
	_Atomic uint64_t patience;

	/* one reference of the user, until the streams are closed, and one of
	 * each channel */
	atomic_uint refs;
	struct list of_node;
	/* Streams that the service has got, until they have left the table of
	 * their channel, as all do, whatever ends them. For streams_count(). */
	atomic_uint open;

	/* guards what follows; taken before the lock of a channel */
	pthread_mutex_t lock;
	uint64_t key; /* key of the last channel that was made */
	bool closed;
	/* the channel of new streams; NULL: none was made yet, or the last one
	 * has ended */
	struct called *called;
};

/* The longest patience: a pull call can have more time than this. */
static inline uint64_t patience_limit(uint64_t us)
{
	return MIN(us, ULRPC_NEVER / 2);
}

static inline struct called *called_of(struct channel *ch)
{
	return container_of(ch, struct called, ch);
}

/* ---- channels: called.c ---- */

/* Makes a channel of @st, with one reference. Returns 0 or -errno. */
int called_new(struct ulrpc_streams *st, struct called **called_p) must_check;
/* Is @c useless for a new stream? It is if it has ended; or if it is idle,
 * because the server may have forgotten it. */
bool called_is_old(struct called *c);
/* Does the server know @c? */
bool called_is_live(struct called *c);
/* Queues CLOSE for a stream that this side does not know any more, unless too
 * many wait already. */
void called_close_stray(struct channel *ch, uint32_t id);
/* The function for channel_ops.on_deadline. */
void called_on_deadline(struct ulrpc_stream *s);

/* ---- the streams of a service: caller.c ---- */

/* Called on the CPT when the first stream of @c, whose server has a name, was
 * opened, or another one. Returns 0; -ESTALE: it was opened at another server;
 * or another -errno. */
int called_bind(struct called *c) must_check;
/* Called when @c has ended: undoes called_bind(). A second call has no effect.
 */
void called_unbind(struct called *c);

void streams_put(struct ulrpc_streams *st);
/* Called when nothing is sent any more: closes the clients, and drops the
 * user's reference. A second call has no effect. */
void streams_finish(struct ulrpc_streams *st);

#endif
