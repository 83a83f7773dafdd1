/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that could not be sent are sent again: over other paths at once,
 * over the same paths after pauses, and never when the peer may have got them.
 * What becomes of health, deadlines, events and counters meanwhile
 * (requirements D1 to D5, D8).
 */
#include <criterion/criterion.h>
#include "tests/unit/lnet/rails.h"
#include "ulnet/loop.h"

/* ---- another path at once ---- */

Test(end, an_untried_path_is_taken_at_once)
{
	struct lnet_sim *sim = rails();
	uint64_t began = lnet_sim_now(sim);

	paths_are(sim, NULL, theirs[0], &refuses);
	for (unsigned int i = 0; i < 4; i++)
		put(sim, NULL, 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(seen.n, 4);
	cr_assert_eq(sent.n, 4);
	for (unsigned int i = 0; i < 4; i++) {
		cr_expect_eq(sent.ev[i].status, 0);
		cr_expect(nid_is(&sent.ev[i].path_peer, theirs[1]));
		cr_expect(nid_is(&sent.ev[i].target.nid, theirs[0]),
			  "what was asked for stays");
		cr_expect(nid_is(&seen.ev[i].target.nid, theirs[1]));
	}
	cr_expect(lnet_sim_now(sim) - began <= MSEC);
	cr_expect_gt(counted(sim, "resend_count"), 0);
	cr_expect_eq(counted(sim, "successful_resends"),
		     counted(sim, "resend_count"));
	cr_expect_eq(counted(sim, "failed_resends"), 0);
	cr_expect_eq(counted(sim, "resends_remote"),
		     counted(sim, "resend_count"));
	cr_expect_eq(their_ni(sim, 0).resends.remote,
		     counted(sim, "resend_count"));
	cr_expect_eq(their_ni(sim, 0).resent, counted(sim, "resend_count"));
	cr_expect_eq(their_ni(sim, 1).resent, 0);
	cr_expect_lt(peer_health(sim, 0), 1000);
	cr_expect_eq(peer_health(sim, 1), 1000);
	cr_expect_eq(my_health(sim, 0), 1000);
	cr_expect_eq(my_health(sim, 1), 1000);
	rails_end(sim);
}

/* Once an NI of the peer is less healthy, no first try goes there. */
Test(end, a_less_healthy_path_is_avoided)
{
	struct lnet_sim *sim = rails();

	paths_are(sim, NULL, theirs[0], &refuses);
	for (unsigned int i = 0; i < 2; i++) {
		put(sim, NULL, 0, SECOND);
		lnet_sim_run(sim, MSEC);
	}
	cr_assert_eq(counted(sim, "resend_count"), 1);
	for (unsigned int i = 0; i < 8; i++) {
		put(sim, NULL, 0, SECOND);
		lnet_sim_run(sim, MSEC);
	}
	cr_expect_eq(counted(sim, "resend_count"), 1);
	cr_expect_eq(seen.n, 10);
	rails_end(sim);
}

/* ---- the same paths again ---- */

/* All four paths are tried at once, then one of them retry_count times, after
 * pauses of 10, 20, ... ms. */
Test(end, tried_paths_are_tried_again_after_pauses)
{
	for (unsigned int retries = 0; retries < 4; retries++) {
		struct lnet_sim *sim = rails();
		uint64_t pauses = ((UINT64_C(1) << retries) - 1) * 10 * MSEC;
		uint64_t round_trips = (4 + retries) * 20000;

		cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, 0),
					      "retry_count", retries),
			     0);
		paths_are(sim, NULL, NULL, &refuses);
		put(sim, NULL, 0, SECOND);
		lnet_sim_run(sim, pauses + round_trips - 1);
		cr_assert_eq(sent.n, 0, "%u retries: too early", retries);
		cr_assert_eq(lnet_sim_check(sim), 0);
		lnet_sim_run(sim, 1);
		seen_end(&sent, LNET_EVENT_SEND, -EHOSTUNREACH,
			 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_REMOTE_DROPPED);
		cr_expect_eq(sent.ev[0].paths_tried, 4 + retries);
		cr_expect_eq(counted(sim, "resend_count"), 3 + retries);
		cr_expect_eq(counted(sim, "failed_resends"), 1);
		cr_expect_eq(counted(sim, "successful_resends"), 0);
		cr_expect_eq(counted(sim, "remote_dropped_count"), 4 + retries);
		rails_end(sim);
	}
}

Test(end, not_beyond_the_deadline)
{
	struct lnet_sim *sim = rails();

	cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, 0), "retry_count", 40),
		     0);
	paths_are(sim, NULL, NULL, &refuses);
	put(sim, NULL, 0, SECOND / 2);
	lnet_sim_run(sim, 500 * MSEC);
	cr_assert_eq(sent.n, 1);
	cr_expect_eq(sent.ev[0].outcome, LNET_OUTCOME_NOT_DELIVERED);
	/* Five of the tries come after pauses of 10, 20, 40, 80 and 160 ms; the
	 * next pause would be too long. */
	cr_expect_eq(sent.ev[0].paths_tried, 9);
	rails_end(sim);
}

/* ---- the only path ---- */

/* Returns two nodes with one NI each, joined by @link; @retries is the first
 * one's retry_count. */
static struct lnet_sim *one_path(const struct ulnet_sim_link *link,
				 unsigned int retries)
{
	struct lnet_sim *sim = cluster(2);

	sent.n = 0;
	cr_assert_eq(
		lnet_setting_set(lnet_sim_node(sim, 0), "retry_count", retries),
		0);
	cluster_links(sim, link);
	return sim;
}

static void put_on_one_path(struct lnet_sim *sim, uint32_t options)
{
	struct ulnet_md umd = md_of(source, 100, options, &sent);

	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(lnet_sim_node(sim, 0), &umd),
			     LNET_NOACK_REQ, nth_id(1), PORTAL, BITS, 0, 0),
		     0);
}

/* If there is only one path, it is tried again, retry_count times, after pauses
 * of 10, 20, ... ms; with 0 the sender is told at once (seed 000). */
Test(end, the_only_path_is_tried_again)
{
	for (unsigned int retries = 0; retries < 4; retries++) {
		struct lnet_sim *sim = one_path(&refuses, retries);
		uint64_t pauses = ((UINT64_C(1) << retries) - 1) * 10 * MSEC;
		uint64_t round_trips = (1 + retries) * 20000;

		put_on_one_path(sim, 0);
		lnet_sim_run(sim, pauses + round_trips - 1);
		cr_assert_eq(sent.n, 0, "%u retries: too early", retries);
		lnet_sim_run(sim, 1);
		seen_end(&sent, LNET_EVENT_SEND, -EHOSTUNREACH,
			 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_REMOTE_DROPPED);
		cr_expect_eq(sent.ev[0].paths_tried, 1 + retries);
		cr_expect_eq(counted(sim, "resend_count"), retries);
		cr_expect_eq(counted(sim, "failed_resends"), retries > 0);
		cr_expect_eq(peer_health(sim, 0),
			     1000 - 100 * (int)(1 + retries),
			     "health is counted");
		rails_end(sim);
	}
}

Test(end, the_only_path_works_again)
{
	const struct ulnet_sim_link works = { .latency = 10000 };
	struct lnet_sim *sim = one_path(&refuses, 5);

	put_on_one_path(sim, 0);
	/* Attempts at 0, 10, 30, 70, 150 and 310 ms. */
	lnet_sim_run(sim, 100 * MSEC);
	cr_assert_eq(sent.n, 0);
	cr_expect_eq(counted(sim, "resend_count"), 4, "the next one waits");
	cluster_links(sim, &works);
	lnet_sim_run(sim, 60 * MSEC);
	cr_assert_eq(sent.n, 1);
	cr_expect_eq(sent.ev[0].status, 0);
	cr_expect_eq(sent.ev[0].paths_tried, 5);
	cr_expect_eq(counted(sim, "successful_resends"), 1);
	cr_expect_eq(lnet_sim_check(sim), 0);
	rails_end(sim);
}

/* A layer, such as RPC, decides itself when to send again. */
Test(end, a_layer_hears_of_its_only_path_at_once)
{
	struct lnet_sim *sim = one_path(&refuses, 5);

	put_on_one_path(sim, LNET_MD_OF_LAYER);
	lnet_sim_run(sim, 20000);
	cr_assert_eq(sent.n, 1);
	cr_expect_eq(sent.ev[0].paths_tried, 1);
	cr_expect_eq(counted(sim, "resend_count"), 0);
	rails_end(sim);
}

/* ---- the only path, and connections ---- */

/* Connecting takes a millisecond. */
static const struct ulnet_sim_link opens = { .connect = MSEC };
static const struct ulnet_sim_link closed = { .connect = MSEC,
					      .refuse = LNET_SIM_ALWAYS };

/* The LND has its own pauses between attempts to connect. A peer that refuses
 * them has said no. */
Test(end, a_refused_connection_is_told_at_once)
{
	struct lnet_sim *sim = one_path(&closed, 5);

	for (unsigned int i = 0; i < 10; i++) {
		put_on_one_path(sim, 0);
		lnet_sim_run(sim, i ? 200 * MSEC : MSEC);
		cr_assert_eq(sent.n, i + 1);
		cr_expect_eq(sent.ev[i].status, -ECONNRESET);
		cr_expect_eq(sent.ev[i].cause, LNET_CAUSE_REMOTE_DROPPED);
		cr_expect_eq(sent.ev[i].paths_tried, 1);
	}
	cr_expect_eq(counted(sim, "resend_count"), 0);
	rails_end(sim);
}

/* Returns one_path() with a message that has failed once, over a connection,
 * and will be repeated in some 10 ms. The connection is gone, and what comes
 * after it is as @link says. */
static struct lnet_sim *connection_lost(const struct ulnet_sim_link *link)
{
	struct lnet_sim *sim = one_path(&opens, 3);

	put_on_one_path(sim, 0);
	lnet_sim_run(sim, 2 * MSEC);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(sent.ev[0].status, 0);
	sent.n = 0;
	cluster_links(sim, &closed);
	put_on_one_path(sim, 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 0);
	lnet_sim_cut(sim, &LNET_NID_ANY, &LNET_NID_ANY);
	cluster_links(sim, link);
	return sim;
}

Test(end, a_repeat_connects_again)
{
	struct lnet_sim *sim = connection_lost(&opens);

	lnet_sim_run(sim, 12 * MSEC);
	cr_assert_eq(sent.n, 1);
	cr_expect_eq(sent.ev[0].status, 0);
	cr_expect_eq(sent.ev[0].paths_tried, 2);
	rails_end(sim);
}

/* A repeat of a lost message finds that the peer refuses connections. */
Test(end, a_refused_connection_ends_the_repeats)
{
	struct lnet_sim *sim = connection_lost(&closed);

	lnet_sim_run(sim, 12 * MSEC);
	seen_end(&sent, LNET_EVENT_SEND, -ECONNRESET,
		 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_REMOTE_DROPPED);
	cr_expect_eq(sent.ev[0].paths_tried, 2);
	rails_end(sim);
}

/* The sender hears of the first failure between @ms and @ms + 200 later, since
 * the repeat waits for a connection. */
static void expect_first_failure(struct lnet_sim *sim, uint64_t ms)
{
	lnet_sim_run(sim, ms * MSEC);
	cr_assert_eq(sent.n, 0);
	lnet_sim_run(sim, 200 * MSEC);
	seen_end(&sent, LNET_EVENT_SEND, -EHOSTUNREACH,
		 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_REMOTE_DROPPED);
	cr_expect_eq(sent.ev[0].paths_tried, 1, "the repeat has not begun");
	cr_expect_eq(counted(sim, "failed_resends"), 1);
	cr_expect_eq(counted(sim, "local_timeout_count"), 0);
	cr_expect_eq(lnet_sim_check(sim), 0);
	lnet_sim_run(sim, 10000 * MSEC);
	cr_expect_eq(sent.n, 1);
	rails_end(sim);
}

Test(end, a_repeat_does_not_wait_long_for_a_connection)
{
	const struct ulnet_sim_link slow = { .connect = 3000 * MSEC };

	expect_first_failure(connection_lost(&slow), 1000);
}

Test(end, a_repeat_does_not_wait_in_silence)
{
	const struct ulnet_id us = nth_id(0), peer = nth_id(1);
	struct lnet_sim *sim = connection_lost(&opens);

	lnet_sim_partition(sim, &us.nid, &peer.nid, true);
	expect_first_failure(sim, 400);
}

/* ---- scenario 1: a try gets a part of the time ---- */

Test(end, a_try_that_waits_too_long_takes_another_path)
{
	struct lnet_sim *sim = rails();

	/* Nothing leaves over these paths. */
	paths_are(sim, NULL, theirs[0], &stalls);
	put(sim, NULL, 0, SECOND * 3 / 10);
	put(sim, NULL, 0, SECOND * 3 / 10);
	lnet_sim_run(sim, 99 * MSEC);
	cr_assert_eq(seen.n, 1, "one of both has found the other NI");
	lnet_sim_run(sim, 2 * MSEC);
	cr_assert_eq(seen.n, 2);
	cr_assert_eq(sent.n, 2);
	cr_expect_eq(sent.ev[1].status, 0);
	cr_expect_eq(sent.ev[1].paths_tried, 2);
	cr_expect_eq(peer_health(sim, 0), 900);
	cr_expect_eq(my_health(sim, 0), 1000,
		     "a peer that does not read is "
		     "not our NI's fault");
	cr_expect_eq(my_health(sim, 1), 1000);
	cr_expect_eq(counted(sim, "local_timeout_count"), 1);
	cr_expect_eq(counted(sim, "resends_timeout"), 1);
	cr_expect_eq(counted(sim, "resends_local"), 0);
	cr_expect_eq(counted(sim, "resends_remote"), 0);
	cr_expect_eq(their_ni(sim, 0).resends.timeout, 1);
	rails_end(sim);
}

/* The example of lnet_multirail(7): 50 s, retry_count 2, and four paths over
 * which nothing leaves. @ends says when each try ends, in ms; there are pauses
 * between them. */
Test(end, the_deadline_is_divided_as_the_page_says)
{
	static const uint64_t ends[] = { 16667, 27778, 35185, 40123, 45067 };
	struct lnet_sim *sim = rails();
	uint64_t at = 0;

	paths_are(sim, NULL, NULL, &stalls);
	put(sim, NULL, 0, 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(ends); i++) {
		lnet_sim_run(sim, (ends[i] - 1 - at) * MSEC);
		cr_expect_eq(counted(sim, "resend_count"), i,
			     "try %u lasts until %ju ms", i + 1, ends[i]);
		lnet_sim_run(sim, 2 * MSEC);
		cr_expect_eq(counted(sim, "resend_count"), i + 1,
			     "try %u ends at %ju ms", i + 1, ends[i]);
		at = ends[i] + 1;
	}
	lnet_sim_run(sim, (50000 - at) * MSEC - 1);
	cr_assert_eq(sent.n, 0);
	lnet_sim_run(sim, 1);
	seen_end(&sent, LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_NOT_DELIVERED,
		 LNET_CAUSE_LOCAL_TIMEOUT);
	cr_expect_eq(sent.ev[0].paths_tried, 6);
	rails_end(sim);
}

Test(end, the_last_try_may_take_all_the_time)
{
	struct lnet_sim *sim = rails();

	cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, 0), "retry_count", 0),
		     0);
	paths_are(sim, NULL, NULL, &stalls);
	put(sim, NULL, 0, SECOND);
	lnet_sim_run(sim, 1000 * MSEC - 1);
	cr_assert_eq(sent.n, 0);
	lnet_sim_run(sim, 1);
	seen_end(&sent, LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_NOT_DELIVERED,
		 LNET_CAUSE_LOCAL_TIMEOUT);
	rails_end(sim);
}

/* ---- scenario 2: begun, and not completed ---- */

Test(end, a_send_that_has_begun_is_not_cut_off)
{
	/* 4,096 bytes take 820 ms. */
	const struct ulnet_sim_link slow = { .bandwidth = 5000 };
	struct lnet_sim *sim = rails();
	struct ulnet_md umd = md_of(source, sizeof(source), 0, &sent);

	umd.timeout = SECOND;
	paths_are(sim, NULL, NULL, &slow);
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(lnet_sim_node(sim, 0), &umd),
			     LNET_NOACK_REQ, id_of(theirs[0]), PORTAL, BITS, 0,
			     0),
		     0);
	lnet_sim_run(sim, 999 * MSEC);
	cr_assert_eq(sent.n, 1);
	cr_expect_eq(sent.ev[0].status, 0);
	cr_expect_eq(sent.ev[0].paths_tried, 1);
	cr_expect_eq(counted(sim, "resend_count"), 0);
	rails_end(sim);
}

/* After an error the peer may have got the message or not. */
Test(end, a_message_that_may_have_arrived_is_not_sent_again)
{
	struct lnet_sim *sim = rails();

	paths_are(sim, NULL, NULL, &fails);
	for (unsigned int i = 0; i < 20; i++)
		put(sim, NULL, 0, SECOND);
	lnet_sim_run(sim, 1000 * MSEC);
	cr_assert_eq(sent.n, 20);
	for (unsigned int i = 0; i < 20; i++) {
		cr_expect_eq(sent.ev[i].outcome, LNET_OUTCOME_UNKNOWN);
		cr_expect_eq(sent.ev[i].paths_tried, 1);
	}
	cr_expect_gt(seen.n, 0);
	cr_expect_lt(seen.n, 20);
	cr_expect_eq(counted(sim, "resend_count"), 0);
	cr_expect_lt(my_health(sim, 0), 1000);
	cr_expect_lt(my_health(sim, 1), 1000);
	cr_expect_eq(peer_health(sim, 0), 1000);
	rails_end(sim);
}

/* A first try that has certainly not arrived is followed by one that may have
 * arrived. */
Test(end, one_try_that_may_have_arrived_is_the_last)
{
	struct lnet_sim *sim = rails();

	paths_are(sim, NULL, theirs[0], &refuses);
	paths_are(sim, NULL, theirs[1], &fails);
	for (unsigned int i = 0; i < 4; i++) {
		put(sim, NULL, 0, SECOND);
		lnet_sim_run(sim, MSEC);
	}
	cr_assert_eq(sent.n, 4);
	for (unsigned int i = 0; i < 4; i++)
		cr_expect_eq(sent.ev[i].outcome, LNET_OUTCOME_UNKNOWN);
	cr_expect_gt(counted(sim, "failed_resends"), 0);
	rails_end(sim);
}

/* ---- scenario 3: sent, and not acknowledged ---- */

Test(end, an_unanswered_message_is_not_sent_again)
{
	const struct ulnet_sim_link loses = { .loss = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = rails();
	struct ulnet_md umd = md_of(source, 100, 0, &sent);

	umd.timeout = SECOND;
	paths_are(sim, NULL, NULL, &loses);
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(lnet_sim_node(sim, 0), &umd),
			     LNET_ACK_REQ, id_of(theirs[0]), PORTAL, BITS, 0,
			     0),
		     0);
	lnet_sim_run(sim, 2000 * MSEC);
	cr_assert_eq(sent.n, 2);
	cr_expect_eq(sent.ev[1].outcome, LNET_OUTCOME_UNKNOWN);
	cr_expect_eq(sent.ev[1].cause, LNET_CAUSE_RESPONSE_TIMEOUT);
	cr_expect_eq(counted(sim, "resend_count"), 0);
	rails_end(sim);
}

/* The NI that the request went to is to blame, whichever CPT owns it. */
Test(end, an_answer_that_is_late_costs_health)
{
	const struct ulnet_sim_link loses = { .loss = LNET_SIM_ALWAYS };

	for (unsigned int i = 0; i < 2; i++) {
		struct lnet_sim *sim = rails();
		const struct ulnet_nid nid = nid_of(mine[0]);
		struct ulnet_md umd = md_of(source, 100, 0, &sent);

		umd.timeout = SECOND;
		paths_are(sim, NULL, NULL, &loses);
		cr_assert_eq(LNetGet(nid, bind_md(lnet_sim_node(sim, 0), &umd),
				     id_of(theirs[i]), PORTAL, BITS, 0),
			     0);
		lnet_sim_run(sim, 1000 * MSEC + 1);
		cr_expect_eq(sent.ev[1].cause, LNET_CAUSE_RESPONSE_TIMEOUT);
		cr_expect_eq(peer_health(sim, i), 900);
		cr_expect_eq(peer_health(sim, !i), 1000);
		cr_expect_eq(my_health(sim, 0), 1000);
		rails_end(sim);
	}
}

/* ---- who named an NI ---- */

/* Other NIs of the peer are tried from there, if the one named fails. */
Test(end, a_named_ni_is_used)
{
	struct lnet_sim *sim = rails();

	cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, 0), "retry_count", 0),
		     0);
	for (unsigned int i = 0; i < 4; i++) {
		put(sim, mine[1], 0, SECOND);
		lnet_sim_run(sim, MSEC);
		cr_assert_eq(sent.n, i + 1);
		cr_expect(nid_is(&sent.ev[i].path_peer, theirs[0]));
	}
	paths_are(sim, mine[1], theirs[0], &refuses);
	put(sim, mine[1], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 5);
	cr_expect_eq(sent.ev[4].paths_tried, 2);
	cr_expect(nid_is(&sent.ev[4].path_local, mine[1]));
	cr_expect(nid_is(&sent.ev[4].path_peer, theirs[1]));
	paths_are(sim, mine[1], theirs[1], &refuses);
	sent.n = 0;
	put(sim, mine[1], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	seen_end(&sent, LNET_EVENT_SEND, -EHOSTUNREACH,
		 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_REMOTE_DROPPED);
	cr_expect_eq(sent.ev[0].paths_tried, 2);
	rails_end(sim);
}

Test(end, a_preferred_ni_is_tried_first)
{
	struct lnet_sim *sim = rails();

	for (unsigned int i = 0; i < 4; i++) {
		put(sim, mine[1], LNET_MD_PREFER_PATH, SECOND);
		lnet_sim_run(sim, MSEC);
		cr_assert_eq(sent.n, i + 1);
		cr_expect(nid_is(&sent.ev[i].path_local, mine[1]));
		cr_expect(nid_is(&sent.ev[i].path_peer, theirs[0]));
	}
	paths_are(sim, mine[1], theirs[0], &refuses);
	put(sim, mine[1], LNET_MD_PREFER_PATH, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 5);
	cr_expect_eq(sent.ev[4].status, 0);
	cr_expect_eq(sent.ev[4].paths_tried, 2);
	rails_end(sim);
}

/* ---- answers ---- */

/* Node 1 knows node 0 as multi-rail, too; its links to the first NI of node 0
 * are blocked. */
Test(end, answers_take_another_path)
{
	struct lnet_sim *sim = rails();
	struct ulnet_md umd = md_of(source, 100, 0, &sent);
	struct lnet_cpt *cpt = lnet_sim_node(sim, 1)->cpt[0];
	const struct ulnet_nid a = nid_of(mine[0]), b = nid_of(mine[1]);
	struct lnet_peer_ni *first = peer_get(cpt, &a);
	struct lnet_peer_ni *other = peer_get(cpt, &b);

	cr_assert_eq(member_take(cpt, first->peer, other), 0);
	first->peer->multi_rail = true;
	cpt_topology_changed(cpt);
	peer_unref(first);
	peer_unref(other);
	umd.threshold = 2;
	umd.timeout = SECOND;
	paths_are(sim, NULL, mine[0], &refuses);
	for (unsigned int i = 0; i < 2; i++) {
		bool get = i == 1;
		struct ulnet_md_handle md =
			bind_md(lnet_sim_node(sim, 0), &umd);

		sent.n = 0;
		if (get)
			cr_assert_eq(LNetGet(a, md, id_of(theirs[0]), PORTAL,
					     BITS, 0),
				     0);
		else
			cr_assert_eq(LNetPut(a, md, LNET_ACK_REQ,
					     id_of(theirs[0]), PORTAL, BITS, 0,
					     0),
				     0);
		lnet_sim_run(sim, 10 * MSEC);
		seen_end(&sent, get ? LNET_EVENT_REPLY : LNET_EVENT_ACK, 0,
			 LNET_OUTCOME_DELIVERED, LNET_CAUSE_OK);
	}
	cr_expect_eq(counter(lnet_sim_node(sim, 1), "successful_resends"), 2);
	rails_end(sim);
}

/* ---- giving up ---- */

static void pause_one(struct lnet_sim *sim, struct ulnet_md_handle *md)
{
	paths_are(sim, NULL, NULL, &refuses);
	*md = put(sim, NULL, 0, 10 * SECOND);
	/* four round trips, and a part of the first pause */
	lnet_sim_run(sim, 5 * MSEC);
	cr_assert_eq(sent.n, 0);
	cr_assert_eq(lnet_sim_check(sim), 0);
}

Test(end, a_paused_message_can_be_canceled)
{
	struct lnet_sim *sim = rails();
	struct ulnet_md_handle md;

	pause_one(sim, &md);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run(sim, 0);
	seen_end(&sent, LNET_EVENT_SEND, -ECANCELED, LNET_OUTCOME_NOT_DELIVERED,
		 LNET_CAUSE_CANCELED);
	cr_expect_eq(sent.ev[0].paths_tried, 4);
	rails_end(sim);
}

/* Gives up a message that the LND has. It ends at once, without another try.
 * This is not counted as a failure of the path, and costs no health. */
static void give_up_in_the_lnd(const struct ulnet_sim_link *link,
			       enum ulnet_outcome outcome)
{
	struct lnet_sim *sim = rails();
	struct ulnet_md_handle md;

	paths_are(sim, NULL, NULL, link);
	md = put(sim, NULL, 0, 10 * SECOND);
	lnet_sim_run(sim, 0);
	cr_assert_eq(sent.n, 0);
	cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run(sim, 0);
	seen_end(&sent, LNET_EVENT_SEND, -ECANCELED, outcome,
		 LNET_CAUSE_CANCELED);
	cr_expect_eq(sent.ev[0].paths_tried, 1);
	for (unsigned int i = 0; i < 2; i++) {
		cr_expect_eq(my_health(sim, i), LNET_HEALTH_MAX);
		cr_expect_eq(peer_health(sim, i), LNET_HEALTH_MAX);
		cr_expect_eq(my_ni(sim, i).failed.timeouts, 0);
		cr_expect_eq(my_ni(sim, i).failed.network_timeouts, 0);
		cr_expect_eq(their_ni(sim, i).failed.network_timeouts, 0);
	}
	cr_expect_eq(counter(lnet_sim_node(sim, 0), "local_timeout_count"), 0);
	cr_expect_eq(counter(lnet_sim_node(sim, 0), "network_timeout_count"),
		     0);
	rails_end(sim);
}

Test(end, a_canceled_message_is_not_sent_again)
{
	give_up_in_the_lnd(&refuses, LNET_OUTCOME_NOT_DELIVERED);
	give_up_in_the_lnd(&stalls, LNET_OUTCOME_NOT_DELIVERED);
}

Test(end, a_message_canceled_in_transit_may_arrive)
{
	const struct ulnet_sim_link slow = { .latency = 10 * MSEC,
					     .bandwidth = 10000 };

	give_up_in_the_lnd(&slow, LNET_OUTCOME_UNKNOWN);
}

Test(end, a_paused_message_ends_with_the_node)
{
	struct lnet_sim *sim = rails();
	struct ulnet_md_handle md;

	pause_one(sim, &md);
	cr_assert_eq(lnet_sim_free(sim), 0);
	cr_assert_eq(sent.n, 1);
	cr_expect_eq(sent.ev[0].outcome, LNET_OUTCOME_NOT_DELIVERED);
}

Test(end, a_paused_message_outlives_its_ni)
{
	struct lnet_sim *sim = rails();
	const struct ulnet_nid nid = nid_of(mine[0]);
	const struct ulnet_sim_link works = { .latency = 10000 };
	struct ulnet_md_handle md;

	pause_one(sim, &md);
	cr_assert_eq(lnet_ni_del(lnet_sim_node(sim, 0), &nid), 0);
	paths_are(sim, NULL, NULL, &works);
	lnet_sim_run(sim, 20 * MSEC);
	cr_assert_eq(sent.n, 1);
	cr_expect_eq(sent.ev[0].status, 0);
	cr_expect(nid_is(&sent.ev[0].path_local, mine[1]));
	rails_end(sim);
}

/* ---- health ---- */

/* A message that is received is evidence of health; one that was sent is not.
 */
Test(end, health_comes_back_by_messages_received)
{
	struct lnet_sim *sim = rails();
	const struct ulnet_sim_link works = { .latency = 10000 };
	const struct ulnet_id back = id_of(mine[0]);
	struct lnet *peer = lnet_sim_node(sim, 1);

	paths_are(sim, NULL, NULL, &refuses);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(peer_health(sim, 0), 900);
	paths_are(sim, NULL, NULL, &works);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_expect_eq(peer_health(sim, 0), 900);
	cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, 0), "health_gain", 1),
		     0);
	for (int i = 1; i <= 3; i++) {
		struct ulnet_md umd = md_of(source, 10, 0, NULL);

		if (i == 3) /* 0: as much as a failure takes */
			cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, 0),
						      "health_gain", 0),
				     0);
		cr_assert_eq(LNetPut(nid_of(theirs[0]), bind_md(peer, &umd),
				     LNET_NOACK_REQ, back, PORTAL, BITS, 0, 0),
			     0);
		lnet_sim_run(sim, MSEC);
		cr_expect_eq(peer_health(sim, 0), i == 3 ? 1000 : 900 + i);
	}
	rails_end(sim);
}

/* Failures in one turn count as one, however many messages fail. */
Test(end, one_failure_counts_once)
{
	struct lnet_sim *sim = rails();
	const struct ulnet_sim_link link = { .latency = 10000,
					     .connect = 2 * MSEC,
					     .refuse = LNET_SIM_ALWAYS };

	cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, 0), "retry_count", 0),
		     0);
	paths_are(sim, NULL, NULL, &link);
	for (unsigned int i = 0; i < 5; i++)
		put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, 10 * MSEC);
	cr_expect_eq(sent.n, 5);
	cr_expect_eq(peer_health(sim, 0), 900);
	cr_expect_eq(peer_health(sim, 1), 900);
	rails_end(sim);
}

Test(end, without_sensitivity_no_health_is_lost)
{
	struct lnet_sim *sim = rails();

	cr_assert_eq(lnet_setting_set(lnet_sim_node(sim, 0),
				      "health_sensitivity", 0),
		     0);
	paths_are(sim, NULL, theirs[0], &refuses);
	for (unsigned int i = 0; i < 4; i++) {
		put(sim, NULL, 0, SECOND);
		lnet_sim_run(sim, MSEC);
	}
	cr_expect_eq(peer_health(sim, 0), 1000);
	cr_expect_eq(seen.n, 4);
	rails_end(sim);
}

/* Nor does health that was set by hand decide anything: both NIs of the peer
 * are used in turn. */
Test(end, without_sensitivity_health_decides_nothing)
{
	const struct ulnet_nid ni = nid_of(mine[0]), peer = nid_of(theirs[0]);
	struct lnet_sim *sim = rails();
	struct lnet *node = lnet_sim_node(sim, 0);

	cr_assert_eq(lnet_setting_set(node, "health_sensitivity", 0), 0);
	cr_assert_eq(lnet_ni_set_health(node, &ni, 0), 0);
	cr_assert_eq(lnet_peer_set_health(node, &peer, 0), 0);
	for (unsigned int i = 0; i < 8; i++) {
		put(sim, NULL, 0, SECOND);
		lnet_sim_run(sim, MSEC);
	}
	for (unsigned int i = 0; i < 2; i++) {
		cr_expect_eq(my_ni(sim, i).sent.put, 4);
		cr_expect_eq(their_ni(sim, i).sent.put, 4);
	}
	rails_end(sim);
}

/* ---- what users see, and set ---- */

Test(end, failures_are_shown_by_cause)
{
	struct lnet_sim *sim = rails();
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_ni_info ni;

	cr_assert_eq(lnet_setting_set(node, "retry_count", 0), 0);
	paths_are(sim, NULL, NULL, &fails);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	paths_are(sim, NULL, NULL, &refuses);
	put(sim, mine[0], 0, SECOND);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_ni_info(node, 1, &ni), 0);
	cr_expect_eq(ni.health, 900);
	cr_expect_eq(ni.failed.errors, 1);
	cr_expect_eq(ni.failed.remote_dropped, 2);
	cr_expect_eq(ni.failed.timeouts, 0);
	cr_expect_eq(their_ni(sim, 0).health, 900);
	cr_expect_eq(their_ni(sim, 0).failed.remote_dropped, 1);
	cr_expect_eq(their_ni(sim, 1).failed.remote_dropped, 1);
	cr_assert_eq(lnet_stats_reset(node), 0);
	cr_assert_eq(lnet_ni_info(node, 1, &ni), 0);
	cr_expect_eq(ni.failed.errors, 0);
	cr_expect_eq(ni.health, 900, "health is no counter");
	cr_expect_eq(their_ni(sim, 0).failed.remote_dropped, 0);
	cr_expect_eq(their_ni(sim, 0).health, 900);
	rails_end(sim);
}

Test(end, health_can_be_set)
{
	struct lnet_sim *sim = rails();
	struct lnet *node = lnet_sim_node(sim, 0);
	const struct ulnet_nid peer = nid_of(theirs[0]), ni = nid_of(mine[1]);
	const struct ulnet_nid lo = nid_of("0@lo"),
			       none = nid_of("10.9.9.9@tcp");

	cr_assert_eq(lnet_peer_set_health(node, &peer, 500), 0);
	cr_assert_eq(lnet_ni_set_health(node, &ni, 0), 0);
	cr_expect_eq(peer_health(sim, 0), 500);
	cr_expect_eq(my_health(sim, 1), 0);
	for (unsigned int i = 0; i < 4; i++) {
		put(sim, NULL, 0, SECOND);
		lnet_sim_run(sim, MSEC);
		cr_expect(nid_is(&sent.ev[i].path_local, mine[0]));
		cr_expect(nid_is(&sent.ev[i].path_peer, theirs[1]));
	}
	cr_assert_eq(lnet_peer_set_health(node, NULL, 1000), 0);
	cr_assert_eq(lnet_ni_set_health(node, NULL, 1000), 0);
	cr_expect_eq(peer_health(sim, 0), 1000);
	cr_expect_eq(my_health(sim, 1), 1000);
	cr_expect_eq(lnet_peer_set_health(node, &none, 1), -ENOENT);
	cr_expect_eq(lnet_ni_set_health(node, &none, 1), -ENOENT);
	cr_expect_eq(lnet_ni_set_health(node, &lo, 1), -EINVAL);
	cr_expect_eq(lnet_ni_set_health(node, &ni, 1001), -EINVAL);
	cr_expect_eq(lnet_peer_set_health(node, &peer, -1), -EINVAL);
	rails_end(sim);
}

/* ---- silence ---- */

#define SILENT_FOR (300 * MSEC)

struct silence {
	struct lnet *node;
	const char *from, *to;
};

static int falls_silent(void *arg)
{
	const struct silence *s = arg;
	const struct ulnet_nid from = nid_of(s->from);
	const struct ulnet_id to = { nid_of(s->to), LNET_PID_ANY };

	lnet_peer_silent(&config_ni(s->node->cpt[0]->config, &from)->lnd, &to,
			 SILENT_FOR);
	return 0;
}

/* Reports the silence of this path, as an LND does. */
static void silent(struct lnet_sim *sim, const char *from, const char *to)
{
	struct silence s = { lnet_sim_node(sim, 0), from, to };

	cr_assert_eq(lnet_call(s.node, 0, falls_silent, &s), 0);
}

/* Messages that wait for a silent path take another one at once, long before
 * their try would be over. */
Test(end, a_silent_path_is_left)
{
	const struct ulnet_sim_link slow = { .connect = 100 * SECOND * 1000 };
	struct lnet_sim *sim = rails();

	paths_are(sim, NULL, theirs[0], &slow);
	for (unsigned int i = 0; i < 8; i++)
		put(sim, NULL, 0, 60 * SECOND);
	lnet_sim_run(sim, MSEC);
	/* Messages that wait for a connection hold no credit. That must not
	 * make their path look better. */
	cr_assert_eq(seen.n, 4, "%u: the other half waits", seen.n);
	silent(sim, mine[0], theirs[0]);
	silent(sim, mine[1], theirs[0]);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_expect_eq(seen.n, 8);
	cr_expect_eq(sent.n, 8);
	for (unsigned int i = 0; i < sent.n; i++)
		cr_expect(nid_is(&sent.ev[i].path_peer, theirs[1]));
	cr_expect_lt(peer_health(sim, 0), 1000);
	cr_expect_eq(peer_health(sim, 1), 1000);
	cr_expect_eq(counted(sim, "silences"), 2);
	cluster_end(sim);
}

/* A message that has no other path goes on waiting, and arrives if the peer
 * comes back. */
Test(end, a_silent_path_is_kept_without_another_one)
{
	const struct ulnet_sim_link slow = { .connect = SECOND * 1000 };
	const struct ulnet_id our = nth_id(0), their = nth_id(1);
	char from[LNET_NIDSTR_SIZE], to[LNET_NIDSTR_SIZE];
	struct lnet_sim *sim = one_path(&slow, 2);

	put_on_one_path(sim, 0);
	lnet_sim_run(sim, MSEC);
	silent(sim, lnet_nid_format(&our.nid, from, sizeof(from)),
	       lnet_nid_format(&their.nid, to, sizeof(to)));
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(sent.n, 0);
	lnet_sim_run(sim, 2 * SECOND * 1000);
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(sent.n, 1);
	cr_expect_eq(sent.ev[0].status, 0);
	cr_expect(nid_is(&sent.ev[0].path_peer, to));
	cr_expect_eq(counted(sim, "resend_count"), 0);
	cluster_end(sim);
}
