/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that ask each other for their NIDs before the first message. */
#include "lnet/discovery/session.h"
#include "lnet/discovery/info.h"
#include "tests/unit/lnet/discovery/discover_rig.h"
#include "ulnet/fault.h"

static struct seen seen, more;

static struct lnet_sim *sim_new(unsigned int cpts)
{
	struct lnet_sim *sim;

	memset(&seen, 0, sizeof(seen));
	memset(&more, 0, sizeof(more));
	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	return sim;
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
	seen_delivered(&seen);
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
	seen_delivered(&more);
	cr_assert_eq(counter(a, "discovery_waits"), 1);
	cr_assert_eq(counter(a, "send_count"), 5);
	cluster_end(sim);
}

static void two_rails(unsigned int cpts, const char *named)
{
	struct lnet_sim *sim = sim_new(cpts);
	struct lnet *a = node_on(sim, A_RAILS);
	struct lnet *b = node_on(sim, B_RAILS);
	struct ulnet_nid nid = nid_of(named), primary;

	put_to(a, named, 0, &seen);
	lnet_sim_run_all(sim);
	seen_delivered(&seen);
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

/* What has waited for discovery is evidence as any other message is. */
Test(discover, who_has_waited_costs_health)
{
	const struct ulnet_nid nid = nid_of("10.0.0.2@tcp");
	struct lnet_sim *sim = sim_new(1);
	struct lnet *node = node_on(sim, "10.0.0.1@tcp");
	struct ulnet_peer_info peer;
	struct ulnet_fault fault;

	node_on(sim, "10.0.0.2@tcp");
	lnet_fault_init(&fault, LNET_FAULT_ERROR);
	fault.rate = 1;
	fault.portals = UINT64_C(1) << PORTAL;
	fault.causes = 1u << LNET_CAUSE_REMOTE_DROPPED;
	cr_assert_eq(lnet_fault_add(node, &fault), 0);
	put_to(node, "10.0.0.2@tcp", 0, NULL);
	lnet_sim_run(sim, 100 * MSEC);
	cr_assert_eq(counter(node, "discovery_waits"), 1);
	cr_assert_eq(lnet_peer_info(node, &nid, &peer), 0);
	cr_expect_eq(peer.failed.remote_dropped, 1);
	cr_expect_eq(peer.health, 900);
	cluster_end(sim);
}

Test(discover, both_at_once)
{
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);
	struct lnet *b = node_on(sim, B_RAILS);

	put_to(a, "10.0.0.2@tcp", 0, &seen);
	put_to(b, "10.0.0.1@tcp1", 0, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&seen);
	seen_delivered(&more);
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
	seen_delivered(&seen);
	seen_delivered(&more);
	KNOWS(a, "10.0.0.2@tcp1", KNOWS_B);
	KNOWS(b, "10.0.0.1@tcp", KNOWS_A);
	cluster_end(sim);
}

/* ---- it does not go well ---- */

#define ALWAYS 1000000
#define SECOND UINT64_C(1000000) /* us */
#define LATE   (100 * MSEC)

/* The message waits for its share of time, and then goes to the NID that it
 * names; its deadline is what it was. */
Test(discover, dead_peer)
{
	const struct ulnet_sim_link dead = { .loss = ALWAYS };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, "10.0.0.1@tcp");

	node_on(sim, "10.0.0.2@tcp");
	cluster_links(sim, &dead);
	put_to(a, "10.0.0.2@tcp", 2 * SECOND, &seen);
	lnet_sim_run(sim, 667 * MSEC + LATE);
	cr_assert_eq(counter(a, "discovery_late"), 1);
	lnet_sim_run(sim, 1333 * MSEC - LATE - MSEC);
	cr_assert(!seen.n || !seen.ev[seen.n - 1].terminal);
	lnet_sim_run(sim, LATE);
	cr_assert(seen.n && seen.ev[seen.n - 1].terminal);
	cr_assert_eq(seen.ev[seen.n - 1].status, -ETIMEDOUT);
	/* Later ones do not wait. */
	lnet_sim_run(sim, 20000 * MSEC);
	put_to(a, "10.0.0.2@tcp", 6 * SECOND, &more);
	lnet_sim_run_all(sim);
	cr_assert(more.ev[more.n - 1].terminal);
	cr_assert_eq(counter(a, "discovery_waits"), 1);
	cr_assert_eq(counter(a, "discoveries"), 0);
	/* It was given up. */
	KNOWS(a, "10.0.0.2@tcp", "unknown: 10.0.0.2@tcp");
	cluster_end(sim);
}

/* A message that has more time than that goes on when the first question is
 * taken for lost; it is asked again, and longer. */
Test(discover, answer_is_lost)
{
	const struct ulnet_sim_link dead = { .loss = ALWAYS }, works = { 0 };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);

	node_on(sim, B_RAILS);
	cluster_links(sim, &dead);
	put_to(a, "10.0.0.2@tcp", 60 * SECOND, &seen);
	lnet_sim_run(sim, 500 * MSEC);
	cluster_links(sim, &works);
	lnet_sim_run(sim, 500 * MSEC - MSEC);
	cr_assert_eq(seen.n, 0);
	lnet_sim_run(sim, 2 * MSEC);
	seen_delivered(&seen);
	cr_assert_eq(counter(a, "discovery_late"), 0);
	lnet_sim_run(sim, 2000 * MSEC);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	cluster_end(sim);
}

/* Who takes longer to answer is given longer. */
Test(discover, answers_are_slow)
{
	const struct ulnet_sim_link slow = { .latency = 1500 * MSEC };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);

	node_on(sim, B_RAILS);
	cluster_links(sim, &slow);
	put_to(a, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run_all(sim);
	seen_delivered(&seen);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	cluster_end(sim);
}

/* What fell ill while it was all that was known of the peer is looked after as
 * soon as there is a choice, which would not fall on it. */
Test(discover, ill_before_it_was_one_of_several)
{
	const struct ulnet_sim_link refuses = { .latency = 10000,
						.refuse = LNET_SIM_ALWAYS };
	const struct ulnet_sim_link works = { .latency = 10000 };
	const struct ulnet_nid nid = nid_of("10.0.0.2@tcp");
	struct lnet_sim *sim = sim_new(1);
	struct lnet *node = node_on(sim, "10.0.0.1@tcp");
	struct ulnet_peer_info peer;

	node_on(sim, "10.0.0.2@tcp 10.0.1.2@tcp");
	cluster_links(sim, &refuses);
	for (unsigned int i = 0; i < 10; i++) {
		put_to(node, "10.0.0.2@tcp", 0, NULL);
		lnet_sim_run(sim, 100 * MSEC);
	}
	cr_assert_eq(lnet_peer_info(node, &nid, &peer), 0);
	cr_assert_leq(peer.health, 200, "%d", peer.health);
	cluster_links(sim, &works);
	lnet_sim_run(sim, 60000 * MSEC);
	put_to(node, "10.0.0.2@tcp", 0, NULL);
	lnet_sim_run(sim, 5000 * MSEC);
	KNOWS(node, "10.0.0.2@tcp",
	      "discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp");
	cr_assert_eq(lnet_peer_info(node, &nid, &peer), 0);
	cr_expect_eq(peer.health, 1000);
	cluster_end(sim);
}

/* Who is refused fails at once, and holds nobody. */
Test(discover, refused)
{
	const struct ulnet_sim_link closed = { .refuse = ALWAYS };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, "10.0.0.1@tcp");

	node_on(sim, "10.0.0.2@tcp");
	cluster_links(sim, &closed);
	put_to(a, "10.0.0.2@tcp", 60 * SECOND, &seen);
	lnet_sim_run(sim, LATE);
	cr_assert_eq(counter(a, "discoveries_failed"), 1);
	cr_assert_eq(counter(a, "discovery_late"), 0);
	cluster_end(sim);
}

/* An administrator gives the NID of a peer that is to be asked again to another
 * one: nobody is left to be asked. */
Test(discover, taken_while_it_pauses)
{
	const struct ulnet_nid b[] = { nid_of("10.0.0.2@tcp"),
				       nid_of("10.0.0.2@tcp1") };
	const struct ulnet_sim_link closed = { .refuse = ALWAYS };
	const struct ulnet_sim_link good = { 0 };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);

	node_on(sim, B_RAILS);
	cluster_links(sim, &closed);
	put_to(a, "10.0.0.2@tcp1", SECOND, &seen);
	lnet_sim_run(sim, LATE);
	cr_assert_eq(counter(a, "discoveries_failed"), 1);
	cr_assert_eq(lnet_peer_add(a, b, 2, true), 0);
	cluster_links(sim, &good);
	lnet_sim_run_all(sim);
	put_to(a, "10.0.0.2@tcp1", SECOND, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&more);
	KNOWS(a, "10.0.0.2@tcp1", KNOWS_B);
	cluster_end(sim);
}

/* The NID that is asked becomes one of the node's own, which would answer for
 * itself without end. */
Test(discover, own_ni_comes_back)
{
	const struct ulnet_sim_link dead = { .loss = ALWAYS };
	const struct ulnet_ni_conf back = { .nid = nid_of("10.0.1.1@tcp") };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, "10.0.0.1@tcp 10.0.1.1@tcp");

	cluster_links(sim, &dead);
	cr_assert_eq(lnet_ni_del(a, &back.nid), 0);
	lnet_sim_run_all(sim);
	put_to(a, "10.0.1.1@tcp", SECOND, &seen);
	lnet_sim_run(sim, LATE);
	cr_assert_eq(lnet_ni_add(a, &back), 0);
	lnet_sim_run_all(sim);
	put_to(a, "10.0.1.1@tcp", SECOND, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&more);
	cluster_end(sim);
}

/* A peer that comes back is discovered by what goes on in the background. */
Test(discover, back_again)
{
	const struct ulnet_sim_link dead = { .loss = ALWAYS };
	const struct ulnet_sim_link good = { 0 };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);
	struct lnet *b = node_on(sim, B_RAILS);

	cluster_links(sim, &dead);
	put_to(a, "10.0.0.2@tcp", SECOND, &seen);
	lnet_sim_run(sim, 40000 * MSEC);
	cluster_links(sim, &good);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	KNOWS(b, "10.0.0.1@tcp", KNOWS_A);
	cluster_end(sim);
}

/* ---- changes ---- */

/* What an administrator has said of a peer, and takes back, is asked for. */
Test(discover, configured_for_a_while)
{
	const struct ulnet_nid nid = nid_of("10.0.0.2@tcp");
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_peer_add(a, &nid, 1, false), 0);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp", "discovered: 10.0.0.2@tcp 10.0.0.2@tcp1");
	cr_assert_eq(lnet_peer_del(a, &nid, NULL, 0), 0);
	put_to(a, "10.0.0.2@tcp", SECOND, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&more);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	cluster_end(sim);
}

/* And so is who has named a NID meanwhile that was an administrator's. */
static void another_configured(unsigned int cpts)
{
	const struct ulnet_nid nid = nid_of("10.0.0.2@tcp1");
	struct lnet_sim *sim = sim_new(cpts);
	struct lnet *a = node_on(sim, A_RAILS);

	node_on(sim, B_RAILS);
	cr_assert_eq(lnet_peer_add(a, &nid, 1, false), 0);
	memset(&more, 0, sizeof(more));
	put_to(a, "10.0.0.2@tcp", SECOND, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&more);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cr_assert_eq(lnet_peer_del(a, &nid, NULL, 0), 0);
	memset(&more, 0, sizeof(more));
	put_to(a, "10.0.0.2@tcp", SECOND, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&more);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	cluster_end(sim);
}

Test(discover, another_configured_for_a_while)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		another_configured(cpts);
}

static void on_line(int level, const char *line, void *arg)
{
	unsigned int *warned = arg;

	*warned += level == LNET_LOG_WARN &&
		   strstr(line, "peer 10.0.0.2@tcp says") &&
		   strstr(line, "the peer is configured otherwise");
}

/* What an administrator said stays, and he hears that the peer differs. */
Test(discover, configured_wrongly)
{
	const struct ulnet_nid nids[] = { nid_of("10.0.0.2@tcp"),
					  nid_of("10.0.0.9@tcp1") };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);
	unsigned int warned = 0;

	node_on(sim, B_RAILS);
	cr_assert_eq(lnet_peer_add(a, nids, 2, true), 0);
	lnet_log_set(LNET_LOG_WARN, on_line, &warned);
	put_to(a, "10.0.0.2@tcp", SECOND, &more);
	lnet_sim_run_all(sim);
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
	seen_delivered(&more);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp 10.0.0.9@tcp1");
	cr_assert_geq(counter(a, "discoveries_refused"), 1);
	cr_assert_gt(warned, 0);
	cluster_end(sim);
}

Test(discover, local_nis_come_and_go)
{
	const struct ulnet_ni_conf third = { .nid = nid_of("10.0.0.1@tcp2") };
	const struct ulnet_nid second = nid_of("10.0.0.1@tcp1");
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_ni_add(a, &third), 0);
	lnet_sim_run_all(sim);
	KNOWS(b, "10.0.0.1@tcp",
	      "discovered mr: 10.0.0.1@tcp 10.0.0.1@tcp1 10.0.0.1@tcp2");
	cr_assert_eq(lnet_ni_del(a, &second), 0);
	lnet_sim_run_all(sim);
	KNOWS(b, "10.0.0.1@tcp", "discovered mr: 10.0.0.1@tcp 10.0.0.1@tcp2");
	/* A peer of its own again. */
	KNOWS(b, "10.0.0.1@tcp1", "unknown: 10.0.0.1@tcp1");
	cluster_end(sim);
}

/* A peer claims an address on a net that this node is not on just then: so the
 * address cannot be asked before the net is back. */
Test(discover, a_net_comes_back)
{
	const struct ulnet_ni_conf own = { .nid = nid_of("10.0.0.1@tcp1") };
	const struct ulnet_ni_conf its = { .nid = nid_of("10.0.0.2@tcp1") };
	struct lnet_sim *sim = sim_new(1);
	struct ulnet_fault fault;
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_ni_del(b, &its.nid), 0);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp1", "unknown: 10.0.0.2@tcp1");
	cr_assert_eq(lnet_ni_del(a, &own.nid), 0);
	cr_assert_eq(lnet_ni_add(b, &its), 0);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp1", "unknown: 10.0.0.2@tcp1");
	/* Nor is it told by the peer. */
	lnet_fault_init(&fault, LNET_FAULT_DROP);
	fault.rate = 1;
	fault.messages = LNET_FAULT_PUT;
	cr_assert_eq(lnet_fault_add(a, &fault), 0);
	cr_assert_eq(lnet_ni_add(a, &own), 0);
	lnet_sim_run(sim, LATE);
	KNOWS(a, "10.0.0.2@tcp1", KNOWS_B);
	cluster_end(sim);
}

/* An address that takes no part answers late, and is claimed meanwhile, since
 * now it does take part. */
Test(discover, a_claim_overtakes_an_answer)
{
	const struct ulnet_sim_link slow = { .latency = 50 * MSEC,
					     .reorder = ALWAYS };
	const struct ulnet_sim_link good = { 0 };
	const struct ulnet_nid from = nid_of("10.0.0.2@tcp1");
	const struct ulnet_nid to = nid_of("10.0.0.1@tcp1");
	struct lnet_sim *sim = sim_new(1);
	struct ulnet_fault fault;
	struct lnet *a = node_on(sim, A_RAILS), *b;

	node_mode(sim, B_RAILS, LNET_DISCOVERY_OFF);
	b = lnet_sim_node(sim, 1);
	cr_assert_eq(lnet_sim_link_set(sim, &from, &to, &slow), 0);
	/* It does not tell of itself. */
	lnet_fault_init(&fault, LNET_FAULT_DROP);
	fault.rate = 1;
	fault.messages = LNET_FAULT_PUT;
	fault.source = from;
	cr_assert_eq(lnet_fault_add(a, &fault), 0);
	put_to(a, "10.0.0.2@tcp1", SECOND, &seen);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_sim_link_set(sim, &from, &to, &good), 0);
	cr_assert_eq(lnet_setting_set(b, "discovery", 1), 0);
	lnet_sim_run(sim, MSEC);
	put_to(b, "10.0.0.1@tcp", SECOND, &more);
	lnet_sim_run(sim, 20 * MSEC);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	KNOWS(a, "10.0.0.2@tcp1", "discovering: 10.0.0.2@tcp1");
	lnet_sim_run(sim, LATE);
	KNOWS(a, "10.0.0.2@tcp1", KNOWS_B);
	cluster_end(sim);
}

/* Whoever names an address wants the peer: it goes on by another one, and comes
 * back with the address. */
Test(discover, an_address_goes_that_is_used)
{
	const struct ulnet_ni_conf again = { .nid = nid_of("10.0.0.2@tcp") };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_ni_del(b, &again.nid), 0);
	lnet_sim_run(sim, LATE);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp1 10.0.0.2@tcp");
	put_to(a, "10.0.0.2@tcp", SECOND, &more);
	lnet_sim_run(sim, LATE);
	seen_delivered(&more);
	cr_assert_eq(lnet_ni_add(b, &again), 0);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp1 10.0.0.2@tcp");
	cluster_end(sim);
}

/* What @node is told by pushes from now on comes so much later, us; 0: at
 * once. */
static void pushes_come_late(struct lnet *node, uint64_t latency)
{
	struct ulnet_fault fault;

	lnet_fault_init(&fault, LNET_FAULT_DELAY);
	fault.messages = LNET_FAULT_PUT;
	fault.portals = 1;
	fault.rate = 1;
	fault.latency = latency;
	if (latency)
		cr_assert_eq(lnet_fault_add(node, &fault), 0);
	else
		cr_assert_eq(lnet_fault_del(node, LNET_FAULT_DELAY, NULL, NULL),
			     1);
}

/* A push that a newer one has overtaken is not believed, whether it tells of an
 * address that is gone by now, or does not tell of one that is back. */
Test(discover, pushes_overtake)
{
	const struct ulnet_ni_conf second = { .nid = nid_of("10.0.0.2@tcp1") };
	const struct ulnet_ni_conf third = { .nid = nid_of("10.0.0.2@tcp2") };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	pushes_come_late(a, 10 * SECOND);
	cr_assert_eq(lnet_ni_add(b, &third), 0);
	cr_assert_eq(lnet_ni_del(b, &second.nid), 0);
	lnet_sim_run(sim, LATE);
	pushes_come_late(a, 0);
	cr_assert_eq(lnet_ni_del(b, &third.nid), 0);
	cr_assert_eq(lnet_ni_add(b, &second), 0);
	lnet_sim_run(sim, 8000 * MSEC);
	cr_assert_eq(counter(a, "pushes"), 2);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	/* Here it comes. */
	lnet_sim_run_all(sim);
	cr_assert_geq(counter(a, "pushes"), 3);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	cluster_end(sim);
}

/* Data does not wait for pushes, of which one is lost with its ACK. */
Test(discover, pushes_hold_nothing)
{
	const struct ulnet_ni_conf third = { .nid = nid_of("10.0.0.1@tcp2") };
	const struct ulnet_sim_link dead = { .loss = ALWAYS };
	const struct ulnet_sim_link good = { 0 };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cluster_links(sim, &dead);
	cr_assert_eq(lnet_ni_add(a, &third), 0);
	lnet_sim_run(sim, LATE);
	cluster_links(sim, &good);
	KNOWS(a, "10.0.0.2@tcp", "pushing mr: 10.0.0.2@tcp 10.0.0.2@tcp1");
	put_to(a, "10.0.0.2@tcp", 0, &more);
	lnet_sim_run(sim, LATE);
	seen_delivered(&more);
	cr_assert_eq(counter(a, "discovery_waits"), 1);
	lnet_sim_run_all(sim);
	KNOWS(b, "10.0.0.1@tcp",
	      "discovered mr: 10.0.0.1@tcp 10.0.0.1@tcp1 10.0.0.1@tcp2");
	cluster_end(sim);
}

Test(discover, turned_off_and_on)
{
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_setting_set(a, "discovery", 0), 0);
	lnet_sim_run_all(sim);
	KNOWS(b, "10.0.0.1@tcp", "discovered: 10.0.0.1@tcp");
	KNOWS(b, "10.0.0.1@tcp1", "unknown: 10.0.0.1@tcp1");
	/* It tells once. */
	cr_assert_eq(counter(a, "pushes_sent"), 2);
	put_to(a, "10.0.0.2@tcp", 0, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&more);
	cr_assert_eq(lnet_setting_set(a, "discovery", 1), 0);
	memset(&more, 0, sizeof(more));
	put_to(a, "10.0.0.2@tcp", 0, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&more);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	KNOWS(b, "10.0.0.1@tcp", KNOWS_A);
	cluster_end(sim);
}

static void turned_on(int64_t mode, const char *known)
{
	struct lnet_sim *sim = sim_new(3);
	struct lnet *a, *b = node_on(sim, B_RAILS);

	node_mode(sim, A_RAILS, LNET_DISCOVERY_OFF);
	a = lnet_sim_node(sim, 1);
	put_to(a, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run_all(sim);
	seen_delivered(&seen);
	KNOWS(a, "10.0.0.2@tcp", "unknown: 10.0.0.2@tcp");
	cr_assert_eq(lnet_setting_set(a, "discovery", mode), 0);
	lnet_sim_run_all(sim);
	put_to(a, "10.0.0.2@tcp", 0, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&more);
	KNOWS(a, "10.0.0.2@tcp", known);
	cr_assert_eq(counter(b, "pushes"), mode == 1);
	cluster_end(sim);
}

Test(discover, turned_on)
{
	turned_on(1, KNOWS_B);
	turned_on(2, "discovered: 10.0.0.2@tcp");
}

/* Each has heard of the other one that it takes no part, and not that it does
 * again: whoever did not take part asks again when there is a message. */
Test(discover, both_turned_off_and_on)
{
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_setting_set(a, "discovery", 0), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(lnet_setting_set(b, "discovery", 0), 0);
	put_to(a, "10.0.0.2@tcp", 0, &more);
	lnet_sim_run_all(sim);
	cr_assert_eq(lnet_setting_set(a, "discovery", 2), 0);
	memset(&more, 0, sizeof(more));
	put_to(a, "10.0.0.2@tcp", 0, &more);
	lnet_sim_run_all(sim);
	cr_assert_eq(lnet_setting_set(a, "discovery", 1), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(lnet_setting_set(b, "discovery", 1), 0);
	lnet_sim_run_all(sim);
	memset(&more, 0, sizeof(more));
	put_to(b, "10.0.0.1@tcp", 0, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&more);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	KNOWS(b, "10.0.0.1@tcp", KNOWS_A);
	cluster_end(sim);
}

/* A node that takes no part is one peer for each NID, and nobody waits for it
 * twice. */
Test(discover, peer_has_it_off)
{
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);

	node_mode(sim, B_RAILS, LNET_DISCOVERY_OFF);
	put_to(a, "10.0.0.2@tcp1", SECOND, &seen);
	put_to(a, "10.0.0.2@tcp", SECOND, &more);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp", "discovered: 10.0.0.2@tcp");
	KNOWS(a, "10.0.0.2@tcp1", "discovered: 10.0.0.2@tcp1");
	cr_assert_eq(counter(a, "pushes_sent"), 0);
	cluster_end(sim);
}

Test(discover, verify_changes_nothing)
{
	struct lnet_sim *sim = sim_new(1);
	struct lnet *b = node_on(sim, B_RAILS);

	node_mode(sim, A_RAILS, LNET_DISCOVERY_VERIFY);
	put_to(lnet_sim_node(sim, 1), "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run_all(sim);
	seen_delivered(&seen);
	KNOWS(lnet_sim_node(sim, 1), "10.0.0.2@tcp",
	      "discovered: 10.0.0.2@tcp");
	KNOWS(lnet_sim_node(sim, 1), "10.0.0.2@tcp1", "nothing");
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "discoveries_refused"), 1);
	KNOWS(b, "10.0.0.1@tcp", "unknown: 10.0.0.1@tcp");
	cluster_end(sim);
}

/* ---- states of interfaces ---- */

Test(discover, interfaces_that_fail_are_told)
{
	const struct ulnet_nid rail = nid_of("10.0.0.1@tcp1");
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_sim_ni_set(sim, &rail, false), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(counter(a, "pushes_sent"), 2);
	cr_assert_eq(lnet_sim_ni_set(sim, &rail, true), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(counter(a, "pushes_sent"), 3);
	KNOWS(b, "10.0.0.1@tcp", KNOWS_A);
	cluster_end(sim);
}

/* ---- many interfaces ---- */

/* More than fit into the first answer and the first push target. */
Test(discover, many_nids)
{
	static char nids[16384], want[16384];
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);
	struct lnet *b;
	size_t n = 0;

	for (unsigned int i = 0; i < 150; i++)
		n += (size_t)snprintf(nids + n, sizeof(nids) - n,
				      "%s10.1.%u.%u@tcp%s", i ? " " : "",
				      i / 100, i % 100 + 100, i % 2 ? "1" : "");
	b = node_on(sim, nids);
	put_to(a, "10.1.0.100@tcp", 0, &seen);
	lnet_sim_run_all(sim);
	seen_delivered(&seen);
	KNOWS(b, "10.0.0.1@tcp", KNOWS_A);
	snprintf(want, sizeof(want), "%s", view(a, "10.1.0.100@tcp"));
	cr_assert_str_eq(strtok(want, " "), "discovered");
	n = 0;
	while (strtok(NULL, " "))
		n++;
	cr_assert_eq(n, 151); /* and "mr:" */
	/* And the other way round: a push that does not fit. */
	put_to(b, "10.0.0.1@tcp1", 0, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&more);
	cluster_end(sim);
}

/* ---- a bad network ---- */

static void on_known(void *arg, int status)
{
	(void)arg;
	(void)status; /* NIDs are in use: it goes on in the background */
}

static void discover(struct lnet *node, const char *text)
{
	const struct ulnet_nid nid = nid_of(text);

	cr_assert_eq(lnet_discover(node, &nid, 0, on_known, NULL), 0);
}

/* Whatever is lost, delayed, repeated and overtaken: two nodes that hear each
 * other in the end know the same of each other. */
static void bad_network(uint64_t seed, unsigned int cpts)
{
	const struct ulnet_sim_link bad = { .latency = MSEC,
					    .jitter = 5 * MSEC,
					    .loss = 200000,
					    .duplicate = 100000,
					    .reorder = 200000,
					    .reorder_window = 20 * MSEC };
	const struct ulnet_sim_link good = { .latency = MSEC };
	const struct ulnet_ni_conf third = { .nid = nid_of("10.0.0.1@tcp2") };
	const struct ulnet_nid second = nid_of("10.0.0.2@tcp1");
	struct lnet_sim *sim;
	struct lnet *a, *b;

	memset(&seen, 0, sizeof(seen));
	memset(&more, 0, sizeof(more));
	cr_assert_eq(lnet_sim_new(seed, cpts, &sim), 0);
	a = node_on(sim, A_RAILS);
	b = node_on(sim, B_RAILS " 10.0.1.2@tcp1");
	cluster_links(sim, &bad);
	put_to(a, seed % 2 ? "10.0.0.2@tcp" : "10.0.1.2@tcp1", SECOND, &seen);
	if (seed % 3)
		put_to(b, "10.0.0.1@tcp1", SECOND, &more);
	lnet_sim_run(sim, seed % 7 * MSEC);
	cr_assert_eq(lnet_ni_add(a, &third), 0);
	lnet_sim_run(sim, seed % 11 * MSEC);
	cr_assert_eq(lnet_ni_del(b, &second), 0);
	lnet_sim_run(sim, 30000 * MSEC);
	cluster_links(sim, &good);
	/* By now both have heard of each other, unless all was lost. */
	put_to(a, "10.0.0.2@tcp", SECOND, &seen);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp1");
	KNOWS(b, "10.0.0.1@tcp",
	      "discovered mr: 10.0.0.1@tcp 10.0.0.1@tcp1 10.0.0.1@tcp2");
	cluster_end(sim);
}

Test(discover, bad_networks)
{
	for (uint64_t seed = 1; seed <= 200; seed++)
		bad_network(seed, 1);
}

/* A node that has met each NID of another one alone, on several CPTs, asks by
 * two of them: those that come to a CPT for a peer that has become a part of
 * another one meanwhile are not left alone. */
static void met_by_each_nid(unsigned int i, unsigned int cpts)
{
	struct lnet_sim *sim;
	char theirs[4][LNET_NIDSTR_SIZE], all[300], known[320];
	struct lnet *a, *b;

	for (unsigned int n = 0; n < ARRAY_SIZE(theirs); n++)
		snprintf(theirs[n], sizeof(theirs[n]), "10.%u.%u.2@tcp", n, i);
	snprintf(all, sizeof(all), "%s %s %s %s", theirs[0], theirs[1],
		 theirs[2], theirs[3]);
	snprintf(known, sizeof(known), "discovered mr: %s", all);
	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	a = node_on(sim, "10.0.0.1@tcp 10.1.0.1@tcp");
	b = node_on(sim, all);
	cr_assert_eq(lnet_setting_set(a, "discovery", 0), 0);
	for (unsigned int n = 0; n < ARRAY_SIZE(theirs); n++) {
		memset(&seen, 0, sizeof(seen));
		put_to(a, theirs[n], 0, &seen);
		lnet_sim_run_all(sim);
		seen_delivered(&seen);
	}
	cr_assert_eq(lnet_setting_set(a, "discovery", 1), 0);
	discover(a, theirs[i % 4]);
	discover(a, theirs[(i + 1) % 4]);
	lnet_sim_run_all(sim);
	KNOWS(a, theirs[3], known);
	KNOWS(b, "10.0.0.1@tcp", "discovered mr: 10.0.0.1@tcp 10.1.0.1@tcp");
	cluster_end(sim);
}

Test(discover, met_by_each_nid)
{
	for (unsigned int i = 0; i < 100; i++)
		met_by_each_nid(i, 1 + i % 4);
}

/* Two CPTs may have got to know two NIDs of a peer, and use them: one of them
 * gives its NID away, with all that is under way. */
Test(discover, bad_networks_and_cpts)
{
	for (uint64_t seed = 1; seed <= 200; seed++)
		bad_network(seed, 2 + seed % 3);
}

/* More than have a turn at once: all are discovered, by both sides. */
Test(discover, crowd)
{
	static struct seen each[400];
	struct lnet_sim *sim = sim_new(1);
	struct lnet *server = node_on(sim, "10.9.0.1@tcp 10.9.0.1@tcp1");
	char text[80];

	for (unsigned int i = 0; i < ARRAY_SIZE(each); i++) {
		snprintf(text, sizeof(text), "10.8.%u.%u@tcp 10.8.%u.%u@tcp1",
			 i / 100, i % 100 + 1, i / 100, i % 100 + 1);
		put_to(node_on(sim, text), "10.9.0.1@tcp1", 0, &each[i]);
	}
	lnet_sim_run_all(sim);
	for (unsigned int i = 0; i < ARRAY_SIZE(each); i++)
		seen_delivered(&each[i]);
	/* Some more than once: who was heard of by both NIDs, before it was his
	 * turn, was two peers until then. */
	cr_assert_geq(counter(server, "discoveries"), ARRAY_SIZE(each));
	cr_assert_geq(counter(server, "pushes_sent"), ARRAY_SIZE(each));
	cr_assert_leq(counter(server, "pushes_sent"), 2 * ARRAY_SIZE(each));
	KNOWS(server, "10.8.3.100@tcp1",
	      "discovered mr: 10.8.3.100@tcp 10.8.3.100@tcp1");
	cluster_end(sim);
}

/* A push of 10.0.0.2@tcp after its discovery failed, since it was silent, or
 * since its NIDs were in use: the state that it leads to. */
struct push_after {
	struct lnet *node, *peer;
	bool nids_in_use;
	unsigned int state;
};

static int push_after(void *arg)
{
	struct push_after *pa = arg;
	struct lnet_cpt *cpt = pa->node->cpt[0];
	uint8_t bytes[256];
	const struct disc_push push = {
		.from = nid_of("10.0.0.2@tcp"),
		.pid = LNET_PID_LUSTRE,
		.bytes = bytes,
		.length = ping_info_encode(pa->peer, pa->peer->cpt[0]->config,
					   bytes, sizeof(bytes)),
	};
	struct lnet_peer *peer = peer_find(cpt, &push.from)->peer;

	cr_assert_eq(peer->fsm.state, PEER_FAILED);
	peer->discovery->nids_in_use = pa->nids_in_use;
	disc_pushed(cpt, &push);
	pa->state = peer->fsm.state;
	return 0;
}

static unsigned int state_after(bool nids_in_use)
{
	const struct ulnet_sim_link dead = { .loss = ALWAYS };
	struct lnet_sim *sim = sim_new(1);
	struct push_after pa = { .node = node_on(sim, "10.0.0.1@tcp"),
				 .peer = node_on(sim, "10.0.0.2@tcp"),
				 .nids_in_use = nids_in_use };

	cluster_links(sim, &dead);
	put_to(pa.node, "10.0.0.2@tcp", 6 * SECOND, &seen);
	do
		lnet_sim_run(sim, LATE);
	while (!counter(pa.node, "discoveries_failed"));
	cr_assert_eq(lnet_call(pa.node, 0, push_after, &pa), 0);
	cluster_end(sim);
	return pa.state;
}

/* Two nodes that have NIDs of each other in use on several CPTs would tell and
 * ask each other without end. */
Test(discover, to_be_told_again_of_what_is_in_use_ends_no_pause)
{
	cr_assert_eq(state_after(false), PEER_QUEUED);
	cr_assert_eq(state_after(true), PEER_FAILED);
}

/* NIDs that different CPTs own become those of one peer. */
Test(discover, several_cpts)
{
	for (unsigned int cpts = 2; cpts <= 4; cpts++) {
		two_rails(cpts, "10.0.0.2@tcp");
		two_rails(cpts, "10.0.0.2@tcp1");
	}
}
