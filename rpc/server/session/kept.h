/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kept replies, when they are sent again, and those that outlive their service.
 *
 * A service that ends leaves copies of the messages that records still need
 * (record.h): whoever has the portal next, a tombstone or a service, answers
 * later attempts from them. So a call that was executed, but whose reply was
 * lost on its way, succeeds although the service has stopped meanwhile. A copy
 * is let go as the message would have been. Each CPT has 16 MiB of
 * copies, of which each host has its share (quota.h). If there is no room for
 * one, its records become LOST.
 *
 * Thread: owner.
 */
#ifndef RPC_KEPT_H
#define RPC_KEPT_H

#include "rpc/server/session/record.h"

struct export;
struct exports;

/* A packed message of replies. */
struct kept_message {
	uint64_t hdr_data;
	const void *start;
	uint32_t length;
};

/* A reply out of such a message. */
struct kept_again {
	struct wire_reply reply;  /* refers to the message, and to moved */
	struct wire_moved *moved; /* NULL: the call had no sinks */
};

/* Prepares the reply to @xid in @m to be sent again to @attempt. Returns
 * false if there is no memory; else the caller frees again->moved by free(). */
bool kept_find(const struct kept_message *m, uint64_t xid, uint32_t attempt,
	       struct kept_again *again) must_check;

/* Returns a copy of @kept, replies in @m that records of @e need, to take its
 * place in them; NULL: no room. */
struct record_reply *left_new(struct exports *x, const struct export *e,
			      const struct record_reply *kept,
			      const struct kept_message *m);
/* Sets *@m to the message of @kept, which was left. */
void left_message(const struct record_reply *kept, struct kept_message *m);
/* No record needs @kept, which was left, any more. */
void left_free(struct record_reply *kept);

#endif
