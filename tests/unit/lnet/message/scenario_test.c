/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The three ways in which a transmission can take too long (requirement D8): it
 * does not begin, it begins and does not complete, or the peer's LND does not
 * confirm it. Which NI loses health, who counts the failure, whether the
 * message is sent again, and which path the next message takes.
 */
#include <ulnet/fault.h>

#include "tests/unit/lnet/rails.h"

static const char bystander[] = "10.0.0.3@tcp";
static struct seen held;

static void health_is(struct lnet_sim *sim, int32_t my0, int32_t my1,
		      int32_t their0, int32_t their1)
{
	cr_assert_eq(my_health(sim, 0), my0, "%d", my_health(sim, 0));
	cr_assert_eq(my_health(sim, 1), my1, "%d", my_health(sim, 1));
	cr_assert_eq(peer_health(sim, 0), their0, "%d", peer_health(sim, 0));
	cr_assert_eq(peer_health(sim, 1), their1, "%d", peer_health(sim, 1));
}

/* Asserts that message @n has arrived by this path. */
static void went(unsigned int n, const char *from, const char *to)
{
	cr_assert_gt(sent.n, n);
	cr_assert_eq(sent.ev[n].status, 0);
	cr_assert(nid_is(&sent.ev[n].path_local, from));
	cr_assert(nid_is(&sent.ev[n].path_peer, to));
}

/* ---- 1: not begun ---- */

static void ni_add(struct lnet *node, const char *nid, uint32_t credits,
		   uint32_t peer_credits)
{
	struct ulnet_ni_conf conf = { .nid = nid_of(nid),
				      .credits = credits,
				      .peer_credits = peer_credits };

	cr_assert_eq(lnet_ni_add(node, &conf), 0);
}

/* As rails(), but our first NI has these credits, and there is a third node,
 * the bystander. */
static struct lnet_sim *narrow(uint32_t credits, uint32_t peer_credits)
{
	struct ulnet_md umd =
		md_of(memory, sizeof(memory), LNET_MD_OP_PUT, &seen);
	struct lnet_sim *sim;
	char nids[64];

	seen.n = sent.n = held.n = 0;
	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	cr_assert_eq(plain_node(sim, "", NULL, NULL, NULL), 0);
	ni_add(lnet_sim_node(sim, 0), mine[0], credits, peer_credits);
	ni_add(lnet_sim_node(sim, 0), mine[1], 0, 0);
	snprintf(nids, sizeof(nids), "%s %s", theirs[0], theirs[1]);
	cr_assert_eq(plain_node(sim, nids, NULL, NULL, NULL), 1);
	cr_assert_eq(plain_node(sim, bystander, NULL, NULL, NULL), 2);
	post_md(lnet_sim_node(sim, 1), PORTAL, BITS, &umd);
	make_multi_rail(lnet_sim_node(sim, 0));
	return sim;
}

/* Sends a message from our first NI to @to that neither leaves nor ends. */
static void hold(struct lnet_sim *sim, const char *to)
{
	struct ulnet_md umd = md_of(source, 100, 0, &held);

	paths_are(sim, mine[0], to, &stalls);
	umd.threshold = 1;
	umd.timeout = 10 * SECOND;
	cr_assert_eq(LNetPut(nid_of(mine[0]),
			     bind_md(lnet_sim_node(sim, 0), &umd),
			     LNET_NOACK_REQ, id_of(to), PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run(sim, MSEC);
}

/* Sends a message that prefers our first NI, and asserts that it takes another
 * path after a third of its time. */
static void prefers_the_first(struct lnet_sim *sim)
{
	put(sim, mine[0], LNET_MD_PREFER_PATH, SECOND * 3 / 10);
	lnet_sim_run(sim, 99 * MSEC);
	cr_assert_eq(sent.n, 0);
	lnet_sim_run(sim, 2 * MSEC);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(sent.ev[0].status, 0);
	cr_assert_eq(sent.ev[0].paths_tried, 2);
	cr_assert_eq(seen.n, 1);
	cr_assert_eq(my_ni(sim, 0).failed.timeouts, 1);
	cr_assert_eq(my_ni(sim, 1).failed.timeouts, 0);
	cr_assert_eq(my_ni(sim, 0).resent, 1);
	cr_assert_eq(their_ni(sim, 0).resent, 1);
	cr_assert_eq(counted(sim, "local_timeout_count"), 1);
	cr_assert_eq(counted(sim, "resend_count"), 1);
}

static void narrow_end(struct lnet_sim *sim)
{
	const struct ulnet_sim_link works = { .latency = 10000 };

	paths_are(sim, mine[0], bystander, &works);
	rails_end(sim);
}

/* The message waits for a credit of our NI, which a message to another peer
 * has: our NI is to blame. */
Test(scenario, not_begun_for_our_own_ni)
{
	struct lnet_sim *sim = narrow(1, 1);

	hold(sim, bystander);
	prefers_the_first(sim);
	cr_assert(nid_is(&sent.ev[0].path_local, mine[1]), "another NI");
	health_is(sim, 900, 1000, 1000, 1000);
	narrow_end(sim);
}

/* The message waits for a credit of the peer NI, which does not accept what was
 * sent before: the peer NI is to blame. */
Test(scenario, not_begun_for_the_peer)
{
	struct lnet_sim *sim = narrow(8, 1);

	hold(sim, theirs[0]);
	prefers_the_first(sim);
	cr_assert(nid_is(&sent.ev[0].path_peer, theirs[1]), "another NI");
	health_is(sim, 1000, 1000, 900, 1000);
	narrow_end(sim);
}

/* ---- 2: not completed ---- */

Test(scenario, not_completed)
{
	const struct ulnet_sim_link mute = { .latency = 10000,
					     .mute = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = rails();

	paths_are(sim, mine[0], theirs[0], &mute);
	put(sim, mine[0], LNET_MD_PREFER_PATH, SECOND / 20);
	lnet_sim_run(sim, 51 * MSEC);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(sent.ev[0].status, -ETIMEDOUT);
	cr_assert_eq(sent.ev[0].cause, LNET_CAUSE_NETWORK_TIMEOUT);
	cr_assert_eq(sent.ev[0].outcome, LNET_OUTCOME_UNKNOWN);
	cr_assert_eq(sent.ev[0].paths_tried, 1);
	health_is(sim, 900, 1000, 900, 1000);
	cr_assert_eq(my_ni(sim, 0).failed.network_timeouts, 1);
	cr_assert_eq(their_ni(sim, 0).failed.network_timeouts, 1);
	cr_assert_eq(my_ni(sim, 1).failed.network_timeouts, 0);
	cr_assert_eq(their_ni(sim, 1).failed.network_timeouts, 0);
	cr_assert_eq(counted(sim, "network_timeout_count"), 1);
	cr_assert_eq(counted(sim, "resend_count"), 0, "it may have arrived");
	/* The next messages avoid both ends of that path. */
	for (unsigned int i = 1; i <= 4; i++) {
		put(sim, NULL, 0, SECOND);
		lnet_sim_run(sim, MSEC);
		went(i, mine[1], theirs[1]);
	}
	rails_end(sim);
}

/* ---- 3: not confirmed ---- */

/* The peer's LND does not confirm the message. TCP has no confirmations, other
 * LNDs have. */
Test(scenario, not_confirmed)
{
	struct lnet_sim *sim = rails();
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_fault fault;

	lnet_fault_init(&fault, LNET_FAULT_ERROR);
	fault.dest = nid_of(theirs[0]);
	fault.messages = LNET_FAULT_PUT;
	fault.rate = 1;
	fault.causes = LNET_FAULT_CAUSE(LNET_CAUSE_REMOTE_TIMEOUT);
	cr_assert_eq(lnet_fault_add(node, &fault), 0);
	put(sim, mine[0], LNET_MD_PREFER_PATH, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(sent.ev[0].status, -ETIMEDOUT);
	cr_assert_eq(sent.ev[0].cause, LNET_CAUSE_REMOTE_TIMEOUT);
	cr_assert_eq(sent.ev[0].outcome, LNET_OUTCOME_UNKNOWN);
	health_is(sim, 1000, 1000, 900, 1000);
	cr_assert_eq(my_ni(sim, 0).failed.remote_timeouts, 1);
	cr_assert_eq(their_ni(sim, 0).failed.remote_timeouts, 1);
	cr_assert_eq(their_ni(sim, 1).failed.remote_timeouts, 0);
	cr_assert_eq(counted(sim, "remote_timeout_count"), 1);
	cr_assert_eq(counted(sim, "resend_count"), 0, "it may have arrived");
	/* The next messages use both local NIs, and avoid the peer NI. */
	for (unsigned int i = 1; i <= 4; i++) {
		put(sim, NULL, 0, SECOND);
		lnet_sim_run(sim, MSEC);
		went(i, mine[i % 2], theirs[1]);
	}
	rails_end(sim);
}
