/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealed pieces of memory. A piece is moved in any way its user likes, and its
 * seal comes apart from it, in a sealed message (record.h). A piece can be
 * neither forged nor altered, nor be taken for another one; with SEAL_PRIVACY
 * it cannot be read either.
 *
 * A seal has the counter of its piece, which no other piece of that direction
 * has. So a receiver that has got a seal by a message that is genuine and new
 * knows that only one piece fits it: not one of another call, connection or
 * direction, nor an older one of the same memory. The seal covers which memory
 * the piece is of, too (struct piece_place).
 *
 * The secrets are not those of records. A key is used for a limited number of
 * pieces, and for a limited time; then the next generation is derived from the
 * secret. Since a piece may be opened long after it was sealed, or never, the
 * receiver can derive the key of any generation.
 *
 * Owner: one thread at a time, of a key with all its pieces. Any thread:
 * references and piece_drop().
 */
#ifndef SECURE_PIECE_H
#define SECURE_PIECE_H

#include "secure/record.h"

/* Bytes of a seal on the wire: tag, counter, generation of the key, and the
 * number of the epoch, by which the receiver finds the key. */
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

/* @secret: SEAL_SECRET bytes, which are copied. @now: ns, of a clock that does
 * not go back. @epoch: the number that goes into the seals. Returns NULL if
 * there is no memory. */
struct piece_key *piece_key_new(enum seal_cipher cipher, const uint8_t *secret,
				uint32_t epoch, uint64_t now);
/* Takes a reference. @k may be NULL. Any thread. */
struct piece_key *piece_key_ref(struct piece_key *k);
void piece_key_put(struct piece_key *k);
uint32_t piece_key_epoch(const struct piece_key *k);
/* Sets when a generation ends: after @used_max units of 16 KiB, or after
 * @age_max ns. Without this call, SEAL_USED_MAX and SEAL_AGE_MAX of record.h
 * hold. */
void piece_key_limit(struct piece_key *k, uint64_t used_max, uint64_t age_max);

/* What a piece is, which the seal covers. */
struct piece_place {
	enum seal_protection protection;
	uint32_t index;	 /* which memory of a call the piece is part of */
	uint32_t number; /* which part of that memory the piece is */
	uint32_t length; /* bytes of the piece */
};

/* Begins to seal a piece, which takes a reference to @k. Sets all of *@s but
 * the tag. Returns 0 or -ENOMEM. */
int piece_seal_begin(struct piece_key *k, const struct piece_place *place,
		     uint64_t now, struct piece_seal *s,
		     struct piece **piece_p) must_check;
/* Begins to open a piece, whose seal is @s. Returns 0 or -ENOMEM. */
int piece_open_begin(struct piece_key *k, const struct piece_place *place,
		     const struct piece_seal *s,
		     struct piece **piece_p) must_check;
/* Seals or opens the next @n bytes of the piece, at @in. With SEAL_PRIVACY, @n
 * bytes are written to @out, which may be @in; with SEAL_INTEGRITY @out is not
 * used. Returns 0 or -EIO. */
int piece_add(struct piece *p, const void *in, size_t n, void *out) must_check;
/* Ends a piece that is being sealed, and frees it, whatever this returns.
 * Returns 0, with @tag set, or -EIO. */
int piece_seal_end(struct piece *p, uint8_t tag[16]) must_check;
/* Ends a piece that is being opened, and frees it, whatever this returns.
 * Returns 0: it is genuine; -EBADMSG: it is not, and what piece_add() has
 * written must not be used. */
int piece_open_end(struct piece *p) must_check;
/* Frees a piece that is not ended. @p may be NULL. Any thread. */
void piece_drop(struct piece *p);

#endif
