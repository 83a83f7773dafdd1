/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/credit.h"

#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/message/op.h"
#include "lnet/net/net.h"
#include "lnet/portal/md.h"
#include "lnet/route/route.h"

static void credit_move(struct lnet_msg *msg, enum msg_state to)
{
	fsm_move(&msg->fsm, msg_states, to);
}

static uint64_t wire_bytes(const struct lnet_msg *msg)
{
	return LNET_HDR_SIZE + (uint64_t)msg->hdr.payload_length;
}

static struct ni_cpt *credit_ni(const struct lnet_msg *msg)
{
	return &msg->ni->cpt[msg->cpt->index];
}

/* ---- taking ---- */

static bool goes_first(const struct lnet_msg *msg)
{
	switch (msg->role) {
	case MSG_ACK_OUT:
	case MSG_REPLY_OUT:
		return true;
	case MSG_OP:
		return msg->op->md->options & LNET_MD_URGENT;
	default:
		return false;
	}
}

static inline void take_ni_credit(struct lnet_msg *msg)
{
	struct ni_cpt *nc = credit_ni(msg);
	int32_t left = credits_get(&nc->credits) - 1;

	credits_set(&nc->credits, left);
	if (left < credits_get(&nc->credits_min))
		credits_set(&nc->credits_min, left);
	if (left >= 0) {
		msg_transmit(msg);
		return;
	}
	credit_move(msg, MSG_NI_QUEUE);
	list_add_tail(goes_first(msg) ? &nc->first : &nc->queue, &msg->link);
}

void credit_take(struct lnet_msg *msg)
{
	struct lnet_peer_ni *lpni = msg->lpni;

	lpni->credits--;
	if (lpni->credits < lpni->credits_min)
		lpni->credits_min = lpni->credits;
	if (lpni->credits >= 0) {
		take_ni_credit(msg);
		return;
	}
	credit_move(msg, MSG_PEER_QUEUE);
	lpni->queued_bytes += wire_bytes(msg);
	list_add_tail(goes_first(msg) ? &lpni->first : &lpni->queue,
		      &msg->link);
	routes_queue(msg->cpt, lpni);
}

/* ---- giving back ---- */

static struct lnet_msg *queue_pop(struct list *first, struct list *queue)
{
	struct lnet_msg *msg;

	if (!list_empty(first))
		queue = first;
	if (list_empty(queue))
		return NULL;
	msg = list_first(queue, struct lnet_msg, link);
	list_del(&msg->link);
	return msg;
}

static inline void peer_credit_return(struct lnet_peer_ni *lpni)
{
	struct lnet_msg *next = NULL;

	if (lpni->credits++ < 0)
		next = queue_pop(&lpni->first, &lpni->queue);
	if (next) {
		lpni->queued_bytes -= wire_bytes(next);
		routes_queue(next->cpt, lpni);
		take_ni_credit(next);
	}
}

static inline void ni_credit_return(struct ni_cpt *nc)
{
	int32_t had = credits_get(&nc->credits);
	struct lnet_msg *next = NULL;

	credits_set(&nc->credits, had + 1);
	if (had < 0)
		next = queue_pop(&nc->first, &nc->queue);
	if (next)
		msg_transmit(next);
}

void credit_refund(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct msg_cpt *mc = msg_cpt(cpt);

	list_add_tail(&mc->refunds, &msg->lnd.link);
	if (mc->refunding)
		return;
	mc->refunding = true;
	while (!list_empty(&mc->refunds)) {
		msg = list_first(&mc->refunds, struct lnet_msg, lnd.link);
		list_del(&msg->lnd.link);
		ni_credit_return(credit_ni(msg));
		peer_credit_return(msg->lpni);
	}
	mc->refunding = false;
}

/* Of a message that waits. */
static void leave_queue(struct lnet_msg *msg)
{
	struct ni_cpt *nc = credit_ni(msg);

	list_del(&msg->link);
	if (msg->fsm.state == MSG_PEER_QUEUE) {
		msg->lpni->credits++;
		msg->lpni->queued_bytes -= wire_bytes(msg);
		routes_queue(msg->cpt, msg->lpni);
	} else {
		credits_set(&nc->credits, credits_get(&nc->credits) + 1);
		peer_credit_return(msg->lpni);
	}
}

void credit_return(struct lnet_msg *msg)
{
	bool waits = msg->fsm.state == MSG_PEER_QUEUE ||
		     msg->fsm.state == MSG_NI_QUEUE;

	if (unlikely(waits)) {
		leave_queue(msg);
	} else if (likely(msg->lpni)) { /* else: through 0@lo */
		ni_credit_return(credit_ni(msg));
		peer_credit_return(msg->lpni);
	}
}
