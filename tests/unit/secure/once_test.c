/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>

#include "secure/once.h"

#define LENGTH 100

static const uint8_t zeros[LENGTH];

struct sealed_once {
	uint8_t seal[ONCE_SIZE];
	uint8_t bytes[LENGTH];
};

/* Opens the bytes in pieces of @piece bytes. */
static int opened_by(const uint8_t *seal, uint8_t *bytes, size_t n,
		     size_t piece)
{
	struct once *o;
	int rc = once_open(seal, &o);

	if (rc)
		return rc;
	for (size_t at = 0; at < n; at += piece)
		once_next(o, bytes + at, MIN(piece, n - at));
	return once_end(o, NULL);
}

static int opened(const uint8_t *seal, uint8_t *bytes, size_t n)
{
	return opened_by(seal, bytes, n, n);
}

static struct sealed_once sealed_once(enum seal_cipher cipher)
{
	struct sealed_once s = { .bytes = { 0 } };
	struct once *o;

	cr_assert_eq(once_seal(cipher, &o), 0);
	once_next(o, s.bytes, 7);
	once_next(o, s.bytes + 7, LENGTH - 7);
	cr_assert_eq(once_end(o, s.seal), 0);
	cr_assert_neq(memcmp(s.bytes, zeros, LENGTH), 0);
	return s;
}

static void opens_to_what_it_was(enum seal_cipher cipher)
{
	struct sealed_once s = sealed_once(cipher), other = sealed_once(cipher);

	/* The key is another one each time. */
	cr_assert_neq(memcmp(s.bytes, other.bytes, LENGTH), 0);
	cr_assert_eq(opened(s.seal, s.bytes, LENGTH), 0);
	cr_assert_eq(memcmp(s.bytes, zeros, LENGTH), 0);
	cr_assert_eq(opened(s.seal, other.bytes, LENGTH), -EBADMSG);
}

Test(once, opens_to_what_it_was)
{
	opens_to_what_it_was(SEAL_AES_128_GCM);
	opens_to_what_it_was(SEAL_CHACHA20_POLY1305);
}

/* Of the bytes, of the seal, and of how many there are. */
Test(once, no_change_goes_unnoticed)
{
	const struct sealed_once good = sealed_once(SEAL_AES_128_GCM);
	struct sealed_once s;

	for (unsigned int i = 0; i < LENGTH; i++) {
		s = good;
		s.bytes[i] ^= 1;
		cr_assert_eq(opened(s.seal, s.bytes, LENGTH), -EBADMSG, "%u",
			     i);
	}
	for (unsigned int i = 0; i < ONCE_SIZE; i++) {
		s = good;
		s.seal[i] ^= 1;
		cr_assert_neq(opened(s.seal, s.bytes, LENGTH), 0, "%u", i);
	}
	s = good;
	cr_assert_eq(opened(s.seal, s.bytes, LENGTH - 1), -EBADMSG);
}

/* Who holds bytes twice, as a server whose client has not got them, gives the
 * same ones twice. */
Test(once, opens_again)
{
	const struct sealed_once good = sealed_once(SEAL_AES_128_GCM);
	struct sealed_once s = good;

	s.bytes[7] ^= 1;
	cr_assert_eq(opened(s.seal, s.bytes, LENGTH), -EBADMSG);
	memcpy(s.bytes, good.bytes, LENGTH);
	cr_assert_eq(opened(s.seal, s.bytes, LENGTH), 0);
	cr_assert_eq(memcmp(s.bytes, zeros, LENGTH), 0);
}

/* It does not matter in what pieces. */
Test(once, opens_piece_by_piece)
{
	for (size_t piece = 1; piece <= LENGTH; piece++) {
		struct sealed_once s = sealed_once(SEAL_AES_128_GCM);

		cr_assert_eq(opened_by(s.seal, s.bytes, LENGTH, piece), 0);
		cr_assert_eq(memcmp(s.bytes, zeros, LENGTH), 0);
	}
}

/* As another release seals in one piece, and opens so: a record of its own. */
Test(once, is_a_record)
{
	const struct seal_place place = { .handle = 0 };
	struct sealed_once s = sealed_once(SEAL_AES_128_GCM);
	uint8_t record[SEAL_HEAD + LENGTH];
	enum seal_protection protection;
	struct unseal u;

	memcpy(record, s.seal + 1 + SEAL_SECRET, SEAL_HEAD);
	memcpy(record + SEAL_HEAD, s.bytes, LENGTH);
	cr_assert_eq(unseal_open(&u, NULL, SEAL_AES_128_GCM, s.seal + 1), 0);
	cr_assert_eq(
		unseal_record(&u, record, sizeof(record), &place, &protection),
		0);
	cr_assert_eq(protection, SEAL_PRIVACY);
	cr_assert_eq(memcmp(record + SEAL_HEAD, zeros, LENGTH), 0);
	unseal_close(&u);
}

Test(once, dropped)
{
	struct once *o;

	cr_assert_eq(once_seal(SEAL_AES_128_GCM, &o), 0);
	once_drop(o);
	once_drop(NULL);
}
