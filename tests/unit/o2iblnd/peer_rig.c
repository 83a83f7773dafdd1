/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/o2iblnd/peer_rig.h"

#include "base/buf.h"
#include "base/env.h"
#include "lnd/o2iblnd/peer.h"

#define NET   LNET_NET(LNET_TYPE_O2IB, 0)
#define ID_AT 40 /* offset of the message's number in its LNet header */

static struct peer_node *node_of(const struct ib_peers *ps)
{
	return ps->priv;
}

static unsigned int index_of(const struct peer_rig *r,
			     const struct ulnet_nid *nid)
{
	unsigned int i = 0;

	while (i < PEER_NODES && !lnet_nid_eq(&r->nodes[i].ni.nid, nid))
		i++;
	return i;
}

/* ---- messages ---- */

static void msg_end(struct peer_rig *r, struct peer_msg *m, int status,
		    enum ulnet_cause cause)
{
	cr_assert_neq(m->state, MSG_ENDED, "seed %ju: twice",
		      (uintmax_t)r->seed);
	cr_assert(!status || !lnd_judge(status, cause).not_delivered ||
			  !m->arrived,
		  "seed %ju: %d, cause %d, and it has arrived",
		  (uintmax_t)r->seed, status, cause);
	m->state = MSG_ENDED;
	m->status = status;
	m->cause = cause;
}

static void msg_send(struct peer_rig *r, struct peer_msg *m, bool connected)
{
	struct peer_node *n = &r->nodes[m->from];
	struct ulnet_nid nid = peer_rig_nid(r, m->to);
	int rc = ib_peers_get(&n->ps, &nid, true, &m->conn);
	struct ib_tx *tx;
	uint8_t *hdr;

	if (rc == -EINPROGRESS) {
		cr_assert(!connected,
			  "there is a connection, and there is not");
		m->state = MSG_WAITS;
		return;
	}
	tx = rc ? NULL : ib_tx_get(m->conn);
	if (!tx) {
		msg_end(r, m, rc ? rc : -ENOMEM, LNET_CAUSE_LOCAL_DROPPED);
		return;
	}
	tx->user = m;
	hdr = ib_tx_header(tx);
	memset(hdr, 0, LNET_HDR_SIZE);
	store_le32(hdr + 24, 1);
	store_le32(hdr + ID_AT, (uint32_t)(m - r->msgs));
	m->state = MSG_SENT;
	ib_send_immediate(tx, 0);
}

struct peer_msg *peer_rig_send(struct peer_rig *r, unsigned int from,
			       unsigned int to)
{
	struct peer_msg *m = &r->msgs[r->nmsgs++];

	cr_assert_leq(r->nmsgs, PEER_MSGS);
	m->from = from;
	m->to = to;
	msg_send(r, m, false);
	return m;
}

/* ---- what is told ---- */

static void on_success(struct ib_peers *ps, const struct ulnet_nid *nid)
{
	struct peer_node *n = node_of(ps);
	struct peer_rig *r = n->rig;
	unsigned int to = index_of(r, nid);
	bool first = true;

	cr_assert(!n->stopping);
	n->told[to].connected++;
	for (unsigned int i = 0; i < r->nmsgs; i++) {
		struct peer_msg *m = &r->msgs[i];

		if (&r->nodes[m->from] == n && m->to == to &&
		    m->state == MSG_WAITS) {
			/* the first one may be the last that the connection can
			 * take */
			msg_send(r, m, first);
			first = false;
		}
	}
}

static bool on_owns(const struct ib_peers *ps, const struct ulnet_nid *nid)
{
	struct peer_node *n = node_of(ps);

	(void)nid;
	if (!n->astray)
		return true;
	n->astray--;
	return false;
}

static void on_failed(struct ib_peers *ps, const struct ulnet_nid *nid,
		      int status, enum ulnet_cause cause)
{
	struct peer_node *n = node_of(ps);
	struct peer_rig *r = n->rig;
	unsigned int to = index_of(r, nid);

	cr_assert(!n->stopping);
	cr_assert(lnd_judge(status, cause).not_delivered);
	n->told[to].failed++;
	n->told[to].failed_at = env_sim_now(r->world);
	n->told[to].status = status;
	n->told[to].cause = cause;
	for (unsigned int i = 0; i < r->nmsgs; i++) {
		struct peer_msg *m = &r->msgs[i];

		if (&r->nodes[m->from] == n && m->to == to &&
		    m->state == MSG_WAITS)
			msg_end(r, m, status, cause);
	}
}

static void on_connected(struct ib_peers *ps, const struct ulnet_nid *nid,
			 int status, enum ulnet_cause cause)
{
	if (status)
		on_failed(ps, nid, status, cause);
	else
		on_success(ps, nid);
}

static void on_disconnected(struct ib_peers *ps, const struct ulnet_nid *nid)
{
	struct peer_node *n = node_of(ps);

	cr_assert(!n->stopping);
	/* all its transmits are done */
	cr_assert_eq(ib_peer_find(ps, nid)->n[IB_LINK_LOST], 0);
	n->told[index_of(n->rig, nid)].disconnected++;
}

static void on_silent(struct ib_peers *ps, const struct ulnet_nid *nid,
		      uint64_t ns)
{
	struct peer_node *n = node_of(ps);
	struct told *t = &n->told[index_of(n->rig, nid)];

	t->silent++;
	t->silent_ns = ns;
}

static void on_closed(struct ib_conn *conn)
{
	cr_assert_eq(conn->fsm.state, IB_CONN_DRAINING);
	cr_assert(conn->established);
}

static void on_arrived(struct ib_conn *conn, struct ib_rx *rx)
{
	struct peer_node *n = node_of(ib_peers_of(conn));
	struct peer_rig *r = n->rig;
	struct peer_msg *m = &r->msgs[load_le32(rx->msg.lnet_hdr + ID_AT)];

	cr_assert_eq(&r->nodes[m->to], n);
	cr_assert_eq(++m->arrived, 1);
	cr_assert(m->state != MSG_WAITS);
	ib_rx_end(rx, 0);
}

static void on_done(struct ib_tx *tx)
{
	struct peer_node *n = node_of(ib_peers_of(tx->conn));

	msg_end(n->rig, tx->user, tx->status, tx->cause);
}

static void on_stopped(struct ib_peers *ps)
{
	cr_assert(node_of(ps)->stopping);
	cr_assert(!node_of(ps)->stopped);
	cr_assert_eq(ps->set.conns, 0);
	node_of(ps)->stopped = true;
}

static void on_emptied(struct ib_peers *ps)
{
	cr_assert(ps->down);
	cr_assert_eq(ps->set.conns, 0);
}

static const struct ib_peers_user peers_user = {
	.owns = on_owns,
	.connected = on_connected,
	.disconnected = on_disconnected,
	.silent = on_silent,
	.closed = on_closed,
	.arrived = on_arrived,
	.done = on_done,
	.emptied = on_emptied,
	.stopped = on_stopped,
};

/* ---- the backend's events ---- */

static unsigned int on_request_cpt(struct ib_port *port, const void *private,
				   size_t length)
{
	(void)port;
	(void)private;
	(void)length;
	return 0;
}

static void on_request(struct ib_port *port, struct ib_qp *qp,
		       const struct ib_source *from, const void *private,
		       size_t length)
{
	struct peer_node *n = port->user;
	uint8_t bytes[IB_REJECT_SIZE];
	const char *why;

	if (n->requests < ARRAY_SIZE(n->request_at))
		n->request_at[n->requests] = env_sim_now(n->rig->world);
	n->requests++;
	cr_assert_eq(ib_msg_decode(private, length, &n->asked, &why), 0);
	n->asked_env = ib_msg_env(&n->asked);
	if (n->mute) {
		cr_assert_lt(n->nunanswered, ARRAY_SIZE(n->unanswered));
		n->unanswered[n->nunanswered++] = qp;
		return;
	}
	if (!n->force) {
		ib_peers_on_request(&n->ps, qp, from, private, length);
		return;
	}
	n->force--;
	port->verbs->reject(qp, bytes, ib_reject_encode(&n->with, bytes));
	port->verbs->destroy(qp);
}

static void on_port_changed(struct ib_port *port, bool up, bool removed,
			    const char *why)
{
	struct peer_node *n = port->user;

	(void)why;
	if (up)
		ib_peers_up(&n->ps);
	else
		ib_peers_down(&n->ps, removed ? -ENODEV : -ENETDOWN);
}

/* the sender of an unanswered request gives up */
static void on_failed_qp(struct ib_qp *qp, int status)
{
	if (qp->user)
		ib_conn_on_failed(qp, status);
}

static void on_disconnected_qp(struct ib_qp *qp)
{
	if (qp->user)
		ib_conn_on_disconnected(qp);
}

static const struct ib_events events = {
	.request_cpt = on_request_cpt,
	.request = on_request,
	.resolved = ib_conn_on_resolved,
	.established = ib_conn_on_established,
	.rejected = ib_conn_on_rejected,
	.failed = on_failed_qp,
	.disconnected = on_disconnected_qp,
	.received = ib_conn_on_received,
	.sent = ib_conn_on_sent,
	.port_changed = on_port_changed,
};

/* ---- nodes ---- */

struct ulnet_nid peer_rig_nid(const struct peer_rig *r, unsigned int node)
{
	return node < PEER_NODES ? r->nodes[node].ni.nid
				 : lnet_nid_make(NET, 0x0a0000ff);
}

static void node_init(struct peer_rig *r, unsigned int i)
{
	struct peer_node *n = &r->nodes[i];
	struct env *env;

	n->rig = r;
	n->stamp = 1000 * (i + 1);
	cr_assert_eq(env_sim_env(r->world, &env), 0);
	cr_assert_eq(loop_new(env, &n->loop), 0);
	n->ni.nid = lnet_nid_make(NET, 0x0a000001 + i);
	n->ni.cpts = 1;
	n->ni.loops = &n->loop;
	n->ni.fabric = r->fabric;
	n->conn_conf = (struct ib_conn_conf){
		.peer_credits = 8,
		.peer_credits_hiw = 4,
		.concurrent_sends = 8,
		.send_sge = 4,
		.max_inline = 64,
	};
	n->conf = (struct ib_peers_conf){
		.terms = { .depth = 8, .frags = 257 },
		.frags = 256,
		.conns_per_peer = 1,
		.min_pause = 100 * MSEC,
		.max_pause = 5 * SEC,
		.accept_max = 64,
		.accept_peer_max = 16,
	};
}

struct peer_rig *peer_rig_new(uint64_t seed)
{
	struct peer_rig *r = calloc(1, sizeof(*r));
	/* a queue pair may need a while to drain */
	struct simqp_conf conf = { .cq_ns = seed % 2 ? 0 : MSEC };

	cr_assert_not_null(r);
	r->seed = seed;
	log_setup(LOG_ERR, NULL, NULL);
	cr_assert_eq(env_sim_new(seed, &r->world), 0);
	cr_assert_eq(simqp_fabric_new(r->world, &conf, &r->fabric), 0);
	for (unsigned int i = 0; i < PEER_NODES; i++)
		node_init(r, i);
	return r;
}

struct peer_rig *peer_rig_new_up(uint64_t latency)
{
	struct peer_rig *r = peer_rig_new(1);
	struct simqp_link link = { .latency = latency };
	struct ulnet_nid any = LNET_NID_ANY;

	simqp_link_set(r->fabric, &any, &any, &link);
	for (unsigned int i = 0; i < PEER_NODES; i++)
		peer_rig_up(r, i);
	return r;
}

void peer_rig_up(struct peer_rig *r, unsigned int node)
{
	static const struct ib_port_conf conf = {
		.service = 987,
		.listen = true,
		.tos = -1,
		.retry_count = 5,
		.rnr_retry_count = 6,
		.resolve_ms = 5000,
	};
	struct peer_node *n = &r->nodes[node];
	const char *why = NULL;

	n->stamp++;
	cr_assert_null(n->port);
	cr_assert_eq(
		simqp_verbs()->open(&n->ni, &conf, &events, n, &n->port, &why),
		0, "%s", why);
	ib_tx_pool_init(&n->pool, n->port, 1000);
	n->set = (struct ib_conn_set){
		.loop = n->loop,
		.port = n->port,
		.self = { n->ni.nid, n->stamp },
		.conf = &n->conn_conf,
		.pool = &n->pool,
		.timeout = 20 * SEC,
	};
	n->conf.terms.self = n->set.self;
	n->conn_conf.peer_credits = n->conf.terms.depth;
	n->conn_conf.peer_credits_hiw = MAX(n->conf.terms.depth / 2u, 1u);
	n->stopping = n->stopped = false;
	ib_peers_init(&n->ps, &n->set, &n->conf, &peers_user, n);
}

void peer_rig_down(struct peer_rig *r, unsigned int node, bool silently)
{
	struct peer_node *n = &r->nodes[node];
	struct ulnet_nid any = LNET_NID_ANY, nid = n->ni.nid;
	struct simqp_usage usage;

	if (silently) {
		simqp_silence(r->fabric, &nid, &any, TIME_NEVER);
		simqp_silence(r->fabric, &any, &nid, TIME_NEVER);
	}
	/* LNet has ended the messages that wait */
	for (unsigned int i = 0; i < r->nmsgs; i++)
		if (r->msgs[i].from == node && r->msgs[i].state == MSG_WAITS)
			msg_end(r, &r->msgs[i], -ESHUTDOWN,
				LNET_CAUSE_LOCAL_ABORTED);
	while (n->nunanswered)
		n->port->verbs->destroy(n->unanswered[--n->nunanswered]);
	n->stopping = true;
	ib_peers_stop(&n->ps);
	for (unsigned int i = 0; i < 100 && !n->stopped; i++)
		peer_rig_run(r, 10 * MSEC);
	cr_assert(n->stopped, "seed %ju: it does not stop", (uintmax_t)r->seed);
	ib_peers_fini(&n->ps);
	cr_assert_eq(n->pool.used, 0);
	ib_tx_pool_fini(&n->pool);
	simqp_usage(r->fabric, &nid, &usage);
	cr_assert_eq(usage.qps, 0, "seed %ju: %u queue pairs",
		     (uintmax_t)r->seed, usage.qps);
	cr_assert_eq(usage.mrs, 0);
	n->port->verbs->close(n->port);
	n->port = NULL;
	if (silently) {
		simqp_silence(r->fabric, &nid, &any, 0);
		simqp_silence(r->fabric, &any, &nid, 0);
	}
}

void peer_rig_free(struct peer_rig *r)
{
	for (unsigned int i = 0; i < PEER_NODES; i++)
		if (r->nodes[i].port)
			peer_rig_down(r, i, false);
	for (unsigned int i = 0; i < r->nmsgs; i++)
		cr_assert_eq(r->msgs[i].state, MSG_ENDED,
			     "seed %ju: message %u has no end",
			     (uintmax_t)r->seed, i);
	simqp_fabric_free(r->fabric);
	for (unsigned int i = 0; i < PEER_NODES; i++)
		loop_free(r->nodes[i].loop);
	env_sim_free(r->world);
	free(r);
}

/* Holds at any time. */
static void check_peers(struct peer_node *n)
{
	struct hash_node *h;
	uint32_t bucket = 0;
	unsigned int links = 0, accepted = 0;

	for (h = hash_walk(&n->ps.hash, &bucket, NULL); h;
	     h = hash_walk(&n->ps.hash, &bucket, h)) {
		struct ib_peer *p = container_of(h, struct ib_peer, hash);
		struct ib_link *l;

		list_for_each_entry (l, &p->links, link) {
			links++;
			accepted += l->passive;
			cr_assert_eq(l->conn->user, l);
		}
		cr_assert_leq(p->accepted, n->conf.accept_peer_max);
		/* the queue pair of the attempt before is gone */
		cr_assert(!p->connect.retries || n->conf.conns_per_peer > 1 ||
			  p->connect.fsm.state != CONNECT_CONNECTING ||
			  !p->refused);
		/* something must be able to end the wait */
		cr_assert(!p->connect.wanted || p->settling ||
				  timer_armed(&p->connect.timer),
			  "seed %ju: waits for nothing, %s",
			  (uintmax_t)n->rig->seed,
			  fsm_name(&p->connect.fsm, connect_states));
	}
	cr_assert_eq(links, n->ps.set.conns);
	cr_assert_eq(accepted, n->ps.accepted);
	cr_assert_leq(accepted, n->conf.accept_max);
}

void peer_rig_run(struct peer_rig *r, uint64_t ns)
{
	uint64_t until = env_sim_now(r->world) + ns;

	while (env_sim_step(r->world, until))
		for (unsigned int i = 0; i < PEER_NODES; i++)
			if (r->nodes[i].port && !r->nodes[i].stopped)
				check_peers(&r->nodes[i]);
}

struct ib_peer *peer_rig_peer(struct peer_rig *r, unsigned int from,
			      unsigned int to)
{
	struct ulnet_nid nid = peer_rig_nid(r, to);

	return ib_peer_find(&r->nodes[from].ps, &nid);
}

unsigned int peer_rig_conns(struct peer_rig *r, unsigned int from,
			    unsigned int to)
{
	struct ib_peer *p = peer_rig_peer(r, from, to);

	return p ? p->n[IB_LINK_OPEN] : 0;
}

struct ib_conn *peer_rig_conn(struct peer_rig *r, unsigned int from,
			      unsigned int to)
{
	struct ib_peer *p = peer_rig_peer(r, from, to);

	cr_assert(p && p->n[IB_LINK_OPEN]);
	return list_first(&p->open, struct ib_link, open)->conn;
}

struct ib_reject *peer_rig_force(struct peer_rig *r, unsigned int node,
				 unsigned int n, unsigned int reason)
{
	struct peer_node *b = &r->nodes[node];

	b->force = n;
	b->with = (struct ib_reject){
		.version = IB_VERSION_2,
		.reason = (uint8_t)reason,
		.full = true,
		.stamp = b->stamp,
		.params = { b->conf.terms.depth, b->conf.terms.frags,
			    IB_MSG_SIZE_MAX },
	};
	return &b->with;
}
