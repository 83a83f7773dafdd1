/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/failover_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE UINT64_C(60000000) /* of a call, us */
#define IDLE	 (200 * MSEC)

void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "failover: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void call(void *arg);

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct caller *c = arg;
	struct load *l = c->load;
	uint64_t now = lnet_sim_now(l->sim), took = now - c->began;

	(void)reply;
	(void)length;
	c->under_way = false;
	if (l->over)
		return;
	for (unsigned int i = 0; i < RAILS; i++)
		l->used[i] += lnet_nid_eq(&o->local, &l->nids[CLIENT][i]);
	if (l->at) {
		l->lost += o->status != 0;
		l->longest = took > l->longest ? took : l->longest;
		l->slow += took > SLOW;
		if (!o->status && (now - l->at) / BIN < BINS)
			l->bins[(now - l->at) / BIN]++;
	}
	if (l->back && l->again == NEVER && c->began > l->back &&
	    lnet_nid_eq(&o->local, &l->nids[CLIENT][l->rail]))
		l->again = now - l->back;
	/* A call that failed at once is not tried again at once. */
	if (o->status)
		lnet_sim_at(l->sim, 10 * MSEC, call, c);
	else if (l->setup.idle)
		lnet_sim_at(l->sim, IDLE, call, c);
	else
		call(c);
}

static void call(void *arg)
{
	static const struct ulrpc_call_conf conf = {
		.deadline = DEADLINE,
		.semantics = ULRPC_IDEMPOTENT,
	};
	struct caller *c = arg;

	if (c->load->over)
		return;
	c->began = lnet_sim_now(c->load->sim);
	c->under_way = true;
	must(ulrpc_call(c->load->client, ulrpc_method("echo"), "", 0, &conf,
			on_end, c, NULL),
	     "a call");
}

static void on_request(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	(void)arg;
	ulrpc_reply(r, body, length);
}

static int serve(void *arg, unsigned int index, struct lnet *node)
{
	struct ulrpc_method_conf method = { .name = "echo",
					    .handler = on_request,
					    .run = ULRPC_RUN_INLINE,
					    .semantics = ULRPC_IDEMPOTENT };
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;
	struct ulrpc *rpc;

	(void)arg;
	(void)index;
	must(ulrpc_open(node, NULL, &rpc), "the server");
	ulrpc_service_conf_init(&conf);
	conf.name = "echo";
	conf.methods = &method;
	conf.nmethods = 1;
	must(ulrpc_service_start(rpc, &conf, &service), "the service");
	return 0;
}

static uint32_t net_of(const struct load *l, unsigned int rail)
{
	if (l->setup.verbs && rail == VERBS)
		return LNET_NET(LNET_TYPE_O2IB, 0);
	return LNET_NET(LNET_TYPE_SOCK, rail % l->setup.nets);
}

/* The address of @node on @rail: the rail is the second byte, so a rail is an
 * IP network of PREFIX bits. */
#define PREFIX 16

struct ulnet_nid rail_nid(const struct load *l, unsigned int node,
			  unsigned int rail)
{
	return lnet_nid_make(net_of(l, rail), 0x0a000001 + (rail << 16) + node);
}

static void node_add(struct load *l, unsigned int node, bool listens,
		     lnet_sim_start_fn start)
{
	struct ulnet_conf conf;
	char nids[RAILS * LNET_NIDSTR_SIZE], *p = nids;

	for (unsigned int i = 0; i < RAILS; i++) {
		char nid[LNET_NIDSTR_SIZE];

		l->nids[node][i] = rail_nid(l, node, i);
		lnet_nid_format(&l->nids[node][i], nid, sizeof(nid));
		p += sprintf(p, "%s ", nid);
	}
	lnet_conf_init(&conf);
	conf.discovery =
		l->setup.discovery ? LNET_DISCOVERY_ON : LNET_DISCOVERY_OFF;
	if (!listens)
		conf.accept = LNET_ACCEPT_NONE;
	must(lnet_sim_node_add(l->sim, nids, &conf, start, l), "a node");
	if (l->gain)
		must(lnet_setting_set(lnet_sim_node(l->sim, node),
				      "health_gain", l->gain),
		     "the gain");
}

static void client_open(struct load *l)
{
	struct ulrpc_client_conf conf;

	must(ulrpc_open(lnet_sim_node(l->sim, CLIENT), NULL, &l->rpc), "RPC");
	ulrpc_client_conf_init(&conf);
	conf.nids = l->nids[SERVER];
	conf.nnids = l->setup.named;
	conf.service = "echo";
	must(ulrpc_client_open(l->rpc, &conf, &l->client), "a client");
}

static void verbs_open(struct load *l)
{
	const struct simqp_link link = { .latency = LATENCY,
					 .cm_latency = MSEC };
	const struct ulnet_nid any = LNET_NID_ANY;

	must(sim_verbs(l->sim, NULL, &l->fabric), "the devices");
	simqp_link_set(l->fabric, &any, &any, &link);
}

/* Each rail is an IP network, which no frame of the other rail reaches. */
static void rails_part(struct load *l)
{
	sim_prefix(l->sim, PREFIX);
	for (unsigned int i = 0; i < RAILS; i++) {
		struct ulnet_nid from = rail_nid(l, CLIENT, i);
		struct ulnet_nid to = rail_nid(l, SERVER, !i);

		must(lnet_sim_partition(l->sim, &from, &to, true),
		     "what crosses");
	}
}

struct load *load_new(const struct setup *setup, int64_t gain)
{
	const struct ulnet_sim_link link = { .latency = LATENCY,
					     .connect = MSEC };
	const struct ulnet_nid any = LNET_NID_ANY;
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	l->again = NEVER;
	l->setup = *setup;
	l->gain = gain;
	must(lnet_sim_new(1, setup->cpts, &l->sim), "the simulation");
	must(lnet_sim_link_set(l->sim, &any, &any, &link), "the links");
	if (setup->verbs)
		verbs_open(l);
	if (setup->apart)
		rails_part(l);
	node_add(l, CLIENT, setup->listens, NULL);
	node_add(l, SERVER, true, serve);
	client_open(l);
	for (unsigned int i = 0; i < DEPTH; i++) {
		l->callers[i].load = l;
		call(&l->callers[i]);
	}
	return l;
}

unsigned int load_free(struct load *l)
{
	unsigned int violations;

	l->over = true;
	violations = lnet_sim_free(l->sim);
	free(l);
	return violations;
}
