/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "services/common/pattern.h"

#define PAGE 4096

static struct chunk *chunk_new(unsigned char *data, size_t size)
{
	struct chunk *p = malloc(sizeof(*p));

	if (p)
		*p = (struct chunk){ .data = data, .size = size };
	return p;
}

int memory_init(struct memory *m, struct lnet *node, uint64_t bytes_max)
{
	*m = (struct memory){ .node = node,
			      .bytes_max = bytes_max / PAGE * PAGE };
	pthread_mutex_init(&m->lock, NULL);
	if (!m->bytes_max)
		return 0;
	m->pool = mmap(NULL, m->bytes_max, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->pool == MAP_FAILED)
		return -ENOMEM;
	m->free = chunk_new(m->pool, m->bytes_max);
	if (!m->free) {
		munmap(m->pool, m->bytes_max);
		return -ENOMEM;
	}
	m->registered = node && !lnet_mem_register(node, m->pool, m->bytes_max);
	return 0;
}

void memory_fini(struct memory *m)
{
	free(m->free);
	pthread_mutex_destroy(&m->lock);
	if (!m->bytes_max)
		return;
	/* If the pool cannot be unregistered, a device may still access it, so
	 * it stays mapped. */
	if (!m->registered ||
	    !lnet_mem_unregister(m->node, m->pool, m->bytes_max))
		munmap(m->pool, m->bytes_max);
}

/* ---- holders ---- */

/* Returns the pointer, in the list of the bucket of @nid, to the holder @nid.
 * If there is no such holder, that is the pointer at the end of the list, which
 * is NULL. */
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

/* Counts @size bytes as held by @nid. NULL: that would exceed its share, or
 * there is no memory for a holder. Locked. */
static struct holder *holder_take(struct memory *m, size_t size,
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

/* Counts @size bytes less as held by @h. Locked. */
static void holder_give(struct memory *m, struct holder *h, size_t size)
{
	m->out -= size;
	h->bytes -= size;
	if (h->bytes)
		return;
	*holder_link(m, &h->nid) = h->next;
	free(h);
}

/* ---- chunks ---- */

/* Returns the pointer to the smallest free chunk of at least @size bytes; NULL:
 * there is none. Locked. */
static struct chunk **best_free(struct memory *m, size_t size)
{
	struct chunk **best = NULL;

	for (struct chunk **link = &m->free; *link; link = &(*link)->next)
		if ((*link)->size >= size &&
		    (!best || (*link)->size < (*best)->size))
			best = link;
	return best;
}

/* Takes @size bytes for @p from a free chunk. Returns false if none is large
 * enough. Locked. */
static bool chunk_carve(struct memory *m, struct chunk *p, size_t size)
{
	struct chunk **link = best_free(m, size), *from;

	if (!link)
		return false;
	from = *link;
	p->data = from->data;
	p->size = size;
	from->data += size;
	from->size -= size;
	if (!from->size) {
		*link = from->next;
		free(from);
	}
	return true;
}

/* Takes @p back, and joins it with its free neighbours. Locked. */
static void chunk_join(struct memory *m, struct chunk *p)
{
	struct chunk *before = NULL, *after = m->free;

	for (; after && after->data < p->data; after = after->next)
		before = after;
	p->next = after;
	if (after && p->data + p->size == after->data) {
		p->size += after->size;
		p->next = after->next;
		free(after);
	}
	if (!before) {
		m->free = p;
	} else if (before->data + before->size == p->data) {
		before->size += p->size;
		before->next = p->next;
		free(p);
	} else {
		before->next = p;
	}
}

/* Sets p->fresh. Called with the lock held. */
static void chunk_set_fresh(struct memory *m, struct chunk *p)
{
	size_t end = (size_t)(p->data - m->pool) + p->size;

	p->fresh = 0;
	if (end > m->fresh) {
		p->fresh = end - m->fresh < p->size ? end - m->fresh : p->size;
		m->fresh = end;
	}
}

static bool memory_get_locked(struct memory *m, struct chunk *p, size_t size,
			      const struct ulnet_nid *nid)
{
	p->holder = holder_take(m, size, nid);
	if (!p->holder)
		return false;
	if (!chunk_carve(m, p, size)) {
		holder_give(m, p->holder, size);
		return false;
	}
	chunk_set_fresh(m, p);
	return true;
}

struct chunk *memory_get(struct memory *m, size_t size,
			 const struct ulnet_nid *nid)
{
	struct chunk *p;
	bool ok;

	if (!size || size > m->bytes_max)
		return NULL;
	size = (size + PAGE - 1) / PAGE * PAGE;
	p = chunk_new(NULL, 0);
	if (!p)
		return NULL;
	pthread_mutex_lock(&m->lock);
	ok = memory_get_locked(m, p, size, nid);
	pthread_mutex_unlock(&m->lock);
	if (!ok) {
		free(p);
		return NULL;
	}
	return p;
}

void memory_touch(struct chunk *p)
{
	pattern_fill(p->data + p->size - p->fresh, p->fresh, 0, 0);
	p->fresh = 0;
}

void memory_put(struct memory *m, struct chunk *p)
{
	pthread_mutex_lock(&m->lock);
	holder_give(m, p->holder, p->size);
	chunk_join(m, p);
	pthread_mutex_unlock(&m->lock);
}
