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
/* @who NULL: unknown. */
enum ulrpc_peer_kind peer_kind(const struct identity *who);
/* As in YAML. */
const char *peer_kind_name(enum ulrpc_peer_kind kind);
/* Tells the user who a peer is: sets *@peer from @who, and @flavour, by which
 * the peer calls. @who NULL: the peer has not proved who it is. */
void peer_tell(const struct identity *who, enum ulrpc_flavour flavour,
	       struct ulrpc_peer *peer);

#endif
