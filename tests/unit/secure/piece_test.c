/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>

#include "secure/piece.h"

#define LENGTH 100

static const uint8_t secret[SEAL_SECRET] = "a secret of thirty-two bytes ...";
static const struct piece_place place = { SEAL_PRIVACY, 1, 2, LENGTH };

/* Both sides of one direction. */
struct line {
	struct piece_key *from, *to;
};

static struct line line_of(enum seal_cipher cipher)
{
	struct line l = { piece_key_new(cipher, secret, 7, 0),
			  piece_key_new(cipher, secret, 7, 0) };

	cr_assert(l.from && l.to);
	return l;
}

static void line_end(struct line *l)
{
	piece_key_put(l->from);
	piece_key_put(l->to);
}

struct sealed {
	struct piece_seal seal;
	uint8_t bytes[LENGTH];
};

static void fill(uint8_t *to)
{
	for (unsigned int i = 0; i < LENGTH; i++)
		to[i] = (uint8_t)(i * 7);
}

/* Seals the same bytes, in two parts, the first of @first bytes. */
static struct sealed sealed_at(struct line *l, const struct piece_place *where,
			       size_t first, uint64_t now)
{
	struct sealed s;
	struct piece *p;

	fill(s.bytes);
	cr_assert_eq(piece_seal_begin(l->from, where, now, &s.seal, &p), 0);
	cr_assert_eq(piece_add(p, s.bytes, first, s.bytes), 0);
	cr_assert_eq(
		piece_add(p, s.bytes + first, LENGTH - first, s.bytes + first),
		0);
	cr_assert_eq(piece_seal_end(p, s.seal.tag), 0);
	return s;
}

/* Opens the first @n bytes of a copy. */
static int opened(struct line *l, const struct piece_place *where,
		  const struct sealed *s, size_t n)
{
	struct sealed copy = *s;
	uint8_t wanted[LENGTH];
	struct piece *p;
	int rc;

	fill(wanted);
	cr_assert_eq(piece_open_begin(l->to, where, &copy.seal, &p), 0);
	cr_assert_eq(piece_add(p, copy.bytes, n, copy.bytes), 0);
	rc = piece_open_end(p);
	if (!rc)
		cr_assert_arr_eq(copy.bytes, wanted, LENGTH);
	return rc;
}

struct kind {
	enum seal_cipher cipher;
	enum seal_protection protection;
};

static const struct kind kinds[] = {
	{ SEAL_AES_128_GCM, SEAL_INTEGRITY },
	{ SEAL_AES_128_GCM, SEAL_PRIVACY },
	{ SEAL_CHACHA20_POLY1305, SEAL_INTEGRITY },
	{ SEAL_CHACHA20_POLY1305, SEAL_PRIVACY },
};

Test(piece, there_and_back)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct line l = line_of(kinds[i].cipher);
		struct piece_place where = place;
		uint8_t plain[LENGTH];
		struct sealed s;

		where.protection = kinds[i].protection;
		fill(plain);
		for (size_t first = 0; first <= LENGTH; first += 17) {
			s = sealed_at(&l, &where, first, 0);
			cr_assert_eq(opened(&l, &where, &s, LENGTH), 0);
		}
		cr_assert_eq(memcmp(s.bytes, plain, LENGTH) == 0,
			     kinds[i].protection == SEAL_INTEGRITY);
		line_end(&l);
	}
}

Test(piece, each_byte_counts)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct line l = line_of(kinds[i].cipher);
		struct piece_place where = place;
		struct sealed s;

		where.protection = kinds[i].protection;
		s = sealed_at(&l, &where, 50, 0);
		for (size_t at = 0; at < LENGTH; at++) {
			s.bytes[at] ^= 1;
			cr_assert_eq(opened(&l, &where, &s, LENGTH), -EBADMSG);
			s.bytes[at] ^= 1;
			cr_assert_eq(opened(&l, &where, &s, at), -EBADMSG);
		}
		for (size_t at = 0; at < sizeof(s.seal.tag); at++) {
			s.seal.tag[at] ^= 1;
			cr_assert_eq(opened(&l, &where, &s, LENGTH), -EBADMSG);
			s.seal.tag[at] ^= 1;
		}
		cr_assert_eq(opened(&l, &where, &s, LENGTH), 0);
		line_end(&l);
	}
}

/* The same memory, sealed twice, is two pieces. */
Test(piece, no_nonce_twice)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct sealed a = sealed_at(&l, &place, 50, 0);
	struct sealed b = sealed_at(&l, &place, 50, 0), mixed = a;

	cr_assert_neq(a.seal.counter, b.seal.counter);
	cr_assert_neq(memcmp(a.bytes, b.bytes, LENGTH), 0);
	memcpy(mixed.bytes, b.bytes, LENGTH);
	cr_assert_eq(opened(&l, &place, &mixed, LENGTH), -EBADMSG);
	cr_assert_eq(opened(&l, &place, &a, LENGTH), 0);
	cr_assert_eq(opened(&l, &place, &b, LENGTH), 0);
	line_end(&l);
}

Test(piece, in_no_other_place)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct sealed s = sealed_at(&l, &place, 50, 0);
	struct piece_place other[4] = { place, place, place, place };

	other[0].protection = SEAL_INTEGRITY;
	other[1].index++;
	other[2].number++;
	other[3].length++;
	for (unsigned int i = 0; i < ARRAY_SIZE(other); i++)
		cr_assert_eq(opened(&l, &other[i], &s, LENGTH), -EBADMSG, "%u",
			     i);
	line_end(&l);
}

/* A key has an end, by what it was used for and by time. What was sealed long
 * before is opened as well. */
Test(piece, generations)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct sealed s[6];

	piece_key_limit(l.from, 2, 1000);
	for (unsigned int i = 0; i < ARRAY_SIZE(s); i++) {
		s[i] = sealed_at(&l, &place, 50, i == 5 ? 1000 : 0);
		cr_assert_eq(s[i].seal.generation, i == 5 ? 3 : i / 2, "%u", i);
		cr_assert_eq(s[i].seal.epoch, 7);
	}
	for (unsigned int i = ARRAY_SIZE(s); i--;)
		cr_assert_eq(opened(&l, &place, &s[i], LENGTH), 0, "%u", i);
	s[0].seal.generation++;
	cr_assert_eq(opened(&l, &place, &s[0], LENGTH), -EBADMSG);
	line_end(&l);
}

/* Each connection has two keys, and most never move bulk. */
Test(piece, keys_without_use_take_little)
{
	static struct line l[64];
	size_t before = mallinfo2().uordblks, unused;

	if (!before)
		cr_skip_test("a sanitizer has its own malloc()");
	for (unsigned int i = 0; i < 64; i++)
		l[i] = line_of(SEAL_AES_128_GCM);
	unused = mallinfo2().uordblks - before;
	cr_expect_leq(unused / 64, 2 * 112, "%zu", unused / 64);
	for (unsigned int i = 0; i < 64; i++)
		line_end(&l[i]);
}

Test(piece, seals_on_the_wire)
{
	struct piece_seal s = { { 1, 2, 3 }, 0x1122334455667788, 9, 10 }, back;
	uint8_t wire[PIECE_SEAL];

	piece_seal_put(&s, wire);
	piece_seal_get(wire, &back);
	cr_assert_eq(memcmp(&s, &back, sizeof(s)), 0);
}

/* A piece that is not ended keeps its key. */
Test(piece, is_dropped)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct piece_seal seal;
	struct piece *p;

	cr_assert_eq(piece_seal_begin(l.from, &place, 0, &seal, &p), 0);
	line_end(&l);
	piece_drop(p);
	piece_drop(NULL);
}
