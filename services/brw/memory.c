/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <stdlib.h>

#include "services/pattern.h"

#define PAGE 4096

void memory_init(struct memory *m, uint64_t bytes_max)
{
	*m = (struct memory){ .bytes_max = bytes_max };
	pthread_mutex_init(&m->lock, NULL);
}

static void piece_free(struct memory *m, struct piece *p)
{
	m->bytes -= p->size;
	free(p->data);
	free(p);
}

static void free_all(struct memory *m)
{
	struct piece *p;

	while ((p = m->free)) {
		m->free = p->next;
		piece_free(m, p);
	}
}

void memory_fini(struct memory *m)
{
	free_all(m);
	pthread_mutex_destroy(&m->lock);
}

/* The piece that came back last and is of use, but not much too large. */
static struct piece *take_free(struct memory *m, size_t size)
{
	for (struct piece **link = &m->free; *link; link = &(*link)->next) {
		struct piece *p = *link;

		if (p->size < size || p->size / 2 > size)
			continue;
		*link = p->next;
		return p;
	}
	return NULL;
}

/* Makes room among what may be had; locked. */
static bool reserve(struct memory *m, size_t size)
{
	if (m->bytes + size > m->bytes_max)
		free_all(m);
	if (m->bytes + size > m->bytes_max)
		return false;
	m->bytes += size;
	return true;
}

struct piece *memory_get(struct memory *m, size_t size)
{
	struct piece *p;
	bool room = true;

	if (!size || size > m->bytes_max)
		return NULL;
	size = (size + PAGE - 1) / PAGE * PAGE;
	pthread_mutex_lock(&m->lock);
	p = take_free(m, size);
	if (!p)
		room = reserve(m, size);
	pthread_mutex_unlock(&m->lock);
	if (p || !room)
		return p;
	p = malloc(sizeof(*p));
	if (p)
		*p = (struct piece){ .data = aligned_alloc(PAGE, size),
				     .size = size };
	if (p && p->data) {
		/* Pages that nobody wrote to are all the same one. */
		pattern_fill(p->data, size, 0, 0);
		return p;
	}
	free(p);
	pthread_mutex_lock(&m->lock);
	m->bytes -= size;
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

void memory_put(struct memory *m, struct piece *p)
{
	pthread_mutex_lock(&m->lock);
	p->next = m->free;
	m->free = p;
	pthread_mutex_unlock(&m->lock);
}
