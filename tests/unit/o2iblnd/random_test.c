/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random runs by seed: nodes exchange messages over the simulated backend with
 * all its faults. Each message ends once; those reported as delivered were,
 * unchanged, and those reported as not delivered were not; no byte is written
 * after it was given back; credits add up; nothing is left over.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/buf.h"
#include "base/env.h"
#include "lnd/o2iblnd/conn.h"
#include "lnd/o2iblnd/simqp/simqp.h"
#include "tests/slice.h"

#define NODES	 3
#define CONNS	 24
#define OPS	 260
#define ARENA	 (8u << 20)
#define PIECES	 40
#define LENGTH	 9000
#define FREE	 0xee /* the value of bytes that nobody may write */
#define MSEC	 NSEC_PER_MSEC
#define ID_AT	 40 /* offset of the message's number in its LNet header */
#define NID(i)	 (UINT64_C(0x000500000a000001) + (i))
#define STAMP(i) (UINT64_C(1000) + (i))

enum { CLEAN, SLOW, FAULTS, HARM, CLASSES };

struct world;

struct node {
	struct world *w;
	struct loop *loop;
	struct lnd_ni ni;
	struct ib_port *port; /* NULL: closed */
	struct ib_conn_set set;
	struct ib_conn_conf conf;
	struct ib_tx_pool pool;
	uint8_t *arena;
	uint32_t arena_used;
	struct ib_mr *mr;
	unsigned int conns; /* connections that are not gone */
	bool removed;
};

struct rec {
	struct node *node;
	struct ib_conn *conn; /* NULL: gone */
	unsigned int peer;
	bool open, ended;
};

struct piece_list {
	struct ib_sge sge[PIECES];
	struct ib_frag frags[PIECES];
	unsigned int n;
	uint32_t length;
};

/* A message, seen from both sides. */
struct op {
	enum ib_msg_type type; /* IMMEDIATE, PUT_REQ, GET_REQ */
	struct node *from, *to;
	uint32_t length;
	struct piece_list mem; /* source, or sink */
	struct ib_tx *tx;
	unsigned int ends;
	int status;
	enum ulnet_cause cause;
	bool given_up;

	struct ib_rx *rx; /* to be answered by the test */
	unsigned int arrived, answers_ended;
	struct piece_list mem2;
	struct ib_tx *tx2;
	bool given_up2;
	bool refused;
};

struct world {
	uint64_t seed;
	unsigned int class;
	struct rng rng;
	struct env_sim *sim;
	struct simqp_fabric *fabric;
	struct node nodes[NODES];
	struct rec recs[CONNS];
	unsigned int nrecs;
	struct op ops[OPS];
	unsigned int nops;
	bool quiet; /* no new messages are sent */
};

#define SEED(w) (uintmax_t)(w)->seed

static uint64_t below(struct world *w, uint64_t n)
{
	return rng_below(&w->rng, n);
}

static bool one_in(struct world *w, uint64_t n)
{
	return !rng_below(&w->rng, n);
}

/* ---- memory ---- */

static uint8_t byte_of(const struct op *op, const struct world *w, uint32_t i)
{
	return (uint8_t)((uint64_t)((op - w->ops) * 37 + i * 11 + (i >> 8)) %
				 199 +
			 1);
}

/* Divides memory of @length bytes into at most @max parts with gaps. */
static void mem_get(struct node *n, struct piece_list *m, uint32_t length,
		    unsigned int max)
{
	struct world *w = n->w;
	uint32_t left = length;

	m->n = 0;
	m->length = length;
	while (left || !m->n) {
		uint32_t piece =
			m->n + 1 == max ? left : (uint32_t)below(w, left + 1);
		uint8_t *at = n->arena + n->arena_used;

		cr_assert_leq(n->arena_used + piece + 16, ARENA);
		m->sge[m->n] = (struct ib_sge){ at, piece, n->mr->lkey };
		m->frags[m->n].addr = (uintptr_t)at;
		m->frags[m->n++].nob = piece;
		memset(at, 0, piece);
		n->arena_used += piece + (uint32_t)below(w, 16);
		left -= piece;
	}
}

static void mem_put(struct piece_list *m)
{
	for (unsigned int i = 0; i < m->n; i++)
		memset(m->sge[i].addr, FREE, m->sge[i].length);
}

static void mem_fill(struct world *w, const struct op *op, struct piece_list *m)
{
	uint32_t done = 0;

	for (unsigned int i = 0; i < m->n; i++)
		for (uint32_t k = 0; k < m->sge[i].length; k++)
			((uint8_t *)m->sge[i].addr)[k] = byte_of(op, w, done++);
}

static void mem_check(struct world *w, const struct op *op,
		      const struct piece_list *m, uint32_t nob)
{
	uint32_t done = 0;

	cr_assert_leq(nob, m->length);
	for (unsigned int i = 0; i < m->n; i++)
		for (uint32_t k = 0; k < m->sge[i].length && done < nob; k++)
			cr_assert_eq(((uint8_t *)m->sge[i].addr)[k],
				     byte_of(op, w, done++),
				     "seed %ju: op %d: byte %u", SEED(w),
				     (int)(op - w->ops), done - 1);
}

static struct ib_sink sink_of(const struct node *n, const struct piece_list *m)
{
	return (struct ib_sink){ n->mr->rkey, m->n, m->frags };
}

/* ---- operations ---- */

static struct rec *pick_open(struct world *w)
{
	unsigned int first = (unsigned int)below(w, w->nrecs ? w->nrecs : 1);

	for (unsigned int i = 0; i < w->nrecs; i++) {
		struct rec *r = &w->recs[(first + i) % w->nrecs];

		/* Runs in a turn of the node. */
		if (r->open && r->conn && ib_conn_is_open(r->conn) &&
		    loop_is_owner(r->node->loop))
			return r;
	}
	return NULL;
}

static void header(const struct world *w, const struct op *op, uint8_t *hdr)
{
	memset(hdr, 0, LNET_HDR_SIZE);
	store_le32(hdr + 24, op->type == IB_MSG_GET_REQ ? 2 : 1);
	store_le32(hdr + 28, op->type == IB_MSG_GET_REQ ? 0 : op->length);
	store_le32(hdr + ID_AT, (uint32_t)(op - w->ops));
}

static void send_op(struct world *w)
{
	static const enum ib_msg_type types[] = { IB_MSG_IMMEDIATE,
						  IB_MSG_PUT_REQ,
						  IB_MSG_GET_REQ };
	struct rec *r = pick_open(w);
	struct ib_sink sink;
	struct op *op;
	struct ib_tx *tx;

	if (w->quiet || !r || w->nops == OPS)
		return;
	tx = ib_tx_get(r->conn);
	if (!tx)
		return;
	op = &w->ops[w->nops++];
	op->type = types[below(w, 3)];
	op->from = r->node;
	op->to = &w->nodes[r->peer];
	op->length = (uint32_t)below(w, LENGTH);
	op->tx = tx;
	tx->user = op;
	if (one_in(w, 4))
		tx->time /= 2;
	if (op->type == IB_MSG_IMMEDIATE)
		op->length %= IB_IMMEDIATE_MAX + 1;
	else
		mem_get(op->from, &op->mem, op->length,
			1 + (unsigned int)below(w, PIECES));
	header(w, op, ib_tx_header(tx));
	switch (op->type) {
	case IB_MSG_IMMEDIATE:
		for (uint32_t i = 0; i < op->length; i++)
			ib_tx_payload(tx)[i] = byte_of(op, w, i);
		ib_send_immediate(tx, op->length);
		break;
	case IB_MSG_PUT_REQ:
		mem_fill(w, op, &op->mem);
		ib_send_put(tx, op->mem.sge, op->length);
		break;
	default:
		sink = sink_of(op->from, &op->mem);
		cr_assert_eq(ib_send_get(tx, &sink), 0);
	}
}

static void accept_put(struct world *w, struct op *op)
{
	struct ib_sink sink;
	int rc;

	mem_get(op->to, &op->mem2,
		one_in(w, 3) ? (uint32_t)below(w, op->length + 1) : op->length,
		1 + (unsigned int)below(w, PIECES));
	sink = sink_of(op->to, &op->mem2);
	rc = ib_rx_accept(op->rx, &sink, op, &op->tx2);
	if (rc) {
		mem_put(&op->mem2);
		op->tx2 = NULL;
		op->refused = true;
		ib_rx_end(op->rx, rc);
	}
}

static void answer_get(struct world *w, struct op *op)
{
	uint32_t room = (uint32_t)ib_rdma_nob(&op->rx->msg.rdma);
	int rc;

	mem_get(op->to, &op->mem2,
		one_in(w, 3) ? (uint32_t)below(w, room + 1) : room,
		1 + (unsigned int)below(w, PIECES));
	mem_fill(w, op, &op->mem2);
	rc = ib_rx_answer(op->rx, op->mem2.sge, op->mem2.length, op, &op->tx2);
	if (rc) {
		mem_put(&op->mem2);
		op->tx2 = NULL;
		op->refused = true;
		ib_rx_end(op->rx, rc);
	}
}

static void answer(struct world *w, struct op *op)
{
	if (op->type == IB_MSG_IMMEDIATE || op->to->removed || one_in(w, 8)) {
		op->refused = true;
		ib_rx_end(op->rx, op->type == IB_MSG_GET_REQ ? -ENODATA : 0);
	} else if (op->type == IB_MSG_PUT_REQ) {
		accept_put(w, op);
	} else {
		answer_get(w, op);
	}
	op->rx = NULL;
}

static void answer_any(struct world *w)
{
	unsigned int first = (unsigned int)below(w, w->nops ? w->nops : 1);

	for (unsigned int i = 0; i < w->nops; i++) {
		struct op *op = &w->ops[(first + i) % w->nops];

		if (op->rx) {
			answer(w, op);
			return;
		}
	}
}

static void give_up_any(struct world *w)
{
	struct op *op = &w->ops[below(w, w->nops ? w->nops : 1)];
	bool stays = one_in(w, 2);

	if (op->tx && !op->given_up) {
		op->given_up = true;
		if (!ib_tx_abandon(op->tx, stays))
			op->tx = NULL;
		if (!stays)
			mem_put(&op->mem);
	} else if (op->tx2 && !op->given_up2) {
		op->given_up2 = true;
		ib_tx_abandon(op->tx2, stays);
		if (!stays)
			mem_put(&op->mem2);
	}
}

/* ---- what is told ---- */

static void on_established(struct ib_conn *conn)
{
	struct rec *r = conn->user;

	cr_assert(!r->open && !r->ended && r->conn == conn);
	r->open = true;
}

static void on_refused(struct ib_conn *conn, int status,
		       const struct ib_refusal *refusal)
{
	struct rec *r = conn->user;

	(void)refusal;
	cr_assert(!r->open && !r->ended);
	cr_assert(r->node->w->class >= FAULTS, "seed %ju: refused: %d",
		  SEED(r->node->w), status);
	r->ended = true;
}

static void on_closed(struct ib_conn *conn, int status)
{
	struct rec *r = conn->user;
	struct world *w = r->node->w;

	cr_assert(r->open && !r->ended);
	cr_assert(w->class >= FAULTS || w->quiet, "seed %ju: closed: %d",
		  SEED(w), status);
	r->open = false;
	r->ended = true;
}

static void on_gone(struct ib_conn *conn)
{
	struct rec *r = conn->user;

	cr_assert(r->ended && r->conn);
	r->conn = NULL;
	r->node->conns--;
}

static void on_arrived(struct ib_conn *conn, struct ib_rx *rx)
{
	struct rec *r = conn->user;
	struct world *w = r->node->w;
	struct op *op = &w->ops[load_le32(rx->msg.lnet_hdr + ID_AT)];

	cr_assert(r->open);
	cr_assert_lt(op - w->ops, w->nops);
	cr_assert_eq(op->to, r->node);
	cr_assert_eq(op->type, rx->msg.type);
	cr_assert_eq(++op->arrived, 1, "seed %ju: twice", SEED(w));
	op->rx = rx;
	if (op->type == IB_MSG_IMMEDIATE) {
		cr_assert_eq(rx->msg.payload_len, op->length);
		for (uint32_t i = 0; i < op->length; i++)
			cr_assert_eq(rx->msg.payload[i], byte_of(op, w, i));
	}
	if (one_in(w, 3))
		cr_assert_eq(ib_rx_bounce(rx), 0);
	if (one_in(w, 2))
		answer(w, op);
	if (one_in(w, 4))
		send_op(w);
}

static void sink_done(struct op *op, const struct ib_tx *tx,
		      struct piece_list *m)
{
	if (!tx->status)
		mem_check(op->from->w, op, m, tx->nob);
}

/* For the side that answers. */
static void answer_done(struct op *op, struct ib_tx *tx)
{
	cr_assert_eq(tx, op->tx2);
	cr_assert_eq(++op->answers_ended, 1);
	op->tx2 = NULL;
	cr_assert(op->given_up2 || op->given_up || !tx->status ||
			  op->from->w->class >= FAULTS || op->from->w->quiet,
		  "seed %ju: %d", SEED(op->from->w), tx->status);
	/* An abandoned message may have been delivered before; its memory is
	 * not checked. */
	if (op->type == IB_MSG_PUT_REQ && !op->given_up && !op->given_up2)
		sink_done(op, tx, &op->mem2);
	mem_put(&op->mem2);
}

static void on_done(struct ib_tx *tx)
{
	struct op *op = tx->user;
	struct world *w = op->from->w;

	cr_assert(tx->has_result && !tx->posts);
	if (tx == op->tx2 && tx->conn->set == &op->to->set) {
		answer_done(op, tx);
		return;
	}
	cr_assert_eq(++op->ends, 1, "seed %ju: it ends twice", SEED(w));
	cr_assert(!op->tx || tx == op->tx);
	op->tx = NULL;
	op->status = tx->status;
	op->cause = tx->cause;
	cr_assert_eq(!tx->status, tx->cause == LNET_CAUSE_OK);
	if (op->type == IB_MSG_GET_REQ && !op->given_up && !op->given_up2)
		sink_done(op, tx, &op->mem);
	mem_put(&op->mem);
	if (one_in(w, 4))
		send_op(w);
}

static const struct ib_conn_user user = {
	.established = on_established,
	.refused = on_refused,
	.closed = on_closed,
	.gone = on_gone,
	.arrived = on_arrived,
	.done = on_done,
};

/* ---- events ---- */

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
	struct node *n = port->user;
	struct world *w = n->w;
	struct ib_terms terms = { n->set.self, (uint16_t)n->conf.peer_credits,
				  257, false, false };
	struct ib_request request;
	struct ib_reject reject;
	uint8_t bytes[IB_REJECT_SIZE];
	const char *why = NULL;
	struct rec *r;

	cr_assert_eq(ib_admit(&terms, from, private, length, &request, &reject,
			      &why),
		     0, "%s", why);
	ib_admit_reject(&terms, IB_REJECT_RESOURCES, &reject);
	if (w->nrecs == CONNS || n->removed)
		goto no;
	r = &w->recs[w->nrecs];
	r->node = n;
	r->peer = (unsigned int)(lnet_nid_to_nid4(&request.peer.nid) - NID(0));
	if (ib_conn_accept(&n->set, qp, &request, r, &r->conn))
		goto no;
	w->nrecs++;
	n->conns++;
	return;
no:
	cr_assert(w->class >= FAULTS);
	port->verbs->reject(qp, bytes, ib_reject_encode(&reject, bytes));
	port->verbs->destroy(qp);
}

static void on_port_changed(struct ib_port *port, bool up, bool removed,
			    const char *why)
{
	struct node *n = port->user;
	struct world *w = n->w;

	(void)up;
	(void)why;
	if (!removed)
		return;
	n->removed = true;
	for (unsigned int i = 0; i < w->nrecs; i++)
		if (w->recs[i].node == n && w->recs[i].conn)
			ib_conn_close(w->recs[i].conn, -ENODEV);
}

static const struct ib_events events = {
	.request_cpt = on_request_cpt,
	.request = on_request,
	.resolved = ib_conn_on_resolved,
	.established = ib_conn_on_established,
	.rejected = ib_conn_on_rejected,
	.failed = ib_conn_on_failed,
	.disconnected = ib_conn_on_disconnected,
	.received = ib_conn_on_received,
	.sent = ib_conn_on_sent,
	.port_changed = on_port_changed,
};

/* ---- harm ---- */

static void connect_any(struct world *w)
{
	struct node *n = &w->nodes[below(w, NODES)];
	unsigned int peer = (unsigned int)below(w, NODES);
	struct ib_request want = { .depth = (uint16_t)n->conf.peer_credits,
				   .frags = 256 };
	struct rec *r = &w->recs[w->nrecs];
	int rc;

	if (w->nrecs >= CONNS / 2 || w->quiet || n->removed ||
	    n == &w->nodes[peer])
		return;
	/* Requests that the peer would refuse are for another test. */
	want.depth =
		MIN(want.depth, (uint16_t)w->nodes[peer].conf.peer_credits);
	want.peer = w->nodes[peer].set.self;
	r->node = n;
	r->peer = peer;
	rc = ib_conn_connect(&n->set, &want, r, &r->conn);
	cr_assert(!rc || w->class >= FAULTS);
	if (rc)
		return;
	w->nrecs++;
	n->conns++;
}

static const struct ulnet_nid *any_nid(struct world *w)
{
	return &w->nodes[below(w, NODES)].set.self.nid;
}

static void harm(struct world *w)
{
	static const enum simqp_call calls[] = {
		SIMQP_CALL_RESOLVE, SIMQP_CALL_CREATE,	  SIMQP_CALL_CONNECT,
		SIMQP_CALL_ACCEPT,  SIMQP_CALL_POST_RECV, SIMQP_CALL_POST_SEND,
		SIMQP_CALL_REG,
	};
	struct rec *r;

	switch (below(w, 9)) {
	case 0:
		simqp_cut(w->fabric, any_nid(w), any_nid(w));
		break;
	case 1:
		simqp_silence(w->fabric, any_nid(w), any_nid(w),
			      below(w, 8000) * MSEC);
		break;
	case 2:
		simqp_fail_call(w->fabric, any_nid(w),
				calls[below(w, ARRAY_SIZE(calls))],
				(unsigned int)below(w, 30), -EIO);
		break;
	case 3:
		simqp_reject_next(w->fabric, any_nid(w),
				  (int)below(w, 2) ? IB_CM_REJECT_STALE
						   : IB_CM_REJECT_NO_LISTENER);
		break;
	case 4:
		simqp_unresolve_next(w->fabric, any_nid(w), -EHOSTUNREACH);
		break;
	case 5:
		simqp_port_set(w->fabric, any_nid(w), one_in(w, 2), "a test");
		break;
	case 6:
		if (one_in(w, 6))
			simqp_remove(w->fabric, any_nid(w));
		break;
	default:
		r = pick_open(w);
		if (r)
			ib_conn_close(r->conn,
				      one_in(w, 2) ? -ESTALE : -ENOMEM);
	}
}

static void set_links(struct world *w)
{
	struct ulnet_nid any = LNET_NID_ANY;
	struct simqp_link l = { 0 };

	if (w->class >= SLOW) {
		l.latency = below(w, 3) * 100000;
		l.jitter = below(w, 2000000);
		l.rtu_delay = below(w, 5) * MSEC;
		l.bandwidth = below(w, 2) * 100000000;
	}
	if (w->class >= FAULTS) {
		l.loss = (uint32_t)below(w, 20000);
		l.cm_loss = (uint32_t)below(w, 100000);
		l.rnr = (uint32_t)below(w, 20000);
		if (one_in(w, 2))
			l.wc_ppm[1 + below(w, IB_WC_STATUSES - 1)] =
				(uint32_t)below(w, 10000);
	}
	simqp_link_set(w->fabric, &any, &any, &l);
}

/* ---- a run ---- */

static void node_open(struct world *w, unsigned int i)
{
	static const struct ib_port_conf conf = {
		.service = 987,
		.listen = true,
		.tos = -1,
		.retry_count = 5,
		.rnr_retry_count = 6,
		.resolve_ms = 5000,
	};
	struct node *n = &w->nodes[i];
	const char *why = NULL;
	struct env *env;

	n->w = w;
	cr_assert_eq(env_sim_env(w->sim, &env), 0);
	cr_assert_eq(loop_new(env, &n->loop), 0);
	n->ni.nid = lnet_nid_from_nid4(NID(i));
	n->ni.cpts = 1;
	n->ni.loops = &n->loop;
	n->ni.fabric = w->fabric;
	cr_assert_eq(
		simqp_verbs()->open(&n->ni, &conf, &events, n, &n->port, &why),
		0, "%s", why);
	n->conf = (struct ib_conn_conf){
		.peer_credits = 8,
		.peer_credits_hiw = 4,
		.concurrent_sends = 1 + (unsigned int)below(w, 12),
		.send_sge = 1 + (unsigned int)below(w, 6),
		.max_inline = (unsigned int)below(w, 2) * 64,
		.keepalive = below(w, 2) * 3 * NSEC_PER_SEC,
		.cksum = one_in(w, 3),
	};
	if (one_in(w, 2))
		n->conf.peer_credits = n->conf.peer_credits_hiw = 1;
	if (!w->class || one_in(w, 2))
		for (unsigned int k = 0; k < i; k++) {
			n->conf.peer_credits = w->nodes[k].conf.peer_credits;
			n->conf.peer_credits_hiw =
				MAX(n->conf.peer_credits / 2, 1);
		}
	ib_tx_pool_init(&n->pool, n->port, one_in(w, 3) ? 4 : 1000);
	n->set = (struct ib_conn_set){
		.loop = n->loop,
		.port = n->port,
		.self = { n->ni.nid, STAMP(i) },
		.conf = &n->conf,
		.user = &user,
		.pool = &n->pool,
		.timeout = 20 * NSEC_PER_SEC,
	};
	n->arena = malloc(ARENA);
	cr_assert_not_null(n->arena);
	memset(n->arena, FREE, ARENA);
	cr_assert_eq(
		n->port->verbs->reg(n->port, n->arena, ARENA, true, &n->mr), 0);
}

static void node_close(struct world *w, struct node *n)
{
	struct simqp_usage usage;

	cr_assert_eq(n->conns, 0, "seed %ju", SEED(w));
	cr_assert_eq(n->set.conns, 0);
	cr_assert_eq(n->pool.used, 0, "seed %ju: %u transmits", SEED(w),
		     n->pool.used);
	ib_tx_pool_fini(&n->pool);
	n->port->verbs->dereg(n->port, n->mr);
	simqp_usage(w->fabric, &n->set.self.nid, &usage);
	cr_assert_eq(usage.qps, 0);
	cr_assert_eq(usage.mrs, 0);
	n->port->verbs->close(n->port);
	for (uint32_t i = 0; i < n->arena_used; i++)
		cr_assert_eq(n->arena[i], FREE,
			     "seed %ju: byte %u was written when it was free",
			     SEED(w), i);
	free(n->arena);
}

/* Checks that hold at any time. */
static void check_conns(const struct world *w)
{
	for (unsigned int i = 0; i < w->nrecs; i++) {
		const struct ib_conn *c = w->recs[i].conn;

		if (!c || !ib_conn_is_open(c))
			continue;
		cr_assert_leq(c->credit.have, c->credit.depth);
		cr_assert_leq(c->credit.owe + c->credit.peer, c->credit.depth);
		cr_assert_leq(c->credit.reserved, c->credit.depth);
		cr_assert_leq(c->slots, c->max_slots);
		cr_assert_leq(c->noops, IB_NOOPS_MAX);
		cr_assert_leq(c->ncalls, c->calls_max);
		/* With one connection: one side has no more credits than the
		 * other one thinks. */
		for (unsigned int k = 0; w->nrecs == 2 && k < 2; k++) {
			const struct ib_conn *p = w->recs[k].conn;

			if (p && p != c && ib_conn_is_open(p))
				cr_assert_leq(c->credit.have, p->credit.peer);
		}
	}
}

static void run_for(struct world *w, uint64_t ns)
{
	uint64_t until = env_sim_now(w->sim) + ns;

	while (env_sim_step(w->sim, until))
		check_conns(w);
}

static void act(struct world *w)
{
	switch (below(w, w->class == HARM ? 8 : 6)) {
	case 0:
	case 1:
	case 2:
		send_op(w);
		break;
	case 3:
	case 4:
		answer_any(w);
		break;
	case 5:
		if (w->nrecs < 2 || one_in(w, w->class >= FAULTS ? 5 : 40))
			connect_any(w);
		break;
	case 6:
		if (one_in(w, 3))
			give_up_any(w);
		break;
	default:
		if (one_in(w, 4))
			harm(w);
	}
	check_conns(w);
}

/* With nothing under way: the credits of one side are those that the other one
 * owes. */
static void check_idle(const struct world *w)
{
	for (unsigned int i = 0; i < w->nrecs; i++) {
		const struct ib_conn *c = w->recs[i].conn;

		cr_assert(c && ib_conn_is_open(c));
		cr_assert_eq(c->credit.reserved, c->credit.depth, "seed %ju",
			     SEED(w));
		cr_assert_eq(c->credit.owe + c->credit.peer, c->credit.depth,
			     "seed %ju", SEED(w));
		cr_assert_eq(c->slots, c->max_slots);
		cr_assert_eq(c->ncalls, 0);
		cr_assert(list_empty(&c->all));
		cr_assert(list_empty(&c->waiting));
		cr_assert_geq(c->receives, IB_RECEIVES(c->credit.depth));
	}
}

static void settle(struct world *w)
{
	struct simqp_stats stats;

	w->quiet = true;
	for (unsigned int i = 0; i < 400; i++) {
		answer_any(w);
		run_for(w, w->class >= FAULTS ? 200 * MSEC : 20 * MSEC);
	}
	for (unsigned int i = 0; i < w->nops; i++) {
		const struct op *op = &w->ops[i];
		bool not_delivered =
			lnd_judge(op->status, op->cause).not_delivered;

		cr_assert_eq(op->ends, 1, "seed %ju: op %u (0x%x) has no end",
			     SEED(w), i, op->type);
		cr_assert(!op->tx && !op->tx2 && !op->rx);
		cr_assert(!op->status || !not_delivered || !op->arrived,
			  "seed %ju: op %u: %d, and it was", SEED(w), i,
			  op->cause);
		if (w->class >= FAULTS)
			continue;
		cr_assert_eq(op->arrived, 1);
		cr_assert(!op->status || op->refused, "seed %ju: op %u: %d",
			  SEED(w), i, op->status);
	}
	if (w->class >= FAULTS)
		return;
	check_idle(w);
	simqp_stats(w->fabric, &stats);
	cr_assert_eq(stats.not_ready, 0, "seed %ju: %ju met no receive",
		     SEED(w), (uintmax_t)stats.not_ready);
}

static void run(uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));
	struct simqp_conf conf = { 0 };
	unsigned int steps;

	cr_assert_not_null(w);
	w->seed = seed;
	w->class = seed % CLASSES;
	rng_seed(&w->rng, seed);
	conf.cq_ns = w->class == SLOW ? below(w, 3) * MSEC : 0;
	cr_assert_eq(env_sim_new(seed, &w->sim), 0);
	cr_assert_eq(simqp_fabric_new(w->sim, &conf, &w->fabric), 0);
	for (unsigned int i = 0; i < NODES; i++)
		node_open(w, i);
	set_links(w);
	connect_any(w);
	run_for(w, 20 * MSEC);
	steps = 200 + (unsigned int)below(w, 800);
	for (unsigned int i = 0; i < steps; i++) {
		act(w);
		if (one_in(w, 2))
			run_for(w, below(w, w->class == HARM && one_in(w, 20)
						    ? 2000
						    : 3) *
					   MSEC);
	}
	settle(w);
	for (unsigned int i = 0; i < w->nrecs; i++)
		if (w->recs[i].conn)
			ib_conn_close(w->recs[i].conn, -ESHUTDOWN);
	run_for(w, 60 * NSEC_PER_SEC);
	for (unsigned int i = 0; i < NODES; i++)
		node_close(w, &w->nodes[i]);
	simqp_fabric_free(w->fabric);
	for (unsigned int i = 0; i < NODES; i++)
		loop_free(w->nodes[i].loop);
	env_sim_free(w->sim);
	free(w);
}

/* The environment variable O2IB_SEEDS="FIRST COUNT" sets other seeds. */
Test(o2ib_random, seeds)
{
	const char *more = getenv("O2IB_SEEDS");
	unsigned long first = 1, count = slice_of(200, 50);

	if (more)
		sscanf(more, "%lu %lu", &first, &count);
	log_setup(LOG_ERR, NULL, NULL);
	for (unsigned long i = 0; i < count; i++)
		run(first + i);
}
