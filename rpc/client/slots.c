/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool slots_alloc(struct slots *s, uint32_t size)
{
	struct ulrpc_call **calls;
	uint16_t *ring;

	/* slots_grant() never grants more than SLOTS_MAX: the ring has 16 bits
	 * for a slot. */
	BUG_ON(size > SLOTS_MAX);
	calls = realloc(s->calls, size * sizeof(calls[0]));
	if (!calls)
		return false;
	s->calls = calls;
	memset(&calls[s->size], 0, (size - s->size) * sizeof(calls[0]));
	ring = malloc(size * sizeof(ring[0]));
	if (!ring)
		return false;
	for (uint32_t i = s->head; i != s->tail; i++)
		ring[i - s->head] = s->free[i & (s->size - 1)];
	s->tail -= s->head;
	s->head = 0;
	free(s->free);
	s->free = ring;
	s->size = size;
	return true;
}

/* Makes all slots below @n. Those that are held by calls become free when the
 * calls end. */
static void slots_make(struct slots *s, uint32_t n)
{
	uint32_t first = s->made;

	s->made = n;
	for (uint32_t slot = first; slot < n; slot++)
		if (!s->calls[slot])
			slots_put(s, slot);
}

int slots_init(struct slots *s)
{
	*s = (struct slots){ .granted = SLOTS_DEFAULT };
	if (!slots_alloc(s, SLOTS_FIRST)) {
		slots_fini(s);
		return -ENOMEM;
	}
	slots_make(s, SLOTS_FIRST);
	return 0;
}

void slots_fini(struct slots *s)
{
	free(s->calls);
	free(s->free);
	*s = (struct slots){ 0 };
}

bool slots_grow(struct slots *s)
{
	if (s->made >= s->granted)
		return false;
	if (s->made == s->size && !slots_alloc(s, 2 * s->size))
		return false;
	slots_make(s, MIN(s->size, s->granted));
	return true;
}

void slots_grant(struct slots *s, uint32_t n)
{
	uint32_t end = s->tail;

	s->granted = MIN(MAX(n, 1), SLOTS_MAX);
	if (s->made <= s->granted)
		return;
	s->made = s->granted;
	/* Rebuilds the ring with the free slots that are still granted. */
	s->tail = s->head;
	for (uint32_t i = s->head; i != end; i++) {
		uint16_t slot = s->free[i & (s->size - 1)];

		if (slot < s->made)
			s->free[s->tail++ & (s->size - 1)] = slot;
	}
}
