/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the payload of a transfer is: in memory that the user has registered,
 * or in some that it is copied through. */
#include <errno.h>

#include "base/iov.h"
#include "lnd/o2iblnd/xfer_priv.h"

enum ib_use ib_xfer_use(const struct ib_xfer *x)
{
	return x->kind == IB_XFER_SINK || x->kind == IB_XFER_ANSWER
		       ? IB_USE_ANSWERS
		       : IB_USE_ASKS;
}

const struct ib_sge *ib_xfer_source(const struct ib_xfer *x)
{
	return ib_is_direct(&x->direct) ? x->direct.sges : &x->memory.sge;
}

struct ib_sink ib_xfer_sink(const struct ib_xfer *x, struct ib_frag *frags)
{
	const struct ib_block *block = &x->memory.block;

	if (ib_is_direct(&x->direct))
		return ib_direct_sink(&x->direct, frags);
	*frags = (struct ib_frag){ (uintptr_t)block->addr, x->length };
	return (struct ib_sink){ block->rkey, 1, frags };
}

/* The payload, if it is in registered memory. */
static bool payload_of(const struct ib_xfer *x, struct ib_payload *p)
{
	const struct lnd_msg *msg = x->msg;

	*p = (struct ib_payload){ msg->iov, msg->niov, msg->offset, x->length,
				  msg->mem };
	if (x->kind != IB_XFER_GET)
		return msg->mem;
	p->offset = 0;
	return lnet_msg_sink(msg, &p->iov, &p->niov, &p->mem);
}

/* Who waits for memory is not overtaken by what needs none. */
static bool go_direct(struct ib_xfer *x, const struct ib_conn *conn)
{
	bool sink = x->kind == IB_XFER_GET || x->kind == IB_XFER_SINK;
	struct ib_payload payload;

	return payload_of(x, &payload) &&
	       !ib_memory_is_awaited(x->cpt, ib_xfer_use(x), &x->peer) &&
	       ib_direct_get(x->cpt, &payload, sink ? conn->terms.frags : 0,
			     &x->direct);
}

void ib_xfer_fill(struct ib_xfer *x)
{
	const struct lnd_msg *msg = x->msg;

	if (x->kind == IB_XFER_PUT || x->kind == IB_XFER_ANSWER)
		iov_gather(x->memory.block.addr, msg->iov, msg->niov,
			   msg->offset, msg->length);
}

void ib_xfer_empty(const struct ib_xfer *x)
{
	const struct lnd_msg *msg = x->msg;

	if (!ib_is_direct(&x->direct))
		iov_scatter(msg->iov, msg->niov, msg->offset,
			    x->memory.block.addr, msg->length);
}

int ib_xfer_find_memory(struct ib_xfer *x, const struct ib_conn *conn)
{
	int rc;

	if (go_direct(x, conn))
		return 0;
	rc = ib_memory_get(x->cpt, ib_xfer_use(x), &x->peer, x->length,
			   &x->memory);
	if (!rc)
		ib_xfer_fill(x);
	return rc == -ENOBUFS ? ib_xfer_hunger(x) : rc;
}

void ib_xfer_put_aside(struct ib_cpt *cpt)
{
	struct ib_xfer *x;

	list_for_each_entry (x, &cpt->got, link) {
		if (!x->memory.block.chunk)
			continue;
		/* Without memory LNet hears so when it takes it. */
		x->copy = malloc(x->length);
		if (x->copy)
			memcpy(x->copy, x->memory.block.addr, x->length);
		ib_memory_put(cpt, &x->memory);
		x->memory.block.addr = NULL;
	}
}
