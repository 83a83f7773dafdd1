/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of streams: how they are packed, and how a stream ends when one of
 * them cannot be unpacked. */
#ifndef RPC_STUB_STREAMING_H
#define RPC_STUB_STREAMING_H

#include "rpc/stub/message.h"
#include "ulnet/stub.h"

/* Does what packed_init() does. Returns also -EMSGSIZE: @message is too long
 * for a stream. */
int stream_pack(struct packed *packed, const ProtobufCMessage *message);

/* Ends @stream, on the client's side or the service's, because a message of
 * @length bytes that has come is none of @type; @no_memory: because there is no
 * memory to unpack it. Returns the status with which the stream ends. */
int stream_end_unread(struct ulrpc_stream *stream,
		      const ProtobufCMessageDescriptor *type, size_t length,
		      bool no_memory);

#endif
