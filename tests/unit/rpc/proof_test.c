/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients and services that prove who they are, and those who cannot. */
#include <errno.h>

#include "rpc/client/client.h"
#include "rpc/client/shake.h"
#include "rpc/flavour.h"
#include "rpc/server/session/export.h"
#include "tests/unit/rpc/proof_rig.h"

static void disconnect(struct proof_rig *g)
{
	ulrpc_client_close(g->serve.client);
	proof_rig_free(g);
}

/* ---- both prove who they are ---- */

static void both_prove(unsigned int cpts)
{
	struct proof_rig *g = proof_rig_new(cpts, "a", ULRPC_FLAVOUR_DEFAULT);
	struct called c;

	proof_client_usual(g);
	c = who(g, "hello", 6);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s: %s",
		     ulrpc_cause_name(c.outcome.cause), c.outcome.text);
	cr_assert_str_eq(c.reply, "hello");
	cr_assert_eq(g->peer.kind, ULRPC_PEER_CERTIFICATE);
	cr_assert_eq(g->peer.flavour, ULRPC_FLAVOUR_AUTH);
	cr_assert_str_eq(g->peer.name, "a");
	cr_assert_str_eq(g->peer.issuer, "site");
	disconnect(g);
}

Test(proof, handlers_see_who_calls)
{
	both_prove(1);
	both_prove(4);
}

/* A cluster's key proves that somebody belongs to the cluster. */
Test(proof, a_cluster_key_is_enough)
{
	struct proof_rig *g = calloc(1, sizeof(*g));
	struct ulrpc_keys_conf files = { 0 };
	struct ulrpc_keys *keys[2];
	struct ulrpc_client_conf conf;
	struct ulnet_nid nid;
	char why[256];

	g->folder = folder_new();
	cr_assert_eq(make_cluster(&g->folder->make, "lab", true), 0);
	files.cluster = in(g->folder, "cluster.key");
	serve_init(&g->serve, 1, 1);
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(
			ulrpc_keys_load(&files, &keys[i], why, sizeof(why)), 0,
			"%s", why);
		g->serve.rpc[i] = open_with(g->serve.node[i], keys[i]);
	}
	who_start(g, ULRPC_FLAVOUR_AUTH);
	conf = client_conf(&nid);
	proof_client(g, &conf);
	hello_is_served(g);
	cr_assert_eq(g->peer.kind, ULRPC_PEER_CLUSTER);
	cr_assert_str_eq(g->peer.name, "lab");
	disconnect(g);
}

/* The reply is held by the server, and fetched. */
Test(proof, long_replies)
{
	struct proof_rig *g = proof_rig_new(1, "a", ULRPC_FLAVOUR_AUTH);
	struct ulrpc_call_conf few = { .reply_max = 10 };
	static char body[60000];
	struct called c;

	memset(body, 7, sizeof(body));
	proof_client_usual(g);
	c = who(g, body, sizeof(body));
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s: %s",
		     ulrpc_cause_name(c.outcome.cause), c.outcome.text);
	cr_assert_eq(c.length, sizeof(body));
	cr_assert_eq(memcmp(c.reply, body, sizeof(c.reply)), 0);
	/* The caller has no room for a digest, either. */
	few.deadline = 10000000;
	c = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(g->serve.client, ulrpc_method("who"), body, 100,
				&few, on_called, &c, NULL),
		     0);
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(c.length, 100);
	disconnect(g);
}

/* ---- those who do not ---- */

/* A call ends at once, certainly not executed, and @words say why. */
static void is_refused(struct proof_rig *g, const char *words)
{
	struct called c = who(g, "hello", 6);

	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_REFUSED, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(c.outcome.execution, ULRPC_NOT_EXECUTED);
	cr_assert(strstr(c.outcome.text, words), "%s", c.outcome.text);
	cr_assert_lt(c.outcome.total, 1000000, "%ju us",
		     (uintmax_t)c.outcome.total);
	cr_assert_eq(g->runs, 0);
}

Test(proof, without_keys)
{
	struct proof_rig *g = proof_rig_new(1, NULL, ULRPC_FLAVOUR_AUTH);
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);

	proof_client(g, &conf);
	is_refused(g, "flavour auth");
	is_refused(g, "flavour auth");
	ulrpc_client_close(g->serve.client);
	/* What needs keys cannot be opened. */
	conf.flavour = ULRPC_FLAVOUR_AUTH;
	cr_assert_eq(ulrpc_client_open(g->serve.rpc[CALLER], &conf,
				       &g->serve.client),
		     -ENOKEY);
	proof_rig_free(g);
}

Test(proof, of_another_authority)
{
	struct proof_rig *g = proof_rig_new(1, NULL, ULRPC_FLAVOUR_AUTH);
	struct folder *other = folder_of_two();

	cr_assert_eq(ulrpc_close(g->serve.rpc[CALLER]), 0);
	g->serve.rpc[CALLER] =
		open_with(g->serve.node[CALLER], keys_load_named(other, "a"));
	proof_client_usual(g);
	is_refused(g, "certificate is not believed");
	ulrpc_client_close(g->serve.client);
	folder_end(other);
	proof_rig_free(g);
}

/* A client that wants a proof does not call a server that has none. */
Test(proof, of_a_server_without_keys)
{
	struct proof_rig *g = proof_rig_new(1, "a", ULRPC_FLAVOUR_NONE);
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);

	cr_assert_eq(ulrpc_close(g->serve.rpc[SERVER]), 0);
	cr_assert_eq(
		ulrpc_open(g->serve.node[SERVER], NULL, &g->serve.rpc[SERVER]),
		0);
	who_start(g, ULRPC_FLAVOUR_DEFAULT);
	proof_client(g, &conf);
	is_refused(g, "the server refuses the handshake");
	ulrpc_client_close(g->serve.client);
	/* It may be told not to. */
	conf.flavour = ULRPC_FLAVOUR_NONE;
	proof_client(g, &conf);
	hello_is_served(g);
	cr_assert_eq(g->peer.kind, ULRPC_PEER_UNKNOWN);
	disconnect(g);
}

Test(proof, of_the_wrong_server)
{
	struct proof_rig *g = proof_rig_new(1, "a", ULRPC_FLAVOUR_AUTH);
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);

	conf.server = "c*";
	proof_client(g, &conf);
	is_refused(g, "the server has proved to be b, and should be c*");
	ulrpc_client_close(g->serve.client);
	conf.server = "[bc]";
	proof_client(g, &conf);
	hello_is_served(g);
	disconnect(g);
}

/* A service that asks for nothing serves both kinds of clients of one node. */
Test(proof, not_asked_for)
{
	struct proof_rig *g = proof_rig_new(1, "a", ULRPC_FLAVOUR_NONE);
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);

	proof_client(g, &conf);
	hello_is_served(g);
	cr_assert_str_eq(g->peer.name, "a");
	ulrpc_client_close(g->serve.client);
	conf.flavour = ULRPC_FLAVOUR_NONE;
	proof_client(g, &conf);
	hello_is_served(g);
	cr_assert_str_eq(g->peer.name, "");
	disconnect(g);
}

/* ---- flavours ---- */

/* What is used by a client and a service that want at least @client and
 * @service. */
static void agree(enum ulrpc_flavour client, enum ulrpc_flavour service)
{
	struct proof_rig *g = proof_rig_new(1, "a", service);
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);

	conf.flavour = client;
	proof_client(g, &conf);
	if (client == ULRPC_FLAVOUR_NONE && service > client) {
		char words[32];

		snprintf(words, sizeof(words), "flavour %s",
			 ulrpc_flavour_name(service));
		is_refused(g, words);
	} else {
		struct called c = who(g, "hello", 6);

		cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s: %s",
			     ulrpc_cause_name(c.outcome.cause), c.outcome.text);
		cr_assert_eq(g->peer.flavour, MAX(client, service), "%s",
			     ulrpc_flavour_name(g->peer.flavour));
	}
	disconnect(g);
}

Test(proof, the_higher_flavour_is_used)
{
	for (unsigned int c = ULRPC_FLAVOUR_NONE; c <= FLAVOUR_MAX; c++)
		for (unsigned int s = ULRPC_FLAVOUR_NONE; s <= FLAVOUR_MAX; s++)
			agree((enum ulrpc_flavour)c, (enum ulrpc_flavour)s);
}

/* A service that asks for more than the one before on its portal. */
Test(proof, a_higher_flavour_later)
{
	struct proof_rig *g = proof_rig_new(1, "a", ULRPC_FLAVOUR_NONE);

	proof_client_usual(g);
	hello_is_served(g);
	cr_assert_eq(g->peer.flavour, ULRPC_FLAVOUR_AUTH);
	cr_assert_eq(ulrpc_service_stop(g->serve.service, 1000000), 0);
	who_start(g, FLAVOUR_MAX);
	hello_is_served(g);
	cr_assert_eq(g->peer.flavour, FLAVOUR_MAX);
	disconnect(g);
}

/* A client that sends less than was agreed is not served, and opens the service
 * again. */
Test(proof, a_flavour_that_was_not_agreed)
{
	struct proof_rig *g = proof_rig_new(1, "a", FLAVOUR_MAX);

	proof_client_usual(g);
	hello_is_served(g);
	g->serve.client->flavour = ULRPC_FLAVOUR_AUTH;
	g->serve.client->marked = false;
	hello_is_served(g);
	cr_assert_eq(g->runs, 2);
	cr_assert_eq(g->peer.flavour, FLAVOUR_MAX);
	disconnect(g);
}

/* ---- a service that ends before its handlers ---- */

/* Two calls of one message: one is never answered, and one gets bulk. */
struct two {
	struct proof_rig *g;
	struct ulrpc_service *service;
	struct ulrpc_request *parked, *getting;
	struct ulrpc_bulk *bulk; /* the caller's */
	char data[8];
	int status; /* of the bulk */
	struct called called[2];
};

static void two_park(void *arg, struct ulrpc_request *r, const void *body,
		     size_t length)
{
	struct two *t = arg;

	(void)body;
	(void)length;
	t->parked = r;
}

static void on_two_got(void *arg, int status, uint64_t moved)
{
	struct two *t = arg;

	(void)moved;
	t->status = status;
	ulrpc_request_peer(t->getting, &t->g->peer);
	ulrpc_reply(t->getting, NULL, 0);
}

/* Nothing comes from the caller any more. */
static void two_get(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	const struct ulnet_sim_link mute = { .loss = LNET_SIM_ALWAYS };
	struct two *t = arg;
	struct iovec iov = { t->data, sizeof(t->data) };

	(void)body;
	(void)length;
	link_set(t->g->serve.sim, CALLER, SERVER, &mute);
	t->getting = r;
	cr_assert_eq(ulrpc_bulk_get(r, 0, 0, &iov, 1, on_two_got, t), 0);
}

static void two_start(struct two *t)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "park",
		  .handler = two_park,
		  .arg = t,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "get",
		  .handler = two_get,
		  .arg = t,
		  .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = "two";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	cr_assert_eq(ulrpc_service_start(t->g->serve.rpc[SERVER], &conf,
					 &t->service),
		     0);
}

static void two_call(struct two *t)
{
	static char data[8] = "of bulk";
	struct serve_rig *s = &t->g->serve;
	struct iovec iov = { data, sizeof(data) };
	struct ulrpc_bulk_conf lend = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SOURCE };
	struct ulrpc_call_conf call = { .deadline = 60000000, .nbulks = 1 };

	cr_assert_eq(ulrpc_bulk_new(s->rpc[CALLER], &lend, &t->bulk), 0);
	serve_call(s, "park", NULL, 0, 60000000, ULRPC_PRIORITY_DEFAULT,
		   &t->called[0]);
	call.bulks = &t->bulk;
	cr_assert_eq(ulrpc_call(s->client, ulrpc_method("get"), NULL, 0, &call,
				on_called, &t->called[1], NULL),
		     0);
	while (!t->parked || !t->getting)
		lnet_sim_run(s->sim, MSEC);
	cr_assert_eq(t->parked->batch, t->getting->batch);
}

/* The end of one request takes nothing from the other one of its message, and
 * its caller is told in a sealed message. */
Test(proof, ends_one_after_the_other)
{
	const struct ulnet_sim_link good = { 0 };
	struct proof_rig *g = proof_rig_new(1, "a", ULRPC_FLAVOUR_DEFAULT);
	struct two t = { .g = g };
	struct ulrpc_peer peer;

	two_start(&t);
	g->serve.client = serve_client_of(g->serve.rpc[CALLER], "two");
	two_call(&t);
	cr_assert_eq(ulrpc_service_stop(t.service, 1000), -ETIMEDOUT);
	cr_assert_eq(t.status, -ESHUTDOWN);
	cr_assert_str_eq(g->peer.name, "a");
	cr_assert_eq(g->peer.flavour, ULRPC_FLAVOUR_AUTH);
	cr_assert_eq(t.called[0].ended, 1);
	cr_assert_eq(t.called[0].outcome.cause, ULRPC_CAUSE_RESTARTED);
	ulrpc_request_peer(t.parked, &peer);
	cr_assert_eq(peer.kind, ULRPC_PEER_UNKNOWN);
	ulrpc_reply(t.parked, NULL, 0);
	link_set(g->serve.sim, CALLER, SERVER, &good);
	cr_assert_eq(ulrpc_bulk_close_wait(t.bulk), 0);
	disconnect(g);
}

/* ---- faults ---- */

/* From now on both sides renew their keys after every third message. */
static void wear_keys(struct proof_rig *g)
{
	struct exports *x = g->serve.rpc[SERVER]->shards[0].exports;
	uint32_t pos = 0;
	struct session *se = id_walk(&x->sessions.table, &pos);

	g->serve.client->imp->sealed->out.used_max = 3;
	se->sealed->out.used_max = 3;
}

/* Messages are lost, doubled and overtaken, and keys change all the time: each
 * call is executed once, and no copy is taken for a message. */
static void bad_links(enum ulrpc_flavour flavour)
{
	struct proof_rig *g = proof_rig_new(1, "a", flavour);
	const struct ulnet_sim_link bad = { .latency = MSEC,
					    .loss = LNET_SIM_ALWAYS / 10,
					    .duplicate = LNET_SIM_ALWAYS / 5,
					    .reorder = LNET_SIM_ALWAYS / 5,
					    .reorder_window = 5 * MSEC };

	proof_client_usual(g);
	hello_is_served(g);
	wear_keys(g);
	cluster_links(g->serve.sim, &bad);
	for (unsigned int i = 0; i < 300; i++)
		hello_is_served(g);
	cr_assert_eq(g->runs, 301);
	cr_assert_gt(g->serve.client->imp->sealed->out.generation, 100);
	cr_assert_gt(counts(g->serve.rpc[SERVER], RPC_STAT_seals_repeated), 0);
	cr_assert_eq(counts(g->serve.rpc[SERVER], RPC_STAT_seals_broken), 0);
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_seals_broken), 0);
	disconnect(g);
}

Test(proof, bad_links)
{
	bad_links(ULRPC_FLAVOUR_AUTH);
	bad_links(ULRPC_FLAVOUR_PRIVACY);
}

/* After an idle time, and after a restart of the server, the client connects
 * again by a new handshake. */
static void connects_again(enum ulrpc_flavour flavour)
{
	struct proof_rig *g = proof_rig_new(1, "a", flavour);

	proof_client_usual(g);
	hello_is_served(g);
	lnet_sim_run(g->serve.sim, 400 * SEC);
	hello_is_served(g);
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_handshakes_begun), 2,
		     "%ju",
		     (uintmax_t)counts(g->serve.rpc[CALLER],
				       RPC_STAT_handshakes_begun));
	cr_assert_eq(ulrpc_close(g->serve.rpc[SERVER]), 0);
	g->serve.rpc[SERVER] = open_with(g->serve.node[SERVER],
					 keys_load_named(g->folder, "b"));
	who_start(g, flavour);
	hello_is_served(g);
	cr_assert_eq(g->runs, 3);
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_handshakes_refused),
		     0);
	disconnect(g);
}

Test(proof, connects_again)
{
	connects_again(ULRPC_FLAVOUR_AUTH);
	connects_again(ULRPC_FLAVOUR_PRIVACY);
}

/* A service that begins to ask for proofs on the portal of one that did not:
 * who has none, and had opened the first one, is refused. */
Test(proof, asked_for_later)
{
	struct proof_rig *g = proof_rig_new(1, NULL, ULRPC_FLAVOUR_NONE);

	proof_client_usual(g);
	hello_is_served(g);
	cr_assert_eq(ulrpc_service_stop(g->serve.service, 1000000), 0);
	who_start(g, ULRPC_FLAVOUR_AUTH);
	g->runs = 0;
	is_refused(g, "flavour auth");
	disconnect(g);
}

/* ---- other keys ---- */

/* From now on node @i, which is "a" or "b", has the keys of @f. */
static void renew(struct proof_rig *g, unsigned int i, struct folder *f,
		  bool revoked)
{
	struct ulrpc_keys_conf files = { .authority = in(f, "authority.crt") };
	struct ulrpc_keys *keys;
	char why[256];

	files.certificate = in(f, i == SERVER ? "b.crt" : "a.crt");
	files.key = in(f, i == SERVER ? "b.key" : "a.key");
	if (revoked)
		files.revoked = in(f, "revoked.crl");
	cr_assert_eq(ulrpc_keys_load(&files, &keys, why, sizeof(why)), 0, "%s",
		     why);
	cr_assert_eq(ulrpc_use_keys(g->serve.rpc[i], keys), 0);
	ulrpc_keys_put(keys);
	lnet_sim_run(g->serve.sim, MSEC);
}

static struct proof_rig *connected(unsigned int cpts)
{
	struct proof_rig *g = proof_rig_new(cpts, "a", ULRPC_FLAVOUR_AUTH);

	proof_client_usual(g);
	hello_is_served(g);
	return g;
}

/* A client that was connected asks again, until its deadline. */
static void is_out(struct proof_rig *g)
{
	struct called c = who(g, "hello", 6);

	cr_assert_neq(c.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_neq(c.outcome.execution, ULRPC_EXECUTED);
	cr_assert_eq(g->runs, 0);
}

/* A connection whose two sides are still believed goes on. */
Test(proof, the_same_keys_anew)
{
	struct proof_rig *g = connected(4);

	renew(g, SERVER, g->folder, false);
	renew(g, CALLER, g->folder, false);
	hello_is_served(g);
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_handshakes_begun),
		     1);
	cr_assert_eq(counts(g->serve.rpc[SERVER], RPC_STAT_clients_cut), 0);
	disconnect(g);
}

/* Ends all connections with who was revoked, at once. */
static void revoked_is_cut(unsigned int cpts)
{
	struct proof_rig *g = connected(cpts);

	cr_assert_eq(make_revoked(&g->folder->make, "a"), 0);
	g->runs = 0;
	renew(g, SERVER, g->folder, true);
	cr_assert_eq(counts(g->serve.rpc[SERVER], RPC_STAT_clients_cut), 1);
	is_out(g);
	disconnect(g);
}

Test(proof, revoked_while_connected)
{
	revoked_is_cut(1);
	revoked_is_cut(4);
}

/* Another one was: this one is not cut off. */
Test(proof, another_one_was_revoked)
{
	struct proof_rig *g = connected(1);

	cr_assert_eq(make_node(&g->folder->make, "c"), 0);
	cr_assert_eq(make_revoked(&g->folder->make, "c"), 0);
	renew(g, SERVER, g->folder, true);
	cr_assert_eq(counts(g->serve.rpc[SERVER], RPC_STAT_clients_cut), 0);
	hello_is_served(g);
	disconnect(g);
}

/* The authority of before is not believed any more. */
Test(proof, another_authority_while_connected)
{
	struct proof_rig *g = connected(1);
	struct folder *other = folder_of_two();

	g->runs = 0;
	renew(g, SERVER, other, false);
	cr_assert_eq(counts(g->serve.rpc[SERVER], RPC_STAT_clients_cut), 1);
	is_out(g);
	disconnect(g);
	folder_end(other);
}

/* The client does not believe the server any more. */
Test(proof, another_authority_of_the_client)
{
	struct proof_rig *g = connected(1);
	struct folder *other = folder_of_two();

	g->runs = 0;
	renew(g, CALLER, other, false);
	is_out(g);
	disconnect(g);
	folder_end(other);
}

/* Who comes back by a ticket can be cut off, too. */
Test(proof, revoked_after_a_ticket)
{
	struct proof_rig *g = connected(1);

	lnet_sim_run(g->serve.sim, 400 * SEC);
	hello_is_served(g);
	cr_assert_eq(counts(g->serve.rpc[SERVER], RPC_STAT_handshakes_resumed),
		     1);
	renew(g, SERVER, g->folder, false);
	cr_assert_eq(counts(g->serve.rpc[SERVER], RPC_STAT_clients_cut), 0);
	cr_assert_eq(make_revoked(&g->folder->make, "a"), 0);
	g->runs = 0;
	renew(g, SERVER, g->folder, true);
	cr_assert_eq(counts(g->serve.rpc[SERVER], RPC_STAT_clients_cut), 1);
	is_out(g);
	disconnect(g);
}

/* A certificate that ends also ends the connection, within a keepalive. */
Test(proof, ends_while_connected)
{
	struct proof_rig *g = connected(1);
	struct exports *x = g->serve.rpc[SERVER]->shards[0].exports;
	uint32_t pos = 0;
	struct session *se = id_walk(&x->sessions.table, &pos);

	se->sealed->who->until = time(NULL) - 1;
	lnet_sim_run(g->serve.sim, 20 * SEC);
	cr_assert_eq(counts(g->serve.rpc[SERVER], RPC_STAT_clients_cut), 1);
	disconnect(g);
}

/* A call to a server that answers after 100 ms. */
static struct proof_rig *far_call(struct called *c)
{
	struct proof_rig *g = proof_rig_new(1, "a", ULRPC_FLAVOUR_AUTH);
	struct ulnet_nid nid, a = nth_id(CALLER).nid, b = nth_id(SERVER).nid;
	const struct ulnet_sim_link slow = { .latency = 50 * MSEC };
	struct ulrpc_client_conf conf = client_conf(&nid);

	cr_assert_eq(lnet_sim_link_set(g->serve.sim, &a, &b, &slow), 0);
	cr_assert_eq(lnet_sim_link_set(g->serve.sim, &b, &a, &slow), 0);
	proof_client(g, &conf);
	serve_call(&g->serve, "who", "hello", 6, 10000000,
		   ULRPC_PRIORITY_DEFAULT, c);
	return g;
}

/* The client does not believe the server any more when it has gone on with its
 * handshake, or with connecting, until @is_there. */
static void another_authority_when(bool (*is_there)(const struct import *imp))
{
	struct folder *other = folder_of_two();
	struct called c;
	struct proof_rig *g = far_call(&c);

	while (!is_there(g->serve.client->imp))
		lnet_sim_run(g->serve.sim, MSEC);
	renew(g, CALLER, other, false);
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_REFUSED, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(g->runs, 0);
	is_out(g);
	disconnect(g);
	folder_end(other);
}

static bool shakes(const struct import *imp)
{
	return imp->shake && imp->shake->session && !imp->sealed;
}

static bool connects(const struct import *imp)
{
	return imp->sealed && imp->fsm.state == IMPORT_CONNECTING;
}

Test(proof, another_authority_in_a_handshake)
{
	another_authority_when(shakes);
}

Test(proof, another_authority_while_connecting)
{
	another_authority_when(connects);
}

/* A server that came back by a ticket, and is still believed: shows its
 * authority, and the call goes on. */
Test(proof, the_same_authority_in_a_handshake)
{
	struct called c;
	struct proof_rig *g = far_call(&c);

	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	lnet_sim_run(g->serve.sim, 400 * SEC);
	serve_call(&g->serve, "who", "hello", 6, 10000000,
		   ULRPC_PRIORITY_DEFAULT, &c);
	while (!shakes(g->serve.client->imp))
		lnet_sim_run(g->serve.sim, MSEC);
	renew(g, CALLER, g->folder, false);
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_handshakes_begun),
		     3);
	disconnect(g);
}

/* That of the server, too, also while calls keep the connection busy. */
Test(proof, server_ends_while_connected)
{
	struct proof_rig *g = connected(1);
	const struct import *imp = g->serve.client->imp;
	const struct ulrpc *rpc = g->serve.rpc[CALLER];

	lnet_sim_run(g->serve.sim, SEC);
	hello_is_served(g);
	cr_assert_eq(counts(rpc, RPC_STAT_connections_lost), 0);
	imp->sealed->who->until = time(NULL) - 1;
	for (uint64_t past = 0; past <= imp->keepalive; past += 100 * MSEC) {
		hello_is_served(g);
		lnet_sim_run(g->serve.sim, 100 * MSEC);
	}
	cr_assert_eq(counts(rpc, RPC_STAT_connections_lost), 1);
	cr_assert_eq(counts(rpc, RPC_STAT_handshakes_begun), 2);
	disconnect(g);
}

/* ---- memory ---- */

/* Keys of very many connections have the contexts of ciphers in turn: calls
 * notice nothing when those of their connection were taken away. */
Test(proof, keys_take_turns)
{
	static const uint8_t secret[SEAL_SECRET];
	struct proof_rig *g = connected(1);
	struct seal others[SEAL_POOL];

	for (unsigned int i = 0; i < 6; i++) {
		struct seal_pool *pool =
			g->serve.rpc[i % 2]->shards[0].seal_pool;

		for (unsigned int k = 0; k < SEAL_POOL; k++)
			cr_assert_eq(seal_open(&others[k], pool,
					       SEAL_AES_128_GCM, secret, 0),
				     0);
		hello_is_served(g);
		for (unsigned int k = 0; k < SEAL_POOL; k++)
			seal_close(&others[k]);
	}
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_handshakes_begun),
		     1);
	cr_assert_eq(counts(g->serve.rpc[SERVER], RPC_STAT_seals_broken), 0);
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_seals_broken), 0);
	disconnect(g);
}
