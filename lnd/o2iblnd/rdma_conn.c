/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fork.h"
#include "lnd/o2iblnd/rdma.h"

/* Most requests under way to their CPTs. Further ones are rejected; their peers
 * will ask again. */
#define ARRIVING_MAX 256
/* the last privileged port */
#define PRIVILEGED_LAST 1023
/* ms: time-out of the first attempt to resolve an address; doubles with each
 * attempt */
#define RESOLVE_FIRST_MS 50u

struct ibr_cm_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id;
	uint8_t private[IB_PRIVATE_ACCEPT_SIZE];
	size_t private_length;
};

static void conn_qp_events(struct ibr_qp *qp, unsigned int events);
static int cpt_use(struct ibr_cpt *cpt);
static void cpt_unuse(struct ibr_cpt *cpt);

/* ---- addresses ---- */

/* Returns the NID of the address @sa on the net of @nid; LNET_NID_ANY if @sa is
 * of another family. */
static struct ulnet_nid addr_nid(const struct sockaddr *sa,
				 const struct ulnet_nid *nid)
{
	struct ulnet_nid of = *nid;

	return netif_addr_take(&of, sa) && of.size == nid->size ? of
								: LNET_NID_ANY;
}

/* ---- queue pairs ---- */

static void on_qp_events(struct work *w)
{
	struct ibr_qp *qp = container_of(w, struct ibr_qp, events_work);
	unsigned int events;

	atomic_store(&qp->events_posted, false);
	events = atomic_exchange(&qp->events, 0);
	qp->busy++;
	if (!qp->gone)
		conn_qp_events(qp, events);
	ibr_qp_put(qp);
}

static void rdma_conn_on_arrived(struct work *w);

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
	qp->events_work.fn = on_qp_events;
	qp->arrive.fn = rdma_conn_on_arrived;
	ibr_port_hold(p);
	return qp;
}

/* Frees a queue pair that is not in its CPT's list. */
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
	cpt_unuse(qp->cpt);
	qp->gone = true;
	qp->busy++;
	ibr_qp_put(qp);
}

/* ---- the end of a connection ---- */

/* Reports the failure of the connection, unless it has ended before. */
static void conn_fail(struct ibr_qp *qp, int status)
{
	bool known = qp->state != IBR_ARRIVING;

	if (qp->state == IBR_DOWN)
		return;
	qp->state = IBR_DOWN;
	ibr_qp_abort(qp);
	if (known)
		qp->port->port.events->failed(&qp->qp, status);
}

void ibr_conn_abort(struct ibr_qp *qp, int status)
{
	ibr_qp_abort(qp);
	conn_fail(qp, status);
}

/* The peer, or its device, has ended the connection. */
static void conn_hung_up(struct ibr_qp *qp)
{
	if (qp->state != IBR_UP) {
		conn_fail(qp, -ECONNRESET);
		return;
	}
	qp->state = IBR_DOWN;
	qp->port->port.events->disconnected(&qp->qp);
}

static void conn_rejected(struct ibr_qp *qp, const struct ibr_cm_event *ev)
{
	if (!qp->active || qp->state != IBR_CONNECTING) {
		conn_fail(qp, -ECONNRESET);
		return;
	}
	qp->state = IBR_DOWN;
	ibr_qp_abort(qp);
	qp->port->port.events->rejected(&qp->qp, ev->status, ev->private,
					ev->private_length);
}

void ibr_conn_disconnect(struct ib_qp *ib)
{
	struct ibr_qp *qp = ibr_qp(ib);

	loop_assert_owner(qp->cpt->loop);
	/* fails if there is no connection, which does not matter */
	if (!qp->cut && qp->cq)
		(void)!!rdma_disconnect(qp->id);
	qp->cut = true;
	qp->state = IBR_DOWN;
	ibr_qp_abort(qp);
}

/* ---- the active side ---- */

/* Binds to any free privileged port, or to one that is used for a connection to
 * another peer: these may share it. */
static int bind_privileged(struct rdma_cm_id *id, const struct ulnet_nid *nid)
{
	int on = 1, rc;

	if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on,
			    sizeof(on)))
		return -errno;
	for (unsigned int port = PRIVILEGED_LAST; port; port--) {
		union netif_addr a = netif_addr(nid, (uint16_t)port);

		if (!rdma_bind_addr(id, &a.any))
			return 0;
		rc = -errno;
		if (rc != -EADDRINUSE && rc != -EADDRNOTAVAIL)
			return rc;
	}
	return -EADDRINUSE;
}

/* May this process use privileged ports? Returns 0 or -errno. CPT 0's thread.
 */
static int conn_try_privileged(struct ibr_port *p)
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
	union netif_addr a = netif_addr(nid, 0);
	int rc = rdma_bind_addr(id, &a.any) ? -errno : 0;

	return rc == -EADDRNOTAVAIL ? -ENODEV : rc;
}

/* Begins to resolve qp->to. Some kernels notice the neighbour's answer only
 * when an attempt times out, so the first ones are short. */
static int resolve_addr(struct ibr_qp *qp)
{
	uint32_t left = qp->port->conf.resolve_ms - qp->resolved_ms;

	qp->resolve_ms = MIN(
		qp->resolve_ms ? 2 * qp->resolve_ms : RESOLVE_FIRST_MS, left);
	if (rdma_resolve_addr(qp->id, NULL, &qp->to.any, (int)qp->resolve_ms))
		return -errno;
	return 0;
}

/* Begins another attempt to resolve qp->to. Returns false if the time for
 * resolving is over. */
static bool resolve_addr_again(struct ibr_qp *qp)
{
	qp->resolved_ms += qp->resolve_ms;
	return qp->state == IBR_RESOLVING &&
	       qp->resolved_ms < qp->port->conf.resolve_ms && !resolve_addr(qp);
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
	qp->to = netif_addr(dst, conf->service);
	return resolve_addr(qp);
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
	rc = cpt_use(qp->cpt);
	if (rc) {
		qp_drop(qp);
		return rc;
	}
	rc = resolve_from(qp, dst);
	if (rc) {
		cpt_unuse(qp->cpt);
		qp_drop(qp);
		return rc;
	}
	qp_join(qp);
	*qp_p = &qp->qp;
	return 0;
}

/* The address is resolved: begins to resolve the route. librdmacm first asks
 * ibacm, a local service, if that runs; otherwise the result comes as an event.
 */
static void conn_found(struct ibr_qp *qp)
{
	if (qp->state != IBR_RESOLVING)
		return;
	qp->state = IBR_ROUTING;
	if (!ibr_device_is(qp->port, qp->id) ||
	    rdma_resolve_route(qp->id, (int)qp->port->conf.resolve_ms))
		conn_fail(qp, -EHOSTUNREACH);
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
	/* no READs and atomics, which would take resources */
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

/* The peer has accepted: completes the connection on both sides. */
static void conn_answered(struct ibr_qp *qp, const struct ibr_cm_event *ev)
{
	if (qp->state != IBR_CONNECTING)
		return;
	if (ibr_qp_start(qp) || rdma_establish(qp->id)) {
		(void)!!rdma_reject(qp->id, NULL, 0);
		conn_fail(qp, -ENOTCONN);
		return;
	}
	qp->state = IBR_UP;
	qp->port->port.events->established(&qp->qp, ev->private,
					   ev->private_length);
}

/* ---- the passive side ---- */

static void rdma_conn_refuse(struct ibr_port *p, struct rdma_cm_id *id,
			     const char *why)
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
		rdma_conn_refuse(p, id, strerror(ENOMEM));
		return;
	}
	qp->state = IBR_ARRIVING;
	qp->private_length = MIN(ev->private_length, sizeof(qp->private));
	memcpy(qp->private, ev->private, qp->private_length);
	qp->from.nid = addr_nid(rdma_get_peer_addr(id), &p->port.ni->nid);
	qp->from.port = ntohs(rdma_get_dst_port(id));
	/* From here on the CPT gets the identifier's events, perhaps before it
	 * gets the request. */
	id->context = qp;
	qp->id = id;
	if (rdma_migrate_id(id, qp->cpt->channel)) {
		int rc = errno;

		qp->id = NULL;
		qp_drop(qp);
		rdma_conn_refuse(p, id, strerror(rc));
		return;
	}
	atomic_fetch_add(&p->arriving, 1);
	loop_post(qp->cpt->loop, &qp->arrive);
}

/* Handles a connect request, and takes over its identifier. CPT 0's thread. */
static void conn_request(struct ibr_port *p, const struct ibr_cm_event *ev)
{
	if (atomic_load(&p->listen_stopped)) {
		rdma_destroy_id(ev->id);
		return;
	}
	if (!ibr_device_is(p, ev->id)) {
		rdma_conn_refuse(p, ev->id, "it came over another device");
		return;
	}
	if (atomic_load(&p->arriving) >= ARRIVING_MAX) {
		rdma_conn_refuse(p, ev->id, "there are too many");
		return;
	}
	request_send(p, ev,
		     p->port.events->request_cpt(&p->port, ev->private,
						 ev->private_length));
}

static void rdma_conn_on_arrived(struct work *w)
{
	struct ibr_qp *qp = container_of(w, struct ibr_qp, arrive);
	struct ibr_port *p = qp->port;

	atomic_fetch_sub(&p->arriving, 1);
	if (qp->state != IBR_ARRIVING || atomic_load(&p->listen_stopped) ||
	    cpt_use(qp->cpt)) {
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

/* Handles an event of @qp, which may be gone on return. The CPT's thread. */
static void conn_event(struct ibr_qp *qp, const struct ibr_cm_event *ev)
{
	switch (ev->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		conn_found(qp);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		conn_routed(qp);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		if (ev->status == -ETIMEDOUT && resolve_addr_again(qp))
			break;
		/* fallthrough */
	case RDMA_CM_EVENT_ROUTE_ERROR:
		conn_fail(qp, ev->status == -ETIMEDOUT ? -ETIMEDOUT
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
		conn_fail(qp, -ENETDOWN);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		conn_fail(qp, -ENOTCONN);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		conn_hung_up(qp);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		ibr_conn_abort(qp, -ENODEV);
		break;
	default:
		break;
	}
}

static void conn_qp_events(struct ibr_qp *qp, unsigned int events)
{
	/* tells the CM, which may wait for a message that was lost */
	if (events & IBR_EVENT_HEARD && qp->state == IBR_ACCEPTING)
		(void)!!rdma_notify(qp->id, IBV_EVENT_COMM_EST);
	if (events & IBR_EVENT_FAILED)
		ibr_conn_abort(qp, -EIO);
}

/* ---- channels ---- */

/* Most events of a channel handled in a turn. */
#define BATCH 64
/* Most requests that the kernel queues. */
#define BACKLOG 256

static int set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return 0;
}

static int channel_open(struct rdma_event_channel **channel_p)
{
	errno = 0;
	*channel_p = rdma_create_event_channel();
	if (!*channel_p)
		return errno ? -errno : -ENODEV;
	fork_fd_add((*channel_p)->fd);
	return set_nonblock((*channel_p)->fd);
}

static void channel_close(struct rdma_event_channel *channel)
{
	fork_fd_del(channel->fd);
	rdma_destroy_event_channel(channel);
}

/* Gets and acknowledges the next event; before that no identifier of the event
 * can be destroyed. Returns 0; -EAGAIN: there is none. */
static int channel_next(struct rdma_event_channel *channel,
			struct ibr_cm_event *ev)
{
	struct rdma_cm_event *e;
	const struct rdma_conn_param *conn;

	errno = 0;
	if (rdma_get_cm_event(channel, &e))
		return errno ? -errno : -EIO;
	conn = &e->param.conn;
	ev->type = e->event;
	ev->status = e->status;
	ev->id = e->id;
	ev->private_length = 0;
	if (conn->private_data)
		ev->private_length =
			MIN(conn->private_data_len, sizeof(ev->private));
	if (ev->private_length)
		memcpy(ev->private, conn->private_data, ev->private_length);
	rdma_ack_cm_event(e);
	return 0;
}

/* ---- channels of a CPT ---- */

void ibr_cpt_fail(struct ibr_cpt *cpt, int status)
{
	struct ibr_port *p = cpt->port;
	struct ibr_qp *qp;
	struct list qps;

	list_init(&qps);
	list_splice_tail(&qps, &cpt->qps);
	ibr_port_hold(p);
	/* each event may destroy any queue pair */
	while ((qp = list_pop(&qps, struct ibr_qp, link))) {
		list_add_tail(&cpt->qps, &qp->link);
		ibr_conn_abort(qp, status);
	}
	ibr_port_put(p);
}

static void on_cpt_events(struct env_io *io, int revents)
{
	struct ibr_cpt *cpt = container_of(io, struct ibr_cpt, cm_io);
	struct ibr_port *p = cpt->port;
	struct ibr_cm_event ev;

	if (revents & ENV_ERROR) {
		log_err("o2iblnd", "RDMA's events cannot be watched");
		/* no event would be heard any more */
		ibr_cpt_fail(cpt, -EIO);
		return;
	}
	ibr_port_hold(p);
	for (unsigned int i = 0; i < BATCH; i++) {
		if (channel_next(cpt->channel, &ev))
			break;
		conn_event(ev.id->context, &ev);
	}
	ibr_port_put(p);
}

/* Counts one more queue pair of the CPT, whose channels are watched while there
 * are any. The CPT's thread. Returns 0 or -errno. */
static int cpt_use(struct ibr_cpt *cpt)
{
	int rc;

	if (cpt->users++)
		return 0;
	rc = loop_watch(cpt->loop, &cpt->cm_io);
	if (!rc) {
		rc = loop_watch(cpt->loop, &cpt->comp_io);
		if (rc)
			loop_unwatch(cpt->loop, &cpt->cm_io);
	}
	if (rc)
		cpt->users--;
	return rc;
}

static void cpt_unuse(struct ibr_cpt *cpt)
{
	if (--cpt->users)
		return;
	loop_unwatch(cpt->loop, &cpt->comp_io);
	loop_unwatch(cpt->loop, &cpt->cm_io);
}

/* ---- the channel of the port ---- */

/* Handles an event of the port's own identifiers. CPT 0's thread. */
static void cm_port_event(struct ibr_port *p, const struct ibr_cm_event *ev)
{
	switch (ev->type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		conn_request(p, ev);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		ibr_removal_begin(p);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		ibr_device_look(p);
		break;
	default:
		break;
	}
}

static void on_port_events(struct env_io *io, int revents)
{
	struct ibr_port *p = container_of(io, struct ibr_port, cm_io);
	struct ibr_cm_event ev;
	int rc = revents & ENV_ERROR ? -ENOMEM : 0;

	ibr_port_hold(p);
	for (unsigned int i = 0; i < BATCH && !rc && !p->closed; i++) {
		rc = channel_next(p->channel, &ev);
		if (!rc)
			cm_port_event(p, &ev);
	}
	if (rc && rc != -EAGAIN && rc != -EINTR && !p->closed)
		log_warn_limited(&p->complaints, loop_now(p->loop), "o2iblnd",
				 "connect requests cannot be taken: %s",
				 strerror(-rc));
	ibr_port_put(p);
}

int ibr_cm_watch(struct ibr_port *p)
{
	p->cm_io = (struct env_io){ .fd = p->channel->fd,
				    .events = ENV_READ,
				    .fn = on_port_events };
	return loop_watch(p->loop, &p->cm_io);
}

void ibr_cm_unwatch(struct ibr_port *p)
{
	if (p->cm_io.fn)
		loop_unwatch(p->loop, &p->cm_io);
}

/* Returns why a channel could not be opened, as constant text; NULL: for lack
 * of memory. */
static const char *why_no_channel(int rc)
{
	if (rc == -EMFILE || rc == -ENFILE)
		return "no file descriptor is left (ulimit -n)";
	if (rc == -ENOMEM)
		return NULL;
	if (access("/dev/infiniband", F_OK))
		return "there is no /dev/infiniband: no RDMA device, or the "
		       "kernel's modules ib_uverbs and rdma_ucm are not loaded";
	if (access("/dev/infiniband/rdma_cm", F_OK))
		return "there is no /dev/infiniband/rdma_cm: the kernel's "
		       "module rdma_ucm is not loaded";
	if (access("/dev/infiniband/rdma_cm", R_OK | W_OK))
		return "/dev/infiniband/rdma_cm: no permission";
	return "the RDMA connection manager cannot be used";
}

static int channels_open(struct ibr_port *p, const char **why)
{
	int rc = channel_open(&p->channel);

	for (unsigned int i = 0; i < p->ncpts && !rc; i++) {
		struct ibr_cpt *cpt = &p->cpts[i];

		rc = channel_open(&cpt->channel);
		if (!rc)
			cpt->cm_io = (struct env_io){ .fd = cpt->channel->fd,
						      .events = ENV_READ,
						      .fn = on_cpt_events };
	}
	if (rc)
		*why = why_no_channel(rc);
	return rc == -ENOENT ? -ENODEV : rc;
}

/* Sets *@why to what the failure @rc to bind an address means: constant text.
 * Returns the errno for the LND. */
static int bind_error(int rc, const char **why)
{
	switch (rc) {
	case -ENODEV:
		*why = "no RDMA device has this address";
		return -ENODEV;
	case -EADDRNOTAVAIL:
		*why = "no interface has this address";
		return -ENODEV;
	case -EACCES:
		*why = "to listen on a port below 1024 takes "
		       "CAP_NET_BIND_SERVICE";
		return rc;
	case -EADDRINUSE:
		*why = "another node, or the kernel's, listens there";
		return rc;
	default:
		*why = "the address cannot be bound";
		return rc;
	}
}

/* Makes an identifier bound to the port's address and @service. */
static int id_open(struct ibr_port *p, uint16_t service,
		   struct rdma_cm_id **id_p, const char **why)
{
	union netif_addr a = netif_addr(&p->port.ni->nid, service);
	uint8_t tos = (uint8_t)p->conf.tos;
	struct rdma_cm_id *id;
	int rc;

	errno = 0;
	if (rdma_create_id(p->channel, &id, p, RDMA_PS_TCP)) {
		*why = "the RDMA connection manager refuses";
		return errno ? -errno : -ENODEV;
	}
	if (p->conf.tos >= 0)
		rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
				sizeof(tos));
	rc = rdma_bind_addr(id, &a.any) ? -errno : 0;
	if (!rc && !id->verbs)
		rc = -ENODEV;
	if (rc) {
		rdma_destroy_id(id);
		return bind_error(rc, why);
	}
	*id_p = id;
	return 0;
}

int ibr_cm_open(struct ibr_port *p, const char **why)
{
	int rc;

	/* librdmacm would complain on stderr if there were no device */
	if (!ibr_removal_check()) {
		*why = access("/dev/infiniband", F_OK) ? why_no_channel(-ENODEV)
						       : "no RDMA device";
		return -ENODEV;
	}
	rc = channels_open(p, why);
	if (!rc)
		rc = id_open(p, 0, &p->id, why);
	if (!rc && p->conf.privileged && conn_try_privileged(p) == -EACCES) {
		*why = "to connect from a port below 1024 takes "
		       "CAP_NET_BIND_SERVICE";
		return -EACCES;
	}
	return rc;
}

int ibr_cm_listen(struct ibr_port *p, const char **why)
{
	int rc = id_open(p, p->conf.service, &p->listener, why);

	if (rc)
		return rc;
	if (rdma_listen(p->listener, BACKLOG) == 0)
		return 0;
	rc = bind_error(-errno, why);
	ibr_cm_stop_listening(p);
	return rc;
}

void ibr_cm_stop_listening(struct ibr_port *p)
{
	atomic_store(&p->listen_stopped, true);
	if (p->listener)
		rdma_destroy_id(p->listener);
	p->listener = NULL;
}

void ibr_cm_close(struct ibr_port *p)
{
	for (unsigned int i = 0; i < p->ncpts; i++)
		if (p->cpts[i].channel)
			channel_close(p->cpts[i].channel);
	if (p->channel)
		channel_close(p->channel);
}
