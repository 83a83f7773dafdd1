/* SPDX-License-Identifier: BSD-3-Clause */
/* A client, and a server whose service "test" says who calls, each with keys,
 * or without. */
#ifndef TESTS_RPC_PROOF_RIG_H
#define TESTS_RPC_PROOF_RIG_H

#include "tests/unit/rpc/serve_rig.h"
#include "tests/unit/secure/folder.h"
#include "ulnet/keys.h"

struct proof_rig {
	struct serve_rig serve;
	struct folder *folder;
	struct ulrpc_peer peer; /* who has called last, as the handler sees */
	unsigned int runs;
};

static inline struct ulrpc_keys *keys_load_named(struct folder *f,
						 const char *name)
{
	char crt[80], key[80], why[256];
	struct ulrpc_keys_conf conf = { .authority = in(f, "authority.crt") };
	struct ulrpc_keys *keys;

	snprintf(crt, sizeof(crt), "%s.crt", name);
	snprintf(key, sizeof(key), "%s.key", name);
	conf.certificate = in(f, crt);
	conf.key = in(f, key);
	cr_assert_eq(ulrpc_keys_load(&conf, &keys, why, sizeof(why)), 0, "%s",
		     why);
	return keys;
}

static inline struct ulrpc *open_with(struct lnet *node,
				      struct ulrpc_keys *keys)
{
	struct ulrpc_conf conf;
	struct ulrpc *rpc;

	ulrpc_conf_init(&conf);
	conf.keys = keys;
	cr_assert_eq(ulrpc_open(node, &conf, &rpc), 0);
	ulrpc_keys_put(keys);
	return rpc;
}

static inline void who_calls(void *arg, struct ulrpc_request *r,
			     const void *body, size_t length)
{
	struct proof_rig *g = arg;

	g->runs++;
	ulrpc_request_peer(r, &g->peer);
	ulrpc_reply(r, body, length);
}

static inline void who_start(struct proof_rig *g, enum ulrpc_flavour flavour)
{
	struct ulrpc_method_conf method = { .name = "who",
					    .handler = who_calls,
					    .arg = g,
					    .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = &method;
	conf.nmethods = 1;
	conf.flavour = flavour;
	serve_start(&g->serve, &conf);
}

/* The server is b, and the client a; NULL: it has no keys. */
static inline struct proof_rig *proof_rig_new(unsigned int cpts,
					      const char *caller,
					      enum ulrpc_flavour flavour)
{
	struct proof_rig *g = calloc(1, sizeof(*g));
	struct serve_rig *s = &g->serve;

	cr_assert(g);
	g->folder = folder_of_two();
	serve_init(s, 1, cpts);
	s->rpc[SERVER] =
		open_with(s->node[SERVER], keys_load_named(g->folder, "b"));
	s->rpc[CALLER] =
		open_with(s->node[CALLER],
			  caller ? keys_load_named(g->folder, caller) : NULL);
	who_start(g, flavour);
	return g;
}

static inline void proof_rig_free(struct proof_rig *g)
{
	serve_fini(&g->serve);
	folder_end(g->folder);
	free(g);
}

static inline struct ulrpc_client_conf client_conf(struct ulnet_nid *nid)
{
	struct ulrpc_client_conf conf;

	*nid = nth_id(SERVER).nid;
	ulrpc_client_conf_init(&conf);
	conf.nids = nid;
	conf.nnids = 1;
	conf.service = "test";
	return conf;
}

static inline void proof_client(struct proof_rig *g,
				const struct ulrpc_client_conf *conf)
{
	cr_assert_eq(
		ulrpc_client_open(g->serve.rpc[CALLER], conf, &g->serve.client),
		0);
}

/* A client that asks for nothing more than the usual. */
static inline void proof_client_usual(struct proof_rig *g)
{
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);

	proof_client(g, &conf);
}

static inline struct called who(struct proof_rig *g, const void *body,
				size_t length)
{
	struct called c;

	serve_call(&g->serve, "who", body, length, 10000000,
		   ULRPC_PRIORITY_DEFAULT, &c);
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	return c;
}

static inline void hello_is_served(struct proof_rig *g)
{
	struct called c = who(g, "hello", 6);

	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s: %s",
		     ulrpc_cause_name(c.outcome.cause), c.outcome.text);
}

static inline uint64_t counts(const struct ulrpc *rpc, enum rpc_stat stat)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < rpc->ncpts; i++)
		n += rpc->shards[i].stats->counts[stat];
	return n;
}

#endif
