/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a node's RPC: ulrpc_keys_load(3). */
#ifndef RPC_KEYS_H
#define RPC_KEYS_H

#include "secure/keys.h"
#include "ulnet/keys.h"

struct ulrpc;

/* Returns the keys that handshakes begin with now, and a reference to them for
 * the caller; NULL: the node has none. Any thread. */
struct keys *rpc_keys_get(struct ulrpc *rpc);
bool rpc_has_keys(const struct ulrpc *rpc);
/* Sets *@peer to who @who is, NULL: nobody knows; and how he calls. */
void peer_tell(const struct identity *who, enum ulrpc_flavour flavour,
	       struct ulrpc_peer *peer);

#endif
