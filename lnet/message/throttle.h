/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Back-pressure: a request whose sender has used up its share (base/share.h) of
 * the messages of a CPT is throttled. LNet leaves the payload of the request
 * unread, so its connection is not read any further (lnd.h) until enough of the
 * sender's earlier messages have ended. So this node does not read from a peer
 * that does not read this node's answers, while all other peers proceed.
 *
 * When messages end, throttled messages for which there is room now proceed, in
 * order of arrival; sim/check.c verifies that no message is throttled while
 * there is room for it. Answers to operations of this node are never throttled,
 * and neither are messages through 0@lo, since the node would wait for itself.
 *
 * The layer above may have more messages of a peer in hand than it handles in
 * time. It says so (lnet_peer_throttle(3)), and the peer's requests are
 * throttled until it says that it takes more again.
 *
 * Deadlock. An answer may be queued in the connection behind a throttled
 * request, so two nodes that do not read each other's requests would wait for
 * each other. Therefore, if a peer may owe this node an answer
 * (lnet_peer.asked_until), its requests are copied into bounce buffers
 * (unexpected.h), within the peer's shares, and the connection is read on.
 * Requests beyond these shares stay unread. But if none of the peer's requests
 * could proceed for THROTTLE_STUCK, such requests are dropped until one can.
 *
 * Bounds. A throttled message is a message of the CPT itself. Throttled
 * messages may take half of the messages that are reserved for answers; further
 * ones are dropped. If a sender has used up its share of all messages,
 * including those that are throttled, its further messages are dropped, too;
 * but the first one that stops the reading of a connection is kept.
 *
 * All functions are called on the CPT that received the message.
 */
#ifndef LNET_THROTTLE_H
#define LNET_THROTTLE_H

#include "lnet/message/msgs.h"

#define THROTTLE_STUCK (200 * NSEC_PER_MSEC)

struct lnet_cpt;
struct msg_in;
struct lnet_ni;

/* Does the share of the sender of @msg allow one more request? */
bool throttle_has_room(const struct msg_in *msg);

/* May @msg, which has just come in, be handled now? It may not while other
 * messages of its sender are throttled. */
bool throttle_admits(const struct msg_in *msg);

/* For sim/check.c: has @msg, which is throttled, blocked an answer for longer
 * than is allowed? The time counts from @since (ns) on. */
bool throttle_is_stuck(const struct msg_in *msg, uint64_t since);

/* Takes over @msg: throttles it, or drops it. */
void throttle_request(struct msg_in *msg);

/* To be called when a message has ended: at the end of this turn, throttled
 * messages for which there is room proceed. */
static inline void throttle_wake_later(struct lnet_cpt *cpt)
{
	struct msg_cpt *mc = msg_cpt(cpt);

	if (likely(list_empty(&mc->throttled)) || mc->unthrottling)
		return;
	mc->unthrottling = true;
	loop_defer(cpt->loop, &mc->unthrottle);
}

/* What lnet_peer_throttle(3) does. No effect if @cpt does not know @nid. */
void throttle_peer(struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		   bool full);

/* Drops the throttled messages on @cpt that came through @ni (NULL: any). */
void throttle_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni);

void throttle_init(struct lnet_cpt *cpt);

#endif
