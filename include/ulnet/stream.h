/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote procedure calls over LNet: streams. Conventions as in ulnet/rpc.h.
 * Manual: ulrpc_streams(7), ulrpc_stream_open(3), ulrpc_stream_send(3),
 * ulrpc_stream_serve(3).
 *
 * A stream is opened by a client, for a method of a service. Then both sides
 * may send messages, which the other side reads in this order, each once. Any
 * thread may call any function; but only one thread at a time may read from a
 * stream. Callbacks run on the stream's CPT, in turns, and must not block.
 */
#ifndef ULNET_STREAM_H
#define ULNET_STREAM_H

#include "ulnet/context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ulrpc_stream;
struct ulrpc_streams;	     /* a client's streams of a service at a target */
struct ulrpc_stream_service; /* a service with methods that stream */

/* Bytes of a message that every stream takes, and of the longest one, which a
 * stream takes if the windows of both sides have so many bytes:
 * ulrpc_stream_message_max(). */
#define ULRPC_STREAM_MESSAGE_MAX UINT32_C(65536)
#define ULRPC_STREAM_LONG_MAX	 (ULRPC_BODY_MAX - 64)

/* ---- what became of a stream: ulrpc_stream_send(3) ---- */

/* What this side knows of a stream that is over. */
struct ulrpc_stream_outcome {
	/* 0 or a negative errno; with ULRPC_CAUSE_HANDLER the service's own */
	int status;
	enum ulrpc_cause cause;
	/* Has the service's handler got the stream? */
	enum ulrpc_execution execution;
	/* For the client: the NID of the server, as the user or the target
	 * names it. LNET_NID_ANY: it is a name, and no server of it has got a
	 * stream yet; for the service. */
	struct ulnet_nid server;
	uint64_t sent; /* messages that this side has sent */
	/* Of these, the program at the other side has read so many, and never
	 * reads so many. The rest is unknown; if the service has ended the
	 * stream, its client knows of all messages. */
	uint64_t delivered, undelivered;
	uint64_t received; /* messages that this side has read */
	/* the service's explanation, as in struct ulrpc_outcome; "": none */
	char text[ULRPC_TEXT_MAX];
};

/* Called on the stream's CPT. Each may be NULL. */
struct ulrpc_stream_events {
	/* ulrpc_stream_next() has something to tell: called at first, and then
	 * once after each -EAGAIN of it */
	void (*readable)(void *arg, struct ulrpc_stream *stream);
	/* ulrpc_stream_send() may be tried again after -EAGAIN */
	void (*writable)(void *arg, struct ulrpc_stream *stream);
	/* The stream is over: called exactly once, as the last one, also after
	 * ulrpc_stream_put(); but not after a crash in the simulator */
	void (*ended)(void *arg, struct ulrpc_stream *stream,
		      const struct ulrpc_stream_outcome *outcome);
	void *arg;
};

/* ---- clients: ulrpc_stream_open(3) ---- */

struct ulrpc_streams_conf {
	/* the service, at which target, and how calls are protected; its
	 * settings of calls in flight count for opening streams. If the target
	 * is a name of several servers, streams go to one of them, and stay
	 * there. */
	struct ulrpc_client_conf client;
	/* What a stream of this side may hold unread: messages, and bytes,
	 * which the last of the messages may exceed. Then the other side waits.
	 * 0 = 64, and 65536 */
	uint32_t window_messages, window_bytes;
	/* us: streams end when the server was out of reach for that long; 0 =
	 * 60 s */
	uint64_t patience;
};

ULNET_EXPORT void ulrpc_streams_conf_init(struct ulrpc_streams_conf *conf);
/* Does not connect yet: the first stream does that. Errors are those of
 * ulrpc_client_open(3). */
ULNET_EXPORT int ulrpc_streams_open(struct ulrpc *rpc,
				    const struct ulrpc_streams_conf *conf,
				    struct ulrpc_streams **streams_p);
/* Closes @streams. Streams that are not over end as canceled; this function
 * does not wait for that. NULL is fine. */
ULNET_EXPORT void ulrpc_streams_close(struct ulrpc_streams *streams);
/* Returns the CPT on which callbacks run. */
ULNET_EXPORT unsigned int ulrpc_streams_cpt(
	const struct ulrpc_streams *streams);

struct ulrpc_stream_conf {
	/* us from now, for the whole stream; ULRPC_NEVER: none. 0 is refused */
	uint64_t deadline;
	struct ulrpc_stream_events events;
	/* What goes with the opening; until the stream is open, or over, a call
	 * has it. If the opening fails, it has what came with that. If it is
	 * under a request, or under another stream, so is the whole stream.
	 * NULL: nothing */
	struct ulrpc_context *context;
};

/*
 * Opens a stream of the method with this name. @body, of @length bytes, at most
 * ULRPC_STREAM_MESSAGE_MAX, is copied; the handler gets it at once. *@stream_p
 * is to be given back with ulrpc_stream_put(). Messages can be sent when the
 * server has answered: until then ulrpc_stream_send() returns -EAGAIN. -EINVAL:
 * there is no deadline; -EMSGSIZE; -ENOMEM; -ESHUTDOWN; -ECANCELED: what the
 * context is under is canceled.
 */
ULNET_EXPORT int ulrpc_stream_open(struct ulrpc_streams *streams,
				   const char *method, const void *body,
				   size_t length,
				   const struct ulrpc_stream_conf *conf,
				   struct ulrpc_stream **stream_p);

/* ---- services: ulrpc_stream_serve(3) ---- */

/*
 * Has got the stream @stream, which it must give back with ulrpc_stream_put(),
 * at any time, on any thread. @body is what the client has opened it with, and
 * valid until the handler returns. A handler on a worker may wait; the worker
 * serves nobody else meanwhile.
 */
typedef void (*ulrpc_stream_fn)(void *arg, struct ulrpc_stream *stream,
				const void *body, size_t length);

struct ulrpc_stream_method {
	const char *name;
	ulrpc_stream_fn handler;
	void *arg;
	enum ulrpc_run run;
	enum ulrpc_flavour flavour; /* as in struct ulrpc_method_conf */
};

struct ulrpc_stream_service_conf {
	/* of the service, which may have methods of the usual kind, too; the
	 * two kinds have one name space. It is not durable. */
	struct ulrpc_service_conf service;
	const struct ulrpc_stream_method *methods;
	unsigned int nmethods;
	/* as in struct ulrpc_streams_conf */
	uint32_t window_messages, window_bytes;
	/* streams that are open at a time. A host gets no more as soon as it
	 * has more than what is free. Further ones are refused as overloaded.
	 * 0 = 65536 */
	uint32_t streams_max;
};

ULNET_EXPORT void ulrpc_stream_service_conf_init(
	struct ulrpc_stream_service_conf *conf);
/* Starts a service as ulrpc_service_start(3), whose errors it returns. The
 * first one on a node takes a second portal, for all messages of streams. */
ULNET_EXPORT int ulrpc_stream_serve(
	struct ulrpc *rpc, const struct ulrpc_stream_service_conf *conf,
	struct ulrpc_stream_service **service_p);
/* Ends all streams of the service, with ULRPC_CAUSE_SHUTDOWN, then ends the
 * service as ulrpc_service_stop(3), whose results it returns. After that no
 * callback of its streams runs any more; they are still to be given back. */
ULNET_EXPORT int ulrpc_stream_service_stop(struct ulrpc_stream_service *service,
					   uint64_t timeout);

struct ulrpc_stream_info {
	struct ulnet_id client; /* the process that has opened it */
	uint64_t time_left;	/* us; ULRPC_NEVER: there is no deadline */
	struct ulrpc_peer peer; /* who has opened it */
};

/* Describes a stream of a service, for its handler. -EINVAL: the handler has
 * returned, or a client has opened the stream. */
ULNET_EXPORT int ulrpc_stream_info(const struct ulrpc_stream *stream,
				   struct ulrpc_stream_info *info);
/* Adds a pair to what goes with the end of a stream of a service; both are
 * copied. Errors are those of ulrpc_context_add(), but for -EBUSY; -EINVAL: a
 * client has opened the stream; -EPIPE: it has ended. */
ULNET_EXPORT int ulrpc_stream_add(struct ulrpc_stream *stream, const char *name,
				  const void *value, size_t length);
/* Adds the details of the failure with which a stream of a service is going to
 * end; what is given is copied. Errors are those of ulrpc_stream_add();
 * -EALREADY: there are details already. */
ULNET_EXPORT int ulrpc_stream_add_details(struct ulrpc_stream *stream,
					  const struct ulrpc_details *details);
/*
 * As ulrpc_context_under(), for what is made for @stream, which a service has:
 * calls and streams. They are canceled when it ends in any other way than by
 * ulrpc_stream_end(); after that one nothing cancels them any more. -EINVAL: a
 * client has opened @stream; -EPIPE: ulrpc_stream_end() was called.
 */
ULNET_EXPORT int ulrpc_context_under_stream(struct ulrpc_context *context,
					    struct ulrpc_stream *stream);
/* From now on @events, which are copied, are told of what happens to @stream,
 * and of what has happened before. Once for each stream of a service. */
ULNET_EXPORT void ulrpc_stream_watch(struct ulrpc_stream *stream,
				     const struct ulrpc_stream_events *events);
/*
 * Ends a stream of a service, after the messages that were sent before: 0 or a
 * negative errno, and a text, cut off if it is too long, or NULL. What the
 * client has sent and nobody has read is dropped. Without effect if it has
 * ended.
 */
ULNET_EXPORT void ulrpc_stream_end(struct ulrpc_stream *stream, int status,
				   const char *text);
/* As ulrpc_stream_end(), with ulrpc_status_errno(@status). */
ULNET_EXPORT void ulrpc_stream_end_status(struct ulrpc_stream *stream,
					  enum ulrpc_status status,
					  const char *text);

/* ---- both sides: ulrpc_stream_send(3) ---- */

/* Sends a message, which is copied. -EAGAIN: the other side has as much unread
 * as it can hold, or the stream is not open yet; -EPIPE: it is over, or this
 * side has ended its messages; -EMSGSIZE: @length is more than
 * ulrpc_stream_message_max(); -ENOMEM. Never waits. */
ULNET_EXPORT int ulrpc_stream_send(struct ulrpc_stream *stream,
				   const void *body, size_t length);
/* As ulrpc_stream_send(), and waits while that returns -EAGAIN. Waits, as
 * *_wait. */
ULNET_EXPORT int ulrpc_stream_send_wait(struct ulrpc_stream *stream,
					const void *body, size_t length);
/* Returns the bytes of the longest message that can be sent:
 * ULRPC_STREAM_MESSAGE_MAX, or the smaller one of both sides' window_bytes if
 * that is more, up to ULRPC_STREAM_LONG_MAX. Until the stream is open, only the
 * own window is known. A side of an earlier release takes no more than
 * ULRPC_STREAM_MESSAGE_MAX, and so does a stream whose client's node takes no
 * replies as long as its window (ulrpc_conf.reply_bytes_max). */
ULNET_EXPORT uint32_t ulrpc_stream_message_max(struct ulrpc_stream *stream);
/* A client says that it sends no more messages. */
ULNET_EXPORT int ulrpc_stream_close_send(struct ulrpc_stream *stream);
/*
 * Returns 1: *@body_p is the next message, of *@length_p bytes, valid until the
 * next call for this stream, or ulrpc_stream_put(); 0: no more messages will
 * come; -EAGAIN: none has come yet.
 */
ULNET_EXPORT int ulrpc_stream_next(struct ulrpc_stream *stream,
				   const void **body_p, size_t *length_p);
/* As ulrpc_stream_next(), and waits while that returns -EAGAIN. Waits, as
 * *_wait. */
ULNET_EXPORT int ulrpc_stream_next_wait(struct ulrpc_stream *stream,
					const void **body_p, size_t *length_p);
/* Ends @stream soon, as canceled; messages that were not read are dropped.
 * Without effect if it is over. For a service this is
 * ulrpc_stream_end(@stream, -ECANCELED, NULL). */
ULNET_EXPORT void ulrpc_stream_cancel(struct ulrpc_stream *stream);
/* Sets *@outcome. -EAGAIN: the stream is not over. A client's stream is over
 * when the service has ended it and all messages have been read. */
ULNET_EXPORT int ulrpc_stream_outcome(struct ulrpc_stream *stream,
				      struct ulrpc_stream_outcome *outcome);
/*
 * Pair @index of what has come, or the first one with @name: for the service
 * with the opening; for the client with the end, when the stream is over. Valid
 * until ulrpc_stream_put(). -ENOENT; -EAGAIN: a client's stream is not over.
 */
ULNET_EXPORT int ulrpc_stream_metadata(struct ulrpc_stream *stream,
				       unsigned int index,
				       struct ulrpc_metadata *pair);
ULNET_EXPORT int ulrpc_stream_find(struct ulrpc_stream *stream,
				   const char *name,
				   struct ulrpc_metadata *pair);
/* The details with which the service has failed the stream, for its client,
 * when it is over; valid until ulrpc_stream_put(). -ENOENT; -EAGAIN: it is not
 * over; -EINVAL: @stream is a service's. */
ULNET_EXPORT int ulrpc_stream_details(struct ulrpc_stream *stream,
				      struct ulrpc_details *details);
/* Returns the status of a stream that is over, as ulrpc_status_of() has it. */
ULNET_EXPORT enum ulrpc_status ulrpc_stream_status_of(
	const struct ulrpc_stream_outcome *outcome);
/* Waits until the stream is over. Waits, as *_wait. */
ULNET_EXPORT int ulrpc_stream_outcome_wait(
	struct ulrpc_stream *stream, struct ulrpc_stream_outcome *outcome);
/* Gives @stream back; if it is not over, it is canceled. May be called even
 * after RPC was closed. NULL is fine. */
ULNET_EXPORT void ulrpc_stream_put(struct ulrpc_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
