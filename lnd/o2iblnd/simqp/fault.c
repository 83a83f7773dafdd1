/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults of connections, ports and devices that there are. */
#include <errno.h>

#include "lnd/o2iblnd/simqp/cm.h"
#include "lnd/o2iblnd/simqp/qp.h"

static bool is_between(const struct simqp_qp *qp, const struct ulnet_nid *a,
		       const struct ulnet_nid *b)
{
	const struct ulnet_nid *here = &qp->port->addr->nid;
	const struct ulnet_nid *there = &qp->dst_nid;

	return (simqp_is_named(here, a) && simqp_is_named(there, b)) ||
	       (simqp_is_named(here, b) && simqp_is_named(there, a));
}

static void cut(struct simqp_qp *qp)
{
	bool open = qp->cm.state == SIMQP_OPEN || qp->cm.state == SIMQP_LEFT;

	if (!open && qp->cm.state != SIMQP_ACCEPTED &&
	    qp->cm.state != SIMQP_CONNECTING)
		return;
	simqp_inbox_cut(&qp->inbox);
	simqp_qp_fail(qp, IB_WC_FLUSHED);
	simqp_cm_fail(qp, open ? -EIO : -ENOTCONN);
}

void simqp_cut(struct simqp_fabric *f, const struct ulnet_nid *a,
	       const struct ulnet_nid *b)
{
	struct simqp_addr *addr;
	struct simqp_qp *qp;

	list_for_each_entry (addr, &f->addrs, link) {
		if (!addr->port)
			continue;
		list_for_each_entry (qp, &addr->port->qps, link)
			if (is_between(qp, a, b))
				cut(qp);
	}
}

void simqp_port_set(struct simqp_fabric *f, const struct ulnet_nid *nid,
		    bool up, const char *why)
{
	struct simqp_addr *a = simqp_addr_get(f, nid);

	if (a->down == !up)
		return;
	a->down = !up;
	a->why = why;
	if (a->port && !a->port->removed)
		simqp_port_changed(a->port, up, false, why);
}

static void remove_port(struct simqp_port *port)
{
	struct simqp_qp *qp;

	port->removed = true;
	port->listening = false;
	simqp_cm_reject_untold(port);
	list_for_each_entry (qp, &port->qps, link) {
		simqp_qp_fail(qp, IB_WC_FLUSHED);
		if (qp->cm.state != SIMQP_ENDED)
			simqp_cm_fail(qp, -ENODEV);
	}
	simqp_port_changed(port, false, true, "its device has gone");
}

void simqp_remove(struct simqp_fabric *f, const struct ulnet_nid *nid)
{
	struct simqp_addr *a = simqp_addr_get(f, nid);

	if (a->gone)
		return;
	a->gone = true;
	if (a->port)
		remove_port(a->port);
}

void simqp_insert(struct simqp_fabric *f, const struct ulnet_nid *nid)
{
	simqp_addr_get(f, nid)->gone = false;
}
