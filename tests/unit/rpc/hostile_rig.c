/* SPDX-License-Identifier: BSD-3-Clause */
/* A server with hostile clients and an honest one: see the header. */
#include "tests/unit/rpc/hostile_rig.h"

struct shard *hostile_shard(struct hostile_rig *h)
{
	return &h->g.rpc[SERVER]->shards[0];
}

uint64_t hostile_counted(struct hostile_rig *h, enum rpc_stat stat)
{
	return hostile_shard(h)->stats->counts[stat];
}

uint64_t hostile_unreadable(struct hostile_rig *h)
{
	return serve_unreadable(&h->g.service->cpt[0]);
}

uint64_t hostile_controls_unreadable(struct hostile_rig *h)
{
	return hostile_counted(h, RPC_STAT_control_malformed) +
	       hostile_counted(h, RPC_STAT_control_damaged) +
	       hostile_counted(h, RPC_STAT_control_unversioned);
}

void hostile_honest(struct hostile_rig *h)
{
	struct stat_shard *stats = h->g.rpc[CALLER]->shards[0].stats;
	struct called c;

	serve_call(&h->g, "echo", "honest", 6, 1000000, ULRPC_PRIORITY_NORMAL,
		   &c);
	lnet_sim_run(h->g.sim, 10 * MSEC);
	cr_assert_eq(c.ended, 1);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(c.outcome.attempts, 1);
	cr_assert_eq(c.length, 6);
	cr_assert_eq(memcmp(c.reply, "honest", 6), 0);
	cr_assert_eq(stats->counts[RPC_STAT_connections_made], 1);
}

void hostile_init_with(struct hostile_rig *h, const struct ulrpc_conf *conf,
		       const struct ulrpc_service_conf *more)
{
	*h = (struct hostile_rig){ 0 };
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	serve_init(&h->g, 1, 1);
	serve_open(&h->g, conf);
	serve_start_with(&h->g, more);
	serve_client(&h->g);
	hostile_honest(h);
	h->a = malloc(sizeof(*h->a));
	h->b = malloc(sizeof(*h->b));
	raw_client_init(h->a, h->g.sim, serve_node_add(&h->g, 2), SERVER);
	raw_client_init(h->b, h->g.sim, serve_node_add(&h->g, 3), SERVER);
}

void hostile_init(struct hostile_rig *h)
{
	hostile_init_with(h, NULL, NULL);
}

void hostile_connect(struct hostile_rig *h)
{
	cr_assert_eq(raw_client_connect(h->a)->status, WIRE_OK);
	cr_assert_eq(raw_client_open(h->a, "test")->status, WIRE_OK);
}

void hostile_settle(struct hostile_rig *h)
{
	lnet_sim_run(h->g.sim, 10 * MSEC);
}

void hostile_forget(struct hostile_rig *h)
{
	h->a->replies = h->a->messages = h->a->controls = 0;
}

void hostile_fini(struct hostile_rig *h)
{
	struct service_cpt *sc = &h->g.service->cpt[0];
	struct shard *s = hostile_shard(h);

	hostile_honest(h);
	for (unsigned int i = 0; i < 10; i++) {
		lnet_sim_run(h->g.sim, 10 * SEC);
		hostile_honest(h);
	}
	cr_assert_eq(s->exports->table.used, 1, "%u connections",
		     s->exports->table.used);
	cr_assert_eq(atomic_load(&sc->under_way), 0);
	cr_assert_eq(serve_holds(sc), 0);
	cr_assert(list_empty(&sc->active));
	cr_assert(list_empty(&sc->replies));
	cr_assert_eq(s->work, 0);
	serve_fini(&h->g);
	free(h->a);
	free(h->b);
}
