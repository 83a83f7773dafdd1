/* SPDX-License-Identifier: BSD-3-Clause */
/* What services do with bulk. The caller is played by raw match entries. */
#include <criterion/criterion.h>
#include "rpc/crc32c.h"
#include "rpc/transfer.h"
#include "tests/unit/rpc/bulk_rig.h"

#define MATCH UINT64_C(0x123456700)

/* Memory of the caller, as the wire has it. */
struct lent {
	struct rig *g;
	struct memory m; /* one fragment */
	struct wire_segments s;
	uint32_t length[ULRPC_SEGMENTS_MAX], crc[ULRPC_SEGMENTS_MAX];
	struct ulnet_md_handle md[ULRPC_SEGMENTS_MAX];
};

static void lend_segment(struct lent *l, unsigned int i, uint8_t *at,
			 uint32_t length)
{
	struct ulnet_md umd = md_of(at, length, LNET_MD_MANAGE_REMOTE, NULL);
	struct lnet *node = l->g->rpc[CALLER].node;
	struct ulnet_me_handle me;

	umd.options |= l->s.access == WIRE_ACCESS_SOURCE ? LNET_MD_OP_GET
							 : LNET_MD_OP_PUT;
	cr_assert_eq(LNetMEAttach(node, ULRPC_PORTAL_BULK, nth_id(SERVER),
				  MATCH + i, 0, LNET_UNLINK, LNET_INS_AFTER,
				  &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &l->md[i]), 0);
}

/* @n segments of the given lengths. */
static void lend(struct rig *g, struct lent *l, enum ulrpc_bulk_access access,
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

		l->crc[i] = rpc_crc32c(0, p, length[i]);
		lend_segment(l, i, p, length[i]);
		at += length[i];
	}
}

static void lend_equal(struct rig *g, struct lent *l,
		       enum ulrpc_bulk_access access, uint32_t length,
		       unsigned int n)
{
	uint32_t lengths[ULRPC_SEGMENTS_MAX];

	for (unsigned int i = 0; i < n; i++)
		lengths[i] = length;
	lend(g, l, access, lengths, n);
}

static void take_back(struct lent *l)
{
	for (unsigned int i = 0; i < l->s.n; i++)
		LNetMDUnlink(l->md[i]);
	lnet_sim_run_all(l->g->sim);
	cr_assert(memory_guarded(&l->m));
	memory_free(l->g, &l->m);
}

/* The request's part, by way of the wire. @deadline: ms; 0: never. */
static int serve_rc(struct rig *g, const struct wire_segments *s,
		    unsigned int n, uint64_t deadline, unsigned int window,
		    struct transfers **t)
{
	struct transfers_conf conf = { .shard = &g->shard[SERVER],
				       .self = nth_id(SERVER).nid,
				       .peer = nth_id(CALLER),
				       .deadline = TIME_NEVER,
				       .patience = TIME_NEVER,
				       .window = window };
	struct wire_requests head = { .client = 1 };
	struct wire_call call = { .nbulks = n, .bulk = s };
	struct wire_cursor cursor;
	static uint8_t buf[65536];
	uint8_t *p = buf;

	p = wire_requests_put(p, &head);
	p = wire_call_put(p, &call);
	cr_assert_eq(wire_requests_open(&cursor,
					wire_hdr_data(WIRE_REQUESTS, buf,
						      (size_t)(p - buf)),
					buf, (size_t)(p - buf), &head),
		     0);
	cr_assert(wire_requests_next(&cursor, &call));
	if (deadline)
		conf.deadline = lnet_sim_now(g->sim) + deadline * MSEC;
	return transfers_new(&conf, &call, t);
}

static struct transfers *serve(struct lent *l, uint64_t deadline,
			       unsigned int window)
{
	struct transfers *t;

	cr_assert_eq(serve_rc(l->g, &l->s, 1, deadline, window, &t), 0);
	cr_assert_eq(transfers_count(t), 1);
	return t;
}

/* How a transfer ended. */
struct ending {
	struct rig *g;
	unsigned int n;
	int status;
	uint64_t moved;
	uint64_t at;	       /* ns */
	struct memory *retire; /* by then nobody may touch it */
};

static void end(void *arg, int status, uint64_t moved)
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

static int start(struct transfers *t, enum ulrpc_bulk_access access,
		 uint64_t offset, struct memory *m, struct ending *e)
{
	return transfer_start(t, 0, access, offset, m->iov, m->niov, end, e);
}

/* ---- what makes no sense ---- */

Test(transfer, bad_tables)
{
	const uint32_t zero[] = { 5, 0 }, big[] = { 5, LNET_MTU + 1 };
	const uint32_t fine[] = { 5, LNET_MTU };
	const struct wire_segments cases[] = {
		{ .access = WIRE_ACCESS_SOURCE, .n = 2, .length = zero },
		{ .access = WIRE_ACCESS_SINK, .n = 2, .length = big },
		{ .access = 0, .n = 2, .length = fine },
		{ .access = 3, .n = 2, .length = fine },
	};
	struct transfers *t = NULL;
	struct rig g;

	rig_init(&g, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(serve_rc(&g, &cases[i], 1, 0, 1, &t), -EPROTO,
			     "case %u", i);
	cr_assert_null(t);
	cr_assert_eq(serve_rc(&g, NULL, 0, 0, 1, &t), 0);
	cr_assert_null(t);
	rig_fini(&g);
}

Test(transfer, none)
{
	struct ulrpc_bulk_info info;
	uint64_t in = 1, out = 1;
	struct wire_moved moved;

	cr_assert_eq(transfers_count(NULL), 0);
	cr_assert_eq(transfers_info(NULL, 0, &info), -ENOENT);
	cr_assert_eq(
		transfer_start(NULL, 0, ULRPC_BULK_SINK, 0, NULL, 0, end, NULL),
		-ENOENT);
	cr_assert_not(transfer_busy(NULL));
	transfer_abort(NULL, -ECANCELED);
	transfer_crash(NULL);
	cr_assert_eq(transfer_moved(NULL, &moved, 1), 0);
	transfer_bytes(NULL, &in, &out);
	cr_assert_eq(in + out, 0);
	cr_assert_eq(transfer_status(NULL), 0);
	transfers_free(NULL);
}

Test(transfer, bad_arguments)
{
	struct ulrpc_bulk_info info;
	struct iovec no = { NULL, 1 };
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;

	rig_init(&g, 1);
	lend_equal(&g, &l, ULRPC_BULK_SINK, 100, 3);
	t = serve(&l, 0, 4);
	m = memory_new(&g, 300, 0);
	cr_assert_eq(transfers_info(t, 0, &info), 0);
	cr_assert_eq(info.access, ULRPC_BULK_SINK);
	cr_assert_eq(info.length, 300);
	cr_assert_eq(info.segments, 3);
	cr_assert_not(info.checksum);
	cr_assert_eq(transfers_info(t, 1, &info), -ENOENT);
	cr_assert_eq(
		transfer_start(t, 1, ULRPC_BULK_SINK, 0, m.iov, 1, end, NULL),
		-ENOENT);
	cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 0, &m, NULL), -EACCES);
	cr_assert_eq(start(t, ULRPC_BULK_SINK, 1, &m, NULL), -ERANGE);
	cr_assert_eq(start(t, ULRPC_BULK_SINK, UINT64_MAX, &m, NULL), -ERANGE);
	cr_assert_eq(
		transfer_start(t, 0, ULRPC_BULK_SINK, 0, &no, 1, end, NULL),
		-EINVAL);
	cr_assert_eq(
		transfer_start(t, 0, ULRPC_BULK_SINK, 0, NULL, 1, end, NULL),
		-EINVAL);
	cr_assert_eq(
		transfer_start(t, 0, ULRPC_BULK_SINK, 0, m.iov, 1, NULL, NULL),
		-EINVAL);
	cr_assert_eq(transfer_wait(t, 0, ULRPC_BULK_SINK, 0, m.iov, 1),
		     -EDEADLK);
	cr_assert_not(transfer_busy(t));
	transfers_free(t);
	take_back(&l);
	memory_free(&g, &m);
	rig_fini(&g);
}

Test(transfer, nothing_to_move)
{
	struct transfers *t;
	struct lent l;
	struct rig g;
	struct ending e = { .g = &g };

	rig_init(&g, 1);
	lend_equal(&g, &l, ULRPC_BULK_SINK, 100, 3);
	t = serve(&l, 0, 4);
	cr_assert_eq(
		transfer_start(t, 0, ULRPC_BULK_SINK, 300, NULL, 0, end, &e),
		0);
	cr_assert_eq(e.n, 0, "never inside");
	cr_assert(transfer_busy(t));
	lnet_sim_run_all(g.sim);
	cr_assert_eq(e.n, 1);
	cr_assert_eq(e.status, 0);
	cr_assert_eq(e.moved, 0);
	transfers_free(t);
	take_back(&l);
	rig_fini(&g);
}

/* ---- any layout, over links that do what they want ---- */

static void link_of_seed(struct rig *g)
{
	struct ulnet_sim_link link = {
		.latency = rig_random(g, 2 * MSEC),
		.jitter = rig_random(g, MSEC),
		.bandwidth = rig_random(g, 2) ? 0 : 50000000,
	};
	uint32_t *faults[] = { &link.loss,   &link.duplicate, &link.reorder,
			       &link.refuse, &link.error,     &link.stall,
			       &link.mute,   &link.cut };

	link.reorder_window = 5 * MSEC;
	/* Every fourth run is without. */
	if (g->seed % 4)
		for (unsigned int i = 0; i < ARRAY_SIZE(faults); i++)
			*faults[i] = (uint32_t)rig_random(g, 60000);
	cluster_links(g->sim, &link);
}

static void lend_random(struct rig *g, struct lent *l,
			enum ulrpc_bulk_access access)
{
	unsigned int n = 1 + (unsigned int)rig_random(g, 40);
	uint32_t lengths[40], max = 1u << rig_random(g, 13);

	for (unsigned int i = 0; i < n; i++)
		lengths[i] = 1 + (uint32_t)rig_random(g, max);
	lend(g, l, access, lengths, n);
}

static void one_transfer(uint64_t seed)
{
	bool put = seed & 1;
	enum ulrpc_bulk_access access =
		put ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE;
	uint64_t offset, length, in, out;
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;
	struct ending e = { .g = &g };

	rig_init(&g, seed);
	lend_random(&g, &l, access);
	link_of_seed(&g);
	offset = rig_random(&g, l.m.length);
	length = 1 + rig_random(&g, l.m.length - offset);
	m = memory_new(&g, length, 1 + rig_random(&g, 1 << rig_random(&g, 12)));
	memory_fill(&m, 2);
	e.retire = &m;
	t = serve(&l, 0, 1 + (unsigned int)rig_random(&g, 10));
	cr_assert_eq(start(t, access, offset, &m, &e), 0);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(e.n, 1, "seed %llu", (unsigned long long)seed);
	cr_assert_eq(e.status, 0);
	cr_assert_eq(e.moved, length);
	cr_assert_not(transfer_busy(t));
	transfer_bytes(t, &in, &out);
	cr_assert_eq(put ? out : in, length);
	cr_assert_eq(put ? in : out, 0);
	if (put) {
		cr_assert(memory_is(&l.m, 0, offset, 1, 0));
		cr_assert(memory_is(&l.m, offset, length, 2, 0));
		cr_assert(memory_is(&l.m, offset + length,
				    l.m.length - offset - length, 1,
				    offset + length));
	} else {
		cr_assert(memory_is(&m, 0, length, 1, offset));
	}
	cr_assert(memory_guarded(&m));
	transfers_free(t);
	take_back(&l);
	memory_free(&g, &m);
	rig_fini(&g);
}

Test(transfer, any_layout)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		printf("seed %llu\n", (unsigned long long)seed);
		one_transfer(seed);
	}
}

/* 64 segments of 1 MiB, there and back, with one byte too many on this side's
 * fragments. */
Test(transfer, large)
{
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;
	struct ending e = { .g = &g };

	for (unsigned int put = 0; put < 2; put++) {
		enum ulrpc_bulk_access access =
			put ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE;

		rig_init(&g, 1);
		cluster_links(g.sim, &(struct ulnet_sim_link){ .loss = 50000 });
		lend_equal(&g, &l, access, LNET_MTU, 64);
		m = memory_new(&g, l.m.length, LNET_MTU + 1);
		memory_fill(&m, 2);
		t = serve(&l, 0, 8);
		cr_assert_eq(start(t, access, 0, &m, &e), 0);
		lnet_sim_run_all(g.sim);
		cr_assert_eq(e.n, put + 1);
		cr_assert_eq(e.status, 0);
		cr_assert(put ? memory_is(&l.m, 0, l.m.length, 2, 0)
			      : memory_is(&m, 0, m.length, 1, 0));
		transfers_free(t);
		take_back(&l);
		memory_free(&g, &m);
		rig_fini(&g);
	}
}

/* ---- pace ---- */

/* A window is in flight, and each piece that ends makes room for one more: 10
 * pieces, 4 at a time, take three round trips. */
Test(transfer, window)
{
	const unsigned int windows[] = { 1, 4, 8, 1000 },
			   trips[] = { 10, 3, 2, 1 };
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;

	for (unsigned int i = 0; i < ARRAY_SIZE(windows); i++) {
		struct ending e = { .g = &g };

		rig_init(&g, 1);
		cluster_links(g.sim,
			      &(struct ulnet_sim_link){ .latency = MSEC });
		lend_equal(&g, &l, ULRPC_BULK_SINK, 100, 10);
		m = memory_new(&g, 1000, 0);
		t = serve(&l, 0, windows[i]);
		cr_assert_eq(start(t, ULRPC_BULK_SINK, 0, &m, &e), 0);
		lnet_sim_run_all(g.sim);
		cr_assert_eq(e.n, 1);
		cr_assert_eq((e.at + MSEC) / (2 * MSEC), trips[i],
			     "window %u: %llu ns", windows[i],
			     (unsigned long long)e.at);
		transfers_free(t);
		take_back(&l);
		memory_free(&g, &m);
		rig_fini(&g);
	}
}

/* It is one window for all transfers of a request: 20 pieces, 4 at a time. */
Test(transfer, window_of_a_request)
{
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;
	struct ending e[3] = { { .g = &g }, { .g = &g }, { .g = &g } };

	rig_init(&g, 1);
	cluster_links(g.sim, &(struct ulnet_sim_link){ .latency = MSEC });
	lend_equal(&g, &l, ULRPC_BULK_SOURCE, 100, 10);
	m = memory_new(&g, 1000, 0);
	t = serve(&l, 0, 4);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 0, &m, &e[i]), 0);
	cr_assert_eq(
		transfer_start(t, 0, ULRPC_BULK_SOURCE, 0, NULL, 0, end, &e[2]),
		0);
	lnet_sim_run_all(g.sim);
	cr_assert_lt(e[2].at, MSEC, "needs no room");
	cr_assert_eq((e[0].at + MSEC) / (2 * MSEC), 3);
	cr_assert_eq((e[1].at + MSEC) / (2 * MSEC), 5);
	transfers_free(t);
	take_back(&l);
	memory_free(&g, &m);
	rig_fini(&g);
}

static void mend(void *arg)
{
	cluster_links(arg, &(struct ulnet_sim_link){ 0 });
}

/* All is lost at first: it is tried again long before the deadline. */
Test(transfer, lost_pieces_are_retried_in_time)
{
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;

	for (unsigned int put = 0; put < 2; put++) {
		enum ulrpc_bulk_access access =
			put ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE;
		struct ending e = { .g = &g };

		rig_init(&g, 1);
		cluster_links(g.sim, &(struct ulnet_sim_link){
					     .loss = LNET_SIM_ALWAYS });
		lend_equal(&g, &l, access, 100, 10);
		m = memory_new(&g, 1000, 0);
		t = serve(&l, 4000, 4);
		cr_assert_eq(start(t, access, 0, &m, &e), 0);
		lnet_sim_run(g.sim, 500 * MSEC);
		mend(g.sim);
		lnet_sim_run_all(g.sim);
		cr_assert_eq(e.n, 1);
		cr_assert_eq(e.status, 0);
		cr_assert_leq(e.at, 1200 * MSEC);
		transfers_free(t);
		take_back(&l);
		memory_free(&g, &m);
		rig_fini(&g);
	}
}

/* What was certainly not delivered is tried again at once, then at a pace that
 * slows down; and when that has ended well, it is through. */
Test(transfer, refused_pieces_are_paced)
{
	struct ulnet_sim_stats before, after;
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;
	struct ending e = { .g = &g };

	rig_init(&g, 1);
	cluster_links(g.sim,
		      &(struct ulnet_sim_link){ .refuse = LNET_SIM_ALWAYS });
	lend_equal(&g, &l, ULRPC_BULK_SOURCE, 100, 1);
	m = memory_new(&g, 100, 0);
	t = serve(&l, 0, 4);
	lnet_sim_stats(g.sim, &before);
	cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 0, &m, &e), 0);
	lnet_sim_run(g.sim, MSEC / 1000);
	lnet_sim_stats(g.sim, &after);
	cr_assert_geq(after.operations - before.operations, 2);
	lnet_sim_run(g.sim, 10000 * MSEC);
	lnet_sim_stats(g.sim, &after);
	cr_assert_leq(after.operations - before.operations, 40);
	cr_assert_geq(after.operations - before.operations, 8);
	cr_assert_eq(e.n, 0);
	mend(g.sim);
	lnet_sim_run(g.sim, 5000 * MSEC);
	cr_assert_eq(e.n, 1);
	cr_assert_eq(e.status, 0);
	transfers_free(t);
	take_back(&l);
	memory_free(&g, &m);
	rig_fini(&g);
}

/* ---- endings ---- */

/* The third of five segments is not there: by the deadline that is said, and
 * where; memory is the handler's then, whatever is still on its way. */
Test(transfer, deadline)
{
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;

	for (unsigned int put = 0; put < 2; put++) {
		enum ulrpc_bulk_access access =
			put ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE;
		struct ending e = { .g = &g, .retire = &m };

		rig_init(&g, 1);
		lend_equal(&g, &l, access, 100, 5);
		LNetMDUnlink(l.md[2]);
		m = memory_new(&g, 450, 7);
		t = serve(&l, 2000, 2);
		cr_assert_eq(start(t, access, 50, &m, &e), 0);
		lnet_sim_run_all(g.sim);
		cr_assert_eq(e.n, 1);
		cr_assert_eq(e.status, -ETIMEDOUT);
		cr_assert_eq(e.moved, 150);
		cr_assert_leq(e.at, 2001 * MSEC);
		cr_assert_geq(e.at, 1900 * MSEC);
		cr_assert_eq(transfer_status(t), -ETIMEDOUT);
		e.n = 0;
		cr_assert_eq(start(t, access, 50, &m, &e), 0);
		lnet_sim_run_all(g.sim);
		cr_assert_eq(e.n, 1);
		cr_assert_eq(e.status, -ETIMEDOUT, "it has passed");
		transfers_free(t);
		take_back(&l);
		memory_free(&g, &m);
		rig_fini(&g);
	}
}

/* Nothing passes, either way, for ever. */
Test(transfer, partition)
{
	const struct ulnet_id a = nth_id(0), b = nth_id(1);
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;
	struct ending e = { .g = &g, .retire = &m };

	rig_init(&g, 1);
	lend_equal(&g, &l, ULRPC_BULK_SINK, 100, 5);
	cr_assert_eq(lnet_sim_partition(g.sim, &a.nid, &b.nid, true), 0);
	m = memory_new(&g, 500, 7);
	t = serve(&l, 10000, 2);
	cr_assert_eq(start(t, ULRPC_BULK_SINK, 0, &m, &e), 0);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(e.n, 1);
	cr_assert_lt(e.status, 0);
	cr_assert_eq(e.moved, 0);
	cr_assert_leq(e.at, 10001 * MSEC);
	transfers_free(t);
	take_back(&l);
	memory_free(&g, &m);
	rig_fini(&g);
}

struct waiting {
	struct ending *a, *b;
	unsigned int n;
};

static void none_left(void *arg)
{
	struct waiting *w = arg;

	w->n++;
	cr_assert_eq(w->a->n, 1);
	cr_assert_eq(w->b->n, 1);
}

/* In the midst of what comes in: memory is free only when that is over. */
Test(transfer, abort)
{
	for (uint64_t after = 0; after < 30; after++) {
		struct transfers *t;
		struct memory m, n;
		struct lent l;
		struct rig g;
		struct ending e = { .g = &g, .retire = &m };
		struct ending f = { .g = &g, .retire = &n };
		struct waiting w = { &e, &f, 0 };

		rig_init(&g, after + 1);
		cluster_links(g.sim,
			      &(struct ulnet_sim_link){ .latency = MSEC,
							.bandwidth = 1000000,
							.stall = 100000 });
		lend_equal(&g, &l, ULRPC_BULK_SOURCE, 1000, 20);
		m = memory_new(&g, 20000, 700);
		n = memory_new(&g, 9000, 9000);
		t = serve(&l, 100000, 4);
		cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 0, &m, &e), 0);
		cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 10, &n, &f), 0);
		lnet_sim_run(g.sim, after * MSEC / 2);
		cr_assert_eq(e.n, 0);
		transfer_on_done(t, none_left, &w);
		transfer_abort(t, -ECANCELED);
		transfer_abort(t, -EINVAL);
		cr_assert_eq(e.n, 0, "never inside");
		lnet_sim_run_all(g.sim);
		cr_assert_eq(e.n, 1);
		cr_assert_eq(f.n, 1);
		cr_assert_eq(w.n, 1);
		cr_assert(f.status == -ECANCELED || f.moved == 9000);
		cr_assert_eq(e.status, -ECANCELED);
		cr_assert_lt(e.moved, 20000);
		cr_assert(memory_is(&m, 0, e.moved, 1, 0));
		cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 10, &n, &f), 0);
		lnet_sim_run_all(g.sim);
		cr_assert_eq(f.n, 2);
		cr_assert_eq(f.status, -ECANCELED);
		transfers_free(t);
		take_back(&l);
		memory_free(&g, &m);
		memory_free(&g, &n);
		rig_fini(&g);
	}
}

static void free_all(void *arg)
{
	struct transfers **t = arg;

	transfers_free(*t);
	*t = NULL;
}

/* The last one's end may free everything. */
Test(transfer, freed_when_done)
{
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;
	struct ending e = { .g = &g };

	rig_init(&g, 1);
	lend_equal(&g, &l, ULRPC_BULK_SINK, 100, 5);
	m = memory_new(&g, 500, 7);
	t = serve(&l, 10000, 2);
	cr_assert_eq(start(t, ULRPC_BULK_SINK, 0, &m, &e), 0);
	transfer_on_done(t, free_all, &t);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(e.n, 1);
	cr_assert_null(t);
	take_back(&l);
	memory_free(&g, &m);
	rig_fini(&g);
}

/* A request is lost while its handler still wants something. */
Test(transfer, freed_before_it_is_done)
{
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;
	struct ending e = { .g = &g, .retire = &m };

	rig_init(&g, 1);
	lend_equal(&g, &l, ULRPC_BULK_SINK, 100, 5);
	m = memory_new(&g, 500, 7);
	t = serve(&l, 10000, 2);
	cr_assert_eq(start(t, ULRPC_BULK_SINK, 0, &m, &e), 0);
	transfer_abort(t, -ESHUTDOWN);
	transfers_free(t);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(e.n, 1);
	cr_assert_eq(e.status, -ESHUTDOWN);
	take_back(&l);
	memory_free(&g, &m);
	rig_fini(&g);
}

/* A caller whose memory is shorter than it has said. */
Test(transfer, short_memory)
{
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;

	for (unsigned int put = 0; put < 2; put++) {
		enum ulrpc_bulk_access access =
			put ? ULRPC_BULK_SINK : ULRPC_BULK_SOURCE;
		struct ending e = { .g = &g };
		struct ulnet_md umd;
		struct ulnet_me_handle me;

		rig_init(&g, 1);
		lend_equal(&g, &l, access, 100, 2);
		LNetMDUnlink(l.md[1]);
		umd = md_of((uint8_t *)l.m.iov->iov_base + 100, 99,
			    LNET_MD_MANAGE_REMOTE | LNET_MD_TRUNCATE |
				    (put ? LNET_MD_OP_PUT : LNET_MD_OP_GET),
			    NULL);
		cr_assert_eq(LNetMEAttach(g.rpc[CALLER].node, ULRPC_PORTAL_BULK,
					  nth_id(SERVER), MATCH + 1, 0,
					  LNET_UNLINK, LNET_INS_AFTER, &me),
			     0);
		cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &l.md[1]), 0);
		m = memory_new(&g, 200, 7);
		t = serve(&l, 10000, 2);
		cr_assert_eq(start(t, access, 0, &m, &e), 0);
		lnet_sim_run_all(g.sim);
		cr_assert_eq(e.n, 1);
		cr_assert_eq(e.status, -EPROTO);
		cr_assert_eq(e.moved, 100);
		cr_assert_lt(e.at, 1000 * MSEC, "no use in trying again");
		transfers_free(t);
		take_back(&l);
		memory_free(&g, &m);
		rig_fini(&g);
	}
}

/* The node crashes with transfers in all states. */
Test(transfer, crash)
{
	struct transfers *t;
	struct memory m, n;
	struct lent l;
	struct rig g;
	struct ending e = { .g = &g };

	rig_init(&g, 1);
	lend_equal(&g, &l, ULRPC_BULK_SOURCE, 1000, 20);
	m = memory_new(&g, 20000, 700);
	n = memory_new(&g, 1000, 700);
	t = serve(&l, 100000, 4);
	cluster_links(g.sim,
		      &(struct ulnet_sim_link){ .refuse = LNET_SIM_ALWAYS });
	cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 10, &n, &e), 0);
	lnet_sim_run(g.sim, 10 * MSEC);
	cluster_links(g.sim, &(struct ulnet_sim_link){ .latency = 5 * MSEC,
						       .bandwidth = 1000000 });
	cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 0, &m, &e), 0);
	lnet_sim_run(g.sim, 11 * MSEC);
	cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 0, &n, &e), 0);
	cr_assert_eq(
		transfer_start(t, 0, ULRPC_BULK_SOURCE, 0, NULL, 0, end, &e),
		0);
	transfer_crash(t);
	cr_assert_eq(lnet_sim_crash(g.sim, SERVER), 0);
	transfers_free(t);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(e.n, 0);
	take_back(&l);
	memory_free(&g, &m);
	memory_free(&g, &n);
	rig_end(&g);
}

/* ---- checksums ---- */

Test(transfer, source_checksums)
{
	struct ulrpc_bulk_info info;
	struct transfers *t;
	struct memory m, part;
	struct lent l;
	struct rig g;
	struct ending e = { .g = &g };

	rig_init(&g, 1);
	lend_equal(&g, &l, ULRPC_BULK_SOURCE, 1000, 5);
	l.s.checksum = l.crc;
	/* Fragments of a byte: several pieces for a segment. */
	m = memory_new(&g, 3000, 1);
	t = serve(&l, 0, 3);
	cr_assert_eq(transfers_info(t, 0, &info), 0);
	cr_assert(info.checksum);
	cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 1000, &m, &e), 0);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(e.n, 1);
	cr_assert_eq(e.status, 0);
	cr_assert(memory_is(&m, 0, 3000, 1, 1000));
	/* Parts of segments have none. */
	cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 999, &m, &e), -EINVAL);
	part = memory_new(&g, 999, 0);
	cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 0, &part, &e), -EINVAL);
	/* Changed on the way, or since. */
	((uint8_t *)l.m.iov->iov_base)[3999]++;
	cr_assert_eq(start(t, ULRPC_BULK_SOURCE, 1000, &m, &e), 0);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(e.n, 2);
	cr_assert_eq(e.status, -EBADMSG);
	cr_assert_leq(e.moved, 2999);
	cr_assert_geq(e.moved, 2000);
	transfers_free(t);
	take_back(&l);
	memory_free(&g, &m);
	memory_free(&g, &part);
	rig_fini(&g);
}

/* Puts @length bytes of @m. */
static int put_part(struct rig *g, struct transfers *t, uint64_t offset,
		    struct memory *m, size_t length)
{
	struct iovec v = { m->iov->iov_base, length };
	struct ending e = { .g = g };

	cr_assert_eq(
		transfer_start(t, 0, ULRPC_BULK_SINK, offset, &v, 1, end, &e),
		0);
	lnet_sim_run_all(g->sim);
	cr_assert_eq(e.n, 1);
	return e.status;
}

/* Is what is said of segment @i true, and of @length bytes? */
static bool said(const struct lent *l, const struct wire_moved *w,
		 unsigned int i, uint32_t length)
{
	const uint8_t *p = l->m.iov->iov_base;

	for (unsigned int k = 0; k < i; k++)
		p += l->length[k];
	return i < w->n &&
	       (w->length ? w->length[i] : l->length[i]) == length &&
	       w->checksum[i] == rpc_crc32c(0, p, length);
}

Test(transfer, sink_checksums)
{
	struct wire_moved w;
	struct transfers *t;
	struct memory m;
	struct lent l;
	struct rig g;

	rig_init(&g, 1);
	lend_equal(&g, &l, ULRPC_BULK_SINK, 1000, 5);
	l.s.checked = true;
	m = memory_new(&g, 5000, 0);
	memory_fill(&m, 7);
	t = serve(&l, 10000, 3);
	cr_assert_eq(transfer_moved(t, &w, 1), 0);
	cr_assert_eq(put_part(&g, t, 0, &m, 2000), 0);
	cr_assert_eq(transfer_moved(t, &w, 1), 1);
	cr_assert_eq(w.index, 0);
	cr_assert_eq(w.n, 2);
	cr_assert_null(w.length);
	cr_assert(said(&l, &w, 0, 1000) && said(&l, &w, 1, 1000));
	/* Ends within a segment, and goes on there. */
	cr_assert_eq(put_part(&g, t, 3000, &m, 1100), 0);
	cr_assert_eq(transfer_moved(t, &w, 1), 1);
	cr_assert_eq(w.n, 5);
	cr_assert(said(&l, &w, 1, 1000) && said(&l, &w, 2, 0) &&
		  said(&l, &w, 3, 1000) && said(&l, &w, 4, 100));
	cr_assert_eq(put_part(&g, t, 4100, &m, 30), 0);
	cr_assert(said(&l, &w, 4, 130));
	/* There is a gap; what was known stays known. */
	cr_assert_eq(put_part(&g, t, 4131, &m, 30), -EINVAL);
	cr_assert(said(&l, &w, 4, 130));
	/* Once more from the segment's beginning, and less. */
	cr_assert_eq(put_part(&g, t, 4000, &m, 60), 0);
	cr_assert(said(&l, &w, 4, 60));
	/* What did not arrive is not spoken of. */
	LNetMDUnlink(l.md[3]);
	cr_assert_eq(put_part(&g, t, 3000, &m, 1000), -ETIMEDOUT);
	cr_assert(said(&l, &w, 3, 0) && said(&l, &w, 4, 60));
	transfers_free(t);
	take_back(&l);
	memory_free(&g, &m);
	rig_fini(&g);
}
