/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 64-bit ids that are safe to accept from outside (handles of users, handles on
 * the wire): looking up a stale or made-up id finds nothing.
 *
 *	63........32 31....24 23......0
 *	generation   tag      slot
 *
 * The tag is chosen by the table's user (LNet: CPT and type). No table gives
 * out an id twice: a slot whose generations are used up is retired. Neither 0
 * nor ~0 is ever an id.
 *
 * Thread: owner.
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include "base/util.h"

#define ID_SLOTS_MAX (UINT32_C(1) << 24)

struct id_slot {
	/* the object in the slot; NULL: the slot is free */
	void *obj;
	/* generation of the object in the slot, or of the next object there */
	uint32_t generation;
	uint32_t next_free; /* the next free slot, while this one is free */
};

struct id_table {
	struct id_slot *slots;
	uint32_t size;
	uint32_t used; /* number of objects in the table */
	uint32_t free_head;
	uint8_t tag;
};

void id_table_init(struct id_table *t, uint8_t tag);
/* Frees the table's memory, not the objects in it. */
void id_table_fini(struct id_table *t);

/* Adds @obj. Returns 0, and its id in *@id_p; -ENOMEM; -ENOSPC: no slot is
 * left. */
int id_alloc(struct id_table *t, void *obj, uint64_t *id_p) must_check;

/* Removes the object with @id, which must be in the table. */
void id_free(struct id_table *t, uint64_t id);

static inline uint8_t id_tag(uint64_t id)
{
	return (uint8_t)(id >> 24);
}

/* Returns the object with @id, or NULL if @id is not in the table. */
static inline void *id_lookup(const struct id_table *t, uint64_t id)
{
	uint32_t slot = (uint32_t)id & (ID_SLOTS_MAX - 1);

	if (slot >= t->size || id_tag(id) != t->tag ||
	    t->slots[slot].generation != (uint32_t)(id >> 32))
		return NULL;
	return t->slots[slot].obj;
}

/* Returns the object in the slot that @lower, the lower half of an id, names;
 * NULL: none. For callers whose peers use another upper half, which the caller
 * compares. */
static inline void *id_slot_obj(const struct id_table *t, uint32_t lower)
{
	uint32_t slot = lower & (ID_SLOTS_MAX - 1);

	if (slot >= t->size || id_tag(lower) != t->tag)
		return NULL;
	return t->slots[slot].obj;
}

/* Walks all objects: the first call has *@pos = 0. Returns NULL at the end.
 * Objects may be removed during the walk. */
void *id_walk(const struct id_table *t, uint32_t *pos);

#endif
