/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An NI goes down or is deleted while messages wait for it: for a connection,
 * for a credit of the peer or of the NI, or for the end of a delay. They take
 * another path if there is one (requirements C3, D7).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <ulnet/fault.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77
#define SECOND UINT64_C(1000000) /* us */
#define FIRST  "10.0.0.2@tcp"	 /* the NI that node 1 sends by */
#define OTHER  "10.0.0.9@tcp"
#define N      6

static struct seen seen, sent;
static uint8_t memory[65536], source[4096];

/* Returns a cluster in which node 0 receives, and node 1 sends by its first NI,
 * with these credits. @link is the one from there to anybody. */
static struct lnet_sim *stuck(uint32_t credits, uint32_t peer_credits,
			      unsigned int cpts,
			      const struct ulnet_sim_link *link)
{
	const struct ulnet_nid first = nid_of(FIRST), any = LNET_NID_ANY;
	struct ulnet_ni_conf conf = { .nid = first,
				      .credits = credits,
				      .peer_credits = peer_credits };
	struct ulnet_md umd =
		md_of(memory, sizeof(memory), LNET_MD_OP_PUT, &seen);
	struct lnet_sim *sim;

	seen.n = 0;
	sent.n = 0;
	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	cr_assert_eq(plain_node(sim, "10.0.0.1@tcp", NULL, NULL, NULL), 0);
	cr_assert_eq(plain_node(sim, "", NULL, NULL, NULL), 1);
	cr_assert_eq(lnet_ni_add(lnet_sim_node(sim, 1), &conf), 0);
	cr_assert_eq(lnet_sim_link_set(sim, &first, &any, link), 0);
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	return sim;
}

static void add_second(struct lnet_sim *sim)
{
	struct ulnet_ni_conf conf = { .nid = nid_of(OTHER) };

	cr_assert_eq(lnet_ni_add(lnet_sim_node(sim, 1), &conf), 0);
}

/* Sends @n PUTs with this timeout, tagged from @tag on. */
static void put(struct lnet_sim *sim, struct ulnet_nid from, unsigned int n,
		uint64_t timeout, uint64_t tag)
{
	struct ulnet_md umd = md_of(source, 100, 0, &sent);

	umd.threshold = 1;
	umd.timeout = timeout;
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(LNetPut(from, bind_md(lnet_sim_node(sim, 1), &umd),
				     LNET_NOACK_REQ, nth_id(0), PORTAL, BITS, 0,
				     tag + i),
			     0);
	lnet_sim_run(sim, MSEC);
}

enum how { DOWN, DELETED };

static void first_goes(struct lnet_sim *sim, enum how how)
{
	const struct ulnet_nid first = nid_of(FIRST);

	if (how == DOWN)
		cr_assert_eq(lnet_sim_ni_set(sim, &first, false), 0);
	else
		cr_assert_eq(lnet_ni_del(lnet_sim_node(sim, 1), &first), 0);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(lnet_sim_check(sim), 0);
}

/* What messages wait for. The first @held messages do not wait but are with the
 * LND, which fails them when the NI goes, and they are sent again. */
static const struct {
	const char *what;
	uint32_t credits, peer_credits;
	unsigned int held;
	struct ulnet_sim_link link;
} places[] = {
	{ "a connection", 8, 8, 0, { .connect = 100 * SECOND * 1000 } },
	{ "a credit of the peer", 8, 2, 2, { .stall = LNET_SIM_ALWAYS } },
	{ "a credit of the NI", 2, 2, 2, { .stall = LNET_SIM_ALWAYS } },
};

static unsigned int arrived_from(const char *nid)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < seen.n; i++)
		n += nid_is(&seen.ev[i].source, nid);
	return n;
}

/* Asserts that the messages with tags from @next on have arrived in order. */
static void in_order(uint64_t next)
{
	for (unsigned int i = 0; i < seen.n; i++)
		if (seen.ev[i].hdr_data >= next)
			cr_assert_eq(seen.ev[i].hdr_data, next++);
}

Test(reroute, messages_that_wait_take_another_path)
{
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(places) * 4; i++) {
		unsigned int place = i % ARRAY_SIZE(places);
		enum how how = i / ARRAY_SIZE(places) % 2 ? DELETED : DOWN;
		unsigned int cpts = 1 + i / ARRAY_SIZE(places) / 2;
		struct lnet_sim *sim =
			stuck(places[place].credits, places[place].peer_credits,
			      cpts, &places[place].link);

		put(sim, (struct ulnet_nid)LNET_NID_ANY, N, 5 * SECOND, 0);
		cr_assert_eq(seen.n, 0, "%s", places[place].what);
		add_second(sim);
		first_goes(sim, how);
		cr_assert_eq(arrived_from(OTHER), N, "%s, %s: %u of %u",
			     places[place].what,
			     how == DOWN ? "down" : "deleted", seen.n, N);
		/* There is an order only on one CPT. */
		if (cpts == 1)
			in_order(places[place].held);
		cluster_end(sim);
	}
}

/* If there is no other path, messages fail at once when the NI is deleted. */
Test(reroute, without_another_path)
{
	for (unsigned int place = 0; place < ARRAY_SIZE(places); place++) {
		struct lnet_sim *sim =
			stuck(places[place].credits, places[place].peer_credits,
			      1, &places[place].link);

		put(sim, (struct ulnet_nid)LNET_NID_ANY, N, 5 * SECOND, 0);
		first_goes(sim, DELETED);
		cr_assert_eq(sent.n, N);
		for (unsigned int k = 0; k < N; k++) {
			cr_assert_eq(sent.ev[k].status, -ESHUTDOWN);
			cr_assert_eq(sent.ev[k].outcome,
				     LNET_OUTCOME_NOT_DELIVERED);
		}
		cr_assert_eq(seen.n, 0);
		cluster_end(sim);
	}
}

/* A message that has named the NI takes no other one. */
Test(reroute, the_ni_was_named)
{
	const struct ulnet_sim_link link = places[0].link;
	struct lnet_sim *sim = stuck(8, 8, 1, &link);

	put(sim, nid_of(FIRST), 1, 5 * SECOND, 0);
	put(sim, (struct ulnet_nid)LNET_NID_ANY, 1, 5 * SECOND, 1);
	add_second(sim);
	first_goes(sim, DELETED);
	cr_assert_eq(seen.n, 1);
	cr_assert_eq(seen.ev[0].hdr_data, 1);
	cr_assert_eq(sent.n, 2);
	for (unsigned int i = 0; i < 2; i++)
		if (sent.ev[i].status)
			cr_assert_eq(sent.ev[i].status, -ESHUTDOWN);
	cluster_end(sim);
}

/* Messages that a fault rule delays on the first NI take another path, too. */
Test(reroute, delayed_messages_take_another_path)
{
	const struct ulnet_sim_link perfect = { .latency = 1000 };

	for (enum how how = DOWN; how <= DELETED; how++) {
		struct lnet_sim *sim = stuck(8, 8, 1, &perfect);
		struct ulnet_fault rule;

		lnet_fault_init(&rule, LNET_FAULT_DELAY);
		rule.local = nid_of(FIRST);
		rule.rate = 1;
		rule.latency = 2 * SECOND;
		cr_assert_eq(lnet_fault_add(lnet_sim_node(sim, 1), &rule), 0);
		put(sim, (struct ulnet_nid)LNET_NID_ANY, N, 5 * SECOND, 0);
		cr_assert_eq(seen.n, 0);
		add_second(sim);
		first_goes(sim, how);
		cr_assert_eq(arrived_from(OTHER), N);
		cluster_end(sim);
		cr_assert_eq(sent.n, N);
		for (unsigned int k = 0; k < N; k++)
			cr_assert_eq(sent.ev[k].status, 0);
	}
}

/* A duplicate that a fault rule has made does not take another path: nobody
 * waits for it, and its payload is in a copy. */
Test(reroute, duplicates_stay)
{
	const struct ulnet_sim_link slow = { .latency = 1000,
					     .bandwidth = 100000 };
	struct lnet_sim *sim = stuck(1, 1, 1, &slow);
	struct ulnet_fault rule;

	lnet_fault_init(&rule, LNET_FAULT_DUPLICATE);
	rule.local = nid_of(FIRST);
	rule.rate = 1;
	cr_assert_eq(lnet_fault_add(lnet_sim_node(sim, 1), &rule), 0);
	memset(source, 'a', sizeof(source));
	put(sim, (struct ulnet_nid)LNET_NID_ANY, N, 5 * SECOND, 0);
	while (sent.n < N)
		lnet_sim_run(sim, MSEC / 10);
	memset(source, 'b', sizeof(source));
	add_second(sim);
	first_goes(sim, DOWN);
	lnet_sim_run_all(sim);
	cr_assert_geq(seen.n, N);
	cr_assert_eq(arrived_from(OTHER), 0);
	for (unsigned int i = 0; i < seen.n * 100; i++)
		cr_assert_eq(memory[i], 'a', "byte %u", i);
	cluster_end(sim);
}

/* A message keeps its deadline on another path. */
Test(reroute, the_deadline_stays)
{
	const struct ulnet_sim_link none = { .connect = 100 * SECOND * 1000 };
	const struct ulnet_nid second = nid_of(OTHER), any = LNET_NID_ANY;
	struct lnet_sim *sim = stuck(8, 8, 1, &places[0].link);
	uint64_t begun = lnet_sim_now(sim);

	put(sim, any, 1, SECOND, 0);
	add_second(sim);
	cr_assert_eq(lnet_sim_link_set(sim, &second, &any, &none), 0);
	lnet_sim_run(sim, 700 * MSEC);
	first_goes(sim, DOWN);
	cr_assert_eq(sent.n, 0);
	lnet_sim_run(sim, begun + SECOND * 1000 - lnet_sim_now(sim));
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(sent.ev[0].status, -ETIMEDOUT);
	cr_assert_eq(seen.n, 0);
	cluster_end(sim);
}
