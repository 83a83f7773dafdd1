/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strangers knock at a server: from many hosts, they begin handshakes which
 * they do not go on with. Meanwhile proven clients call, some who have keys
 * come for the first time, and then all clients come back after an outage. In
 * the end the host of one of the clients does what the strangers did, while the
 * others come back once more.
 *
 *	knock [--long]
 *
 * 1,000 hosts knock 10,000 times a second; there are 500 clients, or 5,000.
 * Time is virtual; a step of a handshake counts as SESSION_STEP.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/keys.h>
#include <ulnet/service.h>
#include <ulnet/sim.h>
#include <unistd.h>

#include "rpc/server/session/export.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"
#include "secure/handshake.h"
#include "tools/ulnet-keys/make.h"

#define MSEC   UINT64_C(1000000)
#define SEC    (1000 * MSEC)
#define KNOCKS 10000 /* in a second */
/* of a call, us */
#define DEADLINE UINT64_C(60000000)
/* ns: there and back, and as much for a message that waits */
#define USUAL (4 * MSEC)

struct knock {
	struct lnet_sim *sim;
	/* nodes: the clients, the newcomers, the server, the strangers */
	unsigned int clients, newcomers, strangers;
	bool greedy; /* it is the host of client 0 that knocks */
	struct ulrpc *server;
	struct ulrpc **rpc;
	struct ulrpc_client **client;
	struct ulrpc_keys *keys[2]; /* "client" and "server" */
	struct handshake *hello;    /* the strangers': what they all say */
	uint64_t pause;		    /* ns between two knocks; 0: none */
	unsigned int knocks;
	/* calls: those that succeeded and failed, and the longest of them, ns
	 */
	unsigned int good, bad;
	uint64_t longest, since;
};

static int passed, failed;

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "knock: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void expect(bool right, const char *what, uint64_t is)
{
	printf("%s %s: %ju\n", right ? "PASS" : "FAIL", what, (uintmax_t)is);
	right ? passed++ : failed++;
}

static unsigned int server_of(const struct knock *k)
{
	return k->clients + k->newcomers;
}

static struct ulnet_nid nid_of(unsigned int i)
{
	char text[LNET_NIDSTR_SIZE];
	struct ulnet_nid nid;

	snprintf(text, sizeof(text), "10.0.%u.%u@tcp", (i + 1) / 256,
		 (i + 1) % 256);
	must(lnet_nid_parse(text, &nid), text);
	return nid;
}

/* ---- keys ---- */

static struct ulrpc_keys *keys_of(const char *folder, const char *name)
{
	char crt[128], key[128], authority[128], why[256];
	const struct ulrpc_keys_conf files = { .certificate = crt,
					       .key = key,
					       .authority = authority };
	struct ulrpc_keys *keys;

	snprintf(crt, sizeof(crt), "%s/%s.crt", folder, name);
	snprintf(key, sizeof(key), "%s/%s.key", folder, name);
	snprintf(authority, sizeof(authority), "%s/authority.crt", folder);
	must(ulrpc_keys_load(&files, &keys, why, sizeof(why)), name);
	return keys;
}

/* Makes those of the clients and of the server. What strangers say is what a
 * client says first, who has keys. */
static void keys_make(struct knock *k)
{
	char folder[] = "/tmp/ulnet-knock-XXXXXX", command[64];
	const struct make make = {
		.who = "knock", .folder = folder, .days = 2, .now = time(NULL)
	};

	if (!mkdtemp(folder) || make_authority(&make, "site") ||
	    make_node(&make, "client") || make_node(&make, "server"))
		must(-EIO, "keys");
	k->keys[0] = keys_of(folder, "client");
	k->keys[1] = keys_of(folder, "server");
	snprintf(command, sizeof(command), "rm -r %s", folder);
	must(system(command), command);
	k->hello = handshake_new(HANDSHAKE_CLIENT, (struct keys *)k->keys[0],
				 NULL);
	if (!k->hello || handshake_feed(k->hello, NULL, 0))
		must(-ENOMEM, "a handshake");
}

/* ---- the server ---- */

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
	struct knock *k = arg;
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;
	struct ulrpc_conf all;

	(void)index;
	ulrpc_conf_init(&all);
	all.keys = k->keys[1];
	must(ulrpc_open(node, &all, &k->server), "the server");
	ulrpc_service_conf_init(&conf);
	conf.name = "knock";
	conf.methods = &method;
	conf.nmethods = 1;
	must(ulrpc_service_start(k->server, &conf, &service), "the service");
	return 0;
}

static uint64_t counted(const struct knock *k, enum rpc_stat stat)
{
	return k->server->shards[0].stats->counts[stat];
}

/* ---- clients ---- */

static void node_add(struct knock *k, unsigned int i, lnet_sim_start_fn start)
{
	char text[LNET_NIDSTR_SIZE];
	struct ulnet_nid nid = nid_of(i);

	lnet_nid_format(&nid, text, sizeof(text));
	if (lnet_sim_node_add(k->sim, text, NULL, start, k) != (int)i)
		must(-ENOMEM, "a node");
}

static void client_open(struct knock *k, unsigned int i)
{
	struct ulnet_nid server = nid_of(server_of(k));
	struct ulrpc_client_conf conf;
	struct ulrpc_conf all;

	ulrpc_conf_init(&all);
	all.keys = k->keys[0];
	must(ulrpc_open(lnet_sim_node(k->sim, i), &all, &k->rpc[i]), "RPC");
	ulrpc_client_conf_init(&conf);
	conf.nids = &server;
	conf.nnids = 1;
	conf.service = "knock";
	must(ulrpc_client_open(k->rpc[i], &conf, &k->client[i]), "a client");
}

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct knock *k = arg;
	uint64_t took = lnet_sim_now(k->sim) - k->since;

	(void)reply;
	(void)length;
	o->status ? k->bad++ : k->good++;
	k->longest = MAX(k->longest, took);
}

/* Each of the @n clients from @from on makes a call. */
static void calls(struct knock *k, unsigned int from, unsigned int n)
{
	const struct ulrpc_call_conf conf = { .deadline = DEADLINE,
					      .semantics = ULRPC_IDEMPOTENT };

	k->since = lnet_sim_now(k->sim);
	k->good = k->bad = 0;
	k->longest = 0;
	for (unsigned int i = from; i < from + n; i++)
		must(ulrpc_call(k->client[i], ulrpc_method("echo"), "", 0,
				&conf, on_end, k, NULL),
		     "a call");
}

/* ---- strangers ---- */

/* Begins one more handshake from the next of their hosts. */
static void knock_once(struct knock *k)
{
	unsigned int i = k->knocks++ % k->strangers;
	struct lnet *node =
		lnet_sim_node(k->sim, k->greedy ? 0 : server_of(k) + 1 + i);
	const struct ulnet_id to = { nid_of(server_of(k)), LNET_PID_LUSTRE };
	struct wire_control m = { .kind = WIRE_SHAKE,
				  .shake = { .client = 1, .epoch = 1 } };
	uint8_t *bytes = lnet_sim_buf(k->sim, WIRE_CONTROL_MAX);
	struct ulnet_md md = { .start = bytes, .threshold = 1 };
	struct ulnet_md_handle mdh;
	uint64_t hdr_data;
	size_t n;

	m.shake.piece.p = handshake_bytes(k->hello, &n);
	m.shake.piece.end = m.shake.piece.p + n;
	memcpy(m.shake.client_id, &k->knocks, sizeof(k->knocks));
	md.length = (uint32_t)wire_control_encode(&m, bytes, &hdr_data);
	must(LNetMDBind(node, &md, LNET_UNLINK, &mdh), "an MD");
	must(LNetPut(LNET_NID_ANY, mdh, LNET_NOACK_REQ, to,
		     ULRPC_PORTAL_CONTROL, 0, 0, hdr_data),
	     "a PUT");
}

static void on_knock(void *arg)
{
	struct knock *k = arg;

	if (!k->pause)
		return;
	knock_once(k);
	must(lnet_sim_at(k->sim, k->pause, on_knock, k), "a timer");
}

/* ---- what happens ---- */

static struct knock *knock_new(bool more)
{
	const struct ulnet_sim_link link = { .latency = MSEC / 2,
					     .connect = MSEC };
	struct ulnet_nid any = LNET_NID_ANY;
	struct knock *k = calloc(1, sizeof(*k));

	if (!k)
		abort();
	k->clients = more ? 5000 : 500;
	k->newcomers = 20;
	k->strangers = 1000;
	k->rpc = calloc(server_of(k), sizeof(struct ulrpc *));
	k->client = calloc(server_of(k), sizeof(struct ulrpc_client *));
	if (!k->rpc || !k->client)
		abort();
	keys_make(k);
	must(lnet_sim_new(1, 1, &k->sim), "the simulation");
	for (unsigned int i = 0; i <= server_of(k) + k->strangers; i++) {
		node_add(k, i, i == server_of(k) ? serve : NULL);
		if (i < server_of(k))
			client_open(k, i);
	}
	must(lnet_sim_link_set(k->sim, &any, &any, &link), "the link");
	return k;
}

static void knock_free(struct knock *k)
{
	expect(!lnet_sim_free(k->sim), "violations", 0);
	handshake_free(k->hello);
	ulrpc_keys_put(k->keys[0]);
	ulrpc_keys_put(k->keys[1]);
	free(k->client);
	free(k->rpc);
	free(k);
}

/* The server has begun, and all of its clients come. */
static void first(struct knock *k)
{
	calls(k, 0, k->clients);
	lnet_sim_run(k->sim, 20 * SEC);
	expect(k->good == k->clients, "clients that have connected", k->good);
	printf("# the last one after %ju ms\n", (uintmax_t)(k->longest / MSEC));
}

/* us that handshakes of strangers may take in @ns, and what they may take
 * before. */
static uint64_t may_take(uint64_t ns)
{
	return (ns + 2 * DOOR_SPARE) / DOOR_STRANGER_OF / 1000 +
	       SESSION_STEP / 1000;
}

/* Lets @seconds pass, in which proven clients call all the time. What the
 * handshakes of strangers take stays within their share. */
static void under_knocks(struct knock *k, unsigned int seconds)
{
	uint64_t us = counted(k, RPC_STAT_handshakes_us), slowest = 0;
	uint64_t begun = counted(k, RPC_STAT_handshakes_begun);
	unsigned int knocks = k->knocks, before = k->bad, answered = 0;
	unsigned int made = 0;
	bool within = true;

	for (unsigned int i = 0; i < 50 * seconds; i++) {
		calls(k, i % (k->clients / 50) * 50, 50);
		lnet_sim_run(k->sim, SEC / 50);
		made += 50;
		answered += k->good;
		slowest = MAX(slowest, k->longest);
		within &= counted(k, RPC_STAT_handshakes_us) - us <=
			  may_take((i + 1) * (SEC / 50));
	}
	us = counted(k, RPC_STAT_handshakes_us) - us;
	begun = counted(k, RPC_STAT_handshakes_begun) - begun;
	expect(k->knocks - knocks >= seconds * (KNOCKS - 1), "knocks",
	       k->knocks - knocks);
	expect(answered == made && !before, "calls of proven clients",
	       answered);
	expect(slowest <= USUAL, "the slowest of them, us", slowest / 1000);
	expect(within, "handshakes of strangers took, us", us);
	expect(begun > seconds * 100, "and were", begun);
}

/* Hosts of which the server knows nothing get their turn among those that knock
 * all the time. */
static void first_come(struct knock *k)
{
	calls(k, k->clients, k->newcomers);
	lnet_sim_run(k->sim, 10 * SEC);
	expect(k->good == k->newcomers, "newcomers among the strangers",
	       k->good);
	printf("# the last one after %ju ms\n", (uintmax_t)(k->longest / MSEC));
}

/* The network fails for half a minute. While somebody knocks, all clients from
 * @from on are back within 5 s. */
static void come_back(struct knock *k, unsigned int from)
{
	unsigned int n = k->clients - from;
	struct ulnet_nid server = nid_of(server_of(k)), any = LNET_NID_ANY;
	uint64_t resumed = counted(k, RPC_STAT_handshakes_resumed), back;

	calls(k, from, n);
	must(lnet_sim_partition(k->sim, &server, &any, true), "a partition");
	lnet_sim_cut(k->sim, &any, &any);
	lnet_sim_run(k->sim, 30 * SEC);
	expect(!k->good, "calls during the outage", k->good);
	must(lnet_sim_partition(k->sim, &server, &any, false), "a network");
	back = lnet_sim_now(k->sim) - k->since;
	lnet_sim_run(k->sim, 20 * SEC);
	resumed = counted(k, RPC_STAT_handshakes_resumed) - resumed;
	expect(k->good == n, "clients that are back", k->good);
	expect(k->longest <= back + 5 * SEC, "the last one after, ms",
	       (k->longest - MIN(back, k->longest)) / MSEC);
	expect(resumed >= n, "handshakes resumed", resumed);
}

int main(int argc, char **argv)
{
	bool more = argc > 1 && !strcmp(argv[1], "--long");
	struct knock *k;

	if (argc > 2 || (argc == 2 && !more)) {
		fprintf(stderr, "usage: knock [--long]\n");
		return 2;
	}
	k = knock_new(more);
	first(k);
	k->pause = SEC / KNOCKS;
	on_knock(k);
	under_knocks(k, 5);
	first_come(k);
	come_back(k, 0);
	k->greedy = true;
	come_back(k, 1);
	k->pause = 0;
	lnet_sim_run(k->sim, 20 * SEC);
	knock_free(k);
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
