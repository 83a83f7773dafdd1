/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What shows that a body that a server holds (WIRE_HELD) has come as it was:
 * its checksum, if checksums are wanted; and on a connection with keys its
 * digest, or what it is sealed with. A body may be long: both sides go through
 * it piece by piece, in order, so that no turn of a CPT has more than a piece
 * to do.
 *
 * Any thread, one at a time.
 */
#ifndef RPC_BODY_PROOF_H
#define RPC_BODY_PROOF_H

#include "secure/digest.h"
#include "secure/once.h"
#include "ulnet/rpc.h"

#define BODY_PROOF_MAX MAX(DIGEST_SIZE, ONCE_SIZE)

struct body_proof {
	bool sums; /* a checksum is wanted */
	uint32_t crc;
	struct digest *digest; /* NULL: none is wanted */
	struct once *once;     /* NULL: the body is not sealed */
};

/* Begins to prove a body to a client of @flavour, with @cipher if the body is
 * to be sealed. Returns 0 or -errno. */
int body_proof_make(struct body_proof *p, enum ulrpc_flavour flavour,
		    enum seal_cipher cipher, bool sums) must_check;
/* Begins to check a body with the @n bytes at @proof, which are none, a digest
 * or a seal. Returns 0 or -errno; -EBADMSG: @proof is no seal. */
int body_proof_check(struct body_proof *p, const uint8_t *proof, uint32_t n,
		     bool sums) must_check;
/* Is there anything to be found out? */
static inline bool body_proof_is_wanted(const struct body_proof *p)
{
	return p->sums || p->digest || p->once;
}

/* Goes through the next @n bytes; seals or opens them in place. */
void body_proof_next(struct body_proof *p, void *bytes, size_t n);
/* The end of body_proof_make(): writes the proof, and sets *@n_p to its length.
 * Returns 0 or -errno. p->crc is the checksum, if it is wanted. */
int body_proof_made(struct body_proof *p, uint8_t proof[BODY_PROOF_MAX],
		    uint32_t *n_p) must_check;
/* The end of body_proof_check(). @checksum: of the body, as on the wire; 0: it
 * has none. Returns 0; -EBADMSG: it is another body; or -ENOMEM. */
int body_proof_checked(struct body_proof *p, const uint8_t *proof,
		       uint64_t checksum) must_check;
/* Ends both before their end, or after it. */
void body_proof_drop(struct body_proof *p);

#endif
