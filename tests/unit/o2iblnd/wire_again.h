/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes a decoded message again, in the form that we send. */
#ifndef TESTS_O2IBLND_WIRE_AGAIN_H
#define TESTS_O2IBLND_WIRE_AGAIN_H

#include <string.h>
#include "base/util.h"
#include "lnd/o2iblnd/wire.h"

static inline size_t ib_again_sink(const struct ib_msg *m,
				   const struct ib_hdr *hdr, void *buf)
{
	struct ib_frag frags[IB_PUT_ACK_FRAGS];
	struct ib_sink sink = { m->rdma.key, m->rdma.nfrags, frags };

	BUG_ON(m->rdma.nfrags > ARRAY_SIZE(frags));
	for (unsigned int i = 0; i < m->rdma.nfrags; i++)
		ib_rdma_frag(&m->rdma, i, &frags[i].addr, &frags[i].nob);
	if (m->type == IB_MSG_PUT_ACK)
		return ib_put_ack_encode(hdr, m->cookie, m->dst_cookie, &sink,
					 buf);
	return ib_get_req_encode(hdr, m->cookie, &sink, buf);
}

static inline size_t ib_again_any(const struct ib_msg *m,
				  const struct ib_hdr *hdr, void *buf)
{
	switch (m->type) {
	case IB_MSG_CONNREQ:
	case IB_MSG_CONNACK:
		return ib_conn_encode(hdr, m->type, &m->params, buf);
	case IB_MSG_NOOP:
		return ib_noop_encode(hdr, buf);
	case IB_MSG_IMMEDIATE:
		return ib_immediate_encode(hdr, m->payload_len, buf);
	case IB_MSG_PUT_REQ:
		return ib_put_req_encode(hdr, m->cookie, buf);
	case IB_MSG_PUT_ACK:
	case IB_MSG_GET_REQ:
		return ib_again_sink(m, hdr, buf);
	case IB_MSG_PUT_NAK:
	case IB_MSG_PUT_DONE:
	case IB_MSG_GET_DONE:
		return ib_done_encode(hdr, m->type, m->cookie, m->status, buf);
	}
	BUG_ON(true);
}

/* @buf: IB_MSG_SIZE_MAX bytes. Returns the size of the message. */
static inline size_t ib_again(const struct ib_msg *m, void *buf)
{
	struct ib_envelope env = ib_msg_env(m);
	struct ib_hdr hdr = ib_hdr_of(&env);
	size_t size = ib_again_any(m, &hdr, buf);

	if (m->lnet_hdr)
		memcpy((uint8_t *)buf + IB_LNET_OFFSET, m->lnet_hdr,
		       LNET_HDR_SIZE);
	if (m->payload_len)
		memcpy((uint8_t *)buf + IB_PAYLOAD_OFFSET, m->payload,
		       m->payload_len);
	ib_msg_set_credits(buf, m->credits);
	if (m->cksum)
		ib_msg_set_cksum(buf);
	return size;
}

#endif
