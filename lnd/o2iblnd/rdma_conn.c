/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "lnd/o2iblnd/rdma.h"

/* Requests that are on their way to their CPTs; what comes then is turned away:
 * who is not served soon will ask again. */
#define ARRIVING_MAX 256
/* Ports that only privileged users have. */
#define PRIVILEGED_LAST 1023
/* That the first look for a peer may take; those after it double. */
#define LOOK_MS 50u

/* ---- the object ---- */

static void on_news(struct work *w)
{
	struct ibr_qp *qp = container_of(w, struct ibr_qp, news_work);
	unsigned int news;

	atomic_store(&qp->news_posted, false);
	news = atomic_exchange(&qp->news, 0);
	qp->busy++;
	if (!qp->gone)
		ibr_conn_news(qp, news);
	ibr_qp_put(qp);
}

static void on_arrived(struct work *w);

static struct ibr_qp *qp_new(struct ibr_port *p, unsigned int cpt)
{
	struct ibr_qp *qp;

	BUG_ON(cpt >= p->ncpts);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->qp.port = &p->port;
	qp->qp.cpt = cpt;
	qp->port = p;
	qp->cpt = &p->cpts[cpt];
	list_init(&qp->link);
	list_init(&qp->ready);
	qp->news_work.fn = on_news;
	qp->arrive.fn = on_arrived;
	ibr_port_hold(p);
	return qp;
}

/* One that its CPT does not know (yet). */
static void qp_drop(struct ibr_qp *qp)
{
	struct ibr_port *p = qp->port;

	if (qp->id)
		rdma_destroy_id(qp->id);
	free(qp);
	ibr_port_put(p);
}

static void qp_join(struct ibr_qp *qp)
{
	list_add_tail(&qp->cpt->qps, &qp->link);
}

void ibr_conn_destroy(struct ib_qp *ib)
{
	struct ibr_qp *qp = ibr_qp(ib);

	loop_assert_owner(qp->cpt->loop);
	BUG_ON(qp->gone);
	list_del(&qp->link);
	ibr_qp_unmake(qp);
	rdma_destroy_id(qp->id);
	qp->id = NULL;
	ibr_cpt_unuse(qp->cpt);
	qp->gone = true;
	qp->busy++;
	ibr_qp_put(qp);
}

/* ---- how it ends ---- */

void ibr_conn_fail(struct ibr_qp *qp, int status)
{
	bool known = qp->state != IBR_ARRIVING;

	if (qp->state == IBR_DOWN)
		return;
	qp->state = IBR_DOWN;
	ibr_qp_bury(qp);
	if (known)
		qp->port->port.events->failed(&qp->qp, status);
}

/* The peer, or its device, ends it. */
static void conn_hung_up(struct ibr_qp *qp)
{
	if (qp->state != IBR_UP) {
		ibr_conn_fail(qp, -ECONNRESET);
		return;
	}
	qp->state = IBR_DOWN;
	qp->port->port.events->disconnected(&qp->qp);
}

static void conn_rejected(struct ibr_qp *qp, const struct ibr_cm_event *ev)
{
	if (!qp->active || qp->state != IBR_CONNECTING) {
		ibr_conn_fail(qp, -ECONNRESET);
		return;
	}
	qp->state = IBR_DOWN;
	ibr_qp_bury(qp);
	qp->port->port.events->rejected(&qp->qp, ev->status, ev->private,
					ev->private_length);
}

void ibr_conn_disconnect(struct ib_qp *ib)
{
	struct ibr_qp *qp = ibr_qp(ib);

	loop_assert_owner(qp->cpt->loop);
	/* Where there is no connection, this says so, and nothing follows. */
	if (!qp->cut && qp->cq)
		(void)!!rdma_disconnect(qp->id);
	qp->cut = true;
	qp->state = IBR_DOWN;
	ibr_qp_bury(qp);
}

/* ---- the active side ---- */

/* Any port but those of others; that of a connection to another peer will
 * do. */
static int bind_privileged(struct rdma_cm_id *id, const struct ulnet_nid *nid)
{
	int on = 1, rc;

	if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on,
			    sizeof(on)))
		return -errno;
	for (unsigned int port = PRIVILEGED_LAST; port; port--) {
		union ibr_addr a = ibr_addr(nid, (uint16_t)port);

		if (!rdma_bind_addr(id, &a.sa))
			return 0;
		rc = -errno;
		if (rc != -EADDRINUSE && rc != -EADDRNOTAVAIL)
			return rc;
	}
	return -EADDRINUSE;
}

int ibr_conn_try_privileged(struct ibr_port *p)
{
	struct rdma_cm_id *id;
	int rc;

	if (rdma_create_id(p->channel, &id, p, RDMA_PS_TCP))
		return -errno;
	rc = bind_privileged(id, &p->port.ni->nid);
	rdma_destroy_id(id);
	return rc;
}

static int bind_any(struct rdma_cm_id *id, const struct ulnet_nid *nid)
{
	union ibr_addr a = ibr_addr(nid, 0);
	int rc = rdma_bind_addr(id, &a.sa) ? -errno : 0;

	return rc == -EADDRNOTAVAIL ? -ENODEV : rc;
}

/* Looks for qp->to. Some kernels learn only at the end of a look that the
 * neighbour has answered, so that the first ones are short. */
static int look(struct ibr_qp *qp)
{
	uint32_t left = qp->port->conf.resolve_ms - qp->looked_ms;

	qp->look_ms = MIN(qp->look_ms ? 2 * qp->look_ms : LOOK_MS, left);
	if (rdma_resolve_addr(qp->id, NULL, &qp->to.sa, (int)qp->look_ms))
		return -errno;
	return 0;
}

/* False: it has been looked for long enough. */
static bool look_again(struct ibr_qp *qp)
{
	qp->looked_ms += qp->look_ms;
	return qp->state == IBR_RESOLVING &&
	       qp->looked_ms < qp->port->conf.resolve_ms && !look(qp);
}

static int resolve_from(struct ibr_qp *qp, const struct ulnet_nid *dst)
{
	const struct ib_port_conf *conf = &qp->port->conf;
	const struct ulnet_nid *src = &qp->port->port.ni->nid;
	uint8_t tos = (uint8_t)conf->tos;
	int rc;

	if (rdma_create_id(qp->cpt->channel, &qp->id, qp, RDMA_PS_TCP))
		return -errno;
	rc = conf->privileged ? bind_privileged(qp->id, src)
			      : bind_any(qp->id, src);
	if (rc)
		return rc;
	if (!qp->id->verbs)
		return -ENODEV;
	if (conf->tos >= 0 &&
	    rdma_set_option(qp->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
			    sizeof(tos)))
		return -errno;
	qp->to = ibr_addr(dst, conf->service);
	return look(qp);
}

int ibr_conn_resolve(struct ib_port *port, unsigned int cpt,
		     const struct ulnet_nid *dst, void *user,
		     struct ib_qp **qp_p)
{
	struct ibr_qp *qp = qp_new(ibr_port(port), cpt);
	int rc;

	if (!qp)
		return -ENOMEM;
	loop_assert_owner(qp->cpt->loop);
	qp->active = true;
	qp->qp.user = user;
	qp->state = IBR_RESOLVING;
	rc = ibr_cpt_use(qp->cpt);
	if (rc) {
		qp_drop(qp);
		return rc;
	}
	rc = resolve_from(qp, dst);
	if (rc) {
		ibr_cpt_unuse(qp->cpt);
		qp_drop(qp);
		return rc;
	}
	qp_join(qp);
	*qp_p = &qp->qp;
	return 0;
}

/* With librdmacm this asks ibacm first where that runs, a service of this host;
 * otherwise the answer is an event. */
static void conn_found(struct ibr_qp *qp)
{
	if (qp->state != IBR_RESOLVING)
		return;
	qp->state = IBR_ROUTING;
	if (!ibr_device_is(qp->port, qp->id) ||
	    rdma_resolve_route(qp->id, (int)qp->port->conf.resolve_ms))
		ibr_conn_fail(qp, -EHOSTUNREACH);
}

static void conn_routed(struct ibr_qp *qp)
{
	if (qp->state != IBR_ROUTING)
		return;
	qp->state = IBR_READY;
	qp->port->port.events->resolved(&qp->qp);
}

static struct rdma_conn_param conn_param(const struct ibr_qp *qp,
					 const void *private, size_t length)
{
	/* No READs and no atomics: nobody needs resources for them. */
	return (struct rdma_conn_param){
		.private_data = private,
		.private_data_len = (uint8_t)length,
		.flow_control = 1,
		.retry_count = qp->port->conf.retry_count,
		.rnr_retry_count = qp->port->conf.rnr_retry_count,
		.qp_num = qp->ibqp->qp_num,
	};
}

int ibr_conn_connect(struct ib_qp *ib, const void *private, size_t length)
{
	struct ibr_qp *qp = ibr_qp(ib);
	struct rdma_conn_param param;

	loop_assert_owner(qp->cpt->loop);
	BUG_ON(length > IB_PRIVATE_REQUEST_SIZE);
	if (qp->state != IBR_READY || !qp->ibqp)
		return -ENOTCONN;
	param = conn_param(qp, private, length);
	if (rdma_connect(qp->id, &param))
		return -errno;
	qp->state = IBR_CONNECTING;
	return 0;
}

/* The peer has accepted: the LND hears of that, and the peer of us. */
static void conn_answered(struct ibr_qp *qp, const struct ibr_cm_event *ev)
{
	if (qp->state != IBR_CONNECTING)
		return;
	if (ibr_qp_start(qp) || rdma_establish(qp->id)) {
		(void)!!rdma_reject(qp->id, NULL, 0);
		ibr_conn_fail(qp, -ENOTCONN);
		return;
	}
	qp->state = IBR_UP;
	qp->port->port.events->established(&qp->qp, ev->private,
					   ev->private_length);
}

/* ---- the passive side ---- */

static void refuse(struct ibr_port *p, struct rdma_cm_id *id, const char *why)
{
	log_warn_limited(&p->complaints, loop_now(p->loop), "o2iblnd",
			 "a connect request is turned away: %s", why);
	(void)!!rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

static void request_send(struct ibr_port *p, const struct ibr_cm_event *ev,
			 unsigned int cpt)
{
	struct ibr_qp *qp = qp_new(p, cpt);
	struct rdma_cm_id *id = ev->id;

	if (!qp) {
		refuse(p, id, strerror(ENOMEM));
		return;
	}
	qp->state = IBR_ARRIVING;
	qp->private_length = MIN(ev->private_length, sizeof(qp->private));
	memcpy(qp->private, ev->private, qp->private_length);
	qp->from.nid = ibr_addr_nid(rdma_get_peer_addr(id), &p->port.ni->nid);
	qp->from.port = ntohs(rdma_get_dst_port(id));
	/* From then on its events are the CPT's, who may hear one before the
	 * request has arrived there. */
	id->context = qp;
	qp->id = id;
	if (rdma_migrate_id(id, qp->cpt->channel)) {
		int rc = errno;

		qp->id = NULL;
		qp_drop(qp);
		refuse(p, id, strerror(rc));
		return;
	}
	atomic_fetch_add(&p->arriving, 1);
	loop_post(qp->cpt->loop, &qp->arrive);
}

void ibr_conn_request(struct ibr_port *p, const struct ibr_cm_event *ev)
{
	if (atomic_load(&p->deaf)) {
		rdma_destroy_id(ev->id);
		return;
	}
	if (!ibr_device_is(p, ev->id)) {
		refuse(p, ev->id, "it came over another device");
		return;
	}
	if (atomic_load(&p->arriving) >= ARRIVING_MAX) {
		refuse(p, ev->id, "there are too many");
		return;
	}
	request_send(p, ev,
		     p->port.events->request_cpt(&p->port, ev->private,
						 ev->private_length));
}

static void on_arrived(struct work *w)
{
	struct ibr_qp *qp = container_of(w, struct ibr_qp, arrive);
	struct ibr_port *p = qp->port;

	atomic_fetch_sub(&p->arriving, 1);
	if (qp->state != IBR_ARRIVING || atomic_load(&p->deaf) ||
	    ibr_cpt_use(qp->cpt)) {
		(void)!!rdma_reject(qp->id, NULL, 0);
		qp_drop(qp);
		return;
	}
	qp_join(qp);
	qp->state = IBR_READY;
	p->port.events->request(&p->port, &qp->qp, &qp->from, qp->private,
				qp->private_length);
}

int ibr_conn_accept(struct ib_qp *ib, const void *private, size_t length)
{
	struct ibr_qp *qp = ibr_qp(ib);
	struct rdma_conn_param param;
	int rc;

	loop_assert_owner(qp->cpt->loop);
	BUG_ON(length > IB_PRIVATE_ACCEPT_SIZE);
	if (qp->state != IBR_READY || !qp->ibqp)
		return -ENOTCONN;
	rc = ibr_qp_start(qp);
	if (rc)
		return rc;
	param = conn_param(qp, private, length);
	if (rdma_accept(qp->id, &param))
		return -errno;
	qp->state = IBR_ACCEPTING;
	return 0;
}

void ibr_conn_reject(struct ib_qp *ib, const void *private, size_t length)
{
	struct ibr_qp *qp = ibr_qp(ib);

	loop_assert_owner(qp->cpt->loop);
	BUG_ON(length > IB_PRIVATE_REJECT_SIZE);
	if (qp->state == IBR_READY)
		(void)!!rdma_reject(qp->id, private, (uint8_t)length);
	qp->state = IBR_DOWN;
}

/* ---- events ---- */

static void conn_established(struct ibr_qp *qp)
{
	if (qp->state != IBR_ACCEPTING && qp->state != IBR_CONNECTING)
		return;
	qp->state = IBR_UP;
	qp->port->port.events->established(&qp->qp, NULL, 0);
}

void ibr_conn_event(struct ibr_qp *qp, const struct ibr_cm_event *ev)
{
	switch (ev->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		conn_found(qp);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		conn_routed(qp);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		if (ev->status == -ETIMEDOUT && look_again(qp))
			break;
		/* fallthrough */
	case RDMA_CM_EVENT_ROUTE_ERROR:
		ibr_conn_fail(qp, ev->status == -ETIMEDOUT ? -ETIMEDOUT
							   : -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		conn_answered(qp, ev);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		conn_established(qp);
		break;
	case RDMA_CM_EVENT_REJECTED:
		conn_rejected(qp, ev);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		ibr_conn_fail(qp, -ENETDOWN);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		ibr_conn_fail(qp, -ENOTCONN);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		conn_hung_up(qp);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		/* One that was down before is still the device's. */
		ibr_qp_bury(qp);
		ibr_conn_fail(qp, -ENODEV);
		break;
	default:
		break;
	}
}

void ibr_conn_news(struct ibr_qp *qp, unsigned int news)
{
	/* The CM may wait for a message of its own that is lost. */
	if (news & IBR_NEWS_HEARD && qp->state == IBR_ACCEPTING)
		(void)!!rdma_notify(qp->id, IBV_EVENT_COMM_EST);
	if (news & IBR_NEWS_FAILED) {
		ibr_qp_bury(qp);
		ibr_conn_fail(qp, -EIO);
	}
}
