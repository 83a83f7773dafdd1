/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of an import. In each slot, the server keeps the record of one
 * call, and it grants a number of slots. A call holds a slot from its first
 * sending to its end. The next call in the slot, which has a higher number,
 * tells the server that the call before is over. The slot that has been free
 * for longest is taken first, so that this happens in every slot.
 *
 * Memory grows with the number of calls that were under way at a time.
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_CLIENT_SLOTS_H
#define RPC_CLIENT_SLOTS_H

#include "base/util.h"

struct ulrpc_call;

#define SLOTS_FIRST 64u /* slots that are made at the beginning */
/* slots that count as granted until the server says otherwise */
#define SLOTS_DEFAULT 1024u
#define SLOTS_MAX     4096u
#define SLOT_NONE     UINT32_MAX

struct slots {
	/* @size entries: the call that holds the slot; NULL: none */
	struct ulrpc_call **calls;
	uint16_t *free; /* ring of free slots, from @head to @tail */
	/* positions in @free: modulo @size they are an index */
	uint32_t head, tail;
	/* entries of @calls and of @free; a power of two */
	uint32_t size;
	/* slots with lower numbers exist: they are in use, or free */
	uint32_t made;
	uint32_t granted; /* slots that the server grants */
	bool wanted;	  /* does a call wait for a slot? */
};

/* Initializes @s. Returns 0 or -ENOMEM. */
int slots_init(struct slots *s) must_check;
void slots_fini(struct slots *s);

/* Called when the server grants @n slots; at most SLOTS_MAX count. A call in a
 * slot beyond that keeps it until its end. */
void slots_grant(struct slots *s, uint32_t n);

static inline uint32_t slots_free(const struct slots *s)
{
	return s->tail - s->head;
}

/* Makes more slots. Returns false if no more are granted, or there is no
 * memory. */
bool slots_grow(struct slots *s);
/* Returns how many slots can be taken now, up to @n. */
static inline uint32_t slots_have(struct slots *s, uint32_t n)
{
	while (unlikely(slots_free(s) < n))
		if (!slots_grow(s))
			return slots_free(s);
	return n;
}

/* Takes a slot for @call. slots_have() has said that there is one. */
static inline uint32_t slots_take(struct slots *s, struct ulrpc_call *call)
{
	uint32_t slot = s->free[s->head++ & (s->size - 1)];

	s->calls[slot] = call;
	return slot;
}

/* Frees @slot, because the call that holds it has ended. */
static inline void slots_put(struct slots *s, uint32_t slot)
{
	s->calls[slot] = NULL;
	if (likely(slot < s->made))
		s->free[s->tail++ & (s->size - 1)] = (uint16_t)slot;
}

/* Returns the call that holds @slot, which may be any number; NULL: none does.
 */
static inline struct ulrpc_call *slots_find(const struct slots *s,
					    uint64_t slot)
{
	return slot < s->size ? s->calls[slot] : NULL;
}

#endif
