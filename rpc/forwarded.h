/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that came to another CPT than the one that knows their connection. A
 * copy of the message goes to the right CPT, and comes back when that CPT is
 * done with it, so that the first CPT can count its copies under way. This file
 * does not look into messages.
 *
 * Anybody can send messages to the wrong CPT. So what each CPT may have under
 * way is limited, and each NID that messages come from has its share of that
 * (quota.h): if a NID has used up its share, its messages are dropped or
 * refused, and nobody else waits. Whole messages and messages without their
 * bodies have separate limits: if there is no room for a whole message, its
 * head can still be forwarded, so that it is refused.
 */
#ifndef RPC_FORWARDED_H
#define RPC_FORWARDED_H

#include "ulnet/loop.h"

struct quota;
struct rpc_part;
struct shard;
struct forwarded;

/* Bytes under way from one CPT, of all NIDs. */
#define FORWARDED_HEADS_MAX (UINT32_C(8) << 20)
#define FORWARDED_WHOLE_MAX (UINT32_C(32) << 20)

extern const struct rpc_part forwarded_part;

typedef void (*forwarded_fn)(struct forwarded *forwarded);

struct forwarded {
	struct ulnet_work work;
	struct shard *from, *to;
	struct quota *quota;
	bool whole; /* as it came, or without bodies */
	forwarded_fn there, back;
	void *arg; /* the sender's */
	struct ulnet_event ev;
	size_t length;
	_Alignas(uint64_t) uint8_t payload[];
};

/* Makes one with a copy of @ev and of @payload. If @payload is NULL, the caller
 * fills it in. @whole: the message is as it came; else it has no bodies. NULL:
 * there is no memory, or the sender's NID has used up its share, which is
 * counted. Owner of @from. */
struct forwarded *forwarded_new(struct shard *from, unsigned int cpt,
				const struct ulnet_event *ev,
				const void *payload, size_t length, bool whole);
/* Calls @there on forwarded->to, then @back, unless it is NULL, on
 * forwarded->from, and frees @forwarded. Owner of forwarded->from. */
void forwarded_send(struct forwarded *forwarded, forwarded_fn there,
		    forwarded_fn back, void *arg);

#endif
