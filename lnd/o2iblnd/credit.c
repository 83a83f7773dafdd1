/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/credit.h"

#include <errno.h>

/* What a receive is good for, once it is posted again. */
enum gives {
	GIVES_NOTHING,
	GIVES_CREDIT,	/* to the peer */
	GIVES_RESERVED, /* to this side */
};

struct law {
	uint8_t queue; /* enum ib_queue */
	bool costs;    /* its sender a credit */
	uint8_t gives; /* enum gives: its receiver, later */
};

/* CONNREQ and CONNACK travel as private data, and no others come this far: what
 * is not a message's type was no message (ib_msg_decode()). */
static const struct law laws[] = {
	[IB_MSG_NOOP - IB_MSG_NOOP] = { IB_QUEUE_FREE, false, GIVES_NOTHING },
	[IB_MSG_IMMEDIATE -
		IB_MSG_NOOP] = { IB_QUEUE_NORMAL, true, GIVES_CREDIT },
	[IB_MSG_PUT_REQ -
		IB_MSG_NOOP] = { IB_QUEUE_RESERVED, true, GIVES_CREDIT },
	[IB_MSG_PUT_NAK -
		IB_MSG_NOOP] = { IB_QUEUE_FREE, false, GIVES_RESERVED },
	[IB_MSG_PUT_ACK -
		IB_MSG_NOOP] = { IB_QUEUE_FREE, false, GIVES_RESERVED },
	[IB_MSG_PUT_DONE -
		IB_MSG_NOOP] = { IB_QUEUE_FREE, false, GIVES_CREDIT },
	[IB_MSG_GET_REQ -
		IB_MSG_NOOP] = { IB_QUEUE_RESERVED, true, GIVES_CREDIT },
	[IB_MSG_GET_DONE -
		IB_MSG_NOOP] = { IB_QUEUE_FREE, false, GIVES_RESERVED },
};

static const struct law *law_of(enum ib_msg_type type)
{
	BUG_ON(type < IB_MSG_NOOP || type > IB_MSG_GET_DONE);
	return &laws[type - IB_MSG_NOOP];
}

void ib_credit_init(struct ib_credit *c, unsigned int depth, unsigned int hiw)
{
	BUG_ON(!depth || depth > IB_DEPTH_MAX || !hiw || hiw > depth);
	c->depth = c->have = c->reserved = c->peer = (uint8_t)depth;
	c->hiw = (uint8_t)hiw;
	c->owe = 0;
}

unsigned int ib_credit_hiw(unsigned int depth, unsigned int peer_credits,
			   unsigned int peer_credits_hiw)
{
	unsigned int hiw = depth * peer_credits_hiw / MAX(peer_credits, 1u);

	return MIN(MAX(hiw, 1u), depth);
}

enum ib_queue ib_credit_queue(enum ib_msg_type type)
{
	return law_of(type)->queue;
}

bool ib_credit_reserve(struct ib_credit *c)
{
	if (!c->reserved)
		return false;
	c->reserved--;
	return true;
}

void ib_credit_unreserve(struct ib_credit *c)
{
	BUG_ON(c->reserved >= c->depth);
	c->reserved++;
}

bool ib_credit_may_send(const struct ib_credit *c, enum ib_msg_type type)
{
	return c->have || !law_of(type)->costs;
}

uint8_t ib_credit_sent(struct ib_credit *c, enum ib_msg_type type)
{
	uint8_t credits = c->owe;

	BUG_ON(!ib_credit_may_send(c, type));
	c->have -= law_of(type)->costs;
	c->owe = 0;
	/* The peer cannot use them before it has got them, so it never has more
	 * than this. */
	c->peer += credits;
	BUG_ON(c->peer > c->depth);
	return credits;
}

void ib_credit_unsent(struct ib_credit *c, enum ib_msg_type type,
		      uint8_t credits)
{
	BUG_ON(c->peer < credits);
	c->have += law_of(type)->costs;
	c->owe += credits;
	c->peer -= credits;
}

int ib_credit_received(struct ib_credit *c, enum ib_msg_type type,
		       uint8_t credits)
{
	bool costs = law_of(type)->costs;

	if (credits > c->depth - c->have || (costs && !c->peer))
		return -EPROTO;
	c->have += credits;
	c->peer -= costs;
	return 0;
}

void ib_credit_reposted(struct ib_credit *c, enum ib_msg_type type, bool acked)
{
	BUG_ON(acked && type != IB_MSG_PUT_REQ);
	switch (acked ? GIVES_NOTHING : law_of(type)->gives) {
	case GIVES_CREDIT:
		c->owe++;
		BUG_ON(c->owe + c->peer > c->depth);
		break;
	case GIVES_RESERVED:
		ib_credit_unreserve(c);
		break;
	default:
		break;
	}
}

bool ib_credit_noop_due(const struct ib_credit *c, bool keepalive,
			const unsigned int queued[IB_QUEUES])
{
	if (c->owe < c->hiw && !keepalive)
		return false;
	/* What can be sent takes the credits along, and is a sign of life. */
	return !queued[IB_QUEUE_FREE] && (!queued[IB_QUEUE_NORMAL] || !c->have);
}
