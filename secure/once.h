/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that are sealed in place, with a key that is used once. For data that
 * travels apart from the record that describes it, and perhaps arrives when the
 * window of the connection's records has passed. The seal goes into that
 * record, which must have SEAL_PRIVACY: whoever knows the seal can open the
 * bytes.
 *
 * The bytes may be many, and are sealed and opened piece by piece, in their
 * order: once_seal() or once_open(), then once_next() for each piece, at last
 * once_end(). Any thread, one at a time.
 */
#ifndef SECURE_ONCE_H
#define SECURE_ONCE_H

#include "secure/record.h"

/* Bytes of a seal: the cipher, a random secret, and the head of the record. */
#define ONCE_SIZE (1 + SEAL_SECRET + SEAL_HEAD)

struct once;

/* Begins to seal. Returns 0, -ENOMEM or -EIO. */
int once_seal(enum seal_cipher cipher, struct once **o_p) must_check;
/* Begins to open what was sealed with @seal. Returns 0; -EBADMSG: @seal is not
 * one; or -ENOMEM. */
int once_open(const uint8_t seal[ONCE_SIZE], struct once **o_p) must_check;
/* Was it begun by once_open()? */
bool once_opens(const struct once *o);
/* Seals or opens the next @n bytes, in place. */
void once_next(struct once *o, void *bytes, size_t n);
/* Ends it, and frees @o. If it was sealed, writes the seal. Returns 0; -EIO: it
 * could not be sealed; -EBADMSG: the bytes are not those that were sealed; the
 * content of all is undefined then. */
int once_end(struct once *o, uint8_t seal[ONCE_SIZE]) must_check;
/* Frees @o, whose bytes nobody wants. NULL: nothing to be done. */
void once_drop(struct once *o);

#endif
