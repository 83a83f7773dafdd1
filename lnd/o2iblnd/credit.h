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

#include <errno.h>

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

/* What a receive is good for, once it is posted again. */
enum ib_credit_gives {
	IB_GIVES_NOTHING,
	IB_GIVES_CREDIT,   /* to the peer */
	IB_GIVES_RESERVED, /* to this side */
};

/* The tables above, by type; of a type that is none, or that is private data
 * only, it says nothing. */
struct ib_credit_law {
	uint8_t queue; /* enum ib_queue: where it begins to wait */
	bool costs;    /* its sender a credit */
	uint8_t gives; /* enum ib_credit_gives: its receiver, later */
};
extern const struct ib_credit_law ib_credit_laws[UINT8_MAX + 1];

static inline const struct ib_credit_law *ib_credit_law(enum ib_msg_type type)
{
	return &ib_credit_laws[(uint8_t)type];
}

/* Where a message of @type begins to wait. */
static inline enum ib_queue ib_credit_queue(enum ib_msg_type type)
{
	return ib_credit_law(type)->queue;
}

/* The reserved credit of a message that goes to IB_QUEUE_NORMAL; false: there
 * is none just now. */
bool ib_credit_reserve(struct ib_credit *c) must_check;
/* ... which is given up before it was sent. */
void ib_credit_unreserve(struct ib_credit *c);

/* May a message of @type, if it has its reserved credit, go out? */
static inline bool ib_credit_may_send(const struct ib_credit *c,
				      enum ib_msg_type type)
{
	return c->have || !ib_credit_law(type)->costs;
}

/* One that may go out does so, and gives back as many credits as this
 * returns. */
static inline uint8_t ib_credit_sent(struct ib_credit *c, enum ib_msg_type type)
{
	uint8_t credits = c->owe;
	bool costs = ib_credit_law(type)->costs;

	c->have -= costs;
	c->owe = 0;
	/* The peer cannot use them before it has got them, so it never has more
	 * than this. */
	c->peer += credits;
	BUG_ON(c->peer > c->depth);
	return credits;
}

/* It has not gone out after all. */
void ib_credit_unsent(struct ib_credit *c, enum ib_msg_type type,
		      uint8_t credits);

/* A message has come, with @credits. -EPROTO: the peer gives back more than it
 * has had, or sends more than it may. */
static inline must_check int ib_credit_received(struct ib_credit *c,
						enum ib_msg_type type,
						uint8_t credits)
{
	bool costs = ib_credit_law(type)->costs;

	if (unlikely(credits > c->depth - c->have || c->peer < costs))
		return -EPROTO;
	c->have += credits;
	c->peer -= costs;
	return 0;
}

/* Its receive is posted again. @acked: it is a PUT_REQ, and a PUT_ACK was its
 * answer. */
static inline void ib_credit_reposted(struct ib_credit *c,
				      enum ib_msg_type type, bool acked)
{
	BUG_ON(acked && type != IB_MSG_PUT_REQ);
	switch (acked ? IB_GIVES_NOTHING : ib_credit_law(type)->gives) {
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

/* Is so much owed that a NOOP is to say so, if there is nothing else to
 * send? */
static inline bool ib_credit_presses(const struct ib_credit *c)
{
	return c->owe >= c->hiw;
}

/* Is it time for a NOOP? @keepalive: nothing was sent for long. @free, @normal:
 * something waits in this queue. */
static inline bool ib_credit_noop_due(const struct ib_credit *c, bool keepalive,
				      bool free, bool normal)
{
	if (likely(!ib_credit_presses(c) && !keepalive))
		return false;
	/* What can be sent takes the credits along, and is a sign of life. */
	return !free && (!normal || !c->have);
}

#endif
