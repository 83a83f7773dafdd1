/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What fault rules (lnet/fault/) do to messages: send them from a copy of their
 * payload, send them twice, and delay messages that have come in (IN_DELAYED).
 * Messages that go out are delayed by out_delay().
 *
 * Copies. Fault rules never write to users' memory. A copy belongs to its
 * message, and is freed when the message leaves its path. Each peer NI has a
 * share (base/share.h) of lazy_bytes_max bytes of copies on each CPT. The
 * functions for copies are called on the CPT of @msg. @msg has a path; or it is
 * a GET that is about to be answered, and the copy counts for its sender.
 *
 * Delays. A delayed message that has come in counts as one of its sender's
 * messages, and its payload is in a bounce buffer within the sender's share
 * (unexpected.h), so a rule does not let a sender use more. The sender counts
 * as heard (path/health.h) when the delay ends. If the LND answers a GET itself
 * (in_answer()), the REPLY is delayed, after the GET has come in.
 */
#ifndef LNET_TAMPER_H
#define LNET_TAMPER_H

#include "base/util.h"

struct lnet_cpt;
struct lnet_ni;
struct msg_in;
struct msg_out;

/* From now on @msg is sent from a copy. Returns false if the share, or memory,
 * is used up. */
bool tamper_copy(struct msg_out *msg);

/* Flips one bit in the copy of @msg, which must have a payload: the bit with
 * the number @bit modulo the number of bits. */
void tamper_flip(struct msg_out *msg, uint64_t bit);

/* After @msg has been sent, sends the copy of @msg as well. (Not before: while
 * both are under way, nobody could say that @msg was not delivered.) */
void tamper_send_twice(struct msg_out *msg);

/* Delays @msg, which has just come in, by @ns; then calls in_arrived(). Returns
 * false if the sender's share, or memory, is used up. On msg->out.home. */
bool tamper_delay(struct msg_in *msg, uint64_t ns);

/* Delays the REPLY to @msg, a GET that has its MD, by @ns; then calls
 * request_send_reply(). Returns false if the sender's share, or memory, is used
 * up. On msg->out.home. */
bool tamper_delay_answer(struct msg_in *msg, uint64_t ns);

/* Drops the delayed messages on @cpt that came through @ni (NULL: any), and
 * gives up delayed REPLYs. */
void tamper_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni);

#endif
