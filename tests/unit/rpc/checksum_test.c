/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checksums of bodies, between a client and a service that use the real
 * library, while bits of messages are flipped in both directions. With
 * checksums neither the handler nor the caller ever sees a changed body, and
 * each call is executed once.
 */
#include "rpc/client/client.h"
#include "tests/unit/rpc/serve_rig.h"
#include "ulnet/fault.h"

#define CALLS  48
#define PORTAL 45
#define ROOM   300  /* bytes that a call has for its reply */
#define MOST   3000 /* bytes of a body */

static struct serve_rig g;

struct call {
	unsigned int runs, ended;
	struct ulrpc_outcome outcome;
};

static struct call calls[CALLS];
static unsigned int altered; /* bodies */

static uint8_t nth_byte(uint32_t index, size_t i)
{
	return (uint8_t)((index + 1) * 167 + i * 31 + (i >> 8));
}

/* Bodies are short and long; every third reply is longer than ROOM, and is
 * fetched. */
static size_t request_length(uint32_t index)
{
	return sizeof(index) + (index % 2 ? index : index * 60 % MOST);
}

static size_t reply_length(uint32_t index)
{
	return sizeof(index) + (index % 3 ? index * 4 : MOST - index);
}

static void fill(uint8_t *body, uint32_t index, size_t length)
{
	memcpy(body, &index, sizeof(index));
	for (size_t i = sizeof(index); i < length; i++)
		body[i] = nth_byte(index, i);
}

/* Is @body one of those that fill() makes? */
static bool is_right(const uint8_t *body, size_t length, uint32_t *index,
		     size_t (*length_of)(uint32_t index))
{
	uint8_t want[MOST + sizeof(*index)];

	if (length < sizeof(*index))
		return false;
	memcpy(index, body, sizeof(*index));
	if (*index >= CALLS || length != length_of(*index))
		return false;
	fill(want, *index, length);
	return !memcmp(body, want, length);
}

static void on_request(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	uint8_t reply[MOST + sizeof(uint32_t)];
	uint32_t index;

	(void)arg;
	if (!is_right(body, length, &index, request_length)) {
		altered++;
		ulrpc_fail(r, -EIO);
		return;
	}
	calls[index].runs++;
	fill(reply, index, reply_length(index));
	ulrpc_reply(r, reply, reply_length(index));
}

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct call *c = arg;
	uint32_t index;

	c->ended++;
	c->outcome = *o;
	if (o->cause == ULRPC_CAUSE_OK &&
	    (!is_right(reply, length, &index, reply_length) ||
	     c != &calls[index]))
		altered++;
}

static void corrupt(unsigned int node, uint32_t messages, unsigned int portal)
{
	struct ulnet_fault f;

	lnet_fault_init(&f, LNET_FAULT_CORRUPT);
	f.rate = 5;
	f.random = true;
	f.messages = messages;
	if (portal)
		f.portals = UINT64_C(1) << portal;
	cr_assert_eq(lnet_fault_add(lnet_sim_node(g.sim, node), &f), 0);
}

/* Makes CALLS calls, a few at a time. */
static void run(uint64_t seed, bool client_asks, bool service_asks)
{
	const struct ulrpc_method_conf method = { .name = "fill",
						  .handler = on_request,
						  .run = ULRPC_RUN_INLINE };
	struct ulrpc_call_conf conf = { .deadline = 120000000,
					.reply_max = ROOM };
	struct ulnet_nid nid = nth_id(SERVER).nid;
	uint8_t body[MOST + sizeof(uint32_t)];
	struct ulrpc_service_conf sc;
	struct ulrpc_client_conf cc;

	memset(calls, 0, sizeof(calls));
	serve_init(&g, seed, 1);
	serve_open(&g, NULL);
	ulrpc_service_conf_init(&sc);
	sc.name = "test";
	sc.methods = &method;
	sc.nmethods = 1;
	sc.portal = PORTAL;
	sc.checksum = service_asks;
	serve_start(&g, &sc);
	cr_assert_eq(ulrpc_open(g.node[CALLER], NULL, &g.rpc[CALLER]), 0);
	ulrpc_client_conf_init(&cc);
	cc.nids = &nid;
	cc.nnids = 1;
	cc.service = "test";
	cc.checksum = client_asks;
	cr_assert_eq(ulrpc_client_open(g.rpc[CALLER], &cc, &g.client), 0);
	corrupt(CALLER, LNET_FAULT_PUT, PORTAL);
	corrupt(SERVER, LNET_FAULT_PUT, ULRPC_PORTAL_REPLY);
	corrupt(SERVER, LNET_FAULT_REPLY, 0);
	for (uint32_t i = 0; i < CALLS; i++) {
		fill(body, i, request_length(i));
		cr_assert_eq(ulrpc_call(g.client, ulrpc_method("fill"), body,
					request_length(i), &conf, on_end,
					&calls[i], NULL),
			     0);
		if (i % 5 == 0)
			lnet_sim_run(g.sim, 3 * MSEC);
	}
	lnet_sim_run(g.sim, 130 * SEC);
}

/* Adds up what both sides have dropped, and ends the run. */
static void run_end(uint64_t *requests, uint64_t *replies, uint64_t *fetches)
{
	const uint64_t *counts = g.client->shard->stats->counts;

	*requests += serve_counted(&g.service->cpt[0],
				   RPC_STAT_requests_damaged);
	*replies += counts[RPC_STAT_replies_damaged];
	*fetches += counts[RPC_STAT_fetches_retried];
	ulrpc_client_close(g.client);
	g.client = NULL;
	serve_fini(&g);
}

static void all_are_right(bool client_asks, bool service_asks)
{
	uint64_t requests = 0, replies = 0, fetches = 0;

	for (uint64_t seed = 1; seed <= 10; seed++) {
		run(seed, client_asks, service_asks);
		for (uint32_t i = 0; i < CALLS; i++) {
			cr_assert_eq(calls[i].ended, 1);
			cr_assert_eq(
				calls[i].outcome.cause, ULRPC_CAUSE_OK,
				"seed %u, call %u: %s", (unsigned int)seed, i,
				ulrpc_cause_name(calls[i].outcome.cause));
			cr_assert_eq(calls[i].runs, 1, "seed %u, call %u: %u",
				     (unsigned int)seed, i, calls[i].runs);
		}
		cr_assert_eq(altered, 0);
		run_end(&requests, &replies, &fetches);
	}
	cr_assert(requests);
	cr_assert(replies);
	cr_assert(fetches);
}

Test(checksum, client_asks)
{
	all_are_right(true, false);
}

Test(checksum, service_asks)
{
	all_are_right(false, true);
}

/* Without checksums such faults do change bodies. */
Test(checksum, nobody_asks)
{
	uint64_t n = 0;

	for (uint64_t seed = 1; seed <= 10; seed++) {
		run(seed, false, false);
		run_end(&n, &n, &n);
	}
	cr_assert_gt(altered, 10);
}
