/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is given back at once: what protobuf-c unpacks into. Of the first
 * bytes, which the user has, then of the heap; never more than a limit.
 */
#ifndef RPC_ARENA_H
#define RPC_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

/* Must not move. Thread: one at a time. */
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

#endif
