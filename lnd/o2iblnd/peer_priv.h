/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of peers share: peer.c, attempt.c. */
#ifndef LND_O2IBLND_PEER_PRIV_H
#define LND_O2IBLND_PEER_PRIV_H

#include "lnd/o2iblnd/peer.h"

static inline uint64_t peer_now(const struct ib_peer *peer)
{
	return loop_now(peer->ps->home.loop);
}

/* ---- peer.c ---- */

struct ib_peer *ib_peer_find(const struct ib_peers *ps,
			     const struct ulnet_nid *nid);
/* NULL: no memory. It is forgotten at the end of the turn, unless there is more
 * to it then. */
struct ib_peer *ib_peer_make(struct ib_peers *ps, const struct ulnet_nid *nid);
/* At the end of the turn: looks what there is to be done. */
void ib_peer_settle(struct ib_peer *peer);
/* What the user of a connection has, or NULL: no memory. */
struct ib_link *ib_link_new(struct ib_peer *peer, bool passive);
/* It is to have a connection, which could not be had. */
void ib_link_drop(struct ib_link *link);
/* link->conn is there. */
void ib_link_begin(struct ib_link *link, struct ib_conn *conn);
/* Closes all connections of @peer that were asked for or accepted by another
 * incarnation than @stamp. */
void ib_peer_close_others(struct ib_peer *peer, uint64_t stamp);

/* ---- attempt.c ---- */

extern const struct connect_ops ib_attempt_ops;
/* Somebody waits. */
void ib_attempt_want(struct ib_peer *peer);
/* An attempt of this side is refused. */
void ib_attempt_refused(struct ib_link *link, int status,
			const struct ib_refusal *refusal);
/* There is a connection: those who wait are told. */
void ib_attempt_opened(struct ib_peer *peer);
/* The only connection has ended, and has been of no use. */
void ib_attempt_in_vain(struct ib_peer *peer);
/* Nothing is to be opened any more; what has failed before is forgotten. */
void ib_attempt_stop(struct ib_peer *peer);

#endif
