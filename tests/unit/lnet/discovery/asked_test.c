/* SPDX-License-Identifier: BSD-3-Clause */
/* lnet_discover(3): an application asks for the discovery of a peer. */
#include "lnet/discovery/session.h"
#include "tests/unit/lnet/discovery/discover_rig.h"
#include "ulnet/fault.h"

#define ALWAYS LNET_SIM_ALWAYS
#define SECOND UINT64_C(1000000) /* us */
#define LATE   (100 * MSEC)

static struct seen seen, more;

static struct lnet_sim *sim_new(unsigned int cpts)
{
	struct lnet_sim *sim;

	memset(&seen, 0, sizeof(seen));
	memset(&more, 0, sizeof(more));
	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	return sim;
}

static int asked, status_of_asked;

static void discovered(void *arg, int status)
{
	cr_assert_eq(arg, &asked);
	status_of_asked = status;
	asked++;
}

static int ask_for(struct lnet *node, const char *nid, unsigned int flags)
{
	struct ulnet_nid of = nid_of(nid);

	asked = 0;
	return lnet_discover(node, &of, flags, discovered, &asked);
}

static struct lnet *insists;

static void ask_once_more(void *arg, int status)
{
	const struct ulnet_nid *nid = arg;

	cr_assert_neq(status, 0);
	if (++asked < 4)
		cr_assert_eq(lnet_discover(insists, nid, 0, ask_once_more, arg),
			     0);
}

/* An application asks again in its callback: it is called once more, for
 * another discovery. */
Test(lnet_discover, asked_again_at_once)
{
	struct ulnet_nid nobody = nid_of("10.0.0.9@tcp");
	struct lnet_sim *sim = sim_new(1);

	insists = node_on(sim, A_RAILS);
	asked = 0;
	cr_assert_eq(lnet_discover(insists, &nobody, 0, ask_once_more, &nobody),
		     0);
	lnet_sim_run(sim, 60000 * MSEC);
	cr_assert_eq(asked, 4);
	cr_assert_geq(counter(insists, "discoveries_failed"), 4);
	cluster_end(sim);
}

Test(lnet_discover, asked_for)
{
	const struct ulnet_sim_link closed = { .refuse = ALWAYS };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);
	struct lnet *b = node_on(sim, B_RAILS);
	uint64_t sent;

	cr_assert_eq(ask_for(a, "10.0.0.2@tcp1", 0), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(asked, 1);
	cr_assert_eq(status_of_asked, 0);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	KNOWS(b, "10.0.0.1@tcp", KNOWS_A);
	sent = counter(a, "send_count");
	cr_assert_eq(ask_for(a, "10.0.0.2@tcp", 0), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(asked, 1);
	cr_assert_eq(counter(a, "send_count"), sent);
	cr_assert_eq(ask_for(a, "10.0.0.2@tcp", LNET_DISCOVER_FORCE), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(asked, 1);
	cr_assert_eq(counter(a, "send_count"), sent + 2); /* GET, push */
	cluster_links(sim, &closed);
	cr_assert_eq(ask_for(a, "10.0.0.2@tcp", LNET_DISCOVER_FORCE), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(asked, 1);
	cr_assert_lt(status_of_asked, 0);
	cluster_end(sim);
}

/* The last announcement of a node before its restart waits to be merged when it
 * announces itself again, with a lower number. */
Test(lnet_discover, restarted_while_asked)
{
	const struct ulnet_ni_conf third = { .nid = nid_of("10.0.0.2@tcp2") };
	struct lnet_sim *sim = sim_new(1);
	struct ulnet_fault fault;
	struct lnet *a, *b;

	discovered_pair(sim, &a, &b);
	lnet_fault_init(&fault, LNET_FAULT_DROP);
	fault.rate = 1;
	fault.messages = LNET_FAULT_REPLY;
	cr_assert_eq(lnet_fault_add(a, &fault), 0);
	cr_assert_eq(ask_for(a, "10.0.0.2@tcp", LNET_DISCOVER_FORCE), 0);
	cr_assert_eq(lnet_ni_add(b, &third), 0);
	lnet_sim_run(sim, 10 * MSEC);
	KNOWS(a, "10.0.0.2@tcp", "discovering mr: 10.0.0.2@tcp 10.0.0.2@tcp1");
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	cr_assert_eq(lnet_sim_restart(sim, 1), 0);
	put_to(lnet_sim_node(sim, 1), "10.0.0.1@tcp", 0, &more);
	lnet_sim_run(sim, 10 * MSEC);
	seen_delivered(&more);
	cr_assert_eq(lnet_fault_del(a, LNET_FAULT_DROP, NULL, NULL), 1);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp", KNOWS_B);
	cluster_end(sim);
}

/* Two NIDs have announced their node when one claims the other: the last
 * announcement counts, whichever NID it came from. */
Test(lnet_discover, announced_by_two_nids)
{
	const struct ulnet_nid nids[] = { nid_of("10.0.0.2@tcp"),
					  nid_of("10.0.0.2@tcp1") };
	const struct ulnet_ni_conf third = { .nid = nid_of("10.0.0.2@tcp2") };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);
	struct lnet *b = node_on(sim, B_RAILS);
	struct ulnet_fault fault;
	uint64_t pushes;

	lnet_fault_init(&fault, LNET_FAULT_DROP);
	fault.rate = 1;
	fault.messages = LNET_FAULT_REPLY;
	cr_assert_eq(lnet_fault_add(a, &fault), 0);
	put_to(a, "10.0.0.2@tcp", SECOND, &seen);
	lnet_sim_run(sim, 10 * MSEC);
	put_to(a, "10.0.0.2@tcp1", SECOND, &more);
	cr_assert_eq(lnet_ni_set_health(b, &nids[1], 0), 0);
	put_to(b, "10.0.0.1@tcp", SECOND, NULL);
	lnet_sim_run(sim, 10 * MSEC);
	pushes = counter(a, "pushes");
	cr_assert_gt(pushes, 0);
	cr_assert_eq(lnet_ni_set_health(b, &nids[1], 1000), 0);
	cr_assert_eq(lnet_ni_set_health(b, &nids[0], 0), 0);
	cr_assert_eq(lnet_ni_add(b, &third), 0);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_gt(counter(a, "pushes"), pushes);
	KNOWS(a, "10.0.0.2@tcp", "discovering: 10.0.0.2@tcp");
	KNOWS(a, "10.0.0.2@tcp1", "discovering: 10.0.0.2@tcp1");
	cr_assert_eq(lnet_fault_del(a, LNET_FAULT_DROP, NULL, NULL), 1);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp1",
	      "discovered mr: 10.0.0.2@tcp 10.0.0.2@tcp1 10.0.0.2@tcp2");
	cluster_end(sim);
}

Test(lnet_discover, asked_for_nonsense)
{
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);
	struct ulnet_nid nid = nid_of("10.0.0.2@tcp");

	cr_assert_eq(ask_for(a, "10.0.0.1@tcp", 0), -EINVAL);
	cr_assert_eq(ask_for(a, "10.0.0.2@tcp", 2), -EINVAL);
	cr_assert_eq(ask_for(a, "10.0.0.2@tcp7", 0), -EHOSTUNREACH);
	cr_assert_eq(lnet_discover(a, &nid, 0, NULL, NULL), -EINVAL);
	cr_assert_eq(lnet_discover(a, &LNET_NID_ANY, 0, discovered, &asked),
		     -EINVAL);
	cluster_end(sim);
}

/* Discoveries in progress end when the node closes. */
Test(lnet_discover, closing)
{
	const struct ulnet_sim_link dead = { .loss = ALWAYS };
	struct lnet_sim *sim = sim_new(1);
	struct lnet *a = node_on(sim, A_RAILS);

	node_on(sim, B_RAILS);
	cluster_links(sim, &dead);
	put_to(a, "10.0.0.2@tcp", 0, &seen);
	cr_assert_eq(ask_for(a, "10.0.0.2@tcp", 0), 0);
	lnet_sim_run(sim, LATE);
	cr_assert_eq(asked, 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
	cr_assert_eq(asked, 1);
	cr_assert_eq(status_of_asked, -ESHUTDOWN);
	cr_assert(seen.ev[seen.n - 1].terminal);
}
