/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits of a connection, version 2 of the protocol: who may send how much, so
 * that there is always a receive posted for it. Arithmetic on a small
 * structure; knows no message but its type.
 *
 * Each side has 2D + 2 receives posted, D being the depth that was agreed upon:
 *
 *	D	for what costs the peer a credit: IMMEDIATE, PUT_REQ, GET_REQ
 *	D	for answers to what this side has asked: PUT_ACK, PUT_NAK,
 *		GET_DONE, for each of which a reserved credit was taken
 *	2	for NOOPs
 *
 * A PUT_DONE goes to the receive of its PUT_REQ, which comes back only then.
 *
 *	sent			costs a credit	and a reserved one
 *	IMMEDIATE		yes		no
 *	PUT_REQ, GET_REQ	yes		yes
 *	PUT_ACK, PUT_NAK, PUT_DONE, GET_DONE, NOOP
 *				no		no
 *
 *	received, and its receive posted again:	this side
 *	IMMEDIATE, PUT_DONE, GET_REQ		owes one more
 *	PUT_REQ, unless there was a PUT_ACK	owes one more
 *	PUT_REQ, with a PUT_ACK sent		nothing
 *	PUT_ACK, PUT_NAK, GET_DONE		has one more reserved
 *	NOOP					nothing
 *
 * What is owed goes to the peer with the next message, whatever it is.
 *
 * Invariant of both sides: credits that one has, that the other one owes, that
 * are on their way, and messages that have cost one and not given it back, are
 * D together. What a peer may have at most is counted here, too: one that sends
 * more than that has broken the protocol, and nobody can make this side owe
 * more than D.
 *
 * Owner: the connection that embeds it. Thread: any, one at a time.
 */
#ifndef LND_O2IBLND_CREDIT_H
#define LND_O2IBLND_CREDIT_H

#include "lnd/o2iblnd/wire.h"

/* The field of messages has 8 bits. */
#define IB_DEPTH_MAX 255
/* NOOPs under way at a time. */
#define IB_NOOPS_MAX 2

/* Receives to be posted for depth @d. */
#define IB_RECEIVES(d) (2 * (unsigned int)(d) + IB_NOOPS_MAX)

/* Where a message waits to be sent. The order is that of priority; that of
 * IB_QUEUE_RESERVED goes over to IB_QUEUE_NORMAL. */
enum ib_queue {
	IB_QUEUE_FREE,	   /* costs nothing */
	IB_QUEUE_NORMAL,   /* has got its reserved credit, or needs none */
	IB_QUEUE_RESERVED, /* waits for a reserved credit */
	IB_QUEUES
};

struct ib_credit {
	/* immutable after init */
	uint8_t depth; /* D */
	uint8_t hiw;   /* so many are sent back even if nothing else is */

	uint8_t have;	  /* C: messages that may be sent */
	uint8_t owe;	  /* O: to be given back with the next message */
	uint8_t reserved; /* R: answers that may be asked for */
	uint8_t peer;	  /* messages that the peer may send at most */
};

/* @depth: 1 to IB_DEPTH_MAX. @hiw: 1 to @depth. */
void ib_credit_init(struct ib_credit *c, unsigned int depth, unsigned int hiw);
/* For a connection of @depth, where the tunables are @peer_credits and
 * @peer_credits_hiw. */
unsigned int ib_credit_hiw(unsigned int depth, unsigned int peer_credits,
			   unsigned int peer_credits_hiw);

/* Where a message of @type begins to wait. */
enum ib_queue ib_credit_queue(enum ib_msg_type type);

/* The reserved credit of a message that goes to IB_QUEUE_NORMAL; false: there
 * is none just now. */
bool ib_credit_reserve(struct ib_credit *c) must_check;
/* ... which is given up before it was sent. */
void ib_credit_unreserve(struct ib_credit *c);

/* May a message of @type, if it has its reserved credit, go out? */
bool ib_credit_may_send(const struct ib_credit *c, enum ib_msg_type type);
/* It goes out, and gives back as many credits as this returns. */
uint8_t ib_credit_sent(struct ib_credit *c, enum ib_msg_type type);
/* It has not gone out after all. */
void ib_credit_unsent(struct ib_credit *c, enum ib_msg_type type,
		      uint8_t credits);

/* A message has come, with @credits. -EPROTO: the peer gives back more than it
 * has had, or sends more than it may. */
int ib_credit_received(struct ib_credit *c, enum ib_msg_type type,
		       uint8_t credits) must_check;
/* Its receive is posted again. @acked: it is a PUT_REQ, and a PUT_ACK was its
 * answer. */
void ib_credit_reposted(struct ib_credit *c, enum ib_msg_type type, bool acked);

/* Is it time for a NOOP? @keepalive: nothing was sent for long. @queued: what
 * waits in a queue, by enum ib_queue. */
bool ib_credit_noop_due(const struct ib_credit *c, bool keepalive,
			const unsigned int queued[IB_QUEUES]);

#endif
