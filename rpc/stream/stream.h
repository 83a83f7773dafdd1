/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream, as the client or the service has it.
 *
 * Credits: the reader tells how much its program has read in all, and the
 * sender has no more under way than a window beyond that. Totals cannot be
 * counted twice, and tell the sender what was certainly delivered. The last
 * message may exceed the window of bytes, so that any message can be sent.
 *
 * So one CREDIT waits to be sent at a time, and the next one tells all that was
 * read meanwhile.
 *
 * A stream is in its channel's table until both sides have ended it: at the
 * server until CLOSE has come and END was sent (so that what waits to be sent
 * of it is always charged to somebody), at the client until END has come and
 * all messages were read. If the client gives up before (a deadline), it may
 * still get frames of the stream; the server cannot.
 */
#ifndef RPC_STREAM_STREAM_H
#define RPC_STREAM_STREAM_H

#include "rpc/stream/channel.h"

struct quota;
struct ulrpc_stream_service;

enum {
	EVENT_READABLE = 1,
	EVENT_WRITABLE = 2,
	EVENT_ENDED = 4,
};

/* So much may be sent and not read; so much was. */
struct credit {
	uint64_t messages, bytes;
};

struct message {
	struct message *next;
	uint32_t length;
	uint8_t body[];
};

struct ulrpc_stream {
	struct channel *ch;
	struct hash_node by_id; /* channel.streams, if linked */
	struct heap_node due;	/* channel.deadlines, if timed */
	struct list of_events;	/* channel.events */
	struct list of_opening; /* called.opening (caller.c) */
	unsigned int refs; /* its user, the table, of_events, the opening */
	uint32_t id;
	uint8_t events; /* EVENT_ that the user is to be told of */
	bool linked, timed;
	bool held;	  /* by its user */
	bool serving;	  /* it is the service's side */
	bool opening;	  /* the call that opens it is under way */
	bool open;	  /* the other side knows it */
	bool late;	  /* the deadline came while it was being opened */
	bool send_closed; /* this side sends no more messages */
	bool close_sent;  /* the client's last frame */
	bool end_sent;	  /* the service's: it has left channel.out */
	bool closed;	  /* the client has closed it; END is not sent yet */
	bool credit_out;  /* CREDIT is in channel.out */
	bool recv_closed; /* no more messages come */
	bool ending;	  /* END has come: over when all was read */
	bool canceled;	  /* this side has given up: what comes is dropped */
	bool over;	  /* the outcome is known */
	bool unread;	  /* EVENT_READABLE is to come with a message */
	bool unsent;	  /* EVENT_WRITABLE is to come with credit */
	bool watched;	  /* the user has events */
	struct ulrpc_stream_events user;

	uint64_t deadline; /* ns */
	/* this side sends: */
	struct credit window; /* that the other side has granted */
	struct credit sent, delivered;
	uint64_t undelivered;
	/* this side reads: */
	struct credit grant, received, read, told;
	struct message *first, *last, *current;

	/* how it ends, or has ended */
	struct stream_end end;
	enum ulrpc_execution execution;
	char *text; /* NULL: none */

	/* the service's side */
	struct ulrpc_stream_service *service;
	const char *method;	    /* borrowed from service */
	enum ulrpc_flavour flavour; /* of the call that opened it */
	struct quota *quota;
	struct ulrpc_stream_info *info; /* while the handler runs */
};

/* All with the lock of the channel, if not said otherwise. */

/* Returns a stream with one reference, the user's, or NULL. Any thread. */
struct ulrpc_stream *rpc_stream_new(struct channel *ch, uint32_t id,
				    const struct credit *grant,
				    uint64_t deadline);
/* Puts @s in its channel's table. 0 or -ENOMEM. */
int rpc_stream_link(struct ulrpc_stream *s) must_check;
void rpc_stream_unlink(struct ulrpc_stream *s);
/* The caller, or the table, has another reference to the channel. */
void rpc_stream_unref(struct ulrpc_stream *s);
/* The user is to be told, if it wants to know, and waiting threads wake up. */
void rpc_stream_event(struct ulrpc_stream *s, unsigned int event);
/* The outcome is known: unread messages are dropped, and the user is told. */
void rpc_stream_over(struct ulrpc_stream *s, int status,
		     enum ulrpc_cause cause);
/* What comes is dropped from now on, and so is what was not read. */
void rpc_stream_drop(struct ulrpc_stream *s);
/* The client's last frame. */
void rpc_stream_close_frame(struct ulrpc_stream *s);
/* The service's last frame: the client is told how @s has ended. */
void rpc_stream_end_frame(struct ulrpc_stream *s, int status,
			  enum ulrpc_cause cause, const char *text);
/* What was sent before may have found room. */
void rpc_stream_writable(struct ulrpc_stream *s);
/* Nothing more will come: what waits for a message is told. */
void rpc_stream_no_more(struct ulrpc_stream *s);
/* Cancels @s. Any thread. */
void rpc_stream_cancel(struct ulrpc_stream *s);
/* The client's stream is over, as the service has said, if all was read. */
void rpc_stream_settle(struct ulrpc_stream *s);
/* The other side says what its program has read. 0 or -EPROTO. */
int rpc_stream_on_read(struct ulrpc_stream *s, uint64_t messages);
int rpc_stream_on_message(struct ulrpc_stream *s, const struct frame *f);
int rpc_stream_on_credit(struct ulrpc_stream *s, const struct frame *f);
/* A frame of @s has left channel.out. */
void rpc_stream_on_sent(struct ulrpc_stream *s, uint32_t kind);
void rpc_stream_text_set(struct ulrpc_stream *s, const void *text,
			 size_t length);

#endif
