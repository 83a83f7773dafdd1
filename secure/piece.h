/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealed pieces of memory: each is moved by itself, as whoever uses this likes,
 * and its seal comes another way, in a sealed message (record.h). A piece
 * cannot be made up, altered, or be taken for another one; with SEAL_PRIVACY it
 * cannot be read either.
 *
 * A seal has the counter of its piece, which no other piece of the direction
 * has. So whoever has got a seal by a message that is genuine and new, and as
 * the seal of what, knows that nothing else fits it: neither a piece of another
 * call, connection or direction, nor an older one of the same memory. What a
 * piece is, is covered, too.
 *
 * The secrets are of their own, and not those of records. A key is used for a
 * limited number of pieces, and for a limited time; then the next generation is
 * derived from the secret. Since a piece may be opened long after it was
 * sealed, or never, the receiver can make the key of any generation.
 *
 * Owner: one thread at a time, of a key with all its pieces, but for references
 * and piece_drop().
 */
#ifndef SECURE_PIECE_H
#define SECURE_PIECE_H

#include "secure/record.h"

/* Bytes of a seal on the wire: tag, counter, generation of the key, and the
 * number of the epoch, by which the user finds the key. */
#define PIECE_SEAL 32

struct piece_seal {
	uint8_t tag[16];
	uint64_t counter;
	uint32_t generation;
	uint32_t epoch;
};

void piece_seal_put(const struct piece_seal *s, uint8_t out[PIECE_SEAL]);
void piece_seal_get(const uint8_t in[PIECE_SEAL], struct piece_seal *s);

/* The key of one direction. */
struct piece_key;
/* A piece that is being sealed or opened. */
struct piece;

/* @secret: SEAL_SECRET bytes, which are copied. @now: as for seal_open().
 * @epoch: the number that goes into the seals. NULL: no memory. */
struct piece_key *piece_key_new(enum seal_cipher cipher, const uint8_t *secret,
				uint32_t epoch, uint64_t now);
/* Takes a reference. @k may be NULL. Any thread. */
struct piece_key *piece_key_ref(struct piece_key *k);
void piece_key_put(struct piece_key *k);
uint32_t piece_key_epoch(const struct piece_key *k);
/* Sets when a generation ends: after so many units of 16 KiB, and after so many
 * ns. Otherwise the limits of records hold (SEAL_USED_MAX, SEAL_AGE_MAX). */
void piece_key_limit(struct piece_key *k, uint64_t used_max, uint64_t age_max);

/* What a piece is. The seal covers this. */
struct piece_place {
	enum seal_protection protection;
	uint32_t index;	 /* which memory of a call the piece is of, */
	uint32_t number; /* which part of that memory it is, */
	uint32_t length; /* bytes of that part */
};

/* Begins a piece that is to be sealed, and that refers to @k. Sets all of *@s
 * but the tag. 0; -ENOMEM. */
int piece_seal_begin(struct piece_key *k, const struct piece_place *place,
		     uint64_t now, struct piece_seal *s,
		     struct piece **piece_p) must_check;
/* Begins a piece that is to be opened with the seal @s. 0; -ENOMEM. */
int piece_open_begin(struct piece_key *k, const struct piece_place *place,
		     const struct piece_seal *s,
		     struct piece **piece_p) must_check;
/* Goes on with the @n bytes at @in. With SEAL_PRIVACY, @out gets as many, and
 * may be @in; with SEAL_INTEGRITY it is not used. 0; -EIO. */
int piece_add(struct piece *p, const void *in, size_t n, void *out) must_check;
/* Ends a piece that was sealed, and frees it. 0, with @tag set; -EIO. */
int piece_seal_end(struct piece *p, uint8_t tag[16]) must_check;
/* Ends a piece that was opened, and frees it. 0: it is genuine; -EBADMSG: it is
 * not, and what piece_add() has written must not be used. */
int piece_open_end(struct piece *p) must_check;
/* Frees a piece that is not ended. @p may be NULL. Any thread. */
void piece_drop(struct piece *p);

#endif
