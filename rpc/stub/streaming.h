/* SPDX-License-Identifier: BSD-3-Clause */
/* How a stream ends when one of its messages cannot be unpacked. */
#ifndef RPC_STUB_STREAMING_H
#define RPC_STUB_STREAMING_H

#include "ulnet/stub.h"

/* Ends @stream, on the client's side or the service's, because a message of
 * @length bytes that has come is none of @type; @no_memory: because there is no
 * memory to unpack it. Returns the status with which the stream ends. */
int stream_end_unread(struct ulrpc_stream *stream,
		      const ProtobufCMessageDescriptor *type, size_t length,
		      bool no_memory);

#endif
