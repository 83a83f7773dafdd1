/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/o2iblnd/simqp_rig.h"

#include <string.h>

static struct conn *conn_of(struct ib_qp *qp)
{
	struct conn *c = qp->user;
	struct rig *r = c->rig;

	cr_assert(!r->in_call, "an event out of a call");
	cr_assert_eq(c->qp, qp, "an event of one that is destroyed");
	cr_assert_eq(loop_current(), c->node->loops[qp->cpt]);
	c->at = env_sim_now(r->world);
	return c;
}

static struct conn *conn_new(struct rig *r, struct node *node)
{
	struct conn *c = &r->conns[r->nconns++];
	int rc;

	cr_assert_leq(r->nconns, CONNS);
	c->rig = r;
	c->node = node;
	rc = CALL(r, r->v->reg(node->port, c->out, RING, false, &c->out_mr));
	cr_assert_eq(rc, 0);
	rc = CALL(r, r->v->reg(node->port, c->in, RING, true, &c->in_mr));
	cr_assert_eq(rc, 0);
	return c;
}

static void note(struct rig *r, uint64_t what)
{
	r->digest = (r->digest ^ what ^ env_sim_now(r->world)) *
		    UINT64_C(0x100000001b3);
}

/* ---- events ---- */

static unsigned int on_request_cpt(struct ib_port *port, const void *private,
				   size_t length)
{
	struct node *node = port->user;

	cr_assert_eq(length, IB_PRIVATE_REQUEST_SIZE);
	(void)private;
	return node->request_cpt;
}

static void on_request(struct ib_port *port, struct ib_qp *qp,
		       const struct ib_source *from, const void *private,
		       size_t length)
{
	struct node *node = port->user;
	struct rig *r = node->ni.priv;
	struct conn *c = conn_new(r, node);

	qp->user = c;
	c->qp = qp;
	c->passive = true;
	conn_of(qp);
	cr_assert_eq(qp->port, port);
	cr_assert_eq(qp->cpt, node->request_cpt);
	node->requests++;
	c->from = *from;
	c->private_length = length;
	memcpy(c->private, private, length);
	note(r, 1);
	if (r->requested) {
		uint32_t active;

		memcpy(&active, private, sizeof(active));
		r->requested(c, &r->conns[active]);
	}
	switch (r->answer) {
	case ACCEPT:
		cr_assert_eq(conn_create(c), 0);
		cr_assert_eq(CALL(r, r->v->accept(qp, "yes", 3)), 0);
		break;
	case REJECT:
		CALL_VOID(r, r->v->reject(qp, "no", 2));
		conn_destroy(c);
		break;
	case VANISH:
		conn_destroy(c);
		break;
	case LATER:
		break;
	}
}

static void on_resolved(struct ib_qp *qp)
{
	struct conn *c = conn_of(qp);
	struct rig *r = c->rig;
	uint32_t number[2] = { (uint32_t)(c - r->conns) };
	const void *private = r->requested ? (const void *)number : "hello";
	int rc = conn_create(c);

	c->resolved++;
	if (rc != -ENODEV) {
		cr_assert_eq(rc, 0);
		cr_assert_eq(CALL(r, r->v->connect(qp, private, 5)), 0);
	}
}

static void on_established(struct ib_qp *qp, const void *private, size_t length)
{
	struct conn *c = conn_of(qp);

	c->established++;
	if (!c->passive) {
		memcpy(c->private, private, length);
		c->private_length = length;
	} else {
		cr_assert_eq(length, 0);
	}
	note(c->rig, 2);
	if (c->hook)
		c->hook(c, NULL);
}

static void on_rejected(struct ib_qp *qp, int reason, const void *private,
			size_t length)
{
	struct conn *c = conn_of(qp);

	c->rejected++;
	c->status = reason;
	memcpy(c->private, private, length);
	c->private_length = length;
	note(c->rig, 3);
	if (c->hook)
		c->hook(c, NULL);
}

static void on_failed(struct ib_qp *qp, int status)
{
	struct conn *c = conn_of(qp);

	c->failed++;
	c->status = status;
	note(c->rig, 4);
	if (c->hook)
		c->hook(c, NULL);
}

static void on_disconnected(struct ib_qp *qp)
{
	struct conn *c = conn_of(qp);

	c->disconnected++;
	note(c->rig, 5);
	if (c->hook)
		c->hook(c, NULL);
}

static void on_wc(struct ib_qp *qp, const struct wc *wc)
{
	struct conn *c = conn_of(qp);

	if (c->nwcs < WCS)
		c->wcs[c->nwcs++] = *wc;
	if (!c->established)
		c->early++;
	note(c->rig, wc->cookie << 8 | wc->status);
	if (c->hook)
		c->hook(c, wc);
	if (c->destroy_flushed && !c->recvs && !c->sends)
		conn_destroy(c);
}

static void on_received(struct ib_qp *qp, void *cookie, uint32_t length,
			enum ib_wc_status status)
{
	struct wc wc = { true, (uintptr_t)cookie, length, status };

	((struct conn *)qp->user)->recvs--;
	on_wc(qp, &wc);
}

static void on_sent(struct ib_qp *qp, void *cookie, enum ib_wc_status status)
{
	struct wc wc = { false, (uintptr_t)cookie, 0, status };

	((struct conn *)qp->user)->sends--;
	on_wc(qp, &wc);
}

static void on_port_changed(struct ib_port *port, bool up, bool removed,
			    const char *why)
{
	struct node *node = port->user;
	struct rig *r = node->ni.priv;

	cr_assert(!r->in_call);
	cr_assert_eq(loop_current(), node->loops[0]);
	node->changes++;
	node->ups += up;
	node->removals += removed;
	node->why = why;
}

const struct ib_events rig_events = {
	.request_cpt = on_request_cpt,
	.request = on_request,
	.resolved = on_resolved,
	.established = on_established,
	.rejected = on_rejected,
	.failed = on_failed,
	.disconnected = on_disconnected,
	.received = on_received,
	.sent = on_sent,
	.port_changed = on_port_changed,
};

/* ---- rigs ---- */

struct ulnet_nid rig_nobody(void)
{
	return lnet_nid_make(LNET_NET(LNET_TYPE_O2IB, 0), 0x0a0000ff);
}

struct rig *rig_new(uint64_t seed, const struct simqp_conf *conf)
{
	struct rig *r = calloc(1, sizeof(*r));

	cr_assert(r);
	cr_assert_eq(env_sim_new(seed, &r->world), 0);
	cr_assert_eq(simqp_fabric_new(r->world, conf, &r->fabric), 0);
	r->v = simqp_verbs();
	r->conf = (struct ib_port_conf){ .service = SERVICE,
					 .listen = true,
					 .privileged = true,
					 .tos = -1,
					 .retry_count = 5,
					 .rnr_retry_count = 6,
					 .resolve_ms = 1000 };
	r->qp_conf = (struct ib_qp_conf){ 16, 16, 2, 64 };
	r->receives = 4;
	r->receive_size = 64;
	for (unsigned int i = 0; i < NODES; i++) {
		struct node *n = &r->nodes[i];

		for (unsigned int k = 0; k < CPTS; k++) {
			struct env *env;

			cr_assert_eq(env_sim_env(r->world, &env), 0);
			cr_assert_eq(loop_new(env, &n->loops[k]), 0);
		}
		n->ni.nid = lnet_nid_make(LNET_NET(LNET_TYPE_O2IB, 0),
					  0x0a000001 + i);
		n->ni.cpts = CPTS;
		n->ni.loops = n->loops;
		n->ni.fabric = r->fabric;
		n->ni.priv = r;
		n->request_cpt = 1;
	}
	return r;
}

const struct ulnet_nid *rig_nid(struct rig *r, unsigned int n)
{
	return &r->nodes[n].ni.nid;
}

void qp_rig_run(struct rig *r, uint64_t ns)
{
	uint64_t until = env_sim_now(r->world) + ns;

	while (env_sim_step(r->world, until))
		;
}

void qp_rig_open(struct rig *r, unsigned int n)
{
	struct node *node = &r->nodes[n];
	int rc = CALL(r, r->v->open(&node->ni, &r->conf, &rig_events, node,
				    &node->port, NULL));

	cr_assert_eq(rc, 0);
	cr_assert_eq(node->port->ni, &node->ni);
	cr_assert_eq(node->port->user, node);
	cr_assert_eq(node->port->verbs, r->v);
	cr_assert_eq(node->port->events, &rig_events);
}

void qp_rig_close(struct rig *r, unsigned int n)
{
	struct node *node = &r->nodes[n];
	struct simqp_usage u;

	for (unsigned int i = 0; i < r->nconns; i++) {
		struct conn *c = &r->conns[i];

		if (c->node != node)
			continue;
		if (c->qp)
			conn_destroy(c);
		if (c->out_mr)
			CALL_VOID(r, r->v->dereg(node->port, c->out_mr));
		if (c->in_mr)
			CALL_VOID(r, r->v->dereg(node->port, c->in_mr));
		c->out_mr = c->in_mr = NULL;
	}
	simqp_usage(r->fabric, &node->ni.nid, &u);
	cr_assert(u.open && !u.qps && !u.mrs && !u.locked);
	CALL_VOID(r, r->v->close(node->port));
	node->port = NULL;
}

void rig_free(struct rig *r)
{
	for (unsigned int i = 0; i < r->nconns; i++)
		if (r->conns[i].qp && (r->conns[i].recvs || r->conns[i].sends))
			conn_disconnect(&r->conns[i]);
	qp_rig_run(r, 60 * NSEC_PER_SEC);
	for (unsigned int i = 0; i < NODES; i++)
		if (r->nodes[i].port)
			qp_rig_close(r, i);
	simqp_fabric_free(r->fabric);
	for (unsigned int i = 0; i < NODES; i++)
		for (unsigned int k = 0; k < CPTS; k++)
			loop_free(r->nodes[i].loops[k]);
	env_sim_free(r->world);
	free(r);
}

struct conn *rig_connect_to(struct rig *r, unsigned int a, unsigned int cpt,
			    const struct ulnet_nid *dst)
{
	struct conn *c = conn_new(r, &r->nodes[a]);
	int rc = CALL(r, r->v->resolve(c->node->port, cpt, dst, c, &c->qp));

	cr_assert_eq(rc, 0);
	cr_assert_eq(c->qp->user, c);
	cr_assert_eq(c->qp->cpt, cpt);
	return c;
}

struct conn *rig_passive(struct rig *r, unsigned int b)
{
	for (unsigned int i = r->nconns; i; i--) {
		struct conn *c = &r->conns[i - 1];

		if (c->passive && c->node == &r->nodes[b])
			return c;
	}
	return NULL;
}

void rig_pair(struct rig *r, struct conn *pair[2])
{
	for (unsigned int i = A; i <= B; i++)
		if (!r->nodes[i].port)
			qp_rig_open(r, i);
	pair[A] = rig_connect_to(r, A, 0, rig_nid(r, B));
	qp_rig_run(r, NSEC_PER_SEC);
	pair[B] = rig_passive(r, B);
	cr_assert(pair[B]);
	cr_assert_eq(pair[A]->established, 1);
	cr_assert_eq(pair[B]->established, 1);
}

/* ---- connections ---- */

int conn_create(struct conn *c)
{
	struct rig *r = c->rig;
	int rc = CALL(r, r->v->create(c->qp, &r->qp_conf));

	c->created = !rc;
	for (unsigned int i = 0; !rc && i < r->receives; i++)
		cr_assert_eq(
			conn_recv(c, i * r->receive_size, r->receive_size, i),
			0);
	return rc;
}

int conn_recv(struct conn *c, uint32_t offset, uint32_t length,
	      uintptr_t cookie)
{
	struct ib_sge sge = { c->in + offset, length, c->in_mr->lkey };
	int rc =
		CALL(c->rig, c->rig->v->post_recv(c->qp, &sge, (void *)cookie));

	c->recvs += !rc;
	return rc;
}

struct ib_sge conn_sge(struct conn *c, uint32_t offset, uint32_t length)
{
	return (struct ib_sge){ c->out + offset, length, c->out_mr->lkey };
}

int conn_send(struct conn *c, uint32_t offset, uint32_t length,
	      uintptr_t cookie)
{
	struct ib_sge sge = conn_sge(c, offset, length);
	struct ib_wr wr = { .type = IB_WR_SEND,
			    .sge = &sge,
			    .nsge = 1,
			    .cookie = (void *)cookie };
	int rc = CALL(c->rig, c->rig->v->post_send(c->qp, &wr, 1));

	c->sends += !rc;
	return rc;
}

int conn_write(struct conn *c, const void *to, uint32_t rkey, uint32_t offset,
	       uint32_t length, uintptr_t cookie)
{
	struct ib_sge sge = conn_sge(c, offset, length);
	struct ib_sge sge8 = conn_sge(c, 0, 8);
	struct ib_wr wrs[] = {
		{ .type = IB_WR_WRITE,
		  .sge = &sge,
		  .nsge = 1,
		  .remote_addr = (uintptr_t)to,
		  .rkey = rkey },
		{ .type = IB_WR_SEND,
		  .sge = &sge8,
		  .nsge = 1,
		  .cookie = (void *)cookie },
	};
	int rc = CALL(c->rig, c->rig->v->post_send(c->qp, wrs, 2));

	c->sends += !rc;
	return rc;
}

void conn_disconnect(struct conn *c)
{
	CALL_VOID(c->rig, c->rig->v->disconnect(c->qp));
}

void conn_destroy(struct conn *c)
{
	struct ib_qp *qp = c->qp;

	c->qp = NULL;
	CALL_VOID(c->rig, c->rig->v->destroy(qp));
}

void conn_expect(const struct conn *c, bool received, uintptr_t first,
		 unsigned int n, enum ib_wc_status status)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < c->nwcs; i++) {
		const struct wc *wc = &c->wcs[i];

		if (wc->received != received || wc->cookie < first)
			continue;
		cr_assert_lt(found, n, "%u more", c->nwcs - i);
		cr_assert_eq(wc->cookie, first + found);
		cr_assert_eq(wc->status, status, "%s: %s",
			     received ? "received" : "sent",
			     ib_wc_status_name(wc->status));
		found++;
	}
	cr_assert_eq(found, n, "%u of %u", found, n);
}

const struct wc *conn_sent(const struct conn *c, unsigned int i)
{
	for (unsigned int k = 0; k < c->nwcs; k++)
		if (!c->wcs[k].received && !i--)
			return &c->wcs[k];
	cr_assert_fail("so many have not ended");
	return NULL;
}

unsigned int conn_count(const struct conn *c, bool received,
			enum ib_wc_status status)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < c->nwcs; i++)
		n += c->wcs[i].received == received &&
		     c->wcs[i].status == status;
	return n;
}

/* ---- bytes ---- */

bool rig_is_filled(const uint8_t *p, size_t n, uint8_t with)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != with)
			return false;
	return true;
}

void conn_fill(struct conn *c, uint8_t with)
{
	memset(c->out, with, RING);
}
