/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payloads that a message is sent from instead of its own, for faults
 * (lnet/fault/): users' memory is not written to, and not read any longer than
 * the message lasts.
 *
 * A copy belongs to its message, and goes with the path that the message takes.
 * A peer NI has its share (base/share.h) of lazy_bytes_max bytes of copies on
 * each CPT. All functions: CPT of @msg, which has a path, or is a GET that is
 * about to be answered and goes back to its sender.
 */
#ifndef LNET_COPY_H
#define LNET_COPY_H

#include "base/util.h"

struct lnet_msg;
struct msg_copy;

/* From now on @msg is sent from a copy. False: no memory, or share. */
bool copy_make(struct lnet_msg *msg);

/* @bit of the copy is wrong. @msg has a copy and a payload; any number will
 * do. */
void copy_flip(struct lnet_msg *msg, uint64_t bit);

/* Once @msg has been sent, it is sent again. Not before: a message of which two
 * are on their way cannot be said not to have been delivered. @msg has a
 * copy. */
void copy_again(struct lnet_msg *msg);

/* @msg leaves its path, sent or not. It has a copy, which ends. */
void copy_end(struct lnet_msg *msg, bool sent);

#endif
