/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other paths for messages that wait for a connection, a credit or the end of a
 * delay: when their NI goes down or is deleted, when the peer is silent on
 * their path, and when their peer moves to another CPT. All functions are for
 * @cpt.
 */
#ifndef LNET_REROUTE_H
#define LNET_REROUTE_H

#include <stdint.h>

struct lnet_cpt;
struct lnet_ni;
struct lnet_peer_ni;
struct ulnet_id;

/* Sends messages that wait for NIs that are down by other paths, in order of
 * arrival and with unchanged deadlines. Messages that have no other path keep
 * waiting; so do duplicates (tamper.h). No user's handler runs. */
void reroute_nis_down(struct lnet_cpt *cpt);

/* Does what lnet_peer_silent() promises (lnd/lnd.h). No user's handler runs. */
void reroute_silent(struct lnet_ni *ni, struct lnet_cpt *cpt,
		    const struct ulnet_id *peer, uint64_t ns);

/* The same for all paths to @lpni, whose peer says that it is down or gone; but
 * no NI loses health. */
void reroute_peer_ni_down(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* @lpni, to which the caller has a reference, belongs to another CPT now.
 * Passes messages that wait here to that CPT, which chooses new paths for
 * them. Messages that an LND has, end here. */
void reroute_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* Stops @ni on @cpt: messages that wait to go out take another path, or end
 * with -ESHUTDOWN if they have none; messages that have come in and wait are
 * dropped; then the LND is told. */
void shutdown_ni(struct lnet_ni *ni, struct lnet_cpt *cpt);

#endif
