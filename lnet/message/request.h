/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTs and GETs of peers: from the search for a memory descriptor to the event
 * that tells its user, and the ACK or REPLY.
 */
#ifndef LNET_REQUEST_H
#define LNET_REQUEST_H

#include "lnet/core/stat.h"
#include "lnet/portal/match.h"

struct lnet_cpt;
struct lnet_msg;
struct lnet_ni;

/* What @msg looks for. */
void request_wants(const struct lnet_msg *msg, struct match_want *want);

/* Looks for an MD on the CPT that has @msg now. 0: one is found, and taken;
 * else as match_find(). */
int request_match(struct lnet_msg *msg);

/* The reason to drop a message for which request_match() returned @rc. */
enum lnet_stat request_no_match(int rc);

/* The MD is found: on with the payload. On the CPT that received the
 * message. */
void request_deliver(struct lnet_msg *msg);

/* A GET that has its MD, and that the LND has yet to be told what to do with:
 * its REPLY goes out, by msg->lnd.deadline; or there will be none, which its
 * MD's user hears of at the end of this turn. On the CPT that received the
 * message. */
void request_give_reply(struct lnet_msg *msg);
void request_forget_reply(struct lnet_msg *msg, int status,
			  enum ulnet_cause cause);

/* What was received, @length bytes of it stored, counts as accepted. */
void request_count(const struct lnet_msg *msg, uint32_t length);

/*
 * What becomes of received messages that are not wanted: nobody is told but the
 * counters. For the CPT that received the message.
 */

/* Before a message was made of what the LND calls @rx. */
void drop_rx(struct lnet_cpt *cpt, struct lnet_ni *ni, void *rx, uint32_t type,
	     uint32_t length, enum lnet_stat why);

/* The LND throws the payload away; @msg is freed. */
void drop_msg(struct lnet_msg *msg, enum lnet_stat why);

#endif
