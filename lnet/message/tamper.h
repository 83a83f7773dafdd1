/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done to messages because a fault rule says so (lnet/fault/): they are
 * sent from a copy of their payload, or twice, and what has come in is kept
 * back for a while (IN_DELAYED). What goes out is kept back by out_delay().
 *
 * Copies. Users' memory is not written to, and not read any longer than the
 * message lasts. A copy belongs to its message, and goes with the path that the
 * message takes. A peer NI has its share (base/share.h) of lazy_bytes_max bytes
 * of copies on each CPT. These functions are for the CPT of @msg, which has a
 * path, or is a GET that is about to be answered and goes back to its sender.
 *
 * A message that has come in counts as one of its sender's messages while it is
 * delayed, as a parked message does (park.h), and its payload is put aside
 * within the sender's share of what is held (hold.h): so no sender holds more
 * because of a rule. The sender counts as heard from when the delay is over, as
 * if the message came then. A GET that the LND answers itself
 * (in_answer()) has come in, and what is delayed is the REPLY.
 */
#ifndef LNET_TAMPER_H
#define LNET_TAMPER_H

#include "base/util.h"

struct lnet_cpt;
struct lnet_ni;
struct msg_in;
struct msg_out;

/* From now on @msg is sent from a copy. False: no memory, or share. */
bool tamper_copy(struct msg_out *msg);

/* Makes @bit of the copy wrong; any number will do. @msg has a copy and a
 * payload. */
void tamper_flip(struct msg_out *msg, uint64_t bit);

/* Once @msg has been sent, it is sent again. Not before: while two of it are on
 * their way, nobody can say that it was not delivered. @msg has a copy. */
void tamper_send_twice(struct msg_out *msg);

/* Keeps what has just come in for @ns, then goes on by in_arrived(). False: its
 * sender's share, or memory, is used up. On its home. */
bool tamper_delay(struct msg_in *msg, uint64_t ns);

/* Keeps a GET that has its MD for @ns, then goes on by request_give_reply().
 * False: as above. On its home. */
bool tamper_delay_answer(struct msg_in *msg, uint64_t ns);

/* What has come in on @cpt and is delayed, through @ni (NULL: any), is dropped,
 * or not answered. */
void tamper_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni);

#endif
