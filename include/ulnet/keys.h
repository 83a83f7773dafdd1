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
 * authority, or a cluster's keys, or both. */
struct ulrpc_keys_conf {
	/* PEM: the certificate of this node, and those between it and the
	 * authority */
	const char *certificate;
	const char *key;       /* PEM: the private key of the certificate */
	const char *authority; /* PEM: whose certificates are believed */
	const char *revoked;   /* PEM: what the authorities have revoked */
	/* a line "NAME HEX" for each key of 32 bytes that all of a cluster
	 * have; the first one is shown, and all are believed */
	const char *cluster;
};

/*
 * Reads keys from files, which may change or go afterwards. The caller owes
 * ulrpc_keys_put(). On error @why, of @size bytes, gets a sentence that names
 * the file. -EACCES: users other than this one can read a file with a key in
 * it; -EINVAL: a file is not what it should be; -EKEYEXPIRED: the certificate
 * is not valid any more, or yet; -EOPNOTSUPP: this was built without TLS;
 * -ENOMEM; what open(2) returns. Not on a node's thread, as files may be slow.
 */
ULNET_EXPORT int ulrpc_keys_load(const struct ulrpc_keys_conf *conf,
				 struct ulrpc_keys **keys_p, char *why,
				 size_t size);
/* NULL is fine. */
ULNET_EXPORT void ulrpc_keys_put(struct ulrpc_keys *keys);
/* From now on handshakes of @rpc begin with @keys, to which it takes a
 * reference of its own. Connections that exist go on, but soon end if @keys do
 * not believe the peer: its certificate was revoked, or has ended, or its
 * authority, or its cluster's key, is not among them. -ENOKEY: RPC was opened
 * without keys. Never waits. */
ULNET_EXPORT int ulrpc_use_keys(struct ulrpc *rpc, struct ulrpc_keys *keys);

#ifdef __cplusplus
}
#endif

#endif
