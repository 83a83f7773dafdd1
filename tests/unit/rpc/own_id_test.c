/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients with keys of their own that give one client id: whoever sees a
 * handshake knows the id in it. */
#include <errno.h>

#include "rpc/client/client.h"
#include "rpc/client/import.h"
#include "rpc/server/session/client_ids.h"
#include "tests/unit/rpc/proof_rig.h"
#include "tests/unit/rpc/server/raw_client.h"

/* The server is b; a and eve may call it. */
static struct proof_rig *rig_of_three(unsigned int cpts)
{
	struct proof_rig *g = calloc(1, sizeof(*g));

	cr_assert(g);
	g->folder = folder_of_two();
	cr_assert_eq(make_node(&g->folder->make, "eve"), 0);
	serve_init(&g->serve, 1, cpts);
	g->serve.rpc[SERVER] = open_with(g->serve.node[SERVER],
					 keys_load_named(g->folder, "b"));
	return g;
}

/* All who are opened by this give the same client id. */
static struct ulrpc *open_as(struct proof_rig *g, struct lnet *node,
			     const char *name)
{
	struct ulrpc_keys *keys = keys_load_named(g->folder, name);
	struct ulrpc_conf conf;
	struct ulrpc *rpc;

	ulrpc_conf_init(&conf);
	conf.keys = keys;
	memset(conf.client_id, 7, sizeof(conf.client_id));
	conf.client_generation = 1;
	cr_assert_eq(ulrpc_open(node, &conf, &rpc), 0);
	ulrpc_keys_put(keys);
	return rpc;
}

/* ---- kept replies ---- */

struct kept {
	struct proof_rig *g;
	struct ulrpc_durable durable;
	unsigned int runs, n;
	struct {
		uint8_t key[ULRPC_RECORD_KEY];
		uint8_t value[512];
		size_t length;
	} of[8];
};

static int kept_lookup(void *arg, const void *key, void **value_p,
		       size_t *length_p)
{
	const struct kept *k = arg;

	for (unsigned int i = k->n; i--;) {
		if (memcmp(k->of[i].key, key, ULRPC_RECORD_KEY))
			continue;
		*value_p = malloc(k->of[i].length);
		cr_assert(*value_p);
		memcpy(*value_p, k->of[i].value, k->of[i].length);
		*length_p = k->of[i].length;
		return 0;
	}
	return -ENOENT;
}

static void tell_secret(void *arg, struct ulrpc_request *r, const void *body,
			size_t length)
{
	struct kept *k = arg;
	struct ulrpc_record record;
	struct ulrpc_peer peer;
	char text[300];

	(void)body;
	(void)length;
	ulrpc_request_peer(r, &peer);
	snprintf(text, sizeof(text), "secret of %s", peer.name);
	cr_assert_eq(
		ulrpc_request_record(r, 0, text, strlen(text) + 1, &record), 0);
	cr_assert_lt(k->n, ARRAY_SIZE(k->of));
	cr_assert_leq(record.length, sizeof(k->of[0].value));
	memcpy(k->of[k->n].key, record.key, ULRPC_RECORD_KEY);
	memcpy(k->of[k->n].value, record.value, record.length);
	k->of[k->n++].length = record.length;
	k->runs++;
	ulrpc_reply(r, text, strlen(text) + 1);
}

static void secrets_start(struct kept *k)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "who",
		  .handler = who_calls,
		  .arg = k->g,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "secret",
		  .handler = tell_secret,
		  .arg = k,
		  .run = ULRPC_RUN_INLINE,
		  .semantics = ULRPC_EXACTLY_ONCE },
	};
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	conf.flavour = ULRPC_FLAVOUR_PRIVACY;
	conf.durable = &k->durable;
	serve_start(&k->g->serve, &conf);
}

/* What is stored outlives the server, which ends without a word of what it has
 * not executed. */
static void server_again(struct kept *k)
{
	const struct ulnet_sim_link mute = { .loss = LNET_SIM_ALWAYS };
	const struct ulnet_sim_link good = { 0 };
	struct serve_rig *s = &k->g->serve;

	link_set(s->sim, SERVER, CALLER, &mute);
	cr_assert_eq(ulrpc_close(s->rpc[SERVER]), 0);
	lnet_sim_run(s->sim, MSEC);
	link_set(s->sim, SERVER, CALLER, &good);
	s->rpc[SERVER] =
		open_with(s->node[SERVER], keys_load_named(k->g->folder, "b"));
	secrets_start(k);
}

/* @name comes, and makes the calls that everybody here makes: the second one is
 * "secret", and the same call by its client id, slot and number. @resent: it
 * gets to a server that has begun anew, as one that was sent before. */
static struct called secret_told(struct kept *k, const char *name, bool resent)
{
	const struct ulnet_sim_link deaf = { .loss = LNET_SIM_ALWAYS };
	const struct ulnet_sim_link good = { 0 };
	struct ulrpc_call_conf call = { .deadline = 60000000,
					.semantics = ULRPC_EXACTLY_ONCE };
	struct serve_rig *s = &k->g->serve;
	struct called c = { 0 };
	struct ulrpc_client_conf conf;
	struct ulnet_nid nid;

	s->rpc[CALLER] = open_as(k->g, s->node[CALLER], name);
	conf = client_conf(&nid);
	proof_client(k->g, &conf);
	cr_assert_eq(who(k->g, "first", 6).outcome.cause, ULRPC_CAUSE_OK);
	if (resent)
		link_set(s->sim, CALLER, SERVER, &deaf);
	cr_assert_eq(ulrpc_call(s->client, ulrpc_method("secret"), "x", 1,
				&call, on_called, &c, NULL),
		     0);
	lnet_sim_run(s->sim, MSEC);
	if (resent)
		server_again(k);
	link_set(s->sim, CALLER, SERVER, &good);
	while (!c.ended)
		lnet_sim_run(s->sim, MSEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	ulrpc_client_close(s->client);
	cr_assert_eq(ulrpc_close(s->rpc[CALLER]), 0);
	s->rpc[CALLER] = NULL;
	lnet_sim_run(s->sim, 100 * MSEC);
	return c;
}

/* Of a durable service nobody gets, or leaves, a reply of somebody else; and
 * who comes again gets his own. */
Test(own_id, replies_that_are_stored)
{
	static struct kept k = { .durable = { .lookup = kept_lookup,
					      .arg = &k,
					      .incarnation = { 1 } } };

	k.g = rig_of_three(1);
	secrets_start(&k);
	cr_assert_str_eq(secret_told(&k, "a", false).reply, "secret of a");
	cr_assert_str_eq(secret_told(&k, "eve", true).reply, "secret of eve");
	cr_assert_eq(k.runs, 2);
	cr_assert_str_eq(secret_told(&k, "a", true).reply, "secret of a");
	cr_assert_str_eq(secret_told(&k, "eve", true).reply, "secret of eve");
	cr_assert_eq(k.runs, 2);
	/* nor does who proves nothing, and gives the digest as his id */
	for (unsigned int i = 0; i < k.n; i++)
		cr_assert_geq(k.of[i].key[ULRPC_RECORD_KEY - 1], 0x80);
	proof_rig_free(k.g);
}

/* ---- connections ---- */

static struct called call_who(struct proof_rig *g, struct ulrpc_client *client)
{
	const struct ulrpc_call_conf conf = { .deadline = 10000000 };
	struct called c = { 0 };

	cr_assert_eq(ulrpc_call(client, ulrpc_method("who"), "x", 2, &conf,
				on_called, &c, NULL),
		     0);
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	return c;
}

static void is_served(struct proof_rig *g, struct ulrpc_client *client,
		      const char *name)
{
	struct called c = call_who(g, client);

	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s: %s: %s", name,
		     ulrpc_cause_name(c.outcome.cause), c.outcome.text);
	cr_assert_str_eq(g->peer.name, name);
}

/* The id that the first client of the server gives to it. */
static const uint8_t *given_id(const struct proof_rig *g)
{
	const struct ulrpc *rpc = g->serve.rpc[SERVER];

	for (unsigned int i = 0; i < rpc->ncpts; i++) {
		uint32_t pos = 0;
		const struct export *e =
			id_walk(&rpc->shards[i].exports->table, &pos);

		if (e)
			return e->session->client_id;
	}
	cr_assert_fail("no client");
	return NULL;
}

/* Eve, and somebody without keys, connect with the id of a before he does. */
static void all_are_served(unsigned int cpts)
{
	struct proof_rig *g = rig_of_three(cpts);
	struct raw_client *none = calloc(1, sizeof(*none));
	unsigned int other = serve_node_add(&g->serve, 2);
	unsigned int third = serve_node_add(&g->serve, 3);
	struct ulrpc_client *client;
	struct ulrpc_client_conf conf;
	struct ulnet_nid nid;
	struct ulrpc *eve;

	cr_assert(none);
	eve = open_as(g, lnet_sim_node(g->serve.sim, other), "eve");
	g->serve.rpc[CALLER] = open_as(g, g->serve.node[CALLER], "a");
	who_start(g, ULRPC_FLAVOUR_AUTH);
	conf = client_conf(&nid);
	cr_assert_eq(ulrpc_client_open(eve, &conf, &client), 0);
	is_served(g, client, "eve");
	raw_client_init(none, g->serve.sim, third, SERVER);
	memcpy(none->client_id, given_id(g), RPC_ID_SIZE);
	cr_assert_eq(raw_client_connect(none)->status, WIRE_OK);
	proof_client(g, &conf);
	for (unsigned int i = 0; i < 3; i++) {
		is_served(g, g->serve.client, "a");
		is_served(g, client, "eve");
	}
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_connections_made),
		     1);
	cr_assert_eq(counts(eve, RPC_STAT_connections_made), 1);
	ulrpc_client_close(client);
	cr_assert_eq(ulrpc_close(eve), 0);
	ulrpc_client_close(g->serve.client);
	proof_rig_free(g);
	free(none);
}

Test(own_id, nobody_is_kept_out)
{
	all_are_served(1);
	all_are_served(4);
}

/* ---- handshakes on the wrong CPT ---- */

static const struct export *export_of(const struct proof_rig *g,
				      const char *name)
{
	const struct ulrpc *rpc = g->serve.rpc[SERVER];

	for (unsigned int i = 0; i < rpc->ncpts; i++) {
		const struct export *e;
		uint32_t pos = 0;

		while ((e = id_walk(&rpc->shards[i].exports->table, &pos)))
			if (!strcmp(e->who->name, name))
				return e;
	}
	cr_assert_fail("no export of %s", name);
	return NULL;
}

/* The server's CPT that has an export of @name. */
static unsigned int export_at(const struct proof_rig *g, const char *name)
{
	return export_of(g, name)->id_of.cpt;
}

/* Writes to @text a NID 10.@net.0.x@tcp that the server's CPT @cpt owns; or,
 * unless @is, another of its CPTs. Returns which one does. */
static int nid_at(const struct proof_rig *g, unsigned int net, int cpt, bool is,
		  char text[LNET_NIDSTR_SIZE])
{
	for (unsigned int i = 1; i < 256; i++) {
		struct ulnet_nid nid;
		int at;

		snprintf(text, LNET_NIDSTR_SIZE, "10.%u.0.%u@tcp", net, i);
		nid = id_of(text).nid;
		at = lnet_cpt_of(g->serve.node[SERVER], &nid);
		if ((at == cpt) == is)
			return at;
	}
	cr_assert_fail("no NID");
	return -1;
}

/* Eve gives the id of a, who has two NIDs, of which the server knows only by
 * what comes from them. */
struct astray {
	struct proof_rig *g;
	struct ulnet_nid nid[2]; /* of a; the first one is up */
	struct ulrpc *eve;
	struct ulrpc_client *eves;
};

static struct lnet *node_at(struct proof_rig *g, const char *nids)
{
	return lnet_sim_node(
		g->serve.sim,
		(unsigned int)plain_node(g->serve.sim, nids, NULL, NULL, NULL));
}

static void astray_begin(struct astray *y)
{
	char home[LNET_NIDSTR_SIZE], away[LNET_NIDSTR_SIZE];
	char evil[LNET_NIDSTR_SIZE], both[2 * LNET_NIDSTR_SIZE];
	struct proof_rig *g = y->g = rig_of_three(4);
	struct ulrpc_client_conf conf;
	struct ulnet_nid nid;
	int at = nid_at(g, 1, 0, true, home);

	at = nid_at(g, 2, at, false, away);
	nid_at(g, 3, at, true, evil);
	snprintf(both, sizeof(both), "%s %s", home, away);
	y->nid[0] = id_of(home).nid;
	y->nid[1] = id_of(away).nid;
	g->serve.rpc[CALLER] = open_as(g, node_at(g, both), "a");
	y->eve = open_as(g, node_at(g, evil), "eve");
	cr_assert_eq(lnet_sim_ni_set(g->serve.sim, &y->nid[1], false), 0);
	who_start(g, ULRPC_FLAVOUR_AUTH);
	conf = client_conf(&nid);
	cr_assert_eq(ulrpc_client_open(y->eve, &conf, &y->eves), 0);
	proof_client(g, &conf);
}

static void astray_end(struct astray *y)
{
	ulrpc_client_close(y->eves);
	cr_assert_eq(ulrpc_close(y->eve), 0);
	ulrpc_client_close(y->g->serve.client);
	proof_rig_free(y->g);
}

/* Both make their handshakes at the same time, so that each is on the CPT of
 * the NID that it comes from. */
static void both_connect(struct astray *y)
{
	const struct ulrpc_call_conf conf = { .deadline = 10000000 };
	struct ulrpc_client *clients[2] = { y->eves, y->g->serve.client };
	struct called c[2] = { { 0 }, { 0 } };

	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(ulrpc_call(clients[i], ulrpc_method("who"), "x", 2,
					&conf, on_called, &c[i], NULL),
			     0);
	while (!c[0].ended || !c[1].ended)
		lnet_sim_run(y->g->serve.sim, MSEC);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(c[i].outcome.cause, ULRPC_CAUSE_OK);
}

/* @client has to connect again, and does so long before its lease ends. */
static void returns(struct astray *y, struct ulrpc_client *client,
		    const char *name, uint64_t misled)
{
	const struct ulrpc *server = y->g->serve.rpc[SERVER];
	struct import *imp = client->imp;
	uint64_t returned = counts(server, RPC_STAT_clients_returned);
	uint64_t from = lnet_sim_now(y->g->serve.sim);

	import_lost(imp, imp->epoch);
	is_served(y->g, client, name);
	cr_assert_lt(lnet_sim_now(y->g->serve.sim) - from, SEC);
	cr_assert_eq(counts(server, RPC_STAT_clients_returned), returned + 1);
	cr_assert_eq(counts(server, RPC_STAT_handshakes_misled), misled);
}

static void connects_again(struct astray *y, uint64_t misled)
{
	returns(y, y->g->serve.client, "a", misled);
}

static void goes_by(struct astray *y, unsigned int rail)
{
	struct lnet_sim *sim = y->g->serve.sim;

	cr_assert_eq(lnet_sim_ni_set(sim, &y->nid[rail], true), 0);
	cr_assert_eq(lnet_sim_ni_set(sim, &y->nid[1 - rail], false), 0);
}

/* From a NID that the server has not seen yet, a comes to the CPT that has the
 * export of eve. That costs him one more handshake; but he neither waits until
 * his own lease ends, nor is he taken for another client. */
Test(own_id, led_astray)
{
	struct astray y;

	astray_begin(&y);
	both_connect(&y);
	cr_assert_neq(export_at(y.g, "a"), export_at(y.g, "eve"));
	connects_again(&y, 0);
	goes_by(&y, 1);
	connects_again(&y, 1);
	/* now the server knows where he comes from, and has not forgotten where
	 * he came from before */
	connects_again(&y, 1);
	goes_by(&y, 0);
	connects_again(&y, 1);
	is_served(y.g, y.eves, "eve");
	astray_end(&y);
}

/* As if @who had made a handshake that came from where @whom comes from: over a
 * router, for one. */
static void proves_from(struct astray *y, const char *who, const char *whom)
{
	const struct ulrpc *server = y->g->serve.rpc[SERVER];
	const struct export *e = export_of(y->g, who);

	cr_assert_eq(client_ids_proved(server->client_ids, given_id(y->g),
				       e->session->own_id,
				       &export_of(y->g, whom)->session->place,
				       export_at(y->g, whom)),
		     export_at(y->g, who));
}

/* Two clients that give one id, and come from one place. Whoever of them has
 * not proved himself there last needs one more handshake, and not more. */
Test(own_id, one_place)
{
	struct astray y;

	astray_begin(&y);
	both_connect(&y);
	cr_assert_neq(export_at(y.g, "a"), export_at(y.g, "eve"));
	proves_from(&y, "eve", "a");
	connects_again(&y, 1);
	connects_again(&y, 1);
	proves_from(&y, "a", "eve");
	returns(&y, y.eves, "eve", 2);
	returns(&y, y.eves, "eve", 2);
	connects_again(&y, 2);
	astray_end(&y);
}

/* Returns the session of a client that has proved who it is, and has not sent
 * its Connect yet; NULL: there is none. */
static struct session *proved_session(const struct proof_rig *g,
				      unsigned int *cpt_p)
{
	const struct ulrpc *rpc = g->serve.rpc[SERVER];
	struct session *se;

	for (unsigned int i = 0; i < rpc->ncpts; i++)
		list_for_each_entry (
			se, &rpc->shards[i].exports->sessions.young, link)
			if (se->sealed) {
				*cpt_p = i;
				return se;
			}
	return NULL;
}

/* A client has made two handshakes, on two CPTs, and the Connect of the first
 * one arrives just before that of the second, which then goes where the first
 * one is, without a pause. */
Test(own_id, connects_at_two_places)
{
	const struct ulrpc_call_conf conf = { .deadline = 10000000 };
	const struct ulnet_sim_link slow = { .latency = 100 * NSEC_PER_USEC };
	struct proof_rig *g = proof_rig_new(4, "a", ULRPC_FLAVOUR_AUTH);
	struct client_ids *ids = g->serve.rpc[SERVER]->client_ids;
	struct client_id first = { .proved = true };
	struct called c = { 0 };
	struct session *se;
	unsigned int cpt = 0;
	uint64_t from;

	link_set(g->serve.sim, CALLER, SERVER, &slow);
	proof_client_usual(g);
	from = lnet_sim_now(g->serve.sim);
	cr_assert_eq(ulrpc_call(g->serve.client, ulrpc_method("who"), "x", 2,
				&conf, on_called, &c, NULL),
		     0);
	while (!(se = proved_session(g, &cpt)))
		lnet_sim_run(g->serve.sim, NSEC_PER_USEC);
	memcpy(first.id, se->own_id, RPC_ID_SIZE);
	first.cpt = (cpt + 1) % 4;
	cr_assert_eq(client_ids_add(ids, &first, se->client_id, NULL), 0);
	while (!counts(g->serve.rpc[SERVER], RPC_STAT_handshakes_misled))
		lnet_sim_run(g->serve.sim, NSEC_PER_USEC);
	client_ids_del(ids, &first);
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_lt(lnet_sim_now(g->serve.sim) - from, SEC / 2);
	cr_assert_eq(counts(g->serve.rpc[SERVER], RPC_STAT_clients_refused), 0);
	ulrpc_client_close(g->serve.client);
	proof_rig_free(g);
}

/* ---- without a proof, and with one ---- */

static unsigned int all_exports(const struct proof_rig *g)
{
	const struct ulrpc *rpc = g->serve.rpc[SERVER];
	unsigned int n = 0;

	for (unsigned int i = 0; i < rpc->ncpts; i++)
		n += rpc->shards[i].exports->table.used;
	return n;
}

/* Makes @none connect without a proof, with the id and the handle that the
 * client gives to its server, from a NID of another CPT than the client's. */
static void connects_elsewhere(struct proof_rig *g, struct raw_client *none)
{
	struct ulnet_id caller = nth_id(CALLER), id;
	struct lnet *server = g->serve.node[SERVER];
	unsigned int node = 2;

	do {
		(void)serve_node_add(&g->serve, node);
		id = nth_id(node++);
	} while (lnet_cpt_of(server, &id.nid) ==
		 lnet_cpt_of(server, &caller.nid));
	raw_client_init(none, g->serve.sim, node - 1, SERVER);
	memcpy(none->client_id, g->serve.client->imp->name.id, RPC_ID_SIZE);
	none->client = g->serve.client->imp->handle;
	cr_assert_eq(raw_client_connect(none)->status, WIRE_OK);
}

/* A client has connected before it could prove who it is. When it has, that
 * connection ends at once, whichever CPT has it; that of another process that
 * gives the same id stays. */
static void proves_later(bool same)
{
	struct proof_rig *g = rig_of_three(4);
	struct raw_client *none = calloc(1, sizeof(*none));
	struct ulrpc_client_conf conf;
	struct ulnet_nid nid;
	uint64_t from;

	cr_assert(none);
	g->serve.rpc[CALLER] = open_as(g, g->serve.node[CALLER], "a");
	who_start(g, ULRPC_FLAVOUR_AUTH);
	conf = client_conf(&nid);
	proof_client(g, &conf);
	connects_elsewhere(g, none);
	if (!same) {
		none->client++;
		cr_assert_eq(raw_client_connect(none)->status, WIRE_OK);
	}
	from = lnet_sim_now(g->serve.sim);
	is_served(g, g->serve.client, "a");
	cr_assert_lt(lnet_sim_now(g->serve.sim) - from, SEC);
	cr_assert_eq(all_exports(g), same ? 1 : 2);
	cr_assert_eq(raw_client_keepalive(none),
		     same ? WIRE_NOT_CONNECTED : WIRE_OK);
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_connections_made),
		     1);
	ulrpc_client_close(g->serve.client);
	proof_rig_free(g);
	free(none);
}

Test(own_id, proved_elsewhere)
{
	proves_later(true);
	proves_later(false);
}
