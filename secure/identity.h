/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who a peer is, as a handshake has proved it. Immutable, and shared by all who
 * refer to it. Any thread.
 */
#ifndef SECURE_IDENTITY_H
#define SECURE_IDENTITY_H

#include <stdatomic.h>
#include "base/util.h"
#include "secure/digest.h"

#define IDENTITY_NAME_SIZE 256 /* bytes of a name, with the 0 at its end */

enum identity_kind {
	IDENTITY_CERTIFICATE = 1, /* has the key of a certificate */
	IDENTITY_CLUSTER_KEY,	  /* has a key that all of a cluster have */
	IDENTITY_MUNGE,		  /* is a user of whom MUNGE says so */
};

struct identity {
	_Atomic unsigned int refs;
	enum identity_kind kind;
	/* of a certificate: its first DNS name, or its common name; of a
	 * cluster's key: the name of the key. Letters, digits, and ._-@:/
	 * Of MUNGE: "user=NAME", or "uid=NUMBER" if nobody knows the name here,
	 * which can be no name of the others */
	const char *name;
	/* the common name of whoever has signed the certificate, in printable
	 * ASCII; "" for others, and for a common name that is not printable */
	const char *issuer;
	int64_t until; /* s since 1970: when the certificate ends; 0: never */
	/* By which other keys than those that have believed it tell whether
	 * they do, too: keys_doubt(). Digests: of the key of the authority that
	 * a certificate goes back to (0: not known), or of a cluster's key
	 * (which a user of MUNGE may have proved to have, too; 0: not); and of
	 * the whole name of who has signed the certificate. */
	uint64_t root_id, issuer_id;
	uint8_t serial[20]; /* of the certificate; big-endian */
	uint8_t nserial;
	/* lists of NIDs, in the form of lnet_nidlist(3), that the certificate
	 * may speak for, one behind the other and each with a 0 at its end;
	 * NULL: it names none. Printable; not parsed yet */
	char *nids;
	unsigned int nnids;
	/* of MUNGE: the user and the group of the process by number, and the
	 * group's name, or "gid=NUMBER"; NULL: another kind */
	uint32_t uid, gid;
	char *group;
	char texts[]; /* the texts of name and issuer */
};

/* Returns an identity with one reference, and without @nids and @until; NULL:
 * no memory. The names are copied. */
struct identity *identity_new(enum identity_kind kind, const char *name,
			      const char *issuer);
static inline struct identity *identity_ref(struct identity *id)
{
	atomic_fetch_add(&id->refs, 1);
	return id;
}
/* Likewise, of the user @user; "": he has no name, likewise the group. */
struct identity *identity_user_new(const char *user, uint32_t uid,
				   const char *group, uint32_t gid);
/* The name of a user without what it begins with; NULL: he has none. */
const char *identity_user_name(const struct identity *id);
/* Drops a reference. @id may be NULL. */
void identity_put(struct identity *id);
/* Are @a and @b the same peer: certificates with the same name and issuer, the
 * same key of a cluster, or the same user and group? NULL stands for a peer
 * that has not proved anything; two of those count as the same. */
bool identity_same(const struct identity *a, const struct identity *b);
/* Writes a digest of the @n bytes and of @id: with the same bytes, two have the
 * same one only if identity_same(). Returns 0 or -ENOMEM. */
int identity_digest(const struct identity *id, const void *bytes, size_t n,
		    uint8_t digest[DIGEST_SIZE]) must_check;

#endif
