/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a node's RPC, which ulrpc_keys_load(3) replaces, and what users
 * are told of peers. */
#ifndef RPC_KEYS_H
#define RPC_KEYS_H

#include "secure/keys.h"
#include "ulnet/keys.h"

struct ulrpc;

/* Returns the keys that handshakes begin with now, and a reference to them for
 * the caller; NULL: the node has none. Any thread. */
struct keys *rpc_keys_get(struct ulrpc *rpc);
bool rpc_has_keys(const struct ulrpc *rpc);
/* Returns the kind of identity @who; NULL: it is not known. */
enum ulrpc_peer_kind peer_kind(const struct identity *who);
/* Returns the kind as YAML names it. */
const char *peer_kind_name(enum ulrpc_peer_kind kind);
/* Sets *@peer to what users are told of a peer. @who: the peer's identity;
 * NULL: it has not proved who it is. @flavour: that of the peer's calls. */
void peer_tell(const struct identity *who, enum ulrpc_flavour flavour,
	       struct ulrpc_peer *peer);

#endif
