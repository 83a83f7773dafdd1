/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notifications about connections: LNet tells the CPT that owns a NID when
 * connections with that NID have ended or are silent. Imports and exports of
 * other CPTs want to know, too: a client may name NIDs that several CPTs own,
 * and the clients of a server may call from such NIDs.
 *
 * A CPT is told of the NIDs of others only while it has something to do with
 * them (shard.far). At most ENDS_MAX notifications wait for a CPT to take
 * them: of what comes beyond that, the CPT learns that some connection has
 * ended, and nothing of signs of life and suspicions. All of them are hints.
 */
#ifndef RPC_ENDS_H
#define RPC_ENDS_H

#include "ulnet/loop.h"

struct rpc_part;
struct shard;

enum end_kind {
	END_DISCONNECTED, /* ulnet_peer_watch.disconnected */
	END_SILENT,	  /* ulnet_peer_watch.silent */
	END_SIGN,	  /* ends_on_sign(): the node has sent something */
	END_SUSPECT,	  /* ends_suspect() */
};

struct end {
	enum end_kind kind;
	struct ulnet_id peer; /* NID ANY: any whose NIDs other CPTs own */
	struct ulnet_nid local; /* END_SUSPECT */
};

/* Notifications that wait for one CPT; of these, signs of life and suspicions
 * may be half. */
#define ENDS_MAX 64

extern const struct rpc_part end_part;

/* The node with this NID has sent something: whoever waits to try it, tries.
 * Owner of @s. */
void ends_on_sign(struct shard *s, const struct ulnet_nid *nid);

/* A message from @local to @peer by the next hop @hop (a gateway, or the peer
 * itself) is lost, or its answer is, although the peer is there: other rails to
 * the peer, or other gateways, are better, if there are any. Owner of @s. */
void ends_suspect(struct shard *s, const struct ulnet_nid *local,
		  const struct ulnet_id *peer, const struct ulnet_nid *hop);

#endif
