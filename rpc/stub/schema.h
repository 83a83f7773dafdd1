/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the messages of a service look like, as protoc would say it: made from
 * what protoc-c has generated. That does not tell all: which files there were,
 * so each package is a file; the names of oneofs; and that a field is a map,
 * which is seen by the name and the fields of its entries.
 *
 * Any thread.
 */
#ifndef RPC_SCHEMA_H
#define RPC_SCHEMA_H

#include "rpc/stub/message.h"
#include "ulnet/schema.pb-c.h"

/* Adds the service @descriptor to @set, and all types that its methods need.
 * The memory is that of @arena, or is borrowed from the descriptors, which must
 * live as long as @set is used. -ENOMEM. */
int schema_add(Ulrpc__Schema__FileSet *set, struct arena *arena,
	       const ProtobufCServiceDescriptor *descriptor);

#endif
