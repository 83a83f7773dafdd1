/* SPDX-License-Identifier: BSD-3-Clause */
/* All peers are listed while their CPTs go on. The test counts turns, not time.
 */
#include <stdlib.h>
#include <string.h>

#include "lnet/node/node.h"
#include "lnet/peer/peer.h"
#include "tests/thread/check.h"
#include "ulnet/loop.h"

#define PEERS 5000
#define SLICE 256
#define CHAIN 32 /* more than any bucket of the table of peers has */
#define CPTS  2

static struct ulnet_nid nth(unsigned int n)
{
	struct ulnet_nid nid;
	char text[64];

	snprintf(text, sizeof(text), "10.%u.%u.%u@tcp", n >> 16, n >> 8 & 255,
		 n & 255);
	check(lnet_nid_parse(text, &nid) == 0);
	return nid;
}

struct meeting {
	struct lnet *node;
	unsigned int cpt, from, to;
};

static int meet(void *arg)
{
	const struct meeting *m = arg;
	struct lnet_cpt *cpt = m->node->cpt[m->cpt];

	for (unsigned int i = m->from; i < m->to; i++) {
		struct ulnet_nid nid = nth(i);
		struct lnet_peer_ni *p;

		if (node_cpt_of(m->node, &nid) != m->cpt)
			continue;
		p = peer_get(cpt, &nid);
		if (check(p != NULL))
			peer_unref(p);
	}
	return 0;
}

static void meet_all(struct lnet *node, unsigned int from, unsigned int to)
{
	for (unsigned int i = 0; i < CPTS; i++) {
		struct meeting m = { node, i, from, to };

		check(lnet_call(node, i, meet, &m) == 0);
	}
}

static int by_nid(const void *a, const void *b)
{
	const struct ulnet_peer_info *x = a, *y = b;

	return lnet_nid_cmp(&x->nid, &y->nid);
}

/* Each peer that is there all the time must be seen once. */
static void look(struct lnet *node, unsigned int n)
{
	struct ulnet_peer_info *infos = calloc(n + 10, sizeof(*infos));

	check(lnet_peers(node, infos, n + 10) == (int)n);
	qsort(infos, n, sizeof(*infos), by_nid);
	for (unsigned int i = 0; i < n; i++) {
		struct ulnet_nid nid = nth(i);

		if (!check(lnet_nid_eq(&infos[i].nid, &nid)))
			break;
	}
	free(infos);
}

/* How many peers a walk looks at in one turn, at most. */
struct pace {
	uint64_t turn; /* ns: when it began */
	unsigned int in_turn, most, all;
};

static void pace(struct lnet_cpt *cpt, struct lnet_peer_ni *p, void *arg)
{
	struct pace *w = arg;

	if (!p)
		return;
	if (w->turn != loop_now(cpt->loop))
		w->in_turn = 0;
	w->turn = loop_now(cpt->loop);
	w->in_turn++;
	w->most = MAX(w->most, w->in_turn);
	w->all++;
}

/* The table of peers grows between two turns of a walk. */
struct growth {
	struct ulnet_work work;
	struct meeting newcomers;
	unsigned int calls, begun;
};

static void let_in(struct ulnet_work *work)
{
	struct growth *g = (struct growth *)work; /* work is the first member */

	check(meet(&g->newcomers) == 0);
}

static void grow(struct lnet_cpt *cpt, struct lnet_peer_ni *p, void *arg)
{
	struct growth *g = arg;

	g->begun += !p;
	if (p && g->calls++ == 300) {
		g->newcomers.cpt = cpt->index;
		lnet_post(cpt->node, cpt->index, &g->work);
	}
}

int main(void)
{
	struct pace walk = { 0 };
	struct growth growth = { .work.fn = let_in };
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.cpts = CPTS;
	if (!check(lnet_open(&conf, &node) == 0))
		return 1;
	look(node, 0);
	meet_all(node, 0, PEERS);
	look(node, PEERS);
	check(lnet_stats_reset(node) == 0);
	check(peers_each(node, pace, &walk) == 0);
	check(walk.all == PEERS);
	check(walk.most <= SLICE + CHAIN);
	growth.newcomers = (struct meeting){ node, 0, PEERS, 3 * PEERS };
	check(peers_each(node, grow, &growth) == 0);
	check(growth.begun == CPTS + 1);
	lnet_close(node);
	return atomic_load(&failures) ? 1 : 0;
}
