/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys and certificates for nets with tls: required, as ulnet-keys makes them,
 * in a folder that goes when the program ends. A program without TLS has none.
 */
#ifndef TESTS_LND_PROOFS_H
#define TESTS_LND_PROOFS_H

#include "base/util.h"

struct ulrpc_keys;

/* Was this built with TLS? */
bool proofs_can(void);

/* The keys of a node whose certificate speaks for @nids, a list, NULL: for
 * none; it is signed by the authority @authority, which is the only one that
 * the node believes, and is made when it is first named. They are valid from
 * @days_ago days ago on, for 30 days. Never freed. */
struct ulrpc_keys *proofs_node(const char *authority, const char *nids,
			       unsigned int days_ago);
/* As proofs_node(), of a node that has a list of what its authority has
 * revoked: the certificate of @revoked, which proofs_node() has made, and those
 * of earlier calls. */
struct ulrpc_keys *proofs_revoking(const char *authority, const char *nids,
				   const struct ulrpc_keys *revoked);
/* The name in the certificate of @keys, which proofs_node() has made. */
const char *proofs_name(const struct ulrpc_keys *keys);
/* Keys of a cluster's key, one for each @name. Never freed. */
struct ulrpc_keys *proofs_cluster(const char *name);

#endif
