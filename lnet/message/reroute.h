/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds other paths for messages that wait for a connection, a credit or the
 * end of a delay: when their NI goes down or is deleted, when the peer is
 * silent on their path, and when their peer moves to another CPT. All functions
 * are for @cpt.
 */
#ifndef LNET_REROUTE_H
#define LNET_REROUTE_H

#include <stdint.h>

struct lnet_cpt;
struct lnet_ni;
struct lnet_peer_ni;
struct ulnet_id;

/* Sends messages that wait for an NI that is down over other paths, in order of
 * arrival and with unchanged deadlines. Messages that have no other path keep
 * waiting, and so do duplicates (tamper.h). No user's handler runs. */
void reroute_nis_down(struct lnet_cpt *cpt);

/* Does what lnet_peer_silent() promises (lnd/lnd.h). No user's handler runs. */
void reroute_silent(struct lnet_ni *ni, struct lnet_cpt *cpt,
		    const struct ulnet_id *peer, uint64_t ns);

/* As reroute_silent(), for all paths to @lpni, whose peer says that it is down
 * or gone. But no NI loses health. */
void reroute_peer_ni_down(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* @lpni, to which the caller has a reference, belongs to another CPT now.
 * Passes waiting messages to that CPT, which chooses new paths for them.
 * Messages that an LND has already end on this CPT. */
void reroute_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* Stops @ni on @cpt. Waiting outgoing messages take another path, or end with
 * -ESHUTDOWN if they have none. Waiting incoming messages are dropped. Then the
 * LND is told to stop. */
void shutdown_ni(struct lnet_ni *ni, struct lnet_cpt *cpt);

#endif
