/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that two nodes of a host share: two rings, one for each direction,
 * in a memfd that cannot change its size. Knows bytes and wake-ups; nothing of
 * LNet, connections or loops. shmlnd(7) has drawings.
 *
 *	a page		for each side its tail, head and wants, in cache lines
 *			of their own; only that side writes them, but either
 *			side clears wants
 *	ring 0, ring 1	what side 0, and side 1, has written
 *
 * Each ring is mapped twice, one behind the other, so that a frame is always
 * contiguous. Cursors count bytes, and wrap at 2^32.
 *
 * The peer can write anything into this memory at any time. So each side keeps
 * its own cursors in memory of its own, reads a word of the peer's once, checks
 * it against what is possible, and copies what it has to look at twice. What is
 * impossible is -EPROTO, and why says what it was.
 *
 * A side that dies between any two stores costs only what it has not published:
 * a frame is visible once its tail is, and that is one store, the last one.
 *
 * Wake-ups. A side that is about to sleep says what for (wants), and then looks
 * once more. A side that has published something looks at wants afterwards, and
 * sends a wake-up only if it was the one that has cleared them. All four
 * accesses are in the one total order of sequentially consistent ones, so at
 * least one side sees the other: tests/model/wakeup.pml.
 *
 * Thread: one for each side.
 */
#ifndef LND_SHMLND_RING_H
#define LND_SHMLND_RING_H

#include <stdatomic.h>
#include "base/util.h"

#define SHM_RING_MIN 16384u
#define SHM_RING_MAX (16u << 20)

/* Pairs of cache lines are fetched together. */
#define SHM_LINE 128

/* What a side that sleeps is to be woken for. */
#define SHM_WANTS_FRAMES 1u /* there is something to read */
#define SHM_WANTS_ROOM	 2u /* there is room to write */

struct shm_side {
	/* bytes that this side has written */
	_Alignas(SHM_LINE) _Atomic uint32_t tail;
	/* bytes that this side has read */
	_Alignas(SHM_LINE) _Atomic uint32_t head;
	_Alignas(SHM_LINE) _Atomic uint32_t wants;
};

/* In front of each frame, which is then padded to a multiple of it. */
struct shm_frame_hdr {
	uint32_t length; /* of what follows, without padding */
	uint32_t type;
};
#define SHM_FRAME_HDR sizeof(struct shm_frame_hdr)

/* One side's view. Zero: not mapped. */
struct shm_ring {
	void *map; /* NULL: not mapped */
	size_t map_size;
	uint32_t size; /* bytes of each ring, a power of 2 */
	struct shm_side *mine, *theirs;
	uint8_t *out;
	const uint8_t *in;
	const char *why; /* what the peer has done wrong, or NULL */
	/* as the writer: */
	uint32_t tail;	/* bytes written */
	uint32_t freed; /* bytes that the peer has read, as it last said */
	/* as the reader: */
	uint32_t head;	/* bytes read */
	uint32_t given; /* bytes that the peer has written, as it last said */
};

/* A frame that was read. Its type and length are copies, but the peer may still
 * change the bytes of the body. */
struct shm_frame {
	uint32_t type, length;
	const uint8_t *body;
};

/* Returns the size of rings of @bytes or less: a power of 2, and whole pages.
 */
uint32_t shm_ring_size(uint64_t bytes);

/* Makes the memory for two rings of @size bytes, which no one can shrink or
 * grow. Returns a descriptor or -errno. Children of fork() must not keep it:
 * base/fork.h. */
int shm_ring_create(uint32_t size);
/* Maps the memory @fd, which is closed by the caller, for @side (0 or 1).
 * Checks that it is what shm_ring_create() makes, whoever has made it. Children
 * of fork() do not have the memory. Returns 0; -EPROTO: it is something else;
 * or -errno. */
int shm_ring_map(struct shm_ring *r, int fd, uint32_t size,
		 unsigned int side) must_check;
/* No effect on a ring that is not mapped. */
void shm_ring_unmap(struct shm_ring *r);

static inline uint32_t shm_frame_space(uint32_t length)
{
	return (uint32_t)(SHM_FRAME_HDR + ((length + 7u) & ~7u));
}

/* ---- the writer ---- */

/* Reads how much the peer has read. Returns 0 or -EPROTO. */
int shm_ring_look_room(struct shm_ring *r) must_check;

/* Bytes for which there is room, headers of frames included, by the last
 * look. */
static inline uint32_t shm_ring_room(const struct shm_ring *r)
{
	return r->size - (r->tail - r->freed);
}

/* Returns where the body of a frame of @length bytes goes, for which there must
 * be room. shm_ring_commit() makes it a frame, which the peer does not see
 * before shm_ring_publish(). */
static inline uint8_t *shm_ring_body(const struct shm_ring *r)
{
	return r->out + (r->tail & (r->size - 1)) + SHM_FRAME_HDR;
}
static inline void shm_ring_commit(struct shm_ring *r, uint32_t type,
				   uint32_t length)
{
	const struct shm_frame_hdr hdr = { length, type };

	memcpy(shm_ring_body(r) - SHM_FRAME_HDR, &hdr, sizeof(hdr));
	r->tail += shm_frame_space(length);
}
static inline void shm_ring_publish(struct shm_ring *r)
{
	atomic_store_explicit(&r->mine->tail, r->tail, memory_order_release);
}

/* ---- the reader ---- */

/* Reads how much the peer has written. Returns 0 or -EPROTO. */
int shm_ring_look(struct shm_ring *r) must_check;
/* Sets *@f to the next frame, by the last look. Returns 1; 0: there is none; or
 * -EPROTO. */
int shm_ring_next(struct shm_ring *r, struct shm_frame *f) must_check;
/* The frame is read, and its body no longer needed. The peer does not know
 * before shm_ring_give(). */
static inline void shm_ring_took(struct shm_ring *r, const struct shm_frame *f)
{
	r->head += shm_frame_space(f->length);
}
static inline void shm_ring_give(struct shm_ring *r)
{
	atomic_store_explicit(&r->mine->head, r->head, memory_order_release);
}

/* Has the peer written, or read, anything since the last looks? */
static inline bool shm_ring_has_frames(const struct shm_ring *r)
{
	return atomic_load_explicit(&r->theirs->tail, memory_order_acquire) !=
	       r->head;
}

/* ---- wake-ups ---- */

/* To be called after something of @what (SHM_WANTS_*) was published, or given.
 * Does the peer sleep, and has to be woken? If so, the caller has to wake it,
 * since nobody else will. */
bool shm_ring_must_wake(struct shm_ring *r, uint32_t what) must_check;
/* This side is about to sleep until there is something of @what. Returns false:
 * there is something already, and it may not sleep. */
bool shm_ring_sleep(struct shm_ring *r, uint32_t what) must_check;
/* Is there something of @what, as far as can be seen now? For a side that
 * polls: the peer hears nothing of it. */
static inline bool shm_ring_has_news(const struct shm_ring *r, uint32_t what)
{
	return (what & SHM_WANTS_FRAMES &&
		atomic_load_explicit(&r->theirs->tail, memory_order_relaxed) !=
			r->head) ||
	       (what & SHM_WANTS_ROOM &&
		atomic_load_explicit(&r->theirs->head, memory_order_relaxed) !=
			r->freed);
}
/* This side does not sleep any more. It is not woken until it sleeps again. */
static inline void shm_ring_awake(struct shm_ring *r)
{
	atomic_store_explicit(&r->mine->wants, 0, memory_order_relaxed);
}

#endif
