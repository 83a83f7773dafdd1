/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who wants to hear that connections to peers have ended. Inside LNet only; the
 * contract is in ulnet/loop.h, and for LNDs in lnd/lnd.h.
 *
 * Owner: the CPT.
 */
#ifndef LNET_WATCH_H
#define LNET_WATCH_H

#include <stdint.h>

struct lnd_ni;
struct lnet_cpt;
struct lnet_ni;
struct ulnet_id;

void watches_init(struct lnet_cpt *cpt);

/* @ni has left the configuration: what is under way on it, either way, may be
 * lost. Whoever watches hears so of each of the CPT's peers on its net, as it
 * is not known who used @ni. In a turn. */
void watches_ni_gone(struct lnet_cpt *cpt, const struct lnet_ni *ni);

/* As lnd_upcalls has them. */
void upcall_peer_silent(struct lnd_ni *lnd, const struct ulnet_id *peer,
			uint64_t ns);
void upcall_peer_disconnected(struct lnd_ni *lnd, const struct ulnet_id *peer);

#endif
