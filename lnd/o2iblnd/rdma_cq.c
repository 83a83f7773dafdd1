/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>

#include "lnd/o2iblnd/rdma.h"

/* Completions of a CPT in one go, so that others get their turn; and those that
 * are asked for at once. */
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

static enum ib_wc_status status_of(enum ibv_wc_status status)
{
	if ((size_t)status < ARRAY_SIZE(statuses))
		return statuses[status];
	return IB_WC_LOCAL_ERROR;
}

/* ---- what has ended ---- */

static void note_recv(struct ibr_qp *qp, uint32_t length,
		      enum ib_wc_status status)
{
	unsigned int i = (qp->first_recv + qp->ended_recvs) % qp->max_recvs;

	BUG_ON(qp->ended_recvs++ == qp->nrecvs);
	qp->recvs[i].status = status;
	qp->recvs[i].length = status == IB_WC_OK ? length : 0;
}

/* What comes of a WRITE the SEND behind it tells, since until that has ended
 * the device has what stands between the two. */
static void note_send(struct ibr_qp *qp, enum ib_wc_status status, bool write)
{
	unsigned int i = (qp->first_send + qp->ended_sends) % qp->max_sends;

	BUG_ON(qp->ended_sends == qp->nsends);
	if (qp->sends[i].status == IB_WC_OK)
		qp->sends[i].status = status;
	if (!write)
		qp->ended_sends++;
}

/* Up to @most; how many there were, or -1. */
static int take(struct ibr_qp *qp, unsigned int most, bool *failed)
{
	struct ibv_wc wc[CHUNK];
	int n = ibv_poll_cq(qp->cq, (int)MIN(most, CHUNK), wc);

	for (int i = 0; i < n; i++) {
		enum ib_wc_status status = status_of(wc[i].status);

		if (wc[i].wr_id == IBR_WR_RECV)
			note_recv(qp, wc[i].byte_len, status);
		else
			note_send(qp, status, wc[i].wr_id == IBR_WR_WRITE);
		*failed = *failed || status != IB_WC_OK;
	}
	return n;
}

void ibr_cq_take_all(struct ibr_qp *qp)
{
	bool failed;

	while (take(qp, CHUNK, &failed) > 0)
		;
	while (qp->ended_recvs < qp->nrecvs)
		note_recv(qp, 0, IB_WC_FLUSHED);
	while (qp->ended_sends < qp->nsends)
		note_send(qp, IB_WC_FLUSHED, false);
}

/* ---- what the LND hears of it ---- */

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

/* SENDs first: there is room for answers then. */
void ibr_cq_tell(struct ibr_qp *qp)
{
	qp->busy++;
	while (!qp->gone && qp->ended_sends)
		tell_send(qp);
	while (!qp->gone && qp->ended_recvs)
		tell_recv(qp);
	ibr_qp_put(qp);
}

/* ---- of a CPT ---- */

/* Up to @budget of the queue pair that has waited longest; how many there
 * were. */
static unsigned int poll_first(struct ibr_cpt *cpt, unsigned int budget)
{
	struct ibr_qp *qp = list_first(&cpt->ready, struct ibr_qp, ready);
	unsigned int want = MIN(budget, CHUNK);
	bool failed = false;
	int n = 0;

	list_del(&qp->ready);
	if (!qp->ibqp)
		return 0;
	/* What comes after that is told; what came before is there. */
	if (qp->unarmed)
		failed = ibv_req_notify_cq(qp->cq, 0);
	qp->unarmed = false;
	n = take(qp, want, &failed);
	if (n == (int)want)
		list_add_tail(&cpt->ready, &qp->ready);
	/* One that has failed is in error. */
	if (failed || n < 0)
		ibr_qp_bury(qp);
	ibr_cq_tell(qp);
	return n > 0 ? (unsigned int)n : 0;
}

static void cpt_poll(struct ibr_cpt *cpt)
{
	struct ibr_port *p = cpt->port;
	unsigned int done = 0;

	ibr_port_hold(p);
	/* To look costs something, too. */
	while (done < BUDGET && !list_empty(&cpt->ready))
		done += 1 + poll_first(cpt, BUDGET - done);
	if (!list_empty(&cpt->ready) && !cpt->ready_deferred) {
		cpt->ready_deferred = true;
		ibr_port_hold(p);
		loop_defer(cpt->loop, &cpt->ready_work);
	}
	ibr_port_put(p);
}

static void on_ready(struct work *w)
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
			/* The device has gone, and its channel with it; or it
			 * cannot be watched. */
			if ((errno != EAGAIN && errno != EINTR) ||
			    revents & ENV_ERROR) {
				log_err("o2iblnd", "no completions: %s",
					strerror(errno));
				ibr_cq_unwatch(cpt);
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
	cpt->ready_work.fn = on_ready;
	cpt->comp_io =
		(struct env_io){ .events = ENV_READ, .fn = on_completions };
}

int ibr_cq_watch(struct ibr_cpt *cpt)
{
	cpt->comp_io.fd = cpt->comp->fd;
	return loop_watch(cpt->loop, &cpt->comp_io);
}

void ibr_cq_unwatch(struct ibr_cpt *cpt)
{
	loop_unwatch(cpt->loop, &cpt->comp_io);
}
