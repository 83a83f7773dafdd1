/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/simqp/flow.h"

#include <errno.h>

#include "lnd/o2iblnd/simqp/cm.h"
#include "lnd/o2iblnd/simqp/mr.h"

#define RNR_FOR_EVER 7

static void on_retry_timer(struct timer *t);

void simqp_flow_init(struct simqp_qp *qp)
{
	timer_init(&qp->retry, on_retry_timer);
}

/* ---- packets ---- */

/* Gives @it to the peer at @at, behind what was given on this lane before. */
static void put_to_peer(struct simqp_qp *qp, struct simqp_item *it, uint64_t at,
			uint64_t *lane)
{
	struct simqp_qp *peer = simqp_qp_find(qp->fabric, qp->peer);

	if (!peer || simqp_way_is_silent(qp->out) ||
	    simqp_dice(qp->fabric, simqp_way_link(qp->out)->loss)) {
		qp->fabric->stats.lost++;
		simqp_item_free(it);
		return;
	}
	*lane = MAX(*lane, at);
	it->way = qp->out;
	it->from = qp->id;
	simqp_inbox_put(&peer->inbox, it, *lane);
}

static void answer(struct simqp_qp *qp, enum simqp_kind kind, uint64_t seq,
		   enum ib_wc_status wc)
{
	struct simqp_item *it = simqp_item_new(kind);

	it->seq = seq;
	it->wc = wc;
	put_to_peer(qp, it, simqp_now(qp->fabric) + simqp_way_latency(qp->out),
		    &qp->ack_at);
}

static void transmit(struct simqp_qp *qp, struct simqp_wr *wr)
{
	struct simqp_item *it;

	wr->sent_at = simqp_way_take(qp->out, wr->length);
	if (qp->mute)
		return;
	it = simqp_item_new(SIMQP_DATA);
	it->seq = wr->seq;
	it->wr = wr;
	wr->refs++;
	put_to_peer(qp, it, wr->sent_at + simqp_way_latency(qp->out),
		    &qp->data_at);
}

/* ---- the sender ---- */

static struct simqp_wr *sq_head(const struct simqp_qp *qp)
{
	return list_first(&qp->sq, struct simqp_wr, link);
}

/* ns from when something has left until it should have been acknowledged. */
static uint64_t ack_time(const struct simqp_qp *qp)
{
	const struct simqp_link *out = simqp_way_link(qp->out);
	const struct simqp_link *in = simqp_way_link(qp->in);

	return qp->fabric->conf.ack_ns + out->latency + out->jitter +
	       in->latency + in->jitter;
}

static void arm_retry(struct simqp_qp *qp)
{
	if (list_empty(&qp->sq))
		simqp_disarm(qp->loop, &qp->retry);
	else
		simqp_arm(qp->loop, &qp->retry,
			  MAX(sq_head(qp)->sent_at, simqp_now(qp->fabric)) +
				  ack_time(qp));
}

/* The first one may be one that cannot be sent. */
static bool fail_if_stuck(struct simqp_qp *qp)
{
	if (!qp->stuck || list_empty(&qp->sq) || !sq_head(qp)->local_error)
		return false;
	simqp_qp_fail(qp, IB_WC_LOCAL_ERROR);
	return true;
}

void simqp_flow_posted(struct simqp_qp *qp)
{
	fail_if_stuck(qp);
}

static enum ib_wc_status draw_end(struct simqp_qp *qp)
{
	const struct simqp_link *link = simqp_way_link(qp->out);

	for (unsigned int i = IB_WC_OK + 1; i < IB_WC_STATUSES; i++)
		if (simqp_dice(qp->fabric, link->ends[i]))
			return i;
	return IB_WC_OK;
}

/* Faults that the sender has part in. */
static void begin_fault(struct simqp_qp *qp, struct simqp_wr *wr)
{
	wr->ends = draw_end(qp);
	if (wr->ends == IB_WC_SILENT) {
		qp->deaf = true;
		qp->mute = qp->mute || rng_below(&qp->fabric->rng, 2);
	} else if (wr->ends == IB_WC_FLUSHED) {
		simqp_cm_fail(qp, -EIO);
	}
}

void simqp_flow_send(struct simqp_qp *qp, struct simqp_wr *wr)
{
	bool first = list_empty(&qp->sq);

	wr->seq = qp->next_seq++;
	list_add_tail(&qp->sq, &wr->link);
	if (qp->error) {
		/* As all that is posted to it. */
		list_del(&wr->link);
		if (wr->type == IB_WR_SEND)
			simqp_qp_sent(qp, wr, IB_WC_FLUSHED);
		wr->port = NULL;
		simqp_wr_put(wr);
		return;
	}
	begin_fault(qp, wr);
	wr->local_error =
		wr->ends == IB_WC_LOCAL_ERROR || !simqp_wr_is_readable(wr);
	qp->stuck = qp->stuck || wr->local_error;
	if (!qp->stuck && !qp->rnr_wait)
		transmit(qp, wr);
	if (first && !qp->rnr_wait)
		arm_retry(qp);
}

static void transmit_all(struct simqp_qp *qp)
{
	struct simqp_wr *wr;

	list_for_each_entry (wr, &qp->sq, link) {
		if (wr->local_error)
			break;
		qp->fabric->stats.resent++;
		transmit(qp, wr);
	}
	arm_retry(qp);
}

static void on_retry_timer(struct timer *t)
{
	struct simqp_qp *qp = container_of(t, struct simqp_qp, retry);

	if (qp->rnr_wait) {
		qp->rnr_wait = false;
		transmit_all(qp);
	} else if (qp->tries++ < qp->port->conf.retry_count) {
		transmit_all(qp);
	} else {
		simqp_qp_fail(qp, IB_WC_SILENT);
	}
}

static void on_ack(struct simqp_qp *qp, uint64_t seq)
{
	bool progress = false;

	while (!list_empty(&qp->sq) && sq_head(qp)->seq <= seq) {
		struct simqp_wr *wr = sq_head(qp);

		progress = true;
		list_del(&wr->link);
		wr->port = NULL;
		if (wr->type == IB_WR_SEND)
			simqp_qp_sent(qp, wr, IB_WC_OK);
		simqp_wr_put(wr);
	}
	if (!progress || fail_if_stuck(qp))
		return;
	qp->tries = 0;
	qp->rnr_tries = 0;
	if (!qp->rnr_wait)
		arm_retry(qp);
}

/* All before @seq have arrived. */
static bool is_head_after_ack(struct simqp_qp *qp, uint64_t seq)
{
	if (seq)
		on_ack(qp, seq - 1);
	return !qp->error && !list_empty(&qp->sq) && sq_head(qp)->seq == seq;
}

static void on_rnr(struct simqp_qp *qp, uint64_t seq)
{
	unsigned int most = qp->port->conf.rnr_retry_count;

	if (!is_head_after_ack(qp, seq) || qp->rnr_wait)
		return;
	if (most != RNR_FOR_EVER && qp->rnr_tries++ >= most) {
		simqp_qp_fail(qp, IB_WC_NOT_READY);
		answer(qp, SIMQP_ABORT, 0, IB_WC_FLUSHED);
		return;
	}
	qp->tries = 0;
	qp->rnr_wait = true;
	simqp_arm(qp->loop, &qp->retry,
		  simqp_now(qp->fabric) + qp->fabric->conf.rnr_ns);
}

/* ---- the receiver ---- */

/* Refuses the packet, for @wc; its queue pair is in error by that, of which the
 * LND hears by failed(), unless a receive tells. */
static void refuse(struct simqp_qp *qp, const struct simqp_item *it,
		   enum ib_wc_status wc, bool tell)
{
	answer(qp, SIMQP_NAK, it->seq, wc);
	simqp_qp_fail(qp, IB_WC_FLUSHED);
	if (tell)
		simqp_cm_fail(qp, -EIO);
}

/* The receive at the head ends with an error. */
static void refuse_send(struct simqp_qp *qp, const struct simqp_item *it)
{
	struct simqp_recv *r = list_first(&qp->rq, struct simqp_recv, link);

	list_del(&r->link);
	simqp_qp_received(qp, r->cookie, 0, IB_WC_LOCAL_ERROR);
	free(r);
	refuse(qp, it, IB_WC_REMOTE_ERROR, false);
}

static void done(struct simqp_qp *qp, const struct simqp_item *it)
{
	qp->fabric->stats.bytes += it->wr->length;
	qp->expected++;
	answer(qp, SIMQP_ACK, it->seq, IB_WC_OK);
}

static void on_write(struct simqp_qp *qp, const struct simqp_item *it)
{
	const struct simqp_wr *wr = it->wr;

	/* Without bytes nothing is looked at. */
	if (wr->length && !simqp_mr_is_remote(qp->port, wr->remote_addr,
					      wr->length, wr->rkey)) {
		qp->fabric->stats.refused++;
		refuse(qp, it, IB_WC_REMOTE_ACCESS, true);
		return;
	}
	if (wr->length)
		simqp_wr_read(wr, (void *)(uintptr_t)wr->remote_addr);
	qp->fabric->stats.writes++;
	done(qp, it);
}

static void on_send(struct simqp_qp *qp, const struct simqp_item *it)
{
	const struct simqp_wr *wr = it->wr;
	struct simqp_recv *r = list_first(&qp->rq, struct simqp_recv, link);

	if (list_empty(&qp->rq) ||
	    simqp_dice(qp->fabric, simqp_way_link(it->way)->rnr)) {
		qp->fabric->stats.not_ready++;
		answer(qp, SIMQP_RNR, it->seq, IB_WC_OK);
		return;
	}
	if (wr->ends == IB_WC_REMOTE_ERROR || wr->length > r->sge.length ||
	    !simqp_mr_is_local(qp->port, &r->sge)) {
		refuse_send(qp, it);
		return;
	}
	simqp_wr_read(wr, r->sge.addr);
	list_del(&r->link);
	simqp_qp_received(qp, r->cookie, (uint32_t)wr->length, IB_WC_OK);
	free(r);
	qp->fabric->stats.sends++;
	done(qp, it);
}

static void on_data(struct simqp_qp *qp, const struct simqp_item *it)
{
	const struct simqp_wr *wr = it->wr;

	if (qp->error ||
	    (qp->cm.state != SIMQP_ACCEPTED && qp->cm.state != SIMQP_OPEN &&
	     qp->cm.state != SIMQP_LEFT))
		return;
	if (it->seq < qp->expected)
		answer(qp, SIMQP_ACK, qp->expected - 1, IB_WC_OK);
	if (it->seq != qp->expected)
		return;
	if (!simqp_wr_is_readable(wr)) {
		/* The sender has taken its memory away meanwhile. */
		answer(qp, SIMQP_NAK, it->seq, IB_WC_LOCAL_ERROR);
		return;
	}
	if (qp->cm.state == SIMQP_ACCEPTED)
		qp->fabric->stats.overtaken++;
	if (wr->ends == IB_WC_NOT_READY)
		refuse(qp, it, IB_WC_NOT_READY, false);
	else if (wr->ends == IB_WC_REMOTE_ACCESS ||
		 (wr->ends == IB_WC_REMOTE_ERROR && wr->type == IB_WR_WRITE))
		refuse(qp, it, wr->ends, true);
	else if (wr->type == IB_WR_WRITE)
		on_write(qp, it);
	else
		on_send(qp, it);
}

void simqp_flow_on_item(struct simqp_qp *qp, struct simqp_item *it)
{
	if (it->kind == SIMQP_DATA) {
		on_data(qp, it);
		return;
	}
	if (it->kind == SIMQP_ABORT) {
		simqp_qp_fail(qp, IB_WC_FLUSHED);
		return;
	}
	/* Its own work has ended, or no acknowledgement gets through. */
	if (qp->error || qp->deaf)
		return;
	if (it->kind == SIMQP_ACK)
		on_ack(qp, it->seq);
	else if (it->kind == SIMQP_RNR)
		on_rnr(qp, it->seq);
	else if (is_head_after_ack(qp, it->seq))
		simqp_qp_fail(qp, it->wc);
}
