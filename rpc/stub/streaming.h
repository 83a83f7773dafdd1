/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a stream whose message cannot be unpacked. */
#ifndef RPC_STUB_STREAMING_H
#define RPC_STUB_STREAMING_H

#include "ulnet/stub.h"

/* Ends @stream, on whichever side it is, because of a message of @length bytes,
 * which is no @type, or for which there is @no_memory. Returns the status that
 * it ends with. */
int stream_end_unread(struct ulrpc_stream *stream,
		      const ProtobufCMessageDescriptor *type, size_t length,
		      bool no_memory);

#endif
