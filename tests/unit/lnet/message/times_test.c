/* SPDX-License-Identifier: BSD-3-Clause */
/* What each interface counts: the time that messages take, and further tries
 * (requirement D10). */
#include "tests/unit/lnet/rails.h"

#define LATENCY MSEC

static const struct ulnet_sim_link link = { .latency = LATENCY };

static void took(struct ulnet_times t, uint64_t n, uint64_t ns)
{
	cr_assert_eq(t.n, n, "%ju", (uintmax_t)t.n);
	cr_assert_eq(t.ns, ns, "%ju", (uintmax_t)t.ns);
}

/* Sends a PUT with an ACK, or a GET, from the first local NI to the first NI of
 * the peer. */
static void ask(struct lnet_sim *sim, bool get)
{
	struct ulnet_md umd = md_of(source, 100, 0, &sent);
	struct ulnet_md_handle md;
	int rc;

	umd.threshold = 2;
	umd.timeout = SECOND;
	md = bind_md(lnet_sim_node(sim, 0), &umd);
	if (get)
		rc = LNetGet(nid_of(mine[0]), md, id_of(theirs[0]), PORTAL,
			     BITS, 0);
	else
		rc = LNetPut(nid_of(mine[0]), md, LNET_ACK_REQ,
			     id_of(theirs[0]), PORTAL, BITS, 0, 0);
	cr_assert_eq(rc, 0);
	lnet_sim_run(sim, 10 * MSEC);
}

Test(times, until_an_answer_comes)
{
	struct lnet_sim *sim = rails();

	paths_are(sim, NULL, NULL, &link);
	ask(sim, false);
	took(my_ni(sim, 0).answered, 1, 2 * LATENCY);
	took(their_ni(sim, 0).answered, 1, 2 * LATENCY);
	ask(sim, true);
	took(my_ni(sim, 0).answered, 2, 4 * LATENCY);
	took(their_ni(sim, 0).answered, 2, 4 * LATENCY);
	took(my_ni(sim, 1).answered, 0, 0);
	took(their_ni(sim, 1).answered, 0, 0);
	cr_assert_eq(lnet_stats_reset(lnet_sim_node(sim, 0)), 0);
	took(my_ni(sim, 0).answered, 0, 0);
	took(their_ni(sim, 0).answered, 0, 0);
	rails_end(sim);
}

/* One message in 16 is timed, beginning with the first one. */
Test(times, until_it_is_sent)
{
	const struct ulnet_sim_link slow = { .latency = LATENCY,
					     .bandwidth = 172000 };
	struct lnet_sim *sim = rails();

	/* 100 bytes and a header of 72 take a millisecond. */
	paths_are(sim, NULL, NULL, &slow);
	for (unsigned int i = 0; i < 17; i++) {
		put(sim, mine[0], 0, SECOND);
		lnet_sim_run(sim, 10 * MSEC);
	}
	cr_assert_eq(sent.n, 17);
	took(my_ni(sim, 0).sending, 2, 2 * MSEC);
	took(their_ni(sim, 0).sending, 2, 2 * MSEC);
	took(their_ni(sim, 1).sending, 0, 0);
	cr_assert_eq(lnet_stats_reset(lnet_sim_node(sim, 0)), 0);
	took(my_ni(sim, 0).sending, 0, 0);
	took(their_ni(sim, 0).sending, 0, 0);
	rails_end(sim);
}

/* A further try is counted at the NIs where the first one failed. */
Test(times, another_try)
{
	struct lnet_sim *sim = rails();

	paths_are(sim, NULL, theirs[0], &refuses);
	for (unsigned int i = 0; i < 2; i++) {
		put(sim, NULL, 0, SECOND);
		lnet_sim_run(sim, 10 * MSEC);
	}
	cr_assert_eq(sent.n, 2);
	cr_assert_eq(counted(sim, "resend_count"), 1);
	cr_assert_eq(their_ni(sim, 0).resent, 1);
	cr_assert_eq(their_ni(sim, 1).resent, 0);
	cr_assert_eq(my_ni(sim, 0).resent + my_ni(sim, 1).resent, 1);
	cr_assert_eq(lnet_stats_reset(lnet_sim_node(sim, 0)), 0);
	cr_assert_eq(their_ni(sim, 0).resent, 0);
	cr_assert_eq(my_ni(sim, 0).resent + my_ni(sim, 1).resent, 0);
	rails_end(sim);
}
