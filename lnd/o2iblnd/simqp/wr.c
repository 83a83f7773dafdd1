/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/simqp/wr.h"

#include "lnd/o2iblnd/simqp/mr.h"

static void gather(const struct simqp_wr *wr, uint8_t *to)
{
	for (unsigned int i = 0; i < wr->nsge; i++) {
		if (wr->sge[i].length)
			memcpy(to, wr->sge[i].addr, wr->sge[i].length);
		to += wr->sge[i].length;
	}
}

static void keep_bytes(struct simqp_wr *wr)
{
	wr->bytes = simqp_alloc(MAX(wr->length, 1));
	gather(wr, wr->bytes);
	wr->port = NULL;
}

struct simqp_wr *simqp_wr_new(struct simqp_port *port, const struct ib_wr *from)
{
	struct simqp_wr *wr =
		simqp_alloc(sizeof(*wr) + from->nsge * sizeof(wr->sge[0]));

	list_init(&wr->link);
	wr->refs = 1;
	wr->type = from->type;
	wr->cookie = from->cookie;
	wr->remote_addr = from->remote_addr;
	wr->rkey = from->rkey;
	wr->port = port;
	wr->nsge = from->nsge;
	for (unsigned int i = 0; i < wr->nsge; i++) {
		wr->sge[i] = from->sge[i];
		wr->length += from->sge[i].length;
	}
	if (from->inlined)
		keep_bytes(wr);
	return wr;
}

void simqp_wr_put(struct simqp_wr *wr)
{
	BUG_ON(!wr->refs);
	if (--wr->refs)
		return;
	free(wr->bytes);
	free(wr);
}

bool simqp_wr_is_readable(const struct simqp_wr *wr)
{
	if (!wr->port)
		return wr->bytes;
	for (unsigned int i = 0; i < wr->nsge; i++)
		if (!simqp_mr_is_local(wr->port, &wr->sge[i]))
			return false;
	return true;
}

void simqp_wr_read(const struct simqp_wr *wr, void *to)
{
	if (!wr->bytes)
		gather(wr, to);
	else if (wr->length)
		memcpy(to, wr->bytes, wr->length);
}

void simqp_wr_detach(struct simqp_wr *wr)
{
	if (wr->port && wr->refs > 1 && simqp_wr_is_readable(wr))
		keep_bytes(wr);
	wr->port = NULL;
}
