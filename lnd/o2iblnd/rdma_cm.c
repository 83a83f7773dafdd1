/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "lnd/o2iblnd/rdma.h"

/* Events taken in one turn of a channel, so that others get theirs. */
#define BATCH 64
/* Requests that the kernel keeps for us. */
#define BACKLOG 256

/* ---- channels ---- */

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
	return set_nonblock((*channel_p)->fd);
}

/* The next event, acknowledged: identifiers cannot be destroyed before that.
 * 0; -EAGAIN: there is none. */
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

/* ---- of a CPT ---- */

void ibr_cpt_fail(struct ibr_cpt *cpt, int status)
{
	struct ibr_port *p = cpt->port;
	struct ibr_qp *qp;
	struct list qps;

	list_init(&qps);
	list_splice_tail(&qps, &cpt->qps);
	ibr_port_hold(p);
	/* An event may destroy any of them. */
	while (!list_empty(&qps)) {
		qp = list_first(&qps, struct ibr_qp, link);
		list_del(&qp->link);
		list_add_tail(&cpt->qps, &qp->link);
		ibr_qp_bury(qp);
		ibr_conn_fail(qp, status);
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
		/* Nothing would be heard. */
		ibr_cpt_fail(cpt, -EIO);
		return;
	}
	ibr_port_hold(p);
	for (unsigned int i = 0; i < BATCH; i++) {
		if (channel_next(cpt->channel, &ev))
			break;
		ibr_conn_event(ev.id->context, &ev);
	}
	ibr_port_put(p);
}

int ibr_cpt_use(struct ibr_cpt *cpt)
{
	int rc;

	if (cpt->users++)
		return 0;
	rc = loop_watch(cpt->loop, &cpt->cm_io);
	if (!rc) {
		rc = ibr_cq_watch(cpt);
		if (rc)
			loop_unwatch(cpt->loop, &cpt->cm_io);
	}
	if (rc)
		cpt->users--;
	return rc;
}

void ibr_cpt_unuse(struct ibr_cpt *cpt)
{
	if (--cpt->users)
		return;
	ibr_cq_unwatch(cpt);
	loop_unwatch(cpt->loop, &cpt->cm_io);
}

/* ---- of the port ---- */

void ibr_cm_port_event(struct ibr_port *p, const struct ibr_cm_event *ev)
{
	switch (ev->type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		ibr_conn_request(p, ev);
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
			ibr_cm_port_event(p, &ev);
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

/* ---- its life ---- */

/* Why there is no channel. */
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

static int cpt_open(struct ibr_cpt *cpt)
{
	int rc = channel_open(&cpt->channel);

	if (!rc)
		cpt->cm_io = (struct env_io){ .fd = cpt->channel->fd,
					      .events = ENV_READ,
					      .fn = on_cpt_events };
	return rc;
}

static int channels_open(struct ibr_port *p, const char **why)
{
	int rc = channel_open(&p->channel);

	for (unsigned int i = 0; i < p->ncpts && !rc; i++)
		rc = cpt_open(&p->cpts[i]);
	if (rc)
		*why = why_no_channel(rc);
	return rc == -ENOENT ? -ENODEV : rc;
}

/* Why the address, and the port, cannot be bound; and what the LND calls
 * that. */
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

/* An identifier at the port's address. */
static int id_open(struct ibr_port *p, uint16_t service,
		   struct rdma_cm_id **id_p, const char **why)
{
	union ibr_addr a = ibr_addr(&p->port.ni->nid, service);
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
	rc = rdma_bind_addr(id, &a.sa) ? -errno : 0;
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

	/* librdmacm complains on stderr when there is no device at all. */
	if (!ibr_removal_check()) {
		*why = access("/dev/infiniband", F_OK) ? why_no_channel(-ENODEV)
						       : "no RDMA device";
		return -ENODEV;
	}
	rc = channels_open(p, why);
	if (!rc)
		rc = id_open(p, 0, &p->id, why);
	if (!rc && p->conf.privileged &&
	    ibr_conn_try_privileged(p) == -EACCES) {
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
	ibr_cm_deafen(p);
	return rc;
}

void ibr_cm_deafen(struct ibr_port *p)
{
	atomic_store(&p->deaf, true);
	if (p->listener)
		rdma_destroy_id(p->listener);
	p->listener = NULL;
}

void ibr_cm_close(struct ibr_port *p)
{
	for (unsigned int i = 0; i < p->ncpts; i++)
		if (p->cpts[i].channel)
			rdma_destroy_event_channel(p->cpts[i].channel);
	if (p->channel)
		rdma_destroy_event_channel(p->channel);
}
