/* SPDX-License-Identifier: BSD-3-Clause */
/* What peers cost a node is what the calculator computes. */
#include "tests/unit/o2iblnd/node_rig.h"

#include "ulnet/o2ib.h"

static struct node_rig r;

/* Two nodes of this implementation, with @conns connections. */
static struct ulnet_o2ib_resources predicted(uint32_t conns)
{
	static struct ulnet_o2ib_result result;
	struct ulnet_o2ib_pair pair = { .initiator = LNET_O2IB_A, .npeers = 1 };

	for (unsigned int i = 0; i < 2; i++) {
		lnet_o2ib_conf_init(&pair.node[i]);
		pair.node[i].model = LNET_O2IB_USER;
		pair.node[i].conns_per_peer = conns;
	}
	cr_assert_eq(lnet_o2ib_calculate(&pair, &result, NULL), 0);
	cr_assert_eq(result.conn.depth, RAW_PEER_DEPTH);
	return result.res[LNET_O2IB_B];
}

static uint64_t locked(unsigned int n)
{
	struct simqp_usage u;

	simqp_usage(r.fabric, &r.id[n].nid, &u);
	return u.locked;
}

Test(o2ib_resources, each_peer)
{
	const struct ulnet_o2ib_resources res = predicted(1);
	uint64_t before;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	node_rig_open(&r, 1, 1, NULL);
	before = locked(0);
	for (unsigned int i = 1; i <= 5; i++) {
		raw_peer_connect(raw_peer_new(&r), 0);
		cr_expect_eq(locked(0) - before, i * res.rx_bytes, "%u peers",
			     i);
	}
	node_rig_close(&r);
}

/* A node with several connections, without the memory that all peers share. */
static uint64_t locked_with(uint32_t conns)
{
	static uint8_t bytes[100];
	struct seen seen = { 0 };
	uint64_t bytes_locked;

	r = (struct node_rig){ 0 };
	r.tunables[0] = (struct ulnet_tunable){ "conns_per_peer", conns };
	r.ntunables = 1;
	node_rig_open(&r, 2, 1, NULL);
	node_rig_put(&r, 1, r.id[0], bytes, sizeof(bytes), 0, &seen);
	node_rig_run(&r, NSEC_PER_SEC);
	bytes_locked = locked(0);
	node_rig_close(&r);
	return bytes_locked;
}

Test(o2ib_resources, each_connection)
{
	const struct ulnet_o2ib_resources one = predicted(1);
	const struct ulnet_o2ib_resources four = predicted(4);

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	cr_expect_eq(four.conns, 4 * one.conns);
	cr_expect_eq(locked_with(4) - locked_with(1),
		     four.peer_rx_bytes - one.peer_rx_bytes);
}
