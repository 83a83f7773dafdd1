/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of NID ranges: grammar, errors, matching, canonical text.
 */
#include "ulnet/nid.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"

static struct ulnet_nidlist *list_of(const char *text)
{
	struct ulnet_text_error err = { 0 };
	struct ulnet_nidlist *list = NULL;

	cr_assert_eq(lnet_nidlist_parse(text, &list, &err), 0, "%s: %zu: %s",
		     text, err.offset, err.what);
	return list;
}

static void check_canonical(const char *in, const char *want)
{
	struct ulnet_nidlist *list = list_of(in);
	char buf[512];
	size_t len;

	len = lnet_nidlist_format(list, buf, sizeof(buf));
	cr_assert_str_eq(buf, want, "%s gave %s", in, buf);
	cr_assert_eq(len, strlen(want));
	lnet_nidlist_free(list);
}

Test(nidlist, canonical)
{
	static const struct {
		const char *in;
		const char *out;
	} good[] = {
		{ "*@tcp", "*@tcp" },
		{ " * @tcp0 ", "*@tcp" },
		{ "*@tcp3", "*@tcp3" },
		{ "*@lo", "*@lo" },
		{ "0@lo", "0@lo" },
		{ "10.0.0.1@tcp", "10.0.0.1@tcp" },
		{ "012.0.0.0x1@tcp", "10.0.0.1@tcp" },
		{ " 10 . 0 .\t0 . 1 @tcp", "10.0.0.1@tcp" },
		{ "10.0.[1-3].* @tcp", "10.0.[1-3].*@tcp" },
		{ "*.*.*.*@tcp", "*.*.*.*@tcp" },
		{ "10.[*].[0-255].[1,2,3]@tcp", "10.*.*.[1-3]@tcp" },
		{ "10.0.0.[1-11/3]@o2ib", "10.0.0.[1-10/3]@o2ib" },
		{ "10.1.2.3/8@tcp", "10.0.0.0/8@tcp" },
		{ "10.255.255.255 / 9 @tcp", "10.128.0.0/9@tcp" },
		{ "10.0.0.1/32@tcp", "10.0.0.1@tcp" },
		{ "255.255.255.255@tcp", "*@tcp" },
		{ "255.255.255.255/32@tcp", "*@tcp" },
		{ "0.0.0.0/1@tcp", "0.0.0.0/1@tcp" },
		{ "fd77::2@tcp", "fd77::2@tcp" },
		{ "fd77::2/128@tcp", "fd77::2@tcp" },
		{ "FD77:0::1:2/0x40@tcp2", "fd77::/64@tcp2" },
		{ "fd77::ffff/125@tcp", "fd77::fff8/125@tcp" },
		{ "::/1@tcp", "::/1@tcp" },
		{ "7@kfi", "7@kfi" },
		{ "0x10@kfi", "16@kfi" },
		{ "[1-3,8]@gni2", "[1-3,8]@gni2" },
		{ "[*]@shm", "*@shm" },
		{ "[0-4294967295]@ptlf", "*@ptlf" },
		{ "4294967295@kfi", "4294967295@kfi" },
		{ "*@tcp[1-3]", "*@tcp[1-3]" },
		{ "*@tcp[3,2,1]", "*@tcp[1-3]" },
		{ "*@tcp[ 1 - 3 ]", "*@tcp[1-3]" },
		{ "*@tcp[0]", "*@tcp" },
		{ "*@tcp[7]", "*@tcp7" },
		{ "*@tcp[*]", "*@tcp[*]" },
		{ "*@tcp[0-65535]", "*@tcp[*]" },
		{ "*@o2ib0x10", "*@o2ib16" },
		{ "*@bxi3f3", "*@bxi3f3" },
		{ "*@bxi3f[3]", "*@bxi3f3" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		check_canonical(good[i].in, good[i].out);
}

Test(nidlist, merge)
{
	static const struct {
		const char *in;
		const char *out;
	} good[] = {
		{ "10.0.0.1@tcp 10.0.0.1@tcp", "10.0.0.1@tcp" },
		{ "10.0.0.1@tcp 10.0.0.2@tcp0", "10.0.0.1@tcp 10.0.0.2@tcp" },
		{ "1.1.1.1@tcp 1.1.1.1@o2ib 2.2.2.2@tcp",
		  "1.1.1.1@tcp 2.2.2.2@tcp 1.1.1.1@o2ib" },
		{ "10.0.0.1@tcp *@tcp 10.0.0.2@tcp", "*@tcp" },
		{ "10.0.0.1@tcp *@tcp1", "10.0.0.1@tcp *@tcp1" },
		{ "10.0.0.[1]@tcp 10.0.0.1/32@tcp[0]", "10.0.0.1@tcp" },
		{ "1.1.1.*@tcp[1-2] 2.2.2.*@tcp[2,1]",
		  "1.1.1.*@tcp[1-2] 2.2.2.*@tcp[1-2]" },
		{ "[1-3]@kfi [2,3,1]@kfi 4@kfi", "[1-3]@kfi 4@kfi" },
		{ "*@tcp\t \t*@o2ib", "*@tcp *@o2ib" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		check_canonical(good[i].in, good[i].out);
}

Test(nidlist, bad)
{
	static const struct {
		const char *text;
		size_t offset;
		const char *what;
	} bad[] = {
		{ "", 0, "the list is empty" },
		{ " \t ", 3, "the list is empty" },
		{ "10.0.0.1", 0, "'@' and a net are missing" },
		{ "*@tcp 5", 6, "'@' and a net are missing" },
		{ "10.0.0.1 10.0.0.2@tcp", 9, "'@' was expected" },
		{ "@tcp", 0, "a number was expected" },
		{ "*@", 2, "unknown type of net" },
		{ "*@ tcp", 2, "unknown type of net" },
		{ "*@ib", 2, "unknown type of net" },
		{ "*@*", 2, "unknown type of net" },
		{ "*@<17:0>", 2, "unknown type of net" },
		{ "*@tcp,*@o2ib", 5, "bad character behind a net" },
		{ "*@tcpx", 5, "bad character behind a net" },
		{ "*@tcp*1", 6, "bad character behind a net" },
		{ "*@tcp[1]2", 8, "bad character behind a net" },
		{ "*@tcp3x", 6, "bad digit in a number" },
		{ "*@tcp@tcp", 5, "bad character behind a net" },
		{ "*@tcp65536", 5, "number is not within 0..65535" },
		{ "*@tcp[1-65536]", 8, "number is not within 0..65535" },
		{ "*@tcp[", 6, "a number was expected" },
		{ "*@tcp]", 5, "bad character behind a net" },
		{ "*@lo0", 4, "this net has no number" },
		{ "*@lo[0]", 4, "this net has no number" },
		{ "*@tcp[3-1]", 6, "range low end is above its high end" },
		{ "**@tcp", 1, "'.' was expected" },
		{ "10.0.0@tcp", 6, "'.' was expected" },
		{ "10.0.0.@tcp", 7, "a number was expected" },
		{ "10.0.0.1.2@tcp", 8, "'@' was expected" },
		{ "10.0.0.256@tcp", 7, "number is not within 0..255" },
		{ "10.0.0.1-3@tcp", 8, "a range needs brackets" },
		{ "10.0.0.[3-1]@tcp", 8,
		  "range low end is above its high end" },
		{ "10.0.0.[1-3/0]@tcp", 12, "the stride of a range is 0" },
		{ "10.0.0.[1-3@tcp", 11, "',' or ']' was expected" },
		{ "10.0.0.1]@tcp", 8, "'@' was expected" },
		{ "10.0.0.[[1]]@tcp", 8, "a number was expected" },
		{ "10.0.0.1@tcp 10.0.0.[1-300]@tcp", 23,
		  "number is not within 0..255" },
		{ "10.0.0.0/0@tcp", 9, "number is not within 1..32" },
		{ "10.0.0.0/33@tcp", 9, "number is not within 1..32" },
		{ "10.0.0.0/@tcp", 9, "a number was expected" },
		{ "10.0.0.0/8/8@tcp", 10, "'@' was expected" },
		{ "10.0.0/8@tcp", 0, "bad IP address" },
		{ "10.0.*.0/8@tcp", 0, "bad IP address" },
		{ "*/8@tcp", 0, "bad IP address" },
		{ "/8@tcp", 0, "bad IP address" },
		{ "::/0@tcp", 3, "number is not within 1..128" },
		{ "::/129@tcp", 3, "number is not within 1..128" },
		{ "fd77:::1@tcp", 0, "bad IP address" },
		{ "fd77::[1-3]@tcp", 0, "bad IP address" },
		{ "11111111111111111111111111111111111111111111111111:@tcp", 0,
		  "bad IP address" },
		{ "fd77::1@kfi", 0, "a number was expected" },
		{ "10.0.0.1@kfi", 2, "'@' was expected" },
		{ "5/2@kfi", 1, "'@' was expected" },
		{ "5-6@kfi", 1, "a range needs brackets" },
		{ "4294967296@kfi", 0, "number is not within 0..4294967295" },
		{ "5@tcp", 1, "'.' was expected" },
		{ "\xff@tcp", 0, "a number was expected" },
		{ "*@tcp\x01", 5, "bad character behind a net" },
		{ "*@tcp\n*@o2ib", 5, "bad character behind a net" },
	};
	struct ulnet_nidlist *list = NULL;
	struct ulnet_text_error err;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		cr_assert_eq(lnet_nidlist_parse(bad[i].text, &list, &err),
			     -EINVAL, "%s", bad[i].text);
		cr_assert_str_eq(err.what, bad[i].what, "%s: %s", bad[i].text,
				 err.what);
		cr_assert_eq(err.offset, bad[i].offset, "%s: %zu", bad[i].text,
			     err.offset);
		cr_assert_eq(lnet_nidlist_parse(bad[i].text, &list, NULL),
			     -EINVAL);
	}
	cr_assert_null(list);
	lnet_nidlist_free(NULL);
}

static void check_match(const char *text, const char *nid_text, bool want)
{
	struct ulnet_nidlist *list = list_of(text);
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(nid_text, &nid), 0, "%s", nid_text);
	cr_assert_eq(lnet_nidlist_match(list, &nid), want, "%s in %s", nid_text,
		     text);
	lnet_nidlist_free(list);
}

Test(nidlist, match)
{
	static const struct {
		const char *list;
		const char *nid;
		bool want;
	} cases[] = {
		{ "*@tcp", "10.0.0.1@tcp", true },
		{ "*@tcp", "fd77::2@tcp", true },
		{ "*@tcp", "1:2@<2:0>", true },
		{ "*@tcp", "10.0.0.1@tcp1", false },
		{ "*@tcp", "10.0.0.1@o2ib", false },
		{ "*@tcp", "<?>", false },
		{ "*@tcp[*]", "10.0.0.1@tcp65535", true },
		{ "*@tcp[1-7/3]", "10.0.0.1@tcp4", true },
		{ "*@tcp[1-7/3]", "10.0.0.1@tcp5", false },
		{ "255.255.255.255@tcp", "fd77::2@tcp", true },
		{ "*.*.*.*@tcp", "10.0.0.1@tcp", true },
		{ "*.*.*.*@tcp", "fd77::2@tcp", false },
		{ "10.0.[1-3].*@tcp", "10.0.2.200@tcp", true },
		{ "10.0.[1-3].*@tcp", "10.0.4.200@tcp", false },
		{ "10.0.[1-3].*@tcp", "10.1.2.200@tcp", false },
		{ "10.0.0.[2-10/4]@tcp", "10.0.0.2@tcp", true },
		{ "10.0.0.[2-10/4]@tcp", "10.0.0.10@tcp", true },
		{ "10.0.0.[2-10/4]@tcp", "10.0.0.8@tcp", false },
		{ "10.0.0.1@tcp", "10.0.0.1@tcp", true },
		{ "10.0.0.1@tcp", "10.0.0.2@tcp", false },
		{ "10.0.0.0/8@tcp", "10.255.0.1@tcp", true },
		{ "10.0.0.0/8@tcp", "11.0.0.1@tcp", false },
		{ "10.0.0.0/8@tcp", "a00::1@tcp", false },
		{ "10.0.0.128/25@tcp", "10.0.0.129@tcp", true },
		{ "10.0.0.128/25@tcp", "10.0.0.127@tcp", false },
		{ "fd77::/64@tcp", "fd77::1:2:3:4@tcp", true },
		{ "fd77::/64@tcp", "fd77:0:0:1::4@tcp", false },
		{ "fd77::/64@tcp", "253.119.0.0@tcp", false },
		{ "fd77::2@tcp", "fd77::2@tcp", true },
		{ "fd77::2@tcp", "fd77::3@tcp", false },
		{ "fd77::2@tcp", "fd77::2@o2ib", false },
		{ "[5-9/2]@kfi", "7@kfi", true },
		{ "[5-9/2]@kfi", "8@kfi", false },
		{ "7@kfi", "7:0@<16:0>", false },
		{ "*@lo", "0@lo", true },
		{ "0@lo", "0@lo", true },
		{ "*@lo", "0@<9:1>", false },
		{ "1.1.1.1@tcp 2.2.2.2@o2ib 3.3.3.3@tcp", "3.3.3.3@tcp", true },
		{ "1.1.1.1@tcp 2.2.2.2@o2ib 3.3.3.3@tcp", "2.2.2.2@tcp",
		  false },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		check_match(cases[i].list, cases[i].nid, cases[i].want);
}

/* Returns a text with @count different nidranges. */
static char *long_text(size_t count)
{
	size_t size = count * 32 + 1;
	char *text = malloc(size);
	size_t len = 0;
	size_t i;

	cr_assert_not_null(text);
	for (i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, size - len,
					"10.0.%zu.%zu@tcp ", i / 256, i % 256);
	return text;
}

Test(nidlist, bounds)
{
	struct ulnet_text_error err;
	struct ulnet_nidlist *list;
	char *text = long_text(1024);

	list = list_of(text);
	cr_assert_eq(lnet_nidlist_format(list, NULL, 0), strlen(text) - 1);
	lnet_nidlist_free(list);
	free(text);
	text = long_text(1025);
	cr_assert_eq(lnet_nidlist_parse(text, &list, &err), -EINVAL);
	cr_assert_str_eq(err.what, "more than 1024 NID ranges");
	cr_assert_eq(text + err.offset, strstr(text, "10.0.4.0@"));
	free(text);
}

Test(nidlist, hostile)
{
	static const char bytes[] = "[]@/:.*-,0x \t1";
	static char text[200001];
	struct ulnet_nidlist *list;
	size_t i;

	for (i = 0; i < sizeof(bytes) - 1; i++) {
		memset(text, bytes[i], sizeof(text) - 1);
		cr_assert_eq(lnet_nidlist_parse(text, &list, NULL), -EINVAL);
		memcpy(text + sizeof(text) - 6, "@tcp3", 5);
		cr_assert_eq(lnet_nidlist_parse(text, &list, NULL), -EINVAL);
	}
}

Test(nidlist, format_bounds)
{
	static const char want[] = "10.0.[1-3].*@tcp *@o2ib";
	struct ulnet_nidlist *list = list_of(want);
	char buf[64];
	size_t size;

	cr_assert_eq(lnet_nidlist_format(list, NULL, 0), strlen(want));
	for (size = 1; size <= sizeof(want); size++) {
		memset(buf, 'x', sizeof(buf));
		cr_assert_eq(lnet_nidlist_format(list, buf, size),
			     strlen(want));
		cr_assert_eq(strlen(buf), size - 1);
		cr_assert_eq(strncmp(buf, want, size - 1), 0);
		cr_assert_eq(buf[size], 'x');
	}
	lnet_nidlist_free(list);
}

static void random_text(unsigned int *seed, char *text, size_t size)
{
	static const char *const addrs[] = {
		"*",	     "10.0.0.1",	"10.[1,3-9/2].*.7",
		"fd77::/24", "*.*.*.[200-255]", "10.9.8.7/13",
		"fd77::9",   "1.2.3.[4-5,6]",
	};
	static const char *const nets[] = { "tcp", "tcp0", "tcp[1-2]",
					    "o2ib7" };
	size_t n = 1 + (size_t)rand_r(seed) % 5;
	size_t len = 0;

	while (n--)
		len += (size_t)snprintf(
			text + len, size - len, " %s@%s",
			addrs[(size_t)rand_r(seed) % ARRAY_SIZE(addrs)],
			nets[(size_t)rand_r(seed) % ARRAY_SIZE(nets)]);
}

Test(nidlist, format_is_fixpoint)
{
	struct ulnet_nidlist *list;
	unsigned int seed = 3;
	char text[512];
	char once[512];
	int i;

	for (i = 0; i < 20000; i++) {
		random_text(&seed, text, sizeof(text));
		list = list_of(text);
		lnet_nidlist_format(list, once, sizeof(once));
		lnet_nidlist_free(list);
		check_canonical(once, once);
	}
}

/* ---- every NID ---- */

#define EXPAND_MAX 600

static size_t expand(const char *text, struct ulnet_nid *nids)
{
	struct ulnet_nidlist *list = list_of(text);
	size_t n = SIZE_MAX;

	cr_assert_eq(lnet_nidlist_expand(list, nids, EXPAND_MAX, &n), 0, "%s",
		     text);
	/* The room that is asked for is exactly what is needed. */
	cr_assert_eq(lnet_nidlist_expand(list, nids, n, &n), 0);
	if (n)
		cr_assert_eq(lnet_nidlist_expand(list, nids, n - 1, &n),
			     -E2BIG);
	lnet_nidlist_expand(list, nids, n, &n);
	lnet_nidlist_free(list);
	return n;
}

Test(nidlist, expand)
{
	static const struct {
		const char *text, *nids;
	} cases[] = {
		{ "10.0.0.1@tcp", "10.0.0.1@tcp" },
		{ "10.0.0.[1-3]@tcp", "10.0.0.1@tcp 10.0.0.2@tcp "
				      "10.0.0.3@tcp" },
		{ "10.0.[1,2].[4-9/5]@tcp2", "10.0.1.4@tcp2 10.0.1.9@tcp2 "
					     "10.0.2.4@tcp2 10.0.2.9@tcp2" },
		{ "10.0.0.1@tcp[1,7]", "10.0.0.1@tcp1 10.0.0.1@tcp7" },
		{ "10.0.0.9/31@o2ib", "10.0.0.8@o2ib 10.0.0.9@o2ib" },
		{ "fd77::fe/127@tcp", "fd77::fe@tcp fd77::ff@tcp" },
		{ "[4294967294-4294967295]@kfi",
		  "4294967294@kfi 4294967295@kfi" },
		{ "255.255.255.254/31@tcp", "255.255.255.254@tcp" },
		{ "0@lo 10.0.0.1@tcp", "0@lo 10.0.0.1@tcp" },
		/* A NID that is named twice is listed once. */
		{ "[1-9/2,3-9/3]@kfi", "1@kfi 3@kfi 5@kfi 7@kfi 9@kfi 6@kfi" },
		{ "10.0.0.[1-2]@tcp 10.0.0.[2-3]@tcp 10.0.0.0/30@tcp[0-1]",
		  "10.0.0.1@tcp 10.0.0.2@tcp 10.0.0.3@tcp 10.0.0.0@tcp "
		  "10.0.0.0@tcp1 10.0.0.1@tcp1 10.0.0.2@tcp1 10.0.0.3@tcp1" },
	};
	struct ulnet_nid nids[EXPAND_MAX];
	char text[512], nid[LNET_NIDSTR_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t n = expand(cases[i].text, nids), len = 0;

		text[0] = '\0';
		for (size_t k = 0; k < n; k++)
			len += (size_t)sprintf(
				text + len, "%s%s", k ? " " : "",
				lnet_nid_format(&nids[k], nid, sizeof(nid)));
		cr_assert_str_eq(text, cases[i].nids, "%s: %s", cases[i].text,
				 text);
	}
	cr_assert_eq(expand("10.0.0.0/24@tcp 10.0.[0-1].*@tcp", nids), 512u);
}

Test(nidlist, expand_too_many)
{
	static const char *const texts[] = {
		"*@tcp",
		"*@lo",
		"*@kfi",
		"*.*.*.*@tcp",
		"0.0.0.0/1@tcp",
		"fd77::/64@tcp",
		"[0-4294967294]@kfi",
		"10.0.0.1@tcp[*]",
		"10.0.0.0/8@tcp",
		"10.0.[0-2].*@tcp",
	};
	struct ulnet_nid nids[EXPAND_MAX];
	size_t n = 7;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct ulnet_nidlist *list = list_of(texts[i]);

		cr_assert_eq(lnet_nidlist_expand(list, nids, EXPAND_MAX, &n),
			     -E2BIG, "%s", texts[i]);
		cr_assert_eq(n, 7u);
		lnet_nidlist_free(list);
	}
}
