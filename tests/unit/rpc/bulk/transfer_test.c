/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers of services. The test plays the caller with raw match entries. */
#include "tests/unit/rpc/bulk/transfer_rig.h"

/* ---- descriptions and arguments that make no sense ---- */

Test(transfer, bad_tables)
{
	const uint32_t zero[] = { 5, 0 }, big[] = { 5, LNET_MTU + 1 };
	const uint32_t fine[] = { 5, LNET_MTU };
	const struct wire_segments cases[] = {
		{ .access = WIRE_ACCESS_SOURCE, .n = 2, .length = zero },
		{ .access = WIRE_ACCESS_SINK, .n = 2, .length = big },
		{ .access = 0, .n = 2, .length = fine },
		{ .access = 4, .n = 2, .length = fine },
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
	struct transfer_waiter w;
	struct iovec *iov;
	struct stage s;

	stage_open(&s, &(struct plan){ .access = ULRPC_BULK_SINK, .n = 3 });
	iov = s.m.iov;
	cr_assert_eq(transfers_info(s.t, 0, &info), 0);
	cr_assert_eq(info.access, ULRPC_BULK_SINK);
	cr_assert_eq(info.length, 300);
	cr_assert_eq(info.segments, 3);
	cr_assert_not(info.checksum);
	cr_assert_eq(transfers_info(s.t, 1, &info), -ENOENT);
	cr_assert_eq(
		transfer_start(s.t, 1, ULRPC_BULK_SINK, 0, iov, 1, end, NULL),
		-ENOENT);
	cr_assert_eq(start_of(&s, ULRPC_BULK_SOURCE, 0, &s.m, NULL), -EACCES);
	cr_assert_eq(start(&s, 1), -ERANGE);
	cr_assert_eq(start(&s, UINT64_MAX), -ERANGE);
	cr_assert_eq(
		transfer_start(s.t, 0, ULRPC_BULK_SINK, 0, &no, 1, end, NULL),
		-EINVAL);
	cr_assert_eq(
		transfer_start(s.t, 0, ULRPC_BULK_SINK, 0, NULL, 1, end, NULL),
		-EINVAL);
	cr_assert_eq(
		transfer_start(s.t, 0, ULRPC_BULK_SINK, 0, iov, 1, NULL, NULL),
		-EINVAL);
	cr_assert_eq(
		transfer_wait_begin(s.t, 0, ULRPC_BULK_SINK, 0, iov, 1, &w),
		-EDEADLK);
	cr_assert_not(transfer_busy(s.t));
	stage_close(&s);
}

Test(transfer, nothing_to_move)
{
	struct stage s;

	stage_open(&s, &(struct plan){ .access = ULRPC_BULK_SINK, .n = 3 });
	cr_assert_eq(start_nothing(&s, 300, &s.e), 0);
	cr_assert_eq(s.e.n, 0, "never inside");
	cr_assert(transfer_busy(s.t));
	ends(&s, 0);
	cr_assert_eq(s.e.moved, 0);
	stage_close(&s);
}

/* ---- any layout, over links with faults ---- */

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
	/* The links of every fourth run have no faults. */
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
	uint64_t offset, length, in, out;
	struct stage s = { .e = { .g = &s.g, .retire = &s.m } };
	struct memory *lent = &s.l.m, *m = &s.m;

	rig_init(&s.g, seed);
	lend_random(&s.g, &s.l, access_of(put));
	link_of_seed(&s.g);
	offset = rig_random(&s.g, lent->length);
	length = 1 + rig_random(&s.g, lent->length - offset);
	*m = memory_new(&s.g, length,
			1 + rig_random(&s.g, 1 << rig_random(&s.g, 12)));
	memory_fill(m, 2);
	stage_serve(&s, 0, 1 + (unsigned int)rig_random(&s.g, 10));
	cr_assert_eq(start(&s, offset), 0);
	ends(&s, 0);
	cr_assert_eq(s.e.moved, length);
	cr_assert_not(transfer_busy(s.t));
	transfer_bytes(s.t, &in, &out);
	cr_assert_eq(put ? out : in, length);
	cr_assert_eq(put ? in : out, 0);
	if (put) {
		cr_assert(memory_is(lent, 0, offset, 1, 0));
		cr_assert(memory_is(lent, offset, length, 2, 0));
		cr_assert(memory_is(lent, offset + length,
				    lent->length - offset - length, 1,
				    offset + length));
	} else {
		cr_assert(memory_is(m, 0, length, 1, offset));
	}
	cr_assert(memory_guarded(m));
	stage_close(&s);
}

Test(transfer, any_layout)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		printf("seed %llu\n", (unsigned long long)seed);
		one_transfer(seed);
	}
}

/* 64 segments of 1 MiB are moved in both directions; the service's fragments
 * are a byte longer. */
Test(transfer, large)
{
	for (unsigned int put = 0; put < 2; put++) {
		struct stage s;

		stage_open(&s, &(struct plan){ .access = access_of(put),
					       .length = LNET_MTU,
					       .n = 64,
					       .fragment = LNET_MTU + 1,
					       .window = 8 });
		cluster_links(s.g.sim,
			      &(struct ulnet_sim_link){ .loss = 50000 });
		cr_assert_eq(start(&s, 0), 0);
		ends(&s, 0);
		cr_assert(all_moved(&s));
		stage_close(&s);
	}
}

/* ---- how many at a time, and how soon again ---- */

/* At most a window of chunks is under way, and each that ends makes room for
 * another: 10 chunks, 4 at a time, take three round trips. */
Test(transfer, window)
{
	const unsigned int windows[] = { 1, 4, 8, 1000 },
			   trips[] = { 10, 3, 2, 1 };

	for (unsigned int i = 0; i < ARRAY_SIZE(windows); i++) {
		struct stage s;

		stage_open(&s, &(struct plan){ .access = ULRPC_BULK_SINK,
					       .window = windows[i] });
		cluster_links(s.g.sim,
			      &(struct ulnet_sim_link){ .latency = MSEC });
		cr_assert_eq(start(&s, 0), 0);
		ends(&s, 0);
		cr_assert_eq((s.e.at + MSEC) / (2 * MSEC), trips[i],
			     "window %u: %llu ns", windows[i],
			     (unsigned long long)s.e.at);
		stage_close(&s);
	}
}

/* All transfers of a request share one window: two transfers have 20 chunks, 4
 * of them at a time. */
Test(transfer, window_of_a_request)
{
	struct stage s;
	struct ending e[3] = { { .g = &s.g }, { .g = &s.g }, { .g = &s.g } };

	stage_open(&s, &(struct plan){ 0 });
	cluster_links(s.g.sim, &(struct ulnet_sim_link){ .latency = MSEC });
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(start_of(&s, ULRPC_BULK_SOURCE, 0, &s.m, &e[i]),
			     0);
	cr_assert_eq(start_nothing(&s, 0, &e[2]), 0);
	lnet_sim_run_all(s.g.sim);
	cr_assert_lt(e[2].at, MSEC, "needs no room");
	cr_assert_eq((e[0].at + MSEC) / (2 * MSEC), 3);
	cr_assert_eq((e[1].at + MSEC) / (2 * MSEC), 5);
	stage_close(&s);
}

/* A transfer that uses the whole window fails while its chunks wait for its
 * timer: then another one that waits for room must go on. */
Test(transfer, the_window_of_a_transfer_that_failed)
{
	struct transfer *x;
	struct ending e[2];
	struct stage s;

	stage_open(&s, &(struct plan){ .deadline = 1000, .window = 2 });
	cluster_links(s.g.sim, &link_refuses_all);
	for (unsigned int i = 0; i < 2; i++) {
		e[i] = (struct ending){ .g = &s.g };
		cr_assert_eq(start_of(&s, ULRPC_BULK_SOURCE, 0, &s.m, &e[i]),
			     0);
	}
	lnet_sim_run(s.g.sim, 500 * MSEC);
	x = list_first(&s.t->active, struct transfer, link);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(x->chunks[i].fsm.state, CHUNK_WAITING);
	shard_arm(&s.g.shard[SERVER], &x->timer,
		  lnet_sim_now(s.g.sim) + 600 * MSEC);
	lnet_sim_run_all(s.g.sim);
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(e[i].n, 1, "transfer %u", i);
		cr_assert_lt(e[i].status, 0);
	}
	stage_close(&s);
}

/* All messages are lost at first. They must be repeated long before the
 * deadline. */
Test(transfer, lost_chunks_are_repeated_in_time)
{
	for (unsigned int put = 0; put < 2; put++) {
		struct stage s;

		stage_open(&s, &(struct plan){ .access = access_of(put),
					       .deadline = 4000 });
		cluster_links(s.g.sim, &link_loses_all);
		cr_assert_eq(start(&s, 0), 0);
		lnet_sim_run(s.g.sim, 500 * MSEC);
		cr_assert_eq(s.e.n, 0);
		cluster_links(s.g.sim, &link_good);
		ends(&s, 0);
		cr_assert_leq(s.e.at, 1200 * MSEC);
		stage_close(&s);
	}
}

/* Messages that were certainly not delivered are repeated at once, and then at
 * growing intervals. When they get through, the transfer succeeds. */
Test(transfer, refused_chunks_are_paced)
{
	struct ulnet_sim_stats before, after;
	struct stage s;

	stage_open(&s, &(struct plan){ .n = 1 });
	cluster_links(s.g.sim, &link_refuses_all);
	lnet_sim_stats(s.g.sim, &before);
	cr_assert_eq(start(&s, 0), 0);
	lnet_sim_run(s.g.sim, MSEC / 1000);
	lnet_sim_stats(s.g.sim, &after);
	cr_assert_geq(after.operations - before.operations, 2);
	lnet_sim_run(s.g.sim, 10000 * MSEC);
	lnet_sim_stats(s.g.sim, &after);
	cr_assert_leq(after.operations - before.operations, 60);
	cr_assert_geq(after.operations - before.operations, 20);
	cr_assert_eq(s.e.n, 0);
	cluster_links(s.g.sim, &link_good);
	lnet_sim_run(s.g.sim, 5000 * MSEC);
	cr_assert_eq(s.e.n, 1);
	cr_assert_eq(s.e.status, 0);
	stage_close(&s);
}

/* ---- how transfers end ---- */

/* The third of five segments is not linked: the transfer fails at the deadline,
 * and reports how much it has moved. From then on nobody else touches the
 * memory. */
Test(transfer, deadline)
{
	for (unsigned int put = 0; put < 2; put++) {
		struct stage s;

		stage_open(&s, &(struct plan){ .access = access_of(put),
					       .n = 5,
					       .own = 450,
					       .fragment = 7,
					       .deadline = 2000,
					       .window = 2 });
		LNetMDUnlink(s.l.md[2]);
		s.e.retire = &s.m;
		cr_assert_eq(start(&s, 50), 0);
		ends(&s, -ETIMEDOUT);
		cr_assert_eq(s.e.moved, 150);
		cr_assert_leq(s.e.at, 2001 * MSEC);
		cr_assert_geq(s.e.at, 1900 * MSEC);
		cr_assert_eq(transfer_status(s.t), -ETIMEDOUT);
		/* A transfer that starts after the deadline fails, too. */
		cr_assert_eq(start(&s, 50), 0);
		ends(&s, -ETIMEDOUT);
		stage_close(&s);
	}
}

static const struct plan five_pieces = {
	.access = ULRPC_BULK_SINK,
	.length = 100,
	.n = 5,
	.fragment = 7,
	.deadline = 10000,
	.window = 2,
};

/* The network never recovers. */
Test(transfer, partition)
{
	const struct ulnet_id a = nth_id(0), b = nth_id(1);
	struct stage s;

	stage_open(&s, &five_pieces);
	cr_assert_eq(lnet_sim_partition(s.g.sim, &a.nid, &b.nid, true), 0);
	s.e.retire = &s.m;
	cr_assert_eq(start(&s, 0), 0);
	lnet_sim_run_all(s.g.sim);
	cr_assert_eq(s.e.n, 1);
	cr_assert_lt(s.e.status, 0);
	cr_assert_eq(s.e.moved, 0);
	cr_assert_leq(s.e.at, 10001 * MSEC);
	stage_close(&s);
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

/* Transfers are aborted while data arrive. They end only when nothing can land
 * in their memory any more. */
Test(transfer, abort)
{
	for (uint64_t after = 0; after < 30; after++) {
		struct stage s;
		struct memory n;
		struct ending *e = &s.e, f = { .g = &s.g, .retire = &n };
		struct waiting w = { e, &f, 0 };

		stage_open(&s, &(struct plan){ .length = 1000,
					       .n = 20,
					       .fragment = 700,
					       .deadline = 100000,
					       .seed = after + 1 });
		cluster_links(s.g.sim,
			      &(struct ulnet_sim_link){ .latency = MSEC,
							.bandwidth = 1000000,
							.stall = 100000 });
		e->retire = &s.m;
		n = memory_new(&s.g, 9000, 9000);
		cr_assert_eq(start(&s, 0), 0);
		cr_assert_eq(start_of(&s, ULRPC_BULK_SOURCE, 10, &n, &f), 0);
		lnet_sim_run(s.g.sim, after * MSEC / 2);
		cr_assert_eq(e->n, 0);
		transfer_on_done(s.t, none_left, &w);
		transfer_abort(s.t, -ECANCELED);
		transfer_abort(s.t, -EINVAL);
		cr_assert_eq(e->n, 0, "never inside");
		ends(&s, -ECANCELED);
		cr_assert_eq(f.n, 1);
		cr_assert_eq(w.n, 1);
		cr_assert(f.status == -ECANCELED || f.moved == 9000);
		cr_assert_lt(e->moved, 20000);
		cr_assert(memory_is(&s.m, 0, e->moved, 1, 0));
		cr_assert_eq(start_of(&s, ULRPC_BULK_SOURCE, 10, &n, &f), 0);
		lnet_sim_run_all(s.g.sim);
		cr_assert_eq(f.n, 2);
		cr_assert_eq(f.status, -ECANCELED);
		memory_free(&s.g, &n);
		stage_close(&s);
	}
}

static void free_all(void *arg)
{
	struct transfers **t = arg;

	transfers_free(*t);
	*t = NULL;
}

/* The done function of the last transfer may free all transfers. */
Test(transfer, freed_when_done)
{
	struct stage s;

	stage_open(&s, &five_pieces);
	cr_assert_eq(start(&s, 0), 0);
	transfer_on_done(s.t, free_all, &s.t);
	ends(&s, 0);
	cr_assert_null(s.t);
	stage_leave(&s);
}

/* The transfers of a request are freed while one of them is under way. */
Test(transfer, freed_before_it_is_done)
{
	struct stage s;

	stage_open(&s, &five_pieces);
	s.e.retire = &s.m;
	cr_assert_eq(start(&s, 0), 0);
	transfer_abort(s.t, -ESHUTDOWN);
	transfers_free(s.t);
	ends(&s, -ESHUTDOWN);
	stage_leave(&s);
}

/* The caller's memory is shorter than it has announced. */
Test(transfer, short_memory)
{
	for (unsigned int put = 0; put < 2; put++) {
		struct stage s;
		struct ulnet_md umd;
		struct ulnet_me_handle me;

		stage_open(&s, &(struct plan){ .access = access_of(put),
					       .n = 2,
					       .fragment = 7,
					       .deadline = 10000,
					       .window = 2 });
		LNetMDUnlink(s.l.md[1]);
		umd = md_of((uint8_t *)s.l.m.iov->iov_base + 100, 99,
			    LNET_MD_MANAGE_REMOTE | LNET_MD_TRUNCATE |
				    (put ? LNET_MD_OP_PUT : LNET_MD_OP_GET),
			    NULL);
		cr_assert_eq(LNetMEAttach(s.g.rpc[CALLER].node,
					  ULRPC_PORTAL_BULK, nth_id(SERVER),
					  MATCH + 1, 0, LNET_UNLINK,
					  LNET_INS_AFTER, &me),
			     0);
		cr_assert_eq(LNetMDAttach(me, &umd, LNET_RETAIN, &s.l.md[1]),
			     0);
		cr_assert_eq(start(&s, 0), 0);
		ends(&s, -EPROTO);
		cr_assert_eq(s.e.moved, 100);
		cr_assert_lt(s.e.at, 1000 * MSEC, "no use in trying again");
		stage_close(&s);
	}
}

static struct transfers *on_its_node;

static void end_transfers(struct ulnet_layer *layer)
{
	struct ulrpc *rpc = container_of(layer, struct ulrpc, layer);

	cr_assert(layer->mute);
	transfer_abort(on_its_node, -ESHUTDOWN);
	while (rpc->shards[0].holds)
		cr_assert_eq(lnet_poll(rpc->node, 0), 0);
	lnet_layer_del(rpc->node, layer);
}

/* The node crashes with transfers in all states. */
Test(transfer, crash)
{
	struct stage s;
	struct memory n;

	stage_open(&s, &(struct plan){ .length = 1000,
				       .n = 20,
				       .fragment = 700,
				       .deadline = 100000 });
	n = memory_new(&s.g, 1000, 700);
	cluster_links(s.g.sim, &link_refuses_all);
	cr_assert_eq(start_of(&s, ULRPC_BULK_SOURCE, 10, &n, &s.e), 0);
	lnet_sim_run(s.g.sim, 10 * MSEC);
	cluster_links(s.g.sim,
		      &(struct ulnet_sim_link){ .latency = 5 * MSEC,
						.bandwidth = 1000000 });
	cr_assert_eq(start(&s, 0), 0);
	lnet_sim_run(s.g.sim, 11 * MSEC);
	cr_assert_eq(start_of(&s, ULRPC_BULK_SOURCE, 0, &n, &s.e), 0);
	cr_assert_eq(start_nothing(&s, 0, &s.e), 0);
	on_its_node = s.t;
	s.g.rpc[SERVER].layer.close = end_transfers;
	lnet_layer_add(s.g.rpc[SERVER].node, &s.g.rpc[SERVER].layer);
	cr_assert_eq(lnet_sim_crash(s.g.sim, SERVER), 0);
	transfers_free(s.t);
	lnet_sim_run_all(s.g.sim);
	cr_assert_eq(s.e.n, 0);
	take_back(&s.l);
	memory_free(&s.g, &s.m);
	memory_free(&s.g, &n);
	rig_end(&s.g);
}

/* ---- checksums ---- */

Test(transfer, source_checksums)
{
	struct ulrpc_bulk_info info;
	struct memory part;
	struct stage s = { .e.g = &s.g };

	rig_init(&s.g, 1);
	lend_equal(&s.g, &s.l, ULRPC_BULK_SOURCE, 1000, 5);
	s.l.s.checksum = s.l.crc;
	/* Fragments of a byte need several chunks for a segment. */
	s.m = memory_new(&s.g, 3000, 1);
	stage_serve(&s, 0, 3);
	cr_assert_eq(transfers_info(s.t, 0, &info), 0);
	cr_assert(info.checksum);
	cr_assert_eq(start(&s, 1000), 0);
	ends(&s, 0);
	cr_assert(memory_is(&s.m, 0, 3000, 1, 1000));
	/* A part of a source's segment has no checksum, so it cannot be got. */
	cr_assert_eq(start(&s, 999), -EINVAL);
	part = memory_new(&s.g, 999, 0);
	cr_assert_eq(start_of(&s, ULRPC_BULK_SOURCE, 0, &part, &s.e), -EINVAL);
	/* The data are changed on their way, or at the caller. */
	((uint8_t *)s.l.m.iov->iov_base)[3999]++;
	cr_assert_eq(start(&s, 1000), 0);
	ends(&s, -EBADMSG);
	/* It was got again some times. */
	cr_assert_eq(s.g.shard[SERVER].stats->counts[RPC_STAT_segments_damaged],
		     9);
	cr_assert_leq(s.e.moved, 2999);
	cr_assert_geq(s.e.moved, 2000);
	memory_free(&s.g, &part);
	stage_close(&s);
}

/* Puts @length bytes to @offset. Returns the status of the transfer. */
static int put_part(struct stage *s, uint64_t offset, size_t length)
{
	struct iovec v = { s->m.iov->iov_base, length };
	unsigned int before = s->e.n;

	cr_assert_eq(transfer_start(s->t, 0, ULRPC_BULK_SINK, offset, &v, 1,
				    end, &s->e),
		     0);
	lnet_sim_run_all(s->g.sim);
	cr_assert_eq(s->e.n, before + 1);
	return s->e.status;
}

/* Returns whether the report @w covers @length bytes of segment @i, with the
 * right checksum. */
static bool said(const struct lent *l, const struct wire_moved *w,
		 unsigned int i, uint32_t length)
{
	const uint8_t *p = l->m.iov->iov_base;

	for (unsigned int k = 0; k < i; k++)
		p += l->length[k];
	return i < w->n &&
	       (w->length ? w->length[i] : l->length[i]) == length &&
	       w->checksum[i] == crc32c(0, p, length);
}

Test(transfer, sink_checksums)
{
	struct wire_moved w;
	struct stage s = { .e.g = &s.g };
	struct lent *l = &s.l;

	rig_init(&s.g, 1);
	lend_equal(&s.g, l, ULRPC_BULK_SINK, 1000, 5);
	l->s.checked = true;
	s.m = memory_new(&s.g, 5000, 0);
	memory_fill(&s.m, 7);
	stage_serve(&s, 10000, 3);
	cr_assert_eq(transfer_moved(s.t, &w, 1), 0);
	cr_assert_eq(put_part(&s, 0, 2000), 0);
	cr_assert_eq(transfer_moved(s.t, &w, 1), 1);
	cr_assert_eq(w.index, 0);
	cr_assert_eq(w.n, 2);
	cr_assert_null(w.length);
	cr_assert(said(l, &w, 0, 1000) && said(l, &w, 1, 1000));
	/* This PUT ends within a segment, and the next one continues there. */
	cr_assert_eq(put_part(&s, 3000, 1100), 0);
	cr_assert_eq(transfer_moved(s.t, &w, 1), 1);
	cr_assert_eq(w.n, 5);
	cr_assert(said(l, &w, 1, 1000) && said(l, &w, 2, 0) &&
		  said(l, &w, 3, 1000) && said(l, &w, 4, 100));
	cr_assert_eq(put_part(&s, 4100, 30), 0);
	cr_assert(said(l, &w, 4, 130));
	/* A PUT that leaves a gap is refused; the checksum so far stays valid.
	 */
	cr_assert_eq(put_part(&s, 4131, 30), -EINVAL);
	cr_assert(said(l, &w, 4, 130));
	/* The next PUT is shorter, and from the beginning of the segment. */
	cr_assert_eq(put_part(&s, 4000, 60), 0);
	cr_assert(said(l, &w, 4, 60));
	/* A segment whose PUT has failed is not reported. */
	LNetMDUnlink(l->md[3]);
	cr_assert_eq(put_part(&s, 3000, 1000), -ETIMEDOUT);
	cr_assert(said(l, &w, 3, 0) && said(l, &w, 4, 60));
	stage_close(&s);
}
