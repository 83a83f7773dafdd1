/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers that wait for memory to be copied through. */
#include <errno.h>

#include "lnd/o2iblnd/xfer_priv.h"

int ib_xfer_hunger(struct ib_xfer *x)
{
	int rc = ib_memory_wait(x->cpt, ib_xfer_use(x), &x->peer, &x->memory);

	if (rc)
		return rc;
	ib_xfer_move(x, IB_XFER_HUNGRY);
	list_add_tail(&x->cpt->hungry, &x->link);
	return -EAGAIN;
}

void ib_xfer_starved(struct ib_xfer *x, int status, enum ulnet_cause cause)
{
	if (x->rx)
		ib_rx_end(x->rx, status);
	ib_xfer_finalize(x, status, cause);
}

static void answer_goes_on(struct ib_xfer *x)
{
	enum ulnet_cause cause = LNET_CAUSE_LOCAL_DROPPED;
	int rc = ib_xfer_answer_begin(x);

	if (!rc)
		return;
	if (rc == -ENOTCONN)
		ib_xfer_lost_with(x->rx, &rc, &cause);
	ib_xfer_starved(x, rc, cause);
}

/* @lost: those for which there is no connection any more, the last one
 * first. */
static void send_goes_on(struct ib_xfer *x, struct list *lost)
{
	if (ib_xfer_send_begin(x) != -EINPROGRESS)
		return;
	x->memory.holder->lost = x->cpt->round;
	list_add(lost, &x->link);
}

/* Those who have waited, and have got memory now: to @fed; or never will: to
 * @starved. Nobody is told. */
static void feed_all(struct ib_cpt *cpt, struct list *fed, struct list *starved)
{
	struct ib_xfer *x, *tmp;

	cpt->round++;
	list_for_each_entry_safe (x, tmp, &cpt->hungry, link) {
		int rc = ib_memory_feed(cpt, cpt->round, x->length, &x->memory);

		if (rc == -ENOBUFS)
			continue;
		list_del(&x->link);
		list_add_tail(rc ? starved : fed, &x->link);
		if (!rc)
			ib_xfer_fill(x);
	}
}

static void go_on_all(struct ib_cpt *cpt, struct list *fed, struct list *lost)
{
	while (!list_empty(fed)) {
		struct ib_xfer *x = list_first(fed, struct ib_xfer, link);

		list_del(&x->link);
		/* Not earlier: who is new does not overtake it. */
		ib_memory_unwait(cpt, &x->memory);
		if (x->kind == IB_XFER_SINK)
			ib_xfer_sink_begin(x);
		else if (x->kind == IB_XFER_ANSWER)
			answer_goes_on(x);
		else
			send_goes_on(x, lost);
	}
}

/* Those behind them, for the same peers, need not wait for memory any more; and
 * given back later, they would get in front. */
static void follow_lost(struct ib_cpt *cpt, struct list *lost)
{
	struct ib_xfer *x, *tmp;

	if (list_empty(lost))
		return;
	list_for_each_entry_safe (x, tmp, &cpt->hungry, link) {
		if (ib_xfer_use(x) != IB_USE_ASKS ||
		    x->memory.holder->lost != cpt->round)
			continue;
		list_del(&x->link);
		list_add(lost, &x->link);
	}
}

void ib_xfer_feed(struct work *w)
{
	struct ib_cpt *cpt = container_of(w, struct ib_cpt, feed);
	struct list fed, starved, lost;
	struct ib_xfer *x;

	cpt->feeding = false;
	list_init(&fed);
	list_init(&starved);
	list_init(&lost);
	feed_all(cpt, &fed, &starved);
	go_on_all(cpt, &fed, &lost);
	follow_lost(cpt, &lost);
	while (!list_empty(&lost)) {
		x = list_first(&lost, struct ib_xfer, link);
		list_del(&x->link);
		/* Its connection was lost while it waited, for the second
		 * time: it has waited too long. */
		if (!ib_xfer_give_back(x))
			ib_xfer_finalize(x, -ENOBUFS, LNET_CAUSE_LOCAL_DROPPED);
	}
	while (!list_empty(&starved)) {
		x = list_first(&starved, struct ib_xfer, link);
		list_del(&x->link);
		ib_xfer_starved(x, -ENOMEM, LNET_CAUSE_LOCAL_DROPPED);
	}
	ib_cpt_settle(cpt);
}

void ib_xfer_starve(struct ib_cpt *cpt, int status)
{
	while (!list_empty(&cpt->hungry)) {
		struct ib_xfer *x =
			list_first(&cpt->hungry, struct ib_xfer, link);
		bool down = status == -ENETDOWN;
		enum ulnet_cause none = down ? LNET_CAUSE_LOCAL_NO_ROUTE
					     : LNET_CAUSE_LOCAL_ABORTED;
		enum ulnet_cause some =
			down ? LNET_CAUSE_LOCAL_ERROR : LNET_CAUSE_SHUTDOWN;

		list_del(&x->link);
		ib_xfer_starved(x, status,
				x->kind == IB_XFER_SINK ? some : none);
	}
}

/* There may be no connection with @peer any more. What waits for memory to be
 * sent there came behind what was to go by that one, so it is given back before
 * that; nobody is told. */
static void hungry_go_back(struct ib_cpt *cpt, const struct ulnet_nid *peer)
{
	struct list *l, *before;

	for (l = cpt->hungry.prev; l != &cpt->hungry; l = before) {
		struct ib_xfer *x = list_entry(l, struct ib_xfer, link);
		struct ib_conn *conn;

		before = l->prev;
		if (ib_xfer_use(x) != IB_USE_ASKS ||
		    !lnet_nid_eq(&x->peer, peer) || x->msg->again ||
		    ib_xfer_connection(x, &conn) != -EINPROGRESS)
			continue;
		list_del(&x->link);
		if (!ib_xfer_give_back(x))
			list_add(before, &x->link);
	}
}

void ib_xfer_closed(struct ib_conn *conn)
{
	struct ib_cpt *cpt = ib_cpt_of(ib_peers_of(conn));
	struct ib_xfer *x, *tmp;
	struct list lost;

	hungry_go_back(cpt, &conn->terms.peer.nid);
	list_init(&lost);
	list_for_each_entry_safe (x, tmp, &cpt->hungry, link) {
		if (!x->rx || x->rx->conn != conn)
			continue;
		list_del(&x->link);
		list_add_tail(&lost, &x->link);
	}
	while (!list_empty(&lost)) {
		enum ulnet_cause cause;
		int status;

		x = list_first(&lost, struct ib_xfer, link);
		list_del(&x->link);
		ib_xfer_lost_with(x->rx, &status, &cause);
		ib_xfer_starved(x, status, cause);
	}
}
