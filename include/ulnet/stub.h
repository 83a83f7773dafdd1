/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote procedure calls over LNet with protobuf-c's messages: how to call, and
 * how to run, the services that protoc-c generates from a "service" of a
 * .proto. Conventions as in ulnet/rpc.h. Manual: ulrpc_tutorial(7),
 * ulrpc_stub_new(3), ulrpc_call_message(3), ulrpc_replicas_call_message(3),
 * ulrpc_set_message(3), ulrpc_bulk_field(3), ulrpc_serve(3),
 * ulrpc_stream_message(3), ulrpc_serve_streams(3), ulrpc_about_start(3),
 * protoc-gen-ulrpc(1).
 */
#ifndef ULNET_STUB_H
#define ULNET_STUB_H

#include "ulnet/about.pb-c.h"
#include "ulnet/context.h"
#include "ulnet/replicas.h"
#include "ulnet/rpc.pb-c.h"
#include "ulnet/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- methods: ulrpc_stub_new(3) ---- */

/* What of a method is a stream of messages, as its "stream" in the .proto says.
 */
enum ulrpc_streaming {
	ULRPC_STREAMING_NONE,	  /* rpc M(A) returns (B): it is called */
	ULRPC_STREAMING_REQUESTS, /* (stream A) returns (B) */
	ULRPC_STREAMING_REPLIES,  /* (A) returns (stream B) */
	ULRPC_STREAMING_BOTH,	  /* (stream A) returns (stream B) */
};

/* A line of a table of options, which protoc-gen-ulrpc or the programmer
 * writes. The last line has method NULL. A method without a line has the
 * defaults. */
struct ulrpc_method_options {
	const char *method; /* name in the .proto */
	enum ulrpc_semantics semantics;
	enum ulrpc_priority priority;
	enum ulrpc_run run;
	uint32_t reply_max; /* bytes of the longest reply, packed; 0 = 4096 */
	/* A method that streams cannot be called, and has no semantics,
	 * priority and reply_max. */
	enum ulrpc_streaming streaming;
};

/* ---- clients: ulrpc_stub_new(3) ---- */

/*
 * Makes a stub: the argument "service" of the functions that protoc-c
 * generates, which then call @client. @client is borrowed until
 * ulrpc_stub_free(), @options (may be NULL) until return. @deadline: us for
 * each call, not 0; or ULRPC_NEVER. -EINVAL; -ENOENT: a line of @options names
 * no method of this service; with both the log says what is refused. -ENOMEM.
 */
ULNET_EXPORT int ulrpc_stub_new(struct ulrpc_client *client,
				const ProtobufCServiceDescriptor *descriptor,
				const struct ulrpc_method_options *options,
				uint64_t deadline, ProtobufCService **stub_p);
/* As ulrpc_stub_new(), for calls that go to one of several servers, as
 * ulrpc_replicas_call() makes them. Those with a key, and those that may be
 * canceled, are made by ulrpc_replicas_call_message(). outcome->target says
 * which server it was. */
ULNET_EXPORT int ulrpc_replicas_stub_new(
	struct ulrpc_replicas *replicas,
	const ProtobufCServiceDescriptor *descriptor,
	const struct ulrpc_method_options *options, uint64_t deadline,
	ProtobufCService **stub_p);
/* Frees @stub. Calls that are under way go on. NULL is fine. */
ULNET_EXPORT void ulrpc_stub_free(ProtobufCService *stub);
/* Changes the deadline of calls that are made from now on. Any thread. */
ULNET_EXPORT void ulrpc_stub_deadline(ProtobufCService *stub,
				      uint64_t deadline);
/*
 * In a closure, returns what became of the call; valid until the closure
 * returns. Elsewhere returns NULL. The message that the closure gets is NULL
 * unless the cause is ULRPC_CAUSE_OK.
 */
ULNET_EXPORT const struct ulrpc_outcome *ulrpc_stub_outcome(void);

/* ---- calls with more control: ulrpc_call_message(3) ---- */

/* Fills @conf with the configuration with which the stub calls @method.
 * -ENOENT: there is no such method. */
ULNET_EXPORT int ulrpc_stub_conf(const ProtobufCService *stub,
				 const char *method,
				 struct ulrpc_call_conf *conf);

/* Called when the call has ended. @reply is valid during the call of this
 * function; it is NULL unless outcome->cause is ULRPC_CAUSE_OK. */
typedef void (*ulrpc_message_fn)(void *arg, const struct ulrpc_outcome *outcome,
				 const ProtobufCMessage *reply);

/*
 * As ulrpc_call(), with messages instead of bytes. @conf NULL: the
 * configuration of the stub. Bulks in fields of @request follow those of @conf.
 * Also returns -ENOENT: there is no such method; -EOPNOTSUPP: it streams;
 * -EINVAL: @request is not of
 * the type that the method takes, or has a Bulk that ulrpc_bulk_field() has not
 * made; -E2BIG: more than ULRPC_BULKS_MAX bulks.
 */
ULNET_EXPORT int ulrpc_call_message(ProtobufCService *stub, const char *method,
				    const ProtobufCMessage *request,
				    const struct ulrpc_call_conf *conf,
				    ulrpc_message_fn done, void *arg,
				    struct ulrpc_call **call_p);
/* As ulrpc_call_wait(), with messages. *@reply_p is NULL unless the cause is
 * ULRPC_CAUSE_OK, and is to be freed with
 * protobuf_c_message_free_unpacked(reply, NULL). */
ULNET_EXPORT int ulrpc_call_message_wait(ProtobufCService *stub,
					 const char *method,
					 const ProtobufCMessage *request,
					 const struct ulrpc_call_conf *conf,
					 ProtobufCMessage **reply_p,
					 struct ulrpc_outcome *outcome);

/* ---- calls to one of several servers: ulrpc_replicas_call_message(3) ---- */

/* As ulrpc_message_fn. @outcome also says which server it was. */
typedef void (*ulrpc_replicas_message_fn)(
	void *arg, const struct ulrpc_replicas_outcome *outcome,
	const ProtobufCMessage *reply);
/*
 * As ulrpc_call_message(), for a stub of ulrpc_replicas_stub_new(): @conf may
 * have a key, and *@call_p is for ulrpc_replicas_cancel(), to be given back
 * with ulrpc_replicas_call_put(). @conf NULL: the configuration of the stub,
 * and no key. -EOPNOTSUPP: @stub is another one, or the method streams.
 */
ULNET_EXPORT int ulrpc_replicas_call_message(
	ProtobufCService *stub, const char *method,
	const ProtobufCMessage *request,
	const struct ulrpc_replicas_call_conf *conf,
	ulrpc_replicas_message_fn done, void *arg,
	struct ulrpc_replicas_call **call_p);
/* The same, and waits, as ulrpc_call_message_wait(). */
ULNET_EXPORT int ulrpc_replicas_call_message_wait(
	ProtobufCService *stub, const char *method,
	const ProtobufCMessage *request,
	const struct ulrpc_replicas_call_conf *conf, ProtobufCMessage **reply_p,
	struct ulrpc_replicas_outcome *outcome);

/* ---- details of a failure: ulrpc_context_new(3) ---- */

/*
 * The details of the failure of a call that had @context, as
 * ulrpc_context_details() has them, if they are a message of @type.
 * *@message_p is to be freed with protobuf_c_message_free_unpacked(message,
 * NULL). -ENOENT: there are none, or they are of another type; -EBADMSG: they
 * are no such message; -EBUSY, -ENOMEM.
 */
ULNET_EXPORT int ulrpc_context_details_message(
	const struct ulrpc_context *context,
	const ProtobufCMessageDescriptor *type, ProtobufCMessage **message_p);

/* ---- sets of calls: ulrpc_set_message(3) ---- */

/* As ulrpc_set_call(), with the arguments and errors of ulrpc_call_message().
 */
ULNET_EXPORT int ulrpc_set_message(struct ulrpc_set *set,
				   ProtobufCService *stub, const char *method,
				   const ProtobufCMessage *request,
				   const struct ulrpc_call_conf *conf,
				   void *arg, struct ulrpc_call **call_p);
/*
 * Unpacks the reply in @result into a message, and frees the reply's bytes.
 * *@reply_p is as in ulrpc_call_message_wait(). If it is NULL, result->outcome
 * says why, also if the bytes turn out not to be such a message. -ENOENT:
 * @service has no such method; -EINVAL: @result is of another method. Any
 * thread; never waits.
 */
ULNET_EXPORT int ulrpc_result_message(struct ulrpc_result *result,
				      const ProtobufCServiceDescriptor *service,
				      const char *method,
				      ProtobufCMessage **reply_p);

/* ---- bulk as a field: ulrpc_bulk_field(3) ---- */

/* Returns the value for a field of type ulrpc.Bulk, in a message that a stub
 * sends. It belongs to @bulk, and is valid as long as @bulk. */
ULNET_EXPORT Ulrpc__Bulk *ulrpc_bulk_field(struct ulrpc_bulk *bulk);

/* ---- services: ulrpc_serve(3) ---- */

/*
 * Starts the service @implementation (X__INIT(prefix) of the generated header),
 * which is borrowed until ulrpc_service_stop(). A function of it gets a
 * request, and must call the closure once, on any thread, with the reply, or
 * with NULL, which fails the request with -EIO. @conf: the rest of the
 * configuration, without methods; if its name is NULL, the full name
 * "package.Service" is used; @conf NULL: defaults. Errors are those of
 * ulrpc_service_start(), and -EINVAL: a function is missing; -ENOENT: a line of
 * @options names no method of this service. *@conf->err tells of these, too.
 */
ULNET_EXPORT int ulrpc_serve(struct ulrpc *rpc,
			     ProtobufCService *implementation,
			     const struct ulrpc_method_options *options,
			     const struct ulrpc_service_conf *conf,
			     struct ulrpc_service **service_p);
/* Returns the request that belongs to @closure_data, which a function of the
 * service got: for ulrpc_request_info(), bulk and the like, until the request
 * is answered. Only the closure and ulrpc_closure_fail*() may answer it. Any
 * thread. */
ULNET_EXPORT struct ulrpc_request *ulrpc_request_of(void *closure_data);
/* As ulrpc_request_record(), for a closure that will be called with @reply. */
ULNET_EXPORT int ulrpc_closure_record(void *closure_data,
				      const ProtobufCMessage *reply,
				      struct ulrpc_record *record);
/* Fails the request instead of calling the closure: as ulrpc_fail(). Any
 * thread. */
ULNET_EXPORT void ulrpc_closure_fail(void *closure_data, int status);
/* As ulrpc_closure_fail(), with a text: as ulrpc_fail_text(). */
ULNET_EXPORT void ulrpc_closure_fail_text(void *closure_data, int status,
					  const char *text);

/* As ulrpc_closure_fail_text(), with a status, and with a message for programs,
 * which may be NULL: as ulrpc_fail_status() and ulrpc_reply_details(). Details
 * for which there is no room are left out. */
ULNET_EXPORT void ulrpc_closure_fail_status(void *closure_data,
					    enum ulrpc_status status,
					    const char *text,
					    const ProtobufCMessage *details);

/* ---- streams of messages: ulrpc_stream_message(3) ---- */

/* All on top of ulnet/stream.h: the functions of that, but for sending and
 * reading bytes, are for these streams, too. A message is at most
 * ULRPC_STREAM_MESSAGE_MAX bytes, packed; it has no Bulk. protoc-gen-ulrpc
 * makes these functions with the types of each method. */

/* As ulrpc_stream_open(). @request: that of a method whose replies stream;
 * NULL: its requests stream, and are to be sent. */
ULNET_EXPORT int ulrpc_stream_open_message(struct ulrpc_streams *streams,
					   const char *method,
					   const ProtobufCMessage *request,
					   const struct ulrpc_stream_conf *conf,
					   struct ulrpc_stream **stream_p);
/* As ulrpc_replicas_stream_open() and ulrpc_replicas_stream_open_wait(), with
 * such a @request. */
ULNET_EXPORT int ulrpc_replicas_stream_open_message(
	struct ulrpc_replicas *replicas, const char *method,
	const ProtobufCMessage *request,
	const struct ulrpc_replicas_stream_conf *conf,
	ulrpc_replicas_stream_fn fn, void *arg,
	struct ulrpc_replicas_call **call_p);
ULNET_EXPORT int ulrpc_replicas_stream_open_message_wait(
	struct ulrpc_replicas *replicas, const char *method,
	const ProtobufCMessage *request,
	const struct ulrpc_replicas_stream_conf *conf,
	struct ulrpc_stream **stream_p, struct ulrpc_replicas_outcome *outcome);
/* As ulrpc_stream_send(). */
ULNET_EXPORT int ulrpc_stream_send_message(struct ulrpc_stream *stream,
					   const ProtobufCMessage *message);
/* As ulrpc_stream_send_wait(). */
ULNET_EXPORT int ulrpc_stream_send_message_wait(
	struct ulrpc_stream *stream, const ProtobufCMessage *message);
/*
 * As ulrpc_stream_next(). If it returns 1, *@message_p is the next message, of
 * the type @type, to be freed with protobuf_c_message_free_unpacked(message,
 * NULL). -EBADMSG: what has come is no such message; -ENOMEM: there is no
 * memory for it. Both end the stream: a service's with this status, and a text
 * that names @type; a client's as canceled.
 */
ULNET_EXPORT int ulrpc_stream_next_message(
	struct ulrpc_stream *stream, const ProtobufCMessageDescriptor *type,
	ProtobufCMessage **message_p);
/* As ulrpc_stream_next_message(), and waits while that returns -EAGAIN. Waits,
 * as *_wait. */
ULNET_EXPORT int ulrpc_stream_next_message_wait(
	struct ulrpc_stream *stream, const ProtobufCMessageDescriptor *type,
	ProtobufCMessage **message_p);
/*
 * For the client of a method whose requests stream: ends its messages, and
 * waits until the service has replied and the stream is over. *@reply_p is NULL
 * unless the cause is ULRPC_CAUSE_OK, and is to be freed as above. If the
 * service has ended the stream well, but not sent exactly one such message, the
 * cause is ULRPC_CAUSE_BAD_REPLY. Waits, as *_wait.
 */
ULNET_EXPORT int ulrpc_stream_finish_wait(
	struct ulrpc_stream *stream, const ProtobufCMessageDescriptor *type,
	ProtobufCMessage **reply_p, struct ulrpc_stream_outcome *outcome);
/* For the service of such a method: sends the reply, and ends the stream well.
 * -EPIPE: it has ended; -EMSGSIZE; -ENOMEM. Never waits. */
ULNET_EXPORT int ulrpc_stream_reply(struct ulrpc_stream *stream,
				    const ProtobufCMessage *reply);

/* Ends a stream of a service, as ulrpc_stream_end_status(), with @details,
 * which may be NULL, as ulrpc_stream_add_details(). Details that are too long
 * are left out. */
ULNET_EXPORT void ulrpc_stream_end_message(struct ulrpc_stream *stream,
					   enum ulrpc_status status,
					   const char *text,
					   const ProtobufCMessage *details);
/* As ulrpc_context_details_message(), for what ulrpc_stream_details() has. */
ULNET_EXPORT int ulrpc_stream_details_message(
	struct ulrpc_stream *stream, const ProtobufCMessageDescriptor *type,
	ProtobufCMessage **message_p);

/* ---- services with streams: ulrpc_serve_streams(3) ---- */

/* As ulrpc_stream_fn. @request is the one of a method whose replies stream, and
 * valid until the handler returns; NULL: requests are to be read. */
typedef void (*ulrpc_stream_message_fn)(void *arg, struct ulrpc_stream *stream,
					const ProtobufCMessage *request);

/* A line of a table of handlers. The last line has method NULL. */
struct ulrpc_stream_handler {
	const char *method; /* name in the .proto */
	ulrpc_stream_message_fn handler;
};

/*
 * Starts the service @implementation, as ulrpc_serve() does, with the methods
 * that stream, as @options says: each has a line in @handlers, all others have
 * a function of @implementation. @handlers is borrowed until return, @arg given
 * to each handler. @conf: the rest of the configuration, without methods; NULL:
 * defaults. A stream whose request is no such message ends with -EBADMSG.
 * Errors are those of ulrpc_stream_serve(), and those of ulrpc_serve().
 */
ULNET_EXPORT int ulrpc_serve_streams(
	struct ulrpc *rpc, ProtobufCService *implementation,
	const struct ulrpc_method_options *options,
	const struct ulrpc_stream_handler *handlers, void *arg,
	const struct ulrpc_stream_service_conf *conf,
	struct ulrpc_stream_service **service_p);

/* ---- what a node tells of its services: ulrpc_about_start(3) ---- */

/*
 * Starts the service ulrpc.About (ulnet/about.proto), which tells whoever may
 * call it which services and methods @rpc has, what their messages look like,
 * and how they are. @conf: the rest of the configuration, as of ulrpc_serve().
 * Errors are those of ulrpc_service_start().
 */
ULNET_EXPORT int ulrpc_about_start(struct ulrpc *rpc,
				   const struct ulrpc_service_conf *conf,
				   struct ulrpc_service **service_p);

#ifdef __cplusplus
}
#endif

#endif
