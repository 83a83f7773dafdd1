/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kept replies: how they are sent again, and how they outlive their service.
 *
 * A service that ends leaves copies of the messages that records still need
 * (record.h). From them, the tombstone or service that has the portal next
 * answers later attempts. So a call that was executed, but whose reply was lost
 * on its way, succeeds although the service has stopped meanwhile. A copy is
 * let go as the message would have been. Each CPT has 16 MiB for copies, of
 * which each host has its share (quota.h). If there is no room for a copy, its
 * records become LOST.
 *
 * Thread: owner.
 */
#ifndef RPC_KEPT_H
#define RPC_KEPT_H

#include "rpc/server/session/record.h"

struct export;
struct exports;

/* A packed message of replies, of which some are kept. */
struct kept_message {
	uint64_t hdr_data;
	const void *start;
	uint32_t length;
};

/* One reply of such a message, which is to be sent again. */
struct kept_again {
	struct wire_reply reply;  /* refers to the message, and to @moved */
	struct wire_moved *moved; /* NULL: the call had no sinks */
};

/* Prepares the reply to @xid in @m to be sent again to @attempt. Returns
 * false if there is no memory; else the caller frees again->moved by free(). */
bool kept_find(const struct kept_message *m, uint64_t xid, uint32_t attempt,
	       struct kept_again *again) must_check;

/* Makes a copy of @kept, whose replies are in @m and which records of @e need.
 * The copy takes its place in the records. Returns NULL if there is no room. */
struct record_reply *left_new(struct exports *x, const struct export *e,
			      const struct record_reply *kept,
			      const struct kept_message *m);
/* Sets *@m to the message of @kept, which is such a copy. */
void left_message(const struct record_reply *kept, struct kept_message *m);
/* Frees @kept, a copy that no record needs any more. */
void left_free(struct record_reply *kept);

#endif
