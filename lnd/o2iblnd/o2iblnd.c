/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/o2iblnd.h"

#include <errno.h>

#include "lnd/netif.h"
#include "lnd/o2iblnd/xfer.h"
#include "ulnet/o2ib.h"

/* Bytes of the longest message that is posted inline: a PUT_REQ. */
#define INLINE_BYTES IB_PUT_REQ_SIZE

static struct ib_cpt *cpt_of(const struct lnd_ni *ni, unsigned int cpt)
{
	return &ib_ni_of(ni)->cpts[cpt];
}

/* ---- events of peers and connections ---- */

static struct ulnet_id all_of(const struct ulnet_nid *nid)
{
	return (struct ulnet_id){ *nid, LNET_PID_ANY };
}

static bool on_owns(const struct ib_peers *ps, const struct ulnet_nid *nid)
{
	const struct ib_cpt *cpt = ib_cpt_of(ps);

	return lnet_ni_cpt_of(cpt->ini->ni, nid) == cpt->index;
}

static void o2iblnd_on_connected(struct ib_peers *ps,
				 const struct ulnet_nid *nid, int status,
				 enum ulnet_cause cause)
{
	struct ulnet_id id = all_of(nid);

	lnet_peer_connected(ib_cpt_of(ps)->ini->ni, &id,
			    status == -ENODEV ? -ENETDOWN : status, cause);
}

static void o2iblnd_on_disconnected(struct ib_peers *ps,
				    const struct ulnet_nid *nid)
{
	struct ulnet_id id = all_of(nid);

	lnet_peer_disconnected(ib_cpt_of(ps)->ini->ni, &id);
}

static void o2iblnd_on_silent(struct ib_peers *ps, const struct ulnet_nid *nid,
			      uint64_t ns)
{
	struct ulnet_id id = all_of(nid);

	lnet_peer_silent(ib_cpt_of(ps)->ini->ni, &id, ns);
}

static void on_emptied(struct ib_peers *ps)
{
	ib_cpt_settle(ib_cpt_of(ps));
}

static void o2iblnd_on_stopped(struct ib_peers *ps)
{
	struct ib_cpt *cpt = ib_cpt_of(ps);

	cpt->stopped = true;
	ib_cpt_settle(cpt);
}

static const struct ib_peers_user peers_user = {
	.owns = on_owns,
	.connected = o2iblnd_on_connected,
	.disconnected = o2iblnd_on_disconnected,
	.silent = o2iblnd_on_silent,
	.stalled = ib_xfer_stalled,
	.closed = ib_xfer_closed,
	.arrived = ib_xfer_arrived,
	.done = ib_xfer_done,
	.emptied = on_emptied,
	.stopped = o2iblnd_on_stopped,
};

/* ---- tunables ---- */

static void log_notes(const struct lnd_ni *ni,
		      const struct ulnet_o2ib_notes *notes)
{
	char nid[LNET_NIDSTR_SIZE];

	lnet_nid_format(&ni->nid, nid, sizeof(nid));
	for (unsigned int i = 0; i < notes->n; i++) {
		const struct ulnet_o2ib_note *n = &notes->note[i];

		if (n->kind == LNET_O2IB_ERROR)
			log_warn("o2iblnd", "%s: %s: %s", nid, n->name,
				 n->rule->text);
		else if (n->kind == LNET_O2IB_CHANGED)
			log_info("o2iblnd", "%s: %s: %lld instead of %lld: %s",
				 nid, n->name, (long long)n->value,
				 (long long)n->before, n->rule->text);
	}
}

/* Returns the text of the first error in @notes, or NULL. */
static const char *error_text(const struct ulnet_o2ib_notes *notes)
{
	for (unsigned int i = 0; i < notes->n; i++)
		if (notes->note[i].kind == LNET_O2IB_ERROR)
			return notes->note[i].rule->text;
	return NULL;
}

/* Adjusts the tunables as lnet_o2ib_adjust(), and o2ibcalc(1), say. */
static int adjust(struct lnd_ni *ni, struct ulnet_o2ib_node *node)
{
	int64_t *t = ni->tunables;
	struct ulnet_o2ib_notes notes = { 0 };
	struct ulnet_o2ib_conf conf;
	int rc;

	lnet_o2ib_conf_init(&conf);
	conf.model = LNET_O2IB_USER;
	conf.registration = LNET_O2IB_REG_USER;
	conf.peer_credits = ni->peer_credits;
	conf.credits = ni->credits;
	conf.peer_credits_hiw = (uint32_t)t[IB_TUNE_peercredits_hiw];
	conf.concurrent_sends = (uint32_t)t[IB_TUNE_concurrent_sends];
	conf.map_on_demand = (int32_t)t[IB_TUNE_map_on_demand];
	conf.ntx = (uint32_t)t[IB_TUNE_ntx];
	conf.fmr_pool_size = (uint32_t)t[IB_TUNE_fmr_pool_size];
	conf.fmr_flush_trigger = (uint32_t)t[IB_TUNE_fmr_flush_trigger];
	conf.ncpts = ni->cpts;
	conf.conns_per_peer = (uint32_t)t[IB_TUNE_conns_per_peer];
	conf.wrq_sge = (uint32_t)t[IB_TUNE_wrq_sge];
	rc = lnet_o2ib_adjust(&conf, node, &notes);
	log_notes(ni, &notes);
	if (rc) {
		ni->why = error_text(&notes);
		return rc;
	}
	t[IB_TUNE_peercredits_hiw] = node->conf.peer_credits_hiw;
	t[IB_TUNE_concurrent_sends] = node->conf.concurrent_sends;
	return 0;
}

static uint64_t ms(int64_t tunable)
{
	return (uint64_t)tunable * NSEC_PER_MSEC;
}

static void set_conn_conf(struct ib_ni *ini, const struct ulnet_o2ib_node *node)
{
	const int64_t *t = ini->ni->tunables;

	ini->conn_conf = (struct ib_conn_conf){
		.peer_credits = node->depth_max,
		.peer_credits_hiw = node->conf.peer_credits_hiw,
		.concurrent_sends = node->conf.concurrent_sends,
		.send_sge = (unsigned int)t[IB_TUNE_wrq_sge],
		.max_inline = INLINE_BYTES,
		.keepalive = (uint64_t)t[IB_TUNE_keepalive] * NSEC_PER_SEC,
		.silence = { ms(t[IB_TUNE_path_silent_min]),
			     ms(t[IB_TUNE_path_silent_max]) },
		.cksum = t[IB_TUNE_cksum],
	};
}

static void set_peers_conf(struct ib_ni *ini,
			   const struct ulnet_o2ib_node *node)
{
	const int64_t *t = ini->ni->tunables;

	ini->peers_conf = (struct ib_peers_conf){
		.terms = {
			.self = { ini->ni->nid, ini->ni->incarnation },
			.depth = (uint16_t)node->depth_max,
			.frags = (uint16_t)node->frags_accepted,
			.privileged = t[IB_TUNE_require_privileged_port],
		},
		.frags = (uint16_t)node->frags_offered,
		.conns_per_peer = (unsigned int)t[IB_TUNE_conns_per_peer],
		.min_pause = ms(t[IB_TUNE_min_reconnectms]),
		.max_pause = ms(t[IB_TUNE_max_reconnectms]),
		.race = IB_RACE_HASH,
		.accept_max = (unsigned int)t[IB_TUNE_accept_max],
		.accept_peer_max = (unsigned int)t[IB_TUNE_accept_peer_max],
	};
}

static void set_port_conf(struct ib_ni *ini)
{
	const int64_t *t = ini->ni->tunables;

	ini->port_conf = (struct ib_port_conf){
		.service = (uint16_t)t[IB_TUNE_service],
		.listen = ini->ni->conf->accept != LNET_ACCEPT_NONE,
		.privileged = t[IB_TUNE_use_privileged_port],
		.tos = (int)t[IB_TUNE_tos],
		.retry_count = (uint8_t)t[IB_TUNE_retry_count],
		.rnr_retry_count = (uint8_t)t[IB_TUNE_rnr_retry_count],
		.resolve_ms = 5000,
	};
}

/* ---- startup ---- */

/* Initializes a CPT's part of the NI, on that CPT's thread. */
static int o2iblnd_cpt_init(void *arg)
{
	struct ib_cpt *cpt = arg;
	struct ib_ni *ini = cpt->ini;
	struct ib_conn_set set = {
		.loop = ib_loop(cpt),
		.cpt = cpt->index,
		.self = ini->peers_conf.terms.self,
		.conf = &ini->conn_conf,
		.pool = &cpt->txs,
		.regcache = &cpt->regs,
		.timeout = ib_timeout(ini),
	};

	cpt->retry.fn = ib_xfer_retry;
	hash_init(&cpt->holders);
	cpt->seed = loop_random(set.loop);
	pool_init(&cpt->xfers, sizeof(struct ib_xfer), 0);
	list_init(&cpt->memory_waiters);
	list_init(&cpt->fetched);
	ib_peers_init(&cpt->peers, &set, &ini->peers_conf, &peers_user, cpt);
	/* The peers count as down until the CPT has the port. */
	ib_peers_down(&cpt->peers, -ENETDOWN);
	return 0;
}

static int cpt_start(void *arg)
{
	ib_cpt_start(arg);
	return 0;
}

/* Opens the port of the NI, on CPT 0's thread. */
static int ni_open(void *arg)
{
	return ib_port_open(arg);
}

static void ib_free(struct lnd_ni *ni)
{
	struct ib_ni *ini = ib_ni_of(ni);

	for (unsigned int i = 0; i < ni->cpts; i++) {
		ib_peers_fini(&ini->cpts[i].peers);
		hash_fini(&ini->cpts[i].holders);
		pool_fini(&ini->cpts[i].xfers);
	}
	free(ini->cpts);
	free(ini);
}

#ifndef WITH_VERBS
const struct ib_verbs *ib_verbs_rdma(void)
{
	return NULL;
}
#endif

static int o2iblnd_ni_start(struct ib_ni *ini)
{
	struct lnd_ni *ni = ini->ni;
	int rc;

	for (unsigned int i = 0; i < ni->cpts; i++) {
		ini->cpts[i].ini = ini;
		ini->cpts[i].index = i;
		BUG_ON(loop_call(ni->loops[i], o2iblnd_cpt_init,
				 &ini->cpts[i]));
	}
	ib_port_init(ini);
	rc = loop_call(ni->loops[0], ni_open, ini);
	for (unsigned int i = 0; i < ni->cpts && !rc; i++)
		BUG_ON(loop_call(ni->loops[i], cpt_start, &ini->cpts[i]));
	return rc;
}

static int ib_startup(struct lnd_ni *ni)
{
	const struct ib_fabric *fabric = ni->fabric;
	const struct ib_verbs *verbs = fabric ? fabric->verbs : ib_verbs_rdma();
	struct ulnet_o2ib_node node;
	struct ib_ni *ini;
	int rc;

	if (!verbs) {
		ni->why = "this library was built without rdma-core";
		log_warn("o2iblnd", "%s", ni->why);
		return -EPROTONOSUPPORT;
	}
	rc = adjust(ni, &node);
	if (rc)
		return rc;
	ini = calloc(1, sizeof(*ini));
	if (!ini)
		return -ENOMEM;
	ini->cpts = calloc(ni->cpts, sizeof(*ini->cpts));
	if (!ini->cpts) {
		free(ini);
		return -ENOMEM;
	}
	ini->ni = ni;
	ini->verbs = verbs;
	ni->priv = ini;
	set_conn_conf(ini, &node);
	set_peers_conf(ini, &node);
	set_port_conf(ini);
	rc = o2iblnd_ni_start(ini);
	if (rc)
		ib_free(ni);
	return rc;
}

static void ib_shutdown(struct lnd_ni *ni, unsigned int index)
{
	struct ib_ni *ini = ib_ni_of(ni);

	ib_cpt_stop(&ini->cpts[index]);
	if (index == 0)
		ib_port_stop(ini);
}

/* ---- state ---- */

static void ib_forget(struct lnd_ni *ni, unsigned int index, void *addr,
		      size_t length)
{
	struct ib_cpt *cpt = cpt_of(ni, index);

	if (cpt->attached)
		ib_regcache_forget(&cpt->regs, addr, length);
}

/* A transfer that waits for memory will need a connection on this CPT, even if
 * there is none now. */
static bool ib_is_connected(struct lnd_ni *ni, unsigned int index,
			    const struct ulnet_nid *nid)
{
	const struct ib_cpt *cpt = cpt_of(ni, index);

	return ib_peers_use(&cpt->peers, nid) ||
	       ib_memory_is_awaited(cpt, IB_USE_REQUESTS, nid);
}

static bool ib_terms(struct lnd_ni *ni, unsigned int cpt,
		     const struct ulnet_nid *nid, struct lnd_terms *terms)
{
	const struct ib_conn *conn =
		ib_peers_conn(&cpt_of(ni, cpt)->peers, nid);

	if (!conn)
		return false;
	terms->queue_depth = conn->terms.depth;
	terms->max_frags = conn->terms.frags;
	return true;
}

static bool ib_is_connecting(struct lnd_ni *ni, const struct ulnet_nid *nid)
{
	return ib_peers_are_connecting(
		&cpt_of(ni, lnet_ni_cpt_of(ni, nid))->peers, nid);
}

static uint64_t ib_paused_until(struct lnd_ni *ni, unsigned int index,
				const struct ulnet_id *id)
{
	return ib_peers_paused_until(&cpt_of(ni, index)->peers, &id->nid);
}

static const struct lnd_tunable ib_tunables[IB_TUNABLES] = {
#define TUNABLE(name, ...) [IB_TUNE_##name] = LND_TUNABLE(name, __VA_ARGS__),
#include "lnd/o2iblnd/tunable.def"
#undef TUNABLE
};

const struct lnd o2iblnd = {
	.name = "o2ib",
	.type = LNET_TYPE_O2IB,
	.tunables = ib_tunables,
	.ntunables = IB_TUNABLES,
	.resolve = netif_resolve,
	.source = netif_source,
	.startup = ib_startup,
	.shutdown = ib_shutdown,
	.free = ib_free,
	.send = ib_xfer_send,
	.recv = ib_xfer_recv,
	.eager_recv = ib_xfer_eager_recv,
	.answer = ib_xfer_answer,
	.cancel = ib_xfer_cancel,
	.forget = ib_forget,
	.has_begun = ib_xfer_has_begun,
	.is_connected = ib_is_connected,
	.paused_until = ib_paused_until,
	.terms = ib_terms,
	.is_connecting = ib_is_connecting,
};
