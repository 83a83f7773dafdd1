/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that uses the real library, a hostile server played by the test, and
 * an honest one, which must serve calls all the time. */
#ifndef TESTS_HOSTILE_SERVER_H
#define TESTS_HOSTILE_SERVER_H

#include "tests/unit/rpc/client/call_rig.h"

#define GOOD 2 /* node of the honest server */

static struct call_rig g, good;
static struct note n, many[100];

static inline void honest(void)
{
	struct note m;

	call(&good, &m, 1000000);
	run(&g, 10 * MSEC);
	ended_well(&m);
	cr_assert_eq(good.fake->connects, 1);
}

static inline void open_with(const struct ulrpc_conf *conf)
{
	struct ulnet_nid nid = nth_id(GOOD).nid;
	struct ulrpc_client_conf c;
	char text[LNET_NIDSTR_SIZE];

	struct ulrpc_conf defaults;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	ulrpc_conf_init(&defaults);
	defaults.idle = ULRPC_NEVER;
	rig_open_with(&g, conf ? conf : &defaults);
	lnet_nid_format(&nid, text, sizeof(text));
	cr_assert_eq(lnet_sim_node_add(g.sim, text, NULL, NULL, NULL), GOOD);
	good = g;
	good.fake = fake_new(lnet_sim_node(g.sim, GOOD));
	ulrpc_client_conf_init(&c);
	c.inflight_begin = 1024;
	c.nids = &nid;
	c.nnids = 1;
	c.service = "test";
	cr_assert_eq(ulrpc_client_open(g.rpc, &c, &good.client), 0);
	honest();
}

static inline void open_rig(void)
{
	open_with(NULL);
}

static inline void close_rig(void)
{
	honest();
	cr_assert(list_empty(&g.rpc->shards[0].imports->batches));
	cr_assert_eq(g.client->ncalls, 0);
	cr_assert_eq(g.client->inflight, 0);
	ulrpc_client_close(good.client);
	rig_close(&g);
	fake_free(good.fake);
}

static inline uint64_t counted(enum rpc_stat stat)
{
	return call_counted(&g, stat);
}

static inline uint64_t unreadable(void)
{
	return counted(RPC_STAT_replies_malformed) +
	       counted(RPC_STAT_replies_damaged) +
	       counted(RPC_STAT_replies_unversioned);
}

/* Returns how many messages the client has sent to the hostile server. */
static inline unsigned int sent(void)
{
	return g.fake->connects + g.fake->opens + g.fake->keepalives +
	       g.fake->messages;
}

/* Returns how many messages the client sends to the hostile server in the next
 * @seconds. */
static inline unsigned int sent_in(unsigned int seconds)
{
	unsigned int before = sent();

	run(&g, seconds * SEC);
	return sent() - before;
}

static inline void refused_for_ever(enum ulrpc_cause cause,
				    enum ulrpc_execution execution)
{
	unsigned int first, later;

	call(&g, &n, 100000000);
	first = sent_in(5);
	run(&g, 40 * SEC);
	later = sent_in(50);
	cr_assert_gt(first, 0);
	/* At most 20 attempts in a second, of three messages each. */
	cr_assert_leq(first, 70 * 5, "%u messages in 5 s", first);
	cr_assert_leq(later, 70 * 50, "%u messages in 50 s", later);
	run(&g, 10 * SEC);
	ended_by(&n, cause, execution);
	run(&g, 60 * SEC); /* until a pause of the import is over */
}

#endif
