/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that wait (for a connection, a credit or the end of a delay) take
 * another path when their NI goes down or is deleted, or when the peer is
 * silent on their path. When their peer becomes another CPT's they go to that
 * CPT.
 */
#ifndef LNET_REROUTE_H
#define LNET_REROUTE_H

#include <stdint.h>

struct lnet_cpt;
struct lnet_ni;
struct lnet_peer_ni;
struct ulnet_id;

/* CPT: messages that wait for @ni, which is down or no longer in the
 * configuration, are sent by another path, in the order in which they came, and
 * by their old deadline. Those that have none go on waiting: their sender named
 * @ni, or there is nothing else, or they are sent from a copy for a second
 * time (tamper.h). No user's handler runs. */
void reroute_ni(struct lnet_ni *ni, struct lnet_cpt *cpt);

/* CPT: the same for all NIs that are down. */
void reroute_nis_down(struct lnet_cpt *cpt);

/* CPT: what lnet_peer_silent() says (lnd/lnd.h). No user's handler runs. */
void reroute_silent(struct lnet_ni *ni, struct lnet_cpt *cpt,
		    const struct ulnet_id *peer, uint64_t ns);

/* CPT: the same for all paths to @lpni, which its peer says is down or gone;
 * but nobody loses health. */
void reroute_peer_ni_down(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* CPT: @lpni, which is held, belongs to another CPT now, and messages that wait
 * here for a credit, a connection or the end of a delay are passed to that CPT,
 * which chooses their paths anew. What an LND has ends here. */
void reroute_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* CPT: no message goes out through @ni any more; those that wait take another
 * path, or end with -ESHUTDOWN if they have none; what has come in through it
 * and waits is dropped; then the LND is told. */
void shutdown_ni(struct lnet_ni *ni, struct lnet_cpt *cpt);

#endif
