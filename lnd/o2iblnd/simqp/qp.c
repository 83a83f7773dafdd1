/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/simqp/qp.h"

#include <errno.h>

static void flow_on_item(struct simqp_qp *qp, struct simqp_item *it);
static void flow_send(struct simqp_qp *qp, struct simqp_wr *wr);
static bool fail_if_stuck(struct simqp_qp *qp);
static void on_retry_timer(struct timer *t);

static void on_qp_item(struct simqp_inbox *b, struct simqp_item *it)
{
	struct simqp_qp *qp = container_of(b, struct simqp_qp, inbox);

	if (it->kind <= SIMQP_ABORT)
		flow_on_item(qp, it);
	else
		simqp_cm_on_item(qp, it);
}

static void on_cq_item(struct simqp_inbox *b, struct simqp_item *it)
{
	struct simqp_qp *qp = container_of(b, struct simqp_qp, cq);
	const struct ib_events *events = qp->port->ib.events;

	if (it->kind == SIMQP_RECEIVED) {
		qp->recv_used--;
		events->received(&qp->ib, it->cookie, it->length, it->wc);
	} else {
		qp->send_used -= it->nwr;
		events->sent(&qp->ib, it->cookie, it->wc);
	}
}

/* ---- life ---- */

struct simqp_qp *simqp_qp_new(struct simqp_port *port, unsigned int cpt,
			      enum simqp_state state)
{
	struct simqp_fabric *f = port->fabric;
	struct simqp_qp *qp = simqp_alloc(sizeof(*qp));
	int rc;

	BUG_ON(cpt >= port->ib.ni->cpts);
	qp->ib.port = &port->ib;
	qp->ib.cpt = cpt;
	qp->port = port;
	qp->fabric = f;
	qp->id = ++f->last_qp;
	qp->loop = port->ib.ni->loops[cpt];
	simqp_inbox_init(&qp->inbox, qp->loop, on_qp_item);
	simqp_inbox_init(&qp->cq, qp->loop, on_cq_item);
	list_init(&qp->sq);
	list_init(&qp->rq);
	timer_init(&qp->retry, on_retry_timer);
	simqp_cm_init(qp, state);
	rc = hash_add(&f->qps, &qp->hash, qp->id);
	BUG_ON(rc);
	list_add_tail(&port->qps, &qp->link);
	return qp;
}

void simqp_qp_free(struct simqp_qp *qp)
{
	BUG_ON(qp->send_used || qp->recv_used);
	simqp_disarm(qp->loop, &qp->retry);
	simqp_disarm(qp->loop, &qp->cm_timer);
	simqp_inbox_fini(&qp->inbox);
	simqp_inbox_fini(&qp->cq);
	if (qp->src_port && qp->active)
		simqp_src_port_put(qp->port, qp->src_port);
	hash_del(&qp->fabric->qps, &qp->hash);
	list_del(&qp->link);
	free(qp);
}

struct simqp_qp *simqp_qp_find(const struct simqp_fabric *f, uint64_t id)
{
	struct hash_node *n = hash_first(&f->qps, id);

	return n ? container_of(n, struct simqp_qp, hash) : NULL;
}

static bool qp_is_too_large(const struct simqp_device *d,
			    const struct ib_qp_conf *conf)
{
	const struct ib_limits *l = &d->limits;
	uint64_t all = (uint64_t)conf->max_send_wr + conf->max_recv_wr;

	return (l->max_qp_wr &&
		MAX(conf->max_send_wr, conf->max_recv_wr) > l->max_qp_wr) ||
	       (l->max_cqe && all > l->max_cqe) ||
	       (d->wr_max && all > d->wr_max);
}

int simqp_create(struct ib_qp *ib, const struct ib_qp_conf *conf)
{
	struct simqp_qp *qp = simqp_qp(ib);
	const struct simqp_device *d = &qp->port->addr->device;
	int rc;

	loop_assert_owner(qp->loop);
	BUG_ON(qp->created || qp->cm.state == SIMQP_RESOLVING);
	if (qp->port->removed)
		return -ENODEV;
	if (d->limits.max_sge && conf->max_send_sge > d->limits.max_sge)
		return -EINVAL;
	if (qp_is_too_large(d, conf))
		return -ENOMEM;
	rc = simqp_addr_fails(qp->port->addr, SIMQP_CALL_CREATE);
	if (rc)
		return rc;
	qp->created = true;
	qp->error = qp->cm.state == SIMQP_ENDED;
	qp->conf = *conf;
	ib->max_inline = MIN(conf->max_inline, d->max_inline);
	return 0;
}

void simqp_disconnect(struct ib_qp *ib)
{
	struct simqp_qp *qp = simqp_qp(ib);

	loop_assert_owner(qp->loop);
	BUG_ON(!qp->created);
	simqp_cm_leave(qp);
	simqp_qp_fail(qp, IB_WC_FLUSHED);
}

void simqp_destroy(struct ib_qp *ib)
{
	struct simqp_qp *qp = simqp_qp(ib);

	loop_assert_owner(qp->loop);
	BUG_ON(qp->send_used || qp->recv_used);
	simqp_cm_leave(qp);
	qp->port->usage.qps--;
	simqp_qp_free(qp);
}

/* ---- work requests ---- */

struct simqp_recv {
	struct list link; /* in simqp_qp.rq */
	struct ib_sge sge;
	void *cookie;
};

/* A work request of the send queue. While it is posted, its bytes stay in the
 * LND's memory, unless they were inlined. */
struct simqp_wr {
	struct list link; /* in simqp_qp.sq */
	unsigned int refs;
	uint64_t seq;
	uint64_t sent_at; /* ns: when its last byte has left */
	enum ib_wr_type type;
	void *cookie;
	/* of a SEND: number of work requests that complete with it */
	uint32_t batch;
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t length;
	/* the fault that was drawn for it, or IB_WC_OK */
	enum ib_wc_status outcome;
	/* it cannot be sent, because of an error of the LND */
	bool local_error;
	/* the port whose memory it uses, while it is posted; NULL: none */
	struct simqp_port *port;
	uint8_t *bytes; /* a copy of its bytes; NULL: none */
	unsigned int nsge;
	struct ib_sge sge[];
};

static void qp_gather(const struct simqp_wr *wr, uint8_t *to)
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
	qp_gather(wr, wr->bytes);
	wr->port = NULL;
}

static struct simqp_wr *wr_new(struct simqp_port *port,
			       const struct ib_wr *from)
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

/* Can the bytes of @wr be read: is all its memory registered, or is there a
 * copy? */
static bool wr_is_readable(const struct simqp_wr *wr)
{
	if (!wr->port)
		return wr->bytes;
	for (unsigned int i = 0; i < wr->nsge; i++)
		if (!simqp_mr_is_local(wr->port, &wr->sge[i]))
			return false;
	return true;
}

static void wr_read(const struct simqp_wr *wr, void *to)
{
	if (!wr->bytes)
		qp_gather(wr, to);
	else if (wr->length)
		memcpy(to, wr->bytes, wr->length);
}

/* @wr is not posted any more: copies its bytes, if a packet is under way. */
static void wr_detach(struct simqp_wr *wr)
{
	if (wr->port && wr->refs > 1 && wr_is_readable(wr))
		keep_bytes(wr);
	wr->port = NULL;
}

/* ---- completions ---- */

static void qp_complete(struct simqp_qp *qp, struct simqp_item *it)
{
	uint64_t at = simqp_now(qp->fabric);

	if (qp->fabric->conf.cq_ns && !qp->port->dying)
		at += rng_below(&qp->fabric->rng, qp->fabric->conf.cq_ns + 1);
	qp->cq_at = MAX(qp->cq_at, at);
	simqp_inbox_put(&qp->cq, it, qp->cq_at);
}

static void qp_received(struct simqp_qp *qp, void *cookie, uint32_t length,
			enum ib_wc_status status)
{
	struct simqp_item *it = simqp_item_new(SIMQP_RECEIVED);

	it->cookie = cookie;
	it->length = length;
	it->wc = status;
	qp_complete(qp, it);
}

static void qp_sent(struct simqp_qp *qp, const struct simqp_wr *send,
		    enum ib_wc_status status)
{
	struct simqp_item *it = simqp_item_new(SIMQP_SENT);

	it->cookie = send->cookie;
	it->nwr = send->batch;
	it->wc = status;
	qp_complete(qp, it);
}

static void flush_sends(struct simqp_qp *qp, enum ib_wc_status first)
{
	struct simqp_wr *wr;

	while ((wr = list_pop(&qp->sq, struct simqp_wr, link))) {
		wr_detach(wr);
		if (wr->type == IB_WR_SEND) {
			qp_sent(qp, wr, first);
			first = IB_WC_FLUSHED;
		}
		simqp_wr_put(wr);
	}
}

static void flush_recvs(struct simqp_qp *qp)
{
	struct simqp_recv *r;

	while ((r = list_pop(&qp->rq, struct simqp_recv, link))) {
		qp_received(qp, r->cookie, 0, IB_WC_FLUSHED);
		free(r);
	}
}

void simqp_qp_fail(struct simqp_qp *qp, enum ib_wc_status first)
{
	if (!qp->created || qp->error)
		return;
	qp->error = true;
	simqp_disarm(qp->loop, &qp->retry);
	/* which of the two queues is flushed first is random */
	if (rng_below(&qp->fabric->rng, 2)) {
		flush_recvs(qp);
		flush_sends(qp, first);
	} else {
		flush_sends(qp, first);
		flush_recvs(qp);
	}
}

/* ---- posting ---- */

int simqp_post_recv(struct ib_qp *ib, const struct ib_sge *sge, void *cookie)
{
	struct simqp_qp *qp = simqp_qp(ib);
	struct simqp_recv *r;
	int rc;

	loop_assert_owner(qp->loop);
	BUG_ON(!qp->created);
	if (qp->recv_used >= qp->conf.max_recv_wr)
		return -ENOMEM;
	rc = simqp_addr_fails(qp->port->addr, SIMQP_CALL_POST_RECV);
	if (rc)
		return rc;
	qp->recv_used++;
	if (qp->error) {
		qp_received(qp, cookie, 0, IB_WC_FLUSHED);
		return 0;
	}
	r = simqp_alloc(sizeof(*r));
	r->sge = *sge;
	r->cookie = cookie;
	list_add_tail(&qp->rq, &r->link);
	return 0;
}

static int send_refused(const struct simqp_qp *qp, const struct ib_wr *wrs,
			unsigned int n)
{
	if (!qp->error && qp->cm.state != SIMQP_OPEN &&
	    qp->cm.state != SIMQP_LEFT)
		return -ENOTCONN;
	if (n > qp->conf.max_send_wr ||
	    qp->send_used > qp->conf.max_send_wr - n)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++) {
		uint64_t length = 0;

		for (unsigned int k = 0; k < wrs[i].nsge; k++)
			length += wrs[i].sge[k].length;
		if (wrs[i].nsge > qp->conf.max_send_sge)
			return -EINVAL;
		if (wrs[i].inlined &&
		    (wrs[i].type != IB_WR_SEND || length > qp->ib.max_inline))
			return -EINVAL;
	}
	return simqp_addr_fails(qp->port->addr, SIMQP_CALL_POST_SEND);
}

int simqp_post_send(struct ib_qp *ib, const struct ib_wr *wrs, unsigned int n)
{
	struct simqp_qp *qp = simqp_qp(ib);
	uint32_t batch = 0;
	int rc;

	loop_assert_owner(qp->loop);
	BUG_ON(!qp->created || !n || wrs[n - 1].type != IB_WR_SEND);
	rc = send_refused(qp, wrs, n);
	if (rc)
		return rc;
	qp->send_used += n;
	for (unsigned int i = 0; i < n; i++) {
		struct simqp_wr *wr = wr_new(qp->port, &wrs[i]);

		batch++;
		if (wr->type == IB_WR_SEND) {
			wr->batch = batch;
			batch = 0;
		}
		flow_send(qp, wr);
	}
	fail_if_stuck(qp);
	return 0;
}

/* ---- data transfer ---- */

#define RNR_FOR_EVER 7

/* Sends @it to the peer, to arrive at @at but not before earlier items of the
 * same kind. *@lane: when the last of these arrives, ns. */
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

static void qp_answer(struct simqp_qp *qp, enum simqp_kind kind, uint64_t seq,
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
	if (qp->drop_data)
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

/* Returns for how long a packet may stay without an acknowledgement, ns. */
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

/* Makes the queue pair fail if its first work request cannot be sent, and then
 * returns true. */
static bool fail_if_stuck(struct simqp_qp *qp)
{
	if (!qp->stuck || list_empty(&qp->sq) || !sq_head(qp)->local_error)
		return false;
	simqp_qp_fail(qp, IB_WC_LOCAL_ERROR);
	return true;
}

static enum ib_wc_status draw_end(struct simqp_qp *qp)
{
	const struct simqp_link *link = simqp_way_link(qp->out);

	for (unsigned int i = IB_WC_OK + 1; i < IB_WC_STATUSES; i++)
		if (simqp_dice(qp->fabric, link->wc_ppm[i]))
			return i;
	return IB_WC_OK;
}

/* Draws the outcome of @wr. Begins a fault that shows at the sender. */
static void begin_fault(struct simqp_qp *qp, struct simqp_wr *wr)
{
	wr->outcome = draw_end(qp);
	if (wr->outcome == IB_WC_SILENT) {
		qp->drop_acks = true;
		qp->drop_data = qp->drop_data || rng_below(&qp->fabric->rng, 2);
	} else if (wr->outcome == IB_WC_FLUSHED) {
		simqp_cm_fail(qp, -EIO);
	}
}

/* Takes over @wr, queues it and sends it. */
static void flow_send(struct simqp_qp *qp, struct simqp_wr *wr)
{
	bool first = list_empty(&qp->sq);

	wr->seq = qp->next_seq++;
	list_add_tail(&qp->sq, &wr->link);
	if (qp->error) {
		/* the queue pair is in error: @wr is flushed at once */
		list_del(&wr->link);
		if (wr->type == IB_WR_SEND)
			qp_sent(qp, wr, IB_WC_FLUSHED);
		wr->port = NULL;
		simqp_wr_put(wr);
		return;
	}
	begin_fault(qp, wr);
	wr->local_error =
		wr->outcome == IB_WC_LOCAL_ERROR || !wr_is_readable(wr);
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
			qp_sent(qp, wr, IB_WC_OK);
		simqp_wr_put(wr);
	}
	if (!progress || fail_if_stuck(qp))
		return;
	qp->tries = 0;
	qp->rnr_tries = 0;
	if (!qp->rnr_wait)
		arm_retry(qp);
}

/* The peer has got all packets before @seq. Is @seq now the first one that is
 * not acknowledged? */
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
		qp_answer(qp, SIMQP_ABORT, 0, IB_WC_FLUSHED);
		return;
	}
	qp->tries = 0;
	qp->rnr_wait = true;
	simqp_arm(qp->loop, &qp->retry,
		  simqp_now(qp->fabric) + qp->fabric->conf.rnr_ns);
}

/* ---- the receiver ---- */

/* Refuses the packet @it with @wc: both queue pairs are in error then. @tell:
 * report failed() to the LND, for which no receive completes. */
static void qp_refuse(struct simqp_qp *qp, const struct simqp_item *it,
		      enum ib_wc_status wc, bool tell)
{
	qp_answer(qp, SIMQP_NAK, it->seq, wc);
	simqp_qp_fail(qp, IB_WC_FLUSHED);
	if (tell)
		simqp_cm_fail(qp, -EIO);
}

/* Refuses a SEND, and completes the first receive with an error. */
static void refuse_send(struct simqp_qp *qp, const struct simqp_item *it)
{
	struct simqp_recv *r = list_first(&qp->rq, struct simqp_recv, link);

	list_del(&r->link);
	qp_received(qp, r->cookie, 0, IB_WC_LOCAL_ERROR);
	free(r);
	qp_refuse(qp, it, IB_WC_REMOTE_ERROR, false);
}

static void done(struct simqp_qp *qp, const struct simqp_item *it)
{
	qp->fabric->stats.bytes += it->wr->length;
	qp->expected++;
	qp_answer(qp, SIMQP_ACK, it->seq, IB_WC_OK);
}

static void qp_on_write(struct simqp_qp *qp, const struct simqp_item *it)
{
	const struct simqp_wr *wr = it->wr;

	/* a WRITE of 0 bytes accesses no memory */
	if (wr->length && !simqp_mr_is_remote(qp->port, wr->remote_addr,
					      wr->length, wr->rkey)) {
		qp->fabric->stats.refused++;
		qp_refuse(qp, it, IB_WC_REMOTE_ACCESS, true);
		return;
	}
	if (wr->length)
		wr_read(wr, (void *)(uintptr_t)wr->remote_addr);
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
		qp_answer(qp, SIMQP_RNR, it->seq, IB_WC_OK);
		return;
	}
	if (wr->outcome == IB_WC_REMOTE_ERROR || wr->length > r->sge.length ||
	    !simqp_mr_is_local(qp->port, &r->sge)) {
		refuse_send(qp, it);
		return;
	}
	wr_read(wr, r->sge.addr);
	list_del(&r->link);
	qp_received(qp, r->cookie, (uint32_t)wr->length, IB_WC_OK);
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
		qp_answer(qp, SIMQP_ACK, qp->expected - 1, IB_WC_OK);
	if (it->seq != qp->expected)
		return;
	if (!wr_is_readable(wr)) {
		/* the sender has deregistered the memory since it posted the
		 * work request */
		qp_answer(qp, SIMQP_NAK, it->seq, IB_WC_LOCAL_ERROR);
		return;
	}
	if (qp->cm.state == SIMQP_ACCEPTED)
		qp->fabric->stats.overtaken++;
	if (wr->outcome == IB_WC_NOT_READY)
		qp_refuse(qp, it, IB_WC_NOT_READY, false);
	else if (wr->outcome == IB_WC_REMOTE_ACCESS ||
		 (wr->outcome == IB_WC_REMOTE_ERROR && wr->type == IB_WR_WRITE))
		qp_refuse(qp, it, wr->outcome, true);
	else if (wr->type == IB_WR_WRITE)
		qp_on_write(qp, it);
	else
		on_send(qp, it);
}

static void flow_on_item(struct simqp_qp *qp, struct simqp_item *it)
{
	if (it->kind == SIMQP_DATA) {
		on_data(qp, it);
		return;
	}
	if (it->kind == SIMQP_ABORT) {
		simqp_qp_fail(qp, IB_WC_FLUSHED);
		return;
	}
	/* the packets were flushed already, or acknowledgements are dropped */
	if (qp->error || qp->drop_acks)
		return;
	if (it->kind == SIMQP_ACK)
		on_ack(qp, it->seq);
	else if (it->kind == SIMQP_RNR)
		on_rnr(qp, it->seq);
	else if (is_head_after_ack(qp, it->seq))
		simqp_qp_fail(qp, it->wc);
}
