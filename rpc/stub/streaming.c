/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of streams: ulrpc_stream_message(3). Uses only the public interface
 * of libulrpc. */
#include "rpc/stub/streaming.h"

#include <errno.h>
#include <stdio.h>
#include "base/util.h"

/* ---- sending ---- */

int stream_pack(struct packed *packed, const ProtobufCMessage *message)
{
	if (protobuf_c_message_get_packed_size(message) > ULRPC_STREAM_LONG_MAX)
		return -EMSGSIZE;
	return packed_init(packed, message);
}

int ulrpc_stream_open_message(struct ulrpc_streams *streams, const char *method,
			      const ProtobufCMessage *request,
			      const struct ulrpc_stream_conf *conf,
			      struct ulrpc_stream **stream_p)
{
	struct packed packed;
	int rc;

	if (!request)
		return ulrpc_stream_open(streams, method, NULL, 0, conf,
					 stream_p);
	rc = stream_pack(&packed, request);
	if (rc)
		return rc;
	rc = ulrpc_stream_open(streams, method, packed.bytes, packed.length,
			       conf, stream_p);
	packed_fini(&packed);
	return rc;
}

static int send_by(int (*send)(struct ulrpc_stream *stream, const void *body,
			       size_t length),
		   struct ulrpc_stream *stream, const ProtobufCMessage *message)
{
	struct packed packed;
	int rc = stream_pack(&packed, message);

	if (rc)
		return rc;
	rc = send(stream, packed.bytes, packed.length);
	packed_fini(&packed);
	return rc;
}

int ulrpc_stream_send_message(struct ulrpc_stream *stream,
			      const ProtobufCMessage *message)
{
	return send_by(ulrpc_stream_send, stream, message);
}

int ulrpc_stream_send_message_wait(struct ulrpc_stream *stream,
				   const ProtobufCMessage *message)
{
	return send_by(ulrpc_stream_send_wait, stream, message);
}

int ulrpc_stream_reply(struct ulrpc_stream *stream,
		       const ProtobufCMessage *reply)
{
	/* Any window has room for one message. */
	int rc = ulrpc_stream_send_message(stream, reply);

	if (!rc)
		ulrpc_stream_end(stream, 0, NULL);
	return rc;
}

/* ---- reading ---- */

int stream_end_unread(struct ulrpc_stream *stream,
		      const ProtobufCMessageDescriptor *type, size_t length,
		      bool no_memory)
{
	int rc = no_memory ? -ENOMEM : -EBADMSG;
	char text[ULRPC_TEXT_MAX];

	if (no_memory)
		snprintf(text, sizeof(text), "no memory for a message");
	else
		snprintf(text, sizeof(text),
			 "a message of %zu bytes is no %.100s", length,
			 type->name);
	ulrpc_stream_end(stream, rc, text);
	ulrpc_stream_cancel(stream);
	return rc;
}

static int next_by(int (*next)(struct ulrpc_stream *stream, const void **body_p,
			       size_t *length_p),
		   struct ulrpc_stream *stream,
		   const ProtobufCMessageDescriptor *descriptor,
		   ProtobufCMessage **message_p)
{
	ProtobufCMessage *message;
	struct heap heap;
	const void *body;
	size_t length;
	int rc = next(stream, &body, &length);

	if (rc != 1)
		return rc;
	heap_init(&heap, descriptor, length);
	message = heap_unpack(&heap, body);
	if (!message)
		return stream_end_unread(stream, descriptor, length,
					 heap.no_memory);
	*message_p = message;
	return 1;
}

int ulrpc_stream_next_message(struct ulrpc_stream *stream,
			      const ProtobufCMessageDescriptor *type,
			      ProtobufCMessage **message_p)
{
	return next_by(ulrpc_stream_next, stream, type, message_p);
}

int ulrpc_stream_next_message_wait(struct ulrpc_stream *stream,
				   const ProtobufCMessageDescriptor *type,
				   ProtobufCMessage **message_p)
{
	return next_by(ulrpc_stream_next_wait, stream, type, message_p);
}

/* ---- one reply ---- */

/* Reads until the other side sends no more. Returns 0 with *@reply_p: the only
 * message that came, or NULL if none came; -EBADMSG: two came; or an error of
 * ulrpc_stream_next_message_wait(). */
static int read_one(struct ulrpc_stream *stream,
		    const ProtobufCMessageDescriptor *type,
		    ProtobufCMessage **reply_p)
{
	ProtobufCMessage *message = NULL;
	const void *more;
	size_t length;
	int rc = ulrpc_stream_next_message_wait(stream, type, &message);

	if (rc == 1)
		rc = ulrpc_stream_next_wait(stream, &more, &length);
	if (rc == 1) {
		ulrpc_stream_cancel(stream);
		rc = -EBADMSG;
	}
	*reply_p = message;
	return rc;
}

int ulrpc_stream_finish_wait(struct ulrpc_stream *stream,
			     const ProtobufCMessageDescriptor *type,
			     ProtobufCMessage **reply_p,
			     struct ulrpc_stream_outcome *outcome)
{
	ProtobufCMessage *reply;
	int bad, rc;

	(void)ulrpc_stream_close_send(stream);
	bad = read_one(stream, type, &reply);
	rc = bad && bad != -EBADMSG && bad != -ENOMEM
		     ? bad
		     : ulrpc_stream_outcome_wait(stream, outcome);
	if (!rc && !bad && outcome->cause == ULRPC_CAUSE_OK && !reply)
		bad = -EBADMSG;
	if (!rc && bad) {
		outcome->status = bad;
		outcome->cause = bad == -ENOMEM ? ULRPC_CAUSE_NO_MEMORY
						: ULRPC_CAUSE_BAD_REPLY;
		snprintf(outcome->text, sizeof(outcome->text),
			 "the reply is not one %.100s", type->name);
	}
	if (rc || outcome->cause != ULRPC_CAUSE_OK) {
		if (reply)
			protobuf_c_message_free_unpacked(reply, NULL);
		reply = NULL;
	}
	if (!rc)
		*reply_p = reply;
	return rc;
}
