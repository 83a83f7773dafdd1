/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/credit.h"

const struct ib_credit_law ib_credit_laws[UINT8_MAX + 1] = {
	[IB_MSG_NOOP] = { IB_QUEUE_FREE, false, IB_GIVES_NOTHING },
	[IB_MSG_IMMEDIATE] = { IB_QUEUE_NORMAL, true, IB_GIVES_CREDIT },
	[IB_MSG_PUT_REQ] = { IB_QUEUE_RESERVED, true, IB_GIVES_CREDIT },
	[IB_MSG_PUT_NAK] = { IB_QUEUE_FREE, false, IB_GIVES_RESERVED },
	[IB_MSG_PUT_ACK] = { IB_QUEUE_FREE, false, IB_GIVES_RESERVED },
	[IB_MSG_PUT_DONE] = { IB_QUEUE_FREE, false, IB_GIVES_CREDIT },
	[IB_MSG_GET_REQ] = { IB_QUEUE_RESERVED, true, IB_GIVES_CREDIT },
	[IB_MSG_GET_DONE] = { IB_QUEUE_FREE, false, IB_GIVES_RESERVED },
};

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

void ib_credit_unsent(struct ib_credit *c, enum ib_msg_type type,
		      uint8_t credits)
{
	BUG_ON(c->peer < credits);
	c->have += ib_credit_law(type)->costs;
	c->owe += credits;
	c->peer -= credits;
}
