/* SPDX-License-Identifier: BSD-3-Clause */
/* Links that lose what is too large for them. */
#include <criterion/criterion.h>
#include <ulnet/loop.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   1
#define HOLE   1000 /* bytes */

static uint8_t source[HOLE + 1], memory[HOLE + 1];

/* A cluster in which each of two nodes receives; the link from node 0 to node 1
 * has a hole. */
static struct lnet_sim *pair(uint64_t connect, struct seen received[2])
{
	const struct ulnet_sim_link whole = { .latency = MSEC,
					      .connect = connect },
				    holed = { .latency = MSEC,
					      .connect = connect,
					      .hole = HOLE };
	const struct ulnet_id from = nth_id(0), to = nth_id(1);
	struct lnet_sim *sim = cluster(2);

	cluster_links(sim, &whole);
	cr_assert_eq(lnet_sim_link_set(sim, &from.nid, &to.nid, &holed), 0);
	for (unsigned int i = 0; i < 2; i++) {
		struct ulnet_md umd = md_of(
			memory, sizeof(memory),
			LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE, &received[i]);

		received[i].n = 0;
		post_md(lnet_sim_node(sim, i), PORTAL, BITS, &umd);
	}
	return sim;
}

static void put(struct lnet_sim *sim, unsigned int from, size_t length,
		struct seen *sent)
{
	struct ulnet_md umd = md_of(source, length, 0, sent);
	struct ulnet_md_handle md;

	umd.threshold = 1;
	sent->n = 0;
	md = bind_md(lnet_sim_node(sim, from), &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, nth_id(1 - from),
			     PORTAL, BITS, 0, 0),
		     0);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(sent->n, 1);
	cr_assert_eq(sent->ev[0].status, 0, "the sender knows nothing of it");
}

Test(hole, what_is_too_large_is_lost)
{
	struct ulnet_sim_stats stats;
	struct seen received[2], sent;
	struct lnet_sim *sim = pair(0, received);

	put(sim, 0, HOLE, &sent);
	cr_assert_eq(received[1].n, 1);
	put(sim, 0, HOLE + 1, &sent);
	cr_assert_eq(received[1].n, 1);
	put(sim, 1, HOLE + 1, &sent);
	cr_assert_eq(received[0].n, 1, "the other direction is whole");
	lnet_sim_stats(sim, &stats);
	cr_assert_eq(stats.faults, 1);
	cluster_end(sim);
}

static unsigned int silences;

static void on_silent(struct ulnet_peer_watch *watch,
		      const struct ulnet_id *peer)
{
	(void)watch;
	(void)peer;
	silences++;
}

static void on_disconnected(struct ulnet_peer_watch *watch,
			    const struct ulnet_id *peer)
{
	(void)watch;
	(void)peer;
	cr_assert(false, "the connection is silent, not lost");
}

static int watch(void *arg)
{
	static struct ulnet_peer_watch w = { .silent = on_silent,
					     .disconnected = on_disconnected };

	lnet_peer_watch_add(arg, 0, &w);
	return 0;
}

/* TCP repeats what is lost in a hole, in vain, and is silent meanwhile. */
Test(hole, connection_is_silent)
{
	struct seen received[2], sent;
	struct lnet_sim *sim = pair(MSEC, received);

	cr_assert_eq(lnet_call(lnet_sim_node(sim, 0), 0, watch,
			       lnet_sim_node(sim, 0)),
		     0);
	put(sim, 0, HOLE, &sent);
	lnet_sim_run(sim, 1000 * MSEC);
	cr_assert_eq(silences, 0);
	put(sim, 0, HOLE + 1, &sent);
	put(sim, 0, 1, &sent);
	cr_assert_eq(received[1].n, 2, "what is short passes");
	lnet_sim_run(sim, 370 * MSEC);
	cr_assert_eq(silences, 0);
	lnet_sim_run(sim, 20 * MSEC);
	cr_assert_eq(silences, 1);
	/* The new connection is well. */
	put(sim, 0, 1, &sent);
	lnet_sim_run(sim, 1000 * MSEC);
	cr_assert_eq(received[1].n, 3);
	cr_assert_eq(silences, 1);
	cluster_end(sim);
}
