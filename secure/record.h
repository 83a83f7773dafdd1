/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealed records: one for each message, in one direction of a connection.
 * Nobody else can make up, alter or replay a record, or use it in another place
 * than it was meant for; with SEAL_PRIVACY nobody else can read it either.
 *
 * A record is a head, and the payload behind it:
 *
 *	bytes	field
 *	1	version, 1
 *	1	protection: enum seal_protection
 *	2	0
 *	4	generation of the key
 *	8	the receiver's handle of the connection
 *	8	counter of the records of this direction
 *	16	tag
 *
 * Integers are little-endian. The tag (AEAD) covers the head in front of it,
 * the payload, and what the caller binds the record to, such as portal and
 * match bits, which the receiver knows by itself.
 *
 * The nonce is made of the counter, which is never used twice with one secret;
 * the secret is new with each handshake (handshake.h). A key is used for a
 * limited number of records and for a limited time. Then the next generation is
 * derived from it, as TLS 1.3 does (RFC 8446, 7.2). The receiver follows when
 * it gets a record of that generation, even if all records of a few generations
 * before were lost. Records of the last generation before are still opened,
 * because rails reorder records.
 *
 * Not thread-safe: each side of each direction has one owner.
 */
#ifndef SECURE_RECORD_H
#define SECURE_RECORD_H

#include <sys/uio.h>
#include "base/util.h"

#define SEAL_HEAD 40 /* bytes of a record's head */
/* bytes of the secret with which a direction begins */
#define SEAL_SECRET    32
#define SEAL_BOUND_MAX 64 /* bytes to which a record can be bound, at most */

enum seal_cipher {
	SEAL_AES_128_GCM = 1,
	SEAL_CHACHA20_POLY1305,
};

enum seal_protection {
	SEAL_INTEGRITY = 1, /* the payload is not encrypted */
	SEAL_PRIVACY,
};

/* What a record belongs to: the tag covers it. */
struct seal_place {
	uint64_t handle;
	const void *bound; /* NULL if nbound is 0 */
	size_t nbound;	   /* at most SEAL_BOUND_MAX */
};

struct seal_key; /* a key, and the secret of its generation */
struct seal_slot;

/* Contexts of ciphers. OpenSSL keeps more than 1 KiB of them for a key. Seals
 * and unseals that share a pool have SEAL_POOL contexts in turn: a key whose
 * turn is over needs some tenths of a microsecond to get the next one, when
 * there is a record for it. {0}: an empty pool. Owner: the one thread on which
 * all of its users are. */
struct seal_pool {
	struct seal_slot *slots; /* NULL: nobody has needed one yet */
	unsigned int next;	 /* the slot whose key loses its context next */
};

#define SEAL_POOL 128 /* contexts of a pool, at most */

/* Frees the pool. All of its users are closed. */
void seal_pool_fini(struct seal_pool *p);

/* The sender's side. */
struct seal {
	enum seal_cipher cipher;
	struct seal_key *key;
	uint32_t generation;
	uint64_t counter; /* the counter of the next record */
	/* records of this generation; a long record counts as one for each 16
	 * KiB that it begins */
	uint64_t used;
	uint64_t since; /* ns: when this generation began */
	/* a generation ends when @used or its age in ns exceeds these; the user
	 * may lower both after seal_open() */
	uint64_t used_max, age_max;
};

/* RFC 8446, 5.5 allows 2^24.5 records of 16 KiB. */
#define SEAL_USED_MAX (UINT64_C(1) << 22)
#define SEAL_AGE_MAX  (3600 * NSEC_PER_SEC)

/* Begins the sender's side. @pool: borrowed until seal_close(); NULL: @s has a
 * context of its own. @secret: SEAL_SECRET bytes, which are copied. @now: ns,
 * of a clock that does not go back. Returns 0, or -ENOMEM: then there is
 * nothing to close. */
int seal_open(struct seal *s, struct seal_pool *pool, enum seal_cipher cipher,
	      const uint8_t *secret, uint64_t now) must_check;
void seal_close(struct seal *s);
/* Seals the payload @in (@n fragments, less than 2 GiB in all), and writes the
 * head to @head. With SEAL_PRIVACY the encrypted payload, of the same length,
 * is written to @out, which may be the address of @in if that is one fragment.
 * With SEAL_INTEGRITY the payload stays where it is, and @out is NULL. Returns
 * 0, or -ENOMEM or -EIO: then no record was made, and the content of @out is
 * undefined. */
int seal_record(struct seal *s, enum seal_protection protection,
		const struct seal_place *place, const struct iovec *in,
		unsigned int n, uint64_t now, uint8_t head[SEAL_HEAD],
		uint8_t *out) must_check;

/* How many records may overtake a record that is still accepted. */
#define UNSEAL_WINDOW 2048
/* How many generations in a row may be lost before the receiver cannot follow
 * any more. A forged record costs the receiver as many derivations of a key. */
#define UNSEAL_LOST_MAX 15

/* The receiver's side. */
struct unseal {
	enum seal_cipher cipher;
	struct seal_key *key;
	uint32_t generation;
	/* The secret of the previous generation. Few records of that generation
	 * come, so its key is derived anew for each of them: to keep the key
	 * would take more memory than all other fields. */
	uint8_t before[SEAL_SECRET];
	bool has_before;
	bool any; /* some record was opened */
	/* the highest counter of the records that were opened */
	uint64_t highest;
	/* a bit for each of the last UNSEAL_WINDOW counters up to @highest: was
	 * that record opened? */
	uint64_t seen[UNSEAL_WINDOW / 64];
};

/* Begins the receiver's side. Arguments and result as of seal_open(). */
int unseal_open(struct unseal *u, struct seal_pool *pool,
		enum seal_cipher cipher, const uint8_t *secret) must_check;
void unseal_close(struct unseal *u);

/* Returns the handle in the head of @record, which is not authenticated yet; 0
 * if there is no valid head. */
uint64_t unseal_handle(const void *record, size_t length);

/* Opens @record in place. @place: what it must belong to. Returns 0: the
 * payload, which begins SEAL_HEAD bytes into @record, is genuine and new, and
 * *@protection_p is its protection. -EBADMSG: @record is not a record, is not
 * genuine, or is of a generation that cannot be followed; if its head says
 * SEAL_PRIVACY, its payload is overwritten. -EALREADY: a record with this
 * counter was opened, or the counter is too old to know; @record is unchanged,
 * and was not authenticated. -ENOMEM. Only records that are genuine and new
 * change @u. */
int unseal_record(struct unseal *u, uint8_t *record, size_t length,
		  const struct seal_place *place,
		  enum seal_protection *protection_p) must_check;

#endif
