/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams on bad networks, and with nodes that crash. */
#include "base/buf.h"
#include "rpc/stream/frame.h"
#include "rpc/wire/wire.h"
#include "sim/sim.h"
#include "tests/unit/rpc/stream/stream_rig.h"

#define MINUTE UINT64_C(60000000) /* us */

static const struct ulnet_sim_link bad = {
	.latency = 1 * MSEC,
	.jitter = 2 * MSEC,
	.loss = LNET_SIM_ALWAYS / 50,
	.duplicate = LNET_SIM_ALWAYS / 50,
	.reorder = LNET_SIM_ALWAYS / 20,
	.reorder_window = 5 * MSEC,
	.refuse = LNET_SIM_ALWAYS / 100,
	.error = LNET_SIM_ALWAYS / 100,
};

static void all_well(struct stream_rig *g, uint32_t n)
{
	struct flow f[4];

	for (int i = 0; i < 4; i++) {
		f[i] = (struct flow){ .to_send = n };
		flow_open(g, &f[i], "echo", NULL, 0, 20 * MINUTE);
	}
	for (int i = 0; i < 4; i++) {
		flow_finish(&f[i]);
		flow_went_well(&f[i], n, n);
	}
}

Test(stream_fault, order_and_once_on_a_bad_network)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct stream_rig g;

		stream_rig_init(&g, seed, 1);
		cr_assert_eq(lnet_sim_link_set(g.s.sim, &LNET_NID_ANY,
					       &LNET_NID_ANY, &bad),
			     0);
		all_well(&g, 500);
		stream_rig_fini(&g);
	}
}

Test(stream_fault, outlives_a_partition)
{
	struct stream_rig g;
	struct ulnet_nid a = nth_id(CALLER).nid, b = nth_id(SERVER).nid;
	struct flow f = { .to_send = 1000, .open_ended = true };

	stream_rig_init(&g, 1, 1);
	flow_open(&g, &f, "echo", NULL, 0, 20 * MINUTE);
	while (f.received < 1000)
		lnet_sim_run(g.s.sim, MSEC);
	cr_assert_eq(lnet_sim_partition(g.s.sim, &a, &b, true), 0);
	f.to_send = 2000;
	f.open_ended = false;
	flow_send(&f);
	lnet_sim_run(g.s.sim, 20 * SEC);
	cr_assert_eq(lnet_sim_partition(g.s.sim, &a, &b, false), 0);
	flow_finish(&f);
	flow_went_well(&f, 2000, 2000);
	stream_rig_fini(&g);
}

Test(stream_fault, ends_when_the_server_stays_away)
{
	struct stream_rig g;
	struct ulrpc_stream_outcome o;
	struct ulnet_nid a = nth_id(CALLER).nid, b = nth_id(SERVER).nid;
	struct flow f = { .to_send = 100 };

	stream_rig_init(&g, 1, 1);
	flow_open(&g, &f, "park", NULL, 0, ULRPC_NEVER);
	lnet_sim_run(g.s.sim, SEC);
	cr_assert_eq(lnet_sim_partition(g.s.sim, &a, &b, true), 0);
	flow_finish(&f);
	cr_assert_neq(f.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(f.outcome.execution, ULRPC_EXECUTED);
	cr_assert_eq(f.outcome.delivered, 0);
	lnet_sim_run(g.s.sim, 200 * SEC);
	cr_assert_eq(ulrpc_stream_outcome(g.parked[0], &o), 0);
	cr_assert_neq(o.cause, ULRPC_CAUSE_OK);
	stream_rig_fini(&g);
}

/* ---- one batch is lost ---- */

/* LNet's header. */
enum { HDR_TYPE = 24, HDR_PORTAL = 64 };

/* To a portal that nobody has: it is gone. */
#define PORTAL_NONE 63

/* Requests on the wire, of which the first one is lost. */
struct first_lost {
	bool on;
	unsigned int n;
};

static void lose_first(void *arg, uint8_t *hdr, size_t hdr_len,
		       uint8_t *payload, size_t length)
{
	struct first_lost *l = arg;
	uint32_t portal = load_le32(hdr + HDR_PORTAL);

	(void)payload;
	(void)length;
	if (!l->on || hdr_len != LNET_HDR_SIZE ||
	    load_le32(hdr + HDR_TYPE) != LNET_MSG_PUT ||
	    portal == ULRPC_PORTAL_CONTROL || portal == ULRPC_PORTAL_REPLY)
		return;
	if (l->n++ == 0)
		store_le32(hdr + HDR_PORTAL, PORTAL_NONE);
}

/* While a batch is missing, the client sends as many later ones as the server
 * keeps until their turn comes, although there is credit for more. */
Test(stream_fault, no_more_batches_than_are_kept)
{
	struct flow f = { .open_ended = true, .lazy = true };
	struct first_lost l = { .on = false };
	struct stream_rig g;

	stream_rig_init(&g, 1, 1);
	sim_tap(g.s.sim, lose_first, &l);
	flow_open(&g, &f, "echo", NULL, 0, MINUTE);
	lnet_sim_run(g.s.sim, 10 * SEC);
	l.on = true;
	for (unsigned int i = 0; i < 3 * BATCHES_AHEAD; i++) {
		f.to_send++;
		flow_send(&f);
		lnet_sim_run(g.s.sim, MSEC / 10);
	}
	l.on = false;
	cr_assert_eq(f.sent, 3 * BATCHES_AHEAD);
	cr_assert_eq(l.n, BATCHES_AHEAD);
	f.open_ended = f.lazy = false;
	flow_send(&f);
	flow_finish(&f);
	flow_went_well(&f, 3 * BATCHES_AHEAD, 3 * BATCHES_AHEAD);
	sim_tap(g.s.sim, NULL, NULL);
	stream_rig_fini(&g);
}

/* The server crashes while messages are under way; the client is told the
 * truth, and opens another stream of the server that has come back. */
Test(stream_fault, server_crashes)
{
	struct stream_rig g;
	const void *body;
	size_t length;
	struct flow f = { .to_send = 1000 }, again = { .to_send = 100 };

	stream_rig_init(&g, 1, 1);
	flow_open(&g, &f, "park", NULL, 0, ULRPC_NEVER);
	lnet_sim_run(g.s.sim, SEC);
	for (int i = 0; i < 40; i++)
		cr_assert_eq(ulrpc_stream_next(g.parked[0], &body, &length), 1);
	lnet_sim_run(g.s.sim, SEC);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(ulrpc_stream_next(g.parked[0], &body, &length), 1);
	cr_assert_eq(lnet_sim_crash(g.s.sim, SERVER), 0);
	ulrpc_stream_put(g.parked[0]);
	g.nparked = g.served = 0;
	cr_assert_eq(lnet_sim_restart(g.s.sim, SERVER), 0);
	g.s.node[SERVER] = lnet_sim_node(g.s.sim, SERVER);
	serve_open(&g.s, NULL);
	stream_rig_serve(&g, NULL);
	flow_finish(&f);
	cr_assert_eq(f.outcome.cause, ULRPC_CAUSE_RESTARTED, "%s",
		     ulrpc_cause_name(f.outcome.cause));
	/* It has heard of 32 of 50, and sent as many as it could. */
	cr_assert_eq(f.outcome.delivered, 32);
	cr_assert_eq(f.outcome.sent, 32 + 64);
	cr_assert_eq(f.outcome.undelivered, 0);
	flow_open(&g, &again, "echo", NULL, 0, MINUTE);
	flow_finish(&again);
	flow_went_well(&again, 100, 100);
	stream_rig_fini(&g);
}

/* The client crashes: the service is told, and everything is freed. */
Test(stream_fault, client_crashes)
{
	struct stream_rig g;
	struct ulrpc_stream_outcome o;
	struct flow f = { .to_send = 1000 }, opening = { 0 };

	stream_rig_init(&g, 1, 1);
	flow_open(&g, &f, "park", NULL, 0, ULRPC_NEVER);
	lnet_sim_run(g.s.sim, SEC);
	flow_open(&g, &opening, "echo", NULL, 0, ULRPC_NEVER);
	cr_assert_eq(lnet_sim_crash(g.s.sim, CALLER), 0);
	g.s.rpc[CALLER] = NULL;
	g.streams = NULL;
	ulrpc_stream_put(f.stream);
	ulrpc_stream_put(opening.stream);
	lnet_sim_run(g.s.sim, 200 * SEC);
	cr_assert_eq(ulrpc_stream_outcome(g.parked[0], &o), 0);
	cr_assert_neq(o.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(f.ended + opening.ended, 0);
	stream_rig_fini(&g);
}
