/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTs and GETs of peers: from the search for a memory descriptor to the event
 * that tells its user, and the ACK or REPLY.
 */
#ifndef LNET_REQUEST_H
#define LNET_REQUEST_H

#include "lnet/core/stat.h"
#include "lnet/message/in.h"
#include "lnet/portal/match.h"

/* What @msg looks for. */
void request_wants(const struct msg_in *msg, struct match_want *want);

/* Looks for an MD on the CPT that has @msg now. 0: one is found, and taken;
 * else as match_find(). */
int request_match(struct msg_in *msg);

/* The reason to drop a message for which request_match() returned @rc. */
enum lnet_stat request_no_match(int rc);

/* The MD is found: goes on with the payload. On the CPT that received the
 * message. */
void request_deliver(struct msg_in *msg);

/* @msg is a GET that has its MD, but the LND does not know yet what becomes of
 * it. The first sends its REPLY, by lnd.deadline; the second decides that there
 * will be none, and tells the MD's user at the end of this turn. On the CPT
 * that received the message. */
void request_give_reply(struct msg_in *msg);
void request_forget_reply(struct msg_in *msg, int status,
			  enum ulnet_cause cause);

#endif
