/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator itself: nodes that cannot start, seeds, windows, watched
 * buffers, crashes. */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"
#include "ulnet/loop.h"

static uint8_t bytes[64];

static void put_to_first(struct lnet *node)
{
	put_bytes(node, nth_id(0), 5, 1, bytes, sizeof(bytes));
}

/* Sends a message, lets it leave, and fails. */
static int start_in_vain(void *arg, unsigned int index, struct lnet *node)
{
	(void)arg;
	(void)index;
	put_to_first(node);
	for (unsigned int i = 0; i < 5; i++)
		lnet_poll(node, 1);
	return -EINVAL;
}

/* The node's message arrives when the node is gone. */
Test(sim, node_that_cannot_start)
{
	struct lnet_sim *sim = cluster(1);

	cluster_links(sim, &(struct ulnet_sim_link){ .latency = 1000000 });
	cr_assert_eq(lnet_sim_node_add(sim, "10.0.0.2@tcp", NULL, start_in_vain,
				       NULL),
		     -EINVAL);
	cluster_end(sim);
}

static uint64_t digest_of(uint64_t seed)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct ulnet_sim_link link = { .latency = 1000,
					     .jitter = 100000 };
	struct lnet_sim *sim;
	uint64_t digest;

	cr_assert_eq(lnet_sim_new(seed, 1, &sim), 0);
	cr_assert_eq(lnet_sim_link_set(sim, &any, &any, &link), 0);
	cr_assert_geq(lnet_sim_node_add(sim, "10.0.0.1@tcp", NULL, NULL, NULL),
		      0);
	cr_assert_geq(lnet_sim_node_add(sim, "10.0.0.2@tcp", NULL, NULL, NULL),
		      0);
	for (unsigned int i = 0; i < 10; i++)
		put_to_first(lnet_sim_node(sim, 1));
	lnet_sim_run_all(sim);
	digest = lnet_sim_digest(sim);
	cr_assert_eq(lnet_sim_free(sim), 0);
	return digest;
}

Test(sim, a_seed_is_a_run)
{
	cr_assert_eq(digest_of(1), digest_of(1));
	cr_assert_neq(digest_of(1), digest_of(2));
}

/* A node whose messages are not read sends no more than the link's window
 * takes. */
Test(sim, window)
{
	struct lnet_sim *sim;
	struct ulnet_conf conf;
	struct lnet *to, *from;
	struct seen seen = { .n = 0 };
	struct ulnet_md umd =
		md_of(bytes, sizeof(bytes), LNET_MD_OP_PUT, &seen);

	lnet_conf_init(&conf);
	conf.messages_max = 16;
	sim = cluster_with(2, 1, &conf);
	to = lnet_sim_node(sim, 0);
	from = lnet_sim_node(sim, 1);
	cluster_links(sim,
		      &(struct ulnet_sim_link){ .latency = 1000, .window = 3 });
	cr_assert_eq(LNetSetLazyPortal(to, 5), 0);
	for (unsigned int i = 0; i < 50; i++)
		put_bytes(from, nth_id(0), 5, 1, bytes, 1);
	lnet_sim_run(sim, 1000 * MSEC);
	cr_assert_eq(counter(to, "parked"), 1);
	/* The throttled message is counted on both sides. */
	cr_assert_eq(counter(from, "send_count"),
		     counter(to, "msgs_alloc") - 1 + 3);
	umd.options |= LNET_MD_MANAGE_REMOTE;
	post_md(to, 5, 1, &umd);
	lnet_sim_run(sim, 1000 * MSEC);
	cr_assert_eq(seen.n, 50);
	cluster_end(sim);
}

Test(sim, retired_buffer_is_watched)
{
	struct lnet_sim *sim = cluster(1);
	uint8_t *buf = lnet_sim_buf(sim, 100);

	memset(buf, 1, 100);
	lnet_sim_buf_retire(sim, buf);
	cr_assert_eq(lnet_sim_check(sim), 0);
	buf[99] = 1;
	cr_assert_eq(lnet_sim_check(sim), 1);
	cr_assert_eq(lnet_sim_free(sim), 1);
}

struct crash {
	struct lnet_sim *sim;
	unsigned int index;
	int rc;
};

static void crash_now(void *arg)
{
	struct crash *c = arg;

	c->rc = lnet_sim_crash(c->sim, c->index);
}

/* A node cannot crash while somebody waits for it inside lnet_poll(), which
 * would return to memory that was freed. */
Test(sim, no_crash_of_a_node_that_is_waited_for)
{
	struct lnet_sim *sim = cluster(2);
	struct crash first = { sim, 0, 1 }, second = { sim, 1, 1 };

	cr_assert_eq(lnet_sim_at(sim, MSEC, crash_now, &first), 0);
	cr_assert_eq(lnet_sim_at(sim, MSEC, crash_now, &second), 0);
	while (first.rc == 1 || second.rc == 1)
		cr_assert_eq(lnet_poll(lnet_sim_node(sim, 0), 10000), 0);
	cr_assert_eq(first.rc, -EBUSY);
	cr_assert_eq(second.rc, 0);
	cr_assert_not_null(lnet_sim_node(sim, 0));
	cr_assert_eq(lnet_sim_crash(sim, 0), 0);
	cluster_end(sim);
}

Test(sim, bad_arguments)
{
	const struct ulnet_sim_link link = { .loss = LNET_SIM_ALWAYS + 1 };
	const struct ulnet_nid any = LNET_NID_ANY;
	struct lnet_sim *sim = cluster(1);
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.interfaces_max = UINT32_MAX;
	cr_assert_eq(lnet_sim_link_set(sim, &any, &any, &link), -EINVAL);
	cr_assert_eq(lnet_sim_node_add(sim, "nonsense@", NULL, NULL, NULL),
		     -EINVAL);
	cr_assert_eq(lnet_sim_node_add(sim, "10.0.0.2@tcp", &conf, NULL, NULL),
		     -EINVAL);
	lnet_conf_init(&conf);
	conf.nids = "10.0.0.2@tcp";
	cr_assert_eq(lnet_sim_node_add(sim, "10.0.0.2@tcp", &conf, NULL, NULL),
		     -EINVAL, "NIDs are the simulation's affair");
	cr_assert_eq(lnet_sim_node_add(sim, "10.0.0.1@tcp", NULL, NULL, NULL),
		     -EADDRINUSE);
	cr_assert_eq(lnet_sim_restart(sim, 0), -EALREADY);
	cr_assert_eq(lnet_sim_crash(sim, 7), -ENOENT);
	cluster_end(sim);
}

/* ---- the end ---- */

struct end {
	struct ulnet_layer layer;
	struct lnet_sim *sim;
	struct lnet *node;
	unsigned int planned; /* calls of end_planned() */
};

static void end_planned(void *arg)
{
	((struct end *)arg)->planned++;
}

/* A layer that needs a second to close. */
static void end_close(struct ulnet_layer *layer)
{
	struct end *e = container_of(layer, struct end, layer);
	uint64_t until = lnet_sim_now(e->sim) + 1000 * MSEC;

	cr_assert_eq(lnet_sim_at(e->sim, 1, end_planned, e), -ESHUTDOWN);
	while (lnet_sim_now(e->sim) < until)
		lnet_poll(e->node, 1000);
	lnet_layer_del(e->node, layer);
}

Test(sim_end, nothing_planned_happens)
{
	struct end e = { .sim = cluster(1), .layer.close = end_close };

	e.node = lnet_sim_node(e.sim, 0);
	lnet_layer_add(e.node, &e.layer);
	for (uint64_t i = 0; i < 100; i++)
		cr_assert_eq(lnet_sim_at(e.sim, i * MSEC, end_planned, &e), 0);
	cr_assert_eq(lnet_sim_free(e.sim), 0);
	cr_assert_eq(e.planned, 0);
}
