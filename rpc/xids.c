/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/xids.h"

#include <string.h>

struct xids_hole {
	uint64_t word;
	uint64_t missing; /* bits of it that were not seen */
};

struct xids_large {
	uint64_t words[XIDS_WORDS_LARGE];
	struct xids_hole holes[XIDS_HOLES]; /* a ring, oldest first */
	unsigned int first, nholes;
};

static void use_words(struct xids *s, uint64_t *words, unsigned int n)
{
	s->words = words;
	s->last = n - 1;
}

static uint64_t *word_of(const struct xids *s, uint64_t word)
{
	return &s->words[word & s->last];
}

void xids_init(struct xids *s)
{
	*s = (struct xids){ .base = 0 };
	use_words(s, s->small, XIDS_WORDS_SMALL);
	s->small[0] = 1; /* the sequence begins with 1 */
}

void xids_fini(struct xids *s)
{
	free(s->large);
	s->large = NULL;
}

static bool grow(struct xids *s)
{
	struct xids_large *l;

	if (s->large)
		return false;
	l = calloc(1, sizeof(*l));
	if (!l)
		return false;
	for (uint64_t w = s->base; w <= s->base + s->last; w++)
		l->words[w % XIDS_WORDS_LARGE] = *word_of(s, w);
	s->large = l;
	use_words(s, l->words, XIDS_WORDS_LARGE);
	return true;
}

/* ---- what the window left behind ---- */

static void hole_add(struct xids *s, uint64_t word, uint64_t missing)
{
	struct xids_large *l = s->large;

	if (!l) {
		s->lost = word + 1;
		return;
	}
	if (l->nholes == XIDS_HOLES) {
		s->lost = l->holes[l->first].word + 1;
		l->first = (l->first + 1) % XIDS_HOLES;
		l->nholes--;
	}
	l->holes[(l->first + l->nholes++) % XIDS_HOLES] =
		(struct xids_hole){ word, missing };
}

/* What is known of a number that the window has left behind. */
static enum xids_past hole_take(struct xids *s, uint64_t n)
{
	struct xids_large *l = s->large;
	uint64_t bit = UINT64_C(1) << n % XIDS_WORD_BITS;

	if (n <= s->below)
		return XIDS_SEEN;
	for (unsigned int i = 0; l && i < l->nholes; i++) {
		struct xids_hole *h = &l->holes[(l->first + i) % XIDS_HOLES];

		if (h->word != n / XIDS_WORD_BITS)
			continue;
		if (!(h->missing & bit))
			return XIDS_SEEN;
		h->missing &= ~bit;
		return XIDS_NEW;
	}
	return n / XIDS_WORD_BITS < s->lost ? XIDS_LOST : XIDS_SEEN;
}

/* Of words below @word, and of the low @bits of that one, nothing is
 * missing. */
static void holes_below(struct xids *s, uint64_t word, unsigned int bits)
{
	struct xids_large *l = s->large;

	while (l->nholes && l->holes[l->first].word < word) {
		l->first = (l->first + 1) % XIDS_HOLES;
		l->nholes--;
	}
	if (l->nholes && l->holes[l->first].word == word)
		l->holes[l->first].missing &= ~UINT64_C(0) << bits;
}

/* ---- the window ---- */

static void leave_word(struct xids *s)
{
	uint64_t *w = word_of(s, s->base);

	if (~*w)
		hole_add(s, s->base, ~*w);
	*w = 0;
	s->base++;
}

/* Moves the window so that it contains @word. */
static void move_to(struct xids *s, uint64_t word)
{
	uint64_t n = s->last + 1;

	if (word >= s->base + n && grow(s))
		n = s->last + 1;
	/* Further than the window is long: most of the holes would be
	 * forgotten. */
	if (word >= s->base + n + n) {
		uint64_t last = word - n - n + 1;

		for (uint64_t i = 0; i < n; i++)
			leave_word(s);
		if (last > s->base)
			s->lost = s->base = last;
	}
	while (word >= s->base + n)
		leave_word(s);
}

/* The window does not begin with a word that is full. */
static void leave_full(struct xids *s)
{
	while (!~*word_of(s, s->base))
		leave_word(s);
}

/* Of a number that was seen, fills a word, or is outside of the window. */
enum xids_past xids_add_rare(struct xids *s, uint64_t n)
{
	uint64_t bit = UINT64_C(1) << n % XIDS_WORD_BITS;
	uint64_t *w;

	if (n / XIDS_WORD_BITS < s->base)
		return hole_take(s, n);
	if (!xids_word(s, n)) {
		move_to(s, n / XIDS_WORD_BITS);
		leave_full(s);
	}
	w = xids_word(s, n);
	if (*w & bit)
		return XIDS_SEEN;
	*w |= bit;
	leave_full(s);
	return XIDS_NEW;
}

void xids_below(struct xids *s, uint64_t n)
{
	/* The first word that still matters, and its bits that do not. */
	uint64_t word =
		n / XIDS_WORD_BITS + (n % XIDS_WORD_BITS == XIDS_WORD_BITS - 1);
	unsigned int bits = (unsigned int)((n + 1) % XIDS_WORD_BITS);

	s->below = MAX(s->below, n);
	if (s->large && s->large->nholes)
		holes_below(s, word, bits);
	if (likely(word < s->base))
		return;
	for (uint64_t i = 0; i <= s->last && s->base < word; i++) {
		*word_of(s, s->base) = 0;
		s->base++;
	}
	s->base = MAX(s->base, word);
	if (bits)
		*word_of(s, word) |= (UINT64_C(1) << bits) - 1;
	leave_full(s);
}

void xids_trim(struct xids *s)
{
	struct xids_large *l = s->large;

	if (!l || l->nholes)
		return;
	for (uint64_t w = s->base + XIDS_WORDS_SMALL;
	     w < s->base + XIDS_WORDS_LARGE; w++)
		if (l->words[w % XIDS_WORDS_LARGE])
			return;
	for (uint64_t w = s->base; w < s->base + XIDS_WORDS_SMALL; w++)
		s->small[w % XIDS_WORDS_SMALL] = l->words[w % XIDS_WORDS_LARGE];
	use_words(s, s->small, XIDS_WORDS_SMALL);
	s->large = NULL;
	free(l);
}
