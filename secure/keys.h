/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of a node: what it shows of itself, and whom it believes. Read from
 * files once, and then immutable: new files make new keys, while handshakes go
 * on with those that they began with.
 *
 * A node has a certificate with its key, and the certificates of the
 * authorities that it believes; or a cluster's keys; or both. With both, a node
 * shows its certificate to whoever does not know the cluster's key.
 *
 * A user's process needs none of these but an authority, or the cluster's keys,
 * to believe its server, if it proves itself by MUNGE.
 *
 * A file with a key in it is refused if its group or others can read it, or if
 * it belongs to somebody who is neither root nor the user of the process.
 *
 * Files are read by the thread that calls keys_load(), which may take long: not
 * one of a CPT. All else: any thread.
 */
#ifndef SECURE_KEYS_H
#define SECURE_KEYS_H

#include "base/util.h"
#include "secure/identity.h"
#include "secure/munge.h"

#define CLUSTER_KEY_SIZE 32 /* bytes of a key */
#define CLUSTER_KEYS_MAX 8  /* keys in a file, at most */

struct keys;
struct ssl_ctx_st;
struct ssl_session_st;
struct stack_st_X509;
struct x509_st;

/* Paths of files; NULL: none. A certificate needs a key and an authority. With
 * munge_show an authority is enough, for a node that is no server. */
struct keys_conf {
	/* PEM: the node's certificate, and those between it and the authority
	 */
	const char *certificate;
	const char *key; /* PEM: the key of the certificate */
	/* PEM: the certificates of all authorities */
	const char *authority;
	/* PEM: a revocation list (CRL) of each authority; NULL: nothing is
	 * revoked */
	const char *revoked;
	/* text: a line "NAME HEX" for each key of 32 bytes. A node shows that
	 * it has the first one, and believes a peer that has any of them. The
	 * rest of a line behind a # is a comment */
	const char *cluster;
	/* munge_take: as a server, the node believes users that MUNGE names.
	 * munge_show: as a client, the node proves itself by MUNGE, and by
	 * nothing else. */
	bool munge_take, munge_show;
	/* the path of munged's socket; NULL: where libmunge looks for it */
	const char *munge_socket;
	munge_fn munge_ask; /* asks munged; NULL: munge_real() does */
};

/* Why keys were refused: a sentence that names the file. */
struct keys_error {
	char text[512];
};

/* Returns 0; or a negative errno, with @err: -EACCES: others can read a file;
 * -EINVAL: a file is not what it should be, or files do not fit each other, or
 * no file is named; -EKEYEXPIRED: the certificate is not valid (any more, or
 * yet); -ENOMEM; -EOPNOTSUPP: there is no MUNGE; what open(2) says. */
int keys_load(const struct keys_conf *conf, struct keys **keys_p,
	      struct keys_error *err) must_check;
struct keys *keys_ref(struct keys *k);
/* Drops a reference. @k may be NULL. */
void keys_put(struct keys *k);

/* Returns why @k does not believe @id, which other keys have believed: its
 * certificate has ended or was revoked, or @k lacks the authority or key by
 * which it was believed. The text is constant. NULL: @k believes it. Cheap,
 * because nothing is verified anew. */
const char *keys_doubt(const struct keys *k, const struct identity *id);

/* Checks whether the file @path, which has a secret key in it, may be used:
 * nobody but its owner and root can read it, and it belongs to root or to the
 * user of this process. Returns 0, or what keys_load() would return. */
int keys_check_file(const char *path, struct keys_error *err) must_check;
/* Returns the name of the key number @i of the cluster; the node shows key 0,
 * and believes peers with any. Borrowed. NULL: there are no more. */
const char *keys_cluster_name(const struct keys *k, unsigned int i);

/* Asks munged, which may take seconds: not on a thread of a CPT. @a is all zero
 * at first. */
void keys_munge(const struct keys *k, const struct munge_question *q,
		struct munge_answer *a);

/* Returns the identity that the certificate of @k names. The caller owes
 * identity_put(). NULL: there is no certificate, or no memory. */
struct identity *keys_self(const struct keys *k);

/* ---- for handshake.c ---- */

/* What functions of a TLS context find by SSL_get_app_data(). Whoever makes an
 * SSL of keys_context() has to set it by SSL_set_app_data(). */
struct keys_user {
	struct keys *keys; /* borrowed */
	/* what the connection is for (ALPN). A ticket that was got for one
	 * protocol is not taken for another */
	const char *protocol;
	/* at a server: the protocol of clients that prove themselves by MUNGE,
	 * which is accepted as well; NULL: it is not */
	const char *munge;
	/* The client proves itself by MUNGE, so TLS does not ask for its
	 * certificate. */
	bool by_munge;
	/* at a client: the session of the newest ticket; NULL: none. The user
	 * of the connection frees it */
	struct ssl_session_st *session;
	/* at a server, of the last ticket that the client has shown, even if it
	 * was not accepted. shown: its id. known: the identity that it names,
	 * or NULL; the user of the connection puts it. known_until: s since
	 * 1970, when the certificate ends by which the ticket was got */
	uint8_t shown[32];
	struct identity *known;
	int64_t known_until;
	/* at a server: the identity in the client's certificate, if the client
	 * has got a ticket; or NULL. The user of the connection puts it */
	struct identity *met;
};

/* Returns the TLS context for connections with these keys. Borrowed. */
struct ssl_ctx_st *keys_context(struct keys *k, bool server);
/* Returns the name of the key that the node shows, and sets *@key_p to its
 * CLUSTER_KEY_SIZE bytes. Both are borrowed. NULL: the node has no key of a
 * cluster. */
const char *keys_cluster(const struct keys *k, const uint8_t **key_p);
/* Returns the key of the cluster whose name is the @n bytes at @name; NULL:
 * there is none. */
const uint8_t *keys_cluster_find(const struct keys *k, const void *name,
				 size_t n);
/* Returns until when, in s since 1970, a peer's certificate that a handshake
 * has accepted stays valid: until the first of these ends: it, a certificate of
 * its @chain (may be NULL), an authority or a revocation list by which it was
 * judged. */
int64_t keys_until(const struct keys *k, struct x509_st *certificate,
		   struct stack_st_X509 *chain);
/* Returns the identity in @certificate, which was accepted because of @chain
 * (NULL: not known). Returns NULL if there is no memory, or the certificate has
 * no name. */
struct identity *keys_identity(struct x509_st *certificate,
			       struct stack_st_X509 *chain);
/* Returns the identity of all that have the key @name of the cluster. NULL:
 * there is no memory, or no such key. */
struct identity *keys_cluster_identity(const struct keys *k, const char *name);
bool keys_take_munge(const struct keys *k);
bool keys_show_munge(const struct keys *k);
/* Returns the identity of the user whom @a names. @cluster: the cluster's key
 * that this user has proved to have, too; "": none. NULL: there is no memory.
 */
struct identity *keys_munge_identity(const struct keys *k,
				     const struct munge_answer *a,
				     const char *cluster);

#endif
