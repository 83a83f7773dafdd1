/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "rpc/context/annex.h"
#include "rpc/wire/wire.pb-c.h"

#define BODY "the body"

static struct annex some_annex(void)
{
	static const char bytes[] = "\0\1\n";
	const struct ulrpc_details d = { "ulrpc.test.Why", "because", 7 };
	struct annex a;

	annex_init(&a);
	cr_assert_eq(annex_add(&a, "tenant", "blue", 4), 0);
	cr_assert_eq(annex_add(&a, "key-bin", bytes, 3), 0);
	cr_assert_eq(annex_add(&a, "empty", NULL, 0), 0);
	cr_assert_eq(annex_add_details(&a, &d), 0);
	return a;
}

/* Returns a body with an annex, to be freed. */
static uint8_t *some_body(uint32_t error, size_t *length_p)
{
	static const uint8_t why[] = "no such key";
	struct annex_failure failure = { .error = error,
					 .text = { why, why + 11 } };
	struct annex a = some_annex();
	uint8_t *body =
		annex_body_new(&a, &failure, BODY, strlen(BODY), length_p);

	cr_assert(body);
	annex_fini(&a);
	return body;
}

static void pair_is(const struct ulrpc_metadata *m, const char *name,
		    const char *value, size_t length)
{
	cr_expect_str_eq(m->name, name);
	cr_assert_eq(m->length, length);
	cr_expect_arr_eq(m->value, value, length);
	cr_expect_eq(((const char *)m->value)[length], 0);
}

Test(annex, there_and_back)
{
	size_t length;
	uint8_t *bytes = some_body(ENOENT, &length);
	struct wire_view body = { bytes, bytes + length }, annex;
	struct annex_failure failure;
	struct ulrpc_details d;
	struct ulrpc_metadata m;

	cr_assert(annex_split(&body, &annex));
	cr_assert_eq(view_length(body), strlen(BODY));
	cr_expect_arr_eq(body.p, BODY, strlen(BODY));
	cr_assert_eq(annex_pair(annex, 0, &m), 0);
	pair_is(&m, "tenant", "blue", 4);
	cr_assert_eq(annex_pair(annex, 1, &m), 0);
	pair_is(&m, "key-bin", "\0\1\n", 3);
	cr_assert_eq(annex_pair(annex, 2, &m), 0);
	pair_is(&m, "empty", "", 0);
	cr_expect_eq(annex_pair(annex, 3, &m), -ENOENT);
	cr_assert_eq(annex_find(annex, "key-bin", &m), 0);
	pair_is(&m, "key-bin", "\0\1\n", 3);
	cr_expect_eq(annex_find(annex, "key", &m), -ENOENT);
	cr_assert_eq(annex_details(annex, &d), 0);
	cr_expect_str_eq(d.type, "ulrpc.test.Why");
	cr_assert_eq(d.length, 7);
	cr_expect_arr_eq(d.bytes, "because", 7);
	failure = annex_failure(annex);
	cr_expect_eq(failure.error, ENOENT);
	cr_assert_eq(view_length(failure.text), 11);
	cr_expect_arr_eq(failure.text.p, "no such key", 11);
	free(bytes);
}

/* A varint of any number of bytes. */
Test(annex, all_errors_fit)
{
	for (unsigned int bits = 0; bits < 32; bits++) {
		uint32_t error = UINT32_MAX >> bits;
		size_t length;
		uint8_t *bytes = some_body(error, &length);
		struct wire_view body = { bytes, bytes + length }, annex;

		cr_assert(annex_split(&body, &annex));
		cr_expect_eq(view_length(body), strlen(BODY));
		cr_expect_eq(annex_failure(annex).error, error);
		free(bytes);
	}
}

Test(annex, none_is_nothing)
{
	struct annex a;
	uint8_t room[4];

	annex_init(&a);
	cr_expect_eq(annex_size(&a), 0);
	cr_expect_eq(annex_put(room, &a), room);
	annex_fini(&a);
}

/* The bytes are those of wire.proto. */
Test(annex, is_a_message_of_protobuf)
{
	size_t length;
	uint8_t *bytes = some_body(7, &length);
	struct wire_view body = { bytes, bytes + length }, annex;
	Ulrpc__Wire__Annex *m;

	cr_assert(annex_split(&body, &annex));
	m = ulrpc__wire__annex__unpack(NULL, view_length(annex), annex.p);
	cr_assert(m);
	cr_assert_eq(m->n_pair, 3);
	cr_assert_eq(m->pair[0]->name.len, 7);
	cr_expect_str_eq((char *)m->pair[0]->name.data, "tenant");
	cr_assert_eq(m->pair[0]->value.len, 5);
	cr_expect_str_eq((char *)m->pair[0]->value.data, "blue");
	cr_expect_eq(m->pair[1]->value.len, 4);
	cr_expect_eq(m->error, 7);
	cr_expect_eq(m->text.len, 11);
	cr_expect_str_eq((char *)m->type.data, "ulrpc.test.Why");
	cr_expect_eq(m->details.len, 7);
	ulrpc__wire__annex__free_unpacked(m, NULL);
	free(bytes);
}

/* ---- what is refused before it is sent ---- */

Test(annex, bad_pairs)
{
	static const struct {
		const char *name, *value;
		size_t length;
	} bad[] = {
		{ NULL, "v", 1 },      { "", "v", 1 },
		{ "Upper", "v", 1 },   { "a b", "v", 1 },
		{ "colon:", "v", 1 },  { "m\xc3\xb6re", "v", 1 },
		{ "n", NULL, 1 },      { "n", "line\n", 5 },
		{ "n", "\033[1m", 4 }, { "n", "\x7f", 1 },
		{ "n", "a\0b", 3 },    { "-bin", "\n", 1 },
	};
	char name[ULRPC_METADATA_NAME + 1];
	struct annex a;

	annex_init(&a);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(
			annex_add(&a, bad[i].name, bad[i].value, bad[i].length),
			-EINVAL, "%zu", i);
	memset(name, 'n', sizeof(name));
	name[ULRPC_METADATA_NAME] = '\0';
	cr_expect_eq(annex_add(&a, name, "v", 1), -EINVAL);
	cr_expect_eq(annex_size(&a), 0);
	cr_expect_eq(annex_add(&a, name + 1, "\xc3\xa4 ok", 5), 0);
	annex_fini(&a);
}

Test(annex, bad_details)
{
	struct ulrpc_details d = { "a.B", "x", 1 };
	struct annex a;

	annex_init(&a);
	d.type = NULL;
	cr_expect_eq(annex_add_details(&a, &d), -EINVAL);
	d.type = "";
	cr_expect_eq(annex_add_details(&a, &d), -EINVAL);
	d.type = "a B";
	cr_expect_eq(annex_add_details(&a, &d), -EINVAL);
	d = (struct ulrpc_details){ "a.B", NULL, 1 };
	cr_expect_eq(annex_add_details(&a, &d), -EINVAL);
	d = (struct ulrpc_details){ "a.B", NULL, 0 };
	cr_expect_eq(annex_add_details(&a, &d), 0);
	cr_expect_eq(annex_add_details(&a, &d), -EALREADY);
	annex_fini(&a);
}

/* Requirement J4: bounded, in number and bytes. */
Test(annex, as_much_as_is_allowed)
{
	static uint8_t value[ULRPC_METADATA_MAX + 1];
	struct wire_view body, annex;
	struct ulrpc_metadata m;
	size_t most = ULRPC_METADATA_MAX, length;
	struct annex a;
	uint8_t *bytes;

	annex_init(&a);
	for (unsigned int i = 0; i < ULRPC_METADATA_PAIRS; i++)
		cr_assert_eq(annex_add(&a, "n", "v", 1), 0);
	cr_expect_eq(annex_add(&a, "n", "v", 1), -E2BIG);
	annex_fini(&a);

	annex_init(&a);
	cr_expect_eq(annex_add(&a, "n-bin", value, sizeof(value)), -EMSGSIZE);
	cr_expect_eq(annex_add(&a, "n-bin", value, SIZE_MAX), -EMSGSIZE);
	while (annex_add(&a, "n-bin", value, most))
		most--;
	cr_expect_eq(annex_add(&a, "n", "v", 1), -EMSGSIZE);
	cr_expect_gt(most, ULRPC_METADATA_MAX - 20);
	bytes = annex_body_new(&a, &(struct annex_failure){ 0 }, NULL, 0,
			       &length);
	body = (struct wire_view){ bytes, bytes + length };
	cr_assert(annex_split(&body, &annex));
	cr_expect_eq(body.p, body.end);
	cr_assert_eq(annex_find(annex, "n-bin", &m), 0);
	cr_expect_eq(m.length, most);
	annex_fini(&a);
	free(bytes);
}

/* ---- what a peer may send ---- */

/* Reads all of an annex, of which annex_split() says that it is good. */
static void read_all(struct wire_view annex)
{
	struct ulrpc_details d;
	struct ulrpc_metadata m;
	unsigned int n = 0;

	while (!annex_pair(annex, n, &m)) {
		cr_assert_lt(strlen(m.name), ULRPC_METADATA_NAME);
		cr_assert_eq(((const char *)m.value)[m.length], 0);
		n++;
	}
	cr_assert_leq(n, ULRPC_METADATA_PAIRS);
	if (!annex_details(annex, &d))
		cr_assert_gt(strlen(d.type), 0);
	(void)annex_failure(annex);
}

/* Tries @length bytes, in memory that ends with them. */
static bool try(const uint8_t *bytes, size_t length)
{
	uint8_t *copy = malloc(length ? length : 1);
	struct wire_view body = { copy, copy + length }, annex;
	bool good;

	cr_assert(copy);
	if (length)
		memcpy(copy, bytes, length);
	good = annex_split(&body, &annex);
	if (good)
		read_all(annex);
	free(copy);
	return good;
}

Test(annex, cut_or_changed_anywhere)
{
	size_t length;
	uint8_t *bytes = some_body(ENOENT, &length);

	for (size_t i = 0; i < length - strlen(BODY); i++)
		cr_expect_not(try(bytes, i), "%zu bytes", i);
	for (size_t i = 0; i < length; i++) {
		for (unsigned int x = 1; x < 256; x++) {
			bytes[i] ^= (uint8_t)x;
			(void)try(bytes, length);
			bytes[i] ^= (uint8_t)x;
		}
	}
	cr_expect(try(bytes, length));
	free(bytes);
}

Test(annex, hostile)
{
	static const struct {
		const char *what, *bytes;
		size_t length;
	} bad[] = {
		{ "nothing", "", 0 },
		{ "longer than the body", "\2\n", 2 },
		{ "endless length", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		  10 },
		{ "a pair without name", "\6\n\4\22\2v\0", 7 },
		{ "a pair without value", "\6\n\4\n\2n\0", 7 },
		{ "a name without end", "\11\n\7\n\1n\22\2v\0", 10 },
		{ "a value without end", "\11\n\7\n\2n\0\22\1v", 10 },
		{ "a value of no byte", "\10\n\6\n\2n\0\22\0", 9 },
		{ "an upper-case name", "\12\n\10\n\2N\0\22\2v\0", 11 },
		{ "two names in one", "\14\n\12\n\4n\0n\0\22\2v\0", 13 },
		{ "a control character", "\12\n\10\n\2n\0\22\2\t\0", 11 },
		{ "a type without end", "\3\42\1t", 4 },
		{ "an empty type", "\3\42\1\0", 4 },
		{ "a type of wrong form", "\4\42\2 \0", 5 },
		{ "a cut field", "\2\n\7", 3 },
	};
	uint8_t many[3 + (ULRPC_METADATA_PAIRS + 1) * 10], *p = many;
	static uint8_t large[ANNEX_MAX + 16];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_not(try((const uint8_t *)bad[i].bytes, bad[i].length),
			      "%s", bad[i].what);
	/* the good one that they differ from */
	cr_expect(try((const uint8_t *)"\12\n\10\n\2n\0\22\2v\0", 11));

	*p++ = (ULRPC_METADATA_PAIRS + 1) * 10 % 128 | 128;
	*p++ = (ULRPC_METADATA_PAIRS + 1) * 10 / 128;
	for (unsigned int i = 0; i <= ULRPC_METADATA_PAIRS; i++, p += 10)
		memcpy(p, "\n\10\n\2n\0\22\2v\0", 10);
	cr_expect_not(try(many, (size_t)(p - many)), "too many pairs");

	/* an unknown field of more bytes than an annex may have */
	memset(large, 0, sizeof(large));
	large[0] = (ANNEX_MAX + 1) % 128 | 128;
	large[1] = (ANNEX_MAX + 1) / 128;
	large[2] = 0x7a;
	large[3] = (ANNEX_MAX - 2) % 128 | 128;
	large[4] = (ANNEX_MAX - 2) / 128;
	cr_expect_not(try(large, 2 + ANNEX_MAX + 1), "too long");
}

/* ---- metadata that have a number ---- */

Test(annex, named)
{
	static const struct {
		const char *bytes;
		size_t length;
		bool good;
		uint32_t number;
		bool refers;
	} cases[] = {
		{ "\4\060\5\172\0", 5, true, 5, false },
		{ "\2\070\5", 3, true, 5, true },
		{ "\3\070\200\1", 4, true, 128, true },
		/* an annex without a number; none at all */
		{ "\2\172\0", 3, true, 0, false },
		{ "\0", 1, true, 0, false },
		/* 0 is no number; there is something beside a reference */
		{ "\2\060\0", 3, false, 0, false },
		{ "\2\070\0", 3, false, 0, false },
		{ "\4\070\5\172\0", 5, false, 0, false },
		/* cut off */
		{ "\2\070", 2, false, 0, false },
		{ "\1\070", 2, false, 0, false },
		{ "\2\070\200", 3, false, 0, false },
		{ "", 0, false, 0, false },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint8_t *p = (const uint8_t *)cases[i].bytes;
		struct wire_view body = { p, p + cases[i].length }, annex;
		struct annex_named to;

		cr_assert_eq(annex_named_read(body, &to), cases[i].good, "%u",
			     i);
		if (cases[i].good) {
			cr_expect_eq(to.number, cases[i].number, "%u", i);
			cr_expect_eq(to.refers, cases[i].refers, "%u", i);
		}
		/* What refers has no metadata, and must not be read so. */
		if (cases[i].refers)
			cr_expect_not(annex_split(&body, &annex), "%u", i);
	}
}
