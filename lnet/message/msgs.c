/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/msgs.h"

#include "lnet/message/op.h"
#include "lnet/message/throttle.h"
#include "lnet/message/tamper.h"
#include "lnet/portal/md.h"
#include "lnet/portal/mem.h"
#include "lnet/message/end.h"

const struct portal_users msgs_users = {
	.abandon = op_abandon_link,
	.buffer_came = unexpected_buffer_came,
};

void msgs_init(struct lnet_cpt *cpt)
{
	struct msg_cpt *mc = msg_cpt(cpt);

	id_table_init(&mc->ops, ID_TAG(cpt->index, ID_OP));
	pool_init(&mc->msg_pool, sizeof(struct msg_in),
		  cpt->node->conf.messages_max);
	pool_init(&mc->op_pool, sizeof(struct lnet_op), 0);
	list_init(&mc->active_in);
	list_init(&mc->active_out);
	list_init(&mc->refunds);
	list_init(&mc->delayed_in);
	list_init(&mc->delayed_out);
	list_init(&mc->paused);
	router_init(cpt);
	unexpected_init(cpt);
	throttle_init(cpt);
}

void msgs_fini(struct lnet_cpt *cpt)
{
	struct msg_cpt *mc = msg_cpt(cpt);

	router_fini(cpt);
	unexpected_fini(cpt);
	cpt_pool_fini(cpt, &mc->msg_pool, "messages");
	cpt_pool_fini(cpt, &mc->op_pool, "operations");
	id_table_fini(&mc->ops);
}

void msgs_abandon(struct lnet_cpt *cpt)
{
	tamper_discard(cpt, NULL);
	resend_discard(cpt);
	forward_discard(cpt, NULL);
	throttle_discard(cpt, NULL);
	unexpected_discard(cpt, NULL);
	ops_abandon(cpt);
}

bool msgs_idle(const struct lnet_cpt *cpt)
{
	const struct msg_cpt *mc = msg_cpt(cpt);

	return list_empty(&mc->active_in) && list_empty(&mc->active_out) &&
	       mc->ops.used == 0 && mc->op_pool.used == 0 &&
	       mc->query_pool.used == 0;
}

/* ---- what LNDs call for messages that they borrow ---- */

void upcall_finalize(struct lnd_msg *lnd, int status, enum ulnet_cause cause)
{
	BUG_ON((status == 0) != (cause == LNET_CAUSE_OK));
	if (lnd->incoming) {
		in_received(container_of(lnd, struct msg_in, out.lnd), status,
			    cause);
		return;
	}
	BUG_ON(out_of(lnd)->fsm.state != OUT_LND);
	out_finalize(out_of(lnd), status, cause);
}

void upcall_msg_header(const struct lnd_msg *lnd, void *hdr, size_t hdr_len)
{
	hdr_encode(&out_of(lnd)->hdr, hdr, hdr_len);
}

uint32_t upcall_msg_asks(const struct lnd_msg *lnd)
{
	const struct msg_out *msg = out_of(lnd);

	if (likely(msg->hdr.type != LNET_MSG_GET) || msg->role != OUT_OP ||
	    msg->flags & MSG_ROUTED ||
	    !lnet_nid_eq(&msg->hdr.dest_nid, &lnd->next_hop))
		return 0;
	return msg->hdr.length;
}

bool upcall_msg_sink(const struct lnd_msg *lnd, const struct iovec **iov,
		     unsigned int *niov, const struct span **mem)
{
	const struct msg_out *msg = out_of(lnd);
	const struct lnet_md *md = msg->op->md;

	*iov = md->iov;
	*niov = md->niov;
	*mem = mem_range(md->mem);
	return *mem != NULL;
}

void upcall_msg_reply_header(const struct lnd_msg *lnd, uint32_t length,
			     void *hdr, size_t hdr_len)
{
	const struct lnet_hdr *get = &out_of(lnd)->hdr;
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
