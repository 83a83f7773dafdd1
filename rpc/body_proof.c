/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/body_proof.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "rpc/wire/wire.h"

int body_proof_make(struct body_proof *p, enum ulrpc_flavour flavour,
		    enum seal_cipher cipher, bool sums)
{
	*p = (struct body_proof){ .sums = sums };
	if (flavour == ULRPC_FLAVOUR_PRIVACY)
		return once_seal(cipher, &p->once);
	return flavour == ULRPC_FLAVOUR_NONE ? 0 : digest_begin(&p->digest);
}

int body_proof_check(struct body_proof *p, const uint8_t *proof, uint32_t n,
		     bool sums)
{
	*p = (struct body_proof){ .sums = sums };
	if (likely(!n))
		return 0;
	return n == ONCE_SIZE ? once_open(proof, &p->once)
			      : digest_begin(&p->digest);
}

/* The checksum and the digest are those of what is not encrypted. */
void body_proof_next(struct body_proof *p, void *bytes, size_t n)
{
	bool opens = p->once && once_opens(p->once);

	if (opens)
		once_next(p->once, bytes, n);
	if (p->sums)
		p->crc = crc32c(p->crc, bytes, n);
	if (p->digest)
		digest_add(p->digest, bytes, n);
	if (p->once && !opens)
		once_next(p->once, bytes, n);
}

int body_proof_made(struct body_proof *p, uint8_t proof[BODY_PROOF_MAX],
		    uint32_t *n_p)
{
	struct once *once = p->once;
	struct digest *digest = p->digest;

	p->once = NULL;
	p->digest = NULL;
	*n_p = once ? ONCE_SIZE : digest ? DIGEST_SIZE : 0;
	if (once)
		return once_end(once, proof);
	return digest ? digest_end(digest, proof) : 0;
}

int body_proof_checked(struct body_proof *p, const uint8_t *proof,
		       uint64_t checksum)
{
	uint8_t digest[DIGEST_SIZE];
	struct once *once = p->once;
	int rc = 0;

	p->once = NULL;
	if (once) {
		rc = once_end(once, NULL);
	} else if (p->digest) {
		rc = digest_end(p->digest, digest);
		p->digest = NULL;
		if (!rc && memcmp(digest, proof, DIGEST_SIZE))
			rc = -EBADMSG;
	}
	if (rc)
		return rc;
	return checksum && wire_checksum(p->crc) != checksum ? -EBADMSG : 0;
}

void body_proof_drop(struct body_proof *p)
{
	once_drop(p->once);
	digest_drop(p->digest);
	p->once = NULL;
	p->digest = NULL;
}
