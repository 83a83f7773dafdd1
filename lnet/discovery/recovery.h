/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bringing interfaces back to health (requirement D6). Those that are ill are
 * chosen last, so there may be no message that shows that they are well again.
 * Therefore they are pinged.
 *
 *	an NI of a peer		is asked, by its NID
 *	an NI of this node	asks one of the peers on its net that are known
 *				to exist, of each CPT in turn; if there is
 *				none, time heals it
 *
 * Each ping that is answered gives what a message that comes in gives, and the
 * next one follows at once. An answer is waited for a second, and if there is
 * none, the intervals grow from 0.1 s to that second, so that for the first
 * half minute there is always a ping under way, which gets through as soon as
 * anything does. From then on the interval is a 32nd of the time since the last
 * sign of life, up to max_recovery_ping_interval: whatever was away is noticed
 * soon as measured by how long it was away. A message that comes in makes the
 * interval short again. A ping that is not answered costs no health, or nothing
 * would ever be more than dead. After recovery_limit it is given up, and comes
 * back by what comes in.
 *
 * If an NI of a router had no answer to two pings, and hears nobody else, the
 * router tells its neighbours that the NI is down, until something comes in on
 * it. Otherwise neighbours on other nets would go on sending messages that
 * cannot get across.
 *
 * Only where there is a choice: an NI that is the only one, of this node or of
 * the peer, is used whatever its health. So strangers cannot make a node ping.
 * An ill NI costs a timer and this record, and nobody costs anything when
 * all are well.
 *
 * A record belongs to the CPT that has noticed the illness first; it knows
 * NIDs only, and holds nobody. That of an NI of this node visits other CPTs,
 * which know other peers: were only those of one CPT asked, which may be the
 * interfaces of one dead host, their silence would be taken for the NI's.
 */
#ifndef LNET_RECOVERY_H
#define LNET_RECOVERY_H

#include <stdbool.h>

struct lnet_cpt;
struct lnet_peer;

void recovery_init(struct lnet_cpt *cpt);
/* There may be a choice now where there was none, among the NIs of this node,
 * or of @peer: those that fell ill before are pinged. */
void recovery_of_nis(struct lnet_cpt *cpt);
void recovery_of_peer(struct lnet_cpt *cpt, struct lnet_peer *peer);

/* The CPT closes: no ping begins any more. */
void recovery_stop(struct lnet_cpt *cpt);
/* False: a record of this CPT is with another one. */
bool recovery_is_idle(const struct lnet_cpt *cpt);

#endif
