/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stub/arena.h"

#include <stdlib.h>
#include "base/util.h"

#define ALIGN	  _Alignof(max_align_t)
#define CHUNK_MIN 4096

struct arena_chunk {
	struct arena_chunk *next;
	_Alignas(max_align_t) uint8_t bytes[];
};

static void *take(struct arena *a, size_t size)
{
	a->last = a->p;
	a->p += size;
	return a->last;
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_chunk *chunk;
	size_t room;

	if (unlikely(size > SIZE_MAX - ALIGN))
		return NULL;
	size = (MAX(size, 1) + ALIGN - 1) / ALIGN * ALIGN;
	if (likely(size <= (size_t)(a->end - a->p)))
		return take(a, size);
	if (size > a->left)
		return NULL;
	room = MIN(MAX(size, CHUNK_MIN), a->left / ALIGN * ALIGN);
	chunk = malloc(sizeof(*chunk) + room);
	if (!chunk) {
		a->no_memory = true;
		return NULL;
	}
	chunk->next = a->chunks;
	a->chunks = chunk;
	a->left -= room;
	a->p = chunk->bytes;
	a->end = a->p + room;
	return take(a, size);
}

static void *alloc_for_protobuf(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

/* The newest only: protobuf-c's tables of what it has seen often are. */
static void free_for_protobuf(void *arena, void *p)
{
	struct arena *a = arena;

	if (p && p == a->last) {
		a->p = a->last;
		a->last = NULL;
	}
}

void arena_init(struct arena *a, void *first, size_t size, size_t limit)
{
	size_t skip = -(uintptr_t)first % ALIGN;

	*a = (struct arena){
		.allocator = { alloc_for_protobuf, free_for_protobuf, a },
		.p = first,
		.end = first,
		.left = limit,
	};
	if (size >= skip + ALIGN) {
		a->p += skip;
		a->end = a->p + (size - skip) / ALIGN * ALIGN;
	}
}

void arena_fini(struct arena *a)
{
	struct arena_chunk *chunk;

	while ((chunk = a->chunks)) {
		a->chunks = chunk->next;
		free(chunk);
	}
}
