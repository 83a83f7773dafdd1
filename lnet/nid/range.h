/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses numbers, ranges and lists of ranges from users' texts into sets of
 * numbers, with a cursor that remembers where and why parsing failed. Knows
 * neither NIDs nor nets.
 *
 *	number    := decimal | '0x' hex | '0' octal
 *	rangeexpr := number | '*' | number '-' number [ '/' stride ]
 *	exprlist  := '[' rangeexpr { ',' rangeexpr } ']'
 *	numrange  := number | '*' | exprlist
 *
 * Any thread. Texts are borrowed until return.
 */
#ifndef LNET_RANGE_H
#define LNET_RANGE_H

#include "ulnet/nid.h"
#include "base/util.h"

/* Most range expressions in one exprlist. */
#define LNET_RANGES_MAX 128

/* A cursor over a text, which is borrowed while the cursor is used. */
struct lnet_text {
	/* begin of the text, from which the offsets of errors count */
	const char *text;
	const char *p;
	const char *end;
	/* filled in with -EINVAL; NULL: not wanted */
	struct ulnet_text_error *err;
};

/* A buffer to which text is appended. .len counts also the text that did not
 * fit. */
struct lnet_text_out {
	char *buf;
	size_t size;
	size_t len;
};

/* The numbers lo, lo + stride, and so on up to hi. In normal form hi is one of
 * these numbers, and stride is not 0; if lo and hi are equal, it is 1. */
struct lnet_range {
	uint32_t lo;
	uint32_t hi;
	uint32_t stride;
};

/* A set of numbers within [min, max]: sorted ranges, joined wherever two ranges
 * make one. A structure of zeros is the empty set, which owns no memory. */
struct lnet_ranges {
	uint32_t min;
	uint32_t max;
	unsigned int count;
	struct lnet_range *range;
};

static inline struct lnet_text lnet_text_of(const char *text, size_t len,
					    struct ulnet_text_error *err)
{
	return (struct lnet_text){ text, text, text + len, err };
}

static inline bool lnet_text_at_end(const struct lnet_text *t)
{
	return t->p == t->end;
}

/* Returns the next byte; 0 at the end of the text. */
static inline char lnet_text_peek(const struct lnet_text *t)
{
	return lnet_text_at_end(t) ? '\0' : *t->p;
}

/* Takes @c (not 0) if it is the next byte. */
static inline bool lnet_text_take(struct lnet_text *t, char c)
{
	if (lnet_text_peek(t) != c)
		return false;
	t->p++;
	return true;
}

static inline bool lnet_text_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline void lnet_text_skip_blanks(struct lnet_text *t)
{
	while (lnet_text_is_blank(lnet_text_peek(t)))
		t->p++;
}

static inline bool lnet_text_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns -EINVAL. Fills in t->err, unless that is NULL; @at: where in the text
 * the mistake is. */
int lnet_text_fail(const struct lnet_text *t, const char *at, const char *fmt,
		   ...) __attribute__((format(printf, 3, 4)));

/* Takes all digits of @base (8, 10 or 16) that follow, at least one and with
 * any number of leading zeros, as a value within [min, max]. Returns 0 or
 * -EINVAL. */
must_check int lnet_text_digits(struct lnet_text *t, unsigned int base,
				uint32_t min, uint32_t max, uint32_t *value_p);

/* Takes a number without blanks or a sign; no letter may follow. Returns 0 or
 * -EINVAL. */
must_check int lnet_text_number(struct lnet_text *t, uint32_t min, uint32_t max,
				uint32_t *value_p);

/* Appends text, as snprintf() does. */
void lnet_text_printf(struct lnet_text_out *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static inline bool lnet_range_match(const struct lnet_range *r, uint32_t v)
{
	return v >= r->lo && v <= r->hi && (v - r->lo) % r->stride == 0;
}

/* Take an exprlist, in which blanks are allowed only inside the brackets; or a
 * numrange with blanks around it. Return 0 and a set, to be freed with
 * lnet_ranges_free(); -EINVAL or -ENOMEM. */
must_check int lnet_ranges_parse_list(struct lnet_text *t, uint32_t min,
				      uint32_t max,
				      struct lnet_ranges *ranges_p);
must_check int lnet_ranges_parse(struct lnet_text *t, uint32_t min,
				 uint32_t max, struct lnet_ranges *ranges_p);

/* As lnet_ranges_parse(), but makes the set of the single number @value. */
must_check int lnet_ranges_one(uint32_t min, uint32_t max, uint32_t value,
			       struct lnet_ranges *ranges_p);

/* Frees the memory of the set, which is then the empty set. */
void lnet_ranges_free(struct lnet_ranges *ranges);

bool lnet_ranges_match(const struct lnet_ranges *ranges, uint32_t v);

/* Do the two sets have the same bounds and the same numbers? */
bool lnet_ranges_eq(const struct lnet_ranges *a, const struct lnet_ranges *b);

/* Does the set have all numbers from min to max? */
bool lnet_ranges_is_all(const struct lnet_ranges *ranges);

/* Does the set have only one number? If so, that is put into *@value_p. */
bool lnet_ranges_is_one(const struct lnet_ranges *ranges, uint32_t *value_p);

/* Prints the canonical numrange: "*", "7", "[1-3,8-20/4]". Parsing the text
 * with the same bounds gives an equal set. */
void lnet_ranges_format(const struct lnet_ranges *ranges,
			struct lnet_text_out *out);

#endif
