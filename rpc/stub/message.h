/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * protobuf-c's messages as bodies of calls: packing, unpacking what others sent
 * within bounds, and the bulks in them.
 */
#ifndef RPC_MESSAGE_H
#define RPC_MESSAGE_H

#include "rpc/stub/arena.h"
#include "ulnet/rpc.h"
#include "ulnet/rpc.pb-c.h"

/* As others have it: deeper ones could exhaust the stack. */
#define MESSAGE_DEPTH_MAX 100

/* What there is to know of a type of message. */
struct message_type {
	const ProtobufCMessageDescriptor *descriptor;
	size_t largest; /* bytes of the largest struct of all that it is of */
	bool nests;	/* there are messages in it */
	bool bulks;	/* there may be an ulrpc.Bulk in it */
};

/* -ENOMEM. */
int message_type_init(struct message_type *type,
		      const ProtobufCMessageDescriptor *descriptor);

/* Bytes of the heap that a message of @type needs at most to be read from
 * @length bytes, without the waste that only malice makes. */
size_t message_heap_max(const struct message_type *type, size_t length);

/* @allocator: as protobuf-c's. NULL: it cannot be read, or is too deep; or
 * @allocator has no more. */
ProtobufCMessage *message_unpack(const struct message_type *type,
				 const void *body, size_t length,
				 ProtobufCAllocator *allocator);

/* A message as bytes; small ones need no heap. */
struct packed {
	size_t length;
	uint8_t *bytes;
	uint8_t small[2048];
};

int packed_init(struct packed *packed, const ProtobufCMessage *message);
void packed_fini(struct packed *packed);

struct bulk_list {
	struct ulrpc_bulk *bulks[ULRPC_BULKS_MAX];
	unsigned int n;
};

/* Adds the bulks in @message that are not in @list yet, and writes their
 * indices into the message. -EINVAL: a Bulk is not of ulrpc_bulk_field();
 * -E2BIG. */
int message_bulks(const ProtobufCMessage *message, struct bulk_list *list);

#endif
