/* SPDX-License-Identifier: BSD-3-Clause */
/* What LNDs ask of the messages that are lent to them (lnd.h). */
#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/message/op.h"
#include "lnet/message/wire.h"
#include "lnet/portal/md.h"
#include "lnet/portal/mem.h"

void upcall_msg_header(const struct lnd_msg *lnd, void *hdr, size_t hdr_len)
{
	hdr_encode(&container_of(lnd, const struct lnet_msg, lnd)->hdr, hdr,
		   hdr_len);
}

uint32_t upcall_msg_asks(const struct lnd_msg *lnd)
{
	const struct lnet_msg *msg =
		container_of(lnd, const struct lnet_msg, lnd);

	if (likely(msg->hdr.type != LNET_MSG_GET) || msg->role != MSG_OP ||
	    msg->flags & MSG_ROUTED ||
	    !lnet_nid_eq(&msg->hdr.dest_nid, &lnd->next_hop))
		return 0;
	return msg->hdr.length;
}

bool upcall_msg_sink(const struct lnd_msg *lnd, const struct iovec **iov,
		     unsigned int *niov, const struct span **mem)
{
	const struct lnet_msg *msg =
		container_of(lnd, const struct lnet_msg, lnd);
	const struct lnet_md *md = msg->op->md;

	*iov = md->iov;
	*niov = md->niov;
	*mem = mem_range(md->mem);
	return *mem != NULL;
}

void upcall_msg_reply_header(const struct lnd_msg *lnd, uint32_t length,
			     void *hdr, size_t hdr_len)
{
	const struct lnet_hdr *get =
		&container_of(lnd, const struct lnet_msg, lnd)->hdr;
	const struct lnet_hdr reply = {
		.dest_nid = get->src_nid,
		.src_nid = get->dest_nid,
		.dest_pid = get->src_pid,
		.src_pid = get->dest_pid,
		.type = LNET_MSG_REPLY,
		.payload_length = length,
		.wmd = get->wmd,
	};

	hdr_encode(&reply, hdr, hdr_len);
}
