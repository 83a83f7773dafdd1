/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow control by credits, version 2 of the protocol: a side sends only
 * messages for which the peer has posted a receive. Arithmetic on a small
 * structure, which knows messages by their types only. The functions are in
 * exchange.c.
 *
 * Each side posts 2D + 2 receives, where D is the negotiated queue depth:
 *
 *	D	for messages that cost a credit: IMMEDIATE, PUT_REQ, GET_REQ
 *	D	for answers to our requests: PUT_ACK, PUT_NAK, GET_DONE; each
 *		request takes a reserved credit for its answer
 *	2	for NOOPs
 *
 * A PUT_DONE uses the receive of its PUT_REQ, which is not posted again before.
 *
 *	sent			costs a credit	and a reserved one
 *	IMMEDIATE		yes		no
 *	PUT_REQ, GET_REQ	yes		yes
 *	PUT_ACK, PUT_NAK, PUT_DONE, GET_DONE, NOOP
 *				no		no
 *
 *	received, and its receive posted again	this side
 *	IMMEDIATE, PUT_DONE, GET_REQ		owes one credit more
 *	PUT_REQ, answered by a PUT_NAK		owes one credit more
 *	PUT_REQ, answered by a PUT_ACK		nothing
 *	PUT_ACK, PUT_NAK, GET_DONE		has one reserved credit more
 *	NOOP					nothing
 *
 * The next message to the peer, of whatever type, returns all credits that are
 * owed.
 *
 * Invariant: the credits that one side has, those that the other owes, those
 * under way, and the messages that have cost a credit not yet returned are D
 * together. What the peer may have is counted, too: one that sends more has
 * broken the protocol, and no peer can make this side owe more than D.
 *
 * Owner: the connection that embeds it. Thread: any, one at a time.
 */
#ifndef LND_O2IBLND_CREDIT_H
#define LND_O2IBLND_CREDIT_H

#include <errno.h>

#include "lnd/o2iblnd/wire.h"

/* The field for credits in messages has 8 bits. */
#define IB_DEPTH_MAX 255
/* Most NOOPs posted at a time. */
#define IB_NOOPS_MAX 2

/* Receives to post for queue depth @d. */
#define IB_RECEIVES(d) (2 * (unsigned int)(d) + IB_NOOPS_MAX)

/* The queues of messages to be sent, by priority. A message leaves
 * IB_QUEUE_RESERVED for IB_QUEUE_NORMAL once it has its reserved credit. */
enum ib_queue {
	IB_QUEUE_FREE,	   /* costs no credit */
	IB_QUEUE_NORMAL,   /* has its reserved credit, or needs none */
	IB_QUEUE_RESERVED, /* waits for a reserved credit */
	IB_QUEUES
};

struct ib_credit {
	/* immutable after init */
	uint8_t depth; /* D */
	uint8_t hiw;   /* owing so many credits makes this side send a NOOP */

	/* number of messages that this side may send: its credits */
	uint8_t have;
	/* number of credits to be returned with the next message */
	uint8_t owe;
	/* number of requests that may be sent, as far as receives for their
	 * answers go */
	uint8_t reserved;
	uint8_t peer; /* the most messages that the peer may send */
};

/* @depth: 1 to IB_DEPTH_MAX. @hiw: 1 to @depth. */
void ib_credit_init(struct ib_credit *c, unsigned int depth, unsigned int hiw);
/* Returns the hiw for a connection of @depth: as much of @depth as
 * @peer_credits_hiw is of @peer_credits. */
unsigned int ib_credit_hiw(unsigned int depth, unsigned int peer_credits,
			   unsigned int peer_credits_hiw);

/* What this side gives, or gets, by posting a receive again. */
enum ib_credit_gives {
	IB_GIVES_NOTHING,
	IB_GIVES_CREDIT,   /* a credit, which is owed to the peer */
	IB_GIVES_RESERVED, /* a reserved credit of this side */
};

/* A line of the tables at the top of this file, for one message type. Types
 * that are unknown, or occur in private data only, have all 0. */
struct ib_credit_rule {
	/* enum ib_queue: the queue in which the message waits first */
	uint8_t queue;
	bool costs; /* the message costs its sender a credit */
	/* enum ib_credit_gives: what posting its receive again gives */
	uint8_t gives;
};
extern const struct ib_credit_rule ib_credit_rules[UINT8_MAX + 1];

static inline const struct ib_credit_rule *ib_credit_rule(enum ib_msg_type type)
{
	return &ib_credit_rules[(uint8_t)type];
}

/* Returns the queue in which a message of @type waits first. */
static inline enum ib_queue ib_credit_queue(enum ib_msg_type type)
{
	return ib_credit_rule(type)->queue;
}

/* Takes a reserved credit, with which a message enters IB_QUEUE_NORMAL. Returns
 * false: none is left. */
bool ib_credit_reserve(struct ib_credit *c) must_check;
/* Returns the reserved credit of a message that was not sent. */
void ib_credit_unreserve(struct ib_credit *c);

/* May a message of @type be sent, if it has its reserved credit? */
static inline bool ib_credit_may_send(const struct ib_credit *c,
				      enum ib_msg_type type)
{
	return c->have || !ib_credit_rule(type)->costs;
}

/* Counts a message of @type as sent. Returns how many credits the message
 * returns to the peer. */
static inline uint8_t ib_credit_sent(struct ib_credit *c, enum ib_msg_type type)
{
	uint8_t credits = c->owe;
	bool costs = ib_credit_rule(type)->costs;

	c->have -= costs;
	c->owe = 0;
	/* From now on the peer may send so many messages at most: it cannot use
	 * credits before it has received them. */
	c->peer += credits;
	BUG_ON(c->peer > c->depth);
	return credits;
}

/* Undoes ib_credit_sent() for a message that could not be posted. */
void ib_credit_unsent(struct ib_credit *c, enum ib_msg_type type,
		      uint8_t credits);

/* Counts a received message that returns @credits. -EPROTO: the peer returns
 * more than it owed, or has sent more than it may. */
static inline must_check int ib_credit_received(struct ib_credit *c,
						enum ib_msg_type type,
						uint8_t credits)
{
	bool costs = ib_credit_rule(type)->costs;

	if (unlikely(credits > c->depth - c->have || c->peer < costs))
		return -EPROTO;
	c->have += credits;
	c->peer -= costs;
	return 0;
}

/* Counts that the receive of a message of @type is posted again. @acked: the
 * message was a PUT_REQ, answered by a PUT_ACK. */
static inline void ib_credit_reposted(struct ib_credit *c,
				      enum ib_msg_type type, bool acked)
{
	BUG_ON(acked && type != IB_MSG_PUT_REQ);
	switch (acked ? IB_GIVES_NOTHING : ib_credit_rule(type)->gives) {
	case IB_GIVES_CREDIT:
		c->owe++;
		BUG_ON(c->owe + c->peer > c->depth);
		break;
	case IB_GIVES_RESERVED:
		ib_credit_unreserve(c);
		break;
	default:
		break;
	}
}

/* Is so much owed that a NOOP must be sent, if nothing else can be? */
static inline bool ib_credit_presses(const struct ib_credit *c)
{
	return c->owe >= c->hiw;
}

/* Must a NOOP be sent? @keepalive: a keepalive is due. @free, @normal: there
 * are messages in IB_QUEUE_FREE, in IB_QUEUE_NORMAL. */
static inline bool ib_credit_noop_due(const struct ib_credit *c, bool keepalive,
				      bool free, bool normal)
{
	if (likely(!ib_credit_presses(c) && !keepalive))
		return false;
	/* Any message returns credits, and keeps the connection alive. */
	return !free && (!normal || !c->have);
}

#endif
