/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of an NI. CPT 0 opens and closes it and is told of its changes; all
 * CPTs have queue pairs and registered memory of it. When the device is
 * removed, or the NI shuts down, each CPT ends what it has and releases the
 * port. After the last one CPT 0 closes it and, if the NI is up, waits for the
 * device to come back.
 */
#include "lnd/o2iblnd/o2iblnd.h"

#include <errno.h>

#include "lnd/o2iblnd/xfer.h"

/* ns between two attempts to reopen a port. */
#define REOPEN_PAUSE NSEC_PER_SEC

/* ---- CPTs ---- */

static void port_attach(struct ib_cpt *cpt)
{
	struct ib_ni *ini = cpt->ini;
	const int64_t *tunables = ini->ni->tunables;
	uint64_t bounce_max = (uint64_t)tunables[IB_TUNE_bounce_max];
	uint32_t ntx = (uint32_t)tunables[IB_TUNE_ntx] / ini->ni->cpts;

	atomic_store(&cpt->port_offered, false);
	cpt->peers.set.port = ini->port;
	ib_tx_pool_init(&cpt->txs, ini->port, MAX(ntx, 256u));
	for (unsigned int i = 0; i < IB_USES; i++)
		ib_arena_init(&cpt->arena[i], ini->port, bounce_max / IB_USES);
	ib_regcache_init(&cpt->regs, ini->port,
			 (uint64_t)tunables[IB_TUNE_register_max]);
	cpt->txs.regcache = &cpt->regs;
	for (unsigned int i = 0; i < IB_USES; i++)
		cpt->arena[i].regcache = &cpt->regs;
	cpt->attached = true;
	ib_peers_up(&cpt->peers);
}

static void port_release(struct ib_cpt *cpt)
{
	ib_tx_pool_fini(&cpt->txs);
	for (unsigned int i = 0; i < IB_USES; i++)
		ib_arena_fini(&cpt->arena[i]);
	ib_regcache_fini(&cpt->regs);
	cpt->attached = false;
	loop_post(cpt->ini->ni->loops[0], &cpt->released);
}

/* Must @cpt release the port? After a removal of the device only once the CPT
 * was told of it, since until then it may get new connections. */
static bool must_release(const struct ib_cpt *cpt)
{
	if (cpt->stopping)
		return cpt->stopped;
	return cpt->peers.down && atomic_load(&cpt->ini->removed);
}

/* Reports that CPT 0 has stopped. It owns the port, and so stops last. */
static void try_finish(struct ib_ni *ini)
{
	struct ib_cpt *cpt = &ini->cpts[0];

	if (!cpt->stopped || cpt->retrying || ini->port || !ini->closed ||
	    cpt->reported)
		return;
	cpt->reported = true;
	lnet_ni_stopped(ini->ni, 0);
}

void ib_cpt_settle(struct ib_cpt *cpt)
{
	if (cpt->attached && must_release(cpt) && !cpt->peers.set.conns &&
	    !cpt->under_way && list_empty(&cpt->memory_waiters)) {
		ib_xfer_bounce(cpt);
		port_release(cpt);
	}
	if (!cpt->stopped || cpt->retrying || cpt->attached || cpt->reported)
		return;
	if (cpt->index == 0) {
		try_finish(cpt->ini);
		return;
	}
	cpt->reported = true;
	lnet_ni_stopped(cpt->ini->ni, cpt->index);
}

static void cpt_down(struct ib_cpt *cpt)
{
	if (!cpt->peers.down)
		ib_peers_down(&cpt->peers, -ENETDOWN);
	ib_xfer_fail_waiters(cpt, -ENETDOWN);
	ib_cpt_settle(cpt);
}

void ib_cpt_stop(struct ib_cpt *cpt)
{
	cpt->stopping = true;
	ib_xfer_fail_waiters(cpt, -ESHUTDOWN);
	ib_peers_stop(&cpt->peers);
}

/* ---- port events, from CPT 0 to all ---- */

static void handle_port_event(struct ib_cpt *cpt)
{
	struct ib_ni *ini = cpt->ini;
	int fault = atomic_load(&ini->fault);

	if (cpt->stopping) {
		/* This CPT does not begin to use the new port, so it counts as
		 * having released it. */
		if (atomic_exchange(&cpt->port_offered, false))
			loop_post(ini->ni->loops[0], &cpt->released);
		return;
	}
	if (atomic_load(&cpt->port_offered))
		port_attach(cpt);
	else if (!fault && cpt->attached)
		ib_peers_up(&cpt->peers);
	if (fault)
		cpt_down(cpt);
}

void ib_cpt_start(struct ib_cpt *cpt)
{
	/* Port events may have come before the CPT has started. */
	handle_port_event(cpt);
}

static void on_port_event(struct work *w)
{
	struct ib_cpt *cpt = container_of(w, struct ib_cpt, port_event);
	struct passage *passage = &cpt->ini->passage;

	atomic_store(&cpt->port_event_posted, false);
	handle_port_event(cpt);
	passage_arrived(passage);
}

static void post_port_events(struct ib_ni *ini)
{
	for (unsigned int i = 0; i < ini->ni->cpts; i++) {
		struct ib_cpt *cpt = &ini->cpts[i];

		if (!atomic_exchange(&cpt->port_event_posted, true))
			passage_send(&ini->passage, ini->ni->loops[i],
				     &cpt->port_event);
	}
}

/* Offers the port to all CPTs, with the next port event. */
static void port_offer(struct ib_ni *ini)
{
	ini->users = ini->ni->cpts;
	for (unsigned int i = 0; i < ini->ni->cpts; i++)
		atomic_store(&ini->cpts[i].port_offered, true);
}

/* ---- the port, on CPT 0 ---- */

static void on_port_changed(struct ib_port *port, bool up, bool removed,
			    const char *why)
{
	struct ib_ni *ini = port->user;

	if (ini->cpts[0].stopping || atomic_load(&ini->removed))
		return;
	atomic_store(&ini->fault, up ? 0 : -ENETDOWN);
	if (removed)
		atomic_store(&ini->removed, true);
	lnet_ni_set_up(ini->ni, up, up ? NULL : why);
	post_port_events(ini);
}

static unsigned int on_request_cpt(struct ib_port *port, const void *private,
				   size_t length)
{
	struct ib_envelope env;
	struct ib_msg msg;
	const char *why;

	if (ib_msg_decode(private, length, &msg, &why))
		return 0;
	env = ib_msg_env(&msg);
	return lnet_ni_cpt_of(port->ni, &env.src.nid);
}

static void port_on_request(struct ib_port *port, struct ib_qp *qp,
			    const struct ib_source *from, const void *private,
			    size_t length)
{
	struct ib_ni *ini = port->user;

	ib_peers_on_request(&ini->cpts[qp->cpt].peers, qp, from, private,
			    length);
}

static const struct ib_events events = {
	.request_cpt = on_request_cpt,
	.request = port_on_request,
	.resolved = ib_conn_on_resolved,
	.established = ib_conn_on_established,
	.rejected = ib_conn_on_rejected,
	.failed = ib_conn_on_failed,
	.disconnected = ib_conn_on_disconnected,
	.received = ib_conn_on_received,
	.sent = ib_conn_on_sent,
	.port_changed = on_port_changed,
};

/* Opens the port. If connecting from privileged ports is not permitted, uses
 * other ones, which some nodes reject. */
static int port_open(struct ib_ni *ini, const char **why)
{
	struct ib_port_conf conf = ini->port_conf;
	int rc =
		ini->verbs->open(ini->ni, &conf, &events, ini, &ini->port, why);

	if (rc != -EACCES || !conf.privileged)
		return rc;
	conf.privileged = false;
	rc = ini->verbs->open(ini->ni, &conf, &events, ini, &ini->port, why);
	if (rc)
		return rc;
	ini->port_conf.privileged = false;
	log_info("o2iblnd", "connects from unprivileged ports: nodes with "
			    "require_privileged_port=1 refuse that");
	return 0;
}

int ib_port_open(struct ib_ni *ini)
{
	const char *why = NULL;
	char nid[LNET_NIDSTR_SIZE];
	int rc = port_open(ini, &why);

	if (rc) {
		ini->ni->why = why;
		lnet_nid_format(&ini->ni->nid, nid, sizeof(nid));
		log_warn("o2iblnd", "%s: %s%s%s", nid, why ? why : "",
			 why ? ": " : "", strerror(-rc));
		return rc;
	}
	port_offer(ini);
	return 0;
}

static void reopen_later(struct ib_ni *ini)
{
	struct loop *loop = ini->ni->loops[0];

	loop_timer_arm(loop, &ini->reopen, loop_now(loop) + REOPEN_PAUSE);
}

static void on_reopen(struct timer *t)
{
	struct ib_ni *ini = container_of(t, struct ib_ni, reopen);

	if (port_open(ini, NULL)) {
		reopen_later(ini);
		return;
	}
	atomic_store(&ini->removed, false);
	atomic_store(&ini->fault, 0);
	port_offer(ini);
	lnet_ni_set_up(ini->ni, true, NULL);
	post_port_events(ini);
}

static void on_released(struct work *w)
{
	struct ib_cpt *cpt = container_of(w, struct ib_cpt, released);
	struct ib_ni *ini = cpt->ini;

	BUG_ON(!ini->users);
	if (--ini->users)
		return;
	ini->verbs->close(ini->port);
	ini->port = NULL;
	if (ini->cpts[0].stopping)
		try_finish(ini);
	else
		reopen_later(ini);
}

static void port_on_closed(struct work *w)
{
	struct ib_ni *ini = container_of(w, struct ib_ni, passage.closed);

	ini->closed = true;
	try_finish(ini);
}

void ib_port_stop(struct ib_ni *ini)
{
	loop_timer_cancel(ini->ni->loops[0], &ini->reopen);
	if (ini->port)
		ini->verbs->stop_listening(ini->port);
	passage_close(&ini->passage);
}

void ib_port_init(struct ib_ni *ini)
{
	atomic_init(&ini->fault, 0);
	atomic_init(&ini->removed, false);
	timer_init(&ini->reopen, on_reopen);
	passage_init(&ini->passage, ini->ni->loops[0], port_on_closed);
	for (unsigned int i = 0; i < ini->ni->cpts; i++) {
		struct ib_cpt *cpt = &ini->cpts[i];

		cpt->port_event.fn = on_port_event;
		cpt->released.fn = on_released;
		atomic_init(&cpt->port_event_posted, false);
		atomic_init(&cpt->port_offered, false);
	}
}
