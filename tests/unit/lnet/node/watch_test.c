/* SPDX-License-Identifier: BSD-3-Clause */
/* A watcher of peers is told of connections that have ended. Simulated ones end
 * when they are cut, and when the peer goes. */
#include <criterion/criterion.h>
#include "tests/unit/lnet/cluster.h"
#include "ulnet/loop.h"

#define PORTAL	5
#define BITS	0x77
#define CONNECT (2 * MSEC)

static const struct ulnet_sim_link tcp = { .latency = 100000,
					   .connect = CONNECT };
static struct seen seen, sent;
static uint8_t memory[65536], source[4096];

struct watcher {
	struct ulnet_peer_watch watch;
	struct lnet *node;
	unsigned int cpt;
	unsigned int n;
	struct ulnet_id peer; /* of the last connection that has ended */
	bool sends;
};

static void put(struct lnet *node, unsigned int to)
{
	struct ulnet_md umd = md_of(source, 100, 0, &sent);
	struct ulnet_md_handle md;

	umd.threshold = 1;
	md = bind_md(node, &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, nth_id(to),
			     PORTAL, BITS, 0, 0),
		     0);
}

static void on_disconnected(struct ulnet_peer_watch *watch,
			    const struct ulnet_id *peer)
{
	struct watcher *w = container_of(watch, struct watcher, watch);

	cr_assert(lnet_cpt_owned(w->node, w->cpt));
	cr_assert_eq(lnet_cpt_of(w->node, &peer->nid), (int)w->cpt);
	w->n++;
	w->peer = *peer;
	if (w->sends)
		put(w->node, 1);
}

/* Adds a watcher to node @index, on the CPT that owns the NID of node @of. */
static void watch(struct watcher *w, struct lnet_sim *sim, unsigned int index,
		  unsigned int of)
{
	struct ulnet_id id = nth_id(of);

	*w = (struct watcher){ .watch.disconnected = on_disconnected,
			       .node = lnet_sim_node(sim, index) };
	w->cpt = (unsigned int)lnet_cpt_of(w->node, &id.nid);
	lnet_peer_watch_add(w->node, w->cpt, &w->watch);
}

/* Returns a cluster of two nodes, with connections both ways if @link has
 * connections. */
static struct lnet_sim *pair(unsigned int cpts,
			     const struct ulnet_sim_link *link)
{
	struct lnet_sim *sim = cluster_with(2, cpts, NULL);
	struct ulnet_md umd =
		md_of(memory, sizeof(memory), LNET_MD_OP_PUT, &seen);

	seen.n = 0;
	sent.n = 0;
	cluster_links(sim, link);
	post_md(lnet_sim_node(sim, 1), PORTAL, BITS, &umd);
	put(lnet_sim_node(sim, 0), 1);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(seen.n, 1);
	return sim;
}

static void cut(struct lnet_sim *sim, unsigned int a, unsigned int b)
{
	struct ulnet_id ia = nth_id(a), ib = nth_id(b);

	lnet_sim_cut(sim, &ia.nid, &ib.nid);
}

static void run(struct lnet_sim *sim)
{
	lnet_sim_run(sim, 10 * MSEC);
}

static void heard(const struct watcher *w, unsigned int n, unsigned int of)
{
	struct ulnet_id id = nth_id(of);

	cr_assert_eq(w->n, n, "%u times", w->n);
	if (n)
		cr_assert(lnet_nid_eq(&w->peer.nid, &id.nid));
}

/* Both ends are told, whichever end is named first, and on any number of CPTs.
 */
Test(watch, both_ends_hear_of_a_cut)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct lnet_sim *sim = pair(cpts, &tcp);
		struct watcher w[3];

		watch(&w[0], sim, 0, 1);
		watch(&w[1], sim, 1, 0);
		watch(&w[2], sim, 1, 0);
		cut(sim, cpts % 2, 1 - cpts % 2);
		run(sim);
		heard(&w[0], 1, 1);
		heard(&w[1], 1, 0);
		heard(&w[2], 1, 0);
		/* There is no connection any more. */
		cut(sim, 0, 1);
		run(sim);
		heard(&w[0], 1, 1);
		cluster_end(sim);
	}
}

Test(watch, messages_in_transit_are_lost)
{
	struct lnet_sim *sim = pair(1, &tcp);

	put(lnet_sim_node(sim, 0), 1);
	lnet_sim_run(sim, tcp.latency / 2);
	cr_assert_eq(sent.n, 2); /* as far as LNet knows */
	cut(sim, 0, 1);
	run(sim);
	cr_assert_eq(seen.n, 1);
	put(lnet_sim_node(sim, 0), 1);
	run(sim);
	cr_assert_eq(seen.n, 2);
	cluster_end(sim);
}

/* The connection is cut while its first message is in transit. */
Test(watch, first_message_is_lost)
{
	struct lnet_sim *sim = pair(1, &tcp);

	cut(sim, 0, 1);
	put(lnet_sim_node(sim, 0), 1);
	lnet_sim_run(sim, CONNECT + tcp.latency / 2);
	cr_assert_eq(sent.n, 2);
	lnet_sim_cut(sim, &LNET_NID_ANY, &LNET_NID_ANY);
	run(sim);
	cr_assert_eq(seen.n, 1);
	cluster_end(sim);
}

Test(watch, a_callback_may_send)
{
	struct lnet_sim *sim = pair(1, &tcp);
	struct watcher w;

	watch(&w, sim, 0, 1);
	w.sends = true;
	cut(sim, 0, 1);
	run(sim);
	heard(&w, 1, 1);
	cr_assert_eq(seen.n, 2);
	cluster_end(sim);
}

Test(watch, until_it_is_removed)
{
	struct lnet_sim *sim = pair(1, &tcp);
	struct watcher w[2];

	watch(&w[0], sim, 0, 1);
	watch(&w[1], sim, 0, 1);
	lnet_peer_watch_del(w[0].node, w[0].cpt, &w[0].watch);
	cut(sim, 0, 1);
	run(sim);
	heard(&w[0], 0, 1);
	heard(&w[1], 1, 1);
	cluster_end(sim);
}

/* Removes the watcher in its own callback, and clears its memory. */
static void on_last_disconnected(struct ulnet_peer_watch *watch,
				 const struct ulnet_id *peer)
{
	struct watcher *w = container_of(watch, struct watcher, watch);

	on_disconnected(watch, peer);
	lnet_peer_watch_del(w->node, w->cpt, watch);
	memset(watch, 0, sizeof(*watch));
}

Test(watch, a_callback_may_remove_its_watcher)
{
	struct lnet_sim *sim = pair(1, &tcp);
	struct watcher w[3];

	for (unsigned int i = 0; i < 3; i++) {
		watch(&w[i], sim, 0, 1);
		if (i < 2)
			w[i].watch.disconnected = on_last_disconnected;
	}
	cut(sim, 0, 1);
	run(sim);
	for (unsigned int i = 0; i < 3; i++)
		heard(&w[i], 1, 1);
	put(lnet_sim_node(sim, 0), 1);
	run(sim);
	cut(sim, 0, 1);
	run(sim);
	heard(&w[0], 1, 1);
	heard(&w[1], 1, 1);
	heard(&w[2], 2, 1);
	cluster_end(sim);
}

/* A watcher that removes the next one in its callback. */
struct remover {
	struct watcher w;
	struct watcher *next;
};

static void on_remove(struct ulnet_peer_watch *watch,
		      const struct ulnet_id *peer)
{
	struct remover *r = container_of(watch, struct remover, w.watch);

	on_disconnected(watch, peer);
	lnet_peer_watch_del(r->w.node, r->w.cpt, &r->next->watch);
}

Test(watch, a_callback_may_remove_another_watcher)
{
	struct lnet_sim *sim = pair(1, &tcp);
	struct watcher w[2];
	struct remover r = { .next = &w[0] };

	watch(&r.w, sim, 0, 1);
	watch(&w[0], sim, 0, 1);
	watch(&w[1], sim, 0, 1);
	r.w.watch.disconnected = on_remove;
	cut(sim, 0, 1);
	run(sim);
	heard(&r.w, 1, 1);
	heard(&w[0], 0, 1);
	heard(&w[1], 1, 1);
	cluster_end(sim);
}

/* A watcher that is told of each of its peers, and each time sends to a peer
 * that was not known. */
enum { KNOWN = 16 };

struct sender {
	struct watcher w;
	unsigned int heard[KNOWN];
	unsigned int next; /* a node that does not exist */
};

static void on_gone(struct ulnet_peer_watch *watch, const struct ulnet_id *peer)
{
	struct sender *s = container_of(watch, struct sender, w.watch);

	for (unsigned int i = 0; i < KNOWN; i++) {
		struct ulnet_id id = nth_id(1 + i);

		if (lnet_nid_eq(&peer->nid, &id.nid))
			s->heard[i]++;
	}
	if (s->next < 4 * KNOWN)
		put(s->w.node, 1 + s->next++);
}

Test(watch, each_peer_is_told_once_though_others_become_known)
{
	struct sender s = { .next = KNOWN };
	struct lnet_sim *sim;
	struct ulnet_nid gone = nid_of("10.1.0.2@tcp");

	sent.n = 0;
	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	cr_assert_eq(
		plain_node(sim, "10.1.0.1@tcp 10.1.0.2@tcp", NULL, NULL, NULL),
		0);
	watch(&s.w, sim, 0, 1);
	s.w.watch.disconnected = on_gone;
	for (unsigned int i = 0; i < KNOWN; i++)
		put(s.w.node, 1 + i);
	run(sim);
	memset(s.heard, 0, sizeof(s.heard));
	cr_assert_eq(lnet_ni_del(s.w.node, &gone), 0);
	run(sim);
	for (unsigned int i = 0; i < KNOWN; i++)
		cr_assert_eq(s.heard[i], 1, "of %u: %u times", i, s.heard[i]);
	cluster_end(sim);
}

/* A node that crashes is told nothing. */
Test(watch, the_peer_crashes)
{
	struct lnet_sim *sim = pair(1, &tcp);
	struct watcher w[2];

	watch(&w[0], sim, 0, 1);
	watch(&w[1], sim, 1, 0);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	run(sim);
	heard(&w[0], 1, 1);
	heard(&w[1], 0, 0);
	cluster_end(sim);
}

/* The node whose NI is deleted is told, too: the LND does not know whose
 * connections they are. */
Test(watch, an_interface_goes)
{
	struct lnet_sim *sim = pair(1, &tcp);
	struct ulnet_id id = nth_id(1);
	struct watcher w[2];

	watch(&w[0], sim, 0, 1);
	watch(&w[1], sim, 1, 0);
	cr_assert_eq(lnet_ni_del(w[1].node, &id.nid), 0);
	run(sim);
	heard(&w[0], 1, 1);
	heard(&w[1], 1, 0);
	cluster_end(sim);
}

/* A link without connections has none that could end. */
Test(watch, no_connections)
{
	const struct ulnet_sim_link link = { .latency = 100000 };
	struct lnet_sim *sim = pair(1, &link);
	struct watcher w;

	watch(&w, sim, 0, 1);
	put(lnet_sim_node(sim, 0), 1);
	lnet_sim_run(sim, link.latency / 2);
	lnet_sim_cut(sim, &LNET_NID_ANY, &LNET_NID_ANY);
	cr_assert_eq(lnet_sim_crash(sim, 0), 0);
	run(sim);
	heard(&w, 0, 1);
	cr_assert_eq(seen.n, 2);
	cluster_end(sim);
}
