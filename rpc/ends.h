/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What LNet tells the CPT that owns a NID of the connections with it, and what
 * imports and exports of any CPT want to know: a client may name NIDs that
 * several CPTs own, and so may a server's client call from such NIDs.
 *
 * Told to another CPT only while that one has something to do with NIDs of
 * others (shard.far). What it has not taken yet is bounded: beyond that it is
 * told that a connection has ended, and not whose; of signs of life and
 * suspicions it is told nothing then. All of these are hints.
 */
#ifndef RPC_ENDS_H
#define RPC_ENDS_H

#include "ulnet/loop.h"

struct rpc_part;
struct shard;

enum end_kind {
	END_DISCONNECTED, /* ulnet_peer_watch.disconnected */
	END_SILENT,	  /* ulnet_peer_watch.silent */
	END_SIGN,	  /* none: the node has sent something new */
	END_SUSPECT,	  /* none: ends_suspect() */
};

struct end {
	enum end_kind kind;
	struct ulnet_id peer; /* NID ANY: whoever, of other CPTs */
	struct ulnet_nid local; /* END_SUSPECT */
};

/* Not taken yet by one CPT; of signs of life and suspicions half as many. */
#define ENDS_MAX 64

extern const struct rpc_part end_part;

/* The node with this NID has sent something: whoever waits to try it, tries.
 * Owner of @s. */
void ends_on_sign(struct shard *s, const struct ulnet_nid *nid);

/* A message from @local to @peer by the next hop @hop (a gateway, or the peer
 * itself), or its answer, is lost, and the peer is there: if it has other
 * rails, or there are other gateways, they are better. Owner of @s. */
void ends_suspect(struct shard *s, const struct ulnet_nid *local,
		  const struct ulnet_id *peer, const struct ulnet_nid *hop);

#endif
