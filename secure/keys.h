/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of a node: how the node proves who it is, and whom it believes. They
 * are read from files once and do not change: when files change, new keys are
 * made, and handshakes that have begun go on with the old ones.
 *
 * A node has a certificate with its key, and the certificates of the
 * authorities that it believes; or a cluster's keys; or both. With both, a node
 * shows its certificate to peers that do not know the cluster's key.
 *
 * A user's process that proves itself by MUNGE needs only what it believes its
 * server by: an authority, or the cluster's keys.
 *
 * A file with a secret key is refused if its group or others can read it, or if
 * it belongs to somebody who is neither root nor the user of the process.
 *
 * keys_load() reads files and may take long: call it on no thread of a CPT. All
 * other functions: any thread.
 */
#ifndef SECURE_KEYS_H
#define SECURE_KEYS_H

#include "base/util.h"
#include "secure/identity.h"
#include "secure/munge.h"

#define CLUSTER_KEY_SIZE 32 /* bytes of a cluster's key */
#define CLUSTER_KEYS_MAX 8  /* keys in a file of a cluster's keys, at most */

struct keys;
struct ssl_ctx_st;
struct ssl_session_st;
struct stack_st_X509;
struct x509_st;

/* Paths of files; NULL: none. A certificate needs a key and an authority. An
 * authority alone is enough with munge_show, for a node that is no server. */
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
	/* text: a line "NAME HEX" for each key of 32 bytes; a # begins a
	 * comment. A node proves that it has the first key, and believes peers
	 * that have any of them */
	const char *cluster;
	/* munge_take: as a server, the node believes users that MUNGE names.
	 * munge_show: as a client, the node proves itself by MUNGE, and by
	 * nothing else. */
	bool munge_take, munge_show;
	/* path of munged's socket; NULL: the default of libmunge */
	const char *munge_socket;
	/* the function that asks munged; NULL: munge_real() */
	munge_fn munge_ask;
};

/* Why keys were refused: a sentence that names the file. */
struct keys_error {
	char text[512];
};

/* Reads the keys that @conf names. Returns 0; or a negative errno, and @err
 * says which file and why. -EACCES: others can read a file; -EINVAL: a file is
 * malformed, files do not fit each other, or no file is named; -EKEYEXPIRED:
 * the certificate has expired, or is not valid yet; -ENOMEM; -EOPNOTSUPP: this
 * build has no MUNGE; or an errno of open(2). */
int keys_load(const struct keys_conf *conf, struct keys **keys_p,
	      struct keys_error *err) must_check;
struct keys *keys_ref(struct keys *k);
/* Drops a reference. @k may be NULL. */
void keys_put(struct keys *k);

/* Returns why @k does not believe @id, which other keys have believed: its
 * certificate has ended or was revoked, or @k lacks the authority or key by
 * which it was believed. The text is constant. Returns NULL if @k believes it.
 * Cheap: no signature is verified again. */
const char *keys_doubt(const struct keys *k, const struct identity *id);

/* Checks whether the file @path, which has a secret key in it, may be used:
 * nobody but its owner and root can read it, and it belongs to root or to the
 * user of this process. Returns 0, or what keys_load() would return. */
int keys_check_file(const char *path, struct keys_error *err) must_check;
/* Returns the name of key number @i of the cluster, borrowed; NULL: there are
 * no more. The node proves that it has key 0, and believes peers that have any.
 */
const char *keys_cluster_name(const struct keys *k, unsigned int i);

/* Asks munged @q. This may take seconds: call it on no thread of a CPT. *@a has
 * to be zeroed by the caller. */
void keys_munge(const struct keys *k, const struct munge_question *q,
		struct munge_answer *a);

/* Returns the identity that the certificate of @k names. The caller owes
 * identity_put(). NULL: there is no certificate, or no memory. */
struct identity *keys_self(const struct keys *k);

/* ---- for handshake.c ---- */

/* What OpenSSL's callbacks find by SSL_get_app_data(). Whoever makes an SSL
 * with keys_context() has to set it by SSL_set_app_data(). */
struct keys_user {
	struct keys *keys; /* borrowed */
	/* the ALPN protocol of the connection. A ticket that was given for one
	 * protocol is refused for another */
	const char *protocol;
	/* at a server: the ALPN protocol of clients that prove themselves by
	 * MUNGE; NULL: such clients are refused */
	const char *munge;
	/* the client proves itself by MUNGE, so TLS does not ask for its
	 * certificate */
	bool by_munge;
	/* at a client: the session of the newest ticket; NULL: none. The owner
	 * of this struct frees it */
	struct ssl_session_st *session;
	/* at a server, of the last ticket that the client has shown, accepted
	 * or not. shown: its id. known: the identity that it names, or NULL;
	 * the owner of this struct puts it. known_until: s since 1970, when the
	 * certificate ends with which the ticket was got */
	uint8_t shown[32];
	struct identity *known;
	int64_t known_until;
	/* at a server: the identity in the client's certificate, if the client
	 * was given a ticket; else NULL. The owner of this struct puts it */
	struct identity *met;
};

/* Returns the TLS context for connections with these keys. Borrowed. */
struct ssl_ctx_st *keys_context(struct keys *k, bool server);
/* Returns the name of the cluster's key that the node proves to have, and sets
 * *@key_p to its CLUSTER_KEY_SIZE bytes. Both are borrowed. NULL: the node has
 * no key of a cluster. */
const char *keys_cluster(const struct keys *k, const uint8_t **key_p);
/* Returns the key of the cluster whose name is the @n bytes at @name; NULL:
 * there is none. */
const uint8_t *keys_cluster_find(const struct keys *k, const void *name,
				 size_t n);
/* Returns until when a peer's certificate, which a handshake has accepted,
 * stays valid, in s since 1970: the earliest end among @certificate, its @chain
 * (may be NULL), the authorities and the revocation lists. */
int64_t keys_until(const struct keys *k, struct x509_st *certificate,
		   struct stack_st_X509 *chain);
/* Returns the identity that @certificate names. @chain: the certificates up to
 * the authority; NULL: not known. Returns NULL if there is no memory, or the
 * certificate has no name. */
struct identity *keys_identity(struct x509_st *certificate,
			       struct stack_st_X509 *chain);
/* Returns the identity that all have who have the cluster's key @name. NULL:
 * there is no memory, or no such key. */
struct identity *keys_cluster_identity(const struct keys *k, const char *name);
bool keys_take_munge(const struct keys *k);
bool keys_show_munge(const struct keys *k);
/* Returns the identity of the user in munged's answer @a. @cluster: name of the
 * cluster's key that this user has proved to have as well; "": none. Returns
 * NULL if there is no memory. */
struct identity *keys_munge_identity(const struct keys *k,
				     const struct munge_answer *a,
				     const char *cluster);

#endif
