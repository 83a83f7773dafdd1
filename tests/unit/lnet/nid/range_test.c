/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers, ranges, lists of ranges: what parses, where errors are, what
 * matches, what is printed.
 */
#include "lnet/nid/range.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct lnet_text text_of(const char *text, struct ulnet_text_error *err)
{
	memset(err, 0, sizeof(*err));
	return lnet_text_of(text, strlen(text), err);
}

Test(range, numbers)
{
	static const struct {
		const char *text;
		uint32_t value;
		size_t rest; /* where the cursor stops */
	} good[] = {
		{ "0", 0, 1 },
		{ "7", 7, 1 },
		{ "007", 7, 3 },
		{ "010", 8, 3 },
		{ "00", 0, 2 },
		{ "0x10", 16, 4 },
		{ "0XfF", 255, 4 },
		{ "4294967295", UINT32_MAX, 10 },
		{ "0xffffffff", UINT32_MAX, 10 },
		{ "037777777777", UINT32_MAX, 12 },
		{ "0000000000000000000000000000000001", 1, 34 },
		{ "12-3", 12, 2 },
		{ "12 ", 12, 2 },
		{ "12]", 12, 2 },
	};
	struct ulnet_text_error err;
	struct lnet_text t;
	uint32_t value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		t = text_of(good[i].text, &err);
		cr_assert_eq(lnet_text_number(&t, 0, UINT32_MAX, &value), 0,
			     "%s: %s", good[i].text, err.what);
		cr_assert_eq(value, good[i].value, "%s", good[i].text);
		cr_assert_eq((size_t)(t.p - t.text), good[i].rest, "%s",
			     good[i].text);
	}
}

Test(range, bad_numbers)
{
	static const struct {
		const char *text;
		size_t offset;
		const char *what;
	} bad[] = {
		{ "", 0, "a number was expected" },
		{ " 1", 0, "a number was expected" },
		{ "-1", 0, "a number was expected" },
		{ "+1", 0, "a number was expected" },
		{ "x", 0, "a number was expected" },
		{ "0x", 2, "a number was expected" },
		{ "0xg", 2, "a number was expected" },
		{ "08", 1, "bad digit in a number" },
		{ "12a", 2, "bad digit in a number" },
		{ "0x1h", 3, "bad digit in a number" },
		{ "1_0", 1, "bad digit in a number" },
		{ "2", 0, "number is not within 3..100" },
		{ "101", 0, "number is not within 3..100" },
		{ "4294967299", 0, "number is not within 3..100" },
		{ "18446744073709551620", 0, "number is not within 3..100" },
		{ "\xff", 0, "a number was expected" },
	};
	struct ulnet_text_error err;
	struct lnet_text t;
	uint32_t value = 55;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		t = text_of(bad[i].text, &err);
		cr_assert_eq(lnet_text_number(&t, 3, 100, &value), -EINVAL,
			     "%s", bad[i].text);
		cr_assert_str_eq(err.what, bad[i].what);
		cr_assert_eq(err.offset, bad[i].offset, "%s", bad[i].text);
	}
	cr_assert_eq(value, 55);
}

Test(range, no_error_wanted)
{
	struct lnet_text t = lnet_text_of("x", 1, NULL);
	uint32_t value;

	cr_assert_eq(lnet_text_number(&t, 0, 1, &value), -EINVAL);
}

Test(range, ends_where_told)
{
	struct lnet_text t = lnet_text_of("1234", 2, NULL);
	uint32_t value;

	cr_assert_eq(lnet_text_number(&t, 0, UINT32_MAX, &value), 0);
	cr_assert_eq(value, 12);
	cr_assert(lnet_text_at_end(&t));
	t = lnet_text_of("0x1", 1, NULL);
	cr_assert_eq(lnet_text_number(&t, 0, UINT32_MAX, &value), 0);
	cr_assert_eq(value, 0);
}

static void check_canonical(const char *in, uint32_t min, uint32_t max,
			    const char *want)
{
	struct ulnet_text_error err;
	struct lnet_text t = text_of(in, &err);
	struct lnet_text_out out;
	struct lnet_ranges r;
	char buf[256];

	out = (struct lnet_text_out){ buf, sizeof(buf), 0 };
	cr_assert_eq(lnet_ranges_parse(&t, min, max, &r), 0, "%s: %s", in,
		     err.what);
	cr_assert(lnet_text_at_end(&t), "%s", in);
	lnet_ranges_format(&r, &out);
	cr_assert_str_eq(buf, want, "%s gave %s", in, buf);
	cr_assert_eq(out.len, strlen(want));
	lnet_ranges_free(&r);
	cr_assert_null(r.range);
}

Test(range, canonical)
{
	static const struct {
		const char *in;
		const char *out;
	} good[] = {
		{ "7", "7" },
		{ " 7\t", "7" },
		{ "*", "*" },
		{ "[*]", "*" },
		{ "[ * ]", "*" },
		{ "[7]", "7" },
		{ "[7-7]", "7" },
		{ "[0-255]", "*" },
		{ "[0-100,101-255]", "*" },
		{ "[0-100,50-255]", "*" },
		{ "[*,7,9-20/2]", "*" },
		{ "[0-254]", "[0-254]" },
		{ "[1-3]", "[1-3]" },
		{ "[ 1 - 3 , 0x10 - 020 ]", "[1-3,16]" },
		{ "[1,2,3]", "[1-3]" },
		{ "[3,1,2]", "[1-3]" },
		{ "[5,1]", "[1,5]" },
		{ "[5,5,5]", "5" },
		{ "[1-10/4]", "[1-9/4]" },
		{ "[1-9 / 4]", "[1-9/4]" },
		{ "[1-9/4,1-9/4]", "[1-9/4]" },
		{ "[1-9/4,1-9]", "[1-9]" },
		{ "[1-9/4,1-9/2]", "[1-9/2]" },
		{ "[1-9/2,1-9/3]", "[1-9/2,1-7/3]" },
		{ "[0-8/4,4]", "[0-8/4]" },
		{ "[0-4/4,0-1,2-9]", "[0-9]" },
		{ "[0-20/4,0,1]", "[0-20/4,1]" },
		{ "[5-25/5,1-5,6-30]", "[1-30]" },
		{ "[1-4/9]", "1" },
		{ "[1-4/4294967295]", "1" },
		{ "[8-20/4,1-3]", "[1-3,8-20/4]" },
		{ "[1-5,2-4]", "[1-5]" },
		{ "[1-5,2-4/2]", "[1-5]" },
		{ "[255,254]", "[254-255]" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		check_canonical(good[i].in, 0, 255, good[i].out);
}

Test(range, canonical_bounds)
{
	check_canonical("*", 1, 1, "*");
	check_canonical("1", 1, 1, "*");
	check_canonical("[0-4294967295]", 0, UINT32_MAX, "*");
	check_canonical("[4294967295,0-4294967294]", 0, UINT32_MAX, "*");
	check_canonical("[0-4294967295/4294967295]", 0, UINT32_MAX,
			"[0-4294967295/4294967295]");
	check_canonical("[0-4294967295/2]", 0, UINT32_MAX, "[0-4294967294/2]");
}

Test(range, bad_lists)
{
	static const struct {
		const char *text;
		size_t offset;
		const char *what;
	} bad[] = {
		{ "", 0, "a number was expected" },
		{ "1-3", 1, "a range needs brackets" },
		{ "1 - 3", 2, "a range needs brackets" },
		{ "[", 1, "a number was expected" },
		{ "[]", 1, "a number was expected" },
		{ "[1", 2, "',' or ']' was expected" },
		{ "[1,", 3, "a number was expected" },
		{ "[1,]", 3, "a number was expected" },
		{ "[,1]", 1, "a number was expected" },
		{ "[1 2]", 3, "',' or ']' was expected" },
		{ "[[1]]", 1, "a number was expected" },
		{ "[1-]", 3, "a number was expected" },
		{ "[-3]", 1, "a number was expected" },
		{ "[1-3/]", 5, "a number was expected" },
		{ "[1/2]", 2, "',' or ']' was expected" },
		{ "[*-3]", 2, "',' or ']' was expected" },
		{ "[1-*]", 3, "a number was expected" },
		{ "[1-3-5]", 4, "',' or ']' was expected" },
		{ "[1-3/2/2]", 6, "',' or ']' was expected" },
		{ "[3-1]", 1, "range low end is above its high end" },
		{ "[0,9-8]", 3, "range low end is above its high end" },
		{ "[1-3/0]", 5, "the stride of a range is 0" },
		{ "[1-3/0x100000000]", 5,
		  "number is not within 0..4294967295" },
		{ "[1-256]", 3, "number is not within 0..255" },
		{ "256", 0, "number is not within 0..255" },
		{ "[1\n]", 2, "',' or ']' was expected" },
		{ "]", 0, "a number was expected" },
	};
	struct ulnet_text_error err;
	struct lnet_ranges r = { 0 };
	struct lnet_text t;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		t = text_of(bad[i].text, &err);
		cr_assert_eq(lnet_ranges_parse(&t, 0, 255, &r), -EINVAL, "%s",
			     bad[i].text);
		cr_assert_str_eq(err.what, bad[i].what);
		cr_assert_eq(err.offset, bad[i].offset, "%s: %zu", bad[i].text,
			     err.offset);
	}
	cr_assert_null(r.range);
}

/* The cursor stops behind ']', so that a blank can follow as a separator. */
Test(range, list_keeps_blanks)
{
	struct ulnet_text_error err;
	struct lnet_text t = text_of("[1-3] 5", &err);
	struct lnet_ranges r;

	cr_assert_eq(lnet_ranges_parse_list(&t, 0, 9, &r), 0);
	cr_assert_str_eq(t.p, " 5");
	lnet_ranges_free(&r);
	t = text_of("5", &err);
	cr_assert_eq(lnet_ranges_parse_list(&t, 0, 9, &r), -EINVAL);
	cr_assert_str_eq(err.what, "'[' was expected");
}

static int parse_many(unsigned int count, struct ulnet_text_error *err)
{
	char text[LNET_RANGES_MAX * 8] = "[";
	struct lnet_text_out out = { text, sizeof(text), 1 };
	struct lnet_ranges r;
	struct lnet_text t;
	unsigned int i;
	int rc;

	for (i = 0; i < count; i++)
		lnet_text_printf(&out, i ? ",%u" : "%u", i * 2);
	lnet_text_printf(&out, "]");
	t = text_of(text, err);
	rc = lnet_ranges_parse(&t, 0, UINT32_MAX, &r);
	if (rc)
		return rc;
	cr_assert_eq(r.count, count);
	lnet_ranges_free(&r);
	return 0;
}

Test(range, too_many)
{
	struct ulnet_text_error err;

	cr_assert_eq(parse_many(LNET_RANGES_MAX, &err), 0);
	cr_assert_eq(parse_many(LNET_RANGES_MAX + 1, &err), -EINVAL);
	cr_assert_str_eq(err.what, "more than 128 ranges in brackets");
}

Test(range, match)
{
	struct ulnet_text_error err;
	struct lnet_text t = text_of("[3,10-20/4,250-255]", &err);
	struct lnet_ranges r;
	uint32_t v;
	bool want;

	cr_assert_eq(lnet_ranges_parse(&t, 0, 255, &r), 0);
	for (v = 0; v < 300; v++) {
		want = v == 3 || v == 10 || v == 14 || v == 18 ||
		       (v >= 250 && v <= 255);
		cr_assert_eq(lnet_ranges_match(&r, v), want, "%u", v);
	}
	lnet_ranges_free(&r);
	cr_assert_not(lnet_ranges_match(&r, 3));
}

/* Joining ranges never changes what they match, and joining again changes
 * nothing. */
Test(range, joining_keeps_matches)
{
	unsigned int seed = 7;
	struct lnet_range in[6];
	char text[256];
	struct lnet_text_out out;
	struct ulnet_text_error err;
	struct lnet_ranges r;
	struct lnet_text t;
	int round;
	uint32_t v;
	size_t i;
	bool want;

	for (round = 0; round < 3000; round++) {
		out = (struct lnet_text_out){ text, sizeof(text), 0 };
		for (i = 0; i < ARRAY_SIZE(in); i++) {
			in[i].lo = (uint32_t)rand_r(&seed) % 32;
			in[i].hi = in[i].lo + (uint32_t)rand_r(&seed) % 12;
			in[i].stride = 1 + (uint32_t)rand_r(&seed) % 4;
			lnet_text_printf(&out, "%c%u-%u/%u", i ? ',' : '[',
					 in[i].lo, in[i].hi, in[i].stride);
		}
		lnet_text_printf(&out, "]");
		t = text_of(text, &err);
		cr_assert_eq(lnet_ranges_parse(&t, 0, 63, &r), 0, "%s", text);
		for (v = 0; v < 64; v++) {
			want = false;
			for (i = 0; i < ARRAY_SIZE(in); i++)
				want |= lnet_range_match(&in[i], v);
			cr_assert_eq(lnet_ranges_match(&r, v), want, "%s %u",
				     text, v);
		}
		out = (struct lnet_text_out){ text, sizeof(text), 0 };
		lnet_ranges_format(&r, &out);
		check_canonical(text, 0, 63, text);
		lnet_ranges_free(&r);
	}
}

Test(range, sets)
{
	struct ulnet_text_error err;
	struct lnet_text t = text_of("[1-1]", &err);
	struct lnet_ranges a;
	struct lnet_ranges b;
	uint32_t value = 0;

	cr_assert_eq(lnet_ranges_parse(&t, 0, 9, &a), 0);
	cr_assert_eq(lnet_ranges_one(0, 9, 1, &b), 0);
	cr_assert(lnet_ranges_eq(&a, &b));
	cr_assert(lnet_ranges_is_one(&a, &value));
	cr_assert_eq(value, 1);
	cr_assert_not(lnet_ranges_is_all(&a));
	lnet_ranges_free(&b);
	cr_assert_not(lnet_ranges_eq(&a, &b));
	cr_assert_eq(lnet_ranges_one(0, 10, 1, &b), 0);
	cr_assert_not(lnet_ranges_eq(&a, &b));
	lnet_ranges_free(&a);
	lnet_ranges_free(&b);
}

Test(range, printing_never_overflows)
{
	char buf[8] = "xxxxxxx";
	struct lnet_text_out out = { buf, 4, 0 };

	lnet_text_printf(&out, "%s", "ab");
	lnet_text_printf(&out, "%s", "cdef");
	lnet_text_printf(&out, "%s", "gh");
	cr_assert_str_eq(buf, "abc");
	cr_assert_eq(buf[4], 'x');
	cr_assert_eq(out.len, 8);
	out = (struct lnet_text_out){ NULL, 0, 0 };
	lnet_text_printf(&out, "%s", "abc");
	cr_assert_eq(out.len, 3);
}
