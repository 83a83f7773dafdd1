/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection events. LNet tells the CPT that owns a NID when the LND's
 * connections with that NID are lost or silent. Imports and exports of other
 * CPTs need to know, too: the server of an import, or the client of an export,
 * may use NIDs that several CPTs own. So the CPT passes the event on to all
 * CPTs that may be concerned (shard.far).
 *
 * At most CONN_EVENTS_MAX events wait for a CPT to take them. If there is no
 * room for the loss or silence of a connection, the CPT is told that some
 * connection is lost or silent, without a NID; other events are dropped.
 * Nothing relies on events: each only makes something happen sooner.
 */
#ifndef RPC_CONN_EVENT_H
#define RPC_CONN_EVENT_H

#include "ulnet/loop.h"

struct rpc_part;
struct shard;

enum conn_event_kind {
	CONN_LOST,    /* LNet has called ulnet_peer_watch.disconnected */
	CONN_SILENT,  /* LNet has called ulnet_peer_watch.silent */
	CONN_HEARD,   /* reported by conn_event_heard() */
	CONN_SUSPECT, /* reported by conn_event_suspect() */
};

struct conn_event {
	enum conn_event_kind kind;
	/* the peer; if its NID is ANY: some peer that another CPT owns */
	struct ulnet_id peer;
	struct ulnet_nid local; /* with CONN_SUSPECT: the NID of this node */
};

/* Events that wait for one CPT, at most. CONN_HEARD and CONN_SUSPECT are
 * dropped when half as many wait. */
#define CONN_EVENTS_MAX 64

extern const struct rpc_part conn_event_part;

/* A message from @nid has shown that the node there is alive: imports that wait
 * before they try again to connect to it try at once. Owner of @s. */
void conn_event_heard(struct shard *s, const struct ulnet_nid *nid);

/* A message from @local to @peer by the next hop @hop (a gateway, or the peer
 * itself) is lost, or its answer is, although the peer is alive: LNet is to
 * prefer other rails or gateways. Owner of @s. */
void conn_event_suspect(struct shard *s, const struct ulnet_nid *local,
			const struct ulnet_id *peer,
			const struct ulnet_nid *hop);
/* Reports what conn_event_suspect() reports, for a message to @nid that LNet is
 * still sending from @md, so that its path is not known yet. */
void conn_event_suspect_send(struct shard *s, struct ulnet_md_handle md,
			     const struct ulnet_nid *nid);

#endif
