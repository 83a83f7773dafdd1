/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of an import. The server keeps one record of a call in each, and
 * grants a number of slots. A call holds a slot from its first sending to its
 * end. The next call in the slot, which has a higher number, tells the server
 * that the one before is over. The slot that has been free for longest is taken
 * first, so that this happens for every slot.
 *
 * Memory grows with the number of calls that were under way at a time.
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_CLIENT_SLOTS_H
#define RPC_CLIENT_SLOTS_H

#include "base/util.h"

struct ulrpc_call;

#define SLOTS_FIRST   64u   /* made at once */
#define SLOTS_DEFAULT 1024u /* granted, until the server says otherwise */
#define SLOTS_MAX     4096u
#define SLOT_NONE     UINT32_MAX

struct slots {
	struct ulrpc_call **calls; /* size entries: the slot's call, or NULL */
	uint16_t *free;		   /* a ring of free slots, from head to tail */
	/* taken modulo size, to be an index of free */
	uint32_t head, tail;
	/* entries of calls and of free; a power of two */
	uint32_t size;
	uint32_t made;	  /* slots below this exist: in use, or free */
	uint32_t granted; /* how many the server grants */
	bool wanted;	  /* a call waits for a slot */
};

/* 0 or -ENOMEM. */
int slots_init(struct slots *s) must_check;
void slots_fini(struct slots *s);

/* The server grants @n slots; at most SLOTS_MAX count. Calls in slots beyond
 * that keep them until their end. */
void slots_grant(struct slots *s, uint32_t n);

static inline uint32_t slots_free(const struct slots *s)
{
	return s->tail - s->head;
}

/* Makes more slots. False: no more are granted, or there is no memory. */
bool slots_grow(struct slots *s);
/* How many slots can be taken now, up to @n. */
static inline uint32_t slots_have(struct slots *s, uint32_t n)
{
	while (unlikely(slots_free(s) < n))
		if (!slots_grow(s))
			return slots_free(s);
	return n;
}

/* Takes a slot, of which slots_have() has said that it is there. */
static inline uint32_t slots_take(struct slots *s, struct ulrpc_call *call)
{
	uint32_t slot = s->free[s->head++ & (s->size - 1)];

	s->calls[slot] = call;
	return slot;
}

/* The call that holds @slot has ended. */
static inline void slots_put(struct slots *s, uint32_t slot)
{
	s->calls[slot] = NULL;
	if (likely(slot < s->made))
		s->free[s->tail++ & (s->size - 1)] = (uint16_t)slot;
}

/* The call that holds @slot, or NULL; @slot may be any number. */
static inline struct ulrpc_call *slots_find(const struct slots *s,
					    uint64_t slot)
{
	return slot < s->size ? s->calls[slot] : NULL;
}

#endif
