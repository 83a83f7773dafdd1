/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of an NI. CPT 0 opens and closes it, and hears what becomes of it;
 * all CPTs have queue pairs and memory of it. When its device goes, or the NI
 * does, each CPT ends what it has and lets go, and CPT 0 closes the port when
 * the last one has; then it waits for the device to come back.
 */
#include "lnd/o2iblnd/o2iblnd.h"

#include <errno.h>

#include "lnd/o2iblnd/xfer.h"

/* The device is looked for so often, once it has gone. */
#define REOPEN_PAUSE NSEC_PER_SEC

/* ---- CPTs ---- */

static void port_attach(struct ib_cpt *cpt)
{
	struct ib_ni *ini = cpt->ini;
	const int64_t *tunables = ini->ni->tunables;
	uint64_t bounce_max = (uint64_t)tunables[IB_TUNE_bounce_max];
	uint32_t ntx = (uint32_t)tunables[IB_TUNE_ntx] / ini->ni->cpts;

	atomic_store(&cpt->given, false);
	cpt->peers.home.port = ini->port;
	ib_tx_pool_init(&cpt->txs, ini->port, MAX(ntx, 256u));
	for (unsigned int i = 0; i < IB_USES; i++)
		ib_arena_init(&cpt->arena[i], ini->port, bounce_max / IB_USES);
	ib_regcache_init(&cpt->regs, ini->port,
			 (uint64_t)tunables[IB_TUNE_register_max]);
	cpt->txs.spare = &cpt->regs;
	for (unsigned int i = 0; i < IB_USES; i++)
		cpt->arena[i].spare = &cpt->regs;
	cpt->attached = true;
	ib_peers_up(&cpt->peers);
}

static void let_go(struct ib_cpt *cpt)
{
	ib_tx_pool_fini(&cpt->txs);
	for (unsigned int i = 0; i < IB_USES; i++)
		ib_arena_fini(&cpt->arena[i]);
	ib_regcache_fini(&cpt->regs);
	cpt->attached = false;
	loop_post(cpt->ini->ni->loops[0], &cpt->let_go);
}

/* That the device goes counts once this CPT has heard of it: until then there
 * may be new connections. */
static bool is_to_let_go(const struct ib_cpt *cpt)
{
	if (cpt->stopping)
		return cpt->stopped;
	return cpt->peers.down && atomic_load(&cpt->ini->going);
}

/* CPT 0 is the last one: it has the port. */
static void try_end(struct ib_ni *ini)
{
	struct ib_cpt *cpt = &ini->cpts[0];

	if (!cpt->stopped || cpt->feeding || ini->port || !ini->closed ||
	    cpt->told)
		return;
	cpt->told = true;
	lnet_ni_stopped(ini->ni, 0);
}

void ib_cpt_settle(struct ib_cpt *cpt)
{
	if (cpt->attached && is_to_let_go(cpt) && !cpt->peers.home.conns &&
	    !cpt->under_way && list_empty(&cpt->hungry)) {
		ib_xfer_put_aside(cpt);
		let_go(cpt);
	}
	if (!cpt->stopped || cpt->feeding || cpt->attached || cpt->told)
		return;
	if (cpt->index == 0) {
		try_end(cpt->ini);
		return;
	}
	cpt->told = true;
	lnet_ni_stopped(cpt->ini->ni, cpt->index);
}

static void cpt_down(struct ib_cpt *cpt)
{
	if (!cpt->peers.down)
		ib_peers_down(&cpt->peers, -ENETDOWN);
	ib_xfer_starve(cpt, -ENETDOWN);
	ib_cpt_settle(cpt);
}

void ib_cpt_stop(struct ib_cpt *cpt)
{
	cpt->stopping = true;
	ib_xfer_starve(cpt, -ESHUTDOWN);
	ib_peers_stop(&cpt->peers);
}

/* ---- news, from CPT 0 to all ---- */

static void hear_news(struct ib_cpt *cpt)
{
	struct ib_ni *ini = cpt->ini;
	int fault = atomic_load(&ini->fault);

	if (cpt->stopping) {
		/* What is not wanted any more is let go of at once. */
		if (atomic_exchange(&cpt->given, false))
			loop_post(ini->ni->loops[0], &cpt->let_go);
		return;
	}
	if (atomic_load(&cpt->given))
		port_attach(cpt);
	else if (!fault && cpt->attached)
		ib_peers_up(&cpt->peers);
	if (fault)
		cpt_down(cpt);
}

void ib_cpt_start(struct ib_cpt *cpt)
{
	/* The port may have changed by now, and this CPT have heard. */
	hear_news(cpt);
}

static void port_on_news(struct work *w)
{
	struct ib_cpt *cpt = container_of(w, struct ib_cpt, news);
	struct passage *passage = &cpt->ini->passage;

	atomic_store(&cpt->news_posted, false);
	hear_news(cpt);
	passage_arrived(passage);
}

static void spread_news(struct ib_ni *ini)
{
	for (unsigned int i = 0; i < ini->ni->cpts; i++) {
		struct ib_cpt *cpt = &ini->cpts[i];

		if (!atomic_exchange(&cpt->news_posted, true))
			passage_send(&ini->passage, ini->ni->loops[i],
				     &cpt->news);
	}
}

/* Everybody may use it, from the news on. */
static void port_give(struct ib_ni *ini)
{
	ini->holders = ini->ni->cpts;
	for (unsigned int i = 0; i < ini->ni->cpts; i++)
		atomic_store(&ini->cpts[i].given, true);
}

/* ---- the port: CPT 0 ---- */

static void on_port_changed(struct ib_port *port, bool up, bool removed,
			    const char *why)
{
	struct ib_ni *ini = port->user;

	if (ini->cpts[0].stopping || atomic_load(&ini->going))
		return;
	atomic_store(&ini->fault, up ? 0 : -ENETDOWN);
	if (removed)
		atomic_store(&ini->going, true);
	lnet_ni_set_up(ini->ni, up, up ? NULL : why);
	spread_news(ini);
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

/* Who may not connect from privileged ports does so from others, which some
 * nodes refuse. */
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
	log_info("o2ib", "connects from unprivileged ports: nodes with "
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
		log_warn("o2ib", "%s: %s%s%s", nid, why ? why : "",
			 why ? ": " : "", strerror(-rc));
		return rc;
	}
	port_give(ini);
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
	atomic_store(&ini->going, false);
	atomic_store(&ini->fault, 0);
	port_give(ini);
	lnet_ni_set_up(ini->ni, true, NULL);
	spread_news(ini);
}

static void on_let_go(struct work *w)
{
	struct ib_cpt *cpt = container_of(w, struct ib_cpt, let_go);
	struct ib_ni *ini = cpt->ini;

	BUG_ON(!ini->holders);
	if (--ini->holders)
		return;
	ini->verbs->close(ini->port);
	ini->port = NULL;
	if (ini->cpts[0].stopping)
		try_end(ini);
	else
		reopen_later(ini);
}

static void port_on_closed(struct work *w)
{
	struct ib_ni *ini = container_of(w, struct ib_ni, passage.closed);

	ini->closed = true;
	try_end(ini);
}

void ib_port_stop(struct ib_ni *ini)
{
	loop_timer_cancel(ini->ni->loops[0], &ini->reopen);
	if (ini->port)
		ini->verbs->deafen(ini->port);
	passage_close(&ini->passage);
}

void ib_port_init(struct ib_ni *ini)
{
	atomic_init(&ini->fault, 0);
	atomic_init(&ini->going, false);
	timer_init(&ini->reopen, on_reopen);
	passage_init(&ini->passage, ini->ni->loops[0], port_on_closed);
	for (unsigned int i = 0; i < ini->ni->cpts; i++) {
		struct ib_cpt *cpt = &ini->cpts[i];

		cpt->news.fn = port_on_news;
		cpt->let_go.fn = on_let_go;
		atomic_init(&cpt->news_posted, false);
		atomic_init(&cpt->given, false);
	}
}
