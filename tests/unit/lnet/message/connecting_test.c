/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message waits for a connection to one NI of its peer, while another path is
 * connected: the message takes that path soon, and those that follow take it at
 * once.
 */
#include "tests/unit/lnet/rails.h"

#define SOON (20 * MSEC)

static const struct ulnet_sim_link slow = { .latency = 10000,
					    .connect = 50 * MSEC };
static const struct ulnet_sim_link never = {
	.latency = 10000, .connect = 3600 * UINT64_C(1000) * MSEC
};
static const struct ulnet_sim_link works = { .latency = 10000,
					     .connect = 100000 };

/* Returns a cluster in which our first NI is connected to the peer's first one,
 * and no other path is. */
static struct lnet_sim *connected(void)
{
	struct lnet_sim *sim = rails();

	paths_are(sim, NULL, NULL, &never);
	paths_are(sim, mine[0], theirs[0], &works);
	put(sim, NULL, 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(seen.n, 1);
	return sim;
}

/* Asserts that of @n messages the last one took the connected path at its first
 * try, and that no NI has lost health. */
static void went_there(struct lnet_sim *sim, unsigned int n)
{
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(seen.n, n);
	cr_assert_eq(sent.n, n);
	cr_expect(nid_is(&sent.ev[n - 1].path_local, mine[0]));
	cr_expect(nid_is(&sent.ev[n - 1].path_peer, theirs[0]));
	cr_expect_eq(sent.ev[n - 1].paths_tried, 1);
	cr_expect_eq(counted(sim, "resend_count"), 0);
	for (unsigned int i = 0; i < 2; i++) {
		cr_expect_eq(my_health(sim, i), 1000);
		cr_expect_eq(peer_health(sim, i), 1000);
	}
}

Test(connecting, a_waiting_message_leaves_soon)
{
	struct lnet_sim *sim = connected();

	put(sim, NULL, 0, SECOND);
	lnet_sim_run(sim, SOON - MSEC);
	cr_assert_eq(seen.n, 1, "the other path has its turn");
	lnet_sim_run(sim, 2 * MSEC);
	went_there(sim, 2);
	rails_end(sim);
}

/* At most two messages wait, one on each path that begins at our NIs; all
 * others take the connected path. */
Test(connecting, messages_that_follow_do_not_wait)
{
	struct lnet_sim *sim = connected();

	put(sim, NULL, 0, SECOND);
	put(sim, NULL, 0, SECOND);
	for (unsigned int i = 0; i < 20; i++)
		put(sim, NULL, 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_expect_geq(seen.n, 1 + 20);
	lnet_sim_run(sim, SOON);
	went_there(sim, 1 + 2 + 20);
	rails_end(sim);
}

/* All paths are connecting, so none is better than the first one. */
Test(connecting, nothing_is_connected)
{
	struct lnet_sim *sim = rails();

	paths_are(sim, NULL, NULL, &slow);
	put(sim, NULL, 0, SECOND);
	lnet_sim_run(sim, 49 * MSEC);
	cr_assert_eq(seen.n, 0);
	lnet_sim_run(sim, 2 * MSEC);
	went_there(sim, 1);
	rails_end(sim);
}

Test(connecting, a_message_with_a_named_source_waits)
{
	struct lnet_sim *sim = connected();

	paths_are(sim, mine[1], NULL, &slow);
	put(sim, mine[1], 0, SECOND);
	lnet_sim_run(sim, 49 * MSEC);
	cr_assert_eq(seen.n, 1);
	lnet_sim_run(sim, 2 * MSEC);
	cr_assert_eq(seen.n, 2);
	cr_expect(nid_is(&sent.ev[1].path_local, mine[1]));
	rails_end(sim);
}

/* A connection that is made soon enough is used. */
Test(connecting, late_but_in_time)
{
	const struct ulnet_sim_link quick = { .latency = 10000,
					      .connect = 10 * MSEC };
	struct lnet_sim *sim = connected();

	paths_are(sim, mine[1], NULL, &quick);
	put(sim, NULL, 0, SECOND);
	lnet_sim_run(sim, 9 * MSEC);
	cr_assert_eq(seen.n, 1);
	lnet_sim_run(sim, 2 * MSEC);
	cr_assert_eq(seen.n, 2);
	cr_expect(nid_is(&sent.ev[1].path_local, mine[1]));
	lnet_sim_run(sim, SOON);
	cr_expect_eq(lnet_sim_check(sim), 0);
	rails_end(sim);
}
