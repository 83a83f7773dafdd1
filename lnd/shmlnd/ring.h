/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that two nodes of a host share: two rings, one for each direction,
 * in a memfd that cannot change its size. Knows bytes and wake-ups; nothing of
 * LNet, connections or loops. shmlnd(7) has drawings.
 *
 *	a page		for each side its tail, head and wants, in cache lines
 *			of their own; only that side writes them, but either
 *			side clears wants; then its loans and answers (loan.h)
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
 * A page is made by the first access to it, and counts as the memory of whose
 * access that was, for as long as anybody keeps the memory. So a side that is
 * done with a memory empties it: what the peer keeps is then the peer's.
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
#define SHM_WANTS_ANSWERS 4u /* a loan has been answered */

/* What a side may have lent at a time. A loan's number, which is not 0, has its
 * slot in its lowest bits: loan.h. */
#define SHM_LOANS 32

struct shm_side {
	/* bytes that this side has written */
	_Alignas(SHM_LINE) _Atomic uint32_t tail;
	/* bytes that this side has read */
	_Alignas(SHM_LINE) _Atomic uint32_t head;
	_Alignas(SHM_LINE) _Atomic uint32_t wants;
	/* how many loans this side has answered */
	_Alignas(SHM_LINE) _Atomic uint32_t answers;
	/* this side copies what is lent to it */
	_Atomic uint32_t copies;
	/* this side has a commons (view.h); and is ready for that of the other
	 */
	_Atomic uint32_t offers, maps;
	/* the loans of this side; 0: none */
	_Alignas(SHM_LINE) _Atomic uint32_t loan[SHM_LOANS];
	/* what became of those of the other side: the number, and below it
	 * enum shm_answer */
	_Alignas(SHM_LINE) _Atomic uint64_t answer[SHM_LOANS];
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
	/* loans: answers given, and answers of the peer by the last look */
	uint32_t answers, heard;
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
/* Frees all pages of the memory, whoever has made them, and whoever still has
 * the memory: it reads as zeros then, and pages that others make of it from now
 * on are theirs. Neither side may need anything that is in it. */
void shm_ring_empty(struct shm_ring *r);
/* Neither has an effect on a ring that is not mapped. */
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

/* ---- loans ---- */

/* The lender's: @loan is lent. */
static inline void shm_ring_lend(struct shm_ring *r, uint32_t loan)
{
	atomic_store_explicit(&r->mine->loan[loan % SHM_LOANS], loan,
			      memory_order_release);
}
/* @loan is lent no more. What is written to its memory afterwards nobody
 * believes to be of @loan. */
static inline void shm_ring_call_back(struct shm_ring *r, uint32_t loan)
{
	atomic_store_explicit(&r->mine->loan[loan % SHM_LOANS], 0,
			      memory_order_relaxed);
	/* Later stores may not overtake that one, whatever they are. */
	atomic_thread_fence(memory_order_seq_cst);
}
/* Has the peer given more answers since the last look? */
static inline bool shm_ring_look_answers(struct shm_ring *r)
{
	uint32_t n =
		atomic_load_explicit(&r->theirs->answers, memory_order_acquire);
	bool more = n != r->heard;

	r->heard = n;
	return more;
}
/* Returns the peer's answer to @loan; 0: there is none yet. */
static inline uint32_t shm_ring_answer_to(const struct shm_ring *r,
					  uint32_t loan)
{
	uint64_t a = atomic_load_explicit(&r->theirs->answer[loan % SHM_LOANS],
					  memory_order_relaxed);

	return a >> 32 == loan ? (uint32_t)a : 0;
}

/* The other side's: is @loan, whose memory was copied, still lent? */
static inline bool shm_ring_is_lent(const struct shm_ring *r, uint32_t loan)
{
	/* What was copied was read before. */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&r->theirs->loan[loan % SHM_LOANS],
				    memory_order_relaxed) == loan;
}
/* @answer: enum shm_answer. shm_ring_must_wake(SHM_WANTS_ANSWERS) is due. */
static inline void shm_ring_answer(struct shm_ring *r, uint32_t loan,
				   uint32_t answer)
{
	atomic_store_explicit(&r->mine->answer[loan % SHM_LOANS],
			      (uint64_t)loan << 32 | answer,
			      memory_order_relaxed);
	atomic_store_explicit(&r->mine->answers, ++r->answers,
			      memory_order_release);
}

/* Does this side copy what is lent to it? Does the other one? */
static inline void shm_ring_set_copies(struct shm_ring *r, bool copies)
{
	atomic_store_explicit(&r->mine->copies, copies, memory_order_relaxed);
}
static inline bool shm_ring_peer_copies(const struct shm_ring *r)
{
	return atomic_load_explicit(&r->theirs->copies, memory_order_relaxed);
}

/* Does this side offer its commons, and the other one its own? */
static inline void shm_ring_offer(struct shm_ring *r)
{
	atomic_store_explicit(&r->mine->offers, 1, memory_order_relaxed);
}
static inline bool shm_ring_peer_offers(const struct shm_ring *r)
{
	return atomic_load_explicit(&r->theirs->offers, memory_order_relaxed);
}
/* Is this side ready for the other one's commons, or is the other one for that
 * of this side? */
static inline void shm_ring_set_maps(struct shm_ring *r, bool maps)
{
	atomic_store_explicit(&r->mine->maps, maps, memory_order_relaxed);
}
static inline bool shm_ring_peer_maps(const struct shm_ring *r)
{
	return atomic_load_explicit(&r->theirs->maps, memory_order_relaxed);
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
			r->freed) ||
	       (what & SHM_WANTS_ANSWERS &&
		atomic_load_explicit(&r->theirs->answers,
				     memory_order_relaxed) != r->heard);
}
/* This side does not sleep any more. It is not woken until it sleeps again. */
static inline void shm_ring_awake(struct shm_ring *r)
{
	atomic_store_explicit(&r->mine->wants, 0, memory_order_relaxed);
}

#endif
