/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which numbers of an endless sequence have been seen, in little memory: a
 * window of bits over the last ones, which moves up. What was not seen when the
 * window left it behind (a hole) is remembered as long as there is room; after
 * that it is not known whether such a number has been seen.
 *
 * A number is called new once, at most.
 *
 * Thread: owner. It points into itself: not to be copied.
 */
#ifndef RPC_XIDS_H
#define RPC_XIDS_H

#include "base/util.h"

#define XIDS_WORD_BITS	 64u
#define XIDS_WORDS_SMALL 2u  /* 128 numbers, without allocation */
#define XIDS_WORDS_LARGE 64u /* 4096 */
#define XIDS_HOLES	 16u /* words of them */

/* The window begins with a whole word. So who uses numbers in order has all
 * that are not further apart than this, oldest to newest, inside of it. */
#define XIDS_SPAN ((XIDS_WORDS_LARGE - 1) * XIDS_WORD_BITS)

struct xids_large;

struct xids {
	uint64_t base;	/* words below this one are left behind */
	uint64_t below; /* numbers up to this one do not come any more */
	uint64_t lost;	/* of words below this one, holes have been forgotten */
	uint64_t *words; /* of the window: small, or large's */
	uint64_t last;	 /* words - 1: a power of two less one */
	uint64_t small[XIDS_WORDS_SMALL];
	struct xids_large *large; /* with the holes; NULL: none */
};

enum xids_past {
	XIDS_NEW,
	XIDS_SEEN,
	XIDS_LOST, /* nobody knows any more */
};

void xids_init(struct xids *s);
void xids_fini(struct xids *s);
/* The word of the window that has @n; NULL: none has. */
static inline uint64_t *xids_word(const struct xids *s, uint64_t n)
{
	uint64_t word = n / XIDS_WORD_BITS;

	return likely(word - s->base <= s->last) ? &s->words[word & s->last]
						 : NULL;
}

enum xids_past xids_add_rare(struct xids *s, uint64_t n) must_check;
/* What is known of @n. If it was new, it is seen now. */
static inline must_check enum xids_past xids_add(struct xids *s, uint64_t n)
{
	uint64_t bit = UINT64_C(1) << n % XIDS_WORD_BITS;
	uint64_t *w = xids_word(s, n);

	/* Only a word that becomes full moves the window. */
	if (unlikely(!w || *w & bit || !~(*w | bit)))
		return xids_add_rare(s, n);
	*w |= bit;
	return XIDS_NEW;
}

/* Numbers up to @n will not come any more; if they do, they count as seen. */
void xids_below(struct xids *s, uint64_t n);
/* Gives memory back that is not needed now. */
void xids_trim(struct xids *s);

#endif
