/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that are sealed where they are, with a key that is used once: for what
 * travels apart from the record that says what it is, perhaps much later, when
 * the window of the connection's records has passed. The seal goes into such a
 * record, which has to be private: who knows it can open the bytes.
 */
#ifndef SECURE_ONCE_H
#define SECURE_ONCE_H

#include "secure/record.h"

/* Bytes of a seal: the cipher, a random secret, and the head of the record. */
#define ONCE_SIZE (1 + SEAL_SECRET + SEAL_HEAD)

/* Seals the @n bytes at @bytes, less than 2 GiB, which become as many that
 * nobody can read. Returns 0, or -ENOMEM or -EIO: then the bytes are nothing.
 * Any thread. */
int once_seal(enum seal_cipher cipher, void *bytes, size_t n,
	      uint8_t seal[ONCE_SIZE]) must_check;

/* Opens the @n bytes behind @room, which has SEAL_HEAD bytes, where they are.
 * Returns 0; -EBADMSG: they are not what was sealed, and are nothing now; or
 * -ENOMEM. Any thread. */
int once_open(const uint8_t seal[ONCE_SIZE], uint8_t *room,
	      size_t n) must_check;

#endif
