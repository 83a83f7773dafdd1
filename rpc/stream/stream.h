/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream, as the client or the service has it.
 *
 * Credits: the reader tells how much its program has read in all, and the
 * sender has no more than a window under way beyond that. A total cannot be
 * counted twice, and it tells the sender what was certainly delivered. Only one
 * CREDIT frame waits to be sent at a time: the next one tells everything that
 * was read meanwhile. The last message may exceed the window of bytes, so that
 * any message can be sent. But one of more than ULRPC_STREAM_MESSAGE_MAX bytes
 * is no longer than the window.
 *
 * A stream is in its channel's table until both sides have ended it. At the
 * server that is when CLOSE has come and END was sent, so that what waits to be
 * sent is always charged to somebody; at the client, when END has come and all
 * messages were read. If the client gives up before that, for example at a
 * deadline, frames of the stream may still come to it. That cannot happen at
 * the server.
 */
#ifndef RPC_STREAM_STREAM_H
#define RPC_STREAM_STREAM_H

#include "rpc/context/annex.h"
#include "rpc/stream/channel.h"

struct quota;
struct scope;
struct stream_under;
struct ulrpc_stream_service;

enum {
	EVENT_READABLE = 1,
	EVENT_WRITABLE = 2,
	EVENT_ENDED = 4,
	/* not for the user: what was made for the stream is to be canceled */
	EVENT_GIVEN_UP = 8,
};

/* Numbers of messages and of bytes: a window, or a total of what was sent or
 * read. */
struct credit {
	uint64_t messages, bytes;
};

/* Messages of a stream that have come: each is a u64 length and the body, at
 * multiples of 8. A block that is made while no message waits has room for one
 * only; so what a slow stream holds takes no more than it has to. */
struct messages {
	struct messages *next;
	/* bytes: in use; from where on they were not read yet; at most */
	uint32_t len, at, cap;
	_Alignas(8) uint8_t bytes[];
};

struct ulrpc_stream {
	struct channel *ch;
	struct hash_node by_id; /* node in channel.streams, if @linked */
	struct heap_node due;	/* node in channel.deadlines, if @timed */
	struct list of_events;	/* node in channel.events */
	struct list of_opening; /* node in called.opening (caller.c) */
	/* references of the user, the table, of_events, and the call that opens
	 * the stream */
	unsigned int refs;
	uint32_t id;
	uint8_t events; /* EVENT_* bits of which the user is to be told */
	bool linked, timed;
	bool held;    /* the user has a reference */
	bool serving; /* this is the service's side */
	bool opening; /* the call that opens the stream is under way */
	bool known;   /* that call says that the channel was used before */
	bool open;    /* the other side knows the stream */
	/* the deadline has passed while the stream was being opened */
	bool late;
	bool send_closed; /* this side will send no more messages */
	bool close_sent;  /* at the client: CLOSE, its last frame, is queued */
	bool end_sent;	  /* at the service: END, its last frame, was sent */
	bool closed;	  /* at the service: the client has sent CLOSE */
	bool credit_out;  /* a CREDIT frame is in channel.out */
	bool recv_closed; /* no more messages will come */
	/* at the client: END has come. The stream is over when all was read */
	bool ending;
	/* this side has given up: messages that come are dropped */
	bool canceled;
	bool over;    /* the outcome is known */
	bool cut;     /* it was over with its channel */
	bool counted; /* at the client: in ulrpc_streams.open */
	bool unread;  /* the next message causes EVENT_READABLE */
	bool unsent;  /* the next credit causes EVENT_WRITABLE */
	bool watched; /* the user has set callbacks: @user */
	/* at the service: it has ended, by ulrpc_stream_end(), or otherwise */
	bool answered, given_up;
	struct ulrpc_stream_events user;

	uint64_t deadline; /* in ns; TIME_NEVER: none */
	/* what this side sends. window: how much the other side lets be under
	 * way; sent, delivered: totals */
	struct credit window;
	struct credit sent, delivered;
	uint64_t undelivered;
	/* what this side reads. grant: its window; received, read: totals;
	 * told: what of @read the last CREDIT has told */
	struct credit grant, received, read, told;
	struct messages *first, *last;
	/* the first block, if its message that was read last is the user's */
	struct messages *current;

	/* how the stream ends, or has ended */
	struct stream_end end;
	enum ulrpc_execution execution;
	char *text; /* text of the outcome; NULL: none */
	/* metadata that have come: at the service, with the opening; at the
	 * client, with END */
	struct wire_view came;
	uint8_t *came_bytes;
	bool annexes; /* at the service: the client reads END_ANNEX */
	/* the other side takes messages of more than ULRPC_STREAM_MESSAGE_MAX
	 * bytes */
	bool longs;
	/* bytes of the longest message that may come, and that may be sent */
	uint32_t longest_in, longest_out;
	/* at the service: what goes with END; NULL: nothing */
	struct annex *adds;
	/* What interceptors know of the stream, of which they hear when it is
	 * over: at the client, at the service; NULL: there are none */
	struct interception *call_seen;
	struct request_seen *request_seen;
	uint64_t began; /* ns: with interceptors, when it was opened */

	/* at the client: the server that has, or may have, got the stream, if
	 * it is not that of the channel; NULL: it is */
	struct ulnet_nid *elsewhere;
	/* at the client: in the scope of what it is opened for; NULL: for
	 * nothing (under.h) */
	struct stream_under *under;

	/* for the service's side: */
	struct ulrpc_stream_service *service;
	const char *method; /* borrowed from @service */
	/* flavour of the call that has opened the stream */
	enum ulrpc_flavour flavour;
	struct quota *quota;
	/* what ulrpc_stream_info() tells; NULL: the handler does not run */
	struct ulrpc_stream_info *info;
	/* of what its handler makes for it, with the trace that the opening
	 * had; NULL: nothing was made yet, and there was none */
	struct scope *scope;
};

/* These functions are called with the channel's lock held, unless a comment
 * says otherwise. */

/* Makes a stream with one reference, the user's. Returns NULL if there is no
 * memory. Any thread; the lock need not be held. */
struct ulrpc_stream *rpc_stream_new(struct channel *ch, uint32_t id,
				    const struct credit *grant,
				    uint64_t deadline);
/* Called when both sides know the stream. @window: that of the other side.
 * @longs: it takes messages of more than ULRPC_STREAM_MESSAGE_MAX bytes. */
void rpc_stream_open(struct ulrpc_stream *s, const struct credit *window,
		     bool longs);
/* Puts @s into its channel's table. Returns 0 or -ENOMEM. */
int rpc_stream_link(struct ulrpc_stream *s) must_check;
void rpc_stream_unlink(struct ulrpc_stream *s);
/* Drops a reference to @s. The caller, or the table, has a reference to the
 * channel, too. */
void rpc_stream_unref(struct ulrpc_stream *s);
/* Tells the user of @event, if it wants to know, and wakes threads that wait
 * for something of @s. */
void rpc_stream_event(struct ulrpc_stream *s, unsigned int event);
/* Called when the outcome is known: drops unread messages, and tells the user.
 */
void rpc_stream_over(struct ulrpc_stream *s, int status,
		     enum ulrpc_cause cause);
/* Tells the interceptors of @s, which is over. The lock is not held. CPT. */
void rpc_stream_seen_over(struct ulrpc_stream *s);
/* At the client: takes the metadata off *@rest, which follows the numbers of
 * END. Without memory the stream has none. False: they cannot be read. */
bool rpc_stream_end_annex(struct ulrpc_stream *s, struct wire_view *rest);
/* Drops messages that were not read, and those that come from now on. */
void rpc_stream_drop(struct ulrpc_stream *s);
/* Queues CLOSE, the client's last frame. */
void rpc_stream_close_frame(struct ulrpc_stream *s);
/* Queues END, the service's last frame, which tells the client how @s has
 * ended. */
void rpc_stream_end_frame(struct ulrpc_stream *s, int status,
			  enum ulrpc_cause cause, const char *text);
/* Called when there may be room for messages again: tells the user. */
void rpc_stream_writable(struct ulrpc_stream *s);
/* Called when no more messages will come: tells whoever waits for one. */
void rpc_stream_no_more(struct ulrpc_stream *s);
/* Cancels @s. */
void rpc_stream_cancel(struct ulrpc_stream *s);
/* At the client: ends @s as the service has said, if END has come and all
 * messages were read. */
void rpc_stream_settle(struct ulrpc_stream *s);
/* Called when the other side has told that its program has read @messages in
 * all. Returns 0 or -EPROTO. */
int rpc_stream_on_read(struct ulrpc_stream *s, uint64_t messages);
int rpc_stream_on_message(struct ulrpc_stream *s, const struct frame *f);
int rpc_stream_on_credit(struct ulrpc_stream *s, const struct frame *f);
/* Called when a frame of @s has left channel.out. */
void rpc_stream_on_sent(struct ulrpc_stream *s, uint32_t kind);
void rpc_stream_text_set(struct ulrpc_stream *s, const void *text,
			 size_t length);

#endif
