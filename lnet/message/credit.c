/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/out.h"

#include <errno.h>

#include "lnet/message/end.h"
#include "lnet/message/msgs.h"
#include "lnet/message/op.h"
#include "lnet/net/net.h"
#include "lnet/nid/nid.h"
#include "lnet/portal/md.h"
#include "lnet/route/route.h"

static uint64_t wire_bytes(const struct msg_out *msg)
{
	return LNET_HDR_SIZE + (uint64_t)msg->hdr.payload_length;
}

static struct ni_cpt *credit_ni(const struct msg_out *msg)
{
	return &msg->ni->cpt[msg->cpt->index];
}

/* ---- connections that take long ---- */

/* Within a site, connecting usually takes less than this. */
#define CONNECTED_SOON (20 * NSEC_PER_MSEC)

/* @msg begins to wait for a connection. If it may have another path, its timer
 * is set to fire soon (credit_connect_late()). */
static void connect_begin(struct msg_out *msg)
{
	uint64_t soon = loop_now(msg->cpt->loop) + CONNECTED_SOON;

	if (resend_waits_to_repeat(msg))
		loop_timer_arm(msg->cpt->loop, &msg->timer,
			       resend_connect_until(msg));
	else if (msg->lpni->only_in != msg->cpt->topology &&
		 soon < msg->lnd.deadline)
		loop_timer_arm(msg->cpt->loop, &msg->timer, soon);
}

/* If @msg were sent now, would it take a path that has a connection? */
static bool is_connected_elsewhere(const struct msg_out *msg)
{
	struct path path;

	return !out_select(msg, &path) && path.ni && path.lpni &&
	       path.lpni->connected_from & path.ni->bit;
}

void credit_connect_late(struct msg_out *msg)
{
	loop_timer_arm(msg->cpt->loop, &msg->timer, msg->lnd.deadline);
	if (msg->fsm.state != OUT_CONNECTING || msg->role == OUT_DUPLICATE ||
	    !is_connected_elsewhere(msg))
		return;
	out_withdraw(msg, OUT_NEW);
	out_send_anew(msg);
}

/* ---- to the LND ---- */

static void credit_refund(struct msg_out *msg);

/* Prepares @msg for the LND of its path. */
static void credit_lend(struct msg_out *msg)
{
	msg->lnd.incoming = false;
	msg->lnd.large = !lnet_nid_is_nid4(&msg->hdr.src_nid) ||
			 !lnet_nid_is_nid4(&msg->hdr.dest_nid);
	msg->nsends++;
	msg->lnd.ni = &msg->ni->lnd;
}

bool credit_offer(struct msg_out *msg)
{
	const struct lnd *lnd = msg->ni->lnd.lnd;

	if (!lnd->push || msg->lnd.length > OUT_PUSH_MAX ||
	    msg->lpni->credits <= 0 ||
	    credits_get(&credit_ni(msg)->credits) <= 0)
		return false;
	credit_lend(msg);
	if (likely(lnd->push(msg->lnd.ni, &msg->lnd)))
		return true;
	msg->nsends--;
	return false;
}

bool credit_push(struct msg_out *msg)
{
	if (!credit_offer(msg))
		return false;
	out_pushed(msg);
	return true;
}

void credit_transmit(struct msg_out *msg)
{
	const struct lnd *lnd = msg->ni->lnd.lnd;
	int rc;

	out_move(msg, OUT_LND);
	credit_lend(msg);
	rc = lnd->send(msg->lnd.ni, &msg->lnd);
	if (likely(!rc))
		return;
	msg->nsends--;
	if (rc == -EINPROGRESS) {
		out_move(msg, OUT_CONNECTING);
		list_add_tail(&msg->lpni->connecting, &msg->link);
		peer_connecting(msg->lpni, msg->ni->bit);
		connect_begin(msg);
		credit_refund(msg);
		return;
	}
	out_move(msg, OUT_REFUSED);
	out_fail_later(msg, rc, lnd_refusal_cause(rc));
}

/* ---- taking ---- */

static bool goes_first(const struct msg_out *msg)
{
	switch (msg->role) {
	case OUT_ANSWER:
		return true;
	case OUT_OP:
		return msg->op->md->options & LNET_MD_URGENT;
	default:
		return false;
	}
}

static inline void take_ni_credit(struct msg_out *msg)
{
	struct ni_cpt *nc = credit_ni(msg);
	int32_t left = credits_get(&nc->credits) - 1;

	credits_set(&nc->credits, left);
	if (left < credits_get(&nc->credits_min))
		credits_set(&nc->credits_min, left);
	if (left >= 0) {
		credit_transmit(msg);
		return;
	}
	out_move(msg, OUT_NI_QUEUE);
	list_add_tail(goes_first(msg) ? &nc->first : &nc->queue, &msg->link);
}

void credit_take(struct msg_out *msg)
{
	struct lnet_peer_ni *lpni = msg->lpni;

	lpni->credits--;
	if (lpni->credits < lpni->credits_min)
		lpni->credits_min = lpni->credits;
	if (lpni->credits >= 0) {
		take_ni_credit(msg);
		return;
	}
	out_move(msg, OUT_PEER_QUEUE);
	lpni->queued_bytes += wire_bytes(msg);
	list_add_tail(goes_first(msg) ? &lpni->first : &lpni->queue,
		      &msg->link);
	routes_queue(msg->cpt, lpni);
}

/* ---- giving back ---- */

static struct msg_out *queue_pop(struct list *first, struct list *queue)
{
	struct msg_out *msg;

	if (!list_empty(first))
		queue = first;
	if (list_empty(queue))
		return NULL;
	msg = list_first(queue, struct msg_out, link);
	list_del(&msg->link);
	return msg;
}

static inline void peer_credit_return(struct lnet_peer_ni *lpni)
{
	struct msg_out *next = NULL;

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
	struct msg_out *next = NULL;

	credits_set(&nc->credits, had + 1);
	if (had < 0)
		next = queue_pop(&nc->first, &nc->queue);
	if (next)
		credit_transmit(next);
}

/* Returns the credits of @msg. Another message that gets one of them may have
 * to wait for a connection, and then returns its credits as well. This is done
 * in a loop, and not by recursion, since there may be thousands of such
 * messages. */
static void credit_refund(struct msg_out *msg)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct msg_cpt *mc = msg_cpt(cpt);

	list_add_tail(&mc->refunds, &msg->lnd.link);
	if (mc->refunding)
		return;
	mc->refunding = true;
	while (!list_empty(&mc->refunds)) {
		msg = list_first(&mc->refunds, struct msg_out, lnd.link);
		list_del(&msg->lnd.link);
		ni_credit_return(credit_ni(msg));
		peer_credit_return(msg->lpni);
	}
	mc->refunding = false;
}

/* Takes @msg, which waits for a credit, off its queue. */
static void leave_queue(struct msg_out *msg)
{
	struct ni_cpt *nc = credit_ni(msg);

	list_del(&msg->link);
	if (msg->fsm.state == OUT_PEER_QUEUE) {
		msg->lpni->credits++;
		msg->lpni->queued_bytes -= wire_bytes(msg);
		routes_queue(msg->cpt, msg->lpni);
	} else {
		credits_set(&nc->credits, credits_get(&nc->credits) + 1);
		peer_credit_return(msg->lpni);
	}
}

void credit_return(struct msg_out *msg)
{
	bool waits = msg->fsm.state == OUT_PEER_QUEUE ||
		     msg->fsm.state == OUT_NI_QUEUE;

	if (unlikely(waits)) {
		leave_queue(msg);
		/* without @lpni, @msg goes through 0@lo and has no credits */
	} else if (likely(msg->lpni)) {
		ni_credit_return(credit_ni(msg));
		peer_credit_return(msg->lpni);
	}
}

/* ---- connections ---- */

void upcall_send_again(struct lnd_msg *lnd)
{
	struct msg_out *msg = out_of(lnd);

	BUG_ON(!msg->lpni || lnd->again);
	lnd->again = true;
	msg->nsends--;
	out_move(msg, OUT_CONNECTING);
	list_add(&msg->lpni->connecting, &msg->link);
	peer_connecting(msg->lpni, msg->ni->bit);
	credit_refund(msg);
}

/* Does @msg wait for a connection from @ni to @peer? */
static bool out_waits_for(const struct msg_out *msg, const struct lnet_ni *ni,
			  const struct ulnet_id *peer)
{
	return msg->ni == ni &&
	       (peer->pid == LNET_PID_ANY || msg->lnd.next_pid == peer->pid);
}

void upcall_peer_connected(struct lnd_ni *lnd, const struct ulnet_id *peer,
			   int status, enum ulnet_cause cause)
{
	struct lnet_ni *ni = ni_of(lnd);
	struct lnet_cpt *cpt = node_cpt_here(ni->node);
	struct lnet_peer_ni *lpni = peer_find(cpt, &peer->nid);
	struct msg_out *msg, *next;
	struct list waiting;

	BUG_ON((status == 0) != (cause == LNET_CAUSE_OK));
	if (!lpni)
		return;
	peer_connected(lpni, ni->bit, !status);
	/* These messages get a list of their own, so that messages which users'
	 * handlers send meanwhile are not affected. */
	list_init(&waiting);
	list_for_each_entry_safe (msg, next, &lpni->connecting, link) {
		if (!out_waits_for(msg, ni, peer))
			continue;
		list_del(&msg->link);
		list_add_tail(&waiting, &msg->link);
	}
	while (!list_empty(&waiting)) {
		msg = list_first(&waiting, struct msg_out, link);
		list_del(&msg->link);
		if (!status) {
			lpni->nconnecting--;
			credit_take(msg);
			continue;
		}
		/* The failure counts as an attempt, so that the event names the
		 * path. */
		msg->nsends++;
		out_finalize(msg, status, cause);
	}
}
