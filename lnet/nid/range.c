/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/nid/range.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int lnet_text_fail(const struct lnet_text *t, const char *at, const char *fmt,
		   ...)
{
	va_list ap;

	if (!t->err)
		return -EINVAL;
	t->err->offset = (size_t)(at - t->text);
	va_start(ap, fmt);
	vsnprintf(t->err->what, sizeof(t->err->what), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int digit_of(char c, unsigned int base)
{
	unsigned int d;

	if (lnet_text_is_digit(c))
		d = (unsigned int)(c - '0');
	else if (c >= 'a' && c <= 'f')
		d = (unsigned int)(c - 'a') + 10;
	else if (c >= 'A' && c <= 'F')
		d = (unsigned int)(c - 'A') + 10;
	else
		return -1;
	return d < base ? (int)d : -1;
}

static bool range_is_word(char c)
{
	return lnet_text_is_digit(c) || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || c == '_';
}

static int take_digits(struct lnet_text *t, unsigned int base, uint64_t *v)
{
	const char *start = t->p;
	int d;

	*v = 0;
	while ((d = digit_of(lnet_text_peek(t), base)) >= 0) {
		/* Values that do not fit into 32 bits all become 2^32. */
		*v = MIN(*v * base + (unsigned int)d, UINT64_C(1) << 32);
		t->p++;
	}
	if (t->p == start)
		return lnet_text_fail(t, start, "a number was expected");
	return 0;
}

/* @alone: it is an error if a letter or digit follows the number. */
static int range_take_value(struct lnet_text *t, const char *start,
			    unsigned int base, bool alone, uint32_t min,
			    uint32_t max, uint32_t *value_p)
{
	uint64_t v;
	int rc = take_digits(t, base, &v);

	if (rc)
		return rc;
	if (alone && range_is_word(lnet_text_peek(t)))
		return lnet_text_fail(t, t->p, "bad digit in a number");
	if (v < min || v > max)
		return lnet_text_fail(t, start, "number is not within %u..%u",
				      min, max);
	*value_p = (uint32_t)v;
	return 0;
}

int lnet_text_digits(struct lnet_text *t, unsigned int base, uint32_t min,
		     uint32_t max, uint32_t *value_p)
{
	return range_take_value(t, t->p, base, false, min, max, value_p);
}

/* Finds the base of the next number, and takes its "0x", if it has one. */
static unsigned int take_base(struct lnet_text *t)
{
	if (lnet_text_peek(t) != '0' || t->end - t->p < 2)
		return 10;
	if (t->p[1] == 'x' || t->p[1] == 'X') {
		t->p += 2;
		return 16;
	}
	return lnet_text_is_digit(t->p[1]) ? 8 : 10;
}

int lnet_text_number(struct lnet_text *t, uint32_t min, uint32_t max,
		     uint32_t *value_p)
{
	const char *start = t->p;

	return range_take_value(t, start, take_base(t), true, min, max,
				value_p);
}

void lnet_text_printf(struct lnet_text_out *out, const char *fmt, ...)
{
	size_t used = MIN(out->len, out->size);
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(used < out->size ? out->buf + used : NULL,
		      out->size - used, fmt, ap);
	va_end(ap);
	BUG_ON(n < 0);
	out->len += (size_t)n;
}

/* Returns @r in normal form. */
static struct lnet_range normal(struct lnet_range r)
{
	r.hi = r.lo + (r.hi - r.lo) / r.stride * r.stride;
	if (r.lo == r.hi)
		r.stride = 1;
	return r;
}

static int take_stride(struct lnet_text *t, uint32_t *stride_p)
{
	const char *start;
	int rc;

	lnet_text_skip_blanks(t);
	if (!lnet_text_take(t, '/'))
		return 0;
	lnet_text_skip_blanks(t);
	start = t->p;
	rc = lnet_text_number(t, 0, UINT32_MAX, stride_p);
	if (rc)
		return rc;
	if (*stride_p == 0)
		return lnet_text_fail(t, start, "the stride of a range is 0");
	return 0;
}

static int take_range(struct lnet_text *t, uint32_t min, uint32_t max,
		      struct lnet_range *r)
{
	const char *start = t->p;
	int rc = lnet_text_number(t, min, max, &r->lo);

	if (rc)
		return rc;
	r->hi = r->lo;
	lnet_text_skip_blanks(t);
	if (!lnet_text_take(t, '-'))
		return 0;
	lnet_text_skip_blanks(t);
	rc = lnet_text_number(t, min, max, &r->hi);
	if (rc)
		return rc;
	if (r->lo > r->hi)
		return lnet_text_fail(t, start,
				      "range low end is above its high end");
	return take_stride(t, &r->stride);
}

/* Takes a rangeexpr with blanks around it; '*' is [min, max]. Returns 0 and a
 * range in normal form, or -EINVAL. */
static int range_parse(struct lnet_text *t, uint32_t min, uint32_t max,
		       struct lnet_range *range_p)
{
	struct lnet_range r = { min, max, 1 };
	int rc;

	lnet_text_skip_blanks(t);
	if (!lnet_text_take(t, '*')) {
		rc = take_range(t, min, max, &r);
		if (rc)
			return rc;
	}
	lnet_text_skip_blanks(t);
	*range_p = normal(r);
	return 0;
}

/* Orders ranges by their low ends. Of ranges with equal low ends the widest
 * comes first, of equally wide ones the densest. */
static int range_cmp(const void *pa, const void *pb)
{
	const struct lnet_range *a = pa;
	const struct lnet_range *b = pb;

	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	if (a->hi != b->hi)
		return a->hi > b->hi ? -1 : 1;
	if (a->stride != b->stride)
		return a->stride < b->stride ? -1 : 1;
	return 0;
}

/* Does @a contain all numbers of @b? */
static bool covers(const struct lnet_range *a, const struct lnet_range *b)
{
	if (!lnet_range_match(a, b->lo) || b->hi > a->hi)
		return false;
	return b->lo == b->hi || b->stride % a->stride == 0;
}

/* If @a can be extended to contain the numbers of @b, and no others, does so.
 * @b must not begin before @a. */
static bool extend(struct lnet_range *a, const struct lnet_range *b)
{
	if (a->stride != 1 || b->stride != 1 || b->hi < a->hi ||
	    b->lo > (uint64_t)a->hi + 1)
		return false;
	a->hi = b->hi;
	return true;
}

/* Does one of the @count ranges contain @b, perhaps after it was extended? */
static bool absorb(struct lnet_range *r, unsigned int count,
		   const struct lnet_range *b)
{
	for (unsigned int i = 0; i < count; i++)
		if (covers(&r[i], b) || extend(&r[i], b))
			return true;
	return false;
}

static unsigned int join_once(struct lnet_range *r, unsigned int count)
{
	unsigned int kept = 0;

	qsort(r, count, sizeof(*r), range_cmp);
	for (unsigned int i = 0; i < count; i++)
		if (!absorb(r, kept, &r[i]))
			r[kept++] = r[i];
	return kept;
}

/* Joins ranges until no two can be joined: an extended range may contain one
 * that stood alone before. Returns how many remain. */
static unsigned int range_join(struct lnet_range *r, unsigned int count)
{
	unsigned int before;

	do {
		before = count;
		count = join_once(r, count);
	} while (count != before);
	return count;
}

/* Makes the set of the ranges @r[0..count), of which there must be at least
 * one. Sorts and joins @r in place. */
static int make_ranges(uint32_t min, uint32_t max, struct lnet_range *r,
		       unsigned int count, struct lnet_ranges *ranges_p)
{
	struct lnet_range *copy;

	count = range_join(r, count);
	BUG_ON(count == 0);
	copy = malloc(count * sizeof(*r));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, r, count * sizeof(*r));
	ranges_p->min = min;
	ranges_p->max = max;
	ranges_p->count = count;
	ranges_p->range = copy;
	return 0;
}

int lnet_ranges_parse_list(struct lnet_text *t, uint32_t min, uint32_t max,
			   struct lnet_ranges *ranges_p)
{
	struct lnet_range r[LNET_RANGES_MAX];
	unsigned int count = 0;
	int rc;

	if (!lnet_text_take(t, '['))
		return lnet_text_fail(t, t->p, "'[' was expected");
	do {
		if (count == LNET_RANGES_MAX)
			return lnet_text_fail(t, t->p,
					      "more than %d ranges in brackets",
					      LNET_RANGES_MAX);
		rc = range_parse(t, min, max, &r[count++]);
		if (rc)
			return rc;
	} while (lnet_text_take(t, ','));
	if (!lnet_text_take(t, ']'))
		return lnet_text_fail(t, t->p, "',' or ']' was expected");
	return make_ranges(min, max, r, count, ranges_p);
}

static int parse_bare(struct lnet_text *t, uint32_t min, uint32_t max,
		      struct lnet_ranges *ranges_p)
{
	struct lnet_range all = { min, max, 1 };
	uint32_t value = 0;
	int rc;

	if (lnet_text_take(t, '*'))
		return make_ranges(min, max, &all, 1, ranges_p);
	rc = lnet_text_number(t, min, max, &value);
	if (rc)
		return rc;
	lnet_text_skip_blanks(t);
	if (lnet_text_peek(t) == '-')
		return lnet_text_fail(t, t->p, "a range needs brackets");
	return lnet_ranges_one(min, max, value, ranges_p);
}

int lnet_ranges_parse(struct lnet_text *t, uint32_t min, uint32_t max,
		      struct lnet_ranges *ranges_p)
{
	int rc;

	lnet_text_skip_blanks(t);
	rc = lnet_text_peek(t) == '['
		     ? lnet_ranges_parse_list(t, min, max, ranges_p)
		     : parse_bare(t, min, max, ranges_p);
	if (!rc)
		lnet_text_skip_blanks(t);
	return rc;
}

int lnet_ranges_one(uint32_t min, uint32_t max, uint32_t value,
		    struct lnet_ranges *ranges_p)
{
	struct lnet_range r = { value, value, 1 };

	return make_ranges(min, max, &r, 1, ranges_p);
}

void lnet_ranges_free(struct lnet_ranges *ranges)
{
	free(ranges->range);
	*ranges = (struct lnet_ranges){ 0 };
}

bool lnet_ranges_match(const struct lnet_ranges *ranges, uint32_t v)
{
	for (unsigned int i = 0; i < ranges->count; i++)
		if (lnet_range_match(&ranges->range[i], v))
			return true;
	return false;
}

bool lnet_ranges_eq(const struct lnet_ranges *a, const struct lnet_ranges *b)
{
	if (a->min != b->min || a->max != b->max || a->count != b->count)
		return false;
	for (unsigned int i = 0; i < a->count; i++)
		if (range_cmp(&a->range[i], &b->range[i]) != 0)
			return false;
	return true;
}

bool lnet_ranges_is_all(const struct lnet_ranges *ranges)
{
	const struct lnet_range *r = ranges->range;

	return ranges->count == 1 && r->lo == ranges->min &&
	       r->hi == ranges->max && r->stride == 1;
}

bool lnet_ranges_is_one(const struct lnet_ranges *ranges, uint32_t *value_p)
{
	if (ranges->count != 1 || ranges->range->lo != ranges->range->hi)
		return false;
	*value_p = ranges->range->lo;
	return true;
}

static void format_range(const struct lnet_range *r, struct lnet_text_out *out)
{
	lnet_text_printf(out, "%u", r->lo);
	if (r->lo != r->hi)
		lnet_text_printf(out, "-%u", r->hi);
	if (r->stride != 1)
		lnet_text_printf(out, "/%u", r->stride);
}

void lnet_ranges_format(const struct lnet_ranges *ranges,
			struct lnet_text_out *out)
{
	uint32_t value;

	if (lnet_ranges_is_all(ranges)) {
		lnet_text_printf(out, "*");
		return;
	}
	if (lnet_ranges_is_one(ranges, &value)) {
		lnet_text_printf(out, "%u", value);
		return;
	}
	for (unsigned int i = 0; i < ranges->count; i++) {
		lnet_text_printf(out, i == 0 ? "[" : ",");
		format_range(&ranges->range[i], out);
	}
	lnet_text_printf(out, "]");
}
