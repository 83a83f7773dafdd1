/* SPDX-License-Identifier: BSD-3-Clause */
/* A service's side of one bulk, and its caller: see the header. */
#include "tests/unit/rpc/bulk/transfer_rig.h"

static void on_lent(const struct ulnet_event *ev)
{
	struct lent *l = ev->user_ptr;

	l->linked -= ev->unlinked;
}

static void lend_segment(struct lent *l, unsigned int i, uint8_t *at,
			 uint32_t length)
{
	struct ulnet_md umd = md_of(at, length, LNET_MD_MANAGE_REMOTE, NULL);
	struct lnet *node = l->g->rpc[CALLER].node;
	struct ulnet_me_handle me;

	umd.options |= l->s.access == WIRE_ACCESS_SOURCE ? LNET_MD_OP_GET
							 : LNET_MD_OP_PUT;
	cr_assert_eq(LNetMEAttach(node, ULRPC_PORTAL_BULK, nth_id(SERVER),
				  l->s.match + i, 0, LNET_UNLINK,
				  LNET_INS_AFTER, &me),
		     0);
	umd.user_ptr = l;
	umd.handler = on_lent;
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &l->md[i]), 0);
	l->linked++;
}

static void lend_segments(struct lent *l)
{
	uint8_t *p = l->m.iov->iov_base;

	for (unsigned int i = 0; i < l->s.n; i++) {
		lend_segment(l, i, p, l->length[i]);
		p += l->length[i];
	}
}

void lend_again(struct lent *l)
{
	for (unsigned int i = 0; i < l->s.n; i++)
		LNetMDUnlink(l->md[i]);
	l->s.match += 256;
	lend_segments(l);
}

void lend(struct rig *g, struct lent *l, enum ulrpc_bulk_access access,
	  const uint32_t *length, unsigned int n)
{
	size_t sum = 0, at = 0;

	*l = (struct lent){ .g = g };
	for (unsigned int i = 0; i < n; i++)
		sum += l->length[i] = length[i];
	l->m = memory_new(g, sum, 0);
	memory_fill(&l->m, 1);
	l->s = (struct wire_segments){
		.match = MATCH, .access = access, .n = n, .length = l->length
	};
	for (unsigned int i = 0; i < n; i++) {
		uint8_t *p = (uint8_t *)l->m.iov->iov_base + at;

		l->crc[i] = crc32c(0, p, length[i]);
		at += length[i];
	}
	lend_segments(l);
}

void lend_equal(struct rig *g, struct lent *l, enum ulrpc_bulk_access access,
		uint32_t length, unsigned int n)
{
	uint32_t lengths[ULRPC_SEGMENTS_MAX];

	for (unsigned int i = 0; i < n; i++)
		lengths[i] = length;
	lend(g, l, access, lengths, n);
}

void take_back(struct lent *l)
{
	for (unsigned int i = 0; i < l->s.n; i++)
		LNetMDUnlink(l->md[i]);
	while (l->linked)
		lnet_sim_run(l->g->sim, MSEC / 1000);
	memory_retire(l->g, &l->m);
	lnet_sim_run_all(l->g->sim);
	cr_assert_eq(lnet_sim_check(l->g->sim), 0);
	cr_assert(memory_guarded(&l->m));
	memory_free(l->g, &l->m);
}

struct transfers_conf conf_of(struct rig *g, uint64_t deadline,
			      unsigned int window)
{
	return (struct transfers_conf){
		.shard = &g->shard[SERVER],
		.self = nth_id(SERVER).nid,
		.peer = nth_id(CALLER),
		.deadline = deadline ? lnet_sim_now(g->sim) + deadline * MSEC
				     : TIME_NEVER,
		.retry_time = TIME_NEVER,
		.window = window,
	};
}

const struct wire_call *call_of(const struct wire_segments *s, unsigned int n)
{
	struct wire_requests head = { .client = 1 };
	struct wire_call call = { .bulks = { .n = n, .list = s } };
	static struct wire_call got[WIRE_CALLS_MAX];
	static uint8_t buf[65536];
	uint8_t *p = buf;

	p = wire_requests_put(p, &head);
	p = wire_call_put(p, &call);
	cr_assert_eq(wire_requests_decode(&head, got,
					  &(struct wire_common){ 0 },
					  wire_hdr_data(WIRE_REQUESTS, buf,
							(size_t)(p - buf)),
					  buf, (size_t)(p - buf)),
		     0);
	cr_assert_eq(head.ncalls, 1);
	return &got[0];
}

int serve_rc(struct rig *g, const struct wire_segments *s, unsigned int n,
	     uint64_t deadline, unsigned int window, struct transfers **t)
{
	struct transfers_conf conf = conf_of(g, deadline, window);

	return transfers_new(&conf, call_of(s, n), t);
}

void end(void *arg, int status, uint64_t moved)
{
	struct ending *e = arg;

	e->n++;
	e->status = status;
	e->moved = moved;
	e->at = lnet_sim_now(e->g->sim);
	if (e->retire)
		memory_retire(e->g, e->retire);
	e->retire = NULL;
}

enum ulrpc_bulk_access access_of(bool put)
{
	return put ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE;
}

void stage_serve(struct stage *s, uint64_t deadline, unsigned int window)
{
	cr_assert_eq(serve_rc(&s->g, &s->l.s, 1, deadline, window, &s->t), 0);
	cr_assert_eq(transfers_count(s->t), 1);
}

void stage_open(struct stage *s, const struct plan *p)
{
	rig_init(&s->g, p->seed ? p->seed : 1);
	lend_equal(&s->g, &s->l, p->access ? p->access : ULRPC_BULK_SOURCE,
		   p->length ? p->length : 100, p->n ? p->n : 10);
	s->m = memory_new(&s->g, p->own ? p->own : s->l.m.length, p->fragment);
	memory_fill(&s->m, 2);
	stage_serve(s, p->deadline, p->window ? p->window : 4);
	s->e = (struct ending){ .g = &s->g };
}

void stage_leave(struct stage *s)
{
	take_back(&s->l);
	memory_free(&s->g, &s->m);
	rig_fini(&s->g);
}

void stage_close(struct stage *s)
{
	transfers_free(s->t);
	stage_leave(s);
}

int start_of(struct stage *s, enum ulrpc_bulk_access access, uint64_t offset,
	     struct memory *m, struct ending *e)
{
	return transfer_start(s->t, 0, access, offset, m->iov, m->niov, end, e);
}

int start(struct stage *s, uint64_t offset)
{
	return start_of(s, (enum ulrpc_bulk_access)s->l.s.access, offset, &s->m,
			&s->e);
}

int start_nothing(struct stage *s, uint64_t offset, struct ending *e)
{
	return transfer_start(s->t, 0, (enum ulrpc_bulk_access)s->l.s.access,
			      offset, NULL, 0, end, e);
}

void ends(struct stage *s, int status)
{
	unsigned int before = s->e.n;

	lnet_sim_run_all(s->g.sim);
	cr_assert_eq(s->e.n, before + 1, "seed %llu",
		     (unsigned long long)s->g.seed);
	cr_assert_eq(s->e.status, status, "%d", s->e.status);
}

bool all_moved(const struct stage *s)
{
	if (s->l.s.access == ULRPC_BULK_SOURCE)
		return memory_is(&s->m, 0, s->m.length, 1, 0);
	return memory_is(&s->l.m, 0, s->m.length, 2, 0);
}

const struct ulnet_sim_link link_loses_all = { .loss = LNET_SIM_ALWAYS };
const struct ulnet_sim_link link_refuses_all = { .refuse = LNET_SIM_ALWAYS };
const struct ulnet_sim_link link_good = { 0 };
