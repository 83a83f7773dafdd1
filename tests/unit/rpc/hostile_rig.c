/* SPDX-License-Identifier: BSD-3-Clause */
/* A server with hostile clients and an honest one: see the header. */
#include "tests/unit/rpc/hostile_rig.h"

#include <stdio.h>
#include <unistd.h>

#include "ulnet/keys.h"

static bool with_keys; /* the test that runs now */

void hostile_with_keys(void)
{
	with_keys = true;
}

void hostile_without_keys(void)
{
	with_keys = false;
}

/* A cluster's key. The caller owes ulrpc_keys_put(). */
static struct ulrpc_keys *keys_new(void)
{
	char path[] = "/tmp/ulnet-hostile-XXXXXX", why[256];
	const struct ulrpc_keys_conf files = { .cluster = path };
	struct ulrpc_keys *keys;
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(dprintf(fd, "lab %064d\n", 7), 4 + 64 + 1);
	close(fd);
	cr_assert_eq(ulrpc_keys_load(&files, &keys, why, sizeof(why)), 0, "%s",
		     why);
	unlink(path);
	return keys;
}

/* Opens both sides with keys, and the server as @conf says otherwise. */
static void open_with_keys(struct hostile_rig *h, const struct ulrpc_conf *conf)
{
	struct ulrpc_conf c;

	ulrpc_conf_init(&c);
	c.keys = keys_new();
	cr_assert_eq(ulrpc_open(h->g.node[CALLER], &c, &h->g.rpc[CALLER]), 0);
	if (conf) {
		struct ulrpc_keys *keys = c.keys;

		c = *conf;
		c.keys = keys;
	}
	serve_open(&h->g, &c);
	ulrpc_keys_put(c.keys);
}

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
	struct ulrpc_service_conf service;

	*h = (struct hostile_rig){ 0 };
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	serve_init(&h->g, 1, 1);
	if (more)
		service = *more;
	else
		ulrpc_service_conf_init(&service);
	service.flavour = ULRPC_FLAVOUR_NONE;
	if (with_keys)
		open_with_keys(h, conf);
	else
		serve_open(&h->g, conf);
	serve_start_with(&h->g, &service);
	serve_client(&h->g);
	hostile_honest(h);
	cr_assert_eq(h->g.client->imp->sealed != NULL, with_keys);
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
