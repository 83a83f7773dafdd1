/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <stdlib.h>

#include "services/pattern.h"

#define PAGE 4096

void memory_init(struct memory *m, struct lnet *node, uint64_t bytes_max)
{
	*m = (struct memory){ .node = node, .bytes_max = bytes_max };
	pthread_mutex_init(&m->lock, NULL);
}

/* ---- who has it ---- */

static struct holder **holder_link(struct memory *m,
				   const struct ulnet_nid *nid)
{
	const unsigned char *bytes = (const unsigned char *)nid;
	struct holder **link;
	uint32_t hash = 0;

	for (size_t i = 0; i < sizeof(*nid); i++)
		hash = hash * 31 + bytes[i];
	link = &m->holders[hash % MEMORY_BUCKETS];
	while (*link && !lnet_nid_eq(&(*link)->nid, nid))
		link = &(*link)->next;
	return link;
}

/* Locked. NULL: the NID has its share. */
static struct holder *holder_get(struct memory *m, size_t size,
				 const struct ulnet_nid *nid)
{
	struct holder **link = holder_link(m, nid), *h = *link;
	uint64_t left = m->bytes_max - m->out;

	if (size > left || (h && h->bytes > left))
		return NULL;
	if (!h) {
		h = malloc(sizeof(*h));
		if (!h)
			return NULL;
		*h = (struct holder){ .nid = *nid };
		*link = h;
	}
	h->bytes += size;
	m->out += size;
	return h;
}

/* Locked. */
static void holder_put(struct memory *m, struct holder *h, size_t size)
{
	m->out -= size;
	h->bytes -= size;
	if (h->bytes)
		return;
	*holder_link(m, &h->nid) = h->next;
	free(h);
}

/* ---- pieces ---- */

/* False: it is registered, and that cannot be changed just now. */
static bool piece_free(struct memory *m, struct piece *p)
{
	if (p->registered && lnet_mem_unregister(m->node, p->data, p->size))
		return false;
	m->bytes -= p->size;
	free(p->data);
	free(p);
	return true;
}

static void free_all(struct memory *m)
{
	struct piece **link = &m->free;

	while (*link) {
		struct piece *p = *link, *next = p->next;

		if (piece_free(m, p))
			*link = next;
		else
			link = &p->next;
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

static struct piece *piece_alloc(size_t size)
{
	struct piece *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct piece){ .data = aligned_alloc(PAGE, size), .size = size };
	if (!p->data) {
		free(p);
		return NULL;
	}
	/* Pages that nobody wrote to are all the same one. */
	pattern_fill(p->data, size, 0, 0);
	return p;
}

/* A new piece, for which there is room. NULL: no memory; the room is given
 * back. */
static struct piece *piece_new(struct memory *m, struct holder *h, size_t size)
{
	struct piece *p = piece_alloc(size);

	if (p) {
		p->registered =
			m->node && !lnet_mem_register(m->node, p->data, size);
		return p;
	}
	pthread_mutex_lock(&m->lock);
	m->bytes -= size;
	holder_put(m, h, size);
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

static void put_free(struct memory *m, struct piece *p)
{
	p->next = m->free;
	m->free = p;
}

struct piece *memory_get(struct memory *m, size_t size,
			 const struct ulnet_nid *nid)
{
	struct holder *h;
	struct piece *p;

	if (!size || size > m->bytes_max)
		return NULL;
	size = (size + PAGE - 1) / PAGE * PAGE;
	pthread_mutex_lock(&m->lock);
	p = take_free(m, size);
	h = holder_get(m, p ? p->size : size, nid);
	if (!h && p)
		put_free(m, p);
	if (h && !p && !reserve(m, size)) {
		holder_put(m, h, size);
		h = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	if (!h)
		return NULL;
	if (!p)
		p = piece_new(m, h, size);
	if (p)
		p->holder = h;
	return p;
}

void memory_put(struct memory *m, struct piece *p)
{
	pthread_mutex_lock(&m->lock);
	holder_put(m, p->holder, p->size);
	put_free(m, p);
	pthread_mutex_unlock(&m->lock);
}
