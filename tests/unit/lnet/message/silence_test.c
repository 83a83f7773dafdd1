/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rail is silent: nothing is received on it. Which NI loses health for that,
 * and what becomes of messages that wait for the rail (requirements D2, D4).
 */
#include "tests/unit/lnet/rails.h"
#include "ulnet/loop.h"

/* Both kinds of link need connections; the second one loses all messages. */
static const struct ulnet_sim_link passes = { .latency = MSEC,
					      .connect = MSEC };
static const struct ulnet_sim_link loses = { .latency = MSEC,
					     .connect = MSEC,
					     .loss = LNET_SIM_ALWAYS };

static struct lnet_sim *connected(void)
{
	struct lnet_sim *sim = rails();

	paths_are(sim, NULL, NULL, &passes);
	for (unsigned int i = 0; i < 2; i++)
		put(sim, mine[i], 0, SECOND);
	lnet_sim_run(sim, 100 * MSEC);
	cr_assert_eq(seen.n, 2);
	return sim;
}

static void silences(struct lnet_sim *sim, unsigned int n)
{
	cr_expect_eq(counted(sim, "silences"), n);
}

/* It is enough that messages are lost in one direction, since acknowledgments
 * do not come then. */
static void one_way_is_silent(const char *from, const char *to)
{
	struct lnet_sim *sim = connected();

	paths_are(sim, from, to, &loses);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, 350 * MSEC);
	silences(sim, 0);
	cr_expect_eq(peer_health(sim, 0), 1000);
	lnet_sim_run(sim, 100 * MSEC);
	silences(sim, 1);
	cr_expect_lt(peer_health(sim, 0), 1000);
	paths_are(sim, from, to, &passes);
	lnet_sim_run(sim, 1000 * MSEC);
	cr_expect_eq(peer_health(sim, 0), 1000);
	cr_expect_eq(my_health(sim, 0), 1000);
	rails_end(sim);
}

Test(silence, lost_on_the_way_to_the_peer)
{
	one_way_is_silent(mine[0], theirs[0]);
}

Test(silence, lost_on_the_way_from_the_peer)
{
	one_way_is_silent(theirs[0], mine[0]);
}

/* Nothing was received on our NI from anybody: our NI may be to blame, too. */
Test(silence, blames_both_ends)
{
	struct lnet_sim *sim = connected();

	lnet_sim_run(sim, 1000 * MSEC);
	paths_are(sim, mine[0], theirs[0], &loses);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, 450 * MSEC);
	silences(sim, 1);
	cr_expect_eq(my_health(sim, 0), 900);
	cr_expect_eq(peer_health(sim, 0), 900);
	rails_end(sim);
}

/* Our NI has received something from another NI: only the peer NI is to blame.
 */
Test(silence, blames_the_peer_alone)
{
	struct lnet_sim *sim = connected();
	struct ulnet_md umd = md_of(source, 10, 0, NULL);

	lnet_sim_run(sim, 1000 * MSEC);
	paths_are(sim, mine[0], theirs[0], &loses);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, 200 * MSEC);
	cr_assert_eq(
		LNetPut(nid_of(theirs[1]), bind_md(lnet_sim_node(sim, 1), &umd),
			LNET_NOACK_REQ, id_of(mine[0]), PORTAL, BITS, 0, 0),
		0);
	lnet_sim_run(sim, 250 * MSEC);
	silences(sim, 1);
	cr_expect_eq(my_health(sim, 0), 1000);
	cr_expect_eq(peer_health(sim, 0), 900);
	rails_end(sim);
}

struct quiet {
	struct lnet *node;
	uint64_t ns;
};

static int was_quiet(void *arg)
{
	const struct quiet *q = arg;
	struct lnet_cpt *cpt = q->node->cpt[0];
	const struct ulnet_nid own = nid_of(mine[0]), its = nid_of(theirs[0]);

	health_lose_silent(cpt, config_ni(cpt->config, &own),
			   peer_find(cpt, &its), q->ns);
	return 0;
}

/* What matters is whether our NI has received anything since the silence began,
 * however long it has lasted. */
static void heard_a_second_ago(uint64_t ns, int32_t health)
{
	struct lnet_sim *sim = connected();
	struct ulnet_md umd = md_of(source, 10, 0, NULL);
	struct quiet q = { lnet_sim_node(sim, 0), ns };

	cr_assert_eq(
		LNetPut(nid_of(theirs[1]), bind_md(lnet_sim_node(sim, 1), &umd),
			LNET_NOACK_REQ, id_of(mine[0]), PORTAL, BITS, 0, 0),
		0);
	lnet_sim_run(sim, 1000 * MSEC);
	cr_assert_eq(lnet_call(q.node, 0, was_quiet, &q), 0);
	cr_expect_eq(my_health(sim, 0), health);
	cr_expect_eq(peer_health(sim, 0), 900);
	rails_end(sim);
}

Test(silence, of_any_length)
{
	heard_a_second_ago(100 * MSEC, 900);
	heard_a_second_ago(900 * MSEC, 900);
	heard_a_second_ago(1100 * MSEC, 1000);
	heard_a_second_ago(10000 * MSEC, 1000);
}

/* A message that waits for the connection takes the other rail. One that was
 * sent has an unknown outcome, and is not sent again. */
Test(silence, messages_that_wait_leave)
{
	struct lnet_sim *sim = connected();
	unsigned int before = seen.n;

	paths_are(sim, mine[0], theirs[0], &loses);
	put(sim, mine[0], LNET_MD_PREFER_PATH, 10 * SECOND);
	lnet_sim_run(sim, 410 * MSEC);
	silences(sim, 1);
	cr_expect_eq(counted(sim, "resend_count"), 0);
	put(sim, mine[0], LNET_MD_PREFER_PATH, 10 * SECOND);
	lnet_sim_run(sim, 600 * MSEC);
	silences(sim, 2);
	cr_expect_eq(counted(sim, "resend_count"), 1);
	cr_expect_eq(seen.n - before, 1);
	rails_end(sim);
}

/* ---- what users suspect ---- */

/* Somebody suspects the first rail; @silences is the counter after that. */
struct suspicion {
	struct lnet *node;
	bool closing;
	uint64_t silences;
};

static int suspect(void *arg)
{
	struct suspicion *s = arg;
	struct lnet_cpt *cpt = s->node->cpt[0];
	const struct ulnet_nid local = nid_of(mine[0]);
	const struct ulnet_id peer = { nid_of(theirs[0]), LNET_PID_ANY };

	cpt->closing = s->closing;
	lnet_peer_suspect(s->node, 0, &local, &peer);
	cpt->closing = false;
	s->silences = stat_get(&cpt->stats[STAT_silences]);
	return 0;
}

/* A user may suspect a rail while the node closes: that has no effect. */
Test(silence, suspected_while_closing)
{
	struct lnet_sim *sim = connected();
	struct suspicion s = { .node = lnet_sim_node(sim, 0), .closing = true };

	cr_assert_eq(lnet_call(s.node, 0, suspect, &s), 0);
	cr_assert_eq(s.silences, 0);
	cr_assert_eq(peer_health(sim, 0), 1000);
	s.closing = false;
	cr_assert_eq(lnet_call(s.node, 0, suspect, &s), 0);
	cr_assert_eq(s.silences, 1);
	cr_assert_lt(peer_health(sim, 0), 1000);
	rails_end(sim);
}

struct sending {
	struct lnet *node;
	struct ulnet_md_handle md;
};

static int suspect_sending(void *arg)
{
	const struct sending *s = arg;

	lnet_send_suspect(s->node, 0, s->md);
	return 0;
}

/* The path of a message is suspected while the LND has it, not before, and not
 * when it was sent. */
Test(silence, suspected_while_sending)
{
	static const struct ulnet_sim_link stuck = { .latency = MSEC,
						     .connect = MSEC,
						     .stall = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = connected();
	struct sending s = { .node = lnet_sim_node(sim, 0) };
	struct ulnet_md umd = md_of(source, 10, 0, NULL);

	umd.timeout = 1000000;
	paths_are(sim, mine[0], theirs[0], &stuck);
	s.md = bind_md(s.node, &umd);
	cr_assert_eq(lnet_call(s.node, 0, suspect_sending, &s), 0);
	silences(sim, 0);
	cr_assert_eq(LNetPut(nid_of(mine[0]), s.md, LNET_NOACK_REQ,
			     id_of(theirs[0]), PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(lnet_call(s.node, 0, suspect_sending, &s), 0);
	silences(sim, 1);
	cr_assert_lt(peer_health(sim, 0), 1000);
	cr_assert_eq(peer_health(sim, 1), 1000);
	lnet_sim_run_all(sim);
	cr_assert_eq(lnet_call(s.node, 0, suspect_sending, &s), 0);
	rails_end(sim);
}
