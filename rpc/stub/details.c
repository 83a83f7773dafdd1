/* SPDX-License-Identifier: BSD-3-Clause */
/* The details of a failure as a message. Uses only the public interface of
 * libulrpc. */
#include <errno.h>
#include <string.h>

#include "rpc/stub/message.h"

int ulrpc_context_details_message(const struct ulrpc_context *context,
				  const ProtobufCMessageDescriptor *type,
				  ProtobufCMessage **message_p)
{
	struct ulrpc_details details;
	ProtobufCMessage *message;
	struct heap heap;
	int rc = ulrpc_context_details(context, &details);

	if (rc)
		return rc;
	if (strcmp(details.type, type->name))
		return -ENOENT;
	heap_init(&heap, type, details.length);
	message = heap_unpack(&heap, details.bytes);
	if (!message)
		return heap.no_memory ? -ENOMEM : -EBADMSG;
	*message_p = message;
	return 0;
}
