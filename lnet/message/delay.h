/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that are kept back for a while (MSG_DELAYED), because a fault rule
 * says so (lnet/fault/).
 *
 * A message that has come in counts as one of its sender's messages while it is
 * delayed, as a parked message does (park.h), and its payload is put aside
 * within the sender's share of what is held (hold.h): so no sender holds more
 * for a rule than without it. That the sender is alive is noted when the delay
 * is over, as if the message came then.
 *
 * A message that is to go out has its path, no credit, and the memory that it
 * has anyway. It ends at its deadline, or with its NI, like a message that
 * waits for a connection.
 *
 * A GET that the LND answers itself (msg_answer()) is both: the GET has come
 * in, and what is delayed is the REPLY, which is to go out.
 */
#ifndef LNET_DELAY_H
#define LNET_DELAY_H

#include "base/util.h"

struct lnet_cpt;
struct lnet_msg;
struct lnet_ni;

/* Keeps what has just come in for @ns, then goes on by msg_arrived(). False:
 * its sender's share, or memory, is used up. On its home. */
bool delay_arrival(struct lnet_msg *msg, uint64_t ns);

/* Keeps a GET that has its MD for @ns, then goes on by request_give_reply().
 * False: as above. On its home. */
bool delay_answer(struct lnet_msg *msg, uint64_t ns);

/* Keeps what has a path for @ns, then takes credits. CPT of @msg. */
void delay_sending(struct lnet_msg *msg, uint64_t ns);

/* The timer of a delayed message. */
void delay_over(struct lnet_msg *msg);

/* What has come in on @cpt and is delayed, through @ni (NULL: any), is dropped,
 * or not answered. */
void delay_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni);

#endif
