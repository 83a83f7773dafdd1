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
	IDENTITY_CERTIFICATE = 1, /* has the private key of a certificate */
	IDENTITY_CLUSTER_KEY,	  /* has a key that a whole cluster shares */
	IDENTITY_MUNGE,		  /* is a user, as MUNGE says */
};

struct identity {
	_Atomic unsigned int refs;
	enum identity_kind kind;
	/* IDENTITY_CERTIFICATE: the first DNS name of the certificate, or its
	 * common name. IDENTITY_CLUSTER_KEY: the name of the key. Both have
	 * only letters, digits, and ._-@:/ IDENTITY_MUNGE: "user=NAME", or
	 * "uid=NUMBER" if the user has no name on this machine */
	const char *name;
	/* IDENTITY_CERTIFICATE: the common name of its issuer, if that is
	 * printable ASCII; else "" */
	const char *issuer;
	int64_t until; /* s since 1970: when the certificate ends; 0: never */
	/* For keys_doubt(), which tells whether newer keys still believe this
	 * peer. root_id: digest of the key of the certificate's authority (0:
	 * not known); or of the cluster's key, which a user of MUNGE may have
	 * proved to have as well (0: none). issuer_id: digest of the whole name
	 * of the certificate's issuer */
	uint64_t root_id, issuer_id;
	/* of the certificate: its serial number, big-endian */
	uint8_t serial[20];
	uint8_t nserial;
	/* NIDs for which the certificate may speak: lists in the form of
	 * lnet_nidlist(3), one behind the other, each with a 0 at its end.
	 * Printable, but not parsed yet. NULL: the certificate names none */
	char *nids;
	unsigned int nnids;
	/* IDENTITY_MUNGE: uid and gid of the process, and the group's name, or
	 * "gid=NUMBER". @group is NULL for other kinds */
	uint32_t uid, gid;
	char *group;
	/* of a user: the other groups, as in munge_answer.groups; NULL: none */
	char *groups;
	char texts[]; /* where @name and @issuer point to */
};

/* Returns an identity with one reference, whose @nids is NULL and whose @until
 * is 0. Copies the names. Returns NULL if there is no memory. */
struct identity *identity_new(enum identity_kind kind, const char *name,
			      const char *issuer);
static inline struct identity *identity_ref(struct identity *id)
{
	atomic_fetch_add(&id->refs, 1);
	return id;
}
/* Returns the identity of a user of MUNGE, with one reference. @user and
 * @group: names, which are copied; "": there is none. Returns NULL if there is
 * no memory. */
struct identity *identity_user_new(const char *user, uint32_t uid,
				   const char *group, uint32_t gid);
/* Gives @id, a user, the groups in @groups, a list as in munge_answer.groups,
 * which is copied. Returns 0 or -ENOMEM. */
int identity_set_groups(struct identity *id, const char *groups) must_check;
/* Returns the text of a list behind @text; NULL: there is none. */
static inline const char *identity_next_group(const char *text)
{
	text += strlen(text) + 1;
	return *text ? text : NULL;
}
/* Returns the user's name without the "user=" in front; NULL: @id is no user,
 * or the user has no name. */
const char *identity_user_name(const struct identity *id);
/* Drops a reference. @id may be NULL. */
void identity_put(struct identity *id);
/* Are @a and @b the same peer: certificates with the same name and issuer, the
 * same key of a cluster, or the same user and group? NULL stands for a peer
 * that has not proved anything; two of those count as the same. */
bool identity_same(const struct identity *a, const struct identity *b);
/* Writes a digest of the @n bytes and of @id. Two identities get the same
 * digest from the same bytes only if identity_same(). Returns 0 or -ENOMEM. */
int identity_digest(const struct identity *id, const void *bytes, size_t n,
		    uint8_t digest[DIGEST_SIZE]) must_check;

#endif
