/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwards messages that came to another CPT than the one that has their
 * connection: a copy of the message goes to that CPT, and comes back to be
 * freed. This file does not look into messages. Such are all messages of
 * clients that another CPT serves (server/session/export_control.c).
 *
 * Anybody can send messages to the wrong CPT. So the bytes that a CPT has
 * forwarded, and that have not come back yet, are limited, and each sender's
 * NID has its share of them (quota.h): all clients of a host together have the
 * share of one host.
 *
 * If whole messages of a NID take half of its share, because the other CPT is
 * slow, LNet leaves the NID's further messages unread until they take less than
 * a quarter (lnet_peer_throttle(3)). The other half is for what LNet is
 * receiving then. So nothing is dropped, unless more than that is under way, in
 * many connections of a host. Then plain messages are refused: whole messages
 * and messages without their bodies have separate limits, so that the head can
 * still be forwarded to the CPT that has to refuse the message. Sealed
 * messages, which only that CPT can read, are dropped and counted, and their
 * clients ask about the calls.
 */
#ifndef RPC_FORWARDED_H
#define RPC_FORWARDED_H

#include "ulnet/loop.h"

struct quota;
struct rpc_part;
struct shard;
struct forwarded;

/* Bytes that a CPT has forwarded, and that have not come back yet, at most. */
#define FORWARDED_HEADS_MAX (UINT32_C(8) << 20)
#define FORWARDED_WHOLE_MAX (UINT32_C(32) << 20)

extern const struct rpc_part forwarded_part;

typedef void (*forwarded_fn)(struct forwarded *forwarded);

struct forwarded {
	struct ulnet_work work;
	struct shard *from, *to;
	struct quota *quota;
	bool whole; /* false: the message is without its bodies */
	forwarded_fn there, back;
	void *arg; /* what was given to forwarded_send(), for both functions */
	struct ulnet_event ev;
	size_t length;
	_Alignas(uint64_t) uint8_t payload[];
};

/* Prepares a message for @cpt: copies @ev and @payload. If @payload is NULL,
 * the caller fills in the @length bytes of forwarded->payload. @whole: the
 * message is complete; else it has no bodies. Returns NULL if there is no
 * memory, @from is aborted, or the sender's NID has used up its share, which is
 * counted. Owner of @from. */
struct forwarded *forwarded_new(struct shard *from, unsigned int cpt,
				const struct ulnet_event *ev,
				const void *payload, size_t length, bool whole);
/* Sends @forwarded, which belongs to this file from then on: calls @there on
 * forwarded->to, then @back, unless it is NULL, on forwarded->from, where
 * @forwarded is freed. Owner of forwarded->from. */
void forwarded_send(struct forwarded *forwarded, forwarded_fn there,
		    forwarded_fn back, void *arg);

#endif
