/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/o2iblnd/ib_rig.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "base/buf.h"

/* 10.77.2.3@o2ib and 10.77.2.2@o2ib, as in the captures */
#define NID_A UINT64_C(0x000500000a4d0203)
#define NID_B UINT64_C(0x000500000a4d0202)

static struct ib_end end_a, end_b;

static struct ib_end rig_end(uint64_t nid, uint64_t stamp)
{
	struct ib_end e = { lnet_nid_from_nid4(nid), stamp };

	return e;
}

static struct rig_side *side_of(const struct ib_port *port)
{
	return container_of(port, struct rig_side, port);
}

static struct rig_qp *rig_qp(struct ib_qp *qp)
{
	return container_of(qp, struct rig_qp, qp);
}

/* ---- the backend ---- */

static struct rig_qp *qp_new(struct rig_side *side, bool passive)
{
	struct rig_qp *q = calloc(1, sizeof(*q));

	cr_assert_not_null(q);
	q->calls = calloc(RIG_CALLS, sizeof(*q->calls));
	cr_assert_not_null(q->calls);
	q->qp.port = &side->port;
	q->passive = passive;
	side->qp = q;
	return q;
}

static int fake_resolve(struct ib_port *port, unsigned int cpt,
			const struct ulnet_nid *dst, void *user,
			struct ib_qp **qp_p)
{
	struct rig_qp *q = qp_new(side_of(port), false);

	(void)cpt;
	(void)dst;
	q->qp.user = user;
	*qp_p = &q->qp;
	return 0;
}

static int fake_create(struct ib_qp *qp, const struct ib_qp_conf *conf)
{
	struct rig_side *side = side_of(qp->port);

	cr_assert(!rig_qp(qp)->created);
	if (side->fail_create) {
		side->fail_create--;
		return -ENOMEM;
	}
	rig_qp(qp)->created = true;
	rig_qp(qp)->conf = *conf;
	qp->max_inline = conf->max_inline;
	return 0;
}

static int keep_private(struct ib_qp *qp, const void *private, size_t length)
{
	struct rig_qp *q = rig_qp(qp);

	cr_assert_leq(length, sizeof(q->private));
	memcpy(q->private, private, length);
	q->private_len = length;
	return 0;
}

static void fake_reject(struct ib_qp *qp, const void *private, size_t length)
{
	rig_qp(qp)->rejected = true;
	keep_private(qp, private, length);
}

static void fake_disconnect(struct ib_qp *qp)
{
	cr_assert(rig_qp(qp)->created);
	rig_qp(qp)->error = true;
}

static void fake_destroy(struct ib_qp *qp)
{
	struct rig_qp *q = rig_qp(qp);

	cr_assert_eq(q->nrecvs, 0, "%u receives are posted", q->nrecvs);
	cr_assert_eq(q->ncalls, 0, "%u sends are posted", q->ncalls);
	if (q->peer)
		q->peer->peer = NULL;
	side_of(qp->port)->qp = NULL;
	free(q->calls);
	free(q);
}

static int fake_post_recv(struct ib_qp *qp, const struct ib_sge *sge,
			  void *cookie)
{
	struct rig_side *side = side_of(qp->port);
	struct rig_qp *q = rig_qp(qp);
	unsigned int at = (q->first_recv + q->nrecvs) % RIG_RECEIVES;
	int rc = side->fail_post_recv;

	side->fail_post_recv = 0;
	if (rc)
		return rc;
	cr_assert_lt(q->nrecvs, q->conf.max_recv_wr);
	q->recvs[at].sge = *sge;
	q->recvs[at].cookie = cookie;
	q->nrecvs++;
	return 0;
}

static void call_write(struct rig_call *c, const struct ib_wr *wr)
{
	uint32_t length = 0;

	for (unsigned int i = 0; i < wr->nsge; i++)
		length += wr->sge[i].length;
	cr_assert_lt(c->nwrites, ARRAY_SIZE(c->writes));
	c->writes[c->nwrites].addr = wr->remote_addr;
	c->writes[c->nwrites].rkey = wr->rkey;
	c->writes[c->nwrites++].length = length;
}

static int fake_post_send(struct ib_qp *qp, const struct ib_wr *wrs,
			  unsigned int n)
{
	struct rig_side *side = side_of(qp->port);
	struct rig_qp *q = rig_qp(qp);
	struct rig_call *c;
	unsigned int used = n;
	int rc = side->fail_post_send;

	side->fail_post_send = 0;
	if (rc)
		return rc;
	cr_assert_eq(wrs[n - 1].type, IB_WR_SEND);
	for (unsigned int i = q->first_call; i < q->first_call + q->ncalls; i++)
		used += q->calls[i].n;
	cr_assert_leq(used, q->conf.max_send_wr);
	cr_assert_lt(q->first_call + q->ncalls, RIG_CALLS);
	c = &q->calls[q->first_call + q->ncalls++];
	c->n = n;
	for (unsigned int i = 0; i < n - 1; i++)
		call_write(c, &wrs[i]);
	c->last = wrs[n - 1];
	c->length = c->last.sge[0].length;
	memcpy(c->bytes, c->last.sge[0].addr, c->length);
	return 0;
}

static int fake_reg(struct ib_port *port, void *addr, size_t length,
		    bool remote, struct ib_mr **mr_p)
{
	struct rig_side *side = side_of(port);
	struct ib_mr *mr;

	if (side->fail_reg)
		return side->fail_reg;
	mr = malloc(sizeof(*mr));
	cr_assert_not_null(mr);
	side->mrs++;
	side->next_key++;
	*mr = (struct ib_mr){ addr, length, side->next_key,
			      remote ? side->next_key : 0 };
	*mr_p = mr;
	return 0;
}

static void fake_dereg(struct ib_port *port, struct ib_mr *mr)
{
	side_of(port)->mrs--;
	free(mr);
}

static const struct ib_verbs fake = {
	.name = "fake",
	.resolve = fake_resolve,
	.create = fake_create,
	.connect = keep_private,
	.accept = keep_private,
	.reject = fake_reject,
	.disconnect = fake_disconnect,
	.destroy = fake_destroy,
	.post_recv = fake_post_recv,
	.post_send = fake_post_send,
	.reg = fake_reg,
	.dereg = fake_dereg,
};

/* ---- the user ---- */

static struct rig_side *side_of_conn(const struct ib_conn *conn)
{
	return conn->user;
}

static void on_established(struct ib_conn *conn)
{
	side_of_conn(conn)->established = ++side_of_conn(conn)->told;
}

static void on_refused(struct ib_conn *conn, int status,
		       const struct ib_refusal *refusal)
{
	struct rig_side *s = side_of_conn(conn);

	s->refused = ++s->told;
	s->status = status;
	s->refusal = *refusal;
}

static void on_closed(struct ib_conn *conn, int status)
{
	struct rig_side *s = side_of_conn(conn);

	s->closed = ++s->told;
	s->status = status;
}

static void on_gone(struct ib_conn *conn)
{
	struct rig_side *s = side_of_conn(conn);

	s->gone = ++s->told;
	s->conn = NULL;
}

static void on_arrived(struct ib_conn *conn, struct ib_rx *rx)
{
	struct rig_side *s = side_of_conn(conn);

	cr_assert_lt(s->ngot, ARRAY_SIZE(s->got));
	s->told++;
	s->got[s->ngot++] =
		(struct rig_rx){ rx, rx->msg.type, rx->msg.payload_len };
	if (s->take && rx->msg.type == IB_MSG_IMMEDIATE)
		ib_rx_end(rx, 0);
}

static void on_done(struct ib_tx *tx)
{
	struct rig_side *s = side_of_conn(tx->conn);

	cr_assert_lt(s->ndone, ARRAY_SIZE(s->done));
	s->told++;
	s->done[s->ndone].user = tx->user;
	s->done[s->ndone].status = tx->status;
	s->done[s->ndone].cause = tx->cause;
	s->done[s->ndone++].nob = tx->nob;
}

static void on_silent(struct ib_conn *conn, uint64_t ns)
{
	struct rig_side *s = conn->user;

	s->silent++;
	s->silent_ns = ns;
}

static const struct ib_conn_user user = {
	.established = on_established,
	.refused = on_refused,
	.closed = on_closed,
	.gone = on_gone,
	.arrived = on_arrived,
	.done = on_done,
	.silent = on_silent,
};

/* ---- both sides ---- */

static void side_open(struct rig *r, struct rig_side *s,
		      const struct ib_end *self, unsigned int depth)
{
	s->conf = (struct ib_conn_conf){
		.peer_credits = depth,
		.peer_credits_hiw = MAX(depth / 2, 1),
		.concurrent_sends = depth,
		.send_sge = 4,
		.max_inline = 64,
	};
	s->port.verbs = &fake;
	s->port.ni = &s->ni;
	ib_tx_pool_init(&s->pool, &s->port, 256);
	s->set = (struct ib_conn_set){
		.loop = r->loop,
		.port = &s->port,
		.self = *self,
		.conf = &s->conf,
		.user = &user,
		.pool = &s->pool,
		.timeout = 40 * NSEC_PER_SEC,
	};
	s->take = true;
}

void rig_open(struct rig *r, unsigned int depth)
{
	struct env *env;

	memset(r, 0, sizeof(*r));
	r->frags = 256;
	cr_assert_eq(env_sim_new(1, &r->world), 0);
	cr_assert_eq(env_sim_env(r->world, &env), 0);
	cr_assert_eq(loop_new(env, &r->loop), 0);
	log_setup(LOG_ERR, NULL, NULL);
	end_a = rig_end(NID_A, UINT64_C(0x000660bcf0c07e87));
	end_b = rig_end(NID_B, UINT64_C(0x000660bcf03a282a));
	side_open(r, &r->a, &end_a, depth);
	side_open(r, &r->b, &end_b, depth);
}

static void side_close(struct rig_side *s)
{
	cr_expect_eq(s->set.conns, 0);
	cr_expect_null(s->qp);
	ib_tx_pool_fini(&s->pool);
	cr_expect_eq(s->mrs, 0);
}

void rig_close(struct rig *r)
{
	side_close(&r->a);
	side_close(&r->b);
	loop_free(r->loop);
	env_sim_free(r->world);
}

void rig_run(struct rig *r, uint64_t ns)
{
	uint64_t until = env_sim_now(r->world) + ns;

	while (env_sim_step(r->world, until))
		;
}

static void ask(struct rig *r, uint16_t depth)
{
	struct ib_request want = { { end_b.nid, 0 }, depth, r->frags };

	cr_assert_eq(ib_conn_connect(&r->a.set, &want, &r->a, &r->a.conn), 0);
	ib_conn_on_resolved(&r->a.qp->qp);
	rig_run(r, 0);
}

void rig_ask(struct rig *r)
{
	struct ib_terms terms = { end_b, (uint16_t)r->b.conf.peer_credits, 257,
				  false, false };
	struct ib_source from = { end_a.nid, 1023 };
	struct ib_request request;
	struct ib_reject reject;
	const char *why = "";
	uint8_t full[IB_PRIVATE_REQUEST_SIZE] = { 0 };

	ask(r, (uint16_t)r->a.conf.peer_credits);
	if (!r->a.qp || !r->a.qp->private_len)
		return;
	memcpy(full, r->a.qp->private, r->a.qp->private_len);
	cr_assert_eq(ib_admit(&terms, &from, full, sizeof(full), &request,
			      &reject, &why),
		     0, "%s", why);
	qp_new(&r->b, true);
	r->a.qp->peer = r->b.qp;
	r->b.qp->peer = r->a.qp;
	cr_assert_eq(ib_conn_accept(&r->b.set, &r->b.qp->qp, &request, &r->b,
				    &r->b.conn),
		     0);
}

void rig_connect(struct rig *r)
{
	uint8_t full[IB_PRIVATE_ACCEPT_SIZE] = { 0 };

	rig_ask(r);
	memcpy(full, r->b.qp->private, r->b.qp->private_len);
	ib_conn_on_established(&r->a.qp->qp, full, sizeof(full));
	ib_conn_on_established(&r->b.qp->qp, NULL, 0);
	cr_assert(r->a.established && r->b.established);
}

void rig_accept(struct rig *r)
{
	struct ib_request request = { end_a, (uint16_t)r->b.conf.peer_credits,
				      256 };

	qp_new(&r->b, true);
	cr_assert_eq(ib_conn_accept(&r->b.set, &r->b.qp->qp, &request, &r->b,
				    &r->b.conn),
		     0);
	ib_conn_on_established(&r->b.qp->qp, NULL, 0);
}

void rig_put(struct rig_side *to, const void *bytes, size_t length)
{
	struct rig_qp *q = to->qp;
	struct ib_sge sge = q->recvs[q->first_recv].sge;
	void *cookie = q->recvs[q->first_recv].cookie;

	cr_assert(q->nrecvs, "no receive is posted");
	q->first_recv = (q->first_recv + 1) % RIG_RECEIVES;
	q->nrecvs--;
	memcpy(sge.addr, bytes, MIN(length, sge.length));
	ib_conn_on_received(&q->qp, cookie, (uint32_t)length,
			    length > sge.length ? IB_WC_LOCAL_ERROR : IB_WC_OK);
}

struct rig_call *rig_carry(struct rig_side *from)
{
	struct rig_qp *q = from->qp;

	for (unsigned int i = q->first_call; i < q->first_call + q->ncalls;
	     i++) {
		struct rig_call *c = &q->calls[i];

		if (c->carried)
			continue;
		c->carried = true;
		if (q->peer)
			rig_put(side_of(q->peer->qp.port), c->bytes, c->length);
		return c;
	}
	return NULL;
}

void rig_complete(struct rig_side *of, enum ib_wc_status status)
{
	struct rig_qp *q = of->qp;
	void *cookie = q->calls[q->first_call].last.cookie;

	cr_assert(q->ncalls);
	q->first_call++;
	q->ncalls--;
	ib_conn_on_sent(&q->qp, cookie, status);
}

static bool settle_side(struct rig_side *s)
{
	bool moved = false;

	while (s->qp && !s->qp->error && rig_carry(s))
		moved = true;
	while (s->qp && !s->qp->error && s->qp->ncalls &&
	       s->qp->calls[s->qp->first_call].carried) {
		rig_complete(s, IB_WC_OK);
		moved = true;
	}
	return moved;
}

void rig_settle(struct rig *r)
{
	bool moved;

	do {
		moved = settle_side(&r->a);
		moved |= settle_side(&r->b);
		rig_run(r, 0);
	} while (moved);
}

void rig_flush(struct rig_side *of)
{
	cr_assert(of->qp->error);
	while (of->qp && of->qp->ncalls)
		rig_complete(of, IB_WC_FLUSHED);
	while (of->qp && of->qp->nrecvs) {
		struct rig_qp *q = of->qp;
		void *cookie = q->recvs[q->first_recv].cookie;

		q->first_recv = (q->first_recv + 1) % RIG_RECEIVES;
		q->nrecvs--;
		ib_conn_on_received(&q->qp, cookie, 0, IB_WC_FLUSHED);
	}
}

const struct rig_call *rig_last(const struct rig_side *of)
{
	unsigned int n = of->qp->first_call + of->qp->ncalls;

	cr_assert(n, "nothing was ever sent");
	return &of->qp->calls[n - 1];
}

void rig_header(void *hdr, uint32_t type, uint32_t payload)
{
	uint8_t *p = hdr;

	memset(p, 0, LNET_HDR_SIZE);
	store_le32(p + 24, type);
	store_le32(p + 28, payload);
}

struct ib_tx *rig_send(struct rig_side *from, uint32_t payload_len, void *who)
{
	struct ib_tx *tx = ib_tx_get(from->conn);

	if (!tx)
		return NULL;
	tx->user = who;
	rig_header(ib_tx_header(tx), 1, payload_len);
	memset(ib_tx_payload(tx), 'x', payload_len);
	ib_send_immediate(tx, payload_len);
	return tx;
}

struct ib_tx *rig_send_put(struct rig_side *from, const struct ib_sge *source,
			   uint32_t length, void *who)
{
	struct ib_tx *tx = ib_tx_get(from->conn);

	cr_assert_not_null(tx);
	tx->user = who;
	rig_header(ib_tx_header(tx), 1, length);
	ib_send_put(tx, source, length);
	return tx;
}

struct ib_tx *rig_send_get(struct rig_side *from, const struct ib_sink *sink,
			   void *who)
{
	struct ib_tx *tx = ib_tx_get(from->conn);

	cr_assert_not_null(tx);
	tx->user = who;
	rig_header(ib_tx_header(tx), 2, 0);
	cr_assert_eq(ib_send_get(tx, sink), 0);
	return tx;
}

void rig_end_side(struct rig *r, struct rig_side *s)
{
	if (s->conn)
		ib_conn_close(s->conn, -ESHUTDOWN);
	rig_run(r, 0);
	if (s->qp)
		rig_flush(s);
	cr_expect_null(s->conn);
}

void rig_end_all(struct rig *r)
{
	rig_end_side(r, &r->a);
	rig_end_side(r, &r->b);
	rig_close(r);
}
