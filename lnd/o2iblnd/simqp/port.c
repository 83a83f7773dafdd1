/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/simqp/qp.h"

#include <errno.h>

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

/* Schedules port_changed() of the LND, in a turn of its own. */
static void port_changed(struct simqp_port *port, bool up, bool removed,
			 const char *why)
{
	struct simqp_item *it = simqp_item_new(SIMQP_CHANGED);

	it->up = up;
	it->removed = removed;
	it->why = why;
	simqp_inbox_put(&port->inbox, it, simqp_now(port->fabric));
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

static int simqp_open(struct lnd_ni *ni, const struct ib_port_conf *conf,
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
		port_changed(port, false, false, a->why);
	*port_p = &port->ib;
	return 0;
}

static void simqp_stop_listening(struct ib_port *ib)
{
	struct simqp_port *port = simqp_port(ib);

	loop_assert_owner(port->inbox.loop);
	port->listening = false;
	simqp_cm_reject_pending(port);
}

static void simqp_close(struct ib_port *ib)
{
	struct simqp_port *port = simqp_port(ib);

	simqp_stop_listening(ib);
	BUG_ON(!list_empty(&port->qps));
	BUG_ON(port->usage.mrs);
	hash_fini(&port->keys);
	simqp_inbox_fini(&port->inbox);
	port->addr->port = NULL;
	free(port);
}

void simqp_usage(const struct simqp_fabric *f, const struct ulnet_nid *nid,
		 struct simqp_usage *usage)
{
	const struct simqp_addr *a = simqp_addr_find(f, nid);

	*usage = a && a->port ? a->port->usage : (struct simqp_usage){ 0 };
	usage->open = a && a->port;
}

/* ---- source ports ---- */

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

/* ---- registered memory ---- */

struct key {
	struct hash_node hash; /* in port.keys, by the key */
	bool remote;
};

struct mr {
	struct ib_mr ib;
	struct key lkey, rkey;
	bool remote;
};

/* Makes a key. Keys are never used again, so that the use of an old one is
 * detected. */
static uint32_t key_new(struct simqp_fabric *f)
{
	f->last_key += 1 + (uint32_t)rng_below(&f->key_rng, 200);
	return f->last_key;
}

static int keys_add(struct simqp_port *port, struct mr *mr)
{
	mr->ib.lkey = key_new(port->fabric);
	mr->ib.rkey = key_new(port->fabric);
	mr->rkey.remote = true;
	if (hash_add(&port->keys, &mr->lkey.hash, mr->ib.lkey))
		return -ENOMEM;
	if (hash_add(&port->keys, &mr->rkey.hash, mr->ib.rkey)) {
		hash_del(&port->keys, &mr->lkey.hash);
		return -ENOMEM;
	}
	return 0;
}

static int reg_refused(struct simqp_port *port, const void *addr, size_t length)
{
	const struct simqp_device *d = &port->addr->device;

	if (port->removed)
		return -ENODEV;
	if (!addr)
		return -EFAULT;
	if (!length || length > UINTPTR_MAX - (uintptr_t)addr ||
	    (d->limits.max_mr_size && length > d->limits.max_mr_size))
		return -EINVAL;
	if (d->locked_max && length > d->locked_max - port->usage.locked)
		return -ENOMEM;
	if (simqp_dice(port->fabric, d->reg_fails))
		return -ENOMEM;
	return simqp_addr_fails(port->addr, SIMQP_CALL_REG);
}

static int simqp_reg(struct ib_port *ib, void *addr, size_t length, bool remote,
		     struct ib_mr **mr_p)
{
	struct simqp_port *port = simqp_port(ib);
	int rc = reg_refused(port, addr, length);
	struct mr *mr;

	if (rc)
		return rc;
	mr = simqp_alloc(sizeof(*mr));
	mr->ib.addr = addr;
	mr->ib.length = length;
	mr->remote = remote;
	rc = keys_add(port, mr);
	if (rc) {
		free(mr);
		return rc;
	}
	port->usage.mrs++;
	port->usage.locked += length;
	*mr_p = &mr->ib;
	return 0;
}

static void simqp_dereg(struct ib_port *ib, struct ib_mr *ib_mr)
{
	struct simqp_port *port = simqp_port(ib);
	struct mr *mr = container_of(ib_mr, struct mr, ib);

	hash_del(&port->keys, &mr->lkey.hash);
	hash_del(&port->keys, &mr->rkey.hash);
	port->usage.mrs--;
	port->usage.locked -= mr->ib.length;
	free(mr);
}

/* Returns the registration with @key; NULL: there is none. */
static const struct key *key_find(const struct simqp_port *port, uint32_t key)
{
	struct hash_node *n = hash_first(&port->keys, key);

	return n ? container_of(n, struct key, hash) : NULL;
}

static bool mr_covers(const struct mr *mr, uint64_t addr, uint64_t length)
{
	uint64_t start = (uintptr_t)mr->ib.addr;

	return addr >= start && length <= mr->ib.length &&
	       addr - start <= mr->ib.length - length;
}

bool simqp_mr_is_local(const struct simqp_port *port, const struct ib_sge *sge)
{
	const struct key *key;

	if (!sge->length)
		return true;
	key = key_find(port, sge->lkey);
	return key && !key->remote &&
	       mr_covers(container_of(key, struct mr, lkey),
			 (uintptr_t)sge->addr, sge->length);
}

bool simqp_mr_is_remote(const struct simqp_port *port, uint64_t addr,
			uint64_t length, uint32_t rkey)
{
	const struct key *key = key_find(port, rkey);
	const struct mr *mr;

	if (!key || !key->remote)
		return false;
	mr = container_of(key, struct mr, rkey);
	return mr->remote && mr_covers(mr, addr, length);
}

/* ---- faults ---- */

static bool is_between(const struct simqp_qp *qp, const struct ulnet_nid *a,
		       const struct ulnet_nid *b)
{
	const struct ulnet_nid *here = &qp->port->addr->nid;
	const struct ulnet_nid *there = &qp->dst_nid;

	return (simqp_is_named(here, a) && simqp_is_named(there, b)) ||
	       (simqp_is_named(here, b) && simqp_is_named(there, a));
}

static void qp_cut(struct simqp_qp *qp)
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
				qp_cut(qp);
	}
}

void simqp_die(struct simqp_fabric *f, const struct ulnet_nid *nid)
{
	static const struct ulnet_nid any = LNET_NID_ANY;
	struct simqp_port *port = simqp_addr_get(f, nid)->port;
	struct simqp_qp *qp;

	simqp_silence(f, nid, &any, TIME_NEVER);
	if (!port)
		return;
	port->dying = true;
	list_for_each_entry (qp, &port->qps, link) {
		qp->cq_at = simqp_now(f);
		simqp_inbox_expedite(&qp->cq, qp->cq_at);
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
		port_changed(a->port, up, false, why);
}

static void remove_port(struct simqp_port *port)
{
	struct simqp_qp *qp;

	port->removed = true;
	port->listening = false;
	simqp_cm_reject_pending(port);
	list_for_each_entry (qp, &port->qps, link) {
		simqp_qp_fail(qp, IB_WC_FLUSHED);
		if (qp->cm.state != SIMQP_ENDED)
			simqp_cm_fail(qp, -ENODEV);
	}
	port_changed(port, false, true, "its device has gone");
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

/* ---- the backend ---- */

static const struct ib_verbs verbs = {
	.name = "simulated",
	.open = simqp_open,
	.close = simqp_close,
	.stop_listening = simqp_stop_listening,
	.resolve = simqp_resolve,
	.create = simqp_create,
	.connect = simqp_connect,
	.accept = simqp_accept,
	.reject = simqp_reject,
	.disconnect = simqp_disconnect,
	.destroy = simqp_destroy,
	.post_recv = simqp_post_recv,
	.post_send = simqp_post_send,
	.reg = simqp_reg,
	.dereg = simqp_dereg,
};

const struct ib_verbs *simqp_verbs(void)
{
	return &verbs;
}
