/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys with which the two sides of a call prove who they are. Conventions as in
 * ulnet/rpc.h. Manual: ulnet_security(7), ulrpc_keys_load(3); ulnet-keys(8)
 * makes keys.
 */
#ifndef ULNET_KEYS_H
#define ULNET_KEYS_H

#include "ulnet/rpc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- keys: ulrpc_keys_load(3) ---- */

struct ulrpc_keys;

/* Paths of files; NULL: none. There has to be a certificate with its key and an
 * authority, or a cluster's keys, or both; munge_show needs less. */
struct ulrpc_keys_conf {
	/* PEM: the certificate of this node, and those between it and the
	 * authority */
	const char *certificate;
	const char *key; /* PEM: the private key of the certificate */
	/* PEM: the authorities whose certificates are believed */
	const char *authority;
	/* PEM: lists of the certificates that the authorities have revoked */
	const char *revoked;
	/* lines "NAME HEX", one for each key of 32 bytes that all nodes of a
	 * cluster have; this node shows the first key, and believes all */
	const char *cluster;
	/* As a server: believe users whom MUNGE names. As a client: prove by
	 * MUNGE, and by nothing else, which user this is; then an authority, or
	 * a cluster's key, is enough beside it */
	bool munge_take, munge_show;
	/* munged's; NULL: where libmunge looks for it */
	const char *munge_socket;
};

/*
 * Reads keys from files, which may change or go afterwards. *@keys_p is a
 * reference, which the caller must give back with ulrpc_keys_put(). On error
 * @why, of @size bytes, gets a sentence that names the file. -EACCES: other
 * users can read a file with a key in it; -EINVAL: a file is not what it should
 * be; -EKEYEXPIRED: the certificate is not valid any more, or not yet;
 * -EOPNOTSUPP: the library was built without TLS, or without MUNGE; -ENOMEM;
 * errors of open(2). Must not be called on a node's thread, as files may be
 * slow.
 */
ULNET_EXPORT int ulrpc_keys_load(const struct ulrpc_keys_conf *conf,
				 struct ulrpc_keys **keys_p, char *why,
				 size_t size);
/* NULL is fine. */
ULNET_EXPORT void ulrpc_keys_put(struct ulrpc_keys *keys);
/* From now on handshakes of @rpc begin with @keys, to which @rpc takes a
 * reference of its own. Connections that exist go on, but soon end if @keys do
 * not believe the peer: if its certificate was revoked or has ended, or if
 * neither the authority of its certificate nor its cluster's key is in @keys.
 * -ENOKEY: RPC was opened without keys. Never waits. */
ULNET_EXPORT int ulrpc_use_keys(struct ulrpc *rpc, struct ulrpc_keys *keys);

#ifdef __cplusplus
}
#endif

#endif
