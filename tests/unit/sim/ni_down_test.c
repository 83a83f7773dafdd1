/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of messages and connections when a simulated NI goes down. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ulnet/loop.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   1
#define LENGTH 60000 /* bytes; takes 60 ms */

static const struct ulnet_sim_link slow = { .latency = MSEC,
					    .bandwidth = 1000000 };
static uint8_t source[LENGTH], memory[4 * LENGTH];
static struct seen received;

/* Returns a cluster in which node 0 sends to node 1. */
static struct lnet_sim *pair(const struct ulnet_sim_link *link)
{
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd =
		md_of(memory, sizeof(memory), LNET_MD_OP_PUT, &received);

	received.n = 0;
	cluster_links(sim, link);
	post_md(lnet_sim_node(sim, 1), PORTAL, BITS, &umd);
	return sim;
}

static void put(struct lnet_sim *sim, size_t length, struct seen *sent)
{
	struct ulnet_md umd = md_of(source, length, 0, sent);
	struct ulnet_md_handle md;

	umd.threshold = 1;
	sent->n = 0;
	md = bind_md(lnet_sim_node(sim, 0), &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, nth_id(1),
			     PORTAL, BITS, 0, 0),
		     0);
}

static void ni_set(struct lnet_sim *sim, unsigned int node, bool up)
{
	const struct ulnet_id id = nth_id(node);

	cr_assert_eq(lnet_sim_ni_set(sim, &id.nid, up), 0);
}

/* Messages end at once, and not at their deadlines. */
Test(ni_down, sender_is_told)
{
	static struct seen leaving, waiting;
	struct lnet_sim *sim = pair(&slow);

	put(sim, LENGTH, &leaving);
	put(sim, LENGTH, &waiting);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(leaving.n + waiting.n, 0);
	ni_set(sim, 0, false);
	lnet_sim_run(sim, 1);
	seen_end(&leaving, LNET_EVENT_SEND, -ENETDOWN, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_LOCAL_ERROR);
	seen_end(&waiting, LNET_EVENT_SEND, -ENETDOWN,
		 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_LOCAL_NO_ROUTE);
	cluster_end(sim);
}

/* The NI may be up again before anybody has looked. */
Test(ni_down, for_a_moment)
{
	static struct seen first, second;
	struct lnet_sim *sim = pair(&slow);

	put(sim, LENGTH, &first);
	lnet_sim_run(sim, 10 * MSEC);
	ni_set(sim, 0, false);
	ni_set(sim, 0, true);
	lnet_sim_run(sim, 1);
	seen_end(&first, LNET_EVENT_SEND, -ENETDOWN, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_LOCAL_ERROR);
	put(sim, LENGTH, &second);
	lnet_sim_run_all(sim);
	seen_end(&second, LNET_EVENT_SEND, 0, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_OK);
	cluster_end(sim);
}

/* A message that the NI is just storing is lost, and so are those that come
 * while it is down. */
Test(ni_down, receiver_loses)
{
	static struct seen sent;
	struct lnet_sim *sim = pair(&slow);

	put(sim, LENGTH, &sent);
	lnet_sim_run(sim, 30 * MSEC);
	ni_set(sim, 1, false);
	put(sim, 1, &sent);
	lnet_sim_run(sim, 100 * MSEC);
	ni_set(sim, 1, true);
	lnet_sim_run(sim, 100 * MSEC);
	cr_assert_eq(received.n, 1);
	cr_assert_eq(received.ev[0].status, -ENETDOWN);
	put(sim, 1, &sent);
	lnet_sim_run_all(sim);
	cr_assert_eq(received.n, 2);
	cr_assert_eq(received.ev[1].status, 0);
	cluster_end(sim);
}

/* ---- connections ---- */

static unsigned int told;

static void on_disconnected(struct ulnet_peer_watch *watch,
			    const struct ulnet_id *peer)
{
	const struct ulnet_id other = nth_id(1);

	(void)watch;
	cr_assert(lnet_nid_eq(&peer->nid, &other.nid));
	told++;
}

static int watch(void *arg)
{
	static struct ulnet_peer_watch w = { .disconnected = on_disconnected };

	lnet_peer_watch_add(arg, 0, &w);
	return 0;
}

/* The NI's own connections end, and are made anew when it is up again. */
Test(ni_down, connections_end)
{
	static const struct ulnet_sim_link tcp = { .latency = MSEC,
						   .connect = MSEC };
	static struct seen sent;
	struct lnet_sim *sim = pair(&tcp);

	cr_assert_eq(lnet_call(lnet_sim_node(sim, 0), 0, watch,
			       lnet_sim_node(sim, 0)),
		     0);
	put(sim, 1, &sent);
	lnet_sim_run_all(sim);
	cr_assert_eq(told, 0);
	ni_set(sim, 0, false);
	lnet_sim_run(sim, 1);
	cr_assert_eq(told, 1);
	ni_set(sim, 0, true);
	put(sim, 1, &sent);
	lnet_sim_run_all(sim);
	cr_assert_eq(told, 1);
	cr_assert_eq(received.n, 2);
	cluster_end(sim);
}
