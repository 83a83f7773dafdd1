/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/simqp/port.h"

#include <errno.h>

#include "lnd/o2iblnd/simqp/cm.h"
#include "lnd/o2iblnd/simqp/qp.h"

#define PRIVILEGED_MIN 512
#define PRIVILEGED_MAX 1023
#define FREE_MIN       32768
#define FREE_MAX       60999

static void on_port_item(struct simqp_inbox *b, struct simqp_item *it)
{
	struct simqp_port *port = container_of(b, struct simqp_port, inbox);

	if (it->kind == SIMQP_REQ)
		simqp_cm_on_req(port, it);
	else
		port->ib.events->port_changed(&port->ib, it->up, it->removed,
					      it->why);
}

static int open_refused(struct simqp_addr *a, const char **why)
{
	int rc = simqp_addr_fails(a, SIMQP_CALL_OPEN);
	const char *text = "a fault of the simulated device";

	if (a->gone) {
		rc = -ENODEV;
		text = "there is no RDMA device";
	} else if (a->port) {
		rc = -EADDRINUSE;
		text = "another port has this NID";
	}
	if (rc && why)
		*why = text;
	return rc;
}

int simqp_open(struct lnd_ni *ni, const struct ib_port_conf *conf,
	       const struct ib_events *events, void *user,
	       struct ib_port **port_p, const char **why)
{
	struct simqp_fabric *f = ni->fabric;
	struct simqp_addr *a;
	struct simqp_port *port;
	int rc;

	BUG_ON(!f);
	loop_assert_owner(ni->loops[0]);
	BUG_ON(conf->retry_count > 7 || conf->rnr_retry_count > 7);
	a = simqp_addr_get(f, &ni->nid);
	rc = open_refused(a, why);
	if (rc)
		return rc;
	port = simqp_alloc(sizeof(*port));
	port->ib = (struct ib_port){
		.verbs = f->ib.verbs,
		.events = events,
		.ni = ni,
		.limits = a->device.limits,
		.user = user,
	};
	port->fabric = f;
	port->addr = a;
	port->conf = *conf;
	port->listening = conf->listen;
	simqp_inbox_init(&port->inbox, ni->loops[0], on_port_item);
	list_init(&port->qps);
	hash_init(&port->keys);
	a->port = port;
	if (a->down)
		simqp_port_changed(port, false, false, a->why);
	*port_p = &port->ib;
	return 0;
}

void simqp_deafen(struct ib_port *ib)
{
	struct simqp_port *port = simqp_port(ib);

	loop_assert_owner(port->inbox.loop);
	port->listening = false;
	simqp_cm_reject_untold(port);
}

void simqp_close(struct ib_port *ib)
{
	struct simqp_port *port = simqp_port(ib);

	simqp_deafen(ib);
	BUG_ON(!list_empty(&port->qps));
	BUG_ON(port->usage.mrs);
	hash_fini(&port->keys);
	simqp_inbox_fini(&port->inbox);
	port->addr->port = NULL;
	free(port);
}

void simqp_port_changed(struct simqp_port *port, bool up, bool removed,
			const char *why)
{
	struct simqp_item *it = simqp_item_new(SIMQP_CHANGED);

	it->up = up;
	it->removed = removed;
	it->why = why;
	simqp_inbox_put(&port->inbox, it, simqp_now(port->fabric));
}

void simqp_usage(const struct simqp_fabric *f, const struct ulnet_nid *nid,
		 struct simqp_usage *usage)
{
	const struct simqp_addr *a = simqp_addr_find(f, nid);

	*usage = a && a->port ? a->port->usage : (struct simqp_usage){ 0 };
	usage->open = a && a->port;
}

/* ---- ports to connect from ---- */

uint16_t simqp_src_port_get(struct simqp_port *port)
{
	uint32_t min = port->conf.privileged ? PRIVILEGED_MIN : FREE_MIN;
	uint32_t max = port->conf.privileged ? PRIVILEGED_MAX : FREE_MAX;

	for (uint32_t i = min; i <= max; i++) {
		uint16_t p = port->last_src_port;

		p = p <= min || p > max ? (uint16_t)max : (uint16_t)(p - 1);
		port->last_src_port = p;
		if (port->src_ports[p / 8] & 1 << p % 8)
			continue;
		port->src_ports[p / 8] |= (uint8_t)(1 << p % 8);
		return p;
	}
	return 0;
}

void simqp_src_port_put(struct simqp_port *port, uint16_t src_port)
{
	port->src_ports[src_port / 8] &= (uint8_t) ~(1 << src_port % 8);
}
