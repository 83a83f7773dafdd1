/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/id.h"

#include <errno.h>

#define NO_SLOT	    UINT32_MAX
#define FIRST_SLOTS 16
/* A generation that is never given out, so that ~0 is no id. A slot that has
 * reached it is retired. */
#define GENERATION_END UINT32_MAX

void id_table_init(struct id_table *t, uint8_t tag)
{
	*t = (struct id_table){ .free_head = NO_SLOT, .tag = tag };
}

void id_table_fini(struct id_table *t)
{
	free(t->slots);
	id_table_init(t, t->tag);
}

static int id_grow(struct id_table *t)
{
	uint32_t size = t->size ? 2 * t->size : FIRST_SLOTS;
	struct id_slot *slots;

	if (t->size == ID_SLOTS_MAX)
		return -ENOSPC;
	slots = realloc(t->slots, size * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = t->size; i < size; i++)
		slots[i] =
			(struct id_slot){ .generation = 1, .next_free = i + 1 };
	slots[size - 1].next_free = NO_SLOT;
	t->free_head = t->size;
	t->slots = slots;
	t->size = size;
	return 0;
}

/* Part of id_alloc(), for when no slot is free. Not inlined, so that id_alloc()
 * need not save registers for it. */
static out_of_line int alloc_grown(struct id_table *t, void *obj,
				   uint64_t *id_p)
{
	int rc = id_grow(t);

	return rc ? rc : id_alloc(t, obj, id_p);
}

int id_alloc(struct id_table *t, void *obj, uint64_t *id_p)
{
	struct id_slot *s;
	uint32_t slot;

	BUG_ON(!obj);
	if (unlikely(t->free_head == NO_SLOT))
		return alloc_grown(t, obj, id_p);
	slot = t->free_head;
	s = &t->slots[slot];
	t->free_head = s->next_free;
	s->obj = obj;
	t->used++;
	*id_p = (uint64_t)s->generation << 32 | (uint32_t)t->tag << 24 | slot;
	return 0;
}

void id_free(struct id_table *t, uint64_t id)
{
	uint32_t slot = (uint32_t)id & (ID_SLOTS_MAX - 1);
	struct id_slot *s;

	BUG_ON(!id_lookup(t, id));
	s = &t->slots[slot];
	s->obj = NULL;
	t->used--;
	if (unlikely(++s->generation == GENERATION_END))
		return;
	s->next_free = t->free_head;
	t->free_head = slot;
}

void *id_walk(const struct id_table *t, uint32_t *pos)
{
	while (*pos < t->size) {
		void *obj = t->slots[(*pos)++].obj;

		if (obj)
			return obj;
	}
	return NULL;
}
