/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Back-pressure: requests whose sender has its share (base/share.h) of the
 * messages of a CPT are parked. LNet neither looks at them nor takes their
 * payload, so their connection stands still (lnd.h), till enough of what the
 * sender has sent before is over. So a peer that does not read our answers is
 * not read from, and all others go on.
 *
 * What frees messages of the sender, or of anybody, wakes those that are
 * parked, in their order; node_check() checks that no message is parked whose
 * sender has room. Answers to our own operations are never parked, nor is what
 * comes through 0@lo: we do not wait for ourselves.
 *
 * Answers may stand behind a request that is parked, though, and two nodes that
 * do not read each other would wait for each other. So requests of a peer from
 * which an answer may come (lnet_peer.asked_until) are put aside, as far as
 * its shares of parked and of held messages go (hold.h), and its connection
 * goes on. What does not fit stands; but if for PARK_STILL none of its requests
 * could go on, they are dropped, until one can.
 *
 * A parked message is one of the CPT's messages itself. Parked messages may
 * take half of the part of messages that is kept for answers; more are dropped.
 * If a sender has its share of all messages, parked ones included, more from it
 * are dropped, too, but for the first that keeps a connection still.
 *
 * All functions are for the CPT that received the message, its home.
 */
#ifndef LNET_PARK_H
#define LNET_PARK_H

#include "lnet/message/msgs.h"

#define PARK_STILL (200 * NSEC_PER_MSEC)

struct lnet_cpt;
struct msg_in;
struct lnet_ni;

/* Has the sender of @msg room for one more request? */
bool park_has_room(const struct msg_in *msg);

/* May @msg, which has just come in, be dealt with? Not before messages of its
 * sender that are parked. */
bool park_admits(const struct msg_in *msg);

/* Does @msg, which is parked, keep answers back for longer than it may? */
bool park_is_stuck(const struct msg_in *msg);

/* The request waits for room, or is dropped. Takes @msg. */
void park_request(struct msg_in *msg);

/* A message has ended. Which senders have room now is found out at the end of
 * the turn, once for all messages that ended in it. */
static inline void park_wake_later(struct lnet_cpt *cpt)
{
	struct msg_cpt *mc = msg_cpt(cpt);

	if (likely(list_empty(&mc->parked)) || mc->unparking)
		return;
	mc->unparking = true;
	loop_defer(cpt->loop, &mc->unpark);
}

/* What is parked on @cpt, received through @ni (NULL: any), is dropped. */
void park_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni);

void park_init(struct lnet_cpt *cpt);

#endif
