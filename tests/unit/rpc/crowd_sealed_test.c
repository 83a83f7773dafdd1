/* SPDX-License-Identifier: BSD-3-Clause */
/* Sealed messages of clients that another CPT of the server serves than the one
 * they come to: only that CPT can read them, and so refuse what is in them. */
#include "rpc/forwarded.h"
#include "rpc/server/session/export.h"
#include "tests/unit/rpc/proof_rig.h"

#define CPTS   4
#define CALLS  64
#define LENGTH (32u << 10)
#define KEPT   (64u << 10) /* messages that wait for the slow CPT, at most */
#define LONG   (512u << 10)

static void rig_of_spread(struct proof_rig *g)
{
	struct ulrpc_conf conf;

	g->folder = folder_of_two();
	serve_init(&g->serve, 1, CPTS);
	ulrpc_conf_init(&conf);
	conf.keys = keys_load_named(g->folder, "b");
	conf.spread = ULRPC_SPREAD_CLIENTS;
	cr_assert_eq(
		ulrpc_open(g->serve.node[SERVER], &conf, &g->serve.rpc[SERVER]),
		0);
	ulrpc_keys_put(conf.keys);
	who_start(g, ULRPC_FLAVOUR_PRIVACY);
}

static unsigned int owner(const struct proof_rig *g)
{
	const struct ulnet_id caller = nth_id(CALLER);

	return (unsigned int)lnet_cpt_of(g->serve.node[SERVER], &caller.nid);
}

/* Returns whether the client is served elsewhere than where its messages come.
 */
static bool is_away(const struct proof_rig *g)
{
	const struct shard *s = &g->serve.rpc[SERVER]->shards[owner(g)];

	return s->exports->table.used == 0;
}

/* Makes clients until one is served by another CPT than its NID's. */
static void client_away(struct proof_rig *g)
{
	struct serve_rig *s = &g->serve;

	s->rpc[CALLER] =
		open_with(s->node[CALLER], keys_load_named(g->folder, "a"));
	proof_client_usual(g);
	hello_is_served(g);
	while (!is_away(g)) {
		ulrpc_client_close(s->client);
		cr_assert_eq(ulrpc_close(s->rpc[CALLER]), 0);
		lnet_sim_run(s->sim, 100 * MSEC);
		s->rpc[CALLER] = open_with(s->node[CALLER],
					   keys_load_named(g->folder, "a"));
		proof_client_usual(g);
		hello_is_served(g);
	}
}

static void on_kept(struct forwarded *forwarded)
{
	(void)forwarded;
}

/* Messages of the host that wait for a slow CPT. */
struct waiting {
	unsigned int n;
	struct forwarded *kept[KEPT];
};

/* Makes such messages until not even a short one has room. */
static void fill(const struct proof_rig *g, struct waiting *w)
{
	static const uint8_t bytes[LONG];
	struct shard *from = &g->serve.rpc[SERVER]->shards[owner(g)];
	const struct ulnet_event ev = { .source = nth_id(CALLER).nid };

	for (size_t length = LONG; length > 16; length /= 2)
		while ((w->kept[w->n] =
				forwarded_new(from, (from->cpt + 1) % CPTS, &ev,
					      bytes, length, true)))
			cr_assert_lt(++w->n, KEPT);
}

/* The CPT that serves a host's clients is so slow that the host's share is used
 * up. All calls that the host makes meanwhile are served when there is room:
 * their messages wait, and none is dropped. */
Test(crowd_sealed, waits_for_its_share)
{
	static struct called c[CALLS];
	static uint8_t body[LENGTH];
	static struct waiting w;
	struct proof_rig *g = calloc(1, sizeof(*g));
	const struct ulrpc *server;

	cr_assert(g);
	rig_of_spread(g);
	server = g->serve.rpc[SERVER];
	client_away(g);
	g->runs = 0;
	fill(g, &w);
	for (unsigned int i = 0; i < CALLS; i++)
		serve_call(&g->serve, "who", body, LENGTH, 60000000,
			   ULRPC_PRIORITY_DEFAULT, &c[i]);
	lnet_sim_run(g->serve.sim, 5 * MSEC);
	cr_assert_eq(g->runs, 0);
	cr_assert_eq(counts(server, RPC_STAT_strays_throttled), 1);
	while (w.n)
		forwarded_send(w.kept[--w.n], on_kept, NULL, NULL);
	lnet_sim_run(g->serve.sim, 100 * MSEC);
	cr_assert_eq(g->runs, CALLS);
	for (unsigned int i = 0; i < CALLS; i++)
		cr_assert_eq(c[i].outcome.cause, ULRPC_CAUSE_OK, "%u: %s", i,
			     ulrpc_cause_name(c[i].outcome.cause));
	cr_assert_eq(counts(server, RPC_STAT_requests_dropped), 0);
	ulrpc_client_close(g->serve.client);
	proof_rig_free(g);
}
