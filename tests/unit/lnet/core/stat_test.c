/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters by interface and peer, and how they are reset. */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"

#define PORTAL 5
#define BITS   0x77
#define CLOSED 9		 /* a portal without entries */
#define SECOND UINT64_C(1000000) /* us */

static struct seen seen, sent;
static uint8_t memory[4096], source[4096];

static struct lnet_sim *talkers(unsigned int n, unsigned int cpts)
{
	struct lnet_sim *sim = cluster_with(n, cpts, NULL);
	struct ulnet_md umd = md_of(
		memory, sizeof(memory),
		LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE, &seen);

	seen.n = 0;
	sent.n = 0;
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	return sim;
}

/* Node 1 sends node @to a GET, or a PUT with or without an ACK. */
static void ask(struct lnet_sim *sim, unsigned int to, bool get, bool ack,
		unsigned int portal)
{
	struct ulnet_md umd = md_of(source, 100, 0, &sent);
	struct ulnet_md_handle md;

	umd.threshold = get || ack ? 2 : 1;
	umd.timeout = SECOND;
	md = bind_md(lnet_sim_node(sim, 1), &umd);
	cr_assert_eq(
		get ? LNetGet(LNET_NID_ANY, md, nth_id(to), portal, BITS, 0)
		    : LNetPut(LNET_NID_ANY, md,
			      ack ? LNET_ACK_REQ : LNET_NOACK_REQ, nth_id(to),
			      portal, BITS, 0, 0),
		0);
}

/* Sends 3 PUTs, 2 of them with an ACK, and 4 GETs; then 1 PUT and 2 GETs that
 * match no entry. */
static void talk(struct lnet_sim *sim)
{
	ask(sim, 0, false, false, PORTAL);
	ask(sim, 0, false, true, PORTAL);
	ask(sim, 0, false, true, PORTAL);
	for (unsigned int i = 0; i < 4; i++)
		ask(sim, 0, true, false, PORTAL);
	ask(sim, 0, false, false, CLOSED);
	ask(sim, 0, true, false, CLOSED);
	ask(sim, 0, true, false, CLOSED);
	lnet_sim_run_all(sim);
}

static bool counts_are(const struct ulnet_counts *c, uint64_t put, uint64_t get,
		       uint64_t reply, uint64_t ack)
{
	return c->put == put && c->get == get && c->reply == reply &&
	       c->ack == ack;
}

static struct ulnet_ni_info ni_of_node(struct lnet_sim *sim, unsigned int n)
{
	struct ulnet_ni_info info;

	cr_assert_eq(lnet_ni_info(lnet_sim_node(sim, n), 1, &info), 0);
	return info;
}

static struct ulnet_peer_info peer_of_node(struct lnet_sim *sim, unsigned int n,
					   unsigned int peer)
{
	struct ulnet_id id = nth_id(peer);
	struct ulnet_peer_info info;

	cr_assert_eq(lnet_peer_info(lnet_sim_node(sim, n), &id.nid, &info), 0);
	return info;
}

/* ---- by type ---- */

static void counted_by_type(unsigned int cpts)
{
	struct lnet_sim *sim = talkers(2, cpts);
	struct ulnet_ni_info ni;
	struct ulnet_peer_info peer;

	talk(sim);
	ni = ni_of_node(sim, 1);
	cr_assert(counts_are(&ni.sent, 4, 6, 0, 0));
	cr_assert(counts_are(&ni.received, 0, 0, 4, 2));
	cr_assert(counts_are(&ni.dropped, 0, 0, 0, 0));
	cr_assert_eq(ni.send_count, 10);
	cr_assert_eq(ni.recv_count, 6);
	peer = peer_of_node(sim, 1, 0);
	cr_assert(counts_are(&peer.sent, 4, 6, 0, 0));
	cr_assert(counts_are(&peer.received, 0, 0, 4, 2));
	cr_assert_eq(peer.send_count, 10);
	cr_assert_eq(peer.recv_count, 6);

	ni = ni_of_node(sim, 0);
	cr_assert(counts_are(&ni.sent, 0, 0, 4, 2));
	cr_assert(counts_are(&ni.received, 3, 4, 0, 0));
	cr_assert(counts_are(&ni.dropped, 1, 2, 0, 0));
	cr_assert_eq(ni.drop_count, 3);
	cr_assert_eq(ni.drop_length, 100);
	peer = peer_of_node(sim, 0, 1);
	cr_assert(counts_are(&peer.sent, 0, 0, 4, 2));
	/* Dropped messages are included. */
	cr_assert(counts_are(&peer.received, 4, 6, 0, 0));
	cr_assert(counts_are(&peer.dropped, 1, 2, 0, 0));
	cr_assert_eq(peer.drop_count, 3);
	cluster_end(sim);
}

Test(stat, by_type)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		counted_by_type(cpts);
}

/* An ACK and a REPLY that come too late are counted as dropped, each by its
 * type. */
Test(stat, late_answers)
{
	const struct ulnet_sim_link late = { .latency = 5000 * MSEC };
	struct lnet_sim *sim = talkers(2, 1);
	struct ulnet_ni_info ni;
	struct ulnet_peer_info peer;

	link_set(sim, 0, 1, &late);
	ask(sim, 0, true, false, PORTAL);
	ask(sim, 0, false, true, PORTAL);
	lnet_sim_run_all(sim);
	ni = ni_of_node(sim, 1);
	cr_assert(counts_are(&ni.dropped, 0, 0, 1, 1));
	cr_assert(counts_are(&ni.received, 0, 0, 0, 0));
	peer = peer_of_node(sim, 1, 0);
	cr_assert(counts_are(&peer.dropped, 0, 0, 1, 1));
	cluster_end(sim);
}

/* ---- peers ---- */

Test(stat, peer_in_use)
{
	const struct ulnet_sim_link stalled = { .stall = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = talkers(2, 1);
	struct ulnet_peer_info peer;

	cluster_links(sim, &stalled);
	for (unsigned int i = 0; i < 11; i++)
		ask(sim, 0, false, false, PORTAL);
	lnet_sim_run(sim, MSEC);
	peer = peer_of_node(sim, 1, 0);
	cr_assert_eq(peer.credits, -3);
	cr_assert_eq(peer.queued, 3);
	cr_assert_eq(peer.queued_bytes, 3 * 172);
	cr_assert_eq(peer.refs, 11);
	lnet_sim_run_all(sim);
	peer = peer_of_node(sim, 1, 0);
	cr_assert_eq(peer.queued, 0);
	cr_assert_eq(peer.refs, 0);
	cluster_end(sim);
}

static void list_peers(unsigned int cpts)
{
	struct lnet_sim *sim = talkers(20, cpts);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_peer_info all[30];
	unsigned int found = 0, on = 0;

	cr_assert_eq(lnet_peers(node, NULL, 0), 0);
	for (unsigned int i = 0; i < 20; i++)
		if (i != 1)
			ask(sim, i, false, false, PORTAL);
	lnet_sim_run_all(sim);
	cr_assert_eq(lnet_peers(node, NULL, 0), 19);
	memset(all, 0, sizeof(all));
	cr_assert_eq(lnet_peers(node, all, 2), 19);
	cr_assert_eq(all[1].send_count, 1);
	cr_assert_eq(all[2].credits_max, 0);
	cr_assert_eq(lnet_peers(node, all, ARRAY_SIZE(all)), 19);
	cr_assert_eq(all[19].credits_max, 0);
	for (unsigned int i = 0; i < 19; i++) {
		struct ulnet_peer_info one;

		cr_assert_eq(lnet_peer_info(node, &all[i].nid, &one), 0);
		cr_assert_eq(memcmp(&one, &all[i], sizeof(one)), 0);
		cr_assert_eq(one.sent.put, 1);
		cr_assert_eq((int)one.cpt, lnet_cpt_of(node, &one.nid));
		on |= 1u << one.cpt;
		for (unsigned int n = 0; n < 20; n++) {
			struct ulnet_id id = nth_id(n);

			if (lnet_nid_eq(&id.nid, &one.nid))
				found |= 1u << n;
		}
	}
	cr_assert_eq(found, 0xffffd);
	cr_assert_eq(on, (1u << cpts) - 1, "not on all CPTs");
	cluster_end(sim);
}

Test(stat, peers)
{
	list_peers(1);
	list_peers(3);
}

/* ---- resetting ---- */

/* Asserts that all counters are 0, except those of what there is just now:
 * messages, operations that wait for an answer, peers. */
static void all_zero(struct lnet *node, uint64_t alive, uint64_t waiting,
		     uint64_t peers)
{
	struct ulnet_stat stats[96];
	int n = lnet_stats(node, stats, ARRAY_SIZE(stats));

	for (int i = 0; i < n; i++) {
		uint64_t want = 0;

		if (!strncmp(stats[i].name, "msgs_", 5))
			want = alive;
		else if (!strcmp(stats[i].name, "rst_alloc"))
			want = waiting;
		else if (!strcmp(stats[i].name, "peers"))
			want = peers;
		cr_assert_eq(stats[i].value, want, "%s: %llu", stats[i].name,
			     (unsigned long long)stats[i].value);
	}
}

static void ni_zero(struct lnet *node, unsigned int index)
{
	struct ulnet_ni_info ni;

	cr_assert_eq(lnet_ni_info(node, index, &ni), 0);
	cr_assert(counts_are(&ni.sent, 0, 0, 0, 0));
	cr_assert(counts_are(&ni.received, 0, 0, 0, 0));
	cr_assert(counts_are(&ni.dropped, 0, 0, 0, 0));
	cr_assert_eq(ni.send_length + ni.recv_length + ni.drop_length, 0);
	cr_assert_eq(ni.credits_min, ni.credits);
}

static void reset(unsigned int cpts)
{
	struct lnet_sim *sim = talkers(2, cpts);
	struct ulnet_peer_info peer;

	talk(sim);
	put_bytes(lnet_sim_node(sim, 1), nth_id(1), CLOSED, BITS, source, 9);
	lnet_sim_run_all(sim);
	cr_assert_gt(counter(lnet_sim_node(sim, 1), "msgs_max"), 0);
	for (unsigned int n = 0; n < 2; n++) {
		struct lnet *node = lnet_sim_node(sim, n);

		cr_assert_eq(lnet_stats_reset(node), 0);
		all_zero(node, 0, 0, 1);
		ni_zero(node, 0);
		ni_zero(node, 1);
		peer = peer_of_node(sim, n, !n);
		cr_assert_eq(
			peer.send_count + peer.recv_count + peer.drop_count, 0);
		cr_assert_eq(peer.credits_min, 8);
	}
	/* Counting goes on. */
	talk(sim);
	peer = peer_of_node(sim, 1, 0);
	cr_assert(counts_are(&peer.sent, 4, 6, 0, 0));
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "send_count"), 10);
	cluster_end(sim);
}

Test(stat, reset)
{
	for (unsigned int cpts = 1; cpts <= 4; cpts++)
		reset(cpts);
}

/* Messages that exist at the reset are still counted when they end. */
Test(stat, reset_in_the_middle)
{
	const struct ulnet_sim_link lossy = { .loss = LNET_SIM_ALWAYS };
	const struct ulnet_sim_link stalled = { .stall = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = talkers(3, 1);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_peer_info peer;

	link_set(sim, 0, 1, &lossy);
	link_set(sim, 1, 2, &stalled);
	for (unsigned int i = 0; i < 10; i++) {
		ask(sim, 0, true, false, PORTAL);
		ask(sim, 2, false, false, PORTAL);
	}
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(lnet_stats_reset(node), 0);
	all_zero(node, 20, 10, 2);
	ni_zero(node, 1);
	peer = peer_of_node(sim, 1, 2);
	cr_assert_eq(peer.credits_min, -2);
	cr_assert_eq(peer.refs, 10);
	lnet_sim_run_all(sim);
	cr_assert_eq(counter(node, "msgs_alloc"), 0);
	cr_assert_eq(counter(node, "msgs_max"), 20);
	cr_assert_eq(counter(node, "rst_alloc"), 0);
	cr_assert_eq(counter(node, "response_timeout_count"), 10);
	cr_assert_eq(counter(node, "errors"), 20);
	cr_assert_eq(peer_of_node(sim, 1, 2).credits_min, -2);
	cluster_end(sim);
}

/* ---- calls in a handler ---- */

static struct lnet *of_handler;
static int handler_rc[2];

static void call_inside(const struct ulnet_event *ev)
{
	see(ev);
	handler_rc[0] = lnet_peers(of_handler, NULL, 0);
	handler_rc[1] = lnet_stats_reset(of_handler);
}

static void call_in_a_handler(struct lnet *node, struct lnet_sim *sim)
{
	struct ulnet_md umd = md_of(source, 10, 0, &sent);

	sent.n = 0;
	umd.handler = call_inside;
	cr_assert_eq(LNetMDUnlink(bind_md(node, &umd)), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, 1);
}

/* A handler cannot wait for other CPTs. */
Test(stat, called_by_a_handler)
{
	for (unsigned int cpts = 1; cpts <= 2; cpts++) {
		struct lnet_sim *sim = talkers(2, cpts);

		of_handler = lnet_sim_node(sim, 1);
		talk(sim);
		call_in_a_handler(of_handler, sim);
		cr_assert_eq(handler_rc[0], cpts == 1 ? 1 : -EXDEV);
		cr_assert_eq(handler_rc[1], cpts == 1 ? 0 : -EXDEV);
		cr_assert_eq(counter(of_handler, "send_count"),
			     cpts == 1 ? 0 : 10);
		cluster_end(sim);
	}
}

/* A handler cannot wait for a node on another loop, either. */
Test(stat, called_by_a_handler_of_another_node)
{
	struct lnet_sim *sim = talkers(1, 1);
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &of_handler), 0);
	call_in_a_handler(lnet_sim_node(sim, 0), sim);
	cr_assert_eq(handler_rc[0], -EXDEV);
	cr_assert_eq(handler_rc[1], -EXDEV);
	lnet_close(of_handler);
	cluster_end(sim);
}

Test(stat, reset_while_closing)
{
	struct lnet_sim *sim = talkers(2, 1);
	struct ulnet_md umd = md_of(source, 10, 0, &sent);

	of_handler = lnet_sim_node(sim, 1);
	umd.handler = call_inside;
	bind_md(of_handler, &umd);
	talk(sim);
	sent.n = 0;
	cr_assert_eq(lnet_sim_free(sim), 0);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(handler_rc[0], 1);
	cr_assert_eq(handler_rc[1], -ESHUTDOWN);
}

/* A node with threads can be asked by any other thread. */
Test(stat, of_threads)
{
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.cpts = 3;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	put_bytes(node, id_of("0@lo"), CLOSED, BITS, source, 9);
	cr_assert_eq(lnet_peers(node, NULL, 0), 0);
	cr_assert_eq(lnet_stats_reset(node), 0);
	lnet_close(node);
}
