/* SPDX-License-Identifier: BSD-3-Clause */
/* The details of failures as messages. Uses only the public interface of
 * libulrpc. */
#include <errno.h>
#include <string.h>

#include "rpc/stub/message.h"

static int details_unpack(const struct ulrpc_details *details,
			  const ProtobufCMessageDescriptor *type,
			  ProtobufCMessage **message_p)
{
	ProtobufCMessage *message;
	struct heap heap;

	if (strcmp(details->type, type->name))
		return -ENOENT;
	heap_init(&heap, type, details->length);
	message = heap_unpack(&heap, details->bytes);
	if (!message)
		return heap.no_memory ? -ENOMEM : -EBADMSG;
	*message_p = message;
	return 0;
}

int ulrpc_context_details_message(const struct ulrpc_context *context,
				  const ProtobufCMessageDescriptor *type,
				  ProtobufCMessage **message_p)
{
	struct ulrpc_details details;
	int rc = ulrpc_context_details(context, &details);

	return rc ? rc : details_unpack(&details, type, message_p);
}

int ulrpc_stream_details_message(struct ulrpc_stream *stream,
				 const ProtobufCMessageDescriptor *type,
				 ProtobufCMessage **message_p)
{
	struct ulrpc_details details;
	int rc = ulrpc_stream_details(stream, &details);

	return rc ? rc : details_unpack(&details, type, message_p);
}

void ulrpc_stream_end_message(struct ulrpc_stream *stream,
			      enum ulrpc_status status, const char *text,
			      const ProtobufCMessage *details)
{
	struct packed packed;

	if (details && !packed_init(&packed, details)) {
		const struct ulrpc_details d = { details->descriptor->name,
						 packed.bytes, packed.length };

		/* What is too long is left out. */
		(void)ulrpc_stream_add_details(stream, &d);
		packed_fini(&packed);
	}
	ulrpc_stream_end_status(stream, status, text);
}
