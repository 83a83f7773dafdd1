/* SPDX-License-Identifier: BSD-3-Clause */
/* A method that moves bulk: see the header. */
#include "tests/unit/rpc/mover.h"

void mover_init(struct mover *m, struct lnet_sim *sim, uint32_t length)
{
	*m = (struct mover){ .sim = sim,
			     .length = length,
			     .own = lnet_sim_buf(sim, length),
			     .lent = lnet_sim_buf(sim, length) };
}

void mover_fini(struct mover *m)
{
	lnet_sim_buf_retire(m->sim, m->own);
	lnet_sim_buf_retire(m->sim, m->lent);
}

/* ---- the service ---- */

static void on_moved(void *arg, int status, uint64_t moved)
{
	struct moving *moving = arg;
	struct mover *m = moving->m;

	m->status = status;
	m->ended++;
	if (status) {
		ulrpc_fail(moving->r, status);
	} else {
		cr_assert_eq(moved, m->length);
		ulrpc_reply(moving->r, NULL, 0);
	}
}

void mover_go(struct mover *m, struct ulrpc_request *r)
{
	struct moving *moving = &m->moving[m->runs++ % MOVER_AT_ONCE];
	struct iovec iov = { m->own, m->length };
	int rc = 0;

	*moving = (struct moving){ m, r };
	if (m->move == MOVE_NOTHING)
		ulrpc_reply(r, NULL, 0);
	else if (m->move == MOVE_PUT)
		rc = ulrpc_bulk_put(r, 0, 0, &iov, 1, on_moved, moving);
	else
		rc = ulrpc_bulk_get(r, 0, 0, &iov, 1, on_moved, moving);
	cr_assert_eq(rc, 0);
}

static void handle(void *arg, struct ulrpc_request *r, const void *body,
		   size_t length)
{
	(void)body;
	(void)length;
	mover_go(arg, r);
}

struct ulrpc_method_conf mover_method(struct mover *m)
{
	return (struct ulrpc_method_conf){ .name = "move",
					   .handler = handle,
					   .arg = m,
					   .run = ULRPC_RUN_INLINE };
}

/* ---- the caller ---- */

void mover_fill(struct mover *m, unsigned int n)
{
	for (uint32_t i = 0; i < m->length; i++) {
		m->own[i] = (uint8_t)(i * 7 + n);
		m->lent[i] = (uint8_t)(i * 11 + n);
	}
}

bool mover_is_done(const struct mover *m)
{
	return !memcmp(m->own, m->lent, m->length);
}

struct ulrpc_bulk *mover_lend(const struct mover *m, struct ulrpc *rpc)
{
	struct iovec iov = { m->lent, m->length };
	const struct ulrpc_bulk_conf lend = {
		.iov = &iov,
		.niov = 1,
		.segment = m->segment,
		.access = m->move == MOVE_PUT ? ULRPC_BULK_SINK
					      : ULRPC_BULK_SOURCE,
	};
	struct ulrpc_bulk *bulk;

	cr_assert_eq(ulrpc_bulk_new(rpc, &lend, &bulk), 0);
	return bulk;
}

/* ---- with the nodes of a serve_rig ---- */

void mover_open(struct mover *m, struct serve_rig *g, uint64_t seed,
		uint32_t length, const struct ulnet_sim_link *link)
{
	const struct ulrpc_method_conf method = mover_method(m);

	serve_init(g, seed, 1);
	cluster_links(g->sim, link);
	mover_init(m, g->sim, length);
	serve_open(g, NULL);
	serve_methods(g, &method, 1);
	serve_client(g);
}

void mover_close(struct mover *m, struct serve_rig *g)
{
	mover_fini(m);
	serve_fini(g);
}

struct ulrpc_bulk *mover_call(struct mover *m, struct serve_rig *g,
			      uint64_t deadline, struct called *c)
{
	bool lends = m->move != MOVE_NOTHING;
	struct ulrpc_bulk *bulk = lends ? mover_lend(m, g->rpc[CALLER]) : NULL;
	const struct ulrpc_call_conf conf = { .deadline = deadline,
					      .bulks = &bulk,
					      .nbulks = lends };

	*c = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(g->client, ulrpc_method("move"), NULL, 0, &conf,
				on_called, c, NULL),
		     0);
	return bulk;
}
