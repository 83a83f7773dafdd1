/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Very many clients of one server that make no calls. While they are connected,
 * each sends a keepalive now and then; when their connections have ended,
 * nothing must happen at all. The test counts events instead of measuring time.
 */
#include <criterion/criterion.h>
#include <ulnet/rpc.h>
#include <ulnet/service.h>
#include <ulnet/sim.h>

#include "base/loop.h"
#include "lnet/node/node.h"

#ifdef __SANITIZE_ADDRESS__
#define CLIENTS 2000 /* the sanitizer makes memory expensive */
#else
#define CLIENTS 10000
#endif
#define MS	  UINT64_C(1000000)
#define SEC	  (1000 * MS)
#define KEEPALIVE 10  /* s, for a connection without calls */
#define IDLE	  300 /* s without calls after which a connection ends */
/* Events of a message and its answer, each of which is sent, arrives, and is
 * received. */
#define EXCHANGE 6

struct world {
	struct lnet_sim *sim;
	struct ulrpc *server, *rpc[CLIENTS];
	struct ulrpc_client *client[CLIENTS];
	unsigned int good;
};

static struct world w;

static void reply(void *arg, struct ulrpc_request *request, const void *body,
		  size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static void on_done(void *arg, const struct ulrpc_outcome *o, const void *body,
		    size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	w.good += o->status == 0;
}

static struct lnet *node_add(unsigned int i)
{
	char nid[64];

	snprintf(nid, sizeof(nid), "10.%u.%u.%u@tcp", 1 + i / 65536,
		 i / 256 % 256, i % 256);
	cr_assert_eq(lnet_sim_node_add(w.sim, nid, NULL, NULL, NULL), (int)i);
	return lnet_sim_node(w.sim, i);
}

static void serve(void)
{
	const struct ulrpc_method_conf method = { .name = "echo",
						  .handler = reply,
						  .run = ULRPC_RUN_INLINE };
	struct ulrpc_conf rc;
	struct ulrpc_service_conf sc;

	ulrpc_conf_init(&rc);
	rc.exports_max = 2 * CLIENTS;
	ulrpc_service_conf_init(&sc);
	sc.name = "test";
	sc.methods = &method;
	sc.nmethods = 1;
	cr_assert_eq(ulrpc_open(node_add(0), &rc, &w.server), 0);
	cr_assert_eq(ulrpc_service_start(w.server, &sc, NULL), 0);
}

static void client_add(unsigned int i, struct ulnet_nid *server)
{
	struct ulrpc_client_conf conf;

	ulrpc_client_conf_init(&conf);
	conf.nids = server;
	conf.nnids = 1;
	conf.service = "test";
	cr_assert_eq(ulrpc_open(node_add(1 + i), NULL, &w.rpc[i]), 0);
	cr_assert_eq(ulrpc_client_open(w.rpc[i], &conf, &w.client[i]), 0);
}

static void call(unsigned int i)
{
	const struct ulrpc_call_conf conf = { .deadline = 60 * SEC / 1000 };

	cr_assert_eq(ulrpc_call(w.client[i], ulrpc_method("echo"), "x", 1,
				&conf, on_done, NULL, NULL),
		     0);
}

/* Events of the network, and turns of the server's loop. */
struct activity {
	uint64_t events, turns;
};

static struct activity activity_now(void)
{
	struct ulnet_sim_stats stats;

	lnet_sim_stats(w.sim, &stats);
	return (struct activity){ stats.events,
				  lnet_sim_node(w.sim, 0)->loops[0]->turns };
}

static struct activity activity_of(uint64_t s)
{
	struct activity before = activity_now(), after;

	lnet_sim_run(w.sim, s * SEC);
	after = activity_now();
	return (struct activity){ after.events - before.events,
				  after.turns - before.turns };
}

Test(idle, ten_thousand_clients_cost_nothing)
{
	struct ulnet_nid server;
	struct activity t;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	cr_assert_eq(lnet_nid_parse("10.1.0.0@tcp", &server), 0);
	cr_assert_eq(lnet_sim_new(1, 1, &w.sim), 0);
	serve();
	for (unsigned int i = 0; i < CLIENTS; i++)
		client_add(i, &server);
	for (unsigned int i = 0; i < CLIENTS; i++)
		call(i);
	activity_of(60);
	cr_assert_eq(w.good, CLIENTS);
	t = activity_of(10 * KEEPALIVE);
	cr_assert_leq(t.events, 10 * EXCHANGE * CLIENTS, "%lu events",
		      (unsigned long)t.events);
	activity_of(IDLE);
	t = activity_of(3600);
	cr_assert_eq(t.events, 0, "%lu events", (unsigned long)t.events);
	cr_assert_eq(t.turns, 0, "%lu turns", (unsigned long)t.turns);
	/* The clients can still make calls. */
	for (unsigned int i = 0; i < CLIENTS; i += CLIENTS / 10)
		call(i);
	activity_of(1);
	cr_assert_eq(w.good, CLIENTS + 10);
	cr_assert_eq(lnet_sim_free(w.sim), 0);
}
