/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes of one host find each other's NIDs in shared memory through another
 * net, and use them; nobody gets messages that way that are for another node.
 * In simulated networks 256 numbers in a row are a host's.
 */
#include <ulnet/path.h>

#include "tests/unit/lnet/discovery/lie_rig.h"

#define A	"10.0.0.1@tcp 1@shm"
#define A_HERE	"1@shm"
#define B	"10.0.0.2@tcp 2@shm"
#define KNOWN_B "discovered mr: 10.0.0.2@tcp 2@shm"
/* the host of these numbers, as simlnd has it */
#define HOST 1

/* How many messages @node has sent from @nid. */
static uint64_t sent_from(struct lnet *node, const char *nid)
{
	const struct ulnet_nid want = nid_of(nid);
	struct ulnet_ni_info ni;

	for (unsigned int i = 0; !lnet_ni_info(node, i, &ni); i++)
		if (lnet_nid_eq(&ni.nid, &want))
			return counts_total(&ni.sent);
	cr_assert(false, "%s", nid);
	return 0;
}

/* Sends @n messages to @to, one after the other, all of which arrive. Returns
 * how many have left from @nid, with all else that was sent from it. */
static uint64_t send_some(struct lnet_sim *sim, struct lnet *node,
			  const char *to, unsigned int n, const char *nid)
{
	uint64_t before = sent_from(node, nid);

	for (unsigned int i = 0; i < n; i++) {
		put_to(node, to, 0, &seen);
		lnet_sim_run_all(sim);
		delivered();
	}
	return sent_from(node, nid) - before;
}

static struct lnet_sim *sim_open(unsigned int cpts)
{
	struct lnet_sim *sim;

	memset(&seen, 0, sizeof(seen));
	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	return sim;
}

/* ---- nodes that tell the truth ---- */

/* Already the first message goes through shared memory. */
static void found(unsigned int cpts)
{
	struct lnet_sim *sim = sim_open(cpts);
	struct lnet *a = node_on(sim, A), *b = node_on(sim, B);
	uint64_t by_tcp;

	put_to(a, "10.0.0.2@tcp", 0, &seen);
	lnet_sim_run_all(sim);
	cr_assert(nid_is(&seen.ev[seen.n - 1].path_peer, "2@shm"));
	delivered();
	KNOWS(a, "10.0.0.2@tcp", KNOWN_B);
	KNOWS(b, "10.0.0.1@tcp", "discovered mr: 10.0.0.1@tcp 1@shm");
	by_tcp = sent_from(a, "10.0.0.1@tcp");
	cr_assert_eq(send_some(sim, a, "10.0.0.2@tcp", 8, A_HERE), 8);
	cr_assert_eq(send_some(sim, b, "10.0.0.1@tcp", 8, "2@shm"), 8);
	cr_assert_eq(sent_from(a, "10.0.0.1@tcp"), by_tcp);
	cluster_end(sim);
}

Test(neighbour, found)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++)
		found(cpts);
}

/* Whatever order the nets have, the NID that is told to all is the primary one.
 */
Test(neighbour, primary)
{
	struct lnet_sim *sim = sim_open(1);
	struct lnet *a = node_on(sim, "1@shm 10.0.0.1@tcp");

	node_on(sim, "2@shm 10.0.0.2@tcp");
	send_some(sim, a, "2@shm", 1, A_HERE);
	KNOWS(a, "2@shm", KNOWN_B);
	send_some(sim, a, "10.0.0.2@tcp", 1, A_HERE);
	KNOWS(a, "10.0.0.2@tcp", KNOWN_B);
	cluster_end(sim);
}

Test(neighbour, of_another_host)
{
	struct lnet_sim *sim = sim_open(1);
	struct lnet *a = node_on(sim, A);

	node_on(sim, "10.0.0.2@tcp 258@shm");
	cr_assert_eq(send_some(sim, a, "10.0.0.2@tcp", 4, A_HERE), 0);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cluster_end(sim);
}

/* The net in shared memory comes later, and goes again. */
Test(neighbour, added_later)
{
	struct lnet_sim *sim = sim_open(1);
	struct lnet *a = node_on(sim, A);
	struct lnet *b = node_on(sim, "10.0.0.2@tcp");
	const struct ulnet_ni_conf conf = { .nid = nid_of("2@shm") };

	send_some(sim, a, "10.0.0.2@tcp", 1, A_HERE);
	KNOWS(a, "10.0.0.2@tcp", "discovered mr: 10.0.0.2@tcp");
	cr_assert_eq(lnet_ni_add(b, &conf), 0);
	lnet_sim_run_all(sim);
	KNOWS(a, "10.0.0.2@tcp", KNOWN_B);
	cr_assert_eq(send_some(sim, a, "10.0.0.2@tcp", 4, A_HERE), 4);
	cr_assert_eq(lnet_ni_del(b, &conf.nid), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(send_some(sim, a, "10.0.0.2@tcp", 4, A_HERE), 0);
	cr_assert_eq(lnet_ni_add(b, &conf), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(send_some(sim, a, "10.0.0.2@tcp", 4, A_HERE), 4);
	cluster_end(sim);
}

/* While nothing passes, the other net carries all; afterwards it is as before.
 */
Test(neighbour, lost_and_back)
{
	const struct ulnet_nid ends[2] = { nid_of("1@shm"), nid_of("2@shm") };
	const struct ulnet_sim_link link = { .connect = MSEC };
	struct lnet_sim *sim = sim_open(1);
	struct lnet *a = node_on(sim, A);

	node_on(sim, B);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(lnet_sim_link_set(sim, &ends[i], &ends[!i], &link),
			     0);
	cr_assert_geq(send_some(sim, a, "10.0.0.2@tcp", 4, A_HERE), 4);
	cr_assert_eq(lnet_sim_partition(sim, &ends[0], &ends[1], true), 0);
	WORD(a, "2@shm", "own");
	lnet_sim_cut(sim, &ends[0], &ends[1]);
	for (unsigned int i = 0; i < 20; i++) {
		put_to(a, "10.0.0.2@tcp", 0, &seen);
		while (!seen.n || !seen.ev[seen.n - 1].terminal)
			lnet_sim_run(sim, 100 * MSEC);
		delivered();
	}
	cr_assert_geq(sent_from(a, "10.0.0.1@tcp"), 19);
	/* Another process may have the NID by now. */
	cr_assert_str_neq(word_of(a, "2@shm"), "own");
	cr_assert_eq(lnet_sim_partition(sim, &ends[0], &ends[1], false), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(send_some(sim, a, "10.0.0.2@tcp", 4, A_HERE), 4);
	cluster_end(sim);
}

/* ---- nodes that lie ---- */

/* The liar says that it is on this host, and has @nid there. */
static void lie_here(struct lnet *liar, const char *nid)
{
	const uint64_t host = HOST;

	lie_begin(1);
	lie_nid(LIAR);
	lie_u32(0x686f7374);
	lie_u32(1);
	memcpy(lie + lie_length, &host, sizeof(host));
	lie_length += sizeof(host);
	lie_nid(nid);
	lie_push(liar, "10.0.0.1@tcp");
}

struct here {
	struct lnet_sim *sim;
	struct lnet *a, *b, *liar;
};

static struct here here_open(void)
{
	struct here h = { .sim = sim_open(1) };

	h.a = node_on(h.sim, A);
	h.b = node_on(h.sim, B);
	node_mode(h.sim, LIAR, LNET_DISCOVERY_OFF);
	h.liar = lnet_sim_node(h.sim, 2);
	return h;
}

/* It names a NID of another node of this host: that one denies it, and nothing
 * has gone there meanwhile. */
Test(neighbour, lie_about_one_in_use)
{
	struct here h = here_open();

	send_some(h.sim, h.a, "10.0.0.2@tcp", 1, A_HERE);
	lie_here(h.liar, "2@shm");
	lnet_sim_run_all(h.sim);
	KNOWS(h.a, LIAR, LIARS);
	KNOWS(h.a, "10.0.0.2@tcp", KNOWN_B);
	cr_assert_eq(send_some(h.sim, h.a, "10.0.0.2@tcp", 4, A_HERE), 4);
	cluster_end(h.sim);
}

Test(neighbour, lie_about_one_not_met)
{
	struct here h = here_open();

	lie_here(h.liar, "2@shm");
	lnet_sim_run_all(h.sim);
	KNOWS(h.a, LIAR, LIARS);
	send_some(h.sim, h.a, "10.0.0.2@tcp", 1, A_HERE);
	KNOWS(h.a, "10.0.0.2@tcp", KNOWN_B);
	cluster_end(h.sim);
}

/* Nobody answers there: as long as that is so, messages go over the other net,
 * however healthy both seem. */
Test(neighbour, lie_about_nobody)
{
	const struct ulnet_nid nobody = nid_of("9@shm"), liar = nid_of(LIAR);
	struct here h = here_open();
	struct ulnet_path path;

	lie_here(h.liar, "9@shm");
	lnet_sim_run_all(h.sim);
	KNOWS(h.a, LIAR, LIARS " 9@shm");
	WORD(h.a, "9@shm", "hearsay");
	cr_assert_eq(lnet_peer_set_health(h.a, &nobody, LNET_HEALTH_MAX), 0);
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_geq(
			lnet_path_explain(h.a, NULL, &liar, &path, NULL, 0), 0);
		cr_assert_eq(path.status, 0);
		cr_assert(lnet_nid_eq(&path.peer, &liar));
		put_to(h.a, LIAR, 0, &seen);
		lnet_sim_run_all(h.sim);
	}
	cluster_end(h.sim);
}

/* As one of the NIDs that all are told, a number means nothing. */
Test(neighbour, number_told_to_all)
{
	struct here h = here_open();

	lie_begin(2);
	lie_nid(LIAR);
	lie_nid("2@shm");
	lie_push(h.liar, "10.0.0.1@tcp");
	lnet_sim_run_all(h.sim);
	KNOWS(h.a, LIAR, LIARS);
	KNOWS(h.a, "2@shm", "nothing");
	cluster_end(h.sim);
}
