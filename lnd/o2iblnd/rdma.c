/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/rdma.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fork.h"

static void device_unwatch(struct ibr_port *p);
static void removal_unwatch(struct ibr_port *p);

/* Most asynchronous events handled in a turn. */
#define BATCH 64

/* ---- devices ---- */

static void take_limits(struct ib_limits *l, const struct ibv_device_attr *a)
{
	l->max_qp_wr = a->max_qp_wr > 0 ? (uint32_t)a->max_qp_wr : 0;
	l->max_cqe = a->max_cqe > 0 ? (uint32_t)a->max_cqe : 0;
	l->max_sge = a->max_sge > 0 ? (uint32_t)a->max_sge : 1;
	l->max_sge = MIN(l->max_sge, IBR_SGE_MAX);
	l->max_mr_size = a->max_mr_size;
}

/* Sees to it that after fork() pages that a device uses stay with the parent.
 * Recent kernels do so themselves. */
static void init_fork_safety(void)
{
	if (ibv_is_fork_initialized() == IBV_FORK_DISABLED && ibv_fork_init())
		log_warn("o2iblnd",
			 "RDMA was used before: a fork() of this process may "
			 "cost it data (RDMAV_FORK_SAFE=1 helps)");
}

/* Opens the device of port->id. Returns 0, or -errno and *@why. */
static int device_open(struct ibr_port *p, const char **why)
{
	struct ibv_device *dev = p->id->verbs->device;
	struct ibv_device_attr attr;
	int rc;

	init_fork_safety();
	p->number = p->id->port_num;
	p->ctx = ibv_open_device(dev);
	if (!p->ctx) {
		rc = errno ? -errno : -ENODEV;
		*why = rc == -EACCES || rc == -EPERM
			       ? "/dev/infiniband/uverbs*: no permission"
			       : "the RDMA device cannot be opened";
		return rc;
	}
	/* A child of fork() must have no copies of these descriptors: they
	 * would keep the queue pairs after the end of this process. */
	fork_fd_add(p->ctx->cmd_fd);
	fork_fd_add(p->ctx->async_fd);
	rc = -ibv_query_device(p->ctx, &attr);
	if (!rc) {
		take_limits(&p->port.limits, &attr);
		p->port.ni->numa_node = netif_device_numa_node(dev->ibdev_path);
		errno = 0;
		p->pd = ibv_alloc_pd(p->ctx);
		if (!p->pd)
			rc = errno ? -errno : -ENOMEM;
	}
	if (rc)
		*why = "the RDMA device does not work";
	return rc;
}

/* Called with the last reference to the port, on any thread. */
static void device_close(struct ibr_port *p)
{
	if (p->pd)
		ibv_dealloc_pd(p->pd);
	if (!p->ctx)
		return;
	fork_fd_del(p->ctx->cmd_fd);
	fork_fd_del(p->ctx->async_fd);
	ibv_close_device(p->ctx);
}

bool ibr_device_is(const struct ibr_port *p, const struct rdma_cm_id *id)
{
	return id->verbs && !strcmp(ibv_get_device_name(id->verbs->device),
				    ibv_get_device_name(p->ctx->device));
}

/* Returns why the port cannot be used: constant text; NULL: it can. @all NULL:
 * the host's addresses are not known, and only the device is looked at. */
static const char *device_fault(const struct ibr_port *p,
				const struct ifaddrs *all)
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
	return all ? netif_fault(all, &p->port.ni->nid) : NULL;
}

static void device_look(struct ibr_port *p, const struct ifaddrs *all)
{
	const char *fault = device_fault(p, all), *was = p->fault;

	if (all)
		lnd_link_name(p->port.ni, all);
	p->fault = fault;
	if (!fault != !was)
		p->port.events->port_changed(&p->port, !fault, false,
					     fault ? fault
						   : "its RDMA device works");
}

void ibr_device_look(struct ibr_port *p)
{
	struct ifaddrs *all;

	if (getifaddrs(&all))
		all = NULL;
	device_look(p, all);
	freeifaddrs(all);
}

/* The function of port->link: links, addresses or names of the host have
 * changed. Verbs do not tell of all such changes, for example not of a new name
 * of an interface. */
static void rdma_on_link(struct lnd_link *l, const struct ifaddrs *all)
{
	device_look(container_of(l, struct ibr_port, link), all);
}

/* Handles an event of the device. The queue pair that it names exists until the
 * event is acknowledged, since destroying it waits for that. */
static void device_event(struct ibr_port *p, const struct ibv_async_event *ev,
			 bool *look)
{
	switch (ev->event_type) {
	case IBV_EVENT_COMM_EST:
		ibr_qp_tell(ev->element.qp->qp_context, IBR_EVENT_HEARD);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		ibr_qp_tell(ev->element.qp->qp_context, IBR_EVENT_FAILED);
		break;
	case IBV_EVENT_CQ_ERR:
		ibr_qp_tell(ev->element.cq->cq_context, IBR_EVENT_FAILED);
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
		/* no event can be read any more: the device is gone, or its
		 * driver has failed */
		log_warn("o2iblnd", "the RDMA device says nothing any more: %s",
			 strerror(rc));
		device_unwatch(p);
		look = true;
	}
	if (look)
		ibr_device_look(p);
}

static void rdma_on_look(struct work *w)
{
	struct ibr_port *p = container_of(w, struct ibr_port, look);

	if (!p->closed)
		ibr_device_look(p);
	ibr_port_put(p);
}

/* Watches the device's asynchronous events. CPT 0's thread. */
static int device_watch(struct ibr_port *p)
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
	/* the LND is told of the present state in a turn of its own */
	p->look.fn = rdma_on_look;
	ibr_port_hold(p);
	loop_post(p->loop, &p->look);
	return 0;
}

static void device_unwatch(struct ibr_port *p)
{
	if (p->async_io.fn)
		loop_unwatch(p->loop, &p->async_io);
}

/* ---- removal of devices ---- */

/* has a file for each device until the removal of the device begins */
#define FILES "/dev/infiniband"
/* has a folder for each device until the removal of the device has ended */
#define FOLDERS "/sys/class/infiniband"

/* Does the system still have the port's device? No other device can be mistaken
 * for it while the port has it open. */
static bool device_is_there(const struct ibr_port *p)
{
	struct ibv_device **all = ibv_get_device_list(NULL);
	bool is = !all;

	for (unsigned int i = 0; all && all[i] && !is; i++)
		is = all[i] == p->ctx->device;
	if (all)
		ibv_free_device_list(all);
	return is;
}

static bool is_listed(struct ibv_device **all, const char *name)
{
	for (; *all; all++)
		if (!strcmp(ibv_get_device_name(*all), name))
			return true;
	return false;
}

/* Does a device wait to be removed? Then it has a folder but is not among @all.
 */
static bool is_one_waiting(struct ibv_device **all)
{
	DIR *dir = opendir(FOLDERS);
	const struct dirent *e;
	bool goes = false;

	if (!dir)
		return false;
	while (!goes && (e = readdir(dir)))
		goes = e->d_name[0] != '.' && !is_listed(all, e->d_name);
	closedir(dir);
	return goes;
}

bool ibr_removal_check(void)
{
	struct ibv_context **open = NULL;
	struct ibv_device **all;
	int n = 0;

	all = ibv_get_device_list(&n);
	if (!all)
		return false;
	if (n > 0 && is_one_waiting(all))
		open = rdma_get_devices(NULL);
	if (open)
		rdma_free_devices(open);
	ibv_free_device_list(all);
	return n > 0;
}

void ibr_removal_begin(struct ibr_port *p)
{
	if (!p->id)
		return;
	/* the removal waits for our identifiers */
	ibr_cm_stop_listening(p);
	rdma_destroy_id(p->id);
	p->id = NULL;
	p->fault = "its RDMA device has gone";
	ibr_removal_check();
	for (unsigned int i = 0; i < p->ncpts; i++) {
		ibr_port_hold(p);
		loop_post(p->cpts[i].loop, &p->cpts[i].removal);
	}
	p->port.events->port_changed(&p->port, false, true, p->fault);
}

static void on_cpt_removal(struct work *w)
{
	struct ibr_cpt *cpt = container_of(w, struct ibr_cpt, removal);

	ibr_cpt_fail(cpt, -ENODEV);
	ibr_port_put(cpt->port);
}

/* Reads, and discards, what can be read. Returns false if there was nothing. */
static bool rdma_drain(int fd)
{
	char buf[4096]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	bool any = false;

	while (read(fd, buf, sizeof(buf)) > 0)
		any = true;
	return any;
}

static void on_files(struct env_io *io, int revents)
{
	struct ibr_port *p = container_of(io, struct ibr_port, files_io);

	if (revents & ENV_ERROR || !rdma_drain(io->fd))
		return;
	ibr_port_hold(p);
	if (device_is_there(p))
		ibr_removal_check();
	else
		ibr_removal_begin(p);
	ibr_port_put(p);
}

static int files_open(struct env_io *io)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	if (inotify_add_watch(fd, FILES, IN_DELETE) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	*io = (struct env_io){ .fd = fd, .events = ENV_READ, .fn = on_files };
	return 0;
}

/* Watches the files of devices. If they cannot be watched, only the CM tells of
 * removals. -ENODEV: the device was removed after it was opened. CPT 0's
 * thread. */
static int removal_watch(struct ibr_port *p)
{
	int rc = files_open(&p->files_io);

	if (!rc) {
		rc = loop_watch(p->loop, &p->files_io);
		if (rc)
			removal_unwatch(p);
	}
	if (rc)
		log_debug("o2iblnd", "%s cannot be watched: %s", FILES,
			  strerror(-rc));
	return device_is_there(p) ? 0 : -ENODEV;
}

static void removal_unwatch(struct ibr_port *p)
{
	if (!p->files_io.fn)
		return;
	loop_unwatch(p->loop, &p->files_io);
	close(p->files_io.fd);
	p->files_io.fn = NULL;
}

/* ---- registered memory ---- */

struct ibr_mr {
	struct ib_mr mr;
	struct ibv_mr *ibv;
};

int ibr_port_complain(struct ibr_port *p, const char *what, int rc)
{
	char text[LNET_NIDSTR_SIZE];
	struct rlimit limit;

	if (rc != -ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY ||
	    atomic_exchange(&p->locked, true))
		return rc;
	log_warn("o2iblnd",
		 "%s: %s: %s: this process may lock %llu KiB (ulimit -l)",
		 ibr_port_name(p, text), what, strerror(-rc),
		 (unsigned long long)(limit.rlim_cur >> 10));
	return rc;
}

static int mr_reg(struct ib_port *port, void *addr, size_t length, bool remote,
		  struct ib_mr **mr_p)
{
	int access = IBV_ACCESS_LOCAL_WRITE;
	struct ibr_port *p = ibr_port(port);
	struct ibr_mr *m = malloc(sizeof(*m));

	if (!m)
		return -ENOMEM;
	/* No relaxed ordering: completions must not overtake the data. */
	if (remote)
		access |= IBV_ACCESS_REMOTE_WRITE;
	m->ibv = ibv_reg_mr(p->pd, addr, length, access);
	if (!m->ibv) {
		int rc = -errno;

		free(m);
		return ibr_port_complain(p, "memory cannot be registered", rc);
	}
	m->mr.addr = addr;
	m->mr.length = length;
	m->mr.lkey = m->ibv->lkey;
	m->mr.rkey = m->ibv->rkey;
	*mr_p = &m->mr;
	return 0;
}

static void mr_dereg(struct ib_port *port, struct ib_mr *mr)
{
	struct ibr_mr *m = container_of(mr, struct ibr_mr, mr);
	char text[LNET_NIDSTR_SIZE];
	int rc = ibv_dereg_mr(m->ibv);

	/* a removed device accesses nothing */
	if (rc && rc != EIO && rc != ENODEV)
		log_err("o2iblnd", "%s: memory cannot be deregistered: %s",
			ibr_port_name(ibr_port(port), text), strerror(rc));
	free(m);
}

/* ---- ports ---- */

/* Called with the last reference. Any thread. */
static void port_free(struct ibr_port *p)
{
	ibr_cm_close(p);
	for (unsigned int i = 0; i < p->ncpts; i++)
		if (p->cpts[i].comp) {
			fork_fd_del(p->cpts[i].comp->fd);
			ibv_destroy_comp_channel(p->cpts[i].comp);
		}
	device_close(p);
	free(p);
}

static void rdma_cpt_init(struct ibr_port *p, unsigned int i)
{
	struct ibr_cpt *cpt = &p->cpts[i];

	cpt->port = p;
	cpt->loop = p->port.ni->loops[i];
	cpt->index = i;
	list_init(&cpt->qps);
	ibr_cq_init(cpt);
	cpt->removal.fn = on_cpt_removal;
}

static int rdma_cpt_open(struct ibr_cpt *cpt)
{
	int flags;

	errno = 0;
	cpt->comp = ibv_create_comp_channel(cpt->port->ctx);
	if (!cpt->comp)
		return errno ? -errno : -ENOMEM;
	cpt->comp_io.fd = cpt->comp->fd;
	fork_fd_add(cpt->comp->fd);
	flags = fcntl(cpt->comp->fd, F_GETFL);
	return fcntl(cpt->comp->fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

static int rdma_cpts_open(struct ibr_port *p, const char **why)
{
	int rc = 0;

	for (unsigned int i = 0; i < p->ncpts && !rc; i++)
		rc = rdma_cpt_open(&p->cpts[i]);
	if (rc)
		*why = "the RDMA device gives no channel for completions";
	return rc;
}

static void port_close(struct ib_port *port)
{
	struct ibr_port *p = ibr_port(port);

	loop_assert_owner(p->loop);
	p->closed = true;
	ibr_cm_unwatch(p);
	device_unwatch(p);
	lnd_link_leave(&p->link);
	removal_unwatch(p);
	ibr_cm_stop_listening(p);
	if (p->id)
		rdma_destroy_id(p->id);
	p->id = NULL;
	ibr_port_put(p);
}

static void port_stop_listening(struct ib_port *port)
{
	loop_assert_owner(ibr_port(port)->loop);
	ibr_cm_stop_listening(ibr_port(port));
}

static int port_start(struct ibr_port *p, const char **why)
{
	int rc = ibr_cm_open(p, why);

	if (!rc)
		rc = device_open(p, why);
	if (!rc)
		rc = rdma_cpts_open(p, why);
	if (!rc && p->conf.listen)
		rc = ibr_cm_listen(p, why);
	if (!rc)
		rc = ibr_cm_watch(p);
	if (!rc)
		rc = device_watch(p);
	if (!rc)
		rc = lnd_link_join(&p->link, p->port.ni->shared);
	if (!rc)
		rc = removal_watch(p);
	return rc;
}

static struct ibr_port *port_new(struct lnd_ni *ni,
				 const struct ib_port_conf *conf)
{
	struct ibr_port *p =
		calloc(1, sizeof(*p) + ni->cpts * sizeof(p->cpts[0]));

	if (!p)
		return NULL;
	p->port.verbs = ib_verbs_rdma();
	p->port.ni = ni;
	p->free = port_free;
	p->link.ni = ni;
	p->link.look = rdma_on_link;
	p->conf = *conf;
	p->loop = ni->loops[0];
	p->ncpts = ni->cpts;
	atomic_init(&p->refs, 1);
	for (unsigned int i = 0; i < ni->cpts; i++)
		rdma_cpt_init(p, i);
	return p;
}

static int rdma_port_open(struct lnd_ni *ni, const struct ib_port_conf *conf,
			  const struct ib_events *events, void *user,
			  struct ib_port **port_p, const char **why)
{
	struct ibr_port *p = port_new(ni, conf);
	const char *reason = NULL;
	int rc;

	if (!p)
		return -ENOMEM;
	p->port.events = events;
	p->port.user = user;
	loop_assert_owner(p->loop);
	rc = port_start(p, &reason);
	if (rc) {
		if (why)
			*why = reason;
		port_close(&p->port);
		return rc;
	}
	*port_p = &p->port;
	return 0;
}

/* ---- what the LND calls ---- */

static const struct ib_verbs rdma = {
	.name = "rdma-core",
	.open = rdma_port_open,
	.close = port_close,
	.stop_listening = port_stop_listening,
	.resolve = ibr_conn_resolve,
	.create = ibr_qp_create,
	.connect = ibr_conn_connect,
	.accept = ibr_conn_accept,
	.reject = ibr_conn_reject,
	.disconnect = ibr_conn_disconnect,
	.destroy = ibr_conn_destroy,
	.post_recv = ibr_qp_post_recv,
	.post_send = ibr_qp_post_send,
	.reg = mr_reg,
	.dereg = mr_dereg,
};

const struct ib_verbs *ib_verbs_rdma(void)
{
	return &rdma;
}
