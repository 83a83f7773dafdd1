/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>

#include "lnd/o2iblnd/rdma.h"

/* Most work requests posted to the driver at once, and most scatter/gather
 * entries of these. */
#define CHAIN	  16
#define CHAIN_SGE (2 * IBR_SGE_MAX)

/* ---- completions ---- */

/* Most completions that a CPT handles in a turn, and most that it polls with
 * one call. */
#define BUDGET 64
#define CHUNK  16

static const enum ib_wc_status statuses[] = {
	[IBV_WC_SUCCESS] = IB_WC_OK,
	[IBV_WC_LOC_LEN_ERR] = IB_WC_LOCAL_ERROR,
	[IBV_WC_LOC_QP_OP_ERR] = IB_WC_LOCAL_ERROR,
	[IBV_WC_LOC_EEC_OP_ERR] = IB_WC_LOCAL_ERROR,
	[IBV_WC_LOC_PROT_ERR] = IB_WC_LOCAL_ERROR,
	[IBV_WC_WR_FLUSH_ERR] = IB_WC_FLUSHED,
	[IBV_WC_MW_BIND_ERR] = IB_WC_LOCAL_ERROR,
	[IBV_WC_BAD_RESP_ERR] = IB_WC_REMOTE_ERROR,
	[IBV_WC_LOC_ACCESS_ERR] = IB_WC_LOCAL_ERROR,
	[IBV_WC_REM_INV_REQ_ERR] = IB_WC_REMOTE_ERROR,
	[IBV_WC_REM_ACCESS_ERR] = IB_WC_REMOTE_ACCESS,
	[IBV_WC_REM_OP_ERR] = IB_WC_REMOTE_ERROR,
	[IBV_WC_RETRY_EXC_ERR] = IB_WC_SILENT,
	[IBV_WC_RNR_RETRY_EXC_ERR] = IB_WC_NOT_READY,
	[IBV_WC_LOC_RDD_VIOL_ERR] = IB_WC_LOCAL_ERROR,
	[IBV_WC_REM_INV_RD_REQ_ERR] = IB_WC_REMOTE_ERROR,
	[IBV_WC_REM_ABORT_ERR] = IB_WC_REMOTE_ERROR,
	[IBV_WC_INV_EECN_ERR] = IB_WC_LOCAL_ERROR,
	[IBV_WC_INV_EEC_STATE_ERR] = IB_WC_LOCAL_ERROR,
	[IBV_WC_FATAL_ERR] = IB_WC_LOCAL_ERROR,
	[IBV_WC_RESP_TIMEOUT_ERR] = IB_WC_SILENT,
	[IBV_WC_GENERAL_ERR] = IB_WC_LOCAL_ERROR,
};

static enum ib_wc_status rdma_qp_status_of(enum ibv_wc_status status)
{
	if ((size_t)status < ARRAY_SIZE(statuses))
		return statuses[status];
	return IB_WC_LOCAL_ERROR;
}

static void note_recv(struct ibr_qp *qp, uint32_t length,
		      enum ib_wc_status status)
{
	unsigned int i = (qp->first_recv + qp->ended_recvs) % qp->max_recvs;

	BUG_ON(qp->ended_recvs++ == qp->nrecvs);
	qp->recvs[i].status = status;
	qp->recvs[i].length = status == IB_WC_OK ? length : 0;
}

/* Records a completion. A failed WRITE is reported with the SEND behind it,
 * since until that has completed the device may use the memory of both. */
static void note_send(struct ibr_qp *qp, enum ib_wc_status status, bool write)
{
	unsigned int i = (qp->first_send + qp->ended_sends) % qp->max_sends;

	BUG_ON(qp->ended_sends == qp->nsends);
	if (qp->sends[i].status == IB_WC_OK)
		qp->sends[i].status = status;
	if (!write)
		qp->ended_sends++;
}

/* Polls and records up to @most completions. Sets *@failed if one has failed.
 * Returns their number, or a negative one if polling fails. */
static int rdma_qp_take(struct ibr_qp *qp, unsigned int most, bool *failed)
{
	struct ibv_wc wc[CHUNK];
	int n = ibv_poll_cq(qp->cq, (int)MIN(most, CHUNK), wc);

	for (int i = 0; i < n; i++) {
		enum ib_wc_status status = rdma_qp_status_of(wc[i].status);

		if (wc[i].wr_id == IBR_WR_RECV)
			note_recv(qp, wc[i].byte_len, status);
		else
			note_send(qp, status, wc[i].wr_id == IBR_WR_WRITE);
		*failed = *failed || status != IB_WC_OK;
	}
	return n;
}

/* Records all completions that there are, and all other work requests as
 * flushed. */
static void cq_take_all(struct ibr_qp *qp)
{
	bool failed;

	while (rdma_qp_take(qp, CHUNK, &failed) > 0)
		;
	while (qp->ended_recvs < qp->nrecvs)
		note_recv(qp, 0, IB_WC_FLUSHED);
	while (qp->ended_sends < qp->nsends)
		note_send(qp, IB_WC_FLUSHED, false);
}

static void tell_recv(struct ibr_qp *qp)
{
	struct ibr_recv r = qp->recvs[qp->first_recv];

	qp->first_recv = (qp->first_recv + 1) % qp->max_recvs;
	qp->nrecvs--;
	qp->ended_recvs--;
	qp->port->port.events->received(&qp->qp, r.cookie, r.length, r.status);
}

static void tell_send(struct ibr_qp *qp)
{
	struct ibr_send s = qp->sends[qp->first_send];

	qp->first_send = (qp->first_send + 1) % qp->max_sends;
	qp->nsends--;
	qp->ended_sends--;
	qp->slots -= s.slots;
	qp->port->port.events->sent(&qp->qp, s.cookie, s.status);
}

/* Tells the LND of recorded completions: SENDs first, which frees their entries
 * for answers. */
static void cq_tell(struct ibr_qp *qp)
{
	qp->busy++;
	while (!qp->gone && qp->ended_sends)
		tell_send(qp);
	while (!qp->gone && qp->ended_recvs)
		tell_recv(qp);
	ibr_qp_put(qp);
}

/* Polls up to @budget completions of the first queue pair in cpt->ready.
 * Returns their number. */
static unsigned int poll_first(struct ibr_cpt *cpt, unsigned int budget)
{
	struct ibr_qp *qp = list_first(&cpt->ready, struct ibr_qp, ready);
	unsigned int want = MIN(budget, CHUNK);
	bool failed = false;
	int n = 0;

	list_del(&qp->ready);
	if (!qp->ibqp)
		return 0;
	/* asks to be notified of later completions; earlier ones are polled now
	 */
	if (qp->unarmed)
		failed = ibv_req_notify_cq(qp->cq, 0);
	qp->unarmed = false;
	n = rdma_qp_take(qp, want, &failed);
	if (n == (int)want)
		list_add_tail(&cpt->ready, &qp->ready);
	/* a failed work request means that the queue pair is in error */
	if (failed || n < 0)
		ibr_qp_abort(qp);
	cq_tell(qp);
	return n > 0 ? (unsigned int)n : 0;
}

static void cpt_poll(struct ibr_cpt *cpt)
{
	struct ibr_port *p = cpt->port;
	unsigned int done = 0;

	ibr_port_hold(p);
	/* "1 +": polling has a cost even if there are no completions */
	while (done < BUDGET && !list_empty(&cpt->ready))
		done += 1 + poll_first(cpt, BUDGET - done);
	if (!list_empty(&cpt->ready) && !cpt->ready_deferred) {
		cpt->ready_deferred = true;
		ibr_port_hold(p);
		loop_defer(cpt->loop, &cpt->ready_work);
	}
	ibr_port_put(p);
}

static void rdma_qp_on_ready(struct work *w)
{
	struct ibr_cpt *cpt = container_of(w, struct ibr_cpt, ready_work);
	struct ibr_port *p = cpt->port;

	cpt->ready_deferred = false;
	cpt_poll(cpt);
	ibr_port_put(p);
}

static void on_completions(struct env_io *io, int revents)
{
	struct ibr_cpt *cpt = container_of(io, struct ibr_cpt, comp_io);

	for (unsigned int i = 0; i < BUDGET; i++) {
		struct ibv_cq *cq;
		struct ibr_qp *qp;
		void *context;

		errno = 0;
		if (ibv_get_cq_event(cpt->comp, &cq, &context)) {
			/* the device is gone with its channel, or the channel
			 * cannot be watched */
			if ((errno != EAGAIN && errno != EINTR) ||
			    revents & ENV_ERROR) {
				log_err("o2iblnd", "no completions: %s",
					strerror(errno));
				loop_unwatch(cpt->loop, &cpt->comp_io);
			}
			break;
		}
		ibv_ack_cq_events(cq, 1);
		qp = context;
		qp->unarmed = true;
		list_del(&qp->ready);
		list_add_tail(&cpt->ready, &qp->ready);
	}
	cpt_poll(cpt);
}

void ibr_cq_init(struct ibr_cpt *cpt)
{
	list_init(&cpt->ready);
	cpt->ready_work.fn = rdma_qp_on_ready;
	cpt->comp_io =
		(struct env_io){ .events = ENV_READ, .fn = on_completions };
}

/* ---- states ---- */

/* Changes the state of the device's queue pair. The attributes come from
 * librdmacm, which knows the peer's. Returns 0 or -errno. */
static int qp_to(struct ibr_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(qp->id, &attr, &mask))
		return -errno;
	/* no READs and no atomics */
	attr.max_rd_atomic = 0;
	attr.max_dest_rd_atomic = 0;
	return -ibv_modify_qp(qp->ibqp, &attr, mask);
}

int ibr_qp_start(struct ibr_qp *qp)
{
	/* INIT a second time, since only now the CM knows the peer's
	 * attributes. */
	int rc = qp_to(qp, IBV_QPS_INIT);

	if (!rc)
		rc = qp_to(qp, IBV_QPS_RTR);
	if (!rc)
		rc = qp_to(qp, IBV_QPS_RTS);
	return rc;
}

static void ibqp_unmake(struct ibr_qp *qp)
{
	if (qp->ibqp)
		ibv_destroy_qp(qp->ibqp);
	qp->ibqp = NULL;
}

static void rdma_qp_on_flush(struct work *w)
{
	struct ibr_qp *qp = container_of(w, struct ibr_qp, flush);

	cq_tell(qp);
	ibr_qp_put(qp);
}

void ibr_qp_abort(struct ibr_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (!qp->ibqp)
		return;
	/* After this the device adds no completions. They are taken before the
	 * queue pair is destroyed, since some devices drop them then. */
	ibv_modify_qp(qp->ibqp, &attr, IBV_QP_STATE);
	cq_take_all(qp);
	ibqp_unmake(qp);
	qp->busy++;
	qp->flush.fn = rdma_qp_on_flush;
	loop_defer(qp->cpt->loop, &qp->flush);
}

/* ---- creating and destroying ---- */

static int cq_make(struct ibr_qp *qp, const struct ib_qp_conf *conf)
{
	struct ibr_port *p = qp->port;
	int vector = (int)(qp->cpt->index %
			   (unsigned int)MAX(p->ctx->num_comp_vectors, 1));

	errno = 0;
	qp->cq = ibv_create_cq(p->ctx,
			       (int)(conf->max_send_wr + conf->max_recv_wr), qp,
			       qp->cpt->comp, vector);
	if (!qp->cq)
		return errno ? -errno : -ENOMEM;
	return -ibv_req_notify_cq(qp->cq, 0);
}

/* Makes the device's queue pair. Devices do not tell how much can be inlined,
 * so ever less is tried. */
static int ibqp_make(struct ibr_qp *qp, const struct ib_qp_conf *conf)
{
	struct ibv_qp_init_attr attr;
	uint32_t inlined = conf->max_inline;
	int rc;

	for (;;) {
		attr = (struct ibv_qp_init_attr){
			.qp_context = qp,
			.send_cq = qp->cq,
			.recv_cq = qp->cq,
			.cap = { .max_send_wr = conf->max_send_wr,
				 .max_recv_wr = conf->max_recv_wr,
				 .max_send_sge = conf->max_send_sge,
				 .max_recv_sge = 1,
				 .max_inline_data = inlined },
			.qp_type = IBV_QPT_RC,
		};
		errno = 0;
		qp->ibqp = ibv_create_qp(qp->port->pd, &attr);
		if (qp->ibqp)
			break;
		rc = errno ? -errno : -ENOMEM;
		if (!inlined)
			return rc;
		inlined /= 2;
	}
	qp->qp.max_inline = MIN(attr.cap.max_inline_data, conf->max_inline);
	return qp_to(qp, IBV_QPS_INIT);
}

static int rings_make(struct ibr_qp *qp, const struct ib_qp_conf *conf)
{
	qp->max_recvs = conf->max_recv_wr;
	qp->max_sends = conf->max_send_wr;
	qp->recvs = calloc(qp->max_recvs, sizeof(qp->recvs[0]));
	qp->sends = calloc(qp->max_sends, sizeof(qp->sends[0]));
	return qp->recvs && qp->sends ? 0 : -ENOMEM;
}

/* Does @conf exceed the known limits? */
static bool rdma_qp_is_too_large(const struct ib_limits *l,
				 const struct ib_qp_conf *conf)
{
	if (l->max_qp_wr &&
	    MAX(conf->max_send_wr, conf->max_recv_wr) > l->max_qp_wr)
		return true;
	return l->max_cqe && conf->max_send_wr + conf->max_recv_wr > l->max_cqe;
}

int ibr_qp_create(struct ib_qp *ib, const struct ib_qp_conf *conf)
{
	struct ibr_qp *qp = ibr_qp(ib);
	int rc;

	loop_assert_owner(qp->cpt->loop);
	BUG_ON(qp->cq || qp->recvs || qp->sends);
	if (qp->state != IBR_READY)
		return -ENOTCONN;
	if (rdma_qp_is_too_large(&qp->port->port.limits, conf))
		return -ENOMEM;
	rc = rings_make(qp, conf);
	if (!rc)
		rc = cq_make(qp, conf);
	if (!rc)
		rc = ibqp_make(qp, conf);
	if (!rc)
		return 0;
	ibr_qp_unmake(qp);
	/* the known limits are kept, so it must be a limit that is not known */
	if (rc == -EINVAL)
		rc = -ENOMEM;
	return ibr_port_complain(qp->port, "no queue pair", rc);
}

void ibr_qp_unmake(struct ibr_qp *qp)
{
	list_del(&qp->ready);
	/* both destroy calls wait until all their events are acknowledged */
	ibqp_unmake(qp);
	if (qp->cq)
		ibv_destroy_cq(qp->cq);
	free(qp->recvs);
	free(qp->sends);
	qp->cq = NULL;
	qp->recvs = NULL;
	qp->sends = NULL;
	qp->nrecvs = 0;
	qp->nsends = 0;
	qp->ended_recvs = 0;
	qp->ended_sends = 0;
	qp->slots = 0;
}

void ibr_qp_put(struct ibr_qp *qp)
{
	struct ibr_port *p = qp->port;

	/* destroyed queues cause no event, so none will be posted after this */
	if (--qp->busy || !qp->gone || atomic_load(&qp->events_posted))
		return;
	free(qp);
	ibr_port_put(p);
}

void ibr_qp_tell(struct ibr_qp *qp, unsigned int events)
{
	atomic_fetch_or(&qp->events, events);
	if (!atomic_exchange(&qp->events_posted, true))
		loop_post(qp->cpt->loop, &qp->events_work);
}

/* ---- posting ---- */

static struct ibv_sge sge_of(const struct ib_sge *sge)
{
	return (struct ibv_sge){ .addr = (uintptr_t)sge->addr,
				 .length = sge->length,
				 .lkey = sge->lkey };
}

int ibr_qp_post_recv(struct ib_qp *ib, const struct ib_sge *sge, void *cookie)
{
	struct ibr_qp *qp = ibr_qp(ib);
	struct ibv_sge list = sge_of(sge);
	struct ibv_recv_wr *bad,
		wr = { .wr_id = IBR_WR_RECV, .sg_list = &list, .num_sge = 1 };
	int rc;

	loop_assert_owner(qp->cpt->loop);
	if (!qp->ibqp)
		return -ENOTCONN;
	BUG_ON(qp->nrecvs == qp->max_recvs);
	rc = ibv_post_recv(qp->ibqp, &wr, &bad);
	if (rc)
		return -rc;
	qp->recvs[(qp->first_recv + qp->nrecvs++) % qp->max_recvs].cookie =
		cookie;
	return 0;
}

/* Work requests to be posted to the driver, some at a time. */
struct chain {
	struct ibr_qp *qp;
	unsigned int n, nsge;
	bool posted; /* some of the work requests were posted */
	struct ibv_send_wr wrs[CHAIN];
	struct ibv_sge sges[CHAIN_SGE];
};

static int chain_post(struct chain *c)
{
	struct ibv_send_wr *bad = NULL;
	int rc;

	if (!c->n)
		return 0;
	c->wrs[c->n - 1].next = NULL;
	rc = -ibv_post_send(c->qp->ibqp, c->wrs, &bad);
	if (!rc || bad != c->wrs)
		c->posted = true;
	c->n = 0;
	c->nsge = 0;
	return rc;
}

static int chain_add(struct chain *c, const struct ib_wr *from)
{
	struct ibv_send_wr *wr;
	int rc = 0;

	BUG_ON(from->nsge > IBR_SGE_MAX);
	if (c->n == CHAIN || c->nsge + from->nsge > CHAIN_SGE)
		rc = chain_post(c);
	if (rc)
		return rc;
	wr = &c->wrs[c->n];
	*wr = (struct ibv_send_wr){ .next = wr + 1,
				    .sg_list = &c->sges[c->nsge],
				    .num_sge = (int)from->nsge };
	for (unsigned int i = 0; i < from->nsge; i++)
		c->sges[c->nsge++] = sge_of(&from->sge[i]);
	if (from->type == IB_WR_WRITE) {
		wr->wr_id = IBR_WR_WRITE;
		wr->opcode = IBV_WR_RDMA_WRITE;
		wr->wr.rdma.remote_addr = from->remote_addr;
		wr->wr.rdma.rkey = from->rkey;
	} else {
		wr->wr_id = IBR_WR_SEND;
		wr->opcode = IBV_WR_SEND;
		wr->send_flags = IBV_SEND_SIGNALED;
		if (from->inlined)
			wr->send_flags |= IBV_SEND_INLINE;
	}
	c->n++;
	return 0;
}

int ibr_qp_post_send(struct ib_qp *ib, const struct ib_wr *wrs, unsigned int n)
{
	struct ibr_qp *qp = ibr_qp(ib);
	struct ibr_send *send;
	struct chain c;
	int rc = 0;

	loop_assert_owner(qp->cpt->loop);
	if (!qp->ibqp)
		return -ENOTCONN;
	BUG_ON(!n || wrs[n - 1].type != IB_WR_SEND ||
	       qp->slots + n > qp->max_sends);
	c.qp = qp;
	c.n = 0;
	c.nsge = 0;
	c.posted = false;
	for (unsigned int i = 0; i < n && !rc; i++)
		rc = chain_add(&c, &wrs[i]);
	if (!rc)
		rc = chain_post(&c);
	if (rc && !c.posted)
		return rc;
	send = &qp->sends[(qp->first_send + qp->nsends++) % qp->max_sends];
	*send = (struct ibr_send){ .cookie = wrs[n - 1].cookie, .slots = n };
	qp->slots += n;
	if (rc) {
		/* Some WRITEs were posted, but not the SEND behind them, which
		 * therefore counts as failed. */
		send->status = IB_WC_LOCAL_ERROR;
		ibr_qp_abort(qp);
	}
	return 0;
}
