/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/rdma.h"

#include <errno.h>
#include <fcntl.h>

/* ---- ports ---- */

/* Nobody refers to it. Any thread. */
static void port_free(struct ibr_port *p)
{
	ibr_cm_close(p);
	for (unsigned int i = 0; i < p->ncpts; i++)
		if (p->cpts[i].comp)
			ibv_destroy_comp_channel(p->cpts[i].comp);
	ibr_device_close(p);
	free(p);
}

static void cpt_init(struct ibr_port *p, unsigned int i)
{
	struct ibr_cpt *cpt = &p->cpts[i];

	cpt->port = p;
	cpt->loop = p->port.ni->loops[i];
	cpt->index = i;
	list_init(&cpt->qps);
	ibr_cq_init(cpt);
	ibr_removal_init(cpt);
}

static int cpt_open(struct ibr_cpt *cpt)
{
	int flags;

	errno = 0;
	cpt->comp = ibv_create_comp_channel(cpt->port->ctx);
	if (!cpt->comp)
		return errno ? -errno : -ENOMEM;
	flags = fcntl(cpt->comp->fd, F_GETFL);
	return fcntl(cpt->comp->fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

static int cpts_open(struct ibr_port *p, const char **why)
{
	int rc = 0;

	for (unsigned int i = 0; i < p->ncpts && !rc; i++)
		rc = cpt_open(&p->cpts[i]);
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
	ibr_device_unwatch(p);
	ibr_removal_unwatch(p);
	ibr_cm_deafen(p);
	if (p->id)
		rdma_destroy_id(p->id);
	p->id = NULL;
	ibr_port_put(p);
}

static void port_deafen(struct ib_port *port)
{
	loop_assert_owner(ibr_port(port)->loop);
	ibr_cm_deafen(ibr_port(port));
}

static int port_start(struct ibr_port *p, const char **why)
{
	int rc = ibr_cm_open(p, why);

	if (!rc)
		rc = ibr_device_open(p, why);
	if (!rc)
		rc = cpts_open(p, why);
	if (!rc && p->conf.listen)
		rc = ibr_cm_listen(p, why);
	if (!rc)
		rc = ibr_cm_watch(p);
	if (!rc)
		rc = ibr_device_watch(p);
	if (!rc)
		rc = ibr_removal_watch(p);
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
	p->conf = *conf;
	p->loop = ni->loops[0];
	p->ncpts = ni->cpts;
	atomic_init(&p->refs, 1);
	for (unsigned int i = 0; i < ni->cpts; i++)
		cpt_init(p, i);
	return p;
}

static int port_open(struct lnd_ni *ni, const struct ib_port_conf *conf,
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
	.open = port_open,
	.close = port_close,
	.deafen = port_deafen,
	.resolve = ibr_conn_resolve,
	.create = ibr_qp_create,
	.connect = ibr_conn_connect,
	.accept = ibr_conn_accept,
	.reject = ibr_conn_reject,
	.disconnect = ibr_conn_disconnect,
	.destroy = ibr_conn_destroy,
	.post_recv = ibr_qp_post_recv,
	.post_send = ibr_qp_post_send,
	.reg = ibr_mr_reg,
	.dereg = ibr_mr_dereg,
};

const struct ib_verbs *ib_verbs_rdma(void)
{
	return &rdma;
}
