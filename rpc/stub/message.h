/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of protobuf-c as bodies of calls: packs them, unpacks what others
 * have sent, within bounds, and finds the bulks in messages. Also holds what
 * stubs and services know of a method.
 */
#ifndef RPC_MESSAGE_H
#define RPC_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "rpc/text.h"
#include "ulnet/rpc.h"
#include "ulnet/rpc.pb-c.h"
#include "ulnet/stub.h"

/* ---- memory ---- */

struct arena_chunk;

/*
 * An allocator for protobuf-c to unpack into. All its memory is freed at once.
 * It takes memory from a buffer of the user first, then from the heap, up to a
 * limit. An arena must not move. Any thread, one at a time.
 */
struct arena {
	ProtobufCAllocator allocator; /* what protobuf-c is given */
	struct arena_chunk *chunks;
	uint8_t *p, *end; /* the free rest of the newest chunk */
	uint8_t *last;	  /* the newest allocation */
	size_t left;	  /* bytes that may still be taken from the heap */
	bool no_memory;	  /* has malloc() failed? */
};

/* Begins with the @size bytes at @first, borrowed until arena_fini(). @limit:
 * bytes that may be taken from the heap as well. */
void arena_init(struct arena *a, void *first, size_t size, size_t limit);
void arena_fini(struct arena *a);
/* Returns @size bytes, aligned for any type; NULL: the limit is reached, or
 * there is no memory. */
void *arena_alloc(struct arena *a, size_t size);

/* ---- messages ---- */

/* How deep messages may nest, which is as deep as in other implementations of
 * protobuf. protobuf-c recurses, so that deeper messages could exhaust the
 * stack. */
#define MESSAGE_DEPTH_MAX 100

struct message_type {
	const ProtobufCMessageDescriptor *descriptor;
	/* bytes of the largest struct of this type and the types nested in it
	 */
	size_t largest;
	bool nests; /* the type has fields that are messages */
	/* messages of this type may have an ulrpc.Bulk in them, at any depth */
	bool bulks;
};

/* Finds out what is in *@type. Returns 0 or -ENOMEM. */
int message_type_init(struct message_type *type,
		      const ProtobufCMessageDescriptor *descriptor);

/* Returns the limit of an arena for a message of @type that is unpacked from
 * @length bytes: more than any message needs, except one that is made to waste
 * memory. */
size_t message_heap_max(const struct message_type *type, size_t length);

/* Unpacks a message of @type into memory of @allocator. Returns NULL if the
 * bytes are malformed, the message nests too deep, or @allocator has no more
 * memory. */
ProtobufCMessage *message_unpack(const struct message_type *type,
				 const void *body, size_t length,
				 ProtobufCAllocator *allocator);

/* For one message that its user frees piece by piece, by
 * protobuf_c_message_free_unpacked(message, NULL). All that is allocated for it
 * stays within the limit of an arena. A heap must not move. */
struct heap {
	ProtobufCAllocator allocator;
	struct message_type type; /* its largest is that of the outermost */
	size_t length;		  /* of the message, packed */
	size_t left;		  /* bytes that may still be allocated */
	bool raised;		  /* the limit counts the parts' structs */
	bool no_memory;		  /* malloc() has failed */
};

/* For a message of type @descriptor in @length bytes. */
void heap_init(struct heap *heap, const ProtobufCMessageDescriptor *descriptor,
	       size_t length);
/* Does what message_unpack() does, with the bytes @body. */
ProtobufCMessage *heap_unpack(struct heap *heap, const void *body);

/* A message as bytes. Small messages need no heap. */
struct packed {
	size_t length;
	uint8_t *bytes;
	uint8_t small[2048];
};

/* Packs @message. Returns 0 or -ENOMEM. After success the caller owes
 * packed_fini(). */
int packed_init(struct packed *packed, const ProtobufCMessage *message);
void packed_fini(struct packed *packed);

struct bulk_list {
	struct ulrpc_bulk *bulks[ULRPC_BULKS_MAX];
	unsigned int n;
};

/* Adds to @list the bulks in @message that are not in it yet, and sets the
 * index of each Bulk in @message. Returns 0; -EINVAL: a Bulk was not made by
 * ulrpc_bulk_field(); -E2BIG: there are more than ULRPC_BULKS_MAX. */
int message_bulks(const ProtobufCMessage *message, struct bulk_list *list);

/* ---- methods ---- */

struct stub_method {
	const char *name;
	uint32_t number; /* the method's number on the wire */
	struct ulrpc_method_options options;
	struct message_type input, output;
};

/* Makes an array of the methods of @descriptor, which the caller gives to
 * free(). @descriptor is borrowed as long as the array is used, @options until
 * this returns. Returns 0; -EINVAL: @descriptor is not a service descriptor, or
 * an option has no valid value; -ENOENT: an option is for a method that does
 * not exist; -ENOMEM. What is wrong, other than memory, is written for @owner.
 */
int stub_methods_new(const ProtobufCServiceDescriptor *descriptor,
		     const struct ulrpc_method_options *options,
		     struct conf_owner owner, struct stub_method **methods_p);

#endif
