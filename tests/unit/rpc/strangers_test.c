/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server that has keys keeps for clients that prove who they are,
 * however many others come. */
#include "tests/unit/rpc/proof_rig.h"
#include "tests/unit/rpc/server/raw_client.h"

#define STRANGERS   8 /* hosts */
#define ABLE	    4 /* as many hosts find room for a connection each */
#define FIRST_NODE  2
#define EXPORTS_MAX 64

/* Chunks of records for either class of clients. */
#define CHUNKS_PROVED	56
#define CHUNKS_STRANGER 8

/* The server b has room for EXPORTS_MAX clients; a may prove who it is. */
static struct proof_rig *rig(enum ulrpc_flavour flavour)
{
	struct proof_rig *g = calloc(1, sizeof(*g));
	struct serve_rig *s = &g->serve;
	struct ulrpc_conf conf;

	cr_assert(g);
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	g->folder = folder_of_two();
	serve_init(s, 1, 1);
	ulrpc_conf_init(&conf);
	conf.keys = keys_load_named(g->folder, "b");
	conf.exports_max = EXPORTS_MAX;
	cr_assert_eq(ulrpc_open(s->node[SERVER], &conf, &s->rpc[SERVER]), 0);
	ulrpc_keys_put(conf.keys);
	s->rpc[CALLER] =
		open_with(s->node[CALLER], keys_load_named(g->folder, "a"));
	who_start(g, flavour);
	return g;
}

static struct export_pool *pool(struct proof_rig *g, enum export_class class)
{
	return &g->serve.rpc[SERVER]->shards[0].exports->pools[class];
}

/* A stranger on a host of its own. */
static struct raw_client *stranger(struct proof_rig *g, unsigned int n)
{
	struct raw_client *r = calloc(1, sizeof(*r));

	cr_assert(r);
	raw_client_init(r, g->serve.sim,
			serve_node_add(&g->serve, FIRST_NODE + n), SERVER);
	r->portal = ulrpc_service_portal(g->serve.service);
	return r;
}

static uint32_t stranger_connects(struct raw_client *r, unsigned int n,
				  unsigned int i)
{
	r->client_id[0] = (uint8_t)(n + 1);
	r->client_id[1] = (uint8_t)i;
	r->client = n * 1000 + i + 1;
	return raw_client_connect(r)->status;
}

/* Sends a call in each chunk of records. */
static void stranger_calls(struct proof_rig *g, struct raw_client *r)
{
	for (uint32_t i = 0; i < RECORD_CHUNKS; i++) {
		struct wire_call c = raw_client_call_of(i + 1, "who", 0);

		c.slot = i * RECORD_CHUNK;
		raw_client_send(r, &c, 1, "", 0);
		lnet_sim_run(g->serve.sim, MSEC);
	}
}

static void proven_is_served(struct proof_rig *g)
{
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);
	struct called c;

	proof_client(g, &conf);
	c = who(g, "hello", 6);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_str_eq(g->peer.name, "a");
	cr_assert_eq(pool(g, EXPORT_PROVED)->exports.used, 1);
	cr_assert_eq(pool(g, EXPORT_PROVED)->chunks.used, 1);
}

static void chunks_are(struct proof_rig *g)
{
	pool(g, EXPORT_PROVED)->chunks.max = CHUNKS_PROVED;
	pool(g, EXPORT_STRANGER)->chunks.max = CHUNKS_STRANGER;
}

/* Strangers from many hosts connect as often as they can: all together they get
 * an eighth. */
Test(strangers, connections)
{
	struct proof_rig *g = rig(ULRPC_FLAVOUR_AUTH);
	struct raw_client *r[STRANGERS];
	unsigned int total = 0;

	for (unsigned int n = 0; n < STRANGERS; n++) {
		r[n] = stranger(g, n);
		for (unsigned int i = 0; i < EXPORTS_MAX; i++)
			total += stranger_connects(r[n], n, i) == WIRE_OK;
	}
	cr_assert_eq(total, EXPORTS_MAX / 8);
	cr_assert_eq(pool(g, EXPORT_STRANGER)->exports.used, EXPORTS_MAX / 8);
	cr_assert_eq(pool(g, EXPORT_PROVED)->exports.max, EXPORTS_MAX * 7 / 8);
	proven_is_served(g);
	proof_rig_free(g);
	for (unsigned int n = 0; n < STRANGERS; n++)
		free(r[n]);
}

/* Calls that a stranger may not make take no records, and a copy of one is
 * still not executed. */
Test(strangers, refused_calls)
{
	struct proof_rig *g = rig(ULRPC_FLAVOUR_AUTH);
	struct raw_client *r = stranger(g, 0);

	chunks_are(g);
	cr_assert_eq(stranger_connects(r, 0, 0), WIRE_OK);
	stranger_calls(g, r);
	cr_assert_eq(r->replies, RECORD_CHUNKS);
	for (unsigned int i = 0; i < r->replies; i++)
		cr_assert_eq(r->reply[i].status, WIRE_NO_SERVICE);
	cr_assert_eq(pool(g, EXPORT_STRANGER)->chunks.used, 0);
	/* Copies: no record says so, but they are not new. */
	stranger_calls(g, r);
	for (unsigned int i = RECORD_CHUNKS; i < r->replies; i++)
		cr_assert_neq(r->reply[i].status, WIRE_OK);
	cr_assert_eq(pool(g, EXPORT_STRANGER)->chunks.used, 0);
	cr_assert_eq(g->runs, 0);
	proven_is_served(g);
	proof_rig_free(g);
	free(r);
}

/* Strangers may call the service, and do not say that they have the replies. */
Test(strangers, records)
{
	struct proof_rig *g = rig(ULRPC_FLAVOUR_NONE);
	struct raw_client *r[ABLE];

	chunks_are(g);
	for (unsigned int n = 0; n < ABLE; n++) {
		r[n] = stranger(g, n);
		cr_assert_eq(stranger_connects(r[n], n, 0), WIRE_OK);
		cr_assert_eq(raw_client_open(r[n], "test")->status, WIRE_OK);
		stranger_calls(g, r[n]);
	}
	cr_assert_eq(pool(g, EXPORT_STRANGER)->chunks.used, CHUNKS_STRANGER);
	cr_assert_gt(g->runs, 0);
	proven_is_served(g);
	proof_rig_free(g);
	for (unsigned int n = 0; n < ABLE; n++)
		free(r[n]);
}
