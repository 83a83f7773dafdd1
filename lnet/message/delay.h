/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that are kept back for a while (MSG_DELAYED), because a fault rule
 * says so (lnet/fault/).
 *
 * What has come in is one of its sender's messages meanwhile, as a parked one
 * is (park.h), and its payload is put aside within the sender's share of what
 * is held (hold.h): so a rule makes nobody hold more than without it. As far as
 * its peer goes the message has not come yet: the peer is met when the time is
 * over.
 *
 * What is to go out has its path, no credit, and the memory that it has anyway.
 * It ends at its deadline, or with its NI, as one that waits for a connection.
 *
 * A GET whose REPLY is the LND's answer to it (msg_answer()) is both: it has
 * come in, and what is delayed is what is to go out.
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
