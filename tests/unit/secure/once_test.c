/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>

#include "secure/once.h"

#define LENGTH 100

static const uint8_t zeros[LENGTH];

struct sealed_once {
	uint8_t seal[ONCE_SIZE];
	uint8_t room[SEAL_HEAD];
	uint8_t bytes[LENGTH];
};

static struct sealed_once sealed_once(enum seal_cipher cipher)
{
	struct sealed_once s = { .bytes = { 0 } };

	cr_assert_eq(once_seal(cipher, s.bytes, LENGTH, s.seal), 0);
	cr_assert_neq(memcmp(s.bytes, zeros, LENGTH), 0);
	return s;
}

static void opens_to_what_it_was(enum seal_cipher cipher)
{
	struct sealed_once s = sealed_once(cipher), other = sealed_once(cipher);

	/* The key is another one each time. */
	cr_assert_neq(memcmp(s.bytes, other.bytes, LENGTH), 0);
	cr_assert_eq(once_open(s.seal, s.room, LENGTH), 0);
	cr_assert_eq(memcmp(s.bytes, zeros, LENGTH), 0);
	cr_assert_eq(once_open(s.seal, other.room, LENGTH), -EBADMSG);
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
		cr_assert_eq(once_open(s.seal, s.room, LENGTH), -EBADMSG, "%u",
			     i);
	}
	for (unsigned int i = 0; i < ONCE_SIZE; i++) {
		s = good;
		s.seal[i] ^= 1;
		cr_assert_neq(once_open(s.seal, s.room, LENGTH), 0, "%u", i);
	}
	s = good;
	cr_assert_eq(once_open(s.seal, s.room, LENGTH - 1), -EBADMSG);
}

/* Who holds bytes twice, as a server whose client has not got them, gives the
 * same ones twice. */
Test(once, opens_again)
{
	const struct sealed_once good = sealed_once(SEAL_AES_128_GCM);
	struct sealed_once s = good;

	s.bytes[7] ^= 1;
	cr_assert_eq(once_open(s.seal, s.room, LENGTH), -EBADMSG);
	memcpy(s.bytes, good.bytes, LENGTH);
	cr_assert_eq(once_open(s.seal, s.room, LENGTH), 0);
	cr_assert_eq(memcmp(s.bytes, zeros, LENGTH), 0);
}
