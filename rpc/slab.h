/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recycles memory of several sizes, last in, first out, so that a call that is
 * like the last ones needs no malloc(). Sizes are rounded up to the next
 * quarter of a power of two. The free memory that is kept is bounded, for each
 * size and in all. While more than SLAB_KEEP_IDLE is kept, sizes that nobody
 * has asked for during SLAB_IDLE are freed. Under AddressSanitizer each piece
 * is a malloc().
 *
 * Thread: owner.
 */
#ifndef RPC_SLAB_H
#define RPC_SLAB_H

#include "base/util.h"
#include "ulnet/loop.h"

struct shard;

#if defined(__SANITIZE_ADDRESS__)
#define SLAB_IS_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_IS_MALLOC 1
#endif
#endif
#ifndef SLAB_IS_MALLOC
#define SLAB_IS_MALLOC 0
#endif

#define SLAB_MIN_SHIFT 8  /* log2 of the smallest size: 256 bytes */
#define SLAB_MAX_SHIFT 22 /* log2 of the largest size that is kept: 4 MiB */
#define SLAB_CLASSES   (4 * (SLAB_MAX_SHIFT - SLAB_MIN_SHIFT) + 1)
/* bytes of free pieces of each size, at most */
#define SLAB_KEEP (UINT32_C(4) << 20)
/* bytes of free pieces of all sizes, at most */
#define SLAB_KEEP_ALL (UINT32_C(16) << 20)
/* bytes of free pieces of all sizes, at most, when nobody asks for them */
#define SLAB_KEEP_IDLE (UINT32_C(256) << 10)
#define SLAB_IDLE      (10 * NSEC_PER_SEC)

struct slab_free {
	struct slab_free *next;
};

struct slab_class {
	struct slab_free *free;
	uint32_t kept; /* bytes of all free pieces of this size */
	/* bytes: when @kept is above this, no more pieces are kept */
	uint32_t full;
	uint32_t size; /* bytes of a piece */
	bool asked;    /* was slab_get() called since the timer was armed? */
};

struct slab {
	struct slab_class classes[SLAB_CLASSES];
	uint64_t used; /* how many pieces callers have */
	uint64_t made; /* how many pieces came from malloc() */
	uint32_t kept; /* bytes of free pieces */
	/* bytes of free pieces, at most: SLAB_KEEP_ALL while the timer is
	 * armed, else SLAB_KEEP_IDLE */
	uint32_t limit;
	struct ulnet_timer timer;
	struct shard *shard; /* NULL: slab_stop() was called */
};

/* Returns the index of the class for @size bytes; if it is SLAB_CLASSES or
 * more, pieces of that size are not kept. */
static inline unsigned int slab_class_of(size_t size)
{
	size_t last = size - 1;
	unsigned int shift;

	if (size <= (size_t)1 << SLAB_MIN_SHIFT)
		return 0;
	shift = 63 - (unsigned int)__builtin_clzll(last);
	return 4 * (shift - SLAB_MIN_SHIFT) + (last >> (shift - 2) & 3) + 1;
}

static inline size_t slab_class_size(unsigned int class)
{
	size_t base = (size_t)1 << (SLAB_MIN_SHIFT + (class + 3) / 4 - 1);

	return class ? base + base / 4 * ((class - 1) % 4 + 1)
		     : (size_t)1 << SLAB_MIN_SHIFT;
}

/* Returns how many bytes are allocated for a piece of @size bytes. */
static inline size_t slab_size(size_t size)
{
	unsigned int class = slab_class_of(size);

	return class < SLAB_CLASSES ? slab_class_size(class) : size;
}

void slab_init(struct slab *slab, struct shard *s);
/* Cancels the timer. Called before slab_fini(). */
void slab_stop(struct slab *slab);
/* All pieces must have been put back. Any thread. */
void slab_fini(struct slab *slab);

/* Says that one piece that slab_get() has returned will be freed by free(), and
 * not put back. */
static inline void slab_disown(struct slab *slab)
{
	slab->used--;
}

/* Called by slab_put() when a limit is reached, and by slab_get() when malloc()
 * is needed. */
void slab_put_full(struct slab *slab, struct slab_class *c, void *obj);
void *slab_get_new(struct slab *slab, size_t size) must_check;

/* Returns a piece of at least @size bytes, uninitialised, aligned as by
 * malloc(); NULL: no memory. */
static inline void *must_check slab_get(struct slab *slab, size_t size)
{
	unsigned int i = slab_class_of(size);
	struct slab_class *c;
	struct slab_free *f;

	if (SLAB_IS_MALLOC || unlikely(i >= SLAB_CLASSES))
		return slab_get_new(slab, size);
	c = &slab->classes[i];
	c->asked = true;
	f = c->free;
	if (unlikely(!f))
		return slab_get_new(slab, c->size);
	c->free = f->next;
	c->kept -= c->size;
	slab->kept -= c->size;
	slab->used++;
	return f;
}

static inline bool slab_is_full(const struct slab *slab,
				const struct slab_class *c)
{
	return c->kept > c->full || slab->kept + c->size > slab->limit;
}

static inline void slab_keep(struct slab *slab, struct slab_class *c, void *obj)
{
	struct slab_free *f = obj;

	f->next = c->free;
	c->free = f;
	c->kept += c->size;
	slab->kept += c->size;
}

/* Does what slab_put() does. @i: slab_class_of() of the size that was asked
 * for. */
static inline void slab_put_class(struct slab *slab, void *obj, unsigned int i)
{
	struct slab_class *c;

	slab->used--;
	if (SLAB_IS_MALLOC || unlikely(i >= SLAB_CLASSES)) {
		free(obj);
		return;
	}
	c = &slab->classes[i];
	if (unlikely(slab_is_full(slab, c)))
		slab_put_full(slab, c, obj);
	else
		slab_keep(slab, c, obj);
}

/* Puts back a piece that slab_get() has returned. @size: what was asked for, or
 * slab_size() of it. */
static inline void slab_put(struct slab *slab, void *obj, size_t size)
{
	slab_put_class(slab, obj, slab_class_of(size));
}

#endif
