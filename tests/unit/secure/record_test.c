/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>

#include "secure/record.h"

#define LENGTH 100

static const uint8_t secret[SEAL_SECRET] = "a secret of thirty-two bytes ...";
static const uint8_t bound[] = { 1, 2, 3, 4 };
static const struct seal_place place = { .handle = 0x1122334455667788,
					 .bound = bound,
					 .nbound = sizeof(bound) };

/* Both sides of one direction. */
struct line {
	struct seal seal;
	struct unseal unseal;
};

static struct line line_in(struct seal_pool *pool, enum seal_cipher cipher)
{
	struct line l;

	cr_assert_eq(seal_open(&l.seal, pool, cipher, secret, 0), 0);
	cr_assert_eq(unseal_open(&l.unseal, pool, cipher, secret), 0);
	return l;
}

static struct line line_of(enum seal_cipher cipher)
{
	return line_in(NULL, cipher);
}

static void line_end(struct line *l)
{
	seal_close(&l->seal);
	unseal_close(&l->unseal);
}

struct sealed {
	uint8_t bytes[SEAL_HEAD + LENGTH];
};

static void fill(uint8_t *to)
{
	for (unsigned int i = 0; i < LENGTH; i++)
		to[i] = (uint8_t)(i * 7);
}

static struct sealed sealed_at(struct line *l, enum seal_protection protection,
			       uint64_t now)
{
	struct sealed s;
	uint8_t *payload = s.bytes + SEAL_HEAD;
	struct iovec in[2] = { { payload, 30 }, { payload + 30, LENGTH - 30 } };
	uint8_t copy[LENGTH];

	fill(payload);
	if (protection == SEAL_PRIVACY) {
		memcpy(copy, payload, LENGTH);
		in[0].iov_base = copy;
		in[1].iov_base = copy + 30;
	}
	cr_assert_eq(seal_record(&l->seal, protection, &place, in, 2, now,
				 s.bytes,
				 protection == SEAL_PRIVACY ? payload : NULL),
		     0);
	return s;
}

static struct sealed sealed(struct line *l, enum seal_protection protection)
{
	return sealed_at(l, protection, 0);
}

static int opened(struct line *l, struct sealed s)
{
	uint8_t want[LENGTH];
	enum seal_protection protection;
	int rc = unseal_record(&l->unseal, s.bytes, sizeof(s.bytes), &place,
			       &protection);

	fill(want);
	if (!rc)
		cr_expect_arr_eq(s.bytes + SEAL_HEAD, want, LENGTH);
	return rc;
}

static const enum seal_cipher ciphers[] = { SEAL_AES_128_GCM,
					    SEAL_CHACHA20_POLY1305 };
static const enum seal_protection protections[] = { SEAL_INTEGRITY,
						    SEAL_PRIVACY };

Test(record, what_was_sealed_is_opened)
{
	for (unsigned int c = 0; c < 2; c++) {
		for (unsigned int p = 0; p < 2; p++) {
			struct line l = line_of(ciphers[c]);
			struct sealed s = sealed(&l, protections[p]);
			uint8_t plain[LENGTH];

			fill(plain);
			cr_expect_eq(
				!memcmp(s.bytes + SEAL_HEAD, plain, LENGTH),
				protections[p] == SEAL_INTEGRITY);
			cr_expect_eq(unseal_handle(s.bytes, sizeof(s.bytes)),
				     place.handle);
			cr_expect_eq(opened(&l, s), 0);
			line_end(&l);
		}
	}
}

Test(record, without_a_payload)
{
	enum seal_protection protection;
	uint8_t head[SEAL_HEAD];

	for (unsigned int c = 0; c < 2; c++) {
		struct line l = line_of(ciphers[c]);

		cr_assert_eq(seal_record(&l.seal, SEAL_PRIVACY, &place, NULL, 0,
					 0, head, head),
			     0);
		cr_expect_eq(unseal_record(&l.unseal, head, SEAL_HEAD, &place,
					   &protection),
			     0);
		cr_expect_eq(protection, SEAL_PRIVACY);
		line_end(&l);
	}
}

/* Each bit of a record counts, and so does its length. */
Test(record, altered)
{
	for (unsigned int p = 0; p < 2; p++) {
		struct line l = line_of(SEAL_AES_128_GCM);
		struct sealed s = sealed(&l, protections[p]);
		enum seal_protection protection;

		for (unsigned int i = 0; i < sizeof(s.bytes) * 8; i++) {
			struct sealed bad = s;

			bad.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
			cr_expect_eq(opened(&l, bad), -EBADMSG, "bit %u", i);
		}
		for (size_t n = 0; n < sizeof(s.bytes); n++) {
			struct sealed cut = s;

			cr_expect_eq(unseal_record(&l.unseal, cut.bytes, n,
						   &place, &protection),
				     -EBADMSG, "%zu", n);
		}
		/* All this has not used it up. */
		cr_expect_eq(opened(&l, s), 0);
		line_end(&l);
	}
}

/* A record does not count where it was not meant for. */
Test(record, moved)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct sealed s = sealed(&l, SEAL_INTEGRITY);
	static const uint8_t other[] = { 1, 2, 3, 5 };
	const struct seal_place places[] = {
		{ place.handle + 1, bound, sizeof(bound) },
		{ place.handle, other, sizeof(other) },
		{ place.handle, bound, sizeof(bound) - 1 },
		{ place.handle, NULL, 0 },
	};
	enum seal_protection protection;

	for (unsigned int i = 0; i < ARRAY_SIZE(places); i++)
		cr_expect_eq(unseal_record(&l.unseal, s.bytes, sizeof(s.bytes),
					   &places[i], &protection),
			     -EBADMSG, "%u", i);
	cr_expect_eq(opened(&l, s), 0);
	line_end(&l);
}

/* What was sealed with another secret, or by another cipher, is not opened. */
Test(record, of_another_connection)
{
	static const uint8_t others[SEAL_SECRET] = "another one";
	struct line l = line_of(SEAL_AES_128_GCM);
	struct line chacha = line_of(SEAL_CHACHA20_POLY1305);
	struct line other;

	cr_assert_eq(seal_open(&other.seal, NULL, SEAL_AES_128_GCM, others, 0),
		     0);
	cr_expect_eq(opened(&l, sealed(&other, SEAL_PRIVACY)), -EBADMSG);
	cr_expect_eq(opened(&l, sealed(&chacha, SEAL_PRIVACY)), -EBADMSG);
	seal_close(&other.seal);
	line_end(&chacha);
	line_end(&l);
}

Test(record, no_nonce_comes_twice)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct sealed a = sealed(&l, SEAL_PRIVACY);
	struct sealed b = sealed(&l, SEAL_PRIVACY);

	cr_expect_neq(memcmp(a.bytes + SEAL_HEAD, b.bytes + SEAL_HEAD, LENGTH),
		      0);
	cr_expect_eq(l.seal.counter, 2);
	line_end(&l);
}

/* ---- replays ---- */

Test(record, comes_twice)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct sealed s = sealed(&l, SEAL_PRIVACY);

	cr_expect_eq(opened(&l, s), 0);
	cr_expect_eq(opened(&l, s), -EALREADY);
	line_end(&l);
}

/* Rails let records overtake each other: each is opened once, in any order. */
Test(record, overtaken)
{
	enum { N = UNSEAL_WINDOW - 64 };
	static struct sealed s[N];
	struct line l = line_of(SEAL_AES_128_GCM);

	for (unsigned int i = 0; i < N; i++)
		s[i] = sealed(&l, SEAL_PRIVACY);
	/* backwards, and the second time forwards */
	for (unsigned int i = N; i-- > 0;)
		cr_expect_eq(opened(&l, s[i]), 0, "%u", i);
	for (unsigned int i = 0; i < N; i++)
		cr_expect_eq(opened(&l, s[i]), -EALREADY, "%u", i);
	line_end(&l);
}

/* Whether a record that is too old has come before is not known. */
Test(record, too_late)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct sealed late = sealed(&l, SEAL_INTEGRITY);

	l.seal.counter = UNSEAL_WINDOW;
	cr_expect_eq(opened(&l, sealed(&l, SEAL_INTEGRITY)), 0);
	cr_expect_eq(opened(&l, late), -EALREADY);
	line_end(&l);
}

/* Whatever the order is, a record that was opened is not opened again, and one
 * of the window that was not is. */
Test(record, any_order)
{
	enum { N = 3 * UNSEAL_WINDOW };
	static struct sealed s[N];
	static bool was[N];
	struct line l = line_of(SEAL_AES_128_GCM);
	uint64_t at = 12345, highest = 0;
	bool any = false;

	for (unsigned int i = 0; i < N; i++)
		s[i] = sealed(&l, SEAL_INTEGRITY);
	for (unsigned int i = 0; i < 2 * N; i++) {
		uint64_t k;
		bool old;

		at = at * 6364136223846793005 + 1442695040888963407;
		k = MIN((at >> 33) % 400 + i / 3, (uint64_t)N - 1);
		old = any && k / 64 + UNSEAL_WINDOW / 64 <= highest / 64;
		cr_assert_eq(opened(&l, s[k]), was[k] || old ? -EALREADY : 0,
			     "%lu", (unsigned long)k);
		was[k] = was[k] || !old;
		highest = any ? MAX(highest, k) : k;
		any = true;
	}
	line_end(&l);
}

/* ---- generations of keys ---- */

Test(record, keys_are_renewed)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct sealed before;

	l.seal.used_max = 10;
	for (unsigned int i = 0; i < 100; i++)
		cr_expect_eq(opened(&l, sealed(&l, SEAL_PRIVACY)), 0);
	cr_expect_eq(l.seal.generation, 9);
	cr_expect_eq(l.unseal.generation, 9);
	/* One that is overtaken by the next generation still counts. */
	before = sealed(&l, SEAL_PRIVACY);
	for (unsigned int i = 0; i < 9; i++)
		cr_expect_eq(opened(&l, sealed(&l, SEAL_PRIVACY)), 0);
	cr_expect_eq(opened(&l, sealed(&l, SEAL_PRIVACY)), 0);
	cr_expect_eq(l.unseal.generation, l.seal.generation);
	cr_expect_eq(opened(&l, before), 0);
	cr_expect_eq(opened(&l, before), -EALREADY);
	line_end(&l);
}

Test(record, keys_end_with_time)
{
	struct line l = line_of(SEAL_CHACHA20_POLY1305);

	cr_expect_eq(opened(&l, sealed_at(&l, SEAL_PRIVACY, SEAL_AGE_MAX - 1)),
		     0);
	cr_expect_eq(l.seal.generation, 0);
	cr_expect_eq(opened(&l, sealed_at(&l, SEAL_PRIVACY, SEAL_AGE_MAX)), 0);
	cr_expect_eq(l.seal.generation, 1);
	line_end(&l);
}

/* A long record wears its key out as many short ones do. */
Test(record, keys_end_with_bytes)
{
	static uint8_t payload[20 * 16384], head[SEAL_HEAD];
	const struct iovec in = { payload, sizeof(payload) };
	struct line l = line_of(SEAL_AES_128_GCM);

	l.seal.used_max = 22;
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(seal_record(&l.seal, SEAL_INTEGRITY, &place, &in,
					 1, 0, head, NULL),
			     0);
		cr_expect_eq(l.seal.generation, i / 2);
	}
	line_end(&l);
}

/* What is made up of a generation changes nothing. */
Test(record, generations_that_are_made_up)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct sealed s, bad;

	l.seal.used_max = 1;
	(void)sealed(&l, SEAL_PRIVACY);
	bad = s = sealed(&l, SEAL_PRIVACY);
	bad.bytes[sizeof(bad.bytes) - 1] ^= 1;
	cr_expect_eq(opened(&l, bad), -EBADMSG);
	cr_expect_eq(l.unseal.generation, 0);
	cr_expect_eq(opened(&l, s), 0);
	cr_expect_eq(l.unseal.generation, 1);
	line_end(&l);
}

/* The receiver follows also if all records of some generations were lost, and
 * then still opens those of the last one but one. */
Test(record, generations_are_lost)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct sealed late = { { 0 } }, s = sealed(&l, SEAL_PRIVACY);

	cr_expect_eq(opened(&l, s), 0);
	l.seal.used_max = 1;
	for (unsigned int i = 0; i < 1 + UNSEAL_LOST_MAX; i++) {
		late = s;
		s = sealed(&l, SEAL_PRIVACY);
	}
	cr_expect_eq(opened(&l, s), 0);
	cr_expect_eq(l.unseal.generation, 1 + UNSEAL_LOST_MAX);
	cr_expect_eq(opened(&l, late), 0);
	cr_expect_eq(opened(&l, late), -EALREADY);
	cr_expect_eq(opened(&l, sealed(&l, SEAL_PRIVACY)), 0);
	line_end(&l);
}

/* If too many were lost, the connection has to be made again. */
Test(record, too_many_generations_are_lost)
{
	struct line l = line_of(SEAL_AES_128_GCM);
	struct sealed s = sealed(&l, SEAL_PRIVACY);

	l.seal.used_max = 1;
	for (unsigned int i = 0; i < 2 + UNSEAL_LOST_MAX; i++)
		s = sealed(&l, SEAL_PRIVACY);
	cr_expect_eq(opened(&l, s), -EBADMSG);
	cr_expect_eq(l.unseal.generation, 0);
	line_end(&l);
}

/* ---- contexts of a pool ---- */

/* Nobody sees that other keys have had the context between two records: of the
 * same cipher or the other one, for sealing or for opening. */
Test(record, keys_take_turns)
{
	enum { N = SEAL_POOL };
	static struct line l[N];
	static struct sealed before[N];
	struct seal_pool pool = { 0 };

	for (unsigned int i = 0; i < N; i++) {
		l[i] = line_in(&pool, ciphers[i % 3 % 2]);
		l[i].seal.used_max = 1 + i % 5;
	}
	for (unsigned int round = 0; round < 4; round++) {
		for (unsigned int i = 0; i < N; i++) {
			struct sealed s = sealed(&l[i], protections[i % 2]);
			struct sealed bad = s;

			bad.bytes[SEAL_HEAD] ^= 1;
			cr_expect_eq(opened(&l[i], bad), -EBADMSG);
			cr_expect_eq(opened(&l[i], s), 0);
			cr_expect_eq(opened(&l[i], bad), -EALREADY);
			if (round)
				cr_expect_eq(opened(&l[i], before[i]),
					     -EALREADY);
			before[i] = s;
		}
		/* Some end, and others begin. */
		line_end(&l[round * 9]);
		l[round * 9] = line_in(&pool, SEAL_CHACHA20_POLY1305);
		before[round * 9] = sealed(&l[round * 9], SEAL_PRIVACY);
		cr_expect_eq(opened(&l[round * 9], before[round * 9]), 0);
	}
	for (unsigned int i = 0; i < N; i++)
		line_end(&l[i]);
	seal_pool_fini(&pool);
}

/* A record of the generation before, and one that is made up, take a context
 * for themselves, and the connection goes on. */
Test(record, generations_take_turns)
{
	struct seal_pool pool = { 0 };
	struct line l = line_in(&pool, SEAL_AES_128_GCM);
	struct sealed before, s, bad;

	l.seal.used_max = 1;
	for (unsigned int i = 0; i < 2 * SEAL_POOL; i++) {
		before = sealed(&l, SEAL_PRIVACY);
		s = bad = sealed(&l, SEAL_PRIVACY);
		bad.bytes[SEAL_HEAD] ^= 1;
		cr_expect_eq(opened(&l, bad), -EBADMSG);
		cr_expect_eq(opened(&l, s), 0);
		cr_expect_eq(opened(&l, before), 0);
		cr_expect_eq(opened(&l, before), -EALREADY);
	}
	line_end(&l);
	seal_pool_fini(&pool);
}

static size_t in_use(void)
{
	return mallinfo2().uordblks;
}

/* What both directions of a connection take beside struct seal and unseal, and
 * what all of them share. */
Test(record, keys_of_a_pool_take_little)
{
	enum { N = 10 * SEAL_POOL };
	static struct line l[N];
	struct seal_pool pool = { 0 };
	size_t before, few = 0, all;

	line_end(&(struct line[]){ line_of(SEAL_AES_128_GCM) }[0]);
	before = in_use();
	if (!before)
		cr_skip_test("a sanitizer has its own malloc()");
	for (unsigned int i = 0; i < N; i++) {
		if (i == SEAL_POOL)
			few = in_use() - before;
		l[i] = line_in(&pool, SEAL_AES_128_GCM);
		cr_assert_eq(opened(&l[i], sealed(&l[i], SEAL_PRIVACY)), 0);
	}
	all = in_use() - before;
	cr_expect_lt(few, SEAL_POOL * 1600);
	cr_expect_lt((all - few) / (N - SEAL_POOL), 300);
	for (unsigned int i = 0; i < N; i++)
		line_end(&l[i]);
	seal_pool_fini(&pool);
	/* what malloc() keeps for the thread counts as in use */
	cr_expect_lt(in_use(), before + 32768);
}
