/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "lnd/o2iblnd/rdma.h"

/* Events taken in one turn. */
#define BATCH 64

/* ---- what it can do ---- */

static void take_limits(struct ib_limits *l, const struct ibv_device_attr *a)
{
	l->max_qp_wr = a->max_qp_wr > 0 ? (uint32_t)a->max_qp_wr : 0;
	l->max_cqe = a->max_cqe > 0 ? (uint32_t)a->max_cqe : 0;
	l->max_sge = a->max_sge > 0 ? (uint32_t)a->max_sge : 1;
	l->max_sge = MIN(l->max_sge, IBR_SGE_MAX);
	l->max_mr_size = a->max_mr_size;
}

static int numa_node_of(const struct ibv_device *dev)
{
	char path[sizeof(dev->ibdev_path) + sizeof("/device/numa_node")];
	int node = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/device/numa_node", dev->ibdev_path);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

/* Memory that devices use must not become the child's: the parent would have a
 * copy then that they do not know. Recent kernels see to that themselves. */
static void mind_forks(void)
{
	if (ibv_is_fork_initialized() == IBV_FORK_DISABLED && ibv_fork_init())
		log_warn("o2iblnd",
			 "RDMA was used before: a fork() of this process may "
			 "cost it data (RDMAV_FORK_SAFE=1 helps)");
}

int ibr_device_open(struct ibr_port *p, const char **why)
{
	struct ibv_device *dev = p->id->verbs->device;
	struct ibv_device_attr attr;
	int rc;

	mind_forks();
	p->number = p->id->port_num;
	p->ctx = ibv_open_device(dev);
	if (!p->ctx) {
		rc = errno ? -errno : -ENODEV;
		*why = rc == -EACCES || rc == -EPERM
			       ? "/dev/infiniband/uverbs*: no permission"
			       : "the RDMA device cannot be opened";
		return rc;
	}
	rc = -ibv_query_device(p->ctx, &attr);
	if (!rc) {
		take_limits(&p->port.limits, &attr);
		p->port.ni->numa_node = numa_node_of(dev);
		errno = 0;
		p->pd = ibv_alloc_pd(p->ctx);
		if (!p->pd)
			rc = errno ? -errno : -ENOMEM;
	}
	if (rc)
		*why = "the RDMA device does not work";
	return rc;
}

void ibr_device_close(struct ibr_port *p)
{
	if (p->pd)
		ibv_dealloc_pd(p->pd);
	if (p->ctx)
		ibv_close_device(p->ctx);
}

bool ibr_device_is(const struct ibr_port *p, const struct rdma_cm_id *id)
{
	return id->verbs && !strcmp(ibv_get_device_name(id->verbs->device),
				    ibv_get_device_name(p->ctx->device));
}

/* ---- how it is ---- */

static const char *device_fault(const struct ibr_port *p)
{
	struct ibv_port_attr attr;

	if (!p->id)
		return "its RDMA device has gone";
	if (p->fatal)
		return "its RDMA device has failed";
	if (ibv_query_port(p->ctx, p->number, &attr))
		return "its RDMA device does not answer";
	if (attr.state != IBV_PORT_ACTIVE &&
	    attr.state != IBV_PORT_ACTIVE_DEFER)
		return "the port of its RDMA device is down";
	return ibr_addr_fault(&p->port.ni->nid);
}

void ibr_device_look(struct ibr_port *p)
{
	const char *fault = device_fault(p), *was = p->fault;

	p->fault = fault;
	if (!fault != !was)
		p->port.events->port_changed(&p->port, !fault, false,
					     fault ? fault
						   : "its RDMA device works");
}

/* ---- events ---- */

/* Between an event and its acknowledgement the queue pair exists: whoever
 * unmakes it waits for that. */
static void device_event(struct ibr_port *p, const struct ibv_async_event *ev,
			 bool *look)
{
	switch (ev->event_type) {
	case IBV_EVENT_COMM_EST:
		ibr_qp_tell(ev->element.qp->qp_context, IBR_NEWS_HEARD);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		ibr_qp_tell(ev->element.qp->qp_context, IBR_NEWS_FAILED);
		break;
	case IBV_EVENT_CQ_ERR:
		ibr_qp_tell(ev->element.cq->cq_context, IBR_NEWS_FAILED);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		p->fatal = true;
		*look = true;
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_GID_CHANGE:
		*look = true;
		break;
	default:
		break;
	}
}

static void on_async(struct env_io *io, int revents)
{
	struct ibr_port *p = container_of(io, struct ibr_port, async_io);
	int rc = revents & ENV_ERROR ? ENOMEM : 0;
	bool look = false;

	for (unsigned int i = 0; i < BATCH && !rc; i++) {
		struct ibv_async_event ev;

		errno = 0;
		if (ibv_get_async_event(p->ctx, &ev)) {
			rc = errno ? errno : EIO;
			break;
		}
		device_event(p, &ev, &look);
		ibv_ack_async_event(&ev);
	}
	if (rc && rc != EAGAIN && rc != EINTR) {
		/* The device has gone, and its channel with it. */
		log_warn("o2iblnd", "the RDMA device says nothing any more: %s",
			 strerror(rc));
		ibr_device_unwatch(p);
		look = true;
	}
	if (look)
		ibr_device_look(p);
}

static void on_look(struct work *w)
{
	struct ibr_port *p = container_of(w, struct ibr_port, look);

	if (!p->closed)
		ibr_device_look(p);
	ibr_port_put(p);
}

int ibr_device_watch(struct ibr_port *p)
{
	int flags = fcntl(p->ctx->async_fd, F_GETFL), rc;

	if (fcntl(p->ctx->async_fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	p->async_io = (struct env_io){ .fd = p->ctx->async_fd,
				       .events = ENV_READ,
				       .fn = on_async };
	rc = loop_watch(p->loop, &p->async_io);
	if (rc)
		return rc;
	/* How it is now, the LND hears in a turn of its own. */
	p->look.fn = on_look;
	ibr_port_hold(p);
	loop_post(p->loop, &p->look);
	return 0;
}

void ibr_device_unwatch(struct ibr_port *p)
{
	if (p->async_io.fn)
		loop_unwatch(p->loop, &p->async_io);
}
