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

/* ---- one of them ---- */

static void recv_ended(struct ibr_qp *qp, uint32_t length,
		       enum ib_wc_status status)
{
	void *cookie = qp->recvs[qp->first_recv];

	BUG_ON(!qp->nrecvs);
	qp->first_recv = (qp->first_recv + 1) % qp->max_recvs;
	qp->nrecvs--;
	qp->port->port.events->received(&qp->qp, cookie, length, status);
}

static void send_ended(struct ibr_qp *qp, enum ib_wc_status status)
{
	struct ibr_send *first = &qp->sends[qp->first_send];
	void *cookie = first->cookie;

	BUG_ON(!qp->nsends);
	/* Its WRITE has failed, and it came to nothing because of that. */
	if (first->status != IB_WC_OK)
		status = first->status;
	qp->slots -= first->slots;
	qp->first_send = (qp->first_send + 1) % qp->max_sends;
	qp->nsends--;
	qp->port->port.events->sent(&qp->qp, cookie, status);
}

/* The SEND behind it tells, since until that has ended the device has what
 * stands between the two. */
static void write_ended(struct ibr_qp *qp, enum ib_wc_status status)
{
	struct ibr_send *first = &qp->sends[qp->first_send];

	if (qp->nsends && first->status == IB_WC_OK)
		first->status = status;
}

static void one_ended(struct ibr_qp *qp, const struct ibv_wc *wc)
{
	enum ib_wc_status status = status_of(wc->status);

	/* The queue pair is in error, if it was not before. */
	if (status != IB_WC_OK)
		ibr_qp_to_error(qp);
	if (wc->wr_id == IBR_WR_RECV)
		recv_ended(qp, status == IB_WC_OK ? wc->byte_len : 0, status);
	else if (wc->wr_id == IBR_WR_SEND)
		send_ended(qp, status);
	else
		write_ended(qp, status);
}

/* ---- of a queue pair ---- */

/* Up to @most; how many there were. The queue pair may be gone, but not
 * freed. */
static unsigned int qp_poll(struct ibr_qp *qp, unsigned int most)
{
	struct ibv_wc wc[CHUNK];
	int n = ibv_poll_cq(qp->cq, (int)MIN(most, CHUNK), wc);

	if (n < 0) {
		ibr_qp_bury(qp);
		return 0;
	}
	for (int i = 0; i < n && !qp->gone; i++)
		one_ended(qp, &wc[i]);
	return (unsigned int)n;
}

void ibr_cq_drain(struct ibr_qp *qp)
{
	qp->busy++;
	while (!qp->gone && qp_poll(qp, CHUNK))
		;
	ibr_qp_put(qp);
}

void ibr_cq_flush(struct ibr_qp *qp)
{
	qp->busy++;
	while (!qp->gone && qp->nrecvs)
		recv_ended(qp, 0, IB_WC_FLUSHED);
	while (!qp->gone && qp->nsends)
		send_ended(qp, IB_WC_FLUSHED);
	ibr_qp_put(qp);
}

/* ---- of a CPT ---- */

/* Up to @budget of the queue pair that has waited longest; how many there
 * were. */
static unsigned int poll_first(struct ibr_cpt *cpt, unsigned int budget)
{
	struct ibr_qp *qp = list_first(&cpt->ready, struct ibr_qp, ready);
	unsigned int want = MIN(budget, CHUNK), n;

	/* What comes after that is told; what came before is there. */
	if (qp->unarmed) {
		qp->unarmed = false;
		if (ibv_req_notify_cq(qp->cq, 0))
			ibr_qp_bury(qp);
	}
	list_del(&qp->ready);
	qp->busy++;
	n = qp_poll(qp, want);
	if (n == want && !qp->gone)
		list_add_tail(&cpt->ready, &qp->ready);
	ibr_qp_put(qp);
	return n;
}

static void cpt_poll(struct ibr_cpt *cpt)
{
	struct ibr_port *p = cpt->port;
	unsigned int done = 0;

	ibr_port_hold(p);
	while (done < BUDGET && !list_empty(&cpt->ready))
		done += MAX(poll_first(cpt, BUDGET - done), 1);
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
