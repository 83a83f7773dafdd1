/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that ask each other for their NIDs before the first message. */
#include "tests/unit/lnet/discovery/discover_rig.h"

static struct seen seen, more;

static struct lnet_sim *sim_new(unsigned int cpts)
{
	struct lnet_sim *sim;

	memset(&seen, 0, sizeof(seen));
	memset(&more, 0, sizeof(more));
	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	return sim;
}

static void delivered(const struct seen *s)
{
	seen_end(s, LNET_EVENT_ACK, 0, LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK);
}

/* ---- it goes well ---- */

/* A GET, its REPLY, a push, its ACK: then the message goes; then the other node
 * tells of itself, too. */
Test(discover, single_nids)
{
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, "10.0.0.1@tcp");
	struct lnet *b = node_on(sim, "10.0.0.2@tcp");

	put_to(a, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run_all(sim);
	delivered(&seen);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	KNOWS(b, "10.0.0.1@tcp", "discovered mr: 10.0.0.1@tcp");
	cr_assert_eq(counter(a, "discovery_waits"), 1);
	cr_assert_eq(counter(a, "discovery_late"), 0);
	cr_assert_eq(counter(a, "send_count"), 4); /* GET, push, PUT, ACK */
	cr_assert_eq(counter(b, "send_count"), 4); /* REPLY, 2 ACKs, push */
	cr_assert_eq(counter(a, "pushes_sent"), 1);
	cr_assert_eq(counter(b, "pushes_sent"), 1);
	put_to(a, "10.0.0.2@tcp", 0, &more);
	lnet_sim_run_all(sim);
	delivered(&more);
	cr_assert_eq(counter(a, "discovery_waits"), 1);
	cr_assert_eq(counter(a, "send_count"), 5);
	cluster_end(sim);
}

#define A_RAILS "10.0.0.1@tcp 10.0.0.1@tcp1"
#define B_RAILS "10.0.0.2@tcp 10.0.0.2@tcp1"
#define KNOWS_A "discovered mr: 10.0.0.1@tcp 10.0.0.1@tcp1"
#define KNOWS_B "discovered mr: 10.0.0.2@tcp 10.0.0.2@tcp1"

static void two_rails(unsigned int cpts, const char *named)
{
	struct lnet_sim *sim = sim_new(cpts);
	struct lnet *a = node_on(sim, A_RAILS);
	struct lnet *b = node_on(sim, B_RAILS);
	struct ulnet_nid nid = nid_of(named), primary;

	put_to(a, named, 0, &seen);
	lnet_sim_run_all(sim);
	delivered(&seen);
	KNOWS(a, named, KNOWS_B);
	KNOWS(b, "10.0.0.1@tcp1", KNOWS_A);
	cr_assert_eq(lnet_primary(a, &nid, &primary), 0);
	cr_assert(nid_is(&primary, "10.0.0.2@tcp"));
	cluster_end(sim);
}

Test(discover, two_rails)
{
	two_rails(1, "10.0.0.2@tcp");
	two_rails(1, "10.0.0.2@tcp1");
}

Test(discover, both_at_once)
{
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);
	struct lnet *b = node_on(sim, B_RAILS);

	put_to(a, "10.0.0.2@tcp", 0, &seen);
	put_to(b, "10.0.0.1@tcp1", 0, &more);
	lnet_sim_run_all(sim);
	delivered(&seen);
	delivered(&more);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	KNOWS(b, "10.0.0.1@tcp", KNOWS_A);
	cluster_end(sim);
}

Test(discover, by_two_nids_at_once)
{
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);
	struct lnet *b = node_on(sim, B_RAILS);

	put_to(a, "10.0.0.2@tcp", 0, &seen);
	put_to(a, "10.0.0.2@tcp1", 0, &more);
	lnet_sim_run_all(sim);
	delivered(&seen);
	delivered(&more);
	KNOWS(a, "10.0.0.2@tcp1", KNOWS_B);
	KNOWS(b, "10.0.0.1@tcp", KNOWS_A);
	cluster_end(sim);
}
