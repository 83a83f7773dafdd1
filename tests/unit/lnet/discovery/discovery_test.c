/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that discover each other's NIDs before the first message. */
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

/* ---- all goes well ---- */

/* A GET, its REPLY, a push, its ACK: then the message is sent, and then the
 * other node pushes, too. */
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

/* A message that has waited for discovery costs health as any other if it
 * fails. */
Test(discover, a_message_that_has_waited_costs_health)
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
	cr_assert_eq(lnet_setting_set(node, "retry_count", 0), 0);
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

/* ---- failures ---- */

#define ALWAYS 1000000
#define SECOND UINT64_C(1000000) /* us */
#define LATE   (100 * MSEC)

/* The message waits for discovery for a part of its time, and then goes to the
 * NID that it names. Its deadline stays. */
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
	/* Later messages do not wait. */
	lnet_sim_run(sim, 20000 * MSEC);
	put_to(a, "10.0.0.2@tcp", 6 * SECOND, &more);
	lnet_sim_run_all(sim);
	cr_assert(more.ev[more.n - 1].terminal);
	cr_assert_eq(counter(a, "discovery_waits"), 1);
	cr_assert_eq(counter(a, "discoveries"), 0);
	/* The discovery was given up. */
	KNOWS(a, "10.0.0.2@tcp", "unknown: 10.0.0.2@tcp");
	cluster_end(sim);
}

/* A message that has more time than that goes on when the first ping is taken
 * for lost; the peer is pinged again, with a longer timeout. */
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

/* A peer that is slow to answer is given more time. */
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

/* An NI loses health while it is the only known NI of its peer. When others
 * become known, and are chosen instead, it is pinged until it has recovered. */
Test(discover, unhealthy_before_other_nids_were_known)
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
	KNOWS(node, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp 10.0.1.2@tcp");
	cr_assert_eq(lnet_peer_info(node, &nid, &peer), 0);
	cr_expect_eq(peer.health, 1000);
	cluster_end(sim);
}

/* A connection that is refused ends the discovery at once, and messages do not
 * wait. */
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

/* A peer waits to be pinged again when an administrator gives its only NID to
 * another peer: nobody is left to be pinged. */
Test(discover, taken_by_another_peer_during_a_pause)
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

/* The NID that is pinged becomes one of the node itself, which would answer its
 * own pings without end. */
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

/* Discovery of a peer that comes back goes on in the background. */
Test(discover, peer_comes_back)
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

/* A peer that was configured for a while is discovered when the configuration
 * is taken back. */
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

/* A peer is discovered anew when a NID is no longer configured that it had
 * claimed. */
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

Test(discover, another_nid_configured_for_a_while)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		another_configured(cpts);
}

static void on_line(int level, const char *line, void *arg)
{
	unsigned int *warned = arg;

	*warned += level == LNET_LOG_WARN &&
		   strstr(line, "peer 10.0.0.2@tcp announces") &&
		   strstr(line, "the peer is configured otherwise");
}

/* The configuration of a peer stays, and the log says that the peer differs
 * from it. */
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

/* A NID without discovery answers a ping late. Meanwhile discovery is turned on
 * there, and another NID of the node claims it. */
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
	/* Pushes from this NID are lost. */
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

/* Delays all pushes to @node from now on by @latency us; 0: no more. */
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

/* A push that a newer one has overtaken is not believed, whether it announces a
 * NID that is gone by now, or does not announce one that is back. */
Test(discover, pushes_overtake)
{
	const struct ulnet_ni_conf second = { .nid = nid_of("10.0.0.2@tcp1") };
	const struct ulnet_ni_conf third = { .nid = nid_of("10.0.0.2@tcp2") };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;
	uint64_t newer;

	discovered_pair(sim, &a, &b);
	pushes_come_late(a, 10 * SECOND);
	cr_assert_eq(lnet_ni_add(b, &third), 0);
	cr_assert_eq(lnet_ni_del(b, &second.nid), 0);
	lnet_sim_run(sim, LATE);
	cr_assert_eq(counter(a, "pushes"), 1);
	pushes_come_late(a, 0);
	cr_assert_eq(lnet_ni_del(b, &third.nid), 0);
	cr_assert_eq(lnet_ni_add(b, &second), 0);
	lnet_sim_run(sim, 8000 * MSEC);
	newer = counter(a, "pushes");
	cr_assert_gt(newer, 1);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	/* Now the delayed pushes come. */
	lnet_sim_run_all(sim);
	cr_assert_gt(counter(a, "pushes"), newer);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	cluster_end(sim);
}

static void discovery_is(struct lnet_sim *sim, struct lnet *b, bool yes)
{
	(void)sim;
	cr_assert_eq(lnet_setting_set(b, "discovery", yes), 0);
}

static void second_is(struct lnet_sim *sim, struct lnet *b, bool yes)
{
	const struct ulnet_nid second = nid_of("10.0.0.2@tcp1");

	(void)b;
	cr_assert_eq(lnet_sim_ni_set(sim, &second, yes), 0);
}

/* The same if the pushes announce the same NIDs, but other flags or states. */
Test(discover, pushes_of_the_same_nids_overtake)
{
	void (*const set[])(struct lnet_sim * sim, struct lnet * b,
			    bool yes) = { discovery_is, second_is };
	struct ulnet_nid second = nid_of("10.0.0.2@tcp1");

	for (unsigned int i = 0; i < ARRAY_SIZE(set); i++) {
		struct lnet_sim *sim = sim_new(1);
		struct ulnet_peer_info info;
		struct lnet *a, *b;
		uint64_t newer;

		discovered_pair(sim, &a, &b);
		pushes_come_late(a, 10 * SECOND);
		set[i](sim, b, false);
		lnet_sim_run(sim, LATE);
		cr_assert_eq(counter(a, "pushes"), 1);
		pushes_come_late(a, 0);
		set[i](sim, b, true);
		lnet_sim_run(sim, 8000 * MSEC);
		newer = counter(a, "pushes");
		cr_assert_gt(newer, 1);
		lnet_sim_run_all(sim);
		cr_assert_gt(counter(a, "pushes"), newer);
		KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
		cr_assert_eq(lnet_peer_info(a, &second, &info), 0);
		cr_assert_eq(info.health, LNET_HEALTH_MAX);
		cluster_end(sim);
	}
}

/* Messages do not wait for a push, even if it is lost. */
Test(discover, messages_do_not_wait_for_pushes)
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
	/* The node pushes this once. */
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

/* Each node has heard that the other one has turned discovery off, but not that
 * it has turned it on again: a node for which discovery was off pings when
 * there is a message. */
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

/* Each NID of a node that has discovery off is a peer of its own, and messages
 * wait only once for each. */
Test(discover, peer_has_discovery_off)
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

Test(discover, interfaces_that_fail_are_pushed)
{
	const struct ulnet_nid rail = nid_of("10.0.0.1@tcp1");
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	cr_assert_eq(lnet_sim_ni_set(sim, &rail, false), 0);
	lnet_sim_run_all(sim);
	/* The push of the session, and one to the NI that can be reached. */
	cr_assert_eq(counter(a, "pushes_sent"), 3);
	cr_assert_eq(lnet_sim_ni_set(sim, &rail, true), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(counter(a, "pushes_sent"), 4);
	KNOWS(b, "10.0.0.1@tcp", KNOWS_A);
	cluster_end(sim);
}

static void on_discovered(void *arg, int status)
{
	(void)arg;
	(void)status;
}

/* What a peer says of an interface that has failed is believed at once, also
 * while its session waits, here for the answer to a ping that is lost. */
Test(discover, failures_are_heard_while_a_session_waits)
{
	const struct ulnet_nid rail = nid_of("10.0.0.1@tcp1");
	const struct ulnet_nid asked = nid_of("10.0.0.1@tcp");
	struct lnet_sim *sim = sim_new(1);
	struct ulnet_peer_info info;
	struct ulnet_fault fault;
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	lnet_fault_init(&fault, LNET_FAULT_DROP);
	fault.rate = 1;
	fault.messages = LNET_FAULT_GET;
	cr_assert_eq(lnet_fault_add(a, &fault), 0);
	cr_assert_eq(lnet_discover(b, &asked, LNET_DISCOVER_FORCE,
				   on_discovered, NULL),
		     0);
	lnet_sim_run(sim, MSEC);
	KNOWS(b, "10.0.0.1@tcp", "discovering mr: 10.0.0.1@tcp 10.0.0.1@tcp1");
	cr_assert_eq(lnet_sim_ni_set(sim, &rail, false), 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_peer_info(b, &rail, &info), 0);
	cr_assert_eq(info.health, 0);
	KNOWS(b, "10.0.0.1@tcp", "discovering mr: 10.0.0.1@tcp 10.0.0.1@tcp1");
	lnet_sim_run_all(sim);
	cluster_end(sim);
}

/* ---- many interfaces ---- */

/* The peer has more NIDs than fit into the first REPLY and the first buffer for
 * pushes. */
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
	cr_assert_eq(n, 151); /* with the word "mr:" */
	/* The other node pushes, which does not fit, either. */
	put_to(b, "10.0.0.1@tcp1", 0, &more);
	lnet_sim_run_all(sim);
	seen_delivered(&more);
	cluster_end(sim);
}

/* ---- a bad network ---- */

static void on_known(void *arg, int status)
{
	(void)arg;
	/* NIDs may be in use; then discovery goes on in the background */
	(void)status;
}

static void discover(struct lnet *node, const char *text)
{
	const struct ulnet_nid nid = nid_of(text);

	cr_assert_eq(lnet_discover(node, &nid, 0, on_known, NULL), 0);
}

/* Whatever is lost, delayed, duplicated or reordered: when two nodes can hear
 * each other in the end, each knows the other's NIDs. */
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
	/* Both know each other by now, unless all was lost. */
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

/* A node has met each NID of a peer on its own, on several CPTs, and discovers
 * two of them at the same time. A NID that moves to a CPT while its new peer
 * there becomes a part of another peer is not left out. */
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

/* Two CPTs may both know a NID of a peer, and use it: one of them hands its NID
 * over, with all that is in progress. */
Test(discover, bad_networks_and_cpts)
{
	for (uint64_t seed = 1; seed <= 200; seed++)
		bad_network(seed, 2 + seed % 3);
}

/* More peers at once than are discovered at the same time: all are discovered,
 * by both sides. */
Test(discover, crowd)
{
	const unsigned int n = 400;
	struct seen *each = calloc(n, sizeof(*each));
	struct lnet_sim *sim = sim_new(1);
	struct lnet *server = node_on(sim, "10.9.0.1@tcp 10.9.0.1@tcp1");
	char text[80];

	for (unsigned int i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "10.8.%u.%u@tcp 10.8.%u.%u@tcp1",
			 i / 100, i % 100 + 1, i / 100, i % 100 + 1);
		put_to(node_on(sim, text), "10.9.0.1@tcp1", 0, &each[i]);
	}
	lnet_sim_run_all(sim);
	for (unsigned int i = 0; i < n; i++)
		seen_delivered(&each[i]);
	/* Some are discovered more than once: a peer that was heard by both
	 * NIDs before its turn was two peers until then. */
	cr_assert_geq(counter(server, "discoveries"), n);
	cr_assert_geq(counter(server, "pushes_sent"), n);
	cr_assert_leq(counter(server, "pushes_sent"), 2 * n);
	KNOWS(server, "10.8.3.100@tcp1",
	      "discovered mr: 10.8.3.100@tcp 10.8.3.100@tcp1");
	cluster_end(sim);
	free(each);
}

/* A push from 10.0.0.2@tcp after its discovery has failed, because it was
 * silent, or because its NIDs were in use; @state is the one that the push
 * leads to. */
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

/* Two nodes that have NIDs of each other in use on several CPTs would push and
 * ping each other without end. */
Test(discover, a_push_of_nids_in_use_ends_no_pause)
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
