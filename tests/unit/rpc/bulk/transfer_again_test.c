/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers while messages are lost, duplicated, delayed or cut off, when the
 * call is sent again, and when the service cancels them. */
#include "tests/slice.h"
#include "tests/unit/rpc/bulk/transfer_rig.h"

static uint64_t counted(struct stage *s, enum rpc_stat stat)
{
	return s->g.shard[SERVER].stats->counts[stat];
}

/* ---- faults of the network ---- */

/* The faults of the links from the server to the caller (GETs, or PUTs) and
 * back (REPLYs, or ACKs). */
static const struct faults {
	const char *name;
	struct ulnet_sim_link to_caller, to_server;
} all_faults[] = {
	{ "requests lost", { .loss = 300000 }, { 0 } },
	{ "answers lost", { 0 }, { .loss = 300000 } },
	{ "both lost", { .loss = 200000 }, { .loss = 200000 } },
	{ "requests twice", { .duplicate = 500000 }, { 0 } },
	{ "answers twice", { 0 }, { .duplicate = 500000 } },
	{ "requests late",
	  { .reorder = 300000, .reorder_window = 3000 * MSEC },
	  { 0 } },
	{ "answers late",
	  { 0 },
	  { .reorder = 300000, .reorder_window = 3000 * MSEC } },
	{ "all at once",
	  { .loss = 100000,
	    .duplicate = 300000,
	    .reorder = 300000,
	    .reorder_window = 3000 * MSEC },
	  { .loss = 100000,
	    .duplicate = 300000,
	    .reorder = 300000,
	    .reorder_window = 3000 * MSEC } },
};

static void faults_set(struct stage *s, const struct faults *w)
{
	link_set(s->g.sim, SERVER, CALLER, &w->to_caller);
	link_set(s->g.sim, CALLER, SERVER, &w->to_server);
}

/* Runs a transfer. Caller and service make their memory inaccessible as soon as
 * they may, while copies of messages are still under way. */
static void one_faulty_transfer(const struct faults *w, bool put, uint64_t seed)
{
	struct stage s;

	stage_open(&s, &(struct plan){ .access = access_of(put),
				       .length = 20000,
				       .n = 40,
				       .fragment = 15000,
				       .deadline = 60000,
				       .seed = seed });
	faults_set(&s, w);
	s.e.retire = &s.m;
	cr_assert_eq(start(&s, 0), 0);
	while (!s.e.n)
		lnet_sim_run(s.g.sim, MSEC);
	cr_assert_eq(s.e.status, 0, "%s", w->name);
	cr_assert(all_moved(&s), "%s", w->name);
	cr_assert_lt(s.e.at, 60000 * MSEC);
	stage_close(&s);
}

Test(transfer_again, any_faults)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(all_faults); i++)
		for (uint64_t seed = 1; seed <= slice_of(20, 6); seed++)
			one_faulty_transfer(&all_faults[i], seed & 1, seed);
}

/* Messages that were lost are repeated, and no others. */
Test(transfer_again, only_what_was_lost)
{
	for (unsigned int put = 0; put < 2; put++) {
		struct stage s;

		stage_open(&s, &(struct plan){ .access = access_of(put),
					       .length = 1000,
					       .n = 200,
					       .window = 8 });
		cr_assert_eq(start(&s, 0), 0);
		ends(&s, 0);
		cr_assert_eq(counted(&s, RPC_STAT_segments_retried), 0);
		cr_assert_eq(counted(&s, RPC_STAT_segments_moved), 200);
		link_set(s.g.sim, CALLER, SERVER,
			 &(struct ulnet_sim_link){ .loss = 100000 });
		cr_assert_eq(start(&s, 0), 0);
		ends(&s, 0);
		cr_assert_eq(counted(&s, RPC_STAT_segments_moved), 400);
		cr_assert_gt(counted(&s, RPC_STAT_segments_retried), 5);
		cr_assert_lt(counted(&s, RPC_STAT_segments_retried), 60);
		cr_assert_eq(counted(&s, RPC_STAT_segments_failed), 0);
		cr_assert(all_moved(&s));
		stage_close(&s);
	}
}

/* 64 MiB are moved while the connection breaks ten times in the middle of a
 * payload, or is down for a while. The transfer must succeed. */
Test(transfer_again, connections_are_cut)
{
	const struct ulnet_sim_link link = { .latency = MSEC / 10,
					     .bandwidth = 1000000000,
					     .connect = MSEC,
					     .cut = 100000 };
	const struct ulnet_id a = nth_id(0), b = nth_id(1);

	for (unsigned int put = 0; put < 2; put++) {
		struct stage s;

		stage_open(&s, &(struct plan){ .access = access_of(put),
					       .length = LNET_MTU,
					       .n = 64,
					       .fragment = LNET_MTU + 1,
					       .deadline = 60000,
					       .window = 8 });
		cluster_links(s.g.sim, &link);
		s.e.retire = &s.m;
		cr_assert_eq(start(&s, 0), 0);
		for (unsigned int i = 0; i < 10; i++) {
			lnet_sim_run(s.g.sim, 3 * MSEC);
			cr_assert_eq(lnet_sim_partition(s.g.sim, &a.nid, &b.nid,
							!(i % 2)),
				     0);
		}
		ends(&s, 0);
		cr_assert(all_moved(&s));
		cr_assert_lt(s.e.at, 30000 * MSEC, "%llu ms",
			     (unsigned long long)(s.e.at / MSEC));
		cr_assert_gt(counted(&s, RPC_STAT_segments_retried), 0);
		stage_close(&s);
	}
}

/* ---- the caller sends its call again ---- */

static int refresh(struct stage *s, const struct wire_segments *w,
		   uint64_t deadline)
{
	struct transfers_conf conf = conf_of(&s->g, deadline, 0);

	return transfers_refresh(s->t, &conf, call_of(w, w ? 1 : 0));
}

/* A later attempt of the call gives the memory new match values, and the old
 * ones are unlinked, while messages with the old values are under way. */
Test(transfer_again, another_attempt)
{
	for (uint64_t after = 0; after < 40; after++) {
		const struct ulnet_sim_link link = { .latency = MSEC,
						     .jitter = MSEC,
						     .bandwidth = 1000000,
						     .duplicate = 200000,
						     .loss = 50000 };
		struct stage s;

		stage_open(&s, &(struct plan){ .access = access_of(after & 1),
					       .length = 5000,
					       .n = 30,
					       .fragment = 4000,
					       .deadline = 20000,
					       .seed = after + 1 });
		cluster_links(s.g.sim, &link);
		s.e.retire = &s.m;
		cr_assert_eq(start(&s, 0), 0);
		for (unsigned int i = 0; i < 2; i++) {
			lnet_sim_run(s.g.sim, after * MSEC / 2);
			cr_assert_eq(s.e.n, 0);
			lend_again(&s.l);
			lnet_sim_run(s.g.sim, after % 7 * MSEC);
			cr_assert_eq(refresh(&s, &s.l.s, 20000), 0);
		}
		while (!s.e.n)
			lnet_sim_run(s.g.sim, MSEC);
		cr_assert_eq(s.e.status, 0);
		cr_assert(all_moved(&s));
		stage_close(&s);
	}
}

/* When a later attempt arrives, messages with the old match values are repeated
 * with the new ones at once. */
Test(transfer_again, another_attempt_is_used_at_once)
{
	for (unsigned int put = 0; put < 2; put++) {
		struct stage s;

		stage_open(&s, &(struct plan){ .access = access_of(put),
					       .deadline = 20000 });
		cluster_links(s.g.sim, &link_loses_all);
		cr_assert_eq(start(&s, 0), 0);
		lnet_sim_run(s.g.sim, 7000 * MSEC);
		cr_assert_eq(s.e.n, 0);
		lend_again(&s.l);
		cluster_links(s.g.sim, &link_good);
		cr_assert_eq(refresh(&s, &s.l.s, 20000), 0);
		ends(&s, 0);
		cr_assert(all_moved(&s));
		cr_assert_lt(s.e.at, 7100 * MSEC);
		stage_close(&s);
	}
}

/* A later attempt may extend the deadline, but not shorten it. */
Test(transfer_again, another_attempt_has_more_time)
{
	const uint64_t deadlines[] = { 100, 10000 }, until[] = { 4000, 11000 };

	for (unsigned int i = 0; i < 2; i++) {
		struct stage s;

		stage_open(&s, &(struct plan){ .deadline = 4000 });
		cluster_links(s.g.sim, &link_loses_all);
		cr_assert_eq(start(&s, 0), 0);
		lnet_sim_run(s.g.sim, 1000 * MSEC);
		lend_again(&s.l);
		cr_assert_eq(refresh(&s, &s.l.s, deadlines[i]), 0);
		ends(&s, -ETIMEDOUT);
		cr_assert_leq(s.e.at, (until[i] + 1) * MSEC);
		cr_assert_geq(s.e.at, (until[i] - 100) * MSEC);
		stage_close(&s);
	}
}

/* The service refuses a later attempt that lends other memory. */
Test(transfer_again, another_attempt_lends_the_same)
{
	struct wire_segments w;
	uint32_t lengths[10];
	struct stage s;

	stage_open(&s, &(struct plan){ 0 });
	transfers_free(s.t);
	s.l.s.checksum = s.l.crc;
	stage_serve(&s, 10000, 4);
	cr_assert_eq(refresh(&s, NULL, 0), -EPROTO);
	w = s.l.s;
	w.n = 9;
	cr_assert_eq(refresh(&s, &w, 0), -EPROTO);
	w = s.l.s;
	w.access = WIRE_ACCESS_SINK;
	cr_assert_eq(refresh(&s, &w, 0), -EPROTO);
	w = s.l.s;
	w.checksum = NULL;
	cr_assert_eq(refresh(&s, &w, 0), -EPROTO);
	w = s.l.s;
	memcpy(lengths, w.length, sizeof(lengths));
	lengths[9]++;
	w.length = lengths;
	cr_assert_eq(refresh(&s, &w, 0), -EPROTO);
	w.length = s.l.length;
	lengths[9] = s.l.crc[9] + 1;
	memcpy(lengths, s.l.crc, 9 * sizeof(lengths[0]));
	w.checksum = lengths;
	w.match = 1;
	cr_assert_eq(refresh(&s, &w, 0), -EPROTO);
	/* The refused attempts have changed nothing. */
	cr_assert_eq(start(&s, 0), 0);
	ends(&s, 0);
	cr_assert_eq(refresh(&s, &s.l.s, 0), 0);
	stage_close(&s);
}

Test(transfer_again, none)
{
	const struct transfers_conf conf = { .deadline = 1 };

	cr_assert_eq(transfers_refresh(NULL, &conf, call_of(NULL, 0)), 0);
	cr_assert_eq(transfer_timeout(NULL, 0, 1), -ENOENT);
	cr_assert_eq(transfer_cancel(NULL, 0), -ENOENT);
}

/* ---- a time-out for each transfer ---- */

Test(transfer_again, timeout)
{
	for (unsigned int put = 0; put < 2; put++) {
		struct stage s;

		stage_open(&s, &(struct plan){ .access = access_of(put),
					       .fragment = 7,
					       .deadline = 10000 });
		cluster_links(s.g.sim, &link_loses_all);
		cr_assert_eq(transfer_timeout(s.t, 1, 300000), -ENOENT);
		cr_assert_eq(transfer_timeout(s.t, 0, 300000), 0);
		s.e.retire = &s.m;
		cr_assert_eq(start(&s, 0), 0);
		ends(&s, -ETIMEDOUT);
		cr_assert_leq(s.e.at, 301 * MSEC);
		cr_assert_geq(s.e.at, 299 * MSEC);
		cr_assert_eq(transfer_status(s.t), -ETIMEDOUT);
		stage_close(&s);
	}
}

/* The time-out also ends a transfer that waits for room in the window, and only
 * that one. Without a time-out a transfer ends at the deadline. */
Test(transfer_again, timeout_while_others_have_the_window)
{
	struct memory n;
	struct stage s;
	struct ending e = { 0 };

	stage_open(&s, &(struct plan){ .deadline = 2000, .window = 2 });
	e.g = &s.g;
	n = memory_new(&s.g, 500, 0);
	cluster_links(s.g.sim, &link_loses_all);
	cr_assert_eq(start(&s, 0), 0);
	cr_assert_eq(transfer_timeout(s.t, 0, 200000), 0);
	cr_assert_eq(start_of(&s, ULRPC_BULK_SOURCE, 0, &n, &e), 0);
	cr_assert_eq(transfer_timeout(s.t, 0, 0), 0);
	lnet_sim_run(s.g.sim, 210 * MSEC);
	cr_assert_eq(e.n, 1);
	cr_assert_eq(e.status, -ETIMEDOUT);
	cr_assert_eq(e.at, 200 * MSEC);
	cr_assert_eq(s.e.n, 0);
	ends(&s, -ETIMEDOUT);
	cr_assert_geq(s.e.at, 1900 * MSEC);
	memory_free(&s.g, &n);
	stage_close(&s);
}

/* ---- transfers that are canceled ---- */

/* Canceled transfers end only when nothing is being moved any more. Transfers
 * that begin later go on, and the cancellation does not count as a failure. */
Test(transfer_again, cancel)
{
	for (uint64_t after = 0; after < 30; after++) {
		struct memory n;
		struct stage s;
		struct ending e = { .g = &s.g };

		stage_open(&s, &(struct plan){ .length = 1000,
					       .n = 20,
					       .fragment = 700,
					       .deadline = 100000,
					       .seed = after + 1 });
		cluster_links(s.g.sim,
			      &(struct ulnet_sim_link){ .latency = MSEC,
							.bandwidth = 1000000,
							.stall = 100000 });
		s.e.retire = &s.m;
		cr_assert_eq(start(&s, 0), 0);
		lnet_sim_run(s.g.sim, after * MSEC / 2);
		cr_assert_eq(s.e.n, 0);
		cr_assert_eq(transfer_cancel(s.t, 1), -ENOENT);
		cr_assert_eq(transfer_cancel(s.t, 0), 0);
		cr_assert_eq(s.e.n, 0, "never inside");
		n = memory_new(&s.g, 9000, 9000);
		cr_assert_eq(start_of(&s, ULRPC_BULK_SOURCE, 10, &n, &e), 0);
		ends(&s, -ECANCELED);
		cr_assert_lt(s.e.moved, 20000);
		cr_assert(memory_is(&s.m, 0, s.e.moved, 1, 0));
		cr_assert_eq(e.n, 1);
		cr_assert_eq(e.status, 0);
		cr_assert(memory_is(&n, 0, 9000, 1, 10));
		cr_assert_eq(transfer_status(s.t), 0);
		memory_free(&s.g, &n);
		stage_close(&s);
	}
}

/* Everything has been moved, and the done function is about to be called: the
 * transfer succeeds. */
Test(transfer_again, cancel_when_all_is_moved)
{
	struct stage s;

	stage_open(&s, &(struct plan){ .length = 1000, .n = 2 });
	cr_assert_eq(start_nothing(&s, 0, &s.e), 0);
	cr_assert_eq(transfer_cancel(s.t, 0), 0);
	ends(&s, 0);
	/* There is nothing to cancel after the end. */
	cr_assert_eq(transfer_cancel(s.t, 0), 0);
	cr_assert_eq(start(&s, 0), 0);
	ends(&s, 0);
	cr_assert(all_moved(&s));
	stage_close(&s);
}
