/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Describes the messages of a service in the form in which protoc does, from
 * what protoc-c has generated. Three things are not in there, and are guessed:
 * each package counts as one file; oneofs get names of their own; and a field
 * is taken for a map if its name and the fields of its entries look so.
 *
 * Any thread.
 */
#ifndef RPC_SCHEMA_H
#define RPC_SCHEMA_H

#include "rpc/stub/message.h"
#include "ulnet/schema.pb-c.h"

/* Adds the service @descriptor to @set, and all types that its methods need.
 * @streaming: enum ulrpc_streaming of each method; NULL: none of them streams.
 * The memory is that of @arena, or is borrowed from the descriptors, which must
 * live as long as @set is used. Returns 0 or -ENOMEM. */
int schema_add(Ulrpc__Schema__FileSet *set, struct arena *arena,
	       const ProtobufCServiceDescriptor *descriptor,
	       const uint8_t *streaming);

#endif
