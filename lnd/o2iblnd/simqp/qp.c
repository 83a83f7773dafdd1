/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/simqp/qp.h"

#include <errno.h>

#include "lnd/o2iblnd/simqp/cm.h"
#include "lnd/o2iblnd/simqp/flow.h"

static void on_qp_item(struct simqp_inbox *b, struct simqp_item *it)
{
	struct simqp_qp *qp = container_of(b, struct simqp_qp, inbox);

	if (it->kind <= SIMQP_ABORT)
		simqp_flow_on_item(qp, it);
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
	simqp_flow_init(qp);
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

static bool is_too_large(const struct simqp_device *d,
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
	if (is_too_large(d, conf))
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

/* ---- completions ---- */

static void complete(struct simqp_qp *qp, struct simqp_item *it)
{
	uint64_t at = simqp_now(qp->fabric);

	if (qp->fabric->conf.cq_ns)
		at += rng_below(&qp->fabric->rng, qp->fabric->conf.cq_ns + 1);
	qp->cq_at = MAX(qp->cq_at, at);
	simqp_inbox_put(&qp->cq, it, qp->cq_at);
}

void simqp_qp_received(struct simqp_qp *qp, void *cookie, uint32_t length,
		       enum ib_wc_status status)
{
	struct simqp_item *it = simqp_item_new(SIMQP_RECEIVED);

	it->cookie = cookie;
	it->length = length;
	it->wc = status;
	complete(qp, it);
}

void simqp_qp_sent(struct simqp_qp *qp, const struct simqp_wr *send,
		   enum ib_wc_status status)
{
	struct simqp_item *it = simqp_item_new(SIMQP_SENT);

	it->cookie = send->cookie;
	it->nwr = send->batch;
	it->wc = status;
	complete(qp, it);
}

static void flush_sends(struct simqp_qp *qp, enum ib_wc_status first)
{
	while (!list_empty(&qp->sq)) {
		struct simqp_wr *wr =
			list_first(&qp->sq, struct simqp_wr, link);

		list_del(&wr->link);
		simqp_wr_detach(wr);
		if (wr->type == IB_WR_SEND) {
			simqp_qp_sent(qp, wr, first);
			first = IB_WC_FLUSHED;
		}
		simqp_wr_put(wr);
	}
}

static void flush_recvs(struct simqp_qp *qp)
{
	while (!list_empty(&qp->rq)) {
		struct simqp_recv *r =
			list_first(&qp->rq, struct simqp_recv, link);

		list_del(&r->link);
		simqp_qp_received(qp, r->cookie, 0, IB_WC_FLUSHED);
		free(r);
	}
}

void simqp_qp_fail(struct simqp_qp *qp, enum ib_wc_status first)
{
	if (!qp->created || qp->error)
		return;
	qp->error = true;
	simqp_disarm(qp->loop, &qp->retry);
	/* The two queues are flushed side by side. */
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
		simqp_qp_received(qp, cookie, 0, IB_WC_FLUSHED);
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
		struct simqp_wr *wr = simqp_wr_new(qp->port, &wrs[i]);

		batch++;
		if (wr->type == IB_WR_SEND) {
			wr->batch = batch;
			batch = 0;
		}
		simqp_flow_send(qp, wr);
	}
	simqp_flow_posted(qp);
	return 0;
}
