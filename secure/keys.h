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

#define CLUSTER_KEY_SIZE 32 /* bytes */
#define CLUSTER_KEYS_MAX 8  /* in a file */

struct keys;
struct ssl_ctx_st;
struct ssl_session_st;
struct stack_st_X509;
struct x509_st;

/* Paths of files; NULL: none. A certificate needs a key and an authority. */
struct keys_conf {
	const char *certificate; /* PEM: the node's, and those between it and
				  * the authority */
	const char *key;	 /* PEM: the key of the certificate */
	/* PEM: the certificates of all authorities */
	const char *authority;
	/* PEM: what each authority has revoked; with this file each authority
	 * needs a list */
	const char *revoked;
	/* a line "NAME HEX" for each key of 32 bytes; the first is used, and
	 * all are believed; what is behind a # is not read */
	const char *cluster;
};

/* Why keys were refused: a sentence that names the file. */
struct keys_error {
	char text[512];
};

/* Returns 0; or a negative errno, with @err: -EACCES: others can read a file;
 * -EINVAL: a file is not what it should be, or files do not fit each other, or
 * no file is named; -EKEYEXPIRED: the certificate is not valid (any more, or
 * yet); -ENOMEM; what open(2) says. */
int keys_load(const struct keys_conf *conf, struct keys **keys_p,
	      struct keys_error *err) must_check;
struct keys *keys_ref(struct keys *k);
/* @k may be NULL. */
void keys_put(struct keys *k);

/* Is the file @path, which has a key in it, as such a file must be? Returns 0,
 * or what keys_load() would return. */
int keys_check_file(const char *path, struct keys_error *err) must_check;
/* The name of the cluster's key @i, of which 0 is used, and all are believed.
 * Borrowed. NULL: there are no more. */
const char *keys_cluster_name(const struct keys *k, unsigned int i);

/* ---- for handshake.c ---- */

/* Of an SSL that has such a context: its SSL_set_app_data(). */
struct keys_user {
	struct keys *keys;    /* borrowed */
	const char *protocol; /* what it is for (ALPN): nobody can use what one
			       * protocol says, or its tickets, in another */
	/* client: of the newest ticket, or NULL; the user frees it */
	struct ssl_session_st *session;
	/* server: of the last ticket that the client has shown, which does not
	 * say that it was used: its id, and whom it names, or NULL; the user
	 * puts it. s since 1970: when the certificate by which it was got
	 * ends */
	uint8_t shown[32];
	struct identity *known;
	int64_t known_until;
};

/* Borrowed. */
struct ssl_ctx_st *keys_context(struct keys *k, bool server);
/* The first key of the cluster; NULL: there is none. The name, and
 * CLUSTER_KEY_SIZE bytes. */
const char *keys_cluster(const struct keys *k, const uint8_t **key_p);
/* The key with the name @name of @n bytes; NULL: there is none. */
const uint8_t *keys_cluster_find(const struct keys *k, const void *name,
				 size_t n);
/* Until when a certificate that a handshake has found good stays so, as far as
 * this is known: until it ends, or one of the @chain, which may be NULL, or one
 * by which it was judged. s since 1970. */
int64_t keys_until(const struct keys *k, struct x509_st *certificate,
		   struct stack_st_X509 *chain);
/* Whom a certificate names. NULL: no memory, or it has no name. */
struct identity *keys_identity(struct x509_st *certificate);

#endif
