/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recovery: pings that restore the health of NIs (requirement D6). Path
 * selection chooses unhealthy NIs last, so there may be no message that shows
 * that they work again.
 *
 *	an NI of a peer		is pinged
 *	an NI of this node	pings peers that are known to exist on its net,
 *				of one CPT after the other; if there are none,
 *				it recovers with time
 *
 * Each answer restores as much health as any message that comes in, and the
 * next ping follows soon: by default full health needs ten answers, and takes
 * 0.2 s. A user who has set a smaller gain wants recovery to be slow, so after
 * the first 16 answers there is one ping a second. If there is no answer, pings
 * have a timeout of one second, and their interval grows from 0.1 s to one
 * second: so for the first half minute a ping is always under way. Later the
 * interval is a 32nd of the time since the last sign of life, up to
 * max_recovery_ping_interval. A message that comes in makes the interval short
 * again. A ping that fails costs the peer NI as much health as any message.
 * After the time recovery_limit no more pings are sent; from then on the NI
 * recovers only by messages that come in. With health_sensitivity 0 there are
 * no pings.
 *
 * If an NI of a router has no answer to two pings and receives nothing else,
 * the router announces it as down until something comes in. Otherwise nodes on
 * other nets would go on sending messages that cannot be passed on.
 *
 * A gateway through which this node sends is pinged when nothing has come from
 * it for a second, and when a message through it was not answered in time. Only
 * if it does not answer either, it is ill.
 *
 * If this node, or the peer, has only one NI, that NI is used whatever its
 * health is, and there are no pings for it. So strangers cannot make a node
 * ping.
 *
 * A record (struct recovery) belongs to the CPT that was the first to notice
 * the loss of health; it has NIDs, but no references. For an NI of this node
 * the record visits other CPTs to find peers there, too: all peers of one CPT
 * may be interfaces of one dead host, and the NI would be blamed for their
 * silence.
 */
#ifndef LNET_RECOVERY_H
#define LNET_RECOVERY_H

#include <stdbool.h>

struct lnet_cpt;
struct lnet_peer;

void recovery_init(struct lnet_cpt *cpt);
/* This node, or @peer, may have more than one NI now: begins to ping unhealthy
 * ones. */
void recovery_of_nis(struct lnet_cpt *cpt);
void recovery_of_peer(struct lnet_cpt *cpt, struct lnet_peer *peer);
/* Health counts again, or this node is on more nets: begins to ping all
 * unhealthy NIs that it can choose now, in later turns. Any thread. */
void recovery_of_all(struct lnet_cpt *cpt);

/* @cpt closes: from now on no ping begins. */
void recovery_stop(struct lnet_cpt *cpt);
/* Returns false if a record of this CPT is on another CPT. */
bool recovery_is_idle(const struct lnet_cpt *cpt);

#endif
