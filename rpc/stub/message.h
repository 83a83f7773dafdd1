/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * protobuf-c's messages as bodies of calls: packing, unpacking what others sent
 * within bounds, and the bulks in them; and the methods that they are of.
 */
#ifndef RPC_MESSAGE_H
#define RPC_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ulnet/rpc.h"
#include "ulnet/rpc.pb-c.h"
#include "ulnet/stub.h"

/* ---- memory ---- */

struct arena_chunk;

/*
 * Memory that is given back at once: what protobuf-c unpacks into. Of the first
 * bytes, which the user has, then of the heap; never more than a limit.
 * Must not move. Thread: one at a time.
 */
struct arena {
	ProtobufCAllocator allocator; /* for protobuf-c */
	struct arena_chunk *chunks;
	uint8_t *p, *end; /* what is left of the newest */
	uint8_t *last;	  /* where the newest allocation begins */
	size_t left;	  /* of the limit, for the heap */
	bool no_memory;	  /* the heap had none, rather than the limit */
};

/* Borrows @first, of @size bytes, until arena_fini(). @limit: bytes from the
 * heap, besides. */
void arena_init(struct arena *a, void *first, size_t size, size_t limit);
void arena_fini(struct arena *a);
/* Aligned for anything. NULL: no more. */
void *arena_alloc(struct arena *a, size_t size);

/* ---- messages ---- */

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

/* ---- methods ---- */

struct stub_method {
	const char *name;
	uint32_t number; /* on the wire */
	struct ulrpc_method_options options;
	struct message_type input, output;
};

/* An array by index in @descriptor, to be given back with free(); borrows names
 * of @descriptor, and @options until the return. -EINVAL: not a descriptor, or
 * a line makes no sense; -ENOENT: a line is for none of the methods;
 * -ENOMEM. */
int stub_methods_new(const ProtobufCServiceDescriptor *descriptor,
		     const struct ulrpc_method_options *options,
		     struct stub_method **methods_p);

#endif
